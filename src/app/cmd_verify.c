/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/commands.h"
#include "app/live.h"
#include "app/path_args.h"
#include "app/report_files.h"
#include "app/stop.h"
#include "app/target.h"
#include "base/size.h"
#include "bench/units.h"
#include "bench/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OWN_SIZE,
    OWN_SECONDS,
    OWN_SEED,
    OWN_QUEUES,
    OWN_JSON,
    OWN_COUNT,
    AT_PATH = OWN_COUNT,
    ALL_COUNT = AT_PATH + PATH_OPTION_COUNT,
};

_Static_assert((int)ALL_COUNT <= (int)COMMAND_MAX_OPTIONS, "the callers' tables have room");

enum { MAX_QUEUES = 64, MAX_SECONDS = 86400 };
static const double default_seconds = 2;

static const struct option own_table[OWN_COUNT] = {
    [OWN_SIZE] = {.name = "size",
                  .type = OPTION_SIZE,
                  .value = "SIZE",
                  .min = 1,
                  .max = UINT64_MAX,
                  .help = "test the first SIZE bytes (default above 128M)",
                  .group = "How thorough:"},
    [OWN_SECONDS] = {.name = "seconds",
                     .type = OPTION_SECONDS,
                     .value = "SECONDS",
                     .min = 0,
                     .max = MAX_SECONDS,
                     .help = "how long each random phase goes on (default 2)"},
    [OWN_SEED] = {.name = "seed",
                  .type = OPTION_NUMBER,
                  .value = "N",
                  .min = 0,
                  .max = UINT64_MAX,
                  .help = "of data, shapes and addresses (default 1)"},
    [OWN_QUEUES] = {.name = "queues",
                    .type = OPTION_NUMBER,
                    .value = "N",
                    .min = 1,
                    .max = MAX_QUEUES,
                    .help = "queues of the path (default 1)"},
    [OWN_JSON] = {.name = "json",
                  .type = OPTION_TEXT,
                  .value = "FILE",
                  .help = "everything, for programs; \"-\" is stdout",
                  .group = "Report:"},
};

static unsigned verify_table(struct option *table)
{
    memcpy(table, own_table, sizeof own_table);
    path_options_append(table + AT_PATH);
    return ALL_COUNT;
}

struct verify_args {
    struct verify_options verify;
    struct iscsi_args iscsi; /* verify.disk.iscsi points here */
    bool even_with_data;
    const char *json; /* file, or NULL */
    char command[RESULT_TEXT];
};

static int take_what(const char *name, const struct option_value *v, struct iscsi_args *iscsi,
                     struct verify_options *o, struct lp_error *err)
{
    const struct option_value *host = &v[AT_PATH + PATH_HOST];
    struct path_use use = {.target = NULL, .iscsi = iscsi};

    o->profile = bench_profile_find(name);
    if (!o->profile)
        o->target = use.target = name;
    if (o->profile) {
        o->host.host = o->profile->host;
        use.ring = strcmp(host->given ? host->text : o->profile->host, "inline") != 0;
        use.prepared = o->profile->prep != LP_PREP_NONE;
        use.multi = o->profile->prep == LP_PREP_MULTI;
        use.writes_asked = true; /* a profile is verified by writing */
    }
    if (path_args_take(v + AT_PATH, &use, &o->host, &o->disk, err) != 0)
        return -1;
    o->disk_url = v[AT_PATH + PATH_DISK].text;
    o->destroy = !o->disk.read_only;
    return 0;
}

static int parse(int argc, char **argv, struct verify_args *args, struct lp_error *err)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[COMMAND_MAX_OPTIONS];
    const char *items[1];
    struct arguments arguments = {items, 1, 0};
    struct verify_options *o = &args->verify;
    unsigned count = verify_table(table);

    *args = (struct verify_args){.verify = {.disk = LP_DISK_OPTS_DEFAULT,
                                            .host = LP_HOST_OPTS_DEFAULT,
                                            .seconds = default_seconds,
                                            .seed = 1}};
    if (options_parse(table, count, argc, argv, v, &arguments, err) != 0)
        return -1;
    if (arguments.count == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "name what to verify: a profile such as software, a file, a device or "
                            "a disk URL");
    if (v[OWN_SECONDS].given)
        o->seconds = v[OWN_SECONDS].seconds;
    if (v[OWN_SEED].given)
        o->seed = o->host.seed = v[OWN_SEED].number;
    if (v[OWN_QUEUES].given)
        o->host.queues = (unsigned)v[OWN_QUEUES].number;
    o->bytes = v[OWN_SIZE].number;
    args->json = v[OWN_JSON].text;
    command_line_text(&command_verify, argc, argv, args->command, sizeof args->command);
