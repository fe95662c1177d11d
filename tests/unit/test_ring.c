/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring host against honest and hostile peers. This program is also the driver: run again with
 * the driver's argument it serves for real, or, when the disk's URL begins with "hostile:", breaks
 * one rule of docs/ring.md on purpose.
 */
#define _GNU_SOURCE
#include "host/ring_host.h"
#include "host/ring_wait.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { DEPTH = 8, ARENA = 1 << 20, DISK = 1 << 20 };

/* ---- the hostile driver ---- */

struct hostile {
    struct ring_view view;
    struct ring_command first; /* the application's first submission */
    atomic_uchar *mark;        /* the arena's first byte: what the next driver is told */
};

enum { UNMARKED, CRASHED, MUTE };

static void complete_with(struct hostile *h, uint64_t word, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        atomic_store(&h->view.cq[i & h->view.mask], word);
    atomic_store(&h->view.shared->cq_tail, count);
}

static void mark_and_crash(struct hostile *h)
{
    atomic_store(h->mark, CRASHED);
    raise(SIGSEGV);
}

static void misbehave(struct hostile *h, const char *how)
{
    if (strcmp(how, "tail") == 0)
        complete_with(h, ring_cqe_pack(h->first.id, 0), 0x7fffffff);
    else if (strcmp(how, "id") == 0)
        complete_with(h, (uint64_t)0xffffffff << 32, 1);
    else if (strcmp(how, "twice") == 0)
        complete_with(h, ring_cqe_pack(h->first.id, 0), 2);
    else if (strcmp(how, "status") == 0)
        complete_with(h, ring_cqe_pack(h->first.id, 4711), 1);
    else if (strcmp(how, "crash") == 0)
        raise(SIGSEGV);
    else if (strcmp(how, "hangup") == 0)
        close(RING_DRIVER_FD);
    else if (strcmp(how, "once") == 0)
        mark_and_crash(h);
    /* "silent": nothing at all */
}

static int hostile_main(void)
{
    static struct ring_config config; /* large */
    struct memory control, arena;
    struct hostile h;
    int fds[RING_CONFIG_FDS];
    struct ring_reply reply = {.ok = 1};

    signal(SIGSEGV, SIG_DFL); /* a sanitizer's report would only be noise here */
    if (ring_recv_config(RING_DRIVER_FD, &config, fds) != 0 ||
        memory_open(&control, fds[0], ring_control_size(config.queues, config.depth), NULL) != 0 ||
        memory_open(&arena, fds[1], config.arena_size, NULL) != 0)
        return 1;
    h.mark = arena.base;
    if (atomic_load(h.mark) == CRASHED) {
        atomic_store(h.mark, MUTE); /* and never says that it serves */
        for (;;)
            pause();
    }
    ring_view_at(&h.view, control.base, config.depth, 0);
    send(RING_DRIVER_FD, &reply, sizeof reply, 0);
    while (atomic_load(&h.view.shared->sq_tail) == 0)
        usleep(100);
    ring_sqe_load(&h.view.sq[0], &h.first);
    misbehave(&h, config.url + strlen("hostile:"));
    for (;;)
        pause(); /* the application ends us */
}

static int driver_main(void)
{
    static struct ring_config config;
    static char peek[sizeof config];
    /* Looks at the URL without taking the message, to know which driver to be. */
    ssize_t n = recv(RING_DRIVER_FD, peek, sizeof peek, MSG_PEEK);

    if (n == (ssize_t)sizeof config) {
        memcpy(&config, peek, sizeof config);
        if (strncmp(config.url, "hostile:", 8) == 0)
            return hostile_main();
    }
    return ring_driver_serve(RING_DRIVER_FD);
}

/* ---- fixtures ---- */

struct fixture {
    struct memory arena;
    struct lp_disk *disk;
    struct ring_host_opts opts;
    struct ring_host *host;
    struct lp_queue *q;
};

