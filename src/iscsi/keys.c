/* SPDX-License-Identifier: BSD-2-Clause */
#include "iscsi/keys.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "iscsi/keys_int.h"

enum { LIST_ITEM = 32, SHOWN = 60 /* characters of a peer's value in a sentence */ };

static uint64_t bit(enum iscsi_key key)
{
    return (uint64_t)1 << key;
}

int keys_fail(struct keys_error *err, uint16_t status, const char *key, const char *fmt, ...)
{
    va_list args;

    err->status = status;
    snprintf(err->key, sizeof(err->key), "%s", key);
    va_start(args, fmt);
    vsnprintf(err->sentence, sizeof(err->sentence), fmt, args);
    va_end(args);
    text_make_printable(err->sentence);
    return -1;
}

/* ---- beginning ---- */

void iscsi_wishes_default(struct iscsi_wishes *wishes)
{
    memset(wishes, 0, sizeof(*wishes));
    iscsi_params_default(&wishes->params);
    wishes->params.mrdsl_in = 256 << 10;
    wishes->params.max_burst_length = 1 << 20;
    wishes->params.first_burst_length = 256 << 10;
    wishes->params.initial_r2t = false;
    wishes->params.max_outstanding_r2t = 8;
    wishes->params.protocol_level = 2;
    wishes->params.task_reporting = ISCSI_REPORT_RESPONSE_FENCE;
    wishes->header_digest = ISCSI_DIGEST_PREFER_NONE;
    wishes->data_digest = ISCSI_DIGEST_PREFER_NONE;
}

/* An offer or answer outside of a key's range would be our own protocol error. */
static void reconcile(struct iscsi_wishes *wishes)
{
    struct iscsi_params *p = &wishes->params;

    for (unsigned i = 0; i < KEY_COUNT; i++) {
        const struct key_row *row = keys_row((enum iscsi_key)i);
        uint32_t value;

        if (row->width == 0 || i == KEY_MRDSL)
            continue;
        value = keys_get(row, p);
        keys_set(row, p, value < row->min ? row->min : value > row->max ? row->max : value);
    }
    if (p->mrdsl_in < keys_row(KEY_MRDSL)->min)
        p->mrdsl_in = keys_row(KEY_MRDSL)->min;
    if (p->mrdsl_in > keys_row(KEY_MRDSL)->max)
        p->mrdsl_in = keys_row(KEY_MRDSL)->max;
    if (p->first_burst_length > p->max_burst_length)
        p->first_burst_length = p->max_burst_length;
    if (p->error_recovery_level > 0 && p->data_sequence_in_order)
        p->max_outstanding_r2t = 1;
}

void keys_begin(struct keys *k, bool initiator, bool discovery, const struct iscsi_wishes *wishes,
                const struct iscsi_params *base)
{
    memset(k, 0, sizeof(*k));
    k->initiator = initiator;
    k->discovery = discovery;
    k->leading = base == NULL;
    k->stage = ISCSI_STAGE_SECURITY;
    k->wishes = *wishes;
    reconcile(&k->wishes);
    iscsi_params_default(&k->result);
    if (base) {
        k->result = *base;
        k->result.header_digest = k->result.data_digest = false;
        k->result.mrdsl_in = k->result.mrdsl_out = ISCSI_LOGIN_MRDSL;
    }
    k->result.discovery = discovery;
}

void keys_begin_text(struct keys *k, bool initiator, const struct iscsi_params *current,
                     uint32_t mrdsl_in)
{
    memset(k, 0, sizeof(*k));
    k->initiator = initiator;
    k->discovery = current->discovery;
    k->stage = ISCSI_STAGE_FULL_FEATURE;
    k->wishes.params = *current;
    k->result = *current;
    if (mrdsl_in == 0) {
        k->offered = bit(KEY_MRDSL);
    } else {
        k->wishes.params.mrdsl_in = mrdsl_in;
        reconcile(&k->wishes);
    }
}

/* ---- what we say first ---- */

static const char *digest_list(const struct keys *k, enum iscsi_key key)
{
    static const char *const lists[] = {"None", "None,CRC32C", "CRC32C,None", "CRC32C"};

    return lists[key == KEY_HEADER_DIGEST ? k->wishes.header_digest : k->wishes.data_digest];
}

static bool digest_required(const struct keys *k, enum iscsi_key key)
{
    return keys_row(key)->type == DIGEST && strcmp(digest_list(k, key), "CRC32C") == 0;
}

/* Offers contain at least the first two (13.23). */
static const char *reporting_list(const struct keys *k)
{
    return k->wishes.params.task_reporting == ISCSI_REPORT_FAST_ABORT
               ? "FastAbort,ResponseFence,RFC3720"
               : "ResponseFence,RFC3720";
}

