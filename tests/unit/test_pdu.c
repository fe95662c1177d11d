/* SPDX-License-Identifier: BSD-2-Clause */
/* The PDU codec against bytes written down from the figures of RFC 7143 11 and RFC 7144 5, 6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "iscsi/pdu.h"

/* Hex digits to bytes; blanks and line ends are for the reader. */
static size_t bytes_of(const char *hex, uint8_t *bytes, size_t max)
{
    size_t n = 0;
    unsigned byte;

    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        assert_true(n < max);
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        bytes[n++] = (uint8_t)byte;
        hex++;
    }
    return n;
}

/* Packing value gives the golden bytes; unpacking them, and unpacking them with every reserved bit
 * set, gives what packs to the golden bytes again. */
#define GOLDEN(type, golden, reserved, ...)                                                        \
    do {                                                                                           \
        const struct type value = {__VA_ARGS__};                                                   \
        struct type again;                                                                         \
        uint8_t want[ISCSI_BHS_SIZE], mask[ISCSI_BHS_SIZE], got[ISCSI_BHS_SIZE];                   \
                                                                                                   \
        assert_int_equal(bytes_of(golden, want, sizeof(want)), ISCSI_BHS_SIZE);                    \
        assert_int_equal(bytes_of(reserved, mask, sizeof(mask)), ISCSI_BHS_SIZE);                  \
        memset(got, 0xa5, sizeof(got));                                                            \
        type##_pack(got, &value);                                                                  \
        assert_memory_equal(got, want, sizeof(want));                                              \
        memset(&again, 0xa5, sizeof(again));                                                       \
        type##_unpack(want, &again);                                                               \
        type##_pack(got, &again);                                                                  \
        assert_memory_equal(got, want, sizeof(want));                                              \
        for (int i = 0; i < ISCSI_BHS_SIZE; i++)                                                   \
            mask[i] |= want[i];                                                                    \
        memset(&again, 0xa5, sizeof(again));                                                       \
        type##_unpack(mask, &again);                                                               \
        type##_pack(got, &again);                                                                  \
        assert_memory_equal(got, want, sizeof(want));                                              \
    } while (0)

