/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's protocol machine (RFC 7143), without I/O: no socket, no clock, no allocation once a
 * session stands. Bytes and times go in; bytes and callbacks come out.
 *
 *     tgt = tgt_new(&opts, &err);                     one iSCSI node and all its sessions
 *     conn = tgt_conn_new(tgt, &portal, peer, &err);  one accepted TCP connection
 *     tgt_conn_recv_space / tgt_conn_received         where to read to, what was read
 *     tgt_conn_send_data / tgt_conn_sent              what to write, what was written
 *     ops.command(task)                               a SCSI command, in CmdSN order
 *     tgt_task_receive, ops.data                      its data-out, straight into owner's memory
 *     tgt_task_respond                                its status, and data-in from owner's memory
 *     ops.released(task)                              nothing of it is used any more
 *
 * It knows no SCSI beyond the status byte: LUNs are opaque, CDBs are passed up, and what a task
 * management function does is the owner's work. Numbering, windows, tags, bursts, residuals,
 * digests, rejects, negotiation and the life of sessions and connections are done here.
 *
 * Time. now_ns comes from one monotonic clock of the owner's choice. The owner calls tgt_tick() at
 * tgt_deadline(), which may move with every other call.
 *
 * Threads. A tgt with all that hangs on it belongs to one thread. Nothing blocks.
 *
 * Callbacks come from inside tgt_* functions. They may call the task, TMF, session and connection
 * functions, but not the byte functions (recv_space, received, send_data, sent, closed), tick or
 * free. A callback may come before the function that caused it returns; where that matters it is
 * said below.
 *
 * Buffers. What recv_space and send_data hand out stays the caller's to use until the matching
 * received, sent or closed. Memory given with tgt_task_receive() and tgt_task_respond() belongs to
 * the machine until ops.released(task).
 *
 * Memory (T-ROB-01). A connection has fixed receive and send buffers and a ring of
 * TGT_CONTROL_SLOTS small answers. A session has tgt_opts.depth tasks and a few beside them for
 * immediate requests, allocated at its login. Payload lies in the owner's memory, at most EDTL a
 * task; data that come before the owner named memory lie in what ops.hold() gave, at most
 * FirstBurstLength a command, or a NOP-Out's data. A peer that does not read what
 * it caused is not read from.
 */
#ifndef ISCSI_TGT_H
#define ISCSI_TGT_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "iscsi/iscsi.h"
#include "iscsi/login.h"
#include "iscsi/params.h"

struct tgt;
struct tgt_session;
struct tgt_conn;

#define TGT_NEVER UINT64_MAX /* a deadline that does not come */

enum {
    TGT_DEPTH_MAX = 1024,
    TGT_CONNS_MAX = 32,     /* connections of a session */
    TGT_CDB_MAX = 260,      /* SPC: the longest CDB */
    TGT_SENSE_MAX = 252,    /* SPC: the longest sense data */
    TGT_CONTROL_SLOTS = 16, /* Reject, Async and NOP-In waiting on a connection */
    TGT_R2T_MAX = 8,        /* MaxOutstandingR2T is negotiated down to it */
    TGT_ADDRESS_MAX = 280,  /* TargetAddress, with NUL: "host:port,tag" */
};

/* ---- what the machine asks its owner ---- */

/* Why a session ended; the I_T nexus is lost. */
enum tgt_session_end {
    TGT_END_LOGOUT,     /* in order (11.14) */
    TGT_END_REINSTATED, /* by a login with the same InitiatorName and ISID (6.3.5); the nexus
                         * stays and session_opened follows for it */
    TGT_END_LOST,       /* its connections failed and Time2Wait + Time2Retain are over (7.5) */
    TGT_END_PROTOCOL,   /* the initiator broke the protocol (7.7) */
    TGT_END_OWNER,      /* tgt_session_close(), tgt_stop() or TARGET COLD RESET */
};

/* Why a connection is to be closed. */
enum tgt_close {
    TGT_CLOSE_LOGIN,      /* the login failed, was redirected or took too long */
    TGT_CLOSE_LIMIT,      /* too many from there */
    TGT_CLOSE_LOGGED_OUT, /* the Logout Response is sent */
    TGT_CLOSE_PROTOCOL,   /* the peer broke the protocol */
    TGT_CLOSE_DIGEST,     /* a header digest was wrong (7.8) */
    TGT_CLOSE_TIMEOUT,    /* no answer to a NOP-In, or no end of a data sequence */
    TGT_CLOSE_REINSTATED, /* a new login took its place */
    TGT_CLOSE_SESSION,    /* its session ended */
    TGT_CLOSE_OWNER,      /* tgt_conn_drop() and the like */
};

