/* SPDX-License-Identifier: BSD-2-Clause */
/* What was found wrong, counted by kind and phase, and said in sentences. */
#include "bench/units.h"
#include "bench/verify_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ERRORS = 16 }; /* READs that may fail before it is enough */

bool verify_stop(struct verify_log *log)
{
    bool stop = log->stopped || (log->interrupted && *log->interrupted);

    if (stop)
        log->report->incomplete = true;
    return stop;
}

static void append(char *text, size_t size, const char *line)
{
    size_t used = strlen(text), len = strlen(line);

    if (used + len + 2 > size)
        return;
    memcpy(text + used, line, len);
    memcpy(text + used + len, "\n", 2);
}

void verify_say(struct verify_report *report, const char *fmt, ...)
{
    char line[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    append(report->phases, sizeof report->phases, line);
}

void verify_begin(struct verify_log *log, const char *phase)
{
    log->phase = phase;
    log->said = false;
    verify_say(log->report, "%s", phase);
    if (log->progress)
        log->progress(phase, log->user);
}

void verify_error(struct verify_log *log, enum lp_op op, const struct verify_shape *shape,
                  int status)
{
    static const char *const names[LP_OP_COUNT] = {
        [LP_READ] = "READ",       [LP_WRITE] = "WRITE",     [LP_FLUSH] = "FLUSH",
        [LP_DISCARD] = "DISCARD", [LP_INVALIDATE] = "none", [LP_WRITE_ZEROES] = "WRITE ZEROES"};

    log->report->errors++;
    if (op != LP_READ || log->report->errors >= MAX_ERRORS)
        log->stopped = true;
    if (log->said)
        return;
    log->said = true;
    verify_say(log->report, "  %s of %llu bytes at %llu failed: %s", names[op],
               (unsigned long long)shape->bytes, (unsigned long long)shape->offset,
               strerror(-status));
}

/* The finding of this kind and phase, a new one if there is room, or NULL. */
static struct verify_finding *find(struct verify_report *report, const struct verify_finding *like)
{
    for (unsigned i = 0; i < report->finding_count; i++) {
        struct verify_finding *f = &report->findings[i];
        if (f->data.fault == like->data.fault && f->untouched == like->untouched &&
            f->torn_request == like->torn_request && f->wanted == like->wanted &&
            strcmp(f->phase, like->phase) == 0)
            return f;
    }
    if (report->finding_count == VERIFY_MAX_FINDINGS)
        return NULL;
    struct verify_finding *f = &report->findings[report->finding_count++];
    *f = *like;
    f->count = 0;
    return f;
}

static bool left_untouched(const struct pattern_finding *f, const uint8_t *block, uint32_t unit)
{
    if (f->fault != PATTERN_FOREIGN || f->wrong_bytes < 8)
        return false;
    for (uint32_t i = f->first_wrong; i < unit && i < f->first_wrong + f->wrong_bytes; i++)
        if (block[i] != VERIFY_POISON)
            return false;
    return true;
}

void verify_note(struct verify_log *log, const struct verify_shape *shape,
                 const struct pattern_finding *f, const uint8_t *block, enum verify_wanted wanted,
                 bool torn_request)
{
    struct verify_finding like = {
        .data = *f,
        .wanted = wanted,
        .phase = log->phase,
        .torn_request = torn_request,
        .untouched = left_untouched(f, block, log->pattern->unit),
        .request_offset = shape->offset,
        .request_bytes = shape->bytes,
        .depth = shape->depth,
        .segments = shape->segments,
        .wrong_from_page =
            (unsigned)((f->block_offset - shape->offset + f->first_wrong) / log->page_size),
    };
    struct verify_finding *mine = find(log->report, &like);

    log->report->wrong_blocks++;
    if (mine)
        mine->count++;
}

void verify_merge(struct verify_report *into, const struct verify_report *from)
{
    into->bytes_written += from->bytes_written;
    into->bytes_checked += from->bytes_checked;
    into->requests += from->requests;
    into->errors += from->errors;
    into->wrong_blocks += from->wrong_blocks;
    into->incomplete = into->incomplete || from->incomplete;
    for (unsigned i = 0; i < from->finding_count; i++) {
        struct verify_finding *f = find(into, &from->findings[i]);
        if (f)
            f->count += from->findings[i].count;
    }
    if (from->phases[0] && strlen(into->phases) + strlen(from->phases) < sizeof into->phases)
        strcat(into->phases, from->phases);
}

/* What the block holds instead of its data. */
static void say_held(const struct verify_finding *f, char *buf, size_t len)
{
    const struct pattern_finding *d = &f->data;
    const unsigned long long found = d->found_generation, expected = d->expected_generation;
    const unsigned long long from = d->found_address;
    char generation[64] = "as expected";

    if (f->wanted != VERIFY_DATA)
        snprintf(generation, sizeof generation, "after it was %s",
                 f->wanted == VERIFY_ZEROS ? "zeroed" : "discarded");
    if (expected == 0 && !f->untouched) {
        snprintf(buf, len, "is not the same as when it was read before");
        return;
    }
    if (f->wanted == VERIFY_DATA && found != expected)
        snprintf(generation, sizeof generation, "where %llu was expected", expected);
    switch (d->fault) {
    case PATTERN_STALE:
    case PATTERN_FUTURE:
        snprintf(buf, len, "holds generation %llu %s", found, generation);
        return;
    case PATTERN_MISDIRECTED:
        snprintf(buf, len, "holds the data of offset %llu, generation %llu %s", from, found,
                 generation);
        return;
    case PATTERN_TORN:
        if (f->torn_request) {
            snprintf(buf, len,
                     "holds generation %llu %s, though an earlier block of the same WRITE is right",
                     found, generation);
            return;
        }
        snprintf(buf, len, "holds in part the data of offset %llu, generation %llu %s", from, found,
                 generation);
        return;
    case PATTERN_ZEROS:
        snprintf(buf, len, "holds zeros, generation %llu was expected", expected);
        return;
    case PATTERN_BIT_FLIP:
        if (f->wanted == VERIFY_DATA)
            snprintf(buf, len, "has flipped bits, generation %llu otherwise", expected);
        else
            snprintf(buf, len, "has flipped bits, zeros otherwise");
        return;
    case PATTERN_OK:
    case PATTERN_FOREIGN:
        snprintf(buf, len, "%s",
                 f->untouched ? "was not read: the buffer is as it was before"
                              : "holds what was never written there");
        return;
    }
}

void verify_finding_text(const struct verify_finding *f, uint32_t page_size, char *buf, size_t len)
{
    const unsigned long long block = f->data.block_offset, offset = f->request_offset;
    const unsigned long long first = block - offset + f->data.first_wrong;
    char held[160], depth[40] = "";

    say_held(f, held, sizeof held);
    if (f->depth)
        snprintf(depth, sizeof depth, ", depth %u", f->depth);
    snprintf(
        buf, len,
        "%s: block at offset %llu %s\n"
        "first wrong byte %llu of the request, page %u of it on (pages of %u bytes, from 0); "
        "%u byte%s of the block %s wrong\n"
        "request READ %llu bytes at %llu in %u segment%s%s, in phase \"%s\"; %llu block%s like "
        "it",
        pattern_fault_name(f->data.fault), block, held, first, f->wrong_from_page, page_size,
        f->data.wrong_bytes, units_s(f->data.wrong_bytes), f->data.wrong_bytes == 1 ? "is" : "are",
        (unsigned long long)f->request_bytes, offset, f->segments, units_s(f->segments), depth,
        f->phase, (unsigned long long)f->count, units_s(f->count));
}
