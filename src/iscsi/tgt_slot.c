/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots: the pool of a session, their look-up by ITT, and when one is free again. */
#include "iscsi/tgt_int.h"

#include <string.h>

void tgt_list_append(struct tgt_list *l, struct tgt_slot *slot)
{
    slot->list = l;
    slot->next = NULL;
    slot->prev = l->last;
    if (l->last)
        l->last->next = slot;
    else
        l->first = slot;
    l->last = slot;
}

void tgt_list_remove(struct tgt_slot *slot)
{
    struct tgt_list *l = slot->list;

    if (!l)
        return;
    if (slot->prev)
        slot->prev->next = slot->next;
    else
        l->first = slot->next;
    if (slot->next)
        slot->next->prev = slot->prev;
    else
        l->last = slot->prev;
    slot->list = NULL;
    slot->next = slot->prev = NULL;
}

struct tgt_slot *tgt_slot_at(const struct tgt_session *s, unsigned index)
{
    return (struct tgt_slot *)(void *)(s->slots + index * s->slot_stride);
}

/* Initiators number their tags upward or use indices; a multiplication spreads both. */
static struct tgt_slot **bucket(const struct tgt_session *s, uint32_t itt)
{
    return &s->hash[((itt * 0x9e3779b1u) >> 12) & s->hash_mask];
}

struct tgt_slot *tgt_slot_find(const struct tgt_session *s, uint32_t itt)
{
    for (struct tgt_slot *slot = *bucket(s, itt); slot; slot = slot->hash_next)
        if (slot->itt == itt)
            return slot;
    return NULL;
}

static void unhash(struct tgt_slot *slot)
{
    if (!slot->hashed)
        return;
    struct tgt_slot **link = bucket(slot->session, slot->itt);

    while (*link != slot)
        link = &(*link)->hash_next;
    *link = slot->hash_next;
    slot->hashed = false;
}

/* T-NUM-04: as many as the owner allows on each connection, TMFs apart. */
bool tgt_slot_immediate_full(const struct tgt_conn *c, enum tgt_kind kind)
{
    return (kind == TGT_TMF ? c->immediate_tmfs : c->immediates) >= c->tgt->opts.immediate_max;
}

struct tgt_slot *tgt_slot_take(struct tgt_conn *c, enum tgt_kind kind, const struct iscsi_bhs *h,
                               uint32_t cmd_sn)
{
    struct tgt_session *s = c->session;
    struct tgt_slot *slot = s->free.first;

    if (!slot)
        return NULL;
    tgt_list_remove(slot);

    uint16_t index = slot->index;

    /* The long arrays at the end are written before they are read. */
    memset(slot, 0, offsetof(struct tgt_slot, cdb));
    slot->index = index;
    slot->session = s;
    slot->conn = c;
    slot->kind = (uint8_t)kind;
    slot->itt = h->itt;
    slot->cmd_sn = cmd_sn;
    slot->immediate = h->immediate;
    slot->lun = h->lun;

    struct tgt_slot **link = bucket(s, slot->itt);

    slot->hash_next = *link;
    *link = slot;
    slot->hashed = true;
    s->slots_used++;
    if (slot->immediate) {
        if (kind == TGT_TMF)
            c->immediate_tmfs++;
        else
            c->immediates++;
    }
    return slot;
}

/* Its place among the immediate ones, or in the window, may be taken by another. */
static void give_place_back(struct tgt_slot *slot)
{
    struct tgt_conn *c = slot->conn;

    if (slot->immediate && c) {
        if (slot->kind == TGT_TMF)
            c->immediate_tmfs--;
        else
            c->immediates--;
    }
    slot->immediate = false;
    if (slot->windowed) {
        slot->windowed = false;
        slot->session->in_window--;
        tgt_order_window(slot->session);
    }
}

void tgt_slot_packed(struct tgt_slot *slot)
{
    unhash(slot);
    give_place_back(slot);
    slot->packed = true;
}

static void free_if_unused(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;
    struct tgt *t = s->tgt;

    if (slot->kind == TGT_FREE || !slot->retired || slot->tx_pieces > 0 || slot->receiving ||
        (slot->delivered && !slot->answered))
        return;

    bool was_delivered = slot->delivered;

    if (slot->hold)
        t->opts.ops.unhold(t->opts.user, slot->hold, slot->hold_size);
    slot->hold = NULL;
    if (slot->orphan) {
        slot->orphan = false;
        s->orphans--;
    }
    if (was_delivered && slot->kind == TGT_COMMAND)
        t->opts.ops.released(t->opts.user, &slot->pub.task);
    slot->kind = TGT_FREE;
    s->slots_used--;
    tgt_list_append(&s->free, slot);
}

void tgt_slot_retire(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;

    if (slot->kind == TGT_FREE)
        return;
    if (!slot->retired) {
        slot->retired = true;
        tgt_list_remove(slot);
        unhash(slot);
        if (slot->is_zombie)
            s->zombies--;
        slot->is_zombie = false;
        give_place_back(slot);
    }
    free_if_unused(slot);
    tgt_dirty(s);
}

/* Nothing is sent for it any more; it waits for the owner's end and the transport's. */
void tgt_slot_lose(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;
    struct tgt *t = s->tgt;

    if (slot->kind == TGT_FREE || slot->lost)
        return;
    slot->lost = true;
    if (slot->kind == TGT_COMMAND)
        slot->pub.task.conn = NULL;
    if (slot->kind == TGT_TMF)
        slot->pub.tmf.conn = NULL;
    if (slot->in_ring) { /* it was received, and will never be carried out */
        tgt_order_plug(s, slot->cmd_sn);
        slot->in_ring = false;
    }
    if (s->early == slot)
        s->early = NULL;
    if (s->fence_slot == slot)
        s->fence_slot = NULL;

    bool abort = slot->kind == TGT_COMMAND && slot->delivered && !slot->answered;

    if (abort) {
        slot->orphan = true;
        s->orphans++;
    }
    /* The counters of places are the connection's, which forgets them. */
    slot->retired = true;
    tgt_list_remove(slot);
    unhash(slot);
    if (slot->is_zombie)
        s->zombies--;
    slot->is_zombie = false;
    give_place_back(slot);
    if (abort && !slot->aborted) {
        slot->aborted = true;
        t->opts.ops.abort(t->opts.user, &slot->pub.task);
    }
    free_if_unused(slot); /* nothing, if the owner has just ended it */
    tgt_dirty(s);
}

void tgt_slot_sent(struct tgt_slot *slot)
{
    slot->tx_pieces--;
    if (slot->packed && slot->tx_pieces == 0)
        tgt_slot_retire(slot);
    else if (slot->retired)
        tgt_slot_retire(slot);
}

bool tgt_slot_hold(struct tgt_slot *slot, uint32_t length)
{
    struct tgt *t = slot->session->tgt;

    if (!t->opts.ops.hold)
        return false;
    slot->hold = t->opts.ops.hold(t->opts.user, length);
    slot->hold_size = length;
    if (slot->hold)
        t->counters.held++;
    return slot->hold != NULL;
}
