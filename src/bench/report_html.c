/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HTML report: one file with its style and its charts inside, without scripts and without a
 * byte from the network. This file has the page and its prose.
 */
#include "bench/report_html.h"

#include "bench/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void html_text(const struct html *h, const char *text)
{
    char clean[2 * RESULT_TEXT];

    for (const char *c = report_clean(text, clean, sizeof clean); *c; c++)
        switch (*c) {
        case '&':
            fputs("&amp;", h->out);
            break;
        case '<':
            fputs("&lt;", h->out);
            break;
        case '>':
            fputs("&gt;", h->out);
            break;
        case '"':
            fputs("&quot;", h->out);
            break;
        case '\'':
            fputs("&#39;", h->out);
            break;
        default:
            fputc(*c, h->out);
        }
}

char *html_ns(double ns, char *buf, size_t len)
{
    char *unit = strstr(format_ns(ns, buf, len), " us");

    if (unit)
        snprintf(unit, len - (size_t)(unit - buf), " µs");
    return buf;
}

/* Formatted first, then as html_text(): for sentences with text from outside in them. */
static void html_printf(const struct html *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void html_printf(const struct html *h, const char *fmt, ...)
{
    char text[2 * RESULT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    html_text(h, text);
}

void html_section(const struct html *h, const char *id, const char *heading)
{
    fprintf(h->out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, heading);
}

void html_section_end(const struct html *h)
{
    fputs("</section>\n", h->out);
}

void html_path_class(const struct html *h, unsigned index)
{
    fprintf(h->out, "s%u%s", index % HTML_COLOURS,
            report_path_wrong(&h->r->paths[index]) ? " wrong" : "");
}

static void page_begin(const struct html *h)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta name=\"generator\" content=\"lunpath\">\n<title>",
          h->out);
    html_printf(h, "Driver paths of %s", h->r->environment.hostname);
    fprintf(h->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", html_style);
}

/* "2 January 2026, 03:04 UTC" of "2026-01-02T03:04:05Z"; else the text as it is. */
static void html_time(const struct html *h, const char *iso)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    unsigned year, month, day, hour, minute;

    if (sscanf(iso, "%4u-%2u-%2uT%2u:%2u", &year, &month, &day, &hour, &minute) == 5 &&
        month >= 1 && month <= 12)
        fprintf(h->out, "%u %s %u, %02u:%02u UTC", day, months[month - 1], year, hour, minute);
    else
        html_text(h, iso);
}

static void page_head(const struct html *h)
{
    const struct result_config *c = &h->r->config;
    char block[FORMAT_LEN], set[FORMAT_LEN];

    fputs("<header>\n<p class=\"eyebrow\">Driver path benchmark · ", h->out);
    html_time(h, h->r->environment.time_utc);
    if (h->r->path_count == 1) {
        fputs("</p>\n<h1 class=\"url\">", h->out);
        html_text(h, h->r->paths[0].name);
    } else {
        fputs("</p>\n<h1>", h->out);
        html_printf(h, "%u driver path%s on %s", h->r->path_count, units_s(h->r->path_count),
                    h->r->environment.hostname);
    }
    fputs("</h1>\n<p class=\"lead\">", h->out);
    html_printf(h, "%s%s%c%s, blocks of %s over %s, %u %s; median of %u %s. %s", c->preset,
                c->preset[0] ? ": " : "", toupper((unsigned char)c->pattern[0]),
                c->pattern[0] ? c->pattern + 1 : "",
                format_bytes(c->block_bytes, block, sizeof block),
                format_bytes(c->working_set_bytes, set, sizeof set), c->queues,
                c->queues == 1 ? "queue" : "queues", c->runs, c->runs == 1 ? "run" : "runs",
                h->r->environment.cpu_model);
    fputs("</p>\n</header>\n", h->out);
}

static double headline(const struct html *h, const struct result_path *path, int d)
{
    return h->r->config.depth_count == 1 ? path->points[d][0].gbit_per_s
                                         : path->summary[d].mean_gbit_per_s;
}

/* The fastest path of those with right data; NULL: none. */
static const struct result_path *best_path(const struct html *h, int d)
{
    const struct result_path *best = NULL;

    for (unsigned i = 0; i < h->r->path_count; i++) {
        const struct result_path *p = &h->r->paths[i];
        if (p->summary[d].measured && !report_path_wrong(p) &&
            (!best || headline(h, p, d) > headline(h, best, d)))
            best = p;
    }
    return best;
}

static void best_key(const struct html *h, int d)
{
    const struct result_path *best = best_path(h, d);
    double ceiling = result_ceiling(h->r);
    char figure[FORMAT_LEN];

    if (!best)
        return;
    double value = headline(h, best, d);
    fprintf(h->out, "<div class=\"key\"><span>%s%s</span><b>%s <small>Gbit/s</small></b><span>",
            h->r->path_count > 1 ? "Fastest " : "", report_direction_name(d),
            format_gbit(value, figure, sizeof figure));
    if (h->r->path_count > 1)
        html_printf(h, "%s; ", best->name);
    fputs(h->r->config.depth_count > 1 ? "mean of depths 4–128" : "median of the runs", h->out);
    if (ceiling > 0)
        fprintf(h->out, "; %.*f&nbsp;%% of the ceiling", value / ceiling < 0.0995 ? 1 : 0,
                value / ceiling * 100);
    fputs("</span></div>\n", h->out);
}

