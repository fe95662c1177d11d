/* SPDX-License-Identifier: BSD-2-Clause */
#include "ini_rig.h"

#include <string.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void expect_bytes(const uint8_t *bytes, uint32_t offset, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (bytes[i] != io_pattern(offset + i))
            fail_msg("byte %u of the payload is wrong", offset + i);
}

/* Takes a sequence of Data-Out for offset..offset+length and checks each. */
static void expect_sequence(struct peer *p, struct io *io, uint32_t itt, uint32_t ttt,
                            uint32_t offset, uint32_t length)
{
    struct wire_pdu got;
    uint32_t done = 0;

    for (uint32_t sn = 0; done < length; sn++) {
        struct iscsi_data_out data = peer_expect_data(p, &got);
        uint32_t n = least(length - done, p->rig->answers.mrdsl_in);
        assert_int_equal(data.itt, itt);
        assert_int_equal(data.ttt, ttt);
        assert_true(data.lun == (ttt == ISCSI_TAG_NONE ? 0 : io->task.lun));
        assert_int_equal(data.data_sn, sn);
        assert_int_equal(data.buffer_offset, offset + done);
        assert_int_equal(data.data_segment_length, n);
        assert_int_equal(data.final, done + n == length);
        expect_bytes(got.data, offset + done, n);
        done += n;
    }
}

static void ask(struct peer *p, struct io *io, uint32_t itt, uint32_t ttt, uint32_t sn,
                uint32_t offset, uint32_t length)
{
    peer_r2t(p, (struct iscsi_r2t){.lun = io->task.lun,
                                   .itt = itt,
                                   .ttt = ttt,
                                   .r2t_sn = sn,
                                   .buffer_offset = offset,
                                   .desired_data_transfer_length = length,
                                   PEER_NUMBERS(p, false)});
}

static void good_write(struct peer *p, uint32_t itt, uint32_t r2ts)
{
    peer_respond(
        p, (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = r2ts, PEER_NUMBERS(p, true)},
        NULL, 0);
    peer_pump(p);
}

/* One write of length bytes in the negotiated mode, checked to the last byte. */
static void write_whole(struct rig *r, uint32_t length)
{
    const struct iscsi_params *a = &r->answers;
    struct io io;
    struct wire_pdu got;
    uint32_t limit = least(a->first_burst_length, length);
    uint32_t immediate = a->immediate_data ? least(limit, a->mrdsl_in) : 0;
    uint32_t unsolicited = a->initial_r2t ? immediate : limit;

    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, length);
    io_start(r, &io);
    struct iscsi_scsi_command command = peer_expect_command(p, &got);
    assert_true(command.write);
    assert_int_equal(command.expected_data_transfer_length, length);
    assert_int_equal(got.data_length, immediate);
    expect_bytes(got.data, 0, immediate);
    assert_int_equal(command.final, unsolicited == immediate);
    expect_sequence(p, &io, command.itt, ISCSI_TAG_NONE, immediate, unsolicited - immediate);
    peer_expect_silence(p);
    uint32_t at = unsolicited, sn = 0;
    while (at < length) {
        uint32_t n = least(length - at, a->max_burst_length);
        ask(p, &io, command.itt, 0x100 + sn, sn, at, n);
        peer_pump(p);
        expect_sequence(p, &io, command.itt, 0x100 + sn, at, n);
        peer_expect_silence(p);
        at += n;
        sn++;
    }
    assert_int_equal(io.done, 0);
    good_write(p, command.itt, sn);
    assert_int_equal(io.task.result, INI_OK);
    assert_int_equal(io.task.scsi_status, 0);
    assert_int_equal(io.task.transferred, length);
    assert_true(io.task.residual == 0);
    io_end(&io, 1);
}

static void write_in_mode(struct rig *r, bool initial_r2t, bool immediate_data)
{
    static const uint32_t lengths[] = {0, 1, 511, 4095, 4096, 4097, 20000};

    r->answers.initial_r2t = initial_r2t;
    r->answers.immediate_data = immediate_data;
    r->answers.first_burst_length = 4096;
    r->answers.max_burst_length = 8192;
    r->answers.mrdsl_in = 1024;
    rig_login(r);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        write_whole(r, lengths[i]);
}

/* [I-OUT-01] [I-OUT-02] [I-OUT-03] [I-OUT-04] [I-OUT-05] [I-OUT-06] */
SCRIPT(a_write_sends_nothing_unasked_if_so_agreed)
{
    write_in_mode(r, true, false);
}

/* [I-OUT-01] [I-OUT-02] [I-OUT-03] [I-OUT-04] [I-OUT-05] [I-OUT-06] */
SCRIPT(a_write_sends_immediate_data_only)
{
    write_in_mode(r, true, true);
}

