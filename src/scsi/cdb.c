/* SPDX-License-Identifier: BSD-2-Clause */
#include "scsi/cdb.h"
#include "base/bytes.h"

#include <string.h>

/* Shapes that many commands share: where the LBA and the length are, and the usage bits behind
 * byte 1. CONTROL has no bits: NACA is not supported and the rest is reserved. */
#define LBA6 1, 3
#define LBA10 2, 4
#define LBA16 2, 8
#define NO_LBA 0, 0
#define LEN10 7, 2
#define LEN12 6, 4
#define LEN16 10, 4
#define LEN_CAW 13, 1
#define NO_LEN 0, 0
#define FF2 0xff, 0xff
#define FF4 0xff, 0xff, 0xff, 0xff
#define USE10 FF4, 0x1f, FF2, 0
#define USE12 FF4, FF4, 0x1f, 0
#define USE16 FF4, FF4, FF4, 0x1f, 0

enum {
    RW = SCSI_CDB_DPO | SCSI_CDB_FUA | 0x02, /* FUA_NV, obsolete, is treated as FUA */
    VERIFY = SCSI_CDB_DPO | SCSI_CDB_BYTCHK,
    SAME = SCSI_CDB_WS_UNMAP, /* without ANCHOR */
};

#define PR_IN(name, sa)                                                                            \
    {                                                                                              \
        name, SCSI_PERSISTENT_RESERVE_IN, sa, 10, SCSI_DATA_IN, SCSI_LENGTH_ALLOCATION, NO_LBA,    \
            LEN10,                                                                                 \
        {                                                                                          \
            SCSI_PERSISTENT_RESERVE_IN, sa, 0, 0, 0, 0, 0, FF2, 0                                  \
        }                                                                                          \
    }
#define PR_OUT(name, sa, scope)                                                                    \
    {                                                                                              \
        name, SCSI_PERSISTENT_RESERVE_OUT, sa, 10, SCSI_DATA_OUT, SCSI_LENGTH_PARAMETERS, NO_LBA,  \
            5, 4,                                                                                  \
        {                                                                                          \
            SCSI_PERSISTENT_RESERVE_OUT, sa, scope, 0, 0, FF4, 0                                   \
        }                                                                                          \
    }