/* One target of a SendTargets answer (App. C). */
struct tgt_listing {
    const char *name; /* stays until the next call of a tgt_* function */
};

struct tgt_task;
struct tgt_tmf;

/* All are required but those marked optional. `user` is tgt_opts.user. */
struct tgt_ops {
    /* Names, access lists, secrets, redirections, portal group tags and randomness: login.h. user
     * is tgt_opts.user; l->opts->context is the struct tgt_conn. The context of the policy's
     * credentials() too. */
    struct login_tgt_ops login;

    /* SendTargets: the index-th target, from 0, that the initiator of this connection may see, in
     * an order that does not change while it is asked; false: no more. */
    bool (*target)(void *user, struct tgt_conn *conn, unsigned index, struct tgt_listing *listing);
    /* Its index-th TargetAddress, "host:port,tag" (13.8), of at most TGT_ADDRESS_MAX - 1 bytes;
     * false: no more. */
    bool (*target_address)(void *user, struct tgt_conn *conn, const char *target, unsigned index,
                           char address[TGT_ADDRESS_MAX]);

    /* A normal session is in full feature phase: an I_T nexus begins. After session_closed of the
     * session that it reinstates, and before its first command. Not called for discovery. */
    void (*session_opened)(void *user, struct tgt_session *session);
    /* The nexus is lost. All its tasks have ended before. The session is gone afterwards. */
    void (*session_closed)(void *user, struct tgt_session *session, enum tgt_session_end why);
    /* Tasks of a session that goes on were ended by the protocol: a unit attention SOME COMMANDS
     * CLEARED BY ISCSI PROTOCOL EVENT is due on the nexus (11.14.5, T-LGO-03). Optional. */
    void (*tasks_cleared)(void *user, struct tgt_session *session);

    /* A SCSI command, in CmdSN order. It comes as soon as its header is in, before the immediate
     * data are read: with memory given by tgt_task_receive() from inside, these go there at once.
     * Each task that came here wants exactly one tgt_task_respond() or tgt_task_end(), now or
     * later. */
    void (*command)(void *user, struct tgt_task *task);
    /* All data that tgt_task_receive() promised are in. */
    void (*data)(void *user, struct tgt_task *task);
    /* Nobody waits for this task any more: its connection or session ended, or its command came
     * damaged and will come again. Stop it if that is easy and call tgt_task_end() once its memory
     * and its effects are done with. The session takes no new command until then. */
    void (*abort)(void *user, struct tgt_task *task);
    /* After tgt_task_respond() or tgt_task_end(): the machine and the transport use nothing of the
     * task any more. The task is gone afterwards. */
    void (*released)(void *user, struct tgt_task *task);

    /* A task management function (11.5), once the tasks that it covers have all arrived and their
     * data transfers are over as TaskReporting asks. Every task that it ends must be ended with
     * tgt_task_end() before tgt_tmf_respond(). TASK REASSIGN, unknown tasks and functions above
     * the protocol level do not come here. */
    void (*tmf)(void *user, struct tgt_tmf *tmf);

    /* Output is due on conn. Comes once until tgt_conn_send_data(). */
    void (*want_send)(void *user, struct tgt_conn *conn);
    /* recv_space, which returned 0, has room again. Optional. */
    void (*want_recv)(void *user, struct tgt_conn *conn);
    /* Close the transport, then call tgt_conn_closed(). What was due to be sent has been, where
     * the protocol wants that. Once a connection. `sentence` says what happened, for a log. */
    void (*close)(void *user, struct tgt_conn *conn, enum tgt_close why, const char *sentence);

    /* Memory for data that come before their turn; NULL: none now, and the initiator is told to
     * try again. `length` bytes, at most FirstBurstLength or mrdsl_in. Both optional together. */
    void *(*hold)(void *user, size_t length);
    void (*unhold)(void *user, void *memory, size_t length);
};

struct tgt_opts {
    struct tgt_ops ops;
    void *user;

    /* What we are ready to negotiate (keys.h). What is not built is lowered: recovery levels above
     * 0, FastAbort, more than TGT_CONNS_MAX connections or TGT_R2T_MAX R2Ts. */
    struct iscsi_wishes wishes;

    unsigned depth;         /* commands in flight in a session, 1..TGT_DEPTH_MAX */
    size_t task_user_bytes; /* the owner's area in each task and TMF */
    unsigned sessions_max;  /* 1..65535 */
    unsigned conns_max;     /* connections alive together, all sessions */
    unsigned immediate_max; /* immediate requests in work on a connection, TMFs not counted; at
                             * least 1. As many TMFs come beside them (T-NUM-04) */

