/* SPDX-License-Identifier: BSD-2-Clause */
/* Task management. */
#include "ini_rig.h"

#include <string.h>

static const uint64_t LUN_1 = 0x0001000000000000, LUN_2 = 0x0002000000000000;

static void count_tmf(struct ini_tmf *tmf)
{
    (*(unsigned *)tmf->user)++;
}

static struct iscsi_tmf_request expect_tmf(struct peer *p)
{
    struct iscsi_tmf_request tmf;
    struct wire_pdu got;

    peer_expect(p, ISCSI_TMF_REQUEST, &got);
    assert_int_equal(got.ahs_length, 0);
    assert_int_equal(got.data_length, 0);
    iscsi_tmf_request_unpack(got.bhs, &tmf);
    return tmf;
}

static uint32_t start(struct rig *r, struct io *io, enum ini_direction direction, uint32_t length)
{
    struct wire_pdu got;

    io_init(io, direction, length);
    io_start(r, io);
    return peer_expect_command(&r->peers[0], &got).itt;
}

static void ask(struct peer *p, const struct io *io, uint32_t itt, uint32_t sn, uint32_t offset,
                uint32_t length)
{
    peer_r2t(p, (struct iscsi_r2t){.lun = io->task.lun,
                                   .itt = itt,
                                   .ttt = 0x40 + sn,
                                   .r2t_sn = sn,
                                   .buffer_offset = offset,
                                   .desired_data_transfer_length = length,
                                   PEER_NUMBERS(p, false)});
}

/* [I-TMF-01] */
SCRIPT(an_abort_names_its_task)
{
    struct io a, b;
    struct wire_pdu got;
    unsigned done = 0;
    struct ini_tmf tmf = {.deadline_ns = INI_NEVER, .done = count_tmf, .user = &done};

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&a, INI_READ, 512);
    io_start(r, &a);
    struct iscsi_scsi_command command = peer_expect_command(p, &got);
    start(r, &b, INI_NONE, 0);
    assert_true(ini_abort(&a.task, &tmf));
    struct iscsi_tmf_request sent = expect_tmf(p);
    assert_int_equal(sent.function, ISCSI_ABORT_TASK);
    assert_true(sent.immediate);
    assert_true(sent.lun == a.task.lun);
    assert_int_equal(sent.referenced_task_tag, command.itt);
    assert_int_equal(sent.ref_cmd_sn, command.cmd_sn);
    assert_int_equal(sent.cmd_sn, command.cmd_sn + 2);
    assert_int_equal(a.done, 0);
    peer_tmf(p, sent.itt, ISCSI_TMF_COMPLETE);
    peer_pump(p);
    assert_int_equal(done, 1);
    assert_int_equal(tmf.result, INI_OK);
    assert_int_equal(tmf.response, ISCSI_TMF_COMPLETE);
    assert_int_equal(a.task.result, INI_ABORTED);
    assert_int_equal(b.done, 0);
    io_end(&a, 1);
    rig_close_all(r);
    io_end(&b, 1);
}

/* [I-TMF-02] */
SCRIPT(other_functions_name_no_task)
{
    static const struct {
        uint8_t function;
        bool lun;
    } functions[] = {
        {ISCSI_ABORT_TASK_SET, true},     {ISCSI_CLEAR_ACA, true},
        {ISCSI_CLEAR_TASK_SET, true},     {ISCSI_LOGICAL_UNIT_RESET, true},
        {ISCSI_TARGET_WARM_RESET, false}, {ISCSI_TARGET_COLD_RESET, false},
    };

    rig_login(r);
    struct peer *p = &r->peers[0];
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        unsigned done = 0;
        struct ini_tmf tmf = {.function = functions[i].function,
                              .lun = LUN_2,
                              .deadline_ns = INI_NEVER,
                              .done = count_tmf,
                              .user = &done};
        ini_tmf(r->s, &tmf);
        struct iscsi_tmf_request sent = expect_tmf(p);
        assert_int_equal(sent.function, functions[i].function);
        assert_int_equal(sent.referenced_task_tag, ISCSI_TAG_NONE);
        assert_int_equal(sent.ref_cmd_sn, 0);
        assert_true(sent.lun == (functions[i].lun ? LUN_2 : 0));
        assert_true(sent.immediate);
        peer_tmf(p, sent.itt, ISCSI_TMF_COMPLETE);
        peer_pump(p);
        assert_int_equal(done, 1);
    }
}

