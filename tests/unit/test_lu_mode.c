/* SPDX-License-Identifier: BSD-2-Clause */
/* Mode pages and the sense format they select. */
#include "lu_rig.h"

enum { SIZE = 1 << 20 };

static const uint8_t codes[] = {0x01, 0x08, 0x0a, 0x1c};

/* One page of MODE SENSE(10) without block descriptors. */
static struct scsi_mode_page sense_page(struct rig *rig, unsigned n, uint8_t code, unsigned control)
{
    struct scsi_mode_page page;
    size_t at = 8;
    struct lu_task *t = GOOD(rig, n, SCSI_CMD_MODE_SENSE_10, .length = 252, .flags = SCSI_CDB_DBD,
                             .byte2 = (uint8_t)(control << 6 | code));

    assert_int_equal(scsi_mode_page_next(rig->in, (size_t)t->data_in, &at, &page), 1);
    assert_int_equal(page.code, code);
    assert_int_equal(at, t->data_in);
    return page;
}

/* MODE SELECT(10) of one page as it is now, with byte `at` xored. */
static struct lu_task *change(struct rig *rig, unsigned n, uint8_t code, unsigned at, uint8_t bits)
{
    struct scsi_mode_page page = sense_page(rig, n, code, SCSI_PC_CURRENT);

    memset(rig->out, 0, 8);
    memcpy(rig->out + 8, page.bytes, page.length);
    rig->out[8 + at] ^= bits;
    return RUN(rig, n, SCSI_CMD_MODE_SELECT_10, .length = (uint32_t)(8 + page.length),
               .flags = SCSI_CDB_PF);
}

/* [S-16] */
static void mode_sense_gives_every_page_in_every_form(void **state)
{
    struct rig rig;
    struct scsi_mode_header h;
    struct scsi_mode_page page;
    struct lp_error err;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned form = 0; form < 16; form++) {
        bool ten = form & 1, dbd = form & 2, long_lba = form & 4 && ten;
        uint8_t sub = form & 8 ? 0xff : 0;
        struct lu_task *t =
            RUN(&rig, 0, ten ? SCSI_CMD_MODE_SENSE_10 : SCSI_CMD_MODE_SENSE_6, .length = 255,
                .byte2 = 0x3f, .byte3 = sub,
                .flags = (uint8_t)((dbd ? SCSI_CDB_DBD : 0) | (long_lba ? SCSI_CDB_LLBAA : 0)));
        is_status(t, SCSI_GOOD);
        assert_int_equal(scsi_mode_header_unpack(&h, ten, rig.in, (size_t)t->data_in, &err), 0);
        assert_int_equal(h.length, t->data_in);
        assert_int_equal(h.descriptor_length, dbd ? 0 : long_lba ? 16 : 8);
        assert_int_equal(h.device_specific, SCSI_MODE_DPOFUA);
        if (!dbd)
            assert_int_equal(long_lba ? load_be32(rig.in + 8 + 12)
                                      : load_be24(rig.in + h.header_length + 5),
                             512);
        size_t at = h.header_length + h.descriptor_length;
        for (unsigned i = 0; i < sizeof codes; i++) {
            assert_int_equal(scsi_mode_page_next(rig.in, h.length, &at, &page), 1);
            assert_int_equal(page.code, codes[i]);
        }
        assert_int_equal(scsi_mode_page_next(rig.in, h.length, &at, &page), 0);
    }
    for (uint32_t n = 0; n < 30; n++) {
        struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_MODE_SENSE_6, .length = n, .byte2 = 0x3f);
        assert_int_equal(t->data_in, n);
    }
    for (uint8_t code = 0; code < 0x3f; code++) {
        bool known = memchr(codes, code, sizeof codes) != NULL;
        for (unsigned control = 0; control < 4; control++) {
            struct lu_task *t = RUN(&rig, 0, SCSI_CMD_MODE_SENSE_6, .length = 255,
                                    .byte2 = (uint8_t)(control << 6 | code));
            if (!known)
                is_illegal(t, SCSI_ASC_INVALID_FIELD_IN_CDB);
            else if (control == SCSI_PC_SAVED)
                is_illegal(t, SCSI_ASC_SAVING_NOT_SUPPORTED);
            else
                is_status(t, SCSI_GOOD);
        }
    }
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_MODE_SENSE_6,
          .length = 255, .byte2 = 0x0a, .byte3 = 1);
    rig_end(&rig);
}

