/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ram:SIZE is memory: the fastest disk that really keeps data. Where the memory can be shared (on
 * Linux), another process opens the same data through lp_disk_share()'s descriptor.
 *
 * Requests in flight at the same time that touch the same bytes, from different queues, are not
 * ordered: as on any disk, that is for whoever sends them.
 */
#include "base/copy.h"
#include "base/memory.h"
#include "base/size.h"
#include "disk/disk_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ram_disk {
    struct lp_disk head;
    struct memory memory;
};

static void copy_out(const struct lp_request *req, const char *from)
{
    for (uint32_t i = 0; i < req->iovcnt; i++) {
        copy_bytes(req->iov[i].iov_base, from, req->iov[i].iov_len);
        from += req->iov[i].iov_len;
    }
}

static void copy_in(const struct lp_request *req, char *to)
{
    for (uint32_t i = 0; i < req->iovcnt; i++) {
        copy_bytes(to, req->iov[i].iov_base, req->iov[i].iov_len);
        to += req->iov[i].iov_len;
    }
}

static void ram_execute(struct lp_disk *head, const struct lp_request *req)
{
    char *at = (char *)((const struct ram_disk *)head)->memory.base + req->offset;

    switch (req->op) {
    case LP_READ:
        copy_out(req, at);
        break;
    case LP_WRITE:
        copy_in(req, at);
        break;
    case LP_DISCARD:
    case LP_WRITE_ZEROES:
        memset(at, 0, req->length);
        break;
    default: /* FLUSH: memory is all the medium there is */
        break;
    }
}

static struct lp_queue *ram_queue(struct lp_disk *head, unsigned depth, struct lp_error *err)
{
    return disk_sync_queue(head, depth, ram_execute, err);
}

/* New memory, or with opts.fd the memory of the process that shared it. Takes opts.fd over. */
static int get_memory(struct memory *m, const char *text, uint64_t *size,
                      const struct lp_disk_opts *opts, struct lp_error *err)
{
    if (disk_size_parse(text, size, err)) {
        if (opts->fd >= 0)
            close(opts->fd);
        return -1;
    }
    if (opts->fd >= 0)
        return memory_open(m, opts->fd, (size_t)*size, err);
    return memory_create(m, "lunpath-ram", (size_t)*size, !opts->small_pages, err);
}

static struct lp_disk *ram_open(const char *rest, const struct lp_disk_opts *opts,
                                struct lp_error *err)
{
    struct memory memory;
    uint64_t size = 0;
    char page[16];

    if (get_memory(&memory, rest, &size, opts, err))
        return NULL;
    struct ram_disk *disk = calloc(1, sizeof *disk);
    if (!disk) {
        memory_destroy(&memory);
        lp_error_sys(err, ENOMEM, "cannot make a disk");
        return NULL;
    }
    disk->memory = memory;
    disk->head.limits = (struct lp_limits){.size = size,
                                           .block_size = DISK_MIN_BLOCK,
                                           .mem_align = 1,
                                           .depth = DISK_MAX_DEPTH,
                                           .queues = DISK_MAX_QUEUES,
                                           .fua = LP_FUA_NATIVE,
                                           .read_only = opts->read_only,
                                           .discard = !opts->read_only,
                                           .write_zeroes = !opts->read_only};
    snprintf(disk->head.mode, sizeof disk->head.mode, "memory, %s pages",
             size_format(memory.page_size, page, sizeof page));
    return &disk->head;
}

static int ram_share(const struct lp_disk *head)
{
    return ((const struct ram_disk *)head)->memory.fd;
}

static void ram_close(struct lp_disk *head)
{
    memory_destroy(&((struct ram_disk *)head)->memory);
    free(head);
}

const struct lp_disk_type disk_ram = {
    .name = "ram",
    .help = "ram:SIZE       memory, in huge pages where they can be had",
    .open = ram_open,
    .queue = ram_queue,
    .share = ram_share,
    .close = ram_close,
};
