/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/environment.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void fill_time(struct result_environment *env)
{
    time_t t = time(NULL);
    struct tm utc;

    if (gmtime_r(&t, &utc))
        strftime(env->time_utc, sizeof env->time_utc, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static void fill_uname(struct result_environment *env)
{
    struct utsname u;

    if (uname(&u) != 0)
        return;
    snprintf(env->hostname, sizeof env->hostname, "%.*s", RESULT_NAME - 1, u.nodename);
    snprintf(env->kernel, sizeof env->kernel, "%.80s %.80s %.80s", u.sysname, u.release, u.machine);
    snprintf(env->os, sizeof env->os, "%.80s", u.sysname);
    snprintf(env->cpu_model, sizeof env->cpu_model, "%.80s", u.machine);
}

void environment_fill(struct result_environment *env)
{
    long page = sysconf(_SC_PAGESIZE);

    memset(env, 0, sizeof *env);
    fill_time(env);
    fill_uname(env);
    env->page_bytes = page > 0 ? (uint64_t)page : 0;
    snprintf(env->lunpath_version, sizeof env->lunpath_version, "%s", LP_VERSION);
    snprintf(env->clock_source, sizeof env->clock_source, "CLOCK_MONOTONIC");
    environment_system(env);
}
