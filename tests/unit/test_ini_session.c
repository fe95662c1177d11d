/* SPDX-License-Identifier: BSD-2-Clause */
/* Several connections in a session; memory. */
#include "ini_rig.h"

#include <stdlib.h>
#include <string.h>

static void on_logout(struct ini_logout *logout)
{
    (*(unsigned *)logout->user)++;
}

/* [I-MC-01] [I-LOG-12] */
SCRIPT(a_second_connection_joins_the_session)
{
    struct wire_pdu got;
    struct iscsi_login_request first, second;
    struct lp_error err = {0};

    rig_open(r);
    assert_null(ini_conn_new(r->s, 5, &err)); /* not before the leading login has ended */
    assert_true(err.msg[0]);
    peer_expect(&r->peers[0], ISCSI_LOGIN_REQUEST, &got);
    iscsi_login_request_unpack(got.bhs, &first);
    assert_int_equal(first.tsih, 0);
    rig_close_all(r);

    rig_login(r);
    assert_null(ini_conn_new(r->s, 0, &err)); /* the CID is taken */
    struct peer *p = rig_connect(r, 5);
    peer_expect(p, ISCSI_LOGIN_REQUEST, &got);
    iscsi_login_request_unpack(got.bhs, &second);
    assert_int_equal(second.tsih, r->tsih);
    assert_int_equal(second.cid, 5);
    assert_memory_equal(second.isid, first.isid, 6);
}

/* [I-MC-01] */
SCRIPT(no_more_connections_than_agreed)
{
    static const unsigned allowed[] = {1, 2, 4};

    for (unsigned i = 0; i < 3; i++) {
        struct lp_error err = {0};
        r->answers.max_connections = allowed[i];
        rig_login(r);
        for (unsigned k = 1; k < allowed[i]; k++)
            peer_login(rig_connect(r, (uint16_t)k));
        assert_null(ini_conn_new(r->s, 99, &err));
        rig_close_all(r);
    }
}

static void two_connections(struct rig *r)
{
    rig_login(r);
    peer_login(rig_connect(r, 7));
}

/* [I-MC-02] [I-NUM-01] */
SCRIPT(tasks_keep_to_their_connection_and_share_the_window)
{
    enum { TASKS = 10 };
    struct io io[TASKS];
    struct wire_pdu got;
    uint32_t itt[TASKS], owner[TASKS];
    bool seen[TASKS] = {false};

    r->answers.immediate_data = false;
    two_connections(r);
    uint32_t first = r->exp_cmd_sn;
    for (unsigned i = 0; i < TASKS; i++) {
        io_init(&io[i], INI_WRITE, 512);
        io_start(r, &io[i]);
    }
    unsigned n = 0, on[2] = {0};
    for (unsigned c = 0; c < 2; c++) {
        uint32_t last = first - 1;
        wire_pull(&r->peers[c].w);
        while (wire_take(&r->peers[c].w, &got)) {
            struct iscsi_scsi_command command;
            iscsi_scsi_command_unpack(got.bhs, &command);
            assert_true(command.cmd_sn > last); /* in order on each connection */
            last = command.cmd_sn;
            assert_in_range(command.cmd_sn - first, 0, TASKS - 1);
            assert_false(seen[command.cmd_sn - first]);
            seen[command.cmd_sn - first] = true;
            itt[n] = command.itt;
            owner[n++] = c;
            on[c]++;
        }
    }
    assert_int_equal(n, TASKS);
    assert_int_equal(on[0], TASKS / 2);
    for (unsigned i = 0; i < TASKS; i++) {
        struct peer *p = &r->peers[owner[i]];
        peer_r2t(p, (struct iscsi_r2t){.lun = io[0].task.lun,
                                       .itt = itt[i],
                                       .ttt = i,
                                       .desired_data_transfer_length = 512,
                                       PEER_NUMBERS(p, false)});
        peer_pump(p);
        assert_int_equal(peer_expect_data(p, &got).itt, itt[i]);
        peer_expect_silence(&r->peers[!owner[i]]);
        peer_respond(
            p, (struct iscsi_scsi_response){.itt = itt[i], .exp_data_sn = 1, PEER_NUMBERS(p, true)},
            NULL, 0);
        peer_pump(p);
    }
    for (unsigned i = 0; i < TASKS; i++) {
        assert_int_equal(io[i].task.result, INI_OK);
        io_end(&io[i], 1);
    }
}

/* [I-MC-02] */
SCRIPT(window_updates_count_from_any_connection_in_any_order)
{
    two_connections(r);
    struct peer *a = &r->peers[0], *b = &r->peers[1];
    uint32_t max = r->max_cmd_sn;
    r->max_cmd_sn = max + 10;
    peer_nop_in(
        b,
        (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(b, false)},
        NULL, 0);
    peer_pump(b);
    r->max_cmd_sn = max + 4;
    peer_nop_in(
        a,
        (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(a, false)},
        NULL, 0);
    peer_pump(a);
    assert_int_equal(ini_session_window(r->s), 138);
}

