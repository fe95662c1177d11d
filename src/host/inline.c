/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host inline: the disk is called in the caller's address space, by the caller's own thread. It
 * stands for a driver inside the kernel, and is what any other host adds its cost to.
 */
#include "host/host_type.h"
#include "host/stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct inline_host {
    struct lp_queue **disk_queues; /* for counting; owned by the stacks above them */
};

static int inline_start(struct lp_host *h, struct lp_error *err)
{
    struct inline_host *in = calloc(1, sizeof *in);

    h->impl = in;
    if (in)
        in->disk_queues = calloc(h->opts.queues, sizeof *in->disk_queues);
    if (!in || !in->disk_queues)
        return lp_error_sys(err, ENOMEM, "cannot make the host");
    snprintf(h->mode, sizeof h->mode, "inline: called in the application's own threads");
    return 0;
}

static struct lp_queue *inline_queue(struct lp_host *h, unsigned i, struct lp_error *err)
{
    struct inline_host *in = h->impl;
    struct stack_opts opts = {.depth = h->opts.depth,
                              .prep = h->opts.prep,
                              .page_size = h->opts.page_size,
                              .iommu = host_iommu(h, i),
                              .iommu_size = h->iommu_queue_size,
                              .arena = h->arena.base,
                              .arena_size = h->arena.size};
    struct stack stack;

    if (stack_open(&stack, h->disk, &opts, err) != 0)
        return NULL;
    in->disk_queues[i] = stack.disk;
    return stack.top;
}

static void inline_stop(struct lp_host *h)
{
    struct inline_host *in = h->impl;

    if (in)
        free(in->disk_queues);
    free(in);
}

static void inline_stats(struct lp_host *h, struct lp_host_stats *stats)
{
    struct inline_host *in = h->impl;

    for (unsigned i = 0; i < h->opts.queues; i++) {
        const struct lp_queue_stats *s = &in->disk_queues[i]->stats;
        stats->disk_requests += s->requests;
        stats->disk_bytes_read += s->bytes_read;
        stats->disk_bytes_written += s->bytes_written;
        stats->app_syscalls += s->syscalls;
    }
}

const struct host_type host_inline = {
    .name = "inline",
    .help = "the disk is called in the caller's address space",
    .start = inline_start,
    .queue = inline_queue,
    .stop = inline_stop,
    .stats = inline_stats,
};