    /* Caps before a peer has authenticated itself (T-LOG-18). */
    unsigned logins_max;      /* connections in login together */
    unsigned logins_max_peer; /* of these, from one peer address (without its port) */
    uint64_t login_timeout_ns;
    uint32_t login_bytes_max; /* in a login, all its requests together */

    uint64_t ping_idle_ns;    /* NOP-In after so long without a byte; TGT_NEVER: none */
    uint64_t ping_timeout_ns; /* no answer for so long: the connection is closed (T-NOP-03) */
    uint64_t data_timeout_ns; /* a TMF waits so long for data sequences to end, then the
                               * connection is closed (11.5.1) */
};

/* ---- the node ---- */

/* NULL: *err says which option is wrong, or there is no memory. Copies *opts. */
struct tgt *tgt_new(const struct tgt_opts *opts, struct lp_error *err);

/* Every connection is freed and every task released; ends what is left of sessions. */
void tgt_free(struct tgt *t);

void tgt_tick(struct tgt *t, uint64_t now_ns);
uint64_t tgt_deadline(const struct tgt *t);

/* No new session or connection from now on: logins get 0301 (T-LOG-21). Each connection in full
 * feature phase is asked to log out within `seconds` (Async 1, T-ASY-01), then dropped. */
void tgt_stop(struct tgt *t, uint16_t seconds);

struct tgt_counters {
    uint64_t pdus_in, pdus_out;
    uint64_t commands, responses;
    uint64_t ignored; /* outside the window, or a repetition (T-NUM-02) */
    uint64_t rejects;
    uint64_t digest_errors;
    uint64_t held;                    /* requests whose data went through ops.hold() */
    uint64_t refused;                 /* connections over a cap */
    unsigned conns, logins, sessions; /* alive now */
};

const struct tgt_counters *tgt_counters(const struct tgt *t);

/* ---- connections ---- */

struct tgt_portal {
    const char *address; /* of ours that was connected to, "host:port"; copied */
    uint16_t group_tag;
};

/* peer: the initiator's "host:port" or "[v6]:port"; copied. NULL: a cap of *opts is reached, or
 * there is no memory; close the transport then. */
struct tgt_conn *tgt_conn_new(struct tgt *t, const struct tgt_portal *portal, const char *peer,
                              uint64_t now_ns, struct lp_error *err);

/* After tgt_conn_closed(). */
void tgt_conn_free(struct tgt_conn *c);

void tgt_conn_set_user(struct tgt_conn *c, void *user);
void *tgt_conn_user(const struct tgt_conn *c);
const char *tgt_conn_peer(const struct tgt_conn *c);
const struct tgt_portal *tgt_conn_portal(const struct tgt_conn *c);
uint16_t tgt_conn_cid(const struct tgt_conn *c);
struct tgt_session *tgt_conn_session(const struct tgt_conn *c);       /* NULL during login */
const char *tgt_conn_initiator_name(const struct tgt_conn *c);        /* "" before it is known */
const struct iscsi_params *tgt_conn_params(const struct tgt_conn *c); /* NULL during login */

/* As in ini.h. recv_space returns 0 when nothing may be read now: the connection has ended, is
 * stalled, or its answers are not being taken; want_recv tells when that changes. */
unsigned tgt_conn_recv_space(struct tgt_conn *c, struct iovec *iov, unsigned max);
void tgt_conn_received(struct tgt_conn *c, size_t n, uint64_t now_ns);
unsigned tgt_conn_send_data(struct tgt_conn *c, struct iovec *iov, unsigned max);
void tgt_conn_sent(struct tgt_conn *c, size_t n);

/* The transport is closed, by anybody, and touches no buffer any more. */
void tgt_conn_closed(struct tgt_conn *c, uint64_t now_ns);

/* Takes no more bytes until it is called with false: a wrong place to be for long. */
void tgt_conn_stall(struct tgt_conn *c, bool stalled);

/* A NOP-In that wants an answer (11.19). False: one is on its way already. */
bool tgt_conn_ping(struct tgt_conn *c);

/* An Asynchronous Message (11.9) of any kind. False: TGT_CONTROL_SLOTS wait already. */
struct tgt_async {
    uint8_t event; /* enum iscsi_async, or 248..255 */
    uint8_t vcode;
    uint16_t parameter[3];
    uint64_t lun;
    const uint8_t *sense; /* event 0; copied */
    uint16_t sense_length;
};

