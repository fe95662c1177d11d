/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole run over real parts, small: what is counted and checked, not how fast it is. */
#include "bench/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t mib = 1 << 20;

struct seen {
    unsigned points, notes, calls;
    double last_fraction;
    volatile sig_atomic_t stop;
    unsigned stop_after; /* points; 0: never */
};

struct fixture {
    struct bench_options opts;
    struct result result;
    struct lp_error err;
    struct seen seen;
};

static void see(const struct bench_progress *p, void *user)
{
    struct seen *s = user;

    s->calls++;
    s->points += p->point_done;
    s->notes += p->note != NULL;
    assert_true(p->fraction >= 0 && p->fraction <= 1 && p->seconds_left >= 0);
    assert_true(p->note || p->path);
    s->last_fraction = p->fraction;
    if (s->stop_after && s->points == s->stop_after)
        s->stop = 1;
}

/* Five milliseconds a point over 8 MiB, in this process. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    if (!f)
        return -1;
    bench_options_quick(&f->opts);
    f->opts.profile_count = 1;
    f->opts.profiles[0] = bench_profile_find("kernel");
    f->opts.depth_count = 2;
    f->opts.depths[0] = 1;
    f->opts.depths[1] = 8;
    f->opts.block_bytes = 64 << 10;
    f->opts.working_set_bytes = 8 * mib;
    f->opts.warmup_s = 0.001;
    f->opts.seconds = 0.005;
    f->opts.progress = see;
    f->opts.user = &f->seen;
    f->opts.interrupted = &f->seen.stop;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void run(struct fixture *f)
{
    if (bench_run(&f->opts, &f->result, &f->err) != 0)
        fail_msg("bench_run: %s", f->err.msg);
}

static void assert_measured(const struct result_path *path, enum result_direction d,
                            unsigned depths)
{
    for (unsigned k = 0; k < depths; k++) {
        const struct result_point *p = &path->points[d][k];
        assert_true(p->measured);
        assert_true(p->gbit_per_s > 0 && p->requests > 0);
        assert_int_equal(p->errors, 0);
        assert_int_equal(p->bytes_top, p->bytes_disk);
        assert_int_equal(p->flags & (RESULT_IO_ERRORS | RESULT_BYTES_DIFFER), 0);
        assert_int_equal(p->flags & RESULT_SHORT_RUN, RESULT_SHORT_RUN);
        assert_int_equal(p->flags & RESULT_CACHE_SUSPECT, RESULT_CACHE_SUSPECT);
    }
}

static void a_path_is_measured_and_every_byte_checked(void **state)
{
    struct fixture *f = *state;
    const struct result_path *path = &f->result.paths[0];

    run(f);
    assert_false(f->result.incomplete);
    assert_int_equal(f->result.path_count, 1);
    assert_string_equal(path->name, "kernel");
    assert_string_equal(path->prep, "none");
    assert_non_null(strstr(path->disk, "ram:"));
    assert_measured(path, RESULT_READ, 2);
    assert_measured(path, RESULT_WRITE, 2);
    assert_false(path->points[RESULT_MIXED][0].measured);
    assert_true(path->verify.done);
    assert_true(path->verify.checked_bytes >= 8 * mib);
    assert_int_equal(path->verify.wrong_blocks, 0);
    assert_false(result_has_failures(&f->result));
    assert_true(path->summary[RESULT_READ].measured);
}

static void limits_and_environment_stand_in_the_result(void **state)
{
    struct fixture *f = *state;
    const struct result *r = &f->result;

    run(f);
    assert_true(r->limits.memcpy_gbit_per_s > 0);
    assert_true(r->limits.copy_gbit_per_s >= r->limits.memcpy_gbit_per_s);
    assert_true(r->limits.copy_all_gbit_per_s >= r->limits.copy_gbit_per_s);
    assert_true(r->limits.tool_overhead_ns_per_io > 0 && r->limits.copy_4k_ns > 0);
    assert_true(r->limits.copy_name[0] && r->limits.threads >= 1);
    assert_int_equal(strlen(r->environment.time_utc), 20);
    assert_true(r->environment.page_bytes >= 4096);
    assert_true(r->environment.kernel[0] && r->environment.placement[0]);
    assert_true(r->environment.virtual_machine[0] && r->environment.governor[0]);
    assert_int_equal(r->config.block_bytes, f->opts.block_bytes);
    assert_int_equal(r->config.working_set_bytes, 8 * mib);
    assert_string_equal(r->config.pattern, "sequential");
}

static void progress_tells_each_point_and_reaches_the_end(void **state)
{
    struct fixture *f = *state;

    f->opts.runs = 2;
    run(f);
    assert_int_equal(f->seen.points, 8); /* 2 directions, 2 depths, 2 runs */
    assert_int_equal(f->seen.notes, 2);  /* limits, verifying */
    assert_int_equal(f->result.paths[0].points[RESULT_READ][1].runs, 2);
}

