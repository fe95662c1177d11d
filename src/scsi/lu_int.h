/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the logical unit know of each other; lu.h is for everybody else. */
#ifndef SCSI_LU_INT_H
#define SCSI_LU_INT_H

#include "scsi/lu.h"
#include "scsi/pages.h"

enum {
    LU_UA_MAX = 12,
    LU_GRANULES = 4096,        /* counters of claims, by the hash of a 4 KiB granule */
    LU_SCRATCH_SIZE = 1 << 20, /* bytes: COMPARE AND WRITE of 255 blocks of 4096 fits */
    LU_COMPARE_MAX = 255,      /* blocks of a COMPARE AND WRITE */
    LU_UNMAP_DESCRIPTORS = 256,
    LU_UNMAP_BLOCKS = 1 << 20,
    LU_SAME_BLOCKS = 1 << 20,
    LU_MAP_UNITS = 1 << 22,   /* bits of the map of deallocated blocks at most */
    LU_EXTENTS_MAX = 64,      /* of GET LBA STATUS */
    LU_PARAMETERS_MAX = 1024, /* bytes of a PERSISTENT RESERVE OUT or MODE SELECT list */
};

enum { CLAIM_NONE, CLAIM_READ, CLAIM_WRITE };

/* What a command is to reservations and states; the flags of the command table. */
enum {
    CMD_NO_UA = 1 << 0,   /* runs although a unit attention is pending, which stays */
    CMD_MEDIUM = 1 << 1,  /* needs a started medium */
    CMD_WRITES = 1 << 2,  /* changes the medium: refused when write protected */
    CMD_EXACT = 1 << 3,   /* the initiator announces exactly the data-out that is asked for */
    CMD_FREE = 1 << 4,    /* passes every persistent reservation */
    CMD_READS = 1 << 5,   /* passes the write exclusive ones */
    CMD_FREE_R6 = 1 << 6, /* passes RESERVE(6) of another nexus */
    CMD_THIN = 1 << 7,    /* exists on thin units only */
    CMD_PR = 1 << 8,      /* PERSISTENT RESERVE: conflicts with any RESERVE(6) */
    CMD_BLOCKS = 1 << 9,  /* data is whole blocks */
    CMD_CUT = 1 << 11,    /* with less data-out than asked for it writes what there is */
    CMD_ABSENT = 1 << 10, /* answered also where no logical unit is */
};

struct lu_command {
    /* Judges what the command says and fills in data lengths and range; may call lu_refuse(). */
    void (*check)(struct lu_task *task);
    /* Ends the task, or starts a disk request with task->next. */
    void (*execute)(struct lu_task *task);
    unsigned flags;
};

struct lu_task_set {
    unsigned ordered, head_of_queue; /* how many of these are in it */
};

struct lu_nexus {
    struct lu *lu;
    struct lu_nexus *prev, *next;
    char initiator[LU_INITIATOR_NAME_MAX + 1];
    uint8_t isid[6];
    char port_name[LU_PORT_NAME_MAX];
    struct lu_port port;
    unsigned tasks;
    unsigned ua_count;
    uint16_t ua[LU_UA_MAX];
    int registrant; /* index into pr.registrants, -1: none */
    uint16_t pr_ua; /* what a PERSISTENT RESERVE OUT in progress will tell this nexus, 0: nothing */
    bool pr_preempted; /* and its tasks are to be aborted, if asked for */
    struct lu_task_set set;
    void *user;
};

struct lu_registrant {
    uint64_t key; /* 0: the place is free */
    uint16_t relative_port;
    char port_name[LU_PORT_NAME_MAX]; /* of the initiator */
};

struct lu_pr {
    struct lu_registrant registrants[LU_REGISTRANTS_MAX];
    uint32_t generation;
    uint8_t type; /* enum scsi_pr_type, 0: no reservation */
    int holder;   /* -1: none, or all registrants */
    bool aptpl;
};

struct lu_mode {
    bool wce, d_sense, swp, tas;
};

struct lu_identity {
    uint8_t naa[8];
    char serial[LU_SERIAL_MAX + 1];
    char t10[40];
    char target_name[LU_INITIATOR_NAME_MAX + 1];
    char vendor[9], product[17], revision[5];
};

struct lu_list {
    struct lu_task *first, *last; /* by wait_next */
};

/* Counts of claims; a range of more granules than there are counters is wide. */
struct lu_claims {
    uint16_t readers[LU_GRANULES], writers[LU_GRANULES];
    unsigned all_readers, all_writers; /* wide ones included */
    unsigned wide_readers, wide_writers;
};

