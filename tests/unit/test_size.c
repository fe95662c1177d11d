/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/size.h"

#include <string.h>

static uint64_t parsed(const char *text)
{
    struct lp_error err = {0};
    uint64_t value = 0;

    if (size_parse(text, "size", &value, &err))
        fail_msg("%s: %s", text, err.msg);
    return value;
}

static void sizes_are_read_as_people_type_them(void **state)
{
    (void)state;
    assert_int_equal(parsed("0"), 0);
    assert_int_equal(parsed("4096"), 4096);
    assert_int_equal(parsed("512B"), 512);
    assert_int_equal(parsed("4K"), 4096);
    assert_int_equal(parsed("4k"), 4096);
    assert_int_equal(parsed("4KiB"), 4096);
    assert_int_equal(parsed("4KB"), 4000);
    assert_int_equal(parsed("1M"), 1 << 20);
    assert_int_equal(parsed("1MB"), 1000000);
    assert_int_equal(parsed("2G"), (uint64_t)2 << 30);
    assert_int_equal(parsed("1T"), (uint64_t)1 << 40);
    assert_int_equal(parsed("3TiB"), (uint64_t)3 << 40);
    assert_int_equal(parsed("18446744073709551615"), UINT64_MAX);
}

static void a_text_that_is_no_size_is_named_in_the_error(void **state)
{
    static const char *const bad[] = {"",
                                      "K",
                                      "x",
                                      "-1",
                                      "+1",
                                      "1.5M",
                                      "4 K",
                                      "4X",
                                      "4KiBs",
                                      "4Kib",
                                      "4BK",
                                      "0x10",
                                      " 4",
                                      "4 ",
                                      "4bb",
                                      "1P",
                                      "99999999999999999999",
                                      "16777216T",
                                      "18446744073709551615K"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lp_error err = {0};
        uint64_t value = 0;
        if (size_parse(bad[i], "block size", &value, &err) != -1)
            fail_msg("\"%s\" was taken for %llu", bad[i], (unsigned long long)value);
        assert_int_equal(err.domain, LP_ERROR_USAGE);
        assert_non_null(strstr(err.msg, "block size"));
        assert_non_null(strstr(err.msg, bad[i]));
    }
}

static void numbers_are_held_to_their_range(void **state)
{
    struct lp_error err = {0};
    uint64_t value = 0;

    (void)state;
    assert_int_equal(number_parse("1", "depth", 1, 1024, &value, &err), 0);
    assert_int_equal(value, 1);
    assert_int_equal(number_parse("1024", "depth", 1, 1024, &value, &err), 0);
    assert_int_equal(value, 1024);
    static const char *const bad[] = {"0", "1025", "", "3x", "-1", "1e3", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(number_parse(bad[i], "depth", 1, 1024, &value, &err), -1);
        assert_non_null(strstr(err.msg, "depth"));
        assert_non_null(strstr(err.msg, "from 1 to 1024"));
    }
}

static void sizes_are_written_in_the_largest_fitting_unit(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {4096, "4 KiB"},
        {4097, "4.0 KiB"},
        {1 << 20, "1 MiB"},
        {(1 << 20) - 1, "1.0 MiB"},
        {3 << 19, "1.5 MiB"},
        {(uint64_t)3 << 29, "1.5 GiB"},
        {(uint64_t)7 << 40, "7 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    char buf[32];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(size_format(cases[i].bytes, buf, sizeof buf), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_as_people_type_them),
        cmocka_unit_test(a_text_that_is_no_size_is_named_in_the_error),
        cmocka_unit_test(numbers_are_held_to_their_range),
        cmocka_unit_test(sizes_are_written_in_the_largest_fitting_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
