/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/histogram.h"

#include <string.h>

void histogram_reset(struct histogram *h)
{
    memset(h, 0, sizeof *h);
    h->min = UINT64_MAX;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->count += from->count;
    into->sum += from->sum;
    if (from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

/* The largest value that falls in the bucket: the inverse of histogram_bucket(). */
static uint64_t upper_edge(unsigned bucket)
{
    enum { SUB = 1 << HISTOGRAM_SUB_BITS };

    if (bucket < SUB)
        return bucket;
    if (bucket == HISTOGRAM_BUCKETS - 1)
        return UINT64_MAX;
    unsigned shift = bucket / SUB - 1;
    return ((uint64_t)(bucket % SUB + SUB + 1) << shift) - 1;
}

/* How many values must not be above the answer: fraction of count, rounded up, at least one. */
static uint64_t rank_of(uint64_t count, double fraction)
{
    if (fraction >= 1)
        return count;
    double exact = fraction * (double)count;
    uint64_t rank = exact > 0 ? (uint64_t)exact : 0;
    if ((double)rank < exact)
        rank++;
    return rank ? rank : 1;
}

uint64_t histogram_percentile(const struct histogram *h, double fraction)
{
    if (h->count == 0)
        return 0;

    uint64_t rank = rank_of(h->count, fraction);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= rank) {
            uint64_t edge = upper_edge(i);
            return edge < h->max ? edge : h->max;
        }
    }
    return h->max;
}
