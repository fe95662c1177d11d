/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A logical unit on a disk in memory that can hold requests back, have bad blocks and refuse to
 * flush; with two nexuses on two ports, whose first unit attention is taken.
 */
#ifndef LU_RIG_H
#define LU_RIG_H

#include "base/bytes.h"
#include "scsi/lu.h"
#include "scsi/lun.h"
#include "scsi/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RIG_HELD = 64, RIG_DATA = 1 << 20, RIG_TRACE = 64, RIG_NEXUSES = 2 };

struct rig_disk {
    struct lp_queue q;
    uint8_t *memory;
    bool hold;        /* requests wait for rig_let_go() */
    uint64_t bad;     /* byte of the bad block, UINT64_MAX: none */
    int write_status; /* of WRITE, DISCARD, WRITE_ZEROES */
    int flush_status;
    struct lp_request *held[RIG_HELD];
    unsigned held_count;
    bool go;
    struct {
        enum lp_op op;
        uint32_t flags;
        uint64_t offset, length;
    } trace[RIG_TRACE];
    unsigned traced;
};

struct rig_task {
    struct lu_task task;
    unsigned done; /* how often done() was called */
    struct iovec iov[4];
};

struct rig {
    struct rig_disk disk;
    struct lu_opts opts;
    struct lu *lu;
    struct lu_nexus *nexus[RIG_NEXUSES];
    struct rig_task last; /* of run() */
    uint8_t *in;          /* RIG_DATA bytes: data-in of run() */
    uint8_t *out;         /* RIG_DATA bytes: data-out of run() */
};

/* ---- the disk ---- */

static inline int rig_submit(struct lp_queue *q, struct lp_request *r)
{
    struct rig_disk *d = (struct rig_disk *)q;

    if (d->held_count == RIG_HELD)
        return -EAGAIN;
    d->held[d->held_count++] = r;
    if (d->traced < RIG_TRACE) {
        d->trace[d->traced].op = r->op;
        d->trace[d->traced].flags = r->flags;
        d->trace[d->traced].offset = r->offset;
        d->trace[d->traced].length = r->length;
        d->traced++;
    }
    return 0;
}

static inline int rig_execute(struct rig_disk *d, const struct lp_request *r)
{
    uint8_t *at = d->memory + r->offset;

    if (r->op == LP_FLUSH)
        return d->flush_status;
    if (r->op != LP_READ && d->write_status)
        return d->write_status;
    if (d->bad >= r->offset && d->bad - r->offset < r->length)
        return -EIO;
    if (r->op == LP_DISCARD || r->op == LP_WRITE_ZEROES)
        memset(at, 0, (size_t)r->length);
    for (uint32_t i = 0; (r->op == LP_READ || r->op == LP_WRITE) && i < r->iovcnt; i++) {
        size_t n = r->iov[i].iov_len;
        if (n > 0)
            memcpy(r->op == LP_READ ? r->iov[i].iov_base : at,
                   r->op == LP_READ ? at : r->iov[i].iov_base, n);
        at += n;
    }
    return 0;
}

static inline int rig_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct rig_disk *d = (struct rig_disk *)q;
    int n = 0;

    (void)wait_ns;
    if (d->hold && !d->go)
        return 0;
    d->go = false;
    for (unsigned left = d->held_count; left > 0; left--, n++) {
        struct lp_request *r = d->held[0];
        memmove(d->held, d->held + 1, --d->held_count * sizeof *d->held);
        r->status = rig_execute(d, r);
        r->complete(r);
    }
    return n;
}

static inline void rig_close(struct lp_queue *q)
{
    (void)q;
}

static inline void rig_disk_init(struct rig_disk *d, uint64_t size)
{
    static const struct lp_queue_ops ops = {
        .submit = rig_submit, .poll = rig_poll, .close = rig_close};

    memset(d, 0, sizeof *d);
    d->q.ops = &ops;
    d->q.limits = (struct lp_limits){.size = size,
                                     .block_size = 512,
                                     .mem_align = 1,
                                     .depth = RIG_HELD,
                                     .queues = 1,
                                     .fua = LP_FUA_NATIVE,
                                     .discard = true,
                                     .write_zeroes = true};
    d->bad = UINT64_MAX;
    d->memory = calloc(1, (size_t)size);
    assert_non_null(d->memory);
}

/* ---- tasks ---- */

static inline void rig_done(struct lu_task *task)
{
    ((struct rig_task *)task->user)->done++;
}

