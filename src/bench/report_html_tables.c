/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the HTML report. */
#include "bench/report_html.h"

#include <inttypes.h>
#include <string.h>

/* The mark behind a figure, with its flags as a hint. */
static void mark(const struct html *h, const struct result_path *path, const struct result_point *p)
{
    bool bad = report_path_wrong(path) || p->errors ||
               (p->flags & (RESULT_BYTES_DIFFER | RESULT_IO_ERRORS));
    uint32_t flags = p->flags & ~(uint32_t)RESULT_CPU_BOUND;
    char text[RESULT_TEXT];

    if (!bad && flags == 0)
        return;
    const char *sign = bad ? "!" : flags & (RESULT_WIDE_SPREAD | RESULT_NOT_STEADY) ? "~" : "*";
    result_flags_text(p->flags, text, sizeof text);
    fprintf(h->out, "<span class=\"mark%s\" title=\"%s%s%s\">%s</span>", bad ? " bad" : "",
            report_path_wrong(path) ? "wrong data" : "",
            report_path_wrong(path) && text[0] ? ", " : "", text, sign);
}

static void row_begin(const struct html *h, unsigned index)
{
    const char *name = h->r->paths[index].name;

    fputs("<tr class=\"", h->out);
    html_path_class(h, index);
    fprintf(h->out, "\"><th scope=\"row\"%s><i></i>", strlen(name) > 16 ? " class=\"url\"" : "");
    html_text(h, name);
    fputs("</th>", h->out);
}

static unsigned directions_measured(const struct result_path *path)
{
    unsigned n = 0;

    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        n += path->summary[d].measured;
    return n;
}

/* A row of one direction: the path's name stands in the first of its rows and spans them. */
static void direction_row_begin(const struct html *h, unsigned index, int d, bool first, bool last)
{
    const struct result_path *path = &h->r->paths[index];

    fputs("<tr class=\"", h->out);
    html_path_class(h, index);
    fprintf(h->out, "%s%s\">", first ? "" : " more", last ? "" : " first");
    if (first) {
        fprintf(h->out, "<th scope=\"rowgroup\" rowspan=\"%u\"%s><i></i>",
                directions_measured(path), strlen(path->name) > 16 ? " class=\"url\"" : "");
        html_text(h, path->name);
        fputs("</th>", h->out);
    }
    fprintf(h->out, "<td class=\"sub\">%s</td>", report_direction_name(d));
}

/* Calls row for each measured direction of each path, between the row's begin and end. */
static void direction_rows(const struct html *h, const void *arg,
                           void (*row)(const struct html *, const struct result_path *, int d,
                                       const void *arg))
{
    for (unsigned i = 0; i < h->r->path_count; i++) {
        const struct result_path *path = &h->r->paths[i];
        unsigned done = 0, count = directions_measured(path);
        for (int d = 0; d < RESULT_DIRECTIONS; d++) {
            if (!path->summary[d].measured)
                continue;
            direction_row_begin(h, i, d, done == 0, done + 1 == count);
            row(h, path, d, arg);
            fputs("</tr>\n", h->out);
            done++;
        }
    }
}

static void table_begin(const struct html *h)
{
    fputs("<div class=\"scroll\"><table>\n<thead>", h->out);
}

static void table_end(const struct html *h)
{
    fputs("</tbody></table></div>\n", h->out);
}

static void verified_cell(const struct html *h, const struct result_path *path)
{
    fprintf(h->out, "<td class=\"gap\">%s</td>",
            report_path_wrong(path) ? "<span class=\"badge bad\">wrong</span>"
            : path->verify.done     ? "<span class=\"badge good\">right</span>"
                                    : "<span class=\"badge\">not verified</span>");
}

static void at_depth_cell(const struct html *h, double gbit_per_s, unsigned depth, const char *css)
{
    char figure[FORMAT_LEN];

    fprintf(h->out, "<td%s>%s <small>at&nbsp;%u</small></td>", css,
            format_gbit(gbit_per_s, figure, sizeof figure), depth);
}

