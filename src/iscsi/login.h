/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The login phase (RFC 7143 6.3, 9.2, 11.12, 11.13, 12) of both roles, PDU by PDU: no framing, no
 * socket, no clock, no allocation. Deadlines, and closing the connection, are the owner's.
 *
 * Memory. sizeof(struct login_ini) is about 100 KiB, sizeof(struct login_tgt) about 52 KiB; that is
 * the bound of what a peer can make a login hold. The owner allocates it for the login, takes the
 * results, calls login_*_end(), which wipes it, and frees it. Strings and secrets in the options
 * are referred to until then; the options struct itself is copied.
 *
 * Threads: one login, one thread. Logins that share a chap_outstanding share the thread.
 */
#ifndef ISCSI_LOGIN_H
#define ISCSI_LOGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iscsi/chap.h"
#include "iscsi/keys.h"
#include "iscsi/pdu.h"

enum {
    LOGIN_OUT_MAX = 32 << 10,    /* bytes of text that one side writes in a turn, all its PDUs */
    LOGIN_INI_IN_MAX = 64 << 10, /* bytes that a target may send in a turn */
    LOGIN_TGT_IN_MAX = 16 << 10, /* bytes that an initiator may, unauthenticated as it is */
    LOGIN_ROUNDS_MAX = 64,       /* exchanges; 6.2 wants at least 6 */
    LOGIN_ADDRESS_MAX = 256,     /* TargetAddress, with NUL */
    LOGIN_SENTENCE_MAX = 512,
};

/* iqn., eui. or naa., at most 223 bytes, no blanks or control characters (4.2.7). 0, or -1 and a
 * sentence. what: "target name" and the like. */
int iscsi_name_check(const char *name, const char *what, struct lp_error *err);

/* Our own name as a user spelled it: copied in lower case, as names are compared (4.2.7.1), then
 * checked. Names that a target told are used as they came. */
int iscsi_name_normalise(const char *typed, char name[ISCSI_NAME_MAX + 1], const char *what,
                         struct lp_error *err);

enum login_result {
    LOGIN_MORE,     /* initiator: the next request is due; target: send the response */
    LOGIN_DONE,     /* full feature phase; target: once the response is sent */
    LOGIN_REDIRECT, /* initiator: close, and go to the address */
    LOGIN_FAILED,   /* initiator: close; target: send the response, then close */
    LOGIN_CLOSE,    /* target: close at once, there is nothing to say */
};

/* ---- initiator ---- */

struct login_ini_opts {
    const char *initiator_name;
    const char *initiator_alias; /* NULL: none */
    const char *target_name;     /* NULL in a discovery session */
    const char *extra_keys;      /* vendor keys, "key=value" pairs with their NULs; or NULL */
    size_t extra_keys_length;
    bool discovery;
    uint8_t isid[6];
    uint16_t tsih; /* 0: a new session */
    uint16_t cid;
    uint32_t itt;                       /* of the whole login; any but ISCSI_TAG_NONE */
    uint32_t cmd_sn;                    /* of the session's next command */
    uint32_t exp_stat_sn;               /* when it takes the place of a broken connection; else 0 */
    const struct iscsi_params *session; /* of the session that the connection joins; else NULL */
    struct iscsi_wishes wishes;
    int portal_group_tag; /* expected; -1: any (I-LOG-10) */

    /* Who we are; user NULL: no authentication. */
    struct chap_credentials chap;
    /* What the target must prove to know; secret NULL: nothing. The name that it gives must be
     * this user; user NULL: any. Wants chap too. */
    struct chap_credentials mutual;
    bool chap_optional;          /* go on if the target does not ask for it; not with mutual */
    const char *chap_algorithms; /* CHAP_A list; NULL: all that the build has, strongest first. "5"
                                  * for old targets that refuse the rest (see retry_md5) */
    struct chap_outstanding *outstanding; /* of all logins of this node; NULL: this one only */

    /* n unpredictable bytes. 0 or -1. Wanted with mutual. */
    int (*random)(void *user, void *bytes, size_t n);
    void *random_user;
};

