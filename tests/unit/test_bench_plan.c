/* SPDX-License-Identifier: BSD-2-Clause */
/* What cannot be is refused with one sentence; what was left open is chosen. */
#include "bench/plan.h"

#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t mib = 1 << 20, gib = 1 << 30;

static struct result_environment machine(void)
{
    return (struct result_environment){.llc_bytes = 32 * mib, .memory_free_bytes = 16 * gib};
}

static struct lp_limits disk_of(uint64_t size)
{
    return (struct lp_limits){.size = size, .block_size = 512};
}

static struct bench_options defaults(void)
{
    struct bench_options o;

    bench_options_default(&o);
    return o;
}

/* One sentence: no line end, and it says what to do after a colon. */
static void assert_sentence(const struct lp_error *err, const char *part)
{
    if (!strstr(err->msg, part))
        fail_msg("'%s' does not say '%s'", err->msg, part);
    assert_null(strchr(err->msg, '\n'));
    assert_non_null(strstr(err->msg, ": "));
    assert_int_equal(err->domain, LP_ERROR_USAGE);
}

static void assert_refused(const struct bench_options *o, const char *part)
{
    struct lp_error err = {.domain = LP_ERROR_NONE};
    struct result_environment env = machine();
    struct lp_limits disk = disk_of(gib);
    struct plan plan = {0};

    if (plan_check(o, &err) == 0)
        assert_int_equal(plan_make(o, &env, &disk, true, &plan, &err), -1);
    assert_sentence(&err, part);
}

static struct plan made(const struct bench_options *o, const struct lp_limits *disk)
{
    struct lp_error err = {.domain = LP_ERROR_NONE};
    struct result_environment env = machine();
    struct plan plan = {0};

    if (plan_check(o, &err) != 0 || plan_make(o, &env, disk, true, &plan, &err) != 0)
        fail_msg("refused: %s", err.msg);
    return plan;
}

static void the_defaults_are_five_profiles_within_two_minutes(void **state)
{
    struct bench_options o = defaults();
    struct lp_limits disk = disk_of(gib);
    (void)state;
    struct plan p = made(&o, &disk);
    assert_int_equal(p.paths, 5);
    assert_int_equal(p.directions, 2);
    assert_int_equal(p.max_depth, 128);
    assert_int_equal(o.depth_count, 8);
    assert_true(p.seconds < 100);
}

static void quick_takes_less_than_15_seconds(void **state)
{
    struct bench_options o;
    struct lp_limits disk = disk_of(gib);
    (void)state;
    bench_options_quick(&o);
    struct plan p = made(&o, &disk);
    assert_true(p.seconds < 15);
    assert_int_equal(o.runs, 1);
}

static void full_measures_longer_and_more_often(void **state)
{
    struct bench_options o;
    struct lp_limits disk = disk_of(gib);
    (void)state;
    bench_options_full(&o);
    assert_int_equal(made(&o, &disk).paths, 5);
    assert_int_equal(o.runs, 5);
    assert_true(o.seconds == 1);
}

static void profiles_and_presets_are_found_by_name(void **state)
{
    (void)state;
    assert_string_equal(bench_profile_find("dma-page")->host, "ring");
    assert_int_equal(bench_profile_find("dma-page")->prep, LP_PREP_PAGE);
    assert_true(bench_profile_find("dma-page")->guard);
    assert_false(bench_profile_find("dev")->guard);
    assert_string_equal(bench_profile_find("kernel")->host, "inline");
    assert_null(bench_profile_find("nothing"));
    assert_int_equal(bench_preset_find("RND4K Q32T1")->depth, 32);
    assert_int_equal(bench_preset_find("SEQ1M Q8T1")->block_bytes, mib);
    assert_null(bench_preset_find("SEQ1M"));
}

static void depth_0_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.depths[3] = 0;
    assert_refused(&o, "queue depth 0");
    o.depth_count = 0;
    assert_refused(&o, "no queue depth");
}

static void depth_above_1024_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.depths[0] = 1025;
    assert_refused(&o, "queue depth 1025");
}

static void a_depth_given_twice_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.depths[1] = o.depths[0];
    assert_refused(&o, "given twice");
}

static void block_size_3_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.block_bytes = 3;
    assert_refused(&o, "block size 3 is not a multiple of 512");
    o.block_bytes = 0;
    assert_refused(&o, "block size of 0");
}

