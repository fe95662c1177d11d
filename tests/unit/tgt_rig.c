/* SPDX-License-Identifier: BSD-2-Clause */
#include "tgt_rig.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t second = 1000000000;

void trig_pattern(uint8_t *bytes, size_t n, uint32_t from)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)((from + i) * 7 + ((from + i) >> 8) * 13 + 1);
}

/* ---- the owner: a small logical unit ---- */

static void remember(struct trig *r, struct tgt_task *task)
{
    for (unsigned i = 0; i < RIG_TASKS; i++)
        if (!r->tasks[i]) {
            r->tasks[i] = task;
            return;
        }
    fail_msg("more tasks than the rig remembers");
}

static void forget(struct trig *r, const struct tgt_task *task)
{
    for (unsigned i = 0; i < RIG_TASKS; i++)
        if (r->tasks[i] == task) {
            r->tasks[i] = NULL;
            return;
        }
    fail_msg("a task that the owner does not have");
}

struct tgt_task *trig_task(struct trig *r, uint32_t itt)
{
    for (unsigned i = 0; i < RIG_TASKS; i++)
        if (r->tasks[i] && r->tasks[i]->itt == itt)
            return r->tasks[i];
    return NULL;
}

/* It stays until the task is released. */
static struct iovec *iov_of(const struct tgt_task *task)
{
    return task->user;
}

static uint64_t extent(const struct tgt_task *task)
{
    return (uint64_t)load_be16(task->cdb + 7) * RIG_BLOCK;
}

static bool in_range(const struct tgt_task *task)
{
    return (uint64_t)load_be32(task->cdb + 2) * RIG_BLOCK + extent(task) <= RIG_RAM;
}

static void check_condition(struct tgt_task *task, uint8_t key, uint8_t asc)
{
    uint8_t sense[18] = {0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc};
    struct tgt_answer a = {.status = 2, .sense = sense, .sense_length = sizeof sense};

    tgt_task_respond(task, &a);
}

void trig_respond(struct tgt_task *task, uint8_t status)
{
    struct trig *r = tgt_session_user(task->session);
    struct tgt_answer a = {.status = status, .transfer = task->edtl};

    forget(r, task);
    tgt_task_respond(task, &a);
}

void trig_end(struct trig *r, struct tgt_task *task)
{
    forget(r, task);
    tgt_task_end(task);
}

static void answer_read(struct trig *r, struct tgt_task *task)
{
    struct tgt_answer a = {
        .iov = iov_of(task),
        .iov_count = 1,
        .length = (uint32_t)extent(task),
        .transfer = extent(task),
    };

    *iov_of(task) = (struct iovec){r->ram + load_be32(task->cdb + 2) * RIG_BLOCK, a.length};
    forget(r, task);
    tgt_task_respond(task, &a);
}

static void finish_write(struct trig *r, struct tgt_task *task)
{
    struct tgt_answer a = {.transfer = extent(task)};

    forget(r, task);
    tgt_task_respond(task, &a);
}

static void take_write(struct trig *r, struct tgt_task *task)
{
    *iov_of(task) = (struct iovec){r->ram + load_be32(task->cdb + 2) * RIG_BLOCK, extent(task)};
    r->received = tgt_task_receive(task, iov_of(task), 1, (uint32_t)extent(task));
    if (r->received == 0 && !r->manual)
        finish_write(r, task);
}

static void answer_inquiry(struct trig *r, struct tgt_task *task)
{
    static uint8_t page[36] = {0, 0, 6, 2, 31};
    uint32_t n = load_be16(task->cdb + 3);
    struct tgt_answer a = {.iov = iov_of(task), .iov_count = 1, .length = n < 36 ? n : 36};

    *iov_of(task) = (struct iovec){page, 36};
    a.transfer = a.length;
    forget(r, task);
    tgt_task_respond(task, &a);
}

static void on_command(void *user, struct tgt_task *task)
{
    struct trig *r = user;
    size_t used = strlen(r->log);

    r->commands++;
    assert_non_null(r->session);
    memset(task->user, 0x5a, r->opts.task_user_bytes);
    if (used + 1 < sizeof r->log)
        r->log[used] = (char)('a' + task->itt % 26);
    remember(r, task);

    if (r->manual) {
        if (task->cdb[0] == 0x2a && !r->no_receive)
            take_write(r, task);
        return;
    }
    if ((task->cdb[0] == 0x28 || task->cdb[0] == 0x2a) && !in_range(task)) {
        forget(r, task);
        check_condition(task, 5, 0x21);
    } else if (task->cdb[0] == 0x28) {
        answer_read(r, task);
    } else if (task->cdb[0] == 0x2a) {
        take_write(r, task);
    } else if (task->cdb[0] == 0x12) {
        answer_inquiry(r, task);
    } else if (task->cdb[0] == 0) {
        forget(r, task);
        tgt_task_respond(task, &(struct tgt_answer){.status = 0});
    } else {
        forget(r, task);
        check_condition(task, 5, 0x20);
    }
}

