/* SPDX-License-Identifier: BSD-2-Clause */
/* Login responses of any target to our initiator. The first byte says how it logs in. */
#include "login_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_options(struct login_ini_opts *o, uint8_t how, const struct iscsi_params *session,
                        uint8_t *seed)
{
    *o = (struct login_ini_opts){
        .initiator_name = initiator_name,
        .target_name = how & 1 ? NULL : target_name,
        .discovery = how & 1,
        .isid = {0x80},
        .tsih = how & 2 ? 77 : 0,
        .session = how & 2 ? session : NULL,
        .itt = 1,
        .portal_group_tag = how & 4 ? 1 : -1,
        .random = seeded_random,
        .random_user = seed,
    };
    iscsi_wishes_default(&o->wishes);
    if (how & 8)
        o->chap = (struct chap_credentials){"host", host_secret, strlen(host_secret)};
    if ((how & 24) == 24)
        o->mutual = (struct chap_credentials){"disk", disk_secret, strlen(disk_secret)};
    o->chap_optional = (how & 56) == 40;
    if (how & 64)
        o->wishes.header_digest = ISCSI_DIGEST_REQUIRE;
}

static void write_response(uint8_t bhs[ISCSI_BHS_SIZE], const struct step *step)
{
    struct iscsi_login_response pdu = {
        .transit = step->flags & FLAG_TRANSIT,
        .more = step->flags & FLAG_MORE,
        .csg = step->stages & 3,
        .nsg = step->stages >> 2 & 3,
        .data_segment_length = (uint32_t)step->n,
        .itt = 1,
        .tsih = step->flags & FLAG_HANDLE ? 77 : 0,
        .status = step->flags & FLAG_STATUS
                      ? (uint16_t)((step->stages >> 6) << 8 | (step->stages >> 2 & 15))
                      : 0,
    };

    if (step->raw)
        memcpy(bhs, step->raw, ISCSI_BHS_SIZE);
    else
        iscsi_login_response_pack(bhs, &pdu);
}

static void check_end(const struct login_ini *l, enum login_result result,
                      const struct login_ini_opts *o, bool proven)
{
    if (result == LOGIN_DONE) {
        require(l->tsih != 0 && (!o->tsih || l->tsih == o->tsih));
        require(!o->chap.user || o->chap_optional || l->authenticated);
        require(!o->mutual.secret || (l->target_authenticated && proven));
        require(l->params.first_burst_length <= l->params.max_burst_length);
        require(o->wishes.header_digest != ISCSI_DIGEST_REQUIRE || l->params.header_digest);
        require(text_printable(l->target_alias));
    } else if (result == LOGIN_REDIRECT) {
        require(l->address[0] && text_printable(l->address));
    } else {
        require(l->sentence[0] && text_printable(l->sentence));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct login_ini l;
    static struct step step;
    struct script s = {data + 1, data + size};
    enum login_result result = LOGIN_MORE;
    struct iscsi_params session;
    struct login_ini_opts opts;
    char response[2 * HASH_MAX + 3] = "";
    uint8_t bhs[ISCSI_BHS_SIZE], seed = 0;
    const uint8_t *text;
    bool proven = false;
    size_t n;

    if (size < 1)
        return 0;
    iscsi_params_default(&session);
    set_options(&opts, data[0], &session, &seed);
    require(login_ini_check(&opts, false, NULL) == 0);
    login_ini_start(&l, &opts);
    while (result == LOGIN_MORE && login_ini_request(&l, bhs, &text, &n)) {
        char *copy;

        require(n <= ISCSI_LOGIN_MRDSL);
        if (l.challenged)
            hex_response(l.kind, l.identifier, disk_secret, l.challenge, response);
        if (!next_step(&s, &step, response)) {
            login_ini_closed(&l);
            result = LOGIN_FAILED;
            break;
        }
        proven |= step.proof;
        write_response(bhs, &step);
        copy = alone(&step);
        result = login_ini_response(&l, bhs, copy, step.n);
        free(copy);
    }
    require(result != LOGIN_MORE && result != LOGIN_CLOSE);
    check_end(&l, result, &opts, proven);
    require(!login_ini_request(&l, bhs, &text, &n));
    login_ini_end(&l);
    return 0;
}
