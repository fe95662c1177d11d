/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The area: each block's generation is known, because a WRITE takes the block one generation up
 * when it is acknowledged. A READ that overlaps no WRITE must bring exactly that generation. One
 * that does may bring any from the acknowledged one at its start to the one in flight at its end,
 * also torn between these: no disk promises more while it is written.
 */
#include "base/clock.h"
#include "bench/verify_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 16, HOT_PART = 8 };

struct state {
    const struct verify_work *w;
    struct rng rng;
    uint64_t cursor[2]; /* blocks from w->first: of READ, WRITE */
    bool turn;          /* STRIPES: whose turn it is */
    uint64_t jobs;
    uint32_t write_id;
    unsigned depth;
    struct verify_job *active; /* by slot; length 0: none */
    uint32_t *low;             /* REWRITE: by slot, each block's acked at the start of its READ */
    size_t low_blocks;         /* of a slot */
};

int verify_area_init(struct verify_area *a, const struct pattern *p, uint64_t bytes, uint64_t base,
                     struct lp_error *err)
{
    *a = (struct verify_area){.pattern = p, .base = base, .blocks = bytes / p->unit};
    a->acked = calloc(a->blocks ? a->blocks : 1, sizeof *a->acked);
    a->written_by = calloc(a->blocks ? a->blocks : 1, sizeof *a->written_by);
    a->writing = calloc(a->blocks ? a->blocks : 1, sizeof *a->writing);
    a->wanted = calloc(a->blocks ? a->blocks : 1, sizeof *a->wanted); /* VERIFY_DATA */
    if (a->wanted && a->acked && a->written_by && a->writing)
        return 0;
    verify_area_free(a);
    return lp_error_sys(err, ENOMEM, "notes on %llu blocks; verify a smaller range",
                        (unsigned long long)(bytes / p->unit));
}

void verify_area_free(struct verify_area *a)
{
    free(a->acked);
    free(a->written_by);
    free(a->writing);
    free(a->wanted);
    *a = (struct verify_area){.acked = NULL};
}

/* One wrong block. When an earlier block of the same WRITE is right, that WRITE is torn. */
static void note_block(struct verify_log *log, const struct verify_shape *shape,
                       const uint8_t *block, struct pattern_finding *f, bool begun)
{
    const bool torn = begun && f->fault == PATTERN_STALE;

    if (torn)
        f->fault = PATTERN_TORN;
    verify_note(log, shape, f, block, VERIFY_DATA, torn);
}

static bool one_byte_repeated(const uint8_t *block, uint32_t unit)
{
    return memcmp(block, block + 1, unit - 1) == 0;
}

/* Zeros with up to 8 bits set are that, and no foreign data. */
static bool flipped_zeros(const uint8_t *block, uint32_t unit, struct pattern_finding *f)
{
    unsigned bits = 0;

    f->wrong_bytes = 0;
    for (uint32_t i = 0; i < unit && bits <= 8; i++) {
        if (block[i] == 0)
            continue;
        if (f->wrong_bytes++ == 0)
            f->first_wrong = i;
        bits += (unsigned)__builtin_popcount(block[i]);
    }
    return bits <= 8;
}

/* Is a block right that was zeroed or discarded? Else *f says what it holds. */
static bool check_erased(const struct verify_area *a, const uint8_t *block, uint64_t at,
                         struct pattern_finding *f)
{
    const struct pattern *p = a->pattern;
    const uint64_t offset = at * p->unit, last = a->base + a->acked[at];
    const bool repeated = one_byte_repeated(block, p->unit);

    if (a->wanted[at] == VERIFY_ZEROS ? repeated && block[0] == 0
                                      : repeated && block[0] != VERIFY_POISON)
        return true;
    /* Not against the last generation: that would be no finding. */
    pattern_check(p, block, p->unit, offset, last + 1, f);
    f->expected_generation = last;
    struct pattern_finding flip = *f;
    if (f->fault == PATTERN_FOREIGN && flipped_zeros(block, p->unit, &flip)) {
        flip.fault = PATTERN_BIT_FLIP;
        *f = flip;
    }
    return a->wanted[at] == VERIFY_ERASED && f->fault == PATTERN_STALE &&
           f->found_address == offset;
}

