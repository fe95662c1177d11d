/* SPDX-License-Identifier: BSD-2-Clause */
/* A place in a scatter list, and what can be done from there on. */
#ifndef BASE_IOV_H
#define BASE_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct iov_place {
    const struct iovec *iov;
    unsigned count; /* segments from iov on */
    size_t offset;  /* bytes of *iov that lie behind the place */
};

/* Goes n bytes on; no further than the end. */
static inline void iov_advance(struct iov_place *at, uint64_t n)
{
    while (at->count > 0 && n >= at->iov->iov_len - at->offset) {
        n -= at->iov->iov_len - at->offset;
        at->iov++;
        at->count--;
        at->offset = 0;
    }
    if (at->count > 0)
        at->offset += (size_t)n;
}

/* The bytes that lie in one piece at the place, at most max; 0 and NULL at the end. */
static inline size_t iov_piece(struct iov_place *at, size_t max, uint8_t **piece)
{
    size_t n;

    *piece = NULL;
    while (at->count > 0 && at->offset == at->iov->iov_len)
        iov_advance(at, 0);
    if (at->count == 0)
        return 0;
    n = at->iov->iov_len - at->offset;
    *piece = (uint8_t *)at->iov->iov_base + at->offset;
    return n < max ? n : max;
}

/* The next n bytes as at most max segments; *covered tells how many of the bytes they hold. */
static inline unsigned iov_slice(struct iov_place at, size_t n, struct iovec *out, unsigned max,
                                 size_t *covered)
{
    unsigned count = 0;

    *covered = 0;
    while (count < max && *covered < n) {
        uint8_t *piece;
        size_t length = iov_piece(&at, n - *covered, &piece);

        if (length == 0)
            break;
        out[count++] = (struct iovec){piece, length};
        *covered += length;
        iov_advance(&at, length);
    }
    return count;
}

#endif