struct login_ini {
    /* ---- results ---- */
    struct iscsi_params params; /* LOGIN_DONE */
    uint16_t tsih;
    uint32_t cmd_sn;                 /* of the first command in full feature phase */
    uint32_t exp_stat_sn;            /* of the next response */
    uint32_t exp_cmd_sn, max_cmd_sn; /* the window, as the last response had it */
    int portal_group_tag;            /* -1: not told */
    char target_alias[ISCSI_VALUE_MAX + 1];
    bool authenticated, target_authenticated; /* by CHAP */
    char address[LOGIN_ADDRESS_MAX];          /* LOGIN_REDIRECT: host[:port] without a tag (13.8) */
    bool permanent;                           /* LOGIN_REDIRECT: remember it */
    uint16_t status;                          /* LOGIN_FAILED: by the target; 0: found out here */
    bool retryable; /* LOGIN_FAILED: the same may do later (class 3; I-LOG-08) */
    bool retry_md5; /* LOGIN_FAILED: it was the CHAP_A list that did not please, or the answer by
                     * another algorithm than MD5. Try once more, with chap_algorithms "5", and say
                     * so in the log */
    char sentence[LOGIN_SENTENCE_MAX]; /* LOGIN_FAILED: what is wrong and what to do */

    /* ---- private ---- */
    struct login_ini_opts opts;
    enum {
        INI_AUTH_METHOD, /* AuthMethod is out */
        INI_CHAP_A,      /* CHAP_A is out */
        INI_CHAP_R,      /* CHAP_N, CHAP_R are out */
        INI_AUTH_DONE,
    } step;
    enum iscsi_stage stage;
    bool ready;    /* the turn ends with the wish to leave the stage (T) */
    bool asked;    /* T of the request that is out */
    bool awaiting; /* a request is out */
    bool ended;
    unsigned rounds;
    enum iscsi_stage next;
    struct keys keys;
    struct text_cut cut;
    struct text_run run;
    char algorithms[CHAP_LIST_MAX];
    enum hash_kind kind;
    uint8_t identifier;
    uint8_t challenge[CHAP_CHALLENGE_SIZE];
    bool challenged; /* ours is out */
    struct chap_outstanding own;
    char out[LOGIN_OUT_MAX];
    char in[LOGIN_INI_IN_MAX];
};

/* Before anything is sent: names, ISID, secrets (too short, equal in both directions),
 * contradictions in the options. 0, or -1 and what is wrong. */
int login_ini_check(const struct login_ini_opts *opts, bool allow_short_secrets,
                    struct lp_error *err);

/* Begins. The options have been checked. */
void login_ini_start(struct login_ini *l, const struct login_ini_opts *opts);

/* The next request, if one is due: fills bhs, and *text with its data segment (at most 8192 bytes),
 * which stays until the response. False: a response is awaited, or the login has ended. */
bool login_ini_request(struct login_ini *l, uint8_t bhs[ISCSI_BHS_SIZE], const uint8_t **text,
                       size_t *n);

/* A PDU from the target with its data segment. Any but a Login Response ends the login. */
enum login_result login_ini_response(struct login_ini *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                     const void *data, size_t n);

/* The connection ended during the login: fills sentence, retryable and retry_md5 as for
 * LOGIN_FAILED. */
void login_ini_closed(struct login_ini *l);

/* Wipes. The results are gone too. */
void login_ini_end(struct login_ini *l);

/* What a login status means and what to do about it, one sentence. sent: what was used. */
const char *login_status_sentence(uint16_t status, bool credentials, bool mutual);

/* ---- target ---- */

struct login_tgt;

/* What the owner says about an initiator at a target. Strings and secrets stay until the login
 * ends. */
struct login_policy {
    uint16_t portal_group_tag;
    const char *target_alias; /* NULL: none */
    bool chap;                /* it must authenticate itself */
    /* Ours, for those who ask who we are; user NULL: none. */
    struct chap_credentials mutual;
    const char *address; /* with MOVED_*: "host:port", without tag */
};

struct login_tgt_ops {
    /* The names are known (l->initiator_name, l->target_name, which is "" in an unnamed discovery
     * session, l->discovery): may this initiator use it? ISCSI_LOGIN_OK and the policy, or the
     * status to refuse with: NOT_FOUND, REMOVED, AUTHORIZATION, SESSION_TYPE, UNAVAILABLE ... With
     * MOVED_TEMPORARILY and MOVED_PERMANENTLY policy->address says where it is. *policy is zeroed
     * before. */
    uint16_t (*lookup)(void *user, struct login_tgt *l, struct login_policy *policy);
    /* The secret of a CHAP_N, and the InitiatorName that it is bound to in *bound (NULL: any).
     * False: unknown. Wanted where a policy asks for CHAP. */
    bool (*secret)(void *user, struct login_tgt *l, const char *chap_name,
                   struct chap_credentials *c, const char **bound);
    /* n unpredictable bytes. 0 or -1. */
    int (*random)(void *user, void *bytes, size_t n);
};

