/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PDUs' basic header segments as values: pack and unpack of each stand side by side in
 * pdu_initiator.c and pdu_target.c, so that both roles, the fuzzers and the scripted peers share
 * one codec (RFC 7143 11.3 to 11.19, RFC 7144 5 and 6).
 *
 * pack writes all 48 bytes, reserved ones as 0, and takes any value, legal or not (a scripted peer
 * sends illegal ones); values wider than their field are cut. unpack reads the fields only and
 * judges nothing: what is legal is decided where the PDU is acted upon. Reserved bits are ignored.
 *
 * Common to all structs: `lun` is the 8-byte field as load_be64() reads it, opaque here (scsi/lun.h
 * knows the formats); ahs_words is TotalAHSLength in 4-byte words; data_segment_length is in bytes,
 * without padding.
 */
#ifndef ISCSI_PDU_H
#define ISCSI_PDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "iscsi/iscsi.h"

/* What every PDU has at the same place; 11.2.1. */
struct iscsi_bhs {
    uint8_t opcode; /* 6 bits, enum iscsi_opcode */
    bool immediate; /* requests only */
    bool final;     /* byte 1, bit 7: F, or T in login PDUs */
    uint8_t ahs_words;
    uint32_t data_segment_length;
    uint64_t lun; /* or opcode-specific: bytes 8-15 */
    uint32_t itt;
};

void iscsi_bhs_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_bhs *h);

/* Bytes on the wire behind n bytes of data segment: 0 to 3. */
static inline uint32_t iscsi_padding(uint32_t n)
{
    return -n & 3;
}

/* 11.3 */
struct iscsi_scsi_command {
    bool immediate;
    bool final;
    bool read;
    bool write;
    uint8_t attr;     /* enum iscsi_attr */
    uint8_t priority; /* RFC 7144 5.1: 4 bits, 0 below protocol level 2 */
    uint8_t ahs_words;
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t expected_data_transfer_length;
    uint32_t cmd_sn;
    uint32_t exp_stat_sn;
    uint8_t cdb[16];
};

void iscsi_scsi_command_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_scsi_command *pdu);
void iscsi_scsi_command_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_scsi_command *pdu);

/* 11.4 */
struct iscsi_scsi_response {
    bool bidi_overflow;
    bool bidi_underflow;
    bool overflow;
    bool underflow;
    uint8_t response;
    uint8_t status;            /* SAM-5 status code */
    uint16_t status_qualifier; /* RFC 7144 5.2: with protocol level 2, else reserved */
    uint32_t data_segment_length;
    uint32_t itt;
    uint32_t snack_tag;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
    uint32_t exp_data_sn;
    uint32_t bidi_residual_count;
    uint32_t residual_count;
};

void iscsi_scsi_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_scsi_response *pdu);
void iscsi_scsi_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_scsi_response *pdu);

/* 11.5 */
struct iscsi_tmf_request {
    bool immediate;
    uint8_t function; /* enum iscsi_tmf_function, 7 bits */
    uint8_t ahs_words;
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t referenced_task_tag;
    uint32_t cmd_sn;
    uint32_t exp_stat_sn;
    uint32_t ref_cmd_sn;
    uint32_t exp_data_sn;
};

void iscsi_tmf_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_tmf_request *pdu);
void iscsi_tmf_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_tmf_request *pdu);

/* 11.6 */
struct iscsi_tmf_response {
    uint8_t response; /* enum iscsi_tmf_result */
    uint32_t
        additional_response; /* RFC 7144 6.4: 3 bytes, QUERY ASYNCHRONOUS EVENT's information */
    uint32_t itt;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
};

void iscsi_tmf_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_tmf_response *pdu);
void iscsi_tmf_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_tmf_response *pdu);

/* 11.7 */
struct iscsi_data_out {
    bool final;
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt;
    uint32_t exp_stat_sn;
    uint32_t data_sn;
    uint32_t buffer_offset;
};

void iscsi_data_out_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_data_out *pdu);
void iscsi_data_out_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_data_out *pdu);

/* 11.7 */
struct iscsi_data_in {
    bool final;
    bool acknowledge;
    bool overflow;
    bool underflow;
    bool status_present; /* S */
    uint8_t status;
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
    uint32_t data_sn;
    uint32_t buffer_offset;
    uint32_t residual_count;
};

void iscsi_data_in_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_data_in *pdu);
void iscsi_data_in_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_data_in *pdu);

/* 11.8 */
struct iscsi_r2t {
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
    uint32_t r2t_sn;
    uint32_t buffer_offset;
    uint32_t desired_data_transfer_length;
};

void iscsi_r2t_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_r2t *pdu);
void iscsi_r2t_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_r2t *pdu);

/* 11.9 */
struct iscsi_async {
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
    uint8_t event; /* enum iscsi_async_event */
    uint8_t vcode;
    uint16_t parameter1;
    uint16_t parameter2;
    uint16_t parameter3;
};

void iscsi_async_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_async *pdu);
void iscsi_async_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_async *pdu);

