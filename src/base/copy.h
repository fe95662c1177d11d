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

void copy_bytes(void *dst, const void *src, size_t n);

/* "AVX2 streaming stores" or "memcpy": what copy_bytes uses for large blocks here. */
const char *copy_name(void);

#endif
