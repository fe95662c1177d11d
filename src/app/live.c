/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/live.h"

#include "app/terminal.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINE = 512,
    MAX_COLUMNS = 120, /* a longer line is no better to read */
    NAME_COLUMNS = 28,
    BAR_COLUMNS = 24,
    WIDE_COLUMNS = 48, /* with fewer, what matters most comes first */
};
static const uint64_t redraw_ns = 100000000;

static bool locale_has_blocks(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8");
    }
    return false;
}

void live_begin(struct live *live, FILE *out, const volatile sig_atomic_t *stopped)
{
    *live = (struct live){.out = out,
                          .redraw = terminal_redraws(fileno(out)),
                          .colour = terminal_colour(fileno(out)),
                          .blocks = locale_has_blocks(),
                          .stopped = stopped};
}

static const char *direction_name(enum result_direction direction)
{
    return direction == RESULT_READ ? "READ" : direction == RESULT_WRITE ? "WRITE" : "MIXED";
}

/* ---- plain lines ---- */

static void print_plain(struct live *live, const struct bench_progress *p)
{
    if (p->note && p->path)
        fprintf(live->out, "%s: %s\n", p->path, p->note);
    else if (p->note)
        fprintf(live->out, "%s\n", p->note);
    else if (p->point_done)
        fprintf(live->out, "%s %s depth %u, run %u of %u: %.2f Gbit/s\n", p->path,
                direction_name(p->direction), p->depth, p->run, p->runs, p->gbit_per_s);
}

/* ---- a terminal ---- */

static unsigned columns(const struct live *live)
{
    unsigned width = terminal_width(fileno(live->out));

    /* The last column stays free: some terminals go to the next line with it. */
    width = width > 1 ? width - 1 : 1;
    return width < MAX_COLUMNS ? width : MAX_COLUMNS;
}

/* Appends a bar of cells columns, of which fraction is filled. */
static void append_bar(const struct live *live, char *line, unsigned cells, double fraction)
{
    unsigned full = fraction > 1 ? cells : (unsigned)(fraction * cells + 0.5);

    for (unsigned i = 0; i < cells; i++)
        strcat(line, live->blocks ? (i < full ? "█" : "░") : (i < full ? "#" : "-"));
}

/* Cut to the width before the bar; the bar only where there is room for it. */
static void build_line(const struct live *live, char *line, const char *text, double fraction)
{
    unsigned width = columns(live);

    snprintf(line, MAX_LINE / 2, "%.*s", (int)width, text);
    size_t used = strlen(line);
    if (fraction >= 0 && used + 1 + BAR_COLUMNS <= width) {
        strcat(line, " ");
        append_bar(live, line, BAR_COLUMNS, fraction);
    }
}

/* Where the cursor is now is the end of the last line. */
static void draw(struct live *live, const char *first, const char *second)
{
    const char *bold = live->colour ? "\033[1m" : "", *normal = live->colour ? "\033[0m" : "";

    fprintf(live->out, "\r%s%s%s%s\033[K", live->shown == 2 ? "\033[1A" : "", bold, first, normal);
    fprintf(live->out, "\n%s\033[K", second);
    fflush(live->out);
    live->shown = 2;
    live->drawn_ns = clock_now_ns();
}

static void describe_point(const struct live *live, const struct bench_progress *p, char *text,
                           size_t size)
{
    const char *direction = direction_name(p->direction);

    if (columns(live) >= WIDE_COLUMNS)
        snprintf(text, size, "%-9.*s %-5s depth %-4u %8.2f Gbit/s", NAME_COLUMNS, p->path,
                 direction, p->depth, p->gbit_per_s);
    else
        snprintf(text, size, "%.2f Gbit/s %s %u %s", p->gbit_per_s, direction, p->depth, p->path);
}

static void show(struct live *live, const struct bench_progress *p)
{
    char text[MAX_LINE / 2], first[MAX_LINE], second[MAX_LINE];
    unsigned left = p->seconds_left > 0 ? (unsigned)(p->seconds_left + 0.5) : 0;
    double bar = -1;

    if (p->note) {
        snprintf(text, sizeof text, "%.*s%s%s", NAME_COLUMNS, p->path ? p->path : "",
                 p->path ? ": " : "", p->note);
    } else {
        if (p->gbit_per_s > live->highest_gbit_per_s)
            live->highest_gbit_per_s = p->gbit_per_s;
        describe_point(live, p, text, sizeof text);
        bar = live->highest_gbit_per_s > 0 ? p->gbit_per_s / live->highest_gbit_per_s : 0;
    }
    build_line(live, first, text, bar);
    if (*live->stopped)
        snprintf(text, sizeof text, "ending; Ctrl-C again to leave at once");
    else
        snprintf(text, sizeof text, "run %u of %u, %3.0f %% done, %3u:%02u left  ",
                 p->run ? p->run : 1, p->runs, p->fraction * 100, left / 60, left % 60);
    build_line(live, second, text, *live->stopped ? -1 : p->fraction);
    draw(live, first, second);
}

void live_progress(const struct bench_progress *progress, void *user)
{
    struct live *live = user;

    if (!live->redraw) {
        print_plain(live, progress);
        fflush(live->out);
    } else if (progress->note || clock_now_ns() - live->drawn_ns >= redraw_ns) {
        show(live, progress);
    }
}

void live_sentence(const char *sentence, void *user)
{
    struct live *live = user;
    char line[MAX_LINE];

    if (!live->redraw) {
        fprintf(live->out, "%s\n", sentence);
        fflush(live->out);
        return;
    }
    build_line(live, line, sentence, -1);
    draw(live, line, *live->stopped ? "ending; Ctrl-C again to leave at once" : "");
}

void live_end(struct live *live)
{
    if (live->shown)
        fprintf(live->out, "\r\033[K\033[1A\033[K");
    live->shown = 0;
    fflush(live->out);
}
