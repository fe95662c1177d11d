/* SPDX-License-Identifier: BSD-2-Clause */
/* Summaries over depths, flags as text, and whether a result is a failure. */
#include "bench/bench.h"

#include <stdio.h>
#include <string.h>

enum { MEAN_FROM_DEPTH = 4, MEAN_TO_DEPTH = 128 };

/* By bit number, in the order of enum result_flag. */
static const char *const flag_names[RESULT_FLAGS] = {
    "depth not reached", "not steady",   "CPU bound",     "cache suspected", "short run",
    "wide spread",       "bytes differ", "above ceiling", "I/O errors",
};

double result_ceiling(const struct result *r)
{
    return r->config.queues > 1 ? r->limits.copy_all_gbit_per_s : r->limits.copy_gbit_per_s;
}

static void summary_add(struct result_summary *s, const struct result_point *p)
{
    if (!s->measured || p->gbit_per_s > s->highest_gbit_per_s) {
        s->highest_gbit_per_s = p->gbit_per_s;
        s->highest_depth = p->depth_asked;
    }
    if (!s->measured || p->gbit_per_s < s->lowest_gbit_per_s) {
        s->lowest_gbit_per_s = p->gbit_per_s;
        s->lowest_depth = p->depth_asked;
    }
    s->measured = true;
}

static void summarise_depths(struct result_point *points, unsigned count, double ceiling,
                             struct result_summary *s)
{
    double sum = 0;
    unsigned in_mean = 0;

    memset(s, 0, sizeof *s);
    for (unsigned i = 0; i < count; i++) {
        struct result_point *p = &points[i];
        if (!p->measured)
            continue;
        p->of_ceiling = ceiling > 0 ? p->gbit_per_s / ceiling : 0;
        summary_add(s, p);
        if (p->depth_asked >= MEAN_FROM_DEPTH && p->depth_asked <= MEAN_TO_DEPTH) {
            sum += p->gbit_per_s;
            in_mean++;
        }
    }
    if (in_mean > 0)
        s->mean_gbit_per_s = sum / in_mean;
    if (ceiling > 0)
        s->of_ceiling = s->mean_gbit_per_s / ceiling;
}

void result_summarise(struct result *r)
{
    double ceiling = result_ceiling(r);

    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            summarise_depths(r->paths[i].points[d], r->config.depth_count, ceiling,
                             &r->paths[i].summary[d]);
}

char *result_flags_text(uint32_t flags, char *buf, size_t len)
{
    size_t used = 0;

    if (len > 0)
        buf[0] = '\0';
    for (unsigned bit = 0; bit < RESULT_FLAGS && used < len; bit++)
        if (flags & (1u << bit))
            used +=
                (size_t)snprintf(buf + used, len - used, "%s%s", used ? ", " : "", flag_names[bit]);
    return buf;
}

static bool point_failed(const struct result_point *p)
{
    return p->measured &&
           (p->errors > 0 || (p->flags & (RESULT_BYTES_DIFFER | RESULT_IO_ERRORS)) != 0);
}

/* A profile that prepares several pages and has no guard: wrong data is what it is there to show.
 */
static bool may_be_wrong(const struct result_path *path)
{
    const struct bench_profile *p = path->stands_for[0] ? bench_profile_find(path->name) : NULL;

    return p && p->prep != LP_PREP_NONE && !p->guard;
}

static bool path_failed(const struct result_path *path, unsigned depth_count, bool incomplete)
{
    bool measured = incomplete; /* an interrupted run owes nothing */

    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        for (unsigned i = 0; i < depth_count; i++) {
            if (point_failed(&path->points[d][i]))
                return true;
            measured |= path->points[d][i].measured;
        }
    return !measured;
}

bool result_has_surprises(const struct result *r)
{
    for (unsigned i = 0; i < r->path_count; i++) {
        const struct result_path *path = &r->paths[i];
        if ((path->verify.wrong_blocks > 0 && !may_be_wrong(path)) ||
            path_failed(path, r->config.depth_count, r->incomplete))
            return true;
    }
    return false;
}

bool result_has_failures(const struct result *r)
{
    bool wrong = false;

    for (unsigned i = 0; i < r->path_count; i++)
        wrong = wrong || r->paths[i].verify.wrong_blocks > 0;
    return wrong || result_has_surprises(r);
}
