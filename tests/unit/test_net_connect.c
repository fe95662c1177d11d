/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting and listening, with each engine. This program has a getaddrinfo() of its own, which
 * answers for names that end in ".test" as the test says and passes the rest on.
 */
#define _GNU_SOURCE
#include "net_helpers.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- names ---- */

enum { LOOPBACKS = 24 };

static struct {
    unsigned count; /* addresses of any name: 127.0.0.1, 127.0.0.2 ... */
    bool twice;     /* each is told twice */
    int error;
    bool wait; /* for go */
    sem_t go;
    unsigned asked; /* how often a name was looked up; read when no lookup is going on */
} names;

static struct addrinfo *test_address(unsigned number, const char *port)
{
    struct addrinfo *ai = calloc(1, sizeof(*ai) + sizeof(struct sockaddr_in));
    struct sockaddr_in *address = (struct sockaddr_in *)(void *)(ai + 1);

    assert_non_null(ai);
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)atoi(port));
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
    ai->ai_family = AF_INET;
    ai->ai_socktype = SOCK_STREAM;
    ai->ai_addr = (struct sockaddr *)address;
    ai->ai_addrlen = sizeof(*address);
    ai->ai_flags = 4711; /* one of ours */
    return ai;
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    size_t length = host ? strlen(host) : 0;
    struct addrinfo **end = list;

    if (hints->ai_flags & AI_NUMERICHOST || length < 5 || strcmp(host + length - 5, ".test") != 0) {
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(host, port, hints, list);
    }
    names.asked++;
    if (names.wait)
        sem_wait(&names.go);
    if (names.error)
        return names.error;
    for (unsigned i = 0; i < names.count; i++)
        for (int k = 0; k <= names.twice; k++) {
            *end = test_address(i, port);
            end = &(*end)->ai_next;
        }
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    void (*real)(struct addrinfo *);

    if (list && list->ai_flags == 4711) {
        while (list) {
            struct addrinfo *next = list->ai_next;

            free(list);
            list = next;
        }
        return;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
    real(list);
}

/* ---- sockets that are full, or bound beforehand ---- */

static uint16_t own_port; /* != 0: socket() gives one that is bound to this port */

int socket(int family, int type, int protocol)
{
    int fd = (int)syscall(SYS_socket, family, type, protocol);

    if (own_port && fd >= 0 && family == AF_INET) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(own_port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    }
    return fd;
}

/* A listener whose backlog is full: who calls it gets no answer. */
struct full {
    int fd;
    int callers[4];
    uint16_t port;
};

static void full_open(struct full *f, uint32_t host, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(host)};
    socklen_t length = sizeof(address);

    f->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(f->fd, 0), 0);
    assert_int_equal(getsockname(f->fd, (struct sockaddr *)&address, &length), 0);
    f->port = ntohs(address.sin_port);
    for (unsigned i = 0; i < 4; i++) {
        f->callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(f->callers[i], (struct sockaddr *)&address, length);
    }
}

static void full_close(struct full *f)
{
    for (unsigned i = 0; i < 4; i++)
        close(f->callers[i]);
    close(f->fd);
}

/* A port of 127.0.0.1 where nobody listens. */
static uint16_t silent_port(void)
{
    uint16_t port;

    close(raw_listener(1, &port));
    return port;
}

static struct net_connect *must_connect(struct net_reactor *r, const char *host, uint16_t port,
                                        struct connecting *c)
{
    struct lp_error err;
    struct net_connect *n = net_connect(r, host, port, NULL, keep_result, c, &err);

    assert_non_null(n);
    assert_int_equal(c->done, 0); /* never from inside the call */
    return n;
}

static void assert_says(const struct lp_error *why, const char *word)
{
    if (!strstr(why->msg, word))
        fail_msg("\"%s\" does not say \"%s\"", why->msg, word);
    if (strchr(why->msg, '\n'))
        fail_msg("more than one line: \"%s\"", why->msg);
}

/* ---- addresses in numbers ---- */