/* [I-TMF-03] */
SCRIPT(complete_and_no_such_task_end_a_task_and_other_answers_do_not)
{
    static const struct {
        uint8_t response;
        bool ends;
    } answers[] = {{0, true},  {1, true},    {2, false}, {3, false}, {4, false},
                   {5, false}, {255, false}, {6, false}, {99, false}};

    rig_login(r);
    struct peer *p = &r->peers[0];
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct io io;
        unsigned done = 0;
        struct ini_tmf tmf = {.deadline_ns = INI_NEVER, .done = count_tmf, .user = &done};
        uint32_t itt = start(r, &io, INI_NONE, 0);
        assert_true(ini_abort(&io.task, &tmf));
        peer_tmf(p, expect_tmf(p).itt, answers[i].response);
        peer_pump(p);
        assert_int_equal(done, 1);
        assert_int_equal(tmf.result, INI_OK);
        assert_int_equal(tmf.response, answers[i].response);
        assert_int_equal(io.done, answers[i].ends);
        if (!answers[i].ends) {
            peer_good(p, itt);
            peer_pump(p);
            assert_int_equal(io.task.result, INI_OK);
        } else {
            assert_int_equal(io.task.result, INI_ABORTED);
        }
        io_end(&io, 1);
    }
}

SCRIPT(a_task_not_yet_sent_is_aborted_without_the_target)
{
    struct io sent, held;
    struct ini_tmf tmf = {.deadline_ns = INI_NEVER};

    r->opts.depth = 1;
    rig_login(r);
    start(r, &sent, INI_NONE, 0);
    io_init(&held, INI_NONE, 0);
    io_start(r, &held);
    assert_false(ini_abort(&held.task, &tmf));
    assert_int_equal(held.done, 0);
    peer_pump(&r->peers[0]);
    peer_expect_silence(&r->peers[0]);
    assert_int_equal(held.task.result, INI_ABORTED);
    io_end(&held, 1);
    rig_close_all(r);
    io_end(&sent, 1);
}

/* [I-ERR-16] [I-TMF-04] */
SCRIPT(a_late_answer_to_an_aborted_task_is_dropped)
{
    struct io io, next;
    unsigned done = 0;
    struct ini_tmf tmf = {.deadline_ns = INI_NEVER, .done = count_tmf, .user = &done};
    uint8_t data[512] = {0};

    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t itt = start(r, &io, INI_READ, 512);
    assert_true(ini_abort(&io.task, &tmf));
    peer_tmf(p, expect_tmf(p).itt, ISCSI_TMF_COMPLETE);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_ABORTED);
    peer_data_in(p,
                 (struct iscsi_data_in){
                     .final = true, .itt = itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
                 data, sizeof data);
    peer_good(p, itt);
    peer_pump(p);
    assert_int_equal(io.data[0], 0xee);
    assert_int_equal(rig_events(r, INI_EVENT_CONN_CLOSE), 0);
    assert_int_equal(ini_session_counters(r->s)->stale_responses, 2);
    io_end(&io, 1);
    peer_good(p, start(r, &next, INI_NONE, 0));
    peer_pump(p);
    io_end(&next, 1);
}

/* [I-ERR-16] */
SCRIPT(late_tasks_and_functions_are_told_once_so_that_the_owner_can_escalate)
{
    struct io io;
    unsigned done = 0;
    struct ini_tmf abort = {.done = count_tmf, .user = &done},
                   reset = {.function = ISCSI_LOGICAL_UNIT_RESET,
                            .lun = LUN_1,
                            .done = count_tmf,
                            .user = &done};
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_NONE, 0);
    io.task.deadline_ns = r->now + 5ull * SECOND_NS;
    io_start(r, &io);
    peer_expect_command(p, &got);
    assert_true(ini_session_deadline(r->s) == io.task.deadline_ns);
    rig_tick(r, io.task.deadline_ns - 1);
    assert_int_equal(rig_events(r, INI_EVENT_TASK_LATE), 0);
    rig_tick(r, io.task.deadline_ns);
    rig_tick(r, io.task.deadline_ns + SECOND_NS);
    assert_int_equal(rig_events(r, INI_EVENT_TASK_LATE), 1);
    assert_ptr_equal(rig_last(r, INI_EVENT_TASK_LATE)->task, &io.task);

    abort.deadline_ns = r->now + 5ull * SECOND_NS;
    assert_true(ini_abort(&io.task, &abort));
    expect_tmf(p);
    rig_tick(r, abort.deadline_ns);
    assert_int_equal(rig_events(r, INI_EVENT_OPERATION_LATE), 1);
    reset.deadline_ns = r->now + 5ull * SECOND_NS;
    ini_tmf(r->s, &reset);
    uint32_t itt = expect_tmf(p).itt;
    rig_tick(r, reset.deadline_ns);
    rig_tick(r, reset.deadline_ns + SECOND_NS);
    assert_int_equal(rig_events(r, INI_EVENT_OPERATION_LATE), 2);
    peer_tmf(p, itt, ISCSI_TMF_COMPLETE);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_ABORTED);
    io_end(&io, 1);
    rig_close_all(r); /* the owner's next step: the session */
    assert_int_equal(done, 2);
    assert_int_equal(abort.result, INI_LOST);
}

