/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on a link: when they are sent, what their status means, and what happens to those whose
 * target is silent.
 *
 *           link up, room                    lost, busy, attention: again
 *   queue ------------------> flying ------------------------------------> queue or later
 *     | held too long           | good, or an error that stays
 *     +---------> finished <----+
 */
#include <errno.h>
#include <string.h>

#include "initiator/link_int.h"

#define MILLISECOND 1000000ull

enum { ATTENTIONS_MAX = 16, LATE_MAX = 2, GROW_AFTER = 64, DOUBLINGS_MAX = 6 };

/* ---- lists ---- */

void list_append(struct command_list *l, struct link_command *c)
{
    c->next = NULL;
    c->prev = l->last;
    if (l->last)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
    l->count++;
}

void list_remove(struct command_list *l, struct link_command *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        l->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        l->last = c->prev;
    l->count--;
}

/* In the order of first_ns, so that replayed commands keep their places. */
static void list_insert(struct command_list *l, struct link_command *c)
{
    struct link_command *before = l->last;

    while (before && before->first_ns > c->first_ns)
        before = before->prev;
    if (!before && l->first) {
        c->prev = NULL;
        c->next = l->first;
        l->first->prev = c;
        l->first = c;
        l->count++;
    } else if (!before || before == l->last) {
        list_append(l, c);
    } else {
        c->prev = before;
        c->next = before->next;
        before->next->prev = c;
        before->next = c;
        l->count++;
    }
}

static void finish(struct link *link, struct link_command *c, int status)
{
    c->status = status;
    list_append(&link->finished, c);
}

bool commands_tell(struct link *link)
{
    bool any = link->finished.count > 0;

    while (link->finished.first) {
        struct link_command *c = link->finished.first;

        list_remove(&link->finished, c);
        c->done(c);
    }
    return any;
}

/* ---- what a status means ---- */

enum verdict { DONE, AGAIN, LATER };

static enum verdict error(struct link_command *c, int status)
{
    c->status = status;
    return DONE;
}

/* Tries a bounded number of times; then it is an error. */
static enum verdict retry(struct link_command *c, enum verdict how, int status)
{
    return c->retries++ < LINK_RETRIES_MAX ? how : error(c, status);
}

/* Something has happened at the LU; the command itself was not executed (C-04). */
static enum verdict unit_attention(struct link *link, struct link_command *c)
{
    if (link->opts.attention)
        link->opts.attention(link->opts.user, link, scsi_sense_asc(&c->sense));
    return c->attentions++ < ATTENTIONS_MAX ? AGAIN : error(c, -EIO);
}

static enum verdict illegal_request(struct link_command *c)
{
    switch (scsi_sense_asc(&c->sense)) {
    case 0x2000: /* INVALID COMMAND OPERATION CODE */
        return error(c, -EOPNOTSUPP);
    case 0x2100: /* LOGICAL BLOCK ADDRESS OUT OF RANGE */
        return error(c, -EINVAL);
    case 0x2500: /* LOGICAL UNIT NOT SUPPORTED */
        return error(c, -ENXIO);
    default:
        return error(c, -EOPNOTSUPP);
    }
}

static enum verdict not_ready(struct link *link, struct link_command *c)
{
    bool held_too_long = net_now(link->reactor) - c->first_ns >= link->opts.hold_ns;

    /* 04/01 becoming ready, 04/0A state transition, 04/1B sanitize, 04/09 self-test, ... */
    if (c->sense.asc == 0x04 && c->sense.ascq != 0x02 && c->sense.ascq != 0x03 && !held_too_long)
        return LATER;
    return error(c, c->sense.asc == 0x3a ? -ENXIO : -EIO);
}

static void log_sense(struct link *link, const struct link_command *c)
{
    char text[160];

    link_log(link, "the target reports for a command (%02Xh): %s", c->task.cdb[0],
             scsi_sense_text(&c->sense, text, sizeof(text)));
}

