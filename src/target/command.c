/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCSI commands between the protocol and the logical units, and task management.
 *
 *   on_command   prepare at the LU; memory; data-out are fetched, or it is submitted at once
 *   on_data      the data-out are in: submitted
 *   finished     the LU is done: the answer goes out, data-in from the same memory
 *   on_released  memory goes back
 */
#include <string.h>

#include "base/bytes.h"
#include "scsi/lun.h"
#include "target/target_int.h"

static struct target_server *server_of(const struct tgt_task *task)
{
    const struct nexus_set *set = tgt_session_user(task->session);

    return set->target->server;
}

/* ---- answers ---- */

static void answer_status(struct tgt_task *task, uint8_t status)
{
    const struct tgt_answer answer = {.status = status};

    tgt_task_respond(task, &answer);
}

/* What the command transfers by its CDB, for the residual (11.4.5). */
static uint64_t transfer_of(const struct lu_task *lu)
{
    if (lu->data_out_length > 0)
        return lu->data_out_length;
    if (lu->status != SCSI_GOOD && lu->status != SCSI_CONDITION_MET)
        return lu->data_in;
    return lu->data_unit > 1 ? lu->data_in_length : lu->data_in;
}

static void tell_waiters(struct target_server *s, const struct lu_task *lu);

static void finished(struct lu_task *lu)
{
    struct command *c = lu->user;
    struct tgt_answer answer = {
        .status = lu->status,
        .sense = lu->sense_data,
        .sense_length = lu->sense_length,
        .iov = &c->iov,
        .iov_count = 1,
        .length = (uint32_t)lu->data_in,
        .transfer = transfer_of(lu),
    };
    struct target_server *s = server_of(c->tgt);
    struct management *waiter = c->waiter;

    c->waiter = NULL;
    if (lu->aborted && lu->status != SCSI_TASK_ABORTED)
        tgt_task_end(c->tgt);
    else
        tgt_task_respond(c->tgt, &answer);
    if (waiter)
        waiter->pending = 0;
    if (lu->aborted || waiter)
        tell_waiters(s, lu);
}

/* ---- commands ---- */

static bool get_memory(struct target_server *s, struct command *c, uint64_t n)
{
    c->iov = (struct iovec){NULL, 0};
    c->memory_size = (size_t)n;
    if (n == 0)
        return true;
    c->iov.iov_base = pool_get(&s->pool, (size_t)n);
    c->iov.iov_len = (size_t)n;
    if (!c->iov.iov_base)
        c->memory_size = 0;
    return c->iov.iov_base != NULL;
}

static void submit(struct command *c, uint64_t data_length)
{
    c->iov.iov_len = (size_t)data_length;
    c->task.iov = &c->iov;
    c->task.iovcnt = data_length > 0;
    c->task.data_length = data_length;
    lu_task_submit(&c->task);
}

static enum lu_attribute attribute_of(uint8_t attr)
{
    switch (attr) {
    case ISCSI_ATTR_ORDERED:
        return LU_ORDERED;
    case ISCSI_ATTR_HEAD_OF_QUEUE:
        return LU_HEAD_OF_QUEUE;
    case ISCSI_ATTR_ACA:
        return LU_ACA;
    default:
        return LU_SIMPLE;
    }
}

static void prepare(struct command *c, struct tgt_task *task, struct lu_nexus *nexus)
{
    uint16_t size = task->cdb_length < SCSI_CDB_MAX ? task->cdb_length : SCSI_CDB_MAX;

    lu_task_init(&c->task, nexus, finished);
    memcpy(c->task.cdb, task->cdb, size);
    c->task.cdb_size = (uint8_t)size;
    c->task.attribute = attribute_of(task->attr);
    c->task.tag = task->itt;
    c->task.expected_length = task->write ? task->edtl : 0;
    c->task.user = c;
    lu_task_prepare(&c->task);
}

/* The room for data-in. More than the initiator expects is cut when it is sent, so that the
 * residual tells the truth. */
static uint64_t room_of(const struct lu_task *lu)
{
    if (lu->data_unit > 1 || lu->data_in_length < SMALL_ROOM)
        return lu->data_in_length;
    return SMALL_ROOM;
}

