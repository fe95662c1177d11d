/* SPDX-License-Identifier: BSD-2-Clause */
#include "ini_rig.h"

#include "base/serial.h"
#include "iscsi/ini_int.h"

#include <string.h>

enum { MANY = 20 };

static void pinged(struct ini_ping *ping)
{
    (*(unsigned *)ping->user)++;
}

/* [I-NUM-01] [I-LOG-06] */
SCRIPT(commands_carry_consecutive_numbers_from_the_login_on)
{
    struct io io[MANY];
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t first = r->exp_cmd_sn, exp_stat_sn = p->stat_sn;
    for (uint32_t i = 0; i < MANY; i++) {
        io_init(&io[i], i % 3 == 0 ? INI_NONE : i % 3 == 1 ? INI_READ : INI_WRITE, i % 3 ? 512 : 0);
        io_start(r, &io[i]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        struct iscsi_scsi_command command = peer_expect_command(p, &got);
        assert_int_equal(command.cmd_sn, first + i);
        assert_int_equal(command.exp_stat_sn, exp_stat_sn);
        assert_false(command.immediate);
    }
    peer_expect_silence(p);
    rig_close_all(r);
    for (unsigned i = 0; i < MANY; i++)
        io_end(&io[i], 1);
}

/* [I-NUM-02] [I-NOP-01] */
SCRIPT(immediate_requests_carry_the_current_number_and_do_not_advance_it)
{
    struct io io[3];
    struct wire_pdu got;
    struct iscsi_nop_out nop;
    struct iscsi_tmf_request tmf;
    struct ini_tmf reset = {
        .function = ISCSI_ABORT_TASK_SET, .lun = 0x0005000000000000, .deadline_ns = INI_NEVER};
    unsigned pings = 0;
    struct ini_ping ping = {.deadline_ns = INI_NEVER, .done = pinged, .user = &pings};

    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t first = r->exp_cmd_sn;
    for (unsigned i = 0; i < 3; i++)
        io_init(&io[i], INI_NONE, 0);
    io_start(r, &io[0]);
    assert_int_equal(peer_expect_command(p, &got).cmd_sn, first);
    ini_ping(p->c, &ping);
    peer_expect(p, ISCSI_NOP_OUT, &got);
    iscsi_nop_out_unpack(got.bhs, &nop);
    assert_true(nop.immediate);
    assert_int_equal(nop.cmd_sn, first + 1);
    io_start(r, &io[1]);
    assert_int_equal(peer_expect_command(p, &got).cmd_sn, first + 1);
    ini_tmf(r->s, &reset);
    peer_expect(p, ISCSI_TMF_REQUEST, &got);
    iscsi_tmf_request_unpack(got.bhs, &tmf);
    assert_true(tmf.immediate);
    assert_int_equal(tmf.cmd_sn, first + 2);
    io_start(r, &io[2]);
    assert_int_equal(peer_expect_command(p, &got).cmd_sn, first + 2);
    rig_close_all(r);
    for (unsigned i = 0; i < 3; i++)
        io_end(&io[i], 1);
    assert_int_equal(pings, 1);
}

/* [I-NUM-03] [I-NOP-01] */
SCRIPT(commands_are_held_while_the_window_is_closed_and_immediate_ones_pass)
{
    struct io io[2];
    struct wire_pdu got;
    struct iscsi_nop_out nop;

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io[0], INI_NONE, 0);
    io_init(&io[1], INI_NONE, 0);
    io_start(r, &io[0]);
    uint32_t itt = peer_expect_command(p, &got).itt;
    r->s->cmd_sn = r->max_cmd_sn + 1; /* as if it had used its window */
    io_start(r, &io[1]);
    peer_expect_silence(p);
    assert_int_equal(ini_session_window(r->s), 0);

    peer_nop_in(
        p,
        (struct iscsi_nop_in){
            .lun = 0x0007000000000000, .itt = ISCSI_TAG_NONE, .ttt = 0x55, PEER_NUMBERS(p, false)},
        NULL, 0);
    peer_pump(p);
    peer_expect(p, ISCSI_NOP_OUT, &got);
    iscsi_nop_out_unpack(got.bhs, &nop);
    assert_true(nop.immediate);
    assert_int_equal(nop.itt, ISCSI_TAG_NONE);
    assert_int_equal(nop.ttt, 0x55);
    assert_true(nop.lun == 0x0007000000000000);
    peer_expect_silence(p);

    uint32_t next = ++r->max_cmd_sn;
    peer_nop_in(
        p,
        (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
        NULL, 0);
    peer_pump(p);
    struct iscsi_scsi_command command = peer_expect_command(p, &got);
    assert_int_equal(command.cmd_sn, next);
    assert_int_equal(ini_session_counters(r->s)->held, 1);
    peer_good(p, itt);
    peer_good(p, command.itt);
    peer_pump(p);
    assert_int_equal(io[1].task.result, INI_OK);
    io_end(&io[0], 1);
    io_end(&io[1], 1);
}

static void window_of(struct rig *r, uint32_t size)
{
    struct io io[160];
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    r->max_cmd_sn = r->exp_cmd_sn + size - 1;
    /* The window of the login was larger and never shrinks, so go where that one ends. */
    r->s->cmd_sn = r->exp_cmd_sn += 128;
    r->max_cmd_sn = r->exp_cmd_sn + size - 1;
    peer_nop_in(
        p,
        (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
        NULL, 0);
    peer_pump(p);
    for (unsigned i = 0; i < 160; i++) {
        io_init(&io[i], INI_NONE, 0);
        io_start(r, &io[i]);
    }
    unsigned expected = size < r->opts.depth ? size : r->opts.depth, sent = 0;
    uint32_t first_itt = 0;
    for (; sent < expected; sent++) {
        uint32_t itt = peer_expect_command(p, &got).itt;
        first_itt = sent ? first_itt : itt;
    }
    peer_expect_silence(p);
    /* One answer makes room for one more. */
    r->exp_cmd_sn++;
    r->max_cmd_sn++;
    peer_good(p, first_itt);
    peer_pump(p);
    peer_expect_command(p, &got);
    peer_expect_silence(p);
    rig_close_all(r);
    for (unsigned i = 0; i < 160; i++)
        io_end(&io[i], 1);
}

/* [I-NUM-04] */
SCRIPT(a_window_of_1_is_used)
{
    window_of(r, 1);
}

/* [I-NUM-04] */
SCRIPT(a_window_of_8_is_used)
{
    window_of(r, 8);
}

/* [I-NUM-04] */
SCRIPT(a_window_of_128_is_used)
{
    window_of(r, 128);
}

/* [I-NUM-04] */
SCRIPT(a_depth_below_the_window_is_kept)
{
    r->opts.depth = 5;
    window_of(r, 128);
}

/* [I-NUM-05] */
SCRIPT(the_window_only_moves_forward_and_inverted_pairs_are_ignored)
{
    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t exp = r->exp_cmd_sn, max = r->max_cmd_sn;
    const struct {
        uint32_t exp, max, window;
    } steps[] = {
        {exp, max - 10, 128},         /* older */
        {exp + 200, max, 128},        /* max < exp - 1: both ignored */
        {exp - 5, max + 2, 130},      /* exp older, max newer */
        {exp, max + 2, 130},          /* the same again */
        {exp, max + 0x80000005, 130}, /* far beyond half the circle: older */
    };

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        r->exp_cmd_sn = steps[i].exp;
        r->max_cmd_sn = steps[i].max;
        peer_nop_in(p,
                    (struct iscsi_nop_in){
                        .itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
                    NULL, 0);
        peer_pump(p);
        assert_int_equal(ini_session_window(r->s), steps[i].window);
    }
}

static void skip_status(struct rig *r, uint32_t gap)
{
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    p->stat_sn += gap;
    peer_good(p, itt);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    assert_int_equal(io.done, 0); /* its buffer is the transport's until that is closed */
    peer_lose(p);
    assert_int_equal(io.task.result, INI_LOST);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 1);
    io_end(&io, 1);
}

/* [I-NUM-06] */
SCRIPT(a_missing_status_is_recovered_by_a_new_session)
{
    skip_status(r, 1);
}

/* [I-NUM-06] */
SCRIPT(five_missing_statuses_are_recovered_by_a_new_session)
{
    skip_status(r, 5);
}

/* [I-NUM-06] */
SCRIPT(status_is_acknowledged_without_gaps)
{
    struct io io[4];
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < 4; i++) {
        io_init(&io[i], INI_NONE, 0);
        io_start(r, &io[i]);
        struct iscsi_scsi_command command = peer_expect_command(p, &got);
        assert_int_equal(command.exp_stat_sn, p->stat_sn);
        peer_good(p, command.itt);
        peer_pump(p);
        io_end(&io[i], 1);
    }
}

