/* SPDX-License-Identifier: BSD-2-Clause */
#include "ini_rig.h"

#include <string.h>

enum { LENGTH = 2048, PART = 512 };

/* A read of LENGTH bytes, on its way. */
struct reading {
    struct io io;
    struct peer *p;
    uint32_t itt;
};

static void read_begin(struct rig *r, struct reading *read)
{
    struct wire_pdu got;

    if (!r->s)
        rig_login(r);
    read->p = &r->peers[0];
    io_init(&read->io, INI_READ, LENGTH);
    io_start(r, &read->io);
    struct iscsi_scsi_command command = peer_expect_command(read->p, &got);
    assert_true(command.read);
    assert_true(command.final);
    read->itt = command.itt;
}

/* n bytes of the pattern at offset. */
static void give(struct reading *read, uint32_t sn, uint32_t offset, uint32_t n, bool final)
{
    uint8_t data[LENGTH];

    io_fill(data, offset, n);
    peer_data_in(read->p,
                 (struct iscsi_data_in){.final = final,
                                        .itt = read->itt,
                                        .ttt = ISCSI_TAG_NONE,
                                        .data_sn = sn,
                                        .buffer_offset = offset,
                                        PEER_NUMBERS(read->p, false)},
                 data, n);
}

static void give_all(struct reading *read, uint32_t sn)
{
    for (uint32_t at = 0; at < LENGTH; at += PART)
        give(read, sn++, at, PART, at + PART == LENGTH);
}

static void respond(struct reading *read, struct iscsi_scsi_response pdu)
{
    pdu.itt = read->itt;
    pdu.stat_sn = read->p->stat_sn++;
    pdu.exp_cmd_sn = read->p->rig->exp_cmd_sn;
    pdu.max_cmd_sn = read->p->rig->max_cmd_sn;
    peer_respond(read->p, pdu, NULL, 0);
}

static void expect_success(struct reading *read)
{
    peer_pump(read->p);
    assert_int_equal(read->io.done, 1);
    assert_int_equal(read->io.task.result, INI_OK);
    assert_int_equal(read->io.task.transferred, LENGTH);
    assert_true(io_has_pattern(&read->io, 0, LENGTH));
    io_end(&read->io, 1);
}

/* The task ends without success though the session lives. */
static void expect_task_failure(struct reading *read)
{
    peer_pump(read->p);
    assert_int_equal(read->io.done, 1);
    assert_int_equal(read->io.task.result, INI_PROTOCOL);
    assert_int_equal(rig_events(read->p->rig, INI_EVENT_CONN_CLOSE), 0);
    io_end(&read->io, 1);
}

static void expect_session_failure(struct reading *read, enum ini_close_why why)
{
    struct rig *r = read->p->rig;

    peer_pump(read->p);
    rig_expect_failure(r, why);
    assert_int_equal(read->io.done, 0);
    rig_close_all(r);
    assert_int_equal(read->io.task.result, INI_LOST);
    io_end(&read->io, 1);
    r->event_count = 0;
}

SCRIPT(a_read_arrives_in_its_buffers)
{
    struct reading read;

    read_begin(r, &read);
    give_all(&read, 0);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 4});
    expect_success(&read);
}

SCRIPT(a_read_arrives_under_both_digests)
{
    struct reading read;

    r->answers.header_digest = r->answers.data_digest = true;
    read_begin(r, &read);
    give(&read, 0, 0, 511, false);
    give(&read, 1, 511, 1026, false);
    give(&read, 2, 1537, 511, true);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 3});
    expect_success(&read);
}

/* The last Data-In, with status. */
static void finish(struct reading *read, uint8_t status, bool final, bool overflow, bool underflow,
                   uint32_t residual)
{
    uint8_t data[PART];

    io_fill(data, LENGTH - PART, PART);
    peer_data_in(read->p,
                 (struct iscsi_data_in){.final = final,
                                        .overflow = overflow,
                                        .underflow = underflow,
                                        .status_present = true,
                                        .status = status,
                                        .itt = read->itt,
                                        .ttt = ISCSI_TAG_NONE,
                                        .data_sn = 3,
                                        .buffer_offset = LENGTH - PART,
                                        .residual_count = residual,
                                        PEER_NUMBERS(read->p, true)},
                 data, PART);
}

