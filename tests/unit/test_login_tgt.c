/* SPDX-License-Identifier: BSD-2-Clause */
/* The target's side of the login against scripted initiators. CHAP is in test_login_tgt_chap.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "login_rig.h"

#define NAMES "InitiatorName=" RIG_INITIATOR "\nTargetName=" RIG_TARGET "\nSessionType=Normal\n"

static const enum iscsi_stage SEC = ISCSI_STAGE_SECURITY, OP = ISCSI_STAGE_OPERATIONAL,
                              FFP = ISCSI_STAGE_FULL_FEATURE;

static void setup(struct tgt_rig *r)
{
    tgt_rig_init(r, 1);
    tgt_rig_start(r);
}

/* [T-LOG-01] */
static void the_first_pdu_must_be_a_login_request(void **state)
{
    static const uint8_t opcodes[] = {ISCSI_NOP_OUT,
                                      ISCSI_SCSI_COMMAND,
                                      ISCSI_TEXT_REQUEST,
                                      ISCSI_LOGIN_RESPONSE,
                                      0x16 /* a TLS hello */,
                                      0x3f,
                                      0x1c};

    (void)state;
    for (size_t i = 0; i < sizeof(opcodes); i++) {
        uint8_t bhs[ISCSI_BHS_SIZE];
        struct tgt_rig r;

        setup(&r);
        memset(bhs, 0xa5, sizeof(bhs));
        bhs[0] = opcodes[i];
        assert_int_equal(login_tgt_request(r.l, bhs, "x", 1), LOGIN_CLOSE);
        assert_true(r.l->sentence[0]);
        assert_int_equal(r.lookups, 0);
        tgt_rig_free(&r);
    }
}

/* [T-LOG-02] */
static void a_later_pdu_of_another_kind_is_refused(void **state)
{
    uint8_t bhs[ISCSI_BHS_SIZE] = {ISCSI_SCSI_COMMAND};
    const uint8_t *answer, *text;
    struct iscsi_login_response pdu;
    struct tgt_rig r;
    size_t n;

    (void)state;
    setup(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, false, NAMES "AuthMethod=None\n"), LOGIN_MORE);
    bhs[19] = 9;
    assert_int_equal(login_tgt_request(r.l, bhs, NULL, 0), LOGIN_FAILED);
    login_tgt_response(r.l, &answer, &text, &n);
    iscsi_login_response_unpack(answer, &pdu);
    assert_int_equal(pdu.status, ISCSI_LOGIN_INVALID_DURING_LOGIN);
    assert_int_equal(pdu.itt, 9);
    assert_int_equal(login_tgt_request(r.l, bhs, NULL, 0), LOGIN_CLOSE); /* and it is over */
    tgt_rig_free(&r);
}

/* One request that is refused with a status. */
static void expect_refusal(const char *script, enum iscsi_stage stage, uint16_t status)
{
    struct tgt_rig r;

    setup(&r);
    if (tgt_rig_ask(&r, stage, true, script) != LOGIN_FAILED || r.response.status != status)
        fail_msg("%s: status %04x", script, r.response.status);
    assert_int_equal(r.l->status, status);
    assert_false(r.response.transit);
    assert_int_equal(r.response.tsih, 0);
    assert_int_equal(r.begins, 0);
    tgt_rig_free(&r);
}

/* [T-LOG-03] [T-LOG-19] */
static void the_names_are_needed(void **state)
{
    (void)state;
    expect_refusal("TargetName=" RIG_TARGET "\n", OP, 0x0207);
    expect_refusal("InitiatorName=" RIG_INITIATOR "\n", OP, 0x0207);
    expect_refusal("InitiatorName=" RIG_INITIATOR "\nSessionType=Normal\n", SEC, 0x0207);
    expect_refusal("", OP, 0x0207);
    expect_refusal("InitiatorName=host\nTargetName=" RIG_TARGET "\n", OP, 0x0200);
    expect_refusal("InitiatorName=iqn.a:\x1b[2J\nTargetName=" RIG_TARGET "\n", OP, 0x0200);
    expect_refusal("InitiatorName=" RIG_INITIATOR "\nTargetName=disk\n", OP, 0x0200);
    expect_refusal(NAMES "SessionType=Discovery\n", OP, 0x0200);
    expect_refusal("InitiatorName=" RIG_INITIATOR "\nSessionType=Odd\n", OP, 0x0200);
}

