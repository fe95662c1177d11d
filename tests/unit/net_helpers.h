/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of net share: a reactor for each engine, and an end of a stream that is a script.
 */
#ifndef TESTS_NET_HELPERS_H
#define TESTS_NET_HELPERS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Each test once for each engine. */
#define WITH_POLL(name)                                                                            \
    {                                                                                              \
#name " (poll)", name, set_up, tear_down, "poll"                                           \
    }
#define WITH_URING(name)                                                                           \
    {                                                                                              \
#name " (uring)", name, set_up, tear_down, "uring"                                         \
    }
#define BOTH(name) WITH_POLL(name), WITH_URING(name)

#define SECOND UINT64_C(1000000000)

struct fixture {
    struct net_reactor *r; /* NULL: the engine does not work here */
    struct lp_error why;
    bool time_stands; /* now counts, not the system's clock */
    uint64_t now;
};

static inline uint64_t fixture_clock(void *user)
{
    const struct fixture *f = user;

    return f->time_stands ? f->now : clock_now_ns();
}

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct net_reactor_opts opts = {.engine = *state, .clock = fixture_clock, .clock_user = f};

    if (!f)
        return -1;
    f->r = net_reactor_new(&opts, &f->why);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    net_reactor_free(f->r);
    free(f);
    return 0;
}

static inline struct net_reactor *reactor(void **state)
{
    struct fixture *f = *state;

    if (!f->r) {
        print_message("skipped: %s\n", f->why.msg);
        skip();
    }
    return f->r;
}

/* From now on time goes on only when the test says so. */
static inline void stop_time(void **state)
{
    struct fixture *f = *state;

    f->now = clock_now_ns();
    f->time_stands = true;
    net_now_exact(f->r);
}

/* Runs the loop until the condition holds; far longer than anything here takes is a failure. */
#define RUN_UNTIL(r, condition)                                                                    \
    do {                                                                                           \
        uint64_t end_ = clock_now_ns() + 20 * SECOND;                                              \
        while (!(condition)) {                                                                     \
            if (clock_now_ns() > end_)                                                             \
                fail_msg("%s:%d: never came: %s", __FILE__, __LINE__, #condition);                 \
            net_run_once(r, SECOND / 50);                                                          \
        }                                                                                          \
    } while (0)

/* ---- one end of a stream ---- */

struct end {
    struct net_stream *s;
    struct rng *rng; /* NULL: segments as large as can be */
    size_t cut;      /* segments of at most so many bytes; 0: all */
    bool refuse;     /* recv_space says 0 */
    uint8_t *in;     /* what came */
    size_t in_count, in_room;
    const uint8_t *out; /* what goes */
    size_t out_count, out_size;
    struct end *echo; /* what comes in goes out there */
    unsigned offers;  /* calls of send_data */
    int closed;       /* how often */
    struct lp_error why;
    /* Called in the callback of that name, when set; true: the end is gone. */
    const char *hook_at;
    bool (*hook)(struct end *e);
    void *hook_user;
};

static inline bool hooked(struct end *e, const char *where)
{
    return e->hook && strcmp(e->hook_at, where) == 0 && e->hook(e);
}

/* Cuts [base, base + n) to segments. */
static inline unsigned cut_up(struct end *e, uint8_t *base, size_t n, struct iovec *iov,
                              unsigned max)
{
    unsigned count = 0;

    if (e->rng && max > 1)
        max = 1 + (unsigned)rng_below(e->rng, max);
    while (n > 0 && count < max) {
        size_t most = e->cut && e->cut < n ? e->cut : n;
        size_t length = e->rng ? 1 + rng_below(e->rng, most) : most;

        iov[count++] = (struct iovec){base, length};
        base += length;
        n -= length;
    }
    return count;
}

static inline unsigned end_space(void *user, struct iovec *iov, unsigned max)
{
    struct end *e = user;

    if (hooked(e, "recv_space") || e->refuse)
        return 0;
    return cut_up(e, e->in + e->in_count, e->in_room - e->in_count, iov, max);
}

static inline void end_received(void *user, size_t n)
{
    struct end *e = user;

    e->in_count += n;
    assert_true(n > 0 && e->in_count <= e->in_room);
    if (hooked(e, "received"))
        return;
    if (e->echo) {
        e->echo->out_size = e->in_count;
        net_stream_want_send(e->echo->s);
    }
}

static inline unsigned end_data(void *user, struct iovec *iov, unsigned max)
{
    struct end *e = user;

    e->offers++;
    if (hooked(e, "send_data"))
        return 0;
    return cut_up(e, (uint8_t *)e->out + e->out_count, e->out_size - e->out_count, iov, max);
}

static inline void end_sent(void *user, size_t n)
{
    struct end *e = user;

    e->out_count += n;
    assert_true(e->out_count <= e->out_size);
    hooked(e, "sent");
}

static inline void end_closed(void *user, const struct lp_error *why)
{
    struct end *e = user;

    e->closed++;
    e->why = *why;
    hooked(e, "closed");
}

static const struct net_stream_ops end_ops = {end_space, end_received, end_data, end_sent,
                                              end_closed};

static inline uint8_t *random_bytes(struct rng *rng, size_t n)
{
    uint8_t *bytes = malloc(n);

    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)rng_next(rng);
    return bytes;
}

