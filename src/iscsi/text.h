/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iSCSI text: key=value pairs, each ended by a NUL (RFC 7143 6.1). Reading never goes past the
 * bytes given; what is written is bounded by the buffer.
 */
#ifndef ISCSI_TEXT_H
#define ISCSI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iscsi/iscsi.h"

/* ---- pairs ---- */

struct text_scan {
    const char *at, *end;
};

struct text_pair {
    char key[ISCSI_KEY_MAX + 1];
    const char *value; /* in the scanned bytes, with its NUL */
    size_t value_length;
};

enum text_result {
    TEXT_PAIR,
    TEXT_END,
    TEXT_BAD, /* no NUL, no "=", an empty or too long key, a character that keys cannot have */
};

static inline void text_scan_init(struct text_scan *s, const void *bytes, size_t n)
{
    s->at = bytes ? bytes : ""; /* an empty segment may have no address */
    s->end = s->at + n;
}

/* The next pair. Key and value end with a NUL each. The value is everything behind the first "=";
 * it may be empty. On TEXT_BAD pair->key holds as much of the key as can be shown. */
enum text_result text_next(struct text_scan *s, struct text_pair *pair);

/* No control characters in it, ASCII or C1 in UTF-8: fit to be shown, logged, compared. */
bool text_printable(const char *value);

/* Puts "?" for all that is not printable ASCII: for sentences that cite a peer. */
void text_make_printable(char *text);

/* ---- several PDUs, one run of text ---- */

/* Data segments with the C bit, put together in memory of the caller. Its size is the bound: a peer
 * may not send more in one run (B-20). */
struct text_run {
    char *bytes;
    size_t size, length;
};

static inline void text_run_init(struct text_run *run, char *bytes, size_t size)
{
    *run = (struct text_run){.bytes = bytes, .size = size};
}

/* 0, or -1: more than there is room for, and nothing was taken. */
int text_run_add(struct text_run *run, const void *bytes, size_t n);

/* For a list that is longer than the memory (SendTargets): the pairs that are complete so far, then
 * text_run_drop() what the scanner took; the start of a pair that was cut stays for the next PDU.
 */
void text_run_scan(const struct text_run *run, struct text_scan *s);
void text_run_drop(struct text_run *run, const struct text_scan *s);

/* ---- values ---- */

/* Decimal without sign, blank or leading zero, or 0x and hex digits; below 2^64. 0 or -1. */
int text_number(const char *value, uint64_t *number);

/* "Yes" or "No". 0 or -1. */
int text_boolean(const char *value, bool *yes);

/* "5~9" with the second not below the first. 0 or -1. */
int text_range(const char *value, uint64_t *low, uint64_t *high);

/* 0x hex digits (an odd number has a leading zero) or 0b base64. *n is the length in bytes. 0, or
 * -1: neither, a digit that is none, wrong padding, empty, or more than max bytes. */
int text_binary(const char *value, uint8_t *bytes, size_t max, size_t *n);

/* A binary value of exactly n bytes, at most 8, big-endian: a decimal number, hex or base64;
 * shorter ones have leading zeros. 0, or -1: not one of these, or longer. */
int text_binary_of_length(const char *value, uint8_t *bytes, size_t n);

/* Takes the next item off a comma list: a copy of at most size - 1 characters. False: no more.
 * An item that does not fit is given as "" (which nothing equals). */
bool text_list_next(const char **list, char *item, size_t size);

/* ---- writing ---- */

struct text_writer {
    char *bytes;
    size_t size, length;
    bool overflow; /* a pair did not fit and was left out */
};

static inline void text_writer_init(struct text_writer *w, char *bytes, size_t size)
{
    *w = (struct text_writer){.bytes = bytes, .size = size};
}

void text_put(struct text_writer *w, const char *key, const char *value);
void text_put_number(struct text_writer *w, const char *key, uint64_t number);
void text_put_boolean(struct text_writer *w, const char *key, bool yes);
void text_put_binary(struct text_writer *w, const char *key, const uint8_t *bytes, size_t n);
void text_put_base64(struct text_writer *w, const char *key, const uint8_t *bytes, size_t n);

/* Whole pairs as they stand, each with its NUL. */
void text_put_pairs(struct text_writer *w, const char *pairs, size_t length);

/* What was written, cut into data segments of at most max bytes, anywhere. Returns the length of
 * the next one, 0 for an empty text. It was the last one when text_cut_more() is false; else it
 * goes out with the C bit. */
struct text_cut {
    const char *bytes;
    size_t length, sent;
};

size_t text_cut_next(struct text_cut *cut, size_t max, const char **piece);

static inline bool text_cut_more(const struct text_cut *cut)
{
    return cut->sent < cut->length;
}

#endif
