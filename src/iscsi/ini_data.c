/* SPDX-License-Identifier: BSD-2-Clause */
/* Payload: Data-In into a task's buffers, Data-Out from them (RFC 7143 11.7, 11.8). */
#include "iscsi/ini_int.h"

#include <string.h>

/* ---- which bytes have moved ---- */

bool ini_extents_add(struct ini_extents *e, uint32_t begin, uint32_t length)
{
    uint32_t end = begin + length;
    unsigned at = 0, last;

    if (!length)
        return true;
    while (at < e->count && e->of[at].end < begin)
        at++;
    /* at..last-1 touch the new one and melt into it. */
    for (last = at; last < e->count && e->of[last].begin <= end; last++) {
        if (e->of[last].begin < begin)
            begin = e->of[last].begin;
        if (e->of[last].end > end)
            end = e->of[last].end;
    }
    if (last == at && e->count == INI_EXTENTS_MAX)
        return false;
    memmove(&e->of[at + 1], &e->of[last], (e->count - last) * sizeof e->of[0]);
    e->of[at].begin = begin;
    e->of[at].end = end;
    e->count = e->count - (last - at) + 1;
    return true;
}

bool ini_extents_has(const struct ini_extents *e, uint32_t at)
{
    for (unsigned i = 0; i < e->count; i++)
        if (at >= e->of[i].begin && at < e->of[i].end)
            return true;
    return false;
}

bool ini_extents_cover(const struct ini_extents *e, uint32_t length)
{
    return !length || (e->count && e->of[0].begin == 0 && e->of[0].end >= length);
}

/* ---- places in a scatter list ---- */

struct ini_seek ini_seek(struct ini_task *task, uint32_t offset)
{
    if (offset < task->seek_offset)
        task->seek_index = task->seek_offset = 0;
    while (task->seek_index < task->iov_count &&
           offset - task->seek_offset >= task->iov[task->seek_index].iov_len) {
        task->seek_offset += (uint32_t)task->iov[task->seek_index].iov_len;
        task->seek_index++;
    }
    return (struct ini_seek){
        .iov = task->iov + task->seek_index,
        .count = task->iov_count - task->seek_index,
        .offset = offset - task->seek_offset,
    };
}

/* ---- Data-In ---- */

/* DataSN and R2TSN count from 0 in each task. At level 0 none may be missing. */
static bool is_gap(const struct ini_conn *c, const struct ini_task *task, uint32_t sn)
{
    return sn > task->sn && (!ini_recovers(c) || sn - task->sn > UINT16_MAX);
}

static bool is_duplicate(const struct ini_conn *c, const struct ini_task *task, uint32_t sn)
{
    return sn < task->sn && (!ini_recovers(c) || ini_extents_has(&task->seen, sn));
}

/* The task of a Data-In whose segment may be stored, checked before the first byte of it is
 * (I-IN-03, I-IN-04) and again, counted, when it is whole. NULL: drop it, or c has failed. */
static struct ini_task *data_in_task(struct ini_conn *c, const struct iscsi_data_in *pdu,
                                     bool whole)
{
    struct ini_session *s = c->session;

    if (!whole && !ini_op_find(s, pdu->itt) && ini_op_dropped(s, pdu->itt))
        return NULL;
    struct ini_op *op = ini_op_answered(c, pdu->itt, INI_KIND_TASK, "Data-In");
    if (!op)
        return NULL;
    struct ini_task *task = ini_task_of(op);
    uint32_t n = pdu->data_segment_length;
    if (task->direction != INI_READ)
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent Data-In for a command that reads nothing");
    else if (pdu->buffer_offset > task->length || n > task->length - pdu->buffer_offset)
        ini_fail(c, INI_CLOSE_PROTOCOL,
                 "the target sent Data-In for bytes %u to %llu of a command that reads %u bytes",
                 (unsigned)pdu->buffer_offset, (unsigned long long)pdu->buffer_offset + n,
                 (unsigned)task->length);
    else if (pdu->ttt != ISCSI_TAG_NONE && pdu->acknowledge && pdu->lun != task->lun)
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent Data-In with another LUN than its task's");
    else if (is_gap(c, task, pdu->data_sn))
        ini_fail(c, INI_CLOSE_PROTOCOL, "Data-In is missing: DataSN %u came where %u was due",
                 (unsigned)pdu->data_sn, (unsigned)task->sn);
    else if (is_duplicate(c, task, pdu->data_sn))
        s->counters.duplicates += whole;
    else
        return task;
    return NULL;
}

