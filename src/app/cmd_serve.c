/* SPDX-License-Identifier: BSD-2-Clause */
/* lunpath serve: disks as the LUNs of an iSCSI target. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/secret.h"
#include "base/hash.h"
#include "base/size.h"
#include "iscsi/login.h"
#include "target/target.h"

enum {
    SERVE_LISTEN,
    SERVE_TARGET,
    SERVE_USER,
    SERVE_SECRET_FILE,
    SERVE_TARGET_USER,
    SERVE_TARGET_SECRET_FILE,
    SERVE_READ_ONLY,
    SERVE_BLOCK_SIZE,
    SERVE_THIN,
    SERVE_DEPTH,
    SERVE_BUFFERED,
    SERVE_QUIET,
    SERVE_OPTION_COUNT,
};

enum { DISKS_MAX = 256, GRACE_S = 3 };

#define DEFAULT_TARGET "iqn.2026-01.org.lunpath:disk"

static const struct option serve_options[SERVE_OPTION_COUNT] = {
    [SERVE_LISTEN] = {.name = "listen",
                      .type = OPTION_TEXT,
                      .value = "ADDRESS,...",
                      .help = "portals, host[:port] each (default 127.0.0.1:3260)",
                      .group = "Where and what:"},
    [SERVE_TARGET] = {.name = "target",
                      .type = OPTION_TEXT,
                      .value = "NAME",
                      .help = "name of the target (default " DEFAULT_TARGET ")"},
    [SERVE_READ_ONLY] = {.name = "read-only",
                         .type = OPTION_FLAG,
                         .help = "the LUNs are write-protected"},
    [SERVE_BLOCK_SIZE] = {.name = "block-size",
                          .type = OPTION_SIZE,
                          .value = "SIZE",
                          .min = 512,
                          .max = 4096,
                          .help = "of the LUNs: 512 (default) or 4K"},
    [SERVE_THIN] = {.name = "thin",
                    .type = OPTION_FLAG,
                    .help = "offer UNMAP, where the disk can discard"},
    [SERVE_DEPTH] = {.name = "depth",
                     .type = OPTION_NUMBER,
                     .value = "N",
                     .min = 1,
                     .max = TGT_DEPTH_MAX,
                     .help = "commands that a session may have in flight (default 128)"},
    [SERVE_BUFFERED] = {.name = "buffered",
                        .type = OPTION_FLAG,
                        .help = "files through the page cache, not around it"},
    [SERVE_USER] = {.name = "user",
                    .type = OPTION_TEXT,
                    .value = "NAME",
                    .help = "initiators must log in with CHAP as NAME",
                    .group = "Who may:"},
    [SERVE_SECRET_FILE] = {.name = "secret-file",
                           .type = OPTION_TEXT,
                           .value = "FILE",
                           .help = "and with this secret (else $LUNPATH_SECRET)"},
    [SERVE_TARGET_USER] = {.name = "target-user",
                           .type = OPTION_TEXT,
                           .value = "NAME",
                           .help = "who the target is for those who ask (mutual CHAP)"},
    [SERVE_TARGET_SECRET_FILE] = {.name = "target-secret-file",
                                  .type = OPTION_TEXT,
                                  .value = "FILE",
                                  .help = "its secret (else $LUNPATH_TARGET_SECRET)"},
    [SERVE_QUIET] = {.name = "quiet",
                     .type = OPTION_FLAG,
                     .help = "say nothing about sessions on stderr",
                     .group = "Output:"},
};

static unsigned serve_table(struct option *table)
{
    memcpy(table, serve_options, sizeof(serve_options));
    return SERVE_OPTION_COUNT;
}

struct serving {
    const struct option_value *v;
    const char **urls;
    unsigned count;
    struct lp_disk *disks[DISKS_MAX];
    struct net_reactor *reactor;
    struct target_server *server;
    struct target *target;
    char secret[SECRET_MAX], target_secret[SECRET_MAX];
    sigset_t signals;
};

/* Waits for SIGINT and SIGTERM, which every thread has blocked, and stops the server. */
static void *wait_for_signal(void *arg)
{
    struct serving *s = arg;
    int number;

    while (sigwait(&s->signals, &number) != 0)
        ;
    target_server_stop(s->server);
    return NULL;
}

static void print_log(void *user, const char *sentence)
{
    (void)user;
    fprintf(stderr, "lunpath serve: %s\n", sentence);
}

/* ---- configuration ---- */

static int find_secret(const struct option_value *file, const char *variable, const char *whose,
                       char secret[SECRET_MAX], struct lp_error *err)
{
    int found = file->given ? secret_from_file(file->text, secret, err) < 0 ? -1 : 1
                            : secret_from_environment(variable, secret, err);

    if (found == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "%s needs a secret; give a file with it, or set $%s", whose, variable);
    return found < 0 ? -1 : 0;
}

static int add_target(struct serving *s, struct lp_error *err)
{
    const struct option_value *v = s->v;
    struct target_user user = {.name = v[SERVE_USER].text, .secret = s->secret};
    struct target_opts opts = {
        .name = v[SERVE_TARGET].given ? v[SERVE_TARGET].text : DEFAULT_TARGET,
    };

    if (v[SERVE_USER].given) {
        if (find_secret(&v[SERVE_SECRET_FILE], "LUNPATH_SECRET", "--user", s->secret, err) < 0)
            return -1;
        opts.users = &user;
        opts.user_count = 1;
    } else if (v[SERVE_SECRET_FILE].given) {
        return lp_error_set(err, LP_ERROR_USAGE, 0, "--secret-file is of no use without --user");
    }
    if (v[SERVE_TARGET_USER].given) {
        if (find_secret(&v[SERVE_TARGET_SECRET_FILE], "LUNPATH_TARGET_SECRET", "--target-user",
                        s->target_secret, err) < 0)
            return -1;
        opts.mutual = (struct target_user){v[SERVE_TARGET_USER].text, s->target_secret, NULL};
    }
    s->target = target_add(s->server, &opts, err);
    return s->target ? 0 : -1;
}

