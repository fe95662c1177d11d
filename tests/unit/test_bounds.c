/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every input up to a stated size, for the decoders that take lengths and ends out of a peer's
 * bytes: additional header segments, and the pairs and values of text. Each input lies at the very
 * end and at the very start of a page whose neighbours cannot be touched, and so does what is
 * written, so that one byte too many is a fault in every build. Results are told a second way.
 *
 * Of bytes that only matter by what kind they are (a digit, a "=", a NUL) one of each kind stands
 * for all. This is no proof for longer inputs; the fuzzers hunt there.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "iscsi/pdu.h"
#include "iscsi/text.h"

/* ---- a page between two that fault ---- */

struct fence {
    uint8_t *map, *page;
    size_t size;
};

static void fence_init(struct fence *f)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    f->size = (size_t)sysconf(_SC_PAGESIZE);
    f->map = mmap(NULL, 3 * f->size, PROT_NONE, MAP_PRIVATE, fd, 0);
    assert_true(f->map != MAP_FAILED);
    close(fd);
    f->page = f->map + f->size;
    assert_int_equal(mprotect(f->page, f->size, PROT_READ | PROT_WRITE), 0);
}

static void fence_free(struct fence *f)
{
    munmap(f->map, 3 * f->size);
}

/* n bytes at the end of the page, or at its start. */
static uint8_t *fenced(const struct fence *f, bool end, size_t n)
{
    return end ? f->page + f->size - n : f->page;
}

/* ---- additional header segments ---- */

struct chain {
    struct fence fence;
    struct iscsi_ahs want;
    uint8_t bytes[ISCSI_AHS_MAX];
    size_t n;
    unsigned long count, good;
};

static void check_chain(struct chain *c, bool good, bool unknown)
{
    for (int end = 0; end < 2; end++) {
        uint8_t *bytes = fenced(&c->fence, end, c->n);
        struct iscsi_ahs got;
        bool got_unknown;

        memcpy(bytes, c->bytes, c->n);
        assert_int_equal(iscsi_ahs_unpack(bytes, c->n, &got, &got_unknown), good ? 0 : -1);
        if (!good)
            continue;
        assert_int_equal(got_unknown, unknown);
        assert_int_equal(got.extended_cdb, c->want.extended_cdb);
        assert_int_equal(got.cdb_rest_length, c->want.cdb_rest_length);
        assert_memory_equal(got.cdb_rest, c->want.cdb_rest, sizeof(got.cdb_rest));
        assert_int_equal(got.bidi, c->want.bidi);
        assert_int_equal(got.bidi_read_length, c->want.bidi_read_length);
    }
    c->count++;
    c->good += good;
}

static size_t whole(size_t length)
{
    return (3 + length + 3) / 4 * 4;
}

/* What 11.2.2 says of one segment that fits; it is entered in want. */
static bool legal(struct chain *c, size_t at, size_t length, uint8_t type)
{
    const uint8_t *body = c->bytes + at + 4;

    if (type == ISCSI_AHS_EXTENDED_CDB) {
        if (c->want.extended_cdb || length < 2 || length > 245)
            return false;
        c->want.extended_cdb = true;
        c->want.cdb_rest_length = (uint16_t)(length - 1);
        memcpy(c->want.cdb_rest, body, length - 1);
    } else if (type == ISCSI_AHS_BIDI_READ_LENGTH) {
        if (c->want.bidi || length != 5)
            return false;
        c->want.bidi = true;
        c->want.bidi_read_length = load_be32(body);
    }
    return true;
}

static void chains(struct chain *c, size_t at, bool unknown);

static void chains_with(struct chain *c, size_t at, size_t length, uint8_t type, bool unknown)
{
    struct iscsi_ahs before = c->want;

    store_be16(c->bytes + at, (uint16_t)length);
    c->bytes[at + 2] = type;
    if (length == 0 || at + whole(length) > c->n || !legal(c, at, length, type & 0x3f))
        check_chain(c, false, false);
    else
        chains(c, at + whole(length),
               unknown || (type & 0x3f) == 0 || (type & 0x3f) > ISCSI_AHS_BIDI_READ_LENGTH);
    c->want = before;
}

/* Every way in which the chain can go on at a place: each length that fits, some that do not, each
 * kind of type. */
static void chains(struct chain *c, size_t at, bool unknown)
{
    static const uint16_t long_lengths[] = {244, 245, 246, 255, 256, 0x7fff, 0xfffd, 0xffff};
    static const uint8_t types[] = {0,
                                    ISCSI_AHS_EXTENDED_CDB,
                                    ISCSI_AHS_BIDI_READ_LENGTH,
                                    0xc0 | ISCSI_AHS_BIDI_READ_LENGTH,
                                    3,
                                    0x3f};

    if (at == c->n) {
        check_chain(c, true, unknown);
        return;
    }
    if (c->n - at < 4) {
        check_chain(c, false, false);
        return;
    }
    for (size_t t = 0; t < sizeof(types); t++) {
        for (size_t length = 0; length <= c->n - at + 1; length++)
            chains_with(c, at, length, types[t], unknown);
        for (size_t i = 0; i < sizeof(long_lengths) / sizeof(*long_lengths); i++)
            chains_with(c, at, long_lengths[i], types[t], unknown);
    }
}

