/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a fit: what a piece can be, and the pools, so that no request allocates anything. */
#include "disk/fit_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BOUNCE_SLOT = 256 << 10,      /* bytes, where pieces are only bounced now and then */
    ALWAYS_BOUNCE_SLOT = 1 << 20, /* bytes, where each of them is: as large as they get */
    DEFAULT_BOUNCE_SLOTS = 8,
};

static uint64_t round_down(uint64_t n, uint64_t to)
{
    return n - n % to;
}

static int derive_caps(struct fit *f, struct lp_error *err)
{
    struct lp_limits *l = &f->limits;

    f->unit = l->block_size;
    f->max_segs =
        l->max_segments && l->max_segments < FIT_MAX_SEGMENTS ? l->max_segments : FIT_MAX_SEGMENTS;
    f->cap = l->max_transfer ? l->max_transfer : (uint64_t)1 << 40;
    uint64_t segment = round_down(l->max_segment, l->mem_align);
    if (l->max_segment && segment * f->max_segs < f->cap)
        f->cap = segment * f->max_segs;
    f->cap = round_down(f->cap, f->unit);
    if (f->cap == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the limits (transfer %u, segment %u, segments %u) leave no room for a "
                            "block of %u bytes: raise them",
                            l->max_transfer, l->max_segment, l->max_segments, f->unit);
    l->max_segment = (uint32_t)segment;
    return 0;
}

/* Bounce memory of the caller's must be what a segment must be. */
static int check_bounce(const struct fit *f, size_t align, struct lp_error *err)
{
    const struct lp_limits *l = &f->limits;
    size_t start = f->opts.bounce_per_page ? align : l->mem_align;

    if (!f->opts.bounce)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "data outside the arena has to be copied into it: give a part of the "
                            "arena as bounce memory");
    if (!fit_inside_arena(l, f->opts.bounce, f->opts.bounce_size))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the bounce memory (%zu bytes at %p) does not lie in the arena (%zu "
                            "bytes at %p): give a part of the arena",
                            f->opts.bounce_size, f->opts.bounce, l->arena_size,
                            (const void *)l->arena);
    if ((uintptr_t)f->opts.bounce % start != 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the bounce memory begins at %p: let it begin at a multiple of %zu",
                            f->opts.bounce, start);
    return 0;
}

static int own_bounce(struct fit *f, size_t align, struct lp_error *err)
{
    size_t size = f->bounce_slot * DEFAULT_BOUNCE_SLOTS;

    if (posix_memalign(&f->own_bounce, 4096 > align ? 4096 : align, size) != 0)
        return lp_error_sys(err, ENOMEM, "cannot make bounce memory of %zu bytes", size);
    memset(f->own_bounce, 0, size);
    f->opts.bounce = f->own_bounce;
    f->opts.bounce_size = size;
    return 0;
}

static int carve_bounces(struct fit *f, struct lp_error *err)
{
    size_t align =
        f->opts.bounce_per_page && f->opts.page_size > f->unit ? f->opts.page_size : f->unit;
    uint64_t most = f->opts.always_bounce ? ALWAYS_BOUNCE_SLOT : BOUNCE_SLOT;
    bool given = f->opts.bounce || f->limits.arena;

    f->bounce_slot = (size_t)(f->cap < most ? f->cap : most);
    f->bounce_slot = (f->bounce_slot + align - 1) / align * align;
    if ((given ? check_bounce(f, align, err) : own_bounce(f, align, err)) != 0)
        return -1;
    if (f->opts.bounce_size < f->bounce_slot) /* little memory: smaller pieces */
        f->bounce_slot = round_down(f->opts.bounce_size, align);
    if (f->bounce_slot == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%zu bytes of bounce memory are less than one block of %zu: give more",
                            f->opts.bounce_size, align);
    size_t count = f->opts.bounce_size / f->bounce_slot;
    f->free_bounces = calloc(count, sizeof *f->free_bounces);
    if (!f->free_bounces)
        return lp_error_sys(err, ENOMEM, "cannot make a list of %zu bounces", count);
    for (size_t i = count; i-- > 0;)
        f->free_bounces[f->bounce_count++] = (char *)f->opts.bounce + i * f->bounce_slot;
    return 0;
}

static int make_pools(struct fit *f, struct lp_error *err)
{
    unsigned pieces = f->limits.depth ? f->limits.depth : f->opts.depth;

    f->parents = calloc(f->opts.depth, sizeof *f->parents);
    f->pieces = calloc(pieces, sizeof *f->pieces);
    f->iovs = calloc((size_t)pieces * FIT_MAX_SEGMENTS, sizeof *f->iovs);
    if (!f->parents || !f->pieces || !f->iovs)
        return lp_error_sys(err, ENOMEM, "cannot make %u pieces of requests", pieces);
    for (unsigned i = f->opts.depth; i-- > 0;) {
        f->parents[i].next = f->free_parents;
        f->free_parents = &f->parents[i];
    }
    for (unsigned i = pieces; i-- > 0;) {
        struct piece *piece = &f->pieces[i];
        piece->iov = f->iovs + (size_t)i * FIT_MAX_SEGMENTS;
        piece->req.user = piece;
        piece->req.complete = fit_piece_complete;
        fit_piece_free(f, piece);
    }
    return 0;
}

struct lp_queue *lp_fit_open(struct lp_queue *lower, const struct lp_limits *limits,
                             const struct lp_fit_opts *opts, struct lp_error *err)
{
    struct fit *f = calloc(1, sizeof *f);

    if (!f) {
        lp_error_sys(err, ENOMEM, "cannot make a queue that splits requests");
        lp_queue_close(lower);
        return NULL;
    }
    f->q.ops = &fit_ops;
    f->lower = lower;
    f->wait_fd = LP_WAIT_NEVER;
    f->limits = *limits;
    f->opts = *opts;
    /* Whole blocks are made of aligned segments: a block has at least the alignment's size. */
    if (f->limits.block_size < f->limits.mem_align)
        f->limits.block_size = f->limits.mem_align;
    f->q.limits = f->limits;
    f->q.limits.mem_align = 1;
    f->q.limits.max_transfer = f->q.limits.max_segment = f->q.limits.max_segments = 0;
    f->q.limits.depth = opts->depth;
    f->q.limits.arena = NULL;
    f->q.limits.arena_size = 0;
    if (derive_caps(f, err) == 0 && carve_bounces(f, err) == 0 && make_pools(f, err) == 0)
        return &f->q;
    lp_queue_close(&f->q);
    return NULL;
}
