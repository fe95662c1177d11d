/* SPDX-License-Identifier: BSD-2-Clause */
/* Mode pages: what they say, which bits may be changed, and that changed ones have an effect. */
#include "base/bytes.h"
#include "scsi/lu_int.h"

#include <string.h>

enum {
    WCE = 0x04,     /* caching page, byte 2 */
    D_SENSE = 0x04, /* control page, byte 2 */
    SWP = 0x08,     /* byte 4 */
    TAS = 0x40,     /* byte 5 */
    PAGE_MAX = 20,
    PAGES = 4,
};

struct lu_mode lu_mode_default(const struct lu *lu)
{
    return (struct lu_mode){.wce = lu->opts.write_cache,
                            .d_sense = lu->opts.descriptor_sense,
                            .tas = lu->opts.task_aborted_status};
}

bool lu_write_protected(const struct lu *lu)
{
    return lu->read_only || lu->mode.swp;
}

/* ---- pages ---- */

/* The page with these values; returns its length. */
static size_t make_page(const struct lu *lu, uint8_t code, const struct lu_mode *mode,
                        uint8_t page[PAGE_MAX])
{
    memset(page, 0, PAGE_MAX);
    page[0] = code;
    switch (code) {
    case SCSI_MODE_ERROR_RECOVERY:
        page[1] = 10;
        break;
    case SCSI_MODE_CACHING:
        page[1] = 18;
        page[2] = mode->wce ? WCE : 0;
        break;
    case SCSI_MODE_CONTROL:
        page[1] = 10;
        page[2] =
            (uint8_t)((lu->opts.shared_task_set ? 0 : 1 << 5) | (mode->d_sense ? D_SENSE : 0) |
                      0x02); /* GLTSD: there are no log parameters to save */
        page[3] = 1 << 4;    /* QUEUE ALGORITHM MODIFIER: reordering as explained in lu_tasks.c */
        page[4] = mode->swp ? SWP : 0;
        page[5] = mode->tas ? TAS : 0;
        break;
    default: /* SCSI_MODE_INFORMATIONAL_EXCEPTIONS: MRIE 0, nothing is reported */
        page[1] = 10;
        page[2] = 0x08; /* DEXCPT */
    }
    return (size_t)page[1] + 2;
}

/* The bits that MODE SELECT may change. */
static size_t make_changeable(const struct lu *lu, uint8_t code, uint8_t page[PAGE_MAX])
{
    memset(page, 0, PAGE_MAX);
    struct lu_mode none = {0};
    size_t n = make_page(lu, code, &none, page);

    memset(page + 2, 0, n - 2);
    if (code == SCSI_MODE_CACHING && lu->opts.write_cache)
        page[2] = WCE;
    if (code == SCSI_MODE_CONTROL) {
        page[2] = D_SENSE;
        page[4] = SWP;
        page[5] = TAS;
    }
    return n;
}

static const uint8_t codes[PAGES] = {SCSI_MODE_ERROR_RECOVERY, SCSI_MODE_CACHING, SCSI_MODE_CONTROL,
                                     SCSI_MODE_INFORMATIONAL_EXCEPTIONS};

static bool has_page(uint8_t code)
{
    return memchr(codes, code, sizeof codes) != NULL;
}

/* ---- MODE SENSE ---- */

void lu_check_mode_sense(struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;
    uint8_t page = f->byte2 & 0x3f, control = f->byte2 >> 6;
    bool subpage = f->byte3 == 0 || f->byte3 == 0xff;

    task->data_in_length = f->length < SCSI_MODE_MAX ? f->length : SCSI_MODE_MAX;
    if (page != SCSI_MODE_ALL && !has_page(page))
        lu_refuse(task, scsi_sense_cdb_field(2, 5));
    else if (!subpage)
        lu_refuse(task, scsi_sense_cdb_field(3, -1));
    else if (control == SCSI_PC_SAVED)
        lu_refuse(task, scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_SAVING_NOT_SUPPORTED));
}

static size_t put_descriptor(const struct lu *lu, bool long_lba, uint8_t *out)
{
    memset(out, 0, 16);
    if (long_lba) {
        store_be64(out, lu->blocks);
        store_be32(out + 12, lu->block_size);
        return 16;
    }
    store_be32(out, lu->blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)lu->blocks);
    store_be24(out + 5, lu->block_size);
    return 8;
}

static size_t put_page(const struct lu *lu, uint8_t code, unsigned control, uint8_t *out)
{
    struct lu_mode mode = control == SCSI_PC_DEFAULT ? lu_mode_default(lu) : lu->mode;
    uint8_t page[PAGE_MAX];
    size_t n = control == SCSI_PC_CHANGEABLE ? make_changeable(lu, code, page)
                                             : make_page(lu, code, &mode, page);

    memcpy(out, page, n);
    return n;
}

void lu_mode_sense(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    const struct scsi_cdb *f = &task->fields;
    bool ten = f->command == SCSI_CMD_MODE_SENSE_10;
    bool long_lba = ten && f->flags & SCSI_CDB_LLBAA;
    struct scsi_mode_header header = {.device_specific = SCSI_MODE_DPOFUA};
    uint8_t out[SCSI_MODE_MAX];
    size_t n = ten ? SCSI_MODE_HEADER_10 : SCSI_MODE_HEADER_6;
    uint8_t page = f->byte2 & 0x3f;

    if (lu_write_protected(lu))
        header.device_specific |= SCSI_MODE_WP;
    if (!(f->flags & SCSI_CDB_DBD)) {
        header.descriptor_length = (uint16_t)put_descriptor(lu, long_lba, out + n);
        header.long_lba = long_lba;
        n += header.descriptor_length;
    }
    for (unsigned i = 0; i < PAGES; i++)
        if (page == SCSI_MODE_ALL || page == codes[i])
            n += put_page(lu, codes[i], f->byte2 >> 6, out + n);
    header.length = n;
    scsi_mode_header_pack(&header, ten, out);
    lu_put(task, out, n);
    lu_end_data(task);
}

