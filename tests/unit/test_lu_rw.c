/* SPDX-License-Identifier: BSD-2-Clause */
/* The logical unit's commands that reach the medium. */
#include "lu_rig.h"

enum { BLOCKS = 2048, SIZE = BLOCKS * 512 };

static const enum scsi_command reads[] = {SCSI_CMD_READ_6, SCSI_CMD_READ_10, SCSI_CMD_READ_12,
                                          SCSI_CMD_READ_16};
static const enum scsi_command writes[] = {SCSI_CMD_WRITE_6, SCSI_CMD_WRITE_10, SCSI_CMD_WRITE_12,
                                           SCSI_CMD_WRITE_16};

static void number_blocks(struct rig *rig)
{
    for (uint64_t i = 0; i < BLOCKS; i++)
        for (unsigned k = 0; k < 512; k += 8)
            store_be64(rig->disk.memory + i * 512 + k, i << 16 | k);
}

/* [S-24] [S-25] */
static void reads_and_writes_of_every_size_move_the_right_blocks(void **state)
{
    struct rig rig;
    static const uint32_t lengths[] = {1, 2, 255, 256};

    (void)state;
    rig_open(&rig, SIZE);
    number_blocks(&rig);
    for (unsigned c = 0; c < 4; c++) {
        for (unsigned l = 0; l < 4; l++) {
            uint32_t n = lengths[l];
            uint64_t lba = BLOCKS - n; /* to the very end */
            struct lu_task *t = GOOD(&rig, 0, reads[c], .lba = lba, .length = n);
            assert_int_equal(t->data_in, n * 512);
            assert_int_equal(t->transfer_length, n * 512);
            assert_memory_equal(rig.in, rig.disk.memory + lba * 512, n * 512);
            memset(rig.out, (int)(c * 16 + l + 1), n * 512);
            GOOD(&rig, 1, writes[c], .lba = 7, .length = n);
            assert_true(rig_holds(&rig, 7, n, (uint8_t)(c * 16 + l + 1)));
            assert_int_equal(load_be64(rig.disk.memory + 6 * 512), 6 << 16);
            assert_int_equal(load_be64(rig.disk.memory + (7 + n) * 512), (uint64_t)(7 + n) << 16);
            number_blocks(&rig);
        }
    }
    rig_end(&rig);
}

/* [S-25] */
static void a_length_of_zero_is_good_and_does_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned c = 1; c < 4; c++) { /* READ(6) means 256 with 0 */
        GOOD(&rig, 0, reads[c], .lba = 5, .length = 0);
        GOOD(&rig, 0, writes[c], .lba = BLOCKS, .length = 0);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, reads[c],
              .lba = BLOCKS + 1, .length = 0);
    }
    assert_int_equal(rig.disk.traced, 0);
    rig_end(&rig);
}

/* [S-20] [S-25] */
static void nothing_beyond_the_end_is_read_or_written(void **state)
{
    static const struct {
        uint64_t lba;
        uint32_t length;
        uint64_t first_missing;
    } cases[] = {
        {BLOCKS, 1, BLOCKS},
        {BLOCKS - 1, 2, BLOCKS},
        {BLOCKS - 255, 256, BLOCKS},
        {(uint64_t)1 << 63, 1, (uint64_t)1 << 63},
        {UINT64_MAX, 1, UINT64_MAX},
        {UINT64_MAX, 256, UINT64_MAX}, /* wraps */
        {0x80000000u, 16, 0x80000000u},
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned w = 0; w < 2; w++) {
            struct lu_task *t = RUN(&rig, 0, w ? SCSI_CMD_WRITE_16 : SCSI_CMD_READ_16,
                                    .lba = cases[i].lba, .length = cases[i].length);
            struct scsi_sense s;
            is_illegal(t, SCSI_ASC_LBA_OUT_OF_RANGE);
            assert_int_equal(t->data_in, 0);
            assert_true(scsi_sense_unpack(&s, t->sense_data, t->sense_length));
            /* Fixed sense has 32 bits of INFORMATION, and says so by VALID. */
            assert_int_equal(s.information_valid, cases[i].first_missing <= UINT32_MAX);
            if (s.information_valid)
                assert_int_equal(s.information, cases[i].first_missing);
        }
    }
    assert_int_equal(rig.disk.traced, 0);
    rig_end(&rig);
}

/* [S-26] [S-08] */
static void transfers_above_the_announced_maximum_are_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.max_transfer_blocks = 64;
    rig_start(&rig);
    for (unsigned c = 1; c < 4; c++) {
        GOOD(&rig, 0, reads[c], .length = 64);
        GOOD(&rig, 0, writes[c], .length = 64);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, reads[c],
              .length = 65);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, writes[c],
              .length = 65);
    }
    rig_end(&rig);
}

