/* SPDX-License-Identifier: BSD-2-Clause */
/* Task management (RFC 7143 11.5, 11.6, 4.2.3; RFC 7144 6.3). */
#include "iscsi/ini_int.h"

#include "base/serial.h"

enum scope { SCOPE_NONE, SCOPE_TASK, SCOPE_LUN, SCOPE_TARGET };

/* What a function ends, whether it names a LUN and a task, and from which level it exists. */
static const struct function {
    uint8_t function;
    enum scope ends;
    bool lun, task;
    bool reset; /* may end commands sent after it as well, so none is */
    uint8_t level;
} functions[] = {
    {ISCSI_ABORT_TASK, SCOPE_TASK, true, true, false, 0},
    {ISCSI_ABORT_TASK_SET, SCOPE_LUN, true, false, false, 0},
    {ISCSI_CLEAR_ACA, SCOPE_NONE, true, false, false, 0},
    {ISCSI_CLEAR_TASK_SET, SCOPE_LUN, true, false, false, 0},
    {ISCSI_LOGICAL_UNIT_RESET, SCOPE_LUN, true, false, true, 0},
    {ISCSI_TARGET_WARM_RESET, SCOPE_TARGET, false, false, true, 0},
    {ISCSI_TARGET_COLD_RESET, SCOPE_TARGET, false, false, true, 0},
    {ISCSI_QUERY_TASK, SCOPE_NONE, true, true, false, 2},
    {ISCSI_QUERY_TASK_SET, SCOPE_NONE, true, false, false, 2},
    {ISCSI_I_T_NEXUS_RESET, SCOPE_TARGET, false, false, true, 2},
    {ISCSI_QUERY_ASYNC_EVENT, SCOPE_NONE, true, false, false, 2},
};

static const struct function *function_of(uint8_t function)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].function == function)
            return &functions[i];
    return NULL;
}

static bool affects(const struct ini_tmf *tmf, const struct function *f, struct ini_op *op)
{
    if (op->kind != INI_KIND_TASK)
        return false;
    switch (f->ends) {
    case SCOPE_TASK:
        return op->itt == tmf->ref_itt;
    case SCOPE_LUN:
        return ini_task_of(op)->lun == tmf->lun;
    case SCOPE_TARGET:
        return true;
    case SCOPE_NONE:
        break;
    }
    return false;
}

/* Those in flight older than the function. */
static void mark_affected(const struct ini_tmf *tmf, const struct function *f, bool aborting)
{
    struct ini_session *s = tmf->op.session;

    for (uint32_t i = 0; f->ends && i < 1u << s->slot_bits; i++) {
        struct ini_op *op = s->slots[i].op;
        if (op && affects(tmf, f, op) && serial_lt(op->cmd_sn, tmf->op.cmd_sn))
            op->aborting = aborting;
    }
}

static void end_affected(const struct ini_tmf *tmf, const struct function *f)
{
    struct ini_session *s = tmf->op.session;

    for (uint32_t i = 0; f->ends && i < 1u << s->slot_bits; i++) {
        struct ini_op *op = s->slots[i].op;
        if (op && affects(tmf, f, op) && op->state != INI_ENDING &&
            serial_lt(op->cmd_sn, tmf->op.cmd_sn))
            ini_op_drop(op, INI_ABORTED);
    }
}

static void end_unsent(const struct ini_tmf *tmf, const struct function *f, struct ini_list *list)
{
    struct ini_op *op = list->first;

    while (op) {
        struct ini_op *next = op->next;
        if (affects(tmf, f, op))
            ini_op_end(op, INI_ABORTED);
        op = next;
    }
}

static struct ini_conn *connection_for(struct ini_session *s, const struct ini_tmf *tmf,
                                       const struct function *f)
{
    /* Same connection as the task's (11.5.1). */
    if (f->task)
        return tmf->referenced->op.conn;
    return ini_pick(s);
}

