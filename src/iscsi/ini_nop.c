/* SPDX-License-Identifier: BSD-2-Clause */
/* NOP in both directions, asynchronous messages and Reject (RFC 7143 11.9, 11.17 to 11.19). */
#include "iscsi/ini_int.h"

#include "base/bytes.h"
#include "base/serial.h"

#include <string.h>

/* ---- our ping ---- */

static uint32_t ping_length(const struct ini_conn *c, const struct ini_ping *ping)
{
    uint32_t n = ping->length;

    if (n > c->params.mrdsl_out)
        n = c->params.mrdsl_out;
    if (n > c->params.mrdsl_in)
        n = c->params.mrdsl_in;
    return n;
}

static void ping_begin(struct ini_conn *c, struct ini_ping *ping)
{
    ini_op_begin(&ping->op, c->session, INI_KIND_PING, ping->deadline_ns);
    ping->result = INI_REFUSED;
    ping->reject = 0;
    ping->op.conn = c;
}

void ini_ping(struct ini_conn *c, struct ini_ping *ping)
{
    ping_begin(c, ping);
    if (c->state < INI_CONN_FULL || c->state >= INI_CONN_LEAVING || c->params.discovery) {
        ini_op_end(&ping->op, INI_REFUSED);
        return;
    }
    ini_list_append(&c->urgent, &ping->op);
    ini_wake(c);
}

void ini_ping_request(struct ini_conn *c, struct ini_ping *ping, struct iscsi_tx_pdu *out)
{
    uint32_t n = ping_length(c, ping);
    struct iscsi_nop_out pdu = {
        .immediate = ping != &c->plug,
        .data_segment_length = n,
        .itt = ping->op.itt,
        .ttt = ISCSI_TAG_NONE,
        .cmd_sn = ping->op.cmd_sn,
        .exp_stat_sn = c->exp_stat_sn,
    };

    iscsi_nop_out_pack(out->bhs, &pdu);
    ping->echo.iov_base = (void *)(uintptr_t)ping->data;
    ping->echo.iov_len = n;
    if (n) {
        out->iov = &ping->echo;
        out->count = 1;
        out->length = n;
        out->owner = &ping->op;
        ping->op.tx_pieces++;
    }
}

void ini_conn_acknowledge(struct ini_conn *c)
{
    if (c->state < INI_CONN_FULL || c->state >= INI_CONN_LEAVING || c->params.discovery)
        return;
    c->acknowledge = true;
    ini_wake(c);
}

void ini_confirm_all(struct ini_session *s)
{
    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->told_stat_sn != s->conns[i]->exp_stat_sn)
            ini_wake(s->conns[i]);
}

/* Fills a gap in CmdSN that a rejected command left (7.3): a ping that is not immediate, with that
 * number. */
void ini_plug(struct ini_conn *c, uint32_t cmd_sn)
{
    struct ini_ping *ping = &c->plug;

    if (serial_lt(cmd_sn, c->session->window.exp_cmd_sn))
        return; /* no gap: the target counts it as received */
    if (ping->op.state != INI_IDLE) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target rejects one command after another");
        return;
    }
    *ping = (struct ini_ping){.deadline_ns = INI_NEVER};
    ping_begin(c, ping);
    if (!ini_op_tag(&ping->op)) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target rejects one command after another");
        return;
    }
    ping->op.cmd_sn = cmd_sn;
    ping->op.state = INI_RESEND;
    ini_list_append(&c->resend, &ping->op);
    ini_wake(c);
}

/* ---- NOP-In ---- */

static void ping_answered(struct ini_conn *c, const struct iscsi_nop_in *pdu, const uint8_t *data,
                          uint32_t n)
{
    if (!ini_take_status(c, pdu->stat_sn))
        return;
    struct ini_op *op = ini_op_answered(c, pdu->itt, INI_KIND_PING, "NOP-In");
    if (!op)
        return;
    struct ini_ping *ping = ini_ping_of(op);
    if (n != ping->echo.iov_len || (n && memcmp(data, ping->data, n) != 0))
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target's answer to a ping is not its echo");
    else
        ini_op_end(op, INI_OK);
}

/* A flat LUN uses two bytes; the rest must be zero (SAM-5 4.7). */
static bool lun_impossible(uint64_t lun)
{
    return lun >> 62 == 1 && (lun & 0xffffffffffffu) != 0;
}

static void reply(struct ini_conn *c, uint64_t lun, uint32_t ttt)
{
    if (c->reply_count == INI_REPLIES_MAX) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent NOP-In faster than they can be answered");
        return;
    }
    c->replies[(c->reply_head + c->reply_count++) % INI_REPLIES_MAX] =
        (struct ini_reply){.lun = lun, .ttt = ttt};
    ini_wake(c);
}

