/* SPDX-License-Identifier: BSD-2-Clause */
#include "initiator/lun.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "scsi/cdb.h"
#include "scsi/lun.h"

enum { INQUIRY_ALLOCATION = 96, VPD_ALLOCATION = 252, MODE_ALLOCATION = 192 };

/* ---- the steps ---- */

enum after { NEXT, FATAL, NO_DISK };

struct step {
    const char *what;
    bool brief; /* part of a brief probe */
    bool must;  /* without an answer there is no disk */
    bool (*wanted)(const struct lun_info *info);
    struct scsi_cdb cdb;
    uint32_t length;
    enum after (*take)(struct lun_info *info, const uint8_t *bytes, size_t n, struct lp_error *err);
};

static const char no_such_lun[] =
    "the target has no such LUN; `lunpath luns` lists those that it has";

static enum after take_inquiry(struct lun_info *info, const uint8_t *bytes, size_t n,
                               struct lp_error *err)
{
    if (scsi_inquiry_unpack(&info->inquiry, bytes, n, err) < 0)
        return FATAL;
    if (info->inquiry.qualifier == 0 && info->inquiry.device_type == SCSI_TYPE_DISK)
        return NEXT;
    if (info->inquiry.qualifier != 0) {
        lp_error_set(err, LP_ERROR_PEER, ENXIO, "%s", no_such_lun);
        return FATAL;
    }
    lp_error_set(err, LP_ERROR_PEER, ENXIO, "the LUN is no disk but a %s (SCSI type %02Xh)",
                 lun_type_name(info->inquiry.device_type), info->inquiry.device_type);
    return NO_DISK;
}

static enum after take_pages(struct lun_info *info, const uint8_t *bytes, size_t n,
                             struct lp_error *err)
{
    scsi_vpd_pages_unpack(&info->pages, bytes, n, err);
    return NEXT;
}

static enum after take_serial(struct lun_info *info, const uint8_t *bytes, size_t n,
                              struct lp_error *err)
{
    scsi_vpd_serial_unpack(info->serial, sizeof(info->serial), bytes, n, err);
    return NEXT;
}

/* The more the designator is worth as an identity, the higher. */
static int worth(const struct scsi_designator *d)
{
    if (d->association != SCSI_OF_LU || d->length == 0 || d->length > LUN_ID_MAX)
        return 0;
    switch (d->type) {
    case SCSI_DESIGNATOR_NAA:
        return 4;
    case SCSI_DESIGNATOR_EUI64:
        return 3;
    case SCSI_DESIGNATOR_NAME:
        return 2;
    case SCSI_DESIGNATOR_T10:
        return 1;
    default:
        return 0;
    }
}

static enum after take_ids(struct lun_info *info, const uint8_t *bytes, size_t n,
                           struct lp_error *err)
{
    const uint8_t *body;
    size_t length, at = 0;
    struct scsi_designator d;
    int best = 0;

    if (scsi_vpd_body(0x83, bytes, n, &body, &length, err) < 0)
        return NEXT;
    while (scsi_designator_next(body, length, &at, &d)) {
        if (worth(&d) <= best)
            continue;
        best = worth(&d);
        info->id_type = d.type;
        info->id_length = d.length;
        memcpy(info->id, d.bytes, d.length);
    }
    return NEXT;
}

static enum after take_limits(struct lun_info *info, const uint8_t *bytes, size_t n,
                              struct lp_error *err)
{
    info->has_limits = scsi_block_limits_unpack(&info->limits, bytes, n, err) == 0;
    return NEXT;
}

static enum after take_characteristics(struct lun_info *info, const uint8_t *bytes, size_t n,
                                       struct lp_error *err)
{
    info->has_characteristics =
        scsi_block_characteristics_unpack(&info->characteristics, bytes, n, err) == 0;
    return NEXT;
}

static enum after take_provisioning(struct lun_info *info, const uint8_t *bytes, size_t n,
                                    struct lp_error *err)
{
    info->has_provisioning = scsi_provisioning_unpack(&info->provisioning, bytes, n, err) == 0;
    return NEXT;
}

static enum after size_known(struct lun_info *info, struct lp_error *err)
{
    if (info->capacity.last_lba == UINT64_MAX) {
        lp_error_set(err, LP_ERROR_PEER, EPROTO, "the LUN says that it has 2^64 blocks");
        return FATAL;
    }
    info->size = (info->capacity.last_lba + 1) * info->capacity.block_size;
    return NEXT;
}

