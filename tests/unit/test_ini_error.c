/* SPDX-License-Identifier: BSD-2-Clause */
/* Digests, Reject, format errors, and what is left of a session that fails. */
#include "ini_rig.h"

#include "iscsi/ini_int.h"

#include <string.h>

static uint32_t start(struct rig *r, struct io *io, enum ini_direction direction, uint32_t length,
                      struct wire_pdu *got)
{
    io_init(io, direction, length);
    io_start(r, io);
    return peer_expect_command(&r->peers[0], got).itt;
}

static void flip(struct rig *r, bool header)
{
    struct io io;
    struct wire_pdu got;
    uint8_t data[512];

    r->answers.header_digest = r->answers.data_digest = true;
    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t itt = start(r, &io, INI_READ, 512, &got);
    io_fill(data, 0, sizeof data);
    p->w.flip_header = header;
    p->w.flip_data = !header;
    peer_data_in(p,
                 (struct iscsi_data_in){
                     .final = true, .itt = itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
                 data, sizeof data);
    peer_respond(p,
                 (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = 1, PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_DIGEST);
    assert_true(p->w.refused || r->mode == WIRE_BATCH || r->mode == WIRE_RANDOM);
    assert_int_equal(io.done, 0);
    rig_close_all(r);
    assert_int_equal(io.task.result, INI_LOST);
    io_end(&io, 1);
}

/* [I-ERR-01] */
SCRIPT(a_wrong_header_digest_ends_the_session)
{
    flip(r, true);
}

/* [I-ERR-02] */
SCRIPT(a_wrong_data_digest_never_ends_a_read_well)
{
    flip(r, false);
}

/* [I-ERR-03] */
SCRIPT(a_wrong_data_digest_on_a_response_an_event_or_a_reject_ends_the_session)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        struct io io;
        struct wire_pdu got;
        static const uint8_t sense[20] = {0, 18, 0x70};
        r->answers.data_digest = true;
        rig_login(r);
        struct peer *p = &r->peers[0];
        uint32_t itt = start(r, &io, INI_NONE, 0, &got);
        p->w.flip_data = true;
        if (kind == 0)
            peer_respond(
                p, (struct iscsi_scsi_response){.status = 2, .itt = itt, PEER_NUMBERS(p, true)},
                sense, sizeof sense);
        else if (kind == 1)
            peer_async(p, (struct iscsi_async){PEER_NUMBERS(p, true)}, sense, sizeof sense);
        else
            peer_reject(p, ISCSI_REJECT_PROTOCOL, got.bhs, ISCSI_BHS_SIZE);
        peer_pump(p);
        rig_expect_failure(r, INI_CLOSE_DIGEST);
        assert_int_equal(rig_events(r, INI_EVENT_ASYNC), 0);
        assert_int_equal(io.done, 0);
        rig_close_all(r);
        assert_int_equal(io.task.result, INI_LOST);
        io_end(&io, 1);
        r->event_count = 0;
    }
}

/* ---- Reject ---- */

/* [I-ERR-04] */
SCRIPT(a_command_rejected_for_a_passing_reason_is_sent_again_as_it_was)
{
    static const uint8_t reasons[] = {ISCSI_REJECT_DATA_DIGEST, ISCSI_REJECT_SNACK,
                                      ISCSI_REJECT_TOO_MANY_IMMEDIATE, ISCSI_REJECT_NO_RESOURCES};

    r->answers.initial_r2t = false;
    r->answers.first_burst_length = 1024;
    r->answers.mrdsl_in = 600;
    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < sizeof reasons; i++) {
        struct io io;
        struct wire_pdu got;
        uint8_t first[ISCSI_BHS_SIZE];
        uint32_t itt = start(r, &io, INI_WRITE, 1024, &got);
        assert_int_equal(got.data_length, 600);
        memcpy(first, got.bhs, sizeof first);
        assert_int_equal(peer_expect_data(p, &got).data_segment_length, 424);
        peer_reject(p, reasons[i], first, sizeof first);
        peer_pump(p);
        peer_expect_command(p, &got);
        assert_memory_equal(got.bhs, first, 28); /* all but ExpStatSN */
        assert_memory_equal(got.bhs + 32, first + 32, 16);
        struct iscsi_data_out data = peer_expect_data(p, &got);
        assert_int_equal(data.buffer_offset, 600);
        assert_int_equal(data.data_sn, 0);
        assert_true(data.final);
        peer_expect_silence(p);
        peer_good(p, itt);
        peer_pump(p);
        assert_int_equal(io.task.result, INI_OK);
        io_end(&io, 1);
    }
}

