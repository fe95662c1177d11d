/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/prep.h"
#include "host/iommu.h"

#include "base/rng.h"

#include <errno.h>
#include <stdlib.h>

enum { BLOCK_BOUNCE = 32 << 20, OTHER_BOUNCE = 4 << 20 }; /* bytes a queue */

struct prep;

struct prep_slot {
    struct lp_request child;
    struct lp_request *parent;
    struct prep *prep;
    struct prep_slot *next_free;
    uint32_t base;  /* its first entry */
    uint32_t pages; /* mapped */
    bool invalidating;
};

struct prep {
    struct lp_queue q;
    struct lp_queue *lower;
    struct prep_opts opts;
    struct iommu mmu;
    struct rng rng;
    uint32_t pool_base, pool; /* MULTI: entries that nobody owns */
    struct prep_slot *slots, *free_slots;
    unsigned in_use;              /* slots */
    int children_ended, finished; /* during one poll below: data and invalidations; requests */
    bool at_once;                 /* all that is submitted below ends in the next poll */
};

static enum lp_prep mode_of(const struct prep_opts *o)
{
    return o->mode == LP_PREP_MULTI && o->guard ? LP_PREP_PAGE : o->mode;
}

/* Pages that PREP_MAX_TRANSFER bytes can touch. */
static uint32_t block_pages(const struct prep_opts *o)
{
    return PREP_MAX_TRANSFER / o->page_size + 1;
}

/* Entries that a slot owns. */
static uint32_t stride(const struct prep_opts *o)
{
    return mode_of(o) == LP_PREP_BLOCK ? block_pages(o) : 1;
}

static uint32_t pool_entries(const struct prep_opts *o)
{
    uint32_t pool = o->table_entries ? o->table_entries : PREP_DEFAULT_POOL;

    if (mode_of(o) != LP_PREP_MULTI)
        return 0;
    return pool < block_pages(o) ? block_pages(o) : pool; /* one task must fit */
}

size_t prep_table_size(const struct prep_opts *o)
{
    return ((size_t)o->depth * stride(o) + pool_entries(o)) * sizeof(iommu_entry);
}

size_t prep_bounce_size(const struct prep_opts *o)
{
    size_t pages = (size_t)o->depth * o->page_size;

    if (mode_of(o) == LP_PREP_PAGE)
        return pages;
    return mode_of(o) == LP_PREP_BLOCK ? BLOCK_BOUNCE : OTHER_BOUNCE;
}

void prep_fit_opts(const struct prep_opts *o, struct lp_fit_opts *fit)
{
    fit->page_size = o->page_size;
    fit->always_bounce = fit->bounce_per_page = mode_of(o) != LP_PREP_MULTI;
    fit->window = mode_of(o) == LP_PREP_PAGE ? 1 : 0;
}

/* ---- map, unmap ---- */

static void map(struct prep *p, struct prep_slot *s, const struct iovec *v)
{
    size_t at = (size_t)((const char *)v->iov_base - (const char *)p->opts.arena);
    uint32_t size = p->opts.page_size;
    uint32_t page = (uint32_t)(at / size), byte = (uint32_t)(at % size);
    uint32_t next = s->base + 1;

    s->pages = (uint32_t)((byte + v->iov_len + size - 1) / size);
    if (p->pool && s->pages > 1)
        next = p->pool_base + (uint32_t)rng_below(&p->rng, p->pool - (s->pages - 1) + 1);
    for (uint32_t k = 1; k < s->pages; k++)
        iommu_map(&p->mmu, next + k - 1, page + k, 0);
    iommu_map(&p->mmu, s->base, page, next);
    s->child.dma = (uint64_t)s->base * size + byte;
}

static void unmap(struct prep *p, struct prep_slot *s)
{
    uint32_t own = p->pool ? 1 : s->pages;

    for (uint32_t k = 0; k < own; k++)
        iommu_unmap(&p->mmu, s->base + k);
}

/* ---- the queue ---- */

static void finish(struct prep_slot *s)
{
    struct prep *p = s->prep;
    struct lp_request *parent = s->parent;

    s->next_free = p->free_slots;
    p->free_slots = s;
    p->in_use--;
    p->finished++;
    parent->complete(parent);
}

static void child_complete(struct lp_request *child)
{
    struct prep_slot *s = child->user;

    s->prep->children_ended++;
    if (s->invalidating) {
        /* A device that is gone remembers nothing: its error says nothing about the data. */
        finish(s);
        return;
    }
    s->parent->status = child->status;
    unmap(s->prep, s);
    s->invalidating = true;
    child->op = LP_INVALIDATE;
    child->flags = LP_PREPARED;
    child->offset = 0;
    if (lp_queue_submit(s->prep->lower, child) != 0) {
        s->parent->status = -EIO; /* cannot be: the place of the data request is free */
        finish(s);
    }
}

static bool fits(const struct prep *p, const struct lp_request *req)
{
    const struct lp_limits *l = &p->q.limits;
    uintptr_t from, arena = (uintptr_t)p->opts.arena;

    if (req->iovcnt != 1 || req->length == 0 || req->iov->iov_len != req->length ||
        req->length > l->max_transfer)
        return false;
    from = (uintptr_t)req->iov->iov_base;
    if (from < arena || from - arena > p->opts.arena_size ||
        req->length > p->opts.arena_size - (from - arena))
        return false;
    return l->max_segment == 0 ||
           (from - arena) % p->opts.page_size + req->length <= l->max_segment;
}

