/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: their bytes, the dispatcher, and their end.
 *
 *     LOGIN --> FULL --> DRAINING --> CLOSING --> CLOSED
 *       |        |          ^ what is due to be sent first: a Logout Response, an Async, a Reject
 *       +--------+----------------------^ failed
 */
#include "iscsi/tgt_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static const struct tgt_handler handlers[] = {
    {ISCSI_SCSI_COMMAND, false, true, tgt_on_command, tgt_command_complete, tgt_command_damaged},
    {ISCSI_DATA_OUT, false, false, tgt_on_data_out, tgt_data_out_complete, tgt_data_out_damaged},
    {ISCSI_NOP_OUT, false, false, tgt_on_nop_out, tgt_request_complete, tgt_request_damaged},
    {ISCSI_TMF_REQUEST, false, false, tgt_on_tmf, tgt_request_complete, tgt_request_damaged},
    {ISCSI_TEXT_REQUEST, true, false, tgt_on_text, tgt_text_complete, tgt_text_damaged},
    {ISCSI_LOGOUT_REQUEST, true, false, tgt_on_logout, tgt_request_complete, tgt_request_damaged},
    {ISCSI_SNACK, false, false, tgt_on_snack, NULL, NULL},
};

static const struct tgt_handler *find_handler(uint8_t opcode)
{
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
        if (handlers[i].opcode == opcode)
            return &handlers[i];
    return NULL;
}

bool tgt_conn_alive(const struct tgt_conn *c)
{
    return c->state == TGT_CONN_FULL;
}

/* ---- its end ---- */

void tgt_conn_ask_close(struct tgt_conn *c)
{
    if (c->state >= TGT_CONN_CLOSING)
        return;
    c->state = TGT_CONN_CLOSING;
    c->tgt->opts.ops.close(c->tgt->opts.user, c, c->why, c->sentence);
}

/* Its tasks end without an answer; but not the logout that is the reason. */
void tgt_conn_lose_tasks(struct tgt_conn *c, bool clear)
{
    struct tgt_session *s = c->session;
    struct tgt *t = c->tgt;
    unsigned commands = 0;

    for (unsigned i = 1; s && i < s->slot_count; i++) {
        struct tgt_slot *slot = tgt_slot_at(s, i);

        if (slot->kind == TGT_FREE || slot->conn != c || slot == c->logout || slot->lost)
            continue;
        commands += slot->kind == TGT_COMMAND && !slot->packed;
        tgt_slot_lose(slot);
    }
    if (clear && commands > 0 && s->opened && !s->discovery && s->state != TGT_SESSION_ENDING &&
        !s->logged_out && t->opts.ops.tasks_cleared)
        t->opts.ops.tasks_cleared(t->opts.user, s);
}

static void leave_login(struct tgt_conn *c)
{
    if (c->state == TGT_CONN_LOGIN)
        c->tgt->counters.logins--;
}

void tgt_conn_fail(struct tgt_conn *c, enum tgt_close why, const char *sentence)
{
    if (c->state >= TGT_CONN_CLOSING)
        return;
    leave_login(c);
    c->why = why;
    c->sentence = sentence;
    c->state = TGT_CONN_DRAINING; /* nothing is sent or taken any more while tasks end */
    c->logout = NULL;
    c->control_count = 0;
    c->window_due = false;
    tgt_conn_lose_tasks(c, true);
    tgt_conn_ask_close(c);
}

/* Sends what is queued, then closes. What the owner still does is not waited for. */
void tgt_conn_finish(struct tgt_conn *c, enum tgt_close why, const char *sentence)
{
    const uint64_t patience_ns = 5000000000;

    if (c->state >= TGT_CONN_DRAINING)
        return;
    leave_login(c);
    c->why = why;
    c->sentence = sentence;
    c->state = TGT_CONN_DRAINING;
    c->deadline = c->tgt->now + patience_ns;
    tgt_arm(c->tgt, c->deadline);
    c->logout = NULL;
    tgt_conn_lose_tasks(c, true);
    tgt_conn_wake(c);
}

/* 7.7: all connections of the session are closed. */
void tgt_conn_format_error(struct tgt_conn *c, const char *sentence)
{
    struct tgt_session *s = c->session;

    tgt_conn_fail(c, TGT_CLOSE_PROTOCOL, sentence);
    if (s)
        tgt_session_end(s, TGT_END_PROTOCOL, sentence);
}

