/* SPDX-License-Identifier: BSD-2-Clause */
/* Target: text in full feature phase, SendTargets, discovery sessions. */
#include "tgt_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define DISCOVERY "InitiatorName=" RIG_INITIATOR "\0SessionType=Discovery\0"

static void discover(struct trig *r, unsigned i, const char *keys, size_t length)
{
    char text[512] = DISCOVERY;

    memcpy(text + sizeof DISCOVERY - 1, keys, length);
    assert_true(trig_connect(r, i));
    assert_int_equal(trig_login(r, i, text, sizeof DISCOVERY - 1 + length, 0), 0);
}

struct text {
    char bytes[200000];
    uint32_t length;
    unsigned pdus;
    bool longer; /* some response had F=0 */
};

/* Takes a whole answer, asking for more as long as there is. */
static void take_text(struct trig *r, uint32_t itt, uint32_t mrdsl, struct text *text)
{
    struct wire_pdu pdu;
    struct iscsi_text_response response;

    memset(text, 0, sizeof *text);
    for (;;) {
        trig_expect(r, 0, ISCSI_TEXT_RESPONSE, &pdu);
        iscsi_text_response_unpack(pdu.bhs, &response);
        assert_int_equal(response.itt, itt);
        assert_true(pdu.data_length <= mrdsl);
        memcpy(text->bytes + text->length, pdu.data, pdu.data_length);
        text->length += pdu.data_length;
        text->pdus++;
        if (response.final) {
            assert_int_equal(response.ttt, ISCSI_TAG_NONE); /* T-TXT-01 */
            assert_false(response.more);
            return;
        }
        text->longer = true;
        assert_int_not_equal(response.ttt, ISCSI_TAG_NONE);
        trig_put_text(r, 0, itt, response.ttt, NULL, 0);
    }
}

static unsigned count(const struct text *text, const char *key)
{
    unsigned n = 0;

    for (const char *p = text->bytes; p < text->bytes + text->length; p += strlen(p) + 1)
        n += strncmp(p, key, strlen(key)) == 0;
    return n;
}

static void ask(struct trig *r, const char *pairs, uint32_t n, uint32_t mrdsl, struct text *text)
{
    trig_put_text(r, 0, 60, ISCSI_TAG_NONE, pairs, n);
    take_text(r, 60, mrdsl, text);
}

#define ASK(r, pairs, text) ask(r, pairs, sizeof(pairs), 8192, text)

/* [T-DISC-01] [T-DISC-04] [T-TXT-01] */
static void send_targets_lists_what_the_initiator_may_use(struct trig *r)
{
    static const char first[] = "TargetName=" RIG_TARGET "\0TargetAddress=192.0.2.1:3260,1\0";
    static const unsigned counts[] = {0, 1, 500};
    struct text *text = malloc(sizeof *text);

    for (unsigned i = 0; i < 3; i++) {
        r->target_count = counts[i];
        discover(r, 0, KEYS("MaxRecvDataSegmentLength=512\0"));
        ask(r, "SendTargets=All", sizeof "SendTargets=All", 512, text);
        assert_int_equal(count(text, "TargetName="), counts[i]);
        assert_int_equal(count(text, "TargetAddress="), 2 * counts[i]);
        assert_int_equal(text->longer, counts[i] > 100);
        if (counts[i] > 0)
            assert_memory_equal(text->bytes, first, sizeof first - 1);
        trig_cut(r, 0);
    }
    discover(r, 0, KEYS(""));
    r->target_count = 3;
    r->initiator = "iqn.2026-01.test:somebody.else";
    ASK(r, "SendTargets=All", text);
    assert_int_equal(text->length, 0);
    free(text);
}

/* [T-DISC-02] */
static void send_targets_of_a_name_lists_that_target_only(struct trig *r)
{
    struct text *text = malloc(sizeof *text);

    discover(r, 0, KEYS(""));
    ASK(r, "SendTargets=iqn.2026-01.test:other1", text);
    assert_int_equal(count(text, "TargetName="), 1);
    assert_int_equal(count(text, "TargetName=iqn.2026-01.test:other1"), 1);
    assert_int_equal(count(text, "TargetAddress="), 2);
    ASK(r, "SendTargets=iqn.2026-01.test:unknown", text);
    assert_int_equal(text->length, 0);
    free(text);
}

/* [T-DISC-03] */
static void a_normal_session_tells_of_its_own_target_only(struct trig *r)
{
    struct text *text = malloc(sizeof *text);

    trig_start(r, "");
    ASK(r, "SendTargets=", text);
    assert_int_equal(count(text, "TargetName="), 1);
    assert_int_equal(count(text, "TargetName=" RIG_TARGET), 1);
    ASK(r, "SendTargets=All", text);
    assert_string_equal(text->bytes, "SendTargets=Reject");
    ASK(r, "SendTargets=iqn.2026-01.test:other1", text);
    assert_int_equal(text->length, 0);
    free(text);
}