static void check_numeric(void **state, const char *listen_at, const char *connect_to,
                          const char *shown)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *accepted = NULL;
    struct net_listener *l = must_listen(r, listen_at, NULL, &accepted);
    struct connecting c = {0};
    char text[64];

    names.asked = 0;
    must_connect(r, connect_to, net_listener_port(l), &c);
    RUN_UNTIL(r, c.done && accepted);
    if (!c.s)
        fail_msg("%s", c.why.msg);
    assert_int_equal(names.asked, 0);
    snprintf(text, sizeof(text), "%s:%u", shown, net_listener_port(l));
    assert_string_equal(net_stream_peer(c.s), text);
    assert_string_equal(net_stream_local(accepted), text);
    assert_string_equal(net_listener_address(l), text);
    assert_string_equal(net_stream_local(c.s), net_stream_peer(accepted));
    assert_ptr_equal(net_stream_reactor(c.s), r);
    net_stream_close(c.s);
    net_stream_close(accepted);
    net_listener_close(l);
}

static void an_ipv4_address_is_connected_without_a_lookup(void **state)
{
    check_numeric(state, "127.0.0.1", "127.0.0.1", "127.0.0.1");
}

static void an_ipv6_address_is_connected_with_and_without_brackets(void **state)
{
    if (!has_ipv6()) {
        print_message("skipped: this machine has no ::1\n");
        skip();
    }
    check_numeric(state, "::1", "::1", "[::1]");
    check_numeric(state, "[::1]", "[::1]", "[::1]");
}

static void what_is_no_address_is_refused_without_a_lookup(void **state)
{
    static const char *const wrong[] = {"1::2::3", "300.1.1.1", "[::1", "fe80::1%nowhere0",
                                        "::1]",    "1.2.3.4.5", ""};
    struct net_reactor *r = reactor(state);

    names.asked = 0;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct connecting c = {0};

        must_connect(r, wrong[i], 3260, &c);
        RUN_UNTIL(r, c.done);
        assert_null(c.s);
        assert_int_equal(c.why.domain, LP_ERROR_USAGE);
        assert_says(&c.why, wrong[i]);
    }
    assert_int_equal(names.asked, 0);
}

static void a_refusal_names_the_address_and_what_to_do(void **state)
{
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};
    uint16_t port = silent_port();
    char text[64];

    must_connect(r, "127.0.0.1", port, &c);
    RUN_UNTIL(r, c.done);
    assert_null(c.s);
    assert_int_equal(c.why.domain, LP_ERROR_SYS);
    assert_int_equal(c.why.code, ECONNREFUSED);
    snprintf(text, sizeof(text), "127.0.0.1:%u: %s", port, strerror(ECONNREFUSED));
    assert_says(&c.why, text);
    assert_says(&c.why, "is the service running there");
    net_run_once(r, 0);
    assert_int_equal(c.done, 1);
}

static void a_host_that_does_not_answer_is_given_up_in_time(void **state)
{
    struct net_reactor *r = reactor(state);
    struct fixture *f = *state;
    struct connecting c = {0};
    struct full full;

    stop_time(state);
    full_open(&full, INADDR_LOOPBACK, 0);
    must_connect(r, "127.0.0.1", full.port, &c);
    for (int i = 0; i < 20; i++)
        net_run_once(r, SECOND / 1000);
    f->now += 10 * SECOND - 1;
    net_run_once(r, 0);
    assert_int_equal(c.done, 0);
    f->now += 1;
    net_run_once(r, 0);
    assert_int_equal(c.done, 1);
    assert_null(c.s);
    assert_int_equal(c.why.code, ETIMEDOUT);
    assert_says(&c.why, "127.0.0.1:");
    assert_says(&c.why, "no answer");
    assert_int_equal(net_deadline(r), NET_NEVER);
    full_close(&full);
}

static void a_socket_that_called_itself_is_not_a_connection(void **state)
{
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};

    own_port = silent_port();
    must_connect(r, "127.0.0.1", own_port, &c);
    RUN_UNTIL(r, c.done);
    own_port = 0;
    assert_null(c.s);
    assert_int_equal(c.why.code, ECONNREFUSED);
}

/* ---- names ---- */

static void a_name_is_looked_up_and_connected(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *accepted = NULL;
    struct net_listener *l = must_listen(r, "127.0.0.1", NULL, &accepted);
    struct connecting c = {0};

    names.count = 1;
    names.asked = 0;
    must_connect(r, "nas.test", net_listener_port(l), &c);
    RUN_UNTIL(r, c.done && accepted);
    assert_non_null(c.s);
    assert_int_equal(names.asked, 1);
    assert_string_equal(net_stream_peer(c.s), net_listener_address(l));
    net_stream_close(c.s);
    net_stream_close(accepted);
    net_listener_close(l);
}

