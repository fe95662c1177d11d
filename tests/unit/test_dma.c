/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's side of a prepared path alone, on a scripted disk in memory: what tables of any kind
 * can lead it to.
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

#include <pthread.h>

enum { PAGES = 4, ENTRIES = 8, BLOCK_SIZE = 512 };

struct device {
    struct script_queue script;
    struct lp_queue *q;
    struct iommu mmu;
    char *arena;    /* PAGES */
    char *canaries; /* a page, the arena, a page */
    char *expect;   /* the same, as it must be */
    char disk[PAGES * 16384];
};

static void fill(struct rng *rng, char *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word = rng_next(rng);
        memcpy(p, &word, 8);
    }
}

/* The device's side, as src/host/stack.c builds it. */
static void open_queue(struct device *d)
{
    struct lp_fit_opts fit = {.depth = 4};
    struct dma_opts dma = {.depth = 4,
                           .page_size = d->mmu.page_size,
                           .iommu = d->mmu.table,
                           .iommu_size = ENTRIES * sizeof(iommu_entry),
                           .arena = d->arena,
                           .arena_size = (size_t)PAGES * d->mmu.page_size};
    struct lp_queue *q = lp_fit_open(&d->script.q, &d->script.q.limits, &fit, NULL);

    assert_non_null(q);
    d->q = dma_open(q, &dma, NULL);
    assert_non_null(d->q);
}

static struct device *device_new(uint32_t page_size)
{
    struct device *d = calloc(1, sizeof *d);
    struct rng rng = {page_size};
    size_t all = (size_t)(PAGES + 2) * page_size;
    void *memory = NULL, *table = calloc(ENTRIES, sizeof(iommu_entry));

    assert_non_null(d);
    assert_int_equal(posix_memalign(&memory, page_size, all), 0);
    d->canaries = memory;
    d->expect = malloc(all);
    assert_true(d->expect && table);
    fill(&rng, d->canaries, all);
    fill(&rng, d->disk, sizeof d->disk);
    memcpy(d->expect, d->canaries, all);
    d->arena = d->canaries + page_size;
    d->mmu = iommu_view(table, ENTRIES * sizeof(iommu_entry), page_size, (size_t)PAGES * page_size);
    script_init(&d->script, d->disk, sizeof d->disk, BLOCK_SIZE, 1);
    open_queue(d);
    return d;
}

static void device_free(struct device *d)
{
    lp_queue_close(d->q);
    free(d->canaries);
    free(d->expect);
    free(d->mmu.table);
    free(d);
}

static int device_run(struct device *d, enum lp_op op, uint64_t dma, uint64_t length)
{
    struct lp_request req = {.op = op, .flags = LP_PREPARED, .length = length, .dma = dma};

    return lp_queue_run(d->q, &req);
}

static void check_untouched(const struct device *d)
{
    assert_memory_equal(d->canaries, d->expect, (size_t)(PAGES + 2) * d->mmu.page_size);
}

static void hostile(uint32_t page_size)
{
    struct device *d = device_new(page_size);
    uint64_t two = 2 * (uint64_t)page_size;

    assert_int_equal(device_run(d, LP_READ, 0, 512), -EFAULT); /* not mapped */
    assert_int_equal(device_run(d, LP_READ, (uint64_t)ENTRIES * page_size, 512), -EFAULT);
    assert_int_equal(device_run(d, LP_READ, UINT64_MAX, 512), -EFAULT);
    assert_int_equal(device_run(d, LP_READ, (uint64_t)page_size << 32, 512), -EFAULT);
    iommu_map(&d->mmu, 0, PAGES, 1); /* the first page behind the arena */
    assert_int_equal(device_run(d, LP_READ, 0, 512), -EFAULT);
    iommu_map(&d->mmu, 0, 0x7fffffff, 1);
    assert_int_equal(device_run(d, LP_READ, 0, 512), -EFAULT);
    iommu_map(&d->mmu, 0, 0, 1); /* the second page is missing, then behind the arena */
    assert_int_equal(device_run(d, LP_READ, 0, two), -EFAULT);
    iommu_map(&d->mmu, 1, PAGES, 0);
    assert_int_equal(device_run(d, LP_WRITE, 0, two), -EFAULT);
    device_run(d, LP_INVALIDATE, 0, 0);
    iommu_map(&d->mmu, 0, 0, UINT32_MAX); /* next is past the end, and wraps around after it */
    assert_int_equal(device_run(d, LP_READ, 0, two), -EFAULT);
    assert_int_equal(device_run(d, LP_READ, 0, two + page_size), -EFAULT);
    assert_int_equal(device_run(d, LP_READ, 0, (uint64_t)PREP_MAX_TRANSFER + 512), -EINVAL);
    struct iovec iov = {d->arena, 512};
    struct lp_request bare = {.op = LP_READ, .length = 512, .iov = &iov, .iovcnt = 1};
    assert_int_equal(lp_queue_run(d->q, &bare), -EINVAL); /* not prepared */
    assert_int_equal(d->script.taken, 0);
    check_untouched(d);
    device_free(d);
}

static void test_hostile(void **state)
{
    (void)state;
    hostile(4096);
    hostile(16384);
}

