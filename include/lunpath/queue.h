/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests, limits and queues: what every disk, host and layer between them speaks.
 *
 * One struct lp_request travels from the application to the disk and back. A queue takes requests
 * and completes them; a disk offers queues, a host offers queues, and a layer (splitting,
 * preparation, fault) is a queue that stands on another queue.
 *
 * Threads: a queue belongs to one thread. Nothing in it is locked. More queues give more cores.
 * Memory: the caller owns the request and its iovec until complete() is called.
 */
#ifndef LUNPATH_QUEUE_H
#define LUNPATH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum lp_op {
    LP_READ,
    LP_WRITE,
    LP_FLUSH,        /* everything acknowledged before is on the medium; offset, length are 0 */
    LP_DISCARD,      /* the range's content is no longer needed */
    LP_WRITE_ZEROES, /* the range reads as zeros afterwards */
    LP_INVALIDATE,   /* between preparation and its device only: forget translations of [dma] */
    LP_OP_COUNT,
};

enum {
    LP_FUA = 1 << 0,      /* WRITE, WRITE_ZEROES: on the medium before it completes (SBC-3 FUA) */
    LP_PREPARED = 1 << 1, /* the data is reached through dma, not through iov */
};

struct lp_request {
    enum lp_op op;
    uint32_t flags;
    uint64_t offset; /* bytes, a multiple of limits.block_size */
    uint64_t length; /* bytes, a multiple of limits.block_size, and the sum of the segments */
    const struct iovec *iov;
    uint32_t iovcnt;
    uint32_t tag; /* for the layer that owns the request; others leave it alone */
    uint64_t dma; /* with LP_PREPARED: the device address of the first page plus the byte in it */
    int status;   /* set before complete(): 0 or a negative errno */
    void (*complete)(struct lp_request *req);
    void *user;              /* for whoever made the request; a layer may put its own two here
                              * while it has the request, and gives these back before complete() */
    struct lp_request *next; /* for the queue that holds the request */
};

enum lp_fua { LP_FUA_NONE, LP_FUA_EMULATED, LP_FUA_NATIVE };

/* What a disk or a host can take. Zero means "no limit" in the max_ members. */
struct lp_limits {
    uint64_t size;         /* bytes */
    uint32_t block_size;   /* logical block, bytes, a power of two from 1 */
    uint32_t mem_align;    /* address and length of each segment, bytes, a power of two from 1 */
    uint32_t max_transfer; /* bytes a request */
    uint32_t max_segment;  /* bytes a segment */
    uint32_t max_segments; /* segments a request */
    uint32_t depth;        /* requests in flight a queue */
    uint32_t queues;       /* queues that can be open at once */
    enum lp_fua fua;
    bool read_only;
    bool discard;
    bool write_zeroes;
    const char *arena; /* not NULL: segments must lie inside [arena, arena + arena_size) */
    size_t arena_size;
};

/* Counted by each queue for its own work only, from when it was opened. */
struct lp_queue_stats {
    uint64_t requests;
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t syscalls; /* made on the data path */
};

struct lp_queue;

struct lp_queue_ops {
    /* Takes the request: 0, or -EAGAIN with limits.depth in flight (call poll, then try again).
     * A request that breaks the limits is taken too and completes with -EINVAL.
     * Never calls complete(). May hold the request back until kick(). */
    int (*submit)(struct lp_queue *q, struct lp_request *req);
    /* Sends what submit() held back. Optional. */
    void (*kick)(struct lp_queue *q);
    /* Completes what is ready, calling complete() for each. When nothing is ready and something
     * is in flight, waits up to wait_ns (0: not at all) for the first. Also kicks.
     * Returns the number completed, 0 on time-out. complete() may submit to the same queue. */
    int (*poll)(struct lp_queue *q, uint64_t wait_ns);
    /* Nothing is in flight any more. Also closes the queue it stands on. */
    void (*close)(struct lp_queue *q);
    /* Optional: LP_WAIT_NEVER. A descriptor to sleep on with poll(2) and its like, or one of the
     * enum below: once kicked, it is readable, level-triggered, while poll(q, 0) would complete
     * something (now and then without that). So the caller kicks before it sleeps; it expects EINTR
     * as from any such wait. Always the same descriptor; stays the queue's, which alone reads it.
     */
    int (*wait_fd)(struct lp_queue *q);
    /* With a descriptor only, for the kick() of a layer above that holds completions of its own:
     * makes the descriptor readable from the next kick to the next poll. */
    void (*nudge)(struct lp_queue *q);
};

enum {
    LP_WAIT_NONE = -1,  /* none is needed: poll(q, 0) completes all that was submitted before it */
    LP_WAIT_NEVER = -2, /* this queue cannot be waited for through a descriptor */
};

/* The head of every queue: implementations put it first in their own struct. */
struct lp_queue {
    const struct lp_queue_ops *ops;
    struct lp_limits limits;
    struct lp_queue_stats stats;
};

static inline int lp_queue_submit(struct lp_queue *q, struct lp_request *req)
{
    return q->ops->submit(q, req);
}

static inline void lp_queue_kick(struct lp_queue *q)
{
    if (q->ops->kick)
        q->ops->kick(q);
}

static inline int lp_queue_poll(struct lp_queue *q, uint64_t wait_ns)
{
    return q->ops->poll(q, wait_ns);
}

/* Asked for once, best before the first request: a queue that is never asked spends nothing on it.
 * See wait_fd above. */
static inline int lp_queue_wait_fd(struct lp_queue *q)
{
    return q->ops->wait_fd ? q->ops->wait_fd(q) : LP_WAIT_NEVER;
}

static inline void lp_queue_nudge(struct lp_queue *q)
{
    if (q->ops->nudge)
        q->ops->nudge(q);
}

static inline void lp_queue_close(struct lp_queue *q)
{
    if (q)
        q->ops->close(q);
}

/* Submits one request and polls until it is done; other requests complete meanwhile as usual.
 * Returns its status: 0 or a negative errno. For set-up, tests and verification, not for speed. */
int lp_queue_run(struct lp_queue *q, struct lp_request *req);

/* READ or WRITE of one contiguous buffer through lp_queue_run(). */
int lp_queue_read(struct lp_queue *q, uint64_t offset, void *buf, size_t length);
int lp_queue_write(struct lp_queue *q, uint64_t offset, const void *buf, size_t length);

#endif
