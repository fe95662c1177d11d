/* SPDX-License-Identifier: BSD-2-Clause */
/* Serial number arithmetic on 32 bits (RFC 1982), as CmdSN, ExpCmdSN and MaxCmdSN compare
 * (RFC 7143 4.2.2.1). For two numbers exactly 2^31 apart neither is less. */
#ifndef BASE_SERIAL_H
#define BASE_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

static inline bool serial_lt(uint32_t a, uint32_t b)
{
    return a != b && (b - a) < 0x80000000u;
}

static inline bool serial_le(uint32_t a, uint32_t b)
{
    return a == b || serial_lt(a, b);
}

#endif
