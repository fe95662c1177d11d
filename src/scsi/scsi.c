/* SPDX-License-Identifier: BSD-2-Clause */
#include "scsi/scsi.h"

#include <stdio.h>

const char *scsi_status_name(uint8_t status, char buf[32])
{
    switch (status) {
    case SCSI_GOOD:
        return "good";
    case SCSI_CHECK_CONDITION:
        return "check condition";
    case SCSI_CONDITION_MET:
        return "condition met";
    case SCSI_BUSY:
        return "busy";
    case SCSI_RESERVATION_CONFLICT:
        return "reservation conflict";
    case SCSI_TASK_SET_FULL:
        return "task set full";
    case SCSI_ACA_ACTIVE:
        return "ACA active";
    case SCSI_TASK_ABORTED:
        return "task aborted";
    default:
        snprintf(buf, 32, "status 0x%02x", status);
        return buf;
    }
}

const char *scsi_key_name(uint8_t key, char buf[32])
{
    static const char *const names[16] = {
        "no sense",        "recovered error", "not ready",    "medium error",    "hardware error",
        "illegal request", "unit attention",  "data protect", "blank check",     "vendor specific",
        "copy aborted",    "aborted command", NULL,           "volume overflow", "miscompare",
        "completed",
    };

    if (key < 16 && names[key])
        return names[key];
    snprintf(buf, 32, "sense key 0x%x", key);
    return buf;
}

