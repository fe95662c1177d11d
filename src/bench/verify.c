/* SPDX-License-Identifier: BSD-2-Clause */
/* lunpath verify: opens what is to be verified and goes through the phases. */
#include "base/clock.h"
#include "base/size.h"
#include "bench/plan.h"
#include "bench/verify_int.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WRITERS = 4, MIN_RANDOM_JOBS = 256, DEPTH_MAX = 128 };

#define DEFAULT_BYTES ((uint64_t)192 << 20) /* some drivers corrupt beyond 128 MiB only */
#define DEFAULT_ARENA ((size_t)128 << 20)   /* depth 128 with large requests */
#define MIN_ARENA ((size_t)8 << 20)         /* two of the largest requests */
#define AGAIN_ARENA ((size_t)VERIFY_DEPTH * VERIFY_LARGE_BYTES)

/* One disk, shown through one host, while it is verified. */
struct session {
    const struct verify_options *opts;
    struct verify_log *log;
    struct verify_area *area;
    struct lp_disk *disk;
    struct lp_host *host;
    struct lp_host_opts host_opts; /* to attach it again */
    unsigned queues;
    size_t arena_size;
    uint64_t round; /* so that each phase has its own random numbers */
};

/* ---- the phases over a host ---- */

/* One named stretch of work, by one thread over the whole area. */
static int phase(struct session *s, const char *name, struct verify_work work, struct lp_error *err)
{
    if (verify_stop(s->log))
        return 0;
    if (!s->log->phase || strcmp(s->log->phase, name) != 0)
        verify_begin(s->log, name);
    work.area = s->area;
    work.log = s->log;
    work.q = lp_host_queue(s->host, 0);
    work.arena = lp_host_arena(s->host);
    work.arena_size = s->arena_size;
    work.count = s->area->blocks;
    work.max_bytes = work.max_bytes < s->area->blocks * s->area->pattern->unit
                         ? work.max_bytes
                         : s->area->blocks * s->area->pattern->unit;
    work.jobs = MIN_RANDOM_JOBS;
    work.until = clock_now_ns() + (uint64_t)(s->opts->seconds * 1e9);
    work.seed = rng_mix(s->opts->seed + ++s->round);
    return verify_work_run(&work, err);
}

static int sequential(struct session *s, struct lp_error *err)
{
    static const struct {
        const char *name;
        unsigned depth;
    } at[] = {{"sequential, depth 1", 1},
              {"sequential, depth 8", 8},
              {"sequential, depth 32", 32},
              {"sequential, depth 128", DEPTH_MAX}};

    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        struct verify_work work = {
            .order = VERIFY_WRITE_ALL, .max_bytes = VERIFY_LARGE_BYTES, .depth = at[i].depth};
        if (phase(s, at[i].name, work, err) != 0)
            return -1;
        work.order = VERIFY_READ_ALL;
        if (phase(s, at[i].name, work, err) != 0)
            return -1;
    }
    return 0;
}

struct writer { /* one thread: its queue, its part of the area, its findings */
    struct verify_work work;
    struct verify_log log;
    struct verify_report report;
    struct lp_error err;
    int rc;
    pthread_t thread;
};

static void *write_and_read(void *arg)
{
    struct writer *w = arg;

    w->rc = verify_work_run(&w->work, &w->err);
    return NULL;
}

static void set_writer(struct session *s, struct writer *w, unsigned i)
{
    const uint64_t part = s->area->blocks / s->queues;
    const size_t arena = s->arena_size / s->queues / 4096 * 4096;
    uint64_t max_bytes = part * s->area->pattern->unit;

    w->log = *s->log;
    w->log.report = &w->report;
    w->work = (struct verify_work){
        .area = s->area,
        .log = &w->log,
        .q = lp_host_queue(s->host, i),
        .arena = (char *)lp_host_arena(s->host) + i * arena,
        .arena_size = arena,
        .order = VERIFY_RANDOM,
        .first = i * part,
        .count = part,
        .max_bytes = max_bytes < VERIFY_LARGE_BYTES ? max_bytes : VERIFY_LARGE_BYTES,
        .depth = VERIFY_DEPTH,
        .odd = i % 2 != 0,
        .jobs = MIN_RANDOM_JOBS,
        .until = clock_now_ns() + (uint64_t)(s->opts->seconds * 1e9),
        .seed = rng_mix(s->opts->seed + ++s->round),
    };
}

