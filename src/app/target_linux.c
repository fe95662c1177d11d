/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "app/in_use_linux.h"
#include "app/target.h"

#include "base/size.h"

#include <blkid/blkid.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is on it ---- */

struct contents {
    char what[160]; /* "a file system (ext4, label "home", 2 GiB)" */
};

/* A value of the probe as text that a terminal can show: whoever wrote the disk chose it. */
static void probe_text(blkid_probe probe, const char *name, char *text, size_t size)
{
    const char *value = NULL;
    size_t i = 0;

    if (blkid_probe_lookup_value(probe, name, &value, NULL) != 0)
        value = "";
    for (; value[i] && i + 1 < size; i++)
        text[i] = isprint((unsigned char)value[i]) ? value[i] : '?';
    text[i] = '\0';
}

static const char *usage_words(const char *usage)
{
    static const struct {
        const char *usage, *words;
    } table[] = {{"filesystem", "a file system"},
                 {"raid", "a member of a RAID or volume group"},
                 {"crypto", "an encrypted volume"}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].usage, usage) == 0)
            return table[i].words;
    return "data of a known kind";
}

static void describe(blkid_probe probe, struct contents *c)
{
    char type[32], usage[32], label[48], size[32];
    const char *words;

    probe_text(probe, "TYPE", type, sizeof type);
    probe_text(probe, "USAGE", usage, sizeof usage);
    probe_text(probe, "LABEL", label, sizeof label);
    words = strncmp(type, "swap", 4) == 0 ? "swap space" : usage_words(usage);
    if (!*type) {
        probe_text(probe, "PTTYPE", type, sizeof type);
        words = "a partition table";
    }
    size_format((uint64_t)blkid_probe_get_size(probe), size, sizeof size);
    snprintf(c->what, sizeof c->what, "%s (%s%s%s%s, %s)", words, *type ? type : "unknown",
             *label ? ", label \"" : "", label, *label ? "\"" : "", size);
}

/* The first signature of any kind; not blkid_do_safeprobe(), which finds nothing where there are
 * two. 1: found, 0: nothing, -1: it cannot be read. */
static int probe_contents(int fd, struct contents *c)
{
    blkid_probe probe = blkid_new_probe();
    int found = -1;

    if (probe && blkid_probe_set_device(probe, fd, 0, 0) == 0) {
        blkid_probe_enable_superblocks(probe, 1);
        blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE |
                                                     BLKID_SUBLKS_LABEL | BLKID_SUBLKS_BADCSUM);
        blkid_probe_enable_partitions(probe, 1);
        blkid_probe_set_partitions_flags(probe, BLKID_PARTS_FORCE_GPT);
        int rc = blkid_do_probe(probe);
        found = rc == 0 ? 1 : rc == 1 ? 0 : -1;
        if (found == 1)
            describe(probe, c);
    }
    if (probe)
        blkid_free_probe(probe);
    return found;
}

static int check_contents(const char *path, int fd, const struct target_opts *opts,
                          struct lp_error *err)
{
    const char *option =
        opts->even_with_data_option ? opts->even_with_data_option : "--even-with-data";
    struct contents c;
    int found = probe_contents(fd, &c);

    if (found == 0)
        return 0;
    if (found < 0)
        return lp_error_set(err, LP_ERROR_SYS, EIO,
                            "cannot see what is on %s, so it is not written to; look at it with "
                            "blkid -p, or add %s",
                            path, option);
    return lp_error_set(err, LP_ERROR_SYS, EEXIST,
                        "%s bears %s, which would be lost; name another target, or add "
                        "%s",
                        path, c.what, option);
}

/* libblkid reads files, so it gets one with the same ends and a hole between. */
int target_check_ends(const char *name, uint64_t size, const void *head, const void *tail, size_t n,
                      const struct target_opts *opts, struct lp_error *err)
{
    int fd = memfd_create("lunpath-ends", MFD_CLOEXEC);
    int rc;

    if (fd < 0 || ftruncate(fd, (off_t)size) != 0 || pwrite(fd, head, n, 0) != (ssize_t)n ||
        pwrite(fd, tail, n, (off_t)(size - n)) != (ssize_t)n)
        rc = lp_error_sys(err, errno, "cannot check what is on %s, so it is not written to", name);
    else
        rc = check_contents(name, fd, opts, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* ---- opening ---- */

static int open_file(const char *path, const struct stat *looked_at, const struct target_opts *opts,
                     struct lp_error *err)
{
    bool device = S_ISBLK(looked_at->st_mode);
    int flags = opts->destroy ? O_RDWR | (device ? O_EXCL : 0) : O_RDONLY;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    int e = errno;

    if (fd >= 0)
        return fd;
    if (e != EBUSY)
        return lp_error_sys(err, e, "cannot open %s for %s", path,
                            opts->destroy ? "reading and writing" : "reading");
    /* Who it is says more than EBUSY; that somebody does is certain. */
    if (in_use_check(path, looked_at, err) == 0)
        lp_error_set(err, LP_ERROR_SYS, e,
                     "%s is mounted or held by another driver or program and cannot be written to; "
                     "end that first",
                     path);
    return -1;
}

static int check_writable(const char *path, int fd, const struct stat *st,
                          const struct target_opts *opts, struct lp_error *err)
{
    if (in_use_check(path, st, err) != 0)
        return -1;
    return opts->even_with_data ? 0 : check_contents(path, fd, opts, err);
}

/* O_DIRECT only now: the check reads as it likes. Also takes O_NONBLOCK away. */
static int set_mode(const char *path, int fd, bool buffered, struct lp_error *err)
{
    if (fcntl(fd, F_SETFL, buffered ? 0 : O_DIRECT) == 0)
        return 0;
    if (errno == EINVAL && !buffered)
        return lp_error_set(err, LP_ERROR_SYS, EINVAL,
                            "the file system of %s has no direct I/O; add --buffered to go through "
                            "the page cache",
                            path);
    return lp_error_sys(err, errno, "cannot set the mode of %s", path);
}

int target_open_path(const char *path, const struct target_opts *opts, struct lp_error *err)
{
    struct stat before, st;

    if (stat(path, &before) != 0)
        return lp_error_sys(err, errno, "cannot look at %s", path);
    int fd = open_file(path, &before, opts, err);
    if (fd < 0)
        return -1;
    int rc;
    if (fstat(fd, &st) != 0)
        rc = lp_error_sys(err, errno, "cannot look at %s", path);
    else if (st.st_dev != before.st_dev || st.st_ino != before.st_ino ||
             st.st_rdev != before.st_rdev)
        rc = lp_error_set(err, LP_ERROR_SYS, EAGAIN,
                          "%s became another file while it was opened; try again", path);
    else
        rc = opts->destroy ? check_writable(path, fd, &st, opts, err) : 0;
    if (rc == 0)
        rc = set_mode(path, fd, opts->buffered, err);
    if (rc == 0)
        return fd;
    close(fd);
    return -1;
}

int target_hold(const char *path, int *fd, char *via, size_t size, struct lp_error *err)
{
    snprintf(via, size, "/proc/self/fd/%d", *fd);
    int hold = open(via, O_PATH | O_CLOEXEC); /* no claim on the device, but its inode */
    if (hold < 0)
        return lp_error_sys(err, errno, "cannot open %s by its descriptor; is /proc there?", path);
    close(*fd);
    *fd = hold;
    snprintf(via, size, "/proc/self/fd/%d", hold);
    return 0;
}
