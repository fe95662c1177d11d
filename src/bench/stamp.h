/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of the timed runs: stamped before the clock starts, checked after it has stopped.
 *
 * The disk is written and looked at through a queue of its own that passes by the measured path.
 * WRITE sends the arena, stamped with a new generation; afterwards each block that was written is
 * compared on the disk. READ lands in an arena that was overwritten before; afterwards each block
 * that was read is compared there. One thread.
 */
#ifndef BENCH_STAMP_H
#define BENCH_STAMP_H

#include "bench/pattern.h"
#include "bench/result.h"

#include <lunpath/error.h>
#include <lunpath/queue.h>
#include <signal.h>

struct stamp {
    struct lp_queue *below; /* takes any request; not owned */
    struct pattern pattern;
    uint64_t bytes;       /* of the disk, from 0 */
    uint64_t block_bytes; /* of the timed requests, a multiple of pattern.unit */
    uint8_t *touched;     /* a byte a block, for the load to set */
    char *buffer;
    uint64_t buffer_bytes; /* a multiple of block_bytes */
    uint64_t generation;   /* the newest */
    bool whole;            /* all of the disk's range bears it */
    const volatile sig_atomic_t *interrupted;
};

/* 0, or -1: no memory. */
int stamp_open(struct stamp *s, struct lp_error *err);
void stamp_close(struct stamp *s); /* harmless on an all-zero struct */

/* Before a series. arena: where byte o belongs at arena + o. 0 or -1. */
int stamp_prepare(struct stamp *s, enum result_direction direction, char *arena,
                  struct lp_error *err);

/* After a series: adds what was found to *verify; what is wrong on the disk is put right. 0; -1:
 * the disk could not be read or written. An interrupt ends it early. */
int stamp_check(struct stamp *s, enum result_direction direction, const char *arena,
                struct result_verify *verify, struct lp_error *err);

/* Writes the newest generation to [0, bytes) of the disk, after somebody else wrote there. */
int stamp_restore(struct stamp *s, uint64_t bytes, struct lp_error *err);

/* A generation that was never used; the disk does not bear it until it is written. */
uint64_t stamp_next_generation(struct stamp *s);

/* One sentence about a finding into buf: "READ: stale data at disk offset 4096 ...". */
void stamp_sentence(const char *what, const struct pattern_finding *f, char *buf, size_t len);

#endif
