/* SPDX-License-Identifier: BSD-2-Clause */
/* One path's share of the run: attached, measured in all its points, checked, detached. */
#include "bench/bench_int.h"

#include "bench/units.h"
#include "bench/verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { VERIFY_DEPTH = 32, MAX_QUEUES = 64 };
static const uint64_t verify_bytes = (uint64_t)64 << 20;
static const uint64_t verify_bytes_brief = (uint64_t)16 << 20;

struct path {
    struct bench *b;
    unsigned index, run;
    const struct bench_profile *profile;
    struct result_path *result;
    struct lp_host *host;
    struct lp_queue *queues[MAX_QUEUES];
    uint64_t cursor; /* where sequential goes on: no point finds the last one's blocks in a cache */
    bool lost;       /* the driver is gone */
};

static const struct bench_profile *profile_of(const struct bench *b, unsigned path)
{
    static const struct bench_profile target = {.host = "inline", .prep = LP_PREP_NONE};

    return b->opts->target ? &target : b->opts->profiles[path];
}

static const char *prep_name(enum lp_prep prep)
{
    switch (prep) {
    case LP_PREP_PAGE:
        return "page";
    case LP_PREP_MULTI:
        return "multi";
    case LP_PREP_BLOCK:
        return "block";
    default:
        return "none";
    }
}

void bench_path_describe(struct bench *b, unsigned path)
{
    const struct bench_profile *profile = profile_of(b, path);
    struct result_path *r = &b->result->paths[path];

    snprintf(r->name, sizeof r->name, "%.*s", RESULT_NAME - 1,
             b->opts->target ? b->opts->target : profile->name);
    snprintf(r->stands_for, sizeof r->stands_for, "%.*s", RESULT_TEXT - 1,
             profile->stands_for ? profile->stands_for : "");
    snprintf(r->disk, sizeof r->disk, "%.150s: %.80s", lp_disk_url(b->disk), lp_disk_mode(b->disk));
    snprintf(r->prep, sizeof r->prep, "%s%s", prep_name(profile->prep),
             profile->guard ? " + guard" : "");
}

static struct lp_host_opts host_opts(const struct path *p)
{
    const struct bench *b = p->b;
    struct lp_host_opts o = b->opts->host;
    unsigned depth = b->plan.max_depth;

    if (!o.host || b->opts->target)
        o.host = p->profile->host;
    o.prep = p->profile->prep;
    o.guard = p->profile->guard;
    /* The verifier works at a depth where tasks meet. */
    o.depth = b->opts->verify && depth < VERIFY_DEPTH ? VERIFY_DEPTH : depth;
    o.arena_size = b->plan.arena_bytes;
    o.app_cpu = b->plan.app_cpu;
    o.driver_cpu = b->plan.driver_cpu;
    return o;
}

static int attach(struct path *p, struct lp_error *err)
{
    struct bench *b = p->b;
    struct lp_host_opts o = host_opts(p);
    bool in_line = strcmp(o.host, "inline") == 0;

    p->host = lp_host_attach(b->disk, &o, err);
    if (!p->host)
        return -1;
    for (unsigned i = 0; i < b->plan.queues; i++)
        p->queues[i] = lp_host_queue(p->host, i);
    /* Without a driver process there is only one place. */
    struct plan here = b->plan;
    char placement[128];
    if (in_line)
        here.driver_cpu = here.app_cpu;
    plan_placement(&here, placement, sizeof placement);
    snprintf(p->result->host, sizeof p->result->host, "%.120s; %s", lp_host_mode(p->host),
             placement);
    return 0;
}

static unsigned read_percent(const struct path *p, enum result_direction direction)
{
    return direction == RESULT_READ    ? 100
           : direction == RESULT_WRITE ? 0
                                       : p->b->opts->read_percent;
}

static void tick(uint64_t bytes, uint64_t ns, void *user)
{
    struct path *p = user;
    struct bench *b = p->b;

    /* The first queue tells; the others do about the same. */
    b->now.gbit_per_s = units_gbit_per_s(bytes, ns) * b->plan.queues;
    bench_progress(b, (double)ns / 1e9);
}

