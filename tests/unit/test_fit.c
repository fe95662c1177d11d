/* SPDX-License-Identifier: BSD-2-Clause */
/* Fit on a scripted queue, case by case. Any shape on any limits: test_fit_any.c. */
#include "fit_rig.h"

/* One segment at the start of the space, at the zone's start on the disk. */
static struct job *simple_job(struct bench *b, unsigned i, enum lp_op op, size_t length)
{
    struct job *j = &b->jobs[i];

    j->iov[0] = (struct iovec){j->space, length};
    j->req.op = op;
    j->req.offset = (uint64_t)i * ZONE;
    j->req.length = length;
    j->req.iov = j->iov;
    j->req.iovcnt = 1;
    return j;
}

static int run_one(struct bench *b, struct job *j)
{
    assert_ptr_equal(j, b->jobs);
    submit(b, j);
    assert_int_equal(run_to_end(b, 1), 1);
    return j->status;
}

/* ---- straight, errors ---- */

static void test_straight(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    bench_open(b);
    struct job *j = simple_job(b, 0, LP_READ, 4096);
    submit(b, j);
    assert_int_equal(b->script.held_count, 1);
    assert_ptr_equal(b->script.held[0], &j->req); /* the very request */
    assert_int_equal(run_to_end(b, 1), 1);
    check_job(b, j);
    assert_int_equal(lp_fit_bounced(b->fit), 0);
    bench_free(b);
}

static void test_alignment_above_block(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    b->script.q.limits.mem_align = 4096;
    bench_open(b);
    assert_int_equal(b->fit->limits.block_size, 4096);
    struct job *j = simple_job(b, 0, LP_READ, 512); /* no aligned segment is so short */
    assert_int_equal(run_one(b, j), -EINVAL);
    j = simple_job(b, 0, LP_READ, 8192);
    j->iov[0].iov_base = j->space + 3;
    assert_int_equal(run_one(b, j), 0);
    check_job(b, j);
    assert_null(b->script.broken);
    assert_true(lp_fit_bounced(b->fit) > 0);
    bench_free(b);
}

static void test_bad_requests(void **state)
{
    struct bench *b = bench_new(512, 1);
    struct job *j = simple_job(b, 0, LP_READ, 512);

    (void)state;
    bench_open(b);
    j->req.offset = DISK;
    assert_int_equal(run_one(b, j), -EINVAL);
    j->req.offset = UINT64_MAX - 511; /* offset + length is 0 */
    assert_int_equal(run_one(b, j), -EINVAL);
    j->req.offset = 1;
    assert_int_equal(run_one(b, j), -EINVAL);
    j->req.offset = 0;
    j->req.length = j->iov[0].iov_len = 100;
    assert_int_equal(run_one(b, j), -EINVAL);
    j->req.length = 1024; /* sum too small */
    j->iov[0].iov_len = 512;
    assert_int_equal(run_one(b, j), -EINVAL);
    j->iov[0].iov_len = SIZE_MAX; /* too large; adding it up would wrap around */
    assert_int_equal(run_one(b, j), -EINVAL);
    assert_int_equal(b->script.taken, 0);
    j->req.length = 0;
    j->req.iovcnt = 0;
    assert_int_equal(run_one(b, j), 0); /* nothing to do */
    assert_int_equal(b->script.taken, 0);
    bench_free(b);
}

static void test_read_only(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    b->script.q.limits.read_only = true;
    bench_open(b);
    assert_int_equal(run_one(b, simple_job(b, 0, LP_WRITE, 512)), -EROFS);
    assert_int_equal(run_one(b, simple_job(b, 0, LP_DISCARD, 512)), -EROFS);
    assert_int_equal(run_one(b, simple_job(b, 0, LP_WRITE_ZEROES, 512)), -EROFS);
    assert_int_equal(b->script.taken, 0);
    assert_int_equal(run_one(b, simple_job(b, 0, LP_READ, 512)), 0);
    bench_free(b);
}

