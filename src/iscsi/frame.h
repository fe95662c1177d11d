/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Framing: bytes to PDUs and PDUs to bytes, for both roles; headers, AHS, padding, digests
 * (RFC 7143 11.1, 11.2). No I/O and no allocation.
 *
 * Receiving. Bytes land in a staging buffer, so that one read brings many small PDUs, or directly
 * where a data segment belongs, so that a payload is copied once. Which of both is offered
 * adapts: behind a long segment only the next header is read, so that the next segment goes to
 * its place too.
 *
 *     n = iscsi_rx_space(rx, iov, max); got = readv(...); iscsi_rx_received(rx, got);
 *
 * Sending. PDUs stand in a ring of slots and are asked for (produced) when bytes are wanted, so
 * that one write carries many of them and a long burst takes no memory of its own.
 *
 *     n = iscsi_tx_data(tx, iov, max); put = writev(...); iscsi_tx_sent(tx, put);
 *
 * Buffers belong to whoever gave them; they stay until the struct is no longer used.
 */
#ifndef ISCSI_FRAME_H
#define ISCSI_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/iov.h"
#include "iscsi/pdu.h"

/* ---- receiving ---- */

/* Where a data segment belongs; filled by the header callback, zeroed before. With neither iov nor
 * discard it goes to the hold buffer. */
struct iscsi_place {
    const struct iovec
        *iov; /* stays, with its memory, until the pdu callback or the stream's end */
    unsigned count;
    uint64_t offset; /* where in iov the segment begins; it must fit */
    bool discard;    /* nobody wants it: pdu is called all the same */
};

struct iscsi_rx_pdu {
    const uint8_t *bhs; /* all pointers: until the callback returns */
    const uint8_t *ahs;
    uint32_t ahs_length;
    const uint8_t *data; /* in the hold buffer; NULL when placed, discarded or empty */
    uint32_t data_length;
    bool data_digest_ok; /* true where there is none. When false placed bytes are wrong */
};

enum iscsi_rx_verdict { ISCSI_RX_GO = 0, ISCSI_RX_STOP = -1, ISCSI_RX_PAUSE = 1 };

struct iscsi_rx_ops {
    /* A header (with AHS) is whole and its digest right. Says where the data segment belongs, if
     * bhs tells of one. GO; STOP ends the stream; PAUSE leaves the PDU where it is: the same
     * header comes again after iscsi_rx_resume(). */
    enum iscsi_rx_verdict (*header)(void *user, const uint8_t *bhs, const uint8_t *ahs,
                                    uint32_t ahs_length, struct iscsi_place *place);
    /* The PDU is whole. GO or STOP. */
    enum iscsi_rx_verdict (*pdu)(void *user, const struct iscsi_rx_pdu *pdu);
};

enum iscsi_rx_error {
    ISCSI_RX_OK,
    ISCSI_RX_HEADER_DIGEST, /* the header digest was wrong: no byte after it can be trusted */
    ISCSI_RX_TOO_LONG,      /* a data segment above the limit */
    ISCSI_RX_NO_PLACE,      /* above the hold buffer's size, or not inside the place given */
    ISCSI_RX_STOPPED,       /* a callback said so */
};

enum {
    ISCSI_RX_STAGING_MIN = 2048,
    ISCSI_RX_LONG = 16384, /* a data segment from here on is received directly */
};

/* All private but error. */
struct iscsi_rx {
    const struct iscsi_rx_ops *ops;
    void *user;
    enum iscsi_rx_error error;
    uint32_t limit;
    bool header_digest, data_digest;
    bool long_segments; /* the last data segment was long */
    bool paused;
    bool busy; /* inside iscsi_rx_received() or _resume() */

    uint8_t *staging;
    size_t staging_size, head, tail; /* bytes head to tail are received and not yet looked at */
    uint8_t *hold;
    size_t hold_size;
    struct iovec hold_iov;

    enum { RX_HEADER, RX_DATA, RX_TRAILER } state;
    uint8_t header[ISCSI_BHS_SIZE + ISCSI_AHS_MAX];
    uint32_t ahs_length, data_length, data_left;
    struct iscsi_place place;
    struct iov_place at;
    uint32_t crc;
    uint8_t trailer[3 + ISCSI_DIGEST_SIZE];
    uint32_t trailer_length, trailer_have;
    size_t offered; /* bytes of the last iscsi_rx_space() that go directly to their place */
};

/* staging_size >= ISCSI_RX_STAGING_MIN; hold for login, text, sense and ping data. limit: the
 * MaxRecvDataSegmentLength we declared; 8192 until the login's end. Digests are off. */