/* [I-ERR-04] */
SCRIPT(a_command_rejected_without_end_fails)
{
    struct io io;
    struct wire_pdu got;
    unsigned sent = 1;

    rig_login(r);
    struct peer *p = &r->peers[0];
    start(r, &io, INI_NONE, 0, &got);
    while (!io.done) {
        peer_reject(p, ISCSI_REJECT_NO_RESOURCES, got.bhs, ISCSI_BHS_SIZE);
        peer_pump(p);
        if (!io.done) {
            peer_expect_command(p, &got);
            sent++;
        }
        assert_in_range(sent, 1, 20);
    }
    assert_int_equal(io.task.result, INI_REJECTED);
    assert_int_equal(io.task.reject, ISCSI_REJECT_NO_RESOURCES);
    io_end(&io, 1);
}

/* [I-ERR-04] */
SCRIPT(a_command_rejected_for_good_fails_and_its_number_is_filled)
{
    static const uint8_t reasons[] = {0x04, 0x05, 0x07, 0x08, 0x09, 0x01, 0x77};

    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < sizeof reasons; i++) {
        struct io io, next;
        struct wire_pdu got;
        struct iscsi_nop_out plug;
        io_init(&io, INI_NONE, 0);
        io_start(r, &io);
        struct iscsi_scsi_command command = peer_expect_command(p, &got);
        peer_reject(p, reasons[i], got.bhs, ISCSI_BHS_SIZE);
        peer_pump(p);
        assert_int_equal(io.task.result, INI_REJECTED);
        assert_int_equal(io.task.reject, reasons[i]);
        peer_expect(p, ISCSI_NOP_OUT, &got);
        iscsi_nop_out_unpack(got.bhs, &plug);
        assert_false(plug.immediate);
        assert_int_equal(plug.cmd_sn, command.cmd_sn);
        assert_int_not_equal(plug.itt, ISCSI_TAG_NONE);
        r->exp_cmd_sn++;
        peer_nop_in(
            p, (struct iscsi_nop_in){.itt = plug.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, true)},
            NULL, 0);
        peer_pump(p);
        io_end(&io, 1);
        io_init(&next, INI_NONE, 0);
        io_start(r, &next);
        command = peer_expect_command(p, &got);
        assert_int_equal(command.cmd_sn, r->exp_cmd_sn++);
        peer_good(p, command.itt);
        peer_pump(p);
        io_end(&next, 1);
    }
}

/* [I-ERR-04] */
SCRIPT(no_gap_is_filled_where_the_target_counted_the_rejected_command)
{
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    start(r, &io, INI_NONE, 0, &got);
    r->exp_cmd_sn++;
    peer_reject(p, ISCSI_REJECT_NOT_SUPPORTED, got.bhs, ISCSI_BHS_SIZE);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_REJECTED);
    peer_expect_silence(p);
    io_end(&io, 1);
}

