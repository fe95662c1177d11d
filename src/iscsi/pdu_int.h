/* SPDX-License-Identifier: BSD-2-Clause */
/* Bits of BHS bytes 0 to 3, and what pdu_initiator.c and pdu_target.c share. */
#ifndef ISCSI_PDU_INT_H
#define ISCSI_PDU_INT_H

#include <string.h>

#include "iscsi/pdu.h"

enum {
    BHS_OPCODE = 0x3f,
    BHS_IMMEDIATE = 0x40,
    BHS_FINAL = 0x80, /* F, or T in login PDUs */
    COMMAND_READ = 0x40,
    COMMAND_WRITE = 0x20,
    COMMAND_ATTR = 0x07,
    COMMAND_PRIORITY_SHIFT = 4, /* the upper half of byte 2, RFC 7144 5.1 */
    RESPONSE_BIDI_OVERFLOW = 0x10,
    RESPONSE_BIDI_UNDERFLOW = 0x08,
    RESPONSE_OVERFLOW = 0x04,
    RESPONSE_UNDERFLOW = 0x02,
    DATA_IN_ACKNOWLEDGE = 0x40,
    DATA_IN_STATUS = 0x01,
    TMF_FUNCTION = 0x7f,
    TEXT_MORE = 0x40, /* C */
    LOGOUT_REASON = 0x7f,
    SNACK_TYPE = 0x0f,
};

static inline uint8_t flag(bool set, unsigned bit)
{
    return set ? (uint8_t)bit : 0;
}

static inline uint8_t stages(unsigned csg, unsigned nsg)
{
    return (uint8_t)((csg & 3) << 2 | (nsg & 3));
}

static inline uint8_t csg_of(uint8_t byte)
{
    return byte >> 2 & 3;
}

static inline uint8_t nsg_of(uint8_t byte)
{
    return byte & 3;
}

static inline void request_begin(uint8_t bhs[ISCSI_BHS_SIZE], enum iscsi_opcode opcode,
                                 bool immediate)
{
    memset(bhs, 0, ISCSI_BHS_SIZE);
    bhs[0] = (uint8_t)(opcode | flag(immediate, BHS_IMMEDIATE));
}

static inline void response_begin(uint8_t bhs[ISCSI_BHS_SIZE], enum iscsi_opcode opcode)
{
    memset(bhs, 0, ISCSI_BHS_SIZE);
    bhs[0] = (uint8_t)opcode;
    bhs[1] = BHS_FINAL;
}

#endif
