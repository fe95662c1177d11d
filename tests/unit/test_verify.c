/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues that give wrong data in one known way: the verifier finds it and names it rightly. */
#include "bench/verify_int.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SIZE = 8 << 20,
    BLOCK = 64 << 10,
    DEPTH = 8,
    QUEUE_DEPTH = 64,
    PAGE = 4096,
    ARENA = 4 << 20,
    SEED = 11,
    GENERATION = 5,
};

enum fault {
    CLEAN,
    STALE_WRITE,       /* acknowledged, not done */
    STALE_READ,        /* what was there before the last WRITE */
    MISDIRECTED_READ,  /* from the place beside */
    MISDIRECTED_WRITE, /* to the place beside */
    TORN_WRITE,        /* ends in the middle of a block */
    TORN_REQUEST,      /* the last block is not written */
    ZEROS,
    FLIP,
    LATER_PAGES, /* from the second page on another place's data */
    UNTOUCHED,   /* ends well, moves nothing */
    OVERRUN,     /* one byte more than asked */
    READ_ERROR,
    WRITE_ERROR,
    ANSWERS_EARLY, /* does at submission what it completes later: right */
};

struct memory_queue {
    struct lp_queue head;
    uint8_t *memory, *before; /* before: each block's content before its last WRITE */
    enum fault fault;
    unsigned every, seen;
    struct lp_request *waiting[QUEUE_DEPTH];
    unsigned count;
    struct rng rng; /* of the order of completion */
    volatile sig_atomic_t *stop;
    unsigned stop_after, done;
};

static void move(const struct lp_request *req, uint8_t *disk, uint64_t bytes)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < req->iovcnt && at < bytes; i++) {
        uint64_t n = req->iov[i].iov_len < bytes - at ? req->iov[i].iov_len : bytes - at;
        if (req->op == LP_WRITE)
            memcpy(disk + at, req->iov[i].iov_base, n);
        else
            memcpy(req->iov[i].iov_base, disk + at, n);
        at += n;
    }
}

static uint64_t beside(const struct lp_request *req)
{
    return req->offset + 2 * req->length <= SIZE ? req->offset + req->length
                                                 : req->offset - req->length;
}

static uint8_t *first_byte(const struct lp_request *req, uint64_t at)
{
    uint32_t i = 0;

    for (; at >= req->iov[i].iov_len; i++)
        at -= req->iov[i].iov_len;
    return (uint8_t *)req->iov[i].iov_base + at;
}

static void do_read(struct memory_queue *q, struct lp_request *req, enum fault fault)
{
    uint8_t *disk = q->memory + req->offset;

    if (fault == READ_ERROR)
        req->status = -EIO;
    if (fault == UNTOUCHED || fault == READ_ERROR)
        return;
    if (fault == STALE_READ)
        disk = q->before + req->offset;
    if (fault == MISDIRECTED_READ)
        disk = q->memory + beside(req);
    move(req, disk, req->length);
    if (fault == ZEROS)
        for (uint64_t i = 0; i < req->length; i++)
            *first_byte(req, i) = 0;
    if (fault == FLIP)
        *first_byte(req, req->length / 2 + 77) ^= 0x20;
    if (fault == LATER_PAGES)
        for (uint64_t i = PAGE; i < req->length; i++)
            *first_byte(req, i) = q->memory[beside(req) + i];
    if (fault == OVERRUN)
        ((uint8_t *)req->iov[0].iov_base)[-1] ^= 1;
}

static void do_write(struct memory_queue *q, struct lp_request *req, enum fault fault)
{
    uint64_t to = fault == MISDIRECTED_WRITE ? beside(req) : req->offset;

    if (fault == WRITE_ERROR)
        req->status = -EIO;
    if (fault == STALE_WRITE || fault == WRITE_ERROR)
        return;
    memcpy(q->before + to, q->memory + to, req->length);
    uint64_t bytes = req->length;
    if (fault == TORN_WRITE)
        bytes -= 301;
    if (fault == TORN_REQUEST && bytes >= 1024)
        bytes -= 512;
    move(req, q->memory + to, bytes);
}

