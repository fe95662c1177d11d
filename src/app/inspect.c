/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "scsi/cdb.h"

enum { BUFFER = 4096, VPD_ALLOCATION = 1024 };

/* Asks for data; how many bytes came, or 0, and then why stands in the facts. */
static size_t ask(struct facts *f, struct lun_link *l, const struct scsi_cdb *cdb,
                  uint8_t bytes[BUFFER])
{
    struct link_command c = {0};
    struct iovec iov = {bytes, cdb->length};
    uint8_t packed[SCSI_CDB_MAX];
    size_t n = scsi_cdb_build(cdb, packed);
    char text[160] = "";

    memset(bytes, 0, BUFFER);
    memcpy(c.task.cdb, packed, n < sizeof(c.task.cdb) ? n : sizeof(c.task.cdb));
    c.task.cdb_length = (uint16_t)n;
    c.task.lun = load_be64(l->url.lun);
    c.task.attr = ISCSI_ATTR_SIMPLE;
    c.task.direction = INI_READ;
    c.task.iov = &iov;
    c.task.iov_count = 1;
    c.task.length = cdb->length;
    if (link_run(l->link, &c) == 0)
        return c.transferred;
    if (c.has_sense)
        scsi_sense_text(&c.sense, text, sizeof(text));
    facts_text(f, "refused", "%s", *text ? text : strerror(-c.status));
    return 0;
}

static void malformed(struct facts *f, const struct lp_error *err)
{
    facts_text(f, "malformed", "%s", err->msg);
}

void inspect_inquiry(struct facts *f, struct lun_link *l)
{
    const struct scsi_cdb cdb = {.command = SCSI_CMD_INQUIRY, .length = SCSI_INQUIRY_SIZE};
    uint8_t bytes[BUFFER];
    struct scsi_inquiry q;
    struct lp_error err;

    facts_group(f, "INQUIRY");
    size_t n = ask(f, l, &cdb, bytes);
    if (n && scsi_inquiry_unpack(&q, bytes, n, &err) < 0) {
        malformed(f, &err);
    } else if (n) {
        facts_text(f, "vendor", "%s", q.vendor);
        facts_text(f, "product", "%s", q.product);
        facts_text(f, "revision", "%s", q.revision);
        facts_number(f, "device type", q.device_type);
        facts_number(f, "version", q.version);
        facts_bool(f, "removable", q.removable);
        facts_bool(f, "command queuing", q.cmdque);
        facts_bool(f, "protection information", q.protect);
        facts_bool(f, "third-party copy", q.third_party_copy);
        facts_number(f, "TPGS", q.tpgs);
        facts_list(f, "version descriptors");
        for (unsigned i = 0; i < q.descriptor_count; i++)
            facts_text(f, NULL, "%04Xh", q.descriptors[i]);
        facts_end(f);
    }
    facts_end(f);
}

/* ---- VPD pages ---- */

static const char *designator_kind(uint8_t type)
{
    static const char *const kinds[] = {
        [SCSI_DESIGNATOR_VENDOR] = "vendor",
        [SCSI_DESIGNATOR_T10] = "T10",
        [SCSI_DESIGNATOR_EUI64] = "EUI-64",
        [SCSI_DESIGNATOR_NAA] = "NAA",
        [SCSI_DESIGNATOR_RELATIVE_PORT] = "relative port",
        [SCSI_DESIGNATOR_PORT_GROUP] = "port group",
        [SCSI_DESIGNATOR_LU_GROUP] = "logical unit group",
        [SCSI_DESIGNATOR_MD5] = "MD5",
        [SCSI_DESIGNATOR_NAME] = "SCSI name",
    };

    return type < sizeof(kinds) / sizeof(*kinds) ? kinds[type] : "unknown";
}

static void add_serial(struct facts *f, const uint8_t *bytes, size_t n)
{
    char serial[256];
    struct lp_error err;

    if (scsi_vpd_serial_unpack(serial, sizeof(serial), bytes, n, &err) < 0)
        malformed(f, &err);
    else
        facts_text(f, "serial number", "%s", serial);
}

