/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command window (RFC 7143 4.2.2.1), as values: numbers compare by serial arithmetic.
 */
#ifndef ISCSI_WINDOW_H
#define ISCSI_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/serial.h"

/* ---- initiator: what the target lets it send ---- */

struct iscsi_window {
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
};

static inline void iscsi_window_init(struct iscsi_window *w, uint32_t exp_cmd_sn,
                                     uint32_t max_cmd_sn)
{
    *w = (struct iscsi_window){exp_cmd_sn, max_cmd_sn};
}

/* Takes the numbers of any PDU from the target: both are ignored when they contradict each other
 * (MaxCmdSN < ExpCmdSN - 1), and each goes only forward. True if the window opened further. */
static inline bool iscsi_window_update(struct iscsi_window *w, uint32_t exp_cmd_sn,
                                       uint32_t max_cmd_sn)
{
    bool opened = false;

    if (serial_lt(max_cmd_sn, exp_cmd_sn - 1))
        return false;
    if (serial_lt(w->exp_cmd_sn, exp_cmd_sn))
        w->exp_cmd_sn = exp_cmd_sn;
    if (serial_lt(w->max_cmd_sn, max_cmd_sn)) {
        w->max_cmd_sn = max_cmd_sn;
        opened = true;
    }
    return opened;
}

/* May a non-immediate request with this CmdSN be sent? */
static inline bool iscsi_window_may_send(const struct iscsi_window *w, uint32_t cmd_sn)
{
    return serial_le(cmd_sn, w->max_cmd_sn);
}

/* ---- target: what it lets the initiator send ---- */

/* ExpCmdSN goes on with each number received without a gap; MaxCmdSN is ExpCmdSN - 1 plus what can
 * be taken, and never goes back (T-NUM-01). */
struct iscsi_tgt_window {
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
};

enum iscsi_cmd_sn {
    ISCSI_CMD_SN_NEXT,    /* ExpCmdSN itself: in order */
    ISCSI_CMD_SN_AHEAD,   /* in the window, with a gap before it: hold it */
    ISCSI_CMD_SN_OUTSIDE, /* a duplicate or beyond MaxCmdSN: ignore it silently (T-NUM-02) */
};

static inline void iscsi_tgt_window_init(struct iscsi_tgt_window *w, uint32_t cmd_sn, uint32_t room)
{
    *w = (struct iscsi_tgt_window){cmd_sn, cmd_sn + room - 1};
}

static inline enum iscsi_cmd_sn iscsi_tgt_window_judge(const struct iscsi_tgt_window *w,
                                                       uint32_t cmd_sn)
{
    if (serial_lt(cmd_sn, w->exp_cmd_sn) || serial_lt(w->max_cmd_sn, cmd_sn))
        return ISCSI_CMD_SN_OUTSIDE;
    return cmd_sn == w->exp_cmd_sn ? ISCSI_CMD_SN_NEXT : ISCSI_CMD_SN_AHEAD;
}

/* `room` more commands can be taken from ExpCmdSN on. True if the window opened further. */
static inline bool iscsi_tgt_window_open(struct iscsi_tgt_window *w, uint32_t room)
{
    uint32_t max = w->exp_cmd_sn + room - 1;

    if (!serial_lt(w->max_cmd_sn, max))
        return false;
    w->max_cmd_sn = max;
    return true;
}

#endif
