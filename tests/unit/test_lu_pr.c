/* SPDX-License-Identifier: BSD-2-Clause */
/* Reservations, persistent and not. */
#include "lu_rig.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 1 << 20, KEY = 0x1000, FLAG_APTPL = 1, FLAG_ALL = 4, FLAG_SPEC = 8 };

static const uint8_t types[] = {1, 3, 5, 6, 7, 8};

/* Nexus n's usual key is KEY + n. */
static struct lu_task *out(struct rig *rig, unsigned n, enum scsi_command c, uint8_t type,
                           uint64_t key, uint64_t service_key, uint8_t flags)
{
    memset(rig->out, 0, 24);
    store_be64(rig->out, key);
    store_be64(rig->out + 8, service_key);
    rig->out[20] = flags;
    return RUN(rig, n, c, .length = 24, .byte2 = type);
}

static void registers(struct rig *rig, unsigned n)
{
    is_status(out(rig, n, SCSI_CMD_PR_REGISTER_AND_IGNORE, 0, 0, KEY + n, 0), SCSI_GOOD);
}

static void reserves(struct rig *rig, unsigned n, uint8_t type)
{
    is_status(out(rig, n, SCSI_CMD_PR_RESERVE, type, KEY + n, 0, 0), SCSI_GOOD);
}

static uint32_t generation(struct rig *rig)
{
    GOOD(rig, 0, SCSI_CMD_PR_READ_KEYS, .length = 8);
    return load_be32(rig->in);
}

static unsigned keys(struct rig *rig)
{
    GOOD(rig, 0, SCSI_CMD_PR_READ_KEYS, .length = 8);
    return load_be32(rig->in + 4) / 8;
}

/* The type, 0: none. *key: the holder's. */
static uint8_t reservation(struct rig *rig, uint64_t *key)
{
    struct lu_task *t = GOOD(rig, 0, SCSI_CMD_PR_READ_RESERVATION, .length = 64);

    assert_int_equal(t->data_in, 8 + load_be32(rig->in + 4));
    if (t->data_in == 8)
        return 0;
    if (key)
        *key = load_be64(rig->in + 8);
    return rig->in[21] & 0xf;
}

static void takes_ua(struct rig *rig, unsigned n, uint16_t asc)
{
    if (asc)
        CHECK(rig, n, SCSI_KEY_UNIT_ATTENTION, asc, SCSI_CMD_TEST_UNIT_READY);
    GOOD(rig, n, SCSI_CMD_TEST_UNIT_READY);
}

/* [S-39] */
static void registering_needs_the_right_old_key(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 7, KEY, 0), SCSI_RESERVATION_CONFLICT);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, 0, 0), SCSI_GOOD); /* nothing */
    assert_int_equal(keys(&rig), 0);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, KEY, 0), SCSI_GOOD);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, KEY + 1, 0), SCSI_RESERVATION_CONFLICT);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, KEY, 0xabcd, 0), SCSI_GOOD);
    assert_int_equal(keys(&rig), 1);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER_AND_IGNORE, 0, 99, 0xef, 0), SCSI_GOOD);
    uint32_t before = generation(&rig);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0xef, 0, 0), SCSI_GOOD);
    assert_int_equal(generation(&rig), before + 1);
    assert_int_equal(keys(&rig), 0);
    rig_end(&rig);
}

/* [S-39] */
static void parameter_lists_have_24_bytes_and_known_flags(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (enum scsi_command c = SCSI_CMD_PR_REGISTER; c <= SCSI_CMD_PR_REGISTER_AND_MOVE; c++) {
        static const uint32_t lengths[] = {0, 1, 23, 25, 1025, 65536};
        for (unsigned i = 0; i < 6; i++) {
            if (c == SCSI_CMD_PR_REGISTER_AND_MOVE && lengths[i] == 25)
                continue;
            CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR, c,
                  .length = lengths[i], .byte2 = 1);
        }
    }
    is_illegal(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, KEY, FLAG_SPEC),
               SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST);
    is_illegal(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, KEY, FLAG_APTPL), /* no file for it */
               SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST);
    registers(&rig, 0);
    for (unsigned type = 0; type < 256; type++)
        if (!memchr(types, (int)type, sizeof types))
            is_illegal(out(&rig, 0, SCSI_CMD_PR_RESERVE, (uint8_t)type, KEY, 0, 0),
                       SCSI_ASC_INVALID_FIELD_IN_CDB);
    rig_end(&rig);
}

