/* SPDX-License-Identifier: BSD-2-Clause */
/* The property of fit: any shape of request meets any limits and moves the right bytes. A failure
 * prints the seed of the round that shows it. */
#include "fit_rig.h"

enum { ROUNDS = 400 };

static uint32_t power(struct rng *r, uint32_t from, uint32_t to)
{
    uint32_t n = from;

    while (n < to && rng_below(r, 2))
        n *= 2;
    return n;
}

static bool possible(const struct lp_limits *l)
{
    uint64_t segment = l->max_segment - l->max_segment % l->mem_align;
    uint64_t segments = l->max_segments && l->max_segments < 128 ? l->max_segments : 128;

    return (!l->max_transfer || l->max_transfer >= l->block_size) &&
           (!l->max_segment || segment * segments >= l->block_size);
}

static void random_limits(struct rng *r, struct bench *b)
{
    struct lp_limits *l = &b->script.q.limits;

    l->mem_align = power(r, 1, l->block_size);
    if (rng_below(r, 2))
        l->max_transfer = l->block_size + (uint32_t)rng_below(r, 16 * l->block_size);
    if (rng_below(r, 2))
        l->max_segment = l->mem_align + (uint32_t)rng_below(r, 4 * l->block_size);
    if (rng_below(r, 2))
        l->max_segments = 1 + (uint32_t)rng_below(r, 20);
    if (rng_below(r, 3) == 0) { /* the bounce and every second space or so */
        l->arena = b->memory;
        l->arena_size = BOUNCE + ZONES / 2 * SPACE;
    }
    b->script.capacity = 1 + (unsigned)rng_below(r, 12);
    l->depth = 1 + (uint32_t)rng_below(r, 12);
}

static void random_opts(struct rng *r, struct bench *b)
{
    const struct lp_limits *l = &b->script.q.limits;
    size_t least = l->block_size;

    b->opts.depth = 1 + (unsigned)rng_below(r, ZONES);
    b->opts.window = (unsigned)rng_below(r, 4);
    b->opts.always_bounce = rng_below(r, 4) == 0;
    if (l->arena || rng_below(r, 2)) {
        b->opts.bounce = b->memory;
        b->opts.bounce_size = least + rng_below(r, BOUNCE - least + 1);
    }
}

/* Segments in a random order in the space, some aligned, some not, some empty, with gaps. */
static void random_segments(struct rng *r, struct job *j, uint32_t align)
{
    uint32_t n = 1 + (uint32_t)rng_below(r, MAX_SEGS - 1);
    uint64_t left = j->req.length;
    size_t at = rng_below(r, 2) ? 0 : rng_below(r, 4096);
    bool neat = rng_below(r, 2);

    j->req.iovcnt = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t length = i == n - 1 ? left : rng_below(r, left / (n - i) * 2 + 1);
        if (length > left)
            length = left;
        if (neat && i < n - 1)
            length -= length % align;
        if (neat || rng_below(r, 2))
            at = (at + align - 1) / align * align;
        j->iov[j->req.iovcnt++] = (struct iovec){length ? j->space + at : NULL, length};
        at += length + (rng_below(r, 3) ? rng_below(r, 600) : 0);
        left -= length;
    }
    assert_true(at < SPACE);
    for (uint32_t i = j->req.iovcnt; i-- > 1;) {
        uint32_t k = (uint32_t)rng_below(r, i + 1);
        struct iovec v = j->iov[i];
        j->iov[i] = j->iov[k];
        j->iov[k] = v;
    }
}

static void random_job(struct rng *r, struct bench *b, unsigned i)
{
    struct job *j = &b->jobs[i];
    uint32_t block = b->script.q.limits.block_size;
    uint64_t most = (block == 1 ? 2000 : ZONE) / block;
    uint64_t blocks = 1 + rng_below(r, rng_below(r, 2) ? most : 3);

    j->req.op = rng_below(r, 2) ? LP_READ : LP_WRITE;
    j->req.length = blocks * block;
    j->req.offset = (uint64_t)i * ZONE + rng_below(r, (ZONE - j->req.length) / block + 1) * block;
    j->req.iov = j->iov;
    random_segments(r, j, b->script.q.limits.mem_align);
}

static void one_round(uint64_t seed)
{
    static const uint32_t blocks[] = {1, 512, 4096};
    struct rng r = {seed};
    struct bench *b = bench_new(blocks[rng_below(&r, 3)], rng_next(&r));
    struct lp_error err = {0};
    unsigned n = 1 + (unsigned)rng_below(&r, ZONES);

    random_limits(&r, b);
    random_opts(&r, b);
    b->fit = lp_fit_open(&b->script.q, &b->script.q.limits, &b->opts, &err);
    assert_int_equal(b->fit != NULL, possible(&b->script.q.limits));
    for (unsigned i = 0; b->fit && i < n; i++)
        random_job(&r, b, i);
    for (unsigned i = 0; b->fit && i < n; i++)
        submit(b, &b->jobs[i]);
    if (b->fit) {
        run_to_end(b, n);
        if (b->script.broken)
            fail_msg("a piece breaks %s", b->script.broken);
        for (unsigned i = 0; i < n; i++)
            check_job(b, &b->jobs[i]);
        assert_memory_equal(b->disk, b->mirror, DISK);
    }
    bench_free(b);
}

static int new_seed(void **state)
{
    *state = calloc(1, sizeof(uint64_t));
    return *state ? 0 : -1;
}

/* When a round has failed, this is the one. */
static int print_seed(void **state)
{
    print_message("# last seed %llu\n", (unsigned long long)*(uint64_t *)*state);
    free(*state);
    return 0;
}

static void test_any_shape(void **state)
{
    for (uint64_t *seed = *state; *seed < ROUNDS;)
        one_round(++*seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"any shape of request meets any limits and moves the right bytes", test_any_shape,
         new_seed, print_seed, NULL},
    };

    return cmocka_run_group_tests_name("fit_any", tests, NULL, NULL);
}
