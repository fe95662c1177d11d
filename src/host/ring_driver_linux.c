/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver process: serves a disk to the application over rings.
 *
 * The first thread sets everything up, shuts itself in (host/sandbox_linux.c), tells the
 * application, and then waits for the control socket to close, which ends the process. Each queue
 * has a thread of its own that runs to completion: take submissions, drive the disk, complete.
 * The application is not trusted: every entry is copied once, checked, and only the copy is used.
 */
#define _GNU_SOURCE
#include "host/ring_host.h"
#include "host/ring_wait.h"
#include "host/sandbox.h"
#include "host/stack.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a queue with I/O at an asynchronous disk may not look at its submissions. */
enum { DISK_WAIT_NS = 50000, PUBLISH_EVERY = 16 };

struct driver_queue;

struct driver_slot {
    struct lp_request req;
    struct iovec one;
    struct iovec *many; /* RING_MAX_SEGMENTS */
    struct driver_queue *owner;
    bool busy;
};

struct driver_queue {
    struct ring_view view;
    struct ring_wait wait;
    struct stack stack;
    char *arena;
    size_t arena_size;
    unsigned depth, in_flight;
    uint32_t sq_head, cq_tail, cq_published;
    bool owes_wake; /* completions were posted since the last ring_wake() */
    struct driver_slot *slots;
    int cpu;
};

struct driver {
    struct ring_config config;
    struct memory control, arena, iommu;
    struct lp_disk *disk;
    struct driver_queue *queues;
    pthread_barrier_t go;
};

struct thread_arg {
    struct driver *driver;
    struct driver_queue *queue;
};

/* ---- completing ---- */

