/* SPDX-License-Identifier: BSD-2-Clause */
#include "scsi/sense.h"
#include "base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FIXED_CURRENT = 0x70,
    DESCRIPTOR_CURRENT = 0x72,
    VALID = 0x80, /* byte 0 of the fixed format, byte 2 of descriptors */
    SKSV = 0x80,
    FIXED_SIZE = 18,
    DESCRIPTOR_HEADER = 8,
    /* Descriptor types; SPC-4 4.5.2.1. */
    INFORMATION = 0x00,
    COMMAND_SPECIFIC = 0x01,
    KEY_SPECIFIC = 0x02,
    STREAM_COMMANDS = 0x04,
    BLOCK_COMMANDS = 0x05,
};

struct scsi_sense scsi_sense_make(enum scsi_sense_key key, uint16_t asc)
{
    return (struct scsi_sense){
        .key = (uint8_t)key, .asc = (uint8_t)(asc >> 8), .ascq = (uint8_t)asc};
}

static struct scsi_sense field_error(uint16_t asc, bool in_cdb, unsigned byte, int bit)
{
    struct scsi_sense s = scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, asc);

    s.field_valid = true;
    s.field_in_cdb = in_cdb;
    s.field = (uint16_t)byte;
    s.bit_valid = bit >= 0;
    s.bit = bit >= 0 ? (uint8_t)(bit & 7) : 0;
    return s;
}

struct scsi_sense scsi_sense_cdb_field(unsigned byte, int bit)
{
    return field_error(SCSI_ASC_INVALID_FIELD_IN_CDB, true, byte, bit);
}

struct scsi_sense scsi_sense_parameter_field(unsigned byte, int bit)
{
    return field_error(SCSI_ASC_INVALID_FIELD_IN_PARAMETER_LIST, false, byte, bit);
}

/* The three SENSE KEY SPECIFIC bytes. */
static void put_key_specific(const struct scsi_sense *s, uint8_t *p)
{
    if (s->field_valid && s->key == SCSI_KEY_ILLEGAL_REQUEST) {
        p[0] = (uint8_t)(SKSV | (s->field_in_cdb ? 0x40 : 0) |
                         (s->bit_valid ? 0x08 | (s->bit & 7) : 0));
        store_be16(p + 1, s->field);
    } else if (s->progress_valid && (s->key == SCSI_KEY_NO_SENSE || s->key == SCSI_KEY_NOT_READY)) {
        p[0] = SKSV;
        store_be16(p + 1, s->progress);
    }
}

static void get_key_specific(struct scsi_sense *s, const uint8_t *p)
{
    if (!(p[0] & SKSV))
        return;
    if (s->key == SCSI_KEY_ILLEGAL_REQUEST) {
        s->field_valid = true;
        s->field_in_cdb = (p[0] & 0x40) != 0;
        s->bit_valid = (p[0] & 0x08) != 0;
        s->bit = s->bit_valid ? p[0] & 7 : 0;
        s->field = load_be16(p + 1);
    } else if (s->key == SCSI_KEY_NO_SENSE || s->key == SCSI_KEY_NOT_READY) {
        s->progress_valid = true;
        s->progress = load_be16(p + 1);
    }
}

static uint8_t stream_bits(const struct scsi_sense *s)
{
    return (uint8_t)((s->filemark ? 0x80 : 0) | (s->eom ? 0x40 : 0) | (s->ili ? 0x20 : 0));
}

static void get_stream_bits(struct scsi_sense *s, uint8_t bits)
{
    s->filemark = (bits & 0x80) != 0;
    s->eom = (bits & 0x40) != 0;
    s->ili = (bits & 0x20) != 0;
}

static size_t pack_fixed(const struct scsi_sense *s, uint8_t *out)
{
    out[0] = (uint8_t)(FIXED_CURRENT | (s->deferred ? 1 : 0));
    if (s->information_valid && s->information <= UINT32_MAX) {
        out[0] |= VALID;
        store_be32(out + 3, (uint32_t)s->information);
    }
    out[2] = (uint8_t)(stream_bits(s) | (s->key & 0xf));
    out[7] = FIXED_SIZE - 8;
    if (s->command_specific_valid && s->command_specific <= UINT32_MAX)
        store_be32(out + 8, (uint32_t)s->command_specific);
    out[12] = s->asc;
    out[13] = s->ascq;
    put_key_specific(s, out + 15);
    return FIXED_SIZE;
}

static size_t pack_descriptor(const struct scsi_sense *s, uint8_t *out)
{
    size_t n = DESCRIPTOR_HEADER;
    uint8_t specific[3] = {0};

    out[0] = (uint8_t)(DESCRIPTOR_CURRENT | (s->deferred ? 1 : 0));
    out[1] = s->key & 0xf;
    out[2] = s->asc;
    out[3] = s->ascq;
    if (s->information_valid) {
        out[n] = INFORMATION;
        out[n + 1] = 10;
        out[n + 2] = VALID;
        store_be64(out + n + 4, s->information);
        n += 12;
    }
    if (s->command_specific_valid) {
        out[n] = COMMAND_SPECIFIC;
        out[n + 1] = 10;
        store_be64(out + n + 4, s->command_specific);
        n += 12;
    }
    put_key_specific(s, specific);
    if (specific[0]) {
        out[n] = KEY_SPECIFIC;
        out[n + 1] = 6;
        memcpy(out + n + 4, specific, 3);
        n += 8;
    }
    if (stream_bits(s)) {
        out[n] = STREAM_COMMANDS;
        out[n + 1] = 2;
        out[n + 3] = stream_bits(s);
        n += 4;
    }
    out[7] = (uint8_t)(n - DESCRIPTOR_HEADER);
    return n;
}

