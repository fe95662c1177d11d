/* SPDX-License-Identifier: BSD-2-Clause */
/* Logins that are refused, redirected, answered oddly: what the link does then. */
#include "link_rig.h"

static bool is_settled(struct rig *g, void *arg)
{
    (void)arg;
    return link_state(g->link) == LINK_UP || link_state(g->link) == LINK_FAILED ||
           link_stats(g->link)->failures > 0;
}

static bool has_failures(struct rig *g, void *arg)
{
    return link_stats(g->link)->failures >= *(unsigned *)arg;
}

/* [I-LOG-08] [B09] */
static void each_login_status_has_its_words_and_its_policy(void **state)
{
    static const struct {
        uint16_t status;
        bool final;
        unsigned connects;
    } rows[] = {
        {0x0200, true, 1},  {0x0201, true, 1},  {0x0202, true, 1},  {0x0203, true, 1},
        {0x0204, true, 1},  {0x0205, true, 1},  {0x0206, true, 2},  {0x0207, true, 1},
        {0x0208, true, 1},  {0x0209, true, 1},  {0x020a, true, 1},  {0x020b, true, 1},
        {0x02ff, true, 1},  {0x0300, false, 1}, {0x0301, false, 1}, {0x0302, false, 1},
        {0x03ff, false, 1}, {0x0401, true, 1},
    };
    struct rig *g = *state;
    char seen[sizeof(rows) / sizeof(*rows)][512];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char number[8];

        g->far.connects = 0;
        g->far.login_status = rows[i].status;
        rig_link(g);
        rig_until(g, is_settled, NULL);
        if ((link_state(g->link) == LINK_FAILED) != rows[i].final)
            fail_msg("status %04x: state %d", rows[i].status, (int)link_state(g->link));
        assert_int_equal(g->far.connects, rows[i].connects);
        snprintf(number, sizeof(number), "%04x", rows[i].status);
        assert_non_null(strstr(link_error(g->link)->msg, number));
        snprintf(seen[i], sizeof(seen[i]), "%s", link_error(g->link)->msg);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seen[i], seen[k]);
        link_close(g->link, 0);
        g->link = NULL;
    }
}

/* [I-LOG-08] */
static void a_target_out_of_service_is_asked_with_back_off(void **state)
{
    struct rig *g = *state;
    unsigned wanted = 12;

    g->far.login_status = 0x0301;
    rig_link(g);
    rig_until(g, has_failures, &wanted);
    assert_int_equal(g->far.connects, 12);
    for (unsigned i = 1; i < 12; i++) {
        uint64_t gap = g->far.connect_ns[i] - g->far.connect_ns[i - 1];
        uint64_t due = i > 5 ? 10 * SECOND : SECOND / 2 << (i - 1);

        assert_int_equal(gap, due < 10 * SECOND ? due : 10 * SECOND);
    }
    g->far.login_status = 0;
    rig_up(g);
}

/* A login that was good before waits for the hold, whatever the target says meanwhile. */
/* [I-LOG-08] */
static void a_refusal_after_a_loss_is_waited_for(void **state)
{
    static const uint16_t statuses[] = {0x0201, 0x0203, 0x0301};
    struct rig *g = *state;
    static struct io io;

    rig_link(g);
    rig_up(g);
    for (unsigned i = 0; i < 3; i++) {
        g->far.login_status = statuses[i];
        g->far.refuse_times = 3;
        far_drop(&g->far);
        rig_pass(g, 0);
        io_write(g, &io, i, 1, 0x44);
        assert_int_equal(io_wait(g, &io), 0);
    }
    g->far.login_status = 0x0203;
    g->far.refuse_times = 0;
    far_drop(&g->far);
    rig_pass(g, 0);
    io_write(g, &io, 4, 1, 0x44);
    assert_int_equal(io_wait(g, &io), -ETIMEDOUT);
    assert_non_null(strstr(link_error(g->link)->msg, "0203"));
}

static void a_login_without_an_answer_ends(void **state)
{
    struct rig *g = *state;
    uint64_t begun = g->now;

    g->far.hang = true;
    rig_link(g);
    rig_until(g, is_settled, NULL);
    assert_int_equal(g->now - begun, 15 * SECOND);
    assert_non_null(strstr(link_error(g->link)->msg, "did not answer the login in time"));
}

/* ---- redirects ---- */

static const char *at(char *text, size_t size, const struct far *far)
{
    snprintf(text, size, "127.0.0.1:%u", far->port);
    return text;
}

/* [I-LOG-09] [B08] */
static void a_redirect_for_now_is_followed_and_forgotten(void **state)
{
    struct rig *g = *state;
    static struct far other;
    char address[64];

    assert_true(far_open(&other, g->r, "127.0.0.1"));
    g->far.login_status = 0x0101;
    g->far.redirect = at(address, sizeof(address), &other);
    rig_link(g);
    rig_up(g);
    assert_int_equal(g->far.connects, 1);
    assert_int_equal(other.logins, 1);
    assert_string_equal(other.target_name, FAR_TARGET);
    assert_memory_equal(other.isids[0], g->opts.login.isid, 6);
    assert_int_equal(link_stats(g->link)->failures, 0);
    far_drop(&other);
    rig_pass(g, SECOND);
    rig_up(g);
    assert_int_equal(g->far.connects, 2); /* asked again where it was configured */
    link_close(g->link, 0);
    g->link = NULL;
    far_close(&other);
}