/* Room for n bytes to come in. */
static inline void end_room(struct end *e, size_t n)
{
    e->in = malloc(n);
    assert_non_null(e->in);
    e->in_room = n;
}

static inline void end_drop(struct end *e)
{
    net_stream_close(e->s);
    free(e->in);
    memset(e, 0, sizeof(*e));
}

/* ---- connections ---- */

static inline void keep_stream(void *user, struct net_stream *s)
{
    *(struct net_stream **)user = s;
}

struct connecting {
    struct net_stream *s;
    int done;
    struct lp_error why;
};

static inline void keep_result(void *user, struct net_stream *s, const struct lp_error *why)
{
    struct connecting *c = user;

    c->done++;
    c->s = s;
    assert_true(!s == !!why);
    if (why)
        c->why = *why;
}

static inline struct net_listener *must_listen(struct net_reactor *r, const char *host,
                                               const struct net_tcp_opts *opts,
                                               struct net_stream **accepted)
{
    struct lp_error err = {0};
    struct net_listener *l = net_listen(r, host, 0, opts, keep_stream, accepted, &err);

    if (!l)
        fail_msg("%s", err.msg);
    return l;
}

/* Two streams of the reactor that are connected with each other. */
static inline void stream_pair(struct net_reactor *r, const struct net_tcp_opts *tcp,
                               struct net_stream **client, struct net_stream **server)
{
    struct net_connect_opts opts = {0};
    struct connecting c = {0};
    struct net_listener *l;

    if (tcp)
        opts.tcp = *tcp;
    *server = NULL;
    l = must_listen(r, "127.0.0.1", tcp, server);
    assert_non_null(
        net_connect(r, "127.0.0.1", net_listener_port(l), &opts, keep_result, &c, NULL));
    RUN_UNTIL(r, c.done && *server);
    assert_non_null(c.s);
    net_listener_close(l);
    *client = c.s;
}

/* A plain socket that listens on a free port of 127.0.0.1. */
static inline int raw_listener(int backlog, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static inline int raw_connect(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* A stream whose other end is a plain blocking socket, which is returned. */
static inline int stream_with_raw_peer(struct net_reactor *r, struct net_stream **s)
{
    struct net_listener *l;
    int fd;

    *s = NULL;
    l = must_listen(r, "127.0.0.1", NULL, s);
    fd = raw_connect(net_listener_port(l));
    RUN_UNTIL(r, *s);
    net_listener_close(l);
    return fd;
}

/* Ends a plain socket with a reset. */
static inline void raw_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(fd);
}

static inline bool has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

#endif
