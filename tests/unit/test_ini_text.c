/* SPDX-License-Identifier: BSD-2-Clause */
/* Text exchanges, discovery, logout. */
#include "ini_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_MAX = 1024 };

/* What a text exchange brought. */
struct seen {
    unsigned pairs, done;
    char key[SEEN_MAX][64];
    char value[SEEN_MAX][256];
};

static void on_pair(struct ini_text *text, const char *key, const char *value)
{
    struct seen *seen = text->user;

    assert_in_range(seen->pairs, 0, SEEN_MAX - 1);
    snprintf(seen->key[seen->pairs], 64, "%s", key);
    snprintf(seen->value[seen->pairs++], 256, "%s", value);
}

static void on_done(struct ini_text *text)
{
    ((struct seen *)text->user)->done++;
}

static const char send_targets[] = "SendTargets=All";

static struct ini_text all_targets(struct seen *seen)
{
    return (struct ini_text){.request = send_targets,
                             .request_length = sizeof send_targets,
                             .deadline_ns = INI_NEVER,
                             .pair = on_pair,
                             .done = on_done,
                             .user = seen};
}

static void discovery(struct rig *r)
{
    r->opts.login.target_name = NULL;
    r->opts.login.discovery = true;
    r->answers.discovery = true;
    rig_login(r);
}

static struct iscsi_text_request expect_text(struct peer *p, struct wire_pdu *got)
{
    struct iscsi_text_request text;

    peer_expect(p, ISCSI_TEXT_REQUEST, got);
    iscsi_text_request_unpack(got->bhs, &text);
    return text;
}

static struct seen *new_seen(void)
{
    struct seen *seen = calloc(1, sizeof *seen);

    assert_non_null(seen);
    return seen;
}

/* [I-DISC-01] [I-TXT-01] */
SCRIPT(send_targets_goes_alone_in_one_final_request)
{
    struct seen *seen = new_seen();
    struct ini_text text = all_targets(seen);
    struct wire_pdu got;

    discovery(r);
    struct peer *p = &r->peers[0];
    ini_text(p->c, &text);
    struct iscsi_text_request sent = expect_text(p, &got);
    assert_true(sent.final);
    assert_false(sent.more);
    assert_false(sent.immediate);
    assert_int_equal(sent.ttt, ISCSI_TAG_NONE);
    assert_int_not_equal(sent.itt, ISCSI_TAG_NONE);
    assert_int_equal(sent.cmd_sn, r->exp_cmd_sn);
    assert_int_equal(got.data_length, sizeof send_targets);
    assert_memory_equal(got.data, send_targets, sizeof send_targets);
    /* The tag of a final answer means nothing. */
    static const char answer[] = "TargetName=iqn.a:1\0TargetAddress=10.0.0.1:3260,1";
    peer_text(p,
              (struct iscsi_text_response){
                  .final = true, .itt = sent.itt, .ttt = 0x1234, PEER_NUMBERS(p, true)},
              answer, sizeof answer);
    peer_pump(p);
    assert_int_equal(seen->done, 1);
    assert_int_equal(text.result, INI_OK);
    assert_int_equal(seen->pairs, 2);
    assert_string_equal(seen->key[0], "TargetName");
    assert_string_equal(seen->value[1], "10.0.0.1:3260,1");
    peer_expect_silence(p);
    free(seen);
}