/* [I-NUM-07] */
SCRIPT(pdus_without_status_do_not_consume_a_stat_sn)
{
    struct io read, write;
    struct wire_pdu got;
    uint8_t half[256] = {0};

    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&read, INI_READ, 512);
    io_init(&write, INI_WRITE, 512);
    io_start(r, &read);
    uint32_t read_itt = peer_expect_command(p, &got).itt;
    io_start(r, &write);
    uint32_t write_itt = peer_expect_command(p, &got).itt;

    peer_nop_in(
        p,
        (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
        NULL, 0);
    peer_data_in(
        p, (struct iscsi_data_in){.itt = read_itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
        half, sizeof half);
    peer_r2t(p, (struct iscsi_r2t){.lun = write.task.lun,
                                   .itt = write_itt,
                                   .ttt = 9,
                                   .desired_data_transfer_length = 512,
                                   PEER_NUMBERS(p, false)});
    peer_pump(p);
    assert_int_equal(peer_expect_data(p, &got).exp_stat_sn, p->stat_sn);
    peer_data_in(p,
                 (struct iscsi_data_in){.final = true,
                                        .itt = read_itt,
                                        .ttt = ISCSI_TAG_NONE,
                                        .data_sn = 1,
                                        .buffer_offset = 256,
                                        PEER_NUMBERS(p, false)},
                 half, sizeof half);
    peer_respond(
        p, (struct iscsi_scsi_response){.itt = read_itt, .exp_data_sn = 2, PEER_NUMBERS(p, true)},
        NULL, 0);
    peer_good(p, write_itt);
    peer_pump(p);
    assert_int_equal(read.task.result, INI_OK);
    assert_int_equal(write.task.result, INI_OK);
    io_end(&read, 1);
    io_end(&write, 1);
}

/* [I-NUM-08] */
SCRIPT(tags_are_unique_and_never_reserved_when_their_counter_wraps)
{
    enum { LIVE = 100, ROUNDS = 40 };
    static struct io io[LIVE];
    uint32_t tags[LIVE];
    unsigned finished[LIVE] = {0};
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    struct ini_session *s = r->s;
    uint32_t slots = 1u << s->slot_bits;
    for (uint32_t i = 0; i < slots; i++)
        s->slots[i].generation = (ISCSI_TAG_NONE >> s->slot_bits) - 2;
    for (unsigned i = 0; i < LIVE; i++) {
        io_init(&io[i], INI_NONE, 0);
        io_start(r, &io[i]);
        tags[i] = peer_expect_command(p, &got).itt;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < LIVE / 2; i++) {
            unsigned at = (round * 37 + i) % LIVE;
            r->exp_cmd_sn++;
            r->max_cmd_sn++;
            peer_good(p, tags[at]);
            peer_pump(p);
            assert_int_equal(io[at].done, ++finished[at]);
            io_start(r, &io[at]);
            tags[at] = peer_expect_command(p, &got).itt;
            assert_int_not_equal(tags[at], ISCSI_TAG_NONE);
            for (unsigned k = 0; k < LIVE; k++)
                assert_true(k == at || tags[k] != tags[at]);
        }
    }
    rig_close_all(r);
    for (unsigned i = 0; i < LIVE; i++)
        io_end(&io[i], io[i].done);
}

