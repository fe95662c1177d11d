/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending: see frame.h. */
#include <assert.h>
#include <string.h>

#include "base/crc32c.h"
#include "iscsi/frame.h"
#include "iscsi/pdu.h"

void iscsi_tx_init(struct iscsi_tx *tx, const struct iscsi_tx_ops *ops, void *user,
                   struct iscsi_tx_slot *slots, unsigned slot_count)
{
    *tx = (struct iscsi_tx){
        .ops = ops,
        .user = user,
        .slots = slots,
        .slot_count = slot_count,
    };
}

void iscsi_tx_set_digests(struct iscsi_tx *tx, bool header, bool data)
{
    tx->header_digest = header;
    tx->data_digest = data;
}

static struct iscsi_tx_slot *slot_at(struct iscsi_tx *tx, unsigned i)
{
    return &tx->slots[(tx->head + i) % tx->slot_count];
}

static uint64_t slot_size(const struct iscsi_tx_slot *slot)
{
    return (uint64_t)slot->header_length + slot->length + slot->trailer_length;
}

static void stage_payload(struct iscsi_tx_slot *slot, const struct iscsi_tx_pdu *pdu)
{
    slot->at = (struct iov_place){pdu->iov, pdu->count, 0};
    slot->length = pdu->length;
    iov_advance(&slot->at, pdu->offset);
    if (pdu->copy) {
        size_t have = 0;

        assert(pdu->length <= ISCSI_TX_COPY_MAX);
        while (have < pdu->length) {
            uint8_t *piece;
            size_t n = iov_piece(&slot->at, pdu->length - have, &piece);

            assert(n > 0); /* length says more than iov holds */
            memcpy(slot->copy + have, piece, n);
            iov_advance(&slot->at, n);
            have += n;
        }
        slot->copied = (struct iovec){slot->copy, pdu->length};
        slot->at = (struct iov_place){&slot->copied, 1, 0};
    }
}

static uint32_t payload_crc(const struct iscsi_tx_slot *slot)
{
    struct iov_place at = slot->at;
    uint32_t crc = CRC32C_INIT;
    size_t left = slot->length;

    while (left > 0) {
        uint8_t *piece;
        size_t n = iov_piece(&at, left, &piece);

        assert(n > 0); /* length says more than iov holds */
        crc = crc32c_add(crc, piece, n);
        iov_advance(&at, n);
        left -= n;
    }
    return crc;
}

/* Pad bytes are zero; a segment of no bytes has no digest (11.2.3). */
static void stage_trailer(const struct iscsi_tx *tx, struct iscsi_tx_slot *slot)
{
    uint32_t padding = iscsi_padding(slot->length);

    memset(slot->trailer, 0, sizeof(slot->trailer));
    slot->trailer_length = padding;
    if (tx->data_digest && slot->length > 0) {
        uint32_t crc = crc32c_add(payload_crc(slot), slot->trailer, padding);

        crc32c_end(crc, slot->trailer + padding);
        slot->trailer_length += ISCSI_DIGEST_SIZE;
    }
}

static bool stage(struct iscsi_tx *tx)
{
    struct iscsi_tx_slot *slot = slot_at(tx, tx->count);
    struct iscsi_tx_pdu pdu = {.bhs = slot->header, .ahs = slot->header + ISCSI_BHS_SIZE};

    if (!tx->ops->produce(tx->user, &pdu))
        return false;
    assert(pdu.ahs_length <= ISCSI_TX_AHS_MAX && pdu.ahs_length % 4 == 0);
    slot->owner = pdu.owner;
    slot->header_length = ISCSI_BHS_SIZE + pdu.ahs_length;
    if (tx->header_digest) {
        crc32c_end(crc32c_add(CRC32C_INIT, slot->header, slot->header_length),
                   slot->header + slot->header_length);
        slot->header_length += ISCSI_DIGEST_SIZE;
    }
    stage_payload(slot, &pdu);
    stage_trailer(tx, slot);
    tx->count++;
    return true;
}

/* What is left of a slot behind its first `done` bytes, as segments; false: they did not all fit.
 */
static bool gather(const struct iscsi_tx_slot *slot, uint64_t done, struct iovec *iov, unsigned max,
                   unsigned *count)
{
    uint64_t behind_header = done > slot->header_length ? done - slot->header_length : 0;

    if (done < slot->header_length) {
        if (*count == max)
            return false;
        iov[(*count)++] =
            (struct iovec){(uint8_t *)slot->header + done, slot->header_length - (size_t)done};
    }
    if (behind_header < slot->length) {
        struct iov_place at = slot->at;
        size_t want = slot->length - (size_t)behind_header, covered;

        iov_advance(&at, behind_header);
        *count += iov_slice(at, want, iov + *count, max - *count, &covered);
        if (covered < want)
            return false;
    }
    if (slot->trailer_length > 0) {
        uint64_t gone = behind_header > slot->length ? behind_header - slot->length : 0;

        if (*count == max)
            return false;
        iov[(*count)++] =
            (struct iovec){(uint8_t *)slot->trailer + gone, slot->trailer_length - (size_t)gone};
    }
    return true;
}

unsigned iscsi_tx_data(struct iscsi_tx *tx, struct iovec *iov, unsigned max)
{
    unsigned count = 0;

    for (unsigned i = 0; i < tx->slot_count && count < max; i++) {
        if (i == tx->count && !stage(tx))
            break;
        if (!gather(slot_at(tx, i), i == 0 ? tx->done : 0, iov, max, &count))
            break;
    }
    return count;
}

static void retire(struct iscsi_tx *tx)
{
    void *owner = slot_at(tx, 0)->owner;

    tx->head = (tx->head + 1) % tx->slot_count;
    tx->count--;
    tx->done = 0;
    if (owner)
        tx->ops->sent(tx->user, owner);
}

void iscsi_tx_sent(struct iscsi_tx *tx, size_t n)
{
    tx->done += n;
    while (tx->count > 0 && tx->done >= slot_size(slot_at(tx, 0))) {
        uint64_t rest = tx->done - slot_size(slot_at(tx, 0));

        retire(tx);
        tx->done = rest;
    }
}

void iscsi_tx_drop(struct iscsi_tx *tx)
{
    while (tx->count > 0)
        retire(tx);
}
