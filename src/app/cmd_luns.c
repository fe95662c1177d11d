/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/lun_link.h"
#include "base/size.h"
#include "initiator/lun.h"
#include "scsi/lun.h"

enum { LUNS_MAX = 4096 };

static unsigned luns_table(struct option *table)
{
    iscsi_options_append(table);
    return ISCSI_OPTION_COUNT;
}

struct listing {
    struct link *link;
    uint8_t luns[LUNS_MAX][8];
    unsigned count, more;
    bool probed;
    struct lp_error why;
    struct lun_probe probe;
};

static void note_lun(void *user, const uint8_t lun[8])
{
    struct listing *l = user;

    if (l->count < LUNS_MAX)
        memcpy(l->luns[l->count++], lun, 8);
    else
        l->more++;
}

static void on_probed(struct lun_probe *probe, const struct lp_error *why)
{
    struct listing *l = probe->user;

    l->probed = true;
    l->why = (struct lp_error){0};
    if (why)
        l->why = *why;
}

static const char *alua_text(const struct lun_info *info)
{
    static const char *const texts[] = {"none", "implicit", "explicit", "implicit, explicit"};

    return texts[info->inquiry.tpgs & 3];
}

static void print_lun(const struct lun_info *info)
{
    char lun[SCSI_LUN_TEXT], size[32], id[160];

    if (info->inquiry.device_type != SCSI_TYPE_DISK) {
        printf("LUN %s: %s, no disk\n    %s %s %s\n", scsi_lun_format(info->lun, lun),
               lun_type_name(info->inquiry.device_type), info->inquiry.vendor,
               info->inquiry.product, info->inquiry.revision);
        return;
    }
    printf("LUN %s: %s, blocks of %" PRIu32 " bytes\n", scsi_lun_format(info->lun, lun),
           size_format(info->size, size, sizeof(size)), info->capacity.block_size);
    printf("    %s %s %s, serial %s, id %s\n", info->inquiry.vendor, info->inquiry.product,
           info->inquiry.revision, info->serial[0] ? info->serial : "none",
           lun_id_text(info, id, sizeof(id)));
    printf("    thin: %s, write cache: %s%s, ALUA: %s%s\n", info->capacity.lbpme ? "yes" : "no",
           !info->has_caching  ? "not told"
           : info->caching.wce ? "on"
                               : "off",
           info->dpofua ? " (FUA)" : "", alua_text(info),
           info->write_protected ? ", write-protected" : "");
}

static void show(struct listing *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        char text[SCSI_LUN_TEXT];

        l->probed = false;
        l->probe.any_type = true;
        l->probe.done = on_probed;
        l->probe.user = l;
        lun_probe_start(&l->probe, l->link, l->luns[i]);
        while (!l->probed)
            net_run_once(link_reactor(l->link), NET_NEVER);
        if (l->why.domain == LP_ERROR_NONE)
            print_lun(&l->probe.info);
        else
            printf("LUN %s: %s\n", scsi_lun_format(l->luns[i], text), l->why.msg);
    }
    if (l->count == 0)
        puts("The target shows no LUN to this initiator; map one to it there.");
    if (l->more)
        printf("... and %u more, which are not asked\n", l->more);
}

static int list_luns(const char *where, const struct iscsi_args *args, struct lp_error *err)
{
    struct listing *l = calloc(1, sizeof(*l));
    struct lun_link to = {0};
    int status = -1;

    if (!l)
        return lp_error_sys(err, ENOMEM, "the list");
    if (lun_link_open(&to, where, ISCSI_URL_TARGET, args, err) == 0 &&
        lun_list(to.link, note_lun, l, err) == 0) {
        l->link = to.link;
        show(l);
        status = 0;
    }
    lun_link_close(&to);
    free(l);
    return status;
}

static int cmd_luns(int argc, char **argv)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[ISCSI_OPTION_COUNT];
    const char *items[2];
    struct arguments arguments = {.items = items, .max = 2};
    struct iscsi_args args = {0};
    struct lp_error err = {0};
    int status = -1;

    if (options_parse(table, luns_table(table), argc, argv, v, &arguments, &err) < 0)
        return command_fail(&command_luns, &err);
    if (arguments.count != 1)
        lp_error_set(&err, LP_ERROR_USAGE, 0,
                     "name one target: lunpath luns iscsi://HOST[:PORT]/TARGET");
    else if (iscsi_args_take(v, items[0], &args, &err) == 0)
        status = list_luns(items[0], &args, &err);
    iscsi_args_forget(&args);
    if (status == 0 && fflush(stdout) != 0)
        status = lp_error_sys(&err, errno, "the list cannot be written to stdout");
    return status == 0 ? STATUS_RIGHT : command_fail(&command_luns, &err);
}

const struct command command_luns = {
    .name = "luns",
    .arguments = "[OPTION ...] iscsi://[USER@]HOST[:PORT]/TARGET",
    .summary = "list the LUNs of an iSCSI target: size, identity, abilities",
    .options = luns_table,
    .run = cmd_luns,
};
