/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "iscsi/keys_int.h"

#define FIELD(member)                                                                              \
    offsetof(struct iscsi_params, member), sizeof(((struct iscsi_params *)0)->member)
#define NO_FIELD 0, 0

enum {
    SEGMENT_MIN = 512,
    SEGMENT_MAX = ISCSI_SEGMENT_MAX,
    BINARY = 2 + 2 * 1024, /* CHAP_C and CHAP_R: 1024 bytes in hex; 12.1.3 */
};

/* clang-format off */
static const struct key_row table[KEY_COUNT] = {
    [KEY_AUTH_METHOD] = {"AuthMethod", TEXT, FIRST_COMMON, IO, CONNECTION, FROM_BOTH,
        SECURITY, 0, 0, 0, NO_FIELD, 0},
    [KEY_CHAP_A] = {"CHAP_A", TEXT, FIRST_COMMON, IO, CONNECTION, FROM_BOTH,
        SECURITY, 0, 0, 0, NO_FIELD, 0},
    [KEY_CHAP_I] = {"CHAP_I", TEXT, DECLARED, IO, CONNECTION, FROM_BOTH,
        SECURITY, 0, 0, 0, NO_FIELD, 0},
    [KEY_CHAP_C] = {"CHAP_C", TEXT, DECLARED, IO, CONNECTION, FROM_BOTH,
        SECURITY, 0, 0, 0, NO_FIELD, BINARY},
    [KEY_CHAP_N] = {"CHAP_N", TEXT, DECLARED, IO, CONNECTION, FROM_BOTH,
        SECURITY, 0, 0, 0, NO_FIELD, 0},
    [KEY_CHAP_R] = {"CHAP_R", TEXT, DECLARED, IO, CONNECTION, FROM_BOTH,
        SECURITY, 0, 0, 0, NO_FIELD, BINARY},
    [KEY_HEADER_DIGEST] = {"HeaderDigest", DIGEST, FIRST_COMMON, IO, CONNECTION, FROM_BOTH,
        0, 0, 1, 0, FIELD(header_digest), 0},
    [KEY_DATA_DIGEST] = {"DataDigest", DIGEST, FIRST_COMMON, IO, CONNECTION, FROM_BOTH,
        0, 0, 1, 0, FIELD(data_digest), 0},
    [KEY_MAX_CONNECTIONS] = {"MaxConnections", NUMBER, MINIMUM, LO, SESSION, FROM_BOTH,
        NORMAL, 1, 65535, 1, FIELD(max_connections), 0},
    [KEY_SEND_TARGETS] = {"SendTargets", TEXT, DECLARED, FFPO, SESSION, FROM_INITIATOR,
        0, 0, 0, 0, NO_FIELD, 0},
    [KEY_TARGET_NAME] = {"TargetName", TEXT, DECLARED, IO, SESSION, FROM_BOTH,
        ANY_STAGE, 0, 0, 0, NO_FIELD, 0},
    [KEY_INITIATOR_NAME] = {"InitiatorName", TEXT, DECLARED, IO, SESSION, FROM_INITIATOR,
        ANY_STAGE, 0, 0, 0, NO_FIELD, 0},
    [KEY_TARGET_ALIAS] = {"TargetAlias", TEXT, DECLARED, ALL, SESSION, FROM_TARGET,
        ANY_STAGE, 0, 0, 0, NO_FIELD, 0},
    [KEY_INITIATOR_ALIAS] = {"InitiatorAlias", TEXT, DECLARED, ALL, SESSION, FROM_INITIATOR,
        ANY_STAGE, 0, 0, 0, NO_FIELD, 0},
    [KEY_TARGET_ADDRESS] = {"TargetAddress", TEXT, DECLARED, ALL, SESSION, FROM_TARGET,
        ANY_STAGE | REPEATABLE, 0, 0, 0, NO_FIELD, 0},
    [KEY_TARGET_PORTAL_GROUP_TAG] = {"TargetPortalGroupTag", TEXT, DECLARED, IO, SESSION,
        FROM_TARGET, ANY_STAGE, 0, 65535, 0, NO_FIELD, 0},
    [KEY_INITIAL_R2T] = {"InitialR2T", BOOLEAN, OR, LO, SESSION, FROM_BOTH,
        NORMAL, 0, 1, 1, FIELD(initial_r2t), 0},
    [KEY_IMMEDIATE_DATA] = {"ImmediateData", BOOLEAN, AND, LO, SESSION, FROM_BOTH,
        NORMAL, 0, 1, 1, FIELD(immediate_data), 0},
    [KEY_MRDSL] = {"MaxRecvDataSegmentLength", NUMBER, DECLARED, ALL, CONNECTION, FROM_BOTH,
        0, SEGMENT_MIN, SEGMENT_MAX, 8192, FIELD(mrdsl_out), 0},
    [KEY_MAX_BURST_LENGTH] = {"MaxBurstLength", NUMBER, MINIMUM, LO, SESSION, FROM_BOTH,
        NORMAL, SEGMENT_MIN, SEGMENT_MAX, 262144, FIELD(max_burst_length), 0},
    [KEY_FIRST_BURST_LENGTH] = {"FirstBurstLength", NUMBER, MINIMUM, LO, SESSION, FROM_BOTH,
        NORMAL | LATE, SEGMENT_MIN, SEGMENT_MAX, 65536, FIELD(first_burst_length), 0},
    [KEY_TIME2WAIT] = {"DefaultTime2Wait", NUMBER, MAXIMUM, LO, SESSION, FROM_BOTH,
        0, 0, 3600, 2, FIELD(default_time2wait), 0},
    [KEY_TIME2RETAIN] = {"DefaultTime2Retain", NUMBER, MINIMUM, LO, SESSION, FROM_BOTH,
        0, 0, 3600, 20, FIELD(default_time2retain), 0},
    [KEY_MAX_OUTSTANDING_R2T] = {"MaxOutstandingR2T", NUMBER, MINIMUM, LO, SESSION, FROM_BOTH,
        NORMAL | LATE, 1, 65535, 1, FIELD(max_outstanding_r2t), 0},
    [KEY_DATA_PDU_IN_ORDER] = {"DataPDUInOrder", BOOLEAN, OR, LO, SESSION, FROM_BOTH,
        NORMAL, 0, 1, 1, FIELD(data_pdu_in_order), 0},
    [KEY_DATA_SEQUENCE_IN_ORDER] = {"DataSequenceInOrder", BOOLEAN, OR, LO, SESSION, FROM_BOTH,
        NORMAL, 0, 1, 1, FIELD(data_sequence_in_order), 0},
    [KEY_ERROR_RECOVERY_LEVEL] = {"ErrorRecoveryLevel", NUMBER, MINIMUM, LO, SESSION, FROM_BOTH,
        0, 0, 2, 0, FIELD(error_recovery_level), 0},
    [KEY_SESSION_TYPE] = {"SessionType", TEXT, DECLARED, LO, SESSION, FROM_INITIATOR,
        ANY_STAGE, 0, 0, 0, NO_FIELD, 0},
    [KEY_TASK_REPORTING] = {"TaskReporting", REPORTING, FIRST_COMMON, LO, SESSION, FROM_BOTH,
        NORMAL | NEWER, 0, 2, 0, FIELD(task_reporting), 0},
    [KEY_PROTOCOL_LEVEL] = {"iSCSIProtocolLevel", NUMBER, MINIMUM, LO, SESSION, FROM_BOTH,
        NORMAL | NEWER, 0, 31, 1, FIELD(protocol_level), 0},
    [KEY_NODE_ARCHITECTURE] = {"X#NodeArchitecture", ARCHITECTURE, DECLARED, LO, SESSION,
        FROM_BOTH, NEWER, 0, 0, 0, NO_FIELD, 0},
    [KEY_OF_MARKER] = {"OFMarker", MARKER, AND, IO, CONNECTION, FROM_BOTH,
        0, 0, 1, 0, NO_FIELD, 0},
    [KEY_IF_MARKER] = {"IFMarker", MARKER, AND, IO, CONNECTION, FROM_BOTH,
        0, 0, 1, 0, NO_FIELD, 0},
    [KEY_OF_MARK_INT] = {"OFMarkInt", MARKER_INTERVAL, MINIMUM, IO, CONNECTION, FROM_BOTH,
        0, 0, 0, 0, NO_FIELD, 0},
    [KEY_IF_MARK_INT] = {"IFMarkInt", MARKER_INTERVAL, MINIMUM, IO, CONNECTION, FROM_BOTH,
        0, 0, 0, 0, NO_FIELD, 0},
};
/* clang-format on */

