/* SPDX-License-Identifier: BSD-2-Clause */
/* What the logical unit says of itself, and how it judges CDBs. */
#include "lu_rig.h"

#include <stdio.h>

enum { BLOCKS = 2048, SIZE = BLOCKS * 512 };

static bool known(const uint8_t *cdb)
{
    return scsi_command_find(cdb, 6) >= 0;
}

/* [S-01] */
static void every_op_code_with_every_service_action_has_the_right_answer(void **state)
{
    struct rig rig;
    uint8_t cdb[16];

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned op = 0; op < 256; op++) {
        for (unsigned action = 0; action < 32; action++) {
            memset(cdb, 0, sizeof cdb);
            cdb[0] = (uint8_t)op;
            cdb[1] = (uint8_t)action;
            enum scsi_command c = scsi_command_find(cdb, sizeof cdb);
            struct lu_task *t = rig_run_cdb(&rig, 0, cdb, sizeof cdb);
            if (c == SCSI_CMD_NONE)
                is_illegal(t, SCSI_ASC_INVALID_OPCODE);
            else if (c == SCSI_CMD_NO_SERVICE)
                is_illegal(t, SCSI_ASC_INVALID_FIELD_IN_CDB);
            assert_int_equal(known(cdb), c >= 0);
            rig_run_cdb(&rig, 0, (const uint8_t[]){SCSI_START_STOP_UNIT, 0, 0, 0, 1, 0}, 6);
            rig_run_cdb(&rig, 0, (const uint8_t[]){SCSI_RELEASE_6, 0, 0, 0, 0, 0}, 6);
        }
    }
    rig_end(&rig);
}

static void short_cdbs_are_refused(void **state)
{
    struct rig rig;
    uint8_t cdb[16] = {0};

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned op = 0; op < 256; op++) {
        for (size_t n = 1; n < 16; n++) {
            cdb[0] = (uint8_t)op;
            enum scsi_command c = scsi_command_find(cdb, n);
            struct lu_task *t = rig_run_cdb(&rig, 0, cdb, n);
            if (c >= 0 && n < scsi_command_info(c)->size)
                is_illegal(t, SCSI_ASC_INVALID_FIELD_IN_CDB);
            rig_run_cdb(&rig, 0, (const uint8_t[]){SCSI_START_STOP_UNIT, 0, 0, 0, 1, 0}, 6);
            rig_run_cdb(&rig, 0, (const uint8_t[]){SCSI_RELEASE_6, 0, 0, 0, 0, 0}, 6);
        }
    }
    rig_end(&rig);
}

/* [S-02] */
static void an_absent_unit_answers_what_it_has_to(void **state)
{
    struct lp_error err;
    struct lu_opts opts = {.target_name = "iqn.2026-01.com.example:target"};
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    struct lu *lu = rig.lu;
    struct lu_nexus *nexus = rig.nexus[0];
    rig.lu = lu_new(NULL, &opts, &err);
    assert_non_null(rig.lu);
    rig.nexus[0] = rig_nexus(rig.lu, "iqn.2026-01.com.example:one", 1, 1);
    GOOD(&rig, 0, SCSI_CMD_INQUIRY, .length = 96);
    assert_int_equal(rig.in[0], 0x7f);
    GOOD(&rig, 0, SCSI_CMD_REPORT_LUNS, .length = 24);
    assert_int_equal(load_be32(rig.in), 0);
    GOOD(&rig, 0, SCSI_CMD_REQUEST_SENSE, .length = 18);
    assert_int_equal(rig.in[2], SCSI_KEY_ILLEGAL_REQUEST);
    assert_int_equal(rig.in[12], 0x25);
    for (int c = 0; c < SCSI_CMD_COUNT; c++)
        if (c != SCSI_CMD_INQUIRY && c != SCSI_CMD_REPORT_LUNS && c != SCSI_CMD_REQUEST_SENSE)
            CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LUN_NOT_SUPPORTED,
                  (enum scsi_command)c, .length = c == SCSI_CMD_READ_6 || c == SCSI_CMD_WRITE_6);
    is_illegal(rig_run_cdb(&rig, 0, (const uint8_t[16]){0xff}, 16), SCSI_ASC_LUN_NOT_SUPPORTED);
    lu_nexus_close(rig.nexus[0]);
    lu_free(rig.lu);
    rig.lu = lu;
    rig.nexus[0] = nexus;
    rig_end(&rig);
}

