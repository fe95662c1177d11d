/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests in flight, plain ones or of odd shapes. A buffer is poisoned before a READ, so that a
 * request that ends without having moved its data does not pass with what lay there before.
 */
#include "bench/verify_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)
#define MAX_GAP ((size_t)64)                     /* bytes left out before an odd segment */
#define ODD_ROOM (MAX_GAP * VERIFY_MAX_SEGMENTS) /* what the gaps may add to a buffer */
#define POLL_NS ((uint64_t)100000000)

struct run;

struct slot {
    struct lp_request req;
    struct iovec iov[VERIFY_MAX_SEGMENTS];
    struct verify_job job;
    struct run *run;
    uint8_t *inside, *outside; /* buffers; outside only with odd shapes */
    size_t inside_used, outside_used;
    struct slot *next_free;
};

struct run {
    const struct verify_flow *flow;
    unsigned depth, in_flight;
    size_t slot_bytes;
    struct rng rng;
    struct slot *slots, *free;
    uint8_t *memory;  /* where the flow has no arena */
    uint8_t *outside; /* all slots' */
    uint8_t *linear;  /* one request's data in order, for odd shapes */
};

static size_t slot_bytes(const struct verify_flow *flow)
{
    size_t bytes = (size_t)flow->max_bytes + (flow->odd ? ODD_ROOM : 0);

    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool fits_arena(const struct verify_flow *flow)
{
    return flow->arena && flow->arena_size >= slot_bytes(flow);
}

unsigned verify_flow_depth(const struct verify_flow *flow)
{
    size_t room = fits_arena(flow) ? flow->arena_size / slot_bytes(flow) : flow->depth;
    unsigned limit = flow->q->limits.depth;
    unsigned depth = flow->depth < room ? flow->depth : (unsigned)room;

    return limit && depth > limit ? limit : depth;
}

static void set_down(struct run *r)
{
    free(r->slots);
    free(r->memory);
    free(r->outside);
    free(r->linear);
}

static uint8_t *get_memory(size_t bytes)
{
    void *memory = NULL;

    return posix_memalign(&memory, PAGE, bytes) == 0 ? memory : NULL;
}

static int set_up(struct run *r, const struct verify_flow *flow, struct lp_error *err)
{
    uint8_t *inside = (uint8_t *)flow->arena;

    *r = (struct run){.flow = flow,
                      .depth = verify_flow_depth(flow),
                      .slot_bytes = slot_bytes(flow),
                      .rng = {flow->seed}};
    r->slots = calloc(r->depth, sizeof *r->slots);
    if (!fits_arena(flow))
        inside = r->memory = get_memory(r->depth * r->slot_bytes);
    if (flow->odd) {
        r->outside = get_memory(r->depth * r->slot_bytes);
        r->linear = get_memory((size_t)flow->max_bytes);
    }
    if (!r->slots || !inside || (flow->odd && (!r->outside || !r->linear))) {
        set_down(r);
        return lp_error_sys(err, ENOMEM, "buffers for verifying at depth %u", r->depth);
    }
    for (unsigned i = r->depth; i-- > 0;) {
        struct slot *s = &r->slots[i];
        s->run = r;
        s->inside = inside + i * r->slot_bytes;
        s->outside = r->outside ? r->outside + i * r->slot_bytes : NULL;
        s->job.slot = i;
        s->next_free = r->free;
        r->free = s;
    }
    return 0;
}

/* ---- shapes ---- */

static void plain_shape(struct slot *s)
{
    s->iov[0] = (struct iovec){s->inside, (size_t)s->job.length};
    s->req.iovcnt = 1;
    s->inside_used = (size_t)s->job.length;
    s->outside_used = 0;
}

/* The next segment's length, so that `left` segments still get a byte each. */
static size_t odd_length(struct rng *rng, size_t bytes, unsigned left)
{
    if (left == 1)
        return bytes;
    size_t most = 2 * bytes / left;
    if (most > bytes - (left - 1))
        most = bytes - (left - 1);
    return 1 + (size_t)rng_below(rng, most);
}

/* Up to 64 segments of any length at any address, in both buffers in turn and at random. */
static void odd_shape(struct slot *s)
{
    struct rng *rng = &s->run->rng;
    size_t bytes = (size_t)s->job.length;
    unsigned count = 1 + (unsigned)rng_below(rng, VERIFY_MAX_SEGMENTS);

    if (rng_below(rng, 4) == 0)
        count = 1;
    s->req.iovcnt = count;
    s->inside_used = s->outside_used = 0;
    for (unsigned i = 0; i < count; i++) {
        bool in = rng_below(rng, 2);
        size_t *used = in ? &s->inside_used : &s->outside_used;
        size_t length = odd_length(rng, bytes, count - i);
        *used += (size_t)rng_below(rng, MAX_GAP);
        s->iov[i] = (struct iovec){(in ? s->inside : s->outside) + *used, length};
        *used += length;
        bytes -= length;
    }
}

static void scatter(const struct slot *s, const uint8_t *data)
{
    for (unsigned i = 0; i < s->req.iovcnt; i++) {
        memcpy(s->iov[i].iov_base, data, s->iov[i].iov_len);
        data += s->iov[i].iov_len;
    }
}

/* Takes the data out and leaves poison. */
static void gather(const struct slot *s, uint8_t *data)
{
    for (unsigned i = 0; i < s->req.iovcnt; i++) {
        memcpy(data, s->iov[i].iov_base, s->iov[i].iov_len);
        memset(s->iov[i].iov_base, VERIFY_POISON, s->iov[i].iov_len);
        data += s->iov[i].iov_len;
    }
}

static bool all_poison(const uint8_t *at, size_t n)
{
    return n == 0 || (at[0] == VERIFY_POISON && memcmp(at, at + 1, n - 1) == 0);
}

/* ---- the life of a request ---- */

static struct verify_shape shape_of(const struct slot *s)
{
    return (struct verify_shape){s->job.offset, s->job.length, s->run->depth, s->req.iovcnt};
}

/* The request's data in order. A write beside the segments is the caller's memory gone. */
static const uint8_t *take_data(struct slot *s)
{
    struct run *r = s->run;
    const struct verify_shape shape = shape_of(s);

    if (!r->flow->odd)
        return s->inside;
    gather(s, r->linear);
    if (!all_poison(s->inside, s->inside_used) || !all_poison(s->outside, s->outside_used)) {
        verify_say(r->flow->log->report, "  the next READ wrote beside its segments:");
        verify_error(r->flow->log, LP_READ, &shape, -EFAULT);
    }
    return r->linear;
}

static void on_complete(struct lp_request *req)
{
    struct slot *s = req->user;
    struct run *r = s->run;
    const struct verify_flow *flow = r->flow;
    const struct verify_shape shape = shape_of(s);

    flow->log->report->requests++;
    if (req->status != 0)
        verify_error(flow->log, req->op, &shape, req->status);
    else if (req->op == LP_READ)
        flow->check(flow->user, &s->job, &shape, take_data(s));
    else if (req->op == LP_WRITE)
        flow->log->report->bytes_written += req->length;
    if (flow->ended)
        flow->ended(flow->user, &s->job, req->status);
    r->in_flight--;
    s->next_free = r->free;
    r->free = s;
}

static void prepare(struct slot *s)
{
    struct run *r = s->run;

    s->req = (struct lp_request){.op = s->job.op,
                                 .flags = s->job.flags,
                                 .offset = s->job.offset,
                                 .length = s->job.length,
                                 .iov = s->iov,
                                 .complete = on_complete,
                                 .user = s};
    if (s->job.op != LP_READ && s->job.op != LP_WRITE)
        return; /* no data */
    if (r->flow->odd)
        odd_shape(s);
    else
        plain_shape(s);
    if (s->job.op == LP_READ) {
        memset(s->inside, VERIFY_POISON, s->inside_used);
        if (s->outside_used)
            memset(s->outside, VERIFY_POISON, s->outside_used);
        return;
    }
    uint8_t *data = r->flow->odd ? r->linear : s->inside;
    r->flow->fill(r->flow->user, &s->job, data);
    if (r->flow->odd)
        scatter(s, data);
}

/* Takes one job and sends it. False: there is none now. */
static bool start_one(struct run *r)
{
    struct slot *s = r->free;

    if (!s || verify_stop(r->flow->log) || !r->flow->next(r->flow->user, &s->job))
        return false;
    r->free = s->next_free;
    r->in_flight++;
    prepare(s);
    while (lp_queue_submit(r->flow->q, &s->req) == -EAGAIN)
        lp_queue_poll(r->flow->q, POLL_NS);
    return true;
}

int verify_flow_run(const struct verify_flow *flow, struct lp_error *err)
{
    struct run r;

    if (set_up(&r, flow, err) != 0)
        return -1;
    for (;;) {
        while (start_one(&r))
            ;
        if (r.in_flight == 0)
            break;
        lp_queue_poll(flow->q, POLL_NS);
    }
    set_down(&r);
    return 0;
}
