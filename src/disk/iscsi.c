/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iscsi://...: a LUN. The disk knows what the LUN is and can do (initiator/lun.h); each queue has a
 * reactor of its own and one or more links (initiator/link.h) with sessions of their own, used in
 * turn, so that queues share nothing.
 *
 * What a request becomes, and how its pieces follow each other, is in iscsi_request.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/rng.h"
#include "disk/iscsi_int.h"

enum { DEPTH_MAX = 512, QUEUES_MAX = 64, SESSIONS_MAX = 16, SEGMENTS_MAX = 256 };

/* ---- limits ---- */

static bool can_unmap(const struct lun_info *info)
{
    return info->capacity.lbpme && info->has_provisioning &&
           (info->provisioning.lbpu || info->provisioning.lbpws);
}

static void iscsi_limits(const struct iscsi_disk *disk, const struct lun_info *info,
                         struct lp_limits *l)
{
    uint64_t most = disk->opts.max_transfer ? disk->opts.max_transfer : 1 << 20;
    bool cache = !info->has_caching || info->caching.wce;

    memset(l, 0, sizeof(*l));
    if (info->has_limits && info->limits.max_transfer &&
        (uint64_t)info->limits.max_transfer * info->capacity.block_size < most)
        most = (uint64_t)info->limits.max_transfer * info->capacity.block_size;
    most -= most % info->capacity.block_size;
    if (most == 0)
        most = info->capacity.block_size;
    l->size = info->size;
    l->block_size = info->capacity.block_size;
    l->mem_align = 1;
    l->max_transfer = (uint32_t)most;
    l->max_segments = SEGMENTS_MAX;
    l->depth = DEPTH_MAX;
    l->queues = QUEUES_MAX;
    l->fua = info->dpofua || !cache ? LP_FUA_NATIVE : LP_FUA_EMULATED;
    l->read_only = disk->read_only || info->write_protected;
    l->discard = !l->read_only && can_unmap(info);
    l->write_zeroes = !l->read_only;
}

/* ---- links ---- */

static int random_for_login(void *user, void *bytes, size_t n)
{
    (void)user;
    return random_bytes(bytes, n, NULL);
}

static void tell(const struct iscsi_queue *q, const char *what, const char *why)
{
    const struct lp_iscsi_opts *o = &q->disk->opts;
    char sentence[640];

    snprintf(sentence, sizeof(sentence), "%s%s", what, why);
    if (o->log)
        o->log(o->log_user, sentence);
}

static void on_probed(struct lun_probe *probe, const struct lp_error *why);

static void start_probe(struct iscsi_path *path, bool brief)
{
    path->probing = true;
    path->probe.brief = brief;
    path->probe.done = on_probed;
    path->probe.user = path;
    lun_probe_start(&path->probe, path->link, path->queue->disk->url.lun);
}

/* Of a queue that is in use; depth, segments and transfer size stay as its user knows them. */
static void update_limits(struct iscsi_queue *q)
{
    const struct lp_iscsi_opts *o = &q->disk->opts;
    struct lp_limits now;

    iscsi_limits(q->disk, &q->info, &now);
    q->head.limits.size = now.size;
    q->head.limits.fua = now.fua;
    q->head.limits.read_only = now.read_only;
    q->head.limits.discard = now.discard;
    q->head.limits.write_zeroes = now.write_zeroes;
    tell(q, "the LUN has changed: its size, its write protection or its cache", "");
    if (o->changed)
        o->changed(o->changed_user, &q->head.limits);
}

/* Commands that wait for a session and were never sent go to one that is up. */
static void fail_over(struct iscsi_queue *q)
{
    struct link *up = NULL;

    for (unsigned i = 0; i < q->path_count && !up; i++)
        if (link_state(q->paths[i].link) == LINK_UP)
            up = q->paths[i].link;
    for (unsigned i = 0; i < q->path_count && up; i++)
        link_move_unsent(q->paths[i].link, up);
}

