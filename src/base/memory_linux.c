/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Newer than some C libraries: linux/mman.h, asm-generic/mman-common.h. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };
static const size_t huge_size = (size_t)2 << 20;

static uint64_t available_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    uint64_t kib = 0;

    if (!f)
        return UINT64_MAX;
    while (kib == 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
            kib = 0;
    fclose(f);
    return kib ? kib * 1024 : UINT64_MAX;
}

/* Maps fd at an address where huge pages are possible: reserve more, map over the aligned part,
 * give the rest back. */
static void *map_aligned(int fd, size_t size)
{
    size_t align = size >= huge_size ? huge_size : (size_t)sysconf(_SC_PAGESIZE);
    size_t span = size + align;
    char *area = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return MAP_FAILED;
    char *base = (char *)(((uintptr_t)area + align - 1) & ~(uintptr_t)(align - 1));
    if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        int e = errno;
        munmap(area, span);
        errno = e;
        return MAP_FAILED;
    }
    if (base > area)
        munmap(area, (size_t)(base - area));
    if (area + span > base + size)
        munmap(base + size, (size_t)(area + span - (base + size)));
    return base;
}

/* Whole huge pages only: a tail of small pages is not worth another figure in the reports. An
 * empty range does not collapse, whatever the system-wide setting for shared memory; one with a
 * single small page does, and is many times quicker than one that must be copied together. */
static bool collapse(char *base, size_t size)
{
    size_t whole = size & ~(huge_size - 1);

    for (size_t at = 0; at < whole; at += huge_size)
        *(volatile char *)(base + at) = 0;
    return whole > 0 && madvise(base, whole, MADV_COLLAPSE) == 0;
}

static int map_and_fault(struct memory *m, bool huge, struct lp_error *err)
{
    void *base = map_aligned(m->fd, m->size);

    if (base == MAP_FAILED)
        return lp_error_sys(err, errno, "cannot map %zu bytes of shared memory", m->size);
    m->base = base;
    if (huge && collapse(base, m->size))
        m->page_size = huge_size;
    /* Before 5.14 there is no populate; then the first touch pays, which warm-up hides. */
    if (madvise(base, m->size, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
        return lp_error_sys(err, errno, "cannot get %zu bytes of memory", m->size);
    return 0;
}

int memory_create(struct memory *m, const char *name, size_t size, bool huge, struct lp_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t available = available_bytes();

    *m = (struct memory){.fd = -1, .page_size = page};
    if (size == 0 || size > SIZE_MAX / 2 || size > available)
        return lp_error_set(err, LP_ERROR_USAGE, ENOMEM,
                            "%zu bytes of memory are wanted and %" PRIu64
                            " are available: choose a smaller size",
                            size, available);
    m->size = (size + page - 1) & ~(page - 1);
    m->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (m->fd < 0)
        return lp_error_sys(err, errno, "cannot create shared memory");
    if (ftruncate(m->fd, (off_t)m->size) != 0 ||
        fcntl(m->fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) != 0)
        lp_error_sys(err, errno, "cannot size and seal %zu bytes of shared memory", m->size);
    else if (map_and_fault(m, huge, err) == 0)
        return 0;
    memory_destroy(m);
    return -1;
}

int memory_open(struct memory *m, int fd, size_t size, struct lp_error *err)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    size = (size + page - 1) & ~(page - 1); /* as memory_create() made it */
    *m = (struct memory){.fd = fd, .size = size, .page_size = page};
    if (seals < 0 || (seals & SEALS) != SEALS)
        lp_error_set(err, LP_ERROR_PEER, EPERM, "shared memory from a peer is not sealed");
    else if (fstat(fd, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size < size || size == 0)
        lp_error_set(err, LP_ERROR_PEER, EINVAL,
                     "shared memory from a peer is smaller than the %zu bytes it claims", size);
    else if (map_and_fault(m, false, err) == 0)
        return 0;
    memory_destroy(m);
    return -1;
}

void memory_destroy(struct memory *m)
{
    if (m->base)
        munmap(m->base, m->size);
    if (m->fd >= 0)
        close(m->fd);
    *m = (struct memory){.fd = -1};
}
