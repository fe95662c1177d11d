/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file disk's engine for any POSIX system: as many worker threads a queue as it is deep, since
 * a thread in a blocking read is all the "in flight" that POSIX has.
 *
 * The owner passes requests to the workers in `todo` and takes them back from `ended`; both lists,
 * and all below `lock` in the struct, are guarded by it. A request belongs to its worker between
 * the two. Nobody is woken who is not asleep.
 *
 * To be slept on there is a pipe, once somebody has asked for it, that holds one byte while poll()
 * would complete something.
 */
#include "disk/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CALL_SEGMENTS = 64 }; /* passed to the system at once */

struct threads_queue {
    struct lp_queue head;
    const struct file_place *place;
    struct request_list held;  /* until kick() */
    struct request_list ready; /* to be completed by poll() */
    unsigned out;              /* held, or with the workers */

    pthread_mutex_t lock;
    pthread_cond_t work;     /* todo is not empty, or stop */
    pthread_cond_t progress; /* ended is not empty */
    struct request_list todo;
    struct request_list ended;
    unsigned sleepers; /* workers in a wait for work */
    bool owner_sleeps; /* in a wait for progress */
    bool stop;         /* no work will come any more */
    uint64_t syscalls; /* the workers' */
    int pipe[2];       /* -1: nobody has asked */
    bool nudged;       /* to be readable until the next poll */
    bool shown;        /* the pipe holds its byte */
    unsigned threads;
    pthread_t thread[];
};

/* ---- workers ---- */

/* Moves all the data, in as many calls as it takes. */
static int transfer(const struct file_place *place, const struct lp_request *req, uint64_t *calls)
{
    struct iovec rest[CALL_SEGMENTS];
    uint64_t done = 0;

    while (done < req->length) {
        int count = file_rest(req, done, rest, CALL_SEGMENTS);
        off_t at = (off_t)(req->offset + done);
        ssize_t n = req->op == LP_READ
                        ? file_read_at(place->fd, rest, count, at)
                        : file_write_at(place->fd, rest, count, at, req->flags & LP_FUA);
        ++*calls;
        if (n == -EINTR)
            continue;
        if (n < 0)
            return (int)n;
        if (n == 0)
            return -EIO; /* the file is shorter than when it was opened */
        done += (uint64_t)n;
    }
    return 0;
}

static int flush(const struct file_place *place, uint64_t *calls)
{
    ++*calls;
    return fsync(place->fd) == 0 ? 0 : -errno;
}

static int write_zeroes(const struct file_place *place, const struct lp_request *req,
                        uint64_t *calls)
{
    ++*calls;
    int status = file_write_zeroes(place, (off_t)req->offset, (off_t)req->length);
    if (status == 0 && (req->flags & LP_FUA))
        status = flush(place, calls);
    return status;
}

static int execute(const struct file_place *place, const struct lp_request *req, uint64_t *calls)
{
    switch (req->op) {
    case LP_READ:
    case LP_WRITE:
        return transfer(place, req, calls);
    case LP_FLUSH:
        return flush(place, calls);
    case LP_DISCARD:
        ++*calls;
        return file_discard(place, (off_t)req->offset, (off_t)req->length);
    case LP_WRITE_ZEROES:
        return write_zeroes(place, req, calls);
    default:
        return -EINVAL;
    }
}