static void a_block_below_the_disk_s_own_is_refused(void **state)
{
    struct bench_options o = defaults();
    struct result_environment env = machine();
    struct lp_limits disk = disk_of(gib);
    struct lp_error err;
    struct plan plan;
    (void)state;
    disk.block_size = 4096;
    o.block_bytes = 6144;
    assert_int_equal(plan_make(&o, &env, &disk, true, &plan, &err), -1);
    assert_sentence(&err, "not a multiple of 4096");
}

static void a_block_larger_than_the_disk_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.block_bytes = 2 * gib;
    assert_refused(&o, "larger than the disk");
}

static void a_working_set_smaller_than_a_block_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.working_set_bytes = mib - 1;
    assert_refused(&o, "working set");
    o.working_set_bytes = 3 * mib;
    o.host.queues = 4; /* not one for each */
    assert_refused(&o, "working set");
}

static void a_working_set_larger_than_the_disk_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.working_set_bytes = 2 * gib;
    assert_refused(&o, "larger than the disk");
}

static void zero_runs_and_impossible_times_are_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.runs = 0;
    assert_refused(&o, "0 runs");
    o.runs = RESULT_MAX_RUNS + 1;
    assert_refused(&o, "33 runs");
    o = defaults();
    o.seconds = 0;
    assert_refused(&o, "a run of 0 seconds");
    o.seconds = -1;
    assert_refused(&o, "a run of -1 seconds");
    o = defaults();
    o.warmup_s = -1;
    assert_refused(&o, "warm-up of -1");
    o.warmup_s = 1e9;
    assert_refused(&o, "warm-up of 1e+09");
}

static void write_to_a_read_only_disk_is_refused(void **state)
{
    struct bench_options o = defaults();
    struct result_environment env = machine();
    struct lp_limits disk = disk_of(gib);
    struct lp_error err;
    struct plan plan;
    (void)state;
    o.disk.read_only = true;
    assert_refused(&o, "read-only");
    o.disk.read_only = false;
    disk.read_only = true; /* it turns out to be */
    assert_int_equal(plan_make(&o, &env, &disk, true, &plan, &err), -1);
    assert_sentence(&err, "read-only");
    o.directions[RESULT_WRITE] = false;
    assert_int_equal(plan_make(&o, &env, &disk, true, &plan, &err), 0);
    assert_false(plan.write);
}

static void no_direction_and_a_mix_of_one_are_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.directions[RESULT_MIXED] = true;
    o.read_percent = 100;
    assert_refused(&o, "no mix");
    o = defaults();
    o.directions[RESULT_READ] = o.directions[RESULT_WRITE] = false;
    assert_refused(&o, "neither READ nor WRITE");
}

static void paths_that_contradict_each_other_are_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.target = "file";
    assert_refused(&o, "a target and profiles");
    o.profile_count = 0;
    o.disk_url = "ram:1G";
    assert_refused(&o, "a target is a disk already");
    o = defaults();
    o.profile_count = 0;
    assert_refused(&o, "nothing to measure");
    o = defaults();
    o.profiles[1] = o.profiles[0];
    assert_refused(&o, "named twice");
}

static void queues_out_of_range_are_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.host.queues = 0;
    assert_refused(&o, "0 queues");
    o.host.queues = 65;
    assert_refused(&o, "65 queues");
}

static void more_in_flight_than_memory_is_refused(void **state)
{
    struct bench_options o = defaults();
    struct result_environment env = machine();
    struct lp_limits disk = disk_of(1024 * gib);
    struct lp_error err;
    struct plan plan;
    (void)state;
    o.block_bytes = gib;
    o.working_set_bytes = 512 * gib;
    assert_int_equal(plan_make(&o, &env, &disk, true, &plan, &err), -1);
    assert_sentence(&err, "of memory");
}

static void a_cpu_that_may_not_be_used_is_refused(void **state)
{
    struct bench_options o = defaults();
    (void)state;
    o.host.app_cpu = 1000000;
    assert_refused(&o, "CPU 1000000");
}

static void the_working_set_is_above_the_cache_and_within_memory_and_disk(void **state)
{
    struct bench_options o = defaults();
    struct result_environment env = machine();
    struct lp_limits small = disk_of(100 * mib + 512), large = disk_of(8 * gib);
    (void)state;
    assert_int_equal(plan_working_set(&o, &env), 256 * mib);
    env.llc_bytes = 100 * mib;
    assert_int_equal(plan_working_set(&o, &env), 400 * mib);
    env.memory_free_bytes = 200 * mib;
    assert_int_equal(plan_working_set(&o, &env), 50 * mib);
    env.memory_free_bytes = 0; /* not known */
    assert_int_equal(plan_working_set(&o, &env), 400 * mib);
    assert_int_equal(made(&o, &small).working_set_bytes, 100 * mib);
    assert_int_equal(made(&o, &large).working_set_bytes, 256 * mib);
    o.working_set_bytes = 5 * mib + 1; /* whole blocks, for each queue as many */
    o.host.queues = 2;
    assert_int_equal(made(&o, &large).working_set_bytes, 4 * mib);
}

