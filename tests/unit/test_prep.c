/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preparation and the device's side of it, in one process: fit, prep, a queue that passes requests
 * on late, as the ring does, dma, fit, and a scripted disk in memory. A failure prints the seed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "script_queue.h"

#include "host/dma.h"
#include "host/iommu.h"
#include "host/prep.h"

#include <stdio.h>

enum {
    BLOCK_SIZE = 512,
    MAX_JOBS = 64,
    MAX_SEGS = 8,
    MIB = 1 << 20,
};

/* Requests wait here until poll(), so that the table changes between map and translation. */
struct late {
    struct lp_queue q;
    struct lp_queue *lower;
    struct lp_request *held[SCRIPT_MAX];
    unsigned count;
    uint64_t invalidations;
};

static int late_submit(struct lp_queue *q, struct lp_request *req)
{
    struct late *l = (struct late *)q;

    if (l->count == SCRIPT_MAX)
        return -EAGAIN;
    l->held[l->count++] = req;
    l->invalidations += req->op == LP_INVALIDATE;
    return 0;
}

static int late_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct late *l = (struct late *)q;
    unsigned sent = 0;

    while (sent < l->count && lp_queue_submit(l->lower, l->held[sent]) == 0)
        sent++;
    l->count -= sent;
    memmove(l->held, l->held + sent, l->count * sizeof *l->held);
    return lp_queue_poll(l->lower, wait_ns);
}

static void late_close(struct lp_queue *q)
{
    lp_queue_close(((struct late *)q)->lower);
}

static const struct lp_queue_ops late_ops = {
    .submit = late_submit, .poll = late_poll, .close = late_close};

struct job {
    struct lp_request req;
    struct iovec iov[MAX_SEGS];
    char *space, *before; /* space bytes of the path */
    unsigned ended;
};

struct path {
    struct script_queue script;
    struct late late;
    struct prep_opts prep;
    struct lp_queue *top;
    char *arena; /* half the spaces, then bounce */
    char *outside;
    char *copies;
    char *disk, *mirror;
    size_t space, zone; /* bytes a job: memory, disk */
    bool all_in_arena;
    struct job jobs[MAX_JOBS];
    unsigned closed;
};

static void job_done(struct lp_request *req)
{
    ((struct job *)req->user)->ended++;
}

static void fill(struct rng *rng, char *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word = rng_next(rng);
        memcpy(p, &word, 8);
    }
}

static char *aligned(size_t size)
{
    void *p = NULL;

    assert_int_equal(posix_memalign(&p, 16384, size), 0);
    return p;
}

/* The device's side, as src/host/stack.c builds it. */
static struct lp_queue *open_device(struct path *p)
{
    struct lp_fit_opts fit = {.depth = p->prep.depth};
    struct dma_opts dma = {.depth = p->prep.depth,
                           .page_size = p->prep.page_size,
                           .iommu = p->prep.iommu,
                           .iommu_size = p->prep.iommu_size,
                           .arena = p->arena,
                           .arena_size = p->prep.arena_size};
    struct lp_queue *q = lp_fit_open(&p->script.q, &p->script.q.limits, &fit, NULL);

    assert_non_null(q);
    q = dma_open(q, &dma, NULL);
    assert_non_null(q);
    return q;
}

/* The application's side, as src/host/host.c builds it. */
static void open_top(struct path *p, size_t bounce_at)
{
    struct lp_error err = {0};
    struct lp_fit_opts fit = {.depth = p->prep.depth,
                              .bounce = p->arena + bounce_at,
                              .bounce_size = prep_bounce_size(&p->prep)};

    p->late.q.ops = &late_ops;
    p->late.lower = open_device(p);
    p->late.q.limits = p->late.lower->limits;
    prep_fit_opts(&p->prep, &fit);
    struct lp_queue *q = prep_open(&p->late.q, &p->prep, &err);
    if (!q)
        fail_msg("%s", err.msg);
    p->top = lp_fit_open(q, &q->limits, &fit, &err);
    if (!p->top)
        fail_msg("%s", err.msg);
}