/* [I-OUT-01] [I-OUT-02] [I-OUT-03] [I-OUT-04] [I-OUT-05] [I-OUT-06] */
SCRIPT(a_write_sends_unsolicited_data_out_only)
{
    write_in_mode(r, false, false);
}

/* [I-OUT-01] [I-OUT-02] [I-OUT-03] [I-OUT-04] [I-OUT-05] [I-OUT-06] */
SCRIPT(a_write_sends_immediate_and_unsolicited_data)
{
    write_in_mode(r, false, true);
}

/* [I-OUT-02] [I-OUT-03] */
SCRIPT(the_first_burst_is_the_smaller_of_its_limit_and_the_transfer)
{
    static const uint32_t bursts[] = {512, 4096, 65536};
    static const uint32_t lengths[] = {256, 512, 4096, 65536, 70000};

    for (unsigned i = 0; i < 3; i++) {
        r->answers.initial_r2t = false;
        r->answers.first_burst_length = bursts[i];
        r->answers.mrdsl_in = 8192;
        rig_login(r);
        for (unsigned k = 0; k < 5; k++)
            write_whole(r, lengths[k]);
        rig_close_all(r);
    }
}

/* [I-OUT-05] [B-34] */
SCRIPT(a_target_that_declares_no_segment_length_gets_8192_bytes_at_most)
{
    r->declare_nothing = true;
    r->answers.mrdsl_in = 8192;
    r->answers.initial_r2t = false;
    rig_login(r);
    write_whole(r, 50000);
}

/* [I-OUT-05] [I-OUT-06] */
SCRIPT(writes_are_whole_under_both_digests)
{
    r->answers.header_digest = r->answers.data_digest = true;
    r->answers.initial_r2t = false;
    r->answers.first_burst_length = 2048;
    r->answers.mrdsl_in = 1000;
    rig_login(r);
    write_whole(r, 5001);
    write_whole(r, 3);
}

/* [I-OUT-06] */
SCRIPT(an_r2t_is_answered_with_exactly_its_bytes)
{
    enum { LENGTH = 65536, MRDSL = 1024, BURST = 16384 };
    static const uint32_t lengths[] = {1, MRDSL - 1, MRDSL, MRDSL + 1, BURST};
    struct io io;
    struct wire_pdu got;
    uint32_t at = 0;

    r->answers.immediate_data = false;
    r->answers.mrdsl_in = MRDSL;
    r->answers.max_burst_length = BURST;
    r->answers.first_burst_length = 512;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, LENGTH);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    for (uint32_t i = 0; i < 5; i++) {
        ask(p, &io, itt, i, i, at, lengths[i]);
        peer_pump(p);
        expect_sequence(p, &io, itt, i, at, lengths[i]);
        peer_expect_silence(p);
        at += lengths[i];
    }
    rig_close_all(r);
    io_end(&io, 1);
}

/* [I-OUT-07] */
SCRIPT(r2ts_are_served_in_the_order_of_their_arrival)
{
    struct io a, b;
    struct wire_pdu got;

    r->answers.immediate_data = false;
    r->answers.mrdsl_in = 1024;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&a, INI_WRITE, 16384);
    io_init(&b, INI_WRITE, 16384);
    io_start(r, &a);
    io_start(r, &b);
    uint32_t ia = peer_expect_command(p, &got).itt, ib = peer_expect_command(p, &got).itt;
    ask(p, &b, ib, 1, 0, 0, 3000);
    ask(p, &a, ia, 2, 0, 0, 5000);
    ask(p, &b, ib, 3, 1, 3000, 13384);
    ask(p, &a, ia, 4, 1, 5000, 1);
    ask(p, &a, ia, 5, 2, 5001, 11383);
    wire_push(&p->w);
    expect_sequence(p, &b, ib, 1, 0, 3000);
    expect_sequence(p, &a, ia, 2, 0, 5000);
    expect_sequence(p, &b, ib, 3, 3000, 13384);
    expect_sequence(p, &a, ia, 4, 5000, 1);
    expect_sequence(p, &a, ia, 5, 5001, 11383);
    good_write(p, ib, 2);
    good_write(p, ia, 3);
    assert_int_equal(a.task.result, INI_OK);
    assert_int_equal(b.task.result, INI_OK);
    io_end(&a, 1);
    io_end(&b, 1);
}

/* [I-OUT-07] */
SCRIPT(r2ts_out_of_order_are_served_as_they_ask)
{
    struct io io;
    struct wire_pdu got;

    r->opts.login.wishes.params.data_sequence_in_order = false;
    r->answers.data_sequence_in_order = false;
    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    assert_false(ini_session_params(r->s)->data_sequence_in_order);
    io_init(&io, INI_WRITE, 9000);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    ask(p, &io, itt, 1, 0, 6000, 3000);
    ask(p, &io, itt, 2, 1, 0, 3000);
    ask(p, &io, itt, 3, 2, 3000, 3000);
    wire_push(&p->w);
    expect_sequence(p, &io, itt, 1, 6000, 3000);
    expect_sequence(p, &io, itt, 2, 0, 3000);
    expect_sequence(p, &io, itt, 3, 3000, 3000);
    good_write(p, itt, 3);
    assert_int_equal(io.task.result, INI_OK);
    io_end(&io, 1);
}

