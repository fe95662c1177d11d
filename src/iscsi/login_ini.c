/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator's side of the login: requests, responses, stages. CHAP is in login_ini_chap.c. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "iscsi/login_int.h"

enum login_result login_ini_fail(struct login_ini *l, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(l->sentence, sizeof(l->sentence), fmt, args);
    va_end(args);
    text_make_printable(l->sentence);
    l->ended = true;
    return LOGIN_FAILED;
}

/* ---- options ---- */

static int check_secrets(const struct login_ini_opts *o, bool allow_short, struct lp_error *err)
{
    char list[CHAP_LIST_MAX];

    if (!o->chap.user)
        return o->mutual.secret
                   ? lp_error_set(err, LP_ERROR_USAGE, 0,
                                  "a secret for the target wants a user name and secret of the "
                                  "initiator too: CHAP has no authentication of the target alone")
                   : 0;
    chap_list(o->chap_algorithms, list);
    if (!list[0])
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "this program was built without nettle and cannot do CHAP; install "
                            "nettle and build it again");
    if (chap_credentials_check(&o->chap, NULL, allow_short, "secret of the initiator", err) < 0)
        return -1;
    if (!o->mutual.secret)
        return 0;
    if (o->chap_optional || !o->random)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "CHAP cannot be optional when the target is to prove its identity");
    return chap_credentials_check(&o->mutual, &o->chap, allow_short, "secret of the target", err);
}

int login_ini_check(const struct login_ini_opts *o, bool allow_short_secrets, struct lp_error *err)
{
    if (iscsi_name_check(o->initiator_name, "initiator name", err) < 0)
        return -1;
    if (!o->discovery && !o->target_name)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "a target name is missing");
    if (o->target_name && iscsi_name_check(o->target_name, "target name", err) < 0)
        return -1;
    if (o->initiator_alias &&
        (strlen(o->initiator_alias) > ISCSI_VALUE_MAX || !text_printable(o->initiator_alias)))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the initiator alias must have at most %d bytes, and no control "
                            "characters",
                            ISCSI_VALUE_MAX);
    if (o->extra_keys_length > LOGIN_OUT_MAX - ISCSI_LOGIN_MRDSL)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the extra keys have more than %d bytes",
                            LOGIN_OUT_MAX - ISCSI_LOGIN_MRDSL);
    if (o->isid[0] >> 6 == 3)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the ISID begins with binary 11, which is reserved (RFC 7143 11.12.5)");
    if (o->itt == ISCSI_TAG_NONE || (o->tsih != 0) != (o->session != NULL))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a login wants a task tag, and a TSIH together with its session");
    return check_secrets(o, allow_short_secrets, err);
}

/* ---- what we say ---- */

static struct text_writer begin_turn(struct login_ini *l)
{
    struct text_writer w;

    text_writer_init(&w, l->out, sizeof(l->out));
    return w;
}

static void end_turn(struct login_ini *l, const struct text_writer *w)
{
    l->cut = (struct text_cut){l->out, w->length, 0};
}

/* Names once, in the first request: some targets mind to see them again. */
static void first_turn(struct login_ini *l)
{
    struct text_writer w = begin_turn(l);
    const struct login_ini_opts *o = &l->opts;

    text_put(&w, "InitiatorName", o->initiator_name);
    if (o->initiator_alias)
        text_put(&w, "InitiatorAlias", o->initiator_alias);
    if (o->target_name)
        text_put(&w, "TargetName", o->target_name);
    if (o->tsih == 0)
        text_put(&w, "SessionType", o->discovery ? "Discovery" : "Normal");
    text_put(&w, "AuthMethod", !o->chap.user ? "None" : o->chap_optional ? "CHAP,None" : "CHAP");
    /* Not T before the method is known; some targets refuse it in the rounds of CHAP. */
    l->ready = !o->chap.user;
    l->step = INI_AUTH_METHOD;
    end_turn(l, &w);
}

static void operational_turn(struct login_ini *l)
{
    struct text_writer w = begin_turn(l);

    l->stage = l->keys.stage = ISCSI_STAGE_OPERATIONAL;
    l->next = ISCSI_STAGE_FULL_FEATURE;
    l->ready = true;
    keys_offer(&l->keys, &w);
    text_put_pairs(&w, l->opts.extra_keys, l->opts.extra_keys_length);
    end_turn(l, &w);
}

