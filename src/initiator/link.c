/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a link: connecting, logging in, keeping alive, beginning again. */
#include "initiator/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "initiator/link_int.h"

#define SECOND 1000000000ull

void link_opts_default(struct link_opts *opts)
{
    memset(opts, 0, sizeof(*opts));
    opts->port = ISCSI_PORT;
    opts->depth = 128;
    iscsi_wishes_default(&opts->login.wishes);
    opts->login.portal_group_tag = -1;
    opts->connect.attempt_ns = 5 * SECOND;
    opts->connect.total_ns = 15 * SECOND;
    opts->connect.tcp.keepalive_idle_s = 30;
    opts->login_ns = 15 * SECOND;
    opts->hold_ns = 120 * SECOND;
    opts->command_ns = 30 * SECOND;
    opts->abort_ns = 5 * SECOND;
    opts->ping_idle_ns = 5 * SECOND;
    opts->ping_ns = 5 * SECOND;
    opts->backoff_max_ns = 10 * SECOND;
}

void link_log(struct link *link, const char *fmt, ...)
{
    char sentence[640];
    va_list args;

    if (!link->opts.log)
        return;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    link->opts.log(link->opts.user, sentence);
}

static uint64_t now(struct link *link)
{
    return net_now(link->reactor);
}

/* ---- the timer ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_time(struct link *link)
{
    uint64_t at = commands_deadline(link);

    if (link->state == LINK_DOWN)
        at = earlier(at, link->connect_at);
    if (link->session)
        at = earlier(at, ini_session_deadline(link->session));
    if (link->state == LINK_UP && link->opts.ping_idle_ns && !link->ping_out)
        at = earlier(at, link->heard_ns + link->opts.ping_idle_ns);
    if (link->finished.count > 0)
        at = now(link);
    return at;
}

/* Setting it costs little, leaving it costs nothing: it may go off too early, never too late. */
static void arm(struct link *link)
{
    uint64_t at = next_time(link);

    if (at == NET_NEVER && link->timer.index)
        net_timer_cancel(link->reactor, &link->timer);
    else if (at != NET_NEVER && (!link->timer.index || at < link->timer.at))
        net_timer_set(link->reactor, &link->timer, at); /* it has its place since link_open() */
}

/* ---- ending an attempt ---- */

static void fail(struct link *link, const struct lp_error *why)
{
    if (link->state == LINK_FAILED || link->state == LINK_CLOSING)
        return;
    link->state = LINK_FAILED;
    link->error = *why;
    commands_fail_all(link, why->code == ESTALE ? -ESTALE : -EIO);
    if (link->opts.failed)
        link->opts.failed(link->opts.user, link, &link->error);
}

static void set_home(struct link *link, const char *host, uint16_t port)
{
    if (host != link->home)
        snprintf(link->home, sizeof(link->home), "%s", host);
    link->home_port = port;
}

/* The attempt or session is over; when is the next one? */
static void begin_again(struct link *link)
{
    uint64_t wait = link->backoff_ns, agreed = link->wait_s * SECOND;
    bool at_home = link->hops == 0;

    if (link->state == LINK_FAILED || link->state == LINK_CLOSING)
        return;
    if (link->login_final && !link->was_up) {
        struct lp_error why = link->error;

        fail(link, &why);
        return;
    }
    link->state = LINK_DOWN;
    if (link->redirected) {
        link->redirected = false;
        link->connect_at = now(link);
        return;
    }
    link->stats.failures++;
    if (at_home && !link->logged_in)
        set_home(link, link->opts.host, link->opts.port);
    /* The target may still be where it was before a redirection for a time. */
    snprintf(link->host, sizeof(link->host), "%s", link->home);
    link->port = link->home_port;
    link->hops = 0;
    link->moving = false;
    link->connect_at = now(link) + (agreed > wait ? agreed : wait);
    link->wait_s = 0;
    link->backoff_ns = earlier(link->backoff_ns * 2, link->opts.backoff_max_ns);
}

static void end_session(struct link *link)
{
    bool was_logged_in = link->state == LINK_UP || link->state == LINK_CHECKING;

    link->over = false;
    if (link->conn)
        ini_conn_free(link->conn);
    ini_session_free(link->session);
    link->conn = NULL;
    link->session = NULL;
    link->ping_out = link->reset_out = false;
    link->aborts_by_ns = 0;
    begin_again(link);
    commands_fail_probes(link);
    if (was_logged_in && link->opts.down)
        link->opts.down(link->opts.user, link);
}