void ini_on_nop_in(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct iscsi_nop_in pdu;

    iscsi_nop_in_unpack(bhs, &pdu);
    ini_take_window(c->session, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    if (pdu.itt != ISCSI_TAG_NONE && pdu.ttt != ISCSI_TAG_NONE)
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent a NOP-In with two tags");
    else if (pdu.ttt != ISCSI_TAG_NONE && lun_impossible(pdu.lun))
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent a NOP-In with an impossible LUN");
    else if (pdu.itt != ISCSI_TAG_NONE)
        ping_answered(c, &pdu, data, n);
    else if (pdu.ttt != ISCSI_TAG_NONE && !c->params.discovery)
        reply(c, pdu.lun, pdu.ttt);
}

/* ---- asynchronous messages ---- */

static const uint64_t SECOND = 1000000000u;

static void tell_async(struct ini_conn *c, const struct iscsi_async *pdu, const uint8_t *data,
                       uint32_t n)
{
    struct ini_event event = {.type = INI_EVENT_ASYNC, .conn = c};
    uint32_t sense = n >= 2 ? load_be16(data) : 0;

    if (sense > n - 2)
        sense = n - 2;
    event.async.event = pdu->event;
    event.async.vcode = pdu->vcode;
    event.async.parameter[0] = pdu->parameter1;
    event.async.parameter[1] = pdu->parameter2;
    event.async.parameter[2] = pdu->parameter3;
    event.async.lun = pdu->lun;
    if (pdu->event == ISCSI_ASYNC_SCSI && sense) {
        event.async.sense = data + 2;
        event.async.sense_length = (uint16_t)sense;
    }
    ini_tell(c->session, &event);
}

/* Logged out once idle, and in any case well before the target loses patience. */
static void async_logout(struct ini_conn *c, const struct iscsi_async *pdu)
{
    ini_drain(c, c->session->now + pdu->parameter3 * SECOND / 2);
}

static void async_drop(struct ini_conn *c, const struct iscsi_async *pdu)
{
    struct ini_session *s = c->session;
    struct ini_conn *named = NULL;

    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->cid == pdu->parameter1)
            named = s->conns[i];
    if (pdu->event == ISCSI_ASYNC_SESSION_DROP)
        named = c;
    if (!named || named->state >= INI_CONN_CLOSING)
        return; /* not one of ours: nothing is lost */
    named->waits = true;
    named->time2wait = pdu->parameter2;
    named->time2retain = pdu->parameter3;
    ini_fail(named, INI_CLOSE_ASKED, "the target drops the %s",
             pdu->event == ISCSI_ASYNC_SESSION_DROP ? "session" : "connection");
}

static void async_negotiate(struct ini_conn *c, const struct iscsi_async *pdu)
{
    if (c->text || c->own_text.op.state != INI_IDLE)
        return;
    c->own_text = (struct ini_text){
        .deadline_ns = c->session->now + (pdu->parameter3 + 30u) * SECOND,
    };
    ini_text(c, &c->own_text);
}

/* FastAbort elsewhere has ended our tasks of this LU: stop their data, then confirm (11.9.1). */
static void async_terminated(struct ini_conn *c, const struct iscsi_async *pdu)
{
    struct ini_session *s = c->session;

    if (s->params.task_reporting != ISCSI_REPORT_FAST_ABORT) {
        s->counters.async_ignored++;
        return;
    }
    for (struct ini_burst *burst = c->burst_first; burst; burst = burst->next)
        if (burst->task->lun == pdu->lun)
            burst->task->op.aborting = true;
    reply(c, pdu->lun, ISCSI_TAG_NONE);
}

static void async_scsi(struct ini_conn *c, const struct iscsi_async *pdu)
{
    (void)c, (void)pdu; /* its owner was told */
}