/* [B-04] [B-05] [B-06] */
static void every_ahs_chain_to_20_bytes_is_judged_inside_its_bytes(void **state)
{
    static struct chain c;

    (void)state;
    fence_init(&c.fence);
    for (size_t i = 0; i < sizeof(c.bytes); i++)
        c.bytes[i] = (uint8_t)(0x81 + i);
    for (c.n = 0; c.n <= 20; c.n++)
        chains(&c, 0, false);
    printf("# %lu chains, %lu of them good\n", c.count, c.good);
    assert_true(c.good > 1000 && c.count > 10 * c.good);
    fence_free(&c.fence);
}

/* [B-04] [B-05] */
static void every_length_of_one_segment_is_judged_inside_its_bytes(void **state)
{
    static struct chain c;

    (void)state;
    fence_init(&c.fence);
    for (size_t i = 0; i < sizeof(c.bytes); i++)
        c.bytes[i] = (uint8_t)(0x81 + i);
    for (c.n = 4; c.n <= ISCSI_AHS_MAX; c.n++) {
        size_t least = c.n > 12 ? c.n - 12 : 0; /* what ends long before is a chain: see above */

        for (size_t length = least; length <= c.n; length++) {
            for (uint8_t type = 1; type <= 3; type++) {
                memset(&c.want, 0, sizeof(c.want));
                store_be16(c.bytes, (uint16_t)length);
                c.bytes[2] = type;
                if (length > 0 && whole(length) < c.n)
                    continue;
                check_chain(&c, length > 0 && whole(length) == c.n && legal(&c, 0, length, type),
                            type == 3);
            }
        }
    }
    assert_true(c.good > 500 && c.count > c.good);
    fence_free(&c.fence);
}

/* ---- pairs ---- */

/* What 6.1 says of bytes that begin a pair: its length with the NUL; 0: not legal. */
static size_t pair_length(const uint8_t *bytes, size_t n, size_t *key_length)
{
    size_t i = 0;

    while (i < n && bytes[i] != '=' && bytes[i] != '\0') {
        if (bytes[i] < 0x20 || bytes[i] > 0x7e || strchr(" ,:", bytes[i]))
            return 0;
        i++;
    }
    if (i == 0 || i > ISCSI_KEY_MAX || i == n || bytes[i] != '=')
        return 0;
    *key_length = i;
    while (i < n && bytes[i] != '\0')
        i++;
    return i < n ? i + 1 : 0;
}

static void check_pairs(const struct fence *f, const uint8_t *input, size_t n)
{
    for (int end = 0; end < 2; end++) {
        uint8_t *bytes = fenced(f, end, n);
        struct text_scan scan;
        struct text_pair pair;
        enum text_result result;
        size_t at = 0, key_length = 0, length;

        memcpy(bytes, input, n);
        text_scan_init(&scan, bytes, n);
        while ((result = text_next(&scan, &pair)) == TEXT_PAIR) {
            length = pair_length(bytes + at, n - at, &key_length);
            assert_true(length > 0);
            assert_int_equal(strlen(pair.key), key_length);
            assert_memory_equal(pair.key, bytes + at, key_length);
            assert_ptr_equal(pair.value, bytes + at + key_length + 1);
            assert_int_equal(pair.value_length, length - key_length - 2);
            at += length;
        }
        assert_int_equal(result == TEXT_END, at == n);
        if (result == TEXT_BAD)
            assert_int_equal(pair_length(bytes + at, n - at, &key_length), 0);
    }
}

/* The next string of n characters out of an alphabet, as one counts; false: that was the last. */
static bool next_string(const char *alphabet, size_t letters, uint8_t *digits, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        digits[i]++;
        if (digits[i] < letters) {
            out[i] = alphabet[digits[i]];
            return true;
        }
        digits[i] = 0;
        out[i] = alphabet[0];
    }
    return false;
}

/* [B-12] [B-13] */
static void every_text_to_7_bytes_is_split_inside_its_bytes(void **state)
{
    static const char alphabet[] = {'\0', '=', 'K', '0', ' ', '\x01', '\xff'};
    struct fence f;

    (void)state;
    fence_init(&f);
    for (size_t n = 0; n <= 7; n++) {
        uint8_t digits[7] = {0};
        char text[7] = {0};

        do
            check_pairs(&f, (const uint8_t *)text, n);
        while (next_string(alphabet, sizeof(alphabet), digits, n, text));
    }
    fence_free(&f);
}