/* [S-39] */
static void all_target_ports_are_registered_at_once(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, KEY, FLAG_ALL), SCSI_GOOD);
    assert_int_equal(keys(&rig), 2);
    GOOD(&rig, 0, SCSI_CMD_PR_READ_FULL_STATUS, .length = 1000);
    assert_int_equal(load_be16(rig.in + 8 + 18), 1);
    size_t second = 8 + 24 + load_be32(rig.in + 8 + 20);
    assert_int_equal(load_be16(rig.in + second + 18), 2);
    is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, KEY, 0, FLAG_ALL), SCSI_GOOD);
    assert_int_equal(keys(&rig), 0);
    rig_end(&rig);
}

/* What passes: bit 0 for who is not registered, 1 for who is. */
struct access {
    enum scsi_command command;
    uint32_t length;
    uint8_t byte4;
    uint8_t we, ea;   /* types 1 and 3 */
    uint8_t wer, ear; /* types 5, 7 and 6, 8 */
};

static const struct access accesses[] = {
    {SCSI_CMD_TEST_UNIT_READY, 0, 0, 3, 3, 3, 3},
    {SCSI_CMD_INQUIRY, 96, 0, 3, 3, 3, 3},
    {SCSI_CMD_REPORT_LUNS, 24, 0, 3, 3, 3, 3},
    {SCSI_CMD_REQUEST_SENSE, 18, 0, 3, 3, 3, 3},
    {SCSI_CMD_READ_CAPACITY_10, 0, 0, 3, 3, 3, 3},
    {SCSI_CMD_READ_CAPACITY_16, 32, 0, 3, 3, 3, 3},
    {SCSI_CMD_GET_LBA_STATUS, 24, 0, 3, 3, 3, 3},
    {SCSI_CMD_REPORT_TARGET_PORT_GROUPS, 24, 0, 3, 3, 3, 3},
    {SCSI_CMD_PR_READ_KEYS, 24, 0, 3, 3, 3, 3},
    {SCSI_CMD_PREVENT_ALLOW, 0, 0, 3, 3, 3, 3},
    {SCSI_CMD_START_STOP_UNIT, 0, 1, 3, 3, 3, 3},
    {SCSI_CMD_START_STOP_UNIT, 0, 5, 3, 3, 3, 3},
    {SCSI_CMD_READ_6, 1, 0, 3, 0, 3, 2},
    {SCSI_CMD_READ_10, 1, 0, 3, 0, 3, 2},
    {SCSI_CMD_READ_12, 1, 0, 3, 0, 3, 2},
    {SCSI_CMD_READ_16, 1, 0, 3, 0, 3, 2},
    {SCSI_CMD_VERIFY_10, 1, 0, 3, 0, 3, 2},
    {SCSI_CMD_PREFETCH_10, 1, 0, 3, 0, 3, 2},
    {SCSI_CMD_WRITE_6, 1, 0, 0, 0, 2, 2},
    {SCSI_CMD_WRITE_10, 1, 0, 0, 0, 2, 2},
    {SCSI_CMD_WRITE_12, 1, 0, 0, 0, 2, 2},
    {SCSI_CMD_WRITE_16, 1, 0, 0, 0, 2, 2},
    {SCSI_CMD_WRITE_AND_VERIFY_10, 1, 0, 0, 0, 2, 2},
    {SCSI_CMD_WRITE_SAME_10, 1, 0, 0, 0, 2, 2},
    {SCSI_CMD_UNMAP, 0, 0, 0, 0, 2, 2},
    {SCSI_CMD_SYNCHRONIZE_CACHE_10, 0, 0, 0, 0, 2, 2},
    {SCSI_CMD_MODE_SENSE_6, 4, 0, 0, 0, 2, 2},
    {SCSI_CMD_START_STOP_UNIT, 0, 4, 0, 0, 2, 2},
};

static uint8_t run_access(struct rig *rig, unsigned n, const struct access *a)
{
    uint8_t status = RUN(rig, n, a->command, .length = a->length, .byte4 = a->byte4,
                         .byte2 = a->command == SCSI_CMD_MODE_SENSE_6 ? 0x3f : 0)
                         ->status;

    if (a->command == SCSI_CMD_START_STOP_UNIT)
        is_status(RUN(rig, 0, SCSI_CMD_START_STOP_UNIT, .byte4 = 1), SCSI_GOOD);
    memset(rig->out, 0, 4096);
    return status;
}

