/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three ways for a request: straight through when it meets the limits; as pieces of its own
 * segments; as pieces copied through bounce memory where the segments cannot be used as they lie.
 *
 * Each request that is in flight has a `parent`. One that passes straight through has its
 * completion turned to the parent meanwhile. Parents of split requests that can go on are in the
 * ready list, in order of arrival; a parent whose window is full leaves it and comes back when one
 * of its pieces ends, so the work for a piece does not grow with the number of requests.
 */
#include "base/copy.h"
#include "disk/fit_int.h"

#include <errno.h>
#include <stdlib.h>

/* ---- what meets the limits ---- */

static bool segment_meets(const struct lp_limits *l, const void *base, size_t length)
{
    return (((uintptr_t)base | length) & (l->mem_align - 1)) == 0 &&
           fit_inside_arena(l, base, length);
}

static bool moves_data(const struct lp_request *req)
{
    return req->op == LP_READ || req->op == LP_WRITE;
}

static bool meets_limits(const struct fit *f, const struct lp_request *req)
{
    if (!moves_data(req))
        return !f->limits.max_transfer || req->length <= f->limits.max_transfer;
    if (f->opts.always_bounce || req->length > f->cap || req->iovcnt > f->max_segs)
        return false;
    for (uint32_t i = 0; i < req->iovcnt; i++) {
        const struct iovec *v = &req->iov[i];
        if ((f->limits.max_segment && v->iov_len > f->limits.max_segment) ||
            !segment_meets(&f->limits, v->iov_base, v->iov_len))
            return false;
    }
    return true;
}

/* What no splitting can mend. */
static int check_request(const struct fit *f, const struct lp_request *req)
{
    const struct lp_limits *l = &f->limits;
    uint64_t sum = 0;

    if (req->op == LP_FLUSH || req->op == LP_INVALIDATE)
        return 0;
    if (((req->offset | req->length) & (l->block_size - 1)) || req->length > l->size ||
        req->offset > l->size - req->length)
        return -EINVAL;
    if (l->read_only && req->op != LP_READ)
        return -EROFS;
    if ((req->op == LP_DISCARD && !l->discard) || (req->op == LP_WRITE_ZEROES && !l->write_zeroes))
        return -EOPNOTSUPP;
    if (!moves_data(req))
        return 0;
    for (uint32_t i = 0; i < req->iovcnt; i++) {
        if (req->iov[i].iov_len > req->length - sum)
            return -EINVAL;
        sum += req->iov[i].iov_len;
    }
    return sum == req->length ? 0 : -EINVAL;
}

/* ---- parents ---- */

static void push(struct parent_list *list, struct parent *p)
{
    p->next = NULL;
    if (list->last)
        list->last->next = p;
    else
        list->first = p;
    list->last = p;
}

static struct parent *pop(struct parent_list *list)
{
    struct parent *p = list->first;

    list->first = p->next;
    if (!list->first)
        list->last = NULL;
    return p;
}

static void ready_push(struct fit *f, struct parent *p)
{
    p->ready = true;
    push(&f->ready, p);
}

static void parent_free(struct fit *f, struct parent *p)
{
    p->next = f->free_parents;
    f->free_parents = p;
    f->taken--;
}

static void parent_finish(struct fit *f, struct parent *p)
{
    struct lp_request *req = p->req;

    req->status = p->status;
    parent_free(f, p);
    f->completed++;
    req->complete(req);
}

/* A request that passed straight through has ended. */
static void passed(struct lp_request *req)
{
    struct parent *p = req->user;

    req->complete = p->complete;
    req->user = p->user;
    p->status = req->status;
    parent_finish(p->fit, p);
}

static bool pass(struct fit *f, struct parent *p)
{
    struct lp_request *req = p->req;

    p->complete = req->complete;
    p->user = req->user;
    req->complete = passed;
    req->user = p;
    if (lp_queue_submit(f->lower, req) == 0)
        return true;
    req->complete = p->complete;
    req->user = p->user;
    return false;
}

static bool all_issued(const struct parent *p)
{
    return p->status != 0 || (p->begun && p->issued == p->req->length);
}

static bool has_ended(const struct parent *p)
{
    return all_issued(p) && p->in_flight == 0;
}

/* ---- moving along and copying segments ---- */

static void advance(const struct lp_request *req, uint32_t *seg, size_t *offset, uint64_t length)
{
    while (length > 0 && *seg < req->iovcnt) {
        size_t left = req->iov[*seg].iov_len - *offset;
        if (length < left) {
            *offset += length;
            return;
        }
        length -= left;
        (*seg)++;
        *offset = 0;
    }
}

