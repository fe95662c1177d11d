/* SPDX-License-Identifier: BSD-2-Clause */
/* Target: CmdSN, windows, immediate requests, rejects, digests. */
#include "tgt_rig.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static void be_manual(struct trig *r)
{
    r->manual = true;
}

/* [T-NUM-01] */
static void the_window_is_the_free_tasks_and_never_goes_back(struct trig *r)
{
    uint32_t max = 0, sent = 0, live = 0, next = 0;

    trig_start(r, "");
    for (unsigned step = 0; step < 300; step++) {
        struct wire_pdu pdu;
        uint32_t exp_now, max_now;

        if (live < 16 && rng_below(&r->rng, 2)) {
            struct iscsi_scsi_command ready = trig_ready(r, sent++ & 0xff);

            trig_put_command(r, 0, &ready, NULL, 0);
            live++;
        } else if (live > 0) {
            trig_pump(r);
            trig_respond(trig_task(r, next++ & 0xff), 0);
            live--;
        }
        trig_pump(r);
        while (trig_take(r, 0, &pdu)) {
            exp_now = load_be32(pdu.bhs + 28);
            max_now = load_be32(pdu.bhs + 32);
            assert_int_equal(exp_now, 100 + sent);
            assert_int_equal(max_now - exp_now + 1, 16 - live);
            if (max)
                assert_true((int32_t)(max_now - max) >= 0);
            max = max_now;
        }
    }
    assert_true(sent > 50);
    while (live-- > 0)
        trig_respond(trig_task(r, next++ & 0xff), 0);
}

/* [T-NUM-02] [T-NUM-07] */
static void numbers_outside_of_the_window_are_ignored(struct trig *r)
{
    struct iscsi_scsi_command ready;

    trig_start(r, "");
    ready = trig_ready(r, 1);
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_put_command(r, 0, &ready, NULL, 0); /* again: a retry of what is in work */
    ready.itt = 2;
    trig_put_command(r, 0, &ready, NULL, 0); /* the same number for another */
    ready.cmd_sn = 99;
    trig_put_command(r, 0, &ready, NULL, 0);
    ready.cmd_sn = 101 + 16;
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_expect_nothing(r, 0);
    assert_int_equal(r->commands, 1);
    ready.itt = 1;
    ready.cmd_sn = 101; /* a live ITT for something new */
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_expect_reject(r, 0, ISCSI_REJECT_TASK_IN_PROGRESS);
    ready.itt = 2; /* T-REJ-03: the number is still open */
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_pump(r);
    assert_int_equal(r->commands, 2);
    trig_respond(trig_task(r, 1), 0);
    trig_respond(trig_task(r, 2), 0);
    trig_expect_status(r, 0, 1, 0);
    trig_expect_status(r, 0, 2, 0);
}

/* [T-NUM-03] */
static void commands_run_in_the_order_of_their_numbers(struct trig *r)
{
    static uint8_t data[512];
    struct iscsi_scsi_command a, b, c;

    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    a = trig_write(r, 0, 1, 1);
    b = trig_write(r, 1, 2, 1);
    c = trig_ready(r, 2);
    trig_pattern(data, sizeof data, 77);
    trig_put_command(r, 1, &c, NULL, 0);
    trig_put_command(r, 1, &b, data, sizeof data);
    trig_expect_nothing(r, 1);
    assert_int_equal(r->commands, 0);
    trig_put_command(r, 0, &a, data, sizeof data);
    trig_expect_status(r, 0, 0, 0);
    trig_expect_status(r, 1, 1, 0);
    trig_expect_status(r, 1, 2, 0);
    assert_string_equal(r->log, "abc");
    assert_memory_equal(r->ram + 512, data, 512);
    assert_memory_equal(r->ram + 1024, data, 512);
}

/* [T-NUM-04] */
static void too_many_immediate_requests_are_rejected(struct trig *r)
{
    struct iscsi_tmf_request tmf;
    struct tgt_tmf *held[2];
    struct wire_pdu pdu;

    r->manual_tmf = true;
    trig_start(r, "");
    for (uint32_t i = 0; i < 3; i++) {
        tmf = trig_tmf(r, 10 + i, ISCSI_CLEAR_ACA);
        trig_put_tmf(r, 0, &tmf);
    }
    trig_expect_reject(r, 0, ISCSI_REJECT_TOO_MANY_IMMEDIATE);
    trig_put_nop(r, 0, 5, true, NULL, 0); /* others have places of their own */
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    held[0] = r->tmfs[0];
    held[1] = r->tmfs[1];
    tgt_tmf_respond(held[0], ISCSI_TMF_COMPLETE, 0);
    tgt_tmf_respond(held[1], ISCSI_TMF_COMPLETE, 0);
    trig_expect(r, 0, ISCSI_TMF_RESPONSE, &pdu);
    trig_expect(r, 0, ISCSI_TMF_RESPONSE, &pdu);
    tmf = trig_tmf(r, 20, ISCSI_CLEAR_ACA);
    trig_put_tmf(r, 0, &tmf);
    trig_pump(r);
    assert_int_equal(r->tmf_count, 3);
    tgt_tmf_respond(r->tmfs[2], ISCSI_TMF_COMPLETE, 0);
    trig_expect(r, 0, ISCSI_TMF_RESPONSE, &pdu);
}