/* Of any kind, mostly valid. */
static uint64_t random_entry(struct rng *r)
{
    return (uint64_t)(rng_below(r, 4) != 0) << 63 | rng_below(r, PAGES + 2) << 32 |
           (rng_below(r, 8) ? rng_below(r, ENTRIES + 1) : (uint32_t)rng_next(r));
}

/* Nonsense everywhere; whatever it is taken for, it stays inside the arena. */
static void test_random_tables(void **state)
{
    struct rng r = {77};
    struct device *d = device_new(4096);
    unsigned good = 0, bad = 0;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t word = random_entry(&r);
        atomic_store(&d->mmu.table[rng_below(&r, ENTRIES)], word);
        device_run(d, LP_INVALIDATE, 0, 0);
        enum lp_op op = rng_below(&r, 2) ? LP_READ : LP_WRITE;
        uint64_t dma = rng_below(&r, 64) ? rng_below(&r, (ENTRIES + 1) * 4096) : rng_next(&r);
        int e = device_run(d, op, dma, 512 * rng_below(&r, 40));
        assert_true(e == 0 || e == -EFAULT);
        good += e == 0;
        bad += e != 0;
    }
    assert_true(good > 100 && bad > 100);
    memcpy(d->expect + 4096, d->arena, PAGES * 4096); /* what is around it is as it was */
    check_untouched(d);
    device_free(d);
}

/* ---- a table that changes under the device's feet ---- */

struct meddler {
    struct device *d;
    atomic_bool stop;
    atomic_ulong changes;
};

/* What an application on another CPU can do to the table that both see. */
static void *meddle(void *arg)
{
    struct meddler *m = arg;
    struct rng r = {99};

    while (!atomic_load_explicit(&m->stop, memory_order_relaxed)) {
        atomic_store(&m->d->mmu.table[rng_below(&r, ENTRIES)], random_entry(&r));
        atomic_fetch_add_explicit(&m->changes, 1, memory_order_relaxed);
    }
    return NULL;
}

/* Whatever an entry was when it was checked is what is used: never something outside. */
static void test_changing_table(void **state)
{
    struct device *d = device_new(4096);
    struct meddler m = {.d = d};
    struct rng r = {78};
    unsigned long good = 0, bad = 0;
    pthread_t thread;

    (void)state;
    d->script.q.limits.arena = d->arena; /* what each segment is checked against */
    d->script.q.limits.arena_size = PAGES * 4096;
    assert_int_equal(pthread_create(&thread, NULL, meddle, &m), 0);
    /* Until the table has changed a good deal meanwhile, however the threads are run. */
    for (unsigned i = 0; i < 20000 || good < 100 || bad < 100 || m.changes < 20000; i++) {
        uint64_t dma = rng_below(&r, ENTRIES * 4096);
        enum lp_op op = rng_below(&r, 2) ? LP_READ : LP_WRITE;
        int e = device_run(d, op, dma, 512 * (1 + rng_below(&r, 40)));
        if (e != 0 && e != -EFAULT)
            fail_msg("request %u ended with %d", i, e);
        good += e == 0;
        bad += e != 0;
        device_run(d, LP_INVALIDATE, 0, 0); /* so that the table is read again */
    }
    atomic_store(&m.stop, true);
    pthread_join(thread, NULL);
    if (d->script.broken)
        fail_msg("a segment breaks %s", d->script.broken);
    memcpy(d->expect + 4096, d->arena, PAGES * 4096); /* what is around it is as it was */
    check_untouched(d);
    device_free(d);
}

static void stale(uint32_t page_size, bool invalidate)
{
    struct device *d = device_new(page_size);
    char *first = d->arena, *second = first + page_size;

    iommu_map(&d->mmu, 3, 0, 4);
    assert_int_equal(device_run(d, LP_READ, 3 * (uint64_t)page_size, 512), 0);
    assert_memory_equal(first, d->disk, 512);
    iommu_unmap(&d->mmu, 3);
    if (invalidate) {
        assert_int_equal(device_run(d, LP_INVALIDATE, 3 * (uint64_t)page_size, 0), 0);
        assert_int_equal(device_run(d, LP_READ, 3 * (uint64_t)page_size, 512), -EFAULT);
    }
    iommu_map(&d->mmu, 3, 1, 4);
    memset(first, 'a', 512);
    memset(second, 'b', 512);
    assert_int_equal(device_run(d, LP_READ, 3 * (uint64_t)page_size, 512), 0);
    if (invalidate) {
        assert_memory_equal(second, d->disk, 512);
        assert_int_equal(first[0], 'a');
    } else { /* the old page got it, which is somebody else's by now */
        assert_memory_equal(first, d->disk, 512);
        assert_int_equal(second[0], 'b');
    }
    device_free(d);
}

static void test_stale(void **state)
{
    (void)state;
    stale(4096, false);
    stale(4096, true);
    stale(16384, false);
    stale(16384, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a hostile table gives EFAULT and touches nothing", test_hostile, NULL, NULL, NULL},
        {"a random table never leads outside the arena", test_random_tables, NULL, NULL, NULL},
        {"a table that another thread changes meanwhile never leads outside the arena",
         test_changing_table, NULL, NULL, NULL},
        {"a stale translation gives wrong data until it is invalidated", test_stale, NULL, NULL,
         NULL},
    };

    return cmocka_run_group_tests_name("dma", tests, NULL, NULL);
}
