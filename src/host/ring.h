/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring: what application and driver share, and the rules both keep. docs/ring.md is the long
 * form.
 *
 * One control memory a session (the life of one driver process) holds, for each queue, a struct
 * ring_shared followed by its entries. Each ring has one producer and one
 * consumer. Indices run freely over 32 bits; the place is index & mask. There is no head in shared
 * memory: at most `depth` requests are in flight, which is the ring's size, so neither ring can
 * overflow, and each consumer keeps its position to itself.
 *
 * Trust: neither side believes the other. Each reads an entry once, into private memory, checks
 * the copy and uses only that. A tail further ahead than the ring is long, an id that is not in
 * flight, an address outside the arena: the request fails or the peer is ended; nothing outside the
 * buffers is touched. Base addresses and sizes are private to each side.
 *
 * Sleeping: a consumer that wants to sleep stores sleeping = 1, then looks at the tail once more;
 * a producer stores the tail, then looks at sleeping. With a full fence between the store and the
 * load on both sides, at least one of the two loads sees the other's store, whatever the order
 * (C17 5.1.2.4, the store-buffering shape), so either the consumer sees the entry or the producer
 * sees the sleeper. The futex compares sleeping again under the kernel's own lock, so a wake-up
 * between the look and the sleep is not lost either. tests/model/ring_wait.pml checks it.
 */
#ifndef HOST_RING_H
#define HOST_RING_H

#include <lunpath/queue.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    RING_LINE = 64, /* what two cores hand to each other at once */
    RING_MAX_DEPTH = 1024,
    RING_MAX_QUEUES = 64,
    RING_MAX_SEGMENTS = 128,
    RING_MAX_TRANSFER = 1 << 30, /* bytes; an entry's length has 32 bits */
    RING_MAGIC = 0x6c704731,     /* "lpG1" */
};

/* A submission: four words, each read once. */
struct ring_sqe {
    _Atomic uint64_t head;   /* op, flags, id, length: see ring_sqe_pack_head */
    _Atomic uint64_t offset; /* bytes on the disk */
    _Atomic uint64_t addr;   /* arena offset; a device address with LP_PREPARED */
    _Atomic uint64_t nseg;   /* > 1: the segments are in the slot's table, addr means nothing */
};

struct ring_segment {
    _Atomic uint64_t addr; /* arena offset */
    _Atomic uint64_t length;
};

/* A completion is one word: id in the upper half, status (0 or -errno) in the lower. */
typedef _Atomic uint64_t ring_cqe;

struct ring_shared {
    alignas(RING_LINE) _Atomic uint32_t sq_tail;         /* application writes */
    alignas(RING_LINE) _Atomic uint32_t cq_tail;         /* driver writes */
    alignas(RING_LINE) _Atomic uint32_t driver_sleeping; /* both write */
    alignas(RING_LINE) _Atomic uint32_t app_sleeping;    /* both write */
    /* What the driver says of its own work; shown to people, never used as an index. */
    alignas(RING_LINE) _Atomic uint64_t requests;
    _Atomic uint64_t bytes_read;
    _Atomic uint64_t bytes_written;
    _Atomic uint64_t syscalls;
    _Atomic uint64_t sleeps;
};

/* One side's private view of one queue in the control memory. */
struct ring_view {
    struct ring_shared *shared;
    struct ring_sqe *sq;
    ring_cqe *cq;
    struct ring_segment *segments; /* RING_MAX_SEGMENTS for each id */
    uint32_t mask;                 /* entries - 1; entries is depth rounded up to a power of two */
};

struct ring_command { /* an sqe, unpacked into private memory */
    uint64_t offset, addr;
    uint32_t length;
    uint16_t id, nseg;
    uint8_t op, flags;
};

uint32_t ring_entries(unsigned depth);
size_t ring_control_size(unsigned queues, unsigned depth);

/* Where queue i lies in control memory of ring_control_size(queues, depth) bytes. */
void ring_view_at(struct ring_view *view, void *control, unsigned depth, unsigned i);

static inline uint64_t ring_sqe_pack_head(const struct ring_command *c)
{
    return (uint64_t)c->op | (uint64_t)c->flags << 8 | (uint64_t)c->id << 16 |
           (uint64_t)c->length << 32;
}

static inline void ring_sqe_store(struct ring_sqe *sqe, const struct ring_command *c)
{
    atomic_store_explicit(&sqe->head, ring_sqe_pack_head(c), memory_order_relaxed);
    atomic_store_explicit(&sqe->offset, c->offset, memory_order_relaxed);
    atomic_store_explicit(&sqe->addr, c->addr, memory_order_relaxed);
    atomic_store_explicit(&sqe->nseg, c->nseg, memory_order_relaxed);
}

static inline void ring_sqe_load(struct ring_sqe *sqe, struct ring_command *c)
{
    uint64_t head = atomic_load_explicit(&sqe->head, memory_order_relaxed);
    uint64_t nseg = atomic_load_explicit(&sqe->nseg, memory_order_relaxed);

    c->op = (uint8_t)head;
    c->flags = (uint8_t)(head >> 8);
    c->id = (uint16_t)(head >> 16);
    c->length = (uint32_t)(head >> 32);
    c->offset = atomic_load_explicit(&sqe->offset, memory_order_relaxed);
    c->addr = atomic_load_explicit(&sqe->addr, memory_order_relaxed);
    c->nseg = nseg > RING_MAX_SEGMENTS ? UINT16_MAX : (uint16_t)nseg;
}

static inline uint64_t ring_cqe_pack(uint16_t id, int status)
{
    return (uint64_t)id << 32 | (uint32_t)status;
}

#endif