/* [I-TMF-04] */
SCRIPT(a_set_abort_answers_r2ts_shortly_and_takes_answers_until_its_own)
{
    struct io write, read, other, after;
    unsigned done = 0;
    struct ini_tmf tmf = {.function = ISCSI_ABORT_TASK_SET,
                          .lun = LUN_1,
                          .deadline_ns = INI_NEVER,
                          .done = count_tmf,
                          .user = &done};
    struct wire_pdu got;

    r->answers.immediate_data = false;
    r->answers.mrdsl_in = 1024;
    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t write_itt = start(r, &write, INI_WRITE, 8192);
    uint32_t read_itt = start(r, &read, INI_NONE, 0);
    io_init(&other, INI_NONE, 0);
    other.task.lun = LUN_2;
    io_start(r, &other);
    peer_expect_command(p, &got);
    ini_tmf(r->s, &tmf);
    uint32_t tmf_itt = expect_tmf(p).itt;
    start(r, &after, INI_NONE, 0); /* younger than the function: lives on */

    ask(p, &write, write_itt, 0, 0, 8192);
    peer_nop_in(p, (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = 3, PEER_NUMBERS(p, false)},
                NULL, 0);
    peer_pump(p);
    unsigned data = 0, nops = 0;
    while (wire_take(&p->w, &got)) {
        data += got.h.opcode == ISCSI_DATA_OUT;
        nops += got.h.opcode == ISCSI_NOP_OUT;
        assert_true(got.h.final);
    }
    assert_int_equal(data, 1);
    assert_int_equal(nops, 1);
    peer_good(p, read_itt);
    peer_pump(p);
    assert_int_equal(read.task.result, INI_OK);
    /* The target waits for ExpStatSN to confirm that answer, so an idle initiator says it. */
    struct iscsi_nop_out confirm;
    peer_expect(p, ISCSI_NOP_OUT, &got);
    iscsi_nop_out_unpack(got.bhs, &confirm);
    assert_int_equal(confirm.itt, ISCSI_TAG_NONE);
    assert_int_equal(confirm.ttt, ISCSI_TAG_NONE);
    assert_int_equal(confirm.exp_stat_sn, p->stat_sn);
    peer_tmf(p, tmf_itt, ISCSI_TMF_COMPLETE);
    peer_pump(p);
    assert_int_equal(write.task.result, INI_ABORTED);
    assert_int_equal(other.done, 0);
    assert_int_equal(after.done, 0);
    peer_good(p, write_itt);
    peer_pump(p);
    assert_int_equal(ini_session_counters(r->s)->stale_responses, 1);
    rig_close_all(r);
    io_end(&write, 1);
    io_end(&read, 1);
    io_end(&other, 1);
    io_end(&after, 1);
}

SCRIPT(no_command_overtakes_a_reset)
{
    struct io before, after;
    unsigned done = 0;
    struct ini_tmf tmf = {.function = ISCSI_LOGICAL_UNIT_RESET,
                          .lun = LUN_1,
                          .deadline_ns = INI_NEVER,
                          .done = count_tmf,
                          .user = &done};
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    start(r, &before, INI_NONE, 0);
    ini_tmf(r->s, &tmf);
    uint32_t itt = expect_tmf(p).itt;
    io_init(&after, INI_NONE, 0);
    io_start(r, &after);
    peer_expect_silence(p);
    peer_tmf(p, itt, ISCSI_TMF_COMPLETE);
    peer_pump(p);
    assert_int_equal(before.task.result, INI_ABORTED);
    peer_good(p, peer_expect_command(p, &got).itt);
    peer_pump(p);
    assert_int_equal(after.task.result, INI_OK);
    io_end(&before, 1);
    io_end(&after, 1);
}

