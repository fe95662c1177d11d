/* SPDX-License-Identifier: BSD-2-Clause */
/* Target: logins to sessions, reinstatement, loss, caps. */
#include "tgt_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static void be_manual(struct trig *r)
{
    r->manual = true;
}

/* MaxConnections is of the leading login only. */
static uint16_t send_login(struct trig *r, unsigned i, uint16_t tsih)
{
    return tsih ? trig_login(r, i, KEYS(RIG_KEYS), tsih)
                : trig_login(r, i, KEYS(RIG_KEYS "MaxConnections=2\0"), tsih);
}

static uint16_t login(struct trig *r, unsigned i, uint16_t tsih)
{
    assert_true(trig_connect(r, i));
    return send_login(r, i, tsih);
}

/* [T-LOG-06] [T-LOG-08] */
static void the_table_of_isid_tsih_and_cid(struct trig *r)
{
    uint16_t first;

    assert_int_equal(login(r, 0, 0), 0); /* new, zero */
    first = r->tsih;
    assert_int_not_equal(first, 0);
    assert_int_equal(login(r, 1, first), 0); /* existing, existing, new CID */
    assert_int_equal(tgt_session_conn_count(r->session), 2);
    assert_int_equal(login(r, 2, (uint16_t)(first + 1)), ISCSI_LOGIN_NO_SESSION);
    r->isid[5] = 9;
    assert_int_equal(login(r, 2, first), ISCSI_LOGIN_NO_SESSION); /* new ISID, non-zero */
    r->isid[5] = 1;
    assert_int_equal(r->opened, 1);
    assert_int_equal(login(r, 3, 0), 0); /* existing, zero: reinstatement */
    trig_pump(r);
    assert_int_equal(r->opened, 2);
    assert_int_equal(r->session_closed, 1);
    assert_int_equal(r->end, TGT_END_REINSTATED);
    assert_true(r->conns[0].closed && r->conns[1].closed && !r->conns[3].closed);
    assert_int_not_equal(r->tsih, first);
}

/* [T-LOG-07] */
static void more_connections_than_agreed_are_refused(struct trig *r)
{
    assert_int_equal(login(r, 0, 0), 0);
    assert_int_equal(login(r, 1, r->tsih), 0);
    assert_int_equal(login(r, 2, r->tsih), ISCSI_LOGIN_TOO_MANY_CONNECTIONS);
    trig_pump(r);
    assert_true(r->conns[2].closed);
    assert_false(r->conns[0].closed || r->conns[1].closed);
}

static uint16_t login_at(struct trig *r, unsigned i, uint16_t group_tag, uint16_t tsih)
{
    struct trig_conn *rc = &r->conns[i];
    struct tgt_portal portal = {"192.0.2.9:3260", group_tag};
    struct lp_error err;

    assert_true(trig_connect(r, i));
    tgt_conn_closed(rc->conn, r->now);
    tgt_conn_free(rc->conn);
    rc->conn = tgt_conn_new(r->tgt, &portal, "198.51.100.8:1", r->now, &err);
    assert_non_null(rc->conn);
    tgt_conn_set_user(rc->conn, rc);
    return send_login(r, i, tsih);
}

/* [T-LOG-07] [T-SES-03] */
static void another_portal_group_is_another_nexus(struct trig *r)
{
    assert_int_equal(login(r, 0, 0), 0);
    assert_int_equal(login_at(r, 1, 2, r->tsih), ISCSI_LOGIN_CANNOT_INCLUDE);
    assert_int_equal(login_at(r, 2, 2, 0), 0);
    assert_int_equal(r->opened, 2);
    assert_int_equal(r->session_closed, 0);
}