void link_drop(struct link *link, const char *why)
{
    if (link->drop_stream || !link->stream)
        return;
    link->stats.drops++;
    link_log(link, "%s: %s", link_portal(link), why);
    if (link->state == LINK_UP || link->state == LINK_CHECKING)
        lp_error_set(&link->error, LP_ERROR_PEER, ECONNRESET, "%s", why);
    link->drop_stream = true;
}

void link_settle(struct link *link)
{
    do {
        if (link->drop_stream) {
            link->drop_stream = false;
            net_stream_close(link->stream);
            link->stream = NULL;
            if (link->conn)
                ini_conn_closed(link->conn);
        }
        if (link->over && !link->stream)
            end_session(link);
        commands_pump(link);
    } while (commands_tell(link) || link->drop_stream);
    arm(link);
}

/* ---- the stream ---- */

static unsigned on_recv_space(void *user, struct iovec *iov, unsigned max)
{
    return ini_conn_recv_space(((struct link *)user)->conn, iov, max);
}

static void on_received(void *user, size_t n)
{
    struct link *link = user;

    link->heard_ns = now(link);
    ini_conn_received(link->conn, n, link->heard_ns);
    link_settle(link);
}

static unsigned on_send_data(void *user, struct iovec *iov, unsigned max)
{
    return ini_conn_send_data(((struct link *)user)->conn, iov, max);
}

static void on_sent(void *user, size_t n)
{
    struct link *link = user;

    ini_conn_sent(link->conn, n);
    link_settle(link);
}

static void on_closed(void *user, const struct lp_error *why)
{
    struct link *link = user;

    link_drop(link, why->msg);
    link_settle(link);
}

static const struct net_stream_ops stream_ops = {on_recv_space, on_received, on_send_data, on_sent,
                                                 on_closed};

/* ---- events of the machine; they only take note ---- */

static void on_logged_in(struct link *link)
{
    link->stats.logins++;
    link->state = LINK_CHECKING;
    link->logged_in = true;
    link->tried_twice = false;
    if (link->moving)
        set_home(link, link->host, link->port);
    link->limit = link->opts.depth;
    link->wait_s = ini_session_params(link->session)->default_time2wait;
    if (link->opts.checking)
        link->opts.checking(link->opts.user, link);
    else
        link_ready(link);
}

static void on_login_failed(struct link *link, const struct ini_event *event)
{
    lp_error_set(&link->error, LP_ERROR_PEER, event->login.status ? ECONNREFUSED : EPROTO, "%s",
                 event->login.sentence);
    link_log(link, "%s", event->login.sentence);
    if (event->login.retry_md5 && !link->opts.login.chap_algorithms) {
        link_log(link, "trying once more with the CHAP algorithm MD5 alone");
        link->opts.login.chap_algorithms = "5";
        link->redirected = true; /* to the same place, at once */
        return;
    }
    if (event->login.status == ISCSI_LOGIN_TOO_MANY_CONNECTIONS && !link->tried_twice) {
        link_log(link, "trying once more, as the target has dropped our old session by now");
        link->tried_twice = link->redirected = true;
        return;
    }
    link->login_final = !event->login.retryable;
}

static void on_redirect(struct link *link, const struct ini_event *event)
{
    uint16_t port = ISCSI_PORT;
    int tag;

    if (++link->hops > LINK_HOPS_MAX) {
        lp_error_set(&link->error, LP_ERROR_PEER, ELOOP,
                     "the target redirects in a ring, at last to %s; correct the redirection at "
                     "the target",
                     event->redirect.address);
        link->login_final = true;
        return;
    }
    if (net_address_split(event->redirect.address, link->host, sizeof(link->host), &port, &tag,
                          &link->error) < 0) {
        link->login_final = true;
        return;
    }
    link->port = port;
    link->redirected = true;
    link->moving = event->redirect.permanent;
    link_log(link, "redirected to %s", event->redirect.address);
}

static void on_async(struct link *link, const struct ini_event *event)
{
    struct scsi_sense sense;

    if (event->async.event != ISCSI_ASYNC_SCSI) {
        link_log(link, "the target sent the asynchronous event %u", event->async.event);
        return;
    }
    if (link->opts.attention &&
        scsi_sense_unpack(&sense, event->async.sense, event->async.sense_length))
        link->opts.attention(link->opts.user, link, scsi_sense_asc(&sense));
}

