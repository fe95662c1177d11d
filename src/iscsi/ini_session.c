/* SPDX-License-Identifier: BSD-2-Clause */
/* The session: numbering, its end, time (RFC 7143 4.2.2, 7.1.4.4). */
#include "iscsi/ini_int.h"

#include "base/serial.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- telling the owner ---- */

void ini_tell(struct ini_session *s, struct ini_event *event)
{
    s->opts.event(s->opts.user, event);
}

void ini_wake(struct ini_conn *c)
{
    struct ini_event event = {.type = INI_EVENT_WANT_SEND, .conn = c};

    if (c->want_told || c->state >= INI_CONN_CLOSING)
        return;
    c->want_told = true;
    ini_tell(c->session, &event);
}

void ini_wake_all(struct ini_session *s)
{
    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->urgent.first || ini_queue_ready(s->conns[i]))
            ini_wake(s->conns[i]);
}

static void done(struct ini_op *op)
{
    enum ini_result result = (enum ini_result)op->result;

    op->state = INI_IDLE;
    switch ((enum ini_kind)op->kind) {
    case INI_KIND_TASK:
        op->session->tasks--;
        ini_task_of(op)->result = result;
        ini_task_of(op)->done(ini_task_of(op));
        break;
    case INI_KIND_TMF:
        ini_tmf_of(op)->result = result;
        if (ini_tmf_of(op)->done)
            ini_tmf_of(op)->done(ini_tmf_of(op));
        break;
    case INI_KIND_PING:
        ini_ping_of(op)->result = result;
        if (ini_ping_of(op)->done)
            ini_ping_of(op)->done(ini_ping_of(op));
        break;
    case INI_KIND_TEXT:
        ini_text_of(op)->result = result;
        if (ini_text_of(op)->done)
            ini_text_of(op)->done(ini_text_of(op));
        break;
    case INI_KIND_LOGOUT:
        ini_logout_of(op)->result = result;
        if (ini_logout_of(op)->done)
            ini_logout_of(op)->done(ini_logout_of(op));
        break;
    }
}

void ini_flush(struct ini_session *s)
{
    while (s->finished.first) {
        struct ini_op *op = s->finished.first;
        ini_list_remove(op);
        done(op);
    }
}

/* ---- connections for commands ---- */

struct ini_conn *ini_pick(struct ini_session *s)
{
    for (unsigned i = 0; i < s->conn_count; i++) {
        struct ini_conn *c = s->conns[s->turn++ % s->conn_count];
        if (c->state == INI_CONN_FULL)
            return c;
    }
    return NULL;
}

/* Gives tasks that have no connection one, if there is any. */
static void distribute(struct ini_session *s)
{
    while (s->waiting.first) {
        struct ini_conn *c = ini_pick(s);
        if (!c)
            return;
        struct ini_op *op = s->waiting.first;
        ini_list_remove(op);
        op->conn = c;
        ini_list_append(&c->queue, op);
    }
    ini_wake_all(s);
}

void ini_requeue(struct ini_conn *c)
{
    struct ini_session *s = c->session;
    struct ini_op *op = c->queue.last;

    while (op) {
        struct ini_op *before = op->prev;
        if (op->kind == INI_KIND_TASK) {
            ini_list_remove(op);
            op->conn = NULL;
            ini_list_prepend(&s->waiting, op);
        }
        op = before;
    }
    distribute(s);
}

void ini_conn_open(struct ini_conn *c)
{
    c->state = INI_CONN_FULL;
    c->deadline = INI_NEVER;
    c->told_stat_sn = c->next_stat_sn = c->exp_stat_sn;
    distribute(c->session);
}

/* ---- numbers ---- */

bool ini_take_status(struct ini_conn *c, uint32_t stat_sn)
{
    int32_t ahead = (int32_t)(stat_sn - c->exp_stat_sn);

    if (ahead > 0 && ini_recovers(c))
        return ini_status_ahead(c, stat_sn);
    if (ahead > 0) {
        ini_fail(c, INI_CLOSE_PROTOCOL, "a response is missing: StatSN %u came where %u was due",
                 (unsigned)stat_sn, (unsigned)c->exp_stat_sn);
        return false;
    }
    if (ahead < 0) {
        c->session->counters.duplicates++;
        return false;
    }
    ini_status_advance(c);
    if (c->session->set_aborts)
        ini_wake(c);
    return true;
}

