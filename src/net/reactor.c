/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop: timers, watches, and in which order things are done. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/net_int.h"

static uint64_t system_clock(void *user)
{
    (void)user;
    return clock_now_ns();
}

int net_prepare_fd(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -1;
    return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* ---- waking ---- */

static void woken(struct net_watch *watch, int revents)
{
    char bytes[64];

    (void)revents;
    while (read(((struct net_reactor *)watch->user)->wake_fds[0], bytes, sizeof(bytes)) > 0)
        ;
}

void net_wake(struct net_reactor *r)
{
    int saved = errno;

    /* A full pipe wakes as well. */
    while (write(r->wake_fds[1], "", 1) < 0 && errno == EINTR)
        ;
    errno = saved;
}

/* ---- making ---- */

static int open_engine(struct net_reactor *r, const char *name, struct lp_error *err)
{
    bool known = false;

    for (unsigned i = 0; net_engines[i]; i++) {
        if (name && strcmp(name, net_engines[i]->name) != 0)
            continue;
        known = true;
        r->state = net_engines[i]->open(err);
        if (r->state) {
            r->engine = net_engines[i];
            return 0;
        }
    }
    if (!known)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "there is no network engine \"%.40s\" in this build; choose %s%s", name,
                            net_engines[0]->name, net_engines[1] ? " or poll" : "");
    return -1;
}

struct net_reactor *net_reactor_new(const struct net_reactor_opts *opts, struct lp_error *err)
{
    struct net_reactor *r = calloc(1, sizeof(*r));

    if (!r) {
        lp_error_sys(err, ENOMEM, "network reactor");
        return NULL;
    }
    r->clock = opts && opts->clock ? opts->clock : system_clock;
    r->clock_user = opts ? opts->clock_user : NULL;
    r->spin_ns = opts ? opts->spin_ns : 0;
    r->now = r->clock(r->clock_user);
    r->wake_fds[0] = r->wake_fds[1] = -1;
    if (open_engine(r, opts ? opts->engine : NULL, err) < 0)
        goto out;
    if (pipe(r->wake_fds) < 0 || net_prepare_fd(r->wake_fds[0]) < 0 ||
        net_prepare_fd(r->wake_fds[1]) < 0) {
        lp_error_sys(err, errno, "network reactor: pipe");
        goto out;
    }
    r->wake_watch = (struct net_watch){.callback = woken, .user = r};
    if (net_watch_start(r, &r->wake_watch, r->wake_fds[0], POLLIN, err) == 0)
        return r;
out:
    net_reactor_free(r);
    return NULL;
}

void net_reactor_free(struct net_reactor *r)
{
    if (!r)
        return;
    net_lookup_end_all(r);
    if (r->engine)
        r->engine->close(r->state);
    for (int i = 0; i < 2; i++)
        if (r->wake_fds[i] >= 0)
            close(r->wake_fds[i]);
    free(r->slots);
    free(r->changed);
    free(r->timers);
    free(r);
}

const char *net_reactor_engine(const struct net_reactor *r)
{
    return r->engine->name;
}

uint64_t net_now(const struct net_reactor *r)
{
    return r->now;
}

uint64_t net_now_exact(struct net_reactor *r)
{
    r->now = r->clock(r->clock_user);
    return r->now;
}

int net_reactor_fd(const struct net_reactor *r)
{
    return r->engine->fd(r->state);
}

const struct net_reactor_stats *net_reactor_stats(const struct net_reactor *r)
{
    return &r->stats;
}

/* ---- timers: a binary heap ---- */

static void place(struct net_reactor *r, struct net_timer *timer, unsigned i)
{
    r->timers[i] = timer;
    timer->index = i + 1;
}

static void sift(struct net_reactor *r, struct net_timer *timer, unsigned i)
{
    while (i > 0 && r->timers[(i - 1) / 2]->at > timer->at) {
        place(r, r->timers[(i - 1) / 2], i);
        i = (i - 1) / 2;
    }
    for (;;) {
        unsigned child = 2 * i + 1;

        if (child + 1 < r->timer_count && r->timers[child + 1]->at < r->timers[child]->at)
            child++;
        if (child >= r->timer_count || r->timers[child]->at >= timer->at)
            break;
        place(r, r->timers[child], i);
        i = child;
    }
    place(r, timer, i);
}

int net_timer_set(struct net_reactor *r, struct net_timer *timer, uint64_t at_ns)
{
    timer->at = at_ns;
    if (timer->index == 0) {
        if (r->timer_count == r->timer_room) {
            unsigned room = r->timer_room ? 2 * r->timer_room : 16;
            struct net_timer **timers = realloc(r->timers, room * sizeof(*timers));

            if (!timers)
                return -1;
            r->timers = timers;
            r->timer_room = room;
        }
        place(r, timer, r->timer_count++);
    }
    sift(r, timer, timer->index - 1);
    return 0;
}

void net_timer_cancel(struct net_reactor *r, struct net_timer *timer)
{
    unsigned i = timer->index - 1;
    struct net_timer *last;

    if (timer->index == 0)
        return;
    timer->index = 0;
    last = r->timers[--r->timer_count];
    if (last != timer)
        sift(r, last, i);
}

