/* SPDX-License-Identifier: BSD-2-Clause */
/* verify_run() over real disks, right ones and faulty ones; see bench/verify.h. */
#include "bench/verify.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20, FILE_SIZE = 6 * MIB };

static const struct bench_profile in_process = {"in-process", "", "inline", LP_PREP_NONE, false};

struct bench {
    struct verify_options opts;
    struct verify_report report;
    struct lp_error err;
    char path[64];
};

static void start(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->opts = (struct verify_options){
        .disk = LP_DISK_OPTS_DEFAULT, .host = LP_HOST_OPTS_DEFAULT, .bytes = 4 * MIB, .seed = 21};
    b->opts.host.host = NULL;
    b->opts.host.small_pages = true;
}

static void run(struct bench *b)
{
    int rc = verify_run(&b->opts, &b->report, &b->err);

    if (rc != 0)
        fail_msg("%s", b->err.msg);
}

static void run_url(struct bench *b, const char *url)
{
    start(b);
    b->opts.target = url;
    b->opts.destroy = true;
    run(b);
}

static void expect_clean(const struct bench *b)
{
    char text[512];

    if (b->report.finding_count) {
        verify_finding_text(&b->report.findings[0], 4096, text, sizeof text);
        fail_msg("%s", text);
    }
    assert_int_equal(b->report.wrong_blocks, 0);
    if (b->report.errors)
        fail_msg("%s", b->report.phases);
    assert_false(b->report.incomplete);
    assert_true(b->report.bytes_checked > 0);
}

/* Which kinds were found, as bits. */
static unsigned kinds(const struct bench *b)
{
    unsigned bits = 0;

    assert_int_equal(b->report.errors, 0);
    for (unsigned i = 0; i < b->report.finding_count; i++)
        bits |= 1u << b->report.findings[i].data.fault;
    return bits;
}

static bool has_phase(const struct bench *b, const char *name)
{
    return strstr(b->report.phases, name) != NULL;
}

static void make_file(struct bench *b, char fill)
{
    char *bytes = malloc(FILE_SIZE);

    start(b);
    memcpy(b->path, "/tmp/lunpath-verify-XXXXXX", sizeof "/tmp/lunpath-verify-XXXXXX");
    int fd = mkstemp(b->path);
    assert_true(fd >= 0);
    memset(bytes, fill, FILE_SIZE);
    assert_int_equal(write(fd, bytes, FILE_SIZE), FILE_SIZE);
    close(fd);
    free(bytes);
    b->opts.target = b->path;
    b->opts.bytes = 0;
}

/* How many bytes of the file are not `fill`. */
static size_t changed(const struct bench *b, char fill)
{
    char *bytes = malloc(FILE_SIZE);
    int fd = open(b->path, O_RDONLY);
    size_t n = 0;

    assert_int_equal(read(fd, bytes, FILE_SIZE), FILE_SIZE);
    close(fd);
    for (size_t i = 0; i < FILE_SIZE; i++)
        n += bytes[i] != fill;
    free(bytes);
    return n;
}

/* ---- profiles and disks ---- */

static void a_right_profile_passes_every_phase(void **state)
{
    static const char *const names[] = {"sequential, depth 1\n",
                                        "sequential, depth 8\n",
                                        "sequential, depth 32\n",
                                        "sequential, depth 128\n",
                                        "random sizes\n",
                                        "odd addresses and segments\n",
                                        "several writers, a queue each\n",
                                        "rewritten while reading\n",
                                        "read back in random sizes\n",
                                        "FLUSH, then the disk itself\n",
                                        "WRITE with FUA, the disk itself without FLUSH\n",
                                        "WRITE with FUA, through a path that was started again\n",
                                        "WRITE ZEROES, then FLUSH, then the disk itself\n",
                                        "WRITE ZEROES, through a path that was started again\n",
                                        "DISCARD, then FLUSH, then the disk itself\n",
                                        "DISCARD, through a path that was started again\n",
                                        "written again\n"};
    struct bench b;

    (void)state;
    start(&b);
    b.opts.profile = &in_process;
    run(&b);
    expect_clean(&b);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(has_phase(&b, names[i]));
    assert_true(b.report.bytes_written > 4 * 4 * MIB);
}

