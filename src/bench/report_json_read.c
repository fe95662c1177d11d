/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the JSON form. The file may come from anywhere: its size, depth, every member's type, range
 * and length, and every array's length are checked before anything is believed.
 */
#include "bench/report_json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where we are, for the sentence: "out.json: paths[2].verify.done". */
struct reader {
    const char *file;
    char where[192];
    struct lp_error *err;
};

/* "member must be ..." of the file. Returns -1. */
static int refuse(const struct reader *rd, const char *member, const char *must)
{
    return lp_error_set(rd->err, LP_ERROR_USAGE, 0, "%s is no usable result: \"%s%s%s\" %s",
                        rd->file, rd->where, rd->where[0] && member[0] ? "." : "", member, must);
}

/* Steps into a member; the returned length undoes it with leave(). */
static size_t enter(struct reader *rd, const char *member)
{
    size_t used = strlen(rd->where);

    snprintf(rd->where + used, sizeof rd->where - used, "%s%s", used ? "." : "", member);
    return used;
}

static size_t enter_item(struct reader *rd, const char *member, size_t index)
{
    size_t used = strlen(rd->where);

    snprintf(rd->where + used, sizeof rd->where - used, "%s%s[%zu]", used ? "." : "", member,
             index);
    return used;
}

static void leave(struct reader *rd, size_t used)
{
    rd->where[used] = '\0';
}

static json_t *member_of(const struct reader *rd, const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    if (!value)
        refuse(rd, name, "is missing");
    return value;
}

static json_t *object_member(const struct reader *rd, const json_t *object, const char *name)
{
    json_t *value = member_of(rd, object, name);

    if (value && !json_is_object(value)) {
        refuse(rd, name, "must be an object");
        return NULL;
    }
    return value;
}

static json_t *array_member(const struct reader *rd, const json_t *object, const char *name,
                            size_t max)
{
    json_t *value = member_of(rd, object, name);
    char must[64];

    if (value && (!json_is_array(value) || json_array_size(value) > max)) {
        snprintf(must, sizeof must, "must be an array of at most %zu items", max);
        refuse(rd, name, must);
        return NULL;
    }
    return value;
}

static int get_integer(const struct reader *rd, const char *name, const json_t *value, uint64_t min,
                       uint64_t max, uint64_t *n)
{
    char must[96];

    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *n = (uint64_t)json_integer_value(value);
        if (*n >= min && *n <= max)
            return 0;
    }
    snprintf(must, sizeof must, "must be a whole number from %" PRIu64 " to %" PRIu64, min, max);
    return refuse(rd, name, must);
}

static int get_real(const struct reader *rd, const char *name, const json_t *value, double min,
                    double max, double *real)
{
    *real = json_number_value(value);
    if (json_is_number(value) && *real >= min && *real <= max)
        return 0;
    char must[96];
    snprintf(must, sizeof must, "must be a number from %g to %g", min, max);
    return refuse(rd, name, must);
}

/* Text that report_clean() would change is refused: it may have been made to fool a terminal. */
static int get_string(const struct reader *rd, const char *name, const json_t *value, size_t size,
                      char *dst)
{
    char must[64];

    if (json_is_string(value) && json_string_length(value) < size) {
        report_clean(json_string_value(value), dst, size);
        if (strcmp(dst, json_string_value(value)) == 0)
            return 0;
        return refuse(rd, name, "must not have control characters");
    }
    snprintf(must, sizeof must, "must be a text of less than %zu bytes", size);
    return refuse(rd, name, must);
}

static int get_seed(const struct reader *rd, const char *name, const json_t *value, uint64_t *seed)
{
    const char *digits = json_string_value(value);
    size_t length = json_string_length(value);

    if (digits && length > 0 && length <= 20 && strspn(digits, "0123456789") == length) {
        errno = 0;
        *seed = strtoull(digits, NULL, 10);
        if (errno == 0)
            return 0;
    }
    return refuse(rd, name, "must be a whole number below 2^64, written as a text");
}

static int get_flags(const struct reader *rd, const char *name, const json_t *value,
                     uint32_t *flags)
{

    *flags = 0;
    if (!json_is_array(value) || json_array_size(value) > RESULT_FLAGS)
        return refuse(rd, name, "must be an array of flags");
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        const char *id = json_string_value(item);
        unsigned bit = 0;
        while (bit < RESULT_FLAGS && (!id || strcmp(id, report_flag_id(bit)) != 0))
            bit++;
        if (bit == RESULT_FLAGS)
            return refuse(rd, name, "has an unknown flag");
        *flags |= 1u << bit;
    }
    return 0;
}

