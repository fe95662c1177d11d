/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of a disk that needs no time: submit() does the request at once and keeps it in a list
 * of done ones until poll().
 */
#include "disk/disk_int.h"

#include <errno.h>
#include <stdlib.h>

struct sync_queue {
    struct lp_queue head;
    struct lp_disk *disk;
    disk_execute *execute;
    struct request_list done;
};

static int sync_submit(struct lp_queue *head, struct lp_request *req)
{
    struct sync_queue *q = (struct sync_queue *)head;

    if (q->done.count == head->limits.depth)
        return -EAGAIN;
    req->status = disk_check(&head->limits, req);
    if (req->status == 0)
        q->execute(q->disk, req);
    list_add(&q->done, req);
    return 0;
}

static int sync_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct sync_queue *q = (struct sync_queue *)head;

    (void)wait_ns; /* what is in flight is done already */
    return list_complete(&q->done, &head->stats);
}

static int sync_wait_fd(struct lp_queue *head)
{
    (void)head;
    return LP_WAIT_NONE;
}

static void sync_close(struct lp_queue *head)
{
    free(head);
}

struct lp_queue *disk_sync_queue(struct lp_disk *disk, unsigned depth, disk_execute *execute,
                                 struct lp_error *err)
{
    static const struct lp_queue_ops ops = {
        .submit = sync_submit, .poll = sync_poll, .close = sync_close, .wait_fd = sync_wait_fd};
    struct sync_queue *q = calloc(1, sizeof *q);

    if (!q) {
        lp_error_sys(err, ENOMEM, "cannot make a queue");
        return NULL;
    }
    q->head.ops = &ops;
    q->head.limits = disk->limits;
    q->head.limits.depth = depth;
    q->disk = disk;
    q->execute = execute;
    return &q->head;
}
