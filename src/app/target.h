/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets: disks that people name, and the check that nothing of theirs is destroyed.
 *
 * What is checked is what is used: the file is opened once, checked through that descriptor, and
 * the disk gets the same descriptor (lp_disk_opts.fd). A device that may be written is opened
 * exclusively, so that nobody can mount it in between.
 */
#ifndef APP_TARGET_H
#define APP_TARGET_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lp_iscsi_opts;

struct target_opts {
    bool destroy;        /* it may be written; else it is opened read-only */
    bool even_with_data; /* also where a file system, partition table, RAID ... is found */
    bool buffered;       /* through the page cache; else O_DIRECT is required */
    const char *even_with_data_option; /* for messages; NULL: --even-with-data */
    const struct lp_iscsi_opts *iscsi; /* to look at an iSCSI LUN before it is written */
};

/* The part of a target that is a path: of a path itself, of file:PATH and of a fault: disk on it.
 * NULL when no file or device stands behind it. Points into target. */
const char *target_path(const char *target);

/* The iscsi: URL of a target that is a LUN, or of a fault: disk on one; else NULL. Points into
 * target. */
const char *target_lun_url(const char *target);

/* A file or device of this name is there. */
bool target_exists(const char *target);

/* The disk URL of a target: a plain path gets file: in front. To be freed; NULL without memory. */
char *target_url(const char *target);

/* Opens the file or device behind a target and checks it. *fd: the descriptor for
 * lp_disk_opts.fd, or -1 where no file stands behind the target. 0 or -1.
 * With destroy it refuses: what is mounted, is swap, is held by another driver or process, or is
 * part of or behind something that is; and what bears data that libblkid knows, also on an iSCSI
 * LUN, unless even_with_data. */
int target_open(const char *target, const struct target_opts *opts, int *fd, struct lp_error *err);

/* For those who open a disk several times and cannot do with one descriptor: a URL that leads to
 * what *fd is open on, whatever became of its name. *fd is replaced by one that only keeps it; a
 * device can be opened exclusively again. The URL is good while *fd is open. To be freed; NULL
 * with err set. */
char *target_url_of(const char *target, int *fd, struct lp_error *err);

/* ---- the system's part ---- */

/* For target_url_of: replaces *fd, and puts a path to it into via. 0 or -1. Where a system has no
 * such paths, via gets path itself. */
int target_hold(const char *path, int *fd, char *via, size_t size, struct lp_error *err);

/* Is there data on the LUN? Logs in for itself. 0 (nothing is), or -1. */
int target_check_lun(const char *url, const struct target_opts *opts, struct lp_error *err);

/* The same of a disk of size bytes with n bytes at its head and its tail. */
int target_check_ends(const char *name, uint64_t size, const void *head, const void *tail, size_t n,
                      const struct target_opts *opts, struct lp_error *err);

/* As target_open, for a path. Returns the descriptor or -1. */
int target_open_path(const char *path, const struct target_opts *opts, struct lp_error *err);

#endif
