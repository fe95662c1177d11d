/* SPDX-License-Identifier: BSD-2-Clause */
/* Where reports go: text to stdout, and files. "-" is stdout, and then nothing else goes there. */
#ifndef APP_REPORT_FILES_H
#define APP_REPORT_FILES_H

#include "app/options.h"
#include "bench/result.h"

enum report_option {
    REPORT_JSON,
    REPORT_CSV,
    REPORT_HTML,
    REPORT_REFERENCE,
    REPORT_OPTION_COUNT,
};

enum { REPORT_FILE_KINDS = REPORT_HTML + 1 };

struct report_files {
    const char *names[REPORT_FILE_KINDS]; /* by enum report_option; NULL: not wanted */
    bool reference;
};

void report_options_append(struct option *table);

/* Takes the values of the options above. Refuses two reports in one place, and --reference where
 * nothing would show it. 0, or -1 with LP_ERROR_USAGE. */
int report_files_take(const struct option_value *v, struct report_files *files,
                      struct lp_error *err);

/* Before a run: can each file be written, by making and removing one beside it. avoid_fd: an open
 * file that is no place for a report (the target), or -1. */
int report_files_check(const struct report_files *files, int avoid_fd, struct lp_error *err);

/* All of them, then text to stdout unless a report goes there. Tries each one; -1 with the first
 * error. */
int report_files_write(const struct report_files *files, const struct result *result,
                       struct lp_error *err);

/* ---- one report of any kind; name: a file or "-" ---- */

bool report_file_is_stdout(const char *name);

/* As report_files_check(). */
int report_file_check(const char *name, int avoid_fd, struct lp_error *err);

/* Never leaves half a file. 0 or -1. */
int report_file_write(const char *name, int (*render)(const void *user, FILE *), const void *user,
                      struct lp_error *err);

#endif
