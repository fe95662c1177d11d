/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the initiator machine: what ini_*.c share. */
#ifndef ISCSI_INI_INT_H
#define ISCSI_INI_INT_H

#include "iscsi/ini.h"

#include "iscsi/frame.h"
#include "iscsi/pdu.h"
#include "iscsi/window.h"

enum ini_kind { INI_KIND_TASK, INI_KIND_TMF, INI_KIND_PING, INI_KIND_TEXT, INI_KIND_LOGOUT };

/*
 *              submit             its PDU went out        answered, lost, aborted
 *   IDLE ------------> WAITING -----------------> SENT ----------------------------> ENDING
 *                         |                        | ^ RESEND (a Reject that allows it)  |
 *                         | refused, aborted       +-+                                   | no
 *                         v                                                              | buffer
 *                     FINISHED <---------------------------------------------------------+ in use
 *                         | done()
 *                         v
 *                       IDLE
 */
enum ini_op_state {
    INI_IDLE,
    INI_WAITING,
    INI_SENT,
    INI_RESEND,
    INI_ENDING,
    INI_FINISHED,
};

struct ini_list {
    struct ini_op *first, *last;
};

void ini_list_append(struct ini_list *l, struct ini_op *op);
void ini_list_prepend(struct ini_list *l, struct ini_op *op);
void ini_list_remove(struct ini_op *op); /* from whichever list it is in; none: nothing */

#define ini_container(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))
#define ini_task_of(o) ini_container(o, struct ini_task, op)
#define ini_tmf_of(o) ini_container(o, struct ini_tmf, op)
#define ini_ping_of(o) ini_container(o, struct ini_ping, op)
#define ini_text_of(o) ini_container(o, struct ini_text, op)
#define ini_logout_of(o) ini_container(o, struct ini_logout, op)

/* ITT = generation << bits | index of the slot, so that looking up costs the same at any depth and
 * a tag comes back only after all its generations (I-NUM-08). */
struct ini_slot {
    struct ini_op *op;
    uint32_t generation;
    uint32_t dropped; /* ITT of an operation that ended unanswered: a late answer is discarded */
};

enum {
    INI_SPARE_SLOTS = 32, /* beside opts.depth, for management */
    INI_REPLIES_MAX = 256,
    INI_SNACKS_MAX = 64,
    INI_RETRIES_MAX = 8,
    INI_TX_SLOTS = 64,
    INI_STAGING_BYTES = 65536,
    INI_HOLD_BYTES = 65536, /* at least */
};

enum ini_session_state {
    INI_SESSION_NEW,
    INI_SESSION_OPEN,
    INI_SESSION_LEAVING, /* logout of the session asked for or sent: nothing new */
    INI_SESSION_OVER,    /* failed or logged out; ends when the last transport is closed */
    INI_SESSION_DEAD,
};

struct ini_session {
    struct ini_opts opts;
    char *strings; /* what opts.login points to, secrets among it */
    size_t strings_size;
    enum ini_session_state state;
    struct iscsi_params params;
    uint16_t tsih;
    int portal_group_tag;
    char target_alias[ISCSI_VALUE_MAX + 1];
    bool authenticated;

    uint32_t cmd_sn;
    struct iscsi_window window;

    struct ini_slot *slots;
    unsigned slot_bits;
    uint32_t *free_slots; /* a ring, oldest first */
    uint32_t free_head, free_count;
    unsigned in_flight; /* tasks with a slot */
    unsigned tasks;     /* submitted, not done */
    unsigned resets;    /* LU and target resets under way: no new command may overtake them */
    unsigned set_aborts;

    struct ini_conn *conns[INI_CONNS_MAX];
    unsigned conn_count, turn;
    struct ini_list waiting; /* tasks without a connection yet */
    struct ini_list finished;
    uint64_t next_deadline; /* not later than the earliest of all operations' */
    uint64_t now;
    bool logged_out;
    struct ini_event end; /* what SESSION_DROPPED will say */
    char sentence[256];
    struct ini_counters counters;
};

enum ini_conn_state {
    INI_CONN_NEW,
    INI_CONN_LOGIN,
    INI_CONN_FULL,     /* full feature phase */
    INI_CONN_DRAINING, /* to be logged out: no new commands, what runs may end */
    INI_CONN_LEAVING,  /* Logout Request sent or about to be: nothing else any more */
    INI_CONN_CLOSING,  /* the owner was told to close the transport */
    INI_CONN_CLOSED,
};

/* A NOP-In that wants an answer, or an Async that wants its acknowledgment. */
struct ini_reply {
    uint64_t lun;
    uint32_t ttt;
};

