/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors as values: a domain, a code and one sentence that says what is wrong and what to do.
 *
 * Fallible set-up functions return 0 or -1 (constructors: NULL) and fill the caller's lp_error.
 * The data path carries no text: a request ends with 0 or a negative errno in its status.
 */
#ifndef LUNPATH_ERROR_H
#define LUNPATH_ERROR_H

enum lp_error_domain {
    LP_ERROR_NONE,
    LP_ERROR_SYS,   /* the operating system refused; code is an errno value */
    LP_ERROR_USAGE, /* the caller asked for something that cannot be; code is 0 */
    LP_ERROR_PEER,  /* the other side broke the protocol or went away; code is an errno value */
};

struct lp_error {
    enum lp_error_domain domain;
    int code;
    char msg[512]; /* always terminated; cut at a character that fits when too long */
};

/* Sets *err. Returns -1 always, so that `return lp_error_set(...)` reads well. err may be NULL. */
int lp_error_set(struct lp_error *err, enum lp_error_domain domain, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* LP_ERROR_SYS: the formatted text, then ": " and the text of errnum. Returns -1 always. */
int lp_error_sys(struct lp_error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts the caller's noun and ": " before what a lower layer said. Returns -1 always. */
int lp_error_prefix(struct lp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
