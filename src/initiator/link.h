/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: one I_T nexus kept alive. It connects, logs in, follows redirections, pings, notices a
 * dead target, logs in again with back-off, and runs SCSI commands through all of that: what was in
 * flight when a session was lost is sent again in the next one, and what comes meanwhile is held,
 * until a command has been waiting for hold_ns.
 *
 * Sending again is safe because a new login with the same ISID ends every task of the old session
 * at the target before the first new command (RFC 7143 6.3.5), and because no command is told done
 * twice.
 *
 *   DOWN --connect--> CONNECTING --stream--> LOGIN --logged in--> CHECKING --link_ready()--> UP
 *     ^                  |                     |                     |                        |
 *     +---- back-off ----+---------------------+---------------------+-- session lost --------+
 *     |
 *     +--> FAILED: an error that waiting does not mend, before the link was ever up; or closed
 *
 * Threads: a link belongs to the thread of its reactor. Callbacks come from net_run_once(), never
 * from inside link_submit(). They may submit, but not close the link.
 */
#ifndef INITIATOR_LINK_H
#define INITIATOR_LINK_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "iscsi/ini.h"
#include "net/net.h"
#include "scsi/sense.h"

struct link;

enum {
    LINK_HOPS_MAX = 4, /* redirections in a row (I-LOG-09) */
    LINK_RETRIES_MAX = 8,
};

struct link_opts {
    const char *host;
    uint16_t port;
    bool seen_before; /* its LUN has been seen through another link: it is waited for from the start
                       */
    struct login_ini_opts login; /* names, ISID, credentials, wishes; copied but for strings */
    bool allow_short_secrets;
    unsigned depth; /* commands in flight */
    struct net_connect_opts connect;
    uint64_t login_ns;       /* one login may take so long */
    uint64_t hold_ns;        /* a command waits so long for its target to come back */
    uint64_t command_ns;     /* a command may take so long at the target before it is aborted */
    uint64_t abort_ns;       /* an abort or reset may take so long before the next step */
    uint64_t ping_idle_ns;   /* silence after which the target is pinged; 0: never */
    uint64_t ping_ns;        /* and how long its answer may take */
    uint64_t backoff_max_ns; /* between attempts to connect; they begin at half a second */

    /* Logged in: check that it is still the right LUN, then call link_ready() or link_refuse(). */
    void (*checking)(void *user, struct link *link);
    /* A link that was CHECKING or UP has lost its session; it begins again by itself. May be NULL.
     */
    void (*down)(void *user, struct link *link);
    void (*failed)(void *user, struct link *link, const struct lp_error *why); /* state FAILED */
    /* For people: what happened, one sentence. May be NULL. */
    void (*log)(void *user, const char *sentence);
    /* The target told of a change; asc: ASC << 8 | ASCQ of a unit attention or event. May be
     * NULL. */
    void (*attention)(void *user, struct link *link, uint16_t asc);
    void *user;
};

void link_opts_default(struct link_opts *opts);

enum link_state {
    LINK_DOWN,
    LINK_CONNECTING,
    LINK_LOGIN,
    LINK_CHECKING,
    LINK_UP,
    LINK_FAILED,
    LINK_CLOSING,
};

/* Begins to connect at once. The strings in opts stay. NULL: see err. */
struct link *link_open(struct net_reactor *r, const struct link_opts *opts, struct lp_error *err);

/* Logs out, waiting in net_run_once() at most wait_ns for the answer, and frees the link. Commands
 * that are left end with -ECANCELED first. */
void link_close(struct link *link, uint64_t wait_ns);

enum link_state link_state(const struct link *link);
const struct lp_error *link_error(const struct link *link); /* the last one */
struct ini_session *link_session(struct link *link);        /* NULL unless logged in */
struct ini_conn *link_conn(struct link *link);
const char *link_portal(const struct link *link); /* where it is connected to */
struct net_reactor *link_reactor(struct link *link);

/* The answer to `checking`. */
void link_ready(struct link *link);
/* It is not what it was: no command goes there any more. State FAILED. */
void link_refuse(struct link *link, const struct lp_error *why);
/* It could not be found out, or the LUN is not there yet: the session is given up and the check
 * begins again after the back-off. Nothing unless CHECKING. */
void link_postpone(struct link *link, const struct lp_error *why);

struct link_stats {
    uint64_t logins, commands, retries, replays, aborts, resets, drops, pings;
    uint64_t failures; /* attempts to connect and log in that failed */
    uint64_t ping_ns;  /* round trip of the last ping */
};

const struct link_stats *link_stats(const struct link *link);

/* ---- commands ---- */

/* Embedded in the caller's own. */
struct link_command {
    /* Set by the caller; zeroed before. */
    struct ini_task task; /* lun, cdb, cdb_length, attr, direction, iov, iov_count, length */
    bool probe;           /* part of the check: runs in state CHECKING too; is never held, but ends
                           * with -EIO when the session does */
    uint64_t command_ns;  /* 0: the link's */
    void (*done)(struct link_command *command);
    void *user;

    /* Set before done. */
    int status; /* 0: GOOD or CONDITION MET; else a negative errno: */
    /*  -EIO medium or hardware error, or anything else; -ENOSPC thin LUN full; -EROFS write
     *  protected; -EACCES reserved by another initiator; -ENXIO no such LUN; -EOPNOTSUPP the
     *  command is unknown there; -EINVAL out of range; -EILSEQ miscompare; -ETIMEDOUT the target
     *  did not answer, or did not come back in time; -ESTALE the LUN is another one now;
     *  -ECANCELED the link was closed; -EINVAL also: iov holds fewer bytes than length */
    uint32_t transferred;
    bool has_sense;
    struct scsi_sense sense;

    /* Private. */
    struct link *link;
    struct link_command *next, *prev;
    uint64_t first_ns; /* when it was submitted */
    uint64_t again_ns; /* when it is sent again */
    struct ini_tmf tmf;
    uint8_t retries, delays, attentions;
    uint8_t step; /* of giving up on it */
    bool in_flight, tmf_out;
    bool sent; /* once: the target may have seen it */
};

/* Never calls back from inside. */
void link_submit(struct link *link, struct link_command *command);

/* Moves commands of `from` that were never sent, because it is not up, to `to`, another link to the
 * same LUN on the same reactor; how long they may wait counts on. What was sent stays: only a new
 * login of its own session makes sure that the target does not run it any more. Returns how
 * many. */
unsigned link_move_unsent(struct link *from, struct link *to);

/* Sends what was submitted at once instead of before the reactor sleeps. */
void link_flush(struct link *link);

#endif