/* Between the parent's segments, from (seg, offset) on, and a bounce. */
static void copy_segments(const struct lp_request *req, uint32_t seg, size_t offset, char *bounce,
                          uint64_t length, bool to_bounce)
{
    while (length > 0) {
        size_t n = req->iov[seg].iov_len - offset;
        char *at = n > 0 ? (char *)req->iov[seg].iov_base + offset : NULL;
        if (n > length)
            n = (size_t)length;
        if (n > 0 && to_bounce) /* an empty segment may have no address */
            copy_bytes(bounce, at, n);
        else if (n > 0)
            copy_bytes(at, bounce, n);
        bounce += n;
        length -= n;
        seg++;
        offset = 0;
    }
}

/* ---- pieces ---- */

/* Takes bytes off the end of v[0..*n) until length of them are left. */
static void trim(struct iovec *v, uint32_t *n, uint64_t total, uint64_t length)
{
    while (*n > 0 && total > length) {
        uint64_t over = total - length;
        if (v[*n - 1].iov_len > over) {
            v[*n - 1].iov_len -= (size_t)over;
            return;
        }
        total -= v[*n - 1].iov_len;
        (*n)--;
    }
}

/* As much of the parent's own segments as can be used where they lie; 0: nothing can. */
static uint64_t gather(const struct fit *f, const struct parent *p, struct iovec *v, uint32_t *n)
{
    uint64_t left = p->req->length - p->issued, total = 0;
    uint32_t seg = p->seg;
    size_t offset = p->seg_offset;

    *n = 0;
    if (left > f->cap)
        left = f->cap;
    while (total < left && *n < f->max_segs && seg < p->req->iovcnt) {
        const struct iovec *from = &p->req->iov[seg];
        size_t length = from->iov_len - offset;
        char *base = length > 0 ? (char *)from->iov_base + offset : NULL;
        if (length > left - total)
            length = (size_t)(left - total);
        if (f->limits.max_segment && length > f->limits.max_segment)
            length = f->limits.max_segment;
        if (length > 0 && !segment_meets(&f->limits, base, length))
            break;
        if (length > 0)
            v[(*n)++] = (struct iovec){base, length};
        total += length;
        advance(p->req, &seg, &offset, length);
        if (length == 0)
            seg++, offset = 0;
    }
    uint64_t whole = p->issued + total == p->req->length ? total : total - total % f->unit;
    trim(v, n, total, whole);
    return whole;
}

/* The bounce itself as segments. */
static uint64_t slice_bounce(const struct fit *f, const struct parent *p, struct piece *piece,
                             uint32_t *n)
{
    uint64_t length = p->req->length - p->issued;
    uint64_t cap = f->cap < f->bounce_slot ? f->cap : f->bounce_slot;
    size_t step = f->limits.max_segment ? f->limits.max_segment : (size_t)-1;

    if (length > cap)
        length = cap;
    *n = 0;
    for (uint64_t at = 0; at < length; at += piece->iov[*n - 1].iov_len) {
        size_t part = length - at < step ? (size_t)(length - at) : step;
        piece->iov[(*n)++] = (struct iovec){piece->bounce + at, part};
    }
    return length;
}

void fit_piece_free(struct fit *f, struct piece *piece)
{
    if (piece->bounce)
        f->free_bounces[f->bounce_count++] = piece->bounce;
    piece->bounce = NULL;
    piece->next_free = f->free_pieces;
    f->free_pieces = piece;
}

void fit_piece_complete(struct lp_request *req)
{
    struct piece *piece = req->user;
    struct parent *p = piece->parent;
    struct fit *f = p->fit;

    if (req->status == 0 && req->op == LP_READ && piece->bounce)
        copy_segments(p->req, piece->seg, piece->seg_offset, piece->bounce, req->length, false);
    if (p->status == 0)
        p->status = req->status;
    p->in_flight--;
    fit_piece_free(f, piece);
    if (has_ended(p) && !p->ready)
        parent_finish(f, p);
    else if (!all_issued(p) && !p->ready)
        ready_push(f, p);
}

/* Fills in data and length. False: no bounce memory is free. */
static bool piece_fill(struct fit *f, struct parent *p, struct piece *piece)
{
    const struct lp_request *req = p->req;
    uint32_t n = 0;
    uint64_t length = 0;

    piece->bounce = NULL;
    if (!moves_data(req)) {
        length = req->length - p->issued;
        if (f->limits.max_transfer && length > f->limits.max_transfer)
            length = f->limits.max_transfer - f->limits.max_transfer % f->unit;
    } else if (!f->opts.always_bounce) {
        length = gather(f, p, piece->iov, &n);
    }
    if (length == 0 && moves_data(req)) {
        if (f->bounce_count == 0)
            return false;
        piece->bounce = f->free_bounces[--f->bounce_count];
        length = slice_bounce(f, p, piece, &n);
        if (req->op == LP_WRITE)
            copy_segments(req, p->seg, p->seg_offset, piece->bounce, length, true);
    }
    piece->seg = p->seg;
    piece->seg_offset = p->seg_offset;
    piece->req.iov = n ? piece->iov : NULL;
    piece->req.iovcnt = n;
    piece->req.length = length;
    return true;
}

