/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data-Out and R2T (RFC 7143 11.7, 11.8).
 *
 * A Target Transfer Tag of an R2T is generation << 16 | slot << 3 | burst, so that looking it up
 * takes no search and an old one is not taken for a new one. Errors in data are remembered with
 * the task and told in its response, after the F of the last sequence that is due (11.4.2).
 */
#include "iscsi/tgt_int.h"

#include <string.h>

enum { BURST_BITS = 3, INDEX_BITS = 13, GENERATION_BITS = 16 };

_Static_assert(TGT_R2T_MAX <= 1 << BURST_BITS, "a burst fits in its bits of the TTT");

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- memory ---- */

static void place_in_hold(struct tgt_slot *slot, uint32_t offset, uint32_t length,
                          struct iscsi_place *place)
{
    slot->flat = (struct iovec){slot->hold, slot->hold_size};
    place->iov = &slot->flat;
    place->count = 1;
    place->offset = offset;
    slot->placing = offset + length;
}

/* Memory that the owner gave takes all of the segment, or it goes through ops.hold(): the owner
 * may have asked for less than the initiator sends unasked. */
void tgt_data_place(struct tgt_slot *slot, uint32_t offset, uint32_t length,
                    struct iscsi_place *place)
{
    place->discard = true;
    if (slot->fail || slot->answered || slot->lost || (slot->wants && offset >= slot->wanted))
        return;
    if (slot->wants && length <= slot->wanted - offset) {
        place->discard = false;
        place->iov = slot->iov;
        place->count = slot->iov_count;
        place->offset = offset;
        return;
    }
    if (slot->wants) {
        if (!tgt_slot_hold(slot, slot->first_burst)) {
            tgt_command_fail(slot, TGT_FAIL_BUSY);
            return;
        }
        slot->hold_from = slot->hold_used = offset;
    }
    place->discard = false;
    place_in_hold(slot, offset, length, place);
}

void tgt_data_placed(struct tgt_slot *slot)
{
    slot->receiving = false;
    if (slot->placing > 0)
        slot->hold_used = slot->placing;
    slot->placing = 0;
    if (slot->wants)
        tgt_data_unhold(slot);
}

static void copy_in(const struct tgt_slot *slot)
{
    struct iov_place at = {slot->iov, slot->iov_count, 0};
    uint32_t done = slot->hold_from, end = least(slot->hold_used, slot->wanted);

    iov_advance(&at, done);
    while (done < end) {
        uint8_t *piece;
        size_t n = iov_piece(&at, end - done, &piece);

        if (n == 0)
            return;
        memcpy(piece, slot->hold + done, n);
        iov_advance(&at, n);
        done += (uint32_t)n;
    }
}

void tgt_data_unhold(struct tgt_slot *slot)
{
    struct tgt *t = slot->session->tgt;

    if (!slot->hold)
        return;
    copy_in(slot);
    t->opts.ops.unhold(t->opts.user, slot->hold, slot->hold_size);
    slot->hold = NULL;
    slot->hold_from = slot->hold_used = 0;
}

/* ---- what is due ---- */

bool tgt_data_due(const struct tgt_slot *slot)
{
    return slot->unsolicited.open || slot->bursts_open > 0;
}

void tgt_data_stop(struct tgt_slot *slot)
{
    slot->stop_r2t = true;
    if (slot->conn && slot->list == &slot->conn->r2t)
        tgt_list_remove(slot);
}

static unsigned open_bursts(const struct tgt_slot *slot)
{
    unsigned n = 0;

    for (unsigned bits = slot->bursts_open; bits > 0; bits &= bits - 1)
        n++;
    return n;
}

static bool may_ask(const struct tgt_slot *slot)
{
    return slot->wants && slot->arrived && !slot->stop_r2t && !slot->answered &&
           !slot->unsolicited.open && slot->asked < slot->wanted &&
           open_bursts(slot) < slot->session->params.max_outstanding_r2t;
}

void tgt_data_ask(struct tgt_slot *slot)
{
    if (slot->list || !may_ask(slot))
        return;
    tgt_list_append(&slot->conn->r2t, slot);
    tgt_conn_wake(slot->conn);
}

void tgt_data_check(struct tgt_slot *slot)
{
    struct tgt *t = slot->session->tgt;
    uint32_t unasked = slot->immediate_bytes + slot->unsolicited.received;

    if (slot->retired || !slot->wants || slot->told || !slot->arrived || slot->fail ||
        slot->answered || slot->wanted == 0)
        return;
    if (!slot->unsolicited.open && least(unasked, slot->wanted) + slot->solicited >= slot->wanted) {
        slot->told = true;
        t->opts.ops.data(t->opts.user, &slot->pub.task);
    } else {
        tgt_data_ask(slot);
    }
}

/* ---- R2T ---- */

void tgt_out_r2t(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    struct tgt_session *s = slot->session;
    unsigned i = 0;

    while (slot->bursts_open & 1u << i)
        i++;

    struct tgt_burst *burst = &slot->bursts[i];
    uint32_t generation =
        s->ttt_generation++ % 0xffff; /* never all ones: TTT is not the reserved */

    *burst = (struct tgt_burst){
        .ttt = generation << (BURST_BITS + INDEX_BITS) | (uint32_t)slot->index << BURST_BITS | i,
        .offset = slot->asked,
        .length = least(s->params.max_burst_length, slot->wanted - slot->asked),
        .open = true,
    };
    slot->bursts_open |= 1u << i;
    slot->asked += burst->length;

    struct iscsi_r2t pdu = {
        .lun = slot->lun,
        .itt = slot->itt,
        .ttt = burst->ttt,
        .stat_sn = tgt_stat_sn(slot->conn, false),
        .exp_cmd_sn = s->exp_cmd_sn,
        .max_cmd_sn = s->max_cmd_sn,
        .r2t_sn = slot->r2t_sn++,
        .buffer_offset = burst->offset,
        .desired_data_transfer_length = burst->length,
    };

    s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_r2t_pack(out->bhs, &pdu);
    tgt_list_remove(slot);
    tgt_data_ask(slot);
}

