/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations: lists, tags, and the one way out of each. */
#include "iscsi/ini_int.h"

void ini_list_append(struct ini_list *l, struct ini_op *op)
{
    op->list = l;
    op->next = NULL;
    op->prev = l->last;
    if (l->last)
        l->last->next = op;
    else
        l->first = op;
    l->last = op;
}

void ini_list_prepend(struct ini_list *l, struct ini_op *op)
{
    op->list = l;
    op->prev = NULL;
    op->next = l->first;
    if (l->first)
        l->first->prev = op;
    else
        l->last = op;
    l->first = op;
}

void ini_list_remove(struct ini_op *op)
{
    struct ini_list *l = op->list;

    if (!l)
        return;
    if (op->prev)
        op->prev->next = op->next;
    else
        l->first = op->next;
    if (op->next)
        op->next->prev = op->prev;
    else
        l->last = op->prev;
    op->list = NULL;
    op->next = op->prev = NULL;
}

void ini_op_begin(struct ini_op *op, struct ini_session *s, enum ini_kind kind, uint64_t deadline)
{
    *op = (struct ini_op){
        .session = s,
        .kind = (uint8_t)kind,
        .state = INI_WAITING,
        .deadline = deadline,
        .itt = ISCSI_TAG_NONE,
    };
    if (deadline < s->next_deadline)
        s->next_deadline = deadline;
}

/* ---- tags ---- */

static uint32_t slot_index(const struct ini_session *s, uint32_t itt)
{
    return itt & ((1u << s->slot_bits) - 1);
}

bool ini_op_tag(struct ini_op *op)
{
    struct ini_session *s = op->session;
    uint32_t ring = (1u << s->slot_bits) - 1;

    if (!s->free_count)
        return false;
    uint32_t index = s->free_slots[s->free_head];
    s->free_head = (s->free_head + 1) & ring;
    s->free_count--;

    struct ini_slot *slot = &s->slots[index];
    do {
        slot->generation++;
        op->itt = slot->generation << s->slot_bits | index;
    } while (op->itt == ISCSI_TAG_NONE);
    slot->op = op;
    return true;
}

static void untag(struct ini_op *op, bool dropped)
{
    struct ini_session *s = op->session;
    uint32_t ring = (1u << s->slot_bits) - 1;

    if (op->itt == ISCSI_TAG_NONE)
        return;
    uint32_t index = slot_index(s, op->itt);
    s->slots[index].op = NULL;
    if (dropped)
        s->slots[index].dropped = op->itt;
    s->free_slots[(s->free_head + s->free_count++) & ring] = index;
    op->itt = ISCSI_TAG_NONE;
}

struct ini_op *ini_op_find(struct ini_session *s, uint32_t itt)
{
    struct ini_op *op = itt == ISCSI_TAG_NONE ? NULL : s->slots[slot_index(s, itt)].op;

    /* Only what has been sent can be answered. */
    return op && op->itt == itt && (op->state == INI_SENT || op->state == INI_RESEND) ? op : NULL;
}

bool ini_op_dropped(const struct ini_session *s, uint32_t itt)
{
    const struct ini_slot *slot = &s->slots[slot_index(s, itt)];

    if (itt == ISCSI_TAG_NONE)
        return false;
    return slot->dropped == itt ||
           (slot->op && slot->op->itt == itt && slot->op->state == INI_ENDING);
}

struct ini_op *ini_op_answered(struct ini_conn *c, uint32_t itt, enum ini_kind kind,
                               const char *pdu)
{
    struct ini_session *s = c->session;
    struct ini_op *op = ini_op_find(s, itt);

    if (op && op->kind == kind && op->conn == c)
        return op;
    if (!op && ini_op_dropped(s, itt))
        s->counters.stale_responses++;
    else
        ini_fail(c, INI_CLOSE_PROTOCOL,
                 "the target sent a %s with the tag 0x%08x, which no such request of this "
                 "connection carries",
                 pdu, (unsigned)itt);
    return NULL;
}

/* ---- the end ---- */

static void finish(struct ini_op *op)
{
    ini_list_remove(op);
    op->state = INI_FINISHED;
    ini_list_append(&op->session->finished, op);
}

static void leave_connection(struct ini_op *op)
{
    struct ini_session *s = op->session;
    struct ini_conn *c = op->conn;
    bool sent = op->state == INI_SENT || op->state == INI_RESEND;

    ini_list_remove(op);
    if (op->kind == INI_KIND_TASK) {
        ini_burst_drop(ini_task_of(op));
        if (sent) {
            s->in_flight--;
            c->in_flight--;
        }
    }
    if (op->kind == INI_KIND_TMF)
        ini_tmf_over(ini_tmf_of(op));
    if (op->kind == INI_KIND_TEXT && c && c->text == ini_text_of(op))
        c->text = NULL;
}

static void end(struct ini_op *op, enum ini_result result, bool may_be_answered)
{
    struct ini_conn *c = op->conn;

    if (op->state == INI_ENDING || op->state == INI_FINISHED || op->state == INI_IDLE)
        return;
    leave_connection(op);
    op->result = (uint8_t)result;
    op->state = INI_ENDING;
    if (!op->tx_pieces && !(c && c->rx_op == op)) {
        untag(op, may_be_answered);
        finish(op);
    } else if (may_be_answered) {
        op->aborting = true; /* remembered for the tag's end */
    } else {
        op->aborting = false;
    }
    if (c)
        ini_check_drained(c);
    ini_wake_all(op->session); /* a tag or a place in the depth is free */
}

void ini_op_end(struct ini_op *op, enum ini_result result)
{
    end(op, result, false);
}

void ini_op_drop(struct ini_op *op, enum ini_result result)
{
    end(op, result, true);
}

void ini_op_released(struct ini_op *op)
{
    struct ini_conn *c = op->conn;

    if (op->state != INI_ENDING || op->tx_pieces || (c && c->rx_op == op))
        return;
    untag(op, op->aborting);
    finish(op);
    ini_wake_all(op->session);
}

static void lose_list(struct ini_list *l)
{
    while (l->first)
        ini_op_end(l->first, INI_LOST);
}

/* The transport of c touches no buffer any more, and its send slots are empty. */
void ini_op_lose_all(struct ini_session *s, struct ini_conn *c)
{
    if (!c) {
        lose_list(&s->waiting);
        return;
    }
    c->rx_op = NULL;
    lose_list(&c->urgent);
    lose_list(&c->resend);
    lose_list(&c->queue);
    lose_list(&c->texts);
    for (uint32_t i = 0; i < 1u << s->slot_bits; i++) {
        struct ini_op *op = s->slots[i].op;
        if (!op || op->conn != c)
            continue;
        ini_op_end(op, INI_LOST);
        ini_op_released(op);
    }
}

/* ---- words ---- */

const char *ini_result_name(enum ini_result result)
{
    static const char *const names[] = {
        [INI_OK] = "answered",
        [INI_TARGET_FAILURE] = "target failure",
        [INI_LOST] = "connection lost",
        [INI_ABORTED] = "aborted",
        [INI_REJECTED] = "rejected by the target",
        [INI_PROTOCOL] = "the target's answer breaks the protocol",
        [INI_REFUSED] = "the session cannot do this now",
    };
    return names[result];
}