/* [T-SES-03] */
static void another_initiator_name_is_another_nexus(struct trig *r)
{
    static const char keys[] = "InitiatorName=iqn.2026-01.test:other\0TargetName=" RIG_TARGET;

    assert_int_equal(login(r, 0, 0), 0);
    assert_true(trig_connect(r, 1));
    assert_int_equal(trig_login(r, 1, keys, sizeof keys, 0), 0);
    assert_true(trig_connect(r, 2));
    assert_int_equal(
        trig_login(r, 2, KEYS("InitiatorName=" RIG_INITIATOR "\0TargetName=" RIG_TARGET "2\0"), 0),
        0);
    assert_int_equal(r->opened, 3);
    assert_int_equal(r->session_closed, 0);
}

/* [T-SES-01] */
static void reinstatement_ends_old_tasks_silently_and_before_new_ones(struct trig *r)
{
    struct iscsi_scsi_command ready;
    struct wire_pdu pdu;

    r->hang = true;
    assert_int_equal(login(r, 0, 0), 0);
    ready = trig_ready(r, 1);
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_pump(r);
    assert_int_equal(login(r, 1, 0), 0);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->conns[0].why, TGT_CLOSE_REINSTATED);
    assert_int_equal(r->aborts, 1);
    assert_int_equal(r->opened, 1); /* the owner still has a task of the old one */
    ready = trig_ready(r, 2);
    trig_put_command(r, 1, &ready, NULL, 0);
    trig_expect_nothing(r, 1);
    assert_int_equal(r->commands, 1);
    trig_end(r, trig_task(r, 1));
    trig_pump(r);
    assert_int_equal(r->session_closed, 1);
    assert_int_equal(r->opened, 2);
    assert_int_equal(r->commands, 2);
    trig_respond(trig_task(r, 2), 0);
    trig_expect_status(r, 1, 2, 0);
    assert_false(wire_take(&r->conns[0].wire, &pdu));
}

/* [T-SES-02] */
static void a_lost_session_is_kept_for_time2wait_and_time2retain(struct trig *r)
{
    assert_int_equal(login(r, 0, 0), 0);
    trig_cut(r, 0);
    trig_tick(r, 21999999999);
    assert_int_equal(r->session_closed, 0);
    assert_int_equal(login(r, 1, r->tsih), 0); /* it comes back */
    trig_tick(r, 100000000000);
    assert_int_equal(r->session_closed, 0);
    trig_cut(r, 1);
    assert_int_equal(tgt_deadline(r->tgt), r->now + 22000000000);
    trig_tick(r, 22000000000);
    assert_int_equal(r->session_closed, 1);
    assert_int_equal(r->end, TGT_END_LOST);
}

/* [T-SES-02] */
static void a_lost_session_without_time2retain_ends_at_once(struct trig *r)
{
    trig_start(r, "DefaultTime2Retain=0\0");
    trig_cut(r, 0);
    assert_int_equal(r->session_closed, 1);
    assert_int_equal(r->end, TGT_END_LOST);
}

/* [T-SES-04] */
static void a_connection_can_be_reinstated_with_max_connections_1(struct trig *r)
{
    struct iscsi_scsi_command ready;
    struct trig_conn old;

    trig_start(r, "");
    ready = trig_ready(r, 1);
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_pump(r);
    old = r->conns[0];
    old.wire.machine = &old;
    memset(&r->conns[0], 0, sizeof r->conns[0]);
    tgt_conn_set_user(old.conn, &old);
    assert_true(trig_connect(r, 0)); /* the same CID */
    assert_int_equal(trig_login(r, 0, RIG_KEYS, sizeof RIG_KEYS - 1, r->tsih), 0);
    assert_true(old.close_asked);
    assert_int_equal(old.why, TGT_CLOSE_REINSTATED);
    tgt_conn_closed(old.conn, r->now);
    tgt_conn_free(old.conn);
    wire_close(&old.wire);
    assert_int_equal(r->aborts, 1);
    assert_int_equal(r->cleared, 1);
    assert_int_equal(r->session_closed, 0);
    ready = trig_ready(r, 1); /* its ITT is free again */
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_pump(r);
    trig_respond(trig_task(r, 1), 0);
    trig_expect_status(r, 0, 1, 0);
}

