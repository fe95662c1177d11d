/* SPDX-License-Identifier: BSD-2-Clause */
#include "initiator/discover.h"

#include <errno.h>
#include <string.h>

#include "initiator/lun.h"

struct search {
    void (*each)(void *user, const struct discovered *found);
    void *user;
    struct link *link;
    char target[ISCSI_NAME_MAX + 1]; /* whose addresses come now */
    bool addressed;                  /* it had one */
    bool ended;
    struct lp_error bad; /* what is wrong with the list; domain NONE: nothing */
};

static void tell(struct search *s, const char *host, uint16_t port, int group)
{
    const struct discovered found = {s->target, host, port, group};

    s->addressed = true;
    s->each(s->user, &found);
}

/* The record of a target is complete. Without an address it is where we asked (App. C). */
static void finish_target(struct search *s)
{
    char host[LOGIN_ADDRESS_MAX];
    uint16_t port = ISCSI_PORT;
    struct lp_error err;
    int tag;

    if (!s->target[0] || s->addressed)
        return;
    if (net_address_split(link_portal(s->link), host, sizeof(host), &port, &tag, &err) == 0)
        tell(s, host, port, -1);
}

static void on_pair(struct ini_text *text, const char *key, const char *value)
{
    struct search *s = text->user;
    char host[LOGIN_ADDRESS_MAX];
    uint16_t port = ISCSI_PORT;
    int tag;

    if (s->bad.domain != LP_ERROR_NONE)
        return;
    if (strcmp(key, "TargetName") == 0) {
        finish_target(s);
        s->addressed = false;
        s->target[0] = '\0';
        if (iscsi_name_check(value, "name of a target in the portal's list", &s->bad) == 0)
            memcpy(s->target, value, strlen(value) + 1);
    } else if (strcmp(key, "TargetAddress") == 0 && s->target[0]) {
        if (net_address_split(value, host, sizeof(host), &port, &tag, &s->bad) == 0)
            tell(s, host, port, tag);
        else
            lp_error_prefix(&s->bad, "the target %s", s->target);
    }
}

static void on_text_done(struct ini_text *text)
{
    ((struct search *)text->user)->ended = true;
}

int discover(struct net_reactor *r, const struct link_opts *opts,
             void (*each)(void *user, const struct discovered *found), void *user,
             struct lp_error *err)
{
    static const char request[] = "SendTargets=All";
    struct link_opts own = *opts;
    struct search s = {.each = each, .user = user};
    struct ini_text text = {
        .request = request,
        .request_length = sizeof(request),
        .done = on_text_done,
        .pair = on_pair,
        .user = &s,
    };
    int status = -1;

    own.login.discovery = true;
    own.login.target_name = NULL;
    own.checking = own.down = NULL;
    own.failed = NULL;
    own.attention = NULL;
    own.ping_idle_ns = 0; /* nothing but SendTargets and Logout is allowed there (4.3) */
    own.depth = 1;
    s.link = link_open(r, &own, err);
    if (!s.link)
        return -1;
    if (link_wait(s.link, 0, err) < 0)
        goto out;
    text.deadline_ns = net_now_exact(r) + own.login_ns;
    ini_text(link_conn(s.link), &text);
    while (!s.ended)
        net_run_once(r, NET_NEVER);
    if (text.result != INI_OK) {
        lp_error_set(err, LP_ERROR_PEER, EPROTO,
                     "the portal did not answer the question for its targets (SendTargets): %s",
                     ini_result_name(text.result));
        goto out;
    }
    finish_target(&s);
    if (s.bad.domain != LP_ERROR_NONE)
        *err = s.bad;
    else
        status = 0;
out:
    link_close(s.link, own.abort_ns);
    return status;
}
