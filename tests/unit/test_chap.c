/* SPDX-License-Identifier: BSD-2-Clause */
/* CHAP's responses, lists, secrets and the register of challenges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "iscsi/chap.h"

static void expect_response(enum hash_kind kind, uint8_t identifier, const char *hex)
{
    const struct chap_credentials c = {"user", "0123456789abcdef", 16};
    uint8_t challenge[16], digest[HASH_MAX];
    char text[2 * HASH_MAX + 1] = "";
    size_t n;

    for (unsigned i = 0; i < sizeof(challenge); i++)
        challenge[i] = (uint8_t)i;
    n = chap_response(kind, identifier, &c, challenge, sizeof(challenge), digest);
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, hex);
    assert_true(chap_verify(kind, identifier, &c, challenge, sizeof(challenge), digest, n));
    assert_false(chap_verify(kind, identifier, &c, challenge, sizeof(challenge), digest, n - 1));
    assert_false(chap_verify(kind, identifier ^ 1, &c, challenge, sizeof(challenge), digest, n));
    digest[n - 1] ^= 0x80;
    assert_false(chap_verify(kind, identifier, &c, challenge, sizeof(challenge), digest, n));
}

/* [B-32] computed apart from this program, by Python's hashlib */
static void responses_are_the_hash_of_identifier_secret_and_challenge(void **state)
{
    (void)state;
    if (hash_size(HASH_MD5) == 0) {
        print_message("built without nettle\n");
        skip();
    }
    expect_response(HASH_MD5, 0, "d65d4eb9b6513a18c699b9e0446e16b2");
    expect_response(HASH_MD5, 255, "68da7c723b32ce63d8dfe821f342cca5");
    expect_response(HASH_SHA1, 0, "e2d85918ee11e101ecd0d8e5e7f3e2143f1f5555");
    expect_response(HASH_SHA1, 255, "e4721f5e303e595a60ea2fb8a7a2772d3523f6db");
    expect_response(HASH_SHA256, 0,
                    "39e2b7dc722d68afe87aa326241c0c241984189549cba5e3b1a3147e43a6bed6");
    expect_response(HASH_SHA256, 255,
                    "99cac01ef6e5f70ad3f451306ffefcff1562c7edfeeb525333154d28367228bb");
    expect_response(HASH_SHA3_256, 0,
                    "d845e457a1b11114a00568f647eb28a96d831484d846585546ad61c81d4d8567");
    expect_response(HASH_SHA3_256, 255,
                    "e232892f4a46ca15d9d0075ccbb47522dae08bc70ab383a180b847b72bc72871");
}

/* [T-CHAP-01] */
static void the_first_known_algorithm_of_the_peer_is_picked(void **state)
{
    (void)state;
    if (hash_size(HASH_MD5) == 0) {
        print_message("built without nettle\n");
        skip();
    }
    assert_int_equal(chap_pick("8,7,5", "8,7,6,5"), 8);
    assert_int_equal(chap_pick("5", "8,7,6,5"), 5);
    assert_int_equal(chap_pick("99,6,5", "8,7,6,5"), 6);
    assert_int_equal(chap_pick("8,5", "5,6"), 5);
    assert_int_equal(chap_pick("0x7", "8,7,6,5"), 7);
    assert_int_equal(chap_pick("99", "8,7,6,5"), 0);
    assert_int_equal(chap_pick("", "8,7,6,5"), 0);
    assert_int_equal(chap_pick("MD5,,261", "8,7,6,5"), 0);
}

/* [I-CHAP-05] [T-CHAP-04] */
static void outstanding_challenges_are_known_until_they_are_answered(void **state)
{
    struct chap_outstanding o = {0};
    uint8_t challenge[CHAP_OUTSTANDING_MAX + 1][CHAP_CHALLENGE_SIZE] = {0};

    (void)state;
    for (unsigned i = 0; i <= CHAP_OUTSTANDING_MAX; i++)
        challenge[i][0] = (uint8_t)(i + 1);
    for (unsigned i = 0; i < CHAP_OUTSTANDING_MAX; i++)
        chap_outstanding_add(&o, challenge[i]);
    for (unsigned i = 0; i < CHAP_OUTSTANDING_MAX; i++)
        assert_true(chap_outstanding_has(&o, challenge[i], CHAP_CHALLENGE_SIZE));
    assert_false(chap_outstanding_has(&o, challenge[0], CHAP_CHALLENGE_SIZE - 1));
    chap_outstanding_remove(&o, challenge[5]);
    assert_false(chap_outstanding_has(&o, challenge[5], CHAP_CHALLENGE_SIZE));
    chap_outstanding_add(&o, challenge[CHAP_OUTSTANDING_MAX]); /* takes the free place */
    for (unsigned i = 0; i <= CHAP_OUTSTANDING_MAX; i++)
        assert_int_equal(chap_outstanding_has(&o, challenge[i], CHAP_CHALLENGE_SIZE), i != 5);
    chap_outstanding_add(&o, challenge[5]); /* and with none free one of the others goes */
    assert_true(chap_outstanding_has(&o, challenge[5], CHAP_CHALLENGE_SIZE));
}

static int seeded(void *user, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)rng_next(user);
    return 0;
}

/* [I-CHAP-07] */
static void a_generated_secret_has_128_random_bits(void **state)
{
    struct rng rng = {9};
    char one[33], other[33];
    struct lp_error err = {0};
    struct chap_credentials c = {"user", one, 32};

    (void)state;
    assert_int_equal(chap_secret_generate(seeded, &rng, one), 0);
    assert_int_equal(chap_secret_generate(seeded, &rng, other), 0);
    assert_int_equal(strlen(one), 32);
    assert_int_equal(strspn(one, "0123456789abcdef"), 32);
    assert_string_not_equal(one, other);
    assert_int_equal(chap_credentials_check(&c, NULL, false, "secret", &err), 0);
}

static void credentials_are_checked(void **state)
{
    char user[CHAP_USER_MAX + 2], secret[CHAP_SECRET_MAX + 1];
    struct chap_credentials c = {user, secret, CHAP_SECRET_MAX};
    struct lp_error err = {0};

    (void)state;
    memset(user, 'u', sizeof(user));
    memset(secret, 's', sizeof(secret));
    user[CHAP_USER_MAX] = '\0';
    assert_int_equal(chap_credentials_check(&c, NULL, false, "secret", &err), 0);
    c.secret_length++;
    assert_int_equal(chap_credentials_check(&c, NULL, false, "secret", &err), -1);
    c.secret_length = 0;
    assert_int_equal(chap_credentials_check(&c, NULL, true, "secret", &err), -1);
    c.secret_length = 20;
    c.user = "";
    assert_int_equal(chap_credentials_check(&c, NULL, false, "secret", &err), -1);
    c.user = "a\nb";
    assert_int_equal(chap_credentials_check(&c, NULL, false, "secret", &err), -1);
    user[CHAP_USER_MAX] = 'u';
    user[CHAP_USER_MAX + 1] = '\0';
    c.user = user;
    assert_int_equal(chap_credentials_check(&c, NULL, false, "secret", &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_are_the_hash_of_identifier_secret_and_challenge),
        cmocka_unit_test(the_first_known_algorithm_of_the_peer_is_picked),
        cmocka_unit_test(outstanding_challenges_are_known_until_they_are_answered),
        cmocka_unit_test(a_generated_secret_has_128_random_bits),
        cmocka_unit_test(credentials_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
