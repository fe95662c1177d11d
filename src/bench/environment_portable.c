/* SPDX-License-Identifier: BSD-2-Clause */
/* What POSIX can say, and what most systems add to sysconf(). */
#include "bench/environment.h"

#include <stdio.h>
#include <unistd.h>

static uint64_t positive(long value)
{
    return value > 0 ? (uint64_t)value : 0;
}

void environment_system(struct result_environment *env)
{
#ifdef _SC_NPROCESSORS_ONLN
    env->cpus_online = env->cpus_allowed = (unsigned)positive(sysconf(_SC_NPROCESSORS_ONLN));
#endif
#ifdef _SC_PHYS_PAGES
    env->memory_bytes = positive(sysconf(_SC_PHYS_PAGES)) * env->page_bytes;
#endif
#ifdef _SC_AVPHYS_PAGES
    env->memory_free_bytes = positive(sysconf(_SC_AVPHYS_PAGES)) * env->page_bytes;
#endif
    snprintf(env->governor, sizeof env->governor, "not known");
    snprintf(env->virtual_machine, sizeof env->virtual_machine, "not known");
}
