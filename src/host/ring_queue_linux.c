/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application's end of a ring. Hot path: submit() writes one entry; the tail is stored every
 * PUBLISH_EVERY entries so that the driver starts early, and once more with the wake-up check by
 * kick() or poll(). No lock and no system call unless a side sleeps.
 */
#define _GNU_SOURCE
#include "host/ring_host.h"
#include "host/ring_wait.h"

#include "base/request_list.h"

#include <errno.h>
#include <stdlib.h>

enum { PUBLISH_EVERY = 16 };

struct ring_queue {
    struct lp_queue head;
    struct ring_host *host;
    struct ring_session *session; /* NULL: between drivers */
    struct ring_view view;
    struct ring_wait wait;
    const char *arena;
    size_t arena_size;
    unsigned index, depth;
    unsigned taken; /* requests submitted and not completed, wherever they are */

    uint32_t sq_tail, sq_published, cq_head;
    bool owes_wake; /* something was submitted since the last ring_wake() */
    unsigned in_flight;
    struct lp_request **slots; /* by id; NULL: free */
    uint16_t *free_ids;
    unsigned free_count;

    struct request_list held; /* wait for the next driver */
    struct request_list done; /* status set, completed by the next poll */
    struct ring_progress *progress;
    unsigned polls;
};

static void finish(struct ring_queue *rq, struct lp_request *req, int status)
{
    req->status = status;
    list_add(&rq->done, req);
}

/* ---- sending ---- */

static bool arena_offset(const struct ring_queue *rq, const struct iovec *v, uint64_t *offset)
{
    uintptr_t from = (uintptr_t)v->iov_base, base = (uintptr_t)rq->arena;

    if (from < base || from - base > rq->arena_size || v->iov_len > rq->arena_size - (from - base))
        return false;
    *offset = from - base;
    return true;
}

static int pack_segments(struct ring_queue *rq, const struct lp_request *req,
                         struct ring_command *c)
{
    struct ring_segment *seg = rq->view.segments + (size_t)c->id * RING_MAX_SEGMENTS;
    uint64_t sum = 0, offset;

    if (req->iovcnt > RING_MAX_SEGMENTS)
        return -EINVAL;
    for (uint32_t i = 0; i < req->iovcnt; i++) {
        if (!arena_offset(rq, &req->iov[i], &offset))
            return -EINVAL;
        atomic_store_explicit(&seg[i].addr, offset, memory_order_relaxed);
        atomic_store_explicit(&seg[i].length, req->iov[i].iov_len, memory_order_relaxed);
        sum += req->iov[i].iov_len;
    }
    c->nseg = (uint16_t)req->iovcnt;
    return sum == req->length ? 0 : -EINVAL;
}

static int pack_data(struct ring_queue *rq, const struct lp_request *req, struct ring_command *c)
{
    if (req->flags & LP_PREPARED) {
        c->addr = req->dma;
        return 0;
    }
    if (req->op != LP_READ && req->op != LP_WRITE)
        return 0;
    if (req->iovcnt != 1)
        return pack_segments(rq, req, c);
    c->nseg = 1;
    if (req->iov->iov_len != req->length || !arena_offset(rq, req->iov, &c->addr))
        return -EINVAL;
    return 0;
}

static void publish(struct ring_queue *rq)
{
    atomic_store_explicit(&rq->view.shared->sq_tail, rq->sq_tail, memory_order_release);
    rq->sq_published = rq->sq_tail;
}

static void send(struct ring_queue *rq, struct lp_request *req)
{
    struct ring_command c = {.op = (uint8_t)req->op,
                             .flags = (uint8_t)req->flags,
                             .id = rq->free_ids[rq->free_count - 1],
                             .length = (uint32_t)req->length,
                             .offset = req->offset};
    int e = req->length > RING_MAX_TRANSFER ? -EINVAL : pack_data(rq, req, &c);

    if (e != 0) {
        finish(rq, req, e);
        return;
    }
    rq->free_count--;
    rq->slots[c.id] = req;
    rq->in_flight++;
    ring_sqe_store(&rq->view.sq[rq->sq_tail & rq->view.mask], &c);
    rq->sq_tail++;
    rq->owes_wake = true;
    if (rq->sq_tail - rq->sq_published >= PUBLISH_EVERY)
        publish(rq);
}

