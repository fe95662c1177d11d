/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's side of the login phase: see login.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "iscsi/login.h"
#include "iscsi/login_int.h"

/* ---- failing ---- */

static enum login_result fail(struct login_ini *l, bool retryable, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static enum login_result fail(struct login_ini *l, bool retryable, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(l->sentence, sizeof(l->sentence), fmt, args);
    va_end(args);
    l->retryable = retryable;
    l->awaiting = true; /* nothing more is sent */
    return LOGIN_FAILED;
}

static bool has_chap(const struct login_ini *l)
{
    return l->opts->chap.user != NULL;
}

static bool has_mutual(const struct login_ini *l)
{
    return l->opts->mutual.user != NULL;
}

/* Some old targets refuse any CHAP_A but "5" (A1). Worth one try if we chose the list. */
static bool list_may_be_refused(const struct login_ini *l)
{
    return l->step == INI_CHAP_A && !l->opts->chap_algorithms && strcmp(l->list, "5") != 0 &&
           chap_pick(l->list, "5") == HASH_MD5;
}

/* ---- starting ---- */

int login_ini_check(const struct login_ini_opts *opts, bool allow_short_secrets,
                    struct lp_error *err)
{
    char list[CHAP_LIST_MAX];

    if (iscsi_name_check(opts->initiator_name, "initiator name", err) < 0)
        return -1;
    if (!opts->discovery && iscsi_name_check(opts->target_name, "target name", err) < 0)
        return -1;
    if (opts->mutual.user && !opts->chap.user)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the target can only be asked to authenticate itself when the "
                            "initiator does too; give a user and a secret for it");
    if (!opts->chap.user)
        return 0;
    if (chap_credentials_check(&opts->chap, NULL, allow_short_secrets, "secret of the initiator",
                               err) < 0)
        return -1;
    chap_list(opts->chap_algorithms, list);
    if (!list[0])
        return lp_error_set(err, LP_ERROR_USAGE, 0, "no CHAP algorithm is available: %s",
                            hash_size(HASH_MD5)
                                ? "the list names none of 5, 6, 7 and 8"
                                : "this build has no nettle library; build with it");
    if (opts->mutual.user) {
        struct chap_credentials mutual = opts->mutual;

        if (!mutual.user[0])
            mutual.user = "any"; /* its name is not compared */
        return chap_credentials_check(&mutual, &opts->chap, allow_short_secrets,
                                      "secret of the target", err);
    }
    return 0;
}

void login_ini_start(struct login_ini *l, const struct login_ini_opts *opts)
{
    struct text_writer w;

    memset(l, 0, sizeof(*l));
    l->opts = opts;
    l->csg = ISCSI_STAGE_SECURITY;
    l->tsih = opts->tsih;
    l->portal_group_tag = -1;
    chap_list(opts->chap_algorithms, l->list);
    keys_begin(&l->keys, true, opts->discovery, &opts->wishes, opts->session);

    login_text_begin(&l->out, &w);
    text_put(&w, "InitiatorName", opts->initiator_name);
    if (opts->initiator_alias)
        text_put(&w, "InitiatorAlias", opts->initiator_alias);
    if (!opts->discovery)
        text_put(&w, "TargetName", opts->target_name);
    text_put(&w, "SessionType", opts->discovery ? "Discovery" : "Normal");
    if (has_chap(l)) {
        text_put(&w, "AuthMethod", opts->chap_optional && !has_mutual(l) ? "CHAP,None" : "CHAP");
    } else {
        text_put(&w, "AuthMethod", "None");
        l->transit = true;
    }
    login_text_end(&l->out, &w);
}

void login_ini_end(struct login_ini *l)
{
    if (l->opts && l->opts->outstanding && l->mutual_sent)
        chap_outstanding_remove(l->opts->outstanding, l->challenge);
    bytes_wipe(l, sizeof(*l));
}

