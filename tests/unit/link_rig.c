/* SPDX-License-Identifier: BSD-2-Clause */
#include "link_rig.h"

#include "base/bytes.h"

/* ---- sending ---- */

static void put(struct far_conn *c, const uint8_t bhs[ISCSI_BHS_SIZE], const void *data, uint32_t n)
{
    static const uint8_t zeros[4];
    size_t pad = (4 - n % 4) % 4, total = ISCSI_BHS_SIZE + n + pad;
    uint8_t *at;

    c->out = realloc(c->out, c->out_length + total);
    assert_non_null(c->out);
    at = c->out + c->out_length;
    memcpy(at, bhs, ISCSI_BHS_SIZE);
    store_be24(at + 5, n);
    if (n)
        memcpy(at + ISCSI_BHS_SIZE, data, n);
    memcpy(at + ISCSI_BHS_SIZE + n, zeros, pad);
    c->out_length += total;
    net_stream_want_send(c->stream);
}

#define NUMBERS(c)                                                                                 \
    .stat_sn = (c)->stat_sn++, .exp_cmd_sn = (c)->exp_cmd_sn, .max_cmd_sn = (c)->exp_cmd_sn + 63

/* ---- logins ---- */

static size_t pair(char *text, size_t at, const char *key, const char *value)
{
    return at + (size_t)sprintf(text + at, "%s=%s", key, value) + 1;
}