uint64_t net_deadline(const struct net_reactor *r)
{
    if (r->ended || r->senders)
        return r->now;
    return r->timer_count ? r->timers[0]->at : NET_NEVER;
}

static int run_timers(struct net_reactor *r)
{
    int count = 0;

    /* Those that a callback sets to "now" wait for the next turn: no endless loop. */
    for (unsigned left = r->timer_count; left > 0 && r->timer_count > 0; left--) {
        struct net_timer *timer = r->timers[0];

        if (timer->at > r->now)
            break;
        net_timer_cancel(r, timer);
        timer->callback(timer);
        count++;
    }
    return count;
}

/* ---- watches ---- */

static void changed(struct net_reactor *r, unsigned slot)
{
    if (r->slots[slot].changed)
        return;
    r->slots[slot].changed = true;
    r->changed[r->changed_count++] = slot;
}

static int grow_slots(struct net_reactor *r)
{
    unsigned room = r->slot_room ? 2 * r->slot_room : 16;
    struct net_slot *slots = realloc(r->slots, room * sizeof(*slots));
    unsigned *list;

    if (!slots)
        return -1;
    r->slots = slots;
    list = realloc(r->changed, room * sizeof(*list));
    if (!list)
        return -1;
    r->changed = list;
    memset(slots + r->slot_room, 0, (room - r->slot_room) * sizeof(*slots));
    r->slot_room = room;
    return 0;
}

static unsigned free_slot(const struct net_reactor *r)
{
    unsigned i = 0;

    while (i < r->slot_count && r->slots[i].watch)
        i++;
    return i;
}

int net_watch_start(struct net_reactor *r, struct net_watch *watch, int fd, int events,
                    struct lp_error *err)
{
    unsigned slot = free_slot(r);

    if (slot == r->slot_room && grow_slots(r) < 0)
        return lp_error_sys(err, ENOMEM, "watching a descriptor");
    if (slot == r->slot_count)
        r->slot_count++;
    r->slots[slot].watch = watch;
    r->slots[slot].generation++;
    watch->fd = fd;
    watch->events = events;
    watch->slot = slot;
    watch->on = true;
    changed(r, slot);
    return 0;
}

void net_watch_events(struct net_reactor *r, struct net_watch *watch, int events)
{
    if (!watch->on || watch->events == events)
        return;
    watch->events = events;
    changed(r, watch->slot);
}

void net_watch_stop(struct net_reactor *r, struct net_watch *watch)
{
    if (!watch->on)
        return;
    watch->on = false;
    r->engine->forget(r->state, r, watch->slot);
    r->slots[watch->slot].watch = NULL;
    r->slots[watch->slot].generation++;
}

static int dispatch(struct net_reactor *r, const struct net_event *events, int count)
{
    int called = 0;

    for (int i = 0; i < count; i++) {
        const struct net_slot *slot = &r->slots[events[i].slot];
        struct net_watch *watch = slot->watch;
        int wanted;

        if (!watch || slot->generation != events[i].generation)
            continue; /* stopped by a callback of this turn, or long ago */
        wanted = events[i].revents & (watch->events | POLLERR | POLLHUP | POLLNVAL);
        if (wanted == 0 || watch->events == 0)
            continue;
        watch->callback(watch, wanted);
        called++;
    }
    return called;
}

/* ---- the loop ---- */

static uint64_t sleep_time(const struct net_reactor *r, uint64_t timeout_ns)
{
    uint64_t deadline = net_deadline(r);

    if (deadline == NET_NEVER)
        return timeout_ns;
    deadline = deadline > r->now ? deadline - r->now : 0;
    return deadline < timeout_ns ? deadline : timeout_ns;
}

static int wait_for_events(struct net_reactor *r, uint64_t timeout_ns, struct net_event *events)
{
    uint64_t spin_ns = r->spin_ns < timeout_ns ? r->spin_ns : timeout_ns;
    uint64_t begin;
    int count;

    if (spin_ns == 0)
        return r->engine->wait(r->state, r, timeout_ns, events, NET_EVENTS_MAX);
    begin = net_now_exact(r);
    do {
        count = r->engine->wait(r->state, r, 0, events, NET_EVENTS_MAX);
        if (count > 0)
            return count;
    } while (net_now_exact(r) - begin < spin_ns);
    if (timeout_ns != NET_NEVER)
        timeout_ns -= spin_ns;
    return timeout_ns ? r->engine->wait(r->state, r, timeout_ns, events, NET_EVENTS_MAX) : 0;
}

void net_flush(struct net_reactor *r)
{
    net_stream_flush_all(r);
    r->engine->arm(r->state, r);
}

int net_run_once(struct net_reactor *r, uint64_t timeout_ns)
{
    struct net_event events[NET_EVENTS_MAX];
    int called, count;

    net_stream_flush_all(r);
    net_now_exact(r);
    count = wait_for_events(r, sleep_time(r, timeout_ns), events);
    net_now_exact(r);
    called = dispatch(r, events, count);
    called += net_lookup_tell(r);
    called += run_timers(r);
    called += net_stream_tell_ended(r);
    net_stream_flush_all(r);
    return called;
}
