/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/stack.h"
#include "host/dma.h"

#include <lunpath/fit.h>

int stack_open(struct stack *s, struct lp_disk *disk, const struct stack_opts *opts,
               struct lp_error *err)
{
    struct lp_fit_opts fit = {.depth = opts->depth};
    unsigned depth = opts->depth;

    if (disk->limits.depth && depth > disk->limits.depth)
        depth = disk->limits.depth;
    s->disk = lp_disk_queue(disk, depth, err);
    if (!s->disk)
        return -1;
    s->top = lp_fit_open(s->disk, &s->disk->limits, &fit, err);
    if (s->top && opts->prep != LP_PREP_NONE) {
        struct dma_opts dma = {.depth = opts->depth,
                               .page_size = opts->page_size,
                               .iommu = opts->iommu,
                               .iommu_size = opts->iommu_size,
                               .arena = opts->arena,
                               .arena_size = opts->arena_size};
        s->top = dma_open(s->top, &dma, err);
    }
    return s->top ? 0 : -1;
}