static void an_unknown_name_is_an_error_with_a_sentence(void **state)
{
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};

    names.error = EAI_NONAME;
    must_connect(r, "nsa.test", 3260, &c);
    RUN_UNTIL(r, c.done);
    names.error = 0;
    assert_null(c.s);
    assert_says(&c.why, "\"nsa.test\"");
    assert_says(&c.why, gai_strerror(EAI_NONAME));
    assert_says(&c.why, "check its spelling");
}

/* 127.0.0.1 refuses, 127.0.0.2 has the service. */
static void the_next_address_is_tried_when_one_refuses(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *accepted = NULL;
    struct net_listener *l = must_listen(r, "127.0.0.3", NULL, &accepted);
    struct connecting c = {0};

    stop_time(state); /* no time has to go by */
    names.count = 3;
    must_connect(r, "nas.test", net_listener_port(l), &c);
    RUN_UNTIL(r, c.done && accepted);
    assert_non_null(c.s);
    assert_string_equal(net_stream_peer(c.s), net_listener_address(l));
    net_stream_close(c.s);
    net_stream_close(accepted);
    net_listener_close(l);
    assert_int_equal(net_deadline(r), NET_NEVER);
}

static void the_next_address_is_tried_beside_one_that_is_silent(void **state)
{
    struct net_reactor *r = reactor(state);
    struct fixture *f = *state;
    struct net_stream *accepted = NULL;
    struct net_listener *l = must_listen(r, "127.0.0.2", NULL, &accepted);
    struct connecting c = {0};
    struct full full;

    stop_time(state);
    full_open(&full, INADDR_LOOPBACK, net_listener_port(l));
    names.count = 2;
    must_connect(r, "nas.test", full.port, &c);
    RUN_UNTIL(r, net_deadline(r) == f->now + SECOND / 4); /* the first one is being tried */
    f->now += SECOND / 4 - 1;
    net_run_once(r, 0);
    assert_int_equal(c.done, 0);
    f->now += 1;
    RUN_UNTIL(r, c.done && accepted);
    assert_non_null(c.s);
    assert_string_equal(net_stream_peer(c.s), net_listener_address(l));
    net_stream_close(c.s);
    net_stream_close(accepted);
    net_listener_close(l);
    full_close(&full);
}

static void a_failure_names_the_addresses_that_were_tried(void **state)
{
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};

    names.count = 6;
    names.twice = true;
    must_connect(r, "nas.test", silent_port(), &c);
    RUN_UNTIL(r, c.done);
    names.twice = false;
    assert_null(c.s);
    assert_says(&c.why, "nas.test");
    assert_says(&c.why, "127.0.0.1:");
    assert_says(&c.why, "127.0.0.4:");
    assert_null(strstr(c.why.msg, "127.0.0.5:"));
    assert_says(&c.why, "and 2 more");
    assert_says(&c.why, "is the service running there");
}

static void a_name_with_very_many_addresses_does_no_harm(void **state)
{
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};

    names.count = LOOPBACKS;
    must_connect(r, "nas.test", silent_port(), &c);
    RUN_UNTIL(r, c.done);
    assert_says(&c.why, "and 12 more");
}

static void the_total_time_counts_the_lookup(void **state)
{
    struct net_reactor *r = reactor(state);
    struct fixture *f = *state;
    struct connecting c = {0};

    stop_time(state);
    names.wait = true;
    must_connect(r, "nas.test", 3260, &c);
    net_run_once(r, 0);
    f->now += 30 * SECOND - 1;
    net_run_once(r, 0);
    assert_int_equal(c.done, 0);
    f->now += 1;
    net_run_once(r, 0);
    assert_int_equal(c.done, 1);
    assert_null(c.s);
    assert_int_equal(c.why.code, ETIMEDOUT);
    assert_says(&c.why, "nas.test");
    sem_post(&names.go); /* the answer comes too late, and is dropped */
    net_reactor_free(r);
    f->r = NULL;
    names.wait = false;
    assert_int_equal(c.done, 1);
}

