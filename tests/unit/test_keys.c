/* SPDX-License-Identifier: BSD-2-Clause */
/* The negotiation engine: one pair in, answers and results out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "iscsi/keys.h"

/* A side of a negotiation in the operational stage, and what it wrote. */
struct side {
    struct keys k;
    struct text_writer w;
    struct keys_error err;
    char out[8192];
};

static void begin(struct side *s, bool initiator, bool discovery, const struct iscsi_wishes *wishes)
{
    struct iscsi_wishes standard;

    if (!wishes)
        iscsi_wishes_default(&standard);
    keys_begin(&s->k, initiator, discovery, wishes ? wishes : &standard, NULL);
    s->k.stage = ISCSI_STAGE_OPERATIONAL;
    text_writer_init(&s->w, s->out, sizeof(s->out));
}

static int receive(struct side *s, const char *pair_text)
{
    struct text_scan scan;
    struct text_pair pair;
    enum iscsi_key key;

    text_scan_init(&scan, pair_text, strlen(pair_text) + 1);
    assert_int_equal(text_next(&scan, &pair), TEXT_PAIR);
    return keys_receive(&s->k, &pair, &key, &s->w, &s->err);
}

/* The value that was written for a key; NULL: none. */
static const char *written(const struct side *s, const char *key)
{
    static char value[300];
    struct text_scan scan;
    struct text_pair pair;

    text_scan_init(&scan, s->out, s->w.length);
    while (text_next(&scan, &pair) == TEXT_PAIR)
        if (strcmp(pair.key, key) == 0) {
            snprintf(value, sizeof(value), "%s", pair.value);
            return value;
        }
    return NULL;
}

/* What a target with default wishes answers to one offer. */
static const char *answer_to(const char *key, const char *value)
{
    static struct side s;
    char pair[400];

    begin(&s, false, false, NULL);
    snprintf(pair, sizeof(pair), "%s=%s", key, value);
    if (receive(&s, pair) < 0)
        return "(ends)";
    keys_offer(&s.k, &s.w);
    return written(&s, key);
}

/* ---- the target's side ---- */

/* [T-LOG-15] every key of the table at min - 1, min, default, max, max + 1 */
static void each_number_is_answered_within_its_bounds(void **state)
{
    static const struct {
        const char *key;
        long long min, standard, max;
        bool maximum;
    } rows[] = {
        {"MaxConnections", 1, 1, 65535, false},
        {"MaxBurstLength", 512, 262144, 16777215, false},
        {"FirstBurstLength", 512, 65536, 16777215, false},
        {"DefaultTime2Wait", 0, 2, 3600, true},
        {"DefaultTime2Retain", 0, 20, 3600, false},
        {"MaxOutstandingR2T", 1, 1, 65535, false},
        {"ErrorRecoveryLevel", 0, 0, 2, false},
        {"iSCSIProtocolLevel", 0, 1, 31, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        long long offers[] = {rows[i].min - 1, rows[i].min, rows[i].standard, rows[i].max,
                              rows[i].max + 1};

        for (unsigned k = 0; k < 5; k++) {
            char offer[32];
            const char *got;
            uint64_t n;

            snprintf(offer, sizeof(offer), "%lld", offers[k]);
            got = answer_to(rows[i].key, offer);
            assert_non_null(got);
            if (offers[k] < rows[i].min || offers[k] > rows[i].max) {
                assert_string_equal(got, "Reject");
                continue;
            }
            assert_int_equal(text_number(got, &n), 0);
            assert_in_range(n, rows[i].min, rows[i].max);
            assert_true(rows[i].maximum ? (long long)n >= offers[k] : (long long)n <= offers[k]);
        }
    }
}

/* [T-LOG-15] */
static void a_segment_length_is_declared_within_its_bounds(void **state)
{
    static const struct {
        const char *value;
        int result;
    } rows[] = {{"511", -1}, {"512", 0}, {"8192", 0}, {"16777215", 0}, {"16777216", -1}};
    struct side s;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char pair[64];

        snprintf(pair, sizeof(pair), "MaxRecvDataSegmentLength=%s", rows[i].value);
        begin(&s, false, false, NULL);
        assert_int_equal(receive(&s, pair), rows[i].result);
        if (rows[i].result == 0)
            assert_int_equal(s.k.result.mrdsl_out, atoi(rows[i].value));
        else
            assert_int_equal(s.k.result.mrdsl_out, 8192);
        assert_null(written(&s, "MaxRecvDataSegmentLength")); /* a declaration has no answer */
    }
}