static void summary_cells(const struct html *h, const struct result_summary *s)
{
    char figure[FORMAT_LEN];

    if (!s->measured) {
        fputs("<td class=\"gap\">–</td><td>–</td><td>–</td><td>–</td>", h->out);
        return;
    }
    at_depth_cell(h, s->highest_gbit_per_s, s->highest_depth, " class=\"gap\"");
    fprintf(h->out, "<td class=\"lead-figure\">%s</td>",
            s->mean_gbit_per_s > 0 ? format_gbit(s->mean_gbit_per_s, figure, sizeof figure) : "–");
    at_depth_cell(h, s->lowest_gbit_per_s, s->lowest_depth, "");
    if (s->of_ceiling > 0)
        fprintf(h->out, "<td>%.*f&nbsp;%%</td>", s->of_ceiling < 0.0995 ? 1 : 0,
                s->of_ceiling * 100);
    else
        fputs("<td>–</td>", h->out);
}

static void summary_head(const struct html *h)
{
    fputs("<tr><th></th>", h->out);
    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        if (report_direction_measured(h->r, d))
            fprintf(h->out, "<th colspan=\"4\" class=\"gap\"><span>%s, Gbit/s</span></th>",
                    report_direction_name(d));
    fputs("<th></th></tr>\n<tr><th>Path</th>", h->out);
    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        if (report_direction_measured(h->r, d))
            fputs("<th class=\"gap\">Highest</th><th>Mean<br>4–128</th><th>Lowest</th>"
                  "<th>Mean of<br>ceiling</th>",
                  h->out);
    fputs("<th class=\"gap\">Data</th></tr></thead>\n<tbody>\n", h->out);
}

void html_summary(const struct html *h)
{
    html_section(h, "summary", "Highest, mean and lowest");
    table_begin(h);
    summary_head(h);
    for (unsigned i = 0; i < h->r->path_count; i++) {
        row_begin(h, i);
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            if (report_direction_measured(h->r, d))
                summary_cells(h, &h->r->paths[i].summary[d]);
        verified_cell(h, &h->r->paths[i]);
        fputs("</tr>\n", h->out);
    }
    table_end(h);
    fputs("<p class=\"note\">Highest and lowest with their queue depth; the mean is over depths 4 "
          "to 128. Every figure is the median of the runs, in 10<sup>9</sup> bits of payload a "
          "second.</p>\n",
          h->out);
    html_section_end(h);
}

static void single_row(const struct html *h, const struct result_path *path, int d, const void *arg)
{
    const struct result_point *p = &path->points[d][0];
    char figure[FORMAT_LEN], low[FORMAT_LEN], high[FORMAT_LEN], rate[FORMAT_LEN];

    (void)arg;
    fprintf(h->out, "<td class=\"lead-figure\">%s",
            format_gbit(p->gbit_per_s, figure, sizeof figure));
    mark(h, path, p);
    fprintf(h->out, "</td><td>%s to %s</td><td>%.0f</td><td>%s</td><td>",
            format_gbit(p->gbit_per_s_min, low, sizeof low),
            format_gbit(p->gbit_per_s_max, high, sizeof high), p->gbit_per_s * 1e3 / 8,
            format_rate(p->ios_per_s, rate, sizeof rate));
    if (p->of_ceiling > 0)
        fprintf(h->out, "%.1f&nbsp;%%", p->of_ceiling * 100);
    else
        fputs("–", h->out);
    fputs("</td>", h->out);
    verified_cell(h, path);
}

void html_single(const struct html *h)
{
    html_section(h, "summary", "Throughput");
    table_begin(h);
    fputs("<tr><th>Path</th><th></th><th>Gbit/s</th><th>Runs, Gbit/s</th><th>MB/s</th><th>I/O a "
          "second</th><th>Of the ceiling</th><th class=\"gap\">Data</th></tr></thead>\n<tbody>\n",
          h->out);
    direction_rows(h, NULL, single_row);
    table_end(h);
    fprintf(h->out,
            "<p class=\"note\">At queue depth %u; every figure is the median of the runs. Gbit/s: "
            "10<sup>9</sup> bits of payload a second, MB/s: 10<sup>6</sup> bytes.</p>\n",
            h->r->config.depths[0]);
    html_section_end(h);
}