/* [S-40] */
static void each_type_lets_pass_whom_the_standard_lets_pass(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned k = 0; k < sizeof types; k++) {
        uint64_t key = 0;
        registers(&rig, 0);
        reserves(&rig, 0, types[k]);
        assert_int_equal(reservation(&rig, &key), types[k]);
        assert_int_equal(key, types[k] >= 7 ? 0 : KEY);
        for (unsigned i = 0; i < sizeof accesses / sizeof *accesses; i++) {
            const struct access *a = &accesses[i];
            uint8_t passes = types[k] == 1             ? a->we
                             : types[k] == 3           ? a->ea
                             : types[k] % 2 /* 5, 7 */ ? a->wer
                                                       : a->ear;
            for (unsigned registered = 0; registered < 2; registered++) {
                if (registered)
                    registers(&rig, 1);
                uint8_t want = passes >> registered & 1 ? SCSI_GOOD : SCSI_RESERVATION_CONFLICT;
                uint8_t status = run_access(&rig, 1, a);
                if (status != want)
                    fail_msg("%s, type %u, registered %u: status %02x",
                             scsi_command_info(a->command)->name, types[k], registered, status);
                assert_int_equal(run_access(&rig, 0, a), SCSI_GOOD); /* the holder */
            }
            is_status(out(&rig, 1, SCSI_CMD_PR_REGISTER, 0, KEY + 1, 0, 0), SCSI_GOOD);
        }
        is_status(out(&rig, 0, SCSI_CMD_PR_RELEASE, types[k], KEY, 0, 0), SCSI_GOOD);
        assert_int_equal(reservation(&rig, NULL), 0);
        is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, KEY, 0, 0), SCSI_GOOD);
    }
    rig_end(&rig);
}

/* [S-39] [S-40] */
static void reserve_and_release_follow_the_state_table(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    is_status(out(&rig, 0, SCSI_CMD_PR_RESERVE, 1, KEY, 0, 0), SCSI_RESERVATION_CONFLICT);
    registers(&rig, 0);
    registers(&rig, 1);
    is_status(out(&rig, 0, SCSI_CMD_PR_RESERVE, 1, 7, 0, 0), SCSI_RESERVATION_CONFLICT);
    is_status(out(&rig, 0, SCSI_CMD_PR_RELEASE, 1, KEY, 0, 0), SCSI_GOOD); /* nothing to release */
    for (unsigned k = 0; k < sizeof types; k++) {
        bool told = types[k] > 3;
        uint8_t other = types[k] == 1 ? 3 : 1;
        uint32_t before = generation(&rig);
        reserves(&rig, 0, types[k]);
        reserves(&rig, 0, types[k]); /* again is fine */
        is_status(out(&rig, 0, SCSI_CMD_PR_RESERVE, other, KEY, 0, 0), SCSI_RESERVATION_CONFLICT);
        is_status(out(&rig, 1, SCSI_CMD_PR_RESERVE, types[k], KEY + 1, 0, 0),
                  types[k] >= 7 ? SCSI_GOOD : SCSI_RESERVATION_CONFLICT);
        is_illegal(out(&rig, 0, SCSI_CMD_PR_RELEASE, other, KEY, 0, 0),
                   SCSI_ASC_INVALID_RELEASE_OF_RESERVATION);
        is_status(out(&rig, 0, SCSI_CMD_PR_RELEASE, types[k], 7, 0, 0), SCSI_RESERVATION_CONFLICT);
        if (types[k] < 7) { /* who does not hold it releases nothing */
            is_status(out(&rig, 1, SCSI_CMD_PR_RELEASE, types[k], KEY + 1, 0, 0), SCSI_GOOD);
            assert_int_equal(reservation(&rig, NULL), types[k]);
        }
        is_status(out(&rig, 0, SCSI_CMD_PR_RELEASE, types[k], KEY, 0, 0), SCSI_GOOD);
        assert_int_equal(reservation(&rig, NULL), 0);
        takes_ua(&rig, 1, told ? SCSI_ASC_RESERVATIONS_RELEASED : 0);
        assert_int_equal(generation(&rig), before); /* neither counts */
    }
    rig_end(&rig);
}

