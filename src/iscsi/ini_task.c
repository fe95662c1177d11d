/* SPDX-License-Identifier: BSD-2-Clause */
/* SCSI tasks: from submission to status (RFC 7143 11.3, 11.4). */
#include "iscsi/ini_int.h"

#include "base/bytes.h"

#include <string.h>

void ini_submit(struct ini_session *s, struct ini_task *task)
{
    struct ini_conn *c = ini_pick(s);

    ini_op_begin(&task->op, s, INI_KIND_TASK, task->deadline_ns);
    task->result = INI_LOST;
    task->reject = 0;
    task->scsi_status = 0;
    task->status_qualifier = 0;
    task->sense_length = 0;
    task->residual = 0;
    task->transferred = 0;
    task->moved.count = task->seen.count = 0;
    task->held.waits = task->ack_due = task->snack_refused = false;
    task->sn = 0;
    task->unsolicited = 0;
    task->seek_index = 0;
    task->seek_offset = 0;
    for (unsigned i = 0; i <= INI_R2T_MAX; i++)
        task->bursts[i].task = NULL;
    s->tasks++;
    if (s->state > INI_SESSION_OPEN || s->opts.login.discovery) {
        ini_op_end(&task->op, INI_REFUSED);
    } else if (c) {
        task->op.conn = c;
        ini_list_append(&c->queue, &task->op);
        if (ini_queue_ready(c))
            ini_wake(c);
    } else {
        ini_list_append(&s->waiting, &task->op);
    }
}

/* ---- the command ---- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Immediate bytes; *unsolicited: all that goes unasked, these included (13.10, 13.11, 13.14). */
static uint32_t write_plan(const struct ini_conn *c, const struct ini_task *task,
                           uint32_t *unsolicited)
{
    const struct iscsi_params *p = &c->session->params;
    uint32_t limit = smaller(p->first_burst_length, task->length);
    uint32_t immediate = p->immediate_data ? smaller(limit, c->params.mrdsl_out) : 0;

    *unsolicited = p->initial_r2t ? immediate : limit;
    return immediate;
}

static uint8_t pack_long_cdb(const struct ini_task *task, struct iscsi_tx_pdu *out)
{
    struct iscsi_ahs ahs = {.extended_cdb = true};

    if (task->cdb_length <= 16)
        return 0;
    ahs.cdb_rest_length = (uint16_t)(task->cdb_length - 16);
    memcpy(ahs.cdb_rest, task->cdb_rest, ahs.cdb_rest_length);
    out->ahs_length = (uint32_t)iscsi_ahs_pack(out->ahs, &ahs);
    return (uint8_t)(out->ahs_length / 4);
}

/* Writes the SCSI Command; the same bytes again when it is sent a second time (7.2.1), but for
 * ExpStatSN. */
void ini_task_command(struct ini_conn *c, struct ini_task *task, struct iscsi_tx_pdu *out)
{
    bool write = task->direction == INI_WRITE;
    uint32_t unsolicited = 0, immediate = write ? write_plan(c, task, &unsolicited) : 0;
    struct iscsi_scsi_command pdu = {
        .final = unsolicited == immediate,
        .read = task->direction == INI_READ,
        .write = write,
        .attr = task->attr,
        .priority = c->session->params.protocol_level >= 2 ? task->priority : 0,
        .ahs_words = pack_long_cdb(task, out),
        .data_segment_length = immediate,
        .lun = task->lun,
        .itt = task->op.itt,
        .expected_data_transfer_length = task->direction == INI_NONE ? 0 : task->length,
        .cmd_sn = task->op.cmd_sn,
        .exp_stat_sn = c->exp_stat_sn,
    };

    memcpy(pdu.cdb, task->cdb, sizeof pdu.cdb);
    iscsi_scsi_command_pack(out->bhs, &pdu);
    if (immediate)
        ini_payload(task, 0, immediate, out);
    task->unsolicited = unsolicited;
    task->segmentation = c->segmentation;
    ini_extents_add(&task->moved, 0, immediate);
    if (unsolicited > immediate) {
        struct ini_burst *burst = &task->bursts[INI_R2T_MAX];
        *burst = (struct ini_burst){
            .task = task,
            .ttt = ISCSI_TAG_NONE,
            .offset = immediate,
            .length = unsolicited - immediate,
        };
        c->unsolicited = burst;
    }
    c->session->counters.commands++;
}

/* ---- the status ---- */

