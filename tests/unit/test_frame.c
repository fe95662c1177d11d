/* SPDX-License-Identifier: BSD-2-Clause */
/* PDUs to bytes and back, under every cut of the stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "iscsi/frame.h"
#include "iscsi/pdu.h"
#include "iscsi/window.h"

enum {
    SEED = 3,
    SLOTS = 5, /* few, so that the ring wraps */
    STAGING = 4096,
    HOLD = 8192,
    LIMIT = 65536,
    PDUS_MAX = 128,
    STREAM_MAX = 1 << 20,
};

/* A list of PDUs that both ends know: ITT i is PDU i, its data bytes come from data_byte(). */
struct script {
    unsigned count;
    uint32_t length[PDUS_MAX];
    uint8_t ahs_words[PDUS_MAX];
};

static uint8_t data_byte(unsigned pdu, uint32_t at)
{
    return (uint8_t)(rng_mix(pdu * 1000003u + at) | 1);
}

/* ---- the sending end ---- */

struct sender {
    struct iscsi_tx tx;
    struct iscsi_tx_slot slots[SLOTS];
    const struct script *script;
    unsigned next, sent;
    uint8_t *data;
    struct iovec iov[3];
};

static bool produce(void *user, struct iscsi_tx_pdu *pdu)
{
    struct sender *s = user;
    struct iscsi_scsi_command command = {.final = true, .itt = s->next};
    uint32_t length;

    if (s->next == s->script->count)
        return false;
    length = s->script->length[s->next];
    command.ahs_words = s->script->ahs_words[s->next];
    command.data_segment_length = length;
    iscsi_scsi_command_pack(pdu->bhs, &command);
    pdu->ahs_length = 4u * command.ahs_words;
    memset(pdu->ahs, 0x3e, pdu->ahs_length);

    /* Memory of its own for each PDU, so that an address or undefined-behaviour sanitizer sees a
     * use after sent(). One odd byte before it: the offset counts. */
    s->data = malloc(length + 1);
    for (uint32_t i = 0; i < length; i++)
        s->data[i + 1] = data_byte(s->next, i);
    pdu->owner = s->data;
    s->iov[0] = (struct iovec){s->data, length + 1};
    pdu->iov = s->iov;
    pdu->count = 1;
    pdu->offset = 1;
    pdu->length = length;
    pdu->copy = length <= ISCSI_TX_COPY_MAX && s->next % 2 == 0;
    if (length > 0 && !pdu->copy) {
        /* The slot keeps the list itself by reference, so it lives beside the data. */
        struct iovec *list = malloc(3 * sizeof(*list) + length + 1);
        uint8_t *bytes = (uint8_t *)(list + 3);

        memcpy(bytes, s->data, length + 1);
        free(s->data);
        list[0] = (struct iovec){bytes, 1 + length / 3};
        list[1] = (struct iovec){bytes, 0};
        list[2] = (struct iovec){bytes + 1 + length / 3, length - length / 3};
        pdu->iov = list;
        pdu->count = 3;
        pdu->owner = list;
    }
    s->next++;
    return true;
}

static void sent(void *user, void *owner)
{
    struct sender *s = user;

    s->sent++;
    free(owner);
}

static const struct iscsi_tx_ops tx_ops = {produce, sent};

static void sender_init(struct sender *s, const struct script *script, bool header, bool data)
{
    memset(s, 0, sizeof(*s));
    s->script = script;
    iscsi_tx_init(&s->tx, &tx_ops, s, s->slots, SLOTS);
    iscsi_tx_set_digests(&s->tx, header, data);
}

