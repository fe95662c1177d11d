/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports as strings, for tests. Include after cmocka.h. */
#ifndef TESTS_SAMPLE_RENDER_H
#define TESTS_SAMPLE_RENDER_H

#include "bench/report.h"
#include "sample_result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline struct result *new_result(void (*fill)(struct result *))
{
    struct result *r = malloc(sizeof *r);

    assert_non_null(r);
    fill(r);
    return r;
}

/* What render writes, to be freed. Not inlined: gcc 12 would take the stream's memory for the
 * variable `text` itself and warn. */
__attribute__((noinline, unused)) static char *
rendered(int (*render)(const struct result *, const struct report_options *, FILE *),
         const struct result *r, const struct report_options *opts)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    assert_int_equal(render(r, opts, out), 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(strlen(text), length);
    return text;
}

static inline bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

#endif