/* [T-NUM-04] */
static void immediate_commands_have_a_bound(struct trig *r)
{
    trig_start(r, "");
    for (uint32_t i = 0; i < 3; i++) {
        struct iscsi_scsi_command ready = trig_ready(r, i);

        ready.immediate = true;
        ready.cmd_sn = r->cmd_sn = 100;
        trig_put_command(r, 0, &ready, NULL, 0);
    }
    trig_expect_reject(r, 0, ISCSI_REJECT_TOO_MANY_IMMEDIATE);
    trig_respond(trig_task(r, 0), 0);
    trig_respond(trig_task(r, 1), 0);
    trig_expect_status(r, 0, 0, 0);
    trig_expect_status(r, 0, 1, 0);
}

/* [T-NUM-06] */
static void a_window_that_opens_with_nothing_to_say_is_told_by_nop_in(struct trig *r)
{
    struct wire_pdu pdu;

    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    for (uint32_t i = 0; i < 16; i++) {
        struct iscsi_scsi_command ready = trig_ready(r, i);

        trig_put_command(r, 1, &ready, NULL, 0);
    }
    trig_put_nop(r, 0, 50, true, NULL, 0); /* tells that it is closed */
    trig_pump(r);
    trig_put_nop(r, 0, 51, true, NULL, 0);
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    assert_int_equal(load_be32(pdu.bhs + 28), 116);
    assert_int_equal(load_be32(pdu.bhs + 32), 115);
    trig_cut(r, 1); /* its tasks end unanswered */
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    assert_int_equal(pdu.h.itt, ISCSI_TAG_NONE);
    assert_int_equal(load_be32(pdu.bhs + 20), ISCSI_TAG_NONE);
    assert_int_equal(load_be32(pdu.bhs + 32), 131);
    assert_int_equal(r->cleared, 1);
}