/* [S-03] [S-04] */
static void standard_inquiry_data_is_complete_and_cut_only_by_the_allocation_length(void **state)
{
    static const uint32_t lengths[] = {0, 4, 5, 36, 95, 96, 255, 512, 65535};
    struct scsi_inquiry q;
    struct lp_error err;
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint32_t n = lengths[i] < 96 ? lengths[i] : 96;
        struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_INQUIRY, .length = lengths[i]);
        assert_int_equal(t->data_in, n);
        assert_int_equal(t->transfer_length, n);
        if (n >= 5)
            assert_int_equal(rig.in[4], 96 - 5);
        assert_int_equal(rig.in[n], 0xee); /* never more */
    }
    GOOD(&rig, 0, SCSI_CMD_INQUIRY, .length = 255);
    assert_int_equal(scsi_inquiry_unpack(&q, rig.in, 96, &err), 0);
    assert_int_equal(q.qualifier, 0);
    assert_int_equal(q.device_type, SCSI_TYPE_DISK);
    assert_int_equal(q.version, 6);
    assert_true(q.hisup && q.cmdque && !q.removable && !q.protect);
    assert_int_equal(rig.in[3] & 0xf, 2);
    assert_string_equal(q.vendor, "LUNPATH");
    assert_int_equal(q.descriptor_count, 4);
    assert_int_equal(q.descriptors[3], 0x0960 + 2); /* protocol level 2 */
    for (unsigned page = 1; page < 256; page++)
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_INQUIRY,
              .byte2 = (uint8_t)page, .length = 96);
    rig_end(&rig);
}

/* [S-05] */
static void the_list_of_vpd_pages_is_what_can_be_read(void **state)
{
    struct scsi_vpd_pages pages;
    struct lp_error err;
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_INQUIRY, .flags = 1, .length = 300);
    assert_int_equal(scsi_vpd_pages_unpack(&pages, rig.in, (size_t)t->data_in, &err), 0);
    for (size_t i = 5; i < t->data_in; i++)
        assert_true(rig.in[i] > rig.in[i - 1]);
    for (unsigned page = 0; page < 256; page++) {
        if (!scsi_vpd_has(&pages, (uint8_t)page)) {
            CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB,
                  SCSI_CMD_INQUIRY, .flags = 1, .byte2 = (uint8_t)page, .length = 255);
            continue;
        }
        t = GOOD(&rig, 0, SCSI_CMD_INQUIRY, .flags = 1, .byte2 = (uint8_t)page, .length = 1000);
        assert_int_equal(rig.in[1], page);
        assert_int_equal(load_be16(rig.in + 2) + 4, t->data_in);
    }
    for (unsigned i = 0; i < 7; i++)
        assert_true(
            scsi_vpd_has(&pages, (const uint8_t[]){0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2}[i]));
    rig_end(&rig);
}

static size_t read_vpd(struct rig *rig, unsigned n, uint8_t page, uint8_t *out)
{
    struct lu_task *t = GOOD(rig, n, SCSI_CMD_INQUIRY, .flags = 1, .byte2 = page, .length = 1024);

    memcpy(out, rig->in, 1024);
    return (size_t)t->data_in;
}