static void data_key(const struct html *h)
{
    unsigned wrong = 0, right = 0, count = h->r->path_count;

    for (unsigned i = 0; i < count; i++) {
        wrong += report_path_wrong(&h->r->paths[i]);
        right += h->r->paths[i].verify.done && !report_path_wrong(&h->r->paths[i]);
    }
    fprintf(h->out, "<div class=\"key%s\"><span>Data verified</span>",
            wrong                     ? " bad"
            : right == count && count ? " good"
                                      : "");
    if (wrong)
        fprintf(h->out, "<b>%u wrong</b><span>of %u path%s; see below</span>", wrong, count,
                units_s(count));
    else if (right == count)
        fprintf(h->out, "<b>All right</b><span>every byte checked, on %s</span>",
                count == 1 ? "this path" : "every path");
    else
        fprintf(h->out, "<b>%u of %u</b><span>path%s verified</span>", right, count,
                count == 1 ? " was" : "s were");
    fputs("</div>\n", h->out);
}

static void keys(const struct html *h)
{
    double ceiling = result_ceiling(h->r);
    char figure[FORMAT_LEN];

    fputs("<div class=\"keys\">\n", h->out);
    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        best_key(h, d);
    if (ceiling > 0) {
        fprintf(h->out,
                "<div class=\"key\"><span>Ceiling of this machine</span><b>%s "
                "<small>Gbit/s</small></b><span>memory copy on %s (",
                format_gbit(ceiling, figure, sizeof figure),
                h->r->config.queues > 1 ? "all threads" : "one thread");
        html_text(h, h->r->limits.copy_name);
        fputs(")</span></div>\n", h->out);
    }
    data_key(h);
    fputs("</div>\n", h->out);
}

static void alerts(const struct html *h)
{
    char checked[FORMAT_LEN];

    if (h->r->incomplete)
        fputs("<p class=\"alert soft\"><b>Incomplete.</b> The run was ended early; this is what "
              "was measured until then.</p>\n",
              h->out);
    for (unsigned i = 0; i < h->r->path_count; i++) {
        const struct result_path *p = &h->r->paths[i];
        if (!report_path_wrong(p))
            continue;
        fputs("<p class=\"alert\"><b>", h->out);
        html_text(h, p->name);
        html_printf(h, " returned wrong data.");
        fputs("</b> ", h->out);
        html_printf(h, "%" PRIu64 " wrong %s in %s checked. %s", p->verify.wrong_blocks,
                    p->verify.wrong_blocks == 1 ? "block" : "blocks",
                    format_bytes(p->verify.checked_bytes, checked, sizeof checked),
                    p->verify.first);
        fputs(" Its speed means nothing.</p>\n", h->out);
    }
}

static void charts(const struct html *h)
{
    html_section(h, "charts", "Throughput by queue depth");
    fputs("<div class=\"charts\">\n", h->out);
    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        if (report_direction_measured(h->r, d))
            html_chart(h, d);
    fputs("</div>\n<p class=\"note\">Points are medians, the band goes from the lowest to the "
          "highest "
          "run. Hold the mouse over a point for its figures.</p>\n",
          h->out);
    html_section_end(h);
}

