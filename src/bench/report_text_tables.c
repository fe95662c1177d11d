/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the text report. */
#include "bench/report_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAME = 9,          /* columns of a path's name; longer ones stand on a line of their own */
    DEPTHS_A_LINE = 8, /* columns of figures beside the summary, so that all fits in 100 */
    AT = 10,           /* columns of "68.48@64" */
};

char text_mark(const struct result_path *path, const struct result_point *p)
{
    if (!p->measured)
        return ' ';
    if (report_path_wrong(path) || p->errors ||
        (p->flags & (RESULT_BYTES_DIFFER | RESULT_IO_ERRORS)))
        return '!';
    if (p->flags & (RESULT_WIDE_SPREAD | RESULT_NOT_STEADY))
        return '~';
    /* Being bound by the CPU is what a path should be: told below, not marked. */
    return p->flags & ~(uint32_t)RESULT_CPU_BOUND ? '*' : ' ';
}

/* The first column; true when the name had to go on a line before. */
static void name_cell(const struct text *t, const char *name)
{
    char clean[RESULT_NAME];

    report_clean(name, clean, sizeof clean);
    if (strlen(clean) > NAME)
        fprintf(t->out, "%s\n%*s", clean, NAME, "");
    else
        fprintf(t->out, "%-*s", NAME, clean);
}

static const char *verified_cell(const struct result_path *p)
{
    return report_path_wrong(p) ? "NO" : p->verify.done ? "yes" : "-";
}

static void point_cell(const struct text *t, const struct result_path *path,
                       const struct result_point *p)
{
    char figure[FORMAT_LEN];

    fprintf(t->out, "%6s%c", p->measured ? format_gbit(p->gbit_per_s, figure, sizeof figure) : "-",
            text_mark(path, p));
}

/* "68.48@64" */
static void at_cell(const struct text *t, double gbit_per_s, unsigned depth, int width)
{
    char figure[FORMAT_LEN], cell[FORMAT_LEN + 16];

    snprintf(cell, sizeof cell, "%s@%u", format_gbit(gbit_per_s, figure, sizeof figure), depth);
    fprintf(t->out, "%*s", width, cell);
}

/* "69%", "3.8%" of the ceiling into ratio[FORMAT_LEN], four characters at most; "-" where there is
 * none. */
static const char *percent(double fraction, char *ratio)
{
    if (fraction <= 0)
        return "-";
    if (fraction >= 9.995) {
        snprintf(ratio, FORMAT_LEN, "%.0fx", fraction);
        return fraction < 999.5 ? ratio : ">1kx";
    }
    snprintf(ratio, FORMAT_LEN, "%.*f%%", fraction < 0.0995 ? 1 : 0, fraction * 100);
    return ratio;
}

/* Depths of four digits take a column more in each "68.48@1024", and one depth less stands in a
 * line for it. */
static int at_width(const struct result *r)
{
    for (unsigned i = 0; i < r->config.depth_count; i++)
        if (r->config.depths[i] > 999)
            return AT + 1;
    return AT;
}

static unsigned depths_a_line(const struct result *r)
{
    return at_width(r) > AT ? DEPTHS_A_LINE - 1 : DEPTHS_A_LINE;
}

static void summary_cells(const struct text *t, const struct result_path *path, int d)
{
    const int at = at_width(t->r);
    const struct result_summary *s = &path->summary[d];
    char mean[FORMAT_LEN], ratio[FORMAT_LEN];

    if (!s->measured) {
        fprintf(t->out, "%*s%6s%*s%5s%4s", at, "-", "-", at, "-", "-", verified_cell(path));
        return;
    }
    at_cell(t, s->highest_gbit_per_s, s->highest_depth, at);
    if (s->mean_gbit_per_s > 0)
        format_gbit(s->mean_gbit_per_s, mean, sizeof mean);
    else
        strcpy(mean, "-");
    fprintf(t->out, "%6s", mean);
    at_cell(t, s->lowest_gbit_per_s, s->lowest_depth, at);
    fprintf(t->out, "%5s%4s", percent(s->of_ceiling, ratio), verified_cell(path));
}

