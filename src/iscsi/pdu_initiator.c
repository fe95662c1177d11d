/* SPDX-License-Identifier: BSD-2-Clause */
/* What an initiator sends: RFC 7143 11.3, 11.5, 11.7, 11.10, 11.12, 11.14, 11.16, 11.18. */
#include <string.h>

#include "base/bytes.h"
#include "iscsi/pdu.h"
#include "iscsi/pdu_int.h"

void iscsi_bhs_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_bhs *h)
{
    h->opcode = bhs[0] & BHS_OPCODE;
    h->immediate = bhs[0] & BHS_IMMEDIATE;
    h->final = bhs[1] & BHS_FINAL;
    h->ahs_words = bhs[4];
    h->data_segment_length = load_be24(bhs + 5);
    h->lun = load_be64(bhs + 8);
    h->itt = load_be32(bhs + 16);
}

void iscsi_scsi_command_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_scsi_command *pdu)
{
    request_begin(bhs, ISCSI_SCSI_COMMAND, pdu->immediate);
    bhs[1] = flag(pdu->final, BHS_FINAL) | flag(pdu->read, COMMAND_READ) |
             flag(pdu->write, COMMAND_WRITE) | (pdu->attr & COMMAND_ATTR);
    bhs[2] = (uint8_t)(pdu->priority << COMMAND_PRIORITY_SHIFT);
    bhs[4] = pdu->ahs_words;
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->expected_data_transfer_length);
    store_be32(bhs + 24, pdu->cmd_sn);
    store_be32(bhs + 28, pdu->exp_stat_sn);
    memcpy(bhs + 32, pdu->cdb, sizeof(pdu->cdb));
}

void iscsi_scsi_command_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_scsi_command *pdu)
{
    pdu->immediate = bhs[0] & BHS_IMMEDIATE;
    pdu->final = bhs[1] & BHS_FINAL;
    pdu->read = bhs[1] & COMMAND_READ;
    pdu->write = bhs[1] & COMMAND_WRITE;
    pdu->attr = bhs[1] & COMMAND_ATTR;
    pdu->priority = bhs[2] >> COMMAND_PRIORITY_SHIFT;
    pdu->ahs_words = bhs[4];
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->expected_data_transfer_length = load_be32(bhs + 20);
    pdu->cmd_sn = load_be32(bhs + 24);
    pdu->exp_stat_sn = load_be32(bhs + 28);
    memcpy(pdu->cdb, bhs + 32, sizeof(pdu->cdb));
}

void iscsi_tmf_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_tmf_request *pdu)
{
    request_begin(bhs, ISCSI_TMF_REQUEST, pdu->immediate);
    bhs[1] = BHS_FINAL | (pdu->function & TMF_FUNCTION);
    bhs[4] = pdu->ahs_words;
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->referenced_task_tag);
    store_be32(bhs + 24, pdu->cmd_sn);
    store_be32(bhs + 28, pdu->exp_stat_sn);
    store_be32(bhs + 32, pdu->ref_cmd_sn);
    store_be32(bhs + 36, pdu->exp_data_sn);
}

void iscsi_tmf_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_tmf_request *pdu)
{
    pdu->immediate = bhs[0] & BHS_IMMEDIATE;
    pdu->function = bhs[1] & TMF_FUNCTION;
    pdu->ahs_words = bhs[4];
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->referenced_task_tag = load_be32(bhs + 20);
    pdu->cmd_sn = load_be32(bhs + 24);
    pdu->exp_stat_sn = load_be32(bhs + 28);
    pdu->ref_cmd_sn = load_be32(bhs + 32);
    pdu->exp_data_sn = load_be32(bhs + 36);
}

void iscsi_data_out_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_data_out *pdu)
{
    request_begin(bhs, ISCSI_DATA_OUT, false);
    bhs[1] = flag(pdu->final, BHS_FINAL);
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 28, pdu->exp_stat_sn);
    store_be32(bhs + 36, pdu->data_sn);
    store_be32(bhs + 40, pdu->buffer_offset);
}

void iscsi_data_out_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_data_out *pdu)
{
    pdu->final = bhs[1] & BHS_FINAL;
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->exp_stat_sn = load_be32(bhs + 28);
    pdu->data_sn = load_be32(bhs + 36);
    pdu->buffer_offset = load_be32(bhs + 40);
}

void iscsi_text_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_text_request *pdu)
{
    request_begin(bhs, ISCSI_TEXT_REQUEST, pdu->immediate);
    bhs[1] = flag(pdu->final, BHS_FINAL) | flag(pdu->more, TEXT_MORE);
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 24, pdu->cmd_sn);
    store_be32(bhs + 28, pdu->exp_stat_sn);
}

void iscsi_text_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_text_request *pdu)
{
    pdu->immediate = bhs[0] & BHS_IMMEDIATE;
    pdu->final = bhs[1] & BHS_FINAL;
    pdu->more = bhs[1] & TEXT_MORE;
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->cmd_sn = load_be32(bhs + 24);
    pdu->exp_stat_sn = load_be32(bhs + 28);
}