static const char *answer_of(const char *key)
{
    static const char *const answers[][2] = {
        {"HeaderDigest", "None"},      {"DataDigest", "None"},
        {"InitialR2T", "No"},          {"ImmediateData", "Yes"},
        {"DataPDUInOrder", "Yes"},     {"DataSequenceInOrder", "Yes"},
        {"MaxConnections", "1"},       {"MaxBurstLength", "262144"},
        {"FirstBurstLength", "65536"}, {"DefaultTime2Wait", "2"},
        {"DefaultTime2Retain", "0"},   {"MaxOutstandingR2T", "1"},
        {"ErrorRecoveryLevel", "0"},   {"iSCSIProtocolLevel", "1"},
        {"TaskReporting", "RFC3720"},  {"MaxRecvDataSegmentLength", "65536"},
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
        if (strcmp(key, answers[i][0]) == 0)
            return answers[i][1];
    return NULL;
}

static void note_offer(struct far *far, const char *list)
{
    if (far->offer_count < 4)
        snprintf(far->offers[far->offer_count++], sizeof(far->offers[0]), "%.63s", list);
}

/* Answers each key. False: the CHAP list is refused. */
static bool answer_keys(struct far *far, const char *at, const char *end, char *out, size_t *n)
{
    for (; at < end; at += strlen(at) + 1) {
        const char *value = strchr(at, '=') + 1, *said;
        char key[64] = {0};

        memcpy(key, at, (size_t)(value - at) - 1);
        if (strcmp(key, "TargetName") == 0)
            snprintf(far->target_name, sizeof(far->target_name), "%.255s", value);
        if (strcmp(key, "AuthMethod") == 0)
            *n = pair(out, *n, key, far->only_chap ? "CHAP" : "None");
        if (strcmp(key, "CHAP_A") == 0) {
            note_offer(far, value);
            if (strcmp(value, far->only_chap) != 0)
                return false;
            *n = pair(out, *n, key, "5");
            *n = pair(out, *n, "CHAP_I", "37");
            *n = pair(out, *n, "CHAP_C", "0x000102030405060708090a0b0c0d0e0f");
        }
        said = answer_of(key);
        if (said)
            *n = pair(out, *n, key, said);
    }
    return true;
}

static void refuse(struct far_conn *c, struct iscsi_login_response *pdu, uint16_t status)
{
    struct far *far = c->far;
    uint8_t bhs[ISCSI_BHS_SIZE];
    char text[300];
    size_t n = 0;

    far->refused++;
    pdu->status = status;
    pdu->transit = false;
    pdu->nsg = 0;
    pdu->tsih = 0;
    if (status >> 8 == 1 && far->redirect)
        n = pair(text, 0, "TargetAddress", far->redirect);
    iscsi_login_response_pack(bhs, pdu);
    put(c, bhs, text, (uint32_t)n);
    c->close_after = true;
}

static void on_login(struct far_conn *c, const uint8_t *bhs_in, const char *text, uint32_t n)
{
    struct far *far = c->far;
    struct iscsi_login_request request;
    uint8_t bhs[ISCSI_BHS_SIZE];
    char out[4096];
    size_t length = 0;

    iscsi_login_request_unpack(bhs_in, &request);
    c->exp_cmd_sn = request.cmd_sn;
    if (far->hang)
        return;

    bool final = request.transit && request.nsg == 3, refused = false;
    struct iscsi_login_response pdu = {.transit = request.transit,
                                       .csg = request.csg,
                                       .nsg = request.nsg,
                                       .tsih = final ? 1 : 0,
                                       .itt = request.itt,
                                       NUMBERS(c)};

    memcpy(pdu.isid, request.isid, 6);
    if (pdu.stat_sn == 1)
        length = pair(out, 0, "TargetPortalGroupTag", "1");
    if (!answer_keys(far, text, text + n, out, &length)) {
        if (far->close_on_chap) {
            c->close_after = true;
            net_stream_want_send(c->stream);
        } else {
            refuse(c, &pdu, ISCSI_LOGIN_AUTHENTICATION);
        }
        return;
    }
    if (far->login_status) {
        refused = true;
        refuse(c, &pdu, far->login_status);
        if (far->refuse_times && --far->refuse_times == 0)
            far->login_status = 0;
    }
    if (refused)
        return;
    iscsi_login_response_pack(bhs, &pdu);
    put(c, bhs, out, (uint32_t)length);
    if (final) {
        c->full = true;
        if (far->logins < FAR_ISIDS) {
            memcpy(far->isids[far->logins], request.isid, 6);
            far->tsihs[far->logins] = request.tsih;
        }
        far->logins++;
    }
}

/* ---- the logical unit ---- */

void far_sense(struct far_reply *reply, uint8_t key, uint16_t asc)
{
    memset(reply->sense, 0, sizeof(reply->sense));
    reply->status = 0x02;
    reply->sense_length = 18;
    reply->sense[0] = 0x70;
    reply->sense[2] = key;
    reply->sense[7] = 10;
    store_be16(reply->sense + 12, asc);
}

bool far_is(const struct iscsi_scsi_command *c, uint8_t opcode)
{
    return c->cdb[0] == opcode;
}

static uint32_t vpd(const struct far *far, uint8_t page, uint8_t *b)
{
    b[0] = far->type;
    b[1] = page;
    switch (page) {
    case 0x00:
        memcpy(b + 4, far->pages, far->page_count);
        b[3] = (uint8_t)far->page_count;
        break;
    case 0x80:
        b[3] = (uint8_t)strlen(far->serial);
        memcpy(b + 4, far->serial, b[3]);
        break;
    case 0x83:
        b[3] = 12;
        b[4] = 0x01;
        b[5] = 0x03;
        b[7] = 8;
        memcpy(b + 8, far->naa, 8);
        break;
    case 0xb0:
        b[3] = 0x3c;
        store_be32(b + 8, far->max_transfer);
        store_be32(b + 20, far->max_unmap);
        store_be32(b + 24, 1);
        store_be32(b + 28, far->granularity);
        store_be32(b + 32, far->granularity ? 0x80000000 | far->alignment : 0);
        store_be64(b + 36, far->max_write_same);
        break;
    case 0xb1:
        b[3] = 0x3c;
        break;
    default:
        b[3] = 4;
        b[5] = (uint8_t)(far->lbpu << 7 | far->lbpws << 6);
        break;
    }
    return 4u + b[3];
}

static bool has_page(const struct far *far, uint8_t page)
{
    for (unsigned i = 0; i < far->page_count; i++)
        if (far->pages[i] == page)
            return true;
    return false;
}

static uint32_t inquiry(const struct far *far, const uint8_t *cdb, uint8_t *b,
                        struct far_reply *reply)
{
    if (cdb[1] & 1) {
        if (has_page(far, cdb[2]))
            return vpd(far, cdb[2], b);
        far_sense(reply, 5, 0x2400);
        return 0;
    }
    b[0] = (uint8_t)(far->missing ? 0x7f : far->qualifier << 5 | far->type);
    b[2] = 6;
    b[3] = 2;
    b[4] = 31;
    memcpy(b + 8, "TEST    scripted disk   0001", 28);
    return 36;
}

static uint32_t mode_sense(const struct far *far, uint8_t *b, struct far_reply *reply)
{
    if (!far->mode_pages) {
        far_sense(reply, 5, 0x2000);
        return 0;
    }
    b[2] = (uint8_t)(far->wp << 7 | far->dpofua << 4);
    b[4] = 0x08;
    b[5] = 18;
    b[6] = (uint8_t)(far->wce << 2);
    b[0] = 3 + 20;
    return 24;
}

static uint64_t lba_of(const uint8_t *cdb, uint32_t *blocks)
{
    if (cdb[0] >> 5 == 1) {
        *blocks = load_be16(cdb + 7);
        return load_be32(cdb + 2);
    }
    *blocks = load_be32(cdb + 10);
    return load_be64(cdb + 2);
}

static uint8_t *place(const struct far *far, const uint8_t *cdb, uint32_t *bytes,
                      struct far_reply *reply)
{
    uint32_t blocks;
    uint64_t lba = lba_of(cdb, &blocks);

    if (lba + blocks > far->blocks) {
        far_sense(reply, 5, 0x2100);
        return NULL;
    }
    *bytes = blocks * far->block_size;
    assert_true(lba * far->block_size + *bytes <= FAR_RAM);
    return far->ram + lba * far->block_size;
}

static void unmap(const struct far *far, const uint8_t *list)
{
    uint64_t lba = load_be64(list + 8);

    assert_true((lba + load_be32(list + 16)) * far->block_size <= FAR_RAM);
    memset(far->ram + lba * far->block_size, 0, (size_t)load_be32(list + 16) * far->block_size);
}

static void lun_answer(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                       uint8_t *b, struct far_reply *reply)
{
    const uint8_t *cdb = c->cdb;
    uint8_t *at;
    uint32_t n = 0;

    if (far->missing && cdb[0] != 0x12 && cdb[0] != 0xa0) {
        far_sense(reply, 5, 0x2500);
        return;
    }
    switch (cdb[0]) {
    case 0x12:
        n = inquiry(far, cdb, b, reply);
        break;
    case 0x1a:
        n = mode_sense(far, b, reply);
        break;
    case 0x25:
        store_be32(b, far->blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)(far->blocks - 1));
        store_be32(b + 4, far->block_size);
        n = 8;
        break;
    case 0x9e:
        store_be64(b, far->blocks - 1);
        store_be32(b + 8, far->block_size);
        b[14] = (uint8_t)(far->lbpme << 7);
        n = 32;
        break;
    case 0xa0:
        store_be32(b, 16);
        b[17] = 1; /* LUNs 1 and 5: LUN 0 is absent */
        b[9] = 5;
        n = 24;
        break;
    case 0x28:
    case 0x88:
        reply->data = place(far, cdb, &reply->n, reply);
        return;
    case 0x2a:
    case 0x8a:
        at = place(far, cdb, &n, reply);
        if (at)
            memcpy(at, data, n);
        return;
    case 0x93:
        at = place(far, cdb, &n, reply);
        for (uint32_t i = 0; at && i < n; i += far->block_size)
            memcpy(at + i, data, far->block_size);
        return;
    case 0x42:
        unmap(far, data);
        return;
    case 0x35:
        return;
    default:
        far_sense(reply, 5, 0x2000);
        return;
    }
    reply->data = b;
    reply->n = n;
}