static enum after take_capacity_10(struct lun_info *info, const uint8_t *bytes, size_t n,
                                   struct lp_error *err)
{
    if (scsi_capacity_10_unpack(&info->capacity, bytes, n, err) < 0)
        return FATAL;
    if (info->capacity.last_lba == UINT32_MAX) {
        info->size = 0; /* READ CAPACITY(16) has to tell */
        return NEXT;
    }
    return size_known(info, err);
}

static enum after take_capacity_16(struct lun_info *info, const uint8_t *bytes, size_t n,
                                   struct lp_error *err)
{
    if (scsi_capacity_16_unpack(&info->capacity, bytes, n, err) < 0)
        return FATAL;
    return size_known(info, err);
}

static enum after take_mode(struct lun_info *info, const uint8_t *bytes, size_t n,
                            struct lp_error *err)
{
    struct scsi_mode_header header;
    struct scsi_mode_page page;
    size_t at;

    if (scsi_mode_header_unpack(&header, false, bytes, n, err) < 0)
        return NEXT;
    info->write_protected = header.device_specific & SCSI_MODE_WP;
    info->dpofua = header.device_specific & SCSI_MODE_DPOFUA;
    at = header.header_length + header.descriptor_length;
    while (at <= header.length && scsi_mode_page_next(bytes, header.length, &at, &page) == 1)
        if (page.code == 0x08 && page.subpage == 0)
            info->has_caching = scsi_caching_unpack(&info->caching, &page) == 0;
    return NEXT;
}

#define HAS(name, page)                                                                            \
    static bool name(const struct lun_info *info)                                                  \
    {                                                                                              \
        return scsi_vpd_has(&info->pages, page);                                                   \
    }

HAS(has_80, 0x80)
HAS(has_83, 0x83)
HAS(has_b0, 0xb0)
HAS(has_b1, 0xb1)
HAS(has_b2, 0xb2)

#define VPD(page)                                                                                  \
    {                                                                                              \
        .command = SCSI_CMD_INQUIRY, .flags = SCSI_CDB_EVPD, .byte2 = page,                        \
        .length = VPD_ALLOCATION                                                                   \
    }

/* VPD 00 comes before every other page, and only pages that it lists are asked for (C-01). */
static const struct step steps[] = {
    {"INQUIRY",
     true,
     true,
     NULL,
     {.command = SCSI_CMD_INQUIRY, .length = INQUIRY_ALLOCATION},
     INQUIRY_ALLOCATION,
     take_inquiry},
    {"VPD page 00h", true, false, NULL, VPD(0x00), VPD_ALLOCATION, take_pages},
    {"VPD page 80h", true, false, has_80, VPD(0x80), VPD_ALLOCATION, take_serial},
    {"VPD page 83h", true, false, has_83, VPD(0x83), VPD_ALLOCATION, take_ids},
    {"VPD page B0h", false, false, has_b0, VPD(0xb0), VPD_ALLOCATION, take_limits},
    {"VPD page B1h", false, false, has_b1, VPD(0xb1), VPD_ALLOCATION, take_characteristics},
    {"VPD page B2h", false, false, has_b2, VPD(0xb2), VPD_ALLOCATION, take_provisioning},
    {"READ CAPACITY(10)",
     true,
     true,
     NULL,
     {.command = SCSI_CMD_READ_CAPACITY_10},
     SCSI_CAPACITY_10_SIZE,
     take_capacity_10},
    {"READ CAPACITY(16)",
     true,
     false,
     NULL,
     {.command = SCSI_CMD_READ_CAPACITY_16, .length = SCSI_CAPACITY_16_SIZE},
     SCSI_CAPACITY_16_SIZE,
     take_capacity_16},
    {"MODE SENSE(6)",
     true,
     false,
     NULL,
     {.command = SCSI_CMD_MODE_SENSE_6, .byte2 = 0x3f, .length = MODE_ALLOCATION},
     MODE_ALLOCATION,
     take_mode},
};

enum { STEPS = sizeof(steps) / sizeof(*steps) };

/* ---- walking them ---- */

/* A command of the probe, which reads into iov. */
static void prepare(struct link_command *c, const struct scsi_cdb *cdb, uint64_t lun,
                    const struct iovec *iov)
{
    uint8_t bytes[SCSI_CDB_MAX];
    size_t n = scsi_cdb_build(cdb, bytes);

    memset(c, 0, sizeof(*c));
    memcpy(c->task.cdb, bytes, n < sizeof(c->task.cdb) ? n : sizeof(c->task.cdb));
    c->task.cdb_length = (uint16_t)n;
    c->task.lun = lun;
    c->task.attr = ISCSI_ATTR_SIMPLE;
    c->task.direction = INI_READ;
    c->task.iov = iov;
    c->task.iov_count = 1;
    c->task.length = (uint32_t)iov->iov_len;
    c->probe = true;
}

