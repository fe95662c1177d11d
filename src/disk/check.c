/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/size.h"
#include "disk/disk_int.h"

#include <errno.h>
#include <stdbool.h>

static bool aligned(uint64_t value, uint32_t alignment)
{
    return (value & (alignment - 1)) == 0;
}

static bool range_fits(const struct lp_limits *limits, const struct lp_request *req)
{
    return aligned(req->offset | req->length, limits->block_size) && req->length <= limits->size &&
           req->offset <= limits->size - req->length;
}

static bool segments_fit(const struct lp_limits *limits, const struct lp_request *req)
{
    uint64_t left = req->length;

    if (limits->max_transfer && req->length > limits->max_transfer)
        return false;
    if (limits->max_segments && req->iovcnt > limits->max_segments)
        return false;
    for (uint32_t i = 0; i < req->iovcnt; i++) {
        const struct iovec *seg = &req->iov[i];
        if (seg->iov_len > left)
            return false;
        if (!aligned((uintptr_t)seg->iov_base | seg->iov_len, limits->mem_align))
            return false;
        if (limits->max_segment && seg->iov_len > limits->max_segment)
            return false;
        left -= seg->iov_len;
    }
    return left == 0;
}

int disk_check(const struct lp_limits *limits, const struct lp_request *req)
{
    bool data = req->op == LP_READ || req->op == LP_WRITE;

    if (req->op == LP_FLUSH)
        return 0;
    if (!data && req->op != LP_DISCARD && req->op != LP_WRITE_ZEROES)
        return -EINVAL;
    if (limits->read_only && req->op != LP_READ)
        return -EROFS;
    if ((req->op == LP_DISCARD && !limits->discard) ||
        (req->op == LP_WRITE_ZEROES && !limits->write_zeroes))
        return -EOPNOTSUPP;
    if (!range_fits(limits, req))
        return -EINVAL;
    if (data && ((req->flags & LP_PREPARED) || !segments_fit(limits, req)))
        return -EINVAL;
    return 0;
}

int disk_size_parse(const char *text, uint64_t *size, struct lp_error *err)
{
    if (!*text)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the size is missing; write it behind the colon, such as 1G");
    if (size_parse(text, "size", size, err))
        return -1;
    if (*size == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the size is 0; a disk has one block at least");
    if (*size > INT64_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the size %s is too large; it must be below 8 EiB", text);
    if (!aligned(*size, DISK_MIN_BLOCK))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the size %s is not a multiple of the block size, %d bytes", text,
                            DISK_MIN_BLOCK);
    return 0;
}

void disk_count(struct lp_queue_stats *stats, const struct lp_request *req)
{
    stats->requests++;
    if (req->status != 0)
        return;
    if (req->op == LP_READ)
        stats->bytes_read += req->length;
    else if (req->op == LP_WRITE)
        stats->bytes_written += req->length;
}

int list_complete(struct request_list *list, struct lp_queue_stats *stats)
{
    struct lp_request *req = list->first; /* the count falls one by one, for submit() */
    int completed = 0;

    list->first = NULL;
    for (struct lp_request *next; req; req = next) {
        next = req->next; /* after complete() the request is its owner's again */
        list->count--;
        disk_count(stats, req);
        req->complete(req);
        completed++;
    }
    return completed;
}
