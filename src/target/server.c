/* SPDX-License-Identifier: BSD-2-Clause */
/* Portals, connections, and the loop. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/target_int.h"

#define SECOND 1000000000ull

void server_log(struct target_server *s, const char *fmt, ...)
{
    char sentence[640];
    va_list args;

    if (!s->opts.log)
        return;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    s->opts.log(s->opts.user, sentence);
}

/* ---- connections ---- */

static void connection_free(struct connection *c)
{
    struct target_server *s = c->server;

    net_stream_close(c->stream);
    tgt_conn_closed(c->conn, net_now(s->reactor));
    tgt_conn_free(c->conn);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->connections = c->next;
    if (c->next)
        c->next->prev = c->prev;
    free(c);
}

void server_settle(struct target_server *s)
{
    uint64_t at;

    disks_work(s);
    while (s->closes_due) {
        struct connection *next;

        s->closes_due = false;
        for (struct connection *c = s->connections; c; c = next) {
            next = c->next;
            if (c->close_due)
                connection_free(c);
        }
    }
    at = tgt_deadline(s->tgt);
    if (at == TGT_NEVER)
        net_timer_cancel(s->reactor, &s->timer);
    else if (!s->timer.index || s->timer.at > at)
        net_timer_set(s->reactor, &s->timer, at); /* it has its place since the server was made */
}

static void on_timer(struct net_timer *timer)
{
    struct target_server *s = timer->user;

    tgt_tick(s->tgt, net_now(s->reactor));
    server_settle(s);
}

static unsigned on_recv_space(void *user, struct iovec *iov, unsigned max)
{
    const struct connection *c = user;

    return c->close_due || c->server->stalled ? 0 : tgt_conn_recv_space(c->conn, iov, max);
}

static void on_received(void *user, size_t n)
{
    struct connection *c = user;
    struct target_server *s = c->server;

    tgt_conn_received(c->conn, n, net_now(s->reactor));
    server_settle(s); /* c may be gone */
}

static unsigned on_send_data(void *user, struct iovec *iov, unsigned max)
{
    const struct connection *c = user;

    return c->close_due ? 0 : tgt_conn_send_data(c->conn, iov, max);
}

static void on_sent(void *user, size_t n)
{
    struct connection *c = user;
    struct target_server *s = c->server;

    tgt_conn_sent(c->conn, n);
    if (s->closes_due)
        server_settle(s);
}

static void on_stream_closed(void *user, const struct lp_error *why)
{
    struct connection *c = user;

    (void)why;
    c->close_due = c->server->closes_due = true;
    server_settle(c->server);
}

static const struct net_stream_ops stream_ops = {on_recv_space, on_received, on_send_data, on_sent,
                                                 on_stream_closed};

static void on_accepted(void *user, struct net_stream *stream)
{
    struct portal *p = user;
    struct target_server *s = p->server;
    const struct tgt_portal portal = {net_stream_local(stream), p->group};
    struct connection *c = calloc(1, sizeof(*c));
    struct lp_error err;

    if (c)
        c->conn = tgt_conn_new(s->tgt, &portal, net_stream_peer(stream), net_now(s->reactor), &err);
    if (!c || !c->conn) {
        server_log(s, "connection from %s refused: %s", net_stream_peer(stream),
                   c ? err.msg : "out of memory");
        free(c);
        net_stream_close(stream);
        return;
    }
    c->server = s;
    c->stream = stream;
    tgt_conn_set_user(c->conn, c);
    c->next = s->connections;
    if (c->next)
        c->next->prev = c;
    s->connections = c;
    net_stream_start(stream, &stream_ops, c);
    server_settle(s);
}

static void on_want_send(void *user, struct tgt_conn *conn)
{
    struct connection *c = tgt_conn_user(conn);

    (void)user;
    net_stream_want_send(c->stream);
}

static void on_want_recv(void *user, struct tgt_conn *conn)
{
    struct connection *c = tgt_conn_user(conn);

    (void)user;
    net_stream_want_read(c->stream);
}

