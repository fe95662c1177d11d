/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/facts.h"

#include <jansson.h>

enum { DEPTH_MAX = 8 };

static json_t *value_of(const struct fact *fact)
{
    switch (fact->kind) {
    case FACT_GROUP:
        return json_object();
    case FACT_LIST:
        return json_array();
    case FACT_NUMBER:
        return json_integer((json_int_t)fact->number);
    case FACT_BOOL:
        return json_boolean(fact->number != 0);
    default:
        return json_string(fact->text);
    }
}

int facts_print_json(const struct facts *f, FILE *out)
{
    json_t *at[DEPTH_MAX] = {json_object()};
    unsigned depth = 0;
    int rc = at[0] ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < f->count; i++) {
        const struct fact *fact = &f->list[i];
        json_t *value;

        if (fact->kind == FACT_END) {
            depth--;
            continue;
        }
        value = value_of(fact);
        rc = fact->name ? json_object_set_new(at[depth], fact->name, value)
                        : json_array_append_new(at[depth], value);
        if (fact->kind != FACT_GROUP && fact->kind != FACT_LIST)
            continue;
        if (depth + 1 == DEPTH_MAX)
            rc = -1;
        else
            at[++depth] = value;
    }
    if (rc == 0)
        rc = json_dumpf(at[0], out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF ? 0 : -1;
    json_decref(at[0]);
    return rc;
}