/* [I-DISC-02] [I-TXT-01] [I-NUM-08] */
SCRIPT(a_long_answer_is_taken_in_pieces_cut_anywhere)
{
    enum { TARGETS = 200, PIECES = 12 };
    static char whole[TARGETS * 80];
    struct rng rng = {r->seed};
    size_t length = 0;

    for (unsigned i = 0; i < TARGETS; i++) {
        length += (size_t)sprintf(whole + length, "TargetName=iqn.2026-01.example:%u", i) + 1;
        length += (size_t)sprintf(whole + length, "TargetAddress=[2001:db8::%x]:3260,1", i) + 1;
    }
    for (unsigned with_c = 0; with_c < 2; with_c++) {
        struct seen *seen = new_seen();
        struct ini_text text = all_targets(seen);
        struct wire_pdu got;
        size_t at = 0;
        discovery(r);
        struct peer *p = &r->peers[0];
        ini_text(p->c, &text);
        struct iscsi_text_request sent = expect_text(p, &got);
        uint32_t itt = sent.itt, cmd_sn = sent.cmd_sn;
        for (unsigned i = 0; i < PIECES; i++) {
            size_t n = i == PIECES - 1 ? length - at : rng_below(&rng, (length - at) / 2);
            uint64_t lun = 0x0001000000000000u + i;
            peer_text(p,
                      (struct iscsi_text_response){.final = i == PIECES - 1,
                                                   .more = with_c && i < PIECES - 1,
                                                   .lun = lun,
                                                   .itt = itt,
                                                   .ttt = i == PIECES - 1 ? ISCSI_TAG_NONE : 70 + i,
                                                   PEER_NUMBERS(p, true)},
                      whole + at, (uint32_t)n);
            at += n;
            peer_pump(p);
            if (i == PIECES - 1)
                break;
            sent = expect_text(p, &got);
            assert_int_equal(got.data_length, 0);
            assert_int_equal(sent.itt, itt);
            assert_int_equal(sent.ttt, 70 + i);
            assert_true(sent.lun == lun);
            assert_int_equal(sent.cmd_sn, ++cmd_sn);
            assert_int_equal(sent.final, !with_c);
            assert_false(sent.more);
        }
        assert_int_equal(seen->done, 1);
        assert_int_equal(text.result, INI_OK);
        assert_int_equal(seen->pairs, 2 * TARGETS);
        assert_string_equal(seen->value[2 * TARGETS - 2], "iqn.2026-01.example:199");
        peer_expect_silence(p);
        rig_close_all(r);
        free(seen);
    }
}

static void bad_answer(struct rig *r, bool final, bool more, uint32_t ttt, const char *text_bytes,
                       uint32_t n)
{
    struct seen *seen = new_seen();
    struct ini_text text = all_targets(seen);
    struct wire_pdu got;

    discovery(r);
    struct peer *p = &r->peers[0];
    ini_text(p->c, &text);
    peer_text(p,
              (struct iscsi_text_response){.final = final,
                                           .more = more,
                                           .itt = expect_text(p, &got).itt,
                                           .ttt = ttt,
                                           PEER_NUMBERS(p, true)},
              text_bytes, n);
    peer_pump(p);
    rig_expect_failure(r, INI_CLOSE_PROTOCOL);
    peer_expect_silence(p);
    rig_close_all(r);
    assert_int_equal(seen->done, 1);
    assert_int_equal(text.result, INI_LOST);
    r->event_count = 0;
    free(seen);
}

/* [I-DISC-04] */
SCRIPT(an_answer_that_goes_on_without_a_tag_ends_the_session)
{
    bad_answer(r, false, false, ISCSI_TAG_NONE, "A=1", 4);
    bad_answer(r, false, true, ISCSI_TAG_NONE, "A=1", 4);
}

/* [B-12] [B-20] */
SCRIPT(malformed_text_ends_the_session)
{
    static char endless[2048];

    memset(endless, 'A', sizeof endless);
    bad_answer(r, true, true, ISCSI_TAG_NONE, "A=1", 4);
    bad_answer(r, true, false, ISCSI_TAG_NONE, "A=1", 3);    /* no NUL */
    bad_answer(r, true, false, ISCSI_TAG_NONE, "=x", 3);     /* no key */
    bad_answer(r, true, false, ISCSI_TAG_NONE, "K", 2);      /* no = */
    bad_answer(r, true, false, ISCSI_TAG_NONE, "K=a\nb", 6); /* control character */
    bad_answer(r, false, false, 5, endless, sizeof endless); /* no end of a pair */
    bad_answer(r, true, false, ISCSI_TAG_NONE, endless, 900);
}

SCRIPT(an_answer_without_end_is_ended)
{
    struct seen *seen = new_seen();
    struct ini_text text = all_targets(seen);
    struct wire_pdu got;

    discovery(r);
    struct peer *p = &r->peers[0];
    text.deadline_ns = r->now + 30ull * SECOND_NS;
    ini_text(p->c, &text);
    uint32_t itt = expect_text(p, &got).itt;
    for (unsigned i = 0; i < 5; i++) {
        peer_text(p, (struct iscsi_text_response){.itt = itt, .ttt = i, PEER_NUMBERS(p, true)},
                  NULL, 0);
        peer_pump(p);
        expect_text(p, &got);
    }
    rig_tick(r, r->now + 30ull * SECOND_NS);
    rig_expect_failure(r, INI_CLOSE_TIMEOUT);
    rig_close_all(r);
    free(seen);
}

