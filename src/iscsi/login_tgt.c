/* SPDX-License-Identifier: BSD-2-Clause */
/* The target's side of the login phase: stages, names, responses. Authentication is in
 * login_tgt_chap.c; see login.h. */
#include <stdio.h>
#include <string.h>

#include "iscsi/login.h"
#include "iscsi/login_tgt_int.h"

/* ---- responses ---- */

static void pack_response(struct login_tgt *l, bool transit, bool more, uint16_t status)
{
    struct iscsi_login_response r = {
        .transit = transit,
        .more = more,
        .csg = l->request.csg,
        .nsg = transit ? l->request.nsg : 0,
        .data_segment_length = (uint32_t)l->piece_length,
        .tsih = l->tsih,
        .itt = l->request.itt,
        .stat_sn = l->stat_sn,
        .exp_cmd_sn = l->exp_cmd_sn,
        .max_cmd_sn = l->max_cmd_sn,
        .status = status,
    };

    memcpy(r.isid, l->request.isid, sizeof(r.isid));
    iscsi_login_response_pack(l->response_bhs, &r);
    l->stat_sn++;
}

void login_tgt_response(const struct login_tgt *l, const uint8_t **bhs, const void **text,
                        size_t *length)
{
    *bhs = l->response_bhs;
    *text = l->out.bytes + l->piece_at;
    *length = l->piece_length;
}

static void next_piece(struct login_tgt *l)
{
    const void *piece;

    l->piece_at = l->out.sent;
    l->piece_length = login_text_piece(&l->out, &piece);
    l->out.sent += l->piece_length;
}

/* A refusal says nothing but its status, and where to go if it is a redirection. */
enum login_result login_tgt_fail(struct login_tgt *l, uint16_t status, const char *sentence)
{
    struct text_writer w;

    l->status = status;
    snprintf(l->sentence, sizeof(l->sentence), "%s", sentence);
    login_text_begin(&l->out, &w);
    if (status >> 8 == 1 && l->policy.address)
        text_put(&w, "TargetAddress", l->policy.address);
    login_text_end(&l->out, &w);
    next_piece(l);
    pack_response(l, false, false, status);
    return LOGIN_FAILED;
}

enum login_result login_tgt_refuse(struct login_tgt *l, uint16_t status)
{
    return login_tgt_fail(l, status, login_status_sentence(status, true, false));
}

enum login_result login_tgt_unexpected(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE])
{
    struct iscsi_bhs h;
    char name[32];

    iscsi_bhs_unpack(bhs, &h);
    if (!l->begun) {
        snprintf(l->sentence, sizeof(l->sentence), "the first PDU was %s and no Login Request",
                 iscsi_opcode_name(h.opcode, name));
        return LOGIN_CLOSE;
    }
    l->request.itt = h.itt;
    snprintf(l->sentence, sizeof(l->sentence), "%s came during the login",
             iscsi_opcode_name(h.opcode, name));
    return login_tgt_fail(l, ISCSI_LOGIN_INVALID_DURING_LOGIN, l->sentence);
}

/* ---- beginning ---- */

void login_tgt_start(struct login_tgt *l, const struct login_tgt_opts *opts)
{
    memset(l, 0, sizeof(*l));
    l->opts = opts;
    l->stat_sn = opts->stat_sn;
}

void login_tgt_end(struct login_tgt *l)
{
    if (l->opts && l->opts->outstanding && l->challenged)
        chap_outstanding_remove(l->opts->outstanding, l->challenge);
    bytes_wipe(l, sizeof(*l));
}

/* What is wrong with a request's header; 0: nothing (T-LOG-05, T-LOG-09, T-LOG-13). */
static uint16_t header_error(const struct login_tgt *l, const struct iscsi_login_request *r,
                             const char **why)
{
    const struct iscsi_login_request *first = &l->request;

    if (r->version_min > 0) {
        *why = "the initiator does not speak version 0";
        return ISCSI_LOGIN_VERSION;
    }
    if (l->begun &&
        (memcmp(r->isid, first->isid, sizeof(r->isid)) != 0 || r->tsih != first->tsih ||
         r->cid != first->cid || r->itt != first->itt || r->version_max != first->version_max ||
         r->version_min != first->version_min)) {
        *why = "ISID, TSIH, CID, task tag or version changed during the login";
        return ISCSI_LOGIN_INITIATOR_ERROR;
    }
    if (r->transit && r->more) {
        *why = "both T and C were set";
        return ISCSI_LOGIN_INITIATOR_ERROR;
    }
    if (r->csg > ISCSI_STAGE_OPERATIONAL || (l->begun && r->csg != l->csg)) {
        *why = "the current stage (CSG) is not the one of the login";
        return ISCSI_LOGIN_INITIATOR_ERROR;
    }
    if (r->transit && (r->nsg <= r->csg || r->nsg == 2)) {
        *why = "the next stage (NSG) does not follow the current one";
        return ISCSI_LOGIN_INITIATOR_ERROR;
    }
    return 0;
}