static struct path *path_new(const struct prep_opts *prep, size_t space, uint64_t seed)
{
    struct path *p = calloc(1, sizeof *p);
    struct rng rng = {seed};

    assert_non_null(p);
    p->prep = *prep;
    p->prep.seed = seed;
    p->space = space;
    p->zone = space;
    size_t all = space * prep->depth;
    p->prep.arena_size = all + prep_bounce_size(prep);
    p->arena = p->prep.arena = aligned(p->prep.arena_size);
    p->prep.iommu_size = prep_table_size(prep);
    p->prep.iommu = calloc(1, p->prep.iommu_size);
    p->outside = aligned(all);
    p->copies = malloc(all);
    p->disk = malloc(all);
    p->mirror = malloc(all);
    assert_true(p->prep.iommu && p->copies && p->disk && p->mirror);
    fill(&rng, p->arena, p->prep.arena_size);
    fill(&rng, p->outside, all);
    fill(&rng, p->disk, all);
    memcpy(p->mirror, p->disk, all);
    script_init(&p->script, p->disk, all, BLOCK_SIZE, seed);
    p->script.closed = &p->closed;
    open_top(p, all);
    return p;
}

static void path_free(struct path *p)
{
    lp_queue_close(p->top);
    assert_int_equal(p->closed, 1);
    free(p->arena);
    free(p->prep.iommu);
    free(p->outside);
    free(p->copies);
    free(p->disk);
    free(p->mirror);
    free(p);
}

static void job_init(struct path *p, unsigned i)
{
    struct job *j = &p->jobs[i];

    j->space = (i % 2 && !p->all_in_arena ? p->outside : p->arena) + i * p->space;
    j->before = p->copies + i * p->space;
    j->req =
        (struct lp_request){.offset = i * p->zone, .iov = j->iov, .complete = job_done, .user = j};
}

static void submit(struct path *p, struct job *j)
{
    j->ended = 0;
    memcpy(j->before, j->space, p->space);
    assert_int_equal(lp_queue_submit(p->top, &j->req), 0);
}

static struct job *run_one(struct path *p, struct job *j)
{
    submit(p, j);
    for (unsigned tries = 0; j->ended == 0; tries++) {
        assert_true(tries < 1000000);
        lp_queue_poll(p->top, 0);
    }
    assert_int_equal(j->ended, 1);
    return j;
}

/* Is what is in the space now what must be there? The mirror follows. */
static bool right(struct path *p, struct job *j)
{
    char *at = p->mirror + j->req.offset;

    for (uint32_t i = 0; i < j->req.iovcnt; i++) {
        const struct iovec *v = &j->iov[i];
        if (j->req.op == LP_WRITE)
            memcpy(at, v->iov_base, v->iov_len);
        else
            memcpy(j->before + ((char *)v->iov_base - j->space), at, v->iov_len);
        at += v->iov_len;
    }
    return memcmp(j->space, j->before, p->space) == 0;
}

/* Segments at random places of the space, in order, with gaps now and then. */
static void shape(struct rng *r, struct path *p, struct job *j)
{
    uint32_t n = 1 + (uint32_t)rng_below(r, MAX_SEGS);
    uint64_t most = rng_below(r, 3) ? 16 : p->space * 3 / 4 / BLOCK_SIZE;
    uint64_t left = (1 + rng_below(r, most)) * BLOCK_SIZE;
    size_t at = rng_below(r, 2) ? 0 : rng_below(r, p->space / 8);

    j->req.op = rng_below(r, 2) ? LP_READ : LP_WRITE;
    j->req.length = left;
    j->req.iovcnt = n;
    for (uint32_t i = 0; i < n; i++) {
        size_t length = i == n - 1 ? left : rng_below(r, left / (n - i) + 1);
        j->iov[i] = (struct iovec){j->space + at, length};
        at += length + (rng_below(r, 2) ? rng_below(r, p->space / 8 / MAX_SEGS) : 0);
        left -= length;
    }
    assert_true(at <= p->space);
}