static int run_writers(struct session *s, struct writer *writers, struct lp_error *err)
{
    unsigned started = 0;
    int rc = 0;

    for (; started < s->queues; started++) {
        struct writer *w = &writers[started];
        set_writer(s, w, started);
        int e = pthread_create(&w->thread, NULL, write_and_read, w);
        if (e != 0) {
            rc = lp_error_sys(err, e, "a thread for a writer");
            break;
        }
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(writers[i].thread, NULL);
        verify_merge(s->log->report, &writers[i].report);
        s->log->stopped = s->log->stopped || writers[i].log.stopped;
        if (writers[i].rc != 0 && rc == 0) {
            rc = -1;
            if (err)
                *err = writers[i].err;
        }
    }
    return rc;
}

static int several_writers(struct session *s, struct lp_error *err)
{
    static const char name[] = "several writers, a queue each";

    if (verify_stop(s->log))
        return 0;
    if (s->queues < 2 || s->area->blocks < s->queues) {
        verify_say(s->log->report, "%s: skipped, there is one queue only", name);
        return 0;
    }
    struct writer *writers = calloc(s->queues, sizeof *writers);
    if (!writers)
        return lp_error_set(err, LP_ERROR_SYS, 0, "no memory for %u writers", s->queues);
    verify_begin(s->log, name);
    int rc = run_writers(s, writers, err);
    free(writers);
    return rc;
}

/* The disk without the host, after a FLUSH or without one. */
static int past_the_path(struct session *s, const char *name, bool with_flush, struct lp_error *err)
{
    struct lp_request flush = {.op = LP_FLUSH};
    const struct verify_shape none = {0};
    struct lp_error why;

    if (verify_stop(s->log))
        return 0;
    struct lp_queue *q = lp_disk_queue(s->disk, 1, &why);
    if (!q) {
        verify_say(s->log->report, "%s: skipped, %s", name, why.msg);
        return 0;
    }
    verify_begin(s->log, name);
    int status = with_flush ? lp_queue_run(lp_host_queue(s->host, 0), &flush) : 0, rc = 0;
    if (status != 0)
        verify_error(s->log, LP_FLUSH, &none, status);
    else
        rc = verify_disk_itself(s->area, q, s->log, err);
    lp_queue_close(q);
    return rc;
}

/* ---- what a disk may offer beside READ, WRITE and FLUSH ---- */

/* What it did must still be so for one who comes later. */
static int start_again(struct session *s, const char *name, struct lp_error *err)
{
    const struct verify_work back = {
        .order = VERIFY_READ_SIZES, .max_bytes = VERIFY_LARGE_BYTES, .depth = VERIFY_DEPTH};

    if (verify_stop(s->log))
        return 0;
    lp_host_detach(s->host);
    if (s->arena_size > AGAIN_ARENA) /* it is touched each time */
        s->host_opts.arena_size = s->arena_size = AGAIN_ARENA;
    s->host = lp_host_attach(s->disk, &s->host_opts, err);
    return s->host ? phase(s, name, back, err) : -1;
}

static int with_fua(struct session *s, struct lp_error *err)
{
    const struct verify_work fua = {.order = VERIFY_SOME,
                                    .op = LP_WRITE,
                                    .flags = LP_FUA,
                                    .max_bytes = VERIFY_LARGE_BYTES,
                                    .depth = VERIFY_DEPTH};

    if (verify_stop(s->log))
        return 0;
    if (lp_host_queue(s->host, 0)->limits.fua == LP_FUA_NONE) {
        verify_say(s->log->report, "WRITE with FUA: skipped, the path does not offer it");
        return 0;
    }
    if (phase(s, "WRITE with FUA", fua, err) != 0 ||
        past_the_path(s, "WRITE with FUA, the disk itself without FLUSH", false, err) != 0)
        return -1;
    return start_again(s, "WRITE with FUA, through a path that was started again", err);
}