/* [B-12] [B-27] [T-LOG-14] */
static void faulty_text_is_refused(void **state)
{
    (void)state;
    expect_refusal(NAMES "MaxBurstLength=512\n", SEC, 0x0200);
    expect_refusal(NAMES "HeaderDigest=None\n", SEC, 0x0200);
    expect_refusal(NAMES "AuthMethod=None\n", OP, 0x0200);
    expect_refusal(NAMES "CHAP_A=5\n", OP, 0x0200);
    expect_refusal(NAMES "SendTargets=All\n", OP, 0x0200);
    expect_refusal(NAMES "TargetAlias=x\n", OP, 0x0200);
    expect_refusal(NAMES "MaxBurstLength=512\nMaxBurstLength=512\n", OP, 0x0200);
    expect_refusal(NAMES "InitiatorName=" RIG_INITIATOR "\n", OP, 0x0200);
    expect_refusal(NAMES "MaxBurstLength=Reject\n", OP, 0x0200);
    expect_refusal(NAMES "MaxRecvDataSegmentLength=1\n", OP, 0x0200);
    expect_refusal("InitiatorName=" RIG_INITIATOR, OP, 0x0200);
    expect_refusal(NAMES "K\n", OP, 0x0200);
    expect_refusal(NAMES "=v\n", OP, 0x0200);
    expect_refusal(NAMES "\n", OP, 0x0200);
}

/* [T-LOG-14] over two requests */
static void a_key_is_repeated_over_turns_as_well(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r);
    assert_int_equal(tgt_rig_ask(&r, OP, false, NAMES "MaxBurstLength=512\n"), LOGIN_MORE);
    assert_int_equal(tgt_rig_ask(&r, OP, true, "MaxBurstLength=512\n"), LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0200);
    tgt_rig_free(&r);
}

/* [T-LOG-04] [T-LOG-07] [T-LOG-21] what the owner says is what the initiator hears */
static void refusals_of_the_owner_are_passed_on(void **state)
{
    static const uint16_t statuses[] = {0x0202, 0x0203, 0x0204, 0x0206, 0x0208,
                                        0x0209, 0x020a, 0x0300, 0x0301, 0x0302};

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        for (int where = 0; where < 3; where++) {
            struct tgt_rig r;

            setup(&r);
            r.lookup = where == 0 ? statuses[i] : 0;
            r.check = where == 1 ? statuses[i] : 0;
            r.begin = where == 2 ? statuses[i] : 0;
            assert_int_equal(tgt_rig_ask(&r, OP, true, NAMES), LOGIN_FAILED);
            assert_int_equal(r.response.status, statuses[i]);
            assert_int_equal(r.checks, where > 0);
            assert_int_equal(r.begins, where == 2);
            assert_int_equal(r.n, 0);
            tgt_rig_free(&r);
        }
}

/* [T-LOG-21] */
static void a_login_can_be_refused_from_outside(void **state)
{
    uint8_t bhs[ISCSI_BHS_SIZE];
    const uint8_t *answer, *text;
    struct iscsi_login_response pdu;
    struct tgt_rig r;
    size_t n;

    (void)state;
    setup(&r);
    iscsi_login_request_pack(bhs, &r.request);
    assert_int_equal(login_tgt_refuse(r.l, bhs, ISCSI_LOGIN_UNAVAILABLE, "stopping"), LOGIN_FAILED);
    login_tgt_response(r.l, &answer, &text, &n);
    iscsi_login_response_unpack(answer, &pdu);
    assert_int_equal(pdu.status, 0x0301);
    assert_int_equal(pdu.itt, r.request.itt);
    assert_int_equal(login_tgt_refuse(r.l, bhs, ISCSI_LOGIN_UNAVAILABLE, "stopping"), LOGIN_CLOSE);
    tgt_rig_free(&r);
}

