/* SPDX-License-Identifier: BSD-2-Clause */
/* Where there is no futex and no sealed memory there is no ring host, and it says so. */
#include "host/host_type.h"

#include <errno.h>

static int ring_start(struct lp_host *h, struct lp_error *err)
{
    (void)h;
    return lp_error_set(err, LP_ERROR_USAGE, ENOSYS,
                        "host ring needs Linux and this build is the portable one: use inline");
}

static void ring_stop(struct lp_host *h)
{
    (void)h;
}

const struct host_type host_ring = {
    .name = "ring",
    .help = "not in this build: needs Linux",
    .start = ring_start,
    .stop = ring_stop,
};

int lp_ring_driver_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return -1;
}
