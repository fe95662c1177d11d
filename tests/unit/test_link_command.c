/* SPDX-License-Identifier: BSD-2-Clause */
/* What a link does with each status, with a silent target, and with bad input. */
#include "link_rig.h"

/* The first `counter` commands of this kind are answered as the script says. */
struct answer {
    uint8_t opcode;
    unsigned times;
    struct far_reply reply;
    uint64_t at[64]; /* when they came */
    unsigned came;
};

static bool answering(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                      struct far_reply *reply)
{
    struct answer *a = far->hook_user;

    (void)data;
    if (!far_is(c, a->opcode))
        return false;
    if (a->came < 64)
        a->at[a->came] = net_now_exact(far->r);
    if (a->came++ >= a->times)
        return false;
    *reply = a->reply;
    return true;
}

static void script(struct rig *g, struct answer *a)
{
    g->far.hook = answering;
    g->far.hook_user = a;
}

static struct answer sense(uint8_t key, uint16_t asc, unsigned times)
{
    struct answer a = {.opcode = 0x28, .times = times};

    far_sense(&a.reply, key, asc);
    return a;
}

static int read_with(struct rig *g, struct answer *a)
{
    static struct io io;

    script(g, a);
    io_read(g, &io, 4, 1);
    return io_wait(g, &io);
}

/* [C-04] */
static void a_unit_attention_costs_nothing_but_one_more_try(void **state)
{
    struct rig *g = *state;
    struct answer a = sense(6, 0x2a09, 3);

    rig_link(g);
    rig_up(g);
    assert_int_equal(read_with(g, &a), 0);
    assert_int_equal(a.came, 4);
    assert_int_equal(g->attentions, 3);
    assert_int_equal(g->asc, 0x2a09);
    assert_int_equal(a.at[3], a.at[0]); /* at once */
}

/* [C-04] */
static void endless_unit_attentions_end(void **state)
{
    struct rig *g = *state;
    struct answer a = sense(6, 0x2900, 1000);

    rig_link(g);
    rig_up(g);
    assert_int_equal(read_with(g, &a), -EIO);
    assert_true(a.came < 32);
}

/* [C-05] */
static void busy_is_tried_again_with_a_growing_delay(void **state)
{
    static const unsigned times[] = {1, 10};
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    for (unsigned i = 0; i < 2; i++) {
        struct answer a = {.opcode = 0x28, .times = times[i], .reply.status = 0x08};

        assert_int_equal(read_with(g, &a), 0);
        assert_int_equal(a.came, times[i] + 1);
        for (unsigned k = 2; k < a.came && k < 7; k++)
            assert_true(a.at[k] - a.at[k - 1] > a.at[k - 1] - a.at[k - 2]);
        for (unsigned k = 1; k < a.came; k++)
            assert_true(a.at[k] - a.at[k - 1] <= 4 * SECOND);
    }
}

/* [C-05] */
static void endless_busy_ends_with_the_hold(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 100000, .reply.status = 0x08};
    uint64_t begun = g->now;

    rig_link(g);
    rig_up(g);
    assert_int_equal(read_with(g, &a), -ETIMEDOUT);
    assert_true(g->now - begun >= 120 * SECOND && g->now - begun < 125 * SECOND);
    assert_true(a.came < 60);
}

/* Four places: a fifth command is answered TASK SET FULL. */
struct places {
    unsigned most, now, fulls;
};

static bool has_places(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                       struct far_reply *reply)
{
    struct places *p = far->hook_user;

    (void)data;
    if (!far_is(c, 0x28))
        return false;
    if (p->now == 4) {
        p->fulls++;
        reply->status = 0x28;
        return true;
    }
    p->now++;
    reply->silent = true; /* answered by the abort, below */
    return true;
}

