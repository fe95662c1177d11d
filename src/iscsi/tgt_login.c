/* SPDX-License-Identifier: BSD-2-Clause */
/* The login phase of a connection: from login.h's machine to a session (RFC 7143 6.3). */
#include "iscsi/tgt_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tgt_login {
    struct login_tgt machine;
    struct iovec flat;
    bool due; /* a response waits to be sent */
};

static struct tgt_identity identity(const struct login_tgt *l)
{
    struct tgt_identity id = {
        .initiator_name = l->initiator_name,
        .target_name = l->target_name,
        .group_tag = l->policy.portal_group_tag,
        .discovery = l->discovery,
    };

    memcpy(id.isid, l->isid, sizeof(id.isid));
    return id;
}

/* ---- which session: the table of 6.3.1 ---- */

static struct tgt_session *by_tsih(struct tgt *t, const struct login_tgt *l)
{
    for (struct tgt_session *s = t->sessions; s; s = s->next)
        if (s->tsih == l->tsih && s->state != TGT_SESSION_ENDING &&
            strcmp(s->initiator_name, l->initiator_name) == 0 &&
            strcmp(s->target_name, l->target_name) == 0 &&
            memcmp(s->isid, l->isid, sizeof(s->isid)) == 0)
            return s;
    return NULL;
}

static struct tgt_conn *by_cid(const struct tgt_session *s, uint16_t cid)
{
    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session)
        if (c->cid == cid && c->state < TGT_CONN_CLOSING)
            return c;
    return NULL;
}

static unsigned live_conns(const struct tgt_session *s)
{
    unsigned n = 0;

    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session)
        n += c->state < TGT_CONN_CLOSING;
    return n;
}

static unsigned count_sessions(const struct tgt *t)
{
    unsigned n = 0;

    for (const struct tgt_session *s = t->sessions; s; s = s->next)
        n++;
    return n;
}

static uint16_t check(void *user, struct login_tgt *l, const struct iscsi_params **base)
{
    struct tgt_conn *c = user;
    struct tgt *t = c->tgt;
    struct tgt_identity id = identity(l);
    struct tgt_session *s;

    if (t->stopping)
        return ISCSI_LOGIN_UNAVAILABLE;
    if (l->tsih == 0)
        return count_sessions(t) < t->opts.sessions_max || tgt_session_find(t, c, &id)
                   ? ISCSI_LOGIN_OK
                   : ISCSI_LOGIN_OUT_OF_RESOURCES;
    s = by_tsih(t, l);
    if (!s || s->discovery != l->discovery)
        return ISCSI_LOGIN_NO_SESSION;
    if (s->group_tag != id.group_tag)
        return ISCSI_LOGIN_CANNOT_INCLUDE;
    if (!by_cid(s, l->cid) && live_conns(s) >= s->params.max_connections)
        return ISCSI_LOGIN_TOO_MANY_CONNECTIONS;
    *base = &s->params;
    return ISCSI_LOGIN_OK;
}

static uint16_t begin_session(struct tgt_conn *c, struct login_tgt *l)
{
    struct tgt *t = c->tgt;
    struct tgt_identity id = identity(l);
    struct tgt_session *old = tgt_session_find(t, c, &id);
    struct tgt_session *s = tgt_session_create(c, &id, &l->params, l->exp_cmd_sn, old != NULL);

    if (!s)
        return ISCSI_LOGIN_OUT_OF_RESOURCES;
    snprintf(s->chap_name, sizeof(s->chap_name), "%s", l->chap_name);
    if (old) {
        s->predecessor = old;
        tgt_session_end(old, TGT_END_REINSTATED, "a new login took its place");
    }
    tgt_session_add(s, c);
    tgt_session_open(s);
    return ISCSI_LOGIN_OK;
}

static uint16_t join_session(struct tgt_conn *c, struct login_tgt *l)
{
    struct tgt_session *s = by_tsih(c->tgt, l);
    struct tgt_conn *old;

    if (!s)
        return ISCSI_LOGIN_NO_SESSION;
    if (strcmp(s->chap_name, l->chap_name) != 0) /* T-CHAP-07 */
        return ISCSI_LOGIN_AUTHENTICATION;
    old = by_cid(s, l->cid);
    if (old)
        tgt_conn_fail(old, TGT_CLOSE_REINSTATED, "a new login took its place");
    else if (live_conns(s) >= s->params.max_connections)
        return ISCSI_LOGIN_TOO_MANY_CONNECTIONS;
    tgt_session_add(s, c);
    return ISCSI_LOGIN_OK;
}