/* [I-ERR-04] */
SCRIPT(a_reject_of_data_leaves_the_end_of_its_task_to_the_response)
{
    struct io io;
    struct wire_pdu got;

    r->answers.initial_r2t = r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    for (uint8_t reason = 1; reason < 10; reason++) {
        uint32_t itt = start(r, &io, INI_WRITE, 512, &got);
        peer_expect_data(p, &got);
        peer_reject(p, reason, got.bhs, ISCSI_BHS_SIZE);
        peer_pump(p);
        peer_expect_silence(p);
        assert_int_equal(io.done, 0);
        static const uint8_t sense[20] = {0, 18, 0x70, 0, 0x0b};
        peer_respond(p,
                     (struct iscsi_scsi_response){.status = 2, .itt = itt, PEER_NUMBERS(p, true)},
                     sense, sizeof sense);
        peer_pump(p);
        assert_int_equal(io.task.scsi_status, 2);
        io_end(&io, 1);
    }
}

/* [I-ERR-04] */
SCRIPT(a_reject_that_quotes_nothing_known_changes_nothing)
{
    struct io io;
    struct wire_pdu got;
    uint8_t junk[ISCSI_BHS_SIZE];

    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t itt = start(r, &io, INI_NONE, 0, &got);
    memset(junk, 0xff, sizeof junk);
    peer_reject(p, ISCSI_REJECT_PROTOCOL, NULL, 0);
    peer_reject(p, ISCSI_REJECT_PROTOCOL, got.bhs, 47);
    peer_reject(p, ISCSI_REJECT_PROTOCOL, junk, sizeof junk);
    got.bhs[0] = ISCSI_LOGIN_REQUEST;
    peer_reject(p, ISCSI_REJECT_PROTOCOL, got.bhs, sizeof got.bhs);
    peer_pump(p);
    peer_expect_silence(p);
    assert_int_equal(io.done, 0);
    assert_int_equal(ini_session_counters(r->s)->rejects, 4);
    peer_good(p, itt);
    peer_pump(p);
    assert_int_equal(io.task.result, INI_OK);
    io_end(&io, 1);
}

/* [I-ERR-04] */
SCRIPT(a_negotiation_reset_ends_the_session)
{
    rig_login(r);
    struct peer *p = &r->peers[0];
    peer_reject(p, ISCSI_REJECT_NEGOTIATION_RESET, NULL, 0);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
}

/* [I-ERR-04] [I-ASY-01] */
SCRIPT(a_target_that_waits_for_logout_gets_it)
{
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    start(r, &io, INI_NONE, 0, &got);
    r->exp_cmd_sn++;
    peer_reject(p, ISCSI_REJECT_WAITING_FOR_LOGOUT, got.bhs, ISCSI_BHS_SIZE);
    peer_pump(p);
    peer_expect(p, ISCSI_LOGOUT_REQUEST, &got);
    assert_int_equal(io.task.result, INI_LOST); /* to be replayed */
    peer_logout(p, got.h.itt, ISCSI_LOGOUT_DONE);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_LOGGED_OUT);
    io_end(&io, 1);
}

static void count_tmf(struct ini_tmf *tmf)
{
    (*(unsigned *)tmf->user)++;
}

static void count_ping(struct ini_ping *ping)
{
    (*(unsigned *)ping->user)++;
}

static void count_logout(struct ini_logout *logout)
{
    (*(unsigned *)logout->user)++;
}

