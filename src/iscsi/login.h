/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The login phase (RFC 7143 6.3, 9.2, 11.12, 11.13, 12) of both roles, PDU by PDU: no framing, no
 * socket, no clock, no allocation. Deadlines are the owner's.
 *
 * Memory: either struct is about 100 KiB and wanted during the login only. login_*_end() wipes it.
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
    LOGIN_TEXT_MAX = 32 << 10, /* bytes of one side's turn, over all its PDUs */
    LOGIN_ROUNDS_MAX = 40,     /* exchanges */
    LOGIN_ADDRESS_MAX = 256,   /* TargetAddress, with NUL */
};

/* iqn., eui. or naa., at most 223 bytes, no blanks or control characters (4.2.7; user's spelling is
 * for the caller to lower-case). -1: *err has the sentence. what: "target name" and the like. */
int iscsi_name_check(const char *name, const char *what, struct lp_error *err);

enum login_result {
    LOGIN_MORE,     /* initiator: the next request is due; target: the response is due */
    LOGIN_DONE,     /* full feature phase (target: once the response is sent) */
    LOGIN_REDIRECT, /* initiator: go elsewhere */
    LOGIN_FAILED,   /* initiator: close the connection; target: send the response, then close */
    LOGIN_CLOSE,    /* target: close at once, there is nothing to say */
};

/* The text of one turn, cut to PDUs with the C bit. */
struct login_text {
    char bytes[LOGIN_TEXT_MAX];
    size_t length;
    size_t sent;
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
    uint32_t cmd_sn;                    /* of the session's next command */
    const struct iscsi_params *session; /* of the session that the connection joins; else NULL */
    struct iscsi_wishes wishes;
    int portal_group_tag; /* expected; -1: any (I-LOG-10) */

    /* Who we are; user NULL: no authentication. */
    struct chap_credentials chap;
    /* Who the target must prove to be; user NULL: it need not. Its user name is not compared when
     * "". */
    struct chap_credentials mutual;
    bool chap_optional;          /* go on if the target does not ask for it; never with mutual */
    const char *chap_algorithms; /* CHAP_A list, NULL: all, strongest first */
    struct chap_outstanding *outstanding; /* of all logins of this node; NULL: this one only */

    /* n unpredictable bytes. 0 or -1. */
    int (*random)(void *user, void *bytes, size_t n);
    void *random_user;
};

/* All private but the results. Options are referred to and stay until login_ini_end(). */
struct login_ini {
    const struct login_ini_opts *opts;
    enum { INI_AUTH_METHOD, INI_CHAP_A, INI_CHAP_R, INI_AUTH_DONE } step;
    uint8_t csg;
    bool transit;  /* we ask to leave the stage */
    bool awaiting; /* a request is out */
    bool first_sent, more_in;
    bool mutual_sent, mutual_done;
    unsigned rounds;
    uint32_t itt;
    struct keys keys;
    struct login_text out;
    char in[LOGIN_TEXT_MAX];
    size_t in_length;
    char list[CHAP_LIST_MAX];
    enum hash_kind kind;
    uint8_t identifier;
    uint8_t challenge[CHAP_CHALLENGE_SIZE];
    uint32_t auth_keys; /* keys of the security stage seen in this login */

    /* Results. */
    struct iscsi_params params; /* LOGIN_DONE */
    uint16_t tsih;
    uint32_t exp_stat_sn;
    uint32_t exp_cmd_sn, max_cmd_sn;
    int portal_group_tag; /* -1: not told */
    char target_alias[ISCSI_VALUE_MAX + 1];
    char address[LOGIN_ADDRESS_MAX]; /* LOGIN_REDIRECT: TargetAddress as sent */
    bool permanent;
    bool authenticated; /* by CHAP */
    uint16_t status;    /* LOGIN_FAILED: from the target, or 0: found out here */
    bool retryable;     /* the same attempt may do better later (I-LOG-08) */
    bool retry_md5;     /* the CHAP_A list was what it refused: try once with "5" alone (A1) */
    char sentence[384]; /* LOGIN_FAILED: what is wrong and what to do */
};

/* Names, secrets and ISID. 0, or -1 and what is wrong. */
int login_ini_check(const struct login_ini_opts *opts, bool allow_short_secrets,
                    struct lp_error *err);

void login_ini_start(struct login_ini *l, const struct login_ini_opts *opts);

/* The next request, if one is due: fills bhs, and text with its data segment, which stays until the
 * response. False: a response is awaited. */
bool login_ini_request(struct login_ini *l, uint8_t bhs[ISCSI_BHS_SIZE], const void **text,
                       size_t *length);

/* A Login Response with its data segment. Any other PDU ends the login: say so with
 * login_ini_unexpected(). */
enum login_result login_ini_response(struct login_ini *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                     const void *data, size_t n);
enum login_result login_ini_unexpected(struct login_ini *l, uint8_t opcode);

/* The connection ended during the login: fills sentence, retryable and retry_md5. */
void login_ini_closed(struct login_ini *l);

void login_ini_end(struct login_ini *l);

