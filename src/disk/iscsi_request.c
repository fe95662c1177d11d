/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests as SCSI commands. READ is one command; WRITE one, or with emulated FUA two; the others
 * go in steps, as long as the target's limits ask for.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "disk/iscsi_int.h"
#include "scsi/cdb.h"

enum { ZERO_BYTES = 65536, WRITE_16_CODE = 0x8a };

static const uint8_t zeros[ZERO_BYTES];

static uint32_t block_size(const struct iscsi_slot *slot)
{
    return slot->queue->info.capacity.block_size;
}

/* Fills the command and sends it. */
static void send(struct iscsi_slot *slot, const struct scsi_cdb *cdb, enum ini_direction direction,
                 const struct iovec *iov, unsigned count, uint32_t length,
                 void (*done)(struct link_command *))
{
    struct link_command *c = &slot->command;
    uint8_t bytes[SCSI_CDB_MAX];
    size_t n = scsi_cdb_build(cdb, bytes);

    memset(c->task.cdb, 0, sizeof(c->task.cdb));
    memcpy(c->task.cdb, bytes, n < sizeof(c->task.cdb) ? n : sizeof(c->task.cdb));
    c->task.cdb_length = (uint16_t)n;
    c->task.lun = load_be64(slot->queue->disk->url.lun);
    c->task.attr = ISCSI_ATTR_SIMPLE;
    c->task.direction = direction;
    c->task.iov = iov;
    c->task.iov_count = count;
    c->task.length = length;
    c->done = done;
    c->user = slot;
    link_submit(iscsi_queue_link(slot->queue), c);
}

/* A residual means that bytes are missing, whatever the status says (I-RES-01). */
static int data_status(const struct link_command *c)
{
    return c->status == 0 && c->transferred != c->task.length ? -EIO : c->status;
}

static void on_end(struct link_command *c)
{
    struct iscsi_slot *slot = c->user;

    iscsi_slot_end(slot, data_status(c));
}

/* ---- FLUSH ---- */

/* A target that does not know the command, and does not say that it has a cache, has no volatile
 * one to flush (A46). Any other error stands (C-10). */
static void on_flushed(struct link_command *c)
{
    const struct iscsi_slot *slot = c->user;
    const struct lun_info *info = &slot->queue->info;
    bool unknown = c->status == -EOPNOTSUPP && c->has_sense && scsi_sense_asc(&c->sense) == 0x2000;

    iscsi_slot_end(c->user, unknown && !info->has_caching ? 0 : c->status);
}

static void flush(struct iscsi_slot *slot)
{
    const struct scsi_cdb cdb = {.command = SCSI_CMD_SYNCHRONIZE_CACHE_10};
    const struct lun_info *info = &slot->queue->info;

    if (info->has_caching && !info->caching.wce)
        iscsi_slot_end(slot, 0); /* every write was on the medium when it was answered */
    else
        send(slot, &cdb, INI_NONE, NULL, 0, 0, on_flushed);
}

/* ---- READ, WRITE ---- */

static void on_written_then_flush(struct link_command *c)
{
    int status = data_status(c);

    if (status != 0)
        iscsi_slot_end(c->user, status);
    else
        flush(c->user);
}

static void transfer(struct iscsi_slot *slot)
{
    const struct lp_request *req = slot->req;
    const struct lun_info *info = &slot->queue->info;
    bool write = req->op == LP_WRITE;
    bool fua = write && (req->flags & LP_FUA);
    bool large = slot->lba + slot->blocks > UINT32_MAX || slot->blocks > UINT16_MAX;
    const struct scsi_cdb cdb = {
        .command = write ? (large ? SCSI_CMD_WRITE_16 : SCSI_CMD_WRITE_10)
                         : (large ? SCSI_CMD_READ_16 : SCSI_CMD_READ_10),
        .lba = slot->lba,
        .length = (uint32_t)slot->blocks,
        .flags = fua && info->dpofua ? SCSI_CDB_FUA : 0,
    };

    send(slot, &cdb, write ? INI_WRITE : INI_READ, req->iov, req->iovcnt, (uint32_t)req->length,
         fua && !info->dpofua ? on_written_then_flush : on_end);
}

/* ---- DISCARD: advice, so edges that the target cannot unmap are left alone ---- */

static void discard_step(struct iscsi_slot *slot);

static void on_discarded(struct link_command *c)
{
    struct iscsi_slot *slot = c->user;

    if (c->status != 0) {
        iscsi_slot_end(slot, c->status);
        return;
    }
    slot->lba += slot->step_blocks;
    slot->blocks -= slot->step_blocks;
    discard_step(slot);
}