static void note(struct far *far, const uint8_t *cdb)
{
    char *at = far->log + far->log_length;
    size_t room = FAR_LOG - far->log_length;
    int n = snprintf(at, room, "%s%02x", far->log_length ? " " : "", cdb[0]);

    if (cdb[0] == 0x12 && cdb[1] & 1)
        n += snprintf(at + n, room - (size_t)n, ":%02x", cdb[2]);
    if ((cdb[0] == 0x2a || cdb[0] == 0x8a) && cdb[1] & 8)
        n += snprintf(at + n, room - (size_t)n, "+fua");
    if (room > 16)
        far->log_length += (size_t)n;
    else
        far->log[far->log_length] = '\0';
}

static void respond(struct far_conn *c, const struct iscsi_scsi_command *command,
                    const struct far_reply *reply)
{
    uint32_t edtl = command->expected_data_transfer_length, sent = 0;
    uint8_t bhs[ISCSI_BHS_SIZE], sense[80];

    if (command->read && reply->status == 0 && reply->n) {
        sent = reply->n < edtl ? reply->n : edtl;
        iscsi_data_in_pack(bhs, &(struct iscsi_data_in){.final = true,
                                                        .itt = command->itt,
                                                        .ttt = ISCSI_TAG_NONE,
                                                        .exp_cmd_sn = c->exp_cmd_sn,
                                                        .max_cmd_sn = c->exp_cmd_sn + 63});
        put(c, bhs, reply->data, sent);
    }
    if (command->write)
        sent = reply->status == 0 ? edtl - reply->missing : 0;
    iscsi_scsi_response_pack(bhs,
                             &(struct iscsi_scsi_response){.status = reply->status,
                                                           .underflow = sent < edtl,
                                                           .residual_count = edtl - sent,
                                                           .itt = command->itt,
                                                           .exp_data_sn = command->read && sent,
                                                           NUMBERS(c)});
    store_be16(sense, (uint16_t)reply->sense_length);
    memcpy(sense + 2, reply->sense, reply->sense_length);
    put(c, bhs, sense, reply->sense_length ? reply->sense_length + 2 : 0);
}

