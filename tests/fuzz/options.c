/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines of bench, one argument a line, and the sizes and distances in them. */
#include "app/bench_args.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ARGS = 64 };

static void require(bool right)
{
    if (!right)
        abort();
}

/* What was accepted keeps what the table promises. */
static void check_accepted(const struct bench_args *args)
{
    const struct bench_options *b = &args->bench;

    require(b->depth_count >= 1 && b->depth_count <= RESULT_MAX_DEPTHS);
    for (unsigned i = 0; i < b->depth_count; i++)
        require(b->depths[i] >= 1 && b->depths[i] <= 1024);
    require(b->profile_count <= RESULT_MAX_PATHS && (b->profile_count > 0) == !b->target);
    require(b->block_bytes >= 1 && b->runs >= 1 && b->runs <= RESULT_MAX_RUNS);
    require(b->seconds > 0 && b->warmup_s >= 0);
    require(b->directions[RESULT_READ] || b->directions[RESULT_WRITE] ||
            b->directions[RESULT_MIXED]);
    require(!b->disk.read_only || (!b->directions[RESULT_WRITE] && !b->directions[RESULT_MIXED]));
    require(!args->even_with_data || args->destroy);
}

static void check_one_argument(const char *text)
{
    uint64_t bytes;
    struct lp_error err = {0};

    require(words_distance(text, text) == 0 || strlen(text) > 63);
    require(words_distance(text, "depths") == words_distance("depths", text));
    if (size_parse(text, "size", &bytes, &err) != 0)
        require(err.domain == LP_ERROR_USAGE && err.msg[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *argv[MAX_ARGS];
    struct bench_args args;
    struct lp_error err = {0};
    int argc = 0;

    require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *word = strtok(text, "\n"); word && argc < MAX_ARGS; word = strtok(NULL, "\n")) {
        check_one_argument(word);
        argv[argc++] = word;
    }
    if (bench_args_parse(argc, argv, &args, &err) == 0)
        check_accepted(&args);
    else
        require(err.domain == LP_ERROR_USAGE && err.msg[0] && !strchr(err.msg, '\n'));
    free(text);
    return 0;
}
