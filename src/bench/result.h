/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a benchmark run found, as plain data: filled by measure, rendered by the reports.
 * Units stand in the names. Gbit/s is 10^9 payload bits a second. Depths run over `depths`.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESULT_MAX_DEPTHS = 16,
    RESULT_MAX_PATHS = 16,
    RESULT_MAX_RUNS = 32,
    RESULT_NAME = 64,
    RESULT_TEXT = 256,
};

enum result_direction { RESULT_READ, RESULT_WRITE, RESULT_MIXED, RESULT_DIRECTIONS };

enum result_flag {
    RESULT_DEPTH_NOT_REACHED = 1 << 0, /* mean depth below 0.9 of the asked */
    RESULT_NOT_STEADY = 1 << 1,        /* throughput drifts within the run: slope in the point */
    RESULT_CPU_BOUND = 1 << 2,         /* a side used more than 0.95 of its core */
    RESULT_CACHE_SUSPECT = 1 << 3,     /* working set not above the last-level cache, or buffered */
    RESULT_SHORT_RUN = 1 << 4,         /* under 0.2 s or under 100 requests a run */
    RESULT_WIDE_SPREAD = 1 << 5,   /* spread above 0.25 of the median: the figure means little */
    RESULT_BYTES_DIFFER = 1 << 6,  /* bytes at the disk are not the bytes at the top */
    RESULT_ABOVE_CEILING = 1 << 7, /* faster than the physical limit: suspect */
    RESULT_IO_ERRORS = 1 << 8,
    RESULT_FLAGS = 9,
};

/* One (path, direction, depth): medians over the runs, latency of all runs merged. */
struct result_point {
    bool measured;
    unsigned depth_asked;
    unsigned runs;
    double run_gbit_per_s[RESULT_MAX_RUNS];
    double gbit_per_s; /* median of the runs */
    double gbit_per_s_min, gbit_per_s_max;
    double ios_per_s;
    double seconds;    /* of one run, measured */
    double depth_mean; /* really reached */
    unsigned depth_max;
    uint64_t requests, bytes_top, bytes_disk, errors;
    uint64_t lat_ns_mean, lat_ns_p50, lat_ns_p99, lat_ns_p999, lat_ns_max;
    double app_cpu_s_per_gib, driver_cpu_s_per_gib;
    double app_syscalls_per_io, driver_syscalls_per_io;
    double drift;      /* relative change from the first to the last part of the run */
    double of_ceiling; /* gbit_per_s as a fraction of result_ceiling() */
    uint32_t flags;
};

struct result_summary { /* over the depths of one direction */
    bool measured;
    double highest_gbit_per_s;
    unsigned highest_depth;
    double mean_gbit_per_s; /* depths 4 to 128 */
    double lowest_gbit_per_s;
    unsigned lowest_depth;
    double of_ceiling; /* mean as a fraction of the ceiling */
};

struct result_verify {
    bool done;
    uint64_t checked_bytes;
    uint64_t wrong_blocks;
    char first[RESULT_TEXT]; /* one sentence about the first wrong byte; empty when all is right */
};

struct result_path {
    char name[RESULT_NAME];       /* "software", "dma-page", or the target's URL */
    char stands_for[RESULT_TEXT]; /* the published column, empty for a target */
    char host[RESULT_TEXT];       /* mode really obtained, with where both sides ran */
    char disk[RESULT_TEXT];       /* URL and mode really obtained */
    char prep[RESULT_NAME];       /* "none", "page + guard", ... */
    struct result_point points[RESULT_DIRECTIONS][RESULT_MAX_DEPTHS];
    struct result_summary summary[RESULT_DIRECTIONS];
    struct result_verify verify;
    unsigned driver_restarts;
    double warmup_slow_ratio; /* first requests' latency over the later ones', shown apart */
};

struct result_limits {          /* this machine, measured in the same run */
    double memcpy_gbit_per_s;   /* libc memcpy, one pass over the working set, one thread */
    double copy_gbit_per_s;     /* best copy known here, one thread: the ceiling */
    double copy_all_gbit_per_s; /* the same on all threads */
    unsigned threads;
    double round_trip_spin_ns;  /* two processes, spinning */
    double round_trip_sleep_ns; /* two processes, futex, two cores */
    double round_trip_sleep_same_core_ns;
    double tool_overhead_ns_per_io; /* the empty path */
    double copy_4k_ns;
    char copy_name[RESULT_NAME];
};

struct result_environment {
    char time_utc[32]; /* ISO 8601 */
    char lunpath_version[RESULT_NAME];
    char hostname[RESULT_NAME];
    char cpu_model[RESULT_TEXT];
    unsigned cpus_online, cpus_allowed;
    char kernel[RESULT_TEXT];
    char os[RESULT_TEXT];
    char governor[RESULT_NAME];        /* "none" where the kernel has no cpufreq */
    char virtual_machine[RESULT_NAME]; /* "no", or the hypervisor's name */
    uint64_t memory_bytes, memory_free_bytes, page_bytes, huge_page_bytes, llc_bytes;
    double load_1min; /* other load at the start */
    char clock_source[RESULT_NAME];
    char placement[RESULT_TEXT]; /* "application on CPU 0, driver on CPU 1" */
};

struct result_config {
    char command[RESULT_TEXT]; /* as typed, to run it again */
    char preset[RESULT_NAME];  /* empty, or "SEQ1M Q8T1" ... */
    char pattern[RESULT_NAME]; /* "sequential", "random", "mixed 70 % read" */
    uint64_t block_bytes, working_set_bytes, seed;
    unsigned queues, runs;
    double warmup_s, seconds; /* asked, of one run */
    unsigned depth_count;
    unsigned depths[RESULT_MAX_DEPTHS];
};

struct result {
    bool incomplete; /* interrupted: what was measured is kept */
    struct result_config config;
    struct result_environment environment;
    struct result_limits limits;
    unsigned path_count;
    struct result_path paths[RESULT_MAX_PATHS];
};

/* What no path can exceed, Gbit/s: limits.copy_gbit_per_s with one queue,
 * limits.copy_all_gbit_per_s with more (each queue has a thread of its own). 0: not measured. */
double result_ceiling(const struct result *r);

/* Fills each path's summary and of_ceiling from its points. What cannot be said is 0: the mean
 * without a depth from 4 to 128, of_ceiling without a ceiling. */
void result_summarise(struct result *r);

/* "depth not reached, short run" into buf; "" for none. Returns buf. */
char *result_flags_text(uint32_t flags, char *buf, size_t len);

#endif
