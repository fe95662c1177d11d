/* SPDX-License-Identifier: BSD-2-Clause */
/* lunpath ping: round trips of NOP-Out and NOP-In, which no disk answers (RFC 7143 11.18). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/lun_link.h"
#include "app/stop.h"
#include "base/histogram.h"
#include "base/size.h"

enum {
    PING_COUNT,
    PING_SIZE,
    PING_DEPTH,
    PING_SECONDS,
    PING_ISCSI,
    PING_OPTION_COUNT = PING_ISCSI + ISCSI_OPTION_COUNT,
};

enum { MAX_DEPTH = 1024, DEFAULT_COUNT = 100, DEFAULT_SIZE = 64 };
static const uint64_t second = 1000000000, patience = 100000000;

static const struct option ping_options[PING_ISCSI] = {
    [PING_COUNT] = {.name = "count",
                    .type = OPTION_NUMBER,
                    .value = "N",
                    .min = 1,
                    .max = UINT32_MAX,
                    .help = "round trips (default 100; with --seconds without end)",
                    .group = "What to send:"},
    [PING_SIZE] = {.name = "size",
                   .type = OPTION_SIZE,
                   .value = "SIZE",
                   .min = 0,
                   .max = 0xffffff,
                   .help = "bytes that go there and back (default 64)"},
    [PING_DEPTH] = {.name = "depth",
                    .type = OPTION_NUMBER,
                    .value = "N",
                    .min = 1,
                    .max = MAX_DEPTH,
                    .help = "pings on their way at once (default 1)"},
    [PING_SECONDS] = {.name = "seconds",
                      .type = OPTION_SECONDS,
                      .value = "SECONDS",
                      .min = 0,
                      .max = 86400,
                      .help = "go on for so long"},
};

static unsigned ping_table(struct option *table)
{
    memcpy(table, ping_options, sizeof(ping_options));
    iscsi_options_append(table + PING_ISCSI);
    return PING_OPTION_COUNT;
}

struct slot {
    struct ini_ping ping;
    struct pinging *run;
    uint64_t sent_ns;
};

struct pinging {
    struct lun_link to;
    struct slot *slots;
    uint8_t *data;
    uint32_t size;
    unsigned depth, flying;
    uint64_t count, sent; /* count 0: until until_ns */
    uint64_t begin_ns, until_ns, end_ns;
    enum ini_result failure;
    const volatile sig_atomic_t *interrupted;
    struct histogram trips;
};

static bool is_over(const struct pinging *p)
{
    return p->failure != INI_OK || *p->interrupted || (p->count && p->sent == p->count) ||
           net_now_exact(p->to.reactor) >= p->until_ns;
}

static void send_ping(struct slot *slot);

static void on_answer(struct ini_ping *ping)
{
    struct slot *slot = ping->user;
    struct pinging *p = slot->run;

    p->flying--;
    p->end_ns = net_now_exact(p->to.reactor);
    if (ping->result == INI_OK)
        histogram_add(&p->trips, p->end_ns - slot->sent_ns);
    else if (p->failure == INI_OK)
        p->failure = ping->result;
    if (!is_over(p))
        send_ping(slot);
}

static void send_ping(struct slot *slot)
{
    struct pinging *p = slot->run;

    slot->sent_ns = net_now_exact(p->to.reactor);
    slot->ping = (struct ini_ping){.data = p->data,
                                   .length = p->size,
                                   .deadline_ns = slot->sent_ns + 5 * second,
                                   .done = on_answer,
                                   .user = slot};
    p->sent++;
    p->flying++;
    ini_ping(link_conn(p->to.link), &slot->ping);
}

/* As much as both sides take in one segment: a ping is never cut unsaid. */
static int check_size(const struct pinging *p, struct lp_error *err)
{
    const struct iscsi_params *params = ini_conn_params(link_conn(p->to.link));
    uint32_t most = params->mrdsl_out < params->mrdsl_in ? params->mrdsl_out : params->mrdsl_in;

    if (p->size <= most)
        return 0;
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "--size is more than the %" PRIu32
                        " bytes that this target and we take in one segment",
                        most);
}

static void run_pings(struct pinging *p)
{
    p->begin_ns = p->end_ns = net_now_exact(p->to.reactor);
    if (p->until_ns != NET_NEVER)
        p->until_ns += p->begin_ns;
    for (unsigned i = 0; i < p->depth && !is_over(p); i++) {
        p->slots[i].run = p;
        send_ping(&p->slots[i]);
    }
    while (p->flying > 0)
        net_run_once(p->to.reactor, patience);
}