void login_ini_start(struct login_ini *l, const struct login_ini_opts *opts)
{
    memset(l, 0, sizeof(*l));
    l->opts = *opts;
    l->stage = ISCSI_STAGE_SECURITY;
    l->next = ISCSI_STAGE_OPERATIONAL;
    l->portal_group_tag = -1;
    l->cmd_sn = opts->cmd_sn;
    l->exp_stat_sn = opts->exp_stat_sn;
    if (!l->opts.outstanding)
        l->opts.outstanding = &l->own;
    text_run_init(&l->run, l->in, sizeof(l->in));
    chap_list(opts->chap_algorithms, l->algorithms);
    keys_begin(&l->keys, true, opts->discovery, &opts->wishes, opts->session);
    first_turn(l);
}

bool login_ini_request(struct login_ini *l, uint8_t bhs[ISCSI_BHS_SIZE], const uint8_t **text,
                       size_t *n)
{
    struct iscsi_login_request pdu = {.immediate = true};
    const char *piece;

    if (l->awaiting || l->ended)
        return false;
    *n = text_cut_next(&l->cut, ISCSI_LOGIN_MRDSL, &piece);
    *text = (const uint8_t *)piece;
    pdu.more = text_cut_more(&l->cut);
    pdu.transit = l->ready && !pdu.more;
    pdu.csg = (uint8_t)l->stage;
    pdu.nsg = pdu.transit ? (uint8_t)l->next : 0;
    pdu.data_segment_length = (uint32_t)*n;
    memcpy(pdu.isid, l->opts.isid, sizeof(pdu.isid));
    pdu.tsih = l->opts.tsih;
    pdu.itt = l->opts.itt;
    pdu.cid = l->opts.cid;
    pdu.cmd_sn = l->opts.cmd_sn;
    pdu.exp_stat_sn = l->exp_stat_sn;
    iscsi_login_request_pack(bhs, &pdu);
    l->asked = pdu.transit;
    l->awaiting = true;
    l->rounds++;
    return true;
}

/* ---- refused, redirected ---- */

static bool only_md5(const struct login_ini *l)
{
    return strcmp(l->algorithms, "5") == 0;
}

static enum login_result refused(struct login_ini *l, uint16_t status)
{
    bool credentials = l->opts.chap.user != NULL;

    l->status = status;
    l->retryable = status >> 8 == 3;
    /* Some targets give up at a list that begins with what they do not know (A1 of old LIO). */
    l->retry_md5 = status >> 8 == 2 && l->step == INI_CHAP_A && !only_md5(l);
    if (l->retry_md5)
        return login_ini_fail(l,
                              "the target refuses the list of CHAP algorithms %s: offer 5 (MD5) "
                              "alone (login status %04x)",
                              l->algorithms, status);
    /* Others take the list, but mean something else by a number: tgt calls SHA-1 7. */
    l->retry_md5 = status >> 8 == 2 && l->step == INI_CHAP_R && l->kind != HASH_MD5;
    if (l->step == INI_AUTH_METHOD && credentials && status == ISCSI_LOGIN_AUTHENTICATION)
        return login_ini_fail(
            l,
            "the target refuses authentication by CHAP before it saw a user name: "
            "see which method it is set to (login status %04x)",
            status);
    return login_ini_fail(l, "%s (login status %04x)",
                          login_status_sentence(status, credentials, l->opts.mutual.secret != NULL),
                          status);
}

/* host[:port], a tag behind it (which should not be there) left out. */
static bool take_address(struct login_ini *l, const char *value)
{
    char *tag;

    if (!login_copy_text(l->address, sizeof(l->address), value))
        return false;
    tag = strchr(l->address, ',');
    if (tag)
        *tag = '\0';
    if (l->address[0] && l->address[0] != ':' && !strchr(l->address, ' '))
        return true;
    l->address[0] = '\0';
    return false;
}

static enum login_result redirected(struct login_ini *l, uint16_t status, const void *data,
                                    size_t n)
{
    struct text_scan s;
    struct text_pair pair;

    l->status = status;
    text_scan_init(&s, data, n);
    while (text_next(&s, &pair) == TEXT_PAIR)
        if (keys_find(pair.key) == KEY_TARGET_ADDRESS && take_address(l, pair.value)) {
            l->permanent = status == ISCSI_LOGIN_MOVED_PERMANENTLY;
            l->ended = true;
            return LOGIN_REDIRECT;
        }
    return login_ini_fail(l,
                          "the target says that it has moved, but not where to: look there for its "
                          "new address (login status %04x)",
                          status);
}

