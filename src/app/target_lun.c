/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/target.h"

#include <errno.h>
#include <lunpath/disk.h>
#include <lunpath/fit.h>
#include <stdlib.h>

enum { END_BYTES = 1 << 20, ALIGN = 4096 };

/* The first and the last bytes: file systems, partition tables and RAID members sign there. */
static int read_ends(struct lp_disk *disk, uint8_t *head, uint8_t *tail, size_t n,
                     struct lp_error *err)
{
    const struct lp_fit_opts fit = {.depth = 1};
    uint64_t size = lp_disk_limits(disk)->size;
    struct lp_queue *q = lp_disk_queue(disk, 1, err);
    int status;

    q = q ? lp_fit_open(q, &q->limits, &fit, err) : NULL;
    if (!q)
        return -1;
    status = lp_queue_read(q, 0, head, n);
    if (status == 0)
        status = lp_queue_read(q, size - n, tail, n);
    lp_queue_close(q);
    if (status == 0)
        return 0;
    return lp_error_sys(err, -status, "cannot see what is on %s, so it is not written to",
                        lp_disk_url(disk));
}

int target_check_lun(const char *url, const struct target_opts *opts, struct lp_error *err)
{
    const struct lp_disk_opts disk_opts = {.fd = -1, .read_only = true, .iscsi = opts->iscsi};
    struct lp_disk *disk = lp_disk_open(url, &disk_opts, err);
    void *buffer = NULL;
    int status = -1;

    if (!disk)
        return -1;
    if (posix_memalign(&buffer, ALIGN, 2 * END_BYTES) != 0) {
        lp_error_sys(err, ENOMEM, "cannot check %s", url);
    } else {
        uint64_t size = lp_disk_limits(disk)->size;
        size_t n = size < END_BYTES ? (size_t)size : END_BYTES;
        uint8_t *head = buffer, *tail = head + END_BYTES;

        if (read_ends(disk, head, tail, n, err) == 0)
            status = target_check_ends(url, size, head, tail, n, opts, err);
    }
    free(buffer);
    lp_disk_close(disk);
    return status;
}
