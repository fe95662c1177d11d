/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine's limits: that they are measured, hang together, and leave nothing behind. */
#include "base/cpu.h"
#include "bench/limits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct limits_options options(void)
{
    return (struct limits_options){
        .bytes = 4 << 20, .brief = true, .first_cpu = -1, .second_cpu = -1};
}

static struct result_limits measured(const struct limits_options *opts)
{
    struct result_limits limits;
    struct lp_error err;

    if (limits_measure(opts, &limits, &err) != 0)
        fail_msg("%s", err.msg);
    return limits;
}

static void copies_hang_together(void **state)
{
    struct limits_options o = options();
    (void)state;
    struct result_limits l = measured(&o);
    assert_true(l.memcpy_gbit_per_s > 0);
    assert_true(l.copy_gbit_per_s >= l.memcpy_gbit_per_s); /* the best of all */
    assert_true(l.copy_all_gbit_per_s >= l.copy_gbit_per_s);
    assert_true(l.copy_4k_ns > 0);
    assert_true(l.tool_overhead_ns_per_io > 0);
    assert_true(strlen(l.copy_name) > 0);
}

static void sizes_that_no_piece_fits_are_copied_whole(void **state)
{
    struct limits_options o = options();
    (void)state;
    o.bytes = 4096;
    assert_true(measured(&o).copy_gbit_per_s > 0);
    o.bytes = (1 << 20) + 4096;
    assert_true(measured(&o).copy_gbit_per_s > 0);
}

static void round_trips_are_measured_where_there_are_cpus_for_them(void **state)
{
    struct limits_options o = options();
    struct cpu_list allowed;
    (void)state;
    cpu_allowed(&allowed);
    struct result_limits l = measured(&o);
    assert_true((l.round_trip_spin_ns > 0) == (allowed.count >= 2));
    assert_true((l.round_trip_sleep_ns > 0) == (allowed.count >= 2));
    assert_true((l.round_trip_sleep_same_core_ns > 0) == (allowed.count >= 1));
    assert_int_equal(l.threads, allowed.count ? allowed.count : 1);
}

static void neither_a_process_nor_a_pin_is_left_behind(void **state)
{
    struct limits_options o = options();
    struct cpu_list before, after;
    (void)state;
    cpu_allowed(&before);
    if (before.count > 0)
        o.first_cpu = before.cpus[0];
    measured(&o);
    cpu_allowed(&after);
    assert_int_equal(before.count, after.count);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void an_interrupt_skips_what_is_left(void **state)
{
    volatile sig_atomic_t stop = 1;
    struct limits_options o = options();
    (void)state;
    o.interrupted = &stop;
    struct result_limits l = measured(&o);
    assert_true(l.copy_gbit_per_s == 0);
    assert_true(l.round_trip_sleep_same_core_ns == 0);
}

static void more_memory_than_there_is_is_one_sentence(void **state)
{
    struct limits_options o = options();
    struct result_limits l;
    struct lp_error err;
    (void)state;
    o.bytes = SIZE_MAX / 4;
    assert_int_equal(limits_measure(&o, &l, &err), -1);
    assert_non_null(strstr(err.msg, "measuring the physical limits: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_hang_together),
        cmocka_unit_test(sizes_that_no_piece_fits_are_copied_whole),
        cmocka_unit_test(round_trips_are_measured_where_there_are_cpus_for_them),
        cmocka_unit_test(neither_a_process_nor_a_pin_is_left_behind),
        cmocka_unit_test(an_interrupt_skips_what_is_left),
        cmocka_unit_test(more_memory_than_there_is_is_one_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
