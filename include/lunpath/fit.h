/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fit: the one place where requests are made to meet limits.
 *
 * A queue on top of another queue. A request that meets the lower limits passes straight through,
 * with no allocation and no copy. Another is split at max_transfer, max_segments and max_segment,
 * and segments that are misaligned, or outside the arena, are bounced through prepared memory.
 * A request ends when its last piece ends, with the first error among them. Requests outside the
 * disk, or not in whole blocks, end with -EINVAL; WRITE to a read-only disk with -EROFS.
 */
#ifndef LUNPATH_FIT_H
#define LUNPATH_FIT_H

#include <lunpath/error.h>
#include <lunpath/queue.h>

struct lp_fit_opts {
    unsigned depth;       /* requests in flight at the top, whichever way they go; then -EAGAIN */
    unsigned window;      /* pieces of one request in flight at once; 0: as many as fit */
    bool always_bounce;   /* bounce every piece (guards of preparation do) */
    void *bounce;         /* memory for bouncing, or NULL: allocated here; with limits.arena not
                           * NULL, and inside it */
    size_t bounce_size;   /* bytes of it */
    bool bounce_per_page; /* with always_bounce: pieces start at a page boundary of bounce */
    size_t page_size;     /* for bounce_per_page */
};

/* Stands on lower and owns it from now on (closed with it; on failure too).
 * limits: what pieces must meet, lower->limits or tighter. A mem_align above the block size becomes
 * the block size of what is above. */
struct lp_queue *lp_fit_open(struct lp_queue *lower, const struct lp_limits *limits,
                             const struct lp_fit_opts *opts, struct lp_error *err);

/* Pieces that were copied through bounce memory since the queue was opened. */
uint64_t lp_fit_bounced(const struct lp_queue *fit);

#endif
