/* SPDX-License-Identifier: BSD-2-Clause */
/* The iscsi: disk against a scripted target: limits, flush, discard, changes, several sessions. */
#include "link_rig.h"

#include <lunpath/disk.h>
#include <lunpath/fit.h>

#include "base/bytes.h"
#include "base/clock.h"

struct rigged {
    struct far far;
    struct lp_iscsi_opts iscsi;
    struct lp_disk_opts opts;
    struct lp_disk *disk;
    struct lp_queue *q;
    char log[4096];
    unsigned changes;
    struct lp_limits limits;
    uint8_t bytes[65536];
};

static void on_log(void *user, const char *sentence)
{
    struct rigged *g = user;
    size_t n = strlen(g->log);

    snprintf(g->log + n, sizeof(g->log) - n, "%s\n", sentence);
}

static void on_changed(void *user, const struct lp_limits *limits)
{
    struct rigged *g = user;

    g->changes++;
    g->limits = *limits;
}

static int set_up(void **state)
{
    struct rigged *g = calloc(1, sizeof(*g));

    if (!g)
        return -1;
    far_thread(&g->far);
    g->iscsi = (struct lp_iscsi_opts){
        .initiator_name = FAR_INITIATOR,
        .isid_seed = 5,
        .max_transfer = 32768,
        .hold_s = 20,
        .log = on_log,
        .log_user = g,
        .changed = on_changed,
        .changed_user = g,
    };
    g->opts = LP_DISK_OPTS_DEFAULT;
    g->opts.iscsi = &g->iscsi;
    *state = g;
    return 0;
}

static void shut(struct rigged *g)
{
    lp_queue_close(g->q);
    if (g->disk)
        lp_disk_close(g->disk);
    g->q = NULL;
    g->disk = NULL;
}

static int tear_down(void **state)
{
    struct rigged *g = *state;

    shut(g);
    far_close(&g->far);
    free(g);
    return 0;
}

static void open_disk(struct rigged *g)
{
    struct lp_error err = {0};
    char url[128];

    snprintf(url, sizeof(url), "iscsi://127.0.0.1:%u/" FAR_TARGET "/0", g->far.port);
    g->disk = lp_disk_open(url, &g->opts, &err);
    if (!g->disk)
        fail_msg("%s", err.msg);
    g->q = lp_disk_queue(g->disk, 32, &err);
    if (!g->q)
        fail_msg("%s", err.msg);
    far_lock(&g->far);
    g->far.log_length = 0;
    g->far.log[0] = '\0';
    far_unlock(&g->far);
}

static int run_on(struct rigged *g, struct lp_queue *q, enum lp_op op, uint64_t block,
                  uint64_t blocks, uint32_t flags)
{
    struct iovec iov = {g->bytes, blocks * 512};
    struct lp_request req = {
        .op = op, .flags = flags, .offset = block * 512, .length = blocks * 512};

    if (op == LP_READ || op == LP_WRITE) {
        req.iov = &iov;
        req.iovcnt = 1;
    }
    return lp_queue_run(q, &req);
}

static int run(struct rigged *g, enum lp_op op, uint64_t block, uint64_t blocks, uint32_t flags)
{
    return run_on(g, g->q, op, block, blocks, flags);
}

static bool logged(struct rigged *g, const char *text)
{
    bool same;

    far_lock(&g->far);
    same = far_logged(&g->far, text);
    far_unlock(&g->far);
    return same;
}