struct ini_conn {
    struct ini_session *session;
    void *user;
    uint16_t cid;
    bool leading;
    enum ini_conn_state state;
    struct iscsi_rx rx;
    struct iscsi_tx tx;
    struct iscsi_tx_slot *tx_slots;
    uint8_t *staging;
    struct login_ini *login; /* until the login has ended */
    struct login_ini_opts login_opts;
    struct iovec login_text;
    struct iscsi_params params;

    uint32_t exp_stat_sn;
    uint32_t told_stat_sn; /* the ExpStatSN sent last */
    uint8_t segmentation;  /* counts the changes of params.mrdsl_in */
    uint64_t stat_ahead;   /* level 1: which beyond it have come */
    uint32_t next_stat_sn; /* level 1: the first neither come nor asked for */
    bool acknowledge;      /* a NOP-Out must tell it */
    bool want_told;

    struct ini_list urgent; /* immediate requests */
    struct ini_list resend;
    struct ini_list queue;                      /* tasks and text requests, in order */
    struct ini_burst *burst_first, *burst_last; /* solicited Data-Out, in order of the R2Ts */
    struct ini_burst *unsolicited;
    struct iscsi_snack snacks[INI_SNACKS_MAX];
    unsigned snack_head, snack_count;
    struct ini_reply replies[INI_REPLIES_MAX];
    unsigned reply_head, reply_count;
    unsigned in_flight; /* tasks allegiant and sent */

    struct ini_op *rx_op;  /* its buffer is being received into */
    struct ini_list texts; /* text exchanges that wait for their turn */
    struct ini_text *text;
    struct ini_text own_text;     /* answer to async 4 */
    struct ini_logout own_logout; /* answer to async 1 */
    struct ini_ping plug;         /* fills a gap in CmdSN (7.3) */
    uint64_t deadline;            /* of the login, of draining */
    uint8_t *hold;                /* data segments other than Data-In */
    uint32_t hold_size;
    char declaration[48]; /* MaxRecvDataSegmentLength=... on its way */
    char pair[1024];      /* text received so far of a pair */
    size_t pair_length;
    bool waits; /* the target named times */
    uint16_t time2wait, time2retain;
};

/* ---- ini_session.c ---- */

void ini_tell(struct ini_session *s, struct ini_event *event);
void ini_wake(struct ini_conn *c);                /* output may be due */
void ini_wake_all(struct ini_session *s);         /* those with commands that may go now */
bool ini_queue_ready(struct ini_conn *c);         /* its first queued command may be sent now */
void ini_flush(struct ini_session *s);            /* calls done of what has finished */
struct ini_conn *ini_pick(struct ini_session *s); /* a connection for new commands, or NULL */
void ini_conn_open(struct ini_conn *c);           /* login ended well */

