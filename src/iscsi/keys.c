/* SPDX-License-Identifier: BSD-2-Clause */
#include "iscsi/keys.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum key_type {
    NUMBER,
    BOOLEAN,
    DIGEST,
    REPORTING,
    DECLARED_NUMBER,
    IGNORED,
    MARKER,
    MARKER_INTERVAL
};
enum key_result { MINIMUM, MAXIMUM, AND, OR, FIRST_COMMON, DECLARATION };
enum key_use { LEADING, LOGIN, ALWAYS };

enum {
    NORMAL_ONLY = 1, /* Irrelevant in a discovery session */
    NEWER = 2,       /* not in RFC 3720: NotUnderstood is a fair answer */
};

struct key {
    const char *name;
    enum key_type type;
    enum key_result result;
    enum key_use use;
    unsigned flags;
    uint32_t min, max, standard; /* standard: the default */
    uint16_t field, width;       /* in struct iscsi_params */
};

#define FIELD(member)                                                                              \
    offsetof(struct iscsi_params, member), sizeof(((struct iscsi_params *)0)->member)

enum { SEGMENT_MIN = 512, WIDE = ISCSI_SEGMENT_MAX };

/* conformance.md 1.1 as data. */
static const struct key table[] = {
    {"HeaderDigest", DIGEST, FIRST_COMMON, LOGIN, 0, 0, 1, 0, FIELD(header_digest)},
    {"DataDigest", DIGEST, FIRST_COMMON, LOGIN, 0, 0, 1, 0, FIELD(data_digest)},
    {"MaxConnections", NUMBER, MINIMUM, LEADING, NORMAL_ONLY, 1, 65535, 1, FIELD(max_connections)},
    {"InitialR2T", BOOLEAN, OR, LEADING, NORMAL_ONLY, 0, 1, 1, FIELD(initial_r2t)},
    {"ImmediateData", BOOLEAN, AND, LEADING, NORMAL_ONLY, 0, 1, 1, FIELD(immediate_data)},
    {"MaxRecvDataSegmentLength", DECLARED_NUMBER, DECLARATION, ALWAYS, 0, SEGMENT_MIN, WIDE, 8192,
     FIELD(mrdsl_out)},
    {"MaxBurstLength", NUMBER, MINIMUM, LEADING, NORMAL_ONLY, SEGMENT_MIN, WIDE, 262144,
     FIELD(max_burst_length)},
    {"FirstBurstLength", NUMBER, MINIMUM, LEADING, NORMAL_ONLY, SEGMENT_MIN, WIDE, 65536,
     FIELD(first_burst_length)},
    {"DefaultTime2Wait", NUMBER, MAXIMUM, LEADING, 0, 0, 3600, 2, FIELD(default_time2wait)},
    {"DefaultTime2Retain", NUMBER, MINIMUM, LEADING, 0, 0, 3600, 20, FIELD(default_time2retain)},
    {"MaxOutstandingR2T", NUMBER, MINIMUM, LEADING, NORMAL_ONLY, 1, 65535, 1,
     FIELD(max_outstanding_r2t)},
    {"DataPDUInOrder", BOOLEAN, OR, LEADING, NORMAL_ONLY, 0, 1, 1, FIELD(data_pdu_in_order)},
    {"DataSequenceInOrder", BOOLEAN, OR, LEADING, NORMAL_ONLY, 0, 1, 1,
     FIELD(data_sequence_in_order)},
    {"ErrorRecoveryLevel", NUMBER, MINIMUM, LEADING, 0, 0, 2, 0, FIELD(error_recovery_level)},
    {"TaskReporting", REPORTING, FIRST_COMMON, LEADING, NORMAL_ONLY | NEWER, 0, 2, 0,
     FIELD(task_reporting)},
    {"iSCSIProtocolLevel", NUMBER, MINIMUM, LEADING, NORMAL_ONLY | NEWER, 0, 31, 1,
     FIELD(protocol_level)},
    {"X#NodeArchitecture", IGNORED, DECLARATION, LEADING, NEWER, 0, 0, 0, 0, 0},
    {"OFMarker", MARKER, AND, LOGIN, 0, 0, 1, 0, 0, 0},
    {"IFMarker", MARKER, AND, LOGIN, 0, 0, 1, 0, 0, 0},
    {"OFMarkInt", MARKER_INTERVAL, MINIMUM, LOGIN, 0, 0, 0, 0, 0, 0},
    {"IFMarkInt", MARKER_INTERVAL, MINIMUM, LOGIN, 0, 0, 0, 0, 0, 0},
};

