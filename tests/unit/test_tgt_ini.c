/* SPDX-License-Identifier: BSD-2-Clause */
/* The two roles against each other: what one sends the other takes, and every byte is right. */
#include "tgt_rig.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "iscsi/ini.h"

enum { SLOTS = 16, AREA = 64 * 1024, IOS = 300 };

struct io {
    struct ini_task task;
    struct pair *pair;
    struct iovec iov[2];
    uint32_t lba, blocks;
    bool busy, write;
    uint8_t data[AREA];
};

struct pair {
    struct trig *r;
    struct ini_session *ini;
    struct ini_conn *conns[2];
    unsigned conn_count, logged_in, done;
    struct io io[SLOTS];
    uint8_t model[RIG_RAM];
    bool over, logged_out;
};

static void on_event(void *user, const struct ini_event *event)
{
    struct pair *p = user;

    if (event->type == INI_EVENT_LOGGED_IN)
        p->logged_in++;
    else if (event->type == INI_EVENT_LOGIN_FAILED)
        fail_msg("login: %s", event->login.sentence);
    else if (event->type == INI_EVENT_SESSION_DROPPED)
        p->over = true;
    else if (event->type == INI_EVENT_LOGGED_OUT)
        p->logged_out = true;
    else if (event->type == INI_EVENT_CONN_CLOSE && event->close.why != INI_CLOSE_LOGGED_OUT)
        fail_msg("closed: %s", event->close.sentence);
}

static int on_random(void *user, void *bytes, size_t n)
{
    struct pair *p = user;

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)rng_next(&p->r->rng);
    return 0;
}

/* ---- bytes ---- */

static size_t chunk(struct pair *p, size_t n)
{
    if (p->r->mode == WIRE_BYTES) /* a few: byte by byte takes too long */
        return 1 + rng_below(&p->r->rng, n < 100 ? n : 100);
    return p->r->mode == WIRE_RANDOM ? 1 + rng_below(&p->r->rng, n) : n;
}

static size_t copy(struct iovec *to, unsigned to_count, const struct iovec *from, size_t most)
{
    size_t done = 0, at = 0;

    for (unsigned i = 0; i < to_count && done < most; i++)
        for (size_t n = 0; n < to[i].iov_len && done < most; n++) {
            while (at == from->iov_len) {
                from++;
                at = 0;
            }
            ((uint8_t *)to[i].iov_base)[n] = ((uint8_t *)from->iov_base)[at++];
            done++;
        }
    return done;
}

static size_t total(const struct iovec *iov, unsigned count)
{
    size_t n = 0;

    for (unsigned i = 0; i < count; i++)
        n += iov[i].iov_len;
    return n;
}

/* Some bytes of one connection, both ways. False: there were none. */
static bool move(struct pair *p, unsigned i)
{
    struct tgt_conn *t = p->r->conns[i].conn;
    struct iovec from[8], to[8];
    unsigned n = ini_conn_send_data(p->conns[i], from, 8), m;
    bool moved = false;

    if (n > 0) {
        m = tgt_conn_recv_space(t, to, 8);
        assert_true(m > 0);

        size_t k = copy(to, m, from, chunk(p, total(from, n)));

        tgt_conn_received(t, k, p->r->now);
        ini_conn_sent(p->conns[i], k);
        moved = true;
    }
    n = tgt_conn_send_data(t, from, 8);
    if (n > 0 && (m = ini_conn_recv_space(p->conns[i], to, 8)) > 0) {
        size_t k = copy(to, m, from, chunk(p, total(from, n)));

        ini_conn_received(p->conns[i], k, p->r->now);
        tgt_conn_sent(t, k);
        moved = true;
    }
    return moved;
}

static void pump(struct pair *p)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (unsigned i = 0; i < p->conn_count; i++)
            moved |= !p->r->conns[i].close_asked && move(p, i);
        ini_session_tick(p->ini, p->r->now);
    }
}

/* ---- I/O ---- */

static void on_done(struct ini_task *task)
{
    struct io *io = task->user;
    struct pair *p = io->pair;

    assert_int_equal(task->result, INI_OK);
    assert_int_equal(task->scsi_status, 0);
    assert_int_equal(task->residual, 0);
    if (!io->write)
        assert_memory_equal(io->data, p->model + io->lba * RIG_BLOCK, io->blocks * RIG_BLOCK);
    io->busy = false;
    p->done++;
}

