/* SPDX-License-Identifier: BSD-2-Clause */
/* COMPARE AND WRITE, WRITE SAME, UNMAP, GET LBA STATUS. */
#include "base/bytes.h"
#include "scsi/lu_int.h"

#include <string.h>

static void end_illegal(struct lu_task *task, uint16_t asc)
{
    lu_end_sense(task, scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, asc));
}

static uint32_t disk_flags(const struct lu_task *task)
{
    return task->lu->q->limits.fua == LP_FUA_NONE ? 0 : lu_write_flags(task);
}

/* ---- COMPARE AND WRITE: the range is claimed for writing, so nobody comes between ---- */

void lu_check_compare_and_write(struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;

    if (f->length > LU_COMPARE_MAX || f->length > task->lu->opts.max_transfer_blocks)
        lu_refuse(task, scsi_sense_cdb_field(13, -1));
    else if (lu_check_range(task, f->lba, f->length, CLAIM_WRITE))
        task->data_out_length = 2 * ((uint64_t)f->length << task->lu->shift);
}

static void compare_read(struct lu_task *task, int status)
{
    struct lu *lu = task->lu;
    size_t n = (size_t)task->block_count << lu->shift;

    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    size_t same = lu_compare(task, 0, lu->scratch, n);
    if (same < n) {
        struct scsi_sense s = scsi_sense_make(SCSI_KEY_MISCOMPARE, SCSI_ASC_MISCOMPARE);
        s.information_valid = true;
        s.information = same;
        lu_end_sense(task, s);
        return;
    }
    lu_get(task, n, lu->scratch, n);
    lu_map_written(lu, task->first_block, task->block_count);
    lu_io_scratch(task, LP_WRITE, disk_flags(task), task->first_block, (uint32_t)task->block_count,
                  lu_written);
}

static void compare_begin(struct lu_task *task, int status)
{
    if (status != 0)
        lu_end_errno(task, status);
    else
        lu_io_scratch(task, LP_READ, 0, task->first_block, (uint32_t)task->block_count,
                      compare_read);
}

void lu_compare_and_write(struct lu_task *task)
{
    if (task->block_count == 0)
        lu_end(task, SCSI_GOOD);
    else
        lu_take_scratch(task, compare_begin);
}

/* ---- WRITE SAME ---- */

void lu_check_write_same(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    const struct scsi_cdb *f = &task->fields;
    uint64_t n = f->length;
    bool no_data = f->command == SCSI_CMD_WRITE_SAME_16 && f->flags & SCSI_CDB_NDOB;

    if (f->flags & SCSI_CDB_WS_UNMAP && !lu->lbprz) {
        lu_refuse(task, scsi_sense_cdb_field(1, 3));
        return;
    }
    if (!lu_check_range(task, f->lba, n, CLAIM_WRITE))
        return;
    if (n == 0) /* WSNZ is 0: to the end */
        n = lu->blocks - f->lba;
    if (n > LU_SAME_BLOCKS) {
        lu_refuse(task, scsi_sense_cdb_field(scsi_command_info(f->command)->length_at, -1));
        return;
    }
    lu_check_range(task, f->lba, n, CLAIM_WRITE);
    task->data_out_length = no_data ? 0 : lu->block_size;
}

static void same_next(struct lu_task *task);

static void same_written(struct lu_task *task, int status)
{
    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    task->done_blocks += task->step_blocks;
    same_next(task);
}

static void same_next(struct lu_task *task)
{
    uint64_t left = task->block_count - task->done_blocks;
    uint32_t most = lu_scratch_blocks(task->lu);

    if (left == 0) {
        lu_written(task, 0);
        return;
    }
    task->step_blocks = left < most ? (uint32_t)left : most;
    lu_io_scratch(task, LP_WRITE, disk_flags(task), task->first_block + task->done_blocks,
                  task->step_blocks, same_written);
}

/* Fills scratch with copies of the block, as many as are needed at once. */
static void same_begin(struct lu_task *task, int status)
{
    struct lu *lu = task->lu;
    size_t size = lu->block_size;
    uint64_t copies =
        task->block_count < lu_scratch_blocks(lu) ? task->block_count : lu_scratch_blocks(lu);

    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    memset(lu->scratch, 0, size);
    if (task->data_out_length > 0)
        lu_get(task, 0, lu->scratch, size);
    for (uint64_t i = 1; i < copies; i++)
        memcpy(lu->scratch + i * size, lu->scratch, size);
    task->done_blocks = 0;
    lu_map_written(lu, task->first_block, task->block_count);
    same_next(task);
}

static bool all_zero(const struct lu_task *task)
{
    uint8_t part[512];
    static const uint8_t zeros[512];

    for (uint64_t at = 0; at < task->data_out_length; at += sizeof part)
        if (!lu_get(task, at, part, sizeof part) || memcmp(part, zeros, sizeof part) != 0)
            return false;
    return true;
}

static void same_unmapped(struct lu_task *task, int status)
{
    if (status == 0)
        lu_map_deallocated(task->lu, task->first_block, task->block_count);
    lu_written(task, status);
}

void lu_write_same(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    bool zero = all_zero(task);

    if (task->block_count == 0) {
        lu_end(task, SCSI_GOOD);
    } else if (zero && task->fields.flags & SCSI_CDB_WS_UNMAP) {
        lu_io(task, LP_DISCARD, 0, task->first_block, task->block_count, NULL, 0, same_unmapped);
    } else if (zero && lu->q->limits.write_zeroes) {
        lu_map_written(task->lu, task->first_block, task->block_count);
        lu_io(task, LP_WRITE_ZEROES, disk_flags(task), task->first_block, task->block_count, NULL,
              0, lu_written);
    } else {
        lu_take_scratch(task, same_begin);
    }
}

