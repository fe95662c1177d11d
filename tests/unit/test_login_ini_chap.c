/* SPDX-License-Identifier: BSD-2-Clause */
/* CHAP as the initiator does it, against scripted targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "login_rig.h"

/* Up to the request that carries CHAP_A. */
static void to_chap_a(struct ini_rig *r, bool mutual)
{
    ini_rig_init(r, 5);
    ini_rig_chap(r, mutual);
    ini_rig_start(r);
    assert_string_equal(ini_rig_said(r, "AuthMethod"), "CHAP");
    assert_false(r->request.transit);
    assert_int_equal(ini_rig_reply(r, false, "AuthMethod=CHAP\nTargetPortalGroupTag=1\n"),
                     LOGIN_MORE);
}

#define CHALLENGE "CHAP_I=7\nCHAP_C=0x000102030405060708090a0b0c0d0e0f\n"

static void to_chap_r(struct ini_rig *r, bool mutual)
{
    to_chap_a(r, mutual);
    assert_int_equal(ini_rig_reply(r, false, "CHAP_A=5\n" CHALLENGE), LOGIN_MORE);
}

/* The response that somebody with this secret gives to the challenge that is out. */
static const char *response_with(const struct ini_rig *r, const char *secret)
{
    static char script[2 * HASH_MAX + 100];
    struct chap_credentials c = rig_credentials("", secret);
    uint8_t challenge[CHAP_BINARY_MAX], digest[HASH_MAX], identifier;
    size_t n, length;

    assert_int_equal(text_binary_of_length(ini_rig_said(r, "CHAP_I"), &identifier, 1), 0);
    assert_int_equal(text_binary(ini_rig_said(r, "CHAP_C"), challenge, sizeof(challenge), &n), 0);
    length = chap_response(r->l->kind, identifier, &c, challenge, n, digest);
    snprintf(script, sizeof(script), "CHAP_N=%s\nCHAP_R=0x", RIG_MUTUAL_USER);
    for (size_t i = 0; i < length; i++)
        snprintf(script + strlen(script), 3, "%02x", digest[i]);
    strcat(script, "\n");
    return script;
}

/* [I-CHAP-02] */
static void the_list_of_algorithms_always_has_md5(void **state)
{
    static const char *const rows[][2] = {{NULL, "8,7,6,5"}, {"5", "5"},       {"7", "7,5"},
                                          {"5,8", "5,8"},    {"9,x,6", "6,5"}, {"7,7,5", "7,5"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct ini_rig r;

        ini_rig_init(&r, 1);
        ini_rig_chap(&r, false);
        r.opts.chap_algorithms = rows[i][0];
        ini_rig_start(&r);
        assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
        assert_string_equal(ini_rig_said(&r, "CHAP_A"), rows[i][1]);
        assert_false(r.request.transit);
        ini_rig_free(&r);
    }
}

/* [I-CHAP-01] [I-CHAP-03] */
static void each_fault_before_the_response_ends_the_login(void **state)
{
    static const char *const methods[] = {"AuthMethod=None\n",
                                          "AuthMethod=Reject\n",
                                          "AuthMethod=SRP\n",
                                          "AuthMethod=CHAP,None\n",
                                          "",
                                          "AuthMethod=CHAP\nCHAP_A=5\n",
                                          "CHAP_N=x\nCHAP_R=0x00\n",
                                          "AuthMethod=NotUnderstood\n"};
    static const char *const challenges[] = {
        "",
        "CHAP_A=5\n",
        "CHAP_A=5\nCHAP_I=1\n",
        CHALLENGE,
        "CHAP_A=9\n" CHALLENGE,
        "CHAP_A=5,6\n" CHALLENGE,
        "CHAP_A=\n" CHALLENGE,
        "CHAP_A=Reject\n" CHALLENGE,
        "CHAP_A=5\nCHAP_I=256\nCHAP_C=0x00\n",
        "CHAP_A=5\nCHAP_I=-1\nCHAP_C=0x00\n",
        "CHAP_A=5\nCHAP_I=1\nCHAP_C=\n",
        "CHAP_A=5\nCHAP_I=1\nCHAP_C=1234\n",
        "CHAP_A=5\nCHAP_I=1\nCHAP_C=0x0g\n",
        "CHAP_A=5\n" CHALLENGE "CHAP_R=0x00\n",
        "CHAP_A=5\n" CHALLENGE "CHAP_N=disk\n",
        "CHAP_A=5\n" CHALLENGE CHALLENGE,
        "AuthMethod=CHAP\nCHAP_A=5\n" CHALLENGE,
        "CHAP_N=disk\nCHAP_R=0x00\n",
    };
    struct ini_rig r;

    (void)state;
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
        ini_rig_init(&r, 5);
        ini_rig_chap(&r, false);
        ini_rig_start(&r);
        if (ini_rig_reply(&r, false, methods[i]) != LOGIN_FAILED)
            fail_msg("%s", methods[i]);
        assert_true(r.l->sentence[0]);
        ini_rig_free(&r);
    }
    for (size_t i = 0; i < sizeof(challenges) / sizeof(*challenges); i++) {
        to_chap_a(&r, false);
        if (ini_rig_reply(&r, false, challenges[i]) != LOGIN_FAILED)
            fail_msg("%s", challenges[i]);
        assert_true(r.l->sentence[0]);
        ini_rig_free(&r);
    }
}

