/* SPDX-License-Identifier: BSD-2-Clause */
/* The framing of a stream, cut as the input says. The first four bytes are switches:
 *
 *   0  bit 0 header digest, bit 1 data digest, bit 2 the rest is a script: PDUs that the sending
 *      half makes, so that digests are right and the stream gets far; bit 3 one segment a call
 *   1  limit in units of 512 bytes, from 1
 *   2  hold buffer in units of 64 bytes, from 0
 *   3  seed of the cuts
 *
 * Every destination is memory of its own, of the exact size, and a model of what must arrive
 * stands beside the stream. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "iscsi/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SWITCHES = 4, SLOTS = 3, STREAM_MAX = 40000, GUARD = 16, GUARD_BYTE = 0xa7 };

static void require(bool right)
{
    if (!right)
        abort();
}

static void *memory(size_t n)
{
    void *p = malloc(n + (n == 0));

    require(p);
    return p;
}

/* ---- receiving ---- */

struct receiver {
    struct iscsi_rx rx;
    uint8_t *hold;
    size_t hold_size;
    struct rng rng;
    bool one_segment, pause, in_pdu, expect_digests;
    uint8_t bhs[ISCSI_BHS_SIZE];
    uint8_t *place; /* of the PDU that is being received: a guard, the bytes, a guard */
    uint32_t length;
    uint64_t offset;
    struct iovec iov[3];
    bool discard, placed;
    unsigned headers, pdus, bad_digests;
    const uint8_t *stream; /* where in the stream the next PDU begins; NULL: not known */
    size_t left;
};

static void give_place(struct receiver *r, struct iscsi_place *place)
{
    size_t room = (size_t)r->length + r->offset;

    r->place = memory(room + 2 * GUARD);
    memset(r->place, GUARD_BYTE, room + 2 * GUARD);
    r->iov[0] = (struct iovec){r->place + GUARD, room / 3};
    r->iov[1] = (struct iovec){NULL, 0};
    r->iov[2] = (struct iovec){r->place + GUARD + room / 3, room - room / 3};
    *place = (struct iscsi_place){r->iov, 3, r->offset, false};
    r->placed = true;
}

/* By the seed: placed, held, discarded, in a place too small, paused, stopped. */
static enum iscsi_rx_verdict on_header(void *user, const uint8_t *bhs, const uint8_t *ahs,
                                       uint32_t ahs_length, struct iscsi_place *place)
{
    struct receiver *r = user;
    unsigned chance = (unsigned)rng_below(&r->rng, 64);

    require(!r->in_pdu && !place->iov && !place->discard);
    require(ahs_length == 4u * bhs[4] && ahs == bhs + ISCSI_BHS_SIZE);
    require(load_be24(bhs + 5) <= r->rx.limit);
    if (r->stream)
        require(r->left >= ISCSI_BHS_SIZE && memcmp(bhs, r->stream, ISCSI_BHS_SIZE) == 0);
    if (chance < 4)
        return ISCSI_RX_PAUSE;
    r->headers++;
    if (chance == 4 && !r->expect_digests)
        return ISCSI_RX_STOP;
    r->in_pdu = true;
    memcpy(r->bhs, bhs, sizeof(r->bhs));
    r->length = load_be24(bhs + 5);
    r->offset = chance % 7;
    r->discard = r->placed = false;
    if (chance < 12 || r->length > r->hold_size)
        give_place(r, place);
    else if (chance < 20)
        r->discard = place->discard = true;
    else if (chance < 44)
        give_place(r, place);
    if (chance == 5 && r->placed && !r->expect_digests && place->iov[2].iov_len > 0)
        r->iov[2].iov_len--; /* too small: the stream must end */
    return ISCSI_RX_GO;
}

static void check_guards(const struct receiver *r)
{
    const uint8_t *end = r->place + GUARD + r->offset + r->length;

    for (size_t i = 0; i < GUARD + r->offset; i++)
        require(r->place[i] == GUARD_BYTE);
    for (size_t i = 0; i < GUARD; i++)
        require(end[i] == GUARD_BYTE);
}

