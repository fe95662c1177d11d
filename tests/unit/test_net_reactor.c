/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop, its timers and watches, with each engine. */
#include "net_helpers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- timers ---- */

enum { TIMERS = 200 };

struct timed {
    struct net_timer timer;
    struct timers *all;
    uint64_t wanted; /* 0: not set */
    int fired;
};

struct timers {
    struct net_reactor *r;
    struct timed one[TIMERS];
    uint64_t last;
};

static void fire(struct net_timer *timer)
{
    struct timed *t = timer->user;

    assert_true(t->wanted != 0);
    assert_true(t->wanted >= t->all->last); /* in the order of time */
    assert_true(t->wanted <= net_now(t->all->r));
    t->all->last = t->wanted;
    t->wanted = 0;
    t->fired++;
}

static void timers_fire_in_the_order_of_their_time(void **state)
{
    struct net_reactor *r = reactor(state);
    struct fixture *f = *state;
    struct timers *all = calloc(1, sizeof(*all));
    struct rng rng = {20261201};

    stop_time(state);
    assert_non_null(all);
    all->r = r;
    for (unsigned i = 0; i < TIMERS; i++) {
        all->one[i].timer = (struct net_timer){.callback = fire, .user = &all->one[i]};
        all->one[i].all = all;
    }
    for (int turn = 0; turn < 2000; turn++) {
        struct timed *t = &all->one[rng_below(&rng, TIMERS)];
        uint64_t first = NET_NEVER;

        if (rng_below(&rng, 4) == 0) {
            net_timer_cancel(r, &t->timer);
            t->wanted = 0;
        } else {
            t->wanted = f->now + 1 + rng_below(&rng, 1000);
            assert_int_equal(net_timer_set(r, &t->timer, t->wanted), 0);
        }
        f->now += rng_below(&rng, 20);
        all->last = 0;
        net_run_once(r, 0);
        for (unsigned i = 0; i < TIMERS; i++) {
            if (all->one[i].wanted == 0)
                continue;
            assert_true(all->one[i].wanted > f->now); /* what was due has fired */
            if (all->one[i].wanted < first)
                first = all->one[i].wanted;
        }
        assert_int_equal(net_deadline(r), first);
    }
    for (unsigned i = 0; i < TIMERS; i++)
        net_timer_cancel(r, &all->one[i].timer);
    assert_int_equal(net_deadline(r), NET_NEVER);
    free(all);
}

struct again {
    struct net_reactor *r;
    struct net_timer *other;
    int fired;
};

static void set_again(struct net_timer *timer)
{
    struct again *a = timer->user;

    a->fired++;
    net_timer_set(a->r, timer, net_now(a->r));
}

static void a_timer_that_sets_itself_to_now_does_not_hold_the_loop(void **state)
{
    struct again a = {.r = reactor(state)};
    struct net_timer timer = {.callback = set_again, .user = &a};

    net_timer_set(a.r, &timer, 0);
    assert_int_equal(net_run_once(a.r, NET_NEVER), 1);
    assert_int_equal(net_run_once(a.r, NET_NEVER), 1);
    assert_int_equal(a.fired, 2);
    net_timer_cancel(a.r, &timer);
    net_timer_cancel(a.r, &timer); /* once more does no harm */
}

static void cancel_other(struct net_timer *timer)
{
    struct again *a = timer->user;

    a->fired++;
    net_timer_cancel(a->r, a->other);
}

static void a_timer_that_another_one_cancels_does_not_fire(void **state)
{
    struct again a = {.r = reactor(state)}, b = {.r = a.r};
    struct net_timer first = {.callback = cancel_other, .user = &a};
    struct net_timer second = {.callback = cancel_other, .user = &b};

    a.other = &second;
    b.other = &first;
    net_timer_set(a.r, &second, 2);
    net_timer_set(a.r, &first, 1);
    net_run_once(a.r, 0);
    assert_int_equal(a.fired, 1);
    assert_int_equal(b.fired, 0);
    assert_int_equal(net_deadline(a.r), NET_NEVER);
}

static void count_timer(struct net_timer *timer)
{
    ++*(int *)timer->user;
}

static void the_loop_sleeps_until_the_next_timer_and_no_longer(void **state)
{
    struct net_reactor *r = reactor(state);
    int fired = 0;
    struct net_timer timer = {.callback = count_timer, .user = &fired};
    uint64_t at = clock_now_ns() + SECOND / 100;

    net_timer_set(r, &timer, at);
    while (!fired)
        net_run_once(r, NET_NEVER);
    assert_true(net_now(r) >= at);
    assert_int_equal(fired, 1);
}

/* ---- waking ---- */

enum { WAKES = 200 };

struct waker {
    struct net_reactor *r;
    int go; /* a pipe: the loop asks for the next wake-up */
};