bool login_ini_request(struct login_ini *l, uint8_t bhs[ISCSI_BHS_SIZE], const void **text,
                       size_t *length)
{
    struct iscsi_login_request request = {
        .immediate = true,
        .csg = l->csg,
        .tsih = l->opts->tsih,
        .itt = l->itt,
        .cid = l->opts->cid,
        .cmd_sn = l->opts->cmd_sn,
        .exp_stat_sn = l->exp_stat_sn,
    };

    if (l->awaiting)
        return false;
    l->awaiting = true;
    memcpy(request.isid, l->opts->isid, sizeof(request.isid));
    *length = login_text_piece(&l->out, text);
    l->out.sent += *length;
    request.more = l->out.sent < l->out.length;
    request.transit = l->transit && !request.more && !l->more_in;
    request.nsg = !request.transit                    ? 0
                  : l->csg == ISCSI_STAGE_OPERATIONAL ? ISCSI_STAGE_FULL_FEATURE
                                                      : ISCSI_STAGE_OPERATIONAL;
    request.data_segment_length = (uint32_t)*length;
    iscsi_login_request_pack(bhs, &request);
    return true;
}

/* ---- what the target says in a turn ---- */

struct turn {
    const char *auth_method, *chap_a, *chap_i, *chap_c, *chap_n, *chap_r;
};

static enum login_result bad_key(struct login_ini *l, const struct keys_error *err)
{
    return fail(l, false, "login failed: %s", err->sentence);
}

static enum login_result take_tag(struct login_ini *l, const char *value)
{
    uint64_t tag;

    if (text_number(value, &tag) < 0 || tag > UINT16_MAX)
        return fail(l, false, "login failed: TargetPortalGroupTag=%.40s is not a number to 65535",
                    value);
    if (l->opts->portal_group_tag >= 0 && (uint64_t)l->opts->portal_group_tag != tag)
        return fail(l, false,
                    "login failed: the portal belongs to portal group %u and not to %d, as was "
                    "expected; run discovery again",
                    (unsigned)tag, l->opts->portal_group_tag);
    l->portal_group_tag = (int)tag;
    return LOGIN_MORE;
}

/* Keys that belong to no negotiation. LOGIN_MORE: taken; LOGIN_DONE: it is none of these. */
static enum login_result take_declared(struct login_ini *l, const struct text_pair *pair)
{
    if (strcmp(pair->key, "TargetPortalGroupTag") == 0)
        return take_tag(l, pair->value);
    if (strcmp(pair->key, "TargetAlias") == 0) {
        if (text_printable(pair->value))
            snprintf(l->target_alias, sizeof(l->target_alias), "%s", pair->value);
        return LOGIN_MORE;
    }
    if (strcmp(pair->key, "TargetAddress") == 0 || strcmp(pair->key, "TargetName") == 0 ||
        strcmp(pair->key, "InitiatorName") == 0 || strcmp(pair->key, "InitiatorAlias") == 0 ||
        strcmp(pair->key, "SessionType") == 0)
        return LOGIN_MORE; /* an answer or news that changes nothing */
    return LOGIN_DONE;
}

static enum login_result take_security(struct login_ini *l, const struct text_pair *pair,
                                       struct turn *turn, struct text_writer *w)
{
    static const char *const names[] = {"AuthMethod", "CHAP_A", "CHAP_I",
                                        "CHAP_C",     "CHAP_N", "CHAP_R"};
    const char **fields[] = {&turn->auth_method, &turn->chap_a, &turn->chap_i,
                             &turn->chap_c,      &turn->chap_n, &turn->chap_r};

    for (unsigned i = 0; i < 6; i++) {
        if (strcmp(pair->key, names[i]) != 0)
            continue;
        if (l->auth_keys & 1u << i)
            return fail(l, false, "login failed: the target sent the key %s twice", pair->key);
        l->auth_keys |= 1u << i;
        *fields[i] = pair->value;
        return LOGIN_MORE;
    }
    if (pair->key[0] == 'X' && (pair->key[1] == '-' || pair->key[1] == '#')) {
        text_put(w, pair->key, "NotUnderstood");
        return LOGIN_MORE;
    }
    return fail(l, false,
                "login failed: the target sent the key %s in the security stage, where "
                "it does not belong",
                pair->key);
}