static void check_each_erased(const struct verify_area *a, struct verify_log *log,
                              const struct verify_shape *shape, const uint8_t *data, uint64_t first,
                              uint64_t count)
{
    const uint32_t unit = a->pattern->unit;
    struct pattern_finding f;

    for (uint64_t i = 0; i < count; i++)
        if (!check_erased(a, data + i * unit, first + i, &f))
            verify_note(log, shape, &f, data + i * unit, (enum verify_wanted)a->wanted[first + i],
                        false);
}

/* Something is wrong in these blocks: which? */
static void check_each(const struct verify_area *a, struct verify_log *log,
                       const struct verify_shape *shape, const uint8_t *data, uint64_t first,
                       uint64_t count)
{
    const struct pattern *p = a->pattern;
    struct pattern_finding f;
    uint32_t right = 0; /* the WRITE that the last right block is of */

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = first + i;
        const uint8_t *block = data + i * p->unit;
        if (a->acked[at] == 0 || a->wanted[at] != VERIFY_DATA)
            continue;
        if (pattern_check(p, block, p->unit, at * p->unit, a->base + a->acked[at], &f) == 0)
            right = a->written_by[at];
        else
            note_block(log, shape, block, &f, right == a->written_by[at]);
    }
}

void verify_area_check(const struct verify_area *a, struct verify_log *log,
                       const struct verify_shape *shape, const uint8_t *data, uint64_t first,
                       uint64_t count)
{
    const uint64_t unit = a->pattern->unit;
    const uint32_t *acked = a->acked + first;
    const uint8_t *wanted = a->wanted + first;
    uint64_t wrong = 0;

    for (uint64_t i = 0, end; i < count; i = end) {
        end = i + 1;
        while (end < count && acked[end] == acked[i] && wanted[end] == wanted[i])
            end++;
        if (acked[i] == 0)
            continue;
        log->report->bytes_checked += (end - i) * unit;
        if (wanted[i] != VERIFY_DATA)
            check_each_erased(a, log, shape, data + i * unit, first + i, end - i);
        else
            wrong += pattern_check(a->pattern, data + i * unit, (end - i) * unit,
                                   (first + i) * unit, a->base + acked[i], NULL);
    }
    if (wrong)
        check_each(a, log, shape, data, first, count);
}

void verify_area_wrote(struct verify_area *a, uint64_t first, uint64_t count, uint32_t id)
{
    for (uint64_t i = first; i < first + count; i++) {
        a->acked[i]++;
        a->wanted[i] = VERIFY_DATA;
        a->written_by[i] = id;
        a->writing[i] = 0;
    }
}

/* ---- which blocks ---- */

/* From one block to the largest, each size class as likely as the others. */
static uint64_t random_count(struct state *s)
{
    const uint64_t most = s->w->max_bytes / s->w->area->pattern->unit;
    const unsigned classes = 64 - (unsigned)__builtin_clzll(most);
    uint64_t class_end = (uint64_t)1 << rng_below(&s->rng, classes + 1);
    uint64_t count = 1 + rng_below(&s->rng, class_end);

    return count < most ? count : most;
}

static bool set_job(struct state *s, struct verify_job *job, enum lp_op op, uint64_t at,
                    uint64_t count)
{
    const uint64_t unit = s->w->area->pattern->unit;

    job->op = op;
    job->flags = s->w->order == VERIFY_SOME ? s->w->flags : 0;
    job->offset = (s->w->first + at) * unit;
    job->length = count * unit;
    s->jobs++;
    return true;
}

static bool next_in_order(struct state *s, struct verify_job *job)
{
    const struct verify_work *w = s->w;
    const enum lp_op op = w->order == VERIFY_WRITE_ALL ? LP_WRITE : LP_READ;
    uint64_t at = s->cursor[op], left = w->count - at;
    uint64_t count =
        w->order == VERIFY_READ_SIZES ? random_count(s) : w->max_bytes / w->area->pattern->unit;

    if (left == 0)
        return false;
    count = count < left ? count : left;
    s->cursor[op] = at + count;
    return set_job(s, job, op, at, count);
}