size_t scsi_sense_pack(const struct scsi_sense *s, bool descriptor,
                       uint8_t out[SCSI_SENSE_PACKED_MAX])
{
    memset(out, 0, SCSI_SENSE_PACKED_MAX);
    return descriptor ? pack_descriptor(s, out) : pack_fixed(s, out);
}

static void unpack_fixed(struct scsi_sense *s, const uint8_t *bytes, size_t n)
{
    /* A sender may cut, and ADDITIONAL SENSE LENGTH says what of it means something. */
    if (n > 8 && (size_t)bytes[7] + 8 < n)
        n = (size_t)bytes[7] + 8;
    if (n > 2) {
        s->key = bytes[2] & 0xf;
        get_stream_bits(s, bytes[2]);
    }
    if (n >= 7 && (bytes[0] & VALID)) {
        s->information_valid = true;
        s->information = load_be32(bytes + 3);
    }
    if (n >= 12 && load_be32(bytes + 8) != 0) {
        s->command_specific_valid = true;
        s->command_specific = load_be32(bytes + 8);
    }
    if (n > 12)
        s->asc = bytes[12];
    if (n > 13)
        s->ascq = bytes[13];
    if (n >= FIXED_SIZE)
        get_key_specific(s, bytes + 15);
}

static void get_descriptor(struct scsi_sense *s, const uint8_t *d, size_t length)
{
    if (d[0] == INFORMATION && length >= 12) {
        s->information_valid = (d[2] & VALID) != 0;
        s->information = s->information_valid ? load_be64(d + 4) : 0;
    } else if (d[0] == COMMAND_SPECIFIC && length >= 12) {
        s->command_specific_valid = true;
        s->command_specific = load_be64(d + 4);
    } else if (d[0] == KEY_SPECIFIC && length >= 7) {
        get_key_specific(s, d + 4);
    } else if ((d[0] == STREAM_COMMANDS || d[0] == BLOCK_COMMANDS) && length >= 4) {
        get_stream_bits(s, d[3]);
    }
}

static void unpack_descriptor(struct scsi_sense *s, const uint8_t *bytes, size_t n)
{
    s->descriptor = true;
    s->key = n > 1 ? bytes[1] & 0xf : 0;
    s->asc = n > 2 ? bytes[2] : 0;
    s->ascq = n > 3 ? bytes[3] : 0;
    if (n < DESCRIPTOR_HEADER)
        return;
    if ((size_t)bytes[7] + DESCRIPTOR_HEADER < n)
        n = (size_t)bytes[7] + DESCRIPTOR_HEADER;
    for (size_t at = DESCRIPTOR_HEADER; at + 2 <= n;) {
        size_t length = (size_t)bytes[at + 1] + 2;
        if (length > n - at)
            return;
        get_descriptor(s, bytes + at, length);
        at += length;
    }
}

bool scsi_sense_unpack(struct scsi_sense *s, const uint8_t *bytes, size_t n)
{
    memset(s, 0, sizeof *s);
    if (n == 0)
        return false;
    uint8_t code = bytes[0] & 0x7f;
    if (code < FIXED_CURRENT || code > DESCRIPTOR_CURRENT + 1)
        return false;
    s->deferred = (code & 1) != 0;
    if (code >= DESCRIPTOR_CURRENT)
        unpack_descriptor(s, bytes, n);
    else
        unpack_fixed(s, bytes, n);
    return true;
}

char *scsi_sense_text(const struct scsi_sense *s, char *buf, size_t size)
{
    char key[32], asc[32], where[64] = "";

    if (s->field_valid && s->bit_valid)
        snprintf(where, sizeof where, ", %s byte %u bit %u",
                 s->field_in_cdb ? "CDB" : "parameter list", s->field, s->bit);
    else if (s->field_valid)
        snprintf(where, sizeof where, ", %s byte %u", s->field_in_cdb ? "CDB" : "parameter list",
                 s->field);
    else if (s->information_valid)
        snprintf(where, sizeof where, " at %" PRIu64, s->information);
    else if (s->progress_valid)
        snprintf(where, sizeof where, ", %u %% done", s->progress * 100u / 65536u);
    snprintf(buf, size, "%s%s: %s (%02x/%02x/%02x)%s", s->deferred ? "deferred " : "",
             scsi_key_name(s->key, key), scsi_asc_name(s->asc, s->ascq, asc), s->key, s->asc,
             s->ascq, where);
    return buf;
}
