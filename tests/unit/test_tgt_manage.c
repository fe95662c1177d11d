/* SPDX-License-Identifier: BSD-2-Clause */
/* Target: task management, logout, Async. */
#include "tgt_rig.h"

#include <string.h>

#include "base/bytes.h"

static void be_manual(struct trig *r)
{
    r->manual = true;
}

static void expect_tmf(struct trig *r, unsigned i, uint32_t itt, uint8_t response)
{
    struct wire_pdu pdu;

    trig_expect(r, i, ISCSI_TMF_RESPONSE, &pdu);
    assert_int_equal(pdu.h.itt, itt);
    assert_int_equal(pdu.bhs[2], response);
}

static void abort_task(struct trig *r, uint32_t itt, const struct iscsi_scsi_command *task)
{
    struct iscsi_tmf_request tmf = trig_tmf(r, itt, ISCSI_ABORT_TASK);

    tmf.referenced_task_tag = task->itt;
    tmf.ref_cmd_sn = task->cmd_sn;
    trig_put_tmf(r, 0, &tmf);
}

#define R2T_ONLY "InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=4096\0FirstBurstLength=4096\0"

/* [T-TMF-01] */
static void an_aborted_task_sends_nothing_after_the_answer(struct trig *r)
{
    static uint8_t data[4096];
    struct iscsi_scsi_command write, read;
    struct wire_pdu pdu;
    struct iscsi_r2t r2t;

    trig_start(r, R2T_ONLY);
    write = trig_write(r, 1, 0, 8);
    trig_put_command(r, 0, &write, NULL, 0);
    trig_expect(r, 0, ISCSI_R2T, &pdu);
    iscsi_r2t_unpack(pdu.bhs, &r2t);
    abort_task(r, 50, &write);                            /* while it waits for its data */
    trig_put_data(r, 0, 1, r2t.ttt, 0, data, 2048 + 512); /* and these are on their way already */
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    trig_expect_nothing(r, 0);
    read = trig_read(r, 2, 0, 1);
    trig_put_command(r, 0, &read, NULL, 0);
    trig_pump(r);
    abort_task(r, 51, &read); /* while the owner has it */
    expect_tmf(r, 0, 51, ISCSI_TMF_COMPLETE);
    trig_expect_nothing(r, 0);
    abort_task(r, 52, &read); /* it is gone, and its number is used up */
    expect_tmf(r, 0, 52, ISCSI_TMF_NO_TASK);
}

/* [T-TMF-01] */
static void a_response_that_is_not_sent_yet_can_be_aborted(struct trig *r)
{
    struct iscsi_scsi_command read;
    struct wire *w = &r->conns[0].wire;
    struct tgt_task *task;
    struct iovec iov = {r->ram, sizeof r->ram};

    trig_start(r, "MaxRecvDataSegmentLength=512\0");
    read = trig_read(r, 1, 0, 1000);
    trig_put_command(r, 0, &read, NULL, 0);
    trig_pump(r);
    task = trig_task(r, 1);
    r->tasks[0] = NULL;
    tgt_task_respond(task, &(struct tgt_answer){
                               .iov = &iov, .iov_count = 1, .length = 512000, .transfer = 512000});
    abort_task(r, 50, &read);
    wire_push(w); /* nothing of the read was taken before */
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    trig_expect_nothing(r, 0);
    assert_int_equal(r->released, 1);
}

/* [T-TMF-02] [T-TMF-01] */
static void abort_of_a_command_that_never_came_fills_its_number(struct trig *r)
{
    struct iscsi_scsi_command lost, later;
    struct iscsi_tmf_request tmf;

    trig_start(r, "");
    lost = trig_ready(r, 1);
    later = trig_ready(r, 2);
    trig_put_command(r, 0, &later, NULL, 0);
    trig_pump(r);
    assert_int_equal(r->commands, 0);
    abort_task(r, 50, &lost);
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    trig_pump(r);
    assert_int_equal(r->commands, 1);
    trig_put_command(r, 0, &lost, NULL, 0); /* late: dropped */
    trig_respond(trig_task(r, 2), 0);
    trig_expect_status(r, 0, 2, 0);
    trig_expect_nothing(r, 0);
    assert_int_equal(r->commands, 1);
    tmf = trig_tmf(r, 51, ISCSI_ABORT_TASK);
    tmf.referenced_task_tag = 77;
    tmf.ref_cmd_sn = r->cmd_sn + 1000;
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 51, ISCSI_TMF_NO_TASK);
}