static void guarded_preparation_is_right_on_several_queues(void **state)
{
    static const struct bench_profile guarded[] = {
        {"page", "", "inline", LP_PREP_PAGE, true},
        {"block", "", "inline", LP_PREP_BLOCK, true},
        {"multi", "", "inline", LP_PREP_MULTI, true},
    };
    struct bench b;

    (void)state;
    for (size_t i = 0; i < sizeof guarded / sizeof *guarded; i++) {
        start(&b);
        b.opts.profile = &guarded[i];
        run(&b);
        expect_clean(&b);
    }
}

static void a_profile_takes_the_disk_that_is_named(void **state)
{
    struct bench b;

    (void)state;
    start(&b);
    b.opts.profile = &in_process;
    b.opts.disk_url = "ram:2M";
    run(&b);
    expect_clean(&b);
    assert_true(has_phase(&b, "2 MiB of ram:2M, seed 21"));
}

static void a_disk_url_is_a_target_too(void **state)
{
    struct bench b;

    (void)state;
    run_url(&b, "ram:4M");
    expect_clean(&b);
    assert_true(has_phase(&b, "mmap: skipped, this disk is not a file"));
}

static void the_same_seed_finds_the_same(void **state)
{
    struct bench a, b;

    (void)state;
    run_url(&a, "fault:flip=40:ram:4M");
    run_url(&b, "fault:flip=40:ram:4M");
    assert_true(a.report.finding_count > 0);
    assert_int_equal(a.report.findings[0].data.block_offset,
                     b.report.findings[0].data.block_offset);
    assert_int_equal(a.report.findings[0].data.first_wrong, b.report.findings[0].data.first_wrong);
}

static void each_fault_of_the_fault_disk_is_named(void **state)
{
    static const struct {
        const char *url;
        enum pattern_fault kind;
        unsigned may; /* what else that fault shows as */
    } faults[] = {
        {"fault:stale=53:ram:4M", PATTERN_STALE, 1 << PATTERN_ZEROS | 1 << PATTERN_TORN},
#ifndef __SANITIZE_THREAD__ /* its writers do race in the disk's memory: that is the fault */
        {"fault:misdirected=53:ram:4M", PATTERN_MISDIRECTED,
         1 << PATTERN_STALE | 1 << PATTERN_FUTURE | 1 << PATTERN_ZEROS | 1 << PATTERN_TORN},
#endif
        {"fault:torn=53:ram:4M", PATTERN_TORN, 1 << PATTERN_STALE | 1 << PATTERN_ZEROS},
        {"fault:zeros=53:ram:4M", PATTERN_ZEROS, 0},
        {"fault:flip=53:ram:4M", PATTERN_BIT_FLIP, 0},
        {"fault:laterpages=53:ram:4M", PATTERN_MISDIRECTED, 1 << PATTERN_ZEROS},
    };
    struct bench b;

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        run_url(&b, faults[i].url);
        assert_true(b.report.wrong_blocks > 0);
        assert_true(kinds(&b) & 1u << faults[i].kind);
        assert_int_equal(kinds(&b) & ~(1u << faults[i].kind | faults[i].may), 0);
    }
    assert_true(b.report.findings[0].wrong_from_page >= 1); /* laterpages */
}

static void errors_of_the_disk_are_counted_and_end_it(void **state)
{
    struct bench b;

    (void)state;
    run_url(&b, "fault:error=53:ram:4M");
    assert_true(b.report.errors > 0);
    assert_true(b.report.incomplete);
    assert_true(has_phase(&b, "failed: "));
}

static void an_interrupt_is_honoured(void **state)
{
    const volatile sig_atomic_t now = 1;
    struct bench b;

    (void)state;
    start(&b);
    b.opts.profile = &in_process;
    b.opts.interrupted = &now;
    run(&b);
    assert_true(b.report.incomplete);
    assert_int_equal(b.report.requests, 0);
}

