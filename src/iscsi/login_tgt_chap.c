/* SPDX-License-Identifier: BSD-2-Clause */
/* The security stage as the target sees it (RFC 7143 12.1.3); the exchange is drawn in
 * login_ini_chap.c. */
#include <string.h>

#include "iscsi/login_int.h"

/* One answer to all that is wrong with a name or a response, so that nobody learns which. */
static enum login_result wrong(struct login_tgt *l, const char *why)
{
    return login_tgt_fail(l, ISCSI_LOGIN_AUTHENTICATION, "%.80s failed to authenticate itself: %s",
                          l->initiator_name, why);
}

/* ---- AuthMethod ---- */

static bool offers(const char *list, const char *method)
{
    char item[16];

    while (text_list_next(&list, item, sizeof(item)))
        if (strcmp(item, method) == 0)
            return true;
    return false;
}

static bool asks_to_leave(const struct login_tgt *l)
{
    return l->request.transit;
}

/* [T-LOG-12] also for an initiator that stays in the security stage without a word about it. */
static enum login_result on_method(struct login_tgt *l, const char *list)
{
    const char *method = l->policy.chap ? "CHAP" : "None";

    if (!list && l->policy.chap)
        return asks_to_leave(l) ? wrong(l, "it does not offer AuthMethod=CHAP") : LOGIN_MORE;
    if (list && !offers(list, method)) {
        if (l->policy.chap)
            return wrong(l, "it does not offer AuthMethod=CHAP");
        method = "Reject";
    }
    if (list)
        text_put(&l->writer, "AuthMethod", method);
    /* Without a list the initiator may still bring one, as long as it does not ask to leave. */
    if (list || asks_to_leave(l))
        l->step = l->policy.chap ? TGT_CHAP_A : TGT_AUTH_DONE;
    return LOGIN_MORE;
}

/* ---- our challenge ---- */

static enum login_result on_algorithms(struct login_tgt *l, const char *list)
{
    char ours[CHAP_LIST_MAX];

    chap_list(NULL, ours);
    l->kind = chap_pick(list, ours);
    if (!l->kind)
        return wrong(l, "none of its CHAP algorithms is known here");
    if (l->opts.ops->random(l->opts.user, l->challenge, CHAP_CHALLENGE_SIZE) < 0 ||
        l->opts.ops->random(l->opts.user, &l->identifier, 1) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_TARGET_ERROR,
                              "there are no random numbers for a CHAP challenge");
    l->challenged = true;
    chap_outstanding_add(l->opts.outstanding, l->challenge);
    text_put_number(&l->writer, "CHAP_A", l->kind);
    text_put_number(&l->writer, "CHAP_I", l->identifier);
    text_put_binary(&l->writer, "CHAP_C", l->challenge, CHAP_CHALLENGE_SIZE);
    l->step = TGT_CHAP_R;
    return LOGIN_MORE;
}

/* ---- their response ---- */

/* A name that nobody knows costs as much time as a wrong secret (T-CHAP-02). */
static bool known(struct login_tgt *l, const char *name, struct chap_credentials *c)
{
    static const uint8_t nothing[CHAP_SECRET_MIN];
    const char *bound = NULL;
    bool found = strlen(name) <= CHAP_USER_MAX && text_printable(name) && l->opts.ops->secret &&
                 l->opts.ops->secret(l->opts.user, l, name, c, &bound);

    if (!found)
        *c = (struct chap_credentials){name, nothing, sizeof(nothing)};
    return found && (!bound || strcmp(bound, l->initiator_name) == 0);
}

static enum login_result verify(struct login_tgt *l, const struct login_security *s)
{
    const struct chap_credentials *mutual = &l->policy.mutual;
    struct chap_credentials c = {0};
    uint8_t response[CHAP_BINARY_MAX];
    bool found, right;
    size_t n;

    if (text_binary(s->r, response, sizeof(response), &n) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "CHAP_R is neither hex nor base64 of 1 to %d bytes", CHAP_BINARY_MAX);
    found = known(l, s->n, &c);
    right = chap_verify(l->kind, l->identifier, &c, l->challenge, CHAP_CHALLENGE_SIZE, response, n);
    bytes_wipe(&c, sizeof(c));
    if (!found || !right)
        return wrong(l, "its CHAP name or response is wrong");
    if (mutual->user &&
        chap_verify(l->kind, l->identifier, mutual, l->challenge, CHAP_CHALLENGE_SIZE, response, n))
        return wrong(l, "its secret is the target's own");
    login_copy_text(l->chap_name, sizeof(l->chap_name), s->n);
    return LOGIN_MORE;
}

/* It wants to know who we are. */
static enum login_result prove(struct login_tgt *l, const struct login_security *s)
{
    uint8_t identifier, challenge[CHAP_BINARY_MAX], digest[HASH_MAX];
    size_t n, length;

    if (login_chap_identifier(s->i, &identifier) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "CHAP_I=%.20s is not a number from 0 to 255", s->i);
    if (text_binary(s->c, challenge, sizeof(challenge), &n) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "CHAP_C is neither hex nor base64 of 1 to %d bytes", CHAP_BINARY_MAX);
    if (chap_outstanding_has(l->opts.outstanding, challenge, n))
        return wrong(l, "it sends a challenge of ours back to us");
    if (!l->policy.mutual.user)
        return wrong(l, "it wants the target to prove its identity, for which there is no secret");
    length = chap_response(l->kind, identifier, &l->policy.mutual, challenge, n, digest);
    text_put(&l->writer, "CHAP_N", l->policy.mutual.user);
    text_put_binary(&l->writer, "CHAP_R", digest, length);
    return LOGIN_MORE;
}

static enum login_result on_response(struct login_tgt *l, const struct login_security *s)
{
    if (!s->n || !s->r || !s->i != !s->c)
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER, "the initiator does not send %s",
                              !s->n   ? "CHAP_N"
                              : !s->r ? "CHAP_R"
                              : !s->i ? "CHAP_I"
                                      : "CHAP_C");
    /* The initiator's proof first: nobody else gets one of ours. */
    if (verify(l, s) != LOGIN_MORE || (s->i && prove(l, s) != LOGIN_MORE))
        return LOGIN_FAILED;
    chap_outstanding_remove(l->opts.outstanding, l->challenge);
    l->challenged = false; /* answered; it is never accepted again (T-CHAP-06) */
    l->step = TGT_AUTH_DONE;
    return LOGIN_MORE;
}

static enum login_result out_of_turn(struct login_tgt *l, const char *key)
{
    return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, "the initiator sent %s out of turn", key);
}

enum login_result login_tgt_security(struct login_tgt *l, const struct login_security *s)
{
    bool response = s->i || s->c || s->n || s->r;

    if (l->step == TGT_AUTH_METHOD && on_method(l, s->auth_method) != LOGIN_MORE)
        return LOGIN_FAILED;
    if (l->step != TGT_CHAP_R && response)
        return out_of_turn(l, "CHAP keys");
    if (l->step == TGT_CHAP_R)
        return s->a ? out_of_turn(l, "CHAP_A") : on_response(l, s);
    if (s->a)
        return l->step == TGT_CHAP_A ? on_algorithms(l, s->a) : out_of_turn(l, "CHAP_A");
    if (l->step == TGT_CHAP_A && !s->auth_method)
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER,
                              "the initiator does not send CHAP_A");
    return LOGIN_MORE;
}