/* [T-LOG-05] */
static void another_version_is_refused_with_ours(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r);
    r.request.version_min = r.request.version_max = 1;
    assert_int_equal(tgt_rig_ask(&r, OP, true, NAMES), LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0205);
    assert_int_equal(r.response.version_active, 0);
    tgt_rig_free(&r);
    setup(&r);
    r.request.version_max = 1; /* 0 to 1 includes ours */
    assert_int_equal(tgt_rig_ask(&r, OP, true, NAMES), LOGIN_DONE);
    tgt_rig_free(&r);
}

/* [T-LOG-08] [T-LOG-11] three exchanges, at three places of the number circle */
static void the_handle_comes_last_and_the_numbers_count(void **state)
{
    static const uint32_t cmd_sns[] = {0, 123, 0xffffffff};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct tgt_rig r;

        tgt_rig_init(&r, 1);
        r.opts.stat_sn = 0xffffffff;
        r.request.cmd_sn = cmd_sns[i];
        tgt_rig_start(&r);
        assert_int_equal(tgt_rig_ask(&r, SEC, true, NAMES "AuthMethod=None\n"), LOGIN_MORE);
        assert_int_equal(r.response.tsih, 0);
        assert_int_equal(r.response.stat_sn, 0xffffffff);
        assert_int_equal(tgt_rig_ask(&r, OP, false, "HeaderDigest=None\n"), LOGIN_MORE);
        assert_int_equal(r.response.tsih, 0);
        assert_int_equal(r.response.stat_sn, 0);
        assert_int_equal(tgt_rig_ask(&r, OP, true, ""), LOGIN_DONE);
        assert_int_equal(r.response.tsih, 55);
        assert_int_equal(r.response.stat_sn, 1);
        assert_int_equal(r.response.exp_cmd_sn, cmd_sns[i]);
        assert_int_equal(r.response.max_cmd_sn, cmd_sns[i] + 15);
        assert_int_equal(r.l->cmd_sn, cmd_sns[i]);
        assert_int_equal(r.l->stat_sn, 2);
        tgt_rig_free(&r);
    }
}

/* [T-LOG-09] [B-01] */
static void only_legal_stages_and_steps_are_taken(void **state)
{
    static const struct {
        uint8_t csg, nsg;
        bool transit, more;
        enum login_result result;
    } rows[] = {
        {0, 0, false, false, LOGIN_MORE},   {1, 0, false, false, LOGIN_MORE},
        {2, 0, false, false, LOGIN_FAILED}, {3, 0, false, false, LOGIN_FAILED},
        {0, 1, true, false, LOGIN_MORE},    {0, 3, true, false, LOGIN_DONE},
        {1, 3, true, false, LOGIN_DONE},    {0, 0, true, false, LOGIN_FAILED},
        {0, 2, true, false, LOGIN_FAILED},  {1, 1, true, false, LOGIN_FAILED},
        {1, 2, true, false, LOGIN_FAILED},  {1, 0, true, false, LOGIN_FAILED},
        {1, 3, true, true, LOGIN_FAILED},   {0, 2, false, false, LOGIN_MORE}, /* NSG without T */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tgt_rig r;

        setup(&r);
        r.request.csg = rows[i].csg;
        r.request.nsg = rows[i].nsg;
        r.request.transit = rows[i].transit;
        r.request.more = rows[i].more;
        assert_int_equal(tgt_rig_send(&r, NAMES), rows[i].result);
        if (rows[i].result == LOGIN_FAILED)
            assert_int_equal(r.response.status, 0x0200);
        else
            assert_int_equal(r.response.transit, rows[i].transit);
        if (r.response.transit)
            assert_int_equal(r.response.nsg, rows[i].nsg);
        tgt_rig_free(&r);
    }
}

/* [T-LOG-09] */
static void the_security_stage_does_not_come_back(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, NAMES), LOGIN_MORE);
    assert_int_equal(tgt_rig_ask(&r, SEC, true, ""), LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0200);
    tgt_rig_free(&r);
}

