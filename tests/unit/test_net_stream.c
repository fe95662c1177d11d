/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams, with each engine. This program has a sendmsg() and a recvmsg() of its own, which fail
 * when a test says so.
 */
#define _GNU_SOURCE
#include "net_helpers.h"

#include <fcntl.h>
#include <sys/syscall.h>

/* ---- system calls that fail ---- */

static struct {
    int error;   /* 0: they work */
    int calls;   /* that many fail */
    bool send;   /* sendmsg, or recvmsg */
    size_t most; /* != 0: moves at most so many bytes */
} trouble;

static bool fails(bool send)
{
    if (trouble.error == 0 || trouble.send != send || trouble.calls == 0)
        return false;
    trouble.calls--;
    errno = trouble.error;
    return true;
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    struct msghdr part = *msg;
    struct iovec first;

    assert_true(flags & MSG_NOSIGNAL);
    if (fails(true))
        return -1;
    if (trouble.most && msg->msg_iov[0].iov_len > 0) {
        first = msg->msg_iov[0];
        if (first.iov_len > trouble.most)
            first.iov_len = trouble.most;
        part.msg_iov = &first;
        part.msg_iovlen = 1;
    }
    return syscall(SYS_sendmsg, fd, &part, flags);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    if (fails(false))
        return -1;
    return syscall(SYS_recvmsg, fd, msg, flags);
}

/* ---- bytes ---- */

struct pair {
    struct end client, server;
};

static void pair_open(struct pair *p, struct net_reactor *r, const struct net_tcp_opts *tcp)
{
    memset(p, 0, sizeof(*p));
    stream_pair(r, tcp, &p->client.s, &p->server.s);
}

static void pair_start(struct pair *p)
{
    net_stream_start(p->client.s, &end_ops, &p->client);
    net_stream_start(p->server.s, &end_ops, &p->server);
}

static void pair_drop(struct pair *p)
{
    end_drop(&p->client);
    end_drop(&p->server);
}

/* The client's bytes go to the server and come back. */
static void echo(struct net_reactor *r, size_t n, size_t cut, const struct net_tcp_opts *tcp,
                 uint64_t seed)
{
    struct rng rng = {seed};
    struct pair p;
    uint8_t *bytes = random_bytes(&rng, n);

    pair_open(&p, r, tcp);
    end_room(&p.client, n);
    end_room(&p.server, n);
    p.client.out = bytes;
    p.client.out_size = n;
    p.client.cut = p.server.cut = cut;
    p.client.rng = p.server.rng = cut ? &rng : NULL;
    p.server.out = p.server.in;
    p.server.echo = &p.server;
    pair_start(&p);
    RUN_UNTIL(r, p.client.in_count == n);
    assert_memory_equal(p.client.in, bytes, n);
    assert_int_equal(p.client.closed + p.server.closed, 0);
    pair_drop(&p);
    free(bytes);
}

static void bytes_come_whole_and_in_order_however_they_are_cut(void **state)
{
    static const size_t cuts[] = {1, 2, 3, 7, 64, 1000, 4096, 65537, 0};
    static const struct net_tcp_opts narrow = {.send_buffer = 2048, .recv_buffer = 2048};
    struct net_reactor *r = reactor(state);
    uint64_t seed = clock_now_ns();

    print_message("seed %llu\n", (unsigned long long)seed);
    for (unsigned i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
        size_t n = cuts[i] == 0 ? 4000000 : cuts[i] < 64 ? 20000 : 300000;

        echo(r, n, cuts[i], NULL, seed + i);
        echo(r, n / 10, cuts[i], &narrow, seed + i);
    }
}

static void writes_that_the_kernel_cuts_short_are_continued(void **state)
{
    struct net_reactor *r = reactor(state);

    for (size_t most = 1; most < 2000; most = most * 3 + 1) {
        trouble.most = most;
        echo(r, 3000, 1000, NULL, most);
        trouble.most = 0;
    }
}

