/* SPDX-License-Identifier: BSD-2-Clause */
/* How a link lives through losses: no command lost, none doubled, none held for ever. */
#include "link_rig.h"

#include "target/target.h"

/* ---- the target goes away ---- */

/* [I-ERR-12] */
static void io_waits_for_a_target_that_is_away(void **state)
{
    static const struct {
        unsigned away_s;
        int status;
    } rows[] = {{1, 0}, {115, 0}, {121, -ETIMEDOUT}};
    struct rig *g = *state;
    static struct io io, after;

    rig_link(g);
    rig_up(g);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t begun;

        far_away(&g->far);
        rig_pass(g, 0);
        begun = g->now;
        io_write(g, &io, i, 1, (uint8_t)(0x40 + i));
        rig_pass(g, rows[i].away_s * SECOND);
        assert_int_equal(io.done, rows[i].status != 0);
        far_back(&g->far);
        assert_int_equal(io_wait(g, &io), rows[i].status);
        if (rows[i].status != 0) {
            assert_true(io.at - begun >= 120 * SECOND && io.at - begun <= 121 * SECOND);
            assert_non_null(strstr(g->log, "I/O has waited 120 s for the target and fails now"));
        } else {
            assert_int_equal(g->far.ram[i * 512], 0x40 + i);
        }
        rig_up(g); /* it comes back in any case */
        io_write(g, &after, 100 + i, 1, 7);
        assert_int_equal(io_wait(g, &after), 0);
    }
}

/* Back just before the hold ends, and tried before: the back-off is at most ten seconds. */
/* [I-ERR-12] */
static void the_last_second_counts(void **state)
{
    struct rig *g = *state;
    static struct io io;

    g->opts.backoff_max_ns = SECOND / 2;
    rig_link(g);
    rig_up(g);
    far_away(&g->far);
    rig_pass(g, 0);
    io_write(g, &io, 1, 1, 0x77);
    rig_pass(g, 119 * SECOND);
    far_back(&g->far);
    assert_int_equal(io_wait(g, &io), 0);
    assert_int_equal(g->far.ram[512], 0x77);
}

/* [I-ERR-11] [I-SES-01] */
static void a_new_session_has_the_same_isid_and_no_tsih(void **state)
{
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    for (unsigned i = 1; i < 4; i++) {
        uint64_t lost = g->now;

        assert_int_equal(far_drop(&g->far), 1);
        rig_pass(g, SECOND / 10);
        assert_int_equal(link_state(g->link), LINK_DOWN);
        assert_int_equal(g->downs, i);
        rig_up(g);
        assert_true(g->now - lost >= 2 * SECOND); /* DefaultTime2Wait */
        assert_memory_equal(g->far.isids[i], g->opts.login.isid, 6);
        assert_int_equal(g->far.tsihs[i], 0);
    }
}

static bool drops(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                  struct far_reply *reply)
{
    if (!far_is(c, 0x2a) || far->counter++ != 0)
        return false;
    memcpy(far->ram + c->cdb[5] * 512, data, 512); /* done, but the answer is lost */
    reply->drop = true;
    return true;
}

/* [I-ERR-11] */
static void a_write_whose_answer_was_lost_is_told_once(void **state)
{
    struct rig *g = *state;
    static struct io io;

    rig_link(g);
    rig_up(g);
    g->far.hook = drops;
    io_write(g, &io, 9, 1, 0x99);
    assert_int_equal(io_wait(g, &io), 0);
    rig_pass(g, 200 * SECOND);
    assert_int_equal(io.done, 1);
    assert_int_equal(g->far.counter, 2);
    assert_int_equal(g->far.ram[9 * 512], 0x99);
}

static void a_silent_target_is_noticed_by_ping(void **state)
{
    struct rig *g = *state;

    rig_link(g);
    rig_up(g);
    rig_pass(g, 60 * SECOND);
    assert_true(g->far.pings >= 10);
    assert_int_equal(g->far.logins, 1);
    g->far.mute = true;
    rig_pass(g, 11 * SECOND);
    g->far.mute = false;
    rig_up(g);
    assert_int_equal(g->far.logins, 2);
}

/* ---- the check ---- */

static bool drops_inquiry(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                          struct far_reply *reply)
{
    (void)data;
    if (far->counter == 0 || !far_is(c, 0x12))
        return false;
    far->counter--;
    reply->drop = true;
    return true;
}

