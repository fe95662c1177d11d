/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/plan.h"

#include "base/cpu.h"
#include "base/size.h"
#include "bench/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 1024, MAX_QUEUES = 64, MIN_UNIT = 512 };
static const uint64_t least_working_set = (uint64_t)256 << 20;
static const double max_seconds = 3600;

static int usage(struct lp_error *err, const char *text)
{
    return lp_error_set(err, LP_ERROR_USAGE, 0, "%s", text);
}

static int check_paths(const struct bench_options *o, struct lp_error *err)
{
    if (o->target && o->profile_count)
        return usage(err, "a target and profiles cannot be measured in one run: give one of them");
    if (o->target && o->disk_url)
        return usage(err, "a target is a disk already: leave the disk for profiles away");
    if (!o->target && o->profile_count == 0)
        return usage(err, "nothing to measure: name at least one profile, or a target");
    if (o->profile_count > RESULT_MAX_PATHS)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%u profiles: choose %d at most",
                            o->profile_count, RESULT_MAX_PATHS);
    for (unsigned i = 0; i < o->profile_count; i++)
        for (unsigned k = 0; k < i; k++)
            if (o->profiles[i] == o->profiles[k])
                return lp_error_set(err, LP_ERROR_USAGE, 0,
                                    "profile %s is named twice: name it once",
                                    o->profiles[i]->name);
    return 0;
}

static int check_depths(const struct bench_options *o, struct lp_error *err)
{
    if (o->depth_count == 0)
        return usage(err, "no queue depth was given: choose at least one from 1 to 1024");
    if (o->depth_count > RESULT_MAX_DEPTHS)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%u queue depths: choose %d at most",
                            o->depth_count, RESULT_MAX_DEPTHS);
    for (unsigned i = 0; i < o->depth_count; i++) {
        if (o->depths[i] < 1 || o->depths[i] > MAX_DEPTH)
            return lp_error_set(err, LP_ERROR_USAGE, 0, "queue depth %u: choose from 1 to %d",
                                o->depths[i], MAX_DEPTH);
        for (unsigned k = 0; k < i; k++)
            if (o->depths[i] == o->depths[k])
                return lp_error_set(err, LP_ERROR_USAGE, 0,
                                    "queue depth %u is given twice: give it once", o->depths[i]);
    }
    return 0;
}

static int check_directions(const struct bench_options *o, struct lp_error *err)
{
    bool writes = o->directions[RESULT_WRITE] || o->directions[RESULT_MIXED];

    if (!writes && !o->directions[RESULT_READ])
        return usage(err, "neither READ nor WRITE nor a mix was chosen: choose one at least");
    if (writes && o->disk.read_only)
        return usage(err, "the disk is opened read-only and WRITE was asked for: measure READ, or "
                          "allow writing");
    if (o->directions[RESULT_MIXED] && (o->read_percent < 1 || o->read_percent > 99))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a mix with %u %% of READ is no mix: choose from 1 to 99",
                            o->read_percent);
    return 0;
}

static int check_time(const struct bench_options *o, struct lp_error *err)
{
    if (o->runs < 1 || o->runs > RESULT_MAX_RUNS)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%u run%s: choose from 1 to %d", o->runs,
                            units_s(o->runs), RESULT_MAX_RUNS);
    if (!(o->seconds > 0) || o->seconds > max_seconds)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a run of %g seconds: choose more than 0 and at most %g", o->seconds,
                            max_seconds);
    if (!(o->warmup_s >= 0) || o->warmup_s > max_seconds)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "a warm-up of %g seconds: choose 0 to %g",
                            o->warmup_s, max_seconds);
    return 0;
}

int plan_check(const struct bench_options *o, struct lp_error *err)
{
    char a[32], b[32];

    if (check_paths(o, err) != 0 || check_depths(o, err) != 0 || check_directions(o, err) != 0 ||
        check_time(o, err) != 0)
        return -1;
    if (o->host.queues < 1 || o->host.queues > MAX_QUEUES)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "%u queue%s: choose from 1 to %d",
                            o->host.queues, units_s(o->host.queues), MAX_QUEUES);
    if (o->block_bytes == 0)
        return usage(err, "a block size of 0: choose the bytes of a request, such as 4K or 1M");
    if (o->working_set_bytes && o->working_set_bytes < o->block_bytes * o->host.queues)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the working set of %s holds no block of %s for each queue: choose a "
                            "larger one",
                            size_format(o->working_set_bytes, a, sizeof a),
                            size_format(o->block_bytes, b, sizeof b));
    return 0;
}

