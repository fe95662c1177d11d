/* SPDX-License-Identifier: BSD-2-Clause */
/* The target's side of the security stage (RFC 7143 9.2, 12.1): see login.h. */
#include <stdio.h>
#include <string.h>

#include "iscsi/login_tgt_int.h"

static bool lists(const char *list, const char *wanted)
{
    char item[16];

    while (text_list_next(&list, item, sizeof(item)))
        if (strcmp(item, wanted) == 0)
            return true;
    return false;
}

static bool any_chap(const struct login_turn *turn)
{
    return turn->chap_a || turn->chap_i || turn->chap_c || turn->chap_n || turn->chap_r;
}

static enum login_result unauthenticated(struct login_tgt *l, const char *sentence)
{
    return login_tgt_fail(l, ISCSI_LOGIN_AUTHENTICATION, sentence);
}

static enum login_result wrong_step(struct login_tgt *l)
{
    return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR, "CHAP keys came in the wrong step");
}

static enum login_result auth_method(struct login_tgt *l, const struct login_turn *turn,
                                     struct text_writer *w)
{
    if (any_chap(turn))
        return wrong_step(l);
    if (!turn->auth_method) {
        if (!l->request.transit)
            return LOGIN_MORE;
        if (l->policy.chap)
            return unauthenticated(l, "the initiator wants to go on without authentication");
        l->step = TGT_AUTH_DONE;
        return LOGIN_MORE;
    }
    if (l->policy.chap) {
        if (!lists(turn->auth_method, "CHAP"))
            return unauthenticated(l, "the initiator does not offer CHAP, which is required");
        text_put(w, "AuthMethod", "CHAP");
        l->step = TGT_CHAP_A;
        return LOGIN_MORE;
    }
    if (!lists(turn->auth_method, "None"))
        return unauthenticated(l, "the initiator insists on CHAP, and no secrets are set here");
    text_put(w, "AuthMethod", "None");
    l->step = TGT_AUTH_DONE;
    return LOGIN_MORE;
}

static enum login_result challenge(struct login_tgt *l, const struct login_turn *turn,
                                   struct text_writer *w)
{
    char ours[CHAP_LIST_MAX];

    if (turn->auth_method || turn->chap_i || turn->chap_c || turn->chap_n || turn->chap_r)
        return wrong_step(l);
    if (!turn->chap_a)
        return l->request.transit ? unauthenticated(l, "the initiator leaves CHAP unfinished")
                                  : LOGIN_MORE;
    chap_list(NULL, ours);
    l->kind = chap_pick(turn->chap_a, ours);
    if (!l->kind)
        return unauthenticated(l, "none of the initiator's CHAP algorithms is supported");
    if (l->opts->ops->random(l->opts->user, &l->identifier, 1) < 0 ||
        l->opts->ops->random(l->opts->user, l->challenge, sizeof(l->challenge)) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_TARGET_ERROR, "no random bytes for a challenge");
    l->challenged = true;
    if (l->opts->outstanding)
        chap_outstanding_add(l->opts->outstanding, l->challenge);
    text_put_number(w, "CHAP_A", l->kind);
    text_put_number(w, "CHAP_I", l->identifier);
    text_put_binary(w, "CHAP_C", l->challenge, sizeof(l->challenge));
    /* The initiator may send these two in its answer, to authenticate us. */
    l->step = TGT_CHAP_R;
    return LOGIN_MORE;
}

/* The initiator asks us to prove who we are. */
static enum login_result prove(struct login_tgt *l, const struct login_turn *turn,
                               struct text_writer *w)
{
    uint8_t theirs[CHAP_BINARY_MAX], digest[HASH_MAX];
    uint64_t identifier;
    size_t n;

    if (!turn->chap_i || !turn->chap_c)
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER,
                              "the initiator's challenge lacks CHAP_I or CHAP_C");
    if (text_number(turn->chap_i, &identifier) < 0 || identifier > 255 ||
        text_binary(turn->chap_c, theirs, sizeof(theirs), &n) < 0)
        return login_tgt_fail(l, ISCSI_LOGIN_INITIATOR_ERROR,
                              "the initiator's CHAP_I or CHAP_C is no such value");
    if ((n == sizeof(l->challenge) && memcmp(theirs, l->challenge, n) == 0) ||
        (l->opts->outstanding && chap_outstanding_has(l->opts->outstanding, theirs, n))) {
        snprintf(l->sentence, sizeof(l->sentence), "a challenge of our own was reflected");
        return LOGIN_CLOSE;
    }
    if (!l->policy.mutual.user)
        return unauthenticated(l, "the initiator asks for mutual CHAP, and no secret of the "
                                  "target is set for it");
    text_put(w, "CHAP_N", l->policy.mutual.user);
    text_put_binary(
        w, "CHAP_R", digest,
        chap_response(l->kind, (uint8_t)identifier, &l->policy.mutual, theirs, n, digest));
    return LOGIN_MORE;
}

/* Right name, right secret, right initiator. An unknown name costs the same as a wrong secret and
 * is told the same (T-CHAP-02). */
static bool authentic(struct login_tgt *l, const struct login_turn *turn)
{
    static const char nobody[CHAP_SECRET_MIN] = "no such user";
    struct chap_credentials c = {0};
    const char *bound = NULL;
    uint8_t response[CHAP_BINARY_MAX];
    size_t n;
    bool known = l->policy.credentials(l->opts->user, l, turn->chap_n, &c, &bound);
    bool right;

    if (!known)
        c = (struct chap_credentials){"", nobody, sizeof(nobody)};
    right =
        text_binary(turn->chap_r, response, sizeof(response), &n) == 0 &&
        chap_verify(l->kind, l->identifier, &c, l->challenge, sizeof(l->challenge), response, n);
    return right && known && (!bound || strcmp(bound, l->initiator_name) == 0);
}

static enum login_result verify(struct login_tgt *l, const struct login_turn *turn,
                                struct text_writer *w)
{
    enum login_result result = LOGIN_MORE;

    if (turn->auth_method || turn->chap_a)
        return wrong_step(l);
    if (!any_chap(turn) && !l->request.transit)
        return LOGIN_MORE; /* not yet */
    if (!turn->chap_n || !turn->chap_r)
        return login_tgt_fail(l, ISCSI_LOGIN_MISSING_PARAMETER,
                              "the initiator's CHAP response lacks CHAP_N or CHAP_R");
    if (!text_printable(turn->chap_n) || strlen(turn->chap_n) > CHAP_USER_MAX ||
        !authentic(l, turn))
        return unauthenticated(l, "user, secret or the initiator name that they belong to is "
                                  "wrong");
    if (turn->chap_i || turn->chap_c)
        result = prove(l, turn, w);
    if (result != LOGIN_MORE)
        return result;
    snprintf(l->chap_name, sizeof(l->chap_name), "%s", turn->chap_n);
    l->step = TGT_AUTH_DONE;
    return LOGIN_MORE;
}

enum login_result login_tgt_security(struct login_tgt *l, const struct login_turn *turn,
                                     struct text_writer *w)
{
    switch (l->step) {
    case TGT_AUTH_METHOD:
        return auth_method(l, turn, w);
    case TGT_CHAP_A:
        return challenge(l, turn, w);
    case TGT_CHAP_R:
        return verify(l, turn, w);
    case TGT_AUTH_DONE:
        break;
    }
    return turn->auth_method || any_chap(turn) ? wrong_step(l) : LOGIN_MORE;
}
