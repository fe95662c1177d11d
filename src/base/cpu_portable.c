/* SPDX-License-Identifier: BSD-2-Clause */
/* POSIX knows no CPUs. */
#include "base/cpu.h"

void cpu_allowed(struct cpu_list *list)
{
    list->count = 0;
}

bool cpu_restrict(const struct cpu_list *list)
{
    (void)list;
    return false;
}

bool cpu_pin(int cpu)
{
    (void)cpu;
    return false;
}