static bool due(struct memory_queue *q, const struct lp_request *req)
{
    const bool of_write = q->fault == STALE_WRITE || q->fault == MISDIRECTED_WRITE ||
                          q->fault == TORN_WRITE || q->fault == TORN_REQUEST ||
                          q->fault == WRITE_ERROR;

    if (of_write != (req->op == LP_WRITE) || (q->fault == LATER_PAGES && req->length <= PAGE))
        return false;
    return ++q->seen % q->every == 0;
}

static void act(struct memory_queue *q, struct lp_request *req)
{
    enum fault fault = due(q, req) ? q->fault : CLEAN;

    req->status = 0;
    if (req->op == LP_READ)
        do_read(q, req, fault);
    else
        do_write(q, req, fault);
}

static int queue_submit(struct lp_queue *head, struct lp_request *req)
{
    struct memory_queue *q = (struct memory_queue *)head;

    if (q->count == head->limits.depth)
        return -EAGAIN;
    assert_true(req->offset + req->length <= SIZE);
    if (q->fault == ANSWERS_EARLY)
        act(q, req);
    q->waiting[q->count++] = req;
    return 0;
}

/* One, any of those that wait. */
static int queue_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct memory_queue *q = (struct memory_queue *)head;

    (void)wait_ns;
    if (q->count == 0)
        return 0;
    unsigned i = (unsigned)rng_below(&q->rng, q->count);
    struct lp_request *req = q->waiting[i];
    q->waiting[i] = q->waiting[--q->count];
    if (q->fault != ANSWERS_EARLY)
        act(q, req);
    if (q->stop && ++q->done == q->stop_after)
        *q->stop = 1;
    req->complete(req);
    return 1;
}

static const struct lp_queue_ops ops = {.submit = queue_submit, .poll = queue_poll};

struct bench {
    uint8_t *memory, *before, *arena;
    struct memory_queue path, below;
    struct pattern pattern;
    struct verify_report report;
    volatile sig_atomic_t stop;
};

static void start(struct bench *b, uint32_t unit, enum fault fault, unsigned every)
{
    const struct lp_limits limits = {.size = SIZE, .block_size = unit, .depth = QUEUE_DEPTH};

    memset(b, 0, sizeof *b);
    b->memory = calloc(1, SIZE);
    b->before = calloc(1, SIZE);
    b->arena = calloc(1, ARENA);
    b->pattern = (struct pattern){.seed = SEED, .unit = unit};
    b->path = (struct memory_queue){.head = {.ops = &ops, .limits = limits},
                                    .memory = b->memory,
                                    .before = b->before,
                                    .fault = fault,
                                    .every = every};
    b->below = b->path;
    b->below.fault = CLEAN;
}

static void end(struct bench *b)
{
    assert_int_equal(b->path.count, 0);
    free(b->memory);
    free(b->before);
    free(b->arena);
}

static int run_path(struct bench *b)
{
    struct lp_error err;

    return verify_path(&b->path.head, &b->below.head, b->arena, ARENA, &b->pattern, SIZE, BLOCK,
                       DEPTH, PAGE, GENERATION, &b->stop, &b->report, &err);
}

/* The finding of this kind; every finding must be of one of the two. */
static const struct verify_finding *find(const struct bench *b, enum pattern_fault kind,
                                         enum pattern_fault or)
{
    const struct verify_finding *found = NULL;

    for (unsigned i = 0; i < b->report.finding_count; i++) {
        const struct verify_finding *f = &b->report.findings[i];
        assert_true(f->data.fault == kind || f->data.fault == or);
        if (f->data.fault == kind && !found)
            found = f;
    }
    assert_non_null(found);
    return found;
}

static const struct verify_finding *path_finds(struct bench *b, enum fault fault, unsigned every,
                                               enum pattern_fault kind, enum pattern_fault or)
{
    start(b, 512, fault, every);
    assert_int_equal(run_path(b), 0);
    assert_true(b->report.wrong_blocks > 0);
    assert_int_equal(b->report.errors, 0);
    return find(b, kind, or);
}

/* ---- verify_path ---- */