/* [C-03] */
static void limits_are_the_targets_capped_by_ours(void **state)
{
    struct rigged *g = *state;

    g->far.max_transfer = 16; /* blocks */
    g->far.lbpme = g->far.lbpu = true;
    open_disk(g);
    assert_int_equal(lp_disk_limits(g->disk)->max_transfer, 16 * 512);
    assert_int_equal(lp_disk_limits(g->disk)->size, FAR_RAM);
    assert_true(lp_disk_limits(g->disk)->discard);
    assert_int_equal(lp_disk_limits(g->disk)->fua, LP_FUA_NATIVE);
    assert_int_equal(run(g, LP_WRITE, 0, 17, 0), -EINVAL);
    assert_int_equal(run(g, LP_WRITE, 0, 16, 0), 0);
    shut(g);

    g->far.page_count = 1;
    g->far.mode_pages = false;
    open_disk(g);
    assert_int_equal(lp_disk_limits(g->disk)->max_transfer, 32768);
    assert_false(lp_disk_limits(g->disk)->discard);
    assert_int_equal(lp_disk_limits(g->disk)->fua, LP_FUA_EMULATED);
    assert_int_equal(run(g, LP_DISCARD, 0, 8, 0), -EOPNOTSUPP);
    shut(g);

    g->far.mode_pages = g->far.wp = true;
    open_disk(g);
    assert_true(lp_disk_limits(g->disk)->read_only);
    assert_int_equal(run(g, LP_WRITE, 0, 1, 0), -EROFS);
}

/* [C-10] */
static void flush_and_fua_become_what_the_cache_asks_for(void **state)
{
    static const struct {
        bool wce, dpofua;
        const char *flush, *fua;
    } rows[] = {
        {true, true, "35", "2a+fua"},
        {true, false, "35", "2a 35"},
        {false, true, "", "2a+fua"},
        {false, false, "", "2a"},
    };
    struct rigged *g = *state;

    for (unsigned i = 0; i < 4; i++) {
        g->far.wce = rows[i].wce;
        g->far.dpofua = rows[i].dpofua;
        open_disk(g);
        assert_int_equal(run(g, LP_FLUSH, 0, 0, 0), 0);
        assert_true(logged(g, rows[i].flush));
        assert_int_equal(run(g, LP_WRITE, 3, 1, LP_FUA), 0);
        assert_true(logged(g, rows[i].fua));
        shut(g);
    }
}

static bool flush_fails(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                        struct far_reply *reply)
{
    (void)data;
    if (!far_is(c, 0x35) || far->counter == 0)
        return false;
    far->counter--;
    far_sense(reply, 3, 0x0c02);
    return true;
}

static bool flush_unknown(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                          struct far_reply *reply)
{
    (void)far, (void)data;
    if (far_is(c, 0x35))
        far_sense(reply, 5, 0x2000);
    return far_is(c, 0x35);
}

/* [C-10] */
static void a_flush_error_is_told_and_not_hidden_by_the_next(void **state)
{
    struct rigged *g = *state;

    open_disk(g);
    far_lock(&g->far);
    g->far.hook = flush_fails;
    g->far.counter = 2;
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_FLUSH, 0, 0, 0), -EIO);
    assert_int_equal(run(g, LP_FLUSH, 0, 0, 0), -EIO);
    assert_int_equal(run(g, LP_FLUSH, 0, 0, 0), 0);
    /* Who says that it has a cache must be able to empty it. */
    far_lock(&g->far);
    g->far.hook = flush_unknown;
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_FLUSH, 0, 0, 0), -EOPNOTSUPP);
    shut(g);
    g->far.mode_pages = false;
    open_disk(g);
    assert_int_equal(run(g, LP_FLUSH, 0, 0, 0), 0);
}

static bool takes_half(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                       struct far_reply *reply)
{
    (void)far, (void)data;
    reply->missing = 512;
    return far_is(c, 0x2a);
}

static void a_write_that_is_taken_in_part_is_an_error(void **state)
{
    struct rigged *g = *state;

    open_disk(g);
    far_lock(&g->far);
    g->far.hook = takes_half;
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_WRITE, 0, 4, 0), -EIO);
    assert_int_equal(run(g, LP_WRITE, 0, 4, LP_FUA), -EIO);
}

