/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a logical unit: options, limits, identity. */
#include "base/bytes.h"
#include "base/rng.h"
#include "scsi/lu_int.h"

#include <lunpath/fit.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DEPTH = 128, DEFAULT_TRANSFER = 8 << 20, MAX_TRANSFER = 64 << 20 };

/* ---- identity ---- */

static uint64_t mix_text(uint64_t seed, const char *text, uint32_t number)
{
    uint64_t h = rng_mix(seed ^ number);

    for (; *text; text++)
        h = rng_mix(h ^ (uint8_t)*text);
    return h;
}

/* Cut to size. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t n = strlen(text);

    if (n > size - 1)
        n = size - 1;
    memcpy(out, text, n);
    out[n] = 0;
}

/* The same target name and number, or the same identity, give the same identifiers for ever. */
static void make_identity(struct lu *lu, const struct lu_opts *o)
{
    struct lu_identity *id = &lu->id;
    const char *target = o->target_name ? o->target_name : "";
    const char *seed = o->identity ? o->identity : target;
    uint32_t number = o->identity ? 0 : o->number;
    uint64_t first = mix_text(0x6c756e70617468u, seed, number);
    uint64_t second = mix_text(first, seed, number);

    store_be64(id->naa, (first >> 4) | (uint64_t)3 << 60); /* NAA 3h: locally assigned */
    if (o->serial)
        copy_text(id->serial, sizeof id->serial, o->serial);
    else
        snprintf(id->serial, sizeof id->serial, "%016" PRIx64, second);
    copy_text(id->vendor, sizeof id->vendor, o->vendor ? o->vendor : "LUNPATH");
    copy_text(id->product, sizeof id->product, o->product ? o->product : "disk");
    copy_text(id->revision, sizeof id->revision, o->revision ? o->revision : LP_VERSION);
    snprintf(id->t10, sizeof id->t10, "%-8s%016" PRIx64 "%08" PRIx64, id->vendor, first,
             second & 0xffffffff);
    copy_text(id->target_name, sizeof id->target_name, target);
}

/* ---- options ---- */

static int take_ports(struct lu *lu, const struct lu_opts *o, struct lp_error *err)
{
    static const struct lu_port only = {.relative_id = 1, .group = 1};
    const struct lu_port *ports = o->port_count > 0 ? o->ports : &only;

    lu->port_count = o->port_count > 0 ? o->port_count : 1;
    if (lu->port_count > LU_PORTS_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "a logical unit has at most %d ports",
                            LU_PORTS_MAX);
    for (unsigned i = 0; i < lu->port_count; i++) {
        if (ports[i].relative_id == 0 || ports[i].group == 0)
            return lp_error_set(err, LP_ERROR_USAGE, 0, "port and port group numbers begin with 1");
        lu->ports[i] = ports[i];
    }
    return 0;
}

static int take_block_size(struct lu *lu, const struct lu_opts *o, const struct lp_limits *l,
                           struct lp_error *err)
{
    uint32_t size = o->block_size ? o->block_size : l->block_size > 512 ? l->block_size : 512;

    if (size != 512 && size != 4096)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a logical block of %" PRIu32 " bytes: give 512 or 4096", size);
    if (size < l->block_size)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the disk takes blocks of %" PRIu32
                            " bytes and more, so the logical unit cannot have %" PRIu32
                            ": give a block size of 4096",
                            l->block_size, size);
    lu->block_size = size;
    lu->shift = size == 512 ? 9 : 12;
    return 0;
}

static int take_size(struct lu *lu, uint64_t size, struct lp_error *err)
{
    uint64_t disk = lu->q->limits.size;

    if (size > disk)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a logical unit of %" PRIu64 " bytes on a disk of %" PRIu64, size,
                            disk);
    size = (size ? size : disk) >> lu->shift;
    if (size == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the disk has not one block of %" PRIu32,
                            lu->block_size);
    lu->blocks = size;
    return 0;
}

