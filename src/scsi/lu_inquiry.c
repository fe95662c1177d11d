/* SPDX-License-Identifier: BSD-2-Clause */
/* INQUIRY and its VPD pages. */
#include "base/bytes.h"
#include "scsi/lu_int.h"

#include <stdio.h>
#include <string.h>

enum {
    NO_UNIT = 3, /* PERIPHERAL QUALIFIER: no logical unit can be here */
    IMPLICIT = 1,
    /* Version descriptors; SPC-4 6.6.2 table 141, RFC 7144 4.2. */
    SAM_5 = 0x00a0,
    SPC_4 = 0x0460,
    SBC_3 = 0x04c0,
    ISCSI = 0x0960,
};

static const uint8_t pages[] = {
    SCSI_VPD_SUPPORTED,        SCSI_VPD_SERIAL,       SCSI_VPD_DEVICE_ID,
    SCSI_VPD_EXTENDED_INQUIRY, SCSI_VPD_BLOCK_LIMITS, SCSI_VPD_BLOCK_CHARACTERISTICS,
    SCSI_VPD_PROVISIONING,
};

static struct scsi_vpd_pages supported(const struct lu *lu)
{
    struct scsi_vpd_pages set = {{0}};

    for (size_t i = 0; i < sizeof pages; i++)
        if (lu->q || pages[i] == SCSI_VPD_SUPPORTED)
            scsi_vpd_add(&set, pages[i]);
    return set;
}

void lu_check_inquiry(struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;
    struct scsi_vpd_pages set = supported(task->lu);
    bool evpd = f->flags & SCSI_CDB_EVPD;

    task->data_in_length = f->length < SCSI_VPD_MAX ? f->length : SCSI_VPD_MAX;
    if (evpd ? !scsi_vpd_has(&set, f->byte2) : f->byte2 != 0)
        lu_refuse(task, scsi_sense_cdb_field(2, -1));
}

static size_t standard(const struct lu *lu, uint8_t *out)
{
    struct scsi_inquiry q = {
        .device_type = SCSI_TYPE_DISK,
        .version = 6,
        .hisup = true,
        .cmdque = true,
        .tpgs = IMPLICIT,
        .descriptor_count = 4,
        .descriptors = {SAM_5, SPC_4, SBC_3, ISCSI},
    };

    if (lu->opts.iscsi_protocol_level > 0)
        q.descriptors[3] = (uint16_t)(ISCSI + lu->opts.iscsi_protocol_level);
    memcpy(q.vendor, lu->id.vendor, sizeof q.vendor);
    memcpy(q.product, lu->id.product, sizeof q.product);
    memcpy(q.revision, lu->id.revision, sizeof q.revision);
    if (!lu->q) {
        q.qualifier = NO_UNIT;
        q.device_type = SCSI_TYPE_UNKNOWN;
        q.tpgs = 0;
    }
    return scsi_inquiry_pack(&q, out);
}

static void add(uint8_t *out, size_t *at, uint8_t type, uint8_t association, uint8_t code_set,
                const void *bytes, size_t n)
{
    struct scsi_designator d = {.type = type,
                                .association = association,
                                .code_set = code_set,
                                .protocol_valid = association != SCSI_OF_LU,
                                .protocol = SCSI_PROTOCOL_ISCSI,
                                .length = (uint8_t)n,
                                .bytes = bytes};

    scsi_designator_pack(out, SCSI_VPD_MAX, at, &d);
}

/* A SCSI name string is ended by NUL and filled with NULs to a multiple of four. */
static void add_name(uint8_t *out, size_t *at, uint8_t association, const char *name)
{
    uint8_t padded[256] = {0};
    size_t n = strlen(name) + 1;

    if (n > 252)
        return;
    memcpy(padded, name, n);
    add(out, at, SCSI_DESIGNATOR_NAME, association, SCSI_CODE_UTF8, padded, (n + 3) / 4 * 4);
}