static void depth_row(const struct text *t, const struct result_path *path, int d, unsigned from,
                      unsigned to, bool last)
{
    bool alarm = report_path_wrong(path);

    if (alarm)
        text_style(t, TEXT_ALARM);
    name_cell(t, path->name);
    for (unsigned i = from; i < to; i++)
        point_cell(t, path, &path->points[d][i]);
    if (last)
        summary_cells(t, path, d);
    if (alarm)
        text_style(t, TEXT_PLAIN);
    fputc('\n', t->out);
}

/* Depths from..to-1 of one direction; the last part has the summary beside it. */
static void depth_table(const struct text *t, int d, unsigned from, unsigned to, bool last)
{
    fprintf(t->out, "%-*s", NAME, "depth");
    for (unsigned i = from; i < to; i++)
        fprintf(t->out, "%6u ", t->r->config.depths[i]);
    if (last)
        fprintf(t->out, "%*s%6s%*s%5s%4s", at_width(t->r), "highest@", "mean", at_width(t->r),
                "lowest@", "ceil", "ok");
    fputc('\n', t->out);
    for (unsigned i = 0; i < t->r->path_count; i++)
        depth_row(t, &t->r->paths[i], d, from, to, last);
}

static void direction_table(const struct text *t, int d)
{
    unsigned count = t->r->config.depth_count;
    char block[FORMAT_LEN], pattern[RESULT_NAME];

    text_heading(t, "%s, Gbit/s by queue depth, %s blocks, %s", report_direction_name(d),
                 format_bytes(t->r->config.block_bytes, block, sizeof block),
                 report_clean(t->r->config.pattern, pattern, sizeof pattern));
    const unsigned a_line = depths_a_line(t->r);
    for (unsigned from = 0; from < count; from += a_line) {
        bool last = from + a_line >= count;
        depth_table(t, d, from, last ? count : from + a_line, last);
    }
}

static void single_row(const struct text *t, const struct result_path *path, int d)
{
    const struct result_point *p = &path->points[d][0];
    char low[FORMAT_LEN], high[FORMAT_LEN], rate[FORMAT_LEN], p50[FORMAT_LEN], p99[FORMAT_LEN];
    char spread[2 * FORMAT_LEN + 4], ratio[FORMAT_LEN];

    if (!p->measured)
        return;
    if (report_path_wrong(path))
        text_style(t, TEXT_ALARM);
    name_cell(t, path->name);
    fprintf(t->out, " %-6s", report_direction_name(d));
    point_cell(t, path, p);
    snprintf(spread, sizeof spread, "%s-%s", format_gbit(p->gbit_per_s_min, low, sizeof low),
             format_gbit(p->gbit_per_s_max, high, sizeof high));
    fprintf(t->out, " %13s %9.0f %9s %9s %9s %7.1f %7s %5s", spread, p->gbit_per_s * 1e3 / 8,
            format_rate(p->ios_per_s, rate, sizeof rate),
            format_ns((double)p->lat_ns_p50, p50, sizeof p50),
            format_ns((double)p->lat_ns_p99, p99, sizeof p99), p->depth_mean,
            percent(p->of_ceiling, ratio), verified_cell(path));
    if (report_path_wrong(path))
        text_style(t, TEXT_PLAIN);
    fputc('\n', t->out);
}