/* [I-CHAP-01] */
static void nobody_goes_on_unauthenticated_where_it_is_required(void **state)
{
    struct iscsi_login_response pdu;
    struct ini_rig r;

    (void)state;
    ini_rig_init(&r, 5);
    ini_rig_chap(&r, false);
    ini_rig_start(&r);
    pdu = ini_rig_answer(&r); /* jumps to the full feature phase */
    pdu.transit = true;
    pdu.nsg = ISCSI_STAGE_FULL_FEATURE;
    pdu.tsih = 1;
    assert_int_equal(ini_rig_respond(&r, &pdu, ""), LOGIN_FAILED);
    assert_false(ini_rig_next(&r));
    ini_rig_free(&r);
    ini_rig_init(&r, 5);
    ini_rig_chap(&r, false);
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=None\n"), LOGIN_FAILED);
    assert_non_null(strstr(r.l->sentence, "make it optional"));
    ini_rig_free(&r);
}

/* [B-33] challenges of 1, 16, 1024 and 1025 bytes in both encodings */
static void challenges_up_to_1024_bytes_are_answered(void **state)
{
    static const size_t sizes[] = {1, 16, 32, 1023, 1024, 1025};
    static uint8_t challenge[1025];
    static char text[3000], script[3000];

    (void)state;
    for (size_t i = 0; i < sizeof(challenge); i++)
        challenge[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (int base64 = 0; base64 < 2; base64++) {
            struct chap_credentials c = rig_credentials(RIG_USER, RIG_SECRET);
            uint8_t want[HASH_MAX], got[HASH_MAX];
            struct text_writer w;
            struct ini_rig r;
            size_t n;

            text_writer_init(&w, text, sizeof(text));
            text_put(&w, "CHAP_A", "0x7");
            text_put(&w, "CHAP_I", "0xff");
            (base64 ? text_put_base64 : text_put_binary)(&w, "CHAP_C", challenge, sizes[i]);
            for (size_t k = 0; k < w.length; k++)
                script[k] = text[k] ? text[k] : '\n';
            script[w.length] = '\0';
            to_chap_a(&r, false);
            if (sizes[i] > CHAP_BINARY_MAX) {
                assert_int_equal(ini_rig_reply(&r, false, script), LOGIN_FAILED);
            } else {
                assert_int_equal(ini_rig_reply(&r, false, script), LOGIN_MORE);
                chap_response(HASH_SHA256, 255, &c, challenge, sizes[i], want);
                assert_int_equal(text_binary(ini_rig_said(&r, "CHAP_R"), got, sizeof(got), &n), 0);
                assert_int_equal(n, 32);
                assert_memory_equal(got, want, 32);
                assert_string_equal(ini_rig_said(&r, "CHAP_N"), RIG_USER);
                assert_true(r.request.transit);
            }
            ini_rig_free(&r);
        }
}

/* CHAP_N is text, whatever it looks like. */
static void a_user_name_is_never_decoded(void **state)
{
    struct ini_rig r;

    (void)state;
    rig_need_hashes();
    ini_rig_init(&r, 5);
    r.opts.chap = rig_credentials("0x41", RIG_SECRET);
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&r, false, "CHAP_A=5\n" CHALLENGE), LOGIN_MORE);
    assert_string_equal(ini_rig_said(&r, "CHAP_N"), "0x41");
    ini_rig_free(&r);
}