static void *wake_on_demand(void *arg)
{
    struct waker *w = arg;
    char byte;

    while (read(w->go, &byte, 1) == 1)
        net_wake(w->r);
    return NULL;
}

static void another_thread_wakes_the_loop(void **state)
{
    struct waker w = {.r = reactor(state)};
    pthread_t thread;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    w.go = fds[0];
    assert_int_equal(pthread_create(&thread, NULL, wake_on_demand, &w), 0);
    for (int i = 0; i < WAKES; i++) {
        assert_int_equal(write(fds[1], "", 1), 1);
        assert_int_equal(net_run_once(w.r, NET_NEVER), 1); /* would hang without the wake-up */
    }
    close(fds[1]);
    pthread_join(thread, NULL);
    close(fds[0]);
    assert_int_equal(net_run_once(w.r, 0), 0);
}

static void many_wake_ups_are_one(void **state)
{
    struct net_reactor *r = reactor(state);

    for (int i = 0; i < 100000; i++) /* more than a pipe holds */
        net_wake(r);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_int_equal(net_run_once(r, 0), 0);
}

static struct net_reactor *signalled; /* a handler has no other way to know */

static void on_signal(int number)
{
    (void)number;
    net_wake(signalled);
}

static void a_signal_handler_wakes_the_loop(void **state)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    signalled = reactor(state);
    sigaction(SIGUSR1, &action, &before);
    errno = 4711;
    raise(SIGUSR1);
    assert_int_equal(errno, 4711);
    assert_int_equal(net_run_once(signalled, NET_NEVER), 1);
    sigaction(SIGUSR1, &before, NULL);
}

/* ---- watches ---- */

struct watched {
    struct net_reactor *r;
    struct net_watch watch;
    struct watched *other;
    int fds[2];
    int called;
    int revents;
};

static void count_event(struct net_watch *watch, int revents)
{
    struct watched *w = watch->user;

    w->called++;
    w->revents = revents;
}

static void watched_open(struct watched *w, struct net_reactor *r, int end, int events)
{
    struct lp_error err;

    w->r = r;
    w->watch.user = w;
    if (!w->watch.callback)
        w->watch.callback = count_event;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fds), 0);
    assert_int_equal(net_watch_start(r, &w->watch, w->fds[end], events, &err), 0);
}

static void watched_close(struct watched *w)
{
    net_watch_stop(w->r, &w->watch);
    close(w->fds[0]);
    close(w->fds[1]);
}

static void a_watch_is_called_as_long_as_there_is_something(void **state)
{
    struct net_reactor *r = reactor(state);
    struct watched w = {0};
    char byte;

    watched_open(&w, r, 0, POLLIN);
    assert_int_equal(net_run_once(r, 0), 0);
    assert_int_equal(write(w.fds[1], "ab", 2), 2);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(net_run_once(r, NET_NEVER), 1);
        assert_int_equal(w.called, i);
        assert_int_equal(w.revents, POLLIN);
    }
    assert_int_equal(read(w.fds[0], &byte, 1), 1);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_int_equal(read(w.fds[0], &byte, 1), 1);
    net_run_once(r, 0); /* an event may have been on its way */
    w.called = 0;
    assert_int_equal(net_run_once(r, 0), 0);
    assert_int_equal(w.called, 0);
    watched_close(&w);
}

static void a_watch_can_be_paused_and_asked_for_something_else(void **state)
{
    struct net_reactor *r = reactor(state);
    struct watched w = {0};

    watched_open(&w, r, 0, POLLIN);
    net_run_once(r, 0);
    net_watch_events(r, &w.watch, 0);
    assert_int_equal(write(w.fds[1], "a", 1), 1);
    assert_int_equal(net_run_once(r, 0), 0);
    net_watch_events(r, &w.watch, POLLOUT);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_int_equal(w.revents, POLLOUT);
    net_watch_events(r, &w.watch, POLLIN | POLLOUT);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_int_equal(w.revents, POLLIN | POLLOUT);
    net_watch_events(r, &w.watch, POLLIN);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_int_equal(w.revents, POLLIN);
    watched_close(&w);
}

/* The kernel must have let go of it, whatever was under way. */
static void a_stopped_watch_leaves_its_descriptor_at_once(void **state)
{
    struct net_reactor *r = reactor(state);

    for (int i = 0; i < 4; i++) {
        struct watched w = {0};
        char byte;

        watched_open(&w, r, 0, POLLIN);
        net_run_once(r, 0);
        if (i & 1)
            assert_int_equal(write(w.fds[1], "a", 1), 1); /* its event is on the way */
        if (i & 2) {
            net_watch_events(r, &w.watch, POLLPRI);
            net_run_once(r, 0);
            net_run_once(r, 0);
        }
        net_watch_stop(r, &w.watch);
        if (i & 1)
            assert_int_equal(read(w.fds[0], &byte, 1), 1);
        close(w.fds[0]);
        assert_int_equal(recv(w.fds[1], &byte, 1, MSG_DONTWAIT), 0); /* the end */
        close(w.fds[1]);
    }
}

