/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The benchmark's plan and its run: which paths, which points, in which order, and the result.
 *
 * Paths are interleaved (run 1 of every path, then run 2 ...), so that a machine that drifts drifts
 * for all of them. Every path is verified. The physical limits are measured in the same run.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "bench/result.h"

#include <lunpath/disk.h>
#include <lunpath/error.h>
#include <lunpath/host.h>
#include <signal.h>

enum bench_pattern { BENCH_SEQUENTIAL, BENCH_RANDOM };

/* A named set of options: host, preparation, guard. */
struct bench_profile {
    const char *name;
    const char *stands_for; /* the published column */
    const char *host;
    enum lp_prep prep;
    bool guard;
};

/* The five, in the published order, ended by a NULL name. */
const struct bench_profile *bench_profiles(void);
const struct bench_profile *bench_profile_find(const char *name); /* NULL: unknown */

struct bench_preset { /* "SEQ1M Q8T1": a pattern, a block, a depth, threads (= queues) */
    const char *name;
    enum bench_pattern pattern;
    uint64_t block_bytes;
    unsigned depth, queues;
};

const struct bench_preset *bench_presets(void); /* ended by a NULL name */
const struct bench_preset *bench_preset_find(const char *name);

struct bench_progress { /* for a live view; strings live until the callback returns */
    const char *path;
    enum result_direction direction;
    unsigned depth;
    unsigned run, runs;
    double gbit_per_s; /* current, or of the point when done */
    double fraction;   /* 0..1 of the whole plan */
    double seconds_left;
    bool point_done;
    const char *note; /* not NULL: a sentence instead ("measuring the physical limits") */
};

struct bench_options {
    /* What: profiles over disk_url, or one path `target` (a disk URL or a path) through inline. */
    const struct bench_profile *profiles[RESULT_MAX_PATHS];
    unsigned profile_count;
    const char *target;       /* NULL: profiles */
    const char *disk_url;     /* for profiles; NULL: ram: of the working set's size */
    struct lp_disk_opts disk; /* engine, buffered, read_only (a target without --destroy) */
    struct lp_host_opts host; /* host: NULL keeps each profile's; limits, page size, cpus ... */
    /* How. */
    enum bench_pattern pattern;
    bool directions[RESULT_DIRECTIONS];
    unsigned read_percent; /* of RESULT_MIXED */
    uint64_t block_bytes;
    uint64_t working_set_bytes; /* 0: chosen: above the last-level cache, within memory and disk */
    unsigned depths[RESULT_MAX_DEPTHS];
    unsigned depth_count;
    double warmup_s, seconds; /* of one run of one point */
    unsigned runs;
    uint64_t seed;
    bool verify;               /* default true; writes need it too */
    char preset[RESULT_NAME];  /* for the report */
    char command[RESULT_TEXT]; /* for the report */
    /* While it runs. progress is called at most ten times a second beside the end of each point,
     * by the thread that drives the first queue. */
    void (*progress)(const struct bench_progress *progress, void *user);
    void *user;
    const volatile sig_atomic_t *interrupted; /* not NULL and not 0: end soon, keep what is there */
};

/* The defaults of `lunpath bench`: five profiles, 1 MiB sequential, READ and WRITE, depths 1 to
 * 128, three runs, within two minutes. */
void bench_options_default(struct bench_options *opts);
void bench_options_quick(struct bench_options *opts); /* within 15 s */
void bench_options_full(struct bench_options *opts);

/* Checks contradictions and impossible values first (F12: nothing is silently ignored), then runs.
 * 0: result filled (perhaps incomplete; perhaps with errors or wrong bytes, see the paths);
 * -1: nothing could be measured, see err. */
int bench_run(const struct bench_options *opts, struct result *result, struct lp_error *err);

/* True when any path has a wrong byte or an I/O error, or could not be measured: the exit status is
 * then not 0. */
bool result_has_failures(const struct result *r);

/* The same, but wrong bytes of a profile without a guard (dev) do not count: that it is wrong now
 * and then is what it stands for. */
bool result_has_surprises(const struct result *r);

#endif
