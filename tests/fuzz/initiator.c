/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's receive path: after a scripted login, with operations of every kind in flight,
 * the target sends what it likes. Guard bytes stand round every payload; each operation is done
 * exactly once; no read ends well with bytes that the target did not send.
 *
 * The input: one byte of flags (digests, how many bytes a read brings), then steps. A step is one
 * byte: below 0x80 a PDU of the target follows, made from the input with plausible tags and
 * numbers; otherwise raw bytes, time, or what the owner does.
 */
#include "iscsi/ini.h"
#include "iscsi/pdu.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TASKS = 6, GUARD = 32, LENGTH = 4096, FRESH = 0xee, GUARDED = 0xa5 };

static void require(bool right)
{
    if (!right)
        abort();
}

struct input {
    const uint8_t *at, *end;
};

static uint8_t byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static uint32_t word(struct input *in)
{
    uint32_t v = byte(in);

    /* Mostly small, sometimes extreme. */
    return v < 0xf0 ? v : v < 0xf8 ? 0xffffffff - (v & 7) : v * 0x01010101u;
}

struct world {
    struct ini_session *s;
    struct ini_conn *c;
    struct input in;
    bool open, header_digest, data_digest;
    unsigned chunk;
    uint32_t stat_sn, exp_cmd_sn, max_cmd_sn;
    uint64_t now;
    uint32_t tags[64];
    unsigned tag_count;

    struct io {
        struct ini_task task;
        struct iovec iov[3];
        uint8_t memory[LENGTH + 2 * GUARD];
        bool busy;
    } io[TASKS];
    struct ini_tmf tmf;
    struct ini_ping ping;
    struct ini_text text;
    struct ini_logout logout;
    bool tmf_busy, ping_busy, text_busy, logout_busy;
    bool over;
    uint8_t sense[65536];
};

/* ---- the owner ---- */

static void check_guards(const struct io *io)
{
    for (unsigned i = 0; i < GUARD; i++)
        require(io->memory[i] == GUARDED && io->memory[GUARD + LENGTH + i] == GUARDED);
}

static void task_done(struct ini_task *task)
{
    struct io *io = (struct io *)task;

    require(io->busy);
    io->busy = false;
    check_guards(io);
    require(task->sense_length <= INI_SENSE_MAX);
    require(task->transferred <= task->length);
    if (task->direction == INI_WRITE)
        for (unsigned i = 0; i < LENGTH; i++)
            require(io->memory[GUARD + i] == (uint8_t)i);
    /* The target's bytes are never FRESH here, so what was promised has arrived. */
    if (task->direction == INI_READ && task->result == INI_OK && task->scsi_status == 0)
        for (unsigned i = 0; i < task->transferred; i++)
            require(io->memory[GUARD + i] != FRESH);
}

static void submit(struct world *w, unsigned i)
{
    struct io *io = &w->io[i % TASKS];

    if (io->busy)
        return;
    memset(io, 0, sizeof *io);
    memset(io->memory, GUARDED, sizeof io->memory);
    enum ini_direction direction = i % TASKS == 0 ? INI_NONE : i % 2 ? INI_READ : INI_WRITE;
    for (unsigned k = 0; k < LENGTH; k++)
        io->memory[GUARD + k] = direction == INI_WRITE ? (uint8_t)k : FRESH;
    for (unsigned k = 0; k < 3; k++) {
        static const unsigned cuts[] = {0, 100, 100 + 1024, LENGTH};
        io->iov[k].iov_base = io->memory + GUARD + cuts[k];
        io->iov[k].iov_len = cuts[k + 1] - cuts[k];
    }
    io->task = (struct ini_task){
        .lun = (uint64_t)(i % 3) << 48,
        .cdb_length = 16,
        .attr = ISCSI_ATTR_SIMPLE,
        .direction = direction,
        .iov = io->iov,
        .iov_count = 3,
        .length = direction == INI_NONE ? 0 : LENGTH,
        .deadline_ns = w->now + 1000,
        .done = task_done,
    };
    io->busy = true;
    ini_submit(w->s, &io->task);
}

