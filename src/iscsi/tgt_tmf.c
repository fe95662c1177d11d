/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Task management (RFC 7143 11.5, 11.6, 4.2.3; RFC 7144 4.1).
 *
 * What concerns tags and numbers is answered here; the rest is the owner's. A function on several
 * tasks goes to the owner once all commands before it have come and, in the standard way, the data
 * sequences of the tasks that it covers are over. Commands after it wait for that moment.
 */
#include "iscsi/tgt_int.h"

#include "base/serial.h"

static bool whole_target(uint8_t function)
{
    return function == ISCSI_TARGET_WARM_RESET || function == ISCSI_TARGET_COLD_RESET;
}

static void answer(struct tgt_slot *slot, enum iscsi_tmf_result response)
{
    slot->response = (uint8_t)response;
    slot->answered = true;
    tgt_respond(slot);
}

static void to_owner(struct tgt_slot *slot, struct tgt_task *task)
{
    struct tgt_session *s = slot->session;

    slot->pub.tmf = (struct tgt_tmf){
        .session = s,
        .conn = slot->lost ? NULL : slot->conn,
        .function = slot->function,
        .lun = slot->lun,
        .cmd_sn = slot->cmd_sn,
        .task = task,
        .user = (uint8_t *)slot + s->slot_stride - s->tgt->user_bytes,
    };
    slot->delivered = true;
    s->tgt->opts.ops.tmf(s->tgt->opts.user, &slot->pub.tmf);
}

/* ---- functions on one task ---- */

/* 11.6.1: it may be a command that never came. */
static void abort_unknown(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;
    uint32_t ref = slot->ref_cmd_sn;

    if (serial_le(s->exp_cmd_sn, ref) && serial_le(ref, s->max_cmd_sn) &&
        serial_lt(ref, slot->cmd_sn)) {
        tgt_order_plug(s, ref);
        answer(slot, ISCSI_TMF_COMPLETE);
    } else {
        answer(slot, ISCSI_TMF_NO_TASK);
    }
}

static void abort_task(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;
    struct tgt_slot *task = tgt_slot_find(s, slot->rtt);

    if (!task) {
        abort_unknown(slot);
    } else if (task->kind != TGT_COMMAND || task->conn != slot->conn) {
        answer(slot, ISCSI_TMF_REJECTED);
    } else if (task->in_ring) { /* its turn has not come, and will pass it by */
        tgt_order_plug(s, task->cmd_sn);
        task->in_ring = false;
        tgt_slot_retire(task);
        answer(slot, ISCSI_TMF_COMPLETE);
    } else if (task->delivered && !task->answered) {
        to_owner(slot, &task->pub.task);
    } else { /* done, but its response is not sent: then it never will be */
        tgt_list_remove(task);
        task->answered = task->ended = true;
        task->fail = TGT_FAIL_NONE;
        task->in_sent = task->in_length;
        tgt_command_advance(task);
        answer(slot, ISCSI_TMF_COMPLETE);
    }
}

static void query_task(struct tgt_slot *slot)
{
    struct tgt_slot *task = tgt_slot_find(slot->session, slot->rtt);
    bool there = task && task->kind == TGT_COMMAND && task->lun == slot->lun && !task->ended;

    answer(slot, there ? ISCSI_TMF_SUCCEEDED : ISCSI_TMF_COMPLETE);
}

/* ---- functions on many ---- */

static bool covers(const struct tgt_slot *tmf, const struct tgt_slot *task)
{
    return task->kind == TGT_COMMAND && !task->retired && task->turn &&
           (whole_target(tmf->function) || task->lun == tmf->lun);
}

/* Its tasks ask for no more data. True: some are still coming. */
static bool data_due(struct tgt_slot *tmf)
{
    struct tgt_session *s = tmf->session;
    bool due = false;

    for (unsigned i = 0; i < s->slot_count; i++) {
        struct tgt_slot *task = tgt_slot_at(s, i);

        if (!covers(tmf, task) || task->ended)
            continue;
        tgt_data_stop(task);
        due |= tgt_data_due(task);
    }
    return due;
}

static bool may_start(struct tgt_slot *tmf)
{
    struct tgt_session *s = tmf->session;

    if (serial_lt(s->exp_cmd_sn, tmf->cmd_sn)) {
        if (!whole_target(tmf->function))
            return false;
        /* 4.2.3.3 b: what has not come yet counts as received. */
        while (serial_lt(s->exp_cmd_sn, tmf->cmd_sn) && !s->early)
            tgt_order_skip(s);
        if (s->early)
            return false;
    }
    return !data_due(tmf);
}

bool tgt_tmf_blocks(const struct tgt_session *s, uint32_t cmd_sn)
{
    for (const struct tgt_slot *tmf = s->tmfs.first; tmf; tmf = tmf->next)
        if (serial_le(tmf->cmd_sn, cmd_sn))
            return true;
    return false;
}