static void the_total_time_ends_every_attempt(void **state)
{
    struct net_reactor *r = reactor(state);
    struct fixture *f = *state;
    struct net_connect_opts opts = {.attempt_ns = 60 * SECOND, .total_ns = 5 * SECOND};
    struct connecting c = {0};
    struct full full;

    stop_time(state);
    full_open(&full, INADDR_LOOPBACK, 0);
    assert_non_null(net_connect(r, "127.0.0.1", full.port, &opts, keep_result, &c, NULL));
    net_run_once(r, 0);
    f->now += 5 * SECOND;
    net_run_once(r, 0);
    assert_int_equal(c.done, 1);
    assert_int_equal(c.why.code, ETIMEDOUT);
    full_close(&full);
}

/* ---- giving up ---- */

static void a_cancelled_connection_tells_nothing_more(void **state)
{
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};
    struct net_connect *n;
    struct full full;

    full_open(&full, INADDR_LOOPBACK, 0);
    for (int turns = 0; turns < 3; turns++) {
        n = must_connect(r, "127.0.0.1", full.port, &c);
        for (int i = 0; i < turns; i++)
            net_run_once(r, 0);
        net_connect_cancel(n);
        net_run_once(r, 0);
        assert_int_equal(net_deadline(r), NET_NEVER);
    }
    assert_int_equal(c.done, 0);
    full_close(&full);
}

static void a_lookup_can_be_cancelled_while_it_hangs(void **state)
{
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};
    struct net_connect *n;

    names.wait = true;
    names.count = 2;
    n = must_connect(r, "nas.test", 3260, &c);
    net_run_once(r, 0);
    net_connect_cancel(n);
    net_run_once(r, 0);
    sem_post(&names.go);
    assert_true(net_run_once(r, NET_NEVER) > 0); /* the thread ends */
    names.wait = false;
    assert_int_equal(c.done, 0);
}

static void a_reactor_is_freed_while_a_lookup_goes_on(void **state)
{
    struct fixture *f = *state;
    struct net_reactor *r = reactor(state);
    struct connecting c = {0};
    struct net_connect *n;

    names.wait = true;
    n = must_connect(r, "nas.test", 3260, &c);
    net_run_once(r, 0);
    net_connect_cancel(n);
    sem_post(&names.go);
    net_reactor_free(r);
    f->r = NULL;
    names.wait = false;
    assert_int_equal(c.done, 0);
}

/* ---- listening ---- */

static void ipv4_and_ipv6_are_bound_to_the_same_port(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *a = NULL, *b = NULL;
    struct net_listener *four, *six;
    struct lp_error err = {0};
    int fd;

    if (!has_ipv6()) {
        print_message("skipped: this machine has no ::1\n");
        skip();
    }
    four = must_listen(r, "*", NULL, &a);
    six = net_listen(r, "::", net_listener_port(four), NULL, keep_stream, &b, &err);
    if (!six)
        fail_msg("%s", err.msg);
    assert_non_null(strstr(net_listener_address(four), "0.0.0.0:"));
    assert_non_null(strstr(net_listener_address(six), "[::]:"));
    fd = raw_connect(net_listener_port(four));
    RUN_UNTIL(r, a);
    assert_null(b);
    close(fd);
    net_stream_close(a);
    net_listener_close(four);
    net_listener_close(six);
}

static void listening_fails_with_a_sentence(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *a = NULL;
    struct net_listener *l = must_listen(r, "127.0.0.1", NULL, &a);
    struct lp_error err = {0};
    uint16_t port = net_listener_port(l);

    assert_null(net_listen(r, "127.0.0.1", port, NULL, keep_stream, &a, &err));
    assert_int_equal(err.code, EADDRINUSE);
    assert_says(&err, "127.0.0.1");
    assert_says(&err, "another program listens there");
    assert_null(net_listen(r, "192.0.2.1", port, NULL, keep_stream, &a, &err));
    assert_int_equal(err.code, EADDRNOTAVAIL);
    assert_says(&err, "no interface of this machine");
    names.error = EAI_NONAME;
    assert_null(net_listen(r, "nas.test", port, NULL, keep_stream, &a, &err));
    names.error = 0;
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    assert_says(&err, "nas.test");
    net_listener_close(l);
}

