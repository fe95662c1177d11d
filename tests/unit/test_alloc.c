/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No request allocates anything: counted in each path, in the application and in the driver. This
 * program is also the driver. There an allocation once it serves, which it does from the system
 * call filter on, ends the process with a status of its own.
 */
#define _GNU_SOURCE
#include "disk_helpers.h"

#include "host/sandbox.h"

#include <lunpath/host.h>

#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALLOCATED_WHILE_SERVING = 42 };

/* The tests' own state: the wrappers have no other place for it. */
static bool is_driver;
static atomic_ulong allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);

/* The filter refuses prctl() itself: then it is there. */
static void count(void)
{
    if (is_driver && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
        _exit(ALLOCATED_WHILE_SERVING);
    atomic_fetch_add(&allocations, 1);
}

void *__wrap_malloc(size_t size)
{
    count();
    return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
    count();
    return __real_calloc(number, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    count();
    return __real_realloc(memory, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    count();
    return __real_posix_memalign(memory, alignment, size);
}

/* ---- a path and its requests ---- */

enum { SIZE = 4 << 20, DEPTH = 16, MOST = 256 << 10, SPACE = MOST + 8192, REQUESTS = 2000 };

struct kind {
    const char *name;
    const char *host;
    const char *disk; /* NULL: a file is made */
    enum lp_prep prep;
    bool guard;
    enum lp_engine engine;
};

struct job {
    struct lp_request req;
    struct iovec iov[3];
    char *memory, *arena; /* SPACE bytes each */
    unsigned *ended;
};

static void ended(struct lp_request *req)
{
    struct job *j = req->user;

    ++*j->ended;
    req->op = LP_OP_COUNT; /* free */
}

/* Small and large, aligned or not, in the arena or not, in pieces, without data, or wrong. */
static void shape(struct job *j, struct rng *r)
{
    static const enum lp_op ops[] = {LP_READ, LP_WRITE, LP_READ, LP_WRITE, LP_FLUSH, LP_DISCARD};
    size_t length = rng_below(r, 2) ? 4096 : 512 * rng_below(r, (MOST - 4096) / 512 + 1);
    char *at = (rng_below(r, 2) ? j->arena : j->memory) + rng_below(r, 2) * 4 * rng_below(r, 1024);
    size_t first = rng_below(r, length + 1), second = rng_below(r, length - first + 1);

    j->req.op = ops[rng_below(r, sizeof ops / sizeof *ops)];
    j->req.length = j->req.op == LP_FLUSH ? 0 : length;
    j->req.offset = j->req.op == LP_FLUSH   ? 0
                    : rng_below(r, 16) == 0 ? SIZE
                                            : rng_below(r, (SIZE - length) / 512 + 1) * 512;
    j->iov[0] = (struct iovec){at, first};
    j->iov[1] = (struct iovec){at + first, second};
    j->iov[2] = (struct iovec){at + first + second, length - first - second};
    j->req.iov = j->iov;
    j->req.iovcnt = j->req.op == LP_READ || j->req.op == LP_WRITE ? 3 : 0;
}

static void drive(struct lp_queue *q, struct job jobs[DEPTH], uint64_t seed)
{
    struct rng r = {seed};
    unsigned sent = 0, done = 0;

    for (unsigned i = 0; i < DEPTH; i++)
        jobs[i].ended = &done;
    while (done < REQUESTS) {
        for (unsigned i = 0; i < DEPTH && sent < REQUESTS; i++)
            if (jobs[i].req.op == LP_OP_COUNT) {
                shape(&jobs[i], &r);
                sent++;
                if (lp_queue_submit(q, &jobs[i].req) != 0)
                    fail_msg("seed %llu: not taken", (unsigned long long)seed);
            }
        lp_queue_poll(q, 1000000000);
    }
    assert_int_equal(sent, done);
}

/* Skips where there is no io_uring. The file has no name any more once it is open. */
static struct lp_disk *open_disk(const struct kind *kind)
{
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    char path[] = "/tmp/lunpath-alloc-XXXXXX", url[64];
    struct lp_error err = {0};

    if (kind->disk)
        return must_open(kind->disk, NULL);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    close(fd);
    opts.buffered = true;
    opts.engine = kind->engine;
    snprintf(url, sizeof url, "file:%s", path);
    struct lp_disk *disk = lp_disk_open(url, &opts, &err);
    unlink(path);
    if (!disk && strstr(err.msg, "io_uring"))
        skip();
    if (!disk)
        fail_msg("%s", err.msg);
    return disk;
}

static void open_host(const struct kind *kind, struct lp_disk **disk, struct lp_host **host)
{
    struct lp_host_opts opts = LP_HOST_OPTS_DEFAULT;
    struct lp_error err = {0};

    *disk = open_disk(kind);
    opts.host = kind->host;
    opts.prep = kind->prep;
    opts.guard = kind->guard;
    opts.depth = DEPTH;
    opts.arena_size = (size_t)DEPTH * SPACE;
    opts.small_pages = true;
    *host = lp_host_attach(*disk, &opts, &err);
    if (!*host)
        fail_msg("%s", err.msg);
}

static void no_request_allocates(void **state)
{
    struct lp_disk *disk;
    struct lp_host *host;
    static struct job jobs[DEPTH];
    char *memory = aligned_memory((size_t)DEPTH * SPACE);

    open_host(*state, &disk, &host);
    for (unsigned i = 0; i < DEPTH; i++)
        jobs[i] = (struct job){
            .req = {.op = LP_OP_COUNT, .complete = ended, .user = &jobs[i]},
            .memory = memory + (size_t)i * SPACE,
            .arena = (char *)lp_host_arena(host) + (size_t)i * SPACE,
        };
    struct lp_queue *q = lp_host_queue(host, 0);
    /* From the first request on: there is nothing to warm up. */
    unsigned long before = atomic_load(&allocations);
    for (uint64_t seed = 1; seed <= 3; seed++)
        drive(q, jobs, seed);
    assert_int_equal(atomic_load(&allocations) - before, 0);

    struct lp_host_stats stats;
    lp_host_stats(host, &stats);
    assert_true(stats.disk_requests > 1000); /* it was no idle run */
    assert_false(lp_host_failed(host));      /* the driver lives: it has not allocated either */
    assert_int_equal(stats.restarts, 0);
    assert_int_equal(lp_queue_read(q, 0, memory, 4096), 0);
    lp_host_detach(host);
    lp_disk_close(disk);
    free(memory);
}

/* ---- would it be noticed? ---- */

static void an_allocation_is_counted(void **state)
{
    unsigned long before = atomic_load(&allocations);
    char *volatile memory = malloc(1);

    (void)state;
    free(memory);
    assert_int_equal(atomic_load(&allocations) - before, 1);
}

static void an_allocation_ends_a_driver_that_serves(void **state)
{
    int status = 0;

    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char mode[256] = "";
        is_driver = true;
        char *volatile memory = malloc(1); /* before it serves it may */
        free(memory);
        sandbox_shed(mode, sizeof mode);
        if (sandbox_filter(mode, sizeof mode, NULL) != 0)
            _exit(1);
        memory = malloc(1);
        free(memory);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ALLOCATED_WHILE_SERVING);
}

static struct kind kinds[] = {
    {"inline", "inline", "ram:4M", LP_PREP_NONE, false, LP_ENGINE_AUTO},
    {"inline, page", "inline", "ram:4M", LP_PREP_PAGE, true, LP_ENGINE_AUTO},
    {"inline, block", "inline", "ram:4M", LP_PREP_BLOCK, true, LP_ENGINE_AUTO},
    {"inline, multi", "inline", "null:4M", LP_PREP_MULTI, false, LP_ENGINE_AUTO},
    {"inline, faulty disk", "inline", "fault:error=9,torn=7:ram:4M", LP_PREP_NONE, false,
     LP_ENGINE_AUTO},
    {"ring", "ring", "ram:4M", LP_PREP_NONE, false, LP_ENGINE_AUTO},
    {"ring, page", "ring", "ram:4M", LP_PREP_PAGE, true, LP_ENGINE_AUTO},
    {"ring, block", "ring", "ram:4M", LP_PREP_BLOCK, true, LP_ENGINE_AUTO},
    {"ring, multi", "ring", "null:4M", LP_PREP_MULTI, false, LP_ENGINE_AUTO},
    {"inline, file, threads", "inline", NULL, LP_PREP_NONE, false, LP_ENGINE_THREADS},
    {"inline, file, io_uring", "inline", NULL, LP_PREP_BLOCK, true, LP_ENGINE_URING},
    {"ring, file, threads", "ring", NULL, LP_PREP_NONE, false, LP_ENGINE_THREADS},
    {"ring, file, io_uring", "ring", NULL, LP_PREP_BLOCK, true, LP_ENGINE_URING},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

int main(int argc, char **argv)
{
    struct CMUnitTest tests[KINDS + 2];
    unsigned n = 0;

    is_driver = argc > 1;
    int driver = lp_ring_driver_main(argc, argv);
    if (driver >= 0)
        return driver;
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(an_allocation_is_counted);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(an_allocation_ends_a_driver_that_serves);
    for (unsigned i = 0; i < KINDS; i++)
        tests[n++] = (struct CMUnitTest){
            .name = kinds[i].name, .test_func = no_request_allocates, .initial_state = &kinds[i]};
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