static enum login_result take_pair(struct login_ini *l, const struct text_pair *pair,
                                   struct turn *turn, struct text_writer *w)
{
    enum login_result result = take_declared(l, pair);
    struct keys_error err;

    if (result != LOGIN_DONE)
        return result;
    if (l->csg == ISCSI_STAGE_SECURITY)
        return take_security(l, pair, turn, w);
    if (strncmp(pair->key, "CHAP_", 5) == 0 || strcmp(pair->key, "AuthMethod") == 0)
        return fail(l, false,
                    "login failed: the target sent the key %s outside of the security "
                    "stage",
                    pair->key);
    return keys_receive(&l->keys, pair, w, &err) < 0 ? bad_key(l, &err) : LOGIN_MORE;
}

static enum login_result take_text(struct login_ini *l, struct turn *turn, struct text_writer *w)
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
        return fail(l, false,
                    "login failed: the target sent text that is no key=value pair, at "
                    "the key \"%s\"",
                    pair.key);
    return LOGIN_MORE;
}

/* ---- authentication ---- */

static enum login_result answer_auth_method(struct login_ini *l, const struct turn *turn,
                                            struct text_writer *w)
{
    const char *method = turn->auth_method;

    if (!method)
        return LOGIN_MORE; /* not yet */
    if (!has_chap(l) && strcmp(method, "None") != 0)
        return fail(l, false,
                    "login failed: the target insists on authentication "
                    "(AuthMethod=%.20s) and no user and secret were given; give those "
                    "that are set at the target",
                    method);
    if (strcmp(method, "CHAP") == 0 && has_chap(l)) {
        text_put(w, "CHAP_A", l->list);
        l->step = INI_CHAP_A;
        return LOGIN_MORE;
    }
    if (strcmp(method, "None") != 0)
        return fail(l, false,
                    "login failed: the target answered AuthMethod=%.20s, so it does not "
                    "offer CHAP; switch CHAP on at the target, or give no user",
                    method);
    if (has_chap(l) && (!l->opts->chap_optional || has_mutual(l)))
        return fail(l, false,
                    "login failed: the target asks for no authentication (AuthMethod="
                    "None), though it is required here; switch CHAP on at the target, "
                    "or allow going on without");
    l->step = INI_AUTH_DONE;
    l->transit = true;
    return LOGIN_MORE;
}

static int fresh_challenge(struct login_ini *l, const uint8_t *theirs, size_t n)
{
    if (l->opts->random(l->opts->random_user, &l->identifier, 1) < 0 ||
        l->opts->random(l->opts->random_user, l->challenge, sizeof(l->challenge)) < 0)
        return -1;
    /* With a broken random source it might repeat theirs, which they could then reflect. */
    return n == sizeof(l->challenge) && memcmp(theirs, l->challenge, n) == 0 ? -1 : 0;
}

static enum login_result put_response(struct login_ini *l, uint8_t identifier,
                                      const uint8_t *challenge, size_t n, struct text_writer *w)
{
    uint8_t digest[HASH_MAX];
    size_t length = chap_response(l->kind, identifier, &l->opts->chap, challenge, n, digest);

    text_put(w, "CHAP_N", l->opts->chap.user);
    text_put_binary(w, "CHAP_R", digest, length);
    if (has_mutual(l)) {
        if (fresh_challenge(l, challenge, n) < 0)
            return fail(l, true, "login failed: no random bytes for a CHAP challenge");
        text_put_number(w, "CHAP_I", l->identifier);
        text_put_binary(w, "CHAP_C", l->challenge, sizeof(l->challenge));
        l->mutual_sent = true;
        l->auth_keys &= ~(1u << 1 | 1u << 2 | 1u << 3); /* their keys begin anew */
        if (l->opts->outstanding)
            chap_outstanding_add(l->opts->outstanding, l->challenge);
    }
    l->step = INI_CHAP_R;
    l->transit = true;
    return LOGIN_MORE;
}

static enum login_result answer_challenge(struct login_ini *l, const struct turn *turn,
                                          struct text_writer *w)
{
    uint8_t challenge[CHAP_BINARY_MAX];
    uint64_t identifier;
    size_t n;

