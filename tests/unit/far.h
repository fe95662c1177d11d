/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scripted target on a loopback port, for tests of links and of the iscsi: disk: logins, a small
 * logical unit, and a hook that may answer any command otherwise. It lives on the reactor of the
 * test, with virtual time, or in a thread of its own (far_thread()); then the test touches it only
 * between far_lock(), which stops the thread between two turns of its loop, and far_unlock().
 */
#ifndef TESTS_FAR_H
#define TESTS_FAR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iscsi/pdu.h"
#include "net/net.h"

enum { FAR_CONNS = 64, FAR_ISIDS = 64, FAR_RAM = 1 << 20, FAR_IN = 128 << 10, FAR_LOG = 8192 };

#define SECOND UINT64_C(1000000000)
#define FAR_INITIATOR "iqn.2026-01.test:initiator"
#define FAR_TARGET "iqn.2026-01.test:disk"

struct far_reply {
    bool silent; /* it never comes */
    bool drop;   /* the connection is closed in its place */
    uint8_t status;
    uint8_t sense[64];
    unsigned sense_length;
    const void *data; /* Data-In */
    uint32_t n;
    uint32_t missing; /* residual: so many bytes less than the command said */
};

struct far_conn {
    struct far *far;
    struct net_stream *stream;
    uint8_t in[FAR_IN];
    size_t have;
    uint8_t *out;
    size_t out_length, out_done;
    uint32_t stat_sn, exp_cmd_sn;
    bool full; /* feature phase */
    bool close_after;
};

struct far {
    struct net_reactor *r;
    struct net_listener *listener;
    uint16_t port;

    /* ---- logins ---- */
    uint16_t login_status; /* 0: let in */
    unsigned refuse_times; /* 0: always, else so often; then let in */
    const char *redirect;  /* TargetAddress with a status of class 1; NULL: none is sent */
    const char *only_chap; /* the only CHAP_A list that is taken; NULL: no CHAP */
    bool close_on_chap;    /* closes in place of status 0201 */
    bool hang;             /* accepts and never answers a login */

    /* ---- the logical unit ---- */
    uint8_t type, qualifier;
    bool missing; /* there is none: 05/25/00 */
    uint32_t block_size;
    uint64_t blocks;
    uint8_t naa[8];
    char serial[16];
    uint8_t pages[8]; /* VPD pages, ascending */
    unsigned page_count;
    bool mode_pages, wce, dpofua, wp, lbpme, lbpu, lbpws;
    uint32_t max_transfer, max_unmap, granularity, alignment;
    uint64_t max_write_same;
    uint8_t *ram;
    /* true: *reply is the answer; else the logical unit's own. data: of a write */
    bool (*hook)(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                 struct far_reply *reply);
    void *hook_user;
    unsigned counter; /* the hook's own */
    int tmf;          /* its answer; -1: none */
    bool mute;        /* pings are not answered */

    /* ---- what came ---- */
    char log[FAR_LOG]; /* operation codes: "12 12:83 28 2a+fua 41 42" */
    size_t log_length;
    unsigned connects, logins, logouts, refused, commands, tmfs, pings;
    uint8_t tmf_functions[32];
    uint8_t isids[FAR_ISIDS][6];
    uint16_t tsihs[FAR_ISIDS];
    char offers[4][64]; /* CHAP_A lists */
    unsigned offer_count;
    char target_name[256]; /* of the last login */
    uint64_t connect_ns[FAR_ISIDS];

    struct far_conn *conns[FAR_CONNS];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool threaded, stop, pause, parked;
};

/* A disk of 2048 blocks of 512 bytes with all pages. address: "127.0.0.1" or "::1"; false: this
 * machine has it not. */
bool far_open(struct far *far, struct net_reactor *r, const char *address);
void far_thread(struct far *far); /* the same on 127.0.0.1 with a reactor and thread of its own */
void far_close(struct far *far);
void far_lock(struct far *far);
void far_unlock(struct far *far);
unsigned far_drop(struct far *far); /* closes every connection; returns how many there were */
void far_away(struct far *far);     /* and the port refuses connections */
void far_back(struct far *far);
bool far_logged(struct far *far, const char *text); /* and forgets the log */

void far_sense(struct far_reply *reply, uint8_t key, uint16_t asc); /* fixed format */
bool far_is(const struct iscsi_scsi_command *c, uint8_t opcode);

/* ---- inside ---- */

/* The logical unit's own answer. b: room for 512 bytes of Data-In, zeroed. */
void far_lun_answer(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                    uint8_t *b, struct far_reply *reply);

#endif