/* [I-OUT-08] */
SCRIPT(a_wrong_r2t_moves_no_byte_and_ends_the_session)
{
    static const struct {
        uint32_t ttt, offset, length, itt_change;
        uint64_t lun_change;
        bool read;
    } wrong[] = {
        {1, 8192, 1, 0, 0, false},          /* begins at the end */
        {1, 8000, 193, 0, 0, false},        /* one byte too many */
        {1, 0xfffffff0, 0x20, 0, 0, false}, /* wraps */
        {1, 0, 0, 0, 0, false},             /* nothing */
        {1, 0, 4097, 0, 0, false},          /* above MaxBurstLength */
        {1, 0, 0xffffffff, 0, 0, false},
        {ISCSI_TAG_NONE, 0, 512, 0, 0, false},
        {1, 0, 512, 1, 0, false},                  /* a tag not in use */
        {1, 0, 512, 0, 0x0001000000000000, false}, /* another LUN */
        {1, 0, 512, 0, 0, true},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct io io;
        struct wire_pdu got;
        r->event_count = 0;
        r->answers.immediate_data = false;
        r->answers.max_burst_length = 4096;
        r->answers.first_burst_length = 4096;
        rig_login(r);
        struct peer *p = &r->peers[0];
        io_init(&io, wrong[i].read ? INI_READ : INI_WRITE, 8192);
        io_start(r, &io);
        uint32_t itt = peer_expect_command(p, &got).itt;
        io.task.lun ^= wrong[i].lun_change;
        struct io asked = io;
        io.task.lun ^= wrong[i].lun_change;
        ask(p, &asked, itt ^ wrong[i].itt_change, wrong[i].ttt, 0, wrong[i].offset,
            wrong[i].length);
        peer_pump(p);
        peer_expect_silence(p);
        rig_expect_failure(r, INI_CLOSE_PROTOCOL);
        rig_close_all(r);
        assert_int_equal(io.task.result, INI_LOST);
        io_end(&io, 1);
    }
}

/* [I-OUT-08] */
SCRIPT(more_r2ts_than_agreed_end_the_session)
{
    struct io io;
    struct wire_pdu got;

    r->answers.immediate_data = false;
    r->answers.max_outstanding_r2t = 2;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, 8192);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    for (uint32_t i = 0; i < 3; i++)
        ask(p, &io, itt, i, i, i * 512, 512);
    wire_push(&p->w); /* nothing is sent in between */
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    rig_close_all(r);
    assert_int_equal(io.task.result, INI_LOST);
    io_end(&io, 1);
}

/* [I-OUT-09] */
SCRIPT(a_repeated_r2t_is_dropped)
{
    struct io io;
    struct wire_pdu got;

    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, 2048);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    ask(p, &io, itt, 7, 0, 0, 1024);
    ask(p, &io, itt, 7, 0, 0, 1024);
    ask(p, &io, itt, 8, 1, 1024, 1024);
    peer_pump(p);
    expect_sequence(p, &io, itt, 7, 0, 1024);
    expect_sequence(p, &io, itt, 8, 1024, 1024);
    peer_expect_silence(p);
    assert_int_equal(ini_session_counters(r->s)->duplicates, 1);
    good_write(p, itt, 2);
    assert_int_equal(io.task.result, INI_OK);
    io_end(&io, 1);
}

/* [I-OUT-09] */
SCRIPT(a_skipped_r2t_ends_the_session)
{
    struct io io;
    struct wire_pdu got;

    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, 2048);
    io_start(r, &io);
    ask(p, &io, peer_expect_command(p, &got).itt, 7, 1, 0, 1024);
    peer_pump(p);
    peer_expect_silence(p);
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    rig_close_all(r);
    io_end(&io, 1);
}

/* [I-OUT-10] */
SCRIPT(unsolicited_data_of_a_command_precede_the_next_command)
{
    enum { WRITES = 8 };
    struct io io[WRITES];
    struct wire_pdu got;

    r->answers.initial_r2t = false;
    r->answers.immediate_data = false;
    r->answers.first_burst_length = 4096;
    r->answers.mrdsl_in = 1024;
    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < WRITES; i++) {
        io_init(&io[i], INI_WRITE, 3000);
        io_start(r, &io[i]);
    }
    for (unsigned i = 0; i < WRITES; i++) {
        uint32_t itt = peer_expect_command(p, &got).itt;
        expect_sequence(p, &io[i], itt, ISCSI_TAG_NONE, 0, 3000);
    }
    peer_expect_silence(p);
    rig_close_all(r);
    for (unsigned i = 0; i < WRITES; i++)
        io_end(&io[i], 1);
}