static uint64_t round_down(uint64_t n, uint64_t to)
{
    return n / to * to;
}

uint64_t plan_working_set(const struct bench_options *o, const struct result_environment *env)
{
    uint64_t each = o->block_bytes * o->host.queues;
    uint64_t size = 4 * env->llc_bytes;

    if (o->working_set_bytes)
        return round_down(o->working_set_bytes, each);
    if (size < least_working_set)
        size = least_working_set;
    if (env->memory_free_bytes && size > env->memory_free_bytes / 4)
        size = env->memory_free_bytes / 4;
    if (size < each)
        size = each;
    return round_down(size, each);
}

int plan_check_pieces(const struct lp_host_opts *host, const struct lp_limits *disk,
                      struct lp_error *err)
{
    const struct {
        const char *name;
        uint32_t bytes; /* 0: not limited */
    } pieces[] = {{"max-transfer", host->max_transfer}, {"max-segment", host->max_segment}};

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        if (pieces[i].bytes && pieces[i].bytes < disk->block_size)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "--%s %u is below the disk's block of %u bytes: choose %u or more",
                                pieces[i].name, pieces[i].bytes, disk->block_size,
                                disk->block_size);
    return 0;
}

int plan_check_memory(const struct bench_options *o, const struct result_environment *env,
                      struct lp_error *err)
{
    const uint64_t bytes = plan_working_set(o, env);
    char want[32], have[32], block[32];

    if (!env->memory_free_bytes || bytes <= env->memory_free_bytes)
        return 0;
    size_format(env->memory_free_bytes, have, sizeof have);
    if (o->working_set_bytes)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the working set of %s does not fit into the %s of memory that are "
                            "free: choose a smaller one, or a file with --disk",
                            size_format(bytes, want, sizeof want), have);
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "one block of %s for each of the queues (%u) does not fit into the %s of "
                        "memory that are free: choose smaller blocks or fewer queues",
                        size_format(o->block_bytes, block, sizeof block), o->host.queues, have);
}

static int check_block(const struct bench_options *o, const struct plan *p,
                       const struct lp_limits *disk, struct lp_error *err)
{
    /* Without a pattern the disk's own block is enough. */
    uint32_t block = p->write || o->verify ? p->unit : disk->block_size;
    char a[32], b[32];

    if (o->block_bytes % block != 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "block size %" PRIu64 " is not a multiple of %u bytes, %s: choose one "
                            "that is",
                            o->block_bytes, block,
                            block == disk->block_size ? "the disk's block"
                                                      : "the least that can be verified");
    if (o->block_bytes > disk->size)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a block of %s is larger than the disk of %s: choose a smaller one",
                            size_format(o->block_bytes, a, sizeof a),
                            size_format(disk->size, b, sizeof b));
    return 0;
}

static int choose_working_set(const struct bench_options *o, const struct result_environment *env,
                              const struct lp_limits *disk, struct plan *p, struct lp_error *err)
{
    uint64_t each = o->block_bytes * o->host.queues;
    char a[32], b[32];

    p->working_set_bytes = plan_working_set(o, env);
    if (p->working_set_bytes <= disk->size)
        return 0;
    if (o->working_set_bytes)
        return lp_error_set(
            err, LP_ERROR_USAGE, 0,
            "the working set of %s is larger than the disk of %s: choose a smaller one",
            size_format(o->working_set_bytes, a, sizeof a), size_format(disk->size, b, sizeof b));
    p->working_set_bytes = round_down(disk->size, each);
    if (p->working_set_bytes == 0)
        return lp_error_set(
            err, LP_ERROR_USAGE, 0,
            "the disk of %s holds no block of %s for each of the queues (%u): choose "
            "smaller blocks or fewer queues",
            size_format(disk->size, a, sizeof a), size_format(o->block_bytes, b, sizeof b),
            o->host.queues);
    return 0;
}

/* The whole working set if memory allows, so that timed data can be checked; else just what is in
 * flight. */
static int choose_arena(const struct bench_options *o, const struct result_environment *env,
                        struct plan *p, struct lp_error *err)
{
    uint64_t in_flight = (uint64_t)p->queues * p->max_depth * o->block_bytes;
    uint64_t memory = env->memory_free_bytes ? env->memory_free_bytes : UINT64_MAX;
    char need[32], have[32], block[32];

