/* SPDX-License-Identifier: BSD-2-Clause */
/* The device server's commands: what judges and what executes each. */
#include "scsi/lu_int.h"

#include <assert.h>

/* Of the reservation tables of SPC-4 5.12.1 and SBC-3 4.17: FREE commands pass always, READS pass
 * the write exclusive types, the others conflict for those who are not let in. */
enum {
    MEDIUM_READ = CMD_MEDIUM | CMD_READS | CMD_BLOCKS,
    MEDIUM_WRITE = CMD_MEDIUM | CMD_WRITES | CMD_BLOCKS,
    ALWAYS = CMD_NO_UA | CMD_FREE | CMD_FREE_R6 | CMD_ABSENT,
};

static const struct lu_command commands[SCSI_CMD_COUNT] = {
    [SCSI_CMD_TEST_UNIT_READY] = {NULL, lu_good, CMD_MEDIUM | CMD_FREE},
    [SCSI_CMD_REQUEST_SENSE] = {lu_check_request_sense, lu_request_sense, ALWAYS},
    [SCSI_CMD_INQUIRY] = {lu_check_inquiry, lu_inquiry, ALWAYS},
    [SCSI_CMD_REPORT_LUNS] = {lu_check_report_luns, lu_report_luns, ALWAYS},
    [SCSI_CMD_RESERVE_6] = {NULL, lu_reserve_6, CMD_FREE},
    [SCSI_CMD_RELEASE_6] = {NULL, lu_release_6, CMD_FREE | CMD_FREE_R6},
    [SCSI_CMD_MODE_SELECT_6] = {lu_check_mode_select, lu_mode_select, 0},
    [SCSI_CMD_MODE_SELECT_10] = {lu_check_mode_select, lu_mode_select, 0},
    [SCSI_CMD_MODE_SENSE_6] = {lu_check_mode_sense, lu_mode_sense, 0},
    [SCSI_CMD_MODE_SENSE_10] = {lu_check_mode_sense, lu_mode_sense, 0},
    [SCSI_CMD_START_STOP_UNIT] = {NULL, lu_start_stop, 0},
    [SCSI_CMD_SEND_DIAGNOSTIC] = {NULL, lu_good, 0},
    [SCSI_CMD_PREVENT_ALLOW] = {NULL, lu_good, CMD_FREE | CMD_FREE_R6},

    [SCSI_CMD_READ_CAPACITY_10] = {lu_check_capacity, lu_capacity,
                                   CMD_MEDIUM | CMD_FREE | CMD_FREE_R6},
    [SCSI_CMD_READ_CAPACITY_16] = {lu_check_capacity, lu_capacity,
                                   CMD_MEDIUM | CMD_FREE | CMD_FREE_R6},
    [SCSI_CMD_GET_LBA_STATUS] = {lu_check_lba_status, lu_lba_status, CMD_MEDIUM | CMD_FREE},

    [SCSI_CMD_READ_6] = {lu_check_read_write, lu_read, MEDIUM_READ},
    [SCSI_CMD_READ_10] = {lu_check_read_write, lu_read, MEDIUM_READ},
    [SCSI_CMD_READ_12] = {lu_check_read_write, lu_read, MEDIUM_READ},
    [SCSI_CMD_READ_16] = {lu_check_read_write, lu_read, MEDIUM_READ},
    [SCSI_CMD_WRITE_6] = {lu_check_read_write, lu_write, MEDIUM_WRITE | CMD_CUT},
    [SCSI_CMD_WRITE_10] = {lu_check_read_write, lu_write, MEDIUM_WRITE | CMD_CUT},
    [SCSI_CMD_WRITE_12] = {lu_check_read_write, lu_write, MEDIUM_WRITE | CMD_CUT},
    [SCSI_CMD_WRITE_16] = {lu_check_read_write, lu_write, MEDIUM_WRITE | CMD_CUT},
    [SCSI_CMD_WRITE_AND_VERIFY_10] = {lu_check_verify, lu_write_and_verify, MEDIUM_WRITE | CMD_CUT},
    [SCSI_CMD_WRITE_AND_VERIFY_12] = {lu_check_verify, lu_write_and_verify, MEDIUM_WRITE | CMD_CUT},
    [SCSI_CMD_WRITE_AND_VERIFY_16] = {lu_check_verify, lu_write_and_verify, MEDIUM_WRITE | CMD_CUT},
    [SCSI_CMD_VERIFY_10] = {lu_check_verify, lu_verify, MEDIUM_READ},
    [SCSI_CMD_VERIFY_12] = {lu_check_verify, lu_verify, MEDIUM_READ},
    [SCSI_CMD_VERIFY_16] = {lu_check_verify, lu_verify, MEDIUM_READ},
    [SCSI_CMD_PREFETCH_10] = {lu_check_range_only, lu_good, CMD_MEDIUM | CMD_READS},
    [SCSI_CMD_PREFETCH_16] = {lu_check_range_only, lu_good, CMD_MEDIUM | CMD_READS},
    [SCSI_CMD_SYNCHRONIZE_CACHE_10] = {lu_check_range_only, lu_synchronize, CMD_MEDIUM},
    [SCSI_CMD_SYNCHRONIZE_CACHE_16] = {lu_check_range_only, lu_synchronize, CMD_MEDIUM},

    [SCSI_CMD_WRITE_SAME_10] = {lu_check_write_same, lu_write_same, MEDIUM_WRITE | CMD_EXACT},
    [SCSI_CMD_WRITE_SAME_16] = {lu_check_write_same, lu_write_same, MEDIUM_WRITE | CMD_EXACT},
    [SCSI_CMD_COMPARE_AND_WRITE] = {lu_check_compare_and_write, lu_compare_and_write,
                                    MEDIUM_WRITE | CMD_EXACT},
    [SCSI_CMD_UNMAP] = {lu_check_unmap, lu_unmap, CMD_MEDIUM | CMD_WRITES | CMD_THIN},

    [SCSI_CMD_PR_READ_KEYS] = {lu_pr_check_in, lu_pr_in, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_READ_RESERVATION] = {lu_pr_check_in, lu_pr_in, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_REPORT_CAPABILITIES] = {lu_pr_check_in, lu_pr_in, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_READ_FULL_STATUS] = {lu_pr_check_in, lu_pr_in, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_REGISTER] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_RESERVE] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_RELEASE] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_CLEAR] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_PREEMPT] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_PREEMPT_AND_ABORT] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_REGISTER_AND_IGNORE] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},
    [SCSI_CMD_PR_REGISTER_AND_MOVE] = {lu_pr_check_out, lu_pr_out, CMD_FREE | CMD_PR},

    [SCSI_CMD_REPORT_TARGET_PORT_GROUPS] = {lu_check_report_groups, lu_report_groups, CMD_FREE},
    [SCSI_CMD_REPORT_SUPPORTED_OPCODES] = {lu_check_report_opcodes, lu_report_opcodes, 0},
    [SCSI_CMD_REPORT_SUPPORTED_TMF] = {lu_check_report_tmf, lu_report_tmf, 0},
};

const struct lu_command *lu_command(const struct lu *lu, enum scsi_command command)
{
    assert(command >= 0 && command < SCSI_CMD_COUNT);
    const struct lu_command *c = &commands[command];
    return c->execute && (!(c->flags & CMD_THIN) || lu->thin) ? c : NULL;
}
