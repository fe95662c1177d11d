/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers by size index, kept for the next command. */
#include <stdlib.h>

#include "target/target_int.h"

static unsigned class_of(size_t n)
{
    unsigned index = 0;

    while (index < POOL_CLASSES && ((size_t)POOL_LEAST << index) < n)
        index++;
    return index;
}

void *pool_get(struct pool *p, size_t n)
{
    unsigned index = class_of(n);
    size_t size = (size_t)POOL_LEAST << index;
    struct pool_block *block;

    if (index == POOL_CLASSES)
        return NULL;
    block = p->free[index];
    if (block) {
        p->free[index] = block->next;
        return block;
    }
    if (p->taken + size > p->limit) {
        pool_free(p); /* what lies idle in other classes */
        if (p->taken + size > p->limit)
            return NULL;
    }
    block = aligned_alloc(POOL_LEAST, size);
    if (block)
        p->taken += size;
    return block;
}

void pool_put(struct pool *p, void *memory, size_t n)
{
    struct pool_block *block = memory;
    unsigned index = class_of(n);

    block->next = p->free[index];
    p->free[index] = block;
}

void pool_free(struct pool *p)
{
    for (unsigned index = 0; index < POOL_CLASSES; index++)
        while (p->free[index]) {
            struct pool_block *block = p->free[index];

            p->free[index] = block->next;
            p->taken -= (size_t)POOL_LEAST << index;
            free(block);
        }
}
