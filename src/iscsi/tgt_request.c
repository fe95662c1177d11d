/* SPDX-License-Identifier: BSD-2-Clause */
/* NOP, Logout and SNACK, and what all requests but commands have in common (11.14 to 11.19). */
#include "iscsi/tgt_int.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct tgt_slot *tgt_request_take(struct tgt_conn *c, enum tgt_kind kind, uint32_t cmd_sn)
{
    struct tgt_in *in = &c->in;
    enum tgt_turn turn = tgt_order_header(c, kind, in->h.immediate, cmd_sn);
    struct tgt_slot *live;

    if (turn == TGT_TURN_NEVER)
        return NULL;
    live = tgt_slot_find(c->session, in->h.itt);
    if (live && live->kind == kind && live->cmd_sn == cmd_sn && !in->h.immediate)
        return NULL; /* a retry of what is in work */
    if (live)
        tgt_reject(c, ISCSI_REJECT_TASK_IN_PROGRESS);
    else if (in->h.itt == ISCSI_TAG_NONE)
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
    else if (in->h.immediate && tgt_slot_immediate_full(c, kind))
        tgt_reject(c, ISCSI_REJECT_TOO_MANY_IMMEDIATE);
    else if (!(in->slot = tgt_slot_take(c, kind, &in->h, cmd_sn)))
        tgt_reject(c, ISCSI_REJECT_NO_RESOURCES);
    if (!in->slot)
        return NULL;
    in->slot->receiving = true;
    tgt_order_take(in->slot, turn);
    return in->slot;
}

void tgt_request_complete(struct tgt_conn *c)
{
    struct tgt_slot *slot = c->in.slot;

    if (!slot)
        return;
    slot->receiving = false;
    if (slot->retired)
        tgt_slot_retire(slot);
    else
        tgt_order_arrived(slot);
}

void tgt_request_damaged(struct tgt_conn *c)
{
    struct tgt_slot *slot = c->in.slot;

    if (!slot)
        return;
    slot->receiving = false;
    if (slot->retired)
        tgt_slot_retire(slot);
    else
        tgt_order_drop(slot);
}

/* ---- NOP ---- */

int tgt_on_nop_out(struct tgt_conn *c, struct iscsi_place *place)
{
    struct iscsi_nop_out pdu;
    struct tgt_slot *slot;

    iscsi_nop_out_unpack(c->in.bhs, &pdu);
    if (pdu.itt == ISCSI_TAG_NONE) { /* wants no answer: it may be one (11.18) */
        if (!pdu.immediate) {
            tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
            return -1;
        }
        if (c->pinging && pdu.ttt == c->ping_ttt)
            c->pinging = false;
        return 0;
    }
    slot = tgt_request_take(c, TGT_NOP, pdu.cmd_sn);
    if (!slot)
        return -1;
    if (pdu.data_segment_length > 0 && !tgt_slot_hold(slot, pdu.data_segment_length)) {
        tgt_reject(c, ISCSI_REJECT_NO_RESOURCES);
        slot->receiving = false;
        c->in.slot = NULL;
        tgt_order_drop(slot);
        return -1;
    }
    if (slot->hold) {
        slot->flat = (struct iovec){slot->hold, slot->hold_size};
        place->iov = &slot->flat;
        place->count = 1;
    }
    return 0;
}

void tgt_nop_run(struct tgt_slot *slot)
{
    tgt_respond(slot);
}

void tgt_out_nop(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    struct tgt_session *s = slot->session;
    struct iscsi_nop_in pdu = {
        .data_segment_length =
            slot->hold ? least(slot->hold_size, slot->conn->params.mrdsl_out) : 0,
        .itt = slot->itt,
        .ttt = ISCSI_TAG_NONE,
        .stat_sn = tgt_stat_sn(slot->conn, true),
        .exp_cmd_sn = s->exp_cmd_sn,
        .max_cmd_sn = s->max_cmd_sn,
    };

    s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_nop_in_pack(out->bhs, &pdu);
    if (pdu.data_segment_length > 0) {
        out->iov = &slot->flat;
        out->count = 1;
        out->length = pdu.data_segment_length;
        out->owner = slot;
        slot->tx_pieces++;
    }
}

