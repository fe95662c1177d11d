/* SPDX-License-Identifier: BSD-2-Clause */
/* A link to the scripted target of far.h, on one reactor and on virtual time. */
#ifndef TESTS_LINK_RIG_H
#define TESTS_LINK_RIG_H

#include "far.h"
#include "initiator/link.h"
#include "initiator/lun.h"

struct rig {
    uint64_t now; /* virtual */
    struct net_reactor *r;
    struct far far;
    struct link_opts opts;
    struct link *link;
    struct lun_probe probe;
    bool probed, checks; /* a check probes the LUN */
    struct lun_info known;
    struct lp_error why; /* of the last probe */
    unsigned failed, downs, attentions;
    uint16_t asc;
    char log[8192];
};

int rig_set_up(void **state);
int rig_tear_down(void **state);
void rig_link(struct rig *g); /* opens it */
/* Time goes on whenever nothing else happens, until *flag, or a virtual limit: fails then. */
void rig_until(struct rig *g, bool (*is)(struct rig *g, void *arg), void *arg);
void rig_up(struct rig *g);
/* Time goes on by so much, and everything that falls into it happens. */
void rig_pass(struct rig *g, uint64_t ns);

struct io {
    struct link_command c;
    struct iovec iov;
    uint8_t data[4096];
    unsigned done;
    uint64_t at; /* when */
    struct rig *rig;
};

/* READ(10) or WRITE(10) of blocks at lba. Submitted. */
void io_read(struct rig *g, struct io *io, uint32_t lba, uint16_t blocks);
void io_write(struct rig *g, struct io *io, uint32_t lba, uint16_t blocks, uint8_t byte);
int io_wait(struct rig *g, struct io *io); /* its status */

#define LINK_TEST(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

#endif
