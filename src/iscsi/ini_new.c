/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and frees a session: all its memory comes from here and from ini_conn_new(). */
#include "iscsi/ini_int.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static int check(const struct ini_opts *opts, struct lp_error *err)
{
    if (!opts->event)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "a session needs an event callback");
    if (opts->depth < 1 || opts->depth > INI_DEPTH_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a session has a queue depth of 1 to %d, not %u", INI_DEPTH_MAX,
                            opts->depth);
    if (opts->connections > INI_CONNS_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "a session has at most %d connections, not %u",
                            INI_CONNS_MAX, opts->connections);
    return login_ini_check(&opts->login, opts->allow_short_secrets, err);
}

/* ---- what the options point to ---- */

static char *copy(char **to, const void *bytes, size_t n)
{
    char *at = *to;

    memcpy(at, bytes, n);
    *to += n;
    return at;
}

/* A run of bytes that an option points to, and the pointer to set. */
struct part {
    const char **pointer;
    size_t length;
};

static struct part text_part(const char **text)
{
    return (struct part){text, *text ? strlen(*text) + 1 : 0};
}

static int copy_strings(struct ini_session *s)
{
    struct login_ini_opts *login = &s->opts.login;
    const char *secret = login->chap.secret, *mutual = login->mutual.secret;
    struct part parts[] = {
        text_part(&login->initiator_name),
        text_part(&login->initiator_alias),
        text_part(&login->target_name),
        text_part(&login->chap.user),
        text_part(&login->mutual.user),
        text_part(&login->chap_algorithms),
        {&login->extra_keys, login->extra_keys ? login->extra_keys_length : 0},
        {&secret, secret ? login->chap.secret_length : 0},
        {&mutual, mutual ? login->mutual.secret_length : 0},
    };
    size_t count = sizeof parts / sizeof *parts;

    for (size_t i = 0; i < count; i++)
        s->strings_size += parts[i].length;
    s->strings = malloc(s->strings_size + 1);
    if (!s->strings)
        return -1;
    char *to = s->strings;
    for (size_t i = 0; i < count; i++)
        if (*parts[i].pointer)
            *parts[i].pointer = copy(&to, *parts[i].pointer, parts[i].length);
    login->chap.secret = secret;
    login->mutual.secret = mutual;
    return 0;
}

/* What cannot be kept is not offered. */
static void bound_wishes(struct iscsi_params *wish)
{
    if (wish->error_recovery_level > 1)
        wish->error_recovery_level = 1;
    if (wish->max_outstanding_r2t > INI_R2T_MAX)
        wish->max_outstanding_r2t = INI_R2T_MAX;
}

static int make_slots(struct ini_session *s)
{
    while (1u << s->slot_bits < s->opts.depth + INI_SPARE_SLOTS)
        s->slot_bits++;
    uint32_t count = 1u << s->slot_bits;
    s->slots = calloc(count, sizeof *s->slots);
    s->free_slots = calloc(count, sizeof *s->free_slots);
    if (!s->slots || !s->free_slots)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        s->slots[i].dropped = ISCSI_TAG_NONE;
        s->free_slots[s->free_count++] = i;
    }
    return 0;
}

struct ini_session *ini_session_new(const struct ini_opts *opts, struct lp_error *err)
{
    struct ini_session *s = NULL;

    if (check(opts, err))
        return NULL;
    s = calloc(1, sizeof *s);
    if (!s)
        goto no_memory;
    s->opts = *opts;
    if (!s->opts.connections)
        s->opts.connections = 1;
    bound_wishes(&s->opts.login.wishes.params);
    s->next_deadline = INI_NEVER;
    s->cmd_sn = 1;
    s->portal_group_tag = -1;
    if (make_slots(s) || copy_strings(s))
        goto no_memory;
    return s;

no_memory:
    lp_error_set(err, LP_ERROR_SYS, 12, "no memory for a session of depth %u", opts->depth);
    ini_session_free(s);
    return NULL;
}

void ini_session_free(struct ini_session *s)
{
    if (!s)
        return;
    free(s->slots);
    free(s->free_slots);
    if (s->strings)
        bytes_wipe(s->strings, s->strings_size);
    free(s->strings);
    free(s);
}
