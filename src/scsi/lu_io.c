/* SPDX-License-Identifier: BSD-2-Clause */
/* How a task reaches the disk, the scratch memory, and its data. */
#include "scsi/lu_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the disk ---- */

static void io_complete(struct lp_request *req)
{
    struct lu_task *task = req->user;

    task->lu->in_flight--;
    if (!lu_aborted(task))
        task->next(task, req->status);
}

static bool io_send(struct lu_task *task)
{
    struct lu *lu = task->lu;

    if (lp_queue_submit(lu->q, &task->request) == -EAGAIN)
        return false;
    lu->in_flight++;
    task->waits = false;
    return true;
}

void lu_io(struct lu_task *task, enum lp_op op, uint32_t flags, uint64_t lba, uint64_t blocks,
           const struct iovec *iov, uint32_t iovcnt, void (*next)(struct lu_task *, int))
{
    struct lu *lu = task->lu;

    task->request = (struct lp_request){.op = op,
                                        .flags = flags,
                                        .offset = lba << lu->shift,
                                        .length = blocks << lu->shift,
                                        .iov = iov,
                                        .iovcnt = iovcnt,
                                        .complete = io_complete,
                                        .user = task};
    task->next = next;
    if (lu->stalled.first || !io_send(task)) { /* in order: nobody overtakes those that wait */
        task->waits = true;
        lu_list_add(&lu->stalled, task);
    }
}

static void io_retry(struct lu *lu)
{
    while (lu->stalled.first && io_send(lu->stalled.first))
        lu_list_pop(&lu->stalled);
}

int lu_poll(struct lu *lu)
{
    if (!lu->q)
        return 0;
    int n = lu->in_flight > 0 ? lp_queue_poll(lu->q, 0) : 0;
    io_retry(lu);
    lu_drain(lu);
    if (n > 0)
        lp_queue_kick(lu->q); /* what done() and the next steps have submitted */
    return n;
}

void lu_kick(struct lu *lu)
{
    if (lu->q)
        lp_queue_kick(lu->q);
}

unsigned lu_in_flight(const struct lu *lu)
{
    return lu->in_flight;
}

void lu_end_errno(struct lu_task *task, int status)
{
    bool reads = task->request.op == LP_READ;

    switch (status) {
    case -ENOSPC:
    case -EDQUOT:
        lu_end_sense(task,
                     scsi_sense_make(SCSI_KEY_DATA_PROTECT, SCSI_ASC_SPACE_ALLOCATION_FAILED));
        break;
    case -EROFS:
        lu_end_sense(task, scsi_sense_make(SCSI_KEY_DATA_PROTECT, SCSI_ASC_WRITE_PROTECTED));
        break;
    case -ENOMEM:
    case -EAGAIN:
        lu_end(task, SCSI_BUSY);
        break;
    case -EINVAL:
    case -EOPNOTSUPP:
        lu_end_sense(task,
                     scsi_sense_make(SCSI_KEY_HARDWARE_ERROR, SCSI_ASC_INTERNAL_TARGET_FAILURE));
        break;
    default:
        lu_end_sense(task,
                     scsi_sense_make(SCSI_KEY_MEDIUM_ERROR, reads ? SCSI_ASC_UNRECOVERED_READ_ERROR
                                                                  : SCSI_ASC_WRITE_ERROR));
    }
}

/* ---- scratch ---- */

uint32_t lu_scratch_blocks(const struct lu *lu)
{
    return LU_SCRATCH_SIZE >> lu->shift;
}

static void scratch_give(struct lu_task *task)
{
    struct lu *lu = task->lu;
    void *memory = NULL;

    lu->scratch_owner = task;
    task->waits = false;
    if (!lu->scratch && posix_memalign(&memory, 4096, LU_SCRATCH_SIZE) == 0) {
        memset(memory, 0, LU_SCRATCH_SIZE);
        lu->scratch = memory;
    }
    task->next(task, lu->scratch ? 0 : -ENOMEM);
}

