/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/target.h"

#include <errno.h>
#include <lunpath/disk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What stands behind the scheme of a disk URL, or NULL where text is none. */
static const char *after_scheme(const char *text, const char *scheme)
{
    size_t len = strlen(scheme);

    return strncmp(text, scheme, len) == 0 && text[len] == ':' ? text + len + 1 : NULL;
}

static bool is_url(const char *text)
{
    for (const struct lp_disk_type *const *type = lp_disk_types(); *type; type++)
        if (after_scheme(text, (*type)->name))
            return true;
    return false;
}

/* The disk inside fault:KINDS:URL; NULL when that is none: opening it says so. */
static const char *innermost(const char *target)
{
    const char *inner = after_scheme(target, "fault");

    while (inner) {
        inner = strchr(inner, ':');
        if (!inner)
            return NULL;
        target = inner + 1;
        if (!is_url(target))
            return NULL;
        inner = after_scheme(target, "fault");
    }
    return target;
}

const char *target_path(const char *target)
{
    target = innermost(target);
    if (!target)
        return NULL;
    return is_url(target) ? after_scheme(target, "file") : target;
}

const char *target_lun_url(const char *target)
{
    target = innermost(target);
    return target && after_scheme(target, "iscsi") ? target : NULL;
}

bool target_exists(const char *target)
{
    const char *path = target_path(target);
    struct stat st;

    return path && stat(path, &st) == 0;
}

char *target_url(const char *target)
{
    bool url = is_url(target);
    size_t size = strlen(target) + sizeof "file:";
    char *text = malloc(size);

    if (text)
        snprintf(text, size, "%s%s", url ? "" : "file:", target);
    return text;
}

static int missing(const char *target, const char *path, struct lp_error *err)
{
    if (path == target && strchr(target, ':') && !strchr(target, '/'))
        return lp_error_set(err, LP_ERROR_SYS, ENOENT,
                            "there is neither a file nor a kind of disk called %s; lunpath disks "
                            "lists the kinds",
                            target);
    return lp_error_set(err, LP_ERROR_SYS, ENOENT,
                        "%s does not exist; name a block device, or make a file first with "
                        "'truncate -s 1G %s'",
                        path, path);
}

int target_open(const char *target, const struct target_opts *opts, int *fd, struct lp_error *err)
{
    const char *path = target_path(target), *lun = target_lun_url(target);
    struct stat st;

    *fd = -1;
    if (lun && opts->destroy && !opts->even_with_data)
        return target_check_lun(lun, opts, err);
    if (!path)
        return 0;
    if (!*path)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the target \"%s\" names no file; write file:PATH", target);
    if (stat(path, &st) != 0)
        return errno == ENOENT ? missing(target, path, err)
                               : lp_error_sys(err, errno, "cannot look at %s", path);
    /* Before it is opened: opening a FIFO would wait. */
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return lp_error_set(err, LP_ERROR_SYS, EINVAL,
                            "%s is %s; name a regular file or a block device", path,
                            S_ISDIR(st.st_mode) ? "a directory" : "neither a file nor a disk");
    *fd = target_open_path(path, opts, err);
    return *fd < 0 ? -1 : 0;
}

char *target_url_of(const char *target, int *fd, struct lp_error *err)
{
    char *url = target_url(target), *held = NULL;
    const char *path = url ? target_path(url) : NULL;
    char via[4200];

    if (url && (*fd < 0 || !path))
        return url;
    if (url && target_hold(path, fd, via, sizeof via, err) != 0) {
        free(url);
        return NULL;
    }
    if (url) {
        size_t before = (size_t)(path - url), size = before + strlen(via) + 1;
        held = malloc(size);
        if (held)
            snprintf(held, size, "%.*s%s", (int)before, url, via);
    }
    free(url);
    if (!held)
        lp_error_sys(err, ENOMEM, "cannot open %s", target);
    return held;
}
