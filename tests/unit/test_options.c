/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of command lines, and what bench makes of them. */
#include "app/bench_args.h"
#include "app/commands.h"
#include "app/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { FLAG, NUMBER, NUMBERS, SIZE, SECONDS, WORD, WORDS, TEXT, COUNT };

static const char *colour(unsigned i)
{
    static const char *const words[] = {"red", "green", "dark blue", NULL};

    return words[i];
}

static const struct option table[COUNT] = {
    [FLAG] = {.name = "flag", .type = OPTION_FLAG, .help = "a flag", .group = "All:"},
    [NUMBER] = {.name = "number", .type = OPTION_NUMBER, .value = "N", .min = 2, .max = 9},
    [NUMBERS] = {.name = "numbers", .type = OPTION_NUMBERS, .value = "N,N", .min = 0, .max = 99},
    [SIZE] = {.name = "size", .type = OPTION_SIZE, .value = "SIZE", .min = 512, .max = 1 << 20},
    [SECONDS] = {.name = "seconds", .type = OPTION_SECONDS, .value = "S", .min = 0, .max = 60},
    [WORD] = {.name = "word", .type = OPTION_WORD, .value = "W", .words = colour},
    [WORDS] = {.name = "words", .type = OPTION_WORDS, .value = "W,W", .words = colour},
    [TEXT] = {.name = "text", .type = OPTION_TEXT, .value = "T"},
};

struct parsed {
    struct option_value v[COUNT];
    const char *items[4];
    struct arguments arguments;
    struct lp_error err;
};

enum { MAX_ARGS = 32, MAX_TEXT = 1024 };

/* Splits a line at spaces into argv; returns argc. text is the memory behind it. */
static int split(const char *line, char *text, char **argv)
{
    int argc = 0;

    assert_true(strlen(line) < MAX_TEXT);
    strcpy(text, line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < MAX_ARGS);
        argv[argc++] = word;
    }
    return argc;
}

/* text stays with the caller: values point into it. */
static int parse(const char *line, char *text, struct parsed *p)
{
    char *argv[MAX_ARGS];
    int argc = split(line, text, argv);

    memset(p, 0, sizeof *p);
    p->arguments = (struct arguments){p->items, 4, 0};
    return options_parse(table, COUNT, argc, argv, p->v, &p->arguments, &p->err);
}

static void assert_refused(const char *line, const char *sentence)
{
    char text[MAX_TEXT];
    struct parsed p;

    assert_int_equal(parse(line, text, &p), -1);
    assert_int_equal(p.err.domain, LP_ERROR_USAGE);
    assert_string_equal(p.err.msg, sentence);
}

static void values_are_taken_after_a_space_or_an_equals_sign(void **state)
{
    char text[MAX_TEXT];
    struct parsed p;

    (void)state;
    assert_int_equal(parse("--number 7 --size=4K --flag --text=a=b", text, &p), 0);
    assert_true(p.v[FLAG].given);
    assert_int_equal(p.v[NUMBER].number, 7);
    assert_int_equal(p.v[SIZE].number, 4096);
    assert_string_equal(p.v[TEXT].text, "a=b");
    assert_false(p.v[WORD].given);
    assert_int_equal(p.arguments.count, 0);
}

static void lists_words_and_seconds_are_taken(void **state)
{
    char text[MAX_TEXT];
    struct parsed p;

    (void)state;
    assert_int_equal(
        parse("--numbers 1,2,64 --words green,dark-blue --word red --seconds 0.25", text, &p), 0);
    assert_int_equal(p.v[NUMBERS].count, 3);
    assert_int_equal(p.v[NUMBERS].list[2], 64);
    assert_int_equal(p.v[WORDS].count, 2);
    assert_int_equal(p.v[WORDS].list[1], 2);
    assert_int_equal(p.v[WORD].number, 0);
    assert_true(p.v[SECONDS].seconds > 0.2499 && p.v[SECONDS].seconds < 0.2501);
}

static void what_is_no_option_is_an_argument(void **state)
{
    char text[MAX_TEXT];
    struct parsed p;

    (void)state;
    assert_int_equal(parse("disk.img --flag - -- --number", text, &p), 0);
    assert_true(p.v[FLAG].given);
    assert_int_equal(p.arguments.count, 3);
    assert_string_equal(p.items[0], "disk.img");
    assert_string_equal(p.items[1], "-");
    assert_string_equal(p.items[2], "--number");
}

