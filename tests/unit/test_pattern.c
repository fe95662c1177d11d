/* SPDX-License-Identifier: BSD-2-Clause */
/* Every kind of wrong data, made by hand, is named rightly; see bench/pattern.h. */
#include "base/rng.h"
#include "bench/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_UNIT = 4096, MIB = 1 << 20 };

#define OFFSET ((uint64_t)40 * MAX_UNIT)
#define GENERATION ((uint64_t)7)

static const uint32_t units[] = {512, MAX_UNIT};

struct bench { /* a right block, and the one under test */
    struct pattern p;
    uint8_t right[MAX_UNIT], got[MAX_UNIT];
    struct pattern_finding found;
};

static void fill_got(struct bench *b, uint64_t offset, uint64_t generation)
{
    pattern_fill(&b->p, b->got, b->p.unit, offset, generation);
}

static void start(struct bench *b, uint32_t unit)
{
    memset(b, 0, sizeof *b);
    b->p = (struct pattern){.seed = 42, .unit = unit};
    pattern_fill(&b->p, b->right, unit, OFFSET, GENERATION);
    memcpy(b->got, b->right, unit);
}

static uint64_t check(struct bench *b)
{
    return pattern_check(&b->p, b->got, b->p.unit, OFFSET, GENERATION, &b->found);
}

/* One wrong block of that kind, with the place and number of wrong bytes counted here. */
static void expect_fault(struct bench *b, enum pattern_fault fault)
{
    uint32_t first = 0, bytes = 0;

    for (uint32_t i = b->p.unit; i-- > 0;)
        if (b->got[i] != b->right[i]) {
            first = i;
            bytes++;
        }
    assert_int_equal(check(b), 1);
    assert_string_equal(pattern_fault_name(b->found.fault), pattern_fault_name(fault));
    assert_int_equal(b->found.block_offset, OFFSET);
    assert_int_equal(b->found.first_wrong, first);
    assert_int_equal(b->found.wrong_bytes, bytes);
    assert_int_equal(b->found.expected_generation, GENERATION);
}

static void expect_source(const struct bench *b, uint64_t address, uint64_t generation)
{
    assert_int_equal(b->found.found_address, address);
    assert_int_equal(b->found.found_generation, generation);
}

/* for (size_t u = 0; start_unit(&b, u); u++): once for each unit */
static bool start_unit(struct bench *b, size_t u)
{
    if (u == sizeof units / sizeof *units)
        return false;
    start(b, units[u]);
    return true;
}

static void what_was_filled_is_right(void **state)
{
    (void)state;
    uint8_t *buf = malloc(MIB + 8);
    for (size_t i = 0; i < 2; i++)
        for (size_t shift = 0; shift < 8; shift++) { /* at any alignment */
            struct pattern p = {.seed = i, .unit = units[i]};
            pattern_fill(&p, buf + shift, MIB, OFFSET, GENERATION);
            assert_int_equal(pattern_check(&p, buf + shift, MIB, OFFSET, GENERATION, NULL), 0);
        }
    free(buf);
}

static void a_block_depends_on_nothing_but_its_place_and_generation(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++) {
        uint8_t many[4 * MAX_UNIT];
        pattern_fill(&b.p, many, 4 * b.p.unit, OFFSET - 3 * b.p.unit, GENERATION);
        assert_memory_equal(many + 3 * b.p.unit, b.right, b.p.unit);
    }
}

static void nothing_is_written_beyond_the_length(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++) {
        uint8_t buf[MAX_UNIT + 16];
        memset(buf, 0x5c, sizeof buf);
        pattern_fill(&b.p, buf + 8, b.p.unit, OFFSET, GENERATION);
        for (int i = 0; i < 8; i++) {
            assert_int_equal(buf[i], 0x5c);
            assert_int_equal(buf[8 + b.p.unit + (unsigned)i], 0x5c);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return (x > y) - (x < y);
}

/* M8: one wrong word could hide nowhere, and nothing can be elided or compressed. */
static void no_word_of_a_mebibyte_is_zero_or_occurs_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct pattern p = {.seed = 0, .unit = units[i]};
        uint64_t *words = malloc(MIB);
        pattern_fill(&p, words, MIB, 0, 0);
        qsort(words, MIB / 8, 8, by_value);
        assert_int_not_equal(words[0], 0);
        for (size_t w = 1; w < MIB / 8; w++)
            assert_int_not_equal(words[w], words[w - 1]);
        free(words);
    }
}