/* [T-LOG-10] */
static void the_portal_group_tag_comes_first(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r);
    r.policy.portal_group_tag = 0;
    r.request.more = true;
    assert_int_equal(tgt_rig_ask(&r, OP, false, "InitiatorName=" RIG_INITIATOR "\nTargetNa"),
                     LOGIN_MORE);
    assert_int_equal(r.n, 0);
    assert_int_equal(r.lookups, 0);
    r.request.more = false;
    assert_int_equal(tgt_rig_ask(&r, OP, false, "me=" RIG_TARGET "\n"), LOGIN_MORE);
    assert_string_equal(tgt_rig_said(&r, "TargetPortalGroupTag"), "0");
    assert_string_equal(r.l->target_name, RIG_TARGET);
    assert_int_equal(tgt_rig_ask(&r, OP, true, ""), LOGIN_DONE);
    assert_null(tgt_rig_said(&r, "TargetPortalGroupTag"));
    assert_int_equal(r.lookups, 1);
    tgt_rig_free(&r);
}

/* [T-LOG-13] */
static void what_identifies_a_login_does_not_change(void **state)
{
    (void)state;
    for (unsigned field = 0; field < 7; field++) {
        struct tgt_rig r;

        setup(&r);
        assert_int_equal(tgt_rig_ask(&r, OP, false, NAMES), LOGIN_MORE);
        r.request.isid[5] ^= field == 0;
        r.request.tsih ^= field == 1;
        r.request.cid ^= field == 2;
        r.request.itt ^= field == 3;
        r.request.version_max ^= field == 4;
        r.request.version_min ^= field == 5;
        assert_int_equal(tgt_rig_ask(&r, OP, true, ""), field < 6 ? LOGIN_FAILED : LOGIN_DONE);
        assert_int_equal(r.response.status, field < 6 ? 0x0200 : 0);
        tgt_rig_free(&r);
    }
}

/* Names do not change either. */
static void names_after_the_first_turn_change_nothing(void **state)
{
    static const char *const changes[] = {"TargetName=iqn.2001-04.com.example:other\n",
                                          "InitiatorName=iqn.2001-04.com.example:other\n",
                                          "SessionType=Discovery\n"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tgt_rig r;

        setup(&r);
        assert_int_equal(tgt_rig_ask(&r, OP, false,
                                     "InitiatorName=" RIG_INITIATOR "\nTargetName=" RIG_TARGET
                                     "\n"),
                         LOGIN_MORE);
        assert_int_equal(tgt_rig_ask(&r, OP, true, changes[i]), LOGIN_FAILED);
        assert_int_equal(r.response.status, 0x0200);
        tgt_rig_free(&r);
    }
}

/* [T-LOG-16] [I-LOG-14] a digest that the target cannot do without, and no T with it */
static void what_wants_an_answer_does_not_end_the_stage(void **state)
{
    struct tgt_rig r;

    (void)state;
    tgt_rig_init(&r, 1);
    r.opts.wishes.data_digest = ISCSI_DIGEST_REQUIRE;
    tgt_rig_start(&r);
    assert_int_equal(tgt_rig_ask(&r, OP, true, NAMES), LOGIN_MORE);
    assert_string_equal(tgt_rig_said(&r, "DataDigest"), "CRC32C");
    assert_false(r.response.transit);
    assert_int_equal(tgt_rig_ask(&r, OP, true, "DataDigest=CRC32C\n"), LOGIN_DONE);
    assert_true(r.l->params.data_digest);
    tgt_rig_free(&r);
}

/* [T-LOG-15] absent keys have their defaults */
static void absent_keys_have_their_defaults(void **state)
{
    struct iscsi_params want;
    struct tgt_rig r;

    (void)state;
    iscsi_params_default(&want);
    setup(&r);
    assert_int_equal(tgt_rig_ask(&r, OP, true, NAMES), LOGIN_DONE);
    want.mrdsl_in = r.opts.wishes.params.mrdsl_in;
    assert_memory_equal(&r.l->params, &want, sizeof(want));
    assert_string_equal(tgt_rig_said(&r, "MaxRecvDataSegmentLength"), "262144");
    tgt_rig_free(&r);
    setup(&r); /* straight from the security stage: nothing could be declared */
    r.request.csg = SEC;
    r.request.nsg = FFP;
    r.request.transit = true;
    assert_int_equal(tgt_rig_send(&r, NAMES "AuthMethod=None\n"), LOGIN_DONE);
    want.mrdsl_in = 8192;
    assert_memory_equal(&r.l->params, &want, sizeof(want));
    tgt_rig_free(&r);
}