static void flag_down(bool *flag)
{
    require(*flag);
    *flag = false;
}

static void tmf_done(struct ini_tmf *tmf)
{
    flag_down(tmf->user);
}

static void ping_done(struct ini_ping *ping)
{
    flag_down(ping->user);
}

static void text_done(struct ini_text *text)
{
    flag_down(text->user);
}

static void logout_done(struct ini_logout *logout)
{
    flag_down(logout->user);
}

static void on_pair(struct ini_text *text, const char *key, const char *value)
{
    require(text->user && strlen(key) <= ISCSI_KEY_MAX && strlen(value) < 1024);
}

static void start_tmf(struct world *w, struct input *in)
{
    uint8_t function = byte(in) % 14;

    if (w->tmf_busy)
        return;
    struct io *io = &w->io[byte(in) % TASKS];
    w->tmf = (struct ini_tmf){.function = function,
                              .lun = (uint64_t)(byte(in) % 3) << 48,
                              .referenced = io->busy ? &io->task : NULL,
                              .deadline_ns = w->now + 500,
                              .done = tmf_done,
                              .user = &w->tmf_busy};
    w->tmf_busy = true;
    if (function != ISCSI_ABORT_TASK)
        ini_tmf(w->s, &w->tmf);
    else if (!io->busy || !ini_abort(&io->task, &w->tmf))
        w->tmf_busy = false;
}

static const char targets[] = "SendTargets=All";

static void start_ping(struct world *w)
{
    w->ping = (struct ini_ping){.data = targets,
                                .length = sizeof targets,
                                .deadline_ns = w->now + 5000,
                                .done = ping_done,
                                .user = &w->ping_busy};
    w->ping_busy = true;
    ini_ping(w->c, &w->ping);
}

static void start_text(struct world *w, uint32_t mrdsl)
{
    w->text = (struct ini_text){.request = targets,
                                .request_length = sizeof targets,
                                .mrdsl_in = mrdsl,
                                .deadline_ns = w->now + 5000,
                                .pair = on_pair,
                                .done = text_done,
                                .user = &w->text_busy};
    w->text_busy = true;
    ini_text(w->c, &w->text);
}

static void start_logout(struct world *w, uint8_t reason)
{
    w->logout = (struct ini_logout){.reason = reason,
                                    .deadline_ns = w->now + 5000,
                                    .done = logout_done,
                                    .user = &w->logout_busy};
    w->logout_busy = true;
    ini_logout(w->s, &w->logout);
}

static void start_others(struct world *w, struct input *in)
{
    struct io *io = &w->io[byte(in) % TASKS];

    switch (byte(in) % 4) {
    case 0:
        if (!w->ping_busy)
            start_ping(w);
        break;
    case 1:
        if (!w->text_busy)
            start_text(w, byte(in) & 1 ? 512u + byte(in) * 100u : 0);
        break;
    case 2:
        if (!w->logout_busy && byte(in) == 0xff)
            start_logout(w, byte(in) % 3);
        break;
    default:
        ini_conn_acknowledge(w->c);
        if (io->busy)
            ini_retry(&io->task);
        break;
    }
}

static void on_event(void *user, const struct ini_event *event)
{
    struct world *w = user;

    switch (event->type) {
    case INI_EVENT_LOGGED_IN:
        w->open = true;
        break;
    case INI_EVENT_CONN_CLOSE:
        require(event->close.sentence[0]);
        w->over = true;
        break;
    case INI_EVENT_ASYNC:
        if (event->async.sense_length)
            memcpy(w->sense, event->async.sense, event->async.sense_length);
        break;
    default:
        break;
    }
}

/* ---- bytes ---- */

static void remember_tags(struct world *w, const uint8_t *bytes, size_t n)
{
    struct iscsi_bhs h;

    if (n < ISCSI_BHS_SIZE)
        return;
    iscsi_bhs_unpack(bytes, &h);
    w->tags[w->tag_count++ % 64] = h.itt;
}

