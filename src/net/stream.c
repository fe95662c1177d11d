/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected streams. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/net_int.h"

#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0
#endif

enum {
    SEGMENTS = 256, /* of one system call */
    ROUNDS = 4,     /* reads or writes of one stream before the others have their turn */
};

struct net_stream {
    struct net_reactor *reactor;
    const struct net_stream_ops *ops;
    void *user;
    struct net_watch watch;
    int fd;
    int busy;             /* callbacks that are running */
    bool dead;            /* closed by its user, freed when it is no longer busy */
    int write_error;      /* nothing can be sent; what was received before is still read */
    bool over;            /* ended; told is to come or has come */
    bool sending, ending; /* in the reactor's lists */
    struct net_stream *next_sender, *prev_sender, *next_ended;
    struct lp_error why;
    char peer[NET_ADDRESS_MAX], local[NET_ADDRESS_MAX];
};

/* ---- lists ---- */

static void sender_add(struct net_stream *s)
{
    struct net_reactor *r = s->reactor;

    if (s->sending)
        return;
    s->sending = true;
    s->prev_sender = NULL;
    s->next_sender = r->senders;
    if (r->senders)
        r->senders->prev_sender = s;
    r->senders = s;
}

static void sender_remove(struct net_stream *s)
{
    if (!s->sending)
        return;
    s->sending = false;
    if (s->prev_sender)
        s->prev_sender->next_sender = s->next_sender;
    else
        s->reactor->senders = s->next_sender;
    if (s->next_sender)
        s->next_sender->prev_sender = s->prev_sender;
    if (s->reactor->next_sender == s)
        s->reactor->next_sender = s->next_sender;
}

static void ended_remove(struct net_stream *s)
{
    struct net_stream **at = &s->reactor->ended;

    if (!s->ending)
        return;
    while (*at != s)
        at = &(*at)->next_ended;
    *at = s->next_ended;
    s->ending = false;
}

/* The stream is over; its user is told from the loop, never from inside its own call. */
static void end(struct net_stream *s, int errnum)
{
    if (s->over)
        return;
    s->over = true;
    if (errnum)
        lp_error_sys(&s->why, errnum, "the connection to %s broke", s->peer);
    else
        lp_error_set(&s->why, LP_ERROR_PEER, 0, "%s closed the connection", s->peer);
    net_watch_stop(s->reactor, &s->watch);
    sender_remove(s);
    s->ending = true;
    s->next_ended = s->reactor->ended;
    s->reactor->ended = s;
}

int net_stream_tell_ended(struct net_reactor *r)
{
    int count = 0;

    while (r->ended) {
        struct net_stream *s = r->ended;

        ended_remove(s);
        s->ops->closed(s->user, &s->why);
        count++;
    }
    return count;
}

/* ---- reading and writing ---- */

static size_t total(const struct iovec *iov, unsigned count)
{
    size_t n = 0;

    for (unsigned i = 0; i < count; i++)
        n += iov[i].iov_len;
    return n;
}

static void want(struct net_stream *s, int events, bool on)
{
    net_watch_events(s->reactor, &s->watch,
                     on ? s->watch.events | events : s->watch.events & ~events);
}