const struct key_row *keys_row(enum iscsi_key key)
{
    return &table[key];
}

const char *keys_name(enum iscsi_key key)
{
    return table[key].name;
}

enum iscsi_key keys_find(const char *name)
{
    for (unsigned i = 0; i < KEY_COUNT; i++)
        if (strcmp(table[i].name, name) == 0)
            return (enum iscsi_key)i;
    return KEY_UNKNOWN;
}

/* ---- fields: bool, uint8_t, uint32_t or an enum of its size ---- */

_Static_assert(sizeof(bool) == 1, "keys_get() reads booleans as bytes");
_Static_assert(sizeof(enum iscsi_task_reporting) == 4, "keys_get() reads enums as 32 bits");

uint32_t keys_get(const struct key_row *row, const struct iscsi_params *params)
{
    const unsigned char *at = (const unsigned char *)params + row->field;
    uint32_t wide;

    if (row->width == 1)
        return *at;
    memcpy(&wide, at, sizeof(wide));
    return wide;
}

void keys_set(const struct key_row *row, struct iscsi_params *params, uint32_t value)
{
    unsigned char *at = (unsigned char *)params + row->field;

    if (row->width == 1)
        *at = (unsigned char)value;
    else
        memcpy(at, &value, sizeof(value));
}

void iscsi_params_default(struct iscsi_params *params)
{
    memset(params, 0, sizeof(*params));
    for (unsigned i = 0; i < KEY_COUNT; i++)
        if (table[i].width > 0)
            keys_set(&table[i], params, table[i].standard);
    params->mrdsl_in = table[KEY_MRDSL].standard;
}