static void set_counter(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

static void show_stats(struct driver_queue *dq)
{
    const struct lp_queue_stats *s = &dq->stack.disk->stats;

    set_counter(&dq->view.shared->requests, s->requests);
    set_counter(&dq->view.shared->bytes_read, s->bytes_read);
    set_counter(&dq->view.shared->bytes_written, s->bytes_written);
    set_counter(&dq->view.shared->syscalls, s->syscalls + dq->wait.syscalls);
    set_counter(&dq->view.shared->sleeps, dq->wait.sleeps);
}

/* Counters first: whoever sees a completion sees it counted. */
static void publish(struct driver_queue *dq)
{
    show_stats(dq);
    atomic_store_explicit(&dq->view.shared->cq_tail, dq->cq_tail, memory_order_release);
    dq->cq_published = dq->cq_tail;
}

static void post(struct driver_queue *dq, uint16_t id, int status)
{
    atomic_store_explicit(&dq->view.cq[dq->cq_tail & dq->view.mask], ring_cqe_pack(id, status),
                          memory_order_relaxed);
    dq->cq_tail++;
    dq->owes_wake = true;
    if (dq->cq_tail - dq->cq_published >= PUBLISH_EVERY)
        publish(dq);
}

static void slot_complete(struct lp_request *req)
{
    struct driver_slot *slot = req->user;

    slot->busy = false;
    slot->owner->in_flight--;
    post(slot->owner, (uint16_t)(slot - slot->owner->slots), req->status);
}

/* ---- taking ---- */

/* An arena range from the peer as an address here; false when it is not inside. */
static bool arena_range(const struct driver_queue *dq, uint64_t addr, uint64_t length,
                        struct iovec *v)
{
    if (addr > dq->arena_size || length > dq->arena_size - addr)
        return false;
    v->iov_base = dq->arena + addr;
    v->iov_len = length;
    return true;
}

static bool unpack_segments(struct driver_queue *dq, const struct ring_command *c,
                            struct driver_slot *slot)
{
    struct ring_segment *seg = dq->view.segments + (size_t)c->id * RING_MAX_SEGMENTS;
    uint64_t sum = 0;

    if (c->nseg > RING_MAX_SEGMENTS)
        return false;
    for (unsigned i = 0; i < c->nseg; i++) {
        uint64_t addr = atomic_load_explicit(&seg[i].addr, memory_order_relaxed);
        uint64_t length = atomic_load_explicit(&seg[i].length, memory_order_relaxed);
        if (!arena_range(dq, addr, length, &slot->many[i]))
            return false;
        sum += length; /* at most 128 times the arena's size: no overflow */
    }
    slot->req.iov = slot->many;
    slot->req.iovcnt = c->nseg;
    return sum == c->length;
}

static bool unpack_data(struct driver_queue *dq, const struct ring_command *c,
                        struct driver_slot *slot)
{
    slot->req.iov = NULL;
    slot->req.iovcnt = 0;
    slot->req.dma = c->addr;
    if ((c->flags & LP_PREPARED) || (c->op != LP_READ && c->op != LP_WRITE))
        return true;
    if (c->nseg > 1)
        return unpack_segments(dq, c, slot);
    slot->req.iov = &slot->one;
    slot->req.iovcnt = 1;
    return arena_range(dq, c->addr, c->length, &slot->one);
}

/* False: the peer reuses an id that is in flight, or makes one up; there is no slot to answer in.
 */
static bool take(struct driver_queue *dq, const struct ring_command *c)
{
    if (c->id >= dq->depth || dq->slots[c->id].busy)
        return false;
    struct driver_slot *slot = &dq->slots[c->id];

    if (c->op >= LP_OP_COUNT || (c->flags & ~(LP_FUA | LP_PREPARED)) || !unpack_data(dq, c, slot)) {
        post(dq, c->id, -EINVAL);
        return true;
    }
    slot->req.op = (enum lp_op)c->op;
    slot->req.flags = c->flags;
    slot->req.offset = c->offset;
    slot->req.length = c->length;
    slot->busy = true;
    dq->in_flight++;
    if (lp_queue_submit(dq->stack.top, &slot->req) != 0) {
        slot->busy = false;
        dq->in_flight--;
        post(dq, c->id, -EBUSY);
    }
    return true;
}

/* Takes all submissions. -1: the peer broke the protocol. */
static int take_all(struct driver_queue *dq)
{
    uint32_t tail = atomic_load_explicit(&dq->view.shared->sq_tail, memory_order_acquire);
    uint32_t ready = tail - dq->sq_head;
    struct ring_command c;

    if (ready > dq->view.mask + 1)
        return -1;
    for (uint32_t i = 0; i < ready; i++) {
        ring_sqe_load(&dq->view.sq[dq->sq_head & dq->view.mask], &c);
        dq->sq_head++;
        if (!take(dq, &c))
            return -1;
    }
    return (int)ready;
}

/* ---- the queue's loop ---- */

static void serve(struct driver_queue *dq)
{
    for (;;) {
        int took = take_all(dq);
        if (took < 0)
            return;
        if (dq->in_flight > 0)
            lp_queue_poll(dq->stack.top, 0);
        if (took == 0 && dq->in_flight > 0 && !dq->owes_wake)
            lp_queue_poll(dq->stack.top, DISK_WAIT_NS);
        if (dq->owes_wake) {
            publish(dq);
            ring_wake(&dq->wait, &dq->view.shared->app_sleeping);
            dq->owes_wake = false;
        } else if (took == 0 && dq->in_flight == 0) {
            ring_wait_for(&dq->wait, &dq->view.shared->sq_tail, dq->sq_head,
                          &dq->view.shared->driver_sleeping, NULL, RING_WAIT_FOREVER);
        }
    }
}

static void *queue_main(void *arg)
{
    struct thread_arg t = *(struct thread_arg *)arg;

    free(arg);
    pthread_barrier_wait(&t.driver->go); /* started: what starting needs is done unfiltered */
    pthread_barrier_wait(&t.driver->go); /* the application knows, and so may the queue */
    serve(t.queue);
    _exit(1); /* a broken protocol ends the driver: the application sees the socket close */
}

/* ---- set-up ---- */

static int check_config(struct ring_config *c, struct lp_error *err)
{
    c->url[sizeof c->url - 1] = '\0';
    if (c->magic != RING_MAGIC || c->queues < 1 || c->queues > RING_MAX_QUEUES || c->depth < 1 ||
        c->depth > RING_MAX_DEPTH || (c->page_size != 4096 && c->page_size != 16384) ||
        c->prep > LP_PREP_BLOCK || c->iommu_size % ((uint64_t)c->queues * 8) != 0)
        return lp_error_set(err, LP_ERROR_PEER, EPROTO,
                            "the application's configuration makes no sense: both must be of the "
                            "same version of lunpath");
    return 0;
}

static int open_memories(struct driver *driver, int fds[RING_CONFIG_FDS], struct lp_error *err)
{
    size_t control = ring_control_size(driver->config.queues, driver->config.depth);
    int e = memory_open(&driver->control, fds[0], control, err);

    fds[0] = -1;
    if (e == 0)
        e = memory_open(&driver->arena, fds[1], driver->config.arena_size, err), fds[1] = -1;
    if (e == 0 && driver->config.iommu_size > 0)
        e = memory_open(&driver->iommu, fds[2], driver->config.iommu_size, err), fds[2] = -1;
    return e;
}

static int open_disk(struct driver *driver, int fds[RING_CONFIG_FDS], struct lp_error *err)
{
    const struct ring_config *c = &driver->config;
    struct lp_disk_opts opts = {.fd = c->has_disk_fd ? fds[3] : -1,
                                .read_only = c->read_only,
                                .buffered = c->buffered,
                                .zero_reads = c->zero_reads,
                                .small_pages = c->small_pages,
                                .engine = (enum lp_engine)c->engine};
    if (c->has_disk_fd)
        fds[3] = -1;
    driver->disk = lp_disk_open(c->url, &opts, err);
    return driver->disk ? 0 : -1;
}

static int open_slots(struct driver_queue *dq, struct lp_error *err)
{
    dq->slots = calloc(dq->depth, sizeof *dq->slots);
    struct iovec *many = calloc((size_t)dq->depth * RING_MAX_SEGMENTS, sizeof *many);
    if (!dq->slots || !many) {
        free(many);
        return lp_error_sys(err, ENOMEM, "cannot make a queue of the driver");
    }
    for (unsigned i = 0; i < dq->depth; i++) {
        dq->slots[i].many = many + (size_t)i * RING_MAX_SEGMENTS;
        dq->slots[i].owner = dq;
        dq->slots[i].req.user = &dq->slots[i];
        dq->slots[i].req.complete = slot_complete;
    }
    return 0;
}

static int open_queue(struct driver *driver, unsigned i, struct lp_error *err)
{
    struct driver_queue *dq = &driver->queues[i];
    const struct ring_config *c = &driver->config;
    size_t table = (size_t)(c->iommu_size / c->queues); /* each queue has its own, in order */
    struct stack_opts opts = {.depth = c->depth,
                              .prep = (enum lp_prep)c->prep,
                              .page_size = c->page_size,
                              .iommu = driver->iommu.base ? (char *)driver->iommu.base + i * table
                                                          : NULL,
                              .iommu_size = table,
                              .arena = driver->arena.base,
                              .arena_size = driver->arena.size};

    ring_view_at(&dq->view, driver->control.base, c->depth, i);
    ring_wait_init(&dq->wait, c->may_spin != 0);
    dq->arena = driver->arena.base;
    dq->arena_size = driver->arena.size;
    dq->depth = c->depth;
    dq->cpu = c->driver_cpu < 0 ? -1 : c->driver_cpu + (int)i;
    return open_slots(dq, err) != 0 ? -1 : stack_open(&dq->stack, driver->disk, &opts, err);
}

/* Pinned where asked; where that CPU may not be used it runs anywhere, and reports say so. */
static int start_thread(struct thread_arg *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    cpu_set_t set;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (arg->queue->cpu >= 0) {
        CPU_ZERO(&set);
        CPU_SET((unsigned)arg->queue->cpu, &set);
        pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    int e = pthread_create(&thread, &attr, queue_main, arg);
    if (e == EINVAL && arg->queue->cpu >= 0)
        e = pthread_create(&thread, NULL, queue_main, arg);
    pthread_attr_destroy(&attr);
    return e;
}

static int start_threads(struct driver *driver, struct lp_error *err)
{
    pthread_barrier_init(&driver->go, NULL, driver->config.queues + 1);
    for (unsigned i = 0; i < driver->config.queues; i++) {
        struct thread_arg *arg = malloc(sizeof *arg);
        if (!arg)
            return lp_error_sys(err, ENOMEM, "cannot start a driver thread");
        *arg = (struct thread_arg){driver, &driver->queues[i]};
        int e = start_thread(arg);
        if (e != 0) {
            free(arg);
            return lp_error_sys(err, e, "cannot start a driver thread");
        }
    }
    return 0;
}

static int set_up(struct driver *driver, int socket, char *mode, size_t mode_size,
                  struct lp_error *err)
{
    int fds[RING_CONFIG_FDS];
    int e = ring_recv_config(socket, &driver->config, fds);

    if (e != 0)
        return lp_error_sys(err, -e, "no configuration from the application");
    if (check_config(&driver->config, err) != 0 || open_memories(driver, fds, err) != 0 ||
        open_disk(driver, fds, err) != 0)
        return -1;
    for (int i = 0; i < RING_CONFIG_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    driver->queues = calloc(driver->config.queues, sizeof *driver->queues);
    if (!driver->queues)
        return lp_error_sys(err, ENOMEM, "cannot make the driver's queues");
    /* Before any thread, also of the disk's queues: privileges belong to threads. */
    sandbox_shed(mode, mode_size);
    for (unsigned i = 0; i < driver->config.queues; i++)
        if (open_queue(driver, i, err) != 0)
            return -1;
    if (start_threads(driver, err) != 0)
        return -1;
    pthread_barrier_wait(&driver->go);
    return sandbox_filter(mode, mode_size, err);
}

int ring_driver_serve(int socket)
{
    struct driver *driver = calloc(1, sizeof *driver);
    struct ring_reply reply;
    struct lp_error err = {0};
    char byte;

    memset(&reply, 0, sizeof reply);
    if (!driver)
        return 1;
    driver->control.fd = driver->arena.fd = driver->iommu.fd = -1;
    reply.ok = set_up(driver, socket, reply.mode, sizeof reply.mode, &err) == 0;
    if (!reply.ok)
        snprintf(reply.msg, sizeof reply.msg, "%s", err.msg);
    if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) != (ssize_t)sizeof reply || !reply.ok)
        _exit(1);
    pthread_barrier_wait(&driver->go);
    /* Nothing is ever sent: this returns when the application is gone or done with us. */
    while (recv(socket, &byte, 1, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
}

int lp_ring_driver_main(int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[1], RING_DRIVER_ARG) != 0)
        return -1;
    prctl(PR_SET_NAME, "lunpath-driver"); /* run from /proc/self/exe it would be called "exe" */
    return ring_driver_serve(RING_DRIVER_FD);
}
