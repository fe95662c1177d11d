/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reactor and TCP byte streams on it. Knows nothing of what the bytes mean.
 *
 * Threads: a reactor with all that hangs on it belongs to one thread; only net_wake() may be
 * called from elsewhere. Callbacks come from inside net_run_once() and nowhere else. They may call
 * every function here but net_run_once() and net_reactor_free().
 *
 * Memory: buffers are the user's. The kernel is given them for the length of one system call only,
 * so nothing of a stream is in use any more once net_stream_close() has returned.
 *
 * Reading and writing are non-blocking system calls on readiness: a read is tried when the kernel
 * says that there is something, and everything that was queued during a turn of the loop goes out
 * with one write before the loop sleeps. The engines differ in how they learn of readiness.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define NET_NEVER UINT64_MAX

/* ---- reactor ---- */

struct net_reactor;

struct net_reactor_opts {
    const char *engine; /* "uring", "poll", or NULL: the best that works here */
    uint64_t spin_ns;   /* look for events so long before sleeping; costs a CPU, saves wake-ups */
    uint64_t (*clock)(void *user); /* monotonic ns; NULL: the system's */
    void *clock_user;
};

struct net_reactor *net_reactor_new(const struct net_reactor_opts *opts, struct lp_error *err);

/* Everything on it is closed, cancelled or freed before. */
void net_reactor_free(struct net_reactor *r);

const char *net_reactor_engine(const struct net_reactor *r);

/* Sends what waits, sleeps at most timeout_ns (0: not at all; NET_NEVER) for events or timers, and
 * calls back for them. Returns how many callbacks it made. */
int net_run_once(struct net_reactor *r, uint64_t timeout_ns);

/* Makes a sleeping net_run_once() return. From any thread and from signal handlers. */
void net_wake(struct net_reactor *r);

/* Monotonic ns as of the last wake-up; net_now_exact() asks the clock. */
uint64_t net_now(const struct net_reactor *r);
uint64_t net_now_exact(struct net_reactor *r);

/* Readable when net_run_once(r, 0) would find an event (not for timers: see net_deadline()). -1:
 * this engine has none. Before somebody else sleeps on it net_flush() must be called. */
int net_reactor_fd(const struct net_reactor *r);
uint64_t net_deadline(const struct net_reactor *r); /* when to call net_run_once() at the latest */

/* Sends what waits, and tells the kernel what to watch. */
void net_flush(struct net_reactor *r);

struct net_reactor_stats {
    uint64_t waits;        /* system calls to wait or to say what to wait for */
    uint64_t recvs, sends; /* system calls */
    uint64_t bytes_in, bytes_out;
};

const struct net_reactor_stats *net_reactor_stats(const struct net_reactor *r);

/* ---- timers ---- */

/* Zeroed, callback set, to begin with. */
struct net_timer {
    void (*callback)(struct net_timer *timer);
    void *user;
    uint64_t at; /* private from here on */
    unsigned index;
};

/* Calls back once at that time (or at once, if it has passed), in place of an earlier setting.
 * 0, or -1: out of memory; never fails for a timer that is set. */
int net_timer_set(struct net_reactor *r, struct net_timer *timer, uint64_t at_ns);
void net_timer_cancel(struct net_reactor *r, struct net_timer *timer);

/* ---- watches ---- */

/* Calls back while fd is ready for one of events (POLLIN, POLLOUT; errors and hang-ups always):
 * level-triggered. Zeroed to begin with. */
struct net_watch {
    void (*callback)(struct net_watch *watch, int revents);
    void *user;
    int fd; /* private from here on */
    int events;
    unsigned slot;
    bool on;
};

/* 0 or -1: out of memory, *err says so. */
int net_watch_start(struct net_reactor *r, struct net_watch *watch, int fd, int events,
                    struct lp_error *err);
void net_watch_events(struct net_reactor *r, struct net_watch *watch, int events); /* 0: pause */
void net_watch_stop(struct net_reactor *r, struct net_watch *watch);

/* ---- streams ---- */

struct net_stream;