static bool offered_by_initiator(const struct keys *k, const struct key_row *row)
{
    if (row->type == TEXT || row->type == ARCHITECTURE || row->type == MARKER ||
        row->type == MARKER_INTERVAL || k->stage == ISCSI_STAGE_FULL_FEATURE)
        return false;
    /* Some targets mind keys of normal sessions in a discovery session, relevant or not. */
    if (row->use == LO && (k->discovery || !k->leading))
        return false;
    /* Older targets have not heard of these: no need to bother them with a default. */
    return !(row->flags & NEWER) ||
           (!k->wishes.plain && keys_get(row, &k->wishes.params) != row->standard);
}

static bool offered_here(const struct keys *k, enum iscsi_key key)
{
    if (k->offered & bit(key))
        return false;
    if (key == KEY_MRDSL)
        return true;
    if (k->received & bit(key))
        return false;
    return k->initiator ? offered_by_initiator(k, keys_row(key))
                        : k->stage == ISCSI_STAGE_OPERATIONAL && digest_required(k, key);
}

static void offer(struct keys *k, enum iscsi_key key, struct text_writer *w)
{
    const struct key_row *row = keys_row(key);

    k->offered |= bit(key);
    if (key == KEY_MRDSL) {
        k->result.mrdsl_in = k->wishes.params.mrdsl_in;
        text_put_number(w, row->name, k->wishes.params.mrdsl_in);
    } else if (row->type == DIGEST) {
        text_put(w, row->name, digest_list(k, key));
    } else if (row->type == REPORTING) {
        text_put(w, row->name, reporting_list(k));
    } else if (row->type == BOOLEAN) {
        text_put_boolean(w, row->name, keys_get(row, &k->wishes.params));
    } else {
        text_put_number(w, row->name, keys_get(row, &k->wishes.params));
    }
}

/* ---- answers to what the peer offers ---- */

static uint32_t combine(const struct keys *k, enum iscsi_key key, uint32_t theirs)
{
    const struct key_row *row = keys_row(key);
    uint32_t ours = keys_get(row, &k->wishes.params);

    if (key == KEY_ERROR_RECOVERY_LEVEL && k->discovery)
        ours = 0;
    switch (row->result) {
    case MAXIMUM:
        return theirs > ours ? theirs : ours;
    case AND:
        return theirs && ours;
    case OR:
        return theirs || ours;
    default:
        return theirs < ours ? theirs : ours;
    }
}

static void answer(struct keys *k, enum iscsi_key key, uint32_t value, struct text_writer *w)
{
    const struct key_row *row = keys_row(key);

    keys_set(row, &k->result, value);
    if (row->type == BOOLEAN)
        text_put_boolean(w, row->name, value);
    else
        text_put_number(w, row->name, value);
}

/* The first burst is within the burst; recovery in order wants one R2T (13.14, 13.17): both are
 * known when the turn is over. */
static void answer_postponed(struct keys *k, enum iscsi_key key, struct text_writer *w)
{
    const struct iscsi_params *p = &k->result;
    uint32_t value = combine(k, key, k->postponed_value[key == KEY_FIRST_BURST_LENGTH]);

    if (key == KEY_FIRST_BURST_LENGTH && value > p->max_burst_length)
        value = p->max_burst_length;
    if (key == KEY_MAX_OUTSTANDING_R2T && p->error_recovery_level > 0 && p->data_sequence_in_order)
        value = 1;
    k->postponed &= ~bit(key);
    answer(k, key, value, w);
}

void keys_offer(struct keys *k, struct text_writer *w)
{
    for (unsigned i = 0; i < KEY_COUNT; i++)
        if (k->postponed & bit((enum iscsi_key)i))
            answer_postponed(k, (enum iscsi_key)i, w);
    for (unsigned i = 0; i < KEY_COUNT; i++)
        if (offered_here(k, (enum iscsi_key)i))
            offer(k, (enum iscsi_key)i, w);
}

bool keys_unanswered(const struct keys *k)
{
    return k->offered & ~k->received & ~bit(KEY_MRDSL);
}

static bool in_list(const char *list, const char *value)
{
    char item[LIST_ITEM];

    while (text_list_next(&list, item, sizeof(item)))
        if (item[0] && strcmp(item, value) == 0)
            return true;
    return false;
}

static void answer_list(struct keys *k, enum iscsi_key key, const char *list, struct text_writer *w)
{
    const struct key_row *row = keys_row(key);
    char item[LIST_ITEM];
    uint32_t value;

    while (text_list_next(&list, item, sizeof(item))) {
        if (keys_value(row, item, &value) < 0)
            continue;
        if (row->type == DIGEST ? in_list(digest_list(k, key), item)
                                : value <= (uint32_t)k->wishes.params.task_reporting) {
            keys_set(row, &k->result, value);
            text_put(w, row->name, item);
            return;
        }
    }
    text_put(w, row->name, "Reject");
}

