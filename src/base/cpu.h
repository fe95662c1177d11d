/* SPDX-License-Identifier: BSD-2-Clause */
/* Which CPUs this process may use, and pinning the calling thread. Where the system has no such
 * thing (portable build), no CPU is known and nothing is pinned. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

enum { CPU_LIST_MAX = 1024 };

struct cpu_list {
    unsigned count;
    int cpus[CPU_LIST_MAX]; /* ascending */
};

/* The CPUs that the calling thread may run on; none when not known. */
void cpu_allowed(struct cpu_list *list);

/* Restricts the calling thread, and what it creates from now on, to the list, or to one CPU.
 * False: refused, or not possible here. */
bool cpu_restrict(const struct cpu_list *list);
bool cpu_pin(int cpu);

#endif
