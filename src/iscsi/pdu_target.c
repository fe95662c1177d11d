/* SPDX-License-Identifier: BSD-2-Clause */
/* What a target sends: RFC 7143 11.4, 11.6 to 11.9, 11.11, 11.13, 11.15, 11.17, 11.19. */
#include <string.h>

#include "base/bytes.h"
#include "iscsi/pdu.h"
#include "iscsi/pdu_int.h"

void iscsi_scsi_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_scsi_response *pdu)
{
    response_begin(bhs, ISCSI_SCSI_RESPONSE);
    bhs[1] |= flag(pdu->bidi_overflow, RESPONSE_BIDI_OVERFLOW) |
              flag(pdu->bidi_underflow, RESPONSE_BIDI_UNDERFLOW) |
              flag(pdu->overflow, RESPONSE_OVERFLOW) | flag(pdu->underflow, RESPONSE_UNDERFLOW);
    bhs[2] = pdu->response;
    bhs[3] = pdu->status;
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be16(bhs + 8, pdu->status_qualifier);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->snack_tag);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
    store_be32(bhs + 36, pdu->exp_data_sn);
    store_be32(bhs + 40, pdu->bidi_residual_count);
    store_be32(bhs + 44, pdu->residual_count);
}

void iscsi_scsi_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_scsi_response *pdu)
{
    pdu->bidi_overflow = bhs[1] & RESPONSE_BIDI_OVERFLOW;
    pdu->bidi_underflow = bhs[1] & RESPONSE_BIDI_UNDERFLOW;
    pdu->overflow = bhs[1] & RESPONSE_OVERFLOW;
    pdu->underflow = bhs[1] & RESPONSE_UNDERFLOW;
    pdu->response = bhs[2];
    pdu->status = bhs[3];
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->status_qualifier = load_be16(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->snack_tag = load_be32(bhs + 20);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
    pdu->exp_data_sn = load_be32(bhs + 36);
    pdu->bidi_residual_count = load_be32(bhs + 40);
    pdu->residual_count = load_be32(bhs + 44);
}

void iscsi_tmf_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_tmf_response *pdu)
{
    response_begin(bhs, ISCSI_TMF_RESPONSE);
    bhs[2] = pdu->response;
    store_be24(bhs + 8, pdu->additional_response);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
}

void iscsi_tmf_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_tmf_response *pdu)
{
    pdu->response = bhs[2];
    pdu->additional_response = load_be24(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
}

void iscsi_data_in_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_data_in *pdu)
{
    response_begin(bhs, ISCSI_DATA_IN);
    bhs[1] = flag(pdu->final, BHS_FINAL) | flag(pdu->acknowledge, DATA_IN_ACKNOWLEDGE) |
             flag(pdu->overflow, RESPONSE_OVERFLOW) | flag(pdu->underflow, RESPONSE_UNDERFLOW) |
             flag(pdu->status_present, DATA_IN_STATUS);
    bhs[3] = pdu->status;
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
    store_be32(bhs + 36, pdu->data_sn);
    store_be32(bhs + 40, pdu->buffer_offset);
    store_be32(bhs + 44, pdu->residual_count);
}

void iscsi_data_in_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_data_in *pdu)
{
    pdu->final = bhs[1] & BHS_FINAL;
    pdu->acknowledge = bhs[1] & DATA_IN_ACKNOWLEDGE;
    pdu->overflow = bhs[1] & RESPONSE_OVERFLOW;
    pdu->underflow = bhs[1] & RESPONSE_UNDERFLOW;
    pdu->status_present = bhs[1] & DATA_IN_STATUS;
    pdu->status = bhs[3];
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
    pdu->data_sn = load_be32(bhs + 36);
    pdu->buffer_offset = load_be32(bhs + 40);
    pdu->residual_count = load_be32(bhs + 44);
}

void iscsi_r2t_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_r2t *pdu)
{
    response_begin(bhs, ISCSI_R2T);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
    store_be32(bhs + 36, pdu->r2t_sn);
    store_be32(bhs + 40, pdu->buffer_offset);
    store_be32(bhs + 44, pdu->desired_data_transfer_length);
}

void iscsi_r2t_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_r2t *pdu)
{
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
    pdu->r2t_sn = load_be32(bhs + 36);
    pdu->buffer_offset = load_be32(bhs + 40);
    pdu->desired_data_transfer_length = load_be32(bhs + 44);
}