static void on_conn_close(struct link *link, const struct ini_event *event)
{
    bool login = link->state == LINK_LOGIN;

    if (event->close.waits)
        link->wait_s = event->close.time2wait;
    if (!login && event->close.why != INI_CLOSE_LOGGED_OUT)
        lp_error_set(&link->error, LP_ERROR_PEER, ECONNRESET, "%s", event->close.sentence);
    link->drop_stream = true;
    if (event->close.why != INI_CLOSE_LOGGED_OUT && event->close.why != INI_CLOSE_LOGIN) {
        link->stats.drops++;
        link_log(link, "connection to %s given up: %s", link_portal(link), event->close.sentence);
    }
}

static void on_event(void *user, const struct ini_event *event)
{
    struct link *link = user;

    switch (event->type) {
    case INI_EVENT_WANT_SEND:
        if (link->stream)
            net_stream_want_send(link->stream);
        break;
    case INI_EVENT_LOGGED_IN:
        on_logged_in(link);
        break;
    case INI_EVENT_LOGIN_FAILED:
        on_login_failed(link, event);
        break;
    case INI_EVENT_REDIRECT:
        on_redirect(link, event);
        break;
    case INI_EVENT_ASYNC:
        on_async(link, event);
        break;
    case INI_EVENT_TASK_LATE:
        commands_late(link, event->task);
        break;
    case INI_EVENT_OPERATION_LATE:
        commands_tmf_late(link, event->tmf);
        break;
    case INI_EVENT_CONN_CLOSE:
        on_conn_close(link, event);
        break;
    case INI_EVENT_SESSION_DROPPED:
    case INI_EVENT_LOGGED_OUT:
        link->over = true;
        break;
    }
}

/* ---- connecting ---- */

static void attempt_failed(struct link *link, const struct lp_error *why)
{
    link->error = *why;
    link_log(link, "%s", why->msg);
    begin_again(link);
}

static void on_connected(void *user, struct net_stream *stream, const struct lp_error *why)
{
    struct link *link = user;
    struct ini_opts opts = {
        .login = link->opts.login,
        .allow_short_secrets = link->opts.allow_short_secrets,
        .depth = link->opts.depth,
        .event = on_event,
        .user = link,
    };
    struct lp_error err;

    link->connecting = NULL;
    if (!stream) {
        attempt_failed(link, why);
        link_settle(link);
        return;
    }
    link->stream = stream;
    link->login_final = link->logged_in = false;
    link->session = ini_session_new(&opts, &err);
    link->conn = link->session ? ini_conn_new(link->session, 0, &err) : NULL;
    if (!link->conn) {
        net_stream_close(stream);
        link->stream = NULL;
        if (link->session)
            ini_session_free(link->session);
        link->session = NULL;
        link->login_final = true;
        attempt_failed(link, &err);
        link_settle(link);
        return;
    }
    link->state = LINK_LOGIN;
    link->heard_ns = now(link);
    net_stream_start(stream, &stream_ops, link);
    ini_conn_start(link->conn, now(link) + link->opts.login_ns);
    link_settle(link);
}

static void connect_now(struct link *link)
{
    struct lp_error err;

    link->state = LINK_CONNECTING;
    link->logged_in = false;
    link->connecting = net_connect(link->reactor, link->host, link->port, &link->opts.connect,
                                   on_connected, link, &err);
    if (!link->connecting)
        attempt_failed(link, &err);
}

/* ---- keeping alive ---- */

static void on_pong(struct ini_ping *ping)
{
    struct link *link = ping->user;

    link->ping_out = false;
    if (ping->result == INI_OK)
        link->stats.ping_ns = net_now_exact(link->reactor) - link->ping_sent_ns;
}

static void ping_if_idle(struct link *link)
{
    if (link->state != LINK_UP || link->ping_out || !link->opts.ping_idle_ns ||
        now(link) < link->heard_ns + link->opts.ping_idle_ns)
        return;
    link->stats.pings++;
    link->ping_out = true;
    link->ping_sent_ns = now(link);
    link->ping = (struct ini_ping){
        .deadline_ns = now(link) + link->opts.ping_ns,
        .done = on_pong,
        .user = link,
    };
    ini_ping(link->conn, &link->ping);
}

