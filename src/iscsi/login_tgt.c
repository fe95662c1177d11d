/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's side of the login: requests, responses, stages. CHAP is in login_tgt_chap.c, who
 * logs in to what in login_tgt_names.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "iscsi/login_int.h"

/* ---- responses ---- */

static void write_response(struct login_tgt *l, const struct iscsi_login_response *fields,
                           const char *text, size_t n)
{
    struct iscsi_login_response pdu = *fields;

    memcpy(pdu.isid, l->request.isid, sizeof(pdu.isid));
    pdu.itt = l->request.itt;
    pdu.stat_sn = l->stat_sn++;
    pdu.exp_cmd_sn = l->exp_cmd_sn;
    pdu.max_cmd_sn = l->max_cmd_sn;
    pdu.data_segment_length = (uint32_t)n;
    iscsi_login_response_pack(l->bhs, &pdu);
    l->piece = text;
    l->piece_length = n;
}

static enum login_result write_failure(struct login_tgt *l, uint16_t status)
{
    const struct iscsi_login_response pdu = {.tsih = l->request.tsih, .status = status};
    struct text_writer w;

    l->status = status;
    l->ended = true;
    text_writer_init(&w, l->out, sizeof(l->out));
    if (status >> 8 == 1 && l->policy.address)
        text_put(&w, "TargetAddress", l->policy.address);
    write_response(l, &pdu, l->out, w.length);
    return LOGIN_FAILED;
}

enum login_result login_tgt_fail(struct login_tgt *l, uint16_t status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(l->sentence, sizeof(l->sentence), fmt, args);
    va_end(args);
    text_make_printable(l->sentence);
    return write_failure(l, status);
}

static enum login_result close_now(struct login_tgt *l, const char *sentence)
{
    snprintf(l->sentence, sizeof(l->sentence), "%s", sentence);
    l->ended = true;
    return LOGIN_CLOSE;
}

void login_tgt_response(const struct login_tgt *l, const uint8_t **bhs, const uint8_t **text,
                        size_t *n)
{
    *bhs = l->bhs;
    *text = (const uint8_t *)l->piece;
    *n = l->piece_length;
}

/* ---- the end of a stage ---- */

/* The session begins with this response (6.3.5, 11.13.3). */
static enum login_result begin_session(struct login_tgt *l)
{
    struct keys_error err;
    uint16_t status, tsih = 0;

    if (keys_finish(&l->keys, &err) < 0)
        return login_tgt_fail(l, err.status, "%s", err.sentence);
    l->params = l->keys.result;
    status = l->opts.session_ops->begin(l->opts.session_user, l, &tsih);
    if (status != ISCSI_LOGIN_OK)
        return login_tgt_fail(l, status, "the session was refused: %s",
                              login_status_sentence(status, l->chap_name[0] != '\0', false));
    l->tsih = tsih;
    l->ended = true;
    return LOGIN_DONE;
}

static bool may_leave(const struct login_tgt *l)
{
    return l->stage == ISCSI_STAGE_SECURITY ? l->step == TGT_AUTH_DONE : !keys_unanswered(&l->keys);
}

/* The next piece of our text; with the last one the stage ends, if the initiator wants that and
 * nothing is open (T-LOG-09, T-LOG-16). */
static enum login_result respond(struct login_tgt *l)
{
    struct iscsi_login_response pdu = {.csg = (uint8_t)l->stage};
    enum login_result result = LOGIN_MORE;
    const char *piece;
    size_t n = text_cut_next(&l->cut, ISCSI_LOGIN_MRDSL, &piece);

    pdu.more = text_cut_more(&l->cut);
    pdu.transit = !pdu.more && !l->run_open && l->request.transit && may_leave(l);
    if (pdu.transit) {
        pdu.nsg = l->request.nsg;
        if (pdu.nsg == ISCSI_STAGE_FULL_FEATURE) {
            result = begin_session(l);
            if (result != LOGIN_DONE)
                return result;
        }
        l->stage = l->keys.stage = (enum iscsi_stage)pdu.nsg;
    }
    pdu.tsih = result == LOGIN_DONE ? l->tsih : l->request.tsih;
    write_response(l, &pdu, piece, n);
    return result;
}

