/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shuts the calling process in: what a driver needs from the kernel once it serves is sleeping,
 * waking, and reading and writing the descriptors it already holds; all else is refused.
 */
#ifndef HOST_SANDBOX_H
#define HOST_SANDBOX_H

#include <lunpath/error.h>
#include <stddef.h>

/* First, in a process with one thread whose descriptors are all open: gives up privileges,
 * capabilities, the file system (Landlock) and new descriptors; threads inherit it. Appends to mode
 * what was really obtained, for people. Cannot fail: what the kernel lacks is left out of mode. */
void sandbox_shed(char *mode, size_t mode_size);

/* Then, for all threads at once: filters system calls (seccomp). 0 or -1. */
int sandbox_filter(char *mode, size_t mode_size, struct lp_error *err);

#endif