/* What the owner of the sessions says. */
struct login_tgt_session_ops {
    /* After lookup, in the first turn, before authentication: does the table of 6.3.1 allow this
     * ISID, TSIH and CID? Changes nothing. ISCSI_LOGIN_OK, NO_SESSION, TOO_MANY_CONNECTIONS,
     * CANNOT_INCLUDE, OUT_OF_RESOURCES, UNAVAILABLE ... For a connection that joins a session (TSIH
     * not 0) *base gets that session's parameters, and l->exp_cmd_sn and l->max_cmd_sn are set. */
    uint16_t (*check)(void *user, struct login_tgt *l, const struct iscsi_params **base);
    /* The last response is about to be written; l->params and l->chap_name are settled. Begins the
     * session, adds the connection, or reinstates (6.3.4, 6.3.5) and gives the session's TSIH, not
     * 0. Or refuses after all, e.g. a second connection with another CHAP name (AUTHENTICATION). */
    uint16_t (*begin)(void *user, struct login_tgt *l, uint16_t *tsih);
};

struct login_tgt_opts {
    const struct login_tgt_ops *ops;
    void *user; /* for ops */
    const struct login_tgt_session_ops *session_ops;
    void *session_user;
    void *context; /* the owner's, e.g. its connection; for ops to look at */
    struct iscsi_wishes wishes;
    uint32_t stat_sn;                     /* of the first response */
    uint32_t window;                      /* commands that may come after the login, at least 1 */
    struct chap_outstanding *outstanding; /* of all logins of this node; NULL: this one only */
};

struct login_tgt {
    /* ---- for the callbacks, and results ---- */
    uint8_t isid[6]; /* these from the first request on */
    uint16_t tsih;   /* as sent; LOGIN_DONE: the session's */
    uint16_t cid;
    uint32_t cmd_sn;                 /* of the first command after the login */
    uint32_t exp_cmd_sn, max_cmd_sn; /* of the responses */
    uint32_t exp_stat_sn;            /* as the first request had it; 11.12.9 */
    bool discovery;                  /* these from the first turn on */
    char initiator_name[ISCSI_NAME_MAX + 1];
    char initiator_alias[ISCSI_VALUE_MAX + 1];
    char target_name[ISCSI_NAME_MAX + 1]; /* "" in an unnamed discovery session */
    struct login_policy policy;
    char chap_name[CHAP_USER_MAX + 1]; /* "" without authentication */
    struct iscsi_params params;        /* LOGIN_DONE */
    uint32_t stat_sn;                  /* of the next response */
    uint16_t status;                   /* LOGIN_FAILED: what the response says */
    char sentence[LOGIN_SENTENCE_MAX]; /* LOGIN_FAILED, LOGIN_CLOSE: for the log */

    /* ---- private ---- */
    struct login_tgt_opts opts;
    enum {
        TGT_AUTH_METHOD, /* AuthMethod is expected */
        TGT_CHAP_A,
        TGT_CHAP_R,
        TGT_AUTH_DONE,
    } step;
    enum iscsi_stage stage;
    bool begun;    /* the first request came */
    bool named;    /* the first turn is complete */
    bool run_open; /* the last request had the C bit */
    bool ended;
    unsigned rounds;
    struct iscsi_login_request first, request;
    struct keys keys;
    struct text_cut cut;
    struct text_run run;
    struct text_writer writer;
    enum hash_kind kind;
    uint8_t identifier;
    uint8_t challenge[CHAP_CHALLENGE_SIZE];
    bool challenged;
    struct chap_outstanding own;
    uint8_t bhs[ISCSI_BHS_SIZE];
    const char *piece;
    size_t piece_length;
    char out[LOGIN_OUT_MAX];
    char in[LOGIN_TGT_IN_MAX];
};

void login_tgt_start(struct login_tgt *l, const struct login_tgt_opts *opts);

/* A PDU from the initiator with its data segment. Unless CLOSE, login_tgt_response() has what to
 * send. A first PDU that is no Login Request closes (T-LOG-01); a later one is refused with 020b
 * (T-LOG-02). */
enum login_result login_tgt_request(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                    const void *data, size_t n);

/* Instead of login_tgt_request(), refuses the Login Request with a status of the owner's: 0302 when
 * resources are short, 0301 when stopping ... (T-LOG-21). */
enum login_result login_tgt_refuse(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                   uint16_t status, const char *sentence);

/* The response: its BHS and data segment, which stay until the next call with l. */
void login_tgt_response(const struct login_tgt *l, const uint8_t **bhs, const uint8_t **text,
                        size_t *n);

/* Wipes. The results are gone too. */
void login_tgt_end(struct login_tgt *l);

#endif
