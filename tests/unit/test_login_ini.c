/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's side of the login against scripted targets. CHAP is in test_login_ini_chap.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "login_rig.h"

#define ANSWERS                                                                                    \
    "HeaderDigest=None\nDataDigest=None\nMaxConnections=1\nInitialR2T=No\nImmediateData=Yes\n"     \
    "MaxRecvDataSegmentLength=65536\nMaxBurstLength=262144\nFirstBurstLength=65536\n"              \
    "DefaultTime2Wait=2\nDefaultTime2Retain=20\nMaxOutstandingR2T=1\nDataPDUInOrder=Yes\n"         \
    "DataSequenceInOrder=Yes\nErrorRecoveryLevel=0\nTaskReporting=RFC3720\niSCSIProtocolLevel=1\n"

static void setup(struct ini_rig *r)
{
    ini_rig_init(r, 1);
}

/* To the operational stage, the first request of which is taken. */
static void to_operational(struct ini_rig *r)
{
    setup(r);
    ini_rig_start(r);
    assert_int_equal(ini_rig_reply(r, true, "AuthMethod=None\nTargetPortalGroupTag=1\n"),
                     LOGIN_MORE);
    assert_int_equal(r->request.csg, ISCSI_STAGE_OPERATIONAL);
}

/* [I-LOG-01] */
static void the_first_request_says_who_and_where(void **state)
{
    struct ini_rig r;

    (void)state;
    setup(&r);
    r.opts.initiator_alias = "my host";
    ini_rig_start(&r);
    assert_int_equal(r.request.version_max, 0);
    assert_int_equal(r.request.version_min, 0);
    assert_int_equal(r.request.tsih, 0);
    assert_int_equal(r.request.isid[0] >> 6, 2);
    assert_int_equal(r.request.csg, ISCSI_STAGE_SECURITY);
    assert_int_equal(r.request.exp_stat_sn, 0);
    assert_string_equal(ini_rig_said(&r, "InitiatorName"), RIG_INITIATOR);
    assert_string_equal(ini_rig_said(&r, "InitiatorAlias"), "my host");
    assert_string_equal(ini_rig_said(&r, "TargetName"), RIG_TARGET);
    assert_string_equal(ini_rig_said(&r, "SessionType"), "Normal");
    ini_rig_free(&r);
    setup(&r);
    r.opts.discovery = true;
    r.opts.target_name = NULL;
    ini_rig_start(&r);
    assert_string_equal(ini_rig_said(&r, "SessionType"), "Discovery");
    assert_null(ini_rig_said(&r, "TargetName"));
    ini_rig_free(&r);
}

/* [I-LOG-02] [I-LOG-03] [I-LOG-05] [I-LOG-06] six exchanges */
static void the_header_stays_the_same_through_the_login(void **state)
{
    struct iscsi_login_request first;
    struct ini_rig r;

    (void)state;
    to_operational(&r);
    first = r.request;
    assert_int_equal(r.request.exp_stat_sn, 101);
    for (unsigned i = 0; i < 6; i++) {
        uint8_t bhs[ISCSI_BHS_SIZE];
        const uint8_t *text;
        size_t n;

        assert_false(login_ini_request(r.l, bhs, &text, &n)); /* one outstanding */
        assert_int_equal(ini_rig_reply(&r, false, i == 0 ? ANSWERS : ""), LOGIN_MORE);
        assert_int_equal(r.n, 0);
        assert_true(r.request.transit);
        assert_int_equal(r.request.nsg, ISCSI_STAGE_FULL_FEATURE);
        assert_int_equal(r.request.itt, first.itt);
        assert_int_equal(r.request.cid, first.cid);
        assert_int_equal(r.request.tsih, first.tsih);
        assert_int_equal(r.request.cmd_sn, first.cmd_sn);
        assert_memory_equal(r.request.isid, first.isid, 6);
        assert_int_equal(r.request.exp_stat_sn, 102 + i);
    }
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_DONE);
    assert_int_equal(r.l->cmd_sn, first.cmd_sn);
    assert_int_equal(r.l->exp_stat_sn, 108);
    assert_int_equal(r.l->tsih, 77);
    assert_int_equal(r.l->params.mrdsl_out, 65536);
    ini_rig_free(&r);
}

