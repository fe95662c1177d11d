/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC32C, CHAP's hashes and what belongs to secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/rng.h"

static void expect_crc(const uint8_t *bytes, size_t n, const char *hex)
{
    uint8_t digest[4];
    char text[9];

    crc32c_end(crc32c_add(CRC32C_INIT, bytes, n), digest);
    snprintf(text, sizeof(text), "%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3]);
    assert_string_equal(text, hex);
    crc32c_end(crc32c_add_table(CRC32C_INIT, bytes, n), digest);
    snprintf(text, sizeof(text), "%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3]);
    assert_string_equal(text, hex);
}

/* [B-07] [B13] RFC 7143 A.4, and a segment with its padding */
static void crc32c_gives_the_digests_of_the_rfc(void **state)
{
    uint8_t bytes[32];

    (void)state;
    memset(bytes, 0, sizeof(bytes));
    expect_crc(bytes, 32, "aa36918a");
    memset(bytes, 0xff, sizeof(bytes));
    expect_crc(bytes, 32, "43aba862");
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    expect_crc(bytes, 32, "4e79dd46");
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    expect_crc(bytes, 32, "5cdb3f11");
    expect_crc((const uint8_t *)"abc", 4, "4c0e9434");
}

static void crc32c_in_pieces_is_crc32c_in_one(void **state)
{
    enum { SIZE = 5000, SEED = 7 };
    static uint8_t bytes[SIZE];
    struct rng rng = {SEED};

    (void)state;
    printf("# seed %d\n", SEED);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)rng_next(&rng);
    for (int round = 0; round < 200; round++) {
        uint32_t crc = CRC32C_INIT;
        size_t at = 0;

        while (at < SIZE) {
            size_t n = rng_next(&rng) % 700;

            if (n > SIZE - at)
                n = SIZE - at;
            crc = crc32c_add(crc, bytes + at, n);
            at += n;
        }
        assert_int_equal(crc, crc32c_add(CRC32C_INIT, bytes, SIZE));
        assert_int_equal(crc, crc32c_add_table(CRC32C_INIT, bytes, SIZE));
    }
}

static void expect_hash(enum hash_kind kind, const char *hex)
{
    struct hash_piece pieces[] = {{"a", 1}, {"", 0}, {"bc", 2}};
    uint8_t digest[HASH_MAX];
    char text[2 * HASH_MAX + 1];

    assert_int_equal(hash_size(kind) * 2, strlen(hex));
    hash_pieces(kind, pieces, 3, digest);
    for (size_t i = 0; i < hash_size(kind); i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, hex);
}

/* The digests of "abc": RFC 1321, FIPS 180-4, FIPS 202. */
static void the_four_hashes_give_their_known_answers(void **state)
{
    (void)state;
    if (hash_size(HASH_MD5) == 0) {
        print_message("built without nettle\n");
        skip();
    }
    expect_hash(HASH_MD5, "900150983cd24fb0d6963f7d28e17f72");
    expect_hash(HASH_SHA1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect_hash(HASH_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_hash(HASH_SHA3_256, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
    assert_int_equal(hash_size((enum hash_kind)9), 0);
}

static void secrets_are_compared_and_wiped(void **state)
{
    char a[] = "secret secret", b[] = "secret secret";

    (void)state;
    assert_true(bytes_equal_secret(a, b, sizeof(a)));
    b[3] ^= 1;
    assert_false(bytes_equal_secret(a, b, sizeof(a)));
    assert_true(bytes_equal_secret(a, b, 3));
    bytes_wipe(a, sizeof(a));
    for (size_t i = 0; i < sizeof(a); i++)
        assert_int_equal(a[i], 0);
}

static void random_bytes_differ(void **state)
{
    uint8_t a[32], b[32];
    struct lp_error err;

    (void)state;
    assert_int_equal(random_bytes(a, sizeof(a), &err), 0);
    assert_int_equal(random_bytes(b, sizeof(b), &err), 0);
    assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_gives_the_digests_of_the_rfc),
        cmocka_unit_test(crc32c_in_pieces_is_crc32c_in_one),
        cmocka_unit_test(the_four_hashes_give_their_known_answers),
        cmocka_unit_test(secrets_are_compared_and_wiped),
        cmocka_unit_test(random_bytes_differ),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