static void give_three(struct reading *read)
{
    for (uint32_t i = 0; i < 3; i++)
        give(read, i, i * PART, PART, false);
}

/* [I-IN-01] */
SCRIPT(status_comes_with_the_last_data)
{
    struct reading read;
    struct wire_pdu got;
    struct io next;

    read_begin(r, &read);
    give_three(&read);
    finish(&read, 0, true, false, false, 0);
    expect_success(&read);
    io_init(&next, INI_NONE, 0);
    io_start(r, &next);
    assert_int_equal(peer_expect_command(read.p, &got).exp_stat_sn, read.p->stat_sn);
    rig_close_all(r);
    io_end(&next, 1);
}

/* [I-IN-01] [I-IN-07] */
SCRIPT(status_with_the_last_data_tells_an_overflow)
{
    struct reading read;

    read_begin(r, &read);
    give_three(&read);
    finish(&read, 0, true, true, false, 4096);
    peer_pump(read.p);
    assert_int_equal(read.io.task.result, INI_OK);
    assert_true(read.io.task.residual == -4096);
    assert_int_equal(read.io.task.transferred, LENGTH);
    io_end(&read.io, 1);
}

/* [I-IN-01] [I-IN-07] */
SCRIPT(status_with_the_last_data_tells_an_underflow)
{
    struct reading read;
    uint8_t data[100];

    read_begin(r, &read);
    io_fill(data, 0, sizeof data);
    peer_data_in(read.p,
                 (struct iscsi_data_in){.final = true,
                                        .underflow = true,
                                        .status_present = true,
                                        .itt = read.itt,
                                        .ttt = ISCSI_TAG_NONE,
                                        .residual_count = LENGTH - 100,
                                        PEER_NUMBERS(read.p, true)},
                 data, sizeof data);
    peer_pump(read.p);
    assert_int_equal(read.io.task.result, INI_OK);
    assert_true(read.io.task.residual == LENGTH - 100);
    assert_int_equal(read.io.task.transferred, 100);
    assert_true(io_has_pattern(&read.io, 0, 100));
    assert_int_equal(read.io.data[100], 0xee);
    io_end(&read.io, 1);
}

/* [I-IN-01] */
SCRIPT(status_in_a_data_in_that_is_not_final_ends_the_session)
{
    struct reading read;

    read_begin(r, &read);
    give_three(&read);
    finish(&read, 0, false, false, false, 0);
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-IN-01] */
SCRIPT(check_condition_in_a_data_in_ends_the_session)
{
    struct reading read;

    read_begin(r, &read);
    give_three(&read);
    finish(&read, 2, true, false, false, 0);
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-IN-02] */
SCRIPT(data_in_without_data_is_fine)
{
    struct reading read;

    read_begin(r, &read);
    give(&read, 0, 0, 0, false);
    give_all(&read, 1);
    peer_data_in(read.p,
                 (struct iscsi_data_in){.final = true,
                                        .status_present = true,
                                        .itt = read.itt,
                                        .ttt = ISCSI_TAG_NONE,
                                        .data_sn = 5,
                                        .buffer_offset = LENGTH,
                                        PEER_NUMBERS(read.p, true)},
                 NULL, 0);
    expect_success(&read);
}

/* [I-IN-03] */
SCRIPT(repeated_data_in_is_dropped)
{
    struct reading read;
    uint8_t junk[PART] = {0};

    read_begin(r, &read);
    give(&read, 0, 0, PART, false);
    peer_data_in(
        read.p,
        (struct iscsi_data_in){.itt = read.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(read.p, false)},
        junk, PART); /* DataSN 0 again, other bytes: must not be stored */
    for (uint32_t i = 1; i < 4; i++)
        give(&read, i, i * PART, PART, i == 3);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 4});
    expect_success(&read);
    assert_int_equal(ini_session_counters(r->s)->duplicates, 1);
}

