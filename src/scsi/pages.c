/* SPDX-License-Identifier: BSD-2-Clause */
#include "scsi/pages.h"
#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

/* ---- text fields ---- */

/* Left-aligned, filled with blanks. */
static void put_text(uint8_t *out, size_t size, const char *text)
{
    size_t n = strlen(text);

    memset(out, ' ', size);
    memcpy(out, text, n < size ? n : size);
}

/* Into text[size + 1]: what cannot be printed becomes '?', blanks at both ends go. */
static void get_text(char *text, const uint8_t *in, size_t size)
{
    size_t from = 0, n = size;

    while (n > 0 && (in[n - 1] == ' ' || in[n - 1] == 0))
        n--;
    while (from < n && in[from] == ' ')
        from++;
    for (size_t i = from; i < n; i++)
        text[i - from] = in[i] >= 0x20 && in[i] < 0x7f ? (char)in[i] : '?';
    text[n - from] = 0;
}

/* ---- standard INQUIRY data ---- */

size_t scsi_inquiry_pack(const struct scsi_inquiry *q, uint8_t out[SCSI_INQUIRY_SIZE])
{
    memset(out, 0, SCSI_INQUIRY_SIZE);
    out[0] = (uint8_t)(q->qualifier << 5 | (q->device_type & 0x1f));
    out[1] = q->removable ? 0x80 : 0;
    out[2] = q->version;
    out[3] = (uint8_t)((q->hisup ? 0x10 : 0) | 2); /* RESPONSE DATA FORMAT */
    out[4] = SCSI_INQUIRY_SIZE - 5;
    out[5] = (uint8_t)((q->tpgs & 3) << 4 | (q->third_party_copy ? 8 : 0) | (q->protect ? 1 : 0));
    out[7] = q->cmdque ? 2 : 0;
    put_text(out + 8, 8, q->vendor);
    put_text(out + 16, 16, q->product);
    put_text(out + 32, 4, q->revision);
    for (unsigned i = 0; i < q->descriptor_count && i < SCSI_VERSION_DESCRIPTORS; i++)
        store_be16(out + 58 + 2 * (size_t)i, q->descriptors[i]);
    return SCSI_INQUIRY_SIZE;
}

int scsi_inquiry_unpack(struct scsi_inquiry *q, const uint8_t *b, size_t n, struct lp_error *err)
{
    memset(q, 0, sizeof *q);
    if (n < 5)
        return lp_error_set(err, LP_ERROR_PEER, 0, "the INQUIRY data has only %zu bytes", n);
    if ((size_t)b[4] + 5 < n)
        n = (size_t)b[4] + 5;
    q->qualifier = b[0] >> 5;
    q->device_type = b[0] & 0x1f;
    q->removable = (b[1] & 0x80) != 0;
    q->version = b[2];
    q->hisup = (b[3] & 0x10) != 0;
    if (n > 5) {
        q->tpgs = b[5] >> 4 & 3;
        q->third_party_copy = (b[5] & 8) != 0;
        q->protect = (b[5] & 1) != 0;
    }
    if (n > 7)
        q->cmdque = (b[7] & 2) != 0;
    if (n >= 16)
        get_text(q->vendor, b + 8, 8);
    if (n >= 32)
        get_text(q->product, b + 16, 16);
    if (n >= 36)
        get_text(q->revision, b + 32, 4);
    for (size_t at = 58; at + 2 <= n && q->descriptor_count < SCSI_VERSION_DESCRIPTORS; at += 2) {
        uint16_t descriptor = load_be16(b + at);
        if (descriptor != 0)
            q->descriptors[q->descriptor_count++] = descriptor;
    }
    return 0;
}

/* ---- VPD ---- */

static size_t vpd_header(uint8_t *out, uint8_t page, size_t length)
{
    out[0] = SCSI_TYPE_DISK;
    out[1] = page;
    store_be16(out + 2, (uint16_t)length);
    return SCSI_VPD_HEADER + length;
}

int scsi_vpd_body(uint8_t page, const uint8_t *bytes, size_t n, const uint8_t **body,
                  size_t *length, struct lp_error *err)
{
    if (n < SCSI_VPD_HEADER)
        return lp_error_set(err, LP_ERROR_PEER, 0, "VPD page %02Xh has only %zu bytes", page, n);
    if (bytes[1] != page)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "VPD page %02Xh was asked for and page %02Xh came", page, bytes[1]);
    *length = load_be16(bytes + 2);
    *body = bytes + SCSI_VPD_HEADER;
    if (*length > n - SCSI_VPD_HEADER)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "VPD page %02Xh says it has %zu bytes, and %zu came", page, *length,
                            n - SCSI_VPD_HEADER);
    return 0;
}