/* [B-12] [B-13] */
static void every_length_of_key_and_value_is_split_inside_its_bytes(void **state)
{
    uint8_t text[400];
    struct fence f;

    (void)state;
    fence_init(&f);
    for (size_t key = 0; key <= ISCSI_KEY_MAX + 3; key++) {
        for (size_t value = 0; value <= ISCSI_VALUE_MAX + 2; value += value < 3 ? 1 : 63) {
            memset(text, 'A', sizeof(text));
            text[key] = '=';
            text[key + 1 + value] = '\0';
            check_pairs(&f, text, key + 1 + value + 1);
            check_pairs(&f, text, key + 1 + value); /* the NUL is missing */
        }
    }
    fence_free(&f);
}

/* ---- values ---- */

static bool all_of(const char *text, const char *set)
{
    return *text && text[strspn(text, set)] == '\0';
}

static bool is_hex(const char *value)
{
    return value[0] == '0' && (value[1] == 'x' || value[1] == 'X');
}

static bool is_number(const char *value, uint64_t *number)
{
    *number = strtoull(value, NULL, is_hex(value) ? 16 : 10);
    if (is_hex(value))
        return all_of(value + 2, "0123456789abcdefABCDEF");
    return all_of(value, "0123456789") && (value[0] != '0' || value[1] == '\0');
}

static void check_number(const char *value)
{
    uint64_t want, number = 0, low = 0, high = 0, want_low = 0, want_high = 0;
    const char *tilde = strchr(value, '~');
    char first[16];
    bool good;

    assert_int_equal(text_number(value, &number) == 0, is_number(value, &want));
    if (is_number(value, &want))
        assert_int_equal(number, want);

    snprintf(first, sizeof(first), "%.*s", tilde ? (int)(tilde - value) : 0, value);
    good = tilde && is_number(first, &want_low) && is_number(tilde + 1, &want_high) &&
           want_low <= want_high;
    assert_int_equal(text_range(value, &low, &high) == 0, good);
    if (good)
        assert_true(low == want_low && high == want_high);
}

/* What is written stays inside the room that was told. */
static void check_binary(const struct fence *f, const char *value)
{
    static const char base64[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    size_t digits = strlen(value) - 2, n;

    for (size_t max = 0; max <= 8; max++) {
        bool ends[] = {true, false};

        for (int i = 0; i < 2; i++) {
            uint8_t *room = fenced(f, ends[i], max);

            if (text_binary(value, room, max, &n) == 0) {
                assert_true(n > 0 && n <= max);
                assert_true(is_hex(value)
                                ? n == (digits + 1) / 2
                                : digits % 4 == 0 && n <= digits / 4 * 3 &&
                                      n + 2 >= digits / 4 * 3 && all_of(value + 2, base64));
            } else if (is_hex(value)) {
                assert_true((digits + 1) / 2 > max || !is_number(value, &(uint64_t){0}));
            }
            text_binary_of_length(value, room, max);
        }
    }
}

static void check_list(const struct fence *f, const char *value)
{
    for (size_t size = 1; size <= 4; size++) {
        char *item = (char *)fenced(f, true, size);
        const char *list = value, *at = value;

        while (text_list_next(&list, item, size)) {
            size_t length = strcspn(at, ",");

            assert_int_equal(strlen(item), length < size ? length : 0);
            assert_memory_equal(item, at, strlen(item));
            at += length + 1;
        }
        assert_int_equal(at - value, strlen(value) + 1);
    }
}

/* [B-15] [B-16] [B-17] [B-18] */
static void every_value_to_6_characters_is_read_inside_its_bytes(void **state)
{
    static const char alphabet[] = {'0', 'x', 'b', '7', 'f', '=', '~', ',', '+'};
    struct fence in, out;
    unsigned long count = 0;

    (void)state;
    fence_init(&in);
    fence_init(&out);
    for (size_t n = 0; n <= 6; n++) {
        char *value = (char *)fenced(&in, true, n + 1); /* its NUL is the last byte there is */
        uint8_t digits[6] = {0};

        memset(value, alphabet[0], n);
        value[n] = '\0';
        do {
            bool yes;

            check_number(value);
            if (n >= 2 && value[0] == '0' && (value[1] == 'x' || value[1] == 'b'))
                check_binary(&out, value);
            else
                assert_int_equal(text_binary(value, out.page, 8, &(size_t){0}), -1);
            check_list(&out, value);
            assert_int_equal(text_boolean(value, &yes), -1);
            assert_true(text_printable(value));
            count++;
        } while (next_string(alphabet, sizeof(alphabet), digits, n, value));
    }
    printf("# %lu values\n", count);
    fence_free(&in);
    fence_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ahs_chain_to_20_bytes_is_judged_inside_its_bytes),
        cmocka_unit_test(every_length_of_one_segment_is_judged_inside_its_bytes),
        cmocka_unit_test(every_text_to_7_bytes_is_split_inside_its_bytes),
        cmocka_unit_test(every_length_of_key_and_value_is_split_inside_its_bytes),
        cmocka_unit_test(every_value_to_6_characters_is_read_inside_its_bytes),
    };

    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