static const struct scsi_command_info commands[SCSI_CMD_COUNT] = {
    [SCSI_CMD_TEST_UNIT_READY] =
        {"TEST UNIT READY", 0x00, -1, 6, SCSI_NO_DATA, SCSI_LENGTH_NONE, NO_LBA, NO_LEN, {0x00}},
    [SCSI_CMD_REQUEST_SENSE] = {"REQUEST SENSE",
                                0x03,
                                -1,
                                6,
                                SCSI_DATA_IN,
                                SCSI_LENGTH_ALLOCATION,
                                NO_LBA,
                                4,
                                1,
                                {0x03, 0x01, 0, 0, 0xff, 0}},
    [SCSI_CMD_READ_6] = {"READ(6)",
                         0x08,
                         -1,
                         6,
                         SCSI_DATA_IN,
                         SCSI_LENGTH_BLOCKS,
                         LBA6,
                         4,
                         1,
                         {0x08, 0x1f, FF2, 0xff, 0}},
    [SCSI_CMD_WRITE_6] = {"WRITE(6)",
                          0x0a,
                          -1,
                          6,
                          SCSI_DATA_OUT,
                          SCSI_LENGTH_BLOCKS,
                          LBA6,
                          4,
                          1,
                          {0x0a, 0x1f, FF2, 0xff, 0}},
    [SCSI_CMD_INQUIRY] = {"INQUIRY",
                          0x12,
                          -1,
                          6,
                          SCSI_DATA_IN,
                          SCSI_LENGTH_ALLOCATION,
                          NO_LBA,
                          3,
                          2,
                          {0x12, 0x01, 0xff, FF2, 0}},
    [SCSI_CMD_MODE_SELECT_6] = {"MODE SELECT(6)",
                                0x15,
                                -1,
                                6,
                                SCSI_DATA_OUT,
                                SCSI_LENGTH_PARAMETERS,
                                NO_LBA,
                                4,
                                1,
                                {0x15, SCSI_CDB_PF | SCSI_CDB_SP, 0, 0, 0xff, 0}},
    [SCSI_CMD_RESERVE_6] =
        {"RESERVE(6)", 0x16, -1, 6, SCSI_NO_DATA, SCSI_LENGTH_NONE, NO_LBA, NO_LEN, {0x16}},
    [SCSI_CMD_RELEASE_6] =
        {"RELEASE(6)", 0x17, -1, 6, SCSI_NO_DATA, SCSI_LENGTH_NONE, NO_LBA, NO_LEN, {0x17}},
    [SCSI_CMD_MODE_SENSE_6] = {"MODE SENSE(6)",
                               0x1a,
                               -1,
                               6,
                               SCSI_DATA_IN,
                               SCSI_LENGTH_ALLOCATION,
                               NO_LBA,
                               4,
                               1,
                               {0x1a, SCSI_CDB_DBD, FF2, 0xff, 0}},
    [SCSI_CMD_START_STOP_UNIT] = {"START STOP UNIT",
                                  0x1b,
                                  -1,
                                  6,
                                  SCSI_NO_DATA,
                                  SCSI_LENGTH_NONE,
                                  NO_LBA,
                                  NO_LEN,
                                  {0x1b, 0x01, 0, 0, 0x05, 0}},
    [SCSI_CMD_SEND_DIAGNOSTIC] = {"SEND DIAGNOSTIC",
                                  0x1d,
                                  -1,
                                  6,
                                  SCSI_NO_DATA,
                                  SCSI_LENGTH_NONE,
                                  NO_LBA,
                                  NO_LEN,
                                  {0x1d, 0x04, 0, 0, 0, 0}},
    [SCSI_CMD_PREVENT_ALLOW] = {"PREVENT ALLOW MEDIUM REMOVAL",
                                0x1e,
                                -1,
                                6,
                                SCSI_NO_DATA,
                                SCSI_LENGTH_NONE,
                                NO_LBA,
                                NO_LEN,
                                {0x1e}},
    [SCSI_CMD_READ_CAPACITY_10] =
        {"READ CAPACITY(10)", 0x25, -1, 10, SCSI_DATA_IN, SCSI_LENGTH_NONE, NO_LBA, NO_LEN, {0x25}},
    [SCSI_CMD_READ_10] = {"READ(10)",
                          0x28,
                          -1,
                          10,
                          SCSI_DATA_IN,
                          SCSI_LENGTH_BLOCKS,
                          LBA10,
                          LEN10,
                          {0x28, RW, USE10}},
    [SCSI_CMD_WRITE_10] = {"WRITE(10)",
                           0x2a,
                           -1,
                           10,
                           SCSI_DATA_OUT,
                           SCSI_LENGTH_BLOCKS,
                           LBA10,
                           LEN10,
                           {0x2a, RW, USE10}},
    [SCSI_CMD_WRITE_AND_VERIFY_10] =
        {"WRITE AND VERIFY(10)",
         0x2e,
         -1,
         10,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN10,
         {0x2e, VERIFY, USE10}},
    [SCSI_CMD_VERIFY_10] =
        {"VERIFY(10)",
         0x2f,
         -1,
         10,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN10,
         {0x2f, VERIFY, USE10}},
    [SCSI_CMD_PREFETCH_10] = {"PRE-FETCH(10)",
                              0x34,
                              -1,
                              10,
                              SCSI_NO_DATA,
                              SCSI_LENGTH_BLOCKS,
                              LBA10,
                              LEN10,
                              {0x34, SCSI_CDB_IMMED, USE10}},
    [SCSI_CMD_SYNCHRONIZE_CACHE_10] =
        {"SYNCHRONIZE CACHE(10)",
         0x35,
         -1,
         10,
         SCSI_NO_DATA,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN10,
         {0x35, SCSI_CDB_IMMED | 0x04, USE10}}, /* 04: SYNC_NV */
    [SCSI_CMD_WRITE_SAME_10] =
        {"WRITE SAME(10)",
         0x41,
         -1,
         10,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN10,
         {0x41, SAME, USE10}},
    [SCSI_CMD_UNMAP] = {"UNMAP",
                        0x42,
                        -1,
                        10,
                        SCSI_DATA_OUT,
                        SCSI_LENGTH_PARAMETERS,
                        NO_LBA,
                        LEN10,
                        {0x42, 0, 0, 0, 0, 0, 0x1f, FF2, 0}},
    [SCSI_CMD_MODE_SELECT_10] =
        {"MODE SELECT(10)",
         0x55,
         -1,
         10,
         SCSI_DATA_OUT,
         SCSI_LENGTH_PARAMETERS,
         NO_LBA,
         LEN10,
         {0x55, SCSI_CDB_PF | SCSI_CDB_SP, 0, 0, 0, 0, 0, FF2, 0}},
    [SCSI_CMD_MODE_SENSE_10] =
        {"MODE SENSE(10)",
         0x5a,
         -1,
         10,
         SCSI_DATA_IN,
         SCSI_LENGTH_ALLOCATION,
         NO_LBA,
         LEN10,
         {0x5a, SCSI_CDB_DBD | SCSI_CDB_LLBAA, FF2, 0, 0, 0, FF2, 0}},
    [SCSI_CMD_PR_READ_KEYS] = PR_IN("PERSISTENT RESERVE IN, READ KEYS", 0),
    [SCSI_CMD_PR_READ_RESERVATION] = PR_IN("PERSISTENT RESERVE IN, READ RESERVATION", 1),
    [SCSI_CMD_PR_REPORT_CAPABILITIES] = PR_IN("PERSISTENT RESERVE IN, REPORT CAPABILITIES", 2),
    [SCSI_CMD_PR_READ_FULL_STATUS] = PR_IN("PERSISTENT RESERVE IN, READ FULL STATUS", 3),
    [SCSI_CMD_PR_REGISTER] = PR_OUT("PERSISTENT RESERVE OUT, REGISTER", 0, 0xff),
    [SCSI_CMD_PR_RESERVE] = PR_OUT("PERSISTENT RESERVE OUT, RESERVE", 1, 0xff),
    [SCSI_CMD_PR_RELEASE] = PR_OUT("PERSISTENT RESERVE OUT, RELEASE", 2, 0xff),
    [SCSI_CMD_PR_CLEAR] = PR_OUT("PERSISTENT RESERVE OUT, CLEAR", 3, 0xff),
    [SCSI_CMD_PR_PREEMPT] = PR_OUT("PERSISTENT RESERVE OUT, PREEMPT", 4, 0xff),
    [SCSI_CMD_PR_PREEMPT_AND_ABORT] = PR_OUT("PERSISTENT RESERVE OUT, PREEMPT AND ABORT", 5, 0xff),
    [SCSI_CMD_PR_REGISTER_AND_IGNORE] =
        PR_OUT("PERSISTENT RESERVE OUT, REGISTER AND IGNORE EXISTING KEY", 6, 0xff),
    [SCSI_CMD_PR_REGISTER_AND_MOVE] = PR_OUT("PERSISTENT RESERVE OUT, REGISTER AND MOVE", 7, 0xff),
    [SCSI_CMD_READ_16] =
        {"READ(16)",
         0x88,
         -1,
         16,
         SCSI_DATA_IN,
         SCSI_LENGTH_BLOCKS,
         LBA16,
         LEN16,
         {0x88, RW, USE16}},
    [SCSI_CMD_COMPARE_AND_WRITE] = {"COMPARE AND WRITE",
                                    0x89,
                                    -1,
                                    16,
                                    SCSI_DATA_OUT,
                                    SCSI_LENGTH_BLOCKS,
                                    LBA16,
                                    LEN_CAW,
                                    {0x89, RW, FF4, FF4, 0, 0, 0, 0xff, 0x1f, 0}},
    [SCSI_CMD_WRITE_16] =
        {"WRITE(16)",
         0x8a,
         -1,
         16,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA16,
         LEN16,
         {0x8a, RW, USE16}},
    [SCSI_CMD_WRITE_AND_VERIFY_16] =
        {"WRITE AND VERIFY(16)",
         0x8e,
         -1,
         16,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA16,
         LEN16,
         {0x8e, VERIFY, USE16}},
    [SCSI_CMD_VERIFY_16] =
        {"VERIFY(16)",
         0x8f,
         -1,
         16,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA16,
         LEN16,
         {0x8f, VERIFY, USE16}},
    [SCSI_CMD_PREFETCH_16] = {"PRE-FETCH(16)",
                              0x90,
                              -1,
                              16,
                              SCSI_NO_DATA,
                              SCSI_LENGTH_BLOCKS,
                              LBA16,
                              LEN16,
                              {0x90, SCSI_CDB_IMMED, USE16}},
    [SCSI_CMD_SYNCHRONIZE_CACHE_16] =
        {"SYNCHRONIZE CACHE(16)",
         0x91,
         -1,
         16,
         SCSI_NO_DATA,
         SCSI_LENGTH_BLOCKS,
         LBA16,
         LEN16,
         {0x91, SCSI_CDB_IMMED | 0x04, USE16}},
    [SCSI_CMD_WRITE_SAME_16] =
        {"WRITE SAME(16)",
         0x93,
         -1,
         16,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA16,
         LEN16,
         {0x93, SAME | SCSI_CDB_NDOB, USE16}},
    [SCSI_CMD_READ_CAPACITY_16] =
        {"READ CAPACITY(16)",
         0x9e,
         SCSI_SA_READ_CAPACITY_16,
         16,
         SCSI_DATA_IN,
         SCSI_LENGTH_ALLOCATION,
         NO_LBA,
         LEN16,
         {0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, FF4, 0, 0}},
    [SCSI_CMD_GET_LBA_STATUS] = {"GET LBA STATUS",
                                 0x9e,
                                 SCSI_SA_GET_LBA_STATUS,
                                 16,
                                 SCSI_DATA_IN,
                                 SCSI_LENGTH_ALLOCATION,
                                 LBA16,
                                 LEN16,
                                 {0x9e, 0x12, FF4, FF4, FF4, 0, 0}},
    [SCSI_CMD_REPORT_LUNS] = {"REPORT LUNS",
                              0xa0,
                              -1,
                              12,
                              SCSI_DATA_IN,
                              SCSI_LENGTH_ALLOCATION,
                              NO_LBA,
                              LEN12,
                              {0xa0, 0, 0xff, 0, 0, 0, FF4, 0, 0}},
    [SCSI_CMD_REPORT_TARGET_PORT_GROUPS] = {"REPORT TARGET PORT GROUPS",
                                            0xa3,
                                            SCSI_SA_REPORT_TARGET_PORT_GROUPS,
                                            12,
                                            SCSI_DATA_IN,
                                            SCSI_LENGTH_ALLOCATION,
                                            NO_LBA,
                                            LEN12,
                                            {0xa3, 0x2a, 0, 0, 0, 0, FF4, 0, 0}},
    [SCSI_CMD_REPORT_SUPPORTED_OPCODES] = {"REPORT SUPPORTED OPERATION CODES",
                                           0xa3,
                                           SCSI_SA_REPORT_SUPPORTED_OPCODES,
                                           12,
                                           SCSI_DATA_IN,
                                           SCSI_LENGTH_ALLOCATION,
                                           NO_LBA,
                                           LEN12,
                                           {0xa3, 0x0c, 0x87, 0xff, FF2, FF4, 0, 0}},
    [SCSI_CMD_REPORT_SUPPORTED_TMF] = {"REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
                                       0xa3,
                                       SCSI_SA_REPORT_SUPPORTED_TMF,
                                       12,
                                       SCSI_DATA_IN,
                                       SCSI_LENGTH_ALLOCATION,
                                       NO_LBA,
                                       LEN12,
                                       {0xa3, 0x0d, 0x80, 0, 0, 0, FF4, 0, 0}},
    [SCSI_CMD_READ_12] =
        {"READ(12)",
         0xa8,
         -1,
         12,
         SCSI_DATA_IN,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN12,
         {0xa8, RW, USE12}},
    [SCSI_CMD_WRITE_12] =
        {"WRITE(12)",
         0xaa,
         -1,
         12,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN12,
         {0xaa, RW, USE12}},
    [SCSI_CMD_WRITE_AND_VERIFY_12] =
        {"WRITE AND VERIFY(12)",
         0xae,
         -1,
         12,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN12,
         {0xae, VERIFY, USE12}},
    [SCSI_CMD_VERIFY_12] =
        {"VERIFY(12)",
         0xaf,
         -1,
         12,
         SCSI_DATA_OUT,
         SCSI_LENGTH_BLOCKS,
         LBA10,
         LEN12,
         {0xaf, VERIFY, USE12}},
};

