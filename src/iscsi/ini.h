/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's protocol machine (RFC 7143), without I/O: no socket, no clock, no allocation
 * after the constructors. Bytes and times go in; bytes, callbacks and events come out.
 *
 *     session = ini_session_new(&opts, &err);          one I_T nexus
 *     conn = ini_conn_new(session, cid, &err);         one TCP connection
 *     ini_conn_start(conn, deadline)                   the transport is connected: log in
 *     ini_conn_send_data / ini_conn_sent               what to write, what was written
 *     ini_conn_recv_space / ini_conn_received          where to read to, what was read
 *     INI_EVENT_LOGGED_IN                              now tasks: ini_submit(session, &task)
 *
 * Time. now_ns and every deadline come from one monotonic clock of the owner's choice. The owner
 * calls ini_session_tick() at ini_session_deadline(), which may move with every other call.
 *
 * Threads. A session, its connections and its operations belong to one thread. Nothing blocks.
 *
 * Callbacks (event, done, pair) come from inside ini_* functions. They may submit, abort and start
 * operations, ask for counters, and free the operation that is done. They may not call the byte
 * functions (recv_space, received, send_data, sent, closed), tick or free.
 *
 * Buffers. What recv_space and send_data hand out stays the caller's to use until the matching
 * received, sent or closed. The payload of a task belongs to the machine from ini_submit() until
 * its done callback: a task is not done while its bytes may still be read or written by a
 * transport. So when a connection fails, its tasks end in ini_conn_closed() and not before.
 *
 * Operations (task, TMF, ping, text, logout) are structs of the caller, embedded in what it has.
 * The caller fills the upper part; below the line the struct is private until done. done comes from
 * received, sent, closed and tick only, never from inside the call that starts or aborts.
 *
 * Numbering, windows, tags, bounds and residuals are the machine's; policy is its owner's: when to
 * connect again, what to replay, how long to wait, when to escalate an abort. Bidirectional
 * commands are not sent.
 */
#ifndef ISCSI_INI_H
#define ISCSI_INI_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "iscsi/iscsi.h"
#include "iscsi/login.h"
#include "iscsi/params.h"

struct ini_session;
struct ini_conn;
struct ini_event;

#define INI_NEVER UINT64_MAX /* a deadline that does not come */

/* ---- session ---- */

enum {
    INI_DEPTH_MAX = 4096,
    INI_CONNS_MAX = 32,
    INI_SENSE_MAX = 252, /* SPC: the longest sense data */
};

struct ini_opts {
    /* Names, ISID, wishes, credentials, the random callback: login.h. Copied with the strings and
     * secrets that it points to (not `outstanding`, which stays the owner's). tsih, cid, cmd_sn and
     * session are filled in here. MaxOutstandingR2T is bounded by INI_R2T_MAX, and
     * ErrorRecoveryLevel by 1. */
    struct login_ini_opts login;
    bool allow_short_secrets; /* under 96 bits (I-CHAP-07) */

    /* Tasks and other operations in flight together, 1..INI_DEPTH_MAX. Some slots for management
     * are kept beside them. */
    unsigned depth;
    unsigned connections; /* ini_conns alive together, 1..INI_CONNS_MAX; 0 is 1 */

    void (*event)(void *user, const struct ini_event *event);
    void *user;
};

/* NULL: *err says what is wrong with the options (names, secrets, ISID), or there is no memory. */
struct ini_session *ini_session_new(const struct ini_opts *opts, struct lp_error *err);

/* Every connection is freed, every operation done. */
void ini_session_free(struct ini_session *s);

/* What the leading login settled; NULL before INI_EVENT_LOGGED_IN. */
const struct iscsi_params *ini_session_params(const struct ini_session *s);
uint16_t ini_session_tsih(const struct ini_session *s); /* 0 before the login */

int ini_session_portal_group_tag(const struct ini_session *s); /* -1: not told */
const char *ini_session_target_alias(const struct ini_session *s);
bool ini_session_authenticated(const struct ini_session *s); /* by CHAP */

/* Tasks submitted and not done. */
unsigned ini_session_tasks(const struct ini_session *s);

/* Commands that may be sent now before the target opens its window further (4.2.2.1). */
uint32_t ini_session_window(const struct ini_session *s);

/* When ini_session_tick() is due: INI_NEVER if nothing waits for time. */
uint64_t ini_session_deadline(const struct ini_session *s);

/* Time has come to now_ns: late logins and operations are told or ended. */
void ini_session_tick(struct ini_session *s, uint64_t now_ns);

