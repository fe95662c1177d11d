/* SPDX-License-Identifier: BSD-2-Clause */
/* A verifier is only as good as the faults it was shown: each must be exactly what it says. */
#include "disk_helpers.h"

enum { SIZE = 1 << 20, BLOCK = 64 << 10 };

struct env {
    struct lp_disk *disk;
    struct lp_queue *q;
    char *buf;    /* SIZE bytes */
    char *shadow; /* SIZE bytes of random data, on the disk to begin with */
};

/* The disk is filled by a single WRITE of another queue, which counts for itself: right from an
 * interval of 2 on. */
static void open_all(struct env *env, const char *url)
{
    env->disk = must_open(url, NULL);
    env->buf = aligned_memory(SIZE);
    env->shadow = aligned_memory(SIZE);
    fill_random(env->shadow, SIZE, 1);
    struct lp_queue *filler = must_queue(env->disk, 1);
    assert_int_equal(lp_queue_write(filler, 0, env->shadow, SIZE), 0);
    lp_queue_close(filler);
    env->q = must_queue(env->disk, 4);
}

static void close_all(struct env *env)
{
    lp_queue_close(env->q);
    lp_disk_close(env->disk);
    free(env->buf);
    free(env->shadow);
}

static void read_block(struct env *env, unsigned block)
{
    memset(env->buf, 0x5a, BLOCK);
    assert_int_equal(lp_queue_read(env->q, block * BLOCK, env->buf, BLOCK), 0);
}

static const char *expected(struct env *env, unsigned block)
{
    return env->shadow + block * BLOCK;
}

static void is_right(struct env *env, unsigned block)
{
    read_block(env, block);
    assert_memory_equal(env->buf, expected(env, block), BLOCK);
}

/* Writes what is new for this block; what is on the disk then is for the caller to know. */
static const char *write_new(struct env *env, unsigned block, char *data)
{
    fill_random(data, BLOCK, 100 + block);
    assert_int_equal(lp_queue_write(env->q, block * BLOCK, data, BLOCK), 0);
    return data;
}

static void stale_drops_every_nth_write(void **state)
{
    struct env env;
    char *data = aligned_memory(BLOCK);

    (void)state;
    open_all(&env, "fault:stale=3:ram:1M");
    for (unsigned i = 0; i < 9; i++) {
        write_new(&env, i, data);
        if (i % 3 != 2)
            memcpy(env.shadow + i * BLOCK, data, BLOCK);
        is_right(&env, i); /* READs do not count */
    }
    assert_int_equal(env.q->stats.bytes_written, 9 * BLOCK); /* as it was told */
    close_all(&env);
    free(data);
}

static void misdirected_goes_to_the_neighbour(void **state)
{
    struct env env;
    char *data = aligned_memory(BLOCK);

    (void)state;
    open_all(&env, "fault:misdirected=2:ram:1M");
    is_right(&env, 4);   /* 1 */
    read_block(&env, 4); /* 2 */
    assert_memory_equal(env.buf, expected(&env, 5), BLOCK);
    is_right(&env, 15);   /* 3 */
    read_block(&env, 15); /* 4: the last block */
    assert_memory_equal(env.buf, expected(&env, 14), BLOCK);
    is_right(&env, 7);        /* 5 */
    write_new(&env, 7, data); /* 6 */
    memcpy(env.shadow + 8 * BLOCK, data, BLOCK);
    is_right(&env, 7);   /* 7 */
    read_block(&env, 7); /* 8 */
    assert_memory_equal(env.buf, data, BLOCK);
    close_all(&env);
    free(data);
}

static void one_right_write(struct env *env)
{
    assert_int_equal(lp_queue_write(env->q, 9 * BLOCK, expected(env, 9), BLOCK), 0);
    is_right(env, 9);
}

/* In segments, so that the half ends inside one; the last case is a WRITE of a single block. */
static void torn_writes_the_first_half(void **state)
{
    struct env env;
    char *data = aligned_memory(BLOCK);

    (void)state;
    open_all(&env, "fault:torn=2:ram:1M");
    fill_random(data, BLOCK, 7);
    struct iovec iov[] = {{data, 1000}, {data + 1000, 40000}, {data + 41000, BLOCK - 41000}};
    struct lp_request req = {
        .op = LP_WRITE, .offset = 2 * BLOCK, .length = BLOCK, .iov = iov, .iovcnt = 3};
    one_right_write(&env);
    assert_int_equal(lp_queue_run(env.q, &req), 0);
    memcpy(env.shadow + 2 * BLOCK, data, BLOCK / 2);
    is_right(&env, 2);
    is_right(&env, 3);

    one_right_write(&env);
    assert_int_equal(lp_queue_write(env.q, 0, data, 3 * 512), 0);
    memcpy(env.shadow, data, 512);
    is_right(&env, 0);
    one_right_write(&env);
    assert_int_equal(lp_queue_write(env.q, 0, data + 4096, 512), 0);
    is_right(&env, 0);
    close_all(&env);
    free(data);
}