/* [C-06] */
static void a_full_task_set_lowers_the_depth(void **state)
{
    struct rig *g = *state;
    struct places p = {0};
    static struct io io[12];

    rig_link(g);
    rig_up(g);
    g->far.hook = has_places;
    g->far.hook_user = &p;
    for (unsigned i = 0; i < 12; i++)
        io_read(g, &io[i], i, 1);
    rig_pass(g, 20 * SECOND); /* under the 30 s after which commands are aborted */
    assert_int_equal(p.now, 4);
    assert_int_equal(p.fulls, 8); /* told once each, then they wait for a place */
    g->far.hook = NULL;
    far_drop(&g->far);
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(io_wait(g, &io[i]), 0);
}

static bool counts_full_once(struct far *far, const struct iscsi_scsi_command *c,
                             const uint8_t *data, struct far_reply *reply)
{
    (void)data;
    if (!far_is(c, 0x28))
        return false;
    if (far->counter++ == 0)
        reply->status = 0x28;
    return reply->status != 0;
}

/* [C-06] */
static void the_depth_grows_again(void **state)
{
    struct rig *g = *state;
    static struct io io;

    rig_link(g);
    rig_up(g);
    g->far.hook = counts_full_once;
    for (unsigned i = 0; i < 200; i++) {
        io_read(g, &io, i, 1);
        assert_int_equal(io_wait(g, &io), 0);
    }
    assert_int_equal(g->far.counter, 201);
}

/* [C-07] */
static void a_reservation_conflict_is_told_at_once(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 100, .reply.status = 0x18};

    rig_link(g);
    rig_up(g);
    assert_int_equal(read_with(g, &a), -EACCES);
    assert_int_equal(a.came, 1);
}

/* [C-08] [C-09] */
static void each_sense_key_has_its_meaning(void **state)
{
    static const struct {
        uint8_t key;
        uint16_t asc;
        int status;
        unsigned tries; /* 0: more than one */
    } rows[] = {
        {0x0, 0x0000, -EIO, 1}, /* status without data: the bytes are missing */
        {0x1, 0x1701, -EIO, 1},    {0x2, 0x3a00, -ENXIO, 1},
        {0x2, 0x0402, -EIO, 1},    {0x3, 0x1100, -EIO, 1},
        {0x4, 0x4400, -EIO, 1},    {0x5, 0x2000, -EOPNOTSUPP, 1},
        {0x5, 0x2100, -EINVAL, 1}, {0x5, 0x2400, -EOPNOTSUPP, 1},
        {0x5, 0x2500, -ENXIO, 1},  {0x7, 0x2700, -EROFS, 1},
        {0x7, 0x2707, -ENOSPC, 1}, {0x9, 0x8000, -EIO, 1}, /* VENDOR SPECIFIC */
        {0xb, 0x4703, -EIO, 0},    {0xe, 0x1d00, -EILSEQ, 1},
    };
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct answer a = sense(rows[i].key, rows[i].asc, 1000);
        int status = read_with(g, &a);
        bool recovered = rows[i].key <= 1;

        if (status != (recovered ? 0 : rows[i].status))
            fail_msg("key %x asc %04x: %d", rows[i].key, rows[i].asc, status);
        if (rows[i].tries)
            assert_int_equal(a.came, rows[i].tries);
        else
            assert_true(a.came > 1 && a.came <= LINK_RETRIES_MAX + 1);
    }
    assert_non_null(strstr(g->log, "unrecovered"));
}

/* None at all breaks the protocol (RFC 7143 11.4.7.2), which is the session's matter. */
/* [C-08] */
static void sense_in_every_form_is_read(void **state)
{
    static const struct {
        uint8_t sense[20];
        unsigned length;
        int status;
    } rows[] = {
        {{0x72, 0x05, 0x25, 0x00, 0, 0, 0, 0}, 8, -ENXIO}, /* descriptor */
        {{0x70, 0, 0x05}, 3, -EOPNOTSUPP},                 /* short */
        {{0x71, 0, 0x03, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x0c, 0, 0, 0, 0, 0}, 18, -EIO}, /* deferred */
        {{0x73, 0x04, 0x44, 0x00, 0, 0, 0, 0}, 8, -EIO},
        {{0x7f, 1, 2, 3}, 4, -EIO}, /* vendor specific */
    };
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct answer a = {.opcode = 0x28, .times = 1000, .reply.status = 0x02};
        int status;

        memcpy(a.reply.sense, rows[i].sense, sizeof(rows[i].sense));
        a.reply.sense_length = rows[i].length;
        status = read_with(g, &a);
        if (status != rows[i].status)
            fail_msg("row %zu: %d", i, status);
    }
}