/* Counters since ini_session_new(), for logs and tests. */
struct ini_counters {
    uint64_t pdus_in, pdus_out;
    uint64_t commands;        /* SCSI Commands sent */
    uint64_t held;            /* times a command had to wait for the window */
    uint64_t stale_responses; /* answers to aborted operations, dropped */
    uint64_t async_ignored;   /* vendor and unassigned events (I-ASY-04) */
    uint64_t rejects;
    uint64_t digest_errors;
    uint64_t duplicates; /* Data-In and R2T seen twice, dropped */
};

const struct ini_counters *ini_session_counters(const struct ini_session *s);

/* ---- connection ---- */

/* The first connection of a session is the leading one; more can be added after LOGGED_IN, up to
 * params.max_connections (I-MC-01). The CID is the owner's choice, unique among the living. NULL:
 * no memory, the CID is taken, or the session takes no further connection now. */
struct ini_conn *ini_conn_new(struct ini_session *s, uint16_t cid, struct lp_error *err);

/* After ini_conn_closed(), or before ini_conn_start(). */
void ini_conn_free(struct ini_conn *c);

void ini_conn_set_user(struct ini_conn *c, void *user);
void *ini_conn_user(const struct ini_conn *c);
uint16_t ini_conn_cid(const struct ini_conn *c);

/* NULL before its login has ended. */
const struct iscsi_params *ini_conn_params(const struct ini_conn *c);

/* The transport is connected: the login begins. Unless it has ended by deadline_ns, it fails. */
void ini_conn_start(struct ini_conn *c, uint64_t deadline_ns);

/* Where the next bytes from the transport belong: at most max pieces, max > 0. Returns how many; 0
 * when nothing more is wanted (the connection has ended). */
unsigned ini_conn_recv_space(struct ini_conn *c, struct iovec *iov, unsigned max);

/* n bytes were put there, in order, n > 0. May call back. */
void ini_conn_received(struct ini_conn *c, size_t n, uint64_t now_ns);

/* The next bytes to write: at most max pieces, max > 0. Returns how many; 0 when nothing is due.
 * The same bytes come again until ini_conn_sent() took them off. */
unsigned ini_conn_send_data(struct ini_conn *c, struct iovec *iov, unsigned max);

/* The first n of these bytes were written. May call back. */
void ini_conn_sent(struct ini_conn *c, size_t n);

/* The transport is closed (by the peer, by an error, or after INI_EVENT_CONN_CLOSE) and touches no
 * buffer any more. Ends what was in flight, INI_LOST. */
void ini_conn_closed(struct ini_conn *c);

/* A NOP-Out that only confirms ExpStatSN, for a connection that has been idle (I-NOP-04). */
void ini_conn_acknowledge(struct ini_conn *c);

/* ---- operations ---- */

enum ini_result {
    INI_OK,             /* task: a SCSI status arrived (any), the data and residual agree with it;
                         * others: the target's answer is in the response field */
    INI_TARGET_FAILURE, /* the response said that the target failed (11.4.3) */
    INI_LOST,           /* the connection or session went first: it may or may not have run */
    INI_ABORTED,        /* by ini_abort(), a TMF or before it was sent */
    INI_REJECTED,       /* by a Reject PDU; .reject says why */
    INI_PROTOCOL,       /* the target's answer breaks the protocol or the data are incomplete */
    INI_REFUSED,        /* not sent: the session cannot do it now (no login, logging out) */
};

/* The words for a log, e.g. "connection lost". */
const char *ini_result_name(enum ini_result result);

/* Private to the machine: the head of every operation. */
struct ini_op {
    struct ini_session *session;
    struct ini_conn *conn; /* its allegiance (4.2.5.1) */
    struct ini_list *list; /* where next and prev belong to */
    struct ini_op *next, *prev;
    uint64_t deadline;
    uint32_t itt;
    uint32_t cmd_sn;
    uint16_t tx_pieces; /* PDUs with payload of it in the send slots */
    uint8_t kind;
    uint8_t state;
    uint8_t result; /* once it has ended, until done */
    uint8_t retries;
    bool late, held, aborting;
};

/* R2Ts that a task keeps while it serves them; MaxOutstandingR2T is negotiated down to it. */
enum { INI_R2T_MAX = 8 };

/* Private: which bytes of a payload have moved. In order that is one extent. */
enum { INI_EXTENTS_MAX = 16 };

struct ini_extents {
    unsigned count;
    struct {
        uint32_t begin, end;
    } of[INI_EXTENTS_MAX]; /* ascending, apart */
};

enum ini_direction { INI_NONE, INI_READ, INI_WRITE };

