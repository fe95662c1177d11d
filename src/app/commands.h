/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the program, one file cmd_NAME.c each, and how they end. */
#ifndef APP_COMMANDS_H
#define APP_COMMANDS_H

#include "app/options.h"

enum {
    STATUS_RIGHT = 0,
    STATUS_FAILED = 1, /* it could not be done */
    STATUS_USAGE = 2,
    STATUS_WRONG_DATA = 3, /* bench, verify: a byte was wrong, or a request failed */
    STATUS_SIGNAL = 128, /* and the signal's number: ended by it (SIGINT 130, SIGTERM 143); what was
                          * found until then is shown */
};

enum { COMMAND_MAX_OPTIONS = 96 };

struct command {
    const char *name;
    const char *arguments; /* for the usage line */
    const char *summary;   /* one line */
    const char *more;      /* for --help, below the options; may be NULL */
    /* Fills table[0..COMMAND_MAX_OPTIONS), returns how many; NULL: the command has none. */
    unsigned (*options)(struct option *table);
    int (*run)(int argc, char **argv); /* what stands behind the name; returns the exit status */
};

extern const struct command command_bench;
extern const struct command command_verify;
extern const struct command command_report;
extern const struct command command_disks;
extern const struct command command_discover;
extern const struct command command_luns;
extern const struct command command_inspect;
extern const struct command command_ping;
extern const struct command command_copy;
extern const struct command command_serve;

/* Prints the error as one line on stderr, and returns the status that fits it. */
int command_fail(const struct command *command, const struct lp_error *err);

/* As a shell would read it again: "lunpath bench --depths 1,2". Cut where size ends. */
void command_line_text(const struct command *command, int argc, char **argv, char *text,
                       size_t size);

#endif
