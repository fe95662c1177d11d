/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iSCSI's numbers, with the names of RFC 7143 (sections 11 and 13) and RFC 7144.
 */
#ifndef ISCSI_ISCSI_H
#define ISCSI_ISCSI_H

#include <stdint.h>

enum {
    ISCSI_PORT = 3260,
    ISCSI_BHS_SIZE = 48,
    ISCSI_AHS_MAX = 255 * 4,
    ISCSI_DIGEST_SIZE = 4,
    ISCSI_NAME_MAX = 223,             /* bytes, without NUL; 4.2.7.1 */
    ISCSI_KEY_MAX = 63,               /* 6.1 */
    ISCSI_VALUE_MAX = 255,            /* unless the key says otherwise; 6.1 */
    ISCSI_LOGIN_MRDSL = 8192,         /* during login; 6.3 */
    ISCSI_SEGMENT_MAX = (1 << 24) - 1 /* DataSegmentLength is 24 bits */
};

#define ISCSI_TAG_NONE 0xffffffffu /* the reserved value of ITT and TTT */

enum iscsi_opcode {
    ISCSI_NOP_OUT = 0x00,
    ISCSI_SCSI_COMMAND = 0x01,
    ISCSI_TMF_REQUEST = 0x02,
    ISCSI_LOGIN_REQUEST = 0x03,
    ISCSI_TEXT_REQUEST = 0x04,
    ISCSI_DATA_OUT = 0x05,
    ISCSI_LOGOUT_REQUEST = 0x06,
    ISCSI_SNACK = 0x10,
    ISCSI_NOP_IN = 0x20,
    ISCSI_SCSI_RESPONSE = 0x21,
    ISCSI_TMF_RESPONSE = 0x22,
    ISCSI_LOGIN_RESPONSE = 0x23,
    ISCSI_TEXT_RESPONSE = 0x24,
    ISCSI_DATA_IN = 0x25,
    ISCSI_LOGOUT_RESPONSE = 0x26,
    ISCSI_R2T = 0x31,
    ISCSI_ASYNC = 0x32,
    ISCSI_REJECT = 0x3f,
};

/* CSG and NSG; 11.12.3 */
enum iscsi_stage {
    ISCSI_STAGE_SECURITY = 0,
    ISCSI_STAGE_OPERATIONAL = 1,
    ISCSI_STAGE_FULL_FEATURE = 3,
};

/* Task attribute of a SCSI Command; 11.3.1 */
enum iscsi_attr {
    ISCSI_ATTR_UNTAGGED = 0,
    ISCSI_ATTR_SIMPLE = 1,
    ISCSI_ATTR_ORDERED = 2,
    ISCSI_ATTR_HEAD_OF_QUEUE = 3,
    ISCSI_ATTR_ACA = 4,
};

/* Status-Class << 8 | Status-Detail of a Login Response; 11.13.5 */
enum iscsi_login_status {
    ISCSI_LOGIN_OK = 0x0000,
    ISCSI_LOGIN_MOVED_TEMPORARILY = 0x0101,
    ISCSI_LOGIN_MOVED_PERMANENTLY = 0x0102,
    ISCSI_LOGIN_INITIATOR_ERROR = 0x0200,
    ISCSI_LOGIN_AUTHENTICATION = 0x0201,
    ISCSI_LOGIN_AUTHORIZATION = 0x0202,
    ISCSI_LOGIN_NOT_FOUND = 0x0203,
    ISCSI_LOGIN_REMOVED = 0x0204,
    ISCSI_LOGIN_VERSION = 0x0205,
    ISCSI_LOGIN_TOO_MANY_CONNECTIONS = 0x0206,
    ISCSI_LOGIN_MISSING_PARAMETER = 0x0207,
    ISCSI_LOGIN_CANNOT_INCLUDE = 0x0208,
    ISCSI_LOGIN_SESSION_TYPE = 0x0209,
    ISCSI_LOGIN_NO_SESSION = 0x020a,
    ISCSI_LOGIN_INVALID_DURING_LOGIN = 0x020b,
    ISCSI_LOGIN_TARGET_ERROR = 0x0300,
    ISCSI_LOGIN_UNAVAILABLE = 0x0301,
    ISCSI_LOGIN_OUT_OF_RESOURCES = 0x0302,
};