/* Inside one page of the arena, so that one entry is all it takes. */
static void one_page(struct rng *r, struct path *p, struct job *j)
{
    uint32_t size = p->prep.page_size;
    uint64_t blocks = 1 + rng_below(r, size / BLOCK_SIZE);
    size_t page = rng_below(r, p->space / size) * size;

    j->req.op = rng_below(r, 2) ? LP_READ : LP_WRITE;
    j->req.length = blocks * BLOCK_SIZE;
    j->req.iovcnt = 1;
    j->iov[0] =
        (struct iovec){j->space + page + rng_below(r, size - j->req.length + 1), j->req.length};
}

static void one_mib(struct rng *r, struct path *p, struct job *j)
{
    j->req.op = rng_below(r, 2) ? LP_READ : LP_WRITE;
    j->req.length = MIB;
    j->req.iovcnt = 1;
    j->iov[0] = (struct iovec){j->space, MIB};
    (void)p;
}

/* Keeps depth requests in flight until so many have ended; returns how many were wrong. */
static unsigned run_many(struct path *p, unsigned requests, uint64_t seed,
                         void (*make)(struct rng *, struct path *, struct job *))
{
    struct rng r = {seed};
    unsigned begun = 0, ended = 0, counted = 0, wrong = 0;

    for (unsigned i = 0; i < p->prep.depth && begun < requests; i++, begun++) {
        job_init(p, i);
        make(&r, p, &p->jobs[i]);
        submit(p, &p->jobs[i]);
    }
    for (unsigned tries = 0; ended < begun; tries++) {
        assert_true(tries < 1000000);
        counted += (unsigned)lp_queue_poll(p->top, rng_below(&r, 2));
        for (unsigned i = 0; i < p->prep.depth; i++) {
            struct job *j = &p->jobs[i];
            assert_in_range(j->ended, 0, 1);
            if (j->ended == 0)
                continue;
            j->ended = 0;
            ended++;
            assert_int_equal(j->req.status, 0);
            wrong += !right(p, j);
            if (begun < requests) {
                make(&r, p, j);
                submit(p, j);
                begun++;
            }
        }
    }
    assert_int_equal(counted, requests); /* poll() told of each one, once */
    assert_null(p->script.broken);
    return wrong + (memcmp(p->disk, p->mirror, p->space * p->prep.depth) != 0);
}

static void check_table_empty(const struct path *p)
{
    const iommu_entry *table = p->prep.iommu;

    for (size_t i = 0; i < p->prep.iommu_size / sizeof *table; i++)
        if (atomic_load(&table[i]) != 0)
            fail_msg("entry %zu is still there", i);
}

static void right_in_any_shape(enum lp_prep mode, bool guard)
{
    static const unsigned depths[] = {1, 2, 7, 32, 64};

    for (unsigned i = 0; i < 10; i++) {
        struct prep_opts prep = {.mode = mode,
                                 .guard = guard,
                                 .depth = depths[i / 2],
                                 .page_size = i % 2 ? 16384 : 4096};
        uint64_t seed = 1000 + i;
        struct path *p = path_new(&prep, 128 << 10, seed);
        unsigned wrong = run_many(p, 60 + 3 * prep.depth, seed, shape);
        if (wrong)
            fail_msg("%u wrong, seed %llu, depth %u, pages of %u", wrong, (unsigned long long)seed,
                     prep.depth, prep.page_size);
        check_table_empty(p);
        path_free(p);
    }
}

static void test_page(void **state)
{
    (void)state;
    right_in_any_shape(LP_PREP_PAGE, true);
    right_in_any_shape(LP_PREP_PAGE, false);
}

static void test_block(void **state)
{
    (void)state;
    right_in_any_shape(LP_PREP_BLOCK, true);
}

static void test_multi_guarded(void **state)
{
    (void)state;
    right_in_any_shape(LP_PREP_MULTI, true);
}