void tgt_tmf_poll(struct tgt_session *s)
{
    struct tgt_slot *next;

    for (struct tgt_slot *tmf = s->tmfs.first; tmf; tmf = next) {
        next = tmf->next;
        if (!may_start(tmf))
            continue;
        tgt_list_remove(tmf);
        to_owner(tmf, NULL);
        tgt_dirty(s); /* commands behind it */
    }
    if (!s->tmfs.first)
        s->tmf_deadline = TGT_NEVER;
}

static void start_many(struct tgt_slot *slot)
{
    struct tgt_session *s = slot->session;
    struct tgt *t = s->tgt;

    tgt_list_append(&s->tmfs, slot);
    s->tmf_deadline = t->now + t->opts.data_timeout_ns;
    tgt_arm(t, s->tmf_deadline);
    tgt_tmf_poll(s);
}

/* ---- the request ---- */

int tgt_on_tmf(struct tgt_conn *c, struct iscsi_place *place)
{
    struct iscsi_tmf_request pdu;
    struct tgt_slot *slot;

    (void)place;
    iscsi_tmf_request_unpack(c->in.bhs, &pdu);
    if (c->logout) {
        tgt_reject(c, ISCSI_REJECT_WAITING_FOR_LOGOUT);
        return -1;
    }
    if (pdu.data_segment_length > 0) {
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
        return -1;
    }
    slot = tgt_request_take(c, TGT_TMF, pdu.cmd_sn);
    if (!slot)
        return -1;
    slot->function = pdu.function;
    slot->rtt = pdu.referenced_task_tag;
    slot->ref_cmd_sn = pdu.ref_cmd_sn;
    slot->exp_data_sn = pdu.exp_data_sn;
    return 0;
}

void tgt_tmf_run(struct tgt_slot *slot)
{
    bool rfc7144 = slot->session->params.protocol_level >= 2;

    switch (slot->function) {
    case ISCSI_ABORT_TASK:
        abort_task(slot);
        break;
    case ISCSI_CLEAR_ACA:
        to_owner(slot, NULL);
        break;
    case ISCSI_ABORT_TASK_SET:
    case ISCSI_CLEAR_TASK_SET:
    case ISCSI_LOGICAL_UNIT_RESET:
    case ISCSI_TARGET_WARM_RESET:
    case ISCSI_TARGET_COLD_RESET:
        slot->fenced = true;
        start_many(slot);
        break;
    case ISCSI_TASK_REASSIGN:
        answer(slot, slot->immediate ? ISCSI_TMF_NO_REASSIGN : ISCSI_TMF_REJECTED);
        break;
    case ISCSI_QUERY_TASK:
        if (rfc7144)
            query_task(slot);
        else
            answer(slot, ISCSI_TMF_NOT_SUPPORTED);
        break;
    case ISCSI_QUERY_TASK_SET:
    case ISCSI_I_T_NEXUS_RESET:
    case ISCSI_QUERY_ASYNC_EVENT:
        if (rfc7144)
            to_owner(slot, NULL);
        else
            answer(slot, ISCSI_TMF_NOT_SUPPORTED);
        break;
    default:
        answer(slot, ISCSI_TMF_NOT_SUPPORTED);
        break;
    }
}

/* ---- the answer ---- */

/* What the owner ended while data were due stays to take them, until the initiator knows. */
static void remember_zombie(struct tgt_slot *slot)
{
    struct tgt_slot *task = tgt_slot_find(slot->session, slot->rtt);

    if (slot->function == ISCSI_ABORT_TASK && task && task->is_zombie)
        slot->zombie = task;
}

void tgt_tmf_respond(struct tgt_tmf *tmf, enum iscsi_tmf_result response, uint32_t additional)
{
    struct tgt_slot *slot = (struct tgt_slot *)(void *)tmf;
    struct tgt *t = slot->session->tgt;

    tgt_enter(t);
    if (response != ISCSI_TMF_COMPLETE)
        slot->fenced = false;
    slot->additional = additional;
    answer(slot, response);
    tgt_leave(t);
}

void tgt_out_tmf(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    struct tgt_session *s = slot->session;
    struct iscsi_tmf_response pdu = {
        .response = slot->response,
        .additional_response = slot->additional,
        .itt = slot->itt,
        .stat_sn = tgt_stat_sn(slot->conn, true),
        .exp_cmd_sn = s->exp_cmd_sn,
        .max_cmd_sn = s->max_cmd_sn,
    };

    s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_tmf_response_pack(out->bhs, &pdu);
    remember_zombie(slot);
    if (slot->zombie) {
        slot->zombie->zombie_timed = true;
        slot->zombie->zombie_until = pdu.stat_sn;
    }
    if (s->fence_slot == slot) {
        s->fence_slot = NULL;
        s->fence_stat_sn = pdu.stat_sn;
    }
    if (slot->function == ISCSI_TARGET_COLD_RESET && slot->response == ISCSI_TMF_COMPLETE)
        s->cold_reset = true;
    tgt_dirty(s);
}