static int prep_submit(struct lp_queue *q, struct lp_request *req)
{
    struct prep *p = (struct prep *)q;
    struct prep_slot *s = p->free_slots;

    if (req->op != LP_READ && req->op != LP_WRITE)
        return lp_queue_submit(p->lower, req);
    if (!s)
        return -EAGAIN;
    s->child.op = req->op;
    s->child.flags = req->flags | LP_PREPARED;
    s->child.offset = req->offset;
    s->child.length = req->length;
    s->parent = req;
    s->invalidating = false;
    s->pages = 0;
    if (fits(p, req)) {
        map(p, s, req->iov);
    } else { /* let the lower queue complete it: nothing is mapped, and a block of length 0 is wrong
              */
        s->child.flags = req->flags;
        s->child.iov = NULL;
        s->child.iovcnt = 0;
    }
    if (lp_queue_submit(p->lower, &s->child) != 0) {
        unmap(p, s);
        return -EAGAIN;
    }
    p->free_slots = s->next_free;
    p->in_use++;
    return 0;
}

static void prep_kick(struct lp_queue *q)
{
    lp_queue_kick(((struct prep *)q)->lower);
}

static int prep_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct prep *p = (struct prep *)q;
    unsigned due = p->at_once ? p->in_use : 0, finished = 0;
    int n, ended = 0;

    do { /* while data is done, but no request: its invalidation is still to come */
        p->children_ended = p->finished = 0;
        n = lp_queue_poll(p->lower, ended > 0 ? 0 : wait_ns);
        finished += (unsigned)p->finished;
        ended += n - p->children_ended + p->finished;
    } while (n > 0 && (finished < due || (ended == 0 && wait_ns > 0)));
    return ended;
}

static int prep_wait_fd(struct lp_queue *q)
{
    struct prep *p = (struct prep *)q;
    int fd = lp_queue_wait_fd(p->lower);

    p->at_once = fd == LP_WAIT_NONE;
    return fd;
}

static void prep_nudge(struct lp_queue *q)
{
    lp_queue_nudge(((struct prep *)q)->lower);
}

static void prep_close(struct lp_queue *q)
{
    struct prep *p = (struct prep *)q;

    lp_queue_close(p->lower);
    free(p->slots);
    free(p);
}

static const struct lp_queue_ops prep_ops = {.submit = prep_submit,
                                             .kick = prep_kick,
                                             .poll = prep_poll,
                                             .close = prep_close,
                                             .wait_fd = prep_wait_fd,
                                             .nudge = prep_nudge};

static void set_limits(struct prep *p)
{
    struct lp_limits *l = &p->q.limits;
    bool page = mode_of(&p->opts) == LP_PREP_PAGE;

    *l = p->lower->limits;
    l->arena = p->opts.arena;
    l->arena_size = p->opts.arena_size;
    l->max_segments = 1;
    l->max_segment = page ? p->opts.page_size : 0;
    l->max_transfer = page ? p->opts.page_size : PREP_MAX_TRANSFER;
    l->depth = p->opts.depth;
}

static int check_table(const struct prep_opts *o, struct lp_error *err)
{
    size_t size = prep_table_size(o);

    if (size / sizeof(iommu_entry) > UINT32_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the translation table would have %zu entries, more than 32 bits can "
                            "number: ask for fewer entries or less depth",
                            size / sizeof(iommu_entry));
    if (o->iommu_size < size)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the translation table has %zu bytes and depth %u needs %zu: make it "
                            "larger or the depth less",
                            o->iommu_size, o->depth, size);
    return 0;
}

struct lp_queue *prep_open(struct lp_queue *lower, const struct prep_opts *opts,
                           struct lp_error *err)
{
    struct prep *p = NULL;

    if (check_table(opts, err) != 0) {
        lp_queue_close(lower);
        return NULL;
    }
    p = calloc(1, sizeof *p);
    if (p)
        p->slots = calloc(opts->depth, sizeof *p->slots);
    if (!p || !p->slots) {
        lp_error_sys(err, ENOMEM, "cannot make a queue that prepares %u requests", opts->depth);
        free(p);
        lp_queue_close(lower);
        return NULL;
    }
    p->q.ops = &prep_ops;
    p->lower = lower;
    p->opts = *opts;
    p->mmu = iommu_view(opts->iommu, opts->iommu_size, opts->page_size, opts->arena_size);
    p->rng.state = opts->seed;
    p->pool = pool_entries(opts);
    p->pool_base = opts->depth * stride(opts);
    for (unsigned i = opts->depth; i-- > 0;) {
        struct prep_slot *s = &p->slots[i];
        s->prep = p;
        s->base = i * stride(opts);
        s->child.user = s;
        s->child.complete = child_complete;
        s->next_free = p->free_slots;
        p->free_slots = s;
    }
    set_limits(p);
    return &p->q;
}