static void test_missing_operations(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    b->script.q.limits.discard = b->script.q.limits.write_zeroes = false;
    bench_open(b);
    assert_int_equal(run_one(b, simple_job(b, 0, LP_DISCARD, 512)), -EOPNOTSUPP);
    assert_int_equal(run_one(b, simple_job(b, 0, LP_WRITE_ZEROES, 512)), -EOPNOTSUPP);
    assert_int_equal(b->script.taken, 0);
    bench_free(b);
}

/* Whichever piece fails, and whenever it ends: one end, its error, nothing left behind. */
static void test_failing_piece(void **state)
{
    (void)state;
    for (unsigned nth = 1; nth <= 16; nth++) {
        for (unsigned window = 0; window <= 2; window++) {
            struct bench *b = bench_new(512, nth);
            b->script.q.limits.max_transfer = 4096;
            b->opts.window = window;
            bench_open(b);
            b->script.fail_at = nth;
            assert_int_equal(run_one(b, simple_job(b, 0, LP_READ, ZONE)), -EIO);
            assert_true(b->script.taken >= nth && b->script.taken <= 16);
            b->script.fail_at = 0;
            assert_int_equal(run_one(b, simple_job(b, 0, LP_READ, ZONE)), 0); /* all is free */
            bench_free(b);
        }
    }
}

static void test_first_error(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    b->script.q.limits.max_transfer = 4096;
    b->opts.window = 2;
    bench_open(b);
    b->script.fail_at = 3;
    b->script.fail_too = 4;
    struct job *j = simple_job(b, 0, LP_WRITE, ZONE);
    submit(b, j);
    int first = 0;
    while (!j->ended) { /* the order of the script decides which one is the first */
        unsigned held = b->script.held_count;
        struct lp_request *in_flight[2] = {held > 0 ? b->script.held[0] : NULL,
                                           held > 1 ? b->script.held[1] : NULL};
        lp_queue_poll(b->fit, 0);
        for (unsigned i = 0; i < 2 && first == 0; i++) {
            bool gone = in_flight[i] && in_flight[i]->status != 0;
            for (unsigned k = 0; k < b->script.held_count; k++)
                gone = gone && b->script.held[k] != in_flight[i];
            if (gone)
                first = in_flight[i]->status;
        }
    }
    assert_int_equal(j->ended, 1);
    assert_true(first == -EIO || first == -EPERM);
    assert_int_equal(j->status, first);
    bench_free(b);
}

/* ---- window, bounce, capacity ---- */

static void test_window(void **state)
{
    (void)state;
    for (unsigned window = 1; window <= 4; window++) {
        struct bench *b = bench_new(512, window);
        b->script.q.limits.max_transfer = 1024;
        b->opts.window = window;
        bench_open(b);
        assert_int_equal(run_one(b, simple_job(b, 0, LP_WRITE, ZONE)), 0);
        assert_int_equal(b->script.taken, 64);
        assert_int_equal(b->script.most_held, window);
        for (unsigned i = 0; i < 3; i++) /* each request has its own window */
            submit(b, simple_job(b, i, LP_READ, ZONE));
        run_to_end(b, 3);
        assert_int_equal(b->script.most_held, 3 * window);
        bench_free(b);
    }
}

static void test_always_bounce(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    b->opts = (struct lp_fit_opts){.depth = 4,
                                   .always_bounce = true,
                                   .bounce = b->memory,
                                   .bounce_size = 4 * 4096,
                                   .bounce_per_page = true,
                                   .page_size = 4096};
    b->script.q.limits.max_transfer = 3072; /* less than a page: pages still begin pieces */
    b->script.q.limits.arena = b->memory;
    b->script.q.limits.arena_size = BOUNCE;
    b->script.bounce_from = b->memory;
    b->script.bounce_page = 4096;
    bench_open(b);
    for (unsigned i = 0; i < 4; i++)
        submit(b, simple_job(b, i, i % 2 ? LP_READ : LP_WRITE, 30 * 1024));
    run_to_end(b, 4);
    assert_null(b->script.broken);
    for (unsigned i = 0; i < 4; i++)
        check_job(b, &b->jobs[i]);
    assert_memory_equal(b->disk, b->mirror, DISK);
    assert_int_equal(lp_fit_bounced(b->fit), 40);
    assert_true(b->script.most_held <= 4);
    bench_free(b);
}

