/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the target machine: what tgt*.c share. */
#ifndef ISCSI_TGT_INT_H
#define ISCSI_TGT_INT_H

#include "iscsi/tgt.h"

#include "iscsi/frame.h"
#include "iscsi/pdu.h"

/* ---- slots: a request of the initiator from its header to its last byte sent ---- */

enum tgt_kind { TGT_FREE, TGT_COMMAND, TGT_TMF, TGT_NOP, TGT_TEXT, TGT_LOGOUT };

/* Errors that the machine answers itself (11.4.7.2), in place of the owner. */
enum tgt_fail {
    TGT_FAIL_NONE,
    TGT_FAIL_UNEXPECTED, /* unsolicited data that were not allowed */
    TGT_FAIL_AMOUNT,     /* too much or too little data */
    TGT_FAIL_CRC,        /* a data PDU is lost or damaged */
    TGT_FAIL_BUSY,       /* no memory to hold its data */
    TGT_FAIL_BIDI,       /* bidirectional commands are not served */
};

/* A sequence of Data-Out that is due: unsolicited, or asked for by an R2T. */
struct tgt_burst {
    uint32_t ttt;
    uint32_t offset, length;
    uint32_t received; /* bytes of it that have come, placed or not */
    uint32_t data_sn;  /* the next */
    bool open;         /* its F has not come */
};

struct tgt_list {
    struct tgt_slot *first, *last;
};

/*
 * A command goes through these, each a flag that is set and stays:
 *
 *     arrived    its PDU is complete, immediate data included
 *     turn       all commands before it have had their turn (CmdSN order)
 *     delivered  ops.command was called: the owner has it
 *     answered   tgt_task_respond or tgt_task_end was called
 *     packed     its response is made; the ITT is free and its place in the window too
 *
 * It is free again when neither the owner (delivered, not answered) nor a transport (tx_pieces,
 * receiving) has it. Invariant: in a list only if not retired.
 */
struct tgt_slot {
    union {
        struct tgt_task task;
        struct tgt_tmf tmf;
    } pub; /* first */
    struct tgt_session *session;
    struct tgt_conn *conn; /* NULL once its transport is closed */
    struct tgt_slot *hash_next;
    struct tgt_list *list; /* that it is in, or NULL */
    struct tgt_slot *next, *prev;
    uint32_t itt, cmd_sn;
    uint16_t index;
    uint8_t kind; /* enum tgt_kind */
    uint8_t fail; /* enum tgt_fail */
    bool immediate, arrived, turn, delivered, answered, packed;
    bool windowed; /* counted in session->in_window */
    bool hashed;
    bool in_ring;       /* waits for its turn */
    bool ended;         /* answered by tgt_task_end */
    bool aborted;       /* ops.abort was called */
    bool lost;          /* its connection or session failed: nothing is sent any more */
    bool retired;       /* out of everything but the transport's and owner's hands */
    bool receiving;     /* the transport may write into its memory */
    bool orphan;        /* counted in session->orphans */
    uint16_t tx_pieces; /* PDUs with its payload on their way out */

    /* data-out */
    const struct iovec *iov;
    unsigned iov_count;
    uint32_t first_burst; /* most that may come unasked: min(FirstBurstLength, EDTL) */
    bool wants;           /* tgt_task_receive was called */
    bool told;            /* ops.data was called */
    bool stop_r2t;
    uint32_t wanted; /* bytes that the owner was promised */
    uint32_t immediate_bytes;
    uint32_t solicited; /* bytes that came for R2Ts */
    uint32_t asked;     /* where the next R2T begins */
    uint32_t r2t_sn;
    unsigned bursts_open;
    struct tgt_burst unsolicited;
    struct tgt_burst bursts[TGT_R2T_MAX];
    uint8_t *hold;                            /* data before their time: offset 0 on */
    uint32_t hold_size, hold_from, hold_used; /* bytes from..used of it are data */
    uint32_t placing; /* where the segment that is being received into `hold` ends there */

    /* answer */
    struct tgt_answer answer; /* sense points to `sense` */
    uint32_t in_length;       /* Data-In bytes to send */
    uint32_t in_sent;
    uint32_t in_burst; /* since the last F */
    uint32_t data_sn;
    struct iov_place in_at; /* where in_sent lies in answer.iov */
    bool overflow, underflow;
    uint32_t residual;

