/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_result.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape { /* of one made-up path */
    const char *name, *stands_for, *host, *prep;
    double top[2]; /* Gbit/s at large depths: READ, WRITE */
    double half;   /* depth at which half of it is reached */
};

static const struct shape shapes[] = {
    {"software", "a made-up column", "ring: driver process on CPU 1", "none", {61, 52}, 2.1},
    {"dma-page",
     "a made-up column",
     "ring: driver process on CPU 1",
     "page + guard",
     {3.1, 2.9},
     1},
    {"dma-block",
     "a made-up column",
     "ring: driver process on CPU 1",
     "block + guard",
     {24, 22},
     1.4},
    {"dev", "a made-up column", "ring: driver process on CPU 1", "multi", {11, 9.5}, 1.7},
    {"kernel", "a made-up column", "inline: in the application", "none", {70, 66}, 0.4},
};

static void sample_config(struct result_config *c)
{
    *c = (struct result_config){
        .command = "lunpath bench --json out.json",
        .pattern = "sequential",
        .block_bytes = 1 << 20,
        .working_set_bytes = 256 << 20,
        .seed = 18446744073709551615u,
        .queues = 1,
        .runs = 3,
        .warmup_s = 0.1,
        .seconds = 0.3,
        .depth_count = 8,
        .depths = {1, 2, 4, 8, 16, 32, 64, 128},
    };
}

static void sample_environment(struct result_environment *e)
{
    *e = (struct result_environment){
        .time_utc = "2026-01-02T03:04:05Z",
        .lunpath_version = "0.1.0",
        .hostname = "sample",
        .cpu_model = "Sample CPU 3000 @ 2.40GHz",
        .cpus_online = 2,
        .cpus_allowed = 2,
        .kernel = "Linux 6.1.0 x86_64",
        .os = "Debian GNU/Linux 12 (bookworm)",
        .governor = "none",
        .virtual_machine = "KVM",
        .memory_bytes = (uint64_t)8 << 30,
        .memory_free_bytes = (uint64_t)5 << 30,
        .page_bytes = 4096,
        .huge_page_bytes = 2 << 20,
        .llc_bytes = 32 << 20,
        .load_1min = 0.25,
        .clock_source = "tsc",
        .placement = "application on CPU 0, driver on CPU 1",
    };
}

static void sample_limits(struct result_limits *l)
{
    *l = (struct result_limits){
        .memcpy_gbit_per_s = 62.5,
        .copy_gbit_per_s = 75.25,
        .copy_all_gbit_per_s = 101.5,
        .threads = 2,
        .round_trip_spin_ns = 412,
        .round_trip_sleep_ns = 87400,
        .round_trip_sleep_same_core_ns = 5200,
        .tool_overhead_ns_per_io = 38.5,
        .copy_4k_ns = 96,
        .copy_name = "AVX2 streaming stores",
    };
}

static void sample_point(struct result_point *p, unsigned depth, double gbit_per_s, uint64_t block)
{
    double ios = gbit_per_s * 1e9 / 8 / (double)block;
    double latency = depth / ios * 1e9;

    *p = (struct result_point){
        .measured = true,
        .depth_asked = depth,
        .gbit_per_s = gbit_per_s,
        .ios_per_s = ios,
        .seconds = 0.3,
        .depth_mean = depth * 0.995,
        .depth_max = depth,
        .requests = (uint64_t)(ios * 0.9),
        .bytes_top = (uint64_t)(ios * 0.9) * block,
        .bytes_disk = (uint64_t)(ios * 0.9) * block,
        .lat_ns_mean = (uint64_t)latency,
        .lat_ns_p50 = (uint64_t)(latency * 0.97),
        .lat_ns_p99 = (uint64_t)(latency * 1.5),
        .lat_ns_p999 = (uint64_t)(latency * 2.1),
        .lat_ns_max = (uint64_t)(latency * 9),
        .app_cpu_s_per_gib = 0.011,
        .driver_cpu_s_per_gib = 0.13,
        .app_syscalls_per_io = 0.0125,
        .driver_syscalls_per_io = 0.0031,
        .drift = -0.01,
    };
}

