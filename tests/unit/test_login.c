/* SPDX-License-Identifier: BSD-2-Clause */
/* Both login machines against each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "login_rig.h"

/* Both sides hold the same, each from its end. */
static void assert_agreed(const struct iscsi_params *ini, const struct iscsi_params *tgt)
{
    struct iscsi_params turned = *tgt;

    turned.mrdsl_in = tgt->mrdsl_out;
    turned.mrdsl_out = tgt->mrdsl_in;
    assert_int_equal(ini->mrdsl_in, turned.mrdsl_in);
    assert_int_equal(ini->mrdsl_out, turned.mrdsl_out);
    assert_int_equal(ini->header_digest, turned.header_digest);
    assert_int_equal(ini->data_digest, turned.data_digest);
    assert_int_equal(ini->max_connections, turned.max_connections);
    assert_int_equal(ini->initial_r2t, turned.initial_r2t);
    assert_int_equal(ini->immediate_data, turned.immediate_data);
    assert_int_equal(ini->max_burst_length, turned.max_burst_length);
    assert_int_equal(ini->first_burst_length, turned.first_burst_length);
    assert_int_equal(ini->default_time2wait, turned.default_time2wait);
    assert_int_equal(ini->default_time2retain, turned.default_time2retain);
    assert_int_equal(ini->max_outstanding_r2t, turned.max_outstanding_r2t);
    assert_int_equal(ini->data_pdu_in_order, turned.data_pdu_in_order);
    assert_int_equal(ini->data_sequence_in_order, turned.data_sequence_in_order);
    assert_int_equal(ini->error_recovery_level, turned.error_recovery_level);
    assert_int_equal(ini->protocol_level, turned.protocol_level);
    assert_int_equal(ini->task_reporting, turned.task_reporting);
    assert_int_equal(ini->discovery, turned.discovery);
}

/* [I-LOG-06] [I-LOG-12] [T-LOG-08] [T-LOG-11] */
static void a_login_ends_with_the_same_on_both_sides(void **state)
{
    struct ini_rig ini;
    struct tgt_rig tgt;
    enum login_result at_target;

    (void)state;
    ini_rig_init(&ini, 1);
    tgt_rig_init(&tgt, 2);
    tgt.policy.target_alias = "The disk";
    ini.opts.initiator_alias = "The host";
    assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_DONE);
    assert_int_equal(at_target, LOGIN_DONE);
    assert_agreed(&ini.l->params, &tgt.l->params);
    assert_int_equal(ini.l->tsih, 55);
    assert_int_equal(tgt.l->tsih, 55);
    assert_int_equal(ini.l->cmd_sn, 0xfffffffe);
    assert_int_equal(tgt.l->cmd_sn, 0xfffffffe);
    assert_int_equal(ini.l->exp_cmd_sn, 0xfffffffe);
    assert_int_equal(ini.l->max_cmd_sn, 0xfffffffe + 15);
    assert_int_equal(ini.l->exp_stat_sn, tgt.l->stat_sn);
    assert_int_equal(ini.l->portal_group_tag, 1);
    assert_string_equal(ini.l->target_alias, "The disk");
    assert_string_equal(tgt.l->initiator_alias, "The host");
    assert_string_equal(tgt.l->initiator_name, RIG_INITIATOR);
    assert_string_equal(tgt.l->target_name, RIG_TARGET);
    assert_int_equal(tgt.begins, 1);
    assert_false(ini.l->authenticated);
    ini_rig_free(&ini);
    tgt_rig_free(&tgt);
}

static bool coin(struct rng *rng)
{
    return rng_next(rng) & 1;
}

static uint32_t some_number(struct rng *rng, uint32_t min, uint32_t max)
{
    switch (rng_below(rng, 4)) {
    case 0:
        return min;
    case 1:
        return max;
    default:
        return min + (uint32_t)rng_below(rng, max - min + 1);
    }
}

static void draw_wishes(struct rng *rng, struct iscsi_wishes *w)
{
    struct iscsi_params *p = &w->params;

    iscsi_wishes_default(w);
    w->header_digest = (enum iscsi_digest_wish)rng_below(rng, 4);
    w->data_digest = (enum iscsi_digest_wish)rng_below(rng, 4);
    w->plain = coin(rng);
    p->mrdsl_in = some_number(rng, 512, ISCSI_SEGMENT_MAX);
    p->max_connections = some_number(rng, 1, 65535);
    p->initial_r2t = coin(rng);
    p->immediate_data = coin(rng);
    p->max_burst_length = some_number(rng, 512, ISCSI_SEGMENT_MAX);
    p->first_burst_length = some_number(rng, 512, ISCSI_SEGMENT_MAX);
    p->default_time2wait = some_number(rng, 0, 3600);
    p->default_time2retain = some_number(rng, 0, 3600);
    p->max_outstanding_r2t = some_number(rng, 1, 65535);
    p->data_pdu_in_order = coin(rng);
    p->data_sequence_in_order = coin(rng);
    p->error_recovery_level = (uint8_t)rng_below(rng, 3);
    p->protocol_level = (uint8_t)rng_below(rng, 4);
    p->task_reporting = (enum iscsi_task_reporting)rng_below(rng, 3);
}

