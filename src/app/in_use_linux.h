/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a file or block device in use: mounted, swap, held by a driver, behind a loop device? */
#ifndef APP_IN_USE_LINUX_H
#define APP_IN_USE_LINUX_H

#include <lunpath/error.h>
#include <sys/stat.h>

/* st: of the file or device. A disk is also in use when one of its partitions is, a partition
 * when its whole disk is, and a loop device when somebody else uses its file.
 * 0: not in use. -1: in use, or nobody can tell; path and by whom stand in the sentence. */
int in_use_check(const char *path, const struct stat *st, struct lp_error *err);

#endif