/* The same PDU lies in the stream; steps over it. */
static void check_stream(struct receiver *r, const uint8_t *bytes, uint32_t ahs_length)
{
    size_t header = ISCSI_BHS_SIZE + ahs_length + (r->rx.header_digest ? ISCSI_DIGEST_SIZE : 0);
    size_t whole = header + r->length + iscsi_padding(r->length) +
                   (r->rx.data_digest && r->length > 0 ? ISCSI_DIGEST_SIZE : 0);

    if (!r->stream)
        return;
    require(whole <= r->left);
    if (bytes)
        require(memcmp(bytes, r->stream + header, r->length) == 0);
    r->stream += whole;
    r->left -= whole;
}

static enum iscsi_rx_verdict on_pdu(void *user, const struct iscsi_rx_pdu *pdu)
{
    struct receiver *r = user;

    require(r->in_pdu && memcmp(pdu->bhs, r->bhs, sizeof(r->bhs)) == 0);
    require(pdu->data_length == r->length);
    require(!pdu->data == (r->length == 0 || r->placed || r->discard));
    require(!pdu->data || (pdu->data == r->hold && r->length <= r->hold_size));
    if (r->placed)
        check_guards(r);
    check_stream(r, r->placed && !r->discard ? r->place + GUARD + r->offset : pdu->data,
                 pdu->ahs_length);
    free(r->place);
    r->place = NULL;
    r->in_pdu = false;
    r->pdus++;
    r->bad_digests += !pdu->data_digest_ok;
    return ISCSI_RX_GO;
}

static const struct iscsi_rx_ops rx_ops = {on_header, on_pdu};

/* The space that is offered is there, and none of it twice. */
static size_t fill(struct receiver *r, const uint8_t *bytes, size_t n)
{
    struct iovec iov[4];
    unsigned max = r->one_segment ? 1 : 4, count = iscsi_rx_space(&r->rx, iov, max);
    size_t put = 0;

    require(count <= max);
    if (count == 0)
        require(r->rx.paused || r->rx.error != ISCSI_RX_OK);
    for (unsigned i = 0; i < count && put < n; i++) {
        size_t part = iov[i].iov_len < n - put ? iov[i].iov_len : n - put;

        require(iov[i].iov_len > 0);
        memcpy(iov[i].iov_base, bytes + put, part);
        put += part;
    }
    return put;
}

static void receive(struct receiver *r, const uint8_t *bytes, size_t n)
{
    while (n > 0 && r->rx.error == ISCSI_RX_OK) {
        size_t most = rng_below(&r->rng, 4) == 0 ? 1 + rng_below(&r->rng, 8)
                                                 : 1 + rng_below(&r->rng, n < 9000 ? n : 9000);
        size_t put = fill(r, bytes, n < most ? n : most);

        if (r->rx.paused)
            iscsi_rx_resume(&r->rx);
        else
            iscsi_rx_received(&r->rx, put);
        bytes += put;
        n -= put;
        if (r->in_pdu && r->rx.error == ISCSI_RX_OK && rng_below(&r->rng, 200) == 0) {
            iscsi_rx_discard(&r->rx); /* takes effect while data are still to come */
            r->discard = r->rx.place.discard;
        }
    }
    while (r->rx.paused && r->rx.error == ISCSI_RX_OK)
        iscsi_rx_resume(&r->rx);
}

/* ---- sending ---- */

/* Each PDU is made of three bytes of the script: AHS words, and two for the length. */
struct sender {
    struct iscsi_tx tx;
    struct iscsi_tx_slot slots[SLOTS];
    const uint8_t *script;
    size_t left, total;
    uint32_t limit;
    unsigned made, sent;
};

