/* SPDX-License-Identifier: BSD-2-Clause */
/* ErrorRecoveryLevel 1: what is lost on a connection is asked for again. */
#include "ini_rig.h"

#include <string.h>

enum { LENGTH = 4096, PART = 512, PARTS = LENGTH / PART };

static struct peer *level_1(struct rig *r)
{
    r->opts.login.wishes.params.error_recovery_level = 2; /* offered as 1: no more is there */
    r->answers.error_recovery_level = 1;
    r->answers.max_outstanding_r2t = 1;
    r->answers.header_digest = r->answers.data_digest = true;
    rig_login(r);
    assert_int_equal(ini_session_params(r->s)->error_recovery_level, 1);
    return &r->peers[0];
}

static uint32_t begin(struct rig *r, struct io *io, enum ini_direction direction, uint32_t length)
{
    struct wire_pdu got;

    io_init(io, direction, length);
    io_start(r, io);
    return peer_expect_command(&r->peers[0], &got).itt;
}

static void expect_snack(struct peer *p, uint8_t type, uint32_t itt, uint32_t ttt, uint32_t beg,
                         uint32_t run)
{
    struct wire_pdu got;
    struct iscsi_snack snack;

    peer_expect(p, ISCSI_SNACK, &got);
    iscsi_snack_unpack(got.bhs, &snack);
    assert_int_equal(snack.type, type);
    assert_int_equal(snack.itt, itt);
    assert_int_equal(snack.ttt, ttt);
    assert_int_equal(snack.beg_run, beg);
    assert_int_equal(snack.run_length, run);
}

static void give(struct peer *p, uint32_t itt, uint32_t sn, bool acknowledge)
{
    uint8_t data[PART];

    io_fill(data, sn * PART, PART);
    peer_data_in(p,
                 (struct iscsi_data_in){.final = sn == PARTS - 1,
                                        .acknowledge = acknowledge,
                                        .lun = 0x0001000000000000,
                                        .itt = itt,
                                        .ttt = acknowledge ? 0x50 + sn : ISCSI_TAG_NONE,
                                        .data_sn = sn,
                                        .buffer_offset = sn * PART,
                                        PEER_NUMBERS(p, false)},
                 data, PART);
}

static void respond(struct peer *p, uint32_t itt, uint32_t stat_sn)
{
    struct iscsi_scsi_response pdu = {.itt = itt, .exp_data_sn = PARTS, PEER_NUMBERS(p, false)};

    pdu.stat_sn = stat_sn;
    peer_respond(p, pdu, NULL, 0);
}

static void expect_read(struct io *io)
{
    assert_int_equal(io->done, 1);
    assert_int_equal(io->task.result, INI_OK);
    assert_true(io_has_pattern(io, 0, LENGTH));
    io_end(io, 1);
}

static uint32_t expect_acknowledged(struct rig *r, uint32_t exp_stat_sn)
{
    struct wire_pdu got;
    struct iscsi_nop_out nop;

    ini_conn_acknowledge(r->peers[0].c);
    peer_expect(&r->peers[0], ISCSI_NOP_OUT, &got);
    iscsi_nop_out_unpack(got.bhs, &nop);
    assert_int_equal(nop.exp_stat_sn, exp_stat_sn);
    return nop.exp_stat_sn;
}

/* [I-ERR-07] [I-IN-03] */
SCRIPT(lost_data_in_is_asked_for_and_the_status_waits_for_it)
{
    struct io io;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_READ, LENGTH), stat_sn = p->stat_sn++;

    for (uint32_t sn = 0; sn < PARTS; sn++)
        if (sn != 3)
            give(p, itt, sn, false);
    respond(p, itt, stat_sn);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 3, 1);
    peer_expect_silence(p);
    assert_int_equal(io.done, 0);
    expect_acknowledged(r, stat_sn); /* not its status before its data */
    give(p, itt, 3, false);
    peer_pump(p);
    expect_read(&io);
    expect_acknowledged(r, stat_sn + 1);
}

