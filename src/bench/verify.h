/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verifier: hunts wrong data rather than speed, and says what kind, where and under which shape
 * of I/O, so that a driver author can act on it.
 */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include "bench/bench.h"
#include "bench/pattern.h"

#include <stdio.h>

enum { VERIFY_MAX_FINDINGS = 16, VERIFY_PHASES = 4096 };

/* What a block must hold. */
enum verify_wanted {
    VERIFY_DATA,   /* what was written last */
    VERIFY_ZEROS,  /* after WRITE_ZEROES */
    VERIFY_ERASED, /* after DISCARD: a disk may keep the data, bring older data of this place, or
                    * bring one byte repeated, zeros for one; but nobody else's data */
};

struct verify_finding {
    struct pattern_finding data; /* expected_generation 0: nothing was known, two READs differ */
    enum verify_wanted wanted;
    const char *phase; /* "sequential, depth 32", "mmap reads what direct wrote", ...; a literal */
    bool
        torn_request; /* TORN between the blocks of one WRITE: this one is old, an earlier is not */
    bool untouched;   /* the READ left the wrong bytes of its buffer as they were before it */
    uint64_t request_offset;
    uint64_t request_bytes;
    unsigned depth;
    unsigned segments;
    unsigned wrong_from_page; /* of the request, from 0: the first wrong one (host's page size) */
    uint64_t count;           /* wrong blocks of this kind in this phase */
};

struct verify_report {
    uint64_t bytes_written, bytes_checked, requests, errors;
    uint64_t wrong_blocks;
    unsigned finding_count; /* the first of each kind and phase */
    struct verify_finding findings[VERIFY_MAX_FINDINGS];
    bool incomplete;
    char phases[VERIFY_PHASES]; /* what was done, and what was skipped and why, one a line */
};

struct verify_options {
    const struct bench_profile *profile; /* or NULL: */
    const char *target;
    const char *disk_url; /* with profile; NULL: ram: */
    struct lp_disk_opts disk;
    struct lp_host_opts host;
    uint64_t bytes; /* size of the tested range; 0: chosen, above 128 MiB */
    double seconds; /* how long the random phases go on, each */
    uint64_t seed;
    bool destroy; /* target: may be written; else it is only read twice and compared */
    void (*progress)(const char *sentence, void *user);
    void *user;
    const volatile sig_atomic_t *interrupted;
};

/* 0: done, see report->wrong_blocks; -1: could not be done, see err. */
int verify_run(const struct verify_options *opts, struct verify_report *report,
               struct lp_error *err);

/* What a file of verify_json() says beside the report. Strings; target and phases as people know
 * them. */
struct verify_about {
    const char *command; /* to do it again */
    const char *target;  /* NULL: memory */
    const char *profile; /* NULL: none */
    const char *phases;  /* as report->phases */
    uint64_t seed;
    uint32_t page_size;
};

/* Everything as JSON, for programs; docs/reports.md describes it. 0 or -1. Only with jansson. */
int verify_json(const struct verify_report *report, const struct verify_about *about, FILE *out);

/* Three lines about one finding: kind, first wrong byte, address, request, from which page. */
void verify_finding_text(const struct verify_finding *f, uint32_t page_size, char *buf, size_t len);

/* What bench uses for each path: writes through q over [0, bytes) with requests of block_bytes at
 * depth and reads back, checking every request as it completes, also while other parts of the range
 * are rewritten, then checks the disk itself through below (a queue on the disk that passes by the
 * path, used for READ only; may be NULL).
 *
 * Writes `generation`, then generation + 1, which the whole range holds afterwards; both must be
 * above 0. bytes and block_bytes are whole blocks of the pattern. Buffers lie in the arena; when it
 * has no room for depth of them, fewer are in flight. arena may be NULL: then they lie elsewhere.
 * Adds to *report, which the caller has zeroed. 0: done, or stopped by I/O errors or by interrupted
 * (see report); -1: could not be done, see err. */
int verify_path(struct lp_queue *q, struct lp_queue *below, void *arena, size_t arena_size,
                const struct pattern *pattern, uint64_t bytes, uint64_t block_bytes, unsigned depth,
                uint32_t page_size, uint64_t generation, const volatile sig_atomic_t *interrupted,
                struct verify_report *report, struct lp_error *err);

#endif
