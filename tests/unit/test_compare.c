/* SPDX-License-Identifier: BSD-2-Clause */
/* M9: what is inside the noise is not called a difference; what is outside is. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "sample_render.h"

static const double noise = 0.05;

/* The comparison of the sample with itself times factor, each with its own noise. */
static char *compared(double factor, unsigned runs, uint64_t seed)
{
    struct result *a = new_result(sample_result), *b = new_result(sample_result);
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    sample_noise(a, runs, noise, seed);
    result_summarise(a);
    sample_noise(b, runs, noise, seed + 1000);
    sample_scale(b, factor);
    assert_int_equal(report_compare(a, b, "a.json", "b.json", out), 0);
    assert_int_equal(fclose(out), 0);
    free(a);
    free(b);
    return text;
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

/* Of 20 seeds, how many comparisons find anything at all? */
static unsigned alarms(double factor, unsigned runs)
{
    unsigned n = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        char *text = compared(factor, runs, seed);
        n += !has(text, "\nNo difference shown.\n");
        free(text);
    }
    return n;
}

static void m9_the_same_with_5_percent_noise_shows_no_difference(void **state)
{
    (void)state;
    assert_int_equal(alarms(1, 3), 0);
    assert_int_equal(alarms(1, 9), 0);
}

static void m9_3_percent_with_5_percent_noise_shows_no_difference(void **state)
{
    (void)state;
    /* Just what the test calls the least difference: one false alarm in 20 is its design. */
    assert_true(alarms(1.03, 3) <= 2);
    assert_true(alarms(1.03, 5) <= 2);
}

static void m9_20_percent_is_shown_for_every_path_in_both_ways(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        char *faster = compared(1.2, 3, seed), *slower = compared(1 / 1.2, 3, seed);
        /* The rows over all depths: one for each of five paths and two directions. */
        assert_int_equal(count(faster, "4..128"), 10 + 1);
        assert_true(count(faster, "b is faster") >= 10);
        assert_int_equal(count(faster, "b is slower"), 0);
        assert_true(count(slower, "b is slower") >= 10);
        assert_int_equal(count(slower, "b is faster"), 0);
        free(faster);
        free(slower);
    }
    char *text = compared(1.2, 9, 1);
    assert_int_equal(count(text, "b is faster"), 5 * 2 * (8 + 1));
    free(text);
}

static void fewer_than_three_runs_can_show_nothing(void **state)
{
    (void)state;
    char *text = compared(1.5, 2, 1);

    assert_true(has(text, "fewer than 3 runs on a side: nothing can be shown"));
    assert_true(has(text, "No verdict."));
    assert_int_equal(count(text, "b is faster"), 0);
    free(text);
}

static void a_result_compared_with_itself_is_called_that(void **state)
{
    static const unsigned runs[] = {1, 3};
    char *text;
    size_t length;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct result *r = new_result(sample_result);
        struct result *same = malloc(sizeof *same);
        sample_noise(r, runs[i], noise, 1);
        result_summarise(r);
        memcpy(same, r, sizeof *same);
        FILE *out = open_memstream(&text, &length);
        assert_int_equal(report_compare(r, same, "a.json", "a.json", out), 0);
        fclose(out);
        assert_true(has(text, "a and b are one and the same result, so there is nothing to be "));
        assert_true(has(text, "the same\n"));
        assert_false(has(text, "No verdict"));
        assert_false(has(text, "Measure with"));
        assert_false(has(text, "difference"));
        free(text);
        free(same);
        free(r);
    }
}

static void the_verdict_is_the_same_every_time_and_names_its_statistic(void **state)
{
    (void)state;
    char *once = compared(1.1, 3, 5), *again = compared(1.1, 3, 5);

    assert_string_equal(once, again);
    assert_true(has(once, "t-test"));
    assert_true(has(once, "Bonferroni"));
    free(once);
    free(again);
}

static char *compare_text(const struct result *a, const struct result *b)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    assert_int_equal(report_compare(a, b, "a.json", "b.json", out), 0);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void what_makes_results_unlike_is_pointed_out_first(void **state)
{
    (void)state;
    struct result *a = new_result(sample_result), *b = new_result(sample_result);

    b->config.block_bytes = 4096;
    b->config.working_set_bytes = 1 << 20;
    snprintf(b->environment.cpu_model, RESULT_TEXT, "Another CPU");
    snprintf(b->environment.hostname, RESULT_NAME, "other");
    b->incomplete = true;
    b->path_count = 4;
    char *text = compare_text(a, b);
    const char *table = strstr(text, "software, READ");
    assert_non_null(table);
    static const char *const parts[] = {"another block size: a 1 MiB, b 4 KiB",
                                        "another working set: a 256 MiB, b 1 MiB",
                                        "another CPU",
                                        "another machine",
                                        "incomplete: b",
                                        "only in a: kernel"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = strstr(text, parts[i]);
        assert_non_null(at);
        assert_true(at < table);
    }
    free(text);
    text = compare_text(a, a);
    assert_false(has(text, "another"));
    free(text);
    free(a);
    free(b);
}

static void results_with_nothing_in_common_are_not_compared(void **state)
{
    (void)state;
    struct result *a = new_result(sample_result), *b = new_result(sample_preset);
    char *text = compare_text(a, b);

    assert_true(has(text, "nothing to compare"));
    free(text);
    free(a);
    free(b);
}

static void wrong_data_is_told_beside_the_ratio(void **state)
{
    (void)state;
    struct result *a = new_result(sample_result);
    char *text = compare_text(a, a);

    assert_true(has(text, "a returned WRONG DATA"));
    free(text);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m9_the_same_with_5_percent_noise_shows_no_difference),
        cmocka_unit_test(m9_3_percent_with_5_percent_noise_shows_no_difference),
        cmocka_unit_test(m9_20_percent_is_shown_for_every_path_in_both_ways),
        cmocka_unit_test(fewer_than_three_runs_can_show_nothing),
        cmocka_unit_test(a_result_compared_with_itself_is_called_that),
        cmocka_unit_test(the_verdict_is_the_same_every_time_and_names_its_statistic),
        cmocka_unit_test(what_makes_results_unlike_is_pointed_out_first),
        cmocka_unit_test(results_with_nothing_in_common_are_not_compared),
        cmocka_unit_test(wrong_data_is_told_beside_the_ratio),
    };

    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
