/* SPDX-License-Identifier: BSD-2-Clause */
/* Target: data-out, R2T, and the errors in them. */
#include "tgt_rig.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static struct iscsi_r2t expect_r2t(struct trig *r, uint32_t itt)
{
    struct wire_pdu pdu;
    struct iscsi_r2t r2t;

    trig_expect(r, 0, ISCSI_R2T, &pdu);
    iscsi_r2t_unpack(pdu.bhs, &r2t);
    assert_int_equal(r2t.itt, itt);
    assert_int_not_equal(r2t.ttt, ISCSI_TAG_NONE);
    return r2t;
}

/* Answers R2Ts until a status comes. */
static void serve(struct trig *r, uint32_t itt, const uint8_t *data, uint8_t status)
{
    struct wire_pdu pdu;

    for (;;) {
        struct iscsi_r2t r2t;

        trig_pump(r);
        assert_true(trig_take(r, 0, &pdu));
        if (pdu.h.opcode != ISCSI_R2T)
            break;
        iscsi_r2t_unpack(pdu.bhs, &r2t);
        trig_put_data(r, 0, itt, r2t.ttt, r2t.buffer_offset, data + r2t.buffer_offset,
                      r2t.desired_data_transfer_length);
    }
    assert_int_equal(pdu.h.opcode, ISCSI_SCSI_RESPONSE);
    assert_int_equal(pdu.h.itt, itt);
    assert_int_equal(pdu.bhs[3], status);
}

static void write_in_mode(struct trig *r, bool initial_r2t, bool immediate)
{
    enum { BYTES = 40 * RIG_BLOCK, FIRST = 4096 };
    static uint8_t data[BYTES];
    struct iscsi_scsi_command write = trig_write(r, 9, 8, BYTES / RIG_BLOCK);
    uint32_t now = immediate ? 1024 : 0;

    trig_pattern(data, sizeof data, 99);
    write.final = initial_r2t;
    trig_put_command(r, 0, &write, data, now);
    if (!initial_r2t)
        trig_put_data(r, 0, 9, ISCSI_TAG_NONE, now, data + now, FIRST - now);
    serve(r, 9, data, 0);
    assert_memory_equal(r->ram + 8 * RIG_BLOCK, data, BYTES);
    assert_int_equal(r->datas, 1);
    assert_int_equal(r->hold_calls, 0); /* memory was there at once: copied once */
}

#define MODE(r2t, imm)                                                                             \
    "InitialR2T=" r2t "\0ImmediateData=" imm "\0FirstBurstLength=4096\0MaxBurstLength=8192\0"

/* [T-OUT-04] */
static void writes_come_whole_with_r2t_and_immediate_data(struct trig *r)
{
    trig_start(r, MODE("Yes", "Yes"));
    write_in_mode(r, true, true);
}

static void want_r2t(struct trig *r)
{
    r->opts.wishes.params.initial_r2t = true;
}

static void want_r2t_only(struct trig *r)
{
    want_r2t(r);
    r->opts.wishes.params.immediate_data = false;
}

static void writes_come_whole_with_r2t_alone(struct trig *r)
{
    trig_start(r, MODE("Yes", "No"));
    write_in_mode(r, true, false);
}

static void writes_come_whole_with_unsolicited_data(struct trig *r)
{
    trig_start(r, MODE("No", "No"));
    write_in_mode(r, false, false);
}

static void writes_come_whole_with_both_kinds_unsolicited(struct trig *r)
{
    trig_start(r, MODE("No", "Yes"));
    write_in_mode(r, false, true);
}

