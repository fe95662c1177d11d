/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking at a logical unit: the order of questions, odd answers, identity. */
#include "link_rig.h"

struct look {
    struct lun_probe probe;
    bool done;
    struct lp_error why;
};

static void on_probed(struct lun_probe *probe, const struct lp_error *why)
{
    struct look *l = probe->user;

    l->done = true;
    l->why = why ? *why : (struct lp_error){0};
}

static bool is_done(struct rig *g, void *arg)
{
    (void)g;
    return ((struct look *)arg)->done;
}

static void look(struct rig *g, struct look *l, bool brief, bool any_type)
{
    static const uint8_t lun[8];

    memset(l, 0, sizeof(*l));
    l->probe.brief = brief;
    l->probe.any_type = any_type;
    l->probe.done = on_probed;
    l->probe.user = l;
    lun_probe_start(&l->probe, g->link, lun);
    rig_until(g, is_done, l);
}

static struct rig *up(void **state)
{
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    far_logged(&g->far, "");
    return g;
}

/* [C-01] */
static void questions_come_in_order_and_only_listed_pages_are_asked_for(void **state)
{
    struct rig *g = up(state);
    static struct look l;

    look(g, &l, false, false);
    assert_int_equal(l.why.domain, LP_ERROR_NONE);
    assert_true(far_logged(&g->far, "12 12:00 12:80 12:83 12:b0 12:b1 12:b2 25 9e 1a"));
    g->far.page_count = 1;
    look(g, &l, false, false);
    assert_true(far_logged(&g->far, "12 12:00 25 9e 1a"));
    assert_string_equal(l.probe.info.serial, "");
    assert_int_equal(l.probe.info.id_length, 0);
    look(g, &l, true, false);
    assert_true(far_logged(&g->far, "12 12:00 25 9e 1a"));
}

static void note_lun(void *user, const uint8_t lun[8])
{
    unsigned *seen = user;

    seen[seen[0]++ + 1] = lun[1];
}

