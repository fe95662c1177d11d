/* SPDX-License-Identifier: BSD-2-Clause */
#include "ini_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the machine behind the wire ---- */

static unsigned op_recv_space(void *m, struct iovec *iov, unsigned max)
{
    return ini_conn_recv_space(((struct peer *)m)->c, iov, max);
}

static void op_received(void *m, size_t n)
{
    struct peer *p = m;
    ini_conn_received(p->c, n, p->rig->now);
}

static unsigned op_send_data(void *m, struct iovec *iov, unsigned max)
{
    struct peer *p = m;
    unsigned count = ini_conn_send_data(p->c, iov, max);

    /* Output that nobody was told about would wait for ever with a real transport. */
    if (count && !p->wants)
        fail_msg("output without a WANT_SEND event");
    if (!count)
        p->wants = false;
    return count;
}

static void op_sent(void *m, size_t n)
{
    ini_conn_sent(((struct peer *)m)->c, n);
}

static const struct wire_ops ops = {op_recv_space, op_received, op_send_data, op_sent};

static struct peer *peer_of(struct rig *r, const struct ini_conn *c)
{
    for (unsigned i = 0; i < r->peer_count; i++)
        if (r->peers[i].c == c)
            return &r->peers[i];
    return NULL;
}

static void on_event(void *user, const struct ini_event *event)
{
    struct rig *r = user;
    struct peer *p = event->conn ? peer_of(r, event->conn) : NULL;
    const char *sentence = NULL;

    if (event->type == INI_EVENT_WANT_SEND) {
        if (p)
            p->wants = true;
        return;
    }
    assert_in_range(r->event_count, 0, RIG_EVENTS - 1);
    struct ini_event *kept = &r->events[r->event_count];
    *kept = *event;
    if (event->type == INI_EVENT_CONN_CLOSE) {
        p->closed = true;
        sentence = event->close.sentence;
    } else if (event->type == INI_EVENT_SESSION_DROPPED || event->type == INI_EVENT_LOGGED_OUT) {
        sentence = event->close.sentence;
    } else if (event->type == INI_EVENT_LOGIN_FAILED) {
        sentence = event->login.sentence;
    } else if (event->type == INI_EVENT_REDIRECT) {
        sentence = event->redirect.address;
    }
    if (sentence)
        snprintf(r->sentences[r->event_count], sizeof r->sentences[0], "%s", sentence);
    r->event_count++;
}

static int seeded_random(void *user, void *bytes, size_t n)
{
    struct rig *r = user;
    struct rng rng = {r->seed++};

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)rng_next(&rng);
    return 0;
}

/* ---- rig ---- */

static void rig_defaults(struct rig *r, enum wire_mode mode, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    r->mode = mode;
    r->seed = seed;
    r->now = SECOND_NS;
    r->tsih = 0x1234;
    r->exp_cmd_sn = r->max_cmd_sn = 0; /* set by the login */
    r->opts.depth = 128;
    r->opts.connections = RIG_CONNS;
    r->opts.event = on_event;
    r->opts.user = r;
    rig_login_defaults(&r->opts.login);
    r->opts.login.random = seeded_random;
    r->opts.login.random_user = r;
    r->answers = (struct iscsi_params){
        .mrdsl_in = 65536, /* the target's */
        .max_connections = 4,
        .initial_r2t = true,
        .immediate_data = true,
        .max_burst_length = 262144,
        .first_burst_length = 65536,
        .default_time2wait = 2,
        .default_time2retain = 20,
        .max_outstanding_r2t = 4,
        .data_pdu_in_order = true,
        .data_sequence_in_order = true,
    };
}

void rig_script(void (*script)(struct rig *))
{
    uint64_t seed = (uint64_t)time(NULL);
    const char *set = getenv("LUNPATH_SEED");

    if (set)
        seed = strtoull(set, NULL, 0);
    print_message("# seed %" PRIu64 " (LUNPATH_SEED)\n", seed);
    for (enum wire_mode mode = 0; mode < WIRE_MODES; mode++) {
        struct rig *r = malloc(sizeof *r);
        assert_non_null(r);
        rig_defaults(r, mode, seed);
        script(r);
        rig_close_all(r);
        free(r);
    }
}

