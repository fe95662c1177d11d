/* SPDX-License-Identifier: BSD-2-Clause */
/* Framing against bytes written by hand: padding, the largest segment, digests that begin while a
 * PDU is produced, and how much is read at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "iscsi/frame.h"
#include "iscsi/pdu.h"

enum { STAGING = 4096, HOLD = 512 };

struct receiver {
    struct iscsi_rx rx;
    uint8_t staging[STAGING], hold[HOLD];
    struct iovec place; /* for every segment; none: the hold buffer */
    bool discard;
    unsigned pdus, bad_digests, reads;
    uint32_t length; /* of the last segment */
};

static enum iscsi_rx_verdict on_header(void *user, const uint8_t *bhs, const uint8_t *ahs,
                                       uint32_t ahs_length, struct iscsi_place *place)
{
    struct receiver *r = user;

    (void)bhs, (void)ahs, (void)ahs_length;
    place->discard = r->discard;
    if (r->place.iov_base) {
        place->iov = &r->place;
        place->count = 1;
    }
    return ISCSI_RX_GO;
}

static enum iscsi_rx_verdict on_pdu(void *user, const struct iscsi_rx_pdu *pdu)
{
    struct receiver *r = user;

    r->pdus++;
    r->bad_digests += !pdu->data_digest_ok;
    r->length = pdu->data_length;
    return ISCSI_RX_GO;
}

static const struct iscsi_rx_ops rx_ops = {on_header, on_pdu};
static struct receiver receiver;

static struct receiver *receiver_init(bool header, bool data)
{
    memset(&receiver, 0, sizeof(receiver));
    iscsi_rx_init(&receiver.rx, &rx_ops, &receiver, receiver.staging, STAGING, receiver.hold, HOLD,
                  ISCSI_SEGMENT_MAX);
    iscsi_rx_set_digests(&receiver.rx, header, data);
    return &receiver;
}

/* As many reads as it takes; each fills all that is offered. */
static void feed(struct receiver *r, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        struct iovec iov[4];
        unsigned count = iscsi_rx_space(&r->rx, iov, 4);
        size_t put = 0;

        assert_true(count > 0);
        for (unsigned i = 0; i < count && put < n; i++) {
            size_t part = iov[i].iov_len < n - put ? iov[i].iov_len : n - put;

            memcpy(iov[i].iov_base, bytes + put, part);
            put += part;
        }
        r->reads++;
        assert_int_equal(iscsi_rx_received(&r->rx, put), 0);
        bytes += put;
        n -= put;
    }
}

/* A NOP-In with n bytes of ping data, each of them `fill`. */
static size_t nop_in(uint8_t *bytes, uint32_t n, uint8_t fill)
{
    const struct iscsi_nop_in pdu = {.data_segment_length = n};

    iscsi_nop_in_pack(bytes, &pdu);
    memset(bytes + ISCSI_BHS_SIZE, fill, n);
    return ISCSI_BHS_SIZE + n;
}

/* [B-02] [B-07] */
static void pad_bytes_may_have_any_value_and_count_in_the_digest(void **state)
{
    uint8_t bytes[80];

    (void)state;
    for (int digest = 0; digest < 2; digest++) {
        for (uint32_t n = 1; n < 8; n++) {
            struct receiver *r = receiver_init(false, digest);
            size_t end = nop_in(bytes, n, 0x11);

            for (uint32_t pad = 0; pad < iscsi_padding(n); pad++)
                bytes[end++] = 0xee;
            if (digest) {
                crc32c_end(crc32c_add(CRC32C_INIT, bytes + 48, end - 48), bytes + end);
                end += ISCSI_DIGEST_SIZE;
            }
            feed(r, bytes, end);
            assert_int_equal(r->pdus, 1);
            assert_int_equal(r->bad_digests, 0);
            assert_int_equal(r->length, n);
            for (uint32_t i = 0; i < n; i++)
                assert_int_equal(r->hold[i], 0x11);
            assert_int_equal(r->hold[n], 0);
        }
    }
}

/* [B-02] */
static void the_largest_segment_there_is_arrives(void **state)
{
    struct receiver *r = receiver_init(false, true);
    size_t length = ISCSI_SEGMENT_MAX, end;
    uint8_t *bytes = malloc(ISCSI_BHS_SIZE + length + 1 + ISCSI_DIGEST_SIZE);
    uint8_t *place = malloc(length); /* to the byte, so that a sanitizer sees one too many */

    (void)state;
    end = nop_in(bytes, (uint32_t)length, 0x5a);
    bytes[end++] = 0;
    crc32c_end(crc32c_add(CRC32C_INIT, bytes + 48, end - 48), bytes + end);
    end += ISCSI_DIGEST_SIZE;
    r->place = (struct iovec){place, length};
    feed(r, bytes, end);
    assert_int_equal(r->pdus, 1);
    assert_int_equal(r->bad_digests, 0);
    assert_memory_equal(place, bytes + 48, length);
    free(bytes);
    free(place);
}