void iscsi_async_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_async *pdu)
{
    response_begin(bhs, ISCSI_ASYNC);
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, ISCSI_TAG_NONE);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
    bhs[36] = pdu->event;
    bhs[37] = pdu->vcode;
    store_be16(bhs + 38, pdu->parameter1);
    store_be16(bhs + 40, pdu->parameter2);
    store_be16(bhs + 42, pdu->parameter3);
}

void iscsi_async_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_async *pdu)
{
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
    pdu->event = bhs[36];
    pdu->vcode = bhs[37];
    pdu->parameter1 = load_be16(bhs + 38);
    pdu->parameter2 = load_be16(bhs + 40);
    pdu->parameter3 = load_be16(bhs + 42);
}

void iscsi_text_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_text_response *pdu)
{
    response_begin(bhs, ISCSI_TEXT_RESPONSE);
    bhs[1] = flag(pdu->final, BHS_FINAL) | flag(pdu->more, TEXT_MORE);
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
}

void iscsi_text_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_text_response *pdu)
{
    pdu->final = bhs[1] & BHS_FINAL;
    pdu->more = bhs[1] & TEXT_MORE;
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
}

void iscsi_login_response_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_login_response *pdu)
{
    response_begin(bhs, ISCSI_LOGIN_RESPONSE);
    bhs[1] =
        flag(pdu->transit, BHS_FINAL) | flag(pdu->more, TEXT_MORE) | stages(pdu->csg, pdu->nsg);
    bhs[2] = pdu->version_max;
    bhs[3] = pdu->version_active;
    store_be24(bhs + 5, pdu->data_segment_length);
    memcpy(bhs + 8, pdu->isid, sizeof(pdu->isid));
    store_be16(bhs + 14, pdu->tsih);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
    store_be16(bhs + 36, pdu->status);
}

void iscsi_login_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE],
                                 struct iscsi_login_response *pdu)
{
    pdu->transit = bhs[1] & BHS_FINAL;
    pdu->more = bhs[1] & TEXT_MORE;
    pdu->csg = csg_of(bhs[1]);
    pdu->nsg = nsg_of(bhs[1]);
    pdu->version_max = bhs[2];
    pdu->version_active = bhs[3];
    pdu->data_segment_length = load_be24(bhs + 5);
    memcpy(pdu->isid, bhs + 8, sizeof(pdu->isid));
    pdu->tsih = load_be16(bhs + 14);
    pdu->itt = load_be32(bhs + 16);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
    pdu->status = load_be16(bhs + 36);
}

void iscsi_logout_response_pack(uint8_t bhs[ISCSI_BHS_SIZE],
                                const struct iscsi_logout_response *pdu)
{
    response_begin(bhs, ISCSI_LOGOUT_RESPONSE);
    bhs[2] = pdu->response;
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
    store_be16(bhs + 40, pdu->time2wait);
    store_be16(bhs + 42, pdu->time2retain);
}

void iscsi_logout_response_unpack(const uint8_t bhs[ISCSI_BHS_SIZE],
                                  struct iscsi_logout_response *pdu)
{
    pdu->response = bhs[2];
    pdu->itt = load_be32(bhs + 16);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
    pdu->time2wait = load_be16(bhs + 40);
    pdu->time2retain = load_be16(bhs + 42);
}

void iscsi_reject_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_reject *pdu)
{
    response_begin(bhs, ISCSI_REJECT);
    bhs[2] = pdu->reason;
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be32(bhs + 16, ISCSI_TAG_NONE);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
    store_be32(bhs + 36, pdu->data_sn);
}

void iscsi_reject_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_reject *pdu)
{
    pdu->reason = bhs[2];
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
    pdu->data_sn = load_be32(bhs + 36);
}

void iscsi_nop_in_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_nop_in *pdu)
{
    response_begin(bhs, ISCSI_NOP_IN);
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 24, pdu->stat_sn);
    store_be32(bhs + 28, pdu->exp_cmd_sn);
    store_be32(bhs + 32, pdu->max_cmd_sn);
}

void iscsi_nop_in_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_nop_in *pdu)
{
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->stat_sn = load_be32(bhs + 24);
    pdu->exp_cmd_sn = load_be32(bhs + 28);
    pdu->max_cmd_sn = load_be32(bhs + 32);
}
