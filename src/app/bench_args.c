/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/bench_args.h"

#include "app/path_args.h"
#include "app/target.h"

#include <string.h>

enum own_option {
    OWN_PROFILE,
    OWN_PRESET,
    OWN_BLOCK,
    OWN_DEPTHS,
    OWN_PATTERN,
    OWN_DIRECTION,
    OWN_READ_PERCENT,
    OWN_QUEUES,
    OWN_WORKING_SET,
    OWN_QUICK,
    OWN_FULL,
    OWN_WARM_UP,
    OWN_SECONDS,
    OWN_RUNS,
    OWN_SEED,
    OWN_NO_VERIFY,
    OWN_COUNT,
    /* The table goes on with what it has in common with others. */
    AT_PATH = OWN_COUNT,
    AT_REPORT = AT_PATH + PATH_OPTION_COUNT,
    ALL_COUNT = AT_REPORT + REPORT_OPTION_COUNT,
};

_Static_assert((int)ALL_COUNT <= (int)BENCH_MAX_OPTIONS, "the callers' tables have room");

enum { MAX_QUEUES = 64, MAX_DEPTH = 1024, MAX_SECONDS = 3600 };

static const char *profile_word(unsigned i)
{
    return bench_profiles()[i].name;
}

static const char *preset_word(unsigned i)
{
    return bench_presets()[i].name;
}

