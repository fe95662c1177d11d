/* SPDX-License-Identifier: BSD-2-Clause */
/* Task management, NOP, asynchronous messages. */
#include "ini_rig.h"

#include <string.h>

static const uint64_t LUN_1 = 0x0001000000000000, LUN_2 = 0x0002000000000000;

static void count_tmf(struct ini_tmf *tmf)
{
    (*(unsigned *)tmf->user)++;
}

static void count_ping(struct ini_ping *ping)
{
    (*(unsigned *)ping->user)++;
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
    bool data = false, nop = false;
    while (wire_take(&p->w, &got)) {
        data |= got.h.opcode == ISCSI_DATA_OUT && got.h.final && got.data_length <= 1024;
        nop |= got.h.opcode == ISCSI_NOP_OUT;
    }
    assert_true(data);
    assert_true(nop);
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

/* ---- NOP ---- */

/* [I-NOP-02] */
SCRIPT(a_thousand_nop_in_without_a_tag_are_not_answered)
{
    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < 1000; i++) {
        r->max_cmd_sn++;
        peer_nop_in(p,
                    (struct iscsi_nop_in){
                        .itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
                    NULL, 0);
    }
    peer_pump(p);
    peer_expect_silence(p);
    assert_int_equal(ini_session_window(r->s), 1128);
}

static void ping_with(struct rig *r, const char *echo, uint32_t n, bool good)
{
    struct wire_pdu got;
    struct iscsi_nop_out nop;
    unsigned done = 0;
    struct ini_ping ping = {
        .data = "hello", .length = 5, .deadline_ns = INI_NEVER, .done = count_ping, .user = &done};

    rig_login(r);
    struct peer *p = &r->peers[0];
    ini_ping(p->c, &ping);
    peer_expect(p, ISCSI_NOP_OUT, &got);
    iscsi_nop_out_unpack(got.bhs, &nop);
    assert_int_not_equal(nop.itt, ISCSI_TAG_NONE);
    assert_int_equal(nop.ttt, ISCSI_TAG_NONE);
    assert_true(nop.lun == 0);
    assert_int_equal(got.data_length, 5);
    assert_memory_equal(got.data, "hello", 5);
    peer_nop_in(p,
                (struct iscsi_nop_in){.itt = nop.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, true)},
                echo, n);
    peer_pump(p);
    if (!good)
        rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    rig_close_all(r);
    assert_int_equal(done, 1);
    assert_int_equal(ping.result, good ? INI_OK : INI_LOST);
    r->event_count = 0;
}

/* [I-NOP-03] */
SCRIPT(a_ping_wants_its_echo)
{
    ping_with(r, "hello", 5, true);
    ping_with(r, "hellx", 5, false);
    ping_with(r, "hell", 4, false);
    ping_with(r, "hello!", 6, false);
}

/* [I-NOP-03] */
SCRIPT(a_ping_without_an_answer_in_time_ends_the_connection)
{
    struct wire_pdu got;
    unsigned done = 0;
    struct ini_ping ping = {.deadline_ns = 10ull * SECOND_NS, .done = count_ping, .user = &done};

    rig_login(r);
    struct peer *p = &r->peers[0];
    ini_ping(p->c, &ping);
    peer_expect(p, ISCSI_NOP_OUT, &got);
    rig_tick(r, 10ull * SECOND_NS);
    rig_expect_failure(r, INI_CLOSE_TIMEOUT);
    peer_lose(p);
    assert_int_equal(done, 1);
    assert_int_equal(ping.result, INI_LOST);
}

/* [I-NOP-04] */
SCRIPT(an_idle_connection_can_acknowledge)
{
    struct wire_pdu got;
    struct iscsi_nop_out nop;

    rig_login(r);
    struct peer *p = &r->peers[0];
    ini_conn_acknowledge(p->c);
    peer_expect(p, ISCSI_NOP_OUT, &got);
    iscsi_nop_out_unpack(got.bhs, &nop);
    assert_int_equal(nop.itt, ISCSI_TAG_NONE);
    assert_int_equal(nop.ttt, ISCSI_TAG_NONE);
    assert_true(nop.immediate);
    assert_int_equal(nop.exp_stat_sn, p->stat_sn);
    peer_expect_silence(p);
}

/* [I-ERR-15] */
SCRIPT(contradicting_nop_in_end_the_session)
{
    static const struct {
        uint32_t itt, ttt;
        uint64_t lun;
    } wrong[] = {{1, 1, 0}, {ISCSI_TAG_NONE, 1, 0x4001000000000001}};

    for (unsigned i = 0; i < 2; i++) {
        rig_login(r);
        struct peer *p = &r->peers[0];
        peer_nop_in(p,
                    (struct iscsi_nop_in){.lun = wrong[i].lun,
                                          .itt = wrong[i].itt,
                                          .ttt = wrong[i].ttt,
                                          PEER_NUMBERS(p, true)},
                    NULL, 0);
        peer_pump(p);
        peer_expect_silence(p);
        rig_expect_failure(r, INI_CLOSE_PROTOCOL);
        rig_close_all(r);
        r->event_count = 0;
    }
}

