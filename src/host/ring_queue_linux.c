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
    struct lp_queue q;
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

static void finish(struct ring_queue *a, struct lp_request *req, int status)
{
    req->status = status;
    list_add(&a->done, req);
}

/* ---- sending ---- */

static bool arena_offset(const struct ring_queue *a, const struct iovec *v, uint64_t *offset)
{
    uintptr_t from = (uintptr_t)v->iov_base, base = (uintptr_t)a->arena;

    if (from < base || from - base > a->arena_size || v->iov_len > a->arena_size - (from - base))
        return false;
    *offset = from - base;
    return true;
}

static int pack_segments(struct ring_queue *a, const struct lp_request *req, struct ring_command *c)
{
    struct ring_segment *seg = a->view.segments + (size_t)c->id * RING_MAX_SEGMENTS;
    uint64_t sum = 0, offset;

    if (req->iovcnt > RING_MAX_SEGMENTS)
        return -EINVAL;
    for (uint32_t i = 0; i < req->iovcnt; i++) {
        if (!arena_offset(a, &req->iov[i], &offset))
            return -EINVAL;
        atomic_store_explicit(&seg[i].addr, offset, memory_order_relaxed);
        atomic_store_explicit(&seg[i].length, req->iov[i].iov_len, memory_order_relaxed);
        sum += req->iov[i].iov_len;
    }
    c->nseg = (uint16_t)req->iovcnt;
    return sum == req->length ? 0 : -EINVAL;
}

static int pack_data(struct ring_queue *a, const struct lp_request *req, struct ring_command *c)
{
    if (req->flags & LP_PREPARED) {
        c->addr = req->dma;
        return 0;
    }
    if (req->op != LP_READ && req->op != LP_WRITE)
        return 0;
    if (req->iovcnt != 1)
        return pack_segments(a, req, c);
    c->nseg = 1;
    if (req->iov->iov_len != req->length || !arena_offset(a, req->iov, &c->addr))
        return -EINVAL;
    return 0;
}

static void publish(struct ring_queue *a)
{
    atomic_store_explicit(&a->view.shared->sq_tail, a->sq_tail, memory_order_release);
    a->sq_published = a->sq_tail;
}

static void send(struct ring_queue *a, struct lp_request *req)
{
    struct ring_command c = {.op = (uint8_t)req->op,
                             .flags = (uint8_t)req->flags,
                             .id = a->free_ids[a->free_count - 1],
                             .length = (uint32_t)req->length,
                             .offset = req->offset};
    int e = req->length > RING_MAX_TRANSFER ? -EINVAL : pack_data(a, req, &c);

    if (e != 0) {
        finish(a, req, e);
        return;
    }
    a->free_count--;
    a->slots[c.id] = req;
    a->in_flight++;
    ring_sqe_store(&a->view.sq[a->sq_tail & a->view.mask], &c);
    a->sq_tail++;
    a->owes_wake = true;
    if (a->sq_tail - a->sq_published >= PUBLISH_EVERY)
        publish(a);
}

static int ring_submit(struct lp_queue *q, struct lp_request *req)
{
    struct ring_queue *a = (struct ring_queue *)q;

    if (a->taken == a->depth)
        return -EAGAIN;
    a->taken++;
    if (a->session)
        send(a, req);
    else
        list_add(&a->held, req);
    return 0;
}

static void ring_kick(struct lp_queue *q)
{
    struct ring_queue *a = (struct ring_queue *)q;

    if (!a->owes_wake)
        return;
    a->owes_wake = false;
    if (a->sq_tail != a->sq_published)
        publish(a);
    ring_wake(&a->wait, &a->view.shared->driver_sleeping);
}

/* ---- receiving ---- */

/* What may come out of a status word of a peer that we do not trust. */
static int checked_status(uint64_t word)
{
    int32_t status = (int32_t)(uint32_t)word;

    return status <= 0 && status >= -4095 ? status : -EIO;
}

static void complete(struct ring_queue *a, struct lp_request *req)
{
    a->taken--;
    a->q.stats.requests++;
    if (req->status == 0 && req->op == LP_READ)
        a->q.stats.bytes_read += req->length;
    else if (req->status == 0 && req->op == LP_WRITE)
        a->q.stats.bytes_written += req->length;
    req->complete(req);
}

static int complete_done(struct ring_queue *a)
{
    struct request_list now = list_take_all(&a->done);
    struct lp_request *req;
    int n = 0;

    while ((req = list_take(&now)) != NULL) {
        complete(a, req);
        n++;
    }
    return n;
}

static int reap(struct ring_queue *a)
{
    uint32_t tail = atomic_load_explicit(&a->view.shared->cq_tail, memory_order_acquire);
    uint32_t ready = tail - a->cq_head;

    if (ready > a->in_flight) {
        ring_host_end_session(a->host, a->session, "it completed more than was submitted");
        return 0;
    }
    for (uint32_t i = 0; i < ready; i++) {
        uint64_t word =
            atomic_load_explicit(&a->view.cq[a->cq_head & a->view.mask], memory_order_relaxed);
        uint64_t id = word >> 32;
        if (id >= a->depth || !a->slots[id]) {
            ring_host_end_session(a->host, a->session, "it completed what was not in flight");
            return (int)i;
        }
        struct lp_request *req = a->slots[id];
        a->cq_head++;
        a->slots[id] = NULL;
        a->free_ids[a->free_count++] = (uint16_t)id;
        a->in_flight--;
        req->status = checked_status(word);
        complete(a, req);
    }
    return (int)ready;
}