/* [S-17] [S-31] */
static void turning_the_write_cache_off_writes_through(void **state)
{
    struct scsi_caching caching;
    struct scsi_mode_page page;
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    page = sense_page(&rig, 0, SCSI_MODE_CACHING, SCSI_PC_CURRENT);
    assert_int_equal(scsi_caching_unpack(&caching, &page), 0);
    assert_true(caching.wce && !caching.rcd);
    rig.disk.traced = 0;
    is_status(change(&rig, 0, SCSI_MODE_CACHING, 2, 4), SCSI_GOOD);
    assert_int_equal(rig.disk.trace[0].op, LP_FLUSH); /* what was cached before */
    page = sense_page(&rig, 0, SCSI_MODE_CACHING, SCSI_PC_CURRENT);
    assert_int_equal(scsi_caching_unpack(&caching, &page), 0);
    assert_false(caching.wce);
    rig.disk.traced = 0;
    GOOD(&rig, 0, SCSI_CMD_WRITE_10, .length = 1);
    assert_int_equal(rig.disk.trace[0].flags, LP_FUA);
    page = sense_page(&rig, 0, SCSI_MODE_CACHING, SCSI_PC_DEFAULT);
    assert_int_equal(scsi_caching_unpack(&caching, &page), 0);
    assert_true(caching.wce);
    rig_end(&rig);

    rig_init(&rig, SIZE); /* where there is no cache it cannot be turned on */
    rig.opts.write_cache = false;
    rig_start(&rig);
    is_illegal(change(&rig, 0, SCSI_MODE_CACHING, 2, 4), SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST);
    rig_end(&rig);
}

/* [S-18] [S-20] */
static void d_sense_selects_the_format_of_sense_data(void **state)
{
    struct scsi_sense s;
    struct rig rig;
    struct lu_task *t;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned descriptor = 0; descriptor < 2; descriptor++) {
        t = CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE, SCSI_CMD_READ_16,
                  .lba = UINT64_MAX, .length = 1);
        assert_int_equal(t->sense_data[0], descriptor ? 0x72 : 0x70);
        assert_true(scsi_sense_unpack(&s, t->sense_data, t->sense_length));
        assert_int_equal(s.information_valid, descriptor);
        if (descriptor)
            assert_int_equal(s.information, UINT64_MAX);
        t = CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB,
                  SCSI_CMD_INQUIRY, .byte2 = 7);
        assert_true(scsi_sense_unpack(&s, t->sense_data, t->sense_length));
        assert_true(s.field_valid && s.field_in_cdb && s.field == 2);
        is_status(change(&rig, 0, SCSI_MODE_CONTROL, 2, 4), SCSI_GOOD);
    }
    rig_end(&rig);
}

/* [S-18] [S-32] */
static void software_write_protection_stops_writes_and_shows(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    is_status(change(&rig, 0, SCSI_MODE_CONTROL, 4, 8), SCSI_GOOD);
    CHECK(&rig, 0, SCSI_KEY_DATA_PROTECT, SCSI_ASC_SOFTWARE_WRITE_PROTECTED, SCSI_CMD_WRITE_10,
          .length = 1);
    CHECK(&rig, 0, SCSI_KEY_DATA_PROTECT, SCSI_ASC_SOFTWARE_WRITE_PROTECTED, SCSI_CMD_UNMAP,
          .length = 8);
    GOOD(&rig, 0, SCSI_CMD_READ_10, .length = 1);
    GOOD(&rig, 0, SCSI_CMD_MODE_SENSE_6, .length = 4, .byte2 = 0x0a);
    assert_int_equal(rig.in[2], SCSI_MODE_WP | SCSI_MODE_DPOFUA);
    is_status(change(&rig, 0, SCSI_MODE_CONTROL, 4, 8), SCSI_GOOD);
    GOOD(&rig, 0, SCSI_CMD_WRITE_10, .length = 1);
    rig_end(&rig);
}

/* [S-18] */
static void the_control_page_tells_which_task_sets_there_are(void **state)
{
    struct scsi_control control;
    struct scsi_mode_page page;
    struct rig rig;

    (void)state;
    for (unsigned shared = 0; shared < 2; shared++) {
        rig_init(&rig, SIZE);
        rig.opts.shared_task_set = shared;
        rig.opts.task_aborted_status = shared;
        rig_start(&rig);
        page = sense_page(&rig, 0, SCSI_MODE_CONTROL, SCSI_PC_CURRENT);
        assert_int_equal(scsi_control_unpack(&control, &page), 0);
        assert_int_equal(control.tst, !shared);
        assert_int_equal(control.tas, shared);
        assert_int_equal(control.queue_algorithm, 1);
        rig_end(&rig);
    }
}

