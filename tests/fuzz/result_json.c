/* SPDX-License-Identifier: BSD-2-Clause */
/* Result files from anywhere: what is accepted must render in every form, and read back the same.
 */
#include "bench/report_int.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The JSON of r in malloc'ed memory. */
static char *json_of(const struct result *r, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);

    if (!out || report_json(r, out) || fclose(out))
        abort();
    return text;
}

static void render(const struct result *r)
{
    const struct report_options opts = {.reference = true};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (!out || report_text(r, &opts, out) || report_csv(r, out) || report_html(r, &opts, out) ||
        report_compare(r, r, "a", "b", out) || fclose(out))
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result *r = calloc(1, sizeof *r), *again = calloc(1, sizeof *again);
    struct lp_error err = {0};
    size_t length[2];

    if (r && again && report_json_read_buffer("input", (const char *)data, size, r, &err) == 0) {
        char *first = json_of(r, &length[0]);
        if (report_json_read_buffer("again", first, length[0], again, &err))
            abort();
        char *second = json_of(again, &length[1]);
        if (length[0] != length[1] || memcmp(first, second, length[0]) != 0)
            abort();
        free(first);
        free(second);
        render(r);
    } else if (!err.msg[0]) {
        abort(); /* refused without a sentence */
    }
    free(r);
    free(again);
    return 0;
}
