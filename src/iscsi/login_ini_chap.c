/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The security stage as the initiator sees it (RFC 7143 12.1.3):
 *
 *     AuthMethod=CHAP              ->
 *                                  <-  AuthMethod=CHAP
 *     CHAP_A=8,7,6,5               ->
 *                                  <-  CHAP_A, CHAP_I, CHAP_C
 *     CHAP_N, CHAP_R (, _I, _C)    ->                          T=1
 *                                  <-  (CHAP_N, CHAP_R)        T=1
 */
#include <string.h>

#include "iscsi/login_int.h"

static bool any_chap(const struct login_security *s)
{
    return s->a || s->i || s->c || s->n || s->r;
}

/* ---- AuthMethod ---- */

static enum login_result without_chap(struct login_ini *l, const char *method)
{
    if (l->opts.chap.user && !l->opts.chap_optional)
        return login_ini_fail(l,
                              "the target does not ask for authentication (AuthMethod=%.20s), but "
                              "it is required here: set up CHAP there, or make it optional",
                              method);
    l->step = INI_AUTH_DONE;
    l->ready = true;
    return LOGIN_MORE;
}

static enum login_result on_method(struct login_ini *l, const struct login_security *s,
                                   struct text_writer *w)
{
    const char *method = s->auth_method;

    if (any_chap(s))
        return login_ini_fail(l, "the target sent CHAP keys before CHAP was agreed upon");
    if (!method && l->opts.chap.user)
        return login_ini_fail(l, "the target does not answer the key AuthMethod: it may not know "
                                 "authentication; make it optional, or look there");
    if (!method || strcmp(method, "None") == 0)
        return without_chap(l, "None");
    if (!l->opts.chap.user)
        return login_ini_fail(
            l,
            "the target wants authentication (AuthMethod=%.20s): give a CHAP user "
            "name and secret",
            method);
    if (strcmp(method, "Reject") == 0 || strcmp(method, "Irrelevant") == 0)
        return login_ini_fail(l,
                              "the target refuses authentication by CHAP (AuthMethod=%s): see "
                              "which method it is set to",
                              method);
    if (strcmp(method, "CHAP") != 0)
        return login_ini_fail(l, "the target chose AuthMethod=%.20s, which was not offered",
                              method);
    text_put(w, "CHAP_A", l->algorithms);
    l->step = INI_CHAP_A;
    return LOGIN_MORE;
}

/* ---- the target's challenge ---- */

/* Ours for the target, never the one that just came (9.2.1). */
static enum login_result challenge_target(struct login_ini *l, const uint8_t *theirs, size_t n,
                                          struct text_writer *w)
{
    uint8_t identifier;

    do {
        if (l->opts.random(l->opts.random_user, l->challenge, CHAP_CHALLENGE_SIZE) < 0 ||
            l->opts.random(l->opts.random_user, &identifier, 1) < 0)
            return login_ini_fail(l, "there are no random numbers for a CHAP challenge");
    } while (n == CHAP_CHALLENGE_SIZE && memcmp(l->challenge, theirs, n) == 0);
    l->identifier = identifier;
    l->challenged = true;
    chap_outstanding_add(l->opts.outstanding, l->challenge);
    text_put_number(w, "CHAP_I", identifier);
    text_put_binary(w, "CHAP_C", l->challenge, CHAP_CHALLENGE_SIZE);
    return LOGIN_MORE;
}

static enum login_result answer_challenge(struct login_ini *l, uint8_t identifier,
                                          const uint8_t *challenge, size_t n, struct text_writer *w)
{
    uint8_t digest[HASH_MAX];
    size_t length = chap_response(l->kind, identifier, &l->opts.chap, challenge, n, digest);

    text_put(w, "CHAP_N", l->opts.chap.user);
    text_put_binary(w, "CHAP_R", digest, length);
    l->step = INI_CHAP_R;
    l->ready = true;
    return l->opts.mutual.secret ? challenge_target(l, challenge, n, w) : LOGIN_MORE;
}

static enum login_result on_challenge(struct login_ini *l, const struct login_security *s,
                                      struct text_writer *w)
{
    uint8_t identifier, challenge[CHAP_BINARY_MAX];
    uint64_t algorithm;
    size_t n;