/* [B-15] */
static void what_is_no_number_is_rejected(void **state)
{
    static const char *const bad[] = {"-1",         "+1",
                                      " 1",         "1.0",
                                      "0x",         "18446744073709551616",
                                      "4294967808", "99999999999999999999999",
                                      "",           "Yes"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_string_equal(answer_to("MaxBurstLength", bad[i]), "Reject");
    assert_string_equal(answer_to("MaxBurstLength", "0x10000"), "65536");
    assert_string_equal(answer_to("MaxOutstandingR2T", "0X1"), "1");
}

/* [B-22] [T-LOG-15] */
static void booleans_are_answered_by_their_function(void **state)
{
    (void)state;
    assert_string_equal(answer_to("ImmediateData", "Yes"), "Yes");
    assert_string_equal(answer_to("ImmediateData", "No"), "No");
    assert_string_equal(answer_to("InitialR2T", "No"), "No");
    assert_string_equal(answer_to("InitialR2T", "Yes"), "Yes");
    assert_string_equal(answer_to("DataPDUInOrder", "No"), "Yes");
    assert_string_equal(answer_to("DataSequenceInOrder", "No"), "Yes");
    assert_string_equal(answer_to("ImmediateData", "Maybe"), "Reject");
}

/* [B-18] */
static void the_first_supported_value_of_a_list_is_chosen(void **state)
{
    (void)state;
    assert_string_equal(answer_to("HeaderDigest", "foo,CRC32C,None"), "CRC32C");
    assert_string_equal(answer_to("HeaderDigest", "None,CRC32C"), "None");
    assert_string_equal(answer_to("DataDigest", "foo"), "Reject");
    assert_string_equal(answer_to("DataDigest", ""), "Reject");
    assert_string_equal(answer_to("TaskReporting", "FastAbort,ResponseFence,RFC3720"),
                        "ResponseFence");
    assert_string_equal(answer_to("TaskReporting", "RFC3720,ResponseFence"), "RFC3720");
    assert_string_equal(
        answer_to("HeaderDigest",
                  "X-a-name-that-is-longer-than-any-we-know-of-and-of-no-use-to-us,CRC32C"),
        "CRC32C");
}

/* [B-19] */
static void reserved_words_are_no_offers(void **state)
{
    static const char *const words[] = {"Reject", "Irrelevant", "NotUnderstood", "None"};

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        assert_string_equal(answer_to("MaxBurstLength", words[i]), "(ends)");
        assert_string_equal(answer_to("ImmediateData", words[i]), "(ends)");
    }
    assert_string_equal(answer_to("HeaderDigest", "Reject"), "(ends)");
    assert_string_equal(answer_to("HeaderDigest", "None"), "None");
}

/* [B-21] [B-13] */
static void unknown_keys_are_not_understood(void **state)
{
    (void)state;
    assert_string_equal(answer_to("X-com.example.a", "1"), "NotUnderstood");
    assert_string_equal(answer_to("X-com.example.range", "9~5"), "NotUnderstood"); /* [B-17] */
    assert_string_equal(answer_to("maxburstlength", "8192"), "NotUnderstood");
}

/* [B-21] no standard key is, whatever comes with it */
static void standard_keys_are_never_not_understood(void **state)
{
    static const char *const values[] = {"", "1", "Yes", "None", "CRC32C", "x", "0x", "1~2"};
    struct text_scan scan;
    struct text_pair pair;
    struct side s;

    (void)state;
    for (unsigned key = 0; key < KEY_COUNT; key++)
        for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
            for (int discovery = 0; discovery < 2; discovery++) {
                char text[100];

                begin(&s, false, discovery, NULL);
                snprintf(text, sizeof(text), "%s=%s", keys_name((enum iscsi_key)key), values[i]);
                receive(&s, text);
                keys_offer(&s.k, &s.w);
                text_scan_init(&scan, s.out, s.w.length);
                while (text_next(&scan, &pair) == TEXT_PAIR)
                    assert_string_not_equal(pair.value, "NotUnderstood");
            }
}

