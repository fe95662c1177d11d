/* SPDX-License-Identifier: BSD-2-Clause */
/* Sense data: why a command ended as it did, in fixed or descriptor format. SPC-4 4.5. */
#ifndef SCSI_SENSE_H
#define SCSI_SENSE_H

#include "scsi/scsi.h"

enum {
    SCSI_SENSE_MAX = 252,       /* bytes that a peer may send */
    SCSI_SENSE_PACKED_MAX = 48, /* bytes that scsi_sense_pack() makes at most */
};

struct scsi_sense {
    uint8_t key; /* enum scsi_sense_key */
    uint8_t asc;
    uint8_t ascq;
    bool deferred;   /* of an earlier command (response codes 71h, 73h) */
    bool descriptor; /* as received: descriptor format (72h, 73h) */
    bool ili, eom, filemark;
    bool information_valid;
    bool command_specific_valid;
    uint64_t information; /* for most commands the LBA; for a miscompare the byte offset */
    uint64_t command_specific;
    bool field_valid;  /* key ILLEGAL REQUEST: the field pointer below says where */
    bool field_in_cdb; /* in the CDB, not in the parameter list */
    bool bit_valid;
    uint8_t bit;         /* the field's most significant bit, 7..0 */
    uint16_t field;      /* byte, from 0 */
    bool progress_valid; /* keys NO SENSE, NOT READY */
    uint16_t progress;   /* of 65536 */
};

/* asc is ASC << 8 | ASCQ (enum scsi_asc). */
struct scsi_sense scsi_sense_make(enum scsi_sense_key key, uint16_t asc);

/* ILLEGAL REQUEST with a field pointer; bit -1: the whole byte or more. */
struct scsi_sense scsi_sense_cdb_field(unsigned byte, int bit);
struct scsi_sense scsi_sense_parameter_field(unsigned byte, int bit);

static inline uint16_t scsi_sense_asc(const struct scsi_sense *s)
{
    return (uint16_t)(s->asc << 8 | s->ascq);
}

/* Packs in descriptor or in fixed format; returns the length: 18 for fixed, 8..48 for descriptor.
 * Fixed format has room for 32 bits of INFORMATION: above that VALID stays 0 (S-20). */
size_t scsi_sense_pack(const struct scsi_sense *s, bool descriptor,
                       uint8_t out[SCSI_SENSE_PACKED_MAX]);

/* Reads whatever of it is there. False: no sense (length 0, or a response code that is not 70h to
 * 73h); *s is then all zero. Never reads beyond n bytes, whatever the length fields say. */
bool scsi_sense_unpack(struct scsi_sense *s, const uint8_t *bytes, size_t n);

/* One sentence for people, such as "medium error: unrecovered read error (03/11/00) at 1234".
 * Cut to size; returns buf. */
char *scsi_sense_text(const struct scsi_sense *s, char *buf, size_t size);

#endif
