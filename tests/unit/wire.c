/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

const char *const wire_mode_names[WIRE_MODES] = {"a PDU at a time", "a byte at a time", "batched",
                                                 "cut at random"};

static void append(struct wire_bytes *b, const void *bytes, size_t n)
{
    if (b->length + n > b->room) {
        b->room = (b->length + n) * 2;
        b->bytes = realloc(b->bytes, b->room);
        if (!b->bytes)
            abort();
    }
    if (n)
        memcpy(b->bytes + b->length, bytes, n);
    b->length += n;
}

void wire_open(struct wire *w, const struct wire_ops *ops, void *machine, enum wire_mode mode,
               uint64_t seed)
{
    *w = (struct wire){.ops = ops, .machine = machine, .mode = mode, .rng = {seed}};
}

void wire_close(struct wire *w)
{
    free(w->to.bytes);
    free(w->ends.bytes);
    free(w->from.bytes);
    *w = (struct wire){0};
}

/* ---- to the machine ---- */

static void append_digest(struct wire_bytes *b, size_t begin, bool flip)
{
    uint8_t digest[4];

    crc32c_end(crc32c_add(CRC32C_INIT, b->bytes + begin, b->length - begin), digest);
    digest[0] ^= flip;
    append(b, digest, sizeof digest);
}

static void put_end(struct wire *w)
{
    append(&w->ends, &w->to.length, sizeof w->to.length);
}

void wire_put_ahs(struct wire *w, const uint8_t bhs[ISCSI_BHS_SIZE], const void *ahs,
                  size_t ahs_length, const void *data, uint32_t n)
{
    static const uint8_t zero[4];
    uint8_t header[ISCSI_BHS_SIZE];
    size_t begin = w->to.length;

    memcpy(header, bhs, sizeof header);
    header[4] = (uint8_t)(ahs_length / 4);
    store_be24(header + 5, n);
    append(&w->to, header, sizeof header);
    append(&w->to, ahs, ahs_length);
    if (w->header_digest)
        append_digest(&w->to, begin, w->flip_header);
    begin = w->to.length;
    append(&w->to, data, n);
    append(&w->to, zero, iscsi_padding(n));
    if (w->data_digest && n)
        append_digest(&w->to, begin, w->flip_data);
    w->flip_header = w->flip_data = false;
    put_end(w);
}

void wire_put(struct wire *w, const uint8_t bhs[ISCSI_BHS_SIZE], const void *data, uint32_t n)
{
    wire_put_ahs(w, bhs, NULL, 0, data, n);
}

void wire_put_raw(struct wire *w, const uint8_t bhs[ISCSI_BHS_SIZE], const void *bytes, size_t n)
{
    append(&w->to, bhs, ISCSI_BHS_SIZE);
    append(&w->to, bytes, n);
    put_end(w);
}

static size_t waiting(const struct wire *w)
{
    return w->to.length - w->given;
}

/* The length of the next read. */
static size_t next_read(struct wire *w)
{
    size_t end = w->given;

    switch (w->mode) {
    case WIRE_WHOLE:
        while (end <= w->given) {
            memcpy(&end, w->ends.bytes + w->ends_given, sizeof end);
            w->ends_given += end <= w->given ? sizeof end : 0;
        }
        return end - w->given;
    case WIRE_BYTES:
        return 1;
    case WIRE_RANDOM:
        return 1 + rng_below(&w->rng, waiting(w));
    case WIRE_BATCH:
    case WIRE_MODES:
        break;
    }
    return waiting(w);
}

static void give(struct wire *w, size_t n)
{
    w->given += n;
    if (!waiting(w))
        w->given = w->to.length = w->ends.length = w->ends_given = 0;
}

static size_t fill(const struct iovec *iov, unsigned count, const uint8_t *bytes, size_t n)
{
    size_t done = 0;

    for (unsigned i = 0; i < count && done < n; i++) {
        size_t part = iov[i].iov_len < n - done ? iov[i].iov_len : n - done;
        memcpy(iov[i].iov_base, bytes + done, part);
        done += part;
    }
    return done;
}

void wire_push(struct wire *w)
{
    struct iovec iov[8];

    while (waiting(w)) {
        size_t n = next_read(w);
        while (n) {
            unsigned count = w->ops->recv_space(w->machine, iov, 8);
            if (!count) {
                w->refused = true;
                give(w, waiting(w));
                return;
            }
            if (count > w->most_iov)
                w->most_iov = count;
            size_t part = fill(iov, count, w->to.bytes + w->given, n);
            if (!part)
                abort(); /* the machine asked for nothing */
            give(w, part);
            n -= part;
            w->reads++;
            w->ops->received(w->machine, part);
        }
    }
}

/* ---- from the machine ---- */

static size_t next_write(struct wire *w, size_t offered)
{
    if (w->mode == WIRE_BYTES)
        return 1;
    return w->mode == WIRE_RANDOM ? 1 + rng_below(&w->rng, offered) : offered;
}

void wire_pull(struct wire *w)
{
    struct iovec iov[16];
    unsigned count;

    while ((count = w->ops->send_data(w->machine, iov, 16))) {
        size_t offered = 0;
        for (unsigned i = 0; i < count; i++)
            offered += iov[i].iov_len;
        size_t n = next_write(w, offered), left = n;
        for (unsigned i = 0; i < count && left; i++) {
            size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;
            append(&w->from, iov[i].iov_base, part);
            left -= part;
        }
        w->ops->sent(w->machine, n);
    }
}

void wire_pump(struct wire *w)
{
    wire_pull(w);
    while (waiting(w)) {
        wire_push(w);
        wire_pull(w);
    }
}

static bool digest_good(const uint8_t *bytes, size_t n)
{
    uint8_t digest[4];

    crc32c_end(crc32c_add(CRC32C_INIT, bytes, n), digest);
    return memcmp(digest, bytes + n, sizeof digest) == 0;
}

bool wire_take(struct wire *w, struct wire_pdu *pdu)
{
    size_t left = w->from.length - w->taken;
    const uint8_t *at = w->from.bytes + w->taken;

    if (left < ISCSI_BHS_SIZE)
        return false;
    memcpy(pdu->bhs, at, ISCSI_BHS_SIZE);
    iscsi_bhs_unpack(at, &pdu->h);
    pdu->ahs_length = pdu->h.ahs_words * 4u;
    pdu->data_length = pdu->h.data_segment_length;
    size_t header = ISCSI_BHS_SIZE + pdu->ahs_length;
    size_t padding = iscsi_padding(pdu->data_length), segment = pdu->data_length + padding;
    size_t data = header + (w->header_digest ? 4 : 0);
    size_t total = data + segment + (w->data_digest && segment ? 4 : 0);
    if (left < total)
        return false;
    pdu->ahs = at + ISCSI_BHS_SIZE;
    pdu->data = at + data;
    pdu->digests_good = (!w->header_digest || digest_good(at, header)) &&
                        (!w->data_digest || !segment || digest_good(at + data, segment));
    for (size_t i = 0; i < padding; i++)
        pdu->digests_good &= !pdu->data[pdu->data_length + i];
    w->taken += total;
    return true;
}
