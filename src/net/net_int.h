/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside net: what its files share. */
#ifndef NET_NET_INT_H
#define NET_NET_INT_H

#include <netdb.h>
#include <poll.h>

#include "net/net.h"

/* ---- engines: how readiness is learnt ---- */

struct net_event {
    unsigned slot;
    uint32_t generation;
    int revents;
};

enum { NET_EVENTS_MAX = 128 };

/* A watch's place in the engine. The generation tells a late event of an earlier watch. */
struct net_slot {
    struct net_watch *watch; /* NULL: free */
    uint32_t generation;
    int armed;    /* engine's: events that the kernel was asked for */
    bool changed; /* in reactor->changed: the engine has to look at it */
};

struct net_engine {
    const char *name;
    /* NULL: it does not work here. */
    void *(*open)(struct lp_error *err);
    void (*close)(void *engine);
    /* Passes on to the kernel what to watch: the slots in reactor->changed, which it empties.
     * wait() does it by itself; this is for reactors that somebody else waits on. */
    void (*arm)(void *engine, struct net_reactor *r);
    /* Takes a slot's watch back from the kernel before it returns, so that a close() that follows
     * closes for good. */
    void (*forget)(void *engine, struct net_reactor *r, unsigned slot);
    /* Arms, waits, fills events. Returns how many. */
    int (*wait)(void *engine, struct net_reactor *r, uint64_t timeout_ns, struct net_event *events,
                int max);
    int (*fd)(void *engine);
};

extern const struct net_engine net_engine_poll;

/* Best first, ended by NULL. */
extern const struct net_engine *const net_engines[];

struct net_stream;
struct net_lookup;

struct net_reactor {
    const struct net_engine *engine;
    void *state;
    uint64_t (*clock)(void *user);
    void *clock_user;
    uint64_t now, spin_ns;

    struct net_slot *slots;
    unsigned slot_count, slot_room;
    unsigned *changed; /* room for slot_room */
    unsigned changed_count;

    struct net_timer **timers; /* a heap by time; timer->index is its place + 1 */
    unsigned timer_count, timer_room;

    struct net_stream *senders;     /* want to send */
    struct net_stream *next_sender; /* where the flush that is going on continues */
    bool flushing;
    struct net_stream *ended;   /* closed is to be told */
    struct net_lookup *lookups; /* going on in threads */

    int wake_fds[2];
    struct net_watch wake_watch;
    struct net_reactor_stats stats;
};

/* Makes a descriptor non-blocking and close-on-exec. 0 or -1 with errno. */
int net_prepare_fd(int fd);

/* ---- addresses ---- */

enum { NET_ADDRESS_MAX = 80 }; /* [v6%scope]:port */

void net_address_text(const struct sockaddr *address, socklen_t length, char text[NET_ADDRESS_MAX]);

/* ---- streams ---- */

/* Buffer sizes: TCP needs them before it connects or listens, to choose its window scale. */
void net_tcp_buffers(int fd, const struct net_tcp_opts *opts);

/* Takes over a connected, prepared fd. NULL: out of memory, and the fd is closed. */
struct net_stream *net_stream_new(struct net_reactor *r, int fd, const struct net_tcp_opts *opts);
void net_stream_flush_all(struct net_reactor *r);
int net_stream_tell_ended(struct net_reactor *r); /* returns the number of callbacks */

/* ---- name lookup ---- */

/* Starts a lookup; done comes from inside net_run_once() with a list (freeaddrinfo() it) or with
 * getaddrinfo()'s error. Numeric addresses are never looked up: use net_numeric(). NULL: no thread
 * or memory. */
struct net_lookup *net_lookup_start(struct net_reactor *r, const char *host, const char *port,
                                    void (*done)(void *user, int error, struct addrinfo *list),
                                    void *user);
void net_lookup_abandon(struct net_lookup *lookup);
int net_lookup_tell(struct net_reactor *r); /* returns the number of callbacks */
void net_lookup_end_all(struct net_reactor *r);

/* getaddrinfo() for a numeric host; its error. passive: for listening. */
int net_numeric(const char *host, const char *port, bool passive, struct addrinfo **list);

#endif
