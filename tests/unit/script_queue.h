/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scripted queue over a disk in memory: checks each request against its limits, completes in a
 * seeded order, takes only so many at once, and fails the one it is told to.
 */
#ifndef SCRIPT_QUEUE_H
#define SCRIPT_QUEUE_H

#include "base/rng.h"

#include <lunpath/queue.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPT_MAX = 256 };

struct script_queue {
    struct lp_queue q; /* limits: what requests are checked against */
    struct rng rng;
    char *disk;        /* limits.size bytes; NULL: no data is moved */
    unsigned capacity; /* then -EAGAIN */
    uint64_t fail_at;  /* the request that fails, counted from 1; 0: none */
    uint64_t fail_too; /* another one, with -EPERM */
    int fail_status;
    struct lp_request *held[SCRIPT_MAX];
    unsigned held_count;
    unsigned most_held;
    uint64_t taken;
    uint64_t ops[LP_OP_COUNT];
    uint64_t refused;        /* -EAGAIN */
    const char *broken;      /* the first limit that a request did not meet */
    const char *bounce_from; /* not NULL: segments must begin at a page of it */
    size_t bounce_page;
    unsigned *closed; /* counted up by close */
};

static inline const char *script_segment(const struct script_queue *s, const struct iovec *v)
{
    const struct lp_limits *l = &s->q.limits;
    const char *base = v->iov_base;

    if (((uintptr_t)base | v->iov_len) & (l->mem_align - 1))
        return "mem_align";
    if (l->max_segment && v->iov_len > l->max_segment)
        return "max_segment";
    if (l->arena && v->iov_len > 0 &&
        (base < l->arena || base + v->iov_len > l->arena + l->arena_size))
        return "arena";
    if (s->bounce_from && (size_t)(base - s->bounce_from) % s->bounce_page != 0)
        return "page boundary";
    return NULL;
}

static inline const char *script_check(const struct script_queue *s, const struct lp_request *r)
{
    const struct lp_limits *l = &s->q.limits;
    uint64_t sum = 0;

    if (r->op == LP_FLUSH)
        return r->length ? "flush length" : NULL;
    if ((r->offset | r->length) & (l->block_size - 1))
        return "block_size";
    if (r->length == 0 || r->length > l->size || r->offset > l->size - r->length)
        return "size";
    if (l->max_transfer && r->length > l->max_transfer)
        return "max_transfer";
    if (r->op != LP_READ && r->op != LP_WRITE)
        return r->iovcnt ? "segments without data" : NULL;
    if (l->max_segments && r->iovcnt > l->max_segments)
        return "max_segments";
    for (uint32_t i = 0; i < r->iovcnt; i++) {
        const char *bad = script_segment(s, &r->iov[i]);
        if (bad)
            return bad;
        sum += r->iov[i].iov_len;
    }
    return sum == r->length ? NULL : "sum";
}

static inline int script_submit(struct lp_queue *q, struct lp_request *r)
{
    struct script_queue *s = (struct script_queue *)q;

    if (s->held_count == s->capacity) {
        s->refused++;
        return -EAGAIN;
    }
    s->taken++;
    s->ops[r->op]++;
    r->status = s->taken == s->fail_at ? s->fail_status : s->taken == s->fail_too ? -EPERM : 0;
    if (!s->broken)
        s->broken = script_check(s, r);
    s->held[s->held_count++] = r;
    if (s->held_count > s->most_held)
        s->most_held = s->held_count;
    return 0;
}

static inline void script_move(struct script_queue *s, const struct lp_request *r)
{
    char *at = s->disk + r->offset;

    if (!s->disk || s->broken || r->status != 0 || (r->op != LP_READ && r->op != LP_WRITE))
        return;
    for (uint32_t i = 0; i < r->iovcnt; i++) {
        size_t n = r->iov[i].iov_len;
        if (n > 0 && r->op == LP_READ)
            memcpy(r->iov[i].iov_base, at, n);
        else if (n > 0)
            memcpy(at, r->iov[i].iov_base, n);
        at += n;
    }
}

/* Completes some of what is held, at least one, in any order. */
static inline int script_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct script_queue *s = (struct script_queue *)q;
    unsigned n = s->held_count ? 1 + (unsigned)rng_below(&s->rng, s->held_count) : 0;

    (void)wait_ns;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = (unsigned)rng_below(&s->rng, s->held_count);
        struct lp_request *r = s->held[at];
        s->held[at] = s->held[--s->held_count];
        script_move(s, r);
        r->complete(r);
    }
    return (int)n;
}

static inline void script_close(struct lp_queue *q)
{
    struct script_queue *s = (struct script_queue *)q;

    if (s->closed)
        ++*s->closed;
}

static inline void script_init(struct script_queue *s, char *disk, uint64_t size,
                               uint32_t block_size, uint64_t seed)
{
    static const struct lp_queue_ops ops = {
        .submit = script_submit, .poll = script_poll, .close = script_close};

    memset(s, 0, sizeof *s);
    s->q.ops = &ops;
    s->q.limits = (struct lp_limits){.size = size,
                                     .block_size = block_size,
                                     .mem_align = 1,
                                     .depth = 64,
                                     .queues = 1,
                                     .discard = true,
                                     .write_zeroes = true};
    s->rng.state = seed;
    s->disk = disk;
    s->capacity = 64;
    s->fail_status = -EIO;
}

#endif