/* [C-11] */
static void discard_keeps_to_granularity_and_limits(void **state)
{
    static const struct {
        uint32_t granularity, alignment, most;
        uint64_t block, blocks;
        unsigned commands;
        uint64_t first, last; /* zeroed blocks: first..last-1 */
    } rows[] = {
        {0, 0, 0, 3, 9, 1, 3, 12},  {8, 0, 0, 3, 20, 1, 8, 16},  {8, 4, 0, 3, 20, 1, 4, 20},
        {8, 0, 0, 1, 6, 0, 0, 0},   {8, 0, 20, 0, 64, 4, 0, 64}, /* in steps of 16 */
        {0, 0, 5, 0, 12, 3, 0, 12},
    };
    struct rigged *g = *state;

    g->far.lbpme = true;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows) * 2; i++) {
        unsigned row = i / 2, commands = 0;

        g->far.lbpu = i % 2 == 0;
        g->far.lbpws = !g->far.lbpu;
        g->far.granularity = rows[row].granularity;
        g->far.alignment = rows[row].alignment;
        g->far.max_unmap = rows[row].most;
        g->far.max_write_same = rows[row].most - rows[row].most % 8;
        if (rows[row].most == 5)
            g->far.max_write_same = 5;
        memset(g->far.ram, 0xaa, 100 * 512);
        open_disk(g);
        assert_int_equal(run(g, LP_DISCARD, rows[row].block, rows[row].blocks, 0), 0);
        far_lock(&g->far);
        for (const char *at = g->far.log; (at = strstr(at, g->far.lbpu ? "42" : "93")); at++)
            commands++;
        assert_int_equal(commands, rows[row].commands);
        for (unsigned b = 0; b < 100; b++)
            assert_int_equal(g->far.ram[b * 512],
                             b >= rows[row].first && b < rows[row].last ? 0 : 0xaa);
        far_unlock(&g->far);
        shut(g);
    }
}

static bool no_write_same(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                          struct far_reply *reply)
{
    (void)far, (void)data;
    if (far_is(c, 0x93))
        far_sense(reply, 5, 0x2000);
    return far_is(c, 0x93);
}

struct batch {
    struct lp_request req[8];
    struct iovec iov[8];
    unsigned done;
};

static void on_complete(struct lp_request *req)
{
    ((struct batch *)req->user)->done++;
}

static void run_batch(struct rigged *g, struct batch *b, enum lp_op op)
{
    uint64_t limit = clock_now_ns() + 30 * SECOND;

    b->done = 0;
    for (unsigned i = 0; i < 8; i++) {
        b->iov[i] = (struct iovec){g->bytes, 512};
        b->req[i] = (struct lp_request){
            .op = op, .offset = i * 4096, .length = 512, .complete = on_complete, .user = b};
        if (op == LP_WRITE) {
            b->req[i].iov = &b->iov[i];
            b->req[i].iovcnt = 1;
        }
        assert_int_equal(lp_queue_submit(g->q, &b->req[i]), 0);
    }
    while (b->done < 8 && clock_now_ns() < limit)
        lp_queue_poll(g->q, SECOND);
    assert_int_equal(b->done, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(b->req[i].status, 0);
}

/* [C-11] */
static void zeros_are_written_where_write_same_is_unknown(void **state)
{
    struct rigged *g = *state;
    static struct batch b;

    memset(g->far.ram, 0xaa, FAR_RAM);
    open_disk(g);
    assert_int_equal(run(g, LP_WRITE_ZEROES, 5, 3, 0), 0);
    assert_true(logged(g, "93"));
    far_lock(&g->far);
    assert_int_equal(g->far.ram[5 * 512], 0);
    assert_int_equal(g->far.ram[8 * 512], 0xaa);
    g->far.hook = no_write_same;
    far_unlock(&g->far);
    run_batch(g, &b, LP_WRITE_ZEROES); /* all of them find out at the same time */
    assert_int_equal(run(g, LP_WRITE_ZEROES, 100, 200, LP_FUA), 0);
    far_lock(&g->far);
    assert_non_null(strstr(g->far.log, "8a"));
    g->far.log_length = 0;
    for (unsigned i = 0; i < 512 * 200; i++)
        assert_int_equal(g->far.ram[100 * 512 + i], 0);
    assert_int_equal(g->far.ram[300 * 512], 0xaa);
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_WRITE_ZEROES, 0, 1, 0), 0);
    assert_true(logged(g, "8a")); /* asked once only */
}

