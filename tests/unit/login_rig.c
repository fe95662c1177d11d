/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "login_rig.h"

void rig_need_hashes(void)
{
    if (hash_size(HASH_MD5) == 0) {
        print_message("built without nettle\n");
        skip();
    }
}

struct chap_credentials rig_credentials(const char *user, const char *secret)
{
    return (struct chap_credentials){user, secret, strlen(secret)};
}

int rig_random(void *rng, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)rng_next(rng);
    return 0;
}

size_t rig_text(const char *script, char *text, size_t size)
{
    size_t n = strlen(script);

    assert_true(n <= size);
    for (size_t i = 0; i < n; i++)
        text[i] = script[i] == '\n' ? '\0' : script[i];
    return n;
}

const char *rig_value(const void *text, size_t n, const char *key)
{
    struct text_scan scan;
    struct text_pair pair;

    text_scan_init(&scan, text, n);
    while (text_next(&scan, &pair) == TEXT_PAIR)
        if (strcmp(pair.key, key) == 0)
            return pair.value;
    return NULL;
}

/* ---- initiator ---- */

void ini_rig_init(struct ini_rig *r, uint64_t seed)
{
    memset(r, 0, sizeof(*r));
    r->rng.state = seed;
    r->l = malloc(sizeof(*r->l));
    assert_non_null(r->l);
    r->opts = (struct login_ini_opts){
        .initiator_name = RIG_INITIATOR,
        .target_name = RIG_TARGET,
        .isid = {0x80, 1, 2, 3, 4, 5},
        .cid = 7,
        .itt = 0x1234,
        .cmd_sn = 0xfffffffe,
        .portal_group_tag = -1,
        .random = rig_random,
        .random_user = &r->rng,
    };
    iscsi_wishes_default(&r->opts.wishes);
    r->stat_sn = 100;
}

void ini_rig_chap(struct ini_rig *r, bool mutual)
{
    rig_need_hashes();
    r->opts.chap = rig_credentials(RIG_USER, RIG_SECRET);
    if (mutual)
        r->opts.mutual = rig_credentials(RIG_MUTUAL_USER, RIG_MUTUAL_SECRET);
}

void ini_rig_start(struct ini_rig *r)
{
    struct lp_error err = {0};

    if (login_ini_check(&r->opts, false, &err) < 0)
        fail_msg("%s", err.msg);
    login_ini_start(r->l, &r->opts);
    assert_true(ini_rig_next(r));
}

void ini_rig_free(struct ini_rig *r)
{
    login_ini_end(r->l);
    free(r->l);
}

bool ini_rig_next(struct ini_rig *r)
{
    uint8_t bhs[ISCSI_BHS_SIZE];

    if (!login_ini_request(r->l, bhs, &r->text, &r->n))
        return false;
    iscsi_login_request_unpack(bhs, &r->request);
    assert_true(r->request.immediate);
    assert_int_equal(r->request.data_segment_length, r->n);
    assert_true(r->n <= ISCSI_LOGIN_MRDSL);
    assert_false(r->request.more && r->request.transit);
    return true;
}

const char *ini_rig_said(const struct ini_rig *r, const char *key)
{
    return rig_value(r->text, r->n, key);
}

struct iscsi_login_response ini_rig_answer(const struct ini_rig *r)
{
    return (struct iscsi_login_response){
        .transit = r->request.transit,
        .csg = r->request.csg,
        .nsg = r->request.transit ? r->request.nsg : 0,
        .itt = r->request.itt,
        .tsih = r->request.transit && r->request.nsg == ISCSI_STAGE_FULL_FEATURE
                    ? (r->request.tsih ? r->request.tsih : 77)
                    : r->request.tsih,
        .stat_sn = r->stat_sn,
        .exp_cmd_sn = r->request.cmd_sn,
        .max_cmd_sn = r->request.cmd_sn + 31,
    };
}

enum login_result ini_rig_respond(struct ini_rig *r, const struct iscsi_login_response *pdu,
                                  const char *script)
{
    static char text[RIG_TEXT];
    struct iscsi_login_response copy = *pdu;
    uint8_t bhs[ISCSI_BHS_SIZE];

    copy.data_segment_length = (uint32_t)rig_text(script, text, sizeof(text));
    memcpy(copy.isid, r->request.isid, sizeof(copy.isid));
    iscsi_login_response_pack(bhs, &copy);
    r->stat_sn = pdu->stat_sn + 1;
    return login_ini_response(r->l, bhs, text, copy.data_segment_length);
}

