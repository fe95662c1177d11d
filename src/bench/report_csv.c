/* SPDX-License-Identifier: BSD-2-Clause */
/* CSV: one header line, one row a measured point, quoted as RFC 4180 says, lines end with LF. */
#include "bench/report_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Quotes are doubled, and a text with a comma or a quote is quoted (line ends are cleaned away). */
static void csv_text(FILE *out, const char *text)
{
    char clean[RESULT_TEXT];

    report_clean(text, clean, sizeof clean);
    if (!strpbrk(clean, ",\" ")) {
        fprintf(out, "%s,", clean);
        return;
    }
    fputc('"', out);
    for (const char *c = clean; *c; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputs("\",", out);
}

/* Empty for what is not finite. */
static void csv_real(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.9g", value);
    fputc(',', out);
}

static void csv_count(FILE *out, uint64_t value)
{
    fprintf(out, "%" PRIu64 ",", value);
}

static void csv_header(FILE *out)
{
    fputs("time_utc,hostname,path,host,disk,preparation,pattern,block_bytes,working_set_bytes,"
          "queues,direction,depth_asked,runs,gbit_per_s,min_gbit_per_s,max_gbit_per_s,ios_per_s,"
          "run_s,depth_mean,depth_max,requests,top_bytes,disk_bytes,errors,lat_mean_ns,lat_p50_ns,"
          "lat_p99_ns,lat_p999_ns,lat_max_ns,app_cpu_s_per_gib,driver_cpu_s_per_gib,"
          "app_syscalls_per_io,driver_syscalls_per_io,drift_ratio,of_ceiling_ratio,"
          "ceiling_gbit_per_s,verified,wrong_blocks,incomplete,flags\n",
          out);
}

static void csv_setting(const struct result *r, const struct result_path *path, int d, FILE *out)
{
    csv_text(out, r->environment.time_utc);
    csv_text(out, r->environment.hostname);
    csv_text(out, path->name);
    csv_text(out, path->host);
    csv_text(out, path->disk);
    csv_text(out, path->prep);
    csv_text(out, r->config.pattern);
    csv_count(out, r->config.block_bytes);
    csv_count(out, r->config.working_set_bytes);
    csv_count(out, r->config.queues);
    csv_text(out, report_direction_name(d));
}

static void csv_point(const struct result_point *p, FILE *out)
{
    const double rates[] = {p->gbit_per_s, p->gbit_per_s_min, p->gbit_per_s_max,
                            p->ios_per_s,  p->seconds,        p->depth_mean};
    const uint64_t counts[] = {p->depth_max,   p->requests,    p->bytes_top,  p->bytes_disk,
                               p->errors,      p->lat_ns_mean, p->lat_ns_p50, p->lat_ns_p99,
                               p->lat_ns_p999, p->lat_ns_max};
    const double costs[] = {p->app_cpu_s_per_gib,
                            p->driver_cpu_s_per_gib,
                            p->app_syscalls_per_io,
                            p->driver_syscalls_per_io,
                            p->drift,
                            p->of_ceiling};

    csv_count(out, p->depth_asked);
    csv_count(out, p->runs);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        csv_real(out, rates[i]);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        csv_count(out, counts[i]);
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++)
        csv_real(out, costs[i]);
}

/* Flags stand in one cell, with spaces between. */
static void csv_end(const struct result *r, const struct result_path *path,
                    const struct result_point *p, FILE *out)
{
    const char *separator = "";

    csv_real(out, result_ceiling(r));
    csv_text(out, path->verify.done ? "yes" : "no");
    csv_count(out, path->verify.wrong_blocks);
    csv_text(out, r->incomplete ? "yes" : "no");
    for (unsigned bit = 0; bit < RESULT_FLAGS; bit++)
        if (p->flags & (1u << bit)) {
            fprintf(out, "%s%s", separator, report_flag_id(bit));
            separator = " ";
        }
    fputc('\n', out);
}

int report_csv(const struct result *r, FILE *out)
{
    csv_header(out);
    for (unsigned i = 0; i < r->path_count; i++)
        for (int d = 0; d < RESULT_DIRECTIONS; d++)
            for (unsigned k = 0; k < r->config.depth_count; k++) {
                const struct result_point *p = &r->paths[i].points[d][k];
                if (!p->measured)
                    continue;
                csv_setting(r, &r->paths[i], d, out);
                csv_point(p, out);
                csv_end(r, &r->paths[i], p, out);
            }
    return ferror(out) ? -1 : 0;
}