struct lu {
    struct lu_opts opts; /* the pointers in it are not ours; see identity, ports, aptpl_path */
    struct lu_identity id;
    struct lp_disk *disk; /* NULL: opened on a queue */
    struct lp_queue *q;   /* NULL: absent */
    uint64_t blocks;
    uint32_t block_size;
    unsigned shift;
    bool read_only, thin, lbprz;
    bool stopped;
    struct lu_mode mode;
    struct lu_port ports[LU_PORTS_MAX];
    unsigned port_count;

    struct lu_nexus *nexuses;
    struct lu_nexus *reserved_by; /* RESERVE(6) */
    struct lu_pr pr;
    struct lu_pr pr_before; /* while a PERSISTENT RESERVE OUT executes */
    char *aptpl_path;

    struct lu_task *set_first, *set_last;   /* by arrival */
    struct lu_task *work_first, *work_last; /* by order of execution */
    unsigned tasks, blocked, in_flight;
    uint64_t sequence;
    struct lu_task_set shared_set;
    struct lu_claims claims;
    struct lu_list ended;   /* done() has to be called */
    struct lu_list stalled; /* the disk queue was full */
    bool draining;

    uint8_t *scratch;
    struct lu_task *scratch_owner;
    struct lu_list scratch_waiters;

    uint64_t *map; /* a bit a unit: it was deallocated; NULL: none was */
    unsigned map_shift;
};

/* ---- lu_commands.c ---- */

/* NULL: this LU does not have it. */
const struct lu_command *lu_command(const struct lu *lu, enum scsi_command command);

/* ---- lu_tasks.c ---- */

/* From check(): the task ends so when it is submitted. */
void lu_refuse(struct lu_task *task, struct scsi_sense sense);
void lu_refuse_status(struct lu_task *task, uint8_t status);
/* From execute() and later. */
void lu_end(struct lu_task *task, uint8_t status);
void lu_end_sense(struct lu_task *task, struct scsi_sense sense);
/* Aborts on behalf of `by` (NULL: nobody's). */
void lu_abort(struct lu_task *task, const struct lu_nexus *by);
void lu_abort_all(struct lu *lu, const struct lu_nexus *of, const struct lu_nexus *by,
                  const struct lu_task *but, bool attention);
/* Between two steps of a task: true when it was aborted meanwhile; it has ended then. */
bool lu_aborted(struct lu_task *task);
void lu_drain(struct lu *lu);
void lu_list_add(struct lu_list *list, struct lu_task *task);
struct lu_task *lu_list_pop(struct lu_list *list);
void lu_list_remove(struct lu_list *list, struct lu_task *task);

/* ---- lu_io.c ---- */

/* One disk request of the task; next(task, status) when it has ended, unless it was aborted. */
void lu_io(struct lu_task *task, enum lp_op op, uint32_t flags, uint64_t lba, uint64_t blocks,
           const struct iovec *iov, uint32_t iovcnt, void (*next)(struct lu_task *, int));
/* The same with the LU's scratch memory, which the task owns. */
void lu_io_scratch(struct lu_task *task, enum lp_op op, uint32_t flags, uint64_t lba,
                   uint32_t blocks, void (*next)(struct lu_task *, int));
/* next(task, 0) when the task owns the scratch memory, maybe at once; -ENOMEM without memory. */
void lu_take_scratch(struct lu_task *task, void (*next)(struct lu_task *, int));
void lu_release_scratch(struct lu_task *task);
void lu_forget_wait(struct lu_task *task); /* it was aborted while it waited */
uint32_t lu_scratch_blocks(const struct lu *lu);
/* Ends the task for a failed disk request. */
void lu_end_errno(struct lu_task *task, int status);

/* Appends data-in, cut at the allocation length and the room. lu_end_data() ends with GOOD. */
void lu_put(struct lu_task *task, const void *bytes, size_t n);
void lu_end_data(struct lu_task *task);
/* Data-out bytes [at, at + n) into buf; false: so many are not there. */
bool lu_get(const struct lu_task *task, uint64_t at, void *buf, size_t n);
/* The first byte in which data-out from `at` differs from buf[0..n), or n. */
size_t lu_compare(const struct lu_task *task, uint64_t at, const uint8_t *buf, size_t n);

/* ---- lu_ua.c ---- */

void lu_ua_add(struct lu_nexus *nexus, uint16_t asc);
uint16_t lu_ua_take(struct lu_nexus *nexus); /* 0: none */
void lu_ua_remove(struct lu_nexus *nexus, uint16_t asc);