enum { ROWS = sizeof(table) / sizeof(*table), LIST_ITEM = 32 };

static const char *const reporting[] = {"RFC3720", "ResponseFence", "FastAbort"};

int keys_fail(struct keys_error *err, uint16_t status, const char *fmt, ...)
{
    va_list args;

    err->status = status;
    va_start(args, fmt);
    vsnprintf(err->sentence, sizeof(err->sentence), fmt, args);
    va_end(args);
    return -1;
}

/* ---- fields ---- */

static uint32_t get(const struct key *key, const struct iscsi_params *params)
{
    const unsigned char *at = (const unsigned char *)params + key->field;
    uint32_t wide;

    if (key->width == 1)
        return *at;
    memcpy(&wide, at, sizeof(wide));
    return wide;
}

static void set(const struct key *key, struct iscsi_params *params, uint32_t value)
{
    unsigned char *at = (unsigned char *)params + key->field;

    if (key->width == 1)
        *at = (unsigned char)value;
    else
        memcpy(at, &value, sizeof(value));
}

void iscsi_params_default(struct iscsi_params *params)
{
    memset(params, 0, sizeof(*params));
    for (unsigned i = 0; i < ROWS; i++)
        if (table[i].width > 0)
            set(&table[i], params, table[i].standard);
    params->mrdsl_in = ISCSI_LOGIN_MRDSL;
}

void iscsi_wishes_default(struct iscsi_wishes *wishes)
{
    memset(wishes, 0, sizeof(*wishes));
    iscsi_params_default(&wishes->params);
    wishes->params.mrdsl_in = 256 << 10;
    wishes->params.max_burst_length = 1 << 20;
    wishes->params.first_burst_length = 256 << 10;
    wishes->params.initial_r2t = false;
    wishes->params.max_outstanding_r2t = 8;
    wishes->params.default_time2wait = 2;
    wishes->params.default_time2retain = 20;
    wishes->params.protocol_level = 2;
    wishes->header_digest = ISCSI_DIGEST_PREFER_NONE;
    wishes->data_digest = ISCSI_DIGEST_PREFER_NONE;
}

/* ---- what we say ---- */

static const char *digest_offer(enum iscsi_digest_wish wish)
{
    static const char *const offers[] = {"None", "None,CRC32C", "CRC32C,None", "CRC32C"};

    return offers[wish];
}

static enum iscsi_digest_wish digest_wish(const struct keys *k, const struct key *key)
{
    return strcmp(key->name, "HeaderDigest") == 0 ? k->wishes.header_digest : k->wishes.data_digest;
}

static const char *reporting_offer(enum iscsi_task_reporting wish)
{
    return wish == ISCSI_REPORT_FAST_ABORT ? "FastAbort,ResponseFence,RFC3720"
                                           : "ResponseFence,RFC3720";
}

/* A connection offers what belongs to its session only if it is the first one. */
static bool offered_here(const struct keys *k, const struct key *key)
{
    if (key->type == DECLARED_NUMBER)
        return true;
    if (!k->initiator || key->type == IGNORED || key->type == MARKER ||
        key->type == MARKER_INTERVAL || k->ffp)
        return false;
    if ((k->discovery && (key->flags & NORMAL_ONLY)) || (!k->leading && key->use == LEADING))
        return false;
    if (strcmp(key->name, "ErrorRecoveryLevel") == 0 && k->discovery)
        return false;
    /* Older targets have not heard of these: no need to bother them with a default. */
    return !(key->flags & NEWER) || get(key, &k->wishes.params) != key->standard;
}

void keys_offer(struct keys *k, struct text_writer *w)
{
    for (unsigned i = 0; i < ROWS; i++) {
        const struct key *key = &table[i];

        if ((k->offered & 1u << i) || !offered_here(k, key))
            continue;
        k->offered |= 1u << i;
        switch (key->type) {
        case DIGEST:
            text_put(w, key->name, digest_offer(digest_wish(k, key)));
            break;
        case REPORTING:
            text_put(w, key->name, reporting_offer(k->wishes.params.task_reporting));
            break;
        case BOOLEAN:
            text_put_boolean(w, key->name, get(key, &k->wishes.params));
            break;
        case DECLARED_NUMBER:
            text_put_number(w, key->name, k->wishes.params.mrdsl_in);
            k->result.mrdsl_in = k->wishes.params.mrdsl_in;
            break;
        default:
            text_put_number(w, key->name, get(key, &k->wishes.params));
        }
    }
}

