/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file disk's engine on Linux: one io_uring a queue, the file registered in it. submit() only
 * writes into the ring; kick() passes all of that to the kernel with one system call; poll() takes
 * what has ended from the ring without any, and sends and waits with one when there is nothing.
 *
 * To be slept on, the ring's own descriptor serves: it is readable while its completion queue is
 * not empty (an eventfd registered with it only tells of arrivals). What ends without the ring is
 * made visible there by an operation that does nothing.
 */
#define _GNU_SOURCE
#include "disk/file_int.h"

#include <errno.h>
#include <liburing.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REST_SEGMENTS = 8, REAP = 64 };

#define NUDGE UINT64_MAX /* in place of a slot's number */

/* What the kernel is doing for a request; one ring entry a slot at any time. */
enum stage {
    STAGE_FIRST,
    STAGE_HOLE, /* WRITE_ZEROES where a range cannot be zeroed */
    STAGE_SYNC, /* WRITE_ZEROES with FUA, once the zeros are there */
};

struct slot {
    struct lp_request *req;
    uint64_t done; /* bytes of a READ or WRITE */
    enum stage stage;
    unsigned next_free;
    struct iovec rest[REST_SEGMENTS]; /* after a short transfer */
};

struct uring_queue {
    struct lp_queue head;
    const struct file_place *place;
    struct io_uring ring;
    struct request_list ready; /* to be completed by poll() */
    unsigned out;              /* slots taken */
    unsigned free_slot;        /* first of the free ones; depth: none */
    bool waited;               /* somebody sleeps on the descriptor */
    bool nudged;               /* the operation that does nothing is in the ring */
    struct slot slots[];
};

/* ---- one request ---- */

static void prepare_data(struct slot *slot, struct io_uring_sqe *sqe)
{
    const struct lp_request *req = slot->req;
    const struct iovec *iov = req->iov;
    unsigned count = req->iovcnt;
    uint64_t at = req->offset + slot->done;

    if (slot->done > 0) {
        iov = slot->rest;
        count = (unsigned)file_rest(req, slot->done, slot->rest, REST_SEGMENTS);
    }
    if (req->op == LP_READ) {
        if (count == 1)
            io_uring_prep_read(sqe, 0, iov->iov_base, (unsigned)iov->iov_len, at);
        else
            io_uring_prep_readv(sqe, 0, iov, count, at);
        return;
    }
    if (count == 1)
        io_uring_prep_write(sqe, 0, iov->iov_base, (unsigned)iov->iov_len, at);
    else
        io_uring_prep_writev(sqe, 0, iov, count, at);
    if (req->flags & LP_FUA)
        sqe->rw_flags = RWF_DSYNC;
}

static void prepare_range(const struct slot *slot, struct io_uring_sqe *sqe)
{
    const struct lp_request *req = slot->req;
    bool zero = req->op == LP_WRITE_ZEROES && slot->stage == STAGE_FIRST;
    int mode = FALLOC_FL_KEEP_SIZE | (zero ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);

    io_uring_prep_fallocate(sqe, 0, mode, (off_t)req->offset, (off_t)req->length);
}

/* The submission ring has an entry for each slot and for a nudge, so there is always one. */
static void prepare(struct uring_queue *q, struct slot *slot)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);

    switch (slot->req->op) {
    case LP_READ:
    case LP_WRITE:
        prepare_data(slot, sqe);
        break;
    case LP_FLUSH:
        io_uring_prep_fsync(sqe, 0, 0);
        break;
    default:
        if (slot->stage == STAGE_SYNC)
            io_uring_prep_fsync(sqe, 0, 0);
        else
            prepare_range(slot, sqe);
        break;
    }
    io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(sqe, (uint64_t)(slot - q->slots));
}

static void finish(struct uring_queue *q, struct slot *slot, int status)
{
    slot->req->status = status;
    list_add(&q->ready, slot->req);
    slot->next_free = q->free_slot;
    q->free_slot = (unsigned)(slot - q->slots);
    q->out--;
}

/* Short transfers go on where they stopped. */
static void data_moved(struct uring_queue *q, struct slot *slot, unsigned bytes)
{
    slot->done += bytes;
    if (slot->done == slot->req->length)
        finish(q, slot, 0);
    else if (bytes == 0)
        finish(q, slot, -EIO); /* the file is shorter than when it was opened */
    else
        prepare(q, slot);
}

