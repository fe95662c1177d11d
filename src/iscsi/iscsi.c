/* SPDX-License-Identifier: BSD-2-Clause */
#include "iscsi/iscsi.h"

#include <stdio.h>

enum { NAME_SIZE = 32 };

struct name {
    uint8_t code;
    const char *text;
};

static const struct name opcodes[] = {
    {ISCSI_NOP_OUT, "NOP-Out"},
    {ISCSI_SCSI_COMMAND, "SCSI Command"},
    {ISCSI_TMF_REQUEST, "Task Management Request"},
    {ISCSI_LOGIN_REQUEST, "Login Request"},
    {ISCSI_TEXT_REQUEST, "Text Request"},
    {ISCSI_DATA_OUT, "SCSI Data-Out"},
    {ISCSI_LOGOUT_REQUEST, "Logout Request"},
    {ISCSI_SNACK, "SNACK Request"},
    {ISCSI_NOP_IN, "NOP-In"},
    {ISCSI_SCSI_RESPONSE, "SCSI Response"},
    {ISCSI_TMF_RESPONSE, "Task Management Response"},
    {ISCSI_LOGIN_RESPONSE, "Login Response"},
    {ISCSI_TEXT_RESPONSE, "Text Response"},
    {ISCSI_DATA_IN, "SCSI Data-In"},
    {ISCSI_LOGOUT_RESPONSE, "Logout Response"},
    {ISCSI_R2T, "R2T"},
    {ISCSI_ASYNC, "Asynchronous Message"},
    {ISCSI_REJECT, "Reject"},
};

static const struct name rejects[] = {
    {ISCSI_REJECT_DATA_DIGEST, "data digest error"},
    {ISCSI_REJECT_SNACK, "SNACK reject"},
    {ISCSI_REJECT_PROTOCOL, "protocol error"},
    {ISCSI_REJECT_NOT_SUPPORTED, "command not supported"},
    {ISCSI_REJECT_TOO_MANY_IMMEDIATE, "too many immediate commands"},
    {ISCSI_REJECT_TASK_IN_PROGRESS, "task in progress"},
    {ISCSI_REJECT_INVALID_DATA_ACK, "invalid data acknowledgment"},
    {ISCSI_REJECT_INVALID_FIELD, "invalid PDU field"},
    {ISCSI_REJECT_NO_RESOURCES, "out of resources"},
    {ISCSI_REJECT_NEGOTIATION_RESET, "negotiation reset"},
    {ISCSI_REJECT_WAITING_FOR_LOGOUT, "waiting for logout"},
};

static const struct name functions[] = {
    {ISCSI_ABORT_TASK, "ABORT TASK"},
    {ISCSI_ABORT_TASK_SET, "ABORT TASK SET"},
    {ISCSI_CLEAR_ACA, "CLEAR ACA"},
    {ISCSI_CLEAR_TASK_SET, "CLEAR TASK SET"},
    {ISCSI_LOGICAL_UNIT_RESET, "LOGICAL UNIT RESET"},
    {ISCSI_TARGET_WARM_RESET, "TARGET WARM RESET"},
    {ISCSI_TARGET_COLD_RESET, "TARGET COLD RESET"},
    {ISCSI_TASK_REASSIGN, "TASK REASSIGN"},
    {ISCSI_QUERY_TASK, "QUERY TASK"},
    {ISCSI_QUERY_TASK_SET, "QUERY TASK SET"},
    {ISCSI_I_T_NEXUS_RESET, "I_T NEXUS RESET"},
    {ISCSI_QUERY_ASYNC_EVENT, "QUERY ASYNCHRONOUS EVENT"},
};

static const struct name responses[] = {
    {ISCSI_TMF_COMPLETE, "function complete"},
    {ISCSI_TMF_NO_TASK, "task does not exist"},
    {ISCSI_TMF_NO_LUN, "LUN does not exist"},
    {ISCSI_TMF_STILL_ALLEGIANT, "task still allegiant"},
    {ISCSI_TMF_NO_REASSIGN, "task allegiance reassignment not supported"},
    {ISCSI_TMF_NOT_SUPPORTED, "function not supported"},
    {ISCSI_TMF_NOT_AUTHORIZED, "function authorization failed"},
    {ISCSI_TMF_SUCCEEDED, "function succeeded"},
    {ISCSI_TMF_REJECTED, "function rejected"},
};

static const char *find(const struct name *names, size_t count, const char *kind, uint8_t code,
                        char buf[NAME_SIZE])
{
    for (size_t i = 0; i < count; i++)
        if (names[i].code == code)
            return names[i].text;
    snprintf(buf, NAME_SIZE, "%s 0x%02x", kind, code);
    return buf;
}

#define FIND(names, kind, code, buf) find(names, sizeof(names) / sizeof(*(names)), kind, code, buf)

const char *iscsi_opcode_name(uint8_t opcode, char buf[32])
{
    return FIND(opcodes, "opcode", opcode, buf);
}

const char *iscsi_reject_name(uint8_t reason, char buf[32])
{
    return FIND(rejects, "reason", reason, buf);
}

const char *iscsi_tmf_name(uint8_t function, char buf[32])
{
    return FIND(functions, "function", function, buf);
}

const char *iscsi_tmf_response_name(uint8_t response, char buf[32])
{
    return FIND(responses, "response", response, buf);
}
