/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "host/ring_host.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct seen { /* a queue's progress when the monitor last saw it move */
    unsigned completed, polls;
    uint64_t at_ns;
};

enum { LOOK_MS = 1000 }; /* how often the monitor looks for progress, at most */

struct ring_host {
    struct ring_host_opts opts;
    pthread_t monitor;
    int stop_event;
    char mode[160];

    pthread_mutex_t lock;
    pthread_cond_t changed;       /* current or failed changed */
    struct ring_session *current; /* NULL: between drivers */
    bool failed;
    const char *why;           /* why the current session is being ended by us */
    char how[128];             /* how the last driver ended */
    struct lp_host_stats past; /* of sessions that are over */

    struct ring_progress *progress; /* one a queue */
    struct seen *seen;              /* the monitor's */
};

static uint64_t read_counter(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_shared_stats(const struct ring_host *h, const struct ring_session *s,
                             struct lp_host_stats *stats)
{
    struct ring_view view;

    for (unsigned i = 0; i < h->opts.config.queues; i++) {
        ring_view_at(&view, s->control.base, h->opts.config.depth, i);
        stats->disk_requests += read_counter(&view.shared->requests);
        stats->disk_bytes_read += read_counter(&view.shared->bytes_read);
        stats->disk_bytes_written += read_counter(&view.shared->bytes_written);
        stats->driver_syscalls += read_counter(&view.shared->syscalls);
        stats->driver_sleeps += read_counter(&view.shared->sleeps);
    }
}

static void release_locked(struct ring_session *s)
{
    if (--s->users == 0)
        ring_session_free(s);
}

/* Whatever the word says (the dead driver may have left anything there), the sleeper wakes. */
static void wake_queues(struct ring_host *h, struct ring_session *s)
{
    struct ring_view view;

    for (unsigned i = 0; i < h->opts.config.queues; i++) {
        ring_view_at(&view, s->control.base, h->opts.config.depth, i);
        atomic_store_explicit(&view.shared->app_sleeping, 0, memory_order_seq_cst);
        syscall(SYS_futex, &view.shared->app_sleeping, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

/* The driver of the current session is gone or must go. */
static void bury(struct ring_host *h)
{
    uint64_t cpu_ns = 0;
    char how[64];

    pthread_mutex_lock(&h->lock);
    struct ring_session *s = h->current;
    pid_t pid = s->pid;
    s->pid = 0; /* from here on nobody signals a number that may be somebody else's */
    pthread_mutex_unlock(&h->lock);

    ring_session_reap(pid, how, sizeof how, &cpu_ns);

    pthread_mutex_lock(&h->lock);
    snprintf(h->how, sizeof h->how, "%s", h->why ? h->why : how);
    h->why = NULL;
    h->past.driver_cpu_ns += cpu_ns;
    add_shared_stats(h, s, &h->past);
    h->current = NULL;
    atomic_store_explicit(&s->dead, true, memory_order_seq_cst);
    wake_queues(h, s);
    release_locked(s);
    pthread_mutex_unlock(&h->lock);
}

/* A stop that comes meanwhile ends the wait for the new driver. */
static void start_next(struct ring_host *h)
{
    struct lp_error err;
    struct ring_session *s = NULL;

    if (h->opts.restart)
        s = ring_session_start(h->opts.program, &h->opts.config, h->opts.fds, h->stop_event, &err);
    pthread_mutex_lock(&h->lock);
    h->current = s;
    memset(h->seen, 0, h->opts.config.queues * sizeof *h->seen);
    if (s)
        h->past.restarts++;
    else
        h->failed = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

/* Whether a queue has had something in flight and nothing completed for stall_ns. */
static bool stalled(struct ring_host *h)
{
    uint64_t now = clock_now_ns();

    for (unsigned i = 0; i < h->opts.config.queues; i++) {
        struct seen *seen = &h->seen[i];
        struct ring_progress *p = &h->progress[i];
        unsigned completed = atomic_load_explicit(&p->completed, memory_order_relaxed);
        bool busy = atomic_load_explicit(&p->in_flight, memory_order_relaxed) > 0;
        unsigned polls = atomic_load_explicit(&p->polls, memory_order_relaxed);
        bool looked =
            polls != seen->polls || atomic_load_explicit(&p->waiting, memory_order_relaxed);
        seen->polls = polls;
        if (!busy || !looked || completed != seen->completed || seen->at_ns == 0)
            *seen = (struct seen){completed, polls, now};
        else if (now - seen->at_ns > h->opts.stall_ns)
            return true;
    }
    return false;
}

/* True when the driver ended (or said something, which it must not) or stalls, false when told to
 * stop. */
static bool watch(struct ring_host *h)
{
    struct pollfd p[2] = {{.fd = h->current->socket, .events = POLLIN},
                          {.fd = h->stop_event, .events = POLLIN}};
    uint64_t look_ms = h->opts.stall_ns / 4000000;
    int timeout_ms = look_ms > LOOK_MS ? LOOK_MS : (int)look_ms + 1;

    for (;;) {
        int n = poll(p, 2, timeout_ms);
        if (n > 0)
            return p[1].revents == 0;
        if (n < 0 && errno != EINTR)
            return false;
        if (stalled(h)) {
            ring_host_end_session(h, h->current, "it made no progress for too long");
            return true;
        }
    }
}

static void *monitor_main(void *arg)
{
    struct ring_host *h = arg;

    /* Only this thread changes current, so it may read it without the lock. */
    while (h->current && watch(h)) {
        bury(h);
        start_next(h);
    }
    if (h->current)
        bury(h);
    pthread_mutex_lock(&h->lock);
    h->failed = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static int start_monitor(struct ring_host *h, struct lp_error *err)
{
    sigset_t all, old;

    /* Signals are for the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = pthread_create(&h->monitor, NULL, monitor_main, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e == 0 ? 0 : lp_error_sys(err, e, "cannot start the thread that watches the driver");
}

static void free_host(struct ring_host *h)
{
    if (h->stop_event >= 0)
        close(h->stop_event);
    free(h->progress);
    free(h->seen);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

struct ring_host *ring_host_start(const struct ring_host_opts *opts, struct lp_error *err)
{
    struct ring_host *h = calloc(1, sizeof *h);

    if (!h) {
        lp_error_sys(err, ENOMEM, "cannot make the host");
        return NULL;
    }
    h->opts = *opts;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attr);
    pthread_condattr_destroy(&attr);
    h->stop_event = eventfd(0, EFD_CLOEXEC);
    h->progress = aligned_alloc(RING_LINE, opts->config.queues * sizeof *h->progress);
    h->seen = calloc(opts->config.queues, sizeof *h->seen);
    if (h->stop_event < 0 || !h->progress || !h->seen) {
        lp_error_sys(err, errno, "cannot make the host");
        goto fail;
    }
    memset(h->progress, 0, opts->config.queues * sizeof *h->progress);
    h->current = ring_session_start(opts->program, &opts->config, opts->fds, -1, err);
    if (!h->current)
        goto fail;
    snprintf(h->mode, sizeof h->mode, "%s", h->current->mode);
    if (start_monitor(h, err) == 0)
        return h;
    bury(h);
fail:
    free_host(h);
    return NULL;
}

void ring_host_stop(struct ring_host *h)
{
    uint64_t one = 1;

    while (write(h->stop_event, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(h->monitor, NULL);
    free_host(h);
}

struct ring_progress *ring_host_progress(struct ring_host *h, unsigned i)
{
    return &h->progress[i];
}

static struct timespec deadline_after(uint64_t ns)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t)(ns / 1000000000u);
    ts.tv_nsec += (long)(ns % 1000000000u);
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_nsec -= 1000000000;
        ts.tv_sec++;
    }
    return ts;
}

struct ring_session *ring_host_take(struct ring_host *h, uint64_t wait_ns, bool *failed)
{
    struct timespec until = deadline_after(wait_ns);

    pthread_mutex_lock(&h->lock);
    while (!h->current && !h->failed && wait_ns > 0)
        if (pthread_cond_timedwait(&h->changed, &h->lock, &until) == ETIMEDOUT)
            break;
    struct ring_session *s = h->current;
    if (s)
        s->users++;
    *failed = h->failed;
    pthread_mutex_unlock(&h->lock);
    return s;
}

void ring_host_release(struct ring_host *h, struct ring_session *s)
{
    pthread_mutex_lock(&h->lock);
    release_locked(s);
    pthread_mutex_unlock(&h->lock);
}

void ring_host_end_session(struct ring_host *h, struct ring_session *s, const char *why)
{
    pthread_mutex_lock(&h->lock);
    if (s->pid > 0) {
        h->why = why;
        kill(s->pid, SIGKILL); /* the monitor sees the socket close */
    }
    pthread_mutex_unlock(&h->lock);
}

void ring_host_stats(struct ring_host *h, struct lp_host_stats *stats)
{
    clockid_t clock;
    struct timespec ts;

    pthread_mutex_lock(&h->lock);
    *stats = h->past;
    if (h->current) {
        add_shared_stats(h, h->current, stats);
        if (h->current->pid > 0 && clock_getcpuclockid(h->current->pid, &clock) == 0 &&
            clock_gettime(clock, &ts) == 0)
            stats->driver_cpu_ns += (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    }
    pthread_mutex_unlock(&h->lock);
}

pid_t ring_host_pid(struct ring_host *h)
{
    pthread_mutex_lock(&h->lock);
    pid_t pid = h->current ? h->current->pid : 0;
    pthread_mutex_unlock(&h->lock);
    return pid;
}

bool ring_host_failed(struct ring_host *h)
{
    pthread_mutex_lock(&h->lock);
    bool failed = h->failed;
    pthread_mutex_unlock(&h->lock);
    return failed;
}

const char *ring_host_mode(struct ring_host *h)
{
    return h->mode;
}
