/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text in full feature phase (RFC 7143 6.2, 6.4, 11.10, 11.11) and SendTargets (Appendix C).
 *
 * A request is judged when it is complete, before it counts as received: one that is rejected
 * leaves its CmdSN open and the exchange as if it had never begun (7.3, 7.12). A list of targets
 * is not kept: each response goes on where the one before stopped, asking the owner again.
 */
#include "iscsi/tgt_int.h"

#include <stdio.h>
#include <string.h>

static void forget(struct tgt_text_state *text)
{
    text->open = text->busy = text->listing = text->named = text->name_sent = false;
    text->reject_send_targets = false;
    text->mrdsl = 0;
    text->length = text->answer_length = 0;
}

/* ---- the request ---- */

int tgt_on_text(struct tgt_conn *c, struct tgt_place *place)
{
    struct tgt_text_state *text = &c->text;
    struct iscsi_text_request pdu;
    struct tgt_slot *slot;

    iscsi_text_request_unpack(c->in.bhs, &pdu);
    if (text->busy || (pdu.final && pdu.more)) {
        tgt_reject(c, ISCSI_REJECT_PROTOCOL);
        return -1;
    }
    if (pdu.ttt != ISCSI_TAG_NONE &&
        (!text->open || pdu.ttt != text->ttt || pdu.itt != text->itt || pdu.lun != 0)) {
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
        return -1;
    }
    slot = tgt_request_take(c, TGT_TEXT, pdu.cmd_sn);
    if (!slot)
        return -1;
    if (pdu.ttt == ISCSI_TAG_NONE)
        forget(text); /* 11.10.4: begin anew */
    if (pdu.data_segment_length > TGT_TEXT_MAX - text->length) {
        tgt_reject(c, ISCSI_REJECT_NO_RESOURCES);
        forget(text);
        tgt_request_damaged(c);
        c->in.slot = NULL;
        return -1;
    }
    text->busy = true;
    text->itt = pdu.itt;
    slot->final = pdu.final;
    slot->more = pdu.more;
    place->flat = (struct iovec){text->request + text->length, pdu.data_segment_length};
    place->iov = &place->flat;
    place->iov_count = 1;
    place->length = pdu.data_segment_length;
    return 0;
}

void tgt_text_damaged(struct tgt_conn *c)
{
    forget(&c->text);
    tgt_request_damaged(c);
}

/* ---- its keys ---- */

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool answer(struct tgt_text_state *text, const char *key, const char *value)
{
    size_t room = sizeof(text->answer) - text->answer_length;
    int n = snprintf(text->answer + text->answer_length, room, "%s=%s", key, value);

    if (n < 0 || (size_t)n >= room)
        return false;
    text->answer_length += (uint32_t)n + 1;
    return true;
}

static bool send_targets(struct tgt_conn *c, const char *value)
{
    struct tgt_text_state *text = &c->text;
    const struct tgt_session *s = c->session;
    bool all = same(value, "All");

    if (strlen(value) > ISCSI_NAME_MAX || (all && !s->discovery) ||
        (value[0] == '\0' && s->discovery))
        return answer(text, "SendTargets", "Reject");
    text->listing = true;
    text->named = !all;
    if (!all)
        snprintf(text->target, sizeof(text->target), "%s", value[0] ? value : s->target_name);
    if (!s->discovery && !same(text->target, s->target_name))
        text->target[0] = '\0'; /* matches none: only its own is told */
    text->target_index = text->address_index = 0;
    text->name_sent = false;
    return true;
}

static bool declare_mrdsl(struct tgt_conn *c, const char *value)
{
    uint64_t n;

    if (text_number(value, &n) != 0 || n < 512 || n > ISCSI_SEGMENT_MAX)
        return false;
    c->text.mrdsl = (uint32_t)n;
    return true;
}

/* False: the request is to be rejected as a whole. */
static bool take_key(struct tgt_conn *c, const char *key, const char *value, unsigned keys)
{
    if (same(key, "SendTargets"))
        return keys == 1 && send_targets(c, value);
    if (same(key, "MaxRecvDataSegmentLength"))
        return declare_mrdsl(c, value);
    if (same(key, "InitiatorAlias"))
        return true;
    if (keys_known(key))
        return false; /* of the login only */
    return answer(&c->text, key, "NotUnderstood");
}

static bool repeated(const char *begin, const char *pair, size_t key_length)
{
    for (const char *p = begin; p < pair; p += strlen(p) + 1)
        if (strncmp(p, pair, key_length + 1) == 0)
            return true;
    return false;
}