/* ---- turns ---- */

static enum login_result take_pairs(struct login_tgt *l, struct login_security *s)
{
    struct text_scan scan;
    struct text_pair pair;
    struct keys_error err;
    enum iscsi_key key;

    text_scan_init(&scan, l->run.bytes, l->run.length);
    while (text_next(&scan, &pair) == TEXT_PAIR) {
        int own = keys_receive(&l->keys, &pair, &key, &l->writer, &err);

        if (own < 0)
            return login_tgt_fail(l, err.status, "%s", err.sentence);
        if (own > 0 && !login_security_take(s, key, pair.value) &&
            login_tgt_take_late(l, key, pair.value) != LOGIN_MORE)
            return LOGIN_FAILED;
    }
    return LOGIN_MORE;
}

/* Before anything of it is acted upon. */
static enum login_result check_text(struct login_tgt *l)
{
    struct text_scan scan;
    struct text_pair pair;
    enum text_result result;

    text_scan_init(&scan, l->run.bytes, l->run.length);
    while ((result = text_next(&scan, &pair)) == TEXT_PAIR)
        continue;
    return result == TEXT_END
               ? LOGIN_MORE
               : login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                                "the initiator sent text that is not key=value: \"%s\"", pair.key);
}

/* The initiator's turn is complete. */
static enum login_result take_turn(struct login_tgt *l)
{
    struct login_security s = {0};
    enum login_result result = check_text(l);

    text_writer_init(&l->writer, l->out, sizeof(l->out));
    if (result == LOGIN_MORE && !l->named)
        result = login_tgt_names(l);
    if (result == LOGIN_MORE)
        result = take_pairs(l, &s);
    if (result == LOGIN_MORE && l->stage == ISCSI_STAGE_SECURITY)
        result = login_tgt_security(l, &s);
    else if (result == LOGIN_MORE)
        keys_offer(&l->keys, &l->writer);
    if (result != LOGIN_MORE)
        return result;
    if (l->writer.overflow)
        return login_tgt_fail(
            l, ISCSI_LOGIN_OUT_OF_RESOURCES,
            "the initiator sent more keys than %zu bytes of answers have room for", sizeof(l->out));
    l->run.length = 0;
    l->cut = (struct text_cut){l->out, l->writer.length, 0};
    return respond(l);
}

/* ---- requests ---- */

static enum login_result check_stages(struct login_tgt *l, const struct iscsi_login_request *r)
{
    if (r->csg != ISCSI_STAGE_SECURITY && r->csg != ISCSI_STAGE_OPERATIONAL)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, "there is no login stage %u", r->csg);
    if (l->begun && r->csg != l->stage)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the initiator is in stage %u, but the login is in stage %u", r->csg,
                              l->stage);
    if (r->transit && r->more)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the initiator ends a stage in the middle of its text");
    if (r->transit && (r->nsg <= r->csg || r->nsg == 2))
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the initiator wants to go from stage %u to stage %u", r->csg,
                              r->nsg);
    return LOGIN_MORE;
}

/* [T-LOG-13] */
static const char *changed(const struct iscsi_login_request *a, const struct iscsi_login_request *b)
{
    if (memcmp(a->isid, b->isid, sizeof(a->isid)) != 0)
        return "ISID";
    if (a->tsih != b->tsih)
        return "TSIH";
    if (a->cid != b->cid)
        return "CID";
    if (a->itt != b->itt)
        return "Initiator Task Tag";
    if (a->version_max != b->version_max || a->version_min != b->version_min)
        return "version";
    return NULL;
}