static void on_close(void *user, struct tgt_conn *conn, enum tgt_close why, const char *sentence)
{
    struct target_server *s = user;
    struct connection *c = tgt_conn_user(conn);

    if (why != TGT_CLOSE_LOGGED_OUT)
        server_log(s, "connection from %s closed: %s", tgt_conn_peer(conn), sentence);
    c->close_due = s->closes_due = true;
}

static void *on_hold(void *user, size_t length)
{
    return pool_get(&((struct target_server *)user)->pool, length);
}

static void on_unhold(void *user, void *memory, size_t length)
{
    pool_put(&((struct target_server *)user)->pool, memory, length);
}

/* ---- making ---- */

static const struct tgt_ops tgt_ops = {
    .login = {.lookup = on_lookup, .secret = on_secret, .random = on_random},
    .target = on_target,
    .target_address = on_target_address,
    .session_opened = on_session_opened,
    .session_closed = on_session_closed,
    .tasks_cleared = on_tasks_cleared,
    .command = on_command,
    .data = on_data,
    .abort = on_abort,
    .released = on_released,
    .tmf = on_tmf,
    .want_send = on_want_send,
    .want_recv = on_want_recv,
    .close = on_close,
    .hold = on_hold,
    .unhold = on_unhold,
};

static void fill_tgt_opts(const struct target_server *s, struct tgt_opts *o)
{
    const size_t area = sizeof(struct command) > sizeof(struct management)
                            ? sizeof(struct command)
                            : sizeof(struct management);

    memset(o, 0, sizeof(*o));
    o->ops = tgt_ops;
    o->user = (void *)(uintptr_t)s;
    iscsi_wishes_default(&o->wishes);
    o->wishes.header_digest = s->opts.header_digest;
    o->wishes.data_digest = s->opts.data_digest;
    o->wishes.params.max_connections = 8;
    o->wishes.params.error_recovery_level = 2; /* as far as it is built */
    o->wishes.params.task_reporting = ISCSI_REPORT_FAST_ABORT;
    o->depth = s->opts.depth;
    o->task_user_bytes = area;
    o->sessions_max = s->opts.sessions;
    o->conns_max = s->opts.connections;
    o->immediate_max = 32;
    o->logins_max = s->opts.connections < 64 ? s->opts.connections : 64;
    o->logins_max_peer = o->logins_max;
    o->login_timeout_ns = 15 * SECOND;
    o->login_bytes_max = 64 << 10;
    o->ping_idle_ns = 30 * SECOND;
    o->ping_timeout_ns = 30 * SECOND;
    o->data_timeout_ns = 30 * SECOND;
}

struct target_server *target_server_new(struct net_reactor *r,
                                        const struct target_server_opts *opts, struct lp_error *err)
{
    struct target_server *s = calloc(1, sizeof(*s));
    struct tgt_opts tgt;

    if (!s) {
        lp_error_sys(err, ENOMEM, "iSCSI target");
        return NULL;
    }
    s->reactor = r;
    s->opts = *opts;
    s->opts.depth = opts->depth ? opts->depth : 128;
    s->opts.sessions = opts->sessions ? opts->sessions : 1024;
    s->opts.connections = opts->connections ? opts->connections : 1024;
    s->pool.limit = opts->memory ? opts->memory : 256 << 20;
    s->timer = (struct net_timer){.callback = on_timer, .user = s};
    fill_tgt_opts(s, &tgt);
    s->tgt = tgt_new(&tgt, err);
    if (!s->tgt) {
        free(s);
        return NULL;
    }
    if (net_timer_set(r, &s->timer, net_now_exact(r)) < 0) {
        lp_error_sys(err, ENOMEM, "iSCSI target");
        tgt_free(s->tgt);
        free(s);
        return NULL;
    }
    return s;
}

