/* SPDX-License-Identifier: BSD-2-Clause */
/* CHAP as the target does it, against scripted initiators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "login_rig.h"

#define NAMES "InitiatorName=" RIG_INITIATOR "\nTargetName=" RIG_TARGET "\n"

static const enum iscsi_stage SEC = ISCSI_STAGE_SECURITY, OP = ISCSI_STAGE_OPERATIONAL;

static void setup(struct tgt_rig *r, uint64_t seed, bool mutual)
{
    tgt_rig_init(r, seed);
    tgt_rig_chap(r, mutual);
}

/* Up to the target's challenge. */
static void to_challenge(struct tgt_rig *r)
{
    tgt_rig_start(r);
    assert_int_equal(tgt_rig_ask(r, SEC, false, NAMES "AuthMethod=CHAP,None\n"), LOGIN_MORE);
    assert_string_equal(tgt_rig_said(r, "AuthMethod"), "CHAP");
    assert_int_equal(tgt_rig_ask(r, SEC, false, "CHAP_A=5\n"), LOGIN_MORE);
    assert_string_equal(tgt_rig_said(r, "CHAP_A"), "5");
    assert_non_null(tgt_rig_said(r, "CHAP_C"));
}

/* The right answer of RIG_USER, or of somebody else with another secret. */
static const char *answer(const struct tgt_rig *r, const char *user, const char *secret,
                          const char *more)
{
    static char script[400];
    struct chap_credentials c = rig_credentials(user, secret);
    uint8_t challenge[CHAP_BINARY_MAX], digest[HASH_MAX], identifier;
    size_t n, length;

    assert_int_equal(text_binary_of_length(tgt_rig_said(r, "CHAP_I"), &identifier, 1), 0);
    assert_int_equal(text_binary(tgt_rig_said(r, "CHAP_C"), challenge, sizeof(challenge), &n), 0);
    assert_int_equal(n, CHAP_CHALLENGE_SIZE);
    length = chap_response(r->l->kind, identifier, &c, challenge, n, digest);
    snprintf(script, sizeof(script), "CHAP_N=%s\nCHAP_R=0x", user);
    for (size_t i = 0; i < length; i++)
        snprintf(script + strlen(script), 3, "%02x", digest[i]);
    snprintf(script + strlen(script), sizeof(script) - strlen(script), "\n%s", more);
    return script;
}

/* [T-CHAP-01] */
static void the_first_known_algorithm_is_picked(void **state)
{
    static const struct {
        const char *list, *picked;
    } rows[] = {{"8,7,5", "8"}, {"5", "5"}, {"99,7,5", "7"}, {"99", NULL}, {"", NULL}, {"x", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tgt_rig r;
        char script[40];

        setup(&r, 1, false);
        tgt_rig_start(&r);
        assert_int_equal(tgt_rig_ask(&r, SEC, false, NAMES "AuthMethod=CHAP\n"), LOGIN_MORE);
        snprintf(script, sizeof(script), "CHAP_A=%s\n", rows[i].list);
        assert_int_equal(tgt_rig_ask(&r, SEC, false, script),
                         rows[i].picked ? LOGIN_MORE : LOGIN_FAILED);
        if (rows[i].picked)
            assert_string_equal(tgt_rig_said(&r, "CHAP_A"), rows[i].picked);
        else
            assert_int_equal(r.response.status, 0x0201);
        tgt_rig_free(&r);
    }
}

static void the_right_secret_logs_in(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r, 1, false);
    to_challenge(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, RIG_USER, RIG_SECRET, "")), LOGIN_MORE);
    assert_true(r.response.transit);
    assert_int_equal(r.n, 0);
    assert_int_equal(tgt_rig_ask(&r, OP, true, ""), LOGIN_DONE);
    assert_string_equal(r.l->chap_name, RIG_USER);
    tgt_rig_free(&r);
}

/* Method and algorithms in one request, T in each: what some initiators send. */
static void a_hasty_initiator_logs_in_too(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r, 1, false);
    tgt_rig_start(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, NAMES "AuthMethod=CHAP\nCHAP_A=7,5\n"), LOGIN_MORE);
    assert_false(r.response.transit);
    assert_string_equal(tgt_rig_said(&r, "CHAP_A"), "7");
    assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, RIG_USER, RIG_SECRET, "")), LOGIN_MORE);
    assert_true(r.response.transit);
    tgt_rig_free(&r);
}