static void a_clean_path_is_found_clean(void **state)
{
    static const enum fault right[] = {CLEAN, ANSWERS_EARLY};
    struct bench b;

    (void)state;
    for (int i = 0; i < 4; i++) {
        start(&b, i / 2 ? 4096 : 512, right[i % 2], 1);
        assert_int_equal(run_path(&b), 0);
        assert_int_equal(b.report.wrong_blocks, 0);
        assert_int_equal(b.report.finding_count, 0);
        assert_int_equal(b.report.errors, 0);
        assert_false(b.report.incomplete);
        assert_int_equal(b.report.bytes_written, 2 * SIZE);
        assert_int_equal(b.report.bytes_checked, 3 * SIZE); /* twice, and the disk itself */
        assert_int_equal(pattern_check(&b.pattern, b.memory, SIZE, 0, GENERATION + 1, NULL), 0);
        end(&b);
    }
}

static void buffers_lie_in_the_arena_and_fewer_when_it_is_small(void **state)
{
    struct bench b;
    struct lp_error err;

    (void)state;
    start(&b, 512, CLEAN, 1);
    memset(b.arena, 0xaa, ARENA);
    assert_int_equal(verify_path(&b.path.head, NULL, b.arena, 2 * BLOCK + 10, &b.pattern, SIZE,
                                 BLOCK, DEPTH, PAGE, 1, NULL, &b.report, &err),
                     0);
    assert_int_equal(b.report.wrong_blocks, 0);
    assert_int_not_equal(b.arena[0], 0xaa);
    assert_int_not_equal(b.arena[2 * BLOCK - 1], 0xaa);
    assert_int_equal(b.arena[2 * BLOCK], 0xaa);
    assert_int_equal(verify_path(&b.path.head, NULL, NULL, 0, &b.pattern, SIZE, BLOCK, DEPTH, PAGE,
                                 3, NULL, &b.report, &err),
                     0);
    assert_int_equal(b.report.wrong_blocks, 0);
    end(&b);
}

static void a_range_that_is_no_multiple_of_the_request_is_covered(void **state)
{
    struct bench b;
    struct lp_error err;
    const uint64_t bytes = SIZE - BLOCK - 3 * 512;

    (void)state;
    start(&b, 512, CLEAN, 1);
    assert_int_equal(verify_path(&b.path.head, &b.below.head, b.arena, ARENA, &b.pattern, bytes,
                                 BLOCK, DEPTH, PAGE, 1, NULL, &b.report, &err),
                     0);
    assert_int_equal(b.report.wrong_blocks, 0);
    assert_int_equal(b.report.bytes_checked, 3 * bytes);
    assert_int_equal(pattern_check(&b.pattern, b.memory, bytes, 0, 2, NULL), 0);
    for (uint64_t i = bytes; i < SIZE; i++)
        assert_int_equal(b.memory[i], 0);
    end(&b);
}

static void a_write_that_was_only_acknowledged_is_stale(void **state)
{
    struct bench b;

    (void)state;
    const struct verify_finding *f = path_finds(&b, STALE_WRITE, 150, PATTERN_STALE, PATTERN_ZEROS);
    assert_int_equal(f->data.expected_generation, GENERATION + 1);
    assert_int_equal(f->data.found_generation, GENERATION);
    end(&b);
}

static void what_was_read_before_the_last_write_is_stale(void **state)
{
    struct bench b;

    (void)state;
    path_finds(&b, STALE_READ, 100, PATTERN_STALE, PATTERN_ZEROS);
    end(&b);
}

static void a_read_from_the_place_beside_is_misdirected(void **state)
{
    struct bench b;

    (void)state;
    const struct verify_finding *f =
        path_finds(&b, MISDIRECTED_READ, 100, PATTERN_MISDIRECTED, PATTERN_MISDIRECTED);
    const struct lp_request like = {.offset = f->request_offset, .length = f->request_bytes};
    assert_int_equal(f->data.found_address - f->data.block_offset, beside(&like) - like.offset);
    assert_int_equal(f->wrong_from_page, 0);
    end(&b);
}