static void a_hang_up_is_told_though_nobody_asked(void **state)
{
    struct net_reactor *r = reactor(state);
    struct watched w = {0};

    watched_open(&w, r, 0, POLLIN);
    net_run_once(r, 0);
    close(w.fds[1]);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_true(w.revents & POLLHUP);
    w.fds[1] = dup(w.fds[0]);
    watched_close(&w);
}

static void stop_both(struct net_watch *watch, int revents)
{
    struct watched *w = watch->user;

    (void)revents;
    w->called++;
    net_watch_stop(w->r, &w->watch);
    net_watch_stop(w->r, &w->other->watch);
}

static void a_watch_that_another_one_stops_is_not_called(void **state)
{
    struct net_reactor *r = reactor(state);
    struct watched a = {.watch.callback = stop_both}, b = {.watch.callback = stop_both};

    a.other = &b;
    b.other = &a;
    watched_open(&a, r, 0, POLLOUT);
    watched_open(&b, r, 0, POLLOUT);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_int_equal(a.called + b.called, 1);
    assert_int_equal(net_run_once(r, 0), 0);
    watched_close(&a);
    watched_close(&b);
}

static void replace(struct net_watch *watch, int revents)
{
    struct watched *w = watch->user, *fresh = w->other;

    (void)revents;
    w->called++;
    /* The other one is ready as well, and its event may be in this same turn. */
    watched_close(fresh);
    fresh->watch.callback = count_event;
    watched_open(fresh, w->r, 0, POLLIN); /* takes the same place, and likely the same number */
    net_watch_events(w->r, watch, 0);
}

static void a_new_watch_does_not_get_the_events_of_an_old_one(void **state)
{
    struct net_reactor *r = reactor(state);
    struct watched a = {.watch.callback = replace}, b = {.watch.callback = replace};

    a.other = &b;
    b.other = &a;
    watched_open(&a, r, 0, POLLOUT);
    watched_open(&b, r, 0, POLLOUT);
    for (int i = 0; i < 5; i++)
        net_run_once(r, 0);
    assert_int_equal(a.called + b.called, 1);
    watched_close(&a);
    watched_close(&b);
}

struct starter {
    struct watched first;
    struct watched more[64];
};

static void start_many(struct net_watch *watch, int revents)
{
    struct starter *s = (struct starter *)watch->user;

    (void)revents;
    net_watch_stop(s->first.r, watch);
    for (unsigned i = 0; i < 64; i++)
        watched_open(&s->more[i], s->first.r, 0, POLLOUT);
}

static void a_callback_may_start_many_watches(void **state)
{
    struct net_reactor *r = reactor(state);
    struct starter *s = calloc(1, sizeof(*s));
    int called = 0;

    assert_non_null(s);
    s->first.watch.callback = start_many;
    watched_open(&s->first, r, 0, POLLOUT);
    net_run_once(r, NET_NEVER);
    net_run_once(r, NET_NEVER);
    for (unsigned i = 0; i < 64; i++) {
        called += s->more[i].called;
        watched_close(&s->more[i]);
    }
    assert_int_equal(called, 64);
    watched_close(&s->first);
    free(s);
}

/* More than a turn can report: nobody may wait for ever behind the others. */
static void hundreds_of_ready_watches_all_have_their_turn(void **state)
{
    enum { COUNT = 400, TURNS = 8 };
    struct net_reactor *r = reactor(state);
    struct watched *w = calloc(COUNT, sizeof(*w));
    int least = TURNS;

    assert_non_null(w);
    for (int i = 0; i < COUNT; i++)
        watched_open(&w[i], r, 0, POLLOUT);
    for (int i = 0; i < 4 * TURNS; i++)
        net_run_once(r, NET_NEVER);
    for (int i = 0; i < COUNT; i++) {
        if (w[i].called < least)
            least = w[i].called;
        watched_close(&w[i]);
    }
    assert_true(least >= TURNS - 2);
    free(w);
}

/* ---- in somebody else's loop ---- */

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) == 1;
}

