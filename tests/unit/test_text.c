/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of login and text PDUs: pairs, runs over several PDUs, values, writing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "iscsi/text.h"

/* The bytes alone in memory of their size, so that a sanitizer sees each one read beyond. */
static enum text_result scan_one(const char *bytes, size_t n, char key[64], char value[300])
{
    char *alone = malloc(n ? n : 1);
    struct text_scan scan;
    struct text_pair pair;
    enum text_result result;

    assert_non_null(alone);
    memcpy(alone, bytes, n);
    text_scan_init(&scan, alone, n);
    result = text_next(&scan, &pair);
    snprintf(key, 64, "%s", pair.key);
    value[0] = '\0';
    if (result == TEXT_PAIR) {
        assert_int_equal(strlen(pair.value), pair.value_length);
        snprintf(value, 300, "%s", pair.value);
        assert_int_equal(text_next(&scan, &pair), TEXT_END);
    }
    free(alone);
    return result;
}

#define BYTES(literal) literal, sizeof(literal) - 1

/* [B-12] [B-14] */
static void pairs_are_split_at_the_first_equals_sign(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        enum text_result result;
        const char *key, *value;
    } rows[] = {
        {BYTES("K=a=b\0"), TEXT_PAIR, "K", "a=b"},
        {BYTES("SendTargets=\0"), TEXT_PAIR, "SendTargets", ""},
        {BYTES("X-com.example.k_1=+\0"), TEXT_PAIR, "X-com.example.k_1", "+"},
        {BYTES("X#NodeArchitecture=a/b\0"), TEXT_PAIR, "X#NodeArchitecture", "a/b"},
        {BYTES(""), TEXT_END, "", ""},
        {BYTES("K=a"), TEXT_BAD, "K", ""}, /* no NUL */
        {BYTES("K"), TEXT_BAD, "K", ""},
        {BYTES("K\0"), TEXT_BAD, "K", ""}, /* no "=" */
        {BYTES("=x\0"), TEXT_BAD, "", ""},
        {BYTES("\0"), TEXT_BAD, "", ""},
        {BYTES("K\0x=y\0"), TEXT_BAD, "K", ""},
        {BYTES("a b=y\0"), TEXT_BAD, "a?b", ""},
        {BYTES("\x1b[m=y\0"), TEXT_BAD, "??m", ""},
    };
    char key[64], value[300];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(scan_one(rows[i].bytes, rows[i].n, key, value), rows[i].result);
        assert_string_equal(key, rows[i].key);
        assert_string_equal(value, rows[i].value);
    }
}

/* [B-13] */
static void keys_have_at_most_63_characters(void **state)
{
    char bytes[80], key[64], value[300];

    (void)state;
    memset(bytes, 'A', sizeof(bytes));
    memcpy(bytes + 63, "=v", 3);
    assert_int_equal(scan_one(bytes, 66, key, value), TEXT_PAIR);
    assert_int_equal(strlen(key), 63);
    bytes[63] = 'A';
    memcpy(bytes + 64, "=v", 3);
    assert_int_equal(scan_one(bytes, 67, key, value), TEXT_BAD);
    assert_int_equal(strlen(key), 63); /* what can be shown of it */
}

/* [B-20] */
static void a_text_may_be_cut_anywhere_and_is_the_same_again(void **state)
{
    static const char text[] = "TargetName=iqn.a:b\0TargetAddress=10.0.0.1:3260,1\0SendTargets=\0";
    const size_t n = sizeof(text) - 1;
    char memory[sizeof(text)];

    (void)state;
    for (size_t max = 1; max <= n; max++) {
        struct text_cut cut = {text, n, 0};
        struct text_run run;
        unsigned pieces = 0;

        text_run_init(&run, memory, n);
        do {
            const char *piece;
            size_t length = text_cut_next(&cut, max, &piece);

            assert_true(length > 0 && length <= max);
            assert_int_equal(text_run_add(&run, piece, length), 0);
            pieces++;
        } while (text_cut_more(&cut));
        assert_int_equal(pieces, (n + max - 1) / max);
        assert_int_equal(run.length, n);
        assert_memory_equal(memory, text, n);
        assert_int_equal(text_run_add(&run, "x", 1), -1); /* and no byte more than its memory */
    }
}

static void an_empty_text_is_one_empty_piece(void **state)
{
    struct text_cut cut = {NULL, 0, 0};
    const char *piece;

    (void)state;
    assert_int_equal(text_cut_next(&cut, 100, &piece), 0);
    assert_false(text_cut_more(&cut));
}