/* GOOD for bytes that were never asked for would be a lie. */
/* [I-IN-06] */
SCRIPT(a_write_that_is_good_before_its_data_went_out_fails)
{
    struct io io;
    struct wire_pdu got;

    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, 2048);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    ask(p, &io, itt, 7, 0, 1024, 1024);
    peer_pump(p);
    expect_sequence(p, &io, itt, 7, 1024, 1024);
    good_write(p, itt, 1);
    assert_int_equal(io.task.result, INI_PROTOCOL);
    io_end(&io, 1);
}

/* A response may come while Data-Out of its task still wait in the transport. */
SCRIPT(a_write_is_done_only_when_its_bytes_are_off_the_transport)
{
    struct io io;
    struct wire_pdu got;
    struct iovec iov[16];

    r->answers.immediate_data = false;
    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_WRITE, 2048);
    io_start(r, &io);
    uint32_t itt = peer_expect_command(p, &got).itt;
    ask(p, &io, itt, 7, 0, 0, 2048);
    wire_push(&p->w);
    assert_true(ini_conn_send_data(p->c, iov, 16) > 0); /* the transport holds the bytes now */
    static const uint8_t sense[20] = {0, 18, 0x70, 0, 0x0b};
    peer_respond(p,
                 (struct iscsi_scsi_response){
                     .status = 2, .itt = itt, .exp_data_sn = 1, PEER_NUMBERS(p, true)},
                 sense, sizeof sense);
    wire_push(&p->w);
    rig_tick(r, r->now);
    assert_int_equal(io.done, 0);
    wire_pull(&p->w);
    expect_sequence(p, &io, itt, 7, 0, 2048);
    assert_int_equal(io.done, 1);
    assert_int_equal(io.task.result, INI_OK);
    assert_int_equal(io.task.scsi_status, 2);
    assert_int_equal(io.task.sense_length, 18);
    io_end(&io, 1);
}

/* [B-05] */
SCRIPT(a_long_cdb_travels_in_an_additional_header)
{
    struct io io;
    struct wire_pdu got;
    struct iscsi_ahs ahs = {0};
    bool unknown = false;
    uint8_t rest[16];

    rig_login(r);
    struct peer *p = &r->peers[0];
    for (unsigned i = 0; i < 16; i++)
        rest[i] = (uint8_t)(0x80 + i);
    io_init(&io, INI_READ, 512);
    io.task.cdb[0] = 0x7f;
    io.task.cdb_rest = rest;
    io.task.cdb_length = 32;
    io_start(r, &io);
    struct iscsi_scsi_command command = peer_expect_command(p, &got);
    assert_int_equal(command.cdb[0], 0x7f);
    assert_int_equal(iscsi_ahs_unpack(got.ahs, got.ahs_length, &ahs, &unknown), 0);
    assert_true(ahs.extended_cdb);
    assert_int_equal(ahs.cdb_rest_length, 16);
    assert_memory_equal(ahs.cdb_rest, rest, 16);
    rig_close_all(r);
    io_end(&io, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_sends_nothing_unasked_if_so_agreed),
        cmocka_unit_test(a_write_sends_immediate_data_only),
        cmocka_unit_test(a_write_sends_unsolicited_data_out_only),
        cmocka_unit_test(a_write_sends_immediate_and_unsolicited_data),
        cmocka_unit_test(the_first_burst_is_the_smaller_of_its_limit_and_the_transfer),
        cmocka_unit_test(a_target_that_declares_no_segment_length_gets_8192_bytes_at_most),
        cmocka_unit_test(writes_are_whole_under_both_digests),
        cmocka_unit_test(an_r2t_is_answered_with_exactly_its_bytes),
        cmocka_unit_test(r2ts_are_served_in_the_order_of_their_arrival),
        cmocka_unit_test(r2ts_out_of_order_are_served_as_they_ask),
        cmocka_unit_test(a_wrong_r2t_moves_no_byte_and_ends_the_session),
        cmocka_unit_test(more_r2ts_than_agreed_end_the_session),
        cmocka_unit_test(a_repeated_r2t_is_dropped),
        cmocka_unit_test(a_skipped_r2t_ends_the_session),
        cmocka_unit_test(unsolicited_data_of_a_command_precede_the_next_command),
        cmocka_unit_test(a_write_that_is_good_before_its_data_went_out_fails),
        cmocka_unit_test(a_write_is_done_only_when_its_bytes_are_off_the_transport),
        cmocka_unit_test(a_long_cdb_travels_in_an_additional_header),
    };
    return cmocka_run_group_tests_name("ini_out", tests, NULL, NULL);
}