static bool traced(const struct rig *rig, enum lp_op op, uint32_t flags)
{
    for (unsigned i = 0; i < rig->disk.traced; i++)
        if (rig->disk.trace[i].op == op && rig->disk.trace[i].flags == flags)
            return true;
    return false;
}

/* [S-27] [S-17] */
static void force_unit_access_reaches_the_disk(void **state)
{
    static const enum lp_fua kinds[] = {LP_FUA_NATIVE, LP_FUA_EMULATED, LP_FUA_NONE};
    struct rig rig;

    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        rig_init(&rig, SIZE);
        rig.disk.q.limits.fua = kinds[k];
        rig_start(&rig);
        GOOD(&rig, 0, SCSI_CMD_WRITE_10, .length = 1);
        assert_true(traced(&rig, LP_WRITE, 0));
        assert_false(traced(&rig, LP_FLUSH, 0));
        for (unsigned c = 1; c < 4; c++) {
            rig.disk.traced = 0;
            GOOD(&rig, 0, writes[c], .length = 1, .flags = SCSI_CDB_FUA | SCSI_CDB_DPO);
            assert_int_equal(traced(&rig, LP_WRITE, LP_FUA), kinds[k] != LP_FUA_NONE);
            assert_int_equal(traced(&rig, LP_FLUSH, 0), kinds[k] == LP_FUA_NONE);
        }
        rig_end(&rig);
    }
}

/* [S-28] [S-29] */
static void protection_fields_are_refused_without_protection(void **state)
{
    static const enum scsi_command commands[] = {SCSI_CMD_READ_10,
                                                 SCSI_CMD_READ_12,
                                                 SCSI_CMD_READ_16,
                                                 SCSI_CMD_WRITE_10,
                                                 SCSI_CMD_WRITE_12,
                                                 SCSI_CMD_WRITE_16,
                                                 SCSI_CMD_VERIFY_10,
                                                 SCSI_CMD_VERIFY_12,
                                                 SCSI_CMD_VERIFY_16,
                                                 SCSI_CMD_WRITE_AND_VERIFY_10,
                                                 SCSI_CMD_WRITE_AND_VERIFY_16,
                                                 SCSI_CMD_WRITE_SAME_10,
                                                 SCSI_CMD_WRITE_SAME_16,
                                                 SCSI_CMD_COMPARE_AND_WRITE};
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned c = 0; c < sizeof commands / sizeof *commands; c++) {
        for (unsigned p = 1; p < 8; p++) {
            struct lu_task *t =
                CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, commands[c],
                      .length = 1, .flags = (uint8_t)(p << 5));
            assert_true(t->sense.field_valid && t->sense.field_in_cdb && t->sense.field == 1);
        }
    }
    rig_end(&rig);
}

/* [S-30] */
static void verify_compares_as_bytchk_says(void **state)
{
    static const enum scsi_command commands[] = {SCSI_CMD_VERIFY_10, SCSI_CMD_VERIFY_12,
                                                 SCSI_CMD_VERIFY_16};
    struct rig rig;
    struct lu_task *t;

    (void)state;
    rig_open(&rig, SIZE);
    number_blocks(&rig);
    for (unsigned c = 0; c < 3; c++) {
        t = GOOD(&rig, 0, commands[c], .lba = 4, .length = 9);
        assert_int_equal(t->data_out_length, 0);
        memcpy(rig.out, rig.disk.memory + 4 * 512, 9 * 512);
        GOOD(&rig, 0, commands[c], .lba = 4, .length = 9, .flags = 1 << 1);
        rig.out[5 * 512 + 77] ^= 1;
        t = CHECK(&rig, 0, SCSI_KEY_MISCOMPARE, SCSI_ASC_MISCOMPARE, commands[c], .lba = 4,
                  .length = 9, .flags = 1 << 1);
        assert_int_equal(t->sense.information, 5 * 512 + 77);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, commands[c],
              .length = 1, .flags = 2 << 1);
        rig_fill(&rig, 4, 9, 0x77);
        memset(rig.out, 0x77, 512);
        t = GOOD(&rig, 0, commands[c], .lba = 4, .length = 9, .flags = 3 << 1);
        assert_int_equal(t->data_out_length, 512);
        rig.disk.memory[6 * 512 + 3] = 0;
        t = CHECK(&rig, 0, SCSI_KEY_MISCOMPARE, SCSI_ASC_MISCOMPARE, commands[c], .lba = 4,
                  .length = 9, .flags = 3 << 1);
        assert_int_equal(t->sense.information, 3);
        number_blocks(&rig);
    }
    GOOD(&rig, 0, SCSI_CMD_VERIFY_16, .lba = 4, .length = 0, .flags = 1 << 1);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_VERIFY_16,
          .lba = BLOCKS - 3, .length = 4);
    rig_end(&rig);
}