static void many_streams_each_get_their_own_bytes(void **state)
{
    enum { STREAMS = 40, SIZE = 50000 };
    struct net_reactor *r = reactor(state);
    struct rng rng = {4711};
    struct pair *p = calloc(STREAMS, sizeof(*p));
    uint8_t *bytes = random_bytes(&rng, SIZE + STREAMS);
    int whole = 0;

    assert_non_null(p);
    for (int i = 0; i < STREAMS; i++) {
        pair_open(&p[i], r, NULL);
        end_room(&p[i].client, SIZE);
        end_room(&p[i].server, SIZE);
        p[i].client.out = bytes + i;
        p[i].client.out_size = SIZE;
        p[i].server.out = p[i].server.in;
        p[i].server.echo = &p[i].server;
        p[i].client.rng = p[i].server.rng = &rng;
        p[i].client.cut = p[i].server.cut = 1 + rng_below(&rng, 5000);
    }
    for (int i = 0; i < STREAMS; i++)
        pair_start(&p[i]);
    while (whole < STREAMS) {
        RUN_UNTIL(r, p[whole].client.in_count == SIZE);
        assert_memory_equal(p[whole].client.in, bytes + whole, SIZE);
        whole++;
    }
    for (int i = 0; i < STREAMS; i++)
        pair_drop(&p[i]);
    free(p);
    free(bytes);
}

/* ---- when it is sent ---- */

struct burst {
    struct end *e;
    size_t step;
    int times;
};

static void queue_some(struct net_timer *timer)
{
    struct burst *b = timer->user;

    for (int i = 0; i < b->times; i++) {
        b->e->out_size += b->step;
        net_stream_want_send(b->e->s);
    }
}

static void what_is_queued_in_a_turn_goes_out_with_one_write(void **state)
{
    struct net_reactor *r = reactor(state);
    struct pair p;
    uint8_t bytes[1000] = {0};
    struct burst b = {.e = &p.client, .step = 100, .times = 10};
    struct net_timer timer = {.callback = queue_some, .user = &b};
    uint64_t before;

    pair_open(&p, r, NULL);
    end_room(&p.server, sizeof(bytes));
    end_room(&p.client, 1);
    p.client.out = bytes;
    p.client.cut = 100;
    pair_start(&p);
    net_run_once(r, 0);
    before = net_reactor_stats(r)->sends;
    net_timer_set(r, &timer, 0);
    RUN_UNTIL(r, p.server.in_count == sizeof(bytes));
    assert_int_equal(net_reactor_stats(r)->sends - before, 1);
    pair_drop(&p);
}

/* A stream with so much to send that one turn does not do: the loop may not sleep over it. */
static void the_loop_does_not_sleep_while_something_waits_to_be_sent(void **state)
{
    enum { SIZE = 20000 };
    struct net_reactor *r = reactor(state);
    struct pair p;
    uint8_t bytes[SIZE] = {0};

    pair_open(&p, r, NULL);
    end_room(&p.server, SIZE);
    p.server.refuse = true; /* no events from there */
    end_room(&p.client, 1);
    p.client.out = bytes;
    p.client.out_size = SIZE;
    p.client.cut = 1;
    pair_start(&p);
    while (p.client.out_count < SIZE)
        net_run_once(r, NET_NEVER); /* would hang */
    assert_int_equal(p.server.in_count, 0);
    pair_drop(&p);
}

static void wanting_to_send_before_the_start_is_no_harm(void **state)
{
    struct net_reactor *r = reactor(state);
    struct pair p;

    pair_open(&p, r, NULL);
    net_stream_want_send(p.client.s);
    net_run_once(r, 0);
    end_room(&p.server, 5);
    end_room(&p.client, 1);
    p.client.out = (const uint8_t *)"hello";
    p.client.out_size = 5;
    pair_start(&p);
    RUN_UNTIL(r, p.server.in_count == 5);
    assert_memory_equal(p.server.in, "hello", 5);
    pair_drop(&p);
}

