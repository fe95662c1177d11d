/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is mapped, and the page cache dropped. */
#include "bench/verify_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int verify_map_open(struct verify_map *m, const char *path, uint64_t bytes, bool writable,
                    struct lp_error *err)
{
    const int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;

    *m = (struct verify_map){.bytes = (size_t)bytes, .writable = writable};
    if (m->bytes != bytes)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%s is too large to be mapped here", path);
    int fd = open(path, writable ? O_RDWR : O_RDONLY);
    if (fd < 0)
        return lp_error_sys(err, errno, "cannot open %s", path);
    void *base = mmap(NULL, m->bytes, prot, MAP_SHARED, fd, 0);
    int e = errno;
    close(fd);
    if (base == MAP_FAILED)
        return lp_error_sys(err, e, "cannot map %s", path);
    m->base = base;
    return 0;
}

void verify_map_close(struct verify_map *m)
{
    if (m->base)
        munmap(m->base, m->bytes);
    m->base = NULL;
}

int verify_drop_cache(const char *path)
{
    int fd = open(path, O_RDWR), status = 0;

    if (fd < 0) /* only to be read: there is nothing to bring to the medium */
        fd = open(path, O_RDONLY);
    else if (fsync(fd) != 0)
        status = -errno;
    if (fd < 0)
        return -errno;
#ifdef POSIX_FADV_DONTNEED
    if (status == 0)
        status = -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#endif
    close(fd);
    return status;
}
