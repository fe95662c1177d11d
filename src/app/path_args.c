/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/path_args.h"

#include "app/target.h"
#include "host/host_type.h"

#include <string.h>

static const char *host_word(unsigned i)
{
    return host_types()[i] ? host_types()[i]->name : NULL;
}

static const char *engine_word(unsigned i)
{
    static const char *const words[] = {
        [LP_ENGINE_AUTO] = "auto", [LP_ENGINE_URING] = "uring", [LP_ENGINE_THREADS] = "threads"};

    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const struct option path_options[PATH_ISCSI] = {
    [PATH_HOST] = {.name = "host",
                   .type = OPTION_WORD,
                   .value = "HOST",
                   .words = host_word,
                   .help = "inline or ring, instead of each profile's own",
                   .group = "The path:"},
    [PATH_PAGE_SIZE] = {.name = "page-size",
                        .type = OPTION_SIZE,
                        .value = "SIZE",
                        .min = 1,
                        .max = UINT32_MAX,
                        .help = "page of the translation table: 4K (default) or 16K"},
    [PATH_MAX_SEGMENT] = {.name = "max-segment",
                          .type = OPTION_SIZE,
                          .value = "SIZE",
                          .min = 1,
                          .max = UINT32_MAX,
                          .help = "the driver takes no larger piece of memory"},
    [PATH_MAX_SEGMENTS] = {.name = "max-segments",
                           .type = OPTION_NUMBER,
                           .value = "N",
                           .min = 1,
                           .max = 1024,
                           .help = "the driver takes no more pieces of memory a request"},
    [PATH_MAX_TRANSFER] = {.name = "max-transfer",
                           .type = OPTION_SIZE,
                           .value = "SIZE",
                           .min = 1,
                           .max = UINT32_MAX,
                           .help = "the driver takes no larger request"},
    [PATH_TABLE_ENTRIES] = {.name = "table-entries",
                            .type = OPTION_NUMBER,
                            .value = "N",
                            .min = 1,
                            .max = UINT32_MAX,
                            .help = "dev: entries that tasks take from each other"},
    [PATH_CPUS] = {.name = "cpus",
                   .type = OPTION_NUMBERS,
                   .value = "A[,B]",
                   .min = 0,
                   .max = 4095,
                   .help = "run the application on CPU A, the driver on CPU B"},
    [PATH_RESTART_DRIVER] = {.name = "restart-driver",
                             .type = OPTION_FLAG,
                             .help = "start a driver that died again, with the same data"},
    [PATH_SMALL_PAGES] = {.name = "small-pages",
                          .type = OPTION_FLAG,
                          .help = "do not ask the system for huge pages"},
    [PATH_DISK] = {.name = "disk",
                   .type = OPTION_TEXT,
                   .value = "URL",
                   .help = "the disk behind the profiles (default: memory)",
                   .group = "The disk:"},
    [PATH_ENGINE] = {.name = "engine",
                     .type = OPTION_WORD,
                     .value = "ENGINE",
                     .words = engine_word,
                     .help = "of files and devices: auto (default), uring, threads"},
    [PATH_BUFFERED] = {.name = "buffered",
                       .type = OPTION_FLAG,
                       .help = "through the page cache, not around it"},
    [PATH_DESTROY] = {.name = "destroy",
                      .type = OPTION_FLAG,
                      .help = "write to the file or device; its data is lost"},
    [PATH_EVEN_WITH_DATA] = {.name = "even-with-data",
                             .type = OPTION_FLAG,
                             .help = "... even if a file system or the like is on it"},
};

void path_options_append(struct option *table)
{
    memcpy(table, path_options, sizeof path_options);
    iscsi_options_append(table + PATH_ISCSI);
}

static int refuse(struct lp_error *err, enum path_option option, const char *why)
{
    return lp_error_set(err, LP_ERROR_USAGE, 0, "--%s %s", path_options[option].name, why);
}

/* A target is called in the program itself. */
static int check_with_target(const struct option_value *v, struct lp_error *err)
{
    static const enum path_option none[] = {PATH_HOST, PATH_PAGE_SIZE, PATH_TABLE_ENTRIES,
                                            PATH_RESTART_DRIVER};

    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (v[none[i]].given)
            return refuse(err, none[i],
                          "is about profiles and has no effect on a target; leave it away");
    if (v[PATH_DISK].given)
        return refuse(err, PATH_DISK, "and a target are both a disk; give one of them");
    return 0;
}

static int check_path(const struct option_value *v, const struct path_use *use,
                      struct lp_error *err)
{
    uint64_t page = v[PATH_PAGE_SIZE].number;

    if (use->target && check_with_target(v, err) != 0)
        return -1;
    if (v[PATH_CPUS].count > 2)
        return refuse(err, PATH_CPUS, "takes one CPU for the application and one for the driver");
    if (v[PATH_CPUS].count == 2 && !use->ring)
        return refuse(err, PATH_CPUS,
                      "names a CPU for a driver process, and there is none; name one CPU");
    if (v[PATH_RESTART_DRIVER].given && !use->ring)
        return refuse(
            err, PATH_RESTART_DRIVER,
            "has no effect where no driver process is; choose a profile on the ring host");
    if (v[PATH_TABLE_ENTRIES].given && !use->multi)
        return refuse(err, PATH_TABLE_ENTRIES, "has an effect on the profile dev only; add it");
    if (v[PATH_PAGE_SIZE].given && !use->prepared)
        return refuse(err, PATH_PAGE_SIZE,
                      "has no effect on a path without preparation; choose a dma profile or dev");
    if (v[PATH_PAGE_SIZE].given && page != 4096 && page != 16384)
        return refuse(err, PATH_PAGE_SIZE, "must be 4K or 16K");
    return 0;
}

static int check_disk(const struct option_value *v, const struct path_use *use, bool file,
                      struct lp_error *err)
{
    static const enum path_option of_files[] = {PATH_ENGINE, PATH_BUFFERED, PATH_DESTROY};

    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
        if (v[of_files[i]].given && !file)
            return refuse(err, of_files[i],
                          "is about files and devices, and none is named; leave it away");
    if (v[PATH_EVEN_WITH_DATA].given && !v[PATH_DESTROY].given)
        return refuse(err, PATH_EVEN_WITH_DATA, "has no effect without --destroy");
    if (file && use->writes_asked && !v[PATH_DESTROY].given)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "writing to a file or device destroys what is on it; add --destroy, or "
                            "only read");
    return 0;
}