/* [I-DISC-02] 500 targets through 300 bytes of memory */
static void a_long_list_is_read_with_little_memory(void **state)
{
    enum { TARGETS = 500, SEED = 3 };
    static char text[TARGETS * 40];
    char memory[300], want[40];
    struct rng rng = {SEED};
    struct text_writer w;
    struct text_run run;
    unsigned seen = 0;

    (void)state;
    printf("# seed %d\n", SEED);
    text_writer_init(&w, text, sizeof(text));
    for (unsigned i = 0; i < TARGETS; i++) {
        snprintf(want, sizeof(want), "iqn.2001-04.x:%u", i);
        text_put(&w, "TargetName", want);
    }
    assert_false(w.overflow);
    text_run_init(&run, memory, sizeof(memory));
    for (size_t at = 0; at < w.length;) {
        size_t n = 1 + rng_below(&rng, 250);
        struct text_scan scan;
        struct text_pair pair;

        if (n > w.length - at)
            n = w.length - at;
        assert_int_equal(text_run_add(&run, text + at, n), 0);
        at += n;
        for (text_run_scan(&run, &scan); text_next(&scan, &pair) == TEXT_PAIR; seen++) {
            snprintf(want, sizeof(want), "iqn.2001-04.x:%u", seen);
            assert_string_equal(pair.value, want);
        }
        text_run_drop(&run, &scan);
    }
    assert_int_equal(seen, TARGETS);
    assert_int_equal(run.length, 0);
}