static void the_loop_fits_into_another_one(void **state)
{
    struct net_reactor *r = reactor(state);
    struct watched w = {0};
    int fd = net_reactor_fd(r);
    char byte;

    if (strcmp(net_reactor_engine(r), "poll") == 0) {
        assert_int_equal(fd, -1);
        return;
    }
    watched_open(&w, r, 0, POLLIN);
    for (int i = 0; i < 3; i++) {
        net_flush(r);
        while (readable(fd, 0)) /* removals that have ended, say */
            net_run_once(r, 0), net_flush(r);
        assert_int_equal(w.called, i);
        assert_int_equal(write(w.fds[1], "a", 1), 1);
        assert_true(readable(fd, 20000));
        assert_int_equal(net_run_once(r, 0), 1);
        assert_int_equal(w.called, i + 1);
        assert_int_equal(read(w.fds[0], &byte, 1), 1);
        w.called = i + 1;
        net_run_once(r, 0); /* the level may be told once more */
        w.called = i + 1;
    }
    net_flush(r);
    net_wake(r);
    assert_true(readable(fd, 20000));
    net_run_once(r, 0);
    watched_close(&w);
}

/* ---- engines ---- */

static void the_engine_is_the_one_that_was_asked_for(void **state)
{
    struct net_reactor *r = reactor(state);
    struct net_reactor_opts opts = {.engine = net_reactor_engine(r)};
    struct net_reactor *same = net_reactor_new(&opts, NULL);

    assert_non_null(same);
    assert_string_equal(net_reactor_engine(same), opts.engine);
    net_reactor_free(same);
}

static void an_unknown_engine_is_refused_with_its_name(void **state)
{
    struct net_reactor_opts opts = {.engine = "kqueue"};
    struct lp_error err = {0};

    (void)state;
    assert_null(net_reactor_new(&opts, &err));
    assert_int_equal(err.domain, LP_ERROR_USAGE);
    assert_non_null(strstr(err.msg, "\"kqueue\""));
    assert_non_null(strstr(err.msg, "poll"));
}

static void without_a_wish_some_engine_works(void **state)
{
    struct net_reactor *r = net_reactor_new(NULL, NULL);

    (void)state;
    assert_non_null(r);
    assert_true(net_now(r) <= clock_now_ns());
    net_wake(r);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    net_reactor_free(r);
}

static void no_descriptors_left_is_an_error_with_a_sentence(void **state)
{
    struct rlimit limit, none;
    struct lp_error err = {0};

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_null(net_reactor_new(NULL, &err));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(err.domain, LP_ERROR_SYS);
    assert_int_equal(err.code, EMFILE);
}

static void a_spinning_loop_finds_events_and_ends_in_time(void **state)
{
    struct net_reactor_opts opts = {.engine = net_reactor_engine(reactor(state)),
                                    .spin_ns = SECOND / 1000};
    struct net_reactor *r = net_reactor_new(&opts, NULL);
    struct watched w = {0};
    int fired = 0;
    struct net_timer timer = {.callback = count_timer, .user = &fired};
    char byte;

    assert_non_null(r);
    watched_open(&w, r, 0, POLLIN);
    assert_int_equal(write(w.fds[1], "a", 1), 1);
    assert_int_equal(net_run_once(r, NET_NEVER), 1);
    assert_int_equal(read(w.fds[0], &byte, 1), 1);
    net_run_once(r, 0);
    /* Longer than it spins: it goes to sleep behind it. */
    net_timer_set(r, &timer, clock_now_ns() + SECOND / 200);
    while (!fired)
        net_run_once(r, NET_NEVER);
    watched_close(&w);
    net_reactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(timers_fire_in_the_order_of_their_time),
        BOTH(a_timer_that_sets_itself_to_now_does_not_hold_the_loop),
        BOTH(a_timer_that_another_one_cancels_does_not_fire),
        BOTH(the_loop_sleeps_until_the_next_timer_and_no_longer),
        BOTH(another_thread_wakes_the_loop),
        BOTH(many_wake_ups_are_one),
        BOTH(a_signal_handler_wakes_the_loop),
        BOTH(a_watch_is_called_as_long_as_there_is_something),
        BOTH(a_watch_can_be_paused_and_asked_for_something_else),
        BOTH(a_stopped_watch_leaves_its_descriptor_at_once),
        BOTH(a_hang_up_is_told_though_nobody_asked),
        BOTH(a_watch_that_another_one_stops_is_not_called),
        BOTH(a_new_watch_does_not_get_the_events_of_an_old_one),
        BOTH(a_callback_may_start_many_watches),
        BOTH(hundreds_of_ready_watches_all_have_their_turn),
        BOTH(the_loop_fits_into_another_one),
        BOTH(the_engine_is_the_one_that_was_asked_for),
        cmocka_unit_test(an_unknown_engine_is_refused_with_its_name),
        cmocka_unit_test(without_a_wish_some_engine_works),
        cmocka_unit_test(no_descriptors_left_is_an_error_with_a_sentence),
        BOTH(a_spinning_loop_finds_events_and_ends_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
