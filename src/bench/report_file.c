/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing a report so that there is the old file or the new one, never half of it: into a new file
 * beside it, to the disk, and renamed.
 */
#include "bench/report_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_TRIES = 100, LINK_STEPS = 16 };

struct job {
    int (*render)(const void *user, FILE *);
    const void *user;
};

struct result_job { /* user of render_result() */
    const struct result *result;
    const struct report_options *opts;
    int (*render)(const struct result *, const struct report_options *, FILE *);
};

static int write_error(const char *path, int errnum, struct lp_error *err)
{
    if (errnum == ENOSPC || errnum == EDQUOT)
        return lp_error_set(err, LP_ERROR_SYS, errnum,
                            "cannot write the report %s: no space is left there; make room or give "
                            "another path (an older file of that name is unchanged)",
                            path);
    if (errnum == EFBIG)
        return lp_error_set(err, LP_ERROR_SYS, errnum,
                            "cannot write the report %s: it is larger than files may be here; "
                            "raise the limit (ulimit -f) or give another path (an older file of "
                            "that name is unchanged)",
                            path);
    return lp_error_sys(err, errnum ? errnum : EIO, "cannot write the report %s", path);
}

/* Renders into fd, which is closed. Returns 0 or an errno value. */
static int render_into(int fd, const struct job *job, bool sync)
{
    FILE *out = fdopen(fd, "w");
    int errnum = 0;

    if (!out) {
        errnum = errno;
        close(fd);
        return errnum;
    }
    errno = 0;
    if (job->render(job->user, out) || fflush(out) || (sync && fsync(fd)))
        errnum = errno ? errno : EIO;
    if (fclose(out) && errnum == 0)
        errnum = errno;
    return errnum;
}

/* A new file "PATH.N.new"; its name in temporary. Returns a descriptor, -1: errno. */
static int open_beside(const char *path, mode_t mode, char *temporary, size_t len)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        if ((size_t)snprintf(temporary, len, "%s.%ld-%d.new", path, (long)getpid(), i) >= len) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* The folder of path, up to and with its last slash, into folder: "" for none. */
static void folder_of(const char *path, char *folder, size_t len)
{
    const char *slash = strrchr(path, '/');

    snprintf(folder, len, "%.*s", slash ? (int)(slash - path + 1) : 0, path);
}

/* So that the new name survives a power cut as well. Best effort: not every file system can. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];

    folder_of(path, folder, sizeof folder);
    int fd = open(folder[0] ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* Follows symbolic links, so that the file behind them is the one to be replaced. target has
 * PATH_MAX bytes and holds the path. Returns 0 or an errno value. */
static int follow(char *target)
{
    char link[PATH_MAX], folder[PATH_MAX];

    for (int i = 0; i < LINK_STEPS; i++) {
        ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0) /* EINVAL: no link; ENOENT: nothing there yet */
            return errno == EINVAL || errno == ENOENT ? 0 : errno;
        link[n] = '\0';
        folder_of(target, folder, sizeof folder);
        if (link[0] == '/')
            folder[0] = '\0';
        if (snprintf(target, PATH_MAX, "%s%s", folder, link) >= PATH_MAX)
            return ENAMETOOLONG;
    }
    return ELOOP;
}

static int write_beside(const char *path, mode_t mode, const struct job *job)
{
    char temporary[PATH_MAX];
    int fd = open_beside(path, mode, temporary, sizeof temporary);

    if (fd < 0)
        return errno;
    int errnum = render_into(fd, job, true);
    if (errnum == 0 && rename(temporary, path))
        errnum = errno;
    if (errnum)
        unlink(temporary);
    else
        sync_folder(path);
    return errnum;
}

/* A pipe or a device is not replaced but written to. */
static int write_through(const char *path, const struct job *job)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? errno : render_into(fd, job, false);
}

int report_write_with(const char *path, int (*render)(const void *user, FILE *), const void *user,
                      struct lp_error *err)
{
    struct job job = {render, user};
    char target[PATH_MAX];
    struct stat st;
    int errnum;

    if (stat(path, &st))
        st = (struct stat){.st_mode = S_IFREG | 0666}; /* a new file; the umask applies */
    if (S_ISDIR(st.st_mode))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the report %s is a folder; give the name of a file", path);
    if (!S_ISREG(st.st_mode))
        errnum = write_through(path, &job);
    else if (snprintf(target, sizeof target, "%s", path) >= (int)sizeof target)
        errnum = ENAMETOOLONG;
    else if ((errnum = follow(target)) == 0)
        errnum = write_beside(target, st.st_mode & 0777, &job);
    return errnum ? write_error(path, errnum, err) : 0;
}

static int render_result(const void *user, FILE *out)
{
    const struct result_job *job = user;

    return job->render(job->result, job->opts, out);
}

int report_write_file(const char *path, const struct result *r, const struct report_options *opts,
                      int (*render)(const struct result *, const struct report_options *, FILE *),
                      struct lp_error *err)
{
    const struct result_job job = {r, opts, render};

    return report_write_with(path, render_result, &job, err);
}
