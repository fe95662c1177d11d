/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Login tests: one machine against a script, or both against each other. Text in scripts has '\n'
 * in the place of each NUL. Randomness is seeded.
 */
#ifndef LOGIN_RIG_H
#define LOGIN_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "iscsi/login.h"

enum { RIG_TEXT = 70000 };

#define RIG_INITIATOR "iqn.2001-04.com.example:host"
#define RIG_TARGET "iqn.2001-04.com.example:disk"
#define RIG_USER "host"
#define RIG_SECRET "a secret of the host"
#define RIG_MUTUAL_USER "disk"
#define RIG_MUTUAL_SECRET "another of the disk"

/* Skips the test in a build that has no hashes. */
void rig_need_hashes(void);

struct chap_credentials rig_credentials(const char *user, const char *secret);

/* login_ini_opts.random and login_tgt_ops.random on a struct rng. */
int rig_random(void *rng, void *bytes, size_t n);

/* "A=b\nC=d\n" to text with NULs. Returns its length. */
size_t rig_text(const char *script, char *text, size_t size);

/* The value of a key in a text; NULL: it is not there. Stays until the text changes. */
const char *rig_value(const void *text, size_t n, const char *key);

/* ---- an initiator under test ---- */

struct ini_rig {
    struct rng rng;
    struct login_ini_opts opts;
    struct login_ini *l;
    struct iscsi_login_request request; /* the last one */
    const uint8_t *text;
    size_t n;
    uint32_t stat_sn; /* of the next response */
};

/* Default options; change r->opts, then ini_rig_start(). */
void ini_rig_init(struct ini_rig *r, uint64_t seed);
void ini_rig_chap(struct ini_rig *r, bool mutual);
/* Starts (again), and takes the first request. */
void ini_rig_start(struct ini_rig *r);
void ini_rig_free(struct ini_rig *r);

/* Takes the next request. False: none is due. */
bool ini_rig_next(struct ini_rig *r);
const char *ini_rig_said(const struct ini_rig *r, const char *key);

/* The response that would be in order: stage and T as asked. */
struct iscsi_login_response ini_rig_answer(const struct ini_rig *r);
enum login_result ini_rig_respond(struct ini_rig *r, const struct iscsi_login_response *pdu,
                                  const char *script);
/* The answer in order, with T or without; takes the next request if one is due. */
enum login_result ini_rig_reply(struct ini_rig *r, bool transit, const char *script);

/* ---- a target under test ---- */

struct tgt_rig {
    struct rng rng;
    struct login_tgt_opts opts;
    struct login_policy policy;
    uint16_t lookup, check, begin; /* what the callbacks return */
    const char *bound;             /* the name that RIG_USER is bound to; NULL: any */
    const struct iscsi_params *base;
    unsigned lookups, checks, begins;
    uint16_t tsih; /* that begin gives */
    struct login_tgt *l;
    struct iscsi_login_request request; /* as it will be sent next */
    struct iscsi_login_response response;
    const uint8_t *text;
    size_t n;
};

void tgt_rig_init(struct tgt_rig *r, uint64_t seed);
void tgt_rig_chap(struct tgt_rig *r, bool mutual);
void tgt_rig_start(struct tgt_rig *r);
void tgt_rig_free(struct tgt_rig *r);

/* Sends r->request, changed as the test likes, with this text. */
enum login_result tgt_rig_send(struct tgt_rig *r, const char *script);
enum login_result tgt_rig_send_text(struct tgt_rig *r, const void *text, size_t n);
/* In a stage, with T or without. */
enum login_result tgt_rig_ask(struct tgt_rig *r, enum iscsi_stage csg, bool transit,
                              const char *script);
const char *tgt_rig_said(const struct tgt_rig *r, const char *key);

/* ---- both ---- */

/* Runs a login to its end on both sides. With cut > 0 each text is cut to pieces of that size, in a
 * C-bit series. Returns the initiator's result; *tgt is the target's. */
enum login_result rig_login(struct ini_rig *ini, struct tgt_rig *tgt, size_t cut,
                            enum login_result *tgt_result);

#endif
