/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One TCP connection over loopback between two processes: how much goes through it with writes of
 * 1 MiB, and how long a round trip of 48 bytes takes. For perf/net.sh.
 *
 *     perf_net WAY CLIENT_CPU SERVER_CPU SECONDS
 *
 * WAY is what both ends use: "blocking" (plain send and recv), the engines "poll" and "uring" of
 * src/net, these two with "-spin" behind (look for events for 50 us before sleeping), or "ring":
 * send and recv themselves as operations of an io_uring, which src/net does not do.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 1 << 20, SMALL = 48 };

/* What one end does until the time is over (client) or the other end closes (server). */
struct job {
    bool server, small;
    uint64_t end; /* clock */
    uint64_t in, out, calls;
    char *memory; /* LARGE */
    bool over;
    /* engines */
    const char *engine;
    struct net_stream *s;
};

static void need(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "perf_net: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static size_t to_send(const struct job *j)
{
    if (j->server)
        return j->small ? j->in - j->out : 0;
    return j->small ? j->in / SMALL * SMALL + SMALL - j->out : LARGE;
}

static bool has_time(const struct job *j)
{
    return j->server || clock_now_ns() < j->end;
}

/* ---- blocking ---- */

static void blocking(struct job *j, int fd)
{
    ssize_t n;

    while (has_time(j)) {
        while (to_send(j) > 0 && has_time(j)) {
            n = send(fd, j->memory, to_send(j), MSG_NOSIGNAL);
            j->calls++;
            need(n > 0, "send");
            j->out += (uint64_t)n;
        }
        if (!j->server && !j->small)
            continue;
        n = recv(fd, j->memory, LARGE, 0);
        j->calls++;
        if (n <= 0)
            break;
        j->in += (uint64_t)n;
    }
    close(fd);
}

/* ---- io_uring with the data in it ---- */

static void ring(struct job *j, int fd)
{
    struct io_uring u;
    struct io_uring_cqe *cqe;
    bool sending = false, receiving = false, ended = false;

    need(io_uring_queue_init(8, &u, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) == 0,
         "io_uring");
    while (!ended && has_time(j)) {
        if (!sending && to_send(j) > 0) {
            struct io_uring_sqe *sqe = io_uring_get_sqe(&u);

            io_uring_prep_send(sqe, fd, j->memory, to_send(j), MSG_NOSIGNAL);
            /* Nobody has to wait for a small one: one call a round trip. */
            if (j->small) {
                io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
                j->out += to_send(j);
            }
            sending = !j->small;
        }
        if (!receiving && (j->server || j->small)) {
            struct io_uring_sqe *sqe = io_uring_get_sqe(&u);

            io_uring_prep_recv(sqe, fd, j->memory, LARGE, 0);
            sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
            io_uring_sqe_set_data64(sqe, 1);
            receiving = true;
        }
        j->calls++;
        io_uring_submit_and_wait(&u, 1);
        while (io_uring_peek_cqe(&u, &cqe) == 0) {
            if (cqe->user_data == 1) {
                receiving = false;
                ended = cqe->res <= 0;
                j->in += ended ? 0 : (uint64_t)cqe->res;
            } else {
                sending = false;
                j->out += cqe->res > 0 ? (uint64_t)cqe->res : 0;
            }
            io_uring_cqe_seen(&u, cqe);
        }
    }
    shutdown(fd, SHUT_RDWR);
    io_uring_queue_exit(&u);
    close(fd);
}

/* ---- src/net ---- */

static unsigned recv_space(void *user, struct iovec *iov, unsigned max)
{
    const struct job *j = user;

    (void)max;
    *iov = (struct iovec){j->memory, LARGE};
    return 1;
}

static void received(void *user, size_t n)
{
    struct job *j = user;

    j->in += n;
    net_stream_want_send(j->s);
}

static unsigned send_data(void *user, struct iovec *iov, unsigned max)
{
    const struct job *j = user;

    (void)max;
    *iov = (struct iovec){j->memory, to_send(j)};
    return to_send(j) > 0;
}

static void sent(void *user, size_t n)
{
    ((struct job *)user)->out += n;
}

static void closed(void *user, const struct lp_error *why)
{
    (void)why;
    ((struct job *)user)->over = true;
}

static void take(void *user, struct net_stream *s)
{
    ((struct job *)user)->s = s;
}

static void take_result(void *user, struct net_stream *s, const struct lp_error *why)
{
    need(s, why ? why->msg : "connect");
    take(user, s);
}

static const struct net_stream_ops ops = {recv_space, received, send_data, sent, closed};

static struct net_reactor *engine(const struct job *j)
{
    char name[16];
    struct net_reactor_opts opts = {.engine = name};
    struct lp_error err;
    struct net_reactor *r;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(j->engine, "-"), j->engine);
    if (strchr(j->engine, '-'))
        opts.spin_ns = 50000;
    r = net_reactor_new(&opts, &err);
    need(r, err.msg);
    return r;
}