struct peer *rig_connect(struct rig *r, uint16_t cid)
{
    struct lp_error err = {0};
    struct peer *p = &r->peers[r->peer_count];

    assert_in_range(r->peer_count, 0, RIG_CONNS - 1);
    p->rig = r;
    p->cid = cid;
    p->stat_sn = 1000 + cid;
    p->c = ini_conn_new(r->s, cid, &err);
    if (!p->c)
        fail_msg("ini_conn_new: %s", err.msg);
    r->peer_count++;
    wire_open(&p->w, &ops, p, r->mode, r->seed + cid);
    ini_conn_set_user(p->c, p);
    ini_conn_start(p->c, r->now + 30ull * SECOND_NS);
    return p;
}

void rig_open(struct rig *r)
{
    struct lp_error err = {0};

    r->s = ini_session_new(&r->opts, &err);
    if (!r->s)
        fail_msg("ini_session_new: %s", err.msg);
    rig_connect(r, 0);
}

void rig_login(struct rig *r)
{
    rig_open(r);
    peer_login(&r->peers[0]);
}

void peer_pump(struct peer *p)
{
    wire_pump(&p->w);
    rig_tick(p->rig, p->rig->now);
    wire_pump(&p->w);
}

void rig_tick(struct rig *r, uint64_t now)
{
    r->now = now;
    for (unsigned i = 0; i < 8 && ini_session_deadline(r->s) <= now; i++)
        ini_session_tick(r->s, now);
    if (ini_session_deadline(r->s) <= now)
        fail_msg("a tick does not move the deadline");
}

void peer_lose(struct peer *p)
{
    ini_conn_closed(p->c);
}

void rig_close_all(struct rig *r)
{
    for (unsigned i = 0; i < r->peer_count; i++)
        ini_conn_closed(r->peers[i].c);
    if (r->s && ini_session_deadline(r->s) <= r->now)
        ini_session_tick(r->s, r->now);
    for (unsigned i = 0; i < r->peer_count; i++) {
        ini_conn_free(r->peers[i].c);
        wire_close(&r->peers[i].w);
    }
    if (r->s) {
        assert_int_equal(ini_session_tasks(r->s), 0);
        ini_session_free(r->s);
    }
    r->peer_count = 0;
    r->s = NULL;
}

/* ---- the scripted login ---- */

static const char *yes_no(bool yes)
{
    return yes ? "Yes" : "No";
}

static size_t pair(char *text, size_t at, const char *key, const char *value)
{
    return at + (size_t)sprintf(text + at, "%s=%s", key, value) + 1;
}

static size_t number(char *text, size_t at, const char *key, uint32_t value)
{
    return at + (size_t)sprintf(text + at, "%s=%" PRIu32, key, value) + 1;
}

static size_t answer_key(const struct rig *r, char *out, size_t at, const char *key)
{
    static const char *const reporting[] = {"RFC3720", "ResponseFence", "FastAbort"};
    const struct iscsi_params *a = &r->answers;
    const struct {
        const char *key;
        bool value;
    } booleans[] = {{"InitialR2T", a->initial_r2t},
                    {"ImmediateData", a->immediate_data},
                    {"DataPDUInOrder", a->data_pdu_in_order},
                    {"DataSequenceInOrder", a->data_sequence_in_order}};
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {{"MaxConnections", a->max_connections},
                   {"MaxBurstLength", a->max_burst_length},
                   {"FirstBurstLength", a->first_burst_length},
                   {"DefaultTime2Wait", a->default_time2wait},
                   {"DefaultTime2Retain", a->default_time2retain},
                   {"MaxOutstandingR2T", a->max_outstanding_r2t},
                   {"ErrorRecoveryLevel", a->error_recovery_level},
                   {"iSCSIProtocolLevel", a->protocol_level ? a->protocol_level : 1}};

    for (size_t i = 0; i < sizeof booleans / sizeof *booleans; i++)
        if (strcmp(key, booleans[i].key) == 0)
            return pair(out, at, key, yes_no(booleans[i].value));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            return number(out, at, key, numbers[i].value);
    if (strcmp(key, "HeaderDigest") == 0)
        return pair(out, at, key, a->header_digest ? "CRC32C" : "None");
    if (strcmp(key, "DataDigest") == 0)
        return pair(out, at, key, a->data_digest ? "CRC32C" : "None");
    if (strcmp(key, "AuthMethod") == 0)
        return pair(out, at, key, "None");
    if (strcmp(key, "TaskReporting") == 0)
        return pair(out, at, key, reporting[a->task_reporting]);
    if (strcmp(key, "MaxRecvDataSegmentLength") == 0 && !r->declare_nothing)
        return number(out, at, key, a->mrdsl_in);
    return at;
}

