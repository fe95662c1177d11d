/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a host implements, and the head of every host. A new host is one struct host_type in one
 * file and one line in host.c; src/host/inline.c is the smallest.
 *
 * host.c does what all hosts share: the arena, the translation table, and the stack above each raw
 * queue (preparation, fit).
 */
#ifndef HOST_TYPE_H
#define HOST_TYPE_H

#include "base/memory.h"

#include <lunpath/host.h>

struct host_type {
    const char *name;
    const char *help; /* one line */
    /* Makes the host ready; h->opts, disk, arena, iommu are set. Sets h->impl, h->mode. */
    int (*start)(struct lp_host *h, struct lp_error *err);
    /* Raw queue i, closed by host.c. */
    struct lp_queue *(*queue)(struct lp_host *h, unsigned i, struct lp_error *err);
    /* All queues are closed. Also called when start() failed half-way: must cope. */
    void (*stop)(struct lp_host *h);
    void (*stats)(struct lp_host *h, struct lp_host_stats *stats);
    pid_t (*pid)(const struct lp_host *h);   /* optional: 0 */
    bool (*failed)(const struct lp_host *h); /* optional: false */
};

struct lp_host {
    const struct host_type *type;
    struct lp_disk *disk;
    struct lp_host_opts opts;
    struct memory arena; /* the application's part, then the bounce memory of each queue */
    struct memory iommu; /* one table a queue; size 0 without preparation */
    size_t iommu_queue_size;
    size_t bounce_size;    /* of each queue */
    struct lp_queue **raw; /* opts.queues of them; closed through top */
    struct lp_queue **top;
    void *impl;
    char mode[256];
};

extern const struct host_type host_inline;
extern const struct host_type host_ring;

/* Queue i's translation table, or NULL without preparation. */
void *host_iommu(const struct lp_host *h, unsigned i);

/* The table, ended by NULL. */
const struct host_type *const *host_types(void);

#endif