static void the_nearest_option_is_named_for_an_unknown_one(void **state)
{
    (void)state;
    assert_refused("--nubmer 3", "there is no option --nubmer; did you mean --number?");
    assert_refused("--secnds=1", "there is no option --secnds; did you mean --seconds?");
    assert_refused("-flag", "there is no option -flag; did you mean --flag?");
    assert_refused("--rhubarb", "there is no option --rhubarb; --help lists all");
    assert_refused("-x", "there is no option -x; --help lists all");
}

static void an_option_stands_once_and_is_never_abbreviated(void **state)
{
    (void)state;
    assert_refused("--flag --flag", "--flag is given twice; give it once");
    assert_refused("--number 2 --number=3", "--number is given twice; give it once");
    assert_refused("--numb 3", "there is no option --numb; did you mean --number?");
}

static void a_missing_or_superfluous_value_is_refused(void **state)
{
    (void)state;
    assert_refused("--number", "--number needs a value: --number N");
    assert_refused("--text --flag", "--text needs a value: --text T");
    assert_refused("--flag=1", "--flag takes no value; leave it away");
    assert_refused("--text=",
                   "--text is given an empty value; write one, or leave the option away");
    assert_refused("a b c d e", "\"e\" is one argument too many; leave it away");
}

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    assert_refused("--number 1", "the value of --number \"1\" must be a whole number from 2 to 9");
    assert_refused("--number -3",
                   "the value of --number \"-3\" must be a whole number from 2 to 9");
    assert_refused("--size 3", "the value of --size \"3\" must be from 512 B to 1 MiB");
    assert_refused("--size 2M", "the value of --size \"2M\" must be from 512 B to 1 MiB");
    assert_refused("--seconds 61",
                   "the value of --seconds \"61\" must be seconds from 0 to 60, such as 0.5");
}

static void seconds_are_plain_decimals(void **state)
{
    static const char *const wrong[] = {"inf", "nan", "0x10", "1e1", "-1", "+1", ".", "1.2.3"};
    char line[64], text[MAX_TEXT];
    struct parsed p;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(line, sizeof line, "--seconds=%s", wrong[i]);
        assert_int_equal(parse(line, text, &p), -1);
        assert_int_equal(p.err.domain, LP_ERROR_USAGE);
    }
}

static void lists_are_bounded_and_have_no_empty_place(void **state)
{
    (void)state;
    assert_refused("--numbers 1,,2",
                   "--numbers is a list with commas and no empty or endless place, such as 1,2,4");
    assert_refused("--numbers 1,",
                   "--numbers is a list with commas and no empty or endless place, such as 1,2,4");
    assert_refused("--numbers 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
                   "--numbers takes 16 values at most");
    assert_refused("--words red,red", "--words names \"red\" twice; name it once");
}

static void the_nearest_word_is_named_for_an_unknown_one(void **state)
{
    (void)state;
    assert_refused("--word gren", "--word has no \"gren\"; did you mean \"green\"?");
    assert_refused("--words red,darkblue",
                   "--words has no \"darkblue\"; did you mean \"dark blue\"?");
    assert_refused("--word violet", "--word has no \"violet\"; it has red, green, dark blue");
}

static void distances_count_edits(void **state)
{
    char longer[100];

    (void)state;
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(words_distance("", ""), 0);
    assert_int_equal(words_distance("bench", "bench"), 0);
    assert_int_equal(words_distance("", "abc"), 3);
    assert_int_equal(words_distance("abc", ""), 3);
    assert_int_equal(words_distance("bnech", "bench"), 1);
    assert_int_equal(words_distance("depth", "depths"), 1);
    assert_int_equal(words_distance("kitten", "sitting"), 3);
    assert_int_equal(words_distance(longer, "x"), 64);
}

static void help_is_wanted_before_the_end_of_options_only(void **state)
{
    char text[MAX_TEXT];
    char *argv[MAX_ARGS];

    (void)state;
    assert_true(options_want_help(split("--nonsense --help", text, argv), argv));
    assert_true(options_want_help(split("-h", text, argv), argv));
    assert_false(options_want_help(split("-- --help", text, argv), argv));
    assert_false(options_want_help(split("file", text, argv), argv));
}

static void the_command_line_can_be_typed_again(void **state)
{
    static const struct command command = {.name = "bench"};
    char *argv[] = {"--depths", "1,2", "a b", "it's", ""};
    char text[64], small[18];

    (void)state;
    command_line_text(&command, 5, argv, text, sizeof text);
    assert_string_equal(text, "lunpath bench --depths 1,2 'a b' 'it'\\''s' ''");
    command_line_text(&command, 5, argv, small, sizeof small);
    assert_string_equal(small, "lunpath bench --d");
}

/* ---- bench ---- */