/* Every other piece is erased, and the pieces between must stay as they are. */
static int erase(struct session *s, enum lp_op op, bool offered, const char *const names[3],
                 struct lp_error *err)
{
    const struct verify_work some = {
        .order = VERIFY_SOME, .op = op, .max_bytes = VERIFY_LARGE_BYTES, .depth = VERIFY_DEPTH};
    const struct verify_work back = {
        .order = VERIFY_READ_SIZES, .max_bytes = VERIFY_LARGE_BYTES, .depth = VERIFY_DEPTH};

    if (verify_stop(s->log))
        return 0;
    if (!offered) {
        verify_say(s->log->report, "%s: skipped, the path does not offer it", names[0]);
        return 0;
    }
    if (phase(s, names[0], some, err) != 0 || phase(s, names[0], back, err) != 0 ||
        past_the_path(s, names[1], true, err) != 0)
        return -1;
    return start_again(s, names[2], err);
}

static int write_zeroes(struct session *s, struct lp_error *err)
{
    static const char *const names[] = {"WRITE ZEROES",
                                        "WRITE ZEROES, then FLUSH, then the disk itself",
                                        "WRITE ZEROES, through a path that was started again"};

    return erase(s, LP_WRITE_ZEROES, lp_host_queue(s->host, 0)->limits.write_zeroes, names, err);
}

static int discard(struct session *s, struct lp_error *err)
{
    static const char *const names[] = {"DISCARD", "DISCARD, then FLUSH, then the disk itself",
                                        "DISCARD, through a path that was started again"};

    return erase(s, LP_DISCARD, lp_host_queue(s->host, 0)->limits.discard, names, err);
}

/* What was erased takes data again. */
static int written_again(struct session *s, struct lp_error *err)
{
    static const char name[] = "written again";
    struct verify_work work = {
        .order = VERIFY_WRITE_ALL, .max_bytes = VERIFY_LARGE_BYTES, .depth = VERIFY_DEPTH};

    if (phase(s, name, work, err) != 0)
        return -1;
    work.order = VERIFY_READ_SIZES;
    return phase(s, name, work, err);
}

/* ---- all of them ---- */

static int all_phases(struct session *s, struct lp_error *err)
{
    const struct verify_work random = {
        .order = VERIFY_RANDOM, .max_bytes = VERIFY_MAX_BYTES, .depth = VERIFY_DEPTH};
    struct verify_work odd = random, rewrite = random, back = random;

    odd.odd = true;
    rewrite.order = VERIFY_REWRITE;
    rewrite.max_bytes = VERIFY_LARGE_BYTES;
    back.order = VERIFY_READ_SIZES;
    if (sequential(s, err) != 0 || phase(s, "random sizes", random, err) != 0 ||
        phase(s, "odd addresses and segments", odd, err) != 0 || several_writers(s, err) != 0 ||
        phase(s, "rewritten while reading", rewrite, err) != 0 ||
        phase(s, "read back in random sizes", back, err) != 0 ||
        past_the_path(s, "FLUSH, then the disk itself", true, err) != 0)
        return -1;
    if (with_fua(s, err) != 0 || write_zeroes(s, err) != 0 || discard(s, err) != 0)
        return -1;
    return written_again(s, err);
}

/* ---- setting up ---- */

static uint64_t memory_bytes(void)
{
    uint64_t bytes = (uint64_t)4 << 30; /* where the system does not say */

#ifdef _SC_PHYS_PAGES
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        bytes = (uint64_t)pages * (uint64_t)page;
#endif
    return bytes;
}

