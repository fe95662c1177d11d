/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Negotiation (RFC 7143 6.2, 12 and 13, RFC 7144 7.1.1), for both roles: a table says what each key
 * is, and one engine admits, offers, answers and verifies by it. The operational keys end as typed
 * fields of struct iscsi_params. Names, CHAP and SendTargets are only admitted here (sender, stage,
 * once); what they mean is for the login and text machines.
 */
#ifndef ISCSI_KEYS_H
#define ISCSI_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "iscsi/params.h"
#include "iscsi/text.h"

/* All keys of RFC 7143 and 7144, in the order of the table. */
enum iscsi_key {
    KEY_AUTH_METHOD,
    KEY_CHAP_A,
    KEY_CHAP_I,
    KEY_CHAP_C,
    KEY_CHAP_N,
    KEY_CHAP_R,
    KEY_HEADER_DIGEST,
    KEY_DATA_DIGEST,
    KEY_MAX_CONNECTIONS,
    KEY_SEND_TARGETS,
    KEY_TARGET_NAME,
    KEY_INITIATOR_NAME,
    KEY_TARGET_ALIAS,
    KEY_INITIATOR_ALIAS,
    KEY_TARGET_ADDRESS,
    KEY_TARGET_PORTAL_GROUP_TAG,
    KEY_INITIAL_R2T,
    KEY_IMMEDIATE_DATA,
    KEY_MRDSL,
    KEY_MAX_BURST_LENGTH,
    KEY_FIRST_BURST_LENGTH,
    KEY_TIME2WAIT,
    KEY_TIME2RETAIN,
    KEY_MAX_OUTSTANDING_R2T,
    KEY_DATA_PDU_IN_ORDER,
    KEY_DATA_SEQUENCE_IN_ORDER,
    KEY_ERROR_RECOVERY_LEVEL,
    KEY_SESSION_TYPE,
    KEY_TASK_REPORTING,
    KEY_PROTOCOL_LEVEL,
    KEY_NODE_ARCHITECTURE,
    KEY_OF_MARKER,
    KEY_IF_MARKER,
    KEY_OF_MARK_INT,
    KEY_IF_MARK_INT,
    KEY_COUNT,
    KEY_UNKNOWN = KEY_COUNT,
};

enum iscsi_digest_wish {
    ISCSI_DIGEST_NONE,        /* "None" */
    ISCSI_DIGEST_PREFER_NONE, /* "None,CRC32C" */
    ISCSI_DIGEST_PREFER_CRC,  /* "CRC32C,None" */
    ISCSI_DIGEST_REQUIRE,     /* "CRC32C" */
};

/* What a side would like. In params the numbers and booleans are what is offered, or the most that
 * is agreed to; mrdsl_in is declared; protocol_level and task_reporting are the highest wanted.
 * The two digests, mrdsl_out and discovery in params do not count. */
struct iscsi_wishes {
    struct iscsi_params params;
    enum iscsi_digest_wish header_digest;
    enum iscsi_digest_wish data_digest;
    bool plain; /* initiator: offer no key that is newer than RFC 3720 (some old targets give up
                 * on keys that they do not know) */
};

/* The values that hold without negotiation (13). */
void iscsi_params_default(struct iscsi_params *params);

/* What lunpath likes: long segments and bursts, immediate and unsolicited data, CRC32C if the other
 * side wants it, level 0 recovery. */
void iscsi_wishes_default(struct iscsi_wishes *wishes);

/* What went wrong: the key, a login status (enum iscsi_login_status) for a target to answer with,
 * and a sentence without a full stop. In full feature phase the answer is a Reject with reason
 * Protocol Error (6.4). */
struct keys_error {
    char key[ISCSI_KEY_MAX + 1];
    uint16_t status;
    char sentence[256];
};

/* Returns -1. */
int keys_fail(struct keys_error *err, uint16_t status, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* One negotiation: a login, or a text exchange in full feature phase. */
struct keys {
    bool initiator;
    bool discovery;         /* a target sets it when SessionType is known, before other keys */
    bool leading;           /* of the session: LO keys may come */
    enum iscsi_stage stage; /* the machine moves it on; FULL_FEATURE in a text exchange */
    struct iscsi_wishes wishes;
    struct iscsi_params result; /* as settled so far; in force once keys_finish() returned 0 */
    uint64_t offered;           /* bits by enum iscsi_key: sent by us first */
    uint64_t received;          /* by the peer, offer or answer */
    uint64_t postponed;         /* offers of the peer that are answered at the end of the turn */
    uint32_t postponed_value[2];
};

/* Begins a login's negotiation. A connection that joins a session starts from its session's
 * parameters in *base; NULL: from the defaults. Wishes that contradict each other are brought in
 * line (first burst within the burst, one R2T with recovery). */
void keys_begin(struct keys *k, bool initiator, bool discovery, const struct iscsi_wishes *wishes,
                const struct iscsi_params *base);

/* Begins a text exchange in full feature phase on a connection with these parameters. An initiator
 * declares mrdsl_in with keys_offer(); 0: it declares nothing. When the exchange has ended well
 * (and not before; I-TXT-02, T-TXT-03) and keys_finish() is 0, *current becomes k->result. */
void keys_begin_text(struct keys *k, bool initiator, const struct iscsi_params *current,
                     uint32_t mrdsl_in);

/* A pair from the peer: its answer to our offer, or its offer, which is answered into w, now or
 * with keys_offer(). Unknown keys are answered NotUnderstood. 0: dealt with. 1: a key of the
 * caller's, *key says which; it may come from this peer, in this stage, and has not come before.
 * -1: the negotiation must end. */
int keys_receive(struct keys *k, const struct text_pair *pair, enum iscsi_key *key,
                 struct text_writer *w, struct keys_error *err);

/* At the end of a turn, in the operational stage or a text exchange: the answers that depend on
 * other keys of the peer's turn, and our own offers and declarations that are not out yet. A target
 * offers only what it cannot do without (a required digest). */
void keys_offer(struct keys *k, struct text_writer *w);

/* Something was offered that wants an answer (a target may not end the stage then; T-LOG-16). */
bool keys_unanswered(const struct keys *k);

/* The negotiation ends: what was left unanswered, and cross-checks (13.14, 13.17). 0, or -1. */
int keys_finish(struct keys *k, struct keys_error *err);

const char *keys_name(enum iscsi_key key);
enum iscsi_key keys_find(const char *name);

/* One row of the documentation's table: name, value, default, result, use, scope, senders, notes,
 * separated by " | ". index from 0; false: no more. */
bool keys_describe(unsigned index, char *line, size_t size);

#endif