void keys_begin(struct keys *k, bool initiator, bool discovery, const struct iscsi_wishes *wishes,
                const struct iscsi_params *base)
{
    memset(k, 0, sizeof(*k));
    k->initiator = initiator;
    k->discovery = discovery;
    k->leading = base == NULL;
    k->wishes = *wishes;
    iscsi_params_default(&k->result);
    if (base) {
        k->result = *base;
        k->result.header_digest = k->result.data_digest = false;
        k->result.mrdsl_in = k->result.mrdsl_out = ISCSI_LOGIN_MRDSL;
    }
    k->result.discovery = discovery;
}

void keys_begin_text(struct keys *k, bool initiator, const struct iscsi_params *current)
{
    memset(k, 0, sizeof(*k));
    k->initiator = initiator;
    k->discovery = current->discovery;
    k->ffp = true;
    k->wishes.params = *current;
    k->result = *current;
}

/* ---- what the peer says ---- */

static bool in_list(const char *list, const char *value)
{
    char item[LIST_ITEM];

    while (text_list_next(&list, item, sizeof(item)))
        if (strcmp(item, value) == 0)
            return true;
    return false;
}

/* The number that stands for a value of the key. -1: it is none of its values. */
static int value_of(const struct key *key, const char *text, uint32_t *value)
{
    uint64_t number;
    bool yes;

    switch (key->type) {
    case NUMBER:
    case DECLARED_NUMBER:
        if (text_number(text, &number) < 0 || number < key->min || number > key->max)
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
        for (uint32_t i = 0; i < 3; i++)
            if (strcmp(text, reporting[i]) == 0) {
                *value = i;
                return 0;
            }
        return -1;
    default:
        return -1;
    }
}

static bool reserved_word(const char *value)
{
    return strcmp(value, "Reject") == 0 || strcmp(value, "Irrelevant") == 0 ||
           strcmp(value, "NotUnderstood") == 0;
}

/* The peer declined to negotiate: the default stays, unless we cannot live with it. */
static int take_refusal(const struct keys *k, const struct key *key, const char *word,
                        struct keys_error *err)
{
    if (strcmp(word, "NotUnderstood") == 0 && !(key->flags & NEWER))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR,
                         "the peer says that it does not understand the standard key %s",
                         key->name);
    if (key->type == DIGEST && digest_wish(k, key) == ISCSI_DIGEST_REQUIRE)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR,
                         "the peer refuses %s=CRC32C, which is required here; allow None, or "
                         "switch digests on at the other side",
                         key->name);
    return 0;
}

static bool answer_fits(const struct keys *k, const struct key *key, uint32_t answer,
                        const char *text)
{
    uint32_t offer = get(key, &k->wishes.params);

    switch (key->result) {
    case MINIMUM:
        return answer <= offer;
    case MAXIMUM:
        return answer >= offer;
    case AND:
        return !answer || offer;
    case OR:
        return answer || !offer;
    case FIRST_COMMON:
        return in_list(key->type == DIGEST ? digest_offer(digest_wish(k, key))
                                           : reporting_offer(k->wishes.params.task_reporting),
                       text);
    default:
        return true;
    }
}

/* The peer's answer to what we offered (B-23). */
static int take_answer(struct keys *k, const struct key *key, const char *text,
                       struct keys_error *err)
{
    uint32_t answer;

    if (reserved_word(text))
        return take_refusal(k, key, text, err);
    if (value_of(key, text, &answer) < 0)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, "%s=%.60s is no value of that key",
                         key->name, text);
    if (!answer_fits(k, key, answer, text))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR,
                         "the answer %s=%.60s is outside of what was offered", key->name, text);
    set(key, &k->result, answer);
    return 0;
}

/* The first item of the peer's list that we agree to; NULL: none. */
static const char *first_common(const struct keys *k, const struct key *key, const char *list,
                                char item[LIST_ITEM])
{
    uint32_t value;

    while (text_list_next(&list, item, LIST_ITEM)) {
        if (value_of(key, item, &value) < 0)
            continue;
        if (key->type == DIGEST && in_list(digest_offer(digest_wish(k, key)), item))
            return item;
        if (key->type == REPORTING && value <= (uint32_t)k->wishes.params.task_reporting)
            return item;
    }
    return NULL;
}

static uint32_t combine(const struct keys *k, const struct key *key, uint32_t offer)
{
    uint32_t ours = get(key, &k->wishes.params);

    switch (key->result) {
    case MINIMUM:
        return offer < ours ? offer : ours;
    case MAXIMUM:
        return offer > ours ? offer : ours;
    case AND:
        return offer && ours;
    default:
        return offer || ours;
    }
}

