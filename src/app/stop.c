/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/stop.h"

#include "app/commands.h"

#include <unistd.h>

static void *wait_for_signals(void *arg)
{
    struct stop *s = arg;
    int number;

    while (sigwait(&s->signals, &number) != 0)
        ;
    s->interrupted = number;
    while (sigwait(&s->signals, &number) != 0)
        ;
    /* The live view ends without a line end. */
    if (isatty(STDERR_FILENO) && write(STDERR_FILENO, "\n", 1) < 0)
        _exit(STATUS_FAILED);
    _exit(STATUS_SIGNAL + number);
}

int stop_begin(struct stop *s, struct lp_error *err)
{
    s->interrupted = 0;
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &s->signals, &s->before);
    int e = pthread_create(&s->thread, NULL, wait_for_signals, s);
    if (e == 0)
        return 0;
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    return lp_error_sys(err, e, "cannot start the thread that waits for Ctrl-C");
}

int stop_end(struct stop *s, int status)
{
    pthread_cancel(s->thread); /* sigwait() is where it can be cancelled */
    pthread_join(s->thread, NULL);
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    return s->interrupted ? STATUS_SIGNAL + s->interrupted : status;
}
