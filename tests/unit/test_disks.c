/* SPDX-License-Identifier: BSD-2-Clause */
/* What holds for every disk: null, ram, and file with each engine, direct and buffered. */
#include "disk_helpers.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 1 << 20, DEPTH = 16 };

struct kind {
    const char *name;
    const char *url; /* NULL: a file is made for it */
    bool keeps_data;
    struct lp_disk_opts opts;
};

#define FILE_KIND(text, e, b)                                                                      \
    {                                                                                              \
        .name = text, .keeps_data = true, .opts = {.fd = -1, .engine = e, .buffered = b }          \
    }

static struct kind kinds[] = {
    {.name = "null", .url = "null:1M", .opts = {.fd = -1}},
    {.name = "ram", .url = "ram:1M", .keeps_data = true, .opts = {.fd = -1}},
    FILE_KIND("file, threads, buffered", LP_ENGINE_THREADS, true),
#ifndef LP_PORTABLE
    FILE_KIND("file, threads, direct", LP_ENGINE_THREADS, false),
    FILE_KIND("file, io_uring, buffered", LP_ENGINE_URING, true),
    FILE_KIND("file, io_uring, direct", LP_ENGINE_URING, false),
#endif
};

struct env {
    const struct kind *kind;
    char path[64];
    char url[80];
    struct lp_disk *disk;
    struct lp_queue *q;
    uint32_t block;
    uint32_t align;
    char *buf;    /* SIZE bytes, aligned */
    char *shadow; /* what the disk should hold */
};