/* Answers every key of a request as r->answers say. */
static size_t answer(const struct rig *r, const struct wire_pdu *request, char *out, bool first)
{
    const char *at = (const char *)request->data, *end = at + request->data_length;
    size_t n = first && !r->answers.discovery ? pair(out, 0, "TargetPortalGroupTag", "1") : 0;

    while (at < end) {
        char key[64] = {0};
        size_t length = strcspn(at, "=");
        memcpy(key, at, length);
        n = answer_key(r, out, n, key);
        at += strlen(at) + 1;
    }
    return n;
}

/* One exchange. True: it was the last. */
static bool login_exchange(struct peer *p, bool first)
{
    struct rig *r = p->rig;
    struct iscsi_login_request request;
    struct wire_pdu got;
    char text[4096];

    wire_pump(&p->w);
    peer_expect(p, ISCSI_LOGIN_REQUEST, &got);
    iscsi_login_request_unpack(got.bhs, &request);
    if (first && p == &r->peers[0])
        r->exp_cmd_sn = request.cmd_sn, r->max_cmd_sn = request.cmd_sn + 127;
    size_t n = answer(r, &got, text, first);
    bool final = request.transit && request.nsg == ISCSI_STAGE_FULL_FEATURE;
    struct iscsi_login_response pdu = {
        .transit = request.transit,
        .csg = request.csg,
        .nsg = request.transit ? request.nsg : 0,
        .tsih = final || request.tsih ? r->tsih : 0,
        .itt = request.itt,
        PEER_NUMBERS(p, true),
    };
    uint8_t bhs[ISCSI_BHS_SIZE];
    memcpy(pdu.isid, request.isid, sizeof pdu.isid);
    iscsi_login_response_pack(bhs, &pdu);
    wire_put(&p->w, bhs, text, (uint32_t)n);
    if (final) {
        p->w.header_digest = r->answers.header_digest;
        p->w.data_digest = r->answers.data_digest;
    }
    wire_push(&p->w);
    return final;
}

void peer_login(struct peer *p)
{
    unsigned before = rig_events(p->rig, INI_EVENT_LOGGED_IN);
    bool first = true;

    while (!login_exchange(p, first))
        first = false;
    peer_pump(p);
    if (rig_events(p->rig, INI_EVENT_LOGGED_IN) != before + 1)
        fail_msg("not logged in: %s", p->rig->sentences[0]);
}

/* ---- expectations ---- */

void peer_expect(struct peer *p, uint8_t opcode, struct wire_pdu *pdu)
{
    char name[32], wanted[32];

    wire_pull(&p->w);
    if (!wire_take(&p->w, pdu))
        fail_msg("no %s came (%s)", iscsi_opcode_name(opcode, wanted),
                 wire_mode_names[p->rig->mode]);
    if (pdu->h.opcode != opcode)
        fail_msg("%s came in place of %s (%s)", iscsi_opcode_name(pdu->h.opcode, name),
                 iscsi_opcode_name(opcode, wanted), wire_mode_names[p->rig->mode]);
    assert_true(pdu->digests_good);
}