void ini_take_window(struct ini_session *s, uint32_t exp_cmd_sn, uint32_t max_cmd_sn)
{
    if (iscsi_window_update(&s->window, exp_cmd_sn, max_cmd_sn))
        ini_wake_all(s);
}

uint32_t ini_session_window(const struct ini_session *s)
{
    uint32_t n = s->window.max_cmd_sn - s->cmd_sn + 1;

    return s->state == INI_SESSION_OPEN && serial_le(s->cmd_sn, s->window.max_cmd_sn) ? n : 0;
}

/* ---- the end ---- */

static void tell_close(struct ini_conn *c, enum ini_close_why why, const char *sentence)
{
    struct ini_event event = {.type = INI_EVENT_CONN_CLOSE, .conn = c};

    event.close.why = why;
    event.close.sentence = sentence;
    event.close.waits = c->waits;
    event.close.time2wait = c->time2wait;
    event.close.time2retain = c->time2retain;
    c->state = INI_CONN_CLOSING;
    c->deadline = INI_NEVER;
    ini_tell(c->session, &event);
}

void ini_close(struct ini_conn *c, enum ini_close_why why, const char *sentence)
{
    if (c->state >= INI_CONN_CLOSING)
        return;
    ini_requeue(c);
    tell_close(c, why, sentence);
    for (unsigned i = 0; i < c->session->conn_count; i++)
        if (c->session->conns[i]->state < INI_CONN_CLOSING)
            return;
    /* The last one was logged out by itself. */
    ini_session_over(c->session, c, why, sentence);
}

void ini_session_over(struct ini_session *s, struct ini_conn *cause, enum ini_close_why why,
                      const char *sentence)
{
    if (s->state >= INI_SESSION_OVER)
        return;
    s->state = INI_SESSION_OVER;
    s->end.type = s->logged_out ? INI_EVENT_LOGGED_OUT : INI_EVENT_SESSION_DROPPED;
    s->end.close.why = why;
    s->end.close.waits = cause && cause->waits;
    s->end.close.time2wait = cause ? cause->time2wait : 0;
    s->end.close.time2retain = cause ? cause->time2retain : 0;
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
    if (cause && cause->state < INI_CONN_CLOSING)
        tell_close(cause, why, s->sentence);
    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->state < INI_CONN_CLOSING)
            tell_close(s->conns[i], s->logged_out ? why : INI_CLOSE_SESSION, s->sentence);
}

void ini_fail(struct ini_conn *c, enum ini_close_why why, const char *fmt, ...)
{
    char sentence[256];
    va_list args;

    if (c->state >= INI_CONN_CLOSING)
        return;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    /* A connection that never was in the full feature phase takes nothing with it. Any other loss
     * is the session's at ErrorRecoveryLevel 0 (7.1.5). */
    if (c->state < INI_CONN_FULL && !c->leading)
        ini_close(c, why, sentence);
    else
        ini_session_over(c->session, c, why, sentence);
}

static void check_over(struct ini_session *s)
{
    if (s->state != INI_SESSION_OVER)
        return;
    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->state != INI_CONN_CLOSED && s->conns[i]->state != INI_CONN_NEW)
            return;
    s->state = INI_SESSION_DEAD;
    ini_op_lose_all(s, NULL);
    ini_flush(s);
    s->end.close.sentence = s->sentence;
    ini_tell(s, &s->end);
}

void ini_conn_closed(struct ini_conn *c)
{
    struct ini_session *s = c->session;

    if (c->state == INI_CONN_CLOSED)
        return;
    if (c->state == INI_CONN_LOGIN)
        ini_login_closed(c);
    if (c->state < INI_CONN_CLOSING) {
        bool alone = c->state < INI_CONN_FULL && !c->leading;
        c->state = INI_CONN_CLOSING;
        if (!alone)
            ini_session_over(s, c, INI_CLOSE_TRANSPORT, "the connection was lost");
    }
    c->state = INI_CONN_CLOSED;
    iscsi_tx_drop(&c->tx);
    ini_op_lose_all(s, c);
    ini_flush(s);
    check_over(s);
}

