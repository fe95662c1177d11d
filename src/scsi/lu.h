/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A logical unit: the device server and task set that answer CDBs from any disk.
 *
 *     lu_task_init(task, nexus)     the caller fills in cdb, attribute, tag, done ...
 *     lu_task_prepare(task)         the task enters the task set; says how much data it needs
 *     ... the caller provides memory, and for data-out fetches the bytes ...
 *     lu_task_submit(task)          executes; done(task) comes now or from lu_poll()
 *
 * Every prepared task ends in exactly one call of done(): after submit, or after an abort. From
 * done() on the task is the caller's again.
 *
 * Threads: a logical unit, its nexuses and tasks belong to one thread. Nothing is locked, no call
 * blocks but lu_new() and lu_free(), and (PERSISTENT RESERVE OUT with APTPL only) submit, which
 * writes a small file.
 * done() may be called from within lu_task_submit(), lu_task_abort(), lu_reset() and the other
 * functions below that end tasks, and from lu_poll(). It may prepare and submit tasks of any
 * logical unit; it may not free a logical unit, nor open or close a nexus.
 * Memory: READ and WRITE move data between the caller's memory and the disk directly, as one
 * lp_request that is part of the task. Nothing is allocated for an I/O.
 */
#ifndef SCSI_LU_H
#define SCSI_LU_H

#include "scsi/cdb.h"
#include "scsi/sense.h"

#include <lunpath/disk.h>
#include <lunpath/error.h>
#include <lunpath/queue.h>

enum {
    LU_INITIATOR_NAME_MAX = 223, /* bytes of an iSCSI name, without NUL */
    LU_PORT_NAME_MAX = 256,      /* room for "name,i,0x" and 12 digits, with NUL */
    LU_PORTS_MAX = 64,
    LU_REGISTRANTS_MAX = 128, /* persistent reservation keys a logical unit keeps */
    LU_SERIAL_MAX = 36,
    LU_ANY_RELATIVE_PORT = 0,
};

struct lu;
struct lu_nexus;

/* One port of the target: where an I_T nexus ends. */
struct lu_port {
    uint16_t relative_id; /* RELATIVE TARGET PORT IDENTIFIER, from 1, unique in the target */
    uint16_t group;       /* TARGET PORT GROUP, from 1; iSCSI: the portal group tag */
};

/* Everything is copied by lu_new() but for the disk and the callbacks' user pointers. */
struct lu_opts {
    uint32_t number;         /* of this LUN; for messages and for the identity below */
    const char *target_name; /* iSCSI name; seeds the NAA and T10 identifiers with number,
                              * so that they are stable and do not depend on the path */
    const char *identity;    /* not NULL: seeds the identifiers instead (one LU under two names) */
    const char *serial;      /* NULL: made from the identity */
    const char *vendor;      /* 8 characters at most; NULL: "LUNPATH" */
    const char *product;     /* 16; NULL: "disk" */
    const char *revision;    /* 4; NULL: from the program's version */

    uint64_t size;                /* bytes; 0: the whole disk */
    uint32_t block_size;          /* 512 or 4096, at least the disk's; 0: 512, or the disk's */
    uint8_t physical_exponent;    /* LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT */
    bool read_only;               /* beside the disk's own */
    bool thin;                    /* offer UNMAP, if the disk has discard */
    bool discard_zeroes;          /* the disk's discarded ranges read as zeros: LBPRZ */
    bool write_cache;             /* the disk keeps acknowledged writes in volatile memory until a
                                   * flush: WCE. FUA works in any case when the disk has it */
    bool rotational;              /* B1: rate "not reported", else "non-rotating" */
    bool descriptor_sense;        /* default of D_SENSE */
    bool shared_task_set;         /* TST 000b: ordering and CLEAR TASK SET span all nexuses; else
                                   * TST 001b, each nexus has its own task set */
    bool task_aborted_status;     /* default of TAS */
    unsigned depth;               /* tasks in the task set, from 1; 0: 128 */
    uint32_t max_transfer_blocks; /* MAXIMUM TRANSFER LENGTH; 0: 8 MiB worth of blocks */

    const struct lu_port *ports; /* none: one port 1 in group 1 */
    unsigned port_count;
    unsigned iscsi_protocol_level; /* version descriptor (RFC 7144 4.2): 1 or 2; 0: 1 */

    /* For REPORT LUNS: the index-th LUN of the target that this nexus may see, ascending. False:
     * no more. NULL: this LUN only. */
    bool (*lun_at)(void *user, const struct lu_nexus *nexus, unsigned index, uint8_t lun[8]);
    void *lun_user;

    /* The file that keeps persistent reservations over a restart (APTPL), or NULL: APTPL is
     * refused. It is replaced atomically; a missing one is an empty one. */
    const char *aptpl_path;
};

