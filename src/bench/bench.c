/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole run: environment, limits, then run by run every path. */
#include "bench/bench.h"

#include "base/clock.h"
#include "bench/bench_int.h"
#include "bench/environment.h"
#include "bench/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <lunpath/fit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BELOW_DEPTH = 1 };
static const double limits_s = 2;

bool bench_stopped(const struct bench *b)
{
    return b->opts->interrupted && *b->opts->interrupted;
}

bool bench_brief(const struct bench *b)
{
    return b->opts->seconds < 0.1;
}

/* ---- progress ---- */

void bench_progress(struct bench *b, double ahead_s)
{
    double elapsed = (double)(clock_now_ns() - b->start_ns) / 1e9;
    double done = b->done_s + ahead_s;
    struct bench_progress *now = &b->now;

    if (!b->opts->progress)
        return;
    now->fraction = done < b->planned_s ? done / b->planned_s : 1;
    /* The plan is a guess; once a tenth is done, what it took is a better one. */
    now->seconds_left = (1 - now->fraction) * b->planned_s;
    if (now->fraction > 0.1)
        now->seconds_left = elapsed / now->fraction * (1 - now->fraction);
    b->opts->progress(now, b->opts->user);
}

void bench_note(struct bench *b, const char *note)
{
    b->now.note = note;
    bench_progress(b, 0);
    b->now.note = NULL;
}

/* ---- the disk ---- */

static bool is_disk_url(const char *text)
{
    for (const struct lp_disk_type *const *t = lp_disk_types(); *t; t++) {
        size_t n = strlen((*t)->name);
        if (strncmp(text, (*t)->name, n) == 0 && text[n] == ':')
            return true;
    }
    return false;
}

/* A target may be a plain path; profiles without a disk get memory of the working set's size. */
static char *choose_url(const struct bench *b)
{
    const struct bench_options *o = b->opts;
    const char *given = o->target ? o->target : o->disk_url;
    uint64_t mib = (plan_working_set(o, &b->result->environment) + 0xfffff) >> 20;
    size_t len = given ? strlen(given) + 8 : 64;
    char *url = malloc(len);

    if (url && !given)
        snprintf(url, len, "ram:%" PRIu64 "M", mib);
    else if (url)
        snprintf(url, len, "%s%s", is_disk_url(given) ? "" : "file:", given);
    return url;
}

static int open_disk(struct bench *b, struct lp_error *err)
{
    char *url = choose_url(b);
    struct lp_disk_opts opts = b->opts->disk;

    if (!url)
        return lp_error_sys(err, ENOMEM, "opening the disk");
    opts.small_pages |= b->opts->host.small_pages;
    b->disk = lp_disk_open(url, &opts, err);
    free(url);
    return b->disk ? 0 : -1;
}

static bool disk_is(const struct bench *b, const char *name)
{
    return strcmp(b->disk->type->name, name) == 0;
}

/* The queue that passes by the paths. Not to have one is no error: then less can be checked. */
static void open_below(struct bench *b)
{
    struct lp_fit_opts opts = {.depth = BELOW_DEPTH};
    const struct lp_limits *limits = lp_disk_limits(b->disk);
    struct lp_queue *q;

    if (limits->queues && limits->queues <= b->plan.queues)
        return;
    q = lp_disk_queue(b->disk, limits->depth && limits->depth < 8 ? limits->depth : 8, NULL);
    if (q)
        b->below = lp_fit_open(q, &q->limits, &opts, NULL);
}

static int open_stamp(struct bench *b, struct lp_error *err)
{
    b->may_write = (!b->opts->target || b->plan.write) && !lp_disk_limits(b->disk)->read_only;
    b->keeps_data = !disk_is(b, "null");
    b->stamped = b->plan.by_address && b->below && b->may_write && b->keeps_data;
    b->stamp = (struct stamp){.below = b->below,
                              .pattern = {.seed = b->opts->seed, .unit = b->plan.unit},
                              .bytes = b->plan.working_set_bytes,
                              .block_bytes = b->opts->block_bytes,
                              .interrupted = b->opts->interrupted};
    return stamp_open(&b->stamp, err);
}

/* ---- the result's head ---- */

static void describe_config(struct bench *b)
{
    const struct bench_options *o = b->opts;
    struct result_config *c = &b->result->config;
    const char *pattern = o->pattern == BENCH_RANDOM ? "random" : "sequential";

    memcpy(c->command, o->command, sizeof c->command);
    memcpy(c->preset, o->preset, sizeof c->preset);
    snprintf(c->pattern, sizeof c->pattern, "%s", pattern);
    if (o->directions[RESULT_MIXED])
        snprintf(c->pattern, sizeof c->pattern, "%s, mixed %u %% read", pattern, o->read_percent);
    c->block_bytes = o->block_bytes;
    c->working_set_bytes = b->plan.working_set_bytes;
    c->seed = o->seed;
    c->queues = b->plan.queues;
    c->runs = o->runs;
    c->warmup_s = o->warmup_s;
    c->seconds = o->seconds;
    c->depth_count = o->depth_count;
    memcpy(c->depths, o->depths, sizeof c->depths);
}

