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
    text->open = text->busy = text->begun = text->listing = false;
    text->length = text->answer_sent = text->answer_length = 0;
}

static bool more_to_say(const struct tgt_text_state *text)
{
    return text->listing || text->answer_sent < text->answer_length;
}

/* ---- the request ---- */

int tgt_on_text(struct tgt_conn *c, struct iscsi_place *place)
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
    c->in.flat = (struct iovec){text->request + text->length, pdu.data_segment_length};
    place->iov = &c->in.flat;
    place->count = 1;
    return 0;
}

void tgt_text_damaged(struct tgt_conn *c)
{
    forget(&c->text);
    tgt_request_damaged(c);
}

/* ---- its keys ---- */

static void send_targets(struct tgt_conn *c, const char *value, struct text_writer *w)
{
    struct tgt_text_state *text = &c->text;
    const struct tgt_session *s = c->session;
    bool all = strcmp(value, "All") == 0;

    if (strlen(value) > ISCSI_NAME_MAX || (all && !s->discovery) ||
        (value[0] == '\0' && s->discovery)) {
        text_put(w, "SendTargets", "Reject");
        return;
    }
    snprintf(text->target, sizeof(text->target), "%s", value[0] ? value : s->target_name);
    text->named = !all;
    text->target_index = text->address_index = 0;
    text->name_sent = false;
    /* A normal session is told of its own target only. */
    text->listing = s->discovery || strcmp(text->target, s->target_name) == 0;
}

/* A key that negotiates nothing. 0, or -1: it has no place in a text exchange. */
static int take_own(struct tgt_conn *c, enum iscsi_key key, const char *value,
                    struct text_writer *w)
{
    if (key == KEY_SEND_TARGETS) {
        send_targets(c, value, w);
        return 0;
    }
    return key == KEY_INITIATOR_ALIAS ? 0 : -1;
}

/* 0, or -1: the request is to be rejected as a whole. */
static int take_pairs(struct tgt_conn *c, struct text_writer *w)
{
    struct tgt_text_state *text = &c->text;
    struct text_scan scan;
    struct text_pair pair;
    struct keys_error err;
    enum text_result result;
    unsigned pairs = 0, lists = 0;
    enum iscsi_key key;
    int taken;

    text_scan_init(&scan, text->request, text->length);
    while ((result = text_next(&scan, &pair)) == TEXT_PAIR) {
        pairs++;
        lists += strcmp(pair.key, "SendTargets") == 0;
        taken = keys_receive(&text->keys, &pair, &key, w, &err);
        if (taken < 0 || (taken > 0 && take_own(c, key, pair.value, w) < 0))
            return -1;
    }
    keys_offer(&text->keys, w);
    return result == TEXT_BAD || (lists > 0 && pairs > 1) ? -1 : 0;
}

static int take_request(struct tgt_conn *c, bool final)
{
    struct tgt_text_state *text = &c->text;
    struct text_writer w;
    struct keys_error err;

    if (!text->begun)
        keys_begin_text(&text->keys, false, &c->params, 0);
    text->begun = true;
    text_writer_init(&w, text->answer, sizeof(text->answer));
    if (take_pairs(c, &w) != 0)
        return -1;
    text->length = 0;
    if (w.overflow)
        return -1;
    text->answer_sent = 0;
    text->answer_length = (uint32_t)w.length;
    return final ? keys_finish(&text->keys, &err) : 0;
}

void tgt_text_complete(struct tgt_conn *c)
{
    struct tgt_text_state *text = &c->text;
    struct tgt_slot *slot = c->in.slot;
    bool answering = more_to_say(text);

    text->length += c->in.h.data_segment_length;
    if (answering ? text->length > 0 : !slot->more && take_request(c, slot->final) != 0) {
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
        if (text->named && strcmp(listing.name, text->target) != 0) {
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

static uint32_t fill(struct tgt_conn *c, uint32_t room)
{
    struct tgt_text_state *text = &c->text;
    uint32_t n = text->answer_length - text->answer_sent;

    if (n > room)
        n = room;
    memcpy(text->sending, text->answer + text->answer_sent, n);
    text->answer_sent += n;
    if (text->listing && text->answer_sent == text->answer_length)
        n += list(c, text->sending + n, room - n);
    return n;
}

/* T-TXT-01, T-DISC-04: F=0 and a TTT as long as there is more to say; C, too. */
void tgt_out_text(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    struct tgt_conn *c = slot->conn;
    struct tgt_session *s = slot->session;
    struct tgt_text_state *text = &c->text;
    uint32_t room = c->params.mrdsl_out < TGT_TEXT_MAX ? c->params.mrdsl_out : TGT_TEXT_MAX;
    uint32_t n = slot->more ? 0 : fill(c, room);
    struct iscsi_text_response pdu = {.itt = slot->itt, .ttt = ISCSI_TAG_NONE};

    text->busy = false;
    pdu.more = more_to_say(text);
    pdu.final = slot->final && !pdu.more;
    if (pdu.final) {
        if (text->begun)
            c->params = text->keys.result; /* T-TXT-03: now that it has ended well */
        forget(text);
    } else {
        text->open = true;
        pdu.ttt = text->ttt = s->ttt_generation++ % 0xffff;
    }
    pdu.data_segment_length = n;
    pdu.stat_sn = tgt_stat_sn(c, true);
    pdu.exp_cmd_sn = s->exp_cmd_sn;
    pdu.max_cmd_sn = s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_text_response_pack(out->bhs, &pdu);
    text->flat = (struct iovec){text->sending, n};
    out->iov = &text->flat;
    out->count = n > 0;
    out->length = n;
}