/* ---- time ---- */

static void late(struct ini_op *op)
{
    struct ini_event event = {.conn = op->conn};

    op->deadline = INI_NEVER;
    switch ((enum ini_kind)op->kind) {
    case INI_KIND_TASK:
        event.type = INI_EVENT_TASK_LATE;
        event.task = ini_task_of(op);
        ini_tell(op->session, &event);
        break;
    case INI_KIND_TMF:
        event.type = INI_EVENT_OPERATION_LATE;
        event.tmf = ini_tmf_of(op);
        ini_tell(op->session, &event);
        break;
    case INI_KIND_PING:
        ini_fail(op->conn, INI_CLOSE_TIMEOUT, "the target did not answer a ping in time");
        break;
    case INI_KIND_TEXT:
        ini_fail(op->conn, INI_CLOSE_TIMEOUT, "the target did not answer a Text Request in time");
        break;
    case INI_KIND_LOGOUT:
        ini_fail(op->conn, INI_CLOSE_TIMEOUT, "the target did not answer a Logout Request in time");
        break;
    }
}

/* The first late one, or NULL; and what the earliest deadline is. */
static struct ini_op *late_op(struct ini_session *s, struct ini_op *op)
{
    if (op->state >= INI_ENDING)
        return NULL;
    if (op->deadline <= s->now)
        return op;
    if (op->deadline < s->next_deadline)
        s->next_deadline = op->deadline;
    return NULL;
}

static struct ini_op *late_in_list(struct ini_session *s, const struct ini_list *l)
{
    struct ini_op *found = NULL;

    for (struct ini_op *op = l->first; op && !found; op = op->next)
        found = late_op(s, op);
    return found;
}

static struct ini_op *find_late(struct ini_session *s)
{
    struct ini_op *found;

    s->next_deadline = INI_NEVER;
    found = late_in_list(s, &s->waiting);
    for (uint32_t i = 0; !found && i < 1u << s->slot_bits; i++)
        found = s->slots[i].op ? late_op(s, s->slots[i].op) : NULL;
    for (unsigned i = 0; !found && i < s->conn_count; i++) {
        struct ini_conn *c = s->conns[i];
        found = late_in_list(s, &c->urgent);
        found = found ? found : late_in_list(s, &c->queue);
        found = found ? found : late_in_list(s, &c->texts);
    }
    return found;
}

/* What is late loses its deadline, and its owner may end others meanwhile: so search anew. */
static void check_operations(struct ini_session *s)
{
    struct ini_op *op;

    while ((op = find_late(s)))
        late(op);
}

uint64_t ini_session_deadline(const struct ini_session *s)
{
    uint64_t deadline = s->finished.first ? 0 : s->next_deadline;

    for (unsigned i = 0; i < s->conn_count; i++)
        if (s->conns[i]->deadline < deadline)
            deadline = s->conns[i]->deadline;
    return deadline;
}

void ini_session_tick(struct ini_session *s, uint64_t now_ns)
{
    if (now_ns > s->now)
        s->now = now_ns;
    if (s->next_deadline <= s->now)
        check_operations(s);
    for (unsigned i = 0; i < s->conn_count; i++) {
        struct ini_conn *c = s->conns[i];
        if (c->deadline <= s->now && c->state == INI_CONN_LOGIN)
            ini_login_late(c);
        ini_check_drained(c);
    }
    ini_flush(s);
}

/* ---- looking ---- */

const struct iscsi_params *ini_session_params(const struct ini_session *s)
{
    return s->state == INI_SESSION_NEW ? NULL : &s->params;
}

uint16_t ini_session_tsih(const struct ini_session *s)
{
    return s->tsih;
}

int ini_session_portal_group_tag(const struct ini_session *s)
{
    return s->portal_group_tag;
}

const char *ini_session_target_alias(const struct ini_session *s)
{
    return s->target_alias;
}

bool ini_session_authenticated(const struct ini_session *s)
{
    return s->authenticated;
}

unsigned ini_session_tasks(const struct ini_session *s)
{
    return s->tasks;
}

const struct ini_counters *ini_session_counters(const struct ini_session *s)
{
    return &s->counters;
}