/* One read. True: it filled its space, there may be more. */
static bool read_once(struct net_stream *s)
{
    struct iovec iov[SEGMENTS];
    struct msghdr msg = {.msg_iov = iov};
    unsigned count = s->ops->recv_space(s->user, iov, SEGMENTS);
    ssize_t n;

    if (s->dead)
        return false;
    /* A read of no bytes would look like the end. */
    if (total(iov, count) == 0) {
        want(s, POLLIN, false);
        return false;
    }
    msg.msg_iovlen = count;
    do {
        s->reactor->stats.recvs++;
        n = recvmsg(s->fd, &msg, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            end(s, errno);
        return false;
    }
    if (n == 0) {
        end(s, s->write_error);
        return false;
    }
    s->reactor->stats.bytes_in += (uint64_t)n;
    s->ops->received(s->user, (size_t)n);
    return !s->dead && !s->over && (size_t)n == total(iov, count);
}

/* One write. True: everything that was offered went out, there may be more. */
static bool write_once(struct net_stream *s)
{
    struct iovec iov[SEGMENTS];
    struct msghdr msg = {.msg_iov = iov};
    unsigned count = s->ops->send_data(s->user, iov, SEGMENTS);
    ssize_t n;

    if (s->dead)
        return false;
    if (total(iov, count) == 0) {
        sender_remove(s);
        want(s, POLLOUT, false);
        return false;
    }
    msg.msg_iovlen = count;
    do {
        s->reactor->stats.sends++;
        n = sendmsg(s->fd, &msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
        /* What the peer said before it went may still be there to be read. */
        s->write_error = errno;
        sender_remove(s);
        want(s, POLLOUT, false);
        want(s, POLLIN, true);
        return false;
    }
    if (n >= 0) {
        s->reactor->stats.bytes_out += (uint64_t)n;
        s->ops->sent(s->user, (size_t)n);
        if (s->dead)
            return false;
    }
    if (n < 0 || (size_t)n < total(iov, count)) {
        sender_remove(s);
        want(s, POLLOUT, true); /* the socket is full: the kernel says when there is room */
        return false;
    }
    return true;
}

static void leave(struct net_stream *s)
{
    if (--s->busy == 0 && s->dead)
        free(s);
}

static void write_some(struct net_stream *s)
{
    s->busy++;
    for (int i = 0; i < ROUNDS && !s->write_error && !s->over && write_once(s); i++)
        ;
    leave(s);
}

void net_stream_flush_all(struct net_reactor *r)
{
    if (r->flushing)
        return; /* asked for by one of the callbacks below */
    r->flushing = true;
    /* One round: whoever has still more stays in the list, and the loop does not sleep. */
    r->next_sender = r->senders;
    while (r->next_sender) {
        struct net_stream *s = r->next_sender;

        /* Its callbacks may end any stream: sender_remove() keeps the place. */
        r->next_sender = s->next_sender;
        write_some(s);
    }
    r->flushing = false;
}

/* The connection is broken, and its user does not read just now and so would not find out. */
static void broken(struct net_stream *s)
{
    int errnum = 0;
    socklen_t length = sizeof(errnum);

    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &errnum, &length);
    if (errnum == 0)
        errnum = s->write_error ? s->write_error : ECONNRESET;
    end(s, errnum);
}

static void ready(struct net_watch *watch, int revents)
{
    struct net_stream *s = watch->user;

    s->busy++;
    if (revents & POLLOUT)
        sender_add(s);
    if (revents & (POLLIN | POLLERR | POLLHUP))
        for (int i = 0; i < ROUNDS && !s->dead && read_once(s); i++)
            ;
    if (!s->dead && !s->over && (revents & (POLLERR | POLLHUP)) && !(s->watch.events & POLLIN))
        broken(s);
    leave(s);
}

/* ---- making and ending ---- */

static void set_option(int fd, int level, int name, int value)
{
    /* A wish: where it cannot be granted the stream works without. */
    setsockopt(fd, level, name, &value, sizeof(value));
}

void net_tcp_buffers(int fd, const struct net_tcp_opts *o)
{
    if (o->send_buffer)
        set_option(fd, SOL_SOCKET, SO_SNDBUF, (int)o->send_buffer);
    if (o->recv_buffer)
        set_option(fd, SOL_SOCKET, SO_RCVBUF, (int)o->recv_buffer);
}

static void apply(int fd, const struct net_tcp_opts *o)
{
    if (!o->nagle)
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
#if defined(SO_NOSIGPIPE)
    set_option(fd, SOL_SOCKET, SO_NOSIGPIPE, 1); /* where MSG_NOSIGNAL is missing */
#endif
    if (o->keepalive_idle_s == 0)
        return;
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE)
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)o->keepalive_idle_s);
#endif
#if defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    if (o->keepalive_interval_s)
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)o->keepalive_interval_s);
    if (o->keepalive_count)
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)o->keepalive_count);
#endif
}

static void learn_addresses(struct net_stream *s)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);

    if (getpeername(s->fd, (struct sockaddr *)&address, &length) == 0)
        net_address_text((struct sockaddr *)&address, length, s->peer);
    else
        snprintf(s->peer, sizeof(s->peer), "the peer");
    length = sizeof(address);
    if (getsockname(s->fd, (struct sockaddr *)&address, &length) == 0)
        net_address_text((struct sockaddr *)&address, length, s->local);
}

struct net_stream *net_stream_new(struct net_reactor *r, int fd, const struct net_tcp_opts *opts)
{
    struct net_stream *s = calloc(1, sizeof(*s));

    if (!s) {
        close(fd);
        return NULL;
    }
    s->reactor = r;
    s->fd = fd;
    apply(fd, opts);
    learn_addresses(s);
    s->watch = (struct net_watch){.callback = ready, .user = s};
    if (net_watch_start(r, &s->watch, fd, 0, NULL) < 0) {
        close(fd);
        free(s);
        return NULL;
    }
    return s;
}

void net_stream_start(struct net_stream *s, const struct net_stream_ops *ops, void *user)
{
    s->ops = ops;
    s->user = user;
    want(s, POLLIN, true);
    sender_add(s); /* it may have something already */
}

void net_stream_want_send(struct net_stream *s)
{
    /* With POLLOUT on, the socket is full and the kernel will tell. */
    if (s->ops && !s->over && !s->write_error && !(s->watch.events & POLLOUT))
        sender_add(s);
}

void net_stream_want_read(struct net_stream *s)
{
    if (!s->over)
        want(s, POLLIN, true);
}

void net_stream_close(struct net_stream *s)
{
    if (!s || s->dead)
        return;
    net_watch_stop(s->reactor, &s->watch);
    sender_remove(s);
    ended_remove(s);
    close(s->fd);
    s->dead = true;
    if (s->busy == 0)
        free(s);
}

const char *net_stream_peer(const struct net_stream *s)
{
    return s->peer;
}

const char *net_stream_local(const struct net_stream *s)
{
    return s->local;
}

struct net_reactor *net_stream_reactor(const struct net_stream *s)
{
    return s->reactor;
}