/* [T-LOG-12] */
static void nobody_gets_in_without_authentication(void **state)
{
    static const struct {
        enum iscsi_stage stage;
        bool transit;
        const char *text;
    } rows[] = {
        {OP, true, NAMES},
        {OP, false, NAMES},
        {SEC, true, NAMES},
        {SEC, true, NAMES "AuthMethod=None\n"},
        {SEC, false, NAMES "AuthMethod=None\n"},
        {SEC, false, NAMES "AuthMethod=SRP,KRB5\n"},
        {SEC, true, NAMES "AuthMethod=\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tgt_rig r;

        setup(&r, 1, false);
        tgt_rig_start(&r);
        assert_int_equal(tgt_rig_ask(&r, rows[i].stage, rows[i].transit, rows[i].text),
                         LOGIN_FAILED);
        assert_int_equal(r.response.status, 0x0201);
        tgt_rig_free(&r);
    }
    for (int nsg = OP; nsg <= ISCSI_STAGE_FULL_FEATURE; nsg += 2) { /* in mid-CHAP */
        struct tgt_rig r;

        setup(&r, 1, false);
        tgt_rig_start(&r);
        r.request.transit = true;
        r.request.nsg = (uint8_t)nsg;
        assert_int_equal(tgt_rig_send(&r, NAMES "AuthMethod=CHAP\n"), LOGIN_MORE);
        assert_false(r.response.transit);
        assert_int_equal(tgt_rig_send(&r, "CHAP_A=5\n"), LOGIN_MORE);
        assert_false(r.response.transit);
        assert_int_equal(tgt_rig_send(&r, ""), LOGIN_FAILED);
        assert_int_equal(r.begins, 0);
        tgt_rig_free(&r);
    }
}

/* [T-CHAP-02] a wrong secret, an unknown name, a name of somebody else: one answer */
static void whatever_is_wrong_gets_the_same_answer(void **state)
{
    static const struct {
        const char *user, *secret, *bound;
    } rows[] = {
        {RIG_USER, "a secret of no use", NULL},
        {"nobody", RIG_SECRET, NULL},
        {"nobody", "\0\0\0\0", NULL},
        {"", RIG_SECRET, NULL},
        {RIG_USER, RIG_SECRET, "iqn.2001-04.com.example:other"}, /* [T-CHAP-07] */
    };
    char sentences[5][LOGIN_SENTENCE_MAX];

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        struct tgt_rig r;

        setup(&r, 1, false);
        r.bound = rows[i].bound;
        to_challenge(&r);
        assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, rows[i].user, rows[i].secret, "")),
                         LOGIN_FAILED);
        assert_int_equal(r.response.status, 0x0201);
        assert_int_equal(r.n, 0);
        memcpy(sentences[i], r.l->sentence, sizeof(sentences[i]));
        assert_string_equal(sentences[i], sentences[0]);
        tgt_rig_free(&r);
    }
}

/* What an unknown name is compared with is no secret that lets anybody in. */
static void the_stand_in_for_unknown_names_opens_nothing(void **state)
{
    struct chap_credentials zeros = {"nobody", (const uint8_t[CHAP_SECRET_MIN]){0},
                                     CHAP_SECRET_MIN};
    uint8_t digest[HASH_MAX];
    char script[200] = "CHAP_N=nobody\nCHAP_R=0x";
    struct tgt_rig r;
    size_t n;

    (void)state;
    setup(&r, 1, false);
    to_challenge(&r);
    n = chap_response(r.l->kind, r.l->identifier, &zeros, r.l->challenge, CHAP_CHALLENGE_SIZE,
                      digest);
    for (size_t i = 0; i < n; i++)
        snprintf(script + strlen(script), 3, "%02x", digest[i]);
    strcat(script, "\n");
    assert_int_equal(tgt_rig_ask(&r, SEC, true, script), LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0201);
    tgt_rig_free(&r);
}

/* [T-CHAP-07] bound to the name that it comes with */
static void a_bound_name_is_let_in(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r, 1, false);
    r.bound = RIG_INITIATOR;
    to_challenge(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, RIG_USER, RIG_SECRET, "")), LOGIN_MORE);
    tgt_rig_free(&r);
}

/* [T-CHAP-07] the owner of the session compares the identity and refuses */
static void another_identity_does_not_join_a_session(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r, 1, false);
    to_challenge(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, RIG_USER, RIG_SECRET, "")), LOGIN_MORE);
    r.begin = ISCSI_LOGIN_AUTHENTICATION;
    assert_int_equal(tgt_rig_ask(&r, OP, true, ""), LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0201);
    tgt_rig_free(&r);
}