/* Takes what is to be sent; headers come as pieces of their own. */
static void pull(struct world *w)
{
    struct iovec iov[32];
    unsigned count;

    while ((count = ini_conn_send_data(w->c, iov, 32))) {
        size_t n = 0;
        for (unsigned i = 0; i < count; i++) {
            remember_tags(w, iov[i].iov_base, iov[i].iov_len);
            n += iov[i].iov_len;
        }
        ini_conn_sent(w->c, n);
    }
}

static void push(struct world *w, const uint8_t *bytes, size_t n)
{
    struct iovec iov[4];

    while (n) {
        unsigned count = ini_conn_recv_space(w->c, iov, 4);
        size_t done = 0, most = w->chunk && w->chunk < n ? w->chunk : n;
        if (!count)
            return;
        for (unsigned i = 0; i < count && done < most; i++) {
            size_t part = iov[i].iov_len < most - done ? iov[i].iov_len : most - done;
            memcpy(iov[i].iov_base, bytes + done, part);
            done += part;
        }
        require(done > 0);
        bytes += done;
        n -= done;
        ini_conn_received(w->c, done, w->now);
    }
}

static size_t add_digest(uint8_t *bytes, size_t begin, size_t n)
{
    crc32c_end(crc32c_add(CRC32C_INIT, bytes + begin, n - begin), bytes + n);
    return n + ISCSI_DIGEST_SIZE;
}

/* A target's PDU out of the input: any opcode, live tags, nearly right numbers. */
static void send_pdu(struct world *w, uint8_t step)
{
    static const uint8_t opcodes[] = {0x20, 0x21, 0x22, 0x24, 0x25, 0x26, 0x31, 0x32, 0x3f, 0x25};
    static uint8_t out[ISCSI_BHS_SIZE + LENGTH * 2 + 16];
    struct input *in = &w->in;
    uint8_t flags = byte(in), opcode = opcodes[step % sizeof opcodes];
    uint32_t n = (word(in) * (step & 0x40 ? 16u : 1u)) % (LENGTH + 64);
    size_t length = ISCSI_BHS_SIZE;
    bool status = opcode != 0x25 && opcode != 0x31;

    memset(out, 0, ISCSI_BHS_SIZE);
    out[0] = opcode;
    out[1] = flags;
    out[2] = byte(in);
    out[3] = byte(in) & 1 ? byte(in) : 0;
    store_be24(out + 5, n);
    if (opcode == 0x3f && n < ISCSI_BHS_SIZE)
        n = ISCSI_BHS_SIZE, store_be24(out + 5, n);
    store_be64(out + 8, (uint64_t)(byte(in) % 3) << 48);
    store_be32(out + 16, step & 0x20 ? word(in) : w->tags[byte(in) % 64]);
    store_be32(out + 20, word(in));
    if (opcode == 0x25)
        status = flags & 1;
    if (opcode == 0x20)
        status = load_be32(out + 16) != ISCSI_TAG_NONE;
    store_be32(out + 24, w->stat_sn + (step & 0x10 ? word(in) : 0));
    w->stat_sn += status;
    store_be32(out + 28, w->exp_cmd_sn += byte(in) & 1);
    store_be32(out + 32, w->max_cmd_sn += byte(in) & 3);
    store_be32(out + 36, word(in));
    store_be32(out + 40, word(in) * (step & 8 ? 64u : 1u));
    store_be32(out + 44, word(in) * (step & 4 ? 16u : 1u));
    if (w->header_digest)
        length = add_digest(out, 0, length);
    size_t begin = length;
    bool spoil = w->data_digest && byte(in) == 0xff;
    memset(out + length, spoil ? FRESH : 0x11, n + iscsi_padding(n));
    for (uint32_t i = 0; i < n && in->at < in->end && opcode != 0x25 && i < 80; i++)
        out[length + i] = byte(in);
    if (opcode == 0x3f) {
        out[begin] = byte(in) & 7;
        store_be32(out + begin + 16, w->tags[byte(in) % 64]);
    }
    length += n + iscsi_padding(n);
    if (w->data_digest && n) {
        length = add_digest(out, begin, length);
        out[length - 1] ^= spoil;
    }
    push(w, out, length);
}

