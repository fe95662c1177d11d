/* SPDX-License-Identifier: BSD-2-Clause */
/* NOP in both directions, asynchronous messages. */
#include "ini_rig.h"

#include <string.h>

static const uint64_t LUN_1 = 0x0001000000000000;

static void count_ping(struct ini_ping *ping)
{
    (*(unsigned *)ping->user)++;
}

static uint32_t start(struct rig *r, struct io *io, enum ini_direction direction, uint32_t length)
{
    struct wire_pdu got;

    io_init(io, direction, length);
    io_start(r, io);
    return peer_expect_command(&r->peers[0], &got).itt;
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
    return cmocka_run_group_tests_name("ini_nop", tests, NULL, NULL);
}
