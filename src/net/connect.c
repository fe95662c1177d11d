/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting: look the name up, then race its addresses.
 *
 * One attempt begins when the one before has failed, or has been silent for STAGGER_NS, and they go
 * on side by side (RFC 8305 5). In sequence, each with its own time-out, a host whose first address
 * is dead would cost ten seconds at each reconnection; here it costs a quarter of one.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/net_int.h"

#define STAGGER_NS UINT64_C(250000000)
#define ATTEMPT_NS UINT64_C(10000000000)
#define TOTAL_NS UINT64_C(30000000000)

enum {
    ADDRESSES_MAX = 16, /* of one name; more are not tried */
    ADDRESSES_TOLD = 4, /* in the sentence about a failure */
};

struct attempt {
    struct net_connect *connect;
    struct net_watch watch;
    struct net_timer timer; /* it has been silent for too long */
    const struct addrinfo *address;
    int fd; /* -1: not begun, or over */
    int error;
    char text[NET_ADDRESS_MAX];
};

struct net_connect {
    struct net_reactor *reactor;
    struct net_connect_opts opts;
    void (*done)(void *user, struct net_stream *s, const struct lp_error *why);
    void *user;
    char *host; /* without brackets */
    char port[8];

    struct net_lookup *lookup;
    struct addrinfo *list;
    struct attempt attempts[ADDRESSES_MAX];
    unsigned count, begun, running;
    struct net_timer next;  /* begins, and later begins the next attempt */
    struct net_timer total; /* all of it has taken too long */
};

/* ---- ending ---- */

static void stop(struct attempt *a)
{
    net_timer_cancel(a->connect->reactor, &a->timer);
    if (a->fd < 0)
        return;
    net_watch_stop(a->connect->reactor, &a->watch);
    close(a->fd);
    a->fd = -1;
    a->connect->running--;
}

static void connect_free(struct net_connect *c)
{
    for (unsigned i = 0; i < c->begun; i++)
        stop(&c->attempts[i]);
    if (c->lookup)
        net_lookup_abandon(c->lookup);
    net_timer_cancel(c->reactor, &c->next);
    net_timer_cancel(c->reactor, &c->total);
    if (c->list)
        freeaddrinfo(c->list);
    free(c->host);
    free(c);
}

void net_connect_cancel(struct net_connect *c)
{
    if (c)
        connect_free(c);
}

/* Frees it first: the callback may do what it likes. */
static void tell(struct net_connect *c, struct net_stream *s, const struct lp_error *why)
{
    void (*done)(void *user, struct net_stream *s, const struct lp_error *why) = c->done;
    void *user = c->user;

    connect_free(c);
    done(user, s, why);
}

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + used, size - used, fmt, ap);
    va_end(ap);
}

static const char *advice(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return "is the service running there, and is that its port?";
    case ETIMEDOUT:
        return "is the host switched on, and does a firewall stand between?";
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
        return "check this machine's network and its routes";
    case EACCES:
    case EPERM:
        return "a firewall of this machine forbids it";
    case EMFILE:
    case ENFILE:
        return "raise the limit on open files (ulimit -n)";
    default:
        return "check the address, the network, and the service there";
    }
}

/* The addresses that have been begun have all failed, or the time is over. The first one's error
 * gives the advice: it is the address that the system thinks best. */
static void fail(struct net_connect *c)
{
    char tried[400] = "";
    struct lp_error why;
    int error = c->attempts[0].error;

    for (unsigned i = 0; i < c->begun && i < ADDRESSES_TOLD; i++) {
        const struct attempt *a = &c->attempts[i];

        add(tried, sizeof(tried), "%s%s: %s", i ? ", " : "", a->text,
            a->error == ETIMEDOUT ? "no answer" : strerror(a->error));
    }
    if (c->begun > ADDRESSES_TOLD)
        add(tried, sizeof(tried), ", and %u more", c->begun - ADDRESSES_TOLD);
    lp_error_set(&why, LP_ERROR_SYS, error, "cannot connect to %.80s (%s); %s", c->host, tried,
                 advice(error));
    tell(c, NULL, &why);
}

