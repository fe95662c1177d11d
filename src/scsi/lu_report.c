/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that tell about the unit: capacity, LUNs, commands, ports; and its small states. */
#include "base/bytes.h"
#include "scsi/lu_int.h"
#include "scsi/lun.h"

#include <string.h>

static void limit(struct lu_task *task, uint64_t most)
{
    task->data_in_length = task->fields.length < most ? task->fields.length : most;
}

/* ---- capacity ---- */

void lu_check_capacity(struct lu_task *task)
{
    if (task->fields.command == SCSI_CMD_READ_CAPACITY_10)
        task->data_in_length = SCSI_CAPACITY_10_SIZE;
    else
        limit(task, SCSI_CAPACITY_16_SIZE);
}

void lu_capacity(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    struct scsi_capacity c = {.last_lba = lu->blocks - 1,
                              .block_size = lu->block_size,
                              .physical_exponent = lu->opts.physical_exponent,
                              .lbpme = lu->thin,
                              .lbprz = lu->lbprz};
    uint8_t out[SCSI_CAPACITY_16_SIZE];
    size_t n = task->fields.command == SCSI_CMD_READ_CAPACITY_10 ? scsi_capacity_10_pack(&c, out)
                                                                 : scsi_capacity_16_pack(&c, out);

    lu_put(task, out, n);
    lu_end_data(task);
}

/* ---- REPORT LUNS ---- */

static bool lun_at(const struct lu_task *task, unsigned index, uint8_t lun[SCSI_LUN_SIZE])
{
    const struct lu *lu = task->lu;

    if (lu->opts.lun_at)
        return lu->opts.lun_at(lu->opts.lun_user, task->nexus, index, lun);
    return index == 0 && lu->q && scsi_lun_pack(lu->opts.number, lun) == 0;
}

static unsigned count_luns(const struct lu_task *task)
{
    uint8_t lun[SCSI_LUN_SIZE];
    unsigned n = 0;

    while (lun_at(task, n, lun))
        n++;
    return n;
}

enum { SELECT_ALL_BUT_WELL_KNOWN = 0, SELECT_WELL_KNOWN = 1, SELECT_ALL = 2 };

void lu_check_report_luns(struct lu_task *task)
{
    if (task->fields.byte2 > SELECT_ALL)
        lu_refuse(task, scsi_sense_cdb_field(2, -1));
    else
        limit(task, 8 + 8 * (uint64_t)count_luns(task));
}

void lu_report_luns(struct lu_task *task)
{
    unsigned n = task->fields.byte2 == SELECT_WELL_KNOWN ? 0 : count_luns(task);
    uint8_t out[8] = {0};

    lu_ua_remove(task->nexus, SCSI_ASC_REPORTED_LUNS_CHANGED); /* it has been told with this */
    store_be32(out, n * 8);
    lu_put(task, out, sizeof out);
    for (unsigned i = 0; i < n && task->put_total < task->data_in_length && lun_at(task, i, out);
         i++)
        lu_put(task, out, sizeof out);
    lu_end_data(task);
}

/* ---- REPORT SUPPORTED OPERATION CODES; SPC-4 6.35 ---- */

enum {
    RCTD = 0x80,
    TIMEOUTS = 12, /* bytes of a command timeouts descriptor */
    NOT_SUPPORTED = 1,
    AS_STANDARD = 3,
};

static bool with_timeouts(const struct lu_task *task)
{
    return task->fields.byte2 & RCTD;
}

static bool has_service_actions(const struct lu *lu, uint8_t opcode)
{
    for (int i = 0; i < SCSI_CMD_COUNT; i++) {
        const struct scsi_command_info *info = scsi_command_info((enum scsi_command)i);
        if (info->opcode == opcode && info->service_action >= 0 &&
            lu_command(lu, (enum scsi_command)i))
            return true;
    }
    return false;
}

static bool is_known(const struct lu *lu, uint8_t opcode)
{
    for (int i = 0; i < SCSI_CMD_COUNT; i++)
        if (scsi_command_info((enum scsi_command)i)->opcode == opcode &&
            lu_command(lu, (enum scsi_command)i))
            return true;
    return false;
}