/* disk: stays the caller's, outlives the LU; one of its queues is opened. NULL: an absent logical
 * unit, which answers for every LUN that does not exist (INQUIRY, REPORT LUNS, REQUEST SENSE work;
 * everything else is 05/25/00). NULL on failure, with err: limits that contradict each other, an
 * APTPL file that is damaged. */
struct lu *lu_new(struct lp_disk *disk, const struct lu_opts *opts, struct lp_error *err);

/* The same on a queue that the LU owns from now on (on failure too). For tests and other seams. */
struct lu *lu_new_queue(struct lp_queue *queue, const struct lu_opts *opts, struct lp_error *err);

/* No task is left and every nexus is closed. Flushes nothing. */
void lu_free(struct lu *lu);

uint32_t lu_block_size(const struct lu *lu);
uint64_t lu_blocks(const struct lu *lu);
unsigned lu_tasks(const struct lu *lu); /* in the task set */

/* ---- nexuses ---- */

/* An I_T nexus: one initiator port (iSCSI: name and ISID) and one target port. */
struct lu_nexus;

struct lu_nexus_id {
    const char *initiator_name; /* iSCSI name */
    uint8_t isid[6];
    uint16_t relative_port; /* one of lu_opts.ports */
};

/* Logs an initiator port in to the LU. The first unit attention is 29/00. NULL: no memory, or an
 * unusable id; see err. */
struct lu_nexus *lu_nexus_open(struct lu *lu, const struct lu_nexus_id *id, struct lp_error *err);

/* The initiator port has gone (logout, session lost or ended). Aborts the nexus's tasks, releases
 * RESERVE(6); persistent reservations stay. All its tasks have ended: lu_nexus_tasks() is 0, or
 * lu_nexus_loss() was called and polled for. */
void lu_nexus_close(struct lu_nexus *nexus);
unsigned lu_nexus_tasks(const struct lu_nexus *nexus);

/* I_T NEXUS LOSS: aborts its tasks, releases RESERVE(6), next command gets 29/07 (S-21, S-42). */
void lu_nexus_loss(struct lu_nexus *nexus);

/* Queues a unit attention for one nexus, or (lu_ua) for all but one (NULL: for all). For what the
 * transport knows: 3F/0E after the LUN list changed, 47/7F after tasks were ended by the protocol.
 * asc: enum scsi_asc or another ASC << 8 | ASCQ. */
void lu_nexus_ua(struct lu_nexus *nexus, uint16_t asc);
void lu_ua(struct lu *lu, const struct lu_nexus *except, uint16_t asc);

void *lu_nexus_user(const struct lu_nexus *nexus);
void lu_nexus_set_user(struct lu_nexus *nexus, void *user);
struct lu *lu_nexus_lu(const struct lu_nexus *nexus);

/* ---- tasks ---- */

enum lu_attribute { LU_SIMPLE, LU_ORDERED, LU_HEAD_OF_QUEUE, LU_ACA };

enum lu_task_state {
    LU_TASK_IDLE,    /* not in the task set */
    LU_TASK_ENTERED, /* prepared; waits for its data or for lu_task_submit() */
    LU_TASK_BLOCKED, /* submitted; waits for older tasks (attributes, overlapping blocks) */
    LU_TASK_RUNNING, /* executes; may wait for the disk */
    LU_TASK_ENDED,   /* done() is about to be called */
};

/* Owned and kept by the caller; freely embedded in its own struct. */
struct lu_task {
    /* Set by the caller before lu_task_prepare(). lu_task_init() sets the defaults. */
    struct lu_nexus *nexus;
    uint8_t cdb[SCSI_CDB_MAX];
    uint8_t cdb_size; /* bytes that the transport delivered, 1..32 (iSCSI: 16) */
    enum lu_attribute attribute;
    uint64_t tag;             /* for the caller and lu_task_find(); iSCSI: the ITT */
    uint64_t expected_length; /* bytes of data-out that the initiator announced (iSCSI: EDTL of a
                               * write). When the CDB asks for more, WRITE and WRITE AND VERIFY
                               * write as much, and other commands end with 05/0E/03 and no effect.
                               * COMPARE AND WRITE and WRITE SAME want exactly what they ask for */
    void (*done)(struct lu_task *task);
    void *user;

    /* Set by lu_task_prepare(). */
    uint64_t data_out_length; /* bytes of data-out that the CDB asks for */
    uint64_t data_in_length;  /* bytes of data-in that the CDB may give at most (allocation length,
                               * or transfer length): the SCSI transfer length for residuals */
    uint32_t data_unit;       /* the caller's data_length is a multiple of this (block size or 1) */
    bool refused;             /* ends without using data: submit may follow at once with none */

    /* Set by the caller before lu_task_submit(). Stays untouched until done(). The segments hold
     * exactly data_length bytes. Data-out: data_out_length bytes (0 when refused), of which only
     * the first expected_length count, and only these need be there; memory for more is not read.
     * Data-in: room, at most data_in_length; with less room less is transferred. */
    const struct iovec *iov;
    uint32_t iovcnt;
    uint64_t data_length;

