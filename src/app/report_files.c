/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/report_files.h"

#include "app/terminal.h"
#include "bench/report.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int render_fn(const struct result *, const struct report_options *, FILE *);

static const struct option report_table[REPORT_OPTION_COUNT] = {
    [REPORT_JSON] = {.name = "json",
                     .type = OPTION_TEXT,
                     .value = "FILE",
                     .help = "everything, for programs and for lunpath report",
                     .group = "Reports (FILE \"-\" is stdout, and then nothing else goes there):"},
    [REPORT_CSV] = {.name = "csv",
                    .type = OPTION_TEXT,
                    .value = "FILE",
                    .help = "one row a point, for spreadsheets"},
    [REPORT_HTML] = {.name = "html",
                     .type = OPTION_TEXT,
                     .value = "FILE",
                     .help = "one page with charts, to show"},
    [REPORT_REFERENCE] = {.name = "reference",
                          .type = OPTION_FLAG,
                          .help = "lay published figures of other hardware beside"},
};

void report_options_append(struct option *table)
{
    memcpy(table, report_table, sizeof report_table);
}

bool report_file_is_stdout(const char *name)
{
    return name && strcmp(name, "-") == 0;
}

static bool uses_stdout(const struct report_files *files)
{
    for (unsigned i = 0; i < REPORT_FILE_KINDS; i++)
        if (report_file_is_stdout(files->names[i]))
            return true;
    return false;
}

int report_files_take(const struct option_value *v, struct report_files *files,
                      struct lp_error *err)
{
    for (unsigned i = 0; i < REPORT_FILE_KINDS; i++) {
        files->names[i] = v[i].text;
        for (unsigned k = 0; k < i; k++)
            if (v[i].given && v[k].given && strcmp(v[i].text, v[k].text) == 0)
                return lp_error_set(err, LP_ERROR_USAGE, 0,
                                    "--%s and --%s cannot both go to %s; give each its own file",
                                    report_table[k].name, report_table[i].name, v[i].text);
    }
    files->reference = v[REPORT_REFERENCE].given;
    if (files->reference && uses_stdout(files) && !files->names[REPORT_HTML])
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "--reference shows in text and HTML only, and neither is written; "
                            "leave it away, or add --html FILE");
#ifndef LP_HAVE_JANSSON
    if (files->names[REPORT_JSON])
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "this build cannot write JSON; build it where jansson is installed");
#endif
    return 0;
}

/* What is there already must be a file that may be replaced: renaming a report over /dev/null
 * would take it from everybody. */
static int check_existing(const char *name, int avoid_fd, struct lp_error *err)
{
    struct stat st, avoid;

    if (stat(name, &st) != 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return lp_error_set(err, LP_ERROR_SYS, EISDIR,
                            "the report cannot be written to %s, which is a directory; name a file",
                            name);
    if (!S_ISREG(st.st_mode))
        return lp_error_set(err, LP_ERROR_SYS, EINVAL,
                            "the report cannot be written to %s, which is no regular file; name "
                            "another, or - for stdout",
                            name);
    if (avoid_fd >= 0 && fstat(avoid_fd, &avoid) == 0 && st.st_dev == avoid.st_dev &&
        st.st_ino == avoid.st_ino)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the report would replace %s, which is measured; name another file",
                            name);
    return 0;
}

static int check_file(const char *name, int avoid_fd, struct lp_error *err)
{
    size_t size = strlen(name) + 16;
    char *beside;
    int fd;

    if (check_existing(name, avoid_fd, err) != 0)
        return -1;
    if (name[strlen(name) - 1] == '/')
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the report's name %s ends with /; name a file",
                            name);
    beside = malloc(size);
    if (!beside)
        return lp_error_sys(err, ENOMEM, "cannot check %s", name);
    snprintf(beside, size, "%s.XXXXXX", name);
    fd = mkstemp(beside);
    int e = errno;
    if (fd >= 0) {
        close(fd);
        unlink(beside);
    }
    free(beside);
    if (fd >= 0)
        return 0;
    return lp_error_sys(err, e, "the report cannot be written to %s", name);
}

int report_file_check(const char *name, int avoid_fd, struct lp_error *err)
{
    return report_file_is_stdout(name) ? 0 : check_file(name, avoid_fd, err);
}

int report_files_check(const struct report_files *files, int avoid_fd, struct lp_error *err)
{
    for (unsigned i = 0; i < REPORT_FILE_KINDS; i++)
        if (files->names[i] && report_file_check(files->names[i], avoid_fd, err) != 0)
            return -1;
    return 0;
}

/* A report is written in a moment: a signal that ends the program waits for that, so that no new
 * file is left half written beside the old one. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;

    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

static int stdout_error(int errnum, struct lp_error *err)
{
    return lp_error_sys(err, errnum ? errnum : EIO, "the report cannot be written to stdout");
}

int report_file_write(const char *name, int (*render)(const void *user, FILE *), const void *user,
                      struct lp_error *err)
{
    sigset_t before;

    if (!report_file_is_stdout(name)) {
        hold_signals(&before);
        int rc = report_write_with(name, render, user, err);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return rc;
    }
    errno = 0;
    if (render(user, stdout) == 0 && fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return stdout_error(errno, err);
}

static int render_json(const struct result *r, const struct report_options *opts, FILE *out)
{
    (void)opts;
#ifdef LP_HAVE_JANSSON
    return report_json(r, out);
#else
    (void)r, (void)out; /* refused by report_files_take() */
    return -1;
#endif
}

static int render_csv(const struct result *r, const struct report_options *opts, FILE *out)
{
    (void)opts;
    return report_csv(r, out);
}

struct view { /* user of render_view() */
    const struct result *result;
    const struct report_options *opts;
    render_fn *render;
};

static int render_view(const void *user, FILE *out)
{
    const struct view *view = user;

    return view->render(view->result, view->opts, out);
}

static int write_one(const char *name, const struct result *result,
                     const struct report_options *opts, render_fn *render, struct lp_error *err)
{
    const struct view view = {result, opts, render};

    return report_file_write(name, render_view, &view, err);
}

int report_files_write(const struct report_files *files, const struct result *result,
                       struct lp_error *err)
{
    static render_fn *const renders[REPORT_FILE_KINDS] = {
        [REPORT_JSON] = render_json, [REPORT_CSV] = render_csv, [REPORT_HTML] = report_html};
    struct report_options opts = {.reference = files->reference};
    struct lp_error ignored;
    int rc = 0;

    for (unsigned i = 0; i < REPORT_FILE_KINDS; i++) {
        struct lp_error *where = rc == 0 ? err : &ignored;
        if (files->names[i])
            rc |= write_one(files->names[i], result, &opts, renders[i], where);
    }
    if (!uses_stdout(files)) {
        opts.colour = terminal_colour(STDOUT_FILENO);
        opts.width = isatty(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 0;
        rc |= write_one("-", result, &opts, report_text, rc == 0 ? err : &ignored);
    }
    return rc;
}
