/* SPDX-License-Identifier: BSD-2-Clause */
/* Fit's two files: fit.c is the queue, fit_open.c makes it. */
#ifndef DISK_FIT_INT_H
#define DISK_FIT_INT_H

#include <lunpath/fit.h>

enum { FIT_MAX_SEGMENTS = 128 }; /* of a piece */

struct parent {
    struct lp_request *req;
    struct fit *fit;
    struct parent *next;
    void (*complete)(struct lp_request *req); /* the request's own, while it passes through */
    void *user;
    uint64_t issued;    /* bytes handed out in pieces */
    uint32_t seg;       /* the segment in which the next piece starts */
    size_t seg_offset;  /* and the byte in it */
    unsigned in_flight; /* pieces */
    int status;
    bool begun; /* a piece was sent; a FLUSH has one of no bytes */
    bool ready; /* in the ready list */
};

struct piece {
    struct lp_request req;
    struct parent *parent;
    struct piece *next_free;
    struct iovec *iov; /* FIT_MAX_SEGMENTS */
    char *bounce;      /* NULL: not bounced */
    uint32_t seg;      /* where its data begins in the parent's segments */
    size_t seg_offset;
};

struct parent_list {
    struct parent *first, *last;
};

struct fit {
    struct lp_queue q;
    struct lp_queue *lower;
    struct lp_limits limits; /* of pieces */
    struct lp_fit_opts opts;
    uint64_t cap; /* bytes a piece, all limits together */
    uint32_t max_segs;
    uint32_t unit; /* the block: pieces are multiples of it */

    struct parent *parents, *free_parents;
    struct piece *pieces, *free_pieces;
    struct iovec *iovs;
    struct parent_list ready;
    struct parent_list ended; /* without a piece */
    unsigned taken;           /* requests in flight at the top */
    unsigned completed;       /* at the top, during one poll */
    int wait_fd;              /* as wait_fd() said last */

    void *own_bounce;
    char **free_bounces;
    unsigned bounce_count;
    size_t bounce_slot;
    uint64_t bounced;
};

static inline bool fit_inside_arena(const struct lp_limits *l, const void *base, size_t length)
{
    uintptr_t from = (uintptr_t)base, arena = (uintptr_t)l->arena;

    return !l->arena || (from >= arena && from - arena <= l->arena_size &&
                         length <= l->arena_size - (from - arena));
}

extern const struct lp_queue_ops fit_ops;

void fit_piece_complete(struct lp_request *req);         /* of each piece, whose user is it */
void fit_piece_free(struct fit *f, struct piece *piece); /* back into the pool, with its bounce */

#endif
