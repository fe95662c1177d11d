/* SPDX-License-Identifier: BSD-2-Clause */
/* What the reports share: words, numbers as people read them, and the published figures. */
#ifndef BENCH_REPORT_INT_H
#define BENCH_REPORT_INT_H

#include "bench/bench.h"
#include "bench/report.h"

#include <stddef.h>

enum { FORMAT_LEN = 48 };

/* "READ", "WRITE", "MIXED". */
const char *report_direction_name(int direction);

/* A flag by its number in enum result_flag; result_flags_text() gives its name. */
const char *report_flag_id(unsigned bit);      /* "wide_spread", in JSON and CSV */
const char *report_flag_meaning(unsigned bit); /* one clause: what it says about the figure */

/* Numbers into buf, which is returned: FORMAT_LEN bytes are enough. "-" for what is not finite. */
char *format_gbit(double gbit_per_s, char *buf, size_t len); /* "16.43", "312.6", "123k":
                                                              * five characters at most */
char *format_ns(double ns, char *buf, size_t len);           /* "87.2 us" */
char *format_rate(double per_s, char *buf, size_t len);      /* "12400", "1.31 M" */
char *format_ratio(double ratio, char *buf, size_t len);     /* "0.83"; "-" for 0 */
char *format_bytes(uint64_t bytes, char *buf, size_t len);   /* as size_format(); "-" for 0 */

/* Text from outside into dst, cut to fit: bytes that are not UTF-8 and control characters become
 * '?', so that a report cannot play tricks on a terminal. Returns dst. */
char *report_clean(const char *text, char *dst, size_t len);

bool report_path_wrong(const struct result_path *path); /* verified, and a byte was wrong */
bool report_direction_measured(const struct result *r, int direction);
/* All flags of a path's points of one direction. */
uint32_t report_path_flags(const struct result *r, const struct result_path *path, int direction);

/* Index in config.depths of the deepest measured one up to `depth`, -1: none (any path). */
int report_depth_index(const struct result *r, unsigned depth);

/* The published figures; data/published.json holds the same for other programs. */
struct published_figures {
    double highest_gbit_per_s, mean_gbit_per_s, depth1_gbit_per_s;
};

struct published_path {
    const char *profile;                 /* ours that stands for it */
    const char *column;                  /* its name there */
    const char *mechanism;               /* how data moves */
    struct published_figures figures[2]; /* RESULT_READ, RESULT_WRITE */
    const char *format;                  /* what can format a LUN through it */
};

/* The five, ended by a NULL profile. */
const struct published_path *report_published(void);
const struct published_path *report_published_find(const char *profile); /* NULL: not there */

/* The warning that belongs beside them. */
extern const char report_published_warning[];

#ifdef LP_HAVE_JANSSON
/* report_json_read() from memory; name stands in the error sentence. */
int report_json_read_buffer(const char *name, const char *text, size_t length, struct result *r,
                            struct lp_error *err);
#endif

#endif