static int ring_submit(struct lp_queue *head, struct lp_request *req)
{
    struct ring_queue *rq = (struct ring_queue *)head;

    if (rq->taken == rq->depth)
        return -EAGAIN;
    rq->taken++;
    if (rq->session)
        send(rq, req);
    else
        list_add(&rq->held, req);
    return 0;
}

static void ring_kick(struct lp_queue *head)
{
    struct ring_queue *rq = (struct ring_queue *)head;

    if (!rq->owes_wake)
        return;
    rq->owes_wake = false;
    if (rq->sq_tail != rq->sq_published)
        publish(rq);
    ring_wake(&rq->wait, &rq->view.shared->driver_sleeping);
}

/* ---- receiving ---- */

/* What may come out of a status word of a peer that we do not trust. */
static int checked_status(uint64_t word)
{
    int32_t status = (int32_t)(uint32_t)word;

    return status <= 0 && status >= -4095 ? status : -EIO;
}

static void complete(struct ring_queue *rq, struct lp_request *req)
{
    rq->taken--;
    rq->head.stats.requests++;
    if (req->status == 0 && req->op == LP_READ)
        rq->head.stats.bytes_read += req->length;
    else if (req->status == 0 && req->op == LP_WRITE)
        rq->head.stats.bytes_written += req->length;
    req->complete(req);
}

static int complete_done(struct ring_queue *rq)
{
    struct request_list now = list_take_all(&rq->done);
    struct lp_request *req;
    int n = 0;

    while ((req = list_take(&now)) != NULL) {
        complete(rq, req);
        n++;
    }
    return n;
}

static int reap(struct ring_queue *rq)
{
    uint32_t tail = atomic_load_explicit(&rq->view.shared->cq_tail, memory_order_acquire);
    uint32_t ready = tail - rq->cq_head;

    if (ready > rq->in_flight) {
        ring_host_end_session(rq->host, rq->session, "it completed more than was submitted");
        return 0;
    }
    for (uint32_t i = 0; i < ready; i++) {
        uint64_t word =
            atomic_load_explicit(&rq->view.cq[rq->cq_head & rq->view.mask], memory_order_relaxed);
        uint64_t id = word >> 32;
        if (id >= rq->depth || !rq->slots[id]) {
            ring_host_end_session(rq->host, rq->session, "it completed what was not in flight");
            return (int)i;
        }
        struct lp_request *req = rq->slots[id];
        rq->cq_head++;
        rq->slots[id] = NULL;
        rq->free_ids[rq->free_count++] = (uint16_t)id;
        rq->in_flight--;
        req->status = checked_status(word);
        complete(rq, req);
    }
    return (int)ready;
}

/* For the monitor, which ends a driver that makes no progress while somebody waits for it. */
static void show_progress(struct ring_queue *rq)
{
    atomic_store_explicit(&rq->progress->in_flight, rq->in_flight, memory_order_relaxed);
    atomic_store_explicit(&rq->progress->completed, (unsigned)rq->head.stats.requests,
                          memory_order_relaxed);
    atomic_store_explicit(&rq->progress->polls, ++rq->polls, memory_order_relaxed);
    rq->head.stats.syscalls = rq->wait.syscalls;
}

/* ---- a driver's end and the next one ---- */

static void reset_slots(struct ring_queue *rq)
{
    rq->free_count = 0;
    for (unsigned id = rq->depth; id-- > 0;) {
        if (rq->slots[id])
            finish(rq, rq->slots[id], -EIO);
        rq->slots[id] = NULL;
        rq->free_ids[rq->free_count++] = (uint16_t)id;
    }
    rq->in_flight = 0;
    rq->sq_tail = rq->sq_published = rq->cq_head = 0;
    rq->owes_wake = false;
}

