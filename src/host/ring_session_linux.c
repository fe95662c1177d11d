/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "host/ring_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_TIMEOUT_MS = 10000 };

int ring_send_config(int socket, const struct ring_config *config, const int *fds, unsigned count)
{
    struct iovec iov = {(void *)(uintptr_t)config, sizeof *config};
    union {
        char buf[CMSG_SPACE(RING_CONFIG_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    memset(&control, 0, sizeof control);
    msg.msg_control = control.buf;
    msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    return sendmsg(socket, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof *config ? 0 : -errno;
}

int ring_recv_config(int socket, struct ring_config *config, int *fds)
{
    struct iovec iov = {config, sizeof *config};
    union {
        char buf[CMSG_SPACE(RING_CONFIG_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.buf,
                         .msg_controllen = sizeof control.buf};
    for (int i = 0; i < RING_CONFIG_FDS; i++)
        fds[i] = -1;

    ssize_t n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    return n == (ssize_t)sizeof *config ? 0 : -EPROTO;
}

/* Between fork and exec: only calls that are safe after fork in a program with threads. */
__attribute__((noreturn)) static void exec_driver(const char *program, int socket)
{
    char arg0[] = "lunpath-driver", arg1[] = RING_DRIVER_ARG;
    char *argv[] = {arg0, arg1, NULL};
    sigset_t none;
    int null = open("/dev/null", O_RDWR);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid(); /* a Ctrl-C for the application is not for the driver */
    dup2(null, 0);
    dup2(null, 1);
    dup2(socket, RING_DRIVER_FD);
    syscall(SYS_close_range, RING_DRIVER_FD + 1, ~0u, 0);
    execv(program, argv);
    _exit(127);
}

static int await_reply(struct ring_session *s, int stop_event, struct lp_error *err)
{
    struct ring_reply reply;
    struct pollfd p[2] = {{.fd = s->socket, .events = POLLIN},
                          {.fd = stop_event, .events = POLLIN}}; /* -1 is never ready */
    int ready;

    do
        ready = poll(p, 2, START_TIMEOUT_MS);
    while (ready < 0 && errno == EINTR);
    if (ready > 0 && p[1].revents != 0)
        return lp_error_set(err, LP_ERROR_SYS, ECANCELED,
                            "the driver process was ended while it started: the host stops");
    if (ready == 0)
        return lp_error_set(err, LP_ERROR_PEER, ETIMEDOUT,
                            "the driver process did not start within 10 s");
    ssize_t n = recv(s->socket, &reply, sizeof reply, 0);
    if (n != (ssize_t)sizeof reply)
        return lp_error_set(err, LP_ERROR_PEER, EIO,
                            "the driver process ended while it started: is this program one that "
                            "calls lp_ring_driver_main()?");
    reply.msg[sizeof reply.msg - 1] = '\0';
    reply.mode[sizeof reply.mode - 1] = '\0';
    if (!reply.ok)
        return lp_error_set(err, LP_ERROR_PEER, EIO, "driver process: %s", reply.msg);
    snprintf(s->mode, sizeof s->mode, "%s", reply.mode);
    return 0;
}

static int launch(struct ring_session *s, const char *program, struct lp_error *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return lp_error_sys(err, errno, "cannot make the driver's control socket");
    /* exec_driver() puts the socket at descriptor 3; were it there already, dup2 would keep its
     * close-on-exec flag. */
    int child_end = pair[1] == RING_DRIVER_FD ? fcntl(pair[1], F_DUPFD_CLOEXEC, 4) : pair[1];
    s->socket = pair[0];
    s->pid = fork();
    if (s->pid == 0)
        exec_driver(program ? program : "/proc/self/exe", child_end);
    int e = errno;
    if (child_end != pair[1])
        close(child_end);
    close(pair[1]);
    if (s->pid < 0) {
        s->pid = 0;
        return lp_error_sys(err, e, "cannot start the driver process");
    }
    return 0;
}

struct ring_session *ring_session_start(const char *program, const struct ring_config *config,
                                        const int fds[3], int stop_event, struct lp_error *err)
{
    struct ring_session *s = calloc(1, sizeof *s);
    uint64_t cpu_ns = 0;
    char how[64];

    if (!s) {
        lp_error_sys(err, ENOMEM, "cannot start a driver");
        return NULL;
    }
    s->socket = -1;
    s->control.fd = -1;
    s->users = 1;
    size_t size = ring_control_size(config->queues, config->depth);
    if (memory_create(&s->control, "lunpath-control", size, false, err) != 0 ||
        launch(s, program, err) != 0)
        goto fail;
    /* A missing iommu or disk is sent as one more copy of the arena's: positions stay fixed. */
    int all[RING_CONFIG_FDS] = {s->control.fd, fds[0], fds[1] < 0 ? fds[0] : fds[1],
                                fds[2] < 0 ? fds[0] : fds[2]};
    int e = ring_send_config(s->socket, config, all, RING_CONFIG_FDS);
    if (e != 0) {
        lp_error_sys(err, -e, "cannot send the driver its configuration");
        goto fail;
    }
    if (await_reply(s, stop_event, err) == 0)
        return s;
fail:
    if (s->pid > 0)
        ring_session_reap(s->pid, how, sizeof how, &cpu_ns);
    ring_session_free(s);
    return NULL;
}

void ring_session_reap(pid_t pid, char *how, size_t how_size, uint64_t *cpu_ns)
{
    struct rusage ru;
    int status = 0;

    kill(pid, SIGKILL);
    while (wait4(pid, &status, 0, &ru) < 0)
        if (errno != EINTR) {
            snprintf(how, how_size, "gone");
            return;
        }
    if (WIFSIGNALED(status))
        snprintf(how, how_size, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, how_size, "ended with status %d", WEXITSTATUS(status));
    *cpu_ns += (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000u +
               (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000u;
}

void ring_session_free(struct ring_session *s)
{
    if (!s)
        return;
    if (s->socket >= 0)
        close(s->socket);
    memory_destroy(&s->control);
    free(s);
}
