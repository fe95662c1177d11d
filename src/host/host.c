/* SPDX-License-Identifier: BSD-2-Clause */
/* What all hosts share: checking options, the arena, and the stack above each raw queue. */
#include "host/host_type.h"
#include "host/prep.h"

#include <lunpath/fit.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1024, MAX_QUEUES = 64 };

static const struct host_type *const types[] = {&host_inline, &host_ring, NULL};

const struct host_type *const *host_types(void)
{
    return types;
}

static const struct host_type *find_type(const char *name)
{
    for (size_t i = 0; types[i]; i++)
        if (strcmp(types[i]->name, name) == 0)
            return types[i];
    return NULL;
}

static int check_opts(const struct lp_host_opts *o, struct lp_error *err)
{
    if (!o->host || !find_type(o->host))
        return lp_error_set(err, LP_ERROR_USAGE, 0, "no host is called '%s': use inline or ring",
                            o->host ? o->host : "");
    if (o->depth < 1 || o->depth > MAX_DEPTH)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "depth is %u: choose 1 to %d", o->depth,
                            MAX_DEPTH);
    if (o->queues < 1 || o->queues > MAX_QUEUES)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "queues is %u: choose 1 to %d", o->queues,
                            MAX_QUEUES);
    if (o->page_size != 4096 && o->page_size != 16384)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "page size is %u: choose 4096 or 16384",
                            o->page_size);
    if (o->arena_size == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the arena must have at least one byte");
    return 0;
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

void *host_iommu(const struct lp_host *h, unsigned i)
{
    return h->iommu_queue_size ? (char *)h->iommu.base + i * h->iommu_queue_size : NULL;
}

static struct prep_opts prep_opts_for(const struct lp_host *h, unsigned i)
{
    const struct lp_host_opts *o = &h->opts;

    return (struct prep_opts){.mode = o->prep,
                              .guard = o->guard,
                              .page_size = o->page_size,
                              .depth = o->depth,
                              .table_entries = o->table_entries,
                              .seed = o->seed + i,
                              .iommu = host_iommu(h, i),
                              .iommu_size = h->iommu_queue_size,
                              .arena = h->arena.base,
                              .arena_size = h->arena.size};
}

/* Memory for the application's data, each queue's bounces and each queue's table. */
static int create_memory(struct lp_host *h, struct lp_error *err)
{
    const struct lp_host_opts *o = &h->opts;
    struct prep_opts prep = prep_opts_for(h, 0);
    size_t app = round_up(o->arena_size, o->page_size);

    h->bounce_size = prep_bounce_size(&prep);
    if (memory_create(&h->arena, "lunpath-arena", app + o->queues * h->bounce_size, !o->small_pages,
                      err) != 0)
        return lp_error_prefix(err, "the application's buffers");
    if (o->prep == LP_PREP_NONE)
        return 0;
    h->iommu_queue_size = round_up(prep_table_size(&prep), 65536);
    if (memory_create(&h->iommu, "lunpath-iommu", o->queues * h->iommu_queue_size, false, err) != 0)
        return lp_error_prefix(err, "the translation table");
    return 0;
}

static uint32_t tighter(uint32_t ours, uint32_t asked)
{
    return asked && (!ours || asked < ours) ? asked : ours;
}

/* The limits that pieces must meet: the queue's below, tightened by what was asked. */
static int limits_for(const struct lp_host *h, const struct lp_queue *below,
                      struct lp_limits *limits, struct lp_error *err)
{
    const struct lp_host_opts *o = &h->opts;

    *limits = below->limits;
    limits->max_segment = tighter(limits->max_segment, o->max_segment);
    limits->max_segments = tighter(limits->max_segments, o->max_segments);
    limits->max_transfer = tighter(limits->max_transfer, o->max_transfer);
    if (limits->max_transfer && limits->max_transfer < limits->block_size)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "max-transfer %u is below the disk's block of %u bytes",
                            limits->max_transfer, limits->block_size);
    return 0;
}

static struct lp_queue *open_top(struct lp_host *h, unsigned i, struct lp_queue *raw,
                                 struct lp_error *err)
{
    struct prep_opts prep = prep_opts_for(h, i);
    char *bounce = (char *)h->arena.base + h->arena.size - (h->opts.queues - i) * h->bounce_size;
    struct lp_fit_opts fit = {.depth = h->opts.depth,
                              .bounce = h->bounce_size ? bounce : NULL,
                              .bounce_size = h->bounce_size};
    struct lp_limits limits;

    if (h->opts.prep != LP_PREP_NONE) {
        prep_fit_opts(&prep, &fit);
        raw = prep_open(raw, &prep, err);
        if (!raw)
            return NULL;
    }
    if (limits_for(h, raw, &limits, err) != 0) {
        lp_queue_close(raw);
        return NULL;
    }
    return lp_fit_open(raw, &limits, &fit, err);
}

static int open_queues(struct lp_host *h, struct lp_error *err)
{
    h->raw = calloc(h->opts.queues, sizeof(struct lp_queue *));
    h->top = calloc(h->opts.queues, sizeof(struct lp_queue *));
    if (!h->raw || !h->top)
        return lp_error_sys(err, ENOMEM, "cannot make the host's queues");
    for (unsigned i = 0; i < h->opts.queues; i++) {
        h->raw[i] = h->type->queue(h, i, err);
        if (!h->raw[i])
            return -1;
        h->top[i] = open_top(h, i, h->raw[i], err);
        if (!h->top[i])
            return -1;
    }
    return 0;
}

struct lp_host *lp_host_attach(struct lp_disk *disk, const struct lp_host_opts *opts,
                               struct lp_error *err)
{
    if (check_opts(opts, err) != 0)
        return NULL;
    struct lp_host *h = calloc(1, sizeof *h);
    if (!h) {
        lp_error_sys(err, ENOMEM, "cannot make the host");
        return NULL;
    }
    h->type = find_type(opts->host);
    h->disk = disk;
    h->opts = *opts;
    h->arena.fd = h->iommu.fd = -1;
    if (create_memory(h, err) == 0 && h->type->start(h, err) == 0 && open_queues(h, err) == 0)
        return h;
    lp_host_detach(h);
    return NULL;
}

void lp_host_detach(struct lp_host *h)
{
    if (!h)
        return;
    for (unsigned i = 0; h->top && i < h->opts.queues; i++)
        lp_queue_close(h->top[i]);
    h->type->stop(h);
    free(h->raw);
    free(h->top);
    memory_destroy(&h->iommu);
    memory_destroy(&h->arena);
    free(h);
}

struct lp_queue *lp_host_queue(struct lp_host *host, unsigned i)
{
    return i < host->opts.queues ? host->top[i] : NULL;
}

void *lp_host_arena(struct lp_host *host)
{
    return host->arena.base;
}

const char *lp_host_mode(const struct lp_host *host)
{
    return host->mode;
}

void lp_host_stats(struct lp_host *host, struct lp_host_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    host->type->stats(host, stats);
}

pid_t lp_host_driver_pid(const struct lp_host *host)
{
    return host->type->pid ? host->type->pid(host) : 0;
}

bool lp_host_failed(const struct lp_host *host)
{
    return host->type->failed && host->type->failed(host);
}