static void on_data(void *user, struct tgt_task *task)
{
    struct trig *r = user;

    r->datas++;
    if (!r->manual)
        finish_write(r, task);
}

static void on_abort(void *user, struct tgt_task *task)
{
    struct trig *r = user;

    r->aborts++;
    if (!r->hang)
        trig_end(r, task);
}

static void on_released(void *user, struct tgt_task *task)
{
    struct trig *r = user;

    (void)task;
    r->released++;
}

static void on_tmf(void *user, struct tgt_tmf *tmf)
{
    struct trig *r = user;

    if (r->manual_tmf) {
        r->tmfs[r->tmf_count++] = tmf;
        return;
    }
    r->tmf_count++;
    if (tmf->lun != 0) {
        tgt_tmf_respond(tmf, ISCSI_TMF_NO_LUN, 0);
        return;
    }
    for (unsigned i = 0; i < RIG_TASKS; i++)
        if (r->tasks[i] && (tmf->function == ISCSI_ABORT_TASK ? r->tasks[i] == tmf->task : true))
            trig_end(r, r->tasks[i]);
    tgt_tmf_respond(tmf, ISCSI_TMF_COMPLETE, 0);
}

static void on_opened(void *user, struct tgt_session *session)
{
    struct trig *r = user;

    r->opened++;
    r->session = session;
    tgt_session_set_user(session, r);
}

static void on_closed(void *user, struct tgt_session *session, enum tgt_session_end why)
{
    struct trig *r = user;

    for (unsigned i = 0; i < RIG_TASKS; i++)
        if (r->tasks[i])
            assert_ptr_not_equal(r->tasks[i]->session, session);
    r->session_closed++;
    r->end = why;
    if (r->session == session)
        r->session = NULL;
}

static void on_cleared(void *user, struct tgt_session *session)
{
    (void)session;
    ((struct trig *)user)->cleared++;
}

static void on_want_send(void *user, struct tgt_conn *conn)
{
    (void)user;
    assert_non_null(tgt_conn_user(conn));
}

static void on_want_recv(void *user, struct tgt_conn *conn)
{
    (void)user;
    ((struct trig_conn *)tgt_conn_user(conn))->want_recv++;
}

static void on_close(void *user, struct tgt_conn *conn, enum tgt_close why, const char *sentence)
{
    struct trig_conn *rc = tgt_conn_user(conn);

    (void)user;
    assert_false(rc->close_asked);
    rc->close_asked = true;
    rc->why = why;
    snprintf(rc->sentence, sizeof rc->sentence, "%s", sentence);
}

static void *on_hold(void *user, size_t length)
{
    struct trig *r = user;

    r->hold_calls++;
    if (r->no_hold)
        return NULL;
    r->holds++;
    return malloc(length);
}

static void on_unhold(void *user, void *memory, size_t length)
{
    (void)length;
    ((struct trig *)user)->holds--;
    free(memory);
}

static uint16_t on_lookup(void *user, struct login_tgt *l, struct login_policy *policy)
{
    (void)user;
    policy->portal_group_tag = tgt_conn_portal(l->opts.context)->group_tag;
    if (!l->discovery && strncmp(l->target_name, "iqn.2026-01.test:", 17) != 0)
        return ISCSI_LOGIN_NOT_FOUND;
    return ISCSI_LOGIN_OK;
}

static int on_random(void *user, void *bytes, size_t n)
{
    struct trig *r = user;

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)rng_next(&r->rng);
    return 0;
}

static bool on_target(void *user, struct tgt_conn *conn, unsigned index, struct tgt_listing *l)
{
    struct trig *r = user;
    static _Thread_local char name[64];

    if (index >= r->target_count ||
        (r->initiator && strcmp(r->initiator, tgt_conn_initiator_name(conn)) != 0))
        return false;
    if (index == 0)
        snprintf(name, sizeof name, "%s", RIG_TARGET);
    else
        snprintf(name, sizeof name, "iqn.2026-01.test:other%u", index);
    l->name = name;
    return true;
}

