/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: what tells them apart, their memory, their end (RFC 7143 4.4.3, 6.3.5, 7.5, 8.3).
 *
 *     OPEN <-----------------> FAILED     no connection left; one may come back
 *       |                        |        Time2Wait + Time2Retain over, or reinstated
 *       +-----> ENDING <---------+
 *                 |                       transports closed, owner's tasks ended
 *               freed                     session_closed; then its successor opens
 */
#include "iscsi/tgt_int.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static unsigned power_of_two(unsigned n)
{
    unsigned p = 1;

    while (p < n)
        p *= 2;
    return p;
}

struct tgt_session *tgt_session_find(struct tgt *t, const struct tgt_conn *c,
                                     const struct tgt_identity *id)
{
    for (struct tgt_session *s = t->sessions; s; s = s->next) {
        bool unnamed = id->target_name[0] == '\0';

        if (s->state == TGT_SESSION_ENDING || strcmp(s->initiator_name, id->initiator_name) != 0 ||
            memcmp(s->isid, id->isid, sizeof(s->isid)) != 0 ||
            strcmp(s->target_name, id->target_name) != 0)
            continue;
        if (unnamed ? strcmp(s->address, c->portal_address) == 0 : s->group_tag == id->group_tag)
            return s;
    }
    return NULL;
}

static bool tsih_taken(const struct tgt *t, uint16_t tsih)
{
    for (const struct tgt_session *s = t->sessions; s; s = s->next)
        if (s->tsih == tsih)
            return true;
    return false;
}

static uint16_t next_tsih(struct tgt *t)
{
    do
        t->last_tsih = (uint16_t)(t->last_tsih == UINT16_MAX ? 1 : t->last_tsih + 1);
    while (tsih_taken(t, t->last_tsih));
    return t->last_tsih;
}

static unsigned count_sessions(const struct tgt *t)
{
    unsigned n = 0;

    for (const struct tgt_session *s = t->sessions; s; s = s->next)
        n++;
    return n;
}

/* Slots: one stands for what is over, `depth` for the window, and for each connection those that
 * its immediate requests and its responses on their way out may take. */
static int allocate(struct tgt_session *s)
{
    const struct tgt_opts *o = &s->tgt->opts;
    unsigned conns = s->discovery ? 1 : s->params.max_connections;
    unsigned depth = o->depth, ring = power_of_two(depth);

    s->slot_count = 1 + depth + conns * (2 * o->immediate_max + TGT_OUT_MAX);

    unsigned hash = power_of_two(2 * s->slot_count);

    s->slot_stride = round_up(sizeof(struct tgt_slot), _Alignof(max_align_t)) + s->tgt->user_bytes;
    s->slots = calloc(s->slot_count, s->slot_stride);
    s->ring = calloc(ring, sizeof(struct tgt_slot *));
    s->hash = calloc(hash, sizeof(struct tgt_slot *));
    if (!s->slots || !s->ring || !s->hash)
        return -1;
    s->ring_mask = ring - 1;
    s->hash_mask = hash - 1;
    for (unsigned i = 0; i < s->slot_count; i++)
        tgt_slot_at(s, i)->index = (uint16_t)i;
    s->plug = tgt_slot_at(s, 0);
    for (unsigned i = 1; i < s->slot_count; i++)
        tgt_list_append(&s->free, tgt_slot_at(s, i));
    return 0;
}

void tgt_session_free(struct tgt_session *s)
{
    if (s->next)
        s->next->prev = s->prev;
    if (s->prev)
        s->prev->next = s->next;
    else if (s->tgt->sessions == s)
        s->tgt->sessions = s->next;
    free(s->slots);
    free(s->ring);
    free(s->hash);
    free(s);
}

struct tgt_session *tgt_session_create(struct tgt_conn *c, const struct tgt_identity *id,
                                       const struct iscsi_params *params, uint32_t exp_cmd_sn,
                                       bool replaces)
{
    struct tgt *t = c->tgt;
    struct tgt_session *s;

    if (!replaces && count_sessions(t) >= t->opts.sessions_max)
        return NULL;
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->tgt = t;
    s->discovery = id->discovery;
    s->params = *params;
    s->deadline = s->tmf_deadline = TGT_NEVER;
    snprintf(s->initiator_name, sizeof(s->initiator_name), "%s", id->initiator_name);
    snprintf(s->target_name, sizeof(s->target_name), "%s", id->target_name);
    snprintf(s->address, sizeof(s->address), "%s", c->portal_address);
    memcpy(s->isid, id->isid, sizeof(s->isid));
    s->group_tag = id->group_tag;
    s->exp_cmd_sn = exp_cmd_sn;
    s->max_cmd_sn = s->told_max_cmd_sn = exp_cmd_sn - 1;
    if (allocate(s) != 0) {
        tgt_session_free(s);
        return NULL;
    }
    s->tsih = next_tsih(t);
    tgt_order_window(s);
    s->next = t->sessions;
    if (t->sessions)
        t->sessions->prev = s;
    t->sessions = s;
    return s;
}