static void begin_step(struct lun_probe *probe);

static void end_probe(struct lun_probe *probe, const struct lp_error *why)
{
    struct lp_error err;

    if (!why && probe->info.size == 0) {
        lp_error_set(&err, LP_ERROR_PEER, EPROTO,
                     "the LUN does not tell its size (READ CAPACITY(16) failed or says 0)");
        why = &err;
    }
    probe->done(probe, why);
}

static void command_failed(struct lun_probe *probe, const struct step *step)
{
    const struct link_command *c = &probe->command;
    struct lp_error err;
    char text[160] = "";

    if (c->has_sense)
        scsi_sense_text(&c->sense, text, sizeof(text));
    if (c->status == -ENXIO)
        lp_error_set(&err, LP_ERROR_PEER, ENXIO, "%s", no_such_lun);
    else
        lp_error_set(&err, LP_ERROR_PEER, -c->status, "%s failed: %s", step->what,
                     text[0] ? text : strerror(-c->status));
    end_probe(probe, &err);
}

/* An optional answer may be missing because the target does not know the question. A lost session
 * is another matter; and when identities are to be compared, a failure is no answer. */
static bool may_lack(const struct lun_probe *probe, const struct link_command *c)
{
    bool unknown = c->status == -EOPNOTSUPP || c->status == -EINVAL;

    return link_session(probe->link) && (unknown || !probe->brief);
}

static void step_done(struct link_command *c)
{
    struct lun_probe *probe = c->user;
    const struct step *step = &steps[probe->step];
    enum after after = NEXT;
    struct lp_error err;

    if (c->status == 0)
        after = step->take(&probe->info, probe->buffer, c->transferred, &err);
    else if (step->must || !may_lack(probe, c)) {
        command_failed(probe, step);
        return;
    }
    if (after == NO_DISK && probe->any_type)
        probe->done(probe, NULL);
    else if (after != NEXT)
        end_probe(probe, &err);
    if (after != NEXT)
        return;
    probe->step++;
    begin_step(probe);
}

static void begin_step(struct lun_probe *probe)
{
    const struct step *step;

    while (probe->step < STEPS &&
           ((probe->brief && !steps[probe->step].brief) ||
            (steps[probe->step].wanted && !steps[probe->step].wanted(&probe->info))))
        probe->step++;
    if (probe->step == STEPS) {
        end_probe(probe, NULL);
        return;
    }
    step = &steps[probe->step];
    memset(probe->buffer, 0, sizeof(probe->buffer));
    probe->iov = (struct iovec){probe->buffer, step->length};
    prepare(&probe->command, &step->cdb, load_be64(probe->info.lun), &probe->iov);
    probe->command.done = step_done;
    probe->command.user = probe;
    link_submit(probe->link, &probe->command);
}

void lun_probe_start(struct lun_probe *probe, struct link *link, const uint8_t lun[8])
{
    probe->link = link;
    probe->step = 0;
    memset(&probe->info, 0, sizeof(probe->info));
    memcpy(probe->info.lun, lun, 8);
    begin_step(probe);
}

/* ---- identity ---- */

int lun_compare(const struct lun_info *before, const struct lun_info *now, struct lp_error *err)
{
    const char *what = NULL;

    if (before->id_length != now->id_length || before->id_type != now->id_type ||
        memcmp(before->id, now->id, now->id_length) != 0)
        what = "identity (VPD page 83h)";
    else if (strcmp(before->serial, now->serial) != 0)
        what = "serial number (VPD page 80h)";
    else if (before->capacity.block_size != now->capacity.block_size)
        what = "block size";
    else if (now->size < before->size)
        what = "size, which has shrunk";
    if (!what)
        return 0;
    return lp_error_set(err, LP_ERROR_PEER, ESTALE,
                        "behind the same LUN number there is another disk now: it differs in its "
                        "%s. Nothing is read or written there any more; check the LUN mapping at "
                        "the target",
                        what);
}

bool lun_update(struct lun_info *info, const struct lun_info *now, bool brief)
{
    bool changed = info->size != now->size || info->write_protected != now->write_protected ||
                   info->dpofua != now->dpofua || info->has_caching != now->has_caching ||
                   info->caching.wce != now->caching.wce ||
                   info->capacity.lbpme != now->capacity.lbpme;

    if (!brief) {
        *info = *now;
        return changed;
    }
    info->size = now->size;
    info->capacity = now->capacity;
    info->write_protected = now->write_protected;
    info->dpofua = now->dpofua;
    info->has_caching = now->has_caching;
    info->caching = now->caching;
    return changed;
}