void lu_check_report_opcodes(struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;
    uint8_t options = f->byte2 & 7, opcode = f->byte3;
    bool services = has_service_actions(task->lu, opcode);

    limit(task, 4 + (uint64_t)SCSI_CMD_COUNT * (8 + TIMEOUTS));
    if (options > 3)
        lu_refuse(task, scsi_sense_cdb_field(2, 2));
    else if ((options == 1 && services) ||
             (options == 2 && is_known(task->lu, opcode) && !services))
        lu_refuse(task, scsi_sense_cdb_field(2, 2));
}

static void put_timeouts(struct lu_task *task)
{
    uint8_t out[TIMEOUTS] = {0, TIMEOUTS - 2}; /* 0: no time is said */

    if (with_timeouts(task))
        lu_put(task, out, sizeof out);
}

static void report_all(struct lu_task *task)
{
    uint8_t out[8] = {0};
    uint32_t n = 0, each = with_timeouts(task) ? 8 + TIMEOUTS : 8;

    for (int i = 0; i < SCSI_CMD_COUNT; i++)
        n += lu_command(task->lu, (enum scsi_command)i) != NULL;
    store_be32(out, n * each);
    lu_put(task, out, 4);
    for (int i = 0; i < SCSI_CMD_COUNT; i++) {
        const struct scsi_command_info *info = scsi_command_info((enum scsi_command)i);
        if (!lu_command(task->lu, (enum scsi_command)i))
            continue;
        memset(out, 0, sizeof out);
        out[0] = info->opcode;
        if (info->service_action >= 0)
            store_be16(out + 2, (uint16_t)info->service_action);
        out[5] = (uint8_t)((info->service_action >= 0 ? 1 : 0) | (with_timeouts(task) ? 2 : 0));
        store_be16(out + 6, info->size);
        lu_put(task, out, sizeof out);
        put_timeouts(task);
    }
}

static enum scsi_command asked_command(const struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;
    uint8_t cdb[2] = {f->byte3, (uint8_t)f->requested_service_action};
    enum scsi_command c = scsi_command_find(cdb, 2);
    bool services = has_service_actions(task->lu, f->byte3);

    /* With option 3 the service action of a command without any has to be 0. */
    if (c < 0 || !lu_command(task->lu, c) || (services && f->requested_service_action > 0x1f) ||
        ((f->byte2 & 7) == 3 && !services && f->requested_service_action != 0))
        return SCSI_CMD_NONE;
    return c;
}

static void report_one(struct lu_task *task)
{
    enum scsi_command c = asked_command(task);
    uint8_t out[4 + 16] = {0};

    if (c == SCSI_CMD_NONE) {
        out[1] = NOT_SUPPORTED;
        lu_put(task, out, 4);
        return;
    }
    const struct scsi_command_info *info = scsi_command_info(c);
    out[1] = (uint8_t)(AS_STANDARD | (with_timeouts(task) ? 0x80 : 0));
    store_be16(out + 2, info->size);
    memcpy(out + 4, info->usage, info->size);
    lu_put(task, out, 4u + info->size);
    put_timeouts(task);
}

void lu_report_opcodes(struct lu_task *task)
{
    if ((task->fields.byte2 & 7) == 0)
        report_all(task);
    else
        report_one(task);
    lu_end_data(task);
}

/* ---- REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS; SPC-4 6.36 ---- */

void lu_check_report_tmf(struct lu_task *task)
{
    limit(task, 16);
    if (task->fields.length < 4)
        lu_refuse(task, scsi_sense_cdb_field(6, -1));
}