static void take_probe(struct iscsi_path *path)
{
    struct iscsi_queue *q = path->queue;
    struct lun_probe *probe = &path->probe;
    bool live = link_state(path->link) == LINK_UP;
    struct lun_info before = q->info;
    struct lp_error err;

    /* A size that shrinks while the target tells of it is a change, not another disk. */
    if (live && probe->info.size < before.size)
        before.size = probe->info.size;
    if (q->known && lun_compare(&before, &probe->info, &err) < 0) {
        link_refuse(path->link, &err);
        return;
    }
    if (lun_update(&q->info, &probe->info, probe->brief) && q->known)
        update_limits(q);
    q->known = true;
    if (!live)
        link_ready(path->link);
    if (path->again)
        start_probe(path, false);
    path->again = false;
    fail_over(q);
}

static void on_probed(struct lun_probe *probe, const struct lp_error *why)
{
    struct iscsi_path *path = probe->user;

    path->probing = false;
    if (!why)
        take_probe(path);
    else if (link_state(path->link) == LINK_UP)
        tell(path->queue, "the LUN has told of a change, but it cannot be read: ", why->msg);
    else if (path->queue->known) /* it may not be there yet: targets start before their LUNs */
        link_postpone(path->link, why);
    else if (link_state(path->link) == LINK_CHECKING)
        link_refuse(path->link, why);
    /* Otherwise the session went away meanwhile, and the link begins again by itself. */
}

static void on_checking(void *user, struct link *link)
{
    struct iscsi_path *path = user;
    struct iscsi_queue *q = path->queue;

    (void)link;
    if (!q->known && q->disk->known) {
        q->info = q->disk->info;
        q->known = true;
    }
    path->again = false;
    start_probe(path, q->known);
}

static void on_down(void *user, struct link *link)
{
    (void)link;
    fail_over(((struct iscsi_path *)user)->queue);
}

/* Comes while a command is judged: what it asks for is only submitted here. */
static void on_attention(void *user, struct link *link, uint16_t asc)
{
    struct iscsi_path *path = user;

    if (asc == 0x3f0e)
        tell(path->queue, "the target's list of LUNs has changed", "");
    if (!lun_attention_probes(asc))
        return;
    if (path->probing || link_state(link) != LINK_UP)
        path->again = true;
    else
        start_probe(path, false);
}

static void on_log(void *user, const char *sentence)
{
    tell(((struct iscsi_path *)user)->queue, sentence, "");
}

/* OUI format is not ours to use; 80h is random, 24 bits, and a 16 bit qualifier (11.12.5). */
static void make_isid(struct iscsi_disk *disk, uint8_t isid[6])
{
    uint64_t bits = rng_mix(disk->isid_seed);

    isid[0] = 0x80;
    isid[1] = (uint8_t)(bits >> 16);
    store_be16(isid + 2, (uint16_t)bits);
    store_be16(isid + 4, (uint16_t)atomic_fetch_add(&disk->next_qualifier, 1));
}

static enum iscsi_digest_wish digest_of(enum lp_digest wish)
{
    switch (wish) {
    case LP_DIGEST_OFF:
        return ISCSI_DIGEST_NONE;
    case LP_DIGEST_PREFERRED:
        return ISCSI_DIGEST_PREFER_CRC;
    case LP_DIGEST_REQUIRED:
        return ISCSI_DIGEST_REQUIRE;
    default:
        return ISCSI_DIGEST_PREFER_NONE;
    }
}

void iscsi_link_opts(const struct lp_iscsi_opts *o, const struct iscsi_url *url,
                     struct link_opts *l)
{
    const uint64_t second = 1000000000;

    link_opts_default(l);
    l->host = url->host;
    l->port = url->port;
    l->login.initiator_name = o->initiator_name;
    l->login.initiator_alias = o->initiator_alias;
    l->login.target_name = url->target;
    l->login.wishes.header_digest = digest_of(o->header_digest);
    l->login.wishes.data_digest = digest_of(o->data_digest);
    l->login.chap_optional = o->chap_optional;
    l->login.chap_algorithms = o->chap_algorithms;
    l->login.random = random_for_login;
    l->allow_short_secrets = o->allow_short_secrets;
    if (o->secret) {
        l->login.chap.user = url->user[0] ? url->user : o->user;
        l->login.chap.secret = o->secret;
        l->login.chap.secret_length = strlen(o->secret);
    }
    if (o->target_secret) {
        l->login.mutual.user = o->target_user;
        l->login.mutual.secret = o->target_secret;
        l->login.mutual.secret_length = strlen(o->target_secret);
    }
    if (o->hold_s)
        l->hold_ns = o->hold_s * second;
    if (o->command_s)
        l->command_ns = o->command_s * second;
    if (o->login_s)
        l->login_ns = o->login_s * second;
    if (o->ping_s)
        l->ping_idle_ns = o->ping_s * second;
}