/* [B-28] */
static void markers_are_refused(void **state)
{
    (void)state;
    assert_string_equal(answer_to("OFMarker", "Yes"), "No");
    assert_string_equal(answer_to("IFMarker", "Yes"), "No");
    assert_string_equal(answer_to("IFMarker", "No"), "No");
    assert_string_equal(answer_to("OFMarkInt", "2048~8192"), "Reject");
    assert_string_equal(answer_to("IFMarkInt", "2048"), "Reject");
}

/* [B-13] */
static void values_have_at_most_255_bytes(void **state)
{
    char value[300];

    (void)state;
    memset(value, 'a', sizeof(value));
    value[255] = '\0';
    assert_string_equal(answer_to("X-com.example.a", value), "NotUnderstood");
    value[255] = 'a';
    value[256] = '\0';
    assert_string_equal(answer_to("X-com.example.a", value), "(ends)");
    assert_string_equal(answer_to("HeaderDigest", value), "(ends)");
}

/* [B-24] [T-LOG-14] */
static void a_key_comes_once(void **state)
{
    struct side s;

    (void)state;
    begin(&s, false, false, NULL);
    assert_int_equal(receive(&s, "MaxBurstLength=8192"), 0);
    assert_int_equal(receive(&s, "MaxBurstLength=8192"), -1);
    assert_int_equal(s.err.status, ISCSI_LOGIN_INITIATOR_ERROR);
    assert_string_equal(s.err.key, "MaxBurstLength");
    assert_non_null(strstr(s.err.sentence, "twice"));
    assert_int_equal(receive(&s, "InitiatorName=iqn.a:b"), 1);
    assert_int_equal(receive(&s, "InitiatorName=iqn.a:b"), -1);
    begin(&s, true, false, NULL);
    s.k.stage = ISCSI_STAGE_FULL_FEATURE; /* what may be repeated */
    assert_int_equal(receive(&s, "TargetName=iqn.a:1"), 1);
    assert_int_equal(receive(&s, "TargetAddress=a:1,1"), 1);
    assert_int_equal(receive(&s, "TargetAddress=b:1,1"), 1);
    assert_int_equal(receive(&s, "TargetName=iqn.a:2"), 1);
}

/* [B-27] [T-LOG-14] each key in each stage, as the table of the standard has it */
static void a_key_belongs_to_its_stage(void **state)
{
    static const struct {
        const char *pair;
        bool security, operational, ffp;
    } rows[] = {
        {"AuthMethod=None", true, false, false},
        {"CHAP_A=5", true, false, false},
        {"CHAP_N=x", true, false, false},
        {"HeaderDigest=None", false, true, false},
        {"DataDigest=None", false, true, false},
        {"MaxConnections=1", false, true, false},
        {"SendTargets=All", false, false, true},
        {"TargetName=iqn.a:b", true, true, false},
        {"InitiatorName=iqn.a:b", true, true, false},
        {"InitiatorAlias=x", true, true, true},
        {"InitialR2T=Yes", false, true, false},
        {"ImmediateData=Yes", false, true, false},
        {"MaxRecvDataSegmentLength=512", false, true, true},
        {"MaxBurstLength=512", false, true, false},
        {"FirstBurstLength=512", false, true, false},
        {"DefaultTime2Wait=1", false, true, false},
        {"DefaultTime2Retain=1", false, true, false},
        {"MaxOutstandingR2T=1", false, true, false},
        {"DataPDUInOrder=Yes", false, true, false},
        {"DataSequenceInOrder=Yes", false, true, false},
        {"ErrorRecoveryLevel=0", false, true, false},
        {"SessionType=Normal", true, true, false},
        {"TaskReporting=RFC3720", false, true, false},
        {"iSCSIProtocolLevel=1", false, true, false},
        {"X#NodeArchitecture=x", false, true, false},
        {"OFMarker=No", false, true, false},
        {"IFMarkInt=1", false, true, false},
        {"X-com.example.a=1", true, true, true},
    };
    struct side s;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const bool legal[] = {rows[i].security, rows[i].operational, false, rows[i].ffp};

        for (unsigned stage = 0; stage < 4; stage++) {
            if (stage == 2)
                continue;
            begin(&s, false, false, NULL);
            s.k.stage = (enum iscsi_stage)stage;
            if ((receive(&s, rows[i].pair) >= 0) != legal[stage])
                fail_msg("%s in stage %u", rows[i].pair, stage);
        }
    }
}