/* [I-DISC-05] */
SCRIPT(a_discovery_session_sends_text_and_logout_only)
{
    struct io io;
    struct seen *seen = new_seen();
    struct ini_text text = all_targets(seen);
    struct ini_tmf tmf = {.function = ISCSI_LOGICAL_UNIT_RESET, .deadline_ns = INI_NEVER};
    struct ini_ping ping = {.deadline_ns = INI_NEVER};
    struct ini_logout logout = {.reason = ISCSI_LOGOUT_CONNECTION, .deadline_ns = INI_NEVER};
    struct wire_pdu got;

    discovery(r);
    struct peer *p = &r->peers[0];
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    ini_tmf(r->s, &tmf);
    ini_ping(p->c, &ping);
    ini_conn_acknowledge(p->c);
    ini_logout(r->s, &logout);
    peer_nop_in(p, (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = 5, PEER_NUMBERS(p, false)},
                NULL, 0);
    peer_pump(p);
    peer_expect_silence(p);
    assert_int_equal(io.task.result, INI_REFUSED);
    assert_int_equal(tmf.result, INI_REFUSED);
    assert_int_equal(ping.result, INI_REFUSED);
    assert_int_equal(logout.result, INI_REFUSED);
    ini_text(p->c, &text);
    expect_text(p, &got);
    io_end(&io, 1);
    rig_close_all(r);
    free(seen);
}

/* [I-TXT-01] */
SCRIPT(one_text_request_is_outstanding_at_a_time)
{
    struct seen *a = new_seen(), *b = new_seen();
    struct ini_text first = all_targets(a), second = all_targets(b);
    struct io io;
    struct wire_pdu got;

    rig_login(r);
    struct peer *p = &r->peers[0];
    ini_text(p->c, &first);
    ini_text(p->c, &second);
    struct iscsi_text_request sent = expect_text(p, &got);
    assert_int_equal(sent.cmd_sn, r->exp_cmd_sn);
    peer_expect_silence(p);
    io_init(&io, INI_NONE, 0);
    io_start(r, &io);
    assert_int_equal(peer_expect_command(p, &got).cmd_sn, r->exp_cmd_sn + 1);
    peer_text(p,
              (struct iscsi_text_response){
                  .final = true, .itt = sent.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, true)},
              NULL, 0);
    peer_pump(p);
    assert_int_equal(a->done, 1);
    assert_int_not_equal(expect_text(p, &got).itt, sent.itt);
    rig_close_all(r);
    assert_int_equal(b->done, 1);
    io_end(&io, 1);
    free(a);
    free(b);
}

/* A request longer than the target takes. */
/* [I-LOG-13] */
SCRIPT(a_long_request_is_sent_in_pieces)
{
    static char request[3000];
    struct seen *seen = new_seen();
    struct ini_text text = all_targets(seen);
    struct wire_pdu got;
    size_t at = 0;

    for (unsigned i = 0; i < 30; i++) /* 100 bytes each */
        sprintf(request + i * 100, "X-com.example.%02u=%082d", i, 0);
    text.request = request;
    text.request_length = sizeof request;
    r->answers.mrdsl_in = 1024;
    rig_login(r);
    struct peer *p = &r->peers[0];
    ini_text(p->c, &text);
    for (unsigned i = 0; i < 3; i++) {
        struct iscsi_text_request sent = expect_text(p, &got);
        assert_int_equal(got.data_length, i < 2 ? 1024 : 3000 - 2048);
        assert_memory_equal(got.data, request + at, got.data_length);
        at += got.data_length;
        assert_int_equal(sent.more, i < 2);
        assert_int_equal(sent.final, i == 2);
        peer_text(p,
                  (struct iscsi_text_response){.final = i == 2,
                                               .itt = sent.itt,
                                               .ttt = i == 2 ? ISCSI_TAG_NONE : 9,
                                               PEER_NUMBERS(p, true)},
                  NULL, 0);
        peer_pump(p);
    }
    assert_int_equal(text.result, INI_OK);
    free(seen);
}

static void declare(struct rig *r, struct ini_text *text, struct seen *seen, uint32_t mrdsl,
                    struct iscsi_text_request *sent, struct wire_pdu *got)
{
    char expected[64];
    int n = snprintf(expected, sizeof expected, "MaxRecvDataSegmentLength=%u", (unsigned)mrdsl);

