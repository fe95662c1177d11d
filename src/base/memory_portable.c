/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int memory_create(struct memory *m, const char *name, size_t size, bool huge, struct lp_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    (void)name;
    (void)huge;
    *m = (struct memory){.fd = -1, .page_size = page};
    if (size == 0 || size > (size_t)-1 / 2)
        return lp_error_set(err, LP_ERROR_USAGE, ENOMEM, "cannot get %zu bytes of memory", size);
    m->size = (size + page - 1) & ~(page - 1);
    int e = posix_memalign(&m->base, page, m->size);
    if (e != 0) {
        m->base = NULL;
        return lp_error_sys(err, e, "cannot get %zu bytes of memory", m->size);
    }
    memset(m->base, 0, m->size); /* also the prefault */
    return 0;
}

int memory_open(struct memory *m, int fd, size_t size, struct lp_error *err)
{
    (void)size;
    if (fd >= 0)
        close(fd);
    *m = (struct memory){.fd = -1};
    return lp_error_set(err, LP_ERROR_USAGE, ENOSYS,
                        "memory cannot be shared between processes in this build");
}

void memory_destroy(struct memory *m)
{
    free(m->base);
    *m = (struct memory){.fd = -1};
}
