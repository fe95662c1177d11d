/* SPDX-License-Identifier: BSD-2-Clause */
/* The verifier's judgement of WRITE with FUA, WRITE_ZEROES and DISCARD, on queues that do one thing
 * wrong. */
#include "bench/verify_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { UNIT = 512, BLOCKS = 4096, SIZE = UNIT * BLOCKS };

enum way {
    ZEROED,      /* the range holds zeros */
    IGNORED,     /* answered, nothing done */
    TOO_FAR,     /* one block more than asked */
    TOO_SHORT,   /* one block less than asked */
    ONES,        /* every byte is 0xff */
    OTHERS_DATA, /* the data of another place */
};

struct eraser {
    struct lp_queue q;
    uint8_t *disk;
    enum way way;
    struct lp_request *waiting;
    uint64_t with_fua, without_fua; /* WRITEs */
    uint64_t erased;                /* requests */
};

static void erase(struct eraser *e, const struct lp_request *req)
{
    uint64_t length = req->length;

    e->erased++;
    if (e->way == TOO_FAR && req->offset + length < SIZE)
        length += UNIT;
    if (e->way == TOO_SHORT)
        length -= UNIT;
    if (e->way == OTHERS_DATA)
        memcpy(e->disk + req->offset, e->disk + (req->offset < SIZE / 2 ? SIZE / 2 : 0),
               length < SIZE / 2 ? length : SIZE / 2);
    else if (e->way != IGNORED)
        memset(e->disk + req->offset, e->way == ONES ? 0xff : 0, length);
}

static int submit(struct lp_queue *q, struct lp_request *req)
{
    struct eraser *e = (struct eraser *)q;
    uint8_t *at = e->disk + req->offset;

    for (uint32_t i = 0; i < req->iovcnt; at += req->iov[i++].iov_len) {
        if (req->op == LP_READ)
            memcpy(req->iov[i].iov_base, at, req->iov[i].iov_len);
        else
            memcpy(at, req->iov[i].iov_base, req->iov[i].iov_len);
    }
    if (req->op == LP_WRITE)
        *(req->flags & LP_FUA ? &e->with_fua : &e->without_fua) += 1;
    else if (req->op != LP_READ)
        erase(e, req);
    req->status = 0;
    req->next = e->waiting;
    e->waiting = req;
    return 0;
}

static int poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct eraser *e = (struct eraser *)q;
    struct lp_request *req = e->waiting;
    int n = 0;

    (void)wait_ns;
    for (e->waiting = NULL; req; n++) {
        struct lp_request *next = req->next;
        req->complete(req);
        req = next;
    }
    return n;
}

static const struct lp_queue_ops ops = {.submit = submit, .poll = poll};

struct test {
    struct eraser e;
    struct pattern pattern;
    struct verify_report report;
    struct verify_log log;
    struct verify_area area;
};

static void do_work(struct test *t, enum verify_order order, enum lp_op op, uint32_t flags)
{
    struct lp_error err;
    const struct verify_work work = {.area = &t->area,
                                     .log = &t->log,
                                     .q = &t->e.q,
                                     .order = order,
                                     .op = op,
                                     .flags = flags,
                                     .count = t->area.blocks,
                                     .max_bytes = 64 << 10,
                                     .depth = 4,
                                     .seed = 7};

    assert_int_equal(verify_work_run(&work, &err), 0);
}

/* All is written, some of it erased, and all read. */
static void start(struct test *t, enum way way, enum lp_op op)
{
    struct lp_error err;

    memset(t, 0, sizeof *t);
    t->pattern = (struct pattern){.seed = 3, .unit = UNIT};
    t->e = (struct eraser){.q = {.ops = &ops, .limits = {.size = SIZE, .block_size = UNIT}},
                           .disk = calloc(1, SIZE),
                           .way = way};
    assert_non_null(t->e.disk);
    t->log = (struct verify_log){
        .report = &t->report, .pattern = &t->pattern, .page_size = 4096, .phase = "test"};
    assert_int_equal(verify_area_init(&t->area, &t->pattern, SIZE, 0, &err), 0);
    do_work(t, VERIFY_WRITE_ALL, LP_WRITE, 0);
    do_work(t, VERIFY_SOME, op, 0);
    do_work(t, VERIFY_READ_SIZES, LP_READ, 0);
    assert_int_equal(t->report.errors, 0);
}