/* The whole stream, fetched in pieces of at most `piece` bytes and `max` segments. */
static size_t stream_of(const struct script *script, bool header, bool data, size_t piece,
                        unsigned max, uint8_t *stream)
{
    static struct sender s;
    size_t n = 0;

    sender_init(&s, script, header, data);
    for (;;) {
        struct iovec iov[8];
        unsigned count = iscsi_tx_data(&s.tx, iov, max);
        size_t taken = 0;

        if (count == 0)
            break;
        for (unsigned i = 0; i < count && taken < piece; i++) {
            size_t part = iov[i].iov_len < piece - taken ? iov[i].iov_len : piece - taken;

            assert_true(n + part <= STREAM_MAX);
            memcpy(stream + n, iov[i].iov_base, part);
            n += part;
            taken += part;
        }
        iscsi_tx_sent(&s.tx, taken);
    }
    assert_int_equal(s.next, script->count);
    assert_int_equal(s.sent, script->count);
    assert_int_equal(iscsi_tx_staged(&s.tx), 0);
    return n;
}

/* ---- the receiving end ---- */

struct receiver {
    struct iscsi_rx rx;
    const struct script *script;
    uint8_t staging[STAGING], hold[HOLD];
    uint8_t place[1 + LIMIT + 1]; /* with a guard byte on both sides */
    struct iovec iov[3];
    unsigned headers, pdus, bad_digests, wrong;
    unsigned pause_at; /* header that is paused once; 0: none */
    bool header, data; /* digests to be switched on after PDU 0 */
    bool switch_on;
    size_t direct; /* bytes that were read straight to their place */
};

/* Every third PDU goes to the hold buffer if it fits, every third is discarded. */
static bool wants_place(const struct receiver *r, unsigned i)
{
    return i % 3 == 0 || (i % 3 == 1 && r->script->length[i] > HOLD);
}

static enum iscsi_rx_verdict on_header(void *user, const uint8_t *bhs, const uint8_t *ahs,
                                       uint32_t ahs_length, struct iscsi_place *place)
{
    struct receiver *r = user;
    uint32_t i = load_be32(bhs + 16), length = load_be24(bhs + 5);

    if (r->headers + 1 == r->pause_at) {
        r->pause_at = 0;
        return ISCSI_RX_PAUSE;
    }
    r->headers++;
    if (i >= r->script->count)
        return ISCSI_RX_STOP;
    for (uint32_t k = 0; k < ahs_length; k++)
        r->wrong += ahs[k] != 0x3e;
    if (wants_place(r, i)) {
        memset(r->place, 0, sizeof(r->place));
        r->iov[0] = (struct iovec){r->place + 1, length / 2};
        r->iov[1] = (struct iovec){r->place, 0};
        r->iov[2] = (struct iovec){r->place + 1 + length / 2, length - length / 2};
        place->iov = r->iov;
        place->count = 3;
    } else if (i % 3 == 2) {
        place->discard = true;
    }
    return ISCSI_RX_GO;
}

static enum iscsi_rx_verdict on_pdu(void *user, const struct iscsi_rx_pdu *pdu)
{
    struct receiver *r = user;
    uint32_t i = load_be32(pdu->bhs + 16);
    const uint8_t *data = pdu->data;

    r->bad_digests += !pdu->data_digest_ok;
    if (pdu->data_length > 0 && wants_place(r, i))
        data = r->place + 1;
    if (pdu->data_digest_ok) {
        r->wrong += i != r->pdus || pdu->data_length != r->script->length[i] ||
                    pdu->ahs_length != 4u * r->script->ahs_words[i];
        for (uint32_t k = 0; data && k < pdu->data_length; k++)
            r->wrong += data[k] != data_byte(i, k);
    }
    r->wrong += r->place[0] != 0 || r->place[1 + LIMIT] != 0;
    r->pdus++;
    if (r->switch_on && r->pdus == 1)
        iscsi_rx_set_digests(&r->rx, r->header, r->data);
    return ISCSI_RX_GO;
}

static const struct iscsi_rx_ops rx_ops = {on_header, on_pdu};