/* [I-LOG-05] */
static void a_target_that_never_ends_is_left(void **state)
{
    enum login_result result = LOGIN_MORE;
    struct ini_rig r;
    unsigned n = 0;

    (void)state;
    to_operational(&r);
    for (; result == LOGIN_MORE; n++)
        result = ini_rig_reply(&r, false, n == 0 ? ANSWERS : "");
    assert_in_range(n, 6, LOGIN_ROUNDS_MAX);
    assert_int_equal(result, LOGIN_FAILED);
    assert_non_null(strstr(r.l->sentence, "did not end the operational stage"));
    ini_rig_free(&r);
}

/* [I-LOG-04] [I-LOG-11] [B-01] */
static void illegal_responses_end_the_login(void **state)
{
    static const struct {
        struct iscsi_login_response change;
        uint8_t itt_flip;
        const char *sentence;
    } rows[] = {
        {{.transit = true, .csg = 1, .nsg = 1}, 0, "goes on to the operational stage"},
        {{.transit = true, .csg = 1, .nsg = 2}, 0, "goes on to the reserved stage"},
        {{.transit = true, .csg = 1, .nsg = 0}, 0, "goes on to the security stage"},
        {{.transit = true, .csg = 0, .nsg = 3}, 0, "answered in the security stage"},
        {{.transit = true, .csg = 2, .nsg = 3}, 0, "answered in the reserved stage"},
        {{.transit = true, .csg = 3, .nsg = 3}, 0, "answered in the full feature stage"},
        {{.transit = true, .more = true, .csg = 1, .nsg = 3}, 0, "middle of its text"},
        {{.transit = true, .csg = 1, .nsg = 3, .version_active = 1}, 0, "version 1"},
        {{.transit = true, .csg = 1, .nsg = 3}, 1, "another request"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct iscsi_login_response pdu = rows[i].change;
        struct ini_rig r;

        to_operational(&r);
        pdu.itt = r.request.itt ^ rows[i].itt_flip;
        pdu.tsih = 77;
        assert_int_equal(ini_rig_respond(&r, &pdu, ANSWERS), LOGIN_FAILED);
        if (!strstr(r.l->sentence, rows[i].sentence))
            fail_msg("%s", r.l->sentence);
        assert_false(ini_rig_next(&r));
        ini_rig_free(&r);
    }
}

/* [I-LOG-04] NSG 3 where 1 was asked; T where it was not */
static void a_stage_is_left_as_asked_only(void **state)
{
    struct iscsi_login_response pdu;
    struct ini_rig r;

    (void)state;
    setup(&r);
    ini_rig_start(&r);
    pdu = ini_rig_answer(&r);
    pdu.nsg = ISCSI_STAGE_FULL_FEATURE;
    assert_int_equal(ini_rig_respond(&r, &pdu, ""), LOGIN_FAILED);
    ini_rig_free(&r);
    setup(&r);
    ini_rig_chap(&r, false);
    ini_rig_start(&r);
    assert_false(r.request.transit);
    pdu = ini_rig_answer(&r);
    pdu.transit = true;
    pdu.nsg = ISCSI_STAGE_OPERATIONAL;
    assert_int_equal(ini_rig_respond(&r, &pdu, "AuthMethod=CHAP\n"), LOGIN_FAILED);
    assert_non_null(strstr(r.l->sentence, "not asked for"));
    ini_rig_free(&r);
}

/* [I-LOG-07] */
static void anything_but_a_login_response_ends_the_login(void **state)
{
    static const uint8_t opcodes[] = {
        ISCSI_NOP_IN, ISCSI_SCSI_RESPONSE, ISCSI_DATA_IN,       ISCSI_TEXT_RESPONSE,
        ISCSI_ASYNC,  ISCSI_REJECT,        ISCSI_LOGIN_REQUEST, 0x1c,
        0x3d};

    (void)state;
    for (size_t i = 0; i < sizeof(opcodes); i++) {
        uint8_t bhs[ISCSI_BHS_SIZE] = {opcodes[i]};
        struct ini_rig r;

        to_operational(&r);
        assert_int_equal(login_ini_response(r.l, bhs, NULL, 0), LOGIN_FAILED);
        assert_non_null(strstr(r.l->sentence, "does not belong in a login"));
        assert_false(r.l->retryable);
        ini_rig_free(&r);
    }
}

/* [I-LOG-08] [I-LOG-16] */
static void each_status_has_its_own_sentence(void **state)
{
    static const uint16_t statuses[] = {0x0200, 0x0201, 0x0202, 0x0203, 0x0204, 0x0205,
                                        0x0206, 0x0207, 0x0208, 0x0209, 0x020a, 0x020b,
                                        0x0300, 0x0301, 0x0302, 0x02ff, 0x03ff, 0x0700};
    enum { COUNT = sizeof(statuses) / sizeof(*statuses) };
    static char sentences[COUNT][LOGIN_SENTENCE_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        struct iscsi_login_response pdu = {
            .status = statuses[i], .stat_sn = 0xdeadbeef, .exp_cmd_sn = 1, .version_active = 9};
        struct ini_rig r;
        char code[8];

        to_operational(&r);
        assert_int_equal(ini_rig_respond(&r, &pdu, "not = text"), LOGIN_FAILED);
        assert_int_equal(r.l->status, statuses[i]);
        assert_int_equal(r.l->retryable, statuses[i] >> 8 == 3);
        assert_false(r.l->retry_md5);
        assert_int_equal(r.l->exp_stat_sn, 101); /* junk numbers are not taken */
        snprintf(code, sizeof(code), "%04x", statuses[i]);
        assert_non_null(strstr(r.l->sentence, code));
        memcpy(sentences[i], r.l->sentence, sizeof(sentences[i]));
        *strstr(sentences[i], code) = '\0';
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(sentences[i], sentences[k]);
        ini_rig_free(&r);
    }
}

/* [I-LOG-08] 0201 without credentials, with them, and with both directions */
static void failed_authentication_depends_on_what_was_given(void **state)
{
    const char *none = login_status_sentence(0x0201, false, false);
    const char *one = login_status_sentence(0x0201, true, false);
    const char *both = login_status_sentence(0x0201, true, true);

    (void)state;
    assert_string_not_equal(none, one);
    assert_string_not_equal(one, both);
    assert_string_not_equal(none, both);
}

/* [I-LOG-09] */
static void redirects_are_followed_where_they_lead(void **state)
{
    static const struct {
        const char *text, *address;
    } rows[] = {
        {"TargetAddress=10.0.0.1:3261\n", "10.0.0.1:3261"},
        {"TargetAddress=10.0.0.1\n", "10.0.0.1"},
        {"TargetAddress=[fe80::1]:3260\n", "[fe80::1]:3260"},
        {"TargetAddress=[fe80::1]\n", "[fe80::1]"},
        {"TargetAddress=nas.example.com:3260,1\n",
         "nas.example.com:3260"}, /* no tag belongs there */
        {"X-a=b\nTargetAddress=\nTargetAddress=second:1\n", "second:1"},
        {"", NULL},
        {"TargetAddress=\n", NULL},
        {"TargetAddress=:3260\n", NULL},
        {"TargetAddress=a b\n", NULL},
        {"TargetAddress=\x1b[2Jx\n", NULL},
        {"TargetAddress=no-nul", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (uint16_t status = 0x0101; status <= 0x0102; status++) {
            struct iscsi_login_response pdu = {.status = status};
            struct ini_rig r;
            enum login_result result;

            setup(&r);
            ini_rig_start(&r);
            result = ini_rig_respond(&r, &pdu, rows[i].text);
            assert_int_equal(result, rows[i].address ? LOGIN_REDIRECT : LOGIN_FAILED);
            if (rows[i].address) {
                assert_string_equal(r.l->address, rows[i].address);
                assert_int_equal(r.l->permanent, status == 0x0102);
            } else {
                assert_non_null(strstr(r.l->sentence, "not where to"));
                assert_string_equal(r.l->address, "");
            }
            assert_false(ini_rig_next(&r));
            ini_rig_free(&r);
        }
}

/* [I-LOG-10] */
static void another_portal_group_is_refused(void **state)
{
    static const struct {
        int expected;
        const char *text;
        enum login_result result;
    } rows[] = {
        {-1, "TargetPortalGroupTag=65535\n", LOGIN_MORE},
        {0, "TargetPortalGroupTag=0\n", LOGIN_MORE},
        {1, "TargetPortalGroupTag=0x1\n", LOGIN_MORE},
        {1, "", LOGIN_MORE},
        {1, "TargetPortalGroupTag=2\n", LOGIN_FAILED},
        {0, "TargetPortalGroupTag=1\n", LOGIN_FAILED},
        {-1, "TargetPortalGroupTag=65536\n", LOGIN_FAILED},
        {-1, "TargetPortalGroupTag=x\n", LOGIN_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct ini_rig r;

        setup(&r);
        r.opts.portal_group_tag = rows[i].expected;
        ini_rig_start(&r);
        assert_int_equal(ini_rig_reply(&r, true, rows[i].text), rows[i].result);
        if (rows[i].result == LOGIN_FAILED)
            assert_true(r.l->sentence[0]);
        ini_rig_free(&r);
    }
}

/* [I-LOG-12] */
static void a_session_needs_a_handle(void **state)
{
    static const struct {
        uint16_t ours, theirs;
        enum login_result result;
    } rows[] = {{0, 0, LOGIN_FAILED}, {0, 9, LOGIN_DONE}, {9, 9, LOGIN_DONE}, {9, 8, LOGIN_FAILED}};
    struct iscsi_params session;

    (void)state;
    iscsi_params_default(&session);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct iscsi_login_response pdu;
        struct ini_rig r;

        setup(&r);
        r.opts.tsih = rows[i].ours;
        r.opts.session = rows[i].ours ? &session : NULL;
        ini_rig_start(&r);
        assert_int_equal(r.request.tsih, rows[i].ours);
        assert_int_equal(ini_rig_said(&r, "SessionType") == NULL, rows[i].ours != 0);
        assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_MORE);
        pdu = ini_rig_answer(&r);
        pdu.tsih = rows[i].theirs;
        assert_int_equal(
            ini_rig_respond(&r, &pdu,
                            rows[i].ours ? "HeaderDigest=None\nDataDigest=None\n" : ANSWERS),
            rows[i].result);
        ini_rig_free(&r);
    }
}

/* [I-LOG-13] [B-20] */
static void long_texts_go_out_in_pieces_of_8192_bytes(void **state)
{
    enum { KEYS = 20 << 10 };
    static char keys[KEYS], all[KEYS + 4096];
    struct text_writer w;
    struct ini_rig r;
    size_t n = 0;
    unsigned pieces = 0;

    (void)state;
    text_writer_init(&w, keys, sizeof(keys));
    for (unsigned i = 0; !w.overflow; i++) {
        char key[40];

        snprintf(key, sizeof(key), "X-com.example.k%u", i);
        text_put(&w, key, "a value");
    }
    setup(&r);
    r.opts.extra_keys = keys;
    r.opts.extra_keys_length = w.length;
    r.opts.wishes.params.mrdsl_in = 1 << 20;
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_MORE);
    for (;; pieces++) {
        memcpy(all + n, r.text, r.n);
        n += r.n;
        if (!r.request.more)
            break;
        assert_int_equal(r.n, ISCSI_LOGIN_MRDSL);
        assert_false(r.request.transit);
        assert_int_equal(ini_rig_reply(&r, false, ""), LOGIN_MORE);
    }
    assert_int_equal(pieces, 2);
    assert_true(r.request.transit);
    assert_true(n > w.length);
    assert_memory_equal(all + n - w.length, keys, w.length);
    ini_rig_free(&r);
    setup(&r); /* a target that speaks in the middle of it */
    r.opts.extra_keys = keys;
    r.opts.extra_keys_length = w.length;
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&r, false, "MaxConnections=1\n"), LOGIN_FAILED);
    ini_rig_free(&r);
}

