/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "bench/report_int.h"
#include "sample_render.h"

static int csv(const struct result *r, const struct report_options *opts, FILE *out)
{
    (void)opts;
    return report_csv(r, out);
}

static char *text_of(const struct result *r, bool reference)
{
    return rendered(report_text, r, &(struct report_options){.reference = reference});
}

static char *html_of(const struct result *r, bool reference)
{
    return rendered(report_html, r, &(struct report_options){.reference = reference});
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;

    while (*text) {
        size_t length = strcspn(text, "\n");
        longest = length > longest ? length : longest;
        text += length + (text[length] == '\n');
    }
    return longest;
}

static void numbers_have_as_many_digits_as_they_deserve(void **state)
{
    (void)state;
    char buf[FORMAT_LEN];

    assert_string_equal(format_gbit(68.484, buf, sizeof buf), "68.48");
    assert_string_equal(format_gbit(312.64, buf, sizeof buf), "312.6");
    assert_string_equal(format_gbit(1234.4, buf, sizeof buf), "1234");
    assert_string_equal(format_gbit(0.0123, buf, sizeof buf), "0.012");
    assert_string_equal(format_gbit(99.996, buf, sizeof buf), "100.0");
    assert_string_equal(format_gbit(0.0 / 0.0, buf, sizeof buf), "-");
    assert_string_equal(format_gbit(99999, buf, sizeof buf), "99999");
    assert_string_equal(format_gbit(99999.6, buf, sizeof buf), "100k");
    assert_string_equal(format_gbit(1234567, buf, sizeof buf), "1.23M");
    assert_string_equal(format_gbit(1e300, buf, sizeof buf), ">999P");
    assert_string_equal(format_ns(412, buf, sizeof buf), "412 ns");
    assert_string_equal(format_ns(87400, buf, sizeof buf), "87.4 us");
    assert_string_equal(format_ns(999600, buf, sizeof buf), "1.00 ms");
    assert_string_equal(format_ns(1.5e9, buf, sizeof buf), "1.50 s");
    assert_string_equal(format_ns(0, buf, sizeof buf), "-");
    assert_string_equal(format_rate(1310000, buf, sizeof buf), "1.31 M");
    assert_string_equal(format_rate(12400, buf, sizeof buf), "12400");
    assert_string_equal(format_ratio(0, buf, sizeof buf), "-");
    assert_string_equal(format_ratio(0.0374, buf, sizeof buf), "0.037");
}

static void text_from_outside_cannot_play_tricks_on_a_terminal(void **state)
{
    (void)state;
    char buf[32], small[6];

    assert_string_equal(report_clean("a\033[31mb\r\n\x7f", buf, sizeof buf), "a?[31mb???");
    assert_string_equal(report_clean("gr\xc3\xbc\xc3\x9f", buf, sizeof buf), "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(report_clean("\xc2\x9b"
                                     "31m",
                                     buf, sizeof buf),
                        "?31m"); /* C1 CSI */
    assert_string_equal(report_clean("\xff\xc0\xaf\xed\xa0\x80", buf, sizeof buf), "??????");
    assert_string_equal(report_clean("cut\xe2\x82", buf, sizeof buf), "cut??");
    assert_string_equal(report_clean("1234\xe2\x82\xac", small, sizeof small), "1234");
}

static void the_text_report_fits_in_its_width_in_plain_ascii(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    char *text = text_of(r, true);

    assert_true(longest_line(text) <= 100);
    for (const char *c = text; *c; c++)
        assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
    free(text);
    free(r);
}

static void the_text_report_says_what_was_measured_and_in_what_unit(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    char *text = text_of(r, false);
    static const char *const parts[] = {
        "Sample CPU 3000",
        "KVM",
        "governor: none",
        "6.1.0",
        "pages of 4 KiB",
        "load 0.25",
        "application on CPU 0, driver on CPU 1",
        "blocks of 1 MiB over 256 MiB",
        "seed 18446744073709551615",
        "lunpath bench --json out.json",
        "10^9 bits of payload",
        "75.25 Gbit/s on one thread",
        "412 ns spinning",
        "READ, Gbit/s by queue depth, 1 MiB",
        "WRITE, Gbit/s by queue depth, 1 MiB",
        "3 of 0.3 s a point",
        "costs 38 ns an I/O",
        "p99.9",
        "ram:256M in huge pages",
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!has(text, parts[i]))
            fail_msg("\"%s\" is not in the report", parts[i]);
    assert_false(has(text, "INCOMPLETE"));
    assert_false(has(text, "PUBLISHED"));
    assert_false(has(text, "\033"));
    free(text);
    free(r);
}

