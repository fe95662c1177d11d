/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

/* One path, READ, with these depths and figures. */
static struct result *result_of(unsigned count, const unsigned *depths, const double *gbit_per_s)
{
    struct result *r = calloc(1, sizeof *r);

    assert_non_null(r);
    r->path_count = 1;
    r->config.queues = 1;
    r->config.depth_count = count;
    r->limits.copy_gbit_per_s = 80;
    r->limits.copy_all_gbit_per_s = 160;
    for (unsigned i = 0; i < count; i++) {
        r->config.depths[i] = depths[i];
        r->paths[0].points[RESULT_READ][i] = (struct result_point){
            .measured = true, .depth_asked = depths[i], .runs = 1, .gbit_per_s = gbit_per_s[i]};
    }
    return r;
}

static void the_mean_is_over_depths_4_to_128_and_the_extremes_over_all(void **state)
{
    (void)state;
    struct result *r = result_of(5, (unsigned[]){1, 2, 4, 128, 256}, (double[]){8, 10, 20, 40, 60});

    result_summarise(r);
    const struct result_summary *s = &r->paths[0].summary[RESULT_READ];
    assert_true(s->measured);
    assert_true(s->mean_gbit_per_s == 30);
    assert_true(s->highest_gbit_per_s == 60);
    assert_int_equal(s->highest_depth, 256);
    assert_true(s->lowest_gbit_per_s == 8);
    assert_int_equal(s->lowest_depth, 1);
    assert_true(s->of_ceiling == 30.0 / 80);
    assert_true(r->paths[0].points[RESULT_READ][3].of_ceiling == 0.5);
    assert_false(r->paths[0].summary[RESULT_WRITE].measured);
    free(r);
}

static void points_that_were_not_measured_count_for_nothing(void **state)
{
    (void)state;
    struct result *r = result_of(3, (unsigned[]){1, 4, 8}, (double[]){8, 0, 20});

    r->paths[0].points[RESULT_READ][1].measured = false;
    result_summarise(r);
    assert_true(r->paths[0].summary[RESULT_READ].lowest_gbit_per_s == 8);
    assert_true(r->paths[0].summary[RESULT_READ].mean_gbit_per_s == 20);
    free(r);
}

static void what_cannot_be_said_is_zero(void **state)
{
    (void)state;
    struct result *r = result_of(2, (unsigned[]){1, 2}, (double[]){8, 10});

    r->limits.copy_gbit_per_s = 0;
    result_summarise(r);
    assert_true(r->paths[0].summary[RESULT_READ].mean_gbit_per_s == 0);
    assert_true(r->paths[0].summary[RESULT_READ].of_ceiling == 0);
    assert_true(r->paths[0].points[RESULT_READ][0].of_ceiling == 0);
    assert_true(r->paths[0].summary[RESULT_READ].highest_gbit_per_s == 10);
    free(r);
}

static void summarising_again_forgets_what_was_there(void **state)
{
    (void)state;
    struct result *r = result_of(1, (unsigned[]){4}, (double[]){8});

    result_summarise(r);
    r->paths[0].points[RESULT_READ][0].gbit_per_s = 4;
    result_summarise(r);
    assert_true(r->paths[0].summary[RESULT_READ].highest_gbit_per_s == 4);
    assert_true(r->paths[0].summary[RESULT_READ].mean_gbit_per_s == 4);
    free(r);
}

static void several_queues_are_measured_against_the_copy_on_all_threads(void **state)
{
    (void)state;
    struct result *r = result_of(1, (unsigned[]){4}, (double[]){80});

    assert_true(result_ceiling(r) == 80);
    r->config.queues = 2;
    assert_true(result_ceiling(r) == 160);
    result_summarise(r);
    assert_true(r->paths[0].points[RESULT_READ][0].of_ceiling == 0.5);
    free(r);
}

static void flags_are_named_in_words_and_cut_to_fit(void **state)
{
    (void)state;
    char text[256], tiny[8];

    assert_string_equal(result_flags_text(0, text, sizeof text), "");
    assert_string_equal(
        result_flags_text(RESULT_DEPTH_NOT_REACHED | RESULT_SHORT_RUN, text, sizeof text),
        "depth not reached, short run");
    assert_string_equal(result_flags_text(RESULT_IO_ERRORS, text, sizeof text), "I/O errors");
    assert_string_equal(result_flags_text(1u << RESULT_FLAGS, text, sizeof text), "");
    assert_string_equal(result_flags_text((1u << RESULT_FLAGS) - 1, tiny, sizeof tiny), "depth n");
}

static void a_wrong_byte_or_an_error_makes_a_result_a_failure(void **state)
{
    (void)state;
    struct result *r = result_of(2, (unsigned[]){1, 4}, (double[]){8, 9});
    struct result_point *p = &r->paths[0].points[RESULT_READ][1];

    assert_false(result_has_failures(r));
    p->flags = RESULT_CPU_BOUND | RESULT_WIDE_SPREAD | RESULT_SHORT_RUN;
    assert_false(result_has_failures(r));
    p->flags = RESULT_BYTES_DIFFER;
    assert_true(result_has_failures(r));
    p->flags = 0;
    p->errors = 1;
    assert_true(result_has_failures(r));
    p->errors = 0;
    r->paths[0].verify.wrong_blocks = 1;
    assert_true(result_has_failures(r));
    free(r);
}

static void only_wrong_bytes_of_a_profile_without_a_guard_are_no_surprise(void **state)
{
    (void)state;
    struct result *r = result_of(2, (unsigned[]){1, 4}, (double[]){8, 9});
    struct result_path *p = &r->paths[0];

    strcpy(p->name, "dev");
    strcpy(p->stands_for, "Dev");
    p->verify.wrong_blocks = 9;
    assert_true(result_has_failures(r));
    assert_false(result_has_surprises(r));
    p->points[RESULT_READ][0].errors = 1;
    assert_true(result_has_surprises(r));
    p->points[RESULT_READ][0].errors = 0;
    strcpy(p->name, "dma-page");
    assert_true(result_has_surprises(r));
    strcpy(p->name, "dev");
    p->stands_for[0] = '\0'; /* a file of that name */
    assert_true(result_has_surprises(r));
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_over_depths_4_to_128_and_the_extremes_over_all),
        cmocka_unit_test(points_that_were_not_measured_count_for_nothing),
        cmocka_unit_test(what_cannot_be_said_is_zero),
        cmocka_unit_test(summarising_again_forgets_what_was_there),
        cmocka_unit_test(several_queues_are_measured_against_the_copy_on_all_threads),
        cmocka_unit_test(flags_are_named_in_words_and_cut_to_fit),
        cmocka_unit_test(a_wrong_byte_or_an_error_makes_a_result_a_failure),
        cmocka_unit_test(only_wrong_bytes_of_a_profile_without_a_guard_are_no_surprise),
    };

    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
