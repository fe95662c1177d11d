/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "disk/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096 };

int file_open(const char *path, int access, bool exclusive, bool buffered, struct lp_error *err)
{
    int flags = access | O_CLOEXEC | (exclusive ? O_EXCL : 0) | (buffered ? 0 : O_DIRECT);
    int fd = open(path, flags);

    if (fd >= 0)
        return fd;
    int e = errno;
    if (e == EINVAL && !buffered)
        return lp_error_set(err, LP_ERROR_SYS, e,
                            "the file system of %s has no direct I/O; add --buffered to go through "
                            "the page cache",
                            path);
    if (e == EBUSY)
        return lp_error_set(err, LP_ERROR_SYS, e,
                            "%s is mounted or held by another driver; unmount it, or only read it",
                            path);
    return lp_error_sys(err, e, "cannot open %s for %s", path,
                        access == O_RDONLY ? "reading" : "reading and writing");
}

/* What direct I/O wants, where the kernel says so (6.1 and later); else what nearly all take. */
static void direct_alignment(struct file_place *place)
{
    struct lp_limits *limits = &place->limits;

    if (limits->block_size < DISK_MIN_BLOCK)
        limits->block_size = DISK_MIN_BLOCK;
    limits->mem_align = limits->block_size;
#ifdef STATX_DIOALIGN
    struct statx stx;
    if (statx(place->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
        (stx.stx_mask & STATX_DIOALIGN) && stx.stx_dio_mem_align && stx.stx_dio_offset_align) {
        limits->mem_align = stx.stx_dio_mem_align;
        if (stx.stx_dio_offset_align > limits->block_size)
            limits->block_size = stx.stx_dio_offset_align;
    }
#endif
}

/* One block into aligned memory: 0 or an errno value. */
static int read_one_block(const struct file_place *place, void *memory)
{
    ssize_t n;

    do
        n = pread(place->fd, memory, place->limits.block_size, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    return (size_t)n == place->limits.block_size ? 0 : EIO;
}

/* Some accept O_DIRECT and then refuse each transfer, or want larger blocks than they say. */
static int probe(struct file_place *place, struct lp_error *err)
{
    struct lp_limits *limits = &place->limits;
    size_t size = limits->block_size > PAGE ? limits->block_size : PAGE;
    void *memory = NULL;

    if (limits->size < limits->block_size)
        return 0; /* the caller has a sentence for that */
    if (posix_memalign(&memory, size, size))
        return lp_error_sys(err, ENOMEM, "cannot try a read");
    int e = read_one_block(place, memory);
    if (e == EINVAL && place->direct && limits->block_size < PAGE && limits->size >= PAGE) {
        limits->block_size = limits->mem_align = PAGE;
        e = read_one_block(place, memory);
    }
    free(memory);
    if (e == EINVAL && place->direct)
        return lp_error_set(err, LP_ERROR_SYS, e,
                            "direct I/O was accepted when it was opened but is refused for reads; "
                            "add --buffered to go through the page cache");
    return e ? lp_error_sys(err, e, "the first block cannot be read") : 0;
}

static int device_size(struct file_place *place, struct lp_error *err)
{
    int block = 0;

    if (ioctl(place->fd, BLKGETSIZE64, &place->limits.size) != 0 ||
        ioctl(place->fd, BLKSSZGET, &block) != 0)
        return lp_error_sys(err, errno, "cannot get the size of the device");
    if (block < DISK_MIN_BLOCK || (block & (block - 1)))
        return lp_error_set(err, LP_ERROR_SYS, EINVAL, "the device's block size is %d", block);
    place->limits.block_size = (uint32_t)block;
    return 0;
}

int file_describe(struct file_place *place, const struct lp_disk_opts *opts, struct lp_error *err)
{
    struct stat st;

    if (fstat(place->fd, &st) != 0)
        return lp_error_sys(err, errno, "cannot get the size");
    place->device = S_ISBLK(st.st_mode);
    place->direct = fcntl(place->fd, F_GETFL) & O_DIRECT;
    if (!place->direct && !opts->buffered)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the given descriptor goes through the page cache; add --buffered");
    place->limits = (struct lp_limits){.size = (uint64_t)st.st_size,
                                       .block_size = DISK_MIN_BLOCK,
                                       .mem_align = 1,
                                       .fua = LP_FUA_NATIVE,
                                       .discard = true,
                                       .write_zeroes = true};
    if (place->device && device_size(place, err))
        return -1;
    if (place->direct)
        direct_alignment(place);
    return probe(place, err);
}

ssize_t file_read_at(int fd, const struct iovec *iov, int iovcnt, off_t offset)
{
    ssize_t n = preadv(fd, iov, iovcnt, offset);

    return n < 0 ? -errno : n;
}

ssize_t file_write_at(int fd, const struct iovec *iov, int iovcnt, off_t offset, bool fua)
{
    ssize_t n = pwritev2(fd, iov, iovcnt, offset, fua ? RWF_DSYNC : 0);

    return n < 0 ? -errno : n;
}

int file_discard(const struct file_place *place, off_t offset, off_t length)
{
    if (place->device) {
        uint64_t range[2] = {(uint64_t)offset, (uint64_t)length};
        return ioctl(place->fd, BLKDISCARD, range) == 0 ? 0 : -errno;
    }
    int r = fallocate(place->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
    return r == 0 ? 0 : -errno;
}

/* A hole reads as zeros too, for file systems that cannot zero a range. */
int file_write_zeroes(const struct file_place *place, off_t offset, off_t length)
{
    int r = fallocate(place->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset, length);

    if (r != 0 && errno == EOPNOTSUPP)
        r = fallocate(place->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
    return r == 0 ? 0 : -errno;
}