/* [S-06] [S-07] */
static void identifiers_are_stable_unique_and_the_same_on_every_path(void **state)
{
    uint8_t page[3][1024];
    char serial[3][64];
    struct lp_error err;
    struct rig rig;

    (void)state;
    for (unsigned i = 0; i < 3; i++) { /* the third is another LU */
        rig_init(&rig, SIZE);
        rig.opts.number = i == 2 ? 4 : 3;
        rig_start(&rig);
        size_t n = read_vpd(&rig, 0, SCSI_VPD_SERIAL, page[i]);
        assert_int_equal(scsi_vpd_serial_unpack(serial[i], 64, page[i], n, &err), 0);
        assert_true(strlen(serial[i]) >= 8);
        read_vpd(&rig, i == 1, SCSI_VPD_DEVICE_ID, page[i]);
        rig_end(&rig);
    }
    assert_string_equal(serial[0], serial[1]);
    assert_string_not_equal(serial[0], serial[2]);
    size_t at[3] = {0};
    struct scsi_designator d[3];
    unsigned of_lu = 0, of_port = 0, of_target = 0;
    for (;;) {
        bool more = false;
        for (unsigned i = 0; i < 3; i++)
            more = scsi_designator_next(page[i] + 4, load_be16(page[i] + 2), &at[i], &d[i]);
        if (!more)
            break;
        bool same = d[0].length == d[1].length && !memcmp(d[0].bytes, d[1].bytes, d[0].length);
        bool other = d[0].length != d[2].length || memcmp(d[0].bytes, d[2].bytes, d[0].length);
        if (d[0].association == SCSI_OF_LU) {
            assert_true(same && other);
            of_lu++;
        } else {
            assert_true(d[0].protocol_valid && d[0].protocol == SCSI_PROTOCOL_ISCSI);
            of_target += d[0].association == SCSI_OF_TARGET;
            of_port += d[0].association == SCSI_OF_PORT;
            assert_int_equal(same, d[0].association == SCSI_OF_TARGET);
        }
        if (d[0].type == SCSI_DESIGNATOR_NAME)
            assert_int_equal(d[0].length % 4, 0);
        if (d[0].type == SCSI_DESIGNATOR_NAA)
            assert_int_equal(d[0].bytes[0] >> 4, 3);
    }
    assert_int_equal(at[0], load_be16(page[0] + 2));
    assert_int_equal(of_lu, 2);
    assert_int_equal(of_port, 3);
    assert_int_equal(of_target, 1);
}

/* [S-08] [S-09] [S-10] */
static void limits_and_provisioning_agree_with_each_other(void **state)
{
    struct scsi_block_limits l;
    struct scsi_provisioning p;
    struct scsi_block_characteristics c;
    struct scsi_capacity cap;
    struct lp_error err;
    uint8_t page[1024];
    struct rig rig;

    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) { /* thick, thin, thin that reads zeros */
        rig_init(&rig, SIZE);
        rig.opts.thin = kind > 0;
        rig.opts.discard_zeroes = kind > 1;
        rig.opts.rotational = kind == 0;
        rig_start(&rig);
        size_t n = read_vpd(&rig, 0, SCSI_VPD_BLOCK_LIMITS, page);
        assert_int_equal(n, 64);
        assert_int_equal(scsi_block_limits_unpack(&l, page, n, &err), 0);
        assert_int_equal(l.max_compare_and_write, 255);
        assert_int_equal(l.max_transfer, (8 << 20) / 512);
        assert_int_equal(l.max_unmap_blocks, kind ? 1 << 20 : 0);
        assert_int_equal(l.max_unmap_descriptors, kind ? 256 : 0);
        assert_int_equal(l.max_write_same, 1 << 20);
        n = read_vpd(&rig, 0, SCSI_VPD_PROVISIONING, page);
        assert_int_equal(scsi_provisioning_unpack(&p, page, n, &err), 0);
        n = read_vpd(&rig, 0, SCSI_VPD_BLOCK_CHARACTERISTICS, page);
        assert_int_equal(scsi_block_characteristics_unpack(&c, page, n, &err), 0);
        assert_int_equal(c.rotation_rate, kind ? 1 : 0);
        GOOD(&rig, 0, SCSI_CMD_READ_CAPACITY_16, .length = 32);
        assert_int_equal(scsi_capacity_16_unpack(&cap, rig.in, 32, &err), 0);
        assert_int_equal(p.lbpu, kind > 0);
        assert_int_equal(cap.lbpme, kind > 0);
        assert_int_equal(p.type, kind > 0 ? 2 : 0);
        assert_int_equal(p.lbprz, kind > 1);
        assert_int_equal(cap.lbprz, kind > 1);
        assert_int_equal(p.lbpws, kind > 1);
        uint8_t status = RUN(&rig, 0, SCSI_CMD_UNMAP)->status;
        assert_int_equal(status, p.lbpu ? SCSI_GOOD : SCSI_CHECK_CONDITION);
        status =
            RUN(&rig, 0, SCSI_CMD_WRITE_SAME_10, .length = 1, .flags = SCSI_CDB_WS_UNMAP)->status;
        assert_int_equal(status, p.lbpws10 ? SCSI_GOOD : SCSI_CHECK_CONDITION);
        rig_end(&rig);
    }
}

