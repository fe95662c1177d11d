/* SPDX-License-Identifier: BSD-2-Clause */
/* READ, WRITE, VERIFY and their relatives. */
#include "scsi/lu_int.h"

#include <errno.h>
#include <string.h>

enum {
    FUA_BITS = SCSI_CDB_FUA | 0x02, /* FUA_NV: there is no other non-volatile cache */
    BYTCHK_NONE = 0,
    BYTCHK_ALL = 1,
    BYTCHK_ONE_BLOCK = 3,
};

/* ---- judging ---- */

bool lu_check_range(struct lu_task *task, uint64_t lba, uint64_t blocks, uint8_t claim)
{
    const struct lu *lu = task->lu;

    if (lba > lu->blocks || blocks > lu->blocks - lba) {
        struct scsi_sense s = scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LBA_OUT_OF_RANGE);
        s.information_valid = true;
        s.information = lba > lu->blocks ? lba : lu->blocks; /* the first block that is not there */
        lu_refuse(task, s);
        return false;
    }
    task->first_block = lba;
    task->block_count = blocks;
    task->claim = blocks > 0 ? claim : CLAIM_NONE;
    return true;
}

static bool check_transfer(struct lu_task *task, uint8_t claim)
{
    const struct scsi_cdb *f = &task->fields;

    if (f->length > task->lu->opts.max_transfer_blocks) {
        lu_refuse(task, scsi_sense_cdb_field(scsi_command_info(f->command)->length_at, -1));
        return false;
    }
    return lu_check_range(task, f->lba, f->length, claim);
}

void lu_check_read_write(struct lu_task *task)
{
    bool writes = scsi_command_info(task->fields.command)->direction == SCSI_DATA_OUT;
    uint64_t n = (uint64_t)task->fields.length << task->lu->shift;

    if (check_transfer(task, writes ? CLAIM_WRITE : CLAIM_READ))
        *(writes ? &task->data_out_length : &task->data_in_length) = n;
}

static unsigned bytchk(const struct lu_task *task)
{
    return (task->fields.flags & SCSI_CDB_BYTCHK) >> 1;
}

static bool is_verify(const struct lu_task *task)
{
    enum scsi_command c = task->fields.command;

    return c == SCSI_CMD_VERIFY_10 || c == SCSI_CMD_VERIFY_12 || c == SCSI_CMD_VERIFY_16;
}

void lu_check_verify(struct lu_task *task)
{
    bool verify = is_verify(task);
    unsigned check = bytchk(task);
    uint64_t n = task->fields.length;

    if (check == 2 || (check == BYTCHK_ONE_BLOCK && !verify)) {
        lu_refuse(task, scsi_sense_cdb_field(1, 2));
        return;
    }
    if (!check_transfer(task, verify ? CLAIM_READ : CLAIM_WRITE))
        return;
    if (verify && check == BYTCHK_NONE)
        n = 0;
    else if (verify && check == BYTCHK_ONE_BLOCK && n > 0)
        n = 1;
    task->data_out_length = n << task->lu->shift;
}

/* PRE-FETCH and SYNCHRONIZE CACHE: length 0 is "to the end". */
void lu_check_range_only(struct lu_task *task)
{
    lu_check_range(task, task->fields.lba, task->fields.length, CLAIM_NONE);
}

/* ---- READ ---- */

static void end_read_error(struct lu_task *task, uint64_t lba)
{
    struct scsi_sense s = scsi_sense_make(SCSI_KEY_MEDIUM_ERROR, SCSI_ASC_UNRECOVERED_READ_ERROR);

    s.information_valid = true;
    s.information = lba;
    lu_end_sense(task, s);
}

/* A READ has failed. The first bad block is in [first_block + done_blocks, ...): pieces of
 * step_blocks are read again, each smaller than the one that failed before. */
static void search_next(struct lu_task *task);

static void search_step(struct lu_task *task, int status)
{
    uint64_t left = task->step_end - task->done_blocks;

    if (status == 0 && task->step_blocks >= left) {
        end_read_error(task, task->first_block); /* it reads well now: the whole is suspect */
    } else if (status == 0) {
        task->done_blocks += task->step_blocks;
        search_next(task);
    } else if (task->step_blocks > 1) {
        task->step_end = task->done_blocks + task->step_blocks; /* the bad one is in there */
        task->step_blocks = (task->step_blocks + 1) / 2;
        search_next(task);
    } else {
        end_read_error(task, task->first_block + task->done_blocks);
    }
}

