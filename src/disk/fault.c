/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault:KIND[=N][,KIND[=N]...]:URL stands on another disk and makes every Nth request wrong on
 * purpose (97th unless said), so that one can see whether a verifier finds it. Each queue counts
 * for itself and each kind only the requests that it can spoil, so that a run repeats exactly. Of
 * several kinds that are due at once, the first in the URL wins.
 *
 * Each request goes down as a copy in a slot, which may differ from it; what comes up in a READ is
 * spoilt in place.
 */
#include "base/rng.h"
#include "base/size.h"
#include "disk/disk_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { NO_FAULT, STALE, MISDIRECTED, TORN, ZEROS, FLIP, LATER_PAGES, ERROR };

enum {
    DEFAULT_EVERY = 97,
    MAX_RULES = 8,
    MAX_SEGMENTS = 64, /* a slot has room for the segments of a torn WRITE */
    PAGE = 4096,
    ANY_OP = 1 << LP_READ | 1 << LP_WRITE | 1 << LP_FLUSH | 1 << LP_DISCARD | 1 << LP_WRITE_ZEROES,
};

static const struct {
    const char *name;
    enum kind kind;
    unsigned ops; /* which it can spoil: 1 << enum lp_op */
} kinds[] = {
    {"stale", STALE, 1 << LP_WRITE},                            /* not written, but acknowledged */
    {"misdirected", MISDIRECTED, 1 << LP_READ | 1 << LP_WRITE}, /* the place beside it */
    {"torn", TORN, 1 << LP_WRITE},             /* only the first half is written, in blocks */
    {"zeros", ZEROS, 1 << LP_READ},            /* zeros are read */
    {"flip", FLIP, 1 << LP_READ},              /* one bit is read wrong */
    {"laterpages", LATER_PAGES, 1 << LP_READ}, /* each page is read as the request's first */
    {"error", ERROR, ANY_OP},                  /* ends with -EIO, nothing is done */
};

struct rule {
    enum kind kind;
    unsigned ops;
    uint64_t every;
};

struct fault_disk {
    struct lp_disk head;
    struct lp_disk *below;
    unsigned rule_count;
    struct rule rules[MAX_RULES];
};

struct slot {
    struct lp_request sent; /* to the disk below; user is the slot */
    struct lp_request *req; /* whose copy it is */
    struct fault_queue *q;
    enum kind kind;
    struct slot *next_free;
    struct iovec cut[MAX_SEGMENTS];
};

struct fault_queue {
    struct lp_queue head;
    struct lp_queue *below;
    const struct fault_disk *disk;
    uint64_t seen[MAX_RULES];
    uint64_t flips;
    struct request_list ready; /* what did not go down, to be completed by poll() */
    unsigned out;              /* slots taken */
    int wait_fd;               /* as wait_fd() said last */
    struct slot *free_slots;
    struct slot slots[];
};

/* ---- on the way up ---- */

/* Bytes at `at` of the request's data, to (put) or from buf. */
static void move_bytes(const struct lp_request *req, uint64_t at, char *buf, size_t n, bool put)
{
    for (uint32_t i = 0; i < req->iovcnt && n > 0; i++) {
        const struct iovec *seg = &req->iov[i];
        if (at >= seg->iov_len) {
            at -= seg->iov_len;
            continue;
        }
        char *there = (char *)seg->iov_base + at;
        size_t part = seg->iov_len - (size_t)at;
        if (part > n)
            part = n;
        memcpy(put ? there : buf, put ? buf : there, part);
        buf += part;
        n -= part;
        at = 0;
    }
}

/* Each page of the request's data becomes what is in page, the last one as much as it holds. */
static void repeat_page(const struct lp_request *req, uint64_t from, char *page)
{
    for (uint64_t at = from; at < req->length; at += PAGE) {
        uint64_t left = req->length - at;
        move_bytes(req, at, page, left < PAGE ? (size_t)left : PAGE, true);
    }
}

static void spoil_read(struct fault_queue *q, const struct lp_request *req, enum kind kind)
{
    char page[PAGE] = {0};

    if (kind == ZEROS)
        repeat_page(req, 0, page);
    if (kind == LATER_PAGES && req->length > PAGE) {
        move_bytes(req, 0, page, PAGE, false);
        repeat_page(req, PAGE, page);
    }
    if (kind == FLIP) {
        uint64_t where = rng_mix(++q->flips);
        uint64_t at = (where >> 3) % req->length;
        move_bytes(req, at, page, 1, false);
        page[0] = (char)(page[0] ^ 1 << (where & 7));
        move_bytes(req, at, page, 1, true);
    }
}