static void random_and_mixed_data_is_checked_too(void **state)
{
    struct fixture *f = *state;

    f->opts.pattern = BENCH_RANDOM;
    f->opts.block_bytes = 4096;
    f->opts.directions[RESULT_MIXED] = true;
    f->opts.read_percent = 50;
    run(f);
    assert_measured(&f->result.paths[0], RESULT_MIXED, 2);
    assert_int_equal(f->result.paths[0].verify.wrong_blocks, 0);
    assert_string_equal(f->result.config.pattern, "random, mixed 50 % read");
}

static void several_queues_are_checked_as_one_range(void **state)
{
    struct fixture *f = *state;

    f->opts.host.queues = 3;
    run(f);
    assert_measured(&f->result.paths[0], RESULT_WRITE, 2);
    assert_int_equal(f->result.paths[0].verify.wrong_blocks, 0);
}

static void verifying_can_be_switched_off_and_that_is_said(void **state)
{
    struct fixture *f = *state;

    f->opts.verify = false;
    run(f);
    assert_false(f->result.paths[0].verify.done);
    assert_non_null(strstr(f->result.paths[0].verify.first, "switched off"));
    assert_measured(&f->result.paths[0], RESULT_WRITE, 2);
}

static void wrong_data_fails_the_run(void **state)
{
    struct fixture *f = *state;

    f->opts.disk_url = "fault:flip=5:ram:8M";
    run(f);
    assert_true(f->result.paths[0].verify.wrong_blocks > 0);
    assert_non_null(strstr(f->result.paths[0].verify.first, "bit flip"));
    assert_true(result_has_failures(&f->result));
}

static void i_o_errors_are_counted_and_fail_the_run(void **state)
{
    struct fixture *f = *state;
    const struct result_path *path = &f->result.paths[0];

    f->opts.disk_url = "fault:error=3:ram:8M";
    f->opts.verify = false;
    f->opts.directions[RESULT_READ] = false; /* which would need the disk to be written first */
    run(f);
    assert_true(path->points[RESULT_WRITE][1].errors > 0);
    assert_int_equal(path->points[RESULT_WRITE][1].flags & RESULT_IO_ERRORS, RESULT_IO_ERRORS);
    assert_true(result_has_failures(&f->result));
}

static void null_moves_no_data_and_says_so(void **state)
{
    struct fixture *f = *state;

    f->opts.disk_url = "null:1G";
    run(f);
    assert_measured(&f->result.paths[0], RESULT_READ, 2);
    assert_false(f->result.paths[0].verify.done);
    assert_non_null(strstr(f->result.paths[0].verify.first, "keeps no data"));
}

/* A new file of zeros; the caller unlinks it. */
static void make_file(char path[64], size_t bytes)
{
    int fd;

    memset(path, 0, 64);
    strcpy(path, "/tmp/lunpath-bench-");
    memset(path + strlen(path), 'X', 6); /* written out it would look like something unfinished */
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    close(fd);
}

static bool all_zero(const char *path)
{
    FILE *f = fopen(path, "rb");
    int c = 0;

    assert_non_null(f);
    while (c == 0)
        c = getc(f);
    fclose(f);
    return c == EOF;
}

