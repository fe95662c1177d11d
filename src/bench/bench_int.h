/* SPDX-License-Identifier: BSD-2-Clause */
/* What bench.c (the whole run) and bench_path.c (one path's share of it) have in common. */
#ifndef BENCH_BENCH_INT_H
#define BENCH_BENCH_INT_H

#include "base/cpu.h"
#include "bench/bench.h"
#include "bench/load.h"
#include "bench/plan.h"
#include "bench/points.h"
#include "bench/stamp.h"

struct bench {
    const struct bench_options *opts;
    struct result *result;
    struct plan plan;
    struct lp_disk *disk;
    struct lp_queue *below;  /* on the disk, passing by the paths; NULL: none is to be had */
    bool may_write;          /* the pattern may be put on the disk */
    bool keeps_data;         /* what is written can be read again: not so with null: */
    struct stamp stamp;      /* its bytes, pattern and generations */
    bool stamped;            /* the timed data can be told by its address, and checked */
    struct cpu_list allowed; /* when it began */
    struct points_context context;
    struct points_acc *acc; /* by path, direction, depth */
    struct load_result *load;
    bool attached[RESULT_MAX_PATHS]; /* at least once */
    bool skipped[RESULT_MAX_PATHS];  /* something went wrong with it */
    struct lp_error first_error;     /* why, of the first of them */
    /* Progress, in seconds of the plan. */
    double planned_s, done_s;
    uint64_t start_ns;
    struct bench_progress now;
};

bool bench_stopped(const struct bench *b);
bool bench_brief(const struct bench *b); /* the whole is to take seconds: side work is short too */

/* Tells the caller where we are; ahead_s: of the step that runs. */
void bench_progress(struct bench *b, double ahead_s);
void bench_note(struct bench *b, const char *note);

/* Attaches a path, runs all its points once, checks their data, verifies the path in its first run,
 * and detaches. What goes wrong is in the result, and the path is skipped from then on. */
void bench_path_run(struct bench *b, unsigned path, unsigned run);

/* What a path is called and made of, before it is attached. */
void bench_path_describe(struct bench *b, unsigned path);

#endif
