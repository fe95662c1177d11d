/* SPDX-License-Identifier: BSD-2-Clause */
#include "iscsi/chap.h"

#include <stdio.h>
#include <string.h>

#include "iscsi/text.h"

int chap_credentials_check(const struct chap_credentials *c, const struct chap_credentials *other,
                           bool allow_short, const char *what, struct lp_error *err)
{
    if (c->user &&
        (c->user[0] == '\0' || strlen(c->user) > CHAP_USER_MAX || !text_printable(c->user)))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the user name for the CHAP %s must have 1 to %d characters, and no "
                            "control characters",
                            what, CHAP_USER_MAX);
    if (!c->secret || c->secret_length == 0 || c->secret_length > CHAP_SECRET_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the CHAP %s must have 1 to %d bytes", what,
                            CHAP_SECRET_MAX);
    if (c->secret_length < CHAP_SECRET_MIN && !allow_short)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the CHAP %s has only %zu bytes, too few to be safe; use at least %d, "
                            "or allow short secrets",
                            what, c->secret_length, CHAP_SECRET_MIN);
    if (other && other->secret_length == c->secret_length &&
        bytes_equal_secret(other->secret, c->secret, c->secret_length))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the CHAP secrets of both directions are the same, which lets an "
                            "attacker reflect them; choose another for one direction");
    return 0;
}

static enum hash_kind kind_of(const char *item)
{
    uint64_t n;

    return text_number(item, &n) == 0 && n < 256 && hash_size((enum hash_kind)n) > 0
               ? (enum hash_kind)n
               : (enum hash_kind)0;
}

static void list_add(char list[CHAP_LIST_MAX], enum hash_kind kind)
{
    size_t length = strlen(list);

    snprintf(list + length, CHAP_LIST_MAX - length, "%s%d", length ? "," : "", (int)kind);
}

void chap_list(const char *wanted, char list[CHAP_LIST_MAX])
{
    bool listed[HASH_SHA3_256 + 1] = {false};
    enum hash_kind kind;
    char item[8];

    if (!wanted)
        wanted = "8,7,6,5";
    list[0] = '\0';
    while (text_list_next(&wanted, item, sizeof(item)))
        if ((kind = kind_of(item)) && !listed[kind]) {
            listed[kind] = true;
            list_add(list, kind);
        }
    if (!listed[HASH_MD5] && hash_size(HASH_MD5) > 0)
        list_add(list, HASH_MD5);
}

int chap_secret_generate(int (*random)(void *user, void *bytes, size_t n), void *user,
                         char secret[33])
{
    uint8_t bytes[16];
    int result = random(user, bytes, sizeof(bytes));

    secret[0] = '\0';
    for (size_t i = 0; result == 0 && i < sizeof(bytes); i++)
        snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    bytes_wipe(bytes, sizeof(bytes));
    return result;
}

enum hash_kind chap_pick(const char *theirs, const char *ours)
{
    char their[8], our[8];

    while (text_list_next(&theirs, their, sizeof(their))) {
        const char *list = ours;

        while (kind_of(their) && text_list_next(&list, our, sizeof(our)))
            if (kind_of(our) == kind_of(their))
                return kind_of(our);
    }
    return (enum hash_kind)0;
}

size_t chap_response(enum hash_kind kind, uint8_t identifier, const struct chap_credentials *c,
                     const uint8_t *challenge, size_t challenge_length, uint8_t *digest)
{
    const struct hash_piece pieces[] = {
        {&identifier, 1},
        {c->secret, c->secret_length},
        {challenge, challenge_length},
    };

    hash_pieces(kind, pieces, 3, digest);
    return hash_size(kind);
}

bool chap_verify(enum hash_kind kind, uint8_t identifier, const struct chap_credentials *c,
                 const uint8_t *challenge, size_t challenge_length, const uint8_t *response,
                 size_t response_length)
{
    uint8_t digest[HASH_MAX];
    size_t n = chap_response(kind, identifier, c, challenge, challenge_length, digest);

    return n == response_length && bytes_equal_secret(digest, response, n);
}

void chap_outstanding_add(struct chap_outstanding *o, const uint8_t *challenge)
{
    for (unsigned i = 0; i < CHAP_OUTSTANDING_MAX && o->used[o->next]; i++)
        o->next = (o->next + 1) % CHAP_OUTSTANDING_MAX;
    memcpy(o->challenge[o->next], challenge, CHAP_CHALLENGE_SIZE);
    o->used[o->next] = true;
    o->next = (o->next + 1) % CHAP_OUTSTANDING_MAX;
}

void chap_outstanding_remove(struct chap_outstanding *o, const uint8_t *challenge)
{
    for (unsigned i = 0; i < CHAP_OUTSTANDING_MAX; i++)
        if (o->used[i] && memcmp(o->challenge[i], challenge, CHAP_CHALLENGE_SIZE) == 0)
            o->used[i] = false;
}

bool chap_outstanding_has(const struct chap_outstanding *o, const uint8_t *challenge, size_t n)
{
    if (n != CHAP_CHALLENGE_SIZE)
        return false;
    for (unsigned i = 0; i < CHAP_OUTSTANDING_MAX; i++)
        if (o->used[i] && memcmp(o->challenge[i], challenge, n) == 0)
            return true;
    return false;
}