static void a_target_refuses_keys_of_targets(void **state)
{
    (void)state;
    assert_string_equal(answer_to("TargetAlias", "x"), "(ends)");
    assert_string_equal(answer_to("TargetPortalGroupTag", "1"), "(ends)");
    assert_string_equal(answer_to("TargetAddress", "x"), "(ends)");
}

/* [B-26] [T-DISC-05] */
static void a_discovery_session_finds_keys_irrelevant(void **state)
{
    static const char *const irrelevant[] = {
        "MaxConnections=1",    "InitialR2T=No",          "ImmediateData=Yes",
        "MaxBurstLength=512",  "FirstBurstLength=512",   "MaxOutstandingR2T=1",
        "DataPDUInOrder=Yes",  "DataSequenceInOrder=No", "TaskReporting=RFC3720,ResponseFence",
        "iSCSIProtocolLevel=2"};
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    wishes.params.error_recovery_level = 2;
    begin(&s, false, true, &wishes);
    for (size_t i = 0; i < sizeof(irrelevant) / sizeof(*irrelevant); i++) {
        char key[64];

        assert_int_equal(receive(&s, irrelevant[i]), 0);
        snprintf(key, sizeof(key), "%.*s", (int)strcspn(irrelevant[i], "="), irrelevant[i]);
        assert_string_equal(written(&s, key), "Irrelevant");
    }
    assert_int_equal(receive(&s, "HeaderDigest=CRC32C"), 0);
    assert_int_equal(receive(&s, "ErrorRecoveryLevel=2"), 0);
    assert_int_equal(receive(&s, "MaxRecvDataSegmentLength=1024"), 0);
    keys_offer(&s.k, &s.w);
    assert_string_equal(written(&s, "HeaderDigest"), "CRC32C");
    assert_string_equal(written(&s, "ErrorRecoveryLevel"), "0");
    assert_int_equal(keys_finish(&s.k, &s.err), 0);
    assert_true(s.k.result.discovery);
}

/* [B-25] whatever the order of the keys */
static void the_first_burst_is_answered_within_the_burst(void **state)
{
    static const char *const orders[][2] = {
        {"MaxBurstLength=524288", "FirstBurstLength=1048576"},
        {"FirstBurstLength=1048576", "MaxBurstLength=524288"},
    };
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    wishes.params.max_burst_length = wishes.params.first_burst_length = 1 << 20;
    for (unsigned i = 0; i < 2; i++) {
        begin(&s, false, false, &wishes);
        assert_int_equal(receive(&s, orders[i][0]), 0);
        assert_int_equal(receive(&s, orders[i][1]), 0);
        keys_offer(&s.k, &s.w);
        assert_string_equal(written(&s, "MaxBurstLength"), "524288");
        assert_string_equal(written(&s, "FirstBurstLength"), "524288");
        assert_int_equal(keys_finish(&s.k, &s.err), 0);
        assert_int_equal(s.k.result.first_burst_length, 524288);
    }
}

