/* SPDX-License-Identifier: BSD-2-Clause */
/* lunpath copy: a disk to another, checked before, summed on the way, compared after. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/copy_run.h"
#include "app/iscsi_args.h"
#include "app/live.h"
#include "app/stop.h"
#include "app/target.h"
#include "base/clock.h"
#include "base/size.h"

enum {
    COPY_DESTROY,
    COPY_VERIFY,
    COPY_SPARSE,
    COPY_BLOCK,
    COPY_DEPTH,
    COPY_BUFFERED,
    COPY_ISCSI,
    COPY_OPTION_COUNT = COPY_ISCSI + ISCSI_OPTION_COUNT,
};

enum { DEFAULT_DEPTH = 8, DEFAULT_BLOCK = 1 << 20 };

static const struct option copy_options[COPY_ISCSI] = {
    [COPY_DESTROY] = {.name = "destroy",
                      .type = OPTION_FLAG,
                      .help = "overwrite DST even if a file system or the like is on it",
                      .group = "How to copy:"},
    [COPY_VERIFY] = {.name = "verify",
                     .type = OPTION_FLAG,
                     .help = "read DST back and compare each block's CRC32C"},
    [COPY_SPARSE] = {.name = "sparse",
                     .type = OPTION_FLAG,
                     .help = "do not write zeros where DST has zeros already"},
    [COPY_BLOCK] = {.name = "block",
                    .type = OPTION_SIZE,
                    .value = "SIZE",
                    .min = 4096,
                    .max = 64 << 20,
                    .help = "bytes of one request (default 1M)"},
    [COPY_DEPTH] = {.name = "depth",
                    .type = OPTION_NUMBER,
                    .value = "N",
                    .min = 1,
                    .max = 128,
                    .help = "blocks on their way at once (default 8)"},
    [COPY_BUFFERED] = {.name = "buffered",
                       .type = OPTION_FLAG,
                       .help = "files through the page cache, not around it"},
};

static unsigned copy_table(struct option *table)
{
    memcpy(table, copy_options, sizeof(copy_options));
    iscsi_options_append(table + COPY_ISCSI);
    return COPY_OPTION_COUNT;
}

/* SRC or DST. */
struct side {
    const char *name; /* as typed */
    bool written;
    struct iscsi_args iscsi;
    struct lp_disk *disk;
    struct stat file; /* what stands behind it, if is_file */
    bool is_file;
};

struct copying {
    const struct option_value *v;
    struct side from, to;
    struct copy_opts opts;
    struct live live;
    uint64_t shown_ns;
};

static int open_side(struct side *s, const struct option_value *v, struct lp_error *err)
{
    struct target_opts target = {.destroy = s->written,
                                 .even_with_data = v[COPY_DESTROY].given,
                                 .even_with_data_option = "--destroy",
                                 .buffered = v[COPY_BUFFERED].given,
                                 .iscsi = &s->iscsi.opts};
    struct lp_disk_opts disk = {.fd = -1,
                                .read_only = !s->written,
                                .buffered = v[COPY_BUFFERED].given,
                                .zero_reads = true,
                                .iscsi = &s->iscsi.opts};
    const char *lun = target_lun_url(s->name);
    char *url;

    if (lun && iscsi_args_take(v + COPY_ISCSI, lun, &s->iscsi, err) < 0)
        return -1;
    if (target_open(s->name, &target, &disk.fd, err) < 0)
        return -1;
    s->is_file = disk.fd >= 0 && fstat(disk.fd, &s->file) == 0;
    url = target_url(s->name);
    if (url)
        s->disk = lp_disk_open(url, &disk, err);
    else
        lp_error_sys(err, ENOMEM, "cannot open %s", s->name);
    free(url);
    return s->disk ? 0 : -1;
}

/* ---- before anything is written ---- */

static int check_same(const struct copying *c, struct lp_error *err)
{
    const struct side *a = &c->from, *b = &c->to;
    bool same = a->is_file && b->is_file && a->file.st_dev == b->file.st_dev &&
                a->file.st_ino == b->file.st_ino;

    if (target_lun_url(a->name) && target_lun_url(b->name))
        same = strcmp(target_lun_url(a->name), target_lun_url(b->name)) == 0;
    if (!same)
        return 0;
    return lp_error_set(err, LP_ERROR_USAGE, 0, "%s and %s are one disk; name another to copy to",
                        a->name, b->name);
}

/* A disk has whole blocks, a file may have more: its end would be left out. */
static int check_whole(const struct side *s, struct lp_error *err)
{
    const struct lp_limits *l = lp_disk_limits(s->disk);

    if (!s->is_file || !S_ISREG(s->file.st_mode) || (uint64_t)s->file.st_size == l->size)
        return 0;
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "%s has %llu bytes, which are no whole blocks of %" PRIu32
                        "; lengthen it with 'truncate -s %%%" PRIu32 " %s'",
                        s->name, (unsigned long long)s->file.st_size, l->block_size, l->block_size,
                        s->name);
}

static int check_sizes(struct copying *c, struct lp_error *err)
{
    const struct lp_limits *from = lp_disk_limits(c->from.disk), *to = lp_disk_limits(c->to.disk);
    char a[32], b[32];

    if (check_whole(&c->from, err) < 0)
        return -1;
    if (from->size > to->size)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%s (%" PRIu64 " bytes, %s) does not fit into %s (%" PRIu64
                            " bytes, %s); nothing was written",
                            c->from.name, from->size, size_format(from->size, a, sizeof(a)),
                            c->to.name, to->size, size_format(to->size, b, sizeof(b)));
    if (from->size % to->block_size)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%s has %" PRIu64 " bytes, and %s takes whole blocks of %" PRIu32
                            " only; nothing was written",
                            c->from.name, from->size, c->to.name, to->block_size);
    if (c->opts.chunk % from->block_size || c->opts.chunk % to->block_size)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "--block must be a multiple of the blocks of both disks, %" PRIu32
                            " and %" PRIu32 " bytes",
                            from->block_size, to->block_size);
    if (to->read_only)
        return lp_error_set(err, LP_ERROR_SYS, EROFS, "%s is write-protected", c->to.name);
    return 0;
}