/* [B-15] */
static void numbers_are_decimal_or_hex_and_never_wrap(void **state)
{
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x",
                                      "0X",
                                      "01",
                                      "00",
                                      "0x1g",
                                      "x10",
                                      "1,2",
                                      "1~2",
                                      "0b01",
                                      "18446744073709551616",
                                      "99999999999999999999999999",
                                      "0x10000000000000000",
                                      "Yes"};
    uint64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (text_number(bad[i], &n) == 0)
            fail_msg("\"%s\" was taken for the number %llu", bad[i], (unsigned long long)n);
    assert_int_equal(text_number("0", &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(text_number("0x10", &n), 0);
    assert_int_equal(n, 16);
    assert_int_equal(text_number("0X1f", &n), 0);
    assert_int_equal(n, 31);
    assert_int_equal(text_number("0x0001F", &n), 0);
    assert_int_equal(n, 31);
    assert_int_equal(text_number("18446744073709551615", &n), 0);
    assert_true(n == UINT64_MAX);
}

/* [B-17] */
static void a_range_does_not_go_down(void **state)
{
    uint64_t low, high;

    (void)state;
    assert_int_equal(text_range("5~9", &low, &high), 0);
    assert_int_equal(low, 5);
    assert_int_equal(high, 9);
    assert_int_equal(text_range("0x5~0x5", &low, &high), 0);
    assert_int_equal(text_range("0~0", &low, &high), 0);
    assert_int_equal(text_range("9~5", &low, &high), -1);
    assert_int_equal(text_range("5", &low, &high), -1);
    assert_int_equal(text_range("5~", &low, &high), -1);
    assert_int_equal(text_range("~5", &low, &high), -1);
    assert_int_equal(text_range("5~6~7", &low, &high), -1);
}

static void booleans_are_yes_and_no(void **state)
{
    bool yes;

    (void)state;
    assert_int_equal(text_boolean("Yes", &yes), 0);
    assert_true(yes);
    assert_int_equal(text_boolean("No", &yes), 0);
    assert_false(yes);
    assert_int_equal(text_boolean("yes", &yes), -1);
    assert_int_equal(text_boolean("", &yes), -1);
}

static void expect_binary(const char *value, const char *want, size_t length)
{
    uint8_t bytes[16];
    size_t n;

    if (text_binary(value, bytes, sizeof(bytes), &n) < 0)
        fail_msg("%s was refused", value);
    assert_int_equal(n, length);
    assert_memory_equal(bytes, want, length);
}

/* [B-16] */
static void binary_values_are_hex_or_base64(void **state)
{
    static const char *const bad[] = {
        "",           "0x",      "0b",     "12",
        "abcd",       "0xg0",    "0x1 2",  "0bYQ",
        "0bYQ=",      "0bYQ===", "0b====", "0bY=Q=",
        "0bYQ==YQ==", "0bYR==",  "0bYW-_", "0x000102030405060708090a0b0c0d0e0f10"};
    uint8_t bytes[16];
    size_t n;

    (void)state;
    expect_binary("0x00ff", "\x00\xff", 2);
    expect_binary("0XaBc", "\x0a\xbc", 2); /* an odd number of digits: (n + 1) / 2 bytes */
    expect_binary("0x0", "\x00", 1);
    expect_binary("0bYQ==", "a", 1);
    expect_binary("0BYWI=", "ab", 2);
    expect_binary("0bYWJj", "abc", 3);
    expect_binary("0b+/+/", "\xfb\xff\xbf", 3);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (text_binary(bad[i], bytes, sizeof(bytes), &n) == 0)
            fail_msg("\"%s\" was taken for %zu bytes", bad[i], n);
}

/* [B-16] */
static void a_decimal_is_binary_where_its_length_is_known(void **state)
{
    uint8_t bytes[8];

    (void)state;
    assert_int_equal(text_binary_of_length("258", bytes, 2), 0);
    assert_memory_equal(bytes, "\x01\x02", 2);
    assert_int_equal(text_binary_of_length("0x1", bytes, 2), 0);
    assert_memory_equal(bytes, "\x00\x01", 2);
    assert_int_equal(text_binary_of_length("0bAQI=", bytes, 2), 0);
    assert_memory_equal(bytes, "\x01\x02", 2);
    assert_int_equal(text_binary_of_length("18446744073709551615", bytes, 8), 0);
    assert_memory_equal(bytes, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    assert_int_equal(text_binary_of_length("65536", bytes, 2), -1);
    assert_int_equal(text_binary_of_length("256", bytes, 1), -1);
    assert_int_equal(text_binary_of_length("0x10000", bytes, 2), -1);
    assert_int_equal(text_binary_of_length("-1", bytes, 2), -1);
    assert_int_equal(text_binary_of_length("1", bytes, 9), -1); /* longer than 64 bits */
}

/* [B-16] [B-33] */
static void binary_survives_both_encodings_at_every_length(void **state)
{
    enum { SEED = 11 };
    static uint8_t bytes[1024], again[1024];
    static char text[2200];
    struct rng rng = {SEED};
    struct text_scan scan;
    struct text_pair pair;
    struct text_writer w;

    (void)state;
    printf("# seed %d\n", SEED);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rng_next(&rng);
    for (size_t n = 1; n <= sizeof(bytes); n++)
        for (int base64 = 0; base64 < 2; base64++) {
            size_t length;

            text_writer_init(&w, text, sizeof(text));
            (base64 ? text_put_base64 : text_put_binary)(&w, "CHAP_C", bytes, n);
            assert_false(w.overflow);
            text_scan_init(&scan, text, w.length);
            assert_int_equal(text_next(&scan, &pair), TEXT_PAIR);
            assert_int_equal(text_binary(pair.value, again, sizeof(again), &length), 0);
            assert_int_equal(length, n);
            assert_memory_equal(again, bytes, n);
            assert_int_equal(text_binary(pair.value, again, n - 1, &length), -1);
        }
}

/* [B-18] */
static void lists_are_taken_apart_in_their_order(void **state)
{
    static const char *const want[] = {"foo", "", "", "None"};
    const char *list = "foo,much-too-long-for-the-item,,None";
    char item[8];
    unsigned n = 0;

    (void)state;
    for (; text_list_next(&list, item, sizeof(item)); n++) {
        assert_true(n < 4);
        assert_string_equal(item, want[n]);
    }
    assert_int_equal(n, 4);
}

static void what_could_steer_a_terminal_is_found(void **state)
{
    char text[] = "a\x1b[2J\x7f\xc2\x9b\tz";

    (void)state;
    assert_true(text_printable("Disk of J\xc3\xb6rg ~ 1"));
    assert_true(text_printable(""));
    assert_false(text_printable("a\x1b[2J"));
    assert_false(text_printable("a\x7f"));
    assert_false(text_printable("a\xc2\x9b"
                                "2J")); /* CSI as one C1 character */
    text_make_printable(text);
    assert_string_equal(text, "a?[2J????z");
}

static void a_pair_that_does_not_fit_is_left_out_whole(void **state)
{
    char bytes[16];
    struct text_writer w;

    (void)state;
    memset(bytes, '#', sizeof(bytes));
    text_writer_init(&w, bytes, 10);
    text_put(&w, "K", "1234");
    assert_int_equal(w.length, 7);
    text_put(&w, "L", "1");
    assert_true(w.overflow);
    assert_int_equal(w.length, 7);
    text_put_pairs(&w, "A=b\0", 4);
    assert_int_equal(w.length, 7);
    assert_memory_equal(bytes, "K=1234\0", 7);
    assert_int_equal(bytes[10], '#');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_split_at_the_first_equals_sign),
        cmocka_unit_test(keys_have_at_most_63_characters),
        cmocka_unit_test(a_text_may_be_cut_anywhere_and_is_the_same_again),
        cmocka_unit_test(an_empty_text_is_one_empty_piece),
        cmocka_unit_test(a_long_list_is_read_with_little_memory),
        cmocka_unit_test(numbers_are_decimal_or_hex_and_never_wrap),
        cmocka_unit_test(a_range_does_not_go_down),
        cmocka_unit_test(booleans_are_yes_and_no),
        cmocka_unit_test(binary_values_are_hex_or_base64),
        cmocka_unit_test(a_decimal_is_binary_where_its_length_is_known),
        cmocka_unit_test(binary_survives_both_encodings_at_every_length),
        cmocka_unit_test(lists_are_taken_apart_in_their_order),
        cmocka_unit_test(what_could_steer_a_terminal_is_found),
        cmocka_unit_test(a_pair_that_does_not_fit_is_left_out_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