/* [T-TMF-02] */
static void a_command_that_waits_for_its_turn_can_be_aborted(struct trig *r)
{
    struct iscsi_scsi_command first, held;

    trig_start(r, "");
    first = trig_ready(r, 1);
    held = trig_ready(r, 2);
    trig_put_command(r, 0, &held, NULL, 0);
    trig_pump(r);
    abort_task(r, 50, &held);
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    trig_put_command(r, 0, &first, NULL, 0);
    trig_pump(r);
    trig_respond(trig_task(r, 1), 0);
    trig_expect_status(r, 0, 1, 0);
    assert_int_equal(r->commands, 1);
    first = trig_ready(r, 3); /* the numbers go on */
    trig_put_command(r, 0, &first, NULL, 0);
    trig_pump(r);
    trig_respond(trig_task(r, 3), 0);
    trig_expect_status(r, 0, 3, 0);
}

/* [T-TMF-03] */
static void a_task_set_abort_waits_for_data_and_spares_later_commands(struct trig *r)
{
    static uint8_t data[4096];
    struct iscsi_scsi_command write[3], after;
    struct iscsi_tmf_request tmf;
    struct wire_pdu pdu;
    uint32_t ttt[3];

    trig_start(r, R2T_ONLY);
    for (uint32_t i = 0; i < 3; i++) {
        write[i] = trig_write(r, i, 8 * i, 16);
        trig_put_command(r, 0, &write[i], NULL, 0);
        trig_expect(r, 0, ISCSI_R2T, &pdu);
        ttt[i] = load_be32(pdu.bhs + 20);
    }
    tmf = trig_tmf(r, 50, ISCSI_ABORT_TASK_SET);
    trig_put_tmf(r, 0, &tmf);
    after = trig_ready(r, 9);
    trig_put_command(r, 0, &after, NULL, 0);
    for (unsigned i = 0; i < 3; i++) {
        trig_expect_nothing(r, 0);
        assert_int_equal(r->tmf_count, 0);
        assert_int_equal(r->commands, 3);
        trig_put_data(r, 0, i, ttt[i], 0, data, 4096);
    }
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    assert_null(trig_task(r, 0));
    assert_non_null(trig_task(r, 9));
    trig_respond(trig_task(r, 9), 0);
    trig_expect_status(r, 0, 9, 0);
    trig_expect_nothing(r, 0);
}

/* [T-TMF-03] */
static void a_task_set_abort_waits_for_commands_before_it(struct trig *r)
{
    struct iscsi_scsi_command missing, early;
    struct iscsi_tmf_request tmf;

    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    missing = trig_ready(r, 1);
    early = trig_ready(r, 2);
    trig_put_command(r, 0, &early, NULL, 0);
    tmf = trig_tmf(r, 50, ISCSI_ABORT_TASK_SET);
    trig_put_tmf(r, 0, &tmf);
    trig_expect_nothing(r, 0);
    assert_int_equal(r->tmf_count, 0);
    trig_put_command(r, 1, &missing, NULL, 0);
    trig_expect_nothing(r, 1);
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    assert_int_equal(r->commands, 2);
    assert_int_equal(r->released, 2);
}

/* [T-TMF-03] */
static void a_task_set_abort_does_not_wait_for_ever(struct trig *r)
{
    struct iscsi_scsi_command write;
    struct iscsi_tmf_request tmf;
    struct wire_pdu pdu;

    trig_start(r, R2T_ONLY);
    write = trig_write(r, 1, 0, 8);
    trig_put_command(r, 0, &write, NULL, 0);
    trig_expect(r, 0, ISCSI_R2T, &pdu);
    tmf = trig_tmf(r, 50, ISCSI_CLEAR_TASK_SET);
    trig_put_tmf(r, 0, &tmf);
    trig_pump(r);
    trig_tick(r, 10000000000);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->conns[0].why, TGT_CLOSE_TIMEOUT);
}

