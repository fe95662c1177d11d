/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the disks share among themselves: the check of a request against the limits, the queue of
 * those that need no time, and completing what is done.
 */
#ifndef DISK_DISK_INT_H
#define DISK_DISK_INT_H

#include "base/request_list.h"

#include <lunpath/disk.h>

extern const struct lp_disk_type disk_null;
extern const struct lp_disk_type disk_ram;
extern const struct lp_disk_type disk_file;
extern const struct lp_disk_type disk_fault;
extern const struct lp_disk_type disk_iscsi;

enum {
    DISK_MIN_BLOCK = 512,
    DISK_MAX_DEPTH = 4096,
    DISK_MAX_QUEUES = 256,
};

/* Can a disk with these limits do it? 0, -EROFS, -EOPNOTSUPP (an operation that it has not) or
 * -EINVAL (outside the disk, not in whole blocks, segments that do not fit the limits or do not sum
 * up to the length, data behind a device address). */
int disk_check(const struct lp_limits *limits, const struct lp_request *req);

/* The size in "NAME:SIZE": positive, in whole blocks of DISK_MIN_BLOCK, below 8 EiB. 0 or -1. */
int disk_size_parse(const char *text, uint64_t *size, struct lp_error *err);

/* Counts and completes what is in the list now; what complete() adds stays for the next call. The
 * list's count falls just before each complete(), so that it may submit again.
 * Returns the number completed. */
int list_complete(struct request_list *list, struct lp_queue_stats *stats);

/* Does what disk_check() found right; cannot fail. Called by submit(), on the queue's thread: with
 * several queues on several threads at once. */
typedef void disk_execute(struct lp_disk *disk, const struct lp_request *req);

/* A queue that does each request at once. NULL: see err. */
struct lp_queue *disk_sync_queue(struct lp_disk *disk, unsigned depth, disk_execute *execute,
                                 struct lp_error *err);

/* Counts a request that has ended. */
void disk_count(struct lp_queue_stats *stats, const struct lp_request *req);

#endif
