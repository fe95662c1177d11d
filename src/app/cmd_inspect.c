/* SPDX-License-Identifier: BSD-2-Clause */
/* lunpath inspect: what a target and a LUN say of themselves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/facts.h"
#include "app/inspect.h"
#include "app/lun_link.h"
#include "base/size.h"
#include "scsi/lun.h"

enum { INSPECT_JSON, INSPECT_ISCSI, INSPECT_OPTION_COUNT = INSPECT_ISCSI + ISCSI_OPTION_COUNT };

static unsigned inspect_table(struct option *table)
{
    table[INSPECT_JSON] = (struct option){
        .name = "json", .type = OPTION_FLAG, .help = "for programs", .group = "Output:"};
    iscsi_options_append(table + INSPECT_ISCSI);
    return INSPECT_OPTION_COUNT;
}

static void add_session(struct facts *f, const struct lun_link *l)
{
    const struct ini_session *session = link_session(l->link);
    const struct iscsi_params *s = ini_session_params(session);
    const struct iscsi_params *c = ini_conn_params(link_conn(l->link));
    const char *alias = ini_session_target_alias(session);
    int tag = ini_session_portal_group_tag(session);

    facts_group(f, "session");
    facts_text(f, "target", "%s", l->url.target);
    facts_text(f, "portal", "%s", link_portal(l->link));
    if (alias && *alias)
        facts_text(f, "TargetAlias", "%s", alias);
    if (tag >= 0)
        facts_number(f, "TargetPortalGroupTag", (uint64_t)tag);
    facts_number(f, "TSIH", ini_session_tsih(session));
    facts_bool(f, "authenticated", ini_session_authenticated(session));
    facts_text(f, "HeaderDigest", c->header_digest ? "CRC32C" : "None");
    facts_text(f, "DataDigest", c->data_digest ? "CRC32C" : "None");
    facts_number(f, "MaxRecvDataSegmentLength of the target", c->mrdsl_out);
    facts_number(f, "MaxRecvDataSegmentLength of ours", c->mrdsl_in);
    facts_number(f, "MaxConnections", s->max_connections);
    facts_bool(f, "InitialR2T", s->initial_r2t);
    facts_bool(f, "ImmediateData", s->immediate_data);
    facts_number(f, "MaxBurstLength", s->max_burst_length);
    facts_number(f, "FirstBurstLength", s->first_burst_length);
    facts_number(f, "DefaultTime2Wait", s->default_time2wait);
    facts_number(f, "DefaultTime2Retain", s->default_time2retain);
    facts_number(f, "MaxOutstandingR2T", s->max_outstanding_r2t);
    facts_bool(f, "DataPDUInOrder", s->data_pdu_in_order);
    facts_bool(f, "DataSequenceInOrder", s->data_sequence_in_order);
    facts_number(f, "ErrorRecoveryLevel", s->error_recovery_level);
    facts_number(f, "iSCSIProtocolLevel", s->protocol_level);
    facts_number(f, "commands that may be sent now", ini_session_window(session));
    facts_end(f);
}

/* ---- what is common to all that is asked ---- */

struct probing {
    struct lun_probe probe;
    bool done;
    struct lp_error why;
};

static void on_probed(struct lun_probe *probe, const struct lp_error *why)
{
    struct probing *p = probe->user;

    p->done = true;
    if (why)
        p->why = *why;
}

static int probe_lun(struct lun_link *l, struct lun_info *info, struct lp_error *err)
{
    struct probing *p = calloc(1, sizeof(*p));
    int status;

    if (!p)
        return lp_error_sys(err, ENOMEM, "cannot look at the LUN");
    p->probe.done = on_probed;
    p->probe.user = p;
    lun_probe_start(&p->probe, l->link, l->url.lun);
    while (!p->done)
        net_run_once(l->reactor, NET_NEVER);
    *info = p->probe.info;
    status = p->why.domain == LP_ERROR_NONE ? 0 : -1;
    if (status < 0)
        *err = p->why;
    free(p);
    return status;
}

static void add_lun(struct facts *f, const struct lun_info *info)
{
    char text[160];

    facts_group(f, "LUN");
    facts_text(f, "number", "%s", scsi_lun_format(info->lun, text));
    facts_text(f, "id", "%s", lun_id_text(info, text, sizeof(text)));
    facts_number(f, "bytes", info->size);
    facts_text(f, "size", "%s", size_format(info->size, text, sizeof(text)));
    facts_bool(f, "write-protected", info->write_protected);
    facts_bool(f, "DPO and FUA", info->dpofua);
    facts_end(f);
}

static int inspect(struct lun_link *l, struct facts *f, struct lp_error *err)
{
    struct lun_info info = {0};

    add_session(f, l);
    if (probe_lun(l, &info, err) < 0)
        return -1;
    add_lun(f, &info);
    inspect_inquiry(f, l);
    inspect_vpd(f, l, &info.pages);
    inspect_capacity(f, &info);
    inspect_modes(f, l);
    return f->incomplete ? lp_error_sys(err, ENOMEM, "cannot keep what the LUN says") : 0;
}

static int print(const struct facts *f, bool json, struct lp_error *err)
{
    bool good = true;

    if (!json)
        facts_print(f, stdout);
#ifdef LP_HAVE_JANSSON
    else
        good = facts_print_json(f, stdout) == 0;
#endif
    if (good && fflush(stdout) == 0)
        return 0;
    return lp_error_sys(err, errno, "it cannot be written to stdout");
}

static int cmd_inspect(int argc, char **argv)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[INSPECT_OPTION_COUNT];
    const char *items[2];
    struct arguments arguments = {.items = items, .max = 2};
    struct iscsi_args args = {0};
    struct lun_link link = {0};
    struct facts facts = {0};
    struct lp_error err = {0};
    int status = -1;

    if (options_parse(table, inspect_table(table), argc, argv, v, &arguments, &err) < 0)
        return command_fail(&command_inspect, &err);
#ifndef LP_HAVE_JANSSON
    if (v[INSPECT_JSON].given) {
        lp_error_set(&err, LP_ERROR_USAGE, 0,
                     "this build cannot write JSON; build it where jansson is installed");
        return command_fail(&command_inspect, &err);
    }
#endif
    if (arguments.count != 1)
        lp_error_set(&err, LP_ERROR_USAGE, 0,
                     "name one LUN: lunpath inspect iscsi://HOST[:PORT]/TARGET/LUN");
    else if (iscsi_args_take(v + INSPECT_ISCSI, items[0], &args, &err) == 0)
        status = lun_link_open(&link, items[0], ISCSI_URL_LUN, &args, &err);
    if (status == 0)
        status = inspect(&link, &facts, &err);
    lun_link_close(&link);
    if (status == 0)
        status = print(&facts, v[INSPECT_JSON].given, &err);
    facts_free(&facts);
    iscsi_args_forget(&args);
    return status == 0 ? STATUS_RIGHT : command_fail(&command_inspect, &err);
}

const struct command command_inspect = {
    .name = "inspect",
    .arguments = "[OPTION ...] iscsi://[USER@]HOST[:PORT]/TARGET/LUN",
    .summary = "show what a target and a LUN say: keys, pages, capacity, limits",
    .options = inspect_table,
    .run = cmd_inspect,
};
