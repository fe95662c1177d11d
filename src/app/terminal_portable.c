/* SPDX-License-Identifier: BSD-2-Clause */
/* POSIX 2008 has no call for the width; some shells tell it. */
#include "app/terminal.h"

#include <stdlib.h>

unsigned terminal_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;

    (void)fd;
    return width > 0 && width < 1000 ? (unsigned)width : 80;
}