static void test_bounce_without_limits(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    b->opts.always_bounce = true; /* its own memory, and no limit says how much that is */
    bench_open(b);
    assert_int_equal(run_one(b, simple_job(b, 0, LP_WRITE, ZONE)), 0);
    assert_int_equal(lp_fit_bounced(b->fit), 1);
    check_job(b, &b->jobs[0]);
    assert_memory_equal(b->disk, b->mirror, DISK);
    bench_free(b);
}

/* Room for one bounce only, and a queue that is full all the time. */
static void test_bounce_runs_out(void **state)
{
    struct bench *b = bench_new(512, 7);

    (void)state;
    b->script.q.limits.mem_align = 512;
    b->script.capacity = 2;
    b->opts.bounce = b->memory;
    b->opts.bounce_size = 1024;
    bench_open(b);
    for (unsigned i = 0; i < ZONES; i++) {
        struct job *j = simple_job(b, i, i % 2 ? LP_READ : LP_WRITE, 8192);
        if (i % 4 < 2)
            j->iov[0].iov_base = j->space + 3;
        submit(b, j);
    }
    run_to_end(b, ZONES);
    assert_null(b->script.broken);
    for (unsigned i = 0; i < ZONES; i++)
        check_job(b, &b->jobs[i]);
    assert_memory_equal(b->disk, b->mirror, DISK);
    assert_int_equal(lp_fit_bounced(b->fit), 4 * 8); /* only the misaligned ones, once each */
    assert_true(b->script.refused > 0);
    bench_free(b);
}

static void test_more_requests_than_pieces(void **state)
{
    struct bench *b = bench_new(512, 3);

    (void)state;
    b->script.q.limits.depth = 2; /* pieces */
    b->script.q.limits.max_transfer = 512;
    bench_open(b);
    for (unsigned i = 0; i < ZONES; i++) {
        assert_int_equal(lp_queue_submit(b->fit, &simple_job(b, i, LP_READ, ZONE)->req), 0);
        memcpy(b->jobs[i].before, b->jobs[i].space, SPACE);
    }
    assert_int_equal(run_to_end(b, ZONES), ZONES);
    assert_int_equal(b->script.most_held, 2);
    for (unsigned i = 0; i < ZONES; i++)
        check_job(b, &b->jobs[i]);
    bench_free(b);
}

/* Whatever way they go: straight through, in pieces, or nowhere since they are wrong. */
static void test_depth(void **state)
{
    struct bench *b = bench_new(512, 3);
    struct job *extra = simple_job(b, ZONES - 1, LP_READ, 512);
    static const size_t lengths[] = {512, 8192, 100};

    (void)state;
    b->script.q.limits.max_transfer = 4096;
    b->opts.depth = 3;
    bench_open(b);
    assert_int_equal(b->fit->limits.depth, 3);
    for (unsigned way = 0; way < 27; way++) {
        unsigned kinds[3] = {way % 3, way / 3 % 3, way / 9};
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(
                lp_queue_submit(b->fit, &simple_job(b, i, LP_READ, lengths[kinds[i]])->req), 0);
        assert_int_equal(lp_queue_submit(b->fit, &extra->req), -EAGAIN);
        for (unsigned i = 0; i < 3; i++)
            b->jobs[i].ended = 0;
        assert_int_equal(run_to_end(b, 3), 3);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(b->jobs[i].status, kinds[i] == 2 ? -EINVAL : 0);
    }
    bench_free(b);
}

struct again {
    struct job *job;
    struct lp_queue *fit;
};

static void submit_again(struct lp_request *req)
{
    struct again *a = req->user;

    if (++a->job->ended < 4)
        assert_int_equal(lp_queue_submit(a->fit, req), 0);
}

