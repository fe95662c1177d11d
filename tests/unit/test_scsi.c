/* SPDX-License-Identifier: BSD-2-Clause */
/* The SCSI codec: CDBs, sense data, LUNs, pages. */
#include "base/bytes.h"
#include "scsi/cdb.h"
#include "scsi/lun.h"
#include "scsi/pages.h"
#include "scsi/sense.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* n bytes at the end of a heap block of their own, so that a sanitizer sees the byte behind. */
static uint8_t *exactly(const void *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, bytes, n);
    return copy;
}

/* ---- LUNs ---- */

/* [B-11] */
static void luns_of_every_format_go_back_and_forth(void **state)
{
    static const struct {
        uint32_t number;
        uint64_t bytes;
    } cases[] = {
        {0, 0},
        {1, 0x0001000000000000},
        {255, 0x00ff000000000000},
        {256, 0x4100000000000000},
        {16383, 0x7fff000000000000},
        {16384, 0xd200400000000000},
        {0xffffff, 0xd2ffffff00000000},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t lun[8], again[8];
        char text[SCSI_LUN_TEXT], decimal[16];
        struct lp_error err;
        uint32_t number;
        assert_int_equal(scsi_lun_pack(cases[i].number, lun), 0);
        assert_int_equal(load_be64(lun), cases[i].bytes);
        assert_int_equal(scsi_lun_number(lun, &number), 0);
        assert_int_equal(number, cases[i].number);
        snprintf(decimal, sizeof decimal, "%u", number);
        assert_string_equal(scsi_lun_format(lun, text), decimal);
        assert_int_equal(scsi_lun_parse(text, again, &err), 0);
        assert_memory_equal(lun, again, 8);
    }
    uint8_t unused[8];
    assert_int_equal(scsi_lun_pack(0x1000000, unused), -1);
}

/* [B-11] */
static void other_addressing_methods_are_taken_apart(void **state)
{
    static const struct {
        uint64_t bytes;
        struct scsi_lun lun;
        bool simple;
    } cases[] = {
        {0x4005000000000000, {SCSI_LUN_FLAT, 0, 0, 0, 2, 5, false}, true},
        {0x0305000000000000, {SCSI_LUN_PERIPHERAL, 3, 0, 0, 2, 5, false}, false},
        {0x0005000100000000, {SCSI_LUN_PERIPHERAL, 0, 0, 0, 2, 5, true}, false},
        {0x8a67000000000000, {SCSI_LUN_LOGICAL_UNIT, 3, 10, 0, 2, 7, false}, false},
        {0xc101000000000000, {SCSI_LUN_EXTENDED, 0, 0, 1, 2, 1, false}, false},
        {0xe201020304050000, {SCSI_LUN_EXTENDED, 0, 0, 2, 6, 0x0102030405, false}, false},
        {0xffffffffffffffff, {SCSI_LUN_EXTENDED, 0, 0, 15, 8, 0xffffffffffffff, false}, false},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[8], again[8];
        char text[SCSI_LUN_TEXT];
        struct scsi_lun lun;
        struct lp_error err;
        uint32_t number;
        store_be64(bytes, cases[i].bytes);
        scsi_lun_unpack(&lun, bytes);
        assert_int_equal(lun.method, cases[i].lun.method);
        assert_int_equal(lun.bus, cases[i].lun.bus);
        assert_int_equal(lun.target, cases[i].lun.target);
        assert_int_equal(lun.extended, cases[i].lun.extended);
        assert_int_equal(lun.size, cases[i].lun.size);
        assert_int_equal(lun.number, cases[i].lun.number);
        assert_int_equal(lun.deeper, cases[i].lun.deeper);
        assert_int_equal(scsi_lun_number(bytes, &number), cases[i].simple ? 0 : -1);
        assert_int_equal(scsi_lun_parse(scsi_lun_format(bytes, text), again, &err), 0);
        assert_memory_equal(bytes, again, 8); /* also small flat ones keep their form */
    }
}