static void ignore(struct lu_task *lu)
{
    (void)lu;
}

static void no_memory(struct command *c)
{
    /* The LU has the task already: it ends there without an effect. */
    struct tgt_task *task = c->tgt;

    c->task.done = ignore;
    lu_task_abort(&c->task);
    answer_status(task, SCSI_BUSY);
}

/* A fault that tests asked for. */
static bool misbehave(struct target_server *s, struct command *c, struct tgt_task *task)
{
    if (s->swallow > 0) {
        s->swallow--;
        c->swallowed = true;
        return true;
    }
    if (s->busy_count > 0) {
        s->busy_count--;
        answer_status(task, s->busy_status);
        return true;
    }
    return false;
}

void on_command(void *user, struct tgt_task *task)
{
    struct target_server *s = user;
    struct command *c = task->user;
    struct lu_nexus *nexus = nexus_for(task->session, task->lun);

    memset(c, 0, sizeof(*c));
    c->tgt = task;
    if (!nexus) {
        answer_status(task, SCSI_BUSY); /* the session is about to be closed */
        return;
    }
    if (misbehave(s, c, task))
        return;
    prepare(c, task, nexus);
    if (c->task.refused) {
        submit(c, 0);
        return;
    }
    if (c->task.data_out_length > 0) {
        if (!get_memory(s, c, c->task.data_out_length)) {
            no_memory(c);
            return;
        }
        if (tgt_task_receive(task, &c->iov, 1, (uint32_t)c->task.data_out_length) == 0)
            submit(c, 0);
        return;
    }
    if (!get_memory(s, c, room_of(&c->task))) {
        no_memory(c);
        return;
    }
    submit(c, room_of(&c->task));
}

void on_data(void *user, struct tgt_task *task)
{
    struct command *c = task->user;

    (void)user;
    submit(c, c->task.data_out_length);
}

void on_abort(void *user, struct tgt_task *task)
{
    struct command *c = task->user;

    (void)user;
    if (c->swallowed)
        tgt_task_end(task);
    else
        lu_task_abort(&c->task); /* finished() follows, now or when the disk is done */
}

void on_released(void *user, struct tgt_task *task)
{
    struct target_server *s = user;
    struct command *c = task->user;

    if (c->memory_size > 0)
        pool_put(&s->pool, c->iov.iov_base, c->memory_size);
    c->memory_size = 0;
}

/* ---- disks ---- */

bool disks_work(struct target_server *s)
{
    bool busy = false;

    for (struct target *t = s->targets; t; t = t->next)
        for (unsigned i = 0; i < t->lun_count; i++) {
            struct lu *lu = t->luns[i].lu;

            if (lu_in_flight(lu) == 0)
                continue;
            lu_kick(lu);
            while (lu_poll(lu) > 0)
                ;
            busy |= lu_in_flight(lu) > 0;
        }
    return busy;
}

/* ---- task management ---- */

static void respond(struct tgt_tmf *tmf, enum iscsi_tmf_result response)
{
    tgt_tmf_respond(tmf, response, 0);
}

/* Now, or when the last of `pending` tasks has ended. */
static void respond_after(struct target_server *s, struct tgt_tmf *tmf, struct lu *lu,
                          unsigned pending)
{
    struct management *m = tmf->user;

    if (pending == 0) {
        respond(tmf, ISCSI_TMF_COMPLETE);
        return;
    }
    *m = (struct management){.next = s->managements, .tgt = tmf, .lu = lu, .pending = pending};
    s->managements = m;
}

/* A task has ended aborted: those who wait for it count. */
static void tell_waiters(struct target_server *s, const struct lu_task *lu)
{
    struct management **at = &s->managements;

    while (*at) {
        struct management *m = *at;

        if (m->pending > 0 && (!m->lu || m->lu == lu->lu))
            m->pending--;
        if (m->pending > 0) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        respond(m->tgt, ISCSI_TMF_COMPLETE);
    }
}