static void wrong_data_is_shouted_and_right_data_is_not(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    char *text = text_of(r, false);

    assert_true(has(text, "WRONG DATA: dev returned 17 wrong blocks in 1 GiB checked."));
    assert_true(has(text, "misdirected at byte 73728"));
    assert_true(has(text, "WRONG DATA, but only on a path without a guard (dev)"));
    assert_false(has(text, "NOT EVERYTHING WAS RIGHT"));
    free(text);

    r->paths[0].verify.wrong_blocks = 1;
    text = text_of(r, false);
    assert_true(has(text, "WRONG DATA: software returned 1 wrong block in"));
    assert_true(has(text, "NOT EVERYTHING WAS RIGHT"));
    free(text);

    r->paths[0].verify.wrong_blocks = r->paths[3].verify.wrong_blocks = 0;
    text = text_of(r, false);
    assert_false(has(text, "WRONG"));
    assert_false(has(text, "!"));
    assert_true(has(text, "Every byte that was checked was right"));
    r->paths[0].verify.done = false;
    free(text);
    text = text_of(r, false);
    assert_true(has(text, "1 of 5 paths was not verified"));
    free(text);
    free(r);
}

static void only_flags_that_occur_are_explained_with_their_places(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    char *text = text_of(r, false);

    assert_true(has(text, "~ wide spread: "));
    assert_true(has(text, "software READ at 1\n"));
    assert_true(has(text, "* depth not reached: "));
    assert_true(has(text, "dma-page READ at 128"));
    assert_true(has(text, "CPU bound: "));
    assert_false(has(text, "short run"));
    assert_false(has(text, "above ceiling"));
    free(text);
    free(r);
}

static void an_incomplete_result_says_so_in_every_form(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);

    r->incomplete = true;
    memset(&r->paths[4].points[RESULT_WRITE], 0, sizeof r->paths[4].points[RESULT_WRITE]);
    result_summarise(r);
    char *text = text_of(r, false), *html = html_of(r, false), *table = rendered(csv, r, NULL);
    assert_true(has(text, "INCOMPLETE"));
    assert_true(has(html, "Incomplete."));
    assert_true(has(table, ",yes,"));
    free(text);
    free(html);
    free(table);
    free(r);
}

static void a_result_of_one_depth_prints_as_one_table(void **state)
{
    (void)state;
    struct result *r = new_result(sample_preset);
    char *text = text_of(r, false), *html = html_of(r, false);

    assert_true(has(text, "THROUGHPUT at depth 32, 4 KiB blocks, random"));
    assert_true(has(text, "RND4K Q32T1"));
    assert_true(has(text, "MB/s"));
    assert_true(has(text, "file:/home/user/a-rather-long-name/disk.img"));
    assert_false(has(text, "by queue depth"));
    assert_true(longest_line(text) <= 100);
    assert_true(has(html, "RND4K Q32T1"));
    assert_false(has(html, "<svg"));
    free(text);
    free(html);
    free(r);
}

static void more_depths_than_fit_are_told_in_two_tables(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);

    r->config.depth_count = 12;
    for (unsigned i = 8; i < 12; i++)
        r->config.depths[i] = r->config.depths[i - 1] * 2;
    char *text = text_of(r, false);
    assert_true(longest_line(text) <= 100);
    assert_true(has(text, "  2048    highest@"));
    free(text);
    free(r);
}

/* Cells of a table's row that are apart. */
static unsigned cells(const char *row)
{
    unsigned n = 0;

    while (*row && *row != '\n') {
        row += strspn(row, " ");
        n += *row && *row != '\n';
        row += strcspn(row, " \n");
    }
    return n;
}

static void figures_of_a_disk_that_moves_no_data_stay_in_their_columns(void **state)
{
    static const double factors[] = {1, 1e3, 5e3, 1e5, 1e9, 1e13};
    struct result *r = new_result(sample_result);

    (void)state;
    r->config.depths[7] = 1024;
    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            r->paths[i].points[d][7].depth_asked = 1024;
    for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
        for (unsigned i = 0; i < r->path_count; i++)
            for (int d = 0; d < RESULT_DIRECTIONS; d++)
                for (unsigned n = 0; n < 8; n++)
                    r->paths[i].points[d][n].gbit_per_s *= factors[k];
        result_summarise(r);
        char *text = text_of(r, false);
        const char *table = strstr(text, "by queue depth");
        assert_non_null(table);
        const char *row = strstr(table, "\nsoftware"), *rest = strstr(row + 1, "\nsoftware");
        assert_int_equal(cells(row + 1), 1 + 7);
        assert_int_equal(cells(rest + 1), 1 + 1 + 4 + 1); /* the summary, and "ok" */
        assert_true(longest_line(text) <= 100);
        free(text);
    }
    free(r);
}