static void kernel_answered(struct uring_queue *q, struct slot *slot, int result)
{
    const struct lp_request *req = slot->req;
    bool zeroes = req->op == LP_WRITE_ZEROES;

    if (result == -EINTR) {
        prepare(q, slot);
    } else if (zeroes && result == -EOPNOTSUPP && slot->stage == STAGE_FIRST) {
        slot->stage = STAGE_HOLE;
        prepare(q, slot);
    } else if (result < 0) {
        finish(q, slot, result);
    } else if (req->op == LP_READ || req->op == LP_WRITE) {
        data_moved(q, slot, (unsigned)result);
    } else if (zeroes && (req->flags & LP_FUA) && slot->stage != STAGE_SYNC) {
        slot->stage = STAGE_SYNC;
        prepare(q, slot);
    } else {
        finish(q, slot, 0);
    }
}

/* ---- the queue ---- */

/* What needs no ring: refused, nothing to do, or a device's DISCARD, for which there is only a
 * blocking call. */
static bool done_at_once(struct uring_queue *q, struct lp_request *req)
{
    req->status = disk_check(&q->head.limits, req);
    if (req->status != 0 || (req->length == 0 && req->op != LP_FLUSH))
        return true;
    if (req->op != LP_DISCARD || !q->place->device)
        return false;
    req->status = file_discard(q->place, (off_t)req->offset, (off_t)req->length);
    q->head.stats.syscalls++;
    return true;
}

static void uring_nudge(struct lp_queue *head)
{
    struct uring_queue *q = (struct uring_queue *)head;

    if (q->nudged)
        return;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);
    io_uring_prep_nop(sqe);
    io_uring_sqe_set_data64(sqe, NUDGE);
    q->nudged = true;
}

static int uring_wait_fd(struct lp_queue *head)
{
    struct uring_queue *q = (struct uring_queue *)head;

    q->waited = true;
    return q->ring.ring_fd;
}

static int uring_submit(struct lp_queue *head, struct lp_request *req)
{
    struct uring_queue *q = (struct uring_queue *)head;

    if (q->out + q->ready.count == head->limits.depth)
        return -EAGAIN;
    if (done_at_once(q, req)) {
        list_add(&q->ready, req);
        return 0;
    }
    struct slot *slot = &q->slots[q->free_slot];
    q->free_slot = slot->next_free;
    q->out++;
    slot->req = req;
    slot->done = 0;
    slot->stage = STAGE_FIRST;
    prepare(q, slot);
    return 0;
}

/* When the kernel cannot take them now, they stay in the ring for the next time. */
static void hand_over(struct uring_queue *q)
{
    if (io_uring_sq_ready(&q->ring) == 0)
        return;
    io_uring_submit(&q->ring);
    q->head.stats.syscalls++;
}

static void uring_kick(struct lp_queue *head)
{
    struct uring_queue *q = (struct uring_queue *)head;

    if (q->waited && q->ready.first)
        uring_nudge(head);
    hand_over(q);
}

/* Some completions are made only when the kernel is entered; it says so in a flag. */
static void let_kernel_work(struct uring_queue *q)
{
    if (IO_URING_READ_ONCE(*q->ring.sq.kflags) & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) {
        io_uring_get_events(&q->ring);
        q->head.stats.syscalls++;
    }
}

static void reap(struct uring_queue *q)
{
    struct io_uring_cqe *cqes[REAP];
    unsigned n;

    do {
        let_kernel_work(q);
        n = io_uring_peek_batch_cqe(&q->ring, cqes, REAP);
        for (unsigned i = 0; i < n; i++)
            if (cqes[i]->user_data == NUDGE)
                q->nudged = false;
            else
                kernel_answered(q, &q->slots[cqes[i]->user_data], cqes[i]->res);
        io_uring_cq_advance(&q->ring, n);
    } while (n == REAP);
}

/* True: something may be there; false: the time is up. */
static bool wait_for_one(struct uring_queue *q, uint64_t wait_ns)
{
    const uint64_t second = 1000000000, year = 31536000 * second;
    struct io_uring_cqe *cqe;

    if (wait_ns > year)
        wait_ns = year;
    struct __kernel_timespec ts = {.tv_sec = (int64_t)(wait_ns / second),
                                   .tv_nsec = (long long)(wait_ns % second)};
    int r = io_uring_submit_and_wait_timeout(&q->ring, &cqe, 1, &ts, NULL);
    q->head.stats.syscalls++;
    return r != -ETIME && r != -EINTR;
}