static enum verdict check_condition(struct link *link, struct link_command *c)
{
    c->has_sense = scsi_sense_unpack(&c->sense, c->task.sense, c->task.sense_length);
    if (!c->has_sense)
        return retry(c, AGAIN, -EIO);
    /* It belongs to an earlier write, and this command was not executed (SPC-4 4.5.5). Nobody else
     * is left to be told of an error. */
    if (c->sense.deferred)
        return c->sense.key <= 0x1 ? retry(c, AGAIN, -EIO) : error(c, -EIO);
    switch (c->sense.key) {
    case 0x0: /* NO SENSE */
    case 0x1: /* RECOVERED ERROR */
        return error(c, 0);
    case 0x2:
        return not_ready(link, c);
    case 0x5:
        return illegal_request(c);
    case 0x6:
        return unit_attention(link, c);
    case 0x7:
        return error(c, scsi_sense_asc(&c->sense) == 0x2707 ? -ENOSPC : -EROFS);
    case 0xb: /* ABORTED COMMAND: the iSCSI conditions among them (I-ERR-10) */
        return retry(c, AGAIN, -EIO);
    case 0xe:
        return error(c, -EILSEQ);
    default: /* MEDIUM ERROR, HARDWARE ERROR among them */
        log_sense(link, c);
        return error(c, -EIO);
    }
}

static void lower_limit(struct link *link)
{
    link->good_in_a_row = 0;
    if (link->flying.count > 0 && link->limit > link->flying.count)
        link->limit = link->flying.count;
    else if (link->limit > 1)
        link->limit--;
}

static enum verdict judge_status(struct link *link, struct link_command *c)
{
    bool held_too_long = net_now(link->reactor) - c->first_ns >= link->opts.hold_ns;

    switch (c->task.scsi_status) {
    case 0x00: /* GOOD */
    case 0x04: /* CONDITION MET */
        return error(c, 0);
    case 0x02:
        return check_condition(link, c);
    case 0x08: /* BUSY */
        return held_too_long ? error(c, -ETIMEDOUT) : LATER;
    case 0x18:
        return error(c, -EACCES);
    case 0x28: /* TASK SET FULL */
        lower_limit(link);
        return held_too_long ? error(c, -ETIMEDOUT) : LATER;
    case 0x40: /* TASK ABORTED, by another initiator */
        return retry(c, AGAIN, -EIO);
    default: /* ACA ACTIVE: we never ask for it, so it is somebody else's to clear */
        return retry(c, LATER, -EIO);
    }
}

static enum verdict judge(struct link *link, struct link_command *c)
{
    bool held_too_long = net_now(link->reactor) - c->first_ns >= link->opts.hold_ns;

    switch (c->task.result) {
    case INI_OK:
        return judge_status(link, c);
    case INI_LOST:
        link->stats.replays++;
        return held_too_long ? error(c, -ETIMEDOUT) : AGAIN;
    case INI_REFUSED: /* the session is about to end: not at once, but in the next one */
        return held_too_long ? error(c, -ETIMEDOUT) : LATER;
    case INI_ABORTED:
        return held_too_long || c->step > LATE_MAX ? error(c, -ETIMEDOUT) : AGAIN;
    default:
        return retry(c, AGAIN, -EIO);
    }
}

static uint64_t delay_of(const struct link_command *c)
{
    return (50 * MILLISECOND) << c->delays; /* to 3.2 s */
}

/* ---- sending ---- */

/* Of commands that a link which ends or has ended leaves undone. */
static int end_status(const struct link *link)
{
    if (link->state == LINK_CLOSING)
        return -ECANCELED;
    return link->error.code == ESTALE ? -ESTALE : -EIO;
}

static void conclude(struct link *link, struct link_command *c)
{
    const struct ini_task *task = &c->task;
    enum verdict verdict;

    list_remove(&link->flying, c);
    c->transferred = task->transferred;
    if (link->state == LINK_CLOSING || link->state == LINK_FAILED) {
        finish(link, c, task->result == INI_OK && task->scsi_status == 0 ? 0 : end_status(link));
        return;
    }
    verdict = judge(link, c);
    if (verdict == DONE) {
        if (c->status == 0 && ++link->good_in_a_row >= GROW_AFTER &&
            link->limit < link->opts.depth) {
            link->good_in_a_row = 0;
            link->limit++;
        }
        finish(link, c, c->status);
        return;
    }
    link->stats.retries++;
    if (verdict == LATER) {
        c->again_ns = net_now(link->reactor) + delay_of(c);
        if (c->delays < DOUBLINGS_MAX)
            c->delays++;
        list_append(&link->later, c);
    } else {
        list_insert(&link->queue, c);
    }
}