/* The place beside is misdirected, the right one stale or never written. */
static void a_write_to_the_place_beside_is_misdirected(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, MISDIRECTED_WRITE, 150);
    assert_int_equal(run_path(&b), 0);
    unsigned kinds = 0;
    for (unsigned i = 0; i < b.report.finding_count; i++)
        kinds |= 1u << b.report.findings[i].data.fault;
    assert_true(kinds & 1u << PATTERN_MISDIRECTED);
    assert_true(kinds & 1u << PATTERN_STALE);
    assert_int_equal(
        kinds & ~(1u << PATTERN_MISDIRECTED | 1u << PATTERN_STALE | 1u << PATTERN_ZEROS), 0);
    end(&b);
}

static void a_write_that_ends_within_a_block_is_torn(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, TORN_WRITE, 150);
    assert_int_equal(run_path(&b), 0);
    const struct verify_finding *f = find(&b, PATTERN_TORN, PATTERN_ZEROS);
    assert_false(f->torn_request);
    assert_int_equal(f->data.first_wrong, 512 - 301);
    assert_int_equal(f->data.found_address, f->data.block_offset);
    assert_int_equal(f->data.found_generation, GENERATION);
    end(&b);
}

static void a_write_of_which_only_some_blocks_arrived_is_torn(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, TORN_REQUEST, 50);
    pattern_fill(&b.pattern, b.memory, SIZE, 0, GENERATION - 1);
    assert_int_equal(run_path(&b), 0);
    const struct verify_finding *f = find(&b, PATTERN_TORN, PATTERN_STALE);
    assert_true(f->torn_request);
    assert_int_equal(f->data.found_address, f->data.block_offset);
    end(&b);
}

static void zeros_are_found(void **state)
{
    struct bench b;

    (void)state;
    path_finds(&b, ZEROS, 100, PATTERN_ZEROS, PATTERN_ZEROS);
    end(&b);
}

static void one_flipped_bit_is_found(void **state)
{
    struct bench b;

    (void)state;
    const struct verify_finding *f = path_finds(&b, FLIP, 400, PATTERN_BIT_FLIP, PATTERN_BIT_FLIP);
    assert_int_equal(f->data.wrong_bytes, 1);
    assert_int_equal(f->data.block_offset + f->data.first_wrong,
                     f->request_offset + f->request_bytes / 2 + 77);
    end(&b);
}

static void wrong_later_pages_are_found_from_the_second_on(void **state)
{
    struct bench b;

    (void)state;
    const struct verify_finding *f =
        path_finds(&b, LATER_PAGES, 50, PATTERN_MISDIRECTED, PATTERN_MISDIRECTED);
    assert_int_equal(f->wrong_from_page, 1);
    assert_int_equal(f->data.block_offset, f->request_offset + PAGE);
    end(&b);
}

static void a_read_that_moves_nothing_does_not_pass(void **state)
{
    struct bench b;

    (void)state;
    const struct verify_finding *f =
        path_finds(&b, UNTOUCHED, 100, PATTERN_FOREIGN, PATTERN_FOREIGN);
    assert_true(f->untouched);
    end(&b);
}

static void a_failed_write_ends_the_work_and_accuses_nobody(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, WRITE_ERROR, 40);
    assert_int_equal(run_path(&b), 0);
    assert_int_equal(b.report.errors, 1);
    assert_int_equal(b.report.wrong_blocks, 0);
    assert_true(b.report.incomplete);
    assert_non_null(strstr(b.report.phases, "WRITE of 65536 bytes at"));
    end(&b);
}

static void failed_reads_are_counted_until_it_is_enough(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, READ_ERROR, 1);
    assert_int_equal(run_path(&b), 0);
    assert_in_range(b.report.errors, 16, 16 + DEPTH);
    assert_int_equal(b.report.wrong_blocks, 0);
    assert_true(b.report.incomplete);
    end(&b);
}

static void an_interrupt_ends_it_soon(void **state)
{
    struct bench b;

    (void)state;
    for (unsigned after = 1; after < 800; after += 61) {
        start(&b, 512, CLEAN, 1);
        b.path.stop = &b.stop;
        b.path.stop_after = after;
        assert_int_equal(run_path(&b), 0);
        assert_true(b.report.incomplete);
        assert_true(b.report.requests < after + DEPTH);
        assert_int_equal(b.report.wrong_blocks, 0);
        end(&b);
    }
}