static enum login_result check_first(struct login_tgt *l, const struct iscsi_login_request *r)
{
    l->first = *r;
    memcpy(l->isid, r->isid, sizeof(l->isid));
    l->tsih = r->tsih;
    l->cid = r->cid;
    l->cmd_sn = l->exp_cmd_sn = r->cmd_sn;
    l->max_cmd_sn = r->cmd_sn + l->opts.window - 1;
    l->exp_stat_sn = r->exp_stat_sn;
    if (r->version_min > 0)
        return login_tgt_fail(l, ISCSI_LOGIN_VERSION,
                              "the initiator speaks iSCSI versions %u to %u, not 0", r->version_min,
                              r->version_max);
    if (r->itt == ISCSI_TAG_NONE)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the login has the reserved task tag ffffffff");
    l->stage = l->keys.stage = (enum iscsi_stage)r->csg;
    return LOGIN_MORE;
}

static enum login_result check_header(struct login_tgt *l, const struct iscsi_login_request *r)
{
    const char *field = l->begun ? changed(&l->first, r) : NULL;

    if (field)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the initiator changed the %s in the middle of the login", field);
    if (check_stages(l, r) != LOGIN_MORE || (!l->begun && check_first(l, r) != LOGIN_MORE))
        return LOGIN_FAILED;
    l->begun = true;
    if (++l->rounds > LOGIN_ROUNDS_MAX)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the initiator did not end the login in %d exchanges",
                              LOGIN_ROUNDS_MAX);
    return LOGIN_MORE;
}

static enum login_result take_request(struct login_tgt *l, const void *data, size_t n)
{
    if (text_cut_more(&l->cut)) {
        if (n > 0 || l->request.more)
            return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                                  "the initiator speaks before our text was complete (C bit)");
        return respond(l);
    }
    if (text_run_add(&l->run, data, n) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_OUT_OF_RESOURCES,
                              "the initiator sent more than %zu bytes of text in one turn",
                              sizeof(l->in));
    l->run_open = l->request.more;
    if (l->run_open) { /* an empty response asks for the rest */
        l->cut.length = l->cut.sent = 0;
        return respond(l);
    }
    return take_turn(l);
}

/* Anything that is no Login Request; 11.13.5. */
static enum login_result take_other(struct login_tgt *l, const struct iscsi_bhs *h)
{
    char name[32];

    if (!l->begun)
        return close_now(l, "the first PDU on the connection is no Login Request");
    l->request.itt = h->itt;
    return login_tgt_fail(l, ISCSI_LOGIN_INVALID_DURING_LOGIN,
                          "the initiator sent a PDU that does not belong in a login: %s",
                          iscsi_opcode_name(h->opcode, name));
}

enum login_result login_tgt_request(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                    const void *data, size_t n)
{
    struct iscsi_bhs h;

    iscsi_bhs_unpack(bhs, &h);
    if (l->ended)
        return close_now(l, "the initiator goes on after the login has ended");
    if (h.opcode != ISCSI_LOGIN_REQUEST)
        return take_other(l, &h);
    iscsi_login_request_unpack(bhs, &l->request);
    if (check_header(l, &l->request) != LOGIN_MORE)
        return LOGIN_FAILED;
    return take_request(l, data, n);
}

enum login_result login_tgt_refuse(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                   uint16_t status, const char *sentence)
{
    struct iscsi_bhs h;

    iscsi_bhs_unpack(bhs, &h);
    if (l->ended || h.opcode != ISCSI_LOGIN_REQUEST)
        return close_now(l, sentence);
    iscsi_login_request_unpack(bhs, &l->request);
    return login_tgt_fail(l, status, "%s", sentence);
}

/* ---- life ---- */

void login_tgt_start(struct login_tgt *l, const struct login_tgt_opts *opts)
{
    memset(l, 0, sizeof(*l));
    l->opts = *opts;
    if (!l->opts.outstanding)
        l->opts.outstanding = &l->own;
    l->stat_sn = opts->stat_sn;
    text_run_init(&l->run, l->in, sizeof(l->in));
    keys_begin(&l->keys, false, false, &opts->wishes, NULL);
}

void login_tgt_end(struct login_tgt *l)
{
    if (l->challenged)
        chap_outstanding_remove(l->opts.outstanding, l->challenge);
    bytes_wipe(l, sizeof(*l));
}