bool lun_attention_probes(uint16_t asc)
{
    return asc == 0x2a00 || asc == 0x2a01 || asc == 0x2a09 || asc == 0x3f03;
}

const char *lun_type_name(uint8_t device_type)
{
    static const char *const names[] = {
        [0x00] = "disk",
        [0x01] = "tape drive",
        [0x03] = "processor",
        [0x05] = "CD or DVD drive",
        [0x07] = "optical memory",
        [0x08] = "media changer",
        [0x0c] = "storage array controller",
        [0x0d] = "enclosure",
        [0x0e] = "simplified disk",
        [0x11] = "object store",
        [0x14] = "zoned disk",
        [0x1e] = "well known LUN",
    };
    size_t count = sizeof(names) / sizeof(*names);

    return device_type < count && names[device_type] ? names[device_type]
                                                     : "device of another kind";
}

const char *lun_id_text(const struct lun_info *info, char *buf, size_t size)
{
    static const char *const prefixes[] = {[SCSI_DESIGNATOR_T10] = "t10.",
                                           [SCSI_DESIGNATOR_EUI64] = "eui.",
                                           [SCSI_DESIGNATOR_NAA] = "naa.",
                                           [SCSI_DESIGNATOR_NAME] = ""};
    bool text = info->id_type == SCSI_DESIGNATOR_T10 || info->id_type == SCSI_DESIGNATOR_NAME;
    size_t n;

    if (info->id_length == 0) {
        snprintf(buf, size, "none");
        return buf;
    }
    n = (size_t)snprintf(buf, size, "%s", prefixes[info->id_type]);
    for (unsigned i = 0; i < info->id_length && n + 3 < size; i++) {
        uint8_t byte = info->id[i];

        if (!text)
            n += (size_t)snprintf(buf + n, size - n, "%02x", byte);
        else if (byte > 0x20 && byte < 0x7f)
            n += (size_t)snprintf(buf + n, size - n, "%c", byte);
    }
    return buf;
}

/* ---- waiting ---- */

static void mark_done(struct link_command *c)
{
    *(bool *)c->user = true;
}

int link_run(struct link *link, struct link_command *c)
{
    bool done = false;

    c->done = mark_done;
    c->user = &done;
    link_submit(link, c);
    while (!done)
        net_run_once(link_reactor(link), NET_NEVER);
    return c->status;
}

static void on_patience(struct net_timer *timer)
{
    *(bool *)timer->user = true;
}

int link_wait(struct link *link, uint64_t patience_ns, struct lp_error *err)
{
    struct net_reactor *r = link_reactor(link);
    bool over = patience_ns == 0;
    struct net_timer timer = {.callback = on_patience, .user = &over};

    if (!over && net_timer_set(r, &timer, net_now_exact(r) + patience_ns) < 0)
        return lp_error_sys(err, ENOMEM, "iSCSI session");
    while (link_state(link) != LINK_UP && link_state(link) != LINK_FAILED &&
           !(over && link_stats(link)->failures > 0))
        net_run_once(r, NET_NEVER);
    net_timer_cancel(r, &timer);
    if (link_state(link) == LINK_UP)
        return 0;
    *err = *link_error(link);
    return -1;
}

int lun_list(struct link *link, void (*each)(void *user, const uint8_t lun[8]), void *user,
             struct lp_error *err)
{
    static const uint32_t sizes[] = {4096, 65536 * 8 + 8};
    struct link_command c;
    uint8_t *bytes = NULL;

    for (unsigned i = 0; i < 2; i++) {
        const struct scsi_cdb cdb = {.command = SCSI_CMD_REPORT_LUNS, .length = sizes[i]};
        const uint8_t *luns;
        size_t count, total;
        struct iovec iov;

        free(bytes);
        bytes = calloc(1, sizes[i]);
        if (!bytes)
            return lp_error_sys(err, ENOMEM, "REPORT LUNS");
        iov = (struct iovec){bytes, sizes[i]};
        prepare(&c, &cdb, 0, &iov);
        if (link_run(link, &c) != 0) {
            free(bytes);
            return lp_error_set(err, LP_ERROR_PEER, -c.status, "REPORT LUNS failed: %s",
                                strerror(-c.status));
        }
        if (scsi_report_luns_unpack(bytes, c.transferred, &luns, &count, &total, err) < 0) {
            free(bytes);
            return -1;
        }
        if (count < total && i == 0)
            continue; /* there are more: ask again with room for all */
        for (size_t k = 0; k < count; k++)
            each(user, luns + 8 * k);
        break;
    }
    free(bytes);
    return 0;
}