static bool produce(void *user, struct iscsi_tx_pdu *pdu)
{
    struct sender *s = user;
    struct iscsi_scsi_command command = {.itt = s->made, .final = true};
    struct iovec *iov;
    uint8_t *bytes;

    if (s->left < 3)
        return false;
    command.ahs_words = s->script[0] & 1 ? (s->script[0] >> 1) % (ISCSI_TX_AHS_MAX / 4 + 1) : 0;
    command.data_segment_length = load_be16(s->script + 1) % (s->limit + 1);
    s->total += ISCSI_BHS_SIZE + 4u * command.ahs_words + command.data_segment_length + 16;
    if (s->total > STREAM_MAX)
        return false;
    iscsi_scsi_command_pack(pdu->bhs, &command);
    pdu->ahs_length = 4u * command.ahs_words;
    memset(pdu->ahs, 0x3e, pdu->ahs_length);
    pdu->length = command.data_segment_length;
    iov = memory(2 * sizeof(*iov) + pdu->length + 1);
    bytes = (uint8_t *)(iov + 2);
    for (uint32_t i = 0; i <= pdu->length; i++)
        bytes[i] = (uint8_t)rng_mix(s->made * 977u + i);
    iov[0] = (struct iovec){bytes, 1 + pdu->length / 2};
    iov[1] = (struct iovec){bytes + 1 + pdu->length / 2, pdu->length - pdu->length / 2};
    pdu->iov = iov;
    pdu->count = 2;
    pdu->offset = 1;
    pdu->copy = pdu->length <= ISCSI_TX_COPY_MAX && s->script[2] & 1;
    pdu->owner = iov;
    s->made++;
    s->script += 3;
    s->left -= 3;
    return true;
}

static void sent(void *user, void *owner)
{
    struct sender *s = user;

    s->sent++;
    free(owner);
}

static const struct iscsi_tx_ops tx_ops = {produce, sent};

static size_t send_all(struct sender *s, struct rng *rng, uint8_t *stream)
{
    size_t n = 0;

    for (;;) {
        struct iovec iov[6];
        unsigned max = 1 + (unsigned)rng_below(rng, 6), count = iscsi_tx_data(&s->tx, iov, max);
        size_t most = 1 + rng_below(rng, 3000), taken = 0;

        require(count <= max);
        if (count == 0)
            break;
        for (unsigned i = 0; i < count && taken < most; i++) {
            size_t part = iov[i].iov_len < most - taken ? iov[i].iov_len : most - taken;

            require(part > 0 && n + part <= STREAM_MAX);
            memcpy(stream + n, iov[i].iov_base, part);
            n += part;
            taken += part;
        }
        iscsi_tx_sent(&s->tx, taken);
        if (rng_below(rng, 4000) == 0) {
            iscsi_tx_drop(&s->tx);
            require(s->sent == s->made);
            return 0; /* the stream is cut inside a PDU: of no use */
        }
    }
    require(s->sent == s->made && iscsi_tx_staged(&s->tx) == 0);
    return n;
}

/* ---- one input ---- */

static void run(struct receiver *r, const uint8_t *stream, size_t n, uint32_t limit, bool header,
                bool data)
{
    uint8_t *staging = memory(ISCSI_RX_STAGING_MIN);

    r->hold = memory(r->hold_size);
    iscsi_rx_init(&r->rx, &rx_ops, r, staging, ISCSI_RX_STAGING_MIN, r->hold, r->hold_size, limit);
    iscsi_rx_set_digests(&r->rx, header, data);
    r->stream = stream;
    r->left = n;
    receive(r, stream, n);
    free(r->place);
    free(staging);
    free(r->hold);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct receiver r = {0};
    bool header, with_data, scripted;
    uint32_t limit;

    if (size < SWITCHES)
        return 0;
    header = data[0] & 1;
    with_data = data[0] & 2;
    scripted = data[0] & 4;
    r.one_segment = data[0] & 8;
    limit = 512u * (data[1] + 1u);
    r.hold_size = 64u * data[2];
    r.rng.state = data[3];
    if (!scripted) {
        run(&r, data + SWITCHES, size - SWITCHES, limit, header, with_data);
        return 0;
    }

    struct sender s = {.script = data + SWITCHES, .left = size - SWITCHES, .limit = limit};
    uint8_t *stream = memory(STREAM_MAX);
    size_t n;

    iscsi_tx_init(&s.tx, &tx_ops, &s, s.slots, SLOTS);
    iscsi_tx_set_digests(&s.tx, header, with_data);
    n = send_all(&s, &r.rng, stream);
    r.expect_digests = true;
    run(&r, stream, n, limit, header, with_data);
    if (n > 0) {
        require(r.rx.error == ISCSI_RX_OK && r.bad_digests == 0 && r.left == 0);
        require(r.pdus == s.made && r.headers == s.made);
    }
    free(stream);
    return 0;
}