static bool digests_conflict(enum iscsi_digest_wish a, enum iscsi_digest_wish b)
{
    return (a == ISCSI_DIGEST_NONE && b == ISCSI_DIGEST_REQUIRE) ||
           (a == ISCSI_DIGEST_REQUIRE && b == ISCSI_DIGEST_NONE);
}

/* [B-20] [B-23] [B-25] [B-34] */
static void any_two_wishes_end_in_agreement(void **state)
{
    enum { SEED = 20, LOGINS = 3000 };
    struct rng rng = {SEED};
    struct ini_rig ini;
    struct tgt_rig tgt;
    unsigned conflicts = 0;

    (void)state;
    printf("# seed %d\n", SEED);
    ini_rig_init(&ini, 1);
    tgt_rig_init(&tgt, 2);
    for (unsigned i = 0; i < LOGINS; i++) {
        size_t cut = coin(&rng) ? 0 : 40 + rng_below(&rng, 300);
        enum login_result at_target, at_initiator;
        const struct iscsi_params *p = &ini.l->params;
        bool conflict;

        draw_wishes(&rng, &ini.opts.wishes);
        draw_wishes(&rng, &tgt.opts.wishes);
        ini.opts.discovery = rng_below(&rng, 4) == 0;
        ini.opts.target_name = ini.opts.discovery && coin(&rng) ? NULL : RIG_TARGET;
        conflict = digests_conflict(ini.opts.wishes.header_digest, tgt.opts.wishes.header_digest) ||
                   digests_conflict(ini.opts.wishes.data_digest, tgt.opts.wishes.data_digest);
        at_initiator = rig_login(&ini, &tgt, cut, &at_target);
        if (conflict) {
            conflicts++;
            assert_int_equal(at_initiator, LOGIN_FAILED);
            assert_non_null(strstr(ini.l->status ? tgt.l->sentence : ini.l->sentence, "Digest"));
            continue;
        }
        if (at_initiator != LOGIN_DONE)
            fail_msg("login %u: %s / %s", i, ini.l->sentence, tgt.l->sentence);
        assert_agreed(p, &tgt.l->params);
        assert_true(p->first_burst_length <= p->max_burst_length);
        assert_true(!p->error_recovery_level || !p->data_sequence_in_order ||
                    p->max_outstanding_r2t == 1);
        assert_int_equal(tgt.l->discovery, ini.opts.discovery);
        assert_true(!ini.opts.discovery || p->error_recovery_level == 0);
    }
    assert_in_range(conflicts, 1, LOGINS - 1);
    ini_rig_free(&ini);
    tgt_rig_free(&tgt);
}

/* [B-32] [B-33] [I-CHAP-02] [I-CHAP-04] [T-CHAP-01] [T-CHAP-05] each algorithm, one way and both */
static void chap_succeeds_with_each_algorithm(void **state)
{
    static const char *const lists[] = {NULL, "5", "6,5", "7,5", "8,5", "5,8"};
    static const int kinds[] = {8, 5, 6, 7, 8, 5};
    struct ini_rig ini;
    struct tgt_rig tgt;

    (void)state;
    for (unsigned i = 0; i < 6; i++)
        for (int mutual = 0; mutual < 2; mutual++)
            for (size_t cut = 0; cut < 100; cut += 33) {
                enum login_result at_target;

                ini_rig_init(&ini, i);
                tgt_rig_init(&tgt, 100 + i);
                ini_rig_chap(&ini, mutual);
                tgt_rig_chap(&tgt, true);
                ini.opts.chap_algorithms = lists[i];
                if (rig_login(&ini, &tgt, cut, &at_target) != LOGIN_DONE)
                    fail_msg("%s / %s", ini.l->sentence, tgt.l->sentence);
                assert_int_equal(at_target, LOGIN_DONE);
                assert_int_equal(ini.l->kind, kinds[i]);
                assert_true(ini.l->authenticated);
                assert_int_equal(ini.l->target_authenticated, mutual);
                assert_string_equal(tgt.l->chap_name, RIG_USER);
                ini_rig_free(&ini);
                tgt_rig_free(&tgt);
            }
}

