/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Charts, drawn by hand as SVG: lines by queue depth with a band from the lowest to the highest
 * run, names at the lines' ends, this machine's ceiling; and bars, which are plain boxes.
 */
#include "bench/report_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 460, HEIGHT = 330, LEFT = 36, RIGHT = 96, TOP = 14, BOTTOM = 40, LABEL_GAP = 14 };

struct plot {
    const struct html *h;
    int direction;
    double y_max; /* Gbit/s at the top */
    double y_step;
    bool with_ceiling; /* it is near enough to be drawn */
};

struct label { /* at the right end of a line */
    double y, shown_y;
    int path; /* -1: the ceiling */
};

static double x_of(const struct plot *plot, unsigned index)
{
    const struct result_config *c = &plot->h->r->config;
    unsigned lowest = c->depths[0], highest = c->depths[0];

    for (unsigned i = 1; i < c->depth_count; i++) {
        lowest = c->depths[i] < lowest ? c->depths[i] : lowest;
        highest = c->depths[i] > highest ? c->depths[i] : highest;
    }
    double first = log2(lowest), last = log2(highest);
    double part = last > first ? (log2(c->depths[index]) - first) / (last - first) : 0.5;

    return LEFT + part * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct plot *plot, double gbit_per_s)
{
    return HEIGHT - BOTTOM - gbit_per_s / plot->y_max * (HEIGHT - TOP - BOTTOM);
}

static const struct result_point *point_of(const struct plot *plot, unsigned path, unsigned index)
{
    return &plot->h->r->paths[path].points[plot->direction][index];
}

/* READ and WRITE share one scale, so that they can be compared at a glance. */
static double highest_of_all(const struct result *r)
{
    double highest = 0;

    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            for (unsigned k = 0; k < r->config.depth_count; k++)
                if (r->paths[i].points[d][k].measured)
                    highest = fmax(highest, r->paths[i].points[d][k].gbit_per_s_max);
    return highest;
}

/* A step of 1, 2 or 5 times a power of ten, and a top that is a whole number of them. */
static void scale(struct plot *plot)
{
    double ceiling = result_ceiling(plot->h->r), top = highest_of_all(plot->h->r);

    plot->with_ceiling = ceiling > 0 && ceiling < 2.5 * top;
    if (plot->with_ceiling)
        top = fmax(top, ceiling * 1.02);
    if (!(top > 0))
        top = 1;
    double power = pow(10, floor(log10(top / 5)));
    double part = top / 5 / power;
    plot->y_step = power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
    plot->y_max = ceil(top / plot->y_step) * plot->y_step;
}

