/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/hash.h"

/* The first line of what is in the buffer, in place. */
static int first_line(char secret[SECRET_MAX], size_t n, const char *where, struct lp_error *err)
{
    char *end = memchr(secret, '\n', n);
    size_t length = end ? (size_t)(end - secret) : n;

    if (length > 0 && secret[length - 1] == '\r')
        length--;
    if (length == 0 || length >= SECRET_MAX || memchr(secret, '\0', length))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the secret in %s is empty, too long (%d bytes at most) or holds a NUL "
                            "byte",
                            where, SECRET_MAX - 1);
    bytes_wipe(secret + length, SECRET_MAX - length);
    return 0;
}

int secret_from_file(const char *path, char secret[SECRET_MAX], struct lp_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0) {
        lp_error_sys(err, errno, "the secret file %s cannot be opened", path);
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "the secret file %s is not a regular file", path);
        goto out;
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        lp_error_set(err, LP_ERROR_USAGE, 0,
                     "others can read the secret file %s; run: chmod 600 %s", path, path);
        goto out;
    }
    memset(secret, 0, SECRET_MAX);
    n = read(fd, secret, SECRET_MAX);
    if (n < 0) {
        lp_error_sys(err, errno, "the secret file %s cannot be read", path);
        goto out;
    }
    close(fd);
    return first_line(secret, (size_t)n, path, err);
out:
    if (fd >= 0)
        close(fd);
    return -1;
}

int secret_from_environment(const char *variable, char secret[SECRET_MAX], struct lp_error *err)
{
    const char *value = getenv(variable);

    if (!value)
        return 0;
    if (*value == '\0' || strlen(value) >= SECRET_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the secret in $%s is empty or longer than %d bytes", variable,
                            SECRET_MAX - 1);
    memset(secret, 0, SECRET_MAX);
    memcpy(secret, value, strlen(value));
    return 1;
}

int secret_ask(const char *what, char secret[SECRET_MAX], struct lp_error *err)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    struct termios before, quiet;
    ssize_t n;

    if (fd < 0 || tcgetattr(fd, &before) < 0) {
        if (fd >= 0)
            close(fd);
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a secret is needed for %s and there is no terminal to ask on; give "
                            "--secret-file, or set LUNPATH_SECRET",
                            what);
    }
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    dprintf(fd, "Secret for %s: ", what);
    tcsetattr(fd, TCSAFLUSH, &quiet);
    memset(secret, 0, SECRET_MAX);
    n = read(fd, secret, SECRET_MAX);
    tcsetattr(fd, TCSAFLUSH, &before);
    dprintf(fd, "\n");
    close(fd);
    return first_line(secret, n > 0 ? (size_t)n : 0, "what was typed", err);
}