static void many_r2ts(struct trig *r, unsigned most)
{
    enum { BYTES = 64 * 1024 };
    static uint8_t data[BYTES];
    struct iscsi_scsi_command write = trig_write(r, 9, 0, BYTES / RIG_BLOCK);
    struct iscsi_r2t open[8];
    struct wire_pdu pdu;
    unsigned n = 0, sn = 0;
    uint32_t asked = 0;

    trig_pattern(data, sizeof data, 1);
    trig_put_command(r, 0, &write, NULL, 0);
    trig_pump(r);
    for (;;) {
        while (trig_take(r, 0, &pdu) && pdu.h.opcode == ISCSI_R2T) {
            iscsi_r2t_unpack(pdu.bhs, &open[n]);
            assert_int_equal(open[n].r2t_sn, sn++);
            assert_int_equal(open[n].buffer_offset, asked);
            assert_int_equal(open[n].desired_data_transfer_length, 4096);
            assert_int_equal(open[n].lun, write.lun);
            assert_int_equal(open[n].stat_sn, r->conns[0].exp_stat_sn);
            asked += 4096;
            n++;
            assert_true(n <= most);
        }
        if (n == 0)
            break;
        if (asked < BYTES)
            assert_int_equal(n, most);
        trig_put_data(r, 0, 9, open[0].ttt, open[0].buffer_offset, data + open[0].buffer_offset,
                      4096);
        memmove(open, open + 1, sizeof open - sizeof open[0]);
        n--;
        trig_pump(r);
    }
    assert_int_equal(pdu.h.opcode, ISCSI_SCSI_RESPONSE);
    assert_memory_equal(r->ram, data, BYTES);
}

/* [T-OUT-04] */
static void no_more_than_one_r2t_is_open(struct trig *r)
{
    trig_start(r, "InitialR2T=Yes\0MaxBurstLength=4096\0FirstBurstLength=4096\0");
    many_r2ts(r, 1);
}

/* [T-OUT-04] */
static void no_more_than_four_r2ts_are_open(struct trig *r)
{
    trig_start(r, "InitialR2T=Yes\0MaxBurstLength=4096\0FirstBurstLength=4096\0"
                  "MaxOutstandingR2T=4\0");
    many_r2ts(r, 4);
}

/* [T-OUT-01] */
static void immediate_data_that_was_not_agreed_fails_the_command(struct trig *r)
{
    struct iscsi_scsi_command write;
    uint8_t data[RIG_BLOCK] = {0}, before[RIG_BLOCK];

    trig_start(r, MODE("Yes", "No"));
    memcpy(before, r->ram, sizeof before);
    write = trig_write(r, 1, 0, 1);
    trig_put_command(r, 0, &write, data, sizeof data);
    trig_expect_sense(r, 0, 1, 0xb, 0x0c, 0x0c);
    assert_int_equal(r->commands, 0);
    assert_memory_equal(r->ram, before, sizeof before);
}

/* [T-OUT-01] [T-OUT-07] */
static void unsolicited_data_that_were_not_agreed_fail_the_command_after_f(struct trig *r)
{
    struct iscsi_scsi_command write;
    struct iscsi_data_out out = {.itt = 1, .ttt = ISCSI_TAG_NONE};
    uint8_t data[RIG_BLOCK] = {0};

    trig_start(r, MODE("Yes", "Yes"));
    write = trig_write(r, 1, 0, 2);
    write.final = false;
    trig_put_command(r, 0, &write, NULL, 0);
    trig_put_data_pdu(r, 0, &out, data, sizeof data);
    trig_expect_nothing(r, 0);
    out.final = true;
    out.data_sn = 1;
    out.buffer_offset = sizeof data;
    trig_put_data_pdu(r, 0, &out, data, sizeof data);
    trig_expect_sense(r, 0, 1, 0xb, 0x0c, 0x0c);
}

/* [T-OUT-01] */
static void data_out_of_a_command_that_announced_none_fails_it(struct trig *r)
{
    struct iscsi_scsi_command write;
    uint8_t data[RIG_BLOCK] = {0};

    trig_start(r, MODE("No", "Yes"));
    write = trig_write(r, 1, 0, 2);
    trig_put_command(r, 0, &write, NULL, 0);
    expect_r2t(r, 1);
    trig_put_data(r, 0, 1, ISCSI_TAG_NONE, 0, data, sizeof data);
    trig_expect_nothing(r, 0); /* the R2T is still to be answered */
    assert_int_equal(r->aborts, 1);
}

/* [T-OUT-02] */
static void nothing_beyond_first_burst_length_is_written(struct trig *r)
{
    static uint8_t data[8192];
    uint8_t before[8192];
    struct iscsi_scsi_command write;

    trig_start(r, MODE("No", "Yes"));
    memcpy(before, r->ram, sizeof before);
    write = trig_write(r, 1, 0, 16);
    trig_put_command(r, 0, &write, data, 4096 + 512);
    trig_expect_sense(r, 0, 1, 0xb, 0x0c, 0x0c);
    write = trig_write(r, 2, 0, 16);
    write.final = false;
    trig_put_command(r, 0, &write, NULL, 0);
    trig_put_data(r, 0, 2, ISCSI_TAG_NONE, 0, data, 4096 + 512);
    trig_expect_sense(r, 0, 2, 0xb, 0x0c, 0x0c);
    assert_memory_equal(r->ram, before, sizeof before);
}

