/* SPDX-License-Identifier: BSD-2-Clause */
/* The timed data's stamps: what a wrong path did to it is found, on a disk that is a buffer. */
#include "bench/stamp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK = 4096, BLOCKS = 600, BYTES = BLOCK * BLOCKS }; /* more than one piece of 1 MiB */

struct memory_queue {
    struct lp_queue q;
    char *disk;
    struct lp_request *head;
    unsigned writes;
    int status; /* of all requests */
};

static int memory_submit(struct lp_queue *q, struct lp_request *req)
{
    struct memory_queue *m = (struct memory_queue *)q;
    char *at = m->disk + req->offset;

    assert_true(req->offset + req->length <= BYTES);
    for (uint32_t i = 0; i < req->iovcnt && m->status == 0; i++) {
        if (req->op == LP_READ)
            memcpy(req->iov[i].iov_base, at, req->iov[i].iov_len);
        else
            memcpy(at, req->iov[i].iov_base, req->iov[i].iov_len);
        at += req->iov[i].iov_len;
    }
    m->writes += req->op == LP_WRITE;
    req->status = m->status;
    req->next = m->head;
    m->head = req;
    return 0;
}

static int memory_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct memory_queue *m = (struct memory_queue *)q;
    struct lp_request *req = m->head;
    int n = 0;

    (void)wait_ns;
    m->head = NULL;
    for (struct lp_request *next; req; req = next, n++) {
        next = req->next;
        req->complete(req);
    }
    return n;
}

static void memory_close(struct lp_queue *q)
{
    (void)q;
}

struct fixture {
    struct memory_queue below;
    struct stamp s;
    char *arena;
    struct result_verify verify;
    struct lp_error err;
};

static int setup(void **state)
{
    static const struct lp_queue_ops ops = {
        .submit = memory_submit, .poll = memory_poll, .close = memory_close};
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    f->below.q.ops = &ops;
    f->below.q.limits = (struct lp_limits){.size = BYTES, .block_size = 512, .depth = 8};
    f->below.disk = calloc(BLOCKS, BLOCK);
    f->arena = calloc(BLOCKS, BLOCK);
    f->s = (struct stamp){.below = &f->below.q,
                          .pattern = {.seed = 7, .unit = 512},
                          .bytes = BYTES,
                          .block_bytes = BLOCK};
    return !f->below.disk || !f->arena || stamp_open(&f->s, &f->err) != 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    stamp_close(&f->s);
    free(f->below.disk);
    free(f->arena);
    free(f);
    return 0;
}

static void prepare(struct fixture *f, enum result_direction direction)
{
    assert_int_equal(stamp_prepare(&f->s, direction, f->arena, &f->err), 0);
}

static void check(struct fixture *f, enum result_direction direction)
{
    assert_int_equal(stamp_check(&f->s, direction, f->arena, &f->verify, &f->err), 0);
}

/* What a right path does with one block. */
static void move_block(struct fixture *f, enum result_direction direction, unsigned block)
{
    char *disk = f->below.disk + block * BLOCK, *memory = f->arena + block * BLOCK;

    if (direction == RESULT_READ)
        memcpy(memory, disk, BLOCK);
    else
        memcpy(disk, memory, BLOCK);
    f->s.touched[block] = 1;
}

static void m8_payload_is_pseudo_random_and_never_zeros(void **state)
{
    struct fixture *f = *state;
    uint64_t words[BLOCK / 8], other[BLOCK / 8];

    prepare(f, RESULT_WRITE);
    for (unsigned b = 0; b < BLOCKS; b++) {
        memcpy(words, f->arena + b * BLOCK, BLOCK);
        memcpy(other, f->arena + (b + 1) % BLOCKS * BLOCK, BLOCK);
        unsigned zeros = 0, same = 0;
        for (unsigned i = 0; i < BLOCK / 8; i++) {
            zeros += words[i] == 0;
            same += words[i] == other[i];
        }
        assert_int_equal(zeros, 0);
        assert_true(same <= 2 * BLOCK / 512); /* what headers have in common */
    }
}

static void m8_an_engine_that_elides_what_it_writes_is_caught(void **state)
{
    struct fixture *f = *state;

    prepare(f, RESULT_WRITE);
    for (unsigned b = 0; b < BLOCKS; b++)
        f->s.touched[b] = 1;
    check(f, RESULT_WRITE);
    assert_int_equal(f->verify.wrong_blocks, BYTES / 512);
    assert_non_null(strstr(f->verify.first, "zeros"));
}

static void m8_read_begins_with_a_disk_that_was_written(void **state)
{
    struct fixture *f = *state;
    struct pattern_finding first;

    prepare(f, RESULT_READ);
    assert_int_equal(pattern_check(&f->s.pattern, f->below.disk, BYTES, 0, f->s.generation, &first),
                     0);
    assert_int_equal(pattern_check(&f->s.pattern, f->arena, BYTES, 0, f->s.generation, &first),
                     BYTES / 512);
}

static void right_reads_have_no_finding_and_count_only_what_was_read(void **state)
{
    struct fixture *f = *state;

    prepare(f, RESULT_READ);
    for (unsigned b = 0; b < 300; b++)
        move_block(f, RESULT_READ, b);
    check(f, RESULT_READ);
    assert_int_equal(f->verify.wrong_blocks, 0);
    assert_int_equal(f->verify.checked_bytes, 300 * BLOCK);
    assert_string_equal(f->verify.first, "");
}

