/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * null:SIZE moves no data: it shows what everything above a disk costs. It is also the smallest
 * disk, and shows all that a disk is made of:
 *
 *   open()    reads the rest of the URL and says in `limits` what requests it takes
 *   queue()   makes a queue, which one thread uses
 *   submit()  takes a request; poll() completes it later, never submit() itself
 *
 * Its queue does a request at once and keeps it in a list of done ones until poll().
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

struct null_queue {
    struct lp_queue head;
    struct request_list done;
    bool zero_reads;
};

static void fill_zeros(const struct lp_request *req)
{
    for (uint32_t i = 0; i < req->iovcnt; i++)
        memset(req->iov[i].iov_base, 0, req->iov[i].iov_len);
}

static int null_submit(struct lp_queue *head, struct lp_request *req)
{
    struct null_queue *q = (struct null_queue *)head;

    if (q->done.count == head->limits.depth)
        return -EAGAIN;
    req->status = disk_check(&head->limits, req);
    if (q->zero_reads && req->op == LP_READ && req->status == 0)
        fill_zeros(req);
    list_add(&q->done, req);
    return 0;
}

static int null_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct null_queue *q = (struct null_queue *)head;

    (void)wait_ns; /* what is in flight is done already */
    return list_complete(&q->done, &head->stats);
}

static int null_wait_fd(struct lp_queue *head)
{
    (void)head;
    return LP_WAIT_NONE;
}

static void null_queue_close(struct lp_queue *head)
{
    free(head);
}

static struct lp_queue *null_queue_open(struct lp_disk *head, unsigned depth, struct lp_error *err)
{
    static const struct lp_queue_ops ops = {.submit = null_submit,
                                            .poll = null_poll,
                                            .close = null_queue_close,
                                            .wait_fd = null_wait_fd};
    struct null_queue *q = calloc(1, sizeof *q);

    if (!q) {
        lp_error_sys(err, ENOMEM, "cannot make a queue");
        return NULL;
    }
    q->head.ops = &ops;
    q->head.limits = head->limits;
    q->head.limits.depth = depth;
    q->zero_reads = ((struct null_disk *)head)->zero_reads;
    return &q->head;
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
    .queue = null_queue_open,
    .close = null_close,
};
