/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts: how a disk is shown to an application.
 *
 *   inline   the disk is called in the caller's address space
 *   ring     the disk lives in another process; both share memory and a pair of rings a queue
 *
 * Preparation and guard stand between the application and either host.
 */
#ifndef LUNPATH_HOST_H
#define LUNPATH_HOST_H

#include <lunpath/disk.h>
#include <lunpath/error.h>
#include <lunpath/queue.h>
#include <sys/types.h>

/* What happens to a request's pages before the driver may touch them. */
enum lp_prep {
    LP_PREP_NONE,  /* nothing: the CPU moves the data, software I/O */
    LP_PREP_PAGE,  /* one page a task is entered in the translation table */
    LP_PREP_MULTI, /* all pages of a task are entered, only the first one's entry is reliable */
    LP_PREP_BLOCK, /* the data goes through one contiguous block that is entered as a whole */
};

struct lp_host_opts {
    const char *host; /* "inline" or "ring" */
    enum lp_prep prep;
    bool guard;             /* split, bounce and check so that the preparation cannot be wrong */
    unsigned queues;        /* from 1 */
    unsigned depth;         /* requests in flight a queue, 1..1024 */
    size_t arena_size;      /* bytes of memory shared with the driver for the application's data */
    uint32_t page_size;     /* of the translation table: 4096 or 16384 */
    uint32_t table_entries; /* MULTI: entries that tasks take from each other; 0: default */
    uint32_t max_segment;   /* tighter limits, 0: as the host has them */
    uint32_t max_segments;
    uint32_t max_transfer;
    bool restart_driver; /* ring: start a driver that died again, with the same disk */
    bool small_pages;    /* do not ask for huge pages */
    int app_cpu;         /* where queue 0's application side runs, -1: not pinned (for waiting) */
    int driver_cpu;      /* ring: pin queue i's driver thread to driver_cpu + i, -1: do not */
    uint64_t timeout_ns; /* ring: a driver that makes no progress for so long is ended; 0: 30 s */
    const char *driver_program; /* ring: program that calls lp_ring_driver_main(), NULL: this one */
    uint64_t seed;              /* MULTI: for placing entries */
};

#define LP_HOST_OPTS_DEFAULT                                                                       \
    ((struct lp_host_opts){.host = "ring",                                                         \
                           .queues = 1,                                                            \
                           .depth = 128,                                                           \
                           .arena_size = (size_t)64 << 20,                                         \
                           .page_size = 4096,                                                      \
                           .app_cpu = -1,                                                          \
                           .driver_cpu = -1,                                                       \
                           .seed = 1})

/* Counted over all queues since attach, both sides; what the driver says of itself is copied from
 * shared memory and is as honest as the driver is. */
struct lp_host_stats {
    uint64_t disk_requests; /* at the disk */
    uint64_t disk_bytes_read;
    uint64_t disk_bytes_written;
    uint64_t app_syscalls; /* on the data path, application's side */
    uint64_t driver_syscalls;
    uint64_t driver_cpu_ns; /* CPU time of the driver process; 0 for inline */
    uint64_t app_sleeps;    /* waits that ended in a sleep, not in spinning */
    uint64_t driver_sleeps;
    unsigned restarts;
};

struct lp_host;

/* Shows disk through a host. The disk stays the caller's and outlives the host. NULL: see err. */
struct lp_host *lp_host_attach(struct lp_disk *disk, const struct lp_host_opts *opts,
                               struct lp_error *err);
void lp_host_detach(struct lp_host *host); /* also closes its queues */

/* Queue i, with everything stacked: fit, preparation, host. Owned by the host. Its limits are what
 * the application sees: any request inside the disk, in whole blocks, of any length and shape. */
struct lp_queue *lp_host_queue(struct lp_host *host, unsigned i);

/* Memory whose segments need no bounce: page-aligned, opts.arena_size bytes, zeroed, prefaulted. */
void *lp_host_arena(struct lp_host *host);
const char *lp_host_mode(const struct lp_host *host); /* for people, what was really obtained */
void lp_host_stats(struct lp_host *host, struct lp_host_stats *stats);
pid_t lp_host_driver_pid(const struct lp_host *host); /* 0: none */
bool lp_host_failed(const struct lp_host *host);      /* the driver is gone and stays gone */

/* The driver process's main: a program that uses the ring host calls it first of all. Returns -1
 * when argv does not ask for a driver, else the exit status. */
int lp_ring_driver_main(int argc, char **argv);

#endif