static void a_stream_with_nothing_to_say_costs_no_system_calls(void **state)
{
    struct net_reactor *r = reactor(state);
    const struct net_reactor_stats *stats = net_reactor_stats(r);
    struct pair p;
    uint64_t moved;

    pair_open(&p, r, NULL);
    end_room(&p.server, 1);
    end_room(&p.client, 1);
    pair_start(&p);
    net_run_once(r, 0);
    moved = stats->sends + stats->recvs;
    for (int i = 0; i < 10; i++) {
        net_stream_want_send(p.client.s);
        net_run_once(r, 0);
    }
    assert_int_equal(stats->sends + stats->recvs, moved);
    pair_drop(&p);
}

/* ---- no stream starves another ---- */

static bool go_on(struct end *e)
{
    if (e->in_count + 16 > e->in_room)
        e->in_count = 0;
    return false;
}

static void a_flood_does_not_hold_up_another_stream(void **state)
{
    struct net_reactor *r = reactor(state);
    struct end flooded = {0}, quiet = {0};
    int flood, other, turns = 0;
    char bytes[4096] = {0};
    ssize_t sent = 0, n;

    flood = stream_with_raw_peer(r, &flooded.s);
    other = stream_with_raw_peer(r, &quiet.s);
    fcntl(flood, F_SETFL, O_NONBLOCK);
    while ((n = send(flood, bytes, sizeof(bytes), 0)) > 0)
        sent += n;
    assert_true(sent > 50000);
    end_room(&flooded, 64);
    flooded.cut = 1;
    flooded.hook_at = "received";
    flooded.hook = go_on;
    end_room(&quiet, 4096);
    assert_int_equal(send(other, bytes, 1, 0), 1);
    net_stream_start(flooded.s, &end_ops, &flooded);
    net_stream_start(quiet.s, &end_ops, &quiet);
    while (quiet.in_count == 0 && turns++ < 4)
        net_run_once(r, NET_NEVER);
    assert_int_equal(quiet.in_count, 1);
    close(flood);
    close(other);
    end_drop(&flooded);
    end_drop(&quiet);
}

/* ---- back-pressure ---- */

static void a_stream_that_takes_nothing_holds_its_sender(void **state)
{
    enum { SIZE = 30000000 };
    struct net_reactor *r = reactor(state);
    struct rng rng = {7};
    struct pair p;
    uint8_t *bytes = random_bytes(&rng, SIZE);
    size_t before;

    pair_open(&p, r, NULL);
    end_room(&p.server, SIZE);
    end_room(&p.client, 1);
    p.server.refuse = true;
    p.client.out = bytes;
    p.client.out_size = SIZE;
    pair_start(&p);
    do {
        before = p.client.out_count;
        for (int i = 0; i < 10; i++)
            net_run_once(r, 0);
    } while (p.client.out_count > before);
    assert_in_range(p.client.out_count, 1, SIZE - 1);
    assert_int_equal(p.server.in_count, 0);
    p.server.refuse = false;
    for (int i = 0; i < 3; i++)
        net_run_once(r, 0);
    assert_int_equal(p.server.in_count, 0); /* not before it says so */
    net_stream_want_read(p.server.s);
    RUN_UNTIL(r, p.server.in_count == SIZE);
    assert_memory_equal(p.server.in, bytes, SIZE);
    pair_drop(&p);
    free(bytes);
}

/* ---- ends ---- */