/* [B-25] */
static void recovery_in_order_has_one_r2t(void **state)
{
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    wishes.params.error_recovery_level = 2;
    wishes.params.data_sequence_in_order = false;
    wishes.params.max_outstanding_r2t = 16;
    begin(&s, false, false, &wishes);
    assert_int_equal(receive(&s, "MaxOutstandingR2T=8"), 0);
    assert_int_equal(receive(&s, "ErrorRecoveryLevel=1"), 0);
    assert_int_equal(receive(&s, "DataSequenceInOrder=Yes"), 0);
    keys_offer(&s.k, &s.w);
    assert_string_equal(written(&s, "MaxOutstandingR2T"), "1");
    begin(&s, false, false, &wishes);
    assert_int_equal(receive(&s, "MaxOutstandingR2T=8"), 0);
    assert_int_equal(receive(&s, "ErrorRecoveryLevel=1"), 0);
    assert_int_equal(receive(&s, "DataSequenceInOrder=No"), 0);
    keys_offer(&s.k, &s.w);
    assert_string_equal(written(&s, "MaxOutstandingR2T"), "8");
}

static void a_joining_connection_keeps_what_its_session_settled(void **state)
{
    struct iscsi_wishes wishes;
    struct iscsi_params session;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    iscsi_params_default(&session);
    session.max_burst_length = 4096;
    session.header_digest = true;
    session.mrdsl_out = 65536;
    for (int initiator = 0; initiator < 2; initiator++) {
        begin(&s, initiator, false, NULL);
        keys_begin(&s.k, initiator, false, &wishes, &session);
        s.k.stage = ISCSI_STAGE_OPERATIONAL;
        assert_int_equal(receive(&s, "MaxBurstLength=512"), -1);
        keys_offer(&s.k, &s.w);
        assert_null(written(&s, "MaxBurstLength"));
        assert_non_null(written(&s, "MaxRecvDataSegmentLength"));
        assert_int_equal(s.k.result.max_burst_length, 4096);
        assert_int_equal(s.k.result.mrdsl_out, 8192); /* of the connection: not declared yet */
        assert_false(s.k.result.header_digest);
    }
}

/* ---- the initiator's side ---- */

/* An initiator with these wishes has offered; the target's pairs come. -1: it ends. */
static int after_offer(struct side *s, const struct iscsi_wishes *wishes, const char *answer)
{
    begin(s, true, false, wishes);
    keys_offer(&s->k, &s->w);
    return receive(s, answer);
}

/* [B-23] [B-21] [B-31] */
static void answers_are_verified(void **state)
{
    static const struct {
        const char *answer;
        int result;
    } rows[] = {
        {"MaxBurstLength=1048576", 0},
        {"MaxBurstLength=1048577", -1},
        {"MaxBurstLength=511", -1},
        {"MaxBurstLength=x", -1},
        {"MaxBurstLength=NotUnderstood", -1},
        {"MaxBurstLength=Irrelevant", 0},
        {"MaxBurstLength=Reject", 0},
        {"FirstBurstLength=Irrelevant", 0},
        {"ImmediateData=No", 0},
        {"InitialR2T=Yes", 0},
        {"InitialR2T=Maybe", -1},
        {"DataPDUInOrder=No", -1},  /* OR got Yes */
        {"DefaultTime2Wait=1", -1}, /* maximum of 2 and something */
        {"DefaultTime2Wait=3", 0},
        {"DefaultTime2Retain=21", -1},
        {"MaxConnections=2", -1},
        {"ErrorRecoveryLevel=1", -1},
        {"HeaderDigest=CRC32C", 0},
        {"HeaderDigest=MD5", -1},
        {"HeaderDigest=None,CRC32C", -1},
        {"TaskReporting=ResponseFence", 0},
        {"TaskReporting=RFC3720", 0},
        {"TaskReporting=FastAbort", -1}, /* not offered */
        {"TaskReporting=NotUnderstood", 0},
        {"iSCSIProtocolLevel=NotUnderstood", 0},
        {"iSCSIProtocolLevel=1", 0},
        {"iSCSIProtocolLevel=2", 0},
        {"iSCSIProtocolLevel=3", -1},
        {"MaxRecvDataSegmentLength=NotUnderstood", -1},
        {"X-com.example.a=NotUnderstood", 0},
    };
    struct side s;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (after_offer(&s, NULL, rows[i].answer) != rows[i].result)
            fail_msg("%s: %s", rows[i].answer, s.err.sentence);
        if (rows[i].result < 0)
            assert_non_null(strstr(s.err.sentence, s.err.key));
    }
}