static void make_file(struct env *env)
{
    snprintf(env->path, sizeof env->path, "/tmp/lunpath-disks-XXXXXX");
    int fd = mkstemp(env->path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    close(fd);
    snprintf(env->url, sizeof env->url, "file:%s", env->path);
}

static void close_all(struct env *env)
{
    lp_queue_close(env->q);
    lp_disk_close(env->disk);
    if (env->path[0])
        unlink(env->path);
    free(env->buf);
    free(env->shadow);
}

/* Skips where the system has not what this kind needs. */
static void open_all(struct env *env, const struct kind *kind)
{
    struct lp_error err = {0};

    *env = (struct env){.kind = kind};
    env->buf = aligned_memory(SIZE);
    env->shadow = aligned_memory(SIZE);
    if (kind->url)
        snprintf(env->url, sizeof env->url, "%s", kind->url);
    else
        make_file(env);
    env->disk = lp_disk_open(env->url, &kind->opts, &err);
    if (!env->disk) {
        close_all(env);
        if (strstr(err.msg, "--buffered") || strstr(err.msg, "io_uring"))
            skip();
        fail_msg("%s", err.msg);
    }
    env->q = must_queue(env->disk, DEPTH);
    env->block = lp_disk_limits(env->disk)->block_size;
    env->align = lp_disk_limits(env->disk)->mem_align;
}

/* A random shape of up to `max` segments for length bytes, some of them empty. */
static uint32_t cut_up(struct iovec *iov, uint32_t max, char *buf, size_t length, size_t unit,
                       struct rng *rng)
{
    uint32_t count = 0;
    size_t at = 0;

    while (at < length && count < max - 1) {
        size_t part = (size_t)rng_below(rng, (length - at) / unit + 1) * unit;
        if (rng_below(rng, 3))
            part = part / 8 / unit * unit;
        iov[count++] = (struct iovec){.iov_base = buf + at, .iov_len = part};
        at += part;
    }
    if (at < length)
        iov[count++] = (struct iovec){.iov_base = buf + at, .iov_len = length - at};
    return count;
}

static int run_cut_up(struct env *env, enum lp_op op, uint32_t flags, uint64_t offset,
                      size_t length, struct rng *rng)
{
    struct iovec iov[200];
    size_t unit = env->align;
    struct lp_request req = {
        .op = op, .flags = flags, .offset = offset, .length = length, .iov = iov};

    req.iovcnt = cut_up(iov, 1 + (uint32_t)rng_below(rng, 200), env->buf, length, unit, rng);
    return lp_queue_run(env->q, &req);
}

static void what_was_written_is_read_in_any_shape(void **state)
{
    struct env env;
    struct rng rng = {11};

    open_all(&env, *state);
    for (unsigned i = 0; i < 300; i++) {
        uint64_t blocks = SIZE / env.block;
        uint64_t first = rng_below(&rng, blocks);
        uint64_t count = 1 + rng_below(&rng, rng_below(&rng, 4) ? 16 : blocks);
        if (count > blocks - first)
            count = blocks - first;
        uint64_t offset = first * env.block;
        size_t length = (size_t)count * env.block;
        bool write = i % 2 == 0;
        if (write) {
            fill_random(env.buf, length, i);
            memcpy(env.shadow + offset, env.buf, length);
        } else {
            memset(env.buf, 0x5a, length);
        }
        uint32_t flags = write && i % 8 == 0 ? LP_FUA : 0;
        assert_int_equal(run_cut_up(&env, write ? LP_WRITE : LP_READ, flags, offset, length, &rng),
                         0);
        if (!write && env.kind->keeps_data)
            assert_memory_equal(env.buf, env.shadow + offset, length);
    }
    assert_int_equal(run_op(env.q, LP_FLUSH, 0, 0, 0), 0);
    assert_int_equal(lp_queue_read(env.q, 0, env.buf, SIZE), 0);
    if (env.kind->keeps_data)
        assert_memory_equal(env.buf, env.shadow, SIZE);
    close_all(&env);
}

static void requests_that_break_the_limits_end_with_einval(void **state)
{
    struct env env;

    open_all(&env, *state);
    struct lp_queue *q = env.q;
    uint32_t block = env.block;
    fill_random(env.shadow, SIZE, 5);
    assert_int_equal(lp_queue_write(q, 0, env.shadow, SIZE), 0);
    for (enum lp_op op = LP_READ; op <= LP_WRITE; op++) {
        assert_int_equal(run_segment(q, op, SIZE, block, env.buf, block), -EINVAL);
        assert_int_equal(run_segment(q, op, SIZE - block, 2 * block, env.buf, 2 * block), -EINVAL);
        assert_int_equal(run_segment(q, op, (uint64_t)0 - block, block, env.buf, block), -EINVAL);
        assert_int_equal(run_segment(q, op, 0, (uint64_t)0 - block, env.buf, block), -EINVAL);
        assert_int_equal(run_segment(q, op, 0, SIZE + block, env.buf, SIZE), -EINVAL);
        assert_int_equal(run_segment(q, op, 1, block, env.buf, block), -EINVAL);
        assert_int_equal(run_segment(q, op, 0, block + 1, env.buf, block + 1), -EINVAL);
        assert_int_equal(run_segment(q, op, 0, 2 * block, env.buf, block), -EINVAL);
        assert_int_equal(run_segment(q, op, 0, block, env.buf, 2 * block), -EINVAL);
        assert_int_equal(run_op(q, op, LP_PREPARED, 0, block), -EINVAL);
        if (env.align > 1)
            assert_int_equal(run_segment(q, op, 0, block, env.buf + 1, block), -EINVAL);
    }
    assert_int_equal(run_op(q, LP_INVALIDATE, 0, 0, block), -EINVAL);
    assert_int_equal(run_op(q, LP_OP_COUNT, 0, 0, block), -EINVAL);
    if (q->limits.write_zeroes)
        assert_int_equal(run_op(q, LP_WRITE_ZEROES, 0, SIZE, block), -EINVAL);
    assert_int_equal(run_op(q, LP_READ, 0, 0, 0), 0); /* nothing is not wrong */

    assert_int_equal(lp_queue_read(q, 0, env.buf, SIZE), 0);
    if (env.kind->keeps_data)
        assert_memory_equal(env.buf, env.shadow, SIZE);
    close_all(&env);
}

static void a_read_only_disk_refuses_changes(void **state)
{
    struct env env;
    struct kind kind = *(struct kind *)*state;

    kind.opts.read_only = true;
    open_all(&env, &kind);
    assert_true(lp_disk_limits(env.disk)->read_only);
    assert_int_equal(lp_queue_write(env.q, 0, env.buf, env.block), -EROFS);
    assert_int_equal(run_op(env.q, LP_DISCARD, 0, 0, env.block), -EROFS);
    assert_int_equal(run_op(env.q, LP_WRITE_ZEROES, 0, 0, env.block), -EROFS);
    assert_int_equal(lp_queue_read(env.q, 0, env.buf, SIZE), 0);
    assert_int_equal(run_op(env.q, LP_FLUSH, 0, 0, 0), 0);
    close_all(&env);
}

static void zeroed_and_discarded_ranges_leave_the_rest_alone(void **state)
{
    struct env env;

    open_all(&env, *state);
    if (!env.q->limits.write_zeroes || !env.q->limits.discard) {
        assert_int_equal(run_op(env.q, LP_WRITE_ZEROES, 0, 0, env.block), -EOPNOTSUPP);
        close_all(&env);
        return;
    }
    fill_random(env.shadow, SIZE, 6);
    assert_int_equal(lp_queue_write(env.q, 0, env.shadow, SIZE), 0);
    assert_int_equal(run_op(env.q, LP_WRITE_ZEROES, 0, 8 * env.block, 64 * env.block), 0);
    assert_int_equal(run_op(env.q, LP_WRITE_ZEROES, LP_FUA, SIZE / 2, env.block), 0);
    memset(env.shadow + 8 * env.block, 0, 64 * (size_t)env.block);
    memset(env.shadow + SIZE / 2, 0, env.block);
    assert_int_equal(run_op(env.q, LP_DISCARD, 0, SIZE - 65536, 65536), 0);

    assert_int_equal(lp_queue_read(env.q, 0, env.buf, SIZE), 0);
    if (env.kind->keeps_data)
        assert_memory_equal(env.buf, env.shadow, SIZE - 65536); /* what follows may be anything */
    close_all(&env);
}

struct counted {
    struct lp_request req;
    struct iovec iov;
    struct lp_queue *q;
    unsigned *ended;
    unsigned again; /* how often complete() submits it once more */
};

static void count_and_repeat(struct lp_request *req)
{
    struct counted *c = req->user;

    ++*c->ended;
    assert_int_equal(req->status, 0);
    if (c->again > 0) {
        c->again--;
        assert_int_equal(lp_queue_submit(c->q, req), 0);
    }
}

static void init_counted(struct counted *c, struct env *env, unsigned i, unsigned *ended)
{
    *c = (struct counted){.q = env->q, .ended = ended, .again = 3};
    c->iov = (struct iovec){.iov_base = env->buf + i * 4096, .iov_len = 4096};
    c->req = (struct lp_request){.op = LP_WRITE,
                                 .offset = i * 4096,
                                 .length = 4096,
                                 .iov = &c->iov,
                                 .iovcnt = 1,
                                 .tag = 1000 + i,
                                 .complete = count_and_repeat,
                                 .user = c};
}

/* Also: complete() may submit, and is never called by submit() or kick(). */
static void a_queue_holds_its_depth_and_not_one_more(void **state)
{
    struct counted c[DEPTH + 1];
    unsigned ended = 0;
    struct env env;

    open_all(&env, *state);
    for (unsigned i = 0; i <= DEPTH; i++)
        init_counted(&c[i], &env, i, &ended);
    for (unsigned i = 0; i < DEPTH; i++)
        assert_int_equal(lp_queue_submit(env.q, &c[i].req), 0);
    assert_int_equal(lp_queue_submit(env.q, &c[DEPTH].req), -EAGAIN);
    lp_queue_kick(env.q);
    assert_int_equal(ended, 0);

    unsigned polled = 0;
    while (polled < DEPTH * 4) {
        int n = lp_queue_poll(env.q, ten_seconds);
        assert_true(n > 0);
        polled += (unsigned)n;
        assert_int_equal(ended, polled);
    }
    assert_int_equal(lp_queue_poll(env.q, ten_seconds), 0); /* at once: nothing is in flight */
    for (unsigned i = 0; i < DEPTH; i++)
        assert_int_equal(c[i].req.tag, 1000 + i);
    assert_int_equal(env.q->stats.requests, DEPTH * 4);
    assert_int_equal(env.q->stats.bytes_written, DEPTH * 4 * 4096);
    assert_int_equal(env.q->stats.bytes_read, 0);
    close_all(&env);
}

static void data_is_kept_when_the_disk_is_opened_again_by_descriptor(void **state)
{
    struct env env;

    open_all(&env, *state);
    int fd = lp_disk_share(env.disk);
    if (fd < 0) { /* null needs none, and the portable build's memory has none */
        bool null = !env.kind->keeps_data;
        close_all(&env);
        if (!null)
            skip();
        return;
    }
    fill_random(env.shadow, SIZE, 9);
    assert_int_equal(lp_queue_write(env.q, 0, env.shadow, SIZE), 0);

    struct lp_disk_opts opts = env.kind->opts;
    opts.fd = dup(fd);
    struct lp_disk *again = must_open(env.url, &opts);
    struct lp_queue *q = must_queue(again, 1);
    assert_int_equal(lp_queue_read(q, 0, env.buf, SIZE), 0);
    assert_memory_equal(env.buf, env.shadow, SIZE);
    /* And the other way. */
    memset(env.buf, 0x33, 4096);
    assert_int_equal(lp_queue_write(q, 4096, env.buf, 4096), 0);
    assert_int_equal(lp_queue_read(env.q, 4096, env.buf + 8192, 4096), 0);
    assert_memory_equal(env.buf, env.buf + 8192, 4096);
    lp_queue_close(q);
    lp_disk_close(again);
    close_all(&env);
}

static void two_queues_work_side_by_side(void **state)
{
    struct env env;

    open_all(&env, *state);
    struct lp_queue *other = must_queue(env.disk, 1);
    fill_random(env.shadow, SIZE, 10);
    assert_int_equal(lp_queue_write(env.q, 0, env.shadow, SIZE / 2), 0);
    assert_int_equal(lp_queue_write(other, SIZE / 2, env.shadow + SIZE / 2, SIZE / 2), 0);
    lp_queue_close(other);
    assert_int_equal(lp_queue_read(env.q, 0, env.buf, SIZE), 0);
    if (env.kind->keeps_data)
        assert_memory_equal(env.buf, env.shadow, SIZE);
    close_all(&env);
}

static void a_depth_outside_the_limits_is_refused(void **state)
{
    struct lp_error err = {0};
    struct env env;

    open_all(&env, *state);
    assert_null(lp_disk_queue(env.disk, 0, &err));
    assert_non_null(strstr(err.msg, "depth 0"));
    assert_null(lp_disk_queue(env.disk, lp_disk_limits(env.disk)->depth + 1, &err));
    assert_non_null(strstr(err.msg, "must be from 1 to"));
    lp_queue_close(must_queue(env.disk, lp_disk_limits(env.disk)->depth));
    assert_string_equal(lp_disk_url(env.disk), env.url);
    assert_true(lp_disk_mode(env.disk)[0]);
    close_all(&env);
}

static const struct {
    const char *name;
    CMUnitTestFunction run;
} checks[] = {
#define CHECK(f)                                                                                   \
    {                                                                                              \
#f, f                                                                                      \
    }
    CHECK(what_was_written_is_read_in_any_shape),
    CHECK(requests_that_break_the_limits_end_with_einval),
    CHECK(a_read_only_disk_refuses_changes),
    CHECK(zeroed_and_discarded_ranges_leave_the_rest_alone),
    CHECK(a_queue_holds_its_depth_and_not_one_more),
    CHECK(data_is_kept_when_the_disk_is_opened_again_by_descriptor),
    CHECK(two_queues_work_side_by_side),
    CHECK(a_depth_outside_the_limits_is_refused),
};

enum {
    KINDS = sizeof kinds / sizeof *kinds,
    CHECKS = sizeof checks / sizeof *checks,
};

int main(void)
{
    static char names[KINDS * CHECKS][128];
    struct CMUnitTest tests[KINDS * CHECKS];

    for (unsigned i = 0; i < KINDS * CHECKS; i++) {
        struct kind *kind = &kinds[i / CHECKS];
        snprintf(names[i], sizeof names[i], "%s (%s)", checks[i % CHECKS].name, kind->name);
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = checks[i % CHECKS].run, .initial_state = kind};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
