/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/copy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A sanitizer sees what memcpy touches, but not what every intrinsic does. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__x86_64__) && !defined(SANITIZED)

#include <immintrin.h>

enum { STEP = 4 * sizeof(__m256i) };

static bool can_stream(void)
{
    return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2"))) static void copy_stream(char *dst, const char *src, size_t n)
{
    /* Streaming stores need an aligned target. The source may lie anywhere. */
    size_t head = -(uintptr_t)dst % STEP;
    memcpy(dst, src, head);
    dst += head;
    src += head;
    n -= head;

    for (; n >= STEP; n -= STEP, dst += STEP, src += STEP) {
        const __m256i *from = (const __m256i *)src;
        __m256i *to = (__m256i *)dst;
        __m256i a = _mm256_loadu_si256(from);
        __m256i b = _mm256_loadu_si256(from + 1);
        __m256i c = _mm256_loadu_si256(from + 2);
        __m256i d = _mm256_loadu_si256(from + 3);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
        _mm256_stream_si256(to + 2, c);
        _mm256_stream_si256(to + 3, d);
    }
    memcpy(dst, src, n);
    /* Streaming stores are weakly ordered, also against a later "the data is there" flag. */
    _mm_sfence();
}

#else

static bool can_stream(void)
{
    return false;
}

static void copy_stream(char *dst, const char *src, size_t n)
{
    memcpy(dst, src, n);
}

#endif

void copy_bytes(void *dst, const void *src, size_t n)
{
    if (n >= COPY_STREAM_MIN && can_stream())
        copy_stream(dst, src, n);
    else
        memcpy(dst, src, n);
}

const char *copy_name(void)
{
    return can_stream() ? "AVX2 streaming stores" : "memcpy";
}