static void axes(const struct plot *plot)
{
    FILE *out = plot->h->out;
    const struct result_config *c = &plot->h->r->config;
    unsigned steps = (unsigned)(plot->y_max / plot->y_step + 0.5);
    int right = WIDTH - RIGHT;

    for (unsigned i = 0; i <= steps; i++) {
        double value = i * plot->y_step, y = y_of(plot, value);
        fprintf(out, "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>",
                i ? "grid" : "axis", LEFT, right, y, y);
        fprintf(out, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT - 7, y + 4, value);
    }
    for (unsigned i = 0; i < c->depth_count; i++)
        fprintf(out,
                "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text "
                "class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n",
                x_of(plot, i), x_of(plot, i), HEIGHT - BOTTOM, HEIGHT - BOTTOM + 4, x_of(plot, i),
                HEIGHT - BOTTOM + 18, c->depths[i]);
    fprintf(out,
            "<text class=\"tick\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">queue depth</text>\n",
            (LEFT + right) / 2, HEIGHT - 5);
    if (plot->with_ceiling) {
        double y = y_of(plot, result_ceiling(plot->h->r));
        fprintf(out, "<line class=\"ceiling\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                LEFT, right, y, y);
    }
}

/* Calls draw for every unbroken run of measured points from..to-1. */
static void stretches(const struct plot *plot, unsigned path,
                      void (*draw)(const struct plot *, unsigned path, unsigned from, unsigned to))
{
    unsigned count = plot->h->r->config.depth_count, from = 0;

    while (from < count) {
        unsigned to = from;
        while (to < count && point_of(plot, path, to)->measured)
            to++;
        if (to > from)
            draw(plot, path, from, to);
        from = to + 1;
    }
}

static void draw_band(const struct plot *plot, unsigned path, unsigned from, unsigned to)
{
    FILE *out = plot->h->out;

    fputs("<path class=\"band\" d=\"M", out);
    for (unsigned i = from; i < to; i++)
        fprintf(out, "%.1f %.1f ", x_of(plot, i),
                y_of(plot, point_of(plot, path, i)->gbit_per_s_max));
    for (unsigned i = to; i-- > from;)
        fprintf(out, "%.1f %.1f ", x_of(plot, i),
                y_of(plot, point_of(plot, path, i)->gbit_per_s_min));
    fputs("Z\"/>\n", out);
}

static void draw_line(const struct plot *plot, unsigned path, unsigned from, unsigned to)
{
    FILE *out = plot->h->out;

    fputs("<path class=\"line\" d=\"M", out);
    for (unsigned i = from; i < to; i++)
        fprintf(out, "%.1f %.1f ", x_of(plot, i), y_of(plot, point_of(plot, path, i)->gbit_per_s));
    fputs("\"/>\n", out);
}

/* A shape a path, for those who do not see the colours. */
static void marker(FILE *out, unsigned path, double x, double y)
{
    static const char *const shapes[] = {
        "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0 -7.6 0Z",            /* circle */
        "M-3.4 -3.4H3.4V3.4H-3.4Z",                                     /* square */
        "M0 -4.4L4.3 3.3H-4.3Z",                                        /* triangle */
        "M0 -4.8L4.8 0L0 4.8L-4.8 0Z",                                  /* diamond */
        "M0 4.4L4.3 -3.3H-4.3Z",                                        /* triangle, upside down */
        "M-1.4 -4.4H1.4V-1.4H4.4V1.4H1.4V4.4H-1.4V1.4H-4.4V-1.4H-1.4Z", /* plus */
    };

    fprintf(out, "<path class=\"dot\" transform=\"translate(%.1f %.1f)\" d=\"%s\"/>", x, y,
            shapes[path % (sizeof shapes / sizeof shapes[0])]);
}

/* What a mouse over the point says. */
static void tip(const struct plot *plot, unsigned path, const struct result_point *p)
{
    char gbit[FORMAT_LEN], low[FORMAT_LEN], high[FORMAT_LEN], p50[FORMAT_LEN], p99[FORMAT_LEN];
    char flags[RESULT_TEXT];

    fputs("<title>", plot->h->out);
    html_text(plot->h, plot->h->r->paths[path].name);
    fprintf(plot->h->out, ", %s, depth %u: %s Gbit/s (runs %s to %s); latency p50 %s, p99 %s%s%s%s",
            report_direction_name(plot->direction), p->depth_asked,
            format_gbit(p->gbit_per_s, gbit, sizeof gbit),
            format_gbit(p->gbit_per_s_min, low, sizeof low),
            format_gbit(p->gbit_per_s_max, high, sizeof high),
            html_ns((double)p->lat_ns_p50, p50, sizeof p50),
            html_ns((double)p->lat_ns_p99, p99, sizeof p99), p->flags ? "; " : "",
            result_flags_text(p->flags, flags, sizeof flags),
            report_path_wrong(&plot->h->r->paths[path]) ? "; WRONG DATA" : "");
    fputs("</title>", plot->h->out);
}

static void points(const struct plot *plot, unsigned path)
{
    FILE *out = plot->h->out;

    for (unsigned i = 0; i < plot->h->r->config.depth_count; i++) {
        const struct result_point *p = point_of(plot, path, i);
        if (!p->measured)
            continue;
        double x = x_of(plot, i), y = y_of(plot, p->gbit_per_s);
        fprintf(out,
                "<g class=\"point\"><line class=\"whisker\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
                "y2=\"%.1f\"/>",
                x, x, y_of(plot, p->gbit_per_s_min), y_of(plot, p->gbit_per_s_max));
        marker(out, path, x, y);
        fprintf(out, "<circle class=\"hit\" cx=\"%.1f\" cy=\"%.1f\" r=\"10\"/>", x, y);
        tip(plot, path, p);
        fputs("</g>\n", out);
    }
}

static int higher_up(const void *a, const void *b)
{
    double x = ((const struct label *)a)->y, y = ((const struct label *)b)->y;

    return (x > y) - (x < y);
}

/* Labels in their order, none nearer to another than LABEL_GAP: pushed down, then up again from the
 * lower edge. */
static void spread_labels(struct label *labels, unsigned count)
{
    double edge = HEIGHT - BOTTOM;

    qsort(labels, count, sizeof labels[0], higher_up);
    for (unsigned i = 0; i < count; i++)
        labels[i].shown_y = i && labels[i].y < labels[i - 1].shown_y + LABEL_GAP
                                ? labels[i - 1].shown_y + LABEL_GAP
                                : labels[i].y;
    for (unsigned i = count; i-- > 0; edge = labels[i].shown_y - LABEL_GAP)
        if (labels[i].shown_y > edge)
            labels[i].shown_y = edge;
}

/* The last measured point's height and place; false when nothing was measured. */
static bool line_end(const struct plot *plot, unsigned path, double *x, double *y)
{
    for (unsigned i = plot->h->r->config.depth_count; i-- > 0;)
        if (point_of(plot, path, i)->measured) {
            *x = x_of(plot, i);
            *y = y_of(plot, point_of(plot, path, i)->gbit_per_s);
            return true;
        }
    return false;
}

/* At most 11 characters, the rest stands for itself. */
static void label_text(const struct plot *plot, const struct label *label)
{
    char clean[RESULT_NAME];

    if (label->path < 0) {
        fputs("ceiling", plot->h->out);
        return;
    }
    report_clean(plot->h->r->paths[label->path].name, clean, sizeof clean);
    if (strlen(clean) > 11) {
        size_t cut = 9;
        while (cut > 0 && ((unsigned char)clean[cut] & 0xc0) == 0x80)
            cut--;
        memcpy(clean + cut, "\xe2\x80\xa6", 4);
    }
    html_text(plot->h, clean);
}

static void draw_label(const struct plot *plot, const struct label *label)
{
    FILE *out = plot->h->out;
    double edge = WIDTH - RIGHT, x = edge, y = label->y;

    if (label->path >= 0) {
        line_end(plot, (unsigned)label->path, &x, &y);
        fputs("<g class=\"name ", out);
        html_path_class(plot->h, (unsigned)label->path);
        fputs("\">", out);
    } else {
        fputs("<g class=\"name ceiling-name\">", out);
    }
    fprintf(out, "<path class=\"leader\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x + 6, y, edge + 12,
            label->shown_y);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">", edge + 15, label->shown_y + 4);
    label_text(plot, label);
    fputs("</text></g>\n", out);
}