static void first_request(struct login_tgt *l, const struct iscsi_login_request *r)
{
    memcpy(l->isid, r->isid, sizeof(l->isid));
    l->tsih = r->tsih;
    l->cid = r->cid;
    l->csg = r->csg;
    l->exp_cmd_sn = r->cmd_sn;
    l->max_cmd_sn = r->cmd_sn + l->opts->window - 1;
    l->begun = true;
}

/* ---- names ---- */

static enum login_result copy_name(struct login_tgt *l, const struct text_pair *pair,
                                   char name[ISCSI_NAME_MAX + 1])
{
    struct lp_error err;

    if (iscsi_name_check(pair->value, pair->key, &err) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, err.msg);
    memcpy(name, pair->value, pair->value_length + 1);
    return LOGIN_MORE;
}

static enum login_result take_name(struct login_tgt *l, const struct text_pair *pair)
{
    if (strcmp(pair->key, "InitiatorName") == 0)
        return copy_name(l, pair, l->initiator_name);
    if (strcmp(pair->key, "TargetName") == 0)
        return copy_name(l, pair, l->target_name);
    if (strcmp(pair->key, "InitiatorAlias") == 0 &&
        pair->value_length < sizeof(l->initiator_alias) && text_printable(pair->value))
        memcpy(l->initiator_alias, pair->value, pair->value_length + 1);
    if (strcmp(pair->key, "SessionType") == 0) {
        l->discovery = strcmp(pair->value, "Discovery") == 0;
        if (!l->discovery && strcmp(pair->value, "Normal") != 0)
            return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                                  "SessionType is neither Normal nor Discovery");
    }
    return LOGIN_MORE;
}

/* Who wants to go where, and may they: once, when the first whole turn is in. */
static enum login_result admit(struct login_tgt *l)
{
    const struct login_tgt_opts *opts = l->opts;
    const struct iscsi_params *base = NULL;
    struct text_scan scan;
    struct text_pair pair;
    uint16_t status;

    text_scan_init(&scan, l->in, l->in_length);
    while (text_next(&scan, &pair) == TEXT_PAIR) {
        enum login_result result = take_name(l, &pair);

        if (result != LOGIN_MORE)
            return result;
    }
    if (!l->initiator_name[0])
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER, "no InitiatorName was given");
    if (!l->discovery && !l->target_name[0])
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER, "no TargetName was given");
    status = opts->ops->lookup(opts->user, l, &l->policy);
    if (status == ISCSI_LOGIN_OK)
        status = opts->check(opts->session_user, l, &base);
    if (status != ISCSI_LOGIN_OK)
        return login_tgt_refuse(l, status);
    if (l->policy.chap && l->csg != ISCSI_STAGE_SECURITY)
        return login_tgt_fail(l, ISCSI_LOGIN_AUTHENTICATION,
                              "the initiator skips the security stage though it must authenticate");
    keys_begin(&l->keys, false, l->discovery, &opts->wishes, base);
    l->named = true;
    return LOGIN_MORE;
}

/* ---- a turn ---- */

/* Keys outside of keys.h that came before in this login. */
static bool seen_before(struct login_tgt *l, unsigned bit)
{
    bool before = l->seen & 1u << bit;

    l->seen |= 1u << bit;
    return before;
}

static enum login_result twice(struct login_tgt *l, const char *key)
{
    char sentence[128];

    snprintf(sentence, sizeof(sentence), "the key %s came twice", key);
    return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, sentence);
}

static enum login_result wrong_stage(struct login_tgt *l, const char *key)
{
    char sentence[128];

    snprintf(sentence, sizeof(sentence), "the key %s does not belong in this stage", key);
    return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, sentence);
}

static enum login_result take_pair(struct login_tgt *l, const struct text_pair *pair,
                                   struct login_turn *turn, struct text_writer *w)
{
    static const char *const declared[] = {"InitiatorName", "TargetName", "InitiatorAlias",
                                           "SessionType"};
    static const char *const security[] = {"AuthMethod", "CHAP_A", "CHAP_I",
                                           "CHAP_C",     "CHAP_N", "CHAP_R"};
    const char **fields[] = {&turn->auth_method, &turn->chap_a, &turn->chap_i,
                             &turn->chap_c,      &turn->chap_n, &turn->chap_r};
    struct keys_error err;