static void receiver_init(struct receiver *r, const struct script *script, bool header, bool data)
{
    memset(r, 0, sizeof(*r));
    r->script = script;
    iscsi_rx_init(&r->rx, &rx_ops, r, r->staging, sizeof(r->staging), r->hold, sizeof(r->hold),
                  LIMIT);
    iscsi_rx_set_digests(&r->rx, header, data);
}

/* Feeds at most n bytes as one read would; returns how many. */
static size_t feed(struct receiver *r, const uint8_t *bytes, size_t n)
{
    struct iovec iov[4];
    unsigned count = iscsi_rx_space(&r->rx, iov, 4);
    size_t put = 0;

    for (unsigned i = 0; i < count && put < n; i++) {
        size_t part = iov[i].iov_len < n - put ? iov[i].iov_len : n - put;

        memcpy(iov[i].iov_base, bytes + put, part);
        put += part;
    }
    r->direct += put < r->rx.offered ? put : r->rx.offered;
    if (count > 0)
        iscsi_rx_received(&r->rx, put);
    return put;
}

static void feed_all(struct receiver *r, const uint8_t *bytes, size_t n)
{
    while (n > 0 && r->rx.error == ISCSI_RX_OK) {
        size_t put = feed(r, bytes, n);

        if (put == 0 && r->rx.paused)
            iscsi_rx_resume(&r->rx);
        else
            assert_true(put > 0 || r->rx.error != ISCSI_RX_OK);
        bytes += put;
        n -= put;
    }
    if (r->rx.paused)
        iscsi_rx_resume(&r->rx);
}

static void expect_all(const struct receiver *r)
{
    assert_int_equal(r->rx.error, ISCSI_RX_OK);
    assert_int_equal(r->pdus, r->script->count);
    assert_int_equal(r->wrong, 0);
    assert_int_equal(r->bad_digests, 0);
}

/* ---- tests ---- */

static const struct script small = {.count = 12,
                                    .length = {0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 40, 9},
                                    .ahs_words = {0, 0, 1, 0, 0, 0, 64, 0, 2, 0, 0, 1}};

static const struct script large = {
    .count = 14,
    .length = {0, 8192, 4096, 20000, 65536, 65535, 65533, 100, 65536, 3, 512, 511, 30000, 513},
    .ahs_words = {[3] = 3, [8] = 1}};

static uint8_t stream[STREAM_MAX];
static struct receiver receiver;

/* [B-02] [B-07] [B-09] [A18] */
static void a_stream_survives_every_single_cut(void **state)
{
    (void)state;
    for (int digests = 0; digests < 4; digests++) {
        size_t n = stream_of(&small, digests & 1, digests & 2, SIZE_MAX, 8, stream);

        for (size_t cut = 0; cut <= n; cut++) {
            receiver_init(&receiver, &small, digests & 1, digests & 2);
            feed_all(&receiver, stream, cut);
            feed_all(&receiver, stream + cut, n - cut);
            expect_all(&receiver);
        }
    }
}

/* [B-09] */
static void a_stream_survives_chunks_of_any_size(void **state)
{
    struct rng rng = {SEED};

    (void)state;
    printf("# seed %d\n", SEED);
    for (int digests = 0; digests < 4; digests++) {
        size_t n = stream_of(&large, digests & 1, digests & 2, SIZE_MAX, 8, stream);

        for (size_t chunk = 1; chunk < 100000; chunk = chunk * 2 + chunk / 3) {
            receiver_init(&receiver, &large, digests & 1, digests & 2);
            for (size_t at = 0; at < n; at += chunk)
                feed_all(&receiver, stream + at, n - at < chunk ? n - at : chunk);
            expect_all(&receiver);
        }
        for (int round = 0; round < 20; round++) {
            size_t at = 0;

            receiver_init(&receiver, &large, digests & 1, digests & 2);
            while (at < n)
                at += feed(&receiver, stream + at, rng_below(&rng, n - at) + 1);
            expect_all(&receiver);
        }
    }
}

