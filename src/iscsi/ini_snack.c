/* SPDX-License-Identifier: BSD-2-Clause */
/* ErrorRecoveryLevel 1: what was lost on a connection is asked for again (RFC 7143 7.1.4, 7.8,
 * 7.9, 11.16). At level 0 nothing here is used: a loss is the session's. */
#include "iscsi/ini_int.h"

bool ini_recovers(const struct ini_conn *c)
{
    return c->session->params.error_recovery_level >= 1;
}

static void ask(struct ini_conn *c, const struct iscsi_snack *snack)
{
    if (c->snack_count == INI_SNACKS_MAX) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "more was lost than can be asked for again");
        return;
    }
    c->snacks[(c->snack_head + c->snack_count++) % INI_SNACKS_MAX] = *snack;
    ini_wake(c);
}

bool ini_snack_out(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    if (!c->snack_count)
        return false;
    struct iscsi_snack pdu = c->snacks[c->snack_head];

    pdu.exp_stat_sn = c->exp_stat_sn;
    iscsi_snack_pack(out->bhs, &pdu);
    c->snack_head = (c->snack_head + 1) % INI_SNACKS_MAX;
    c->snack_count--;
    return true;
}

/* ---- status ---- */

/* Everything before sn that is neither here nor asked for is asked for now. */
static void status_up_to(struct ini_conn *c, uint32_t sn)
{
    if ((int32_t)(sn - c->next_stat_sn) > 0) {
        ask(c, &(struct iscsi_snack){
                   .type = ISCSI_SNACK_STATUS,
                   .itt = ISCSI_TAG_NONE,
                   .ttt = ISCSI_TAG_NONE,
                   .beg_run = c->next_stat_sn,
                   .run_length = sn - c->next_stat_sn,
               });
        c->next_stat_sn = sn;
    }
}

bool ini_status_ahead(struct ini_conn *c, uint32_t sn)
{
    uint32_t ahead = sn - c->exp_stat_sn;

    if (ahead > 64) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "too many responses are missing: StatSN %u came after %u",
                 (unsigned)sn, (unsigned)c->exp_stat_sn);
        return false;
    }
    if (c->stat_ahead >> (ahead - 1) & 1) {
        c->session->counters.duplicates++;
        return false;
    }
    status_up_to(c, sn);
    if (c->next_stat_sn == sn)
        c->next_stat_sn = sn + 1;
    c->stat_ahead |= (uint64_t)1 << (ahead - 1);
    return c->state < INI_CONN_CLOSING;
}

/* exp_stat_sn itself has come; bit i of stat_ahead stands for exp_stat_sn + 1 + i. */
void ini_status_advance(struct ini_conn *c)
{
    c->exp_stat_sn++;
    while (c->stat_ahead & 1) {
        c->stat_ahead >>= 1;
        c->exp_stat_sn++;
    }
    c->stat_ahead >>= 1;
    if ((int32_t)(c->next_stat_sn - c->exp_stat_sn) < 0)
        c->next_stat_sn = c->exp_stat_sn;
}

/* ---- data ---- */

/* Numbers mean other bytes once the target cuts segments by another length (11.16.3): R-Data SNACK
 * would be the way, a new session is ours. */
static void ask_data(struct ini_conn *c, const struct ini_task *task, uint32_t begin, uint32_t run)
{
    if (task->direction == INI_READ && task->segmentation != c->segmentation) {
        ini_fail(c, INI_CLOSE_PROTOCOL,
                 "data are missing that were sent before "
                 "MaxRecvDataSegmentLength changed");
        return;
    }
    ask(c, &(struct iscsi_snack){
               .type = ISCSI_SNACK_DATA_R2T,
               .lun = task->lun,
               .itt = task->op.itt,
               .ttt = ISCSI_TAG_NONE,
               .beg_run = begin,
               .run_length = run,
           });
}

static bool complete(const struct ini_task *task, uint32_t count)
{
    return ini_extents_cover(&task->seen, count);
}

static void acknowledge_data(struct ini_conn *c, struct ini_task *task)
{
    if (!task->ack_due || !complete(task, task->sn))
        return;
    task->ack_due = false;
    ask(c, &(struct iscsi_snack){
               .type = ISCSI_SNACK_DATA_ACK,
               .lun = task->lun,
               .itt = ISCSI_TAG_NONE,
               .ttt = task->ack_ttt,
               .beg_run = task->sn,
           });
}

bool ini_number_seen(struct ini_conn *c, struct ini_task *task, uint32_t sn)
{
    if (sn >= task->sn) {
        if (sn != task->sn)
            ask_data(c, task, task->sn, sn - task->sn);
        task->sn = sn + 1;
    }
    if (ini_recovers(c) && !ini_extents_add(&task->seen, sn, 1))
        ini_fail(c, INI_CLOSE_PROTOCOL, "more Data-In is missing than can be followed");
    return c->state < INI_CONN_CLOSING;
}