static const struct {
    uint16_t asc;
    const char *name;
} asc_names[] = {
    {0x0000, "no additional sense information"},
    {0x0006, "I/O process terminated"},
    {0x0016, "operation in progress"},
    {0x0100, "no index or sector signal"},
    {0x0200, "no seek complete"},
    {0x0300, "peripheral device write fault"},
    {0x0400, "logical unit not ready, cause not reportable"},
    {0x0401, "logical unit is becoming ready"},
    {0x0402, "logical unit needs a START UNIT command"},
    {0x0403, "logical unit not ready, someone has to help by hand"},
    {0x0404, "logical unit not ready, format in progress"},
    {0x0405, "logical unit not ready, rebuild in progress"},
    {0x0407, "logical unit not ready, operation in progress"},
    {0x0409, "logical unit not ready, self-test in progress"},
    {0x040a, "not accessible: asymmetric access state transition"},
    {0x040b, "not accessible: target port in standby state"},
    {0x040c, "not accessible: target port in unavailable state"},
    {0x0414, "logical unit not ready, space allocation in progress"},
    {0x041b, "logical unit not ready, sanitize in progress"},
    {0x0500, "logical unit does not respond to selection"},
    {0x0800, "logical unit communication failure"},
    {0x0801, "logical unit communication time-out"},
    {0x0802, "logical unit communication parity error"},
    {0x0b00, "warning"},
    {0x0b01, "warning: temperature exceeded"},
    {0x0c00, "write error"},
    {0x0c02, "write error, automatic reallocation failed"},
    {0x0c03, "write error, reassignment is recommended"},
    {0x0c0c, "write error, unexpected unsolicited data"},
    {0x0c0d, "write error, not enough unsolicited data"},
    {0x0e00, "invalid information unit"},
    {0x0e01, "information unit too short"},
    {0x0e02, "information unit too long"},
    {0x0e03, "invalid field in command information unit"},
    {0x1000, "ID CRC or ECC error"},
    {0x1001, "logical block guard check failed"},
    {0x1002, "logical block application tag check failed"},
    {0x1003, "logical block reference tag check failed"},
    {0x1100, "unrecovered read error"},
    {0x1101, "read retries exhausted"},
    {0x1104, "unrecovered read error, automatic reallocation failed"},
    {0x110b, "unrecovered read error, reassignment is recommended"},
    {0x1113, "read error, failed retransmission request"},
    {0x1400, "recorded entity not found"},
    {0x1600, "data synchronization mark error"},
    {0x1700, "recovered data without error correction"},
    {0x1701, "recovered data with retries"},
    {0x1800, "recovered data with error correction"},
    {0x1900, "defect list error"},
    {0x1a00, "parameter list length error"},
    {0x1b00, "synchronous data transfer error"},
    {0x1c00, "defect list not found"},
    {0x1d00, "miscompare during verify"},
    {0x2000, "invalid command operation code"},
    {0x2100, "logical block address out of range"},
    {0x2101, "invalid element address"},
    {0x2400, "invalid field in CDB"},
    {0x2500, "logical unit not supported"},
    {0x2600, "invalid field in parameter list"},
    {0x2601, "parameter not supported"},
    {0x2602, "parameter value invalid"},
    {0x2604, "invalid release of persistent reservation"},
    {0x2608, "unsupported segment descriptor type code"},
    {0x2700, "write protected"},
    {0x2701, "hardware write protected"},
    {0x2702, "logical unit software write protected"},
    {0x2703, "associated write protect"},
    {0x2704, "persistent write protect"},
    {0x2705, "permanent write protect"},
    {0x2707, "space allocation failed write protect"},
    {0x2800, "not ready to ready change, medium may have changed"},
    {0x2900, "power on, reset, or bus device reset occurred"},
    {0x2901, "power on occurred"},
    {0x2902, "SCSI bus reset occurred"},
    {0x2903, "bus device reset function occurred"},
    {0x2904, "device internal reset"},
    {0x2905, "transceiver mode changed to single-ended"},
    {0x2907, "I_T nexus loss occurred"},
    {0x2a00, "parameters changed"},
    {0x2a01, "mode parameters changed"},
    {0x2a02, "log parameters changed"},
    {0x2a03, "reservations preempted"},
    {0x2a04, "reservations released"},
    {0x2a05, "registrations preempted"},
    {0x2a06, "asymmetric access state changed"},
    {0x2a07, "implicit asymmetric access state transition failed"},
    {0x2a09, "capacity data has changed"},
    {0x2c00, "command sequence error"},
    {0x2f00, "commands cleared by another initiator"},
    {0x3000, "incompatible medium installed"},
    {0x3100, "medium format corrupted"},
    {0x3101, "format command failed"},
    {0x3200, "no defect spare location available"},
    {0x3500, "enclosure services failure"},
    {0x3700, "rounded parameter"},
    {0x3807, "thin provisioning soft threshold reached"},
    {0x3900, "saving parameters not supported"},
    {0x3a00, "medium not present"},
    {0x3a01, "medium not present, tray closed"},
    {0x3a02, "medium not present, tray open"},
    {0x3d00, "invalid bits in identify message"},
    {0x3e00, "logical unit has not self-configured yet"},
    {0x3e01, "logical unit failure"},
    {0x3f00, "target operating conditions have changed"},
    {0x3f01, "microcode has been changed"},
    {0x3f03, "inquiry data has changed"},
    {0x3f05, "device identifier changed"},
    {0x3f0e, "reported LUNs data has changed"},
    {0x4000, "RAM failure"},
    {0x4300, "message error"},
    {0x4400, "internal target failure"},
    {0x4471, "ATA device failed set features"},
    {0x4500, "select or reselect failure"},
    {0x4700, "SCSI parity error"},
    {0x4701, "data phase CRC error detected"},
    {0x4703, "information unit CRC error detected"},
    {0x4704, "asynchronous information protection error detected"},
    {0x4705, "protocol service CRC error"},
    {0x477f, "some commands cleared by iSCSI protocol event"},
    {0x4800, "initiator detected error message received"},
    {0x4900, "invalid message error"},
    {0x4a00, "command phase error"},
    {0x4b00, "data phase error"},
    {0x4c00, "logical unit failed self-configuration"},
    {0x4e00, "overlapped commands attempted"},
    {0x5300, "media load or eject failed"},
    {0x5302, "medium removal prevented"},
    {0x5500, "system resource failure"},
    {0x5502, "insufficient reservation resources"},
    {0x5503, "insufficient resources"},
    {0x5504, "insufficient registration resources"},
    {0x5505, "insufficient access control resources"},
    {0x5506, "auxiliary memory out of space"},
    {0x5d00, "failure prediction threshold exceeded"},
    {0x5e00, "low power condition on"},
    {0x6500, "voltage fault"},
    {0x6700, "configuration failure"},
};

const char *scsi_asc_name(uint8_t asc, uint8_t ascq, char buf[32])
{
    uint16_t code = (uint16_t)(asc << 8 | ascq);

    for (size_t i = 0; i < sizeof asc_names / sizeof *asc_names; i++)
        if (asc_names[i].asc == code)
            return asc_names[i].name;
    snprintf(buf, 32, "additional sense %02x/%02x", asc, ascq);
    return buf;
}
