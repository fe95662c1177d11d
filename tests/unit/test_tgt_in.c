/* SPDX-License-Identifier: BSD-2-Clause */
/* Target: reads, status, residuals, pings. */
#include "tgt_rig.h"

#include <string.h>

#include "base/bytes.h"

/* Reads all Data-In of one task, checks each, and returns how many came. */
static unsigned take_data(struct trig *r, uint32_t itt, uint32_t mrdsl, uint32_t burst,
                          uint8_t *into, uint32_t expect)
{
    struct wire_pdu pdu;
    struct iscsi_data_in in;
    uint32_t offset = 0, since = 0;
    unsigned n = 0;

    do {
        trig_expect(r, 0, ISCSI_DATA_IN, &pdu);
        iscsi_data_in_unpack(pdu.bhs, &in);
        assert_int_equal(in.itt, itt);
        assert_int_equal(in.ttt, ISCSI_TAG_NONE);
        assert_int_equal(in.lun, 0);
        assert_false(in.acknowledge);
        assert_int_equal(in.data_sn, n);
        assert_int_equal(in.buffer_offset, offset);
        assert_true(pdu.data_length <= mrdsl);
        memcpy(into + offset, pdu.data, pdu.data_length);
        offset += pdu.data_length;
        since += pdu.data_length;
        assert_true(since <= burst);
        if (!in.final)
            assert_int_equal(in.data_segment_length % 4, 0);
        if (since == burst || offset == expect)
            assert_true(in.final);
        if (in.final)
            since = 0;
        if (in.status_present)
            assert_true(in.final);
        n++;
    } while (offset < expect);
    assert_int_equal(offset, expect);
    return n;
}

/* [T-IN-01] [T-IN-03] [T-IN-04] */
static void data_in_is_cut_to_what_the_initiator_takes(struct trig *r)
{
    static const struct {
        const char *keys;
        size_t length;
        uint32_t mrdsl, burst;
    } cases[] = {
        {KEYS("MaxRecvDataSegmentLength=512\0MaxBurstLength=4096\0"), 512, 4096},
        {KEYS("MaxRecvDataSegmentLength=1000\0MaxBurstLength=4096\0"), 1000, 4096},
    };
    const unsigned which = (unsigned)(r->mode % 2);
    struct iscsi_scsi_command read;
    uint8_t data[20 * RIG_BLOCK];

    trig_start_keys(r, cases[which].keys, cases[which].length);
    read = trig_read(r, 7, 3, 20);
    trig_put_command(r, 0, &read, NULL, 0);
    assert_true(take_data(r, 7, cases[which].mrdsl, cases[which].burst, data, sizeof data) > 10);
    assert_memory_equal(data, r->ram + 3 * RIG_BLOCK, sizeof data);
    trig_expect_nothing(r, 0);
}

/* [T-IN-02] [T-NUM-08] */
static void good_status_rides_on_the_last_data_in(struct trig *r)
{
    struct iscsi_scsi_command read;
    struct wire_pdu pdu;
    struct iscsi_data_in in;

    trig_start(r, "");
    read = trig_read(r, 7, 0, 1);
    trig_put_command(r, 0, &read, NULL, 0);
    trig_expect(r, 0, ISCSI_DATA_IN, &pdu);
    iscsi_data_in_unpack(pdu.bhs, &in);
    assert_true(in.status_present && in.final && !in.overflow && !in.underflow);
    assert_int_equal(in.residual_count, 0);
    assert_int_equal(in.exp_cmd_sn, read.cmd_sn + 1);
}

/* [T-IN-02] [T-RSP-01] */
static void check_condition_comes_with_sense_in_its_own_pdu(struct trig *r)
{
    struct iscsi_scsi_command read;

    trig_start(r, "");
    read = trig_read(r, 7, 1 << 20, 1);
    trig_put_command(r, 0, &read, NULL, 0);
    trig_expect_sense(r, 0, 7, 5, 0x21, 0);
}