/* [T-TMF-04] */
static void functions_that_cannot_be_are_answered_so(struct trig *r)
{
    struct iscsi_tmf_request tmf;

    trig_start(r, "");
    tmf = trig_tmf(r, 50, ISCSI_LOGICAL_UNIT_RESET);
    tmf.lun = 5ull << 48;
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 50, ISCSI_TMF_NO_LUN);
    tmf = trig_tmf(r, 51, 0x55);
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 51, ISCSI_TMF_NOT_SUPPORTED);
    r->manual_tmf = true;
    r->tmf_count = 0;
    tmf = trig_tmf(r, 52, ISCSI_CLEAR_ACA);
    trig_put_tmf(r, 0, &tmf);
    tmf = trig_tmf(r, 53, ISCSI_ABORT_TASK); /* of a task management function */
    tmf.referenced_task_tag = 52;
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 53, ISCSI_TMF_REJECTED);
    tgt_tmf_respond(r->tmfs[0], ISCSI_TMF_COMPLETE, 0);
    expect_tmf(r, 0, 52, ISCSI_TMF_COMPLETE);
}

/* [T-TMF-05] */
static void a_lu_reset_ends_the_tasks_of_all_initiators(struct trig *r)
{
    struct iscsi_scsi_command ready;
    struct iscsi_tmf_request tmf;

    trig_start(r, "");
    r->isid[5] = 9;
    assert_true(trig_connect(r, 1));
    assert_int_equal(trig_login(r, 1, RIG_KEYS, sizeof RIG_KEYS - 1, 0), 0);
    assert_int_equal(r->opened, 2);
    ready = trig_ready(r, 1);
    trig_put_command(r, 1, &ready, NULL, 0);
    trig_pump(r);
    assert_int_equal(r->commands, 1);
    tmf = trig_tmf(r, 50, ISCSI_LOGICAL_UNIT_RESET);
    tmf.cmd_sn = 100;
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    assert_int_equal(r->released, 1);
    trig_expect_nothing(r, 1);
    ready.itt = 2; /* its session goes on */
    ready.cmd_sn = 101;
    trig_put_command(r, 1, &ready, NULL, 0);
    trig_pump(r);
    trig_respond(trig_task(r, 2), 0);
    trig_expect_status(r, 1, 2, 0);
}

/* [T-TMF-06] */
static void a_warm_reset_does_not_wait_for_commands_that_never_came(struct trig *r)
{
    struct iscsi_tmf_request tmf;
    struct iscsi_scsi_command ready;

    trig_start(r, "");
    trig_ready(r, 1); /* lost */
    tmf = trig_tmf(r, 50, ISCSI_TARGET_WARM_RESET);
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    ready = trig_ready(r, 2);
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_pump(r);
    assert_int_equal(r->commands, 1);
    trig_respond(trig_task(r, 2), 0);
    trig_expect_status(r, 0, 2, 0);
}

/* [T-TMF-06] */
static void a_cold_reset_closes_all_sessions(struct trig *r)
{
    struct iscsi_tmf_request tmf;

    trig_start(r, "");
    r->isid[5] = 9;
    assert_true(trig_connect(r, 1));
    assert_int_equal(trig_login(r, 1, RIG_KEYS, sizeof RIG_KEYS - 1, 0), 0);
    tmf = trig_tmf(r, 50, ISCSI_TARGET_COLD_RESET);
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    assert_true(r->conns[0].closed && r->conns[1].closed);
    assert_int_equal(r->session_closed, 2);
    assert_int_equal(r->end, TGT_END_OWNER);
}