static void sample_path(struct result *r, unsigned index)
{
    const struct shape *s = &shapes[index];
    struct result_path *p = &r->paths[index];

    snprintf(p->name, sizeof p->name, "%s", s->name);
    snprintf(p->stands_for, sizeof p->stands_for, "%s", s->stands_for);
    snprintf(p->host, sizeof p->host, "%s", s->host);
    snprintf(p->disk, sizeof p->disk, "ram:256M in huge pages");
    snprintf(p->prep, sizeof p->prep, "%s", s->prep);
    p->verify.done = true;
    p->verify.checked_bytes = (uint64_t)1 << 30;
    p->warmup_slow_ratio = 1.2;
    for (unsigned d = RESULT_READ; d <= RESULT_WRITE; d++)
        for (unsigned i = 0; i < r->config.depth_count; i++) {
            unsigned depth = r->config.depths[i];
            sample_point(&p->points[d][i], depth, s->top[d] * depth / (depth + s->half),
                         r->config.block_bytes);
        }
}

void sample_result(struct result *r)
{
    memset(r, 0, sizeof *r);
    sample_config(&r->config);
    sample_environment(&r->environment);
    sample_limits(&r->limits);
    r->path_count = sizeof shapes / sizeof shapes[0];
    for (unsigned i = 0; i < r->path_count; i++)
        sample_path(r, i);
    r->paths[3].verify.wrong_blocks = 17;
    snprintf(r->paths[3].verify.first, RESULT_TEXT,
             "First: misdirected at byte 73728, from the 3rd page of the request on.");
    r->paths[0].points[RESULT_READ][0].flags = RESULT_WIDE_SPREAD;
    r->paths[0].points[RESULT_WRITE][7].flags = RESULT_CPU_BOUND;
    r->paths[1].points[RESULT_READ][7].flags = RESULT_DEPTH_NOT_REACHED | RESULT_CPU_BOUND;
    sample_noise(r, 3, 0.04, 1);
    result_summarise(r);
}

void sample_preset(struct result *r)
{
    sample_result(r);
    snprintf(r->config.preset, RESULT_NAME, "RND4K Q32T1");
    snprintf(r->config.pattern, RESULT_NAME, "random");
    r->config.block_bytes = 4096;
    r->config.depth_count = 1;
    r->config.depths[0] = 32;
    r->path_count = 1;
    struct result_path *p = &r->paths[0];
    memset(p->points, 0, sizeof p->points);
    snprintf(p->name, RESULT_NAME, "file:/home/user/a-rather-long-name/disk.img");
    p->stands_for[0] = '\0';
    sample_point(&p->points[RESULT_READ][0], 32, 4.2, 4096);
    sample_noise(r, 3, 0.02, 2);
    result_summarise(r);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* About normal, standard deviation 1: the sum of twelve uniform numbers less six. */
static double normal(struct rng *rng)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += (double)(rng_next(rng) >> 11) / (double)((uint64_t)1 << 53);
    return sum;
}

static void noisy_runs(struct result_point *p, unsigned runs, double noise, struct rng *rng)
{
    double sorted[RESULT_MAX_RUNS];

    for (unsigned i = 0; i < runs; i++)
        sorted[i] = p->run_gbit_per_s[i] = p->gbit_per_s * (1 + noise * normal(rng));
    qsort(sorted, runs, sizeof sorted[0], by_size);
    p->runs = runs;
    p->gbit_per_s = (sorted[(runs - 1) / 2] + sorted[runs / 2]) / 2;
    p->gbit_per_s_min = sorted[0];
    p->gbit_per_s_max = sorted[runs - 1];
}

void sample_noise(struct result *r, unsigned runs, double noise, uint64_t seed)
{
    struct rng rng = {seed};

    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            for (unsigned k = 0; k < r->config.depth_count; k++)
                if (r->paths[i].points[d][k].measured)
                    noisy_runs(&r->paths[i].points[d][k], runs, noise, &rng);
}

void sample_scale(struct result *r, double factor)
{
    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            for (unsigned k = 0; k < r->config.depth_count; k++) {
                struct result_point *p = &r->paths[i].points[d][k];
                p->gbit_per_s *= factor;
                p->gbit_per_s_min *= factor;
                p->gbit_per_s_max *= factor;
                for (unsigned n = 0; n < p->runs; n++)
                    p->run_gbit_per_s[n] *= factor;
            }
    result_summarise(r);
}