/* Sends the parent's next piece. False: something it needs is not free; nothing has changed. */
static bool issue_piece(struct fit *f, struct parent *p)
{
    struct piece *piece = f->free_pieces;

    if (!piece)
        return false;
    f->free_pieces = piece->next_free;
    if (!piece_fill(f, p, piece)) {
        fit_piece_free(f, piece);
        return false;
    }
    piece->parent = p;
    piece->req.op = p->req->op;
    piece->req.flags = p->req->flags;
    piece->req.offset = p->req->offset + p->issued;
    if (lp_queue_submit(f->lower, &piece->req) != 0) {
        fit_piece_free(f, piece);
        return false;
    }
    f->bounced += piece->bounce != NULL;
    p->begun = true;
    p->in_flight++;
    p->issued += piece->req.length;
    if (moves_data(p->req))
        advance(p->req, &p->seg, &p->seg_offset, piece->req.length);
    return true;
}

/* What is ready goes on. A parent that has failed ends here, but only during poll(): nobody expects
 * complete() from kick(). */
static void issue_ready(struct fit *f, bool polling)
{
    while (f->ready.first) {
        struct parent *p = f->ready.first;
        unsigned window = f->opts.window ? f->opts.window : (unsigned)-1;

        while (!all_issued(p) && p->in_flight < window)
            if (!issue_piece(f, p))
                return;
        bool ended = has_ended(p);
        if (ended && !polling)
            return;
        pop(&f->ready)->ready = false;
        if (ended)
            parent_finish(f, p);
    }
}

/* ---- the queue ---- */

static int fit_submit(struct lp_queue *q, struct lp_request *req)
{
    struct fit *f = (struct fit *)q;
    struct parent *p = f->free_parents;

    if (!p)
        return -EAGAIN;
    f->free_parents = p->next;
    f->taken++;
    *p = (struct parent){.req = req, .fit = f, .status = check_request(f, req)};
    if (p->status != 0 || (req->length == 0 && req->op != LP_FLUSH && req->op != LP_INVALIDATE)) {
        push(&f->ended, p);
    } else if (f->ready.first || !meets_limits(f, req) || !pass(f, p)) {
        ready_push(f, p);
    }
    return 0;
}

static void fit_kick(struct lp_queue *q)
{
    struct fit *f = (struct fit *)q;

    issue_ready(f, false);
    /* What ended in here is seen from outside like what ends below. */
    if (f->wait_fd >= 0 && (f->ended.first || (f->ready.first && has_ended(f->ready.first))))
        lp_queue_nudge(f->lower);
    lp_queue_kick(f->lower);
}

/* What ended without a piece; what complete() adds stays for the next poll. */
static void finish_ended(struct fit *f)
{
    struct parent_list now = f->ended;

    f->ended = (struct parent_list){NULL, NULL};
    while (now.first)
        parent_finish(f, pop(&now));
}

static int fit_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct fit *f = (struct fit *)q;
    /* On a queue that ends all at once, all that is in flight ends here: no descriptor tells of
     * the rest. */
    unsigned due = f->wait_fd == LP_WAIT_NONE ? f->taken : 0;
    int n;

    f->completed = 0;
    issue_ready(f, true);
    finish_ended(f);
    do { /* while pieces end, but no request: 0 says that the time is over */
        n = lp_queue_poll(f->lower, f->completed > 0 ? 0 : wait_ns);
        if (f->ready.first) {
            issue_ready(f, true);
            lp_queue_kick(f->lower);
        }
    } while (n > 0 && (f->completed < due || (f->completed == 0 && wait_ns > 0)));
    return (int)f->completed;
}

static int fit_wait_fd(struct lp_queue *q)
{
    struct fit *f = (struct fit *)q;

    f->wait_fd = lp_queue_wait_fd(f->lower);
    return f->wait_fd;
}

static void fit_nudge(struct lp_queue *q)
{
    lp_queue_nudge(((struct fit *)q)->lower);
}

static void fit_close(struct lp_queue *q)
{
    struct fit *f = (struct fit *)q;

    if (f->lower)
        lp_queue_close(f->lower);
    free(f->parents);
    free(f->pieces);
    free(f->iovs);
    free(f->free_bounces);
    free(f->own_bounce);
    free(f);
}

const struct lp_queue_ops fit_ops = {.submit = fit_submit,
                                     .kick = fit_kick,
                                     .poll = fit_poll,
                                     .close = fit_close,
                                     .wait_fd = fit_wait_fd,
                                     .nudge = fit_nudge};

uint64_t lp_fit_bounced(const struct lp_queue *fit)
{
    return ((const struct fit *)fit)->bounced;
}