/* ---- SNACK ---- */

/* T-SNK-05: nothing is kept for replay at ErrorRecoveryLevel 0. */
int tgt_on_snack(struct tgt_conn *c, struct iscsi_place *place)
{
    (void)place;
    tgt_reject(c, ISCSI_REJECT_NOT_SUPPORTED);
    return -1;
}

/* ---- Logout ---- */

int tgt_on_logout(struct tgt_conn *c, struct iscsi_place *place)
{
    struct iscsi_logout_request pdu;
    struct tgt_slot *slot;

    (void)place;
    iscsi_logout_request_unpack(c->in.bhs, &pdu);
    if (pdu.reason > ISCSI_LOGOUT_RECOVERY || c->in.h.data_segment_length > 0) {
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
        return -1;
    }
    if (c->session->discovery && pdu.reason != ISCSI_LOGOUT_SESSION) {
        tgt_reject(c, ISCSI_REJECT_PROTOCOL);
        return -1;
    }
    slot = tgt_request_take(c, TGT_LOGOUT, pdu.cmd_sn);
    if (!slot)
        return -1;
    slot->reason = pdu.reason;
    slot->cid = pdu.cid;
    return 0;
}

static struct tgt_conn *find_cid(struct tgt_session *s, uint16_t cid)
{
    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session)
        if (c->cid == cid && c->state != TGT_CONN_CLOSED)
            return c;
    return NULL;
}

static bool last_alive(const struct tgt_session *s, const struct tgt_conn *c)
{
    for (const struct tgt_conn *other = s->conns; other; other = other->next_in_session)
        if (other != c && other->state < TGT_CONN_CLOSING)
            return false;
    return true;
}

void tgt_logout_run(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;
    struct tgt_conn *c = slot->conn, *named = find_cid(s, slot->cid);

    if (slot->reason == ISCSI_LOGOUT_SESSION) {
        c->logout = slot;
        s->logged_out = true;
        for (struct tgt_conn *other = s->conns; other; other = other->next_in_session)
            if (other != c)
                tgt_conn_fail(other, TGT_CLOSE_LOGGED_OUT, "the session is logged out");
        tgt_conn_lose_tasks(c, false);
    } else if (!named) {
        slot->response = ISCSI_LOGOUT_NO_CID;
        tgt_respond(slot);
        return;
    } else if (slot->reason == ISCSI_LOGOUT_RECOVERY) {
        slot->response = ISCSI_LOGOUT_NO_RECOVERY;
        tgt_respond(slot);
        return;
    } else if (named == c) {
        c->logout = slot;
        tgt_conn_lose_tasks(c, !last_alive(s, c));
    } else {
        tgt_conn_fail(named, TGT_CLOSE_LOGGED_OUT, "the connection is logged out by another");
    }
    tgt_list_append(&s->logouts, slot); /* until the owner has let go of the tasks */
    tgt_dirty(s);
}

void tgt_logout_poll(struct tgt_session *s)
{
    while (s->logouts.first && s->orphans == 0) {
        struct tgt_slot *slot = s->logouts.first;

        tgt_list_remove(slot);
        tgt_respond(slot);
    }
}

void tgt_out_logout(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    struct tgt_session *s = slot->session;
    struct tgt_conn *c = slot->conn;
    struct iscsi_logout_response pdu = {
        .response = slot->response,
        .itt = slot->itt,
        .stat_sn = tgt_stat_sn(c, true),
        .exp_cmd_sn = s->exp_cmd_sn,
        .max_cmd_sn = s->max_cmd_sn,
        .time2wait = (uint16_t)s->params.default_time2wait,
        .time2retain = (uint16_t)s->params.default_time2retain,
    };

    s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_logout_response_pack(out->bhs, &pdu);
    if (c->logout != slot)
        return;
    c->logout = NULL;
    if (last_alive(s, c))
        s->logged_out = true;
    tgt_conn_finish(c, TGT_CLOSE_LOGGED_OUT, "logged out");
}