static void what_is_no_lun_is_refused_in_a_sentence(void **state)
{
    static const char *const bad[] = {"",
                                      "-1",
                                      "1x",
                                      "16777216",
                                      "999999999",
                                      "0x",
                                      "0x12",
                                      "0xc10100000000000g",
                                      "0xc1010000000000000"};
    struct lp_error err;
    uint8_t lun[8];

    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(scsi_lun_parse(bad[i], lun, &err), -1);
        assert_non_null(strstr(err.msg, "is no LUN"));
    }
}

/* ---- CDBs ---- */

static void every_command_is_built_and_taken_apart_alike(void **state)
{
    (void)state;
    for (int c = 0; c < SCSI_CMD_COUNT; c++) {
        const struct scsi_command_info *info = scsi_command_info((enum scsi_command)c);
        struct scsi_cdb f = {.command = (enum scsi_command)c}, again;
        uint8_t cdb[SCSI_CDB_MAX];
        int bit;
        assert_non_null(info->name);
        assert_int_equal(info->usage[0], info->opcode);
        for (unsigned round = 0; round < 3; round++) {
            bool six = c == SCSI_CMD_READ_6 || c == SCSI_CMD_WRITE_6;
            uint64_t most =
                info->lba_size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * info->lba_size) - 1;
            f.lba = six && round == 2 ? 0x1fffff : round == 0 ? 0 : round == 1 ? 1 : most;
            if (info->lba_size == 0)
                f.lba = 0;
            most = ((uint64_t)1 << 8 * info->length_size) - 1;
            f.length = info->length_size == 0 ? 0 : round == 2 ? (uint32_t)most : round;
            if (six && f.length == 0)
                f.length = 256;
            size_t n = scsi_cdb_build(&f, cdb);
            assert_int_equal(n, info->size);
            assert_int_equal(scsi_cdb_parse(&again, cdb, n), 0);
            assert_int_equal(again.command, c);
            assert_int_equal(again.lba, f.lba);
            assert_int_equal(again.length, f.length);
            assert_int_equal(scsi_cdb_bad_bit((enum scsi_command)c, cdb, &bit), -1);
            assert_int_equal(scsi_cdb_parse(&again, cdb, n - 1), -1);
        }
        if (info->lba_size > 0 && info->lba_size < 8) {
            f.lba = (uint64_t)1 << 8 * info->lba_size;
            assert_int_equal(scsi_cdb_build(&f, cdb), 0);
        }
    }
}

/* [S-24] [S-25] */
static void reads_and_writes_have_the_bytes_of_the_standard(void **state)
{
    uint8_t cdb[SCSI_CDB_MAX];

    (void)state;
    assert_int_equal(scsi_cdb_read_write(false, 0x01020304, 0x0506, SCSI_CDB_FUA, cdb), 10);
    assert_memory_equal(cdb, "\x28\x08\x01\x02\x03\x04\x00\x05\x06\x00", 10);
    assert_int_equal(scsi_cdb_read_write(true, 0x0102030405060708, 0x090a0b0c, 0, cdb), 16);
    assert_memory_equal(cdb, "\x8a\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x00\x00",
                        16);
    assert_int_equal(scsi_cdb_read_write(true, 0, 65536, 0, cdb), 16);
    struct scsi_cdb six = {.command = SCSI_CMD_READ_6, .lba = 0x123456, .length = 256};
    assert_int_equal(scsi_cdb_build(&six, cdb), 6);
    assert_memory_equal(cdb, "\x08\x12\x34\x56\x00\x00", 6);
    six.lba = 0x200000;
    assert_int_equal(scsi_cdb_build(&six, cdb), 0);
}

/* ---- sense ---- */

