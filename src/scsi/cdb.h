/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command descriptor blocks: one table of all commands, with the place of each field. The same
 * table builds CDBs, takes them apart, and answers REPORT SUPPORTED OPERATION CODES.
 *
 *     uint8_t cdb[SCSI_CDB_MAX];
 *     size_t n = scsi_cdb_build(&(struct scsi_cdb){.command = SCSI_CMD_READ_16, .lba = 8,
 *                                                  .length = 1, .flags = SCSI_CDB_FUA}, cdb);
 */
#ifndef SCSI_CDB_H
#define SCSI_CDB_H

#include "scsi/scsi.h"

enum { SCSI_CDB_MAX = 32 };

/* Index into the table: an op code, with its service action where it has one. In the order of op
 * code and service action. */
enum scsi_command {
    SCSI_CMD_TEST_UNIT_READY,
    SCSI_CMD_REQUEST_SENSE,
    SCSI_CMD_READ_6,
    SCSI_CMD_WRITE_6,
    SCSI_CMD_INQUIRY,
    SCSI_CMD_MODE_SELECT_6,
    SCSI_CMD_RESERVE_6,
    SCSI_CMD_RELEASE_6,
    SCSI_CMD_MODE_SENSE_6,
    SCSI_CMD_START_STOP_UNIT,
    SCSI_CMD_SEND_DIAGNOSTIC,
    SCSI_CMD_PREVENT_ALLOW,
    SCSI_CMD_READ_CAPACITY_10,
    SCSI_CMD_READ_10,
    SCSI_CMD_WRITE_10,
    SCSI_CMD_WRITE_AND_VERIFY_10,
    SCSI_CMD_VERIFY_10,
    SCSI_CMD_PREFETCH_10,
    SCSI_CMD_SYNCHRONIZE_CACHE_10,
    SCSI_CMD_WRITE_SAME_10,
    SCSI_CMD_UNMAP,
    SCSI_CMD_MODE_SELECT_10,
    SCSI_CMD_MODE_SENSE_10,
    SCSI_CMD_PR_READ_KEYS,
    SCSI_CMD_PR_READ_RESERVATION,
    SCSI_CMD_PR_REPORT_CAPABILITIES,
    SCSI_CMD_PR_READ_FULL_STATUS,
    SCSI_CMD_PR_REGISTER,
    SCSI_CMD_PR_RESERVE,
    SCSI_CMD_PR_RELEASE,
    SCSI_CMD_PR_CLEAR,
    SCSI_CMD_PR_PREEMPT,
    SCSI_CMD_PR_PREEMPT_AND_ABORT,
    SCSI_CMD_PR_REGISTER_AND_IGNORE,
    SCSI_CMD_PR_REGISTER_AND_MOVE,
    SCSI_CMD_READ_16,
    SCSI_CMD_COMPARE_AND_WRITE,
    SCSI_CMD_WRITE_16,
    SCSI_CMD_WRITE_AND_VERIFY_16,
    SCSI_CMD_VERIFY_16,
    SCSI_CMD_PREFETCH_16,
    SCSI_CMD_SYNCHRONIZE_CACHE_16,
    SCSI_CMD_WRITE_SAME_16,
    SCSI_CMD_READ_CAPACITY_16,
    SCSI_CMD_GET_LBA_STATUS,
    SCSI_CMD_REPORT_LUNS,
    SCSI_CMD_REPORT_TARGET_PORT_GROUPS,
    SCSI_CMD_REPORT_SUPPORTED_OPCODES,
    SCSI_CMD_REPORT_SUPPORTED_TMF,
    SCSI_CMD_READ_12,
    SCSI_CMD_WRITE_12,
    SCSI_CMD_WRITE_AND_VERIFY_12,
    SCSI_CMD_VERIFY_12,
    SCSI_CMD_COUNT,
    SCSI_CMD_NONE = -1,       /* unknown op code */
    SCSI_CMD_NO_SERVICE = -2, /* known op code, unknown service action */
};