#ifndef LP_HAVE_JANSSON
    if (args->json)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "this build cannot write JSON; build it where jansson is installed");
#endif
    args->even_with_data = v[AT_PATH + PATH_EVEN_WITH_DATA].given;
    return take_what(items[0], v, &args->iscsi, o, err);
}

/* A word that is neither a file nor a profile is more likely a profile that is spelled wrong. */
static int check_name(const char *name, struct lp_error *err)
{
    const struct bench_profile *p = bench_profiles(), *near = NULL;

    if (target_path(name) != name || strchr(name, '/') || target_exists(name))
        return 0;
    for (; p->name; p++)
        if (words_distance(p->name, name) <= 2)
            near = p;
    if (near)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "there is no profile and no file %s; did you mean %s?", name,
                            near->name);
    return 0;
}

/* The verifier opens its disk several times, in several ways, so it gets a name that leads to what
 * was checked. People see the name that they typed instead. */
struct checked {
    const char *named; /* as typed, NULL: memory that is made here */
    char *url;         /* for the verifier; to be freed */
    int fd;            /* keeps it */
};

static int open_disk(struct verify_args *args, struct checked *c, struct lp_error *err)
{
    struct verify_options *o = &args->verify;
    /* Buffered for the check only: the verifier says itself what cannot be opened directly. */
    struct target_opts opts = {.destroy = o->destroy,
                               .even_with_data = args->even_with_data,
                               .buffered = true,
                               .iscsi = o->disk.iscsi};

    c->named = o->target ? o->target : o->disk_url;
    if (!c->named)
        return 0;
    if ((o->target && check_name(o->target, err) != 0) ||
        target_open(c->named, &opts, &c->fd, err) != 0)
        return -1;
    c->url = target_url_of(c->named, &c->fd, err);
    if (!c->url)
        return -1;
    if (o->target)
        o->target = c->url;
    else
        o->disk_url = c->url;
    return 0;
}

/* text with each place of the URL's path replaced by the path that was typed, cut to size. */
static void show_typed(const struct checked *c, const char *text, char *to, size_t size)
{
    const char *via = c->url ? target_path(c->url) : NULL;
    const char *typed = c->named ? target_path(c->named) : NULL;
    size_t used = 0, len = via ? strlen(via) : 0;

    while (*text && used + 1 < size) {
        if (len && typed && strncmp(text, via, len) == 0) {
            snprintf(to + used, size - used, "%s", typed);
            used += strlen(to + used);
            text += len;
        } else {
            to[used++] = *text++;
        }
    }
    to[used] = '\0';
}

static void print_end(const struct verify_report *r, bool interrupted)
{
    if (r->incomplete)
        printf("INCOMPLETE: %s\n", interrupted ? "it was interrupted" : "it ended early");
    if (r->wrong_blocks)
        printf("WRONG DATA: %" PRIu64 " block%s\n", r->wrong_blocks, units_s(r->wrong_blocks));
    else if (r->errors)
        printf("no wrong data was seen, but %s failed\n",
               r->errors == 1 ? "a request" : "requests");
    else if (!r->incomplete)
        puts("every byte that was checked was right");
}

/* From the byte `shown` of the phases on: the others are on the screen already. */
static void print_report(const struct verify_report *r, const struct checked *c, size_t shown,
                         bool interrupted, uint32_t page_size)
{
    char checked[32], written[32], text[2 * sizeof r->phases];

    show_typed(c, r->phases + shown, text, sizeof text);
    fputs(text, stdout);
    printf("checked %s, wrote %s, in %" PRIu64 " request%s, %" PRIu64 " of them failed\n",
           size_format(r->bytes_checked, checked, sizeof checked),
           size_format(r->bytes_written, written, sizeof written), r->requests,
           units_s(r->requests), r->errors);
    for (unsigned i = 0; i < r->finding_count; i++) {
        verify_finding_text(&r->findings[i], page_size, text, sizeof text);
        printf("\n%s\n", text);
    }
    print_end(r, interrupted);
}

/* What is seen while it runs. Where stdout and stderr are one place and nothing is redrawn there,
 * the phases are printed as they come and not again in the end. */
struct view {
    struct live live;
    const struct checked *checked;
    const struct verify_report *report;
    bool as_they_come;
    size_t shown; /* bytes of report->phases */
};

static bool same_place(int a, int b)
{
    struct stat at, bt;

    return fstat(a, &at) == 0 && fstat(b, &bt) == 0 && at.st_dev == bt.st_dev &&
           at.st_ino == bt.st_ino;
}