/* [T-REJ-01] [T-REJ-02] */
static void a_reject_carries_the_whole_bad_header(struct trig *r)
{
    static const uint8_t ahs[12] = {0, 9, 0x7f, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct iscsi_scsi_command ready;
    struct wire_pdu pdu;
    uint8_t bhs[ISCSI_BHS_SIZE];

    trig_start(r, "");
    ready = trig_ready(r, 1);
    iscsi_scsi_command_pack(bhs, &ready);
    wire_put_ahs(&r->conns[0].wire, bhs, ahs, sizeof ahs, NULL, 0); /* an unknown AHS */
    trig_expect(r, 0, ISCSI_REJECT, &pdu);
    assert_int_equal(pdu.data_length, ISCSI_BHS_SIZE + sizeof ahs);
    bhs[4] = sizeof ahs / 4;
    assert_memory_equal(pdu.data, bhs, ISCSI_BHS_SIZE);
    assert_memory_equal(pdu.data + ISCSI_BHS_SIZE, ahs, sizeof ahs);
    assert_int_equal(load_be32(pdu.bhs + 28), 100);
    assert_int_equal(load_be32(pdu.bhs + 32), 115);
}

/* [T-REJ-04] [T-SNK-05] */
static void unknown_opcodes_are_rejected(struct trig *r)
{
    static const uint8_t opcodes[] = {0x07, 0x10, 0x1c, 0x21, 0x3f};

    trig_start(r, "");
    for (unsigned i = 0; i < sizeof opcodes; i++) {
        uint8_t bhs[ISCSI_BHS_SIZE] = {opcodes[i], 0x80};
        uint8_t data[100] = {0};

        store_be32(bhs + 28, r->conns[0].exp_stat_sn);
        wire_put(&r->conns[0].wire, bhs, data, sizeof data);
        trig_expect_reject(r, 0, ISCSI_REJECT_NOT_SUPPORTED);
    }
    assert_false(r->conns[0].closed);
}

/* [T-REJ-02] */
static void a_login_request_after_the_login_is_a_protocol_error(struct trig *r)
{
    uint8_t bhs[ISCSI_BHS_SIZE] = {0x43, 0x87};

    trig_start(r, "");
    wire_put(&r->conns[0].wire, bhs, NULL, 0);
    trig_expect_reject(r, 0, ISCSI_REJECT_PROTOCOL);
}

/* [T-REJ-02] */
static void without_memory_for_a_ping_it_is_rejected(struct trig *r)
{
    struct wire_pdu pdu;

    trig_start(r, "");
    r->no_hold = true;
    trig_put_nop(r, 0, 5, false, "abcd", 4);
    trig_expect_reject(r, 0, ISCSI_REJECT_NO_RESOURCES);
    r->no_hold = false;
    r->cmd_sn--; /* T-REJ-03 */
    trig_put_nop(r, 0, 5, false, "abcd", 4);
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    assert_int_equal(load_be32(pdu.bhs + 28), r->cmd_sn);
}

/* A peer that does not read its Rejects is not read from, and goes on later. */
static void rejects_that_nobody_reads_stop_the_reading(struct trig *r)
{
    struct wire *w = &r->conns[0].wire;
    unsigned got = 0;
    struct wire_pdu pdu;
    struct iovec iov[4];

    trig_start(r, "");
    for (unsigned i = 0; i < 200 && !w->refused; i++) {
        uint8_t bhs[ISCSI_BHS_SIZE] = {0x07, 0x80};

        wire_put(w, bhs, NULL, 0);
        wire_push(w);
    }
    assert_true(w->refused);
    assert_int_equal(tgt_conn_recv_space(r->conns[0].conn, iov, 4), 0);
    wire_pull(w);
    while (trig_take(r, 0, &pdu))
        got++;
    assert_true(got >= TGT_CONTROL_SLOTS - 4 && got < 200);
    assert_true(r->conns[0].want_recv > 0);
    assert_true(tgt_conn_recv_space(r->conns[0].conn, iov, 4) > 0);
}

#define DIGESTS "HeaderDigest=CRC32C\0DataDigest=CRC32C\0"

static void start_digests(struct trig *r)
{
    trig_start(r, DIGESTS);
    r->conns[0].wire.header_digest = r->conns[0].wire.data_digest = true;
}

static void digests_guard_every_pdu(struct trig *r)
{
    static uint8_t data[1001];
    struct iscsi_scsi_command write, read;
    struct wire_pdu pdu;

    start_digests(r);
    trig_pattern(data, sizeof data, 9);
    trig_put_nop(r, 0, 5, true, data, sizeof data);
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
    assert_memory_equal(pdu.data, data, sizeof data);
    write = trig_write(r, 1, 0, 1);
    trig_put_command(r, 0, &write, data, 512);
    trig_expect_status(r, 0, 1, 0);
    read = trig_read(r, 2, 0, 1);
    trig_put_command(r, 0, &read, NULL, 0);
    trig_expect(r, 0, ISCSI_DATA_IN, &pdu);
    assert_memory_equal(pdu.data, data, 512);
}

/* [T-ERR-01] */
static void a_wrong_header_digest_executes_nothing_and_closes(struct trig *r)
{
    struct iscsi_scsi_command write;
    uint8_t data[512] = {0};

    start_digests(r);
    write = trig_write(r, 1, 0, 1);
    r->conns[0].wire.flip_header = true;
    trig_put_command(r, 0, &write, data, sizeof data);
    trig_pump(r);
    assert_int_equal(r->commands, 0);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->conns[0].why, TGT_CLOSE_DIGEST);
}

/* [T-ERR-02] [T-REJ-03] */
static void a_wrong_data_digest_leaves_the_number_open(struct trig *r)
{
    struct iscsi_scsi_command write;
    uint8_t data[512];
    struct wire_pdu pdu;

    start_digests(r);
    trig_pattern(data, sizeof data, 9);
    write = trig_write(r, 1, 0, 1);
    r->conns[0].wire.flip_data = true;
    trig_put_command(r, 0, &write, data, sizeof data);
    trig_expect_reject(r, 0, ISCSI_REJECT_DATA_DIGEST);
    trig_expect_nothing(r, 0);
    assert_int_equal(r->datas, 0);
    trig_put_command(r, 0, &write, data, sizeof data);
    trig_expect_status(r, 0, 1, 0);
    assert_int_equal(r->datas, 1);
    r->conns[0].wire.flip_data = true;
    trig_put_nop(r, 0, 5, false, data, sizeof data);
    trig_expect_reject(r, 0, ISCSI_REJECT_DATA_DIGEST);
    r->cmd_sn--;
    trig_put_nop(r, 0, 5, false, data, sizeof data);
    trig_expect(r, 0, ISCSI_NOP_IN, &pdu);
}