    /* The result, for done(). */
    uint8_t status;       /* enum scsi_status */
    bool aborted;         /* ended by a task management function or nexus loss: there is no status
                           * to send, unless status is TASK ABORTED (TAS) */
    uint8_t sense_length; /* of sense_data; 0 unless CHECK CONDITION */
    uint8_t sense_data[SCSI_SENSE_PACKED_MAX];
    struct scsi_sense sense;
    uint64_t data_in;         /* bytes really put into iov. After an error on a READ: 0 */
    uint64_t transfer_length; /* bytes the command transfers, for residuals (RFC 7143 11.4.5): with
                               * GOOD above data_in when there was less room. After an error 0, but
                               * for 05/0E/03 what the CDB asked for */

    /* The logical unit's. */
    struct lu *lu;
    enum lu_task_state state;
    struct scsi_cdb fields;
    uint64_t sequence;                     /* order of arrival */
    struct lu_task *set_prev, *set_next;   /* all tasks of the LU */
    struct lu_task *work_prev, *work_next; /* submitted ones, in the order of execution */
    struct lu_task *wait_next;             /* for the disk queue, for scratch, or to be ended */
    struct lu_task *blocker;               /* state BLOCKED: by this one, or NULL: by attributes */
    uint64_t first_block, block_count;     /* the range it claims */
    uint64_t done_blocks;                  /* of commands in several steps */
    uint64_t step_end;
    uint32_t step_blocks;
    uint8_t claim;  /* none, read, write */
    uint8_t access; /* what it does to the medium, for reservations */
    bool abort_asked;
    bool abort_reported;                            /* by TASK ABORTED, if TAS is set */
    bool waits;                                     /* in a list of waiters, not at the disk */
    bool blind;                                     /* refused: its attribute does not count */
    bool works;                                     /* in the list of submitted tasks */
    size_t put_total;                               /* data-in produced so far */
    void (*next)(struct lu_task *task, int status); /* after the disk request */
    struct lp_request request;
    struct iovec own_iov;
};

/* Zeroes the task and sets nexus, attribute SIMPLE and done. */
void lu_task_init(struct lu_task *task, struct lu_nexus *nexus, void (*done)(struct lu_task *task));

/* Enters the task set: parses the CDB and judges it (unit attention, task set full, reservations,
 * validity, write protection), and says how much data is wanted. A refusal is delivered by
 * lu_task_submit(). */
void lu_task_prepare(struct lu_task *task);

/* The data is there, or the room for it. */
void lu_task_submit(struct lu_task *task);

/* ABORT TASK. Ends the task: at once, or when its disk request ends; done() is called with
 * `aborted`. False: the task was not in the task set. S-49, T-TMF-01. */
bool lu_task_abort(struct lu_task *task);

/* The task of this nexus with this tag, or NULL. QUERY TASK is lu_task_find() != NULL, QUERY TASK
 * SET is lu_nexus_tasks() != 0. */
struct lu_task *lu_task_find(struct lu_nexus *nexus, uint64_t tag);

/* ABORT TASK SET: all tasks of this nexus. Returns how many have not ended yet (disk). */
unsigned lu_abort_set(struct lu_nexus *nexus);

/* CLEAR TASK SET: with a shared task set also those of other nexuses, which get 2F/00 (or TASK
 * ABORTED with TAS). Returns how many have not ended yet. */
unsigned lu_clear_set(struct lu_nexus *nexus);

/* LOGICAL UNIT RESET: aborts all tasks, mode pages to defaults, RESERVE(6) released, medium
 * started, unit attention 29/03 for all; persistent reservations stay. by: the nexus that asked,
 * whose tasks end without TAS; or NULL (target reset). Returns how many have not ended yet. S-49.
 */
unsigned lu_reset(struct lu *lu, struct lu_nexus *by);

/* I_T NEXUS RESET is lu_nexus_loss(). QUERY ASYNCHRONOUS EVENT: the unit attention that waits,
 * without taking it. 0: none. */
uint16_t lu_query_ua(const struct lu_nexus *nexus);

/* ---- the disk ---- */

/* Completes disk requests, and tasks with them; does not wait. Returns how many requests ended. */
int lu_poll(struct lu *lu);
void lu_kick(struct lu *lu); /* sends what submit held back; after a batch of submits */

/* Disk requests in flight: while there are any, lu_poll() has to be called. */
unsigned lu_in_flight(const struct lu *lu);

/* The LU's size changes, for instance after its file grew: bytes, at most the disk's size. New size
 * for commands that come from now on, 2A/09 for every nexus (S-48). -1: see err. */
int lu_resize(struct lu *lu, uint64_t size, struct lp_error *err);

/* Aborts if a count or list of the LU contradicts another. For tests and fuzzers. */
void lu_check_invariants(const struct lu *lu);

#endif
