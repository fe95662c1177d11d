/* SPDX-License-Identifier: BSD-2-Clause */
#include <lunpath/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static void
set_text(struct lp_error *err, enum lp_error_domain domain, int code, const char *fmt, va_list ap)
{
    err->domain = domain;
    err->code = code;
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
}

int lp_error_set(struct lp_error *err, enum lp_error_domain domain, int code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        set_text(err, domain, code, fmt, ap);
        va_end(ap);
    }
    return -1;
}

int lp_error_sys(struct lp_error *err, int errnum, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        set_text(err, LP_ERROR_SYS, errnum, fmt, ap);
        va_end(ap);
        size_t used = strlen(err->msg);
        snprintf(err->msg + used, sizeof err->msg - used, ": %s", strerror(errnum));
    }
    return -1;
}

int lp_error_prefix(struct lp_error *err, const char *fmt, ...)
{
    if (err) {
        char lower[sizeof err->msg];
        memcpy(lower, err->msg, sizeof lower);
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof err->msg, fmt, ap);
        va_end(ap);
        size_t used = strlen(err->msg);
        snprintf(err->msg + used, sizeof err->msg - used, ": %s", lower);
    }
    return -1;
}