/* ---- asynchronous messages ---- */

static void async(struct peer *p, uint8_t event, uint16_t p1, uint16_t p2, uint16_t p3,
                  const void *data, uint32_t n)
{
    peer_async(p,
               (struct iscsi_async){.lun = LUN_1,
                                    .event = event,
                                    .parameter1 = p1,
                                    .parameter2 = p2,
                                    .parameter3 = p3,
                                    PEER_NUMBERS(p, true)},
               data, n);
    peer_pump(p);
}

/* The next command acknowledges all that came. */
static void expect_acknowledged(struct rig *r, struct peer *p)
{
    struct io io;
    struct wire_pdu got;

    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    assert_int_equal(peer_expect_command(p, &got).exp_stat_sn, p->stat_sn);
    rig_close_all(r);
    io_end(&io, 1);
}

/* [I-ASY-00] */
SCRIPT(a_scsi_event_is_handed_up)
{
    static const uint8_t data[] = {0, 18, 0x70, 0, 6,    0, 0, 0, 0, 10,
                                   0, 0,  0,    0, 0x2a, 9, 0, 0, 0, 0};

    rig_login(r);
    struct peer *p = &r->peers[0];
    async(p, ISCSI_ASYNC_SCSI, 0, 0, 0, data, sizeof data);
    const struct ini_event *event = rig_last(r, INI_EVENT_ASYNC);
    assert_int_equal(event->async.event, ISCSI_ASYNC_SCSI);
    assert_true(event->async.lun == LUN_1);
    assert_int_equal(event->async.sense_length, 18);
    async(p, ISCSI_ASYNC_SCSI, 0, 0, 0, "\xff\xff\x70", 3); /* SenseLength beyond the segment */
    assert_int_equal(rig_last(r, INI_EVENT_ASYNC)->async.sense_length, 1);
    async(p, ISCSI_ASYNC_SCSI, 0, 0, 0, "\xff", 1);
    assert_int_equal(rig_last(r, INI_EVENT_ASYNC)->async.sense_length, 0);
    expect_acknowledged(r, p);
}

/* [I-ASY-04] */
SCRIPT(unknown_events_are_counted_and_ignored)
{
    static const uint8_t events[] = {5, 6, 100, 248, 255};

    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < sizeof events; i++)
        async(p, events[i], 1, 2, 3, "data", 4);
    assert_int_equal(ini_session_counters(r->s)->async_ignored, sizeof events);
    expect_acknowledged(r, p);
}

static struct iscsi_logout_request expect_logout(struct peer *p)
{
    struct iscsi_logout_request logout;
    struct wire_pdu got;

    peer_expect(p, ISCSI_LOGOUT_REQUEST, &got);
    iscsi_logout_request_unpack(got.bhs, &logout);
    assert_true(logout.immediate);
    return logout;
}

/* [I-ASY-01] */
SCRIPT(a_request_to_log_out_is_honoured_at_once_when_idle)
{
    rig_login(r);
    struct peer *p = &r->peers[0];
    async(p, ISCSI_ASYNC_LOGOUT_REQUESTED, 0, 0, 10, NULL, 0);
    struct iscsi_logout_request logout = expect_logout(p);
    assert_int_equal(logout.reason, ISCSI_LOGOUT_SESSION);
    peer_logout(p, logout.itt, ISCSI_LOGOUT_DONE);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_LOGGED_OUT);
    peer_lose(p);
    assert_int_equal(rig_events(r, INI_EVENT_LOGGED_OUT), 1);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 0);
}

/* [I-ASY-01] */
SCRIPT(a_request_to_log_out_lets_tasks_end_but_starts_none)
{
    struct io running, later;

    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t itt = start(r, &running, INI_NONE, 0);
    async(p, ISCSI_ASYNC_LOGOUT_REQUESTED, 0, 0, 10, NULL, 0);
    io_init(&later, INI_NONE, 0);
    io_start(r, &later);
    peer_expect_silence(p);
    peer_good(p, itt);
    peer_pump(p);
    assert_int_equal(running.task.result, INI_OK);
    peer_logout(p, expect_logout(p).itt, ISCSI_LOGOUT_DONE);
    peer_pump(p);
    peer_lose(p);
    assert_int_equal(later.task.result, INI_LOST);
    io_end(&running, 1);
    io_end(&later, 1);
}

