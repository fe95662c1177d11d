/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines as tables: each command has one array of struct option, indexed by its own enum,
 * from which the parser, --help and the test of the man pages work.
 *
 *   --name        --name VALUE        --name=VALUE        -- (all that follows are arguments)
 *
 * An option stands once at most, and is never abbreviated. Nothing is ignored: what is not in the
 * table is an error that names the nearest that is.
 */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
    OPTION_FLAG,    /* no value */
    OPTION_NUMBER,  /* whole, min..max */
    OPTION_NUMBERS, /* a list with commas of them, OPTION_MAX_LIST at most */
    OPTION_SIZE,    /* as base/size.h has it, min..max bytes */
    OPTION_SECONDS, /* decimal with a fraction, min..max seconds */
    OPTION_WORD,    /* one of words */
    OPTION_WORDS,   /* a list with commas of them, each once */
    OPTION_TEXT,    /* anything but nothing */
};

enum { OPTION_MAX_LIST = 16 };

struct option {
    const char *name; /* without the dashes */
    enum option_type type;
    const char *value; /* how --help calls the value: "SIZE" */
    const char *help;  /* one line */
    uint64_t min, max;
    const char *(*words)(unsigned i); /* the i-th allowed word, NULL behind the last */
    const char *group;                /* a heading of --help before this option */
};

struct option_value {
    bool given;
    const char *text;               /* as typed; points into argv */
    uint64_t number;                /* NUMBER, SIZE; WORD: its index */
    double seconds;                 /* SECONDS */
    unsigned count;                 /* NUMBERS, WORDS */
    uint64_t list[OPTION_MAX_LIST]; /* NUMBERS; WORDS: their indices */
};

struct arguments {
    const char **items; /* room for max of them, the caller's */
    unsigned max;
    unsigned count;
};

/* Reads argv[0..argc) into values[0..count), which runs parallel to the table and is cleared
 * first, and what is no option into arguments. 0, or -1 with LP_ERROR_USAGE. */
int options_parse(const struct option *table, unsigned count, int argc, char **argv,
                  struct option_value *values, struct arguments *arguments, struct lp_error *err);

/* True when --help or -h stands before any "--": help is given whatever else is wrong. */
bool options_want_help(int argc, char **argv);

/* One line an option, with the headings. */
void options_print(const struct option *table, unsigned count, FILE *out);

/* Index of the word that is text, where '-' and ' ' count as the same; -1: none. */
int words_find(const char *(*words)(unsigned i), const char *text);

/* The word that text was most likely meant to be, or NULL when none is near. */
const char *words_nearest(const char *(*words)(unsigned i), const char *text);

/* Edits (insert, delete, replace, swap neighbours) from a to b; for texts over 63 bytes 64. */
unsigned words_distance(const char *a, const char *b);

#endif