static bool on_address(void *user, struct tgt_conn *conn, const char *target, unsigned index,
                       char address[TGT_ADDRESS_MAX])
{
    (void)user;
    (void)conn;
    (void)target;
    if (index > 1)
        return false;
    snprintf(address, TGT_ADDRESS_MAX, "192.0.2.%u:3260,1", index + 1);
    return true;
}

/* ---- the rig ---- */

static void defaults(struct trig *r)
{
    struct tgt_opts *o = &r->opts;

    o->ops = (struct tgt_ops){
        .login = {.lookup = on_lookup, .random = on_random},
        .target = on_target,
        .target_address = on_address,
        .session_opened = on_opened,
        .session_closed = on_closed,
        .tasks_cleared = on_cleared,
        .command = on_command,
        .data = on_data,
        .abort = on_abort,
        .released = on_released,
        .tmf = on_tmf,
        .want_send = on_want_send,
        .want_recv = on_want_recv,
        .close = on_close,
        .hold = on_hold,
        .unhold = on_unhold,
    };
    o->user = r;
    iscsi_wishes_default(&o->wishes);
    o->wishes.params.max_connections = 2;
    o->wishes.params.initial_r2t = false;
    o->wishes.params.immediate_data = true;
    o->wishes.params.mrdsl_in = 65536;
    o->wishes.params.max_outstanding_r2t = 4;
    o->wishes.params.default_time2wait = 2;
    o->wishes.params.default_time2retain = 20;
    o->wishes.params.protocol_level = 2;
    o->wishes.params.task_reporting = ISCSI_REPORT_FAST_ABORT;
    o->depth = 16;
    o->task_user_bytes = 100;
    o->sessions_max = 4;
    o->conns_max = RIG_CONNS;
    o->immediate_max = 2;
    o->logins_max = RIG_CONNS;
    o->logins_max_peer = RIG_CONNS;
    o->login_timeout_ns = 15 * second;
    o->login_bytes_max = 256 << 10;
    o->ping_idle_ns = TGT_NEVER;
    o->ping_timeout_ns = 5 * second;
    o->data_timeout_ns = 10 * second;
}

static unsigned op_space(void *machine, struct iovec *iov, unsigned max)
{
    return tgt_conn_recv_space(((struct trig_conn *)machine)->conn, iov, max);
}

static void op_received(void *machine, size_t n)
{
    struct trig_conn *rc = machine;

    tgt_conn_received(rc->conn, n, rc->rig->now);
}

static unsigned op_data(void *machine, struct iovec *iov, unsigned max)
{
    return tgt_conn_send_data(((struct trig_conn *)machine)->conn, iov, max);
}

static void op_sent(void *machine, size_t n)
{
    tgt_conn_sent(((struct trig_conn *)machine)->conn, n);
}

static const struct wire_ops wire_ops = {op_space, op_received, op_data, op_sent};

void trig_open(struct trig *r, enum wire_mode mode, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->mode = mode;
    r->seed = seed;
    r->rng.state = seed;
    r->now = second;
    r->cmd_sn = 100;
    r->target_count = 3;
    memcpy(r->isid, "\x80\0\0\0\0\1", 6);
    trig_pattern(r->ram, sizeof r->ram, 0);
    defaults(r);
}

static void make(struct trig *r)
{
    struct lp_error err;

    r->tgt = tgt_new(&r->opts, &err);
    if (!r->tgt)
        fail_msg("%s", err.msg);
}

void trig_close(struct trig *r)
{
    for (unsigned i = 0; i < RIG_CONNS; i++) {
        struct trig_conn *rc = &r->conns[i];

        if (!rc->conn)
            continue;
        if (!rc->closed)
            tgt_conn_closed(rc->conn, r->now);
        tgt_conn_free(rc->conn);
        wire_close(&rc->wire);
    }
    for (unsigned i = 0; i < RIG_TASKS; i++)
        if (r->tasks[i])
            trig_end(r, r->tasks[i]);
    tgt_tick(r->tgt, r->now + 10000 * second);
    assert_int_equal(tgt_counters(r->tgt)->conns, 0);
    assert_int_equal(tgt_counters(r->tgt)->logins, 0);
    assert_int_equal(tgt_counters(r->tgt)->sessions, 0);
    tgt_free(r->tgt);
    assert_int_equal(r->released, r->commands);
    assert_int_equal(r->holds, 0);
    assert_int_equal(r->opened, r->session_closed);
}