/* [S-30] */
static void write_and_verify_writes_through_and_reads_back(void **state)
{
    static const enum scsi_command commands[] = {
        SCSI_CMD_WRITE_AND_VERIFY_10, SCSI_CMD_WRITE_AND_VERIFY_12, SCSI_CMD_WRITE_AND_VERIFY_16};
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned c = 0; c < 3; c++) {
        for (uint8_t check = 0; check < 2; check++) {
            rig.disk.traced = 0;
            memset(rig.out, (int)(0x30 + 2 * c + check), 5 * 512);
            GOOD(&rig, 0, commands[c], .lba = 9, .length = 5, .flags = (uint8_t)(check << 1));
            assert_true(rig_holds(&rig, 9, 5, (uint8_t)(0x30 + 2 * c + check)));
            assert_true(traced(&rig, LP_WRITE, LP_FUA));
            assert_true(traced(&rig, LP_READ, 0));
        }
    }
    rig_end(&rig);
}

/* [S-31] */
static void synchronize_cache_flushes_before_good_and_tells_failure(void **state)
{
    static const enum scsi_command commands[] = {SCSI_CMD_SYNCHRONIZE_CACHE_10,
                                                 SCSI_CMD_SYNCHRONIZE_CACHE_16};
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned c = 0; c < 2; c++) {
        rig.disk.traced = 0;
        GOOD(&rig, 0, commands[c]);
        assert_true(traced(&rig, LP_FLUSH, 0));
        GOOD(&rig, 0, commands[c], .lba = 5, .length = 10, .flags = SCSI_CDB_IMMED);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, commands[c],
              .lba = BLOCKS - 1, .length = 2);
        rig.disk.flush_status = -EIO;
        CHECK(&rig, 0, SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_WRITE_ERROR, commands[c]);
        rig.disk.flush_status = 0;
    }
    rig_end(&rig);
}

static const enum scsi_command medium_changing[] = {SCSI_CMD_WRITE_6,
                                                    SCSI_CMD_WRITE_10,
                                                    SCSI_CMD_WRITE_12,
                                                    SCSI_CMD_WRITE_16,
                                                    SCSI_CMD_WRITE_SAME_10,
                                                    SCSI_CMD_WRITE_SAME_16,
                                                    SCSI_CMD_COMPARE_AND_WRITE,
                                                    SCSI_CMD_WRITE_AND_VERIFY_10,
                                                    SCSI_CMD_WRITE_AND_VERIFY_12,
                                                    SCSI_CMD_WRITE_AND_VERIFY_16};

/* [S-32] */
static void a_read_only_unit_refuses_every_change(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.read_only = true;
    rig_start(&rig);
    for (unsigned i = 0; i < sizeof medium_changing / sizeof *medium_changing; i++)
        CHECK(&rig, 0, SCSI_KEY_DATA_PROTECT, SCSI_ASC_WRITE_PROTECTED, medium_changing[i],
              .length = 1);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_OPCODE, SCSI_CMD_UNMAP);
    GOOD(&rig, 0, SCSI_CMD_READ_10, .length = 1);
    assert_false(traced(&rig, LP_WRITE, 0));
    rig_end(&rig);
}

/* ---- UNMAP ---- */

static size_t put_unmap(uint8_t *list, unsigned count, const uint64_t (*ranges)[2])
{
    memset(list, 0, 8 + count * 16);
    store_be16(list, (uint16_t)(6 + count * 16));
    store_be16(list + 2, (uint16_t)(count * 16));
    for (unsigned i = 0; i < count; i++) {
        store_be64(list + 8 + i * 16, ranges[i][0]);
        store_be32(list + 16 + i * 16, (uint32_t)ranges[i][1]);
    }
    return 8 + count * 16;
}

