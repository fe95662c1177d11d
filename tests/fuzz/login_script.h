/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzzer's input as a script of one side of a login. Each step: a byte of flags, one of stages,
 * two of length, then text in which byte 1 stands for the right CHAP_R: an answer that only those
 * who know the secret can give. With FLAG_RAW 48 bytes of header come before the text.
 */
#ifndef FUZZ_LOGIN_SCRIPT_H
#define FUZZ_LOGIN_SCRIPT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "iscsi/login.h"

enum {
    FLAG_TRANSIT = 1,
    FLAG_MORE = 2,
    FLAG_RAW = 4,
    FLAG_STATUS = 8,
    FLAG_HANDLE = 16,
    STEP_HEAD = 4,
    STEP_TEXT = 20000,
};

static const char initiator_name[] = "iqn.2001-04.com.example:host";
static const char target_name[] = "iqn.2001-04.com.example:disk";
static const char host_secret[] = "a secret of the host";
static const char disk_secret[] = "another of the disk";

struct script {
    const uint8_t *at, *end;
};

struct step {
    uint8_t flags, stages;
    const uint8_t *raw; /* NULL, or a header */
    char text[STEP_TEXT];
    size_t n;
    bool proof; /* the right response is in it */
};

static inline void require(bool right)
{
    if (!right)
        abort();
}

static inline int seeded_random(void *user, void *bytes, size_t n)
{
    uint8_t *next = user;

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (*next)++;
    return 0;
}

/* response: what byte 1 becomes. */
static inline bool next_step(struct script *s, struct step *step, const char *response)
{
    size_t n;

    if (s->end - s->at < STEP_HEAD)
        return false;
    step->flags = s->at[0];
    step->stages = s->at[1];
    n = load_be16(s->at + 2);
    s->at += STEP_HEAD;
    step->raw = NULL;
    if ((step->flags & FLAG_RAW) && s->end - s->at >= ISCSI_BHS_SIZE) {
        step->raw = s->at;
        s->at += ISCSI_BHS_SIZE;
    }
    if (n > (size_t)(s->end - s->at))
        n = (size_t)(s->end - s->at);
    step->n = 0;
    step->proof = false;
    for (; n > 0; n--, s->at++) {
        size_t length = *s->at == 1 ? strlen(response) : 1;

        if (step->n + length > ISCSI_LOGIN_MRDSL)
            continue;
        if (*s->at == 1)
            step->proof = true;
        memcpy(step->text + step->n, *s->at == 1 ? (const void *)response : s->at, length);
        step->n += length;
    }
    return true;
}

/* The step's text in memory of its size. Freed by the caller. */
static inline char *alone(const struct step *step)
{
    char *copy = malloc(step->n ? step->n : 1);

    require(copy);
    memcpy(copy, step->text, step->n);
    return copy;
}

static inline void hex_response(enum hash_kind kind, uint8_t identifier, const char *secret,
                                const uint8_t *challenge, char hex[2 * HASH_MAX + 3])
{
    static const char digits[] = "0123456789abcdef";
    struct chap_credentials c = {"", secret, strlen(secret)};
    uint8_t digest[HASH_MAX];
    size_t n = chap_response(kind, identifier, &c, challenge, CHAP_CHALLENGE_SIZE, digest);

    memcpy(hex, "0x", 2);
    for (size_t i = 0; i < n; i++) {
        hex[2 + 2 * i] = digits[digest[i] >> 4];
        hex[3 + 2 * i] = digits[digest[i] & 15];
    }
    hex[2 + 2 * n] = '\0';
}

#endif