void ini_tmf(struct ini_session *s, struct ini_tmf *tmf)
{
    const struct function *f = function_of(tmf->function);
    struct ini_task *task = tmf->referenced;

    ini_op_begin(&tmf->op, s, INI_KIND_TMF, tmf->deadline_ns);
    tmf->result = INI_REFUSED;
    tmf->reject = 0;
    tmf->response = 0;
    tmf->additional_response = 0;
    bool known = f && s->params.protocol_level >= f->level && !s->params.discovery;
    bool task_lives = task && (task->op.state == INI_SENT || task->op.state == INI_RESEND);
    struct ini_conn *c = known && (!f->task || task_lives) ? connection_for(s, tmf, f) : NULL;
    if (!c || c->state < INI_CONN_FULL || c->state >= INI_CONN_LEAVING ||
        s->state != INI_SESSION_OPEN) {
        ini_op_end(&tmf->op, INI_REFUSED);
        return;
    }
    tmf->ref_itt = ISCSI_TAG_NONE;
    tmf->ref_cmd_sn = 0;
    if (f->task) { /* by value: the task may be gone before this is sent or answered */
        tmf->lun = task->lun;
        tmf->ref_itt = task->op.itt;
        tmf->ref_cmd_sn = task->op.cmd_sn;
    }
    if (f->ends && !f->task) {
        end_unsent(tmf, f, &s->waiting);
        for (unsigned i = 0; i < s->conn_count; i++)
            end_unsent(tmf, f, &s->conns[i]->queue);
    }
    if (f->reset)
        s->resets++;
    if (f->ends == SCOPE_LUN) {
        s->set_aborts++;
        ini_confirm_all(s);
    }
    tmf->op.conn = c;
    tmf->op.held = true; /* it counts in resets and set_aborts */
    ini_list_append(&c->urgent, &tmf->op);
    ini_wake(c);
}

bool ini_abort(struct ini_task *task, struct ini_tmf *tmf)
{
    if (task->op.state == INI_WAITING)
        ini_op_end(&task->op, INI_ABORTED);
    if (task->op.state != INI_SENT && task->op.state != INI_RESEND)
        return false;
    tmf->function = ISCSI_ABORT_TASK;
    tmf->referenced = task;
    ini_tmf(task->op.session, tmf);
    return true;
}

void ini_tmf_request(struct ini_conn *c, struct ini_tmf *tmf, struct iscsi_tx_pdu *out)
{
    const struct function *f = function_of(tmf->function);
    struct iscsi_tmf_request pdu = {
        .immediate = true,
        .function = tmf->function,
        .lun = f->lun ? tmf->lun : 0,
        .itt = tmf->op.itt,
        .referenced_task_tag = tmf->ref_itt,
        .cmd_sn = tmf->op.cmd_sn,
        .exp_stat_sn = c->exp_stat_sn,
        .ref_cmd_sn = tmf->ref_cmd_sn,
    };

    iscsi_tmf_request_pack(out->bhs, &pdu);
    mark_affected(tmf, f, true);
}

/* A function has ended in any way: commands may flow again. */
void ini_tmf_over(struct ini_tmf *tmf)
{
    struct ini_session *s = tmf->op.session;
    const struct function *f = function_of(tmf->function);

    if (!tmf->op.held)
        return;
    tmf->op.held = false;
    if (f->reset)
        s->resets--;
    if (f->ends == SCOPE_LUN)
        s->set_aborts--;
}

static bool ends_tasks(const struct function *f, uint8_t response)
{
    if (response == ISCSI_TMF_COMPLETE || response == ISCSI_TMF_SUCCEEDED)
        return true;
    return response == ISCSI_TMF_NO_TASK && f->ends == SCOPE_TASK;
}

void ini_on_tmf_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct iscsi_tmf_response pdu;
    (void)data, (void)n;

    iscsi_tmf_response_unpack(bhs, &pdu);
    if (!ini_take_status(c, pdu.stat_sn))
        return;
    ini_take_window(c->session, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    struct ini_op *op =
        ini_op_answered(c, pdu.itt, INI_KIND_TMF, "Task Management Function Response");
    if (!op)
        return;
    struct ini_tmf *tmf = ini_tmf_of(op);
    const struct function *f = function_of(tmf->function);
    tmf->response = pdu.response;
    if (c->session->params.protocol_level >= 2)
        tmf->additional_response = pdu.additional_response;
    if (ends_tasks(f, pdu.response))
        end_affected(tmf, f);
    else
        mark_affected(tmf, f, false);
    ini_op_end(op, INI_OK);
}