static void on_timer(struct net_timer *timer)
{
    struct link *link = timer->user;

    if (link->session)
        ini_session_tick(link->session, now(link));
    if (link->state == LINK_DOWN && now(link) >= link->connect_at)
        connect_now(link);
    ping_if_idle(link);
    commands_tick(link);
    link_settle(link);
}

/* ---- opening and closing ---- */

struct link *link_open(struct net_reactor *r, const struct link_opts *opts, struct lp_error *err)
{
    struct link *link;

    if (login_ini_check(&opts->login, opts->allow_short_secrets, err) < 0)
        return NULL;
    link = calloc(1, sizeof(*link));
    if (!link) {
        lp_error_sys(err, ENOMEM, "iSCSI session");
        return NULL;
    }
    link->reactor = r;
    link->opts = *opts;
    link->backoff_ns = SECOND / 2;
    link->limit = opts->depth;
    link->was_up = opts->seen_before;
    link->timer = (struct net_timer){.callback = on_timer, .user = link};
    snprintf(link->host, sizeof(link->host), "%s", opts->host);
    link->port = opts->port;
    set_home(link, opts->host, opts->port);
    link->connect_at = net_now_exact(r);
    if (net_timer_set(r, &link->timer, link->connect_at) < 0) {
        lp_error_sys(err, ENOMEM, "iSCSI session");
        free(link);
        return NULL;
    }
    return link;
}

void link_ready(struct link *link)
{
    if (link->state != LINK_CHECKING)
        return;
    link->state = LINK_UP;
    link->was_up = true;
    link->hold_told = false;
    link->backoff_ns = SECOND / 2;
    link->hops = 0;
    link->heard_ns = now(link);
    net_timer_set(link->reactor, &link->timer, now(link)); /* what is held goes from there */
}

void link_refuse(struct link *link, const struct lp_error *why)
{
    struct lp_error reason = *why;

    if (link->stream)
        link->drop_stream = true;
    fail(link, &reason);
    net_timer_set(link->reactor, &link->timer, now(link));
}

void link_postpone(struct link *link, const struct lp_error *why)
{
    if (link->state != LINK_CHECKING)
        return;
    link_drop(link, why->msg);
    link->error = *why;
    net_timer_set(link->reactor, &link->timer, now(link));
}

static void on_logout(struct ini_logout *logout)
{
    ((struct link *)logout->user)->logged_out = true;
}

static void log_out(struct link *link, uint64_t wait_ns)
{
    uint64_t until = net_now_exact(link->reactor) + wait_ns;

    link->logout = (struct ini_logout){
        .reason = ISCSI_LOGOUT_SESSION,
        .deadline_ns = until,
        .done = on_logout,
        .user = link,
    };
    ini_logout(link->session, &link->logout);
    while (link->stream && net_now(link->reactor) < until)
        net_run_once(link->reactor, until - net_now(link->reactor));
}

void link_close(struct link *link, uint64_t wait_ns)
{
    bool up = link && (link->state == LINK_UP || link->state == LINK_CHECKING);

    if (!link)
        return;
    link->state = LINK_CLOSING;
    commands_fail_all(link, -ECANCELED);
    if (up && wait_ns > 0 && link->stream)
        log_out(link, wait_ns);
    if (link->connecting)
        net_connect_cancel(link->connecting);
    if (link->stream)
        link->drop_stream = true;
    link_settle(link);
    if (link->session)
        end_session(link);
    commands_fail_all(link, -ECANCELED); /* what the end of the session gave back */
    commands_tell(link);
    net_timer_cancel(link->reactor, &link->timer);
    free(link);
}

enum link_state link_state(const struct link *link)
{
    return link->state;
}

const struct lp_error *link_error(const struct link *link)
{
    return &link->error;
}

struct ini_session *link_session(struct link *link)
{
    return link->state == LINK_UP || link->state == LINK_CHECKING ? link->session : NULL;
}

struct ini_conn *link_conn(struct link *link)
{
    return link_session(link) ? link->conn : NULL;
}

const char *link_portal(const struct link *link)
{
    return link->stream ? net_stream_peer(link->stream) : "nowhere";
}

struct net_reactor *link_reactor(struct link *link)
{
    return link->reactor;
}

const struct link_stats *link_stats(const struct link *link)
{
    return &link->stats;
}

void link_flush(struct link *link)
{
    net_flush(link->reactor);
}
