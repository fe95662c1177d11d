/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/limits.h"

#include "base/clock.h"
#include "base/copy.h"
#include "base/cpu.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/rng.h"
#include "bench/load.h"
#include "bench/units.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20, SMALL = 4096, MAX_THREADS = 64, BATCH = 64, MAX_BATCHES = 1024 };

struct arenas {
    struct memory from, to;
    size_t bytes;
};

static void libc_copy(void *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
}

/* The ways to copy once over the working set. */
static const struct way {
    void (*copy)(void *dst, const void *src, size_t n);
    bool whole; /* in one call, not in pieces */
    bool libc;
    const char *how;
} ways[] = {
    {libc_copy, false, true, "in 1 MiB pieces"},
    {libc_copy, true, true, "in one piece"},
    {copy_bytes, false, false, "in 1 MiB pieces"},
    {copy_bytes, true, false, "in one piece"},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void copy_range(const struct way *way, const struct arenas *a, size_t offset, size_t bytes)
{
    char *to = (char *)a->to.base + offset;
    const char *from = (const char *)a->from.base + offset;
    size_t piece = way->whole ? bytes : PIECE;

    for (size_t at = 0; at < bytes; at += piece)
        way->copy(to + at, from + at, bytes - at < piece ? bytes - at : piece);
}

static bool stopped(const struct limits_options *opts)
{
    return opts->interrupted && *opts->interrupted;
}

static double best_of(double a, double b)
{
    return a > b ? a : b;
}

/* Passes of the ways take turns, so that a machine that drifts drifts for all of them. */
static const struct way *measure_copies(const struct limits_options *opts, const struct arenas *a,
                                        struct result_limits *limits)
{
    const struct way *best_way = &ways[0];

    for (unsigned pass = 0; pass < (opts->brief ? 3u : 6u); pass++)
        for (unsigned i = 0; i < WAYS && !stopped(opts); i++) {
            uint64_t start = clock_now_ns();
            copy_range(&ways[i], a, 0, a->bytes);
            double rate = units_gbit_per_s(a->bytes, clock_now_ns() - start);
            if (ways[i].libc)
                limits->memcpy_gbit_per_s = best_of(limits->memcpy_gbit_per_s, rate);
            if (rate > limits->copy_gbit_per_s) {
                limits->copy_gbit_per_s = rate;
                best_way = &ways[i];
            }
        }
    snprintf(limits->copy_name, sizeof limits->copy_name, "%.40s %s",
             best_way->libc ? "memcpy" : copy_name(), best_way->how);
    return best_way;
}

/* ---- all CPUs at once ---- */

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned ready;
    bool go;
    const struct way *way;
    const struct arenas *arenas;
    unsigned threads, passes;
};

struct copier {
    pthread_t thread;
    struct crew *crew;
    size_t offset, bytes;
    int cpu;
    uint64_t start_ns, end_ns;
};

static void *copier_main(void *arg)
{
    struct copier *c = arg;
    struct crew *crew = c->crew;

    cpu_pin(c->cpu);
    pthread_mutex_lock(&crew->lock);
    crew->ready++;
    pthread_cond_broadcast(&crew->changed);
    while (!crew->go)
        pthread_cond_wait(&crew->changed, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    c->start_ns = clock_now_ns();
    for (unsigned i = 0; i < crew->passes; i++)
        copy_range(crew->way, crew->arenas, c->offset, c->bytes);
    c->end_ns = clock_now_ns();
    return NULL;
}

/* Lets all that could be started run together; their number is crew->threads. */
static void run_crew(struct crew *crew, struct copier *copiers, unsigned wanted)
{
    while (crew->threads < wanted && pthread_create(&copiers[crew->threads].thread, NULL,
                                                    copier_main, &copiers[crew->threads]) == 0)
        crew->threads++;
    pthread_mutex_lock(&crew->lock);
    while (crew->ready < crew->threads)
        pthread_cond_wait(&crew->changed, &crew->lock);
    crew->go = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->threads; i++)
        pthread_join(copiers[i].thread, NULL);
}

/* Payload of all over the time from the first one's start to the last one's end. */
static double crew_rate(const struct crew *crew, const struct copier *copiers)
{
    uint64_t start = UINT64_MAX, end = 0, bytes = 0;

    for (unsigned i = 0; i < crew->threads; i++) {
        start = copiers[i].start_ns < start ? copiers[i].start_ns : start;
        end = copiers[i].end_ns > end ? copiers[i].end_ns : end;
        bytes += crew->passes * copiers[i].bytes;
    }
    return end > start ? units_gbit_per_s(bytes, end - start) : 0;
}

static void measure_all_cpus(const struct limits_options *opts, const struct arenas *a,
                             const struct cpu_list *allowed, const struct way *way,
                             struct result_limits *limits)
{
    struct copier copiers[MAX_THREADS];
    unsigned wanted = allowed->count > MAX_THREADS ? MAX_THREADS : allowed->count;