/* [I-IN-03] */
SCRIPT(skipped_data_in_ends_the_session)
{
    struct reading read;

    read_begin(r, &read);
    give(&read, 0, 0, PART, false);
    give(&read, 2, 2 * PART, PART, false);
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-IN-03] */
SCRIPT(swapped_data_in_ends_the_session)
{
    struct reading read;

    read_begin(r, &read);
    give(&read, 1, PART, PART, false);
    give(&read, 0, 0, PART, false);
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-IN-04] */
SCRIPT(data_outside_the_buffer_are_never_stored)
{
    static const struct {
        uint32_t offset, n;
    } wrong[] = {
        {LENGTH - PART + 1, PART}, {LENGTH, 1},     {0xfffffe00, PART}, {0xffffffff, PART},
        {LENGTH + 1, 0},           {0xfffffe00, 0}, {LENGTH - 1, 2},    {0x80000000, PART},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct reading read;
        read_begin(r, &read);
        give(&read, 0, wrong[i].offset, wrong[i].n, true);
        peer_pump(read.p);
        for (uint32_t k = 0; k < LENGTH; k++)
            assert_int_equal(read.io.data[k], 0xee);
        expect_session_failure(&read, INI_CLOSE_PROTOCOL);
    }
}

/* [I-IN-04] */
SCRIPT(data_in_for_a_write_is_never_stored)
{
    struct io io;
    struct wire_pdu got;
    uint8_t junk[PART] = {0};

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, LENGTH);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    peer_data_in(p,
                 (struct iscsi_data_in){.itt = itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
                 junk, PART);
    peer_pump(p);
    assert_true(io_has_pattern(&io, 0, LENGTH));
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    rig_close_all(r);
    io_end(&io, 1);
}

/* [I-IN-04] [B-03] */
SCRIPT(a_segment_longer_than_declared_is_never_stored)
{
    struct reading read;
    static uint8_t data[1 << 20];

    read_begin(r, &read);
    uint32_t most = ini_conn_params(read.p->c)->mrdsl_in;
    assert_in_range(most, 512, sizeof data - 1);
    peer_data_in(
        read.p,
        (struct iscsi_data_in){.itt = read.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(read.p, false)},
        data, most + 1);
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-IN-05] */
SCRIPT(a_request_to_acknowledge_data_is_ignored_at_level_0)
{
    struct reading read;
    uint8_t data[PART];

    read_begin(r, &read);
    give_three(&read);
    io_fill(data, LENGTH - PART, PART);
    peer_data_in(read.p,
                 (struct iscsi_data_in){.final = true,
                                        .acknowledge = true,
                                        .lun = read.io.task.lun,
                                        .itt = read.itt,
                                        .ttt = 77,
                                        .data_sn = 3,
                                        .buffer_offset = LENGTH - PART,
                                        PEER_NUMBERS(read.p, false)},
                 data, PART);
    peer_pump(read.p);
    peer_expect_silence(read.p);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 4});
    expect_success(&read);
}

/* [I-IN-06] */
SCRIPT(data_counted_by_the_target_that_never_came_are_no_success)
{
    struct reading read;

    read_begin(r, &read);
    give_three(&read);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 4});
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-IN-07] */
SCRIPT(a_residual_tells_what_was_not_transferred)
{
    struct reading read;

    read_begin(r, &read);
    give(&read, 0, 0, PART, true);
    respond(&read, (struct iscsi_scsi_response){
                       .underflow = true, .exp_data_sn = 1, .residual_count = LENGTH - PART});
    peer_pump(read.p);
    assert_int_equal(read.io.task.result, INI_OK);
    assert_int_equal(read.io.task.transferred, PART);
    assert_true(read.io.task.residual == LENGTH - PART);
    io_end(&read.io, 1);
}

