/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/load.h"

#include "base/clock.h"
#include "base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long a poll may wait, so that an interrupt and the end of the window are seen. */
static const uint64_t poll_wait_ns = 50000000;
static const uint64_t tick_ns = 100000000;

enum load_phase { LOAD_WARMUP, LOAD_WINDOW, LOAD_DRAIN };

struct load_slot {
    struct lp_request req;
    struct iovec iov;
    struct load *load;
    uint64_t block; /* number of the block on the disk */
    uint64_t submitted_ns;
};

enum { MAX_STRETCH = 8 };

struct load {
    const struct load_options *opts;
    struct lp_queue *queue;
    struct load_result *result;
    struct load_slot *slots;
    struct load_slot **idle; /* to be submitted: the first idle_count */
    struct load_slot **done; /* completed by the poll that runs: the first done_count */
    unsigned idle_count, done_count, in_flight;
    enum load_phase phase;
    uint64_t first_block, blocks, next_block; /* next_block counts from first_block */
    struct rng rng;
    uint64_t read_threshold; /* a 32-bit random number below it makes a READ */
    uint64_t last_ns;        /* the clock's last reading */
    uint64_t start_ns;       /* of the window; of the warm-up before it */
    uint64_t next_tick_ns;
    uint64_t ended;    /* requests that ended in this phase, well or not; */
    bool round_ended;  /* ... the last of them made it a multiple of the depth */
    double depth_ns;   /* requests in flight times nanoseconds, in the window */
    uint64_t moved_ns; /* when bytes moved last */
    unsigned slice;    /* of the window, that moved_ns lies in */
    uint64_t slice_end_ns;
};

static uint64_t now(const struct load *l)
{
    return l->opts->now ? l->opts->now(l->opts->now_user) : clock_now_ns();
}

static void complete(struct lp_request *req)
{
    struct load_slot *slot = req->user;
    struct load *l = slot->load;

    l->done[l->done_count++] = slot;
}

static int allocate(struct load *l, struct lp_error *err)
{
    unsigned depth = l->opts->depth;

    l->slots = calloc(depth, sizeof *l->slots);
    l->idle = calloc(depth, sizeof(struct load_slot *));
    l->done = calloc(depth, sizeof(struct load_slot *));
    if (!l->slots || !l->idle || !l->done)
        return lp_error_sys(err, ENOMEM, "the load's %u requests", depth);
    return 0;
}

static void release(struct load *l)
{
    free(l->slots);
    free(l->idle);
    free(l->done);
}

static void prepare_slots(struct load *l)
{
    const struct load_options *o = l->opts;

    for (unsigned i = 0; i < o->depth; i++) {
        struct load_slot *slot = &l->slots[i];
        *slot = (struct load_slot){
            .req = {.length = o->block_bytes,
                    .iov = &slot->iov,
                    .iovcnt = 1,
                    .tag = i,
                    .complete = complete,
                    .user = slot},
            .iov = {.iov_base = o->arena + (o->by_address ? 0 : i * o->block_bytes),
                    .iov_len = o->block_bytes},
            .load = l,
        };
        l->idle[i] = slot;
    }
    l->idle_count = o->depth;
}

/* The next block and direction, by the pattern and the seed. */
static void aim(struct load *l, struct load_slot *slot)
{
    const struct load_options *o = l->opts;
    uint64_t block;

    if (o->pattern == BENCH_RANDOM) {
        block = rng_below(&l->rng, l->blocks);
    } else {
        block = l->next_block;
        l->next_block = block + 1 == l->blocks ? 0 : block + 1;
    }
    slot->block = l->first_block + block;
    slot->req.offset = slot->block * o->block_bytes;
    if (o->by_address)
        slot->iov.iov_base = o->arena + slot->req.offset;
    slot->req.op = LP_READ;
    if (l->read_threshold <= UINT32_MAX && rng_next(&l->rng) >> 32 >= l->read_threshold)
        slot->req.op = LP_WRITE;
}