/* 11.10 */
struct iscsi_text_request {
    bool immediate;
    bool final;
    bool more; /* C */
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt;
    uint32_t cmd_sn;
    uint32_t exp_stat_sn;
};

void iscsi_text_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_text_request *pdu);
void iscsi_text_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_text_request *pdu);

/* 11.11 */
struct iscsi_text_response {
    bool final;
    bool more; /* C */
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
};

void iscsi_text_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_text_response *pdu);
void iscsi_text_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_text_response *pdu);

/* 11.12 */
struct iscsi_login_request {
    bool immediate; /* always, but a peer may err */
    bool transit;   /* T */
    bool more;      /* C */
    uint8_t csg;    /* enum iscsi_stage; 2 is reserved */
    uint8_t nsg;
    uint8_t version_max;
    uint8_t version_min;
    uint8_t ahs_words;
    uint32_t data_segment_length;
    uint8_t isid[6];
    uint16_t tsih;
    uint32_t itt;
    uint16_t cid;
    uint32_t cmd_sn;
    uint32_t exp_stat_sn;
};

void iscsi_login_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_login_request *pdu);
void iscsi_login_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_login_request *pdu);

/* 11.13 */
struct iscsi_login_response {
    bool transit; /* T */
    bool more;    /* C */
    uint8_t csg;
    uint8_t nsg;
    uint8_t version_max;
    uint8_t version_active;
    uint32_t data_segment_length;
    uint8_t isid[6];
    uint16_t tsih;
    uint32_t itt;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
    uint16_t status; /* class << 8 | detail: enum iscsi_login_status */
};

void iscsi_login_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_login_response *pdu);
void iscsi_login_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE],
                                 struct iscsi_login_response *pdu);

/* 11.14 */
struct iscsi_logout_request {
    bool immediate;
    uint8_t reason; /* enum iscsi_logout_reason, 7 bits */
    uint32_t itt;
    uint16_t cid;
    uint32_t cmd_sn;
    uint32_t exp_stat_sn;
};

void iscsi_logout_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_logout_request *pdu);
void iscsi_logout_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE],
                                 struct iscsi_logout_request *pdu);

/* 11.15 */
struct iscsi_logout_response {
    uint8_t response; /* enum iscsi_logout_result */
    uint32_t itt;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
    uint16_t time2wait; /* seconds */
    uint16_t time2retain;
};

void iscsi_logout_response_pack(uint8_t bhs[ISCSI_BHS_SIZE],
                                const struct iscsi_logout_response *pdu);
void iscsi_logout_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE],
                                  struct iscsi_logout_response *pdu);

/* 11.16 */
struct iscsi_snack {
    uint8_t type; /* enum iscsi_snack_type, 4 bits */
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt; /* or the SNACK tag */
    uint32_t exp_stat_sn;
    uint32_t beg_run;
    uint32_t run_length;
};

void iscsi_snack_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_snack *pdu);
void iscsi_snack_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_snack *pdu);

/* 11.17 */
struct iscsi_reject {
    uint8_t reason; /* enum iscsi_reject_reason */
    uint32_t data_segment_length;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
    uint32_t data_sn; /* or R2TSN */
};

void iscsi_reject_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_reject *pdu);
void iscsi_reject_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_reject *pdu);

/* 11.18 */
struct iscsi_nop_out {
    bool immediate;
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt;
    uint32_t cmd_sn;
    uint32_t exp_stat_sn;
};

void iscsi_nop_out_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_nop_out *pdu);
void iscsi_nop_out_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_nop_out *pdu);

/* 11.19 */
struct iscsi_nop_in {
    uint32_t data_segment_length;
    uint64_t lun;
    uint32_t itt;
    uint32_t ttt;
    uint32_t stat_sn;
    uint32_t exp_cmd_sn;
    uint32_t max_cmd_sn;
};

void iscsi_nop_in_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_nop_in *pdu);
void iscsi_nop_in_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_nop_in *pdu);

/* Additional header segments; 11.2.2. */
enum {
    ISCSI_AHS_EXTENDED_CDB = 1,
    ISCSI_AHS_BIDI_READ_LENGTH = 2,
    ISCSI_AHS_PACKED_MAX = 256, /* a CDB of 260 bytes and a read length */
};

struct iscsi_ahs {
    bool extended_cdb;
    uint8_t cdb_rest[260 - 16]; /* CDB bytes from the 17th on */
    uint16_t cdb_rest_length;   /* 1..244 */
    bool bidi;
    uint32_t bidi_read_length;
};

/* Reads a chain of n bytes. 0, or -1: it is not well formed (7.7). Unknown types are skipped when
 * their length fits, and make *unknown true. */
int iscsi_ahs_unpack(const uint8_t *bytes, size_t n, struct iscsi_ahs *ahs, bool *unknown);

/* Writes the chain, padded, and nothing behind it; bytes has room for ISCSI_AHS_PACKED_MAX. Returns
 * its length, a multiple of 4. */
size_t iscsi_ahs_pack(uint8_t *bytes, const struct iscsi_ahs *ahs);

#endif