static size_t device_id(const struct lu_nexus *nexus, uint8_t *out)
{
    const struct lu_identity *id = &nexus->lu->id;
    char port_name[LU_INITIATOR_NAME_MAX + 16];
    uint8_t number[4] = {0};
    size_t at = SCSI_VPD_HEADER;

    add(out, &at, SCSI_DESIGNATOR_NAA, SCSI_OF_LU, SCSI_CODE_BINARY, id->naa, sizeof id->naa);
    add(out, &at, SCSI_DESIGNATOR_T10, SCSI_OF_LU, SCSI_CODE_ASCII, id->t10, strlen(id->t10));
    store_be16(number + 2, nexus->port.relative_id);
    add(out, &at, SCSI_DESIGNATOR_RELATIVE_PORT, SCSI_OF_PORT, SCSI_CODE_BINARY, number, 4);
    store_be16(number + 2, nexus->port.group);
    add(out, &at, SCSI_DESIGNATOR_PORT_GROUP, SCSI_OF_PORT, SCSI_CODE_BINARY, number, 4);
    if (id->target_name[0]) {
        /* RFC 7143 4.4.3: the target port's name is the target's and its portal group tag. */
        snprintf(port_name, sizeof port_name, "%s,t,0x%04x", id->target_name, nexus->port.group);
        add_name(out, &at, SCSI_OF_PORT, port_name);
        add_name(out, &at, SCSI_OF_TARGET, id->target_name);
    }
    return scsi_vpd_device_id_finish(out, at);
}

static size_t extended(const struct lu *lu, uint8_t *out)
{
    memset(out, 0, 64);
    out[1] = SCSI_VPD_EXTENDED_INQUIRY;
    out[3] = 60;
    out[5] = 0x07;                         /* HEADSUP, ORDSUP, SIMPSUP */
    out[6] = lu->opts.write_cache ? 1 : 0; /* V_SUP */
    return 64;
}

static size_t block_limits(const struct lu *lu, uint8_t *out)
{
    struct scsi_block_limits l = {
        .max_compare_and_write = LU_COMPARE_MAX,
        .granularity = (uint16_t)(1u << lu->opts.physical_exponent),
        .max_transfer = lu->opts.max_transfer_blocks,
        .optimal_transfer = (1u << 20) >> lu->shift,
        .max_write_same = LU_SAME_BLOCKS,
    };

    if (l.optimal_transfer > l.max_transfer)
        l.optimal_transfer = l.max_transfer;
    if (lu->thin) {
        l.max_unmap_blocks = LU_UNMAP_BLOCKS;
        l.max_unmap_descriptors = LU_UNMAP_DESCRIPTORS;
        l.unmap_granularity = 1u << lu->opts.physical_exponent;
        l.unmap_alignment_valid = true;
    }
    return scsi_block_limits_pack(&l, out);
}

static size_t vpd(const struct lu_nexus *nexus, uint8_t page, uint8_t *out)
{
    const struct lu *lu = nexus->lu;
    struct scsi_vpd_pages set = supported(lu);
    struct scsi_block_characteristics c = {.rotation_rate = lu->opts.rotational ? 0 : 1};
    struct scsi_provisioning p = {.lbpu = lu->thin,
                                  .lbpws = lu->lbprz,
                                  .lbpws10 = lu->lbprz,
                                  .lbprz = lu->lbprz ? 1 : 0,
                                  .type = lu->thin ? 2 : 0};

    switch (page) {
    case SCSI_VPD_SERIAL:
        return scsi_vpd_serial_pack(lu->id.serial, out);
    case SCSI_VPD_DEVICE_ID:
        return device_id(nexus, out);
    case SCSI_VPD_EXTENDED_INQUIRY:
        return extended(lu, out);
    case SCSI_VPD_BLOCK_LIMITS:
        return block_limits(lu, out);
    case SCSI_VPD_BLOCK_CHARACTERISTICS:
        return scsi_block_characteristics_pack(&c, out);
    case SCSI_VPD_PROVISIONING:
        return scsi_provisioning_pack(&p, out);
    default:
        return scsi_vpd_pages_pack(&set, lu->q ? SCSI_TYPE_DISK : NO_UNIT << 5 | SCSI_TYPE_UNKNOWN,
                                   out);
    }
}

void lu_inquiry(struct lu_task *task)
{
    uint8_t out[SCSI_VPD_MAX];
    bool evpd = task->fields.flags & SCSI_CDB_EVPD;
    size_t n = evpd ? vpd(task->nexus, task->fields.byte2, out) : standard(task->lu, out);

    lu_put(task, out, n);
    lu_end_data(task);
}