/* [S-39] [S-41] */
static void a_reservation_goes_with_its_last_holder(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned k = 0; k < sizeof types; k++) {
        registers(&rig, 0);
        registers(&rig, 1);
        reserves(&rig, 0, types[k]);
        is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, KEY, 0, 0), SCSI_GOOD);
        assert_int_equal(reservation(&rig, NULL), types[k] >= 7 ? types[k] : 0);
        takes_ua(&rig, 1, types[k] == 5 || types[k] == 6 ? SCSI_ASC_RESERVATIONS_RELEASED : 0);
        is_status(out(&rig, 1, SCSI_CMD_PR_REGISTER, 0, KEY + 1, 0, 0), SCSI_GOOD);
        assert_int_equal(reservation(&rig, NULL), 0);
    }
    rig_end(&rig);
}

/* [S-39] */
static void clear_ends_everything_and_tells_the_registered(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    registers(&rig, 0);
    registers(&rig, 1);
    reserves(&rig, 0, 6);
    is_status(out(&rig, 1, SCSI_CMD_PR_CLEAR, 0, 5, 0, 0), SCSI_RESERVATION_CONFLICT);
    uint32_t before = generation(&rig);
    is_status(out(&rig, 1, SCSI_CMD_PR_CLEAR, 0, KEY + 1, 0, 0), SCSI_GOOD);
    takes_ua(&rig, 0, SCSI_ASC_RESERVATIONS_PREEMPTED);
    takes_ua(&rig, 1, 0);
    assert_int_equal(generation(&rig), before + 1);
    assert_int_equal(keys(&rig), 0);
    assert_int_equal(reservation(&rig, NULL), 0);
    rig_end(&rig);
}

/* [S-39] */
static void preempt_takes_over_or_removes(void **state)
{
    struct rig rig;
    uint64_t key;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned k = 0; k < sizeof types; k++) {
        bool all = types[k] >= 7;
        registers(&rig, 0);
        registers(&rig, 1);
        /* No reservation: only registrations go. */
        is_illegal(out(&rig, 1, SCSI_CMD_PR_PREEMPT, 1, KEY + 1, 0, 0),
                   SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST);
        is_status(out(&rig, 1, SCSI_CMD_PR_PREEMPT, 1, KEY + 1, 0x77, 0),
                  SCSI_RESERVATION_CONFLICT);
        is_status(out(&rig, 1, SCSI_CMD_PR_PREEMPT, 1, 0x77, KEY, 0), SCSI_RESERVATION_CONFLICT);
        uint32_t before = generation(&rig);
        is_status(out(&rig, 1, SCSI_CMD_PR_PREEMPT, 1, KEY + 1, KEY, 0), SCSI_GOOD);
        takes_ua(&rig, 0, SCSI_ASC_REGISTRATIONS_PREEMPTED);
        assert_int_equal(generation(&rig), before + 1);
        assert_int_equal(keys(&rig), 1);
        assert_int_equal(reservation(&rig, NULL), 0);
        /* With a reservation: it goes over. */
        registers(&rig, 0);
        reserves(&rig, 0, types[k]);
        is_status(out(&rig, 1, SCSI_CMD_PR_PREEMPT, 3, KEY + 1, all ? 0 : KEY, 0), SCSI_GOOD);
        takes_ua(&rig, 0, SCSI_ASC_REGISTRATIONS_PREEMPTED);
        takes_ua(&rig, 1, 0);
        assert_int_equal(reservation(&rig, &key), 3);
        assert_int_equal(key, KEY + 1);
        assert_int_equal(keys(&rig), 1);
        /* A registration that holds nothing: the reservation stays. */
        registers(&rig, 0);
        is_status(out(&rig, 1, SCSI_CMD_PR_PREEMPT, 1, KEY + 1, KEY, 0), SCSI_GOOD);
        takes_ua(&rig, 0, SCSI_ASC_REGISTRATIONS_PREEMPTED);
        assert_int_equal(reservation(&rig, &key), 3);
        /* Its own: the type changes, the registration stays. */
        is_status(out(&rig, 1, SCSI_CMD_PR_PREEMPT, 5, KEY + 1, KEY + 1, 0), SCSI_GOOD);
        assert_int_equal(reservation(&rig, &key), 5);
        assert_int_equal(key, KEY + 1);
        is_status(out(&rig, 1, SCSI_CMD_PR_CLEAR, 0, KEY + 1, 0, 0), SCSI_GOOD);
    }
    rig_end(&rig);
}