struct ini_task {
    uint64_t lun;            /* the 8-byte field as a number (scsi/lun.h) */
    uint8_t cdb[16];         /* padded with zeroes */
    const uint8_t *cdb_rest; /* bytes 17 and on of a longer CDB; stays until done */
    uint16_t cdb_length;     /* 6..260; to 16 it does not matter */
    uint8_t attr;            /* enum iscsi_attr */
    uint8_t priority;        /* RFC 7144 6.1; sent from protocol level 2 on */
    enum ini_direction direction;
    const struct iovec *iov; /* read into or written from; stays, with its buffers, until done */
    unsigned iov_count;
    uint32_t length;      /* bytes in iov, the Expected Data Transfer Length */
    uint64_t deadline_ns; /* INI_EVENT_TASK_LATE comes then, once; the task stays. INI_NEVER */
    void (*done)(struct ini_task *task); /* last use of the task by the machine */
    void *user;

    enum ini_result result;
    uint8_t reject;      /* INI_REJECTED: enum iscsi_reject */
    uint8_t scsi_status; /* INI_OK: SAM-5 status */
    uint16_t status_qualifier;
    uint16_t sense_length; /* bytes in sense */
    int64_t residual;      /* INI_OK: > 0 bytes of length were not transferred (underflow); < 0 the
                            * target had more than length (overflow) */
    uint32_t transferred;  /* read: bytes of iov that hold data; write: bytes the target took */
    uint8_t sense[INI_SENSE_MAX];

    /* private from here on */
    struct ini_op op;
    struct ini_extents moved; /* read: good Data-In; write: Data-Out handed to the transport */
    struct ini_extents seen;  /* level 1: the DataSN or R2TSN that came */
    struct ini_held {         /* level 1: a status that waits for lost data */
        bool waits, overflow, underflow;
        uint8_t status;
        uint32_t residual, stat_sn, exp_data_sn;
    } held;
    uint32_t ack_ttt;
    bool ack_due, snack_refused;
    uint8_t segmentation; /* of its connection when it was sent */
    uint32_t sn;          /* read: next DataSN; write: next R2TSN */
    uint32_t unsolicited; /* write: how many bytes go unasked */
    uint32_t seek_offset; /* where in the payload piece seek_index of iov begins */
    unsigned seek_index;
    struct ini_burst {
        struct ini_task *task; /* NULL: free */
        struct ini_burst *next;
        uint32_t ttt, offset, length, done, data_sn;
    } bursts[INI_R2T_MAX + 1]; /* the last one: unsolicited Data-Out */
};

/* Sends the task, now or when the window opens. At most opts.depth tasks at a time: more wait here
 * and cost nothing. */
void ini_submit(struct ini_session *s, struct ini_task *task);

/* Level 1: sends the command again as it was, if the target has not acknowledged it (7.2.1);
 * otherwise nothing. For a task that is late. */
void ini_retry(struct ini_task *task);

/* Task management (11.5). ABORT TASK names a task in flight; the others a LUN or the target. The
 * affected tasks end INI_ABORTED when the target says that it is done, or before if they had
 * never been sent; until then their answers count. */
struct ini_tmf {
    uint8_t function;            /* enum iscsi_tmf_function; 9 and up from protocol level 2 on */
    uint64_t lun;                /* where the function has one; ABORT TASK takes the task's */
    struct ini_task *referenced; /* ABORT TASK, QUERY TASK */
    uint64_t deadline_ns;        /* then INI_EVENT_OPERATION_LATE, once */
    void (*done)(struct ini_tmf *tmf);
    void *user;

    enum ini_result result;
    uint8_t reject;
    uint8_t response;             /* INI_OK: enum iscsi_tmf_result */
    uint32_t additional_response; /* RFC 7144 6.3 */

    struct ini_op op; /* private */
    uint32_t ref_itt, ref_cmd_sn;
};

void ini_tmf(struct ini_session *s, struct ini_tmf *tmf);

/* A task that was not sent yet ends INI_ABORTED by itself; returns false then, and *tmf is not
 * used. Otherwise true: *tmf is filled as ABORT TASK (keeping done, user, deadline) and sent. */
bool ini_abort(struct ini_task *task, struct ini_tmf *tmf);

/* A NOP-Out that asks for its echo (11.18). An echo that differs, or none by the deadline, is a
 * failure of the connection (I-NOP-03). */
struct ini_ping {
    const void *data; /* stays until done */
    uint32_t length;  /* cut to what the target takes */
    uint64_t deadline_ns;
    void (*done)(struct ini_ping *ping);
    void *user;

    enum ini_result result;
    uint8_t reject;

    struct ini_op op; /* private */
    struct iovec echo;
};

void ini_ping(struct ini_conn *c, struct ini_ping *ping);

