/* SPDX-License-Identifier: BSD-2-Clause */
/* The task set: order, unit attentions, aborts and resets. */
#include "base/rng.h"
#include "lu_rig.h"

#include <stdio.h>

enum { BLOCKS = 2048, SIZE = BLOCKS * 512, MANY = 12 };

struct io {
    struct rig_task t;
    uint8_t data[8 * 512];
};

/* A READ or WRITE of n blocks, submitted. */
static void start(struct rig *rig, struct io *io, unsigned nexus, bool write, uint64_t lba,
                  uint32_t n, enum lu_attribute attribute)
{
    uint8_t cdb[SCSI_CDB_MAX];
    size_t size = scsi_cdb_read_write(write, lba, n, 0, cdb);

    rig_task(&io->t, rig->nexus[nexus], cdb, size);
    io->t.task.attribute = attribute;
    rig_prepare(&io->t, UINT64_MAX);
    rig_data(&io->t, io->data, io->t.task.refused ? 0 : n * 512);
    lu_task_submit(&io->t.task);
    lu_check_invariants(rig->lu);
}

static bool at_disk(const struct rig *rig, const struct io *io)
{
    for (unsigned i = 0; i < rig->disk.held_count; i++)
        if (rig->disk.held[i] == &io->t.task.request)
            return true;
    return false;
}

/* [S-23] */
static void ordered_tasks_wait_for_older_and_hold_younger_ones(void **state)
{
    struct rig rig;
    struct io io[5];

    (void)state;
    rig_open(&rig, SIZE);
    rig.disk.hold = true;
    start(&rig, &io[0], 0, false, 0, 1, LU_SIMPLE);
    start(&rig, &io[1], 0, false, 10, 1, LU_SIMPLE);
    start(&rig, &io[2], 0, false, 20, 1, LU_ORDERED);
    start(&rig, &io[3], 0, false, 30, 1, LU_SIMPLE);
    start(&rig, &io[4], 1, false, 40, 1, LU_SIMPLE); /* another nexus: its own task set */
    assert_true(at_disk(&rig, &io[0]) && at_disk(&rig, &io[1]) && at_disk(&rig, &io[4]));
    assert_false(at_disk(&rig, &io[2]) || at_disk(&rig, &io[3]));
    rig_let_go(&rig);
    assert_true(at_disk(&rig, &io[2]));
    assert_false(at_disk(&rig, &io[3]));
    rig_let_go(&rig);
    assert_true(at_disk(&rig, &io[3]));
    rig_let_go(&rig);
    for (unsigned i = 0; i < 5; i++)
        is_status(&io[i].t.task, SCSI_GOOD);
    rig_end(&rig);
}

/* [S-23] */
static void an_ordered_task_waits_for_one_that_has_no_data_yet(void **state)
{
    struct rig rig;
    struct rig_task waiting;
    struct io io[2];
    uint8_t cdb[SCSI_CDB_MAX];
    size_t n = scsi_cdb_read_write(true, 0, 1, 0, cdb);

    (void)state;
    rig_open(&rig, SIZE);
    rig_task(&waiting, rig.nexus[0], cdb, n);
    rig_prepare(&waiting, 512); /* its data is still under way */
    start(&rig, &io[0], 0, false, 20, 1, LU_ORDERED);
    start(&rig, &io[1], 1, false, 20, 1, LU_ORDERED);
    rig_let_go(&rig);
    assert_int_equal(io[0].t.done, 0);
    assert_int_equal(io[1].t.done, 1);
    rig_submit_task(&rig, &waiting);
    rig_let_go(&rig);
    rig_let_go(&rig);
    assert_int_equal(waiting.done, 1);
    assert_int_equal(io[0].t.done, 1);
    rig_end(&rig);
}

/* [S-23] */
static void head_of_queue_goes_before_what_waits(void **state)
{
    struct rig rig;
    struct io io[4];

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.shared_task_set = true;
    rig_start(&rig);
    rig.disk.hold = true;
    start(&rig, &io[0], 0, false, 0, 1, LU_SIMPLE);
    start(&rig, &io[1], 0, false, 10, 1, LU_ORDERED);
    start(&rig, &io[2], 1, false, 20, 1, LU_HEAD_OF_QUEUE);
    start(&rig, &io[3], 1, false, 30, 1, LU_SIMPLE);
    assert_true(at_disk(&rig, &io[0]) && at_disk(&rig, &io[2]));
    assert_false(at_disk(&rig, &io[1]) || at_disk(&rig, &io[3]));
    for (unsigned i = 0; i < 4; i++)
        rig_let_go(&rig);
    for (unsigned i = 0; i < 4; i++)
        is_status(&io[i].t.task, SCSI_GOOD);
    rig_end(&rig);
}

