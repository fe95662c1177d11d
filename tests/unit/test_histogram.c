/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/histogram.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
    struct histogram *h = malloc(2 * sizeof *h);

    if (!h)
        return -1;
    histogram_reset(&h[0]);
    histogram_reset(&h[1]);
    *state = h;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

/* value alone below a far larger one, so that the answer is not cut at the maximum. */
static void check_error_of(struct histogram *h, uint64_t value)
{
    unsigned bucket = histogram_bucket(value);

    if (bucket == HISTOGRAM_BUCKETS - 1)
        return; /* it also holds what is larger than all buckets, and is answered as the maximum */
    h->count = 2;
    h->max = UINT64_MAX;
    h->buckets[bucket] = 1;
    uint64_t answer = histogram_percentile(h, 0.5);
    h->buckets[bucket] = 0;
    if (answer < value || answer - value > value / 64)
        fail_msg("%llu was answered as %llu", (unsigned long long)value,
                 (unsigned long long)answer);
}

static void the_relative_error_is_at_most_one_part_in_64(void **state)
{
    struct histogram *h = *state;
    struct rng rng = {42};

    for (uint64_t v = 0; v < 100000; v++)
        check_error_of(h, v);
    /* Both sides of every power of two and of every bucket's edge, and chance in between. */
    for (unsigned bit = 6; bit < HISTOGRAM_MAX_BITS; bit++)
        for (uint64_t sub = 64; sub < 128; sub++) {
            uint64_t edge = sub << (bit - 6);
            check_error_of(h, edge);
            check_error_of(h, edge - 1);
            check_error_of(h, edge + rng_below(&rng, ((uint64_t)1 << (bit - 6))));
        }
}

static void buckets_grow_with_the_value_and_stay_inside(void **state)
{
    unsigned last = 0;

    (void)state;
    for (uint64_t v = 0; v < ((uint64_t)1 << 41); v += v / 100 + 1) {
        unsigned b = histogram_bucket(v);
        assert_true(b >= last && b < HISTOGRAM_BUCKETS);
        last = b;
    }
    assert_int_equal(last, HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void count_sum_minimum_and_maximum_are_exact(void **state)
{
    struct histogram *h = *state;

    assert_int_equal(histogram_percentile(h, 0.5), 0);
    assert_int_equal(h->min, UINT64_MAX);
    histogram_add(h, 1234567);
    histogram_add(h, 7);
    histogram_add(h, (uint64_t)1 << 50);
    assert_int_equal(h->count, 3);
    assert_int_equal(h->sum, 1234574 + ((uint64_t)1 << 50));
    assert_int_equal(h->min, 7);
    assert_int_equal(h->max, (uint64_t)1 << 50);
    assert_int_equal(histogram_percentile(h, 1), (uint64_t)1 << 50);
    assert_int_equal(histogram_percentile(h, 0), 7);
}

static void one_percent_at_10_ms_shows_in_p99_9_and_not_in_p50(void **state) /* case M4 */
{
    struct histogram *h = *state;

    for (unsigned i = 0; i < 10000; i++)
        histogram_add(h, i % 100 == 99 ? 10000000 : 20000);
    uint64_t p50 = histogram_percentile(h, 0.50);
    uint64_t p99 = histogram_percentile(h, 0.99);
    uint64_t above = histogram_percentile(h, 0.9901);
    uint64_t p999 = histogram_percentile(h, 0.999);

    assert_in_range(p50, 20000, 20000 + 20000 / 64);
    assert_in_range(p99, 20000, 20000 + 20000 / 64);
    assert_int_equal(above, 10000000);
    assert_int_equal(p999, 10000000);
    assert_int_equal(h->max, 10000000);
}

static void percentiles_follow_a_known_distribution(void **state)
{
    static const double fractions[] = {0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999};
    struct histogram *h = *state;

    for (uint64_t v = 1; v <= 1000000; v++)
        histogram_add(h, v);
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        uint64_t exact = (uint64_t)(fractions[i] * 1000000 + 0.5);
        assert_in_range(histogram_percentile(h, fractions[i]), exact, exact + exact / 64 + 1);
    }
}

static void merging_is_the_same_as_adding_to_one(void **state)
{
    struct histogram *h = *state;
    struct histogram *both = malloc(sizeof *both);
    struct rng rng = {7};

    assert_non_null(both);
    histogram_reset(both);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t v = rng_next(&rng) >> (rng_next(&rng) % 64);
        v >>= 20; /* keeps the sum inside 64 bits */
        histogram_add(&h[i % 2], v);
        histogram_add(both, v);
    }
    histogram_merge(&h[0], &h[1]);
    assert_memory_equal(&h[0], both, sizeof *both);

    histogram_reset(&h[1]);
    histogram_merge(&h[0], &h[1]); /* an empty one changes nothing */
    assert_memory_equal(&h[0], both, sizeof *both);
    free(both);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_relative_error_is_at_most_one_part_in_64),
        TEST(buckets_grow_with_the_value_and_stay_inside),
        TEST(count_sum_minimum_and_maximum_are_exact),
        TEST(one_percent_at_10_ms_shows_in_p99_9_and_not_in_p50),
        TEST(percentiles_follow_a_known_distribution),
        TEST(merging_is_the_same_as_adding_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