static void add_designators(struct facts *f, const uint8_t *bytes, size_t n)
{
    static const char *const whose[] = {"logical unit", "target port", "target", "reserved"};
    struct scsi_designator d;
    const uint8_t *body;
    size_t length, at = 0;
    struct lp_error err;

    if (scsi_vpd_body(0x83, bytes, n, &body, &length, &err) < 0) {
        malformed(f, &err);
        return;
    }
    facts_list(f, "designators");
    while (scsi_designator_next(body, length, &at, &d)) {
        facts_group(f, NULL);
        facts_text(f, "of", "%s", whose[d.association & 3]);
        facts_text(f, "type", "%s", designator_kind(d.type));
        if (d.code_set == SCSI_CODE_BINARY)
            facts_bytes(f, "value", d.bytes, d.length);
        else
            facts_text(f, "value", "%.*s", (int)d.length, (const char *)d.bytes);
        facts_end(f);
    }
    facts_end(f);
}

static void add_limits(struct facts *f, const uint8_t *bytes, size_t n)
{
    struct scsi_block_limits b;
    struct lp_error err;

    if (scsi_block_limits_unpack(&b, bytes, n, &err) < 0) {
        malformed(f, &err);
        return;
    }
    facts_number(f, "maximum transfer, blocks", b.max_transfer);
    facts_number(f, "optimal transfer, blocks", b.optimal_transfer);
    facts_number(f, "optimal granularity, blocks", b.granularity);
    facts_number(f, "maximum COMPARE AND WRITE, blocks", b.max_compare_and_write);
    facts_number(f, "maximum prefetch, blocks", b.max_prefetch);
    facts_number(f, "maximum UNMAP, blocks", b.max_unmap_blocks);
    facts_number(f, "maximum UNMAP descriptors", b.max_unmap_descriptors);
    facts_number(f, "UNMAP granularity, blocks", b.unmap_granularity);
    if (b.unmap_alignment_valid)
        facts_number(f, "UNMAP alignment, blocks", b.unmap_alignment);
    facts_number(f, "maximum WRITE SAME, blocks", b.max_write_same);
    facts_bool(f, "WRITE SAME must have a count", b.wsnz);
}

static void add_characteristics(struct facts *f, const uint8_t *bytes, size_t n)
{
    struct scsi_block_characteristics c;
    struct lp_error err;

    if (scsi_block_characteristics_unpack(&c, bytes, n, &err) < 0) {
        malformed(f, &err);
        return;
    }
    if (c.rotation_rate > 1)
        facts_number(f, "rotations a minute", c.rotation_rate);
    else
        facts_text(f, "rotation", c.rotation_rate == 1 ? "none" : "not told");
    facts_number(f, "form factor", c.form_factor);
}

static void add_provisioning(struct facts *f, const uint8_t *bytes, size_t n)
{
    static const char *const types[] = {"not told", "resource", "thin"};
    struct scsi_provisioning p;
    struct lp_error err;

    if (scsi_provisioning_unpack(&p, bytes, n, &err) < 0) {
        malformed(f, &err);
        return;
    }
    facts_text(f, "type", "%s", p.type < 3 ? types[p.type] : "unknown");
    facts_bool(f, "UNMAP", p.lbpu);
    facts_bool(f, "WRITE SAME(16) with UNMAP", p.lbpws);
    facts_bool(f, "WRITE SAME(10) with UNMAP", p.lbpws10);
    facts_number(f, "LBPRZ", p.lbprz);
    facts_bool(f, "anchors", p.anc_sup);
}

static const struct page {
    uint8_t code;
    const char *name;
    void (*add)(struct facts *f, const uint8_t *bytes, size_t n);
} pages_known[] = {
    {0x80, "unit serial number", add_serial},
    {0x83, "device identification", add_designators},
    {0xb0, "block limits", add_limits},
    {0xb1, "block device characteristics", add_characteristics},
    {0xb2, "logical block provisioning", add_provisioning},
};

static const struct page *page_known(unsigned code)
{
    for (size_t i = 0; i < sizeof(pages_known) / sizeof(*pages_known); i++)
        if (pages_known[i].code == code)
            return &pages_known[i];
    return NULL;
}

static void add_raw(struct facts *f, const uint8_t *bytes, size_t n)
{
    size_t length = n < SCSI_VPD_HEADER ? 0 : (size_t)load_be16(bytes + 2) + SCSI_VPD_HEADER;

    facts_bytes(f, "bytes", bytes, length < n ? length : n);
}