static int add_luns(struct serving *s, struct lp_error *err)
{
    const struct lp_disk_opts disk = {
        .fd = -1,
        .read_only = s->v[SERVE_READ_ONLY].given,
        .buffered = s->v[SERVE_BUFFERED].given,
        .zero_reads = true,
    };

    for (unsigned i = 0; i < s->count; i++) {
        struct lu_opts lu = {
            .number = i,
            .read_only = s->v[SERVE_READ_ONLY].given,
            .thin = s->v[SERVE_THIN].given,
            .block_size = (uint32_t)s->v[SERVE_BLOCK_SIZE].number,
            .depth = 4 * TGT_DEPTH_MAX,
        };

        s->disks[i] = lp_disk_open(s->urls[i], &disk, err);
        if (!s->disks[i] || !target_add_lun(s->target, s->disks[i], &lu, err))
            return -1;
    }
    return 0;
}

static int listen_on(struct serving *s, struct lp_error *err)
{
    const char *list = s->v[SERVE_LISTEN].given ? s->v[SERVE_LISTEN].text : "127.0.0.1";
    char copy[1024], *at = copy;

    if (strlen(list) >= sizeof(copy))
        return lp_error_set(err, LP_ERROR_USAGE, 0, "--listen is too long");
    memcpy(copy, list, strlen(list) + 1);
    while (at) {
        char *comma = strchr(at, ','), host[LOGIN_ADDRESS_MAX];
        uint16_t port = ISCSI_PORT;
        int tag, got;
        char *zero;

        if (comma)
            *comma++ = '\0';
        zero =
            strlen(at) > 2 && strcmp(at + strlen(at) - 2, ":0") == 0 ? at + strlen(at) - 2 : NULL;
        if (zero)
            *zero = '\0'; /* a free port, for tests */
        if (net_address_split(at, host, sizeof(host), &port, &tag, err) < 0)
            return -1;
        got = target_listen(s->server, host, zero ? 0 : port, 1, err);
        if (got < 0)
            return -1;
        printf(strchr(host, ':') ? "listening on [%s]:%d\n" : "listening on %s:%d\n", host, got);
        at = comma;
    }
    return 0;
}

/* ---- running ---- */

static void tell(const struct serving *s)
{
    char size[32];

    for (unsigned i = 0; i < s->count; i++)
        printf("%s LUN %u: %s, %s\n",
               s->v[SERVE_TARGET].given ? s->v[SERVE_TARGET].text : DEFAULT_TARGET, i,
               lp_disk_url(s->disks[i]),
               size_format(lp_disk_limits(s->disks[i])->size, size, sizeof(size)));
    puts("ready");
    fflush(stdout);
}

static int serve(struct serving *s, struct lp_error *err)
{
    const struct target_server_opts opts = {
        .depth = (unsigned)s->v[SERVE_DEPTH].number,
        .header_digest = ISCSI_DIGEST_PREFER_NONE,
        .data_digest = ISCSI_DIGEST_PREFER_NONE,
        .log = s->v[SERVE_QUIET].given ? NULL : print_log,
    };
    pthread_t waiter;
    int error;

    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &s->signals, NULL);
    s->reactor = net_reactor_new(NULL, err);
    if (!s->reactor)
        return -1;
    s->server = target_server_new(s->reactor, &opts, err);
    if (!s->server || listen_on(s, err) < 0 || add_target(s, err) < 0 || add_luns(s, err) < 0)
        return -1;
    error = pthread_create(&waiter, NULL, wait_for_signal, s);
    if (error)
        return lp_error_sys(err, error, "a thread that waits for signals");
    tell(s);
    target_server_run(s->server, GRACE_S);
    pthread_join(waiter, NULL); /* a signal is what has stopped the server */
    return 0;
}

static int cmd_serve(int argc, char **argv)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[SERVE_OPTION_COUNT];
    const char *urls[DISKS_MAX];
    struct arguments arguments = {.items = urls, .max = DISKS_MAX};
    struct serving s = {.v = v, .urls = urls};
    struct lp_error err = {0};
    int status = -1;

    if (options_parse(table, serve_table(table), argc, argv, v, &arguments, &err) < 0)
        return command_fail(&command_serve, &err);
    s.count = arguments.count;
    if (s.count == 0)
        lp_error_set(&err, LP_ERROR_USAGE, 0, "name at least one disk, such as ram:1G");
    else
        status = serve(&s, &err);
    target_server_free(s.server);
    net_reactor_free(s.reactor);
    for (unsigned i = 0; i < s.count; i++)
        lp_disk_close(s.disks[i]);
    bytes_wipe(s.secret, sizeof(s.secret));
    bytes_wipe(s.target_secret, sizeof(s.target_secret));
    return status == 0 ? STATUS_RIGHT : command_fail(&command_serve, &err);
}

const struct command command_serve = {
    .name = "serve",
    .arguments = "[OPTION ...] DISK ...",
    .summary = "serve disks as the LUNs of an iSCSI target, on this machine unless told else",
    .options = serve_table,
    .run = cmd_serve,
};