/* [S-39] [S-22] */
static void preempt_and_abort_ends_the_tasks_of_the_preempted(void **state)
{
    struct rig rig;
    struct rig_task io;
    uint8_t cdb[SCSI_CDB_MAX];
    size_t n = scsi_cdb_read_write(false, 0, 1, 0, cdb);

    (void)state;
    for (unsigned tas = 0; tas < 2; tas++) {
        rig_init(&rig, SIZE);
        rig.opts.task_aborted_status = tas;
        rig_start(&rig);
        registers(&rig, 0);
        registers(&rig, 1);
        reserves(&rig, 0, 1);
        rig_task(&io, rig.nexus[0], cdb, n);
        rig_prepare(&io, 0); /* waits for its submit */
        is_status(out(&rig, 1, SCSI_CMD_PR_PREEMPT_AND_ABORT, 1, KEY + 1, KEY, 0), SCSI_GOOD);
        assert_int_equal(io.done, 1);
        assert_true(io.task.aborted);
        assert_int_equal(io.task.status, tas ? SCSI_TASK_ABORTED : SCSI_GOOD);
        if (!tas)
            CHECK(&rig, 0, SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_COMMANDS_CLEARED_BY_ANOTHER,
                  SCSI_CMD_TEST_UNIT_READY);
        takes_ua(&rig, 0, SCSI_ASC_REGISTRATIONS_PREEMPTED);
        takes_ua(&rig, 1, 0);
        rig_end(&rig);
    }
}

static size_t put_move(struct rig *rig, uint64_t key, uint64_t service_key, uint8_t flags,
                       uint16_t port, const char *name)
{
    size_t n = (strlen(name) + 1 + 3) / 4 * 4;

    memset(rig->out, 0, 24 + 4 + n);
    store_be64(rig->out, key);
    store_be64(rig->out + 8, service_key);
    rig->out[17] = flags;
    store_be16(rig->out + 18, port);
    store_be32(rig->out + 20, (uint32_t)n + 4);
    rig->out[24] = 0x45;
    store_be16(rig->out + 26, (uint16_t)n);
    strcpy((char *)rig->out + 28, name);
    return 28 + n;
}

/* [S-39] */
static void register_and_move_hands_the_reservation_on(void **state)
{
    static const char *const two = "iqn.2026-01.com.example:two,i,0x400000000002";
    static const char *const bad[] = {"iqn.2026-01.com.example:two", "iqn,i,0x12345", ",i,0x1",
                                      "iqn.2026-01.com.example:two,i,0x40000000000g"};
    struct rig rig;
    uint64_t key;
    size_t n;

    (void)state;
    rig_open(&rig, SIZE);
    registers(&rig, 0);
    n = put_move(&rig, KEY, KEY + 1, 0, 2, two);
    is_status(RUN(&rig, 0, SCSI_CMD_PR_REGISTER_AND_MOVE, .length = (uint32_t)n),
              SCSI_RESERVATION_CONFLICT); /* holds nothing */
    reserves(&rig, 0, 3);
    for (unsigned i = 0; i < 4; i++) {
        n = put_move(&rig, KEY, KEY + 1, 0, 2, bad[i]);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
              SCSI_CMD_PR_REGISTER_AND_MOVE, .length = (uint32_t)n);
    }
    n = put_move(&rig, KEY, 0, 0, 2, two);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
          SCSI_CMD_PR_REGISTER_AND_MOVE, .length = (uint32_t)n);
    n = put_move(&rig, KEY, KEY + 1, 0, 9, two);
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
          SCSI_CMD_PR_REGISTER_AND_MOVE, .length = (uint32_t)n);
    n = put_move(&rig, KEY, KEY + 1, 0, 1, "iqn.2026-01.com.example:one,i,0x400000000001");
    CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST,
          SCSI_CMD_PR_REGISTER_AND_MOVE, .length = (uint32_t)n);
    for (uint32_t cut = 24; cut < n; cut++) {
        put_move(&rig, KEY, KEY + 1, 0, 2, two);
        CHECK(&rig, 0, SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR,
              SCSI_CMD_PR_REGISTER_AND_MOVE, .length = cut);
    }
    n = put_move(&rig, KEY, KEY + 1, 2, 2, two); /* with UNREG */
    is_status(RUN(&rig, 0, SCSI_CMD_PR_REGISTER_AND_MOVE, .length = (uint32_t)n), SCSI_GOOD);
    assert_int_equal(reservation(&rig, &key), 3);
    assert_int_equal(key, KEY + 1);
    assert_int_equal(keys(&rig), 1);
    GOOD(&rig, 1, SCSI_CMD_WRITE_10, .length = 1);
    is_status(RUN(&rig, 0, SCSI_CMD_WRITE_10, .length = 1), SCSI_RESERVATION_CONFLICT);
    rig_end(&rig);
}

