/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips: a second process answers a number in shared memory with the same number, spinning or
 * sleeping on a futex. It never ends by itself; it is killed when the time is over, and dies with
 * its parent.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/cpu.h"
#include "base/median.h"
#include "bench/limits.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_BATCHES = 1024 };
static const uint64_t answer_limit_ns = 1000000000; /* then the other side is taken for dead */

struct pair {
    _Alignas(64) _Atomic uint32_t ping;
    _Alignas(64) _Atomic uint32_t pong;
};

enum manner { SPINNING, SLEEPING };

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static bool wait_spinning(_Atomic uint32_t *word, uint32_t old)
{
    uint64_t end = clock_now_ns() + answer_limit_ns;

    for (;;) {
        for (unsigned i = 0; i < 10000; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != old)
                return true;
            relax();
        }
        if (clock_now_ns() > end)
            return false;
    }
}

static bool wait_sleeping(_Atomic uint32_t *word, uint32_t old)
{
    struct timespec limit = {.tv_sec = (time_t)(answer_limit_ns / 1000000000u)};

    while (atomic_load_explicit(word, memory_order_acquire) == old)
        if (syscall(SYS_futex, word, FUTEX_WAIT, old, &limit, NULL, 0) != 0 && errno == ETIMEDOUT)
            return false;
    return true;
}

static bool wait_change(enum manner manner, _Atomic uint32_t *word, uint32_t old)
{
    return manner == SPINNING ? wait_spinning(word, old) : wait_sleeping(word, old);
}

static void say(enum manner manner, _Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    if (manner == SLEEPING)
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static _Noreturn void answer_for_ever(struct pair *pair, enum manner manner, int cpu, pid_t parent)
{
    uint32_t last = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        raise(SIGKILL);
    cpu_pin(cpu);
    for (;;)
        if (wait_change(manner, &pair->ping, last))
            say(manner, &pair->pong, ++last);
}

/* Median over batches, in nanoseconds a round trip, until the time is over; 0: the other side does
 * not answer. */
static double measure(struct pair *pair, enum manner manner, unsigned batch, uint64_t ns,
                      const volatile sig_atomic_t *interrupted)
{
    double batches[MAX_BATCHES];
    unsigned count = 0;
    uint32_t n = atomic_load(&pair->pong);
    uint64_t start = clock_now_ns(), last = start;

    while (count < MAX_BATCHES && last - start < ns && !(interrupted && *interrupted)) {
        for (unsigned i = 0; i < batch; i++, n++) {
            say(manner, &pair->ping, n + 1);
            if (!wait_change(manner, &pair->pong, n))
                return 0;
        }
        uint64_t t = clock_now_ns();
        batches[count++] = (double)(t - last) / batch;
        last = t;
    }
    return median_of(batches, count);
}

static double round_trip(const struct limits_options *opts, enum manner manner, int cpu_here,
                         int cpu_there)
{
    struct pair *pair =
        mmap(NULL, sizeof *pair, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t ns = opts->brief ? 40000000 : 100000000;
    double result = 0;

    if (pair == MAP_FAILED)
        return 0;
    cpu_pin(cpu_here);
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        answer_for_ever(pair, manner, cpu_there, parent);
    if (child > 0) {
        measure(pair, manner, 1, 1, NULL); /* until the child is there */
        result = measure(pair, manner, manner == SPINNING ? 500 : 20, ns, opts->interrupted);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    munmap(pair, sizeof *pair);
    return result;
}

/* Two CPUs to measure on: those of the paths where they are known. */
static bool choose_cpus(const struct limits_options *opts, const struct cpu_list *allowed,
                        int *first, int *second)
{
    *first = opts->first_cpu >= 0 ? opts->first_cpu : allowed->count > 0 ? allowed->cpus[0] : -1;
    *second = opts->second_cpu;
    for (unsigned i = 0; i < allowed->count && (*second < 0 || *second == *first); i++)
        *second = allowed->cpus[i];
    return *first >= 0 && *second >= 0 && *first != *second;
}

void limits_round_trips(const struct limits_options *opts, struct result_limits *limits)
{
    struct cpu_list allowed;
    int first, second;

    cpu_allowed(&allowed);
    if (choose_cpus(opts, &allowed, &first, &second)) {
        limits->round_trip_spin_ns = round_trip(opts, SPINNING, first, second);
        limits->round_trip_sleep_ns = round_trip(opts, SLEEPING, first, second);
    }
    if (first >= 0)
        limits->round_trip_sleep_same_core_ns = round_trip(opts, SLEEPING, first, first);
    cpu_restrict(&allowed);
}