static void a_read_that_never_landed_is_found(void **state)
{
    struct fixture *f = *state;

    prepare(f, RESULT_READ);
    move_block(f, RESULT_READ, 0);
    f->s.touched[500] = 1;
    check(f, RESULT_READ);
    assert_int_equal(f->verify.wrong_blocks, BLOCK / 512);
    assert_non_null(strstr(f->verify.first, "timed READ"));
    assert_non_null(strstr(f->verify.first, "offset 2048000"));
}

static void a_read_from_elsewhere_is_called_misdirected(void **state)
{
    struct fixture *f = *state;

    prepare(f, RESULT_READ);
    memcpy(f->arena + 5 * BLOCK, f->below.disk + 9 * BLOCK, BLOCK);
    f->s.touched[5] = 1;
    check(f, RESULT_READ);
    assert_non_null(strstr(f->verify.first, "misdirected"));
    assert_non_null(strstr(f->verify.first, "36864"));
}

static void m7_a_lost_write_is_stale_with_both_generations(void **state)
{
    struct fixture *f = *state;

    prepare(f, RESULT_READ);
    uint64_t old = f->s.generation;
    prepare(f, RESULT_WRITE);
    assert_int_equal(f->s.generation, old + 1);
    for (unsigned b = 0; b < 10; b++)
        move_block(f, RESULT_WRITE, b);
    f->s.touched[10] = 1; /* acknowledged, and not done */
    check(f, RESULT_WRITE);
    assert_int_equal(f->verify.wrong_blocks, BLOCK / 512);
    assert_non_null(strstr(f->verify.first, "stale"));
    char generations[64];
    snprintf(generations, sizeof generations, "expected generation %d, found %d", (int)old + 1,
             (int)old);
    assert_non_null(strstr(f->verify.first, generations));
}

static void m7_a_flipped_bit_is_named_with_its_place(void **state)
{
    struct fixture *f = *state;

    prepare(f, RESULT_WRITE);
    for (unsigned b = 0; b < BLOCKS; b++)
        move_block(f, RESULT_WRITE, b);
    f->below.disk[77 * BLOCK + 1000] ^= 4;
    check(f, RESULT_WRITE);
    assert_int_equal(f->verify.wrong_blocks, 1);
    assert_non_null(strstr(f->verify.first, "bit flip"));
    assert_non_null(strstr(f->verify.first, "315904")); /* the 512 bytes around it */
}

static void after_a_write_series_the_whole_disk_is_one_generation(void **state)
{
    struct fixture *f = *state;
    struct pattern_finding first;

    prepare(f, RESULT_WRITE);
    for (unsigned b = 100; b < 200; b++)
        move_block(f, RESULT_WRITE, b);
    f->below.disk[150 * BLOCK] ^= 1; /* put right as well */
    check(f, RESULT_WRITE);
    assert_int_equal(f->verify.wrong_blocks, 1);
    assert_true(f->s.whole);
    assert_int_equal(pattern_check(&f->s.pattern, f->below.disk, BYTES, 0, f->s.generation, &first),
                     0);
    unsigned writes = f->below.writes;
    prepare(f, RESULT_READ);
    assert_int_equal(f->below.writes, writes); /* nothing to do again */
}

static void a_mix_is_checked_on_both_ends(void **state)
{
    struct fixture *f = *state;

    prepare(f, RESULT_MIXED);
    for (unsigned b = 0; b < 20; b++)
        move_block(f, b % 2 ? RESULT_READ : RESULT_WRITE, b);
    check(f, RESULT_MIXED);
    assert_int_equal(f->verify.wrong_blocks, 0);
    prepare(f, RESULT_MIXED);
    move_block(f, RESULT_WRITE, 0);
    move_block(f, RESULT_READ, 1);
    memset(f->below.disk, 0, 512);
    memset(f->arena + BLOCK, 0, 512);
    check(f, RESULT_MIXED);
    assert_int_equal(f->verify.wrong_blocks, 2);
}

static void a_disk_that_fails_is_an_error_and_not_a_finding(void **state)
{
    struct fixture *f = *state;

    f->below.status = -EIO;
    assert_int_equal(stamp_prepare(&f->s, RESULT_READ, f->arena, &f->err), -1);
    assert_non_null(strstr(f->err.msg, "writing the disk at 0"));
    f->below.status = 0;
    prepare(f, RESULT_WRITE);
    move_block(f, RESULT_WRITE, 0);
    f->below.status = -EIO;
    assert_int_equal(stamp_check(&f->s, RESULT_WRITE, f->arena, &f->verify, &f->err), -1);
    assert_non_null(strstr(f->err.msg, "reading the disk at 0"));
    assert_int_equal(f->verify.wrong_blocks, 0);
}

static void an_interrupt_leaves_the_disk_unknown(void **state)
{
    struct fixture *f = *state;
    volatile sig_atomic_t stop = 1;

    f->s.interrupted = &stop;
    prepare(f, RESULT_READ);
    assert_false(f->s.whole);
    stop = 0;
    prepare(f, RESULT_READ);
    assert_true(f->s.whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(m8_payload_is_pseudo_random_and_never_zeros, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(m8_an_engine_that_elides_what_it_writes_is_caught, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(m8_read_begins_with_a_disk_that_was_written, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(right_reads_have_no_finding_and_count_only_what_was_read,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_read_that_never_landed_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_read_from_elsewhere_is_called_misdirected, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(m7_a_lost_write_is_stale_with_both_generations, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(m7_a_flipped_bit_is_named_with_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_write_series_the_whole_disk_is_one_generation,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_mix_is_checked_on_both_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_fails_is_an_error_and_not_a_finding, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_interrupt_leaves_the_disk_unknown, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