static void what_does_not_exist_is_said_in_a_sentence(void **state)
{
    struct bench b;

    (void)state;
    start(&b);
    b.opts.target = "/nonexistent/disk";
    assert_int_equal(verify_run(&b.opts, &b.report, &b.err), -1);
    assert_non_null(strstr(b.err.msg, "/nonexistent/disk"));
    b.opts.target = NULL;
    assert_int_equal(verify_run(&b.opts, &b.report, &b.err), -1);
    assert_int_equal(b.err.domain, LP_ERROR_USAGE);
}

/* ---- files ---- */

static void a_file_is_written_and_read_in_every_way(void **state)
{
    struct bench b;

    (void)state;
    make_file(&b, 'a');
    b.opts.destroy = true;
    run(&b);
    unlink(b.path);
    expect_clean(&b);
    assert_true(has_phase(&b, "mmap reads what mmap wrote\n"));
    assert_true(has_phase(&b, "mmap reads what buffered wrote\n"));
    assert_true(has_phase(&b, "buffered reads what mmap wrote\n"));
    if (!has_phase(&b, "direct I/O: skipped, ")) {
        assert_true(has_phase(&b, "direct reads what mmap wrote\n"));
        assert_true(has_phase(&b, "mmap reads what direct wrote\n"));
    }
}

static void without_leave_a_file_is_only_read(void **state)
{
    struct bench b;

    (void)state;
    make_file(&b, 'b');
    run(&b);
    assert_int_equal(changed(&b, 'b'), 0);
    unlink(b.path);
    expect_clean(&b);
    assert_int_equal(b.report.bytes_written, 0);
    assert_true(b.report.bytes_checked >= 2 * FILE_SIZE);
    assert_true(has_phase(&b, "only read twice and compared"));
    assert_true(has_phase(&b, "read again by mmap\n"));
}

static void the_end_of_a_file_beyond_the_range_is_left_alone(void **state)
{
    struct bench b;

    (void)state;
    make_file(&b, 'c');
    b.opts.destroy = true;
    b.opts.bytes = 2 * MIB;
    run(&b);
    size_t n = changed(&b, 'c');
    unlink(b.path);
    expect_clean(&b);
    assert_in_range(n, 2 * MIB / 256 * 250, 2 * MIB);
}

static void reading_twice_shows_a_disk_that_wavers(void **state)
{
    struct bench b;
    char url[128], text[512];

    (void)state;
    make_file(&b, 'd');
    b.opts.disk.buffered = true;
    snprintf(url, sizeof url, "fault:flip=5:file:%s", b.path);
    b.opts.target = url;
    run(&b);
    unlink(b.path);
    assert_true(b.report.wrong_blocks > 0);
    assert_int_equal(kinds(&b), 1 << PATTERN_BIT_FLIP);
    verify_finding_text(&b.report.findings[0], 4096, text, sizeof text);
    assert_non_null(strstr(text, "not the same as when it was read before"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_profile_passes_every_phase),
        cmocka_unit_test(guarded_preparation_is_right_on_several_queues),
        cmocka_unit_test(a_profile_takes_the_disk_that_is_named),
        cmocka_unit_test(a_disk_url_is_a_target_too),
        cmocka_unit_test(the_same_seed_finds_the_same),
        cmocka_unit_test(each_fault_of_the_fault_disk_is_named),
        cmocka_unit_test(errors_of_the_disk_are_counted_and_end_it),
        cmocka_unit_test(an_interrupt_is_honoured),
        cmocka_unit_test(what_does_not_exist_is_said_in_a_sentence),
        cmocka_unit_test(a_file_is_written_and_read_in_every_way),
        cmocka_unit_test(without_leave_a_file_is_only_read),
        cmocka_unit_test(the_end_of_a_file_beyond_the_range_is_left_alone),
        cmocka_unit_test(reading_twice_shows_a_disk_that_wavers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