/* [I-IN-07] */
SCRIPT(both_residual_bits_end_the_session)
{
    struct reading read;

    read_begin(r, &read);
    give_all(&read, 0);
    respond(&read, (struct iscsi_scsi_response){.overflow = true, .underflow = true});
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-IN-07] */
SCRIPT(a_residual_larger_than_the_transfer_fails_the_task)
{
    struct reading read;

    read_begin(r, &read);
    give_all(&read, 0);
    respond(&read, (struct iscsi_scsi_response){
                       .underflow = true, .exp_data_sn = 4, .residual_count = LENGTH + 1});
    expect_task_failure(&read);
}

/* [I-IN-07] */
SCRIPT(a_failed_response_has_no_status)
{
    struct reading read;

    read_begin(r, &read);
    give_all(&read, 0);
    respond(&read, (struct iscsi_scsi_response){.response = ISCSI_TARGET_FAILURE, .status = 0});
    peer_pump(read.p);
    assert_int_equal(read.io.done, 1);
    assert_int_equal(read.io.task.result, INI_TARGET_FAILURE);
    io_end(&read.io, 1);
}

/* [I-IN-07] */
SCRIPT(residuals_of_writes_are_told)
{
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, LENGTH);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    peer_respond(p,
                 (struct iscsi_scsi_response){
                     .underflow = true, .itt = itt, .residual_count = 48, PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_OK);
    assert_true(io.task.residual == 48);
    assert_int_equal(io.task.transferred, LENGTH - 48);
    io_end(&io, 1);
    io_init(&io, INI_WRITE, LENGTH);
    io_start(r, &io);
    itt = peer_expect_command(p, &got).itt;
    peer_respond(p,
                 (struct iscsi_scsi_response){
                     .overflow = true, .itt = itt, .residual_count = 512, PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_OK);
    assert_true(io.task.residual == -512);
    io_end(&io, 1);
    io_init(&io, INI_WRITE, LENGTH);
    io_start(r, &io);
    itt = peer_expect_command(p, &got).itt;
    peer_respond(p,
                 (struct iscsi_scsi_response){.underflow = true,
                                              .status = 8,
                                              .itt = itt,
                                              .residual_count = LENGTH + 1,
                                              PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_PROTOCOL); /* more than there was */
    io_end(&io, 1);
}

/* [I-IN-08] */
SCRIPT(good_with_half_the_data_fails_the_task)
{
    struct reading read;

    read_begin(r, &read);
    give(&read, 0, 0, LENGTH / 2, true);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 1});
    expect_task_failure(&read);
}

/* [I-IN-08] */
SCRIPT(good_with_one_part_twice_and_another_missing_fails_the_task)
{
    struct reading read;

    read_begin(r, &read);
    give(&read, 0, 0, PART, false);
    give(&read, 1, PART, PART, false);
    give(&read, 2, PART, PART, false);
    give(&read, 3, 3 * PART, PART, true);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 4});
    expect_task_failure(&read);
}

/* [I-IN-08] */
SCRIPT(an_underflow_smaller_than_what_is_missing_fails_the_task)
{
    struct reading read;

    read_begin(r, &read);
    give(&read, 0, 0, PART, true);
    respond(&read, (struct iscsi_scsi_response){
                       .underflow = true, .exp_data_sn = 1, .residual_count = PART});
    expect_task_failure(&read);
}

/* [I-IN-09] */
SCRIPT(data_in_in_any_order_are_placed_right)
{
    struct reading read;

    r->opts.login.wishes.params.data_pdu_in_order = false;
    r->answers.data_pdu_in_order = false;
    read_begin(r, &read);
    assert_false(ini_session_params(r->s)->data_pdu_in_order);
    give(&read, 0, 3 * PART, PART, false);
    give(&read, 1, 2 * PART, PART, false);
    give(&read, 2, 0, PART, false);
    give(&read, 3, PART, PART, true);
    respond(&read, (struct iscsi_scsi_response){.exp_data_sn = 4});
    expect_success(&read);
}