/* [B-20] a key name, a value and the NUL, cut over three PDUs; each is answered by an empty one */
static void the_targets_series_is_put_together(void **state)
{
    struct iscsi_login_response pdu;
    struct ini_rig r;

    (void)state;
    to_operational(&r);
    pdu = ini_rig_answer(&r);
    pdu.transit = false;
    pdu.more = true;
    assert_int_equal(ini_rig_respond(&r, &pdu, "HeaderDigest=None\nDataDigest=None\nMaxConne"),
                     LOGIN_MORE);
    assert_true(ini_rig_next(&r));
    assert_int_equal(r.n, 0);
    assert_int_equal(ini_rig_respond(&r, &pdu, "ctions=1\nInitialR2T=N"), LOGIN_MORE);
    assert_true(ini_rig_next(&r));
    assert_int_equal(ini_rig_respond(&r, &pdu, "o"), LOGIN_MORE);
    assert_true(ini_rig_next(&r));
    assert_int_equal(
        ini_rig_reply(&r, true,
                      "\nImmediateData=Yes\nMaxBurstLength=512\nFirstBurstLength=512\n"
                      "DefaultTime2Wait=2\nDefaultTime2Retain=20\nMaxOutstandingR2T=1\n"
                      "ErrorRecoveryLevel=0\n"),
        LOGIN_DONE);
    assert_false(r.l->params.initial_r2t);
    assert_int_equal(r.l->params.max_burst_length, 512);
    ini_rig_free(&r);
}

