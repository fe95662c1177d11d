/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/dma.h"
#include "host/iommu.h"
#include "host/prep.h"

#include "base/request_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TLB_ENTRIES = 64 };

struct tlb_entry {
    bool valid;
    uint32_t index, page, next;
};

struct dma;

struct dma_slot {
    struct lp_request child;
    struct lp_request *parent;
    struct dma *dma;
    struct dma_slot *next_free;
    struct iovec *iov; /* max_iov */
};

struct dma {
    struct lp_queue q;
    struct lp_queue *lower;
    struct iommu mmu;
    char *arena;
    uint32_t max_iov;
    struct dma_slot *slots, *free_slots;
    struct iovec *iovs;
    struct request_list done; /* ended without the disk */
    int wait_fd;              /* as wait_fd() said last */
    struct tlb_entry tlb[TLB_ENTRIES];
};

static bool translate(struct dma *d, uint32_t index, uint32_t *page, uint32_t *next)
{
    struct tlb_entry *t = &d->tlb[index % TLB_ENTRIES];

    if (!t->valid || t->index != index) {
        t->valid = iommu_lookup(&d->mmu, index, &t->page, &t->next);
        t->index = index;
    }
    *page = t->page;
    *next = t->next;
    return t->valid;
}

static void add_bytes(struct dma_slot *s, char *base, size_t length)
{
    struct iovec *last = s->child.iovcnt ? &s->iov[s->child.iovcnt - 1] : NULL;

    if (last && (char *)last->iov_base + last->iov_len == base)
        last->iov_len += length;
    else
        s->iov[s->child.iovcnt++] = (struct iovec){base, length};
}

/* The request's pages as segments; 0 or -EFAULT. */
static int collect(struct dma *d, struct dma_slot *s, const struct lp_request *req)
{
    uint32_t size = d->mmu.page_size, page, next = 0, unused;
    uint64_t first = req->dma / size;
    size_t byte = (size_t)(req->dma % size);
    uint64_t left = req->length;

    s->child.iovcnt = 0;
    for (uint32_t k = 0; left > 0; k++) {
        /* next + k - 1 may wrap around: iommu_lookup() bounds whatever comes out. */
        uint64_t index = k == 0 ? first : (uint32_t)(next + k - 1);
        size_t n = size - byte < left ? size - byte : (size_t)left;
        if (index > UINT32_MAX || !translate(d, (uint32_t)index, &page, k == 0 ? &next : &unused))
            return -EFAULT;
        add_bytes(s, d->arena + (size_t)page * size + byte, n);
        left -= n;
        byte = 0;
    }
    return 0;
}

static void finish_early(struct dma *d, struct lp_request *req, int status)
{
    req->status = status;
    list_add(&d->done, req);
}

static void child_complete(struct lp_request *child)
{
    struct dma_slot *s = child->user;
    struct lp_request *parent = s->parent;

    s->next_free = s->dma->free_slots;
    s->dma->free_slots = s;
    parent->status = child->status;
    parent->complete(parent);
}

static int submit_data(struct dma *d, struct lp_request *req)
{
    struct dma_slot *s = d->free_slots;

    if (!s)
        return -EAGAIN;
    if (!(req->flags & LP_PREPARED) || req->length > PREP_MAX_TRANSFER) {
        finish_early(d, req, -EINVAL);
        return 0;
    }
    int e = collect(d, s, req);
    if (e != 0) {
        finish_early(d, req, e);
        return 0;
    }
    s->parent = req;
    s->child.op = req->op;
    s->child.flags = req->flags & ~(uint32_t)LP_PREPARED;
    s->child.offset = req->offset;
    s->child.length = req->length;
    s->child.iov = s->iov;
    e = lp_queue_submit(d->lower, &s->child);
    if (e == 0)
        d->free_slots = s->next_free;
    return e;
}

static int dma_submit(struct lp_queue *q, struct lp_request *req)
{
    struct dma *d = (struct dma *)q;

    if (req->op == LP_READ || req->op == LP_WRITE)
        return submit_data(d, req);
    if (req->op != LP_INVALIDATE)
        return lp_queue_submit(d->lower, req);
    memset(d->tlb, 0, sizeof d->tlb);
    finish_early(d, req, 0);
    return 0;
}

static void dma_kick(struct lp_queue *q)
{
    struct dma *d = (struct dma *)q;

    /* What ended without the disk is seen from outside like what the disk has ended. */
    if (d->done.first && d->wait_fd >= 0)
        lp_queue_nudge(d->lower);
    lp_queue_kick(d->lower);
}

static int dma_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct dma *d = (struct dma *)q;
    struct request_list now = list_take_all(&d->done);
    struct lp_request *req;
    int n = 0;

    for (; (req = list_take(&now)) != NULL; n++)
        req->complete(req);
    return n + lp_queue_poll(d->lower, n > 0 ? 0 : wait_ns);
}

static int dma_wait_fd(struct lp_queue *q)
{
    struct dma *d = (struct dma *)q;

    d->wait_fd = lp_queue_wait_fd(d->lower);
    return d->wait_fd;
}

static void dma_nudge(struct lp_queue *q)
{
    lp_queue_nudge(((struct dma *)q)->lower);
}

static void dma_close(struct lp_queue *q)
{
    struct dma *d = (struct dma *)q;

    lp_queue_close(d->lower);
    free(d->slots);
    free(d->iovs);
    free(d);
}

static const struct lp_queue_ops dma_ops = {.submit = dma_submit,
                                            .kick = dma_kick,
                                            .poll = dma_poll,
                                            .close = dma_close,
                                            .wait_fd = dma_wait_fd,
                                            .nudge = dma_nudge};

static int make_slots(struct dma *d, unsigned depth)
{
    d->slots = calloc(depth, sizeof *d->slots);
    d->iovs = calloc((size_t)depth * d->max_iov, sizeof *d->iovs);
    if (!d->slots || !d->iovs)
        return -1;
    for (unsigned i = depth; i-- > 0;) {
        struct dma_slot *s = &d->slots[i];
        s->dma = d;
        s->iov = d->iovs + (size_t)i * d->max_iov;
        s->child.user = s;
        s->child.complete = child_complete;
        s->next_free = d->free_slots;
        d->free_slots = s;
    }
    return 0;
}

struct lp_queue *dma_open(struct lp_queue *lower, const struct dma_opts *opts, struct lp_error *err)
{
    struct dma *d = calloc(1, sizeof *d);

    if (!d) {
        lp_error_sys(err, ENOMEM, "cannot make the device's access to memory");
        lp_queue_close(lower);
        return NULL;
    }
    d->q.ops = &dma_ops;
    d->q.limits = lower->limits;
    d->q.limits.max_transfer = PREP_MAX_TRANSFER;
    d->q.limits.depth = opts->depth;
    d->lower = lower;
    d->wait_fd = LP_WAIT_NEVER;
    d->mmu = iommu_view(opts->iommu, opts->iommu_size, opts->page_size, opts->arena_size);
    d->arena = opts->arena;
    d->max_iov = PREP_MAX_TRANSFER / opts->page_size + 1;
    if (make_slots(d, opts->depth) == 0)
        return &d->q;
    lp_error_sys(err, ENOMEM, "cannot make the device's access to memory");
    dma_close(&d->q);
    return NULL;
}