/* [C-01] */
static void luns_are_listed_without_lun_0(void **state)
{
    struct rig *g = up(state);
    struct lp_error err = {0};
    unsigned seen[8] = {0};

    if (lun_list(g->link, note_lun, seen, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(seen[0], 2);
    assert_int_equal(seen[1], 5);
    assert_int_equal(seen[2], 1);
}

static void what_is_no_disk_is_named(void **state)
{
    struct rig *g = up(state);
    static struct look l;

    g->far.type = 0x0c;
    look(g, &l, false, false);
    assert_int_equal(l.why.code, ENXIO);
    assert_non_null(strstr(l.why.msg, "storage array controller"));
    look(g, &l, false, true);
    assert_int_equal(l.why.domain, LP_ERROR_NONE);
    assert_int_equal(l.probe.info.inquiry.device_type, 0x0c);
    g->far.type = 0;
    g->far.missing = true;
    look(g, &l, false, true);
    assert_int_equal(l.why.code, ENXIO);
    assert_non_null(strstr(l.why.msg, "no such LUN"));
}

/* [C-02] */
static void odd_sizes_are_refused_with_a_sentence(void **state)
{
    static const struct {
        uint32_t block_size;
        uint64_t blocks;
        bool good;
    } rows[] = {
        {512, 1, true},           {4096, 100, true},      {512, 0x180000000, true},
        {65536, 9, true},         {0, 100, false},        {1, 100, false},
        {520, 100, false},        {0x80000000, 1, false}, {131072, 1, false},
        {512, UINT64_MAX, false}, {512, 0, false},        {4096, UINT64_MAX / 4096, false},
    };
    struct rig *g = up(state);
    static struct look l;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        g->far.block_size = rows[i].block_size;
        g->far.blocks = rows[i].blocks;
        look(g, &l, i & 1, false);
        if ((l.why.domain == LP_ERROR_NONE) != rows[i].good)
            fail_msg("blocks of %u: \"%s\"", rows[i].block_size, l.why.msg);
        if (rows[i].good)
            assert_int_equal(l.probe.info.size, rows[i].block_size * rows[i].blocks);
        else
            assert_true(l.why.msg[0] != '\0');
    }
}

/* Every answer cut short, or full of the same byte. */
struct odd {
    uint8_t bytes[255], opcode;
    uint32_t n;
};

static bool answers_oddly(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                          struct far_reply *reply)
{
    struct odd *odd = far->hook_user;

    (void)data;
    if (!far_is(c, odd->opcode))
        return false;
    reply->data = odd->bytes;
    reply->n = odd->n;
    return true;
}

/* [C-01] [C-02] */
static void hostile_answers_end_in_a_sentence_or_a_disk(void **state)
{
    static const uint8_t opcodes[] = {0x12, 0x1a, 0x25, 0x9e};
    static const uint8_t fills[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    struct rig *g = up(state);
    static struct look l;
    static struct odd odd;

    g->far.hook = answers_oddly;
    g->far.hook_user = &odd;
    for (unsigned o = 0; o < 4; o++)
        for (unsigned f = 0; f < 5; f++)
            for (odd.n = 0; odd.n < 255; odd.n += odd.n < 40 ? 1 : 43) {
                odd.opcode = opcodes[o];
                memset(odd.bytes, fills[f], sizeof(odd.bytes));
                look(g, &l, f & 1, false);
                if (l.why.domain == LP_ERROR_NONE)
                    assert_true(l.probe.info.size > 0);
                else
                    assert_true(l.why.msg[0] != '\0');
            }
}

struct broken {
    uint8_t page;
    uint8_t key;
    uint16_t asc;
};

static bool breaks_a_page(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                          struct far_reply *reply)
{
    const struct broken *b = far->hook_user;

    (void)data;
    if (!far_is(c, 0x12) || !(c->cdb[1] & 1) || c->cdb[2] != b->page)
        return false;
    far_sense(reply, b->key, b->asc);
    return true;
}

/* When identities are compared, a failure is no other identity. */
/* [C-13] */
static void a_page_that_fails_is_not_another_disk(void **state)
{
    static const uint8_t pages[] = {0x00, 0x80, 0x83};
    struct rig *g = up(state);
    static struct look before, now;
    static struct broken b = {.key = 0x4, .asc = 0x4400};

    look(g, &before, false, false);
    g->far.hook = breaks_a_page;
    g->far.hook_user = &b;
    for (unsigned i = 0; i < 3; i++) {
        b.page = pages[i];
        look(g, &now, true, false);
        assert_int_equal(now.why.code, EIO);
        look(g, &now, false, false); /* at the first look it may be missing */
        assert_int_equal(now.why.domain, LP_ERROR_NONE);
    }
}

/* [C-13] */
static void what_tells_two_disks_apart(void **state)
{
    struct rig *g = up(state);
    static struct look before, now;
    struct lp_error err = {0};

    look(g, &before, false, false);
    look(g, &now, true, false);
    assert_int_equal(lun_compare(&before.probe.info, &now.probe.info, &err), 0);
    assert_false(lun_update(&before.probe.info, &now.probe.info, true));

    g->far.blocks *= 2; /* it may grow */
    look(g, &now, true, false);
    assert_int_equal(lun_compare(&before.probe.info, &now.probe.info, &err), 0);
    g->far.blocks /= 4;
    look(g, &now, true, false);
    assert_int_equal(lun_compare(&before.probe.info, &now.probe.info, &err), -1);
    assert_int_equal(err.code, ESTALE);
    assert_non_null(strstr(err.msg, "size"));
    g->far.blocks *= 2;

    g->far.serial[0] = 'T';
    look(g, &now, true, false);
    assert_int_equal(lun_compare(&before.probe.info, &now.probe.info, &err), -1);
    assert_non_null(strstr(err.msg, "serial"));
    g->far.serial[0] = 'S';

    g->far.naa[0] ^= 1;
    look(g, &now, true, false);
    assert_int_equal(lun_compare(&before.probe.info, &now.probe.info, &err), -1);
    assert_non_null(strstr(err.msg, "identity"));
    g->far.naa[0] ^= 1;

    g->far.wp = true;
    look(g, &now, true, false);
    assert_int_equal(lun_compare(&before.probe.info, &now.probe.info, &err), 0);
    assert_true(lun_update(&before.probe.info, &now.probe.info, true));
    assert_true(before.probe.info.write_protected);
    assert_true(before.probe.info.has_limits); /* kept, as a brief look does not ask */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(questions_come_in_order_and_only_listed_pages_are_asked_for),
        LINK_TEST(luns_are_listed_without_lun_0),
        LINK_TEST(what_is_no_disk_is_named),
        LINK_TEST(odd_sizes_are_refused_with_a_sentence),
        LINK_TEST(hostile_answers_end_in_a_sentence_or_a_disk),
        LINK_TEST(a_page_that_fails_is_not_another_disk),
        LINK_TEST(what_tells_two_disks_apart),
    };

    return cmocka_run_group_tests_name("logical units seen through a link", tests, NULL, NULL);
}
