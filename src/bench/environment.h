/* SPDX-License-Identifier: BSD-2-Clause */
/* What the machine is and what else it does: without it a figure cannot be compared. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include "bench/result.h"

/* Fills everything but the placement. What cannot be known stays 0 or says so. */
void environment_fill(struct result_environment *env);

/* The system's own part: environment_linux.c, or environment_portable.c. The rest is there. */
void environment_system(struct result_environment *env);

#endif
