/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text report: plain ASCII in 100 columns (but for text from outside, which may be UTF-8), fit
 * for a terminal, a log and a mail. This file has its prose, report_text_tables.c its tables.
 */
#include "bench/report_text.h"

#include "bench/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { DEFAULT_WIDTH = 100, MIN_WIDTH = 60, MAX_WIDTH = 400, LINE = 4096 };

void text_style(const struct text *t, enum text_style style)
{
    static const char *const codes[] = {"0", "1", "1;31"};

    if (t->colour)
        fprintf(t->out, "\033[%sm", codes[style]);
}

void text_heading(const struct text *t, const char *fmt, ...)
{
    va_list ap;

    fputc('\n', t->out);
    text_style(t, TEXT_HEADING);
    va_start(ap, fmt);
    vfprintf(t->out, fmt, ap);
    va_end(ap);
    text_style(t, TEXT_PLAIN);
    fputc('\n', t->out);
}

/* Columns of UTF-8 text, as far as one column a character goes. */
static size_t columns(const char *s, size_t bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

void text_wrap(const struct text *t, const char *first, const char *words)
{
    char clean[LINE];
    size_t indent = columns(first, strlen(first));
    size_t column = indent;
    const char *word = report_clean(words, clean, sizeof clean);

    fputs(first, t->out);
    while (*word) {
        size_t bytes = strcspn(word, " ");
        size_t wide = columns(word, bytes);
        if (column > indent && column + 1 + wide > t->width) {
            fprintf(t->out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', t->out);
            column++;
        }
        fwrite(word, 1, bytes, t->out);
        column += wide;
        word += bytes;
        word += strspn(word, " ");
    }
    fputc('\n', t->out);
}

/* "  Label      words ..." */
static void item(const struct text *t, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void item(const struct text *t, const char *label, const char *fmt, ...)
{
    char first[32], words[LINE];
    va_list ap;

    snprintf(first, sizeof first, "  %-10s ", label);
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    text_wrap(t, first, words);
}

static void head(const struct text *t)
{
    const struct result_environment *e = &t->r->environment;
    char line[LINE], clean[LINE];

    snprintf(line, sizeof line, "lunpath %s: driver path benchmark on %s, %s", e->lunpath_version,
             e->hostname, e->time_utc);
    text_style(t, TEXT_HEADING);
    fprintf(t->out, "%s\n", report_clean(line, clean, sizeof clean));
    text_style(t, TEXT_PLAIN);
    if (t->r->incomplete) {
        text_style(t, TEXT_ALARM);
        text_wrap(t, "",
                  "INCOMPLETE: the run was ended early; this is what was measured until "
                  "then. Points without a figure were not measured.");
        text_style(t, TEXT_PLAIN);
    }
}

static void environment(const struct text *t)
{
    const struct result_environment *e = &t->r->environment;
    char memory[FORMAT_LEN], available[FORMAT_LEN], page[FORMAT_LEN], huge[FORMAT_LEN];
    char llc[FORMAT_LEN];

    fputc('\n', t->out);
    item(t, "Machine", "%s, %u CPU%s online, %u of them allowed; virtual machine: %s; governor: %s",
         e->cpu_model, e->cpus_online, units_s(e->cpus_online), e->cpus_allowed, e->virtual_machine,
         e->governor);
    item(t, "System", "%s, kernel %s, clock %s; load %.2f when it began", e->os, e->kernel,
         e->clock_source, e->load_1min);
    item(t, "Memory", "%s, %s free; pages of %s, huge pages of %s; last-level cache %s",
         format_bytes(e->memory_bytes, memory, sizeof memory),
         format_bytes(e->memory_free_bytes, available, sizeof available),
         format_bytes(e->page_bytes, page, sizeof page),
         format_bytes(e->huge_page_bytes, huge, sizeof huge),
         format_bytes(e->llc_bytes, llc, sizeof llc));
    item(t, "Placement", "%s", e->placement);
}

static void config(const struct text *t)
{
    const struct result_config *c = &t->r->config;
    char block[FORMAT_LEN], set[FORMAT_LEN];

    item(t, "Load", "%s%s%s, blocks of %s over %s, %u %s; seed %" PRIu64, c->preset,
         c->preset[0] ? ": " : "", c->pattern, format_bytes(c->block_bytes, block, sizeof block),
         format_bytes(c->working_set_bytes, set, sizeof set), c->queues,
         c->queues == 1 ? "queue" : "queues", c->seed);
    item(t, "Runs", "%u of %g s a point%s after %g s of warm-up%s", c->runs, c->seconds,
         c->runs == 1 ? "," : ", each", c->warmup_s,
         c->runs == 1 ? "" : "; figures are medians of them");
    item(t, "Command", "%s", c->command);
    item(t, "Unit", "Gbit/s is 10^9 bits of payload a second; nothing else is counted");
}

static void limits(const struct text *t)
{
    const struct result_limits *l = &t->r->limits;
    char spin[FORMAT_LEN], sleeping[FORMAT_LEN], same[FORMAT_LEN], copy[FORMAT_LEN];
    char overhead[FORMAT_LEN], gbit[FORMAT_LEN], all[FORMAT_LEN], libc[FORMAT_LEN];

    text_heading(t, "LIMITS OF THIS MACHINE, measured in the same run");
    item(t, "Copy",
         "%s Gbit/s on one thread (%s), %s Gbit/s on %u; memcpy of the C library %s "
         "Gbit/s",
         format_gbit(l->copy_gbit_per_s, gbit, sizeof gbit), l->copy_name,
         format_gbit(l->copy_all_gbit_per_s, all, sizeof all), l->threads,
         format_gbit(l->memcpy_gbit_per_s, libc, sizeof libc));
    item(t, "Round trip", "of two processes: %s spinning, %s sleeping on two cores, %s on one",
         format_ns(l->round_trip_spin_ns, spin, sizeof spin),
         format_ns(l->round_trip_sleep_ns, sleeping, sizeof sleeping),
         format_ns(l->round_trip_sleep_same_core_ns, same, sizeof same));
    item(t, "Small", "a 4 KiB copy takes %s; this tool itself costs %s an I/O (the empty path)",
         format_ns(l->copy_4k_ns, copy, sizeof copy),
         format_ns(l->tool_overhead_ns_per_io, overhead, sizeof overhead));
    item(t, "Ceiling", "%s Gbit/s: what \"ceiling\" means below, the copy on %s",
         format_gbit(result_ceiling(t->r), gbit, sizeof gbit),
         t->r->config.queues > 1 ? "all threads" : "one thread");
}

/* Wrong data, in capitals: speed means nothing without it. */
static void wrong_data(const struct text *t)
{
    for (unsigned i = 0; i < t->r->path_count; i++) {
        const struct result_path *p = &t->r->paths[i];
        char line[LINE], checked[FORMAT_LEN];
        if (!report_path_wrong(p))
            continue;
        snprintf(line, sizeof line,
                 "%s returned %" PRIu64
                 " wrong block%s in %s checked. %s%sIts speed means nothing.",
                 p->name, p->verify.wrong_blocks, units_s(p->verify.wrong_blocks),
                 format_bytes(p->verify.checked_bytes, checked, sizeof checked), p->verify.first,
                 p->verify.first[0] ? " " : "");
        fputc('\n', t->out);
        text_style(t, TEXT_ALARM);
        text_wrap(t, "! WRONG DATA: ", line);
        text_style(t, TEXT_PLAIN);
    }
}

static void append(char *line, size_t len, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *line, size_t len, const char *fmt, ...)
{
    size_t used = strlen(line);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line + used, len - used, fmt, ap);
    va_end(ap);
}

/* "READ 64, 128" for one path and direction, "READ all depths"; nothing where the flag is not. */
static void flag_depths(const struct result *r, const struct result_path *path, int d,
                        uint32_t flag, char *line, size_t len)
{
    unsigned with = 0, measured = 0;

    for (unsigned i = 0; i < r->config.depth_count; i++) {
        measured += path->points[d][i].measured;
        with += path->points[d][i].measured && (path->points[d][i].flags & flag);
    }
    if (with == 0)
        return;
    append(line, len, "%s%s %s", line[0] ? "; " : "", path->name, report_direction_name(d));
    if (with == measured && measured > 1) {
        append(line, len, " at all depths");
        return;
    }
    const char *separator = " at ";
    for (unsigned i = 0; i < r->config.depth_count; i++)
        if (path->points[d][i].measured && (path->points[d][i].flags & flag)) {
            append(line, len, "%s%u", separator, r->config.depths[i]);
            separator = ", ";
        }
}

static char flag_mark(uint32_t flag)
{
    static const struct result_path good = {.name = ""};
    struct result_point p = {.measured = true, .flags = flag};

    return text_mark(&good, &p);
}

static void flag_legend(const struct text *t, unsigned bit)
{
    char line[LINE], name[FORMAT_LEN], where[LINE] = "";

    for (unsigned i = 0; i < t->r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            flag_depths(t->r, &t->r->paths[i], d, 1u << bit, where, sizeof where);
    if (!where[0])
        return;
    snprintf(line, sizeof line, "  %c %s: ", flag_mark(1u << bit),
             result_flags_text(1u << bit, name, sizeof name));
    fprintf(t->out, "%s%s\n", line, report_flag_meaning(bit));
    text_wrap(t, "      ", where);
}

static void legend(const struct text *t)
{
    uint32_t all = 0;

    for (unsigned i = 0; i < t->r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            all |= report_path_flags(t->r, &t->r->paths[i], d);
    if (all == 0)
        return;
    text_heading(t, "MARKS");
    for (unsigned bit = 0; bit < RESULT_FLAGS; bit++)
        if (all & (1u << bit))
            flag_legend(t, bit);
}

static void verify_line(const struct result_path *p, char *line, size_t len)
{
    char checked[FORMAT_LEN];

    format_bytes(p->verify.checked_bytes, checked, sizeof checked);
    if (report_path_wrong(p))
        snprintf(line, len, "Data: WRONG, %" PRIu64 " block%s in %s checked.",
                 p->verify.wrong_blocks, units_s(p->verify.wrong_blocks), checked);
    else if (p->verify.done)
        snprintf(line, len, "Data: every byte of %s checked was right.", checked);
    else
        snprintf(line, len, "Data: not verified.");
}

/* " Host: ring." An interrupted run knows not all of it. */
static void path_fact(char *line, size_t len, const char *label, const char *value)
{
    if (value[0])
        append(line, len, " %s: %s.", label, value);
}

static void path_block(const struct text *t, const struct result_path *p)
{
    char first[32], line[LINE], name[RESULT_NAME];

    snprintf(first, sizeof first, "  %-10s ", report_clean(p->name, name, sizeof name));
    if (strlen(p->name) > 10) { /* a target's URL: a line of its own */
        fprintf(t->out, "  %s\n", name);
        snprintf(first, sizeof first, "%13s", "");
    }
    if (p->host[0])
        verify_line(p, line, sizeof line);
    else
        snprintf(line, sizeof line, "Not reached before the run was ended.");
    path_fact(line, sizeof line, "Host", p->host);
    path_fact(line, sizeof line, "Disk", p->disk);
    path_fact(line, sizeof line, "Preparation", p->prep);
    path_fact(line, sizeof line, "Stands for", p->stands_for);
    if (p->driver_restarts)
        append(line, sizeof line, " The driver was restarted %u time%s.", p->driver_restarts,
               units_s(p->driver_restarts));
    if (p->warmup_slow_ratio > 1.5)
        append(line, sizeof line, " The first requests took %.1f times as long (not counted).",
               p->warmup_slow_ratio);
    text_wrap(t, first, line);
}

static void paths(const struct text *t)
{
    text_heading(t, "PATHS, as they really were");
    for (unsigned i = 0; i < t->r->path_count; i++)
        path_block(t, &t->r->paths[i]);
}

/* The last line on a terminal is the one that is read. */
static void verdict(const struct text *t)
{
    bool failed = result_has_failures(t->r);
    unsigned unverified = 0;

    for (unsigned i = 0; i < t->r->path_count; i++)
        unverified += !t->r->paths[i].verify.done;
    fputc('\n', t->out);
    text_style(t, failed ? TEXT_ALARM : TEXT_HEADING);
    if (result_has_surprises(t->r))
        text_wrap(t, "", "NOT EVERYTHING WAS RIGHT: see the paths marked with ! above.");
    else if (failed)
        text_wrap(t, "",
                  "WRONG DATA, but only on a path without a guard (dev), which is what it is there "
                  "to show. What was checked on other paths was right.");
    else if (unverified)
        fprintf(t->out, "No error was seen, but %u of %u path%s %s not verified.\n", unverified,
                t->r->path_count, units_s(t->r->path_count), unverified == 1 ? "was" : "were");
    else
        fputs("Every byte that was checked was right, on every path.\n", t->out);
    text_style(t, TEXT_PLAIN);
}

int report_text(const struct result *r, const struct report_options *opts, FILE *out)
{
    unsigned width = opts && opts->width ? opts->width : DEFAULT_WIDTH;
    struct text t = {r, out, width < MIN_WIDTH ? MIN_WIDTH : width, opts && opts->colour};

    if (t.width > MAX_WIDTH)
        t.width = MAX_WIDTH;
    head(&t);
    environment(&t);
    config(&t);
    limits(&t);
    text_throughput(&t);
    text_bars(&t);
    wrong_data(&t);
    text_latency(&t);
    text_cost(&t);
    legend(&t);
    paths(&t);
    if (opts && opts->reference)
        text_reference(&t);
    verdict(&t);
    return ferror(out) ? -1 : 0;
}