static void the_end_comes_behind_the_last_byte(void **state)
{
    struct net_reactor *r = reactor(state);
    struct end e = {0};
    char bytes[30000] = {0};
    int fd = stream_with_raw_peer(r, &e.s);

    assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    shutdown(fd, SHUT_WR);
    end_room(&e, sizeof(bytes) + 1); /* and a place for what does not come */
    e.refuse = true;
    net_stream_start(e.s, &end_ops, &e);
    for (int i = 0; i < 5; i++)
        net_run_once(r, 0);
    assert_int_equal(e.closed, 0); /* there are bytes, which it does not want yet */
    e.refuse = false;
    e.cut = 100;
    net_stream_want_read(e.s);
    RUN_UNTIL(r, e.closed);
    assert_int_equal(e.in_count, sizeof(bytes));
    assert_int_equal(e.why.domain, LP_ERROR_PEER);
    assert_int_equal(e.why.code, 0);
    assert_non_null(strstr(e.why.msg, net_stream_peer(e.s)));
    assert_non_null(strstr(e.why.msg, "closed the connection"));
    for (int i = 0; i < 3; i++)
        net_run_once(r, 0);
    assert_int_equal(e.closed, 1);
    net_stream_want_send(e.s); /* nobody is called for it any more */
    net_stream_want_read(e.s);
    e.offers = 0;
    net_run_once(r, 0);
    assert_int_equal(e.offers, 0);
    close(fd);
    end_drop(&e);
}

static void a_reset_is_an_error_with_the_peer_in_it(void **state)
{
    struct net_reactor *r = reactor(state);
    struct end e = {0};
    int fd = stream_with_raw_peer(r, &e.s);

    end_room(&e, 100);
    net_stream_start(e.s, &end_ops, &e);
    net_run_once(r, 0);
    raw_reset(fd);
    RUN_UNTIL(r, e.closed);
    assert_int_equal(e.why.domain, LP_ERROR_SYS);
    assert_int_equal(e.why.code, ECONNRESET);
    assert_non_null(strstr(e.why.msg, net_stream_peer(e.s)));
    for (int i = 0; i < 3; i++)
        net_run_once(r, 0);
    assert_int_equal(e.closed, 1);
    end_drop(&e);
}

/* The write finds the reset first, and takes its error with it. What came before is still told. */
static void a_reset_that_a_write_finds_does_not_lose_what_came_before(void **state)
{
    struct net_reactor *r = reactor(state);
    struct end e = {0};
    int fd = stream_with_raw_peer(r, &e.s);

    assert_int_equal(send(fd, "last words", 10, 0), 10);
    raw_reset(fd);
    end_room(&e, 100);
    e.out = (const uint8_t *)"hello";
    e.out_size = 5;
    e.refuse = true;
    net_stream_start(e.s, &end_ops, &e);
    net_flush(r); /* writes before anything is read */
    assert_int_equal(e.out_count, 0);
    e.refuse = false;
    RUN_UNTIL(r, e.closed);
    assert_int_equal(e.in_count, 10);
    assert_memory_equal(e.in, "last words", 10);
    assert_int_equal(e.why.code, ECONNRESET);
    end_drop(&e);
}

/* Neither reads nor can write: somebody has to tell it. */
static void a_reset_reaches_a_stream_that_does_not_read(void **state)
{
    struct net_reactor *r = reactor(state);
    struct end e = {0};
    size_t size = 20000000;
    uint8_t *bytes = calloc(1, size);
    int fd = stream_with_raw_peer(r, &e.s);

    assert_non_null(bytes);
    end_room(&e, 100);
    e.refuse = true;
    e.out = bytes;
    e.out_size = size;
    net_stream_start(e.s, &end_ops, &e);
    for (int i = 0; i < 200; i++)
        net_run_once(r, 0);
    assert_true(e.out_count > 0 && e.out_count < size);
    raw_reset(fd);
    RUN_UNTIL(r, e.closed);
    assert_int_equal(e.why.domain, LP_ERROR_SYS);
    assert_int_not_equal(e.why.code, 0);
    end_drop(&e);
    free(bytes);
}

static void closing_reaches_the_peer_at_once(void **state)
{
    struct net_reactor *r = reactor(state);
    struct end e = {0};
    int fd = stream_with_raw_peer(r, &e.s);
    char bytes[10];

    end_room(&e, 100);
    e.out = (const uint8_t *)"hello";
    e.out_size = 5;
    net_stream_start(e.s, &end_ops, &e);
    net_run_once(r, 0); /* the kernel is watching */
    end_drop(&e);
    assert_int_equal(recv(fd, bytes, 10, MSG_WAITALL), 5); /* would hang without the end */
    close(fd);
}