void lu_take_scratch(struct lu_task *task, void (*next)(struct lu_task *, int))
{
    struct lu *lu = task->lu;

    task->next = next;
    if (lu->scratch_owner) {
        task->waits = true;
        lu_list_add(&lu->scratch_waiters, task);
    } else {
        scratch_give(task);
    }
}

void lu_release_scratch(struct lu_task *task)
{
    struct lu *lu = task->lu;

    if (lu->scratch_owner != task)
        return;
    lu->scratch_owner = NULL;
    struct lu_task *next = lu_list_pop(&lu->scratch_waiters);
    if (next)
        scratch_give(next);
}

void lu_forget_wait(struct lu_task *task)
{
    if (!task->waits)
        return;
    task->waits = false;
    lu_list_remove(&task->lu->stalled, task);
    lu_list_remove(&task->lu->scratch_waiters, task);
}

void lu_io_scratch(struct lu_task *task, enum lp_op op, uint32_t flags, uint64_t lba,
                   uint32_t blocks, void (*next)(struct lu_task *, int))
{
    struct lu *lu = task->lu;

    task->own_iov = (struct iovec){.iov_base = lu->scratch, .iov_len = (size_t)blocks << lu->shift};
    lu_io(task, op, flags, lba, blocks, &task->own_iov, 1, next);
}

/* ---- data ---- */

/* Calls for each piece of the task's segments that covers [at, at + n). */
static size_t each_piece(const struct lu_task *task, uint64_t at, size_t n, uint8_t *buf,
                         bool (*piece)(uint8_t *data, uint8_t *buf, size_t n, size_t *same))
{
    size_t done = 0;

    for (uint32_t i = 0; i < task->iovcnt && done < n; i++) {
        const struct iovec *v = &task->iov[i];
        if (at >= v->iov_len) {
            at -= v->iov_len;
            continue;
        }
        size_t part = v->iov_len - (size_t)at, same = 0;
        if (part > n - done)
            part = n - done;
        if (!piece((uint8_t *)v->iov_base + at, buf + done, part, &same))
            return done + same;
        done += part;
        at = 0;
    }
    return done;
}

static bool piece_put(uint8_t *data, uint8_t *buf, size_t n, size_t *same)
{
    (void)same;
    memcpy(data, buf, n);
    return true;
}

static bool piece_get(uint8_t *data, uint8_t *buf, size_t n, size_t *same)
{
    (void)same;
    memcpy(buf, data, n);
    return true;
}

static bool piece_compare(uint8_t *data, uint8_t *buf, size_t n, size_t *same)
{
    if (memcmp(data, buf, n) == 0)
        return true;
    while (data[*same] == buf[*same])
        ++*same;
    return false;
}

void lu_put(struct lu_task *task, const void *bytes, size_t n)
{
    uint64_t room =
        task->data_length < task->data_in_length ? task->data_length : task->data_in_length;
    uint64_t left = task->put_total < room ? room - task->put_total : 0;

    each_piece(task, task->put_total, n < left ? n : (size_t)left, (uint8_t *)bytes, piece_put);
    task->put_total += n;
}

void lu_end_data(struct lu_task *task)
{
    uint64_t allocated = task->fields.length;

    if (scsi_command_info(task->fields.command)->unit == SCSI_LENGTH_NONE)
        allocated = task->put_total; /* READ CAPACITY(10) */
    task->transfer_length = task->put_total < allocated ? task->put_total : allocated;
    task->data_in =
        task->transfer_length < task->data_length ? task->transfer_length : task->data_length;
    lu_end(task, SCSI_GOOD);
}

bool lu_get(const struct lu_task *task, uint64_t at, void *buf, size_t n)
{
    return at <= task->data_length && n <= task->data_length - at &&
           each_piece(task, at, n, buf, piece_get) == n;
}

size_t lu_compare(const struct lu_task *task, uint64_t at, const uint8_t *buf, size_t n)
{
    return each_piece(task, at, n, (uint8_t *)buf, piece_compare);
}