/* ---- Data-Out ---- */

static struct tgt_slot *find_solicited(struct tgt_conn *c, const struct iscsi_data_out *pdu,
                                       struct tgt_burst **burst)
{
    uint32_t index = pdu->ttt >> BURST_BITS & ((1u << INDEX_BITS) - 1);
    uint32_t i = pdu->ttt & ((1u << BURST_BITS) - 1);

    if (index >= c->session->slot_count || i >= TGT_R2T_MAX)
        return NULL;

    struct tgt_slot *slot = tgt_slot_at(c->session, index);

    if (slot->kind != TGT_COMMAND || slot->retired || slot->conn != c || slot->itt != pdu->itt ||
        slot->lun != pdu->lun || !(slot->bursts_open & 1u << i) || slot->bursts[i].ttt != pdu->ttt)
        return NULL;
    *burst = &slot->bursts[i];
    return slot;
}

static struct tgt_slot *find_unsolicited(struct tgt_conn *c, const struct iscsi_data_out *pdu,
                                         struct tgt_burst **burst)
{
    struct tgt_slot *slot = tgt_slot_find(c->session, pdu->itt);

    if (!slot || slot->kind != TGT_COMMAND || slot->conn != c)
        return NULL;
    *burst = &slot->unsolicited;
    if (!slot->unsolicited.open) { /* T-OUT-01: nobody asked, and none was announced */
        tgt_command_fail(slot, TGT_FAIL_UNEXPECTED);
        slot->unsolicited.open = true;
    }
    return slot;
}

int tgt_on_data_out(struct tgt_conn *c, struct iscsi_place *place)
{
    struct tgt_in *in = &c->in;
    struct iscsi_data_out pdu;

    iscsi_data_out_unpack(in->bhs, &pdu);
    in->slot = pdu.ttt == ISCSI_TAG_NONE ? find_unsolicited(c, &pdu, &in->burst)
                                         : find_solicited(c, &pdu, &in->burst);
    if (!in->slot) {
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
        return -1;
    }

    struct tgt_slot *slot = in->slot;
    struct tgt_burst *burst = in->burst;
    uint32_t end = burst->offset + burst->length;

    slot->receiving = true;
    place->discard = true;
    if (slot->fail || slot->answered)
        return 0; /* only its F is of interest */
    if (pdu.buffer_offset < burst->offset || pdu.buffer_offset > end) { /* T-OUT-05 */
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
        tgt_command_fail(slot, TGT_FAIL_AMOUNT);
    } else if (pdu.data_sn != burst->data_sn ||
               pdu.buffer_offset != burst->offset + burst->received) {
        tgt_command_fail(slot, TGT_FAIL_CRC); /* one is lost: 7.9 */
    } else if (pdu.data_segment_length > end - pdu.buffer_offset) {
        tgt_command_fail(slot, burst == &slot->unsolicited ? TGT_FAIL_UNEXPECTED : TGT_FAIL_AMOUNT);
    } else if (pdu.data_segment_length > 0) {
        tgt_data_place(slot, pdu.buffer_offset, pdu.data_segment_length, place);
    }
    return 0;
}

static void close_burst(struct tgt_slot *slot, struct tgt_burst *burst)
{
    burst->open = false;
    if (burst != &slot->unsolicited)
        slot->bursts_open &= ~(1u << (burst - slot->bursts));
    if (slot->session->tmfs.first)
        tgt_dirty(slot->session);
}

void tgt_data_out_complete(struct tgt_conn *c)
{
    struct tgt_slot *slot = c->in.slot;
    struct tgt_burst *burst = c->in.burst;
    bool full;

    burst->data_sn++;
    burst->received += c->in.h.data_segment_length;
    full = burst->received >= burst->length;
    if (burst != &slot->unsolicited)
        slot->solicited += c->in.h.data_segment_length;
    tgt_data_placed(slot);
    if (slot->retired) {
        tgt_slot_retire(slot);
        return;
    }
    if (c->in.h.final) {
        close_burst(slot, burst);
        if (!full) /* T-OUT-03, T-OUT-06 */
            tgt_command_fail(slot, TGT_FAIL_AMOUNT);
    } else if (full && burst != &slot->unsolicited) {
        close_burst(slot, burst);
        tgt_command_fail(slot, TGT_FAIL_AMOUNT);
    }
    if (slot->fail || slot->answered)
        tgt_command_advance(slot);
    else
        tgt_data_check(slot);
}

void tgt_data_out_damaged(struct tgt_conn *c)
{
    struct tgt_slot *slot = c->in.slot;

    tgt_data_placed(slot);
    if (slot->retired) {
        tgt_slot_retire(slot);
        return;
    }
    tgt_command_fail(slot, TGT_FAIL_CRC);
    c->in.burst->data_sn++;
    if (c->in.h.final)
        close_burst(slot, c->in.burst);
    tgt_command_advance(slot);
}
