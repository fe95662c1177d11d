/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data pattern: every block says whose it is, so that wrong data says what went wrong.
 *
 * A pattern block is `unit` bytes (the disk's block size, 512 at least): a header with magic, seed,
 * address, generation and checksum, then pseudo-random bytes that follow from the header. Any two
 * blocks differ in every 8 bytes, so data that comes from a wrong place is seen wherever it starts.
 * Never zeros, not compressible.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern {
    uint64_t seed;
    uint32_t unit; /* bytes, a power of two from 512 */
};

enum pattern_fault {
    PATTERN_OK,
    PATTERN_STALE,       /* an older generation of the right address */
    PATTERN_FUTURE,      /* a newer generation than was written */
    PATTERN_MISDIRECTED, /* another address's data */
    PATTERN_TORN,        /* begins as one generation or address and goes on as another */
    PATTERN_ZEROS,       /* all that is wrong is zeros */
    PATTERN_BIT_FLIP,    /* up to 8 bits differ in the block */
    PATTERN_FOREIGN,     /* nothing this pattern ever wrote (also another seed) */
};

struct pattern_finding {
    enum pattern_fault fault;
    uint64_t block_offset; /* bytes: address of the wrong block on the disk */
    uint32_t first_wrong;  /* first wrong byte in the block */
    uint32_t wrong_bytes;  /* in the block */
    uint64_t expected_generation;
    /* STALE, FUTURE, MISDIRECTED: of the data found. TORN: of the piece that is wrong. The address
     * is that of the block's first byte at the source, so for displaced data it is not aligned. */
    uint64_t found_generation;
    uint64_t found_address; /* bytes */
};

/* Fills length bytes (a multiple of unit) as they belong at disk address `offset`. Fast (about a
 * memory write: several GB/s), since whole working sets are filled. */
void pattern_fill(const struct pattern *p, void *buf, size_t length, uint64_t offset,
                  uint64_t generation);

/* Checks length bytes read from `offset` against generation. Returns the number of wrong blocks
 * and describes the first in *first when there is one. Fast when all is right. */
uint64_t pattern_check(const struct pattern *p, const void *buf, size_t length, uint64_t offset,
                       uint64_t generation, struct pattern_finding *first);

/* One word or two: "stale", "misdirected", "torn", "zeros", "bit flip" ... */
const char *pattern_fault_name(enum pattern_fault fault);

#endif