/* A text exchange (11.10). One at a time on a connection; further ones wait. */
struct ini_text {
    const void *request; /* "key=value" pairs, each with its NUL; stays until done */
    uint32_t request_length;
    uint32_t mrdsl_in;    /* 0, or: declare this MaxRecvDataSegmentLength in place of a request; at
                           * most what the session was made with, or 65536 if that is more */
    uint64_t deadline_ns; /* then the connection ends */
    void (*pair)(struct ini_text *text, const char *key, const char *value); /* as they arrive */
    void (*done)(struct ini_text *text);
    void *user;

    enum ini_result result;
    uint8_t reject;

    struct ini_op op; /* private */
    struct iovec whole;
    uint64_t lun;
    uint32_t ttt;
    uint32_t offered;        /* request bytes sent */
    uint32_t offered_before; /* the last PDU */
    uint32_t declared;       /* MaxRecvDataSegmentLength of the target in this exchange */
    uint32_t rounds;
    bool more; /* the answer just seen had C=1 */
};

void ini_text(struct ini_conn *c, struct ini_text *text);

/* Ends a connection or the session in order (11.14). Nothing new is sent there afterwards; what
 * is in flight has until the response. Then INI_EVENT_CONN_CLOSE and INI_EVENT_LOGGED_OUT. Without
 * a response by the deadline the connection is closed as failed. */
struct ini_logout {
    uint8_t reason; /* enum iscsi_logout_reason */
    uint16_t cid;   /* reasons 1 and 2 */
    uint64_t deadline_ns;
    void (*done)(struct ini_logout *logout);
    void *user;

    enum ini_result result;
    uint8_t reject;
    uint8_t response;   /* INI_OK: enum iscsi_logout_result */
    uint16_t time2wait; /* seconds; with response 2 or 3 only, else 0 (I-LGO-03) */
    uint16_t time2retain;

    struct ini_op op; /* private */
};

/* Sent on the connection that it names, or on another one if that is not logged in. */
void ini_logout(struct ini_session *s, struct ini_logout *logout);

/* ---- events ---- */

enum ini_close_why {
    INI_CLOSE_LOGIN,      /* the login failed or was redirected; that event came before */
    INI_CLOSE_PROTOCOL,   /* the target broke the protocol (7.7) */
    INI_CLOSE_DIGEST,     /* a digest was wrong (7.8) */
    INI_CLOSE_TIMEOUT,    /* no answer by a deadline */
    INI_CLOSE_LOGGED_OUT, /* after its Logout Response */
    INI_CLOSE_ASKED,      /* the target dropped it (async 2 or 3) */
    INI_CLOSE_SESSION,    /* another connection's failure ended the session (7.1.4.4) */
    INI_CLOSE_TRANSPORT,  /* ini_conn_closed() without any of these */
};

enum ini_event_type {
    INI_EVENT_WANT_SEND,       /* conn: output is due. Comes once until ini_conn_send_data() */
    INI_EVENT_LOGGED_IN,       /* conn, params */
    INI_EVENT_LOGIN_FAILED,    /* conn, login */
    INI_EVENT_REDIRECT,        /* conn, redirect: CONN_CLOSE follows */
    INI_EVENT_ASYNC,           /* conn, async */
    INI_EVENT_TASK_LATE,       /* task: its deadline is over; it goes on. Once a task */
    INI_EVENT_OPERATION_LATE,  /* tmf: likewise */
    INI_EVENT_CONN_CLOSE,      /* conn, close: close the transport, then ini_conn_closed() */
    INI_EVENT_SESSION_DROPPED, /* close: no connection is left, every operation has ended. Begin
                                * again with a new session of the same ISID */
    INI_EVENT_LOGGED_OUT,      /* the session ended in order; otherwise as SESSION_DROPPED */
};

struct ini_event {
    enum ini_event_type type;
    struct ini_conn *conn;
    union {
        const struct iscsi_params *params;
        struct {
            uint16_t status;      /* enum iscsi_login_status, or 0: no such answer came */
            bool retryable;       /* the same attempt may do better later (I-LOG-08) */
            bool retry_md5;       /* try once more with chap_algorithms "5" */
            const char *sentence; /* until the callback returns, as all pointers here */
        } login;
        struct {
            const char *address; /* host, [v6] or with :port as sent (13.8) */
            bool permanent;
        } redirect;
        struct {
            uint8_t event; /* enum iscsi_async_event, or a vendor's */
            uint8_t vcode;
            uint16_t parameter[3];
            uint64_t lun;
            const uint8_t *sense; /* event 0, else NULL */
            uint16_t sense_length;
        } async;
        struct {
            enum ini_close_why why;
            const char *sentence;
            bool waits;         /* the target named times; else use the negotiated defaults */
            uint16_t time2wait; /* seconds before connecting again */
            uint16_t time2retain;
        } close;
        struct ini_task *task;
        struct ini_tmf *tmf;
    };
};

#endif