void tgt_conn_closed(struct tgt_conn *c, uint64_t now_ns)
{
    struct tgt *t = c->tgt;
    struct tgt_session *s = c->session;

    if (c->state == TGT_CONN_CLOSED)
        return;
    tgt_enter(t);
    t->now = now_ns;
    leave_login(c);
    c->logout = NULL;
    if (c->state < TGT_CONN_DRAINING) {
        c->state = TGT_CONN_CLOSING;
        tgt_conn_lose_tasks(c, true);
    }
    c->state = TGT_CONN_CLOSED;
    t->counters.conns--;
    iscsi_tx_drop(&c->tx);
    for (unsigned i = 1; s && i < s->slot_count; i++) {
        struct tgt_slot *slot = tgt_slot_at(s, i);

        if (slot->kind == TGT_FREE || slot->conn != c)
            continue;
        slot->conn = NULL;
        slot->receiving = false;
        if (slot->retired)
            tgt_slot_retire(slot);
    }
    if (s)
        tgt_session_lost_conn(s, c);
    c->session = NULL;
    tgt_leave(t);
}

/* ---- bytes in ---- */

/* A header may cause one answer of its own and a few of its session's. */
static bool room_for_answers(const struct tgt_conn *c)
{
    return c->control_count <= TGT_CONTROL_SLOTS - 4;
}

static int dispatch(struct tgt_conn *c, struct iscsi_place *place)
{
    struct tgt_in *in = &c->in;
    const struct tgt_handler *handler = find_handler(in->h.opcode);

    if (c->state != TGT_CONN_FULL)
        return -1;
    if (in->h.opcode == ISCSI_LOGIN_REQUEST) {
        tgt_reject(c, ISCSI_REJECT_PROTOCOL);
        return -1;
    }
    if (!handler || (c->session->discovery && !handler->discovery)) {
        tgt_reject(c, ISCSI_REJECT_NOT_SUPPORTED);
        return -1;
    }
    tgt_acknowledged(c, load_be32(in->bhs + 28)); /* ExpStatSN, in each of them */
    if (in->ahs_length > 0 && !handler->ahs) {
        tgt_reject(c, ISCSI_REJECT_INVALID_FIELD);
        return -1;
    }
    in->handler = handler;
    if (handler->header(c, place) != 0)
        return -1;
    if (!place->iov)
        place->discard = true;
    return 0;
}

static enum iscsi_rx_verdict on_header(void *user, const uint8_t *bhs, const uint8_t *ahs,
                                       uint32_t ahs_length, struct iscsi_place *place)
{
    struct tgt_conn *c = user;
    struct tgt_in *in = &c->in;

    if (c->state == TGT_CONN_LOGIN)
        return tgt_login_header(c, bhs, place);
    if (c->stalled || !room_for_answers(c)) {
        c->recv_blocked = true;
        return ISCSI_RX_PAUSE;
    }
    if (ahs_length > TGT_AHS_MAX) {
        tgt_conn_format_error(c, "a header is followed by more than any PDU can have");
        return ISCSI_RX_STOP;
    }
    c->tgt->counters.pdus_in++;
    in->handler = NULL;
    in->slot = NULL;
    in->burst = NULL;
    in->ahs_length = ahs_length;
    memcpy(in->bhs, bhs, ISCSI_BHS_SIZE);
    memcpy(in->ahs, ahs, ahs_length);
    iscsi_bhs_unpack(bhs, &in->h);
    if (dispatch(c, place) != 0) {
        in->handler = NULL;
        place->discard = true;
    }
    return c->state >= TGT_CONN_CLOSING ? ISCSI_RX_STOP : ISCSI_RX_GO;
}

static enum iscsi_rx_verdict on_pdu(void *user, const struct iscsi_rx_pdu *pdu)
{
    struct tgt_conn *c = user;
    const struct tgt_handler *handler = c->in.handler;

    if (c->state == TGT_CONN_LOGIN) {
        tgt_login_pdu(c, pdu);
    } else if (handler && c->state == TGT_CONN_FULL) {
        c->in.handler = NULL;
        if (pdu->data_digest_ok) {
            handler->complete(c);
        } else {
            c->tgt->counters.digest_errors++;
            tgt_reject(c, ISCSI_REJECT_DATA_DIGEST);
            handler->damaged(c);
        }
    }
    return c->state >= TGT_CONN_CLOSING ? ISCSI_RX_STOP : ISCSI_RX_GO;
}