/* [I-MC-02] [I-NUM-09] */
SCRIPT(an_answer_on_the_wrong_connection_ends_the_session)
{
    struct io io;
    struct wire_pdu got;

    two_connections(r);
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    unsigned owner = 0;
    wire_pull(&r->peers[0].w);
    if (!wire_take(&r->peers[0].w, &got)) {
        owner = 1;
        peer_expect_command(&r->peers[1], &got);
    }
    peer_good(&r->peers[!owner], got.h.itt);
    peer_pump(&r->peers[!owner]);
    assert_int_equal(io.done, 0);
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    rig_close_all(r);
    assert_int_equal(io.task.result, INI_LOST);
    io_end(&io, 1);
}

/* [I-MC-02] [I-TMF-01] */
SCRIPT(an_abort_uses_the_connection_of_its_task)
{
    struct io io[2];
    struct wire_pdu got;
    struct ini_tmf tmf[2] = {{.deadline_ns = INI_NEVER}, {.deadline_ns = INI_NEVER}};

    two_connections(r);
    for (unsigned i = 0; i < 2; i++) {
        io_init(&io[i], INI_NONE, 0);
        io_start(r, &io[i]);
    }
    uint32_t tags[2];
    for (unsigned c = 0; c < 2; c++)
        tags[c] = peer_expect_command(&r->peers[c], &got).itt;
    for (unsigned c = 0; c < 2; c++) {
        struct iscsi_tmf_request sent;
        uint32_t itt = tags[c];
        unsigned at = io[0].task.op.itt == itt ? 0 : 1;
        assert_true(ini_abort(&io[at].task, &tmf[at]));
        peer_expect(&r->peers[c], ISCSI_TMF_REQUEST, &got);
        iscsi_tmf_request_unpack(got.bhs, &sent);
        assert_int_equal(sent.referenced_task_tag, itt);
        peer_expect_silence(&r->peers[!c]);
    }
    rig_close_all(r);
    io_end(&io[0], 1);
    io_end(&io[1], 1);
}

/* [I-MC-03] [I-ASY-01] */
SCRIPT(one_of_two_connections_is_logged_out_and_the_other_goes_on)
{
    enum { TASKS = 6 };
    struct io io[TASKS];
    struct wire_pdu got;
    struct iscsi_logout_request logout;

    two_connections(r);
    struct peer *a = &r->peers[0], *b = &r->peers[1];
    for (unsigned i = 0; i < TASKS; i++)
        io_init(&io[i], INI_NONE, 0);
    io_start(r, &io[0]);
    io_start(r, &io[1]);
    uint32_t itt_a = peer_expect_command(a, &got).itt, itt_b = peer_expect_command(b, &got).itt;
    for (unsigned i = 2; i < TASKS; i++) /* two of them would be the first connection's */
        io_start(r, &io[i]);
    peer_async(a,
               (struct iscsi_async){
                   .event = ISCSI_ASYNC_LOGOUT_REQUESTED, .parameter3 = 10, PEER_NUMBERS(a, true)},
               NULL, 0);
    wire_push(&a->w);
    peer_expect_silence(a);
    peer_good(a, itt_a);
    peer_pump(a);
    peer_expect(a, ISCSI_LOGOUT_REQUEST, &got);
    iscsi_logout_request_unpack(got.bhs, &logout);
    assert_int_equal(logout.reason, ISCSI_LOGOUT_CONNECTION);
    assert_int_equal(logout.cid, a->cid);
    peer_logout(a, logout.itt, ISCSI_LOGOUT_DONE);
    peer_pump(a);
    assert_true(a->closed);
    assert_false(b->closed);
    peer_lose(a);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 0);
    assert_int_equal(rig_events(r, INI_EVENT_LOGGED_OUT), 0);
    peer_good(b, itt_b);
    peer_pump(b);
    for (unsigned i = 2; i < TASKS; i++) {
        peer_good(b, peer_expect_command(b, &got).itt);
        peer_pump(b);
    }
    for (unsigned i = 0; i < TASKS; i++) {
        assert_int_equal(io[i].task.result, INI_OK);
        io_end(&io[i], 1);
    }
}

/* [I-MC-03] [I-LGO-01] */
SCRIPT(a_session_logout_stops_all_connections)
{
    struct wire_pdu got;
    unsigned done = 0;
    struct io io;
    struct ini_logout logout = {
        .reason = ISCSI_LOGOUT_SESSION, .deadline_ns = INI_NEVER, .done = on_logout, .user = &done};

    two_connections(r);
    ini_logout(r->s, &logout);
    peer_expect(&r->peers[0], ISCSI_LOGOUT_REQUEST, &got);
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    peer_expect_silence(&r->peers[0]);
    peer_expect_silence(&r->peers[1]);
    peer_logout(&r->peers[0], got.h.itt, ISCSI_LOGOUT_DONE);
    peer_pump(&r->peers[0]);
    assert_true(r->peers[0].closed);
    assert_true(r->peers[1].closed);
    peer_lose(&r->peers[0]);
    assert_int_equal(rig_events(r, INI_EVENT_LOGGED_OUT), 0);
    peer_lose(&r->peers[1]);
    assert_int_equal(rig_events(r, INI_EVENT_LOGGED_OUT), 1);
    assert_int_equal(done, 1);
    io_end(&io, 1);
}

