/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that can be shared with another process by descriptor.
 *
 * On Linux a memfd sealed against shrinking and growing, so that whoever else holds the descriptor
 * cannot make an access fail with SIGBUS. Elsewhere an unlinked POSIX shared memory object is not
 * sealed, so the portable build gives private memory and no descriptor.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stddef.h>

struct memory {
    void *base; /* page-aligned; 2 MiB-aligned when that helps */
    size_t size;
    int fd;           /* -1: not shareable */
    size_t page_size; /* really obtained for the whole of it: 2 MiB, or the system's */
};

/* Zeroed, prefaulted memory of size bytes (rounded up to a page). huge: ask for huge pages; not
 * getting them is no error. Refuses more than the machine has available, in one sentence.
 * name is for /proc. 0 or -1. */
int memory_create(struct memory *m, const char *name, size_t size, bool huge, struct lp_error *err);

/* Maps memory that another process created: checks that it is sealed and at least size bytes.
 * Takes fd over, also on failure. Not in the portable build: fails with a sentence. */
int memory_open(struct memory *m, int fd, size_t size, struct lp_error *err);

/* Unmaps and closes; harmless on an all-zero struct with fd -1. */
void memory_destroy(struct memory *m);

#endif
