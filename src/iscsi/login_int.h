/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the login share. */
#ifndef ISCSI_LOGIN_INT_H
#define ISCSI_LOGIN_INT_H

#include "iscsi/login.h"

/* The security keys of one turn, pointing into its text; NULL: did not come. */
struct login_security {
    const char *auth_method;
    const char *a, *i, *c, *n, *r;
};

/* Takes the pair if its key is one of these. */
bool login_security_take(struct login_security *s, enum iscsi_key key, const char *value);

/* Copies if it fits and has no control characters; else *to is "". */
bool login_copy_text(char *to, size_t size, const char *value);

/* CHAP_I in any form of number, 0 to 255. 0 or -1. */
int login_chap_identifier(const char *value, uint8_t *identifier);

/* ---- initiator ---- */

enum login_result login_ini_fail(struct login_ini *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* What came in a turn of the security stage; writes the answer. */
enum login_result login_ini_security(struct login_ini *l, const struct login_security *s,
                                     struct text_writer *w);

/* ---- target ---- */

enum login_result login_tgt_fail(struct login_tgt *l, uint16_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The first turn: names, policy, session; resets the negotiation to what the session is. */
enum login_result login_tgt_names(struct login_tgt *l);

/* A key of the login's own that is no security key. */
enum login_result login_tgt_take_late(struct login_tgt *l, enum iscsi_key key, const char *value);

enum login_result login_tgt_security(struct login_tgt *l, const struct login_security *s);

#endif