static void target_free(struct target *t)
{
    for (unsigned i = 0; i < t->lun_count; i++)
        lu_free(t->luns[i].lu);
    if (t->absent)
        lu_free(t->absent);
    for (unsigned i = 0; i < t->user_count; i++) {
        free((char *)(uintptr_t)t->users[i].name);
        free((char *)(uintptr_t)t->users[i].secret);
        free((char *)(uintptr_t)t->users[i].initiator_name);
    }
    free((char *)(uintptr_t)t->mutual.name);
    free((char *)(uintptr_t)t->mutual.secret);
    for (unsigned i = 0; i < t->initiator_count; i++)
        free(t->initiators[i]);
    free(t->users);
    free(t->initiators);
    free(t->luns);
    free(t);
}

void target_server_free(struct target_server *s)
{
    if (!s)
        return;
    while (s->portals) {
        struct portal *p = s->portals;

        s->portals = p->next;
        net_listener_close(p->listener);
        free(p);
    }
    while (s->connections)
        connection_free(s->connections);
    while (disks_work(s))
        ;
    tgt_free(s->tgt);
    while (s->targets) {
        struct target *t = s->targets;

        s->targets = t->next;
        target_free(t);
    }
    net_timer_cancel(s->reactor, &s->timer);
    pool_free(&s->pool);
    free(s);
}

int target_listen(struct target_server *s, const char *host, uint16_t port, uint16_t group,
                  struct lp_error *err)
{
    const struct net_tcp_opts tcp = {.keepalive_idle_s = 60};
    struct portal *p = calloc(1, sizeof(*p)), **last = &s->portals;

    if (!p || s->portal_count == LU_PORTS_MAX) {
        free(p);
        return lp_error_set(err, LP_ERROR_USAGE, 0, "there are too many portals, %d at most",
                            LU_PORTS_MAX);
    }
    p->server = s;
    p->group = group;
    p->listener = net_listen(s->reactor, host, port, &tcp, on_accepted, p, err);
    if (!p->listener) {
        free(p);
        return -1;
    }
    while (*last)
        last = &(*last)->next;
    *last = p;
    s->ports[s->portal_count] = (struct lu_port){(uint16_t)(s->portal_count + 1), group};
    p->relative_port = s->ports[s->portal_count++].relative_id;
    return net_listener_port(p->listener);
}

/* ---- running ---- */

void target_server_stop(struct target_server *s)
{
    s->stop = true;
    net_wake(s->reactor);
}

void target_server_turn(struct target_server *s, uint64_t timeout_ns)
{
    /* While a disk works, look after it between turns. */
    net_run_once(s->reactor, disks_work(s) ? 0 : timeout_ns);
    server_settle(s);
}

void target_server_run(struct target_server *s, unsigned grace_s)
{
    uint64_t until;

    while (!s->stop)
        target_server_turn(s, NET_NEVER);
    for (struct portal *p = s->portals; p; p = p->next)
        net_listener_pause(p->listener, true);
    until = net_now_exact(s->reactor) + grace_s * SECOND;
    tgt_stop(s->tgt, (uint16_t)grace_s);
    server_settle(s);
    while (s->connections && net_now(s->reactor) < until)
        target_server_turn(s, until - net_now(s->reactor));
}

/* ---- faults ---- */

unsigned target_drop_connections(struct target_server *s)
{
    unsigned n = 0;

    while (s->connections) {
        connection_free(s->connections);
        n++;
    }
    return n;
}

void target_stall(struct target_server *s, bool stalled)
{
    s->stalled = stalled;
    for (struct connection *c = s->connections; c && !stalled; c = c->next)
        net_stream_want_read(c->stream);
}

void target_refuse(struct target_server *s, uint16_t status)
{
    s->refuse = status;
}

void target_swallow(struct target_server *s, unsigned commands)
{
    s->swallow = commands;
}

void target_busy(struct target_server *s, uint8_t status, unsigned commands)
{
    s->busy_status = status;
    s->busy_count = commands;
}

const struct tgt_counters *target_counters(const struct target_server *s)
{
    return tgt_counters(s->tgt);
}
