/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verifier's parts, from below: the log of findings, the flow that keeps requests of any shape
 * in flight, the area that knows what each block must hold, and the phases made of these.
 *
 * Each thread has its own log, flow and part of the area; nothing is shared while it runs.
 */
#ifndef BENCH_VERIFY_INT_H
#define BENCH_VERIFY_INT_H

#include "base/rng.h"
#include "bench/verify.h"

#include <lunpath/queue.h>

enum {
    VERIFY_MAX_SEGMENTS = 64,
    VERIFY_MAX_BYTES = 4 << 20,   /* of a request */
    VERIFY_LARGE_BYTES = 1 << 20, /* of the sequential ones */
    VERIFY_DEPTH = 16,            /* of the random phases */
    VERIFY_POISON = 0xe7,         /* what a buffer holds before a READ */
};

/* ---- verify_log.c: findings ---- */

struct verify_log {
    struct verify_report *report;
    const struct pattern *pattern;
    const char *phase; /* a string that lives as long as the report */
    uint32_t page_size;
    const volatile sig_atomic_t *interrupted;           /* or NULL */
    void (*progress)(const char *sentence, void *user); /* or NULL: told each phase that begins */
    void *user;
    bool stopped; /* errors make going on pointless: what is on the disk is not known any more */
    bool said;    /* the phase's first error is in the text already */
};

struct verify_shape { /* of the request that is spoken of */
    uint64_t offset, bytes;
    unsigned depth, segments;
};

/* Interrupted or stopped: the phases end, and the report is marked incomplete. */
bool verify_stop(struct verify_log *log);

