/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "sample_render.h"

#ifdef LP_HAVE_JANSSON

#include "bench/report_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <unistd.h>

static int json(const struct result *r, const struct report_options *opts, FILE *out)
{
    (void)opts;
    return report_json(r, out);
}

static int read_text(const char *text, struct result *r, struct lp_error *err)
{
    return report_json_read_buffer("x.json", text, strlen(text), r, err);
}

static void a_result_survives_json_and_back(void **state)
{
    (void)state;
    void (*const fills[])(struct result *) = {sample_result, sample_preset};

    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++) {
        struct result *r = new_result(fills[i]), *back = malloc(sizeof *back);
        struct lp_error err = {0};
        char *first = rendered(json, r, NULL);
        if (read_text(first, back, &err))
            fail_msg("%s", err.msg);
        char *second = rendered(json, back, NULL);
        assert_string_equal(first, second);
        assert_true(back->config.seed == r->config.seed);
        assert_string_equal(back->paths[0].name, r->paths[0].name);
        assert_int_equal(back->paths[0].points[RESULT_READ][0].flags,
                         r->paths[0].points[RESULT_READ][0].flags);
        assert_true(fabs(back->limits.copy_gbit_per_s - r->limits.copy_gbit_per_s) < 1e-12);
        free(first);
        free(second);
        free(r);
        free(back);
    }
}

/* Every byte of the struct that has a meaning comes back: fill them all with other values. */
static void every_member_comes_back(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result), *back = malloc(sizeof *back);
    struct lp_error err = {0};
    struct result_point *p = &r->paths[4].points[RESULT_WRITE][7];

    r->incomplete = true;
    r->paths[2].driver_restarts = 3;
    p->errors = 5;
    p->flags = (1u << RESULT_FLAGS) - 1;
    p->drift = -0.4;
    char *text = rendered(json, r, NULL);
    assert_int_equal(read_text(text, back, &err), 0);
    assert_true(back->incomplete);
    assert_int_equal(back->paths[2].driver_restarts, 3);
    struct result_point *q = &back->paths[4].points[RESULT_WRITE][7];
    assert_int_equal(q->errors, 5);
    assert_int_equal(q->flags, p->flags);
    assert_true(q->drift == -0.4);
    assert_int_equal(q->lat_ns_p999, p->lat_ns_p999);
    assert_int_equal(q->depth_max, p->depth_max);
    assert_memory_equal(&back->config, &r->config, sizeof r->config);
    assert_memory_equal(&back->environment, &r->environment, sizeof r->environment);
    free(text);
    free(r);
    free(back);
}

static void what_json_cannot_hold_is_written_as_what_it_can(void **state)
{
    (void)state;
    struct result *r = new_result(sample_result), *back = malloc(sizeof *back);
    struct lp_error err = {0};

    r->limits.memcpy_gbit_per_s = NAN;
    r->paths[0].points[RESULT_READ][0].ios_per_s = INFINITY;
    r->paths[0].points[RESULT_READ][0].lat_ns_max = UINT64_MAX;
    strcpy(r->environment.hostname, "a\033\xff\xe2\x82");
    char *text = rendered(json, r, NULL);
    assert_int_equal(read_text(text, back, &err), 0);
    assert_true(back->limits.memcpy_gbit_per_s == 0);
    assert_true(back->paths[0].points[RESULT_READ][0].ios_per_s == 0);
    assert_true(back->paths[0].points[RESULT_READ][0].lat_ns_max == INT64_MAX);
    assert_string_equal(back->environment.hostname, "a????");
    free(text);
    free(r);
    free(back);
}

/* The sample's JSON with the first `from` exchanged for `to`. */
static char *changed(const char *from, const char *to)
{
    struct result *r = new_result(sample_result);
    char *text = rendered(json, r, NULL);

    if (!strstr(text, from))
        fail_msg("%s is not in the JSON", from);
    size_t before = strlen(text) - strlen(strstr(text, from));
    size_t size = strlen(text) + strlen(to) + 1;
    char *result = malloc(size);
    assert_non_null(result);
    memcpy(result, text, before);
    snprintf(result + before, size - before, "%s%s", to, text + before + strlen(from));
    free(text);
    free(r);
    return result;
}