static void a_target_is_read_only_and_left_as_it_was(void **state)
{
    struct fixture *f = *state;
    char path[64];

    make_file(path, 8 * mib);
    f->opts.profile_count = 0;
    f->opts.target = path;
    f->opts.disk.read_only = true;
    f->opts.disk.buffered = true; /* not every file system takes O_DIRECT */
    f->opts.directions[RESULT_WRITE] = false;
    run(f);
    assert_measured(&f->result.paths[0], RESULT_READ, 2);
    assert_string_equal(f->result.paths[0].name, path);
    assert_false(f->result.paths[0].verify.done);
    assert_non_null(strstr(f->result.paths[0].verify.first, "only read"));
    assert_true(all_zero(path));
    unlink(path);
}

static void a_target_that_may_be_written_is_verified(void **state)
{
    struct fixture *f = *state;
    char path[64];

    make_file(path, 8 * mib);
    f->opts.profile_count = 0;
    f->opts.target = path;
    f->opts.disk.buffered = true;
    run(f);
    assert_measured(&f->result.paths[0], RESULT_WRITE, 2);
    assert_true(f->result.paths[0].verify.done);
    assert_int_equal(f->result.paths[0].verify.wrong_blocks, 0);
    assert_false(all_zero(path));
    unlink(path);
}

static void an_interrupt_keeps_what_was_measured(void **state)
{
    struct fixture *f = *state;

    f->seen.stop_after = 1;
    run(f);
    assert_true(f->result.incomplete);
    assert_true(f->result.paths[0].points[RESULT_READ][0].measured);
    assert_false(f->result.paths[0].points[RESULT_WRITE][1].measured);
}

static void an_interrupt_before_anything_gives_an_empty_result(void **state)
{
    struct fixture *f = *state;

    f->seen.stop = 1;
    run(f);
    assert_true(f->result.incomplete);
    assert_false(f->result.paths[0].points[RESULT_READ][0].measured);
}

static void what_cannot_be_run_is_one_sentence(void **state)
{
    struct fixture *f = *state;

    f->opts.depths[0] = 0;
    assert_int_equal(bench_run(&f->opts, &f->result, &f->err), -1);
    assert_non_null(strstr(f->err.msg, "queue depth 0"));
    f->opts.depths[0] = 1;
    f->opts.profile_count = 0;
    f->opts.target = "/nonexistent/disk";
    f->opts.disk.read_only = true;
    f->opts.directions[RESULT_WRITE] = false;
    assert_int_equal(bench_run(&f->opts, &f->result, &f->err), -1);
    assert_non_null(strstr(f->err.msg, "/nonexistent/disk"));
}

static void a_path_that_cannot_be_attached_is_named_beside_those_that_can(void **state)
{
    struct fixture *f = *state;
    static const struct bench_profile impossible = {.name = "odd", .host = "no-such-host"};

    f->opts.profiles[1] = &impossible;
    f->opts.profile_count = 2;
    run(f);
    assert_measured(&f->result.paths[0], RESULT_READ, 2);
    assert_false(f->result.paths[1].points[RESULT_READ][0].measured);
    assert_non_null(strstr(f->result.paths[1].host, "not measured: "));
    f->opts.profiles[0] = &impossible;
    f->opts.profile_count = 1; /* nothing at all: an error */
    assert_int_equal(bench_run(&f->opts, &f->result, &f->err), -1);
    assert_non_null(strstr(f->err.msg, "no-such-host"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_path_is_measured_and_every_byte_checked),
        CASE(limits_and_environment_stand_in_the_result),
        CASE(progress_tells_each_point_and_reaches_the_end),
        CASE(random_and_mixed_data_is_checked_too),
        CASE(several_queues_are_checked_as_one_range),
        CASE(verifying_can_be_switched_off_and_that_is_said),
        CASE(wrong_data_fails_the_run),
        CASE(i_o_errors_are_counted_and_fail_the_run),
        CASE(null_moves_no_data_and_says_so),
        CASE(a_target_is_read_only_and_left_as_it_was),
        CASE(a_target_that_may_be_written_is_verified),
        CASE(an_interrupt_keeps_what_was_measured),
        CASE(an_interrupt_before_anything_gives_an_empty_result),
        CASE(what_cannot_be_run_is_one_sentence),
        CASE(a_path_that_cannot_be_attached_is_named_beside_those_that_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
