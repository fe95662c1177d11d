/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "app/in_use_linux.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* What is asked about. */
struct subject {
    const char *path; /* for sentences */
    struct stat st;
    const char *own_loop; /* "loop3": this one may use it, NULL: none */
};

/* ---- the system's files ---- */

/* The first line of a file under the device's folder in sysfs, without its end. */
static bool read_sysfs(dev_t dev, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%s", major(dev), minor(dev), name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool got = fgets(text, (int)size, file) != NULL;
    fclose(file);
    if (got)
        text[strcspn(text, "\n")] = '\0';
    return got;
}

/* The disk that a partition is on; any other device itself. */
static dev_t whole_disk(dev_t dev)
{
    char text[64];
    unsigned a, b;

    if (read_sysfs(dev, "partition", text, sizeof text) &&
        read_sysfs(dev, "../dev", text, sizeof text) && sscanf(text, "%u:%u", &a, &b) == 2)
        return makedev(a, b);
    return dev;
}

/* One is the other, or a partition on it. */
static bool share_blocks(dev_t a, dev_t b)
{
    return a == b || whole_disk(a) == b || whole_disk(b) == a;
}

/* The kernel writes spaces and the like in names as \040. In place. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        unsigned code;
        if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1 && strlen(from) >= 4) {
            *to = (char)code;
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static bool is_it(const struct subject *s, const struct stat *other)
{
    if (S_ISBLK(s->st.st_mode))
        return S_ISBLK(other->st_mode) && share_blocks(s->st.st_rdev, other->st_rdev);
    return S_ISREG(other->st_mode) && s->st.st_dev == other->st_dev &&
           s->st.st_ino == other->st_ino;
}

static int busy(const struct subject *s, struct lp_error *err, const char *how, const char *what,
                const char *advice)
{
    return lp_error_set(err, LP_ERROR_SYS, EBUSY, "%s %s %s and cannot be written to; %s", s->path,
                        how, what, advice);
}

/* ---- mounted ---- */

/* A line of mountinfo: ID PARENT MAJOR:MINOR ROOT MOUNTPOINT ... - TYPE SOURCE ... Some file
 * systems have a device number of their own, so the source counts too. */
static bool mount_is_on(const struct subject *s, char *line, char **mount_point)
{
    unsigned a, b;
    int at = 0, end = 0;
    char *tail = strstr(line, " - ");
    char *source = tail ? strchr(tail + 3, ' ') : NULL;
    struct stat st;

    if (!source || sscanf(line, "%*d %*d %u:%u %*s %n%*s%n", &a, &b, &at, &end) != 2 || end <= at)
        return false;
    source++;
    source[strcspn(source, " \n")] = '\0';
    line[end] = '\0';
    *mount_point = line + at;
    unescape(*mount_point);
    if (share_blocks(s->st.st_rdev, makedev(a, b)))
        return true;
    unescape(source);
    return source[0] == '/' && stat(source, &st) == 0 && is_it(s, &st);
}

static int check_mounts(const struct subject *s, struct lp_error *err)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, *mount_point = NULL;
    size_t size = 0;
    int rc = 0;

    if (!file)
        return lp_error_sys(err, errno, "cannot tell whether %s is mounted", s->path);
    while (rc == 0 && S_ISBLK(s->st.st_mode) && getline(&line, &size, file) > 0)
        if (mount_is_on(s, line, &mount_point))
            rc = busy(s, err, "is mounted on", mount_point, "unmount it first");
    free(line);
    fclose(file);
    return rc;
}

/* ---- swap ---- */

static int check_swaps(const struct subject *s, struct lp_error *err)
{
    FILE *file = fopen("/proc/swaps", "re"); /* missing in a kernel without swap */
    char *line = NULL;
    size_t size = 0;
    struct stat st;
    int rc = 0;

    while (file && rc == 0 && getline(&line, &size, file) > 0) {
        line[strcspn(line, " \t\n")] = '\0';
        unescape(line);
        if (line[0] == '/' && stat(line, &st) == 0 && is_it(s, &st))
            rc = busy(s, err, "is used as swap:", line, "switch it off first with swapoff");
    }
    free(line);
    if (file)
        fclose(file);
    return rc;
}

