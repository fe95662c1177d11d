/* SPDX-License-Identifier: BSD-2-Clause */
#include "disk/disk_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct lp_disk_type *const disk_types[] = {
    &disk_null, &disk_ram, &disk_file, &disk_iscsi, &disk_fault, NULL,
};

const struct lp_disk_type *const *lp_disk_types(void)
{
    return disk_types;
}

static const struct lp_disk_type *find_type(const char *url)
{
    size_t len = strcspn(url, ":");

    if (!url[len])
        return NULL;
    for (const struct lp_disk_type *const *type = disk_types; *type; type++)
        if (strlen((*type)->name) == len && memcmp((*type)->name, url, len) == 0)
            return *type;
    return NULL;
}

static struct lp_disk *open_type(const struct lp_disk_type *type, const char *url,
                                 const struct lp_disk_opts *opts, struct lp_error *err)
{
    struct lp_disk *disk = type->open(strchr(url, ':') + 1, opts, err);

    if (!disk) {
        lp_error_prefix(err, "disk %s", url);
        return NULL;
    }
    disk->type = type;
    disk->opts = *opts;
    disk->opts.fd = -1;
    disk->url = strdup(url);
    if (!disk->url) {
        type->close(disk);
        lp_error_sys(err, ENOMEM, "disk %s", url);
        return NULL;
    }
    return disk;
}

struct lp_disk *lp_disk_open(const char *url, const struct lp_disk_opts *opts, struct lp_error *err)
{
    const struct lp_disk_opts defaults = LP_DISK_OPTS_DEFAULT;
    const struct lp_disk_type *type = find_type(url);

    if (!opts)
        opts = &defaults;
    if (type)
        return open_type(type, url, opts, err);
    if (opts->fd >= 0)
        close(opts->fd);
    lp_error_set(err, LP_ERROR_USAGE, 0,
                 "there is no disk \"%s\"; write ram:SIZE, null:SIZE, file:PATH for a file or "
                 "block device, or iscsi://HOST/TARGET/LUN",
                 url);
    return NULL;
}

void lp_disk_close(struct lp_disk *disk)
{
    if (!disk)
        return;
    char *url = disk->url;
    disk->type->close(disk);
    free(url);
}

const char *lp_disk_url(const struct lp_disk *disk)
{
    return disk->url;
}

const struct lp_limits *lp_disk_limits(const struct lp_disk *disk)
{
    return &disk->limits;
}

const char *lp_disk_mode(const struct lp_disk *disk)
{
    return disk->mode;
}

struct lp_queue *lp_disk_queue(struct lp_disk *disk, unsigned depth, struct lp_error *err)
{
    if (depth < 1 || depth > disk->limits.depth) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "disk %s: the depth %u must be from 1 to %u",
                     disk->url, depth, disk->limits.depth);
        return NULL;
    }
    struct lp_queue *q = disk->type->queue(disk, depth, err);
    if (!q)
        lp_error_prefix(err, "disk %s", disk->url);
    return q;
}

int lp_disk_share(const struct lp_disk *disk)
{
    return disk->type->share ? disk->type->share(disk) : -1;
}
