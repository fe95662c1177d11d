/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes and numbers as people type and read them. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <lunpath/error.h>
#include <stddef.h>
#include <stdint.h>

/* "4096", "4K", "4k", "4KiB", "1M", "2G", "1T" (powers of 1024), "4KB" (of 1000). Whole numbers.
 * Returns 0; -1 with a sentence that names what (such as "block size") and the text. */
int size_parse(const char *text, const char *what, uint64_t *bytes, struct lp_error *err);

/* Unsigned decimal in min..max. */
int number_parse(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *value,
                 struct lp_error *err);

/* "1 MiB", "4 KiB", "512 B", "1.5 GiB". Returns buf. */
char *size_format(uint64_t bytes, char *buf, size_t len);

#endif