static void the_arena_covers_the_working_set_where_memory_allows(void **state)
{
    struct bench_options o = defaults();
    struct lp_limits disk = disk_of(64 * gib);
    (void)state;
    struct plan p = made(&o, &disk);
    assert_true(p.by_address);
    assert_int_equal(p.arena_bytes, 256 * mib);
    o.working_set_bytes = 32 * gib;
    p = made(&o, &disk);
    assert_false(p.by_address);
    assert_int_equal(p.arena_bytes, 128 * mib); /* depth 128 of 1 MiB */
}

static void the_placement_is_said(void **state)
{
    struct plan p = {.queues = 1, .app_cpu = 0, .driver_cpu = 1};
    char text[128];
    (void)state;
    plan_placement(&p, text, sizeof text);
    assert_string_equal(text, "application on CPU 0, driver on CPU 1");
    p.driver_cpu = -1;
    plan_placement(&p, text, sizeof text);
    assert_string_equal(text, "application on CPU 0, driver not pinned");
    p = (struct plan){.queues = 2, .app_cpu = 0, .driver_cpu = 2};
    plan_placement(&p, text, sizeof text);
    assert_string_equal(text, "application on CPUs 0 to 1, driver on CPUs 2 to 3");
}

static void both_sides_get_a_cpu_of_their_own_where_there_are_two(void **state)
{
    struct bench_options o = defaults();
    struct lp_limits disk = disk_of(gib);
    struct cpu_list allowed;
    (void)state;
    cpu_allowed(&allowed);
    struct plan p = made(&o, &disk);
    if (allowed.count == 0) {
        assert_int_equal(p.app_cpu, -1);
    } else {
        assert_int_equal(p.app_cpu, allowed.cpus[0]);
        assert_int_equal(p.driver_cpu, allowed.cpus[allowed.count > 1]);
    }
    o.host.queues = 64; /* no CPU for each: not pinned */
    o.block_bytes = 4096;
    if (allowed.count < 128)
        assert_int_equal(made(&o, &disk).app_cpu, -1);
}

static void a_file_s_own_threads_are_not_starved_by_pinning(void **state)
{
    struct bench_options o = defaults();
    struct result_environment env = machine();
    struct lp_limits disk = disk_of(gib);
    struct lp_error err;
    struct plan p;
    (void)state;
    assert_int_equal(plan_make(&o, &env, &disk, false, &p, &err), 0);
    assert_int_equal(p.app_cpu, -1);
    assert_int_equal(p.driver_cpu, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_five_profiles_within_two_minutes),
        cmocka_unit_test(quick_takes_less_than_15_seconds),
        cmocka_unit_test(full_measures_longer_and_more_often),
        cmocka_unit_test(profiles_and_presets_are_found_by_name),
        cmocka_unit_test(depth_0_is_refused),
        cmocka_unit_test(depth_above_1024_is_refused),
        cmocka_unit_test(a_depth_given_twice_is_refused),
        cmocka_unit_test(block_size_3_is_refused),
        cmocka_unit_test(a_block_below_the_disk_s_own_is_refused),
        cmocka_unit_test(a_block_larger_than_the_disk_is_refused),
        cmocka_unit_test(a_working_set_smaller_than_a_block_is_refused),
        cmocka_unit_test(a_working_set_larger_than_the_disk_is_refused),
        cmocka_unit_test(zero_runs_and_impossible_times_are_refused),
        cmocka_unit_test(write_to_a_read_only_disk_is_refused),
        cmocka_unit_test(no_direction_and_a_mix_of_one_are_refused),
        cmocka_unit_test(paths_that_contradict_each_other_are_refused),
        cmocka_unit_test(queues_out_of_range_are_refused),
        cmocka_unit_test(more_in_flight_than_memory_is_refused),
        cmocka_unit_test(a_cpu_that_may_not_be_used_is_refused),
        cmocka_unit_test(the_working_set_is_above_the_cache_and_within_memory_and_disk),
        cmocka_unit_test(the_arena_covers_the_working_set_where_memory_allows),
        cmocka_unit_test(the_placement_is_said),
        cmocka_unit_test(both_sides_get_a_cpu_of_their_own_where_there_are_two),
        cmocka_unit_test(a_file_s_own_threads_are_not_starved_by_pinning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