/* [S-33] */
static void unmap_takes_well_formed_lists_only(void **state)
{
    static const uint64_t two[][2] = {{8, 8}, {100, 3}};
    static const uint64_t beyond[][2] = {{0, 8}, {BLOCKS - 1, 2}};
    static const uint64_t at_end[][2] = {{BLOCKS, 0}};
    static const uint64_t huge[][2] = {{UINT64_MAX, 1}};
    struct rig rig;
    uint64_t many[257][2] = {{0}};

    (void)state;
    rig_open(&rig, SIZE);
    rig_fill(&rig, 0, BLOCKS, 0x55);
    GOOD(&rig, 0, SCSI_CMD_UNMAP, .length = 0);
    for (uint32_t n = 1; n < 8; n++)
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR,
              SCSI_CMD_UNMAP, .length = n);
    memset(rig.out, 0, 8);
    GOOD(&rig, 0, SCSI_CMD_UNMAP, .length = 8);
    GOOD(&rig, 0, SCSI_CMD_UNMAP, .length = (uint32_t)put_unmap(rig.out, 1, at_end));
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_UNMAP,
          .length = (uint32_t)put_unmap(rig.out, 1, huge));
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_UNMAP,
          .length = (uint32_t)put_unmap(rig.out, 2, beyond));
    assert_true(rig_holds(&rig, 0, BLOCKS, 0x55)); /* not even the range that was right */
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR, SCSI_CMD_UNMAP,
          .length = (uint32_t)put_unmap(rig.out, 2, two) - 16); /* the list is longer than came */
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
          SCSI_CMD_UNMAP, .length = (uint32_t)put_unmap(rig.out, 257, many));
    GOOD(&rig, 0, SCSI_CMD_UNMAP, .length = (uint32_t)put_unmap(rig.out, 256, many));
    GOOD(&rig, 0, SCSI_CMD_UNMAP, .length = (uint32_t)put_unmap(rig.out, 2, two));
    assert_true(rig_holds(&rig, 8, 8, 0) && rig_holds(&rig, 100, 3, 0));
    assert_true(rig_holds(&rig, 0, 8, 0x55) && rig_holds(&rig, 16, 84, 0x55));
    assert_true(rig_holds(&rig, 103, BLOCKS - 103, 0x55));
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_UNMAP,
          .flags = SCSI_CDB_UNMAP_ANCHOR);
    rig_end(&rig);
}

/* [S-08] [S-33] */
static void unmap_takes_as_many_blocks_as_it_announces(void **state)
{
    const uint64_t limit[][2] = {{0, 1 << 20}}, over[][2] = {{0, 1 << 20}, {5, 1}};
    struct rig rig;

    (void)state;
    rig_open(&rig, ((uint64_t)(1 << 20) + 8) * 512);
    GOOD(&rig, 0, SCSI_CMD_UNMAP, .length = (uint32_t)put_unmap(rig.out, 1, limit));
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
          SCSI_CMD_UNMAP, .length = (uint32_t)put_unmap(rig.out, 2, over));
    rig_end(&rig);
}

/* [S-10] */
static void what_only_thin_units_have_is_refused_elsewhere(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.thin = false;
    rig_start(&rig);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_OPCODE, SCSI_CMD_UNMAP);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_WRITE_SAME_10,
          .length = 1, .flags = SCSI_CDB_WS_UNMAP);
    GOOD(&rig, 0, SCSI_CMD_GET_LBA_STATUS, .length = 24);
    assert_int_equal(load_be32(rig.in + 16), BLOCKS);
    assert_int_equal(rig.in[20], SCSI_LBA_MAPPED);
    rig_end(&rig);
}

/* [S-36] */
static void lba_status_follows_unmap_and_write(void **state)
{
    static const uint64_t range[][2] = {{64, 10}};
    struct scsi_lba_extent e[8];
    struct lp_error err;
    struct rig rig;
    struct lu_task *t;
    size_t n;

    (void)state;
    rig_open(&rig, SIZE);
    GOOD(&rig, 0, SCSI_CMD_UNMAP, .length = (uint32_t)put_unmap(rig.out, 1, range));
    GOOD(&rig, 0, SCSI_CMD_WRITE_10, .lba = 67, .length = 1);
    t = GOOD(&rig, 0, SCSI_CMD_GET_LBA_STATUS, .lba = 60, .length = 8 + 16 * 8);
    assert_int_equal(scsi_lba_status_unpack(e, 8, &n, rig.in, (size_t)t->data_in, &err), 0);
    assert_int_equal(n, 5);
    static const struct scsi_lba_extent right[] = {{60, 4, SCSI_LBA_MAPPED},
                                                   {64, 3, SCSI_LBA_DEALLOCATED},
                                                   {67, 1, SCSI_LBA_MAPPED},
                                                   {68, 6, SCSI_LBA_DEALLOCATED},
                                                   {74, BLOCKS - 74, SCSI_LBA_MAPPED}};
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(e[i].lba, right[i].lba);
        assert_int_equal(e[i].blocks, right[i].blocks);
        assert_int_equal(e[i].status, right[i].status);
    }
    t = GOOD(&rig, 0, SCSI_CMD_GET_LBA_STATUS, .lba = 60, .length = 24);
    assert_int_equal(t->data_in, 24);
    assert_int_equal(load_be32(rig.in), 4 + 16 * 5); /* not changed by the allocation length */
    GOOD(&rig, 0, SCSI_CMD_GET_LBA_STATUS, .lba = BLOCKS - 1, .length = 24);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_GET_LBA_STATUS,
          .lba = BLOCKS, .length = 24);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_GET_LBA_STATUS,
          .lba = UINT64_MAX, .length = 24);
    rig_end(&rig);
}