/* [I-ERR-11] */
SCRIPT(the_loss_of_one_connection_is_the_loss_of_the_session_at_level_0)
{
    struct io io[4];

    two_connections(r);
    for (unsigned i = 0; i < 4; i++) {
        io_init(&io[i], INI_NONE, 0);
        io_start(r, &io[i]);
    }
    wire_pull(&r->peers[0].w);
    wire_pull(&r->peers[1].w);
    peer_lose(&r->peers[1]);
    assert_true(r->peers[0].closed);
    assert_int_equal(rig_last(r, INI_EVENT_CONN_CLOSE)->close.why, INI_CLOSE_SESSION);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 0);
    assert_int_equal(io[0].done + io[1].done + io[2].done + io[3].done, 2);
    peer_lose(&r->peers[0]);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 1);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(io[i].task.result, INI_LOST);
        io_end(&io[i], 1);
    }
}

SCRIPT(a_failed_login_of_a_second_connection_leaves_the_session)
{
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = rig_connect(r, 3);
    peer_expect(p, ISCSI_LOGIN_REQUEST, &got);
    uint8_t bhs[ISCSI_BHS_SIZE] = {ISCSI_NOP_IN, 0x80};
    wire_put(&p->w, bhs, NULL, 0);
    peer_pump(p);
    assert_true(p->closed);
    assert_false(r->peers[0].closed);
    assert_int_equal(rig_events(r, INI_EVENT_LOGIN_FAILED), 1);
    peer_lose(p);
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    peer_good(&r->peers[0], peer_expect_command(&r->peers[0], &got).itt);
    peer_pump(&r->peers[0]);
    assert_int_equal(io.task.result, INI_OK);
    io_end(&io, 1);
}

/* ---- memory ---- */

static unsigned long allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
    allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    allocations++;
    return __real_realloc(p, n);
}

/* One read and one write of 64 KiB, through the wire whose memory is large enough by now. */
static void one_of_each(struct rig *r, struct io *read, struct io *write)
{
    static uint8_t data[65536];
    struct peer *p = &r->peers[0];
    struct wire_pdu got;

    io_start(r, read);
    uint32_t itt = peer_expect_command(p, &got).itt;
    peer_data_in(p,
                 (struct iscsi_data_in){.final = true,
                                        .status_present = true,
                                        .itt = itt,
                                        .ttt = ISCSI_TAG_NONE,
                                        PEER_NUMBERS(p, true)},
                 data, sizeof data);
    peer_pump(p);
    io_start(r, write);
    itt = peer_expect_command(p, &got).itt;
    peer_r2t(p, (struct iscsi_r2t){.lun = write->task.lun,
                                   .itt = itt,
                                   .ttt = 1,
                                   .buffer_offset = 8192,
                                   .desired_data_transfer_length = sizeof data - 8192,
                                   PEER_NUMBERS(p, false)});
    peer_pump(p);
    while (wire_take(&p->w, &got))
        ;
    peer_respond(p,
                 (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = 1, PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    assert_int_equal(read->task.result, INI_OK);
    assert_int_equal(write->task.result, INI_OK);
    p->w.from.length = p->w.taken = 0; /* the wire keeps its memory for the next round */
}

SCRIPT(no_memory_is_allocated_per_io)
{
    struct io read, write;

    if (r->mode == WIRE_BYTES)
        return; /* the same code, 100 times slower */
    r->answers.mrdsl_in = 8192;
    rig_login(r);
    io_init(&read, INI_READ, 65536);
    io_init(&write, INI_WRITE, 65536);
    one_of_each(r, &read, &write);
    unsigned long before = allocations;
    for (unsigned i = 0; i < 20; i++)
        one_of_each(r, &read, &write);
    assert_int_equal(allocations, before);
    rig_close_all(r);
    io_end(&read, 21);
    io_end(&write, 21);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_connection_joins_the_session),
        cmocka_unit_test(no_more_connections_than_agreed),
        cmocka_unit_test(tasks_keep_to_their_connection_and_share_the_window),
        cmocka_unit_test(window_updates_count_from_any_connection_in_any_order),
        cmocka_unit_test(an_answer_on_the_wrong_connection_ends_the_session),
        cmocka_unit_test(an_abort_uses_the_connection_of_its_task),
        cmocka_unit_test(one_of_two_connections_is_logged_out_and_the_other_goes_on),
        cmocka_unit_test(a_session_logout_stops_all_connections),
        cmocka_unit_test(the_loss_of_one_connection_is_the_loss_of_the_session_at_level_0),
        cmocka_unit_test(a_failed_login_of_a_second_connection_leaves_the_session),
        cmocka_unit_test(no_memory_is_allocated_per_io),
    };
    return cmocka_run_group_tests_name("ini_session", tests, NULL, NULL);
}