static void sense_of(struct rig *r, const uint8_t *data, uint32_t n, uint32_t kept)
{
    struct reading read;

    read_begin(r, &read);
    peer_respond(
        read.p,
        (struct iscsi_scsi_response){.status = 2, .itt = read.itt, PEER_NUMBERS(read.p, true)},
        data, n);
    peer_pump(read.p);
    assert_int_equal(read.io.done, 1);
    assert_int_equal(read.io.task.result, INI_OK);
    assert_int_equal(read.io.task.scsi_status, 2);
    assert_int_equal(read.io.task.sense_length, kept);
    if (kept)
        assert_memory_equal(read.io.task.sense, data + 2, kept);
    io_end(&read.io, 1);
}

/* [I-IN-10] */
SCRIPT(sense_is_bounded_by_its_segment)
{
    uint8_t data[400];

    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    data[0] = data[1] = 0xff; /* SenseLength 65535 */
    sense_of(r, data, 1, 0);
    sense_of(r, data, 2, 0);
    sense_of(r, data, 20, 18);
    sense_of(r, data, 400, 252);
    data[0] = 0;
    data[1] = 18;
    sense_of(r, data, 20, 18);
    sense_of(r, data, 24, 18);
    sense_of(r, data, 10, 8);
}

/* [I-IN-10] [I-ERR-15] */
SCRIPT(check_condition_without_sense_ends_the_session)
{
    struct reading read;

    read_begin(r, &read);
    respond(&read, (struct iscsi_scsi_response){.status = 2});
    expect_session_failure(&read, INI_CLOSE_PROTOCOL);
}

/* [I-ERR-10] */
SCRIPT(iscsi_conditions_come_up_as_sense)
{
    static const uint8_t conditions[][2] = {{0x47, 0x05}, {0x0c, 0x0c}, {0x0c, 0x0d}};

    for (unsigned i = 0; i < 3; i++) {
        uint8_t data[20] = {0, 18, 0x70, 0, 0x0b};
        data[2 + 7] = 10;
        data[2 + 12] = conditions[i][0];
        data[2 + 13] = conditions[i][1];
        sense_of(r, data, sizeof data, 18);
    }
    peer_expect_silence(&r->peers[0]); /* no retry by the machine */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_arrives_in_its_buffers),
        cmocka_unit_test(a_read_arrives_under_both_digests),
        cmocka_unit_test(status_comes_with_the_last_data),
        cmocka_unit_test(status_with_the_last_data_tells_an_overflow),
        cmocka_unit_test(status_with_the_last_data_tells_an_underflow),
        cmocka_unit_test(status_in_a_data_in_that_is_not_final_ends_the_session),
        cmocka_unit_test(check_condition_in_a_data_in_ends_the_session),
        cmocka_unit_test(data_in_without_data_is_fine),
        cmocka_unit_test(repeated_data_in_is_dropped),
        cmocka_unit_test(skipped_data_in_ends_the_session),
        cmocka_unit_test(swapped_data_in_ends_the_session),
        cmocka_unit_test(data_outside_the_buffer_are_never_stored),
        cmocka_unit_test(data_in_for_a_write_is_never_stored),
        cmocka_unit_test(a_segment_longer_than_declared_is_never_stored),
        cmocka_unit_test(a_request_to_acknowledge_data_is_ignored_at_level_0),
        cmocka_unit_test(data_counted_by_the_target_that_never_came_are_no_success),
        cmocka_unit_test(a_residual_tells_what_was_not_transferred),
        cmocka_unit_test(both_residual_bits_end_the_session),
        cmocka_unit_test(a_residual_larger_than_the_transfer_fails_the_task),
        cmocka_unit_test(a_failed_response_has_no_status),
        cmocka_unit_test(residuals_of_writes_are_told),
        cmocka_unit_test(good_with_half_the_data_fails_the_task),
        cmocka_unit_test(good_with_one_part_twice_and_another_missing_fails_the_task),
        cmocka_unit_test(an_underflow_smaller_than_what_is_missing_fails_the_task),
        cmocka_unit_test(data_in_in_any_order_are_placed_right),
        cmocka_unit_test(sense_is_bounded_by_its_segment),
        cmocka_unit_test(check_condition_without_sense_ends_the_session),
        cmocka_unit_test(iscsi_conditions_come_up_as_sense),
    };
    return cmocka_run_group_tests_name("ini_in", tests, NULL, NULL);
}
