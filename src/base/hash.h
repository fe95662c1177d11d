/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashes for CHAP, secrets and randomness, by nettle and the operating system. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lunpath/error.h>

enum { HASH_MAX = 32 };

/* The values are CHAP's algorithm numbers (IANA "PPP Authentication Algorithms"; 7143 12.1.3). */
enum hash_kind {
    HASH_MD5 = 5,
    HASH_SHA1 = 6,
    HASH_SHA256 = 7,
    HASH_SHA3_256 = 8,
};

struct hash_piece {
    const void *bytes;
    size_t length;
};

/* Digest length in bytes; 0: no such kind, or built without nettle. */
size_t hash_size(enum hash_kind kind);

/* The hash of the pieces one after another. hash_size(kind) is not 0. */
void hash_pieces(enum hash_kind kind, const struct hash_piece *pieces, unsigned count,
                 uint8_t *digest);

/* In a time that does not depend on the content. */
bool bytes_equal_secret(const void *a, const void *b, size_t n);

/* Overwrites in a way that the compiler keeps. */
void bytes_wipe(void *p, size_t n);

/* Unpredictable bytes from the operating system. 0 or -1. */
int random_bytes(void *p, size_t n, struct lp_error *err);

#endif
