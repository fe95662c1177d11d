/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct fact *add(struct facts *f, enum fact_kind kind, const char *name)
{
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 64;
        struct fact *list = realloc(f->list, room * sizeof(*list));

        if (!list) {
            f->incomplete = true;
            return NULL;
        }
        f->list = list;
        f->room = room;
    }
    f->list[f->count] = (struct fact){.kind = kind, .name = name};
    return &f->list[f->count++];
}

void facts_group(struct facts *f, const char *name)
{
    add(f, FACT_GROUP, name);
}

void facts_list(struct facts *f, const char *name)
{
    add(f, FACT_LIST, name);
}

void facts_end(struct facts *f)
{
    add(f, FACT_END, NULL);
}

void facts_text(struct facts *f, const char *name, const char *fmt, ...)
{
    struct fact *fact = add(f, FACT_TEXT, name);
    va_list args;

    if (!fact)
        return;
    va_start(args, fmt);
    vsnprintf(fact->text, sizeof(fact->text), fmt, args);
    va_end(args);
    /* Whoever made the target chose it: nothing may steer a terminal. */
    for (char *at = fact->text; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e)
            *at = '?';
}

void facts_number(struct facts *f, const char *name, uint64_t number)
{
    struct fact *fact = add(f, FACT_NUMBER, name);

    if (fact)
        fact->number = number;
}

void facts_bool(struct facts *f, const char *name, bool value)
{
    struct fact *fact = add(f, FACT_BOOL, name);

    if (fact)
        fact->number = value;
}

void facts_bytes(struct facts *f, const char *name, const uint8_t *bytes, size_t n)
{
    struct fact *fact = add(f, FACT_TEXT, name);

    for (size_t i = 0; fact && i < n && 2 * i + 3 <= sizeof(fact->text); i++)
        snprintf(fact->text + 2 * i, 3, "%02x", bytes[i]);
}

void facts_print(const struct facts *f, FILE *out)
{
    int depth = 0;

    for (size_t i = 0; i < f->count; i++) {
        const struct fact *fact = &f->list[i];
        const char *name = fact->name ? fact->name : "-";

        if (fact->kind == FACT_END) {
            depth--;
            continue;
        }
        fprintf(out, "%*s%s", 4 * depth, "", name);
        if (fact->kind == FACT_GROUP || fact->kind == FACT_LIST) {
            fputs(fact->name ? ":\n" : "\n", out);
            depth++;
        } else if (fact->kind == FACT_NUMBER) {
            fprintf(out, ": %" PRIu64 "\n", fact->number);
        } else {
            fprintf(out, "%s%s\n", fact->name ? ": " : " ",
                    fact->kind == FACT_TEXT ? fact->text
                    : fact->number          ? "yes"
                                            : "no");
        }
    }
}

void facts_free(struct facts *f)
{
    free(f->list);
}