/* Each slot has an area of the disk for itself, so that the order of tasks does not matter. */
static void submit(struct pair *p, unsigned slot)
{
    struct io *io = &p->io[slot];
    uint32_t most = AREA / RIG_BLOCK, first = (uint32_t)rng_below(&p->r->rng, most);

    memset(&io->task, 0, sizeof io->task);
    io->pair = p;
    io->busy = true;
    io->write = rng_below(&p->r->rng, 2);
    io->blocks = 1 + (uint32_t)rng_below(&p->r->rng, most - first);
    if (rng_below(&p->r->rng, 2))
        io->blocks = 1;
    io->lba = slot * most + first;

    uint32_t length = io->blocks * RIG_BLOCK, split = (uint32_t)rng_below(&p->r->rng, length);

    if (io->write) {
        trig_pattern(io->data, length, (uint32_t)rng_next(&p->r->rng));
        memcpy(p->model + io->lba * RIG_BLOCK, io->data, length);
    } else {
        memset(io->data, 0, length);
    }
    io->iov[0] = (struct iovec){io->data, split};
    io->iov[1] = (struct iovec){io->data + split, length - split};
    io->task.cdb[0] = io->write ? 0x2a : 0x28;
    store_be32(io->task.cdb + 2, io->lba);
    store_be16(io->task.cdb + 7, (uint16_t)io->blocks);
    io->task.cdb_length = 10;
    io->task.attr = ISCSI_ATTR_SIMPLE;
    io->task.direction = io->write ? INI_WRITE : INI_READ;
    io->task.iov = io->iov;
    io->task.iov_count = 2;
    io->task.length = length;
    io->task.deadline_ns = INI_NEVER;
    io->task.done = on_done;
    io->task.user = io;
    ini_submit(p->ini, &io->task);
}

static void add_conn(struct pair *p)
{
    struct lp_error err = {0};
    unsigned i = p->conn_count++;

    assert_true(trig_connect(p->r, i));
    p->conns[i] = ini_conn_new(p->ini, (uint16_t)i, &err);
    if (!p->conns[i])
        fail_msg("%s", err.msg);
    ini_conn_start(p->conns[i], INI_NEVER);
    pump(p);
    assert_int_equal(p->logged_in, i + 1);
}

static void start(struct pair *p, struct trig *r, bool initial_r2t, bool immediate, bool digests)
{
    struct lp_error err = {0};
    struct ini_opts opts = {
        .login = {.initiator_name = RIG_INITIATOR,
                  .target_name = RIG_TARGET,
                  .isid = {0x80, 0, 0, 0, 0, 1},
                  .portal_group_tag = -1,
                  .random = on_random,
                  .random_user = p},
        .depth = 12,
        .connections = 2,
        .event = on_event,
        .user = p,
    };
    struct iscsi_wishes *w = &opts.login.wishes;

    p->r = r;
    memcpy(p->model, r->ram, sizeof p->model);
    iscsi_wishes_default(w);
    w->params.max_connections = 2;
    w->params.initial_r2t = initial_r2t;
    w->params.immediate_data = immediate;
    w->params.mrdsl_in = 8192;
    w->params.first_burst_length = 4096;
    w->params.max_burst_length = 16384;
    w->params.max_outstanding_r2t = 2;
    if (digests)
        w->header_digest = w->data_digest = ISCSI_DIGEST_REQUIRE;
    p->ini = ini_session_new(&opts, &err);
    if (!p->ini)
        fail_msg("%s", err.msg);
    add_conn(p);
    add_conn(p);
}

static void finish(struct pair *p)
{
    struct ini_logout logout = {.reason = ISCSI_LOGOUT_SESSION, .deadline_ns = INI_NEVER};

    ini_logout(p->ini, &logout);
    pump(p);
    for (unsigned i = 0; i < p->conn_count; i++) {
        assert_true(p->r->conns[i].close_asked);
        trig_cut(p->r, i);
        ini_conn_closed(p->conns[i]);
    }
    ini_session_tick(p->ini, p->r->now);
    assert_true(p->logged_out);
    assert_int_equal(p->r->end, TGT_END_LOGOUT);
    for (unsigned i = 0; i < p->conn_count; i++)
        ini_conn_free(p->conns[i]);
    ini_session_free(p->ini);
}

static void exchange(struct trig *r, bool initial_r2t, bool immediate, bool digests)
{
    struct pair *p = calloc(1, sizeof *p);
    unsigned submitted = 0;

    start(p, r, initial_r2t, immediate, digests);
    while (p->done < IOS) {
        for (unsigned i = 0; i < SLOTS; i++)
            if (!p->io[i].busy && submitted < IOS && rng_below(&r->rng, 4)) {
                submit(p, i);
                submitted++;
            }
        pump(p);
    }
    assert_int_equal(r->commands, IOS);
    assert_memory_equal(r->ram, p->model, sizeof p->model);
    assert_int_equal(tgt_counters(r->tgt)->rejects, 0);
    finish(p);
    free(p);
}

static void the_roles_agree_with_immediate_and_unsolicited_data(struct trig *r)
{
    exchange(r, false, true, false);
}

static void the_roles_agree_with_unsolicited_data(struct trig *r)
{
    exchange(r, false, false, true);
}

static void the_roles_agree_with_immediate_data(struct trig *r)
{
    exchange(r, true, true, true);
}

static void the_roles_agree_with_r2t_alone(struct trig *r)
{
    exchange(r, true, false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(the_roles_agree_with_immediate_and_unsolicited_data),
        RIG(the_roles_agree_with_unsolicited_data),
        RIG(the_roles_agree_with_immediate_data),
        RIG(the_roles_agree_with_r2t_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
