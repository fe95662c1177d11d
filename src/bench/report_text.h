/* SPDX-License-Identifier: BSD-2-Clause */
/* The text report's two files: what they share. */
#ifndef BENCH_REPORT_TEXT_H
#define BENCH_REPORT_TEXT_H

#include "bench/report_int.h"

struct text {
    const struct result *r;
    FILE *out;
    unsigned width;
    bool colour;
};

enum text_style { TEXT_PLAIN, TEXT_HEADING, TEXT_ALARM };

/* Everything after goes out in that style, where colour is wanted. */
void text_style(const struct text *t, enum text_style style);

/* A heading line, after an empty one. */
void text_heading(const struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* first, then words wrapped at the width; later lines begin with as many spaces. words is cleaned;
 * a word that is longer than a line stands alone. */
void text_wrap(const struct text *t, const char *first, const char *words);

/* The mark behind a figure: '!' wrong, '~' unsteady, '*' another flag, ' ' none. */
char text_mark(const struct result_path *path, const struct result_point *p);

void text_throughput(const struct text *t); /* tables by depth, or one of single points */
void text_bars(const struct text *t);       /* the means as bars */
void text_latency(const struct text *t);    /* at two depths */
void text_cost(const struct text *t);       /* CPU, system calls, depth reached */
void text_reference(const struct text *t);  /* the published figures beside ours */

#endif