/* [S-23] */
static void the_aca_attribute_is_refused(void **state)
{
    struct rig rig;
    struct io io;

    (void)state;
    rig_open(&rig, SIZE);
    start(&rig, &io, 0, false, 0, 1, LU_ACA);
    is_illegal(&io.t.task, SCSI_ASC_INVALID_MESSAGE);
    rig_end(&rig);
}

/* [S-23] */
static void overlapping_tasks_run_in_the_order_they_were_submitted(void **state)
{
    static const struct {
        bool write;
        uint64_t lba;
        uint32_t n;
        unsigned round; /* in which it goes to the disk */
    } cases[MANY] = {
        {true, 100, 8, 0},           {false, 100, 1, 1}, {false, 104, 8, 1}, {false, 108, 1, 0},
        {true, 107, 2, 2},           {true, 99, 1, 0},   {false, 99, 2, 1},  {false, 108, 2, 3},
        {true, 4000 % BLOCKS, 1, 0}, {false, 109, 1, 0}, {true, 108, 1, 4},  {false, 500, 8, 0},
    };
    struct rig rig;
    struct io io[MANY];

    (void)state;
    rig_open(&rig, SIZE);
    rig.disk.hold = true;
    for (unsigned i = 0; i < MANY; i++)
        start(&rig, &io[i], i % 2, cases[i].write, cases[i].lba, cases[i].n, LU_SIMPLE);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < MANY; i++)
            if (at_disk(&rig, &io[i]) != (cases[i].round == round))
                fail_msg("task %u, round %u", i, round);
        rig_let_go(&rig);
    }
    for (unsigned i = 0; i < MANY; i++)
        is_status(&io[i].t.task, SCSI_GOOD);
    rig_end(&rig);
}

/* [S-22] */
static void a_full_task_set_says_so_but_never_to_an_idle_nexus(void **state)
{
    struct rig rig;
    struct io io[8];

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.depth = 4;
    rig_start(&rig);
    rig.disk.hold = true;
    for (unsigned i = 0; i < 6; i++)
        start(&rig, &io[i], 0, false, i * 8, 1, LU_SIMPLE);
    start(&rig, &io[6], 1, false, 64, 1, LU_SIMPLE);
    start(&rig, &io[7], 1, false, 72, 1, LU_SIMPLE);
    is_status(&io[4].t.task, SCSI_TASK_SET_FULL);
    is_status(&io[5].t.task, SCSI_TASK_SET_FULL);
    is_status(&io[7].t.task, SCSI_TASK_SET_FULL);
    for (unsigned i = 0; i < 3; i++)
        rig_let_go(&rig);
    for (unsigned i = 0; i < 4; i++)
        is_status(&io[i].t.task, SCSI_GOOD);
    is_status(&io[6].t.task, SCSI_GOOD);
    start(&rig, &io[4], 0, false, 0, 1, LU_SIMPLE);
    rig_let_go(&rig);
    is_status(&io[4].t.task, SCSI_GOOD);
    rig_end(&rig);
}

