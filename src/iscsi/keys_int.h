/* SPDX-License-Identifier: BSD-2-Clause */
/* One row of the negotiation table. */
#ifndef ISCSI_KEYS_INT_H
#define ISCSI_KEYS_INT_H

#include "iscsi/keys.h"

enum key_type {
    TEXT, /* whatever: the caller's business */
    NUMBER,
    BOOLEAN,
    DIGEST,          /* list: CRC32C, None */
    REPORTING,       /* list: RFC3720, ResponseFence, FastAbort */
    ARCHITECTURE,    /* not looked at */
    MARKER,          /* obsolete, boolean */
    MARKER_INTERVAL, /* obsolete */
};

/* "Result function", 13 */
enum key_result { DECLARED, FIRST_COMMON, MINIMUM, MAXIMUM, AND, OR };

enum key_use { LO, IO, ALL, FFPO };

enum key_scope { SESSION, CONNECTION };

enum {
    FROM_INITIATOR = 1,
    FROM_TARGET = 2,
    FROM_BOTH = 3,
};

enum {
    ANY_STAGE = 1, /* in the security stage too */
    SECURITY = 2,  /* there only */
    NORMAL = 4,    /* Irrelevant in a discovery session */
    NEWER = 8,     /* not in RFC 3720: NotUnderstood and silence are fair answers */
    REPEATABLE = 16,
    LATE = 32, /* the answer depends on other keys of the same turn */
};

struct key_row {
    const char *name;
    enum key_type type;
    enum key_result result;
    enum key_use use;
    enum key_scope scope;
    unsigned senders;
    unsigned flags;
    uint32_t min, max, standard; /* standard: the default */
    uint16_t field, width;       /* in struct iscsi_params; width 0: none */
    uint16_t longest;            /* value, bytes as written; 0: 255 */
};

const struct key_row *keys_row(enum iscsi_key key);

uint32_t keys_get(const struct key_row *row, const struct iscsi_params *params);
void keys_set(const struct key_row *row, struct iscsi_params *params, uint32_t value);

/* The number that stands for a value of the key. -1: it is none of its values. */
int keys_value(const struct key_row *row, const char *text, uint32_t *value);

#endif