static void a_stream_can_be_closed_before_it_is_started(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *a, *b;

    stream_pair(r, NULL, &a, &b);
    net_run_once(r, 0);
    net_stream_close(a);
    net_run_once(r, 0);
    net_stream_close(b);
    net_stream_close(NULL);
    net_run_once(r, 0);
}

/* ---- closing in callbacks ---- */

static bool close_itself(struct end *e)
{
    net_stream_close(e->s);
    e->s = NULL;
    e->hook = NULL;
    ++*(int *)e->hook_user;
    return true;
}

static void a_stream_may_be_closed_in_every_callback(void **state)
{
    static const char *const places[] = {"recv_space", "received", "send_data", "sent", "closed"};
    struct net_reactor *r = reactor(state);

    for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
        struct pair p;
        int called = 0;

        pair_open(&p, r, NULL);
        end_room(&p.client, 100);
        end_room(&p.server, 100);
        p.client.out = p.server.out = (const uint8_t *)"hello";
        p.client.out_size = p.server.out_size = 5;
        p.client.hook_at = places[i];
        p.client.hook = close_itself;
        p.client.hook_user = &called;
        pair_start(&p);
        if (strcmp(places[i], "closed") == 0) {
            RUN_UNTIL(r, p.client.in_count == 5);
            net_stream_close(p.server.s);
            p.server.s = NULL;
        }
        RUN_UNTIL(r, called == 1);
        if (p.server.s)
            RUN_UNTIL(r, p.server.closed == 1); /* whatever the client took of what it had sent */
        for (int k = 0; k < 3; k++)
            net_run_once(r, 0);
        assert_int_equal(called, 1);
        assert_int_equal(p.client.closed, strcmp(places[i], "closed") == 0);
        pair_drop(&p);
    }
}

struct circle {
    struct end ends[3];
    int left;
};

static bool close_the_others(struct end *e)
{
    struct circle *c = e->hook_user;

    if (c->left == 0)
        return false;
    c->left = 0;
    for (int i = 0; i < 3; i++)
        if (&c->ends[i] != e) {
            net_stream_close(c->ends[i].s);
            c->ends[i].s = NULL;
        }
    return false;
}

static void a_callback_may_close_every_other_stream(void **state)
{
    static const char *const places[] = {"recv_space", "received", "send_data", "sent", "closed"};
    struct net_reactor *r = reactor(state);

    for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
        struct circle c = {.left = 3};
        int fds[3];

        for (int k = 0; k < 3; k++) {
            fds[k] = stream_with_raw_peer(r, &c.ends[k].s);
            end_room(&c.ends[k], 100);
            c.ends[k].out = (const uint8_t *)"hello";
            c.ends[k].out_size = 5;
            c.ends[k].hook_at = places[i];
            c.ends[k].hook = close_the_others;
            c.ends[k].hook_user = &c;
            assert_int_equal(send(fds[k], "hello", 5, 0), 5);
            if (strcmp(places[i], "closed") == 0)
                close(fds[k]);
        }
        for (int k = 0; k < 3; k++)
            net_stream_start(c.ends[k].s, &end_ops, &c.ends[k]);
        RUN_UNTIL(r, c.left == 0);
        for (int k = 0; k < 3; k++)
            net_run_once(r, 0);
        for (int k = 0; k < 3; k++) {
            if (strcmp(places[i], "closed") != 0)
                close(fds[k]);
            end_drop(&c.ends[k]);
        }
    }
}

static bool wants_more(struct end *e)
{
    struct circle *c = e->hook_user;

    for (int i = 0; i < 3; i++)
        if (c->ends[i].s)
            net_stream_want_send(c->ends[i].s);
    net_flush(net_stream_reactor(e->s)); /* nor does this go round in circles */
    return false;
}