/* Answers an offer of the peer. */
static int answer_offer(struct keys *k, const struct key *key, const char *text,
                        struct text_writer *w, struct keys_error *err)
{
    char item[LIST_ITEM];
    uint32_t value = 0;
    const char *choice;

    if (reserved_word(text) || (strcmp(text, "None") == 0 && key->result != FIRST_COMMON))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, "%s=%s is no proposal", key->name, text);
    if (k->discovery && (key->flags & NORMAL_ONLY)) {
        text_put(w, key->name, "Irrelevant");
        return 0;
    }
    if (key->result == FIRST_COMMON) {
        choice = first_common(k, key, text, item);
        if (choice && value_of(key, choice, &value) == 0)
            set(key, &k->result, value);
        text_put(w, key->name, choice ? choice : "Reject");
        return 0;
    }
    if (key->type == MARKER_INTERVAL || value_of(key, text, &value) < 0) {
        text_put(w, key->name, "Reject");
        return 0;
    }
    if (key->type == MARKER) {
        text_put_boolean(w, key->name, false);
        return 0;
    }
    value = combine(k, key, value);
    set(key, &k->result, value);
    if (key->type == BOOLEAN)
        text_put_boolean(w, key->name, value);
    else
        text_put_number(w, key->name, value);
    return 0;
}

static int take_declaration(struct keys *k, const struct key *key, const char *text,
                            struct text_writer *w, struct keys_error *err)
{
    uint32_t value;

    (void)w;
    if (key->type == IGNORED)
        return 0;
    if (value_of(key, text, &value) < 0)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR,
                         "%s=%.60s is not a number from %" PRIu32 " to %" PRIu32, key->name, text,
                         key->min, key->max);
    set(key, &k->result, value);
    return 0;
}

static const struct key *find(const char *name)
{
    for (unsigned i = 0; i < ROWS; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

bool keys_standard(const char *name)
{
    return find(name) != NULL;
}

int keys_receive(struct keys *k, const struct text_pair *pair, struct text_writer *w,
                 struct keys_error *err)
{
    const struct key *key = find(pair->key);
    uint32_t bit;

    if (pair->value_length > ISCSI_VALUE_MAX)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR,
                         "the value of %s is longer than %d bytes", pair->key, ISCSI_VALUE_MAX);
    if (!key) {
        /* Their refusal of a key of ours that nobody knows is no offer. */
        if (!reserved_word(pair->value))
            text_put(w, pair->key, "NotUnderstood");
        return 0;
    }
    bit = 1u << (key - table);
    if (k->received & bit)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, "the key %s came twice", key->name);
    k->received |= bit;
    if (key->result == DECLARATION)
        return take_declaration(k, key, pair->value, w, err);
    if (k->offered & bit)
        return take_answer(k, key, pair->value, err);
    if (k->ffp || (key->use == LEADING && !k->leading))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR,
                         k->ffp ? "the key %s cannot be changed in full feature phase"
                                : "the key %s belongs to the first login of a session",
                         key->name);
    return answer_offer(k, key, pair->value, w, err);
}

/* ---- the end ---- */

/* Silence means agreement where the result was decided by the offer alone (6.2.2). */
static bool silence_agrees(const struct keys *k, const struct key *key)
{
    uint32_t offer = get(key, &k->wishes.params);

    return key->type == BOOLEAN && ((key->result == AND && !offer) || (key->result == OR && offer));
}

int keys_finish(struct keys *k, struct keys_error *err)
{
    struct iscsi_params *p = &k->result;

    for (unsigned i = 0; i < ROWS; i++) {
        const struct key *key = &table[i];

        if (!(k->offered & 1u << i) || (k->received & 1u << i) || key->result == DECLARATION)
            continue;
        if (!silence_agrees(k, key))
            return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, "the peer did not answer the key %s",
                             key->name);
        set(key, p, get(key, &k->wishes.params));
    }
    if (p->first_burst_length > p->max_burst_length)
        p->first_burst_length = p->max_burst_length;
    if (p->error_recovery_level > 0 && p->data_sequence_in_order)
        p->max_outstanding_r2t = 1;
    return 0;
}

bool keys_describe(unsigned index, char *line, size_t size)
{
    static const char *const results[] = {"minimum", "maximum",      "AND",
                                          "OR",      "first common", "declared"};
    static const char *const uses[] = {"leading login", "login", "login and full feature phase"};
    const struct key *key;

    if (index >= ROWS)
        return false;
    key = &table[index];
    snprintf(line, size, "%s: %s, %s%s", key->name, results[key->result], uses[key->use],
             key->flags & NORMAL_ONLY ? ", not in discovery" : "");
    return true;
}