/* [I-ERR-07] */
SCRIPT(lost_data_at_the_end_are_noticed_by_the_response)
{
    struct io io;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_READ, LENGTH);

    for (uint32_t sn = 0; sn < PARTS - 2; sn++)
        give(p, itt, sn, false);
    respond(p, itt, p->stat_sn++);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, PARTS - 2, 2);
    give(p, itt, PARTS - 2, false);
    peer_pump(p);
    assert_int_equal(io.done, 0);
    give(p, itt, PARTS - 1, false);
    give(p, itt, PARTS - 1, false); /* once too often */
    peer_pump(p);
    expect_read(&io);
}

/* [I-ERR-02] */
SCRIPT(data_in_with_a_wrong_digest_is_asked_for_again)
{
    struct io io;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_READ, LENGTH);

    for (uint32_t sn = 0; sn < PARTS; sn++) {
        p->w.flip_data = sn == 2;
        give(p, itt, sn, false);
    }
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 2, 1);
    peer_expect_silence(p);
    p->w.flip_data = true;
    give(p, itt, 2, false);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 2, 1);
    give(p, itt, 2, false);
    respond(p, itt, p->stat_sn++);
    peer_pump(p);
    expect_read(&io);
    assert_int_equal(ini_session_counters(r->s)->digest_errors, 2);
    assert_int_equal(rig_events(r, INI_EVENT_CONN_CLOSE), 0);
}

/* Status in a Data-In that is spoilt comes with it again. */
/* [I-ERR-02] [I-ERR-03] */
SCRIPT(status_in_data_in_with_a_wrong_digest_is_not_taken)
{
    struct io io;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_READ, PART), stat_sn = p->stat_sn++;
    uint8_t data[PART];

    io_fill(data, 0, PART);
    for (unsigned i = 0; i < 2; i++) {
        struct iscsi_data_in pdu = {.final = true,
                                    .status_present = true,
                                    .itt = itt,
                                    .ttt = ISCSI_TAG_NONE,
                                    PEER_NUMBERS(p, false)};
        pdu.stat_sn = stat_sn;
        p->w.flip_data = i == 0;
        peer_data_in(p, pdu, data, PART);
        peer_pump(p);
        if (i == 0) {
            expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 0, 1);
            assert_int_equal(io.done, 0);
            expect_acknowledged(r, stat_sn);
        }
    }
    assert_int_equal(io.task.result, INI_OK);
    assert_true(io_has_pattern(&io, 0, PART));
    expect_acknowledged(r, stat_sn + 1);
    io_end(&io, 1);
}

/* [I-ERR-06] [I-ERR-07] */
SCRIPT(each_loss_is_asked_for_once)
{
    struct io read, other, next;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &read, INI_READ, PART), other_itt = begin(r, &other, INI_NONE, 0),
             next_itt = begin(r, &next, INI_NONE, 0), first = p->stat_sn;
    uint8_t data[PART];
    struct iscsi_data_in pdu = {.final = true,
                                .status_present = true,
                                .itt = itt,
                                .ttt = ISCSI_TAG_NONE,
                                PEER_NUMBERS(p, false)};

    io_fill(data, 0, PART);
    p->w.flip_data = true;
    peer_data_in(p, pdu, data, PART);
    struct iscsi_scsi_response response = {.itt = next_itt, PEER_NUMBERS(p, false)};
    response.stat_sn = first + 1;
    peer_respond(p, response, NULL, 0);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 0, 1);
    peer_expect_silence(p); /* its status comes with the data */
    assert_int_equal(next.task.result, INI_OK);
    peer_data_in(p, pdu, data, PART);
    peer_pump(p);
    assert_int_equal(read.task.result, INI_OK);
    expect_acknowledged(r, first + 2);
    io_end(&read, 1);

    /* A status that waits for data, behind one that is lost. */
    itt = begin(r, &read, INI_READ, PART);
    response = (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = 1, PEER_NUMBERS(p, false)};
    response.stat_sn = first + 3;
    peer_respond(p, response, NULL, 0);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 0, 1);
    expect_snack(p, ISCSI_SNACK_STATUS, ISCSI_TAG_NONE, ISCSI_TAG_NONE, first + 2, 1);
    pdu.status_present = false;
    pdu.itt = itt;
    peer_data_in(p, pdu, data, PART);
    peer_pump(p);
    peer_expect_silence(p);
    assert_int_equal(read.task.result, INI_OK);
    response = (struct iscsi_scsi_response){.itt = other_itt, PEER_NUMBERS(p, false)};
    response.stat_sn = first + 2;
    peer_respond(p, response, NULL, 0);
    peer_pump(p);
    assert_int_equal(other.task.result, INI_OK);
    expect_acknowledged(r, first + 4);
    io_end(&read, 1);
    io_end(&other, 1);
    io_end(&next, 1);
}