void peer_expect_silence(struct peer *p)
{
    struct wire_pdu pdu;
    char name[32];

    wire_pull(&p->w);
    if (wire_take(&p->w, &pdu))
        fail_msg("%s came where nothing was due (%s)", iscsi_opcode_name(pdu.h.opcode, name),
                 wire_mode_names[p->rig->mode]);
    assert_int_equal(p->w.taken, p->w.from.length);
}

struct iscsi_scsi_command peer_expect_command(struct peer *p, struct wire_pdu *pdu)
{
    struct iscsi_scsi_command command;

    peer_expect(p, ISCSI_SCSI_COMMAND, pdu);
    iscsi_scsi_command_unpack(pdu->bhs, &command);
    return command;
}

struct iscsi_data_out peer_expect_data(struct peer *p, struct wire_pdu *pdu)
{
    struct iscsi_data_out data;

    peer_expect(p, ISCSI_DATA_OUT, pdu);
    iscsi_data_out_unpack(pdu->bhs, &data);
    return data;
}

/* ---- the target's PDUs ---- */

void peer_respond(struct peer *p, struct iscsi_scsi_response pdu, const void *data, uint32_t n)
{
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_scsi_response_pack(bhs, &pdu);
    wire_put(&p->w, bhs, data, n);
}

void peer_good(struct peer *p, uint32_t itt)
{
    peer_respond(p, (struct iscsi_scsi_response){.itt = itt, PEER_NUMBERS(p, true)}, NULL, 0);
}

void peer_data_in(struct peer *p, struct iscsi_data_in pdu, const void *data, uint32_t n)
{
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_data_in_pack(bhs, &pdu);
    wire_put(&p->w, bhs, data, n);
}

void peer_r2t(struct peer *p, struct iscsi_r2t pdu)
{
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_r2t_pack(bhs, &pdu);
    wire_put(&p->w, bhs, NULL, 0);
}

void peer_nop_in(struct peer *p, struct iscsi_nop_in pdu, const void *data, uint32_t n)
{
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_nop_in_pack(bhs, &pdu);
    wire_put(&p->w, bhs, data, n);
}

void peer_tmf(struct peer *p, uint32_t itt, uint8_t response)
{
    struct iscsi_tmf_response pdu = {.response = response, .itt = itt, PEER_NUMBERS(p, true)};
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_tmf_response_pack(bhs, &pdu);
    wire_put(&p->w, bhs, NULL, 0);
}

void peer_async(struct peer *p, struct iscsi_async pdu, const void *data, uint32_t n)
{
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_async_pack(bhs, &pdu);
    wire_put(&p->w, bhs, data, n);
}

void peer_reject(struct peer *p, uint8_t reason, const uint8_t *header, uint32_t n)
{
    struct iscsi_reject pdu = {.reason = reason, PEER_NUMBERS(p, true)};
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_reject_pack(bhs, &pdu);
    wire_put(&p->w, bhs, header, n);
}

void peer_text(struct peer *p, struct iscsi_text_response pdu, const void *text, uint32_t n)
{
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_text_response_pack(bhs, &pdu);
    wire_put(&p->w, bhs, text, n);
}

void peer_logout(struct peer *p, uint32_t itt, uint8_t response)
{
    struct iscsi_logout_response pdu = {.response = response, .itt = itt, PEER_NUMBERS(p, true)};
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_logout_response_pack(bhs, &pdu);
    wire_put(&p->w, bhs, NULL, 0);
}

/* ---- events ---- */

unsigned rig_events(const struct rig *r, enum ini_event_type type)
{
    unsigned n = 0;

    for (unsigned i = 0; i < r->event_count; i++)
        n += r->events[i].type == type;
    return n;
}

const struct ini_event *rig_last(const struct rig *r, enum ini_event_type type)
{
    for (unsigned i = r->event_count; i-- > 0;)
        if (r->events[i].type == type)
            return &r->events[i];
    fail_msg("no event of type %d", (int)type);
    return NULL;
}