size_t scsi_vpd_pages_pack(const struct scsi_vpd_pages *pages, uint8_t device_type,
                           uint8_t out[SCSI_VPD_PAGES_SIZE])
{
    size_t n = 0;

    for (unsigned page = 0; page < 256; page++)
        if (scsi_vpd_has(pages, (uint8_t)page))
            out[SCSI_VPD_HEADER + n++] = (uint8_t)page;
    n = vpd_header(out, SCSI_VPD_SUPPORTED, n);
    out[0] = device_type;
    return n;
}

int scsi_vpd_pages_unpack(struct scsi_vpd_pages *pages, const uint8_t *bytes, size_t n,
                          struct lp_error *err)
{
    const uint8_t *body;
    size_t length;

    memset(pages, 0, sizeof *pages);
    if (scsi_vpd_body(SCSI_VPD_SUPPORTED, bytes, n, &body, &length, err))
        return -1;
    for (size_t i = 0; i < length; i++)
        scsi_vpd_add(pages, body[i]);
    return 0;
}

size_t scsi_vpd_serial_pack(const char *text, uint8_t out[SCSI_VPD_HEADER + 252])
{
    size_t n = strlen(text);

    if (n > 252)
        n = 252;
    memcpy(out + SCSI_VPD_HEADER, text, n);
    return vpd_header(out, SCSI_VPD_SERIAL, n);
}

int scsi_vpd_serial_unpack(char *text, size_t size, const uint8_t *bytes, size_t n,
                           struct lp_error *err)
{
    const uint8_t *body;
    size_t length;

    text[0] = 0;
    if (scsi_vpd_body(SCSI_VPD_SERIAL, bytes, n, &body, &length, err))
        return -1;
    get_text(text, body, length < size - 1 ? length : size - 1);
    return 0;
}

/* ---- designators ---- */

bool scsi_designator_pack(uint8_t *out, size_t size, size_t *at, const struct scsi_designator *d)
{
    uint8_t *p = out + *at;

    if (size - *at < (size_t)d->length + 4)
        return false;
    p[0] = (uint8_t)((d->protocol_valid ? d->protocol << 4 : 0) | (d->code_set & 0xf));
    p[1] = (uint8_t)((d->protocol_valid ? 0x80 : 0) | (d->association & 3) << 4 | (d->type & 0xf));
    p[2] = 0;
    p[3] = d->length;
    memcpy(p + 4, d->bytes, d->length);
    *at += (size_t)d->length + 4;
    return true;
}

size_t scsi_vpd_device_id_finish(uint8_t *out, size_t at)
{
    return vpd_header(out, SCSI_VPD_DEVICE_ID, at - SCSI_VPD_HEADER);
}

bool scsi_designator_next(const uint8_t *body, size_t length, size_t *at, struct scsi_designator *d)
{
    if (*at > length || length - *at < 4)
        return false;
    const uint8_t *p = body + *at;
    if (p[3] > length - *at - 4)
        return false;
    *d = (struct scsi_designator){.type = p[1] & 0xf,
                                  .association = p[1] >> 4 & 3,
                                  .code_set = p[0] & 0xf,
                                  .protocol_valid = (p[1] & 0x80) != 0,
                                  .protocol = p[0] >> 4,
                                  .length = p[3],
                                  .bytes = p + 4};
    *at += (size_t)p[3] + 4;
    return true;
}

/* ---- B0h, B1h, B2h ---- */

size_t scsi_block_limits_pack(const struct scsi_block_limits *l,
                              uint8_t out[SCSI_BLOCK_LIMITS_SIZE])
{
    memset(out, 0, SCSI_BLOCK_LIMITS_SIZE);
    out[4] = l->wsnz ? 1 : 0;
    out[5] = l->max_compare_and_write;
    store_be16(out + 6, l->granularity);
    store_be32(out + 8, l->max_transfer);
    store_be32(out + 12, l->optimal_transfer);
    store_be32(out + 16, l->max_prefetch);
    store_be32(out + 20, l->max_unmap_blocks);
    store_be32(out + 24, l->max_unmap_descriptors);
    store_be32(out + 28, l->unmap_granularity);
    if (l->unmap_alignment_valid)
        store_be32(out + 32, 0x80000000u | l->unmap_alignment);
    store_be64(out + 36, l->max_write_same);
    return vpd_header(out, SCSI_VPD_BLOCK_LIMITS, SCSI_BLOCK_LIMITS_SIZE - SCSI_VPD_HEADER);
}