/* GOOD and its kin promise that everything but the residual has moved; see that it has. */
static bool data_complete(const struct ini_task *task, uint32_t promised)
{
    if (task->direction == INI_NONE)
        return true;
    return ini_extents_cover(&task->moved, promised);
}

static uint32_t bytes_moved(const struct ini_task *task, uint32_t promised)
{
    if (task->direction == INI_NONE)
        return 0;
    if (task->direction == INI_READ && !ini_extents_cover(&task->moved, promised))
        return task->moved.count && task->moved.of[0].begin == 0 ? task->moved.of[0].end : 0;
    return promised;
}

static bool is_good(uint8_t status)
{
    return status == 0x00 || status == 0x04 || status == 0x10 || status == 0x14;
}

void ini_task_status(struct ini_task *task, uint8_t status, bool overflow, bool underflow,
                     uint32_t residual)
{
    uint32_t length = task->direction == INI_NONE ? 0 : task->length;

    if (underflow && residual > length) {
        ini_op_end(&task->op, INI_PROTOCOL);
        return;
    }
    uint32_t promised = underflow ? length - residual : length;
    task->scsi_status = status;
    task->residual = underflow ? residual : overflow ? -(int64_t)residual : 0;
    task->transferred = bytes_moved(task, promised);
    ini_op_end(&task->op,
               is_good(status) && !data_complete(task, promised) ? INI_PROTOCOL : INI_OK);
}

/* Sense behind its length field (11.4.7), bounded by the segment and by what a task keeps. */
static void take_sense(struct ini_task *task, const uint8_t *data, uint32_t n)
{
    uint32_t length = n >= 2 ? load_be16(data) : 0;

    if (length)
        length = smaller(smaller(length, n - 2), INI_SENSE_MAX);
    task->sense_length = (uint16_t)length;
    if (length)
        memcpy(task->sense, data + 2, length);
}

static const char *response_flaw(const struct iscsi_scsi_response *pdu)
{
    if (pdu->overflow && pdu->underflow)
        return "a SCSI Response with both residual bits";
    if (pdu->bidi_overflow && pdu->bidi_underflow)
        return "a SCSI Response with both bidirectional residual bits";
    if (pdu->response == ISCSI_COMPLETED_AT_TARGET && pdu->status == 0x02 &&
        !pdu->data_segment_length)
        return "CHECK CONDITION without sense data";
    return NULL;
}

/* Level 1: a good status goes nowhere while its data have holes. */
static bool waits_for_data(struct ini_conn *c, const struct iscsi_scsi_response *pdu)
{
    struct ini_op *op = ini_op_find(c->session, pdu->itt);

    if (!op || op->kind != INI_KIND_TASK || op->conn != c ||
        pdu->response != ISCSI_COMPLETED_AT_TARGET || !is_good(pdu->status))
        return false;
    return ini_hold_status(c, ini_task_of(op),
                           &(struct ini_held){
                               .overflow = pdu->overflow,
                               .underflow = pdu->underflow,
                               .status = pdu->status,
                               .residual = pdu->residual_count,
                               .stat_sn = pdu->stat_sn,
                               .exp_data_sn = pdu->exp_data_sn,
                           });
}

void ini_on_scsi_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct iscsi_scsi_response pdu;

    iscsi_scsi_response_unpack(bhs, &pdu);
    const char *flaw = response_flaw(&pdu);
    if (flaw) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent %s", flaw);
        return;
    }
    ini_take_window(c->session, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    if (waits_for_data(c, &pdu) || !ini_take_status(c, pdu.stat_sn))
        return;
    struct ini_op *op = ini_op_answered(c, pdu.itt, INI_KIND_TASK, "SCSI Response");
    if (!op)
        return;
    struct ini_task *task = ini_task_of(op);
    take_sense(task, data, n);
    if (pdu.response != ISCSI_COMPLETED_AT_TARGET) {
        ini_op_end(op, INI_TARGET_FAILURE);
        return;
    }
    /* Data-In and R2T counted by the target but never seen here are lost data (7.9). */
    if (pdu.exp_data_sn > task->sn && task->direction != INI_NONE && !task->snack_refused &&
        is_good(pdu.status)) {
        ini_fail(c, INI_CLOSE_PROTOCOL,
                 "data are missing: the target sent %u Data-In or R2T of a command, %u came",
                 (unsigned)pdu.exp_data_sn, (unsigned)task->sn);
        return;
    }
    if (c->session->params.protocol_level >= 2)
        task->status_qualifier = pdu.status_qualifier;
    ini_task_status(task, pdu.status, pdu.overflow, pdu.underflow, pdu.residual_count);
}