static void came_up(struct lp_request *sent)
{
    struct slot *slot = sent->user;
    struct fault_queue *q = slot->q;
    struct lp_request *req = slot->req;

    req->status = sent->status;
    if (req->status == 0 && req->op == LP_READ && req->length > 0)
        spoil_read(q, req, slot->kind);
    slot->next_free = q->free_slots;
    q->free_slots = slot;
    q->out--;
    disk_count(&q->head.stats, req);
    req->complete(req);
}

/* ---- on the way down ---- */

static enum kind pick_fault(struct fault_queue *q, const struct lp_request *req)
{
    enum kind kind = NO_FAULT;

    for (unsigned i = 0; i < q->disk->rule_count; i++) {
        const struct rule *rule = &q->disk->rules[i];
        if (!(rule->ops & 1u << req->op))
            continue;
        if (++q->seen[i] % rule->every == 0 && kind == NO_FAULT)
            kind = rule->kind;
    }
    return kind;
}

/* The place of the same size behind, or at the end of the disk the one before. */
static uint64_t neighbour(const struct lp_request *req, uint64_t disk_size)
{
    if (req->offset + req->length <= disk_size - req->length)
        return req->offset + req->length;
    return req->offset >= req->length ? req->offset - req->length : req->offset;
}

/* Leaves the first `length` bytes of what is sent. */
static void cut_to(struct slot *slot, uint64_t length)
{
    struct lp_request *sent = &slot->sent;
    uint64_t left = length;
    uint32_t count = 0;

    for (; left > 0; count++) {
        slot->cut[count] = sent->iov[count];
        if (slot->cut[count].iov_len > left)
            slot->cut[count].iov_len = (size_t)left;
        left -= slot->cut[count].iov_len;
    }
    sent->iov = slot->cut;
    sent->iovcnt = count;
    sent->length = length;
}

/* Does not go down: the request ends with this status. */
static int end_here(struct fault_queue *q, struct lp_request *req, int status)
{
    req->status = status;
    list_add(&q->ready, req);
    return 0;
}

static int send_down(struct fault_queue *q, struct lp_request *req, enum kind kind, uint64_t length)
{
    struct slot *slot = q->free_slots;

    slot->sent = *req;
    slot->sent.complete = came_up;
    slot->sent.user = slot;
    slot->req = req;
    slot->kind = kind;
    if (kind == MISDIRECTED)
        slot->sent.offset = neighbour(req, q->head.limits.size);
    if (length < req->length)
        cut_to(slot, length);

    q->free_slots = slot->next_free;
    q->out++;
    int r = lp_queue_submit(q->below, &slot->sent);
    if (r != 0) {
        slot->next_free = q->free_slots;
        q->free_slots = slot;
        q->out--;
    }
    return r;
}

static int fault_submit(struct lp_queue *head, struct lp_request *req)
{
    struct fault_queue *q = (struct fault_queue *)head;

    if (q->out + q->ready.count == head->limits.depth)
        return -EAGAIN;
    int status = disk_check(&head->limits, req);
    if (status != 0)
        return end_here(q, req, status);

    enum kind kind = pick_fault(q, req);
    uint64_t length = req->length;
    if (kind == TORN)
        length = length / 2 & ~(uint64_t)(head->limits.block_size - 1);
    if (kind == ERROR)
        return end_here(q, req, -EIO);
    if (kind == STALE || (kind == TORN && length == 0))
        return end_here(q, req, 0);
    return send_down(q, req, kind, length);
}

static void fault_kick(struct lp_queue *head)
{
    struct fault_queue *q = (struct fault_queue *)head;

    /* What did not go down is seen from outside like what came up. */
    if (q->ready.first && q->wait_fd >= 0)
        lp_queue_nudge(q->below);
    lp_queue_kick(q->below);
}

static int fault_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct fault_queue *q = (struct fault_queue *)head;
    int here = list_complete(&q->ready, &head->stats);
    int below = lp_queue_poll(q->below, here ? 0 : wait_ns);

    head->stats.syscalls = q->below->stats.syscalls;
    return here + below;
}

static int fault_wait_fd(struct lp_queue *head)
{
    struct fault_queue *q = (struct fault_queue *)head;

    q->wait_fd = lp_queue_wait_fd(q->below);
    return q->wait_fd;
}