/* ---- accepted so far ---- */

static const char *stage_name(unsigned stage)
{
    static const char *const names[] = {"security", "operational", "reserved", "full feature"};

    return names[stage & 3];
}

static enum login_result check_header(struct login_ini *l, const struct iscsi_login_response *pdu)
{
    if (pdu->version_active != 0)
        return login_ini_fail(l, "the target chose iSCSI version %u; only version 0 exists here",
                              pdu->version_active);
    if (pdu->itt != l->opts.itt)
        return login_ini_fail(l, "the target answered another request than the login's");
    if (pdu->csg != l->stage)
        return login_ini_fail(l, "the target answered in the %s stage while we are in the %s stage",
                              stage_name(pdu->csg), stage_name(l->stage));
    if (pdu->transit && pdu->more)
        return login_ini_fail(l, "the target ends a stage in the middle of its text");
    if (pdu->transit && !l->asked)
        return login_ini_fail(l, "the target ends the %s stage, which was not asked for",
                              stage_name(l->stage));
    if (pdu->transit && pdu->nsg != l->next)
        return login_ini_fail(l,
                              "the target goes on to the %s stage, but the %s stage was asked for",
                              stage_name(pdu->nsg), stage_name(l->next));
    return LOGIN_MORE;
}

static enum login_result take_tag(struct login_ini *l, const char *value)
{
    uint8_t tag[2];

    if (text_binary_of_length(value, tag, sizeof(tag)) < 0)
        return login_ini_fail(l, "TargetPortalGroupTag=%.60s is not a number from 0 to 65535",
                              value);
    l->portal_group_tag = tag[0] << 8 | tag[1];
    if (l->opts.portal_group_tag >= 0 && l->opts.portal_group_tag != l->portal_group_tag)
        return login_ini_fail(l,
                              "portal group %d answers where portal group %d was expected: the "
                              "target's portals were changed; discover it again",
                              l->portal_group_tag, l->opts.portal_group_tag);
    return LOGIN_MORE;
}

/* All pairs of a turn: answers go to w, security keys to s. *proposed: the target asked something
 * by itself. */
static enum login_result take_pairs(struct login_ini *l, struct text_writer *w,
                                    struct login_security *s, bool *proposed)
{
    struct text_scan scan;
    struct text_pair pair;
    struct keys_error err;
    enum text_result result;
    enum iscsi_key key;

    text_scan_init(&scan, l->run.bytes, l->run.length);
    while ((result = text_next(&scan, &pair)) == TEXT_PAIR) {
        size_t before = w->length;
        int own = keys_receive(&l->keys, &pair, &key, w, &err);

        if (own < 0)
            return login_ini_fail(l, "%s", err.sentence);
        if (w->length > before && key != KEY_UNKNOWN)
            *proposed = true;
        if (own == 0 || login_security_take(s, key, pair.value))
            continue;
        if (key == KEY_TARGET_ALIAS)
            login_copy_text(l->target_alias, sizeof(l->target_alias), pair.value);
        else if (key == KEY_TARGET_PORTAL_GROUP_TAG && take_tag(l, pair.value) != LOGIN_MORE)
            return LOGIN_FAILED;
    }
    if (result == TEXT_BAD)
        return login_ini_fail(l, "the target sent text that is not key=value: \"%s\"", pair.key);
    return LOGIN_MORE;
}

static enum login_result finish(struct login_ini *l, const struct iscsi_login_response *pdu)
{
    struct keys_error err;

    if (keys_finish(&l->keys, &err) < 0)
        return login_ini_fail(l, "%s", err.sentence);
    if (pdu->tsih == 0)
        return login_ini_fail(l, "the target gave the session no handle (TSIH 0)");
    if (l->opts.tsih != 0 && pdu->tsih != l->opts.tsih)
        return login_ini_fail(l, "the target put the connection into session %u instead of %u",
                              pdu->tsih, l->opts.tsih);
    l->tsih = pdu->tsih;
    l->params = l->keys.result;
    l->ended = true;
    return LOGIN_DONE;
}

