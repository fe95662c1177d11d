/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arbitrary commands, with arbitrary data, from two nexuses to a small logical unit.
 *
 * The input is a list of steps: a byte that says what, then for a command its attribute, CDB size,
 * CDB, data-out size and data. Every task ends exactly once, sense comes with CHECK CONDITION only,
 * no command gives more data than it said, and the lists of the unit stay right.
 */
#include "base/bytes.h"
#include "scsi/lu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, SIZE = BLOCKS * 512, TASKS = 16, HELD = 16, DATA = 1 << 17 };

/* A disk in memory that holds requests until it is polled. */
struct memory_queue {
    struct lp_queue q;
    uint8_t memory[SIZE];
    struct lp_request *held[HELD];
    unsigned count;
};

static int submit(struct lp_queue *head, struct lp_request *r)
{
    struct memory_queue *q = (struct memory_queue *)head;

    if (q->count == HELD)
        return -EAGAIN;
    q->held[q->count++] = r;
    return 0;
}

static void execute(struct memory_queue *q, struct lp_request *r)
{
    uint8_t *at = q->memory + r->offset;

    r->status = 0;
    if (r->op == LP_FLUSH)
        return;
    if (r->offset > SIZE || r->length > SIZE - r->offset)
        abort(); /* the unit has let it pass */
    if (r->op == LP_DISCARD || r->op == LP_WRITE_ZEROES)
        memset(at, 0, (size_t)r->length);
    for (uint32_t i = 0; (r->op == LP_READ || r->op == LP_WRITE) && i < r->iovcnt; i++) {
        size_t n = r->iov[i].iov_len;
        if (n > 0)
            memcpy(r->op == LP_READ ? r->iov[i].iov_base : at,
                   r->op == LP_READ ? at : r->iov[i].iov_base, n);
        at += n;
    }
}

static int poll_queue(struct lp_queue *head, uint64_t wait_ns)
{
    struct memory_queue *q = (struct memory_queue *)head;
    int n = 0;

    (void)wait_ns;
    for (unsigned left = q->count; left > 0; left--, n++) {
        struct lp_request *r = q->held[0];
        memmove(q->held, q->held + 1, --q->count * sizeof *q->held);
        execute(q, r);
        r->complete(r);
    }
    return n;
}

