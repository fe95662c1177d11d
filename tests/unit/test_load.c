/* SPDX-License-Identifier: BSD-2-Clause */
/* The load generator against fake engines on virtual time: nothing here depends on a real clock. */
#include "bench/load.h"

#include "bench/units.h"
#include "fake_queue.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BLOCK = 4096, BLOCKS = 1024 };
static const uint64_t us = 1000, ms = 1000000, second = 1000000000;

static char memory[BLOCK * 128];

static struct load_options options(struct fake_queue *f)
{
    return (struct load_options){.pattern = BENCH_SEQUENTIAL,
                                 .read_percent = 100,
                                 .block_bytes = BLOCK,
                                 .length = (uint64_t)BLOCK * BLOCKS,
                                 .depth = 1,
                                 .arena = memory,
                                 .run_ns = second,
                                 .seed = 1,
                                 .cpu = -1,
                                 .now = fake_now,
                                 .now_user = f};
}

static struct load_result *run(struct fake_queue *f, const struct load_options *opts)
{
    struct load_result *r = malloc(sizeof *r);
    struct lp_error err;

    assert_non_null(r);
    assert_int_equal(load_run(&f->q, opts, r, &err), 0);
    assert_int_equal(f->flying_count, 0); /* everything was waited for */
    return r;
}

static void assert_near(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%g is not within %g of %g", value, relative, expected);
}

/* M1: IOPS = min(depth, servers) / service time, and the latency follows from it. */
static void check_littles_law(unsigned servers, unsigned depth)
{
    struct fake_queue f;
    fake_init(&f, servers, 100 * us);
    struct load_options o = options(&f);
    o.depth = depth;
    o.warmup_ns = 20 * ms; /* until the queue in front of a single server is full */
    struct load_result *r = run(&f, &o);

    double at_once = depth < servers ? depth : servers;
    double iops = units_per_second((double)r->requests, r->window_ns);
    assert_near(iops, at_once / 100e-6, 0.02);
    double latency_ns = depth / iops * 1e9;
    assert_near((double)r->latency.sum / (double)r->latency.count, latency_ns, 0.02);
    assert_near((double)histogram_percentile(&r->latency, 0.5), latency_ns, 0.02);
    assert_near(r->depth_mean, depth, 0.02);
    free(r);
}

static void m1_little_s_law_holds_with_one_server(void **state)
{
    (void)state;
    for (unsigned depth = 1; depth <= 128; depth *= 2)
        check_littles_law(1, depth);
}

static void m1_little_s_law_holds_with_64_servers(void **state)
{
    (void)state;
    for (unsigned depth = 1; depth <= 128; depth *= 2)
        check_littles_law(64, depth);
}

static void m2_payload_is_counted_in_decimal_units(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 100 * us);
    struct load_options o = options(&f);
    o.block_bytes = 131072;
    o.length = 131072 * 4;
    struct load_result *r = run(&f, &o);

    assert_int_equal(r->requests, 10000);
    assert_int_equal(r->window_ns, second);
    double gbit = units_gbit_per_s(r->bytes, r->window_ns);
    assert_near(gbit, 10.48576, 1e-12);
    assert_near(units_mb_per_s(gbit), 1310.72, 1e-12);
    assert_near(units_mib_per_s(gbit), 1250, 1e-12);
    free(r);
}

static void no_time_is_no_rate(void **state)
{
    (void)state;
    assert_true(units_gbit_per_s(1000, 0) == 0);
}

static void m3_the_depth_reached_is_told_from_the_depth_asked(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 8, 100 * us);
    f.capacity = 8;
    struct load_options o = options(&f);
    o.depth = 32;
    struct load_result *r = run(&f, &o);

    assert_near(r->depth_mean, 8, 1e-9);
    assert_int_equal(r->depth_max, 8);
    assert_near((double)r->requests, 80000, 0.001);
    free(r);
}

static uint64_t one_in_a_hundred_slow(struct fake_queue *f, uint64_t n, uint64_t start_ns)
{
    (void)f;
    (void)start_ns;
    return n % 100 == 50 ? 10 * ms : 100 * us;
}

static void m4_rare_slow_requests_show_in_the_tail_only(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 0);
    f.service_ns = one_in_a_hundred_slow;
    struct load_options o = options(&f);
    o.run_ns = 10 * second;
    struct load_result *r = run(&f, &o);

    assert_near((double)histogram_percentile(&r->latency, 0.5), 100e3, 1.0 / 64);
    assert_near((double)histogram_percentile(&r->latency, 0.98), 100e3, 1.0 / 64);
    assert_near((double)histogram_percentile(&r->latency, 0.995), 10e6, 1.0 / 64);
    assert_near((double)histogram_percentile(&r->latency, 0.999), 10e6, 1.0 / 64);
    assert_int_equal(r->latency.max, 10 * ms);
    free(r);
}

