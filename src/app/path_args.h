/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that bench and verify have in common: how a disk is opened and what the path is like. */
#ifndef APP_PATH_ARGS_H
#define APP_PATH_ARGS_H

#include "app/iscsi_args.h"
#include "app/options.h"

#include <lunpath/disk.h>
#include <lunpath/host.h>

/* Each command's table ends with these. */
enum path_option {
    PATH_HOST,
    PATH_PAGE_SIZE,
    PATH_MAX_SEGMENT,
    PATH_MAX_SEGMENTS,
    PATH_MAX_TRANSFER,
    PATH_TABLE_ENTRIES,
    PATH_CPUS,
    PATH_RESTART_DRIVER,
    PATH_SMALL_PAGES,
    PATH_DISK,
    PATH_ENGINE,
    PATH_BUFFERED,
    PATH_DESTROY,
    PATH_EVEN_WITH_DATA,
    PATH_ISCSI, /* enum iscsi_option from here on */
    PATH_OPTION_COUNT = PATH_ISCSI + ISCSI_OPTION_COUNT,
};

/* Appends them at table. */
void path_options_append(struct option *table);

/* What the values have to make sense with. */
struct path_use {
    const char *target;       /* as typed, or NULL: profiles */
    bool ring;                /* a driver process takes part */
    bool prepared;            /* some profile prepares pages */
    bool multi;               /* some profile prepares several pages a task */
    bool writes_asked;        /* the user named something that writes */
    struct iscsi_args *iscsi; /* filled when the disk is an iSCSI LUN; disk->iscsi points there */
};

/* v: values of the options above. Refuses what contradicts or would have no effect, then sets what
 * was given in host and disk. disk->read_only is set when a file or device stands behind and
 * --destroy was not given. */
int path_args_take(const struct option_value *v, const struct path_use *use,
                   struct lp_host_opts *host, struct lp_disk_opts *disk, struct lp_error *err);

#endif