static uint64_t calls(const struct net_reactor *r)
{
    const struct net_reactor_stats *s = net_reactor_stats(r);

    return s->waits + s->sends + s->recvs;
}

static void run(struct job *j, struct net_reactor *r)
{
    uint64_t before = calls(r);

    net_stream_start(j->s, &ops, j);
    while (!j->over && has_time(j))
        net_run_once(r, NET_NEVER);
    j->calls = calls(r) - before;
    net_stream_close(j->s);
    net_reactor_free(r);
}

/* ---- both ends ---- */

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    need(sched_setaffinity(0, sizeof(set), &set) == 0, "CPU");
}

static bool is_plain(const struct job *j)
{
    return strcmp(j->engine, "blocking") == 0 || strcmp(j->engine, "ring") == 0;
}

static void plain(struct job *j, int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (strcmp(j->engine, "ring") == 0)
        ring(j, fd);
    else
        blocking(j, fd);
}

/* Listens, says the port through the pipe, serves one connection. */
static void serve(struct job *j, int tell)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    uint16_t port;

    if (is_plain(j)) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        need(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 1) == 0, "listen");
        getsockname(fd, (struct sockaddr *)&address, &length);
        port = ntohs(address.sin_port);
        need(write(tell, &port, sizeof(port)) == sizeof(port), "pipe");
        plain(j, accept(fd, NULL, NULL));
    } else {
        struct net_reactor *r = engine(j);
        struct lp_error err;
        struct net_listener *l = net_listen(r, "127.0.0.1", 0, NULL, take, j, &err);

        need(l, err.msg);
        port = net_listener_port(l);
        need(write(tell, &port, sizeof(port)) == sizeof(port), "pipe");
        while (!j->s)
            net_run_once(r, NET_NEVER);
        net_listener_close(l);
        run(j, r);
    }
}

static void call(struct job *j, uint16_t port, uint64_t ns)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    j->end = clock_now_ns() + ns;
    if (is_plain(j)) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        need(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
        plain(j, fd);
    } else {
        struct net_reactor *r = engine(j);

        need(net_connect(r, "127.0.0.1", port, NULL, take_result, j, NULL), "connect");
        while (!j->s)
            net_run_once(r, NET_NEVER);
        run(j, r);
    }
}

static struct job measure(const char *way, int client_cpu, int server_cpu, bool small, uint64_t ns)
{
    struct job j = {.engine = way, .small = small, .memory = calloc(1, LARGE)};
    uint16_t port;
    int fds[2], status;
    pid_t child;

    need(j.memory && pipe(fds) == 0, "pipe");
    child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        j.server = true;
        pin(server_cpu);
        serve(&j, fds[1]);
        exit(0);
    }
    close(fds[1]);
    pin(client_cpu);
    need(read(fds[0], &port, sizeof(port)) == sizeof(port), "server");
    call(&j, port, ns);
    close(fds[0]);
    need(waitpid(child, &status, 0) == child && status == 0, "server");
    free(j.memory);
    return j;
}

int main(int argc, char **argv)
{
    uint64_t ns = argc == 5 ? (uint64_t)(atof(argv[4]) * 1e9) : 0;
    struct job large, small;

    if (ns == 0) {
        fprintf(stderr, "usage: perf_net WAY CLIENT_CPU SERVER_CPU SECONDS\n");
        return 2;
    }
    large = measure(argv[1], atoi(argv[2]), atoi(argv[3]), false, ns);
    small = measure(argv[1], atoi(argv[2]), atoi(argv[3]), true, ns);
    need(small.in >= SMALL, "no round trip");
    printf("{\"net\": \"%s\", \"gbit_per_s\": %.3f, \"round_trip_ns\": %.0f, "
           "\"calls_per_round_trip\": %.2f}\n",
           argv[1], (double)large.out * 8 / (double)ns, (double)ns / ((double)small.in / SMALL),
           (double)small.calls / ((double)small.in / SMALL));
    return 0;
}
