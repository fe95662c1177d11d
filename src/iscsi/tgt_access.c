/* SPDX-License-Identifier: BSD-2-Clause */
/* What a connection and a session tell about themselves. */
#include "iscsi/tgt_int.h"

void tgt_conn_set_user(struct tgt_conn *c, void *user)
{
    c->user = user;
}

void *tgt_conn_user(const struct tgt_conn *c)
{
    return c->user;
}

const char *tgt_conn_peer(const struct tgt_conn *c)
{
    return c->peer;
}

const struct tgt_portal *tgt_conn_portal(const struct tgt_conn *c)
{
    return &c->portal;
}

uint16_t tgt_conn_cid(const struct tgt_conn *c)
{
    return c->cid;
}

struct tgt_session *tgt_conn_session(const struct tgt_conn *c)
{
    return c->session;
}

const char *tgt_conn_initiator_name(const struct tgt_conn *c)
{
    return c->session ? c->session->initiator_name : "";
}

const struct iscsi_params *tgt_conn_params(const struct tgt_conn *c)
{
    return c->session ? &c->params : NULL;
}

struct tgt *tgt_session_node(const struct tgt_session *s)
{
    return s->tgt;
}

void tgt_session_set_user(struct tgt_session *s, void *user)
{
    s->user = user;
}

void *tgt_session_user(const struct tgt_session *s)
{
    return s->user;
}

const char *tgt_session_initiator_name(const struct tgt_session *s)
{
    return s->initiator_name;
}

const char *tgt_session_target_name(const struct tgt_session *s)
{
    return s->target_name;
}

const uint8_t *tgt_session_isid(const struct tgt_session *s)
{
    return s->isid;
}

uint16_t tgt_session_tsih(const struct tgt_session *s)
{
    return s->tsih;
}

uint16_t tgt_session_portal_group(const struct tgt_session *s)
{
    return s->group_tag;
}

const struct iscsi_params *tgt_session_params(const struct tgt_session *s)
{
    return &s->params;
}

unsigned tgt_session_conn_count(const struct tgt_session *s)
{
    return s->conn_count;
}

struct tgt_conn *tgt_session_conn(const struct tgt_session *s, const struct tgt_conn *after)
{
    return after ? after->next_in_session : s->conns;
}

struct tgt_session *tgt_session_next(const struct tgt *t, const struct tgt_session *after)
{
    struct tgt_session *s = after ? after->next : t->sessions;

    while (s && (s->discovery || !s->opened))
        s = s->next;
    return s;
}