static void too_late(struct net_timer *timer)
{
    struct net_connect *c = timer->user;
    struct lp_error why;

    if (c->begun == 0) {
        lp_error_set(
            &why, LP_ERROR_SYS, ETIMEDOUT,
            "the name \"%.200s\" cannot be looked up: no answer; check this machine's name "
            "servers, or write the address in numbers",
            c->host);
        tell(c, NULL, &why);
        return;
    }
    for (unsigned i = 0; i < c->begun; i++)
        if (c->attempts[i].fd >= 0)
            c->attempts[i].error = ETIMEDOUT;
    fail(c);
}

/* ---- attempts ---- */

static void begin_next(struct net_connect *c);

/* May free c. */
static void failed(struct attempt *a, int error)
{
    struct net_connect *c = a->connect;

    stop(a);
    a->error = error;
    if (c->begun < c->count)
        begin_next(c);
    else if (c->running == 0)
        fail(c);
}

static void silent(struct net_timer *timer)
{
    failed(timer->user, ETIMEDOUT);
}

/* A socket that asks for a free port of its own range can be given the one that it calls, and then
 * talks to itself. */
static bool is_itself(int fd)
{
    struct sockaddr_storage here, there;
    socklen_t here_length = sizeof(here), there_length = sizeof(there);

    memset(&here, 0, sizeof(here));
    memset(&there, 0, sizeof(there));
    return getsockname(fd, (struct sockaddr *)&here, &here_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_length) == 0 &&
           here_length == there_length && memcmp(&here, &there, here_length) == 0;
}

/* May free c. */
static void connected(struct attempt *a)
{
    struct net_connect *c = a->connect;
    struct net_stream *s;
    struct lp_error why;
    int fd = a->fd;

    if (is_itself(fd)) {
        failed(a, ECONNREFUSED);
        return;
    }
    net_watch_stop(c->reactor, &a->watch);
    a->fd = -1; /* the stream's now */
    c->running--;
    s = net_stream_new(c->reactor, fd, &c->opts.tcp);
    if (!s)
        lp_error_sys(&why, ENOMEM, "connection to %.200s", c->host);
    tell(c, s, s ? NULL : &why);
}

static void answered(struct net_watch *watch, int revents)
{
    struct attempt *a = watch->user;
    int error = 0;
    socklen_t length = sizeof(error);

    (void)revents;
    if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        error = errno;
    if (error)
        failed(a, error);
    else
        connected(a);
}

/* 0: it is under way or there, or errno. */
static int begin(struct attempt *a)
{
    struct net_connect *c = a->connect;

    a->fd = socket(a->address->ai_family, SOCK_STREAM, 0);
    if (a->fd < 0)
        return errno;
    c->running++;
    if (net_prepare_fd(a->fd) < 0)
        return errno;
    net_tcp_buffers(a->fd, &c->opts.tcp);
    if (connect(a->fd, a->address->ai_addr, a->address->ai_addrlen) < 0 && errno != EINPROGRESS &&
        errno != EINTR)
        return errno;
    /* Also when it is there at once: the descriptor is writable then. */
    if (net_watch_start(c->reactor, &a->watch, a->fd, POLLOUT, NULL) < 0 ||
        net_timer_set(c->reactor, &a->timer, net_now(c->reactor) + c->opts.attempt_ns) < 0)
        return ENOMEM;
    return 0;
}

/* May free c. */
static void begin_next(struct net_connect *c)
{
    struct attempt *a = &c->attempts[c->begun++];
    int error = begin(a);

    net_timer_cancel(c->reactor, &c->next);
    if (error) {
        failed(a, error); /* goes on with the next one */
        return;
    }
    if (c->begun < c->count)
        net_timer_set(c->reactor, &c->next, net_now(c->reactor) + STAGGER_NS);
}

static bool known(const struct net_connect *c, const struct addrinfo *address)
{
    for (unsigned i = 0; i < c->count; i++) {
        const struct addrinfo *other = c->attempts[i].address;

        if (other->ai_addrlen == address->ai_addrlen &&
            memcmp(other->ai_addr, address->ai_addr, address->ai_addrlen) == 0)
            return true;
    }
    return false;
}