static void step(struct world *w, uint8_t code)
{
    struct input *in = &w->in;

    if (code < 0x80) {
        send_pdu(w, code);
    } else if (code < 0x90) {
        size_t n = byte(in), left = (size_t)(in->end - in->at);
        uint8_t raw[256];
        n = n < left ? n : left;
        for (size_t i = 0; i < n; i++)
            raw[i] = in->at[i] == FRESH ? 0 : in->at[i];
        push(w, raw, n);
        in->at += n;
    } else if (code < 0xa0) {
        w->now += byte(in) * 50u;
        ini_session_tick(w->s, w->now);
    } else if (code < 0xc0) {
        pull(w);
    } else if (code < 0xe0) {
        submit(w, code);
    } else if (code < 0xf0) {
        start_tmf(w, in);
    } else {
        start_others(w, in);
    }
}

/* ---- the scripted login ---- */

static const char *find_key(const char *text, size_t n, const char *key)
{
    for (const char *at = text; at < text + n; at += strlen(at) + 1)
        if (strncmp(at, key, strlen(key)) == 0 && at[strlen(key)] == '=')
            return at;
    return NULL;
}

static size_t say(char *out, size_t at, const char *pair)
{
    memcpy(out + at, pair, strlen(pair) + 1);
    return at + strlen(pair) + 1;
}

/* Answers each Login Request: yes to all it asks for, with short bursts. */
static void login(struct world *w, uint8_t flags)
{
    static const char *const answers[][2] = {
        {"AuthMethod", "AuthMethod=None"},
        {"MaxRecvDataSegmentLength", "MaxRecvDataSegmentLength=1024"},
        {"InitialR2T", "InitialR2T=No"},
        {"ImmediateData", "ImmediateData=Yes"},
        {"MaxBurstLength", "MaxBurstLength=2048"},
        {"FirstBurstLength", "FirstBurstLength=1536"},
        {"MaxOutstandingR2T", "MaxOutstandingR2T=2"},
        {"MaxConnections", "MaxConnections=1"},
        {"DataPDUInOrder", "DataPDUInOrder=No"},
        {"DataSequenceInOrder", "DataSequenceInOrder=No"},
        {"DefaultTime2Wait", "DefaultTime2Wait=2"},
        {"DefaultTime2Retain", "DefaultTime2Retain=20"},
        {"TaskReporting", "TaskReporting=FastAbort"},
        {"iSCSIProtocolLevel", "iSCSIProtocolLevel=2"},
    };

    for (unsigned round = 0; round < 6 && !w->open && !w->over; round++) {
        static uint8_t got[16384];
        struct iovec iov[32];
        size_t n = 0, at = 0;
        unsigned count;
        while ((count = ini_conn_send_data(w->c, iov, 32))) {
            size_t sent = 0;
            for (unsigned i = 0; i < count; i++) {
                require(n + iov[i].iov_len <= sizeof got);
                memcpy(got + n, iov[i].iov_base, iov[i].iov_len);
                n += iov[i].iov_len;
                sent += iov[i].iov_len;
            }
            ini_conn_sent(w->c, sent);
        }
        require(n >= ISCSI_BHS_SIZE);
        struct iscsi_login_request request;
        iscsi_login_request_unpack(got, &request);
        const char *keys = (const char *)got + ISCSI_BHS_SIZE;
        char text[2048];
        if (round == 0)
            at = say(text, at, "TargetPortalGroupTag=1");
        if (find_key(keys, request.data_segment_length, "HeaderDigest"))
            at = say(text, at, flags & 1 ? "HeaderDigest=CRC32C" : "HeaderDigest=None");
        if (find_key(keys, request.data_segment_length, "DataDigest"))
            at = say(text, at, flags & 2 ? "DataDigest=CRC32C" : "DataDigest=None");
        if (find_key(keys, request.data_segment_length, "ErrorRecoveryLevel"))
            at = say(text, at, flags & 4 ? "ErrorRecoveryLevel=1" : "ErrorRecoveryLevel=0");
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
            if (find_key(keys, request.data_segment_length, answers[i][0]))
                at = say(text, at, answers[i][1]);
        struct iscsi_login_response response = {
            .transit = request.transit,
            .csg = request.csg,
            .nsg = request.transit ? request.nsg : 0,
            .data_segment_length = (uint32_t)at,
            .tsih = 1,
            .itt = request.itt,
            .stat_sn = w->stat_sn++,
            .exp_cmd_sn = w->exp_cmd_sn = request.cmd_sn,
            .max_cmd_sn = w->max_cmd_sn = request.cmd_sn + 15,
        };
        memcpy(response.isid, request.isid, sizeof response.isid);
        uint8_t bhs[ISCSI_BHS_SIZE + 2048 + 4] = {0};
        iscsi_login_response_pack(bhs, &response);
        memcpy(bhs + ISCSI_BHS_SIZE, text, at);
        push(w, bhs, ISCSI_BHS_SIZE + at + iscsi_padding((uint32_t)at));
    }
    require(w->open);
    const struct iscsi_params *p = ini_conn_params(w->c);
    w->header_digest = p->header_digest;
    w->data_digest = p->data_digest;
}

