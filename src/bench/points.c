/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/points.h"

#include "base/median.h"
#include "bench/units.h"

#include <stddef.h>
#include <string.h>

static const double gib = 1 << 30;

/* Where a row begins to deserve its flag; result.h says the same in words. */
static const double depth_reached = 0.9;
static const double drift_steady = 0.2;
static const double cpu_whole_core = 0.95;
static const double spread_wide = 0.25;
static const double ceiling_noise = 1.05; /* the ceiling is a measurement too */
static const double short_run_s = 0.2;
static const uint64_t short_run_requests = 100;
static const uint64_t usual_llc_bytes = (uint64_t)64 << 20;

void points_begin(struct points_acc *acc, unsigned depth_asked)
{
    memset(acc, 0, sizeof *acc);
    acc->depth_asked = depth_asked;
    histogram_reset(&acc->latency);
}

static struct points_run make_run(const struct load_result *load,
                                  const struct lp_host_stats *before,
                                  const struct lp_host_stats *after)
{
    return (struct points_run){
        .gbit_per_s = units_gbit_per_s(load->bytes, load->window_ns),
        .ios_per_s = units_per_second((double)load->requests, load->window_ns),
        .seconds = (double)load->window_ns / 1e9,
        .depth_mean = load->depth_mean,
        .drift = load_drift(load),
        .depth_max = load->depth_max,
        .queues = load->queues,
        .requests = load->requests,
        .total_requests = load->total_requests,
        .total_bytes = load->total_bytes,
        .total_ns = load->total_ns,
        .errors = load->errors,
        .disk_bytes = after->disk_bytes_read + after->disk_bytes_written - before->disk_bytes_read -
                      before->disk_bytes_written,
        .app_cpu_ns = load->cpu_ns,
        .driver_cpu_ns = after->driver_cpu_ns - before->driver_cpu_ns,
        .app_syscalls = after->app_syscalls - before->app_syscalls,
        .driver_syscalls = after->driver_syscalls - before->driver_syscalls,
    };
}

void points_add(struct points_acc *acc, const struct load_result *load,
                const struct lp_host_stats *before, const struct lp_host_stats *after)
{
    struct points_run run = make_run(load, before, after);

    if (load->lost) {
        acc->cut = run;
        acc->cut_errors += load->errors;
    } else if (acc->runs < RESULT_MAX_RUNS) {
        histogram_merge(&acc->latency, &load->latency);
        acc->run[acc->runs++] = run;
    }
}

/* Over the runs, of the double at member_offset in each. */
static double median(const struct points_acc *acc, size_t member_offset)
{
    double values[RESULT_MAX_RUNS];

    for (unsigned i = 0; i < acc->runs; i++)
        values[i] = *(const double *)((const char *)&acc->run[i] + member_offset);
    return median_of(values, acc->runs);
}

static void fill_rates(const struct points_acc *acc, struct result_point *p)
{
    p->gbit_per_s = median(acc, offsetof(struct points_run, gbit_per_s));
    p->ios_per_s = median(acc, offsetof(struct points_run, ios_per_s));
    p->seconds = median(acc, offsetof(struct points_run, seconds));
    p->depth_mean = median(acc, offsetof(struct points_run, depth_mean));
    p->drift = median(acc, offsetof(struct points_run, drift));
    p->gbit_per_s_min = p->gbit_per_s_max = acc->run[0].gbit_per_s;
    for (unsigned i = 0; i < acc->runs; i++) {
        double rate = acc->run[i].gbit_per_s;
        p->run_gbit_per_s[i] = rate;
        if (rate < p->gbit_per_s_min)
            p->gbit_per_s_min = rate;
        if (rate > p->gbit_per_s_max)
            p->gbit_per_s_max = rate;
        if (acc->run[i].depth_max > p->depth_max)
            p->depth_max = acc->run[i].depth_max;
    }
}

static struct points_run sum_of(const struct points_acc *acc)
{
    struct points_run sum = {0};

