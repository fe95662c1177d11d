/* SPDX-License-Identifier: BSD-2-Clause */
/* The only place that reads a clock. Nanoseconds of CLOCK_MONOTONIC; CPU time by getrusage. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now_ns(void);        /* monotonic */
uint64_t clock_thread_cpu_ns(void); /* CPU time of the calling thread */

#endif
