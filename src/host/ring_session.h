/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session: the life of one driver process, from the application's side.
 *
 * The driver is this program (or opts.driver_program) run again with RING_DRIVER_ARG, descriptor 3
 * being one end of a SOCK_SEQPACKET pair. The application sends one struct ring_config with the
 * descriptors of the memories and the disk; the driver answers one struct ring_reply when it
 * serves. After that the socket carries nothing: its end of file tells either side that the other
 * is gone.
 */
#ifndef HOST_RING_SESSION_H
#define HOST_RING_SESSION_H

#include "base/memory.h"
#include "host/ring.h"

#include <lunpath/host.h>
#include <pthread.h>

#define RING_DRIVER_ARG "--lunpath-ring-driver"
enum { RING_DRIVER_FD = 3, RING_CONFIG_FDS = 4, RING_URL_MAX = 4096 };

struct ring_config {
    uint32_t magic; /* RING_MAGIC: also the version of all of this */
    uint32_t queues, depth;
    uint32_t prep; /* enum lp_prep */
    uint32_t page_size;
    uint32_t may_spin;
    int32_t driver_cpu; /* queue i on driver_cpu + i; -1: not pinned */
    uint32_t engine;
    uint8_t read_only, buffered, zero_reads, small_pages;
    uint64_t arena_size, iommu_size; /* iommu_size 0: no preparation */
    uint32_t has_disk_fd;            /* the fourth descriptor is the disk's */
    char url[RING_URL_MAX];
};

struct ring_reply {
    uint32_t ok;
    char msg[512];  /* when not ok */
    char mode[128]; /* when ok: sandbox really obtained */
};

struct ring_session {
    struct memory control;
    int socket;
    pid_t pid;        /* 0: reaped; guarded by the host's lock */
    atomic_bool dead; /* set once, by the monitor */
    unsigned users;   /* queues that hold it, and the host; guarded by the host's lock */
    char mode[128];
};

/* Starts a driver and waits until it serves: at most 10 s, and no longer than until stop_event (-1:
 * none) can be read. NULL: see err. fds: arena, iommu or -1, disk or -1; they stay the caller's. */
struct ring_session *ring_session_start(const char *program, const struct ring_config *config,
                                        const int fds[3], int stop_event, struct lp_error *err);

/* Ends the process if it lives, reaps it, says how it ended ("killed by signal 9") in how (at
 * least 64 bytes), adds its CPU time to *cpu_ns. Called with no lock held, by one thread. */
void ring_session_reap(pid_t pid, char *how, size_t how_size, uint64_t *cpu_ns);
void ring_session_free(struct ring_session *s);

/* ---- the descriptor passing, used by both sides ---- */
int ring_send_config(int socket, const struct ring_config *config, const int *fds, unsigned count);
/* Receives into *config and fds[RING_CONFIG_FDS] (close-on-exec, -1 where absent). 0 or -errno. */
int ring_recv_config(int socket, struct ring_config *config, int *fds);

#endif
