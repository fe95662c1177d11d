/* SPDX-License-Identifier: BSD-2-Clause */
/* What the terminal behind a descriptor can do. */
#ifndef APP_TERMINAL_H
#define APP_TERMINAL_H

#include <stdbool.h>

/* Lines can be redrawn: a terminal, and not a dumb one. */
bool terminal_redraws(int fd);

/* As before, and NO_COLOR is not set (no-color.org). */
bool terminal_colour(int fd);

/* Columns; 80 where nobody knows. */
unsigned terminal_width(int fd);

#endif
