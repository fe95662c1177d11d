/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/copy_run.h"

#include <errno.h>
#include <inttypes.h>
#include <lunpath/fit.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/memory.h"

enum { MEM_ALIGN = 4096 };
static const uint64_t glance_ns = 200000, patience_ns = 100000000;

enum slot_state { IDLE, READING, READ, LOOKING, WRITING, WRITTEN };

struct copy;

/* A chunk on its way. Chunk n is in slot n % depth. */
struct slot {
    struct copy *copy;
    enum slot_state state;
    bool summed;
    uint8_t *data, *there; /* there: what the destination has, for sparse */
    uint64_t offset;
    uint32_t length;
    struct lp_request req;
    struct iovec iov;
};

struct copy {
    const struct copy_opts *opts;
    struct copy_report *report;
    struct lp_queue *from, *to;
    struct lp_disk *from_disk, *to_disk;
    struct memory memory;
    struct slot *slots;
    uint32_t *sums; /* of each chunk, for verify */
    uint64_t chunks, next_read, next_sum;
    unsigned reading, writing; /* requests in flight at from and to */
    uint32_t crc;
    bool verifying;
    bool failed;
    struct lp_error *err;
};

static void fail(struct copy *c, const struct slot *slot, const char *verb,
                 const struct lp_disk *disk, int status)
{
    if (!c->failed)
        lp_error_sys(c->err, -status, "cannot %s %s at byte %" PRIu64, verb, lp_disk_url(disk),
                     slot->offset);
    c->failed = true;
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0;
}

static void submit(struct slot *slot, struct lp_queue *q, enum lp_op op, uint8_t *data,
                   void (*complete)(struct lp_request *req))
{
    slot->iov = (struct iovec){data, slot->length};
    slot->req = (struct lp_request){.op = op,
                                    .offset = slot->offset,
                                    .length = slot->length,
                                    .iov = data ? &slot->iov : NULL,
                                    .iovcnt = data ? 1 : 0,
                                    .complete = complete,
                                    .user = slot};
    if (q == slot->copy->from)
        slot->copy->reading++;
    else
        slot->copy->writing++;
    int rc = lp_queue_submit(q, &slot->req); /* there is room: a slot has one request at most */
    if (rc != 0) {
        slot->req.status = rc;
        complete(&slot->req);
    }
}

static void release(struct slot *slot)
{
    if (slot->state == WRITTEN && slot->summed)
        slot->state = IDLE;
}

/* In order, as far as chunks have come. */
static void sum_up(struct copy *c)
{
    for (; c->next_sum < c->next_read; c->next_sum++) {
        struct slot *slot = &c->slots[c->next_sum % c->opts->depth];

        if (slot->state <= READING)
            break;
        c->crc = crc32c_add(c->crc, slot->data, slot->length);
        if (c->sums)
            c->sums[c->next_sum] = crc32c_add(CRC32C_INIT, slot->data, slot->length);
        slot->summed = true;
        release(slot);
    }
}

static void on_written(struct lp_request *req)
{
    struct slot *slot = req->user;
    struct copy *c = slot->copy;

    c->writing--;
    slot->state = WRITTEN;
    if (req->status != 0) {
        fail(c, slot, "write to", c->to_disk, req->status);
        return;
    }
    c->report->written += slot->length;
    c->report->copied += slot->length;
    release(slot);
}

static void on_looked(struct lp_request *req)
{
    struct slot *slot = req->user;
    struct copy *c = slot->copy;

    c->writing--;
    if (req->status != 0) {
        slot->state = WRITTEN;
        fail(c, slot, "read", c->to_disk, req->status);
    } else if (all_zero(slot->there, slot->length)) {
        slot->state = WRITTEN;
        c->report->copied += slot->length;
        release(slot);
    } else {
        bool can = c->to->limits.write_zeroes;

        slot->state = WRITING;
        submit(slot, c->to, can ? LP_WRITE_ZEROES : LP_WRITE, can ? NULL : slot->data, on_written);
    }
}

static void on_read(struct lp_request *req)
{
    struct slot *slot = req->user;
    struct copy *c = slot->copy;

    c->reading--;
    slot->state = READ;
    if (req->status != 0)
        fail(c, slot, "read", c->from_disk, req->status);
    if (c->failed) {
        slot->state = WRITTEN;
        return;
    }
    sum_up(c);
    if (c->opts->sparse && all_zero(slot->data, slot->length)) {
        slot->state = LOOKING;
        submit(slot, c->to, LP_READ, slot->there, on_looked);
    } else {
        slot->state = WRITING;
        submit(slot, c->to, LP_WRITE, slot->data, on_written);
    }
}

static void on_read_back(struct lp_request *req)
{
    struct slot *slot = req->user;
    struct copy *c = slot->copy;
    struct copy_report *r = c->report;

    c->writing--;
    slot->state = IDLE;
    if (req->status != 0) {
        fail(c, slot, "read back", c->to_disk, req->status);
        return;
    }
    r->verified += slot->length;
    if (crc32c_add(CRC32C_INIT, slot->data, slot->length) ==
            c->sums[slot->offset / c->opts->chunk] ||
        (r->wrong && r->wrong_at < slot->offset))
        return;
    r->wrong = true;
    r->wrong_at = slot->offset;
}

