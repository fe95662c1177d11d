/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparing two results, point by point.
 *
 * The statistic: a t-test on the logarithms of the runs. Logarithms, because noise is relative and
 * a ratio is asked for. Three runs say little about their own noise, so the noise of a path and
 * direction is pooled over its depths and both files; a point whose own runs spread over twice as
 * far is judged by its own. Many points are compared at once, so the chance of a false alarm is
 * shared out among them (Bonferroni). Runs of one result share a minute and a machine's mood, which
 * no statistic on them can see, so what is tested is not "are they equal" but "do they differ by
 * more than 3 %".
 */
#include "bench/report_int.h"
#include "bench/units.h"

#include <math.h>
#include <string.h>

static const double false_alarm = 0.05;      /* of one in all comparisons together */
static const double least_difference = 0.03; /* relative: less is never shown */
static const double wild_variance = 4;       /* of a point, against its path's */

enum { RUNS_NEEDED = 3, MEAN_FROM = 4, MEAN_TO = 128 };

struct comparison {
    const struct result *a, *b;
    FILE *out;
    unsigned points, rows; /* compared: all points, and each path and direction as a whole */
    unsigned shown, too_few;
    bool same; /* a and b are one result: no statistic is asked */
};

/* Two rows of points, one in each result. */
struct pair {
    const struct result_path *a, *b;
    int direction;
    double variance; /* pooled, of a run's logarithm */
    unsigned df;     /* degrees of freedom of it */
};

struct sample {
    unsigned n;
    double mean, squares; /* of the logarithms: mean, and sum of squared deviations */
};

/* The chance that |t| or more comes from no difference: Student's distribution with df degrees of
 * freedom, as the finite sums that exist for whole df. */
static double t_chance(double t, unsigned df)
{
    double theta = atan(fabs(t) / sqrt(df)), c = cos(theta), s = sin(theta);
    double term = df % 2 ? c : 1, sum = df % 2 && df > 1 ? c : df % 2 ? 0 : 1;

    for (unsigned k = df % 2 ? 3 : 2; k + 1 < df; k += 2) {
        term *= c * c * (k - 1) / k;
        sum += term;
    }
    double inside = df % 2 ? (theta + s * sum) * 2 / 3.14159265358979323846 : s * sum;
    return inside < 1 ? 1 - inside : 0;
}

static struct sample sample_of(const struct result_point *p)
{
    struct sample s = {0};

    if (!p || !p->measured)
        return s;
    for (unsigned i = 0; i < p->runs; i++) {
        if (!(p->run_gbit_per_s[i] > 0))
            return (struct sample){0};
        double x = log(p->run_gbit_per_s[i]), d = x - s.mean;
        s.n++;
        s.mean += d / s.n;
        s.squares += d * (x - s.mean);
    }
    return s;
}

static const struct result_point *point_at(const struct result *r, const struct result_path *path,
                                           int d, unsigned depth)
{
    for (unsigned i = 0; i < r->config.depth_count; i++)
        if (r->config.depths[i] == depth && path->points[d][i].measured)
            return &path->points[d][i];
    return NULL;
}

/* The two samples at depth index i of a; false where one is not there. */
static bool samples_at(const struct comparison *c, const struct pair *pair, unsigned i,
                       struct sample s[2])
{
    unsigned depth = c->a->config.depths[i];

    s[0] = sample_of(point_at(c->a, pair->a, pair->direction, depth));
    s[1] = sample_of(point_at(c->b, pair->b, pair->direction, depth));
    return s[0].n > 0 && s[1].n > 0;
}

static void pool_noise(const struct comparison *c, struct pair *pair)
{
    double squares = 0;
    struct sample s[2];

    pair->df = 0;
    for (unsigned i = 0; i < c->a->config.depth_count; i++)
        if (samples_at(c, pair, i, s)) {
            squares += s[0].squares + s[1].squares;
            pair->df += s[0].n + s[1].n - 2;
        }
    pair->variance = pair->df ? squares / pair->df : 0;
}

/* Is a difference of logarithms, known with that variance, surely more than the least? */
static bool differs(double difference, double variance, unsigned df, unsigned comparisons)
{
    /* The same both ways, so that exchanging the files changes nothing. */
    double beyond = fabs(difference) - log1p(least_difference);

    if (beyond <= 0 || df == 0)
        return false;
    if (variance <= 0)
        return true; /* no noise at all */
    /* Only one side counts: half the chance of both. */
    return t_chance(beyond / sqrt(variance), df) / 2 < false_alarm / comparisons;
}

static const char *verdict(const struct comparison *c, bool enough, bool different,
                           double difference)
{
    if (c->same)
        return "the same";
    if (!enough)
        return "too few runs to tell";
    return !different ? "no difference shown" : difference > 0 ? "b is faster" : "b is slower";
}

/* The noise that a point is judged by, and its degrees of freedom. */
static double point_noise(const struct pair *pair, const struct sample s[2], unsigned *df)
{
    unsigned own_df = s[0].n + s[1].n - 2;
    double own = own_df ? (s[0].squares + s[1].squares) / own_df : 0;
    bool wild = own > wild_variance * pair->variance;

    *df = wild ? own_df : pair->df;
    return wild ? own : pair->variance;
}