static void expect_residual(struct trig *r, uint32_t itt, bool o, bool u, uint32_t count)
{
    struct wire_pdu pdu;

    trig_pump(r);
    do
        assert_true(trig_take(r, 0, &pdu));
    while (pdu.h.opcode == ISCSI_DATA_IN && !(pdu.bhs[1] & 1));
    assert_int_equal(pdu.h.itt, itt);
    assert_int_equal(pdu.bhs[1] & 6, (o ? 4 : 0) | (u ? 2 : 0));
    assert_int_equal(load_be32(pdu.bhs + 44), count);
}

/* [T-RES-01] */
static void residual_is_the_difference_to_the_expected_length(struct trig *r)
{
    static const struct {
        uint32_t edtl;
        bool o, u;
        uint32_t count;
    } cases[] = {
        {0, true, false, 512},
        {511, true, false, 1},
        {512, false, false, 0},
        {10000, false, true, 9488},
    };
    uint8_t data[10000];

    trig_start(r, "");
    trig_pattern(data, sizeof data, 0);
    for (unsigned i = 0; i < 4; i++) {
        struct iscsi_scsi_command read = trig_read(r, i, 0, 1), write = trig_write(r, i, 0, 1);

        read.expected_data_transfer_length = cases[i].edtl;
        trig_put_command(r, 0, &read, NULL, 0);
        expect_residual(r, i, cases[i].o, cases[i].u, cases[i].count);
        write.expected_data_transfer_length = cases[i].edtl;
        trig_put_command(r, 0, &write, data, cases[i].edtl);
        expect_residual(r, i, cases[i].o, cases[i].u, cases[i].count);
    }
    assert_memory_equal(r->ram, data, 512);
}

/* [T-RES-01] */
static void no_more_than_the_expected_length_is_sent(struct trig *r)
{
    struct iscsi_scsi_command read;
    uint8_t data[1000];

    trig_start(r, "");
    read = trig_read(r, 7, 0, 4);
    read.expected_data_transfer_length = sizeof data;
    trig_put_command(r, 0, &read, NULL, 0);
    assert_int_equal(take_data(r, 7, 8192, 262144, data, sizeof data), 1);
    trig_expect_nothing(r, 0);
}

/* [T-RES-02] */
static void a_short_allocation_length_is_no_overflow(struct trig *r)
{
    struct iscsi_scsi_command inquiry;

    trig_start(r, "");
    inquiry = trig_read(r, 7, 0, 0);
    memset(inquiry.cdb, 0, sizeof inquiry.cdb);
    inquiry.cdb[0] = 0x12;
    inquiry.cdb[4] = 5;
    inquiry.expected_data_transfer_length = 255;
    trig_put_command(r, 0, &inquiry, NULL, 0);
    expect_residual(r, 7, false, true, 250);
}

/* [T-RES-03] */
static void direction_bits_that_lie_move_no_data(struct trig *r)
{
    struct iscsi_scsi_command pdu;
    struct wire_pdu got;
    uint8_t before[RIG_BLOCK];

    trig_start(r, "");
    memcpy(before, r->ram, sizeof before);
    pdu = trig_read(r, 1, 0, 1); /* a read that says W */
    pdu.read = false;
    pdu.write = true;
    trig_put_command(r, 0, &pdu, NULL, 0);
    expect_residual(r, 1, true, false, 512);
    pdu = trig_write(r, 2, 0, 1); /* a write that says R */
    pdu.read = true;
    pdu.write = false;
    trig_put_command(r, 0, &pdu, NULL, 0);
    expect_residual(r, 2, true, false, 512);
    pdu = trig_read(r, 3, 0, 1); /* neither */
    pdu.read = false;
    trig_put_command(r, 0, &pdu, NULL, 0);
    expect_residual(r, 3, true, false, 512);
    pdu = trig_read(r, 4, 0, 1); /* both */
    pdu.write = true;
    trig_put_command(r, 0, &pdu, NULL, 0);
    trig_expect(r, 0, ISCSI_SCSI_RESPONSE, &got);
    assert_int_equal(got.bhs[3], 2);
    assert_memory_equal(r->ram, before, sizeof before);
}

static void be_manual(struct trig *r)
{
    r->manual = true;
}

