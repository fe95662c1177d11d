/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The far end of an in-memory connection to a protocol machine: sends any PDU, legal or not, and
 * takes apart what the machine sends. A third user of the codec, with all checks off; it plays a
 * target to the initiator and an initiator to the target.
 *
 *     wire_open(&w, &ops, machine, mode, seed);
 *     iscsi_nop_in_pack(bhs, &pdu);
 *     wire_put(&w, bhs, data, n);        queued for the machine; DataSegmentLength is n
 *     wire_pump(&w);                     all bytes move, both ways, cut as mode says
 *     wire_take(&w, &got);               the next PDU that the machine has sent
 *
 * Memory comes from malloc here; nothing of it is counted as the machine's.
 */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/rng.h"
#include "iscsi/pdu.h"

/* How bytes are cut on their way, in both directions. Every script runs in each mode. */
enum wire_mode {
    WIRE_WHOLE, /* to the machine: one PDU a read */
    WIRE_BYTES, /* one byte a read and a write */
    WIRE_BATCH, /* everything there is in one read */
    WIRE_RANDOM,
    WIRE_MODES
};

extern const char *const wire_mode_names[WIRE_MODES];

/* The byte functions of a machine's connection. */
struct wire_ops {
    unsigned (*recv_space)(void *machine, struct iovec *iov, unsigned max);
    void (*received)(void *machine, size_t n);
    unsigned (*send_data)(void *machine, struct iovec *iov, unsigned max);
    void (*sent)(void *machine, size_t n);
};

struct wire_bytes {
    uint8_t *bytes;
    size_t length, room;
};

struct wire {
    const struct wire_ops *ops;
    void *machine;
    enum wire_mode mode;
    struct rng rng;

    /* Digests on PDUs put and taken from now on. */
    bool header_digest, data_digest;
    /* Spoils the digest of the next PDU put, once. */
    bool flip_header, flip_data;

    bool refused;    /* the machine takes no more bytes; the rest was thrown away */
    size_t most_iov; /* the longest list that the machine has handed out */
    unsigned reads;  /* calls of received */

    struct wire_bytes to;   /* for the machine */
    struct wire_bytes ends; /* size_t each: where PDUs end in `to` */
    size_t given, ends_given;
    struct wire_bytes from;
    size_t taken;
};

/* A PDU as taken from the machine. data and ahs stay until bytes move again. */
struct wire_pdu {
    uint8_t bhs[ISCSI_BHS_SIZE];
    struct iscsi_bhs h;
    const uint8_t *ahs;
    size_t ahs_length;
    const uint8_t *data;
    uint32_t data_length;
    bool digests_good; /* and the padding zero */
};

void wire_open(struct wire *w, const struct wire_ops *ops, void *machine, enum wire_mode mode,
               uint64_t seed);
void wire_close(struct wire *w);

/* Queues a PDU: bhs with its DataSegmentLength set to n, the segment, padding and digests. */
void wire_put(struct wire *w, const uint8_t bhs[ISCSI_BHS_SIZE], const void *data, uint32_t n);

/* The same with additional header segments; TotalAHSLength is set too. */
void wire_put_ahs(struct wire *w, const uint8_t bhs[ISCSI_BHS_SIZE], const void *ahs,
                  size_t ahs_length, const void *data, uint32_t n);

/* The header as it stands, whatever it says, and n bytes behind it, without digests. */
void wire_put_raw(struct wire *w, const uint8_t bhs[ISCSI_BHS_SIZE], const void *bytes, size_t n);

/* Moves bytes both ways until neither side has any. */
void wire_pump(struct wire *w);

/* Only one way. */
void wire_push(struct wire *w);
void wire_pull(struct wire *w);

/* The next whole PDU from the machine. False: there is none (yet). */
bool wire_take(struct wire *w, struct wire_pdu *pdu);

#endif
