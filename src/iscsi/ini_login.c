/* SPDX-License-Identifier: BSD-2-Clause */
/* The login of a connection: what login_ini.c settles becomes the session's and the
 * connection's. */
#include "iscsi/ini_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ini_login_forget(struct ini_conn *c)
{
    if (!c->login)
        return;
    if (c->state != INI_CONN_NEW)
        login_ini_end(c->login);
    free(c->login);
    c->login = NULL;
}

static void tell_failure(struct ini_conn *c, uint16_t status, bool retryable, const char *sentence)
{
    struct ini_event event = {.type = INI_EVENT_LOGIN_FAILED, .conn = c};

    event.login.status = status;
    event.login.retryable = retryable;
    event.login.retry_md5 = c->login->retry_md5;
    event.login.sentence = sentence;
    ini_tell(c->session, &event);
}

/* Found out here, not by the login's own rules. */
void ini_login_broken(struct ini_conn *c, const char *sentence)
{
    tell_failure(c, 0, true, sentence);
    ini_fail(c, INI_CLOSE_LOGIN, "%s", sentence);
}

void ini_login_late(struct ini_conn *c)
{
    ini_login_broken(c, "the target did not answer the login in time");
}

void ini_login_closed(struct ini_conn *c)
{
    login_ini_closed(c->login);
    tell_failure(c, 0, c->login->retryable, c->login->sentence);
}

static void failed(struct ini_conn *c)
{
    struct login_ini *l = c->login;

    tell_failure(c, l->status, l->retryable, l->sentence);
    ini_fail(c, INI_CLOSE_LOGIN, "%s", l->sentence);
}

static void redirected(struct ini_conn *c)
{
    struct ini_event event = {.type = INI_EVENT_REDIRECT, .conn = c};

    event.redirect.address = c->login->address;
    event.redirect.permanent = c->login->permanent;
    ini_tell(c->session, &event);
    ini_fail(c, INI_CLOSE_LOGIN, "the target has moved to %s", event.redirect.address);
}

static void take_results(struct ini_conn *c)
{
    struct ini_session *s = c->session;
    const struct login_ini *l = c->login;

    c->params = l->params;
    c->exp_stat_sn = l->exp_stat_sn;
    if (!c->leading) {
        iscsi_window_update(&s->window, l->exp_cmd_sn, l->max_cmd_sn);
        return;
    }
    s->params = l->params;
    s->tsih = l->tsih;
    s->cmd_sn = l->cmd_sn;
    s->portal_group_tag = l->portal_group_tag;
    s->authenticated = l->authenticated;
    snprintf(s->target_alias, sizeof s->target_alias, "%s", l->target_alias);
    iscsi_window_init(&s->window, l->exp_cmd_sn, l->max_cmd_sn);
    s->state = INI_SESSION_OPEN;
}

static void logged_in(struct ini_conn *c)
{
    struct ini_event event = {.type = INI_EVENT_LOGGED_IN, .conn = c};

    take_results(c);
    iscsi_rx_set_limit(&c->rx, c->params.mrdsl_in);
    iscsi_rx_set_digests(&c->rx, c->params.header_digest, c->params.data_digest);
    iscsi_tx_set_digests(&c->tx, c->params.header_digest, c->params.data_digest);
    event.params = &c->params;
    ini_conn_open(c);
    ini_tell(c->session, &event);
}

void ini_on_login(struct ini_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    switch (login_ini_response(c->login, bhs, data, n)) {
    case LOGIN_MORE:
        ini_wake(c);
        break;
    case LOGIN_DONE:
        logged_in(c);
        break;
    case LOGIN_REDIRECT:
        redirected(c);
        break;
    case LOGIN_FAILED:
    case LOGIN_CLOSE:
        failed(c);
        break;
    }
}

bool ini_login_out(struct ini_conn *c, struct iscsi_tx_pdu *out)
{
    const uint8_t *text;
    size_t n;

    if (!login_ini_request(c->login, out->bhs, &text, &n))
        return false;
    /* The text stays until the response, and that answers all of this. */
    c->login_text.iov_base = (void *)(uintptr_t)text;
    c->login_text.iov_len = n;
    out->iov = &c->login_text;
    out->count = 1;
    out->length = (uint32_t)n;
    c->session->counters.pdus_out++;
    return true;
}

void ini_conn_start(struct ini_conn *c, uint64_t deadline_ns)
{
    struct ini_session *s = c->session;

    if (c->state != INI_CONN_NEW)
        return;
    c->state = INI_CONN_LOGIN;
    c->deadline = deadline_ns;
    c->login_opts = s->opts.login;
    c->login_opts.tsih = s->tsih;
    c->login_opts.cid = c->cid;
    c->login_opts.itt = c->cid;
    c->login_opts.exp_stat_sn = 0;
    c->login_opts.cmd_sn = s->cmd_sn;
    if (!c->leading) {
        c->login_opts.session = &s->params;
        c->login_opts.portal_group_tag = s->portal_group_tag;
    }
    login_ini_start(c->login, &c->login_opts);
    ini_wake(c);
}