static void start(struct fixture *f, const char *url, const char *disk_url, bool restart)
{
    struct lp_error err;

    memset(f, 0, sizeof *f);
    assert_int_equal(memory_create(&f->arena, "test-arena", ARENA, false, &err), 0);
    f->opts = (struct ring_host_opts){
        .config = {.magic = RING_MAGIC,
                   .queues = 1,
                   .depth = DEPTH,
                   .page_size = 4096,
                   .may_spin = 1,
                   .driver_cpu = -1,
                   .arena_size = f->arena.size},
        .fds = {f->arena.fd, -1, -1},
        .arena = f->arena.base,
        .arena_size = f->arena.size,
        .restart = restart,
        .stall_ns = 300000000,
        .limits = {.size = DISK, .block_size = 512, .mem_align = 1, .depth = DEPTH},
    };
    if (disk_url) {
        f->disk = lp_disk_open(disk_url, NULL, &err);
        assert_non_null(f->disk);
        f->opts.fds[2] = lp_disk_share(f->disk);
        f->opts.config.has_disk_fd = f->opts.fds[2] >= 0;
    }
    snprintf(f->opts.config.url, sizeof f->opts.config.url, "%s", url);
    f->host = ring_host_start(&f->opts, &err);
    if (!f->host)
        fail_msg("%s", err.msg);
    f->q = ring_queue_open(f->host, 0, &f->opts, &err);
    assert_non_null(f->q);
}

static void stop(struct fixture *f)
{
    lp_queue_close(f->q);
    ring_host_stop(f->host);
    if (f->disk)
        lp_disk_close(f->disk);
    memory_destroy(&f->arena);
}

static void note_done(struct lp_request *req)
{
    *(int *)req->user = req->status;
}

enum { PENDING = 1 };

/* One READ of the first 4 KiB; the result, or PENDING after 10 s. */
static int one_read(struct fixture *f)
{
    int status = PENDING;
    struct iovec iov = {f->arena.base, 4096};
    struct lp_request req = {.op = LP_READ,
                             .length = 4096,
                             .iov = &iov,
                             .iovcnt = 1,
                             .complete = note_done,
                             .user = &status};
    uint64_t until = clock_now_ns() + 10000000000u;

    assert_int_equal(lp_queue_submit(f->q, &req), 0);
    while (status == PENDING && clock_now_ns() < until)
        lp_queue_poll(f->q, 100000000);
    return status;
}

/* ---- the application against a hostile driver ---- */

static void expect_of_hostile(const char *url, int status)
{
    struct fixture f;

    start(&f, url, NULL, false);
    assert_int_equal(one_read(&f), status);
    stop(&f);
}

static void driver_that_jumps_its_tail_is_ended(void **state)
{
    (void)state;
    expect_of_hostile("hostile:tail", -EIO);
}

static void driver_that_makes_up_an_id_is_ended(void **state)
{
    (void)state;
    expect_of_hostile("hostile:id", -EIO);
}

static void driver_that_completes_twice_is_ended(void **state)
{
    (void)state;
    expect_of_hostile("hostile:twice", -EIO);
}

static void status_that_is_no_errno_becomes_eio(void **state)
{
    (void)state;
    expect_of_hostile("hostile:status", -EIO);
}

static void driver_that_crashes_fails_what_is_in_flight(void **state)
{
    (void)state;
    expect_of_hostile("hostile:crash", -EIO);
}

static void driver_that_hangs_up_but_lives_is_ended(void **state)
{
    (void)state;
    expect_of_hostile("hostile:hangup", -EIO);
}

static void driver_that_makes_no_progress_is_ended(void **state)
{
    (void)state;
    expect_of_hostile("hostile:silent", -EIO);
}

static void nothing_is_accepted_after_the_driver_stays_gone(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, "hostile:crash", NULL, false);
    assert_int_equal(one_read(&f), -EIO);
    assert_int_equal(one_read(&f), -ENODEV);
    assert_true(ring_host_failed(f.host));
    stop(&f);
}

/* ---- a driver's death and restart ---- */

static void data_survives_a_killed_driver(void **state)
{
    struct fixture f;
    char *arena;

    (void)state;
    start(&f, "ram:1M", "ram:1M", true);
    arena = f.arena.base;
    memset(arena, 0x5a, 4096);
    assert_int_equal(lp_queue_write(f.q, 8192, arena, 4096), 0);
    for (int i = 0; i < 5; i++) {
        kill(ring_host_pid(f.host), SIGKILL);
        memset(arena, 0, 4096);
        int e;
        do /* the kill may be seen only by the read that it interrupts */
            e = lp_queue_read(f.q, 8192, arena, 4096);
        while (e == -EIO);
        assert_int_equal(e, 0);
        for (int k = 0; k < 4096; k++)
            assert_int_equal((unsigned char)arena[k], 0x5a);
    }
    struct lp_host_stats stats;
    ring_host_stats(f.host, &stats);
    assert_true(stats.restarts >= 1);
    stop(&f);
}

