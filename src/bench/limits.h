/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The physical limits of this machine, against which every figure stands: how fast memory can be
 * copied, how long two processes take to answer each other, what the load generator itself costs.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include "bench/result.h"

#include <lunpath/error.h>
#include <signal.h>
#include <stdbool.h>

struct limits_options {
    size_t bytes;     /* the working set, as the paths have it; source and target are as large */
    bool small_pages; /* memory of the kind that the paths use */
    bool brief;       /* within half a second instead of two */
    int first_cpu, second_cpu; /* where the two sides of a path run; -1: anywhere */
    const volatile sig_atomic_t *interrupted;
};

/* Fills *limits. What cannot be measured here stays 0 (round trips of processes in the portable
 * build or with one CPU). The best of several passes counts for copies: they are ceilings. Medians
 * for times. 0; -1: no memory. */
int limits_measure(const struct limits_options *opts, struct result_limits *limits,
                   struct lp_error *err);

/* The system's own part: round trips between two processes. limits_linux.c, limits_portable.c. */
void limits_round_trips(const struct limits_options *opts, struct result_limits *limits);

#endif
