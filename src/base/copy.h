/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copy of the data path. From COPY_STREAM_MIN bytes on it writes around the caches
 * (non-temporal stores) where the processor can: a block that large would only push other data out,
 * and not reading the target's cache lines first saves a third of the memory traffic. All earlier
 * stores of the caller and of this call are visible before any later one (sfence at the end).
 */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>

/* From so many bytes on; below, the data may well be used again from the cache soon. */
enum { COPY_STREAM_MIN = 32 * 1024 };

/* The areas do not overlap. */
void copy_bytes(void *dst, const void *src, size_t n);

/* "AVX2 streaming stores" or "memcpy": what copy_bytes uses for large blocks here. */
const char *copy_name(void);

#endif