static struct load_options load_options(struct path *p, enum result_direction direction,
                                        unsigned depth_index)
{
    const struct bench *b = p->b;
    const struct bench_options *o = b->opts;

    return (struct load_options){
        .pattern = o->pattern,
        .read_percent = read_percent(p, direction),
        .block_bytes = o->block_bytes,
        .length = b->plan.working_set_bytes,
        .start = p->cursor,
        .depth = o->depths[depth_index],
        .arena = lp_host_arena(p->host),
        .by_address = b->plan.by_address,
        .touched = b->stamped ? b->stamp.touched : NULL,
        .warmup_ns = (uint64_t)(o->warmup_s * 1e9),
        .run_ns = (uint64_t)(o->seconds * 1e9),
        /* The same addresses for every path, others for every run and point. */
        .seed = o->seed + 1000 * p->run + 100 * (unsigned)direction + depth_index,
        .cpu = b->plan.app_cpu,
        .go_on_after_loss = o->host.restart_driver,
        .tick = o->progress ? tick : NULL,
        .tick_user = p,
        .interrupted = o->interrupted,
    };
}

static void begin_point(struct path *p, enum result_direction direction, unsigned depth)
{
    struct bench_progress *now = &p->b->now;

    now->path = p->result->name;
    now->direction = direction;
    now->depth = depth;
    now->run = p->run + 1;
    now->gbit_per_s = 0;
}

static void end_point(struct path *p, double gbit_per_s)
{
    struct bench *b = p->b;

    b->done_s += b->opts->seconds + b->opts->warmup_s;
    b->now.gbit_per_s = gbit_per_s;
    b->now.point_done = true;
    bench_progress(b, 0);
    b->now.point_done = false;
}

static int run_point(struct path *p, enum result_direction direction, unsigned depth_index,
                     struct lp_error *err)
{
    struct bench *b = p->b;
    struct load_options opts = load_options(p, direction, depth_index);
    struct lp_host_stats before, after;
    unsigned row = (p->index * RESULT_DIRECTIONS + (unsigned)direction) * RESULT_MAX_DEPTHS;

    begin_point(p, direction, opts.depth);
    lp_host_stats(p->host, &before);
    if (load_run_all(p->queues, b->plan.queues, &opts, b->load, err) != 0)
        return -1;
    lp_host_stats(p->host, &after);
    p->cursor += b->load->total_bytes / b->plan.queues / opts.block_bytes * opts.block_bytes;
    p->lost = b->load->lost || lp_host_failed(p->host);
    /* Half a window is no run; errors are kept whatever ended it. */
    if (b->load->interrupted && b->load->errors == 0)
        return 0;
    if (p->result->warmup_slow_ratio == 0)
        p->result->warmup_slow_ratio = load_first_ratio(b->load);
    points_add(&b->acc[row + depth_index], b->load, &before, &after);
    points_finish(&b->acc[row + depth_index], &b->context,
                  &p->result->points[direction][depth_index]);
    end_point(p, units_gbit_per_s(b->load->bytes, b->load->window_ns));
    return 0;
}

/* Payload that is not zeros, where data cannot be told by its address. */
static int prepare_anonymous(struct path *p, enum result_direction direction, struct lp_error *err)
{
    struct bench *b = p->b;
    uint64_t whole = b->plan.arena_bytes / b->plan.unit * b->plan.unit;

    if (direction != RESULT_READ)
        pattern_fill(&b->stamp.pattern, lp_host_arena(p->host), whole, 0,
                     stamp_next_generation(&b->stamp));
    if (direction == RESULT_WRITE || b->stamp.whole || !b->below || !b->may_write || !b->keeps_data)
        return 0;
    return stamp_restore(&b->stamp, b->plan.working_set_bytes, err);
}

static int run_series(struct path *p, enum result_direction direction, struct lp_error *err)
{
    struct bench *b = p->b;
    char *arena = lp_host_arena(p->host);
    int rc = b->stamped ? stamp_prepare(&b->stamp, direction, arena, err)
                        : prepare_anonymous(p, direction, err);

    for (unsigned i = 0; rc == 0 && i < b->opts->depth_count; i++) {
        if (bench_stopped(b) || p->lost)
            break;
        rc = run_point(p, direction, i, err);
    }
    b->done_s += 0.1;
    if (rc != 0 || !b->stamped || !b->opts->verify || bench_stopped(b) || p->lost)
        return rc;
    p->result->verify.done = true;
    return stamp_check(&b->stamp, direction, arena, &p->result->verify, err);
}