/* The range without a disk to bound it: what a ram: disk gets. */
static uint64_t wanted_bytes(const struct verify_options *o)
{
    const uint64_t quarter = memory_bytes() / 4;

    if (o->bytes)
        return o->bytes;
    return DEFAULT_BYTES < quarter ? DEFAULT_BYTES : quarter / 4096 * 4096;
}

static int choose_range(const struct verify_options *o, const struct lp_disk *disk,
                        struct pattern *pattern, uint64_t *bytes, struct verify_report *report,
                        struct lp_error *err)
{
    const struct lp_limits *limits = lp_disk_limits(disk);
    const uint64_t most = memory_bytes() * 8; /* the notes take a 50th of the range */
    char text[32];

    if (plan_check_pieces(&o->host, limits, err) != 0)
        return -1;
    pattern->seed = o->seed;
    pattern->unit = limits->block_size > 512 ? limits->block_size : 512;
    *bytes = wanted_bytes(o);
    if (*bytes > limits->size)
        *bytes = limits->size;
    if (*bytes > most)
        *bytes = most;
    *bytes -= *bytes % pattern->unit;
    if (*bytes == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the range to verify has less than one block of %u bytes",
                            pattern->unit);
    verify_say(report, "%s of %s, seed %llu", size_format(*bytes, text, sizeof text),
               lp_disk_url(disk), (unsigned long long)o->seed);
    return 0;
}

/* bytes: the range; many times that is never in flight. */
static struct lp_host_opts host_opts(const struct verify_options *o, const struct lp_disk *disk,
                                     uint64_t bytes)
{
    const size_t enough = bytes < DEFAULT_ARENA / 8 ? (size_t)bytes * 8 : DEFAULT_ARENA;
    const uint32_t most = lp_disk_limits(disk)->queues;
    struct lp_host_opts h = o->host;

    if (o->profile) {
        h.host = o->host.host ? o->host.host : o->profile->host;
        h.prep = o->profile->prep;
        h.guard = o->profile->guard;
    } else {
        h.host = "inline";
        h.prep = LP_PREP_NONE;
        h.guard = false;
    }
    if (h.queues < 2)
        h.queues = MAX_WRITERS;
    if (most && h.queues >= most) /* one is left for the look past the path */
        h.queues = most > 1 ? most - 1 : 1;
    if (h.depth < DEPTH_MAX)
        h.depth = DEPTH_MAX;
    h.arena_size = enough > MIN_ARENA ? enough : MIN_ARENA;
    if (h.arena_size > memory_bytes() / 8)
        h.arena_size = (size_t)(memory_bytes() / 8 / 4096 * 4096);
    return h;
}

/* Attaches the disk and runs all phases. */
static int verify_disk(const struct verify_options *o, struct lp_disk *disk,
                       struct verify_area *area, struct verify_log *log, struct lp_error *err)
{
    const struct lp_host_opts h = host_opts(o, disk, area->blocks * area->pattern->unit);
    struct session s = {.opts = o,
                        .log = log,
                        .area = area,
                        .disk = disk,
                        .host_opts = h,
                        .queues = h.queues,
                        .arena_size = h.arena_size};

    s.host = lp_host_attach(disk, &h, err);
    if (!s.host)
        return -1;
    verify_say(log->report, "disk: %s; host: %s", lp_disk_mode(disk), lp_host_mode(s.host));
    int rc = all_phases(&s, err);
    if (s.host)
        lp_host_detach(s.host);
    return rc;
}

/* The path behind file:PATH, else NULL. */
static const char *file_path(const char *url)
{
    return strncmp(url, "file:", 5) == 0 ? url + 5 : NULL;
}

/* The other ways to a file. The disk is closed: a device opened for writing is open only once. */
static int other_ways(const struct verify_options *o, const char *url, struct verify_area *area,
                      struct verify_log *log, struct lp_error *err)
{
    const struct verify_file file = {.path = file_path(url), .disk = o->disk, .seed = o->seed};