/* Bits of byte 1, as far as the command has them. */
enum {
    SCSI_CDB_PROTECT = 0xe0, /* RDPROTECT, WRPROTECT, VRPROTECT */
    SCSI_CDB_DPO = 0x10,
    SCSI_CDB_FUA = 0x08,
    SCSI_CDB_BYTCHK = 0x06, /* VERIFY, WRITE AND VERIFY */
    SCSI_CDB_IMMED = 0x02,  /* SYNCHRONIZE CACHE, PRE-FETCH; START STOP UNIT has it in bit 0 */
    SCSI_CDB_ANCHOR = 0x10, /* WRITE SAME; UNMAP has it in bit 0 */
    SCSI_CDB_WS_UNMAP = 0x08,
    SCSI_CDB_NDOB = 0x01, /* WRITE SAME(16) */
    SCSI_CDB_EVPD = 0x01, /* INQUIRY */
    SCSI_CDB_DESC = 0x01, /* REQUEST SENSE */
    SCSI_CDB_PF = 0x10,   /* MODE SELECT */
    SCSI_CDB_SP = 0x01,
    SCSI_CDB_DBD = 0x08, /* MODE SENSE */
    SCSI_CDB_LLBAA = 0x10,
    SCSI_CDB_UNMAP_ANCHOR = 0x01,
};

enum scsi_direction { SCSI_NO_DATA, SCSI_DATA_IN, SCSI_DATA_OUT };

/* What `length` counts. */
enum scsi_length_unit {
    SCSI_LENGTH_NONE,
    SCSI_LENGTH_BLOCKS,     /* TRANSFER LENGTH, NUMBER OF LOGICAL BLOCKS */
    SCSI_LENGTH_ALLOCATION, /* bytes, of data-in at most */
    SCSI_LENGTH_PARAMETERS, /* bytes of the parameter list (data-out) */
};

/* A row of the table. */
struct scsi_command_info {
    const char *name; /* the standard's */
    uint8_t opcode;
    int8_t service_action; /* -1: none; in the low five bits of byte 1 */
    uint8_t size;          /* bytes of the CDB */
    enum scsi_direction direction;
    enum scsi_length_unit unit;
    uint8_t lba_at, lba_size;       /* bytes; size 0: no such field. READ(6): 21 bits from byte 1 */
    uint8_t length_at, length_size; /* likewise */
    uint8_t usage[16];              /* CDB USAGE DATA: the bits that may be set */
};

const struct scsi_command_info *scsi_command_info(enum scsi_command command);

/* Looks a CDB up. n: bytes that are there, from 1. Fewer than the command's size are not judged
 * here. */
enum scsi_command scsi_command_find(const uint8_t *cdb, size_t n);

/* What is in a CDB. */
struct scsi_cdb {
    enum scsi_command command;
    uint64_t lba;
    uint32_t length; /* in info->unit; READ(6) and WRITE(6): 0 on the wire is 256 here */
    uint8_t flags;   /* byte 1 without a service action; for READ(6), WRITE(6) 0 */
    uint8_t byte2;   /* page code and PC, SELECT REPORT, scope and type, reporting options ... */
    uint8_t byte3;   /* subpage code, requested op code */
    uint8_t byte4;   /* START STOP UNIT, PREVENT ALLOW: the low bits */
    uint8_t group;   /* GROUP NUMBER */
    uint16_t requested_service_action; /* REPORT SUPPORTED OPERATION CODES, bytes 4 and 5 */
};

/* Writes the CDB, zero elsewhere; returns its size, or 0 when a field does not fit (an LBA or a
 * length too large for this command). */
size_t scsi_cdb_build(const struct scsi_cdb *fields, uint8_t out[SCSI_CDB_MAX]);

/* Takes a CDB apart. 0; -1: the op code or service action is unknown (fields->command says which)
 * or n is below the command's size. Bits outside the usage mask are not looked at. */
int scsi_cdb_parse(struct scsi_cdb *fields, const uint8_t *cdb, size_t n);

/* The first byte with a bit that the command does not have, or -1; *bit is that bit (7..0). */
int scsi_cdb_bad_bit(enum scsi_command command, const uint8_t *cdb, int *bit);

/* READ and WRITE in the shortest form of 10 or 16 bytes that holds them. */
size_t scsi_cdb_read_write(bool write, uint64_t lba, uint32_t blocks, uint8_t flags,
                           uint8_t out[SCSI_CDB_MAX]);

#endif