/* [S-34] */
static void write_same_repeats_one_block(void **state)
{
    static const enum scsi_command commands[] = {SCSI_CMD_WRITE_SAME_10, SCSI_CMD_WRITE_SAME_16};
    struct rig rig;

    (void)state;
    rig_open(&rig, 8192 * 512); /* more than the scratch memory holds */
    for (unsigned c = 0; c < 2; c++) {
        rig_fill(&rig, 0, 8192, 0x11);
        memset(rig.out, 0xab, 512);
        GOOD(&rig, 0, commands[c], .lba = 10, .length = 5000);
        assert_true(rig_holds(&rig, 10, 5000, 0xab));
        assert_true(rig_holds(&rig, 0, 10, 0x11) && rig_holds(&rig, 5010, 3182, 0x11));
        memset(rig.out, 0, 512);
        GOOD(&rig, 0, commands[c], .lba = 20, .length = 5);
        assert_true(traced(&rig, LP_WRITE_ZEROES, 0));
        assert_true(rig_holds(&rig, 20, 5, 0));
        GOOD(&rig, 0, commands[c], .lba = 30, .length = 5, .flags = SCSI_CDB_WS_UNMAP);
        assert_true(rig_holds(&rig, 30, 5, 0));
        memset(rig.out, 0xcd, 512); /* UNMAP with data that unmapped blocks do not read as */
        GOOD(&rig, 0, commands[c], .lba = 40, .length = 5, .flags = SCSI_CDB_WS_UNMAP);
        assert_true(rig_holds(&rig, 40, 5, 0xcd));
        GOOD(&rig, 0, commands[c], .lba = 8000, .length = 0); /* to the end */
        assert_true(rig_holds(&rig, 8000, 192, 0xcd));
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, commands[c],
              .lba = 8191, .length = 2);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, commands[c],
              .lba = 8193, .length = 0);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, commands[c],
              .length = 1, .flags = SCSI_CDB_ANCHOR);
    }
    struct lu_task *t =
        GOOD(&rig, 0, SCSI_CMD_WRITE_SAME_16, .lba = 50, .length = 7, .flags = SCSI_CDB_NDOB);
    assert_int_equal(t->data_out_length, 0);
    assert_true(rig_holds(&rig, 50, 7, 0));
    rig_end(&rig);
}

/* [S-34] [S-08] */
static void write_same_above_its_maximum_is_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, ((uint64_t)(1 << 20) + 8) * 512);
    GOOD(&rig, 0, SCSI_CMD_WRITE_SAME_16, .length = 1 << 20);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_WRITE_SAME_16,
          .length = (1 << 20) + 1);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_WRITE_SAME_16,
          .lba = 7, .length = 0);
    GOOD(&rig, 0, SCSI_CMD_WRITE_SAME_16, .lba = 8, .length = 0);
    rig_end(&rig);
}

/* [S-35] */
static void compare_and_write_writes_only_what_was_expected(void **state)
{
    struct rig rig;
    struct lu_task *t;

    (void)state;
    rig_open(&rig, SIZE);
    for (uint32_t n = 1; n < 256; n += 127) {
        rig_fill(&rig, 3, n, 0x41);
        memset(rig.out, 0x41, n * 512);
        memset(rig.out + n * 512, 0x42, n * 512);
        t = GOOD(&rig, 0, SCSI_CMD_COMPARE_AND_WRITE, .lba = 3, .length = n);
        assert_int_equal(t->data_out_length, 2 * n * 512);
        assert_true(rig_holds(&rig, 3, n, 0x42));
        rig.disk.memory[(3 + n - 1) * 512 + 500] = 0x43;
        memset(rig.out, 0x42, n * 512);
        memset(rig.out + n * 512, 0x44, n * 512);
        t = CHECK(&rig, 0, SCSI_KEY_MISCOMPARE, SCSI_ASC_MISCOMPARE, SCSI_CMD_COMPARE_AND_WRITE,
                  .lba = 3, .length = n);
        assert_true(t->sense.information_valid);
        assert_int_equal(t->sense.information, (n - 1) * 512 + 500);
        assert_int_equal(rig.disk.memory[3 * 512], 0x42); /* nothing written */
    }
    GOOD(&rig, 0, SCSI_CMD_COMPARE_AND_WRITE, .lba = 3, .length = 0);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_COMPARE_AND_WRITE,
          .lba = BLOCKS - 1, .length = 2);
    rig_end(&rig);
}