/* [B-23] Yes to No of an AND, No to Yes of an OR */
static void booleans_that_were_decided_cannot_be_overturned(void **state)
{
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    wishes.params.immediate_data = false;
    wishes.params.initial_r2t = true;
    assert_int_equal(after_offer(&s, &wishes, "ImmediateData=Yes"), -1);
    assert_int_equal(after_offer(&s, &wishes, "InitialR2T=No"), -1);
}

/* [B-31] */
static void the_protocol_level_is_the_lower_one(void **state)
{
    struct side s;

    (void)state;
    assert_int_equal(after_offer(&s, NULL, "iSCSIProtocolLevel=2"), 0);
    assert_int_equal(s.k.result.protocol_level, 2);
    assert_int_equal(after_offer(&s, NULL, "iSCSIProtocolLevel=1"), 0);
    assert_int_equal(s.k.result.protocol_level, 1);
    assert_int_equal(after_offer(&s, NULL, "iSCSIProtocolLevel=NotUnderstood"), 0);
    assert_int_equal(s.k.result.protocol_level, 1);
}

/* Answers to everything that the initiator offers, but for one key. */
static int finish_without(struct side *s, const struct iscsi_wishes *wishes, const char *silent)
{
    struct side target;
    struct text_scan scan;
    struct text_pair pair;
    enum iscsi_key key;

    begin(&target, false, false, NULL);
    begin(s, true, false, wishes);
    keys_offer(&s->k, &s->w);
    text_scan_init(&scan, s->out, s->w.length);
    while (text_next(&scan, &pair) == TEXT_PAIR)
        assert_int_equal(keys_receive(&target.k, &pair, &key, &target.w, &target.err), 0);
    keys_offer(&target.k, &target.w);
    text_scan_init(&scan, target.out, target.w.length);
    while (text_next(&scan, &pair) == TEXT_PAIR)
        if (strcmp(pair.key, silent) != 0)
            assert_int_equal(keys_receive(&s->k, &pair, &key, &s->w, &s->err), 0);
    return keys_finish(&s->k, &s->err);
}

/* [B-22] */
static void silence_is_an_answer_only_where_the_offer_decides(void **state)
{
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    assert_int_equal(finish_without(&s, &wishes, "(none)"), 0);
    assert_int_equal(finish_without(&s, &wishes, "MaxBurstLength"), -1);
    assert_string_equal(s.err.key, "MaxBurstLength");
    assert_int_equal(finish_without(&s, &wishes, "ImmediateData"), -1);
    assert_int_equal(finish_without(&s, &wishes, "InitialR2T"), -1);
    assert_int_equal(finish_without(&s, &wishes, "DataPDUInOrder"), 0);
    assert_true(s.k.result.data_pdu_in_order);
    assert_int_equal(finish_without(&s, &wishes, "HeaderDigest"), -1);
    assert_int_equal(finish_without(&s, &wishes, "iSCSIProtocolLevel"), 0);
    assert_int_equal(s.k.result.protocol_level, 1);
    wishes.params.immediate_data = false;
    wishes.params.initial_r2t = true;
    assert_int_equal(finish_without(&s, &wishes, "ImmediateData"), 0);
    assert_false(s.k.result.immediate_data);
    assert_int_equal(finish_without(&s, &wishes, "InitialR2T"), 0);
    assert_true(s.k.result.initial_r2t);
}

/* [B-30] */
static void task_reporting_offers_the_first_two_at_least(void **state)
{
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    for (int i = ISCSI_REPORT_RESPONSE_FENCE; i <= ISCSI_REPORT_FAST_ABORT; i++) {
        wishes.params.task_reporting = (enum iscsi_task_reporting)i;
        begin(&s, true, false, &wishes);
        keys_offer(&s.k, &s.w);
        assert_non_null(strstr(written(&s, "TaskReporting"), "RFC3720"));
        assert_non_null(strstr(written(&s, "TaskReporting"), "ResponseFence"));
        assert_int_equal(receive(&s, i == ISCSI_REPORT_FAST_ABORT ? "TaskReporting=FastAbort"
                                                                  : "TaskReporting=ResponseFence"),
                         0);
        assert_int_equal(s.k.result.task_reporting, i);
    }
}

