/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/crc32c.h"

#ifdef LP_HAVE_ISAL
#include <isa-l/crc.h>
#include <limits.h>

uint32_t crc32c_add(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;

    while (n > 0) {
        int piece = n > INT_MAX ? INT_MAX : (int)n;

        /* ISA-L takes its input without const and does not write to it. */
        crc = crc32_iscsi((unsigned char *)p, piece, crc);
        p += piece;
        n -= (size_t)piece;
    }
    return crc;
}
#else
uint32_t crc32c_add(uint32_t crc, const void *bytes, size_t n)
{
    return crc32c_add_table(crc, bytes, n);
}
#endif

/* What one nibble does to the remainder: the reversed polynomial 82f63b78h shifted out bit by bit.
 */
static const uint32_t nibble[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_add_table(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return crc;
}

void crc32c_end(uint32_t crc, uint8_t digest[4])
{
    crc = ~crc;
    for (int i = 0; i < 4; i++)
        digest[i] = (uint8_t)(crc >> (8 * i)); /* least significant byte first, 7143 13.1 */
}