static void print_trips(const struct pinging *p)
{
    char size[32];
    double seconds = (double)(p->end_ns - p->begin_ns) / 1e9;
    double bits = 8.0 * (double)p->size * (double)p->trips.count;

    printf("%s at %s: %" PRIu64 " of %" PRIu64 " pings of %s answered, depth %u, in %.3f s\n",
           p->to.url.target, link_portal(p->to.link), p->trips.count, p->sent,
           size_format(p->size, size, sizeof(size)), p->depth, seconds);
    if (p->trips.count)
        printf("round trip: p50 %.1f us, p99 %.1f us, max %.1f us; %.3f Gbit/s each way\n",
               (double)histogram_percentile(&p->trips, 0.5) / 1e3,
               (double)histogram_percentile(&p->trips, 0.99) / 1e3, (double)p->trips.max / 1e3,
               seconds > 0 ? bits / seconds / 1e9 : 0);
}

static int ping(struct pinging *p, const char *url, const struct iscsi_args *args,
                struct lp_error *err)
{
    p->slots = calloc(p->depth, sizeof(*p->slots));
    p->data = malloc(p->size + 1);
    if (!p->slots || !p->data)
        return lp_error_sys(err, ENOMEM, "cannot ping");
    for (uint32_t i = 0; i < p->size; i++)
        p->data[i] = (uint8_t)(i * 7 + (i >> 8));
    if (lun_link_open(&p->to, url, ISCSI_URL_TARGET, args, err) < 0 || check_size(p, err) < 0)
        return -1;
    run_pings(p);
    print_trips(p);
    if (p->failure == INI_OK)
        return 0;
    return lp_error_set(err, LP_ERROR_PEER, EIO, "a ping was not answered: %s",
                        ini_result_name(p->failure));
}

static int run(struct pinging *p, const char *url, const struct iscsi_args *args)
{
    struct lp_error err = {0};
    struct stop stop;
    int status;

    if (stop_begin(&stop, &err) != 0)
        return command_fail(&command_ping, &err);
    p->interrupted = &stop.interrupted;
    status = ping(p, url, args, &err);
    lun_link_close(&p->to);
    if (status == 0 && fflush(stdout) != 0)
        status = lp_error_sys(&err, errno, "the figures cannot be written to stdout");
    status = status == 0 ? STATUS_RIGHT : command_fail(&command_ping, &err);
    return stop_end(&stop, status);
}

static int cmd_ping(int argc, char **argv)
{
    struct option table[COMMAND_MAX_OPTIONS];
    struct option_value v[PING_OPTION_COUNT];
    const char *items[2];
    struct arguments arguments = {.items = items, .max = 2};
    struct iscsi_args args = {0};
    struct lp_error err = {0};
    struct pinging *p;
    int status;

    if (options_parse(table, ping_table(table), argc, argv, v, &arguments, &err) < 0)
        return command_fail(&command_ping, &err);
    p = calloc(1, sizeof(*p));
    if (!p)
        lp_error_sys(&err, ENOMEM, "cannot ping");
    else if (arguments.count != 1)
        lp_error_set(&err, LP_ERROR_USAGE, 0,
                     "name one target: lunpath ping iscsi://HOST[:PORT]/TARGET");
    if (err.domain != LP_ERROR_NONE || iscsi_args_take(v + PING_ISCSI, items[0], &args, &err) < 0) {
        status = command_fail(&command_ping, &err);
    } else {
        histogram_reset(&p->trips);
        p->size = v[PING_SIZE].given ? (uint32_t)v[PING_SIZE].number : DEFAULT_SIZE;
        p->depth = v[PING_DEPTH].given ? (unsigned)v[PING_DEPTH].number : 1;
        p->count = v[PING_COUNT].given     ? v[PING_COUNT].number
                   : v[PING_SECONDS].given ? 0
                                           : DEFAULT_COUNT;
        p->until_ns = v[PING_SECONDS].given ? (uint64_t)(v[PING_SECONDS].seconds * 1e9) : NET_NEVER;
        status = run(p, items[0], &args);
        free(p->slots);
        free(p->data);
    }
    iscsi_args_forget(&args);
    free(p);
    return status;
}

const struct command command_ping = {
    .name = "ping",
    .arguments = "[OPTION ...] iscsi://[USER@]HOST[:PORT]/TARGET",
    .summary = "measure round trips to an iSCSI target, without its disks",
    .more = "Sends NOP-Out and waits for the same bytes in NOP-In: the network and the protocol, "
            "no LUN.\nExit status: 0 all were answered, 1 not, 2 usage, 130 or 143 interrupted.",
    .options = ping_table,
    .run = cmd_ping,
};