static void depth_cell(const struct html *h, const struct result_path *path,
                       const struct result_point *p)
{
    char figure[FORMAT_LEN], low[FORMAT_LEN], high[FORMAT_LEN];

    if (!p->measured) {
        fputs("<td>–</td>", h->out);
        return;
    }
    fprintf(h->out, "<td title=\"runs from %s to %s\">%s",
            format_gbit(p->gbit_per_s_min, low, sizeof low),
            format_gbit(p->gbit_per_s_max, high, sizeof high),
            format_gbit(p->gbit_per_s, figure, sizeof figure));
    mark(h, path, p);
    fputs("</td>", h->out);
}

static void direction_depths(const struct html *h, int d)
{
    fprintf(h->out, "<h3>%s, Gbit/s</h3>\n", report_direction_name(d));
    table_begin(h);
    fputs("<tr><th>Queue depth</th>", h->out);
    for (unsigned k = 0; k < h->r->config.depth_count; k++)
        fprintf(h->out, "<th>%u</th>", h->r->config.depths[k]);
    fputs("</tr></thead>\n<tbody>\n", h->out);
    for (unsigned i = 0; i < h->r->path_count; i++) {
        row_begin(h, i);
        for (unsigned k = 0; k < h->r->config.depth_count; k++)
            depth_cell(h, &h->r->paths[i], &h->r->paths[i].points[d][k]);
        fputs("</tr>\n", h->out);
    }
    table_end(h);
}

void html_depths(const struct html *h)
{
    html_section(h, "depths", "Every queue depth");
    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        if (report_direction_measured(h->r, d))
            direction_depths(h, d);
    html_section_end(h);
}

/* Depth 1 and 64, or the lowest measured and the next below 64. Returns how many. */
static unsigned shown_depths(const struct result *r, int index[2])
{
    index[0] = report_depth_index(r, r->config.depth_count ? r->config.depths[0] : 0);
    index[1] = report_depth_index(r, 64);
    if (index[0] < 0)
        return 0;
    return index[1] > index[0] ? 2 : 1;
}

static void latency_cells(const struct html *h, const struct result_path *path,
                          const struct result_point *p)
{
    const uint64_t ns[] = {p->lat_ns_p50, p->lat_ns_p99, p->lat_ns_p999, p->lat_ns_max};
    char figure[FORMAT_LEN];

    (void)path;
    for (unsigned i = 0; i < 4; i++) {
        char *unit = strchr(html_ns(p->measured ? (double)ns[i] : 0, figure, sizeof figure), ' ');
        if (unit)
            *unit++ = '\0';
        fprintf(h->out, "<td%s>%s <small>%s</small></td>", i ? "" : " class=\"gap\"",
                unit ? figure : "–", unit ? unit : "");
    }
}

static void cost_cells(const struct html *h, const struct result_path *path,
                       const struct result_point *p)
{
    if (!p->measured) {
        fputs("<td class=\"gap\">–</td><td>–</td><td>–</td><td>–</td><td>–</td>", h->out);
        return;
    }
    fprintf(h->out,
            "<td class=\"gap\">%.3f</td><td>%.3f</td><td>%.3f</td><td>%.3f</td><td>%.1f "
            "<small>/&nbsp;%u</small>",
            p->app_cpu_s_per_gib, p->driver_cpu_s_per_gib, p->app_syscalls_per_io,
            p->driver_syscalls_per_io, p->depth_mean, p->depth_max);
    mark(h, path, p);
    fputs("</td>", h->out);
}

typedef void cells(const struct html *h, const struct result_path *path,
                   const struct result_point *p);

struct depth_columns {
    int index[2];
    unsigned shown;
    cells *write;
};

