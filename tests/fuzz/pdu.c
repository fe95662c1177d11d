/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of a peer: 48 bytes through every unpacker, and the rest as additional header segments.
 * What was unpacked and packed again is the same to the unpacker. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "iscsi/pdu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

/* Alone and of the exact size, so that reading beyond it is seen. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + (size == 0));

    require(copy);
    memcpy(copy, data, size);
    return copy;
}

/* The opcode in bhs does not matter: each unpacker reads its own fields. */
#define AGAIN(type)                                                                                \
    do {                                                                                           \
        struct type first, second;                                                                 \
        uint8_t packed[ISCSI_BHS_SIZE], again[ISCSI_BHS_SIZE];                                     \
                                                                                                   \
        memset(&first, 0, sizeof(first));                                                          \
        memset(&second, 0xff, sizeof(second));                                                     \
        type##_unpack(bhs, &first);                                                                \
        type##_pack(packed, &first);                                                               \
        type##_unpack(packed, &second);                                                            \
        type##_pack(again, &second);                                                               \
        require(memcmp(packed, again, sizeof(packed)) == 0);                                       \
    } while (0)

static void check_bhs(const uint8_t *bhs)
{
    struct iscsi_bhs h;

    iscsi_bhs_unpack(bhs, &h);
    require(h.opcode < 64 && h.data_segment_length <= ISCSI_SEGMENT_MAX);
    AGAIN(iscsi_scsi_command);
    AGAIN(iscsi_scsi_response);
    AGAIN(iscsi_tmf_request);
    AGAIN(iscsi_tmf_response);
    AGAIN(iscsi_data_out);
    AGAIN(iscsi_data_in);
    AGAIN(iscsi_r2t);
    AGAIN(iscsi_async);
    AGAIN(iscsi_text_request);
    AGAIN(iscsi_text_response);
    AGAIN(iscsi_login_request);
    AGAIN(iscsi_login_response);
    AGAIN(iscsi_logout_request);
    AGAIN(iscsi_logout_response);
    AGAIN(iscsi_snack);
    AGAIN(iscsi_reject);
    AGAIN(iscsi_nop_out);
    AGAIN(iscsi_nop_in);
}

static void check_ahs(const uint8_t *bytes, size_t n)
{
    uint8_t *packed = malloc(ISCSI_AHS_PACKED_MAX);
    struct iscsi_ahs ahs, again;
    bool unknown;
    size_t length;

    require(packed);
    if (iscsi_ahs_unpack(bytes, n, &ahs, &unknown) == 0) {
        require(n % 4 == 0);
        require(!ahs.extended_cdb ||
                (ahs.cdb_rest_length > 0 && ahs.cdb_rest_length <= sizeof(ahs.cdb_rest)));
        length = iscsi_ahs_pack(packed, &ahs);
        require(length % 4 == 0 && length <= n && length <= ISCSI_AHS_PACKED_MAX);
        require(iscsi_ahs_unpack(packed, length, &again, &unknown) == 0 && !unknown);
        require(memcmp(&ahs, &again, sizeof(ahs)) == 0); /* unpack zeroes it first */
    }
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bhs, *chain;

    if (size < ISCSI_BHS_SIZE || size > ISCSI_BHS_SIZE + ISCSI_AHS_MAX)
        return 0;
    bhs = copy_of(data, ISCSI_BHS_SIZE);
    chain = copy_of(data + ISCSI_BHS_SIZE, size - ISCSI_BHS_SIZE);
    check_bhs(bhs);
    check_ahs(chain, size - ISCSI_BHS_SIZE);
    free(bhs);
    free(chain);
    return 0;
}
