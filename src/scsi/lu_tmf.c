/* SPDX-License-Identifier: BSD-2-Clause */
/* Task management: tasks that end before their time. */
#include "scsi/lu_int.h"

static void end_aborted(struct lu_task *task)
{
    task->data_in = task->transfer_length = 0;
    lu_end(task, task->abort_reported ? SCSI_TASK_ABORTED : SCSI_GOOD);
}

void lu_abort(struct lu_task *task, const struct lu_nexus *by)
{
    if (task->state == LU_TASK_IDLE || task->state == LU_TASK_ENDED)
        return;
    if (!task->aborted)
        task->abort_reported = task->lu->mode.tas && by && by != task->nexus;
    task->aborted = true;
    if (task->state == LU_TASK_RUNNING && !task->waits) {
        task->abort_asked = true; /* it is at the disk; lu_aborted() ends it */
        return;
    }
    lu_forget_wait(task);
    end_aborted(task);
}

bool lu_aborted(struct lu_task *task)
{
    if (task->abort_asked)
        end_aborted(task);
    return task->abort_asked;
}

/* Tasks of one nexus (NULL: of all), but not `but`. Nexuses other than `by` get the unit attention
 * where no TASK ABORTED tells them. */
void lu_abort_all(struct lu *lu, const struct lu_nexus *of, const struct lu_nexus *by,
                  const struct lu_task *but, bool attention)
{
    for (struct lu_task *t = lu->set_first; t; t = t->set_next) {
        if ((of && t->nexus != of) || t == but || t->state == LU_TASK_ENDED || t->aborted)
            continue;
        lu_abort(t, by);
        if (attention && t->nexus != by && !t->abort_reported)
            lu_ua_add(t->nexus, SCSI_ASC_COMMANDS_CLEARED_BY_ANOTHER);
    }
}

bool lu_task_abort(struct lu_task *task)
{
    struct lu *lu = task->lu;

    if (task->state == LU_TASK_IDLE || task->state == LU_TASK_ENDED)
        return false;
    lu_abort(task, NULL);
    lu_drain(lu);
    return true;
}

struct lu_task *lu_task_find(struct lu_nexus *nexus, uint64_t tag)
{
    for (struct lu_task *t = nexus->lu->set_first; t; t = t->set_next)
        if (t->nexus == nexus && t->tag == tag && t->state != LU_TASK_ENDED)
            return t;
    return NULL;
}

unsigned lu_abort_set(struct lu_nexus *nexus)
{
    lu_abort_all(nexus->lu, nexus, NULL, NULL, false);
    lu_drain(nexus->lu);
    return nexus->tasks;
}

unsigned lu_clear_set(struct lu_nexus *nexus)
{
    struct lu *lu = nexus->lu;

    if (!lu->opts.shared_task_set)
        return lu_abort_set(nexus);
    lu_abort_all(lu, NULL, nexus, NULL, true);
    lu_drain(lu);
    return lu->tasks;
}

unsigned lu_reset(struct lu *lu, struct lu_nexus *by)
{
    lu_abort_all(lu, NULL, by, NULL, false);
    if (lu->q)
        lu->mode = lu_mode_default(lu);
    lu->reserved_by = NULL;
    lu->stopped = false;
    lu_ua(lu, NULL, SCSI_ASC_DEVICE_RESET);
    lu_drain(lu);
    return lu->tasks;
}

void lu_nexus_loss(struct lu_nexus *nexus)
{
    struct lu *lu = nexus->lu;

    lu_abort_all(lu, nexus, NULL, NULL, false);
    if (lu->reserved_by == nexus)
        lu->reserved_by = NULL;
    lu_nexus_ua(nexus, SCSI_ASC_NEXUS_LOSS);
    lu_drain(lu);
}
