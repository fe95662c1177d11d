/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target machine on a bench: a scripted initiator at each connection (wire.h), virtual time,
 * seeded randomness, and an owner that is either a small logical unit or a hand of the test.
 */
#ifndef TESTS_TGT_RIG_H
#define TESTS_TGT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "iscsi/tgt.h"
#include "wire.h"

enum {
    RIG_CONNS = 4,
    RIG_TASKS = 64,
    RIG_BLOCK = 512,
    RIG_RAM = 1 << 20, /* bytes of the logical unit */
};

#define RIG_INITIATOR "iqn.2026-01.test:initiator"
#define RIG_TARGET "iqn.2026-01.test:disk"
#define RIG_KEYS "InitiatorName=" RIG_INITIATOR "\0TargetName=" RIG_TARGET "\0SessionType=Normal\0"

#define KEYS(text) (text), sizeof(text) - 1

struct trig;

struct trig_conn {
    struct trig *rig;
    struct tgt_conn *conn;
    struct wire wire;
    bool close_asked, closed;
    enum tgt_close why;
    char sentence[256];
    unsigned want_recv;
    uint32_t exp_stat_sn; /* what trig_take() has seen, told in requests */
    bool acknowledge;     /* false: exp_stat_sn stands still */
    uint16_t cid;
};

struct trig {
    struct tgt *tgt;
    struct tgt_opts opts;
    enum wire_mode mode;
    uint64_t seed, now;
    struct rng rng;
    struct trig_conn conns[RIG_CONNS];
    uint32_t cmd_sn; /* the next non-immediate one */
    uint16_t tsih;   /* of the last login */
    uint8_t isid[6];
    uint16_t login_status; /* of the last login */
    const char *initiator; /* for SendTargets: all targets are shown to it, or NULL: to all */
    unsigned target_count;

    /* the owner */
    bool manual;     /* commands only queue in tasks[]; else the logical unit answers */
    bool no_receive; /* manual: do not give memory for data-out from inside command() */
    bool no_hold;    /* ops.hold() fails */
    bool hang;       /* aborted tasks are not ended */
    bool manual_tmf; /* tmf[] is for the test to answer; else they succeed */
    struct tgt_task *tasks[RIG_TASKS]; /* with the owner, NULL: free */
    struct tgt_tmf *tmfs[RIG_TASKS];
    unsigned commands, datas, aborts, released, tmf_count;
    unsigned opened, session_closed, cleared;
    enum tgt_session_end end;
    struct tgt_session *session; /* the last that was opened and not closed */
    unsigned holds, hold_calls;
    uint32_t received; /* bytes that the last tgt_task_receive promised */
    uint8_t ram[RIG_RAM];
    char log[256]; /* order of commands: their first CDB bytes 9, see trig_tag() */
};

struct trig_case {
    void (*body)(struct trig *r);
    void (*options)(struct trig *r); /* before the target is made; NULL */
};

/* A cmocka test that runs body once in each wire mode. */
void trig_run(void **state);
#define RIG(f)                                                                                     \
    {                                                                                              \
#f, trig_run, NULL, NULL, &(struct trig_case)                                              \
        {                                                                                          \
            (f), NULL                                                                              \
        }                                                                                          \
    }
#define RIG_WITH(f, o)                                                                             \
    {                                                                                              \
#f, trig_run, NULL, NULL, &(struct trig_case)                                              \
        {                                                                                          \
            (f), (o)                                                                               \
        }                                                                                          \
    }

void trig_open(struct trig *r, enum wire_mode mode, uint64_t seed);
void trig_close(struct trig *r); /* checks that nothing is left over */

/* A connection that has said nothing yet. False: refused. */
bool trig_connect(struct trig *r, unsigned i);
/* Logs it in with these keys beside the names; returns the login status. tsih 0: a new session. */
uint16_t trig_login(struct trig *r, unsigned i, const char *keys, size_t keys_length,
                    uint16_t tsih);
/* A normal session on connection 0; asserts success. The keys end with their NUL: "A=b\0". */
#define trig_start(r, keys) trig_start_keys(r, keys, sizeof(keys) - 1)
void trig_start_keys(struct trig *r, const char *keys, size_t keys_length);
/* A second connection of the session. */
void trig_join(struct trig *r, unsigned i);

/* Bytes move everywhere; transports that are to be closed are. */
void trig_pump(struct trig *r);
void trig_tick(struct trig *r, uint64_t ns);
/* The transport fails. */
void trig_cut(struct trig *r, unsigned i);

/* The next PDU from connection i, with its StatSN noted. False: none. */
bool trig_take(struct trig *r, unsigned i, struct wire_pdu *pdu);
/* It must be there and of this kind. */
void trig_expect(struct trig *r, unsigned i, uint8_t opcode, struct wire_pdu *pdu);
void trig_expect_nothing(struct trig *r, unsigned i);
void trig_expect_reject(struct trig *r, unsigned i, uint8_t reason);
/* A SCSI Response with this status, or the status of a Data-In behind any number of these. */
void trig_expect_status(struct trig *r, unsigned i, uint32_t itt, uint8_t status);
void trig_expect_sense(struct trig *r, unsigned i, uint32_t itt, uint8_t key, uint8_t asc,
                       uint8_t ascq);

/* Requests, filled as a good initiator would; change fields, then put them. */
struct iscsi_scsi_command trig_read(struct trig *r, uint32_t itt, uint32_t lba, uint16_t blocks);
struct iscsi_scsi_command trig_write(struct trig *r, uint32_t itt, uint32_t lba, uint16_t blocks);
struct iscsi_scsi_command trig_ready(struct trig *r, uint32_t itt); /* TEST UNIT READY */
struct iscsi_tmf_request trig_tmf(struct trig *r, uint32_t itt, uint8_t function);
void trig_put_command(struct trig *r, unsigned i, const struct iscsi_scsi_command *pdu,
                      const void *data, uint32_t n);
void trig_put_tmf(struct trig *r, unsigned i, const struct iscsi_tmf_request *pdu);
void trig_put_nop(struct trig *r, unsigned i, uint32_t itt, bool immediate, const void *data,
                  uint32_t n);
void trig_acknowledge(struct trig *r, unsigned i); /* a NOP-Out that wants no answer */
void trig_put_logout(struct trig *r, unsigned i, uint32_t itt, uint8_t reason, uint16_t cid);
void trig_put_text(struct trig *r, unsigned i, uint32_t itt, uint32_t ttt, const char *text,
                   uint32_t n);
/* Data-Out of a burst: pieces of at most 8192 bytes with F on the last. */
void trig_put_data(struct trig *r, unsigned i, uint32_t itt, uint32_t ttt, uint32_t offset,
                   const uint8_t *data, uint32_t n);
void trig_put_data_pdu(struct trig *r, unsigned i, const struct iscsi_data_out *pdu,
                       const uint8_t *data, uint32_t n);

/* Bytes that tell where they belong. */
void trig_pattern(uint8_t *bytes, size_t n, uint32_t from);

void trig_respond(struct tgt_task *task, uint8_t status);
struct tgt_task *trig_task(struct trig *r, uint32_t itt); /* with the owner, or NULL */
void trig_end(struct trig *r, struct tgt_task *task);

#endif