static void on_command(struct far_conn *c, const uint8_t *bhs, const uint8_t *data)
{
    struct far *far = c->far;
    struct iscsi_scsi_command command;
    struct far_reply reply = {0};
    uint8_t answer[512] = {0};

    iscsi_scsi_command_unpack(bhs, &command);
    c->exp_cmd_sn = command.cmd_sn + 1;
    far->commands++;
    note(far, command.cdb);
    if (!far->hook || !far->hook(far, &command, data, &reply))
        lun_answer(far, &command, data, answer, &reply);
    if (reply.drop) {
        c->close_after = true;
        net_stream_want_send(c->stream);
    } else if (!reply.silent) {
        respond(c, &command, &reply);
    }
}

static void on_tmf(struct far_conn *c, const uint8_t *in)
{
    struct far *far = c->far;
    struct iscsi_tmf_request request;
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_tmf_request_unpack(in, &request);
    if (far->tmfs < sizeof(far->tmf_functions))
        far->tmf_functions[far->tmfs] = request.function;
    far->tmfs++;
    if (far->tmf < 0)
        return;
    iscsi_tmf_response_pack(bhs, &(struct iscsi_tmf_response){.response = (uint8_t)far->tmf,
                                                              .itt = request.itt,
                                                              NUMBERS(c)});
    put(c, bhs, NULL, 0);
}

static void on_nop(struct far_conn *c, const uint8_t *in, const uint8_t *data, uint32_t n)
{
    struct iscsi_nop_out ping;
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_nop_out_unpack(in, &ping);
    c->far->pings++;
    if (c->far->mute || ping.itt == ISCSI_TAG_NONE)
        return;
    iscsi_nop_in_pack(bhs,
                      &(struct iscsi_nop_in){.itt = ping.itt, .ttt = ISCSI_TAG_NONE, NUMBERS(c)});
    put(c, bhs, data, n);
}

static void on_logout(struct far_conn *c, const uint8_t *in)
{
    struct iscsi_logout_request request;
    uint8_t bhs[ISCSI_BHS_SIZE];

    iscsi_logout_request_unpack(in, &request);
    c->far->logouts++;
    iscsi_logout_response_pack(bhs,
                               &(struct iscsi_logout_response){.itt = request.itt, NUMBERS(c)});
    put(c, bhs, NULL, 0);
    c->close_after = true;
}

static void on_pdu(struct far_conn *c, const uint8_t *bhs, const uint8_t *data, uint32_t n)
{
    switch (bhs[0] & 0x3f) {
    case ISCSI_LOGIN_REQUEST:
        on_login(c, bhs, (const char *)data, n);
        break;
    case ISCSI_SCSI_COMMAND:
        on_command(c, bhs, data);
        break;
    case ISCSI_TMF_REQUEST:
        on_tmf(c, bhs);
        break;
    case ISCSI_NOP_OUT:
        on_nop(c, bhs, data, n);
        break;
    case ISCSI_LOGOUT_REQUEST:
        on_logout(c, bhs);
        break;
    default:
        fail_msg("the initiator sent the opcode %02x", bhs[0]);
    }
}