static void answer_tag(struct rig *r, uint32_t itt)
{
    struct io io;
    struct wire_pdu got;

    struct peer *p = &r->peers[0];
    io_init(&io, INI_READ, 512);
    io_start(r, &io);
    uint32_t live = peer_expect_command(p, &got).itt;
    peer_good(p, itt ? itt : live ^ 1);
    peer_pump(p);
    assert_int_equal(io.done, 0);
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    peer_lose(p);
    assert_int_equal(io.task.result, INI_LOST);
    io_end(&io, 1);
}

/* [I-NUM-09] */
SCRIPT(an_answer_with_a_tag_never_used_ends_the_session)
{
    rig_login(r);
    answer_tag(r, 0);
}

/* [I-NUM-09] */
SCRIPT(an_answer_with_the_reserved_tag_ends_the_session)
{
    rig_login(r);
    answer_tag(r, ISCSI_TAG_NONE);
}

/* [I-NUM-09] */
SCRIPT(a_second_answer_to_a_finished_command_ends_the_session)
{
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    peer_good(p, itt);
    peer_pump(p);
    io_end(&io, 1);
    answer_tag(r, itt);
}

/* [I-NUM-09] */
SCRIPT(an_answer_of_another_kind_than_the_request_ends_the_session)
{
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    peer_tmf(p, peer_expect_command(p, &got).itt, ISCSI_TMF_COMPLETE);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    peer_lose(p);
    assert_int_equal(io.task.result, INI_LOST);
    io_end(&io, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_carry_consecutive_numbers_from_the_login_on),
        cmocka_unit_test(immediate_requests_carry_the_current_number_and_do_not_advance_it),
        cmocka_unit_test(commands_are_held_while_the_window_is_closed_and_immediate_ones_pass),
        cmocka_unit_test(a_window_of_1_is_used),
        cmocka_unit_test(a_window_of_8_is_used),
        cmocka_unit_test(a_window_of_128_is_used),
        cmocka_unit_test(a_depth_below_the_window_is_kept),
        cmocka_unit_test(the_window_only_moves_forward_and_inverted_pairs_are_ignored),
        cmocka_unit_test(a_missing_status_is_recovered_by_a_new_session),
        cmocka_unit_test(five_missing_statuses_are_recovered_by_a_new_session),
        cmocka_unit_test(status_is_acknowledged_without_gaps),
        cmocka_unit_test(pdus_without_status_do_not_consume_a_stat_sn),
        cmocka_unit_test(tags_are_unique_and_never_reserved_when_their_counter_wraps),
        cmocka_unit_test(an_answer_with_a_tag_never_used_ends_the_session),
        cmocka_unit_test(an_answer_with_the_reserved_tag_ends_the_session),
        cmocka_unit_test(a_second_answer_to_a_finished_command_ends_the_session),
        cmocka_unit_test(an_answer_of_another_kind_than_the_request_ends_the_session),
    };
    return cmocka_run_group_tests_name("ini_number", tests, NULL, NULL);
}