struct ini_task *ini_place_data_in(struct ini_conn *c, const uint8_t *bhs, uint32_t *offset)
{
    struct iscsi_data_in pdu;

    iscsi_data_in_unpack(bhs, &pdu);
    struct ini_task *task = data_in_task(c, &pdu, false);
    if (task)
        *offset = pdu.buffer_offset;
    return task;
}

/* Status in the last Data-In: only such as need no sense (11.7.3). */
static void data_in_status(struct ini_conn *c, struct ini_task *task,
                           const struct iscsi_data_in *pdu)
{
    if (!pdu->final)
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent a status in a Data-In without its F bit");
    else if (pdu->status == 0x02)
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent CHECK CONDITION in a Data-In");
    else if (pdu->overflow && pdu->underflow)
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target set both residual bits in a Data-In");
    else if (!ini_hold_status(c, task,
                              &(struct ini_held){
                                  .overflow = pdu->overflow,
                                  .underflow = pdu->underflow,
                                  .status = pdu->status,
                                  .residual = pdu->residual_count,
                                  .stat_sn = pdu->stat_sn,
                                  .exp_data_sn = pdu->data_sn + 1,
                              }) &&
             ini_take_status(c, pdu->stat_sn))
        ini_task_status(task, pdu->status, pdu->overflow, pdu->underflow, pdu->residual_count);
}

static bool op_lives(const struct ini_task *task)
{
    return task->op.state == INI_SENT || task->op.state == INI_RESEND;
}

void ini_on_data_in(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct iscsi_data_in pdu;
    (void)data;

    iscsi_data_in_unpack(bhs, &pdu);
    ini_take_window(c->session, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    struct ini_task *task = data_in_task(c, &pdu, true);
    if (!task) {
        /* The status of a duplicate or of an aborted task still counts. */
        if (c->state < INI_CONN_CLOSING && pdu.status_present)
            ini_take_status(c, pdu.stat_sn);
        return;
    }
    if (!ini_number_seen(c, task, pdu.data_sn))
        return;
    if (!ini_extents_add(&task->moved, pdu.buffer_offset, n)) {
        ini_fail(c, INI_CLOSE_PROTOCOL,
                 "the target scattered a read over more pieces than can be followed");
        return;
    }
    if (pdu.acknowledge)
        ini_acknowledge_asked(c, task, pdu.ttt);
    ini_data_settled(c, task);
    if (pdu.status_present && op_lives(task))
        data_in_status(c, task, &pdu);
}

/* ---- R2T ---- */

static void burst_unlink(struct ini_conn *c, struct ini_burst *burst)
{
    struct ini_burst **at = &c->burst_first, *before = NULL;

    while (*at && *at != burst) {
        before = *at;
        at = &(*at)->next;
    }
    if (*at) {
        *at = burst->next;
        if (c->burst_last == burst)
            c->burst_last = before;
    }
    burst->task = NULL;
}

void ini_burst_drop(struct ini_task *task)
{
    struct ini_conn *c = task->op.conn;

    for (unsigned i = 0; c && i <= INI_R2T_MAX; i++) {
        if (!task->bursts[i].task)
            continue;
        if (c->unsolicited == &task->bursts[i])
            c->unsolicited = NULL;
        burst_unlink(c, &task->bursts[i]);
    }
}

static struct ini_burst *burst_new(struct ini_task *task, uint32_t limit)
{
    for (unsigned i = 0; i < limit && i < INI_R2T_MAX; i++)
        if (!task->bursts[i].task)
            return &task->bursts[i];
    return NULL;
}

/* What is wrong with an R2T of a live task, or NULL. Nothing may be sent for a wrong one. */
static const char *r2t_flaw(const struct iscsi_params *p, const struct ini_task *task,
                            const struct iscsi_r2t *pdu)
{
    uint32_t n = pdu->desired_data_transfer_length;

    if (task->direction != INI_WRITE)
        return "an R2T for a command that writes nothing";
    if (pdu->lun != task->lun)
        return "an R2T with another LUN than its task's";
    if (pdu->ttt == ISCSI_TAG_NONE)
        return "an R2T without a Target Transfer Tag";
    if (!n)
        return "an R2T for no bytes";
    if (n > p->max_burst_length)
        return "an R2T for more than MaxBurstLength";
    if (pdu->buffer_offset > task->length || n > task->length - pdu->buffer_offset)
        return "an R2T for bytes that its command does not have";
    return NULL;
}

void ini_on_r2t(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct ini_session *s = c->session;
    struct iscsi_r2t pdu;
    (void)data, (void)n;

    iscsi_r2t_unpack(bhs, &pdu);
    ini_take_window(s, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    struct ini_op *op = ini_op_answered(c, pdu.itt, INI_KIND_TASK, "R2T");
    if (!op)
        return;
    struct ini_task *task = ini_task_of(op);
    const char *flaw = r2t_flaw(&s->params, task, &pdu);
    if (flaw) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent %s", flaw);
        return;
    }
    if (is_gap(c, task, pdu.r2t_sn)) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "an R2T is missing: R2TSN %u came where %u was due",
                 (unsigned)pdu.r2t_sn, (unsigned)task->sn);
        return;
    }
    if (is_duplicate(c, task, pdu.r2t_sn)) {
        s->counters.duplicates++;
        return;
    }
    struct ini_burst *burst = burst_new(task, s->params.max_outstanding_r2t);
    if (!burst) {
        ini_fail(c, INI_CLOSE_PROTOCOL,
                 "the target sent more R2Ts for a command than the %u agreed",
                 (unsigned)s->params.max_outstanding_r2t);
        return;
    }
    if (!ini_number_seen(c, task, pdu.r2t_sn))
        return;
    *burst = (struct ini_burst){
        .task = task,
        .ttt = pdu.ttt,
        .offset = pdu.buffer_offset,
        .length = pdu.desired_data_transfer_length,
    };
    if (c->burst_last)
        c->burst_last->next = burst;
    else
        c->burst_first = burst;
    c->burst_last = burst;
    ini_wake(c);
}

