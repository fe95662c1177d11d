/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An I/O MMU as a model: the table through which a driver reaches a task's pages.
 *
 * A table is an array of entries in memory that both sides see. A task's data is named by one
 * device address, as in DriverKit's SCSI tasks (fBufferIOVMAddr): index of the first page's entry
 * times the page size, plus the byte in that page. Page k >= 1 is found at entry first.next + k
 * - 1. A page is the index of a page of the arena. One word an entry: valid bit, page, next.
 *
 * The device's side trusts nothing in it: each entry is read once, and index and page are checked
 * against sizes that the reader keeps to itself.
 */
#ifndef HOST_IOMMU_H
#define HOST_IOMMU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef _Atomic uint64_t iommu_entry;

struct iommu { /* one side's view */
    iommu_entry *table;
    uint32_t entries;
    uint32_t page_size;
    uint32_t arena_pages;
};

static inline struct iommu iommu_view(void *memory, size_t size, uint32_t page_size,
                                      size_t arena_size)
{
    return (struct iommu){memory, (uint32_t)(size / sizeof(iommu_entry)), page_size,
                          (uint32_t)(arena_size / page_size)};
}

/* Enters page at index; release, so that whoever sees the entry sees the data written before. */
static inline void iommu_map(const struct iommu *m, uint32_t index, uint32_t page, uint32_t next)
{
    atomic_store_explicit(&m->table[index], (uint64_t)1 << 63 | (uint64_t)page << 32 | next,
                          memory_order_release);
}

static inline void iommu_unmap(const struct iommu *m, uint32_t index)
{
    atomic_store_explicit(&m->table[index], 0, memory_order_release);
}

/* The entry at index, checked: false when it is not there or leads outside the arena. */
static inline bool iommu_lookup(const struct iommu *m, uint32_t index, uint32_t *page,
                                uint32_t *next)
{
    if (index >= m->entries)
        return false;
    uint64_t e = atomic_load_explicit(&m->table[index], memory_order_acquire);
    *page = (uint32_t)(e >> 32) & 0x7fffffffu;
    *next = (uint32_t)e;
    return e >> 63 && *page < m->arena_pages;
}

#endif
