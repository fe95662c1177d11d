/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection: its bytes, its constructor, and the table of what arrives. */
#include "iscsi/ini_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- PDUs in ---- */

typedef void handler(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n);

static const struct {
    uint8_t opcode;
    bool discovery; /* may come in a discovery session */
    handler *fn;
} handlers[] = {
    {ISCSI_SCSI_RESPONSE, false, ini_on_scsi_response},
    {ISCSI_DATA_IN, false, ini_on_data_in},
    {ISCSI_R2T, false, ini_on_r2t},
    {ISCSI_NOP_IN, true, ini_on_nop_in},
    {ISCSI_TMF_RESPONSE, false, ini_on_tmf_response},
    {ISCSI_TEXT_RESPONSE, true, ini_on_text_response},
    {ISCSI_LOGOUT_RESPONSE, true, ini_on_logout_response},
    {ISCSI_ASYNC, true, ini_on_async},
    {ISCSI_REJECT, true, ini_on_reject},
};

static handler *handler_of(const struct ini_conn *c, uint8_t opcode)
{
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (handlers[i].opcode == opcode)
            return c->params.discovery && !handlers[i].discovery ? NULL : handlers[i].fn;
    return NULL;
}

static bool ended(const struct ini_conn *c)
{
    return c->state >= INI_CONN_CLOSING;
}

/* Data-In goes straight into its task's buffers, once it is known to fit. */
static enum iscsi_rx_verdict on_header(void *user, const uint8_t *bhs, const uint8_t *ahs,
                                       uint32_t ahs_length, struct iscsi_place *place)
{
    struct ini_conn *c = user;
    struct iscsi_bhs h;
    uint32_t offset = 0;
    (void)ahs, (void)ahs_length;

    iscsi_bhs_unpack(bhs, &h);
    if (c->state < INI_CONN_FULL || h.opcode != ISCSI_DATA_IN || c->params.discovery)
        return ISCSI_RX_GO;
    struct ini_task *task = ini_place_data_in(c, bhs, &offset);
    if (ended(c))
        return ISCSI_RX_STOP;
    place->discard = !task;
    if (task && h.data_segment_length) {
        struct ini_seek at = ini_seek(task, offset);
        place->iov = at.iov;
        place->count = at.count;
        place->offset = at.offset;
        c->rx_op = &task->op;
    }
    return ISCSI_RX_GO;
}

/* The segment's buffers are nobody's business any more. Returns whether the PDU still has a use:
 * its task may have ended while the segment arrived. */
static bool release_placed(struct ini_conn *c)
{
    struct ini_op *op = c->rx_op;

    c->rx_op = NULL;
    if (!op || op->state != INI_ENDING)
        return true;
    ini_op_released(op);
    return false;
}

static void dispatch(struct ini_conn *c, const struct iscsi_rx_pdu *pdu)
{
    struct iscsi_bhs h;
    char name[32];

    iscsi_bhs_unpack(pdu->bhs, &h);
    handler *fn = handler_of(c, h.opcode);
    if (!pdu->data_digest_ok) {
        /* Level 0: what was lost is recovered with the session (I-ERR-02, I-ERR-03). */
        c->session->counters.digest_errors++;
        if (!ini_digest_recovered(c, pdu->bhs))
            ini_fail(c, INI_CLOSE_DIGEST, "the data digest of a %s is wrong",
                     iscsi_opcode_name(h.opcode, name));
    } else if (!fn) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "the target sent a PDU that is out of place: %s",
                 iscsi_opcode_name(h.opcode, name));
    } else {
        fn(c, pdu->bhs, pdu->data, pdu->data_length);
    }
}

static enum iscsi_rx_verdict on_pdu(void *user, const struct iscsi_rx_pdu *pdu)
{
    struct ini_conn *c = user;

    c->session->counters.pdus_in++;
    release_placed(c);
    if (c->state == INI_CONN_LOGIN)
        ini_on_login(c, pdu->bhs, pdu->data, pdu->data_length);
    else
        dispatch(c, pdu);
    return ended(c) ? ISCSI_RX_STOP : ISCSI_RX_GO;
}

static const struct iscsi_rx_ops rx_ops = {on_header, on_pdu};

static void receive_failed(struct ini_conn *c)
{
    static const struct {
        enum ini_close_why why;
        const char *sentence;
    } errors[] = {
        [ISCSI_RX_HEADER_DIGEST] = {INI_CLOSE_DIGEST, "a header digest is wrong"},
        [ISCSI_RX_TOO_LONG] = {INI_CLOSE_PROTOCOL,
                               "the target sent a data segment longer than it may"},
        [ISCSI_RX_NO_PLACE] = {INI_CLOSE_PROTOCOL,
                               "the target sent a data segment that has no place"},
    };

    if (c->rx.error == ISCSI_RX_STOPPED || c->rx.error == ISCSI_RX_OK)
        return;
    if (c->rx.error == ISCSI_RX_HEADER_DIGEST)
        c->session->counters.digest_errors++;
    if (c->state == INI_CONN_LOGIN)
        ini_login_broken(c, errors[c->rx.error].sentence);
    else
        ini_fail(c, errors[c->rx.error].why, "%s", errors[c->rx.error].sentence);
}

