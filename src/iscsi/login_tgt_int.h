/* SPDX-License-Identifier: BSD-2-Clause */
/* What login_tgt.c and login_tgt_chap.c share. */
#ifndef ISCSI_LOGIN_TGT_INT_H
#define ISCSI_LOGIN_TGT_INT_H

#include "iscsi/login_int.h"

/* The values of the security stage in one turn; NULL: the key did not come. */
struct login_turn {
    const char *auth_method, *chap_a, *chap_i, *chap_c, *chap_n, *chap_r;
};

/* Makes the response a refusal. sentence: for the log. */
enum login_result login_tgt_fail(struct login_tgt *l, uint16_t status, const char *sentence);

/* The security stage's part of a turn. */
enum login_result login_tgt_security(struct login_tgt *l, const struct login_turn *turn,
                                     struct text_writer *w);

#endif