int iscsi_fresh_isid(uint8_t isid[6], struct lp_error *err)
{
    isid[0] = 0x80;
    return random_bytes(isid + 1, 5, err);
}

static int open_path(struct iscsi_queue *q, struct iscsi_path *path, unsigned depth,
                     struct lp_error *err)
{
    struct link_opts l;

    iscsi_link_opts(&q->disk->opts, &q->disk->url, &l);
    make_isid(q->disk, l.login.isid);
    l.depth = depth;
    l.seen_before = q->disk->known;
    l.checking = on_checking;
    l.down = on_down;
    l.attention = on_attention;
    l.log = on_log;
    l.user = path;
    path->queue = q;
    path->link = link_open(q->reactor, &l, err);
    return path->link ? 0 : -1;
}

/* ---- queues ---- */

static int iscsi_submit(struct lp_queue *head, struct lp_request *req)
{
    struct iscsi_queue *q = (struct iscsi_queue *)head;
    struct iscsi_slot *slot = q->free;

    if (!slot)
        return -EAGAIN;
    q->free = slot->next_free;
    q->in_flight++;
    slot->req = req;
    req->status = disk_check(&head->limits, req);
    if (req->status != 0)
        iscsi_slot_end(slot, req->status);
    else
        iscsi_request_begin(slot);
    return 0;
}

void iscsi_slot_end(struct iscsi_slot *slot, int status)
{
    struct iscsi_queue *q = slot->queue;

    slot->req->status = status;
    list_add(&q->done, slot->req);
    slot->next_free = q->free;
    q->free = slot;
}

/* In turn, but not where the target is away while another session is up. */
struct link *iscsi_queue_link(struct iscsi_queue *q)
{
    for (unsigned i = 0; i < q->path_count; i++) {
        q->turn = (q->turn + 1) % q->path_count;
        if (link_state(q->paths[q->turn].link) == LINK_UP)
            break;
    }
    return q->paths[q->turn].link;
}

static void iscsi_kick(struct lp_queue *head)
{
    net_flush(((struct iscsi_queue *)head)->reactor);
}

static int complete(struct iscsi_queue *q)
{
    unsigned before = q->done.count;
    int n;

    q->in_flight -= before;
    n = list_complete(&q->done, &q->head.stats);
    return n;
}

static int iscsi_poll(struct lp_queue *head, uint64_t wait_ns)
{
    struct iscsi_queue *q = (struct iscsi_queue *)head;
    const struct net_reactor_stats *stats = net_reactor_stats(q->reactor);
    uint64_t until = wait_ns ? net_now_exact(q->reactor) + wait_ns : 0;
    int n;

    net_run_once(q->reactor, 0);
    while (q->done.count == 0 && q->in_flight > 0 && net_now(q->reactor) < until)
        net_run_once(q->reactor, until - net_now(q->reactor));
    n = complete(q);
    net_flush(q->reactor); /* what complete() has submitted */
    head->stats.syscalls = stats->waits + stats->recvs + stats->sends;
    return n;
}

static void iscsi_queue_close(struct lp_queue *head)
{
    struct iscsi_queue *q = (struct iscsi_queue *)head;

    for (unsigned i = 0; i < q->path_count; i++)
        link_close(q->paths[i].link, 2000000000);
    net_reactor_free(q->reactor);
    free(q->paths);
    free(q->slots);
    free(q);
}

static struct iscsi_queue *queue_new(struct iscsi_disk *disk, unsigned depth, struct lp_error *err)
{
    static const struct lp_queue_ops ops = {
        .submit = iscsi_submit, .kick = iscsi_kick, .poll = iscsi_poll, .close = iscsi_queue_close};
    unsigned sessions = disk->opts.sessions ? disk->opts.sessions : 1;
    struct iscsi_queue *q = calloc(1, sizeof(*q));