/* The next piece of the stripes that op is for; false when there are no more. */
static bool next_of_stripes(struct state *s, struct verify_job *job, enum lp_op op)
{
    const struct verify_work *w = s->w;
    const uint64_t stripe = w->max_bytes / w->area->pattern->unit;
    const unsigned mine = op == LP_WRITE ? w->stripe : 1 - w->stripe;
    uint64_t at = s->cursor[op];

    if (at / stripe % 2 != mine)
        at = (at / stripe + 1) * stripe;
    if (at >= w->count)
        return false;
    uint64_t left = stripe - at % stripe, count = random_count(s);
    left = left < w->count - at ? left : w->count - at;
    count = count < left ? count : left;
    s->cursor[op] = at + count;
    return set_job(s, job, op, at, count);
}

/* A piece is taken, the next one left as it is. */
static bool next_of_some(struct state *s, struct verify_job *job)
{
    const struct verify_work *w = s->w;
    uint64_t at = s->cursor[0], left = w->count - at, count = random_count(s);

    if (left == 0)
        return false;
    count = count < left ? count : left;
    left -= count;
    uint64_t leave = random_count(s);
    s->cursor[0] = at + count + (leave < left ? leave : left);
    return set_job(s, job, w->op, at, count);
}

static bool next_stripe(struct state *s, struct verify_job *job)
{
    s->turn = !s->turn;
    return next_of_stripes(s, job, s->turn ? LP_WRITE : LP_READ) ||
           next_of_stripes(s, job, s->turn ? LP_READ : LP_WRITE);
}

/* Two jobs in flight share no block, but where rewriting under a READ is what is looked at. */
static bool in_the_way(const struct state *s, const struct verify_job *job)
{
    for (unsigned i = 0; i < s->depth; i++) {
        const struct verify_job *other = &s->active[i];
        bool apart = job->offset + job->length <= other->offset ||
                     other->offset + other->length <= job->offset;
        if (other->length == 0 || apart)
            continue;
        if (s->w->order == VERIFY_RANDOM || (job->op == LP_WRITE && other->op == LP_WRITE))
            return true;
    }
    return false;
}

static bool next_random(struct state *s, struct verify_job *job)
{
    const struct verify_work *w = s->w;
    const bool hot = w->order == VERIFY_REWRITE && rng_below(&s->rng, 4) != 0;
    const uint64_t range = hot && w->count > HOT_PART ? w->count / HOT_PART : w->count;

    if (s->jobs >= w->jobs && clock_now_ns() >= w->until)
        return false;
    for (int i = 0; i < TRIES; i++) {
        enum lp_op op = rng_below(&s->rng, 2) ? LP_WRITE : LP_READ;
        uint64_t at = rng_below(&s->rng, range), count = random_count(s);
        set_job(s, job, op, at, count < w->count - at ? count : w->count - at);
        if (!in_the_way(s, job))
            return true;
        s->jobs--;
    }
    return false;
}

static bool next(void *user, struct verify_job *job)
{
    struct state *s = user;
    const struct verify_area *a = s->w->area;
    bool got;

    if (s->w->order == VERIFY_STRIPES)
        got = next_stripe(s, job);
    else if (s->w->order == VERIFY_SOME)
        got = next_of_some(s, job);
    else if (s->w->order == VERIFY_RANDOM || s->w->order == VERIFY_REWRITE)
        got = next_random(s, job);
    else
        got = next_in_order(s, job);
    if (!got)
        return false;
    const uint64_t first = job->offset / a->pattern->unit, count = job->length / a->pattern->unit;
    s->active[job->slot] = *job;
    if (job->op != LP_READ)
        memset(a->writing + first, job->op == LP_WRITE, count);
    else if (s->low)
        memcpy(s->low + job->slot * s->low_blocks, a->acked + first, count * sizeof *s->low);
    return true;
}

/* ---- what they hold ---- */

static void fill(void *user, const struct verify_job *job, uint8_t *data)
{
    const struct state *s = user;
    const struct verify_area *a = s->w->area;
    const uint32_t unit = a->pattern->unit;

    for (uint64_t at = 0; at < job->length; at += unit) {
        uint64_t offset = job->offset + at;
        pattern_fill(a->pattern, data + at, unit, offset, a->base + a->acked[offset / unit] + 1);
    }
}