static void a_session_lost_while_probing_is_begun_again(void **state)
{
    struct rig *g = *state;
    static struct io io;

    g->checks = true;
    rig_link(g);
    rig_up(g);
    g->far.hook = drops_inquiry;
    for (unsigned n = 1; n < 4; n++) {
        g->far.counter = n;
        far_drop(&g->far);
        rig_pass(g, 0);
        io_write(g, &io, n, 1, 1);
        assert_int_equal(io_wait(g, &io), 0);
        assert_int_equal(link_state(g->link), LINK_UP);
    }
}

static bool silent_inquiry(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                           struct far_reply *reply)
{
    (void)far, (void)data;
    reply->silent = far_is(c, 0x12);
    return reply->silent;
}

static void a_probe_that_is_swallowed_ends_with_its_session(void **state)
{
    struct rig *g = *state;

    g->checks = true;
    rig_link(g);
    rig_up(g);
    g->far.hook = silent_inquiry;
    far_drop(&g->far);
    rig_pass(g, 10 * SECOND); /* logged in again, the INQUIRY is out */
    assert_int_equal(link_state(g->link), LINK_CHECKING);
    far_drop(&g->far);
    g->far.hook = NULL;
    rig_up(g);
}

/* Targets open their portals before their LUNs are there. */
static void a_lun_that_is_not_there_yet_is_waited_for(void **state)
{
    struct rig *g = *state;
    static struct io io;

    g->checks = true;
    rig_link(g);
    rig_up(g);
    g->far.missing = true;
    far_drop(&g->far);
    rig_pass(g, 0);
    io_write(g, &io, 3, 1, 0x33);
    rig_pass(g, 30 * SECOND);
    assert_int_equal(io.done, 0);
    assert_int_not_equal(link_state(g->link), LINK_FAILED);
    g->far.missing = false;
    assert_int_equal(io_wait(g, &io), 0);
}

/* [C-13] */
static void another_lun_behind_the_number_gets_no_byte(void **state)
{
    struct rig *g = *state;
    static struct io io, later;

    g->checks = true;
    rig_link(g);
    rig_up(g);
    g->far.naa[7] ^= 1;
    far_drop(&g->far);
    rig_pass(g, 0);
    io_write(g, &io, 3, 1, 0x33);
    assert_int_equal(io_wait(g, &io), -ESTALE);
    assert_int_equal(link_state(g->link), LINK_FAILED);
    assert_int_equal(g->failed, 1);
    io_write(g, &later, 4, 1, 0x33);
    assert_int_equal(io_wait(g, &later), -ESTALE);
    assert_int_equal(g->far.ram[3 * 512], 0);
    assert_null(strstr(g->far.log, "2a"));
}

/* ---- several links ---- */

static bool is_moved(struct rig *g, void *arg)
{
    (void)g;
    return ((struct io *)arg)->done > 0;
}

static void commands_never_sent_move_to_another_session(void **state)
{
    struct rig *g = *state;
    struct link *first, *second;
    static struct io sent, waits;
    uint64_t begun;

    rig_link(g);
    rig_up(g);
    first = g->link;
    g->opts.login.isid[5]++;
    rig_link(g);
    rig_up(g);
    second = g->link;
    assert_int_equal(link_move_unsent(first, second), 0); /* up: nothing to move */

    g->link = first;
    g->far.hook = silent_inquiry;
    far_drop(&g->far);
    g->far.hook = NULL;
    rig_pass(g, 0);
    io_write(g, &waits, 1, 1, 0x11);
    begun = g->now;
    g->link = second;
    rig_up(g);
    io_write(g, &sent, 2, 1, 0x22);
    link_move_unsent(first, second); /* none if it came back in the same instant */
    rig_until(g, is_moved, &waits);
    assert_int_equal(waits.c.status, 0);
    assert_int_equal(io_wait(g, &sent), 0);
    assert_true(waits.at - begun < 10 * SECOND);
    assert_int_equal(g->far.ram[512], 0x11);
    link_close(first, 0);
}

/* ---- every moment of a write, at the target that lunpath serves ---- */

struct served {
    struct lp_disk *disk;
    struct target_server *server;
    struct rig *g;
};

static void turn(struct served *s, unsigned turns)
{
    for (unsigned i = 0; i < turns; i++)
        target_server_turn(s->server, 0);
}

