/* SPDX-License-Identifier: BSD-2-Clause */
/* The HTML report's files: what they share. */
#ifndef BENCH_REPORT_HTML_H
#define BENCH_REPORT_HTML_H

#include "bench/report_int.h"

struct html {
    const struct result *r;
    const struct report_options *opts;
    FILE *out;
};

enum { HTML_COLOURS = 8 }; /* classes s0..s7 of the style sheet */

extern const char html_style[]; /* the style sheet */

/* Text from outside: cleaned, and escaped for content and for attributes in quotes. */
void html_text(const struct html *h, const char *text);

/* As format_ns(), with the sign for micro that HTML can have. */
char *html_ns(double ns, char *buf, size_t len);

/* A section's head: <section id> <h2>; ended by html_section_end(). */
void html_section(const struct html *h, const char *id, const char *heading);
void html_section_end(const struct html *h);

/* ' class="..."' words for a path: its colour, and "wrong" where its data was wrong. */
void html_path_class(const struct html *h, unsigned index);

/* Gbit/s by queue depth of one direction as a <figure> with SVG. */
void html_chart(const struct html *h, int direction);

void html_bars(const struct html *h);    /* means (or the single depth's figures) as bars */
void html_summary(const struct html *h); /* highest, mean, lowest a path: the table people quote */
void html_single(const struct html *h);  /* the same where there is one depth only */
void html_depths(const struct html *h);  /* every figure */
void html_latency(const struct html *h); /* at depth 1 and 64 */
void html_cost(const struct html *h);    /* CPU, system calls, depth reached */
void html_reference(const struct html *h); /* the published figures beside ours */
void html_flags(const struct html *h);     /* the flags that occur, explained, with their places */

#endif
