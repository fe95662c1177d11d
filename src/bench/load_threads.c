/* SPDX-License-Identifier: BSD-2-Clause */
/* Several queues: a thread each, started together, and what they found merged. */
#include "base/cpu.h"
#include "bench/load.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* Holds the threads until all are there. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open, give_up;
};

struct worker {
    pthread_t thread;
    struct gate *gate;
    struct lp_queue *queue;
    struct load_options opts;
    struct load_result result;
    struct lp_error err;
    int rc;
};

static void *worker_main(void *arg)
{
    struct worker *w = arg;

    pthread_mutex_lock(&w->gate->lock);
    while (!w->gate->open)
        pthread_cond_wait(&w->gate->opened, &w->gate->lock);
    bool give_up = w->gate->give_up;
    pthread_mutex_unlock(&w->gate->lock);
    if (give_up)
        return NULL;
    if (w->opts.cpu >= 0)
        cpu_pin(w->opts.cpu); /* the placement was checked when it was chosen */
    w->rc = load_run(w->queue, &w->opts, &w->result, &w->err);
    return NULL;
}

static void open_gate(struct gate *gate, bool give_up)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    gate->give_up = give_up;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

/* Queue i's share: a part of the range, its own seed, and the next CPU. */
static struct load_options part(const struct load_options *all, unsigned i, unsigned count)
{
    struct load_options o = *all;
    uint64_t blocks = all->length / all->block_bytes / count;

    o.length = blocks * all->block_bytes;
    o.offset = all->offset + i * o.length;
    o.seed = all->seed + i * 0x9e3779b97f4a7c15u;
    if (!all->by_address)
        o.arena = all->arena + i * (all->depth * all->block_bytes);
    if (all->cpu >= 0)
        o.cpu = all->cpu + (int)i;
    if (i > 0)
        o.tick = NULL;
    return o;
}

static void merge_errors(struct load_result *into, const struct load_result *from)
{
    into->errors += from->errors;
    if (!into->first_errno)
        into->first_errno = from->first_errno;
    for (unsigned i = 0; i < LOAD_ERROR_KINDS && from->error_kinds[i].count; i++) {
        unsigned k = 0;
        while (k < LOAD_ERROR_KINDS && into->error_kinds[k].count &&
               into->error_kinds[k].errnum != from->error_kinds[i].errnum)
            k++;
        if (k == LOAD_ERROR_KINDS)
            return;
        into->error_kinds[k].errnum = from->error_kinds[i].errnum;
        into->error_kinds[k].count += from->error_kinds[i].count;
    }
}

static void merge(struct load_result *into, const struct load_result *from)
{
    histogram_merge(&into->latency, &from->latency);
    into->requests += from->requests;
    into->bytes += from->bytes;
    into->window_ns += from->window_ns; /* sums, until all are there */
    into->depth_mean += from->depth_mean;
    for (unsigned i = 0; i < LOAD_SLICES; i++)
        into->slice_bytes[i] += from->slice_bytes[i];
    if (from->depth_max > into->depth_max)
        into->depth_max = from->depth_max;
    into->total_requests += from->total_requests;
    into->total_bytes += from->total_bytes;
    if (from->total_ns > into->total_ns)
        into->total_ns = from->total_ns;
    into->cpu_ns += from->cpu_ns;
    into->first_requests += from->first_requests;
    into->first_latency_ns += from->first_latency_ns;
    into->interrupted |= from->interrupted;
    into->lost |= from->lost;
    merge_errors(into, from);
}

static int collect(struct worker *workers, unsigned count, struct load_result *result,
                   struct lp_error *err)
{
    *result = (struct load_result){.queues = count};
    histogram_reset(&result->latency);
    for (unsigned i = 0; i < count; i++) {
        if (workers[i].rc != 0) {
            if (err)
                *err = workers[i].err;
            return -1;
        }
        merge(result, &workers[i].result);
    }
    result->window_ns /= count;
    result->depth_mean /= count;
    return 0;
}

static int run_threads(struct worker *workers, unsigned count, struct gate *gate,
                       struct lp_error *err)
{
    unsigned started = 0;
    int e = 0;

    while (started < count && e == 0) {
        e = pthread_create(&workers[started].thread, NULL, worker_main, &workers[started]);
        started += e == 0;
    }
    open_gate(gate, e != 0);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    return e == 0 ? 0 : lp_error_sys(err, e, "cannot start %u threads, one a queue", count);
}

int load_run_all(struct lp_queue *const *queues, unsigned count, const struct load_options *opts,
                 struct load_result *result, struct lp_error *err)
{
    struct gate gate = {.open = false};
    struct worker *workers;

    if (count == 1)
        return load_run(queues[0], opts, result, err);
    workers = calloc(count, sizeof *workers);
    if (!workers)
        return lp_error_sys(err, ENOMEM, "%u threads, one a queue", count);
    pthread_mutex_init(&gate.lock, NULL);
    pthread_cond_init(&gate.opened, NULL);
    for (unsigned i = 0; i < count; i++) {
        workers[i].gate = &gate;
        workers[i].queue = queues[i];
        workers[i].opts = part(opts, i, count);
    }
    int rc = run_threads(workers, count, &gate, err);
    if (rc == 0)
        rc = collect(workers, count, result, err);
    pthread_cond_destroy(&gate.opened);
    pthread_mutex_destroy(&gate.lock);
    free(workers);
    return rc;
}