static int take_limits(struct lu *lu, const struct lu_opts *o, struct lp_error *err)
{
    const struct lp_limits *l = &lu->q->limits;
    uint32_t most;

    if (take_block_size(lu, o, l, err) || take_size(lu, o->size, err))
        return -1;
    most = MAX_TRANSFER >> lu->shift;
    if (o->max_transfer_blocks > most)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "transfers of %" PRIu32 " blocks: give at most %" PRIu32,
                            o->max_transfer_blocks, most);
    if (!lu->opts.max_transfer_blocks)
        lu->opts.max_transfer_blocks = DEFAULT_TRANSFER >> lu->shift;
    if (o->physical_exponent > 7)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "a physical block of 2^%u logical ones: give at most 2^7",
                            o->physical_exponent);
    lu->read_only = o->read_only || l->read_only;
    lu->thin = o->thin && l->discard && !lu->read_only;
    lu->lbprz = lu->thin && o->discard_zeroes;
    return 0;
}

/* ---- the disk's queue ---- */

static struct lp_queue *open_disk_queue(struct lp_disk *disk, unsigned depth, struct lp_error *err)
{
    const struct lp_limits *l = lp_disk_limits(disk);
    unsigned lower = l->depth && l->depth < depth ? l->depth : depth;
    struct lp_queue *q = lp_disk_queue(disk, lower, err);
    struct lp_fit_opts opts = {.depth = depth};

    return q ? lp_fit_open(q, &q->limits, &opts, err) : NULL;
}

static struct lp_queue *open_queue(struct lp_queue *q, unsigned depth, struct lp_error *err)
{
    struct lp_fit_opts opts = {.depth = depth};

    return lp_fit_open(q, &q->limits, &opts, err);
}

/* ---- making and freeing ---- */

static struct lu *make(const struct lu_opts *opts, struct lp_error *err)
{
    struct lu *lu = calloc(1, sizeof *lu);

    if (!lu) {
        lp_error_sys(err, ENOMEM, "a logical unit");
        return NULL;
    }
    lu->opts = *opts;
    if (lu->opts.depth == 0)
        lu->opts.depth = DEFAULT_DEPTH;
    lu->pr.holder = -1;
    make_identity(lu, opts);
    if (take_ports(lu, opts, err)) {
        free(lu);
        return NULL;
    }
    return lu;
}

static int take_aptpl(struct lu *lu, struct lp_error *err)
{
    if (!lu->opts.aptpl_path)
        return 0;
    lu->aptpl_path = strdup(lu->opts.aptpl_path);
    if (!lu->aptpl_path)
        return lp_error_sys(err, ENOMEM, "a logical unit");
    return lu_pr_load(lu, err);
}

/* lu->q is set, or NULL because it could not be opened. */
static struct lu *finish(struct lu *lu, struct lp_error *err)
{
    if (lu->q && take_limits(lu, &lu->opts, err) == 0 && take_aptpl(lu, err) == 0) {
        lu->mode = lu_mode_default(lu);
        return lu;
    }
    lp_error_prefix(err, "LUN %" PRIu32, lu->opts.number);
    lu_free(lu);
    return NULL;
}

struct lu *lu_new(struct lp_disk *disk, const struct lu_opts *opts, struct lp_error *err)
{
    struct lu *lu = make(opts, err);

    if (!lu || !disk)
        return lu;
    lu->disk = disk;
    lu->q = open_disk_queue(disk, lu->opts.depth, err);
    return finish(lu, err);
}

struct lu *lu_new_queue(struct lp_queue *queue, const struct lu_opts *opts, struct lp_error *err)
{
    struct lu *lu = make(opts, err);

    if (!lu) {
        lp_queue_close(queue);
        return NULL;
    }
    lu->q = open_queue(queue, lu->opts.depth, err);
    return finish(lu, err);
}