/* The place of a request is free when its complete() is called, and the request is its owner's. */
static void test_resubmit_when_full(void **state)
{
    struct bench *b = bench_new(512, 3);
    struct again again[3];

    (void)state;
    b->script.q.limits.max_transfer = 4096;
    b->opts.depth = 3;
    bench_open(b);
    for (unsigned i = 0; i < 3; i++) {
        struct job *j = simple_job(b, i, LP_READ, i == 0 ? 512 : i == 1 ? 8192 : 100);
        again[i] = (struct again){j, b->fit};
        j->req.user = &again[i];
        j->req.complete = submit_again;
        j->ended = 0;
        assert_int_equal(lp_queue_submit(b->fit, &j->req), 0);
    }
    unsigned polled = 0;
    for (unsigned tries = 0; polled < 12 && tries < 1000; tries++)
        polled += (unsigned)lp_queue_poll(b->fit, 0);
    assert_int_equal(polled, 12);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(b->jobs[i].ended, 4);
        assert_ptr_equal(b->jobs[i].req.user, &again[i]);
        assert_true(b->jobs[i].req.complete == submit_again);
    }
    bench_free(b);
}

/* 0 from poll() would say that the time is over. */
static void test_poll_waits_for_requests(void **state)
{
    struct bench *b = bench_new(512, 3);

    (void)state;
    b->script.q.limits.max_transfer = 512;
    bench_open(b);
    submit(b, simple_job(b, 0, LP_READ, ZONE));
    assert_int_equal(lp_queue_poll(b->fit, 1), 1);
    assert_int_equal(b->jobs[0].ended, 1);
    assert_int_equal(lp_queue_poll(b->fit, 1), 0);
    bench_free(b);
}

/* ---- operations without data ---- */

static void test_flush_is_sent(void **state)
{
    struct bench *b = bench_new(512, 1);

    (void)state;
    b->script.capacity = 1;
    bench_open(b);
    submit(b, simple_job(b, 0, LP_WRITE, 512)); /* fills the queue */
    submit(b, simple_job(b, 1, LP_WRITE, 512)); /* waits */
    struct job *flush = simple_job(b, 2, LP_FLUSH, 0);
    flush->req.offset = 0;
    flush->req.iovcnt = 0;
    submit(b, flush);
    run_to_end(b, 3);
    assert_int_equal(flush->status, 0);
    assert_int_equal(b->script.ops[LP_FLUSH], 1);
    assert_null(b->script.broken);
    b->script.fail_at = b->script.taken + 2; /* and its error is told */
    submit(b, simple_job(b, 0, LP_WRITE, 512));
    b->jobs[1] = b->jobs[2];
    b->jobs[1].req.user = &b->jobs[1];
    submit(b, &b->jobs[1]);
    run_to_end(b, 2);
    assert_int_equal(b->jobs[1].status, -EIO);
    bench_free(b);
}

static void check_discard(uint32_t max_transfer, uint64_t pieces)
{
    struct bench *b = bench_new(512, 1);

    b->script.q.limits.max_transfer = max_transfer;
    b->script.capacity = 1;
    bench_open(b);
    submit(b, simple_job(b, 0, LP_WRITE, 512));
    struct job *j = simple_job(b, 1, LP_DISCARD, ZONE);
    j->req.iov = NULL;
    j->req.iovcnt = 0;
    submit(b, j);
    run_to_end(b, 2);
    assert_null(b->script.broken);
    assert_int_equal(b->script.ops[LP_DISCARD], pieces);
    assert_int_equal(lp_fit_bounced(b->fit), 0);
    bench_free(b);
}

static void test_discard(void **state)
{
    (void)state;
    check_discard(0, 1);
    check_discard(16384, 4);
    check_discard(16384 + 100, 4); /* whole blocks */
}

/* ---- refused ---- */

static void refused(const struct lp_limits *change, const struct lp_fit_opts *opts,
                    const char *word)
{
    struct script_queue script;
    struct lp_error err = {0};
    unsigned closed = 0;

    script_init(&script, NULL, DISK, 4096, 1);
    script.closed = &closed;
    struct lp_limits l = script.q.limits;
    l.mem_align = 512;
    l.max_transfer = change->max_transfer;
    l.max_segment = change->max_segment;
    l.max_segments = change->max_segments;
    l.arena = change->arena;
    l.arena_size = change->arena_size;
    assert_null(lp_fit_open(&script.q, &l, opts, &err));
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    if (!strstr(err.msg, word) || strchr(err.msg, '\n'))
        fail_msg("refused with \"%s\"", err.msg);
    assert_int_equal(closed, 1); /* owned, also on failure */
}