/* [S-21] */
static void unit_attentions_are_told_once_to_each_by_precedence(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    lu_ua(rig.lu, NULL, SCSI_ASC_CAPACITY_CHANGED);
    lu_ua(rig.lu, rig.nexus[1], SCSI_ASC_REPORTED_LUNS_CHANGED);
    lu_ua(rig.lu, NULL, SCSI_ASC_CAPACITY_CHANGED); /* once is enough */
    lu_nexus_ua(rig.nexus[0], SCSI_ASC_NEXUS_LOSS);
    lu_nexus_ua(rig.nexus[0], SCSI_ASC_DEVICE_RESET); /* says all that a nexus loss does */
    assert_int_equal(lu_query_ua(rig.nexus[0]), SCSI_ASC_DEVICE_RESET);
    GOOD(&rig, 0, SCSI_CMD_INQUIRY, .length = 96); /* passes, and takes nothing */
    CHECK(&rig, 0, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_DEVICE_RESET, SCSI_CMD_TEST_UNIT_READY);
    CHECK(&rig, 0, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_CAPACITY_CHANGED, SCSI_CMD_READ_10,
          .length = 1);
    assert_int_equal(rig.disk.traced, 0);
    GOOD(&rig, 0, SCSI_CMD_REPORT_LUNS, .length = 24); /* this tells the rest */
    GOOD(&rig, 0, SCSI_CMD_TEST_UNIT_READY);
    CHECK(&rig, 1, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_CAPACITY_CHANGED, SCSI_CMD_TEST_UNIT_READY);
    GOOD(&rig, 1, SCSI_CMD_TEST_UNIT_READY);
    /* A nexus loss. */
    lu_nexus_loss(rig.nexus[1]);
    CHECK(&rig, 1, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_NEXUS_LOSS, SCSI_CMD_TEST_UNIT_READY);
    /* Even an unknown command tells it first. */
    lu_nexus_ua(rig.nexus[1], 0x477f);
    is_check(rig_run_cdb(&rig, 1, (const uint8_t[6]){0xff}, 6), SCSI_KEY_UNIT_ATTENTION, 0x477f);
    for (uint16_t asc = 1; asc < 100; asc++) /* more than fit */
        lu_nexus_ua(rig.nexus[1], asc);
    lu_check_invariants(rig.lu);
    lu_reset(rig.lu, NULL);
    CHECK(&rig, 1, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_DEVICE_RESET, SCSI_CMD_TEST_UNIT_READY);
    rig_end(&rig);
}

static void aborted(const struct io *io, uint8_t status)
{
    assert_int_equal(io->t.done, 1);
    assert_true(io->t.task.aborted);
    assert_int_equal(io->t.task.status, status);
    assert_int_equal(io->t.task.sense_length, 0);
}

/* [S-49] [T-TMF-01] */
static void an_aborted_task_ends_once_wherever_it_is(void **state)
{
    struct rig rig;
    struct io io[4];
    struct rig_task entered, big;
    uint8_t cdb[SCSI_CDB_MAX];

    (void)state;
    rig_open(&rig, SIZE);
    rig.disk.hold = true;
    size_t n = scsi_cdb_read_write(true, 300, 1, 0, cdb);
    rig_task(&entered, rig.nexus[0], cdb, n);
    entered.task.tag = 77;
    rig_prepare(&entered, 512);
    start(&rig, &io[0], 0, true, 0, 4, LU_SIMPLE);  /* at the disk */
    start(&rig, &io[1], 0, false, 0, 4, LU_SIMPLE); /* waits for the first */
    n = scsi_cdb_build(&(struct scsi_cdb){.command = SCSI_CMD_VERIFY_10, .lba = 600, .length = 1},
                       cdb);
    rig_task(&big, rig.nexus[0], cdb, n); /* has the scratch memory */
    rig_prepare(&big, 0);
    lu_task_submit(&big.task);
    rig_task(&io[2].t, rig.nexus[0], cdb, n); /* waits for it */
    rig_prepare(&io[2].t, 0);
    lu_task_submit(&io[2].t.task);
    assert_ptr_equal(lu_task_find(rig.nexus[0], 77), &entered.task);
    assert_null(lu_task_find(rig.nexus[1], 77));
    assert_true(lu_task_abort(&entered.task));
    assert_int_equal(entered.done, 1);
    assert_null(lu_task_find(rig.nexus[0], 77));
    assert_false(lu_task_abort(&entered.task));
    assert_true(lu_task_abort(&io[1].t.task));
    aborted(&io[1], SCSI_GOOD);
    assert_true(lu_task_abort(&io[2].t.task));
    aborted(&io[2], SCSI_GOOD);
    assert_true(lu_task_abort(&io[0].t.task));
    assert_int_equal(io[0].t.done, 0); /* the disk has its memory still */
    assert_true(lu_task_abort(&big.task));
    rig_let_go(&rig);
    aborted(&io[0], SCSI_GOOD);
    assert_int_equal(big.done, 1);
    assert_int_equal(lu_tasks(rig.lu), 0);
    rig.disk.hold = false;
    GOOD(&rig, 0, SCSI_CMD_VERIFY_10, .length = 4); /* scratch memory is free again */
    rig_end(&rig);
}