static void callbacks_may_ask_for_sending_on_any_stream(void **state)
{
    static const char *const places[] = {"recv_space", "received", "send_data", "sent"};
    struct net_reactor *r = reactor(state);

    for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
        struct circle c = {0};
        int fds[3];

        for (int k = 0; k < 3; k++) {
            fds[k] = stream_with_raw_peer(r, &c.ends[k].s);
            end_room(&c.ends[k], 100);
            c.ends[k].out = (const uint8_t *)"hello";
            c.ends[k].out_size = 5;
            c.ends[k].cut = 1;
            c.ends[k].hook_at = places[i];
            c.ends[k].hook = wants_more;
            c.ends[k].hook_user = &c;
            assert_int_equal(send(fds[k], "hello", 5, 0), 5);
            net_stream_start(c.ends[k].s, &end_ops, &c.ends[k]);
        }
        for (int k = 0; k < 3; k++) {
            RUN_UNTIL(r, c.ends[k].out_count == 5 && c.ends[k].in_count == 5);
            c.ends[k].hook = NULL;
        }
        for (int k = 0; k < 3; k++) {
            close(fds[k]);
            end_drop(&c.ends[k]);
        }
    }
}

/* ---- errors of system calls ---- */

static void interrupted_and_hindered_calls_are_tried_again(void **state)
{
    static const int errors[] = {EINTR, EAGAIN, ENOBUFS};
    struct net_reactor *r = reactor(state);

    for (unsigned i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        for (int send = 0; send <= 1; send++) {
            if (errors[i] == ENOBUFS && !send)
                continue;
            trouble.error = errors[i];
            trouble.calls = 5;
            trouble.send = send;
            echo(r, 10000, 500, NULL, i);
            assert_int_equal(trouble.calls, 0);
            trouble.error = 0;
        }
}

static void other_errors_end_the_stream_and_say_which(void **state)
{
    struct net_reactor *r = reactor(state);

    for (int send = 0; send <= 1; send++) {
        struct end e = {0};
        int fd = stream_with_raw_peer(r, &e.s);

        end_room(&e, 100);
        e.out = (const uint8_t *)"hello";
        e.out_size = 5;
        trouble.error = ETIMEDOUT;
        trouble.calls = 1;
        trouble.send = send;
        net_stream_start(e.s, &end_ops, &e);
        for (int i = 0; i < 3; i++)
            net_run_once(r, 0);
        if (send)
            shutdown(fd, SHUT_WR); /* the read has to find an end as well */
        else
            assert_int_equal(write(fd, "hello", 5), 5);
        RUN_UNTIL(r, e.closed);
        trouble.error = 0;
        assert_int_equal(e.why.code, ETIMEDOUT);
        assert_non_null(strstr(e.why.msg, strerror(ETIMEDOUT)));
        close(fd);
        end_drop(&e);
    }
}

/* ---- what it costs ---- */

/*
 * 128 reads of 4 KiB are always under way: the client sends a request of 48 bytes for each, in four
 * pieces at most, and the server answers each with a header and the data, which are two segments.
 */
enum { DEPTH = 128, REQUEST = 48, ANSWER = 48 + 4096, IOS = DEPTH * 100 };

struct load {
    struct net_stream *s;
    bool server;
    uint64_t asked, answered; /* bytes */
    uint64_t in, out;
    uint8_t *memory;
};

static uint64_t to_send(const struct load *l)
{
    if (l->server)
        return l->in / REQUEST * ANSWER - l->out;
    return (l->in / ANSWER + DEPTH) * REQUEST - l->out;
}

static unsigned load_space(void *user, struct iovec *iov, unsigned max)
{
    const struct load *l = user;
    unsigned count = l->server ? 1 : max;

    /* The client knows where each answer's data belong; header and data are segments. */
    for (unsigned i = 0; i < count; i++)
        iov[i] = (struct iovec){l->memory, l->server ? DEPTH * REQUEST : i % 2 ? 4096 : 48};
    if (!l->server && l->in % ANSWER) { /* in the middle of one: what is left of it only */
        iov[0].iov_len = ANSWER - l->in % ANSWER;
        for (unsigned i = 1; i < count; i++)
            iov[i].iov_len = i % 2 ? 48 : 4096;
    }
    return count;
}

static void load_received(void *user, size_t n)
{
    struct load *l = user;

    l->in += n;
    net_stream_want_send(l->s);
}

static unsigned load_data(void *user, struct iovec *iov, unsigned max)
{
    const struct load *l = user;
    uint64_t left = to_send(l), position = l->out;
    unsigned count = 0;

    while (left > 0 && count < max) {
        uint64_t at = l->server ? position % ANSWER : 0;
        uint64_t n = !l->server ? left : at < 48 ? 48 - at : ANSWER - at;

        n = n < left ? n : left;
        iov[count++] = (struct iovec){l->memory, n};
        left -= n;
        position += n;
    }
    return count;
}

static void load_sent(void *user, size_t n)
{
    ((struct load *)user)->out += n;
}

static void load_closed(void *user, const struct lp_error *why)
{
    (void)user;
    fail_msg("%s", why->msg);
}

static void a_small_io_costs_a_tenth_of_a_system_call_in_company(void **state)
{
    static const struct net_stream_ops ops = {load_space, load_received, load_data, load_sent,
                                              load_closed};
    struct net_reactor *r = reactor(state);
    const struct net_reactor_stats *stats = net_reactor_stats(r);
    struct load client = {0}, server = {.server = true};
    uint64_t calls;

    stream_pair(r, NULL, &client.s, &server.s);
    client.memory = server.memory = calloc(1, DEPTH * REQUEST + ANSWER);
    assert_non_null(client.memory);
    calls = stats->waits + stats->recvs + stats->sends;
    net_stream_start(client.s, &ops, &client);
    net_stream_start(server.s, &ops, &server);
    RUN_UNTIL(r, client.in >= (uint64_t)IOS * ANSWER);
    calls = stats->waits + stats->recvs + stats->sends - calls;
    print_message("%.4f system calls an I/O, both ends\n", (double)calls / IOS);
    assert_true(calls * 10 <= IOS);
    net_stream_close(client.s);
    net_stream_close(server.s);
    free(client.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(bytes_come_whole_and_in_order_however_they_are_cut),
        BOTH(writes_that_the_kernel_cuts_short_are_continued),
        BOTH(many_streams_each_get_their_own_bytes),
        BOTH(what_is_queued_in_a_turn_goes_out_with_one_write),
        BOTH(the_loop_does_not_sleep_while_something_waits_to_be_sent),
        BOTH(wanting_to_send_before_the_start_is_no_harm),
        BOTH(a_stream_with_nothing_to_say_costs_no_system_calls),
        BOTH(a_flood_does_not_hold_up_another_stream),
        BOTH(a_stream_that_takes_nothing_holds_its_sender),
        BOTH(the_end_comes_behind_the_last_byte),
        BOTH(a_reset_is_an_error_with_the_peer_in_it),
        BOTH(a_reset_that_a_write_finds_does_not_lose_what_came_before),
        BOTH(a_reset_reaches_a_stream_that_does_not_read),
        BOTH(closing_reaches_the_peer_at_once),
        BOTH(a_stream_can_be_closed_before_it_is_started),
        BOTH(a_stream_may_be_closed_in_every_callback),
        BOTH(a_callback_may_close_every_other_stream),
        BOTH(callbacks_may_ask_for_sending_on_any_stream),
        BOTH(interrupted_and_hindered_calls_are_tried_again),
        BOTH(other_errors_end_the_stream_and_say_which),
        BOTH(a_small_io_costs_a_tenth_of_a_system_call_in_company),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
