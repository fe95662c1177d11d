/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adaptive waiting of one side of a ring: spin for as long as that pays, then sleep.
 *
 * A sleep and its wake-up cost tens of microseconds across cores and spinning costs a core, so the
 * rule is the ski-rental one: spin at most as long as the sleep would cost. When the waits are
 * longer than that anyway (idle, a slow disk), spinning is pure loss and the budget shrinks to
 * nothing; when a sleep turns out short enough that spinning would have caught it, it comes back.
 * With both sides on one CPU the peer cannot run while we spin: no spinning at all.
 */
#ifndef HOST_RING_WAIT_H
#define HOST_RING_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* About two sleeps and wake-ups across cores: 2-competitive with some room for slow machines. */
enum { RING_SPIN_MAX_NS = 200000, RING_SPIN_MIN_NS = 2000 };

#define RING_WAIT_FOREVER UINT64_MAX

struct ring_wait {
    bool may_spin;
    uint64_t budget_ns;
    uint64_t sleeps;   /* waits that slept */
    uint64_t syscalls; /* futex calls: sleeping and waking */
};

static inline void ring_wait_init(struct ring_wait *w, bool may_spin)
{
    *w = (struct ring_wait){.may_spin = may_spin, .budget_ns = RING_SPIN_MAX_NS};
}

/* Waits until *tail differs from seen or *stop is true, at most timeout_ns
 * (RING_WAIT_FOREVER: no limit). `sleeping` is this
 * side's wake word in shared memory, `stop` is private to this process (may be NULL); whoever sets
 * it calls ring_wake() after. Returns true when *tail differs. */
bool ring_wait_for(struct ring_wait *w, _Atomic uint32_t *tail, uint32_t seen,
                   _Atomic uint32_t *sleeping, const atomic_bool *stop, uint64_t timeout_ns);

/* Wakes the peer if it sleeps. Call after the tail (or stop) is stored: the fence is in here. */
void ring_wake(struct ring_wait *w, _Atomic uint32_t *sleeping);

/* How the budget follows a wait that took waited_ns in all; pure, for tests. */
uint64_t ring_wait_next_budget(uint64_t budget_ns, uint64_t waited_ns, bool slept);

#endif
