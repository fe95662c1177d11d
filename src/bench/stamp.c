/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/stamp.h"

#include "bench/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20, BUFFER_ALIGN = 4096, POISON = 0xa5 };

int stamp_open(struct stamp *s, struct lp_error *err)
{
    uint64_t pieces = PIECE / s->block_bytes;
    void *buffer = NULL;

    s->generation = 1;
    s->buffer_bytes = (pieces ? pieces : 1) * s->block_bytes;
    s->touched = calloc(s->bytes / s->block_bytes, 1);
    if (!s->touched || posix_memalign(&buffer, BUFFER_ALIGN, s->buffer_bytes) != 0) {
        stamp_close(s);
        return lp_error_sys(err, ENOMEM, "checking the timed data");
    }
    s->buffer = buffer;
    return 0;
}

void stamp_close(struct stamp *s)
{
    free(s->touched);
    free(s->buffer);
    s->touched = NULL;
    s->buffer = NULL;
}

uint64_t stamp_next_generation(struct stamp *s)
{
    s->whole = false;
    return ++s->generation;
}

static bool stopped(const struct stamp *s)
{
    return s->interrupted && *s->interrupted;
}

static int disk_write(struct stamp *s, uint64_t offset, uint64_t bytes, struct lp_error *err)
{
    pattern_fill(&s->pattern, s->buffer, bytes, offset, s->generation);
    int rc = lp_queue_write(s->below, offset, s->buffer, bytes);
    return rc == 0 ? 0 : lp_error_sys(err, -rc, "writing the disk at %" PRIu64, offset);
}

static uint64_t piece_at(const struct stamp *s, uint64_t offset, uint64_t end)
{
    return end - offset < s->buffer_bytes ? end - offset : s->buffer_bytes;
}

int stamp_restore(struct stamp *s, uint64_t bytes, struct lp_error *err)
{
    for (uint64_t at = 0; at < bytes && !stopped(s); at += s->buffer_bytes)
        if (disk_write(s, at, piece_at(s, at, bytes), err) != 0)
            return -1;
    s->whole = !stopped(s);
    return 0;
}

int stamp_prepare(struct stamp *s, enum result_direction direction, char *arena,
                  struct lp_error *err)
{
    memset(s->touched, 0, s->bytes / s->block_bytes);
    if (direction == RESULT_READ) {
        memset(arena, POISON, s->bytes);
        return s->whole ? 0 : stamp_restore(s, s->bytes, err);
    }
    stamp_next_generation(s);
    pattern_fill(&s->pattern, arena, s->bytes, 0, s->generation);
    /* A mix reads what it has not yet written: all of it must be there. */
    return direction == RESULT_MIXED ? stamp_restore(s, s->bytes, err) : 0;
}

void stamp_sentence(const char *what, const struct pattern_finding *f, char *buf, size_t len)
{
    char found[96] = "";

    if (f->fault == PATTERN_STALE || f->fault == PATTERN_FUTURE)
        snprintf(found, sizeof found, ", found %" PRIu64, f->found_generation);
    else if (f->fault == PATTERN_MISDIRECTED)
        snprintf(found, sizeof found, ", found the data of %" PRIu64, f->found_address);
    snprintf(buf, len,
             "%s: %s at disk offset %" PRIu64 ", wrong from byte %u of the block on (%u byte%s); "
             "expected generation %" PRIu64 "%s.",
             what, pattern_fault_name(f->fault), f->block_offset, f->first_wrong, f->wrong_bytes,
             units_s(f->wrong_bytes), f->expected_generation, found);
}

/* The touched blocks of [offset, offset + bytes), which is at data. Returns the wrong ones. */
static uint64_t check_piece(struct stamp *s, const char *what, const char *data, uint64_t offset,
                            uint64_t bytes, struct result_verify *verify)
{
    uint64_t wrong = 0;

    for (uint64_t at = 0; at < bytes; at += s->block_bytes) {
        struct pattern_finding first;
        if (!s->touched[(offset + at) / s->block_bytes])
            continue;
        uint64_t n = pattern_check(&s->pattern, data + at, s->block_bytes, offset + at,
                                   s->generation, &first);
        verify->checked_bytes += s->block_bytes;
        if (n > 0 && !verify->first[0])
            stamp_sentence(what, &first, verify->first, sizeof verify->first);
        wrong += n;
    }
    verify->wrong_blocks += wrong;
    return wrong;
}

/* How many of the blocks were touched: none, some or all is what matters. */
static uint64_t count_touched(const struct stamp *s, uint64_t offset, uint64_t bytes)
{
    uint64_t n = 0;

    for (uint64_t at = 0; at < bytes; at += s->block_bytes)
        n += s->touched[(offset + at) / s->block_bytes];
    return n;
}

/* Compares what was written, and writes what was not: then the whole disk bears one generation. */
static int check_disk(struct stamp *s, const char *what, struct result_verify *verify,
                      struct lp_error *err)
{
    for (uint64_t at = 0; at < s->bytes && !stopped(s); at += s->buffer_bytes) {
        uint64_t bytes = piece_at(s, at, s->bytes), wrong = 0;
        uint64_t touched = count_touched(s, at, bytes);
        int rc = touched ? lp_queue_read(s->below, at, s->buffer, bytes) : 0;
        if (rc != 0)
            return lp_error_sys(err, -rc, "reading the disk at %" PRIu64, at);
        if (touched)
            wrong = check_piece(s, what, s->buffer, at, bytes, verify);
        if ((wrong || touched < bytes / s->block_bytes) && disk_write(s, at, bytes, err) != 0)
            return -1;
    }
    s->whole = !stopped(s);
    return 0;
}

int stamp_check(struct stamp *s, enum result_direction direction, const char *arena,
                struct result_verify *verify, struct lp_error *err)
{
    if (direction != RESULT_WRITE)
        for (uint64_t at = 0; at < s->bytes && !stopped(s); at += s->buffer_bytes)
            check_piece(s, direction == RESULT_READ ? "timed READ" : "timed mix, in memory",
                        arena + at, at, piece_at(s, at, s->bytes), verify);
    if (direction == RESULT_READ)
        return 0;
    return check_disk(s, direction == RESULT_WRITE ? "timed WRITE" : "timed mix, on the disk",
                      verify, err);
}
