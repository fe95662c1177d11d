/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/commands.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

int command_fail(const struct command *command, const struct lp_error *err)
{
    char line[sizeof err->msg];
    size_t i;

    /* One line, whatever is in a name that somebody chose. */
    for (i = 0; i + 1 < sizeof line && err->msg[i]; i++)
        line[i] = iscntrl((unsigned char)err->msg[i]) ? '?' : err->msg[i];
    line[i] = '\0';
    /* The memory of a disk is a file to the system, too. */
    const bool limited =
        err->domain == LP_ERROR_SYS && err->code == EFBIG && !strstr(line, "ulimit");
    fprintf(stderr, "lunpath %s: %s%s\n", command->name, line,
            limited ? "; raise the limit on the size of files (ulimit -f)" : "");
    return err->domain == LP_ERROR_USAGE ? STATUS_USAGE : STATUS_FAILED;
}

static void append(char *text, size_t size, const char *more, size_t len)
{
    size_t used = strlen(text);

    if (len > size - 1 - used)
        len = size - 1 - used;
    memcpy(text + used, more, len);
    text[used + len] = '\0';
}

static void append_quoted(char *text, size_t size, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./:,=+@%";

    if (*word && strspn(word, plain) == strlen(word)) {
        append(text, size, word, strlen(word));
        return;
    }
    append(text, size, "'", 1);
    for (; *word; word++)
        append(text, size, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    append(text, size, "'", 1);
}

void command_line_text(const struct command *command, int argc, char **argv, char *text,
                       size_t size)
{
    snprintf(text, size, "lunpath %s", command->name);
    for (int i = 0; i < argc; i++) {
        append(text, size, " ", 1);
        append_quoted(text, size, argv[i]);
    }
}