/* For the monitor, which ends a driver that makes no progress while somebody waits for it. */
static void show_progress(struct ring_queue *a)
{
    atomic_store_explicit(&a->progress->in_flight, a->in_flight, memory_order_relaxed);
    atomic_store_explicit(&a->progress->completed, (unsigned)a->q.stats.requests,
                          memory_order_relaxed);
    atomic_store_explicit(&a->progress->polls, ++a->polls, memory_order_relaxed);
    a->q.stats.syscalls = a->wait.syscalls;
}

/* ---- a driver's end and the next one ---- */

static void reset_slots(struct ring_queue *a)
{
    a->free_count = 0;
    for (unsigned id = a->depth; id-- > 0;) {
        if (a->slots[id])
            finish(a, a->slots[id], -EIO);
        a->slots[id] = NULL;
        a->free_ids[a->free_count++] = (uint16_t)id;
    }
    a->in_flight = 0;
    a->sq_tail = a->sq_published = a->cq_head = 0;
    a->owes_wake = false;
}

static void leave_session(struct ring_queue *a)
{
    reset_slots(a);
    if (a->session)
        ring_host_release(a->host, a->session);
    a->session = NULL;
}

static void join_session(struct ring_queue *a, uint64_t wait_ns)
{
    struct lp_request *req;
    bool failed;

    a->session = ring_host_take(a->host, wait_ns, &failed);
    if (a->session) {
        ring_view_at(&a->view, a->session->control.base, a->depth, a->index);
        while ((req = list_take(&a->held)) != NULL)
            send(a, req);
    } else if (failed) {
        while ((req = list_take(&a->held)) != NULL)
            finish(a, req, -ENODEV);
    }
}

static bool session_over(const struct ring_queue *a)
{
    return !a->session || atomic_load_explicit(&a->session->dead, memory_order_relaxed);
}

static int change_session(struct ring_queue *a, uint64_t wait_ns)
{
    if (a->session)
        leave_session(a);
    else if (a->held.first)
        join_session(a, wait_ns);
    int n = complete_done(a);
    show_progress(a);
    return n;
}

/* ---- polling ---- */

static int wait_and_reap(struct ring_queue *a, uint64_t wait_ns)
{
    bool ready;

    show_progress(a);
    atomic_store_explicit(&a->progress->waiting, true, memory_order_relaxed);
    ready = ring_wait_for(&a->wait, &a->view.shared->cq_tail, a->cq_head,
                          &a->view.shared->app_sleeping, &a->session->dead, wait_ns);
    atomic_store_explicit(&a->progress->waiting, false, memory_order_relaxed);
    return ready ? reap(a) : 0;
}

static int ring_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct ring_queue *a = (struct ring_queue *)q;

    if (session_over(a))
        return change_session(a, wait_ns);
    ring_kick(q);
    int n = complete_done(a) + reap(a);
    if (n == 0 && a->in_flight > 0 && wait_ns > 0)
        n = wait_and_reap(a, wait_ns);
    /* What the callbacks submitted goes out now, not at the next poll. */
    ring_kick(q);
    show_progress(a);
    return n;
}

static void ring_close(struct lp_queue *q)
{
    struct ring_queue *a = (struct ring_queue *)q;

    if (a->session)
        ring_host_release(a->host, a->session);
    free(a->slots);
    free(a->free_ids);
    free(a);
}

/* No wait_fd: the driver wakes a futex, which no descriptor stands for. */
static const struct lp_queue_ops ring_ops = {
    .submit = ring_submit, .kick = ring_kick, .poll = ring_poll, .close = ring_close};

uint64_t ring_queue_sleeps(const struct lp_queue *q)
{
    return ((const struct ring_queue *)q)->wait.sleeps;
}

struct lp_queue *ring_queue_open(struct ring_host *h, unsigned i, const struct ring_host_opts *opts,
                                 struct lp_error *err)
{
    struct ring_queue *a = calloc(1, sizeof *a);

    if (a) {
        a->slots = calloc(opts->config.depth, sizeof *a->slots);
        a->free_ids = calloc(opts->config.depth, sizeof *a->free_ids);
    }
    if (!a || !a->slots || !a->free_ids) {
        lp_error_sys(err, ENOMEM, "ring queue");
        if (a) {
            free(a->slots);
            free(a->free_ids);
        }
        free(a);
        return NULL;
    }
    a->q.ops = &ring_ops;
    a->q.limits = opts->limits;
    a->host = h;
    a->arena = opts->arena;
    a->arena_size = opts->arena_size;
    a->index = i;
    a->depth = opts->config.depth;
    a->progress = ring_host_progress(h, i);
    ring_wait_init(&a->wait, opts->config.may_spin != 0);
    reset_slots(a);
    join_session(a, 0);
    return &a->q;
}