void lu_report_tmf(struct lu_task *task)
{
    uint8_t out[16] = {0};
    bool more = task->fields.byte2 & 0x80; /* REPD */
    bool level_2 = task->lu->opts.iscsi_protocol_level >= 2;

    out[0] = 0x80 | 0x40 | 0x10 | 0x08; /* ABORT TASK, ABORT and CLEAR TASK SET, LU RESET */
    if (level_2) {
        out[0] |= 0x04; /* QUERY TASK */
        out[1] = 0x07;  /* QUERY ASYNCHRONOUS EVENT, QUERY TASK SET, I_T NEXUS RESET */
    }
    out[3] = more ? 12 : 0;
    lu_put(task, out, more ? 16 : 4);
    lu_end_data(task);
}

/* ---- REPORT TARGET PORT GROUPS; SPC-4 6.37 ---- */

void lu_check_report_groups(struct lu_task *task)
{
    limit(task, 8 + (uint64_t)task->lu->port_count * 12);
}

static bool first_of_group(const struct lu *lu, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (lu->ports[k].group == lu->ports[i].group)
            return false;
    return true;
}

static void put_group(struct lu_task *task, uint16_t group)
{
    const struct lu *lu = task->lu;
    uint8_t out[8] = {SCSI_ALUA_OPTIMIZED, 0x01}; /* the only state there is */
    uint8_t port[4] = {0};

    store_be16(out + 2, group);
    for (unsigned i = 0; i < lu->port_count; i++)
        out[7] = (uint8_t)(out[7] + (lu->ports[i].group == group));
    lu_put(task, out, sizeof out);
    for (unsigned i = 0; i < lu->port_count; i++) {
        if (lu->ports[i].group != group)
            continue;
        store_be16(port + 2, lu->ports[i].relative_id);
        lu_put(task, port, sizeof port);
    }
}

void lu_report_groups(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    bool long_header = task->fields.flags & 0x20;
    uint8_t out[8] = {0};
    uint32_t n = 4 * lu->port_count + (long_header ? 4 : 0);

    for (unsigned i = 0; i < lu->port_count; i++)
        n += first_of_group(lu, i) ? 8 : 0;
    store_be32(out, n);
    out[4] = 0x10; /* the extended format; no transition time is said */
    lu_put(task, out, long_header ? 8 : 4);
    for (unsigned i = 0; i < lu->port_count; i++)
        if (first_of_group(lu, i))
            put_group(task, lu->ports[i].group);
    lu_end_data(task);
}

/* ---- REQUEST SENSE ---- */

void lu_check_request_sense(struct lu_task *task)
{
    limit(task, SCSI_SENSE_PACKED_MAX);
}

void lu_request_sense(struct lu_task *task)
{
    struct lu *lu = task->lu;
    uint8_t out[SCSI_SENSE_PACKED_MAX];
    uint16_t ua = lu_ua_take(task->nexus);
    struct scsi_sense s = scsi_sense_make(SCSI_KEY_NO_SENSE, SCSI_ASC_NONE);

    if (!lu->q)
        s = scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_LUN_NOT_SUPPORTED);
    else if (ua)
        s = scsi_sense_make(SCSI_KEY_UNIT_ATTENTION, ua);
    else if (lu->stopped)
        s = scsi_sense_make(SCSI_KEY_NOT_READY, SCSI_ASC_START_NEEDED);
    size_t n = scsi_sense_pack(&s, task->fields.flags & SCSI_CDB_DESC, out);
    lu_put(task, out, n);
    lu_end_data(task);
}

/* ---- small ones ---- */

void lu_good(struct lu_task *task)
{
    lu_end(task, SCSI_GOOD);
}

enum { START = 0x01, NO_FLUSH = 0x04 };

static void stop_flushed(struct lu_task *task, int status)
{
    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    task->lu->stopped = true;
    lu_end(task, SCSI_GOOD);
}

void lu_start_stop(struct lu_task *task)
{
    if (task->fields.byte4 & START) {
        task->lu->stopped = false;
        lu_end(task, SCSI_GOOD);
    } else if (task->fields.byte4 & NO_FLUSH) {
        stop_flushed(task, 0);
    } else {
        lu_io(task, LP_FLUSH, 0, 0, 0, NULL, 0, stop_flushed);
    }
}
