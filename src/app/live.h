/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is going on, on stderr: two lines that are redrawn on a terminal, plain lines elsewhere, one
 * for each point that is done. The cursor is left where it is, so nothing has to be put right
 * when the program is ended.
 */
#ifndef APP_LIVE_H
#define APP_LIVE_H

#include "bench/bench.h"

#include <stdio.h>

struct live {
    FILE *out;
    bool redraw, colour, blocks; /* blocks: the locale has block characters for bars */
    unsigned shown;              /* lines on the terminal just now */
    uint64_t drawn_ns;
    double highest_gbit_per_s;            /* so far: a full bar */
    const volatile sig_atomic_t *stopped; /* to say so */
};

void live_begin(struct live *live, FILE *out, const volatile sig_atomic_t *stopped);

/* For bench_options.progress; user is the struct live. */
void live_progress(const struct bench_progress *progress, void *user);

/* For verify_options.progress. */
void live_sentence(const char *sentence, void *user);

/* Takes away what is shown. */
void live_end(struct live *live);

#endif
