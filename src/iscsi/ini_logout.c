/* SPDX-License-Identifier: BSD-2-Clause */
/* Logout, asked for by us or by the target (RFC 7143 11.14, 11.15, 11.9.1 event 1). */
#include "iscsi/ini_int.h"

static const uint64_t LOGOUT_PATIENCE_NS = 30ull * 1000000000;

static bool usable(const struct ini_conn *c)
{
    return c->state == INI_CONN_FULL || c->state == INI_CONN_DRAINING;
}

static struct ini_conn *carrier(struct ini_session *s, const struct ini_logout *logout)
{
    struct ini_conn *other = NULL;

    for (unsigned i = 0; i < s->conn_count; i++) {
        struct ini_conn *c = s->conns[i];
        if (!usable(c))
            continue;
        if (logout->reason != ISCSI_LOGOUT_SESSION && c->cid == logout->cid)
            return c;
        if (!other)
            other = c;
    }
    return other;
}

/* Nothing new on this connection: what waits for being sent is refused or goes elsewhere. */
static void leave(struct ini_conn *c)
{
    while (c->urgent.first)
        ini_op_end(c->urgent.first, INI_REFUSED);
    while (c->texts.first)
        ini_op_end(c->texts.first, INI_REFUSED);
    c->state = INI_CONN_LEAVING;
    c->deadline = INI_NEVER;
    ini_requeue(c);
}

static void send_logout(struct ini_conn *c, struct ini_logout *logout)
{
    struct ini_session *s = c->session;

    if (logout->reason == ISCSI_LOGOUT_SESSION) {
        s->state = INI_SESSION_LEAVING;
        for (unsigned i = 0; i < s->conn_count; i++)
            if (usable(s->conns[i]))
                leave(s->conns[i]);
    } else if (c->cid == logout->cid) {
        leave(c);
    }
    logout->op.conn = c;
    ini_list_append(&c->urgent, &logout->op);
    ini_wake(c);
}

static void logout_begin(struct ini_session *s, struct ini_logout *logout)
{
    ini_op_begin(&logout->op, s, INI_KIND_LOGOUT, logout->deadline_ns);
    logout->result = INI_REFUSED;
    logout->reject = 0;
    logout->response = 0;
    logout->time2wait = logout->time2retain = 0;
}

void ini_logout(struct ini_session *s, struct ini_logout *logout)
{
    logout_begin(s, logout);
    struct ini_conn *c = s->state == INI_SESSION_OPEN ? carrier(s, logout) : NULL;
    bool allowed = !s->params.discovery || logout->reason == ISCSI_LOGOUT_SESSION; /* 4.3 */

    if (c && allowed)
        send_logout(c, logout);
    else
        ini_op_end(&logout->op, INI_REFUSED);
}

void ini_logout_request(struct ini_conn *c, struct ini_logout *logout, struct iscsi_tx_pdu *out)
{
    struct iscsi_logout_request pdu = {
        .immediate = true,
        .reason = logout->reason,
        .itt = logout->op.itt,
        .cid = logout->reason == ISCSI_LOGOUT_SESSION ? 0 : logout->cid,
        .cmd_sn = logout->op.cmd_sn,
        .exp_stat_sn = c->exp_stat_sn,
    };

    iscsi_logout_request_pack(out->bhs, &pdu);
}

static struct ini_conn *named(struct ini_session *s, const struct ini_logout *logout)
{
    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->cid == logout->cid)
            return s->conns[i];
    return NULL;
}

void ini_on_logout_response(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct ini_session *s = c->session;
    struct iscsi_logout_response pdu;
    (void)data, (void)n;

    iscsi_logout_response_unpack(bhs, &pdu);
    if (!ini_take_status(c, pdu.stat_sn))
        return;
    ini_take_window(s, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    struct ini_op *op = ini_op_answered(c, pdu.itt, INI_KIND_LOGOUT, "Logout Response");
    if (!op)
        return;
    struct ini_logout *logout = ini_logout_of(op);
    struct ini_conn *gone = named(s, logout);
    uint8_t reason = logout->reason;
    logout->response = pdu.response;
    if (pdu.response == ISCSI_LOGOUT_NO_RECOVERY || pdu.response == ISCSI_LOGOUT_CLEANUP_FAILED) {
        logout->time2wait = pdu.time2wait;
        logout->time2retain = pdu.time2retain;
    }
    ini_op_end(op, INI_OK);
    if (reason == ISCSI_LOGOUT_SESSION) {
        s->logged_out = true;
        ini_session_over(s, c, INI_CLOSE_LOGGED_OUT, "logged out");
    } else if (gone && gone->state < INI_CONN_CLOSING &&
               (gone == c || pdu.response == ISCSI_LOGOUT_DONE)) {
        ini_close(gone, INI_CLOSE_LOGGED_OUT, "logged out");
    }
}

/* ---- asked for by the target ---- */

static bool has_company(const struct ini_conn *c)
{
    const struct ini_session *s = c->session;

    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i] != c && s->conns[i]->state == INI_CONN_FULL)
            return true;
    return false;
}

static void own_logout(struct ini_conn *c)
{
    struct ini_session *s = c->session;
    bool company = has_company(c);

    if (c->own_logout.op.state != INI_IDLE)
        return;
    c->own_logout = (struct ini_logout){
        .reason = company ? ISCSI_LOGOUT_CONNECTION : ISCSI_LOGOUT_SESSION,
        .cid = c->cid,
        .deadline_ns = s->now + LOGOUT_PATIENCE_NS,
    };
    logout_begin(s, &c->own_logout);
    send_logout(c, &c->own_logout);
}

void ini_check_drained(struct ini_conn *c)
{
    if (c->state == INI_CONN_DRAINING && (!c->in_flight || c->session->now >= c->deadline))
        own_logout(c);
}

void ini_drain(struct ini_conn *c, uint64_t until)
{
    if (c->state == INI_CONN_FULL) {
        c->state = INI_CONN_DRAINING;
        c->deadline = until;
        ini_requeue(c);
    } else if (c->state == INI_CONN_DRAINING && until < c->deadline) {
        c->deadline = until;
    }
    ini_check_drained(c);
}