bool tgt_conn_async(struct tgt_conn *c, const struct tgt_async *async);

/* Asks for a logout within `seconds` (Async 1). SCSI commands that come later get Reject 0c. After
 * that time the connection is dropped with Async 2. */
void tgt_conn_ask_logout(struct tgt_conn *c, uint16_t seconds);

/* Async 2 with Time2Wait and Time2Retain, then close. */
void tgt_conn_drop(struct tgt_conn *c, const char *sentence);

/* ---- sessions ---- */

struct tgt *tgt_session_node(const struct tgt_session *s);
void tgt_session_set_user(struct tgt_session *s, void *user);
void *tgt_session_user(const struct tgt_session *s);
const char *tgt_session_initiator_name(const struct tgt_session *s);
const char *tgt_session_target_name(const struct tgt_session *s);
const uint8_t *tgt_session_isid(const struct tgt_session *s); /* 6 bytes */
uint16_t tgt_session_tsih(const struct tgt_session *s);
uint16_t tgt_session_portal_group(const struct tgt_session *s);
const struct iscsi_params *tgt_session_params(const struct tgt_session *s);
unsigned tgt_session_conn_count(const struct tgt_session *s);
/* The first connection, or the one after c; NULL at the end. */
struct tgt_conn *tgt_session_conn(const struct tgt_session *s, const struct tgt_conn *after);

/* The first session, or the one after s, in no order; NULL at the end. Not discovery sessions. */
struct tgt_session *tgt_session_next(const struct tgt *t, const struct tgt_session *after);

/* Async 3 on each connection, then all are closed and the session ends. */
void tgt_session_close(struct tgt_session *s, const char *sentence);

/* ---- tasks ---- */

struct tgt_task {
    struct tgt_session *session;
    struct tgt_conn *conn; /* its allegiance; NULL once the connection is gone */
    uint64_t lun;
    uint8_t attr;     /* enum iscsi_attr */
    uint8_t priority; /* RFC 7144 6.1 */
    bool immediate;
    bool read, write; /* the direction bits, as sent; never both */
    uint32_t edtl;    /* Expected Data Transfer Length, as sent */
    uint32_t itt, cmd_sn;
    uint16_t cdb_length; /* 16, or more with an extended CDB */
    const uint8_t *cdb;  /* zero-padded to at least 16 bytes */
    void *user;          /* the area of tgt_opts.task_user_bytes, aligned for any type; not
                          * cleared between tasks */
};

/* Data-out: up to `length` bytes, what the command will write, belong in iov (which, as what it
 * points to, stays until released). Returns how many will come: less than length if the initiator
 * offers less (the residual says so to it). Then ops.data() comes once, maybe before this returns;
 * it does not when 0 is returned. At most once a task, before respond. */
uint32_t tgt_task_receive(struct tgt_task *task, const struct iovec *iov, unsigned iov_count,
                          uint32_t length);

struct tgt_answer {
    uint8_t status;            /* SAM-5 */
    uint16_t status_qualifier; /* RFC 7144 6.2 */
    bool target_failure;       /* response code 1: status and residual are not sent (11.4.3) */
    const uint8_t *sense;      /* copied; at most TGT_SENSE_MAX */
    uint16_t sense_length;
    const struct iovec *iov; /* data-in; stays, with its buffers, until released */
    unsigned iov_count;
    uint32_t length;   /* data-in bytes in iov; what exceeds EDTL is not sent */
    uint64_t transfer; /* bytes that the command transfers by its CDB, in its direction: what the
                        * residual is computed from (11.4.5). Allocation length has been
                        * applied before (11.4.5.3) */
};

/* The task is done. Its response waits, where the protocol wants it, for data still on their way.
 * Responding to a task that was aborted is right and sends nothing. */
void tgt_task_respond(struct tgt_task *task, const struct tgt_answer *answer);

/* The task ended without an answer: by a TMF or after ops.abort(). */
void tgt_task_end(struct tgt_task *task);

/* ---- task management ---- */

struct tgt_tmf {
    struct tgt_session *session;
    struct tgt_conn *conn; /* NULL once it is gone; respond all the same */
    uint8_t function;      /* enum iscsi_tmf, not TASK REASSIGN */
    uint64_t lun;
    uint32_t cmd_sn;
    struct tgt_task *task; /* ABORT TASK and QUERY TASK: what it names, else NULL */
    void *user;            /* as in struct tgt_task */
};

/* additional: RFC 7144 6.3, 3 bytes. */
void tgt_tmf_respond(struct tgt_tmf *tmf, enum iscsi_tmf_result response, uint32_t additional);

#endif
