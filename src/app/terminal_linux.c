/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "app/terminal.h"

#include <sys/ioctl.h>

unsigned terminal_width(int fd)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}