    if (!q)
        goto no_memory;
    q->head.ops = &ops;
    q->disk = disk;
    q->paths = calloc(sessions, sizeof(*q->paths));
    q->slots = calloc(depth, sizeof(*q->slots));
    if (!q->paths || !q->slots)
        goto no_memory;
    q->depth = depth;
    for (unsigned i = depth; i-- > 0;) {
        q->slots[i].queue = q;
        q->slots[i].next_free = q->free;
        q->free = &q->slots[i];
    }
    q->reactor = net_reactor_new(NULL, err);
    if (!q->reactor)
        goto out;
    for (; q->path_count < sessions; q->path_count++)
        if (open_path(q, &q->paths[q->path_count], depth, err) < 0)
            goto out;
    return q;
no_memory:
    lp_error_sys(err, ENOMEM, "cannot make a queue");
out:
    if (q && q->reactor) {
        iscsi_queue_close(&q->head);
        return NULL;
    }
    if (q) {
        free(q->paths);
        free(q->slots);
    }
    free(q);
    return NULL;
}

/* A target that was seen is waited for as I/O would wait. */
static int queue_wait(struct iscsi_queue *q, struct lp_error *err)
{
    unsigned hold = q->disk->opts.hold_s ? q->disk->opts.hold_s : 120;
    uint64_t patience = q->disk->known ? hold * (uint64_t)1000000000 : 0;

    for (unsigned i = 0; i < q->path_count; i++)
        if (link_wait(q->paths[i].link, patience, err) < 0)
            return -1;
    return 0;
}

static struct lp_queue *iscsi_queue_open(struct lp_disk *head, unsigned depth, struct lp_error *err)
{
    struct iscsi_disk *disk = (struct iscsi_disk *)head;
    struct iscsi_queue *q = atomic_exchange(&disk->spare, NULL);

    if (!q)
        q = queue_new(disk, depth, err);
    if (!q)
        return NULL;
    if (queue_wait(q, err) < 0) {
        iscsi_queue_close(&q->head);
        return NULL;
    }
    iscsi_limits(disk, &q->info, &q->head.limits);
    q->head.limits.depth = q->depth;
    while (q->head.limits.depth > depth) { /* the spare one has more slots than are wanted */
        q->free = q->free->next_free;
        q->head.limits.depth--;
    }
    return &q->head;
}

/* ---- the disk ---- */

static void iscsi_close(struct lp_disk *head)
{
    struct iscsi_disk *disk = (struct iscsi_disk *)head;

    struct iscsi_queue *spare = atomic_exchange(&disk->spare, NULL);

    if (spare)
        iscsi_queue_close(&spare->head);
    free(disk);
}

static struct lp_disk *iscsi_open(const char *rest, const struct lp_disk_opts *opts,
                                  struct lp_error *err)
{
    struct iscsi_disk *disk = calloc(1, sizeof(*disk));
    struct iscsi_queue *q;

    if (!disk) {
        lp_error_sys(err, ENOMEM, "cannot make a disk");
        return NULL;
    }
    if (!opts->iscsi || !opts->iscsi->initiator_name) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "no initiator name was given");
        goto out;
    }
    disk->opts = *opts->iscsi;
    if (disk->opts.sessions > SESSIONS_MAX) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "%u sessions a queue are too many, at most %d",
                     disk->opts.sessions, SESSIONS_MAX);
        goto out;
    }
    if (iscsi_url_parse(rest, ISCSI_URL_LUN, &disk->url, err) < 0)
        goto out;
    disk->isid_seed = disk->opts.isid_seed;
    if (!disk->isid_seed && random_bytes(&disk->isid_seed, sizeof(disk->isid_seed), err) < 0)
        goto out;
    disk->read_only = opts->read_only;
    q = queue_new(disk, DEPTH_MAX, err);
    if (!q)
        goto out;
    atomic_store(&disk->spare, q);
    if (queue_wait(q, err) < 0)
        goto out;
    disk->info = q->info;
    disk->known = true;
    iscsi_limits(disk, &disk->info, &disk->head.limits);
    snprintf(disk->head.mode, sizeof(disk->head.mode), "iSCSI, %.16s %.24s",
             disk->info.inquiry.vendor, disk->info.inquiry.product);
    return &disk->head;
out:
    iscsi_close(&disk->head);
    return NULL;
}

const struct lp_disk_type disk_iscsi = {
    .name = "iscsi",
    .help = "iscsi://[USER@]HOST[:PORT]/TARGET/LUN  a LUN of an iSCSI target",
    .open = iscsi_open,
    .queue = iscsi_queue_open,
    .close = iscsi_close,
};