static int get_field(const struct reader *rd, const struct json_field *f, const json_t *value,
                     void *at)
{
    uint64_t n;

    switch (f->kind) {
    case JSON_KIND_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value) ? 0 : refuse(rd, f->name, "must be true or false");
    case JSON_KIND_UINT:
        if (get_integer(rd, f->name, value, 0, (uint64_t)f->max, &n))
            return -1;
        *(unsigned *)at = (unsigned)n;
        return 0;
    case JSON_KIND_U64:
        return get_integer(rd, f->name, value, 0, INT64_MAX, at);
    case JSON_KIND_SEED:
        return get_seed(rd, f->name, value, at);
    case JSON_KIND_REAL:
        return get_real(rd, f->name, value, 0, f->max, at);
    case JSON_KIND_SIGNED:
        return get_real(rd, f->name, value, -f->max, f->max, at);
    case JSON_KIND_STRING:
        return get_string(rd, f->name, value, (size_t)f->max, at);
    case JSON_KIND_FLAGS:
        return get_flags(rd, f->name, value, at);
    }
    return -1;
}

static int get_fields(const struct reader *rd, const json_t *object,
                      const struct json_field *fields, void *base)
{
    for (const struct json_field *f = fields; f->name; f++) {
        const json_t *value = member_of(rd, object, f->name);
        if (!value || get_field(rd, f, value, (char *)base + f->offset))
            return -1;
    }
    return 0;
}

/* The object `name` of `parent`, filled by the table. */
static int get_object(struct reader *rd, const json_t *parent, const char *name,
                      const struct json_field *fields, void *base)
{
    const json_t *object = object_member(rd, parent, name);
    if (!object)
        return -1;
    size_t used = enter(rd, name);
    int status = get_fields(rd, object, fields, base);
    leave(rd, used);
    return status;
}

static int get_depths(const struct reader *rd, const json_t *config, struct result_config *c)
{
    const json_t *depths = array_member(rd, config, "depths", RESULT_MAX_DEPTHS);

    if (!depths)
        return -1;
    for (size_t i = 0; i < json_array_size(depths); i++) {
        const json_t *item = json_array_get(depths, i);
        uint64_t depth;
        if (get_integer(rd, "depths", item, 1, 1u << 20, &depth))
            return -1;
        c->depths[i] = (unsigned)depth;
    }
    c->depth_count = (unsigned)json_array_size(depths);
    return 0;
}

static int get_config(struct reader *rd, const json_t *root, struct result_config *c)
{
    if (get_object(rd, root, "config", json_config_fields, c))
        return -1;
    size_t used = enter(rd, "config");
    int status = get_depths(rd, json_object_get(root, "config"), c);
    leave(rd, used);
    return status;
}

static int get_runs(const struct reader *rd, const json_t *point, struct result_point *p)
{
    const json_t *runs = array_member(rd, point, "run_gbit_per_s", RESULT_MAX_RUNS);

    if (!runs)
        return -1;
    if (json_array_size(runs) != p->runs)
        return refuse(rd, "run_gbit_per_s", "must have as many items as \"runs\" says");
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (get_real(rd, "run_gbit_per_s", json_array_get(runs, i), 0, REPORT_JSON_REAL_MAX,
                     &p->run_gbit_per_s[i]))
            return -1;
    return 0;
}

static int get_point(const struct reader *rd, const json_t *value, unsigned depth,
                     struct result_point *p)
{
    if (!json_is_object(value))
        return refuse(rd, "", "must be an object");
    if (get_fields(rd, value, json_point_fields, p) || get_runs(rd, value, p))
        return -1;
    if (p->depth_asked != depth)
        return refuse(rd, "depth_asked", "must be the depth in config.depths");
    if (p->measured && p->runs == 0)
        return refuse(rd, "runs", "must be at least 1 where something was measured");
    return 0;
}

static int get_points(struct reader *rd, const json_t *direction, const struct result_config *c,
                      struct result_point *points)
{
    const json_t *array = array_member(rd, direction, "points", RESULT_MAX_DEPTHS);

    if (!array)
        return -1;
    if (json_array_size(array) != 0 && json_array_size(array) != c->depth_count)
        return refuse(rd, "points", "must be empty or have one item for each of config.depths");
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        size_t used = enter_item(rd, "points", i);
        int status = get_point(rd, item, c->depths[i], &points[i]);
        leave(rd, used);
        if (status)
            return -1;
    }
    return 0;
}

static int get_direction(struct reader *rd, const json_t *results, int d, struct result_path *path,
                         const struct result_config *c)
{
    const json_t *direction = object_member(rd, results, json_directions[d]);
    if (!direction)
        return -1;
    size_t used = enter(rd, json_directions[d]);
    int status = get_object(rd, direction, "summary", json_summary_fields, &path->summary[d]) ||
                         get_points(rd, direction, c, path->points[d])
                     ? -1
                     : 0;
    leave(rd, used);
    return status;
}

static int get_path(struct reader *rd, const json_t *value, const struct result_config *c,
                    struct result_path *path)
{
    if (!json_is_object(value))
        return refuse(rd, "", "must be an object");
    if (get_fields(rd, value, json_path_fields, path) ||
        get_object(rd, value, "verify", json_verify_fields, &path->verify))
        return -1;
    const json_t *results = object_member(rd, value, "results");
    if (!results)
        return -1;
    size_t used = enter(rd, "results");
    int status = 0;
    for (int d = 0; d < RESULT_DIRECTIONS && status == 0; d++)
        status = get_direction(rd, results, d, path, c);
    leave(rd, used);
    return status;
}