static void set_host(const struct option_value *v, struct lp_host_opts *host)
{
    if (v[PATH_HOST].given)
        host->host = host_word((unsigned)v[PATH_HOST].number);
    if (v[PATH_PAGE_SIZE].given)
        host->page_size = (uint32_t)v[PATH_PAGE_SIZE].number;
    host->max_segment = (uint32_t)v[PATH_MAX_SEGMENT].number;
    host->max_segments = (uint32_t)v[PATH_MAX_SEGMENTS].number;
    host->max_transfer = (uint32_t)v[PATH_MAX_TRANSFER].number;
    host->table_entries = (uint32_t)v[PATH_TABLE_ENTRIES].number;
    host->restart_driver = v[PATH_RESTART_DRIVER].given;
    host->small_pages = v[PATH_SMALL_PAGES].given;
    if (v[PATH_CPUS].count > 0)
        host->app_cpu = (int)v[PATH_CPUS].list[0];
    if (v[PATH_CPUS].count > 1)
        host->driver_cpu = (int)v[PATH_CPUS].list[1];
}

static int take_iscsi(const struct option_value *v, const struct path_use *use, const char *named,
                      struct lp_disk_opts *disk, struct lp_error *err)
{
    const char *lun = named ? target_lun_url(named) : NULL;

    if (!lun) {
        if (iscsi_options_given(v + PATH_ISCSI))
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "options of iSCSI are given, and the disk is none; name a LUN as "
                                "iscsi://HOST/TARGET/LUN, or leave them away");
        return 0;
    }
    if (use->ring)
        return refuse(err, PATH_DISK,
                      "cannot be an iSCSI LUN behind a profile: the driver process "
                      "has no network; give the LUN as the target instead");
    disk->iscsi = &use->iscsi->opts;
    return iscsi_args_take(v + PATH_ISCSI, lun, use->iscsi, err);
}

int path_args_take(const struct option_value *v, const struct path_use *use,
                   struct lp_host_opts *host, struct lp_disk_opts *disk, struct lp_error *err)
{
    const char *named = use->target ? use->target : v[PATH_DISK].text;
    bool file =
        named && (target_path(named) || target_lun_url(named)); /* somebody's data are there */

    if (check_path(v, use, err) != 0 || check_disk(v, use, file, err) != 0)
        return -1;
    if (take_iscsi(v, use, named, disk, err) != 0)
        return -1;
    set_host(v, host);
    disk->engine = (enum lp_engine)v[PATH_ENGINE].number;
    disk->buffered = v[PATH_BUFFERED].given;
    disk->small_pages = v[PATH_SMALL_PAGES].given;
    disk->read_only = file && !v[PATH_DESTROY].given;
    return 0;
}
