/* SPDX-License-Identifier: BSD-2-Clause */
/* Host ring as host.c sees it. */
#define _GNU_SOURCE
#include "host/host_type.h"
#include "host/ring_host.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t default_stall_ns = 30000000000u;

/* Spinning pays only while the peer can run: each queue has a thread on either side, and each of
 * them needs a CPU of its own. */
static bool may_spin(const struct lp_host_opts *o)
{
    cpu_set_t set;

    if (o->app_cpu >= 0 && o->app_cpu == o->driver_cpu)
        return false;
    /* The application may be pinned to one CPU already, so the machine's count is not enough: the
     * driver's CPU counts when it was named. */
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    int cpus = CPU_COUNT(&set);
    if (o->driver_cpu >= 0 && !CPU_ISSET((unsigned)o->driver_cpu, &set))
        cpus += (int)o->queues;
    return cpus >= 2 * (int)o->queues;
}

/* The kernel ends a dead process's io_uring after the process is reaped, so a WRITE of the old
 * driver could still land behind one of the next. A thread's system call ends before that. */
static enum lp_engine engine_for(const struct lp_host_opts *o, const struct lp_disk_opts *d)
{
    return o->restart_driver && d->engine == LP_ENGINE_AUTO ? LP_ENGINE_THREADS : d->engine;
}

static struct ring_host_opts ring_opts(const struct lp_host *h)
{
    const struct lp_host_opts *o = &h->opts;
    const struct lp_disk_opts *d = &h->disk->opts;
    int disk_fd = lp_disk_share(h->disk);
    struct ring_host_opts r = {
        .config = {.magic = RING_MAGIC,
                   .queues = o->queues,
                   .depth = o->depth,
                   .prep = o->prep,
                   .page_size = o->page_size,
                   .may_spin = may_spin(o),
                   .driver_cpu = o->driver_cpu,
                   .engine = engine_for(o, d),
                   .read_only = d->read_only,
                   .buffered = d->buffered,
                   .zero_reads = d->zero_reads,
                   .small_pages = d->small_pages,
                   .arena_size = h->arena.size,
                   .iommu_size = h->iommu.size,
                   .has_disk_fd = disk_fd >= 0},
        .fds = {h->arena.fd, h->iommu.size > 0 ? h->iommu.fd : -1, disk_fd},
        .arena = h->arena.base,
        .arena_size = h->arena.size,
        .program = o->driver_program,
        .restart = o->restart_driver,
        .stall_ns = o->timeout_ns ? o->timeout_ns : default_stall_ns,
        .limits = h->disk->limits,
    };
    snprintf(r.config.url, sizeof r.config.url, "%s", lp_disk_url(h->disk));
    r.limits.mem_align = 1;
    r.limits.max_transfer = RING_MAX_TRANSFER;
    r.limits.max_segment = 0;
    r.limits.max_segments = RING_MAX_SEGMENTS;
    r.limits.depth = o->depth;
    r.limits.queues = RING_MAX_QUEUES;
    r.limits.arena = h->arena.base;
    r.limits.arena_size = h->arena.size;
    return r;
}

static int ring_start(struct lp_host *h, struct lp_error *err)
{
    struct ring_host_opts opts = ring_opts(h);

    if (h->opts.restart_driver && h->disk->opts.engine == LP_ENGINE_URING)
        return lp_error_set(
            err, LP_ERROR_USAGE, 0,
            "a driver with io_uring cannot be restarted safely, its last writes may "
            "land late: use the threads engine");
    if (strlen(lp_disk_url(h->disk)) >= RING_URL_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the disk's URL is longer than %d bytes",
                            RING_URL_MAX - 1);
    h->impl = ring_host_start(&opts, err);
    if (!h->impl)
        return -1;
    snprintf(h->mode, sizeof h->mode, "ring: driver process (%s), %s", ring_host_mode(h->impl),
             opts.config.may_spin ? "spins, then sleeps" : "sleeps");
    return 0;
}

static struct lp_queue *ring_queue(struct lp_host *h, unsigned i, struct lp_error *err)
{
    struct ring_host_opts opts = ring_opts(h);

    return ring_queue_open(h->impl, i, &opts, err);
}

static void ring_stop(struct lp_host *h)
{
    if (h->impl)
        ring_host_stop(h->impl);
}

static void ring_stats(struct lp_host *h, struct lp_host_stats *stats)
{
    ring_host_stats(h->impl, stats);
    for (unsigned i = 0; i < h->opts.queues; i++) {
        stats->app_syscalls += h->raw[i]->stats.syscalls;
        stats->app_sleeps += ring_queue_sleeps(h->raw[i]);
    }
}

static pid_t ring_pid(const struct lp_host *h)
{
    return ring_host_pid(h->impl);
}

static bool ring_failed(const struct lp_host *h)
{
    return ring_host_failed(h->impl);
}

const struct host_type host_ring = {
    .name = "ring",
    .help = "the disk lives in another process; shared memory and rings between them",
    .start = ring_start,
    .queue = ring_queue,
    .stop = ring_stop,
    .stats = ring_stats,
    .pid = ring_pid,
    .failed = ring_failed,
};
