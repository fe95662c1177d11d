/* SPDX-License-Identifier: BSD-2-Clause */
/* Login requests of any initiator to our target, most of which must authenticate themselves. The
 * first byte says what the target is like. */
#include "login_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct owner {
    uint8_t how, seed;
    struct iscsi_params session;
    bool begun;
};

static uint16_t lookup(void *user, struct login_tgt *l, struct login_policy *policy)
{
    const struct owner *o = user;

    require(l->initiator_name[0] && text_printable(l->initiator_name));
    require(l->discovery || l->target_name[0]);
    policy->portal_group_tag = 1;
    policy->target_alias = "alias";
    policy->chap = o->how & 1;
    if (o->how & 2)
        policy->mutual = (struct chap_credentials){"disk", disk_secret, strlen(disk_secret)};
    policy->address = "10.0.0.1:3260";
    return strcmp(l->target_name, target_name) == 0 || l->discovery ? ISCSI_LOGIN_OK
           : o->how & 4                                             ? ISCSI_LOGIN_MOVED_TEMPORARILY
                                                                    : ISCSI_LOGIN_NOT_FOUND;
}

static bool secret(void *user, struct login_tgt *l, const char *name, struct chap_credentials *c,
                   const char **bound)
{
    (void)user, (void)l, (void)bound;
    *c = (struct chap_credentials){"host", host_secret, strlen(host_secret)};
    return strcmp(name, "host") == 0;
}

static int randomness(void *user, void *bytes, size_t n)
{
    return seeded_random(&((struct owner *)user)->seed, bytes, n);
}

static uint16_t check(void *user, struct login_tgt *l, const struct iscsi_params **base)
{
    const struct owner *o = user;

    *base = l->tsih ? &o->session : NULL;
    return ISCSI_LOGIN_OK;
}

static uint16_t begin(void *user, struct login_tgt *l, uint16_t *tsih)
{
    struct owner *o = user;

    require(!o->begun);
    o->begun = true;
    *tsih = l->tsih ? l->tsih : 9;
    return ISCSI_LOGIN_OK;
}

static void write_request(uint8_t bhs[ISCSI_BHS_SIZE], const struct step *step)
{
    struct iscsi_login_request pdu = {
        .immediate = true,
        .transit = step->flags & FLAG_TRANSIT,
        .more = step->flags & FLAG_MORE,
        .csg = step->stages & 3,
        .nsg = step->stages >> 2 & 3,
        .data_segment_length = (uint32_t)step->n,
        .itt = 1,
        .tsih = step->flags & FLAG_HANDLE ? 9 : 0,
    };

    if (step->raw)
        memcpy(bhs, step->raw, ISCSI_BHS_SIZE);
    else
        iscsi_login_request_pack(bhs, &pdu);
}

static void check_response(const struct login_tgt *l, enum login_result result,
                           const uint8_t request[ISCSI_BHS_SIZE])
{
    struct iscsi_login_response pdu;
    struct iscsi_login_request asked;
    const uint8_t *bhs, *text;
    size_t n;

    login_tgt_response(l, &bhs, &text, &n);
    iscsi_login_response_unpack(bhs, &pdu);
    iscsi_login_request_unpack(request, &asked);
    require(pdu.data_segment_length == n && n <= ISCSI_LOGIN_MRDSL);
    require((result == LOGIN_FAILED) == (pdu.status != 0));
    require(pdu.status || (pdu.csg == asked.csg && pdu.itt == asked.itt));
    require(!pdu.transit || (asked.transit && pdu.nsg == asked.nsg && !pdu.more));
    require((result == LOGIN_DONE) == (pdu.transit && pdu.nsg == ISCSI_STAGE_FULL_FEATURE));
    require(result != LOGIN_DONE || pdu.tsih != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct login_tgt_ops ops = {lookup, secret, randomness};
    static const struct login_tgt_session_ops session_ops = {check, begin};
    static struct login_tgt l;
    static struct step step;
    struct script s = {data + 1, data + size};
    enum login_result result = LOGIN_MORE;
    char response[2 * HASH_MAX + 3] = "";
    uint8_t bhs[ISCSI_BHS_SIZE];
    struct owner owner = {0};
    struct login_tgt_opts opts = {&ops, &owner, &session_ops, &owner, .stat_sn = 1, .window = 1};
    bool proven = false;

    if (size < 1)
        return 0;
    owner.how = data[0];
    iscsi_params_default(&owner.session);
    iscsi_wishes_default(&opts.wishes);
    if (owner.how & 8)
        opts.wishes.header_digest = ISCSI_DIGEST_REQUIRE;
    login_tgt_start(&l, &opts);
    while (result == LOGIN_MORE) {
        char *copy;

        if (l.challenged)
            hex_response(l.kind, l.identifier, host_secret, l.challenge, response);
        if (!next_step(&s, &step, response))
            break;
        proven |= step.proof && l.challenged;
        write_request(bhs, &step);
        copy = alone(&step);
        result = login_tgt_request(&l, bhs, copy, step.n);
        free(copy);
        if (result != LOGIN_CLOSE)
            check_response(&l, result, bhs);
    }
    require(owner.begun == (result == LOGIN_DONE));
    require(result == LOGIN_MORE || result == LOGIN_DONE ||
            (l.sentence[0] && text_printable(l.sentence)));
    /* What it is all about: nobody gets in without the secret. */
    require(result != LOGIN_DONE || !(owner.how & 1) || (proven && l.chap_name[0]));
    login_tgt_end(&l);
    return 0;
}