static void serve(struct rig *g, struct served *s)
{
    const struct target_server_opts server_opts = {0};
    const struct target_opts target_opts = {.name = FAR_TARGET};
    const struct lu_opts lu_opts = {0};
    struct lp_error err;
    struct target *t;
    int port;

    s->g = g;
    s->disk = lp_disk_open("ram:1M", NULL, &err);
    s->server = target_server_new(g->r, &server_opts, &err);
    t = target_add(s->server, &target_opts, &err);
    assert_non_null(target_add_lun(t, s->disk, &lu_opts, &err));
    port = target_listen(s->server, "127.0.0.1", 0, 1, &err);
    assert_true(port > 0);
    g->opts.port = (uint16_t)port;
}

static void run_until_up(struct served *s)
{
    for (unsigned i = 0; link_state(s->g->link) != LINK_UP; i++) {
        turn(s, 300);
        if (link_state(s->g->link) != LINK_UP && net_deadline(s->g->r) > s->g->now)
            s->g->now = net_deadline(s->g->r);
        if (i > 1000)
            fail_msg("not logged in:\n%s", s->g->log);
    }
}

enum { BIG = 400 * 1024 };

static void on_big_done(struct link_command *c)
{
    (*(unsigned *)c->user)++;
}

static void transfer(struct rig *g, struct link_command *c, struct iovec *iov, uint8_t opcode,
                     unsigned *done)
{
    memset(c, 0, sizeof(*c));
    *done = 0;
    c->task.cdb[0] = opcode;
    c->task.cdb_length = 10;
    c->task.cdb[7] = BIG / 512 >> 8;
    c->task.cdb[8] = BIG / 512 & 255;
    c->task.attr = ISCSI_ATTR_SIMPLE;
    c->task.direction = opcode == 0x28 ? INI_READ : INI_WRITE;
    c->task.iov = iov;
    c->task.iov_count = 1;
    c->task.length = BIG;
    c->done = on_big_done;
    c->user = done;
    link_submit(g->link, c);
}

/* The kernel's TCP has a clock of its own: real time passes before virtual time does. */
static void finish(struct served *s, const unsigned *done)
{
    for (unsigned i = 0; *done == 0; i++) {
        for (unsigned k = 0; k < 1000 && *done == 0; k++)
            target_server_turn(s->server, k < 900 ? 0 : 1000000);
        if (*done == 0 && net_deadline(s->g->r) > s->g->now)
            s->g->now = net_deadline(s->g->r);
        if (i > 100)
            fail_msg("the command never ends:\n%s", s->g->log);
    }
    assert_int_equal(*done, 1);
}

/* [I-ERR-11] */
static void a_write_survives_a_loss_at_every_moment(void **state)
{
    struct rig *g = *state;
    struct served s;
    uint8_t *bytes = malloc(BIG), *back = malloc(BIG);
    struct iovec out = {bytes, BIG}, in = {back, BIG};
    static struct link_command c;
    unsigned done, interrupted = 0;

    serve(g, &s);
    g->opts.login.wishes.params.first_burst_length = 16384; /* the rest is asked for, in bursts */
    g->opts.login.wishes.params.max_burst_length = 65536;
    rig_link(g);
    run_until_up(&s);
    for (unsigned moment = 0; moment < 30; moment++) {
        memset(bytes, (int)(moment + 1), BIG);
        transfer(g, &c, &out, 0x2a, &done);
        turn(&s, moment);
        interrupted += done == 0;
        target_drop_connections(s.server);
        finish(&s, &done);
        assert_int_equal(c.status, 0);
        run_until_up(&s);
        transfer(g, &c, &in, 0x28, &done);
        finish(&s, &done);
        assert_int_equal(c.status, 0);
        assert_memory_equal(bytes, back, BIG);
    }
    assert_true(interrupted > 3);
    link_close(g->link, 0);
    g->link = NULL;
    turn(&s, 20);
    target_server_free(s.server);
    lp_disk_close(s.disk);
    free(bytes);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(io_waits_for_a_target_that_is_away),
        LINK_TEST(the_last_second_counts),
        LINK_TEST(a_new_session_has_the_same_isid_and_no_tsih),
        LINK_TEST(a_write_whose_answer_was_lost_is_told_once),
        LINK_TEST(a_silent_target_is_noticed_by_ping),
        LINK_TEST(a_session_lost_while_probing_is_begun_again),
        LINK_TEST(a_probe_that_is_swallowed_ends_with_its_session),
        LINK_TEST(a_lun_that_is_not_there_yet_is_waited_for),
        LINK_TEST(another_lun_behind_the_number_gets_no_byte),
        LINK_TEST(commands_never_sent_move_to_another_session),
        LINK_TEST(a_write_survives_a_loss_at_every_moment),
    };

    return cmocka_run_group_tests_name("the life of a link", tests, NULL, NULL);
}