static void take_verify_report(struct result_verify *v, const struct verify_report *report)
{
    char what[100];

    v->done = true;
    v->checked_bytes += report->bytes_checked;
    v->wrong_blocks += report->wrong_blocks;
    if (report->finding_count > 0 && !v->first[0]) {
        const struct verify_finding *f = &report->findings[0];
        snprintf(what, sizeof what, "%.60s, from page %u of the request on", f->phase,
                 f->wrong_from_page);
        stamp_sentence(what, &f->data, v->first, sizeof v->first);
    } else if (report->errors > 0 && !v->first[0]) {
        snprintf(v->first, sizeof v->first, "%llu I/O error%s while verifying",
                 (unsigned long long)report->errors, units_s(report->errors));
    }
}

static uint64_t verified_range(const struct bench *b)
{
    uint64_t bytes = bench_brief(b) ? verify_bytes_brief : verify_bytes;
    uint64_t block = b->opts->block_bytes;

    if (bytes > b->plan.working_set_bytes)
        bytes = b->plan.working_set_bytes;
    if (bytes > b->plan.arena_bytes)
        bytes = b->plan.arena_bytes;
    return bytes < block ? block : bytes / block * block;
}

static int verify(struct path *p, struct lp_error *err)
{
    struct bench *b = p->b;
    struct result_verify *v = &p->result->verify;
    struct verify_report report;
    uint64_t bytes = verified_range(b);

    if (!b->opts->verify || !b->may_write || !b->keeps_data) {
        snprintf(v->first, sizeof v->first, "not done: %s",
                 !b->opts->verify ? "it was switched off"
                 : b->may_write   ? "this disk keeps no data"
                                  : "this disk is only read, and bears no known pattern");
        return 0;
    }
    begin_point(p, RESULT_WRITE, 0);
    bench_note(b, "verifying every byte");
    memset(&report, 0, sizeof report);
    if (verify_path(p->queues[0], b->below, lp_host_arena(p->host), b->plan.arena_bytes,
                    &b->stamp.pattern, bytes, b->opts->block_bytes, VERIFY_DEPTH,
                    b->opts->host.page_size, stamp_next_generation(&b->stamp), b->opts->interrupted,
                    &report, err) != 0)
        return -1;
    if (!report.incomplete)
        take_verify_report(v, &report);
    b->done_s += 0.5;
    return 0;
}

/* The application's side is pinned only now: what the host started is not to inherit it. */
static int run_attached(struct path *p, struct lp_error *err)
{
    struct bench *b = p->b;
    int rc = 0;

    if (b->plan.app_cpu >= 0 && b->plan.queues == 1)
        cpu_pin(b->plan.app_cpu);
    for (unsigned d = 0; rc == 0 && d < RESULT_DIRECTIONS; d++)
        if (b->opts->directions[d] && !bench_stopped(b) && !p->lost)
            rc = run_series(p, (enum result_direction)d, err);
    if (rc == 0 && p->run == 0 && !bench_stopped(b) && !p->lost)
        rc = verify(p, err);
    cpu_restrict(&b->allowed);
    return rc;
}

static void skip_from_now_on(struct bench *b, unsigned path, const struct lp_error *why)
{
    b->skipped[path] = true;
    if (b->first_error.domain == LP_ERROR_NONE)
        b->first_error = *why;
}

void bench_path_run(struct bench *b, unsigned path, unsigned run)
{
    struct path p = {.b = b,
                     .index = path,
                     .run = run,
                     .profile = profile_of(b, path),
                     .result = &b->result->paths[path]};
    struct result_path *r = p.result;
    struct lp_host_stats stats;
    struct lp_error err;

    if (b->skipped[path])
        return;
    if (attach(&p, &err) != 0) {
        skip_from_now_on(b, path, &err);
        if (!b->attached[path])
            snprintf(r->host, sizeof r->host, "not measured: %.200s", err.msg);
        return;
    }
    b->attached[path] = true;
    if (run_attached(&p, &err) != 0) {
        skip_from_now_on(b, path, &err);
        r->verify.done = false;
        if (!r->verify.first[0])
            snprintf(r->verify.first, sizeof r->verify.first, "not complete: %.200s", err.msg);
    }
    if (p.lost) {
        r->verify.done = false;
        if (!r->verify.first[0])
            snprintf(r->verify.first, sizeof r->verify.first, "not complete: the driver is gone");
    }
    lp_host_stats(p.host, &stats);
    r->driver_restarts += stats.restarts;
    lp_host_detach(p.host);
}