static inline void rig_task(struct rig_task *t, struct lu_nexus *nexus, const uint8_t *cdb,
                            size_t cdb_size)
{
    memset(t, 0, sizeof *t);
    lu_task_init(&t->task, nexus, rig_done);
    t->task.user = t;
    memcpy(t->task.cdb, cdb, cdb_size);
    t->task.cdb_size = (uint8_t)cdb_size;
}

/* Prepares with as much data-out as the CDB asks for, when `announced` is UINT64_MAX. */
static inline void rig_prepare(struct rig_task *t, uint64_t announced)
{
    t->task.expected_length = announced;
    if (announced == UINT64_MAX) { /* what it will ask for, which only the LU knows */
        struct lu_task look = t->task;
        struct scsi_cdb f;
        uint32_t size = lu_block_size(lu_nexus_lu(t->task.nexus));
        t->task.expected_length = 0;
        if (scsi_cdb_parse(&f, look.cdb, look.cdb_size) == 0) {
            const struct scsi_command_info *info = scsi_command_info(f.command);
            bool verify = f.command == SCSI_CMD_VERIFY_10 || f.command == SCSI_CMD_VERIFY_12 ||
                          f.command == SCSI_CMD_VERIFY_16;
            uint64_t n = info->unit == SCSI_LENGTH_BLOCKS ? (uint64_t)f.length * size : f.length;
            if (f.command == SCSI_CMD_WRITE_SAME_10 || f.command == SCSI_CMD_WRITE_SAME_16)
                n = f.command == SCSI_CMD_WRITE_SAME_16 && f.flags & SCSI_CDB_NDOB ? 0 : size;
            if (verify && (f.flags & SCSI_CDB_BYTCHK) == SCSI_CDB_BYTCHK)
                n = size;
            if (f.command == SCSI_CMD_COMPARE_AND_WRITE)
                n *= 2;
            if (info->direction == SCSI_DATA_OUT)
                t->task.expected_length = n;
        }
    }
    lu_task_prepare(&t->task);
}

/* Splits the data over three odd segments, so that nothing relies on one. */
static inline void rig_data(struct rig_task *t, uint8_t *data, size_t n)
{
    size_t a = n / 3, b = n / 2;

    t->iov[0] = (struct iovec){data, a};
    t->iov[1] = (struct iovec){data + a, b - a};
    t->iov[2] = (struct iovec){NULL, 0};
    t->iov[3] = (struct iovec){data + b, n - b};
    t->task.iov = t->iov;
    t->task.iovcnt = 4;
    t->task.data_length = n;
}

static inline void rig_submit_task(struct rig *rig, struct rig_task *t)
{
    struct lu_task *task = &t->task;
    uint64_t out = task->refused ? 0 : task->data_out_length;
    uint64_t n = out ? out : task->data_in_length;

    assert_true(n <= RIG_DATA);
    rig_data(t, out ? rig->out : rig->in, (size_t)n);
    lu_task_submit(task);
    lu_kick(rig->lu);
}

static inline void rig_let_go(struct rig *rig)
{
    rig->disk.go = true;
    lu_poll(rig->lu);
    lu_check_invariants(rig->lu);
}

static inline struct lu_task *rig_run_cdb(struct rig *rig, unsigned n, const uint8_t *cdb,
                                          size_t cdb_size)
{
    struct rig_task *t = &rig->last;

    rig_task(t, rig->nexus[n], cdb, cdb_size);
    rig_prepare(t, UINT64_MAX);
    memset(rig->in, 0xee, RIG_DATA);
    rig_submit_task(rig, t);
    for (int i = 0; i < 10000 && !t->done; i++)
        rig_let_go(rig);
    assert_int_equal(t->done, 1);
    assert_true(t->task.data_in <= t->task.data_length);
    return &t->task;
}

static inline struct lu_task *rig_run(struct rig *rig, unsigned n, struct scsi_cdb fields)
{
    uint8_t cdb[SCSI_CDB_MAX];
    size_t size = scsi_cdb_build(&fields, cdb);

    assert_int_not_equal(size, 0);
    return rig_run_cdb(rig, n, cdb, size);
}

/* RUN(rig, nexus, SCSI_CMD_READ_10, .lba = 5, .length = 1) */
#define RUN(rig, n, ...) rig_run(rig, n, (struct scsi_cdb){.command = __VA_ARGS__})
#define GOOD(rig, n, ...) is_status(RUN(rig, n, __VA_ARGS__), SCSI_GOOD)
#define CHECK(rig, n, key, asc, ...) is_check(RUN(rig, n, __VA_ARGS__), key, asc)

