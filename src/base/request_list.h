/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests in order, linked by their next: what a queue holds, such as those that are done and wait
 * for poll(). All zero is empty. One thread, or the owner's lock. */
#ifndef BASE_REQUEST_LIST_H
#define BASE_REQUEST_LIST_H

#include <lunpath/queue.h>

struct request_list {
    struct lp_request *first;
    struct lp_request *last; /* means nothing while the list is empty */
    unsigned count;
};

static inline void list_add(struct request_list *list, struct lp_request *req)
{
    req->next = NULL;
    if (list->first)
        list->last->next = req;
    else
        list->first = req;
    list->last = req;
    list->count++;
}

/* The first one, taken out of the list; NULL: it is empty. */
static inline struct lp_request *list_take(struct request_list *list)
{
    struct lp_request *req = list->first;

    if (req) {
        list->first = req->next;
        list->count--;
    }
    return req;
}

/* Moves all of from behind what is in to. */
static inline void list_move(struct request_list *to, struct request_list *from)
{
    if (!from->first)
        return;
    if (to->first)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->count += from->count;
    *from = (struct request_list){0};
}

/* Takes all: what complete() adds to the list meanwhile stays for the next time. */
static inline struct request_list list_take_all(struct request_list *list)
{
    struct request_list all = *list;

    *list = (struct request_list){0};
    return all;
}

#endif