static void skip_status(struct rig *r, uint32_t gap)
{
    enum { TASKS = 6 };
    struct io io[TASKS];
    uint32_t itt[TASKS];
    struct peer *p = level_1(r);
    uint32_t first = p->stat_sn;

    for (unsigned i = 0; i < TASKS; i++)
        itt[i] = begin(r, &io[i], INI_NONE, 0);
    for (uint32_t i = gap; i < TASKS; i++) {
        struct iscsi_scsi_response pdu = {.itt = itt[i], PEER_NUMBERS(p, false)};
        pdu.stat_sn = first + i;
        peer_respond(p, pdu, NULL, 0);
    }
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_STATUS, ISCSI_TAG_NONE, ISCSI_TAG_NONE, first, gap);
    peer_expect_silence(p);
    expect_acknowledged(r, first);
    for (uint32_t i = 0; i < gap; i++) {
        struct iscsi_scsi_response pdu = {.itt = itt[i], PEER_NUMBERS(p, false)};
        pdu.stat_sn = first + i;
        peer_respond(p, pdu, NULL, 0);
    }
    peer_pump(p);
    expect_acknowledged(r, first + TASKS);
    for (unsigned i = 0; i < TASKS; i++) {
        assert_int_equal(io[i].task.result, INI_OK);
        io_end(&io[i], 1);
    }
    p->stat_sn = first + TASKS;
}

/* [I-ERR-06] [I-NUM-06] */
SCRIPT(a_lost_status_is_asked_for_before_it_is_acknowledged)
{
    skip_status(r, 1);
}

/* [I-ERR-06] [I-NUM-06] */
SCRIPT(three_lost_statuses_are_asked_for_together)
{
    skip_status(r, 3);
}

/* [I-ERR-03] */
SCRIPT(a_response_with_a_wrong_digest_is_asked_for_again)
{
    static const uint8_t sense[20] = {0, 18, 0x70};
    struct io io;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_NONE, 0), stat_sn = p->stat_sn++;

    for (unsigned i = 0; i < 2; i++) {
        struct iscsi_scsi_response pdu = {.status = 2, .itt = itt, PEER_NUMBERS(p, false)};
        pdu.stat_sn = stat_sn;
        p->w.flip_data = i == 0;
        peer_respond(p, pdu, sense, sizeof sense);
        peer_pump(p);
        assert_int_equal(io.done, i);
        if (i == 0)
            expect_snack(p, ISCSI_SNACK_STATUS, ISCSI_TAG_NONE, ISCSI_TAG_NONE, stat_sn, 1);
    }
    assert_int_equal(io.task.sense_length, 18);
    io_end(&io, 1);
    expect_acknowledged(r, stat_sn + 1);
}

