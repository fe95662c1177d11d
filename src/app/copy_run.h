/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies a disk to another: several chunks at once, each read, then written, from its own buffer.
 * The checksum is of all data in their order, whatever the order in which chunks arrive.
 */
#ifndef APP_COPY_RUN_H
#define APP_COPY_RUN_H

#include <lunpath/disk.h>
#include <signal.h>

struct copy_opts {
    uint32_t chunk; /* bytes; a multiple of both disks' block sizes */
    unsigned depth; /* chunks at once */
    bool sparse;    /* chunks of zeros are not written where zeros are already, else zeroed */
    bool verify;    /* read the destination back, and compare each chunk's CRC32C */
    void (*progress)(void *user, bool verifying, uint64_t done, uint64_t total); /* after chunks */
    void *user;
    const volatile sig_atomic_t *interrupted;
};

struct copy_report {
    uint64_t total, copied, written; /* bytes; written: without what sparse left out */
    uint64_t verified;
    uint8_t crc[4];    /* CRC32C of what was copied, in the order of RFC 7143 */
    double seconds;    /* without verifying */
    bool wrong;        /* what was read back differs ... */
    uint64_t wrong_at; /* ... first in the chunk at this byte */
};

/* The sizes fit already. 0, also when interrupted (copied < total) or wrong; or -1 and why. The
 * report is right as far as it came either way. */
int copy_run(struct lp_disk *from, struct lp_disk *to, const struct copy_opts *opts,
             struct copy_report *report, struct lp_error *err);

#endif