void lu_free(struct lu *lu)
{
    if (!lu)
        return;
    assert(lu->tasks == 0 && !lu->nexuses);
    lp_queue_close(lu->q);
    lu_map_free(lu);
    free(lu->aptpl_path);
    free(lu->scratch);
    free(lu);
}

uint32_t lu_block_size(const struct lu *lu)
{
    return lu->block_size;
}

uint64_t lu_blocks(const struct lu *lu)
{
    return lu->blocks;
}

unsigned lu_tasks(const struct lu *lu)
{
    return lu->tasks;
}

int lu_resize(struct lu *lu, uint64_t size, struct lp_error *err)
{
    uint64_t before = lu->blocks;

    if (!lu->q)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "there is no logical unit to resize");
    if (lu->disk && size > lu->q->limits.size && size <= lp_disk_limits(lu->disk)->size) {
        /* The queue knows the disk as it was when it was opened. */
        if (lu->in_flight > 0 || lu->stalled.first)
            return lp_error_set(err, LP_ERROR_SYS, EBUSY,
                                "LUN %" PRIu32 " has I/O in flight: try again", lu->opts.number);
        struct lp_queue *q = open_disk_queue(lu->disk, lu->opts.depth, err);
        if (!q)
            return -1;
        lp_queue_close(lu->q);
        lu->q = q;
    }
    if (take_size(lu, size, err))
        return -1;
    if (lu->blocks != before) {
        lu_map_free(lu); /* everything counts as mapped again */
        lu_ua(lu, NULL, SCSI_ASC_CAPACITY_CHANGED);
    }
    return 0;
}

/* ---- invariants ---- */

static void check_lists(const struct lu *lu)
{
    unsigned tasks = 0, blocked = 0, ended = 0;

    for (const struct lu_task *t = lu->set_first; t; t = t->set_next) {
        assert(t->lu == lu && t->state != LU_TASK_IDLE);
        assert(t->set_next ? t->set_next->set_prev == t : lu->set_last == t);
        assert(!t->set_next || t->sequence < t->set_next->sequence);
        tasks++;
        blocked += t->state == LU_TASK_BLOCKED;
    }
    for (const struct lu_task *t = lu->work_first; t; t = t->work_next) {
        assert(t->works && t->state != LU_TASK_ENTERED);
        assert(t->claim == CLAIM_NONE || t->block_count > 0);
    }
    for (const struct lu_task *t = lu->ended.first; t; t = t->wait_next)
        ended++;
    assert(tasks == lu->tasks && blocked == lu->blocked && ended <= tasks);
    (void)tasks, (void)blocked, (void)ended;
}

static bool counters_are_zero(const struct lu_claims *c)
{
    static const struct lu_claims zero;

    return memcmp(c->readers, zero.readers, sizeof c->readers) == 0 &&
           memcmp(c->writers, zero.writers, sizeof c->writers) == 0;
}

void lu_check_invariants(const struct lu *lu)
{
    unsigned tasks = 0;

    check_lists(lu);
    for (const struct lu_nexus *n = lu->nexuses; n; n = n->next) {
        assert(n->registrant < 0 ||
               (n->registrant < LU_REGISTRANTS_MAX && lu->pr.registrants[n->registrant].key != 0));
        assert(n->ua_count <= LU_UA_MAX);
        tasks += n->tasks;
    }
    assert(tasks == lu->tasks);
    assert(lu->in_flight <= lu->tasks);
    assert(lu->pr.type == 0 || lu_pr_count(&lu->pr) > 0);
    if (lu->tasks == 0) {
        assert(lu->claims.all_readers == 0 && lu->claims.all_writers == 0);
        assert(lu->claims.wide_readers == 0 && lu->claims.wide_writers == 0);
        assert(!lu->scratch_owner && !lu->stalled.first && !lu->work_first);
        assert(counters_are_zero(&lu->claims));
        assert(lu->shared_set.ordered == 0 && lu->shared_set.head_of_queue == 0);
    }
    (void)tasks;
}