/* [T-TMF-07] */
static void reassigning_is_not_supported_at_level_0(struct trig *r)
{
    struct iscsi_tmf_request tmf;

    trig_start(r, "");
    tmf = trig_tmf(r, 50, ISCSI_TASK_REASSIGN);
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 50, ISCSI_TMF_NO_REASSIGN);
    tmf = trig_tmf(r, 51, ISCSI_TASK_REASSIGN);
    tmf.immediate = false;
    r->cmd_sn++;
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 51, ISCSI_TMF_REJECTED);
}

/* [T-TMF-09] */
static void functions_of_rfc_7144_are_answered_by_level(struct trig *r)
{
    struct iscsi_scsi_command ready;
    struct iscsi_tmf_request tmf;
    bool new_level = r->mode % 2;

    if (new_level)
        trig_start(r, "iSCSIProtocolLevel=2\0");
    else
        trig_start(r, "");
    ready = trig_ready(r, 1);
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_pump(r);
    tmf = trig_tmf(r, 50, ISCSI_QUERY_TASK);
    tmf.referenced_task_tag = 1;
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 50, new_level ? ISCSI_TMF_SUCCEEDED : ISCSI_TMF_NOT_SUPPORTED);
    tmf.itt = 51;
    tmf.referenced_task_tag = 2;
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 51, new_level ? ISCSI_TMF_COMPLETE : ISCSI_TMF_NOT_SUPPORTED);
    tmf = trig_tmf(r, 52, ISCSI_QUERY_ASYNC_EVENT);
    trig_put_tmf(r, 0, &tmf);
    expect_tmf(r, 0, 52, new_level ? ISCSI_TMF_COMPLETE : ISCSI_TMF_NOT_SUPPORTED);
    if (trig_task(r, 1)) {
        trig_respond(trig_task(r, 1), 0);
        trig_expect_status(r, 0, 1, 0);
    }
}

/* [T-TMF-10] */
static void a_task_set_answer_is_fenced_on_all_connections(struct trig *r)
{
    struct iscsi_scsi_command older, newer;
    struct iscsi_tmf_request tmf;
    struct wire_pdu pdu;

    trig_start(r, "MaxConnections=2\0TaskReporting=ResponseFence\0");
    trig_join(r, 1);
    older = trig_ready(r, 1);
    trig_put_command(r, 1, &older, NULL, 0);
    trig_pump(r);
    trig_respond(trig_task(r, 1), 0);
    trig_expect_status(r, 1, 1, 0); /* sent, and not acknowledged */
    tmf = trig_tmf(r, 50, ISCSI_ABORT_TASK_SET);
    trig_put_tmf(r, 0, &tmf);
    trig_expect_nothing(r, 0);
    trig_expect(r, 1, ISCSI_NOP_IN, &pdu); /* asks for the acknowledgment */
    newer = trig_ready(r, 2);
    trig_put_command(r, 0, &newer, NULL, 0);
    trig_pump(r);
    trig_respond(trig_task(r, 2), 0);
    trig_expect_nothing(r, 0); /* waits behind the fence */
    trig_acknowledge(r, 1);
    trig_pump(r);
    expect_tmf(r, 0, 50, ISCSI_TMF_COMPLETE);
    assert_true(trig_take(r, 0, &pdu)); /* asks that its answer be acknowledged */
    assert_int_equal(pdu.h.opcode, ISCSI_NOP_IN);
    trig_expect_nothing(r, 0);
    trig_acknowledge(r, 0);
    trig_expect_status(r, 0, 2, 0);
}

/* ---- logout ---- */

static void expect_logout(struct trig *r, unsigned i, uint32_t itt, uint8_t response)
{
    struct wire_pdu pdu;

    trig_expect(r, i, ISCSI_LOGOUT_RESPONSE, &pdu);
    assert_int_equal(pdu.h.itt, itt);
    assert_int_equal(pdu.bhs[2], response);
}