/* ---- values ---- */

int keys_value(const struct key_row *row, const char *text, uint32_t *value)
{
    static const char *const reporting[] = {"RFC3720", "ResponseFence", "FastAbort"};
    uint64_t number;
    bool yes;

    switch (row->type) {
    case NUMBER:
        if (text_number(text, &number) < 0 || number < row->min || number > row->max)
            return -1;
        *value = (uint32_t)number;
        return 0;
    case BOOLEAN:
    case MARKER:
        if (text_boolean(text, &yes) < 0)
            return -1;
        *value = yes;
        return 0;
    case DIGEST:
        *value = strcmp(text, "CRC32C") == 0;
        return *value || strcmp(text, "None") == 0 ? 0 : -1;
    case REPORTING:
        for (*value = 0; *value < 3; ++*value)
            if (strcmp(text, reporting[*value]) == 0)
                return 0;
        return -1;
    case TEXT:
    case ARCHITECTURE:
    case MARKER_INTERVAL:
        break;
    }
    return -1;
}

/* ---- documentation ---- */

static void describe_value(const struct key_row *row, char *text, size_t size)
{
    static const char *const types[] = {
        [TEXT] = "text",
        [NUMBER] = "",
        [BOOLEAN] = "boolean",
        [DIGEST] = "list: CRC32C, None",
        [REPORTING] = "list: RFC3720, ResponseFence, FastAbort",
        [ARCHITECTURE] = "list",
        [MARKER] = "boolean",
        [MARKER_INTERVAL] = "obsolete",
    };

    if (row->type == NUMBER)
        snprintf(text, size, "%" PRIu32 "..%" PRIu32 " (%" PRIu32 ")", row->min, row->max,
                 row->standard);
    else if (row->type == BOOLEAN)
        snprintf(text, size, "boolean (%s)", row->standard ? "Yes" : "No");
    else
        snprintf(text, size, "%s", types[row->type]);
}

bool keys_describe(unsigned index, char *line, size_t size)
{
    static const char *const results[] = {"declared", "first common", "minimum",
                                          "maximum",  "AND",          "OR"};
    static const char *const uses[] = {"leading login", "login", "login and full feature phase",
                                       "full feature phase"};
    static const char *const senders[] = {"", "initiator", "target", "both"};
    const struct key_row *row;
    char value[64];

    if (index >= KEY_COUNT)
        return false;
    row = &table[index];
    describe_value(row, value, sizeof(value));
    snprintf(line, size, "%s | %s | %s | %s | %s | %s | %s%s%s%s", row->name, value,
             row->type == MARKER || row->type == MARKER_INTERVAL ? "refused" : results[row->result],
             uses[row->use], row->scope == SESSION ? "session" : "connection",
             senders[row->senders], row->flags & SECURITY ? "security stage" : "",
             row->flags & ANY_STAGE ? "any stage" : "",
             row->flags & NORMAL ? "irrelevant in discovery" : "",
             row->flags & REPEATABLE ? ", repeatable" : "");
    return true;
}
