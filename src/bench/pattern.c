/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A block is a stream of 64-bit words, word i = scramble(key + i * STEP), where the key follows
 * from seed, address and generation. Over that stream lies the header:
 *
 *   word 0     the key itself
 *   word 1-4   magic, seed, address, generation, each xored over its stream word, so that even
 *              the header of two blocks differs in every word
 *   word 5     checksum of all other words
 *
 * scramble() has an inverse, so nearly any word that is ours gives its block's key back, and with
 * the generation guessed also the address. So data from a wrong place is traced to its source by
 * 8 bytes of it, with or without its header; see trace().
 *
 * The stream has no chain from word to word but the sum's two additions, so a processor works on
 * several words at once.
 */
#include "bench/pattern.h"

#include <stdbool.h>
#include <string.h>

enum { HEADER_WORDS = 6, CHECKSUM_WORD = 5, FLIPPED_BITS = 8 };

/* How far trace() guesses generations; displaced data is looked for near the expected one only. */
enum { NEAR_GENERATIONS = 8, FAR_GENERATIONS = 1024 };

#define STEP 0x9e3779b97f4a7c15u
#define FACTOR 0xa3ec647659359acdu          /* odd */
#define GENERATION_STEP 0xc4ceb9fe1a85ec53u /* odd */
#define MAGIC 0x6c756e7061746831u           /* "lunpath1" */
#define FAR_ADDRESS ((uint64_t)1 << 40)     /* see plausible() */

/* The image that a whole disk of one generation would have, seen byte by byte. */
struct image {
    const struct pattern *p;
    uint64_t generation;
    uint64_t block; /* address of the block that key and checksum belong to */
    uint64_t key, checksum;
};

struct origin { /* where the byte at the start of a block would have come from */
    uint64_t address, generation;
};

struct difference {
    uint32_t first, last, bytes, bits;
    bool zeros; /* all of [first, last] is zero */
};

static inline uint64_t scramble(uint64_t x)
{
    x ^= x >> 32;
    x *= FACTOR;
    return x ^ (x >> 29);
}

static uint64_t unscramble(uint64_t x)
{
    uint64_t inverse = FACTOR; /* of FACTOR, right in 3 bits; each round doubles them */

    for (int i = 0; i < 5; i++)
        inverse *= 2 - FACTOR * inverse;
    x ^= (x >> 29) ^ (x >> 58);
    x *= inverse;
    return x ^ (x >> 32);
}

static uint64_t generation_key(const struct pattern *p, uint64_t generation)
{
    return scramble(scramble(p->seed + STEP) + generation * GENERATION_STEP);
}

static uint64_t block_key(const struct pattern *p, uint64_t address, uint64_t generation)
{
    return scramble(generation_key(p, generation) ^ address);
}