/* [B-01] [B-31] */
static void initiator_pdus_are_the_bytes_of_the_standard(void **state)
{
    (void)state;
    GOLDEN(iscsi_scsi_command,
           "41 e1 50 00 02 abcdef 0001000000000000 00000011 00020000 12345678 9abcdef0"
           "28000000001000001000000000000000",
           "80 18 0f ff 00 000000 0000000000000000 00000000 00000000 00000000 00000000"
           "00000000000000000000000000000000",
           .immediate = true, .final = true, .read = true, .write = true, .attr = ISCSI_ATTR_SIMPLE,
           .priority = 5, .ahs_words = 2, .data_segment_length = 0xabcdef, .lun = 1ull << 48,
           .itt = 0x11, .expected_data_transfer_length = 0x20000, .cmd_sn = 0x12345678,
           .exp_stat_sn = 0x9abcdef0, .cdb = {0x28, 0, 0, 0, 0, 0x10, 0, 0, 0x10});
    GOLDEN(iscsi_tmf_request,
           "42 85 00 00 00 000000 4001000000000000 00000012 ffffffff 00000003 00000004"
           "00000005 00000006 0000000000000000",
           "80 00 ff ff 00 000000 0000000000000000 00000000 00000000 00000000 00000000"
           "00000000 00000000 ffffffffffffffff",
           .immediate = true, .function = ISCSI_LOGICAL_UNIT_RESET, .lun = 0x4001ull << 48,
           .itt = 0x12, .referenced_task_tag = ISCSI_TAG_NONE, .cmd_sn = 3, .exp_stat_sn = 4,
           .ref_cmd_sn = 5, .exp_data_sn = 6);
    GOLDEN(iscsi_login_request,
           "43 c7 01 02 03 000104 400001370002 0102 0a0b0c0d 0506 0000 00000007 00000008"
           "00000000000000000000000000000000",
           "80 30 00 00 00 000000 000000000000 0000 00000000 0000 ffff 00000000 00000000"
           "ffffffffffffffffffffffffffffffff",
           .immediate = true, .transit = true, .more = true, .csg = ISCSI_STAGE_OPERATIONAL,
           .nsg = ISCSI_STAGE_FULL_FEATURE, .version_max = 1, .version_min = 2, .ahs_words = 3,
           .data_segment_length = 0x104, .isid = {0x40, 0, 1, 0x37, 0, 2}, .tsih = 0x102,
           .itt = 0x0a0b0c0d, .cid = 0x506, .cmd_sn = 7, .exp_stat_sn = 8);
    GOLDEN(iscsi_text_request,
           "44 c0 00 00 00 000010 0002000000000000 00000013 00000014 00000015 00000016"
           "00000000000000000000000000000000",
           "80 3f ff ff ff 000000 0000000000000000 00000000 00000000 00000000 00000000"
           "ffffffffffffffffffffffffffffffff",
           .immediate = true, .final = true, .more = true, .data_segment_length = 16,
           .lun = 2ull << 48, .itt = 0x13, .ttt = 0x14, .cmd_sn = 0x15, .exp_stat_sn = 0x16);
    GOLDEN(iscsi_data_out,
           "05 80 00 00 00 002000 0003000000000000 00000017 00000018 00000000 00000019"
           "00000000 0000001a 0000001b 00000000",
           "c0 7f ff ff ff 000000 0000000000000000 00000000 00000000 ffffffff 00000000"
           "ffffffff 00000000 00000000 ffffffff",
           .final = true, .data_segment_length = 0x2000, .lun = 3ull << 48, .itt = 0x17,
           .ttt = 0x18, .exp_stat_sn = 0x19, .data_sn = 0x1a, .buffer_offset = 0x1b);
    GOLDEN(iscsi_logout_request,
           "46 81 00 00 00 000000 0000000000000000 0000001c 001d 0000 0000001e 0000001f"
           "00000000000000000000000000000000",
           "80 00 ff ff ff ffffff ffffffffffffffff 00000000 0000 ffff 00000000 00000000"
           "ffffffffffffffffffffffffffffffff",
           .immediate = true, .reason = ISCSI_LOGOUT_CONNECTION, .itt = 0x1c, .cid = 0x1d,
           .cmd_sn = 0x1e, .exp_stat_sn = 0x1f);
    GOLDEN(iscsi_snack,
           "10 81 00 00 00 000000 0004000000000000 ffffffff ffffffff 00000000 00000020"
           "0000000000000000 00000021 00000022",
           "c0 70 ff ff ff ffffff 0000000000000000 00000000 00000000 ffffffff 00000000"
           "ffffffffffffffff 00000000 00000000",
           .type = ISCSI_SNACK_STATUS, .lun = 4ull << 48, .itt = ISCSI_TAG_NONE,
           .ttt = ISCSI_TAG_NONE, .exp_stat_sn = 0x20, .beg_run = 0x21, .run_length = 0x22);
    GOLDEN(iscsi_nop_out,
           "40 80 00 00 00 000004 0005000000000000 00000023 ffffffff 00000024 00000025"
           "00000000000000000000000000000000",
           "80 7f ff ff ff 000000 0000000000000000 00000000 00000000 00000000 00000000"
           "ffffffffffffffffffffffffffffffff",
           .immediate = true, .data_segment_length = 4, .lun = 5ull << 48, .itt = 0x23,
           .ttt = ISCSI_TAG_NONE, .cmd_sn = 0x24, .exp_stat_sn = 0x25);
}