/* [T-DISC-04] */
static void a_long_answer_can_be_begun_again(struct trig *r)
{
    struct text *text = malloc(sizeof *text);
    struct wire_pdu pdu;

    r->target_count = 50;
    discover(r, 0, KEYS("MaxRecvDataSegmentLength=512\0"));
    trig_put_text(r, 0, 60, ISCSI_TAG_NONE, KEYS("SendTargets=All\0"));
    trig_expect(r, 0, ISCSI_TEXT_RESPONSE, &pdu);
    ask(r, "SendTargets=All", sizeof "SendTargets=All", 512, text);
    assert_int_equal(count(text, "TargetName="), 50);
    free(text);
}

/* [T-DISC-05] */
static void a_discovery_session_takes_nothing_else(struct trig *r)
{
    struct iscsi_scsi_command ready;
    struct iscsi_tmf_request tmf;
    struct wire_pdu pdu;

    discover(r, 0, KEYS(""));
    ready = trig_ready(r, 1);
    trig_put_command(r, 0, &ready, NULL, 0);
    trig_expect_reject(r, 0, ISCSI_REJECT_NOT_SUPPORTED);
    tmf = trig_tmf(r, 50, ISCSI_LOGICAL_UNIT_RESET);
    trig_put_tmf(r, 0, &tmf);
    trig_expect_reject(r, 0, ISCSI_REJECT_NOT_SUPPORTED);
    trig_put_logout(r, 0, 51, ISCSI_LOGOUT_CONNECTION, 0);
    trig_expect_reject(r, 0, ISCSI_REJECT_PROTOCOL);
    trig_put_logout(r, 0, 51, ISCSI_LOGOUT_RECOVERY, 0);
    trig_expect_reject(r, 0, ISCSI_REJECT_PROTOCOL);
    r->cmd_sn = 100;
    trig_put_logout(r, 0, 52, ISCSI_LOGOUT_SESSION, 0);
    trig_expect(r, 0, ISCSI_LOGOUT_RESPONSE, &pdu);
    assert_true(r->conns[0].closed);
    assert_int_equal(r->opened, 0);
}

/* [T-DISC-06] */
static void unnamed_discovery_sessions_are_told_apart_by_portal(struct trig *r)
{
    struct tgt_portal portal = {"192.0.2.9:3260", 1};
    struct trig_conn *other = &r->conns[1];
    struct lp_error err;

    discover(r, 0, KEYS(""));
    assert_true(trig_connect(r, 1));
    tgt_conn_closed(other->conn, r->now);
    tgt_conn_free(other->conn);
    other->conn = tgt_conn_new(r->tgt, &portal, "198.51.100.8:1", r->now, &err);
    tgt_conn_set_user(other->conn, other);
    assert_int_equal(trig_login(r, 1, KEYS(DISCOVERY), 0), 0);
    assert_false(r->conns[0].closed);
    discover(r, 2, KEYS("")); /* like the first */
    trig_pump(r);
    assert_true(r->conns[0].closed);
    assert_false(r->conns[1].closed || r->conns[2].closed);
}

static void expect_cut(struct trig *r, uint32_t mrdsl)
{
    struct iscsi_scsi_command read = trig_read(r, 1, 0, 8);
    struct wire_pdu pdu;

    trig_put_command(r, 0, &read, NULL, 0);
    for (uint32_t done = 0; done < 4096; done += pdu.data_length) {
        trig_expect(r, 0, ISCSI_DATA_IN, &pdu);
        assert_int_equal(pdu.data_length, mrdsl < 4096 ? mrdsl : 4096);
    }
}

/* [T-TXT-03] */
static void a_new_segment_length_counts_when_the_exchange_has_ended_well(struct trig *r)
{
    struct text *text = malloc(sizeof *text);

    trig_start(r, "MaxRecvDataSegmentLength=2048\0");
    ASK(r, "MaxRecvDataSegmentLength=1024", text);
    assert_int_equal(count(text, "MaxRecvDataSegmentLength=Reject"), 0);
    expect_cut(r, 1024);
    trig_put_text(r, 0, 60, ISCSI_TAG_NONE, KEYS("MaxRecvDataSegmentLength=512\0Max=\0=x\0"));
    trig_expect_reject(r, 0, ISCSI_REJECT_PROTOCOL);
    r->cmd_sn--;
    expect_cut(r, 1024);
    free(text);
}