/* [I-CHAP-08] [T-CHAP-06] two logins differ; the same seed gives the same login */
static void challenges_are_fresh_in_each_login(void **state)
{
    uint8_t ini_challenge[3][CHAP_CHALLENGE_SIZE], tgt_challenge[3][CHAP_CHALLENGE_SIZE];
    struct ini_rig ini;
    struct tgt_rig tgt;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        enum login_result at_target;

        ini_rig_init(&ini, i == 1 ? 11 : 10);
        tgt_rig_init(&tgt, i == 1 ? 21 : 20);
        ini_rig_chap(&ini, true);
        tgt_rig_chap(&tgt, true);
        assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_DONE);
        memcpy(ini_challenge[i], ini.l->challenge, CHAP_CHALLENGE_SIZE);
        memcpy(tgt_challenge[i], tgt.l->challenge, CHAP_CHALLENGE_SIZE);
        ini_rig_free(&ini);
        tgt_rig_free(&tgt);
    }
    assert_memory_not_equal(ini_challenge[0], ini_challenge[1], CHAP_CHALLENGE_SIZE);
    assert_memory_not_equal(tgt_challenge[0], tgt_challenge[1], CHAP_CHALLENGE_SIZE);
    assert_memory_equal(ini_challenge[0], ini_challenge[2], CHAP_CHALLENGE_SIZE);
    assert_memory_equal(tgt_challenge[0], tgt_challenge[2], CHAP_CHALLENGE_SIZE);
}

static struct {
    const char *what;
    bool ini_chap, ini_mutual, tgt_chap, tgt_mutual;
    const char *ini_secret, *tgt_mutual_secret;
    uint16_t status; /* as the target says; 0: the initiator finds out */
    const char *sentence;
} const mismatches[] = {
    {"no credentials", false, false, true, false, NULL, NULL, 0x0201, "give a CHAP user name"},
    {"wrong secret", true, false, true, false, "a secret of no use", NULL, 0x0201, "check both"},
    {"wrong secret, mutual", true, true, true, true, "a secret of no use", NULL, 0x0201,
     "leave out mutual"},
    {"target has no secret", true, true, true, false, NULL, NULL, 0x0201, "leave out mutual"},
    {"target has another secret", true, true, true, true, NULL, "something else entirely", 0,
     "does not know its secret"},
    {"target does not ask", true, false, false, false, NULL, NULL, 0, "refuses authentication"},
    {"target has the initiator's secret", true, true, true, true, NULL, RIG_SECRET, 0x0201,
     "leave out mutual"},
};

/* [I-CHAP-01] [I-CHAP-04] [T-CHAP-02] [T-CHAP-05] [T-LOG-12] */
static void failed_authentication_says_what_to_look_at(void **state)
{
    struct ini_rig ini;
    struct tgt_rig tgt;

    (void)state;
    for (size_t i = 0; i < sizeof(mismatches) / sizeof(*mismatches); i++) {
        enum login_result at_target;

        ini_rig_init(&ini, 1);
        tgt_rig_init(&tgt, 2);
        if (mismatches[i].ini_chap)
            ini_rig_chap(&ini, mismatches[i].ini_mutual);
        if (mismatches[i].ini_secret)
            ini.opts.chap = rig_credentials(RIG_USER, mismatches[i].ini_secret);
        if (mismatches[i].tgt_chap)
            tgt_rig_chap(&tgt, mismatches[i].tgt_mutual);
        if (mismatches[i].tgt_mutual_secret)
            tgt.policy.mutual = rig_credentials("disk", mismatches[i].tgt_mutual_secret);
        assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_FAILED);
        assert_int_equal(ini.l->status, mismatches[i].status);
        if (!strstr(ini.l->sentence, mismatches[i].sentence))
            fail_msg("%s: %s", mismatches[i].what, ini.l->sentence);
        assert_false(ini.l->retryable);
        assert_int_equal(tgt.begins, 0);
        ini_rig_free(&ini);
        tgt_rig_free(&tgt);
    }
}

static void optional_authentication_does_without(void **state)
{
    struct ini_rig ini;
    struct tgt_rig tgt;

    (void)state;
    for (int chap = 0; chap < 2; chap++) {
        enum login_result at_target;

        ini_rig_init(&ini, 1);
        tgt_rig_init(&tgt, 2);
        ini_rig_chap(&ini, false);
        ini.opts.chap_optional = true;
        tgt.policy.chap = chap;
        assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_DONE);
        assert_int_equal(ini.l->authenticated, chap);
        ini_rig_free(&ini);
        tgt_rig_free(&tgt);
    }
}

/* [I-LOG-13] [T-LOG-17] [B-20] 20 KB of private keys are too much for this target's 16 KiB; 12 KB
 * are not, and both directions need several PDUs */