/* ---- Data-Out ---- */

void ini_payload(struct ini_task *task, uint32_t offset, uint32_t n, struct iscsi_tx_pdu *out)
{
    struct ini_seek at = ini_seek(task, offset);

    out->iov = at.iov;
    out->count = at.count;
    out->offset = at.offset;
    out->length = n;
    out->owner = &task->op;
    task->op.tx_pieces++;
}

/* After a TMF that ends the task its sequences are cut short: with the next PDU (11.5.1), or with
 * FastAbort at once, without one (4.2.3.4). */
static bool cut_short(struct ini_conn *c, struct ini_burst *burst)
{
    bool fast = c->session->params.task_reporting == ISCSI_REPORT_FAST_ABORT;

    if (!burst->task->op.aborting || !fast)
        return false;
    if (c->unsolicited == burst)
        c->unsolicited = NULL;
    burst_unlink(c, burst);
    return true;
}

bool ini_data_out(struct ini_conn *c, struct iscsi_tx_pdu *out, bool solicited)
{
    struct ini_burst *burst = solicited ? c->burst_first : c->unsolicited;

    while (burst && cut_short(c, burst))
        burst = solicited ? c->burst_first : c->unsolicited;
    if (!burst)
        return false;

    struct ini_task *task = burst->task;
    uint32_t n = burst->length - burst->done;
    bool last = n <= c->params.mrdsl_out;
    if (!last)
        n = c->params.mrdsl_out;
    struct iscsi_data_out pdu = {
        .final = last || (solicited && task->op.aborting),
        .data_segment_length = n,
        .lun = solicited ? task->lun : 0,
        .itt = task->op.itt,
        .ttt = burst->ttt,
        .exp_stat_sn = c->exp_stat_sn,
        .data_sn = burst->data_sn++,
        .buffer_offset = burst->offset + burst->done,
    };
    iscsi_data_out_pack(out->bhs, &pdu);
    ini_payload(task, pdu.buffer_offset, n, out);
    burst->done += n;
    /* Full: GOOD will not be believed, as what was sent cannot be told. */
    ini_extents_add(&task->moved, pdu.buffer_offset, n);
    if (pdu.final) {
        if (!solicited)
            c->unsolicited = NULL;
        burst_unlink(c, burst);
    }
    return true;
}
