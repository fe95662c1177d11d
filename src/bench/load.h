/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The load generator: keeps a queue at a given depth and counts what comes back.
 *
 * One thread a queue. Time-based: a warm-up that is not counted, then a window, then what is still
 * in flight is waited for. Both end where each place of the queue has had as many turns as the
 * others, so a little later than planned; at most by eight times the length of the window. On the
 * hot path nothing is allocated and the clock is read once for each poll that returns: a request's
 * latency runs from the clock reading before its batch was submitted to the one after its batch was
 * completed. At depth 1 a batch is one request.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "base/histogram.h"
#include "bench/bench.h"

#include <lunpath/error.h>
#include <lunpath/queue.h>
#include <signal.h>

enum {
    LOAD_SLICES = 8,           /* parts of the window, for the drift */
    LOAD_FIRST_REQUESTS = 200, /* reported apart: first touches are slow */
    LOAD_ERROR_KINDS = 8,
};

struct load_options {
    enum bench_pattern pattern;
    unsigned read_percent; /* 100: READ only, 0: WRITE only */
    uint64_t block_bytes;  /* of each request */
    uint64_t offset;       /* bytes: the range of the disk that is used, in whole blocks */
    uint64_t length;
    uint64_t start; /* sequential: bytes from offset where it begins; it wraps at length */
    unsigned depth;
    /* Memory. by_address: the request at disk offset o uses arena + o, and the arena covers the
     * range; so WRITE sends what belongs there and READ can be checked afterwards. Else slot i uses
     * arena + i * block_bytes. */
    char *arena;
    bool by_address;
    uint8_t *touched; /* NULL, or one byte a block of the disk, set to 1 when a request on it ended
                       * well; by offset / block_bytes */
    uint64_t warmup_ns, run_ns;
    uint64_t seed;
    int cpu;               /* pin the thread that runs this queue here; -1: not (load_run_all) */
    bool go_on_after_loss; /* the driver will come back: -ENODEV does not end the run */
    uint64_t (*now)(void *user); /* nanoseconds; NULL: clock_now_ns */
    void *now_user;
    /* NULL, or called some ten times a second with what the window has brought so far. */
    void (*tick)(uint64_t bytes, uint64_t ns, void *user);
    void *tick_user;
    const volatile sig_atomic_t *interrupted; /* NULL, or not 0: stop submitting */
};

struct load_error_kind {
    int errnum; /* positive */
    uint64_t count;
};

struct load_result {
    struct histogram latency; /* ns, of the requests below */
    uint64_t requests, bytes; /* that ended well in the window; payload */
    uint64_t window_ns;       /* really; with several queues the mean of theirs */
    double slice_bytes[LOAD_SLICES];
    double depth_mean; /* time-weighted, in the window; with several queues the mean of theirs */
    unsigned depth_max;
    unsigned queues;
    /* From the first submission to the last completion, so comparable with what the disk counted.
     */
    uint64_t total_requests, total_bytes, total_ns, cpu_ns;
    uint64_t errors;
    int first_errno;                                      /* positive, 0: none */
    struct load_error_kind error_kinds[LOAD_ERROR_KINDS]; /* ended by a count of 0 or the end */
    uint64_t first_requests, first_latency_ns;            /* at most LOAD_FIRST_REQUESTS; sum */
    bool interrupted;
    bool lost; /* the driver went away and does not come back: ended early */
};

/* Drives q from the calling thread until nothing is in flight. 0, or -1: no memory. */
int load_run(struct lp_queue *q, const struct load_options *opts, struct load_result *result,
             struct lp_error *err);

/* Drives count queues, each from a thread of its own (one: from the calling thread), each on its
 * own part of the range, and merges what they found. 0 or -1. */
int load_run_all(struct lp_queue *const *queues, unsigned count, const struct load_options *opts,
                 struct load_result *result, struct lp_error *err);

/* Relative change of the throughput from the window's first quarter to its last: -0.4 is a fall
 * by 40 %. 0 when nothing moved in the first quarter. */
double load_drift(const struct load_result *result);

/* Mean latency of the first requests over that of the window. 0: not known. */
double load_first_ratio(const struct load_result *result);

#endif