/* [T-TXT-03] */
static void an_exchange_that_is_begun_anew_leaves_the_old_length(struct trig *r)
{
    struct iscsi_text_request pdu = {.itt = 60, .ttt = ISCSI_TAG_NONE};
    struct text *text = malloc(sizeof *text);
    struct wire_pdu got;
    uint8_t bhs[ISCSI_BHS_SIZE];

    trig_start(r, "MaxRecvDataSegmentLength=2048\0");
    pdu.cmd_sn = r->cmd_sn++;
    pdu.exp_stat_sn = r->conns[0].exp_stat_sn;
    iscsi_text_request_pack(bhs, &pdu); /* F=0 */
    wire_put(&r->conns[0].wire, bhs, KEYS("MaxRecvDataSegmentLength=512\0"));
    trig_expect(r, 0, ISCSI_TEXT_RESPONSE, &got);
    assert_false(got.bhs[1] & 0x80);
    expect_cut(r, 2048);
    ASK(r, "InitiatorAlias=x", text);
    expect_cut(r, 2048);
    free(text);
}

/* [T-TXT-02] */
static void bad_text_is_rejected_without_effect(struct trig *r)
{
    static const struct {
        const char *pairs;
        uint32_t length;
    } bad[] = {
        {KEYS("MaxRecvDataSegmentLength=512\0MaxRecvDataSegmentLength=1024\0")},
        {KEYS("MaxBurstLength=512\0")},
        {KEYS("HeaderDigest=None\0")},
        {KEYS("TargetName=x\0")},
        {KEYS("AuthMethod=None\0")},
        {KEYS("SendTargets=\0InitiatorAlias=x\0")},
        {KEYS("no equals sign\0")},
        {KEYS("MaxRecvDataSegmentLength=512")}, /* no NUL */
    };
    struct text *text = malloc(sizeof *text);

    trig_start(r, "");
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        trig_put_text(r, 0, 60, ISCSI_TAG_NONE, bad[i].pairs, bad[i].length);
        trig_expect_reject(r, 0, ISCSI_REJECT_PROTOCOL);
        r->cmd_sn--; /* T-REJ-03: its number is still open */
    }
    trig_put_text(r, 0, 60, 0x1234, NULL, 0); /* a stale TTT */
    trig_expect_reject(r, 0, ISCSI_REJECT_INVALID_FIELD);
    r->cmd_sn--;
    ASK(r, "SendTargets=", text);
    assert_int_equal(count(text, "TargetName="), 1);
    ASK(r, "X-test.vendor=1", text);
    assert_string_equal(text->bytes, "X-test.vendor=NotUnderstood");
    free(text);
}

/* C=1: one run of text in several PDUs, each answered with an empty one. */
static void text_in_pieces_is_put_together(struct trig *r)
{
    static const char pairs[] = "SendTargets=iqn.2026-01.test:disk";
    struct text *text = malloc(sizeof *text);
    uint32_t ttt = ISCSI_TAG_NONE;

    trig_start(r, "");
    for (uint32_t at = 0; at < sizeof pairs; at += 10) {
        uint32_t left = (uint32_t)sizeof pairs - at, n = left < 10 ? left : 10;
        struct iscsi_text_request pdu = {
            .more = at + n < sizeof pairs,
            .final = at + n == sizeof pairs,
            .itt = 60,
            .ttt = ttt,
            .cmd_sn = r->cmd_sn++,
            .exp_stat_sn = r->conns[0].exp_stat_sn,
        };
        uint8_t bhs[ISCSI_BHS_SIZE];
        struct wire_pdu got;

        iscsi_text_request_pack(bhs, &pdu);
        wire_put(&r->conns[0].wire, bhs, pairs + at, n);
        if (pdu.final)
            break;
        trig_expect(r, 0, ISCSI_TEXT_RESPONSE, &got);
        assert_int_equal(got.data_length, 0);
        assert_false(got.bhs[1] & 0x80);
        ttt = load_be32(got.bhs + 20);
    }
    take_text(r, 60, 8192, text);
    assert_int_equal(count(text, "TargetName=" RIG_TARGET), 1);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(send_targets_lists_what_the_initiator_may_use),
        RIG(send_targets_of_a_name_lists_that_target_only),
        RIG(a_normal_session_tells_of_its_own_target_only),
        RIG(a_long_answer_can_be_begun_again),
        RIG(a_discovery_session_takes_nothing_else),
        RIG(unnamed_discovery_sessions_are_told_apart_by_portal),
        RIG(a_new_segment_length_counts_when_the_exchange_has_ended_well),
        RIG(an_exchange_that_is_begun_anew_leaves_the_old_length),
        RIG(bad_text_is_rejected_without_effect),
        RIG(text_in_pieces_is_put_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