/* [T-LGO-03] */
static void tasks_of_a_lost_connection_end_and_the_others_go_on(struct trig *r)
{
    struct iscsi_scsi_command a, b, c;

    r->hang = true;
    assert_int_equal(login(r, 0, 0), 0);
    assert_int_equal(login(r, 1, r->tsih), 0);
    a = trig_ready(r, 1);
    b = trig_ready(r, 2);
    trig_put_command(r, 0, &a, NULL, 0);
    trig_put_command(r, 1, &b, NULL, 0);
    trig_pump(r);
    trig_cut(r, 1);
    assert_int_equal(r->aborts, 1);
    assert_int_equal(r->cleared, 1);
    c = trig_ready(r, 3); /* must not overtake what may still happen */
    trig_put_command(r, 0, &c, NULL, 0);
    trig_pump(r);
    assert_int_equal(r->commands, 2);
    trig_respond(trig_task(r, 1), 0);
    trig_expect_status(r, 0, 1, 0);
    trig_end(r, trig_task(r, 2));
    trig_pump(r);
    assert_int_equal(r->commands, 3);
    trig_respond(trig_task(r, 3), 0);
    trig_expect_status(r, 0, 3, 0);
}

static void few(struct trig *r)
{
    r->opts.logins_max = 3;
    r->opts.logins_max_peer = 2;
    r->opts.sessions_max = 2;
}

/* [T-LOG-18] */
static void logins_are_bounded_by_number_and_time(struct trig *r)
{
    assert_true(trig_connect(r, 0));
    assert_true(trig_connect(r, 1));
    assert_false(trig_connect(r, 2)); /* the third from one address */
    r->conns[2] = (struct trig_conn){0};
    assert_int_equal(tgt_counters(r->tgt)->refused, 1);
    trig_tick(r, 14999999999);
    assert_false(r->conns[0].closed);
    trig_tick(r, 1);
    assert_true(r->conns[0].closed && r->conns[1].closed);
    assert_int_equal(r->conns[0].why, TGT_CLOSE_LOGIN);
    assert_int_equal(login(r, 0, 0), 0); /* others are served */
    trig_tick(r, 60000000000);
    assert_false(r->conns[0].closed);
}

/* [T-LOG-18] */
static void logins_are_bounded_by_bytes(struct trig *r)
{
    uint8_t bhs[ISCSI_BHS_SIZE] = {0x43, 0x40 | 1 << 2}; /* C: more is to come */
    static uint8_t data[8192];

    memset(data, 'a', sizeof data);
    assert_true(trig_connect(r, 0));
    for (unsigned i = 0; i < 100 && !r->conns[0].closed; i++) {
        wire_put(&r->conns[0].wire, bhs, data, sizeof data);
        trig_pump(r);
    }
    assert_true(r->conns[0].closed);
    assert_int_equal(r->opened, 0);
}

/* [T-LOG-21] */
static void more_sessions_than_allowed_are_refused(struct trig *r)
{
    for (uint8_t i = 0; i < 3; i++) {
        r->isid[5] = i;
        assert_int_equal(login(r, i, 0), i < 2 ? 0 : ISCSI_LOGIN_OUT_OF_RESOURCES);
    }
    r->isid[5] = 1;
    assert_int_equal(login(r, 3, 0), 0); /* taking over costs nothing */
    assert_int_equal(r->opened, 3);
    assert_int_equal(r->session_closed, 1);
}

/* [T-LOG-01] */
static void what_does_not_begin_with_a_login_is_closed_at_once(struct trig *r)
{
    static const uint8_t first[] = {ISCSI_NOP_OUT | 0x40, ISCSI_SCSI_COMMAND, 0x16, 0xff};

    for (unsigned i = 0; i < sizeof first; i++) {
        uint8_t bhs[ISCSI_BHS_SIZE] = {first[i], 3, 1};

        assert_true(trig_connect(r, 0));
        wire_put_raw(&r->conns[0].wire, bhs, NULL, 0);
        trig_expect_nothing(r, 0);
        assert_true(r->conns[0].closed);
        assert_int_equal(r->conns[0].why, TGT_CLOSE_LOGIN);
    }
}