static int uring_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct uring_queue *q = (struct uring_queue *)head;

    if (q->out > 0 || q->nudged)
        reap(q);
    /* A wait sends as well, so that there is one system call and not two. */
    if (q->ready.first || wait_ns == 0)
        hand_over(q);
    if (q->nudged) /* done as soon as it was sent; left there it would wake somebody for nothing */
        reap(q);
    /* A short transfer may have gone on, so that there is still nothing after one wait. */
    while (!q->ready.first && q->out > 0 && wait_ns > 0) {
        bool more = wait_for_one(q, wait_ns);
        reap(q);
        if (!more)
            break;
    }
    return list_complete(&q->ready, &head->stats);
}

static void uring_close(struct lp_queue *head)
{
    struct uring_queue *q = (struct uring_queue *)head;

    /* The kernel ends a ring later, and would hold a device's exclusive open until then. */
    io_uring_unregister_files(&q->ring);
    io_uring_queue_exit(&q->ring);
    free(q);
}

/* Only what a disk needs may ever be asked of this ring: a system call filter does not see what
 * goes through it. Linux 5.10, older than what file_uring_works() asks for. */
static int restrict_ring(struct io_uring *ring)
{
    static const uint8_t ops[] = {IORING_OP_NOP,      IORING_OP_READ,   IORING_OP_READV,
                                  IORING_OP_WRITE,    IORING_OP_WRITEV, IORING_OP_FSYNC,
                                  IORING_OP_FALLOCATE};
    struct io_uring_restriction r[sizeof ops + 4];
    unsigned n = 0;

    memset(r, 0, sizeof r);
    for (; n < sizeof ops; n++) {
        r[n].opcode = IORING_RESTRICTION_SQE_OP;
        r[n].sqe_op = ops[n];
    }
    r[n].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
    r[n++].sqe_flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK | IOSQE_IO_HARDLINK | IOSQE_ASYNC;
    r[n].opcode = IORING_RESTRICTION_REGISTER_OP;
    r[n++].register_op = IORING_UNREGISTER_FILES;
    /* By number: liburing 2.3 declares its functions for these and does not export them. */
    if (syscall(SYS_io_uring_register, ring->ring_fd, IORING_REGISTER_RESTRICTIONS, r, n) < 0 ||
        syscall(SYS_io_uring_register, ring->ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) < 0)
        return -errno;
    return 0;
}

/* The newest flags that the kernel has: no interrupt when something ends, since poll() looks. Not
 * those that tie the ring to the thread that opened it. 0 or a negative errno. */
static int open_ring(struct io_uring *ring, unsigned entries, unsigned flags)
{
    int r = io_uring_queue_init(entries, ring,
                                flags | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);

    if (r == -EINVAL)
        r = io_uring_queue_init(entries, ring, flags);
    return r;
}

bool file_uring_works(void)
{
    struct io_uring ring;

    if (open_ring(&ring, 2, 0) < 0)
        return false;
    /* Without it (before 5.11) a wait with a time limit costs a ring entry of its own. */
    bool works = ring.features & IORING_FEAT_EXT_ARG;
    io_uring_queue_exit(&ring);
    return works;
}

struct lp_queue *file_uring_open(const struct file_place *place, unsigned depth,
                                 struct lp_error *err)
{
    static const struct lp_queue_ops ops = {.submit = uring_submit,
                                            .kick = uring_kick,
                                            .poll = uring_poll,
                                            .close = uring_close,
                                            .wait_fd = uring_wait_fd,
                                            .nudge = uring_nudge};
    struct uring_queue *q = calloc(1, sizeof *q + depth * sizeof q->slots[0]);

    if (!q) {
        lp_error_sys(err, ENOMEM, "cannot make a queue");
        return NULL;
    }
    q->head.ops = &ops;
    q->head.limits = place->limits;
    q->head.limits.depth = depth;
    q->place = place;
    for (unsigned i = 0; i < depth; i++)
        q->slots[i].next_free = i + 1;
    int r = open_ring(&q->ring, depth + 1, IORING_SETUP_R_DISABLED);
    if (r < 0) {
        free(q);
        lp_error_sys(err, -r, "cannot set up io_uring; the engine threads may work");
        return NULL;
    }
    r = io_uring_register_files(&q->ring, &place->fd, 1);
    if (r == 0)
        r = restrict_ring(&q->ring);
    if (r < 0) {
        uring_close(&q->head);
        lp_error_sys(
            err, -r,
            "cannot register the file with io_uring and restrict it; the engine threads may work");
        return NULL;
    }
    return &q->head;
}