/* The meaning of a login status and what to do about it, one sentence. credentials: we sent some.
 */
const char *login_status_sentence(uint16_t status, bool credentials, bool mutual);

/* ---- target ---- */

struct login_tgt;

/* What the owner says about a login: whether this initiator may use this target, and how it proves
 * who it is. */
struct login_policy {
    uint16_t portal_group_tag;
    bool chap; /* must authenticate */
    /* Secrets by CHAP_N: false for an unknown one. initiator_name: the name that it is bound to,
     * or NULL. */
    bool (*credentials)(void *user, struct login_tgt *l, const char *chap_name,
                        struct chap_credentials *c, const char **initiator_name);
    struct chap_credentials mutual; /* ours, for those who ask; user NULL: none */
    const char *address;            /* with MOVED_*: TargetAddress, without tag; stays */
};

struct login_tgt_ops {
    /* Returns ISCSI_LOGIN_OK and the policy, or why not: NOT_FOUND, REMOVED, AUTHORIZATION,
     * UNAVAILABLE, SESSION_TYPE, MOVED_TEMPORARILY, MOVED_PERMANENTLY... target_name is "" in a
     * discovery session. */
    uint16_t (*lookup)(void *user, struct login_tgt *l, struct login_policy *policy);
    /* n unpredictable bytes. 0 or -1. */
    int (*random)(void *user, void *bytes, size_t n);
};

struct login_tgt_opts {
    const struct login_tgt_ops *ops;
    void *user;    /* for ops */
    void *context; /* the owner's, e.g. its connection */
    struct iscsi_wishes wishes;
    uint32_t stat_sn; /* of the first response */
    uint32_t window;  /* commands that the initiator may send after the login, from 1 */
    struct chap_outstanding *outstanding; /* of all logins of this node; NULL: this one only */

    /* ISID, TSIH and CID are known and names checked: is this a session that may be (6.3.1)?
     * ISCSI_LOGIN_OK, NO_SESSION, TOO_MANY_CONNECTIONS, CANNOT_INCLUDE, OUT_OF_RESOURCES... For a
     * connection that joins a session *base gets its parameters. */
    uint16_t (*check)(void *session_user, struct login_tgt *l, const struct iscsi_params **base);
    /* The last response is about to go out: begin the session (or add or reinstate). Gives its
     * TSIH; params holds what was negotiated. */
    uint16_t (*begin)(void *session_user, struct login_tgt *l, uint16_t *tsih);
    void *session_user;
};

struct login_tgt {
    const struct login_tgt_opts *opts;
    enum { TGT_AUTH_METHOD, TGT_CHAP_A, TGT_CHAP_R, TGT_AUTH_DONE } step;
    uint8_t csg;
    bool begun, named, more_in, offered;
    bool told_tag;
    uint32_t itt;
    uint32_t stat_sn;
    unsigned rounds;
    struct iscsi_login_request request; /* the one being answered */
    struct keys keys;
    struct login_policy policy;
    uint32_t seen; /* keys outside of keys.h, seen in this login */
    struct login_text out;
    char in[LOGIN_TEXT_MAX];
    size_t in_length;
    enum hash_kind kind;
    uint8_t identifier;
    uint8_t challenge[CHAP_CHALLENGE_SIZE];
    bool challenged;
    uint8_t response_bhs[ISCSI_BHS_SIZE];
    size_t piece_at, piece_length; /* the response's part of out */

    /* Known from the first request on; for the callbacks and after the login. */
    uint8_t isid[6];
    uint16_t tsih;
    uint16_t cid;
    uint32_t exp_cmd_sn, max_cmd_sn; /* told in the responses; check() and begin() may change them
                                      * for a connection that joins a session */
    bool discovery;
    char initiator_name[ISCSI_NAME_MAX + 1];
    char initiator_alias[ISCSI_VALUE_MAX + 1];
    char target_name[ISCSI_NAME_MAX + 1]; /* "" in an unnamed discovery session */
    char chap_name[CHAP_USER_MAX + 1];    /* "" without authentication */
    struct iscsi_params params;           /* LOGIN_DONE */
    uint16_t status;
    char sentence[256]; /* LOGIN_FAILED, LOGIN_CLOSE: for the log */
};

void login_tgt_start(struct login_tgt *l, const struct login_tgt_opts *opts);

/* A Login Request with its data segment. Unless CLOSE, login_tgt_response() has what to send. */
enum login_result login_tgt_request(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE],
                                    const void *data, size_t n);

/* Another PDU came during the login (T-LOG-01, T-LOG-02). Likewise. */
enum login_result login_tgt_unexpected(struct login_tgt *l, const uint8_t bhs[ISCSI_BHS_SIZE]);

/* Refuses from outside: 0301 when stopping, 0302 when resources are short, ... after the first
 * request came. Likewise. */
enum login_result login_tgt_refuse(struct login_tgt *l, uint16_t status);

/* The response: its BHS and data segment, which stay until the next call with l. */
void login_tgt_response(const struct login_tgt *l, const uint8_t **bhs, const void **text,
                        size_t *length);

void login_tgt_end(struct login_tgt *l);

#endif
