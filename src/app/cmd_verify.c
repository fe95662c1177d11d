/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/commands.h"
#include "app/live.h"
#include "app/path_args.h"
#include "app/stop.h"
#include "app/target.h"
#include "base/size.h"
#include "bench/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_SIZE,
    OWN_SECONDS,
    OWN_SEED,
    OWN_QUEUES,
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
};

static unsigned verify_table(struct option *table)
{
    memcpy(table, own_table, sizeof own_table);
    path_options_append(table + AT_PATH);
    return ALL_COUNT;
}

struct verify_args {
    struct verify_options verify;
    bool even_with_data;
};

static int take_what(const char *name, const struct option_value *v, struct verify_options *o,
                     struct lp_error *err)
{
    const struct option_value *host = &v[AT_PATH + PATH_HOST];
    struct path_use use = {.target = NULL};

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
    args->even_with_data = v[AT_PATH + PATH_EVEN_WITH_DATA].given;
    return take_what(items[0], v, o, err);
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

/* *url is to be freed. */
static int open_disk(struct verify_args *args, char **url, struct lp_error *err)
{
    struct verify_options *o = &args->verify;
    const char *named = o->target ? o->target : o->disk_url;
    struct target_opts opts = {.destroy = o->destroy,
                               .even_with_data = args->even_with_data,
                               .buffered = o->disk.buffered};

    if (!named)
        return 0;
    if (o->target && check_name(o->target, err) != 0)
        return -1;
    *url = target_url(named);
    if (!*url)
        return lp_error_sys(err, ENOMEM, "cannot open %s", named);
    if (o->target)
        o->target = *url;
    else
        o->disk_url = *url;
    return target_open(named, &opts, &o->disk.fd, err);
}

static void print_report(const struct verify_report *r, uint32_t page_size)
{
    char checked[32], written[32], text[1024];

    fputs(r->phases, stdout);
    printf("checked %s, wrote %s, in %" PRIu64 " requests, %" PRIu64 " of them failed\n",
           size_format(r->bytes_checked, checked, sizeof checked),
           size_format(r->bytes_written, written, sizeof written), r->requests, r->errors);
    for (unsigned i = 0; i < r->finding_count; i++) {
        verify_finding_text(&r->findings[i], page_size, text, sizeof text);
        printf("\n%s\n", text);
    }
    if (r->incomplete)
        puts("not complete: interrupted");
    if (r->wrong_blocks)
        printf("WRONG DATA: %" PRIu64 " blocks\n", r->wrong_blocks);
    else if (r->errors)
        puts("no wrong data was seen, but requests failed");
    else if (!r->incomplete)
        puts("every byte was right");
}

static int verify(struct verify_options *o, struct verify_report *report)
{
    struct lp_error err = {0};
    struct stop stop;
    struct live live;

    if (stop_begin(&stop, &err) != 0)
        return command_fail(&command_verify, &err);
    live_begin(&live, stderr, &stop.interrupted);
    o->progress = live_sentence;
    o->user = &live;
    o->interrupted = &stop.interrupted;
    int rc = verify_run(o, report, &err);
    live_end(&live);
    bool interrupted = stop.interrupted;
    stop_end(&stop);
    int status = STATUS_RIGHT;
    if (rc == 0)
        print_report(report, o->host.page_size);
    else
        status = command_fail(&command_verify, &err);
    if (rc == 0 && (report->wrong_blocks || report->errors))
        status = STATUS_WRONG_DATA;
    return interrupted ? STATUS_INTERRUPTED : status;
}

static int cmd_verify(int argc, char **argv)
{
    struct verify_args args;
    struct lp_error err = {0};
    char *url = NULL;
    int status;

    struct verify_report *report = calloc(1, sizeof *report);
    if (!report)
        lp_error_sys(&err, ENOMEM, "cannot keep the report");
    if (!report || parse(argc, argv, &args, &err) != 0 || open_disk(&args, &url, &err) != 0)
        status = command_fail(&command_verify, &err);
    else
        status = verify(&args.verify, report);
    free(url);
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
        "Exit status: 0 all right, 1 failed, 2 usage, 3 wrong data, 130 interrupted.",
    .options = verify_table,
    .run = cmd_verify,
};
