/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving: see frame.h. */
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "iscsi/frame.h"
#include "iscsi/pdu.h"

void iscsi_rx_init(struct iscsi_rx *rx, const struct iscsi_rx_ops *ops, void *user, void *staging,
                   size_t staging_size, void *hold, size_t hold_size, uint32_t limit)
{
    memset(rx, 0, sizeof(*rx));
    rx->ops = ops;
    rx->user = user;
    rx->staging = staging;
    rx->staging_size = staging_size;
    rx->hold = hold;
    rx->hold_size = hold_size;
    rx->hold_iov = (struct iovec){hold, hold_size};
    rx->limit = limit;
}

void iscsi_rx_set_digests(struct iscsi_rx *rx, bool header, bool data)
{
    rx->header_digest = header;
    rx->data_digest = data;
}

void iscsi_rx_set_limit(struct iscsi_rx *rx, uint32_t limit)
{
    rx->limit = limit;
}

static int fail(struct iscsi_rx *rx, enum iscsi_rx_error error)
{
    rx->error = error;
    return -1;
}

static size_t header_digest_size(const struct iscsi_rx *rx)
{
    return rx->header_digest ? ISCSI_DIGEST_SIZE : 0;
}

/* ---- where to read to ---- */

/* Bytes wanted behind the data segment: in a run of long segments no more than the next header,
 * so that the segment behind it can go to its place. A segment without a place comes here too. */
static size_t staging_wanted(const struct iscsi_rx *rx)
{
    size_t room = rx->staging_size - rx->tail, wanted;

    if (!rx->long_segments)
        return room;
    wanted = ISCSI_BHS_SIZE + header_digest_size(rx);
    if (rx->state == RX_HEADER) {
        size_t have = rx->tail - rx->head;

        wanted = have < wanted ? wanted - have : room; /* the header has AHS */
    } else {
        wanted += rx->trailer_length - rx->trailer_have;
        if (rx->state == RX_DATA && rx->place.discard)
            wanted += rx->data_left;
    }
    return wanted < room ? wanted : room;
}

unsigned iscsi_rx_space(struct iscsi_rx *rx, struct iovec *iov, unsigned max)
{
    unsigned n = 0;

    rx->offered = 0;
    if (rx->error != ISCSI_RX_OK || rx->paused)
        return 0;
    if (rx->head == rx->tail) {
        rx->head = rx->tail = 0;
    } else if (rx->staging_size - rx->tail < ISCSI_RX_STAGING_MIN / 2) {
        /* What is left is less than a header. */
        memmove(rx->staging, rx->staging + rx->head, rx->tail - rx->head);
        rx->tail -= rx->head;
        rx->head = 0;
    }
    if (rx->state == RX_DATA && !rx->place.discard) {
        n = iov_slice(rx->at, rx->data_left, iov, max, &rx->offered);
        if (n == max || rx->offered < rx->data_left)
            return n;
    }
    if (staging_wanted(rx) > 0) {
        iov[n].iov_base = rx->staging + rx->tail;
        iov[n].iov_len = staging_wanted(rx);
        n++;
    }
    return n;
}

/* ---- what was read ---- */

static int finish_pdu(struct iscsi_rx *rx)
{
    struct iscsi_rx_pdu pdu = {
        .bhs = rx->header,
        .ahs = rx->header + ISCSI_BHS_SIZE,
        .ahs_length = rx->ahs_length,
        .data_length = rx->data_length,
        .data_digest_ok = true,
    };

    if (rx->data_length > 0 && rx->place.iov == NULL && !rx->place.discard)
        pdu.data = rx->hold;
    if (rx->data_length > 0 && rx->data_digest) {
        uint8_t digest[ISCSI_DIGEST_SIZE];
        uint32_t padding = rx->trailer_length - ISCSI_DIGEST_SIZE;

        crc32c_end(crc32c_add(rx->crc, rx->trailer, padding), digest);
        pdu.data_digest_ok = memcmp(digest, rx->trailer + padding, sizeof(digest)) == 0;
    }
    rx->state = RX_HEADER;
    return rx->ops->pdu(rx->user, &pdu) == ISCSI_RX_STOP ? fail(rx, ISCSI_RX_STOPPED) : 0;
}

/* Finds the segment's place. */
static int begin_data(struct iscsi_rx *rx)
{
    rx->data_left = rx->data_length;
    rx->long_segments = rx->data_length >= ISCSI_RX_LONG;
    rx->trailer_have = 0;
    rx->trailer_length = iscsi_padding(rx->data_length) + (rx->data_digest ? ISCSI_DIGEST_SIZE : 0);
    rx->crc = CRC32C_INIT;
    rx->state = RX_DATA;
    if (rx->place.discard)
        return 0;
    if (rx->place.iov == NULL) {
        if (rx->data_length > rx->hold_size)
            return fail(rx, ISCSI_RX_NO_PLACE);
        rx->at = (struct iov_place){&rx->hold_iov, 1, 0};
        return 0;
    }
    rx->at = (struct iov_place){rx->place.iov, rx->place.count, 0};
    iov_advance(&rx->at, rx->place.offset);
    {
        uint64_t room = 0;

        for (unsigned i = 0; i < rx->at.count && room < rx->at.offset + rx->data_length; i++)
            room += rx->at.iov[i].iov_len;
        if (room < rx->at.offset + rx->data_length)
            return fail(rx, ISCSI_RX_NO_PLACE);
    }
    return 0;
}

