/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preparation, the application's side: a queue that enters each request's pages in the translation
 * table, sends the request on with its device address, and when it is done takes the entries out
 * again and has the device forget them (LP_INVALIDATE) before the request ends: a strict I/O MMU,
 * in which no page is used again while the device might still reach it.
 *
 * PAGE: one page a task, the task's own entry. Always guarded: a request above a page is
 * impossible. BLOCK: one contiguous block of up to PREP_MAX_TRANSFER bytes, in entries of the
 * task's own. MULTI: the first page's entry is the task's own; the others lie at a pseudo-random
 * place of a pool that nobody owns, so another task's map can overwrite them while they are in use.
 * Unmapping leaves the pool alone. Right at depth 1 or for one page; with guard it is PAGE.
 */
#ifndef HOST_PREP_H
#define HOST_PREP_H

#include <lunpath/fit.h>
#include <lunpath/host.h>

enum { PREP_MAX_TRANSFER = 1 << 20, PREP_DEFAULT_POOL = 262144 };

struct prep_opts {
    enum lp_prep mode;
    bool guard;
    uint32_t page_size;
    unsigned depth;
    uint32_t table_entries; /* MULTI: the pool; 0: PREP_DEFAULT_POOL */
    uint64_t seed;
    void *iommu; /* prep_table_size() bytes */
    size_t iommu_size;
    void *arena;
    size_t arena_size;
};

size_t prep_table_size(const struct prep_opts *opts);  /* bytes of the table of one queue */
size_t prep_bounce_size(const struct prep_opts *opts); /* bytes of bounce memory of one queue */

/* How the fit on top must be set for this preparation: bouncing and window. */
void prep_fit_opts(const struct prep_opts *opts, struct lp_fit_opts *fit);

/* Stands on lower and owns it (also on failure). Takes requests that meet its limits. */
struct lp_queue *prep_open(struct lp_queue *lower, const struct prep_opts *opts,
                           struct lp_error *err);

#endif
