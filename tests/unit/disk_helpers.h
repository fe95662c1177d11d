/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of disks share. */
#ifndef TESTS_DISK_HELPERS_H
#define TESTS_DISK_HELPERS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/rng.h"

#include <lunpath/disk.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t ten_seconds = 10000000000u; /* far longer than anything here takes */

static inline struct lp_disk *must_open(const char *url, const struct lp_disk_opts *opts)
{
    struct lp_error err = {0};
    struct lp_disk *disk = lp_disk_open(url, opts, &err);

    if (!disk)
        fail_msg("%s", err.msg);
    return disk;
}

static inline struct lp_queue *must_queue(struct lp_disk *disk, unsigned depth)
{
    struct lp_error err = {0};
    struct lp_queue *q = lp_disk_queue(disk, depth, &err);

    if (!q)
        fail_msg("%s", err.msg);
    return q;
}

/* The disk cannot be opened, and the sentence has each of the words. */
static inline void refused(const char *url, const struct lp_disk_opts *opts, const char *word,
                           const char *other)
{
    struct lp_error err = {0};

    if (lp_disk_open(url, opts, &err))
        fail_msg("\"%s\" was opened", url);
    assert_int_not_equal(err.domain, LP_ERROR_NONE);
    if (!strstr(err.msg, url) || !strstr(err.msg, word) || !strstr(err.msg, other))
        fail_msg("\"%s\" was refused with \"%s\"", url, err.msg);
    if (strchr(err.msg, '\n'))
        fail_msg("more than one line: \"%s\"", err.msg);
}

/* Memory that direct I/O takes. */
static inline char *aligned_memory(size_t size)
{
    void *memory = NULL;

    assert_int_equal(posix_memalign(&memory, 4096, size), 0);
    memset(memory, 0, size);
    return memory;
}

static inline void fill_random(char *buf, size_t size, uint64_t seed)
{
    struct rng rng = {seed};

    for (size_t i = 0; i < size; i++)
        buf[i] = (char)rng_next(&rng);
}

static inline int run_op(struct lp_queue *q, enum lp_op op, uint32_t flags, uint64_t offset,
                         uint64_t length)
{
    struct lp_request req = {.op = op, .flags = flags, .offset = offset, .length = length};

    return lp_queue_run(q, &req);
}

/* One segment that may break the rules. */
static inline int run_segment(struct lp_queue *q, enum lp_op op, uint64_t offset, uint64_t length,
                              void *base, size_t segment)
{
    struct iovec iov = {.iov_base = base, .iov_len = segment};
    struct lp_request req = {
        .op = op, .offset = offset, .length = length, .iov = &iov, .iovcnt = 1};

    return lp_queue_run(q, &req);
}

#endif
