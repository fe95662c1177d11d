/* SPDX-License-Identifier: BSD-2-Clause */
/* Words and numbers that all reports use. */
#include "bench/report_int.h"

#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct flag_words {
    const char *id, *meaning;
};

/* By bit number, in the order of enum result_flag. */
static const struct flag_words flags[RESULT_FLAGS] = {
    {"depth_not_reached", "the mean depth stayed below 0.9 of the depth asked for"},
    {"not_steady", "throughput drifted from the start of a run to its end"},
    {"cpu_bound", "one side kept its processor busy for over 0.95 of the time"},
    {"cache_suspected",
     "the working set fits in the last-level cache, or the page cache lies between"},
    {"short_run", "under 0.2 s or under 100 requests a run"},
    {"wide_spread", "the runs differ by over a quarter of the median, so the figure means little"},
    {"bytes_differ", "the disk counted other bytes than the application: the figure is wrong"},
    {"above_ceiling",
     "faster than this machine can copy memory, so it cannot be the data path alone"},
    {"io_errors", "requests failed while this was measured"},
};

const char *report_direction_name(int direction)
{
    static const char *const names[RESULT_DIRECTIONS] = {"READ", "WRITE", "MIXED"};
    return names[direction];
}

const char *report_flag_id(unsigned bit)
{
    return flags[bit].id;
}

const char *report_flag_meaning(unsigned bit)
{
    return flags[bit].meaning;
}

/* "123k", "1.23M", "99.9G" in five characters at most: so large a figure means nothing but that. */
static void format_thousands(double n, char *buf, size_t len)
{
    static const char units[] = "kMGTP";
    unsigned unit = 0;

    for (n /= 1e3; n >= 999.5 && units[unit + 1]; unit++)
        n /= 1e3;
    if (n >= 999.5)
        snprintf(buf, len, ">999%c", units[unit]);
    else
        snprintf(buf, len, "%.*f%c", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n, units[unit]);
}

char *format_gbit(double gbit_per_s, char *buf, size_t len)
{
    if (!isfinite(gbit_per_s))
        snprintf(buf, len, "-");
    else if (gbit_per_s < 0.1)
        snprintf(buf, len, "%.3f", gbit_per_s);
    else if (gbit_per_s >= 99999.5) /* of a disk that moves no data */
        format_thousands(gbit_per_s, buf, len);
    else
        snprintf(buf, len, "%.*f",
                 gbit_per_s < 99.995   ? 2
                 : gbit_per_s < 999.95 ? 1
                                       : 0,
                 gbit_per_s);
    return buf;
}

/* Three digits and a unit. */
char *format_ns(double ns, char *buf, size_t len)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    unsigned unit = 0;

    if (!isfinite(ns) || ns <= 0) {
        snprintf(buf, len, "-");
        return buf;
    }
    while (unit < 3 && ns >= 999.5) {
        ns /= 1000;
        unit++;
    }
    int digits = ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2;
    snprintf(buf, len, "%.*f %s", unit == 0 && ns >= 9.995 ? 0 : digits, ns, units[unit]);
    return buf;
}

char *format_rate(double per_s, char *buf, size_t len)
{
    if (!isfinite(per_s))
        snprintf(buf, len, "-");
    else if (per_s < 999999.5)
        snprintf(buf, len, "%.0f", per_s);
    else
        snprintf(buf, len, "%.2f M", per_s / 1e6);
    return buf;
}

char *format_ratio(double ratio, char *buf, size_t len)
{
    if (!isfinite(ratio) || ratio <= 0)
        snprintf(buf, len, "-");
    else
        snprintf(buf, len, "%.*f", ratio < 0.0995 ? 3 : ratio < 99.5 ? 2 : 0, ratio);
    return buf;
}

char *format_bytes(uint64_t bytes, char *buf, size_t len)
{
    if (bytes == 0)
        snprintf(buf, len, "-");
    else
        size_format(bytes, buf, len);
    return buf;
}

/* Bytes of the UTF-8 character at s, 0 when it is none (also overlong forms and surrogates). */
static size_t utf8_length(const unsigned char *s)
{
    unsigned char c = s[0];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 4;

    if (n == 4 && (c < 0xf0 || c > 0xf4))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
        (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

char *report_clean(const char *text, char *dst, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t used = 0;

    while (*s && len > 0) {
        size_t n = utf8_length(s);
        /* Control characters: C0, DEL, and C1, which are two bytes in UTF-8. */
        bool control = n == 1 ? *s < 0x20 || *s == 0x7f : n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
        size_t room = n == 0 || control ? 1 : n;
        if (used + room >= len)
            break;
        if (n == 0 || control)
            dst[used] = '?';
        else
            memcpy(dst + used, s, n);
        used += room;
        s += n ? n : 1;
    }
    if (len > 0)
        dst[used] = '\0';
    return dst;
}

bool report_path_wrong(const struct result_path *path)
{
    return path->verify.wrong_blocks > 0;
}

bool report_direction_measured(const struct result *r, int direction)
{
    for (unsigned i = 0; i < r->path_count; i++)
        if (r->paths[i].summary[direction].measured)
            return true;
    return false;
}

uint32_t report_path_flags(const struct result *r, const struct result_path *path, int direction)
{
    uint32_t all = 0;

    for (unsigned i = 0; i < r->config.depth_count; i++)
        if (path->points[direction][i].measured)
            all |= path->points[direction][i].flags;
    return all;
}

static bool depth_measured(const struct result *r, unsigned index)
{
    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            if (r->paths[i].points[d][index].measured)
                return true;
    return false;
}

int report_depth_index(const struct result *r, unsigned depth)
{
    int best = -1;

    for (unsigned i = 0; i < r->config.depth_count; i++)
        if (r->config.depths[i] <= depth && depth_measured(r, i) &&
            (best < 0 || r->config.depths[i] > r->config.depths[best]))
            best = (int)i;
    return best;
}