/* [C-12] */
static void requests_are_split_and_never_cross_the_end(void **state)
{
    static const uint64_t sizes[] = {1, 15, 16, 17, 64, 128};
    struct rigged *g = *state;
    struct lp_error err = {0};
    struct lp_queue *fit;

    g->far.max_transfer = 16;
    open_disk(g);
    assert_int_equal(run(g, LP_READ, FAR_RAM / 512 - 1, 2, 0), -EINVAL);
    assert_true(logged(g, ""));
    fit = lp_fit_open(g->q, &g->q->limits, &(struct lp_fit_opts){.depth = 8}, &err);
    if (!fit)
        fail_msg("%s", err.msg);
    g->q = NULL;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        memset(g->bytes, (int)(i + 1), sizeof(g->bytes));
        assert_int_equal(run_on(g, fit, LP_WRITE, 8, sizes[i], 0), 0);
        memset(g->bytes, 0, sizeof(g->bytes));
        assert_int_equal(run_on(g, fit, LP_READ, 8, sizes[i], 0), 0);
        for (unsigned k = 0; k < sizes[i] * 512; k++)
            assert_int_equal(g->bytes[k], i + 1);
    }
    lp_queue_close(fit);
}

static bool attention_once(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                           struct far_reply *reply)
{
    (void)data;
    if (far->counter == 0 || !far_is(c, 0x28))
        return false;
    far_sense(reply, 6, (uint16_t)far->counter);
    far->counter = 0;
    return true;
}

static void poll_until(struct rigged *g, unsigned changes)
{
    uint64_t limit = clock_now_ns() + 20 * SECOND;

    while (g->changes < changes && clock_now_ns() < limit)
        lp_queue_poll(g->q, 0);
    assert_int_equal(g->changes, changes);
}

/* [C-04] */
static void a_change_that_the_target_tells_of_is_taken_over(void **state)
{
    struct rigged *g = *state;

    g->far.blocks = 1024;
    open_disk(g);
    assert_int_equal(run(g, LP_WRITE, 1500, 1, 0), -EINVAL);
    far_lock(&g->far);
    g->far.hook = attention_once;
    g->far.blocks = 2048;
    g->far.counter = 0x2a09;
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_READ, 0, 1, 0), 0);
    poll_until(g, 1);
    assert_int_equal(g->limits.size, 2048 * 512);
    assert_int_equal(run(g, LP_WRITE, 1500, 1, 0), 0);

    far_lock(&g->far);
    g->far.wp = true;
    g->far.counter = 0x2a01;
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_READ, 0, 1, 0), 0);
    poll_until(g, 2);
    assert_true(g->limits.read_only);
    assert_int_equal(run(g, LP_WRITE, 0, 1, 0), -EROFS);

    far_lock(&g->far);
    g->far.wp = false;
    g->far.blocks = 512;
    g->far.counter = 0x2a09;
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_READ, 0, 1, 0), 0);
    poll_until(g, 3);
    assert_int_equal(g->limits.size, 512 * 512);
    assert_int_equal(run(g, LP_READ, 700, 1, 0), -EINVAL);

    far_lock(&g->far);
    g->far.counter = 0x3f0e;
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_READ, 0, 1, 0), 0);
    assert_non_null(strstr(g->log, "list of LUNs has changed"));
}

/* [C-13] */
static void another_disk_behind_the_lun_stops_all_io(void **state)
{
    struct rigged *g = *state;

    open_disk(g);
    assert_int_equal(run(g, LP_WRITE, 0, 1, 0), 0);
    far_lock(&g->far);
    g->far.naa[3] ^= 0xff;
    memset(g->far.ram, 0xaa, 4096);
    far_drop(&g->far);
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_WRITE, 0, 1, 0), -ESTALE);
    assert_int_equal(run(g, LP_READ, 0, 1, 0), -ESTALE);
    far_lock(&g->far);
    assert_int_equal(g->far.ram[0], 0xaa);
    far_unlock(&g->far);
}