/* [S-38] */
static void persistent_reserve_in_tells_everything_cut_by_the_allocation_length(void **state)
{
    enum { MANY = 64 };
    struct lu_nexus *more[MANY];
    struct rig rig;
    char name[64];

    (void)state;
    rig_open(&rig, SIZE);
    struct lu_nexus *first = rig.nexus[0];
    for (unsigned count = 0; count <= MANY; count++) {
        if (count > 0) {
            snprintf(name, sizeof name, "iqn.2026-01.com.example:host%u", count);
            more[count - 1] = rig_nexus(rig.lu, name, (uint8_t)count, 1);
            rig.nexus[0] = more[count - 1];
            takes_ua(&rig, 0, SCSI_ASC_RESET);
            is_status(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, count, 0), SCSI_GOOD);
            if (count == 1)
                is_status(out(&rig, 0, SCSI_CMD_PR_RESERVE, 5, 1, 0, 0), SCSI_GOOD);
        }
        for (uint32_t length = 0; length < 60; length += 7) {
            uint32_t whole = 8 + 8 * count;
            struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_PR_READ_KEYS, .length = length);
            assert_int_equal(t->data_in, length < whole ? length : whole);
            if (length >= 8)
                assert_int_equal(load_be32(rig.in + 4), 8 * count);
        }
        struct lu_task *t = GOOD(&rig, 0, SCSI_CMD_PR_READ_FULL_STATUS, .length = 65535);
        size_t at = 8;
        for (unsigned i = 1; i <= count; i++) {
            snprintf(name, sizeof name, "iqn.2026-01.com.example:host%u,i,0x4000000000%02x", i, i);
            assert_int_equal(load_be64(rig.in + at), i);
            assert_int_equal(rig.in[at + 12], i == 1);
            assert_int_equal(rig.in[at + 13], i == 1 ? 5 : 0);
            assert_int_equal(load_be16(rig.in + at + 18), 1);
            assert_int_equal(rig.in[at + 24], 0x45);
            assert_string_equal((char *)rig.in + at + 28, name);
            assert_int_equal(load_be16(rig.in + at + 26) % 4, 0);
            at += 24 + load_be32(rig.in + at + 20);
        }
        assert_int_equal(at, t->data_in);
        assert_int_equal(load_be32(rig.in + 4), at - 8);
    }
    GOOD(&rig, 0, SCSI_CMD_PR_REPORT_CAPABILITIES, .length = 8);
    assert_int_equal(load_be16(rig.in), 8);
    assert_int_equal(rig.in[2], 0x04);
    assert_int_equal(rig.in[3], 0x80);
    assert_int_equal(rig.in[4], 0xea);
    assert_int_equal(rig.in[5], 0x01);
    rig.nexus[0] = first;
    for (unsigned i = 0; i < MANY; i++)
        lu_nexus_close(more[i]);
    rig_end(&rig);
}

/* [S-39] */
static void registrations_are_bounded(void **state)
{
    struct rig rig;
    char name[64];
    struct lu_nexus *first;

    (void)state;
    rig_open(&rig, SIZE);
    first = rig.nexus[0];
    for (unsigned i = 0; i <= LU_REGISTRANTS_MAX; i++) {
        snprintf(name, sizeof name, "iqn.2026-01.com.example:host%u", i);
        rig.nexus[0] = rig_nexus(rig.lu, name, 1, 1);
        takes_ua(&rig, 0, SCSI_ASC_RESET);
        struct lu_task *t = out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, 5, 0);
        if (i < LU_REGISTRANTS_MAX)
            is_status(t, SCSI_GOOD);
        else
            is_illegal(t, SCSI_ASC_INSUFFICIENT_REGISTRATION_RESOURCES);
        lu_nexus_close(rig.nexus[0]);
    }
    rig.nexus[0] = first;
    rig_end(&rig);
}