static void a_path_that_was_not_reached_has_no_empty_facts(void **state)
{
    struct result *r = new_result(sample_result);

    (void)state;
    r->incomplete = true;
    struct result_path *p = &r->paths[4];
    p->host[0] = p->disk[0] = '\0';
    char *text = text_of(r, false), *html = html_of(r, false);
    assert_true(has(text, "Not reached before the run was ended."));
    assert_true(has(html, "Not reached before the run was ended."));
    assert_false(has(text, ": ."));
    assert_false(has(html, ": ."));
    free(text);
    free(html);
    free(r);
}

static void one_of_a_thing_has_no_plural(void **state)
{
    static const char *const wrong[] = {" 1 CPUs",         " 1 runs",  " 1 blocks",
                                        " 1 wrong blocks", " 1 times", " 1 paths",
                                        " 1 driver paths", " 1 queues"};
    struct result *r = new_result(sample_result);

    (void)state;
    r->path_count = 1;
    r->config.runs = 1;
    r->environment.cpus_online = r->environment.cpus_allowed = 1;
    r->paths[0].verify.wrong_blocks = r->paths[0].driver_restarts = 1;
    for (int verified = 0; verified < 2; verified++) {
        r->paths[0].verify.done = verified;
        char *text = text_of(r, false), *html = html_of(r, false);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            if (has(text, wrong[i]) || has(html, wrong[i]) || has(html, wrong[i] + 1))
                fail_msg("\"%s\" is in a report", wrong[i]);
        free(text);
        free(html);
        r->paths[0].verify.wrong_blocks = 0;
    }
    free(r);
}

static void the_published_figures_come_with_a_warning_and_only_when_asked(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    char *text = text_of(r, true), *html = html_of(r, true), *without = html_of(r, false);

    assert_true(has(text, "64.91"));
    assert_true(has(text, "come from other hardware"));
    assert_true(has(html, "64.91"));
    assert_true(has(html, report_published_warning));
    assert_false(has(without, "64.91"));
    free(text);
    free(html);
    free(without);
    free(r);
}

