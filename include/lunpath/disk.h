/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disks: anything that answers requests at a byte offset, named by URL.
 *
 *   null:SIZE   moves no data; ram:SIZE   memory; file:PATH   a file or block device;
 *   iscsi://[USER@]HOST[:PORT]/TARGET/LUN   a LUN of an iSCSI target
 *   fault:KIND[,...]:URL   wraps another disk and gives wrong data on purpose (for tests)
 *
 * A new disk is one struct lp_disk_type in one file and one line in disk/table.c.
 * src/disk/null.c is the smallest and shows all of it.
 */
#ifndef LUNPATH_DISK_H
#define LUNPATH_DISK_H

#include <lunpath/error.h>
#include <lunpath/iscsi.h>
#include <lunpath/queue.h>

enum lp_engine {
    LP_ENGINE_AUTO,    /* io_uring where it works, else threads */
    LP_ENGINE_URING,   /* Linux io_uring */
    LP_ENGINE_THREADS, /* POSIX threads with preadv/pwritev: runs anywhere */
};

/* All zero is a good default, but for fd. Use LP_DISK_OPTS_DEFAULT. */
struct lp_disk_opts {
    int fd;           /* >= 0: use this descriptor (see lp_disk_share), not the URL's place;
                       * the disk owns it from the call on, also when the call fails */
    bool read_only;   /* refuse WRITE, DISCARD, WRITE_ZEROES with -EROFS */
    bool buffered;    /* file: through the page cache; else O_DIRECT is required */
    bool zero_reads;  /* null: READ fills with zeros */
    bool small_pages; /* ram: do not ask for huge pages */
    enum lp_engine engine;
    const struct lp_iscsi_opts *iscsi; /* iscsi: required there */
};

#define LP_DISK_OPTS_DEFAULT ((struct lp_disk_opts){.fd = -1})

struct lp_disk;

/* Opens a disk. opts may be NULL. NULL on failure, with err set. */
struct lp_disk *lp_disk_open(const char *url, const struct lp_disk_opts *opts,
                             struct lp_error *err);
void lp_disk_close(struct lp_disk *disk); /* all its queues are closed already */

const char *lp_disk_url(const struct lp_disk *disk);
const struct lp_limits *lp_disk_limits(const struct lp_disk *disk);

/* What was really obtained, for people: "O_DIRECT, io_uring", "memory, 2 MiB pages". */
const char *lp_disk_mode(const struct lp_disk *disk);

/* A new queue with room for depth requests (1..limits.depth), used by one thread.
 * It takes requests that meet the disk's limits; lp_fit_open() makes any request meet them. */
struct lp_queue *lp_disk_queue(struct lp_disk *disk, unsigned depth, struct lp_error *err);

/* A descriptor through which another process opens the same disk with lp_disk_opts.fd and the same
 * URL and options, or -1 where none is needed (null). Stays the disk's. */
int lp_disk_share(const struct lp_disk *disk);

/* ---- for implementations ---- */

struct lp_disk_type {
    const char *name;                         /* the URL's scheme */
    const char *help;                         /* one line for --help */
    struct lp_disk *(*open)(const char *rest, /* the URL after "name:" */
                            const struct lp_disk_opts *opts, struct lp_error *err);
    struct lp_queue *(*queue)(struct lp_disk *disk, unsigned depth, struct lp_error *err);
    int (*share)(const struct lp_disk *disk); /* optional: default -1 */
    void (*close)(struct lp_disk *disk);
};

/* The head of every disk: implementations put it first in their own struct and fill limits and
 * mode in open(); type, url and opts (with fd = -1) are filled by lp_disk_open(). */
struct lp_disk {
    const struct lp_disk_type *type;
    char *url;
    struct lp_disk_opts opts;
    struct lp_limits limits;
    char mode[64];
};

/* The table of disks, ended by NULL, for --help. */
const struct lp_disk_type *const *lp_disk_types(void);

#endif