/* [T-OUT-03] */
static void unsolicited_data_that_end_short_fail_the_command(struct trig *r)
{
    static uint8_t data[4096];
    struct iscsi_scsi_command write;

    trig_start(r, MODE("No", "Yes"));
    write = trig_write(r, 1, 0, 16);
    write.final = false;
    trig_put_command(r, 0, &write, data, 1024);
    trig_put_data(r, 0, 1, ISCSI_TAG_NONE, 1024, data, 1024);
    trig_expect_sense(r, 0, 1, 0xb, 0x0c, 0x0d);
    assert_int_equal(r->datas, 0);
}

/* [T-OUT-05] */
static void data_out_that_nobody_asked_for_is_rejected(struct trig *r)
{
    static uint8_t data[8192];
    uint8_t before[8192];
    struct iscsi_scsi_command write;
    struct iscsi_r2t r2t;
    struct iscsi_data_out out;

    trig_start(r, "InitialR2T=Yes\0MaxBurstLength=4096\0FirstBurstLength=4096\0");
    memcpy(before, r->ram, sizeof before);
    write = trig_write(r, 1, 0, 16);
    trig_put_command(r, 0, &write, NULL, 0);
    r2t = expect_r2t(r, 1);
    trig_put_data(r, 0, 1, r2t.ttt + 1, 0, data, 512); /* unknown TTT */
    trig_expect_reject(r, 0, ISCSI_REJECT_INVALID_FIELD);
    trig_put_data(r, 0, 2, r2t.ttt, 0, data, 512); /* another ITT */
    trig_expect_reject(r, 0, ISCSI_REJECT_INVALID_FIELD);
    out = (struct iscsi_data_out){.final = true, .itt = 1, .ttt = r2t.ttt, .lun = 1ull << 48};
    trig_put_data_pdu(r, 0, &out, data, 512); /* another LUN */
    trig_expect_reject(r, 0, ISCSI_REJECT_INVALID_FIELD);
    trig_put_data(r, 0, 3, ISCSI_TAG_NONE, 0, data, 512); /* no such task */
    trig_expect_reject(r, 0, ISCSI_REJECT_INVALID_FIELD);
    trig_put_data(r, 0, 1, r2t.ttt, 8192, data, 4096); /* outside of the R2T */
    trig_expect_reject(r, 0, ISCSI_REJECT_INVALID_FIELD);
    trig_expect_sense(r, 0, 1, 0xb, 0x0c, 0x0d);
    assert_memory_equal(r->ram, before, sizeof before);
}

/* [T-OUT-06] */
static void a_wrong_amount_for_an_r2t_fails_the_command(struct trig *r)
{
    static uint8_t data[8192];

    trig_start(r, "InitialR2T=Yes\0MaxBurstLength=4096\0FirstBurstLength=4096\0");
    for (uint32_t i = 0; i < 3; i++) {
        struct iscsi_scsi_command write = trig_write(r, i, 0, 8);
        struct iscsi_data_out out = {.itt = i};

        trig_put_command(r, 0, &write, NULL, 0);
        out.ttt = expect_r2t(r, i).ttt;
        out.final = i < 2;
        trig_put_data_pdu(r, 0, &out, data, i == 0 ? 512 : i == 1 ? 4608 : 4096);
        trig_expect_sense(r, 0, i, 0xb, 0x0c, 0x0d);
    }
    assert_int_equal(r->datas, 0);
}

/* [T-OUT-07] */
static void an_error_is_told_after_the_f_of_the_last_sequence_due(struct trig *r)
{
    static uint8_t data[8192];
    struct iscsi_scsi_command write;
    struct iscsi_r2t first, second;
    struct tgt_task *task;

    r->manual = true;
    trig_start(r, "InitialR2T=Yes\0MaxBurstLength=4096\0FirstBurstLength=4096\0"
                  "MaxOutstandingR2T=2\0");
    write = trig_write(r, 1, 0, 16);
    trig_put_command(r, 0, &write, NULL, 0);
    first = expect_r2t(r, 1);
    second = expect_r2t(r, 1);
    task = trig_task(r, 1);
    trig_respond(task, 2);
    trig_expect_nothing(r, 0);
    trig_put_data(r, 0, 1, first.ttt, 0, data, 4096);
    trig_expect_nothing(r, 0);
    trig_put_data(r, 0, 1, second.ttt, 4096, data, 4096);
    trig_expect_status(r, 0, 1, 2);
    trig_expect_nothing(r, 0);
}

