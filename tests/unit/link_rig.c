/* SPDX-License-Identifier: BSD-2-Clause */
#include "link_rig.h"

#include "base/bytes.h"

/* ---- a link on virtual time ---- */

static uint64_t virtual_clock(void *user)
{
    return ((struct rig *)user)->now;
}

static void on_log(void *user, const char *sentence)
{
    struct rig *g = user;
    size_t n = strlen(g->log);

    snprintf(g->log + n, sizeof(g->log) - n, "%s\n", sentence);
}

static void on_probed(struct lun_probe *probe, const struct lp_error *why)
{
    struct rig *g = probe->user;
    struct lp_error err;

    g->why = why ? *why : (struct lp_error){0};
    if (why && g->probed)
        link_postpone(g->link, why);
    else if (why)
        link_refuse(g->link, why);
    else if (g->probed && lun_compare(&g->known, &probe->info, &err) < 0)
        link_refuse(g->link, &err);
    else
        link_ready(g->link);
    if (!why && !g->probed)
        g->known = probe->info;
    g->probed |= !why;
}

static void on_checking(void *user, struct link *link)
{
    struct rig *g = user;
    static const uint8_t lun[8];

    if (!g->checks) {
        link_ready(link);
        return;
    }
    g->probe.brief = g->probed;
    g->probe.done = on_probed;
    g->probe.user = g;
    lun_probe_start(&g->probe, link, lun);
}

static void on_failed(void *user, struct link *link, const struct lp_error *why)
{
    (void)link, (void)why;
    ((struct rig *)user)->failed++;
}

static void on_down(void *user, struct link *link)
{
    (void)link;
    ((struct rig *)user)->downs++;
}

static void on_attention(void *user, struct link *link, uint16_t asc)
{
    struct rig *g = user;

    (void)link;
    g->attentions++;
    g->asc = asc;
}

static int no_random(void *user, void *bytes, size_t n)
{
    (void)user;
    memset(bytes, 7, n);
    return 0;
}

int rig_set_up(void **state)
{
    struct rig *g = calloc(1, sizeof(*g));
    struct net_reactor_opts opts = {.engine = "poll", .clock = virtual_clock, .clock_user = g};
    struct lp_error err;

    if (!g)
        return -1;
    g->now = 1000 * SECOND;
    g->r = net_reactor_new(&opts, &err);
    if (!g->r || !far_open(&g->far, g->r, "127.0.0.1"))
        return -1;
    link_opts_default(&g->opts);
    g->opts.host = "127.0.0.1";
    g->opts.port = g->far.port;
    g->opts.login.initiator_name = FAR_INITIATOR;
    g->opts.login.target_name = FAR_TARGET;
    memcpy(g->opts.login.isid, "\x80\x11\x22\x33\x00\x01", 6);
    g->opts.login.random = no_random;
    g->opts.checking = on_checking;
    g->opts.failed = on_failed;
    g->opts.down = on_down;
    g->opts.attention = on_attention;
    g->opts.log = on_log;
    g->opts.user = g;
    *state = g;
    return 0;
}

int rig_tear_down(void **state)
{
    struct rig *g = *state;

    link_close(g->link, 0);
    far_close(&g->far);
    net_reactor_free(g->r);
    free(g);
    return 0;
}

void rig_link(struct rig *g)
{
    struct lp_error err;

    g->link = link_open(g->r, &g->opts, &err);
    if (!g->link)
        fail_msg("%s", err.msg);
}

/* Everything that can happen without time going on. */
static void settle(struct rig *g)
{
    for (unsigned idle = 0; idle < 8;)
        idle = net_run_once(g->r, 0) > 0 ? 0 : idle + 1;
}

void rig_pass(struct rig *g, uint64_t ns)
{
    uint64_t until = g->now + ns;

    settle(g);
    while (net_deadline(g->r) <= until) {
        if (net_deadline(g->r) > g->now)
            g->now = net_deadline(g->r);
        net_run_once(g->r, 0);
        settle(g);
    }
    g->now = until;
    settle(g);
}

void rig_until(struct rig *g, bool (*is)(struct rig *g, void *arg), void *arg)
{
    uint64_t limit = g->now + 3600 * SECOND;

    for (settle(g); !is(g, arg); settle(g)) {
        uint64_t next = net_deadline(g->r);

        if (g->now > limit || next == NET_NEVER)
            fail_msg("it never happens; the log:\n%s", g->log);
        if (next > g->now)
            g->now = next;
        net_run_once(g->r, 0);
    }
}

static bool is_up(struct rig *g, void *arg)
{
    (void)arg;
    if (link_state(g->link) == LINK_FAILED)
        fail_msg("the link failed: %s", link_error(g->link)->msg);
    return link_state(g->link) == LINK_UP;
}

void rig_up(struct rig *g)
{
    rig_until(g, is_up, NULL);
}

/* ---- commands ---- */

static void on_done(struct link_command *c)
{
    struct io *io = c->user;

    io->done++;
    io->at = io->rig->now;
}

static void start(struct rig *g, struct io *io, uint8_t opcode, uint32_t lba, uint16_t blocks)
{
    memset(&io->c, 0, sizeof(io->c));
    io->rig = g;
    io->done = 0;
    io->iov = (struct iovec){io->data, blocks * 512u};
    io->c.task.cdb[0] = opcode;
    io->c.task.cdb_length = 10;
    store_be32(io->c.task.cdb + 2, lba);
    store_be16(io->c.task.cdb + 7, blocks);
    io->c.task.attr = ISCSI_ATTR_SIMPLE;
    io->c.task.direction = opcode == 0x28 ? INI_READ : INI_WRITE;
    io->c.task.iov = &io->iov;
    io->c.task.iov_count = 1;
    io->c.task.length = blocks * 512u;
    io->c.done = on_done;
    io->c.user = io;
    link_submit(g->link, &io->c);
    assert_int_equal(io->done, 0); /* never from inside */
}

void io_read(struct rig *g, struct io *io, uint32_t lba, uint16_t blocks)
{
    memset(io->data, 0xee, sizeof(io->data));
    start(g, io, 0x28, lba, blocks);
}

void io_write(struct rig *g, struct io *io, uint32_t lba, uint16_t blocks, uint8_t byte)
{
    memset(io->data, byte, sizeof(io->data));
    start(g, io, 0x2a, lba, blocks);
}

static bool is_done(struct rig *g, void *arg)
{
    (void)g;
    return ((struct io *)arg)->done > 0;
}

int io_wait(struct rig *g, struct io *io)
{
    rig_until(g, is_done, io);
    assert_int_equal(io->done, 1);
    return io->c.status;
}
