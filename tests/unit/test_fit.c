/* SPDX-License-Identifier: BSD-2-Clause */
/* Fit on a scripted queue. A failure prints the seed of the round that shows it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "script_queue.h"

#include <lunpath/fit.h>

#include <stdio.h>

enum {
    ZONES = 8, /* requests of a round, each in a part of the disk of its own */
    ZONE = 64 << 10,
    SPACE = 4 * ZONE, /* memory for one request's segments */
    BOUNCE = 256 << 10,
    MAX_SEGS = 40,
    DISK = ZONES * ZONE,
    ROUNDS = 400,
};

struct job {
    struct lp_request req;
    struct iovec iov[MAX_SEGS];
    char *space;  /* SPACE bytes */
    char *before; /* SPACE bytes: what space held before */
    unsigned ended;
    int status;
};

struct bench {
    struct script_queue script;
    struct lp_queue *fit;
    struct lp_fit_opts opts;
    char *disk, *mirror;
    char *memory; /* bounce, then ZONES spaces */
    char *copies;
    struct job jobs[ZONES];
    unsigned closed;
};

static void job_done(struct lp_request *req)
{
    struct job *j = req->user;

    j->ended++;
    j->status = req->status;
}

static void fill(struct rng *rng, char *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word = rng_next(rng);
        memcpy(p, &word, 8);
    }
    memset(p, 0x5a, n);
}

static struct bench *bench_new(uint32_t block_size, uint64_t seed)
{
    struct bench *b = calloc(1, sizeof *b);
    void *memory = NULL;
    struct rng rng = {seed};

    assert_non_null(b);
    assert_int_equal(posix_memalign(&memory, 16384, BOUNCE + (size_t)ZONES * SPACE), 0);
    b->memory = memory;
    b->copies = malloc((size_t)ZONES * SPACE);
    b->disk = malloc(DISK);
    b->mirror = malloc(DISK);
    assert_true(b->copies && b->disk && b->mirror);
    fill(&rng, b->disk, DISK);
    fill(&rng, b->memory, BOUNCE + (size_t)ZONES * SPACE);
    memcpy(b->mirror, b->disk, DISK);
    script_init(&b->script, b->disk, DISK, block_size, seed);
    b->script.closed = &b->closed;
    b->opts.depth = ZONES;
    for (unsigned i = 0; i < ZONES; i++) {
        b->jobs[i].space = b->memory + BOUNCE + (size_t)i * SPACE;
        b->jobs[i].before = b->copies + (size_t)i * SPACE;
        b->jobs[i].req.user = &b->jobs[i];
        b->jobs[i].req.complete = job_done;
    }
    return b;
}

static void bench_open(struct bench *b)
{
    struct lp_error err = {0};

    b->fit = lp_fit_open(&b->script.q, &b->script.q.limits, &b->opts, &err);
    if (!b->fit)
        fail_msg("%s", err.msg);
}

static void bench_free(struct bench *b)
{
    lp_queue_close(b->fit);
    assert_int_equal(b->closed, 1);
    free(b->memory);
    free(b->copies);
    free(b->disk);
    free(b->mirror);
    free(b);
}

static void submit(struct bench *b, struct job *j)
{
    j->ended = 0;
    memcpy(j->before, j->space, SPACE);
    while (lp_queue_submit(b->fit, &j->req) != 0)
        lp_queue_poll(b->fit, 0);
}

/* Polls until each of the first n has ended; returns what poll() says has ended. */
static unsigned run_to_end(struct bench *b, unsigned n)
{
    unsigned counted = 0, ended = 0;

    for (unsigned tries = 0; ended < n; tries++) {
        if (tries > 1000000)
            fail_msg("%u of %u requests ended", ended, n);
        counted += (unsigned)lp_queue_poll(b->fit, 0);
        ended = 0;
        for (unsigned i = 0; i < n; i++)
            ended += b->jobs[i].ended > 0;
    }
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(b->jobs[i].ended, 1);
    assert_int_equal(b->script.held_count, 0);
    return counted;
}

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

/* ---- the property ---- */

static uint32_t power(struct rng *r, uint32_t from, uint32_t to)
{
    uint32_t n = from;

    while (n < to && rng_below(r, 2))
        n *= 2;
    return n;
}

static bool possible(const struct lp_limits *l)
{
    uint64_t segment = l->max_segment - l->max_segment % l->mem_align;
    uint64_t segments = l->max_segments && l->max_segments < 128 ? l->max_segments : 128;

    return (!l->max_transfer || l->max_transfer >= l->block_size) &&
           (!l->max_segment || segment * segments >= l->block_size);
}

static void random_limits(struct rng *r, struct bench *b)
{
    struct lp_limits *l = &b->script.q.limits;

    l->mem_align = power(r, 1, l->block_size);
    if (rng_below(r, 2))
        l->max_transfer = l->block_size + (uint32_t)rng_below(r, 16 * l->block_size);
    if (rng_below(r, 2))
        l->max_segment = l->mem_align + (uint32_t)rng_below(r, 4 * l->block_size);
    if (rng_below(r, 2))
        l->max_segments = 1 + (uint32_t)rng_below(r, 20);
    if (rng_below(r, 3) == 0) { /* the bounce and every second space or so */
        l->arena = b->memory;
        l->arena_size = BOUNCE + ZONES / 2 * SPACE;
    }
    b->script.capacity = 1 + (unsigned)rng_below(r, 12);
    l->depth = 1 + (uint32_t)rng_below(r, 12);
}

