/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * null:SIZE moves no data: it shows what everything above a disk costs. It is also the smallest
 * disk, and shows all that a disk is made of:
 *
 *   open()    reads the rest of the URL and says in `limits` what requests it takes
 *   queue()   makes a queue, which one thread uses
 *   close()   frees it; its queues are closed already
 *
 * Its queue is the one of all disks that need no time, sync_queue.c: submit() takes a request and
 * does it, and poll() completes it later, never submit() itself.
 */
#include "disk/disk_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct null_disk {
    struct lp_disk head;
    bool zero_reads;
};

/* Moves nothing; zeros only where they were asked for. */
static void null_execute(struct lp_disk *head, const struct lp_request *req)
{
    if (req->op != LP_READ || !((const struct null_disk *)head)->zero_reads)
        return;
    for (uint32_t i = 0; i < req->iovcnt; i++)
        memset(req->iov[i].iov_base, 0, req->iov[i].iov_len);
}

static struct lp_queue *null_queue(struct lp_disk *head, unsigned depth, struct lp_error *err)
{
    return disk_sync_queue(head, depth, null_execute, err);
}

static struct lp_disk *null_open(const char *rest, const struct lp_disk_opts *opts,
                                 struct lp_error *err)
{
    uint64_t size = 0;

    if (opts->fd >= 0)
        close(opts->fd); /* ours, but there is nothing behind it */
    if (disk_size_parse(rest, &size, err))
        return NULL;
    struct null_disk *disk = calloc(1, sizeof *disk);
    if (!disk) {
        lp_error_sys(err, ENOMEM, "cannot make a disk");
        return NULL;
    }
    disk->zero_reads = opts->zero_reads;
    disk->head.limits = (struct lp_limits){.size = size,
                                           .block_size = DISK_MIN_BLOCK,
                                           .mem_align = 1,
                                           .depth = DISK_MAX_DEPTH,
                                           .queues = DISK_MAX_QUEUES,
                                           .fua = LP_FUA_NATIVE,
                                           .read_only = opts->read_only,
                                           .discard = !opts->read_only,
                                           .write_zeroes = !opts->read_only};
    snprintf(disk->head.mode, sizeof disk->head.mode, "no data moved%s",
             opts->zero_reads ? ", reads give zeros" : "");
    return &disk->head;
}

static void null_close(struct lp_disk *head)
{
    free(head);
}

const struct lp_disk_type disk_null = {
    .name = "null",
    .help = "null:SIZE      moves no data, to see what all the rest costs",
    .open = null_open,
    .queue = null_queue,
    .close = null_close,
};