/* [S-20] [C-08] */
static void sense_goes_back_and_forth_in_both_formats(void **state)
{
    struct scsi_sense cases[5], again;
    uint8_t bytes[SCSI_SENSE_PACKED_MAX];

    (void)state;
    cases[0] = scsi_sense_make(SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_UNRECOVERED_READ_ERROR);
    cases[0].information_valid = true;
    cases[0].information = 0x12345678;
    cases[1] = scsi_sense_cdb_field(3, 5);
    cases[2] = scsi_sense_parameter_field(700, -1);
    cases[3] = scsi_sense_make(SCSI_KEY_NOT_READY, SCSI_ASC_BECOMING_READY);
    cases[3].progress_valid = true;
    cases[3].progress = 0x8000;
    cases[3].deferred = true;
    cases[4] = scsi_sense_make(SCSI_KEY_NO_SENSE, 0);
    cases[4].ili = true;
    cases[4].command_specific_valid = true;
    cases[4].command_specific = 0xabcdef;
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned descriptor = 0; descriptor < 2; descriptor++) {
            size_t n = scsi_sense_pack(&cases[i], descriptor, bytes);
            assert_true(n <= SCSI_SENSE_PACKED_MAX && (descriptor || n == 18));
            assert_true(scsi_sense_unpack(&again, bytes, n));
            cases[i].descriptor = descriptor;
            assert_int_equal(again.key, cases[i].key);
            assert_int_equal(scsi_sense_asc(&again), scsi_sense_asc(&cases[i]));
            assert_int_equal(again.deferred, cases[i].deferred);
            assert_int_equal(again.descriptor, descriptor);
            assert_int_equal(again.ili, cases[i].ili);
            assert_int_equal(again.information_valid, cases[i].information_valid);
            assert_int_equal(again.information, cases[i].information);
            assert_int_equal(again.command_specific, cases[i].command_specific);
            assert_int_equal(again.field_valid, cases[i].field_valid);
            assert_int_equal(again.field_in_cdb, cases[i].field_in_cdb);
            assert_int_equal(again.field, cases[i].field);
            assert_int_equal(again.bit_valid, cases[i].bit_valid);
            assert_int_equal(again.bit, cases[i].bit);
            assert_int_equal(again.progress, cases[i].progress);
        }
    }
    cases[0].information = 0x100000000;
    scsi_sense_pack(&cases[0], false, bytes);
    assert_true(scsi_sense_unpack(&again, bytes, 18));
    assert_false(again.information_valid);
}

/* [C-08] */
static void cut_and_odd_sense_is_read_as_far_as_it_goes(void **state)
{
    static const uint8_t fixed[18] = {0xf0, 0, 0x03, 0,    0,    0x10, 0x01, 10, 0,
                                      0,    0, 0,    0x11, 0x04, 0,    0x80, 0,  5};
    static const uint8_t descriptor[] = {0x72, 5, 0x24, 0, 0,    0, 0, 8,
                                         0x02, 6, 0,    0, 0xcf, 0, 2, 0};
    struct scsi_sense s;

    (void)state;
    for (size_t n = 0; n <= sizeof fixed; n++) {
        uint8_t *bytes = exactly(fixed, n);
        assert_int_equal(scsi_sense_unpack(&s, bytes, n), n > 0);
        assert_int_equal(s.key, n > 2 ? 3 : 0);
        assert_int_equal(s.information_valid, n >= 7);
        assert_int_equal(scsi_sense_asc(&s), n > 13 ? 0x1104 : n > 12 ? 0x1100 : 0);
        free(bytes);
    }
    for (size_t n = 0; n <= sizeof descriptor; n++) {
        uint8_t *bytes = exactly(descriptor, n);
        assert_int_equal(scsi_sense_unpack(&s, bytes, n), n > 0);
        assert_int_equal(s.field_valid, n == sizeof descriptor);
        free(bytes);
    }
    static const uint8_t others[] = {0x00, 0x6f, 0x74, 0x7f, 0xff};
    for (unsigned i = 0; i < sizeof others; i++) {
        uint8_t bytes[18] = {others[i]};
        assert_false(scsi_sense_unpack(&s, bytes, sizeof bytes));
    }
    uint8_t vendor[18] = {0x71, 0, 0x09, [7] = 10, [12] = 0x80, 0x81};
    assert_true(scsi_sense_unpack(&s, vendor, sizeof vendor));
    assert_true(s.deferred);
    assert_int_equal(s.key, SCSI_KEY_VENDOR);
    assert_int_equal(s.asc, 0x80);
}

