/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may log in where, and what a session has: its nexuses with the LUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "scsi/lun.h"
#include "target/target_int.h"

/* SOME COMMANDS CLEARED BY ISCSI PROTOCOL EVENT; RFC 7143 11.14.5. */
enum { COMMANDS_CLEARED = 0x477f };

/* ---- login ---- */

static bool may_use(const struct target *t, const char *initiator)
{
    for (unsigned i = 0; i < t->initiator_count; i++)
        if (strcmp(t->initiators[i], initiator) == 0)
            return true;
    return t->initiator_count == 0;
}

uint16_t on_lookup(void *user, struct login_tgt *l, struct login_policy *policy)
{
    struct target_server *s = user;
    struct target *t;

    policy->portal_group_tag = tgt_conn_portal(l->opts.context)->group_tag;
    if (s->refuse)
        return s->refuse;
    if (l->discovery && !l->target_name[0])
        return ISCSI_LOGIN_OK;
    t = target_find(s, l->target_name);
    if (!t)
        return ISCSI_LOGIN_NOT_FOUND;
    if (!may_use(t, l->initiator_name))
        return ISCSI_LOGIN_AUTHORIZATION;
    policy->target_alias = t->alias[0] ? t->alias : NULL;
    policy->chap = t->user_count > 0;
    if (t->mutual.name)
        policy->mutual =
            (struct chap_credentials){t->mutual.name, t->mutual.secret, strlen(t->mutual.secret)};
    if (!t->moved_to[0])
        return ISCSI_LOGIN_OK;
    policy->address = t->moved_to;
    return t->moved_for_good ? ISCSI_LOGIN_MOVED_PERMANENTLY : ISCSI_LOGIN_MOVED_TEMPORARILY;
}

bool on_secret(void *user, struct login_tgt *l, const char *chap_name, struct chap_credentials *c,
               const char **bound)
{
    const struct target *t = target_find(user, l->target_name);

    for (unsigned i = 0; t && i < t->user_count; i++) {
        if (strcmp(t->users[i].name, chap_name) != 0)
            continue;
        *c = (struct chap_credentials){t->users[i].name, t->users[i].secret,
                                       strlen(t->users[i].secret)};
        *bound = t->users[i].initiator_name;
        return true;
    }
    return false;
}

int on_random(void *user, void *bytes, size_t n)
{
    (void)user;
    return random_bytes(bytes, n, NULL);
}

/* ---- discovery ---- */

bool on_target(void *user, struct tgt_conn *conn, unsigned index, struct tgt_listing *listing)
{
    struct target_server *s = user;

    for (struct target *t = s->targets; t; t = t->next) {
        if (!may_use(t, tgt_conn_initiator_name(conn)) || index-- > 0)
            continue;
        listing->name = t->name;
        return true;
    }
    return false;
}

/* A portal on all addresses is at the one that the asker has reached. */
static void portal_address(const struct portal *p, struct tgt_conn *conn,
                           char address[TGT_ADDRESS_MAX])
{
    const char *own = net_listener_address(p->listener);
    const char *reached = tgt_conn_portal(conn)->address;
    const char *colon = strrchr(reached, ':');

    if (strncmp(own, "0.0.0.0:", 8) != 0 && strncmp(own, "[::]:", 5) != 0)
        snprintf(address, TGT_ADDRESS_MAX, "%s,%u", own, p->group);
    else
        snprintf(address, TGT_ADDRESS_MAX, "%.*s:%u,%u", colon ? (int)(colon - reached) : 0,
                 reached, net_listener_port(p->listener), p->group);
}

bool on_target_address(void *user, struct tgt_conn *conn, const char *target, unsigned index,
                       char address[TGT_ADDRESS_MAX])
{
    const struct target_server *s = user;

    (void)target; /* every target is at every portal */
    for (const struct portal *p = s->portals; p; p = p->next)
        if (index-- == 0) {
            portal_address(p, conn, address);
            return true;
        }
    return false;
}

/* ---- sessions ---- */

static void close_nexuses(struct nexus_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->nexus[i])
            lu_nexus_close(set->nexus[i]);
    if (set->absent)
        lu_nexus_close(set->absent);
    free(set);
}

static uint16_t relative_port(const struct target_server *s, uint16_t group)
{
    for (const struct portal *p = s->portals; p; p = p->next)
        if (p->group == group)
            return p->relative_port;
    return 1;
}

static struct nexus_set *open_nexuses(struct target *t, const struct tgt_session *session,
                                      struct lp_error *err)
{
    struct nexus_set *set = calloc(1, sizeof(*set) + t->lun_count * sizeof(*set->nexus));
    struct lu_nexus_id id = {
        .initiator_name = tgt_session_initiator_name(session),
        .relative_port = relative_port(t->server, tgt_session_portal_group(session)),
    };

    if (!set)
        return NULL;
    memcpy(id.isid, tgt_session_isid(session), sizeof(id.isid));
    set->target = t;
    set->absent = lu_nexus_open(t->absent, &id, err);
    if (!set->absent)
        goto out;
    for (; set->count < t->lun_count; set->count++) {
        set->nexus[set->count] = lu_nexus_open(t->luns[set->count].lu, &id, err);
        if (!set->nexus[set->count])
            goto out;
    }
    return set;
out:
    close_nexuses(set);
    return NULL;
}

void on_session_opened(void *user, struct tgt_session *session)
{
    struct target_server *s = user;
    struct target *t = target_find(s, tgt_session_target_name(session));
    struct lp_error err = {0};
    struct nexus_set *set = t ? open_nexuses(t, session, &err) : NULL;

    tgt_session_set_user(session, set);
    if (!set) {
        server_log(s, "session of %s refused: %s", tgt_session_initiator_name(session),
                   err.msg[0] ? err.msg : "out of memory");
        tgt_session_close(session, "no memory for it");
        return;
    }
    server_log(s, "%s logged in to %s", tgt_session_initiator_name(session), t->name);
}

void on_session_closed(void *user, struct tgt_session *session, enum tgt_session_end why)
{
    static const char *const words[] = {[TGT_END_LOGOUT] = "logged out",
                                        [TGT_END_REINSTATED] = "reinstated",
                                        [TGT_END_LOST] = "lost",
                                        [TGT_END_PROTOCOL] = "ended for a protocol error",
                                        [TGT_END_OWNER] = "closed"};
    struct nexus_set *set = tgt_session_user(session);

    if (!set)
        return;
    server_log(user, "session of %s: %s", tgt_session_initiator_name(session), words[why]);
    close_nexuses(set);
}

void on_tasks_cleared(void *user, struct tgt_session *session)
{
    struct nexus_set *set = tgt_session_user(session);

    (void)user;
    for (unsigned i = 0; set && i < set->count; i++)
        lu_nexus_ua(set->nexus[i], COMMANDS_CLEARED);
}

struct lu_nexus *nexus_for(const struct tgt_session *session, uint64_t lun)
{
    const struct nexus_set *set = tgt_session_user(session);
    uint8_t field[8];
    uint32_t number;
    unsigned low = 0, high;

    if (!set)
        return NULL;
    store_be64(field, lun);
    if (scsi_lun_number(field, &number) < 0)
        return set->absent;
    high = set->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (set->target->luns[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->target->luns[low].number == number ? set->nexus[low]
                                                                       : set->absent;
}
