/* SPDX-License-Identifier: BSD-2-Clause */
/* A fit on a scripted queue, jobs in parts of the disk of their own, and a mirror of the disk. */
#ifndef TESTS_FIT_RIG_H
#define TESTS_FIT_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "script_queue.h"

#include <lunpath/fit.h>

enum {
    ZONES = 8, /* requests of a round, each in a part of the disk of its own */
    ZONE = 64 << 10,
    SPACE = 4 * ZONE, /* memory for one request's segments */
    BOUNCE = 256 << 10,
    MAX_SEGS = 40,
    DISK = ZONES * ZONE,
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

static inline void job_done(struct lp_request *req)
{
    struct job *j = req->user;

    j->ended++;
    j->status = req->status;
}

static inline void fill(struct rng *rng, char *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word = rng_next(rng);
        memcpy(p, &word, 8);
    }
    memset(p, 0x5a, n);
}

static inline struct bench *bench_new(uint32_t block_size, uint64_t seed)
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

static inline void bench_open(struct bench *b)
{
    struct lp_error err = {0};

    b->fit = lp_fit_open(&b->script.q, &b->script.q.limits, &b->opts, &err);
    if (!b->fit)
        fail_msg("%s", err.msg);
}

static inline void bench_free(struct bench *b)
{
    lp_queue_close(b->fit);
    assert_int_equal(b->closed, 1);
    free(b->memory);
    free(b->copies);
    free(b->disk);
    free(b->mirror);
    free(b);
}

static inline void submit(struct bench *b, struct job *j)
{
    j->ended = 0;
    memcpy(j->before, j->space, SPACE);
    while (lp_queue_submit(b->fit, &j->req) != 0)
        lp_queue_poll(b->fit, 0);
}

/* Polls until each of the first n has ended; returns what poll() says has ended. */
static inline unsigned run_to_end(struct bench *b, unsigned n)
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

/* What is in the space now and on the disk is what must be there; the mirror follows. */
static inline void check_job(struct bench *b, struct job *j)
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

#endif