static const char *pattern_word(unsigned i)
{
    static const char *const words[] = {
        [BENCH_SEQUENTIAL] = "sequential", [BENCH_RANDOM] = "random"};

    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

enum { ONLY_READ, ONLY_WRITE, BOTH, MIXED };

static const char *direction_word(unsigned i)
{
    static const char *const words[] = {
        [ONLY_READ] = "read", [ONLY_WRITE] = "write", [BOTH] = "both", [MIXED] = "mixed"};

    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const struct option own_table[OWN_COUNT] = {
    [OWN_PROFILE] = {.name = "profile",
                     .type = OPTION_WORDS,
                     .value = "NAME[,NAME]",
                     .words = profile_word,
                     .help = "of the five paths, only these",
                     .group = "What to measure:"},
    [OWN_PRESET] = {.name = "preset",
                    .type = OPTION_WORD,
                    .value = "NAME",
                    .words = preset_word,
                    .help = "SEQ1M-Q8T1, SEQ1M-Q1T1, RND4K-Q32T1 or RND4K-Q1T1"},
    [OWN_BLOCK] = {.name = "block",
                   .type = OPTION_SIZE,
                   .value = "SIZE",
                   .min = 1,
                   .max = (uint64_t)1 << 30,
                   .help = "bytes of one request (default 1M)"},
    [OWN_DEPTHS] = {.name = "depths",
                    .type = OPTION_NUMBERS,
                    .value = "N[,N]",
                    .min = 1,
                    .max = MAX_DEPTH,
                    .help = "requests in flight a queue (default 1,2,4 ... 128)"},
    [OWN_PATTERN] = {.name = "pattern",
                     .type = OPTION_WORD,
                     .value = "PATTERN",
                     .words = pattern_word,
                     .help = "sequential (default) or random"},
    [OWN_DIRECTION] = {.name = "direction",
                       .type = OPTION_WORD,
                       .value = "WHICH",
                       .words = direction_word,
                       .help = "read, write, both (default) or mixed"},
    [OWN_READ_PERCENT] = {.name = "read-percent",
                          .type = OPTION_NUMBER,
                          .value = "N",
                          .min = 1,
                          .max = 99,
                          .help = "of mixed: requests that read (default 70)"},
    [OWN_QUEUES] = {.name = "queues",
                    .type = OPTION_NUMBER,
                    .value = "N",
                    .min = 1,
                    .max = MAX_QUEUES,
                    .help = "queues, each with its own thread (default 1)"},
    [OWN_WORKING_SET] = {.name = "working-set",
                         .type = OPTION_SIZE,
                         .value = "SIZE",
                         .min = 1,
                         .max = UINT64_MAX,
                         .help = "of the disk, use the first SIZE bytes"},
    [OWN_QUICK] = {.name = "quick",
                   .type = OPTION_FLAG,
                   .help = "15 seconds in all, one short run",
                   .group = "How long and how often:"},
    [OWN_FULL] = {.name = "full", .type = OPTION_FLAG, .help = "five long runs"},
    [OWN_WARM_UP] = {.name = "warm-up",
                     .type = OPTION_SECONDS,
                     .value = "SECONDS",
                     .min = 0,
                     .max = MAX_SECONDS,
                     .help = "before each run, not counted"},
    [OWN_SECONDS] = {.name = "seconds",
                     .type = OPTION_SECONDS,
                     .value = "SECONDS",
                     .min = 0,
                     .max = MAX_SECONDS,
                     .help = "of each run of each point"},
    [OWN_RUNS] = {.name = "runs",
                  .type = OPTION_NUMBER,
                  .value = "N",
                  .min = 1,
                  .max = RESULT_MAX_RUNS,
                  .help = "the median of so many counts (default 3)"},
    [OWN_SEED] = {.name = "seed",
                  .type = OPTION_NUMBER,
                  .value = "N",
                  .min = 0,
                  .max = UINT64_MAX,
                  .help = "of data and addresses (default 1)"},
    [OWN_NO_VERIFY] = {.name = "no-verify",
                       .type = OPTION_FLAG,
                       .help = "do not check the data (the report says so)"},
};

unsigned bench_table(struct option *table)
{
    memcpy(table, own_table, sizeof own_table);
    path_options_append(table + AT_PATH);
    report_options_append(table + AT_REPORT);
    return ALL_COUNT;
}

static int usage(struct lp_error *err, const char *text)
{
    return lp_error_set(err, LP_ERROR_USAGE, 0, "%s", text);
}

static void take_load(const struct option_value *v, struct bench_options *b)
{
    if (v[OWN_BLOCK].given)
        b->block_bytes = v[OWN_BLOCK].number;
    if (v[OWN_DEPTHS].given) {
        b->depth_count = v[OWN_DEPTHS].count;
        for (unsigned i = 0; i < b->depth_count; i++)
            b->depths[i] = (unsigned)v[OWN_DEPTHS].list[i];
    }
    if (v[OWN_PATTERN].given)
        b->pattern = (enum bench_pattern)v[OWN_PATTERN].number;
    if (v[OWN_READ_PERCENT].given)
        b->read_percent = (unsigned)v[OWN_READ_PERCENT].number;
    if (v[OWN_QUEUES].given)
        b->host.queues = (unsigned)v[OWN_QUEUES].number;
    b->working_set_bytes = v[OWN_WORKING_SET].number;
}

static int take_preset(const struct option_value *v, struct bench_options *b, struct lp_error *err)
{
    static const enum own_option said[] = {OWN_BLOCK, OWN_DEPTHS, OWN_PATTERN, OWN_QUEUES};

    if (!v[OWN_PRESET].given)
        return 0;
    const struct bench_preset *preset = &bench_presets()[v[OWN_PRESET].number];
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (v[said[i]].given)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "--preset says the %s already; leave one of --preset and --%s away",
                                own_table[said[i]].name, own_table[said[i]].name);
    b->pattern = preset->pattern;
    b->block_bytes = preset->block_bytes;
    b->depths[0] = preset->depth;
    b->depth_count = 1;
    b->host.queues = preset->queues;
    snprintf(b->preset, sizeof b->preset, "%s", preset->name);
    return 0;
}

static int take_time(const struct option_value *v, struct bench_options *b, struct lp_error *err)
{
    if (v[OWN_WARM_UP].given)
        b->warmup_s = v[OWN_WARM_UP].seconds;
    if (v[OWN_SECONDS].given)
        b->seconds = v[OWN_SECONDS].seconds;
    if (v[OWN_RUNS].given)
        b->runs = (unsigned)v[OWN_RUNS].number;
    if (v[OWN_SEED].given)
        b->seed = v[OWN_SEED].number;
    b->host.seed = b->seed;
    b->verify = !v[OWN_NO_VERIFY].given;
    if (!(b->seconds > 0))
        return usage(err, "--seconds 0 measures nothing; choose more");
    return 0;
}

/* A file is only read unless it may be destroyed; everything else is read and written. */
static int take_direction(const struct option_value *v, bool read_only, struct bench_options *b,
                          struct lp_error *err)
{
    uint64_t which = read_only ? ONLY_READ : BOTH;

    if (v[OWN_DIRECTION].given)
        which = v[OWN_DIRECTION].number;
    b->directions[RESULT_READ] = which == ONLY_READ || which == BOTH;
    b->directions[RESULT_WRITE] = which == ONLY_WRITE || which == BOTH;
    b->directions[RESULT_MIXED] = which == MIXED;
    if (v[OWN_READ_PERCENT].given && which != MIXED)
        return usage(err, "--read-percent has no effect without --direction mixed");
    return 0;
}

static void take_profiles(const struct option_value *v, struct bench_options *b)
{
    if (b->target)
        b->profile_count = 0;
    if (!v[OWN_PROFILE].given)
        return;
    b->profile_count = v[OWN_PROFILE].count;
    for (unsigned i = 0; i < b->profile_count; i++)
        b->profiles[i] = &bench_profiles()[v[OWN_PROFILE].list[i]];
}

static struct path_use use_of(const struct option_value *v, const struct bench_options *b)
{
    struct path_use use = {.target = b->target};
    const struct option_value *host = &v[AT_PATH + PATH_HOST];

    for (unsigned i = 0; i < b->profile_count; i++) {
        const struct bench_profile *p = b->profiles[i];
        use.ring |= strcmp(host->given ? host->text : p->host, "inline") != 0;
        use.prepared |= p->prep != LP_PREP_NONE;
        use.multi |= p->prep == LP_PREP_MULTI;
    }
    use.writes_asked = v[OWN_DIRECTION].given && v[OWN_DIRECTION].number != ONLY_READ;
    return use;
}

static int take_target(const struct option_value *v, const struct arguments *arguments,
                       struct bench_options *b, struct lp_error *err)
{
    if (arguments->count > 1)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "there are two targets, %s and %s; bench measures one at a time",
                            arguments->items[0], arguments->items[1]);
    if (arguments->count == 0)
        return 0;
    b->target = arguments->items[0];
    if (v[OWN_PROFILE].given)
        return usage(err, "a target has a path of its own; leave --profile away, or name the disk "
                          "behind the profiles with --disk");
    if (v[AT_REPORT + REPORT_REFERENCE].given)
        return usage(err, "--reference is about the profiles and has no effect on a target; leave "
                          "it away");
    if (bench_profile_find(b->target) && !target_exists(b->target))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%s is a profile and not a target; write --profile %s", b->target,
                            b->target);
    return 0;
}