/* [C-09] */
static void a_deferred_recovered_error_runs_the_command_again(void **state)
{
    struct rig *g = *state;
    struct answer a = sense(1, 0x0c01, 1);

    a.reply.sense[0] = 0x71;
    rig_link(g);
    rig_up(g);
    memset(g->far.ram + 4 * 512, 0x5a, 512);
    assert_int_equal(read_with(g, &a), 0);
    assert_int_equal(a.came, 2);
}

/* [C-09] */
static void a_lun_that_becomes_ready_is_waited_for(void **state)
{
    struct rig *g = *state;
    struct answer a = sense(2, 0x0401, 5), never = sense(2, 0x0401, 100000);
    uint64_t begun;

    rig_link(g);
    rig_up(g);
    assert_int_equal(read_with(g, &a), 0);
    assert_int_equal(a.came, 6);
    begun = g->now;
    assert_int_equal(read_with(g, &never), -EIO);
    assert_true(g->now - begun >= 120 * SECOND && g->now - begun < 125 * SECOND);
}

static void a_list_shorter_than_the_length_is_refused(void **state)
{
    struct rig *g = *state;
    static struct io io;
    unsigned commands;

    rig_link(g);
    rig_up(g);
    commands = g->far.commands;
    io_write(g, &io, 0, 1, 1); /* in flight, so the next one only waits in the list */
    assert_int_equal(io_wait(g, &io), 0);
    memset(&io.c.task, 0, sizeof(io.c.task));
    io.iov.iov_len = 511;
    io.c.task.direction = INI_WRITE;
    io.c.task.iov = &io.iov;
    io.c.task.iov_count = 1;
    io.c.task.length = 512;
    io.done = 0;
    link_submit(g->link, &io.c);
    assert_int_equal(io_wait(g, &io), -EINVAL);
    assert_int_equal(g->far.commands, commands + 1);
}

/* ---- the ladder ---- */

/* [I-ERR-16] */
static void an_abort_frees_a_swallowed_command(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 1, .reply.silent = true};

    rig_link(g);
    rig_up(g);
    assert_int_equal(read_with(g, &a), 0); /* sent again after the abort */
    assert_int_equal(a.came, 2);
    assert_int_equal(g->far.tmfs, 1);
    assert_int_equal(g->far.tmf_functions[0], ISCSI_ABORT_TASK);
    assert_int_equal(a.at[1] - a.at[0], 30 * SECOND);
    assert_int_equal(g->far.logins, 1);
}

/* [I-ERR-16] */
static void a_command_swallowed_each_time_ends(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 1000, .reply.silent = true};
    uint64_t begun = g->now;

    rig_link(g);
    rig_up(g);
    assert_int_equal(read_with(g, &a), -ETIMEDOUT);
    assert_true(g->now - begun <= 130 * SECOND);
}

/* [I-ERR-16] */
static void a_reset_follows_an_abort_that_fails(void **state)
{
    static const int answers[] = {ISCSI_TMF_NOT_SUPPORTED, ISCSI_TMF_REJECTED};
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    for (unsigned i = 0; i < 2; i++) {
        struct answer a = {.opcode = 0x28, .times = 1, .reply.silent = true};

        g->far.tmf = answers[i];
        g->far.tmfs = 0;
        assert_int_equal(read_with(g, &a), 0);
        assert_int_equal(g->far.tmfs, 2);
        assert_int_equal(g->far.tmf_functions[1], ISCSI_LOGICAL_UNIT_RESET);
        assert_int_equal(g->far.logins, i + 2); /* the reset failed too: a new session */
    }
}

static bool watches_aborts(struct rig *g, void *arg)
{
    struct io *io = arg;

    if (g->far.tmfs == 1) /* the abort was swallowed; the reset will not be */
        g->far.tmf = 0;
    return io->done > 0;
}

