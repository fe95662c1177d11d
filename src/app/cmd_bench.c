/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/bench_args.h"
#include "app/commands.h"
#include "app/live.h"
#include "app/stop.h"
#include "app/target.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* The disk that is named gets its URL and its checked descriptor. *url is to be freed. */
static int open_disk(struct bench_args *args, char **url, struct lp_error *err)
{
    struct bench_options *b = &args->bench;
    const char *named = b->target ? b->target : b->disk_url;
    struct target_opts opts = {.destroy = args->destroy,
                               .even_with_data = args->even_with_data,
                               .buffered = b->disk.buffered,
                               .iscsi = b->disk.iscsi};

    *url = NULL;
    if (!named)
        return 0;
    *url = target_url(named);
    if (!*url)
        return lp_error_sys(err, ENOMEM, "cannot open %s", named);
    if (b->target)
        b->target = *url;
    else
        b->disk_url = *url;
    return target_open(named, &opts, &b->disk.fd, err);
}

/* From here on the disk owns the descriptor. */
static int measure(struct bench_options *b, const struct stop *stop, struct result *result,
                   struct lp_error *err)
{
    struct live live;

    live_begin(&live, stderr, &stop->interrupted);
    b->progress = live_progress;
    b->user = &live;
    b->interrupted = &stop->interrupted;
    int rc = bench_run(b, result, err);
    live_end(&live);
    return rc;
}

/* Who asked for all profiles did not ask for the wrong bytes of the one without a guard; who named
 * it did. */
static bool is_wrong(const struct bench_args *args, const struct result *result)
{
    return args->profiles_named ? result_has_failures(result) : result_has_surprises(result);
}

static int measure_and_write(struct bench_args *args, const struct stop *stop,
                             struct result *result)
{
    struct lp_error err = {0};

    if (measure(&args->bench, stop, result, &err) != 0)
        return command_fail(&command_bench, &err);
    int status = report_files_write(&args->files, result, &err) == 0
                     ? STATUS_RIGHT
                     : command_fail(&command_bench, &err);
    return is_wrong(args, result) ? STATUS_WRONG_DATA : status;
}

static int run(struct bench_args *args, struct result *result)
{
    struct lp_error err = {0};
    struct stop stop;

    if (report_files_check(&args->files, args->bench.disk.fd, &err) != 0 ||
        stop_begin(&stop, &err) != 0)
        return command_fail(&command_bench, &err);
    return stop_end(&stop, measure_and_write(args, &stop, result));
}

static int cmd_bench(int argc, char **argv)
{
    struct bench_args args;
    struct lp_error err = {0};
    char *url = NULL;
    int status;

    if (bench_args_parse(argc, argv, &args, &err) != 0)
        return command_fail(&command_bench, &err);
    command_line_text(&command_bench, argc, argv, args.bench.command, sizeof args.bench.command);
    struct result *result = calloc(1, sizeof *result);
    if (!result || open_disk(&args, &url, &err) != 0) {
        if (!result)
            lp_error_sys(&err, ENOMEM, "cannot keep the result");
        status = command_fail(&command_bench, &err);
    } else {
        status = run(&args, result);
    }
    free(url);
    free(result);
    return status;
}

const struct command command_bench = {
    .name = "bench",
    .arguments = "[OPTION ...] [TARGET]",
    .summary = "measure driver paths, or one file or device",
    .more =
        "Without TARGET: the five profiles, READ and WRITE, over a disk in memory, in two "
        "minutes.\n"
        "TARGET is a file, a block device or a disk URL. It is only read unless --destroy is\n"
        "given. What is mounted or held by a driver is never written to.\n"
        "Sizes: 4096, 4K, 1M ... (of 1024). Gbit/s are 10^9 payload bits a second.\n"
        "Exit status: 0 all right, 1 failed, 2 usage, 3 wrong data, 130 or 143 interrupted.\n"
        "Wrong data of the profile dev, which has no guard, is always shown, and gives status 3\n"
        "when profiles are named with --profile.",
    .options = bench_table,
    .run = cmd_bench,
};