static inline struct lu_task *is_status_at(struct lu_task *t, uint8_t status, int line)
{
    char text[160], name[32];

    if (t->status != status || t->aborted)
        fail_msg("line %d: %s%s, %s", line, scsi_status_name(t->status, name),
                 t->aborted ? " (aborted)" : "",
                 t->status == SCSI_CHECK_CONDITION ? scsi_sense_text(&t->sense, text, sizeof text)
                                                   : "no sense");
    return t;
}

static inline struct lu_task *is_check_at(struct lu_task *t, uint8_t key, uint16_t asc, int line)
{
    struct scsi_sense s;
    char text[160];

    is_status_at(t, SCSI_CHECK_CONDITION, line);
    assert_true(scsi_sense_unpack(&s, t->sense_data, t->sense_length));
    if (s.key != key || scsi_sense_asc(&s) != asc)
        fail_msg("line %d: %s instead of %x/%04x", line, scsi_sense_text(&s, text, sizeof text),
                 key, asc);
    return t;
}

#define is_status(t, status) is_status_at(t, status, __LINE__)
#define is_check(t, key, asc) is_check_at(t, key, asc, __LINE__)
#define is_illegal(t, asc) is_check(t, SCSI_KEY_ILLEGAL_REQUEST, asc)

/* ---- opening ---- */

static inline struct lu_nexus *rig_nexus(struct lu *lu, const char *name, uint8_t isid,
                                         uint16_t port)
{
    struct lp_error err = {0};
    struct lu_nexus_id id = {
        .initiator_name = name, .isid = {0x40, 0, 0, 0, 0, isid}, .relative_port = port};
    struct lu_nexus *nexus = lu_nexus_open(lu, &id, &err);

    if (!nexus)
        fail_msg("%s", err.msg);
    return nexus;
}

static inline void rig_start(struct rig *rig)
{
    struct lp_error err = {0};

    rig->lu = lu_new_queue(&rig->disk.q, &rig->opts, &err);
    if (!rig->lu)
        fail_msg("%s", err.msg);
    rig->nexus[0] = rig_nexus(rig->lu, "iqn.2026-01.com.example:one", 1, 1);
    rig->nexus[1] = rig_nexus(rig->lu, "iqn.2026-01.com.example:two", 2, 2);
    for (unsigned i = 0; i < RIG_NEXUSES; i++)
        is_check(RUN(rig, i, SCSI_CMD_TEST_UNIT_READY), SCSI_KEY_UNIT_ATTENTION, SCSI_ASC_RESET);
    rig->disk.traced = 0;
}

static inline void rig_stop(struct rig *rig)
{
    for (unsigned i = 0; i < RIG_NEXUSES; i++)
        lu_nexus_close(rig->nexus[i]);
    lu_free(rig->lu);
}

/* size in bytes; rig->opts may be changed before rig_start(). */
static inline void rig_init(struct rig *rig, uint64_t size)
{
    static const struct lu_port ports[] = {{1, 1}, {2, 2}};

    memset(rig, 0, sizeof *rig);
    rig_disk_init(&rig->disk, size);
    rig->in = calloc(1, RIG_DATA);
    rig->out = calloc(1, RIG_DATA);
    assert_non_null(rig->in);
    assert_non_null(rig->out);
    rig->opts = (struct lu_opts){.number = 3,
                                 .target_name = "iqn.2026-01.com.example:target",
                                 .thin = true,
                                 .discard_zeroes = true,
                                 .write_cache = true,
                                 .depth = 16,
                                 .ports = ports,
                                 .port_count = 2,
                                 .iscsi_protocol_level = 2};
}

static inline void rig_open(struct rig *rig, uint64_t size)
{
    rig_init(rig, size);
    rig_start(rig);
}

static inline void rig_free(struct rig *rig)
{
    free(rig->disk.memory);
    free(rig->in);
    free(rig->out);
}

static inline void rig_end(struct rig *rig)
{
    rig_stop(rig);
    rig_free(rig);
}

/* Block `lba` of the disk holds this byte everywhere. */
static inline void rig_fill(struct rig *rig, uint64_t lba, uint64_t blocks, uint8_t byte)
{
    uint32_t size = lu_block_size(rig->lu);

    memset(rig->disk.memory + lba * size, byte, (size_t)blocks * size);
}

static inline bool rig_holds(struct rig *rig, uint64_t lba, uint64_t blocks, uint8_t byte)
{
    uint32_t size = lu_block_size(rig->lu);

    for (uint64_t i = 0; i < blocks * size; i++)
        if (rig->disk.memory[lba * size + i] != byte)
            return false;
    return true;
}

#endif