static void draw_labels(const struct plot *plot)
{
    struct label labels[RESULT_MAX_PATHS + 1];
    unsigned count = 0;
    double x;

    for (unsigned i = 0; i < plot->h->r->path_count; i++)
        if (line_end(plot, i, &x, &labels[count].y))
            labels[count++].path = (int)i;
    if (plot->with_ceiling) {
        labels[count].y = y_of(plot, result_ceiling(plot->h->r));
        labels[count++].path = -1;
    }
    spread_labels(labels, count);
    for (unsigned i = 0; i < count; i++)
        draw_label(plot, &labels[i]);
}

static void paths(const struct plot *plot)
{
    FILE *out = plot->h->out;

    for (unsigned i = 0; i < plot->h->r->path_count; i++) {
        fputs("<g class=\"", out);
        html_path_class(plot->h, i);
        fputs("\">\n", out);
        stretches(plot, i, draw_band);
        stretches(plot, i, draw_line);
        points(plot, i);
        fputs("</g>\n", out);
    }
}

void html_chart(const struct html *h, int direction)
{
    struct plot plot = {.h = h, .direction = direction};
    const char *name = report_direction_name(direction);
    char block[FORMAT_LEN];

    scale(&plot);
    fprintf(h->out,
            "<figure class=\"chart\"><figcaption><b>%s</b> <span>Gbit/s, blocks of %s</span>"
            "</figcaption>\n",
            name, format_bytes(h->r->config.block_bytes, block, sizeof block));
    fprintf(h->out,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s throughput in Gbit/s by queue "
            "depth; the tables below have the figures\">\n",
            WIDTH, HEIGHT, name);
    axes(&plot);
    paths(&plot);
    draw_labels(&plot);
    fputs("</svg></figure>\n", h->out);
}