/* ---- connections ---- */

static void end_conn(struct far_conn *c)
{
    for (unsigned i = 0; i < FAR_CONNS; i++)
        if (c->far->conns[i] == c)
            c->far->conns[i] = NULL;
    net_stream_close(c->stream);
    free(c->out);
    free(c);
}

static unsigned recv_space(void *user, struct iovec *iov, unsigned max)
{
    struct far_conn *c = user;

    (void)max;
    iov[0] = (struct iovec){c->in + c->have, FAR_IN - c->have};
    return 1;
}

static void received(void *user, size_t n)
{
    struct far_conn *c = user;

    c->have += n;
    while (c->have >= ISCSI_BHS_SIZE) {
        uint32_t length = load_be24(c->in + 5);
        size_t whole = ISCSI_BHS_SIZE + length + (4 - length % 4) % 4;

        if (c->have < whole)
            break;
        on_pdu(c, c->in, c->in + ISCSI_BHS_SIZE, length);
        memmove(c->in, c->in + whole, c->have - whole);
        c->have -= whole;
    }
}

static unsigned send_data(void *user, struct iovec *iov, unsigned max)
{
    struct far_conn *c = user;

    (void)max;
    if (c->out_done == c->out_length) {
        if (c->close_after)
            end_conn(c);
        return 0;
    }
    iov[0] = (struct iovec){c->out + c->out_done, c->out_length - c->out_done};
    return 1;
}

static void sent(void *user, size_t n)
{
    struct far_conn *c = user;

    c->out_done += n;
    if (c->out_done == c->out_length && !c->close_after)
        c->out_done = c->out_length = 0;
    else if (c->out_done == c->out_length)
        end_conn(c);
}

static void closed(void *user, const struct lp_error *why)
{
    (void)why;
    end_conn(user);
}

static void accepted(void *user, struct net_stream *s)
{
    static const struct net_stream_ops ops = {recv_space, received, send_data, sent, closed};
    struct far *far = user;
    struct far_conn *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    if (far->connects < FAR_ISIDS)
        far->connect_ns[far->connects] = net_now_exact(far->r);
    far->connects++;
    c->far = far;
    c->stream = s;
    c->stat_sn = 1;
    for (unsigned i = 0; i < FAR_CONNS; i++)
        if (!far->conns[i]) {
            far->conns[i] = c;
            break;
        }
    net_stream_start(s, &ops, c);
}

unsigned far_drop(struct far *far)
{
    unsigned n = 0;

    for (unsigned i = 0; i < FAR_CONNS; i++)
        if (far->conns[i]) {
            end_conn(far->conns[i]);
            n++;
        }
    return n;
}

void far_away(struct far *far)
{
    net_listener_close(far->listener);
    far->listener = NULL;
    far_drop(far);
}

void far_back(struct far *far)
{
    struct lp_error err;

    far->listener = net_listen(far->r, "127.0.0.1", far->port, NULL, accepted, far, &err);
    if (!far->listener)
        fail_msg("%s", err.msg);
}

bool far_logged(struct far *far, const char *text)
{
    bool same = strcmp(far->log, text) == 0;

    if (!same)
        print_message("the target saw \"%s\"\n", far->log);
    far->log_length = 0;
    far->log[0] = '\0';
    return same;
}

/* ---- opening and closing ---- */

bool far_open(struct far *far, struct net_reactor *r, const char *address)
{
    static const uint8_t pages[] = {0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2};
    struct lp_error err;

    memset(far, 0, sizeof(*far));
    far->r = r;
    far->block_size = 512;
    far->blocks = FAR_RAM / 512;
    memcpy(far->naa, "\x60\x01\x02\x03\x04\x05\x06\x07", 8);
    strcpy(far->serial, "S1");
    memcpy(far->pages, pages, sizeof(pages));
    far->page_count = sizeof(pages);
    far->mode_pages = far->dpofua = far->wce = true;
    far->ram = calloc(1, FAR_RAM);
    assert_non_null(far->ram);
    pthread_mutex_init(&far->lock, NULL);
    pthread_cond_init(&far->changed, NULL);
    far->listener = net_listen(r, address, 0, NULL, accepted, far, &err);
    if (far->listener)
        far->port = net_listener_port(far->listener);
    return far->listener != NULL;
}