/* All required. */
struct net_stream_ops {
    /* Where the next bytes go: at most max segments; 0: none are wanted until
     * net_stream_want_read(). */
    unsigned (*recv_space)(void *user, struct iovec *iov, unsigned max);
    void (*received)(void *user, size_t n);
    /* What to send next: at most max segments; 0: nothing until net_stream_want_send(). The same
     * bytes must come again until sent(). */
    unsigned (*send_data)(void *user, struct iovec *iov, unsigned max);
    void (*sent)(void *user, size_t n);
    /* The stream has ended: the peer closed it (why->code 0), or an error. Comes once, after all
     * received bytes were told (but those that recv_space refuses while the connection is broken),
     * and not after net_stream_close(). The stream stays until net_stream_close(). While recv_space
     * refuses and there is nothing to send, it does not come. */
    void (*closed)(void *user, const struct lp_error *why);
};

struct net_tcp_opts {
    bool nagle;                /* leave Nagle's algorithm on */
    unsigned keepalive_idle_s; /* 0: no keepalive */
    unsigned keepalive_interval_s;
    unsigned keepalive_count;
    unsigned send_buffer, recv_buffer; /* bytes, 0: the system's choice */
};

/* Until then nothing is read or sent. The first callbacks come from the loop, send_data among them.
 */
void net_stream_start(struct net_stream *s, const struct net_stream_ops *ops, void *user);

/* Something is to be sent: send_data is called before the loop sleeps next. */
void net_stream_want_send(struct net_stream *s);
void net_stream_want_read(struct net_stream *s);

/* Ends the stream and frees it. Bytes that the kernel has taken are still sent, unless some that
 * the peer sent were not read: TCP answers those with a reset (RFC 1122 4.2.2.13), which may
 * overtake what was sent last. Who wants a last word to arrive waits for sent(), and then reads on
 * until closed(). */
void net_stream_close(struct net_stream *s);

/* Both ends as text: 192.0.2.1:3260, [2001:db8::1]:3260. Stay with the stream. */
const char *net_stream_peer(const struct net_stream *s);
const char *net_stream_local(const struct net_stream *s);

struct net_reactor *net_stream_reactor(const struct net_stream *s);

/* ---- connecting ---- */

struct net_connect_opts {
    struct net_tcp_opts tcp;
    uint64_t attempt_ns; /* an address has so long; 0: 10 s */
    uint64_t total_ns;   /* all together, name lookup included; 0: 30 s */
};

struct net_connect;

/* Connects to a name or address (brackets round IPv6 are fine). Names are looked up in a thread of
 * their own. Several addresses are tried in the order of getaddrinfo(), the next one when one has
 * failed or has been silent for 250 ms, side by side; the first that answers wins (as RFC 8305
 * does, so that one dead address costs a quarter second and not a time-out).
 * done: exactly once, with a stream or with NULL and a sentence that names each address tried and
 * why it failed. NULL: out of memory. */
struct net_connect *net_connect(struct net_reactor *r, const char *host, uint16_t port,
                                const struct net_connect_opts *opts,
                                void (*done)(void *user, struct net_stream *s,
                                             const struct lp_error *why),
                                void *user, struct lp_error *err);

/* Gives up; done is not called. Not after done. */
void net_connect_cancel(struct net_connect *c);

/* ---- listening ---- */

struct net_listener;

/* host: a numeric address or a name of this machine; "*" and "::" for all (one family each, so that
 * both can be bound). port 0: a free one. accepted: takes over the stream. */
struct net_listener *net_listen(struct net_reactor *r, const char *host, uint16_t port,
                                const struct net_tcp_opts *opts,
                                void (*accepted)(void *user, struct net_stream *s), void *user,
                                struct lp_error *err);
uint16_t net_listener_port(const struct net_listener *l);
const char *net_listener_address(const struct net_listener *l); /* as net_stream_local() */
void net_listener_pause(struct net_listener *l, bool pause);

/* How often accepting had to stop for lack of descriptors or memory. It is tried again every 100
 * ms; until then connections wait in the backlog. */
uint64_t net_listener_starved(const struct net_listener *l);
void net_listener_close(struct net_listener *l);

/* "host", "host:port", "[v6]", "[v6]:port", with or without ",tag" behind (RFC 7143 13.8): splits
 * it. port stays as it is when none is given; tag is -1 then. 0, or -1 and a sentence. */
int net_address_split(const char *address, char *host, size_t size, uint16_t *port, int *tag,
                      struct lp_error *err);

#endif