/* ---- MODE SELECT ---- */

void lu_check_mode_select(struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;

    task->data_out_length = f->length;
    if (!(f->flags & SCSI_CDB_PF))
        lu_refuse(task, scsi_sense_cdb_field(1, 4));
    else if (f->flags & SCSI_CDB_SP)
        lu_refuse(task, scsi_sense_cdb_field(1, 0));
    else if (f->length > LU_PARAMETERS_MAX)
        lu_refuse(task,
                  scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR));
}

static void end_length_error(struct lu_task *task)
{
    lu_end_sense(task,
                 scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR));
}

/* The block descriptor may repeat what is, or give 0 blocks for "as it is". -1: the byte that says
 * otherwise is in *bad. */
static int judge_descriptor(const struct lu *lu, const uint8_t *p, size_t length, bool long_lba,
                            size_t *bad)
{
    if (length == 0)
        return 0;
    *bad = 0;
    if (length != (long_lba ? 16u : 8u))
        return -1;
    uint64_t blocks = long_lba ? load_be64(p) : load_be32(p);
    uint32_t size = long_lba ? load_be32(p + 12) : load_be24(p + 5);
    bool same = blocks == 0 || blocks == lu->blocks || (!long_lba && blocks == UINT32_MAX);
    *bad = same ? (long_lba ? 12 : 5) : 0;
    return same && size == lu->block_size ? 0 : -1;
}

static int top_bit(uint8_t bits)
{
    int b = 7;

    while (b > 0 && !(bits >> b & 1))
        b--;
    return b;
}

/* Takes one page into *mode. -1: the byte and bit that cannot be changed. */
static int take_page(const struct lu *lu, const struct scsi_mode_page *page, struct lu_mode *mode,
                     size_t *bad, int *bit)
{
    uint8_t now[PAGE_MAX], mask[PAGE_MAX];

    *bad = 0;
    *bit = 5;
    if (!has_page(page->code) || page->subpage != 0)
        return -1;
    size_t n = make_page(lu, page->code, mode, now);
    make_changeable(lu, page->code, mask);
    *bad = 1;
    *bit = -1;
    if (page->length != n)
        return -1;
    for (size_t i = 2; i < n; i++) {
        uint8_t wrong = (uint8_t)((page->bytes[i] ^ now[i]) & ~mask[i]);
        *bad = i;
        *bit = top_bit(wrong);
        if (wrong)
            return -1;
    }
    if (page->code == SCSI_MODE_CACHING)
        mode->wce = page->bytes[2] & WCE;
    if (page->code == SCSI_MODE_CONTROL) {
        mode->d_sense = page->bytes[2] & D_SENSE;
        mode->swp = page->bytes[4] & SWP;
        mode->tas = page->bytes[5] & TAS;
    }
    return 0;
}

static bool mode_same(const struct lu_mode *a, const struct lu_mode *b)
{
    return a->wce == b->wce && a->d_sense == b->d_sense && a->swp == b->swp && a->tas == b->tas;
}

static void flushed_before_change(struct lu_task *task, int status)
{
    if (status != 0) {
        lu_end_errno(task, status);
        return;
    }
    task->lu->mode.wce = false;
    lu_end(task, SCSI_GOOD);
}

static void apply(struct lu_task *task, const struct lu_mode *mode)
{
    struct lu *lu = task->lu;
    bool cache_off = lu->mode.wce && !mode->wce;

    if (!mode_same(mode, &lu->mode))
        lu_ua(lu, task->nexus, SCSI_ASC_MODE_PARAMETERS_CHANGED);
    lu->mode = *mode;
    if (cache_off) { /* what was acknowledged from the cache is on the medium first */
        lu->mode.wce = true;
        lu_io(task, LP_FLUSH, 0, 0, 0, NULL, 0, flushed_before_change);
    } else {
        lu_end(task, SCSI_GOOD);
    }
}

void lu_mode_select(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    uint8_t list[LU_PARAMETERS_MAX];
    size_t n = task->fields.length, at, bad = 0;
    bool ten = task->fields.command == SCSI_CMD_MODE_SELECT_10;
    size_t header = ten ? SCSI_MODE_HEADER_10 : SCSI_MODE_HEADER_6;
    struct lu_mode mode = lu->mode;
    struct scsi_mode_page page;
    int more, bit = -1;

    if (n == 0) {
        lu_end(task, SCSI_GOOD);
        return;
    }
    if (n < header || !lu_get(task, 0, list, n)) {
        end_length_error(task);
        return;
    }
    size_t descriptors = ten ? load_be16(list + 6) : list[3];
    if (descriptors > n - header) {
        end_length_error(task);
        return;
    }
    if (judge_descriptor(lu, list + header, descriptors, ten && list[4] & 1, &bad)) {
        lu_end_sense(task, scsi_sense_parameter_field((unsigned)(header + bad), -1));
        return;
    }
    at = header + descriptors;
    for (size_t from = at; (more = scsi_mode_page_next(list, n, &at, &page)) > 0; from = at) {
        if (take_page(lu, &page, &mode, &bad, &bit)) {
            lu_end_sense(task, scsi_sense_parameter_field((unsigned)(from + bad), bit));
            return;
        }
    }
    if (more < 0)
        end_length_error(task);
    else
        apply(task, &mode);
}
