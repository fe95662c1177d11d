/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening and accepting. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/net_int.h"

#define RETRY_NS UINT64_C(100000000)

enum { ACCEPTS = 16 }; /* in one turn */

struct net_listener {
    struct net_reactor *reactor;
    struct net_tcp_opts opts;
    void (*accepted)(void *user, struct net_stream *s);
    void *user;
    int fd;
    struct net_watch watch;
    struct net_timer retry;
    bool paused, starved;
    bool busy, dead; /* closed by its own callback: freed behind it */
    uint64_t starved_count;
    uint16_t port;
    char address[NET_ADDRESS_MAX];
};

static void update(struct net_listener *l)
{
    net_watch_events(l->reactor, &l->watch, l->paused || l->starved ? 0 : POLLIN);
}

static void retry(struct net_timer *timer)
{
    struct net_listener *l = timer->user;

    l->starved = false;
    update(l);
}

/* The connection stays in the backlog, and so the descriptor ready: without a rest the loop would
 * spin. */
static void starve(struct net_listener *l)
{
    l->starved_count++;
    /* Without memory for the timer it does spin, which is better than to be deaf. */
    l->starved = net_timer_set(l->reactor, &l->retry, net_now(l->reactor) + RETRY_NS) == 0;
    update(l);
}

/* False: that was all for now. */
static bool accept_one(struct net_listener *l)
{
    struct net_stream *s;
    int fd = accept(l->fd, NULL, NULL);

    if (fd < 0) {
        /* The peer may have gone while it waited. */
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
            return true;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            starve(l);
        return false;
    }
    if (net_prepare_fd(fd) < 0) {
        close(fd);
        return true;
    }
    s = net_stream_new(l->reactor, fd, &l->opts);
    if (s)
        l->accepted(l->user, s);
    return true;
}

static void listener_free(struct net_listener *l)
{
    net_timer_cancel(l->reactor, &l->retry);
    net_watch_stop(l->reactor, &l->watch);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

static void ready(struct net_watch *watch, int revents)
{
    struct net_listener *l = watch->user;

    (void)revents;
    l->busy = true;
    for (int i = 0; i < ACCEPTS && !l->dead && !l->paused && accept_one(l); i++)
        ;
    l->busy = false;
    if (l->dead)
        free(l);
}

/* ---- making ---- */

static const char *advice(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "another program listens there; stop it or choose another port";
    case EADDRNOTAVAIL:
        return "no interface of this machine has that address";
    case EACCES:
        return "ports below 1024 need privileges; choose a higher one";
    default:
        return "choose another address or port";
    }
}

static int set_on(int fd, int level, int name)
{
    int on = 1;

    return setsockopt(fd, level, name, &on, sizeof(on));
}

/* A descriptor that listens, or -1 with errno. */
static int open_at(const struct addrinfo *at, const struct net_tcp_opts *opts)
{
    int fd = socket(at->ai_family, SOCK_STREAM, 0);
    int error;

    if (fd < 0)
        return -1;
    if (net_prepare_fd(fd) < 0 || set_on(fd, SOL_SOCKET, SO_REUSEADDR) < 0)
        goto out;
    /* So that "*" can be bound beside "::". */
    if (at->ai_family == AF_INET6 && set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY) < 0)
        goto out;
    net_tcp_buffers(fd, opts);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
out:
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
    return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static int learn_address(struct net_listener *l)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);

    memset(&address, 0, sizeof(address));
    if (getsockname(l->fd, (struct sockaddr *)&address, &length) < 0)
        return -1;
    l->port = port_of(&address);
    net_address_text((struct sockaddr *)&address, length, l->address);
    return 0;
}

/* Numbers first; names of this machine are in a file, so that asking for them does not block. */
static int resolve(const char *host, const char *port, struct addrinfo **list)
{
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICSERV | AI_PASSIVE,
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
    };
    char bare[256];
    size_t length = strlen(host);

    if (length >= 2 && length < sizeof(bare) && host[0] == '[' && host[length - 1] == ']') {
        memcpy(bare, host + 1, length - 2);
        bare[length - 2] = '\0';
        host = bare;
    }
    if (net_numeric(host, port, true, list) == 0)
        return 0;
    return getaddrinfo(host, port, &hints, list);
}

static int listen_start(struct net_listener *l, const char *host, uint16_t port,
                        struct lp_error *err)
{
    struct addrinfo *list = NULL;
    char service[8];
    int error;

    snprintf(service, sizeof(service), "%u", port);
    error = resolve(host, service, &list);
    if (error)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "cannot listen on \"%.200s\": %s; write an address or name of this "
                            "machine",
                            host, gai_strerror(error));
    for (const struct addrinfo *at = list; at && l->fd < 0; at = at->ai_next)
        l->fd = open_at(at, &l->opts);
    error = errno;
    freeaddrinfo(list);
    if (l->fd < 0 || learn_address(l) < 0) {
        if (l->fd >= 0)
            error = errno;
        return lp_error_set(err, LP_ERROR_SYS, error, "cannot listen on %.200s port %u: %s; %s",
                            host, port, strerror(error), advice(error));
    }
    return net_watch_start(l->reactor, &l->watch, l->fd, POLLIN, err);
}

struct net_listener *net_listen(struct net_reactor *r, const char *host, uint16_t port,
                                const struct net_tcp_opts *opts,
                                void (*accepted)(void *user, struct net_stream *s), void *user,
                                struct lp_error *err)
{
    struct net_listener *l = calloc(1, sizeof(*l));

    if (!l) {
        lp_error_sys(err, ENOMEM, "listener");
        return NULL;
    }
    l->reactor = r;
    if (opts)
        l->opts = *opts;
    l->accepted = accepted;
    l->user = user;
    l->fd = -1;
    l->watch = (struct net_watch){.callback = ready, .user = l};
    l->retry = (struct net_timer){.callback = retry, .user = l};
    if (listen_start(l, host, port, err) == 0)
        return l;
    listener_free(l);
    return NULL;
}

uint16_t net_listener_port(const struct net_listener *l)
{
    return l->port;
}

const char *net_listener_address(const struct net_listener *l)
{
    return l->address;
}

void net_listener_pause(struct net_listener *l, bool pause)
{
    l->paused = pause;
    update(l);
}

uint64_t net_listener_starved(const struct net_listener *l)
{
    return l->starved_count;
}

void net_listener_close(struct net_listener *l)
{
    if (!l || l->dead)
        return;
    if (!l->busy) {
        listener_free(l);
        return;
    }
    net_timer_cancel(l->reactor, &l->retry);
    net_watch_stop(l->reactor, &l->watch);
    close(l->fd);
    l->fd = -1;
    l->dead = true;
}