static bool parse(struct tgt_conn *c)
{
    struct tgt_text_state *text = &c->text;
    char *p = text->request, *end = p + text->length;
    unsigned keys = 0;

    *end = '\0'; /* there is room for it */
    for (char *q = p; q < end; q += strlen(q) + 1)
        keys++;
    for (; p < end; p += strlen(p) + 1) {
        char *equals = strchr(p, '=');
        char key[ISCSI_KEY_MAX + 1];

        if (!equals || equals == p || equals - p > ISCSI_KEY_MAX ||
            repeated(text->request, p, (size_t)(equals - p)))
            return false;
        memcpy(key, p, (size_t)(equals - p));
        key[equals - p] = '\0';
        if (!take_key(c, key, equals + 1, keys))
            return false;
    }
    text->length = 0;
    return true;
}

void tgt_text_complete(struct tgt_conn *c)
{
    struct tgt_text_state *text = &c->text;
    struct tgt_slot *slot = c->in.slot;

    text->length += c->in.h.data_segment_length;
    if (!slot->more && text->length > 0 && !parse(c)) {
        tgt_reject(c, ISCSI_REJECT_PROTOCOL);
        tgt_text_damaged(c);
        return;
    }
    tgt_request_complete(c);
}

void tgt_text_run(struct tgt_slot *slot)
{
    tgt_respond(slot);
}

/* ---- the answer ---- */

/* The next pair of the list, with its NUL: "TargetName=..." or "TargetAddress=...". Its length; 0:
 * the list is at its end. */
static size_t next_pair(struct tgt_conn *c, char *pair, size_t size)
{
    struct tgt *t = c->tgt;
    struct tgt_text_state *text = &c->text;
    struct tgt_listing listing;
    char address[TGT_ADDRESS_MAX];

    while (t->opts.ops.target(t->opts.user, c, text->target_index, &listing)) {
        if (text->named && !same(listing.name, text->target)) {
            text->target_index++;
            continue;
        }
        if (!text->name_sent)
            return (size_t)snprintf(pair, size, "TargetName=%s", listing.name) + 1;
        if (t->opts.ops.target_address(t->opts.user, c, listing.name, text->address_index, address))
            return (size_t)snprintf(pair, size, "TargetAddress=%s", address) + 1;
        text->target_index++;
        text->address_index = 0;
        text->name_sent = false;
    }
    return 0;
}

static void step(struct tgt_text_state *text)
{
    if (text->name_sent)
        text->address_index++;
    text->name_sent = true;
}

/* Whole pairs, as many as go into one response; each is shorter than the least MRDSL, 512. */
static uint32_t list(struct tgt_conn *c, char *to, uint32_t room)
{
    char pair[512];
    uint32_t used = 0;
    size_t n;

    while ((n = next_pair(c, pair, sizeof(pair))) > 0) {
        if (n > room - used)
            return used;
        memcpy(to + used, pair, n);
        used += (uint32_t)n;
        step(&c->text);
    }
    c->text.listing = false;
    return used;
}

static uint32_t take_answer(struct tgt_text_state *text, uint32_t room)
{
    uint32_t n = text->answer_length < room ? text->answer_length : room;

    text->answer_length -= n;
    return n;
}

void tgt_out_text(struct tgt_slot *slot, struct tgt_out *out)
{
    struct tgt_conn *c = slot->conn;
    struct tgt_session *s = slot->session;
    struct tgt_text_state *text = &c->text;
    uint32_t room = c->params.mrdsl_out < TGT_TEXT_MAX ? c->params.mrdsl_out : TGT_TEXT_MAX, n = 0;
    struct iscsi_text_response pdu = {.itt = slot->itt, .ttt = ISCSI_TAG_NONE};

    text->busy = false;
    if (!slot->more) {
        n = take_answer(text, room);
        memcpy(text->sending, text->answer, n);
        memmove(text->answer, text->answer + n, text->answer_length);
        if (text->listing && text->answer_length == 0)
            n += list(c, text->sending + n, room - n);
    }
    pdu.more = !slot->more && (text->listing || text->answer_length > 0);
    pdu.final = slot->final && !pdu.more;
    if (!pdu.final) {
        text->open = true;
        pdu.ttt = text->ttt = s->ttt_generation++ % 0xffff;
    } else {
        if (text->mrdsl > 0)
            c->params.mrdsl_out = text->mrdsl; /* T-TXT-03: now that it has ended well */
        forget(text);
    }
    pdu.data_segment_length = n;
    pdu.stat_sn = tgt_stat_sn(c, true);
    pdu.exp_cmd_sn = s->exp_cmd_sn;
    pdu.max_cmd_sn = s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_text_response_pack(out->bhs, &pdu);
    out->flat = (struct iovec){text->sending, n};
    out->length = n;
}
