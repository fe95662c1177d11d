/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/iscsi_args.h"
#include "disk/iscsi_links.h"
#include "initiator/discover.h"
#include "initiator/url.h"

static unsigned discover_table(struct option *table)
{
    iscsi_options_append(table);
    return ISCSI_OPTION_COUNT;
}

struct listing {
    char last[ISCSI_NAME_MAX + 1];
    unsigned targets;
};

static void print_found(void *user, const struct discovered *found)
{
    struct listing *l = user;
    bool v6 = strchr(found->host, ':');

    if (strcmp(l->last, found->target) != 0) {
        snprintf(l->last, sizeof(l->last), "%s", found->target);
        printf("%s\n", found->target);
        l->targets++;
    }
    printf(v6 ? "    portal [%s]:%u" : "    portal %s:%u", found->host, found->port);
    if (found->portal_group >= 0)
        printf("  group %d", found->portal_group);
    putchar('\n');
}

static int find_targets(const char *where, const struct iscsi_args *args, struct lp_error *err)
{
    struct listing listing = {0};
    struct net_reactor *reactor = NULL;
    struct link_opts link;
    struct iscsi_url url;
    int status = -1;

    if (iscsi_url_parse(where, ISCSI_URL_PORTAL, &url, err) < 0)
        return -1;
    reactor = net_reactor_new(NULL, err);
    if (!reactor)
        return -1;
    iscsi_link_opts(&args->opts, &url, &link);
    if (iscsi_fresh_isid(link.login.isid, err) == 0)
        status = discover(reactor, &link, print_found, &listing, err);
    net_reactor_free(reactor);
    if (status == 0 && listing.targets == 0)
        printf("The portal shows no target to %s. Add that name to a target's access list there, "
               "or give a user (--user).\n",
               args->initiator_name);
    return status;
}

static int cmd_discover(int argc, char **argv)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[ISCSI_OPTION_COUNT];
    const char *items[2];
    struct arguments arguments = {.items = items, .max = 2};
    struct iscsi_args args = {0};
    struct lp_error err = {0};
    int status = -1;

    if (options_parse(table, discover_table(table), argc, argv, v, &arguments, &err) < 0)
        return command_fail(&command_discover, &err);
    if (arguments.count != 1)
        lp_error_set(&err, LP_ERROR_USAGE, 0, "name one portal: lunpath discover HOST[:PORT]");
    else if (iscsi_args_take(v, items[0], &args, &err) == 0)
        status = find_targets(items[0], &args, &err);
    iscsi_args_forget(&args);
    if (status == 0 && fflush(stdout) != 0)
        status = lp_error_sys(&err, errno, "the list cannot be written to stdout");
    return status == 0 ? STATUS_RIGHT : command_fail(&command_discover, &err);
}

const struct command command_discover = {
    .name = "discover",
    .arguments = "[OPTION ...] HOST[:PORT]",
    .summary = "list the targets of an iSCSI portal, with their addresses",
    .options = discover_table,
    .run = cmd_discover,
};