static void stopped_driver_is_replaced(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, "ram:1M", "ram:1M", true);
    assert_int_equal(one_read(&f), 0);
    pid_t pid = ring_host_pid(f.host);
    siginfo_t info;
    kill(pid, SIGSTOP);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
    assert_int_equal(one_read(&f), -EIO);
    assert_int_equal(one_read(&f), 0);
    stop(&f);
}

/* A new driver has 10 s to start; who stops the host meanwhile does not wait for that. */
static void host_stops_while_a_driver_starts(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, "hostile:once", NULL, true);
    atomic_uchar *mark = f.arena.base;
    assert_int_equal(one_read(&f), -EIO);
    while (atomic_load(mark) != MUTE)
        lp_queue_poll(f.q, 1000000);
    uint64_t begin = clock_now_ns();
    stop(&f);
    assert_true(clock_now_ns() - begin < 5000000000u);
}

/* ---- a driver against a hostile application ---- */

struct raw {
    struct memory arena;
    struct ring_session *session;
    struct ring_view view;
    uint32_t tail, head;
};

static void raw_start(struct raw *r)
{
    static struct ring_config config;
    struct lp_error err;

    memset(r, 0, sizeof *r);
    assert_int_equal(memory_create(&r->arena, "test-arena", ARENA, false, &err), 0);
    config = (struct ring_config){.magic = RING_MAGIC,
                                  .queues = 1,
                                  .depth = DEPTH,
                                  .page_size = 4096,
                                  .driver_cpu = -1,
                                  .zero_reads = 1,
                                  .arena_size = ARENA};
    snprintf(config.url, sizeof config.url, "null:1M");
    int fds[3] = {r->arena.fd, -1, -1};
    r->session = ring_session_start(NULL, &config, fds, -1, &err);
    if (!r->session)
        fail_msg("%s", err.msg);
    ring_view_at(&r->view, r->session->control.base, DEPTH, 0);
    memset(r->arena.base, 0xee, ARENA);
}

static void raw_stop(struct raw *r)
{
    uint64_t cpu = 0;
    char how[64];

    ring_session_reap(r->session->pid, how, sizeof how, &cpu);
    ring_session_free(r->session);
    memory_destroy(&r->arena);
}

static void raw_publish(struct raw *r, uint32_t tail)
{
    struct ring_wait w;

    ring_wait_init(&w, false);
    atomic_store(&r->view.shared->sq_tail, tail);
    ring_wake(&w, &r->view.shared->driver_sleeping);
}

/* Sends one command; its status, or PENDING when the driver ended instead. */
static int raw_send(struct raw *r, const struct ring_command *c)
{
    struct ring_wait w;
    char byte;

    ring_sqe_store(&r->view.sq[r->tail & r->view.mask], c);
    raw_publish(r, ++r->tail);
    ring_wait_init(&w, false);
    for (;;) {
        if (ring_wait_for(&w, &r->view.shared->cq_tail, r->head, &r->view.shared->app_sleeping,
                          NULL, 20000000))
            break;
        if (recv(r->session->socket, &byte, 1, MSG_DONTWAIT) == 0)
            return PENDING;
    }
    return (int32_t)(uint32_t)atomic_load(&r->view.cq[r->head++ & r->view.mask]);
}

static void arena_is_untouched(const struct raw *r)
{
    const unsigned char *p = r->arena.base;

    for (size_t i = 0; i < ARENA; i++)
        assert_int_equal(p[i], 0xee);
}