    /* TMF, text, logout */
    uint8_t function, reason, response;
    bool fenced; /* a response that needs the fence */
    uint32_t additional, ref_cmd_sn, rtt, exp_data_sn;
    uint64_t lun;
    uint32_t ttt;
    uint16_t cid;
    bool final, more;
    struct tgt_slot *zombie; /* a task that an ABORT TASK ended with data still due */
    uint32_t zombie_until;   /* of the zombie: gone when this StatSN is acknowledged */
    bool is_zombie, zombie_timed;

    struct iovec flat; /* `sense` or `hold`, when sent */

    uint8_t cdb[TGT_CDB_MAX];
    uint8_t sense[2 + TGT_SENSE_MAX + 2];
};

/* ---- sessions ---- */

enum tgt_session_state {
    TGT_SESSION_OPEN,
    TGT_SESSION_FAILED, /* no connection left; Time2Wait + Time2Retain run (Q3) */
    TGT_SESSION_ENDING, /* closes when transports and owner have let go */
};

enum tgt_fence { TGT_FENCE_NONE, TGT_FENCE_BEFORE, TGT_FENCE_AFTER };

struct tgt_session {
    struct tgt *tgt;
    struct tgt_session *next, *prev;
    enum tgt_session_state state;
    enum tgt_session_end why;
    struct tgt_session *next_dirty;
    bool dirty;
    bool cold_reset;                 /* TARGET COLD RESET was carried out */
    bool opened;                     /* the owner knows it */
    struct tgt_session *predecessor; /* that it reinstates and that has not closed yet */
    char initiator_name[ISCSI_NAME_MAX + 1];
    char target_name[ISCSI_NAME_MAX + 1]; /* "": unnamed discovery */
    char chap_name[CHAP_USER_MAX + 1];
    char address[TGT_ADDRESS_MAX]; /* of the portal: tells unnamed discovery sessions apart */
    uint8_t isid[6];
    uint16_t tsih, group_tag;
    bool discovery;
    struct iscsi_params params;
    void *user;
    struct tgt_conn *conns; /* linked by next_in_session */
    unsigned conn_count;    /* not closed */
    uint64_t deadline;      /* of FAILED */

    uint32_t exp_cmd_sn, max_cmd_sn;
    uint32_t told_max_cmd_sn; /* in the last PDU sent */
    unsigned in_window;       /* commands before exp_cmd_sn that are not packed */
    struct tgt_slot **ring;   /* by CmdSN: those that wait for their turn */
    struct tgt_slot *plug;    /* stands in the ring for a command that is over already */
    uint32_t ring_mask;
    struct tgt_list immediates; /* arrived while the session was gated */
    struct tgt_slot *early; /* delivered while its PDU is still coming in; CmdSN is exp_cmd_sn */
    unsigned orphans;       /* lost tasks that the owner still has: nothing new until they end */

    uint8_t *slots;
    size_t slot_stride;
    unsigned slot_count, slots_used;
    struct tgt_list free;
    struct tgt_slot **hash;
    uint32_t hash_mask;
    uint32_t ttt_generation;
    unsigned zombies;

    bool logged_out;
    struct tgt_list logouts; /* that wait for the owner's tasks */
    struct tgt_list tmfs;    /* that wait */
    uint64_t tmf_deadline;
    enum tgt_fence fence;
    struct tgt_slot *fence_slot;
    struct tgt_list fence_waiting; /* TMF responses behind the one in the fence */
    struct tgt_conn *fence_conn;
    uint32_t fence_stat_sn;
};

/* ---- connections ---- */

enum tgt_conn_state {
    TGT_CONN_LOGIN,
    TGT_CONN_FULL,
    TGT_CONN_DRAINING, /* what is queued is sent, then closed */
    TGT_CONN_CLOSING,  /* ops.close was called */
    TGT_CONN_CLOSED,
};

enum {
    TGT_AHS_MAX = ISCSI_TX_AHS_MAX, /* no sensible chain is longer: a CDB of 260 bytes, a length */
    TGT_OUT_MAX = 64,               /* PDUs on their way out */
    TGT_STAGING = 32768,            /* bytes read ahead */
};

/* A PDU that belongs to no slot: Reject, Async, NOP-In of ours. */
struct tgt_control {
    uint8_t opcode;
    uint8_t bhs[ISCSI_BHS_SIZE]; /* packed but for the numbers */
    bool advances;               /* StatSN */
    uint16_t length;
    uint8_t data[ISCSI_BHS_SIZE + TGT_AHS_MAX];
};

/* What is done with the PDU that comes in. */
struct tgt_in {
    uint8_t bhs[ISCSI_BHS_SIZE];
    struct iscsi_bhs h;
    const struct tgt_handler *handler; /* NULL: its data are read and forgotten */
    struct tgt_slot *slot;
    struct tgt_burst *burst;
    struct iovec flat; /* for a place in one piece */
    uint32_t ahs_length;
    uint8_t ahs[TGT_AHS_MAX];
};

