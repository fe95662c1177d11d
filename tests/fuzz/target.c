/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target machine, from a stream of steps: raw bytes, PDUs that are well framed and have a
 * plausible CmdSN, answers of the owner in any order, time, cuts. The first byte says whether the
 * connections have logged in. At the end nothing may be left over.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "iscsi/tgt_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNS = 2, TASKS = 64, SPACE = 4096 };

struct owner {
    struct tgt *tgt;
    struct tgt_conn *conns[CONNS];
    bool close_asked[CONNS];
    struct tgt_task *tasks[TASKS];
    struct tgt_tmf *tmfs[TASKS];
    unsigned holds, commands, released, opened, closed;
    bool lazy; /* neither memory nor an end from inside a callback */
    uint64_t now;
    uint8_t space[SPACE];
    struct iovec iov;
    const uint8_t *at, *end;
};

static void require(bool right)
{
    if (!right)
        abort();
}

static uint8_t next(struct owner *o)
{
    return o->at < o->end ? *o->at++ : 0;
}

/* ---- the owner ---- */

static void on_command(void *user, struct tgt_task *task)
{
    struct owner *o = user;

    o->commands++;
    for (unsigned i = 0; i < TASKS; i++)
        if (!o->tasks[i]) {
            o->tasks[i] = task;
            if (task->write && !o->lazy)
                tgt_task_receive(task, &o->iov, 1, task->edtl < SPACE ? task->edtl : SPACE);
            return;
        }
    abort();
}

static void on_data(void *user, struct tgt_task *task)
{
    (void)user;
    require(task->write);
}

static void end(struct owner *o, struct tgt_task *task)
{
    for (unsigned i = 0; i < TASKS; i++)
        if (o->tasks[i] == task) {
            o->tasks[i] = NULL;
            tgt_task_end(task);
            return;
        }
    abort();
}

static void on_abort(void *user, struct tgt_task *task)
{
    struct owner *o = user;

    if (!o->lazy)
        end(o, task);
}

static void on_released(void *user, struct tgt_task *task)
{
    struct owner *o = user;

    for (unsigned i = 0; i < TASKS; i++)
        require(o->tasks[i] != task);
    o->released++;
}

static void on_tmf(void *user, struct tgt_tmf *tmf)
{
    struct owner *o = user;

    for (unsigned i = 0; i < TASKS; i++)
        if (!o->tmfs[i]) {
            o->tmfs[i] = tmf;
            return;
        }
    abort();
}

static void on_opened(void *user, struct tgt_session *session)
{
    (void)session;
    ((struct owner *)user)->opened++;
}

static void on_closed(void *user, struct tgt_session *session, enum tgt_session_end why)
{
    struct owner *o = user;

    (void)why;
    for (unsigned i = 0; i < TASKS; i++)
        require(!o->tasks[i] || o->tasks[i]->session != session);
    o->closed++;
}

static bool on_target(void *user, struct tgt_conn *conn, unsigned index, struct tgt_listing *l)
{
    (void)user;
    (void)conn;
    l->name = "iqn.2026-01.test:disk";
    return index < 20;
}

static bool on_address(void *user, struct tgt_conn *conn, const char *target, unsigned index,
                       char address[TGT_ADDRESS_MAX])
{
    (void)user;
    (void)conn;
    (void)target;
    memcpy(address, "192.0.2.1:3260,1", 17);
    return index < 2;
}

static void on_want(void *user, struct tgt_conn *conn)
{
    (void)user;
    (void)conn;
}

static void on_close(void *user, struct tgt_conn *conn, enum tgt_close why, const char *sentence)
{
    struct owner *o = user;

    (void)why;
    require(sentence && sentence[0]);
    for (unsigned i = 0; i < CONNS; i++)
        if (o->conns[i] == conn)
            o->close_asked[i] = true;
}

static void *on_hold(void *user, size_t length)
{
    struct owner *o = user;

    require(length > 0 && length <= 65536);
    o->holds++;
    return malloc(length);
}

static void on_unhold(void *user, void *memory, size_t length)
{
    (void)length;
    ((struct owner *)user)->holds--;
    free(memory);
}

static uint16_t on_lookup(void *user, struct login_tgt *l, struct login_policy *policy)
{
    (void)user;
    (void)l;
    policy->portal_group_tag = 1;
    return ISCSI_LOGIN_OK;
}

static int on_random(void *user, void *bytes, size_t n)
{
    (void)user;
    memset(bytes, 7, n);
    return 0;
}

