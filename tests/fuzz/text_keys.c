/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of a peer: pairs, values, and the negotiation that they lead to. The first two bytes say
 * which side, stage and session; the rest is text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "iscsi/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static void check_values(const char *value)
{
    uint8_t bytes[64], again[64];
    uint64_t low, high;
    struct text_writer w;
    char text[200];
    size_t n, m = 0;
    bool yes;

    if (text_number(value, &low) == 0)
        require(strspn(value, "0123456789abcdefABCDEFxX") == strlen(value));
    if (text_range(value, &low, &high) == 0)
        require(low <= high);
    text_boolean(value, &yes);
    for (n = 0; n <= 8; n++)
        text_binary_of_length(value, bytes, n);
    if (text_binary(value, bytes, sizeof(bytes), &n) == 0) {
        require(n > 0 && n <= sizeof(bytes));
        text_writer_init(&w, text, sizeof(text));
        text_put_base64(&w, "K", bytes, n);
        require(!w.overflow && text_binary(text + 2, again, sizeof(again), &m) == 0);
        require(m == n && memcmp(again, bytes, n) == 0);
    }
}

static void check_params(const struct iscsi_params *p)
{
    require(p->mrdsl_in >= 512 && p->mrdsl_in <= ISCSI_SEGMENT_MAX);
    require(p->mrdsl_out >= 512 && p->mrdsl_out <= ISCSI_SEGMENT_MAX);
    require(p->max_burst_length >= 512 && p->max_burst_length <= ISCSI_SEGMENT_MAX);
    require(p->first_burst_length >= 512 && p->first_burst_length <= p->max_burst_length);
    require(p->max_connections >= 1 && p->max_connections <= 65535);
    require(p->max_outstanding_r2t >= 1 && p->max_outstanding_r2t <= 65535);
    require(p->default_time2wait <= 3600 && p->default_time2retain <= 3600);
    require(p->error_recovery_level <= 2 && p->protocol_level <= 31);
    require(p->task_reporting <= ISCSI_REPORT_FAST_ABORT);
    require(!p->error_recovery_level || !p->data_sequence_in_order || p->max_outstanding_r2t == 1);
}

/* What we write is text again, and no standard key is NotUnderstood. */
static void check_written(const struct text_writer *w)
{
    struct text_scan scan;
    struct text_pair pair;
    enum text_result result;

    text_scan_init(&scan, w->bytes, w->length);
    while ((result = text_next(&scan, &pair)) == TEXT_PAIR)
        require(keys_find(pair.key) == KEY_UNKNOWN || strcmp(pair.value, "NotUnderstood") != 0);
    require(result == TEXT_END);
}

static void begin(struct keys *k, uint8_t how, uint8_t stage)
{
    struct iscsi_wishes wishes;
    struct iscsi_params base;

    iscsi_wishes_default(&wishes);
    iscsi_params_default(&base);
    wishes.header_digest = (enum iscsi_digest_wish)(how >> 6);
    wishes.params.error_recovery_level = how >> 4 & 3;
    if ((stage & 3) > ISCSI_STAGE_OPERATIONAL) {
        keys_begin_text(k, how & 1, &base, how & 2 ? 65536 : 0);
        return;
    }
    keys_begin(k, how & 1, how & 2, &wishes, how & 4 ? &base : NULL);
    k->stage = (enum iscsi_stage)(stage & 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char out[16384];
    struct text_writer w;
    struct text_scan scan;
    struct text_pair pair;
    struct keys_error err;
    enum text_result result;
    enum iscsi_key key;
    struct keys k;
    char *text;

    if (size < 2)
        return 0;
    begin(&k, data[0], data[1]);
    text_writer_init(&w, out, sizeof(out));
    if (data[1] & 4)
        keys_offer(&k, &w);
    text = malloc(size - 2 + (size == 2)); /* alone, so that reading beyond it is seen */
    require(text);
    memcpy(text, data + 2, size - 2);
    text_scan_init(&scan, text, size - 2);
    while ((result = text_next(&scan, &pair)) == TEXT_PAIR) {
        check_values(pair.value);
        if (keys_receive(&k, &pair, &key, &w, &err) < 0) {
            require(err.status && err.sentence[0] && text_printable(err.sentence));
            break;
        }
    }
    if (result == TEXT_END) {
        keys_offer(&k, &w);
        check_written(&w);
        if (keys_finish(&k, &err) == 0)
            check_params(&k.result);
        else
            require(err.sentence[0]);
    }
    free(text);
    return 0;
}