static int take_all(const struct option_value *v, const struct arguments *arguments,
                    struct bench_args *args, struct lp_error *err)
{
    struct bench_options *b = &args->bench;

    if (v[OWN_QUICK].given && v[OWN_FULL].given)
        return usage(err, "--quick and --full contradict each other; give one of them");
    if (v[OWN_QUICK].given)
        bench_options_quick(b);
    else if (v[OWN_FULL].given)
        bench_options_full(b);
    else
        bench_options_default(b);
    if (take_target(v, arguments, b, err) != 0)
        return -1;
    take_profiles(v, b);
    take_load(v, b);
    b->disk_url = v[AT_PATH + PATH_DISK].text;
    struct path_use use = use_of(v, b);

    use.iscsi = &args->iscsi;
    if (take_preset(v, b, err) != 0 || take_time(v, b, err) != 0 ||
        path_args_take(v + AT_PATH, &use, &b->host, &b->disk, err) != 0 ||
        take_direction(v, b->disk.read_only, b, err) != 0)
        return -1;
    args->profiles_named = v[OWN_PROFILE].given;
    args->destroy = v[AT_PATH + PATH_DESTROY].given;
    args->even_with_data = v[AT_PATH + PATH_EVEN_WITH_DATA].given;
    return report_files_take(v + AT_REPORT, &args->files, err);
}

int bench_args_parse(int argc, char **argv, struct bench_args *args, struct lp_error *err)
{
    struct option table[BENCH_MAX_OPTIONS];
    struct option_value values[BENCH_MAX_OPTIONS];
    const char *items[2];
    struct arguments arguments = {items, 2, 0};
    unsigned count = bench_table(table);

    memset(args, 0, sizeof *args);
    if (options_parse(table, count, argc, argv, values, &arguments, err) != 0)
        return -1;
    return take_all(values, &arguments, args, err);
}