/* [I-ERR-04] */
SCRIPT(immediate_requests_are_sent_again_when_there_were_too_many)
{
    struct wire_pdu got;
    unsigned done = 0;
    struct ini_tmf tmf = {
        .function = ISCSI_CLEAR_ACA, .deadline_ns = INI_NEVER, .done = count_tmf, .user = &done};
    struct ini_ping ping = {.deadline_ns = INI_NEVER, .done = count_ping, .user = &done};
    struct ini_logout logout = {.reason = ISCSI_LOGOUT_SESSION,
                                .deadline_ns = INI_NEVER,
                                .done = count_logout,
                                .user = &done};

    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < 3; i++) {
        if (i == 0)
            ini_tmf(r->s, &tmf);
        else if (i == 1)
            ini_ping(p->c, &ping);
        else
            ini_logout(r->s, &logout);
        wire_pull(&p->w);
        assert_true(wire_take(&p->w, &got));
        uint32_t itt = got.h.itt;
        uint8_t opcode = got.h.opcode;
        peer_reject(p, ISCSI_REJECT_TOO_MANY_IMMEDIATE, got.bhs, ISCSI_BHS_SIZE);
        peer_pump(p);
        assert_int_equal(done, i);
        peer_expect(p, opcode, &got);
        assert_int_equal(got.h.itt, itt);
        assert_true(got.h.immediate);
        if (i == 2) /* not without end */
            break;
        peer_reject(p, ISCSI_REJECT_NOT_SUPPORTED, got.bhs, ISCSI_BHS_SIZE);
        peer_pump(p);
        peer_expect_silence(p); /* it holds no number that would be missing */
        assert_int_equal(done, i + 1);
    }
    assert_int_equal(tmf.result, INI_REJECTED);
    assert_int_equal(ping.result, INI_REJECTED);
    peer_logout(p, got.h.itt, ISCSI_LOGOUT_DONE);
    peer_pump(p);
    assert_int_equal(logout.result, INI_OK);
}

/* ---- format errors and loss ---- */

/* [I-ERR-15] */
SCRIPT(a_pdu_that_no_target_sends_ends_the_session)
{
    static const uint8_t opcodes[] = {0x00, 0x01, 0x05, 0x23, 0x27, 0x3c, 0x3e};

    for (unsigned i = 0; i < sizeof opcodes; i++) {
        uint8_t bhs[ISCSI_BHS_SIZE] = {opcodes[i], 0x80};
        rig_login(r);
        struct peer *p = &r->peers[0];
        wire_put(&p->w, bhs, "text", 4);
        peer_pump(p);
        rig_expect_failure(r, INI_CLOSE_PROTOCOL);
        rig_close_all(r);
        r->event_count = 0;
    }
}

/* [I-LOG-07] */
SCRIPT(anything_but_a_login_response_during_login_ends_the_connection)
{
    static const uint8_t opcodes[] = {ISCSI_NOP_IN, ISCSI_REJECT, ISCSI_DATA_IN, 0x3f, 0x00};

    for (unsigned i = 0; i < sizeof opcodes; i++) {
        uint8_t bhs[ISCSI_BHS_SIZE] = {opcodes[i], 0x80};
        struct wire_pdu got;
        rig_open(r);
        struct peer *p = &r->peers[0];
        peer_expect(p, ISCSI_LOGIN_REQUEST, &got);
        wire_put(&p->w, bhs, NULL, 0);
        peer_pump(p);
        assert_int_equal(rig_events(r, INI_EVENT_LOGIN_FAILED), 1);
        rig_expect_failure(r, INI_CLOSE_LOGIN);
        rig_close_all(r);
        r->event_count = 0;
    }
}

static void answer_login(struct rig *r, struct iscsi_login_response pdu, const char *text,
                         uint32_t n)
{
    struct iscsi_login_request request;
    struct wire_pdu got;
    uint8_t bhs[ISCSI_BHS_SIZE];
    struct peer *p = &r->peers[0];

    peer_expect(p, ISCSI_LOGIN_REQUEST, &got);
    iscsi_login_request_unpack(got.bhs, &request);
    pdu.itt = request.itt;
    pdu.csg = request.csg;
    memcpy(pdu.isid, request.isid, sizeof pdu.isid);
    pdu.stat_sn = p->stat_sn;
    iscsi_login_response_pack(bhs, &pdu);
    wire_put(&p->w, bhs, text, n);
    peer_pump(p);
    peer_expect_silence(p);
}