/* [C-08] */
static void sense_reads_as_a_sentence(void **state)
{
    struct scsi_sense s = scsi_sense_make(SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_UNRECOVERED_READ_ERROR);
    char text[200], small[10];

    (void)state;
    s.information_valid = true;
    s.information = 1234;
    assert_string_equal(scsi_sense_text(&s, text, sizeof text),
                        "medium error: unrecovered read error (03/11/00) at 1234");
    assert_string_equal(scsi_sense_text(&s, small, sizeof small), "medium er");
    s = scsi_sense_cdb_field(2, 7);
    assert_string_equal(scsi_sense_text(&s, text, sizeof text),
                        "illegal request: invalid field in CDB (05/24/00), CDB byte 2 bit 7");
    s = scsi_sense_make(0xc, 0xfefd);
    assert_string_equal(scsi_sense_text(&s, text, sizeof text),
                        "sense key 0xc: additional sense fe/fd (0c/fe/fd)");
    char buf[32];
    assert_string_equal(scsi_status_name(SCSI_TASK_SET_FULL, buf), "task set full");
    assert_string_equal(scsi_status_name(0x31, buf), "status 0x31");
}

/* ---- pages ---- */

/* [C-02] */
static void inquiry_data_may_be_short_or_lie_about_its_length(void **state)
{
    struct scsi_inquiry q = {.device_type = 0,
                             .version = 5,
                             .tpgs = 1,
                             .descriptor_count = 2,
                             .descriptors = {1, 2},
                             .vendor = "ACME",
                             .product = "\x01 Disk",
                             .revision = "1234"},
                        again;
    uint8_t page[SCSI_INQUIRY_SIZE];
    struct lp_error err;

    (void)state;
    assert_int_equal(scsi_inquiry_pack(&q, page), SCSI_INQUIRY_SIZE);
    for (size_t n = 0; n <= sizeof page; n++) {
        uint8_t *bytes = exactly(page, n);
        assert_int_equal(scsi_inquiry_unpack(&again, bytes, n, &err), n < 5 ? -1 : 0);
        if (n >= 36) {
            assert_string_equal(again.vendor, "ACME");
            assert_string_equal(again.product, "? Disk");
            assert_string_equal(again.revision, "1234");
        }
        free(bytes);
    }
    assert_int_equal(again.descriptor_count, 2);
    page[4] = 0; /* nothing behind byte 4 means anything */
    assert_int_equal(scsi_inquiry_unpack(&again, page, sizeof page, &err), 0);
    assert_string_equal(again.vendor, "");
}