/* [B-20] [T-LOG-17] */
static void eight_kilobytes_of_text_are_taken(void **state)
{
    static char script[9000];
    struct tgt_rig r;
    size_t n = 0;

    (void)state;
    strcpy(script, NAMES);
    for (unsigned i = 0; (n = strlen(script)) < 8150; i++)
        snprintf(script + n, sizeof(script) - n, "X-com.example.key%03u=%s\n", i, "value");
    setup(&r);
    assert_int_equal(tgt_rig_ask(&r, OP, true, script), LOGIN_MORE);
    assert_true(r.response.more); /* the answers are longer than one PDU */
    assert_int_equal(r.n, 8192);
    assert_string_equal(tgt_rig_said(&r, "X-com.example.key000"), "NotUnderstood");
    assert_int_equal(tgt_rig_ask(&r, OP, true, ""), LOGIN_DONE);
    assert_false(r.response.more);
    tgt_rig_free(&r);
    setup(&r); /* an initiator that speaks in the middle of them */
    assert_int_equal(tgt_rig_ask(&r, OP, true, script), LOGIN_MORE);
    assert_int_equal(tgt_rig_ask(&r, OP, true, "OFMarker=No\n"), LOGIN_FAILED);
    tgt_rig_free(&r);
}

/* [B-20] [T-LOG-18] */
static void endless_text_is_bounded(void **state)
{
    static char script[1001];
    struct tgt_rig r;
    unsigned n = 0;

    (void)state;
    memset(script, 'A', 1000);
    setup(&r);
    r.request.more = true;
    for (; tgt_rig_ask(&r, OP, false, script) == LOGIN_MORE; n++)
        assert_int_equal(r.n, 0);
    assert_int_equal(n, LOGIN_TGT_IN_MAX / 1000);
    assert_int_equal(r.response.status, ISCSI_LOGIN_OUT_OF_RESOURCES);
    tgt_rig_free(&r);
}

/* The shortest keys have the longest answers. */
static void more_answers_than_memory_are_refused(void **state)
{
    static char script[15001];
    struct tgt_rig r;

    (void)state;
    strcpy(script, NAMES);
    while (strlen(script) < 15000 - 3)
        strcat(script, "a=\n");
    setup(&r);
    r.request.more = true;
    assert_int_equal(tgt_rig_ask(&r, OP, false, script), LOGIN_MORE);
    r.request.more = false;
    assert_int_equal(tgt_rig_ask(&r, OP, false, ""), LOGIN_FAILED);
    assert_int_equal(r.response.status, ISCSI_LOGIN_OUT_OF_RESOURCES);
    tgt_rig_free(&r);
}

/* [T-LOG-18] */
static void a_login_without_an_end_is_ended(void **state)
{
    struct tgt_rig r;
    unsigned n = 1;

    (void)state;
    setup(&r);
    assert_int_equal(tgt_rig_ask(&r, OP, false, NAMES), LOGIN_MORE);
    while (tgt_rig_ask(&r, OP, false, "") == LOGIN_MORE)
        n++;
    assert_int_equal(n, LOGIN_ROUNDS_MAX);
    assert_int_equal(r.response.status, 0x0200);
    tgt_rig_free(&r);
}

/* [T-LOG-20] */
static void a_redirect_says_where_to(void **state)
{
    struct tgt_rig r;

    (void)state;
    for (uint16_t status = 0x0101; status <= 0x0102; status++) {
        setup(&r);
        r.lookup = status;
        r.policy.address = "10.0.0.2:3260";
        assert_int_equal(tgt_rig_ask(&r, SEC, true, NAMES), LOGIN_FAILED);
        assert_int_equal(r.response.status, status);
        assert_string_equal(tgt_rig_said(&r, "TargetAddress"), "10.0.0.2:3260");
        assert_int_equal(r.checks, 0);
        tgt_rig_free(&r);
    }
}