/* Submits what is idle, until the queue is full. A slot keeps its aim while it waits. */
static void submit_idle(struct load *l)
{
    while (l->idle_count > 0) {
        struct load_slot *slot = l->idle[l->idle_count - 1];
        if (slot->submitted_ns == 0)
            aim(l, slot);
        slot->submitted_ns = l->last_ns + 1; /* so 0 means: has no aim */
        if (lp_queue_submit(l->queue, &slot->req) != 0)
            break;
        l->idle_count--;
        l->in_flight++;
    }
    if (l->in_flight > l->result->depth_max)
        l->result->depth_max = l->in_flight;
}

static void count_error(struct load *l, int errnum)
{
    struct load_result *r = l->result;
    unsigned i = 0;

    if (r->errors++ == 0)
        r->first_errno = errnum;
    while (i < LOAD_ERROR_KINDS && r->error_kinds[i].count && r->error_kinds[i].errnum != errnum)
        i++;
    if (i < LOAD_ERROR_KINDS)
        r->error_kinds[i] = (struct load_error_kind){errnum, r->error_kinds[i].count + 1};
    if (errnum == ENODEV && !l->opts->go_on_after_loss)
        r->lost = true;
}

static void count_first(struct load *l, uint64_t latency)
{
    if (l->phase != LOAD_WARMUP)
        return;
    l->result->first_requests++;
    l->result->first_latency_ns += latency;
}

/* What the poll completed: counted, and idle again. Returns how many ended well. */
static uint64_t settle(struct load *l, uint64_t t)
{
    struct load_result *r = l->result;
    uint8_t *touched = l->opts->touched;
    uint64_t good = 0;

    for (unsigned i = 0; i < l->done_count; i++) {
        struct load_slot *slot = l->done[i];
        uint64_t latency = t - (slot->submitted_ns - 1);
        slot->submitted_ns = 0;
        l->idle[l->idle_count++] = slot;
        if (slot->req.status != 0) {
            count_error(l, -slot->req.status);
            continue;
        }
        good++;
        if (touched)
            touched[slot->block] = 1;
        if (l->phase == LOAD_WINDOW)
            histogram_add(&r->latency, latency);
        else if (r->first_requests < LOAD_FIRST_REQUESTS)
            count_first(l, latency);
    }
    uint64_t rounds = l->ended / l->opts->depth;
    l->ended += l->done_count;
    l->round_ended = l->ended / l->opts->depth != rounds;
    l->in_flight -= l->done_count;
    l->done_count = 0;
    return good;
}

static uint64_t slice_end(const struct load *l, unsigned slice)
{
    return l->start_ns + (uint64_t)((double)l->opts->run_ns * (slice + 1) / LOAD_SLICES);
}

/* Bytes moved until t, spread evenly over the time since the last that were: a deep queue completes
 * in bursts, and a burst is no drift. What lies behind the window's planned end is in no slice. */
static void spread_bytes(struct load *l, double bytes, uint64_t t)
{
    uint64_t from = l->moved_ns;
    double per_ns = t > from ? bytes / (double)(t - from) : 0;

    l->moved_ns = t;
    while (l->slice < LOAD_SLICES && t > l->slice_end_ns) {
        l->result->slice_bytes[l->slice] += (double)(l->slice_end_ns - from) * per_ns;
        from = l->slice_end_ns;
        l->slice_end_ns = slice_end(l, ++l->slice);
    }
    if (l->slice < LOAD_SLICES)
        l->result->slice_bytes[l->slice] += (double)(t - from) * per_ns;
}

/* The time from last_ns to t and the requests that ended well in it. */
static void account(struct load *l, uint64_t t, unsigned in_flight, uint64_t good)
{
    struct load_result *r = l->result;
    uint64_t bytes = good * l->opts->block_bytes;

    r->total_requests += good;
    r->total_bytes += bytes;
    if (l->phase == LOAD_WINDOW) {
        r->requests += good;
        r->bytes += bytes;
        l->depth_ns += (double)in_flight * (double)(t - l->last_ns);
        if (bytes)
            spread_bytes(l, (double)bytes, t);
    }
    l->last_ns = t;
}

static void tick(struct load *l)
{
    const struct load_options *o = l->opts;

    if (!o->tick || l->phase != LOAD_WINDOW || l->last_ns < l->next_tick_ns)
        return;
    o->tick(l->result->bytes, l->last_ns - l->start_ns, o->tick_user);
    l->next_tick_ns = l->last_ns + tick_ns;
}