/* [B-25] our own offers never contradict each other */
static void wishes_are_brought_in_line(void **state)
{
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    wishes.params.max_burst_length = 1000;
    wishes.params.first_burst_length = 1 << 30;
    wishes.params.error_recovery_level = 9;
    wishes.params.max_connections = 0;
    wishes.params.mrdsl_in = 1;
    begin(&s, true, false, &wishes);
    keys_offer(&s.k, &s.w);
    assert_string_equal(written(&s, "MaxBurstLength"), "1000");
    assert_string_equal(written(&s, "FirstBurstLength"), "1000");
    assert_string_equal(written(&s, "ErrorRecoveryLevel"), "2");
    assert_string_equal(written(&s, "MaxOutstandingR2T"), "1");
    assert_string_equal(written(&s, "MaxConnections"), "1");
    assert_string_equal(written(&s, "MaxRecvDataSegmentLength"), "512");
}

static void discovery_and_old_targets_are_offered_less(void **state)
{
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    begin(&s, true, true, NULL);
    keys_offer(&s.k, &s.w);
    assert_non_null(written(&s, "HeaderDigest"));
    assert_non_null(written(&s, "MaxRecvDataSegmentLength"));
    assert_null(written(&s, "MaxBurstLength"));
    assert_null(written(&s, "ErrorRecoveryLevel"));
    assert_null(written(&s, "TaskReporting"));
    iscsi_wishes_default(&wishes);
    wishes.plain = true;
    begin(&s, true, false, &wishes);
    keys_offer(&s.k, &s.w);
    assert_non_null(written(&s, "MaxBurstLength"));
    assert_null(written(&s, "TaskReporting"));
    assert_null(written(&s, "iSCSIProtocolLevel"));
}

static void a_required_digest_is_required_of_both_sides(void **state)
{
    struct iscsi_wishes wishes;
    struct side s;

    (void)state;
    iscsi_wishes_default(&wishes);
    wishes.header_digest = ISCSI_DIGEST_REQUIRE;
    assert_int_equal(after_offer(&s, &wishes, "HeaderDigest=None"), -1);
    assert_int_equal(after_offer(&s, &wishes, "HeaderDigest=Reject"), -1);
    assert_non_null(strstr(s.err.sentence, "allow None"));
    begin(&s, false, false, &wishes); /* a target asks by itself */
    keys_offer(&s.k, &s.w);
    assert_string_equal(written(&s, "HeaderDigest"), "CRC32C");
    assert_true(keys_unanswered(&s.k));
    assert_int_equal(receive(&s, "HeaderDigest=CRC32C"), 0);
    assert_false(keys_unanswered(&s.k));
    assert_int_equal(keys_finish(&s.k, &s.err), 0);
    assert_true(s.k.result.header_digest);
    begin(&s, false, false, &wishes);
    assert_int_equal(receive(&s, "HeaderDigest=None"), 0);
    assert_string_equal(written(&s, "HeaderDigest"), "Reject");
    assert_int_equal(keys_finish(&s.k, &s.err), -1);
}

/* ---- full feature phase ---- */

