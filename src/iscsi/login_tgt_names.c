/* SPDX-License-Identifier: BSD-2-Clause */
/* The first turn of a login at the target: who logs in to what, and may it (RFC 7143 6.3.1). */
#include <stdio.h>
#include <string.h>

#include "iscsi/login_int.h"

/* The values of the names, wherever they stand in the turn. Repetitions, stages and the like are
 * found when all pairs are taken. */
struct names {
    const char *initiator, *target, *type;
};

static void find_names(const struct login_tgt *l, struct names *names)
{
    struct text_scan scan;
    struct text_pair pair;

    text_scan_init(&scan, l->run.bytes, l->run.length);
    while (text_next(&scan, &pair) == TEXT_PAIR)
        switch (keys_find(pair.key)) {
        case KEY_INITIATOR_NAME:
            names->initiator = pair.value;
            break;
        case KEY_TARGET_NAME:
            names->target = pair.value;
            break;
        case KEY_SESSION_TYPE:
            names->type = pair.value;
            break;
        default:
            break;
        }
}

static enum login_result take_name(struct login_tgt *l, char to[ISCSI_NAME_MAX + 1],
                                   const char *name, const char *what)
{
    struct lp_error err = {0};

    if (iscsi_name_check(name, what, &err) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, "%s", err.msg);
    snprintf(to, ISCSI_NAME_MAX + 1, "%s", name);
    return LOGIN_MORE;
}

static enum login_result take_names(struct login_tgt *l, const struct names *names)
{
    if (!names->initiator)
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER,
                              "the initiator does not say its InitiatorName");
    if (names->type && strcmp(names->type, "Normal") != 0 && strcmp(names->type, "Discovery") != 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "SessionType=%.60s is neither Normal nor Discovery", names->type);
    l->discovery = names->type && strcmp(names->type, "Discovery") == 0;
    if (!names->target && !l->discovery)
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER,
                              "the initiator does not say which target it wants");
    if (take_name(l, l->initiator_name, names->initiator, "initiator's name") != LOGIN_MORE)
        return LOGIN_FAILED;
    return names->target ? take_name(l, l->target_name, names->target, "target name it asks for")
                         : LOGIN_MORE;
}

static enum login_result refuse(struct login_tgt *l, uint16_t status)
{
    return login_tgt_fail(l, status, "%.80s at %.80s: %s", l->initiator_name,
                          l->target_name[0] ? l->target_name : "discovery",
                          login_status_sentence(status, false, false));
}

/* [T-LOG-10] */
static void introduce(struct login_tgt *l)
{
    text_put_number(&l->writer, "TargetPortalGroupTag", l->policy.portal_group_tag);
    if (l->policy.target_alias && !l->discovery)
        text_put(&l->writer, "TargetAlias", l->policy.target_alias);
}

enum login_result login_tgt_names(struct login_tgt *l)
{
    const struct iscsi_params *base = NULL;
    struct names names = {0};
    uint16_t status;

    l->named = true;
    find_names(l, &names);
    if (take_names(l, &names) != LOGIN_MORE)
        return LOGIN_FAILED;
    status = l->opts.ops->lookup(l->opts.user, l, &l->policy);
    if (status != ISCSI_LOGIN_OK)
        return refuse(l, status);
    if (l->policy.chap && l->stage != ISCSI_STAGE_SECURITY)
        return login_tgt_fail(l, ISCSI_LOGIN_AUTHENTICATION,
                              "%.80s skips the security stage, but must authenticate itself",
                              l->initiator_name);
    status = l->opts.session_ops->check(l->opts.session_user, l, &base);
    if (status != ISCSI_LOGIN_OK)
        return refuse(l, status);
    keys_begin(&l->keys, false, l->discovery, &l->opts.wishes, base);
    l->keys.stage = l->stage;
    introduce(l);
    return LOGIN_MORE;
}

/* Keys that are neither negotiated nor of the security stage. Names that come after the first turn
 * would change who logs in to what. */
enum login_result login_tgt_take_late(struct login_tgt *l, enum iscsi_key key, const char *value)
{
    const char *held = NULL;

    if (key == KEY_INITIATOR_ALIAS)
        login_copy_text(l->initiator_alias, sizeof(l->initiator_alias), value);
    if (key == KEY_INITIATOR_NAME)
        held = l->initiator_name;
    if (key == KEY_TARGET_NAME)
        held = l->target_name;
    if (key == KEY_SESSION_TYPE)
        held = l->discovery ? "Discovery" : "Normal";
    if (held && strcmp(held, value) != 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "%s was changed after the first turn of the login", keys_name(key));
    return LOGIN_MORE;
}