/* [T-OUT-07] */
static void a_write_beyond_the_end_waits_for_its_unsolicited_data(struct trig *r)
{
    static uint8_t data[4096];
    struct iscsi_scsi_command write;

    trig_start(r, MODE("No", "Yes"));
    write = trig_write(r, 1, 1 << 20, 8);
    write.final = false;
    trig_put_command(r, 0, &write, data, 1024);
    trig_expect_nothing(r, 0);
    trig_put_data(r, 0, 1, ISCSI_TAG_NONE, 1024, data, 3072);
    trig_expect_sense(r, 0, 1, 5, 0x21, 0);
}

/* [T-OUT-08] */
static void data_sn_out_of_order_never_becomes_a_write(struct trig *r)
{
    static const uint32_t wrong[][2] = {{0, 0}, {27, 28}, {ISCSI_TAG_NONE, 0}, {1, 0}};
    static uint8_t data[8192];

    trig_start(r, "InitialR2T=Yes\0MaxBurstLength=8192\0FirstBurstLength=4096\0");
    for (uint32_t i = 0; i < 4; i++) {
        struct iscsi_scsi_command write = trig_write(r, i, 0, 16);
        struct iscsi_data_out out = {.itt = i};

        trig_put_command(r, 0, &write, NULL, 0);
        out.ttt = expect_r2t(r, i).ttt;
        out.data_sn = wrong[i][0];
        trig_put_data_pdu(r, 0, &out, data, 4096);
        out.data_sn = wrong[i][1];
        out.buffer_offset = 4096;
        out.final = true;
        trig_put_data_pdu(r, 0, &out, data, 4096);
        trig_expect_sense(r, 0, i, 0xb, 0x47, 0x05);
    }
    assert_int_equal(r->datas, 0);
}

/* [T-OUT-10] */
static void an_empty_data_out_in_mid_sequence_is_taken(struct trig *r)
{
    static uint8_t data[8192];
    struct iscsi_scsi_command write;
    struct iscsi_data_out out = {.itt = 1};

    trig_pattern(data, sizeof data, 3);
    trig_start(r, "InitialR2T=Yes\0MaxBurstLength=8192\0FirstBurstLength=4096\0");
    write = trig_write(r, 1, 0, 16);
    trig_put_command(r, 0, &write, NULL, 0);
    out.ttt = expect_r2t(r, 1).ttt;
    trig_put_data_pdu(r, 0, &out, data, 4096);
    out.data_sn++;
    out.buffer_offset = 4096;
    trig_put_data_pdu(r, 0, &out, NULL, 0);
    out.data_sn++;
    out.final = true;
    trig_put_data_pdu(r, 0, &out, data + 4096, 4096);
    trig_expect_status(r, 0, 1, 0);
    assert_memory_equal(r->ram, data, sizeof data);
}

/* Data that come before the owner names memory are held, and copied when it does. */
static void data_wait_for_memory_that_is_named_late(struct trig *r)
{
    static uint8_t data[4096], into[4096];
    struct iovec iov[2] = {{into, 1000}, {into + 1000, 3096}};
    struct iscsi_scsi_command write;
    struct tgt_task *task;

    r->manual = r->no_receive = true;
    trig_pattern(data, sizeof data, 17);
    trig_start(r, MODE("No", "Yes"));
    write = trig_write(r, 1, 0, 8);
    write.final = false;
    trig_put_command(r, 0, &write, data, 1024);
    trig_put_data(r, 0, 1, ISCSI_TAG_NONE, 1024, data + 1024, 3072);
    trig_expect_nothing(r, 0);
    assert_int_equal(r->holds, 1);
    task = trig_task(r, 1);
    assert_int_equal(tgt_task_receive(task, iov, 2, 4096), 4096);
    assert_int_equal(r->datas, 1);
    assert_int_equal(r->holds, 0);
    assert_memory_equal(into, data, sizeof data);
    trig_respond(task, 0);
    trig_expect_status(r, 0, 1, 0);
}