/* ---- held by another driver ---- */

static int check_holders_of(const struct subject *s, dev_t dev, struct lp_error *err)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    int rc = 0;

    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/holders", major(dev), minor(dev));
    DIR *dir = opendir(path);
    while (dir && rc == 0 && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            rc = busy(s, err, "is held by", entry->d_name, "take it out of that device first");
    if (dir)
        closedir(dir);
    return rc;
}

/* The disk's own, and those of its partitions: folders beside it that have a file "partition". */
static int check_holders(const struct subject *s, struct lp_error *err)
{
    dev_t dev = s->st.st_rdev;
    char path[PATH_MAX], name[NAME_MAX + 16], text[64];
    const struct dirent *entry;
    unsigned a, b;

    if (!S_ISBLK(s->st.st_mode))
        return 0;
    int rc = check_holders_of(s, dev, err);
    if (rc == 0 && whole_disk(dev) != dev)
        rc = check_holders_of(s, whole_disk(dev), err);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(dev), minor(dev));
    DIR *dir = rc == 0 ? opendir(path) : NULL;
    while (dir && rc == 0 && (entry = readdir(dir))) {
        snprintf(name, sizeof name, "%s/partition", entry->d_name);
        if (entry->d_name[0] == '.' || !read_sysfs(dev, name, text, sizeof text))
            continue;
        snprintf(name, sizeof name, "%s/dev", entry->d_name);
        if (read_sysfs(dev, name, text, sizeof text) && sscanf(text, "%u:%u", &a, &b) == 2)
            rc = check_holders_of(s, makedev(a, b), err);
    }
    if (dir)
        closedir(dir);
    return rc;
}

/* ---- behind a loop device ---- */

static bool backing_file(const char *loop, struct stat *st)
{
    char path[PATH_MAX], file[PATH_MAX];

    snprintf(path, sizeof path, "/sys/block/%.64s/loop/backing_file", loop);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fgets(file, sizeof file, f) != NULL;
    fclose(f);
    if (!got)
        return false;
    file[strcspn(file, "\n")] = '\0';
    return stat(file, st) == 0;
}

static int check_loops(const struct subject *s, struct lp_error *err)
{
    DIR *dir = opendir("/sys/block");
    const struct dirent *entry;
    struct stat st;
    int rc = 0;

    while (dir && rc == 0 && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, "loop", 4) != 0 ||
            (s->own_loop && strcmp(entry->d_name, s->own_loop) == 0))
            continue;
        if (backing_file(entry->d_name, &st) && is_it(s, &st))
            rc = busy(s, err, "stands behind the loop device", entry->d_name,
                      "detach it first with losetup -d");
    }
    if (dir)
        closedir(dir);
    return rc;
}

static int check_subject(const struct subject *s, struct lp_error *err)
{
    if (check_mounts(s, err) != 0 || check_swaps(s, err) != 0 || check_holders(s, err) != 0)
        return -1;
    return check_loops(s, err);
}

/* What stands behind the target, when that is a loop device: others may use it as well. */
static int check_behind(const struct subject *s, struct lp_error *err)
{
    char link[PATH_MAX], path[64];
    struct subject behind = {.path = s->path};

    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(whole_disk(s->st.st_rdev)),
             minor(whole_disk(s->st.st_rdev)));
    ssize_t len = readlink(path, link, sizeof link - 1);
    if (len <= 0)
        return 0;
    link[len] = '\0';
    behind.own_loop = strrchr(link, '/') ? strrchr(link, '/') + 1 : link;
    if (strncmp(behind.own_loop, "loop", 4) != 0 || !backing_file(behind.own_loop, &behind.st))
        return 0;
    return check_subject(&behind, err);
}

int in_use_check(const char *path, const struct stat *st, struct lp_error *err)
{
    struct subject s = {.path = path, .st = *st};

    if (check_subject(&s, err) != 0)
        return -1;
    return S_ISBLK(st->st_mode) ? check_behind(&s, err) : 0;
}