static void make(struct owner *o)
{
    struct tgt_opts opts = {
        .ops =
            {
                .login = {.lookup = on_lookup, .random = on_random},
                .target = on_target,
                .target_address = on_address,
                .session_opened = on_opened,
                .session_closed = on_closed,
                .command = on_command,
                .data = on_data,
                .abort = on_abort,
                .released = on_released,
                .tmf = on_tmf,
                .want_send = on_want,
                .close = on_close,
                .hold = on_hold,
                .unhold = on_unhold,
            },
        .user = o,
        .depth = 8,
        .task_user_bytes = 8,
        .sessions_max = 4,
        .conns_max = 8,
        .immediate_max = 2,
        .logins_max = 8,
        .logins_max_peer = 8,
        .login_timeout_ns = 1000000000,
        .login_bytes_max = 65536,
        .ping_idle_ns = 3000000000,
        .ping_timeout_ns = 3000000000,
        .data_timeout_ns = 3000000000,
    };
    struct lp_error err;

    iscsi_wishes_default(&opts.wishes);
    opts.wishes.params.mrdsl_in = 8192;
    opts.wishes.params.max_connections = 2;
    opts.wishes.params.first_burst_length = 2048;
    opts.wishes.params.max_burst_length = 2048;
    opts.wishes.params.max_outstanding_r2t = 2;
    opts.wishes.params.initial_r2t = false;
    opts.wishes.params.protocol_level = 2;
    o->iov = (struct iovec){o->space, SPACE};
    o->tgt = tgt_new(&opts, &err);
    require(o->tgt != NULL);
}

/* ---- bytes ---- */

static void cut(struct owner *o, unsigned i)
{
    if (!o->conns[i])
        return;
    tgt_conn_closed(o->conns[i], o->now);
    tgt_conn_free(o->conns[i]);
    o->conns[i] = NULL;
    o->close_asked[i] = false;
}

static void reap(struct owner *o)
{
    for (unsigned i = 0; i < CONNS; i++)
        if (o->close_asked[i])
            cut(o, i);
}

static void give(struct owner *o, unsigned i, const uint8_t *bytes, size_t n)
{
    while (n > 0 && o->conns[i] && !o->close_asked[i]) {
        struct iovec iov[4];
        unsigned count = tgt_conn_recv_space(o->conns[i], iov, 4);
        size_t part = count > 0 ? iov[0].iov_len : 0;

        if (count == 0)
            return;
        require(part > 0);
        if (part > n)
            part = n;
        memcpy(iov[0].iov_base, bytes, part);
        bytes += part;
        n -= part;
        tgt_conn_received(o->conns[i], part, o->now);
    }
}

static void take(struct owner *o, unsigned i, bool all)
{
    struct iovec iov[8];
    unsigned count;

    while (o->conns[i] && !o->close_asked[i] &&
           (count = tgt_conn_send_data(o->conns[i], iov, 8)) > 0) {
        size_t n = 0;
        volatile uint8_t sum = 0;

        for (unsigned k = 0; k < count; k++) {
            n += iov[k].iov_len;
            for (size_t b = 0; b < iov[k].iov_len; b++)
                sum = (uint8_t)(sum + ((uint8_t *)iov[k].iov_base)[b]);
        }
        tgt_conn_sent(o->conns[i], all ? n : 1 + n / 2);
        if (!all)
            return;
    }
}

static void log_in(struct owner *o, unsigned i, uint16_t tsih)
{
    static const char keys[] = "InitiatorName=iqn.2026-01.test:i\0TargetName=iqn.2026-01.test:disk";
    struct iscsi_login_request pdu = {
        .immediate = true,
        .transit = true,
        .csg = ISCSI_STAGE_OPERATIONAL,
        .nsg = ISCSI_STAGE_FULL_FEATURE,
        .data_segment_length = sizeof keys,
        .tsih = tsih,
        .cid = (uint16_t)i,
        .cmd_sn = 1,
    };
    uint8_t bytes[ISCSI_BHS_SIZE + sizeof keys + 3] = {0};

    iscsi_login_request_pack(bytes, &pdu);
    memcpy(bytes + ISCSI_BHS_SIZE, keys, sizeof keys);
    give(o, i, bytes, ISCSI_BHS_SIZE + sizeof keys + iscsi_padding(sizeof keys));
    take(o, i, true);
}

static void join(struct owner *o, unsigned i, bool login)
{
    struct tgt_portal portal = {"192.0.2.1:3260", 1};
    struct lp_error err;

    if (o->conns[i])
        return;
    o->conns[i] = tgt_conn_new(o->tgt, &portal, "198.51.100.1:9", o->now, &err);
    if (o->conns[i] && login)
        log_in(o, i, i > 0 && o->tgt->sessions ? o->tgt->sessions->tsih : 0);
}

/* A Data-Out for some sequence that is due, if there is one. */
static void aim(const struct tgt_session *s, uint8_t *bhs, uint8_t how)
{
    for (unsigned i = 1; i < s->slot_count; i++) {
        const struct tgt_slot *slot = tgt_slot_at(s, i);
        const struct tgt_burst *burst = &slot->unsolicited;

        if (slot->kind != TGT_COMMAND || !tgt_data_due(slot) || (how & 0x20 && i % 2))
            continue;
        if (slot->bursts_open)
            burst = &slot->bursts[slot->bursts_open & 1 ? 0 : 1];
        store_be32(bhs + 16, slot->itt);
        store_be32(bhs + 20, burst->ttt);
        store_be64(bhs + 8, slot->lun);
        store_be32(bhs + 36, burst->data_sn);
        store_be32(bhs + 40, burst->offset + burst->received);
        return;
    }
}