/* [S-35] [S-08] */
static void compare_and_write_above_its_maximum_is_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.max_transfer_blocks = 100;
    rig_start(&rig);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB,
          SCSI_CMD_COMPARE_AND_WRITE, .length = 101);
    rig_end(&rig);
}

/* [S-35] [S-23] */
static void of_two_that_race_for_a_block_one_wins(void **state)
{
    struct rig rig;
    struct rig_task race[2];
    uint8_t data[2][1024], cdb[SCSI_CDB_MAX];

    (void)state;
    rig_open(&rig, SIZE);
    rig.disk.hold = true;
    size_t size = scsi_cdb_build(
        &(struct scsi_cdb){.command = SCSI_CMD_COMPARE_AND_WRITE, .lba = 5, .length = 1}, cdb);
    for (unsigned i = 0; i < 2; i++) {
        memset(data[i], 0, 512);
        memset(data[i] + 512, (int)(0x61 + i), 512);
        rig_task(&race[i], rig.nexus[i], cdb, size);
        rig_prepare(&race[i], 1024);
        rig_data(&race[i], data[i], 1024);
        lu_task_submit(&race[i].task);
    }
    for (int i = 0; i < 10; i++)
        rig_let_go(&rig);
    is_status(&race[0].task, SCSI_GOOD);
    is_check(&race[1].task, SCSI_KEY_MISCOMPARE, SCSI_ASC_MISCOMPARE);
    assert_true(rig_holds(&rig, 5, 1, 0x61));
    rig_end(&rig);
}

/* [S-37] */
static void prefetch_is_good_and_judges_its_range(void **state)
{
    static const enum scsi_command commands[] = {SCSI_CMD_PREFETCH_10, SCSI_CMD_PREFETCH_16};
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned c = 0; c < 2; c++) {
        /* There is no cache of our own to fill: GOOD, not CONDITION MET. */
        GOOD(&rig, 0, commands[c], .lba = 1, .length = 4, .flags = SCSI_CDB_IMMED, .group = 3);
        GOOD(&rig, 0, commands[c], .lba = 0, .length = 0);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, commands[c],
              .lba = BLOCKS - 1, .length = 2);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, commands[c],
              .lba = BLOCKS + 1, .length = 0);
    }
    rig_end(&rig);
}

/* [S-47] */
static void a_read_error_names_the_first_bad_block(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 8192 * 512);
    for (uint64_t bad = 0; bad < 37; bad++) {
        rig.disk.bad = (100 + bad) * 512 + 9;
        struct lu_task *t = CHECK(&rig, 0, SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_UNRECOVERED_READ_ERROR,
                                  SCSI_CMD_READ_16, .lba = 100, .length = 37);
        assert_true(t->sense.information_valid);
        assert_int_equal(t->sense.information, 100 + bad);
        t = CHECK(&rig, 0, SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_UNRECOVERED_READ_ERROR,
                  SCSI_CMD_VERIFY_16, .lba = 100, .length = 37);
        assert_int_equal(t->sense.information, 100 + bad);
        GOOD(&rig, 0, SCSI_CMD_READ_16, .lba = 0, .length = 100);
    }
    rig_end(&rig);
}

/* [S-47] */
static void errors_of_the_disk_have_their_sense(void **state)
{
    static const struct {
        int status;
        uint8_t key;
        uint16_t asc;
    } cases[] = {
        {-EIO, SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_WRITE_ERROR},
        {-ENOSPC, SCSI_KEY_DATA_PROTECT, SCSI_ASC_SPACE_ALLOCATION_FAILED},
        {-EDQUOT, SCSI_KEY_DATA_PROTECT, SCSI_ASC_SPACE_ALLOCATION_FAILED},
        {-EROFS, SCSI_KEY_DATA_PROTECT, SCSI_ASC_WRITE_PROTECTED},
        {-EINVAL, SCSI_KEY_HARDWARE_ERROR, SCSI_ASC_INTERNAL_TARGET_FAILURE},
    };
    static const uint64_t range[][2] = {{0, 1}};
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig.disk.write_status = cases[i].status;
        for (unsigned k = 0; k < sizeof medium_changing / sizeof *medium_changing; k++) {
            memset(rig.out, 0, 1024);
            CHECK(&rig, 0, cases[i].key, cases[i].asc, medium_changing[k], .length = 1);
        }
        CHECK(&rig, 0, cases[i].key, cases[i].asc, SCSI_CMD_UNMAP,
              .length = (uint32_t)put_unmap(rig.out, 1, range));
    }
    rig.disk.write_status = -ENOMEM;
    is_status(RUN(&rig, 0, SCSI_CMD_WRITE_10, .length = 1), SCSI_BUSY);
    rig_end(&rig);
}

