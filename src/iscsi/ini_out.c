/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes out next: one PDU a call, in an order that keeps commands, data and answers apart
 * (RFC 7143 4.2.2.1, 4.2.5.2, 11.8). */
#include "iscsi/ini_int.h"

static bool is_task(const struct ini_op *op)
{
    return op->kind == INI_KIND_TASK;
}

bool ini_queue_ready(struct ini_conn *c)
{
    struct ini_session *s = c->session;
    struct ini_op *op = c->queue.first;

    if (!op || c->state != INI_CONN_FULL || s->state != INI_SESSION_OPEN)
        return false;
    if (!iscsi_window_may_send(&s->window, s->cmd_sn)) {
        if (!op->held)
            s->counters.held++;
        op->held = true;
        return false;
    }
    if (is_task(op) && (s->in_flight >= s->opts.depth || s->resets))
        return false;
    return op->itt != ISCSI_TAG_NONE || s->free_count > 0;
}

/* An answer to a NOP-In: ITT none, its TTT and LUN copied (I-NOP-01). */
static bool out_reply(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    if (!c->reply_count)
        return false;
    const struct ini_reply *reply = &c->replies[c->reply_head];
    struct iscsi_nop_out pdu = {
        .immediate = true,
        .lun = reply->lun,
        .itt = ISCSI_TAG_NONE,
        .ttt = reply->ttt,
        .cmd_sn = c->session->cmd_sn,
        .exp_stat_sn = c->exp_stat_sn,
    };

    iscsi_nop_out_pack(out->bhs, &pdu);
    c->reply_head = (c->reply_head + 1) % INI_REPLIES_MAX;
    c->reply_count--;
    return true;
}

static void pack_request(struct ini_conn *c, struct ini_op *op, struct iscsi_tx_pdu *out)
{
    switch ((enum ini_kind)op->kind) {
    case INI_KIND_TASK:
        ini_task_command(c, ini_task_of(op), out);
        break;
    case INI_KIND_TMF:
        ini_tmf_request(c, ini_tmf_of(op), out);
        break;
    case INI_KIND_PING:
        ini_ping_request(c, ini_ping_of(op), out);
        break;
    case INI_KIND_TEXT:
        ini_text_request(c, ini_text_of(op), out);
        break;
    case INI_KIND_LOGOUT:
        ini_logout_request(c, ini_logout_of(op), out);
        break;
    }
}

/* Immediate requests carry the current CmdSN and leave it (I-NUM-02). */
static bool out_urgent(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    struct ini_op *op = c->urgent.first;

    if (!op || (op->itt == ISCSI_TAG_NONE && !ini_op_tag(op)))
        return false;
    ini_list_remove(op);
    op->cmd_sn = c->session->cmd_sn;
    op->state = INI_SENT;
    pack_request(c, op, out);
    return true;
}

static bool out_resend(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    struct ini_op *op = c->resend.first;

    if (!op || c->unsolicited)
        return false;
    ini_list_remove(op);
    op->state = INI_SENT;
    pack_request(c, op, out);
    return true;
}

static bool out_unsolicited(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    return c->unsolicited && ini_data_out(c, out, false);
}

/* The next command. The one before has all its unsolicited data out by now (I-OUT-10). */
static bool out_queue(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    struct ini_session *s = c->session;

    if (!ini_queue_ready(c))
        return false;
    struct ini_op *op = c->queue.first;
    if (op->itt == ISCSI_TAG_NONE && !ini_op_tag(op))
        return false;
    ini_list_remove(op);
    if (is_task(op)) {
        s->in_flight++;
        c->in_flight++;
    }
    op->cmd_sn = s->cmd_sn++;
    op->state = INI_SENT;
    pack_request(c, op, out);
    return true;
}

static bool out_solicited(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    return c->burst_first && ini_data_out(c, out, true);
}

/* Asked for, or because the target waits for it (see ini_confirm_all). */
static bool out_acknowledge(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    bool waited_for = c->session->set_aborts && c->told_stat_sn != c->exp_stat_sn;

    if (!c->acknowledge && !waited_for)
        return false;
    struct iscsi_nop_out pdu = {
        .immediate = true,
        .itt = ISCSI_TAG_NONE,
        .ttt = ISCSI_TAG_NONE,
        .cmd_sn = c->session->cmd_sn,
        .exp_stat_sn = c->exp_stat_sn,
    };

    iscsi_nop_out_pack(out->bhs, &pdu);
    return true;
}

bool ini_next_out(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    static bool (*const makers[])(struct ini_conn *, struct iscsi_tx_pdu *) = {
        ini_snack_out, out_reply, out_resend,    out_unsolicited,
        out_urgent,    out_queue, out_solicited, out_acknowledge,
    };
    static bool (*const last[])(struct ini_conn *, struct iscsi_tx_pdu *) = {out_urgent};
    bool leaving = c->state == INI_CONN_LEAVING;

    if (c->state < INI_CONN_FULL || c->state > INI_CONN_LEAVING)
        return false;
    /* After Logout nothing new goes out, and before it nothing else is worth while (I-LGO-01). */
    for (size_t i = 0; i < (leaving ? sizeof last : sizeof makers) / sizeof *makers; i++) {
        if (!(leaving ? last : makers)[i](c, out))
            continue;
        c->told_stat_sn = c->exp_stat_sn;
        c->acknowledge = false;
        c->session->counters.pdus_out++;
        return true;
    }
    return false;
}