/* A header from the input; its lengths, and now and then its CmdSN and tags, are made to fit. */
static void give_pdu(struct owner *o, unsigned i, uint8_t how)
{
    uint8_t bytes[ISCSI_BHS_SIZE + 2100] = {0};
    struct tgt_session *s = o->conns[i] ? o->conns[i]->session : NULL;
    uint32_t n = how & 0x40 ? (uint32_t)next(o) * 8 : 0;

    for (unsigned k = 0; k < ISCSI_BHS_SIZE; k++)
        bytes[k] = k < 24 || k >= 32 ? next(o) : 0;
    bytes[4] = 0;
    store_be24(bytes + 5, n);
    if (s && how & 1)
        store_be32(bytes + 24, s->exp_cmd_sn + (how >> 4 & 1));
    if (s && how & 2)
        store_be32(bytes + 28, o->conns[i]->stat_sn);
    if (how & 4)
        store_be32(bytes + 16, bytes[19] % 8);
    if (how & 8)
        store_be64(bytes + 8, 0);
    if (s && (bytes[0] & 0x3f) == ISCSI_DATA_OUT)
        aim(s, bytes, how);
    if (s && (bytes[0] & 0x3f) == ISCSI_TEXT_REQUEST && how & 0x80)
        store_be32(bytes + 20, how & 1 ? o->conns[i]->text.ttt : ISCSI_TAG_NONE);
    give(o, i, bytes, ISCSI_BHS_SIZE + n + iscsi_padding(n));
}

static void answer(struct owner *o, uint8_t which)
{
    struct tgt_task *task = o->tasks[which % TASKS];
    struct tgt_answer a = {.status = next(o) & 1 ? 2 : 0};

    if (!task)
        return;
    if (next(o) & 1 && task->write) {
        tgt_task_receive(task, &o->iov, 1, task->edtl < SPACE ? task->edtl / 2 : SPACE);
        return;
    }
    o->tasks[which % TASKS] = NULL;
    if (a.status == 0 && task->read) {
        a.iov = &o->iov;
        a.iov_count = 1;
        a.length = SPACE;
    }
    a.transfer = next(o) * 64u;
    if (a.status == 2) {
        a.sense = o->space;
        a.sense_length = next(o);
    }
    tgt_task_respond(task, &a);
}

static void answer_tmf(struct owner *o, uint8_t which)
{
    struct tgt_tmf *tmf = o->tmfs[which % TASKS];

    if (!tmf)
        return;
    o->tmfs[which % TASKS] = NULL;
    for (unsigned i = 0; i < TASKS; i++)
        if (o->tasks[i] && (tmf->task ? tmf->task == o->tasks[i] : o->tasks[i]->lun == tmf->lun))
            end(o, o->tasks[i]);
    tgt_tmf_respond(tmf, ISCSI_TMF_COMPLETE, 0);
}

static void step(struct owner *o)
{
    uint8_t what = next(o), i = what & 1, arg = next(o);
    uint8_t raw[64];

    switch (what >> 1 & 0xf) {
    case 0:
        for (unsigned k = 0; k < sizeof raw; k++)
            raw[k] = next(o);
        give(o, i, raw, arg % sizeof raw + 1u);
        break;
    case 1:
        answer(o, arg);
        break;
    case 2:
        answer_tmf(o, arg % 4);
        break;
    case 3:
        take(o, i, arg & 1);
        break;
    case 4:
        o->now += arg * 20000000ull;
        tgt_tick(o->tgt, o->now);
        break;
    case 5:
        if (arg < 40)
            cut(o, i);
        join(o, i, true);
        break;
    case 6:
        o->lazy = arg & 1;
        if (o->conns[i])
            tgt_conn_ping(o->conns[i]);
        break;
    case 7:
        if (arg < 10 && o->tgt->sessions)
            tgt_session_close(o->tgt->sessions, "the fuzzer closes it");
        else if (arg < 30 && o->conns[i])
            tgt_conn_ask_logout(o->conns[i], 1);
        break;
    default:
        give_pdu(o, i, arg);
        break;
    }
    reap(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct owner *o = calloc(1, sizeof *o);
    uint8_t kind;

    require(o != NULL);
    o->at = data;
    o->end = data + size;
    kind = next(o);
    make(o);
    join(o, 0, kind & 1);
    join(o, 1, kind & 2);
    if (!(kind & 3)) /* plain bytes from the first on */
        give(o, 0, o->at, (size_t)(o->end - o->at));
    while (o->at < o->end)
        step(o);
    for (unsigned i = 0; i < CONNS; i++)
        cut(o, i);
    for (uint8_t i = 0; i < TASKS; i++) {
        if (o->tasks[i])
            end(o, o->tasks[i]);
        answer_tmf(o, i);
    }
    tgt_tick(o->tgt, o->now + 10000000000000);
    require(o->holds == 0 && o->commands == o->released && o->opened == o->closed);
    require(o->tgt->sessions == NULL && o->tgt->counters.sessions == 0);
    tgt_free(o->tgt);
    free(o);
    return 0;
}