/* [S-34] [S-35] */
static void exact_commands_refuse_data_of_another_length(void **state)
{
    static const struct {
        enum scsi_command command;
        uint32_t length;
        uint64_t asked;
    } cases[] = {{SCSI_CMD_WRITE_SAME_10, 4, 512},
                 {SCSI_CMD_COMPARE_AND_WRITE, 1, 1024},
                 {SCSI_CMD_COMPARE_AND_WRITE, 0, 0}}; /* 256 blocks do not fit the byte */
    static const uint64_t announced[] = {0, 200, 511, 10000};
    struct rig rig;
    uint8_t cdb[SCSI_CDB_MAX];

    (void)state;
    rig_open(&rig, SIZE);
    memset(rig.out, 0x99, 10000);
    for (unsigned c = 0; c < 3; c++) {
        size_t n = scsi_cdb_build(
            &(struct scsi_cdb){.command = cases[c].command, .length = cases[c].length}, cdb);
        for (unsigned a = 0; a < 4; a++) {
            if (announced[a] == cases[c].asked)
                continue;
            rig_task(&rig.last, rig.nexus[0], cdb, n);
            rig_prepare(&rig.last, announced[a]);
            assert_true(rig.last.task.refused);
            rig_submit_task(&rig, &rig.last);
            if (announced[a] < cases[c].asked) {
                is_illegal(&rig.last.task, SCSI_ASC_INVALID_FIELD_IN_INFORMATION_UNIT);
                assert_int_equal(rig.last.task.transfer_length, cases[c].asked);
            } else {
                is_illegal(&rig.last.task, SCSI_ASC_INVALID_FIELD_IN_CDB);
            }
            assert_true(rig_holds(&rig, 0, 4, 0));
        }
    }
    rig_end(&rig);
}

/* [S-25] [T-RES-01] */
static void a_write_with_less_data_writes_what_came(void **state)
{
    static const enum scsi_command commands[] = {SCSI_CMD_WRITE_6, SCSI_CMD_WRITE_10,
                                                 SCSI_CMD_WRITE_12, SCSI_CMD_WRITE_16,
                                                 SCSI_CMD_WRITE_AND_VERIFY_10};
    static const uint64_t announced[] = {0, 1, 200, 511, 512, 700, 1024, 1535, 1536, 10000};
    struct rig rig;
    uint8_t cdb[SCSI_CDB_MAX];

    (void)state;
    rig_open(&rig, SIZE);
    memset(rig.out, 'b', 10000);
    for (unsigned c = 0; c < sizeof commands / sizeof *commands; c++) {
        size_t n =
            scsi_cdb_build(&(struct scsi_cdb){.command = commands[c], .lba = 2, .length = 3}, cdb);
        for (unsigned a = 0; a < sizeof announced / sizeof *announced; a++) {
            uint64_t came = announced[a] < 1536 ? announced[a] : 1536;
            rig_fill(&rig, 0, 8, 'a');
            rig_task(&rig.last, rig.nexus[0], cdb, n);
            rig_prepare(&rig.last, announced[a]);
            assert_false(rig.last.task.refused);
            rig_data(&rig.last, rig.out, (size_t)came); /* no more is there */
            if (came == 1536 || c % 2)
                rig_data(&rig.last, rig.out, 1536); /* or memory for all of it */
            lu_task_submit(&rig.last.task);
            for (int i = 0; i < 10; i++)
                rig_let_go(&rig);
            is_status(&rig.last.task, SCSI_GOOD);
            assert_int_equal(rig.last.task.transfer_length, 1536);
            for (unsigned i = 0; i < 8 * 512; i++)
                assert_int_equal(rig.disk.memory[i], i >= 1024 && i - 1024 < came ? 'b' : 'a');
        }
    }
    rig_end(&rig);
}

static void a_read_with_less_room_gives_what_fits(void **state)
{
    struct rig rig;
    uint8_t cdb[SCSI_CDB_MAX];
    size_t n = scsi_cdb_read_write(false, 4, 8, 0, cdb);

    (void)state;
    rig_open(&rig, SIZE);
    number_blocks(&rig);
    for (unsigned room = 0; room <= 8; room++) {
        rig_task(&rig.last, rig.nexus[0], cdb, n);
        rig_prepare(&rig.last, 0);
        assert_int_equal(rig.last.task.data_in_length, 8 * 512);
        assert_int_equal(rig.last.task.data_unit, 512);
        rig_data(&rig.last, rig.in, room * 512);
        lu_task_submit(&rig.last.task);
        rig_let_go(&rig);
        is_status(&rig.last.task, SCSI_GOOD);
        assert_int_equal(rig.last.task.data_in, room * 512);
        assert_int_equal(rig.last.task.transfer_length, 8 * 512);
        assert_memory_equal(rig.in, rig.disk.memory + 4 * 512, room * 512);
    }
    rig_end(&rig);
}