static void html_escapes_all_text_from_outside(void **state)
{
    (void)state;
    static const char evil[] = "<script>alert(\"1\")</script>&'";
    struct result *r = new_result(sample_result);
    struct result_environment *e = &r->environment;
    char *const places[] = {
        r->config.command,
        r->config.preset,
        r->config.pattern,
        e->time_utc,
        e->lunpath_version,
        e->hostname,
        e->cpu_model,
        e->kernel,
        e->os,
        e->governor,
        e->virtual_machine,
        e->clock_source,
        e->placement,
        r->limits.copy_name,
        r->paths[0].name,
        r->paths[0].stands_for,
        r->paths[0].host,
        r->paths[0].disk,
        r->paths[0].prep,
        r->paths[3].verify.first,
    };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        snprintf(places[i], 32, "%s", evil);
    r->paths[0].verify.wrong_blocks = 1;
    char *html = html_of(r, true);
    assert_false(has(html, "<script"));
    assert_true(has(html, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;"));
    free(html);

    snprintf(e->hostname, RESULT_NAME, "\" onload=x");
    html = html_of(r, true);
    assert_true(has(html, "&quot; onload=x"));
    assert_false(has(html, "\" onload=x"));
    free(html);
    free(r);
}

static void html_needs_nothing_but_itself(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    char *html = html_of(r, true);
    static const char *const outside[] = {"http:",   "https:", "src=",    "href=",  "url(",
                                          "@import", "<link",  "<script", "<iframe"};

    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        if (has(html, outside[i]))
            fail_msg("%s is in the page", outside[i]);
    assert_true(has(html, "prefers-color-scheme:dark"));
    assert_true(has(html, "@media print"));
    assert_true(has(html, "name=\"viewport\""));
    assert_false(has(html, "nan"));
    free(html);
    free(r);
}

static bool is_void(const char *name)
{
    static const char *const names[] = {"meta", "br", "!DOCTYPE"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Every tag that is opened is closed, in order. */
static void check_tags(const char *html)
{
    char open[64][12];
    size_t depth = 0;

    for (const char *c = strchr(html, '<'); c; c = strchr(c + 1, '<')) {
        char name[12] = "";
        bool closing = c[1] == '/';
        const char *start = c + 1 + closing, *end = strchr(c, '>');
        assert_non_null(end);
        size_t length = strcspn(start, " />\n");
        assert_true(length > 0 && length < sizeof name);
        memcpy(name, start, length);
        if (is_void(name) || end[-1] == '/')
            continue;
        if (!closing) {
            assert_true(depth < 64);
            strcpy(open[depth++], name);
        } else if (depth == 0 || strcmp(open[--depth], name) != 0) {
            fail_msg("</%s> closes <%s>", name, open[depth]);
        }
    }
    assert_int_equal(depth, 0);
}

static void nothing(struct result *r)
{
    memset(r, 0, sizeof *r);
}

static void html_tags_are_balanced_for_every_kind_of_result(void **state)
{
    (void)state;
    void (*const fills[])(struct result *) = {sample_result, sample_preset, nothing};

    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++) {
        struct result *r = new_result(fills[i]);
        char *html = html_of(r, true), *text = text_of(r, true);
        check_tags(html);
        assert_true(has(text, "lunpath"));
        free(html);
        free(text);
        free(r);
    }
}

static void html_draws_both_charts_and_marks_wrong_data(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    char *html = html_of(r, false);

    assert_true(has(html, "aria-label=\"READ throughput"));
    assert_true(has(html, "aria-label=\"WRITE throughput"));
    assert_false(has(html, "aria-label=\"MIXED"));
    assert_true(has(html, "dev</b>") || has(html, "dev returned wrong data"));
    assert_true(has(html, "class=\"s3 wrong\""));
    assert_false(has(html, "class=\"s0 wrong\""));
    free(html);
    free(r);
}

/* Cells of a CSV line, quotes taken into account; the line's end in *next. */
static unsigned csv_cells(const char *line, const char **next)
{
    unsigned cells = 1;
    bool quoted = false;

    for (; *line && (quoted || *line != '\n'); line++) {
        quoted ^= *line == '"';
        cells += !quoted && *line == ',';
    }
    *next = *line ? line + 1 : line;
    return cells;
}

static void csv_has_a_row_a_point_with_a_cell_a_column(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result);
    unsigned rows = 0;

    snprintf(r->paths[0].disk, RESULT_TEXT, "file:/a \"b\", c");
    char *table = rendered(csv, r, NULL);
    const char *line = table;
    unsigned columns = csv_cells(line, &line);
    for (; *line; rows++)
        assert_int_equal(csv_cells(line, &line), columns);
    assert_int_equal(rows, 5 * 2 * 8);
    assert_true(has(table, "\"file:/a \"\"b\"\", c\""));
    assert_true(has(table, "depth_not_reached cpu_bound\n"));
    free(table);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_as_many_digits_as_they_deserve),
        cmocka_unit_test(text_from_outside_cannot_play_tricks_on_a_terminal),
        cmocka_unit_test(the_text_report_fits_in_its_width_in_plain_ascii),
        cmocka_unit_test(the_text_report_says_what_was_measured_and_in_what_unit),
        cmocka_unit_test(wrong_data_is_shouted_and_right_data_is_not),
        cmocka_unit_test(only_flags_that_occur_are_explained_with_their_places),
        cmocka_unit_test(an_incomplete_result_says_so_in_every_form),
        cmocka_unit_test(a_result_of_one_depth_prints_as_one_table),
        cmocka_unit_test(more_depths_than_fit_are_told_in_two_tables),
        cmocka_unit_test(figures_of_a_disk_that_moves_no_data_stay_in_their_columns),
        cmocka_unit_test(a_path_that_was_not_reached_has_no_empty_facts),
        cmocka_unit_test(one_of_a_thing_has_no_plural),
        cmocka_unit_test(the_published_figures_come_with_a_warning_and_only_when_asked),
        cmocka_unit_test(html_escapes_all_text_from_outside),
        cmocka_unit_test(html_needs_nothing_but_itself),
        cmocka_unit_test(html_tags_are_balanced_for_every_kind_of_result),
        cmocka_unit_test(html_draws_both_charts_and_marks_wrong_data),
        cmocka_unit_test(csv_has_a_row_a_point_with_a_cell_a_column),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