/* [C-02] [C-03] */
static void vpd_pages_are_judged_by_their_lengths(void **state)
{
    struct scsi_block_limits l = {.max_transfer = 77,
                                  .max_unmap_blocks = 5,
                                  .wsnz = true,
                                  .max_write_same = 1ull << 40,
                                  .unmap_alignment_valid = true,
                                  .unmap_alignment = 9},
                             again;
    uint8_t page[SCSI_BLOCK_LIMITS_SIZE];
    struct lp_error err;

    (void)state;
    size_t whole = scsi_block_limits_pack(&l, page);
    for (size_t n = 0; n < whole; n++) {
        uint8_t *bytes = exactly(page, n);
        assert_int_equal(scsi_block_limits_unpack(&again, bytes, n, &err), -1);
        assert_non_null(strstr(err.msg, "VPD page B0h"));
        free(bytes);
    }
    assert_int_equal(scsi_block_limits_unpack(&again, page, whole, &err), 0);
    assert_true(again.wsnz && again.unmap_alignment_valid);
    assert_int_equal(again.max_transfer, l.max_transfer);
    assert_int_equal(again.max_unmap_blocks, l.max_unmap_blocks);
    assert_int_equal(again.unmap_alignment, l.unmap_alignment);
    assert_int_equal(again.max_write_same, l.max_write_same);
    store_be16(page + 2, 12); /* the page of SBC-2 */
    assert_int_equal(scsi_block_limits_unpack(&again, page, 16, &err), 0);
    assert_int_equal(again.max_transfer, 77);
    assert_int_equal(again.max_unmap_blocks, 0);
    store_be16(page + 2, 11);
    assert_int_equal(scsi_block_limits_unpack(&again, page, 16, &err), -1);
    page[1] = 0xb1;
    assert_int_equal(scsi_block_limits_unpack(&again, page, 16, &err), -1);
    assert_non_null(strstr(err.msg, "B1h came"));
}

/* [C-02] */
static void capacities_that_cannot_be_are_refused(void **state)
{
    static const struct {
        uint64_t last;
        uint32_t size;
        bool good;
    } cases[] = {
        {0, 512, true},
        {0, 4096, true},
        {0, 65536, true},
        {0, 0, false},
        {0, 1, false},
        {0, 520, false},
        {0, 256, false},
        {0, 1u << 31, false},
        {0, 131072, false},
        {UINT64_MAX, 512, false},
        {((uint64_t)1 << 54) - 1, 512, false},
        {((uint64_t)1 << 54) - 2, 512, true},
        {UINT64_MAX - 1, 4096, false},
    };
    struct scsi_capacity c = {0}, again;
    uint8_t page[SCSI_CAPACITY_16_SIZE];
    struct lp_error err;

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        c = (struct scsi_capacity){.last_lba = cases[i].last,
                                   .block_size = cases[i].size,
                                   .lbpme = true,
                                   .physical_exponent = 3,
                                   .lowest_aligned = 7};
        scsi_capacity_16_pack(&c, page);
        for (size_t n = 0; n <= 32; n++) {
            uint8_t *bytes = exactly(page, n);
            int r = scsi_capacity_16_unpack(&again, bytes, n, &err);
            assert_int_equal(r, cases[i].good && n >= 12 ? 0 : -1);
            free(bytes);
        }
        if (cases[i].good) {
            assert_int_equal(again.last_lba, cases[i].last);
            assert_true(again.lbpme && !again.lbprz && again.physical_exponent == 3);
            assert_int_equal(again.lowest_aligned, 7);
        }
    }
    store_be32(page, UINT32_MAX);
    store_be32(page + 4, 512);
    assert_int_equal(scsi_capacity_10_unpack(&again, page, 8, &err), 0);
    assert_int_equal(again.last_lba, UINT32_MAX);
    assert_int_equal(scsi_capacity_10_unpack(&again, page, 7, &err), -1);
}

