/* SPDX-License-Identifier: BSD-2-Clause */
/* What the verifier found, as JSON; docs/reports.md describes the members. */
#include "bench/report_json.h"
#include "bench/verify.h"

#include <jansson.h>
#include <string.h>

enum { VERIFY_JSON_VERSION = 1 };

static json_t *whole_number(uint64_t n)
{
    return json_integer(n <= INT64_MAX ? (json_int_t)n : INT64_MAX);
}

/* Text from outside; null where there is none. */
static json_t *text_value(const char *text)
{
    char clean[VERIFY_PHASES];

    return text ? json_string(report_clean(text, clean, sizeof clean)) : json_null();
}

/* 64 bits as digits: JSON numbers may lose some. */
static json_t *digits(uint64_t n)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return json_string(text);
}

static json_t *lines_of(const char *text)
{
    json_t *lines = json_array();
    char line[RESULT_TEXT * 2];

    while (*text) {
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        json_array_append_new(lines, text_value(line));
        text += n + (text[n] == '\n');
    }
    return lines;
}

static json_t *finding_value(const struct verify_finding *f)
{
    static const char *const wanted[] = {
        [VERIFY_DATA] = "data", [VERIFY_ZEROS] = "zeros", [VERIFY_ERASED] = "discarded"};
    json_t *o = json_object();

    json_object_set_new(o, "fault", text_value(pattern_fault_name(f->data.fault)));
    json_object_set_new(o, "wanted", json_string(wanted[f->wanted]));
    json_object_set_new(o, "phase", text_value(f->phase));
    json_object_set_new(o, "wrong_blocks", whole_number(f->count));
    json_object_set_new(o, "block_offset_bytes", whole_number(f->data.block_offset));
    json_object_set_new(o, "first_wrong_bytes", json_integer(f->data.first_wrong));
    json_object_set_new(o, "wrong_bytes", json_integer(f->data.wrong_bytes));
    json_object_set_new(o, "expected_generation", digits(f->data.expected_generation));
    json_object_set_new(o, "found_generation", digits(f->data.found_generation));
    json_object_set_new(o, "found_offset_bytes", digits(f->data.found_address));
    json_object_set_new(o, "torn_request", json_boolean(f->torn_request));
    json_object_set_new(o, "untouched", json_boolean(f->untouched));
    json_object_set_new(o, "request_offset_bytes", whole_number(f->request_offset));
    json_object_set_new(o, "request_bytes", whole_number(f->request_bytes));
    json_object_set_new(o, "depth", json_integer(f->depth));
    json_object_set_new(o, "segments", json_integer(f->segments));
    json_object_set_new(o, "wrong_from_page", json_integer(f->wrong_from_page));
    return o;
}

static json_t *report_value(const struct verify_report *r, const struct verify_about *about)
{
    json_t *root = json_object(), *findings = json_array();

    json_object_set_new(root, "format", json_string("lunpath-verify"));
    json_object_set_new(root, "version", json_integer(VERIFY_JSON_VERSION));
    json_object_set_new(root, "lunpath_version", json_string(LP_VERSION));
    json_object_set_new(root, "command", text_value(about->command));
    json_object_set_new(root, "target", text_value(about->target));
    json_object_set_new(root, "profile", text_value(about->profile));
    json_object_set_new(root, "seed", digits(about->seed));
    json_object_set_new(root, "page_bytes", json_integer(about->page_size));
    json_object_set_new(root, "incomplete", json_boolean(r->incomplete));
    json_object_set_new(root, "written_bytes", whole_number(r->bytes_written));
    json_object_set_new(root, "checked_bytes", whole_number(r->bytes_checked));
    json_object_set_new(root, "requests", whole_number(r->requests));
    json_object_set_new(root, "errors", whole_number(r->errors));
    json_object_set_new(root, "wrong_blocks", whole_number(r->wrong_blocks));
    json_object_set_new(root, "phases", lines_of(about->phases));
    for (unsigned i = 0; i < r->finding_count; i++)
        json_array_append_new(findings, finding_value(&r->findings[i]));
    json_object_set_new(root, "findings", findings);
    return root;
}

int verify_json(const struct verify_report *report, const struct verify_about *about, FILE *out)
{
    json_t *root = report_value(report, about);
    int status = json_dumpf(root, out, JSON_INDENT(2));

    json_decref(root);
    if (status == 0)
        fputc('\n', out);
    return status || ferror(out) ? -1 : 0;
}
