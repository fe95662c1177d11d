/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#ifdef LP_HAVE_NETTLE
#include <nettle/md5.h>
#include <nettle/memops.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <nettle/sha3.h>

static const struct nettle_hash *hash_of(enum hash_kind kind)
{
    switch (kind) {
    case HASH_MD5:
        return &nettle_md5;
    case HASH_SHA1:
        return &nettle_sha1;
    case HASH_SHA256:
        return &nettle_sha256;
    case HASH_SHA3_256:
        return &nettle_sha3_256;
    }
    return NULL;
}

size_t hash_size(enum hash_kind kind)
{
    const struct nettle_hash *hash = hash_of(kind);

    return hash ? hash->digest_size : 0;
}

void hash_pieces(enum hash_kind kind, const struct hash_piece *pieces, unsigned count,
                 uint8_t *digest)
{
    const struct nettle_hash *hash = hash_of(kind);
    union {
        struct md5_ctx md5;
        struct sha1_ctx sha1;
        struct sha256_ctx sha256;
        struct sha3_256_ctx sha3_256;
    } state;

    hash->init(&state);
    for (unsigned i = 0; i < count; i++)
        hash->update(&state, pieces[i].length, pieces[i].bytes);
    hash->digest(&state, hash->digest_size, digest);
    bytes_wipe(&state, sizeof(state)); /* a secret went through it */
}

bool bytes_equal_secret(const void *a, const void *b, size_t n)
{
    return nettle_memeql_sec(a, b, n) != 0;
}
#else
size_t hash_size(enum hash_kind kind)
{
    (void)kind;
    return 0;
}

void hash_pieces(enum hash_kind kind, const struct hash_piece *pieces, unsigned count,
                 uint8_t *digest)
{
    (void)kind;
    (void)pieces;
    (void)count;
    (void)digest;
}

bool bytes_equal_secret(const void *a, const void *b, size_t n)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differ = 0;

    for (size_t i = 0; i < n; i++)
        differ |= x[i] ^ y[i];
    return differ == 0;
}
#endif

void bytes_wipe(void *p, size_t n)
{
    volatile uint8_t *byte = p; /* volatile: these stores are not dead for the compiler */

    for (size_t i = 0; i < n; i++)
        byte[i] = 0;
}

int random_bytes(void *p, size_t n, struct lp_error *err)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    uint8_t *at = p;

    if (fd < 0)
        return lp_error_sys(err, errno, "cannot open /dev/urandom for random numbers");
    while (n > 0) {
        ssize_t got = read(fd, at, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int errnum = got < 0 ? errno : EIO;

            close(fd);
            return lp_error_sys(err, errnum, "cannot read random numbers from /dev/urandom");
        }
        at += got;
        n -= (size_t)got;
    }
    close(fd);
    return 0;
}