/* [I-LOG-09] [B08] */
static void a_redirect_for_good_is_remembered_while_it_works(void **state)
{
    struct rig *g = *state;
    static struct far other;
    char address[64];

    assert_true(far_open(&other, g->r, "127.0.0.1"));
    g->far.login_status = 0x0102;
    g->far.redirect = at(address, sizeof(address), &other);
    rig_link(g);
    rig_up(g);
    far_drop(&other);
    rig_pass(g, SECOND);
    rig_up(g);
    assert_int_equal(g->far.connects, 1);
    assert_int_equal(other.logins, 2);
    /* It is gone: back to where it was configured. */
    g->far.login_status = 0;
    far_away(&other);
    rig_pass(g, SECOND);
    rig_up(g);
    assert_int_equal(g->far.logins, 1);
    link_close(g->link, 0);
    g->link = NULL;
    far_close(&other);
}

/* [I-LOG-09] [B08] */
static void rings_end(void **state)
{
    struct rig *g = *state;
    static struct far other;
    char here[64], there[64];

    assert_true(far_open(&other, g->r, "127.0.0.1"));
    g->far.login_status = other.login_status = 0x0101;
    g->far.redirect = at(there, sizeof(there), &other);
    other.redirect = at(here, sizeof(here), &g->far);
    rig_link(g);
    rig_until(g, is_settled, NULL);
    assert_int_equal(link_state(g->link), LINK_FAILED);
    assert_int_equal(g->far.connects + other.connects, LINK_HOPS_MAX + 1);
    assert_non_null(strstr(link_error(g->link)->msg, "ring"));
    link_close(g->link, 0);
    /* To itself. */
    g->far.redirect = here;
    g->far.connects = 0;
    rig_link(g);
    rig_until(g, is_settled, NULL);
    assert_int_equal(g->far.connects, LINK_HOPS_MAX + 1);
    link_close(g->link, 0);
    g->link = NULL;
    far_close(&other);
}

/* [I-LOG-09] [B08] */
static void a_redirect_over_ipv6_is_followed(void **state)
{
    struct rig *g = *state;
    static struct far other;
    char address[64];

    if (!far_open(&other, g->r, "::1")) {
        far_close(&other);
        print_message("skipped: this machine has no IPv6 loopback\n");
        skip();
    }
    snprintf(address, sizeof(address), "[::1]:%u", other.port);
    g->far.login_status = 0x0101;
    g->far.redirect = address;
    rig_link(g);
    rig_up(g);
    assert_int_equal(other.logins, 1);
    link_close(g->link, 0);
    g->link = NULL;
    far_close(&other);
}

/* [I-LOG-09] [B08] */
static void bad_redirects_fail_with_a_sentence(void **state)
{
    static const char *const addresses[] = {
        NULL, "", "[::1", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:1"};
    struct rig *g = *state;

    g->far.login_status = 0x0101;
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        g->far.redirect = addresses[i];
        rig_link(g);
        rig_until(g, is_settled, NULL);
        assert_int_not_equal(link_state(g->link), LINK_UP);
        assert_true(link_error(g->link)->msg[0] != '\0');
        link_close(g->link, 0);
        g->link = NULL;
    }
}

/* ---- CHAP lists ---- */

static void with_chap(struct rig *g)
{
    g->far.only_chap = "5";
    g->opts.login.chap.user = "joe";
    g->opts.login.chap.secret = "abcdefghijkl";
    g->opts.login.chap.secret_length = 12;
}

/* [B01] */
static void a_refused_chap_list_is_tried_once_more_with_md5(void **state)
{
    struct rig *g = *state;

    for (unsigned closes = 0; closes < 2; closes++) {
        with_chap(g);
        g->far.close_on_chap = closes;
        g->far.connects = g->far.offer_count = 0;
        rig_link(g);
        rig_up(g);
        assert_int_equal(g->far.connects, 2);
        assert_int_equal(g->far.offer_count, 2);
        assert_string_equal(g->far.offers[1], "5");
        assert_non_null(strstr(g->log, g->far.offers[0]));
        link_close(g->link, 0);
        g->link = NULL;
    }
}

/* [B01] */
static void never_more_than_two_lists(void **state)
{
    struct rig *g = *state;

    with_chap(g);
    g->far.only_chap = "6";
    rig_link(g);
    rig_until(g, is_settled, NULL);
    assert_int_equal(link_state(g->link), LINK_FAILED);
    assert_int_equal(g->far.connects, 2);
    link_close(g->link, 0);
    /* With a list of the user's own there is no second one. */
    g->far.connects = 0;
    g->opts.login.chap_algorithms = "8,7";
    rig_link(g);
    rig_until(g, is_settled, NULL);
    assert_int_not_equal(link_state(g->link), LINK_UP);
    assert_int_equal(g->far.connects, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINK_TEST(each_login_status_has_its_words_and_its_policy),
        LINK_TEST(a_target_out_of_service_is_asked_with_back_off),
        LINK_TEST(a_refusal_after_a_loss_is_waited_for),
        LINK_TEST(a_login_without_an_answer_ends),
        LINK_TEST(a_redirect_for_now_is_followed_and_forgotten),
        LINK_TEST(a_redirect_for_good_is_remembered_while_it_works),
        LINK_TEST(rings_end),
        LINK_TEST(a_redirect_over_ipv6_is_followed),
        LINK_TEST(bad_redirects_fail_with_a_sentence),
        LINK_TEST(a_refused_chap_list_is_tried_once_more_with_md5),
        LINK_TEST(never_more_than_two_lists),
    };

    return cmocka_run_group_tests_name("logins of a link", tests, NULL, NULL);
}
