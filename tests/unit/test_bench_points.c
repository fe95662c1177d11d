/* SPDX-License-Identifier: BSD-2-Clause */
/* Medians and flags: each flag is shown set and not set. */
#include "bench/points.h"

#include "bench/units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DEPTH = 8 };
static const uint64_t mib = 1 << 20, second = 1000000000;

static struct points_context context(void)
{
    return (struct points_context){
        .ceiling_gbit_per_s = 80, .working_set_bytes = 256 * mib, .llc_bytes = 32 * mib};
}

/* One second of 1 MiB requests without anything to flag. */
static struct load_result *good_load(void)
{
    struct load_result *r = calloc(1, sizeof *r);

    assert_non_null(r);
    histogram_reset(&r->latency);
    for (unsigned i = 0; i < 1000; i++)
        histogram_add(&r->latency, 1000000);
    r->requests = 1000;
    r->bytes = 1000 * mib;
    r->window_ns = second;
    r->queues = 1;
    for (unsigned i = 0; i < LOAD_SLICES; i++)
        r->slice_bytes[i] = (double)r->bytes / LOAD_SLICES;
    r->depth_mean = DEPTH;
    r->depth_max = DEPTH;
    r->total_requests = 1200;
    r->total_bytes = 1200 * mib;
    r->total_ns = 1200000000;
    r->cpu_ns = 600000000;
    return r;
}

static struct lp_host_stats good_stats(void)
{
    return (struct lp_host_stats){.disk_requests = 1200,
                                  .disk_bytes_read = 1200 * mib,
                                  .app_syscalls = 12,
                                  .driver_syscalls = 24,
                                  .driver_cpu_ns = 900000000};
}

struct fixture {
    struct points_acc acc;
    struct points_context ctx;
    struct result_point point;
};

static void add(struct fixture *f, const struct load_result *load,
                const struct lp_host_stats *counted)
{
    /* Counters do not begin at 0: the host has worked before. */
    struct lp_host_stats before = good_stats(), after = good_stats();

    after.disk_bytes_read += counted->disk_bytes_read;
    after.disk_bytes_written += counted->disk_bytes_written;
    after.app_syscalls += counted->app_syscalls;
    after.driver_syscalls += counted->driver_syscalls;
    after.driver_cpu_ns += counted->driver_cpu_ns;
    points_add(&f->acc, load, &before, &after);
}

static struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    points_begin(&f->acc, DEPTH);
    f->ctx = context();
    return f;
}

/* One run; gives the flags and frees everything. */
static uint32_t flags_of(struct fixture *f, struct load_result *load,
                         const struct lp_host_stats *counted)
{
    add(f, load, counted);
    points_finish(&f->acc, &f->ctx, &f->point);
    uint32_t flags = f->point.flags;
    free(load);
    free(f);
    return flags;
}

static void a_good_run_has_no_flag(void **state)
{
    struct lp_host_stats stats = good_stats();
    (void)state;
    assert_int_equal(flags_of(begin(), good_load(), &stats), 0);
}

static void a_point_without_runs_is_not_measured(void **state)
{
    struct fixture *f = begin();
    (void)state;
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_false(f->point.measured);
    assert_int_equal(f->point.depth_asked, DEPTH);
    assert_true(f->point.gbit_per_s == 0);
    free(f);
}

static void add_rate(struct fixture *f, uint64_t mib_per_s)
{
    struct load_result *load = good_load();
    struct lp_host_stats stats = good_stats();

    load->bytes = mib_per_s * mib;
    add(f, load, &stats);
    free(load);
}

static void the_figure_is_the_median_of_the_runs(void **state)
{
    struct fixture *f = begin();
    (void)state;
    add_rate(f, 1000);
    add_rate(f, 1100);
    add_rate(f, 100);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_true(f->point.measured);
    assert_int_equal(f->point.runs, 3);
    assert_true(f->point.gbit_per_s == units_gbit_per_s(1000 * mib, second));
    assert_true(f->point.gbit_per_s_min == units_gbit_per_s(100 * mib, second));
    assert_true(f->point.gbit_per_s_max == units_gbit_per_s(1100 * mib, second));
    assert_true(f->point.run_gbit_per_s[2] == f->point.gbit_per_s_min);
    assert_int_equal(f->point.requests, 3000);
    add_rate(f, 1200);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_true(fabs(f->point.gbit_per_s - units_gbit_per_s(1050 * mib, second)) < 1e-9);
    free(f);
}

static void costs_are_per_payload_of_the_whole_run(void **state)
{
    struct fixture *f = begin();
    (void)state;
    add_rate(f, 1000);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_true(fabs(f->point.app_cpu_s_per_gib - 0.6 * 1024 / 1200) < 1e-9);
    assert_true(fabs(f->point.driver_cpu_s_per_gib - 0.9 * 1024 / 1200) < 1e-9);
    assert_true(fabs(f->point.app_syscalls_per_io - 0.01) < 1e-9);
    assert_true(fabs(f->point.driver_syscalls_per_io - 0.02) < 1e-9);
    assert_int_equal(f->point.bytes_top, 1200 * mib);
    assert_int_equal(f->point.bytes_disk, 1200 * mib);
    assert_true(fabs(f->point.ios_per_s - 1000) < 1e-9);
    free(f);
}

