/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Here nobody can say what is mounted, held, or on a disk. So no device is ever written to, and
 * a file only if its ends are empty, or if the user says that what it holds may go.
 */
#include "app/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* File systems, partition tables and RAID members sign within this of the start or the end. */
static const size_t signed_bytes = (size_t)1 << 20;

static bool is_zero(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

/* 1: something else than zeros, 0: zeros, -1: cannot be read. */
static int has_data(int fd, off_t offset, char *buf)
{
    ssize_t n = pread(fd, buf, signed_bytes, offset);

    return n < 0 ? -1 : !is_zero(buf, (size_t)n);
}

static int not_empty(const char *name, const struct target_opts *opts, struct lp_error *err)
{
    return lp_error_set(
        err, LP_ERROR_SYS, EEXIST,
        "%s is not empty, and this build cannot see what it holds; name an empty "
        "target, or add %s",
        name, opts->even_with_data_option ? opts->even_with_data_option : "--even-with-data");
}

int target_check_ends(const char *name, uint64_t size, const void *head, const void *tail, size_t n,
                      const struct target_opts *opts, struct lp_error *err)
{
    (void)size;
    return is_zero(head, n) && is_zero(tail, n) ? 0 : not_empty(name, opts, err);
}

static int check_file(const char *path, int fd, off_t size, const struct target_opts *opts,
                      struct lp_error *err)
{
    off_t last = size > (off_t)signed_bytes ? size - (off_t)signed_bytes : 0;
    char *buf = malloc(signed_bytes);

    if (!buf)
        return lp_error_sys(err, ENOMEM, "cannot check %s", path);
    int found = has_data(fd, 0, buf);
    if (found == 0)
        found = has_data(fd, last, buf);
    free(buf);
    if (found == 0)
        return 0;
    return not_empty(path, opts, err);
}

static int check(const char *path, int fd, const struct target_opts *opts, struct lp_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return lp_error_sys(err, errno, "cannot look at %s", path);
    if (!opts->destroy)
        return 0;
    if (!S_ISREG(st.st_mode))
        return lp_error_set(err, LP_ERROR_SYS, EPERM,
                            "this build cannot see whether %s is in use and does not write to "
                            "devices; name a regular file",
                            path);
    return opts->even_with_data ? 0 : check_file(path, fd, st.st_size, opts, err);
}

int target_open_path(const char *path, const struct target_opts *opts, struct lp_error *err)
{
    int fd;

    if (!opts->buffered)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "this build has no direct I/O; add --buffered to go through the page "
                            "cache");
    fd = open(path, (opts->destroy ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return lp_error_sys(err, errno, "cannot open %s for %s", path,
                            opts->destroy ? "reading and writing" : "reading");
    if (check(path, fd, opts, err) == 0)
        return fd;
    close(fd);
    return -1;
}

int target_hold(const char *path, int *fd, char *via, size_t size, struct lp_error *err)
{
    (void)fd;
    if ((size_t)snprintf(via, size, "%s", path) >= size)
        return lp_error_set(err, LP_ERROR_SYS, ENAMETOOLONG, "%s is too long a name", path);
    return 0;
}
