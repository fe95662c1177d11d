/* SPDX-License-Identifier: BSD-2-Clause */
/* For those who use links without a disk: the same options, the same identifiers. */
#ifndef DISK_ISCSI_LINKS_H
#define DISK_ISCSI_LINKS_H

#include <lunpath/iscsi.h>

#include "initiator/link.h"
#include "initiator/url.h"

/* The options of a link as a user gave them. Strings are referred to. */
void iscsi_link_opts(const struct lp_iscsi_opts *o, const struct iscsi_url *url,
                     struct link_opts *l);

/* A random ISID that no other session has. 0 or -1. */
int iscsi_fresh_isid(uint8_t isid[6], struct lp_error *err);

#endif