/* [I-CHAP-03] */
static void keys_behind_the_response_end_the_login(void **state)
{
    static const char *const answers[] = {"CHAP_N=disk\nCHAP_R=0x00\n", "CHAP_N=disk\n",
                                          "CHAP_A=5\n", CHALLENGE, "AuthMethod=CHAP\n"};
    struct ini_rig r;

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        to_chap_r(&r, false);
        if (ini_rig_reply(&r, true, answers[i]) != LOGIN_FAILED)
            fail_msg("%s", answers[i]);
        ini_rig_free(&r);
    }
    to_chap_r(&r, false);
    assert_int_equal(ini_rig_reply(&r, false, ""), LOGIN_MORE); /* it may take its time */
    assert_true(r.request.transit);
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_MORE);
    assert_int_equal(r.request.csg, ISCSI_STAGE_OPERATIONAL);
    assert_true(r.l->authenticated);
    ini_rig_free(&r);
}

/* [I-CHAP-04] */
static void the_target_must_prove_its_identity_where_that_is_asked(void **state)
{
    static const char *const answers[] = {
        "",
        "CHAP_N=disk\n",
        "CHAP_R=0x00112233445566778899aabbccddeeff\n",
        "CHAP_N=disk\nCHAP_R=0x00112233445566778899aabbccddeeff\n",
        "CHAP_N=disk\nCHAP_R=0x00\n",
        "CHAP_N=disk\nCHAP_R=\n",
        "CHAP_N=disk\nCHAP_R=garbage\n"};
    struct ini_rig r;

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        for (int transit = 0; transit < 2; transit++) {
            to_chap_r(&r, true);
            assert_non_null(ini_rig_said(&r, "CHAP_C"));
            assert_int_equal(ini_rig_reply(&r, transit, answers[i]), LOGIN_FAILED);
            assert_false(ini_rig_next(&r)); /* nothing is sent after */
            assert_false(r.l->target_authenticated);
            ini_rig_free(&r);
        }
    to_chap_r(&r, true);
    assert_int_equal(ini_rig_reply(&r, true, response_with(&r, RIG_MUTUAL_SECRET)), LOGIN_MORE);
    assert_true(r.l->target_authenticated);
    ini_rig_free(&r);
}

/* [I-CHAP-04] [B-33] each bit of the response counts, and its length */
static void one_wrong_bit_in_the_response_is_enough(void **state)
{
    struct ini_rig r;

    (void)state;
    for (unsigned bit = 0; bit <= 128; bit++) {
        char script[200];
        char *hex;

        to_chap_r(&r, true);
        snprintf(script, sizeof(script), "%s", response_with(&r, RIG_MUTUAL_SECRET));
        hex = strstr(script, "0x") + 2;
        if (bit < 128) {
            unsigned digit;

            assert_int_equal(sscanf((char[2]){hex[bit / 4], 0}, "%1x", &digit), 1);
            hex[bit / 4] = "0123456789abcdef"[digit ^ 1u << bit % 4];
        } else {
            memcpy(script + strlen(script) - 1, "00\n", 4); /* a byte more */
        }
        assert_int_equal(ini_rig_reply(&r, true, script), LOGIN_FAILED);
        assert_non_null(strstr(r.l->sentence, "does not know its secret"));
        ini_rig_free(&r);
    }
}

static void the_targets_user_name_is_compared_if_one_is_given(void **state)
{
    struct ini_rig r;

    (void)state;
    for (int any = 0; any < 2; any++) {
        ini_rig_init(&r, 5);
        ini_rig_chap(&r, true);
        r.opts.mutual.user = any ? NULL : "another";
        ini_rig_start(&r);
        assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
        assert_int_equal(ini_rig_reply(&r, false, "CHAP_A=5\n" CHALLENGE), LOGIN_MORE);
        assert_int_equal(ini_rig_reply(&r, true, response_with(&r, RIG_MUTUAL_SECRET)),
                         any ? LOGIN_MORE : LOGIN_FAILED);
        if (!any)
            assert_non_null(strstr(r.l->sentence, "calls itself"));
        ini_rig_free(&r);
    }
}