/* ---- PDUs out ---- */

static bool on_produce(void *user, struct iscsi_tx_pdu *pdu)
{
    struct ini_conn *c = user;

    return c->state == INI_CONN_LOGIN ? ini_login_out(c, pdu) : ini_next_out(c, pdu);
}

static void on_sent(void *user, void *owner)
{
    struct ini_op *op = owner;
    (void)user;

    op->tx_pieces--;
    ini_op_released(op);
}

static const struct iscsi_tx_ops tx_ops = {on_produce, on_sent};

/* ---- bytes ---- */

unsigned ini_conn_recv_space(struct ini_conn *c, struct iovec *iov, unsigned max)
{
    return c->state == INI_CONN_NEW || ended(c) ? 0 : iscsi_rx_space(&c->rx, iov, max);
}

void ini_conn_received(struct ini_conn *c, size_t n, uint64_t now_ns)
{
    struct ini_session *s = c->session;

    if (now_ns > s->now)
        s->now = now_ns;
    if (!ended(c) && iscsi_rx_received(&c->rx, n) != 0)
        receive_failed(c);
    ini_flush(s);
}

unsigned ini_conn_send_data(struct ini_conn *c, struct iovec *iov, unsigned max)
{
    c->want_told = false;
    /* Its text may stand in a send slot until now. */
    if (c->login && c->state >= INI_CONN_FULL && !iscsi_tx_staged(&c->tx))
        ini_login_forget(c);
    return ended(c) ? 0 : iscsi_tx_data(&c->tx, iov, max);
}

void ini_conn_sent(struct ini_conn *c, size_t n)
{
    iscsi_tx_sent(&c->tx, n);
    ini_flush(c->session);
}

/* ---- life ---- */

static int attach(struct ini_session *s, struct ini_conn *c, struct lp_error *err)
{
    unsigned limit = s->opts.connections;

    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->cid == c->cid && s->conns[i]->state != INI_CONN_CLOSED)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "connection %u of the session exists already", (unsigned)c->cid);
    if (s->state > INI_SESSION_OPEN || (s->state == INI_SESSION_NEW && s->conn_count > 0))
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the session takes no further connection %s",
                            s->state == INI_SESSION_NEW ? "before its first is logged in" : "now");
    if (s->state == INI_SESSION_OPEN && limit > s->params.max_connections)
        limit = s->params.max_connections;
    if (s->conn_count >= limit)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the session may have %u connections only",
                            limit);
    c->leading = s->state == INI_SESSION_NEW;
    s->conns[s->conn_count++] = c;
    return 0;
}

static uint32_t at_least(uint32_t n, uint32_t least)
{
    return n > least ? n : least;
}

struct ini_conn *ini_conn_new(struct ini_session *s, uint16_t cid, struct lp_error *err)
{
    struct ini_conn *c = calloc(1, sizeof *c);

    if (!c)
        goto no_memory;
    c->session = s;
    c->cid = cid;
    c->state = INI_CONN_NEW;
    c->deadline = INI_NEVER;
    c->hold_size = at_least(s->opts.login.wishes.params.mrdsl_in, INI_HOLD_BYTES);
    c->hold = malloc(c->hold_size);
    c->staging = malloc(INI_STAGING_BYTES);
    c->tx_slots = calloc(INI_TX_SLOTS, sizeof *c->tx_slots);
    c->login = calloc(1, sizeof *c->login);
    if (!c->hold || !c->staging || !c->tx_slots || !c->login)
        goto no_memory;
    iscsi_rx_init(&c->rx, &rx_ops, c, c->staging, INI_STAGING_BYTES, c->hold, c->hold_size,
                  ISCSI_LOGIN_MRDSL);
    iscsi_tx_init(&c->tx, &tx_ops, c, c->tx_slots, INI_TX_SLOTS);
    if (attach(s, c, err))
        goto out;
    return c;

no_memory:
    lp_error_set(err, LP_ERROR_SYS, 12, "no memory for a connection");
out:
    ini_conn_free(c);
    return NULL;
}

void ini_conn_free(struct ini_conn *c)
{
    if (!c)
        return;
    struct ini_session *s = c->session;
    for (unsigned i = 0; s && i < s->conn_count; i++)
        if (s->conns[i] == c) {
            memmove(&s->conns[i], &s->conns[i + 1], (s->conn_count - i - 1) * sizeof s->conns[0]);
            s->conn_count--;
            break;
        }
    ini_login_forget(c);
    free(c->hold);
    free(c->staging);
    free(c->tx_slots);
    free(c);
}

void ini_conn_set_user(struct ini_conn *c, void *user)
{
    c->user = user;
}

void *ini_conn_user(const struct ini_conn *c)
{
    return c->user;
}

uint16_t ini_conn_cid(const struct ini_conn *c)
{
    return c->cid;
}

const struct iscsi_params *ini_conn_params(const struct ini_conn *c)
{
    return c->state < INI_CONN_FULL ? NULL : &c->params;
}
