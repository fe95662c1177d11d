/* SPDX-License-Identifier: BSD-2-Clause */
/* The file disk on any POSIX system: through the page cache, one segment a system call. */
#include "disk/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int file_open(const char *path, int access, bool exclusive, bool buffered, struct lp_error *err)
{
    (void)exclusive;
    if (!buffered)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "this build has no direct I/O; add --buffered to go through the page "
                            "cache");
    int fd = open(path, access | O_CLOEXEC);
    if (fd < 0)
        return lp_error_sys(err, errno, "cannot open %s for %s", path,
                            access == O_RDONLY ? "reading" : "reading and writing");
    return fd;
}

int file_describe(struct file_place *place, const struct lp_disk_opts *opts, struct lp_error *err)
{
    off_t size = lseek(place->fd, 0, SEEK_END); /* also the size of most systems' devices */

    (void)opts;
    if (size < 0)
        return lp_error_sys(err, errno, "cannot get the size");
    place->limits = (struct lp_limits){.size = (uint64_t)size,
                                       .block_size = DISK_MIN_BLOCK,
                                       .mem_align = 1,
                                       .fua = LP_FUA_EMULATED};
    return 0;
}

ssize_t file_read_at(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
    (void)iovcnt; /* a short read: the caller goes on with the next segment */
    ssize_t n = pread(fd, iov->iov_base, iov->iov_len, offset);

    return n < 0 ? -errno : n;
}

ssize_t file_write_at(int fd, const struct iovec *iov, int iovcnt, off_t offset, bool fua)
{
    (void)iovcnt;
    ssize_t n = pwrite(fd, iov->iov_base, iov->iov_len, offset);

    if (n < 0 || (fua && fsync(fd) != 0))
        return -errno;
    return n;
}

/* The limits say that there is neither. */
int file_discard(const struct file_place *place, off_t offset, off_t length)
{
    (void)place, (void)offset, (void)length;
    return -EOPNOTSUPP;
}

int file_write_zeroes(const struct file_place *place, off_t offset, off_t length)
{
    (void)place, (void)offset, (void)length;
    return -EOPNOTSUPP;
}

bool file_uring_works(void)
{
    return false;
}

struct lp_queue *file_uring_open(const struct file_place *place, unsigned depth,
                                 struct lp_error *err)
{
    (void)place, (void)depth;
    lp_error_set(err, LP_ERROR_USAGE, ENOSYS, "io_uring is not part of this build");
    return NULL;
}