static void progress(const char *sentence, void *user)
{
    struct view *view = user;
    char text[2 * VERIFY_PHASES];

    if (view->as_they_come) {
        show_typed(view->checked, view->report->phases + view->shown, text, sizeof text);
        view->shown = strlen(view->report->phases);
        fputs(text, stdout);
        fflush(stdout);
        return;
    }
    show_typed(view->checked, sentence, text, sizeof text);
    live_sentence(text, &view->live);
}

static int fail(const struct checked *c, const struct lp_error *err)
{
    struct lp_error shown = *err;

    show_typed(c, err->msg, shown.msg, sizeof shown.msg);
    return command_fail(&command_verify, &shown);
}

struct json_of { /* for write_json() */
    const struct verify_report *report;
    struct verify_about about;
};

static int write_json(const void *user, FILE *out)
{
#ifdef LP_HAVE_JANSSON
    const struct json_of *j = user;
    return verify_json(j->report, &j->about, out);
#else
    (void)user, (void)out; /* refused before */
    return -1;
#endif
}

static int show_json(const struct verify_args *args, const struct checked *c,
                     const struct verify_report *report, struct lp_error *err)
{
    const struct verify_options *o = &args->verify;
    char phases[2 * VERIFY_PHASES];
    struct json_of json = {.report = report,
                           .about = {.command = args->command,
                                     .target = c->named,
                                     .profile = o->profile ? o->profile->name : NULL,
                                     .phases = phases,
                                     .seed = o->seed,
                                     .page_size = o->host.page_size}};

    show_typed(c, report->phases, phases, sizeof phases);
    return report_file_write(args->json, write_json, &json, err);
}

static int show(const struct verify_args *args, const struct view *view, bool interrupted)
{
    const struct verify_report *report = view->report;
    struct lp_error err;
    int status = STATUS_RIGHT;

    if (args->json && show_json(args, view->checked, report, &err) != 0)
        status = fail(view->checked, &err);
    if (!args->json || !report_file_is_stdout(args->json)) {
        print_report(report, view->checked, view->shown, interrupted, args->verify.host.page_size);
        if (fflush(stdout) != 0) {
            lp_error_sys(&err, errno, "the findings cannot be written to stdout");
            status = fail(view->checked, &err);
        }
    }
    return report->wrong_blocks || report->errors ? STATUS_WRONG_DATA : status;
}

static int run(struct verify_args *args, const struct checked *c, struct verify_report *report)
{
    struct verify_options *o = &args->verify;
    struct lp_error err = {0};
    struct view view = {.checked = c, .report = report};
    struct stop stop;

    if (stop_begin(&stop, &err) != 0)
        return fail(c, &err);
    live_begin(&view.live, stderr, &stop.interrupted);
    view.as_they_come = !view.live.redraw && same_place(STDOUT_FILENO, STDERR_FILENO) &&
                        !(args->json && report_file_is_stdout(args->json));
    o->progress = progress;
    o->user = &view;
    o->interrupted = &stop.interrupted;
    int rc = verify_run(o, report, &err);
    live_end(&view.live);
    int status = rc == 0 ? show(args, &view, stop.interrupted) : fail(c, &err);
    return stop_end(&stop, status);
}

static int cmd_verify(int argc, char **argv)
{
    struct verify_args args;
    struct checked checked = {.fd = -1};
    struct lp_error err = {0};
    int status;

    struct verify_report *report = calloc(1, sizeof *report);
    if (!report)
        lp_error_sys(&err, ENOMEM, "cannot keep the report");
    if (!report || parse(argc, argv, &args, &err) != 0 || open_disk(&args, &checked, &err) != 0 ||
        (args.json && report_file_check(args.json, checked.fd, &err) != 0))
        status = command_fail(&command_verify, &err);
    else
        status = run(&args, &checked, report);
    if (checked.fd >= 0)
        close(checked.fd);
    free(checked.url);
    free(report);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .arguments = "[OPTION ...] PROFILE|TARGET",
    .summary = "hunt wrong data in a driver path, file or device",
    .more =
        "PROFILE is one of the five paths; lunpath disks lists them. TARGET is a file, a block\n"
        "device or a disk URL. A file or device is only read, twice, and compared, unless\n"
        "--destroy is given. What is mounted or held by a driver is never written to.\n"
        "Exit status: 0 all right, 1 failed, 2 usage, 3 wrong data, 130 or 143 interrupted.",
    .options = verify_table,
    .run = cmd_verify,
};