enum login_result ini_rig_reply(struct ini_rig *r, bool transit, const char *script)
{
    struct iscsi_login_response pdu = ini_rig_answer(r);
    enum login_result result;

    if (!transit) {
        pdu.transit = false;
        pdu.nsg = 0;
        pdu.tsih = r->request.tsih;
    }
    result = ini_rig_respond(r, &pdu, script);
    assert_true(ini_rig_next(r) == (result == LOGIN_MORE));
    return result;
}

/* ---- target ---- */

static uint16_t lookup(void *user, struct login_tgt *l, struct login_policy *policy)
{
    struct tgt_rig *r = user;

    assert_ptr_equal(l, r->l);
    assert_true(l->initiator_name[0]);
    *policy = r->policy;
    r->lookups++;
    return r->lookup;
}

static bool secret(void *user, struct login_tgt *l, const char *name, struct chap_credentials *c,
                   const char **bound)
{
    struct tgt_rig *r = user;
    (void)l;

    if (strcmp(name, RIG_USER) != 0)
        return false;
    *c = rig_credentials(RIG_USER, RIG_SECRET);
    *bound = r->bound;
    return true;
}

static int randomness(void *user, void *bytes, size_t n)
{
    struct tgt_rig *r = user;

    return rig_random(&r->rng, bytes, n);
}

static uint16_t check(void *user, struct login_tgt *l, const struct iscsi_params **base)
{
    struct tgt_rig *r = user;
    (void)l;

    *base = r->base;
    r->checks++;
    return r->check;
}

static uint16_t begin(void *user, struct login_tgt *l, uint16_t *tsih)
{
    struct tgt_rig *r = user;
    (void)l;

    *tsih = r->tsih;
    r->begins++;
    return r->begin;
}

static const struct login_tgt_ops ops = {lookup, secret, randomness};
static const struct login_tgt_session_ops session_ops = {check, begin};

void tgt_rig_init(struct tgt_rig *r, uint64_t seed)
{
    memset(r, 0, sizeof(*r));
    r->rng.state = seed;
    r->l = malloc(sizeof(*r->l));
    assert_non_null(r->l);
    r->tsih = 55;
    r->policy.portal_group_tag = 1;
    r->opts = (struct login_tgt_opts){
        .ops = &ops,
        .user = r,
        .session_ops = &session_ops,
        .session_user = r,
        .stat_sn = 500,
        .window = 16,
    };
    iscsi_wishes_default(&r->opts.wishes);
    r->request = (struct iscsi_login_request){
        .immediate = true,
        .isid = {0x80, 1, 2, 3, 4, 5},
        .itt = 0x1234,
        .cid = 7,
        .cmd_sn = 123,
    };
}

void tgt_rig_chap(struct tgt_rig *r, bool mutual)
{
    rig_need_hashes();
    r->policy.chap = true;
    if (mutual)
        r->policy.mutual = rig_credentials(RIG_MUTUAL_USER, RIG_MUTUAL_SECRET);
}

void tgt_rig_start(struct tgt_rig *r)
{
    login_tgt_start(r->l, &r->opts);
}

void tgt_rig_free(struct tgt_rig *r)
{
    login_tgt_end(r->l);
    free(r->l);
}

static void look_at_response(struct tgt_rig *r)
{
    const uint8_t *bhs;

    login_tgt_response(r->l, &bhs, &r->text, &r->n);
    iscsi_login_response_unpack(bhs, &r->response);
    assert_int_equal(bhs[0], ISCSI_LOGIN_RESPONSE);
    assert_int_equal(r->response.data_segment_length, r->n);
    assert_true(r->n <= ISCSI_LOGIN_MRDSL);
    assert_int_equal(r->response.itt, r->request.itt);
    assert_int_equal(r->response.version_active, 0);
    assert_false(r->response.more && r->response.transit);
    assert_false(r->response.transit && !r->request.transit);
    if (r->response.status != ISCSI_LOGIN_OK)
        assert_true(r->l->sentence[0]);
}

