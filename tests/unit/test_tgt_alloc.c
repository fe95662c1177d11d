/* SPDX-License-Identifier: BSD-2-Clause */
/* Target: no memory is allocated per I/O, and its memory has a bound. */
#include "tgt_rig.h"

#include <stdlib.h>
#include <string.h>

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);

/* The linker sends all calls of this program here (tests/meson.build). */
static struct {
    bool counting;
    unsigned calls;
    size_t bytes;
} memory;

static void count(size_t n)
{
    memory.calls += memory.counting;
    memory.bytes += memory.counting ? n : 0;
}

void *__wrap_malloc(size_t n)
{
    count(n);
    return __real_malloc(n);
}

void *__wrap_calloc(size_t each, size_t n)
{
    count(each * n);
    return __real_calloc(each, n);
}

void *__wrap_realloc(void *p, size_t n)
{
    count(n);
    return __real_realloc(p, n);
}

static void io(struct trig *r, uint32_t i)
{
    static uint8_t data[4096];
    struct iscsi_scsi_command write = trig_write(r, 2 * i, i % 100, 8);
    struct iscsi_scsi_command read = trig_read(r, 2 * i + 1, i % 100, 8);

    trig_pattern(data, sizeof data, i);
    trig_put_command(r, 0, &write, data, sizeof data);
    trig_put_command(r, 0, &read, NULL, 0);
    trig_expect_status(r, 0, 2 * i, 0);
    trig_expect_status(r, 0, 2 * i + 1, 0);
}

/* The wire's buffers are at their final size after the first round, so that only the machine could
 * allocate in the second. */
static void io_allocates_nothing(struct trig *r)
{
    trig_start(r, "");
    for (uint32_t i = 0; i < 200; i++)
        io(r, i);
    r->conns[0].wire.from.length = r->conns[0].wire.taken = 0;
    memory.calls = 0;
    memory.counting = true;
    for (uint32_t i = 0; i < 200; i++)
        io(r, i);
    memory.counting = false;
    assert_int_equal(memory.calls, 0);
    assert_int_equal(r->commands, 800);
}

/* [T-ROB-01] */
static void a_session_and_a_connection_have_a_bound(struct trig *r)
{
    memory.bytes = 0;
    memory.counting = true;
    assert_true(trig_connect(r, 0));
    memory.counting = false;
    assert_in_range(memory.bytes, 1, 400 << 10); /* of which the login is given back */
    memory.bytes = 0;
    memory.counting = true;
    assert_int_equal(trig_login(r, 0, KEYS(RIG_KEYS), 0), 0);
    memory.counting = false;
    assert_in_range(memory.bytes, 1, 512 << 10); /* depth 16, and the wire's own buffers */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(io_allocates_nothing),
        RIG(a_session_and_a_connection_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