/* [S-49] [T-TMF-03] */
static void abort_task_set_ends_the_tasks_of_its_nexus_only(void **state)
{
    struct rig rig;
    struct io io[5];

    (void)state;
    rig_open(&rig, SIZE);
    rig.disk.hold = true;
    for (unsigned i = 0; i < 4; i++)
        start(&rig, &io[i], i % 2, true, i * 16, 1, LU_SIMPLE);
    assert_int_equal(lu_abort_set(rig.nexus[0]), 2);
    start(&rig, &io[4], 0, true, 100, 1, LU_SIMPLE); /* later ones live on */
    rig_let_go(&rig);
    aborted(&io[0], SCSI_GOOD);
    aborted(&io[2], SCSI_GOOD);
    is_status(&io[1].t.task, SCSI_GOOD);
    is_status(&io[3].t.task, SCSI_GOOD);
    is_status(&io[4].t.task, SCSI_GOOD);
    assert_int_equal(lu_query_ua(rig.nexus[1]), 0);
    rig_end(&rig);
}

/* [S-21] [S-22] */
static void clear_task_set_tells_the_others(void **state)
{
    struct rig rig;
    struct io io[2];

    (void)state;
    for (unsigned tas = 0; tas < 2; tas++) {
        rig_init(&rig, SIZE);
        rig.opts.shared_task_set = true;
        rig.opts.task_aborted_status = tas;
        rig_start(&rig);
        rig.disk.hold = true;
        start(&rig, &io[0], 0, true, 0, 1, LU_SIMPLE);
        start(&rig, &io[1], 1, true, 8, 1, LU_SIMPLE);
        assert_int_equal(lu_clear_set(rig.nexus[0]), 2);
        rig_let_go(&rig);
        aborted(&io[0], SCSI_GOOD);
        aborted(&io[1], tas ? SCSI_TASK_ABORTED : SCSI_GOOD);
        assert_int_equal(lu_query_ua(rig.nexus[0]), 0);
        assert_int_equal(lu_query_ua(rig.nexus[1]), tas ? 0 : SCSI_ASC_COMMANDS_CLEARED_BY_ANOTHER);
        rig_end(&rig);
    }
}

/* [S-49] [T-TMF-05] */
static void a_reset_clears_what_the_standard_lists(void **state)
{
    struct rig rig;
    struct io io[2];

    (void)state;
    rig_open(&rig, SIZE);
    /* SWP on, stopped and started, a task of each nexus, a persistent registration. */
    memset(rig.out, 0, 24);
    store_be64(rig.out + 8, 0xabc);
    GOOD(&rig, 1, SCSI_CMD_PR_REGISTER, .length = 24);
    memset(rig.out, 0, 20);
    GOOD(&rig, 0, SCSI_CMD_MODE_SENSE_10, .length = 252, .flags = SCSI_CDB_DBD, .byte2 = 0x0a);
    memcpy(rig.out + 8, rig.in + 8, 12);
    rig.out[8 + 4] = 8;
    GOOD(&rig, 0, SCSI_CMD_MODE_SELECT_10, .length = 20, .flags = SCSI_CDB_PF);
    GOOD(&rig, 0, SCSI_CMD_START_STOP_UNIT);
    GOOD(&rig, 0, SCSI_CMD_START_STOP_UNIT, .byte4 = 1);
    CHECK(&rig, 1, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_MODE_PARAMETERS_CHANGED,
          SCSI_CMD_TEST_UNIT_READY);
    rig.disk.hold = true;
    start(&rig, &io[0], 0, false, 0, 1, LU_SIMPLE);
    start(&rig, &io[1], 1, false, 8, 1, LU_SIMPLE);
    assert_int_equal(lu_reset(rig.lu, rig.nexus[0]), 2);
    rig_let_go(&rig);
    aborted(&io[0], SCSI_GOOD);
    aborted(&io[1], SCSI_GOOD);
    rig.disk.hold = false;
    for (unsigned i = 0; i < 2; i++) {
        CHECK(&rig, i, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_DEVICE_RESET, SCSI_CMD_TEST_UNIT_READY);
        GOOD(&rig, i, SCSI_CMD_WRITE_10, .length = 1); /* SWP is at its default again */
    }
    GOOD(&rig, 0, SCSI_CMD_PR_READ_KEYS, .length = 16);
    assert_int_equal(load_be64(rig.in + 8), 0xabc); /* stays */
    rig_end(&rig);
}

