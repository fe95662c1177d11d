/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/options.h"

#include "base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ITEM = 256 };

static int refuse(struct lp_error *err, const struct option *o, const char *why)
{
    return lp_error_set(err, LP_ERROR_USAGE, 0, "--%s %s", o->name, why);
}

/* The next item of a list with commas: copied to item, *list moved behind it. 1: there was one,
 * 0: the end, -1: it is empty or too long. */
static int next_item(const char **list, char *item)
{
    if (!*list)
        return 0;
    size_t len = strcspn(*list, ",");
    if (len == 0 || len >= MAX_ITEM)
        return -1;
    memcpy(item, *list, len);
    item[len] = '\0';
    *list = (*list)[len] ? *list + len + 1 : NULL;
    return 1;
}

static int read_word(const struct option *o, const char *text, uint64_t *index,
                     struct lp_error *err)
{
    int found = words_find(o->words, text);
    const char *nearest = found < 0 ? words_nearest(o->words, text) : NULL;
    char all[200] = "";

    if (found >= 0) {
        *index = (uint64_t)found;
        return 0;
    }
    if (nearest)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "--%s has no \"%s\"; did you mean \"%s\"?",
                            o->name, text, nearest);
    for (unsigned i = 0; o->words(i) && strlen(all) + strlen(o->words(i)) + 3 < sizeof all; i++) {
        strcat(all, i ? ", " : "");
        strcat(all, o->words(i));
    }
    return lp_error_set(err, LP_ERROR_USAGE, 0, "--%s has no \"%s\"; it has %s", o->name, text,
                        all);
}

static int read_item(const struct option *o, const char *item, uint64_t *value,
                     struct lp_error *err)
{
    char what[64];

    if (o->type == OPTION_WORDS)
        return read_word(o, item, value, err);
    snprintf(what, sizeof what, "value of --%s", o->name);
    return number_parse(item, what, o->min, o->max, value, err);
}

static int read_list(const struct option *o, struct option_value *v, struct lp_error *err)
{
    const char *rest = v->text;
    char item[MAX_ITEM];
    int more;

    while ((more = next_item(&rest, item)) > 0) {
        uint64_t value;
        if (v->count == OPTION_MAX_LIST)
            return lp_error_set(err, LP_ERROR_USAGE, 0, "--%s takes %d values at most", o->name,
                                OPTION_MAX_LIST);
        if (read_item(o, item, &value, err) != 0)
            return -1;
        for (unsigned i = 0; o->type == OPTION_WORDS && i < v->count; i++)
            if (v->list[i] == value)
                return lp_error_set(err, LP_ERROR_USAGE, 0, "--%s names \"%s\" twice; name it once",
                                    o->name, item);
        v->list[v->count++] = value;
    }
    if (more < 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "--%s is a list with commas and no empty or endless place, such as %s",
                            o->name, o->type == OPTION_WORDS ? o->words(0) : "1,2,4");
    return 0;
}

static int read_size(const struct option *o, struct option_value *v, struct lp_error *err)
{
    char what[64], min[32], max[32];

    snprintf(what, sizeof what, "value of --%s", o->name);
    if (size_parse(v->text, what, &v->number, err) != 0)
        return -1;
    if (v->number >= o->min && v->number <= o->max)
        return 0;
    return lp_error_set(err, LP_ERROR_USAGE, 0, "the %s \"%s\" must be from %s to %s", what,
                        v->text, size_format(o->min, min, sizeof min),
                        size_format(o->max, max, sizeof max));
}

/* Not strtod alone: it takes "inf", "nan", " 1" and hexadecimal. */
static int read_seconds(const struct option *o, struct option_value *v, struct lp_error *err)
{
    bool plain = strspn(v->text, "0123456789.") == strlen(v->text) && *v->text != '.';
    char *end = NULL;

    v->seconds = plain ? strtod(v->text, &end) : -1;
    if (end && !*end && v->seconds >= (double)o->min && v->seconds <= (double)o->max)
        return 0;
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "the value of --%s \"%s\" must be seconds from %" PRIu64 " to %" PRIu64
                        ", such as 0.5",
                        o->name, v->text, o->min, o->max);
}