static void start_chunks(struct copy *c)
{
    while (c->next_read < c->chunks && !c->failed && !*c->opts->interrupted) {
        struct slot *slot = &c->slots[c->next_read % c->opts->depth];
        uint64_t left;

        if (slot->state != IDLE)
            return;
        slot->offset = c->next_read * c->opts->chunk;
        left = c->report->total - slot->offset;
        slot->length = left < c->opts->chunk ? (uint32_t)left : c->opts->chunk;
        slot->summed = false;
        slot->state = READING;
        c->next_read++;
        if (c->verifying)
            submit(slot, c->to, LP_READ, slot->data, on_read_back);
        else
            submit(slot, c->from, LP_READ, slot->data, on_read);
    }
}

/* Two queues cannot be slept on at once, so one of them gets short glances. */
static void turn(struct copy *c)
{
    int done = lp_queue_poll(c->from, 0) + lp_queue_poll(c->to, 0);

    if (done > 0)
        c->opts->progress(c->opts->user, c->verifying,
                          c->verifying ? c->report->verified : c->report->copied, c->report->total);
    else if (c->reading > 0)
        lp_queue_poll(c->from, c->writing > 0 ? glance_ns : patience_ns);
    else if (c->writing > 0)
        lp_queue_poll(c->to, patience_ns);
}

static void pass(struct copy *c)
{
    c->next_read = c->next_sum = 0;
    for (;;) {
        start_chunks(c);
        if (c->reading + c->writing == 0)
            return;
        turn(c);
    }
}

static int flush(struct copy *c)
{
    struct lp_request req = {.op = LP_FLUSH};
    int status = lp_queue_run(c->to, &req);

    if (status == 0)
        return 0;
    c->failed = true;
    return lp_error_sys(c->err, -status, "what was written to %s cannot be flushed",
                        lp_disk_url(c->to_disk));
}

static struct lp_queue *open_queue(struct lp_disk *disk, unsigned depth, struct lp_error *err)
{
    const struct lp_limits *limits = lp_disk_limits(disk);
    const struct lp_fit_opts fit = {.depth = depth};
    unsigned below = limits->depth && limits->depth < depth ? limits->depth : depth;
    struct lp_queue *lower = lp_disk_queue(disk, below, err);

    return lower ? lp_fit_open(lower, &lower->limits, &fit, err) : NULL;
}

static int prepare(struct copy *c)
{
    const struct copy_opts *o = c->opts;
    size_t each = ((size_t)o->chunk + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;
    size_t buffers = o->sparse ? 2 : 1;

    c->chunks = (c->report->total + o->chunk - 1) / o->chunk;
    c->slots = calloc(o->depth, sizeof(*c->slots));
    if (o->verify)
        c->sums = calloc(c->chunks, sizeof(*c->sums));
    if (!c->slots || (o->verify && !c->sums))
        return lp_error_sys(c->err, ENOMEM, "cannot copy");
    if (memory_create(&c->memory, "lunpath-copy", each * buffers * o->depth, false, c->err) != 0)
        return -1;
    for (unsigned i = 0; i < o->depth; i++) {
        c->slots[i].copy = c;
        c->slots[i].data = (uint8_t *)c->memory.base + each * buffers * i;
        c->slots[i].there = c->slots[i].data + each;
    }
    c->from = open_queue(c->from_disk, o->depth, c->err);
    if (c->from)
        c->to = open_queue(c->to_disk, o->depth, c->err);
    return c->to ? 0 : -1;
}

static void copy_and_verify(struct copy *c)
{
    uint64_t begin_ns = clock_now_ns();

    pass(c);
    if (!c->failed)
        flush(c);
    c->report->seconds = (double)(clock_now_ns() - begin_ns) / 1e9;
    crc32c_end(c->crc, c->report->crc);
    if (c->opts->verify && !c->failed && c->report->copied == c->report->total) {
        c->verifying = true;
        pass(c);
    }
}

int copy_run(struct lp_disk *from, struct lp_disk *to, const struct copy_opts *opts,
             struct copy_report *report, struct lp_error *err)
{
    struct copy c = {.opts = opts,
                     .report = report,
                     .from_disk = from,
                     .to_disk = to,
                     .memory = {.fd = -1},
                     .crc = CRC32C_INIT,
                     .err = err};
    int status;

    *report = (struct copy_report){.total = lp_disk_limits(from)->size};
    status = prepare(&c);
    if (status == 0) {
        copy_and_verify(&c);
        status = c.failed ? -1 : 0;
    }
    lp_queue_close(c.from);
    lp_queue_close(c.to);
    memory_destroy(&c.memory);
    free(c.slots);
    free(c.sums);
    return status;
}