static void test_large(void **state)
{
    static const enum lp_prep modes[] = {LP_PREP_PAGE, LP_PREP_BLOCK, LP_PREP_MULTI};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct prep_opts prep = {.mode = modes[i], .depth = 1, .page_size = 4096};
        struct path *p = path_new(&prep, 3 * MIB, i);
        job_init(p, 0);
        struct job *j = &p->jobs[0];
        j->req.op = LP_WRITE; /* in odd memory: a block of 1 MiB then touches 257 pages */
        j->req.length = 2 * MIB + BLOCK_SIZE;
        j->req.iovcnt = 1;
        j->iov[0] = (struct iovec){j->space + 77, j->req.length};
        assert_int_equal(run_one(p, j)->req.status, 0);
        assert_true(right(p, j));
        assert_memory_equal(p->disk, p->mirror, 3 * MIB);
        path_free(p);
    }
}

/* ---- MULTI ---- */

static void test_multi_depth_1(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct prep_opts prep = {
            .mode = LP_PREP_MULTI, .depth = 1, .page_size = i ? 16384 : 4096, .table_entries = 1};
        struct path *p = path_new(&prep, MIB, 50 + i);
        p->all_in_arena = true;
        assert_int_equal(run_many(p, 10, 50 + i, one_mib), 0);
        path_free(p);
    }
}

static void test_multi_one_page(void **state)
{
    (void)state;
    for (unsigned depth = 1; depth <= 64; depth *= 4) {
        for (unsigned i = 0; i < 2; i++) {
            struct prep_opts prep = {
                .mode = LP_PREP_MULTI, .depth = depth, .page_size = i ? 16384 : 4096};
            struct path *p = path_new(&prep, 64 << 10, depth + i);
            p->all_in_arena = true;
            assert_int_equal(run_many(p, 300, depth + i, one_page), 0);
            path_free(p);
        }
    }
}

/* The very thing that the guard is for. */
static void test_multi_deep_is_wrong(void **state)
{
    struct prep_opts prep = {.mode = LP_PREP_MULTI, .depth = 32, .page_size = 4096};
    uint64_t seed = 4;
    struct path *p = path_new(&prep, MIB, seed);

    (void)state;
    p->all_in_arena = true;
    unsigned wrong = run_many(p, 128, seed, one_mib);
    print_message("# seed %llu: %u of 128 requests wrong\n", (unsigned long long)seed, wrong);
    assert_true(wrong > 0);
    path_free(p);

    prep.guard = true; /* the same requests */
    p = path_new(&prep, MIB, seed);
    p->all_in_arena = true;
    assert_int_equal(run_many(p, 64, seed, one_mib), 0);
    path_free(p);
}

/* ---- the order of things ---- */

static void test_forgotten_before_end(void **state)
{
    struct prep_opts prep = {.mode = LP_PREP_PAGE, .depth = 1, .page_size = 4096};
    struct path *p = path_new(&prep, 64 << 10, 9);
    struct rng r = {9};

    (void)state;
    job_init(p, 0);
    for (unsigned i = 1; i <= 10; i++) {
        one_page(&r, p, &p->jobs[0]);
        uint64_t invalidations = p->late.invalidations;
        run_one(p, &p->jobs[0]);
        assert_int_equal(p->late.count, 0);
        assert_true(p->late.invalidations > invalidations);
        check_table_empty(p);
    }
    assert_int_equal(p->late.invalidations, p->script.ops[LP_READ] + p->script.ops[LP_WRITE]);
    path_free(p);
}

static void test_disk_error(void **state)
{
    struct prep_opts prep = {.mode = LP_PREP_BLOCK, .depth = 1, .page_size = 4096};
    struct path *p = path_new(&prep, 64 << 10, 9);
    struct rng r = {9};

    (void)state;
    job_init(p, 0);
    for (unsigned i = 0; i < 10; i++) { /* more often than there are slots: none is lost */
        one_page(&r, p, &p->jobs[0]);
        p->script.fail_at = p->script.taken + 1;
        assert_int_equal(run_one(p, &p->jobs[0])->req.status, -EIO);
        check_table_empty(p);
    }
    p->jobs[0].req = (struct lp_request){.op = LP_FLUSH, .complete = job_done, .user = p->jobs};
    assert_int_equal(run_one(p, &p->jobs[0])->req.status, 0);
    assert_int_equal(p->script.ops[LP_FLUSH], 1);
    path_free(p);
}