void tgt_session_open(struct tgt_session *s)
{
    struct tgt *t = s->tgt;

    if (s->opened || s->predecessor || s->state == TGT_SESSION_ENDING)
        return;
    s->opened = true;
    t->counters.sessions++;
    if (!s->discovery)
        t->opts.ops.session_opened(t->opts.user, s);
    tgt_dirty(s);
}

void tgt_session_add(struct tgt_session *s, struct tgt_conn *c)
{
    c->session = s;
    c->next_in_session = s->conns;
    s->conns = c;
    s->conn_count++;
    s->state = TGT_SESSION_OPEN;
    s->deadline = TGT_NEVER;
}

void tgt_session_end(struct tgt_session *s, enum tgt_session_end why, const char *sentence)
{
    enum tgt_close close = why == TGT_END_REINSTATED ? TGT_CLOSE_REINSTATED : TGT_CLOSE_SESSION;

    if (s->state == TGT_SESSION_ENDING)
        return;
    s->state = TGT_SESSION_ENDING;
    s->why = why;
    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session) {
        if (why == TGT_END_OWNER)
            tgt_conn_finish(c, close, sentence);
        else
            tgt_conn_fail(c, close, sentence);
    }
    tgt_dirty(s);
}

static bool at_once(const struct tgt_session *s)
{
    return s->discovery || s->params.default_time2retain == 0;
}

void tgt_session_lost_conn(struct tgt_session *s, struct tgt_conn *c)
{
    const uint64_t second = 1000000000;
    struct tgt_conn **link = &s->conns;

    while (*link != c)
        link = &(*link)->next_in_session;
    *link = c->next_in_session;
    s->conn_count--;
    if (s->fence_conn == c)
        s->fence_conn = NULL;
    tgt_dirty(s);
    if (s->conn_count > 0 || s->state == TGT_SESSION_ENDING)
        return;
    if (s->logged_out) {
        tgt_session_end(s, TGT_END_LOGOUT, "logged out");
    } else if (at_once(s)) {
        tgt_session_end(s, TGT_END_LOST, "its last connection is lost");
    } else {
        s->state = TGT_SESSION_FAILED;
        s->deadline =
            s->tgt->now + second * (s->params.default_time2wait + s->params.default_time2retain);
        tgt_arm(s->tgt, s->deadline);
    }
}

/* A task set function that waits too long for data: 11.5.1 allows to drop the connection. */
static void drop_silent(struct tgt_session *s)
{
    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session)
        if (tgt_conn_alive(c))
            tgt_conn_fail(c, TGT_CLOSE_TIMEOUT,
                          "a task management function waited too long for data of its tasks");
}

void tgt_session_expire(struct tgt_session *s, uint64_t now_ns)
{
    if (now_ns >= s->tmf_deadline) {
        s->tmf_deadline = TGT_NEVER;
        if (s->tmfs.first)
            drop_silent(s);
    }
    if (now_ns >= s->deadline) {
        s->deadline = TGT_NEVER;
        tgt_session_end(s, TGT_END_LOST, "nobody came back to it in time");
    }
    tgt_arm(s->tgt, s->tmf_deadline);
    tgt_arm(s->tgt, s->deadline);
}

static void close_session(struct tgt_session *s)
{
    struct tgt *t = s->tgt;

    if (s->opened) {
        t->counters.sessions--;
        if (!s->discovery)
            t->opts.ops.session_closed(t->opts.user, s, s->why);
    }
    for (struct tgt_session *next = t->sessions; next; next = next->next) {
        if (next->predecessor != s)
            continue;
        next->predecessor = NULL;
        tgt_session_open(next);
        tgt_dirty(next);
    }
    tgt_session_free(s);
}

void tgt_session_poll(struct tgt_session *s)
{
    struct tgt *t = s->tgt;

    if (s->cold_reset) {
        s->cold_reset = false;
        for (struct tgt_session *other = t->sessions; other; other = other->next)
            if (other->opened)
                tgt_session_end(other, TGT_END_OWNER, "TARGET COLD RESET");
    }
    tgt_tmf_poll(s);
    tgt_logout_poll(s);
    tgt_fence_poll(s);
    tgt_order_run(s);
    tgt_tell_window(s);
    if (s->state == TGT_SESSION_ENDING && s->conn_count == 0 && s->slots_used == 0 &&
        !s->predecessor && !s->dirty)
        close_session(s);
}

/* ---- what the owner asks and does ---- */

void tgt_session_close(struct tgt_session *s, const char *sentence)
{
    struct tgt *t = s->tgt;
    struct tgt_async async = {
        .event = ISCSI_ASYNC_SESSION_DROP,
        .parameter = {0, (uint16_t)s->params.default_time2wait, 0},
    };

    tgt_enter(t);
    for (struct tgt_conn *c = s->conns; c; c = c->next_in_session)
        if (tgt_conn_alive(c))
            tgt_conn_async(c, &async);
    tgt_session_end(s, TGT_END_OWNER, sentence);
    tgt_leave(t);
}
