/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/commands.h"

#include <fcntl.h>
#include <lunpath/host.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {&command_bench,
                                                 &command_verify,
                                                 &command_report,
                                                 &command_disks,
                                                 &command_discover,
                                                 &command_luns,
                                                 &command_inspect,
                                                 &command_ping,
                                                 &command_copy,
                                                 &command_serve,
                                                 NULL};

static const char *command_word(unsigned i)
{
    static const char *const others[] = {"help", "--help", "--version", NULL};
    enum { COUNT = sizeof commands / sizeof *commands - 1 };

    return i < COUNT ? commands[i]->name : others[i - COUNT];
}

static const struct command *find(const char *name)
{
    for (const struct command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static int unknown(const char *name)
{
    const char *nearest = words_nearest(command_word, name);

    if (nearest)
        fprintf(stderr, "lunpath: there is no command %s; did you mean %s?\n", name, nearest);
    else
        fprintf(stderr, "lunpath: there is no command %s; lunpath help lists all\n", name);
    return STATUS_USAGE;
}

static int help_of_all(void)
{
    puts("usage: lunpath COMMAND [OPTION ...] [ARGUMENT ...]\n\n"
         "Measures and verifies driver paths: how a disk reaches an application.\n");
    for (const struct command *const *c = commands; *c; c++)
        printf("  %-10s %s\n", (*c)->name, (*c)->summary);
    puts("  help       this, or with a command what it takes\n"
         "  --version  which lunpath this is");
    return fflush(stdout) == 0 ? STATUS_RIGHT : STATUS_FAILED;
}

static int help_of(const struct command *command)
{
    struct option table[COMMAND_MAX_OPTIONS];

    printf("usage: lunpath %s %s\n\n%s\n", command->name, command->arguments, command->summary);
    if (command->options)
        options_print(table, command->options(table), stdout);
    if (command->more)
        printf("\n%s\n", command->more);
    return fflush(stdout) == 0 ? STATUS_RIGHT : STATUS_FAILED;
}

static int help(int argc, char **argv)
{
    if (argc == 0)
        return help_of_all();
    const struct command *command = find(argv[0]);
    return command ? help_of(command) : unknown(argv[0]);
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* A program started with one of them closed would open a disk in its place, and then write its
 * messages into the disk. */
static void open_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY); /* writing still fails, as it should */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    int driver = lp_ring_driver_main(argc, argv);

    if (driver >= 0)
        return driver;
    open_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f then fails, and says so */
    if (argc < 2) {
        fputs("lunpath: name a command; lunpath help lists all\n", stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("lunpath " LP_VERSION);
        return fflush(stdout) == 0 ? STATUS_RIGHT : STATUS_FAILED;
    }
    if (strcmp(argv[1], "help") == 0 || is_one_of(argv[1], "--help", "-h"))
        return help(argc - 2, argv + 2);
    const struct command *command = find(argv[1]);
    if (!command)
        return unknown(argv[1]);
    if (options_want_help(argc - 2, argv + 2))
        return help_of(command);
    return command->run(argc - 2, argv + 2);
}