static enum login_result end_of_stage(struct login_ini *l, const struct iscsi_login_response *pdu,
                                      bool proposed)
{
    if (proposed)
        return login_ini_fail(l, "the target asks something and ends the %s stage in one turn",
                              stage_name(l->stage));
    if (l->stage == ISCSI_STAGE_OPERATIONAL)
        return finish(l, pdu);
    operational_turn(l);
    return LOGIN_MORE;
}

/* The target's turn is complete. */
static enum login_result take_turn(struct login_ini *l, const struct iscsi_login_response *pdu)
{
    struct text_writer w = begin_turn(l);
    struct login_security s = {0};
    bool proposed = false;

    if (take_pairs(l, &w, &s, &proposed) != LOGIN_MORE)
        return LOGIN_FAILED;
    l->run.length = 0;
    if (l->stage == ISCSI_STAGE_SECURITY) {
        if (login_ini_security(l, &s, &w) != LOGIN_MORE)
            return LOGIN_FAILED;
    } else {
        keys_offer(&l->keys, &w);
    }
    if (w.overflow)
        return login_ini_fail(l, "the target asks more than %zu bytes of answers have room for",
                              sizeof(l->out));
    if (pdu->transit)
        return end_of_stage(l, pdu, proposed);
    end_turn(l, &w);
    return LOGIN_MORE;
}

static enum login_result accepted(struct login_ini *l, const struct iscsi_login_response *pdu,
                                  const void *data, size_t n)
{
    if (check_header(l, pdu) != LOGIN_MORE)
        return LOGIN_FAILED;
    l->exp_stat_sn = pdu->stat_sn + 1;
    l->exp_cmd_sn = pdu->exp_cmd_sn;
    l->max_cmd_sn = pdu->max_cmd_sn;
    if (l->rounds >= LOGIN_ROUNDS_MAX)
        return login_ini_fail(l, "the target did not end the %s stage of the login in %d exchanges",
                              stage_name(l->stage), LOGIN_ROUNDS_MAX);
    if (text_cut_more(&l->cut)) /* our turn is not over */
        return n == 0 && !pdu->more
                   ? LOGIN_MORE
                   : login_ini_fail(l, "the target speaks before our text was complete (C bit)");
    if (text_run_add(&l->run, data, n) < 0)
        return login_ini_fail(l, "the target sent more than %zu bytes of text in one turn",
                              sizeof(l->in));
    if (pdu->more) { /* an empty request asks for the rest */
        l->cut.length = l->cut.sent = 0;
        return LOGIN_MORE;
    }
    return take_turn(l, pdu);
}

enum login_result login_ini_response(struct login_ini *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                     const void *data, size_t n)
{
    struct iscsi_login_response pdu;
    struct iscsi_bhs h;
    char name[32];

    iscsi_bhs_unpack(bhs, &h);
    if (l->ended)
        return LOGIN_FAILED;
    if (h.opcode != ISCSI_LOGIN_RESPONSE)
        return login_ini_fail(l, "the target sent a PDU that does not belong in a login: %s",
                              iscsi_opcode_name(h.opcode, name));
    if (!l->awaiting)
        return login_ini_fail(l, "the target answered before it was asked");
    l->awaiting = false;
    iscsi_login_response_unpack(bhs, &pdu);
    if (pdu.status >> 8 == 1)
        return redirected(l, pdu.status, data, n);
    if (pdu.status != ISCSI_LOGIN_OK)
        return refused(l, pdu.status);
    return accepted(l, &pdu, data, n);
}

/* ---- the end ---- */

void login_ini_closed(struct login_ini *l)
{
    if (l->ended)
        return;
    l->retryable = true;
    l->retry_md5 = l->step == INI_CHAP_A && l->stage == ISCSI_STAGE_SECURITY && !only_md5(l);
    if (l->retry_md5)
        login_ini_fail(l,
                       "the target closed the connection when it was offered the CHAP algorithms "
                       "%s: offer 5 (MD5) alone",
                       l->algorithms);
    else if (l->rounds <= 1)
        login_ini_fail(l, "the target closed the connection without an answer to the login: it may "
                          "be overloaded, or what listens there is no iSCSI target");
    else
        login_ini_fail(l,
                       "the target closed the connection in the %s stage of the login; its log "
                       "may say why",
                       stage_name(l->stage));
}

void login_ini_end(struct login_ini *l)
{
    if (l->challenged)
        chap_outstanding_remove(l->opts.outstanding, l->challenge);
    bytes_wipe(l, sizeof(*l));
}