static void test_little_limits(void **state)
{
    struct lp_fit_opts opts = {.depth = 1};
    static _Alignas(4096) char memory[1024];

    (void)state;
    refused(&(struct lp_limits){.max_transfer = 2048}, &opts, "transfer 2048");
    refused(&(struct lp_limits){.max_segment = 512, .max_segments = 7}, &opts, "segments 7");
    refused(&(struct lp_limits){.max_segment = 100}, &opts, "segment 100");
    opts.bounce = memory;
    opts.bounce_size = sizeof memory;
    refused(&(struct lp_limits){0}, &opts, "1024 bytes of bounce memory");
}

/* A bounce that the driver cannot reach is as bad as the data that it stands for. */
static void test_bounce_outside_arena(void **state)
{
    enum { ARENA = 64 << 10, HALF = ARENA / 2 };
    struct lp_fit_opts opts = {.depth = 1};
    struct lp_limits limits = {0};
    void *memory = NULL;

    (void)state;
    assert_int_equal(posix_memalign(&memory, 4096, ARENA + HALF), 0);
    limits.arena = (char *)memory + 4096;
    limits.arena_size = ARENA;
    refused(&limits, &opts, "give a part of the arena as bounce memory");
    opts.bounce_size = HALF;
    opts.bounce = memory; /* begins a page too early */
    refused(&limits, &opts, "does not lie in the arena");
    opts.bounce = (char *)memory + HALF + 2 * 4096; /* ends a page too late */
    refused(&limits, &opts, "does not lie in the arena");
    opts.bounce_size = SIZE_MAX; /* its end would wrap around */
    refused(&limits, &opts, "does not lie in the arena");
    opts.bounce_size = HALF;
    opts.bounce = (char *)memory + 4096 + 100;
    refused(&limits, &opts, "multiple of 512");
    opts.bounce = (char *)memory + 4096 + 512;
    opts.always_bounce = opts.bounce_per_page = true;
    opts.page_size = 4096;
    refused(&limits, &opts, "multiple of 4096");
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a request that meets the limits passes straight through", test_straight, NULL, NULL,
         NULL},
        {"an alignment above the block is the block above", test_alignment_above_block, NULL, NULL,
         NULL},
        {"requests outside the disk, not in blocks or with a wrong sum end with EINVAL",
         test_bad_requests, NULL, NULL, NULL},
        {"a read-only disk is only read", test_read_only, NULL, NULL, NULL},
        {"operations that the disk has not end with EOPNOTSUPP", test_missing_operations, NULL,
         NULL, NULL},
        {"a failing piece ends its request once, with its error", test_failing_piece, NULL, NULL,
         NULL},
        {"of two errors the first is told", test_first_error, NULL, NULL, NULL},
        {"no request has more pieces in flight than its window", test_window, NULL, NULL, NULL},
        {"with always_bounce every piece begins at a page of the bounce", test_always_bounce, NULL,
         NULL, NULL},
        {"always_bounce works without any limit", test_bounce_without_limits, NULL, NULL, NULL},
        {"requests wait for bounce memory", test_bounce_runs_out, NULL, NULL, NULL},
        {"more requests than pieces all end", test_more_requests_than_pieces, NULL, NULL, NULL},
        {"a request above the depth is not taken, whichever way those before it go", test_depth,
         NULL, NULL, NULL},
        {"complete() may submit again to a full queue", test_resubmit_when_full, NULL, NULL, NULL},
        {"a poll that may wait does so until a request ends, not a piece",
         test_poll_waits_for_requests, NULL, NULL, NULL},
        {"a flush that has to wait is sent all the same", test_flush_is_sent, NULL, NULL, NULL},
        {"a discard is split in whole blocks and needs no bounce", test_discard, NULL, NULL, NULL},
        {"limits that leave no room are refused with a sentence", test_little_limits, NULL, NULL,
         NULL},
        {"bounce memory that the driver cannot use is refused with a sentence",
         test_bounce_outside_arena, NULL, NULL, NULL},
    };

    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