static uint64_t first_200_slow(struct fake_queue *f, uint64_t n, uint64_t start_ns)
{
    (void)f;
    (void)start_ns;
    return n < 200 ? 500 * us : 100 * us;
}

static void m5_the_first_requests_are_reported_apart(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 0);
    f.service_ns = first_200_slow;
    struct load_options o = options(&f);
    o.warmup_ns = 150 * ms;
    struct load_result *r = run(&f, &o);

    assert_int_equal(r->first_requests, LOAD_FIRST_REQUESTS);
    assert_near(load_first_ratio(r), 5, 1e-9);
    assert_int_equal(r->latency.max, 100 * us); /* none of them is in the window */
    assert_int_equal(r->requests, 10000);
    free(r);
}

static void without_a_warm_up_nothing_is_known_of_first_requests(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 100 * us);
    struct load_options o = options(&f);
    struct load_result *r = run(&f, &o);

    assert_true(load_first_ratio(r) == 0);
    free(r);
}

static uint64_t slower_half_way(struct fake_queue *f, uint64_t n, uint64_t start_ns)
{
    (void)f;
    (void)n;
    return start_ns - 1000000007 < second / 2 ? 60 * us : 100 * us;
}

static void m6_a_fall_by_40_percent_half_way_is_the_drift(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 0);
    f.service_ns = slower_half_way;
    struct load_options o = options(&f);
    struct load_result *r = run(&f, &o);

    assert_near(load_drift(r), -0.4, 0.01);
    free(r);
}

static void a_steady_engine_has_no_drift_even_in_bursts(void **state)
{
    struct fake_queue f;
    (void)state;
    /* All 128 servers end at the same moment, every 70 ms: the worst of bursts. */
    fake_init(&f, 128, 70 * ms);
    struct load_options o = options(&f);
    o.depth = 128;
    o.warmup_ns = 10 * ms;
    struct load_result *r = run(&f, &o);

    assert_near(1 + load_drift(r), 1, 0.01);
    free(r);
}

/* Request n of a depth of 128 that are worked on together: each round takes 25 ms, its requests end
 * within the last millisecond. */
static uint64_t in_rounds(struct fake_queue *f, uint64_t n, uint64_t start_ns)
{
    const uint64_t round = n / 128, begin = 1000000007 + round * 25 * ms;

    (void)f;
    return begin + 24 * ms + n % 128 * 7 * us - start_ns;
}

static void a_short_window_counts_right_where_requests_end_in_bursts(void **state)
{
    struct fake_queue f;
    (void)state;
    /* All at the same moment, for rounds that fit the window well and badly. */
    for (uint64_t round_ms = 5; round_ms <= 100; round_ms++)
        for (uint64_t warmup_ms = 0; warmup_ms <= 10; warmup_ms += 5) {
            fake_init(&f, 128, round_ms * ms);
            struct load_options o = options(&f);
            o.depth = 128;
            o.warmup_ns = warmup_ms * ms;
            o.run_ns = 60 * ms;
            struct load_result *r = run(&f, &o);
            assert_near(units_per_second((double)r->requests, r->window_ns),
                        128e3 / (double)round_ms, 1e-6);
            free(r);
        }
    fake_init(&f, 128, 0);
    f.service_ns = in_rounds;
    struct load_options o = options(&f);
    o.depth = 128;
    o.warmup_ns = 10 * ms;
    o.run_ns = 60 * ms;
    struct load_result *r = run(&f, &o);
    assert_near(units_per_second((double)r->requests, r->window_ns), 128 / 25e-3, 0.01);
    free(r);
}

static void a_path_that_ends_nothing_does_not_stretch_the_window_for_ever(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 100 * ms);
    struct load_options o = options(&f);
    o.depth = 128; /* one round would take 12.8 s */
    o.warmup_ns = 10 * ms;
    o.run_ns = 60 * ms;
    struct load_result *r = run(&f, &o);

    assert_true(r->window_ns >= 8 * 60 * ms && r->window_ns <= 8 * 60 * ms + 100 * ms);
    assert_near(units_per_second((double)r->requests, r->window_ns), 10, 0.25);
    free(r);
}

