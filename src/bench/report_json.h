/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members of the JSON form, as tables: one row says where a member of struct result stands, its
 * name in JSON (with its unit) and its range. Writing and reading walk the same tables, so that
 * they cannot differ. docs/result.schema.json says the same to other programs; a test compares
 * them.
 */
#ifndef BENCH_REPORT_JSON_H
#define BENCH_REPORT_JSON_H

#include "bench/report_int.h"

enum { REPORT_JSON_VERSION = 1, REPORT_JSON_MAX_BYTES = 16 << 20 };

#define REPORT_JSON_FORMAT "lunpath-result"

enum json_kind {
    JSON_KIND_BOOL,   /* bool */
    JSON_KIND_UINT,   /* unsigned, 0..max */
    JSON_KIND_U64,    /* uint64_t, 0..2^63-1 (more is written as that) */
    JSON_KIND_SEED,   /* uint64_t as a string of digits, since JSON numbers may lose digits */
    JSON_KIND_REAL,   /* double, 0..max; what is not finite is written as 0 */
    JSON_KIND_SIGNED, /* the same from -max on */
    JSON_KIND_STRING, /* char[max], cleaned when written */
    JSON_KIND_FLAGS,  /* uint32_t as an array of flag ids */
};

/* Larger than anything measured, small enough that sums and squares of it stay finite. */
#define REPORT_JSON_REAL_MAX 1e15

struct json_field {
    const char *name;
    enum json_kind kind;
    size_t offset;
    double max; /* as the kind says */
};

/* Tables, each ended by a NULL name. */
extern const struct json_field json_config_fields[];
extern const struct json_field json_environment_fields[];
extern const struct json_field json_limits_fields[];
extern const struct json_field json_path_fields[];
extern const struct json_field json_verify_fields[];
extern const struct json_field json_summary_fields[];
extern const struct json_field json_point_fields[];

/* "read", "write", "mixed": the members of a path's "results". */
extern const char *const json_directions[RESULT_DIRECTIONS];

#endif
