/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "bench/verify_int.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ /* since Linux 5.14; see madvise(2) */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

int verify_map_populate(const struct verify_map *m, size_t at, size_t length)
{
    const int advice = m->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

    if (madvise(m->base + at, length, advice) == 0 || errno == EINVAL)
        return 0;
    return errno == EFAULT ? -EIO : -errno; /* EFAULT: an access would end in SIGBUS */
}