/* 1: a header was taken; 0: it is not whole, or waits; -1: error. */
static int take_header(struct iscsi_rx *rx)
{
    const uint8_t *bytes = rx->staging + rx->head;
    size_t have = rx->tail - rx->head, size;
    enum iscsi_rx_verdict verdict;

    if (have < ISCSI_BHS_SIZE)
        return 0;
    size = ISCSI_BHS_SIZE + 4u * bytes[4];
    if (have < size + header_digest_size(rx))
        return 0;
    if (rx->header_digest) {
        uint8_t digest[ISCSI_DIGEST_SIZE];

        crc32c_end(crc32c_add(CRC32C_INIT, bytes, size), digest);
        if (memcmp(digest, bytes + size, sizeof(digest)) != 0)
            return fail(rx, ISCSI_RX_HEADER_DIGEST);
    }
    memcpy(rx->header, bytes, size);
    rx->ahs_length = (uint32_t)(size - ISCSI_BHS_SIZE);
    rx->data_length = load_be24(bytes + 5);
    if (rx->data_length > rx->limit)
        return fail(rx, ISCSI_RX_TOO_LONG);
    rx->place = (struct iscsi_place){0};
    verdict = rx->ops->header(rx->user, rx->header, rx->header + ISCSI_BHS_SIZE, rx->ahs_length,
                              &rx->place);
    if (verdict == ISCSI_RX_STOP)
        return fail(rx, ISCSI_RX_STOPPED);
    if (verdict == ISCSI_RX_PAUSE) {
        rx->paused = true;
        return 0;
    }
    rx->head += size + header_digest_size(rx);
    if (rx->data_length == 0) {
        rx->long_segments = false;
        return finish_pdu(rx) < 0 ? -1 : 1;
    }
    return begin_data(rx) < 0 ? -1 : 1;
}

/* Takes n bytes of the segment that are already at their place, or none's. */
static void data_arrived(struct iscsi_rx *rx, size_t n)
{
    rx->data_left -= (uint32_t)n;
    if (rx->data_left == 0)
        rx->state = RX_TRAILER;
}

/* Bytes that were read straight to their place. */
static void take_direct(struct iscsi_rx *rx, size_t n)
{
    size_t left = n;

    while (left > 0) {
        uint8_t *piece;
        size_t length = iov_piece(&rx->at, left, &piece);

        if (rx->data_digest)
            rx->crc = crc32c_add(rx->crc, piece, length);
        iov_advance(&rx->at, length);
        left -= length;
    }
    data_arrived(rx, n);
}

/* Bytes of the segment that lie in the staging buffer. 1: all taken; 0: more must come. */
static int take_staged_data(struct iscsi_rx *rx)
{
    size_t n = rx->tail - rx->head;
    const uint8_t *from = rx->staging + rx->head;

    if (n > rx->data_left)
        n = rx->data_left;
    if (n == 0)
        return 0;
    if (rx->data_digest)
        rx->crc = crc32c_add(rx->crc, from, n);
    rx->head += n;
    data_arrived(rx, n);
    while (n > 0 && !rx->place.discard) {
        uint8_t *piece;
        size_t length = iov_piece(&rx->at, n, &piece);

        memcpy(piece, from, length);
        iov_advance(&rx->at, length);
        from += length;
        n -= length;
    }
    return rx->state == RX_TRAILER;
}

/* 1: the PDU is whole and was told; 0: more must come; -1: error. */
static int take_trailer(struct iscsi_rx *rx)
{
    while (rx->trailer_have < rx->trailer_length && rx->head < rx->tail)
        rx->trailer[rx->trailer_have++] = rx->staging[rx->head++];
    if (rx->trailer_have < rx->trailer_length)
        return 0;
    return finish_pdu(rx) < 0 ? -1 : 1;
}

static int process(struct iscsi_rx *rx)
{
    int more = 1;

    rx->busy = true;
    while (more > 0 && !rx->paused) {
        switch (rx->state) {
        case RX_HEADER:
            more = take_header(rx);
            break;
        case RX_DATA:
            more = take_staged_data(rx);
            break;
        case RX_TRAILER:
            more = take_trailer(rx);
            break;
        }
    }
    rx->busy = false;
    return more < 0 ? -1 : 0;
}

int iscsi_rx_received(struct iscsi_rx *rx, size_t n)
{
    size_t direct = n < rx->offered ? n : rx->offered;

    if (rx->error != ISCSI_RX_OK)
        return -1;
    rx->offered = 0;
    if (direct > 0)
        take_direct(rx, direct);
    rx->tail += n - direct;
    return process(rx);
}

int iscsi_rx_resume(struct iscsi_rx *rx)
{
    if (rx->error != ISCSI_RX_OK)
        return -1;
    if (!rx->paused)
        return 0;
    rx->paused = false;
    return rx->busy ? 0 : process(rx);
}

void iscsi_rx_discard(struct iscsi_rx *rx)
{
    if (rx->state == RX_DATA)
        rx->place = (struct iscsi_place){.discard = true};
}
