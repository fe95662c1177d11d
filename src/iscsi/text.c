/* SPDX-License-Identifier: BSD-2-Clause */
#include "iscsi/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- pairs ---- */

static bool key_character(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr(".-+@_#", c));
}

enum text_result text_next(struct text_scan *s, struct text_pair *pair)
{
    const char *nul, *equals;
    size_t length;

    memset(pair, 0, sizeof(*pair));
    if (s->at == s->end)
        return TEXT_END;
    nul = memchr(s->at, '\0', (size_t)(s->end - s->at));
    equals = memchr(s->at, '=', (size_t)((nul ? nul : s->end) - s->at));
    length = (size_t)((equals ? equals : nul ? nul : s->end) - s->at);
    for (size_t i = 0; i < length && i < ISCSI_KEY_MAX; i++)
        pair->key[i] = key_character(s->at[i]) ? s->at[i] : '?';
    if (!nul || !equals || length == 0 || length > ISCSI_KEY_MAX || strchr(pair->key, '?'))
        return TEXT_BAD;
    pair->value = equals + 1;
    pair->value_length = (size_t)(nul - pair->value);
    s->at = nul + 1;
    return TEXT_PAIR;
}

bool text_printable(const char *value)
{
    for (const unsigned char *at = (const unsigned char *)value; *at; at++)
        if (*at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0))
            return false;
    return true;
}

void text_make_printable(char *text)
{
    for (; *text; text++)
        if (*text < 0x20 || *text > 0x7e)
            *text = '?';
}

/* ---- runs ---- */

int text_run_add(struct text_run *run, const void *bytes, size_t n)
{
    if (n > run->size - run->length)
        return -1;
    if (n > 0)
        memcpy(run->bytes + run->length, bytes, n);
    run->length += n;
    return 0;
}

void text_run_scan(const struct text_run *run, struct text_scan *s)
{
    size_t complete = run->length;

    while (complete > 0 && run->bytes[complete - 1] != '\0')
        complete--;
    text_scan_init(s, run->bytes, complete);
}

void text_run_drop(struct text_run *run, const struct text_scan *s)
{
    size_t taken = (size_t)(s->at - run->bytes);

    memmove(run->bytes, s->at, run->length - taken);
    run->length -= taken;
}

/* ---- values ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool has_prefix(const char *value, char letter)
{
    return value[0] == '0' && (value[1] | 0x20) == letter;
}

/* Digits of a base up to the end of the value or `stop`, which is left at *value. */
static int digits(const char **value, unsigned base, char stop, uint64_t *number)
{
    const char *at = *value;
    uint64_t n = 0;

    for (; *at && *at != stop; at++) {
        int digit = hex_digit(*at);

        if (digit < 0 || (unsigned)digit >= base || n > (UINT64_MAX - (unsigned)digit) / base)
            return -1;
        n = n * base + (unsigned)digit;
    }
    if (at == *value)
        return -1;
    *value = at;
    *number = n;
    return 0;
}

static int number(const char **value, char stop, uint64_t *n)
{
    if (has_prefix(*value, 'x')) {
        *value += 2;
        return digits(value, 16, stop, n);
    }
    if (**value == '0' && (*value)[1] != '\0' && (*value)[1] != stop)
        return -1;
    return digits(value, 10, stop, n);
}

int text_number(const char *value, uint64_t *n)
{
    return number(&value, '\0', n);
}

int text_boolean(const char *value, bool *yes)
{
    *yes = strcmp(value, "Yes") == 0;
    return *yes || strcmp(value, "No") == 0 ? 0 : -1;
}

int text_range(const char *value, uint64_t *low, uint64_t *high)
{
    if (number(&value, '~', low) < 0 || *value++ != '~')
        return -1;
    return number(&value, '\0', high) < 0 || *high < *low ? -1 : 0;
}

static int hex_binary(const char *value, uint8_t *bytes, size_t max, size_t *n)
{
    size_t count = strlen(value), odd = count & 1;

    if (count == 0 || (count + 1) / 2 > max)
        return -1;
    memset(bytes, 0, (count + 1) / 2);
    for (size_t i = 0; i < count; i++) {
        int digit = hex_digit(value[i]);

        if (digit < 0)
            return -1;
        bytes[(i + odd) / 2] = (uint8_t)(bytes[(i + odd) / 2] << 4 | digit);
    }
    *n = (count + 1) / 2;
    return 0;
}

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit(char c)
{
    const char *at = c ? strchr(base64, c) : NULL;

    return at ? (int)(at - base64) : -1;
}