/* One depth only (a preset, a target): a row a direction, with all of it beside. */
static void single_table(const struct text *t)
{
    char block[FORMAT_LEN], pattern[RESULT_NAME];

    text_heading(t, "THROUGHPUT at depth %u, %s blocks, %s", t->r->config.depths[0],
                 format_bytes(t->r->config.block_bytes, block, sizeof block),
                 report_clean(t->r->config.pattern, pattern, sizeof pattern));
    fprintf(t->out, "%-16s%5s  %13s %9s %9s %9s %9s %7s %7s %5s\n", "", "Gbit/", "lowest-", "MB/s",
            "I/O", "latency", "latency", "depth", "of the", "");
    fprintf(t->out, "%-16s%5s  %13s %9s %9s %9s %9s %7s %7s %5s\n", "path", "s", "highest run",
            "(10^6)", "a second", "p50", "p99", "reached", "ceiling", "data");
    for (unsigned i = 0; i < t->r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            single_row(t, &t->r->paths[i], d);
}

void text_throughput(const struct text *t)
{
    if (t->r->config.depth_count == 1) {
        single_table(t);
        return;
    }
    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        if (report_direction_measured(t->r, d))
            direction_table(t, d);
}

static void bar(const struct text *t, double gbit_per_s, double full, int width)
{
    int length = full > 0 ? (int)(gbit_per_s / full * width + 0.5) : 0;

    length = length < 0 ? 0 : length > width ? width : length;
    fputc('|', t->out);
    for (int i = 0; i < width; i++)
        fputc(i < length ? '#' : ' ', t->out);
    fputc('|', t->out);
}

static double bars_full(const struct result *r)
{
    double full = result_ceiling(r);

    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            if (r->paths[i].summary[d].mean_gbit_per_s > full)
                full = r->paths[i].summary[d].mean_gbit_per_s;
    return full;
}

static void bar_row(const struct text *t, const struct result_path *path, int d, double full)
{
    double mean = path->summary[d].mean_gbit_per_s;
    char figure[FORMAT_LEN];

    if (!path->summary[d].measured || mean <= 0)
        return;
    name_cell(t, path->name);
    fprintf(t->out, " %-6s", report_direction_name(d));
    bar(t, mean, full, 60);
    fprintf(t->out, " %6s%c\n", format_gbit(mean, figure, sizeof figure),
            report_path_wrong(path) ? '!' : ' ');
}

void text_bars(const struct text *t)
{
    double full = bars_full(t->r);
    char figure[FORMAT_LEN];

    if (t->r->config.depth_count == 1 || t->r->path_count < 2 || full <= 0)
        return;
    text_heading(t, "MEAN of depths 4 to 128, Gbit/s; the full width is %s",
                 format_gbit(full, figure, sizeof figure));
    for (unsigned i = 0; i < t->r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            bar_row(t, &t->r->paths[i], d, full);
}

/* The two depths that most tables show: the lowest, and 64 (or the next below). */
static unsigned shown_depths(const struct result *r, int index[2])
{
    index[0] = report_depth_index(r, 1);
    if (index[0] < 0 && r->config.depth_count > 0)
        index[0] = 0;
    index[1] = report_depth_index(r, 64);
    if (index[0] < 0)
        return 0;
    return index[1] > index[0] ? 2 : 1;
}

static void latency_cells(const struct text *t, const struct result_point *p)
{
    const uint64_t ns[] = {p->lat_ns_p50, p->lat_ns_p99, p->lat_ns_p999, p->lat_ns_max};
    char figure[FORMAT_LEN];

    for (unsigned i = 0; i < 4; i++)
        fprintf(t->out, " %9s",
                p->measured ? format_ns((double)ns[i], figure, sizeof figure) : "-");
}

static void cost_cells(const struct text *t, const struct result_point *p)
{
    if (!p->measured) {
        fprintf(t->out, " %6s %6s %7s %7s %10s", "-", "-", "-", "-", "-");
        return;
    }
    char depth[FORMAT_LEN];
    snprintf(depth, sizeof depth, "%.1f/%u", p->depth_mean, p->depth_max);
    fprintf(t->out, " %6.3f %6.3f %7.3f %7.3f %10s", p->app_cpu_s_per_gib, p->driver_cpu_s_per_gib,
            p->app_syscalls_per_io, p->driver_syscalls_per_io, depth);
}

/* Rows of path and direction, cells for each shown depth. */
static void two_depth_rows(const struct text *t, const int index[2], unsigned shown,
                           void (*cells)(const struct text *, const struct result_point *))
{
    for (unsigned i = 0; i < t->r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++) {
            const struct result_path *path = &t->r->paths[i];
            if (!path->summary[d].measured)
                continue;
            name_cell(t, path->name);
            fprintf(t->out, " %-6s", report_direction_name(d));
            for (unsigned k = 0; k < shown; k++) {
                cells(t, &path->points[d][index[k]]);
                fputs(k + 1 < shown ? " |" : "\n", t->out);
            }
        }
}

static void two_depth_head(const struct text *t, const int index[2], unsigned shown, int width,
                           const char *columns)
{
    char label[FORMAT_LEN];

    fprintf(t->out, "%16s", "");
    for (unsigned k = 0; k < shown; k++) {
        snprintf(label, sizeof label, "depth %u", t->r->config.depths[index[k]]);
        fprintf(t->out, "%*s%s", width, label, k + 1 < shown ? " |" : "\n");
    }
    fprintf(t->out, "%16s", "");
    for (unsigned k = 0; k < shown; k++)
        fprintf(t->out, "%s%s", columns, k + 1 < shown ? " |" : "\n");
}

void text_latency(const struct text *t)
{
    int index[2];
    unsigned shown = shown_depths(t->r, index);

    if (shown == 0)
        return;
    text_heading(t, "LATENCY from submission to completion, all runs together");
    two_depth_head(t, index, shown, 40, "       p50       p99     p99.9       max");
    two_depth_rows(t, index, shown, latency_cells);
}

void text_cost(const struct text *t)
{
    int index[2];
    unsigned shown = shown_depths(t->r, index);

    if (shown == 0)
        return;
    text_heading(t, "COST: CPU seconds a GiB and system calls an I/O of application and driver; "
                    "depth reached");
    two_depth_head(t, index, shown, 41, "  app s  drv s app sys drv sys   mean/max");
    two_depth_rows(t, index, shown, cost_cells);
}

static void reference_row(const struct text *t, const struct result_path *path, int d)
{
    const struct published_path *pub = report_published_find(path->name);
    const struct result_summary *s = &path->summary[d];
    const struct result_path *base = NULL;
    char cell[8][FORMAT_LEN];

    if (!pub || !s->measured)
        return;
    for (unsigned i = 0; i < t->r->path_count; i++)
        if (strcmp(t->r->paths[i].name, "software") == 0)
            base = &t->r->paths[i];
    const struct published_figures *f = &pub->figures[d];
    double pub_base = report_published_find("software")->figures[d].mean_gbit_per_s;
    double base_mean = base ? base->summary[d].mean_gbit_per_s : 0;
    int one = report_depth_index(t->r, 1);
    double qd1 = one >= 0 ? path->points[d][one].gbit_per_s : 0;
    double mean = s->mean_gbit_per_s;

    name_cell(t, path->name);
    fprintf(t->out, " %-6s %8s %8s | %8s %8s | %8s %8s | %8s %8s\n", report_direction_name(d),
            format_gbit(f->highest_gbit_per_s, cell[0], FORMAT_LEN),
            format_gbit(s->highest_gbit_per_s, cell[1], FORMAT_LEN),
            format_gbit(f->mean_gbit_per_s, cell[2], FORMAT_LEN),
            format_gbit(mean, cell[3], FORMAT_LEN),
            format_ratio(f->mean_gbit_per_s / pub_base, cell[4], FORMAT_LEN),
            format_ratio(base_mean > 0 ? mean / base_mean : 0, cell[5], FORMAT_LEN),
            format_ratio(f->depth1_gbit_per_s / f->mean_gbit_per_s, cell[6], FORMAT_LEN),
            format_ratio(mean > 0 ? qd1 / mean : 0, cell[7], FORMAT_LEN));
}

void text_reference(const struct text *t)
{
    text_heading(t, "THE PUBLISHED FIGURES beside ours");
    text_wrap(t, "  ", report_published_warning);
    fprintf(t->out, "%16s %17s | %17s | %17s | %17s\n", "", "highest, Gbit/s", "mean, Gbit/s",
            "mean / software's", "depth 1 / mean");
    fprintf(t->out, "%16s %8s %8s | %8s %8s | %8s %8s | %8s %8s\n", "", "there", "here", "there",
            "here", "there", "here", "there", "here");
    for (unsigned i = 0; i < t->r->path_count; i++)
        for (int d = RESULT_READ; d <= RESULT_WRITE; d++)
            reference_row(t, &t->r->paths[i], d);
}