    if (turn->chap_n || turn->chap_r)
        return fail(l, false,
                    "login failed: the target sent its CHAP response before it was "
                    "asked (CHAP_N, CHAP_R in the step of CHAP_A)");
    if (!turn->chap_a && !turn->chap_i && !turn->chap_c)
        return LOGIN_MORE; /* not yet */
    if (!turn->chap_a || !turn->chap_i || !turn->chap_c)
        return fail(l, false, "login failed: the target left out %s of its CHAP challenge",
                    !turn->chap_a   ? "CHAP_A"
                    : !turn->chap_i ? "CHAP_I"
                                    : "CHAP_C");
    if (strcmp(turn->chap_a, "Reject") == 0) {
        l->retry_md5 = list_may_be_refused(l);
        return fail(l, false, "login failed: the target supports none of the CHAP algorithms %s",
                    l->list);
    }
    l->kind = chap_pick(turn->chap_a, l->list);
    if (!l->kind || strchr(turn->chap_a, ','))
        return fail(l, false, "login failed: the target chose CHAP_A=%.20s, which was not offered",
                    turn->chap_a);
    if (text_number(turn->chap_i, &identifier) < 0 || identifier > 255)
        return fail(l, false,
                    "login failed: CHAP_I=%.20s of the target is not a number from 0 "
                    "to 255",
                    turn->chap_i);
    if (text_binary(turn->chap_c, challenge, sizeof(challenge), &n) < 0)
        return fail(l, false,
                    "login failed: the CHAP challenge (CHAP_C) of the target is not 1 "
                    "to %d bytes in hexadecimal or base64",
                    CHAP_BINARY_MAX);
    if (l->opts->outstanding && chap_outstanding_has(l->opts->outstanding, challenge, n))
        return fail(l, false,
                    "login failed: target not authenticated: it sent back a challenge "
                    "of our own (CHAP_C), as an attacker would do");
    return put_response(l, (uint8_t)identifier, challenge, n, w);
}

static enum login_result verify_target(struct login_ini *l, const struct turn *turn, bool last)
{
    uint8_t response[CHAP_BINARY_MAX];
    size_t n;

    if (turn->chap_c || turn->chap_i || turn->chap_a)
        return fail(l, false, "login failed: the target sent a second CHAP challenge");
    if (!has_mutual(l)) {
        if (turn->chap_n || turn->chap_r)
            return fail(l, false,
                        "login failed: the target sent a CHAP response though none was "
                        "asked for");
        l->step = INI_AUTH_DONE;
        return LOGIN_MORE;
    }
    if (!turn->chap_n && !turn->chap_r && !last)
        return LOGIN_MORE; /* not yet */
    if (!turn->chap_n || !turn->chap_r)
        return fail(l, false,
                    "login failed: target not authenticated: it did not answer our "
                    "challenge (no %s); set a secret of its own for us at the target, "
                    "or do without mutual CHAP",
                    turn->chap_n ? "CHAP_R" : "CHAP_N");
    if (l->opts->mutual.user[0] && strcmp(l->opts->mutual.user, turn->chap_n) != 0)
        return fail(l, false,
                    "login failed: target not authenticated: it calls itself "
                    "\"%.60s\" (CHAP_N) and not \"%.60s\"",
                    text_printable(turn->chap_n) ? turn->chap_n : "?", l->opts->mutual.user);
    if (text_binary(turn->chap_r, response, sizeof(response), &n) < 0 ||
        !chap_verify(l->kind, l->identifier, &l->opts->mutual, l->challenge, sizeof(l->challenge),
                     response, n))
        return fail(l, false,
                    "login failed: target not authenticated: its CHAP response is "
                    "wrong; check the secret of the target (the outgoing or mutual one) "
                    "on both sides");
    l->mutual_done = true;
    l->step = INI_AUTH_DONE;
    return LOGIN_MORE;
}