enum { TGT_TEXT_MAX = 8192 };

/* The one text exchange of a connection (6.2, 11.10). */
struct tgt_text_state {
    bool open;      /* we answered F=0: its next request copies ttt */
    bool busy;      /* its slot is in work */
    bool begun;     /* `keys` holds what was said so far */
    bool listing;   /* an answer to SendTargets is being sent */
    bool named;     /* that of one target, whose name is `target` */
    bool name_sent; /* of the target at the indices below */
    unsigned target_index, address_index;
    uint32_t itt, ttt;
    struct keys keys;
    char target[ISCSI_NAME_MAX + 1];
    uint32_t length; /* of the request so far */
    char request[TGT_TEXT_MAX];
    uint32_t answer_sent, answer_length; /* of `answer`, which comes before any listing */
    char answer[TGT_TEXT_MAX];
    struct iovec flat;
    char sending[TGT_TEXT_MAX]; /* stays until it is sent */
};

struct tgt_conn {
    struct tgt *tgt;
    struct tgt_conn *next, *prev; /* of tgt */
    struct tgt_conn *next_in_session;
    struct tgt_session *session;
    enum tgt_conn_state state;
    void *user;
    struct tgt_portal portal;
    char portal_address[TGT_ADDRESS_MAX];
    char peer[TGT_ADDRESS_MAX];
    char peer_host[TGT_ADDRESS_MAX]; /* without the port */
    uint16_t cid;
    struct iscsi_params params;
    struct iscsi_rx rx;
    struct iscsi_tx tx;
    struct iscsi_tx_slot *tx_slots;
    uint8_t *staging, *hold;
    struct tgt_login *login; /* until its last response is sent */
    char login_sentence[LOGIN_SENTENCE_MAX];
    bool digests_due; /* from the next PDU out */

    uint32_t stat_sn; /* the next */
    uint32_t acked;   /* ExpStatSN of the initiator */
    struct tgt_list out, r2t;
    struct tgt_list held; /* responses behind the fence */
    struct tgt_control control[TGT_CONTROL_SLOTS];
    unsigned control_head, control_count;
    struct iovec control_flat;
    bool window_due; /* a NOP-In must tell MaxCmdSN */
    bool want_told, stalled;
    bool recv_blocked; /* recv_space has returned 0, or a header waits for room */
    struct tgt_in in;

    unsigned immediates, immediate_tmfs;
    struct tgt_slot *logout;
    bool logout_asked; /* Async 1 is out: new commands get Reject 0c */
    uint64_t logout_deadline;
    enum tgt_close why;
    const char *sentence;

    uint64_t heard_ns; /* last byte in */
    uint64_t deadline; /* of login, or of draining */
    bool pinging;
    uint32_t ping_ttt;
    uint64_t ping_deadline;
    uint32_t login_bytes;
    struct tgt_text_state text;
};

struct tgt {
    struct tgt_opts opts;
    size_t user_bytes; /* task_user_bytes, rounded up to any type's alignment */
    struct tgt_conn *conns;
    struct tgt_session *sessions;
    struct tgt_counters counters;
    uint16_t last_tsih;
    uint64_t now, deadline;
    bool stopping;
    struct chap_outstanding challenges;
    unsigned depth; /* of tgt_enter() */
    struct tgt_session *dirty;
};

/* ---- tgt.c ---- */

void tgt_arm(struct tgt *t, uint64_t deadline); /* tick no later than this */

/* Around every public function that may change something. What ends on the way is cleared up when
 * the outermost one leaves, so that nothing vanishes under the feet of its callers. */
void tgt_enter(struct tgt *t);
void tgt_leave(struct tgt *t);
void tgt_dirty(struct tgt_session *s); /* something that others wait for has happened */

/* ---- tgt_slot.c ---- */

void tgt_list_append(struct tgt_list *l, struct tgt_slot *slot);
void tgt_list_remove(struct tgt_slot *slot); /* from whichever it is in; none: nothing */

struct tgt_slot *tgt_slot_at(const struct tgt_session *s, unsigned index);
struct tgt_slot *tgt_slot_take(struct tgt_conn *c, enum tgt_kind kind, const struct iscsi_bhs *h,
                               uint32_t cmd_sn); /* NULL: none is free */