/* [T-ERR-02] */
static void a_wrong_data_digest_of_data_out_fails_the_command_after_f(struct trig *r)
{
    static uint8_t data[8192];
    struct iscsi_scsi_command write;
    struct wire_pdu pdu;
    struct iscsi_r2t r2t;
    struct iscsi_data_out out = {.itt = 1};

    trig_start(r, DIGESTS "InitialR2T=Yes\0");
    r->conns[0].wire.header_digest = r->conns[0].wire.data_digest = true;
    write = trig_write(r, 1, 0, 16);
    trig_put_command(r, 0, &write, NULL, 0);
    trig_expect(r, 0, ISCSI_R2T, &pdu);
    iscsi_r2t_unpack(pdu.bhs, &r2t);
    out.ttt = r2t.ttt;
    r->conns[0].wire.flip_data = true;
    trig_put_data_pdu(r, 0, &out, data, 4096);
    trig_expect_reject(r, 0, ISCSI_REJECT_DATA_DIGEST);
    trig_expect_nothing(r, 0);
    out.data_sn = 1;
    out.buffer_offset = 4096;
    out.final = true;
    trig_put_data_pdu(r, 0, &out, data, 4096);
    trig_expect_sense(r, 0, 1, 0xb, 0x47, 0x05);
}

/* [T-ERR-03] */
static void a_format_error_closes_all_connections_of_the_session(struct trig *r)
{
    uint8_t bhs[ISCSI_BHS_SIZE] = {0x40, 0x80}, *data;
    const uint32_t n = 65536 + 4;

    trig_start(r, "MaxConnections=2\0");
    trig_join(r, 1);
    data = calloc(1, n);
    store_be32(bhs + 16, 5);
    wire_put(&r->conns[1].wire, bhs, data, n); /* more than we declared to take */
    free(data);
    trig_pump(r);
    assert_true(r->conns[0].closed && r->conns[1].closed);
    assert_int_equal(r->session_closed, 1);
    assert_int_equal(r->end, TGT_END_PROTOCOL);
}

/* [T-ERR-03] */
static void an_ahs_chain_that_does_not_fit_ends_the_session(struct trig *r)
{
    static const uint8_t ahs[4] = {0, 99, ISCSI_AHS_EXTENDED_CDB, 0};
    struct iscsi_scsi_command ready;
    uint8_t bhs[ISCSI_BHS_SIZE];

    trig_start(r, "");
    ready = trig_ready(r, 1);
    iscsi_scsi_command_pack(bhs, &ready);
    wire_put_ahs(&r->conns[0].wire, bhs, ahs, sizeof ahs, NULL, 0);
    trig_pump(r);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->end, TGT_END_PROTOCOL);
    assert_int_equal(r->commands, 0);
}

static void an_extended_cdb_arrives_whole(struct trig *r)
{
    struct iscsi_ahs ahs = {.extended_cdb = true, .cdb_rest_length = 16};
    struct iscsi_scsi_command ready;
    uint8_t bhs[ISCSI_BHS_SIZE], chain[ISCSI_AHS_MAX];
    struct tgt_task *task;

    trig_start(r, "");
    ready = trig_ready(r, 1);
    ready.cdb[0] = 0x7f;
    trig_pattern(ahs.cdb_rest, 16, 4);
    iscsi_scsi_command_pack(bhs, &ready);
    wire_put_ahs(&r->conns[0].wire, bhs, chain, iscsi_ahs_pack(chain, &ahs), NULL, 0);
    trig_pump(r);
    task = trig_task(r, 1);
    assert_non_null(task);
    assert_int_equal(task->cdb_length, 32);
    assert_int_equal(task->cdb[0], 0x7f);
    assert_memory_equal(task->cdb + 16, ahs.cdb_rest, 16);
    trig_respond(task, 0);
    trig_expect_status(r, 0, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_WITH(the_window_is_the_free_tasks_and_never_goes_back, be_manual),
        RIG_WITH(numbers_outside_of_the_window_are_ignored, be_manual),
        RIG(commands_run_in_the_order_of_their_numbers),
        RIG(too_many_immediate_requests_are_rejected),
        RIG_WITH(immediate_commands_have_a_bound, be_manual),
        RIG_WITH(a_window_that_opens_with_nothing_to_say_is_told_by_nop_in, be_manual),
        RIG(a_reject_carries_the_whole_bad_header),
        RIG(unknown_opcodes_are_rejected),
        RIG(a_login_request_after_the_login_is_a_protocol_error),
        RIG(without_memory_for_a_ping_it_is_rejected),
        RIG(rejects_that_nobody_reads_stop_the_reading),
        RIG(digests_guard_every_pdu),
        RIG(a_wrong_header_digest_executes_nothing_and_closes),
        RIG(a_wrong_data_digest_leaves_the_number_open),
        RIG(a_wrong_data_digest_of_data_out_fails_the_command_after_f),
        RIG(a_format_error_closes_all_connections_of_the_session),
        RIG(an_ahs_chain_that_does_not_fit_ends_the_session),
        RIG_WITH(an_extended_cdb_arrives_whole, be_manual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