static enum login_result security_turn(struct login_ini *l, const struct turn *turn, bool last,
                                       struct text_writer *w)
{
    switch (l->step) {
    case INI_AUTH_METHOD:
        if (turn->chap_a || turn->chap_i || turn->chap_c || turn->chap_n || turn->chap_r)
            return fail(l, false, "login failed: the target sent CHAP keys before CHAP was agreed");
        return answer_auth_method(l, turn, w);
    case INI_CHAP_A:
        return answer_challenge(l, turn, w);
    case INI_CHAP_R:
        return verify_target(l, turn, last);
    default:
        return LOGIN_MORE;
    }
}

/* ---- responses ---- */

static enum login_result redirected(struct login_ini *l, uint16_t status, const void *data,
                                    size_t n)
{
    struct text_scan scan;
    struct text_pair pair;

    text_scan_init(&scan, data, n);
    while (text_next(&scan, &pair) == TEXT_PAIR)
        if (strcmp(pair.key, "TargetAddress") == 0 && pair.value_length > 0 &&
            pair.value_length < sizeof(l->address) && text_printable(pair.value)) {
            memcpy(l->address, pair.value, pair.value_length + 1);
            l->permanent = status == ISCSI_LOGIN_MOVED_PERMANENTLY;
            l->awaiting = true;
            return LOGIN_REDIRECT;
        }
    return fail(l, false,
                "login failed: the target says that it has moved (0x%04x) and gives no "
                "usable TargetAddress; correct the redirection at the target",
                status);
}

static enum login_result refused(struct login_ini *l, uint16_t status)
{
    unsigned class = status >> 8;

    l->status = status;
    l->retry_md5 = status == ISCSI_LOGIN_AUTHENTICATION && list_may_be_refused(l);
    return fail(l,
                class == 3 || status == ISCSI_LOGIN_TOO_MANY_CONNECTIONS ||
                    status == ISCSI_LOGIN_NO_SESSION,
                "login failed (0x%04x): %s", status,
                login_status_sentence(status, has_chap(l), l->mutual_sent));
}

/* What is not as it must be in a response's header (I-LOG-04, I-LOG-11). NULL: nothing. */
static const char *header_error(const struct login_ini *l, const struct iscsi_login_response *r)
{
    bool asked = l->transit && !l->more_in && l->out.sent == l->out.length;
    unsigned most =
        l->csg == ISCSI_STAGE_OPERATIONAL ? ISCSI_STAGE_FULL_FEATURE : ISCSI_STAGE_OPERATIONAL;

    if (r->itt != l->itt)
        return "another Initiator Task Tag than the request";
    if (memcmp(r->isid, l->opts->isid, sizeof(r->isid)) != 0)
        return "another ISID than the request";
    if (r->version_active != 0)
        return "a protocol version other than 0";
    if (r->csg != l->csg)
        return "another stage (CSG) than the request";
    if (r->transit && r->more)
        return "both T and C set";
    if (r->transit && !asked)
        return "T set though the request did not ask to leave the stage";
    if (r->transit && (r->nsg <= r->csg || r->nsg == 2 || r->nsg > most))
        return "a next stage (NSG) that was not asked for";
    if (l->opts->tsih && r->tsih != l->opts->tsih)
        return "another TSIH than the request";
    return NULL;
}

static enum login_result enter_full_feature(struct login_ini *l,
                                            const struct iscsi_login_response *r)
{
    struct keys_error err;

    if (l->out.length > 0)
        return fail(l, false,
                    "login failed: the target ended the login with a key that awaits "
                    "our answer");
    if (r->tsih == 0)
        return fail(l, false, "login failed: the target gave the session no handle (TSIH 0)");
    if (keys_finish(&l->keys, &err) < 0)
        return bad_key(l, &err);
    l->params = l->keys.result;
    l->tsih = r->tsih;
    l->authenticated = has_chap(l) && l->kind != 0;
    return LOGIN_DONE;
}

static void enter_operational(struct login_ini *l, struct text_writer *w)
{
    l->csg = ISCSI_STAGE_OPERATIONAL;
    l->transit = true;
    keys_offer(&l->keys, w);
    if (l->opts->extra_keys_length <= w->size - w->length) {
        memcpy(w->bytes + w->length, l->opts->extra_keys ? l->opts->extra_keys : "",
               l->opts->extra_keys_length);
        w->length += l->opts->extra_keys_length;
    } else {
        w->overflow = true;
    }
}

