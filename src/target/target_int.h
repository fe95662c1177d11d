/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the embedded target share. */
#ifndef TARGET_TARGET_INT_H
#define TARGET_TARGET_INT_H

#include "target/target.h"

enum {
    TARGET_LUNS_MAX = 16384,
    POOL_CLASSES = 13, /* 4 KiB to 16 MiB */
    POOL_LEAST = 4096,
    SMALL_ROOM = 256 << 10, /* for answers whose allocation length may be anything */
};

/* ---- memory for data ---- */

struct pool_block {
    struct pool_block *next;
};

struct pool {
    struct pool_block *free[POOL_CLASSES];
    uint64_t taken, limit; /* bytes that exist, free ones included */
};

/* At least n bytes. NULL: the limit is reached, or there is no memory. */
void *pool_get(struct pool *p, size_t n);
void pool_put(struct pool *p, void *memory, size_t n);
void pool_free(struct pool *p);

/* ---- targets ---- */

struct target_lun {
    struct target *target;
    struct lu *lu;
    uint32_t number;
};

struct target {
    struct target_server *server;
    struct target *next;
    char name[ISCSI_NAME_MAX + 1];
    char alias[ISCSI_VALUE_MAX + 1];
    struct target_user *users;
    unsigned user_count;
    struct target_user mutual;
    char **initiators;
    unsigned initiator_count;
    char moved_to[TGT_ADDRESS_MAX];
    bool moved_for_good;
    struct target_lun *luns; /* ascending; room for TARGET_LUNS_MAX as it grows */
    unsigned lun_count;
    struct lu *absent; /* answers for every other LUN */
};

/* What a session has at its target: a nexus with every LUN, in the order of target->luns, and one
 * with the absent LU. */
struct nexus_set {
    struct target *target;
    struct lu_nexus *absent;
    unsigned count;
    struct lu_nexus *nexus[];
};

struct portal {
    struct portal *next;
    struct target_server *server;
    struct net_listener *listener;
    uint16_t group;
    uint16_t relative_port;
};

struct connection {
    struct connection *next, *prev;
    struct target_server *server;
    struct net_stream *stream;
    struct tgt_conn *conn;
    bool close_due;
};

/* In tgt_task.user. */
struct command {
    struct lu_task task;
    struct tgt_task *tgt;
    struct management *waiter; /* an ABORT TASK that waits for its end */
    struct iovec iov;
    size_t memory_size; /* of iov.iov_base, as asked for; 0: none */
    bool swallowed;
};

/* In tgt_tmf.user: a function that waits for tasks to end. */
struct management {
    struct management *next;
    struct tgt_tmf *tgt;
    struct lu *lu; /* NULL: all of them */
    unsigned pending;
};

struct target_server {
    struct net_reactor *reactor;
    struct target_server_opts opts;
    struct tgt *tgt;
    struct target *targets;
    struct portal *portals;
    unsigned portal_count;
    struct lu_port ports[LU_PORTS_MAX];
    struct connection *connections;
    struct pool pool;
    struct management *managements;
    struct net_timer timer;
    volatile bool stop;
    bool closes_due;

    /* Faults. */
    bool stalled;
    uint16_t refuse;
    unsigned swallow, busy_count;
    uint8_t busy_status;
};

void server_log(struct target_server *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Finishes what callbacks had to leave: closes, disk work, the timer. */
void server_settle(struct target_server *s);

/* ---- command.c ---- */

void on_command(void *user, struct tgt_task *task);
void on_data(void *user, struct tgt_task *task);
void on_abort(void *user, struct tgt_task *task);
void on_released(void *user, struct tgt_task *task);
void on_tmf(void *user, struct tgt_tmf *tmf);
bool disks_work(struct target_server *s); /* true: something is in flight */

/* ---- session.c ---- */

void on_session_opened(void *user, struct tgt_session *session);
void on_session_closed(void *user, struct tgt_session *session, enum tgt_session_end why);
void on_tasks_cleared(void *user, struct tgt_session *session);
uint16_t on_lookup(void *user, struct login_tgt *l, struct login_policy *policy);
bool on_secret(void *user, struct login_tgt *l, const char *chap_name, struct chap_credentials *c,
               const char **bound);
int on_random(void *user, void *bytes, size_t n);
bool on_target(void *user, struct tgt_conn *conn, unsigned index, struct tgt_listing *listing);
bool on_target_address(void *user, struct tgt_conn *conn, const char *target, unsigned index,
                       char address[TGT_ADDRESS_MAX]);

/* The nexus for a LUN field; *lu may be NULL. */
struct lu_nexus *nexus_for(const struct tgt_session *session, uint64_t lun);

#endif
