/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping on a queue's descriptor: a caller that only sleeps there and then calls poll(q, 0) gets
 * every completion, from each disk and through each layer. A failure of the random test prints its
 * seed.
 */
#include "disk_helpers.h"

#include <lunpath/fit.h>
#include <lunpath/host.h>

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { SIZE = 1 << 20, DEPTH = 8, JOBS = 12, MOST = 128 << 10, ROUNDS = 120 };

enum above { BARE, FIT, INLINE_PAGE, INLINE_BLOCK, INLINE_MULTI, INLINE_NONE, RING, RING_PAGE };

struct kind {
    const char *name;
    const char *before; /* of the URL of a file */
    const char *url;    /* NULL: a file is made */
    enum lp_engine engine;
    enum above above;
    bool direct;
};

#define KIND(text, u, b, e, a)                                                                     \
    {                                                                                              \
        .name = text, .url = u, .before = b, .engine = e, .above = a                               \
    }

/* In each of these poll(q, 0) ends all. */
static struct kind at_once[] = {
    KIND("null", "null:1M", "", LP_ENGINE_AUTO, BARE),
    KIND("ram", "ram:1M", "", LP_ENGINE_AUTO, BARE),
    KIND("fault on ram", "fault:error=7:ram:1M", "", LP_ENGINE_AUTO, BARE),
    KIND("fit on ram", "ram:1M", "", LP_ENGINE_AUTO, FIT),
    KIND("inline, page, on ram", "ram:1M", "", LP_ENGINE_AUTO, INLINE_PAGE),
    KIND("inline, block, on ram", "ram:1M", "", LP_ENGINE_AUTO, INLINE_BLOCK),
    KIND("inline, multi, on null", "null:1M", "", LP_ENGINE_AUTO, INLINE_MULTI),
};

#define ON_FILE(text, e)                                                                           \
    KIND(text, NULL, "", e, BARE),                                                                 \
        KIND("fault on " text, NULL, "fault:error=5,stale=3:", e, BARE),                           \
        KIND("fit on " text, NULL, "", e, FIT), KIND("inline on " text, NULL, "", e, INLINE_NONE), \
        KIND("inline, page, on " text, NULL, "", e, INLINE_PAGE),                                  \
        KIND("inline, block, on " text, NULL, "", e, INLINE_BLOCK),                                \
        KIND("inline, multi, on faulty " text, NULL, "fault:error=5:", e, INLINE_MULTI)

/* These have a descriptor. */
static struct kind slept_on[] = {
    ON_FILE("threads", LP_ENGINE_THREADS),
#ifndef LP_PORTABLE
    ON_FILE("io_uring", LP_ENGINE_URING),
    /* Its completions come from the device, later and on any CPU. */
    {.name = "io_uring, direct", .before = "", .engine = LP_ENGINE_URING, .direct = true},
    {.name = "inline, block, on io_uring, direct",
     .before = "",
     .engine = LP_ENGINE_URING,
     .above = INLINE_BLOCK,
     .direct = true},
#endif
};

/* And these cannot be slept on from outside: the driver process wakes a futex. */
static struct kind never[] = {
    KIND("ring on ram", "ram:1M", "", LP_ENGINE_AUTO, RING),
    KIND("ring, page, on ram", "ram:1M", "", LP_ENGINE_AUTO, RING_PAGE),
};

struct env {
    char path[64];
    char url[128];
    struct lp_disk *disk;
    struct lp_host *host;
    struct lp_queue *q;
    char *memory; /* JOBS times MOST bytes */
};

static struct lp_queue *on_top(struct env *env, const struct kind *kind)
{
    static const enum lp_prep preps[] = {
        [INLINE_PAGE] = LP_PREP_PAGE,   [INLINE_BLOCK] = LP_PREP_BLOCK,
        [INLINE_MULTI] = LP_PREP_MULTI, [INLINE_NONE] = LP_PREP_NONE,
        [RING] = LP_PREP_NONE,          [RING_PAGE] = LP_PREP_PAGE};
    struct lp_error err = {0};

    if (kind->above == BARE)
        return must_queue(env->disk, DEPTH);
    if (kind->above == FIT) {
        struct lp_queue *below = must_queue(env->disk, 2);
        struct lp_limits limits = below->limits;
        struct lp_fit_opts opts = {.depth = DEPTH, .window = 1};
        limits.max_transfer = 4096;
        struct lp_queue *q = lp_fit_open(below, &limits, &opts, &err);
        if (!q)
            fail_msg("%s", err.msg);
        return q;
    }
    struct lp_host_opts opts = LP_HOST_OPTS_DEFAULT;
    opts.host = kind->above >= RING ? "ring" : "inline";
    opts.depth = DEPTH;
    opts.prep = preps[kind->above];
    opts.guard = kind->above != INLINE_MULTI;
    opts.arena_size = 4096; /* so that the test's own memory is bounced */
    opts.small_pages = true;
    env->host = lp_host_attach(env->disk, &opts, &err);
    if (!env->host)
        fail_msg("%s", err.msg);
    return lp_host_queue(env->host, 0);
}