/* Between turns of its loop it can be stopped: far_lock(). */
static void *run(void *user)
{
    struct far *far = user;
    bool stop;

    do {
        net_run_once(far->r, NET_NEVER);
        pthread_mutex_lock(&far->lock);
        if (far->pause) {
            far->parked = true;
            pthread_cond_broadcast(&far->changed);
            while (far->pause)
                pthread_cond_wait(&far->changed, &far->lock);
            far->parked = false;
        }
        stop = far->stop;
        pthread_mutex_unlock(&far->lock);
    } while (!stop);
    return NULL;
}

void far_thread(struct far *far)
{
    struct net_reactor_opts opts = {.engine = "poll"};
    struct lp_error err;
    struct net_reactor *r = net_reactor_new(&opts, &err);

    assert_non_null(r);
    assert_true(far_open(far, r, "127.0.0.1"));
    far->threaded = true;
    assert_int_equal(pthread_create(&far->thread, NULL, run, far), 0);
}

void far_lock(struct far *far)
{
    if (!far->threaded)
        return;
    pthread_mutex_lock(&far->lock);
    far->pause = true;
    net_wake(far->r);
    while (!far->parked)
        pthread_cond_wait(&far->changed, &far->lock);
    pthread_mutex_unlock(&far->lock);
}

void far_unlock(struct far *far)
{
    if (!far->threaded)
        return;
    pthread_mutex_lock(&far->lock);
    far->pause = false;
    pthread_cond_broadcast(&far->changed);
    pthread_mutex_unlock(&far->lock);
}

void far_close(struct far *far)
{
    if (far->threaded) {
        far_lock(far);
        far->stop = true;
        far_unlock(far);
        pthread_join(far->thread, NULL);
    }
    if (far->listener)
        net_listener_close(far->listener);
    far_drop(far);
    if (far->threaded)
        net_reactor_free(far->r);
    free(far->ram);
    pthread_mutex_destroy(&far->lock);
    pthread_cond_destroy(&far->changed);
}

/* ---- a link on virtual time ---- */

static uint64_t virtual_clock(void *user)
{
    return ((struct rig *)user)->now;
}

static void on_log(void *user, const char *sentence)
{
    struct rig *g = user;
    size_t n = strlen(g->log);

    snprintf(g->log + n, sizeof(g->log) - n, "%s\n", sentence);
}

static void on_probed(struct lun_probe *probe, const struct lp_error *why)
{
    struct rig *g = probe->user;
    struct lp_error err;

    g->why = why ? *why : (struct lp_error){0};
    if (why && g->probed)
        link_postpone(g->link, why);
    else if (why)
        link_refuse(g->link, why);
    else if (g->probed && lun_compare(&g->known, &probe->info, &err) < 0)
        link_refuse(g->link, &err);
    else
        link_ready(g->link);
    if (!why && !g->probed)
        g->known = probe->info;
    g->probed |= !why;
}

static void on_checking(void *user, struct link *link)
{
    struct rig *g = user;
    static const uint8_t lun[8];

    if (!g->checks) {
        link_ready(link);
        return;
    }
    g->probe.brief = g->probed;
    g->probe.done = on_probed;
    g->probe.user = g;
    lun_probe_start(&g->probe, link, lun);
}

static void on_failed(void *user, struct link *link, const struct lp_error *why)
{
    (void)link, (void)why;
    ((struct rig *)user)->failed++;
}

static void on_down(void *user, struct link *link)
{
    (void)link;
    ((struct rig *)user)->downs++;
}

static void on_attention(void *user, struct link *link, uint16_t asc)
{
    struct rig *g = user;

    (void)link;
    g->attentions++;
    g->asc = asc;
}

static int no_random(void *user, void *bytes, size_t n)
{
    (void)user;
    memset(bytes, 7, n);
    return 0;
}

