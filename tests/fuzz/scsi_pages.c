/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a hostile target answers: sense data, INQUIRY and VPD pages, capacities, mode data and
 * lists, and the file of persistent reservations. The first byte says which parser. Nothing is read
 * beyond the end, every refusal has a sentence, and what was taken can be packed and taken again.
 */
#include "scsi/cdb.h"
#include "scsi/lu_int.h"
#include "scsi/lun.h"
#include "scsi/pages.h"
#include "scsi/sense.h"

#include <stdlib.h>
#include <string.h>

static void must(bool right)
{
    if (!right)
        abort();
}

static void judge(int r, const struct lp_error *err)
{
    must(r == 0 || (r == -1 && err->msg[0]));
}

static void sense(const uint8_t *b, size_t n)
{
    struct scsi_sense s, again;
    uint8_t out[SCSI_SENSE_PACKED_MAX];
    char text[256];

    if (!scsi_sense_unpack(&s, b, n))
        return;
    must(strlen(scsi_sense_text(&s, text, sizeof text)) > 0);
    size_t length = scsi_sense_pack(&s, true, out);
    must(length <= sizeof out && scsi_sense_unpack(&again, out, length));
    must(again.key == s.key && scsi_sense_asc(&again) == scsi_sense_asc(&s));
    must(again.information == s.information && again.field == s.field);
    must(scsi_sense_pack(&s, false, out) == 18);
}

static void inquiry(const uint8_t *b, size_t n)
{
    struct scsi_inquiry q;
    struct lp_error err = {0};
    uint8_t out[SCSI_INQUIRY_SIZE];

    judge(scsi_inquiry_unpack(&q, b, n, &err), &err);
    if (n >= 5)
        must(scsi_inquiry_pack(&q, out) == sizeof out);
}

static void vpd(const uint8_t *b, size_t n)
{
    struct scsi_vpd_pages pages;
    struct scsi_block_limits limits;
    struct scsi_block_characteristics characteristics;
    struct scsi_provisioning provisioning;
    struct scsi_designator d;
    struct lp_error err = {0};
    const uint8_t *body;
    size_t length, at = 0, sum = 0;
    char serial[17];

    judge(scsi_vpd_pages_unpack(&pages, b, n, &err), &err);
    judge(scsi_vpd_serial_unpack(serial, sizeof serial, b, n, &err), &err);
    must(strlen(serial) < sizeof serial);
    judge(scsi_block_limits_unpack(&limits, b, n, &err), &err);
    judge(scsi_block_characteristics_unpack(&characteristics, b, n, &err), &err);
    judge(scsi_provisioning_unpack(&provisioning, b, n, &err), &err);
    if (scsi_vpd_body(SCSI_VPD_DEVICE_ID, b, n, &body, &length, &err))
        return;
    while (scsi_designator_next(body, length, &at, &d))
        for (unsigned i = 0; i < d.length; i++)
            sum += d.bytes[i];
    must(at <= length && sum < SIZE_MAX);
}

static void capacity(const uint8_t *b, size_t n)
{
    struct scsi_capacity c;
    struct lp_error err = {0};

    judge(scsi_capacity_10_unpack(&c, b, n, &err), &err);
    int r = scsi_capacity_16_unpack(&c, b, n, &err);
    judge(r, &err);
    if (r == 0)
        must((c.last_lba + 1) * c.block_size / c.block_size == c.last_lba + 1);
}

static void mode(const uint8_t *b, size_t n)
{
    struct scsi_mode_header h;
    struct scsi_mode_page page;
    struct scsi_caching caching;
    struct scsi_control control;
    struct lp_error err = {0};

    for (unsigned ten = 0; ten < 2; ten++) {
        if (scsi_mode_header_unpack(&h, ten, b, n, &err))
            continue;
        size_t at = h.header_length + h.descriptor_length;
        while (scsi_mode_page_next(b, h.length, &at, &page) > 0) {
            must(page.bytes + page.length <= b + n);
            scsi_caching_unpack(&caching, &page);
            scsi_control_unpack(&control, &page);
        }
    }
}

static void lists(const uint8_t *b, size_t n)
{
    struct scsi_lba_extent extents[4];
    struct scsi_port_group g;
    struct lp_error err = {0};
    const uint8_t *luns;
    size_t count, total, at = 0;
    char text[SCSI_LUN_TEXT];
    uint8_t again[SCSI_LUN_SIZE];

    judge(scsi_report_luns_unpack(b, n, &luns, &count, &total, &err), &err);
    for (size_t i = 0; i < count; i++) {
        must(scsi_lun_parse(scsi_lun_format(luns + 8 * i, text), again, &err) == 0);
        must(memcmp(again, luns + 8 * i, 8) == 0);
    }
    judge(scsi_lba_status_unpack(extents, 4, &count, b, n, &err), &err);
    must(count <= 4);
    while (scsi_port_group_next(b, n, &at, &g) > 0)
        must(g.ports + 4 * g.port_count <= b + n);
}

static void cdb(const uint8_t *b, size_t n)
{
    struct scsi_cdb f, again;
    uint8_t out[SCSI_CDB_MAX];
    int bit;

    if (n == 0 || scsi_cdb_parse(&f, b, n) != 0)
        return;
    if (scsi_cdb_bad_bit(f.command, b, &bit) >= 0)
        return;
    size_t size = scsi_cdb_build(&f, out);
    must(size == scsi_command_info(f.command)->size);
    must(scsi_cdb_parse(&again, out, size) == 0);
    must(again.lba == f.lba && again.length == f.length && again.flags == f.flags);
}

static void reservations(const uint8_t *b, size_t n)
{
    struct lu_pr *pr = malloc(sizeof *pr);
    struct lp_error err = {0};
    char name[LU_PORT_NAME_MAX];

    if (pr)
        judge(lu_pr_parse(pr, (const char *)b, n, &err), &err);
    free(pr);
    if (lu_transport_id_unpack(b, n, name) == 0)
        must(strlen(name) < sizeof name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const uint8_t *, size_t) = {sense, inquiry, vpd, capacity,
                                                               mode,  lists,   cdb, reservations};

    if (size == 0)
        return 0;
    uint8_t *copy = malloc(size); /* of its own, so that the byte behind is not ours */
    if (!copy)
        return 0;
    memcpy(copy, data + 1, size - 1);
    copy = realloc(copy, size - 1 ? size - 1 : 1);
    parsers[data[0] % 8](copy, size - 1);
    free(copy);
    return 0;
}
