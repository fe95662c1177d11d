/* SPDX-License-Identifier: BSD-2-Clause */
/* The node: options, time, stopping, and the clearing up after each call. */
#include "iscsi/tgt_int.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    MRDSL_MIN = 512,
    IMMEDIATE_MAX = 64,
};

static int check(const struct tgt_opts *o, struct lp_error *err)
{
    const struct tgt_ops *ops = &o->ops;

    if (o->depth < 1 || o->depth > TGT_DEPTH_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "depth must be 1 to %d, not %u", TGT_DEPTH_MAX,
                            o->depth);
    if (o->sessions_max < 1 || o->sessions_max > 65535)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "sessions_max must be 1 to 65535, not %u",
                            o->sessions_max);
    if (o->immediate_max < 1 || o->immediate_max > IMMEDIATE_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "immediate_max must be 1 to %d, not %u",
                            IMMEDIATE_MAX, o->immediate_max);
    if (o->conns_max < 1 || o->logins_max < 1 || o->logins_max_peer < 1)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "conns_max, logins_max and logins_max_peer must be at least 1");
    if (!ops->login.lookup || !ops->login.random || !ops->target || !ops->target_address ||
        !ops->session_opened || !ops->session_closed || !ops->command || !ops->data ||
        !ops->abort || !ops->released || !ops->tmf || !ops->want_send || !ops->close ||
        !ops->hold != !ops->unhold)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "a callback that is required is missing");
    return 0;
}

/* What is built, whatever the owner wishes. */
static void bound_wishes(struct iscsi_wishes *wishes)
{
    struct iscsi_params *wish = &wishes->params;

    if (wish->mrdsl_in < MRDSL_MIN)
        wish->mrdsl_in = MRDSL_MIN;
    if (wish->max_connections < 1)
        wish->max_connections = 1;
    if (wish->max_connections > TGT_CONNS_MAX)
        wish->max_connections = TGT_CONNS_MAX;
    if (wish->max_outstanding_r2t < 1)
        wish->max_outstanding_r2t = 1;
    if (wish->max_outstanding_r2t > TGT_R2T_MAX)
        wish->max_outstanding_r2t = TGT_R2T_MAX;
    if (wish->error_recovery_level > 0)
        wish->error_recovery_level = 0;
    /* Data are placed in order within a sequence; both results are OR of the two wishes. */
    wish->data_pdu_in_order = true;
    wish->data_sequence_in_order = true;
    if (wish->task_reporting > ISCSI_REPORT_RESPONSE_FENCE)
        wish->task_reporting = ISCSI_REPORT_RESPONSE_FENCE;
}

struct tgt *tgt_new(const struct tgt_opts *opts, struct lp_error *err)
{
    if (check(opts, err) != 0)
        return NULL;

    const size_t align = _Alignof(max_align_t);
    struct tgt *t = calloc(1, sizeof(*t));

    if (!t) {
        lp_error_set(err, LP_ERROR_SYS, ENOMEM, "out of memory for the target");
        return NULL;
    }
    t->opts = *opts;
    t->user_bytes = (opts->task_user_bytes + align - 1) / align * align;
    bound_wishes(&t->opts.wishes);
    t->deadline = TGT_NEVER;
    return t;
}

void tgt_free(struct tgt *t)
{
    if (!t)
        return;
    tgt_enter(t);
    for (struct tgt_session *s = t->sessions; s; s = s->next)
        tgt_session_end(s, TGT_END_OWNER, "the target is being freed");
    tgt_leave(t);
    free(t);
}

void tgt_enter(struct tgt *t)
{
    t->depth++;
}

void tgt_dirty(struct tgt_session *s)
{
    if (s->dirty)
        return;
    s->dirty = true;
    s->next_dirty = s->tgt->dirty;
    s->tgt->dirty = s;
}

void tgt_leave(struct tgt *t)
{
    if (t->depth == 1) {
        while (t->dirty) {
            struct tgt_session *s = t->dirty;

            t->dirty = s->next_dirty;
            s->dirty = false;
            tgt_session_poll(s);
        }
    }
    t->depth--;
}

const struct tgt_counters *tgt_counters(const struct tgt *t)
{
    return &t->counters;
}

void tgt_arm(struct tgt *t, uint64_t deadline)
{
    if (deadline < t->deadline)
        t->deadline = deadline;
}

uint64_t tgt_deadline(const struct tgt *t)
{
    return t->deadline;
}

/* A deadline that has moved to a later time is found here, and armed again. */
void tgt_tick(struct tgt *t, uint64_t now_ns)
{
    tgt_enter(t);
    t->now = now_ns;
    if (now_ns >= t->deadline) {
        t->deadline = TGT_NEVER;
        for (struct tgt_conn *c = t->conns; c; c = c->next)
            tgt_conn_expire(c, now_ns);
        for (struct tgt_session *s = t->sessions; s; s = s->next)
            tgt_session_expire(s, now_ns);
    }
    tgt_leave(t);
}

void tgt_stop(struct tgt *t, uint16_t seconds)
{
    tgt_enter(t);
    t->stopping = true;
    for (struct tgt_conn *c = t->conns; c; c = c->next)
        if (tgt_conn_alive(c))
            tgt_conn_ask_logout(c, seconds);
    tgt_leave(t);
}