bool tgt_slot_immediate_full(const struct tgt_conn *c, enum tgt_kind kind);
struct tgt_slot *tgt_slot_find(const struct tgt_session *s, uint32_t itt);
void tgt_slot_packed(struct tgt_slot *slot); /* its response is about to be sent */
void tgt_slot_retire(struct tgt_slot *slot); /* frees it as soon as nobody has it */
void tgt_slot_lose(struct tgt_slot *slot);   /* its connection is gone */
void tgt_slot_sent(struct tgt_slot *slot);   /* a piece of it has been sent */
bool tgt_slot_hold(struct tgt_slot *slot, uint32_t length);

/* ---- tgt_session.c ---- */

/* What tells sessions apart (4.4.3, 7.4.2). */
struct tgt_identity {
    const char *initiator_name;
    const char *target_name; /* "": unnamed discovery */
    uint8_t isid[6];
    uint16_t group_tag;
    bool discovery;
};

struct tgt_session *tgt_session_find(struct tgt *t, const struct tgt_conn *c,
                                     const struct tgt_identity *id);
/* With the next free TSIH; NULL: no memory, or as many as allowed exist. */
struct tgt_session *tgt_session_create(struct tgt_conn *c, const struct tgt_identity *id,
                                       const struct iscsi_params *params, uint32_t exp_cmd_sn,
                                       bool replaces);
void tgt_session_open(struct tgt_session *s);
void tgt_session_add(struct tgt_session *s, struct tgt_conn *c);
void tgt_session_end(struct tgt_session *s, enum tgt_session_end why, const char *sentence);
void tgt_session_poll(struct tgt_session *s); /* from tgt_leave(): may free it */
void tgt_session_free(struct tgt_session *s); /* that was created and got no connection */
void tgt_session_lost_conn(struct tgt_session *s, struct tgt_conn *c);
void tgt_session_expire(struct tgt_session *s, uint64_t now_ns);

/* ---- tgt_order.c: CmdSN ---- */

enum tgt_turn { TGT_TURN_NOW, TGT_TURN_LATER, TGT_TURN_NEVER };

/* A request header has come: NEVER: outside the window or a repetition. */
enum tgt_turn tgt_order_header(struct tgt_conn *c, enum tgt_kind kind, bool immediate,
                               uint32_t cmd_sn);
void tgt_order_take(struct tgt_slot *slot, enum tgt_turn turn); /* it will not be rejected */
void tgt_order_arrived(struct tgt_slot *slot);                  /* its PDU is complete */
void tgt_order_drop(struct tgt_slot *slot); /* its PDU is void: its CmdSN stays open */
void tgt_order_plug(struct tgt_session *s, uint32_t cmd_sn); /* counts as received */
void tgt_order_skip(struct tgt_session *s);
void tgt_order_run(struct tgt_session *s);    /* gives their turn to those whose time has come */
void tgt_order_window(struct tgt_session *s); /* opens it as far as slots are free */

/* ---- tgt_conn.c ---- */

void tgt_conn_wake(struct tgt_conn *c);
void tgt_conn_fail(struct tgt_conn *c, enum tgt_close why, const char *sentence);
void tgt_conn_finish(struct tgt_conn *c, enum tgt_close why, const char *sentence);
void tgt_conn_format_error(struct tgt_conn *c, const char *sentence); /* 7.7: the session ends */
void tgt_conn_ask_close(struct tgt_conn *c);
bool tgt_conn_alive(const struct tgt_conn *c); /* in full feature phase */
void tgt_conn_lose_tasks(struct tgt_conn *c, bool clear);
void tgt_conn_expire(struct tgt_conn *c, uint64_t now_ns);

/* ---- tgt_login.c ---- */

int tgt_login_init(struct tgt_conn *c, struct lp_error *err);
void tgt_login_free(struct tgt_conn *c);
enum iscsi_rx_verdict tgt_login_header(struct tgt_conn *c, const uint8_t *bhs,
                                       struct iscsi_place *place);
void tgt_login_pdu(struct tgt_conn *c, const struct iscsi_rx_pdu *pdu);
bool tgt_login_due(const struct tgt_conn *c); /* a response waits to be sent */
bool tgt_login_produce(struct tgt_conn *c, struct iscsi_tx_pdu *out);

/* ---- tgt_out.c ---- */