void iscsi_rx_init(struct iscsi_rx *rx, const struct iscsi_rx_ops *ops, void *user, void *staging,
                   size_t staging_size, void *hold, size_t hold_size, uint32_t limit);

/* From the next PDU on: not while one is paused. May be called in the pdu callback. */
void iscsi_rx_set_digests(struct iscsi_rx *rx, bool header, bool data);
void iscsi_rx_set_limit(struct iscsi_rx *rx, uint32_t limit);

/* Where to read to: at most max segments, max >= 1. 0: nothing more is wanted now (an error, or
 * paused). */
unsigned iscsi_rx_space(struct iscsi_rx *rx, struct iovec *iov, unsigned max);

/* n bytes were read there since iscsi_rx_space(). Calls back. 0, or -1: see rx->error; nothing of
 * the stream is looked at any more. */
int iscsi_rx_received(struct iscsi_rx *rx, size_t n);

/* Goes on after PAUSE with what is in the staging buffer. Likewise. Inside a callback it only
 * takes note. */
int iscsi_rx_resume(struct iscsi_rx *rx);

/* The PDU that is being received wants none of its remaining data placed: its task is gone. The
 * rest is discarded and pdu is called as usual. Only between iscsi_rx_received() and
 * iscsi_rx_space(): memory handed out must not be in use by a read. */
void iscsi_rx_discard(struct iscsi_rx *rx);

/* ---- sending ---- */

enum {
    ISCSI_TX_AHS_MAX = ISCSI_AHS_PACKED_MAX,
    ISCSI_TX_COPY_MAX = 512,
};

/* Filled by the produce callback; zeroed before, but for bhs and ahs. */
struct iscsi_tx_pdu {
    uint8_t *bhs;        /* write 48 bytes here, with the lengths of AHS and data segment in them */
    uint8_t *ahs;        /* room for ISCSI_TX_AHS_MAX */
    uint32_t ahs_length; /* a multiple of 4 */
    const struct iovec *iov; /* the data segment: length bytes from offset on, all there */
    unsigned count;
    uint64_t offset;
    uint32_t length;
    bool copy;   /* take a copy (length <= ISCSI_TX_COPY_MAX); else iov stays until sent() */
    void *owner; /* not NULL: sent() is called with it */
};

struct iscsi_tx_ops {
    /* The next PDU. false: there is none now. */
    bool (*produce)(void *user, struct iscsi_tx_pdu *pdu);
    /* The last byte of a PDU with an owner was taken by the transport. */
    void (*sent)(void *user, void *owner);
};

struct iscsi_tx_slot {
    uint8_t header[ISCSI_BHS_SIZE + ISCSI_TX_AHS_MAX + ISCSI_DIGEST_SIZE];
    uint8_t trailer[3 + ISCSI_DIGEST_SIZE];
    uint8_t copy[ISCSI_TX_COPY_MAX];
    uint32_t header_length, length, trailer_length;
    struct iovec copied;
    struct iov_place at;
    void *owner;
};

/* All private. */
struct iscsi_tx {
    const struct iscsi_tx_ops *ops;
    void *user;
    bool header_digest, data_digest;
    struct iscsi_tx_slot *slots;
    unsigned slot_count, head, count;
    uint64_t done; /* bytes of the head slot that are sent */
};

/* slots: slot_count of them, from 1. Digests are off. */
void iscsi_tx_init(struct iscsi_tx *tx, const struct iscsi_tx_ops *ops, void *user,
                   struct iscsi_tx_slot *slots, unsigned slot_count);

/* From the next PDU that is produced on; called in produce(), that is the one being produced. */
void iscsi_tx_set_digests(struct iscsi_tx *tx, bool header, bool data);

/* What to write next: at most max segments over as many PDUs as they hold, producing while there
 * is room. The same bytes come again until iscsi_tx_sent(). 0: nothing to send. */
unsigned iscsi_tx_data(struct iscsi_tx *tx, struct iovec *iov, unsigned max);

/* The first n of these bytes were written. Calls sent(), which must not ask for data. */
void iscsi_tx_sent(struct iscsi_tx *tx, size_t n);

/* PDUs staged and not wholly sent. */
static inline unsigned iscsi_tx_staged(const struct iscsi_tx *tx)
{
    return tx->count;
}

/* The transport is gone: calls sent() for each staged PDU with an owner, and forgets all. */
void iscsi_tx_drop(struct iscsi_tx *tx);

#endif