static void stream_failed(struct tgt_conn *c)
{
    switch (c->rx.error) {
    case ISCSI_RX_HEADER_DIGEST: /* no length can be trusted: nothing to resynchronise by */
        c->tgt->counters.digest_errors++;
        tgt_conn_fail(c, TGT_CLOSE_DIGEST, "a header digest was wrong");
        break;
    case ISCSI_RX_TOO_LONG:
    case ISCSI_RX_NO_PLACE:
        tgt_conn_format_error(c, "a data segment is longer than was declared to be taken");
        break;
    default:
        tgt_conn_fail(c, TGT_CLOSE_PROTOCOL, "the protocol was broken");
        break;
    }
}

unsigned tgt_conn_recv_space(struct tgt_conn *c, struct iovec *iov, unsigned max)
{
    unsigned n = 0;

    if (c->state < TGT_CONN_CLOSING && !c->stalled && room_for_answers(c))
        n = iscsi_rx_space(&c->rx, iov, max);
    if (n == 0)
        c->recv_blocked = true;
    return n;
}

void tgt_conn_received(struct tgt_conn *c, size_t n, uint64_t now_ns)
{
    struct tgt *t = c->tgt;

    if (c->state >= TGT_CONN_CLOSING)
        return;
    tgt_enter(t);
    t->now = now_ns;
    c->heard_ns = now_ns;
    if (c->state == TGT_CONN_LOGIN) {
        c->login_bytes += (uint32_t)n;
        if (c->login_bytes > t->opts.login_bytes_max) {
            tgt_conn_fail(c, TGT_CLOSE_LIMIT, "its login is longer than allowed");
            tgt_leave(t);
            return;
        }
    }
    if (iscsi_rx_received(&c->rx, n) != 0)
        stream_failed(c);
    tgt_leave(t);
}

/* What made recv_space return 0, or a header wait, may be over. */
static void go_on(struct tgt_conn *c)
{
    struct tgt *t = c->tgt;

    if (!c->recv_blocked || c->stalled || !room_for_answers(c) || c->state >= TGT_CONN_CLOSING)
        return;
    c->recv_blocked = false;
    if (iscsi_rx_resume(&c->rx) != 0)
        stream_failed(c);
    if (t->opts.ops.want_recv && c->state < TGT_CONN_CLOSING)
        t->opts.ops.want_recv(t->opts.user, c);
}

void tgt_conn_stall(struct tgt_conn *c, bool stalled)
{
    tgt_enter(c->tgt);
    c->stalled = stalled;
    if (!stalled)
        go_on(c);
    tgt_leave(c->tgt);
}

/* ---- bytes out ---- */

void tgt_conn_wake(struct tgt_conn *c)
{
    if (c->want_told || c->state >= TGT_CONN_CLOSING)
        return;
    c->want_told = true;
    c->tgt->opts.ops.want_send(c->tgt->opts.user, c);
}

static bool produce(void *user, struct iscsi_tx_pdu *out)
{
    struct tgt_conn *c = user;

    if (c->state >= TGT_CONN_CLOSING)
        return false;
    if (c->login && tgt_login_produce(c, out))
        return true;
    if (!c->session)
        return false;
    if (c->digests_due) {
        c->digests_due = false;
        iscsi_tx_set_digests(&c->tx, c->params.header_digest, c->params.data_digest);
    }
    return tgt_next_out(c, out);
}

static void sent(void *user, void *owner)
{
    struct tgt_conn *c = user;

    if (owner == c->login)
        tgt_login_free(c); /* the last Login Response is out */
    else
        tgt_slot_sent(owner);
}

unsigned tgt_conn_send_data(struct tgt_conn *c, struct iovec *iov, unsigned max)
{
    unsigned n = 0;

    tgt_enter(c->tgt);
    c->want_told = false;
    if (c->state < TGT_CONN_CLOSING)
        n = iscsi_tx_data(&c->tx, iov, max);
    if (n == 0 && c->state == TGT_CONN_DRAINING)
        tgt_conn_ask_close(c);
    go_on(c);
    tgt_leave(c->tgt);
    return n;
}