void inspect_vpd(struct facts *f, struct lun_link *l, const struct scsi_vpd_pages *pages)
{
    uint8_t bytes[BUFFER];

    facts_list(f, "VPD pages");
    for (unsigned code = 0; code < 256; code++) {
        const struct page *page = page_known(code);
        struct scsi_cdb cdb = {.command = SCSI_CMD_INQUIRY,
                               .flags = SCSI_CDB_EVPD,
                               .byte2 = (uint8_t)code,
                               .length = VPD_ALLOCATION};

        if (!scsi_vpd_has(pages, (uint8_t)code))
            continue;
        facts_group(f, NULL);
        facts_text(f, "page", "%02Xh", code);
        if (page)
            facts_text(f, "name", "%s", page->name);
        size_t n = ask(f, l, &cdb, bytes);
        if (n && page)
            page->add(f, bytes, n);
        else if (n)
            add_raw(f, bytes, n);
        facts_end(f);
    }
    facts_end(f);
}

/* ---- capacity and modes ---- */

void inspect_capacity(struct facts *f, const struct lun_info *info)
{
    const struct scsi_capacity *c = &info->capacity;

    facts_group(f, "capacity");
    facts_number(f, "blocks", c->last_lba + 1);
    facts_number(f, "block size", c->block_size);
    facts_number(f, "physical block size", (uint64_t)c->block_size << c->physical_exponent);
    facts_number(f, "lowest aligned block", c->lowest_aligned);
    facts_bool(f, "thin (LBPME)", c->lbpme);
    facts_bool(f, "unmapped blocks read as zeros (LBPRZ)", c->lbprz);
    facts_bool(f, "protection information", c->prot_en);
    facts_end(f);
}

static void add_mode_page(struct facts *f, const struct scsi_mode_page *page)
{
    struct scsi_caching caching;
    struct scsi_control control;

    facts_group(f, NULL);
    facts_text(f, "page", page->subpage ? "%02Xh/%02Xh" : "%02Xh", page->code, page->subpage);
    if (page->code == 0x08 && !page->subpage && scsi_caching_unpack(&caching, page) == 0) {
        facts_text(f, "name", "caching");
        facts_bool(f, "write cache (WCE)", caching.wce);
        facts_bool(f, "read cache off (RCD)", caching.rcd);
    } else if (page->code == 0x0a && !page->subpage && scsi_control_unpack(&control, page) == 0) {
        facts_text(f, "name", "control");
        facts_number(f, "task set type (TST)", control.tst);
        facts_bool(f, "descriptor sense (D_SENSE)", control.d_sense);
        facts_bool(f, "software write protect (SWP)", control.swp);
        facts_bool(f, "task aborted status (TAS)", control.tas);
        facts_number(f, "queue algorithm", control.queue_algorithm);
    }
    facts_bytes(f, "bytes", page->bytes, page->length);
    facts_end(f);
}

void inspect_modes(struct facts *f, struct lun_link *l)
{
    const struct scsi_cdb cdb = {
        .command = SCSI_CMD_MODE_SENSE_10, .byte2 = 0x3f, .byte3 = 0xff, .length = 2048};
    uint8_t bytes[BUFFER];
    struct scsi_mode_header header;
    struct scsi_mode_page page;
    struct lp_error err;

    facts_list(f, "mode pages");
    facts_group(f, NULL);
    size_t n = ask(f, l, &cdb, bytes), at;
    if (n && scsi_mode_header_unpack(&header, true, bytes, n, &err) < 0) {
        malformed(f, &err);
        n = 0;
    }
    if (n) {
        facts_text(f, "page", "header");
        facts_bool(f, "write-protected", header.device_specific & SCSI_MODE_WP);
        facts_bool(f, "DPO and FUA", header.device_specific & SCSI_MODE_DPOFUA);
    }
    facts_end(f);
    at = n ? header.header_length + header.descriptor_length : 0;
    while (n && at <= header.length && scsi_mode_page_next(bytes, header.length, &at, &page) == 1)
        add_mode_page(f, &page);
    facts_end(f);
}