static void a_name_of_this_machine_is_listened_on(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *a = NULL;
    struct net_listener *l;

    names.count = 1;
    l = must_listen(r, "here.test", NULL, &a);
    assert_non_null(strstr(net_listener_address(l), "127.0.0.1:"));
    net_listener_close(l);
}

static void a_closed_listener_leaves_its_port_at_once(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *a = NULL;
    struct net_listener *l = must_listen(r, "127.0.0.1", NULL, &a);
    uint16_t port = net_listener_port(l);

    for (int i = 0; i < 20; i++) {
        struct lp_error err = {0};

        net_run_once(r, 0); /* the kernel is watching */
        net_listener_close(l);
        l = net_listen(r, "127.0.0.1", port, NULL, keep_stream, &a, &err);
        if (!l)
            fail_msg("%s", err.msg);
    }
    net_listener_close(l);
}

static void a_paused_listener_accepts_later(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_stream *a = NULL;
    struct net_listener *l = must_listen(r, "127.0.0.1", NULL, &a);
    int fd;

    net_run_once(r, 0);
    net_listener_pause(l, true);
    fd = raw_connect(net_listener_port(l));
    for (int i = 0; i < 5; i++)
        net_run_once(r, 0);
    assert_null(a);
    net_listener_pause(l, false);
    RUN_UNTIL(r, a);
    net_stream_close(a);
    net_listener_close(l);
    close(fd);
}

struct crowd {
    struct net_listener *l;
    unsigned count, most;
    bool pause;
    struct net_stream *s[64];
};

static void join(void *user, struct net_stream *s)
{
    struct crowd *c = user;

    c->s[c->count++] = s;
    if (c->count != c->most)
        return;
    if (c->pause)
        net_listener_pause(c->l, true);
    else
        net_listener_close(c->l);
}

static void check_crowd(void **state, bool pause)
{
    struct net_reactor *r = reactor(state);
    struct crowd c = {.most = 3, .pause = pause};
    int fds[8];

    c.l = net_listen(r, "127.0.0.1", 0, NULL, join, &c, NULL);
    assert_non_null(c.l);
    for (int i = 0; i < 8; i++)
        fds[i] = raw_connect(net_listener_port(c.l));
    RUN_UNTIL(r, c.count >= 3);
    for (int i = 0; i < 5; i++)
        net_run_once(r, 0);
    assert_int_equal(c.count, 3);
    for (int i = 0; i < 3; i++)
        net_stream_close(c.s[i]);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    if (pause)
        net_listener_close(c.l);
}

static void a_listener_may_be_closed_by_its_own_callback(void **state)
{
    check_crowd(state, false);
}

static void a_listener_may_be_paused_by_its_own_callback(void **state)
{
    check_crowd(state, true);
}