static void close_all(struct env *env)
{
    if (env->host)
        lp_host_detach(env->host);
    else if (env->q)
        lp_queue_close(env->q);
    lp_disk_close(env->disk);
    if (env->path[0])
        unlink(env->path);
    free(env->memory);
}

/* Skips where the system has no io_uring, or no direct I/O. */
static void open_all(struct env *env, const struct kind *kind)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    struct lp_error err = {0};

    *env = (struct env){.memory = aligned_memory((size_t)JOBS * MOST)};
    if (kind->url) {
        snprintf(env->url, sizeof env->url, "%s", kind->url);
    } else {
        snprintf(env->path, sizeof env->path, "/tmp/lunpath-wait-XXXXXX");
        int fd = mkstemp(env->path);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, SIZE), 0);
        close(fd);
        snprintf(env->url, sizeof env->url, "%sfile:%s", kind->before, env->path);
    }
    opts.engine = kind->engine;
    opts.buffered = !kind->direct;
    env->disk = lp_disk_open(env->url, &opts, &err);
    if (!env->disk && (strstr(err.msg, "io_uring") || strstr(err.msg, "--buffered"))) {
        close_all(env);
        skip();
    }
    if (!env->disk)
        fail_msg("%s", err.msg);
    env->q = on_top(env, kind);
}

static bool readable(int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    do
        n = poll(&p, 1, wait_ms);
    while (n < 0 && errno == EINTR);
    return n == 1 && (p.revents & POLLIN);
}

enum { LONG_MS = 20000 }; /* far longer than anything here takes */

/* ---- jobs ---- */

struct job {
    struct lp_request req;
    struct iovec iov;
    struct env *env;
    struct rng *rng;
    char *memory;
    unsigned *in_flight, *ended;
    unsigned again; /* how often complete() sends another one */
};

/* Any of: data of any shape, a flush, a range, nothing at all, something outside the disk. */
static void shape(struct job *j)
{
    uint32_t block = j->env->q->limits.block_size;
    uint64_t most = j->env->q->limits.max_transfer;
    static const enum lp_op ops[] = {LP_READ, LP_WRITE, LP_READ, LP_WRITE, LP_FLUSH, LP_DISCARD};

    if (most == 0 || most > MOST - 4096)
        most = MOST - 4096;
    j->req.op = ops[rng_below(j->rng, sizeof ops / sizeof *ops)];
    if (j->req.op == LP_FLUSH && rng_below(j->rng, 50)) /* slow on a real file */
        j->req.op = LP_READ;
    j->req.length = j->req.op == LP_FLUSH ? 0 : rng_below(j->rng, most / block + 1) * block;
    j->req.offset = rng_below(j->rng, (SIZE - j->req.length) / block + 1) * block;
    if (rng_below(j->rng, 3) == 0)
        j->req.offset = SIZE;
    if (j->req.op == LP_FLUSH)
        j->req.offset = 0;
    uint32_t align = j->env->q->limits.mem_align;
    j->iov =
        (struct iovec){j->memory + rng_below(j->rng, 2) * (align > 1 ? align : 3), j->req.length};
    j->req.iov = &j->iov;
    j->req.iovcnt = j->req.op == LP_READ || j->req.op == LP_WRITE;
}

static void start(struct job *j)
{
    shape(j);
    assert_int_equal(lp_queue_submit(j->env->q, &j->req), 0);
    ++*j->in_flight;
}

static void ended(struct lp_request *req)
{
    struct job *j = req->user;

    --*j->in_flight;
    ++*j->ended;
    if (j->again > 0) {
        j->again--;
        start(j);
    }
}

struct jobs {
    struct job job[JOBS];
    struct rng rng;
    unsigned in_flight, ended;
};

static void init_jobs(struct jobs *jobs, struct env *env, uint64_t seed, unsigned again)
{
    *jobs = (struct jobs){.rng = {seed}};
    for (unsigned i = 0; i < JOBS; i++)
        jobs->job[i] = (struct job){.req = {.complete = ended, .user = &jobs->job[i]},
                                    .env = env,
                                    .rng = &jobs->rng,
                                    .memory = env->memory + (size_t)i * MOST,
                                    .in_flight = &jobs->in_flight,
                                    .ended = &jobs->ended,
                                    .again = again};
}