static inline uint64_t load(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t header_word(const struct pattern *p, uint64_t key, uint64_t address,
                                   uint64_t generation, unsigned i)
{
    const uint64_t said[CHECKSUM_WORD] = {0, MAGIC, p->seed, address, generation};

    return i == 0 ? key : scramble(key + i * STEP) ^ said[i];
}

/* Makes one block's words in order: stores them in out, or, where that is NULL, compares them with
 * in. Returns 0 when all are equal. Inlined into each caller, so that the choice costs nothing. */
static inline __attribute__((always_inline)) uint64_t
make_block(const struct pattern *p, uint64_t address, uint64_t generation, uint8_t *out,
           const uint8_t *in, uint64_t *checksum)
{
    const uint64_t key = block_key(p, address, generation), words = p->unit / 8;
    uint64_t sum = 0, sum_of_sums = 0, different = 0, x = key + HEADER_WORDS * STEP;

    for (unsigned i = 0; i < CHECKSUM_WORD; i++) {
        uint64_t word = header_word(p, key, address, generation, i);
        sum_of_sums += sum += word;
        if (out)
            memcpy(out + i * 8, &word, 8);
        else if (in)
            different |= load(in + i * 8) ^ word;
    }
    for (uint64_t i = HEADER_WORDS; i < words; i++, x += STEP) {
        uint64_t word = scramble(x);
        sum_of_sums += sum += word;
        if (out)
            memcpy(out + i * 8, &word, 8);
        else if (in)
            different |= load(in + i * 8) ^ word;
    }
    *checksum = scramble(sum_of_sums ^ (sum << 32 | sum >> 32));
    if (out)
        memcpy(out + CHECKSUM_WORD * 8, checksum, 8);
    else if (in)
        different |= load(in + CHECKSUM_WORD * 8) ^ *checksum;
    return different;
}

void pattern_fill(const struct pattern *p, void *buf, size_t length, uint64_t offset,
                  uint64_t generation)
{
    uint64_t checksum;

    for (size_t at = 0; at < length; at += p->unit)
        make_block(p, offset + at, generation, (uint8_t *)buf + at, NULL, &checksum);
}

/* ---- from here on: something is wrong, and time does not matter ---- */

static uint8_t image_byte(struct image *im, uint64_t address)
{
    uint64_t block = address & ~(uint64_t)(im->p->unit - 1), word;
    unsigned i = (unsigned)((address - block) / 8);

    if (block != im->block) {
        im->block = block;
        im->key = block_key(im->p, block, im->generation);
        make_block(im->p, block, im->generation, NULL, NULL, &im->checksum);
    }
    if (i == CHECKSUM_WORD)
        word = im->checksum;
    else if (i < CHECKSUM_WORD)
        word = header_word(im->p, im->key, block, im->generation, i);
    else
        word = scramble(im->key + i * STEP);
    uint8_t bytes[8];
    memcpy(bytes, &word, sizeof bytes);
    return bytes[address % 8];
}

static struct difference compare(const struct pattern *p, const uint8_t *block, struct origin from)
{
    struct image im = {.p = p, .generation = from.generation, .block = UINT64_MAX};
    struct difference d = {.first = p->unit, .zeros = true};

    for (uint32_t i = 0; i < p->unit; i++) {
        unsigned bits = (unsigned)__builtin_popcount(block[i] ^ image_byte(&im, from.address + i));
        if (bits == 0)
            continue;
        if (d.bytes++ == 0)
            d.first = i;
        d.last = i;
        d.bits += bits;
    }
    for (uint32_t i = d.first; i <= d.last && i < p->unit; i++)
        d.zeros = d.zeros && block[i] == 0;
    return d;
}

/* The key of the block that holds `word` as its i-th. Words that depend on more than the key and
 * the seed cannot be turned back. */
static bool key_of_word(const struct pattern *p, uint64_t word, uint64_t i, uint64_t *key)
{
    if (i > 2 && i < HEADER_WORDS)
        return false;
    if (i == 0)
        *key = word;
    else
        *key = unscramble(i == 1 ? word ^ MAGIC : i == 2 ? word ^ p->seed : word) - i * STEP;
    return true;
}

/* A wrong guess gives a random address, so one that lies on a block and in the first TiB, or near
 * what was read, is right but for one in 2^32. */
static bool plausible(const struct pattern *p, uint64_t address, uint64_t near)
{
    return address % p->unit == 0 && address < FAR_ADDRESS + 4 * near;
}

/* The block with this key, of a generation at most `reach` away from the expected one. */
static bool block_of_key(const struct pattern *p, uint64_t key, struct origin expected,
                         uint64_t reach, struct origin *found)
{
    const uint64_t mixed = unscramble(key);

    for (uint64_t i = 0; i <= 2 * reach; i++) {
        uint64_t away = (i + 1) / 2;
        uint64_t generation = expected.generation + (i % 2 ? -away : away);
        uint64_t address = mixed ^ generation_key(p, generation);
        if (i % 2 && away > expected.generation) /* below generation 0 */
            continue;
        if (plausible(p, address, expected.address)) {
            *found = (struct origin){address, generation};
            return true;
        }
    }
    return false;
}

/* The header alone, which knows any generation; of another seed's block says that it is not ours */
static bool header_says(const struct pattern *p, const uint8_t *block, struct origin *found)
{
    const uint64_t key = load(block);
    uint64_t said[CHECKSUM_WORD];

    for (unsigned i = 1; i < CHECKSUM_WORD; i++)
        said[i] = load(block + i * 8) ^ scramble(key + i * STEP);
    *found = (struct origin){said[3], said[4]};
    return said[1] == MAGIC && said[2] == p->seed && block_key(p, said[3], said[4]) == key;
}

/* Data at the right place in its block: the word at `at` (a multiple of 8) says which block, if it
 * is not simply right. */
static bool trace_word(const struct pattern *p, const uint8_t *block, uint32_t at,
                       struct origin expected, struct origin *found)
{
    uint64_t key;

    return key_of_word(p, load(block + at), at / 8, &key) &&
           block_of_key(p, key, expected, FAR_GENERATIONS, found) &&
           (found->address != expected.address || found->generation != expected.generation);
}

/* Data that is displaced within its block, by any number of bytes: two words in a row from the same
 * stream lie STEP apart, wherever they are from; then each place in the block is tried. */
static bool trace_displaced(const struct pattern *p, const uint8_t *block, uint32_t at,
                            struct origin expected, struct origin *found)
{
    const uint64_t x = unscramble(load(block + at));

    if (unscramble(load(block + at + 8)) - x != STEP)
        return false;
    for (uint64_t i = HEADER_WORDS; i < p->unit / 8; i++) {
        if (i * 8 == at || !block_of_key(p, x - i * STEP, expected, NEAR_GENERATIONS, found))
            continue;
        found->address += i * 8 - at; /* of the block's first byte; may be none of a block */
        return true;
    }
    return false;
}

/* Fewer bytes than a word: they may be those of another generation at the same address. */
static bool trace_few_bytes(const struct pattern *p, const uint8_t *block,
                            const struct difference *d, struct origin expected,
                            struct origin *found)
{
    for (uint64_t i = 0; i <= 2 * NEAR_GENERATIONS; i++) {
        struct image im = {.p = p, .block = UINT64_MAX};
        im.generation = expected.generation + i - NEAR_GENERATIONS;
        uint32_t at = d->first;
        while (at <= d->last && block[at] == image_byte(&im, expected.address + at))
            at++;
        *found = (struct origin){expected.address, im.generation};
        if (at > d->last)
            return true;
    }
    *found = (struct origin){0, 0};
    return false;
}

/* Where do the wrong bytes come from? Looks at the start and the end of them. */
static bool trace(const struct pattern *p, const uint8_t *block, const struct difference *d,
                  struct origin expected, struct origin *found)
{
    const uint32_t first = (d->first + 7) & ~7u, end = d->last + 1;

    if (d->first == 0 && header_says(p, block, found))
        return true;
    for (uint32_t at = first; at + 8 <= end && at < first + 8 * 8; at += 8)
        if (trace_word(p, block, at, expected, found))
            return true;
    for (uint32_t at = end & ~7u, n = 0; at >= first + 8 && n < 2; at -= 8, n++)
        if (trace_word(p, block, at - 8, expected, found))
            return true;
    for (uint32_t at = d->first; at + 16 <= end && at < d->first + 64; at++)
        if (trace_displaced(p, block, at, expected, found))
            return true;
    return trace_few_bytes(p, block, d, expected, found);
}

static enum pattern_fault name_origin(struct origin expected, struct origin found)
{
    if (found.address != expected.address)
        return PATTERN_MISDIRECTED;
    return found.generation < expected.generation ? PATTERN_STALE : PATTERN_FUTURE;
}

static enum pattern_fault classify(const struct pattern *p, const uint8_t *block,
                                   struct origin expected, const struct difference *d,
                                   struct origin *found)
{
    if (d->bits <= FLIPPED_BITS)
        return PATTERN_BIT_FLIP;
    if (d->zeros)
        return PATTERN_ZEROS;
    if (!trace(p, block, d, expected, found))
        return PATTERN_FOREIGN;
    struct difference from_source = compare(p, block, *found);
    return from_source.bits <= FLIPPED_BITS ? name_origin(expected, *found) : PATTERN_TORN;
}

static void describe(const struct pattern *p, const uint8_t *block, struct origin expected,
                     struct pattern_finding *f)
{
    struct origin found = {0, 0};
    struct difference d = compare(p, block, expected);
    enum pattern_fault fault = classify(p, block, expected, &d, &found);

    *f = (struct pattern_finding){
        .fault = fault,
        .block_offset = expected.address,
        .first_wrong = d.first,
        .wrong_bytes = d.bytes,
        .expected_generation = expected.generation,
        .found_generation = found.generation,
        .found_address = found.address,
    };
}

uint64_t pattern_check(const struct pattern *p, const void *buf, size_t length, uint64_t offset,
                       uint64_t generation, struct pattern_finding *first)
{
    uint64_t wrong = 0, checksum;

    for (size_t at = 0; at < length; at += p->unit) {
        const uint8_t *block = (const uint8_t *)buf + at;
        if (make_block(p, offset + at, generation, NULL, block, &checksum) == 0)
            continue;
        if (wrong++ == 0 && first)
            describe(p, block, (struct origin){offset + at, generation}, first);
    }
    return wrong;
}

const char *pattern_fault_name(enum pattern_fault fault)
{
    static const char *const names[] = {
        [PATTERN_OK] = "right",          [PATTERN_STALE] = "stale",
        [PATTERN_FUTURE] = "future",     [PATTERN_MISDIRECTED] = "misdirected",
        [PATTERN_TORN] = "torn",         [PATTERN_ZEROS] = "zeros",
        [PATTERN_BIT_FLIP] = "bit flip", [PATTERN_FOREIGN] = "foreign",
    };

    return names[fault];
}
