/* SPDX-License-Identifier: BSD-2-Clause */
/* What login_ini.c and login_tgt.c share. */
#ifndef ISCSI_LOGIN_INT_H
#define ISCSI_LOGIN_INT_H

#include "iscsi/login.h"

/* A turn's text is written anew. */
static inline void login_text_begin(struct login_text *t, struct text_writer *w)
{
    text_writer_init(w, t->bytes, sizeof(t->bytes));
    t->length = t->sent = 0;
}

static inline void login_text_end(struct login_text *t, const struct text_writer *w)
{
    t->length = w->length;
}

/* What the next PDU carries of it: at most 8192 bytes (6.3). */
static inline size_t login_text_piece(const struct login_text *t, const void **piece)
{
    size_t n = t->length - t->sent;

    *piece = t->bytes + t->sent;
    return n < ISCSI_LOGIN_MRDSL ? n : ISCSI_LOGIN_MRDSL;
}

#endif