/* ---- UNMAP; SBC-3 5.28 ---- */

enum { UNMAP_HEADER = 8, UNMAP_DESCRIPTOR = 16 };

void lu_check_unmap(struct lu_task *task)
{
    uint32_t n = task->fields.length;

    task->data_out_length = n;
    if (n > 0 && n < UNMAP_HEADER)
        lu_refuse(task,
                  scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR));
}

static bool get_unmap_descriptor(const struct lu_task *task, uint64_t index, uint64_t *lba,
                                 uint32_t *blocks)
{
    uint8_t d[UNMAP_DESCRIPTOR];

    if (!lu_get(task, UNMAP_HEADER + index * UNMAP_DESCRIPTOR, d, sizeof d))
        return false;
    *lba = load_be64(d);
    *blocks = load_be32(d + 8);
    return true;
}

void lu_claim_unmap(struct lu_task *task)
{
    uint64_t lba, first = UINT64_MAX, end = 0;
    uint32_t blocks;

    for (uint64_t i = 0; get_unmap_descriptor(task, i, &lba, &blocks); i++) {
        if (lba > task->lu->blocks || blocks > task->lu->blocks - lba || blocks == 0)
            continue; /* it will be refused, or does nothing */
        first = lba < first ? lba : first;
        end = lba + blocks > end ? lba + blocks : end;
    }
    task->claim = end > 0 ? CLAIM_WRITE : CLAIM_NONE;
    task->first_block = end > 0 ? first : 0;
    task->block_count = end > 0 ? end - first : 0;
}

/* All descriptors are judged before the first block is unmapped. 0: as it should be; else the
 * ASC of what is wrong. */
static uint16_t judge_unmap(const struct lu_task *task, uint64_t count)
{
    uint64_t lba, sum = 0;
    uint32_t blocks;

    if (count > LU_UNMAP_DESCRIPTORS)
        return SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST;
    for (uint64_t i = 0; i < count; i++) {
        if (!get_unmap_descriptor(task, i, &lba, &blocks))
            return SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR;
        if (lba > task->lu->blocks || blocks > task->lu->blocks - lba)
            return SCSI_ASC_LBA_OUT_OF_RANGE;
        sum += blocks;
    }
    return sum > LU_UNMAP_BLOCKS ? SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST : 0;
}

static void unmap_next(struct lu_task *task);

static void unmap_done(struct lu_task *task, int status)
{
    uint64_t lba;
    uint32_t blocks;

    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    if (get_unmap_descriptor(task, task->done_blocks, &lba, &blocks))
        lu_map_deallocated(task->lu, lba, blocks);
    task->done_blocks++;
    unmap_next(task);
}

/* done_blocks counts descriptors, step_blocks is how many there are. */
static void unmap_next(struct lu_task *task)
{
    uint64_t lba;
    uint32_t blocks;

    for (; task->done_blocks < task->step_blocks; task->done_blocks++) {
        if (!get_unmap_descriptor(task, task->done_blocks, &lba, &blocks))
            break;
        if (blocks > 0) {
            lu_io(task, LP_DISCARD, 0, lba, blocks, NULL, 0, unmap_done);
            return;
        }
    }
    lu_written(task, 0);
}

void lu_unmap(struct lu_task *task)
{
    uint8_t header[UNMAP_HEADER];
    uint64_t n = task->fields.length, count;

    if (n == 0) {
        lu_end(task, SCSI_GOOD);
        return;
    }
    if (!lu_get(task, 0, header, sizeof header)) {
        end_illegal(task, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR);
        return;
    }
    count = load_be16(header + 2) / UNMAP_DESCRIPTOR;
    if (count > (n - UNMAP_HEADER) / UNMAP_DESCRIPTOR) {
        end_illegal(task, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR);
        return;
    }
    uint16_t wrong = judge_unmap(task, count);
    if (wrong) {
        end_illegal(task, wrong);
        return;
    }
    task->done_blocks = 0;
    task->step_blocks = (uint32_t)count;
    unmap_next(task);
}

/* ---- GET LBA STATUS ---- */

void lu_check_lba_status(struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;
    uint64_t most = SCSI_LBA_STATUS_HEADER + LU_EXTENTS_MAX * SCSI_LBA_EXTENT_SIZE;

    task->data_in_length = f->length < most ? f->length : most;
    lu_check_range(task, f->lba, 1, CLAIM_NONE);
}

void lu_lba_status(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    struct scsi_lba_extent extents[LU_EXTENTS_MAX];
    uint8_t out[SCSI_LBA_STATUS_HEADER + LU_EXTENTS_MAX * SCSI_LBA_EXTENT_SIZE];
    uint64_t lba = task->fields.lba;
    size_t count = 0;

    while (lba < lu->blocks && count < LU_EXTENTS_MAX) {
        uint64_t left = lu->blocks - lba;
        bool deallocated;
        uint64_t n = lu_map_run(lu, lba, left < UINT32_MAX ? left : UINT32_MAX, &deallocated);
        extents[count++] = (struct scsi_lba_extent){.lba = lba,
                                                    .blocks = (uint32_t)n,
                                                    .status = deallocated ? SCSI_LBA_DEALLOCATED
                                                                          : SCSI_LBA_MAPPED};
        lba += n;
    }
    lu_put(task, out, scsi_lba_status_pack(extents, count, out));
    lu_end_data(task);
}
