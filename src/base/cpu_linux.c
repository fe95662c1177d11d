/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <sched.h>

void cpu_allowed(struct cpu_list *list)
{
    cpu_set_t set;

    list->count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < CPU_LIST_MAX; cpu++)
        if (CPU_ISSET((unsigned)cpu, &set))
            list->cpus[list->count++] = cpu;
}

bool cpu_restrict(const struct cpu_list *list)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (unsigned i = 0; i < list->count; i++)
        CPU_SET((unsigned)list->cpus[i], &set);
    return list->count > 0 && sched_setaffinity(0, sizeof set, &set) == 0;
}

bool cpu_pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return false;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}