static int every_tenth_fails(struct fake_queue *f, uint64_t n)
{
    (void)f;
    return n % 10 == 9 ? -EIO : n % 10 == 4 ? -ETIMEDOUT : 0;
}

static void errors_are_counted_by_kind_and_are_no_throughput(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 100 * us);
    f.status = every_tenth_fails;
    struct load_options o = options(&f);
    struct load_result *r = run(&f, &o);

    assert_int_equal(r->requests, 8000);
    assert_int_equal(r->latency.count, 8000);
    assert_int_equal(r->bytes, 8000u * BLOCK);
    assert_int_equal(r->errors, 2000);
    assert_int_equal(r->first_errno, ETIMEDOUT);
    assert_int_equal(r->error_kinds[0].errnum, ETIMEDOUT);
    assert_int_equal(r->error_kinds[0].count, 1000);
    assert_int_equal(r->error_kinds[1].errnum, EIO);
    assert_int_equal(r->error_kinds[1].count, 1000);
    assert_int_equal(r->error_kinds[2].count, 0);
    assert_false(r->lost);
    free(r);
}

static int gone_after_1000(struct fake_queue *f, uint64_t n)
{
    (void)f;
    return n >= 1000 ? -ENODEV : 0;
}

static int gone_for_a_while(struct fake_queue *f, uint64_t n)
{
    (void)f;
    return n >= 1000 && n < 1100 ? -ENODEV : 0;
}

static void a_driver_that_is_gone_ends_the_run_with_what_was_measured(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 100 * us);
    f.status = gone_after_1000;
    struct load_options o = options(&f);
    o.depth = 4;
    struct load_result *r = run(&f, &o);

    assert_true(r->lost);
    assert_int_equal(r->requests, 1000);
    assert_near((double)r->window_ns, 100.1e6, 0.001);
    assert_int_equal(r->errors, 4); /* what was in flight, and nothing after it */
    free(r);
}

static void a_driver_that_is_restarted_continues_the_run(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 100 * us);
    f.status = gone_for_a_while;
    struct load_options o = options(&f);
    o.go_on_after_loss = true;
    struct load_result *r = run(&f, &o);

    assert_false(r->lost);
    assert_int_equal(r->errors, 100);
    assert_int_equal(r->requests, 9900);
    free(r);
}

struct seen {
    uint64_t reads, writes, last_offset;
    bool sequential;
    unsigned per_block[BLOCKS];
    char *arena;
    bool at_address;
};

static void see(struct fake_queue *f, const struct lp_request *req)
{
    struct seen *s = f->user;
    uint64_t block = req->offset / BLOCK;

    assert_int_equal(req->offset % BLOCK, 0);
    assert_true(block < BLOCKS);
    assert_int_equal(req->length, BLOCK);
    assert_int_equal(req->iovcnt, 1);
    assert_int_equal(req->iov->iov_len, BLOCK);
    req->op == LP_READ ? s->reads++ : s->writes++;
    if (s->reads + s->writes > 1 && block != (s->last_offset / BLOCK + 1) % BLOCKS)
        s->sequential = false;
    s->last_offset = req->offset;
    s->per_block[block]++;
    if (req->iov->iov_base != s->arena + req->offset)
        s->at_address = false;
}

static struct seen *watch(struct fake_queue *f, struct seen *s)
{
    memset(s, 0, sizeof *s);
    s->sequential = s->at_address = true;
    s->arena = memory;
    f->see = see;
    f->user = s;
    return s;
}

static void sequential_goes_round_in_order(void **state)
{
    struct fake_queue f;
    struct seen s;
    (void)state;
    fake_init(&f, 1, 100 * us);
    watch(&f, &s);
    struct load_options o = options(&f);
    free(run(&f, &o));

    assert_true(s.sequential);
    assert_int_equal(s.writes, 0);
    assert_true(s.per_block[0] >= 9 && s.per_block[BLOCKS - 1] >= 9);
}

static void sequential_begins_where_it_is_told_to(void **state)
{
    struct fake_queue f;
    struct seen s;
    (void)state;
    fake_init(&f, 1, 100 * us);
    watch(&f, &s);
    struct load_options o = options(&f);
    o.start = (uint64_t)BLOCK * (BLOCKS + 1000); /* also behind the end */
    o.run_ns = 10 * ms;
    free(run(&f, &o));

    assert_true(s.sequential);
    assert_int_equal(s.per_block[999], 0);
    assert_int_equal(s.per_block[1000], 1);
    assert_int_equal(s.per_block[0], 1); /* round the end */
    assert_int_equal(s.per_block[200], 0);
}

