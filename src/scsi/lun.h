/* SPDX-License-Identifier: BSD-2-Clause */
/* Logical unit numbers: 8 bytes on the wire, in several formats. SAM-5 4.7; RFC 7143 11.2.1.7. */
#ifndef SCSI_LUN_H
#define SCSI_LUN_H

#include <lunpath/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCSI_LUN_SIZE = 8,
    SCSI_LUN_TEXT = 24,                       /* room for scsi_lun_format() */
    SCSI_LUN_FLAT_MAX = 0x3fff,               /* the largest of 14 bits */
    SCSI_LUN_MAX = 0xffffff,                  /* the largest number: extended flat, 24 bits */
    SCSI_LUN_REPORT_LUNS_WELL_KNOWN = 0xc101, /* first two bytes */
};

/* The addressing method: the two bits at the top. */
enum scsi_lun_method {
    SCSI_LUN_PERIPHERAL = 0,
    SCSI_LUN_FLAT = 1,
    SCSI_LUN_LOGICAL_UNIT = 2,
    SCSI_LUN_EXTENDED = 3,
};

/* One level of a LUN. */
struct scsi_lun {
    enum scsi_lun_method method;
    uint8_t bus;      /* peripheral (0: this level) and logical unit method */
    uint8_t target;   /* logical unit method */
    uint8_t extended; /* extended method: its EXTENDED ADDRESS METHOD, 1 well-known, 2 flat */
    uint8_t size;     /* bytes this level takes: 2, 4, 6 or 8 */
    uint64_t number;  /* the LUN, or the well-known number */
    bool deeper;      /* bytes behind this level are not zero */
};

/* A number in the shortest usual form: peripheral up to 255, flat up to 16383, then extended flat
 * up to SCSI_LUN_MAX. -1: too large; out is untouched. */
int scsi_lun_pack(uint32_t number, uint8_t out[SCSI_LUN_SIZE]);

/* Takes the first level apart. Always possible. */
void scsi_lun_unpack(struct scsi_lun *lun, const uint8_t in[SCSI_LUN_SIZE]);

/* The number of a single-level LUN in any of the forms that scsi_lun_pack() makes (and flat for
 * small ones). -1: another form, which names no LU of a simple target. */
int scsi_lun_number(const uint8_t in[SCSI_LUN_SIZE], uint32_t *number);

/* "5", or "0xc101000000000000" when it is not a simple number. Returns buf. */
char *scsi_lun_format(const uint8_t in[SCSI_LUN_SIZE], char buf[SCSI_LUN_TEXT]);

/* The inverse: decimal, or 0x and 16 hexadecimal digits. 0 or -1 with a sentence. */
int scsi_lun_parse(const char *text, uint8_t out[SCSI_LUN_SIZE], struct lp_error *err);

#endif
