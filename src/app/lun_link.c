/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/lun_link.h"

#include "disk/iscsi_links.h"
#include "initiator/lun.h"

static const uint64_t logout_ns = 2000000000;

int lun_link_open(struct lun_link *l, const char *url, enum iscsi_url_needs needs,
                  const struct iscsi_args *args, struct lp_error *err)
{
    struct link_opts opts;

    if (iscsi_url_parse(url, needs, &l->url, err) < 0)
        return -1;
    l->reactor = net_reactor_new(NULL, err);
    if (!l->reactor)
        return -1;
    iscsi_link_opts(&args->opts, &l->url, &opts);
    if (iscsi_fresh_isid(opts.login.isid, err) < 0)
        return -1;
    l->link = link_open(l->reactor, &opts, err);
    return l->link ? link_wait(l->link, 0, err) : -1;
}

void lun_link_close(struct lun_link *l)
{
    link_close(l->link, logout_ns);
    net_reactor_free(l->reactor);
}
