/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the JSON form: docs/result.schema.json. */
#include "bench/report_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static json_t *flags_array(uint32_t flags)
{
    json_t *array = json_array();

    for (unsigned bit = 0; bit < RESULT_FLAGS; bit++)
        if (flags & (1u << bit))
            json_array_append_new(array, json_string(report_flag_id(bit)));
    return array;
}

static json_t *string_value(const char *text)
{
    char clean[RESULT_TEXT];

    return json_string(report_clean(text, clean, sizeof clean));
}

static json_t *seed_value(uint64_t seed)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, seed);
    return json_string(digits);
}

static json_t *real_value(double value)
{
    return json_real(isfinite(value) ? value : 0);
}

static json_t *field_value(const struct json_field *f, const char *base)
{
    const void *at = base + f->offset;
    uint64_t u64;

    switch (f->kind) {
    case JSON_KIND_BOOL:
        return json_boolean(*(const bool *)at);
    case JSON_KIND_UINT:
        return json_integer(*(const unsigned *)at);
    case JSON_KIND_U64:
        u64 = *(const uint64_t *)at;
        return json_integer(u64 > INT64_MAX ? INT64_MAX : (json_int_t)u64);
    case JSON_KIND_SEED:
        return seed_value(*(const uint64_t *)at);
    case JSON_KIND_REAL:
    case JSON_KIND_SIGNED:
        return real_value(*(const double *)at);
    case JSON_KIND_STRING:
        return string_value(at);
    case JSON_KIND_FLAGS:
        return flags_array(*(const uint32_t *)at);
    }
    return NULL;
}

static json_t *object_of(const struct json_field *fields, const void *base)
{
    json_t *object = json_object();

    for (const struct json_field *f = fields; f->name; f++)
        json_object_set_new(object, f->name, field_value(f, base));
    return object;
}

static json_t *point_value(const struct result_point *p)
{
    json_t *object = object_of(json_point_fields, p);
    json_t *runs = json_array();

    for (unsigned i = 0; i < p->runs && i < RESULT_MAX_RUNS; i++)
        json_array_append_new(runs, real_value(p->run_gbit_per_s[i]));
    json_object_set_new(object, "run_gbit_per_s", runs);
    return object;
}

/* Not measured in this direction: no points. Else one for every depth. */
static json_t *direction_value(const struct result *r, const struct result_path *path, int d)
{
    json_t *object = json_object();
    json_t *points = json_array();

    if (path->summary[d].measured)
        for (unsigned i = 0; i < r->config.depth_count; i++) {
            struct result_point p = path->points[d][i];
            p.depth_asked = r->config.depths[i];
            json_array_append_new(points, point_value(&p));
        }
    json_object_set_new(object, "summary", object_of(json_summary_fields, &path->summary[d]));
    json_object_set_new(object, "points", points);
    return object;
}

static json_t *path_value(const struct result *r, const struct result_path *path)
{
    json_t *object = object_of(json_path_fields, path);
    json_t *results = json_object();

    json_object_set_new(object, "verify", object_of(json_verify_fields, &path->verify));
    for (int d = 0; d < RESULT_DIRECTIONS; d++)
        json_object_set_new(results, json_directions[d], direction_value(r, path, d));
    json_object_set_new(object, "results", results);
    return object;
}

static json_t *config_value(const struct result_config *c)
{
    json_t *object = object_of(json_config_fields, c);
    json_t *depths = json_array();

    for (unsigned i = 0; i < c->depth_count; i++)
        json_array_append_new(depths, json_integer(c->depths[i]));
    json_object_set_new(object, "depths", depths);
    return object;
}

static json_t *result_value(const struct result *r)
{
    json_t *root = json_object();
    json_t *paths = json_array();

    json_object_set_new(root, "format", json_string(REPORT_JSON_FORMAT));
    json_object_set_new(root, "version", json_integer(REPORT_JSON_VERSION));
    json_object_set_new(root, "incomplete", json_boolean(r->incomplete));
    json_object_set_new(root, "config", config_value(&r->config));
    json_object_set_new(root, "environment", object_of(json_environment_fields, &r->environment));
    json_object_set_new(root, "limits", object_of(json_limits_fields, &r->limits));
    for (unsigned i = 0; i < r->path_count; i++)
        json_array_append_new(paths, path_value(r, &r->paths[i]));
    json_object_set_new(root, "paths", paths);
    return root;
}

int report_json(const struct result *r, FILE *out)
{
    json_t *root = result_value(r);
    /* 15 digits come back as the same 15 digits, and do not end in 00000000001. */
    int status = json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15));

    json_decref(root);
    if (status == 0)
        fputc('\n', out);
    return status || ferror(out) ? -1 : 0;
}
