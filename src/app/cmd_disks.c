/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/commands.h"
#include "base/size.h"
#include "bench/bench.h"
#include "host/host_type.h"

#include <errno.h>

static const char *prep_name(enum lp_prep prep)
{
    static const char *const names[] = {[LP_PREP_NONE] = "no preparation",
                                        [LP_PREP_PAGE] = "one page a task",
                                        [LP_PREP_MULTI] = "several pages a task",
                                        [LP_PREP_BLOCK] = "one block a task"};

    return names[prep];
}

static void print_profiles(void)
{
    puts("\nProfiles (--profile):");
    for (const struct bench_profile *p = bench_profiles(); p->name; p++) {
        printf("  %-10s %-7s %-21s %-8s stands for %s\n", p->name, p->host, prep_name(p->prep),
               p->guard ? "guarded" : "", p->stands_for);
    }
}

static void print_presets(void)
{
    char block[32];

    puts("\nPresets (--preset, also with a dash for the space):");
    for (const struct bench_preset *p = bench_presets(); p->name; p++)
        printf("  %-12s %s, blocks of %s, depth %u, queues: %u\n", p->name,
               p->pattern == BENCH_RANDOM ? "random" : "sequential",
               size_format(p->block_bytes, block, sizeof block), p->depth, p->queues);
}

static int cmd_disks(int argc, char **argv)
{
    struct lp_error err = {0};

    if (argc > 0) {
        lp_error_set(&err, LP_ERROR_USAGE, 0, "it takes no arguments; leave %s away", argv[0]);
        return command_fail(&command_disks, &err);
    }
    puts("Disks (TARGET, --disk):");
    for (const struct lp_disk_type *const *type = lp_disk_types(); *type; type++)
        printf("  %s\n", (*type)->help);
    puts("\nHosts (--host):");
    for (const struct host_type *const *type = host_types(); *type; type++)
        printf("  %-10s %s\n", (*type)->name, (*type)->help);
    print_profiles();
    print_presets();
    if (fflush(stdout) == 0)
        return STATUS_RIGHT;
    lp_error_sys(&err, errno, "the list cannot be written to stdout");
    return command_fail(&command_disks, &err);
}

const struct command command_disks = {
    .name = "disks",
    .arguments = "",
    .summary = "list the kinds of disks, hosts, profiles and presets",
    .run = cmd_disks,
};