/* [T-RSP-02] */
static void target_failure_has_neither_status_nor_residual(struct trig *r)
{
    struct iscsi_scsi_command read;
    struct wire_pdu pdu;
    struct iscsi_scsi_response response;
    struct tgt_task *task;

    trig_start(r, "");
    read = trig_read(r, 7, 0, 1);
    trig_put_command(r, 0, &read, NULL, 0);
    trig_pump(r);
    task = trig_task(r, 7);
    assert_non_null(task);
    r->tasks[0] = NULL;
    tgt_task_respond(task, &(struct tgt_answer){.status = 2, .target_failure = true});
    trig_expect(r, 0, ISCSI_SCSI_RESPONSE, &pdu);
    iscsi_scsi_response_unpack(pdu.bhs, &response);
    assert_int_equal(response.response, ISCSI_TARGET_FAILURE);
    assert_int_equal(response.status, 0);
    assert_false(response.overflow || response.underflow);
    assert_int_equal(response.exp_data_sn, 0);
}

/* [T-NOP-01] */
static void a_ping_is_echoed_as_far_as_the_initiator_takes_it(struct trig *r)
{
    static const uint32_t sizes[] = {0, 1, 4096, 10000};
    static uint8_t data[10000];

    trig_pattern(data, sizeof data, 5);
    trig_start(r, "MaxRecvDataSegmentLength=8192\0");
    for (unsigned i = 0; i < 8; i++) {
        struct wire_pdu pdu;
        struct iscsi_nop_in in;
        uint32_t n = sizes[i / 2];

        trig_put_nop(r, 0, 50 + i, i % 2, data, n);
        trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
        iscsi_nop_in_unpack(pdu.bhs, &in);
        assert_int_equal(in.itt, 50 + i);
        assert_int_equal(in.ttt, ISCSI_TAG_NONE);
        assert_int_equal(pdu.data_length, n < 8192 ? n : 8192);
        assert_memory_equal(pdu.data, data, pdu.data_length);
    }
}

/* [T-NOP-02] */
static void a_nop_out_without_itt_is_not_answered(struct trig *r)
{
    trig_start(r, "");
    trig_acknowledge(r, 0);
    trig_expect_nothing(r, 0);
}

static void answer_ping(struct trig *r, const struct wire_pdu *pdu)
{
    struct iscsi_nop_out out = {
        .immediate = true,
        .itt = ISCSI_TAG_NONE,
        .ttt = load_be32(pdu->bhs + 20),
        .cmd_sn = r->cmd_sn,
        .exp_stat_sn = r->conns[0].exp_stat_sn,
    };
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_nop_out_pack(bhs, &out);
    wire_put(&r->conns[0].wire, bhs, NULL, 0);
    trig_pump(r);
}

static void ping_when_idle(struct trig *r)
{
    r->opts.ping_idle_ns = 10000000000;
}

/* [T-NOP-03] */
static void an_idle_connection_is_pinged_and_dropped_when_silent(struct trig *r)
{
    struct wire_pdu pdu;

    trig_start(r, "");
    trig_tick(r, 9000000000);
    trig_expect_nothing(r, 0);
    trig_tick(r, 1000000000);
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    assert_int_equal(pdu.h.itt, ISCSI_TAG_NONE);
    assert_int_not_equal(load_be32(pdu.bhs + 20), ISCSI_TAG_NONE);
    assert_int_equal(pdu.data_length, 0);
    answer_ping(r, &pdu);
    trig_tick(r, 6000000000);
    assert_false(r->conns[0].closed);
    trig_tick(r, 4000000000);
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    trig_tick(r, 5000000000);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->conns[0].why, TGT_CLOSE_TIMEOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(data_in_is_cut_to_what_the_initiator_takes),
        RIG(good_status_rides_on_the_last_data_in),
        RIG(check_condition_comes_with_sense_in_its_own_pdu),
        RIG(residual_is_the_difference_to_the_expected_length),
        RIG(no_more_than_the_expected_length_is_sent),
        RIG(a_short_allocation_length_is_no_overflow),
        RIG(direction_bits_that_lie_move_no_data),
        RIG_WITH(target_failure_has_neither_status_nor_residual, be_manual),
        RIG(a_ping_is_echoed_as_far_as_the_initiator_takes_it),
        RIG(a_nop_out_without_itt_is_not_answered),
        RIG_WITH(an_idle_connection_is_pinged_and_dropped_when_silent, ping_when_idle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