static int fixed_random(void *user, void *bytes, size_t n)
{
    (void)user;
    memset(bytes, 0x42, n);
    return 0;
}

static void make_opts(struct ini_opts *opts, struct world *w)
{
    *opts = (struct ini_opts){.depth = 4, .event = on_event, .user = w};
    opts->login.initiator_name = "iqn.2026-01.example.host:one";
    opts->login.target_name = "iqn.2026-01.example.nas:disk";
    opts->login.random = fixed_random;
    memcpy(opts->login.isid, "\x80\x12\x34\x56\x00\x01", 6);
    opts->login.portal_group_tag = -1;
    opts->login.wishes.header_digest = opts->login.wishes.data_digest = ISCSI_DIGEST_PREFER_CRC;
    opts->login.wishes.params = (struct iscsi_params){
        .mrdsl_in = 8192,
        .max_connections = 1,
        .immediate_data = true,
        .max_burst_length = 65536,
        .first_burst_length = 65536,
        .default_time2wait = 2,
        .default_time2retain = 20,
        .max_outstanding_r2t = 8,
        .task_reporting = ISCSI_REPORT_FAST_ABORT,
        .error_recovery_level = 1,
        .protocol_level = 2,
    };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world *w = calloc(1, sizeof *w);
    struct ini_opts opts;
    struct lp_error err = {0};

    require(w);
    w->in = (struct input){data, data + size};
    w->stat_sn = 1;
    uint8_t flags = byte(&w->in);
    make_opts(&opts, w);
    w->s = ini_session_new(&opts, &err);
    require(w->s);
    w->c = ini_conn_new(w->s, 1, &err);
    require(w->c);
    ini_conn_start(w->c, 1000000);
    login(w, flags);
    w->chunk = flags >> 3;
    for (unsigned i = 0; i < TASKS; i++)
        submit(w, i);
    start_text(w, 0);
    start_ping(w);
    pull(w);
    while (w->in.at < w->in.end && !w->over)
        step(w, byte(&w->in));
    ini_conn_closed(w->c);
    while (ini_session_deadline(w->s) <= w->now)
        ini_session_tick(w->s, w->now);
    for (unsigned i = 0; i < TASKS; i++)
        require(!w->io[i].busy);
    require(!w->tmf_busy && !w->ping_busy && !w->text_busy && !w->logout_busy);
    require(ini_session_tasks(w->s) == 0);
    ini_conn_free(w->c);
    ini_session_free(w->s);
    free(w);
    return 0;
}