/* [I-ERR-01] */
SCRIPT(a_wrong_header_digest_ends_the_session_at_level_1_too)
{
    struct peer *p = level_1(r);

    p->w.flip_header = true;
    peer_nop_in(
        p,
        (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
        NULL, 0);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_DIGEST);
}

/* [I-IN-05] */
SCRIPT(data_are_acknowledged_when_asked_and_when_no_hole_is_left)
{
    struct io io;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_READ, LENGTH);

    give(p, itt, 0, false);
    give(p, itt, 1, true);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_ACK, ISCSI_TAG_NONE, 0x51, 2, 0);
    give(p, itt, 3, true); /* a hole before it */
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 2, 1);
    peer_expect_silence(p);
    give(p, itt, 2, false);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_ACK, ISCSI_TAG_NONE, 0x53, 4, 0);
    for (uint32_t sn = 4; sn < PARTS; sn++)
        give(p, itt, sn, sn == PARTS - 1);
    peer_pump(p);
    expect_snack(p, ISCSI_SNACK_DATA_ACK, ISCSI_TAG_NONE, 0x50 + PARTS - 1, PARTS, 0);
    respond(p, itt, p->stat_sn++);
    peer_pump(p);
    expect_read(&io);
}

/* [I-ERR-09] [I-ERR-04] */
SCRIPT(a_refused_snack_fails_its_task)
{
    for (unsigned status_first = 0; status_first < 2; status_first++) {
        struct io io;
        struct wire_pdu got;
        struct peer *p = level_1(r);
        uint32_t itt = begin(r, &io, INI_READ, LENGTH), stat_sn = p->stat_sn;
        for (uint32_t sn = 0; sn < PARTS; sn++)
            if (sn != 3)
                give(p, itt, sn, false);
        if (status_first)
            respond(p, itt, p->stat_sn++);
        peer_pump(p);
        peer_expect(p, ISCSI_SNACK, &got);
        peer_reject(p, ISCSI_REJECT_SNACK, got.bhs, ISCSI_BHS_SIZE);
        if (!status_first)
            respond(p, itt, p->stat_sn++);
        peer_pump(p);
        assert_int_equal(io.done, 1);
        assert_int_equal(io.task.result, INI_PROTOCOL);
        assert_int_equal(rig_events(r, INI_EVENT_CONN_CLOSE), 0);
        expect_acknowledged(r, stat_sn + 2);
        io_end(&io, 1);
        rig_close_all(r);
        r->event_count = 0;
    }
}

/* [I-ERR-09] */
SCRIPT(snack_rejected_as_a_condition_comes_up_as_sense)
{
    static const uint8_t sense[20] = {0, 18, 0x70, 0, 0x0b, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 0x13};
    struct io io;
    struct wire_pdu got;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_READ, LENGTH);

    give(p, itt, 1, false);
    peer_pump(p);
    peer_expect(p, ISCSI_SNACK, &got);
    peer_reject(p, ISCSI_REJECT_SNACK, got.bhs, ISCSI_BHS_SIZE);
    peer_respond(p,
                 (struct iscsi_scsi_response){
                     .status = 2, .itt = itt, .exp_data_sn = 2, PEER_NUMBERS(p, true)},
                 sense, sizeof sense);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_OK);
    assert_int_equal(io.task.scsi_status, 2);
    assert_int_equal(io.task.sense[12], 0x11);
    io_end(&io, 1);
}

static void ask(struct peer *p, struct io *io, uint32_t itt, uint32_t sn, uint32_t offset)
{
    peer_r2t(p, (struct iscsi_r2t){.lun = io->task.lun,
                                   .itt = itt,
                                   .ttt = 0x60 + sn,
                                   .r2t_sn = sn,
                                   .buffer_offset = offset,
                                   .desired_data_transfer_length = 1024,
                                   PEER_NUMBERS(p, false)});
    peer_pump(p);
}

