/* SPDX-License-Identifier: BSD-2-Clause */
/* Additional header segments, RFC 7143 11.2.2. AHSLength counts from the fourth byte on, which is
 * reserved in both types, and leaves padding out. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "iscsi/pdu.h"

enum { AHS_HEAD = 3, BIDI_LENGTH = 5 };

static size_t round_up4(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

static int segment_unpack(uint8_t type, const uint8_t *body, size_t length, struct iscsi_ahs *ahs,
                          bool *unknown)
{
    switch (type) {
    case ISCSI_AHS_EXTENDED_CDB:
        /* At least one byte beside the reserved one, else the CDB fits the BHS (11.2.2.3). */
        if (ahs->extended_cdb || length < 2 || length - 1 > sizeof(ahs->cdb_rest))
            return -1;
        ahs->extended_cdb = true;
        ahs->cdb_rest_length = (uint16_t)(length - 1);
        memcpy(ahs->cdb_rest, body + 1, length - 1);
        return 0;
    case ISCSI_AHS_BIDI_READ_LENGTH:
        if (ahs->bidi || length != BIDI_LENGTH)
            return -1;
        ahs->bidi = true;
        ahs->bidi_read_length = load_be32(body + 1);
        return 0;
    default:
        *unknown = true;
        return 0;
    }
}

int iscsi_ahs_unpack(const uint8_t *bytes, size_t n, struct iscsi_ahs *ahs, bool *unknown)
{
    size_t at = 0;

    memset(ahs, 0, sizeof(*ahs));
    *unknown = false;
    while (at < n) {
        size_t length, whole;

        if (n - at < AHS_HEAD + 1)
            return -1;
        length = load_be16(bytes + at);
        whole = round_up4(AHS_HEAD + length);
        if (length == 0 || whole > n - at)
            return -1;
        if (segment_unpack(bytes[at + 2] & 0x3f, bytes + at + AHS_HEAD, length, ahs, unknown) < 0)
            return -1;
        at += whole;
    }
    return 0;
}

/* Head, reserved byte, body and padding; returns the length of all that. */
static size_t segment_pack(uint8_t *bytes, uint8_t type, const void *body, size_t length)
{
    size_t whole = round_up4(AHS_HEAD + 1 + length);

    memset(bytes, 0, whole);
    store_be16(bytes, (uint16_t)(1 + length));
    bytes[2] = type;
    memcpy(bytes + AHS_HEAD + 1, body, length);
    return whole;
}

size_t iscsi_ahs_pack(uint8_t *bytes, const struct iscsi_ahs *ahs)
{
    uint8_t read_length[BIDI_LENGTH - 1];
    size_t n = 0;

    assert(ahs->cdb_rest_length <= sizeof(ahs->cdb_rest));
    if (ahs->extended_cdb)
        n = segment_pack(bytes, ISCSI_AHS_EXTENDED_CDB, ahs->cdb_rest, ahs->cdb_rest_length);
    if (ahs->bidi) {
        store_be32(read_length, ahs->bidi_read_length);
        n += segment_pack(bytes + n, ISCSI_AHS_BIDI_READ_LENGTH, read_length, sizeof(read_length));
    }
    return n;
}
