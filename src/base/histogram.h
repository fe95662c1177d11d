/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A latency histogram with bounded relative error: values in nanoseconds fall in buckets that are
 * at most 1/64 (1.6 %) wide, from 1 ns to 2^40 ns (18 minutes; more counts as the last bucket).
 * Count, sum, minimum and maximum are exact. Fixed size, no allocation.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_SUB_BITS = 6, HISTOGRAM_MAX_BITS = 40 };
enum { HISTOGRAM_BUCKETS = (HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS };

struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t min; /* UINT64_MAX when empty */
    uint64_t max;
    uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *h);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* The smallest bucket's upper edge that at least fraction (0..1) of the values are not above; never
 * above the maximum; 0 when empty. */
uint64_t histogram_percentile(const struct histogram *h, double fraction);

static inline unsigned histogram_bucket(uint64_t ns)
{
    if (ns < (1u << HISTOGRAM_SUB_BITS))
        return (unsigned)ns;
    if (ns >> HISTOGRAM_MAX_BITS)
        return HISTOGRAM_BUCKETS - 1;
    unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_SUB_BITS;
    return (shift << HISTOGRAM_SUB_BITS) + (unsigned)(ns >> shift);
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
    h->count++;
    h->sum += ns;
    if (ns < h->min)
        h->min = ns;
    if (ns > h->max)
        h->max = ns;
    h->buckets[histogram_bucket(ns)]++;
}

#endif