enum login_result tgt_rig_send_text(struct tgt_rig *r, const void *text, size_t n)
{
    uint8_t bhs[ISCSI_BHS_SIZE];
    enum login_result result;

    r->request.data_segment_length = (uint32_t)n;
    iscsi_login_request_pack(bhs, &r->request);
    result = login_tgt_request(r->l, bhs, text, n);
    if (result != LOGIN_CLOSE) {
        look_at_response(r);
        assert_true((result == LOGIN_FAILED) == (r->response.status != ISCSI_LOGIN_OK));
    }
    return result;
}

enum login_result tgt_rig_send(struct tgt_rig *r, const char *script)
{
    static char text[RIG_TEXT];
    size_t n = rig_text(script, text, sizeof(text));

    return tgt_rig_send_text(r, text, n);
}

enum login_result tgt_rig_ask(struct tgt_rig *r, enum iscsi_stage csg, bool transit,
                              const char *script)
{
    r->request.csg = (uint8_t)csg;
    r->request.transit = transit;
    r->request.nsg = !transit                         ? 0
                     : csg == ISCSI_STAGE_OPERATIONAL ? ISCSI_STAGE_FULL_FEATURE
                                                      : ISCSI_STAGE_OPERATIONAL;
    return tgt_rig_send(r, script);
}

const char *tgt_rig_said(const struct tgt_rig *r, const char *key)
{
    return rig_value(r->text, r->n, key);
}

/* ---- both ---- */

/* The initiator's request in pieces; the target's answer to the last one counts. */
static enum login_result carry_request(struct ini_rig *ini, struct tgt_rig *tgt, size_t cut)
{
    struct iscsi_login_request whole = ini->request;
    size_t at = 0;

    while (cut > 0 && ini->n - at > cut) {
        tgt->request = whole;
        tgt->request.transit = false;
        tgt->request.nsg = 0;
        tgt->request.more = true;
        if (tgt_rig_send_text(tgt, ini->text + at, cut) != LOGIN_MORE)
            fail_msg("%s", tgt->l->sentence);
        assert_int_equal(tgt->n, 0);
        assert_false(tgt->response.transit || tgt->response.more);
        at += cut;
    }
    tgt->request = whole;
    return tgt_rig_send_text(tgt, ini->text + at, ini->n - at);
}

static enum login_result carry_response(struct ini_rig *ini, struct tgt_rig *tgt, size_t cut)
{
    struct iscsi_login_response pdu = tgt->response;
    const uint8_t *text = tgt->text;
    uint8_t bhs[ISCSI_BHS_SIZE];
    size_t n = tgt->n;

    for (; cut > 0 && n > cut; text += cut, n -= cut) {
        pdu.transit = false;
        pdu.nsg = 0;
        pdu.more = true;
        pdu.data_segment_length = (uint32_t)cut;
        iscsi_login_response_pack(bhs, &pdu);
        if (login_ini_response(ini->l, bhs, text, cut) != LOGIN_MORE)
            fail_msg("%s", ini->l->sentence);
        assert_true(ini_rig_next(ini));
        assert_int_equal(ini->n, 0);
        assert_false(ini->request.more);
    }
    pdu = tgt->response;
    pdu.data_segment_length = (uint32_t)n;
    iscsi_login_response_pack(bhs, &pdu);
    return login_ini_response(ini->l, bhs, text, n);
}

enum login_result rig_login(struct ini_rig *ini, struct tgt_rig *tgt, size_t cut,
                            enum login_result *tgt_result)
{
    enum login_result result = LOGIN_MORE;

    tgt_rig_start(tgt);
    ini_rig_start(ini);
    for (unsigned round = 0; round < 200; round++) {
        /* A refusal is not cut; its text is short. */
        *tgt_result = carry_request(ini, tgt, cut);
        result = carry_response(ini, tgt, tgt->response.status ? 0 : cut);
        if (result != LOGIN_MORE || *tgt_result != LOGIN_MORE)
            return result;
        assert_true(ini_rig_next(ini));
    }
    fail_msg("the login has no end");
    return result;
}