static uint16_t begin(void *user, struct login_tgt *l, uint16_t *tsih)
{
    struct tgt_conn *c = user;
    uint16_t status;

    if (c->tgt->stopping)
        return ISCSI_LOGIN_UNAVAILABLE;
    status = l->tsih == 0 ? begin_session(c, l) : join_session(c, l);
    if (status != ISCSI_LOGIN_OK)
        return status;
    c->cid = l->cid;
    *tsih = c->session->tsih;
    l->exp_cmd_sn = c->session->exp_cmd_sn;
    l->max_cmd_sn = c->session->told_max_cmd_sn = c->session->max_cmd_sn;
    return ISCSI_LOGIN_OK;
}

static const struct login_tgt_session_ops session_ops = {check, begin};

/* ---- PDUs ---- */

/* In full feature phase from the next PDU in; out, from the one behind the response. */
static void done(struct tgt_conn *c, const struct login_tgt *l)
{
    c->params = l->params;
    c->state = TGT_CONN_FULL;
    c->tgt->counters.logins--;
    c->stat_sn = c->acked = l->stat_sn;
    iscsi_rx_set_limit(&c->rx, c->params.mrdsl_in);
    iscsi_rx_set_digests(&c->rx, c->params.header_digest, c->params.data_digest);
    tgt_conn_timers(c);
}

static void act(struct tgt_conn *c, enum login_result result)
{
    struct tgt_login *login = c->login;

    if (result == LOGIN_FAILED || result == LOGIN_CLOSE)
        snprintf(c->login_sentence, sizeof(c->login_sentence), "%s", login->machine.sentence);
    switch (result) {
    case LOGIN_CLOSE:
        tgt_conn_fail(c, TGT_CLOSE_LOGIN, c->login_sentence);
        return;
    case LOGIN_FAILED:
        login->due = true;
        tgt_conn_finish(c, TGT_CLOSE_LOGIN, c->login_sentence);
        return;
    case LOGIN_DONE:
        done(c, &login->machine);
        break;
    default:
        break;
    }
    login->due = true;
    tgt_conn_wake(c);
}

enum iscsi_rx_verdict tgt_login_header(struct tgt_conn *c, const uint8_t *bhs,
                                       struct iscsi_place *place)
{
    if ((bhs[0] & 0x3f) == ISCSI_LOGIN_REQUEST && !c->login->due)
        return ISCSI_RX_GO;
    place->discard = true;
    if (c->login->due)
        tgt_conn_fail(c, TGT_CLOSE_LOGIN, "it did not wait for a Login Response");
    else
        act(c, login_tgt_request(&c->login->machine, bhs, NULL, 0));
    return c->state >= TGT_CONN_CLOSING ? ISCSI_RX_STOP : ISCSI_RX_GO;
}

void tgt_login_pdu(struct tgt_conn *c, const struct iscsi_rx_pdu *pdu)
{
    act(c, login_tgt_request(&c->login->machine, pdu->bhs, pdu->data, pdu->data_length));
}

bool tgt_login_due(const struct tgt_conn *c)
{
    return c->login && c->login->due;
}

bool tgt_login_produce(struct tgt_conn *c, struct iscsi_tx_pdu *out)
{
    struct tgt_login *login = c->login;
    const uint8_t *bhs;
    const uint8_t *text;
    size_t length;

    if (!login->due)
        return false;
    login->due = false;
    login_tgt_response(&login->machine, &bhs, &text, &length);
    memcpy(out->bhs, bhs, ISCSI_BHS_SIZE);
    login->flat = (struct iovec){(void *)(uintptr_t)text, length};
    out->iov = &login->flat;
    out->count = length > 0;
    out->length = (uint32_t)length;
    out->owner = c->state == TGT_CONN_FULL ? login : NULL;
    c->digests_due = c->state == TGT_CONN_FULL;
    c->tgt->counters.pdus_out++;
    return true;
}

/* ---- memory ---- */

int tgt_login_init(struct tgt_conn *c, struct lp_error *err)
{
    struct tgt *t = c->tgt;
    const struct login_tgt_opts opts = {
        .ops = &t->opts.ops.login,
        .user = t->opts.user,
        .context = c,
        .wishes = t->opts.wishes,
        .stat_sn = 1,
        .window = t->opts.depth,
        .outstanding = &t->challenges,
        .session_ops = &session_ops,
        .session_user = c,
    };

    c->login = calloc(1, sizeof(*c->login));
    if (!c->login)
        return lp_error_set(err, LP_ERROR_SYS, ENOMEM, "out of memory for a login");
    login_tgt_start(&c->login->machine, &opts);
    return 0;
}

void tgt_login_free(struct tgt_conn *c)
{
    if (!c->login)
        return;
    login_tgt_end(&c->login->machine);
    free(c->login);
    c->login = NULL;
}