static void search_next(struct lu_task *task)
{
    uint64_t left = task->step_end - task->done_blocks;
    uint32_t n = left < task->step_blocks ? (uint32_t)left : task->step_blocks;

    task->step_blocks = n;
    lu_io_scratch(task, LP_READ, 0, task->first_block + task->done_blocks, n, search_step);
}

static void search_begin(struct lu_task *task, int status)
{
    if (status != 0) {
        end_read_error(task, task->first_block);
        return;
    }
    task->done_blocks = 0;
    task->step_end = task->block_count;
    task->step_blocks = lu_scratch_blocks(task->lu);
    search_next(task);
}

static void read_done(struct lu_task *task, int status)
{
    if (status == 0) {
        task->data_in = task->data_length;
        lu_end(task, SCSI_GOOD);
    } else if (status == -EIO && task->block_count > 1) {
        lu_take_scratch(task, search_begin);
    } else if (status == -EIO) {
        end_read_error(task, task->first_block);
    } else {
        lu_end_errno(task, status);
    }
}

void lu_read(struct lu_task *task)
{
    uint64_t blocks = task->data_length >> task->lu->shift; /* no more than there is room for */

    if (blocks == 0)
        lu_end(task, SCSI_GOOD);
    else
        lu_io(task, LP_READ, 0, task->first_block, blocks, task->iov, task->iovcnt, read_done);
}

/* ---- WRITE ---- */

uint32_t lu_write_flags(const struct lu_task *task)
{
    const struct lu *lu = task->lu;
    enum scsi_command c = task->fields.command;
    bool fua = task->fields.flags & FUA_BITS;

    if (c == SCSI_CMD_WRITE_SAME_10 || c == SCSI_CMD_WRITE_SAME_16)
        fua = false; /* these bits mean other things there */
    else if (c == SCSI_CMD_WRITE_AND_VERIFY_10 || c == SCSI_CMD_WRITE_AND_VERIFY_12 ||
             c == SCSI_CMD_WRITE_AND_VERIFY_16)
        fua = true;
    return fua || (lu->opts.write_cache && !lu->mode.wce) ? LP_FUA : 0;
}

static void flush_done(struct lu_task *task, int status)
{
    if (status != 0)
        lu_end_errno(task, status);
    else
        lu_end(task, SCSI_GOOD);
}

/* The end of a write: with FUA on a disk that cannot do it, a flush. */
void lu_written(struct lu_task *task, int status)
{
    const struct lu *lu = task->lu;

    if (status == 0 && lu_write_flags(task) && lu->q->limits.fua == LP_FUA_NONE)
        lu_io(task, LP_FLUSH, 0, 0, 0, NULL, 0, flush_done);
    else
        flush_done(task, status);
}

static uint32_t disk_flags(const struct lu_task *task)
{
    return task->lu->q->limits.fua == LP_FUA_NONE ? 0 : lu_write_flags(task);
}

/* ---- WRITE with less data than it asks for: what came is written, the rest stays as it is (as
 * FCP-4 has it for FCP_DL). The last block may come in part only. ---- */

static void cut_next(struct lu_task *task);

/* Bytes that came and are not written yet. */
static uint64_t cut_left(const struct lu_task *task)
{
    return task->expected_length - (task->done_blocks << task->lu->shift);
}

static void cut_written(struct lu_task *task, int status)
{
    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    task->done_blocks += task->step_blocks;
    cut_next(task);
}

static void cut_write(struct lu_task *task, size_t n)
{
    lu_get(task, task->done_blocks << task->lu->shift, task->lu->scratch, n);
    lu_io_scratch(task, LP_WRITE, disk_flags(task), task->first_block + task->done_blocks,
                  task->step_blocks, cut_written);
}

static void cut_block_read(struct lu_task *task, int status)
{
    if (status != 0)
        lu_end_errno(task, status);
    else
        cut_write(task, (size_t)cut_left(task));
}

static void cut_next(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    uint64_t left = task->done_blocks << lu->shift < task->expected_length ? cut_left(task) : 0;
    uint64_t blocks = left >> lu->shift;

    if (left == 0) {
        lu_written(task, 0);
    } else if (blocks == 0) {
        task->step_blocks = 1;
        lu_io_scratch(task, LP_READ, 0, task->first_block + task->done_blocks, 1, cut_block_read);
    } else {
        task->step_blocks =
            blocks < lu_scratch_blocks(lu) ? (uint32_t)blocks : lu_scratch_blocks(lu);
        cut_write(task, (size_t)task->step_blocks << lu->shift);
    }
}