static void a_range_in_broken_blocks_is_refused(void **state)
{
    struct bench b;
    struct lp_error err = {0};

    (void)state;
    start(&b, 512, CLEAN, 1);
    assert_int_equal(verify_path(&b.path.head, NULL, b.arena, ARENA, &b.pattern, SIZE - 1, BLOCK,
                                 DEPTH, PAGE, 1, NULL, &b.report, &err),
                     -1);
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    assert_int_equal(b.report.requests, 0);
    end(&b);
}

/* ---- phases with their own shapes and orders ---- */

static void run_order(struct bench *b, enum verify_order order, bool odd)
{
    struct verify_log log = {.report = &b->report, .pattern = &b->pattern, .page_size = PAGE};
    struct verify_area area;
    struct lp_error err;

    assert_int_equal(verify_area_init(&area, &b->pattern, SIZE, 0, &err), 0);
    struct verify_work work = {.area = &area,
                               .log = &log,
                               .q = &b->path.head,
                               .arena = (char *)b->arena,
                               .arena_size = ARENA,
                               .order = VERIFY_WRITE_ALL,
                               .count = area.blocks,
                               .max_bytes = 256 << 10,
                               .depth = DEPTH,
                               .odd = odd,
                               .jobs = 1500,
                               .seed = SEED};
    verify_begin(&log, "writing");
    assert_int_equal(verify_work_run(&work, &err), 0);
    work.order = order;
    verify_begin(&log, "the order");
    assert_int_equal(verify_work_run(&work, &err), 0);
    work.order = VERIFY_READ_SIZES;
    verify_begin(&log, "reading back");
    assert_int_equal(verify_work_run(&work, &err), 0);
    verify_area_free(&area);
}

static void clean_queues_pass_in_every_order_and_shape(void **state)
{
    static const enum verify_order orders[] = {VERIFY_RANDOM, VERIFY_REWRITE};
    static const enum fault right[] = {CLEAN, ANSWERS_EARLY};
    struct bench b;

    (void)state;
    for (int i = 0; i < 8; i++) {
        start(&b, 512, right[i % 2], 1);
        run_order(&b, orders[i / 2 % 2], i / 4);
        assert_int_equal(b.report.errors, 0);
        assert_int_equal(b.report.wrong_blocks, 0);
        assert_true(b.report.bytes_checked > SIZE);
        end(&b);
    }
}

static void stale_data_is_found_even_while_it_is_rewritten(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, STALE_READ, 50);
    run_order(&b, VERIFY_REWRITE, false);
    find(&b, PATTERN_STALE, PATTERN_ZEROS);
    end(&b);
}

static void faults_are_named_the_same_in_odd_shapes(void **state)
{
    static const struct {
        enum fault fault;
        enum pattern_fault kind;
    } both[] = {{MISDIRECTED_READ, PATTERN_MISDIRECTED},
                {FLIP, PATTERN_BIT_FLIP},
                {ZEROS, PATTERN_ZEROS},
                {LATER_PAGES, PATTERN_MISDIRECTED},
                {STALE_READ, PATTERN_STALE},
                {UNTOUCHED, PATTERN_FOREIGN}};
    struct bench b;

    (void)state;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        start(&b, 512, both[i].fault, 50);
        run_order(&b, VERIFY_RANDOM, true);
        const struct verify_finding *f =
            find(&b, both[i].kind, both[i].fault == STALE_READ ? PATTERN_ZEROS : both[i].kind);
        assert_true(f->segments >= 1 && f->segments <= VERIFY_MAX_SEGMENTS);
        assert_int_equal(b.report.errors, 0);
        end(&b);
    }
}

static void a_read_that_writes_beside_its_segments_is_an_error(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, OVERRUN, 1);
    run_order(&b, VERIFY_RANDOM, true);
    assert_true(b.report.errors > 0);
    assert_non_null(strstr(b.report.phases, "beside its segments"));
    end(&b);
}

/* ---- reports ---- */