static void bytes_of_the_pattern_are_spread_evenly(void **state)
{
    (void)state;
    const struct pattern p = {.seed = 3, .unit = 512};
    uint8_t *buf = malloc(MIB);
    unsigned count[256] = {0};
    pattern_fill(&p, buf, MIB, 0, 1);
    for (size_t i = 0; i < MIB; i++)
        count[buf[i]]++;
    for (int i = 0; i < 256; i++) /* 4096 each, deviation 64: eight of them either way */
        assert_in_range(count[i], 4096 - 512, 4096 + 512);
    free(buf);
}

static void any_two_blocks_differ_in_each_word(void **state)
{
    struct rng rng = {1};
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (int n = 0; n < 500; n++) {
            uint64_t where[2] = {rng_below(&rng, 1000) * b.p.unit,
                                 rng_below(&rng, 1000) * b.p.unit};
            uint64_t generation[2] = {rng_below(&rng, 4), rng_below(&rng, 4)};
            if (where[0] == where[1] && generation[0] == generation[1])
                continue;
            pattern_fill(&b.p, b.right, b.p.unit, where[0], generation[0]);
            pattern_fill(&b.p, b.got, b.p.unit, where[1], generation[1]);
            for (uint32_t i = 0; i < b.p.unit; i += 8)
                assert_memory_not_equal(b.right + i, b.got + i, 8);
        }
}

static void an_older_generation_is_stale(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (uint64_t g = 0; g < GENERATION; g++) {
            fill_got(&b, OFFSET, g);
            expect_fault(&b, PATTERN_STALE);
            expect_source(&b, OFFSET, g);
        }
}

static void a_newer_generation_is_future(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++) {
        fill_got(&b, OFFSET, GENERATION + 100000);
        expect_fault(&b, PATTERN_FUTURE);
        expect_source(&b, OFFSET, GENERATION + 100000);
    }
}

static void another_address_is_misdirected_and_named(void **state)
{
    const uint64_t sources[] = {0, OFFSET - MAX_UNIT, OFFSET + MAX_UNIT, (uint64_t)1 << 45};
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (int i = 0; i < 4; i++) {
            fill_got(&b, sources[i], GENERATION - (i % 2));
            expect_fault(&b, PATTERN_MISDIRECTED);
            expect_source(&b, sources[i], GENERATION - (i % 2));
        }
}

static void data_displaced_by_any_bytes_is_misdirected(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (uint32_t by = 1; by < 40; by++) {
            uint8_t two[2 * MAX_UNIT];
            pattern_fill(&b.p, two, 2 * b.p.unit, OFFSET, GENERATION);
            memcpy(b.got, two + by, b.p.unit);
            expect_fault(&b, PATTERN_MISDIRECTED);
            expect_source(&b, OFFSET + by, GENERATION);
        }
}

/* The last bytes may differ in so few bits, or not at all, that nobody could tell. */
static void expect_torn(struct bench *b, uint64_t address, uint64_t generation)
{
    unsigned bits = 0;

    for (uint32_t i = 0; i < b->p.unit; i++)
        bits += (unsigned)__builtin_popcount(b->got[i] ^ b->right[i]);
    if (bits == 0)
        return;
    if (bits <= 8) {
        expect_fault(b, PATTERN_BIT_FLIP);
        return;
    }
    expect_fault(b, PATTERN_TORN);
    expect_source(b, address, generation);
}

static void a_block_that_goes_on_as_an_older_one_is_torn_at_any_byte(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (uint32_t cut = 1; cut < b.p.unit; cut++) {
            fill_got(&b, OFFSET, GENERATION - 1);
            memcpy(b.got, b.right, cut);
            if (cut > 2) /* else it is the stale block but for a bit or two */
                expect_torn(&b, OFFSET, GENERATION - 1);
        }
}

static void a_block_that_begins_as_an_older_one_is_torn_at_any_byte(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (uint32_t cut = 1; cut < b.p.unit - 1; cut++) {
            fill_got(&b, OFFSET, GENERATION - 1);
            memcpy(b.got + cut, b.right + cut, b.p.unit - cut);
            if (b.p.unit - cut > 2) /* else it is the stale block but for a bit or two */
                expect_torn(&b, OFFSET, GENERATION - 1);
        }
}

static void a_right_header_over_another_body_is_torn(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (uint32_t header = 8; header <= 64; header += 8) {
            fill_got(&b, OFFSET - MAX_UNIT, GENERATION - 2);
            memcpy(b.got, b.right, header);
            expect_torn(&b, OFFSET - MAX_UNIT, GENERATION - 2);
        }
}

static void a_piece_from_elsewhere_in_the_middle_is_torn(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++) {
        fill_got(&b, OFFSET + MAX_UNIT, GENERATION);
        memcpy(b.got, b.right, 203);
        memcpy(b.got + 351, b.right + 351, b.p.unit - 351);
        expect_torn(&b, OFFSET + MAX_UNIT, GENERATION);
    }
}