static int parse_bench(const char *line, char *text, struct bench_args *args, struct lp_error *err)
{
    char *argv[MAX_ARGS];
    int argc = split(line, text, argv);

    return bench_args_parse(argc, argv, args, err);
}

static void assert_bench_refused(const char *line, const char *part)
{
    char text[MAX_TEXT];
    struct bench_args args;
    struct lp_error err = {0};

    if (parse_bench(line, text, &args, &err) == 0)
        fail_msg("accepted: %s", line);
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    if (!strstr(err.msg, part))
        fail_msg("%s: \"%s\" does not say \"%s\"", line, err.msg, part);
}

static void bench_without_options_measures_five_profiles(void **state)
{
    char text[MAX_TEXT];
    struct bench_args args;
    struct lp_error err = {0};

    (void)state;
    assert_int_equal(parse_bench("", text, &args, &err), 0);
    assert_int_equal(args.bench.profile_count, 5);
    assert_int_equal(args.bench.depth_count, 8);
    assert_true(args.bench.directions[RESULT_READ] && args.bench.directions[RESULT_WRITE]);
    assert_false(args.bench.disk.read_only);
    assert_null(args.bench.target);
    assert_int_equal(args.bench.disk.fd, -1);
}

static void bench_takes_what_it_is_told(void **state)
{
    char text[MAX_TEXT];
    struct bench_args args;
    struct lp_error err = {0};

    (void)state;
    assert_int_equal(parse_bench("--profile dev,kernel --block 64K --depths 4 --pattern random "
                                 "--direction mixed --read-percent 30 --queues 2 --warm-up 0 "
                                 "--seconds 1.5",
                                 text, &args, &err),
                     0);
    assert_int_equal(args.bench.profile_count, 2);
    assert_string_equal(args.bench.profiles[0]->name, "dev");
    assert_int_equal(args.bench.block_bytes, 65536);
    assert_int_equal(args.bench.depth_count, 1);
    assert_int_equal(args.bench.depths[0], 4);
    assert_int_equal(args.bench.pattern, BENCH_RANDOM);
    assert_true(args.bench.directions[RESULT_MIXED]);
    assert_false(args.bench.directions[RESULT_READ] || args.bench.directions[RESULT_WRITE]);
    assert_int_equal(args.bench.read_percent, 30);
    assert_int_equal(args.bench.host.queues, 2);
    assert_true(args.bench.warmup_s < 0.001 && args.bench.seconds > 1.4);
}

static void limits_cpus_and_pages_reach_the_host(void **state)
{
    char text[MAX_TEXT];
    struct bench_args args;
    struct lp_error err = {0};

    (void)state;
    assert_int_equal(parse_bench("--page-size 16K --max-segment 8K --max-segments 5 "
                                 "--max-transfer 256K --table-entries 7 --cpus 3,3 --small-pages "
                                 "--restart-driver",
                                 text, &args, &err),
                     0);
    const struct lp_host_opts *host = &args.bench.host;
    assert_int_equal(host->page_size, 16384);
    assert_int_equal(host->max_segment, 8192);
    assert_int_equal(host->max_segments, 5);
    assert_int_equal(host->max_transfer, 262144);
    assert_int_equal(host->table_entries, 7);
    assert_int_equal(host->app_cpu, 3);
    assert_int_equal(host->driver_cpu, 3);
    assert_true(host->small_pages && host->restart_driver);
    assert_null(host->host);
}

static void a_preset_may_be_written_with_a_dash(void **state)
{
    char text[MAX_TEXT];
    struct bench_args args;
    struct lp_error err = {0};

    (void)state;
    assert_int_equal(parse_bench("--preset RND4K-Q32T1", text, &args, &err), 0);
    assert_string_equal(args.bench.preset, "RND4K Q32T1");
    assert_int_equal(args.bench.pattern, BENCH_RANDOM);
    assert_int_equal(args.bench.block_bytes, 4096);
    assert_int_equal(args.bench.depth_count, 1);
    assert_int_equal(args.bench.depths[0], 32);
}

static void a_file_is_only_read_unless_it_may_be_destroyed(void **state)
{
    char text[MAX_TEXT];
    struct bench_args args;
    struct lp_error err = {0};

    (void)state;
    assert_int_equal(parse_bench("/dev/nothing", text, &args, &err), 0);
    assert_true(args.bench.disk.read_only);
    assert_true(args.bench.directions[RESULT_READ]);
    assert_false(args.bench.directions[RESULT_WRITE]);
    assert_int_equal(args.bench.profile_count, 0);

    assert_int_equal(parse_bench("--destroy file:/dev/nothing", text, &args, &err), 0);
    assert_false(args.bench.disk.read_only);
    assert_true(args.destroy && args.bench.directions[RESULT_WRITE]);

    assert_int_equal(parse_bench("--disk fault:flip:file:x", text, &args, &err), 0);
    assert_true(args.bench.disk.read_only);
    assert_false(args.bench.directions[RESULT_WRITE]);

    assert_int_equal(parse_bench("ram:64M", text, &args, &err), 0);
    assert_false(args.bench.disk.read_only);
    assert_true(args.bench.directions[RESULT_WRITE]);
}