void trig_run(void **state)
{
    const struct trig_case *c = *state;
    const char *text = getenv("LUNPATH_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

    for (int mode = 0; mode < WIRE_MODES; mode++) {
        struct trig *r = malloc(sizeof *r);

        print_message("# %s, seed %llu\n", wire_mode_names[mode], (unsigned long long)seed);
        trig_open(r, (enum wire_mode)mode, seed);
        if (c->options)
            c->options(r);
        make(r);
        c->body(r);
        trig_close(r);
        free(r);
    }
}

bool trig_connect(struct trig *r, unsigned i)
{
    struct trig_conn *rc = &r->conns[i];
    struct tgt_portal portal = {"192.0.2.1:3260", 1};
    struct lp_error err;
    char peer[32];

    if (rc->conn) {
        tgt_conn_free(rc->conn);
        wire_close(&rc->wire);
    }
    *rc = (struct trig_conn){.rig = r, .acknowledge = true};
    snprintf(peer, sizeof peer, "198.51.100.7:%u", 40000 + i);
    rc->conn = tgt_conn_new(r->tgt, &portal, peer, r->now, &err);
    if (!rc->conn)
        return false;
    tgt_conn_set_user(rc->conn, rc);
    wire_open(&rc->wire, &wire_ops, rc, r->mode, r->seed + i);
    return true;
}

uint16_t trig_login(struct trig *r, unsigned i, const char *keys, size_t keys_length, uint16_t tsih)
{
    struct iscsi_login_request pdu = {
        .immediate = true,
        .transit = true,
        .csg = ISCSI_STAGE_OPERATIONAL,
        .nsg = ISCSI_STAGE_FULL_FEATURE,
        .tsih = tsih,
        .itt = 0x1000 + i,
        .cid = (uint16_t)i,
        .cmd_sn = r->cmd_sn,
    };
    uint8_t bhs[ISCSI_BHS_SIZE];
    struct iscsi_login_response answer;
    struct wire_pdu got;

    memcpy(pdu.isid, r->isid, sizeof pdu.isid);
    iscsi_login_request_pack(bhs, &pdu);
    r->conns[i].cid = pdu.cid;
    wire_put(&r->conns[i].wire, bhs, keys, (uint32_t)keys_length);
    trig_pump(r);
    if (!wire_take(&r->conns[i].wire, &got) || got.h.opcode != ISCSI_LOGIN_RESPONSE)
        fail_msg("no Login Response: %s", r->conns[i].sentence);
    iscsi_login_response_unpack(got.bhs, &answer);
    r->login_status = answer.status;
    r->conns[i].exp_stat_sn = answer.stat_sn + 1;
    if (answer.status == 0) {
        assert_true(answer.transit);
        assert_int_equal(answer.exp_cmd_sn, r->cmd_sn);
        r->tsih = answer.tsih;
    }
    return answer.status;
}

void trig_start_keys(struct trig *r, const char *keys, size_t keys_length)
{
    char text[2048] = RIG_KEYS;
    size_t n = sizeof RIG_KEYS - 1;

    memcpy(text + n, keys, keys_length);
    assert_true(trig_connect(r, 0));
    assert_int_equal(trig_login(r, 0, text, n + keys_length, 0), 0);
    assert_non_null(r->session);
}

void trig_join(struct trig *r, unsigned i)
{
    assert_true(trig_connect(r, i));
    assert_int_equal(trig_login(r, i, RIG_KEYS, sizeof RIG_KEYS - 1, r->tsih), 0);
}

static void close_transports(struct trig *r)
{
    for (unsigned i = 0; i < RIG_CONNS; i++)
        if (r->conns[i].close_asked && !r->conns[i].closed)
            trig_cut(r, i);
}

void trig_pump(struct trig *r)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < RIG_CONNS; i++)
            if (r->conns[i].conn && !r->conns[i].closed)
                wire_pump(&r->conns[i].wire);
        close_transports(r);
    }
}

void trig_tick(struct trig *r, uint64_t ns)
{
    r->now += ns;
    tgt_tick(r->tgt, r->now);
    trig_pump(r);
}

void trig_cut(struct trig *r, unsigned i)
{
    r->conns[i].closed = true;
    tgt_conn_closed(r->conns[i].conn, r->now);
}

/* ---- what comes ---- */