/* A segment that nobody wants costs no more reads than the staging buffer is filled. */
static void a_discarded_segment_is_read_by_the_staging_buffer(void **state)
{
    enum { LENGTH = 1 << 20 };
    struct receiver *r = receiver_init(false, false);
    uint8_t *bytes = malloc(ISCSI_BHS_SIZE + LENGTH);
    size_t end = nop_in(bytes, LENGTH, 0x77);

    (void)state;
    r->discard = true;
    feed(r, bytes, end);
    assert_int_equal(r->pdus, 1);
    assert_in_range(r->reads, 1, LENGTH / STAGING + 2);
    free(bytes);
}

/* ---- sending ---- */

struct sender {
    struct iscsi_tx tx;
    struct iscsi_tx_slot slots[4];
    unsigned next, count;
    uint32_t length;
    unsigned switch_at; /* produce() of this PDU switches both digests on */
    struct iovec iov;
    uint8_t data[8];
};

static bool produce(void *user, struct iscsi_tx_pdu *pdu)
{
    struct sender *s = user;
    const struct iscsi_nop_in nop = {.data_segment_length = s->length};

    if (s->next == s->count)
        return false;
    if (s->next == s->switch_at)
        iscsi_tx_set_digests(&s->tx, true, true);
    s->next++;
    iscsi_nop_in_pack(pdu->bhs, &nop);
    s->iov = (struct iovec){s->data, s->length};
    pdu->iov = &s->iov;
    pdu->count = 1;
    pdu->length = s->length;
    return true;
}

static const struct iscsi_tx_ops tx_ops = {produce, NULL};

static size_t sent_bytes(struct sender *s, uint8_t *bytes, size_t size)
{
    size_t n = 0;
    struct iovec iov[8];
    unsigned count;

    iscsi_tx_init(&s->tx, &tx_ops, s, s->slots, 4);
    memset(s->data, 0xff, sizeof(s->data));
    while ((count = iscsi_tx_data(&s->tx, iov, 8)) > 0) {
        size_t part = 0;

        for (unsigned i = 0; i < count; i++) {
            assert_true(n + iov[i].iov_len <= size);
            memcpy(bytes + n, iov[i].iov_base, iov[i].iov_len);
            n += iov[i].iov_len;
            part += iov[i].iov_len;
        }
        iscsi_tx_sent(&s->tx, part);
    }
    return n;
}

/* [B-02] [B-07] */
static void pad_bytes_are_sent_as_zero_and_no_segment_has_no_digest(void **state)
{
    uint8_t bytes[80];

    (void)state;
    for (uint32_t n = 0; n < 8; n++) {
        struct sender s = {.count = 1, .length = n, .switch_at = 0};
        size_t padded = n + iscsi_padding(n);

        assert_int_equal(sent_bytes(&s, bytes, sizeof(bytes)), 52 + padded + (n > 0 ? 4 : 0));
        assert_int_equal(load_be24(bytes + 5), n);
        for (size_t i = n; i < padded; i++)
            assert_int_equal(bytes[52 + i], 0);
    }
}

/* [B-08] as a target does that switches them on with its first PDU behind the Login Response */
static void digests_switched_on_in_produce_hold_for_that_pdu(void **state)
{
    uint8_t bytes[256];
    struct sender s = {.count = 3, .length = 4, .switch_at = 1};
    struct receiver *r = receiver_init(false, false);

    (void)state;
    assert_int_equal(sent_bytes(&s, bytes, sizeof(bytes)), 52 + 2 * 60);
    feed(r, bytes, 52);
    iscsi_rx_set_digests(&r->rx, true, true);
    feed(r, bytes + 52, 2 * 60);
    assert_int_equal(r->pdus, 3);
    assert_int_equal(r->bad_digests, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pad_bytes_may_have_any_value_and_count_in_the_digest),
        cmocka_unit_test(the_largest_segment_there_is_arrives),
        cmocka_unit_test(a_discarded_segment_is_read_by_the_staging_buffer),
        cmocka_unit_test(pad_bytes_are_sent_as_zero_and_no_segment_has_no_digest),
        cmocka_unit_test(digests_switched_on_in_produce_hold_for_that_pdu),
    };

    return cmocka_run_group_tests_name("frame_wire", tests, NULL, NULL);
}
