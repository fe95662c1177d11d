/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session of the initiator machine against scripted targets, on virtual time. A script is a
 * function of a rig; SCRIPT() runs it once in each wire mode.
 */
#ifndef TESTS_INI_RIG_H
#define TESTS_INI_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "iscsi/ini.h"
#include "wire.h"

enum { RIG_EVENTS = 256, RIG_CONNS = 4, SECOND_NS = 1000000000 };

/* The scripted target's end of one connection. */
struct peer {
    struct rig *rig;
    struct wire w;
    struct ini_conn *c;
    uint32_t stat_sn; /* the next one */
    uint16_t cid;
    bool wants;  /* WANT_SEND came and nothing was taken since */
    bool closed; /* CONN_CLOSE came */
};

struct rig {
    struct ini_opts opts;        /* changed before rig_open() */
    struct iscsi_params answers; /* what the target says in the login */
    bool declare_nothing;        /* it leaves MaxRecvDataSegmentLength out */
    uint16_t tsih;
    uint32_t exp_cmd_sn, max_cmd_sn; /* sent in every PDU */

    enum wire_mode mode;
    uint64_t seed, now;
    struct ini_session *s;
    struct peer peers[RIG_CONNS];
    unsigned peer_count;

    struct ini_event events[RIG_EVENTS];
    char sentences[RIG_EVENTS][256];
    unsigned event_count;
};

/* Names, ISID and wishes of a normal session. */
void rig_login_defaults(struct login_ini_opts *opts);
void rig_script(void (*script)(struct rig *));

#define SCRIPT(name)                                                                               \
    static void name##_script(struct rig *r);                                                      \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        rig_script(name##_script);                                                                 \
    }                                                                                              \
    static void name##_script(struct rig *r)

/* Session and first connection, nothing sent yet. */
void rig_open(struct rig *r);
/* The same, and logged in as r->answers say. */
void rig_login(struct rig *r);
struct peer *rig_connect(struct rig *r, uint16_t cid);
void peer_login(struct peer *p);

/* Numbers of the target's PDU: StatSN (taken if status), ExpCmdSN, MaxCmdSN. */
#define PEER_NUMBERS(p, status)                                                                    \
    .stat_sn = (status) ? (p)->stat_sn++ : (p)->stat_sn, .exp_cmd_sn = (p)->rig->exp_cmd_sn,       \
    .max_cmd_sn = (p)->rig->max_cmd_sn

void peer_pump(struct peer *p);
void peer_lose(struct peer *p); /* the transport breaks: ini_conn_closed() */
void rig_tick(struct rig *r, uint64_t now);
void rig_close_all(struct rig *r);

/* The next PDU from the initiator on this connection, which must be there and of this opcode. */
void peer_expect(struct peer *p, uint8_t opcode, struct wire_pdu *pdu);
/* Nothing must be there. */
void peer_expect_silence(struct peer *p);
struct iscsi_scsi_command peer_expect_command(struct peer *p, struct wire_pdu *pdu);
struct iscsi_data_out peer_expect_data(struct peer *p, struct wire_pdu *pdu);

/* PDUs of the target; each is queued, and moves with the next pump. */
void peer_good(struct peer *p, uint32_t itt);
void peer_respond(struct peer *p, struct iscsi_scsi_response pdu, const void *data, uint32_t n);
void peer_data_in(struct peer *p, struct iscsi_data_in pdu, const void *data, uint32_t n);
void peer_r2t(struct peer *p, struct iscsi_r2t pdu);
void peer_nop_in(struct peer *p, struct iscsi_nop_in pdu, const void *data, uint32_t n);
void peer_tmf(struct peer *p, uint32_t itt, uint8_t response);
void peer_async(struct peer *p, struct iscsi_async pdu, const void *data, uint32_t n);
void peer_reject(struct peer *p, uint8_t reason, const uint8_t *header, uint32_t n);
void peer_text(struct peer *p, struct iscsi_text_response pdu, const void *text, uint32_t n);
void peer_logout(struct peer *p, uint32_t itt, uint8_t response);

/* ---- events ---- */

unsigned rig_events(const struct rig *r, enum ini_event_type type);
const struct ini_event *rig_last(const struct rig *r, enum ini_event_type type);
/* The connection was told to close for this reason and its tasks end when it does. */
void rig_expect_failure(struct rig *r, enum ini_close_why why);

/* ---- tasks with guarded buffers ---- */

enum { IO_GUARD = 64, IO_PIECES = 8 };

struct io {
    struct ini_task task;
    struct iovec iov[IO_PIECES];
    uint8_t *memory; /* guard, payload, guard */
    uint8_t *data;
    unsigned done;
};

/* A task with a payload in pieces; a write's is a pattern, a read's is 0xee. Not submitted. */
void io_init(struct io *io, enum ini_direction direction, uint32_t length);
void io_start(struct rig *r, struct io *io);
/* The guards stand and the task was done as often as said; frees the memory. */
void io_end(struct io *io, unsigned done);
uint8_t io_pattern(uint32_t at);
void io_fill(uint8_t *bytes, uint32_t offset, uint32_t n);
bool io_has_pattern(const struct io *io, uint32_t offset, uint32_t n);

#endif