static bool counts_status(const struct wire_pdu *pdu)
{
    if (pdu->h.opcode == ISCSI_DATA_IN)
        return pdu->bhs[1] & 1;
    if (pdu->h.opcode == ISCSI_NOP_IN)
        return pdu->h.itt != ISCSI_TAG_NONE;
    return pdu->h.opcode != ISCSI_R2T;
}

bool trig_take(struct trig *r, unsigned i, struct wire_pdu *pdu)
{
    struct trig_conn *rc = &r->conns[i];

    if (!wire_take(&rc->wire, pdu))
        return false;
    assert_true(pdu->digests_good);
    if (pdu->h.opcode != ISCSI_DATA_IN || counts_status(pdu))
        assert_int_equal(load_be32(pdu->bhs + 24), rc->exp_stat_sn); /* T-NUM-05 */
    if (counts_status(pdu))
        rc->exp_stat_sn++;
    return true;
}

void trig_expect(struct trig *r, unsigned i, uint8_t opcode, struct wire_pdu *pdu)
{
    trig_pump(r);
    if (!trig_take(r, i, pdu))
        fail_msg("nothing came, not %02x (%s)", opcode, r->conns[i].sentence);
    if (pdu->h.opcode != opcode)
        fail_msg("PDU %02x, not %02x (reason or response %02x)", pdu->h.opcode, opcode,
                 pdu->bhs[2]);
}

void trig_expect_nothing(struct trig *r, unsigned i)
{
    struct wire_pdu pdu;

    trig_pump(r);
    if (trig_take(r, i, &pdu))
        fail_msg("PDU %02x came (%02x)", pdu.h.opcode, pdu.bhs[2]);
}

void trig_expect_reject(struct trig *r, unsigned i, uint8_t reason)
{
    struct wire_pdu pdu;
    struct iscsi_reject reject;

    trig_expect(r, i, ISCSI_REJECT, &pdu);
    iscsi_reject_unpack(pdu.bhs, &reject);
    assert_int_equal(reject.reason, reason);
    assert_int_equal(pdu.h.itt, ISCSI_TAG_NONE);
    assert_true(pdu.data_length >= ISCSI_BHS_SIZE);
}

void trig_expect_status(struct trig *r, unsigned i, uint32_t itt, uint8_t status)
{
    struct wire_pdu pdu;

    trig_pump(r);
    while (trig_take(r, i, &pdu)) {
        if (pdu.h.opcode == ISCSI_DATA_IN && !(pdu.bhs[1] & 1))
            continue;
        if (pdu.h.opcode != ISCSI_DATA_IN && pdu.h.opcode != ISCSI_SCSI_RESPONSE)
            fail_msg("PDU %02x where a status was due (%02x)", pdu.h.opcode, pdu.bhs[2]);
        assert_int_equal(pdu.h.itt, itt);
        assert_int_equal(pdu.bhs[3], status);
        return;
    }
    fail_msg("no status for task %x (%s)", itt, r->conns[i].sentence);
}

void trig_expect_sense(struct trig *r, unsigned i, uint32_t itt, uint8_t key, uint8_t asc,
                       uint8_t ascq)
{
    struct wire_pdu pdu;

    trig_expect(r, i, ISCSI_SCSI_RESPONSE, &pdu);
    assert_int_equal(pdu.h.itt, itt);
    assert_int_equal(pdu.bhs[3], 2);
    assert_true(pdu.data_length >= 2 + 18);
    assert_int_equal(load_be16(pdu.data), pdu.data_length - 2);
    assert_int_equal(pdu.data[2 + 2] & 0xf, key);
    assert_int_equal(pdu.data[2 + 12], asc);
    assert_int_equal(pdu.data[2 + 13], ascq);
}

/* ---- what goes ---- */

static struct iscsi_scsi_command command(struct trig *r, uint32_t itt, uint8_t opcode, uint32_t lba,
                                         uint16_t blocks)
{
    struct iscsi_scsi_command pdu = {
        .final = true,
        .attr = ISCSI_ATTR_SIMPLE,
        .itt = itt,
        .expected_data_transfer_length = blocks * RIG_BLOCK,
        .cmd_sn = r->cmd_sn++,
        .cdb = {opcode},
    };

    store_be32(pdu.cdb + 2, lba);
    store_be16(pdu.cdb + 7, blocks);
    return pdu;
}

struct iscsi_scsi_command trig_read(struct trig *r, uint32_t itt, uint32_t lba, uint16_t blocks)
{
    struct iscsi_scsi_command pdu = command(r, itt, 0x28, lba, blocks);

    pdu.read = true;
    return pdu;
}

