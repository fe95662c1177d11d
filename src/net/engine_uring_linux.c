/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readiness by io_uring. One system call says what to watch, waits and collects: arming costs none
 * of its own, and a loop under load that finds its events at once does not grow with the number of
 * descriptors.
 *
 * Polls are single-shot and armed again at the next wait: that makes them level-triggered, whatever
 * the callback left unread. Data themselves go through plain non-blocking recvmsg and sendmsg: a
 * read that is given its buffer only when there is something to read needs no buffer while idle,
 * can decide at the last moment where the bytes go, and leaves nothing to cancel at the end. What
 * that costs is shown by perf/net.sh, whose way "ring" has the data in the ring: for a lone round
 * trip three calls in place of one, which is a quarter of its time where both ends share a CPU and
 * lost in the wake-up where they do not. Under load, or with large data, it costs nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "net/net_int.h"

enum { ENTRIES = 256 };

#define NOBODY UINT64_MAX /* user_data of removals */

struct uring_engine {
    struct io_uring ring;
};

static void *uring_open(struct lp_error *err)
{
    struct uring_engine *e = calloc(1, sizeof(*e));
    struct io_uring_params params = {.flags =
                                         IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG};
    int ret;

    if (!e) {
        lp_error_sys(err, ENOMEM, "network reactor");
        return NULL;
    }
    ret = io_uring_queue_init_params(ENTRIES, &e->ring, &params);
    if (ret == -EINVAL) { /* before Linux 5.19 */
        memset(&params, 0, sizeof(params));
        ret = io_uring_queue_init_params(ENTRIES, &e->ring, &params);
    }
    if (ret < 0) {
        lp_error_sys(err, -ret, "io_uring cannot be used here; choose the engine poll");
        free(e);
        return NULL;
    }
    return e;
}

static void uring_close(void *engine)
{
    struct uring_engine *e = engine;

    io_uring_queue_exit(&e->ring);
    free(e);
}

static struct io_uring_sqe *entry(struct uring_engine *e, struct net_reactor *r)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&e->ring);

    while (!sqe) {
        r->stats.waits++;
        io_uring_submit(&e->ring);
        sqe = io_uring_get_sqe(&e->ring);
    }
    return sqe;
}

static uint64_t name_of(unsigned slot, uint32_t generation)
{
    return (uint64_t)generation << 32 | slot;
}

static void disarm(struct uring_engine *e, struct net_reactor *r, unsigned index)
{
    struct io_uring_sqe *sqe = entry(e, r);

    io_uring_prep_poll_remove(sqe, name_of(index, r->slots[index].generation));
    io_uring_sqe_set_data64(sqe, NOBODY);
    r->slots[index].armed = 0;
}

/* Writes into the ring what has changed since the last wait. */
static void arm(struct uring_engine *e, struct net_reactor *r)
{
    for (unsigned i = 0; i < r->changed_count; i++) {
        unsigned index = r->changed[i];
        struct net_slot *slot = &r->slots[index];
        int events = slot->watch ? slot->watch->events : 0;
        struct io_uring_sqe *sqe;

        slot->changed = false;
        if (slot->armed == events)
            continue;
        if (slot->armed) {
            disarm(e, r, index);
            slot->generation++; /* the removed poll may have fired already: its event is stale */
        }
        if (events) {
            sqe = entry(e, r);
            io_uring_prep_poll_add(sqe, slot->watch->fd, (unsigned)events);
            io_uring_sqe_set_data64(sqe, name_of(index, slot->generation));
            slot->armed = events;
        }
    }
    r->changed_count = 0;
}

static void uring_arm(void *engine, struct net_reactor *r)
{
    struct uring_engine *e = engine;

    arm(e, r);
    if (io_uring_sq_ready(&e->ring) == 0)
        return;
    r->stats.waits++;
    io_uring_submit(&e->ring);
}

/* An armed poll holds the file: without this a closed listener would keep its port, and a closed
 * connection would not say good-bye, until the next wait. */
static void uring_forget(void *engine, struct net_reactor *r, unsigned slot)
{
    struct uring_engine *e = engine;

    if (r->slots[slot].armed == 0)
        return;
    disarm(e, r, slot);
    r->stats.waits++;
    io_uring_submit(&e->ring);
}

static void sleep_for(struct uring_engine *e, struct net_reactor *r, uint64_t timeout_ns)
{
    struct __kernel_timespec time = {
        .tv_sec = (long long)(timeout_ns / 1000000000),
        .tv_nsec = (long long)(timeout_ns % 1000000000),
    };
    struct io_uring_cqe *cqe;

    r->stats.waits++;
    if (timeout_ns == 0)
        io_uring_submit_and_get_events(&e->ring);
    else
        io_uring_submit_and_wait_timeout(&e->ring, &cqe, 1, timeout_ns == NET_NEVER ? NULL : &time,
                                         NULL);
}

/* Turns completions to events. A poll that has fired is armed anew at the next wait. */
static int collect(struct uring_engine *e, struct net_reactor *r, struct net_event *events, int max)
{
    struct io_uring_cqe *cqe;
    int count = 0;

    /* Then looking into the ring is a system call, made by the library. */
    if (IO_URING_READ_ONCE(*e->ring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW))
        r->stats.waits++;
    while (count < max && io_uring_peek_cqe(&e->ring, &cqe) == 0) {
        uint64_t name = io_uring_cqe_get_data64(cqe);
        unsigned index = (uint32_t)name;
        int result = cqe->res;

        io_uring_cqe_seen(&e->ring, cqe);
        if (name == NOBODY || index >= r->slot_count)
            continue;
        if (r->slots[index].generation != (uint32_t)(name >> 32) || !r->slots[index].watch)
            continue;
        r->slots[index].armed = 0;
        if (!r->slots[index].changed) {
            r->slots[index].changed = true;
            r->changed[r->changed_count++] = index;
        }
        events[count++] =
            (struct net_event){index, (uint32_t)(name >> 32), result < 0 ? POLLERR : result};
    }
    return count;
}

static int uring_wait(void *engine, struct net_reactor *r, uint64_t timeout_ns,
                      struct net_event *events, int max)
{
    struct uring_engine *e = engine;
    int count;

    arm(e, r);
    /* What is there already needs no system call, unless there is something to tell; nor does the
     * answer that nothing is there, so that spinning is cheap. */
    if (io_uring_sq_ready(&e->ring) == 0) {
        count = collect(e, r, events, max);
        if (count > 0 || timeout_ns == 0)
            return count;
    }
    sleep_for(e, r, timeout_ns);
    return collect(e, r, events, max);
}

static int uring_fd(void *engine)
{
    return ((struct uring_engine *)engine)->ring.ring_fd;
}

static const struct net_engine uring = {"uring",      uring_open, uring_close, uring_arm,
                                        uring_forget, uring_wait, uring_fd};

const struct net_engine *const net_engines[] = {&uring, &net_engine_poll, NULL};