static void restart(struct rig *rig)
{
    rig_stop(rig);
    rig_start(rig);
}

/* [S-41] */
static void reservations_survive_a_lost_nexus(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    registers(&rig, 0);
    reserves(&rig, 0, 3);
    lu_nexus_loss(rig.nexus[0]);
    lu_nexus_close(rig.nexus[0]);
    is_status(RUN(&rig, 1, SCSI_CMD_READ_10, .length = 1), SCSI_RESERVATION_CONFLICT);
    rig.nexus[0] = rig_nexus(rig.lu, "iqn.2026-01.com.example:one", 1, 1);
    takes_ua(&rig, 0, SCSI_ASC_RESET);
    GOOD(&rig, 0, SCSI_CMD_READ_10, .length = 1); /* the same initiator port is known again */
    lu_nexus_close(rig.nexus[0]);
    rig.nexus[0] = rig_nexus(rig.lu, "iqn.2026-01.com.example:one", 9, 1);
    takes_ua(&rig, 0, SCSI_ASC_RESET);
    is_status(RUN(&rig, 0, SCSI_CMD_READ_10, .length = 1), SCSI_RESERVATION_CONFLICT);
    rig_end(&rig);
}

/* [S-41] */
static void with_aptpl_reservations_survive_a_restart(void **state)
{
    char folder[] = "/tmp/lunpath-pr-XXXXXX", path[64], new_path[72];
    struct lp_error err;
    struct rig rig;
    uint64_t key;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/reservations", folder);
    snprintf(new_path, sizeof new_path, "%s.new", path);
    rig_init(&rig, SIZE);
    rig.opts.aptpl_path = path;
    rig_start(&rig);
    for (unsigned k = 0; k < sizeof types; k++) {
        for (unsigned n = 0; n < 2; n++)
            is_status(out(&rig, n, SCSI_CMD_PR_REGISTER_AND_IGNORE, 0, 0, KEY + n, FLAG_APTPL),
                      SCSI_GOOD);
        reserves(&rig, 1, types[k]);
        restart(&rig);
        assert_int_equal(keys(&rig), 2);
        assert_int_equal(reservation(&rig, &key), types[k]);
        assert_int_equal(key, types[k] >= 7 ? 0 : KEY + 1);
        GOOD(&rig, 0, SCSI_CMD_PR_REPORT_CAPABILITIES, .length = 8);
        assert_int_equal(rig.in[2] & 1, 1);
        assert_int_equal(rig.in[3] & 1, 1);
        is_status(out(&rig, 1, SCSI_CMD_PR_CLEAR, 0, KEY + 1, 0, 0), SCSI_GOOD);
        restart(&rig);
        assert_int_equal(keys(&rig), 0);
    }
    registers(&rig, 0); /* without APTPL it is forgotten */
    restart(&rig);
    assert_int_equal(keys(&rig), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(access(new_path, F_OK), -1);
    /* What cannot be kept is not promised: the state before stays. */
    assert_int_equal(mkdir(new_path, 0700), 0);
    is_check(out(&rig, 0, SCSI_CMD_PR_REGISTER, 0, 0, KEY, FLAG_APTPL), SCSI_KEY_HARDWARE_ERROR,
             SCSI_ASC_INTERNAL_TARGET_FAILURE);
    assert_int_equal(keys(&rig), 0);
    rmdir(new_path);
    rig_stop(&rig);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("lunpath persistent reservations 1\nregistrant 00", f);
    fclose(f);
    assert_null(lu_new_queue(&rig.disk.q, &rig.opts, &err));
    assert_non_null(strstr(err.msg, "line 2"));
    assert_non_null(strstr(err.msg, path));
    unlink(path);
    rmdir(folder);
    rig_free(&rig);
}

/* [S-42] */
static void reserve_6_excludes_the_others_until_it_is_released(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, SIZE);
    for (unsigned way = 0; way < 4; way++) {
        GOOD(&rig, 0, SCSI_CMD_RESERVE_6);
        GOOD(&rig, 0, SCSI_CMD_RESERVE_6);
        is_status(RUN(&rig, 1, SCSI_CMD_RESERVE_6), SCSI_RESERVATION_CONFLICT);
        GOOD(&rig, 1, SCSI_CMD_RELEASE_6); /* no effect */
        is_status(RUN(&rig, 1, SCSI_CMD_READ_10, .length = 1), SCSI_RESERVATION_CONFLICT);
        is_status(RUN(&rig, 1, SCSI_CMD_TEST_UNIT_READY), SCSI_RESERVATION_CONFLICT);
        is_status(RUN(&rig, 1, SCSI_CMD_MODE_SENSE_6, .length = 255, .byte2 = 0x3f),
                  SCSI_RESERVATION_CONFLICT);
        is_status(RUN(&rig, 1, SCSI_CMD_PR_READ_KEYS, .length = 8), SCSI_RESERVATION_CONFLICT);
        GOOD(&rig, 1, SCSI_CMD_INQUIRY, .length = 96);
        GOOD(&rig, 1, SCSI_CMD_REQUEST_SENSE, .length = 18);
        GOOD(&rig, 1, SCSI_CMD_REPORT_LUNS, .length = 16);
        GOOD(&rig, 0, SCSI_CMD_MODE_SENSE_6, .length = 255, .byte2 = 0x3f);
        GOOD(&rig, 0, SCSI_CMD_WRITE_10, .length = 1);
        if (way == 0) {
            GOOD(&rig, 0, SCSI_CMD_RELEASE_6);
        } else if (way == 1) {
            lu_reset(rig.lu, rig.nexus[1]);
            takes_ua(&rig, 0, SCSI_ASC_DEVICE_RESET);
            takes_ua(&rig, 1, SCSI_ASC_DEVICE_RESET);
        } else if (way == 2) {
            lu_nexus_loss(rig.nexus[0]);
            takes_ua(&rig, 0, SCSI_ASC_NEXUS_LOSS);
        } else {
            lu_nexus_close(rig.nexus[0]);
            rig.nexus[0] = rig_nexus(rig.lu, "iqn.2026-01.com.example:one", 1, 1);
            takes_ua(&rig, 0, SCSI_ASC_RESET);
        }
        GOOD(&rig, 1, SCSI_CMD_RESERVE_6);
        GOOD(&rig, 1, SCSI_CMD_RELEASE_6);
    }
    registers(&rig, 1); /* with a persistent registration there is no RESERVE(6) */
    is_status(RUN(&rig, 0, SCSI_CMD_RESERVE_6), SCSI_RESERVATION_CONFLICT);
    is_status(RUN(&rig, 1, SCSI_CMD_RELEASE_6), SCSI_RESERVATION_CONFLICT);
    rig_end(&rig);
}