static int get_paths(struct reader *rd, const json_t *root, struct result *r)
{
    const json_t *paths = array_member(rd, root, "paths", RESULT_MAX_PATHS);

    if (!paths)
        return -1;
    for (size_t i = 0; i < json_array_size(paths); i++) {
        const json_t *item = json_array_get(paths, i);
        size_t used = enter_item(rd, "paths", i);
        int status = get_path(rd, item, &r->config, &r->paths[i]);
        leave(rd, used);
        if (status)
            return -1;
    }
    r->path_count = (unsigned)json_array_size(paths);
    return 0;
}

static int get_version(const struct reader *rd, const json_t *root)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *version = json_object_get(root, "version");

    if (!json_is_object(root) || !format || strcmp(format, REPORT_JSON_FORMAT) != 0 ||
        !json_is_integer(version))
        return lp_error_set(rd->err, LP_ERROR_USAGE, 0,
                            "%s is not a result of lunpath; give a file written with --json",
                            rd->file);
    if (json_integer_value(version) != REPORT_JSON_VERSION)
        return lp_error_set(rd->err, LP_ERROR_USAGE, 0,
                            "%s has version %" JSON_INTEGER_FORMAT
                            " of the result format, and this lunpath reads version %d; use the "
                            "lunpath that wrote it",
                            rd->file, json_integer_value(version), REPORT_JSON_VERSION);
    return 0;
}

static int get_result(struct reader *rd, const json_t *root, struct result *r)
{
    const json_t *incomplete;

    if (get_version(rd, root) || !(incomplete = member_of(rd, root, "incomplete")))
        return -1;
    if (!json_is_boolean(incomplete))
        return refuse(rd, "incomplete", "must be true or false");
    r->incomplete = json_is_true(incomplete);
    if (get_config(rd, root, &r->config) ||
        get_object(rd, root, "environment", json_environment_fields, &r->environment) ||
        get_object(rd, root, "limits", json_limits_fields, &r->limits) || get_paths(rd, root, r))
        return -1;
    return 0;
}

int report_json_read_buffer(const char *name, const char *text, size_t length, struct result *r,
                            struct lp_error *err)
{
    struct reader rd = {.file = name, .where = "", .err = err};
    json_error_t why;

    memset(r, 0, sizeof *r);
    if (length > REPORT_JSON_MAX_BYTES)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%s is larger than %d MiB, so it is no result of lunpath", name,
                            REPORT_JSON_MAX_BYTES >> 20);
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!root) {
        char clean[sizeof why.text]; /* it quotes the file */
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%s is not JSON (line %d: %s); give a file written with --json", name,
                            why.line, report_clean(why.text, clean, sizeof clean));
    }
    int status = get_result(&rd, root, r);
    json_decref(root);
    if (status)
        memset(r, 0, sizeof *r);
    return status;
}

/* All of the file, up to one byte more than is allowed. Returns malloc'ed memory, NULL: see err. */
static char *read_all(const char *path, FILE *file, size_t *length, struct lp_error *err)
{
    size_t room = (size_t)1 << 16;
    char *text = NULL;

    *length = 0;
    do {
        room *= 2;
        char *larger = realloc(text, room);
        if (!larger) {
            free(text);
            lp_error_sys(err, ENOMEM, "cannot read %s", path);
            return NULL;
        }
        text = larger;
        *length += fread(text + *length, 1, room - *length, file);
    } while (*length == room && room <= REPORT_JSON_MAX_BYTES);
    if (ferror(file)) {
        lp_error_sys(err, errno, "cannot read %s", path);
        free(text);
        return NULL;
    }
    return text;
}

/* Not waiting for somebody to write to a FIFO, and no device, which may have no end. NULL: see
 * err. */
static FILE *open_result(const char *path, struct lp_error *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    FILE *file = NULL;

    if (fd < 0 || fstat(fd, &st) != 0) {
        lp_error_sys(err, errno, "cannot open the result %s", path);
    } else if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "%s is %s; give a file written with --json", path,
                     S_ISDIR(st.st_mode) ? "a directory" : "no file");
    } else if (fcntl(fd, F_SETFL, 0) != 0 || !(file = fdopen(fd, "rb"))) {
        lp_error_sys(err, errno, "cannot read %s", path);
    }
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

int report_json_read(const char *path, struct result *r, struct lp_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "stdin" : path;
    FILE *file = is_stdin ? stdin : open_result(path, err);
    size_t length;

    if (!file)
        return -1;
    char *text = read_all(name, file, &length, err);
    if (!is_stdin)
        fclose(file);
    if (!text)
        return -1;
    int status =
        length == 0
            ? lp_error_set(err, LP_ERROR_USAGE, 0,
                           "%s is empty, or nobody writes to it; give a file written with --json",
                           name)
            : report_json_read_buffer(name, text, length, r, err);
    free(text);
    return status;
}
