/* SPDX-License-Identifier: BSD-2-Clause */
/* Additional header segments, RFC 7143 11.2.2. AHSLength counts from the fourth byte on, which is
 * reserved in both types, and leaves padding out. */
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

size_t iscsi_ahs_pack(uint8_t *bytes, const struct iscsi_ahs *ahs)
{
    size_t n = 0;

    memset(bytes, 0, ISCSI_AHS_MAX);
    if (ahs->extended_cdb) {
        store_be16(bytes, (uint16_t)(ahs->cdb_rest_length + 1));
        bytes[2] = ISCSI_AHS_EXTENDED_CDB;
        memcpy(bytes + 4, ahs->cdb_rest, ahs->cdb_rest_length);
        n = round_up4(AHS_HEAD + 1 + ahs->cdb_rest_length);
    }
    if (ahs->bidi) {
        store_be16(bytes + n, BIDI_LENGTH);
        bytes[n + 2] = ISCSI_AHS_BIDI_READ_LENGTH;
        store_be32(bytes + n + 4, ahs->bidi_read_length);
        n += AHS_HEAD + BIDI_LENGTH;
    }
    return n;
}