static void without_descriptors_accepting_waits_and_goes_on(void **state)
{
    enum { CALLERS = 40 };
    struct net_reactor *r = reactor(state);
    struct fixture *f = *state;
    struct crowd c = {.most = 1000};
    struct rlimit limit, tight;
    int fds[CALLERS], calls;

    stop_time(state);
    c.l = net_listen(r, "127.0.0.1", 0, NULL, join, &c, NULL);
    assert_non_null(c.l);
    for (int i = 0; i < CALLERS; i++)
        fds[i] = raw_connect(net_listener_port(c.l));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    tight = limit;
    tight.rlim_cur = (rlim_t)fds[CALLERS - 1] + 6; /* room for five more */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    RUN_UNTIL(r, net_listener_starved(c.l) > 0);
    assert_int_equal(c.count, 5);
    assert_int_equal(net_deadline(r), f->now + SECOND / 10);
    net_run_once(r, 0);
    calls = net_run_once(r, 0); /* and does not spin */
    assert_int_equal(calls, 0);
    f->now += SECOND / 10;
    RUN_UNTIL(r, net_listener_starved(c.l) == 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    net_run_once(r, 0);
    assert_int_equal(c.count, 5);
    f->now += SECOND / 10;
    RUN_UNTIL(r, c.count == CALLERS);
    assert_int_equal(net_listener_starved(c.l), 2);
    for (int i = 0; i < CALLERS; i++) {
        net_stream_close(c.s[i]);
        close(fds[i]);
    }
    net_listener_close(c.l);
}

static void a_caller_that_has_gone_again_does_no_harm(void **state)
{
    struct net_reactor *r = reactor(state);
    struct crowd c = {.most = 1000};
    int fd;

    c.l = net_listen(r, "127.0.0.1", 0, NULL, join, &c, NULL);
    assert_non_null(c.l);
    raw_reset(raw_connect(net_listener_port(c.l)));
    fd = raw_connect(net_listener_port(c.l));
    RUN_UNTIL(r, c.count > 0 && strcmp(net_stream_peer(c.s[c.count - 1]), "the peer") != 0);
    while (c.count > 0)
        net_stream_close(c.s[--c.count]);
    close(fd);
    net_listener_close(c.l);
}

/* ---- options ---- */

static void tcp_options_are_set_on_both_ends(void **state)
{
    const struct net_tcp_opts tcp = {.keepalive_idle_s = 5,
                                     .keepalive_interval_s = 2,
                                     .keepalive_count = 3,
                                     .send_buffer = 8192,
                                     .recv_buffer = 8192};
    struct net_reactor *r = reactor(state);
    struct net_stream *client, *server;
    static const struct {
        int level, name, value; /* -1: anything but 0 */
    } wanted[] = {
        {IPPROTO_TCP, TCP_NODELAY, -1}, {SOL_SOCKET, SO_KEEPALIVE, -1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 5}, {IPPROTO_TCP, TCP_KEEPINTVL, 2},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},  {SOL_SOCKET, SO_SNDBUF, 16384},
        {SOL_SOCKET, SO_RCVBUF, 16384},
    };
    unsigned ends = 0;

    stream_pair(r, &tcp, &client, &server);
    for (int fd = 3; fd < 256; fd++) { /* which ones they are is nobody's business: look at all */
        struct sockaddr_in there;
        socklen_t length = sizeof(there);

        if (getpeername(fd, (struct sockaddr *)&there, &length) < 0 || there.sin_family != AF_INET)
            continue;
        ends++;
        for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
            int value = 0;

            length = sizeof(value);
            assert_int_equal(getsockopt(fd, wanted[i].level, wanted[i].name, &value, &length), 0);
            assert_true(wanted[i].value < 0 ? value != 0 : value == wanted[i].value);
        }
    }
    assert_int_equal(ends, 2);
    net_stream_close(client);
    net_stream_close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(an_ipv4_address_is_connected_without_a_lookup),
        BOTH(an_ipv6_address_is_connected_with_and_without_brackets),
        BOTH(what_is_no_address_is_refused_without_a_lookup),
        BOTH(a_refusal_names_the_address_and_what_to_do),
        BOTH(a_host_that_does_not_answer_is_given_up_in_time),
        BOTH(a_socket_that_called_itself_is_not_a_connection),
        BOTH(a_name_is_looked_up_and_connected),
        BOTH(an_unknown_name_is_an_error_with_a_sentence),
        BOTH(the_next_address_is_tried_when_one_refuses),
        BOTH(the_next_address_is_tried_beside_one_that_is_silent),
        BOTH(a_failure_names_the_addresses_that_were_tried),
        BOTH(a_name_with_very_many_addresses_does_no_harm),
        BOTH(the_total_time_counts_the_lookup),
        BOTH(the_total_time_ends_every_attempt),
        BOTH(a_cancelled_connection_tells_nothing_more),
        BOTH(a_lookup_can_be_cancelled_while_it_hangs),
        BOTH(a_reactor_is_freed_while_a_lookup_goes_on),
        BOTH(ipv4_and_ipv6_are_bound_to_the_same_port),
        BOTH(listening_fails_with_a_sentence),
        BOTH(a_name_of_this_machine_is_listened_on),
        BOTH(a_closed_listener_leaves_its_port_at_once),
        BOTH(a_paused_listener_accepts_later),
        BOTH(a_listener_may_be_closed_by_its_own_callback),
        BOTH(a_listener_may_be_paused_by_its_own_callback),
        BOTH(without_descriptors_accepting_waits_and_goes_on),
        BOTH(a_caller_that_has_gone_again_does_no_harm),
        BOTH(tcp_options_are_set_on_both_ends),
    };

    sem_init(&names.go, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
