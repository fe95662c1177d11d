/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/ring.h"

/* A queue's part of the control memory, in bytes from its start. */
struct layout {
    size_t sq, cq, segments, total;
};

static size_t line_up(size_t n)
{
    return (n + RING_LINE - 1) & ~(size_t)(RING_LINE - 1);
}

uint32_t ring_entries(unsigned depth)
{
    uint32_t n = 1;

    while (n < depth)
        n <<= 1;
    return n;
}

static struct layout layout_for(unsigned depth)
{
    struct layout l;
    size_t entries = ring_entries(depth);

    l.sq = line_up(sizeof(struct ring_shared));
    l.cq = l.sq + line_up(entries * sizeof(struct ring_sqe));
    l.segments = l.cq + line_up(entries * sizeof(ring_cqe));
    l.total = l.segments + line_up(depth * RING_MAX_SEGMENTS * sizeof(struct ring_segment));
    return l;
}

size_t ring_control_size(unsigned queues, unsigned depth)
{
    return queues * layout_for(depth).total;
}

void ring_view_at(struct ring_view *view, void *control, unsigned depth, unsigned i)
{
    struct layout l = layout_for(depth);
    char *base = (char *)control + i * l.total;

    view->shared = (struct ring_shared *)(void *)base;
    view->sq = (struct ring_sqe *)(void *)(base + l.sq);
    view->cq = (ring_cqe *)(void *)(base + l.cq);
    view->segments = (struct ring_segment *)(void *)(base + l.segments);
    view->mask = ring_entries(depth) - 1;
}