static void latency_is_of_all_runs(void **state)
{
    struct fixture *f = begin();
    struct load_result *slow = good_load();
    struct lp_host_stats stats = good_stats();
    (void)state;
    add_rate(f, 1000);
    histogram_reset(&slow->latency);
    histogram_add(&slow->latency, 77000000);
    add(f, slow, &stats);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_int_equal(f->point.lat_ns_max, 77000000);
    assert_true(f->point.lat_ns_p50 >= 1000000 && f->point.lat_ns_p50 < 1020000);
    assert_int_equal(f->point.lat_ns_mean, (1000 * 1000000ul + 77000000) / 1001);
    free(slow);
    free(f);
}

static void more_runs_than_fit_are_not_added(void **state)
{
    struct fixture *f = begin();
    (void)state;
    for (unsigned i = 0; i < RESULT_MAX_RUNS + 2; i++)
        add_rate(f, 1000);
    assert_int_equal(f->acc.runs, RESULT_MAX_RUNS);
    free(f);
}

static void depth_not_reached_begins_below_nine_tenths(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct load_result *load = good_load();
    (void)state;
    load->depth_mean = 0.89 * DEPTH;
    assert_int_equal(flags_of(begin(), load, &stats), RESULT_DEPTH_NOT_REACHED);
    load = good_load();
    load->depth_mean = 0.91 * DEPTH;
    assert_int_equal(flags_of(begin(), load, &stats), 0);
}

static struct load_result *half_way(double to)
{
    struct load_result *load = good_load();

    for (unsigned i = LOAD_SLICES / 2; i < LOAD_SLICES; i++)
        load->slice_bytes[i] *= to;
    return load;
}

static void m6_a_fall_by_40_percent_half_way_is_flagged_and_its_slope_kept(void **state)
{
    struct fixture *f = begin();
    struct lp_host_stats stats = good_stats();
    struct load_result *load = half_way(0.6);
    (void)state;
    add(f, load, &stats);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_int_equal(f->point.flags, RESULT_NOT_STEADY);
    assert_true(fabs(f->point.drift - -0.4) < 1e-9);
    free(load);
    free(f);
}

static void not_steady_is_also_a_rise_but_not_a_small_change(void **state)
{
    struct lp_host_stats stats = good_stats();
    (void)state;
    assert_int_equal(flags_of(begin(), half_way(1.3), &stats), RESULT_NOT_STEADY);
    assert_int_equal(flags_of(begin(), half_way(0.85), &stats), 0);
    assert_int_equal(flags_of(begin(), half_way(1.15), &stats), 0);
}

static void cpu_bound_is_either_side_above_95_percent_of_its_core(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct load_result *load = good_load();
    (void)state;
    load->cpu_ns = 1150000000; /* of 1.2 s */
    assert_int_equal(flags_of(begin(), load, &stats), RESULT_CPU_BOUND);
    stats.driver_cpu_ns = 1150000000;
    assert_int_equal(flags_of(begin(), good_load(), &stats), RESULT_CPU_BOUND);
    stats.driver_cpu_ns = 1100000000;
    assert_int_equal(flags_of(begin(), good_load(), &stats), 0);
    load = good_load(); /* two queues have two cores */
    load->queues = 2;
    load->cpu_ns = 1150000000;
    assert_int_equal(flags_of(begin(), load, &stats), 0);
}

static void cache_is_suspected_when_the_working_set_fits_or_the_file_is_buffered(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct fixture *f = begin();
    (void)state;
    f->ctx.working_set_bytes = 32 * mib;
    assert_int_equal(flags_of(f, good_load(), &stats), RESULT_CACHE_SUSPECT);
    f = begin();
    f->ctx.working_set_bytes = 33 * mib;
    assert_int_equal(flags_of(f, good_load(), &stats), 0);
    f = begin();
    f->ctx.buffered = true;
    assert_int_equal(flags_of(f, good_load(), &stats), RESULT_CACHE_SUSPECT);
    f = begin(); /* a cache of unknown size may be large */
    f->ctx.llc_bytes = 0;
    f->ctx.working_set_bytes = 64 * mib;
    assert_int_equal(flags_of(f, good_load(), &stats), RESULT_CACHE_SUSPECT);
    f = begin();
    f->ctx.llc_bytes = 0;
    assert_int_equal(flags_of(f, good_load(), &stats), 0);
}

static void a_run_is_short_in_time_or_in_requests(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct load_result *load = good_load();
    struct fixture *f = begin();
    (void)state;
    f->ctx.ceiling_gbit_per_s = 0;
    load->window_ns = 199999999;
    assert_int_equal(flags_of(f, load, &stats), RESULT_SHORT_RUN);
    load = good_load();
    load->requests = 99;
    assert_int_equal(flags_of(begin(), load, &stats), RESULT_SHORT_RUN);
    load = good_load();
    load->requests = 100;
    assert_int_equal(flags_of(begin(), load, &stats), 0);
}

