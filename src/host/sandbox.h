/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shuts the calling process in: what a driver needs from the kernel once it serves is sleeping,
 * waking, and reading and writing the descriptors it already holds; all else is refused.
 */
#ifndef HOST_SANDBOX_H
#define HOST_SANDBOX_H

#include <lunpath/error.h>
#include <stddef.h>

/* First, in a process with one thread, so that all later threads inherit it: gives up privileges,
 * capabilities and the file system (Landlock). Appends to mode
 * what was really obtained, for people. Cannot fail: what the kernel lacks is left out of mode. */
void sandbox_shed(char *mode, size_t mode_size);

/* Then, when every descriptor is open and every thread runs, for all of them at once: filters
 * system calls (seccomp), no new descriptors, no core. 0 or -1. */
int sandbox_filter(char *mode, size_t mode_size, struct lp_error *err);

#endif
