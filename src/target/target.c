/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets and their LUNs, as they are configured. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scsi/lun.h"
#include "target/target_int.h"

struct target *target_find(struct target_server *s, const char *name)
{
    struct target *t = s->targets;

    while (t && name && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

/* ---- LUNs ---- */

/* The LUN list of a target, for REPORT LUNS. */
static bool lun_at(void *user, const struct lu_nexus *nexus, unsigned index, uint8_t lun[8])
{
    const struct target *t = user;

    (void)nexus;
    return index < t->lun_count && scsi_lun_pack(t->luns[index].number, lun) == 0;
}

static struct lu *new_lu(struct target *t, struct lp_disk *disk, const struct lu_opts *opts,
                         struct lp_error *err)
{
    struct lu_opts own = *opts;

    own.target_name = t->name;
    own.ports = t->server->ports;
    own.port_count = t->server->portal_count;
    own.iscsi_protocol_level = 2;
    own.lun_at = lun_at;
    own.lun_user = t;
    if (own.depth == 0)
        own.depth = t->server->opts.depth;
    return lu_new(disk, &own, err);
}

struct lu *target_lun(struct target *t, uint32_t number)
{
    for (unsigned i = 0; i < t->lun_count; i++)
        if (t->luns[i].number == number)
            return t->luns[i].lu;
    return NULL;
}

struct lu *target_add_lun(struct target *t, struct lp_disk *disk, const struct lu_opts *opts,
                          struct lp_error *err)
{
    struct target_lun *luns;
    unsigned at = t->lun_count;
    struct lu *lu;

    if (tgt_session_next(t->server->tgt, NULL)) {
        lp_error_set(err, LP_ERROR_USAGE, 0,
                     "LUNs cannot be added while somebody is logged in; add them before");
        return NULL;
    }
    if (target_lun(t, opts->number) || t->lun_count == TARGET_LUNS_MAX) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "the LUN %u is there already, or there are too many",
                     opts->number);
        return NULL;
    }
    luns = realloc(t->luns, (t->lun_count + 1) * sizeof(*luns));
    if (!luns) {
        lp_error_sys(err, ENOMEM, "LUN %u", opts->number);
        return NULL;
    }
    t->luns = luns;
    lu = new_lu(t, disk, opts, err);
    if (!lu) {
        lp_error_prefix(err, "LUN %u", opts->number);
        return NULL;
    }
    while (at > 0 && luns[at - 1].number > opts->number) {
        luns[at] = luns[at - 1];
        at--;
    }
    luns[at] = (struct target_lun){t, lu, opts->number};
    t->lun_count++;
    return lu;
}

/* ---- targets ---- */

static bool copy_user(struct target_user *to, const struct target_user *from)
{
    to->name = strdup(from->name);
    to->secret = strdup(from->secret);
    to->initiator_name = from->initiator_name ? strdup(from->initiator_name) : NULL;
    return to->name && to->secret && (!from->initiator_name || to->initiator_name);
}

static int check_users(const struct target_opts *o, struct lp_error *err)
{
    struct chap_credentials mutual = {0};

    if (o->mutual.name)
        mutual =
            (struct chap_credentials){o->mutual.name, o->mutual.secret, strlen(o->mutual.secret)};
    for (unsigned i = 0; i < o->user_count; i++) {
        const struct chap_credentials user = {o->users[i].name, o->users[i].secret,
                                              strlen(o->users[i].secret)};

        if (chap_credentials_check(&user, mutual.user ? &mutual : NULL, false,
                                   "secret of the initiator", err) < 0)
            return -1;
    }
    if (mutual.user && o->user_count == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "mutual CHAP needs a user for the initiator too");
    return mutual.user ? chap_credentials_check(&mutual, NULL, false, "secret of the target", err)
                       : 0;
}

static bool copy_access(struct target *t, const struct target_opts *o)
{
    t->users = calloc(o->user_count + 1, sizeof(*t->users));
    t->initiators = calloc(o->initiator_count + 1, sizeof(*t->initiators));
    if (!t->users || !t->initiators)
        return false;
    for (; t->user_count < o->user_count; t->user_count++)
        if (!copy_user(&t->users[t->user_count], &o->users[t->user_count])) {
            t->user_count++;
            return false;
        }
    for (; t->initiator_count < o->initiator_count; t->initiator_count++) {
        t->initiators[t->initiator_count] = strdup(o->initiators[t->initiator_count]);
        if (!t->initiators[t->initiator_count])
            return false;
    }
    return !o->mutual.name || copy_user(&t->mutual, &o->mutual);
}

struct target *target_add(struct target_server *s, const struct target_opts *o,
                          struct lp_error *err)
{
    struct target *t, **last = &s->targets;
    const struct lu_opts none = {.number = 0};

    if (iscsi_name_check(o->name, "target name", err) < 0 || check_users(o, err) < 0)
        return NULL;
    if (target_find(s, o->name)) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "the target %s is there already", o->name);
        return NULL;
    }
    t = calloc(1, sizeof(*t));
    if (!t) {
        lp_error_sys(err, ENOMEM, "target %s", o->name);
        return NULL;
    }
    t->server = s;
    snprintf(t->name, sizeof(t->name), "%s", o->name);
    snprintf(t->alias, sizeof(t->alias), "%s", o->alias ? o->alias : "");
    snprintf(t->moved_to, sizeof(t->moved_to), "%s", o->moved_to ? o->moved_to : "");
    t->moved_for_good = o->moved_for_good;
    while (*last)
        last = &(*last)->next;
    *last = t; /* freed with the server, whatever follows */
    if (!copy_access(t, o)) {
        lp_error_sys(err, ENOMEM, "target %s", o->name);
        return NULL;
    }
    t->absent = new_lu(t, NULL, &none, err);
    return t->absent ? t : NULL;
}