static double bar_value(const struct html *h, const struct result_path *path, int d)
{
    return h->r->config.depth_count == 1 ? path->points[d][0].gbit_per_s
                                         : path->summary[d].mean_gbit_per_s;
}

static double bars_full(const struct html *h)
{
    double full = result_ceiling(h->r), highest = highest_of_all(h->r);

    return full > 0 && full < 4 * highest ? fmax(full, highest) : highest;
}

static void bar(const struct html *h, const struct result_path *path, int d, double full)
{
    const struct result_summary *s = &path->summary[d];
    double value = bar_value(h, path, d);
    double low = s->lowest_gbit_per_s / full * 100, high = s->highest_gbit_per_s / full * 100;
    char figure[FORMAT_LEN];

    fprintf(h->out, "<div class=\"bar d%d\"><span class=\"dir\">%s</span><span class=\"track\">", d,
            report_direction_name(d));
    fprintf(h->out, "<i style=\"width:%.2f%%\"></i>", fmin(value / full * 100, 100));
    if (h->r->config.depth_count > 1)
        fprintf(h->out, "<u style=\"left:%.2f%%;width:%.2f%%\"></u>", low, fmax(high - low, 0));
    if (result_ceiling(h->r) > 0 && result_ceiling(h->r) <= full)
        fprintf(h->out, "<s style=\"left:%.2f%%\"></s>", result_ceiling(h->r) / full * 100);
    fprintf(h->out, "</span><span class=\"value\">%s</span></div>\n",
            format_gbit(value, figure, sizeof figure));
}

void html_bars(const struct html *h)
{
    double full = bars_full(h);
    bool one = h->r->config.depth_count == 1;

    if (!(full > 0) || (one && h->r->path_count < 2))
        return;
    html_section(h, "bars", one ? "Throughput" : "Mean of depths 4 to 128");
    fputs("<div class=\"bars\">\n", h->out);
    for (unsigned i = 0; i < h->r->path_count; i++) {
        const struct result_path *path = &h->r->paths[i];
        fputs("<div class=\"group ", h->out);
        html_path_class(h, i);
        fputs("\"><div class=\"label\">", h->out);
        html_text(h, path->name);
        if (report_path_wrong(path))
            fputs(" <span class=\"badge bad\">wrong data</span>", h->out);
        fputs("</div><div>\n", h->out);
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            if (path->summary[d].measured)
                bar(h, path, d, full);
        fputs("</div></div>\n", h->out);
    }
    fprintf(h->out, "</div><p class=\"note\">Gbit/s.%s%s</p>\n",
            one ? "" : " The thin line goes from the lowest to the highest depth.",
            result_ceiling(h->r) > 0 && result_ceiling(h->r) <= full
                ? " The dashed line is the ceiling: this machine's memory copy."
                : "");
    html_section_end(h);
}