/* [T-LGO-01] [T-LGO-03] */
static void a_session_logout_ends_all_its_connections_and_tasks(struct trig *r)
{
    struct iscsi_scsi_command ready;

    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    r->hang = true;
    for (uint32_t i = 0; i < 3; i++) {
        ready = trig_ready(r, i);
        trig_put_command(r, i % 2, &ready, NULL, 0);
        trig_pump(r);
    }
    trig_put_logout(r, 0, 50, ISCSI_LOGOUT_SESSION, 0);
    trig_expect_nothing(r, 0); /* the owner still has its tasks */
    assert_true(r->conns[1].closed);
    assert_int_equal(r->aborts, 3);
    assert_int_equal(r->session_closed, 0);
    for (uint32_t i = 0; i < 3; i++)
        trig_end(r, trig_task(r, i));
    expect_logout(r, 0, 50, ISCSI_LOGOUT_DONE);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->conns[0].why, TGT_CLOSE_LOGGED_OUT);
    assert_int_equal(r->session_closed, 1);
    assert_int_equal(r->end, TGT_END_LOGOUT);
    assert_int_equal(r->cleared, 0);
}

/* [T-LGO-01] [T-LGO-03] */
static void a_connection_logout_ends_the_named_one_only(struct trig *r)
{
    struct iscsi_scsi_command ready;

    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    ready = trig_ready(r, 1);
    trig_put_command(r, 1, &ready, NULL, 0);
    trig_pump(r);
    trig_put_logout(r, 0, 50, ISCSI_LOGOUT_CONNECTION, 1);
    expect_logout(r, 0, 50, ISCSI_LOGOUT_DONE);
    assert_true(r->conns[1].closed && !r->conns[0].closed);
    assert_int_equal(r->cleared, 1);
    assert_int_equal(r->session_closed, 0);
    trig_put_logout(r, 0, 51, ISCSI_LOGOUT_CONNECTION, 0);
    expect_logout(r, 0, 51, ISCSI_LOGOUT_DONE);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->end, TGT_END_LOGOUT);
}

/* [T-LGO-02] */
static void a_logout_that_cannot_be_leaves_all_as_it_was(struct trig *r)
{
    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    trig_put_logout(r, 0, 50, ISCSI_LOGOUT_CONNECTION, 7);
    expect_logout(r, 0, 50, ISCSI_LOGOUT_NO_CID);
    trig_put_logout(r, 0, 51, ISCSI_LOGOUT_RECOVERY, 1);
    expect_logout(r, 0, 51, ISCSI_LOGOUT_NO_RECOVERY);
    assert_false(r->conns[0].closed || r->conns[1].closed);
}

/* ---- Async ---- */

static void expect_async(struct trig *r, unsigned i, uint8_t event, uint16_t p1, uint16_t p2,
                         uint16_t p3)
{
    struct wire_pdu pdu;
    struct iscsi_async async;

    trig_expect(r, i, ISCSI_ASYNC, &pdu); /* trig_take() checks that StatSN advances */
    iscsi_async_unpack(pdu.bhs, &async);
    assert_int_equal(pdu.h.itt, ISCSI_TAG_NONE);
    assert_int_equal(async.event, event);
    assert_int_equal(async.parameter1, p1);
    assert_int_equal(async.parameter2, p2);
    assert_int_equal(async.parameter3, p3);
}

/* [T-ASY-01] [T-ASY-02] [T-LOG-21] */
static void a_stop_asks_to_log_out_and_drops_who_does_not(struct trig *r)
{
    struct iscsi_scsi_command old, late;

    trig_start(r, "");
    old = trig_ready(r, 1);
    trig_put_command(r, 0, &old, NULL, 0);
    trig_pump(r);
    tgt_stop(r->tgt, 7);
    expect_async(r, 0, ISCSI_ASYNC_LOGOUT_REQUESTED, 0, 0, 7);
    late = trig_ready(r, 2);
    trig_put_command(r, 0, &late, NULL, 0);
    trig_expect_reject(r, 0, ISCSI_REJECT_WAITING_FOR_LOGOUT);
    trig_respond(trig_task(r, 1), 0); /* what runs may end */
    trig_expect_status(r, 0, 1, 0);
    r->isid[5] = 9;
    assert_true(trig_connect(r, 1));
    assert_int_equal(trig_login(r, 1, RIG_KEYS, sizeof RIG_KEYS - 1, 0), ISCSI_LOGIN_UNAVAILABLE);
    trig_tick(r, 7000000000);
    expect_async(r, 0, ISCSI_ASYNC_CONNECTION_DROP, 0, 2, 20);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->conns[0].why, TGT_CLOSE_OWNER);
}