    limits->threads = wanted ? wanted : 1;
    limits->copy_all_gbit_per_s = limits->copy_gbit_per_s;
    for (unsigned pass = 0; wanted > 1 && pass < (opts->brief ? 2u : 4u) && !stopped(opts);
         pass++) {
        struct crew crew = {.way = way, .arenas = a, .passes = 2};
        size_t part = a->bytes / wanted / SMALL * SMALL;
        for (unsigned i = 0; i < wanted; i++)
            copiers[i] = (struct copier){
                .crew = &crew, .offset = i * part, .bytes = part, .cpu = allowed->cpus[i]};
        pthread_mutex_init(&crew.lock, NULL);
        pthread_cond_init(&crew.changed, NULL);
        run_crew(&crew, copiers, wanted);
        pthread_cond_destroy(&crew.changed);
        pthread_mutex_destroy(&crew.lock);
        limits->copy_all_gbit_per_s =
            best_of(limits->copy_all_gbit_per_s, crew_rate(&crew, copiers));
    }
}

/* ---- small things ---- */

/* 4 KiB from and to anywhere in the working set, as a random request has it. */
static double measure_small_copy(const struct limits_options *opts, const struct arenas *a)
{
    struct rng rng = {1};
    double times[MAX_BATCHES];
    unsigned count = 0;
    uint64_t limit = opts->brief ? 20000000 : 50000000;
    uint64_t start = clock_now_ns(), last = start;

    if (a->bytes < SMALL)
        return 0;
    while (count < MAX_BATCHES && last - start < limit) {
        for (unsigned i = 0; i < BATCH; i++)
            copy_bytes((char *)a->to.base + rng_below(&rng, a->bytes / SMALL) * SMALL,
                       (const char *)a->from.base + rng_below(&rng, a->bytes / SMALL) * SMALL,
                       SMALL);
        uint64_t t = clock_now_ns();
        times[count++] = (double)(t - last) / BATCH;
        last = t;
    }
    return median_of(times, count);
}

/* A queue that does nothing: what the load costs on top of it is the tool's own. */
struct empty_queue {
    struct lp_queue q;
    struct lp_request *head;
};

static int empty_submit(struct lp_queue *q, struct lp_request *req)
{
    struct empty_queue *e = (struct empty_queue *)q;

    req->next = e->head;
    e->head = req;
    return 0;
}

static int empty_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct empty_queue *e = (struct empty_queue *)q;
    struct lp_request *req = e->head;
    int n = 0;

    (void)wait_ns;
    e->head = NULL;
    while (req) {
        struct lp_request *next = req->next;
        req->status = 0;
        req->complete(req);
        req = next;
        n++;
    }
    return n;
}

static void empty_close(struct lp_queue *q)
{
    (void)q;
}

static int measure_overhead(const struct limits_options *opts, struct result_limits *limits,
                            struct lp_error *err)
{
    static const struct lp_queue_ops ops = {
        .submit = empty_submit, .poll = empty_poll, .close = empty_close};
    struct empty_queue empty = {.q = {.ops = &ops}};
    struct load_options load = {.pattern = BENCH_RANDOM,
                                .read_percent = 100,
                                .block_bytes = SMALL,
                                .length = (uint64_t)1 << 30,
                                .depth = 32,
                                .warmup_ns = 5000000,
                                .run_ns = opts->brief ? 20000000 : 50000000,
                                .seed = 1,
                                .cpu = -1,
                                .interrupted = opts->interrupted};
    struct load_result *result = malloc(sizeof *result);
    int rc = -1;

    load.arena = malloc((size_t)load.depth * SMALL);
    if (result && load.arena)
        rc = load_run(&empty.q, &load, result, err);
    else
        lp_error_sys(err, ENOMEM, "measuring the tool's overhead");
    if (rc == 0 && result->requests)
        limits->tool_overhead_ns_per_io = (double)result->window_ns / (double)result->requests;
    free(load.arena);
    free(result);
    return rc;
}

static int measure_memory(const struct limits_options *opts, const struct cpu_list *allowed,
                          struct result_limits *limits, struct lp_error *err)
{
    struct arenas a = {.bytes = opts->bytes};
    int rc = -1;

    if (memory_create(&a.from, "lunpath-limits", a.bytes, !opts->small_pages, err) != 0)
        return lp_error_prefix(err, "measuring the physical limits");
    if (memory_create(&a.to, "lunpath-limits", a.bytes, !opts->small_pages, err) != 0) {
        lp_error_prefix(err, "measuring the physical limits");
        goto out;
    }
    /* Never zeros: some memory is faster at those. */
    memset(a.from.base, 0x5a, a.bytes);
    if (opts->first_cpu >= 0)
        cpu_pin(opts->first_cpu);
    const struct way *way = measure_copies(opts, &a, limits);
    limits->copy_4k_ns = measure_small_copy(opts, &a);
    measure_all_cpus(opts, &a, allowed, way, limits);
    rc = 0;
out:
    memory_destroy(&a.to);
    memory_destroy(&a.from);
    return rc;
}

int limits_measure(const struct limits_options *opts, struct result_limits *limits,
                   struct lp_error *err)
{
    struct cpu_list allowed;

    memset(limits, 0, sizeof *limits);
    cpu_allowed(&allowed);
    int rc = measure_memory(opts, &allowed, limits, err);
    if (rc == 0)
        rc = measure_overhead(opts, limits, err);
    cpu_restrict(&allowed);
    if (rc == 0 && !stopped(opts))
        limits_round_trips(opts, limits);
    return rc;
}
