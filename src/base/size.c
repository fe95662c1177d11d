/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char units[] = "KMGT";

/* Reads decimal digits at *text and moves *text behind them. -1: none, or more than 64 bits. */
static int read_digits(const char **text, uint64_t *value)
{
    const char *p = *text;

    *value = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*p - '0'), value))
            return -1;
    if (p == *text)
        return -1;
    *text = p;
    return 0;
}

/* The factor that "", "B", "K", "KiB", "KB" and so on stand for; 0: no such unit. */
static uint64_t unit_factor(const char *text)
{
    if (!*text || strcmp(text, "B") == 0)
        return 1;

    char letter = (char)(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);
    const char *unit = strchr(units, letter);
    if (!unit)
        return 0;

    uint64_t base = strcmp(text + 1, "B") == 0 ? 1000 : 1024;
    if (base == 1024 && text[1] && strcmp(text + 1, "iB") != 0)
        return 0;
    uint64_t factor = base;
    for (const char *u = units; u < unit; u++)
        factor *= base;
    return factor;
}

int size_parse(const char *text, const char *what, uint64_t *bytes, struct lp_error *err)
{
    const char *rest = text;
    uint64_t value = 0;
    bool digits = read_digits(&rest, &value) == 0;
    uint64_t factor = digits ? unit_factor(rest) : 0;

    if (!factor)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the %s \"%s\" is not a size below 16 EiB; write a whole number, "
                            "with K, M, G or T if you like, such as 4K",
                            what, text);
    if (__builtin_mul_overflow(value, factor, bytes))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the %s \"%s\" is too large; it must be below 16 EiB", what, text);
    return 0;
}

int number_parse(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *value,
                 struct lp_error *err)
{
    const char *rest = text;

    if (read_digits(&rest, value) || *rest || *value < min || *value > max)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the %s \"%s\" must be a whole number from %" PRIu64 " to %" PRIu64,
                            what, text, min, max);
    return 0;
}

/* Whole units stand without a fraction, all else with one digit of it: "4 KiB", "4.0 KiB". */
char *size_format(uint64_t bytes, char *buf, size_t len)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;

    while (unit < 6 && bytes >> (10 * (unit + 1)))
        unit++;
    uint64_t one = (uint64_t)1 << (10 * unit);
    if (bytes % one == 0) {
        snprintf(buf, len, "%" PRIu64 " %s", bytes / one, names[unit]);
        return buf;
    }

    /* Tenths, rounded; the remainder has room for the factor in the largest unit too. */
    uint64_t tenths = bytes / one * 10 + (bytes % one * 10 + one / 2) / one;
    if (tenths == 10240) {
        tenths = 10;
        unit++;
    }
    snprintf(buf, len, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10), names[unit]);
    return buf;
}