/* A whole turn of the target is in. */
static enum login_result take_turn(struct login_ini *l, const struct iscsi_login_response *r)
{
    struct turn turn = {0};
    struct text_writer w;
    enum login_result result;

    login_text_begin(&l->out, &w);
    result = take_text(l, &turn, &w);
    if (result == LOGIN_MORE && l->csg == ISCSI_STAGE_SECURITY)
        result = security_turn(l, &turn, r->transit, &w);
    if (result != LOGIN_MORE)
        return result;
    bytes_wipe(l->in, l->in_length);
    l->in_length = 0;
    login_text_end(&l->out, &w);
    if (r->transit && l->csg == ISCSI_STAGE_SECURITY) {
        if (has_chap(l) && l->step != INI_AUTH_DONE)
            return fail(l, false,
                        "login failed: the target ends the security stage before CHAP "
                        "was done");
        if (l->out.length > 0)
            return fail(l, false,
                        "login failed: the target ended the security stage with a key "
                        "that awaits our answer");
        enter_operational(l, &w);
        login_text_end(&l->out, &w);
    } else if (r->transit) {
        return enter_full_feature(l, r);
    }
    if (w.overflow)
        return fail(l, false, "login failed: what we have to say does not fit into %d bytes",
                    LOGIN_TEXT_MAX);
    return LOGIN_MORE;
}

enum login_result login_ini_response(struct login_ini *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                     const void *data, size_t n)
{
    struct iscsi_login_response r;
    const char *wrong;

    iscsi_login_response_unpack(bhs, &r);
    if (r.status == ISCSI_LOGIN_MOVED_TEMPORARILY || r.status == ISCSI_LOGIN_MOVED_PERMANENTLY)
        return redirected(l, r.status, data, n);
    if (r.status >> 8 != 0)
        return refused(l, r.status);
    wrong = header_error(l, &r);
    if (wrong)
        return fail(l, false,
                    "login failed: the target broke the protocol: its Login Response "
                    "has %s",
                    wrong);
    l->exp_stat_sn = r.stat_sn + 1;
    l->exp_cmd_sn = r.exp_cmd_sn;
    l->max_cmd_sn = r.max_cmd_sn;
    if (++l->rounds > LOGIN_ROUNDS_MAX)
        return fail(l, true,
                    "login failed: the target does not come to an end; gave up after %d "
                    "exchanges",
                    LOGIN_ROUNDS_MAX);
    if (n > sizeof(l->in) - l->in_length)
        return fail(l, false, "login failed: the target sent more than %d bytes of keys",
                    LOGIN_TEXT_MAX);
    if (l->out.sent < l->out.length && (n > 0 || r.more))
        return fail(l, false, "login failed: the target answered before our keys were all sent");
    if (n > 0)
        memcpy(l->in + l->in_length, data, n);
    l->in_length += n;
    l->more_in = r.more;
    l->awaiting = false;
    if (r.more || l->out.sent < l->out.length)
        return LOGIN_MORE;
    return take_turn(l, &r);
}

enum login_result login_ini_unexpected(struct login_ini *l, uint8_t opcode)
{
    char name[32];

    return fail(l, false, "login failed: the target sent %s instead of a Login Response",
                iscsi_opcode_name(opcode, name));
}

void login_ini_closed(struct login_ini *l)
{
    static const char *const steps[] = {"after the names were sent",
                                        "after the CHAP algorithms "
                                        "were offered (CHAP_A)",
                                        "after our CHAP response",
                                        "after the negotiation had begun"};

    if (l->sentence[0])
        return;
    l->retry_md5 = list_may_be_refused(l);
    fail(l, true,
         "login failed: the target closed the connection %s without a reason; look into "
         "the target's log, and check that it knows this initiator name",
         l->csg == ISCSI_STAGE_OPERATIONAL ? steps[3] : steps[l->step]);
}