static void random_opts(struct rng *r, struct bench *b)
{
    const struct lp_limits *l = &b->script.q.limits;
    size_t least = l->block_size;

    b->opts.depth = 1 + (unsigned)rng_below(r, ZONES);
    b->opts.window = (unsigned)rng_below(r, 4);
    b->opts.always_bounce = rng_below(r, 4) == 0;
    if (l->arena || rng_below(r, 2)) {
        b->opts.bounce = b->memory;
        b->opts.bounce_size = least + rng_below(r, BOUNCE - least + 1);
    }
}

/* Segments in a random order in the space, some aligned, some not, some empty, with gaps. */
static void random_segments(struct rng *r, struct job *j, uint32_t align)
{
    uint32_t n = 1 + (uint32_t)rng_below(r, MAX_SEGS - 1);
    uint64_t left = j->req.length;
    size_t at = rng_below(r, 2) ? 0 : rng_below(r, 4096);
    bool neat = rng_below(r, 2);

    j->req.iovcnt = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t length = i == n - 1 ? left : rng_below(r, left / (n - i) * 2 + 1);
        if (length > left)
            length = left;
        if (neat && i < n - 1)
            length -= length % align;
        if (neat || rng_below(r, 2))
            at = (at + align - 1) / align * align;
        j->iov[j->req.iovcnt++] = (struct iovec){length ? j->space + at : NULL, length};
        at += length + (rng_below(r, 3) ? rng_below(r, 600) : 0);
        left -= length;
    }
    assert_true(at < SPACE);
    for (uint32_t i = j->req.iovcnt; i-- > 1;) {
        uint32_t k = (uint32_t)rng_below(r, i + 1);
        struct iovec v = j->iov[i];
        j->iov[i] = j->iov[k];
        j->iov[k] = v;
    }
}

static void random_job(struct rng *r, struct bench *b, unsigned i)
{
    struct job *j = &b->jobs[i];
    uint32_t block = b->script.q.limits.block_size;
    uint64_t most = (block == 1 ? 2000 : ZONE) / block;
    uint64_t blocks = 1 + rng_below(r, rng_below(r, 2) ? most : 3);

    j->req.op = rng_below(r, 2) ? LP_READ : LP_WRITE;
    j->req.length = blocks * block;
    j->req.offset = (uint64_t)i * ZONE + rng_below(r, (ZONE - j->req.length) / block + 1) * block;
    j->req.iov = j->iov;
    random_segments(r, j, b->script.q.limits.mem_align);
}

/* What is in the space now and on the disk is what must be there; the mirror follows. */
static void check_job(struct bench *b, struct job *j)
{
    char *at = b->mirror + j->req.offset;

    assert_int_equal(j->status, 0);
    for (uint32_t i = 0; i < j->req.iovcnt; i++) {
        const struct iovec *v = &j->iov[i];
        if (v->iov_len == 0)
            continue;
        if (j->req.op == LP_WRITE)
            memcpy(at, v->iov_base, v->iov_len);
        else /* before gets what READ had to bring: what is between segments stays */
            memcpy(j->before + ((char *)v->iov_base - j->space), at, v->iov_len);
        at += v->iov_len;
    }
    assert_memory_equal(j->space, j->before, SPACE);
}

static void one_round(uint64_t seed)
{
    static const uint32_t blocks[] = {1, 512, 4096};
    struct rng r = {seed};
    struct bench *b = bench_new(blocks[rng_below(&r, 3)], rng_next(&r));
    struct lp_error err = {0};
    unsigned n = 1 + (unsigned)rng_below(&r, ZONES);

    random_limits(&r, b);
    random_opts(&r, b);
    b->fit = lp_fit_open(&b->script.q, &b->script.q.limits, &b->opts, &err);
    assert_int_equal(b->fit != NULL, possible(&b->script.q.limits));
    for (unsigned i = 0; b->fit && i < n; i++)
        random_job(&r, b, i);
    for (unsigned i = 0; b->fit && i < n; i++)
        submit(b, &b->jobs[i]);
    if (b->fit) {
        run_to_end(b, n);
        if (b->script.broken)
            fail_msg("a piece breaks %s", b->script.broken);
        for (unsigned i = 0; i < n; i++)
            check_job(b, &b->jobs[i]);
        assert_memory_equal(b->disk, b->mirror, DISK);
    }
    bench_free(b);
}

static int new_seed(void **state)
{
    *state = calloc(1, sizeof(uint64_t));
    return *state ? 0 : -1;
}

/* When a round has failed, this is the one. */
static int print_seed(void **state)
{
    print_message("# last seed %llu\n", (unsigned long long)*(uint64_t *)*state);
    free(*state);
    return 0;
}

static void test_any_shape(void **state)
{
    for (uint64_t *seed = *state; *seed < ROUNDS;)
        one_round(++*seed);
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
    assert_null(lp_fit_open(&script.q, &l, opts, &err));
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    if (!strstr(err.msg, word) || strchr(err.msg, '\n'))
        fail_msg("refused with \"%s\"", err.msg);
    assert_int_equal(closed, 1); /* owned, also on failure */
}

static void test_little_limits(void **state)
{
    struct lp_fit_opts opts = {.depth = 1};
    char memory[1024];

    (void)state;
    refused(&(struct lp_limits){.max_transfer = 2048}, &opts, "transfer 2048");
    refused(&(struct lp_limits){.max_segment = 512, .max_segments = 7}, &opts, "segments 7");
    refused(&(struct lp_limits){.max_segment = 100}, &opts, "segment 100");
    opts.bounce = memory;
    opts.bounce_size = sizeof memory;
    refused(&(struct lp_limits){0}, &opts, "1024 bytes of bounce memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"any shape of request meets any limits and moves the right bytes", test_any_shape,
         new_seed, print_seed, NULL},
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
    };

    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
