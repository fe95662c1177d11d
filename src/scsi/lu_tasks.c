/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The task set: who may start, and in which order.
 *
 * A submitted task waits for two things. Attributes (SAM-5 8.7): ORDERED for everything older,
 * everything for an older ORDERED and for any HEAD OF QUEUE. And blocks: of two tasks that overlap,
 * one of them writing, the one submitted first runs first; that makes COMPARE AND WRITE atomic.
 *
 * Overlap is found in two steps. Each claim counts in the counters of its granules; as long as the
 * counters a new task needs are zero nothing can overlap, whatever the depth. Otherwise the list of
 * submitted tasks is looked through.
 */
#include "base/bytes.h"
#include "scsi/lu_int.h"

#include <assert.h>
#include <string.h>

/* ---- lists ---- */

void lu_list_add(struct lu_list *list, struct lu_task *task)
{
    task->wait_next = NULL;
    if (list->last)
        list->last->wait_next = task;
    else
        list->first = task;
    list->last = task;
}

struct lu_task *lu_list_pop(struct lu_list *list)
{
    struct lu_task *task = list->first;

    if (task) {
        list->first = task->wait_next;
        if (!list->first)
            list->last = NULL;
    }
    return task;
}

void lu_list_remove(struct lu_list *list, struct lu_task *task)
{
    struct lu_list kept = {0};

    for (struct lu_task *t; (t = lu_list_pop(list));)
        if (t != task)
            lu_list_add(&kept, t);
    *list = kept;
}

static struct lu_task_set *set_of(const struct lu_task *task)
{
    return task->lu->opts.shared_task_set ? &task->lu->shared_set : &task->nexus->set;
}

static void set_count(struct lu_task *task, int by)
{
    struct lu_task_set *set = set_of(task);

    if (task->blind)
        return;
    if (task->attribute == LU_ORDERED)
        set->ordered += (unsigned)by;
    else if (task->attribute == LU_HEAD_OF_QUEUE)
        set->head_of_queue += (unsigned)by;
}

static void set_enter(struct lu_task *task)
{
    struct lu *lu = task->lu;

    task->sequence = ++lu->sequence;
    task->set_prev = lu->set_last;
    task->set_next = NULL;
    if (lu->set_last)
        lu->set_last->set_next = task;
    else
        lu->set_first = task;
    lu->set_last = task;
    lu->tasks++;
    task->nexus->tasks++;
}

static void set_leave(struct lu_task *task)
{
    struct lu *lu = task->lu;

    *(task->set_prev ? &task->set_prev->set_next : &lu->set_first) = task->set_next;
    *(task->set_next ? &task->set_next->set_prev : &lu->set_last) = task->set_prev;
    lu->tasks--;
    task->nexus->tasks--;
    set_count(task, -1);
}

/* ---- claims ---- */

static uint64_t granule(const struct lu *lu, uint64_t lba)
{
    return lu->shift >= 12 ? lba : lba >> (12 - lu->shift);
}

static void claims_count(struct lu_task *task, int by)
{
    struct lu *lu = task->lu;
    struct lu_claims *c = &lu->claims;
    bool writes = task->claim == CLAIM_WRITE;

    if (task->claim == CLAIM_NONE)
        return;
    *(writes ? &c->all_writers : &c->all_readers) += (unsigned)by;
    uint64_t first = granule(lu, task->first_block);
    uint64_t last = granule(lu, task->first_block + task->block_count - 1);
    if (last - first >= LU_GRANULES) {
        *(writes ? &c->wide_writers : &c->wide_readers) += (unsigned)by;
        return;
    }
    uint16_t *counters = writes ? c->writers : c->readers;
    for (uint64_t g = first; g <= last; g++)
        counters[g % LU_GRANULES] = (uint16_t)(counters[g % LU_GRANULES] + by);
}

/* False: certainly nothing that is claimed overlaps what this task (not counted yet) wants. */
static bool may_overlap(const struct lu_task *task)
{
    const struct lu *lu = task->lu;
    const struct lu_claims *c = &lu->claims;
    bool writes = task->claim == CLAIM_WRITE;

    if (task->claim == CLAIM_NONE)
        return false;
    uint64_t first = granule(lu, task->first_block);
    uint64_t last = granule(lu, task->first_block + task->block_count - 1);
    if (last - first >= LU_GRANULES)
        return c->all_writers > 0 || (writes && c->all_readers > 0);
    if (c->wide_writers > 0 || (writes && c->wide_readers > 0))
        return true;
    for (uint64_t g = first; g <= last; g++)
        if (c->writers[g % LU_GRANULES] || (writes && c->readers[g % LU_GRANULES]))
            return true;
    return false;
}

static bool overlaps(const struct lu_task *a, const struct lu_task *b)
{
    if (a->claim == CLAIM_NONE || b->claim == CLAIM_NONE ||
        (a->claim == CLAIM_READ && b->claim == CLAIM_READ))
        return false;
    return a->first_block < b->first_block + b->block_count &&
           b->first_block < a->first_block + a->block_count;
}