/* [B-20] */
static void endless_text_is_bounded(void **state)
{
    static char script[8001];
    struct iscsi_login_response pdu;
    struct ini_rig r;
    unsigned n = 0;

    (void)state;
    memset(script, 'A', sizeof(script) - 1);
    to_operational(&r);
    pdu = ini_rig_answer(&r);
    pdu.transit = false;
    pdu.more = true;
    while (ini_rig_respond(&r, &pdu, script) == LOGIN_MORE) {
        assert_true(ini_rig_next(&r));
        n++;
    }
    assert_int_equal(n, LOGIN_INI_IN_MAX / 8000);
    ini_rig_free(&r);
}

/* [I-LOG-14] */
static void what_the_target_proposes_is_answered(void **state)
{
    struct iscsi_params session;
    struct ini_rig r;

    (void)state;
    to_operational(&r);
    assert_int_equal(ini_rig_reply(&r, false, ANSWERS "OFMarker=Yes\nX-com.example.a=1\n"),
                     LOGIN_MORE);
    assert_string_equal(ini_rig_said(&r, "OFMarker"), "No");
    assert_string_equal(ini_rig_said(&r, "X-com.example.a"), "NotUnderstood");
    assert_true(r.request.transit);
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_DONE);
    ini_rig_free(&r);
    to_operational(&r); /* [T-LOG-16] is for the target to keep */
    assert_int_equal(ini_rig_reply(&r, true, ANSWERS "OFMarker=Yes\n"), LOGIN_FAILED);
    ini_rig_free(&r);
    to_operational(&r); /* a vendor's declaration in the last response does no harm */
    assert_int_equal(ini_rig_reply(&r, true, ANSWERS "X-com.example.a=1\n"), LOGIN_DONE);
    ini_rig_free(&r);
    iscsi_params_default(&session); /* a leading-only key on a second connection is wrong */
    setup(&r);
    r.opts.tsih = 9;
    r.opts.session = &session;
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&r, false, "MaxBurstLength=512\n"), LOGIN_FAILED);
    ini_rig_free(&r);
}