static void on_done(struct ini_task *task)
{
    struct link_command *c = task->user;

    c->in_flight = false;
    if (!c->tmf_out) /* else its memory is still in use, see abort_done() */
        conclude(c->link, c);
}

static void launch(struct link *link, struct link_command *c)
{
    uint64_t time = c->command_ns ? c->command_ns : link->opts.command_ns;

    link->stats.commands++;
    list_append(&link->flying, c);
    c->in_flight = c->sent = true;
    c->task.done = on_done;
    c->task.user = c;
    c->task.deadline_ns = net_now(link->reactor) + time;
    ini_submit(link->session, &c->task);
}

static bool may_go(const struct link *link, const struct link_command *c)
{
    if (link->drop_stream || link->over || link->flying.count >= link->limit)
        return false;
    return link->state == LINK_UP || (c->probe && link->state == LINK_CHECKING);
}

void commands_pump(struct link *link)
{
    struct link_command *c = link->queue.first;

    if (link->state != LINK_UP && link->state != LINK_CHECKING)
        return;
    while (c) {
        struct link_command *next = c->next;

        if (may_go(link, c)) {
            list_remove(&link->queue, c);
            launch(link, c);
        } else if (link->state == LINK_UP) {
            break;
        }
        c = next;
    }
}

/* The machine trusts that iov holds length bytes. */
static bool holds(const struct ini_task *task)
{
    uint64_t left = task->direction == INI_NONE ? 0 : task->length;

    for (unsigned i = 0; i < task->iov_count && left > 0; i++)
        left -= task->iov[i].iov_len < left ? task->iov[i].iov_len : left;
    return left == 0;
}

static void wake_for(struct link *link, uint64_t at)
{
    if (at != NET_NEVER && (!link->timer.index || at < link->timer.at))
        net_timer_set(link->reactor, &link->timer, at);
}

void link_submit(struct link *link, struct link_command *c)
{
    c->link = link;
    c->first_ns = net_now(link->reactor);
    c->retries = c->delays = c->attentions = c->step = 0;
    c->has_sense = c->tmf_out = c->in_flight = c->sent = false;
    c->transferred = 0;
    if (!holds(&c->task))
        finish(link, c, -EINVAL);
    else if (link->state == LINK_FAILED || link->state == LINK_CLOSING)
        finish(link, c, end_status(link));
    else if (c->probe && link->state != LINK_CHECKING && link->state != LINK_UP)
        finish(link, c, -EIO);
    else if (link->queue.count == 0 && may_go(link, c))
        launch(link, c);
    else
        list_append(&link->queue, c);
    wake_for(link, link->finished.count ? net_now(link->reactor) : commands_deadline(link));
}

static unsigned move_unsent(struct command_list *from, struct link *to)
{
    unsigned moved = 0;
    struct link_command *next;

    for (struct link_command *c = from->first; c; c = next) {
        next = c->next;
        if (c->sent || c->probe)
            continue;
        list_remove(from, c);
        c->link = to;
        list_insert(&to->queue, c);
        moved++;
    }
    return moved;
}

unsigned link_move_unsent(struct link *from, struct link *to)
{
    unsigned moved;

    if (from == to || from->state == LINK_UP)
        return 0;
    moved = move_unsent(&from->queue, to);
    if (moved > 0)
        wake_for(to, net_now(to->reactor)); /* it sends them from there */
    return moved;
}

/* ---- time ---- */

uint64_t commands_deadline(const struct link *link)
{
    uint64_t at = NET_NEVER;

    if (link->queue.first && link->state != LINK_UP)
        at = link->queue.first->first_ns + link->opts.hold_ns;
    for (const struct link_command *c = link->later.first; c; c = c->next)
        if (c->again_ns < at)
            at = c->again_ns;
    if (link->session && link->flying.count > 0) {
        uint64_t late = ini_session_deadline(link->session);

        at = late < at ? late : at;
    }
    return link->aborts_by_ns && link->aborts_by_ns < at ? link->aborts_by_ns : at;
}

static bool aborts_are_out(const struct link *link)
{
    for (const struct link_command *c = link->flying.first; c; c = c->next)
        if (c->tmf_out)
            return true;
    return false;
}

