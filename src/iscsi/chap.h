/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CHAP (RFC 7143 12.1.3, RFC 1994): algorithms, responses, secrets, and the rules against
 * reflected challenges (9.2.1). The exchange itself is in login_ini.c and login_tgt.c.
 */
#ifndef ISCSI_CHAP_H
#define ISCSI_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lunpath/error.h>

#include "base/hash.h"

enum {
    CHAP_BINARY_MAX = 1024,   /* longest CHAP_C or CHAP_R, 12.1.3 */
    CHAP_CHALLENGE_SIZE = 32, /* of our own challenges */
    CHAP_SECRET_MIN = 12,     /* 96 bits, 9.2.1 */
    CHAP_SECRET_MAX = 255,
    CHAP_USER_MAX = 255,
    CHAP_LIST_MAX = 16,
};

/* Somebody's name and secret. The bytes are the owner's, who wipes them. */
struct chap_credentials {
    const char *user;
    const void *secret;
    size_t secret_length;
};

/* user NULL: whoever it is; else 1 to CHAP_USER_MAX printable bytes. Secret empty, too long, equal
 * to the other direction's, or under 96 bits unless allow_short: -1 and a sentence. what: "secret
 * of the initiator" and the like. other may be NULL. */
int chap_credentials_check(const struct chap_credentials *c, const struct chap_credentials *other,
                           bool allow_short, const char *what, struct lp_error *err);

/* A new secret: 32 hex digits, which are 128 random bits (9.2.1). */
int chap_secret_generate(int (*random)(void *user, void *bytes, size_t n), void *user,
                         char secret[33]);

/* The algorithms of `wanted` (a CHAP_A list; NULL: "8,7,6,5") that this build has, as a list. MD5
 * is always in it (12.1.3), last if it was not wanted. Empty: the build has none, CHAP cannot be
 * done.
 */
void chap_list(const char *wanted, char list[CHAP_LIST_MAX]);

/* The first algorithm of the peer's list that is in ours; 0: none. */
enum hash_kind chap_pick(const char *theirs, const char *ours);

/* hash(identifier, secret, challenge) into digest (HASH_MAX); returns its length. */
size_t chap_response(enum hash_kind kind, uint8_t identifier, const struct chap_credentials *c,
                     const uint8_t *challenge, size_t challenge_length, uint8_t *digest);

/* Is the response right? In constant time. */
bool chap_verify(enum hash_kind kind, uint8_t identifier, const struct chap_credentials *c,
                 const uint8_t *challenge, size_t challenge_length, const uint8_t *response,
                 size_t response_length);

/* ---- challenges that await a response ---- */

enum { CHAP_OUTSTANDING_MAX = 64 };

/* Own challenges of all logins that are going on in one node, so that none of them is answered
 * by ourselves (9.2.1). Beyond its size the oldest is forgotten. Zeroed to begin with. */
struct chap_outstanding {
    uint8_t challenge[CHAP_OUTSTANDING_MAX][CHAP_CHALLENGE_SIZE];
    bool used[CHAP_OUTSTANDING_MAX];
    unsigned next;
};

void chap_outstanding_add(struct chap_outstanding *o, const uint8_t *challenge);
void chap_outstanding_remove(struct chap_outstanding *o, const uint8_t *challenge);
bool chap_outstanding_has(const struct chap_outstanding *o, const uint8_t *challenge, size_t n);

#endif