static void what_is_sent_does_not_depend_on_how_it_is_fetched(void **state)
{
    static uint8_t other[STREAM_MAX];

    (void)state;
    for (int digests = 0; digests < 4; digests++) {
        size_t n = stream_of(&large, digests & 1, digests & 2, SIZE_MAX, 8, stream);

        for (unsigned max = 1; max <= 8; max++)
            for (size_t piece = 1000; piece < 100000; piece *= 7) {
                assert_int_equal(stream_of(&large, digests & 1, digests & 2, piece, max, other), n);
                assert_memory_equal(stream, other, n);
            }
        n = stream_of(&small, digests & 1, digests & 2, SIZE_MAX, 8, stream);
        assert_int_equal(stream_of(&small, digests & 1, digests & 2, 1, 1, other), n);
        assert_memory_equal(stream, other, n);
    }
}

/* [B-09] */
static void a_hundred_pdus_come_in_one_read(void **state)
{
    struct script many = {.count = 100};
    size_t n;

    (void)state;
    for (unsigned i = 0; i < many.count; i++)
        many.length[i] = i % 2 ? 0 : 8;
    n = stream_of(&many, false, false, SIZE_MAX, 8, stream);
    receiver_init(&receiver, &many, false, false);
    iscsi_rx_init(&receiver.rx, &rx_ops, &receiver, stream + STREAM_MAX / 2, 2 * n, receiver.hold,
                  HOLD, LIMIT);
    assert_int_equal(feed(&receiver, stream, n), n);
    expect_all(&receiver);
}