static bool reserved_word(const char *value)
{
    return strcmp(value, "Reject") == 0 || strcmp(value, "Irrelevant") == 0 ||
           strcmp(value, "NotUnderstood") == 0;
}

static int answer_offer(struct keys *k, enum iscsi_key key, const char *text, struct text_writer *w,
                        struct keys_error *err)
{
    const struct key_row *row = keys_row(key);
    uint32_t value = 0;

    if (reserved_word(text) || (strcmp(text, "None") == 0 && row->result != FIRST_COMMON))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name,
                         "%s=%s is an answer, but nothing was asked", row->name, text);
    if (k->discovery && (row->flags & NORMAL))
        text_put(w, row->name, "Irrelevant");
    else if (row->result == FIRST_COMMON)
        answer_list(k, key, text, w);
    else if (keys_value(row, text, &value) < 0)
        text_put(w, row->name, "Reject"); /* the obsolete intervals too (13.25) */
    else if (row->type == MARKER)
        text_put_boolean(w, row->name, false);
    else if (row->flags & LATE) {
        k->postponed |= bit(key);
        k->postponed_value[key == KEY_FIRST_BURST_LENGTH] = value;
    } else
        answer(k, key, combine(k, key, value), w);
    return 0;
}

/* ---- answers to what we offered ---- */

/* The peer declined: the default stays, unless we cannot live with it. */
static int take_refusal(const struct keys *k, enum iscsi_key key, const char *word,
                        struct keys_error *err)
{
    const char *name = keys_name(key);

    if (strcmp(word, "NotUnderstood") == 0 && !(keys_row(key)->flags & NEWER))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, name,
                         "the peer says that it does not understand %s, which every iSCSI node "
                         "must; its software is faulty",
                         name);
    if (digest_required(k, key))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, name,
                         "the peer refuses %s=CRC32C, which is required here; allow None, or "
                         "switch digests on at the other side",
                         name);
    return 0;
}

static bool admissible(const struct keys *k, enum iscsi_key key, uint32_t value, const char *text)
{
    const struct key_row *row = keys_row(key);
    uint32_t ours = keys_get(row, &k->wishes.params);

    switch (row->result) {
    case MINIMUM:
        return value <= ours;
    case MAXIMUM:
        return value >= ours;
    case AND:
        return !value || ours;
    case OR:
        return value || !ours;
    case FIRST_COMMON:
        return in_list(row->type == DIGEST ? digest_list(k, key) : reporting_list(k), text);
    case DECLARED:
        break;
    }
    return true;
}

/* [B-23] */
static int take_answer(struct keys *k, enum iscsi_key key, const char *text, struct keys_error *err)
{
    const struct key_row *row = keys_row(key);
    uint32_t value;

    if (reserved_word(text))
        return take_refusal(k, key, text, err);
    if (keys_value(row, text, &value) < 0)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name, "%s has no value \"%.*s\"",
                         row->name, SHOWN, text);
    if (!admissible(k, key, value, text))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name,
                         "the answer %s=%.*s is outside of what was offered", row->name, SHOWN,
                         text);
    keys_set(row, &k->result, value);
    return 0;
}

static int take_declaration(struct keys *k, enum iscsi_key key, const char *text,
                            struct keys_error *err)
{
    const struct key_row *row = keys_row(key);
    uint32_t value;

    if (row->type == ARCHITECTURE)
        return 0;
    if (strcmp(text, "NotUnderstood") == 0 && (k->offered & bit(key)))
        return take_refusal(k, key, text, err);
    if (keys_value(row, text, &value) < 0)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name,
                         "%s=%.*s is not a number from %" PRIu32 " to %" PRIu32, row->name, SHOWN,
                         text, row->min, row->max);
    keys_set(row, &k->result, value);
    return 0;
}

/* ---- what may come ---- */

/* TargetName is the one key whose use depends on the sender (13.4). */
static enum key_use use_of(const struct keys *k, enum iscsi_key key)
{
    return key == KEY_TARGET_NAME && k->initiator ? FFPO : keys_row(key)->use;
}

static bool stage_fits(const struct keys *k, enum iscsi_key key)
{
    const struct key_row *row = keys_row(key);
    enum key_use use = use_of(k, key);

    switch (k->stage) {
    case ISCSI_STAGE_SECURITY:
        return use != FFPO && (row->flags & (SECURITY | ANY_STAGE));
    case ISCSI_STAGE_OPERATIONAL:
        return use != FFPO && !(row->flags & SECURITY);
    default:
        return use == ALL || use == FFPO;
    }
}