/* ---- with a descriptor ---- */

static void who_sleeps_on_the_descriptor_only_misses_nothing(void **state)
{
    struct jobs jobs;
    struct env env;

    open_all(&env, *state);
    int fd = lp_queue_wait_fd(env.q);
    assert_true(fd >= 0);
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        unsigned n = 1 + (unsigned)(seed % DEPTH), again = (unsigned)(seed % 3);
        init_jobs(&jobs, &env, seed, again);
        for (unsigned i = 0; i < n; i++)
            start(&jobs.job[i]);
        while (jobs.in_flight > 0) {
            lp_queue_kick(env.q);
            if (!readable(fd, LONG_MS))
                fail_msg("seed %llu: nothing to see, %u in flight", (unsigned long long)seed,
                         jobs.in_flight);
            lp_queue_poll(env.q, 0);
        }
        assert_int_equal(jobs.ended, n * (again + 1));
        assert_int_equal(lp_queue_poll(env.q, 0), 0);
    }
    assert_int_equal(lp_queue_wait_fd(env.q), fd);
    close_all(&env);
}

static void note_status(struct lp_request *req)
{
    *(int *)req->user = req->status;
}

enum { PENDING = 1 };

/* A READ of one block, which is refused when it lies outside. */
static void read_block(struct env *env, struct lp_request *req, struct iovec *iov, uint64_t offset,
                       int *status)
{
    *iov = (struct iovec){env->memory, env->q->limits.block_size};
    *req = (struct lp_request){.op = LP_READ,
                               .offset = offset,
                               .length = iov->iov_len,
                               .iov = iov,
                               .iovcnt = 1,
                               .complete = note_status,
                               .user = status};
    *status = PENDING;
    assert_int_equal(lp_queue_submit(env->q, req), 0);
}

static void the_descriptor_stays_readable_until_poll_and_no_longer(void **state)
{
    struct lp_request req;
    struct iovec iov;
    struct env env;
    int status;

    open_all(&env, *state);
    int fd = lp_queue_wait_fd(env.q);
    assert_false(readable(fd, 0));
    for (unsigned i = 0; i < 20; i++) {
        bool wrong = i % 2;
        read_block(&env, &req, &iov, wrong ? SIZE : 0, &status);
        lp_queue_kick(env.q);
        while (status == PENDING) {
            assert_true(readable(fd, LONG_MS));
            assert_true(readable(fd, 0));
            lp_queue_poll(env.q, 0);
            lp_queue_kick(env.q);
        }
        if (wrong)
            assert_int_equal(status, -EINVAL);
        assert_false(readable(fd, 0));
    }
    close_all(&env);
}

static void who_asks_late_sees_what_is_held_already(void **state)
{
    struct lp_request req;
    struct iovec iov;
    struct env env;
    int status;

    open_all(&env, *state);
    read_block(&env, &req, &iov, SIZE, &status);
    int fd = lp_queue_wait_fd(env.q);
    lp_queue_kick(env.q);
    assert_true(readable(fd, LONG_MS));
    assert_int_equal(lp_queue_poll(env.q, 0), 1);
    assert_int_equal(status, -EINVAL);
    close_all(&env);
}

/* poll() with a wait is as good as ever, whether or not somebody sleeps on the descriptor too. */
static void waiting_in_poll_goes_on_working(void **state)
{
    struct jobs jobs;
    struct env env;

    open_all(&env, *state);
    int fd = lp_queue_wait_fd(env.q);
    for (uint64_t seed = 1; seed <= ROUNDS / 10; seed++) {
        init_jobs(&jobs, &env, seed, 2);
        for (unsigned i = 0; i < DEPTH; i++)
            start(&jobs.job[i]);
        while (jobs.in_flight > 0)
            assert_true(lp_queue_poll(env.q, ten_seconds) > 0);
        assert_int_equal(jobs.ended, DEPTH * 3);
        lp_queue_kick(env.q);
        assert_int_equal(lp_queue_poll(env.q, 0), 0);
        assert_false(readable(fd, 0));
    }
    close_all(&env);
}

/* ---- without need of one ---- */

static void one_poll_ends_all_that_was_submitted(void **state)
{
    struct jobs jobs;
    struct env env;

    open_all(&env, *state);
    assert_int_equal(lp_queue_wait_fd(env.q), LP_WAIT_NONE);
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        unsigned n = 1 + (unsigned)(seed % DEPTH);
        init_jobs(&jobs, &env, seed, 0);
        for (unsigned i = 0; i < n; i++)
            start(&jobs.job[i]);
        lp_queue_kick(env.q);
        assert_int_equal(lp_queue_poll(env.q, 0), n);
        assert_int_equal(jobs.in_flight, 0);
    }
    close_all(&env);
}