/* [I-LOG-08] [I-LOG-16] */
SCRIPT(a_refused_login_is_told_with_whether_to_try_again)
{
    static const struct {
        uint16_t status;
        bool retryable;
    } answers[] = {{0x0201, false}, {0x0203, false}, {0x0204, false},
                   {0x0301, true},  {0x0302, true},  {0x0205, false}};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        rig_open(r);
        answer_login(r, (struct iscsi_login_response){.status = answers[i].status}, NULL, 0);
        const struct ini_event *event = rig_last(r, INI_EVENT_LOGIN_FAILED);
        assert_int_equal(event->login.status, answers[i].status);
        assert_int_equal(event->login.retryable, answers[i].retryable);
        assert_true(r->sentences[event - r->events][0]);
        rig_expect_failure(r, INI_CLOSE_LOGIN);
        rig_close_all(r);
        assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 1);
        r->event_count = 0;
    }
}

/* [I-LOG-09] */
SCRIPT(a_redirect_names_the_place_and_closes_the_connection)
{
    static const char address[] = "TargetAddress=[2001:db8::5]:3261";

    for (unsigned i = 0; i < 2; i++) {
        rig_open(r);
        answer_login(r,
                     (struct iscsi_login_response){.status = i ? ISCSI_LOGIN_MOVED_PERMANENTLY
                                                               : ISCSI_LOGIN_MOVED_TEMPORARILY},
                     address, sizeof address);
        const struct ini_event *event = rig_last(r, INI_EVENT_REDIRECT);
        assert_int_equal(event->redirect.permanent, i);
        assert_string_equal(r->sentences[event - r->events], "[2001:db8::5]:3261");
        rig_expect_failure(r, INI_CLOSE_LOGIN);
        assert_int_equal(rig_events(r, INI_EVENT_LOGIN_FAILED), 0);
        rig_close_all(r);
        r->event_count = 0;
    }
}

SCRIPT(a_transport_lost_during_login_is_told_as_a_failed_login)
{
    struct wire_pdu got;

    rig_open(r);
    peer_expect(&r->peers[0], ISCSI_LOGIN_REQUEST, &got);
    peer_lose(&r->peers[0]);
    assert_int_equal(rig_events(r, INI_EVENT_LOGIN_FAILED), 1);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 1);
}

/* [I-LOG-15] */
SCRIPT(a_login_without_an_answer_in_time_fails)
{
    struct wire_pdu got;

    rig_open(r);
    struct peer *p = &r->peers[0];
    peer_expect(p, ISCSI_LOGIN_REQUEST, &got);
    uint8_t byte[ISCSI_BHS_SIZE] = {ISCSI_LOGIN_RESPONSE};
    for (unsigned i = 0; i < 29; i++) { /* one byte a second keeps nobody waiting for longer */
        rig_tick(r, r->now + SECOND_NS);
        struct iovec iov;
        assert_int_equal(ini_conn_recv_space(p->c, &iov, 1), 1);
        memcpy(iov.iov_base, byte + i, 1);
        ini_conn_received(p->c, 1, r->now);
        assert_int_equal(rig_events(r, INI_EVENT_LOGIN_FAILED), 0);
    }
    rig_tick(r, r->now + SECOND_NS);
    assert_int_equal(rig_events(r, INI_EVENT_LOGIN_FAILED), 1);
    assert_true(rig_last(r, INI_EVENT_LOGIN_FAILED)->login.retryable);
    rig_expect_failure(r, INI_CLOSE_LOGIN);
    peer_lose(p);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 1);
}

/* The target's part of a write in steps; before each of them the connection may break. */
static bool play_write(struct rig *r, struct io *io, unsigned steps)
{
    struct peer *p = &r->peers[0];
    struct wire_pdu got;

    io_start(r, io);
    if (!steps--)
        return false;
    uint32_t itt = peer_expect_command(p, &got).itt;
    if (!steps--)
        return false;
    peer_r2t(p, (struct iscsi_r2t){.lun = io->task.lun,
                                   .itt = itt,
                                   .ttt = 1,
                                   .buffer_offset = 512,
                                   .desired_data_transfer_length = 1536,
                                   PEER_NUMBERS(p, false)});
    wire_push(&p->w);
    if (!steps--)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        peer_expect_data(p, &got);
        if (!steps--)
            return false;
    }
    peer_respond(p,
                 (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = 1, PEER_NUMBERS(p, true)},
                 NULL, 0);
    if (!steps--)
        return false;
    peer_pump(p);
    return true;
}