/* The page with zeros behind what came, so that short pages of older standards read as zero. */
static int padded_page(uint8_t page, size_t least, uint8_t *copy, size_t size, const uint8_t *bytes,
                       size_t n, struct lp_error *err)
{
    const uint8_t *body;
    size_t length;

    if (scsi_vpd_body(page, bytes, n, &body, &length, err))
        return -1;
    if (length < least)
        return lp_error_set(err, LP_ERROR_PEER, 0,
                            "VPD page %02Xh has %zu bytes, and at least %zu are needed", page,
                            length, least);
    memset(copy, 0, size);
    memcpy(copy + SCSI_VPD_HEADER, body,
           length < size - SCSI_VPD_HEADER ? length : size - SCSI_VPD_HEADER);
    return 0;
}

int scsi_block_limits_unpack(struct scsi_block_limits *l, const uint8_t *bytes, size_t n,
                             struct lp_error *err)
{
    uint8_t p[SCSI_BLOCK_LIMITS_SIZE];

    memset(l, 0, sizeof *l);
    if (padded_page(SCSI_VPD_BLOCK_LIMITS, 12, p, sizeof p, bytes, n, err))
        return -1;
    l->wsnz = (p[4] & 1) != 0;
    l->max_compare_and_write = p[5];
    l->granularity = load_be16(p + 6);
    l->max_transfer = load_be32(p + 8);
    l->optimal_transfer = load_be32(p + 12);
    l->max_prefetch = load_be32(p + 16);
    l->max_unmap_blocks = load_be32(p + 20);
    l->max_unmap_descriptors = load_be32(p + 24);
    l->unmap_granularity = load_be32(p + 28);
    l->unmap_alignment_valid = (p[32] & 0x80) != 0;
    l->unmap_alignment = l->unmap_alignment_valid ? load_be32(p + 32) & 0x7fffffff : 0;
    l->max_write_same = load_be64(p + 36);
    return 0;
}

size_t scsi_block_characteristics_pack(const struct scsi_block_characteristics *c,
                                       uint8_t out[SCSI_BLOCK_CHARACTERISTICS_SIZE])
{
    memset(out, 0, SCSI_BLOCK_CHARACTERISTICS_SIZE);
    store_be16(out + 4, c->rotation_rate);
    out[7] = c->form_factor & 0xf;
    out[8] = (uint8_t)((c->fuab ? 2 : 0) | (c->vbuls ? 1 : 0));
    return vpd_header(out, SCSI_VPD_BLOCK_CHARACTERISTICS,
                      SCSI_BLOCK_CHARACTERISTICS_SIZE - SCSI_VPD_HEADER);
}

int scsi_block_characteristics_unpack(struct scsi_block_characteristics *c, const uint8_t *bytes,
                                      size_t n, struct lp_error *err)
{
    uint8_t p[SCSI_BLOCK_CHARACTERISTICS_SIZE];

    memset(c, 0, sizeof *c);
    if (padded_page(SCSI_VPD_BLOCK_CHARACTERISTICS, 4, p, sizeof p, bytes, n, err))
        return -1;
    c->rotation_rate = load_be16(p + 4);
    c->form_factor = p[7] & 0xf;
    c->fuab = (p[8] & 2) != 0;
    c->vbuls = (p[8] & 1) != 0;
    return 0;
}

size_t scsi_provisioning_pack(const struct scsi_provisioning *v,
                              uint8_t out[SCSI_PROVISIONING_SIZE])
{
    memset(out, 0, SCSI_PROVISIONING_SIZE);
    out[4] = v->threshold_exponent;
    out[5] = (uint8_t)((v->lbpu ? 0x80 : 0) | (v->lbpws ? 0x40 : 0) | (v->lbpws10 ? 0x20 : 0) |
                       (v->lbprz & 7) << 2 | (v->anc_sup ? 2 : 0) | (v->dp ? 1 : 0));
    out[6] = v->type & 7;
    return vpd_header(out, SCSI_VPD_PROVISIONING, SCSI_PROVISIONING_SIZE - SCSI_VPD_HEADER);
}

int scsi_provisioning_unpack(struct scsi_provisioning *v, const uint8_t *bytes, size_t n,
                             struct lp_error *err)
{
    uint8_t p[SCSI_PROVISIONING_SIZE];

    memset(v, 0, sizeof *v);
    if (padded_page(SCSI_VPD_PROVISIONING, 2, p, sizeof p, bytes, n, err))
        return -1;
    v->threshold_exponent = p[4];
    v->lbpu = (p[5] & 0x80) != 0;
    v->lbpws = (p[5] & 0x40) != 0;
    v->lbpws10 = (p[5] & 0x20) != 0;
    v->lbprz = p[5] >> 2 & 7;
    v->anc_sup = (p[5] & 2) != 0;
    v->dp = (p[5] & 1) != 0;
    v->type = p[6] & 7;
    return 0;
}