/* [C-13] */
static void a_size_that_grew_while_away_is_taken_over(void **state)
{
    struct rigged *g = *state;

    g->far.blocks = 1024;
    open_disk(g);
    far_lock(&g->far);
    g->far.blocks = 2048;
    far_drop(&g->far);
    far_unlock(&g->far);
    assert_int_equal(run(g, LP_WRITE, 0, 1, 0), 0);
    assert_int_equal(g->changes, 1);
    assert_int_equal(run(g, LP_WRITE, 2047, 1, 0), 0);
}

/* [I-SES-01] */
static void sessions_have_identifiers_of_their_own_that_stay(void **state)
{
    struct rigged *g = *state;
    uint8_t first[2][6];

    g->iscsi.sessions = 2;
    open_disk(g);
    shut(g);
    memcpy(first, g->far.isids, sizeof(first));
    assert_int_equal(g->far.logins, 2);
    assert_memory_not_equal(first[0], first[1], 6);
    open_disk(g); /* as a new process with the same seed */
    far_lock(&g->far);
    assert_int_equal(g->far.logins, 4);
    for (unsigned i = 2; i < 4; i++)
        assert_true(memcmp(g->far.isids[i], first[0], 6) == 0 ||
                    memcmp(g->far.isids[i], first[1], 6) == 0);
    assert_int_equal(g->far.logouts, 2);
    far_unlock(&g->far);
}

static void io_goes_on_through_the_session_that_is_up(void **state)
{
    struct rigged *g = *state;
    uint64_t limit = clock_now_ns() + 20 * SECOND;
    static struct batch b;

    g->iscsi.sessions = 2;
    open_disk(g);
    run_batch(g, &b, LP_WRITE);
    far_lock(&g->far);
    g->far.login_status = 0x0301; /* it cannot come back */
    net_stream_close(g->far.conns[0]->stream);
    free(g->far.conns[0]->out);
    free(g->far.conns[0]);
    g->far.conns[0] = NULL;
    far_unlock(&g->far);
    while (!strstr(g->log, "closed the connection") && clock_now_ns() < limit)
        lp_queue_poll(g->q, 0);
    for (unsigned i = 0; i < 3; i++)
        run_batch(g, &b, LP_WRITE);
    far_lock(&g->far);
    assert_int_equal(g->far.logins, 2);
    far_unlock(&g->far);
}

/* [I-ERR-12] */
static void a_new_queue_waits_for_a_target_that_was_seen(void **state)
{
    struct rigged *g = *state;
    struct lp_error err = {0};
    struct lp_queue *second;

    open_disk(g);
    far_lock(&g->far);
    g->far.login_status = 0x0203;
    g->far.refuse_times = 2;
    far_unlock(&g->far);
    second = lp_disk_queue(g->disk, 4, &err);
    if (!second)
        fail_msg("%s", err.msg);
    lp_queue_close(second);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(limits_are_the_targets_capped_by_ours),
        TEST(flush_and_fua_become_what_the_cache_asks_for),
        TEST(a_flush_error_is_told_and_not_hidden_by_the_next),
        TEST(a_write_that_is_taken_in_part_is_an_error),
        TEST(discard_keeps_to_granularity_and_limits),
        TEST(zeros_are_written_where_write_same_is_unknown),
        TEST(requests_are_split_and_never_cross_the_end),
        TEST(a_change_that_the_target_tells_of_is_taken_over),
        TEST(another_disk_behind_the_lun_stops_all_io),
        TEST(a_size_that_grew_while_away_is_taken_over),
        TEST(sessions_have_identifiers_of_their_own_that_stay),
        TEST(io_goes_on_through_the_session_that_is_up),
        TEST(a_new_queue_waits_for_a_target_that_was_seen),
    };

    return cmocka_run_group_tests_name("the iscsi: disk", tests, NULL, NULL);
}