/* Else a caller with a closed loop would never get out. */
static void one_poll_returns_though_complete_goes_on_submitting(void **state)
{
    struct jobs jobs;
    struct env env;

    open_all(&env, *state);
    assert_int_equal(lp_queue_wait_fd(env.q), LP_WAIT_NONE);
    init_jobs(&jobs, &env, 1, 100000);
    for (unsigned i = 0; i < DEPTH; i++)
        start(&jobs.job[i]);
    for (unsigned polls = 1; polls <= 100; polls++) {
        unsigned before = jobs.ended;
        assert_true(lp_queue_poll(env.q, 0) > 0);
        assert_in_range(jobs.ended - before, 1, 3 * DEPTH);
    }
    for (unsigned i = 0; i < DEPTH; i++)
        jobs.job[i].again = 0;
    while (jobs.in_flight > 0)
        lp_queue_poll(env.q, 0);
    close_all(&env);
}

/* ---- not at all ---- */

static void a_driver_process_has_no_descriptor(void **state)
{
    struct env env;

    open_all(&env, *state);
    assert_int_equal(lp_queue_wait_fd(env.q), LP_WAIT_NEVER);
    assert_int_equal(lp_queue_read(env.q, 0, env.memory, 4096), 0);
    close_all(&env);
}

/* ---- for all of them ---- */

/* However often, before and after something has ended below. */
static void kick_never_completes(void **state)
{
    struct jobs jobs;
    struct env env;

    open_all(&env, *state);
    int fd = lp_queue_wait_fd(env.q);
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        init_jobs(&jobs, &env, seed, (unsigned)(seed % 2));
        for (unsigned i = 0; i < DEPTH; i++) {
            start(&jobs.job[i]);
            lp_queue_kick(env.q);
        }
        assert_int_equal(jobs.ended, 0);
        while (jobs.in_flight > 0) {
            unsigned before = jobs.ended;
            lp_queue_kick(env.q);
            if (fd >= 0)
                assert_true(readable(fd, LONG_MS));
            lp_queue_kick(env.q);
            assert_int_equal(jobs.ended, before);
            lp_queue_poll(env.q, fd == LP_WAIT_NEVER ? ten_seconds : 0);
        }
    }
    close_all(&env);
}

#define LIST(l) l, sizeof l / sizeof *l

static const struct {
    const char *name;
    CMUnitTestFunction run;
    struct kind *kinds;
    unsigned count;
} checks[] = {
    {"who sleeps on the descriptor only misses nothing",
     who_sleeps_on_the_descriptor_only_misses_nothing, LIST(slept_on)},
    {"the descriptor stays readable until poll and no longer",
     the_descriptor_stays_readable_until_poll_and_no_longer, LIST(slept_on)},
    {"who asks late sees what is held already", who_asks_late_sees_what_is_held_already,
     LIST(slept_on)},
    {"waiting in poll goes on working", waiting_in_poll_goes_on_working, LIST(slept_on)},
    {"one poll ends all that was submitted", one_poll_ends_all_that_was_submitted, LIST(at_once)},
    {"one poll returns though complete() goes on submitting",
     one_poll_returns_though_complete_goes_on_submitting, LIST(at_once)},
    {"a driver process has no descriptor", a_driver_process_has_no_descriptor, LIST(never)},
    {"kick never completes", kick_never_completes, LIST(slept_on)},
    {"kick never completes", kick_never_completes, LIST(at_once)},
    {"kick never completes", kick_never_completes, LIST(never)},
};

enum { CHECKS = sizeof checks / sizeof *checks, MOST_TESTS = 200 };

int main(int argc, char **argv)
{
    static char names[MOST_TESTS][128];
    static struct CMUnitTest tests[MOST_TESTS];
    size_t n = 0;
    int driver = lp_ring_driver_main(argc, argv);

    if (driver >= 0)
        return driver;
    for (unsigned c = 0; c < CHECKS; c++)
        for (unsigned k = 0; k < checks[c].count; k++, n++) {
            struct kind *kind = &checks[c].kinds[k];
            assert(n < MOST_TESTS);
            snprintf(names[n], sizeof names[n], "%s (%s)", checks[c].name, kind->name);
            tests[n] = (struct CMUnitTest){
                .name = names[n], .test_func = checks[c].run, .initial_state = kind};
        }
    return _cmocka_run_group_tests("wait_fd", tests, n, NULL, NULL);
}