/* [B-01] [B-31] */
static void target_pdus_are_the_bytes_of_the_standard(void **state)
{
    (void)state;
    GOLDEN(iscsi_scsi_response,
           "21 9e 01 02 00 000014 0003 000000000000 00000026 00000027 00000028 00000029"
           "0000002a 0000002b 0000002c 0000002d",
           "c0 61 00 00 ff 000000 0000 ffffffffffff 00000000 00000000 00000000 00000000"
           "00000000 00000000 00000000 00000000",
           .bidi_overflow = true, .bidi_underflow = true, .overflow = true, .underflow = true,
           .response = ISCSI_TARGET_FAILURE, .status = 2, .status_qualifier = 3,
           .data_segment_length = 20, .itt = 0x26, .snack_tag = 0x27, .stat_sn = 0x28,
           .exp_cmd_sn = 0x29, .max_cmd_sn = 0x2a, .exp_data_sn = 0x2b, .bidi_residual_count = 0x2c,
           .residual_count = 0x2d);
    GOLDEN(iscsi_tmf_response,
           "22 80 07 00 00 000000 010203 0000000000 0000002e 00000000 0000002f 00000030"
           "00000031 000000000000000000000000",
           "c0 7f 00 ff ff ffffff 000000 ffffffffff 00000000 ffffffff 00000000 00000000"
           "00000000 ffffffffffffffffffffffff",
           .response = ISCSI_TMF_SUCCEEDED, .additional_response = 0x10203, .itt = 0x2e,
           .stat_sn = 0x2f, .exp_cmd_sn = 0x30, .max_cmd_sn = 0x31);
    GOLDEN(iscsi_login_response,
           "23 c7 01 02 00 000105 800000000001 0203 00000032 00000000 00000033 00000034"
           "00000035 0201 00000000000000000000",
           "c0 30 00 00 ff 000000 000000000000 0000 00000000 ffffffff 00000000 00000000"
           "00000000 0000 ffffffffffffffffffff",
           .transit = true, .more = true, .csg = ISCSI_STAGE_OPERATIONAL,
           .nsg = ISCSI_STAGE_FULL_FEATURE, .version_max = 1, .version_active = 2,
           .data_segment_length = 0x105, .isid = {0x80, 0, 0, 0, 0, 1}, .tsih = 0x203, .itt = 0x32,
           .stat_sn = 0x33, .exp_cmd_sn = 0x34, .max_cmd_sn = 0x35,
           .status = ISCSI_LOGIN_AUTHENTICATION);
    GOLDEN(iscsi_text_response,
           "24 40 00 00 00 000011 0006000000000000 00000036 00000037 00000038 00000039"
           "0000003a 000000000000000000000000",
           "c0 3f ff ff ff 000000 0000000000000000 00000000 00000000 00000000 00000000"
           "00000000 ffffffffffffffffffffffff",
           .more = true, .data_segment_length = 17, .lun = 6ull << 48, .itt = 0x36, .ttt = 0x37,
           .stat_sn = 0x38, .exp_cmd_sn = 0x39, .max_cmd_sn = 0x3a);
    GOLDEN(iscsi_data_in,
           "25 c7 00 04 00 001000 0007000000000000 0000003b 0000003c 0000003d 0000003e"
           "0000003f 00000040 00000041 00000042",
           "c0 38 ff 00 ff 000000 0000000000000000 00000000 00000000 00000000 00000000"
           "00000000 00000000 00000000 00000000",
           .final = true, .acknowledge = true, .overflow = true, .underflow = true,
           .status_present = true, .status = 4, .data_segment_length = 0x1000, .lun = 7ull << 48,
           .itt = 0x3b, .ttt = 0x3c, .stat_sn = 0x3d, .exp_cmd_sn = 0x3e, .max_cmd_sn = 0x3f,
           .data_sn = 0x40, .buffer_offset = 0x41, .residual_count = 0x42);
    GOLDEN(iscsi_logout_response,
           "26 80 03 00 00 000000 0000000000000000 00000043 00000000 00000044 00000045"
           "00000046 00000000 0002 0014 00000000",
           "c0 7f 00 ff ff ffffff ffffffffffffffff 00000000 ffffffff 00000000 00000000"
           "00000000 ffffffff 0000 0000 ffffffff",
           .response = ISCSI_LOGOUT_CLEANUP_FAILED, .itt = 0x43, .stat_sn = 0x44,
           .exp_cmd_sn = 0x45, .max_cmd_sn = 0x46, .time2wait = 2, .time2retain = 20);
    GOLDEN(iscsi_r2t,
           "31 80 00 00 00 000000 0008000000000000 00000047 00000048 00000049 0000004a"
           "0000004b 0000004c 0000004d 00040000",
           "c0 7f ff ff ff ffffff 0000000000000000 00000000 00000000 00000000 00000000"
           "00000000 00000000 00000000 00000000",
           .lun = 8ull << 48, .itt = 0x47, .ttt = 0x48, .stat_sn = 0x49, .exp_cmd_sn = 0x4a,
           .max_cmd_sn = 0x4b, .r2t_sn = 0x4c, .buffer_offset = 0x4d,
           .desired_data_transfer_length = 0x40000);
    GOLDEN(iscsi_async,
           "32 80 00 00 00 000012 0009000000000000 ffffffff 00000000 0000004e 0000004f"
           "00000050 01 02 0003 0004 0005 00000000",
           "c0 7f ff ff ff 000000 0000000000000000 00000000 ffffffff 00000000 00000000"
           "00000000 00 00 0000 0000 0000 ffffffff",
           .data_segment_length = 18, .lun = 9ull << 48, .stat_sn = 0x4e, .exp_cmd_sn = 0x4f,
           .max_cmd_sn = 0x50, .event = ISCSI_ASYNC_LOGOUT_REQUESTED, .vcode = 2, .parameter1 = 3,
           .parameter2 = 4, .parameter3 = 5);
    GOLDEN(iscsi_reject,
           "3f 80 09 00 00 000030 0000000000000000 ffffffff 00000000 00000051 00000052"
           "00000053 00000054 0000000000000000",
           "c0 7f 00 ff ff 000000 ffffffffffffffff 00000000 ffffffff 00000000 00000000"
           "00000000 00000000 ffffffffffffffff",
           .reason = ISCSI_REJECT_INVALID_FIELD, .data_segment_length = 48, .stat_sn = 0x51,
           .exp_cmd_sn = 0x52, .max_cmd_sn = 0x53, .data_sn = 0x54);
    GOLDEN(iscsi_nop_in,
           "20 80 00 00 00 000001 000a000000000000 ffffffff 00000055 00000056 00000057"
           "00000058 000000000000000000000000",
           "c0 7f ff ff ff 000000 0000000000000000 00000000 00000000 00000000 00000000"
           "00000000 ffffffffffffffffffffffff",
           .data_segment_length = 1, .lun = 10ull << 48, .itt = ISCSI_TAG_NONE, .ttt = 0x55,
           .stat_sn = 0x56, .exp_cmd_sn = 0x57, .max_cmd_sn = 0x58);
}

