/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names to addresses. getaddrinfo() blocks and cannot be stopped, so each lookup has a thread of
 * its own, which owns its part of the job until it hands over the result:
 *
 *   thread:   fills error and list, then sets state to DONE (release) and wakes the reactor
 *   reactor:  sees DONE (acquire), joins the thread, calls back or throws the answer away
 *
 * The reactor joins every thread, at the latest when it is freed, so no answer outlives it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/net_int.h"

struct net_lookup {
    struct net_reactor *reactor;
    struct net_lookup *next;
    void (*done)(void *user, int error, struct addrinfo *list); /* NULL: abandoned */
    void *user;
    pthread_t thread;
    char *host, *port;
    int error;
    struct addrinfo *list;
    atomic_bool finished;
};

static void *look_up(void *arg)
{
    struct net_lookup *l = arg;
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICSERV,
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
    };

    l->error = getaddrinfo(l->host, l->port, &hints, &l->list);
    atomic_store_explicit(&l->finished, true, memory_order_release);
    net_wake(l->reactor);
    return NULL;
}

static void lookup_free(struct net_lookup *l)
{
    free(l->host);
    free(l->port);
    free(l);
}

/* Signals are the main thread's. */
static int start_thread(struct net_lookup *l)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&l->thread, NULL, look_up, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

struct net_lookup *net_lookup_start(struct net_reactor *r, const char *host, const char *port,
                                    void (*done)(void *user, int error, struct addrinfo *list),
                                    void *user)
{
    struct net_lookup *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->reactor = r;
    l->done = done;
    l->user = user;
    l->host = strdup(host);
    l->port = strdup(port);
    if (!l->host || !l->port || start_thread(l) != 0) {
        lookup_free(l);
        return NULL;
    }
    l->next = r->lookups;
    r->lookups = l;
    return l;
}

void net_lookup_abandon(struct net_lookup *l)
{
    l->done = NULL;
}

static void finish(struct net_lookup *l)
{
    pthread_join(l->thread, NULL);
    if (l->done)
        l->done(l->user, l->error, l->list);
    else if (l->list)
        freeaddrinfo(l->list);
    lookup_free(l);
}

int net_lookup_tell(struct net_reactor *r)
{
    struct net_lookup **at = &r->lookups;
    int count = 0;

    while (*at) {
        struct net_lookup *l = *at;

        if (!atomic_load_explicit(&l->finished, memory_order_acquire)) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        finish(l);
        count++;
        at = &r->lookups; /* the callback may have changed the list */
    }
    return count;
}

void net_lookup_end_all(struct net_reactor *r)
{
    while (r->lookups) {
        struct net_lookup *l = r->lookups;

        r->lookups = l->next;
        l->done = NULL;
        finish(l);
    }
}