struct chain {
    struct rig *rig;
    struct rig_task t;
    unsigned left;
};

static void chain_next(struct lu_task *task)
{
    struct chain *c = task->user;

    is_status(task, SCSI_GOOD);
    c->t.done++;
    if (c->left-- == 0)
        return;
    lu_task_init(task, c->rig->nexus[0], chain_next);
    task->user = c;
    task->cdb_size = 6;
    lu_task_prepare(task);
    lu_task_submit(task);
}

static void tasks_that_submit_the_next_one_do_not_use_up_the_stack(void **state)
{
    struct rig rig;
    struct chain c = {.rig = &rig, .left = 1000000};

    (void)state;
    rig_open(&rig, SIZE);
    lu_task_init(&c.t.task, rig.nexus[0], chain_next);
    c.t.task.user = &c;
    c.t.task.cdb_size = 6;
    lu_task_prepare(&c.t.task);
    lu_task_submit(&c.t.task);
    assert_int_equal(c.t.done, 1000001);
    rig_end(&rig);
}

/* [S-23] [S-49] */
static void random_tasks_and_aborts_keep_the_lists_right(void **state)
{
    enum { TASKS = 24, STEPS = 20000 };
    struct rig rig;
    struct rng rng = {0x5eed};
    struct io *io = calloc(TASKS, sizeof *io);

    (void)state;
    assert_non_null(io);
    printf("# seed 0x%llx\n", (unsigned long long)rng.state);
    rig_open(&rig, SIZE);
    rig.disk.hold = true;
    for (unsigned i = 0; i < TASKS; i++)
        io[i].t.done = 1;
    for (unsigned step = 0; step < STEPS; step++) {
        struct io *one = &io[rng_below(&rng, TASKS)];
        unsigned what = (unsigned)rng_below(&rng, 20);
        if (what < 12 && one->t.done == 1)
            start(&rig, one, (unsigned)rng_below(&rng, 2), rng_below(&rng, 2), rng_below(&rng, 40),
                  1 + (uint32_t)rng_below(&rng, 8),
                  (enum lu_attribute)(rng_below(&rng, 8) ? 0 : rng_below(&rng, 4)));
        else if (what < 14 && one->t.done == 0)
            lu_task_abort(&one->t.task);
        else if (what == 14)
            lu_abort_set(rig.nexus[rng_below(&rng, 2)]);
        else if (what == 15 && rng_below(&rng, 8) == 0)
            lu_reset(rig.lu, rig.nexus[0]);
        else
            rig_let_go(&rig);
        lu_check_invariants(rig.lu);
    }
    for (unsigned i = 0; i < TASKS && lu_tasks(rig.lu) > 0; i++)
        rig_let_go(&rig);
    for (unsigned i = 0; i < TASKS; i++)
        assert_int_equal(io[i].t.done, 1);
    assert_int_equal(lu_tasks(rig.lu), 0);
    rig_end(&rig);
    free(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordered_tasks_wait_for_older_and_hold_younger_ones),
        cmocka_unit_test(an_ordered_task_waits_for_one_that_has_no_data_yet),
        cmocka_unit_test(head_of_queue_goes_before_what_waits),
        cmocka_unit_test(the_aca_attribute_is_refused),
        cmocka_unit_test(overlapping_tasks_run_in_the_order_they_were_submitted),
        cmocka_unit_test(a_full_task_set_says_so_but_never_to_an_idle_nexus),
        cmocka_unit_test(unit_attentions_are_told_once_to_each_by_precedence),
        cmocka_unit_test(an_aborted_task_ends_once_wherever_it_is),
        cmocka_unit_test(abort_task_set_ends_the_tasks_of_its_nexus_only),
        cmocka_unit_test(clear_task_set_tells_the_others),
        cmocka_unit_test(a_reset_clears_what_the_standard_lists),
        cmocka_unit_test(tasks_that_submit_the_next_one_do_not_use_up_the_stack),
        cmocka_unit_test(random_tasks_and_aborts_keep_the_lists_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