static void depth_columns_row(const struct html *h, const struct result_path *path, int d,
                              const void *arg)
{
    const struct depth_columns *columns = arg;

    for (unsigned k = 0; k < columns->shown; k++)
        columns->write(h, path, &path->points[d][columns->index[k]]);
}

/* Rows of path and direction; columns a shown depth. head: their <th>s, span: how many. */
static void two_depths(const struct html *h, const char *head, int span, cells *write)
{
    struct depth_columns columns = {.write = write};

    columns.shown = shown_depths(h->r, columns.index);
    table_begin(h);
    fputs("<tr><th></th><th></th>", h->out);
    for (unsigned k = 0; k < columns.shown; k++)
        fprintf(h->out, "<th colspan=\"%d\" class=\"gap\"><span>Depth %u</span></th>", span,
                h->r->config.depths[columns.index[k]]);
    fputs("</tr>\n<tr><th>Path</th><th></th>", h->out);
    for (unsigned k = 0; k < columns.shown; k++)
        fputs(head, h->out);
    fputs("</tr></thead>\n<tbody>\n", h->out);
    direction_rows(h, &columns, depth_columns_row);
    table_end(h);
}

void html_latency(const struct html *h)
{
    html_section(h, "latency", "Latency");
    two_depths(h, "<th class=\"gap\">p50</th><th>p99</th><th>p99.9</th><th>Max</th>", 4,
               latency_cells);
    fputs(
        "<p class=\"note\">From submission to completion, all runs together. At a deep queue most "
        "of it is waiting for the requests ahead: the driver's own latency is that of depth "
        "1.</p>\n",
        h->out);
    html_section_end(h);
}

void html_cost(const struct html *h)
{
    html_section(h, "cost", "What it costs");
    two_depths(h,
               "<th class=\"gap\">App<br>CPU&nbsp;s/GiB</th><th>Driver<br>CPU&nbsp;s/GiB</th>"
               "<th>App<br>calls/IO</th><th>Driver<br>calls/IO</th><th>Depth<br>mean / max</th>",
               5, cost_cells);
    fputs("<p class=\"note\">Processor seconds for a GiB of payload, system calls for an I/O, and "
          "the queue depth that was really reached.</p>\n",
          h->out);
    html_section_end(h);
}

static double depth1_of(const struct html *h, const struct result_path *path, int d)
{
    int index = report_depth_index(h->r, 1);

    return index >= 0 ? path->points[d][index].gbit_per_s : 0;
}

static void pair_of_ratios(const struct html *h, double there, double here)
{
    char text[2][FORMAT_LEN];

    fprintf(h->out, "<td class=\"gap there\">%s</td><td class=\"lead-figure\">%s</td>",
            format_ratio(there, text[0], FORMAT_LEN), format_ratio(here, text[1], FORMAT_LEN));
}

static void pair_of_figures(const struct html *h, double there, double here)
{
    char text[2][FORMAT_LEN];

    fprintf(h->out, "<td class=\"gap there\">%s</td><td class=\"lead-figure\">%s</td>",
            format_gbit(there, text[0], FORMAT_LEN), format_gbit(here, text[1], FORMAT_LEN));
}

static double software_mean(const struct html *h, int d)
{
    for (unsigned i = 0; i < h->r->path_count; i++)
        if (strcmp(h->r->paths[i].name, "software") == 0)
            return h->r->paths[i].summary[d].mean_gbit_per_s;
    return 0;
}

static void reference_row(const struct html *h, const struct result_path *path, int d,
                          const void *arg)
{
    const struct published_path *pub = report_published_find(path->name);
    const struct published_path *base = report_published_find("software");
    const struct result_summary *s = &path->summary[d];
    double mean = s->mean_gbit_per_s, software = software_mean(h, d);

    (void)arg;
    if (!pub || d > RESULT_WRITE) {
        fputs("<td class=\"gap\" colspan=\"8\">nothing published</td>", h->out);
        return;
    }
    const struct published_figures *f = &pub->figures[d];
    pair_of_figures(h, f->highest_gbit_per_s, s->highest_gbit_per_s);
    pair_of_figures(h, f->mean_gbit_per_s, mean);
    pair_of_ratios(h, f->mean_gbit_per_s / base->figures[d].mean_gbit_per_s,
                   software > 0 ? mean / software : 0);
    pair_of_ratios(h, f->depth1_gbit_per_s / f->mean_gbit_per_s,
                   mean > 0 ? depth1_of(h, path, d) / mean : 0);
}