static bool three_hundred(void *user, const struct lu_nexus *nexus, unsigned index, uint8_t lun[8])
{
    (void)nexus;
    return index < *(unsigned *)user && scsi_lun_pack(index, lun) == 0;
}

/* [S-11] */
static void report_luns_tells_all_whatever_the_allocation_length(void **state)
{
    static const unsigned counts[] = {0, 1, 300};
    static const uint32_t lengths[] = {0, 8, 15, 16, 24, 100, 8 + 8 * 300, 1u << 31};
    struct rig rig;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        unsigned count = counts[i];
        rig_init(&rig, SIZE);
        rig.opts.lun_at = three_hundred;
        rig.opts.lun_user = &count;
        rig_start(&rig);
        for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_REPORT_LUNS, .length = lengths[k]);
            uint32_t whole = 8 + 8 * count;
            assert_int_equal(t->data_in, lengths[k] < whole ? lengths[k] : whole);
            if (t->data_in >= 4)
                assert_int_equal(load_be32(rig.in), 8 * count);
            for (unsigned n = 0; 16 + 8 * n <= t->data_in; n++) {
                uint32_t number;
                assert_int_equal(scsi_lun_number(rig.in + 8 + 8 * n, &number), 0);
                assert_int_equal(number, n);
            }
        }
        GOOD(&rig, 0, SCSI_CMD_REPORT_LUNS, .length = 24, .byte2 = 1);
        assert_int_equal(load_be32(rig.in), 0);
        GOOD(&rig, 0, SCSI_CMD_REPORT_LUNS, .length = 24, .byte2 = 2);
        assert_int_equal(load_be32(rig.in), 8 * count);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB,
              SCSI_CMD_REPORT_LUNS, .length = 24, .byte2 = 3);
        rig_end(&rig);
    }
}

/* [S-12] [S-46] */
static void a_stopped_unit_is_not_ready_until_it_is_started(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    GOOD(&rig, 0, SCSI_CMD_TEST_UNIT_READY);
    GOOD(&rig, 0, SCSI_CMD_START_STOP_UNIT, .byte4 = 0);
    assert_int_equal(rig.disk.trace[0].op, LP_FLUSH);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(&rig, i, SCSI_KEY_NOT_READY, SCSI_ASC_START_NEEDED, SCSI_CMD_TEST_UNIT_READY);
        CHECK(&rig, i, SCSI_KEY_NOT_READY, SCSI_ASC_START_NEEDED, SCSI_CMD_READ_10, .length = 1);
        GOOD(&rig, i, SCSI_CMD_INQUIRY, .length = 96);
        GOOD(&rig, i, SCSI_CMD_REQUEST_SENSE, .length = 18);
        assert_int_equal(rig.in[2], SCSI_KEY_NOT_READY);
    }
    GOOD(&rig, 1, SCSI_CMD_START_STOP_UNIT, .byte4 = 1);
    GOOD(&rig, 0, SCSI_CMD_TEST_UNIT_READY);
    rig.disk.flush_status = -EIO;
    CHECK(&rig, 0, SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_WRITE_ERROR, SCSI_CMD_START_STOP_UNIT);
    GOOD(&rig, 0, SCSI_CMD_TEST_UNIT_READY); /* it did not stop */
    /* Nothing can be ejected, so nothing is locked. */
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB,
          SCSI_CMD_START_STOP_UNIT, .byte4 = 2);
    GOOD(&rig, 0, SCSI_CMD_PREVENT_ALLOW);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_PREVENT_ALLOW,
          .byte4 = 1);
    rig_end(&rig);
}