/* [I-OUT-11] */
SCRIPT(a_recovery_r2t_is_served_again)
{
    struct io io;
    struct wire_pdu got;

    r->answers.immediate_data = false;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_WRITE, 2048);
    for (uint32_t sn = 0; sn < 3; sn++) {
        ask(p, &io, itt, sn, sn < 2 ? 0 : 1024); /* the first range twice */
        struct iscsi_data_out data = peer_expect_data(p, &got);
        assert_int_equal(data.buffer_offset, sn < 2 ? 0 : 1024);
        assert_int_equal(data.data_sn, 0);
        for (uint32_t i = 0; i < 1024; i++)
            assert_int_equal(got.data[i], io_pattern(data.buffer_offset + i));
    }
    peer_respond(p,
                 (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = 3, PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_OK);
    io_end(&io, 1);
}

/* [I-OUT-09] [I-ERR-07] */
SCRIPT(a_lost_r2t_is_asked_for)
{
    struct io io;
    struct wire_pdu got;

    r->answers.immediate_data = false;
    struct peer *p = level_1(r);
    uint32_t itt = begin(r, &io, INI_WRITE, 2048);
    ask(p, &io, itt, 1, 1024);
    expect_snack(p, ISCSI_SNACK_DATA_R2T, itt, ISCSI_TAG_NONE, 0, 1);
    assert_int_equal(peer_expect_data(p, &got).buffer_offset, 1024);
    ask(p, &io, itt, 0, 0);
    assert_int_equal(peer_expect_data(p, &got).buffer_offset, 0);
    ask(p, &io, itt, 0, 0); /* once too often */
    peer_expect_silence(p);
    peer_respond(p,
                 (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = 2, PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_OK);
    io_end(&io, 1);
}

/* [I-ERR-05] */
SCRIPT(a_retry_is_the_same_to_the_bit_and_only_for_what_is_unacknowledged)
{
    struct io io;
    struct wire_pdu got;
    struct peer *p = level_1(r);
    uint8_t first[ISCSI_BHS_SIZE];

    io_init(&io, INI_WRITE, 512);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    memcpy(first, got.bhs, sizeof first);
    ini_retry(&io.task);
    peer_expect_command(p, &got);
    assert_memory_equal(got.bhs, first, sizeof first);
    assert_int_equal(got.data_length, 512);
    r->exp_cmd_sn++;
    peer_nop_in(
        p,
        (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
        NULL, 0);
    peer_pump(p);
    ini_retry(&io.task);
    peer_expect_silence(p);
    peer_good(p, itt);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_OK);
    io_end(&io, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_data_in_is_asked_for_and_the_status_waits_for_it),
        cmocka_unit_test(lost_data_at_the_end_are_noticed_by_the_response),
        cmocka_unit_test(data_in_with_a_wrong_digest_is_asked_for_again),
        cmocka_unit_test(status_in_data_in_with_a_wrong_digest_is_not_taken),
        cmocka_unit_test(each_loss_is_asked_for_once),
        cmocka_unit_test(a_lost_status_is_asked_for_before_it_is_acknowledged),
        cmocka_unit_test(three_lost_statuses_are_asked_for_together),
        cmocka_unit_test(a_response_with_a_wrong_digest_is_asked_for_again),
        cmocka_unit_test(a_wrong_header_digest_ends_the_session_at_level_1_too),
        cmocka_unit_test(data_are_acknowledged_when_asked_and_when_no_hole_is_left),
        cmocka_unit_test(a_refused_snack_fails_its_task),
        cmocka_unit_test(snack_rejected_as_a_condition_comes_up_as_sense),
        cmocka_unit_test(a_recovery_r2t_is_served_again),
        cmocka_unit_test(a_lost_r2t_is_asked_for),
        cmocka_unit_test(a_retry_is_the_same_to_the_bit_and_only_for_what_is_unacknowledged),
    };
    return cmocka_run_group_tests_name("ini_recovery", tests, NULL, NULL);
}