/* The task that has to end before this one may start because of its blocks, or NULL. */
static struct lu_task *find_blocker(const struct lu_task *task)
{
    bool before = true;

    for (struct lu_task *t = task->lu->work_first; t; t = t->work_next) {
        if (t == task)
            before = false;
        else if (t->state != LU_TASK_ENDED && (before || t->state == LU_TASK_RUNNING) &&
                 overlaps(t, task))
            return t;
    }
    return NULL;
}

/* ---- attributes ---- */

static bool attributes_allow(const struct lu_task *task)
{
    const struct lu_task_set *set = set_of(task);

    if (task->attribute == LU_HEAD_OF_QUEUE)
        return true;
    if (set->head_of_queue > 0)
        return false;
    if (set->ordered == 0)
        return true;
    for (const struct lu_task *t = task->lu->set_first; t && t != task; t = t->set_next)
        if (set_of(t) == set && !t->blind && t->state != LU_TASK_ENDED &&
            (task->attribute == LU_ORDERED || t->attribute == LU_ORDERED))
            return false;
    return true;
}

/* ---- the list of submitted tasks ---- */

static void work_enter(struct lu_task *task)
{
    struct lu *lu = task->lu;
    bool first = task->attribute == LU_HEAD_OF_QUEUE;

    task->work_prev = first ? NULL : lu->work_last;
    task->work_next = first ? lu->work_first : NULL;
    *(task->work_prev ? &task->work_prev->work_next : &lu->work_first) = task;
    *(task->work_next ? &task->work_next->work_prev : &lu->work_last) = task;
    task->works = true;
    claims_count(task, 1);
}

static void work_leave(struct lu_task *task)
{
    struct lu *lu = task->lu;

    if (!task->works)
        return;
    *(task->work_prev ? &task->work_prev->work_next : &lu->work_first) = task->work_next;
    *(task->work_next ? &task->work_next->work_prev : &lu->work_last) = task->work_prev;
    task->works = false;
    claims_count(task, -1);
}

static void start(struct lu_task *task)
{
    const struct lu_command *command = lu_command(task->lu, task->fields.command);

    task->state = LU_TASK_RUNNING;
    task->blocker = NULL;
    /* What was reserved while the task waited counts too. */
    if (lu_pr_conflict(task, command))
        lu_end(task, SCSI_RESERVATION_CONFLICT);
    else
        command->execute(task);
}

/* After `gone` (blocked nobody any more): those that waited for it, or for attributes, again. */
static void unblock(struct lu *lu, const struct lu_task *gone)
{
    for (struct lu_task *t = lu->work_first; t && lu->blocked > 0; t = t->work_next) {
        if (t->state != LU_TASK_BLOCKED || (t->blocker && t->blocker != gone))
            continue;
        t->blocker = find_blocker(t);
        if (t->blocker || !attributes_allow(t))
            continue;
        lu->blocked--;
        start(t);
    }
}

/* ---- ending ---- */

static void pack_sense(struct lu_task *task)
{
    task->sense_length =
        (uint8_t)scsi_sense_pack(&task->sense, task->lu->mode.d_sense, task->sense_data);
}

void lu_end(struct lu_task *task, uint8_t status)
{
    assert(task->state != LU_TASK_ENDED && task->state != LU_TASK_IDLE);
    if (task->state == LU_TASK_BLOCKED)
        task->lu->blocked--;
    if (status == SCSI_CHECK_CONDITION)
        pack_sense(task);
    if (status != SCSI_GOOD)
        task->data_in = 0;
    if (status != SCSI_GOOD &&
        scsi_sense_asc(&task->sense) != SCSI_ASC_INVALID_FIELD_IN_INFORMATION_UNIT)
        task->transfer_length = 0;
    task->status = status;
    task->state = LU_TASK_ENDED;
    lu_list_add(&task->lu->ended, task);
}

void lu_end_sense(struct lu_task *task, struct scsi_sense sense)
{
    task->sense = sense;
    lu_end(task, SCSI_CHECK_CONDITION);
}

void lu_drain(struct lu *lu)
{
    struct lu_task *task;

    if (lu->draining)
        return;
    lu->draining = true;
    while ((task = lu_list_pop(&lu->ended))) {
        lu_release_scratch(task);
        work_leave(task);
        set_leave(task);
        task->state = LU_TASK_IDLE;
        unblock(lu, task);
        task->done(task);
    }
    lu->draining = false;
}

/* ---- prepare ---- */

void lu_task_init(struct lu_task *task, struct lu_nexus *nexus, void (*done)(struct lu_task *task))
{
    memset(task, 0, sizeof *task);
    task->nexus = nexus;
    task->done = done;
}