static void abort_task(struct target_server *s, struct tgt_tmf *tmf)
{
    struct command *c = tmf->task ? tmf->task->user : NULL;

    if (!c || c->swallowed || c->task.state == LU_TASK_IDLE) {
        if (c && c->swallowed)
            tgt_task_end(tmf->task);
        respond(tmf, ISCSI_TMF_COMPLETE);
        return;
    }
    lu_task_abort(&c->task);
    if (c->task.state == LU_TASK_IDLE) {
        respond(tmf, ISCSI_TMF_COMPLETE);
        return;
    }
    respond_after(s, tmf, NULL, UINT32_MAX); /* until this very task has ended */
    c->waiter = tmf->user;
}

static unsigned reset_target(struct target *t, struct lu_nexus *by)
{
    unsigned pending = 0;

    for (unsigned i = 0; i < t->lun_count; i++)
        pending += lu_reset(t->luns[i].lu, lu_nexus_lu(by) == t->luns[i].lu ? by : NULL);
    return pending;
}

static void lose_nexus(struct target_server *s, struct tgt_tmf *tmf)
{
    struct nexus_set *set = tgt_session_user(tmf->session);
    unsigned pending = 0;

    for (unsigned i = 0; i < set->count; i++) {
        lu_nexus_loss(set->nexus[i]);
        pending += lu_nexus_tasks(set->nexus[i]);
    }
    respond_after(s, tmf, NULL, pending);
}

static void query(struct tgt_tmf *tmf, struct lu_nexus *nexus)
{
    uint16_t ua = lu_query_ua(nexus);

    switch (tmf->function) {
    case ISCSI_QUERY_TASK:
        respond(tmf, tmf->task ? ISCSI_TMF_SUCCEEDED : ISCSI_TMF_COMPLETE);
        break;
    case ISCSI_QUERY_TASK_SET:
        respond(tmf, lu_nexus_tasks(nexus) ? ISCSI_TMF_SUCCEEDED : ISCSI_TMF_COMPLETE);
        break;
    default: /* SAM-5 7.10: sense key, ASC, ASCQ of what is pending */
        tgt_tmf_respond(tmf, ua ? ISCSI_TMF_SUCCEEDED : ISCSI_TMF_COMPLETE,
                        ua ? (uint32_t)SCSI_KEY_UNIT_ATTENTION << 16 | ua : 0);
    }
}

void on_tmf(void *user, struct tgt_tmf *tmf)
{
    struct target_server *s = user;
    struct nexus_set *set = tgt_session_user(tmf->session);
    struct lu_nexus *nexus = nexus_for(tmf->session, tmf->lun);
    bool whole_target = tmf->function == ISCSI_TARGET_WARM_RESET ||
                        tmf->function == ISCSI_TARGET_COLD_RESET ||
                        tmf->function == ISCSI_I_T_NEXUS_RESET;

    if (!set || !nexus || (nexus == set->absent && !whole_target)) {
        respond(tmf, ISCSI_TMF_NO_LUN);
        return;
    }
    switch (tmf->function) {
    case ISCSI_ABORT_TASK:
        abort_task(s, tmf);
        break;
    case ISCSI_ABORT_TASK_SET:
        respond_after(s, tmf, lu_nexus_lu(nexus), lu_abort_set(nexus));
        break;
    case ISCSI_CLEAR_TASK_SET:
        respond_after(s, tmf, lu_nexus_lu(nexus), lu_clear_set(nexus));
        break;
    case ISCSI_LOGICAL_UNIT_RESET:
        respond_after(s, tmf, lu_nexus_lu(nexus), lu_reset(lu_nexus_lu(nexus), nexus));
        break;
    case ISCSI_TARGET_WARM_RESET:
    case ISCSI_TARGET_COLD_RESET:
        respond_after(s, tmf, NULL, reset_target(set->target, nexus));
        break;
    case ISCSI_I_T_NEXUS_RESET:
        lose_nexus(s, tmf);
        break;
    case ISCSI_QUERY_TASK:
    case ISCSI_QUERY_TASK_SET:
    case ISCSI_QUERY_ASYNC_EVENT:
        query(tmf, nexus);
        break;
    default:
        respond(tmf, ISCSI_TMF_NOT_SUPPORTED);
    }
}