void iscsi_login_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_login_request *pdu)
{
    request_begin(bhs, ISCSI_LOGIN_REQUEST, pdu->immediate);
    bhs[1] =
        flag(pdu->transit, BHS_FINAL) | flag(pdu->more, TEXT_MORE) | stages(pdu->csg, pdu->nsg);
    bhs[2] = pdu->version_max;
    bhs[3] = pdu->version_min;
    bhs[4] = pdu->ahs_words;
    store_be24(bhs + 5, pdu->data_segment_length);
    memcpy(bhs + 8, pdu->isid, sizeof(pdu->isid));
    store_be16(bhs + 14, pdu->tsih);
    store_be32(bhs + 16, pdu->itt);
    store_be16(bhs + 20, pdu->cid);
    store_be32(bhs + 24, pdu->cmd_sn);
    store_be32(bhs + 28, pdu->exp_stat_sn);
}

void iscsi_login_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_login_request *pdu)
{
    pdu->immediate = bhs[0] & BHS_IMMEDIATE;
    pdu->transit = bhs[1] & BHS_FINAL;
    pdu->more = bhs[1] & TEXT_MORE;
    pdu->csg = csg_of(bhs[1]);
    pdu->nsg = nsg_of(bhs[1]);
    pdu->version_max = bhs[2];
    pdu->version_min = bhs[3];
    pdu->ahs_words = bhs[4];
    pdu->data_segment_length = load_be24(bhs + 5);
    memcpy(pdu->isid, bhs + 8, sizeof(pdu->isid));
    pdu->tsih = load_be16(bhs + 14);
    pdu->itt = load_be32(bhs + 16);
    pdu->cid = load_be16(bhs + 20);
    pdu->cmd_sn = load_be32(bhs + 24);
    pdu->exp_stat_sn = load_be32(bhs + 28);
}

void iscsi_logout_request_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_logout_request *pdu)
{
    request_begin(bhs, ISCSI_LOGOUT_REQUEST, pdu->immediate);
    bhs[1] = BHS_FINAL | (pdu->reason & LOGOUT_REASON);
    store_be32(bhs + 16, pdu->itt);
    store_be16(bhs + 20, pdu->cid);
    store_be32(bhs + 24, pdu->cmd_sn);
    store_be32(bhs + 28, pdu->exp_stat_sn);
}

void iscsi_logout_request_unpack(const uint8_t bhs[ISCSI_BHS_SIZE],
                                 struct iscsi_logout_request *pdu)
{
    pdu->immediate = bhs[0] & BHS_IMMEDIATE;
    pdu->reason = bhs[1] & LOGOUT_REASON;
    pdu->itt = load_be32(bhs + 16);
    pdu->cid = load_be16(bhs + 20);
    pdu->cmd_sn = load_be32(bhs + 24);
    pdu->exp_stat_sn = load_be32(bhs + 28);
}

void iscsi_snack_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_snack *pdu)
{
    request_begin(bhs, ISCSI_SNACK, false);
    bhs[1] = BHS_FINAL | (pdu->type & SNACK_TYPE);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 28, pdu->exp_stat_sn);
    store_be32(bhs + 40, pdu->beg_run);
    store_be32(bhs + 44, pdu->run_length);
}

void iscsi_snack_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_snack *pdu)
{
    pdu->type = bhs[1] & SNACK_TYPE;
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->exp_stat_sn = load_be32(bhs + 28);
    pdu->beg_run = load_be32(bhs + 40);
    pdu->run_length = load_be32(bhs + 44);
}

void iscsi_nop_out_pack(uint8_t bhs[ISCSI_BHS_SIZE], const struct iscsi_nop_out *pdu)
{
    request_begin(bhs, ISCSI_NOP_OUT, pdu->immediate);
    bhs[1] = BHS_FINAL;
    store_be24(bhs + 5, pdu->data_segment_length);
    store_be64(bhs + 8, pdu->lun);
    store_be32(bhs + 16, pdu->itt);
    store_be32(bhs + 20, pdu->ttt);
    store_be32(bhs + 24, pdu->cmd_sn);
    store_be32(bhs + 28, pdu->exp_stat_sn);
}

void iscsi_nop_out_unpack(const uint8_t bhs[ISCSI_BHS_SIZE], struct iscsi_nop_out *pdu)
{
    pdu->immediate = bhs[0] & BHS_IMMEDIATE;
    pdu->data_segment_length = load_be24(bhs + 5);
    pdu->lun = load_be64(bhs + 8);
    pdu->itt = load_be32(bhs + 16);
    pdu->ttt = load_be32(bhs + 20);
    pdu->cmd_sn = load_be32(bhs + 24);
    pdu->exp_stat_sn = load_be32(bhs + 28);
}