static void each_wrong_member_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"lunpath-result\"", "\"other\"", "not a result of lunpath"},
        {"\"version\": 1", "\"version\": 2", "version 2"},
        {"\"version\": 1", "\"version\": \"1\"", "not a result of lunpath"},
        {"\"incomplete\": false", "\"incomplete\": 0", "\"incomplete\" must be true or false"},
        {"\"block_bytes\": 1048576", "\"block_bytes\": -1", "config.block_bytes"},
        {"\"block_bytes\": 1048576", "\"block_bytes\": 1.5", "config.block_bytes"},
        {"\"block_bytes\"", "\"block\"", "\"config.block_bytes\" is missing"},
        {"\"block_bytes\": 1048576", "\"block_bytes\": 99999999999999999999", "not JSON"},
        {"\"queues\": 1", "\"queues\": 4294967296", "config.queues"},
        {"\"18446744073709551615\"", "\"18446744073709551616\"", "config.seed"},
        {"\"18446744073709551615\"", "\"-1\"", "config.seed"},
        {"\"18446744073709551615\"", "7", "config.seed"},
        {"\"depths\": [", "\"depths\": [0,", "config.depths"},
        {"\"depths\": [", "\"depths\": [1,1,1,1,1,1,1,1,1,", "at most 16 items"},
        {"\"depths\": [", "\"depths\": [1,", "paths[0].results.read.points"},
        {"\"hostname\": \"sample\"", "\"hostname\": \"\\u001b[2J\"", "control characters"},
        {"\"hostname\": \"sample\"", "\"hostname\": \"\\u0000\"", "not JSON"},
        {"\"hostname\": \"sample\"", "\"hostname\": \"\xff\"", "not JSON"},
        {"\"hostname\": \"sample\"", "\"hostname\": []", "environment.hostname"},
        {"\"memcpy_gbit_per_s\": 62.5", "\"memcpy_gbit_per_s\": NaN", "not JSON"},
        {"\"memcpy_gbit_per_s\": 62.5", "\"memcpy_gbit_per_s\": 1e999", "not JSON"},
        {"\"memcpy_gbit_per_s\": 62.5", "\"memcpy_gbit_per_s\": 1e300", "limits.memcpy_gbit_per_s"},
        {"\"memcpy_gbit_per_s\": 62.5", "\"memcpy_gbit_per_s\": -1", "limits.memcpy_gbit_per_s"},
        {"\"memcpy_gbit_per_s\": 62.5", "\"memcpy_gbit_per_s\": null", "limits.memcpy_gbit_per_s"},
        {"\"limits\": {", "\"limits\": 1, \"x\": {", "\"limits\" must be an object"},
        {"\"name\": \"software\"", "\"name\": \"a\", \"name\": \"b\"", "not JSON"},
        {"\"wide_spread\"", "\"wide\"", "unknown flag"},
        {"\"wide_spread\"", "1", "unknown flag"},
        {"\"depth_asked\": 1,", "\"depth_asked\": 3,", "points[0].depth_asked"},
        {"\"runs\": 3,", "\"runs\": 33,", "config.runs"},
        {"\"run_gbit_per_s\": [", "\"run_gbit_per_s\": [1,", "run_gbit_per_s"},
        {"\"verify\": {", "\"verify\": [], \"x\": {", "paths[0].verify"},
        {"\"mixed\": {", "\"mixd\": {", "paths[0].results.mixed"},
    };
    struct result *r = malloc(sizeof *r);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lp_error err = {0};
        char *text = changed(cases[i].from, cases[i].to);
        assert_int_equal(read_text(text, r, &err), -1);
        if (!has(err.msg, cases[i].says) || !has(err.msg, "x.json"))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].to, err.msg, cases[i].says);
        assert_int_equal(r->path_count, 0);
        free(text);
    }
    free(r);
}

static void members_of_a_later_writer_are_ignored(void **state)
{
    (void)state;
    struct result *r = malloc(sizeof *r);
    struct lp_error err = {0};
    char *text = changed("\"limits\": {", "\"limits\": {\"more\": [1, {}],");

    assert_int_equal(read_text(text, r, &err), 0);
    free(text);
    free(r);
}

static void a_file_cut_anywhere_is_refused_with_a_sentence(void **state)
{
    (void)state;
    struct result *r = new_result(sample_preset), *back = malloc(sizeof *back);
    char *text = rendered(json, r, NULL);

    for (size_t length = strlen(text) - 2; length > 0; length -= length > 7 ? 7 : length) {
        struct lp_error err = {0};
        assert_int_equal(report_json_read_buffer("x.json", text, length, back, &err), -1);
        assert_true(has(err.msg, "x.json"));
    }
    free(text);
    free(r);
    free(back);
}

