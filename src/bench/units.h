/* SPDX-License-Identifier: BSD-2-Clause */
/* The one place where bytes and time become rates. Payload bytes only: no header is ever counted.
 * 1 Gbit/s is 10^9 bits a second, 1 MB/s 10^6 bytes, 1 MiB/s 2^20 bytes. No time: 0. */
#ifndef BENCH_UNITS_H
#define BENCH_UNITS_H

#include <stdint.h>

/* The plural's ending. */
static inline const char *units_s(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static inline double units_per_second(double count, uint64_t ns)
{
    return ns ? count / ((double)ns / 1e9) : 0;
}

static inline double units_gbit_per_s(uint64_t bytes, uint64_t ns)
{
    return units_per_second((double)bytes, ns) * 8 / 1e9;
}

static inline double units_mb_per_s(double gbit_per_s)
{
    return gbit_per_s * 1e9 / 8 / 1e6;
}

static inline double units_mib_per_s(double gbit_per_s)
{
    return gbit_per_s * 1e9 / 8 / (1 << 20);
}

#endif
