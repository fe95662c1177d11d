/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The embedded iSCSI target: targets with logical units on any disks, served on any portals.
 *
 *     server = target_server_new(reactor, &opts, &err);
 *     t = target_add(server, &target_opts, &err);  target_add_lun(t, disk, &lu_opts, &err);
 *     target_listen(server, "127.0.0.1", 3260, 1, &err);
 *     target_server_run(server)                     until target_server_stop()
 *
 * Threads: everything happens on the thread that runs the server; target_server_stop() may be
 * called from a signal handler.
 * Memory: a command's data lie in a buffer of the server's pool, at most opts.memory in all; beyond
 * that commands are answered BUSY. A session takes about 0.7 KiB for each command of its depth and
 * 150 KiB for each connection.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <lunpath/disk.h>
#include <lunpath/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "iscsi/tgt.h"
#include "net/net.h"
#include "scsi/lu.h"

struct target_server;
struct target;

struct target_server_opts {
    unsigned depth;                                    /* commands of a session; 0: 128 */
    unsigned sessions;                                 /* 0: 1024 */
    unsigned connections;                              /* 0: 1024 */
    uint64_t memory;                                   /* bytes for data in flight; 0: 256 MiB */
    enum iscsi_digest_wish header_digest, data_digest; /* what is agreed to: PREFER_NONE agrees
                                                        * with either */
    void (*log)(void *user, const char *sentence);
    void *user;
};

struct target_server *target_server_new(struct net_reactor *r,
                                        const struct target_server_opts *opts,
                                        struct lp_error *err);
void target_server_free(struct target_server *s);

/* A portal. port 0: a free one. Returns the port, or -1. */
int target_listen(struct target_server *s, const char *host, uint16_t port, uint16_t group,
                  struct lp_error *err);

/* Until target_server_stop(): then sessions are asked to log out, and after grace_s at most it
 * returns. */
void target_server_run(struct target_server *s, unsigned grace_s);
void target_server_stop(struct target_server *s);

/* One turn of the loop, for those who run it themselves; waits at most timeout_ns. */
void target_server_turn(struct target_server *s, uint64_t timeout_ns);

struct target_user {
    const char *name;
    const char *secret;
    const char *initiator_name; /* the only one that may use it; NULL: any */
};

struct target_opts {
    const char *name; /* iqn. ... */
    const char *alias;
    const struct target_user *users; /* copied; none: no authentication */
    unsigned user_count;
    struct target_user mutual;     /* who we are for those who ask; name NULL: nobody */
    const char *const *initiators; /* access list; NULL: everybody */
    unsigned initiator_count;
    const char *moved_to; /* TargetAddress to redirect to; NULL: it is here */
    bool moved_for_good;
};

/* Strings are copied. NULL: see err. */
struct target *target_add(struct target_server *s, const struct target_opts *opts,
                          struct lp_error *err);

/* The disk stays the caller's and outlives the server. opts->number is the LUN; target_name, ports,
 * depth and the LUN list are filled in here. The first LUN comes before the first session. */
struct lu *target_add_lun(struct target *t, struct lp_disk *disk, const struct lu_opts *opts,
                          struct lp_error *err);

struct lu *target_lun(struct target *t, uint32_t number);              /* NULL: there is none */
struct target *target_find(struct target_server *s, const char *name); /* NULL name: the first */

/* ---- faults, for tests ---- */

unsigned target_drop_connections(struct target_server *s);       /* closes them; returns how many */
void target_stall(struct target_server *s, bool stalled);        /* reads nothing */
void target_refuse(struct target_server *s, uint16_t status);    /* logins; 0: no more */
void target_swallow(struct target_server *s, unsigned commands); /* takes and never answers them */
void target_busy(struct target_server *s, uint8_t status, unsigned commands); /* answers with it */

const struct tgt_counters *target_counters(const struct target_server *s);

#endif
