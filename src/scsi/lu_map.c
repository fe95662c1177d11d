/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which blocks were deallocated since the unit was made, for GET LBA STATUS. A bit stands for 2^n
 * blocks on large units; it is set only while all of them are deallocated, so "mapped" may be said
 * of a block that is not, never the other way round.
 */
#include "scsi/lu_int.h"

#include <stdlib.h>

static bool bit(const struct lu *lu, uint64_t unit)
{
    return (lu->map[unit / 64] >> unit % 64 & 1) != 0;
}

static void put_bits(struct lu *lu, uint64_t from, uint64_t to, bool set)
{
    while (from < to) {
        uint64_t mask = UINT64_MAX << from % 64;
        uint64_t end = (from / 64 + 1) * 64;
        if (end > to) {
            mask &= UINT64_MAX >> (end - to);
            end = to;
        }
        uint64_t *word = &lu->map[from / 64];
        *word = set ? *word | mask : *word & ~mask;
        from = end;
    }
}

void lu_map_free(struct lu *lu)
{
    free(lu->map);
    lu->map = NULL;
}

static uint64_t units(const struct lu *lu)
{
    return (lu->blocks + ((uint64_t)1 << lu->map_shift) - 1) >> lu->map_shift;
}

void lu_map_deallocated(struct lu *lu, uint64_t lba, uint64_t blocks)
{
    uint64_t end = lba + blocks;

    if (!lu->map) {
        lu->map_shift = 0;
        while (units(lu) > LU_MAP_UNITS)
            lu->map_shift++;
        lu->map = calloc((size_t)(units(lu) + 63) / 64, sizeof *lu->map);
        if (!lu->map)
            return; /* then everything counts as mapped */
    }
    uint64_t round = ((uint64_t)1 << lu->map_shift) - 1;
    uint64_t last = end == lu->blocks ? units(lu) : end >> lu->map_shift;
    put_bits(lu, (lba + round) >> lu->map_shift, last, true);
}

void lu_map_written(struct lu *lu, uint64_t lba, uint64_t blocks)
{
    if (lu->map && blocks > 0)
        put_bits(lu, lba >> lu->map_shift, ((lba + blocks - 1) >> lu->map_shift) + 1, false);
}

uint64_t lu_map_run(const struct lu *lu, uint64_t lba, uint64_t limit, bool *deallocated)
{
    uint64_t unit, last, end;

    *deallocated = false;
    if (!lu->map)
        return limit;
    unit = lba >> lu->map_shift;
    last = (lba + limit - 1) >> lu->map_shift;
    *deallocated = bit(lu, unit);
    while (unit < last && bit(lu, unit + 1) == *deallocated) {
        /* A word of one kind at a time. */
        if ((unit + 1) % 64 == 0 && unit + 64 < last &&
            lu->map[unit / 64 + 1] == (*deallocated ? UINT64_MAX : 0))
            unit += 64;
        else
            unit++;
    }
    end = (unit + 1) << lu->map_shift;
    return end - lba < limit ? end - lba : limit;
}