/* [T-LOG-11] */
static void cmd_sn_of_the_login_is_the_first_of_the_session(struct trig *r)
{
    static const uint32_t first[] = {0, 123, 0xffffffff};

    for (unsigned i = 0; i < 3; i++) {
        struct iscsi_scsi_command ready;

        r->cmd_sn = first[i];
        r->isid[5] = (uint8_t)i;
        assert_int_equal(login(r, i, 0), 0); /* checks ExpCmdSN */
        for (uint32_t n = 0; n < 40; n++) {
            ready = trig_ready(r, n);
            trig_put_command(r, i, &ready, NULL, 0);
            trig_expect_status(r, i, n, 0);
        }
    }
}

/* The transport breaks at every point of a busy session: nothing is left behind (trig_close). */
static void a_cut_at_any_byte_leaves_nothing_behind(struct trig *r)
{
    static uint8_t data[8192];
    struct wire *w = &r->conns[0].wire;
    struct iovec iov[8];

    if (r->mode != WIRE_RANDOM)
        return;
    for (unsigned round = 0; round < 300; round++) {
        struct iscsi_scsi_command write, read;
        struct wire_pdu pdu;
        size_t left = rng_below(&r->rng, 14000);

        assert_int_equal(login(r, 0, 0), 0);
        write = trig_write(r, 1, 0, 32);
        read = trig_read(r, 2, 0, 32);
        write.final = false;
        trig_put_command(r, 0, &write, data, 4096);
        trig_put_command(r, 0, &read, NULL, 0);
        trig_put_data(r, 0, 1, ISCSI_TAG_NONE, 4096, data, 8192);
        while (left > 0 && w->given < w->to.length) {
            unsigned n = tgt_conn_recv_space(r->conns[0].conn, iov, 8);
            size_t part = n > 0 ? iov[0].iov_len : 0;

            if (part > left)
                part = left;
            if (part > w->to.length - w->given)
                part = w->to.length - w->given;
            if (part == 0)
                break;
            memcpy(iov[0].iov_base, w->to.bytes + w->given, part);
            w->given += part;
            left -= part;
            tgt_conn_received(r->conns[0].conn, part, r->now);
        }
        if (round % 2)
            tgt_conn_send_data(r->conns[0].conn, iov, 8); /* handed out, never sent */
        trig_cut(r, 0);
        while (wire_take(w, &pdu))
            continue;
        r->cmd_sn = 100;
    }
    assert_int_equal(r->commands, r->released);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(the_table_of_isid_tsih_and_cid),
        RIG(more_connections_than_agreed_are_refused),
        RIG(another_portal_group_is_another_nexus),
        RIG(another_initiator_name_is_another_nexus),
        RIG_WITH(reinstatement_ends_old_tasks_silently_and_before_new_ones, be_manual),
        RIG(a_lost_session_is_kept_for_time2wait_and_time2retain),
        RIG(a_lost_session_without_time2retain_ends_at_once),
        RIG_WITH(a_connection_can_be_reinstated_with_max_connections_1, be_manual),
        RIG_WITH(tasks_of_a_lost_connection_end_and_the_others_go_on, be_manual),
        RIG_WITH(logins_are_bounded_by_number_and_time, few),
        RIG(logins_are_bounded_by_bytes),
        RIG_WITH(more_sessions_than_allowed_are_refused, few),
        RIG(what_does_not_begin_with_a_login_is_closed_at_once),
        RIG(cmd_sn_of_the_login_is_the_first_of_the_session),
        RIG(a_cut_at_any_byte_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