/* [B-07] [B13] */
static void every_flipped_bit_is_detected(void **state)
{
    const struct script one = {.count = 1, .length = {21}, .ahs_words = {2}};
    size_t n = stream_of(&one, true, true, SIZE_MAX, 8, stream);

    (void)state;
    assert_int_equal(n, 48 + 8 + 4 + 24 + 4);
    for (size_t bit = 0; bit < n * 8; bit++) {
        stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
        receiver_init(&receiver, &one, true, true);
        memset(stream + n, 0, STREAM_MAX / 2);
        feed_all(&receiver, stream, n + STREAM_MAX / 4); /* a longer AHS wants more bytes */
        if (bit / 8 < 60)
            assert_int_equal(receiver.rx.error, ISCSI_RX_HEADER_DIGEST);
        else
            assert_int_equal(receiver.bad_digests, 1);
        assert_int_equal(receiver.wrong, 0);
        stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* [B-03] [B12] [T-ROB-01] */
static void segments_above_the_limit_are_not_stored(void **state)
{
    struct script one = {.count = 1, .length = {LIMIT}};
    size_t n = stream_of(&one, false, false, SIZE_MAX, 8, stream);

    (void)state;
    receiver_init(&receiver, &one, false, false);
    feed_all(&receiver, stream, n);
    expect_all(&receiver);

    one.length[0] = LIMIT + 1;
    n = stream_of(&one, false, false, SIZE_MAX, 8, stream);
    receiver_init(&receiver, &one, false, false);
    feed_all(&receiver, stream, n);
    assert_int_equal(receiver.rx.error, ISCSI_RX_TOO_LONG);
    assert_int_equal(receiver.headers, 0);
    assert_int_equal(receiver.pdus, 0);
}

static void a_place_that_is_too_small_ends_the_stream(void **state)
{
    struct script two = {.count = 2, .length = {0, HOLD}};
    size_t n = stream_of(&two, false, false, SIZE_MAX, 8, stream);

    (void)state;
    receiver_init(&receiver, &two, false, false);
    iscsi_rx_init(&receiver.rx, &rx_ops, &receiver, receiver.staging, STAGING, receiver.hold,
                  HOLD - 1, LIMIT);
    feed_all(&receiver, stream, n);
    assert_int_equal(receiver.rx.error, ISCSI_RX_NO_PLACE);
    assert_int_equal(receiver.pdus, 1);
}

static void a_paused_stream_goes_on_where_it_stopped(void **state)
{
    size_t n = stream_of(&large, true, true, SIZE_MAX, 8, stream);

    (void)state;
    for (unsigned at = 1; at <= large.count; at++) {
        struct iovec iov[4];

        receiver_init(&receiver, &large, true, true);
        receiver.pause_at = at;
        feed_all(&receiver, stream, n);
        assert_int_equal(receiver.pause_at, 0);
        expect_all(&receiver);
        assert_true(iscsi_rx_space(&receiver.rx, iov, 4) > 0);
    }
}

/* Received payload is copied once: in a run of long segments all bytes go to their place. */
static void long_segments_are_read_straight_to_their_place(void **state)
{
    struct script run = {.count = 6, .length = {65536, 65536, 65536, 65536, 65536, 65536}};
    size_t n, payload = 0;

    (void)state;
    for (int digests = 0; digests < 4; digests++) {
        n = stream_of(&run, digests & 1, digests & 2, SIZE_MAX, 8, stream);
        receiver_init(&receiver, &run, digests & 1, digests & 2);
        feed_all(&receiver, stream, n);
        expect_all(&receiver);
        /* PDUs 0 and 3 have a place; 1 and 4 too, as they do not fit the hold buffer. */
        payload = 4 * 65536;
        assert_in_range(receiver.direct, payload - STAGING, payload);
    }
}

/* [B-08] */
static void digests_begin_with_the_next_pdu(void **state)
{
    const struct script first = {.count = 1, .length = {7}};
    size_t n, m;
    struct script both = {.count = 2, .length = {7, 9}};
    static struct sender s;

    (void)state;
    n = stream_of(&first, false, false, SIZE_MAX, 8, stream);
    sender_init(&s, &both, false, false);
    m = 0;
    for (int i = 0; i < 2; i++) {
        struct iovec iov[8];
        unsigned count;

        s.script = i == 0 ? &first : &both;
        count = iscsi_tx_data(&s.tx, iov, 8);
        for (unsigned k = 0; k < count; k++) {
            memcpy(stream + m, iov[k].iov_base, iov[k].iov_len);
            m += iov[k].iov_len;
        }
        iscsi_tx_set_digests(&s.tx, true, true);
        iscsi_tx_sent(&s.tx, i == 0 ? m : m - n);
    }
    assert_int_equal(m, n + 48 + 4 + 12 + 4);
    receiver_init(&receiver, &both, false, false);
    receiver.switch_on = receiver.header = receiver.data = true;
    feed_all(&receiver, stream, m);
    expect_all(&receiver);
}

static void dropping_a_stream_gives_every_owner_back(void **state)
{
    static struct sender s;
    struct iovec iov[8];

    (void)state;
    sender_init(&s, &large, false, false);
    assert_true(iscsi_tx_data(&s.tx, iov, 8) > 0);
    assert_true(iscsi_tx_staged(&s.tx) > 1);
    iscsi_tx_drop(&s.tx);
    assert_int_equal(iscsi_tx_staged(&s.tx), 0);
    assert_int_equal(s.sent, s.next);
}

static void a_discarded_pdu_leaves_its_place_alone(void **state)
{
    const struct script one = {.count = 1, .length = {4096}};
    size_t n = stream_of(&one, false, true, SIZE_MAX, 8, stream);

    (void)state;
    receiver_init(&receiver, &one, false, true);
    feed_all(&receiver, stream, 48 + 1000);
    iscsi_rx_discard(&receiver.rx);
    memset(receiver.place, 0, sizeof(receiver.place));
    feed_all(&receiver, stream + 48 + 1000, n - 48 - 1000);
    assert_int_equal(receiver.pdus, 1);
    assert_int_equal(receiver.bad_digests, 0);
    for (size_t i = 0; i < sizeof(receiver.place); i++)
        assert_int_equal(receiver.place[i], 0);
}

/* [B-10] [I-NUM-05] */
static void the_window_of_the_initiator_only_goes_forward(void **state)
{
    struct iscsi_window w;

    (void)state;
    iscsi_window_init(&w, 0xfffffffe, 0xffffffff);
    assert_true(iscsi_window_may_send(&w, 0xffffffff));
    assert_false(iscsi_window_may_send(&w, 0));
    assert_true(iscsi_window_update(&w, 0xffffffff, 5)); /* over the wrap */
    assert_true(iscsi_window_may_send(&w, 5));
    assert_false(iscsi_window_may_send(&w, 6));
    assert_false(iscsi_window_update(&w, 0xfffffff0, 3)); /* older */
    assert_int_equal(w.exp_cmd_sn, 0xffffffff);
    assert_int_equal(w.max_cmd_sn, 5);
    assert_false(iscsi_window_update(&w, 10, 8)); /* MaxCmdSN < ExpCmdSN - 1: both ignored */
    assert_int_equal(w.exp_cmd_sn, 0xffffffff);
    assert_false(iscsi_window_update(&w, 6, 5)); /* closed: legal */
    assert_int_equal(w.exp_cmd_sn, 6);
    assert_false(iscsi_window_may_send(&w, 6));
}

/* [B-10] [T-NUM-01] [T-NUM-02] */
static void the_window_of_the_target_judges_by_serial_numbers(void **state)
{
    struct iscsi_tgt_window w;

    (void)state;
    iscsi_tgt_window_init(&w, 0xfffffffe, 4);
    assert_int_equal(w.max_cmd_sn, 1);
    assert_int_equal(iscsi_tgt_window_judge(&w, 0xfffffffe), ISCSI_CMD_SN_NEXT);
    assert_int_equal(iscsi_tgt_window_judge(&w, 1), ISCSI_CMD_SN_AHEAD);
    assert_int_equal(iscsi_tgt_window_judge(&w, 2), ISCSI_CMD_SN_OUTSIDE);
    assert_int_equal(iscsi_tgt_window_judge(&w, 0xfffffffd), ISCSI_CMD_SN_OUTSIDE);
    w.exp_cmd_sn = 0;
    assert_false(iscsi_tgt_window_open(&w, 1)); /* less room than told: it does not go back */
    assert_int_equal(w.max_cmd_sn, 1);
    assert_true(iscsi_tgt_window_open(&w, 4));
    assert_int_equal(w.max_cmd_sn, 3);
    w.exp_cmd_sn = 4;
    assert_false(iscsi_tgt_window_open(&w, 0)); /* closed */
    assert_int_equal(iscsi_tgt_window_judge(&w, 4), ISCSI_CMD_SN_OUTSIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_survives_every_single_cut),
        cmocka_unit_test(a_stream_survives_chunks_of_any_size),
        cmocka_unit_test(what_is_sent_does_not_depend_on_how_it_is_fetched),
        cmocka_unit_test(a_hundred_pdus_come_in_one_read),
        cmocka_unit_test(every_flipped_bit_is_detected),
        cmocka_unit_test(segments_above_the_limit_are_not_stored),
        cmocka_unit_test(a_place_that_is_too_small_ends_the_stream),
        cmocka_unit_test(a_paused_stream_goes_on_where_it_stopped),
        cmocka_unit_test(long_segments_are_read_straight_to_their_place),
        cmocka_unit_test(digests_begin_with_the_next_pdu),
        cmocka_unit_test(dropping_a_stream_gives_every_owner_back),
        cmocka_unit_test(a_discarded_pdu_leaves_its_place_alone),
        cmocka_unit_test(the_window_of_the_initiator_only_goes_forward),
        cmocka_unit_test(the_window_of_the_target_judges_by_serial_numbers),
    };

    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