/* [I-TMF-05] */
SCRIPT(fast_abort_sends_no_data_after_the_function)
{
    struct io write;
    unsigned done = 0;
    struct ini_tmf tmf = {.function = ISCSI_ABORT_TASK_SET,
                          .lun = LUN_1,
                          .deadline_ns = INI_NEVER,
                          .done = count_tmf,
                          .user = &done};

    r->opts.login.wishes.params.task_reporting = ISCSI_REPORT_FAST_ABORT;
    r->answers.task_reporting = ISCSI_REPORT_FAST_ABORT;
    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    assert_int_equal(ini_session_params(r->s)->task_reporting, ISCSI_REPORT_FAST_ABORT);
    uint32_t itt = start(r, &write, INI_WRITE, 8192);
    ini_tmf(r->s, &tmf);
    uint32_t tmf_itt = expect_tmf(p).itt;
    ask(p, &write, itt, 0, 0, 8192);
    peer_pump(p);
    peer_expect_silence(p);
    peer_tmf(p, tmf_itt, ISCSI_TMF_COMPLETE);
    peer_pump(p);
    assert_int_equal(write.task.result, INI_ABORTED);
    io_end(&write, 1);
}

/* [I-TMF-05] */
SCRIPT(a_task_termination_message_stops_data_and_is_acknowledged)
{
    struct io write;
    struct wire_pdu got;
    struct iscsi_nop_out nop;

    r->opts.login.wishes.params.task_reporting = ISCSI_REPORT_FAST_ABORT;
    r->answers.task_reporting = ISCSI_REPORT_FAST_ABORT;
    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t itt = start(r, &write, INI_WRITE, 8192);
    ask(p, &write, itt, 0, 0, 8192);
    peer_async(p,
               (struct iscsi_async){
                   .lun = LUN_1, .event = ISCSI_ASYNC_TASK_TERMINATION, PEER_NUMBERS(p, true)},
               NULL, 0);
    wire_push(&p->w);
    peer_expect(p, ISCSI_NOP_OUT, &got);
    iscsi_nop_out_unpack(got.bhs, &nop);
    assert_int_equal(nop.itt, ISCSI_TAG_NONE);
    assert_true(nop.lun == LUN_1);
    assert_int_equal(nop.exp_stat_sn, p->stat_sn);
    peer_expect_silence(p);
    rig_close_all(r);
    io_end(&write, 1);
}

/* [I-TMF-06] [B-31] */
SCRIPT(newer_functions_are_refused_below_protocol_level_2)
{
    unsigned done = 0;

    rig_login(r);
    for (uint8_t function = 9; function <= 12; function++) {
        struct ini_tmf tmf = {
            .function = function, .deadline_ns = INI_NEVER, .done = count_tmf, .user = &done};
        ini_tmf(r->s, &tmf);
        peer_pump(&r->peers[0]);
        assert_int_equal(tmf.result, INI_REFUSED);
    }
    peer_expect_silence(&r->peers[0]);
    assert_int_equal(done, 4);
}

/* [I-TMF-06] [B-31] */
SCRIPT(newer_functions_are_answered_at_protocol_level_2)
{
    unsigned done = 0;
    struct ini_tmf tmf = {.function = ISCSI_QUERY_TASK_SET,
                          .lun = LUN_1,
                          .deadline_ns = INI_NEVER,
                          .done = count_tmf,
                          .user = &done};

    r->opts.login.wishes.params.protocol_level = 2;
    r->answers.protocol_level = 2;
    rig_login(r);
    struct peer *p = &r->peers[0];
    ini_tmf(r->s, &tmf);
    peer_tmf(p, expect_tmf(p).itt, ISCSI_TMF_SUCCEEDED);
    peer_pump(p);
    assert_int_equal(done, 1);
    assert_int_equal(tmf.response, ISCSI_TMF_SUCCEEDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_names_its_task),
        cmocka_unit_test(other_functions_name_no_task),
        cmocka_unit_test(complete_and_no_such_task_end_a_task_and_other_answers_do_not),
        cmocka_unit_test(a_task_not_yet_sent_is_aborted_without_the_target),
        cmocka_unit_test(a_late_answer_to_an_aborted_task_is_dropped),
        cmocka_unit_test(late_tasks_and_functions_are_told_once_so_that_the_owner_can_escalate),
        cmocka_unit_test(a_set_abort_answers_r2ts_shortly_and_takes_answers_until_its_own),
        cmocka_unit_test(no_command_overtakes_a_reset),
        cmocka_unit_test(fast_abort_sends_no_data_after_the_function),
        cmocka_unit_test(a_task_termination_message_stops_data_and_is_acknowledged),
        cmocka_unit_test(newer_functions_are_refused_below_protocol_level_2),
        cmocka_unit_test(newer_functions_are_answered_at_protocol_level_2),
    };
    return cmocka_run_group_tests_name("ini_tmf", tests, NULL, NULL);
}