/* Adds a line to report->phases, as far as it fits. */
void verify_say(struct verify_report *report, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Begins a phase: its name in the list, and to progress(). */
void verify_begin(struct verify_log *log, const char *phase);

/* Counts a request that ended with a negative errno; the first of a phase gets a line. */
void verify_error(struct verify_log *log, enum lp_op op, const struct verify_shape *shape,
                  int status);

/* Notes one wrong block of pattern->unit bytes, which should have held what is wanted.
 * torn_request: see struct verify_finding. */
void verify_note(struct verify_log *log, const struct verify_shape *shape,
                 const struct pattern_finding *f, const uint8_t *block, enum verify_wanted wanted,
                 bool torn_request);

/* Adds what another thread's log found. */
void verify_merge(struct verify_report *into, const struct verify_report *from);

/* ---- verify_flow.c: requests in flight ---- */

struct verify_job {
    enum lp_op op;  /* LP_READ, LP_WRITE, LP_DISCARD or LP_WRITE_ZEROES */
    uint32_t flags; /* LP_FUA or none */
    uint64_t offset, length;
    unsigned slot; /* set by the flow: 0..depth-1, not used by another job in flight */
};

/* What to do, and how. The callbacks get user. */
struct verify_flow {
    struct lp_queue *q;
    struct verify_log *log;
    unsigned depth;     /* asked; less when arena_size has no room for it */
    uint64_t max_bytes; /* of a request, not more than VERIFY_MAX_BYTES when odd */
    char *arena;        /* buffers lie here; NULL: allocated */
    size_t arena_size;
    bool odd;      /* odd addresses, up to 64 segments of any length, also outside the arena */
    uint64_t seed; /* of the odd shapes */
    /* The next job, or false: none for now; the flow ends when then nothing is in flight. */
    bool (*next)(void *user, struct verify_job *job);
    void (*fill)(void *user, const struct verify_job *job, uint8_t *data); /* for a WRITE */
    /* A READ that ended well. */
    void (*check)(void *user, const struct verify_job *job, const struct verify_shape *shape,
                  const uint8_t *data);
    void (*ended)(void *user, const struct verify_job *job, int status); /* after check; optional */
    void *user;
};

/* The depth that the flow will have. */
unsigned verify_flow_depth(const struct verify_flow *flow);

/* Runs until there is no job left, or the log says stop. 0; -1: no memory. Bad data and I/O errors
 * are in the log. */
int verify_flow_run(const struct verify_flow *flow, struct lp_error *err);

/* ---- verify_area.c: what each block must hold ---- */

/* Blocks hold generation base + acked; 0: not known, and not checked. While a block is written
 * it may hold one more. */
struct verify_area {
    const struct pattern *pattern;
    uint64_t base;
    uint64_t blocks; /* of pattern->unit bytes, from disk offset 0 */
    uint32_t *acked;
    uint8_t *wanted;      /* enum verify_wanted: DATA, or what was done since */
    uint32_t *written_by; /* the WRITE that did it, by a number of its own: is it torn? */
    uint8_t *writing;
};

int verify_area_init(struct verify_area *a, const struct pattern *p, uint64_t bytes, uint64_t base,
                     struct lp_error *err);
void verify_area_free(struct verify_area *a);

/* Checks blocks that nobody is writing and notes what is wrong. */
void verify_area_check(const struct verify_area *a, struct verify_log *log,
                       const struct verify_shape *shape, const uint8_t *data, uint64_t first,
                       uint64_t count);

/* These blocks were written with their next generation by the WRITE of that number. */
void verify_area_wrote(struct verify_area *a, uint64_t first, uint64_t count, uint32_t id);

enum verify_order {
    VERIFY_WRITE_ALL, /* in order, each block once */
    VERIFY_READ_ALL,
    VERIFY_READ_SIZES, /* in order, of random sizes */
    VERIFY_STRIPES,    /* reads one half in stripes while it rewrites the other: see `stripe` */
    VERIFY_RANDOM,     /* anywhere, of random sizes, READ and WRITE, no two on the same block */
    VERIFY_REWRITE,    /* the same, but blocks are read while they are written */
    VERIFY_SOME,       /* op with flags, in order, on every other piece of random size */
};

struct verify_work {
    struct verify_area *area;
    struct verify_log *log;
    struct lp_queue *q;
    char *arena;
    size_t arena_size;
    enum verify_order order;
    uint64_t first, count; /* blocks of the area that are used */
    uint64_t max_bytes;    /* of a request */
    unsigned depth;
    bool odd;
    enum lp_op op;   /* SOME */
    uint32_t flags;  /* SOME: LP_FUA or none */
    unsigned stripe; /* STRIPES: 0: even ones are written, 1: odd ones */
    uint64_t jobs;   /* RANDOM, REWRITE: at least so many, and then */
    uint64_t until;  /* until this time (clock_now_ns) */
    uint64_t seed;
};

/* Does the work and checks every READ on completion. 0 (see the log); -1: no memory. */
int verify_work_run(const struct verify_work *work, struct lp_error *err);

/* Reads the area's blocks from q one large request at a time, past any path, and checks them. */
int verify_disk_itself(struct verify_area *a, struct lp_queue *q, struct verify_log *log,
                       struct lp_error *err);

/* ---- verify_file.c, verify_twice.c, verify_map*.c: more ways to the same file ---- */

struct verify_file {
    const char *path;
    struct lp_disk_opts disk; /* engine */
    uint64_t seed;
};

/* Writes with each of direct, buffered and mapped I/O and reads with each. */
int verify_file_ways(const struct verify_file *f, struct verify_area *a, struct verify_log *log,
                     struct lp_error *err);

/* Reads twice (by each way, and in different shapes) and compares. url: of the disk; path: of the
 * file behind it, or NULL. */
int verify_twice(const char *url, const char *path, const struct lp_disk_opts *disk, uint64_t bytes,
                 uint64_t seed, struct verify_log *log, struct lp_error *err);

struct verify_map { /* a mapped file */
    uint8_t *base;
    size_t bytes;
    bool writable;
};

/* 0; -1: err says why. */
int verify_map_open(struct verify_map *m, const char *path, uint64_t bytes, bool writable,
                    struct lp_error *err);
void verify_map_close(struct verify_map *m);

/* Brings a part of the mapping in, so that an I/O error is 0 or a negative errno here and no SIGBUS
 * later. Where the system cannot, 0. */
int verify_map_populate(const struct verify_map *m, size_t at, size_t length);

/* Brings what was written onto the medium and drops the page cache of the file, so that the next
 * read comes from the medium. 0 or a negative errno. */
int verify_drop_cache(const char *path);

#endif
