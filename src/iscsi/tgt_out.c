/* SPDX-License-Identifier: BSD-2-Clause */
/* What a connection sends next, its StatSN, what has been acknowledged, and the response fence. */
#include "iscsi/tgt_int.h"

#include <string.h>

#include "base/bytes.h"
#include "base/serial.h"

uint32_t tgt_stat_sn(struct tgt_conn *c, bool advance)
{
    uint32_t stat_sn = c->stat_sn;

    if (advance) {
        c->stat_sn++;
        c->tgt->counters.responses++;
    }
    return stat_sn;
}

/* ---- PDUs of no slot ---- */

struct tgt_control *tgt_control_add(struct tgt_conn *c, uint8_t opcode, bool advances)
{
    if (c->control_count == TGT_CONTROL_SLOTS)
        return NULL;

    struct tgt_control *control =
        &c->control[(c->control_head + c->control_count++) % TGT_CONTROL_SLOTS];

    control->opcode = opcode;
    control->advances = advances;
    control->length = 0;
    memset(control->bhs, 0, sizeof(control->bhs));
    tgt_conn_wake(c);
    return control;
}

/* The bad PDU is c->in. There is room: nothing is read while there is none. */
void tgt_reject(struct tgt_conn *c, enum iscsi_reject_reason reason)
{
    struct tgt_in *in = &c->in;
    struct tgt_control *control = tgt_control_add(c, ISCSI_REJECT, true);

    if (!control)
        return;
    c->tgt->counters.rejects++;
    control->length = (uint16_t)(ISCSI_BHS_SIZE + in->ahs_length);
    memcpy(control->data, in->bhs, ISCSI_BHS_SIZE);
    memcpy(control->data + ISCSI_BHS_SIZE, in->ahs, in->ahs_length);

    struct iscsi_reject pdu = {
        .reason = (uint8_t)reason,
        .data_segment_length = control->length,
    };

    iscsi_reject_pack(control->bhs, &pdu);
}

/* StatSN, ExpCmdSN and MaxCmdSN lie at the same place in every PDU of a target (11.4 to 11.19). */
static void put_numbers(struct tgt_conn *c, uint8_t *bhs, bool advance)
{
    struct tgt_session *s = c->session;

    store_be32(bhs + 24, tgt_stat_sn(c, advance));
    store_be32(bhs + 28, s->exp_cmd_sn);
    store_be32(bhs + 32, s->max_cmd_sn);
    s->told_max_cmd_sn = s->max_cmd_sn;
}

static void out_control(struct tgt_conn *c, struct iscsi_tx_pdu *out)
{
    struct tgt_control *control = &c->control[c->control_head];

    c->control_head = (c->control_head + 1) % TGT_CONTROL_SLOTS;
    c->control_count--;
    put_numbers(c, control->bhs, control->advances);
    memcpy(out->bhs, control->bhs, sizeof(control->bhs));
    c->control_flat = (struct iovec){control->data, control->length};
    out->iov = &c->control_flat;
    out->count = 1;
    out->length = control->length;
    out->copy = true;
}

static void out_window(struct tgt_conn *c, struct iscsi_tx_pdu *out)
{
    struct iscsi_nop_in pdu = {.itt = ISCSI_TAG_NONE, .ttt = ISCSI_TAG_NONE};

    c->window_due = false;
    iscsi_nop_in_pack(out->bhs, &pdu);
    put_numbers(c, out->bhs, false);
}

/* T-NUM-06: the initiator believes the window closed, and nothing that goes out will tell it. */
void tgt_tell_window(struct tgt_session *s)
{
    struct tgt_conn *last = NULL;

    if (s->discovery || s->told_max_cmd_sn == s->max_cmd_sn ||
        serial_le(s->exp_cmd_sn, s->told_max_cmd_sn))
        return;
    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session) {
        if (!tgt_conn_alive(c))
            continue;
        if (tgt_out_pending(c))
            return;
        last = c;
    }
    if (last) {
        last->window_due = true;
        tgt_conn_wake(last);
    }
}

/* ---- what comes next ---- */

/* A slot whose response takes nothing of it along is done with. */
static void out_slot(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    if (slot->kind == TGT_COMMAND) {
        if (tgt_out_command(slot, out)) {
            tgt_list_remove(slot);
            if (slot->tx_pieces == 0)
                tgt_slot_retire(slot);
        }
        return;
    }
    tgt_list_remove(slot);
    tgt_slot_packed(slot);
    if (slot->kind == TGT_TMF)
        tgt_out_tmf(slot, out);
    else if (slot->kind == TGT_NOP)
        tgt_out_nop(slot, out);
    else if (slot->kind == TGT_TEXT)
        tgt_out_text(slot, out);
    else
        tgt_out_logout(slot, out);
    if (slot->tx_pieces == 0)
        tgt_slot_retire(slot);
}