/* [I-ERR-11] */
SCRIPT(a_write_is_done_exactly_once_wherever_its_connection_breaks)
{
    bool whole = false;

    r->answers.mrdsl_in = 512;
    for (unsigned steps = 0; !whole; steps++) {
        struct io io;
        r->event_count = 0;
        rig_login(r);
        io_init(&io, INI_WRITE, 2048);
        whole = play_write(r, &io, steps);
        if (!whole)
            assert_int_equal(io.done, 0);
        peer_lose(&r->peers[0]);
        assert_int_equal(io.done, 1);
        assert_int_equal(io.task.result, whole ? INI_OK : INI_LOST);
        assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 1);
        assert_int_equal(rig_last(r, INI_EVENT_SESSION_DROPPED)->close.why, INI_CLOSE_TRANSPORT);
        /* A new session with the same ISID and TSIH 0 takes it again. */
        rig_close_all(r);
        rig_login(r);
        assert_true(play_write(r, &io, 100));
        assert_int_equal(io.task.result, INI_OK);
        rig_close_all(r);
        io_end(&io, 2);
    }
}

SCRIPT(tasks_submitted_before_the_login_are_sent_after_it)
{
    struct io io;
    struct wire_pdu got;

    rig_open(r);
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    peer_login(&r->peers[0]);
    peer_expect_command(&r->peers[0], &got);
    rig_close_all(r);
    io_end(&io, 1);
}

SCRIPT(tasks_after_the_end_are_refused)
{
    struct io io;

    rig_login(r);
    peer_lose(&r->peers[0]);
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    assert_int_equal(io.done, 0);
    rig_tick(r, r->now);
    assert_int_equal(io.task.result, INI_REFUSED);
    io_end(&io, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_header_digest_ends_the_session),
        cmocka_unit_test(a_wrong_data_digest_never_ends_a_read_well),
        cmocka_unit_test(a_wrong_data_digest_on_a_response_an_event_or_a_reject_ends_the_session),
        cmocka_unit_test(a_command_rejected_for_a_passing_reason_is_sent_again_as_it_was),
        cmocka_unit_test(a_command_rejected_without_end_fails),
        cmocka_unit_test(a_command_rejected_for_good_fails_and_its_number_is_filled),
        cmocka_unit_test(no_gap_is_filled_where_the_target_counted_the_rejected_command),
        cmocka_unit_test(a_reject_of_data_leaves_the_end_of_its_task_to_the_response),
        cmocka_unit_test(a_reject_that_quotes_nothing_known_changes_nothing),
        cmocka_unit_test(a_negotiation_reset_ends_the_session),
        cmocka_unit_test(a_target_that_waits_for_logout_gets_it),
        cmocka_unit_test(immediate_requests_are_sent_again_when_there_were_too_many),
        cmocka_unit_test(a_pdu_that_no_target_sends_ends_the_session),
        cmocka_unit_test(anything_but_a_login_response_during_login_ends_the_connection),
        cmocka_unit_test(a_refused_login_is_told_with_whether_to_try_again),
        cmocka_unit_test(a_redirect_names_the_place_and_closes_the_connection),
        cmocka_unit_test(a_transport_lost_during_login_is_told_as_a_failed_login),
        cmocka_unit_test(a_login_without_an_answer_in_time_fails),
        cmocka_unit_test(a_write_is_done_exactly_once_wherever_its_connection_breaks),
        cmocka_unit_test(tasks_submitted_before_the_login_are_sent_after_it),
        cmocka_unit_test(tasks_after_the_end_are_refused),
    };
    return cmocka_run_group_tests_name("ini_error", tests, NULL, NULL);
}