const struct scsi_command_info *scsi_command_info(enum scsi_command command)
{
    return &commands[command];
}

/* The table is in the order of op codes: the first row with this one or a higher one. */
static int first_row(uint8_t opcode)
{
    int low = 0, high = SCSI_CMD_COUNT;

    while (low < high) {
        int middle = (low + high) / 2;
        if (commands[middle].opcode < opcode)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum scsi_command scsi_command_find(const uint8_t *cdb, size_t n)
{
    enum scsi_command found = SCSI_CMD_NONE;

    for (int i = first_row(cdb[0]); i < SCSI_CMD_COUNT && commands[i].opcode == cdb[0]; i++) {
        int service_action = commands[i].service_action;
        if (service_action < 0 || (n > 1 && (cdb[1] & 0x1f) == service_action))
            return (enum scsi_command)i;
        found = SCSI_CMD_NO_SERVICE;
    }
    return found;
}

static uint64_t load(const uint8_t *p, unsigned size)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < size; i++)
        v = v << 8 | p[i];
    return v;
}

static void store(uint8_t *p, unsigned size, uint64_t v)
{
    for (unsigned i = size; i-- > 0; v >>= 8)
        p[i] = (uint8_t)v;
}

static bool is_6(enum scsi_command command)
{
    return command == SCSI_CMD_READ_6 || command == SCSI_CMD_WRITE_6;
}