/* [I-ERR-16] */
static void a_swallowed_abort_does_not_keep_the_caller(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 1, .reply.silent = true};
    static struct io io;
    uint64_t begun;

    rig_link(g);
    rig_up(g);
    script(g, &a);
    g->far.tmf = -1;
    begun = g->now;
    io_read(g, &io, 4, 1);
    rig_until(g, watches_aborts, &io);
    assert_int_equal(io.c.status, 0);
    assert_int_equal(io.done, 1);
    assert_true(g->now - begun <= 60 * SECOND);
    assert_int_equal(g->far.tmf_functions[1], ISCSI_LOGICAL_UNIT_RESET);
}

/* [I-ERR-16] */
static void a_swallowed_reset_ends_the_session(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 1, .reply.silent = true};
    uint64_t begun;

    rig_link(g);
    rig_up(g);
    g->far.tmf = -1;
    begun = g->now;
    assert_int_equal(read_with(g, &a), 0);
    assert_int_equal(a.came, 2);
    assert_int_equal(g->far.tmfs, 2);
    assert_int_equal(g->far.logins, 2);
    assert_true(g->now - begun <= 60 * SECOND);
    assert_memory_equal(g->far.isids[0], g->far.isids[1], 6);
}

/* [I-ERR-16] */
static void many_swallowed_commands_are_all_released(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 20, .reply.silent = true};
    static struct io io[20];

    rig_link(g);
    rig_up(g);
    script(g, &a);
    g->far.tmf = -1;
    for (unsigned i = 0; i < 20; i++)
        io_read(g, &io[i], i, 1);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(io_wait(g, &io[i]), 0);
    assert_int_equal(g->far.logins, 2);
}

/* ---- closing ---- */

static void closing_ends_what_is_left(void **state)
{
    struct rig *g = *state;
    struct answer a = {.opcode = 0x28, .times = 1000, .reply.silent = true};
    static struct io io[4];

    g->opts.depth = 2;
    rig_link(g);
    rig_up(g);
    script(g, &a);
    for (unsigned i = 0; i < 4; i++)
        io_read(g, &io[i], i, 1);
    rig_pass(g, SECOND);
    assert_int_equal(a.came, 2);
    link_close(g->link, 0);
    g->link = NULL;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(io[i].done, 1);
        assert_int_equal(io[i].c.status, -ECANCELED);
    }
}

static void closing_logs_out(void **state)
{
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    link_close(g->link, SECOND);
    g->link = NULL;
    assert_int_equal(g->far.logouts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(a_unit_attention_costs_nothing_but_one_more_try),
        LINK_TEST(endless_unit_attentions_end),
        LINK_TEST(busy_is_tried_again_with_a_growing_delay),
        LINK_TEST(endless_busy_ends_with_the_hold),
        LINK_TEST(a_full_task_set_lowers_the_depth),
        LINK_TEST(the_depth_grows_again),
        LINK_TEST(a_reservation_conflict_is_told_at_once),
        LINK_TEST(each_sense_key_has_its_meaning),
        LINK_TEST(sense_in_every_form_is_read),
        LINK_TEST(a_deferred_recovered_error_runs_the_command_again),
        LINK_TEST(a_lun_that_becomes_ready_is_waited_for),
        LINK_TEST(a_list_shorter_than_the_length_is_refused),
        LINK_TEST(an_abort_frees_a_swallowed_command),
        LINK_TEST(a_command_swallowed_each_time_ends),
        LINK_TEST(a_reset_follows_an_abort_that_fails),
        LINK_TEST(a_swallowed_abort_does_not_keep_the_caller),
        LINK_TEST(a_swallowed_reset_ends_the_session),
        LINK_TEST(many_swallowed_commands_are_all_released),
        LINK_TEST(closing_ends_what_is_left),
        LINK_TEST(closing_logs_out),
    };

    return cmocka_run_group_tests_name("commands of a link", tests, NULL, NULL);
}