void ini_on_async(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    static void (*const handlers[])(struct ini_conn *, const struct iscsi_async *) = {
        [ISCSI_ASYNC_SCSI] = async_scsi,
        [ISCSI_ASYNC_LOGOUT_REQUESTED] = async_logout,
        [ISCSI_ASYNC_CONNECTION_DROP] = async_drop,
        [ISCSI_ASYNC_SESSION_DROP] = async_drop,
        [ISCSI_ASYNC_NEGOTIATION] = async_negotiate,
        [ISCSI_ASYNC_TASK_TERMINATION] = async_terminated,
    };
    struct iscsi_async pdu;

    iscsi_async_unpack(bhs, &pdu);
    if (!ini_take_status(c, pdu.stat_sn))
        return;
    ini_take_window(c->session, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    tell_async(c, &pdu, data, n);
    if (pdu.event < sizeof handlers / sizeof *handlers)
        handlers[pdu.event](c, &pdu);
    else
        c->session->counters.async_ignored++;
}

/* ---- Reject ---- */

static bool may_be_resent(uint8_t reason)
{
    return reason == ISCSI_REJECT_DATA_DIGEST || reason == ISCSI_REJECT_SNACK ||
           reason == ISCSI_REJECT_TOO_MANY_IMMEDIATE || reason == ISCSI_REJECT_NO_RESOURCES;
}

static const struct {
    uint8_t opcode, kind;
} requests[] = {
    {ISCSI_SCSI_COMMAND, INI_KIND_TASK},     {ISCSI_TMF_REQUEST, INI_KIND_TMF},
    {ISCSI_NOP_OUT, INI_KIND_PING},          {ISCSI_TEXT_REQUEST, INI_KIND_TEXT},
    {ISCSI_LOGOUT_REQUEST, INI_KIND_LOGOUT},
};

/* The operation whose request is quoted. NULL: none, or a PDU that belongs to a task, for which a
 * response will come (7.3). */
static struct ini_op *rejected_op(struct ini_conn *c, const uint8_t *data, uint32_t n)
{
    struct iscsi_bhs h;

    if (n < ISCSI_BHS_SIZE)
        return NULL;
    iscsi_bhs_unpack(data, &h);
    struct ini_op *op = ini_op_find(c->session, h.itt);
    for (size_t i = 0; op && i < sizeof requests / sizeof *requests; i++)
        if (requests[i].opcode == h.opcode && requests[i].kind == op->kind && op->conn == c)
            return op;
    return NULL;
}

static void set_reject(struct ini_op *op, uint8_t reason)
{
    switch ((enum ini_kind)op->kind) {
    case INI_KIND_TASK:
        ini_task_of(op)->reject = reason;
        break;
    case INI_KIND_TMF:
        ini_tmf_of(op)->reject = reason;
        break;
    case INI_KIND_PING:
        ini_ping_of(op)->reject = reason;
        break;
    case INI_KIND_TEXT:
        ini_text_of(op)->reject = reason;
        break;
    case INI_KIND_LOGOUT:
        ini_logout_of(op)->reject = reason;
        break;
    }
}

/* Not immediate: it holds a CmdSN of its own. */
static bool was_numbered(const struct ini_op *op)
{
    return op->kind == INI_KIND_TASK || op->kind == INI_KIND_TEXT ||
           (op->conn && op == &op->conn->plug.op);
}

static void reject_op(struct ini_conn *c, struct ini_op *op, uint8_t reason)
{
    bool numbered = was_numbered(op);
    uint32_t cmd_sn = op->cmd_sn;

    if (op->state == INI_RESEND)
        return; /* goes out again already */
    if (may_be_resent(reason) && op->retries < INI_RETRIES_MAX) {
        op->retries++;
        if (op->kind == INI_KIND_TASK)
            ini_burst_drop(ini_task_of(op));
        if (op->kind == INI_KIND_TEXT)
            ini_text_again(ini_text_of(op));
        op->state = INI_RESEND;
        ini_list_append(numbered ? &c->resend : &c->urgent, op);
        ini_wake(c);
        return;
    }
    set_reject(op, reason);
    ini_op_end(op, reason == ISCSI_REJECT_WAITING_FOR_LOGOUT ? INI_LOST : INI_REJECTED);
    if (numbered)
        ini_plug(c, cmd_sn);
    ini_start_text(c);
}

void ini_on_reject(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct iscsi_reject pdu;

    iscsi_reject_unpack(bhs, &pdu);
    if (!ini_take_status(c, pdu.stat_sn))
        return;
    ini_take_window(c->session, pdu.exp_cmd_sn, pdu.max_cmd_sn);
    c->session->counters.rejects++;
    if (pdu.reason == ISCSI_REJECT_NEGOTIATION_RESET) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target reset the negotiation (Reject 0x0b)");
        return;
    }
    struct ini_op *op = rejected_op(c, data, n);
    if (n >= ISCSI_BHS_SIZE && (data[0] & 0x3f) == ISCSI_SNACK)
        ini_snack_rejected(c, data);
    if (op)
        reject_op(c, op, pdu.reason);
    if (pdu.reason == ISCSI_REJECT_WAITING_FOR_LOGOUT)
        ini_drain(c, c->session->now);
}