/* [B-02] */
static void segments_are_padded_to_four_bytes(void **state)
{
    static const uint32_t padding[] = {0, 3, 2, 1, 0, 3, 2, 1};

    (void)state;
    for (uint32_t n = 0; n < 8; n++)
        assert_int_equal(iscsi_padding(n), padding[n]);
    assert_int_equal(iscsi_padding(0xffffff), 1);
}

static void the_common_header_is_where_every_pdu_has_it(void **state)
{
    uint8_t bytes[ISCSI_BHS_SIZE];
    struct iscsi_bhs h;

    (void)state;
    bytes_of("c1 80 00 00 ff ffffff 4123000000000000 0a0b0c0d 00000000 00000000 00000000"
             "00000000000000000000000000000000",
             bytes, sizeof(bytes));
    iscsi_bhs_unpack(bytes, &h);
    assert_int_equal(h.opcode, ISCSI_SCSI_COMMAND);
    assert_true(h.immediate);
    assert_true(h.final);
    assert_int_equal(h.ahs_words, 255);
    assert_int_equal(h.data_segment_length, ISCSI_SEGMENT_MAX);
    assert_int_equal(h.lun >> 48, 0x4123);
    assert_int_equal(h.itt, 0x0a0b0c0d);
}

static void unpack(const char *hex, int result, struct iscsi_ahs *ahs, bool *unknown)
{
    uint8_t bytes[64];
    size_t n = bytes_of(hex, bytes, sizeof(bytes));

    assert_int_equal(iscsi_ahs_unpack(bytes, n, ahs, unknown), result);
}