static void fault_nudge(struct lp_queue *head)
{
    lp_queue_nudge(((struct fault_queue *)head)->below);
}

/* ---- setting up ---- */

static void fault_queue_close(struct lp_queue *head)
{
    lp_queue_close(((struct fault_queue *)head)->below);
    free(head);
}

static struct lp_queue *fault_queue_open(struct lp_disk *head, unsigned depth, struct lp_error *err)
{
    static const struct lp_queue_ops ops = {.submit = fault_submit,
                                            .kick = fault_kick,
                                            .poll = fault_poll,
                                            .close = fault_queue_close,
                                            .wait_fd = fault_wait_fd,
                                            .nudge = fault_nudge};
    const struct fault_disk *disk = (const struct fault_disk *)head;
    struct lp_queue *below = lp_disk_queue(disk->below, depth, err);

    if (!below)
        return NULL;
    struct fault_queue *q = calloc(1, sizeof *q + depth * sizeof q->slots[0]);
    if (!q) {
        lp_queue_close(below);
        lp_error_sys(err, ENOMEM, "cannot make a queue");
        return NULL;
    }
    q->head.ops = &ops;
    q->head.limits = head->limits;
    q->head.limits.depth = depth;
    q->below = below;
    q->disk = disk;
    q->wait_fd = LP_WAIT_NEVER;
    for (unsigned i = 0; i < depth; i++) {
        q->slots[i].q = q;
        q->slots[i].next_free = q->free_slots;
        q->free_slots = &q->slots[i];
    }
    return &q->head;
}

/* "KIND" or "KIND=N". */
static int parse_rule(char *text, struct rule *rule, struct lp_error *err)
{
    char *number = strchr(text, '=');

    rule->every = DEFAULT_EVERY;
    if (number) {
        *number++ = '\0';
        if (number_parse(number, "fault's interval", 1, UINT32_MAX, &rule->every, err))
            return -1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(text, kinds[i].name) == 0) {
            rule->kind = kinds[i].kind;
            rule->ops = kinds[i].ops;
            return 0;
        }
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "there is no fault \"%s\"; there are stale, misdirected, torn, zeros, "
                        "flip, laterpages and error",
                        text);
}

/* The rules in front of the first colon. */
static int parse_rules(struct fault_disk *disk, const char *text, struct lp_error *err)
{
    char rules[256];
    size_t len = strcspn(text, ":");

    if (!text[len] || !text[len + 1])
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the disk to spoil is missing; write it last, as in "
                            "fault:stale:ram:1G");
    if (len >= sizeof rules)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the list of faults is too long; write fewer");
    memcpy(rules, text, len);
    rules[len] = '\0';

    for (char *at = rules, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = '\0';
        if (disk->rule_count == MAX_RULES)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "there are more than %d faults; write fewer", MAX_RULES);
        if (parse_rule(at, &disk->rules[disk->rule_count++], err))
            return -1;
    }
    return 0;
}

static struct lp_disk *fault_open(const char *rest, const struct lp_disk_opts *opts,
                                  struct lp_error *err)
{
    struct fault_disk *disk = calloc(1, sizeof *disk);

    if (!disk)
        lp_error_sys(err, ENOMEM, "cannot make a disk");
    if (!disk || parse_rules(disk, rest, err)) {
        if (opts->fd >= 0)
            close(opts->fd);
        free(disk);
        return NULL;
    }
    disk->below = lp_disk_open(strchr(rest, ':') + 1, opts, err); /* takes opts->fd over */
    if (!disk->below) {
        free(disk);
        return NULL;
    }
    struct lp_limits *limits = &disk->head.limits;
    *limits = *lp_disk_limits(disk->below);
    if (limits->max_segments == 0 || limits->max_segments > MAX_SEGMENTS)
        limits->max_segments = MAX_SEGMENTS;
    snprintf(disk->head.mode, sizeof disk->head.mode, "faulty, %.50s", lp_disk_mode(disk->below));
    return &disk->head;
}

static int fault_share(const struct lp_disk *head)
{
    return lp_disk_share(((const struct fault_disk *)head)->below);
}

static void fault_close(struct lp_disk *head)
{
    lp_disk_close(((struct fault_disk *)head)->below);
    free(head);
}

const struct lp_disk_type disk_fault = {
    .name = "fault",
    .help = "fault:KIND:URL another disk, with wrong data on purpose (for tests)",
    .open = fault_open,
    .queue = fault_queue_open,
    .share = fault_share,
    .close = fault_close,
};