static void driver_refuses_what_lies_outside_the_arena(void **state)
{
    static const struct ring_command bad[] = {
        {.op = LP_READ, .length = 4096, .nseg = 1, .addr = ARENA},
        {.op = LP_READ, .length = 4096, .nseg = 1, .addr = ARENA - 512},
        {.op = LP_READ, .length = 4096, .nseg = 1, .addr = UINT64_MAX - 100},
        {.op = LP_READ, .length = UINT32_MAX, .nseg = 1, .addr = 0},
        {.op = LP_READ, .length = 4096, .nseg = 1, .addr = 0, .offset = DISK},
        {.op = LP_READ, .length = 4096, .nseg = 1, .addr = 0, .offset = UINT64_MAX - 511},
        {.op = LP_READ, .length = 100, .nseg = 1, .addr = 0},
        {.op = LP_READ, .length = 4096, .nseg = UINT16_MAX, .addr = 0},
        {.op = LP_READ, .length = 4096, .nseg = 2, .addr = 0},
        {.op = LP_OP_COUNT, .length = 4096, .nseg = 1},
        {.op = 255, .length = 4096, .nseg = 1},
        {.op = LP_READ, .flags = 0x80, .length = 4096, .nseg = 1},
        {.op = LP_READ, .flags = LP_PREPARED, .length = 4096, .addr = 0},
    };
    struct raw r;

    (void)state;
    raw_start(&r);
    /* Slot 0's table, for the command with two segments: the second lies outside. */
    atomic_store(&r.view.segments[0].length, 2048);
    atomic_store(&r.view.segments[1].addr, ARENA - 1);
    atomic_store(&r.view.segments[1].length, 2048);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int status = raw_send(&r, &bad[i]);
        if (status >= 0)
            fail_msg("command %zu was not refused: %d", i, status);
    }
    arena_is_untouched(&r);
    /* And it still serves: the other arm of the test. */
    assert_int_equal(raw_send(&r, &(struct ring_command){.op = LP_READ, .length = 512, .nseg = 1}),
                     0);
    assert_int_equal(*(unsigned char *)r.arena.base, 0);
    raw_stop(&r);
}

static void driver_ends_when_an_id_is_made_up(void **state)
{
    struct raw r;

    (void)state;
    raw_start(&r);
    assert_int_equal(raw_send(&r, &(struct ring_command){.op = LP_READ, .id = DEPTH}), PENDING);
    arena_is_untouched(&r);
    raw_stop(&r);
}

static void driver_ends_when_the_tail_jumps(void **state)
{
    struct raw r;
    char byte;

    (void)state;
    raw_start(&r);
    raw_publish(&r, 0x80000000u);
    assert_int_equal(recv(r.session->socket, &byte, 1, 0), 0);
    arena_is_untouched(&r);
    raw_stop(&r);
}

/* ---- waiting ---- */

static void spinning_stops_when_it_does_not_pay_and_comes_back_when_it_does(void **state)
{
    uint64_t budget = RING_SPIN_MAX_NS;

    (void)state;
    for (int i = 0; i < 20; i++)
        budget = ring_wait_next_budget(budget, 50000000, true);
    assert_int_equal(budget, 0);
    budget = ring_wait_next_budget(budget, RING_SPIN_MAX_NS / 2, true);
    assert_int_equal(budget, RING_SPIN_MAX_NS);
}

static void wait_without_spinning_costs_one_system_call(void **state)
{
    struct ring_wait w;
    _Atomic uint32_t tail = 7, sleeping = 0;

    (void)state;
    ring_wait_init(&w, false);
    assert_false(ring_wait_for(&w, &tail, 7, &sleeping, NULL, 1000000));
    assert_true(w.syscalls >= 1);
    assert_int_equal(sleeping, 0);
    assert_true(ring_wait_for(&w, &tail, 6, &sleeping, NULL, 1000000));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], RING_DRIVER_ARG) == 0)
        return driver_main();

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver_that_jumps_its_tail_is_ended),
        cmocka_unit_test(driver_that_makes_up_an_id_is_ended),
        cmocka_unit_test(driver_that_completes_twice_is_ended),
        cmocka_unit_test(status_that_is_no_errno_becomes_eio),
        cmocka_unit_test(driver_that_crashes_fails_what_is_in_flight),
        cmocka_unit_test(driver_that_hangs_up_but_lives_is_ended),
        cmocka_unit_test(driver_that_makes_no_progress_is_ended),
        cmocka_unit_test(nothing_is_accepted_after_the_driver_stays_gone),
        cmocka_unit_test(data_survives_a_killed_driver),
        cmocka_unit_test(stopped_driver_is_replaced),
        cmocka_unit_test(host_stops_while_a_driver_starts),
        cmocka_unit_test(driver_refuses_what_lies_outside_the_arena),
        cmocka_unit_test(driver_ends_when_an_id_is_made_up),
        cmocka_unit_test(driver_ends_when_the_tail_jumps),
        cmocka_unit_test(spinning_stops_when_it_does_not_pay_and_comes_back_when_it_does),
        cmocka_unit_test(wait_without_spinning_costs_one_system_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
