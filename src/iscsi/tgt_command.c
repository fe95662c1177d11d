/* SPDX-License-Identifier: BSD-2-Clause */
/* SCSI commands: their headers, the owner's answer, residuals and status (RFC 7143 11.3, 11.4). */
#include "iscsi/tgt_int.h"

#include <string.h>

#include "base/bytes.h"

enum {
    STATUS_GOOD = 0x00, /* SAM-5 */
    STATUS_CHECK_CONDITION = 0x02,
    STATUS_CONDITION_MET = 0x04,
    STATUS_BUSY = 0x08,
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- the header ---- */

/* A request header: refuses what cannot be a new request of this kind now. 0: go on. */
static int refuse(struct tgt_conn *c, const struct iscsi_scsi_command *pdu, enum tgt_turn *turn)
{
    struct tgt_session *s = c->session;

    *turn = tgt_order_header(c, TGT_COMMAND, pdu->immediate, pdu->cmd_sn);
    if (*turn == TGT_TURN_NEVER)
        return -1;

    struct tgt_slot *live = tgt_slot_find(s, pdu->itt);

    if (live && live->cmd_sn == pdu->cmd_sn && live->kind == TGT_COMMAND)
        return -1; /* T-NUM-07: a retry of what is in work */
    if (live)
        tgt_reject(c, ISCSI_REJECT_TASK_IN_PROGRESS);
    else if (pdu->itt == ISCSI_TAG_NONE || (!pdu->final && !pdu->write))
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
    else if (c->logout_asked || c->logout)
        tgt_reject(c, ISCSI_REJECT_WAITING_FOR_LOGOUT);
    else if (pdu->immediate && tgt_slot_immediate_full(c, TGT_COMMAND))
        tgt_reject(c, ISCSI_REJECT_TOO_MANY_IMMEDIATE);
    else
        return 0;
    return -1;
}

/* What its unsolicited data say about it (T-OUT-01, T-OUT-02). */
static enum tgt_fail judge(const struct tgt_session *s, const struct iscsi_scsi_command *pdu,
                           uint32_t first_burst)
{
    if (pdu->read && pdu->write)
        return TGT_FAIL_BIDI;
    if (pdu->data_segment_length > 0 && (!pdu->write || !s->params.immediate_data))
        return TGT_FAIL_UNEXPECTED;
    if (!pdu->final && s->params.initial_r2t)
        return TGT_FAIL_UNEXPECTED;
    if (pdu->data_segment_length > first_burst)
        return TGT_FAIL_UNEXPECTED;
    return TGT_FAIL_NONE;
}

static void fill(struct tgt_slot *slot, const struct iscsi_scsi_command *pdu)
{
    struct tgt_session *s = slot->session;
    struct tgt_task *task = &slot->pub.task;

    memcpy(slot->cdb, pdu->cdb, sizeof(pdu->cdb));
    *task = (struct tgt_task){
        .session = s,
        .conn = slot->conn,
        .lun = pdu->lun,
        .attr = pdu->attr,
        .priority = s->params.protocol_level >= 2 ? pdu->priority : 0,
        .immediate = pdu->immediate,
        .read = pdu->read,
        .write = pdu->write,
        .edtl = pdu->expected_data_transfer_length,
        .itt = pdu->itt,
        .cmd_sn = pdu->cmd_sn,
        .cdb_length = sizeof(pdu->cdb),
        .cdb = slot->cdb,
        .user = (uint8_t *)slot + s->slot_stride - s->tgt->user_bytes,
    };
    if (pdu->write) {
        slot->first_burst = least(s->params.first_burst_length, task->edtl);
        slot->unsolicited = (struct tgt_burst){
            .ttt = ISCSI_TAG_NONE,
            .offset = pdu->data_segment_length,
            .length = slot->first_burst - least(slot->first_burst, pdu->data_segment_length),
            .open = !pdu->final,
        };
    }
    slot->asked =
        slot->unsolicited.offset + (slot->unsolicited.open ? slot->unsolicited.length : 0);
}

/* An extended CDB (11.2.2.3). Another AHS is one that is not served: bidirectional. */
static bool take_ahs(struct tgt_slot *slot, const struct iscsi_ahs *ahs)
{
    if (ahs->extended_cdb) {
        memcpy(slot->cdb + 16, ahs->cdb_rest, ahs->cdb_rest_length);
        slot->pub.task.cdb_length = (uint16_t)(16 + ahs->cdb_rest_length);
    }
    return !ahs->bidi;
}

int tgt_on_command(struct tgt_conn *c, struct iscsi_place *place)
{
    struct tgt_in *in = &c->in;
    struct iscsi_scsi_command pdu;
    struct iscsi_ahs ahs = {0};
    enum tgt_turn turn;
    bool unknown = false;

    iscsi_scsi_command_unpack(in->bhs, &pdu);
    if (in->ahs_length > 0 && iscsi_ahs_unpack(in->ahs, in->ahs_length, &ahs, &unknown) != 0) {
        tgt_conn_format_error(c, "the additional header segments of a SCSI Command do not fit");
        return -1;
    }
    if (refuse(c, &pdu, &turn) != 0)
        return -1;
    if (unknown) {
        tgt_reject(c, ISCSI_REJECT_NOT_SUPPORTED);
        return -1;
    }

    struct tgt_slot *slot = tgt_slot_take(c, TGT_COMMAND, &in->h, pdu.cmd_sn);

    if (!slot) {
        tgt_reject(c, ISCSI_REJECT_NO_RESOURCES);
        return -1;
    }
    fill(slot, &pdu);
    slot->fail = (uint8_t)judge(c->session, &pdu, slot->first_burst);
    if (!take_ahs(slot, &ahs))
        slot->fail = TGT_FAIL_BIDI;
    c->session->tgt->counters.commands++;
    in->slot = slot;
    slot->receiving = true;
    tgt_order_take(slot, turn);
    if (slot->turn)
        tgt_command_run(slot);

    bool data_come =
        slot->first_burst > 0 && (pdu.data_segment_length > 0 || slot->unsolicited.open);

    if (data_come && !slot->fail && !slot->wants && !slot->answered &&
        !tgt_slot_hold(slot, slot->first_burst))
        tgt_command_fail(slot, TGT_FAIL_BUSY);
    if (pdu.data_segment_length > 0)
        tgt_data_place(slot, 0, pdu.data_segment_length, place);
    return 0;
}

void tgt_command_complete(struct tgt_conn *c)
{
    struct tgt_slot *slot = c->in.slot;

    slot->immediate_bytes = c->in.h.data_segment_length;
    tgt_data_placed(slot);
    if (slot->retired) {
        tgt_slot_retire(slot);
        return;
    }
    tgt_order_arrived(slot);
    if (slot->kind == TGT_COMMAND)
        tgt_data_check(slot);
}

/* T-ERR-02: Reject 02 is on its way; the command comes again with its CmdSN. */
void tgt_command_damaged(struct tgt_conn *c)
{
    struct tgt_slot *slot = c->in.slot;

    slot->receiving = false;
    if (slot->retired)
        tgt_slot_retire(slot);
    else
        tgt_order_drop(slot);
}

/* ---- its way ---- */

void tgt_command_run(struct tgt_slot *slot)
{
    struct tgt *t = slot->session->tgt;

    if (!slot->delivered && !slot->fail && !slot->ended) {
        slot->delivered = true;
        t->opts.ops.command(t->opts.user, &slot->pub.task);
        return;
    }
    tgt_command_advance(slot);
}

void tgt_command_fail(struct tgt_slot *slot, enum tgt_fail fail)
{
    struct tgt *t = slot->session->tgt;

    tgt_data_stop(slot);
    if (slot->answered || slot->fail)
        return; /* the first word counts */
    slot->fail = (uint8_t)fail;
    if (slot->delivered) {
        slot->aborted = true;
        t->opts.ops.abort(t->opts.user, &slot->pub.task);
    }
}

/* Fixed format sense data (SPC-4 4.5.3). */
static void sense(struct tgt_slot *slot, uint8_t key, uint8_t asc, uint8_t ascq)
{
    uint8_t *p = slot->sense + 2;

    memset(p, 0, 18);
    p[0] = 0x70;
    p[2] = key;
    p[7] = 10;
    p[12] = asc;
    p[13] = ascq;
    slot->answer.sense_length = 18;
}

/* 11.4.7.2 names the sense data for iSCSI's own conditions. */
static void answer_failure(struct tgt_slot *slot)
{
    enum { ILLEGAL_REQUEST = 5, ABORTED_COMMAND = 0xb };

    slot->answer = (struct tgt_answer){.status = STATUS_CHECK_CONDITION};
    switch (slot->fail) {
    case TGT_FAIL_UNEXPECTED:
        sense(slot, ABORTED_COMMAND, 0x0c, 0x0c);
        break;
    case TGT_FAIL_AMOUNT:
        sense(slot, ABORTED_COMMAND, 0x0c, 0x0d);
        break;
    case TGT_FAIL_CRC:
        sense(slot, ABORTED_COMMAND, 0x47, 0x05);
        break;
    case TGT_FAIL_BIDI: /* INVALID FIELD IN COMMAND INFORMATION UNIT */
        sense(slot, ILLEGAL_REQUEST, 0x0e, 0x03);
        break;
    default:
        slot->answer.status = STATUS_BUSY;
        break;
    }
}

/* 11.4.5. Data in a direction that the initiator did not announce count as not expected. */
static void count_residual(struct tgt_slot *slot)
{
    const struct tgt_task *task = &slot->pub.task;
    const struct tgt_answer *a = &slot->answer;
    bool wrong_way = (slot->wants && !task->write) || (a->length > 0 && !task->read) ||
                     (!task->read && !task->write && a->transfer > 0);
    uint64_t expected = wrong_way ? 0 : task->edtl;
    uint64_t difference = a->transfer > expected ? a->transfer - expected : expected - a->transfer;

    slot->in_at = (struct iov_place){a->iov, a->iov_count, 0};
    slot->in_length = task->read ? least(a->length, task->edtl) : 0;
    slot->overflow = a->transfer > expected;
    slot->underflow = a->transfer < expected;
    slot->residual = difference > UINT32_MAX ? UINT32_MAX : (uint32_t)difference;
    if (a->target_failure) { /* T-RSP-02 */
        slot->overflow = slot->underflow = false;
        slot->residual = 0;
        slot->in_length = 0;
    }
}

void tgt_command_advance(struct tgt_slot *slot)
{
    if (slot->retired) {
        tgt_slot_retire(slot);
        return;
    }
    if (slot->packed || !slot->turn || !slot->arrived || (slot->delivered && !slot->answered))
        return;
    tgt_data_stop(slot);
    if (slot->list)
        return;               /* on its way out */
    if (tgt_data_due(slot)) { /* T-OUT-07, and what an ABORT TASK left over */
        if (slot->ended && !slot->fail && !slot->is_zombie) {
            slot->is_zombie = true;
            slot->session->zombies++;
        }
        return;
    }
    if (slot->ended && !slot->fail) {
        tgt_slot_retire(slot);
        return;
    }
    if (slot->fail)
        answer_failure(slot);
    count_residual(slot);
    tgt_respond(slot);
}

/* ---- the owner's calls ---- */

uint32_t tgt_task_receive(struct tgt_task *task, const struct iovec *iov, unsigned iov_count,
                          uint32_t length)
{
    struct tgt_slot *slot = (struct tgt_slot *)(void *)task;
    struct tgt *t = slot->session->tgt;

    if (slot->wants || slot->answered)
        return 0;
    slot->wants = true;
    if (!task->write)
        return 0;
    slot->wanted = least(length, task->edtl);
    slot->iov = iov;
    slot->iov_count = iov_count;
    if (slot->wanted == 0 || slot->lost || slot->fail)
        return slot->wanted;
    tgt_enter(t);
    if (!slot->receiving)
        tgt_data_unhold(slot);

    uint32_t wanted = slot->wanted;

    tgt_data_check(slot);
    tgt_leave(t);
    return wanted;
}

void tgt_task_respond(struct tgt_task *task, const struct tgt_answer *answer)
{
    struct tgt_slot *slot = (struct tgt_slot *)(void *)task;
    struct tgt *t = slot->session->tgt;

    tgt_enter(t);
    slot->answered = true;
    slot->answer = *answer;
    if (answer->sense_length > TGT_SENSE_MAX)
        slot->answer.sense_length = TGT_SENSE_MAX;
    if (slot->answer.sense_length > 0)
        memcpy(slot->sense + 2, answer->sense, slot->answer.sense_length);
    tgt_command_advance(slot);
    tgt_leave(t);
}

void tgt_task_end(struct tgt_task *task)
{
    struct tgt_slot *slot = (struct tgt_slot *)(void *)task;
    struct tgt *t = slot->session->tgt;

    tgt_enter(t);
    slot->answered = true;
    slot->ended = true;
    tgt_command_advance(slot);
    tgt_leave(t);
}

/* ---- the response ---- */

static bool exception(const struct tgt_slot *slot)
{
    const struct tgt_answer *a = &slot->answer;

    return a->target_failure || a->sense_length > 0 || a->status_qualifier != 0 ||
           (a->status != STATUS_GOOD && a->status != STATUS_CONDITION_MET);
}

static void out_response(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    const struct tgt_answer *a = &slot->answer;
    struct tgt_session *s = slot->session;
    struct iscsi_scsi_response pdu = {
        .overflow = slot->overflow,
        .underflow = slot->underflow,
        .response = a->target_failure ? ISCSI_TARGET_FAILURE : ISCSI_COMPLETED_AT_TARGET,
        .status = a->target_failure ? 0 : a->status,
        .status_qualifier = s->params.protocol_level >= 2 ? a->status_qualifier : 0,
        .itt = slot->itt,
        .residual_count = slot->residual,
    };

    tgt_slot_packed(slot);
    pdu.exp_data_sn = a->target_failure ? 0 : slot->data_sn;
    if (a->sense_length > 0 && !a->target_failure) {
        store_be16(slot->sense, a->sense_length);
        pdu.data_segment_length = 2u + a->sense_length;
        slot->flat = (struct iovec){slot->sense, pdu.data_segment_length};
        out->iov = &slot->flat;
        out->count = 1;
        out->length = pdu.data_segment_length;
        out->copy = true;
    }
    pdu.stat_sn = tgt_stat_sn(slot->conn, true);
    pdu.exp_cmd_sn = s->exp_cmd_sn;
    pdu.max_cmd_sn = s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_scsi_response_pack(out->bhs, &pdu);
}

/* Cut to what the initiator takes, F at the end of each burst; status in the last if it is no
 * exception (11.7.3). A piece that does not end a burst is a multiple of four bytes (T-IN-01). */
static bool out_data_in(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    struct tgt_conn *c = slot->conn;
    struct tgt_session *s = slot->session;
    uint32_t left = slot->in_length - slot->in_sent;
    uint32_t burst = least(left, s->params.max_burst_length - slot->in_burst);
    uint32_t length = least(burst, c->params.mrdsl_out & ~3u);
    bool last = length == left;
    struct iscsi_data_in pdu = {
        .final = length == burst,
        .status_present = last && !exception(slot),
        .data_segment_length = length,
        .itt = slot->itt,
        .ttt = ISCSI_TAG_NONE,
        .data_sn = slot->data_sn++,
        .buffer_offset = slot->in_sent,
    };

    if (pdu.status_present) {
        tgt_slot_packed(slot);
        pdu.status = slot->answer.status;
        pdu.overflow = slot->overflow;
        pdu.underflow = slot->underflow;
        pdu.residual_count = slot->residual;
        pdu.stat_sn = tgt_stat_sn(c, true);
    }
    pdu.exp_cmd_sn = s->exp_cmd_sn;
    pdu.max_cmd_sn = s->told_max_cmd_sn = s->max_cmd_sn;
    iscsi_data_in_pack(out->bhs, &pdu);
    out->owner = slot;
    slot->tx_pieces++;
    out->iov = slot->in_at.iov;
    out->count = slot->in_at.count;
    out->offset = slot->in_at.offset;
    out->length = length;
    iov_advance(&slot->in_at, length);
    slot->in_sent += length;
    slot->in_burst = pdu.final ? 0 : slot->in_burst + length;
    return pdu.status_present;
}

bool tgt_out_command(struct tgt_slot *slot, struct iscsi_tx_pdu *out)
{
    if (slot->in_sent < slot->in_length)
        return out_data_in(slot, out);
    out_response(slot, out);
    return true;
}