static void what_is_too_large_or_too_deep_is_refused(void **state)
{
    (void)state;
    struct result *r = malloc(sizeof *r);
    struct lp_error err = {0};
    size_t size = REPORT_JSON_MAX_BYTES + 1;
    char *text = malloc(size);

    assert_non_null(text);
    memset(text, ' ', size);
    assert_int_equal(report_json_read_buffer("x.json", text, size, r, &err), -1);
    assert_true(has(err.msg, "larger than 16 MiB"));
    memset(text, '[', size);
    assert_int_equal(report_json_read_buffer("x.json", text, size - 1, r, &err), -1);
    assert_true(has(err.msg, "not JSON"));
    free(text);
    free(r);
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    struct result *r = malloc(sizeof *r);
    struct lp_error err = {0};

    assert_int_equal(report_json_read("/nonexistent/x.json", r, &err), -1);
    assert_int_equal(err.code, ENOENT);
    assert_true(has(err.msg, "/nonexistent/x.json"));
    assert_int_equal(report_json_read("/tmp", r, &err), -1);
    assert_true(has(err.msg, "/tmp"));
    assert_int_equal(report_json_read("/dev/zero", r, &err), -1);
    assert_true(has(err.msg, "is no file"));
    free(r);
}

static void a_file_that_is_too_large_is_not_read_to_its_end(void **state)
{
    (void)state;
    char path[] = "/tmp/lunpath-json-XXXXXX";
    struct result *r = malloc(sizeof *r);
    struct lp_error err = {0};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    assert_int_equal(report_json_read(path, r, &err), -1);
    assert_true(has(err.msg, "larger than 16 MiB"));
    close(fd);
    unlink(path);
    free(r);
}

static void a_fifo_is_not_waited_for_and_a_pipe_is_read(void **state)
{
    (void)state;
    char folder[] = "/tmp/lunpath-json-XXXXXX", path[64];
    struct result *r = malloc(sizeof *r);
    struct lp_error err = {0};
    int ends[2];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(report_json_read(path, r, &err), -1);
    assert_true(has(err.msg, "nobody writes to it"));
    unlink(path);
    rmdir(folder);

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "{}", 2), 2);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(report_json_read(path, r, &err), -1);
    if (!has(err.msg, "is not a result of lunpath")) /* it was read */
        fail_msg("%s", err.msg);
    close(ends[0]);
    free(r);
}

static void a_written_file_reads_back(void **state)
{
    (void)state;
    char path[] = "/tmp/lunpath-json-XXXXXX";
    int fd = mkstemp(path);
    struct result *r = new_result(sample_result), *back = malloc(sizeof *back);
    struct lp_error err = {0};

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(report_write_file(path, r, NULL, json, &err), 0);
    int status = report_json_read(path, back, &err);
    unlink(path);
    assert_int_equal(status, 0);
    assert_int_equal(back->path_count, r->path_count);
    free(r);
    free(back);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), e = strlen(end);

    return n >= e && strcmp(name + n - e, end) == 0;
}

/* M2: a number has its unit in its name, or is a plain count, depth or load. */
static bool says_unit(const struct json_field *f)
{
    static const char *const units[] = {"_gbit_per_s", "_bytes", "_ns",        "_s",
                                        "_per_s",      "_ratio", "_s_per_gib", "_per_io"};
    static const char *const counts[] = {
        "queues",       "runs",         "threads",         "cpus_online",
        "cpus_allowed", "load_1min",    "errors",          "depth_asked",
        "depth_max",    "depth_mean",   "highest_depth",   "lowest_depth",
        "requests",     "wrong_blocks", "driver_restarts", "gbit_per_s"};

    if (f->kind != JSON_KIND_UINT && f->kind != JSON_KIND_U64 && f->kind != JSON_KIND_REAL &&
        f->kind != JSON_KIND_SIGNED)
        return true;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (ends_with(f->name, units[i]))
            return true;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (strcmp(f->name, counts[i]) == 0)
            return true;
    return false;
}

static const struct {
    const char *name;
    const struct json_field *fields;
    unsigned others; /* required members that are no plain field */
} tables[] = {
    {"config", json_config_fields, 1}, {"environment", json_environment_fields, 0},
    {"limits", json_limits_fields, 0}, {"path", json_path_fields, 2},
    {"verify", json_verify_fields, 0}, {"summary", json_summary_fields, 0},
    {"point", json_point_fields, 1},
};

static void m2_every_number_has_its_unit_in_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct json_field *f = tables[i].fields; f->name; f++)
            if (!says_unit(f))
                fail_msg("%s.%s does not say its unit", tables[i].name, f->name);
}

