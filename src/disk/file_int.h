/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the file disk: file.c opens it and picks an engine, file_linux.c (or
 * file_portable.c) knows the system, file_threads.c and file_uring_linux.c are the engines.
 */
#ifndef DISK_FILE_INT_H
#define DISK_FILE_INT_H

#include "disk/disk_int.h"

#include <sys/types.h>

/* Constant once the disk is open; the queues' threads read it. */
struct file_place {
    int fd;
    bool direct; /* around the page cache */
    bool device;
    struct lp_limits limits;
};

/* ---- the system ---- */

/* Opens path with O_RDONLY or O_RDWR; exclusive: fails with EBUSY when the device is mounted or
 * held. The descriptor, or -1 with err set. */
int file_open(const char *path, int access, bool exclusive, bool buffered, struct lp_error *err);

/* Fills direct, device and the limits (what depends on the engine too) from place->fd, and tries a
 * read. 0 or -1. */
int file_describe(struct file_place *place, const struct lp_disk_opts *opts, struct lp_error *err);

/* One system call, on any thread: bytes moved, maybe fewer than asked for, or a negative errno. */
ssize_t file_read_at(int fd, const struct iovec *iov, int iovcnt, off_t offset);
ssize_t file_write_at(int fd, const struct iovec *iov, int iovcnt, off_t offset, bool fua);

/* 0 or a negative errno; -EOPNOTSUPP when the medium cannot. */
int file_discard(const struct file_place *place, off_t offset, off_t length);
int file_write_zeroes(const struct file_place *place, off_t offset, off_t length);

/* ---- the engines ---- */

/* Does io_uring work here (it may be missing, or forbidden)? */
bool file_uring_works(void);

/* place->limits with limits.depth as asked for. place outlives the queue. NULL: see err. */
struct lp_queue *file_uring_open(const struct file_place *place, unsigned depth,
                                 struct lp_error *err);
struct lp_queue *file_threads_open(const struct file_place *place, unsigned depth,
                                   struct lp_error *err);

/* What is left of a request after `done` bytes, as at most max segments. Returns their number. */
int file_rest(const struct lp_request *req, uint64_t done, struct iovec *rest, int max);

enum {
    FILE_MAX_SEGMENTS = 1024, /* UIO_MAXIOV; other systems take as many */
    FILE_MAX_TRANSFER = 1 << 30,
    FILE_MAX_THREADS = 256,
};

#endif
