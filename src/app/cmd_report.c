/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/commands.h"
#include "app/report_files.h"
#include "bench/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RESULTS = 16 };

static unsigned report_table(struct option *table)
{
    report_options_append(table);
    return REPORT_OPTION_COUNT;
}

static int read_result(const char *name, struct result *result, struct lp_error *err)
{
#ifdef LP_HAVE_JANSSON
    if (report_json_read(name, result, err) == 0)
        return 0;
    /* A file that is wrong is not a wrong command line. */
    err->domain = LP_ERROR_SYS;
    err->code = EINVAL;
    return -1;
#else
    (void)result;
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "this build cannot read %s; build it where jansson is installed", name);
#endif
}

static int render(const char *name, const struct report_files *files, struct result *result,
                  struct lp_error *err)
{
    if (read_result(name, result, err) != 0 || report_files_check(files, -1, err) != 0)
        return -1;
    return report_files_write(files, result, err);
}

/* Each one against the first. */
static int compare(const struct arguments *names, struct result *first, struct result *other,
                   struct lp_error *err)
{
    if (read_result(names->items[0], first, err) != 0)
        return -1;
    for (unsigned i = 1; i < names->count; i++) {
        if (read_result(names->items[i], other, err) != 0)
            return -1;
        if (i > 1)
            putchar('\n');
        errno = 0;
        if (report_compare(first, other, names->items[0], names->items[i], stdout) != 0 ||
            fflush(stdout) != 0)
            return lp_error_sys(err, errno ? errno : EIO,
                                "the comparison cannot be written to stdout");
    }
    return 0;
}

static int check(const struct option_value *v, const struct arguments *names, struct lp_error *err)
{
    if (names->count == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "name a result that bench wrote with --json, or several to compare");
    unsigned from_stdin = 0;
    for (unsigned i = 0; i < names->count; i++)
        from_stdin += strcmp(names->items[i], "-") == 0;
    if (from_stdin > 1)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "- is stdin, which can be read once only; name files for the others");
    for (unsigned i = 0; names->count > 1 && i < REPORT_OPTION_COUNT; i++) {
        struct option table[COMMAND_MAX_OPTIONS];
        report_table(table);
        if (v[i].given)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "--%s is for one result; a comparison is text on stdout",
                                table[i].name);
    }
    return 0;
}

static int report(int argc, char **argv, struct result *results, struct lp_error *err)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[COMMAND_MAX_OPTIONS];
    const char *items[MAX_RESULTS];
    struct arguments names = {items, MAX_RESULTS, 0};
    struct report_files files;

    if (options_parse(table, report_table(table), argc, argv, v, &names, err) != 0 ||
        check(v, &names, err) != 0 || report_files_take(v, &files, err) != 0)
        return -1;
    return names.count == 1 ? render(items[0], &files, &results[0], err)
                            : compare(&names, &results[0], &results[1], err);
}

static int cmd_report(int argc, char **argv)
{
    struct result *results = calloc(2, sizeof *results);
    struct lp_error err = {0};
    int status = STATUS_RIGHT;

    if (!results)
        lp_error_sys(&err, ENOMEM, "cannot keep the results");
    if (!results || report(argc, argv, results, &err) != 0)
        status = command_fail(&command_report, &err);
    free(results);
    return status;
}

const struct command command_report = {
    .name = "report",
    .arguments = "[OPTION ...] A.json [B.json ...]",
    .summary = "show a result again, or compare results",
    .more =
        "With one result: text, or the reports that are asked for. With several: each is compared\n"
        "with the first, point by point, with ratios and whether the difference is more than\n"
        "noise. The name - is stdin.\n"
        "Exit status: 0 all right, 1 failed, 2 usage.",
    .options = report_table,
    .run = cmd_report,
};
