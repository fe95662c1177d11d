/* SPDX-License-Identifier: BSD-2-Clause */
/* Capacities, mode pages, LUN lists, extents and port groups; pages.c has INQUIRY's. */
#include "base/bytes.h"
#include "scsi/pages.h"

#include <inttypes.h>
#include <string.h>

/* ---- READ CAPACITY ---- */

size_t scsi_capacity_10_pack(const struct scsi_capacity *c, uint8_t out[SCSI_CAPACITY_10_SIZE])
{
    store_be32(out, c->last_lba > UINT32_MAX ? UINT32_MAX : (uint32_t)c->last_lba);
    store_be32(out + 4, c->block_size);
    return SCSI_CAPACITY_10_SIZE;
}

size_t scsi_capacity_16_pack(const struct scsi_capacity *c, uint8_t out[SCSI_CAPACITY_16_SIZE])
{
    memset(out, 0, SCSI_CAPACITY_16_SIZE);
    store_be64(out, c->last_lba);
    store_be32(out + 8, c->block_size);
    out[12] = (uint8_t)((c->p_type & 7) << 1 | (c->prot_en ? 1 : 0));
    out[13] = c->physical_exponent & 0xf;
    store_be16(out + 14, (uint16_t)((c->lbpme ? 0x8000 : 0) | (c->lbprz ? 0x4000 : 0) |
                                    (c->lowest_aligned & 0x3fff)));
    return SCSI_CAPACITY_16_SIZE;
}

static int judge_capacity(const struct scsi_capacity *c, struct lp_error *err)
{
    uint32_t size = c->block_size;

    if (size < 512 || size > 65536 || (size & (size - 1)) != 0)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "the logical unit has blocks of %" PRIu32
                            " bytes; powers of two from 512 to 65536 can be used",
                            size);
    if (c->last_lba >= (uint64_t)INT64_MAX / size)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "the logical unit says its last block is %" PRIu64
                            ", which is more than 2^63 bytes",
                            c->last_lba);
    return 0;
}

int scsi_capacity_10_unpack(struct scsi_capacity *c, const uint8_t *b, size_t n,
                            struct lp_error *err)
{
    memset(c, 0, sizeof *c);
    if (n < SCSI_CAPACITY_10_SIZE)
        return lp_error_set(err, LP_ERROR_PEER, 0, "READ CAPACITY(10) gave %zu bytes instead of 8",
                            n);
    c->last_lba = load_be32(b);
    c->block_size = load_be32(b + 4);
    return judge_capacity(c, err);
}

int scsi_capacity_16_unpack(struct scsi_capacity *c, const uint8_t *b, size_t n,
                            struct lp_error *err)
{
    memset(c, 0, sizeof *c);
    if (n < 12)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "READ CAPACITY(16) gave %zu bytes; at least 12 are needed", n);
    c->last_lba = load_be64(b);
    c->block_size = load_be32(b + 8);
    if (n >= 14) {
        c->prot_en = (b[12] & 1) != 0;
        c->p_type = b[12] >> 1 & 7;
        c->physical_exponent = b[13] & 0xf;
    }
    if (n >= 16) {
        c->lbpme = (b[14] & 0x80) != 0;
        c->lbprz = (b[14] & 0x40) != 0;
        c->lowest_aligned = load_be16(b + 14) & 0x3fff;
    }
    return judge_capacity(c, err);
}

/* ---- mode pages ---- */

size_t scsi_mode_header_pack(const struct scsi_mode_header *h, bool ten, uint8_t *out)
{
    if (!ten) {
        out[0] = (uint8_t)(h->length - 1);
        out[1] = h->medium_type;
        out[2] = h->device_specific;
        out[3] = (uint8_t)h->descriptor_length;
        return SCSI_MODE_HEADER_6;
    }
    memset(out, 0, SCSI_MODE_HEADER_10);
    store_be16(out, (uint16_t)(h->length - 2));
    out[2] = h->medium_type;
    out[3] = h->device_specific;
    out[4] = h->long_lba ? 1 : 0;
    store_be16(out + 6, h->descriptor_length);
    return SCSI_MODE_HEADER_10;
}

int scsi_mode_header_unpack(struct scsi_mode_header *h, bool ten, const uint8_t *b, size_t n,
                            struct lp_error *err)
{
    memset(h, 0, sizeof *h);
    h->header_length = ten ? SCSI_MODE_HEADER_10 : SCSI_MODE_HEADER_6;
    if (n < h->header_length)
        return lp_error_set(err, LP_ERROR_PEER, 0, "MODE SENSE gave %zu bytes; its header has %zu",
                            n, h->header_length);
    h->length = ten ? (size_t)load_be16(b) + 2 : (size_t)b[0] + 1;
    h->medium_type = ten ? b[2] : b[1];
    h->device_specific = ten ? b[3] : b[2];
    h->long_lba = ten && (b[4] & 1) != 0;
    h->descriptor_length = ten ? load_be16(b + 6) : b[3];
    if (h->length > n)
        h->length = n;
    if (h->length < h->header_length || h->descriptor_length > h->length - h->header_length)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "MODE SENSE's block descriptors (%u bytes) run over its %zu bytes",
                            h->descriptor_length, h->length);
    return 0;
}

