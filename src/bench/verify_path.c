/* SPDX-License-Identifier: BSD-2-Clause */
/* The check that every measured path goes through. */
#include "bench/verify_int.h"

struct pass {
    const char *phase;
    enum verify_order order;
    unsigned stripe;
};

int verify_path(struct lp_queue *q, struct lp_queue *below, void *arena, size_t arena_size,
                const struct pattern *pattern, uint64_t bytes, uint64_t block_bytes, unsigned depth,
                uint32_t page_size, uint64_t generation, const volatile sig_atomic_t *interrupted,
                struct verify_report *report, struct lp_error *err)
{
    static const struct pass passes[] = {
        {"writing", VERIFY_WRITE_ALL, 0},
        {"reading while the other half is rewritten", VERIFY_STRIPES, 0},
        {"reading while the other half is rewritten", VERIFY_STRIPES, 1},
        {"reading back", VERIFY_READ_ALL, 0},
    };
    struct verify_log log = {
        .report = report, .pattern = pattern, .page_size = page_size, .interrupted = interrupted};
    struct verify_area area;
    int rc = 0;

    if (block_bytes < pattern->unit || block_bytes % pattern->unit || bytes % pattern->unit ||
        bytes == 0 || generation == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "verifying needs a range and requests of whole blocks of %u bytes",
                            pattern->unit);
    if (verify_area_init(&area, pattern, bytes, generation - 1, err) != 0)
        return -1;
    struct verify_work work = {.area = &area,
                               .log = &log,
                               .q = q,
                               .arena = arena,
                               .arena_size = arena_size,
                               .count = area.blocks,
                               .max_bytes = block_bytes < bytes ? block_bytes : bytes,
                               .depth = depth,
                               .seed = pattern->seed + generation};
    for (size_t i = 0; rc == 0 && i < sizeof passes / sizeof *passes && !verify_stop(&log); i++) {
        work.order = passes[i].order;
        work.stripe = passes[i].stripe;
        verify_begin(&log, passes[i].phase);
        rc = verify_work_run(&work, err);
    }
    if (rc == 0 && below && !verify_stop(&log)) {
        verify_begin(&log, "the disk itself");
        rc = verify_disk_itself(&area, below, &log, err);
    }
    verify_area_free(&area);
    return rc;
}
