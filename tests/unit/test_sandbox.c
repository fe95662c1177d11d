/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's sandbox seen from inside: a process shuts itself in as the driver does, then tries
 * what a driver that somebody has taken over would try, in its first thread and in one that ran
 * before. Each attempt is made before as well, where that does no harm: what is refused is refused
 * by the sandbox. The first thread's io_uring is a file disk's own.
 */
#define _GNU_SOURCE
#include "disk_helpers.h"
#include "host/sandbox.h"

#include <fcntl.h>
#include <liburing.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each returns 0 or an errno value. */
static int result(long r)
{
    return r < 0 ? errno : 0;
}

static uint32_t word, other_word;

static int futex(int op, unsigned long value2)
{
    return result(syscall(SYS_futex, &word, op, 1, value2, &other_word, 0));
}

static int try_requeue(void)
{
    return futex(FUTEX_REQUEUE, 1);
}

static int try_cmp_requeue(void)
{
    return futex(FUTEX_CMP_REQUEUE, 1);
}

static int try_wake_op(void)
{
    return futex(FUTEX_WAKE_OP, 1);
}

static int try_wake(void)
{
    return futex(FUTEX_WAKE, 0);
}

static int close_after(int fd)
{
    int e = result(fd);

    if (fd >= 0)
        close(fd);
    return e;
}

static int try_socket(void)
{
    return close_after(socket(AF_INET, SOCK_STREAM, 0));
}

static int try_unix_socket(void)
{
    return close_after(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int try_open(void)
{
    return close_after(open("/dev/null", O_RDONLY));
}

static int try_dup(void)
{
    return close_after(dup(2));
}

/* A process that cannot be there: above the kernel's highest number. */
static int try_ptrace(void)
{
    return result(ptrace(PTRACE_ATTACH, 1 << 23, NULL, NULL));
}

static int try_read_memory(void)
{
    char from = 'x', to = 0;
    struct iovec local = {&to, 1}, remote = {&from, 1};

    return result(process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
}

static int try_signal(void)
{
    return result(kill(getppid(), 0));
}

static int try_exec(void)
{
    char *const argv[] = {NULL};

    return result(execve("/nowhere/at/all", argv, argv));
}

static int try_execute_memory(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return errno;
    munmap(p, 4096);
    return 0;
}

static int try_new_ring(void)
{
    struct io_uring_params p = {0};

    return close_after((int)syscall(SYS_io_uring_setup, 2, &p));
}

enum { REFUSED = EPERM };

static const struct attempt {
    const char *what;
    int (*run)(void);
    int before; /* its result outside the sandbox; -1: not tried there */
    int inside;
} attempts[] = {
    {"futex requeue", try_requeue, 0, REFUSED},
    {"futex compare and requeue", try_cmp_requeue, 0, REFUSED},
    {"futex wake op", try_wake_op, 0, REFUSED},
    {"futex wake", try_wake, 0, 0}, /* the other arm */
    {"a socket", try_socket, 0, REFUSED},
    {"a local socket", try_unix_socket, 0, REFUSED},
    {"opening a file", try_open, 0, REFUSED},
    {"one more descriptor", try_dup, 0, REFUSED},
    {"ptrace", try_ptrace, ESRCH, REFUSED},
    {"reading a process's memory", try_read_memory, 0, REFUSED},
    {"a signal to the application", try_signal, 0, REFUSED},
    {"another program", try_exec, ENOENT, REFUSED},
    {"memory to execute", try_execute_memory, 0, REFUSED},
    {"another io_uring", try_new_ring, -1, REFUSED},
};

enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

/* What the process in the sandbox says, through a pipe. */
struct report {
    int before[ATTEMPTS];
    int first[ATTEMPTS];  /* in the thread that shut the process in */
    int second[ATTEMPTS]; /* in one that ran already */
    bool has_ring;
    int ring_nop, ring_socket, ring_open; /* results of io_uring operations */
    char mode[256];
};

static void try_all(int results[ATTEMPTS], bool outside)
{
    for (unsigned i = 0; i < ATTEMPTS; i++)
        results[i] = outside && attempts[i].before < 0 ? -1 : attempts[i].run();
}

/* ---- the file disk's io_uring ---- */

enum { RING_DEPTH = 3 };

/* The rings of a queue that was opened elsewhere, through its descriptor: where things are in them
 * is the same for all rings of the size. */
static bool map_ring(int fd, struct io_uring *ring)
{
    struct io_uring probe;
    struct io_uring_params p = {.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG};

    if (io_uring_queue_init_params(RING_DEPTH + 1, &probe, &p) < 0)
        return false;
    io_uring_queue_exit(&probe);
    return io_uring_queue_mmap(fd, &p, ring) == 0;
}

/* Sends one operation and waits for its result. */
static int ring_result(struct io_uring *ring, const struct io_uring_sqe *what)
{
    struct io_uring_cqe *cqe;
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

    *sqe = *what;
    if (io_uring_submit(ring) < 0 || io_uring_wait_cqe(ring, &cqe) < 0)
        return INT32_MIN;
    int r = cqe->res;
    io_uring_cqe_seen(ring, cqe);
    return r;
}

static void try_ring(struct io_uring *ring, struct report *report)
{
    struct io_uring_sqe sqe;

    memset(&sqe, 0, sizeof sqe);
    sqe.opcode = IORING_OP_NOP;
    report->ring_nop = ring_result(ring, &sqe);
    io_uring_prep_openat(&sqe, AT_FDCWD, "/dev/null", O_RDONLY, 0);
    report->ring_open = ring_result(ring, &sqe);
    memset(&sqe, 0, sizeof sqe);
    sqe.opcode = IORING_OP_SOCKET;
    sqe.fd = AF_INET;
    sqe.off = SOCK_STREAM;
    report->ring_socket = ring_result(ring, &sqe);
}

/* ---- the process ---- */

struct second_thread {
    struct report *report;
    pthread_barrier_t shut;
};

static void *second_main(void *arg)
{
    struct second_thread *second = arg;

    pthread_barrier_wait(&second->shut);
    try_all(second->report->second, false);
    return NULL;
}

/* As ring_driver_linux.c does it: give up privileges, open the queue, start threads, filter. */
static int shut_in(const char *path, struct report *report)
{
    struct second_thread second = {.report = report};
    struct lp_disk_opts opts = LP_DISK_OPTS_DEFAULT;
    struct lp_disk *disk;
    struct lp_queue *q = NULL;
    struct lp_error err;
    struct io_uring ring;
    pthread_t thread;
    char url[128];

    try_all(report->before, true);
    snprintf(url, sizeof url, "file:%s", path);
    opts.engine = LP_ENGINE_URING;
    opts.buffered = true;
    disk = lp_disk_open(url, &opts, &err);
    sandbox_shed(report->mode, sizeof report->mode);
    if (disk)
        q = lp_disk_queue(disk, RING_DEPTH, &err);
    if (q)
        report->has_ring = map_ring(lp_queue_wait_fd(q), &ring);
    pthread_barrier_init(&second.shut, NULL, 2);
    if (pthread_create(&thread, NULL, second_main, &second) != 0)
        return 2;
    if (sandbox_filter(report->mode, sizeof report->mode, &err) != 0)
        return 3;
    try_all(report->first, false);
    pthread_barrier_wait(&second.shut);
    pthread_join(thread, NULL);
    if (report->has_ring)
        try_ring(&ring, report);
    return 0;
}

static void run_inside(struct report *report)
{
    char path[] = "/tmp/lunpath-sandbox-XXXXXX";
    int ends[2], status = 0, file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, 65536), 0);
    assert_int_equal(pipe(ends), 0);
    memset(report, 0, sizeof *report);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int e = shut_in(path, report);
        ssize_t n = write(ends[1], report, sizeof *report); /* below PIPE_BUF: all or nothing */
        _exit(n == (ssize_t)sizeof *report ? e : 4);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], report, sizeof *report);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(ends[0]);
    close(file);
    unlink(path);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || n != (ssize_t)sizeof *report)
        fail_msg("the process ended with status 0x%x", status);
}

