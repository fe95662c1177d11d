/* SPDX-License-Identifier: BSD-2-Clause */
#include "far.h"

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

/* ---- requests ---- */

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
        far_lun_answer(far, &command, data, answer, &reply);
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