/* [T-CHAP-03] */
static void missing_keys_and_wrong_steps_are_told_apart(void **state)
{
    static const struct {
        const char *text;
        uint16_t status;
    } rows[] = {
        {"", 0x0207},
        {"CHAP_N=" RIG_USER "\n", 0x0207},
        {"CHAP_R=0x00112233445566778899aabbccddeeff\n", 0x0207},
        {"CHAP_I=1\nCHAP_C=0x0011\n", 0x0207}, /* reflection without an answer */
        {"CHAP_N=" RIG_USER "\nCHAP_R=0x00\nCHAP_I=1\n", 0x0207},
        {"CHAP_N=" RIG_USER "\nCHAP_R=0x00\nCHAP_C=0x00\n", 0x0207},
        {"CHAP_A=5\n", 0x0200},
        {"AuthMethod=CHAP\n", 0x0200},
        {"CHAP_N=" RIG_USER "\nCHAP_R=zz\n", 0x0200},
        {"CHAP_N=" RIG_USER "\nCHAP_R=0x00\n", 0x0201},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tgt_rig r;

        setup(&r, 1, true);
        to_challenge(&r);
        assert_int_equal(tgt_rig_ask(&r, SEC, true, rows[i].text), LOGIN_FAILED);
        if (r.response.status != rows[i].status)
            fail_msg("%s: %04x", rows[i].text, r.response.status);
        tgt_rig_free(&r);
    }
}

/* [T-CHAP-03] */
static void keys_before_their_turn_are_refused(void **state)
{
    static const struct {
        const char *first, *second;
        uint16_t status;
    } rows[] = {
        {NAMES "CHAP_A=5\n", NULL, 0x0200},
        {NAMES "AuthMethod=CHAP\nCHAP_N=x\nCHAP_R=0x00\n", NULL, 0x0200},
        {NAMES "AuthMethod=CHAP\n", "CHAP_N=x\nCHAP_R=0x00\n", 0x0200},
        {NAMES "AuthMethod=CHAP\n", "CHAP_A=5\nCHAP_N=x\n", 0x0200},
        {NAMES "AuthMethod=CHAP\n", "", 0x0207},
        {NAMES "AuthMethod=CHAP\n", "AuthMethod=CHAP\n", 0x0200},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tgt_rig r;

        setup(&r, 1, false);
        tgt_rig_start(&r);
        if (rows[i].second)
            assert_int_equal(tgt_rig_ask(&r, SEC, false, rows[i].first), LOGIN_MORE);
        assert_int_equal(
            tgt_rig_ask(&r, SEC, false, rows[i].second ? rows[i].second : rows[i].first),
            LOGIN_FAILED);
        if (r.response.status != rows[i].status)
            fail_msg("row %zu: %04x", i, r.response.status);
        tgt_rig_free(&r);
    }
}

/* [T-CHAP-05] */
static void the_target_proves_its_identity_if_it_can(void **state)
{
    const char *ask = "CHAP_I=200\nCHAP_C=0x00112233445566778899aabbccddeeff\n";
    struct chap_credentials c = rig_credentials(RIG_MUTUAL_USER, RIG_MUTUAL_SECRET);
    uint8_t challenge[16], want[HASH_MAX], got[HASH_MAX];
    struct tgt_rig r;
    size_t n;

    (void)state;
    for (unsigned i = 0; i < sizeof(challenge); i++)
        challenge[i] = (uint8_t)(i * 0x11);
    chap_response(HASH_MD5, 200, &c, challenge, sizeof(challenge), want);
    for (int able = 0; able < 2; able++) {
        setup(&r, 1, able);
        to_challenge(&r);
        assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, RIG_USER, RIG_SECRET, ask)),
                         able ? LOGIN_MORE : LOGIN_FAILED);
        if (able) {
            assert_true(r.response.transit);
            assert_string_equal(tgt_rig_said(&r, "CHAP_N"), RIG_MUTUAL_USER);
            assert_int_equal(text_binary(tgt_rig_said(&r, "CHAP_R"), got, sizeof(got), &n), 0);
            assert_int_equal(n, 16);
            assert_memory_equal(got, want, 16);
        } else {
            assert_int_equal(r.response.status, 0x0201);
        }
        tgt_rig_free(&r);
    }
    setup(&r, 1, true); /* and nothing to somebody who has not proven his */
    to_challenge(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, RIG_USER, "a secret of no use", ask)),
                     LOGIN_FAILED);
    assert_int_equal(r.n, 0);
    tgt_rig_free(&r);
}

static void own_challenge_as_question(const struct tgt_rig *r, char *script, size_t size)
{
    snprintf(script, size, "CHAP_I=%s\nCHAP_C=%s\n", tgt_rig_said(r, "CHAP_I"),
             tgt_rig_said(r, "CHAP_C"));
}

