/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the runs of one point to its row: medians over the runs, latency of all runs merged, flags.
 */
#ifndef BENCH_POINTS_H
#define BENCH_POINTS_H

#include "bench/load.h"
#include "bench/result.h"

#include <lunpath/host.h>

/* What is kept of one run. */
struct points_run {
    double gbit_per_s, ios_per_s, seconds, depth_mean, drift;
    unsigned depth_max, queues;
    uint64_t requests;
    /* From the first submission to the last completion: all that follows. */
    uint64_t total_requests, total_bytes, total_ns, errors;
    uint64_t disk_bytes, app_cpu_ns, driver_cpu_ns, app_syscalls, driver_syscalls;
};

struct points_acc {
    unsigned depth_asked;
    unsigned runs;
    struct points_run run[RESULT_MAX_RUNS];
    struct points_run cut; /* the last run that the loss of the driver ended; */
    uint64_t cut_errors;   /* errors of all of those */
    struct histogram latency;
};

/* What flags are judged by, beside the runs. */
struct points_context {
    double ceiling_gbit_per_s; /* of this machine with as many threads; 0: not known */
    uint64_t working_set_bytes;
    uint64_t llc_bytes; /* last-level cache; 0: not known, then 64 MiB is taken for it */
    bool buffered;      /* through the page cache */
};

void points_begin(struct points_acc *acc, unsigned depth_asked);

/* Adds a run, with what the host counted before and after it. Not more than RESULT_MAX_RUNS. Of a
 * run that the driver's loss ended, only the errors count, unless there is no other. */
void points_add(struct points_acc *acc, const struct load_result *load,
                const struct lp_host_stats *before, const struct lp_host_stats *after);

/* Fills the row from the runs so far; all zero when there are none. of_ceiling is left to
 * result_summarise(). requests and latency are of the windows; bytes_top and bytes_disk count all
 * that was moved, warm-up and last requests too, so that they can be compared. */
void points_finish(const struct points_acc *acc, const struct points_context *ctx,
                   struct result_point *point);

/* The flags of a row whose other members are filled. */
uint32_t points_flags(const struct points_acc *acc, const struct points_context *ctx,
                      const struct result_point *point);

#endif