/* ---- while and after ---- */

static void show_progress(void *user, bool verifying, uint64_t done, uint64_t total)
{
    struct copying *c = user;
    char text[160], a[32], b[32];
    uint64_t now = clock_now_ns();

    if (!c->live.redraw || now - c->shown_ns < 100000000)
        return;
    c->shown_ns = now;
    snprintf(text, sizeof(text), "%s %s of %s (%.0f %%)", verifying ? "compared" : "copied",
             size_format(done, a, sizeof(a)), size_format(total, b, sizeof(b)),
             100.0 * (double)done / (double)total);
    live_sentence(text, &c->live);
}

static void print_report(const struct copying *c, const struct copy_report *r)
{
    char a[32], b[32];

    printf("copied %s (%" PRIu64 " bytes) in %.3f s, %.3f Gbit/s", size_format(r->copied, a, 32),
           r->copied, r->seconds, r->seconds > 0 ? 8e-9 * (double)r->copied / r->seconds : 0);
    if (c->opts.sparse)
        printf("; %s were written", size_format(r->written, b, sizeof(b)));
    putchar('\n');
    if (r->copied < r->total) {
        puts("INCOMPLETE: it ended early; the destination has part of the data");
        return;
    }
    /* As a number, as other programs print it: the wire has the lowest byte first. */
    printf("CRC32C of the data: %02x%02x%02x%02x\n", r->crc[3], r->crc[2], r->crc[1], r->crc[0]);
    if (r->wrong)
        printf("WRONG DATA: what was read back differs, first in the block at byte %" PRIu64 "\n",
               r->wrong_at);
    else if (c->opts.verify && r->verified == r->total)
        puts("read back and compared: every block is right");
    else if (c->opts.verify)
        puts("INCOMPLETE: it was not read back to its end");
}

static int copy(struct copying *c, struct copy_report *report, struct lp_error *err)
{
    struct stop stop;
    int status;

    if (stop_begin(&stop, err) != 0)
        return command_fail(&command_copy, err);
    live_begin(&c->live, stderr, &stop.interrupted);
    c->opts.interrupted = &stop.interrupted;
    status = copy_run(c->from.disk, c->to.disk, &c->opts, report, err);
    live_end(&c->live);
    if (report->copied)
        print_report(c, report);
    if (status == 0 && fflush(stdout) != 0)
        status = lp_error_sys(err, errno, "the result cannot be written to stdout");
    status = status < 0      ? command_fail(&command_copy, err)
             : report->wrong ? STATUS_WRONG_DATA
                             : STATUS_RIGHT;
    return stop_end(&stop, status);
}

static int check_options(const struct copying *c, unsigned names, struct lp_error *err)
{
    if (names != 2)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "name two disks, from and to: lunpath copy SRC DST");
    if (iscsi_options_given(c->v + COPY_ISCSI) && !target_lun_url(c->from.name) &&
        !target_lun_url(c->to.name))
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "options of iSCSI are given, and neither disk is a LUN; leave them "
                            "away");
    return 0;
}

static int cmd_copy(int argc, char **argv)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[COPY_OPTION_COUNT];
    const char *items[3] = {"", ""};
    struct arguments arguments = {.items = items, .max = 3};
    struct copying c = {.v = v, .to = {.written = true}};
    struct copy_report report = {0};
    struct lp_error err = {0};
    int status;

    if (options_parse(table, copy_table(table), argc, argv, v, &arguments, &err) < 0)
        return command_fail(&command_copy, &err);
    c.from.name = items[0];
    c.to.name = items[1];
    c.opts = (struct copy_opts){
        .chunk = v[COPY_BLOCK].given ? (uint32_t)v[COPY_BLOCK].number : DEFAULT_BLOCK,
        .depth = v[COPY_DEPTH].given ? (unsigned)v[COPY_DEPTH].number : DEFAULT_DEPTH,
        .sparse = v[COPY_SPARSE].given,
        .verify = v[COPY_VERIFY].given,
        .progress = show_progress,
        .user = &c,
    };
    if (check_options(&c, arguments.count, &err) < 0 || open_side(&c.from, v, &err) < 0 ||
        open_side(&c.to, v, &err) < 0 || check_same(&c, &err) < 0 || check_sizes(&c, &err) < 0)
        status = command_fail(&command_copy, &err);
    else
        status = copy(&c, &report, &err);
    lp_disk_close(c.from.disk);
    lp_disk_close(c.to.disk);
    iscsi_args_forget(&c.from.iscsi);
    iscsi_args_forget(&c.to.iscsi);
    return status;
}

const struct command command_copy = {
    .name = "copy",
    .arguments = "[OPTION ...] SRC DST",
    .summary = "copy a disk to another, with a checksum",
    .more =
        "SRC and DST are files, block devices or disk URLs. DST is as large as SRC or larger;\n"
        "what is behind is left as it was. A DST that bears data is refused without --destroy.\n"
        "Exit status: 0 all right, 1 failed, 2 usage, 3 wrong data, 130 or 143 interrupted.",
    .options = copy_table,
    .run = cmd_copy,
};
