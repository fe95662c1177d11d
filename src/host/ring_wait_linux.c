/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "host/ring_wait.h"

#include "base/clock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Not FUTEX_PRIVATE_FLAG: the word is shared between processes. */
static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                          .tv_nsec = (long)(timeout_ns % 1000000000u)};

    /* Without a timer where none is asked for: arming one is a third of the cost of sleeping. */
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ns == RING_WAIT_FOREVER ? NULL : &ts, NULL,
            0);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

uint64_t ring_wait_next_budget(uint64_t budget_ns, uint64_t waited_ns, bool slept)
{
    if (waited_ns <= RING_SPIN_MAX_NS)
        return RING_SPIN_MAX_NS; /* spinning caught it, or would have */
    if (!slept)
        return budget_ns;
    budget_ns /= 2;
    return budget_ns < RING_SPIN_MIN_NS ? 0 : budget_ns;
}

static inline bool due(_Atomic uint32_t *tail, uint32_t seen, const atomic_bool *stop)
{
    return atomic_load_explicit(tail, memory_order_acquire) != seen ||
           (stop && atomic_load_explicit(stop, memory_order_relaxed));
}

static bool spin(_Atomic uint32_t *tail, uint32_t seen, const atomic_bool *stop, uint64_t until_ns)
{
    do {
        for (int i = 0; i < 32; i++) {
            if (due(tail, seen, stop))
                return true;
            cpu_relax();
        }
    } while (clock_now_ns() < until_ns);
    return false;
}

/* One sleep; it may end early (signal, stale wake-up), so the caller looks again. */
static void sleep_once(struct ring_wait *w, _Atomic uint32_t *tail, uint32_t seen,
                       _Atomic uint32_t *sleeping, const atomic_bool *stop, uint64_t timeout_ns)
{
    atomic_store_explicit(sleeping, 1, memory_order_relaxed);
    /* Orders the store above before the loads in due(); pairs with the fence in ring_wake(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (!due(tail, seen, stop)) {
        w->syscalls++;
        futex_wait(sleeping, 1, timeout_ns);
    }
    atomic_store_explicit(sleeping, 0, memory_order_relaxed);
}

bool ring_wait_for(struct ring_wait *w, _Atomic uint32_t *tail, uint32_t seen,
                   _Atomic uint32_t *sleeping, const atomic_bool *stop, uint64_t timeout_ns)
{
    if (due(tail, seen, stop))
        return atomic_load_explicit(tail, memory_order_acquire) != seen;

    uint64_t start = clock_now_ns();
    uint64_t budget = w->may_spin ? w->budget_ns : 0;
    if (budget > timeout_ns)
        budget = timeout_ns;
    if (budget > 0 && spin(tail, seen, stop, start + budget)) {
        w->budget_ns = RING_SPIN_MAX_NS; /* caught: no clock is needed to know that it paid */
        return atomic_load_explicit(tail, memory_order_acquire) != seen;
    }
    bool done = false, slept = false;
    uint64_t now = clock_now_ns();

    while (!done && now - start < timeout_ns) {
        sleep_once(w, tail, seen, sleeping, stop,
                   timeout_ns == RING_WAIT_FOREVER ? timeout_ns : timeout_ns - (now - start));
        slept = true;
        done = due(tail, seen, stop);
        now = clock_now_ns();
    }
    w->sleeps += slept;
    w->budget_ns = ring_wait_next_budget(w->budget_ns, now - start, slept);
    return atomic_load_explicit(tail, memory_order_acquire) != seen;
}

void ring_wake(struct ring_wait *w, _Atomic uint32_t *sleeping)
{
    /* Orders the caller's store of the tail before the load of sleeping; pairs with sleep_once().
     */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(sleeping, memory_order_relaxed) == 0)
        return;
    if (atomic_exchange_explicit(sleeping, 0, memory_order_relaxed) == 1) {
        w->syscalls++;
        syscall(SYS_futex, sleeping, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}
