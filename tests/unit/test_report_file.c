/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "sample_render.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64], report[128], link[128];
};

static int folder_make(void **state)
{
    struct folder *f = calloc(1, sizeof *f);

    if (!f)
        return -1;
    strcpy(f->path, "/tmp/lunpath-report-XXXXXX");
    if (!mkdtemp(f->path))
        return -1;
    snprintf(f->report, sizeof f->report, "%s/report.txt", f->path);
    snprintf(f->link, sizeof f->link, "%s/link.txt", f->path);
    *state = f;
    return 0;
}

static int folder_remove(void **state)
{
    struct folder *f = *state;

    unlink(f->link);
    unlink(f->report);
    int status = rmdir(f->path); /* fails when something was left behind */
    free(f);
    return status;
}

static int render_old(const struct result *r, const struct report_options *opts, FILE *out)
{
    (void)r;
    (void)opts;
    return fputs("old\n", out) < 0 ? -1 : 0;
}

static int render_large(const struct result *r, const struct report_options *opts, FILE *out)
{
    (void)r;
    (void)opts;
    for (int i = 0; i < 100000; i++)
        fputs("0123456789", out);
    return ferror(out) ? -1 : 0;
}

static int render_refused(const struct result *r, const struct report_options *opts, FILE *out)
{
    (void)r;
    (void)opts;
    fputs("half", out);
    errno = EDOM;
    return -1;
}

static void assert_content(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    assert_string_equal(text, expected);
}

static unsigned files_in(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);

    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int write_report(const char *path,
                        int (*render)(const struct result *, const struct report_options *, FILE *),
                        struct lp_error *err)
{
    struct result *r = new_result(sample_preset);
    int status = report_write_file(path, r, NULL, render, err);

    free(r);
    return status;
}

static void a_report_is_written_and_replaced_with_nothing_left_beside_it(void **state)
{
    struct folder *f = *state;
    struct lp_error err = {0};

    assert_int_equal(write_report(f->report, render_old, &err), 0);
    assert_content(f->report, "old\n");
    assert_int_equal(chmod(f->report, 0640), 0);
    assert_int_equal(write_report(f->report, report_text, &err), 0);
    struct stat st;
    assert_int_equal(stat(f->report, &st), 0);
    assert_true(st.st_size > 1000);
    assert_int_equal(st.st_mode & 0777 & ~0640u, 0);
    assert_int_equal(files_in(f->path), 1);
}

static void a_failed_report_leaves_the_old_one_as_it_was(void **state)
{
    struct folder *f = *state;
    struct lp_error err = {0};

    assert_int_equal(write_report(f->report, render_old, &err), 0);
    assert_int_equal(write_report(f->report, render_refused, &err), -1);
    assert_int_equal(err.domain, LP_ERROR_SYS);
    assert_int_equal(err.code, EDOM);
    assert_content(f->report, "old\n");
    assert_int_equal(files_in(f->path), 1);
}

/* A limit on the size of files stands for a disk that is full in the middle. */
static void a_disk_that_takes_only_half_of_it_leaves_the_old_one_as_it_was(void **state)
{
    struct folder *f = *state;
    struct lp_error err = {0};
    struct rlimit before, small;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;

    assert_int_equal(write_report(f->report, render_old, &err), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 64 << 10;
    assert_int_equal(sigaction(SIGXFSZ, &ignore, &old), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status = write_report(f->report, render_large, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(sigaction(SIGXFSZ, &old, NULL), 0);

    assert_int_equal(status, -1);
    assert_int_equal(err.code, EFBIG);
    assert_true(has(err.msg, f->report));
    assert_content(f->report, "old\n");
    assert_int_equal(files_in(f->path), 1);
}

static void a_full_disk_gives_one_sentence_that_says_what_to_do(void **state)
{
    (void)state;
    struct lp_error err = {0};

    if (access("/dev/full", W_OK)) {
        print_message("there is no /dev/full here\n");
        skip();
    }
    assert_int_equal(write_report("/dev/full", report_text, &err), -1);
    assert_int_equal(err.code, ENOSPC);
    assert_true(has(err.msg, "/dev/full"));
    assert_true(has(err.msg, "no space is left"));
    assert_null(strchr(err.msg, '\n'));
}

static void a_symbolic_link_stays_and_the_file_behind_it_is_replaced(void **state)
{
    struct folder *f = *state;
    struct lp_error err = {0};
    struct stat st;

    assert_int_equal(symlink("report.txt", f->link), 0);
    assert_int_equal(write_report(f->link, render_old, &err), 0); /* nothing behind it yet */
    assert_content(f->report, "old\n");
    assert_int_equal(write_report(f->link, report_text, &err), 0);
    assert_int_equal(lstat(f->link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(f->report, &st), 0);
    assert_true(st.st_size > 1000);
    assert_int_equal(files_in(f->path), 2);
}

static void folders_and_places_that_are_not_there_are_named(void **state)
{
    struct folder *f = *state;
    struct lp_error err = {0};
    char nowhere[160];

    assert_int_equal(write_report(f->path, report_text, &err), -1);
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    assert_true(has(err.msg, "is a folder"));
    snprintf(nowhere, sizeof nowhere, "%s/none/report.txt", f->path);
    assert_int_equal(write_report(nowhere, report_text, &err), -1);
    assert_int_equal(err.code, ENOENT);
    assert_true(has(err.msg, nowhere));
    assert_int_equal(symlink("link.txt", f->link), 0); /* to itself */
    assert_int_equal(write_report(f->link, report_text, &err), -1);
    assert_int_equal(err.code, ELOOP);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_report_is_written_and_replaced_with_nothing_left_beside_it),
        IN_FOLDER(a_failed_report_leaves_the_old_one_as_it_was),
        IN_FOLDER(a_disk_that_takes_only_half_of_it_leaves_the_old_one_as_it_was),
        cmocka_unit_test(a_full_disk_gives_one_sentence_that_says_what_to_do),
        IN_FOLDER(a_symbolic_link_stays_and_the_file_behind_it_is_replaced),
        IN_FOLDER(folders_and_places_that_are_not_there_are_named),
    };

    return cmocka_run_group_tests_name("report_file", tests, NULL, NULL);
}