/* ---- lu_pr.c, lu_pr_file.c ---- */

bool lu_pr_conflict(const struct lu_task *task, const struct lu_command *command);
void lu_pr_nexus_opened(struct lu_nexus *nexus);
void lu_pr_check_out(struct lu_task *task);
void lu_pr_check_in(struct lu_task *task);
void lu_pr_out(struct lu_task *task);
void lu_pr_set_registrants(struct lu *lu);
int lu_pr_find(const struct lu_pr *pr, const char *port_name, uint16_t relative_port);
void lu_pr_in(struct lu_task *task);
void lu_reserve_6(struct lu_task *task);
void lu_release_6(struct lu_task *task);
bool lu_pr_is_all(uint8_t type);
bool lu_pr_is_registrants(uint8_t type);
unsigned lu_pr_count(const struct lu_pr *pr);
/* A TransportID of an iSCSI initiator port; SPC-4 7.6.4.6. Returns its length, at most
 * LU_PORT_NAME_MAX + 4. The inverse: 0, or -1 when it is something else. */
size_t lu_transport_id_pack(const char *port_name, uint8_t *out);
int lu_transport_id_unpack(const uint8_t *bytes, size_t n, char port_name[LU_PORT_NAME_MAX]);
/* Replaces the file atomically, on the medium before it returns. 0, or -errno. */
int lu_pr_save(const struct lu *lu);
int lu_pr_load(struct lu *lu, struct lp_error *err);
int lu_pr_parse(struct lu_pr *pr, const char *text, size_t n, struct lp_error *err);

/* ---- lu_inquiry.c, lu_mode.c, lu_report.c ---- */

void lu_check_inquiry(struct lu_task *task);
void lu_inquiry(struct lu_task *task);
void lu_check_mode_sense(struct lu_task *task);
void lu_mode_sense(struct lu_task *task);
void lu_check_mode_select(struct lu_task *task);
void lu_mode_select(struct lu_task *task);
struct lu_mode lu_mode_default(const struct lu *lu);
bool lu_write_protected(const struct lu *lu);
void lu_check_capacity(struct lu_task *task);
void lu_capacity(struct lu_task *task);
void lu_check_report_luns(struct lu_task *task);
void lu_report_luns(struct lu_task *task);
void lu_check_report_opcodes(struct lu_task *task);
void lu_report_opcodes(struct lu_task *task);
void lu_check_report_tmf(struct lu_task *task);
void lu_report_tmf(struct lu_task *task);
void lu_check_report_groups(struct lu_task *task);
void lu_report_groups(struct lu_task *task);
void lu_check_request_sense(struct lu_task *task);
void lu_request_sense(struct lu_task *task);
void lu_good(struct lu_task *task);
void lu_check_start_stop(struct lu_task *task);
void lu_start_stop(struct lu_task *task);

/* ---- lu_rw.c, lu_same.c ---- */

/* Judges [lba, lba + blocks) and claims it; false: refused. */
bool lu_check_range(struct lu_task *task, uint64_t lba, uint64_t blocks, uint8_t claim);
void lu_check_read_write(struct lu_task *task);
void lu_read(struct lu_task *task);
void lu_write(struct lu_task *task);
void lu_check_verify(struct lu_task *task);
void lu_verify(struct lu_task *task);
void lu_write_and_verify(struct lu_task *task);
void lu_check_range_only(struct lu_task *task);
void lu_synchronize(struct lu_task *task);
/* The end of a write: a flush where FUA was asked for and the disk cannot do it. */
void lu_written(struct lu_task *task, int status);
uint32_t lu_write_flags(const struct lu_task *task);
void lu_check_compare_and_write(struct lu_task *task);
void lu_compare_and_write(struct lu_task *task);
void lu_check_write_same(struct lu_task *task);
void lu_write_same(struct lu_task *task);
void lu_check_unmap(struct lu_task *task);
void lu_unmap(struct lu_task *task);
/* The range that the descriptors span, now that they are there. */
void lu_claim_unmap(struct lu_task *task);
void lu_check_lba_status(struct lu_task *task);
void lu_lba_status(struct lu_task *task);

/* ---- lu_map.c ---- */

void lu_map_free(struct lu *lu);
void lu_map_deallocated(struct lu *lu, uint64_t lba, uint64_t blocks);
void lu_map_written(struct lu *lu, uint64_t lba, uint64_t blocks);
/* How many blocks from lba on have the same state, 1.. (up to limit); *deallocated says which. */
uint64_t lu_map_run(const struct lu *lu, uint64_t lba, uint64_t limit, bool *deallocated);

#endif