    p->by_address = p->working_set_bytes <= memory / 4;
    p->arena_bytes = (size_t)(p->by_address ? p->working_set_bytes : in_flight);
    if (p->by_address || in_flight <= memory / 2)
        return 0;
    return lp_error_set(
        err, LP_ERROR_USAGE, 0,
        "%u queue%s of depth %u with blocks of %s %s %s of memory, of which %s are "
        "free: choose less of one of them",
        p->queues, units_s(p->queues), p->max_depth,
        size_format(o->block_bytes, block, sizeof block), p->queues == 1 ? "needs" : "need",
        size_format(in_flight, need, sizeof need), size_format(memory, have, sizeof have));
}

static int check_cpus(const struct bench_options *o, const struct cpu_list *allowed,
                      struct lp_error *err)
{
    const int asked[] = {o->host.app_cpu, o->host.driver_cpu};

    for (unsigned side = 0; side < 2; side++) {
        bool found = asked[side] < 0;
        for (unsigned i = 0; i < allowed->count && !found; i++)
            found = allowed->cpus[i] == asked[side];
        if (!found)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "CPU %d for the %s is none that may be used here: choose another",
                                asked[side], side == 0 ? "application" : "driver");
    }
    return 0;
}

/* Both sides side by side where there are CPUs for that. With more queues than pairs of CPUs the
 * scheduler does better than any fixed place. */
static void choose_cpus(const struct bench_options *o, const struct cpu_list *allowed,
                        bool in_memory, struct plan *p)
{
    bool given = o->host.app_cpu >= 0 || o->host.driver_cpu >= 0;
    unsigned n = p->queues;

    p->app_cpu = o->host.app_cpu;
    p->driver_cpu = o->host.driver_cpu;
    if (given || !in_memory || allowed->count == 0)
        return;
    if (allowed->count == 1 && n == 1) {
        p->app_cpu = p->driver_cpu = allowed->cpus[0];
        return;
    }
    /* Queue i's sides run on app_cpu + i and driver_cpu + i: all of them must be there. */
    if (allowed->count < 2 * n || allowed->cpus[n - 1] != allowed->cpus[0] + (int)n - 1 ||
        allowed->cpus[2 * n - 1] != allowed->cpus[n] + (int)n - 1)
        return;
    p->app_cpu = allowed->cpus[0];
    p->driver_cpu = allowed->cpus[n];
}

/* Starting hosts, stamping and checking data, verifying and the limits take about so long. */
static double estimate(const struct bench_options *o, const struct plan *p)
{
    double gib = (double)p->working_set_bytes / (1 << 30);
    double points = (double)p->paths * p->directions * o->depth_count * o->runs;
    double series = (double)p->paths * p->directions * o->runs;

    return points * (o->seconds + o->warmup_s + 0.01) + series * (0.1 + gib) + p->paths * 0.5 + 2;
}

int plan_make(const struct bench_options *o, const struct result_environment *env,
              const struct lp_limits *disk, bool in_memory, struct plan *p, struct lp_error *err)
{
    struct cpu_list allowed;

    *p = (struct plan){.queues = o->host.queues, .paths = o->target ? 1 : o->profile_count};
    p->unit = disk->block_size > MIN_UNIT ? disk->block_size : MIN_UNIT;
    p->write = o->directions[RESULT_WRITE] || o->directions[RESULT_MIXED];
    for (unsigned i = 0; i < RESULT_DIRECTIONS; i++)
        p->directions += o->directions[i];
    for (unsigned i = 0; i < o->depth_count; i++)
        if (o->depths[i] > p->max_depth)
            p->max_depth = o->depths[i];
    cpu_allowed(&allowed);
    if (p->write && disk->read_only)
        return usage(err, "the disk is read-only and WRITE was asked for: measure READ only");
    if (plan_check_pieces(&o->host, disk, err) != 0 || check_block(o, p, disk, err) != 0 ||
        choose_working_set(o, env, disk, p, err) != 0 || choose_arena(o, env, p, err) != 0 ||
        check_cpus(o, &allowed, err) != 0)
        return -1;
    choose_cpus(o, &allowed, in_memory, p);
    p->seconds = estimate(o, p);
    return 0;
}

static void side_text(const char *side, int cpu, unsigned queues, char *buf, size_t len)
{
    if (cpu < 0)
        snprintf(buf, len, "%s not pinned", side);
    else if (queues == 1)
        snprintf(buf, len, "%s on CPU %d", side, cpu);
    else
        snprintf(buf, len, "%s on CPUs %d to %d", side, cpu, cpu + (int)queues - 1);
}

void plan_placement(const struct plan *p, char *buf, size_t len)
{
    char app[80], driver[80];

    side_text("application", p->app_cpu, p->queues, app, sizeof app);
    side_text("driver", p->driver_cpu, p->queues, driver, sizeof driver);
    snprintf(buf, len, "%s, %s", app, driver);
}
