/* SPDX-License-Identifier: BSD-2-Clause */
/* What the target begins: Async messages, pings, and what happens when time is over (11.9, 11.19).
 */
#include "iscsi/tgt_int.h"

#include <string.h>

#include "base/bytes.h"

static const uint64_t second = 1000000000;

/* ---- Async ---- */

bool tgt_conn_async(struct tgt_conn *c, const struct tgt_async *async)
{
    struct tgt *t = c->tgt;
    struct tgt_control *control;
    struct iscsi_async pdu = {
        .lun = async->lun,
        .event = async->event,
        .vcode = async->vcode,
        .parameter1 = async->parameter[0],
        .parameter2 = async->parameter[1],
        .parameter3 = async->parameter[2],
    };

    /* 7.4.3: discovery sessions get no such thing. */
    if (!tgt_conn_alive(c) || c->session->discovery || async->sense_length > TGT_SENSE_MAX)
        return false;
    tgt_enter(t);
    control = tgt_control_add(c, ISCSI_ASYNC, true);
    if (control) {
        if (async->sense_length > 0) {
            store_be16(control->data, async->sense_length);
            memcpy(control->data + 2, async->sense, async->sense_length);
            control->length = (uint16_t)(2 + async->sense_length);
        }
        pdu.data_segment_length = control->length;
        iscsi_async_pack(control->bhs, &pdu);
    }
    tgt_leave(t);
    return control != NULL;
}

void tgt_conn_ask_logout(struct tgt_conn *c, uint16_t seconds)
{
    struct tgt *t = c->tgt;
    struct tgt_async async = {
        .event = ISCSI_ASYNC_LOGOUT_REQUESTED,
        .parameter = {0, 0, seconds},
    };

    if (!tgt_conn_alive(c) || c->logout_asked)
        return;
    tgt_enter(t);
    if (c->session->discovery) {
        tgt_conn_finish(c, TGT_CLOSE_OWNER, "the target stops");
    } else {
        tgt_conn_async(c, &async);
        c->logout_asked = true;
        c->logout_deadline = t->now + seconds * second;
        tgt_arm(t, c->logout_deadline);
    }
    tgt_leave(t);
}

void tgt_conn_drop(struct tgt_conn *c, const char *sentence)
{
    struct tgt *t = c->tgt;

    tgt_enter(t);
    if (tgt_conn_alive(c)) {
        struct tgt_async async = {
            .event = ISCSI_ASYNC_CONNECTION_DROP,
            .parameter = {c->cid, (uint16_t)c->session->params.default_time2wait,
                          (uint16_t)c->session->params.default_time2retain},
        };

        tgt_conn_async(c, &async);
        tgt_conn_finish(c, TGT_CLOSE_OWNER, sentence);
    } else {
        tgt_conn_fail(c, TGT_CLOSE_OWNER, sentence);
    }
    tgt_leave(t);
}

/* ---- pings ---- */

bool tgt_conn_ping(struct tgt_conn *c)
{
    struct tgt *t = c->tgt;
    struct tgt_control *control;

    if (!tgt_conn_alive(c) || c->pinging || c->session->discovery)
        return false;
    tgt_enter(t);
    control = tgt_control_add(c, ISCSI_NOP_IN, false);
    if (control) {
        struct iscsi_nop_in pdu = {.itt = ISCSI_TAG_NONE};

        pdu.ttt = c->ping_ttt = c->session->ttt_generation++ % 0xffff;
        iscsi_nop_in_pack(control->bhs, &pdu);
        c->pinging = true;
        c->ping_deadline =
            t->opts.ping_timeout_ns == TGT_NEVER ? TGT_NEVER : t->now + t->opts.ping_timeout_ns;
        tgt_arm(t, c->ping_deadline);
    }
    tgt_leave(t);
    return control != NULL;
}

static uint64_t idle_until(const struct tgt_conn *c)
{
    const struct tgt *t = c->tgt;

    if (t->opts.ping_idle_ns == TGT_NEVER || c->session->discovery || c->pinging)
        return TGT_NEVER;
    return c->heard_ns + t->opts.ping_idle_ns;
}

void tgt_conn_timers(struct tgt_conn *c)
{
    c->heard_ns = c->tgt->now;
    c->deadline = c->ping_deadline = c->logout_deadline = TGT_NEVER;
    tgt_arm(c->tgt, idle_until(c));
}

/* ---- time ---- */

static void expire_full(struct tgt_conn *c, uint64_t now_ns)
{
    if (c->pinging && now_ns >= c->ping_deadline) {
        tgt_conn_fail(c, TGT_CLOSE_TIMEOUT, "no answer to a NOP-In in time");
        return;
    }
    if (c->logout_asked && now_ns >= c->logout_deadline) {
        c->logout_deadline = TGT_NEVER;
        tgt_conn_drop(c, "it was asked to log out and did not");
        return;
    }
    if (now_ns >= idle_until(c))
        tgt_conn_ping(c);
    tgt_arm(c->tgt, idle_until(c));
    if (c->pinging)
        tgt_arm(c->tgt, c->ping_deadline);
    if (c->logout_asked)
        tgt_arm(c->tgt, c->logout_deadline);
}

void tgt_conn_expire(struct tgt_conn *c, uint64_t now_ns)
{
    if (c->state == TGT_CONN_FULL) {
        expire_full(c, now_ns);
    } else if (c->state == TGT_CONN_LOGIN || c->state == TGT_CONN_DRAINING) {
        if (now_ns >= c->deadline && c->state == TGT_CONN_LOGIN)
            tgt_conn_fail(c, TGT_CLOSE_LOGIN, "the login took too long");
        else if (now_ns >= c->deadline)
            tgt_conn_ask_close(c);
        else
            tgt_arm(c->tgt, c->deadline);
    }
    /* The drop above may have begun to drain. */
    if (c->state == TGT_CONN_DRAINING)
        tgt_arm(c->tgt, c->deadline);
}