/* A target that decides by itself in a discovery session, where we offer little. */
static void a_proposal_of_the_target_is_settled_by_the_answer(void **state)
{
    struct ini_rig r;

    (void)state;
    setup(&r);
    r.opts.discovery = true;
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_MORE);
    assert_int_equal(ini_rig_reply(&r, false,
                                   "HeaderDigest=CRC32C\nDataDigest=None\nDefaultTime2Wait=5\n"
                                   "MaxBurstLength=512\n"),
                     LOGIN_MORE);
    assert_string_equal(ini_rig_said(&r, "DefaultTime2Wait"), "5");
    assert_string_equal(ini_rig_said(&r, "MaxBurstLength"), "Irrelevant");
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_DONE);
    assert_true(r.l->params.header_digest);
    assert_int_equal(r.l->params.default_time2wait, 5);
    ini_rig_free(&r);
}

/* [B-21] [B-23] [B-24] [B-27] */
static void a_faulty_negotiation_ends_the_login(void **state)
{
    static const char *const answers[] = {"MaxBurstLength=NotUnderstood\n",
                                          "MaxBurstLength=16777215\n",
                                          "DataDigest=None\nDataDigest=None\n",
                                          "CHAP_A=5\n",
                                          "AuthMethod=None\n",
                                          "SendTargets=All\n",
                                          "InitiatorAlias=x\n",
                                          "=x\n",
                                          "K\n",
                                          "A=b\n\n",
                                          "MaxConnections=1"};

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        struct ini_rig r;

        to_operational(&r);
        if (ini_rig_reply(&r, false, answers[i]) != LOGIN_FAILED)
            fail_msg("%s", answers[i]);
        assert_true(r.l->sentence[0]);
        ini_rig_free(&r);
    }
}