void lu_refuse_status(struct lu_task *task, uint8_t status)
{
    task->refused = true;
    task->status = status;
    task->data_in_length = 0;
    if (scsi_sense_asc(&task->sense) != SCSI_ASC_INVALID_FIELD_IN_INFORMATION_UNIT)
        task->data_out_length = 0;
}

void lu_refuse(struct lu_task *task, struct scsi_sense sense)
{
    task->sense = sense;
    lu_refuse_status(task, SCSI_CHECK_CONDITION);
}

static void refuse_illegal(struct lu_task *task, uint16_t asc)
{
    lu_refuse(task, scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, asc));
}

/* Whether the command is one and not stopped by what the nexus or the LU is in. */
static const struct lu_command *judge_state(struct lu_task *task)
{
    struct lu *lu = task->lu;
    int parsed = scsi_cdb_parse(&task->fields, task->cdb, task->cdb_size);
    const struct lu_command *command =
        task->fields.command >= 0 ? lu_command(lu, task->fields.command) : NULL;
    bool no_ua = command && command->flags & CMD_NO_UA;
    uint16_t ua = no_ua ? 0 : lu_ua_take(task->nexus);

    if (ua)
        lu_refuse(task, scsi_sense_make(SCSI_KEY_UNIT_ATTENTION, ua));
    else if (!lu->q && !(command && command->flags & CMD_ABSENT))
        refuse_illegal(task, SCSI_ASC_LUN_NOT_SUPPORTED);
    else if (task->fields.command == SCSI_CMD_NO_SERVICE)
        lu_refuse(task, scsi_sense_cdb_field(1, 4));
    else if (!command)
        refuse_illegal(task, SCSI_ASC_INVALID_OPCODE);
    else if (lu_pr_conflict(task, command))
        lu_refuse_status(task, SCSI_RESERVATION_CONFLICT);
    else if (parsed != 0)
        lu_refuse(task, scsi_sense_cdb_field(task->cdb_size, -1));
    else
        return command;
    return NULL;
}

static void judge_command(struct lu_task *task, const struct lu_command *command)
{
    struct lu *lu = task->lu;
    int bit, byte = scsi_cdb_bad_bit(task->fields.command, task->cdb, &bit);

    if (byte >= 0) {
        lu_refuse(task, scsi_sense_cdb_field((unsigned)byte, bit));
        return;
    }
    if (command->check)
        command->check(task);
    if (task->refused)
        return;
    if (command->flags & CMD_MEDIUM && lu->stopped)
        lu_refuse(task, scsi_sense_make(SCSI_KEY_NOT_READY, SCSI_ASC_START_NEEDED));
    else if (command->flags & CMD_WRITES && lu_write_protected(lu))
        lu_refuse(task,
                  scsi_sense_make(SCSI_KEY_DATA_PROTECT, lu->mode.swp && !lu->read_only
                                                             ? SCSI_ASC_SOFTWARE_WRITE_PROTECTED
                                                             : SCSI_ASC_WRITE_PROTECTED));
    else if (task->expected_length < task->data_out_length && !(command->flags & CMD_CUT))
        refuse_illegal(task, SCSI_ASC_INVALID_FIELD_IN_INFORMATION_UNIT);
    else if (task->expected_length != task->data_out_length && command->flags & CMD_EXACT)
        lu_refuse(task,
                  scsi_sense_cdb_field(scsi_command_info(task->fields.command)->length_at, -1));
}

void lu_task_prepare(struct lu_task *task)
{
    struct lu *lu = task->nexus->lu;
    bool full = lu->tasks >= lu->opts.depth && task->nexus->tasks > 0;
    const struct lu_command *command;

    assert(task->state == LU_TASK_IDLE);
    task->lu = lu;
    task->state = LU_TASK_ENTERED;
    task->data_unit = 1;
    set_enter(task);
    if (full)
        lu_refuse_status(task, SCSI_TASK_SET_FULL);
    else if (task->attribute == LU_ACA)
        refuse_illegal(task, SCSI_ASC_INVALID_MESSAGE);
    else if ((command = judge_state(task)))
        judge_command(task, command);
    if (!task->refused && lu_command(lu, task->fields.command)->flags & CMD_BLOCKS)
        task->data_unit = lu->block_size;
    task->blind = task->refused; /* it waits for nobody, and nobody waits for it */
    set_count(task, 1);
}

void lu_task_submit(struct lu_task *task)
{
    struct lu *lu = task->lu;

    assert(task->state == LU_TASK_ENTERED);
    task->transfer_length = task->data_out_length ? task->data_out_length : task->data_in_length;
    if (task->refused) {
        lu_end(task, task->status);
    } else {
        if (task->fields.command == SCSI_CMD_UNMAP)
            lu_claim_unmap(task);
        bool look = may_overlap(task);
        work_enter(task);
        task->blocker = look ? find_blocker(task) : NULL;
        if (task->blocker || !attributes_allow(task)) {
            task->state = LU_TASK_BLOCKED;
            lu->blocked++;
        } else {
            start(task);
        }
    }
    lu_drain(lu);
}