bool tgt_next_out(struct tgt_conn *c, struct iscsi_tx_pdu *out);
bool tgt_out_pending(const struct tgt_conn *c);
void tgt_respond(struct tgt_slot *slot); /* queues its response, or its data-in and response */
uint32_t tgt_stat_sn(struct tgt_conn *c, bool advance);
struct tgt_control *tgt_control_add(struct tgt_conn *c, uint8_t opcode, bool advances);
void tgt_reject(struct tgt_conn *c, enum iscsi_reject_reason reason);
void tgt_tell_window(struct tgt_session *s);
void tgt_acknowledged(struct tgt_conn *c, uint32_t exp_stat_sn);
void tgt_fence_start(struct tgt_slot *slot);
void tgt_fence_poll(struct tgt_session *s);

/* ---- by PDU. header: 0, or -1: discard its data and forget it. ---- */

struct tgt_handler {
    uint8_t opcode;
    bool discovery;
    bool ahs;
    int (*header)(struct tgt_conn *c, struct iscsi_place *place);
    void (*complete)(struct tgt_conn *c);
    void (*damaged)(struct tgt_conn *c); /* a data digest was wrong; Reject 02 is queued */
};

int tgt_on_command(struct tgt_conn *c, struct iscsi_place *place);
void tgt_command_complete(struct tgt_conn *c);
void tgt_command_damaged(struct tgt_conn *c);
int tgt_on_data_out(struct tgt_conn *c, struct iscsi_place *place);
void tgt_data_out_complete(struct tgt_conn *c);
void tgt_data_out_damaged(struct tgt_conn *c);
int tgt_on_tmf(struct tgt_conn *c, struct iscsi_place *place);
int tgt_on_nop_out(struct tgt_conn *c, struct iscsi_place *place);
int tgt_on_text(struct tgt_conn *c, struct iscsi_place *place);
int tgt_on_logout(struct tgt_conn *c, struct iscsi_place *place);
int tgt_on_snack(struct tgt_conn *c, struct iscsi_place *place);
/* For those that are not commands: a slot in its order as c->in.slot; NULL: ignored or rejected. */
struct tgt_slot *tgt_request_take(struct tgt_conn *c, enum tgt_kind kind, uint32_t cmd_sn);
void tgt_request_complete(struct tgt_conn *c); /* of all but commands and data */
void tgt_request_damaged(struct tgt_conn *c);
void tgt_text_complete(struct tgt_conn *c);
void tgt_text_damaged(struct tgt_conn *c);

/* A request has its turn. */
void tgt_command_run(struct tgt_slot *slot);
void tgt_tmf_run(struct tgt_slot *slot);
void tgt_nop_run(struct tgt_slot *slot);
void tgt_text_run(struct tgt_slot *slot);
void tgt_logout_run(struct tgt_slot *slot);

/* Their answers. */
bool tgt_out_command(struct tgt_slot *slot,
                     struct iscsi_tx_pdu *out); /* true: that was all of it */
void tgt_out_r2t(struct tgt_slot *slot, struct iscsi_tx_pdu *out);
void tgt_out_tmf(struct tgt_slot *slot, struct iscsi_tx_pdu *out);
void tgt_out_nop(struct tgt_slot *slot, struct iscsi_tx_pdu *out);
void tgt_out_text(struct tgt_slot *slot, struct iscsi_tx_pdu *out);
void tgt_out_logout(struct tgt_slot *slot, struct iscsi_tx_pdu *out);

/* ---- tgt_command.c, tgt_data.c ---- */

void tgt_command_advance(struct tgt_slot *slot); /* whatever its flags allow now */
void tgt_command_fail(struct tgt_slot *slot, enum tgt_fail fail);
bool tgt_data_due(const struct tgt_slot *slot); /* a sequence is open */
void tgt_data_stop(struct tgt_slot *slot);      /* asks for no more */
void tgt_data_ask(struct tgt_slot *slot);       /* queues R2Ts as far as allowed */
void tgt_data_check(struct tgt_slot *slot);     /* all in? */
void tgt_data_place(struct tgt_slot *slot, uint32_t offset, uint32_t length,
                    struct iscsi_place *place); /* or discards */
void tgt_data_placed(struct tgt_slot *slot);    /* the segment is in */
void tgt_data_unhold(struct tgt_slot *slot);    /* from hold to where it belongs */

/* ---- tgt_tmf.c ---- */

void tgt_tmf_poll(struct tgt_session *s); /* do those that wait still have to? */
bool tgt_tmf_blocks(const struct tgt_session *s, uint32_t cmd_sn);

/* ---- tgt_logout.c ---- */

void tgt_logout_poll(struct tgt_session *s); /* have its tasks ended? */

/* ---- tgt_async.c ---- */

void tgt_conn_timers(struct tgt_conn *c); /* full feature phase begins */
void tgt_conn_heard(struct tgt_conn *c);

#endif