static void published_columns(const struct html *h)
{
    fputs("<dl class=\"wide\" style=\"margin-top:18px\">", h->out);
    for (const struct published_path *p = report_published(); p->profile; p++)
        fprintf(h->out, "<div><dt>%s</dt><dd>%s: %s. Can be formatted with: %s.</dd></div>\n",
                p->profile, p->column, p->mechanism, p->format);
    fputs("</dl>\n", h->out);
}

void html_reference(const struct html *h)
{
    html_section(h, "reference", "Beside the published figures");
    fprintf(h->out, "<p class=\"alert soft\" style=\"margin:0 0 18px\">%s</p>\n",
            report_published_warning);
    table_begin(h);
    fputs("<tr><th></th><th></th><th colspan=\"2\" class=\"gap\"><span>Highest, Gbit/s</span></th>"
          "<th colspan=\"2\" class=\"gap\"><span>Mean, Gbit/s</span></th><th colspan=\"2\" "
          "class=\"gap\"><span>Mean / "
          "software's</span></th><th colspan=\"2\" class=\"gap\"><span>Depth 1 / "
          "mean</span></th></tr>\n<tr><th>Path</th>"
          "<th></th>",
          h->out);
    for (int i = 0; i < 4; i++)
        fputs("<th class=\"gap\">published</th><th>here</th>", h->out);
    fputs("</tr></thead>\n<tbody>\n", h->out);
    direction_rows(h, NULL, reference_row);
    table_end(h);
    published_columns(h);
    html_section_end(h);
}

/* "software READ 1, 2; kernel WRITE (all depths)": where a flag stands. */
static void flag_places(const struct html *h, uint32_t flag)
{
    const char *between = "";

    for (unsigned i = 0; i < h->r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++) {
            const struct result_path *path = &h->r->paths[i];
            if (!(report_path_flags(h->r, path, d) & flag))
                continue;
            fputs(between, h->out);
            html_text(h, path->name);
            fprintf(h->out, " %s", report_direction_name(d));
            const char *separator = " ";
            for (unsigned k = 0; k < h->r->config.depth_count; k++)
                if (path->points[d][k].measured && (path->points[d][k].flags & flag)) {
                    fprintf(h->out, "%s%u", separator, h->r->config.depths[k]);
                    separator = ", ";
                }
            between = "; ";
        }
}

void html_flags(const struct html *h)
{
    uint32_t all = 0;
    char name[FORMAT_LEN];

    for (unsigned i = 0; i < h->r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            all |= report_path_flags(h->r, &h->r->paths[i], d);
    if (all == 0)
        return;
    html_section(h, "flags", "What to know about some figures");
    fputs("<dl class=\"wide\">\n", h->out);
    for (unsigned bit = 0; bit < RESULT_FLAGS; bit++) {
        if (!(all & (1u << bit)))
            continue;
        fprintf(h->out,
                "<div><dt class=\"sentence\">%s</dt><dd class=\"sentence\">%s.<br><span "
                "class=\"note\">At depth: ",
                result_flags_text(1u << bit, name, sizeof name), report_flag_meaning(bit));
        flag_places(h, 1u << bit);
        fputs("</span></dd></div>\n", h->out);
    }
    fputs("</dl>\n<p class=\"note\">In the tables: <b>!</b> wrong data or errors, <b>~</b> wide "
          "spread or not steady, <b>*</b> another of these. Being bound by the CPU is not marked: "
          "a path of memory copies should be.</p>\n",
          h->out);
    html_section_end(h);
}
