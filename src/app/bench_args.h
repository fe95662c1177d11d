/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `lunpath bench`, read and checked, before anything is opened. */
#ifndef APP_BENCH_ARGS_H
#define APP_BENCH_ARGS_H

#include "app/iscsi_args.h"
#include "app/options.h"
#include "app/report_files.h"
#include "bench/bench.h"

struct bench_args {
    struct bench_options bench; /* target and disk_url as typed; progress, interrupted not set */
    bool profiles_named;        /* with --profile, not by default */
    bool destroy;
    bool even_with_data;
    struct iscsi_args iscsi; /* bench.disk.iscsi points here: args stay in place */
    struct report_files files;
};

enum { BENCH_MAX_OPTIONS = 96 };

/* Fills table[0..BENCH_MAX_OPTIONS); returns how many there are. */
unsigned bench_table(struct option *table);

/* argv[0..argc) behind "bench". argv must outlive args. 0, or -1 with LP_ERROR_USAGE. */
int bench_args_parse(int argc, char **argv, struct bench_args *args, struct lp_error *err);

#endif