static void close_queue(struct lp_queue *head)
{
    (void)head;
}

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t byte(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

struct slot {
    struct lu_task task;
    bool live;
    struct iovec iov[2];
    uint8_t *data;
};

static void done(struct lu_task *task)
{
    struct slot *s = task->user;

    if (!s->live || task->state != LU_TASK_IDLE)
        abort();
    s->live = false;
    if ((task->status == SCSI_CHECK_CONDITION) != (task->sense_length > 0))
        abort();
    if (task->data_in > task->data_length || task->data_in > task->transfer_length)
        abort();
    free(s->data);
    s->data = NULL;
}

/* Takes as much data from the input as it has; the rest is zero. */
static void fill(struct slot *s, struct input *in, size_t n, bool from_input)
{
    s->data = calloc(1, n ? n : 1);
    for (size_t i = 0; from_input && i < n && in->left > 0; i++)
        s->data[i] = byte(in);
    s->iov[0] = (struct iovec){s->data, n / 2};
    s->iov[1] = (struct iovec){s->data + n / 2, n - n / 2};
    s->task.iov = s->iov;
    s->task.iovcnt = 2;
    s->task.data_length = n;
}

static void command(struct slot *s, struct lu_nexus *nexus, struct input *in)
{
    struct lu_task *t = &s->task;
    uint8_t how = byte(in);

    lu_task_init(t, nexus, done);
    t->user = s;
    t->attribute = (enum lu_attribute)(how & 3);
    t->cdb_size = (uint8_t)(how & 4 ? 1 + byte(in) % SCSI_CDB_MAX : 16);
    for (unsigned i = 0; i < t->cdb_size; i++)
        t->cdb[i] = byte(in);
    t->expected_length = how & 8 ? load_be16((uint8_t[2]){byte(in), byte(in)}) : DATA;
    if (how & 16) /* what COMPARE AND WRITE and WRITE SAME want */
        t->expected_length = t->cdb[0] == SCSI_COMPARE_AND_WRITE ? t->cdb[13] * 1024u : 512u;
    s->live = true;
    lu_task_prepare(t);
    uint64_t out = t->refused ? 0 : t->data_out_length;
    uint64_t n = out ? out : t->data_in_length;
    if (n > DATA)
        abort();
    if (!out && how & 32) /* less room than there could be */
        n -= n / 2 / t->data_unit * t->data_unit;
    fill(s, in, (size_t)n, out > 0);
    if (!(how & 64))
        lu_task_submit(t);
}

static struct lu *open_lu(struct memory_queue *q, uint8_t how)
{
    static const struct lp_queue_ops ops = {
        .submit = submit, .poll = poll_queue, .close = close_queue};
    static const struct lu_port ports[] = {{1, 1}, {2, 2}};
    struct lu_opts opts = {.target_name = "iqn.2026-01.com.example:fuzz",
                           .thin = how & 1,
                           .discard_zeroes = how & 1,
                           .write_cache = how & 2,
                           .shared_task_set = how & 4,
                           .task_aborted_status = how & 8,
                           .max_transfer_blocks = 128,
                           .depth = TASKS,
                           .ports = ports,
                           .port_count = 2};

    q->q.ops = &ops;
    q->q.limits = (struct lp_limits){.size = SIZE,
                                     .block_size = 512,
                                     .mem_align = 1,
                                     .max_transfer = 4096, /* and little to bounce with */
                                     .depth = HELD,
                                     .fua = how & 16 ? LP_FUA_NONE : LP_FUA_NATIVE,
                                     .discard = true,
                                     .write_zeroes = how & 32};
    return lu_new_queue(&q->q, &opts, NULL);
}

static void step(struct lu *lu, struct lu_nexus **nexus, struct slot *slots, struct input *in)
{
    uint8_t what = byte(in);
    struct slot *s = &slots[what >> 4 & (TASKS - 1)];
    struct lu_nexus *n = nexus[what & 1];

    switch (what >> 1 & 7) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (!s->live)
            command(s, n, in);
        else if (s->task.state == LU_TASK_ENTERED)
            lu_task_submit(&s->task);
        break;
    case 4:
        if (s->live)
            lu_task_abort(&s->task);
        break;
    case 5:
        if (what & 0x80)
            lu_abort_set(n);
        else
            lu_clear_set(n);
        break;
    case 6:
        if (what & 0x80)
            lu_nexus_loss(n);
        else if (what & 0x40)
            lu_reset(lu, n);
        else
            lu_resize(lu, SIZE >> (what >> 4 & 3), NULL);
        break;
    default:
        lu_poll(lu);
    }
    lu_check_invariants(lu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_queue *q = calloc(1, sizeof *q);
    struct slot slots[TASKS] = {0};
    struct input in = {data, size};
    struct lu *lu = open_lu(q, byte(&in));
    struct lu_nexus *nexus[2];

    for (unsigned i = 0; i < 2; i++) {
        struct lu_nexus_id id = {.initiator_name = i ? "iqn.2026-01.com.example:b" : "iqn.a",
                                 .relative_port = (uint16_t)(i + 1)};
        nexus[i] = lu_nexus_open(lu, &id, NULL);
    }
    while (in.left > 0)
        step(lu, nexus, slots, &in);
    lu_reset(lu, NULL);
    while (lu_tasks(lu) > 0)
        if (lu_poll(lu) == 0)
            abort();
    for (unsigned i = 0; i < TASKS; i++)
        if (slots[i].live)
            abort();
    lu_check_invariants(lu);
    lu_nexus_close(nexus[0]);
    lu_nexus_close(nexus[1]);
    lu_free(lu);
    free(q);
    return 0;
}
