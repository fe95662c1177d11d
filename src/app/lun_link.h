/* SPDX-License-Identifier: BSD-2-Clause */
/* A session to a target for commands that want no disk: connected, logged in, up. */
#ifndef APP_LUN_LINK_H
#define APP_LUN_LINK_H

#include "app/iscsi_args.h"
#include "initiator/link.h"
#include "initiator/url.h"

struct lun_link {
    struct iscsi_url url;
    struct net_reactor *reactor;
    struct link *link;
};

/* Zeroed before. args stays. 0, or -1 and why; lun_link_close() is due either way. */
int lun_link_open(struct lun_link *l, const char *url, enum iscsi_url_needs needs,
                  const struct iscsi_args *args, struct lp_error *err);

/* Logs out, waiting two seconds at most. */
void lun_link_close(struct lun_link *l);

#endif