/* Response of a SCSI Response; 11.4.3 */
enum { ISCSI_COMPLETED_AT_TARGET = 0, ISCSI_TARGET_FAILURE = 1 };

enum iscsi_tmf_function {
    ISCSI_ABORT_TASK = 1,
    ISCSI_ABORT_TASK_SET = 2,
    ISCSI_CLEAR_ACA = 3,
    ISCSI_CLEAR_TASK_SET = 4,
    ISCSI_LOGICAL_UNIT_RESET = 5,
    ISCSI_TARGET_WARM_RESET = 6,
    ISCSI_TARGET_COLD_RESET = 7,
    ISCSI_TASK_REASSIGN = 8,
    ISCSI_QUERY_TASK = 9, /* from here on RFC 7144 */
    ISCSI_QUERY_TASK_SET = 10,
    ISCSI_I_T_NEXUS_RESET = 11,
    ISCSI_QUERY_ASYNC_EVENT = 12,
};

enum iscsi_tmf_result {
    ISCSI_TMF_COMPLETE = 0,
    ISCSI_TMF_NO_TASK = 1,
    ISCSI_TMF_NO_LUN = 2,
    ISCSI_TMF_STILL_ALLEGIANT = 3,
    ISCSI_TMF_NO_REASSIGN = 4,
    ISCSI_TMF_NOT_SUPPORTED = 5,
    ISCSI_TMF_NOT_AUTHORIZED = 6,
    ISCSI_TMF_SUCCEEDED = 7, /* RFC 7144 */
    ISCSI_TMF_REJECTED = 255,
};

enum iscsi_async_event {
    ISCSI_ASYNC_SCSI = 0,
    ISCSI_ASYNC_LOGOUT_REQUESTED = 1,
    ISCSI_ASYNC_CONNECTION_DROP = 2,
    ISCSI_ASYNC_SESSION_DROP = 3,
    ISCSI_ASYNC_NEGOTIATION = 4,
    ISCSI_ASYNC_TASK_TERMINATION = 5,
};

enum iscsi_reject_reason {
    ISCSI_REJECT_DATA_DIGEST = 0x02,
    ISCSI_REJECT_SNACK = 0x03,
    ISCSI_REJECT_PROTOCOL = 0x04,
    ISCSI_REJECT_NOT_SUPPORTED = 0x05,
    ISCSI_REJECT_TOO_MANY_IMMEDIATE = 0x06,
    ISCSI_REJECT_TASK_IN_PROGRESS = 0x07,
    ISCSI_REJECT_INVALID_DATA_ACK = 0x08,
    ISCSI_REJECT_INVALID_FIELD = 0x09,
    ISCSI_REJECT_NO_RESOURCES = 0x0a,
    ISCSI_REJECT_NEGOTIATION_RESET = 0x0b, /* never sent; 11.17.1 */
    ISCSI_REJECT_WAITING_FOR_LOGOUT = 0x0c,
};

enum iscsi_logout_reason {
    ISCSI_LOGOUT_SESSION = 0,
    ISCSI_LOGOUT_CONNECTION = 1,
    ISCSI_LOGOUT_RECOVERY = 2,
};

enum iscsi_logout_result {
    ISCSI_LOGOUT_DONE = 0,
    ISCSI_LOGOUT_NO_CID = 1,
    ISCSI_LOGOUT_NO_RECOVERY = 2,
    ISCSI_LOGOUT_CLEANUP_FAILED = 3,
};

enum iscsi_snack_type {
    ISCSI_SNACK_DATA_R2T = 0,
    ISCSI_SNACK_STATUS = 1,
    ISCSI_SNACK_DATA_ACK = 2,
    ISCSI_SNACK_R_DATA = 3,
};

/* TaskReporting; 13.23 */
enum iscsi_task_reporting {
    ISCSI_REPORT_RFC3720,
    ISCSI_REPORT_RESPONSE_FENCE,
    ISCSI_REPORT_FAST_ABORT,
};

/* The standard's words, for messages and logs; "opcode 0x1c" and the like for unknown codes go
 * into a buffer of the caller (at least 32 bytes), which is returned then. */
const char *iscsi_opcode_name(uint8_t opcode, char buf[32]);
const char *iscsi_reject_name(uint8_t reason, char buf[32]);
const char *iscsi_tmf_name(uint8_t function, char buf[32]);
const char *iscsi_tmf_response_name(uint8_t response, char buf[32]);

#endif