    for (unsigned i = 0; i < acc->runs; i++) {
        const struct points_run *r = &acc->run[i];
        sum.requests += r->requests;
        sum.total_requests += r->total_requests;
        sum.total_bytes += r->total_bytes;
        sum.total_ns += r->total_ns;
        sum.errors += r->errors;
        sum.disk_bytes += r->disk_bytes;
        sum.app_cpu_ns += r->app_cpu_ns;
        sum.driver_cpu_ns += r->driver_cpu_ns;
        sum.app_syscalls += r->app_syscalls;
        sum.driver_syscalls += r->driver_syscalls;
    }
    return sum;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void fill_costs(const struct points_acc *acc, struct result_point *p)
{
    struct points_run sum = sum_of(acc);
    double bytes = (double)sum.total_bytes, requests = (double)sum.total_requests;

    p->requests = sum.requests;
    p->bytes_top = sum.total_bytes;
    p->bytes_disk = sum.disk_bytes;
    p->errors = sum.errors;
    p->app_cpu_s_per_gib = ratio((double)sum.app_cpu_ns / 1e9, bytes / gib);
    p->driver_cpu_s_per_gib = ratio((double)sum.driver_cpu_ns / 1e9, bytes / gib);
    p->app_syscalls_per_io = ratio((double)sum.app_syscalls, requests);
    p->driver_syscalls_per_io = ratio((double)sum.driver_syscalls, requests);
}

static void fill_latency(const struct histogram *h, struct result_point *p)
{
    if (h->count == 0)
        return;
    p->lat_ns_mean = h->sum / h->count;
    p->lat_ns_p50 = histogram_percentile(h, 0.5);
    p->lat_ns_p99 = histogram_percentile(h, 0.99);
    p->lat_ns_p999 = histogram_percentile(h, 0.999);
    p->lat_ns_max = h->max;
}

static void finish(const struct points_acc *acc, const struct points_context *ctx,
                   uint64_t cut_errors, struct result_point *point)
{
    point->measured = true;
    point->runs = acc->runs;
    fill_rates(acc, point);
    fill_costs(acc, point);
    fill_latency(&acc->latency, point);
    point->errors += cut_errors;
    point->flags = points_flags(acc, ctx, point);
}

void points_finish(const struct points_acc *acc, const struct points_context *ctx,
                   struct result_point *point)
{
    memset(point, 0, sizeof *point);
    point->depth_asked = acc->depth_asked;
    if (acc->runs > 0) {
        finish(acc, ctx, acc->cut_errors, point);
    } else if (acc->cut_errors > 0) {
        struct points_acc only = *acc;
        only.runs = 1;
        only.run[0] = acc->cut;
        finish(&only, ctx, acc->cut_errors - acc->cut.errors, point);
    }
}

/* The shortest run decides, and the fewest requests: a median would hide them. */
static bool is_short(const struct points_acc *acc)
{
    for (unsigned i = 0; i < acc->runs; i++)
        if (acc->run[i].seconds < short_run_s || acc->run[i].requests < short_run_requests)
            return true;
    return false;
}

/* Too few requests to tell a drift from chance; such a row is flagged as short anyway. */
static bool drifts(const struct points_acc *acc, const struct result_point *p)
{
    for (unsigned i = 0; i < acc->runs; i++)
        if (acc->run[i].requests < short_run_requests)
            return false;
    return p->drift > drift_steady || p->drift < -drift_steady;
}

static bool is_cpu_bound(const struct points_acc *acc)
{
    struct points_run sum = sum_of(acc);
    double cores = acc->run[0].queues ? acc->run[0].queues : 1;
    double whole = cpu_whole_core * cores * (double)sum.total_ns;

    return sum.total_ns && ((double)sum.app_cpu_ns > whole || (double)sum.driver_cpu_ns > whole);
}

uint32_t points_flags(const struct points_acc *acc, const struct points_context *ctx,
                      const struct result_point *p)
{
    uint64_t llc = ctx->llc_bytes ? ctx->llc_bytes : usual_llc_bytes;
    double spread = p->gbit_per_s_max - p->gbit_per_s_min;
    uint32_t flags = 0;

    if (p->depth_mean < depth_reached * p->depth_asked)
        flags |= RESULT_DEPTH_NOT_REACHED;
    if (drifts(acc, p))
        flags |= RESULT_NOT_STEADY;
    if (is_cpu_bound(acc))
        flags |= RESULT_CPU_BOUND;
    if (ctx->buffered || ctx->working_set_bytes <= llc)
        flags |= RESULT_CACHE_SUSPECT;
    if (is_short(acc))
        flags |= RESULT_SHORT_RUN;
    if (spread > spread_wide * p->gbit_per_s)
        flags |= RESULT_WIDE_SPREAD;
    if (p->bytes_top != p->bytes_disk)
        flags |= RESULT_BYTES_DIFFER;
    if (ctx->ceiling_gbit_per_s > 0 && p->gbit_per_s > ceiling_noise * ctx->ceiling_gbit_per_s)
        flags |= RESULT_ABOVE_CEILING;
    if (p->errors)
        flags |= RESULT_IO_ERRORS;
    return flags;
}