bool tgt_out_pending(const struct tgt_conn *c)
{
    return c->control_count > 0 || c->window_due || c->r2t.first || c->out.first;
}

/* R2Ts before data: while the initiator reads what it asked for, its writes can come. */
bool tgt_next_out(struct tgt_conn *c, struct iscsi_tx_pdu *out)
{
    if (c->control_count > 0)
        out_control(c, out);
    else if (c->window_due)
        out_window(c, out);
    else if (c->r2t.first)
        tgt_out_r2t(c->r2t.first, out);
    else if (c->out.first)
        out_slot(c->out.first, out);
    else
        return false;
    c->tgt->counters.pdus_out++;
    if (c->session->fence)
        tgt_dirty(c->session);
    return true;
}

void tgt_respond(struct tgt_slot *slot)
{
    struct tgt_conn *c = slot->conn;
    struct tgt_session *s = slot->session;

    if (slot->lost || slot->retired) {
        tgt_slot_retire(slot);
        return;
    }
    if (slot->fenced && s->conn_count > 1) {
        tgt_fence_start(slot);
        return;
    }
    tgt_list_append(s->fence ? &c->held : &c->out, slot);
    tgt_conn_wake(c);
}

/* ---- acknowledgments ---- */

static void bury_zombies(struct tgt_session *s)
{
    for (unsigned i = 0; i < s->slot_count && s->zombies > 0; i++) {
        struct tgt_slot *slot = tgt_slot_at(s, i);

        if (slot->is_zombie && slot->zombie_timed && slot->conn &&
            serial_lt(slot->zombie_until, slot->conn->acked))
            tgt_slot_retire(slot);
    }
}

void tgt_acknowledged(struct tgt_conn *c, uint32_t exp_stat_sn)
{
    if (!serial_lt(c->acked, exp_stat_sn) || !serial_le(exp_stat_sn, c->stat_sn))
        return;
    c->acked = exp_stat_sn;
    if (c->session->zombies > 0)
        bury_zombies(c->session);
    if (c->session->fence)
        tgt_dirty(c->session);
}

/*
 * The fence (4.2.2.3.3), in sessions of several connections: before a response that needs it,
 * everything sent earlier is acknowledged on all of them; what comes later waits in `held` until
 * that response is acknowledged too.
 */
void tgt_fence_start(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;

    if (s->fence) {
        tgt_list_append(&s->fence_waiting, slot);
        return;
    }
    s->fence = TGT_FENCE_BEFORE;
    s->fence_slot = slot;
    tgt_dirty(s);
}

static bool all_acknowledged(struct tgt_session *s)
{
    bool all = true;

    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session) {
        if (!tgt_conn_alive(c))
            continue;
        if (c->out.first || c->control_count > 0) {
            all = false;
        } else if (c->acked != c->stat_sn) {
            all = false;
            tgt_conn_ping(c); /* its answer acknowledges */
        }
    }
    return all;
}

static void lift(struct tgt_session *s)
{
    s->fence = TGT_FENCE_NONE;
    s->fence_slot = NULL;
    s->fence_conn = NULL;
    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session) {
        struct tgt_slot *slot;

        while ((slot = c->held.first)) {
            tgt_list_remove(slot);
            tgt_list_append(&c->out, slot);
            tgt_conn_wake(c);
        }
    }
    if (s->fence_waiting.first) {
        struct tgt_slot *slot = s->fence_waiting.first;

        tgt_list_remove(slot);
        tgt_fence_start(slot);
    }
}

void tgt_fence_poll(struct tgt_session *s)
{
    struct tgt_slot *slot = s->fence_slot; /* until it is sent or lost */
    struct tgt_conn *c = s->fence_conn;

    if (s->fence == TGT_FENCE_BEFORE) {
        if (!slot) {
            lift(s);
        } else if (all_acknowledged(s)) {
            s->fence = TGT_FENCE_AFTER;
            s->fence_conn = slot->conn;
            tgt_list_append(&slot->conn->out, slot);
            tgt_conn_wake(slot->conn);
        }
    } else if (s->fence == TGT_FENCE_AFTER) {
        if (!c || !tgt_conn_alive(c) || (!slot && serial_lt(s->fence_stat_sn, c->acked)))
            lift(s);
        else if (!slot && !c->out.first)
            tgt_conn_ping(c);
    }
}
