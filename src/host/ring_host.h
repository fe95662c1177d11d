/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring host, application's side: the driver process and its monitor, and the raw queues.
 *
 * Threads: each queue belongs to one thread. The monitor thread owns the sessions: it notices the
 * driver's end, or that it makes no progress, reaps it, marks the session dead, wakes the queues,
 * and starts the next session when that was asked for. A queue fails its in-flight requests with
 * -EIO when it sees its session dead, and moves to the next one. What they share is guarded by
 * ring_host.lock, but for session.dead.
 */
#ifndef HOST_RING_HOST_H
#define HOST_RING_HOST_H

#include "host/ring_session.h"

struct ring_host;

struct ring_host_opts {
    struct ring_config config; /* what each driver is told */
    int fds[3];                /* arena, iommu or -1, disk or -1; the caller's */
    void *arena;
    size_t arena_size;
    const char *program;
    bool restart;
    uint64_t stall_ns;       /* a driver without progress for so long is ended */
    struct lp_limits limits; /* of the queues */
};

struct ring_host *ring_host_start(const struct ring_host_opts *opts, struct lp_error *err);
void ring_host_stop(struct ring_host *h); /* its queues are closed already */

/* Raw queue i: takes requests whose segments lie in the arena, or prepared ones. opts as given to
 * ring_host_start(). Closed by the
 * caller. */
struct lp_queue *ring_queue_open(struct ring_host *h, unsigned i, const struct ring_host_opts *opts,
                                 struct lp_error *err);
uint64_t ring_queue_sleeps(const struct lp_queue *q); /* waits that slept */

void ring_host_stats(struct ring_host *h, struct lp_host_stats *stats);
pid_t ring_host_pid(struct ring_host *h);
bool ring_host_failed(struct ring_host *h);
/* For people: sandbox and memory. Lives as long as the host. */
const char *ring_host_mode(struct ring_host *h);

/* ---- between queue and host ---- */

/* What a queue shows of itself to the monitor; in private memory, so that no peer can fake it. */
struct ring_progress {
    alignas(RING_LINE) atomic_uint in_flight;
    atomic_uint completed;
    atomic_uint polls;   /* a queue that nobody polls completes nothing, whatever the driver does */
    atomic_bool waiting; /* asleep or spinning inside a poll */
};

struct ring_progress *ring_host_progress(struct ring_host *h, unsigned i);

/* The current session with a reference, or NULL: none yet (waits up to wait_ns for one) or, with
 * *failed set, none ever again. */
struct ring_session *ring_host_take(struct ring_host *h, uint64_t wait_ns, bool *failed);
void ring_host_release(struct ring_host *h, struct ring_session *s);
/* Ends the driver of s: it broke the protocol or stalled. why is a static sentence. */
void ring_host_end_session(struct ring_host *h, struct ring_session *s, const char *why);

/* ---- the driver's side, in its own process ---- */
int ring_driver_serve(int socket);

#endif