    if (o->profile || verify_stop(log))
        return 0;
    if (file.path)
        return verify_file_ways(&file, area, log, err);
    verify_say(log->report, "buffered and mmap: skipped, this disk is not a file");
    return 0;
}

/* All that writes. Closes the disk. */
static int verify_written(const struct verify_options *o, const char *url, struct lp_disk *disk,
                          struct verify_log *log, struct pattern *pattern, struct lp_error *err)
{
    struct verify_area area = {.acked = NULL};
    uint64_t bytes;
    int rc = choose_range(o, disk, pattern, &bytes, log->report, err);

    if (rc == 0)
        rc = verify_area_init(&area, pattern, bytes, 0, err);
    if (rc == 0)
        rc = verify_disk(o, disk, &area, log, err);
    lp_disk_close(disk);
    if (rc == 0)
        rc = other_ways(o, url, &area, log, err);
    verify_area_free(&area);
    return rc;
}

/* All that only reads. Closes the disk. */
static int verify_read_only(const struct verify_options *o, const char *url, struct lp_disk *disk,
                            struct verify_log *log, struct pattern *pattern, struct lp_error *err)
{
    uint64_t bytes;
    int rc = choose_range(o, disk, pattern, &bytes, log->report, err);

    lp_disk_close(disk);
    if (rc != 0)
        return -1;
    verify_say(log->report, "not to be written, so it is only read twice and compared");
    return verify_twice(url, file_path(url), &o->disk, bytes, o->seed, log, err);
}

/* A disk URL as it is; anything else is a path. */
static int make_url(const struct verify_options *o, char *url, size_t len, struct lp_error *err)
{
    const char *given = o->profile ? o->disk_url : o->target, *prefix = "file:";
    int n;

    if (!given && !o->profile)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "nothing to verify: name a profile, a disk URL or a path");
    if (!given)
        n = snprintf(url, len, "ram:%llu", (unsigned long long)wanted_bytes(o));
    else {
        const struct lp_disk_type *const *type = lp_disk_types();
        size_t scheme = strcspn(given, ":");
        for (; *type; type++)
            if (given[scheme] && strlen((*type)->name) == scheme &&
                strncmp((*type)->name, given, scheme) == 0)
                prefix = "";
        n = snprintf(url, len, "%s%s", prefix, given);
    }
    if (n < 0 || (size_t)n >= len)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the disk's name is too long");
    return 0;
}

/* Opened directly if that can be; a file that can only be buffered is still verified. */
static struct lp_disk *open_disk(const char *url, struct lp_disk_opts *disk,
                                 struct verify_report *report, struct lp_error *err)
{
    struct lp_disk *d = lp_disk_open(url, disk, err);

    if (d || disk->buffered || !file_path(url))
        return d;
    struct lp_error direct = *err;
    disk->buffered = true;
    d = lp_disk_open(url, disk, err);
    if (d)
        verify_say(report, "direct I/O: skipped, %s", direct.msg);
    else
        *err = direct;
    return d;
}

int verify_run(const struct verify_options *opts, struct verify_report *report,
               struct lp_error *err)
{
    const bool may_write = (opts->profile != NULL || opts->destroy) && !opts->disk.read_only;
    struct verify_options o = *opts;
    struct pattern pattern;
    struct verify_log log = {.report = report,
                             .pattern = &pattern,
                             .page_size = o.host.page_size ? o.host.page_size : 4096,
                             .interrupted = o.interrupted,
                             .progress = o.progress,
                             .user = o.user};
    struct lp_error mine;
    char url[4200];

    err = err ? err : &mine;
    *report = (struct verify_report){0};
    if (make_url(&o, url, sizeof url, err) != 0)
        return -1;
    o.disk.read_only = !may_write;
    struct lp_disk *disk = open_disk(url, &o.disk, report, err);
    if (!disk)
        return -1;
    return may_write ? verify_written(&o, url, disk, &log, &pattern, err)
                     : verify_read_only(&o, url, disk, &log, &pattern, err);
}
