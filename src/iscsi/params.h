/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a login has settled, typed; const after the login (RFC 7143 13, 7144 7.1.1). Also what a
 * side wishes before it. The negotiation table (keys.h) says how a wish becomes a result.
 */
#ifndef ISCSI_PARAMS_H
#define ISCSI_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "iscsi/iscsi.h"

struct iscsi_params {
    /* of the connection */
    bool header_digest; /* CRC32C */
    bool data_digest;
    uint32_t mrdsl_in;  /* we declared: the longest data segment we take, bytes */
    uint32_t mrdsl_out; /* the peer declared: the longest we may send; 8192 if it did not */
    /* of the session */
    uint32_t max_connections;
    bool initial_r2t;
    bool immediate_data;
    uint32_t max_burst_length;   /* bytes */
    uint32_t first_burst_length; /* bytes */
    uint32_t default_time2wait;  /* seconds */
    uint32_t default_time2retain;
    uint32_t max_outstanding_r2t;
    bool data_pdu_in_order;
    bool data_sequence_in_order;
    uint8_t error_recovery_level;
    uint8_t protocol_level; /* iSCSIProtocolLevel: 2 and more switches RFC 7144 on */
    enum iscsi_task_reporting task_reporting;
    bool discovery; /* SessionType=Discovery */
};

#endif