static void zeros_are_read_every_nth_time(void **state)
{
    struct env env;

    (void)state;
    open_all(&env, "fault:zeros=2:ram:1M");
    is_right(&env, 1);
    read_block(&env, 1);
    for (unsigned i = 0; i < BLOCK; i++)
        assert_int_equal(env.buf[i], 0);
    is_right(&env, 1);
    close_all(&env);
}

static void flip_changes_a_single_bit(void **state)
{
    struct env env;
    unsigned places[8] = {0}, different = 0;

    (void)state;
    open_all(&env, "fault:flip=1:ram:1M");
    for (unsigned n = 0; n < 8; n++) {
        unsigned bits = 0;
        read_block(&env, 3);
        for (unsigned i = 0; i < BLOCK; i++) {
            unsigned char wrong = (unsigned char)(env.buf[i] ^ expected(&env, 3)[i]);
            bits += (unsigned)__builtin_popcount(wrong);
            if (wrong)
                places[n] = i;
        }
        assert_int_equal(bits, 1);
        different += n > 0 && places[n] != places[0];
    }
    assert_true(different > 0);
    close_all(&env);
}

static void laterpages_spoils_from_the_second_page_on(void **state)
{
    struct env env;
    char *data = aligned_memory(BLOCK);

    (void)state;
    open_all(&env, "fault:laterpages=1:ram:1M");
    struct iovec iov[] = {{data, 100}, {data + 100, 5000}, {data + 5100, BLOCK - 5100}};
    struct lp_request req = {
        .op = LP_READ, .offset = 5 * BLOCK, .length = BLOCK, .iov = iov, .iovcnt = 3};
    assert_int_equal(lp_queue_run(env.q, &req), 0);
    for (unsigned page = 0; page < BLOCK / 4096; page++)
        assert_memory_equal(data + page * 4096, expected(&env, 5), 4096);
    /* A request of one page is right; the odd end of a longer one is wrong. */
    assert_int_equal(lp_queue_read(env.q, 4096, env.buf, 4096), 0);
    assert_memory_equal(env.buf, env.shadow + 4096, 4096);
    assert_int_equal(lp_queue_read(env.q, 4096, env.buf, 4096 + 512), 0);
    assert_memory_equal(env.buf, env.shadow + 4096, 4096);
    assert_memory_equal(env.buf + 4096, env.shadow + 4096, 512);
    close_all(&env);
    free(data);
}

static void error_ends_any_request_with_eio(void **state)
{
    struct env env;

    (void)state;
    open_all(&env, "fault:error=3:ram:1M");
    is_right(&env, 0);
    assert_int_equal(run_op(env.q, LP_FLUSH, 0, 0, 0), 0);
    assert_int_equal(lp_queue_write(env.q, 0, env.buf, 512), -EIO);
    is_right(&env, 0);
    is_right(&env, 1);
    assert_int_equal(run_op(env.q, LP_FLUSH, 0, 0, 0), -EIO);
    assert_int_equal(env.q->stats.requests, 6);
    assert_int_equal(env.q->stats.bytes_written, 0);
    close_all(&env);
}

static void every_97th_is_wrong_unless_said(void **state)
{
    struct env env;
    unsigned wrong = 0;

    (void)state;
    open_all(&env, "fault:zeros:ram:1M");
    for (unsigned i = 1; i <= 200; i++) {
        read_block(&env, 2);
        if (memcmp(env.buf, expected(&env, 2), BLOCK) != 0) {
            assert_true(i == 97 || i == 194);
            wrong++;
        }
    }
    assert_int_equal(wrong, 2);
    close_all(&env);
}

