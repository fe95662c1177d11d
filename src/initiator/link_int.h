/* SPDX-License-Identifier: BSD-2-Clause */
/* What link.c and link_command.c share. */
#ifndef INITIATOR_LINK_INT_H
#define INITIATOR_LINK_INT_H

#include "initiator/link.h"

struct command_list {
    struct link_command *first, *last;
    unsigned count;
};

struct link {
    struct net_reactor *reactor;
    struct link_opts opts;
    enum link_state state;
    struct lp_error error;
    struct link_stats stats;
    bool was_up; /* a LUN has been seen through it: errors are waited for */

    /* Where to: the configured portal, or where a redirection led. */
    char host[LOGIN_ADDRESS_MAX];
    uint16_t port;
    /* Where an attempt begins: the configured portal, or what a redirection for good named, as long
     * as logins work there. */
    char home[LOGIN_ADDRESS_MAX];
    uint16_t home_port;
    bool moving;    /* a redirection for good is being followed */
    bool logged_in; /* in this attempt */
    unsigned hops;
    bool redirected; /* go there at once */

    /* The present attempt. */
    struct net_connect *connecting;
    struct net_stream *stream;
    struct ini_session *session;
    struct ini_conn *conn;
    bool drop_stream; /* close it once no callback of the machine is running */
    bool over;        /* the session has ended */
    bool login_final; /* the login failed in a way that waiting does not mend */
    bool tried_twice; /* after "too many connections" */
    bool hold_told;   /* that waiting commands fail, once in an outage */
    unsigned wait_s;  /* before the next attempt, as the target asked or was agreed */

    struct net_timer timer;
    uint64_t connect_at; /* LINK_DOWN */
    uint64_t backoff_ns;
    uint64_t heard_ns; /* when the target was heard last */
    struct ini_ping ping;
    uint64_t ping_sent_ns;
    bool ping_out;
    struct ini_logout logout;
    bool logged_out;

    struct command_list queue;    /* wait for the link, or for a place in flight */
    struct command_list flying;   /* at the target */
    struct command_list later;    /* wait for their time: busy targets */
    struct command_list finished; /* done is to be told */
    unsigned limit;               /* in flight; lowered by TASK SET FULL, grows again */
    unsigned good_in_a_row;
    struct ini_tmf reset; /* LOGICAL UNIT RESET */
    bool reset_out;
    uint64_t aborts_by_ns; /* after a reset: aborts still without an answer then end the session */
};

void list_append(struct command_list *l, struct link_command *c);
void list_remove(struct command_list *l, struct link_command *c);

void link_log(struct link *link, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The session is given up: the stream will be closed. why: for people. */
void link_drop(struct link *link, const char *why);

/* Does what callbacks of the machine must leave for later, and sets the timer. */
void link_settle(struct link *link);

/* ---- link_command.c ---- */

void commands_pump(struct link *link);                        /* sends what may go */
void commands_late(struct link *link, struct ini_task *task); /* its time is over */
void commands_tmf_late(struct link *link, struct ini_tmf *tmf);
void commands_tick(struct link *link); /* delays and holds that are over */
uint64_t commands_deadline(const struct link *link);
void commands_fail_all(struct link *link, int status); /* those that wait */
void commands_fail_probes(struct link *link); /* those of a check, when its session has ended */
bool commands_tell(struct link *link);        /* calls done; true: there were any */

#endif