/* [S-40] */
static void a_task_that_waited_meets_the_reservation_made_meanwhile(void **state)
{
    struct rig rig;
    struct rig_task io;
    uint8_t cdb[SCSI_CDB_MAX];
    size_t n = scsi_cdb_read_write(true, 0, 1, 0, cdb);

    (void)state;
    rig_open(&rig, SIZE);
    registers(&rig, 0);
    rig_task(&io, rig.nexus[1], cdb, n);
    rig_prepare(&io, 512);
    assert_false(io.task.refused);
    reserves(&rig, 0, 1);
    rig_submit_task(&rig, &io);
    is_status(&io.task, SCSI_RESERVATION_CONFLICT);
    assert_int_equal(rig.disk.traced, 0);
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registering_needs_the_right_old_key),
        cmocka_unit_test(parameter_lists_have_24_bytes_and_known_flags),
        cmocka_unit_test(all_target_ports_are_registered_at_once),
        cmocka_unit_test(each_type_lets_pass_whom_the_standard_lets_pass),
        cmocka_unit_test(reserve_and_release_follow_the_state_table),
        cmocka_unit_test(a_reservation_goes_with_its_last_holder),
        cmocka_unit_test(clear_ends_everything_and_tells_the_registered),
        cmocka_unit_test(preempt_takes_over_or_removes),
        cmocka_unit_test(preempt_and_abort_ends_the_tasks_of_the_preempted),
        cmocka_unit_test(register_and_move_hands_the_reservation_on),
        cmocka_unit_test(persistent_reserve_in_tells_everything_cut_by_the_allocation_length),
        cmocka_unit_test(registrations_are_bounded),
        cmocka_unit_test(reservations_survive_a_lost_nexus),
        cmocka_unit_test(with_aptpl_reservations_survive_a_restart),
        cmocka_unit_test(reserve_6_excludes_the_others_until_it_is_released),
        cmocka_unit_test(a_task_that_waited_meets_the_reservation_made_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
