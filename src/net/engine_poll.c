/* SPDX-License-Identifier: BSD-2-Clause */
/* Readiness by poll(2): for any POSIX system. Costs grow with the number of descriptors. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "net/net_int.h"

struct poll_engine {
    struct pollfd *fds;
    unsigned *slots;
    unsigned room;
    unsigned first; /* slot to begin with: behind the last one that was told */
};

static void *poll_open(struct lp_error *err)
{
    struct poll_engine *e = calloc(1, sizeof(*e));

    if (!e)
        lp_error_sys(err, ENOMEM, "network reactor");
    return e;
}

static void poll_close(void *engine)
{
    struct poll_engine *e = engine;

    free(e->fds);
    free(e->slots);
    free(e);
}

/* -1: out of memory, and this turn watches what fits. */
static int grow(struct poll_engine *e, unsigned room)
{
    struct pollfd *fds;
    unsigned *slots;

    if (room <= e->room)
        return 0;
    fds = realloc(e->fds, room * sizeof(*fds));
    if (fds)
        e->fds = fds;
    slots = realloc(e->slots, room * sizeof(*slots));
    if (slots)
        e->slots = slots;
    if (!fds || !slots)
        return -1;
    e->room = room;
    return 0;
}

static int poll_timeout(uint64_t ns)
{
    uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

    if (ns == NET_NEVER)
        return -1;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

/* poll() is told all again each time. */
static void poll_arm(void *engine, struct net_reactor *r)
{
    (void)engine;
    for (unsigned i = 0; i < r->changed_count; i++)
        r->slots[r->changed[i]].changed = false;
    r->changed_count = 0;
}

static void poll_forget(void *engine, struct net_reactor *r, unsigned slot)
{
    (void)engine;
    (void)r;
    (void)slot;
}

static int poll_wait(void *engine, struct net_reactor *r, uint64_t timeout_ns,
                     struct net_event *events, int max)
{
    struct poll_engine *e = engine;
    unsigned n = 0;
    int count = 0, ready;

    poll_arm(engine, r);
    grow(e, r->slot_count);
    for (unsigned i = 0; i < r->slot_count && n < e->room; i++) {
        unsigned slot = (e->first + i) % r->slot_count;
        const struct net_watch *watch = r->slots[slot].watch;

        if (!watch || watch->events == 0)
            continue;
        e->fds[n] = (struct pollfd){watch->fd, (short)watch->events, 0};
        e->slots[n++] = slot;
    }
    r->stats.waits++;
    ready = poll(e->fds, n, poll_timeout(timeout_ns));
    for (unsigned i = 0; i < n && ready > 0 && count < max; i++) {
        if (e->fds[i].revents == 0)
            continue;
        events[count++] =
            (struct net_event){e->slots[i], r->slots[e->slots[i]].generation, e->fds[i].revents};
        e->first = e->slots[i] + 1;
    }
    return count;
}

static int poll_fd(void *engine)
{
    (void)engine;
    return -1;
}

const struct net_engine net_engine_poll = {"poll",      poll_open, poll_close, poll_arm,
                                           poll_forget, poll_wait, poll_fd};