/* RFC 4648: groups of four characters, the last padded with "="; left-over bits are zero. */
static int base64_binary(const char *value, uint8_t *bytes, size_t max, size_t *n)
{
    size_t count = strlen(value), padding = 0, length;
    uint32_t bits = 0;

    if (count == 0 || count % 4 != 0)
        return -1;
    while (padding < 2 && value[count - 1 - padding] == '=')
        padding++;
    length = count / 4 * 3 - padding;
    if (length > max)
        return -1;
    for (size_t i = 0, out = 0; i < count; i++) {
        int digit = i < count - padding ? base64_digit(value[i]) : 0;

        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 3)
            continue;
        for (int shift = 16; shift >= 0; shift -= 8) {
            uint8_t byte = (uint8_t)(bits >> shift);

            if (out < length)
                bytes[out++] = byte;
            else if (byte != 0)
                return -1;
        }
        bits = 0;
    }
    *n = length;
    return 0;
}

int text_binary(const char *value, uint8_t *bytes, size_t max, size_t *n)
{
    *n = 0;
    if (has_prefix(value, 'x'))
        return hex_binary(value + 2, bytes, max, n);
    if (has_prefix(value, 'b'))
        return base64_binary(value + 2, bytes, max, n);
    return -1;
}

int text_binary_of_length(const char *value, uint8_t *bytes, size_t n)
{
    uint8_t shorter[8];
    uint64_t decimal;
    size_t length = 0;

    if (n > sizeof(shorter))
        return -1;
    if (has_prefix(value, 'x') || has_prefix(value, 'b')) {
        if (text_binary(value, shorter, n, &length) < 0)
            return -1;
    } else {
        if (text_number(value, &decimal) < 0 || (n < 8 && decimal >> (8 * n) != 0))
            return -1;
        for (length = n; length > 0; decimal >>= 8)
            shorter[--length] = (uint8_t)decimal;
        length = n;
    }
    memset(bytes, 0, n - length);
    memcpy(bytes + n - length, shorter, length);
    return 0;
}

bool text_list_next(const char **list, char *item, size_t size)
{
    const char *comma;
    size_t length;

    if (!*list)
        return false;
    comma = strchr(*list, ',');
    length = comma ? (size_t)(comma - *list) : strlen(*list);
    item[0] = '\0';
    if (length < size) {
        memcpy(item, *list, length);
        item[length] = '\0';
    }
    *list = comma ? comma + 1 : NULL;
    return true;
}

/* ---- writing ---- */

/* Room for a pair; NULL: it does not fit. */
static char *begin(struct text_writer *w, const char *key, size_t value_length)
{
    size_t key_length = strlen(key);
    char *at = w->bytes + w->length;

    if (key_length + 1 + value_length + 1 > w->size - w->length) {
        w->overflow = true;
        return NULL;
    }
    memcpy(at, key, key_length);
    at[key_length] = '=';
    w->length += key_length + 1 + value_length + 1;
    return at + key_length + 1;
}

void text_put(struct text_writer *w, const char *key, const char *value)
{
    size_t length = strlen(value);
    char *at = begin(w, key, length);

    if (at)
        memcpy(at, value, length + 1);
}

void text_put_number(struct text_writer *w, const char *key, uint64_t n)
{
    char value[24];

    snprintf(value, sizeof(value), "%" PRIu64, n);
    text_put(w, key, value);
}

void text_put_boolean(struct text_writer *w, const char *key, bool yes)
{
    text_put(w, key, yes ? "Yes" : "No");
}

void text_put_binary(struct text_writer *w, const char *key, const uint8_t *bytes, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    char *at = begin(w, key, 2 + 2 * n);

    if (!at)
        return;
    *at++ = '0';
    *at++ = 'x';
    for (size_t i = 0; i < n; i++) {
        *at++ = hex[bytes[i] >> 4];
        *at++ = hex[bytes[i] & 15];
    }
    *at = '\0';
}

void text_put_base64(struct text_writer *w, const char *key, const uint8_t *bytes, size_t n)
{
    char *at = begin(w, key, 2 + (n + 2) / 3 * 4);

    if (!at)
        return;
    *at++ = '0';
    *at++ = 'b';
    for (size_t i = 0; i < n; i += 3) {
        size_t count = n - i < 3 ? n - i : 3;
        uint32_t bits = 0;

        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < count ? bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            *at++ = (char)(k <= count ? base64[bits >> (18 - 6 * k) & 63] : '=');
    }
    *at = '\0';
}

void text_put_pairs(struct text_writer *w, const char *pairs, size_t length)
{
    if (length > w->size - w->length) {
        w->overflow = true;
        return;
    }
    if (length > 0)
        memcpy(w->bytes + w->length, pairs, length);
    w->length += length;
}

size_t text_cut_next(struct text_cut *cut, size_t max, const char **piece)
{
    size_t n = cut->length - cut->sent;

    if (n > max)
        n = max;
    *piece = cut->bytes ? cut->bytes + cut->sent : "";
    cut->sent += n;
    return n;
}