int scsi_mode_page_next(const uint8_t *bytes, size_t n, size_t *at, struct scsi_mode_page *page)
{
    if (*at >= n)
        return 0;
    const uint8_t *p = bytes + *at;
    size_t left = n - *at;
    bool sub = (p[0] & 0x40) != 0; /* SPF: the long form */
    if (left < (sub ? 4u : 2u))
        return -1;
    page->code = p[0] & 0x3f;
    page->subpage = sub ? p[1] : 0;
    page->saveable = (p[0] & 0x80) != 0;
    page->bytes = p;
    page->length = sub ? (size_t)load_be16(p + 2) + 4 : (size_t)p[1] + 2;
    if (page->length > left)
        return -1;
    *at += page->length;
    return 1;
}

int scsi_caching_unpack(struct scsi_caching *caching, const struct scsi_mode_page *page)
{
    if (page->code != SCSI_MODE_CACHING || page->subpage != 0 || page->length < 3)
        return -1;
    caching->wce = (page->bytes[2] & 4) != 0;
    caching->rcd = (page->bytes[2] & 1) != 0;
    return 0;
}

int scsi_control_unpack(struct scsi_control *control, const struct scsi_mode_page *page)
{
    if (page->code != SCSI_MODE_CONTROL || page->subpage != 0 || page->length < 6)
        return -1;
    control->tst = page->bytes[2] >> 5;
    control->d_sense = (page->bytes[2] & 4) != 0;
    control->queue_algorithm = page->bytes[3] >> 4;
    control->swp = (page->bytes[4] & 8) != 0;
    control->tas = (page->bytes[5] & 0x40) != 0;
    return 0;
}

/* ---- REPORT LUNS ---- */

int scsi_report_luns_unpack(const uint8_t *b, size_t n, const uint8_t **luns, size_t *count,
                            size_t *total, struct lp_error *err)
{
    *luns = NULL;
    *count = *total = 0;
    if (n < 8)
        return lp_error_set(err, LP_ERROR_PEER, 0, "REPORT LUNS gave %zu bytes; its header has 8",
                            n);
    *total = load_be32(b) / 8;
    *luns = b + 8;
    *count = (n - 8) / 8 < *total ? (n - 8) / 8 : *total;
    return 0;
}

/* ---- GET LBA STATUS ---- */

size_t scsi_lba_status_pack(const struct scsi_lba_extent *extents, size_t count, uint8_t *out)
{
    size_t n = SCSI_LBA_STATUS_HEADER + count * SCSI_LBA_EXTENT_SIZE;

    memset(out, 0, n);
    store_be32(out, (uint32_t)(n - 4));
    for (size_t i = 0; i < count; i++) {
        uint8_t *p = out + SCSI_LBA_STATUS_HEADER + i * SCSI_LBA_EXTENT_SIZE;
        store_be64(p, extents[i].lba);
        store_be32(p + 8, extents[i].blocks);
        p[12] = extents[i].status & 0xf;
    }
    return n;
}

int scsi_lba_status_unpack(struct scsi_lba_extent *extents, size_t max, size_t *count,
                           const uint8_t *b, size_t n, struct lp_error *err)
{
    *count = 0;
    if (n < SCSI_LBA_STATUS_HEADER)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "GET LBA STATUS gave %zu bytes; its header has 8", n);
    uint64_t length = (uint64_t)load_be32(b) + 4;
    if (length < n)
        n = (size_t)length;
    for (size_t at = SCSI_LBA_STATUS_HEADER; at + SCSI_LBA_EXTENT_SIZE <= n && *count < max;
         at += SCSI_LBA_EXTENT_SIZE) {
        struct scsi_lba_extent *e = &extents[(*count)++];
        e->lba = load_be64(b + at);
        e->blocks = load_be32(b + at + 8);
        e->status = b[at + 12] & 0xf;
    }
    return 0;
}

/* ---- REPORT TARGET PORT GROUPS ---- */

int scsi_port_group_next(const uint8_t *b, size_t n, size_t *at, struct scsi_port_group *g)
{
    if (n < 4)
        return -1;
    uint64_t length = (uint64_t)load_be32(b) + 4;
    if (length < n)
        n = (size_t)length;
    if (*at == 0) /* the extended format has four more bytes in its header */
        *at = n > 4 && (b[4] & 0x70) == 0x10 ? 8 : 4;
    if (*at >= n)
        return 0;
    const uint8_t *p = b + *at;
    size_t left = n - *at;
    if (left < 8 || left - 8 < (size_t)p[7] * 4)
        return -1;
    *g = (struct scsi_port_group){.preferred = (p[0] & 0x80) != 0,
                                  .state = p[0] & 0xf,
                                  .supported = p[1],
                                  .group = load_be16(p + 2),
                                  .reason = p[5],
                                  .port_count = p[7],
                                  .ports = p + 8};
    *at += 8 + (size_t)p[7] * 4;
    return 1;
}