/* Where GROUP NUMBER is; 0: nowhere. */
static unsigned group_at(const struct scsi_command_info *info)
{
    if (info->unit == SCSI_LENGTH_BLOCKS && info->size > 6)
        return info->size == 10 ? 6 : info->size == 12 ? 10 : 14;
    return info->opcode == SCSI_UNMAP ? 6 : 0;
}

static bool byte_is_own(const struct scsi_command_info *info, unsigned at)
{
    return (at < info->lba_at || at >= (unsigned)info->lba_at + info->lba_size) &&
           (at < info->length_at || at >= (unsigned)info->length_at + info->length_size);
}

static bool fits(uint64_t v, unsigned bits)
{
    return bits >= 64 || v >> bits == 0;
}

size_t scsi_cdb_build(const struct scsi_cdb *f, uint8_t out[SCSI_CDB_MAX])
{
    const struct scsi_command_info *info = &commands[f->command];
    uint32_t length = is_6(f->command) && f->length == 256 ? 0 : f->length;

    memset(out, 0, SCSI_CDB_MAX);
    if (!fits(f->lba, is_6(f->command) ? 21 : 8u * info->lba_size) ||
        !fits(length, 8u * info->length_size) || (is_6(f->command) && f->length == 0))
        return 0;
    if (byte_is_own(info, 2))
        out[2] = f->byte2;
    if (byte_is_own(info, 3))
        out[3] = f->byte3;
    if (byte_is_own(info, 4))
        out[4] = f->byte4;
    out[0] = info->opcode;
    if (!is_6(f->command))
        out[1] = f->flags;
    if (info->service_action >= 0)
        out[1] = (uint8_t)((f->flags & 0xe0) | info->service_action);
    if (f->command == SCSI_CMD_REPORT_SUPPORTED_OPCODES)
        store_be16(out + 4, f->requested_service_action);
    if (group_at(info))
        out[group_at(info)] = f->group & 0x1f;
    store(out + info->lba_at, info->lba_size, f->lba); /* sizes of 0 store nothing */
    store(out + info->length_at, info->length_size, length);
    return info->size;
}