static int setup(void **state)
{
    struct report *report = calloc(1, sizeof *report);

    if (!report)
        return -1;
    *state = report;
    run_inside(report);
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void check_all(const struct report *report, const int *results, const char *where,
                      bool outside)
{
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        int wanted = outside ? attempts[i].before : attempts[i].inside;
        if (results[i] != wanted)
            fail_msg("%s (%s): %s, not %s; sandbox: %s", attempts[i].what, where,
                     strerror(results[i]), strerror(wanted), report->mode);
    }
}

static void before_the_sandbox_all_this_is_allowed(void **state)
{
    const struct report *report = *state;

    check_all(report, report->before, "before", true);
}

static void the_thread_that_shuts_itself_in_is_refused(void **state)
{
    const struct report *report = *state;

    check_all(report, report->first, "first thread", false);
    assert_non_null(strstr(report->mode, "seccomp"));
}

static void a_thread_that_ran_before_is_refused_too(void **state)
{
    const struct report *report = *state;

    check_all(report, report->second, "second thread", false);
}

/* A system call filter does not see what goes through a ring: the ring itself must refuse. */
static void a_disks_io_uring_does_what_a_disk_needs_only(void **state)
{
    const struct report *report = *state;

    if (!report->has_ring)
        skip();
    assert_int_equal(report->ring_nop, 0);
    assert_int_equal(report->ring_socket, -EACCES);
    assert_int_equal(report->ring_open, -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_sandbox_all_this_is_allowed),
        cmocka_unit_test(the_thread_that_shuts_itself_in_is_refused),
        cmocka_unit_test(a_thread_that_ran_before_is_refused_too),
        cmocka_unit_test(a_disks_io_uring_does_what_a_disk_needs_only),
    };

    return cmocka_run_group_tests_name("sandbox", tests, setup, teardown);
}