void tgt_conn_sent(struct tgt_conn *c, size_t n)
{
    if (c->state == TGT_CONN_CLOSED)
        return;
    tgt_enter(c->tgt);
    iscsi_tx_sent(&c->tx, n);
    if (c->state == TGT_CONN_DRAINING && iscsi_tx_staged(&c->tx) == 0 && !tgt_out_pending(c) &&
        !tgt_login_due(c))
        tgt_conn_ask_close(c);
    tgt_leave(c->tgt);
}

/* ---- its beginning ---- */

static const struct iscsi_rx_ops rx_ops = {on_header, on_pdu};
static const struct iscsi_tx_ops tx_ops = {produce, sent};

/* "host:port" and "[v6]:port" without the port. */
static void host_of(const char *peer, char *host, size_t size)
{
    const char *colon = strrchr(peer, ':');
    size_t n = colon ? (size_t)(colon - peer) : strlen(peer);

    if (n >= size)
        n = size - 1;
    memcpy(host, peer, n);
    host[n] = '\0';
}

static int admit(struct tgt *t, const struct tgt_conn *c, struct lp_error *err)
{
    unsigned from_there = 0;

    for (const struct tgt_conn *other = t->conns; other; other = other->next)
        from_there += other->state == TGT_CONN_LOGIN && strcmp(other->peer_host, c->peer_host) == 0;
    if (t->counters.conns >= t->opts.conns_max)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%u connections are open already",
                            t->counters.conns);
    if (t->counters.logins >= t->opts.logins_max)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%u connections are in login already",
                            t->counters.logins);
    if (from_there >= t->opts.logins_max_peer)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%u connections from %s are in login already",
                            from_there, c->peer_host);
    return 0;
}

static int allocate(struct tgt_conn *c, struct lp_error *err)
{
    c->tx_slots = calloc(TGT_OUT_MAX, sizeof(*c->tx_slots));
    c->staging = malloc(TGT_STAGING);
    c->hold = malloc(TGT_TEXT_MAX);
    if (!c->tx_slots || !c->staging || !c->hold)
        return lp_error_set(err, LP_ERROR_SYS, ENOMEM, "out of memory for a connection");
    iscsi_rx_init(&c->rx, &rx_ops, c, c->staging, TGT_STAGING, c->hold, TGT_TEXT_MAX,
                  ISCSI_LOGIN_MRDSL);
    iscsi_tx_init(&c->tx, &tx_ops, c, c->tx_slots, TGT_OUT_MAX);
    return tgt_login_init(c, err);
}

static void free_memory(struct tgt_conn *c)
{
    tgt_login_free(c);
    free(c->tx_slots);
    free(c->staging);
    free(c->hold);
    free(c);
}

struct tgt_conn *tgt_conn_new(struct tgt *t, const struct tgt_portal *portal, const char *peer,
                              uint64_t now_ns, struct lp_error *err)
{
    struct tgt_conn *c = calloc(1, sizeof(*c));

    if (!c) {
        lp_error_set(err, LP_ERROR_SYS, ENOMEM, "out of memory for a connection");
        return NULL;
    }
    c->tgt = t;
    snprintf(c->portal_address, sizeof(c->portal_address), "%s", portal->address);
    snprintf(c->peer, sizeof(c->peer), "%s", peer);
    host_of(peer, c->peer_host, sizeof(c->peer_host));
    c->portal = (struct tgt_portal){c->portal_address, portal->group_tag};
    if (admit(t, c, err) != 0) {
        t->counters.refused++;
        free_memory(c);
        return NULL;
    }
    if (allocate(c, err) != 0) {
        free_memory(c);
        return NULL;
    }
    c->next = t->conns;
    if (t->conns)
        t->conns->prev = c;
    t->conns = c;
    t->counters.conns++;
    t->counters.logins++;
    t->now = now_ns;
    c->heard_ns = now_ns;
    c->deadline =
        t->opts.login_timeout_ns == TGT_NEVER ? TGT_NEVER : now_ns + t->opts.login_timeout_ns;
    tgt_arm(t, c->deadline);
    return c;
}

void tgt_conn_free(struct tgt_conn *c)
{
    if (!c)
        return;
    if (c->next)
        c->next->prev = c->prev;
    if (c->prev)
        c->prev->next = c->next;
    else
        c->tgt->conns = c->next;
    free_memory(c);
}