/* With the lock held: a byte goes into the pipe, or out of it. */
static void show(struct threads_queue *q)
{
    bool due = q->ended.first || q->nudged;
    char byte = 0;
    ssize_t n = 0;

    if (q->pipe[0] < 0 || due == q->shown)
        return;
    do /* never blocks: one byte, and there is one to read */
        n = due ? write(q->pipe[1], &byte, 1) : read(q->pipe[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    q->shown = due;
    q->syscalls++;
}

/* With the lock held, before and after. */
static void do_one(struct threads_queue *q, struct lp_request *req)
{
    uint64_t calls = 0;

    pthread_mutex_unlock(&q->lock);
    req->status = execute(q->place, req, &calls);
    pthread_mutex_lock(&q->lock);
    list_add(&q->ended, req);
    q->syscalls += calls;
    show(q);
    if (q->owner_sleeps) {
        q->owner_sleeps = false; /* one wake is enough for all that end until it runs */
        q->syscalls++;
        pthread_cond_signal(&q->progress);
    }
}

static void *worker(void *arg)
{
    struct threads_queue *q = arg;

    pthread_mutex_lock(&q->lock);
    for (;;) {
        struct lp_request *req = list_take(&q->todo);
        if (req) {
            do_one(q, req);
        } else if (q->stop) {
            break;
        } else {
            q->sleepers++;
            q->syscalls++;
            pthread_cond_wait(&q->work, &q->lock);
            q->sleepers--;
        }
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- owner ---- */

static void threads_nudge(struct lp_queue *head)
{
    struct threads_queue *q = (struct threads_queue *)head;

    pthread_mutex_lock(&q->lock);
    q->nudged = true;
    show(q);
    pthread_mutex_unlock(&q->lock);
}

/* A pipe that another program does not inherit; 0 or -1. */
static int make_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[i], F_SETFL, O_NONBLOCK) != 0) {
            close(ends[0]);
            close(ends[1]);
            return -1;
        }
    return 0;
}

static int threads_wait_fd(struct lp_queue *head)
{
    struct threads_queue *q = (struct threads_queue *)head;
    int ends[2];

    if (q->pipe[0] < 0) {
        if (make_pipe(ends) != 0)
            return LP_WAIT_NEVER;
        pthread_mutex_lock(&q->lock);
        memcpy(q->pipe, ends, sizeof ends);
        show(q);
        pthread_mutex_unlock(&q->lock);
    }
    return q->pipe[0];
}

static int threads_submit(struct lp_queue *head, struct lp_request *req)
{
    struct threads_queue *q = (struct threads_queue *)head;

    if (q->out + q->ready.count == head->limits.depth)
        return -EAGAIN;
    req->status = disk_check(&head->limits, req);
    if (req->status != 0) {
        list_add(&q->ready, req);
        return 0;
    }
    list_add(&q->held, req);
    q->out++;
    return 0;
}

static void hand_over(struct threads_queue *q)
{
    unsigned wake = q->held.count;

    if (wake == 0)
        return;
    pthread_mutex_lock(&q->lock);
    list_move(&q->todo, &q->held);
    if (wake > q->sleepers)
        wake = q->sleepers; /* the others look at todo before they sleep */
    pthread_mutex_unlock(&q->lock);
    q->head.stats.syscalls += wake;
    for (; wake > 0; wake--)
        pthread_cond_signal(&q->work);
}

static void threads_kick(struct lp_queue *head)
{
    struct threads_queue *q = (struct threads_queue *)head;

    if (q->pipe[0] >= 0 && q->ready.first)
        threads_nudge(head);
    hand_over(q);
}

static struct timespec deadline_in(uint64_t wait_ns)
{
    const uint64_t second = 1000000000, year = 31536000 * second;
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t ns = (uint64_t)ts.tv_nsec + (wait_ns < year ? wait_ns : year);
    ts.tv_sec += (time_t)(ns / second);
    ts.tv_nsec = (long)(ns % second);
    return ts;
}

/* Takes back what has ended; waits for the first if there is none. */
static void take_ended(struct threads_queue *q, uint64_t wait_ns)
{
    struct timespec deadline = {0};
    int error = 0;

    pthread_mutex_lock(&q->lock);
    if (!q->ended.first && wait_ns > 0)
        deadline = deadline_in(wait_ns);
    while (!q->ended.first && wait_ns > 0 && error == 0) {
        q->owner_sleeps = true;
        q->syscalls++;
        error = pthread_cond_timedwait(&q->progress, &q->lock, &deadline);
        q->owner_sleeps = false;
    }
    q->out -= q->ended.count;
    list_move(&q->ready, &q->ended);
    q->nudged = false;
    show(q);
    q->head.stats.syscalls += q->syscalls;
    q->syscalls = 0;
    pthread_mutex_unlock(&q->lock);
}

static int threads_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct threads_queue *q = (struct threads_queue *)head;

    hand_over(q);
    if (q->out > 0 || q->pipe[0] >= 0)
        take_ended(q, q->ready.first || q->out == 0 ? 0 : wait_ns);
    return list_complete(&q->ready, &head->stats);
}

static void threads_close(struct lp_queue *head)
{
    struct threads_queue *q = (struct threads_queue *)head;

    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->threads; i++)
        pthread_join(q->thread[i], NULL);
    pthread_cond_destroy(&q->progress);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    if (q->pipe[0] >= 0) {
        close(q->pipe[0]);
        close(q->pipe[1]);
    }
    free(q);
}

/* Signals are for the program's own threads. 0 or an errno value. */
static int start_workers(struct threads_queue *q, unsigned count)
{
    sigset_t all, before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (q->threads < count && error == 0) {
        error = pthread_create(&q->thread[q->threads], NULL, worker, q);
        if (error == 0)
            q->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void init_locks(struct threads_queue *q)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->progress, &attr);
    pthread_condattr_destroy(&attr);
}

struct lp_queue *file_threads_open(const struct file_place *place, unsigned depth,
                                   struct lp_error *err)
{
    static const struct lp_queue_ops ops = {.submit = threads_submit,
                                            .kick = threads_kick,
                                            .poll = threads_poll,
                                            .close = threads_close,
                                            .wait_fd = threads_wait_fd,
                                            .nudge = threads_nudge};
    struct threads_queue *q = calloc(1, sizeof *q + depth * sizeof(pthread_t));

    if (!q) {
        lp_error_sys(err, ENOMEM, "cannot make a queue");
        return NULL;
    }
    q->head.ops = &ops;
    q->head.limits = place->limits;
    q->head.limits.depth = depth;
    q->place = place;
    q->pipe[0] = q->pipe[1] = -1;
    init_locks(q);
    int error = start_workers(q, depth);
    if (error) {
        lp_error_sys(err, error, "cannot start %u threads", depth);
        threads_close(&q->head);
        return NULL;
    }
    return &q->head;
}
