/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's half of a path: disk queue, fit to the disk's limits and, with preparation, the
 * device's access through the translation table. The same for a driver process and for inline.
 */
#ifndef HOST_STACK_H
#define HOST_STACK_H

#include <lunpath/disk.h>
#include <lunpath/host.h>

struct stack_opts {
    unsigned depth;
    enum lp_prep prep;
    uint32_t page_size;
    void *iommu; /* translation table, with prep */
    size_t iommu_size;
    void *arena; /* where the table's pages are, in this process */
    size_t arena_size;
};

/* Where the disk's own counters can be read: the queue right above the disk. */
struct stack {
    struct lp_queue *top;
    struct lp_queue *disk;
};

int stack_open(struct stack *s, struct lp_disk *disk, const struct stack_opts *opts,
               struct lp_error *err);

#endif