/* Seen in the field, and harmless. */
static void declarations_out_of_place_are_let_pass(void **state)
{
    struct ini_rig r;

    (void)state;
    setup(&r);
    ini_rig_start(&r);
    assert_int_equal(ini_rig_reply(&r, true,
                                   "TargetName=" RIG_TARGET "\nInitiatorName=" RIG_INITIATOR
                                   "\nTargetAlias=A \x1b[2J thing\nTargetAddress=a:1,1\n"),
                     LOGIN_MORE);
    assert_string_equal(r.l->target_alias, ""); /* control characters do not get to a terminal */
    ini_rig_free(&r);
}

static void a_missing_answer_ends_the_login(void **state)
{
    struct ini_rig r;

    (void)state;
    to_operational(&r);
    assert_int_equal(ini_rig_reply(&r, true, ""), LOGIN_FAILED);
    assert_non_null(strstr(r.l->sentence, "did not answer HeaderDigest"));
    ini_rig_free(&r);
}

static void a_target_that_wants_chap_is_told_from_a_refusal(void **state)
{
    struct ini_rig r;

    (void)state;
    setup(&r);
    ini_rig_start(&r);
    assert_string_equal(ini_rig_said(&r, "AuthMethod"), "None");
    assert_int_equal(ini_rig_reply(&r, false, "AuthMethod=CHAP\n"), LOGIN_FAILED);
    assert_non_null(strstr(r.l->sentence, "give a CHAP user name and secret"));
    ini_rig_free(&r);
}

/* The connection ends. */
static void a_closed_connection_is_explained_by_how_far_it_came(void **state)
{
    struct ini_rig r;

    (void)state;
    setup(&r);
    ini_rig_start(&r);
    login_ini_closed(r.l);
    assert_true(r.l->retryable);
    assert_non_null(strstr(r.l->sentence, "without an answer"));
    ini_rig_free(&r);
    to_operational(&r);
    login_ini_closed(r.l);
    assert_true(r.l->retryable && !r.l->retry_md5);
    assert_non_null(strstr(r.l->sentence, "operational stage"));
    ini_rig_free(&r);
}