    for (unsigned i = 0; i < 4; i++)
        if (strcmp(pair->key, declared[i]) == 0)
            return seen_before(l, i) ? twice(l, pair->key) : LOGIN_MORE;
    for (unsigned i = 0; i < 6; i++) {
        if (strcmp(pair->key, security[i]) != 0)
            continue;
        if (l->csg != ISCSI_STAGE_SECURITY)
            return wrong_stage(l, pair->key);
        if (seen_before(l, 8 + i))
            return twice(l, pair->key);
        *fields[i] = pair->value;
        return LOGIN_MORE;
    }
    if (strncmp(pair->key, "Target", 6) == 0 || strcmp(pair->key, "SendTargets") == 0)
        return wrong_stage(l, pair->key); /* the target's own to say, or for later */
    if (l->csg == ISCSI_STAGE_SECURITY && keys_standard(pair->key))
        return wrong_stage(l, pair->key);
    if (keys_receive(&l->keys, pair, w, &err) < 0)
        return login_tgt_fail(l, err.status, err.sentence);
    return LOGIN_MORE;
}

static enum login_result take_text(struct login_tgt *l, struct login_turn *turn,
                                   struct text_writer *w)
{
    struct text_scan scan;
    struct text_pair pair;
    enum text_result got;

    text_scan_init(&scan, l->in, l->in_length);
    while ((got = text_next(&scan, &pair)) == TEXT_PAIR) {
        enum login_result result = take_pair(l, &pair, turn, w);

        if (result != LOGIN_MORE)
            return result;
    }
    if (got == TEXT_BAD)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the text has something that is no key=value pair");
    return LOGIN_MORE;
}

/* Full feature phase is asked for and granted: the session begins. */
static enum login_result finish(struct login_tgt *l)
{
    struct keys_error err;
    uint16_t status;

    if (keys_finish(&l->keys, &err) < 0)
        return login_tgt_fail(l, err.status, err.sentence);
    l->params = l->keys.result;
    status = l->opts->begin(l->opts->session_user, l, &l->tsih);
    return status == ISCSI_LOGIN_OK ? LOGIN_DONE : login_tgt_refuse(l, status);
}

/* Sends the next piece of what we have to say; with the last one the stage may change. */
static enum login_result respond(struct login_tgt *l)
{
    bool more, transit;

    next_piece(l);
    more = l->out.sent < l->out.length;
    transit =
        l->request.transit && !more && (l->csg != ISCSI_STAGE_SECURITY || l->step == TGT_AUTH_DONE);
    if (transit && l->request.nsg == ISCSI_STAGE_FULL_FEATURE) {
        enum login_result result = finish(l);

        if (result == LOGIN_DONE)
            pack_response(l, true, false, ISCSI_LOGIN_OK);
        return result;
    }
    pack_response(l, transit, more, ISCSI_LOGIN_OK);
    if (transit)
        l->csg = l->request.nsg;
    return LOGIN_MORE;
}

static enum login_result take_turn(struct login_tgt *l)
{
    struct login_turn turn = {0};
    struct text_writer w;
    enum login_result result = LOGIN_MORE;

    if (!l->named)
        result = admit(l);
    if (result != LOGIN_MORE)
        return result;
    login_text_begin(&l->out, &w);
    if (!l->discovery && !l->told_tag) {
        text_put_number(&w, "TargetPortalGroupTag", l->policy.portal_group_tag);
        l->told_tag = true;
    }
    result = take_text(l, &turn, &w);
    if (result == LOGIN_MORE && l->csg == ISCSI_STAGE_SECURITY)
        result = login_tgt_security(l, &turn, &w);
    bytes_wipe(l->in, l->in_length);
    l->in_length = 0;
    if (result != LOGIN_MORE)
        return result;
    if (l->csg == ISCSI_STAGE_OPERATIONAL && !l->offered) {
        keys_offer(&l->keys, &w);
        l->offered = true;
    }
    if (w.overflow)
        return login_tgt_fail(l, ISCSI_LOGIN_OUT_OF_RESOURCES, "the answers take too much room");
    login_text_end(&l->out, &w);
    return respond(l);
}

enum login_result login_tgt_request(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                    const void *data, size_t n)
{
    struct iscsi_login_request r;
    const char *why = NULL;
    bool speaking = l->out.sent < l->out.length; /* we are in a C series of our own */
    uint16_t status;

    iscsi_login_request_unpack(bhs, &r);
    status = header_error(l, &r, &why);
    if (!l->begun)
        first_request(l, &r);
    else
        r.tsih = l->request.tsih;
    l->request = r;
    if (status)
        return login_tgt_fail(l, status, why);
    if (++l->rounds > LOGIN_ROUNDS_MAX)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, "the login does not come to an end");
    if (n > sizeof(l->in) - l->in_length)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, "the login has too many keys");
    if (speaking) {
        if (n > 0 || r.more)
            return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                                  "keys came before the target's answer was complete");
        return respond(l);
    }
    if (n > 0)
        memcpy(l->in + l->in_length, data, n);
    l->in_length += n;
    if (r.more) {
        l->out.length = l->out.sent = 0;
        next_piece(l);
        pack_response(l, false, false, ISCSI_LOGIN_OK);
        return LOGIN_MORE;
    }
    return take_turn(l);
}
