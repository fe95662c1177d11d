/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/copy.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, MAX = COPY_STREAM_MIN + 1024, AREA = MAX + 2 * GUARD };

struct areas {
    unsigned char source[AREA];
    unsigned char target[AREA];
    unsigned char expected[AREA];
};

static int set_up(void **state)
{
    struct areas *a = malloc(sizeof *a);
    struct rng rng = {3};

    if (!a)
        return -1;
    for (size_t i = 0; i < AREA; i++) {
        a->source[i] = (unsigned char)rng_next(&rng);
        a->target[i] = (unsigned char)rng_next(&rng);
    }
    memcpy(a->expected, a->target, AREA);
    *state = a;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

/* Copies and compares the whole area, so that a byte too many is seen as well. */
static void check_copy(struct areas *a, size_t to, size_t from, size_t n)
{
    copy_bytes(a->target + GUARD + to, a->source + GUARD + from, n);
    for (size_t i = 0; i < n; i++)
        a->expected[GUARD + to + i] = a->source[GUARD + from + i];
    if (memcmp(a->target, a->expected, AREA) != 0)
        fail_msg("wrong with %zu bytes to alignment %zu from %zu", n, to, from);
    /* The next copy must not find its result already there. */
    memset(a->target + GUARD + to, 0x5a, n);
    memset(a->expected + GUARD + to, 0x5a, n);
}

static void every_alignment_of_target_and_source_is_right(void **state)
{
    for (size_t to = 0; to < 130; to++)
        for (size_t from = 0; from < 64; from += 7)
            check_copy(*state, to, from, COPY_STREAM_MIN + 77);
    for (size_t from = 0; from < 130; from++)
        check_copy(*state, 1, from, COPY_STREAM_MIN);
}

static void every_length_around_the_threshold_is_right(void **state)
{
    for (size_t n = COPY_STREAM_MIN - 3; n < COPY_STREAM_MIN + 300; n++) {
        check_copy(*state, 0, 0, n);
        check_copy(*state, 127, 5, n);
    }
}

static void short_copies_are_right(void **state)
{
    for (size_t n = 0; n < 300; n++)
        check_copy(*state, n % 67, n % 13, n);
}

static void the_way_of_copying_has_a_name(void **state)
{
    const char *name = copy_name();

    (void)state;
    assert_true(strcmp(name, "memcpy") == 0 || strcmp(name, "AVX2 streaming stores") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_alignment_of_target_and_source_is_right, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_length_around_the_threshold_is_right, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(short_copies_are_right, set_up, tear_down),
        cmocka_unit_test(the_way_of_copying_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
