/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A disk that must not be written: nobody knows what it must hold, but reading twice must bring the
 * same. A window at a time is read plainly and then again in every other way there is.
 */
#include "bench/verify_int.h"

#include <lunpath/fit.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16 << 20, TWICE_DEPTH = 8, MAX_WAYS = 4 };

struct way { /* over a queue, or mapped */
    const char *phase;
    struct lp_disk *disk; /* to be closed with it */
    struct lp_queue *q;
    struct verify_map map;
    bool odd;
};

struct twice {
    struct verify_log *log;
    struct rng rng;
    unsigned count;
    struct way ways[MAX_WAYS];
    uint8_t *first; /* the window as it was read first */
    uint64_t start, bytes, cursor;
    bool keep; /* this is the first reading */
    bool lost; /* it failed somewhere: there is nothing to compare with */
};

static enum pattern_fault name_difference(const uint8_t *first, const uint8_t *second, uint32_t n,
                                          struct pattern_finding *f)
{
    unsigned bits = 0;
    bool zeros = true;

    for (uint32_t i = 0; i < n; i++) {
        if (first[i] == second[i])
            continue;
        if (f->wrong_bytes++ == 0)
            f->first_wrong = i;
        bits += (unsigned)__builtin_popcount(first[i] ^ second[i]);
        zeros = zeros && second[i] == 0;
    }
    return bits <= 8 ? PATTERN_BIT_FLIP : zeros ? PATTERN_ZEROS : PATTERN_FOREIGN;
}

static void compare(struct twice *t, const struct verify_shape *shape, const uint8_t *data)
{
    const uint32_t unit = t->log->pattern->unit;
    const uint8_t *first = t->first + (shape->offset - t->start);

    t->log->report->bytes_checked += shape->bytes;
    if (memcmp(first, data, shape->bytes) == 0)
        return;
    for (uint64_t at = 0; at < shape->bytes; at += unit) {
        struct pattern_finding f = {.block_offset = shape->offset + at};
        if (memcmp(first + at, data + at, unit) == 0)
            continue;
        f.fault = name_difference(first + at, data + at, unit, &f);
        verify_note(t->log, shape, &f, data + at, VERIFY_DATA, false);
    }
}

static bool next(void *user, struct verify_job *job)
{
    struct twice *t = user;
    const uint64_t left = t->bytes - t->cursor, unit = t->log->pattern->unit;
    uint64_t length = VERIFY_LARGE_BYTES;

    if (left == 0)
        return false;
    if (!t->keep)
        length = unit * (1 + rng_below(&t->rng, VERIFY_LARGE_BYTES / unit));
    job->op = LP_READ;
    job->flags = 0;
    job->offset = t->start + t->cursor;
    job->length = length < left ? length : left;
    t->cursor += job->length;
    return true;
}

static void check(void *user, const struct verify_job *job, const struct verify_shape *shape,
                  const uint8_t *data)
{
    struct twice *t = user;

    if (t->keep)
        memcpy(t->first + (job->offset - t->start), data, job->length);
    else
        compare(t, shape, data);
}

static void ended(void *user, const struct verify_job *job, int status)
{
    struct twice *t = user;

    (void)job;
    if (status != 0 && t->keep)
        t->lost = true;
}

static int read_queue(struct twice *t, const struct way *w, struct lp_error *err)
{
    const struct verify_flow flow = {.q = w->q,
                                     .log = t->log,
                                     .depth = TWICE_DEPTH,
                                     .max_bytes = VERIFY_LARGE_BYTES,
                                     .odd = w->odd,
                                     .seed = rng_next(&t->rng),
                                     .next = next,
                                     .check = check,
                                     .ended = ended,
                                     .user = t};

    t->cursor = 0;
    return verify_flow_run(&flow, err);
}

static int read_map(struct twice *t, const struct way *w)
{
    const struct verify_shape shape = {t->start, t->bytes, 1, 1};
    int status = verify_map_populate(&w->map, (size_t)t->start, (size_t)t->bytes);

    t->log->report->requests++;
    if (status != 0)
        verify_error(t->log, LP_READ, &shape, status);
    else
        compare(t, &shape, w->map.base + t->start);
    return 0;
}

static int one_window(struct twice *t, struct lp_error *err)
{
    t->lost = false;
    for (unsigned i = 0; i < t->count && !t->lost && !verify_stop(t->log); i++) {
        struct way *w = &t->ways[i];
        t->keep = i == 0;
        t->log->phase = w->phase;
        if ((w->q ? read_queue(t, w, err) : read_map(t, w)) != 0)
            return -1;
    }
    return 0;
}

/* ---- the ways there are ---- */

static void close_ways(struct twice *t)
{
    for (unsigned i = 0; i < t->count; i++) {
        lp_queue_close(t->ways[i].q);
        verify_map_close(&t->ways[i].map);
        lp_disk_close(t->ways[i].disk);
    }
    free(t->first);
}

static void skip(struct twice *t, const char *phase, const struct lp_error *why)
{
    verify_say(t->log->report, "%s: skipped, %.200s", phase, why->msg);
}

static int add_queue(struct twice *t, const char *phase, const char *url,
                     const struct lp_disk_opts *opts, bool odd, struct lp_error *err)
{
    const struct lp_fit_opts fit = {.depth = TWICE_DEPTH};
    struct way *w = &t->ways[t->count];

    *w = (struct way){.phase = phase, .odd = odd, .disk = lp_disk_open(url, opts, err)};
    if (w->disk)
        w->q = lp_disk_queue(w->disk, TWICE_DEPTH, err);
    if (w->q)
        w->q = lp_fit_open(w->q, &w->q->limits, &fit, err);
    if (!w->q) {
        lp_disk_close(w->disk);
        return -1;
    }
    t->count++;
    verify_say(t->log->report, "%s", phase);
    return 0;
}

static void add_other_ways(struct twice *t, const char *url, const char *path,
                           const struct lp_disk_opts *disk, uint64_t bytes)
{
    static const char buffered_name[] = "read again, buffered", map_name[] = "read again by mmap";
    struct lp_disk_opts buffered = *disk;
    struct way *w;
    struct lp_error why;

    if (!path) {
        verify_say(t->log->report, "buffered and mmap: skipped, this disk is not a file");
        return;
    }
    buffered.buffered = true;
    if (!disk->buffered && add_queue(t, buffered_name, url, &buffered, true, &why) != 0)
        skip(t, buffered_name, &why);
    w = &t->ways[t->count];
    *w = (struct way){.phase = map_name};
    if (verify_map_open(&w->map, path, bytes, false, &why) != 0) {
        skip(t, map_name, &why);
        return;
    }
    t->count++;
    verify_say(t->log->report, "%s", map_name);
}

int verify_twice(const char *url, const char *path, const struct lp_disk_opts *disk, uint64_t bytes,
                 uint64_t seed, struct verify_log *log, struct lp_error *err)
{
    struct twice t = {.log = log, .rng = {seed}};
    int rc = 0;

    t.first = malloc(WINDOW);
    if (!t.first)
        return lp_error_sys(err, ENOMEM, "memory to compare with");
    if (add_queue(&t, "read plainly", url, disk, false, err) != 0 ||
        add_queue(&t, "read again in odd shapes", url, disk, true, err) != 0)
        rc = -1;
    else
        add_other_ways(&t, url, path, disk, bytes);
    for (t.start = 0; rc == 0 && t.start < bytes && !verify_stop(log); t.start += WINDOW) {
        t.bytes = bytes - t.start < WINDOW ? bytes - t.start : WINDOW;
        rc = one_window(&t, err);
    }
    close_ways(&t);
    return rc;
}