static int read_value(const struct option *o, struct option_value *v, struct lp_error *err)
{
    char what[64];

    if (!*v->text)
        return refuse(err, o, "is given an empty value; write one, or leave the option away");
    snprintf(what, sizeof what, "value of --%s", o->name);
    switch (o->type) {
    case OPTION_NUMBER:
        return number_parse(v->text, what, o->min, o->max, &v->number, err);
    case OPTION_NUMBERS:
    case OPTION_WORDS:
        return read_list(o, v, err);
    case OPTION_SIZE:
        return read_size(o, v, err);
    case OPTION_SECONDS:
        return read_seconds(o, v, err);
    case OPTION_WORD:
        return read_word(o, v->text, &v->number, err);
    case OPTION_FLAG:
    case OPTION_TEXT:
        break;
    }
    return 0;
}

/* The option whose name are the first len bytes of name, or -1. */
static int find_option(const struct option *table, unsigned count, const char *name, size_t len)
{
    for (unsigned i = 0; i < count; i++)
        if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

static int unknown(const struct option *table, unsigned count, const char *arg,
                   struct lp_error *err)
{
    size_t dashes = strspn(arg, "-");
    int len = (int)strcspn(arg, "=");
    unsigned near = count;
    char name[64];

    snprintf(name, sizeof name, "%.*s", len - (int)dashes, arg + dashes);
    /* Of a short name less may be wrong before it is another name. */
    size_t best = strlen(name) < 6 ? strlen(name) / 2 + 1 : 4;
    for (unsigned i = 0; i < count; i++) {
        unsigned distance = words_distance(table[i].name, name);
        if (distance < best) {
            best = distance;
            near = i;
        }
    }
    if (near < count)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "there is no option %.*s; did you mean --%s?",
                            len, arg, table[near].name);
    return lp_error_set(err, LP_ERROR_USAGE, 0, "there is no option %.*s; --help lists all", len,
                        arg);
}

/* Takes the option at argv[*i] and moves *i to its last word. */
static int take_option(const struct option *table, unsigned count, int argc, char **argv, int *i,
                       struct option_value *values, struct lp_error *err)
{
    const char *arg = argv[*i];
    const char *equals = strchr(arg, '=');
    size_t len = strcspn(arg, "=");
    int found = arg[1] == '-' ? find_option(table, count, arg + 2, len - 2) : -1;

    if (found < 0)
        return unknown(table, count, arg, err);
    const struct option *o = &table[found];
    struct option_value *v = &values[found];
    if (v->given)
        return refuse(err, o, "is given twice; give it once");
    v->given = true;
    if (o->type == OPTION_FLAG)
        return equals ? refuse(err, o, "takes no value; leave it away") : 0;
    v->text = equals ? equals + 1 : NULL;
    /* Not the next option by mistake; a value with dashes can stand behind "=". */
    if (!equals && *i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0)
        v->text = argv[++*i];
    if (!v->text)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "--%s needs a value: --%s %s", o->name, o->name,
                            o->value);
    return read_value(o, v, err);
}

int options_parse(const struct option *table, unsigned count, int argc, char **argv,
                  struct option_value *values, struct arguments *arguments, struct lp_error *err)
{
    bool options_end = false;
    bool argument;

    memset(values, 0, count * sizeof *values);
    arguments->count = 0;
    for (int i = 0; i < argc; i++) {
        argument = options_end || argv[i][0] != '-' || !argv[i][1];
        if (argument && arguments->count == arguments->max)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "\"%s\" is one argument too many; leave it away", argv[i]);
        if (argument)
            arguments->items[arguments->count++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (take_option(table, count, argc, argv, &i, values, err) != 0)
            return -1;
    }
    return 0;
}

bool options_want_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

void options_print(const struct option *table, unsigned count, FILE *out)
{
    for (unsigned i = 0; i < count; i++) {
        char left[64];
        if (table[i].group)
            fprintf(out, "\n%s\n", table[i].group);
        snprintf(left, sizeof left, "--%s%s%s", table[i].name, table[i].value ? " " : "",
                 table[i].value ? table[i].value : "");
        fprintf(out, "  %-24s %s\n", left, table[i].help);
    }
}