/* <div><dt>label</dt><dd>...</dd></div> */
static void fact(const struct html *h, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void fact(const struct html *h, const char *label, const char *fmt, ...)
{
    char text[2 * RESULT_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(h->out, "<div><dt>%s</dt><dd>", label);
    html_text(h, text[0] ? text : "-");
    fputs("</dd></div>\n", h->out);
}

static void limits(const struct html *h)
{
    const struct result_limits *l = &h->r->limits;
    char text[FORMAT_LEN];

    html_section(h, "limits", "Limits of this machine");
    fputs("<dl>\n", h->out);
    fact(h, "Memory copy, one thread", "%s Gbit/s (%s)",
         format_gbit(l->copy_gbit_per_s, text, sizeof text), l->copy_name);
    format_gbit(l->copy_all_gbit_per_s, text, sizeof text);
    fact(h, "Memory copy, all threads", "%s Gbit/s on %u", text, l->threads);
    fact(h, "memcpy of the C library", "%s Gbit/s",
         format_gbit(l->memcpy_gbit_per_s, text, sizeof text));
    fact(h, "Round trip of two processes, spinning", "%s",
         html_ns(l->round_trip_spin_ns, text, sizeof text));
    fact(h, "Round trip, sleeping, two cores", "%s",
         html_ns(l->round_trip_sleep_ns, text, sizeof text));
    fact(h, "Round trip, sleeping, one core", "%s",
         html_ns(l->round_trip_sleep_same_core_ns, text, sizeof text));
    fact(h, "Copy of 4 KiB", "%s", html_ns(l->copy_4k_ns, text, sizeof text));
    fact(h, "This tool's own cost an I/O", "%s",
         html_ns(l->tool_overhead_ns_per_io, text, sizeof text));
    fputs("</dl>\n<p class=\"note\">Measured in the same run, over the same working set.</p>\n",
          h->out);
    html_section_end(h);
}

static void environment(const struct html *h)
{
    const struct result_environment *e = &h->r->environment;
    char text[2][FORMAT_LEN];

    html_section(h, "environment", "Where it was measured");
    fputs("<dl>\n", h->out);
    fact(h, "Processor", "%s; %u CPU%s online, %u allowed", e->cpu_model, e->cpus_online,
         units_s(e->cpus_online), e->cpus_allowed);
    fact(h, "System", "%s, kernel %s", e->os, e->kernel);
    fact(h, "Memory", "%s, %s free", format_bytes(e->memory_bytes, text[0], FORMAT_LEN),
         format_bytes(e->memory_free_bytes, text[1], FORMAT_LEN));
    fact(h, "Pages", "%s, huge %s", format_bytes(e->page_bytes, text[0], FORMAT_LEN),
         format_bytes(e->huge_page_bytes, text[1], FORMAT_LEN));
    fact(h, "Last-level cache", "%s", format_bytes(e->llc_bytes, text[0], FORMAT_LEN));
    fact(h, "Virtual machine", "%s", e->virtual_machine);
    fact(h, "Frequency governor", "%s", e->governor);
    fact(h, "Load when it began", "%.2f", e->load_1min);
    fact(h, "Clock", "%s", e->clock_source);
    fact(h, "Placement", "%s", e->placement);
    fact(h, "Each point", "%u run%s of %g s after %g s of warm-up", h->r->config.runs,
         units_s(h->r->config.runs), h->r->config.seconds, h->r->config.warmup_s);
    fact(h, "Seed", "%" PRIu64, h->r->config.seed);
    fputs("</dl>\n", h->out);
    html_section_end(h);
}

/* "Host: ring. "; an interrupted run knows not all of it. */
static void path_fact(const struct html *h, const char *label, const char *value)
{
    if (value[0])
        html_printf(h, "%s: %s. ", label, value);
}

static void path_facts(const struct html *h, const struct result_path *p)
{
    char checked[FORMAT_LEN];

    fputs("<div><dt>", h->out);
    html_text(h, p->name);
    fputs("</dt><dd>", h->out);
    if (!p->host[0])
        fputs("Not reached before the run was ended. ", h->out);
    path_fact(h, "Host", p->host);
    path_fact(h, "Disk", p->disk);
    path_fact(h, "Preparation", p->prep);
    path_fact(h, "Stands for", p->stands_for);
    if (p->verify.done)
        html_printf(h, "Verified: %s, %" PRIu64 " wrong block%s. ",
                    format_bytes(p->verify.checked_bytes, checked, sizeof checked),
                    p->verify.wrong_blocks, units_s(p->verify.wrong_blocks));
    if (p->driver_restarts)
        html_printf(h, "The driver was restarted %u time%s. ", p->driver_restarts,
                    units_s(p->driver_restarts));
    if (p->warmup_slow_ratio > 1.5)
        html_printf(h, "The first requests took %.1f times as long; they are not counted. ",
                    p->warmup_slow_ratio);
    fputs("</dd></div>\n", h->out);
}

static void paths(const struct html *h)
{
    html_section(h, "paths", "The paths, as they really were");
    fputs("<dl class=\"wide\">\n", h->out);
    for (unsigned i = 0; i < h->r->path_count; i++)
        path_facts(h, &h->r->paths[i]);
    fputs("</dl>\n", h->out);
    html_section_end(h);
}

static void page_end(const struct html *h)
{
    fputs("<footer>Measured with lunpath ", h->out);
    html_text(h, h->r->environment.lunpath_version);
    fputs(": <code>", h->out);
    html_text(h, h->r->config.command);
    fputs("</code></footer>\n</main>\n</body>\n</html>\n", h->out);
}

int report_html(const struct result *r, const struct report_options *opts, FILE *out)
{
    struct html h = {r, opts, out};

    page_begin(&h);
    page_head(&h);
    keys(&h);
    alerts(&h);
    if (r->config.depth_count == 1) {
        html_single(&h);
    } else {
        charts(&h);
        html_summary(&h);
    }
    html_bars(&h);
    if (r->config.depth_count > 1)
        html_depths(&h);
    html_latency(&h);
    html_cost(&h);
    if (opts && opts->reference)
        html_reference(&h);
    html_flags(&h);
    limits(&h);
    environment(&h);
    paths(&h);
    page_end(&h);
    return ferror(out) ? -1 : 0;
}