static void leave_session(struct ring_queue *rq)
{
    reset_slots(rq);
    if (rq->session)
        ring_host_release(rq->host, rq->session);
    rq->session = NULL;
}

static void join_session(struct ring_queue *rq, uint64_t wait_ns)
{
    struct lp_request *req;
    bool failed;

    rq->session = ring_host_take(rq->host, wait_ns, &failed);
    if (rq->session) {
        ring_view_at(&rq->view, rq->session->control.base, rq->depth, rq->index);
        while ((req = list_take(&rq->held)) != NULL)
            send(rq, req);
    } else if (failed) {
        while ((req = list_take(&rq->held)) != NULL)
            finish(rq, req, -ENODEV);
    }
}

static bool session_over(const struct ring_queue *rq)
{
    return !rq->session || atomic_load_explicit(&rq->session->dead, memory_order_relaxed);
}

static int change_session(struct ring_queue *rq, uint64_t wait_ns)
{
    if (rq->session)
        leave_session(rq);
    else if (rq->held.first)
        join_session(rq, wait_ns);
    int n = complete_done(rq);
    show_progress(rq);
    return n;
}

/* ---- polling ---- */

static int wait_and_reap(struct ring_queue *rq, uint64_t wait_ns)
{
    bool ready;

    show_progress(rq);
    atomic_store_explicit(&rq->progress->waiting, true, memory_order_relaxed);
    ready = ring_wait_for(&rq->wait, &rq->view.shared->cq_tail, rq->cq_head,
                          &rq->view.shared->app_sleeping, &rq->session->dead, wait_ns);
    atomic_store_explicit(&rq->progress->waiting, false, memory_order_relaxed);
    return ready ? reap(rq) : 0;
}

static int ring_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct ring_queue *rq = (struct ring_queue *)head;

    if (session_over(rq))
        return change_session(rq, wait_ns);
    ring_kick(head);
    int n = complete_done(rq) + reap(rq);
    if (n == 0 && rq->in_flight > 0 && wait_ns > 0)
        n = wait_and_reap(rq, wait_ns);
    /* What the callbacks submitted goes out now, not at the next poll. */
    ring_kick(head);
    show_progress(rq);
    return n;
}

static void ring_close(struct lp_queue *head)
{
    struct ring_queue *rq = (struct ring_queue *)head;

    if (rq->session)
        ring_host_release(rq->host, rq->session);
    free(rq->slots);
    free(rq->free_ids);
    free(rq);
}

/* No wait_fd: the driver wakes a futex, which no descriptor stands for. */
static const struct lp_queue_ops ring_ops = {
    .submit = ring_submit, .kick = ring_kick, .poll = ring_poll, .close = ring_close};

uint64_t ring_queue_sleeps(const struct lp_queue *head)
{
    return ((const struct ring_queue *)head)->wait.sleeps;
}

struct lp_queue *ring_queue_open(struct ring_host *h, unsigned i, const struct ring_host_opts *opts,
                                 struct lp_error *err)
{
    struct ring_queue *rq = calloc(1, sizeof *rq);

    if (rq) {
        rq->slots = calloc(opts->config.depth, sizeof *rq->slots);
        rq->free_ids = calloc(opts->config.depth, sizeof *rq->free_ids);
    }
    if (!rq || !rq->slots || !rq->free_ids) {
        lp_error_sys(err, ENOMEM, "cannot make a queue of the host");
        if (rq) {
            free(rq->slots);
            free(rq->free_ids);
        }
        free(rq);
        return NULL;
    }
    rq->head.ops = &ring_ops;
    rq->head.limits = opts->limits;
    rq->host = h;
    rq->arena = opts->arena;
    rq->arena_size = opts->arena_size;
    rq->index = i;
    rq->depth = opts->config.depth;
    rq->progress = ring_host_progress(h, i);
    ring_wait_init(&rq->wait, opts->config.may_spin != 0);
    reset_slots(rq);
    join_session(rq, 0);
    return &rq->head;
}