void rig_expect_failure(struct rig *r, enum ini_close_why why)
{
    const struct ini_event *event = NULL;

    for (unsigned i = 0; i < r->event_count && !event; i++)
        if (r->events[i].type == INI_EVENT_CONN_CLOSE)
            event = &r->events[i];
    if (!event)
        fail_msg("no connection was closed (%s)", wire_mode_names[r->mode]);
    if (event->close.why != why)
        fail_msg("closed for reason %d: %s", (int)event->close.why,
                 r->sentences[event - r->events]);
    assert_true(r->sentences[event - r->events][0]);
}

/* ---- tasks ---- */

uint8_t io_pattern(uint32_t at)
{
    return (uint8_t)(at * 7 + (at >> 8) * 13 + (at >> 16) * 31 + 1);
}

void io_fill(uint8_t *bytes, uint32_t offset, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = io_pattern(offset + i);
}

bool io_has_pattern(const struct io *io, uint32_t offset, uint32_t n)
{
    for (uint32_t i = offset; i < offset + n; i++)
        if (io->data[i] != io_pattern(i))
            return false;
    return true;
}

static void io_done(struct ini_task *task)
{
    ((struct io *)task)->done++;
}

/* Pieces of uneven size, one of them empty. */
static unsigned cut(struct io *io, uint32_t length)
{
    uint32_t at = 0;
    unsigned count = 0;

    for (; count < IO_PIECES && at < length; count++) {
        uint32_t n = count == 1 ? 0 : count == IO_PIECES - 1 ? length - at : length / 5 + count;
        if (n > length - at)
            n = length - at;
        io->iov[count].iov_base = io->data + at;
        io->iov[count].iov_len = n;
        at += n;
    }
    return count;
}

void io_init(struct io *io, enum ini_direction direction, uint32_t length)
{
    memset(io, 0, sizeof *io);
    io->memory = malloc(length + 2 * IO_GUARD);
    assert_non_null(io->memory);
    memset(io->memory, 0xa5, length + 2 * IO_GUARD);
    io->data = io->memory + IO_GUARD;
    memset(io->data, 0xee, length);
    if (direction == INI_WRITE)
        io_fill(io->data, 0, length);
    io->task.lun = 0x0001000000000000;
    io->task.cdb[0] = direction == INI_WRITE ? 0x2a : direction == INI_READ ? 0x28 : 0x00;
    io->task.cdb_length = 10;
    io->task.attr = ISCSI_ATTR_SIMPLE;
    io->task.direction = direction;
    io->task.length = length;
    io->task.iov = io->iov;
    io->task.iov_count = cut(io, length);
    io->task.deadline_ns = INI_NEVER;
    io->task.done = io_done;
}

void io_start(struct rig *r, struct io *io)
{
    ini_submit(r->s, &io->task);
}

void io_end(struct io *io, unsigned done)
{
    for (unsigned i = 0; i < IO_GUARD; i++) {
        assert_int_equal(io->memory[i], 0xa5);
        assert_int_equal(io->data[io->task.length + i], 0xa5);
    }
    assert_int_equal(io->done, done);
    free(io->memory);
}
void rig_login_defaults(struct login_ini_opts *opts)
{
    opts->initiator_name = "iqn.2026-01.example.host:one";
    opts->target_name = "iqn.2026-01.example.nas:disk";
    memcpy(opts->isid, "\x80\x12\x34\x56\x00\x01", 6);
    opts->wishes.params = (struct iscsi_params){
        .mrdsl_in = 262144,
        .max_connections = 4,
        .initial_r2t = false,
        .immediate_data = true,
        .max_burst_length = 1 << 20,
        .first_burst_length = 262144,
        .default_time2wait = 2,
        .default_time2retain = 20,
        .max_outstanding_r2t = 8,
        .data_pdu_in_order = true,
        .data_sequence_in_order = true,
        .protocol_level = 1,
    };
    opts->wishes.header_digest = opts->wishes.data_digest = ISCSI_DIGEST_PREFER_CRC;
    opts->portal_group_tag = -1;
}