/* ---- prep alone ---- */

static void refused(struct prep_opts opts, const char *word)
{
    struct script_queue script;
    struct lp_error err = {0};
    unsigned closed = 0;

    script_init(&script, NULL, MIB, BLOCK_SIZE, 1);
    script.closed = &closed;
    assert_null(prep_open(&script.q, &opts, &err));
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    if (!strstr(err.msg, word) || strchr(err.msg, '\n'))
        fail_msg("refused with \"%s\"", err.msg);
    assert_int_equal(closed, 1); /* owned, also on failure */
}

static void test_table_refused(void **state)
{
    iommu_entry table[2] = {0};
    struct prep_opts opts = {.mode = LP_PREP_PAGE,
                             .page_size = 4096,
                             .depth = 2,
                             .iommu = table,
                             .iommu_size = sizeof table - 1};

    (void)state;
    refused(opts, "has 15 bytes and depth 2 needs 16");
    opts.mode = LP_PREP_MULTI;
    opts.table_entries = UINT32_MAX;
    opts.iommu_size = SIZE_MAX;
    refused(opts, "4294967297 entries");
}

static void test_prep_refuses(void **state)
{
    struct script_queue script;
    char *arena = aligned(8 * 4096), outside[512] = {0};
    iommu_entry table[2] = {0};
    struct prep_opts opts = {.mode = LP_PREP_PAGE,
                             .page_size = 4096,
                             .depth = 2,
                             .iommu = table,
                             .iommu_size = sizeof table,
                             .arena = arena,
                             .arena_size = 8 * 4096};
    struct dma_opts dma = {.depth = 2,
                           .page_size = 4096,
                           .iommu = table,
                           .iommu_size = sizeof table,
                           .arena = arena,
                           .arena_size = 8 * 4096};

    (void)state;
    script_init(&script, NULL, MIB, BLOCK_SIZE, 1);
    struct lp_queue *q = prep_open(dma_open(&script.q, &dma, NULL), &opts, NULL);
    assert_non_null(q);
    assert_int_equal(lp_queue_read(q, 0, outside, 512), -EINVAL);
    assert_int_equal(lp_queue_read(q, 0, arena + 8 * 4096 - 256, 512), -EINVAL); /* half outside */
    assert_int_equal(lp_queue_read(q, 0, arena + 4096 - 256, 512), -EINVAL);     /* two pages */
    assert_int_equal(lp_queue_read(q, 0, arena, 8192), -EINVAL);
    assert_int_equal(script.taken, 0);
    assert_true(atomic_load(&table[0]) == 0 && atomic_load(&table[1]) == 0);
    lp_queue_close(q);
    free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a page a task moves the right bytes in any shape at any depth", test_page, NULL, NULL,
         NULL},
        {"a block a task moves the right bytes in any shape at any depth", test_block, NULL, NULL,
         NULL},
        {"several pages a task with guard move the right bytes", test_multi_guarded, NULL, NULL,
         NULL},
        {"requests larger than a task are split and right", test_large, NULL, NULL, NULL},
        {"several pages a task are right at depth 1", test_multi_depth_1, NULL, NULL, NULL},
        {"one page is right at any depth without guard", test_multi_one_page, NULL, NULL, NULL},
        {"several pages a task at depth 32 give wrong data, with guard they do not",
         test_multi_deep_is_wrong, NULL, NULL, NULL},
        {"a request ends when its entries are gone and forgotten", test_forgotten_before_end, NULL,
         NULL, NULL},
        {"a disk's error comes through and frees what it held", test_disk_error, NULL, NULL, NULL},
        {"a table that is too small or too large is refused with a sentence", test_table_refused,
         NULL, NULL, NULL},
        {"preparation refuses what it cannot enter", test_prep_refuses, NULL, NULL, NULL},
    };

    return cmocka_run_group_tests_name("prep", tests, NULL, NULL);
}
