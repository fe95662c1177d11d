/* SPDX-License-Identifier: BSD-2-Clause */
/* The login of a connection: what login.c settles becomes the session's and the connection's. */
#include "iscsi/ini_int.h"

#include "base/serial.h"

/* How long the negotiation state stays: until full feature phase or the end. */
static void forget_login(struct ini_conn *c)
{
    login_ini_free(c->login);
    c->login = NULL;
}

static bool retryable(uint16_t status)
{
    return status >> 8 == 3 || status == 0; /* class 3, or no answer at all (I-LOG-08) */
}

static void login_failed(struct ini_conn *c, uint16_t status, const char *sentence)
{
    struct ini_event event = {.type = INI_EVENT_LOGIN_FAILED, .conn = c};

    event.login.status = status;
    event.login.retryable = retryable(status);
    event.login.sentence = sentence;
    ini_tell(c->session, &event);
    ini_fail(c, INI_CLOSE_LOGIN, "%s", sentence);
}

void ini_login_late(struct ini_conn *c)
{
    login_failed(c, 0, "the login was not answered in time");
}

void ini_login_broken(struct ini_conn *c, const char *sentence)
{
    login_failed(c, 0, sentence);
}

static void redirected(struct ini_conn *c)
{
    struct ini_event event = {.type = INI_EVENT_REDIRECT, .conn = c};

    event.redirect.address = login_ini_address(c->login);
    event.redirect.permanent = login_ini_status(c->login) == ISCSI_LOGIN_MOVED_PERMANENTLY;
    ini_tell(c->session, &event);
    ini_fail(c, INI_CLOSE_LOGIN, "the target sent us to %s", event.redirect.address);
}

static void logged_in(struct ini_conn *c, const struct iscsi_login_response *pdu)
{
    struct ini_session *s = c->session;
    struct ini_event event = {.type = INI_EVENT_LOGGED_IN, .conn = c};

    c->params = *login_ini_params(c->login);
    c->exp_stat_sn = login_ini_exp_stat_sn(c->login);
    if (c->leading) {
        s->params = c->params;
        s->tsih = login_ini_tsih(c->login);
        s->state = INI_SESSION_OPEN;
        iscsi_window_init(&s->window, pdu->exp_cmd_sn, pdu->max_cmd_sn);
    } else {
        iscsi_window_update(&s->window, pdu->exp_cmd_sn, pdu->max_cmd_sn);
    }
    forget_login(c);
    iscsi_rx_set_limit(&c->rx, c->params.mrdsl_in);
    iscsi_rx_set_digests(&c->rx, c->params.header_digest, c->params.data_digest);
    iscsi_tx_set_digests(&c->tx, c->params.header_digest, c->params.data_digest);
    event.params = &c->params;
    ini_conn_open(c);
    ini_tell(s, &event);
}

void ini_on_login(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    struct iscsi_login_response pdu;

    iscsi_login_response_unpack(bhs, &pdu);
    switch (login_ini_input(c->login, bhs, data, n)) {
    case LOGIN_GO:
        ini_wake(c);
        break;
    case LOGIN_DONE:
        logged_in(c, &pdu);
        break;
    case LOGIN_FAILED:
        login_failed(c, login_ini_status(c->login), login_ini_sentence(c->login));
        break;
    case LOGIN_REDIRECT:
        redirected(c);
        break;
    }
}

bool ini_login_out(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    const uint8_t *data;
    uint32_t n;

    if (!c->login || !login_ini_output(c->login, out->bhs, &data, &n))
        return false;
    /* Stays until the next response, and that answers this. */
    c->login_text.iov_base = (void *)(uintptr_t)data;
    c->login_text.iov_len = n;
    out->iov = &c->login_text;
    out->count = 1;
    out->length = n;
    c->session->counters.pdus_out++;
    return true;
}

void ini_conn_start(struct ini_conn *c, uint64_t deadline_ns)
{
    struct ini_session *s = c->session;
    struct login_ini_opts opts = s->opts.login;
    struct lp_error err = {0};

    if (c->state != INI_CONN_NEW)
        return;
    c->state = INI_CONN_LOGIN;
    c->deadline = deadline_ns;
    opts.tsih = s->tsih;
    opts.cid = c->cid;
    c->login = login_ini_new(&opts, s->cmd_sn, &err);
    if (!c->login)
        login_failed(c, 0, err.msg);
    else
        ini_wake(c);
}