/* [B-29] */
static void names_are_checked_and_ours_is_lowered(void **state)
{
    static const char *const good[] = {"iqn.2001-04.com.example", "iqn.2001-4.com.example:a_B",
                                       "eui.02004567A425678D", "naa.52004567BA64678D",
                                       "iqn.2001-04.com.example:\xc3\xa4"};
    static const char *const bad[] = {"",        "iqn.",    "disk",        "iqn2001-04.com",
                                      "IQN.a:b", "iqn.a b", "iqn.a\x1b[m", "iqn.a\nb",
                                      "iqn.a/b", "iqn.a=b"};
    char longest[300] = "iqn.", name[ISCSI_NAME_MAX + 1];
    struct lp_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_int_equal(iscsi_name_check(good[i], "target name", &err), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (iscsi_name_check(bad[i], "target name", &err) == 0)
            fail_msg("\"%s\"", bad[i]);
        assert_non_null(strstr(err.msg, "target name"));
        assert_true(text_printable(err.msg));
    }
    memset(longest + 4, 'a', 223 - 4);
    assert_int_equal(iscsi_name_check(longest, "target name", &err), 0);
    assert_int_equal(iscsi_name_normalise(longest, name, "target name", &err), 0);
    longest[223] = 'a';
    assert_int_equal(iscsi_name_check(longest, "target name", &err), -1);
    assert_int_equal(iscsi_name_normalise(longest, name, "target name", &err), -1);
    assert_int_equal(
        iscsi_name_normalise("IQN.2001-04.Com.Example:H", name, "initiator name", &err), 0);
    assert_string_equal(name, "iqn.2001-04.com.example:h");
}

static void contradicting_options_are_refused(void **state)
{
    struct iscsi_params session;
    struct lp_error err = {0};
    struct ini_rig r;

    (void)state;
    iscsi_params_default(&session);
    setup(&r);
    r.opts.target_name = NULL;
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    r.opts.discovery = true;
    assert_int_equal(login_ini_check(&r.opts, false, &err), 0);
    r.opts.tsih = 1;
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    r.opts.session = &session;
    assert_int_equal(login_ini_check(&r.opts, false, &err), 0);
    r.opts.isid[0] = 0xc0;
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    r.opts.isid[0] = 0x40;
    r.opts.itt = ISCSI_TAG_NONE;
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    r.opts.itt = 0;
    r.opts.initiator_alias = "a\nb";
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    r.opts.initiator_alias = NULL;
    r.opts.extra_keys_length = LOGIN_OUT_MAX;
    assert_int_equal(login_ini_check(&r.opts, false, &err), -1);
    free(r.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_request_says_who_and_where),
        cmocka_unit_test(the_header_stays_the_same_through_the_login),
        cmocka_unit_test(a_target_that_never_ends_is_left),
        cmocka_unit_test(illegal_responses_end_the_login),
        cmocka_unit_test(a_stage_is_left_as_asked_only),
        cmocka_unit_test(anything_but_a_login_response_ends_the_login),
        cmocka_unit_test(each_status_has_its_own_sentence),
        cmocka_unit_test(failed_authentication_depends_on_what_was_given),
        cmocka_unit_test(redirects_are_followed_where_they_lead),
        cmocka_unit_test(another_portal_group_is_refused),
        cmocka_unit_test(a_session_needs_a_handle),
        cmocka_unit_test(long_texts_go_out_in_pieces_of_8192_bytes),
        cmocka_unit_test(the_targets_series_is_put_together),
        cmocka_unit_test(endless_text_is_bounded),
        cmocka_unit_test(what_the_target_proposes_is_answered),
        cmocka_unit_test(a_proposal_of_the_target_is_settled_by_the_answer),
        cmocka_unit_test(a_faulty_negotiation_ends_the_login),
        cmocka_unit_test(declarations_out_of_place_are_let_pass),
        cmocka_unit_test(a_missing_answer_ends_the_login),
        cmocka_unit_test(a_target_that_wants_chap_is_told_from_a_refusal),
        cmocka_unit_test(a_closed_connection_is_explained_by_how_far_it_came),
        cmocka_unit_test(names_are_checked_and_ours_is_lowered),
        cmocka_unit_test(contradicting_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