static void point_row(struct comparison *c, const struct pair *pair, unsigned i)
{
    struct sample s[2];
    unsigned depth = c->a->config.depths[i], df;
    char figure[2][FORMAT_LEN];

    if (!samples_at(c, pair, i, s))
        return;
    const struct result_point *pa = point_at(c->a, pair->a, pair->direction, depth);
    const struct result_point *pb = point_at(c->b, pair->b, pair->direction, depth);
    bool enough = s[0].n >= RUNS_NEEDED && s[1].n >= RUNS_NEEDED;
    double noise = point_noise(pair, s, &df);
    double difference = s[1].mean - s[0].mean;
    double variance = noise * (1.0 / s[0].n + 1.0 / s[1].n);
    bool different = enough && differs(difference, variance, df, c->points + c->rows);

    c->shown += different;
    c->too_few += !enough;
    fprintf(c->out, "  %6u  %8s  %8s  %7.3f  %5.1f %%   %s\n", depth,
            format_gbit(pa->gbit_per_s, figure[0], FORMAT_LEN),
            format_gbit(pb->gbit_per_s, figure[1], FORMAT_LEN), pb->gbit_per_s / pa->gbit_per_s,
            sqrt(noise) * 100, verdict(c, enough, different, difference));
}

/* All depths of 4 to 128 together: the mean of their logarithms. */
static void mean_row(struct comparison *c, const struct pair *pair)
{
    double sum = 0, variance = 0;
    unsigned n = 0;
    bool enough = true;
    struct sample s[2];

    for (unsigned i = 0; i < c->a->config.depth_count; i++) {
        unsigned depth = c->a->config.depths[i];
        if (depth < MEAN_FROM || depth > MEAN_TO || !samples_at(c, pair, i, s))
            continue;
        sum += s[1].mean - s[0].mean;
        variance += pair->variance * (1.0 / s[0].n + 1.0 / s[1].n);
        enough = enough && s[0].n >= RUNS_NEEDED && s[1].n >= RUNS_NEEDED;
        n++;
    }
    if (n < 2)
        return;
    double difference = sum / n;
    bool different = enough && differs(difference, variance / n / n, pair->df, c->points + c->rows);
    c->shown += different;
    fprintf(c->out, "  4..128  %8s  %8s  %7.3f  %7s   %s\n", "", "", exp(difference), "",
            verdict(c, enough, different, difference));
}

static const struct result_path *path_named(const struct result *r, const char *name)
{
    for (unsigned i = 0; i < r->path_count; i++)
        if (strcmp(r->paths[i].name, name) == 0)
            return &r->paths[i];
    return NULL;
}

static void path_alarm(const struct comparison *c, const char *which, const struct result_path *p)
{
    char first[RESULT_TEXT];

    if (report_path_wrong(p))
        fprintf(c->out, "  ! %s returned WRONG DATA, its speed means nothing. %s\n", which,
                report_clean(p->verify.first, first, sizeof first));
}

static void pair_table(struct comparison *c, const struct pair *pair)
{
    char name[RESULT_NAME];

    fprintf(c->out, "\n%s, %s\n", report_clean(pair->a->name, name, sizeof name),
            report_direction_name(pair->direction));
    path_alarm(c, "a", pair->a);
    path_alarm(c, "b", pair->b);
    fprintf(c->out, "   depth  a Gbit/s  b Gbit/s      b/a    noise\n");
    for (unsigned i = 0; i < c->a->config.depth_count; i++)
        point_row(c, pair, i);
    mean_row(c, pair);
}

/* Calls visit for each path and direction that both results have. */
static void each_pair(struct comparison *c, void (*visit)(struct comparison *, const struct pair *))
{
    for (unsigned i = 0; i < c->a->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++) {
            struct pair pair = {.a = &c->a->paths[i], .direction = d};
            pair.b = path_named(c->b, pair.a->name);
            if (!pair.b)
                continue;
            pool_noise(c, &pair);
            bool both = false;
            struct sample s[2];
            for (unsigned k = 0; k < c->a->config.depth_count; k++)
                both = both || samples_at(c, &pair, k, s);
            if (both)
                visit(c, &pair);
        }
}

static void count_pair(struct comparison *c, const struct pair *pair)
{
    struct sample s[2];

    c->rows++;
    for (unsigned i = 0; i < c->a->config.depth_count; i++)
        c->points += samples_at(c, pair, i, s);
}

static void text_differs(const struct comparison *c, const char *what, const char *a, const char *b)
{
    char clean[2][RESULT_TEXT];

    if (strcmp(a, b) != 0)
        fprintf(c->out, "  ! another %s: a \"%s\", b \"%s\"\n", what,
                report_clean(a, clean[0], RESULT_TEXT), report_clean(b, clean[1], RESULT_TEXT));
}