static void several_kinds_count_for_themselves(void **state)
{
    struct env env;

    (void)state;
    open_all(&env, "fault:error=4,zeros=3,stale=2:ram:1M");
    for (unsigned i = 0; i < 2; i++) {
        is_right(&env, 0);
        is_right(&env, 0);
        read_block(&env, 0);
        assert_int_equal(env.buf[0] | env.buf[BLOCK - 1], 0);
        assert_int_equal(lp_queue_write(env.q, 0, env.buf, BLOCK), -EIO);
    }
    assert_int_equal(lp_queue_write(env.q, BLOCK, env.buf, BLOCK), 0); /* the third WRITE */
    assert_int_equal(lp_queue_write(env.q, 0, env.buf, BLOCK), 0);     /* the fourth: dropped */
    is_right(&env, 0);
    close_all(&env);
}

static void note(struct lp_request *req)
{
    assert_int_equal(req->status, 0);
    ++*(unsigned *)req->user;
}

/* Dropped requests wait for poll() like others, and count against the depth. */
static void dropped_requests_keep_the_rules_of_a_queue(void **state)
{
    struct lp_request reqs[5];
    unsigned ended = 0;
    struct iovec iov;
    struct env env;

    (void)state;
    open_all(&env, "fault:stale=2:ram:1M");
    iov = (struct iovec){.iov_base = env.buf, .iov_len = 4096};
    for (unsigned i = 0; i < 5; i++) {
        reqs[i] = (struct lp_request){.op = LP_WRITE,
                                      .length = 4096,
                                      .iov = &iov,
                                      .iovcnt = 1,
                                      .complete = note,
                                      .user = &ended};
        assert_int_equal(lp_queue_submit(env.q, &reqs[i]), i < 4 ? 0 : -EAGAIN);
    }
    lp_queue_kick(env.q);
    assert_int_equal(ended, 0);
    while (ended < 4)
        assert_true(lp_queue_poll(env.q, ten_seconds) > 0);
    assert_int_equal(lp_queue_poll(env.q, ten_seconds), 0);
    close_all(&env);
}

static void the_disk_below_shows_through(void **state)
{
    struct env env;

    (void)state;
    open_all(&env, "fault:error=1000000,stale=1000000:fault:zeros=1000000:ram:1M");
    for (unsigned i = 0; i < 16; i++)
        is_right(&env, i);
    assert_int_equal(run_op(env.q, LP_WRITE_ZEROES, 0, 0, 512), 0);
    assert_int_equal(lp_queue_read(env.q, SIZE, env.buf, 512), -EINVAL);
    assert_int_equal(lp_disk_limits(env.disk)->size, SIZE);
    assert_non_null(strstr(lp_disk_mode(env.disk), "memory"));
    assert_non_null(strstr(lp_disk_mode(env.disk), "faulty"));
    close_all(&env);
}

static void bad_faults_are_refused(void **state)
{
    (void)state;
    refused("fault:", NULL, "the disk to spoil is missing", "fault:stale:ram:1G");
    refused("fault:stale", NULL, "the disk to spoil is missing", "");
    refused("fault:stale:", NULL, "the disk to spoil is missing", "");
    refused("fault:rot:ram:1M", NULL, "there is no fault \"rot\"", "laterpages");
    refused("fault::ram:1M", NULL, "there is no fault \"\"", "");
    refused("fault:stale,:ram:1M", NULL, "there is no fault \"\"", "");
    refused("fault:stale=0:ram:1M", NULL, "fault's interval", "from 1");
    refused("fault:stale=x:ram:1M", NULL, "fault's interval", "\"x\"");
    refused("fault:stale:foo:1M", NULL, "there is no disk \"foo:1M\"", "");
    refused("fault:stale:ram:0", NULL, "the size is 0", "");
    refused("fault:stale,stale,stale,stale,stale,stale,stale,stale,stale:ram:1M", NULL,
            "more than 8", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stale_drops_every_nth_write),
        cmocka_unit_test(misdirected_goes_to_the_neighbour),
        cmocka_unit_test(torn_writes_the_first_half),
        cmocka_unit_test(zeros_are_read_every_nth_time),
        cmocka_unit_test(flip_changes_a_single_bit),
        cmocka_unit_test(laterpages_spoils_from_the_second_page_on),
        cmocka_unit_test(error_ends_any_request_with_eio),
        cmocka_unit_test(every_97th_is_wrong_unless_said),
        cmocka_unit_test(several_kinds_count_for_themselves),
        cmocka_unit_test(dropped_requests_keep_the_rules_of_a_queue),
        cmocka_unit_test(the_disk_below_shows_through),
        cmocka_unit_test(bad_faults_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