static void a_short_run_is_not_called_unsteady(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct load_result *load = half_way(0.5);
    (void)state;
    load->requests = 99;
    assert_int_equal(flags_of(begin(), load, &stats), RESULT_SHORT_RUN);
}

static void a_spread_is_wide_above_a_quarter_of_the_median(void **state)
{
    struct fixture *f = begin();
    (void)state;
    add_rate(f, 1000);
    add_rate(f, 1000);
    add_rate(f, 760);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_int_equal(f->point.flags, 0);
    add_rate(f, 740);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_int_equal(f->point.flags, RESULT_WIDE_SPREAD);
    free(f);
}

static void bytes_at_the_disk_are_compared_with_bytes_at_the_top(void **state)
{
    struct lp_host_stats stats = good_stats();
    (void)state;
    stats.disk_bytes_read -= 512;
    assert_int_equal(flags_of(begin(), good_load(), &stats), RESULT_BYTES_DIFFER);
    stats.disk_bytes_written = 512;
    assert_int_equal(flags_of(begin(), good_load(), &stats), 0);
}

static void faster_than_the_machine_is_flagged(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct fixture *f = begin();
    (void)state;
    f->ctx.ceiling_gbit_per_s = 7.9; /* the run makes 8.39 */
    assert_int_equal(flags_of(f, good_load(), &stats), RESULT_ABOVE_CEILING);
    f = begin();
    f->ctx.ceiling_gbit_per_s = 8.1; /* within the ceiling's own noise */
    assert_int_equal(flags_of(f, good_load(), &stats), 0);
    f = begin();
    f->ctx.ceiling_gbit_per_s = 0; /* not known */
    assert_int_equal(flags_of(f, good_load(), &stats), 0);
}

static void io_errors_are_flagged_and_summed(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct load_result *load = good_load();
    (void)state;
    load->errors = 1;
    assert_int_equal(flags_of(begin(), load, &stats), RESULT_IO_ERRORS);
}

static void a_run_that_the_driver_s_loss_ended_counts_with_its_errors_only(void **state)
{
    struct lp_host_stats stats = good_stats();
    struct load_result *lost = good_load();
    struct fixture *f = begin();
    (void)state;
    lost->lost = true;
    lost->errors = 8;
    lost->bytes = mib;
    lost->total_bytes = 2 * mib;
    lost->requests = 1;
    add(f, lost, &stats);
    points_finish(&f->acc, &f->ctx, &f->point); /* the only one: better than nothing */
    assert_true(f->point.measured);
    assert_int_equal(f->point.runs, 1);
    assert_int_equal(f->point.errors, 8);
    assert_int_equal(f->point.flags & RESULT_IO_ERRORS, RESULT_IO_ERRORS);
    add_rate(f, 1000);
    add(f, lost, &stats);
    points_finish(&f->acc, &f->ctx, &f->point);
    assert_int_equal(f->point.runs, 1);
    assert_true(f->point.gbit_per_s == units_gbit_per_s(1000 * mib, second));
    assert_int_equal(f->point.bytes_top, 1200 * mib);
    assert_int_equal(f->point.errors, 16);
    assert_int_equal(f->point.flags, RESULT_IO_ERRORS);
    free(lost);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_run_has_no_flag),
        cmocka_unit_test(a_point_without_runs_is_not_measured),
        cmocka_unit_test(the_figure_is_the_median_of_the_runs),
        cmocka_unit_test(costs_are_per_payload_of_the_whole_run),
        cmocka_unit_test(latency_is_of_all_runs),
        cmocka_unit_test(more_runs_than_fit_are_not_added),
        cmocka_unit_test(depth_not_reached_begins_below_nine_tenths),
        cmocka_unit_test(m6_a_fall_by_40_percent_half_way_is_flagged_and_its_slope_kept),
        cmocka_unit_test(not_steady_is_also_a_rise_but_not_a_small_change),
        cmocka_unit_test(cpu_bound_is_either_side_above_95_percent_of_its_core),
        cmocka_unit_test(cache_is_suspected_when_the_working_set_fits_or_the_file_is_buffered),
        cmocka_unit_test(a_run_is_short_in_time_or_in_requests),
        cmocka_unit_test(a_short_run_is_not_called_unsteady),
        cmocka_unit_test(a_spread_is_wide_above_a_quarter_of_the_median),
        cmocka_unit_test(bytes_at_the_disk_are_compared_with_bytes_at_the_top),
        cmocka_unit_test(faster_than_the_machine_is_flagged),
        cmocka_unit_test(io_errors_are_flagged_and_summed),
        cmocka_unit_test(a_run_that_the_driver_s_loss_ended_counts_with_its_errors_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