static void end_window(struct load *l)
{
    struct load_result *r = l->result;

    r->window_ns = l->last_ns - l->start_ns;
    if (r->window_ns)
        r->depth_mean = l->depth_ns / (double)r->window_ns;
    l->phase = LOAD_DRAIN;
}

static void start_window(struct load *l)
{
    l->phase = LOAD_WINDOW;
    l->ended = 0;
    l->start_ns = l->moved_ns = l->last_ns;
    l->next_tick_ns = l->last_ns + tick_ns;
    l->slice_end_ns = slice_end(l, 0);
    /* From now on only what is in flight now counts. */
    l->result->depth_max = l->in_flight;
}

/* Warm-up and window end at their planned end or soon after, when as many requests ended in them as
 * make each place of the queue have the same number of turns. A path that works on all requests at
 * a time ends none for long and then all; between two points of that rhythm that are alike, work
 * that was begun before and work that is not done yet weigh the same, and a short window counts
 * right. Each may become MAX_STRETCH times as long as the window was planned. */
static bool phase_is_over(const struct load *l, uint64_t planned)
{
    uint64_t elapsed = l->last_ns - l->start_ns;

    return elapsed >= planned && (l->round_ended || elapsed / MAX_STRETCH >= l->opts->run_ns);
}

static void advance(struct load *l)
{
    const struct load_options *o = l->opts;
    struct load_result *r = l->result;

    r->interrupted = o->interrupted && *o->interrupted;
    if (r->interrupted || r->lost) {
        if (l->phase == LOAD_WINDOW)
            end_window(l);
        l->phase = LOAD_DRAIN;
    } else if (l->phase == LOAD_WARMUP && phase_is_over(l, o->warmup_ns)) {
        start_window(l);
    } else if (l->phase == LOAD_WINDOW && phase_is_over(l, o->run_ns)) {
        end_window(l);
    }
}

static void run_loop(struct load *l)
{
    l->start_ns = l->last_ns = now(l);
    if (l->opts->warmup_ns == 0)
        start_window(l); /* with the first submission */
    advance(l);
    while (l->phase != LOAD_DRAIN || l->in_flight > 0) {
        if (l->phase != LOAD_DRAIN)
            submit_idle(l);
        unsigned in_flight = l->in_flight;
        lp_queue_poll(l->queue, poll_wait_ns);
        uint64_t t = now(l);
        account(l, t, in_flight, settle(l, t));
        tick(l);
        if (l->phase != LOAD_DRAIN)
            advance(l);
    }
}

int load_run(struct lp_queue *q, const struct load_options *opts, struct load_result *result,
             struct lp_error *err)
{
    struct load l = {
        .opts = opts,
        .queue = q,
        .result = result,
        .first_block = opts->offset / opts->block_bytes,
        .blocks = opts->length / opts->block_bytes,
        .next_block = opts->start / opts->block_bytes % (opts->length / opts->block_bytes),
        .rng = {opts->seed},
        .read_threshold = ((uint64_t)opts->read_percent << 32) / 100,
    };
    int rc = allocate(&l, err);

    memset(result, 0, sizeof *result);
    histogram_reset(&result->latency);
    result->queues = 1;
    if (rc == 0) {
        prepare_slots(&l);
        uint64_t cpu = clock_thread_cpu_ns();
        uint64_t start = now(&l);
        run_loop(&l);
        result->total_ns = l.last_ns - start;
        result->cpu_ns = clock_thread_cpu_ns() - cpu;
    }
    release(&l);
    return rc;
}

double load_drift(const struct load_result *r)
{
    double first = 0, last = 0;

    for (unsigned i = 0; i < LOAD_SLICES / 4; i++) {
        first += r->slice_bytes[i];
        last += r->slice_bytes[LOAD_SLICES - 1 - i];
    }
    return first > 0 ? (last - first) / first : 0;
}

double load_first_ratio(const struct load_result *r)
{
    if (r->first_requests == 0 || r->latency.count == 0 || r->latency.sum == 0)
        return 0;
    double first = (double)r->first_latency_ns / (double)r->first_requests;
    return first / ((double)r->latency.sum / (double)r->latency.count);
}