static void copy_challenge(const struct ini_rig *r, char *script, size_t size)
{
    snprintf(script, size, "CHAP_A=5\nCHAP_I=1\nCHAP_C=%s\n", ini_rig_said(r, "CHAP_C"));
}

/* [I-CHAP-05] on a second connection; RFC 7143 9.2.1, the attack of the example */
static void our_challenge_that_comes_back_is_not_answered(void **state)
{
    struct chap_outstanding outstanding = {0};
    struct ini_rig first, second;
    char script[200];

    (void)state;
    ini_rig_init(&first, 1);
    ini_rig_init(&second, 2);
    ini_rig_chap(&first, true);
    ini_rig_chap(&second, true);
    first.opts.outstanding = second.opts.outstanding = &outstanding;
    ini_rig_start(&first);
    ini_rig_start(&second);
    assert_int_equal(ini_rig_reply(&first, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&second, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&first, false, "CHAP_A=5\n" CHALLENGE), LOGIN_MORE);
    copy_challenge(&first, script, sizeof(script));
    assert_int_equal(ini_rig_reply(&second, false, script), LOGIN_FAILED);
    assert_non_null(strstr(second.l->sentence, "a challenge of our own"));
    ini_rig_free(&first);
    ini_rig_free(&second);
    for (unsigned i = 0; i < CHAP_OUTSTANDING_MAX; i++)
        assert_false(outstanding.used[i]); /* both are gone from the register */
}

/* [I-CHAP-05] the challenge that came is not used as our own: the first random one is */
static int first_the_challenge_of_the_target(void *user, void *bytes, size_t n)
{
    unsigned *calls = user;

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)(i + (*calls >= 2 ? 1 : 0));
    ++*calls;
    return 0;
}

static void our_challenge_never_repeats_the_one_that_came(void **state)
{
    char script[200] = "CHAP_A=5\nCHAP_I=1\nCHAP_C=0x";
    struct ini_rig r;
    unsigned calls = 0;

    (void)state;
    for (unsigned i = 0; i < CHAP_CHALLENGE_SIZE; i++)
        snprintf(script + strlen(script), 3, "%02x", i);
    strcat(script, "\n");
    ini_rig_init(&r, 1);
    ini_rig_chap(&r, true);
    r.opts.random = first_the_challenge_of_the_target;
    r.opts.random_user = &calls;
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&r, false, script), LOGIN_MORE);
    assert_int_equal(calls, 4);
    assert_int_equal(strncmp(ini_rig_said(&r, "CHAP_C"), "0x0102", 6), 0);
    ini_rig_free(&r);
}

/* [I-CHAP-05] */
static void our_own_response_is_no_proof(void **state)
{
    struct ini_rig r;

    (void)state;
    to_chap_r(&r, true);
    assert_int_equal(ini_rig_reply(&r, true, response_with(&r, RIG_SECRET)), LOGIN_FAILED);
    assert_non_null(strstr(r.l->sentence, "our own secret"));
    ini_rig_free(&r);
}

static int no_random(void *user, void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return -1;
}

static void without_random_numbers_there_is_no_challenge(void **state)
{
    struct ini_rig r;

    (void)state;
    ini_rig_init(&r, 1);
    ini_rig_chap(&r, true);
    r.opts.random = no_random;
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&r, false, "CHAP_A=5\n" CHALLENGE), LOGIN_FAILED);
    ini_rig_free(&r);
}