static void zeros_are_zeros_wholly_or_in_part(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++) {
        memset(b.got, 0, b.p.unit);
        expect_fault(&b, PATTERN_ZEROS);
        start(&b, b.p.unit);
        memset(b.got + 100, 0, 300);
        expect_fault(&b, PATTERN_ZEROS);
    }
}

/* M7: offset and generation come with it. */
static void every_single_flipped_bit_is_seen(void **state)
{
    struct bench b;

    (void)state;
    start(&b, 512);
    for (uint32_t bit = 0; bit < 512 * 8; bit++) {
        b.got[bit / 8] ^= (uint8_t)(1 << bit % 8);
        expect_fault(&b, PATTERN_BIT_FLIP);
        assert_int_equal(b.found.wrong_bytes, 1);
        b.got[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(check(&b), 0);
}

static void eight_bits_are_flips_and_nine_are_not(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++) {
        for (uint32_t i = 0; i < 8; i++)
            b.got[i * 50 + 3] ^= 0x10;
        expect_fault(&b, PATTERN_BIT_FLIP);
        b.got[490] ^= 0x10;
        expect_fault(&b, PATTERN_FOREIGN);
    }
}

static void what_was_never_written_is_foreign(void **state)
{
    struct rng rng = {9};
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (int n = 0; n < 200; n++) {
            for (uint32_t i = 0; i < b.p.unit; i++)
                b.got[i] = (uint8_t)rng_next(&rng);
            expect_fault(&b, PATTERN_FOREIGN);
        }
}

static void another_seed_is_foreign(void **state)
{
    struct bench b;

    (void)state;
    for (size_t u = 0; start_unit(&b, u); u++)
        for (uint64_t seed = 43; seed < 143; seed++) {
            const struct pattern other = {.seed = seed, .unit = b.p.unit};
            pattern_fill(&other, b.got, b.p.unit, OFFSET, GENERATION);
            expect_fault(&b, PATTERN_FOREIGN);
        }
}

static void wrong_blocks_are_counted_and_the_first_is_described(void **state)
{
    const struct pattern p = {.seed = 5, .unit = 512};
    struct pattern_finding found;
    uint8_t *buf = malloc(64 * 512);

    (void)state;
    pattern_fill(&p, buf, 64 * 512, 0, 2);
    pattern_fill(&p, buf + 20 * 512, 512, 20 * 512, 1);
    memset(buf + 30 * 512, 0, 3 * 512);
    assert_int_equal(pattern_check(&p, buf, 64 * 512, 0, 2, &found), 4);
    assert_int_equal(found.fault, PATTERN_STALE);
    assert_int_equal(found.block_offset, 20 * 512);
    assert_int_equal(pattern_check(&p, buf, 64 * 512, 0, 2, NULL), 4);
    free(buf);
}

static void names_are_words(void **state)
{
    (void)state;
    assert_string_equal(pattern_fault_name(PATTERN_BIT_FLIP), "bit flip");
    for (int i = PATTERN_OK; i <= PATTERN_FOREIGN; i++)
        assert_true(strlen(pattern_fault_name((enum pattern_fault)i)) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_filled_is_right),
        cmocka_unit_test(a_block_depends_on_nothing_but_its_place_and_generation),
        cmocka_unit_test(nothing_is_written_beyond_the_length),
        cmocka_unit_test(no_word_of_a_mebibyte_is_zero_or_occurs_twice),
        cmocka_unit_test(bytes_of_the_pattern_are_spread_evenly),
        cmocka_unit_test(any_two_blocks_differ_in_each_word),
        cmocka_unit_test(an_older_generation_is_stale),
        cmocka_unit_test(a_newer_generation_is_future),
        cmocka_unit_test(another_address_is_misdirected_and_named),
        cmocka_unit_test(data_displaced_by_any_bytes_is_misdirected),
        cmocka_unit_test(a_block_that_goes_on_as_an_older_one_is_torn_at_any_byte),
        cmocka_unit_test(a_block_that_begins_as_an_older_one_is_torn_at_any_byte),
        cmocka_unit_test(a_right_header_over_another_body_is_torn),
        cmocka_unit_test(a_piece_from_elsewhere_in_the_middle_is_torn),
        cmocka_unit_test(zeros_are_zeros_wholly_or_in_part),
        cmocka_unit_test(every_single_flipped_bit_is_seen),
        cmocka_unit_test(eight_bits_are_flips_and_nine_are_not),
        cmocka_unit_test(what_was_never_written_is_foreign),
        cmocka_unit_test(another_seed_is_foreign),
        cmocka_unit_test(wrong_blocks_are_counted_and_the_first_is_described),
        cmocka_unit_test(names_are_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