/* [T-ASY-01] */
static void who_logs_out_when_asked_is_answered(struct trig *r)
{
    trig_start(r, "");
    tgt_conn_ask_logout(r->conns[0].conn, 7);
    expect_async(r, 0, ISCSI_ASYNC_LOGOUT_REQUESTED, 0, 0, 7);
    trig_put_logout(r, 0, 50, ISCSI_LOGOUT_SESSION, 0);
    expect_logout(r, 0, 50, ISCSI_LOGOUT_DONE);
    assert_true(r->conns[0].closed);
}

/* [T-ASY-02] */
static void a_closed_session_is_announced_on_each_connection(struct trig *r)
{
    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    tgt_session_close(r->session, "the test closes it");
    expect_async(r, 0, ISCSI_ASYNC_SESSION_DROP, 0, 2, 0);
    expect_async(r, 1, ISCSI_ASYNC_SESSION_DROP, 0, 2, 0);
    assert_true(r->conns[0].closed && r->conns[1].closed);
    assert_int_equal(r->end, TGT_END_OWNER);
}

/* [T-ASY-03] */
static void a_scsi_event_carries_its_sense(struct trig *r)
{
    static const uint8_t sense[18] = {0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x2a, 9};
    struct tgt_async async = {.event = ISCSI_ASYNC_SCSI, .sense = sense, .sense_length = 18};
    struct wire_pdu pdu;

    trig_start(r, "");
    async.lun = 3ull << 48;
    assert_true(tgt_conn_async(r->conns[0].conn, &async));
    trig_expect(r, 0, ISCSI_ASYNC, &pdu);
    assert_int_equal(load_be64(pdu.bhs + 8), async.lun);
    assert_int_equal(pdu.data_length, 20);
    assert_int_equal(load_be16(pdu.data), 18);
    assert_memory_equal(pdu.data + 2, sense, 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_WITH(an_aborted_task_sends_nothing_after_the_answer, be_manual),
        RIG_WITH(a_response_that_is_not_sent_yet_can_be_aborted, be_manual),
        RIG_WITH(abort_of_a_command_that_never_came_fills_its_number, be_manual),
        RIG_WITH(a_command_that_waits_for_its_turn_can_be_aborted, be_manual),
        RIG_WITH(a_task_set_abort_waits_for_data_and_spares_later_commands, be_manual),
        RIG_WITH(a_task_set_abort_waits_for_commands_before_it, be_manual),
        RIG_WITH(a_task_set_abort_does_not_wait_for_ever, be_manual),
        RIG(functions_that_cannot_be_are_answered_so),
        RIG_WITH(a_lu_reset_ends_the_tasks_of_all_initiators, be_manual),
        RIG_WITH(a_warm_reset_does_not_wait_for_commands_that_never_came, be_manual),
        RIG(a_cold_reset_closes_all_sessions),
        RIG(reassigning_is_not_supported_at_level_0),
        RIG_WITH(functions_of_rfc_7144_are_answered_by_level, be_manual),
        RIG_WITH(a_task_set_answer_is_fenced_on_all_connections, be_manual),
        RIG_WITH(a_session_logout_ends_all_its_connections_and_tasks, be_manual),
        RIG_WITH(a_connection_logout_ends_the_named_one_only, be_manual),
        RIG(a_logout_that_cannot_be_leaves_all_as_it_was),
        RIG_WITH(a_stop_asks_to_log_out_and_drops_who_does_not, be_manual),
        RIG(who_logs_out_when_asked_is_answered),
        RIG(a_closed_session_is_announced_on_each_connection),
        RIG(a_scsi_event_carries_its_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
