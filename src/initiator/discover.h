/* SPDX-License-Identifier: BSD-2-Clause */
/* SendTargets discovery (RFC 7143 4.3, App. C). */
#ifndef INITIATOR_DISCOVER_H
#define INITIATOR_DISCOVER_H

#include "initiator/link.h"

/* One address of one target, as the portal told it. */
struct discovered {
    const char *target; /* all pointers: until the callback returns */
    const char *host;   /* without brackets */
    uint16_t port;
    int portal_group; /* -1: not told */
};

/* Logs in for discovery (opts->login.discovery and target_name are set here), lists every target
 * with every address, logs out. A target without an address is at the portal itself. Runs the
 * reactor. 0, or -1 and why. */
int discover(struct net_reactor *r, const struct link_opts *opts,
             void (*each)(void *user, const struct discovered *found), void *user,
             struct lp_error *err);

#endif