/* Old targets that refuse a list with more than MD5 in it: tried once more, with that alone. */
static void a_refused_list_is_to_be_tried_with_md5_alone(void **state)
{
    struct iscsi_login_response pdu = {.status = ISCSI_LOGIN_AUTHENTICATION};
    struct ini_rig r;

    (void)state;
    to_chap_a(&r, false);
    assert_int_equal(ini_rig_respond(&r, &pdu, ""), LOGIN_FAILED);
    assert_true(r.l->retry_md5);
    assert_non_null(strstr(r.l->sentence, "5 (MD5) alone"));
    ini_rig_free(&r);
    to_chap_a(&r, false);
    login_ini_closed(r.l);
    assert_true(r.l->retry_md5);
    ini_rig_free(&r);
    to_chap_r(&r, false); /* the list was fine, the secret is not */
    assert_int_equal(ini_rig_respond(&r, &pdu, ""), LOGIN_FAILED);
    assert_false(r.l->retry_md5);
    assert_non_null(strstr(r.l->sentence, "user name or secret"));
    ini_rig_free(&r);
    to_chap_a(&r, false); /* 7 is SHA-256 (IANA), but some targets mean SHA-1 by it */
    assert_int_equal(ini_rig_reply(&r, false, "CHAP_A=7\n" CHALLENGE), LOGIN_MORE);
    assert_int_equal(ini_rig_respond(&r, &pdu, ""), LOGIN_FAILED);
    assert_true(r.l->retry_md5);
    ini_rig_free(&r);
    ini_rig_init(&r, 1);
    ini_rig_chap(&r, false);
    r.opts.chap_algorithms = "5";
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=CHAP\n"), LOGIN_MORE);
    assert_int_equal(ini_rig_respond(&r, &pdu, ""), LOGIN_FAILED);
    assert_false(r.l->retry_md5);
    ini_rig_free(&r);
}

/* [I-CHAP-06] [I-CHAP-07] */
static void unsafe_secrets_are_refused_before_anything_is_sent(void **state)
{
    static const char secret64[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    struct lp_error err = {0};
    struct ini_rig r;

    (void)state;
    rig_need_hashes();
    ini_rig_init(&r, 1);
    r.opts.chap = rig_credentials("u", "12345678901");
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    assert_non_null(strstr(err.msg, "11 bytes"));
    assert_null(strstr(err.msg, "12345678901"));
    assert_int_equal(login_ini_check(&r.opts, true, &err), 0);
    r.opts.chap = rig_credentials("u", "123456789012");
    assert_int_equal(login_ini_check(&r.opts, false, &err), 0);
    r.opts.chap = rig_credentials("u", "1234567890123456");
    assert_int_equal(login_ini_check(&r.opts, false, &err), 0);
    r.opts.chap = rig_credentials("u", secret64);
    assert_int_equal(login_ini_check(&r.opts, false, &err), 0);
    r.opts.mutual = rig_credentials("t", secret64);
    assert_int_equal(login_ini_check(&r.opts, true, &err), -1);
    assert_non_null(strstr(err.msg, "both directions"));
    r.opts.mutual = rig_credentials(NULL, "another secret of it");
    assert_int_equal(login_ini_check(&r.opts, false, &err), 0);
    r.opts.chap_optional = true;
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    r.opts.chap_optional = false;
    r.opts.chap = (struct chap_credentials){0};
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    free(r.l);
}

static void without_hashes_chap_is_refused_before_anything_is_sent(void **state)
{
    struct lp_error err = {0};
    struct ini_rig r;

    (void)state;
    ini_rig_init(&r, 1);
    r.opts.chap = rig_credentials(RIG_USER, RIG_SECRET);
    if (hash_size(HASH_MD5) > 0) {
        assert_int_equal(login_ini_check(&r.opts, false, &err), 0);
    } else {
        assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
        assert_non_null(strstr(err.msg, "nettle"));
    }
    free(r.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_of_algorithms_always_has_md5),
        cmocka_unit_test(each_fault_before_the_response_ends_the_login),
        cmocka_unit_test(nobody_goes_on_unauthenticated_where_it_is_required),
        cmocka_unit_test(challenges_up_to_1024_bytes_are_answered),
        cmocka_unit_test(a_user_name_is_never_decoded),
        cmocka_unit_test(keys_behind_the_response_end_the_login),
        cmocka_unit_test(the_target_must_prove_its_identity_where_that_is_asked),
        cmocka_unit_test(one_wrong_bit_in_the_response_is_enough),
        cmocka_unit_test(the_targets_user_name_is_compared_if_one_is_given),
        cmocka_unit_test(our_challenge_that_comes_back_is_not_answered),
        cmocka_unit_test(our_challenge_never_repeats_the_one_that_came),
        cmocka_unit_test(our_own_response_is_no_proof),
        cmocka_unit_test(without_random_numbers_there_is_no_challenge),
        cmocka_unit_test(a_refused_list_is_to_be_tried_with_md5_alone),
        cmocka_unit_test(without_hashes_chap_is_refused_before_anything_is_sent),
        cmocka_unit_test(unsafe_secrets_are_refused_before_anything_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