static void findings_are_counted_by_kind_and_phase(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512, ZEROS, 10);
    assert_int_equal(run_path(&b), 0);
    uint64_t sum = 0;
    for (unsigned i = 0; i < b.report.finding_count; i++)
        sum += b.report.findings[i].count;
    assert_int_equal(b.report.finding_count, 2); /* the stripes, and reading back */
    assert_int_equal(sum, b.report.wrong_blocks);
    struct verify_report twice = b.report;
    verify_merge(&twice, &b.report);
    assert_int_equal(twice.finding_count, 2);
    assert_int_equal(twice.wrong_blocks, 2 * sum);
    assert_int_equal(twice.findings[0].count, 2 * b.report.findings[0].count);
    end(&b);
}

static void a_finding_tells_a_driver_author_all_of_it(void **state)
{
    const struct verify_finding f = {
        .data = {.fault = PATTERN_MISDIRECTED,
                 .block_offset = 1060864,
                 .first_wrong = 3,
                 .wrong_bytes = 508,
                 .expected_generation = 2,
                 .found_generation = 2,
                 .found_address = 917504},
        .phase = "sequential, depth 32",
        .request_offset = 1048576,
        .request_bytes = 1048576,
        .depth = 32,
        .segments = 1,
        .wrong_from_page = 3,
        .count = 1311,
    };
    char text[512];

    (void)state;
    verify_finding_text(&f, PAGE, text, sizeof text);
    assert_string_equal(
        text, "misdirected: block at offset 1060864 holds the data of offset 917504, generation 2 "
              "as expected\n"
              "first wrong byte 12291 of the request, page 3 of it on (pages of 4096 bytes, from "
              "0); 508 bytes of the block are wrong\n"
              "request READ 1048576 bytes at 1048576 in 1 segment, depth 32, in phase "
              "\"sequential, depth 32\"; 1311 blocks like it");
}

static void every_kind_has_a_text_of_its_own(void **state)
{
    char last[512] = "", text[512];

    (void)state;
    for (int kind = PATTERN_STALE; kind <= PATTERN_FOREIGN; kind++) {
        const struct verify_finding f = {.data = {.fault = (enum pattern_fault)kind,
                                                  .expected_generation = 2,
                                                  .found_generation = 1},
                                         .phase = "p"};
        verify_finding_text(&f, PAGE, text, sizeof text);
        assert_non_null(strstr(text, pattern_fault_name(f.data.fault)));
        assert_string_not_equal(text, last);
        memcpy(last, text, sizeof last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_path_is_found_clean),
        cmocka_unit_test(buffers_lie_in_the_arena_and_fewer_when_it_is_small),
        cmocka_unit_test(a_range_that_is_no_multiple_of_the_request_is_covered),
        cmocka_unit_test(a_write_that_was_only_acknowledged_is_stale),
        cmocka_unit_test(what_was_read_before_the_last_write_is_stale),
        cmocka_unit_test(a_read_from_the_place_beside_is_misdirected),
        cmocka_unit_test(a_write_to_the_place_beside_is_misdirected),
        cmocka_unit_test(a_write_that_ends_within_a_block_is_torn),
        cmocka_unit_test(a_write_of_which_only_some_blocks_arrived_is_torn),
        cmocka_unit_test(zeros_are_found),
        cmocka_unit_test(one_flipped_bit_is_found),
        cmocka_unit_test(wrong_later_pages_are_found_from_the_second_on),
        cmocka_unit_test(a_read_that_moves_nothing_does_not_pass),
        cmocka_unit_test(a_failed_write_ends_the_work_and_accuses_nobody),
        cmocka_unit_test(failed_reads_are_counted_until_it_is_enough),
        cmocka_unit_test(an_interrupt_ends_it_soon),
        cmocka_unit_test(a_range_in_broken_blocks_is_refused),
        cmocka_unit_test(clean_queues_pass_in_every_order_and_shape),
        cmocka_unit_test(stale_data_is_found_even_while_it_is_rewritten),
        cmocka_unit_test(faults_are_named_the_same_in_odd_shapes),
        cmocka_unit_test(a_read_that_writes_beside_its_segments_is_an_error),
        cmocka_unit_test(findings_are_counted_by_kind_and_phase),
        cmocka_unit_test(a_finding_tells_a_driver_author_all_of_it),
        cmocka_unit_test(every_kind_has_a_text_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