static bool repeatable(const struct keys *k, enum iscsi_key key)
{
    return (keys_row(key)->flags & REPEATABLE) || (key == KEY_TARGET_NAME && k->initiator);
}

static int admit(struct keys *k, enum iscsi_key key, const struct text_pair *pair,
                 struct keys_error *err)
{
    static const char *const stages[] = {"the security stage of a login",
                                         "the operational stage of a login", "",
                                         "the full feature phase"};
    const struct key_row *row = keys_row(key);
    size_t longest = row->longest ? row->longest : ISCSI_VALUE_MAX;

    if (pair->value_length > longest)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name,
                         "the value of %s is longer than %zu bytes", row->name, longest);
    if (!(row->senders & (k->initiator ? FROM_TARGET : FROM_INITIATOR)))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name, "%s is not for %s to send",
                         row->name, k->initiator ? "a target" : "an initiator");
    if (!stage_fits(k, key))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name, "%s does not belong in %s",
                         row->name, stages[k->stage]);
    if ((k->received & bit(key)) && !repeatable(k, key))
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name, "%s came twice", row->name);
    /* SessionType on further connections is common and harmless. */
    if (row->use == LO && !k->leading && row->result != DECLARED)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name,
                         "%s belongs to the first login of a session", row->name);
    k->received |= bit(key);
    return 0;
}

static int receive_unknown(const struct text_pair *pair, struct text_writer *w,
                           struct keys_error *err)
{
    if (pair->value_length > ISCSI_VALUE_MAX)
        return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, pair->key,
                         "the value of %s is longer than %d bytes", pair->key, ISCSI_VALUE_MAX);
    /* The refusal of a vendor key of ours is no offer. */
    if (!reserved_word(pair->value))
        text_put(w, pair->key, "NotUnderstood");
    return 0;
}

int keys_receive(struct keys *k, const struct text_pair *pair, enum iscsi_key *key,
                 struct text_writer *w, struct keys_error *err)
{
    *key = keys_find(pair->key);
    if (*key == KEY_UNKNOWN)
        return receive_unknown(pair, w, err);
    /* Declarations out of place are common in targets, and change nothing here. */
    if (k->initiator && k->stage != ISCSI_STAGE_FULL_FEATURE &&
        (*key == KEY_TARGET_NAME || *key == KEY_INITIATOR_NAME || *key == KEY_SESSION_TYPE))
        return 0;
    if (admit(k, *key, pair, err) < 0)
        return -1;
    if (keys_row(*key)->type == TEXT)
        return 1;
    if (keys_row(*key)->result == DECLARED)
        return take_declaration(k, *key, pair->value, err);
    if (k->offered & bit(*key))
        return take_answer(k, *key, pair->value, err);
    return answer_offer(k, *key, pair->value, w, err);
}

/* ---- the end ---- */

/* The offer decided the result by itself (6.2.2), or the peer has never heard of the key. */
static bool silence_agrees(const struct keys *k, enum iscsi_key key)
{
    const struct key_row *row = keys_row(key);
    uint32_t ours = keys_get(row, &k->wishes.params);

    return (row->flags & NEWER) ||
           (row->type == BOOLEAN && ((row->result == AND && !ours) || (row->result == OR && ours)));
}

int keys_finish(struct keys *k, struct keys_error *err)
{
    struct iscsi_params *p = &k->result;

    for (unsigned i = 0; i < KEY_COUNT; i++) {
        enum iscsi_key key = (enum iscsi_key)i;
        const struct key_row *row = keys_row(key);

        if (!(k->offered & bit(key)) || (k->received & bit(key)) || row->result == DECLARED)
            continue;
        if (!silence_agrees(k, key))
            return keys_fail(err, ISCSI_LOGIN_INITIATOR_ERROR, row->name,
                             "the peer did not answer %s", row->name);
        if (row->type == BOOLEAN)
            keys_set(row, p, keys_get(row, &k->wishes.params));
    }
    for (unsigned i = KEY_HEADER_DIGEST; i <= KEY_DATA_DIGEST; i++)
        if (k->stage != ISCSI_STAGE_FULL_FEATURE && digest_required(k, (enum iscsi_key)i) &&
            !keys_get(keys_row((enum iscsi_key)i), p))
            return take_refusal(k, (enum iscsi_key)i, "", err);
    if (p->first_burst_length > p->max_burst_length)
        p->first_burst_length = p->max_burst_length;
    if (p->error_recovery_level > 0 && p->data_sequence_in_order)
        p->max_outstanding_r2t = 1;
    return 0;
}