static void random_reaches_every_block_and_follows_the_seed(void **state)
{
    struct fake_queue f;
    struct seen s, again, other;
    (void)state;
    struct load_options o = options(&f);
    o.pattern = BENCH_RANDOM;
    o.read_percent = 0;
    fake_init(&f, 1, 50 * us);
    watch(&f, &s);
    free(run(&f, &o));
    fake_init(&f, 1, 50 * us);
    watch(&f, &again);
    free(run(&f, &o));
    o.seed = 2;
    fake_init(&f, 1, 50 * us);
    watch(&f, &other);
    free(run(&f, &o));

    assert_false(s.sequential);
    assert_int_equal(s.reads, 0);
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_true(s.per_block[i] > 0);
    assert_memory_equal(s.per_block, again.per_block, sizeof s.per_block);
    assert_memory_not_equal(s.per_block, other.per_block, sizeof s.per_block);
}

static void a_mix_keeps_its_share(void **state)
{
    struct fake_queue f;
    struct seen s;
    (void)state;
    fake_init(&f, 1, 10 * us);
    watch(&f, &s);
    struct load_options o = options(&f);
    o.read_percent = 70;
    free(run(&f, &o));

    assert_near((double)s.reads / (double)(s.reads + s.writes), 0.7, 0.02);
}

static void requests_use_the_memory_of_their_address(void **state)
{
    struct fake_queue f;
    struct seen s;
    (void)state;
    uint8_t touched[BLOCKS] = {0};
    fake_init(&f, 1, 100 * us);
    watch(&f, &s);
    struct load_options o = options(&f);
    o.depth = 8;
    o.offset = 16 * BLOCK;
    o.length = 64 * BLOCK;
    o.by_address = true;
    o.touched = touched;
    free(run(&f, &o));

    assert_true(s.at_address);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_int_equal(touched[i], i >= 16 && i < 80);
        assert_int_equal(s.per_block[i] > 0, i >= 16 && i < 80);
    }
}

static void a_failed_request_leaves_its_block_untouched(void **state)
{
    struct fake_queue f;
    (void)state;
    uint8_t touched[BLOCKS] = {0};
    fake_init(&f, 1, 100 * us);
    f.status = gone_after_1000;
    struct load_options o = options(&f);
    o.touched = touched;
    free(run(&f, &o));

    for (unsigned i = 0; i < BLOCKS; i++)
        assert_int_equal(touched[i], i < 1000);
}

static volatile sig_atomic_t stop;

static void interrupt_after_100(struct fake_queue *f, const struct lp_request *req)
{
    (void)req;
    if (f->taken == 100)
        stop = 1;
}

static void an_interrupt_stops_at_once_and_waits_for_what_is_in_flight(void **state)
{
    struct fake_queue f;
    (void)state;
    stop = 0;
    fake_init(&f, 1, 100 * us);
    f.see = interrupt_after_100;
    struct load_options o = options(&f);
    o.depth = 4;
    o.interrupted = &stop;
    struct load_result *r = run(&f, &o);

    assert_true(r->interrupted);
    assert_int_equal(r->total_requests, 100);
    assert_near((double)r->window_ns, 9.7e6, 0.01);
    free(r);
}

static void an_engine_slower_than_the_window_is_waited_for(void **state)
{
    struct fake_queue f;
    (void)state;
    fake_init(&f, 1, 3600 * second); /* one hour */
    struct load_options o = options(&f);
    struct load_result *r = run(&f, &o);

    assert_int_equal(r->requests, 0);
    assert_int_equal(r->total_requests, 1);
    /* Eight windows: nothing has had its turn in the first. */
    assert_true(r->window_ns >= 8 * second && r->window_ns < 8 * second + 100 * ms);
    free(r);
}

struct ticks {
    unsigned count;
    uint64_t bytes;
};

static void count_tick(uint64_t bytes, uint64_t ns, void *user)
{
    struct ticks *t = user;

    t->count++;
    assert_true(bytes > t->bytes && ns >= t->count * 100 * ms);
    t->bytes = bytes;
}

static void progress_comes_ten_times_a_second(void **state)
{
    struct fake_queue f;
    struct ticks t = {0};
    (void)state;
    fake_init(&f, 1, 100 * us);
    struct load_options o = options(&f);
    o.warmup_ns = 300 * ms;
    o.tick = count_tick;
    o.tick_user = &t;
    free(run(&f, &o));

    assert_int_equal(t.count, 10);
}