/* [T-DISC-05] [B-26] [T-DISC-06] the name is optional there */
static void a_discovery_session_logs_in(void **state)
{
    struct tgt_rig r;

    (void)state;
    for (int named = 0; named < 2; named++) {
        setup(&r);
        r.policy.target_alias = "not told in discovery";
        assert_int_equal(tgt_rig_ask(&r, OP, true,
                                     named ? "InitiatorName=" RIG_INITIATOR
                                             "\nSessionType=Discovery\nMaxBurstLength=512\n"
                                             "TargetName=" RIG_TARGET "\n"
                                           : "MaxBurstLength=512\nInitiatorName=" RIG_INITIATOR
                                             "\nSessionType=Discovery\n"),
                         LOGIN_DONE);
        assert_string_equal(tgt_rig_said(&r, "MaxBurstLength"), "Irrelevant");
        assert_string_equal(tgt_rig_said(&r, "TargetPortalGroupTag"), "1");
        assert_null(tgt_rig_said(&r, "TargetAlias"));
        assert_true(r.l->discovery && r.l->params.discovery);
        assert_string_equal(r.l->target_name, named ? RIG_TARGET : "");
        tgt_rig_free(&r);
    }
}

/* [T-LOG-06] a connection joins: the session's numbers and parameters hold */
static void a_connection_that_joins_takes_over_its_session(void **state)
{
    struct iscsi_params session;
    struct tgt_rig r;

    (void)state;
    iscsi_params_default(&session);
    session.max_burst_length = 1024;
    tgt_rig_init(&r, 1);
    r.base = &session;
    r.request.tsih = 55;
    tgt_rig_start(&r);
    assert_int_equal(tgt_rig_ask(&r, OP, false, NAMES "HeaderDigest=CRC32C\n"), LOGIN_MORE);
    assert_int_equal(r.response.tsih, 55);
    assert_int_equal(tgt_rig_ask(&r, OP, true, ""), LOGIN_DONE);
    assert_int_equal(r.l->params.max_burst_length, 1024);
    assert_true(r.l->params.header_digest);
    tgt_rig_free(&r);
    tgt_rig_init(&r, 1);
    r.base = &session;
    r.request.tsih = 55;
    tgt_rig_start(&r);
    assert_int_equal(tgt_rig_ask(&r, OP, true, NAMES "MaxBurstLength=512\n"), LOGIN_FAILED);
    assert_int_equal(r.response.status, 0x0200);
    tgt_rig_free(&r);
}

static void the_reserved_task_tag_is_refused(void **state)
{
    struct tgt_rig r;

    (void)state;
    setup(&r);
    r.request.itt = ISCSI_TAG_NONE;
    assert_int_equal(tgt_rig_ask(&r, OP, true, NAMES), LOGIN_FAILED);
    tgt_rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_pdu_must_be_a_login_request),
        cmocka_unit_test(a_later_pdu_of_another_kind_is_refused),
        cmocka_unit_test(the_names_are_needed),
        cmocka_unit_test(faulty_text_is_refused),
        cmocka_unit_test(a_key_is_repeated_over_turns_as_well),
        cmocka_unit_test(refusals_of_the_owner_are_passed_on),
        cmocka_unit_test(a_login_can_be_refused_from_outside),
        cmocka_unit_test(another_version_is_refused_with_ours),
        cmocka_unit_test(the_handle_comes_last_and_the_numbers_count),
        cmocka_unit_test(only_legal_stages_and_steps_are_taken),
        cmocka_unit_test(the_security_stage_does_not_come_back),
        cmocka_unit_test(the_portal_group_tag_comes_first),
        cmocka_unit_test(what_identifies_a_login_does_not_change),
        cmocka_unit_test(names_after_the_first_turn_change_nothing),
        cmocka_unit_test(what_wants_an_answer_does_not_end_the_stage),
        cmocka_unit_test(absent_keys_have_their_defaults),
        cmocka_unit_test(eight_kilobytes_of_text_are_taken),
        cmocka_unit_test(endless_text_is_bounded),
        cmocka_unit_test(more_answers_than_memory_are_refused),
        cmocka_unit_test(a_login_without_an_end_is_ended),
        cmocka_unit_test(a_redirect_says_where_to),
        cmocka_unit_test(a_discovery_session_logs_in),
        cmocka_unit_test(a_connection_that_joins_takes_over_its_session),
        cmocka_unit_test(the_reserved_task_tag_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