static json_t *load_source(const char *name)
{
    char path[512];
    const char *source = getenv("LUNPATH_SOURCE");

    if (!source) {
        print_message("LUNPATH_SOURCE does not say where the sources are\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/%s", source, name);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

static void check_field(const char *table, const struct json_field *f, const json_t *schema)
{
    static const char *const types[] = {
        [JSON_KIND_BOOL] = "boolean",  [JSON_KIND_UINT] = "integer", [JSON_KIND_U64] = "integer",
        [JSON_KIND_SEED] = "string",   [JSON_KIND_REAL] = "number",  [JSON_KIND_SIGNED] = "number",
        [JSON_KIND_STRING] = "string", [JSON_KIND_FLAGS] = "array"};
    const json_t *property = json_object_get(json_object_get(schema, "properties"), f->name);
    const char *type = json_string_value(json_object_get(property, "type"));

    if (!type || strcmp(type, types[f->kind]) != 0)
        fail_msg("the schema has no %s %s.%s", types[f->kind], table, f->name);
    if (!json_string_value(json_object_get(property, "description")))
        fail_msg("the schema does not describe %s.%s", table, f->name);
    if (f->kind == JSON_KIND_STRING)
        assert_int_equal(json_integer_value(json_object_get(property, "maxLength")), f->max - 1);
    if (f->kind == JSON_KIND_UINT)
        assert_true((double)json_integer_value(json_object_get(property, "maximum")) == f->max);
    if (f->kind == JSON_KIND_REAL || f->kind == JSON_KIND_SIGNED)
        assert_true(json_number_value(json_object_get(property, "maximum")) == f->max);
}

static void the_schema_and_the_code_know_the_same_members(void **state)
{
    (void)state;
    json_t *schema = load_source("docs/result.schema.json");
    const json_t *defs = json_object_get(schema, "$defs");

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const json_t *def = json_object_get(defs, tables[i].name);
        size_t n = tables[i].others;
        for (const struct json_field *f = tables[i].fields; f->name; f++, n++)
            check_field(tables[i].name, f, def);
        assert_int_equal(json_object_size(json_object_get(def, "properties")), n);
        assert_int_equal(json_array_size(json_object_get(def, "required")), n);
    }
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *version = json_object_get(properties, "version");
    assert_int_equal(json_integer_value(json_object_get(version, "const")), REPORT_JSON_VERSION);
    const json_t *flags = json_object_get(
        json_object_get(json_object_get(json_object_get(defs, "point"), "properties"), "flags"),
        "items");
    flags = json_object_get(flags, "enum");
    assert_int_equal(json_array_size(flags), RESULT_FLAGS);
    for (unsigned bit = 0; bit < RESULT_FLAGS; bit++)
        assert_string_equal(json_string_value(json_array_get(flags, bit)), report_flag_id(bit));
    json_decref(schema);
}

static void check_figures(const json_t *object, const struct published_figures *f)
{
    assert_true(json_real_value(json_object_get(object, "highest_gbit_per_s")) ==
                f->highest_gbit_per_s);
    assert_true(json_real_value(json_object_get(object, "mean_gbit_per_s")) == f->mean_gbit_per_s);
    assert_true(json_real_value(json_object_get(object, "depth1_gbit_per_s")) ==
                f->depth1_gbit_per_s);
}

static void the_published_figures_are_those_of_the_data_file(void **state)
{
    (void)state;
    json_t *root = load_source("data/published.json");
    const json_t *paths = json_object_get(root, "paths");
    size_t n = 0;

    for (const struct published_path *p = report_published(); p->profile; p++, n++) {
        const json_t *row = json_array_get(paths, n);
        const char *const names[] = {"profile", "column", "mechanism", "format"};
        const char *const texts[] = {p->profile, p->column, p->mechanism, p->format};
        for (size_t i = 0; i < 4; i++)
            assert_string_equal(json_string_value(json_object_get(row, names[i])), texts[i]);
        check_figures(json_object_get(row, "read"), &p->figures[RESULT_READ]);
        check_figures(json_object_get(row, "write"), &p->figures[RESULT_WRITE]);
        assert_ptr_equal(report_published_find(p->profile), p);
    }
    assert_int_equal(json_array_size(paths), n);
    assert_int_equal(n, 5);
    assert_null(report_published_find("other"));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_survives_json_and_back),
        cmocka_unit_test(every_member_comes_back),
        cmocka_unit_test(what_json_cannot_hold_is_written_as_what_it_can),
        cmocka_unit_test(each_wrong_member_is_refused_by_name),
        cmocka_unit_test(members_of_a_later_writer_are_ignored),
        cmocka_unit_test(a_file_cut_anywhere_is_refused_with_a_sentence),
        cmocka_unit_test(what_is_too_large_or_too_deep_is_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(a_file_that_is_too_large_is_not_read_to_its_end),
        cmocka_unit_test(a_fifo_is_not_waited_for_and_a_pipe_is_read),
        cmocka_unit_test(a_written_file_reads_back),
        cmocka_unit_test(m2_every_number_has_its_unit_in_its_name),
        cmocka_unit_test(the_schema_and_the_code_know_the_same_members),
        cmocka_unit_test(the_published_figures_are_those_of_the_data_file),
    };

    return cmocka_run_group_tests_name("report_json", tests, NULL, NULL);
}

#else

static void json_reports(void **state)
{
    (void)state;
    print_message("built without jansson\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(json_reports)};

    return cmocka_run_group_tests_name("report_json", tests, NULL, NULL);
}

#endif
