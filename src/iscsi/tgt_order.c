/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CmdSN: the window, and turns in its order (RFC 7143 4.2.2.1).
 *
 * MaxCmdSN = ExpCmdSN - 1 + depth - in_window, where in_window counts the commands that have had
 * their number and not yet their response. ExpCmdSN and in_window step together, and in_window
 * falls alone, so MaxCmdSN never goes back; and each command within it finds a slot free.
 *
 * A command that has its turn when its header comes is carried out at once, while its data are
 * still on their way: `early`. ExpCmdSN passes it when its PDU is complete and undamaged.
 */
#include "iscsi/tgt_int.h"

#include "base/serial.h"

static struct tgt_slot **ring_at(const struct tgt_session *s, uint32_t cmd_sn)
{
    return &s->ring[cmd_sn & s->ring_mask];
}

/* Tasks of before are still with the owner: commands that come now must not overtake their effects.
 * Before the owner knows the session it gets no TMF either. */
static bool gated(const struct tgt_session *s, enum tgt_kind kind)
{
    if (s->state == TGT_SESSION_ENDING)
        return true;
    if (s->predecessor)
        return kind == TGT_COMMAND || kind == TGT_TMF;
    return s->orphans > 0 && kind == TGT_COMMAND;
}

static bool in_window(const struct tgt_session *s, uint32_t cmd_sn)
{
    return serial_le(s->exp_cmd_sn, cmd_sn) && serial_le(cmd_sn, s->max_cmd_sn);
}

enum tgt_turn tgt_order_header(struct tgt_conn *c, enum tgt_kind kind, bool immediate,
                               uint32_t cmd_sn)
{
    struct tgt_session *s = c->session;

    if (immediate)
        return gated(s, kind) ? TGT_TURN_LATER : TGT_TURN_NOW;
    if (!in_window(s, cmd_sn) || *ring_at(s, cmd_sn) || (s->early && cmd_sn == s->exp_cmd_sn)) {
        s->tgt->counters.ignored++;
        return TGT_TURN_NEVER;
    }
    if (cmd_sn != s->exp_cmd_sn || gated(s, kind) || tgt_tmf_blocks(s, cmd_sn))
        return TGT_TURN_LATER;
    return TGT_TURN_NOW;
}

void tgt_order_take(struct tgt_slot *slot, enum tgt_turn turn)
{
    struct tgt_session *s = slot->session;

    slot->turn = turn == TGT_TURN_NOW;
    if (slot->immediate)
        return;
    if (turn == TGT_TURN_NOW) {
        s->early = slot;
    } else {
        *ring_at(s, slot->cmd_sn) = slot;
        slot->in_ring = true;
    }
}

static void pass(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;

    s->exp_cmd_sn++;
    s->in_window++;
    slot->windowed = true;
    tgt_order_window(s);
    if (s->tmfs.first)
        tgt_dirty(s); /* one may wait for it */
}

static void run(struct tgt_slot *slot)
{
    switch (slot->kind) {
    case TGT_COMMAND:
        tgt_command_run(slot);
        break;
    case TGT_TMF:
        tgt_tmf_run(slot);
        break;
    case TGT_NOP:
        tgt_nop_run(slot);
        break;
    case TGT_TEXT:
        tgt_text_run(slot);
        break;
    case TGT_LOGOUT:
        tgt_logout_run(slot);
        break;
    default:
        break;
    }
}

void tgt_order_arrived(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;

    slot->arrived = true;
    if (s->early == slot) {
        s->early = NULL;
        pass(slot);
    }
    if (slot->turn)
        run(slot);
    else if (slot->immediate)
        tgt_list_append(&s->immediates, slot);
    tgt_order_run(s);
}

void tgt_order_drop(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;

    if (s->early == slot)
        s->early = NULL;
    if (slot->in_ring) {
        *ring_at(s, slot->cmd_sn) = NULL;
        slot->in_ring = false;
    }
    tgt_slot_lose(slot);
}

void tgt_order_plug(struct tgt_session *s, uint32_t cmd_sn)
{
    if (!in_window(s, cmd_sn))
        return;
    *ring_at(s, cmd_sn) = s->plug;
    tgt_dirty(s);
}

static void run_immediates(struct tgt_session *s)
{
    struct tgt_slot *next;

    for (struct tgt_slot *slot = s->immediates.first; slot; slot = next) {
        next = slot->next;
        if (gated(s, slot->kind))
            continue;
        tgt_list_remove(slot);
        slot->turn = true;
        run(slot);
    }
}

/* The next CmdSN counts as received; a command that waited for its turn there never gets it. */
void tgt_order_skip(struct tgt_session *s)
{
    struct tgt_slot **at = ring_at(s, s->exp_cmd_sn), *slot = *at;

    *at = NULL;
    s->exp_cmd_sn++;
    tgt_order_window(s);
    if (slot && slot != s->plug) {
        slot->in_ring = false;
        tgt_slot_retire(slot);
    }
}

void tgt_order_run(struct tgt_session *s)
{
    run_immediates(s);
    while (!s->early && !tgt_tmf_blocks(s, s->exp_cmd_sn)) {
        struct tgt_slot **at = ring_at(s, s->exp_cmd_sn), *slot = *at;

        if (slot && slot == s->plug) {
            *at = NULL;
            s->exp_cmd_sn++;
            tgt_order_window(s);
            tgt_dirty(s); /* a TMF may wait for it */
            continue;
        }
        if (!slot || !slot->arrived || gated(s, slot->kind))
            return;
        *at = NULL;
        slot->in_ring = false;
        slot->turn = true;
        pass(slot);
        run(slot);
    }
}

void tgt_order_window(struct tgt_session *s)
{
    uint32_t max = s->exp_cmd_sn - 1 + s->tgt->opts.depth - s->in_window;

    if (serial_lt(s->max_cmd_sn, max))
        s->max_cmd_sn = max;
}