/* [B-05] [B-06] */
static void ahs_carry_long_cdbs_and_read_lengths(void **state)
{
    struct iscsi_ahs ahs,
        out = {
            .extended_cdb = true, .cdb_rest_length = 16, .bidi = true, .bidi_read_length = 0x1234};
    uint8_t bytes[ISCSI_AHS_MAX], want[64];
    bool unknown;
    size_t n;

    (void)state;
    /* a CDB of 32 bytes: AHSLength 32 - 15 = 17; then the read length */
    n = bytes_of("0011 01 00 101112131415161718191a1b1c1d1e1f 0005 02 00 00001234", want,
                 sizeof(want));
    for (int i = 0; i < 16; i++)
        out.cdb_rest[i] = (uint8_t)(0x10 + i);
    assert_int_equal(iscsi_ahs_pack(bytes, &out), n);
    assert_memory_equal(bytes, want, n);
    assert_int_equal(iscsi_ahs_unpack(bytes, n, &ahs, &unknown), 0);
    assert_false(unknown);
    assert_true(ahs.extended_cdb && ahs.bidi);
    assert_int_equal(ahs.cdb_rest_length, 16);
    assert_memory_equal(ahs.cdb_rest, out.cdb_rest, 16);
    assert_int_equal(ahs.bidi_read_length, 0x1234);

    /* lengths that need padding, to the longest CDB there is; nothing is written behind the chain,
     * where in a slot of the send ring other things lie */
    for (uint16_t rest = 1; rest <= 244; rest++) {
        out.cdb_rest_length = rest;
        memset(bytes, 0xa5, sizeof(bytes));
        n = iscsi_ahs_pack(bytes, &out);
        assert_int_equal(n % 4, 0);
        assert_in_range(n, rest + 12, ISCSI_AHS_PACKED_MAX);
        for (size_t i = n; i < sizeof(bytes); i++)
            assert_int_equal(bytes[i], 0xa5);
        assert_int_equal(iscsi_ahs_unpack(bytes, n, &ahs, &unknown), 0);
        assert_int_equal(ahs.cdb_rest_length, rest);
    }
}

/* [B-04] [B-05] [B17] */
static void bad_ahs_chains_are_refused(void **state)
{
    struct iscsi_ahs ahs;
    bool unknown;

    (void)state;
    unpack("0000 01 00", -1, &ahs, &unknown);                /* AHSLength 0 */
    unpack("0005 02 00 000012", -1, &ahs, &unknown);         /* ends in mid-word */
    unpack("0006 02 00 0000123400", -1, &ahs, &unknown);     /* wrong length for its type */
    unpack("0009 02 00 00001234", -1, &ahs, &unknown);       /* longer than the chain */
    unpack("ffff 01 00 00001234", -1, &ahs, &unknown);       /* far longer */
    unpack("0001 01 00", -1, &ahs, &unknown);                /* a CDB of 16 bytes */
    unpack("0005 02 00 00001234 00 00", -1, &ahs, &unknown); /* a piece behind the last */
    unpack("0005 02 00 00001234 0005 02 00 00001234", -1, &ahs, &unknown); /* twice */
    unpack("0005 3e 00 00001234 0005 02 00 00001234", 0, &ahs, &unknown);
    assert_true(unknown);
    assert_int_equal(ahs.bidi_read_length, 0x1234); /* the rest of the chain counts */
    unpack("", 0, &ahs, &unknown);
    assert_false(unknown);
}

static void codes_have_the_names_of_the_standard(void **state)
{
    char buf[32];

    (void)state;
    assert_string_equal(iscsi_opcode_name(ISCSI_R2T, buf), "R2T");
    assert_string_equal(iscsi_opcode_name(0x1c, buf), "opcode 0x1c");
    assert_string_equal(iscsi_reject_name(ISCSI_REJECT_PROTOCOL, buf), "protocol error");
    assert_string_equal(iscsi_reject_name(1, buf), "reason 0x01");
    assert_string_equal(iscsi_tmf_name(ISCSI_ABORT_TASK, buf), "ABORT TASK");
    assert_string_equal(iscsi_tmf_response_name(ISCSI_TMF_NO_LUN, buf), "LUN does not exist");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initiator_pdus_are_the_bytes_of_the_standard),
        cmocka_unit_test(target_pdus_are_the_bytes_of_the_standard),
        cmocka_unit_test(segments_are_padded_to_four_bytes),
        cmocka_unit_test(the_common_header_is_where_every_pdu_has_it),
        cmocka_unit_test(ahs_carry_long_cdbs_and_read_lengths),
        cmocka_unit_test(bad_ahs_chains_are_refused),
        cmocka_unit_test(codes_have_the_names_of_the_standard),
    };

    return cmocka_run_group_tests_name("pdu", tests, NULL, NULL);
}
