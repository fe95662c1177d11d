/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the disks share among themselves: the check of a request against the limits, and lists of
 * requests, such as those that are done and wait for poll().
 */
#ifndef DISK_DISK_INT_H
#define DISK_DISK_INT_H

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

/* Requests in order, linked by their next. All zero is empty. */
struct request_list {
    struct lp_request *first;
    struct lp_request *last;
    unsigned count;
};

static inline void list_add(struct request_list *list, struct lp_request *req)
{
    req->next = NULL;
    if (list->first)
        list->last->next = req;
    else
        list->first = req;
    list->last = req;
    list->count++;
}

/* The first one, taken out of the list; NULL: it is empty. */
static inline struct lp_request *list_take(struct request_list *list)
{
    struct lp_request *req = list->first;

    if (req) {
        list->first = req->next;
        list->count--;
    }
    return req;
}

/* Moves all of from behind what is in to. */
static inline void list_move(struct request_list *to, struct request_list *from)
{
    if (!from->first)
        return;
    if (to->first)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->count += from->count;
    *from = (struct request_list){0};
}

/* Counts and completes what is in the list now; what complete() adds stays for the next call. The
 * list's count falls just before each complete(), so that it may submit again.
 * Returns the number completed. */
int list_complete(struct request_list *list, struct lp_queue_stats *stats);

/* Counts a request that has ended. */
void disk_count(struct lp_queue_stats *stats, const struct lp_request *req);

#endif
