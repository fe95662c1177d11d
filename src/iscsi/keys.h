/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Negotiation of the operational keys (RFC 7143 6.2 and 13, RFC 7144 7.1.1), for both roles: a
 * table says what each key is, and one engine offers, answers and verifies by it. Names, CHAP,
 * SendTargets and the like are no concern of it: see login.h.
 */
#ifndef ISCSI_KEYS_H
#define ISCSI_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "iscsi/params.h"
#include "iscsi/text.h"

enum iscsi_digest_wish {
    ISCSI_DIGEST_NONE,        /* "None" */
    ISCSI_DIGEST_PREFER_NONE, /* "None,CRC32C" */
    ISCSI_DIGEST_PREFER_CRC,  /* "CRC32C,None" */
    ISCSI_DIGEST_REQUIRE,     /* "CRC32C" */
};

/* What a side would like. In params the numbers and booleans are what is offered, or the most that
 * is agreed to; mrdsl_in is declared; protocol_level and task_reporting are the highest wanted.
 * The two digests and mrdsl_out in params do not count. */
struct iscsi_wishes {
    struct iscsi_params params;
    enum iscsi_digest_wish header_digest;
    enum iscsi_digest_wish data_digest;
};

/* The values that hold without negotiation (13). */
void iscsi_params_default(struct iscsi_params *params);

/* What lunpath likes: long segments and bursts, immediate and unsolicited data, CRC32C if the other
 * side wants it, level 0 recovery. */
void iscsi_wishes_default(struct iscsi_wishes *wishes);

/* What went wrong: a login status (enum iscsi_login_status) and a sentence without a full stop. */
struct keys_error {
    uint16_t status;
    char sentence[256];
};

int keys_fail(struct keys_error *err, uint16_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))); /* returns -1 */

struct keys {
    bool initiator;
    bool discovery;
    bool leading; /* of the session: LO keys may come */
    bool ffp;     /* a text exchange in full feature phase: only keys that may change there */
    struct iscsi_wishes wishes;
    struct iscsi_params result; /* as settled so far; in force after keys_finish() */
    uint32_t offered;           /* bits by row of the table */
    uint32_t received;
};

/* Begins a login's negotiation. A connection that joins a session starts from its session's
 * parameters in *base; NULL: from the defaults. */
void keys_begin(struct keys *k, bool initiator, bool discovery, const struct iscsi_wishes *wishes,
                const struct iscsi_params *base);

/* Begins a text exchange in full feature phase on a connection with these parameters. */
void keys_begin_text(struct keys *k, bool initiator, const struct iscsi_params *current);

/* Is it a key of the table? */
bool keys_standard(const char *name);

/* Writes our offers and declarations that have not been written yet. A target declares only. */
void keys_offer(struct keys *k, struct text_writer *w);

/* Takes a pair from the peer: its answer to our offer, or its offer, which is answered into w.
 * Keys that nobody knows are answered NotUnderstood. 0, or -1 and why the login must end. */
int keys_receive(struct keys *k, const struct text_pair *pair, struct text_writer *w,
                 struct keys_error *err);

/* The stage or exchange has ended: what was left unanswered and cross-checks (13.14, 13.19). 0, or
 * -1. k->result is what holds from now on. */
int keys_finish(struct keys *k, struct keys_error *err);

/* One line a key for the documentation: name, default, result, when. index from 0; false: no more.
 */
bool keys_describe(unsigned index, char *line, size_t size);

#endif