/* [B-34] [I-TXT-02] [T-TXT-02] [T-TXT-03] */
static void a_segment_length_changes_when_the_exchange_has_ended_well(void **state)
{
    struct iscsi_params current;
    struct side ini, tgt;

    (void)state;
    iscsi_params_default(&current);
    current.max_burst_length = 4096;
    text_writer_init(&ini.w, ini.out, sizeof(ini.out));
    keys_begin_text(&ini.k, true, &current, 65536);
    keys_offer(&ini.k, &ini.w);
    assert_int_equal(ini.w.length, strlen("MaxRecvDataSegmentLength=65536") + 1);
    assert_string_equal(written(&ini, "MaxRecvDataSegmentLength"), "65536");
    assert_int_equal(keys_finish(&ini.k, &ini.err), 0);
    assert_int_equal(ini.k.result.mrdsl_in, 65536);
    assert_int_equal(ini.k.result.mrdsl_out, 8192);
    assert_int_equal(ini.k.result.max_burst_length, 4096);

    text_writer_init(&tgt.w, tgt.out, sizeof(tgt.out));
    keys_begin_text(&tgt.k, false, &current, 0);
    assert_int_equal(receive(&tgt, "MaxRecvDataSegmentLength=65536"), 0);
    keys_offer(&tgt.k, &tgt.w);
    assert_int_equal(tgt.w.length, 0);
    assert_int_equal(receive(&tgt, "MaxRecvDataSegmentLength=65536"), -1);
    assert_int_equal(keys_finish(&tgt.k, &tgt.err), 0);
    assert_int_equal(tgt.k.result.mrdsl_out, 65536);
    assert_int_equal(tgt.k.result.mrdsl_in, 8192);
    keys_begin_text(&tgt.k, false, &current, 0);
    assert_int_equal(receive(&tgt, "MaxRecvDataSegmentLength=1"), -1);
    keys_begin_text(&tgt.k, false, &current, 0);
    assert_int_equal(receive(&tgt, "MaxBurstLength=512"), -1);
    assert_int_equal(receive(&tgt, "X-com.example.a=1"), 0);
    assert_string_equal(written(&tgt, "X-com.example.a"), "NotUnderstood");
    assert_int_equal(current.mrdsl_in, 8192); /* a failed exchange has changed nothing */
    assert_int_equal(current.mrdsl_out, 8192);
}

/* ---- documentation ---- */

static void each_row_can_be_described(void **state)
{
    char line[300];
    unsigned n = 0;

    (void)state;
    for (; keys_describe(n, line, sizeof(line)); n++) {
        assert_int_equal(keys_find(keys_name((enum iscsi_key)n)), n);
        assert_int_equal(strncmp(line, keys_name((enum iscsi_key)n), 3), 0);
    }
    assert_int_equal(n, KEY_COUNT);
    assert_true(keys_describe(KEY_MAX_BURST_LENGTH, line, sizeof(line)));
    assert_string_equal(line, "MaxBurstLength | 512..16777215 (262144) | minimum | leading login | "
                              "session | both | irrelevant in discovery");
    assert_int_equal(keys_find("maxburstlength"), KEY_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_answered_within_its_bounds),
        cmocka_unit_test(a_segment_length_is_declared_within_its_bounds),
        cmocka_unit_test(what_is_no_number_is_rejected),
        cmocka_unit_test(booleans_are_answered_by_their_function),
        cmocka_unit_test(the_first_supported_value_of_a_list_is_chosen),
        cmocka_unit_test(reserved_words_are_no_offers),
        cmocka_unit_test(unknown_keys_are_not_understood),
        cmocka_unit_test(standard_keys_are_never_not_understood),
        cmocka_unit_test(markers_are_refused),
        cmocka_unit_test(values_have_at_most_255_bytes),
        cmocka_unit_test(a_key_comes_once),
        cmocka_unit_test(a_key_belongs_to_its_stage),
        cmocka_unit_test(a_target_refuses_keys_of_targets),
        cmocka_unit_test(a_discovery_session_finds_keys_irrelevant),
        cmocka_unit_test(the_first_burst_is_answered_within_the_burst),
        cmocka_unit_test(recovery_in_order_has_one_r2t),
        cmocka_unit_test(a_joining_connection_keeps_what_its_session_settled),
        cmocka_unit_test(answers_are_verified),
        cmocka_unit_test(booleans_that_were_decided_cannot_be_overturned),
        cmocka_unit_test(the_protocol_level_is_the_lower_one),
        cmocka_unit_test(silence_is_an_answer_only_where_the_offer_decides),
        cmocka_unit_test(task_reporting_offers_the_first_two_at_least),
        cmocka_unit_test(wishes_are_brought_in_line),
        cmocka_unit_test(discovery_and_old_targets_are_offered_less),
        cmocka_unit_test(a_required_digest_is_required_of_both_sides),
        cmocka_unit_test(a_segment_length_changes_when_the_exchange_has_ended_well),
        cmocka_unit_test(each_row_can_be_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