static void bytes_differ(const struct comparison *c, const char *what, uint64_t a, uint64_t b)
{
    char text[2][FORMAT_LEN];

    if (a != b)
        fprintf(c->out, "  ! another %s: a %s, b %s\n", what, format_bytes(a, text[0], FORMAT_LEN),
                format_bytes(b, text[1], FORMAT_LEN));
}

/* What makes the figures unlike before any statistic. */
static void unlike(const struct comparison *c)
{
    const struct result_config *ca = &c->a->config, *cb = &c->b->config;
    const struct result_environment *ea = &c->a->environment, *eb = &c->b->environment;

    bytes_differ(c, "block size", ca->block_bytes, cb->block_bytes);
    bytes_differ(c, "working set", ca->working_set_bytes, cb->working_set_bytes);
    text_differs(c, "pattern", ca->pattern, cb->pattern);
    if (ca->queues != cb->queues)
        fprintf(c->out, "  ! another number of queues: a %u, b %u\n", ca->queues, cb->queues);
    text_differs(c, "machine", ea->hostname, eb->hostname);
    text_differs(c, "CPU", ea->cpu_model, eb->cpu_model);
    text_differs(c, "kernel", ea->kernel, eb->kernel);
    text_differs(c, "lunpath", ea->lunpath_version, eb->lunpath_version);
    text_differs(c, "placement", ea->placement, eb->placement);
    if (c->a->incomplete || c->b->incomplete)
        fprintf(c->out, "  ! incomplete: %s\n",
                !c->b->incomplete  ? "a"
                : c->a->incomplete ? "a and b"
                                   : "b");
}

static void one_sided(const struct comparison *c)
{
    char name[RESULT_NAME];

    for (unsigned i = 0; i < c->a->path_count; i++)
        if (!path_named(c->b, c->a->paths[i].name))
            fprintf(c->out, "  only in a: %s\n",
                    report_clean(c->a->paths[i].name, name, sizeof name));
    for (unsigned i = 0; i < c->b->path_count; i++)
        if (!path_named(c->a, c->b->paths[i].name))
            fprintf(c->out, "  only in b: %s\n",
                    report_clean(c->b->paths[i].name, name, sizeof name));
}

static void compare_head(const struct comparison *c, const char *name_a, const char *name_b)
{
    char text[2][RESULT_TEXT], figure[2][FORMAT_LEN];
    double ceiling_a = result_ceiling(c->a), ceiling_b = result_ceiling(c->b);

    fprintf(c->out, "a  %s, %s\nb  %s, %s\n", name_a,
            report_clean(c->a->environment.time_utc, text[0], RESULT_TEXT), name_b,
            report_clean(c->b->environment.time_utc, text[1], RESULT_TEXT));
    if (c->same)
        fputs("  ! a and b are one and the same result\n", c->out);
    unlike(c);
    one_sided(c);
    if (ceiling_a > 0 && ceiling_b > 0)
        fprintf(c->out, "  ceiling (memory copy), Gbit/s: a %s, b %s, b/a %.3f\n",
                format_gbit(ceiling_a, figure[0], FORMAT_LEN),
                format_gbit(ceiling_b, figure[1], FORMAT_LEN), ceiling_b / ceiling_a);
}

static void compare_end(const struct comparison *c)
{
    fputc('\n', c->out);
    if (c->same) {
        fputs("a and b are one and the same result, so there is nothing to be shown: compare two "
              "runs.\n",
              c->out);
        return;
    }
    if (c->too_few)
        fprintf(c->out,
                "%u of %u point%s %s fewer than %d runs on a side: nothing can be shown "
                "there. Measure with --runs %d or more.\n",
                c->too_few, c->points, units_s(c->points), c->too_few == 1 ? "has" : "have",
                RUNS_NEEDED, RUNS_NEEDED);
    if (c->shown == 0)
        fputs(c->too_few == c->points ? "No verdict.\n" : "No difference shown.\n", c->out);
    else
        fprintf(c->out, "%u of %u comparisons %s a difference.\n", c->shown, c->points + c->rows,
                c->shown == 1 ? "shows" : "show");
    fputs(
        "b/a is the ratio of medians (4..128: the geometric mean of the depths' ratios). Noise is "
        "one\nstandard deviation of a run. A difference is shown when a t-test on the logarithms "
        "of the\nruns, noise pooled over the depths, says that it is more than 3 %, with a chance "
        "of a false\nalarm under 5 % in all comparisons together (Bonferroni).\n",
        c->out);
}

int report_compare(const struct result *a, const struct result *b, const char *name_a,
                   const char *name_b, FILE *out)
{
    struct comparison c = {.a = a, .b = b, .out = out, .same = memcmp(a, b, sizeof *a) == 0};

    compare_head(&c, name_a, name_b);
    each_pair(&c, count_pair);
    if (c.points == 0) {
        fputs("\nThe two have no path, direction and depth in common: nothing to compare.\n", out);
        return ferror(out) ? -1 : 0;
    }
    each_pair(&c, pair_table);
    compare_end(&c);
    return ferror(out) ? -1 : 0;
}
