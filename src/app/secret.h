/* SPDX-License-Identifier: BSD-2-Clause */
/* Secrets: from a file that only its owner can read, from the environment, or asked for on the
 * terminal. Never from a command line. */
#ifndef APP_SECRET_H
#define APP_SECRET_H

#include <lunpath/error.h>

enum { SECRET_MAX = 256 };

/* The first line of the file. Refuses what others can read, and what is empty or too long. */
int secret_from_file(const char *path, char secret[SECRET_MAX], struct lp_error *err);

/* From the variable. 1: it is set and taken; 0: it is not set; -1: empty or too long. */
int secret_from_environment(const char *variable, char secret[SECRET_MAX], struct lp_error *err);

/* Asked on the controlling terminal without echo. -1: there is none, or nothing was typed. */
int secret_ask(const char *what, char secret[SECRET_MAX], struct lp_error *err);

#endif
