/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's side of a prepared path: turns a device address into the pages it stands for,
 * through the translation table and a small translation cache (IOTLB), and hands the request to the
 * disk with ordinary segments. Reaches data in no other way.
 */
#ifndef HOST_DMA_H
#define HOST_DMA_H

#include <lunpath/error.h>
#include <lunpath/queue.h>

struct dma_opts {
    unsigned depth;
    uint32_t page_size;
    void *iommu;
    size_t iommu_size;
    void *arena; /* in this process */
    size_t arena_size;
};

/* Stands on lower and owns it (also on failure). Takes prepared requests of up to PREP_MAX_TRANSFER
 * bytes. A page that is not in the table, or not in the arena: -EFAULT. READ or WRITE that is not
 * prepared: -EINVAL. LP_INVALIDATE empties the translation cache. */
struct lp_queue *dma_open(struct lp_queue *lower, const struct dma_opts *opts,
                          struct lp_error *err);

#endif