/* A block that was rewritten meanwhile. */
static void check_between(const struct state *s, const struct verify_shape *shape,
                          const uint8_t *block, uint64_t offset, uint64_t low, uint64_t high)
{
    const struct pattern *p = s->w->area->pattern;
    struct pattern_finding f;

    s->w->log->report->bytes_checked += p->unit;
    for (uint64_t g = high; g > low; g--)
        if (pattern_check(p, block, p->unit, offset, g, NULL) == 0)
            return;
    if (pattern_check(p, block, p->unit, offset, low, &f) == 0)
        return;
    const bool between =
        f.found_address == offset && f.found_generation >= low && f.found_generation <= high;
    if (between && f.fault == PATTERN_TORN)
        return;
    if (between) /* its own generation is not what is wrong with it */
        pattern_check(p, block, p->unit, offset, f.found_generation, &f);
    verify_note(s->w->log, shape, &f, block, VERIFY_DATA, false);
}

static void check(void *user, const struct verify_job *job, const struct verify_shape *shape,
                  const uint8_t *data)
{
    const struct state *s = user;
    const struct verify_area *a = s->w->area;
    const uint64_t unit = a->pattern->unit, first = job->offset / unit, count = job->length / unit;
    const uint32_t *acked = a->acked + first;
    const uint8_t *writing = a->writing + first;
    const uint32_t *low = s->low ? s->low + job->slot * s->low_blocks : acked;

    for (uint64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && low[end] == acked[end] && !writing[end];)
            end++;
        if (end > i) {
            verify_area_check(a, s->w->log, shape, data + i * unit, first + i, end - i);
            continue;
        }
        if (low[i] != 0)
            check_between(s, shape, data + i * unit, (first + i) * unit, a->base + low[i],
                          a->base + acked[i] + writing[i]);
        end = i + 1;
    }
}

static void ended(void *user, const struct verify_job *job, int status)
{
    struct state *s = user;
    struct verify_area *a = s->w->area;
    const uint64_t first = job->offset / a->pattern->unit, count = job->length / a->pattern->unit;

    s->active[job->slot].length = 0;
    if (job->op == LP_READ)
        return;
    if (status != 0)
        memset(a->acked + first, 0, count * sizeof *a->acked); /* nobody knows */
    else if (job->op == LP_WRITE)
        verify_area_wrote(a, first, count, ++s->write_id);
    else
        memset(a->wanted + first, job->op == LP_DISCARD ? VERIFY_ERASED : VERIFY_ZEROS, count);
}

int verify_work_run(const struct verify_work *w, struct lp_error *err)
{
    struct state s = {
        .w = w, .rng = {w->seed}, .low_blocks = w->max_bytes / w->area->pattern->unit};
    const struct verify_flow flow = {.q = w->q,
                                     .log = w->log,
                                     .depth = w->depth,
                                     .max_bytes = w->max_bytes,
                                     .arena = w->arena,
                                     .arena_size = w->arena_size,
                                     .odd = w->odd,
                                     .seed = rng_mix(w->seed),
                                     .next = next,
                                     .fill = fill,
                                     .check = check,
                                     .ended = ended,
                                     .user = &s};
    const bool snapshots = w->order == VERIFY_REWRITE;

    s.depth = verify_flow_depth(&flow);
    s.active = calloc(s.depth, sizeof *s.active);
    s.low = snapshots ? calloc(s.depth * s.low_blocks, sizeof *s.low) : NULL;
    int rc = !s.active || (snapshots && !s.low) ? lp_error_sys(err, ENOMEM, "notes on requests")
                                                : verify_flow_run(&flow, err);
    free(s.active);
    free(s.low);
    return rc;
}

int verify_disk_itself(struct verify_area *a, struct lp_queue *q, struct verify_log *log,
                       struct lp_error *err)
{
    const struct lp_limits *limits = &q->limits;
    uint64_t most = VERIFY_LARGE_BYTES;

    if (limits->max_transfer && limits->max_transfer < most)
        most = limits->max_transfer;
    if (limits->max_segment && limits->max_segment < most)
        most = limits->max_segment;
    most -= most % a->pattern->unit;
    if (most == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the disk takes less than one block of %u bytes in a request",
                            a->pattern->unit);
    const struct verify_work work = {.area = a,
                                     .log = log,
                                     .q = q,
                                     .order = VERIFY_READ_ALL,
                                     .count = a->blocks,
                                     .max_bytes = most,
                                     .depth = 1};
    return verify_work_run(&work, err);
}
