/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGINT and SIGTERM as a request: the first one sets a flag, so that what was found is still
 * shown; the second one ends the process at once. Either way the status is STATUS_SIGNAL and the
 * signal's number. A thread waits for them, so there is no handler and nothing global. One at a
 * time in a process.
 */
#ifndef APP_STOP_H
#define APP_STOP_H

#include <lunpath/error.h>
#include <pthread.h>
#include <signal.h>

struct stop {
    volatile sig_atomic_t interrupted; /* the first signal's number, else 0; read by any thread */
    sigset_t signals, before;
    pthread_t thread;
};

/* Before any other thread is started, since threads inherit what is blocked. s stays where it is
 * until stop_end(). 0 or -1. */
int stop_begin(struct stop *s, struct lp_error *err);

/* Returns the exit status: the given one, or that of the signal that came. */
int stop_end(struct stop *s, int status);

#endif