/* [I-ASY-01] */
SCRIPT(a_request_to_log_out_is_honoured_in_time_with_tasks_in_flight)
{
    static const uint16_t seconds[] = {0, 1, 30};

    for (unsigned i = 0; i < 3; i++) {
        struct io io;
        rig_login(r);
        struct peer *p = &r->peers[0];
        start(r, &io, INI_NONE, 0);
        uint64_t asked = r->now;
        async(p, ISCSI_ASYNC_LOGOUT_REQUESTED, 0, 0, seconds[i], NULL, 0);
        uint64_t deadline = ini_session_deadline(r->s);
        if (seconds[i]) {
            peer_expect_silence(p);
            assert_true(deadline <= asked + (uint64_t)seconds[i] * SECOND_NS);
            rig_tick(r, deadline);
        }
        expect_logout(p);
        rig_close_all(r);
        io_end(&io, 1);
        r->event_count = 0;
    }
}

static void drop_notice(struct rig *r, uint8_t event, uint16_t cid, uint16_t wait)
{
    struct io io;

    rig_login(r);
    struct peer *p = &r->peers[0];
    start(r, &io, INI_NONE, 0);
    async(p, event, cid, wait, 20, NULL, 0);
    rig_expect_failure(r, INI_CLOSE_ASKED);
    peer_lose(p);
    const struct ini_event *end = rig_last(r, INI_EVENT_SESSION_DROPPED);
    assert_true(end->close.waits);
    assert_int_equal(end->close.time2wait, wait);
    assert_int_equal(end->close.time2retain, 20);
    assert_int_equal(io.task.result, INI_LOST);
    io_end(&io, 1);
    rig_close_all(r);
    r->event_count = 0;
}

/* [I-ASY-02] */
SCRIPT(drop_notices_are_a_loss_and_tell_how_long_to_wait)
{
    static const uint16_t waits[] = {0, 1, 30};

    for (unsigned i = 0; i < 3; i++) {
        drop_notice(r, ISCSI_ASYNC_CONNECTION_DROP, 0, waits[i]);
        drop_notice(r, ISCSI_ASYNC_SESSION_DROP, 0x7777, waits[i]);
    }
}

/* [I-ASY-02] */
SCRIPT(a_drop_notice_for_a_connection_we_do_not_have_changes_nothing)
{
    rig_login(r);
    struct peer *p = &r->peers[0];
    async(p, ISCSI_ASYNC_CONNECTION_DROP, 99, 1, 1, NULL, 0);
    assert_int_equal(rig_events(r, INI_EVENT_CONN_CLOSE), 0);
    expect_acknowledged(r, p);
}

/* [I-ASY-03] */
SCRIPT(a_request_to_negotiate_is_answered_by_an_empty_text)
{
    struct wire_pdu got;
    struct iscsi_text_request text;

    rig_login(r);
    struct peer *p = &r->peers[0];
    async(p, ISCSI_ASYNC_NEGOTIATION, 0, 0, 3, NULL, 0);
    peer_expect(p, ISCSI_TEXT_REQUEST, &got);
    iscsi_text_request_unpack(got.bhs, &text);
    assert_true(text.final);
    assert_int_equal(text.ttt, ISCSI_TAG_NONE);
    assert_int_equal(got.data_length, 0);
    async(p, ISCSI_ASYNC_NEGOTIATION, 0, 0, 3, NULL, 0); /* one is pending */
    peer_expect_silence(p);
    peer_text(p,
              (struct iscsi_text_response){
                  .final = true, .itt = text.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, true)},
              NULL, 0);
    peer_pump(p);
    assert_int_equal(rig_events(r, INI_EVENT_CONN_CLOSE), 0);
    expect_acknowledged(r, p);
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
        cmocka_unit_test(a_thousand_nop_in_without_a_tag_are_not_answered),
        cmocka_unit_test(a_ping_wants_its_echo),
        cmocka_unit_test(a_ping_without_an_answer_in_time_ends_the_connection),
        cmocka_unit_test(an_idle_connection_can_acknowledge),
        cmocka_unit_test(contradicting_nop_in_end_the_session),
        cmocka_unit_test(a_scsi_event_is_handed_up),
        cmocka_unit_test(unknown_events_are_counted_and_ignored),
        cmocka_unit_test(a_request_to_log_out_is_honoured_at_once_when_idle),
        cmocka_unit_test(a_request_to_log_out_lets_tasks_end_but_starts_none),
        cmocka_unit_test(a_request_to_log_out_is_honoured_in_time_with_tasks_in_flight),
        cmocka_unit_test(drop_notices_are_a_loss_and_tell_how_long_to_wait),
        cmocka_unit_test(a_drop_notice_for_a_connection_we_do_not_have_changes_nothing),
        cmocka_unit_test(a_request_to_negotiate_is_answered_by_an_empty_text),
    };
    return cmocka_run_group_tests_name("ini_manage", tests, NULL, NULL);
}