static int measure_limits(struct bench *b, struct lp_error *err)
{
    struct result_limits *limits = &b->result->limits;
    uint64_t quarter = b->result->environment.memory_free_bytes / 4;
    uint64_t bytes = b->plan.working_set_bytes;
    struct limits_options opts = {.bytes = quarter && bytes > quarter ? quarter : bytes,
                                  .small_pages = b->opts->host.small_pages,
                                  .brief = bench_brief(b),
                                  .first_cpu = b->plan.app_cpu,
                                  .second_cpu = b->plan.driver_cpu,
                                  .interrupted = b->opts->interrupted};

    bench_note(b, "measuring the physical limits");
    if (limits_measure(&opts, limits, err) != 0)
        return -1;
    b->done_s += limits_s;
    b->context = (struct points_context){
        .ceiling_gbit_per_s =
            b->plan.queues > 1 ? limits->copy_all_gbit_per_s : limits->copy_gbit_per_s,
        .working_set_bytes = bytes,
        .llc_bytes = b->result->environment.llc_bytes,
        .buffered = b->opts->disk.buffered && disk_is(b, "file"),
    };
    return 0;
}

/* ---- the run ---- */

static int prepare(struct bench *b, struct lp_error *err)
{
    struct result_environment *env = &b->result->environment;

    environment_fill(env);
    cpu_allowed(&b->allowed);
    if (!b->opts->target && !b->opts->disk_url && plan_check_memory(b->opts, env, err) != 0)
        return -1;
    if (open_disk(b, err) != 0)
        return -1;
    bool in_memory = disk_is(b, "ram") || disk_is(b, "null");
    if (plan_make(b->opts, env, lp_disk_limits(b->disk), in_memory, &b->plan, err) != 0)
        return -1;
    b->planned_s = b->plan.seconds;
    plan_placement(&b->plan, env->placement, sizeof env->placement);
    describe_config(b);
    open_below(b);
    size_t rows = (size_t)b->plan.paths * RESULT_DIRECTIONS * RESULT_MAX_DEPTHS;
    b->acc = malloc(rows * sizeof *b->acc);
    b->load = malloc(sizeof *b->load);
    if (!b->acc || !b->load)
        return lp_error_sys(err, ENOMEM, "the rows of %u paths", b->plan.paths);
    for (size_t i = 0; i < rows; i++)
        points_begin(&b->acc[i], b->opts->depths[i % RESULT_MAX_DEPTHS]);
    return open_stamp(b, err);
}

static bool any_point(const struct result *r)
{
    for (unsigned i = 0; i < r->path_count; i++)
        for (unsigned d = 0; d < RESULT_DIRECTIONS; d++)
            for (unsigned k = 0; k < r->config.depth_count; k++)
                if (r->paths[i].points[d][k].measured)
                    return true;
    return false;
}

static int run_all(struct bench *b, struct lp_error *err)
{
    struct result *r = b->result;

    r->path_count = b->plan.paths;
    for (unsigned i = 0; i < r->path_count; i++)
        bench_path_describe(b, i);
    for (unsigned run = 0; run < b->opts->runs; run++)
        for (unsigned i = 0; i < r->path_count && !bench_stopped(b); i++)
            bench_path_run(b, i, run);
    r->incomplete = bench_stopped(b);
    result_summarise(r);
    if (any_point(r) || r->incomplete)
        return 0;
    if (err)
        *err = b->first_error;
    return -1;
}

static void finish(struct bench *b)
{
    stamp_close(&b->stamp);
    lp_queue_close(b->below);
    if (b->disk)
        lp_disk_close(b->disk);
    free(b->acc);
    free(b->load);
}

int bench_run(const struct bench_options *opts, struct result *result, struct lp_error *err)
{
    struct bench *b;
    int rc = -1;

    memset(result, 0, sizeof *result);
    if (plan_check(opts, err) != 0)
        return -1;
    b = calloc(1, sizeof *b);
    if (!b)
        return lp_error_sys(err, ENOMEM, "the benchmark");
    b->opts = opts;
    b->result = result;
    b->start_ns = clock_now_ns();
    b->now.runs = opts->runs;
    if (prepare(b, err) == 0 && measure_limits(b, err) == 0)
        rc = run_all(b, err);
    finish(b);
    free(b);
    return rc;
}
