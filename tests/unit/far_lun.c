/* SPDX-License-Identifier: BSD-2-Clause */
/* The logical unit of the scripted target. */
#include "far.h"

#include "base/bytes.h"

void far_sense(struct far_reply *reply, uint8_t key, uint16_t asc)
{
    memset(reply->sense, 0, sizeof(reply->sense));
    reply->status = 0x02;
    reply->sense_length = 18;
    reply->sense[0] = 0x70;
    reply->sense[2] = key;
    reply->sense[7] = 10;
    store_be16(reply->sense + 12, asc);
}

bool far_is(const struct iscsi_scsi_command *c, uint8_t opcode)
{
    return c->cdb[0] == opcode;
}

static uint32_t vpd(const struct far *far, uint8_t page, uint8_t *b)
{
    b[0] = far->type;
    b[1] = page;
    switch (page) {
    case 0x00:
        memcpy(b + 4, far->pages, far->page_count);
        b[3] = (uint8_t)far->page_count;
        break;
    case 0x80:
        b[3] = (uint8_t)strlen(far->serial);
        memcpy(b + 4, far->serial, b[3]);
        break;
    case 0x83:
        b[3] = 12;
        b[4] = 0x01;
        b[5] = 0x03;
        b[7] = 8;
        memcpy(b + 8, far->naa, 8);
        break;
    case 0xb0:
        b[3] = 0x3c;
        store_be32(b + 8, far->max_transfer);
        store_be32(b + 20, far->max_unmap);
        store_be32(b + 24, 1);
        store_be32(b + 28, far->granularity);
        store_be32(b + 32, far->granularity ? 0x80000000 | far->alignment : 0);
        store_be64(b + 36, far->max_write_same);
        break;
    case 0xb1:
        b[3] = 0x3c;
        break;
    default:
        b[3] = 4;
        b[5] = (uint8_t)(far->lbpu << 7 | far->lbpws << 6);
        break;
    }
    return 4u + b[3];
}

static bool has_page(const struct far *far, uint8_t page)
{
    for (unsigned i = 0; i < far->page_count; i++)
        if (far->pages[i] == page)
            return true;
    return false;
}

static uint32_t inquiry(const struct far *far, const uint8_t *cdb, uint8_t *b,
                        struct far_reply *reply)
{
    if (cdb[1] & 1) {
        if (has_page(far, cdb[2]))
            return vpd(far, cdb[2], b);
        far_sense(reply, 5, 0x2400);
        return 0;
    }
    b[0] = (uint8_t)(far->missing ? 0x7f : far->qualifier << 5 | far->type);
    b[2] = 6;
    b[3] = 2;
    b[4] = 31;
    memcpy(b + 8, "TEST    scripted disk   0001", 28);
    return 36;
}

static uint32_t mode_sense(const struct far *far, uint8_t *b, struct far_reply *reply)
{
    if (!far->mode_pages) {
        far_sense(reply, 5, 0x2000);
        return 0;
    }
    b[2] = (uint8_t)(far->wp << 7 | far->dpofua << 4);
    b[4] = 0x08;
    b[5] = 18;
    b[6] = (uint8_t)(far->wce << 2);
    b[0] = 3 + 20;
    return 24;
}

static uint64_t lba_of(const uint8_t *cdb, uint32_t *blocks)
{
    if (cdb[0] >> 5 == 1) {
        *blocks = load_be16(cdb + 7);
        return load_be32(cdb + 2);
    }
    *blocks = load_be32(cdb + 10);
    return load_be64(cdb + 2);
}

static uint8_t *place(const struct far *far, const uint8_t *cdb, uint32_t *bytes,
                      struct far_reply *reply)
{
    uint32_t blocks;
    uint64_t lba = lba_of(cdb, &blocks);

    if (lba + blocks > far->blocks) {
        far_sense(reply, 5, 0x2100);
        return NULL;
    }
    *bytes = blocks * far->block_size;
    assert_true(lba * far->block_size + *bytes <= FAR_RAM);
    return far->ram + lba * far->block_size;
}

static void unmap(const struct far *far, const uint8_t *list)
{
    uint64_t lba = load_be64(list + 8);

    assert_true((lba + load_be32(list + 16)) * far->block_size <= FAR_RAM);
    memset(far->ram + lba * far->block_size, 0, (size_t)load_be32(list + 16) * far->block_size);
}

void far_lun_answer(struct far *far, const struct iscsi_scsi_command *c, const uint8_t *data,
                    uint8_t *b, struct far_reply *reply)
{
    const uint8_t *cdb = c->cdb;
    uint8_t *at;
    uint32_t n = 0;

    if (far->missing && cdb[0] != 0x12 && cdb[0] != 0xa0) {
        far_sense(reply, 5, 0x2500);
        return;
    }
    switch (cdb[0]) {
    case 0x12:
        n = inquiry(far, cdb, b, reply);
        break;
    case 0x1a:
        n = mode_sense(far, b, reply);
        break;
    case 0x25:
        store_be32(b, far->blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)(far->blocks - 1));
        store_be32(b + 4, far->block_size);
        n = 8;
        break;
    case 0x9e:
        store_be64(b, far->blocks - 1);
        store_be32(b + 8, far->block_size);
        b[14] = (uint8_t)(far->lbpme << 7);
        n = 32;
        break;
    case 0xa0:
        store_be32(b, 16);
        b[17] = 1; /* LUNs 1 and 5: LUN 0 is absent */
        b[9] = 5;
        n = 24;
        break;
    case 0x28:
    case 0x88:
        reply->data = place(far, cdb, &reply->n, reply);
        return;
    case 0x2a:
    case 0x8a:
        at = place(far, cdb, &n, reply);
        if (at)
            memcpy(at, data, n);
        return;
    case 0x93:
        at = place(far, cdb, &n, reply);
        for (uint32_t i = 0; at && i < n; i += far->block_size)
            memcpy(at + i, data, far->block_size);
        return;
    case 0x42:
        unmap(far, data);
        return;
    case 0x35:
        return;
    default:
        far_sense(reply, 5, 0x2000);
        return;
    }
    reply->data = b;
    reply->n = n;
}