    *text = (struct ini_text){.mrdsl_in = mrdsl,
                              .deadline_ns = INI_NEVER,
                              .pair = on_pair,
                              .done = on_done,
                              .user = seen};
    ini_text(r->peers[0].c, text);
    *sent = expect_text(&r->peers[0], got);
    assert_int_equal(got->data_length, n + 1);
    assert_memory_equal(got->data, expected, (size_t)n + 1);
}

/* [I-TXT-02] */
SCRIPT(a_declared_segment_length_counts_when_the_exchange_has_ended_well)
{
    struct seen *seen = new_seen();
    struct ini_text text;
    struct wire_pdu got;
    struct iscsi_text_request sent;

    rig_login(r);
    struct peer *p = &r->peers[0];
    uint32_t before = ini_conn_params(p->c)->mrdsl_in;
    declare(r, &text, seen, 8192, &sent, &got);
    peer_reject(p, ISCSI_REJECT_PROTOCOL, got.bhs, ISCSI_BHS_SIZE);
    r->exp_cmd_sn++; /* the target counts it as received */
    peer_pump(p);
    assert_int_equal(text.result, INI_REJECTED);
    assert_int_equal(text.reject, ISCSI_REJECT_PROTOCOL);
    assert_int_equal(ini_conn_params(p->c)->mrdsl_in, before);
    while (wire_take(&p->w, &got)) /* the plug of the gap, see test_ini_error */
        if (got.h.opcode == ISCSI_NOP_OUT)
            peer_nop_in(p,
                        (struct iscsi_nop_in){
                            .itt = got.h.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, true)},
                        NULL, 0);
    peer_pump(p);

    declare(r, &text, seen, 8192, &sent, &got);
    static const char answer[] = "MaxRecvDataSegmentLength=4096";
    peer_text(p, (struct iscsi_text_response){.itt = sent.itt, .ttt = 3, PEER_NUMBERS(p, true)},
              answer, sizeof answer);
    peer_pump(p);
    assert_int_equal(ini_conn_params(p->c)->mrdsl_in, before); /* not ended yet */
    assert_int_equal(ini_conn_params(p->c)->mrdsl_out, r->answers.mrdsl_in);
    sent = expect_text(p, &got);
    peer_text(p,
              (struct iscsi_text_response){
                  .final = true, .itt = sent.itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, true)},
              NULL, 0);
    peer_pump(p);
    assert_int_equal(text.result, INI_OK);
    assert_int_equal(ini_conn_params(p->c)->mrdsl_in, 8192);
    assert_int_equal(ini_conn_params(p->c)->mrdsl_out, 4096);

    struct io io; /* and it is obeyed */
    io_init(&io, INI_WRITE, 16384);
    io_start(r, &io);
    peer_expect_command(p, &got);
    assert_int_equal(got.data_length, 4096);
    rig_close_all(r);
    io_end(&io, 1);
    free(seen);
}

/* ---- logout ---- */

static void on_logout(struct ini_logout *logout)
{
    (*(unsigned *)logout->user)++;
}

static struct iscsi_logout_request expect_logout(struct peer *p)
{
    struct iscsi_logout_request logout;
    struct wire_pdu got;

    peer_expect(p, ISCSI_LOGOUT_REQUEST, &got);
    iscsi_logout_request_unpack(got.bhs, &logout);
    return logout;
}

/* [I-LGO-01] [I-LGO-02] */
SCRIPT(nothing_new_follows_a_logout_request)
{
    struct io running, later;
    struct wire_pdu got;
    unsigned done = 0;
    struct ini_logout logout = {.reason = ISCSI_LOGOUT_SESSION,
                                .cid = 77,
                                .deadline_ns = INI_NEVER,
                                .done = on_logout,
                                .user = &done};
    uint8_t data[512];

    rig_login(r);
    struct peer *p = &r->peers[0];
    io_init(&running, INI_READ, 512);
    io_start(r, &running);
    uint32_t itt = peer_expect_command(p, &got).itt;
    ini_logout(r->s, &logout);
    struct iscsi_logout_request sent = expect_logout(p);
    assert_int_equal(sent.reason, ISCSI_LOGOUT_SESSION);
    assert_int_equal(sent.cid, 0); /* reserved */
    io_init(&later, INI_NONE, 0);
    io_start(r, &later);
    peer_nop_in(p, (struct iscsi_nop_in){.itt = ISCSI_TAG_NONE, .ttt = 5, PEER_NUMBERS(p, false)},
                NULL, 0);
    io_fill(data, 0, sizeof data);
    peer_data_in(p,
                 (struct iscsi_data_in){
                     .final = true, .itt = itt, .ttt = ISCSI_TAG_NONE, PEER_NUMBERS(p, false)},
                 data, sizeof data);
    peer_respond(p,
                 (struct iscsi_scsi_response){.itt = itt, .exp_data_sn = 1, PEER_NUMBERS(p, true)},
                 NULL, 0);
    peer_pump(p);
    peer_expect_silence(p);
    assert_int_equal(running.task.result, INI_OK); /* what comes before the response counts */
    assert_int_equal(later.task.result, INI_REFUSED);
    peer_logout(p, sent.itt, ISCSI_LOGOUT_DONE);
    peer_pump(p);
    assert_int_equal(done, 1);
    assert_int_equal(logout.result, INI_OK);
    rig_expect_failure(r, INI_CLOSE_LOGGED_OUT);
    assert_int_equal(rig_events(r, INI_EVENT_LOGGED_OUT), 0);
    peer_lose(p);
    assert_int_equal(rig_events(r, INI_EVENT_LOGGED_OUT), 1);
    io_end(&running, 1);
    io_end(&later, 1);
}

