/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan: what was asked is checked, what was left open is chosen, and nothing is ignored.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "bench/bench.h"

#include <stddef.h>

struct plan {
    uint64_t working_set_bytes; /* the first so many bytes of the disk are used */
    uint32_t unit;              /* of the data pattern: the disk's block, 512 at least */
    size_t arena_bytes;
    bool by_address; /* the arena is as large as the working set: byte o belongs at address o */
    unsigned queues, max_depth;
    unsigned paths, directions; /* numbers of them */
    bool write;                 /* something is written */
    int app_cpu, driver_cpu;    /* -1: not pinned */
    double seconds;             /* how long the whole will take, about */
};

/* What can be checked before the disk is known. 0 or -1. */
int plan_check(const struct bench_options *opts, struct lp_error *err);

/* The working set for a disk that is made for this run; 0 with nothing asked is chosen: four times
 * the last-level cache, 256 MiB at least, a quarter of the free memory at most. */
uint64_t plan_working_set(const struct bench_options *opts, const struct result_environment *env);

/* Does the working set of a disk that is made in memory for this run fit there? 0 or -1. */
int plan_check_memory(const struct bench_options *opts, const struct result_environment *env,
                      struct lp_error *err);

/* A driver that takes less than a block at a time takes nothing. 0 or -1. */
int plan_check_pieces(const struct lp_host_opts *host, const struct lp_limits *disk,
                      struct lp_error *err);

/* Fills plan for a disk with these limits; in_memory: RAM or nothing stands behind it, so pinning
 * both sides does not starve the disk's own threads. 0 or -1. */
int plan_make(const struct bench_options *opts, const struct result_environment *env,
              const struct lp_limits *disk, bool in_memory, struct plan *plan,
              struct lp_error *err);

/* "application on CPU 0, driver on CPU 1" into buf. */
void plan_placement(const struct plan *plan, char *buf, size_t len);

#endif