/* [T-CHAP-04] on one connection, and on a sibling */
static void a_challenge_that_comes_back_is_not_answered(void **state)
{
    struct chap_outstanding outstanding = {0};
    struct tgt_rig one, two;
    char question[200];

    (void)state;
    setup(&one, 1, true);
    to_challenge(&one);
    own_challenge_as_question(&one, question, sizeof(question));
    assert_int_equal(tgt_rig_ask(&one, SEC, true, answer(&one, RIG_USER, RIG_SECRET, question)),
                     LOGIN_FAILED);
    assert_int_equal(one.response.status, 0x0201);
    assert_int_equal(one.n, 0);
    tgt_rig_free(&one);

    setup(&one, 1, true);
    setup(&two, 2, true);
    one.opts.outstanding = two.opts.outstanding = &outstanding;
    to_challenge(&one);
    to_challenge(&two);
    own_challenge_as_question(&one, question, sizeof(question));
    assert_int_equal(tgt_rig_ask(&two, SEC, true, answer(&two, RIG_USER, RIG_SECRET, question)),
                     LOGIN_FAILED);
    assert_int_equal(two.response.status, 0x0201);
    tgt_rig_free(&one);
    tgt_rig_free(&two);
    for (unsigned i = 0; i < CHAP_OUTSTANDING_MAX; i++)
        assert_false(outstanding.used[i]);
}

/* [T-CHAP-04] the initiator's secret is the target's own */
static void a_secret_of_both_directions_is_refused(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r, 1, false);
    r.policy.mutual = rig_credentials(RIG_MUTUAL_USER, RIG_SECRET);
    to_challenge(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, answer(&r, RIG_USER, RIG_SECRET, "")),
                     LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0201);
    assert_non_null(strstr(r.l->sentence, "the target's own"));
    tgt_rig_free(&r);
}

/* [T-CHAP-06] a recorded login played again, word by word */
static void an_old_response_is_never_accepted(void **state)
{
    char recorded[400];
    struct tgt_rig r;

    (void)state;
    setup(&r, 1, false);
    to_challenge(&r);
    snprintf(recorded, sizeof(recorded), "%s", answer(&r, RIG_USER, RIG_SECRET, ""));
    assert_int_equal(tgt_rig_ask(&r, SEC, true, recorded), LOGIN_MORE);
    tgt_rig_free(&r);
    setup(&r, 2, false);
    to_challenge(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, recorded), LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0201);
    tgt_rig_free(&r);
}

static int no_random(void *user, void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return -1;
}

static void without_random_numbers_there_is_no_login(void **state)
{
    struct login_tgt_ops ops;
    struct tgt_rig r;

    (void)state;
    setup(&r, 1, false);
    ops = *r.opts.ops;
    ops.random = no_random;
    r.opts.ops = &ops;
    tgt_rig_start(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, false, NAMES "AuthMethod=CHAP\nCHAP_A=5\n"),
                     LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0300);
    tgt_rig_free(&r);
}

/* An initiator that would authenticate itself where nobody asks. */
static void a_target_without_chap_says_so(void **state)
{
    static const char *const rows[][2] = {
        {"CHAP,None", "None"}, {"None,CHAP", "None"}, {"CHAP", "Reject"}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tgt_rig r;
        char script[200];

        tgt_rig_init(&r, 1);
        tgt_rig_start(&r);
        snprintf(script, sizeof(script), NAMES "AuthMethod=%s\n", rows[i][0]);
        assert_int_equal(tgt_rig_ask(&r, SEC, false, script), LOGIN_MORE);
        assert_string_equal(tgt_rig_said(&r, "AuthMethod"), rows[i][1]);
        assert_int_equal(tgt_rig_ask(&r, SEC, true, ""), LOGIN_MORE);
        assert_int_equal(tgt_rig_ask(&r, OP, true, ""), LOGIN_DONE);
        assert_string_equal(r.l->chap_name, "");
        tgt_rig_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_known_algorithm_is_picked),
        cmocka_unit_test(the_right_secret_logs_in),
        cmocka_unit_test(a_hasty_initiator_logs_in_too),
        cmocka_unit_test(nobody_gets_in_without_authentication),
        cmocka_unit_test(whatever_is_wrong_gets_the_same_answer),
        cmocka_unit_test(the_stand_in_for_unknown_names_opens_nothing),
        cmocka_unit_test(a_bound_name_is_let_in),
        cmocka_unit_test(another_identity_does_not_join_a_session),
        cmocka_unit_test(missing_keys_and_wrong_steps_are_told_apart),
        cmocka_unit_test(keys_before_their_turn_are_refused),
        cmocka_unit_test(the_target_proves_its_identity_if_it_can),
        cmocka_unit_test(a_challenge_that_comes_back_is_not_answered),
        cmocka_unit_test(a_secret_of_both_directions_is_refused),
        cmocka_unit_test(an_old_response_is_never_accepted),
        cmocka_unit_test(without_random_numbers_there_is_no_login),
        cmocka_unit_test(a_target_without_chap_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