/* [I-LGO-01] */
SCRIPT(a_logout_without_a_response_in_time_closes_the_connection)
{
    unsigned done = 0;
    struct ini_logout logout = {.reason = ISCSI_LOGOUT_SESSION, .done = on_logout, .user = &done};

    rig_login(r);
    struct peer *p = &r->peers[0];
    logout.deadline_ns = r->now + 5ull * SECOND_NS;
    ini_logout(r->s, &logout);
    expect_logout(p);
    rig_tick(r, r->now + 5ull * SECOND_NS);
    rig_expect_failure(r, INI_CLOSE_TIMEOUT);
    peer_lose(p);
    assert_int_equal(logout.result, INI_LOST);
    assert_int_equal(rig_events(r, INI_EVENT_LOGGED_OUT), 0);
    assert_int_equal(rig_events(r, INI_EVENT_SESSION_DROPPED), 1);
}

/* [I-LGO-02] [I-LGO-03] */
SCRIPT(logout_responses_are_reported_and_times_only_with_2_and_3)
{
    for (uint8_t response = 0; response < 4; response++) {
        unsigned done = 0;
        struct ini_logout logout = {.reason = ISCSI_LOGOUT_CONNECTION,
                                    .cid = 0,
                                    .deadline_ns = INI_NEVER,
                                    .done = on_logout,
                                    .user = &done};
        rig_login(r);
        struct peer *p = &r->peers[0];
        ini_logout(r->s, &logout);
        struct iscsi_logout_request sent = expect_logout(p);
        assert_int_equal(sent.reason, ISCSI_LOGOUT_CONNECTION);
        assert_int_equal(sent.cid, p->cid);
        struct iscsi_logout_response pdu = {.response = response,
                                            .itt = sent.itt,
                                            .time2wait = 3,
                                            .time2retain = 60,
                                            PEER_NUMBERS(p, true)};
        uint8_t bhs[ISCSI_BHS_SIZE];
        iscsi_logout_response_pack(bhs, &pdu);
        wire_put(&p->w, bhs, NULL, 0);
        peer_pump(p);
        assert_int_equal(done, 1);
        assert_int_equal(logout.response, response);
        assert_int_equal(logout.time2wait, response >= 2 ? 3 : 0);
        assert_int_equal(logout.time2retain, response >= 2 ? 60 : 0);
        rig_close_all(r);
        r->event_count = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_targets_goes_alone_in_one_final_request),
        cmocka_unit_test(a_long_answer_is_taken_in_pieces_cut_anywhere),
        cmocka_unit_test(an_answer_that_goes_on_without_a_tag_ends_the_session),
        cmocka_unit_test(malformed_text_ends_the_session),
        cmocka_unit_test(an_answer_without_end_is_ended),
        cmocka_unit_test(a_discovery_session_sends_text_and_logout_only),
        cmocka_unit_test(one_text_request_is_outstanding_at_a_time),
        cmocka_unit_test(a_long_request_is_sent_in_pieces),
        cmocka_unit_test(a_declared_segment_length_counts_when_the_exchange_has_ended_well),
        cmocka_unit_test(nothing_new_follows_a_logout_request),
        cmocka_unit_test(a_logout_without_a_response_in_time_closes_the_connection),
        cmocka_unit_test(logout_responses_are_reported_and_times_only_with_2_and_3),
    };
    return cmocka_run_group_tests_name("ini_text", tests, NULL, NULL);
}