/* [C-02] */
static void mode_data_never_runs_over_its_end(void **state)
{
    static const uint8_t data[] = {23, 0, 0x90, 0, 0x08, 18, 4, 0, 0, 0, 0, 0,
                                   0,  0, 0,    0, 0,    0,  0, 0, 0, 0, 0, 0};
    struct scsi_mode_header h;
    struct scsi_mode_page page;
    struct scsi_caching caching;
    struct lp_error err;

    (void)state;
    for (size_t n = 0; n <= sizeof data; n++) {
        uint8_t *bytes = exactly(data, n);
        int r = scsi_mode_header_unpack(&h, false, bytes, n, &err);
        assert_int_equal(r, n < 4 ? -1 : 0);
        size_t at = 4;
        if (r == 0)
            assert_int_equal(scsi_mode_page_next(bytes, h.length, &at, &page), n == 4   ? 0
                                                                               : n < 24 ? -1
                                                                                        : 1);
        free(bytes);
    }
    assert_int_equal(h.device_specific, SCSI_MODE_WP | SCSI_MODE_DPOFUA);
    size_t at = 4;
    assert_int_equal(scsi_mode_page_next(data, sizeof data, &at, &page), 1);
    assert_int_equal(scsi_caching_unpack(&caching, &page), 0);
    assert_true(caching.wce && !caching.rcd);
    static const uint8_t bad[] = {3, 0, 0, 200}; /* block descriptors that are not there */
    assert_int_equal(scsi_mode_header_unpack(&h, false, bad, sizeof bad, &err), -1);
    static const uint8_t sub[] = {0x4a, 0x01, 0x00, 0x04, 1, 2, 3, 4};
    at = 0;
    assert_int_equal(scsi_mode_page_next(sub, sizeof sub, &at, &page), 1);
    assert_int_equal(page.subpage, 1);
    assert_int_equal(page.length, 8);
}

/* [C-01] [C-02] */
static void lists_are_counted_by_what_came(void **state)
{
    uint8_t luns[8 + 3 * 8] = {0, 0, 0, 24};
    struct scsi_lba_extent e[2], all[2] = {{5, 6, 1}, {11, 7, 0}};
    uint8_t status[8 + 2 * 16];
    const uint8_t *first;
    struct lp_error err;
    size_t count, total;

    (void)state;
    for (size_t n = 0; n <= sizeof luns; n++) {
        uint8_t *bytes = exactly(luns, n);
        int r = scsi_report_luns_unpack(bytes, n, &first, &count, &total, &err);
        assert_int_equal(r, n < 8 ? -1 : 0);
        assert_int_equal(count, n < 8 ? 0 : (n - 8) / 8);
        assert_int_equal(total, n < 8 ? 0 : 3);
        free(bytes);
    }
    store_be32(luns, UINT32_MAX);
    assert_int_equal(scsi_report_luns_unpack(luns, sizeof luns, &first, &count, &total, &err), 0);
    assert_int_equal(count, 3);
    assert_int_equal(scsi_lba_status_pack(all, 2, status), sizeof status);
    for (size_t n = 0; n <= sizeof status; n++) {
        uint8_t *bytes = exactly(status, n);
        int r = scsi_lba_status_unpack(e, 2, &count, bytes, n, &err);
        assert_int_equal(r, n < 8 ? -1 : 0);
        assert_int_equal(count, n < 24 ? 0 : n < 40 ? 1 : 2);
        free(bytes);
    }
    assert_int_equal(e[1].lba, 11);
    assert_int_equal(scsi_lba_status_unpack(e, 1, &count, status, sizeof status, &err), 0);
    assert_int_equal(count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(luns_of_every_format_go_back_and_forth),
        cmocka_unit_test(other_addressing_methods_are_taken_apart),
        cmocka_unit_test(what_is_no_lun_is_refused_in_a_sentence),
        cmocka_unit_test(every_command_is_built_and_taken_apart_alike),
        cmocka_unit_test(reads_and_writes_have_the_bytes_of_the_standard),
        cmocka_unit_test(sense_goes_back_and_forth_in_both_formats),
        cmocka_unit_test(cut_and_odd_sense_is_read_as_far_as_it_goes),
        cmocka_unit_test(sense_reads_as_a_sentence),
        cmocka_unit_test(inquiry_data_may_be_short_or_lie_about_its_length),
        cmocka_unit_test(vpd_pages_are_judged_by_their_lengths),
        cmocka_unit_test(capacities_that_cannot_be_are_refused),
        cmocka_unit_test(mode_data_never_runs_over_its_end),
        cmocka_unit_test(lists_are_counted_by_what_came),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