struct iscsi_scsi_command trig_write(struct trig *r, uint32_t itt, uint32_t lba, uint16_t blocks)
{
    struct iscsi_scsi_command pdu = command(r, itt, 0x2a, lba, blocks);

    pdu.write = true;
    return pdu;
}

struct iscsi_scsi_command trig_ready(struct trig *r, uint32_t itt)
{
    return command(r, itt, 0, 0, 0);
}

struct iscsi_tmf_request trig_tmf(struct trig *r, uint32_t itt, uint8_t function)
{
    return (struct iscsi_tmf_request){
        .immediate = true,
        .function = function,
        .itt = itt,
        .referenced_task_tag = ISCSI_TAG_NONE,
        .cmd_sn = r->cmd_sn,
    };
}

void trig_put_command(struct trig *r, unsigned i, const struct iscsi_scsi_command *pdu,
                      const void *data, uint32_t n)
{
    struct iscsi_scsi_command copy = *pdu;
    uint8_t bhs[ISCSI_BHS_SIZE];

    copy.exp_stat_sn = r->conns[i].exp_stat_sn;
    iscsi_scsi_command_pack(bhs, &copy);
    wire_put(&r->conns[i].wire, bhs, data, n);
}

void trig_put_tmf(struct trig *r, unsigned i, const struct iscsi_tmf_request *pdu)
{
    struct iscsi_tmf_request copy = *pdu;
    uint8_t bhs[ISCSI_BHS_SIZE];

    copy.exp_stat_sn = r->conns[i].exp_stat_sn;
    iscsi_tmf_request_pack(bhs, &copy);
    wire_put(&r->conns[i].wire, bhs, NULL, 0);
}

void trig_put_nop(struct trig *r, unsigned i, uint32_t itt, bool immediate, const void *data,
                  uint32_t n)
{
    struct iscsi_nop_out pdu = {
        .immediate = immediate,
        .itt = itt,
        .ttt = ISCSI_TAG_NONE,
        .cmd_sn = immediate ? r->cmd_sn : r->cmd_sn++,
        .exp_stat_sn = r->conns[i].exp_stat_sn,
    };
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_nop_out_pack(bhs, &pdu);
    wire_put(&r->conns[i].wire, bhs, data, n);
}

void trig_acknowledge(struct trig *r, unsigned i)
{
    trig_put_nop(r, i, ISCSI_TAG_NONE, true, NULL, 0);
}

void trig_put_logout(struct trig *r, unsigned i, uint32_t itt, uint8_t reason, uint16_t cid)
{
    struct iscsi_logout_request pdu = {
        .immediate = true,
        .reason = reason,
        .itt = itt,
        .cid = cid,
        .cmd_sn = r->cmd_sn,
        .exp_stat_sn = r->conns[i].exp_stat_sn,
    };
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_logout_request_pack(bhs, &pdu);
    wire_put(&r->conns[i].wire, bhs, NULL, 0);
}

void trig_put_text(struct trig *r, unsigned i, uint32_t itt, uint32_t ttt, const char *text,
                   uint32_t n)
{
    struct iscsi_text_request pdu = {
        .final = true,
        .itt = itt,
        .ttt = ttt,
        .cmd_sn = r->cmd_sn++,
        .exp_stat_sn = r->conns[i].exp_stat_sn,
    };
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_text_request_pack(bhs, &pdu);
    wire_put(&r->conns[i].wire, bhs, text, n);
}

void trig_put_data_pdu(struct trig *r, unsigned i, const struct iscsi_data_out *pdu,
                       const uint8_t *data, uint32_t n)
{
    struct iscsi_data_out copy = *pdu;
    uint8_t bhs[ISCSI_BHS_SIZE];

    copy.exp_stat_sn = r->conns[i].exp_stat_sn;
    iscsi_data_out_pack(bhs, &copy);
    wire_put(&r->conns[i].wire, bhs, data, n);
}

void trig_put_data(struct trig *r, unsigned i, uint32_t itt, uint32_t ttt, uint32_t offset,
                   const uint8_t *data, uint32_t n)
{
    struct iscsi_data_out pdu = {.itt = itt, .ttt = ttt};

    for (uint32_t done = 0; done < n; pdu.data_sn++) {
        uint32_t piece = n - done < 8192 ? n - done : 8192;

        pdu.buffer_offset = offset + done;
        pdu.final = done + piece == n;
        trig_put_data_pdu(r, i, &pdu, data + done, piece);
        done += piece;
    }
}