static void end(struct test *t)
{
    verify_area_free(&t->area);
    free(t->e.disk);
}

/* The only finding is of that kind; its text has this part. */
static void expect(struct test *t, enum pattern_fault fault, enum verify_wanted wanted,
                   const char *part)
{
    char text[512];

    assert_true(t->report.wrong_blocks > 0);
    assert_int_equal(t->report.finding_count, 1);
    assert_int_equal(t->report.findings[0].data.fault, fault);
    assert_int_equal(t->report.findings[0].wanted, wanted);
    verify_finding_text(&t->report.findings[0], 4096, text, sizeof text);
    if (!strstr(text, part))
        fail_msg("not \"%s\" in: %s", part, text);
    end(t);
}

static void what_was_erased_rightly_passes_and_takes_data_again(void **state)
{
    static const struct {
        enum lp_op op;
        enum way way;
    } right[] = {{LP_WRITE_ZEROES, ZEROED},
                 {LP_DISCARD, ZEROED},
                 {LP_DISCARD, IGNORED},
                 {LP_DISCARD, TOO_SHORT},
                 {LP_DISCARD, ONES}};
    struct test t;

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        start(&t, right[i].way, right[i].op);
        assert_true(t.e.erased > 8);
        assert_int_equal(t.report.wrong_blocks, 0);
        assert_int_equal(t.report.bytes_checked, SIZE);
        do_work(&t, VERIFY_WRITE_ALL, LP_WRITE, 0);
        do_work(&t, VERIFY_READ_ALL, LP_READ, 0);
        assert_int_equal(t.report.wrong_blocks, 0);
        end(&t);
    }
}

static void zeroes_that_were_not_written_are_found(void **state)
{
    struct test t;

    (void)state;
    start(&t, IGNORED, LP_WRITE_ZEROES);
    expect(&t, PATTERN_STALE, VERIFY_ZEROS, "after it was zeroed");
    start(&t, TOO_SHORT, LP_WRITE_ZEROES);
    assert_int_equal(t.report.wrong_blocks, t.e.erased);
    expect(&t, PATTERN_STALE, VERIFY_ZEROS, "after it was zeroed");
    start(&t, ONES, LP_WRITE_ZEROES);
    expect(&t, PATTERN_FOREIGN, VERIFY_ZEROS, "holds what was never written there");
}

static void erasing_a_block_too_many_is_found(void **state)
{
    static const enum lp_op both[] = {LP_WRITE_ZEROES, LP_DISCARD};
    struct test t;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        start(&t, TOO_FAR, both[i]);
        assert_true(t.report.wrong_blocks <= t.e.erased);
        expect(&t, PATTERN_ZEROS, VERIFY_DATA, "holds zeros");
    }
}

static void a_discarded_range_never_brings_the_data_of_another_place(void **state)
{
    struct test t;

    (void)state;
    start(&t, OTHERS_DATA, LP_DISCARD);
    expect(&t, PATTERN_MISDIRECTED, VERIFY_ERASED, "after it was discarded");
}

static void fua_is_asked_for_and_its_data_is_checked(void **state)
{
    struct test t;

    (void)state;
    start(&t, ZEROED, LP_WRITE_ZEROES);
    uint64_t before = t.e.without_fua;
    do_work(&t, VERIFY_SOME, LP_WRITE, LP_FUA);
    do_work(&t, VERIFY_READ_ALL, LP_READ, 0);
    assert_true(t.e.with_fua > 8);
    assert_int_equal(t.e.without_fua, before);
    assert_int_equal(t.report.wrong_blocks, 0);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_erased_rightly_passes_and_takes_data_again),
        cmocka_unit_test(zeroes_that_were_not_written_are_found),
        cmocka_unit_test(erasing_a_block_too_many_is_found),
        cmocka_unit_test(a_discarded_range_never_brings_the_data_of_another_place),
        cmocka_unit_test(fua_is_asked_for_and_its_data_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
