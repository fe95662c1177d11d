/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three ways to the same file: around the page cache, through it, and mapped. What is written in
 * one way is read in all of them, from the medium: before each reading the cache is dropped and the
 * file opened anew.
 */
#include "bench/verify_int.h"

#include <lunpath/fit.h>

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum way { DIRECT, BUFFERED, MAPPED, WAYS };
enum { WAY_DEPTH = 8, WINDOW = 4 << 20 };

static const char *const way_names[WAYS] = {"direct", "buffered", "mmap"};

static const char *const written[WAYS] = {"direct writes", "buffered writes", "mmap writes"};

static const char *const reads_what_wrote[WAYS][WAYS] = {
    {"direct reads what direct wrote", "direct reads what buffered wrote",
     "direct reads what mmap wrote"},
    {"buffered reads what direct wrote", "buffered reads what buffered wrote",
     "buffered reads what mmap wrote"},
    {"mmap reads what direct wrote", "mmap reads what buffered wrote",
     "mmap reads what mmap wrote"},
};

static uint64_t bytes_of(const struct verify_area *a)
{
    return a->blocks * a->pattern->unit;
}

static struct lp_disk *open_way(const struct verify_file *f, enum way way, struct lp_error *err)
{
    struct lp_disk_opts opts = f->disk;
    char url[4200];

    snprintf(url, sizeof url, "file:%s", f->path);
    opts.buffered = way == BUFFERED;
    return lp_disk_open(url, &opts, err);
}

static int flush(struct lp_queue *q, struct verify_log *log)
{
    struct lp_request req = {.op = LP_FLUSH};
    const struct verify_shape none = {0};
    int status = lp_queue_run(q, &req);

    if (status != 0)
        verify_error(log, LP_FLUSH, &none, status);
    return 0;
}

static int over_disk(const struct verify_file *f, enum way way, bool write, struct verify_area *a,
                     struct verify_log *log, struct lp_error *err)
{
    const struct lp_fit_opts fit = {.depth = WAY_DEPTH};
    struct lp_disk *disk = open_way(f, way, err);
    struct lp_queue *q = disk ? lp_disk_queue(disk, WAY_DEPTH, err) : NULL;
    int rc = -1;

    if (q)
        q = lp_fit_open(q, &q->limits, &fit, err);
    if (q) {
        const struct verify_work work = {.area = a,
                                         .log = log,
                                         .q = q,
                                         .order = write ? VERIFY_WRITE_ALL : VERIFY_READ_SIZES,
                                         .count = a->blocks,
                                         .max_bytes = VERIFY_LARGE_BYTES,
                                         .depth = WAY_DEPTH,
                                         .odd = way == BUFFERED,
                                         .seed = f->seed + (uint64_t)way};
        rc = verify_work_run(&work, err);
        if (rc == 0 && write && !verify_stop(log))
            rc = flush(q, log);
        lp_queue_close(q);
    }
    lp_disk_close(disk);
    return rc;
}

/* ---- mapped ---- */

static void map_window(struct verify_map *m, bool write, struct verify_area *a,
                       struct verify_log *log, size_t at)
{
    const uint32_t unit = a->pattern->unit;
    const size_t length = m->bytes - at < WINDOW ? m->bytes - at : WINDOW;
    const uint64_t first = at / unit, count = length / unit;
    const struct verify_shape shape = {at, length, 1, 1};
    int status = verify_map_populate(m, at, length);

    log->report->requests++;
    if (status != 0) {
        verify_error(log, write ? LP_WRITE : LP_READ, &shape, status);
        return;
    }
    if (!write) {
        verify_area_check(a, log, &shape, m->base + at, first, count);
        return;
    }
    for (uint64_t i = first; i < first + count; i++)
        pattern_fill(a->pattern, m->base + i * unit, unit, i * unit, a->base + a->acked[i] + 1);
    verify_area_wrote(a, first, count, (uint32_t)rng_mix(at + a->acked[first]));
    log->report->bytes_written += length;
}

/* Every other window forwards, then the others backwards. */
static int over_map(const struct verify_file *f, bool write, struct verify_area *a,
                    struct verify_log *log, struct lp_error *err)
{
    const size_t windows = (size_t)((bytes_of(a) + WINDOW - 1) / WINDOW), half = (windows + 1) / 2;
    const struct verify_shape whole = {0, bytes_of(a), 1, 1};
    struct verify_map m;

    if (verify_map_open(&m, f->path, bytes_of(a), write, err) != 0)
        return -1;
    for (size_t i = 0; i < windows && !verify_stop(log); i++)
        map_window(&m, write, a, log, WINDOW * (i < half ? 2 * i : 2 * (windows - 1 - i) + 1));
    if (write && msync(m.base, m.bytes, MS_SYNC) != 0)
        verify_error(log, LP_FLUSH, &whole, -errno);
    verify_map_close(&m);
    return 0;
}

/* ---- all of them ---- */

static int go(const struct verify_file *f, enum way way, bool write, struct verify_area *a,
              struct verify_log *log, struct lp_error *err)
{
    const struct verify_shape whole = {0, bytes_of(a), 0, 0};
    int status = write ? 0 : verify_drop_cache(f->path);

    if (status != 0)
        verify_error(log, LP_FLUSH, &whole, status);
    if (verify_stop(log))
        return 0;
    return way == MAPPED ? over_map(f, write, a, log, err) : over_disk(f, way, write, a, log, err);
}

/* Can the file be reached so? Says why not. */
static bool works(const struct verify_file *f, enum way way, const struct verify_area *a,
                  struct verify_log *log)
{
    struct verify_map m = {0};
    struct lp_disk *disk = NULL;
    struct lp_error why;
    bool ok;

    if (way == MAPPED)
        ok = verify_map_open(&m, f->path, bytes_of(a), true, &why) == 0;
    else
        ok = (disk = open_way(f, way, &why)) != NULL;
    if (!ok)
        verify_say(log->report, "%s I/O: skipped, %.200s", way_names[way], why.msg);
    verify_map_close(&m);
    lp_disk_close(disk);
    return ok;
}

static int write_one_read_all(const struct verify_file *f, enum way writer, const bool *can,
                              struct verify_area *a, struct verify_log *log, struct lp_error *err)
{
    if (verify_stop(log))
        return 0;
    verify_begin(log, written[writer]);
    int rc = go(f, writer, true, a, log, err);
    for (int reader = 0; rc == 0 && reader < WAYS; reader++) {
        if (!can[reader] || verify_stop(log))
            continue;
        verify_begin(log, reads_what_wrote[reader][writer]);
        rc = go(f, (enum way)reader, false, a, log, err);
    }
    return rc;
}

int verify_file_ways(const struct verify_file *f, struct verify_area *a, struct verify_log *log,
                     struct lp_error *err)
{
    bool can[WAYS];
    int rc = 0;

    for (int way = 0; way < WAYS; way++)
        can[way] = works(f, (enum way)way, a, log);
    for (int way = 0; rc == 0 && way < WAYS; way++)
        if (can[way])
            rc = write_one_read_all(f, (enum way)way, can, a, log, err);
    return rc;
}