/* [S-13] */
static void request_sense_takes_the_unit_attention_as_data(void **state)
{
    struct scsi_sense s;
    struct rig rig;
    struct lu_task *t;

    (void)state;
    rig_open(&rig, SIZE);
    for (uint8_t desc = 0; desc < 2; desc++) {
        lu_reset(rig.lu, NULL);
        t = GOOD(&rig, 0, SCSI_CMD_REQUEST_SENSE, .length = 252, .flags = desc);
        assert_true(scsi_sense_unpack(&s, rig.in, (size_t)t->data_in));
        assert_int_equal(s.descriptor, desc);
        assert_int_equal(s.key, SCSI_KEY_UNIT_ATTENTION);
        assert_int_equal(scsi_sense_asc(&s), SCSI_ASC_DEVICE_RESET);
        t = GOOD(&rig, 0, SCSI_CMD_REQUEST_SENSE, .length = 252, .flags = desc);
        assert_true(scsi_sense_unpack(&s, rig.in, (size_t)t->data_in));
        assert_int_equal(s.key, SCSI_KEY_NO_SENSE);
        GOOD(&rig, 0, SCSI_CMD_TEST_UNIT_READY);
    }
    rig_end(&rig);
}

static int null_submit(struct lp_queue *q, struct lp_request *r)
{
    (void)q, (void)r;
    return -EAGAIN;
}

/* [S-14] [S-15] */
static void capacities_of_every_size_and_kind_are_right(void **state)
{
    static const struct {
        uint64_t size;
        uint32_t block;
        uint8_t exponent;
        uint32_t last_10;
        uint64_t last_16;
    } cases[] = {
        {(uint64_t)2 << 40, 512, 0, UINT32_MAX, UINT32_MAX},
        {((uint64_t)2 << 40) - 512, 512, 0, UINT32_MAX - 1, UINT32_MAX - 1},
        {(uint64_t)3 << 40, 512, 3, UINT32_MAX, ((uint64_t)3 << 31) - 1},
        {(uint64_t)3 << 40, 4096, 0, (3u << 28) - 1, (3u << 28) - 1},
        {1 << 20, 512, 3, 2047, 2047},
    };
    struct scsi_capacity c;
    struct lp_error err;
    struct rig rig;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lp_queue_ops ops;
        rig_init(&rig, 4096);
        ops = *rig.disk.q.ops;
        ops.submit = null_submit; /* no such memory to move data from */
        rig.disk.q.ops = &ops;
        rig.disk.q.limits.size = cases[i].size;
        rig.opts.block_size = cases[i].block;
        rig.opts.physical_exponent = cases[i].exponent;
        rig_start(&rig);
        GOOD(&rig, 0, SCSI_CMD_READ_CAPACITY_10);
        assert_int_equal(load_be32(rig.in), cases[i].last_10);
        assert_int_equal(load_be32(rig.in + 4), cases[i].block);
        for (uint32_t n = 0; n < 40; n++) {
            struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_READ_CAPACITY_16, .length = n);
            assert_int_equal(t->data_in, n < 32 ? n : 32);
        }
        assert_int_equal(scsi_capacity_16_unpack(&c, rig.in, 32, &err), 0);
        assert_int_equal(c.last_lba, cases[i].last_16);
        assert_int_equal(c.block_size, cases[i].block);
        assert_int_equal(c.physical_exponent, cases[i].exponent);
        assert_int_equal(c.lowest_aligned, 0);
        assert_false(c.prot_en);
        rig_end(&rig);
    }
}

