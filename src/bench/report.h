/* SPDX-License-Identifier: BSD-2-Clause */
/* Renders and compares results: text, JSON, CSV, HTML. Everything comes from struct result. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/result.h"

#include <lunpath/error.h>
#include <stdio.h>

struct report_options {
    bool reference; /* lay the published figures beside ours */
    bool colour;    /* text on a terminal */
    unsigned width; /* of the terminal, 0: 100 */
};

int report_text(const struct result *r, const struct report_options *opts, FILE *out);
int report_csv(const struct result *r, FILE *out);
int report_html(const struct result *r, const struct report_options *opts, FILE *out);

/* JSON: docs/result.schema.json describes it. Reading checks every member's type and range;
 * the path "-" is stdin. */
int report_json(const struct result *r, FILE *out);
int report_json_read(const char *path, struct result *r, struct lp_error *err);

/* Writes to path through a temporary file beside it, renamed when complete: never half a report. */
int report_write_file(const char *path, const struct result *r, const struct report_options *opts,
                      int (*render)(const struct result *, const struct report_options *, FILE *),
                      struct lp_error *err);

/* The same for anything else: render gets user. */
int report_write_with(const char *path, int (*render)(const void *user, FILE *), const void *user,
                      struct lp_error *err);

/* a against b, point by point: ratio, and whether the difference is more than the runs' noise. */
int report_compare(const struct result *a, const struct result *b, const char *name_a,
                   const char *name_b, FILE *out);

#endif