    if (!s->a || !s->i || !s->c)
        return login_ini_fail(l, "the target's CHAP challenge lacks the key %s",
                              !s->a   ? "CHAP_A"
                              : !s->i ? "CHAP_I"
                                      : "CHAP_C");
    if (s->n || s->r)
        return login_ini_fail(l, "the target answers a CHAP challenge that it has not got yet");
    /* Its choice as a list of one, so that 0x5 is understood and 5,6 is not. */
    l->kind =
        text_number(s->a, &algorithm) == 0 ? chap_pick(s->a, l->algorithms) : (enum hash_kind)0;
    if (!l->kind)
        return login_ini_fail(l, "the target chose CHAP_A=%.20s, but %s was offered", s->a,
                              l->algorithms);
    if (login_chap_identifier(s->i, &identifier) < 0)
        return login_ini_fail(l, "CHAP_I=%.20s is not a number from 0 to 255", s->i);
    if (text_binary(s->c, challenge, sizeof(challenge), &n) < 0)
        return login_ini_fail(l, "the target's CHAP_C is neither hex nor base64 of 1 to %d bytes",
                              CHAP_BINARY_MAX);
    if (chap_outstanding_has(l->opts.outstanding, challenge, n))
        return login_ini_fail(l, "the target sent a challenge of our own back to us: it tries to "
                                 "have us answer for it; do not trust what listens there");
    return answer_challenge(l, identifier, challenge, n, w);
}

/* ---- the target's response ---- */

static enum login_result verify_target(struct login_ini *l, const struct login_security *s)
{
    const struct chap_credentials *mutual = &l->opts.mutual;
    uint8_t response[CHAP_BINARY_MAX];
    size_t n;

    if (!s->n || !s->r)
        return login_ini_fail(l,
                              "the target did not prove its identity (no %s): set up its secret "
                              "there, or leave out mutual authentication",
                              s->n ? "CHAP_R" : "CHAP_N");
    if (text_binary(s->r, response, sizeof(response), &n) < 0)
        return login_ini_fail(l, "the target's CHAP_R is neither hex nor base64 of 1 to %d bytes",
                              CHAP_BINARY_MAX);
    if (chap_verify(l->kind, l->identifier, &l->opts.chap, l->challenge, CHAP_CHALLENGE_SIZE,
                    response, n))
        return login_ini_fail(l, "the target answered with our own secret: it has one secret for "
                                 "both directions, which is unsafe; give it another there");
    if (!chap_verify(l->kind, l->identifier, mutual, l->challenge, CHAP_CHALLENGE_SIZE, response,
                     n))
        return login_ini_fail(l, "the target does not know its secret, or is not the target that "
                                 "it seems: check the secret of the target at both ends");
    if (mutual->user && strcmp(mutual->user, s->n) != 0)
        return login_ini_fail(l,
                              "the target calls itself \"%.60s\" in CHAP, but \"%.60s\" is "
                              "expected: check the user name of the target",
                              text_printable(s->n) ? s->n : "?", mutual->user);
    l->target_authenticated = true;
    return LOGIN_MORE;
}

static enum login_result on_response(struct login_ini *l, const struct login_security *s)
{
    if (s->a || s->i || s->c || (!l->opts.mutual.secret && any_chap(s)))
        return login_ini_fail(l, "the target sent CHAP keys that do not belong behind CHAP_R");
    if (l->opts.mutual.secret && verify_target(l, s) != LOGIN_MORE)
        return LOGIN_FAILED;
    l->authenticated = true; /* it would have refused otherwise */
    l->step = INI_AUTH_DONE;
    return LOGIN_MORE;
}

enum login_result login_ini_security(struct login_ini *l, const struct login_security *s,
                                     struct text_writer *w)
{
    if (s->auth_method && l->step != INI_AUTH_METHOD)
        return login_ini_fail(l, "the target sent AuthMethod out of turn");
    switch (l->step) {
    case INI_AUTH_METHOD:
        return on_method(l, s, w);
    case INI_CHAP_A:
        return on_challenge(l, s, w);
    case INI_CHAP_R:
        return on_response(l, s);
    default:
        if (any_chap(s))
            return login_ini_fail(l, "the target sent CHAP keys after CHAP had ended");
        return LOGIN_MORE;
    }
}
