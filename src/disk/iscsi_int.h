/* SPDX-License-Identifier: BSD-2-Clause */
/* What iscsi.c and iscsi_request.c share. */
#ifndef DISK_ISCSI_INT_H
#define DISK_ISCSI_INT_H

#include <lunpath/iscsi.h>
#include <stdatomic.h>

#include "disk/disk_int.h"
#include "disk/iscsi_links.h"
#include "initiator/link.h"
#include "initiator/lun.h"
#include "initiator/url.h"

struct iscsi_queue;

/* A session of a queue. */
struct iscsi_path {
    struct iscsi_queue *queue;
    struct link *link;
    struct lun_probe probe;
    bool probing;
    bool again; /* the LUN has changed: look at all of it once the present probe has ended */
};

enum { ISCSI_UNMAP_LIST = 8 + 16, ISCSI_ZERO_SEGMENTS = 16 };

/* A request in flight. */
struct iscsi_slot {
    struct iscsi_queue *queue;
    struct iscsi_slot *next_free;
    struct lp_request *req;
    struct link_command command;
    uint64_t lba, blocks; /* what is left of a request that takes several commands */
    uint32_t step_blocks; /* of the command in flight */
    uint8_t list[ISCSI_UNMAP_LIST];
    struct iovec iov[ISCSI_ZERO_SEGMENTS];
};

struct iscsi_disk {
    struct lp_disk head;
    struct lp_iscsi_opts opts;
    struct iscsi_url url;
    struct lun_info info; /* as it was at the opening; filled once known, then constant */
    bool known, read_only;
    uint64_t isid_seed;
    atomic_uint next_qualifier;          /* queues may be opened by several threads */
    _Atomic(struct iscsi_queue *) spare; /* opened with the disk, for the first queue */
};

struct iscsi_queue {
    struct lp_queue head;
    struct iscsi_disk *disk;
    struct net_reactor *reactor;
    struct lun_info info; /* as its sessions saw it last */
    bool known;
    struct iscsi_path *paths;
    unsigned path_count, turn;
    unsigned depth; /* of the sessions */
    struct iscsi_slot *slots, *free;
    unsigned in_flight;
    struct request_list done;
    bool no_write_same; /* the target does not know it: zeros are written */
};

struct link *iscsi_queue_link(struct iscsi_queue *q);

/* Makes commands of slot->req until iscsi_slot_end(). */
void iscsi_request_begin(struct iscsi_slot *slot);
void iscsi_slot_end(struct iscsi_slot *slot, int status);

#endif