/* Several queues have a thread each, so each needs its own fake; they share no clock, so they all
 * begin at the same virtual time and end at the same one. */
struct many {
    struct fake_queue fakes[4];
};

static uint64_t thread_now(void *user)
{
    (void)user;
    return 0;
}

static int instant_submit(struct lp_queue *q, struct lp_request *req)
{
    struct fake_queue *f = (struct fake_queue *)q;

    /* Ends the run by itself: the clock stands still, so the loss of the driver must do it. */
    req->status = f->taken++ < 1000 ? 0 : -ENODEV;
    f->flying[f->flying_count++].req = req;
    if (f->see)
        f->see(f, req);
    return 0;
}

static int instant_poll(struct lp_queue *q, uint64_t wait_ns)
{
    struct fake_queue *f = (struct fake_queue *)q;
    int n = (int)f->flying_count;

    (void)wait_ns;
    for (unsigned i = 0; i < f->flying_count; i++)
        f->flying[i].req->complete(f->flying[i].req);
    f->flying_count = 0;
    return n;
}

static void several_queues_share_the_range_without_overlap(void **state)
{
    static const struct lp_queue_ops ops = {
        .submit = instant_submit, .poll = instant_poll, .close = fake_close};
    struct many *m = calloc(1, sizeof *m);
    struct seen *seen = calloc(4, sizeof *seen);
    struct load_result *r = calloc(1, sizeof *r);
    struct lp_queue *queues[4];
    struct lp_error err;
    (void)state;

    for (unsigned i = 0; i < 4; i++) {
        fake_init(&m->fakes[i], 1, 0);
        m->fakes[i].q.ops = &ops;
        watch(&m->fakes[i], &seen[i]);
        queues[i] = &m->fakes[i].q;
    }
    struct load_options o = options(&m->fakes[0]);
    o.now = thread_now;
    o.depth = 2;
    assert_int_equal(load_run_all(queues, 4, &o, r, &err), 0);

    assert_int_equal(r->queues, 4);
    assert_int_equal(r->total_requests, 4000);
    assert_int_equal(r->errors, 8);
    assert_int_equal(r->error_kinds[0].errnum, ENODEV);
    assert_int_equal(r->error_kinds[0].count, 8);
    assert_int_equal(r->depth_max, 2);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned b = 0; b < BLOCKS; b++)
            assert_int_equal(seen[i].per_block[b] > 0, b / (BLOCKS / 4) == i);
    free(m);
    free(seen);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m1_little_s_law_holds_with_one_server),
        cmocka_unit_test(m1_little_s_law_holds_with_64_servers),
        cmocka_unit_test(m2_payload_is_counted_in_decimal_units),
        cmocka_unit_test(no_time_is_no_rate),
        cmocka_unit_test(m3_the_depth_reached_is_told_from_the_depth_asked),
        cmocka_unit_test(m4_rare_slow_requests_show_in_the_tail_only),
        cmocka_unit_test(m5_the_first_requests_are_reported_apart),
        cmocka_unit_test(without_a_warm_up_nothing_is_known_of_first_requests),
        cmocka_unit_test(m6_a_fall_by_40_percent_half_way_is_the_drift),
        cmocka_unit_test(a_steady_engine_has_no_drift_even_in_bursts),
        cmocka_unit_test(a_short_window_counts_right_where_requests_end_in_bursts),
        cmocka_unit_test(a_path_that_ends_nothing_does_not_stretch_the_window_for_ever),
        cmocka_unit_test(errors_are_counted_by_kind_and_are_no_throughput),
        cmocka_unit_test(a_driver_that_is_gone_ends_the_run_with_what_was_measured),
        cmocka_unit_test(a_driver_that_is_restarted_continues_the_run),
        cmocka_unit_test(sequential_goes_round_in_order),
        cmocka_unit_test(sequential_begins_where_it_is_told_to),
        cmocka_unit_test(random_reaches_every_block_and_follows_the_seed),
        cmocka_unit_test(a_mix_keeps_its_share),
        cmocka_unit_test(requests_use_the_memory_of_their_address),
        cmocka_unit_test(a_failed_request_leaves_its_block_untouched),
        cmocka_unit_test(an_interrupt_stops_at_once_and_waits_for_what_is_in_flight),
        cmocka_unit_test(an_engine_slower_than_the_window_is_waited_for),
        cmocka_unit_test(progress_comes_ten_times_a_second),
        cmocka_unit_test(several_queues_share_the_range_without_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