/* [S-43] [S-01] */
static void every_bit_outside_the_usage_mask_is_refused(void **state)
{
    struct rig rig;
    unsigned bits = 0;

    (void)state;
    rig_open(&rig, SIZE);
    struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_REPORT_SUPPORTED_OPCODES, .length = 65535);
    uint32_t all = load_be32(rig.in);
    uint8_t list[8 * SCSI_CMD_COUNT];
    assert_int_equal(t->data_in, all + 4);
    assert_int_equal(all, 8 * SCSI_CMD_COUNT);
    memcpy(list, rig.in + 4, all);
    for (uint32_t at = 0; at < all; at += 8) {
        bool services = list[at + 5] & 1;
        uint16_t action = load_be16(list + at + 2);
        uint8_t cdb[16], usage[16];
        assert_true(services || action == 0);
        GOOD(&rig, 0, SCSI_CMD_REPORT_SUPPORTED_OPCODES, .length = 100, .byte2 = services ? 2 : 1,
             .byte3 = list[at], .requested_service_action = action);
        uint16_t size = load_be16(rig.in + 2);
        assert_int_equal(rig.in[1] & 7, 3);
        assert_int_equal(size, load_be16(list + at + 6));
        memcpy(usage, rig.in + 4, size);
        assert_int_equal(usage[0], list[at]);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB,
              SCSI_CMD_REPORT_SUPPORTED_OPCODES, .length = 100, .byte2 = services ? 1 : 2,
              .byte3 = list[at], .requested_service_action = action);
        for (unsigned bit = 8; bit < 8u * size; bit++) {
            if (usage[bit / 8] >> bit % 8 & 1 || (services && bit < 13))
                continue;
            memset(cdb, 0, sizeof cdb);
            cdb[0] = list[at];
            cdb[1] = (uint8_t)action;
            cdb[bit / 8] |= (uint8_t)(1 << bit % 8);
            t = is_illegal(rig_run_cdb(&rig, 0, cdb, size), SCSI_ASC_INVALID_FIELD_IN_CDB);
            assert_true(t->sense.field_valid && t->sense.field_in_cdb && t->sense.bit_valid);
            assert_int_equal(t->sense.field * 8 + t->sense.bit, bit);
            bits++;
        }
    }
    assert_true(bits > 500);
    rig_end(&rig);
}

/* [S-43] */
static void unlisted_commands_are_reported_as_not_supported(void **state)
{
    struct rig rig;
    uint8_t cdb[16] = {0};

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned op = 0; op < 256; op++) {
        cdb[0] = (uint8_t)op;
        if (scsi_command_find(cdb, 16) != SCSI_CMD_NONE)
            continue;
        for (uint8_t option = 1; option < 4; option++) {
            struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_REPORT_SUPPORTED_OPCODES, .length = 100,
                                     .byte2 = option, .byte3 = (uint8_t)op);
            assert_int_equal(t->data_in, 4);
            assert_int_equal(rig.in[1], 1);
        }
    }
    struct lu_task *t =
        GOOD(&rig, 0, SCSI_CMD_REPORT_SUPPORTED_OPCODES, .length = 65535, .byte2 = 0x80);
    assert_int_equal(t->data_in, 4 + 20 * SCSI_CMD_COUNT); /* with command timeouts */
    for (unsigned i = 0; i < SCSI_CMD_COUNT; i++) {
        assert_true(rig.in[4 + 20 * i + 5] & 2);
        assert_int_equal(load_be16(rig.in + 4 + 20 * i + 8), 10);
    }
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB,
          SCSI_CMD_REPORT_SUPPORTED_OPCODES, .length = 100, .byte2 = 4);
    rig_end(&rig);
}

/* [S-44] */
static void task_management_functions_are_reported_by_protocol_level(void **state)
{
    struct rig rig;

    (void)state;
    for (unsigned level = 1; level < 3; level++) {
        rig_init(&rig, SIZE);
        rig.opts.iscsi_protocol_level = level;
        rig_start(&rig);
        struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_REPORT_SUPPORTED_TMF, .length = 4);
        assert_int_equal(t->data_in, 4);
        assert_int_equal(rig.in[0], level == 2 ? 0xdc : 0xd8);
        assert_int_equal(rig.in[1], level == 2 ? 0x07 : 0);
        t = GOOD(&rig, 0, SCSI_CMD_REPORT_SUPPORTED_TMF, .length = 16, .byte2 = 0x80);
        assert_int_equal(t->data_in, 16);
        rig_end(&rig);
    }
}