/* The owner wants less than comes unasked: nothing is written behind its memory. */
static void unasked_data_beyond_what_the_owner_wants_are_dropped(struct trig *r)
{
    static uint8_t data[4096], into[4096];
    struct iovec iov = {into, 1500};
    struct iscsi_scsi_command write;
    struct tgt_task *task;

    memset(into, 0xee, sizeof into);
    r->manual = r->no_receive = true;
    trig_pattern(data, sizeof data, 17);
    trig_start(r, MODE("No", "Yes"));
    write = trig_write(r, 1, 0, 8);
    write.final = false;
    trig_put_command(r, 0, &write, data, 1024);
    trig_pump(r);
    task = trig_task(r, 1);
    assert_int_equal(tgt_task_receive(task, &iov, 1, 1500), 1500);
    trig_put_data(r, 0, 1, ISCSI_TAG_NONE, 1024, data + 1024, 3072);
    trig_pump(r);
    assert_int_equal(r->datas, 1);
    assert_memory_equal(into, data, 1500);
    for (unsigned i = 1500; i < sizeof into; i++)
        assert_int_equal(into[i], 0xee);
    trig_respond(task, 0);
    trig_expect_status(r, 0, 1, 0);
}

/* No memory to hold data in: BUSY, and the initiator tries again. */
static void without_memory_to_hold_data_the_command_is_busy(struct trig *r)
{
    static uint8_t data[1024];
    struct iscsi_scsi_command write;

    r->manual = r->no_receive = r->no_hold = true;
    trig_start(r, MODE("No", "Yes"));
    write = trig_write(r, 1, 0, 2);
    trig_put_command(r, 0, &write, data, sizeof data);
    trig_expect_status(r, 0, 1, 8);
}

/* [T-RES-04] */
static void data_go_by_the_connection_of_their_command(struct trig *r)
{
    static uint8_t data[1024];
    struct iscsi_scsi_command write;
    struct iscsi_r2t r2t;

    trig_start(r, "InitialR2T=Yes\0MaxConnections=2\0");
    trig_join(r, 1);
    write = trig_write(r, 1, 0, 2);
    trig_put_command(r, 0, &write, NULL, 0);
    r2t = expect_r2t(r, 1);
    trig_put_data(r, 1, 1, r2t.ttt, 0, data, sizeof data);
    trig_expect_reject(r, 1, ISCSI_REJECT_INVALID_FIELD);
    trig_put_data(r, 0, 1, r2t.ttt, 0, data, sizeof data);
    trig_expect_status(r, 0, 1, 0);
    trig_expect_nothing(r, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_WITH(writes_come_whole_with_r2t_and_immediate_data, want_r2t),
        RIG_WITH(writes_come_whole_with_r2t_alone, want_r2t_only),
        RIG(writes_come_whole_with_unsolicited_data),
        RIG(writes_come_whole_with_both_kinds_unsolicited),
        RIG(no_more_than_one_r2t_is_open),
        RIG(no_more_than_four_r2ts_are_open),
        RIG_WITH(immediate_data_that_was_not_agreed_fails_the_command, want_r2t_only),
        RIG(unsolicited_data_that_were_not_agreed_fail_the_command_after_f),
        RIG(data_out_of_a_command_that_announced_none_fails_it),
        RIG(nothing_beyond_first_burst_length_is_written),
        RIG(unsolicited_data_that_end_short_fail_the_command),
        RIG(data_out_that_nobody_asked_for_is_rejected),
        RIG(a_wrong_amount_for_an_r2t_fails_the_command),
        RIG(an_error_is_told_after_the_f_of_the_last_sequence_due),
        RIG(a_write_beyond_the_end_waits_for_its_unsolicited_data),
        RIG(data_sn_out_of_order_never_becomes_a_write),
        RIG(an_empty_data_out_in_mid_sequence_is_taken),
        RIG(data_wait_for_memory_that_is_named_late),
        RIG(unasked_data_beyond_what_the_owner_wants_are_dropped),
        RIG(without_memory_to_hold_data_the_command_is_busy),
        RIG(data_go_by_the_connection_of_their_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
