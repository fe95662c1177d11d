/* SPDX-License-Identifier: BSD-2-Clause */
/* A small seeded generator (splitmix64): the same seed gives the same run. Not for secrets. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t rng_next(struct rng *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return rng_mix(r->state);
}

/* 0..bound-1, bound > 0; the bias of bound/2^64 does not matter here. */
static inline uint64_t rng_below(struct rng *r, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)rng_next(r) * bound) >> 64);
}

#endif