int rig_set_up(void **state)
{
    struct rig *g = calloc(1, sizeof(*g));
    struct net_reactor_opts opts = {.engine = "poll", .clock = virtual_clock, .clock_user = g};
    struct lp_error err;

    if (!g)
        return -1;
    g->now = 1000 * SECOND;
    g->r = net_reactor_new(&opts, &err);
    if (!g->r || !far_open(&g->far, g->r, "127.0.0.1"))
        return -1;
    link_opts_default(&g->opts);
    g->opts.host = "127.0.0.1";
    g->opts.port = g->far.port;
    g->opts.login.initiator_name = FAR_INITIATOR;
    g->opts.login.target_name = FAR_TARGET;
    memcpy(g->opts.login.isid, "\x80\x11\x22\x33\x00\x01", 6);
    g->opts.login.random = no_random;
    g->opts.checking = on_checking;
    g->opts.failed = on_failed;
    g->opts.down = on_down;
    g->opts.attention = on_attention;
    g->opts.log = on_log;
    g->opts.user = g;
    *state = g;
    return 0;
}

int rig_tear_down(void **state)
{
    struct rig *g = *state;

    link_close(g->link, 0);
    far_close(&g->far);
    net_reactor_free(g->r);
    free(g);
    return 0;
}

void rig_link(struct rig *g)
{
    struct lp_error err;

    g->link = link_open(g->r, &g->opts, &err);
    if (!g->link)
        fail_msg("%s", err.msg);
}

/* Everything that can happen without time going on. */
static void settle(struct rig *g)
{
    for (unsigned idle = 0; idle < 8;)
        idle = net_run_once(g->r, 0) > 0 ? 0 : idle + 1;
}

void rig_pass(struct rig *g, uint64_t ns)
{
    uint64_t until = g->now + ns;

    settle(g);
    while (net_deadline(g->r) <= until) {
        if (net_deadline(g->r) > g->now)
            g->now = net_deadline(g->r);
        net_run_once(g->r, 0);
        settle(g);
    }
    g->now = until;
    settle(g);
}

void rig_until(struct rig *g, bool (*is)(struct rig *g, void *arg), void *arg)
{
    uint64_t limit = g->now + 3600 * SECOND;

    for (settle(g); !is(g, arg); settle(g)) {
        uint64_t next = net_deadline(g->r);

        if (g->now > limit || next == NET_NEVER)
            fail_msg("it never happens; the log:\n%s", g->log);
        if (next > g->now)
            g->now = next;
        net_run_once(g->r, 0);
    }
}

static bool is_up(struct rig *g, void *arg)
{
    (void)arg;
    if (link_state(g->link) == LINK_FAILED)
        fail_msg("the link failed: %s", link_error(g->link)->msg);
    return link_state(g->link) == LINK_UP;
}

void rig_up(struct rig *g)
{
    rig_until(g, is_up, NULL);
}

/* ---- commands ---- */

static void on_done(struct link_command *c)
{
    struct io *io = c->user;

    io->done++;
    io->at = io->rig->now;
}

static void start(struct rig *g, struct io *io, uint8_t opcode, uint32_t lba, uint16_t blocks)
{
    memset(&io->c, 0, sizeof(io->c));
    io->rig = g;
    io->done = 0;
    io->iov = (struct iovec){io->data, blocks * 512u};
    io->c.task.cdb[0] = opcode;
    io->c.task.cdb_length = 10;
    store_be32(io->c.task.cdb + 2, lba);
    store_be16(io->c.task.cdb + 7, blocks);
    io->c.task.attr = ISCSI_ATTR_SIMPLE;
    io->c.task.direction = opcode == 0x28 ? INI_READ : INI_WRITE;
    io->c.task.iov = &io->iov;
    io->c.task.iov_count = 1;
    io->c.task.length = blocks * 512u;
    io->c.done = on_done;
    io->c.user = io;
    link_submit(g->link, &io->c);
    assert_int_equal(io->done, 0); /* never from inside */
}

void io_read(struct rig *g, struct io *io, uint32_t lba, uint16_t blocks)
{
    memset(io->data, 0xee, sizeof(io->data));
    start(g, io, 0x28, lba, blocks);
}

void io_write(struct rig *g, struct io *io, uint32_t lba, uint16_t blocks, uint8_t byte)
{
    memset(io->data, byte, sizeof(io->data));
    start(g, io, 0x2a, lba, blocks);
}

static bool is_done(struct rig *g, void *arg)
{
    (void)g;
    return ((struct io *)arg)->done > 0;
}

int io_wait(struct rig *g, struct io *io)
{
    rig_until(g, is_done, io);
    assert_int_equal(io->done, 1);
    return io->c.status;
}