static void tell_hold(struct link *link)
{
    if (!link->hold_told)
        link_log(link, "I/O has waited %u s for the target and fails now; the last attempt: %s",
                 (unsigned)(link->opts.hold_ns / 1000000000),
                 link->error.msg[0] ? link->error.msg : "has not ended yet");
    link->hold_told = true;
}

void commands_tick(struct link *link)
{
    uint64_t now = net_now(link->reactor);
    struct link_command *next;

    for (struct link_command *c = link->later.first; c; c = next) {
        next = c->next;
        if (c->again_ns <= now) {
            list_remove(&link->later, c);
            list_insert(&link->queue, c);
        }
    }
    if (link->aborts_by_ns && now >= link->aborts_by_ns) {
        link->aborts_by_ns = 0;
        if (aborts_are_out(link))
            link_drop(link, "the target has reset the LUN but does not answer aborts; the session "
                            "is given up");
    }
    if (link->state == LINK_UP)
        return;
    for (struct link_command *c = link->queue.first; c; c = next) {
        next = c->next;
        if (now - c->first_ns >= link->opts.hold_ns) {
            list_remove(&link->queue, c);
            finish(link, c, -ETIMEDOUT);
            tell_hold(link);
        }
    }
}

void commands_fail_probes(struct link *link)
{
    struct command_list *lists[] = {&link->queue, &link->later};
    struct link_command *next;

    for (unsigned i = 0; i < 2; i++)
        for (struct link_command *c = lists[i]->first; c; c = next) {
            next = c->next;
            if (c->probe) {
                list_remove(lists[i], c);
                finish(link, c, -EIO);
            }
        }
}

void commands_fail_all(struct link *link, int status)
{
    struct command_list *lists[] = {&link->queue, &link->later};

    for (unsigned i = 0; i < 2; i++)
        while (lists[i]->first) {
            struct link_command *c = lists[i]->first;

            list_remove(lists[i], c);
            finish(link, c, status);
        }
}

/* ---- a target that answers pings and swallows commands (I-ERR-16): ABORT TASK, LOGICAL UNIT
 * RESET, then the session; each step has its own time ---- */

static void reset_done(struct ini_tmf *tmf)
{
    struct link *link = tmf->user;

    link->reset_out = false;
    if (tmf->result == INI_OK && tmf->response == ISCSI_TMF_COMPLETE) {
        link_log(link, "the LUN was reset, as it did not answer");
        /* The memory of an abort is the machine's until it is answered. */
        link->aborts_by_ns = net_now(link->reactor) + link->opts.abort_ns;
    } else if (tmf->result != INI_LOST)
        link_drop(link, "neither an abort nor a reset of the LUN works; the session is given up");
}

static void reset(struct link *link, const struct link_command *c)
{
    if (link->reset_out || !link->session)
        return;
    link->stats.resets++;
    link->reset_out = true;
    link->reset = (struct ini_tmf){
        .function = ISCSI_LOGICAL_UNIT_RESET,
        .lun = c->task.lun,
        .deadline_ns = net_now(link->reactor) + link->opts.abort_ns,
        .done = reset_done,
        .user = link,
    };
    ini_tmf(link->session, &link->reset);
}

static void abort_done(struct ini_tmf *tmf)
{
    struct link_command *c = tmf->user;

    c->tmf_out = false;
    if (!c->in_flight)
        conclude(c->link, c);
    /* 0 and 1: the task ends with this (I-TMF-03); lost: with its session. */
    else if (tmf->result != INI_LOST &&
             (tmf->result != INI_OK || tmf->response > ISCSI_TMF_NO_TASK))
        reset(c->link, c);
}

void commands_late(struct link *link, struct ini_task *task)
{
    struct link_command *c = task->user;

    c->step++;
    link->stats.aborts++;
    link_log(link, "the target has not answered a command (0x%02x) in time; aborting it",
             task->cdb[0]);
    c->tmf = (struct ini_tmf){
        .deadline_ns = net_now(link->reactor) + link->opts.abort_ns,
        .done = abort_done,
        .user = c,
    };
    c->tmf_out = ini_abort(task, &c->tmf);
}

void commands_tmf_late(struct link *link, struct ini_tmf *tmf)
{
    if (tmf == &link->reset)
        link_drop(link, "the target answers neither an abort nor a reset of the LUN; the session "
                        "is given up");
    else
        reset(link, tmf->user);
}