/* [S-48] */
static void a_changed_size_is_told_and_obeyed(void **state)
{
    struct lp_error err;
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.size = SIZE / 2;
    rig_start(&rig);
    GOOD(&rig, 0, SCSI_CMD_READ_10, .lba = BLOCKS / 2 - 1, .length = 1);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_READ_10,
          .lba = BLOCKS / 2, .length = 1);
    assert_int_equal(lu_resize(rig.lu, SIZE, &err), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(&rig, i, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_CAPACITY_CHANGED, SCSI_CMD_READ_10,
              .lba = BLOCKS / 2, .length = 1);
        GOOD(&rig, i, SCSI_CMD_READ_10, .lba = BLOCKS - 1, .length = 1);
        GOOD(&rig, i, SCSI_CMD_READ_CAPACITY_10);
        assert_int_equal(load_be32(rig.in), BLOCKS - 1);
    }
    assert_int_equal(lu_resize(rig.lu, SIZE / 4, &err), 0);
    CHECK(&rig, 0, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_CAPACITY_CHANGED, SCSI_CMD_TEST_UNIT_READY);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_READ_10,
          .lba = BLOCKS / 4, .length = 1);
    assert_int_equal(lu_resize(rig.lu, SIZE + 512, &err), -1);
    assert_non_null(strstr(err.msg, "disk"));
    rig_end(&rig);
}

static void units_of_4096_count_in_their_blocks(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, SIZE);
    rig.opts.block_size = 4096;
    rig_start(&rig);
    assert_int_equal(lu_blocks(rig.lu), SIZE / 4096);
    memset(rig.out, 0x31, 4096);
    GOOD(&rig, 0, SCSI_CMD_WRITE_10, .lba = 3, .length = 1);
    assert_true(rig_holds(&rig, 3, 1, 0x31) && rig_holds(&rig, 2, 1, 0) &&
                rig_holds(&rig, 4, 1, 0));
    memset(rig.out, 0x31, 4096);
    memset(rig.out + 4096, 0x32, 4096);
    GOOD(&rig, 0, SCSI_CMD_COMPARE_AND_WRITE, .lba = 3, .length = 1);
    assert_true(rig_holds(&rig, 3, 1, 0x32));
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_writes_of_every_size_move_the_right_blocks),
        cmocka_unit_test(a_length_of_zero_is_good_and_does_nothing),
        cmocka_unit_test(nothing_beyond_the_end_is_read_or_written),
        cmocka_unit_test(transfers_above_the_announced_maximum_are_refused),
        cmocka_unit_test(force_unit_access_reaches_the_disk),
        cmocka_unit_test(protection_fields_are_refused_without_protection),
        cmocka_unit_test(verify_compares_as_bytchk_says),
        cmocka_unit_test(write_and_verify_writes_through_and_reads_back),
        cmocka_unit_test(synchronize_cache_flushes_before_good_and_tells_failure),
        cmocka_unit_test(a_read_only_unit_refuses_every_change),
        cmocka_unit_test(unmap_takes_well_formed_lists_only),
        cmocka_unit_test(unmap_takes_as_many_blocks_as_it_announces),
        cmocka_unit_test(what_only_thin_units_have_is_refused_elsewhere),
        cmocka_unit_test(lba_status_follows_unmap_and_write),
        cmocka_unit_test(write_same_repeats_one_block),
        cmocka_unit_test(write_same_above_its_maximum_is_refused),
        cmocka_unit_test(compare_and_write_writes_only_what_was_expected),
        cmocka_unit_test(compare_and_write_above_its_maximum_is_refused),
        cmocka_unit_test(of_two_that_race_for_a_block_one_wins),
        cmocka_unit_test(prefetch_is_good_and_judges_its_range),
        cmocka_unit_test(a_read_error_names_the_first_bad_block),
        cmocka_unit_test(errors_of_the_disk_have_their_sense),
        cmocka_unit_test(exact_commands_refuse_data_of_another_length),
        cmocka_unit_test(a_write_with_less_data_writes_what_came),
        cmocka_unit_test(a_read_with_less_room_gives_what_fits),
        cmocka_unit_test(a_changed_size_is_told_and_obeyed),
        cmocka_unit_test(units_of_4096_count_in_their_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
