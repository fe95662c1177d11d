/* SPDX-License-Identifier: BSD-2-Clause */
/* Named facts in nested groups, gathered once and then shown to people or to programs. */
#ifndef APP_FACTS_H
#define APP_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum fact_kind { FACT_GROUP, FACT_LIST, FACT_END, FACT_TEXT, FACT_NUMBER, FACT_BOOL };

struct fact {
    enum fact_kind kind;
    const char *name; /* stays; NULL: an item of a list */
    char text[256];   /* FACT_TEXT */
    uint64_t number;  /* FACT_NUMBER, FACT_BOOL */
};

/* Zeroed before; facts_free() after. */
struct facts {
    struct fact *list;
    size_t count, room;
    bool incomplete; /* there was no memory */
};

void facts_group(struct facts *f, const char *name); /* until facts_end() */
void facts_list(struct facts *f, const char *name);  /* likewise; its items have no names */
void facts_end(struct facts *f);
void facts_text(struct facts *f, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void facts_number(struct facts *f, const char *name, uint64_t number);
void facts_bool(struct facts *f, const char *name, bool value);
/* As hex digits, at most 127 bytes of them. */
void facts_bytes(struct facts *f, const char *name, const uint8_t *bytes, size_t n);

void facts_print(const struct facts *f, FILE *out); /* indented lines */
int facts_print_json(const struct facts *f,
                     FILE *out); /* one object; 0 or -1. With LP_HAVE_JANSSON */
void facts_free(struct facts *f);

#endif