/* Takes over the list. May free c. */
static void race(struct net_connect *c, struct addrinfo *list)
{
    c->list = list;
    for (const struct addrinfo *at = list; at && c->count < ADDRESSES_MAX; at = at->ai_next) {
        struct attempt *a = &c->attempts[c->count];

        if (known(c, at))
            continue; /* a hosts file may say the same twice */
        *a = (struct attempt){.connect = c, .address = at, .fd = -1};
        a->watch = (struct net_watch){.callback = answered, .user = a};
        a->timer = (struct net_timer){.callback = silent, .user = a};
        net_address_text(at->ai_addr, at->ai_addrlen, a->text);
        c->count++;
    }
    begin_next(c);
}

/* ---- names ---- */

static void no_address(struct net_connect *c, int error)
{
    struct lp_error why;

    if (error == EAI_MEMORY)
        lp_error_sys(&why, ENOMEM, "looking up \"%.200s\"", c->host);
    else
        lp_error_set(&why, LP_ERROR_SYS, EHOSTUNREACH,
                     "the name \"%.200s\" cannot be looked up: %s; check its spelling and this "
                     "machine's name servers, or write the address in numbers",
                     c->host, gai_strerror(error));
    tell(c, NULL, &why);
}

static void looked_up(void *user, int error, struct addrinfo *list)
{
    struct net_connect *c = user;

    c->lookup = NULL;
    if (error || !list)
        no_address(c, error ? error : EAI_NONAME);
    else
        race(c, list);
}

/* A host with a colon, or of digits and dots, is an address that somebody got wrong. Asking a name
 * server for it would take long and say nothing useful. */
static bool is_meant_as_address(const char *host)
{
    return strchr(host, ':') || host[strspn(host, "0123456789.")] == '\0';
}

/* From the loop. May free c. */
static void start(struct net_timer *timer)
{
    struct net_connect *c = timer->user;
    struct addrinfo *list = NULL;
    struct lp_error why;

    if (c->count > 0) {
        begin_next(c); /* the one before has been silent */
        return;
    }
    if (net_numeric(c->host, c->port, false, &list) == 0) {
        race(c, list);
    } else if (is_meant_as_address(c->host)) {
        lp_error_set(&why, LP_ERROR_USAGE, 0,
                     "\"%.200s\" is no IPv4 or IPv6 address of this network; write 192.0.2.1, "
                     "2001:db8::1, fe80::1%%eth0 or a name",
                     c->host);
        tell(c, NULL, &why);
    } else {
        c->lookup = net_lookup_start(c->reactor, c->host, c->port, looked_up, c);
        if (!c->lookup)
            no_address(c, EAI_MEMORY);
    }
}

/* ---- making ---- */

/* "[::1]" as "::1". */
static char *bare(const char *host)
{
    size_t length = strlen(host);
    char *copy;

    if (length < 2 || host[0] != '[' || host[length - 1] != ']')
        return strdup(host);
    copy = strdup(host + 1);
    if (copy)
        copy[length - 2] = '\0';
    return copy;
}

struct net_connect *net_connect(struct net_reactor *r, const char *host, uint16_t port,
                                const struct net_connect_opts *opts,
                                void (*done)(void *user, struct net_stream *s,
                                             const struct lp_error *why),
                                void *user, struct lp_error *err)
{
    struct net_connect *c = calloc(1, sizeof(*c));
    uint64_t now = net_now_exact(r);

    if (!c)
        goto out;
    c->reactor = r;
    c->done = done;
    c->user = user;
    if (opts)
        c->opts = *opts;
    if (c->opts.attempt_ns == 0)
        c->opts.attempt_ns = ATTEMPT_NS;
    if (c->opts.total_ns == 0)
        c->opts.total_ns = TOTAL_NS;
    c->next = (struct net_timer){.callback = start, .user = c};
    c->total = (struct net_timer){.callback = too_late, .user = c};
    snprintf(c->port, sizeof(c->port), "%u", port);
    c->host = bare(host);
    if (c->host && net_timer_set(r, &c->next, now) == 0 &&
        net_timer_set(r, &c->total, now + c->opts.total_ns) == 0)
        return c;
    connect_free(c);
out:
    lp_error_sys(err, ENOMEM, "connection to %.200s", host);
    return NULL;
}