void ini_acknowledge_asked(struct ini_conn *c, struct ini_task *task, uint32_t ttt)
{
    if (!ini_recovers(c))
        return; /* I-IN-05 */
    task->ack_due = true;
    task->ack_ttt = ttt;
}

/* A status whose data have holes waits for them, unacknowledged (7.9). */
bool ini_hold_status(struct ini_conn *c, struct ini_task *task, const struct ini_held *held)
{
    if (!ini_recovers(c) || task->direction != INI_READ || complete(task, held->exp_data_sn))
        return false;
    if (task->snack_refused)
        return false; /* it will fail */
    if (held->exp_data_sn > task->sn) {
        ask_data(c, task, task->sn, held->exp_data_sn - task->sn);
        task->sn = held->exp_data_sn;
    }
    status_up_to(c, held->stat_sn);
    if (c->next_stat_sn == held->stat_sn)
        c->next_stat_sn++;
    task->held = *held;
    task->held.waits = true;
    return true;
}

static void release_status(struct ini_conn *c, struct ini_task *task)
{
    struct ini_held held = task->held;

    task->held.waits = false;
    if (ini_take_status(c, held.stat_sn))
        ini_task_status(task, held.status, held.overflow, held.underflow, held.residual);
}

void ini_data_settled(struct ini_conn *c, struct ini_task *task)
{
    if (!ini_recovers(c))
        return;
    acknowledge_data(c, task);
    if (task->held.waits && complete(task, task->held.exp_data_sn))
        release_status(c, task);
}

/* ---- digests and refusals ---- */

static bool bears_status(const struct iscsi_bhs *h)
{
    static const uint8_t opcodes[] = {ISCSI_SCSI_RESPONSE, ISCSI_TMF_RESPONSE,
                                      ISCSI_TEXT_RESPONSE, ISCSI_LOGOUT_RESPONSE,
                                      ISCSI_ASYNC,         ISCSI_REJECT};

    for (size_t i = 0; i < sizeof opcodes; i++)
        if (opcodes[i] == h->opcode)
            return true;
    return h->opcode == ISCSI_NOP_IN && h->itt != ISCSI_TAG_NONE;
}

/* The PDU is as if it had never come, but its header tells what is missing. */
bool ini_digest_recovered(struct ini_conn *c, const uint8_t *bhs)
{
    struct iscsi_bhs h;
    struct iscsi_data_in in;
    struct iscsi_nop_in numbers; /* StatSN stands at the same place in all */

    if (!ini_recovers(c))
        return false;
    iscsi_bhs_unpack(bhs, &h);
    iscsi_nop_in_unpack(bhs, &numbers);
    if (h.opcode == ISCSI_DATA_IN) {
        iscsi_data_in_unpack(bhs, &in);
        struct ini_op *op = ini_op_find(c->session, in.itt);
        if (op && op->kind == INI_KIND_TASK && in.data_sn >= ini_task_of(op)->sn) {
            struct ini_task *task = ini_task_of(op);
            ask_data(c, task, task->sn, in.data_sn - task->sn + 1);
            task->sn = in.data_sn + 1;
        } else if (op && op->kind == INI_KIND_TASK) {
            ask_data(c, ini_task_of(op), in.data_sn, 1); /* the second one is spoilt, too */
        }
        /* Its status, if any, comes with it again. */
        if (in.status_present && c->next_stat_sn == in.stat_sn)
            c->next_stat_sn++;
        return true;
    }
    if (!bears_status(&h))
        return true; /* nothing depends on it */
    if (numbers.stat_sn - c->exp_stat_sn > 64)
        return false;
    status_up_to(c, numbers.stat_sn + 1);
    return true;
}

/* A SNACK was rejected: the task cannot be whole any more, or the connection (7.8 a.2). */
void ini_snack_rejected(struct ini_conn *c, const uint8_t *header)
{
    struct iscsi_snack pdu;

    iscsi_snack_unpack(header, &pdu);
    struct ini_op *op = ini_op_find(c->session, pdu.itt);
    if (pdu.type == ISCSI_SNACK_STATUS) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target does not repeat a lost response");
    } else if (pdu.type == ISCSI_SNACK_DATA_R2T && op && op->kind == INI_KIND_TASK) {
        struct ini_task *task = ini_task_of(op);
        task->snack_refused = true;
        if (task->held.waits)
            release_status(c, task);
    }
}

void ini_retry(struct ini_task *task)
{
    struct ini_conn *c = task->op.conn;

    if (task->op.state != INI_SENT || !ini_recovers(c) || c->state >= INI_CONN_LEAVING ||
        serial_lt(task->op.cmd_sn, c->session->window.exp_cmd_sn))
        return;
    ini_burst_drop(task);
    task->op.state = INI_RESEND;
    ini_list_append(&c->resend, &task->op);
    ini_wake(c);
}