/* Ends the connection, and the session with it unless it can live on. The sentence is copied. */
void ini_fail(struct ini_conn *c, enum ini_close_why why, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Tells the owner to close this transport; the session is not concerned. */
void ini_close(struct ini_conn *c, enum ini_close_why why, const char *sentence);
/* The whole session ends: every connection is to be closed. */
void ini_session_over(struct ini_session *s, struct ini_conn *cause, enum ini_close_why why,
                      const char *sentence);
void ini_requeue(struct ini_conn *c); /* its unsent tasks may go elsewhere */

/* Takes a status-bearing PDU's numbers. False: it is a duplicate or the connection has failed. */
bool ini_take_status(struct ini_conn *c, uint32_t stat_sn);
void ini_take_window(struct ini_session *s, uint32_t exp_cmd_sn, uint32_t max_cmd_sn);

/* ---- ini_login.c ---- */

void ini_login_late(struct ini_conn *c); /* its deadline is over */
void ini_login_broken(struct ini_conn *c, const char *sentence);
void ini_login_closed(struct ini_conn *c); /* the transport went first */
void ini_login_forget(struct ini_conn *c); /* its state is no longer needed */
void ini_on_login(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
bool ini_login_out(struct ini_conn *c, struct iscsi_tx_pdu *out);

/* ---- ini_op.c ---- */

void ini_op_begin(struct ini_op *op, struct ini_session *s, enum ini_kind kind, uint64_t deadline);
bool ini_op_tag(struct ini_op *op); /* gives it an ITT; false: none is free */
struct ini_op *ini_op_find(struct ini_session *s, uint32_t itt); /* live, else NULL */
bool ini_op_dropped(const struct ini_session *s, uint32_t itt);
/* A live operation of this connection and kind. NULL: a late answer, or c has failed. */
struct ini_op *ini_op_answered(struct ini_conn *c, uint32_t itt, enum ini_kind kind,
                               const char *pdu);
void ini_op_end(struct ini_op *op, enum ini_result result);  /* out of every list; then done */
void ini_op_drop(struct ini_op *op, enum ini_result result); /* likewise, but an answer may come */
void ini_op_released(struct ini_op *op); /* a buffer of it is free: finish if it was ending */
void ini_op_lose_all(struct ini_session *s, struct ini_conn *c); /* c NULL: those without one */

/* ---- output ---- */

/* Fills *out with the next PDU of the full feature phase. False: nothing can be sent now. */
bool ini_next_out(struct ini_conn *c, struct iscsi_tx_pdu *out);

void ini_task_command(struct ini_conn *c, struct ini_task *task, struct iscsi_tx_pdu *out);
/* The status of a task has arrived with its residual fields: judge and end it. */
void ini_task_status(struct ini_task *task, uint8_t status, bool overflow, bool underflow,
                     uint32_t residual);
bool ini_data_out(struct ini_conn *c, struct iscsi_tx_pdu *out, bool solicited);
void ini_text_request(struct ini_conn *c, struct ini_text *text, struct iscsi_tx_pdu *out);
void ini_tmf_request(struct ini_conn *c, struct ini_tmf *tmf, struct iscsi_tx_pdu *out);
void ini_logout_request(struct ini_conn *c, struct ini_logout *logout, struct iscsi_tx_pdu *out);
void ini_ping_request(struct ini_conn *c, struct ini_ping *ping, struct iscsi_tx_pdu *out);

/* ---- input: a whole PDU with good digests; data is its segment, n bytes, or NULL ---- */

void ini_on_scsi_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
void ini_on_data_in(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
void ini_on_r2t(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
void ini_on_tmf_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
void ini_on_text_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
void ini_on_logout_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data,
                            uint32_t n);
void ini_on_nop_in(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
void ini_on_async(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);
void ini_on_reject(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);

/* Where a Data-In's segment belongs. NULL: nowhere, discard it (or c has failed). */
struct ini_task *ini_place_data_in(struct ini_conn *c, const uint8_t *bhs, uint32_t *offset);

/* The piece of the task's iov that holds this offset. Cheap when going on where one stopped. */
struct ini_seek {
    const struct iovec *iov;
    unsigned count;
    uint32_t offset; /* in iov */
};
struct ini_seek ini_seek(struct ini_task *task, uint32_t offset);

/* Makes these n > 0 bytes of the task the data segment of a PDU. */
void ini_payload(struct ini_task *task, uint32_t offset, uint32_t n, struct iscsi_tx_pdu *out);

/* Adds begin..begin+length. False: too many pieces to remember. */
bool ini_extents_add(struct ini_extents *e, uint32_t begin, uint32_t length);
bool ini_extents_has(const struct ini_extents *e, uint32_t at);
bool ini_extents_cover(const struct ini_extents *e, uint32_t length); /* 0..length, all of it */

/* ---- ini_snack.c: recovery at level 1 ---- */

bool ini_recovers(const struct ini_conn *c);
bool ini_snack_out(struct ini_conn *c, struct iscsi_tx_pdu *out);
bool ini_status_ahead(struct ini_conn *c, uint32_t stat_sn); /* as ini_take_status */
void ini_status_advance(struct ini_conn *c);
/* A Data-In or R2T with this number counts; asks for those before it. False: c has failed. */
bool ini_number_seen(struct ini_conn *c, struct ini_task *task, uint32_t sn);
void ini_acknowledge_asked(struct ini_conn *c, struct ini_task *task, uint32_t ttt);
/* True: the status waits for data that are missing. False: it counts now. */
bool ini_hold_status(struct ini_conn *c, struct ini_task *task, const struct ini_held *held);
void ini_data_settled(struct ini_conn *c, struct ini_task *task);  /* after each Data-In */
bool ini_digest_recovered(struct ini_conn *c, const uint8_t *bhs); /* false: it cannot be */
void ini_snack_rejected(struct ini_conn *c, const uint8_t *header);

/* ---- others ---- */

void ini_tmf_over(struct ini_tmf *tmf); /* it has ended in any way: commands may flow again */
/* A task set function is answered only when all responses before are confirmed (11.6.1). */
void ini_confirm_all(struct ini_session *s);
void ini_burst_drop(struct ini_task *task); /* all bursts of it */
void ini_start_text(struct ini_conn *c);
void ini_text_again(struct ini_text *text);
void ini_set_mrdsl(struct ini_conn *c, uint32_t mrdsl); /* what we take from now on */
void ini_drain(struct ini_conn *c, uint64_t until); /* log out once it is idle or at that time */
void ini_check_drained(struct ini_conn *c);
void ini_plug(struct ini_conn *c, uint32_t cmd_sn);

#endif