static void contradictions_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"--quick --full", "--quick and --full"},
        {"--profile dev disk.img", "leave --profile away"},
        {"--disk ram:1G disk.img", "--disk and a target"},
        {"--host ring disk.img", "--host is about profiles"},
        {"--page-size 4K disk.img", "--page-size is about profiles"},
        {"--restart-driver disk.img", "--restart-driver is about profiles"},
        {"--reference disk.img", "--reference is about the profiles"},
        {"a.img b.img", "two targets, a.img and b.img"},
        {"software", "write --profile software"},
        {"--preset SEQ1M-Q8T1 --depths 4", "leave one of --preset and --depths away"},
        {"--preset SEQ1M-Q8T1 --block 4K", "leave one of --preset and --block away"},
        {"--read-percent 30", "without --direction mixed"},
        {"--seconds 0", "measures nothing"},
        {"--profile software --table-entries 4", "profile dev only"},
        {"--profile kernel --restart-driver", "no driver process"},
        {"--host inline --restart-driver", "no driver process"},
        {"--profile kernel --cpus 0,1", "there is none"},
        {"--profile software --page-size 16K", "without preparation"},
        {"--page-size 8K", "must be 4K or 16K"},
        {"--cpus 0,1,2", "one for the driver"},
        {"--engine uring", "--engine is about files"},
        {"--buffered ram:1G", "--buffered is about files"},
        {"--destroy", "--destroy is about files"},
        {"--even-with-data disk.img", "no effect without --destroy"},
        {"--direction write disk.img", "add --destroy"},
        {"--direction mixed --disk file:x", "add --destroy"},
        {"--json x --html x", "cannot both go to x"},
        {"--csv - --html -", "cannot both go to -"},
        {"--csv - --reference", "neither is written"},
        {"--depths 0", "from 1 to 1024"},
        {"--runs 0", "from 1 to 32"},
        {"--block 0", "from 1 B"},
        {"--profile dam-page", "did you mean \"dma-page\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_bench_refused(cases[i][0], cases[i][1]);
}

static void every_option_has_one_line_of_help_that_fits(void **state)
{
    const struct command *const commands[] = {&command_bench, &command_verify, &command_report};
    struct option options[COMMAND_MAX_OPTIONS];

    (void)state;
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        unsigned count = commands[c]->options(options);
        assert_true(count > 0 && count <= COMMAND_MAX_OPTIONS);
        for (unsigned i = 0; i < count; i++) {
            assert_non_null(options[i].name);
            assert_non_null(options[i].help);
            assert_null(strchr(options[i].help, '\n'));
            assert_true(strlen(options[i].help) <= 53);
            assert_int_equal(options[i].value == NULL, options[i].type == OPTION_FLAG);
            for (unsigned k = 0; k < i; k++)
                assert_string_not_equal(options[i].name, options[k].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_taken_after_a_space_or_an_equals_sign),
        cmocka_unit_test(lists_words_and_seconds_are_taken),
        cmocka_unit_test(what_is_no_option_is_an_argument),
        cmocka_unit_test(the_nearest_option_is_named_for_an_unknown_one),
        cmocka_unit_test(an_option_stands_once_and_is_never_abbreviated),
        cmocka_unit_test(a_missing_or_superfluous_value_is_refused),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(seconds_are_plain_decimals),
        cmocka_unit_test(lists_are_bounded_and_have_no_empty_place),
        cmocka_unit_test(the_nearest_word_is_named_for_an_unknown_one),
        cmocka_unit_test(distances_count_edits),
        cmocka_unit_test(help_is_wanted_before_the_end_of_options_only),
        cmocka_unit_test(the_command_line_can_be_typed_again),
        cmocka_unit_test(bench_without_options_measures_five_profiles),
        cmocka_unit_test(bench_takes_what_it_is_told),
        cmocka_unit_test(limits_cpus_and_pages_reach_the_host),
        cmocka_unit_test(a_preset_may_be_written_with_a_dash),
        cmocka_unit_test(a_file_is_only_read_unless_it_may_be_destroyed),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(every_option_has_one_line_of_help_that_fits),
    };

    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