static uint32_t least(uint64_t a, uint64_t b)
{
    uint64_t n = a < b ? a : b;

    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static void unmap(struct iscsi_slot *slot)
{
    const struct scsi_block_limits *limits = &slot->queue->info.limits;
    const struct scsi_cdb cdb = {.command = SCSI_CMD_UNMAP, .length = ISCSI_UNMAP_LIST};

    uint32_t most = limits->max_unmap_blocks ? limits->max_unmap_blocks : UINT32_MAX;
    uint32_t granularity = limits->unmap_granularity ? limits->unmap_granularity : 1;

    if (most >= granularity) /* so that the next step begins where the target can unmap */
        most -= most % granularity;
    slot->step_blocks = least(slot->blocks, most);
    memset(slot->list, 0, sizeof(slot->list));
    store_be16(slot->list, ISCSI_UNMAP_LIST - 2);
    store_be16(slot->list + 2, ISCSI_UNMAP_LIST - 8);
    store_be64(slot->list + 8, slot->lba);
    store_be32(slot->list + 16, slot->step_blocks);
    slot->iov[0] = (struct iovec){slot->list, ISCSI_UNMAP_LIST};
    send(slot, &cdb, INI_WRITE, slot->iov, 1, ISCSI_UNMAP_LIST, on_discarded);
}

static void write_same(struct iscsi_slot *slot, uint8_t flags, void (*done)(struct link_command *))
{
    const struct lun_info *info = &slot->queue->info;
    uint64_t most =
        info->has_limits && info->limits.max_write_same ? info->limits.max_write_same : 65536;
    struct scsi_cdb cdb = {.command = SCSI_CMD_WRITE_SAME_16, .lba = slot->lba, .flags = flags};

    slot->step_blocks = least(slot->blocks, most);
    cdb.length = slot->step_blocks;
    slot->iov[0] = (struct iovec){(void *)(uintptr_t)zeros, block_size(slot)};
    send(slot, &cdb, INI_WRITE, slot->iov, 1, block_size(slot), done);
}

static void discard_step(struct iscsi_slot *slot)
{
    if (slot->blocks == 0)
        iscsi_slot_end(slot, 0);
    else if (slot->queue->info.provisioning.lbpu)
        unmap(slot);
    else
        write_same(slot, SCSI_CDB_WS_UNMAP, on_discarded);
}

static void discard(struct iscsi_slot *slot)
{
    const struct scsi_block_limits *limits = &slot->queue->info.limits;
    uint64_t granularity = limits->unmap_granularity ? limits->unmap_granularity : 1;
    uint64_t offset = limits->unmap_alignment_valid ? limits->unmap_alignment % granularity : 0;
    uint64_t end = slot->lba + slot->blocks;
    uint64_t begin = (slot->lba + granularity - 1 - offset) / granularity * granularity + offset;

    end = end < offset ? 0 : (end - offset) / granularity * granularity + offset;
    slot->lba = begin;
    slot->blocks = end > begin ? end - begin : 0;
    discard_step(slot);
}

/* ---- WRITE_ZEROES: WRITE SAME, or plain zeros for a target that does not know it ---- */

static void zero_step(struct iscsi_slot *slot);

static void on_zeroed(struct link_command *c)
{
    struct iscsi_slot *slot = c->user;

    int status = data_status(c);

    /* By what was sent: others in flight may have found out before. */
    if (status == -EOPNOTSUPP && c->task.cdb[0] != WRITE_16_CODE) {
        slot->queue->no_write_same = true;
        zero_step(slot);
        return;
    }
    if (status != 0) {
        iscsi_slot_end(slot, status);
        return;
    }
    slot->lba += slot->step_blocks;
    slot->blocks -= slot->step_blocks;
    zero_step(slot);
}

static void write_zeros(struct iscsi_slot *slot)
{
    const struct lp_limits *limits = &slot->queue->head.limits;
    uint64_t left, most = ISCSI_ZERO_SEGMENTS * (uint64_t)ZERO_BYTES;
    struct scsi_cdb cdb = {.command = SCSI_CMD_WRITE_16, .lba = slot->lba};
    unsigned count = 0;

    if (most > limits->max_transfer)
        most = limits->max_transfer;
    slot->step_blocks = least(slot->blocks, most / block_size(slot));
    cdb.length = slot->step_blocks;
    left = (uint64_t)slot->step_blocks * block_size(slot);
    for (uint64_t n = left; n > 0; count++) {
        size_t piece = n < ZERO_BYTES ? (size_t)n : ZERO_BYTES;

        slot->iov[count] = (struct iovec){(void *)(uintptr_t)zeros, piece};
        n -= piece;
    }
    send(slot, &cdb, INI_WRITE, slot->iov, count, (uint32_t)left, on_zeroed);
}

static void zero_step(struct iscsi_slot *slot)
{
    if (slot->blocks > 0 && slot->queue->no_write_same)
        write_zeros(slot);
    else if (slot->blocks > 0)
        write_same(slot, 0, on_zeroed);
    else if (slot->req->flags & LP_FUA)
        flush(slot);
    else
        iscsi_slot_end(slot, 0);
}

void iscsi_request_begin(struct iscsi_slot *slot)
{
    const struct lp_request *req = slot->req;

    slot->lba = req->offset / block_size(slot);
    slot->blocks = req->length / block_size(slot);
    switch (req->op) {
    case LP_READ:
    case LP_WRITE:
        transfer(slot);
        break;
    case LP_FLUSH:
        flush(slot);
        break;
    case LP_DISCARD:
        discard(slot);
        break;
    default:
        zero_step(slot);
    }
}