/* [S-45] */
static void port_groups_list_every_port_once(void **state)
{
    static const struct lu_port ports[] = {{1, 1}, {2, 1}, {3, 7}};
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.ports = ports;
    rig.opts.port_count = 3;
    rig_start(&rig);
    for (uint8_t format = 0; format < 2; format++) {
        struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_REPORT_TARGET_PORT_GROUPS, .length = 200,
                                 .flags = (uint8_t)(format << 5));
        struct scsi_port_group g;
        size_t at = 0;
        assert_int_equal(t->data_in, 4 + (format ? 4 : 0) + 2 * 8 + 3 * 4);
        assert_int_equal(scsi_port_group_next(rig.in, (size_t)t->data_in, &at, &g), 1);
        assert_int_equal(g.group, 1);
        assert_int_equal(g.port_count, 2);
        assert_int_equal(g.state, SCSI_ALUA_OPTIMIZED);
        assert_int_equal(load_be16(g.ports + 6), 2);
        assert_int_equal(scsi_port_group_next(rig.in, (size_t)t->data_in, &at, &g), 1);
        assert_int_equal(g.group, 7);
        assert_int_equal(load_be16(g.ports + 2), 3);
        assert_int_equal(scsi_port_group_next(rig.in, (size_t)t->data_in, &at, &g), 0);
    }
    struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_REPORT_TARGET_PORT_GROUPS, .length = 4);
    assert_int_equal(t->data_in, 4);
    assert_int_equal(load_be32(rig.in), 2 * 8 + 3 * 4);
    rig_end(&rig);
}

static void limits_that_contradict_each_other_are_refused_in_a_sentence(void **state)
{
    struct lp_error err;
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.block_size = 520;
    assert_null(lu_new_queue(&rig.disk.q, &rig.opts, &err));
    assert_non_null(strstr(err.msg, "512 or 4096"));
    rig.opts.block_size = 512;
    rig.disk.q.limits.block_size = 4096;
    assert_null(lu_new_queue(&rig.disk.q, &rig.opts, &err));
    assert_non_null(strstr(err.msg, "block size of 4096"));
    rig.opts.block_size = 0;
    rig.opts.size = SIZE + 4096;
    assert_null(lu_new_queue(&rig.disk.q, &rig.opts, &err));
    assert_non_null(strstr(err.msg, "on a disk of"));
    rig_free(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_code_with_every_service_action_has_the_right_answer),
        cmocka_unit_test(short_cdbs_are_refused),
        cmocka_unit_test(an_absent_unit_answers_what_it_has_to),
        cmocka_unit_test(standard_inquiry_data_is_complete_and_cut_only_by_the_allocation_length),
        cmocka_unit_test(the_list_of_vpd_pages_is_what_can_be_read),
        cmocka_unit_test(identifiers_are_stable_unique_and_the_same_on_every_path),
        cmocka_unit_test(limits_and_provisioning_agree_with_each_other),
        cmocka_unit_test(report_luns_tells_all_whatever_the_allocation_length),
        cmocka_unit_test(a_stopped_unit_is_not_ready_until_it_is_started),
        cmocka_unit_test(request_sense_takes_the_unit_attention_as_data),
        cmocka_unit_test(capacities_of_every_size_and_kind_are_right),
        cmocka_unit_test(every_bit_outside_the_usage_mask_is_refused),
        cmocka_unit_test(unlisted_commands_are_reported_as_not_supported),
        cmocka_unit_test(task_management_functions_are_reported_by_protocol_level),
        cmocka_unit_test(port_groups_list_every_port_once),
        cmocka_unit_test(limits_that_contradict_each_other_are_refused_in_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
