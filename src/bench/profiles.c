/* SPDX-License-Identifier: BSD-2-Clause */
/* The named sets of options: profiles, presets, and the defaults of `lunpath bench`. */
#include "bench/bench.h"

#include <string.h>

static const struct bench_profile profiles[] = {
    {"software", "DriverKit, software I/O (arm64)", "ring", LP_PREP_NONE, false},
    {"dma-page", "DriverKit SCSI controller, one page a task (arm64)", "ring", LP_PREP_PAGE, true},
    {"dma-block", "DriverKit SCSI controller, one block a task (Intel)", "ring", LP_PREP_BLOCK,
     true},
    {"dev", "Dev: several pages a task, no protective layer (arm64)", "ring", LP_PREP_MULTI, false},
    {"kernel", "Dev with KEXT: attached to the kernel itself (arm64)", "inline", LP_PREP_NONE,
     false},
    {.name = NULL},
};

static const struct bench_preset presets[] = {
    {"SEQ1M Q8T1", BENCH_SEQUENTIAL, 1 << 20, 8, 1},
    {"SEQ1M Q1T1", BENCH_SEQUENTIAL, 1 << 20, 1, 1},
    {"RND4K Q32T1", BENCH_RANDOM, 4096, 32, 1},
    {"RND4K Q1T1", BENCH_RANDOM, 4096, 1, 1},
    {.name = NULL},
};

const struct bench_profile *bench_profiles(void)
{
    return profiles;
}

const struct bench_profile *bench_profile_find(const char *name)
{
    for (const struct bench_profile *p = profiles; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

const struct bench_preset *bench_presets(void)
{
    return presets;
}

const struct bench_preset *bench_preset_find(const char *name)
{
    for (const struct bench_preset *p = presets; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

/* Everything but how long and how often. */
static void options_common(struct bench_options *opts)
{
    *opts = (struct bench_options){
        .disk = LP_DISK_OPTS_DEFAULT,
        .host = LP_HOST_OPTS_DEFAULT,
        .pattern = BENCH_SEQUENTIAL,
        .directions = {[RESULT_READ] = true, [RESULT_WRITE] = true},
        .read_percent = 70,
        .block_bytes = 1 << 20,
        .seed = 1,
        .verify = true,
    };
    opts->host.host = NULL; /* each profile's */
    for (const struct bench_profile *p = profiles; p->name; p++)
        opts->profiles[opts->profile_count++] = p;
    for (unsigned depth = 1; depth <= 128; depth *= 2)
        opts->depths[opts->depth_count++] = depth;
}

void bench_options_default(struct bench_options *opts)
{
    options_common(opts);
    opts->runs = 3;
    opts->warmup_s = 0.05;
    opts->seconds = 0.25; /* 5 paths, 2 directions, 8 depths, 3 runs: 72 s, and 25 for the rest */
}

void bench_options_quick(struct bench_options *opts)
{
    options_common(opts);
    opts->runs = 1;
    opts->warmup_s = 0.01;
    opts->seconds = 0.06;
}

void bench_options_full(struct bench_options *opts)
{
    options_common(opts);
    opts->runs = 5;
    opts->warmup_s = 0.2;
    opts->seconds = 1;
}
