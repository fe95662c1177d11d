/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file:PATH is a file or block device of the system. It is opened around the page cache (O_DIRECT)
 * unless buffered I/O is asked for, because what the page cache answers says nothing about the
 * disk. It is never created, and a device that is mounted is not opened for writing. The end of a
 * file that is not a whole block is not part of the disk.
 */
#include "disk/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_disk {
    struct lp_disk head;
    struct file_place place;
    enum lp_engine engine; /* never AUTO */
};

int file_rest(const struct lp_request *req, uint64_t done, struct iovec *rest, int max)
{
    int count = 0;

    for (uint32_t i = 0; i < req->iovcnt && count < max; i++) {
        const struct iovec *seg = &req->iov[i];
        if (done >= seg->iov_len) {
            done -= seg->iov_len;
            continue;
        }
        rest[count].iov_base = (char *)seg->iov_base + done;
        rest[count].iov_len = seg->iov_len - (size_t)done;
        done = 0;
        count++;
    }
    return count;
}

/* What the path leads to, before it is opened: opening a FIFO would block. */
static int look_at(const char *path, bool *device, struct lp_error *err)
{
    struct stat st;

    if (!*path)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the path is missing; write it behind the colon, as in file:/dev/sdx");
    if (stat(path, &st) != 0) {
        int e = errno;
        if (e == ENOENT)
            return lp_error_set(err, LP_ERROR_SYS, e,
                                "%s does not exist; name a block device, or make a file first with "
                                "'truncate -s 1G %s'",
                                path, path);
        return lp_error_sys(err, e, "cannot look at %s", path);
    }
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%s is %s; name a regular file or a block device", path,
                            S_ISDIR(st.st_mode) ? "a directory" : "neither a file nor a disk");
    *device = S_ISBLK(st.st_mode);
    return 0;
}

/* A descriptor from the process that opened the disk first. */
static int check_given(int fd, bool read_only, struct lp_error *err)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return lp_error_sys(err, errno, "the given descriptor cannot be used");
    if (!read_only && (flags & O_ACCMODE) != O_RDWR)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the given descriptor is open for reading only; open the disk "
                            "read-only here too");
    return 0;
}

/* The descriptor, or -1. */
static int get_descriptor(const char *path, const struct lp_disk_opts *opts, struct lp_error *err)
{
    bool device = false;

    if (opts->fd >= 0) {
        if (check_given(opts->fd, opts->read_only, err) == 0)
            return opts->fd;
        close(opts->fd);
        return -1;
    }
    if (look_at(path, &device, err))
        return -1;
    return file_open(path, opts->read_only ? O_RDONLY : O_RDWR, device && !opts->read_only,
                     opts->buffered, err);
}

static int pick_engine(struct file_disk *disk, const struct lp_disk_opts *opts,
                       struct lp_error *err)
{
    disk->engine = opts->engine;
    if (opts->engine != LP_ENGINE_THREADS) {
        bool works = file_uring_works();
        if (!works && opts->engine == LP_ENGINE_URING)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "io_uring is missing or forbidden here; use the engine threads");
        disk->engine = works ? LP_ENGINE_URING : LP_ENGINE_THREADS;
    }

    bool uring = disk->engine == LP_ENGINE_URING;
    disk->place.limits.depth = uring ? DISK_MAX_DEPTH : FILE_MAX_THREADS;
    snprintf(disk->head.mode, sizeof disk->head.mode, "%s, %s",
             disk->place.direct ? "O_DIRECT" : "buffered", uring ? "io_uring" : "threads");
    return 0;
}

static int set_up(struct file_disk *disk, const struct lp_disk_opts *opts, struct lp_error *err)
{
    struct lp_limits *limits = &disk->place.limits;

    if (file_describe(&disk->place, opts, err))
        return -1;
    uint64_t whole = limits->size & ~(uint64_t)(limits->block_size - 1);
    if (whole == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "it holds %llu bytes, less than one block of %u; make it larger",
                            (unsigned long long)limits->size, limits->block_size);
    limits->size = whole;
    limits->max_transfer = FILE_MAX_TRANSFER;
    limits->max_segments = FILE_MAX_SEGMENTS;
    limits->queues = DISK_MAX_QUEUES;
    limits->read_only = opts->read_only;
    limits->discard = limits->discard && !opts->read_only;
    limits->write_zeroes = limits->write_zeroes && !opts->read_only;
    return pick_engine(disk, opts, err);
}

static struct lp_disk *file_disk_open(const char *rest, const struct lp_disk_opts *opts,
                                      struct lp_error *err)
{
    int fd = get_descriptor(rest, opts, err);

    if (fd < 0)
        return NULL;
    struct file_disk *disk = calloc(1, sizeof *disk);
    if (!disk) {
        close(fd);
        lp_error_sys(err, ENOMEM, "cannot make a disk");
        return NULL;
    }
    disk->place.fd = fd;
    if (set_up(disk, opts, err)) {
        close(fd);
        free(disk);
        return NULL;
    }
    disk->head.limits = disk->place.limits;
    return &disk->head;
}

static struct lp_queue *file_queue_open(struct lp_disk *head, unsigned depth, struct lp_error *err)
{
    const struct file_disk *disk = (const struct file_disk *)head;

    if (disk->engine == LP_ENGINE_URING)
        return file_uring_open(&disk->place, depth, err);
    return file_threads_open(&disk->place, depth, err);
}

static int file_share(const struct lp_disk *head)
{
    return ((const struct file_disk *)head)->place.fd;
}

static void file_close(struct lp_disk *head)
{
    close(((struct file_disk *)head)->place.fd);
    free(head);
}

const struct lp_disk_type disk_file = {
    .name = "file",
    .help = "file:PATH      a file or a block device",
    .open = file_disk_open,
    .queue = file_queue_open,
    .share = file_share,
    .close = file_close,
};