int scsi_cdb_parse(struct scsi_cdb *f, const uint8_t *cdb, size_t n)
{
    memset(f, 0, sizeof *f);
    f->command = scsi_command_find(cdb, n);
    if (f->command < 0)
        return -1;
    const struct scsi_command_info *info = &commands[f->command];
    if (n < info->size)
        return -1;
    f->lba = load(cdb + info->lba_at, info->lba_size);
    f->length = (uint32_t)load(cdb + info->length_at, info->length_size);
    f->byte2 = byte_is_own(info, 2) ? cdb[2] : 0;
    f->byte3 = byte_is_own(info, 3) ? cdb[3] : 0;
    f->byte4 = byte_is_own(info, 4) ? cdb[4] : 0;
    f->flags = info->service_action >= 0 ? cdb[1] & 0xe0 : cdb[1];
    f->group = group_at(info) ? cdb[group_at(info)] & 0x1f : 0;
    if (f->command == SCSI_CMD_REPORT_SUPPORTED_OPCODES)
        f->requested_service_action = load_be16(cdb + 4);
    if (is_6(f->command)) {
        f->flags = 0;
        f->lba &= 0x1fffff;
        f->length = f->length ? f->length : 256;
    }
    return 0;
}

int scsi_cdb_bad_bit(enum scsi_command command, const uint8_t *cdb, int *bit)
{
    const struct scsi_command_info *info = &commands[command];

    for (unsigned i = 1; i < info->size; i++) {
        uint8_t allowed = info->usage[i];
        if (i == 1 && info->service_action >= 0)
            allowed |= 0x1f; /* it has been looked up with them */
        uint8_t bad = (uint8_t)(cdb[i] & ~allowed);
        if (!bad)
            continue;
        for (*bit = 7; !(bad >> *bit & 1); --*bit)
            continue;
        return (int)i;
    }
    return -1;
}

size_t scsi_cdb_read_write(bool write, uint64_t lba, uint32_t blocks, uint8_t flags,
                           uint8_t out[SCSI_CDB_MAX])
{
    bool small = lba <= UINT32_MAX && blocks <= UINT16_MAX;
    struct scsi_cdb f = {.lba = lba, .length = blocks, .flags = flags};

    if (write)
        f.command = small ? SCSI_CMD_WRITE_10 : SCSI_CMD_WRITE_16;
    else
        f.command = small ? SCSI_CMD_READ_10 : SCSI_CMD_READ_16;
    return scsi_cdb_build(&f, out);
}