static void cut_begin(struct lu_task *task, int status)
{
    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    task->done_blocks = 0;
    lu_map_written(task->lu, task->first_block, task->block_count);
    cut_next(task);
}

/* True: nothing is to be written, or less than the CDB asks for, and that is under way. */
static bool written_otherwise(struct lu_task *task)
{
    if (task->block_count == 0)
        lu_end(task, SCSI_GOOD);
    else if (task->expected_length < task->data_out_length)
        lu_take_scratch(task, cut_begin);
    else
        return false;
    return true;
}

void lu_write(struct lu_task *task)
{
    if (written_otherwise(task))
        return;
    lu_map_written(task->lu, task->first_block, task->block_count);
    lu_io(task, LP_WRITE, disk_flags(task), task->first_block, task->block_count, task->iov,
          task->iovcnt, lu_written);
}

/* ---- VERIFY ---- */

static void verify_next(struct lu_task *task);

static void end_miscompare(struct lu_task *task, uint64_t offset)
{
    struct scsi_sense s = scsi_sense_make(SCSI_KEY_MISCOMPARE, SCSI_ASC_MISCOMPARE);

    s.information_valid = true;
    s.information = offset;
    lu_end_sense(task, s);
}

/* The first byte of scratch that is not as the data-out says, or all of them. */
static size_t compare_step(const struct lu_task *task)
{
    const struct lu *lu = task->lu;
    size_t n = (size_t)task->step_blocks << lu->shift;
    uint64_t at = task->done_blocks << lu->shift;

    if (bytchk(task) == BYTCHK_NONE)
        return n;
    if (bytchk(task) == BYTCHK_ALL)
        return lu_compare(task, at, lu->scratch, n);
    for (size_t i = 0; i < n; i += lu->block_size) {
        size_t same = lu_compare(task, 0, lu->scratch + i, lu->block_size);
        if (same < lu->block_size)
            return i + same;
    }
    return n;
}

static void verify_step(struct lu_task *task, int status)
{
    const struct lu *lu = task->lu;

    if (status != 0) {
        if (status == -EIO && task->block_count > 1) {
            search_begin(task, 0);
            return;
        }
        lu_end_errno(task, status);
        return;
    }
    size_t same = compare_step(task);
    if (same < (size_t)task->step_blocks << lu->shift) {
        /* With one block of data-out the offset is in that block. */
        end_miscompare(task, bytchk(task) == BYTCHK_ONE_BLOCK
                                 ? same % lu->block_size
                                 : (task->done_blocks << lu->shift) + same);
        return;
    }
    task->done_blocks += task->step_blocks;
    verify_next(task);
}

static void verify_next(struct lu_task *task)
{
    uint64_t left = task->block_count - task->done_blocks;
    uint32_t most = lu_scratch_blocks(task->lu);

    if (left == 0) {
        lu_end(task, SCSI_GOOD);
        return;
    }
    task->step_blocks = left < most ? (uint32_t)left : most;
    lu_io_scratch(task, LP_READ, 0, task->first_block + task->done_blocks, task->step_blocks,
                  verify_step);
}

static void verify_begin(struct lu_task *task, int status)
{
    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    task->done_blocks = 0;
    verify_next(task);
}

void lu_verify(struct lu_task *task)
{
    if (task->block_count == 0)
        lu_end(task, SCSI_GOOD);
    else
        lu_take_scratch(task, verify_begin);
}

static void written_then_verify(struct lu_task *task, int status)
{
    if (status != 0)
        lu_end_errno(task, status);
    else
        lu_take_scratch(task, verify_begin);
}

static void write_verify_written(struct lu_task *task, int status)
{
    if (status == 0 && task->lu->q->limits.fua == LP_FUA_NONE)
        lu_io(task, LP_FLUSH, 0, 0, 0, NULL, 0, written_then_verify);
    else
        written_then_verify(task, status);
}

void lu_write_and_verify(struct lu_task *task)
{
    if (written_otherwise(task)) /* what is cut has no counterpart to compare with */
        return;
    lu_map_written(task->lu, task->first_block, task->block_count);
    lu_io(task, LP_WRITE, disk_flags(task), task->first_block, task->block_count, task->iov,
          task->iovcnt, write_verify_written);
}

/* ---- SYNCHRONIZE CACHE ---- */

void lu_synchronize(struct lu_task *task)
{
    lu_io(task, LP_FLUSH, 0, 0, 0, NULL, 0, flush_done);
}