/* [S-19] [S-16] */
static void exactly_the_changeable_bits_can_be_changed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned i = 0; i < sizeof codes; i++) {
        uint8_t mask[32];
        struct scsi_mode_page page = sense_page(&rig, 0, codes[i], SCSI_PC_CHANGEABLE);
        size_t n = page.length;
        memcpy(mask, page.bytes, n);
        for (unsigned at = 2; at < n; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                struct lu_task *t = change(&rig, 0, codes[i], at, (uint8_t)(1 << bit));
                if (mask[at] >> bit & 1) {
                    is_status(t, SCSI_GOOD);
                    is_status(change(&rig, 0, codes[i], at, (uint8_t)(1 << bit)), SCSI_GOOD);
                    continue;
                }
                is_illegal(t, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST);
                assert_int_equal(t->sense.field, 8 + at);
                assert_true(t->sense.bit_valid && !t->sense.field_in_cdb);
                assert_int_equal(t->sense.bit, bit);
            }
        }
    }
    rig_end(&rig);
}

/* [S-19] */
static void malformed_mode_parameters_change_nothing(void **state)
{
    struct rig rig;
    uint8_t list[8 + 8 + 12];

    (void)state;
    rig_open(&rig, SIZE);
    struct scsi_mode_page page = sense_page(&rig, 0, SCSI_MODE_CONTROL, SCSI_PC_CURRENT);
    memset(list, 0, sizeof list);
    list[7] = 8; /* a block descriptor of 512-byte blocks */
    store_be24(list + 8 + 5, 512);
    memcpy(list + 16, page.bytes, 12);
    list[16 + 4] |= 8; /* SWP */
    GOOD(&rig, 0, SCSI_CMD_MODE_SELECT_10, .length = 0, .flags = SCSI_CDB_PF);
    for (uint32_t n = 1; n < sizeof list; n++) {
        memcpy(rig.out, list, sizeof list);
        if (n == 16) /* header and descriptor alone are a list */
            continue;
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR,
              SCSI_CMD_MODE_SELECT_10, .length = n, .flags = SCSI_CDB_PF);
    }
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_MODE_SELECT_10,
          .length = sizeof list);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_CDB, SCSI_CMD_MODE_SELECT_10,
          .length = sizeof list, .flags = SCSI_CDB_PF | SCSI_CDB_SP);
    memcpy(rig.out, list, sizeof list);
    store_be24(rig.out + 8 + 5, 4096);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
          SCSI_CMD_MODE_SELECT_10, .length = sizeof list, .flags = SCSI_CDB_PF);
    memcpy(rig.out, list, sizeof list);
    rig.out[16] = 0x0b; /* no such page */
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
          SCSI_CMD_MODE_SELECT_10, .length = sizeof list, .flags = SCSI_CDB_PF);
    GOOD(&rig, 0, SCSI_CMD_WRITE_10, .length = 1); /* SWP was never set */
    GOOD(&rig, 1, SCSI_CMD_TEST_UNIT_READY);       /* and nothing told */
    memcpy(rig.out, list, sizeof list);
    GOOD(&rig, 0, SCSI_CMD_MODE_SELECT_10, .length = sizeof list, .flags = SCSI_CDB_PF);
    CHECK(&rig, 1, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_MODE_PARAMETERS_CHANGED,
          SCSI_CMD_TEST_UNIT_READY);
    GOOD(&rig, 0, SCSI_CMD_TEST_UNIT_READY);
    memset(rig.out, 0, 4); /* the same by MODE SELECT(6) */
    memcpy(rig.out + 4, list + 16, 12);
    rig.out[4 + 4] &= (uint8_t)~8;
    GOOD(&rig, 1, SCSI_CMD_MODE_SELECT_6, .length = 16, .flags = SCSI_CDB_PF);
    CHECK(&rig, 0, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_MODE_PARAMETERS_CHANGED,
          SCSI_CMD_TEST_UNIT_READY);
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mode_sense_gives_every_page_in_every_form),
        cmocka_unit_test(turning_the_write_cache_off_writes_through),
        cmocka_unit_test(d_sense_selects_the_format_of_sense_data),
        cmocka_unit_test(software_write_protection_stops_writes_and_shows),
        cmocka_unit_test(the_control_page_tells_which_task_sets_there_are),
        cmocka_unit_test(exactly_the_changeable_bits_can_be_changed),
        cmocka_unit_test(malformed_mode_parameters_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