static void long_texts_go_in_series_of_pdus(void **state)
{
    static char keys[30000];
    struct text_writer w;
    struct ini_rig ini;
    struct tgt_rig tgt;
    enum login_result at_target;

    (void)state;
    for (int too_long = 0; too_long < 2; too_long++) {
        ini_rig_init(&ini, 1);
        tgt_rig_init(&tgt, 2);
        text_writer_init(&w, keys, too_long ? 20000 : 12000);
        for (unsigned i = 0; !w.overflow; i++) {
            char key[40];

            snprintf(key, sizeof(key), "X-com.example.k%u", i);
            text_put(&w, key, "some value of it");
        }
        ini.opts.extra_keys = keys;
        ini.opts.extra_keys_length = w.length;
        if (too_long) {
            assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_FAILED);
            assert_int_equal(ini.l->status, ISCSI_LOGIN_OUT_OF_RESOURCES);
        } else {
            assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_DONE);
            assert_int_equal(ini.l->rounds, 4);
            assert_agreed(&ini.l->params, &tgt.l->params);
        }
        ini_rig_free(&ini);
        tgt_rig_free(&tgt);
    }
}

/* [I-LOG-09] [T-LOG-20] */
static void a_redirect_leads_to_the_address(void **state)
{
    struct ini_rig ini;
    struct tgt_rig tgt;

    (void)state;
    for (int permanent = 0; permanent < 2; permanent++) {
        enum login_result at_target;

        ini_rig_init(&ini, 1);
        tgt_rig_init(&tgt, 2);
        tgt.lookup = permanent ? ISCSI_LOGIN_MOVED_PERMANENTLY : ISCSI_LOGIN_MOVED_TEMPORARILY;
        tgt.policy.address = "[fe80::1]:3261";
        assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_REDIRECT);
        assert_int_equal(at_target, LOGIN_FAILED);
        assert_string_equal(ini.l->address, "[fe80::1]:3261");
        assert_int_equal(ini.l->permanent, permanent);
        ini_rig_free(&ini);
        tgt_rig_free(&tgt);
    }
}

/* [I-LOG-12] [T-LOG-06] */
static void a_second_connection_joins_with_the_tsih(void **state)
{
    struct iscsi_params session;
    struct ini_rig ini;
    struct tgt_rig tgt;
    enum login_result at_target;

    (void)state;
    iscsi_params_default(&session);
    session.max_burst_length = 4096;
    session.first_burst_length = 4096;
    ini_rig_init(&ini, 1);
    tgt_rig_init(&tgt, 2);
    ini.opts.tsih = 55;
    ini.opts.session = &session;
    ini.opts.wishes.header_digest = ISCSI_DIGEST_REQUIRE;
    tgt.base = &session;
    assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_DONE);
    assert_int_equal(tgt.l->tsih, 55);
    assert_int_equal(ini.l->params.max_burst_length, 4096);
    assert_true(ini.l->params.header_digest);
    assert_agreed(&ini.l->params, &tgt.l->params);
    ini_rig_free(&ini);
    tgt_rig_free(&tgt);
}

/* The struct that a login leaves behind has nothing in it. */
static void nothing_stays_in_memory_after_the_end(void **state)
{
    struct ini_rig ini;
    struct tgt_rig tgt;
    enum login_result at_target;

    (void)state;
    ini_rig_init(&ini, 1);
    tgt_rig_init(&tgt, 2);
    ini_rig_chap(&ini, true);
    tgt_rig_chap(&tgt, true);
    assert_int_equal(rig_login(&ini, &tgt, 0, &at_target), LOGIN_DONE);
    login_ini_end(ini.l);
    login_tgt_end(tgt.l);
    for (size_t i = 0; i < sizeof(*ini.l); i++)
        assert_int_equal(((const uint8_t *)ini.l)[i], 0);
    for (size_t i = 0; i < sizeof(*tgt.l); i++)
        assert_int_equal(((const uint8_t *)tgt.l)[i], 0);
    free(ini.l);
    free(tgt.l);
}

static void each_struct_is_as_large_as_is_said(void **state)
{
    (void)state;
    assert_in_range(sizeof(struct login_ini), 90 << 10, 106 << 10);
    assert_in_range(sizeof(struct login_tgt), 48 << 10, 56 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_login_ends_with_the_same_on_both_sides),
        cmocka_unit_test(any_two_wishes_end_in_agreement),
        cmocka_unit_test(chap_succeeds_with_each_algorithm),
        cmocka_unit_test(challenges_are_fresh_in_each_login),
        cmocka_unit_test(failed_authentication_says_what_to_look_at),
        cmocka_unit_test(optional_authentication_does_without),
        cmocka_unit_test(long_texts_go_in_series_of_pdus),
        cmocka_unit_test(a_redirect_leads_to_the_address),
        cmocka_unit_test(a_second_connection_joins_with_the_tsih),
        cmocka_unit_test(nothing_stays_in_memory_after_the_end),
        cmocka_unit_test(each_struct_is_as_large_as_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
