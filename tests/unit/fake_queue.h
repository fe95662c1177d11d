/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue on virtual time, for tests of what measures queues: so many servers, each of which takes
 * so long for a request. Moves no data; a poll turns the clock to the next completion.
 */
#ifndef FAKE_QUEUE_H
#define FAKE_QUEUE_H

#include <lunpath/queue.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum { FAKE_MAX = 1024 };

struct fake_queue {
    struct lp_queue q;
    uint64_t now_ns;
    unsigned servers;  /* requests that are worked on at once */
    unsigned capacity; /* requests that are taken; then -EAGAIN */
    uint64_t taken;    /* requests so far */
    uint64_t server_free[FAKE_MAX];
    struct {
        struct lp_request *req;
        uint64_t end_ns;
    } flying[FAKE_MAX];
    unsigned flying_count;
    /* What request number n, begun at start_ns, takes and gives. */
    uint64_t (*service_ns)(struct fake_queue *f, uint64_t n, uint64_t start_ns);
    int (*status)(struct fake_queue *f, uint64_t n);
    void (*see)(struct fake_queue *f, const struct lp_request *req); /* each one, or NULL */
    uint64_t fixed_ns;
    void *user;
};

static inline uint64_t fake_now(void *user)
{
    return ((struct fake_queue *)user)->now_ns;
}

static inline int fake_submit(struct lp_queue *q, struct lp_request *req)
{
    struct fake_queue *f = (struct fake_queue *)q;
    unsigned server = 0;

    if (f->flying_count == f->capacity)
        return -EAGAIN;
    for (unsigned i = 1; i < f->servers; i++)
        if (f->server_free[i] < f->server_free[server])
            server = i;
    uint64_t n = f->taken++;
    uint64_t start = f->server_free[server] > f->now_ns ? f->server_free[server] : f->now_ns;
    uint64_t end = start + (f->service_ns ? f->service_ns(f, n, start) : f->fixed_ns);
    f->server_free[server] = end;
    req->status = f->status ? f->status(f, n) : 0;
    f->flying[f->flying_count].req = req;
    f->flying[f->flying_count++].end_ns = end;
    if (f->see)
        f->see(f, req);
    return 0;
}

static inline int fake_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct fake_queue *f = (struct fake_queue *)q;
    uint64_t first = UINT64_MAX;
    int n = 0;

    for (unsigned i = 0; i < f->flying_count; i++)
        if (f->flying[i].end_ns < first)
            first = f->flying[i].end_ns;
    if (f->flying_count == 0 || first > f->now_ns + wait_ns) {
        f->now_ns += wait_ns;
        return 0;
    }
    if (first > f->now_ns)
        f->now_ns = first;
    for (unsigned i = 0; i < f->flying_count;) {
        if (f->flying[i].end_ns > f->now_ns) {
            i++;
            continue;
        }
        struct lp_request *req = f->flying[i].req;
        f->flying[i] = f->flying[--f->flying_count];
        req->complete(req);
        n++;
    }
    return n;
}

static inline void fake_close(struct lp_queue *q)
{
    (void)q;
}

static inline void fake_init(struct fake_queue *f, unsigned servers, uint64_t fixed_ns)
{
    static const struct lp_queue_ops ops = {
        .submit = fake_submit, .poll = fake_poll, .close = fake_close};

    memset(f, 0, sizeof *f);
    f->q.ops = &ops;
    f->q.limits =
        (struct lp_limits){.size = (uint64_t)1 << 30, .block_size = 512, .depth = FAKE_MAX};
    f->now_ns = 1000000007; /* no clock starts at 0 */
    f->servers = servers;
    f->capacity = FAKE_MAX;
    f->fixed_ns = fixed_ns;
}

#endif
