/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as people and targets write them. */
#include "net_helpers.h"

static void split(const char *address, const char *host, uint16_t port, int tag)
{
    struct lp_error err = {0};
    char got[64];
    uint16_t got_port = 3260;
    int got_tag = 4711;

    if (net_address_split(address, got, sizeof(got), &got_port, &got_tag, &err) < 0)
        fail_msg("%s: %s", address, err.msg);
    assert_string_equal(got, host);
    assert_int_equal(got_port, port);
    assert_int_equal(got_tag, tag);
}

static void an_address_is_split_to_host_port_and_group(void **state)
{
    (void)state;
    split("nas", "nas", 3260, -1);
    split("nas.example:3261", "nas.example", 3261, -1);
    split("192.0.2.1", "192.0.2.1", 3260, -1);
    split("192.0.2.1:1,1", "192.0.2.1", 1, 1);
    split("192.0.2.1,65535", "192.0.2.1", 3260, 65535);
    split("192.0.2.1:65535,0", "192.0.2.1", 65535, 0);
    split("[2001:db8::1]", "2001:db8::1", 3260, -1);
    split("[2001:db8::1]:860,7", "2001:db8::1", 860, 7);
    split("[2001:db8::1],7", "2001:db8::1", 3260, 7);
    split("[fe80::1%eth0]:860", "fe80::1%eth0", 860, -1);
    split("2001:db8::1", "2001:db8::1", 3260, -1);
    split("2001:db8::1,2", "2001:db8::1", 3260, 2);
}

static void what_is_no_address_is_refused_with_a_sentence(void **state)
{
    static const char *const wrong[] = {
        "",         ":3260",     "nas:",   "nas:0",       "nas:65536",   "nas:99999999999",
        "nas:32x",  "nas:-1",    "nas: 1", "na s",        "nas\n",       "nas\x7f",
        "nas,",     "nas,x",     "nas,-1", "nas,65536",   "nas:1,2,3",   "[::1",
        "[]:3260",  "[::1]3260", "[::1]:", "[::1]:70000", "[::1]x:3260", ",1",
        "nas:1,00x"};

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct lp_error err = {0};
        char host[64] = "";
        uint16_t port = 3260;
        int tag;

        if (net_address_split(wrong[i], host, sizeof(host), &port, &tag, &err) == 0)
            fail_msg("\"%s\" was taken for \"%s\" port %u", wrong[i], host, port);
        assert_int_equal(err.domain, LP_ERROR_USAGE);
        assert_non_null(strstr(err.msg, "write host, host:port or [IPv6]:port"));
        assert_null(strchr(err.msg, '\n'));
        assert_int_equal(port, 3260);
    }
}

static void a_host_that_does_not_fit_is_refused(void **state)
{
    struct lp_error err = {0};
    uint16_t port = 3260;
    char host[4];
    int tag;

    (void)state;
    assert_int_equal(net_address_split("nas", host, sizeof(host), &port, &tag, &err), 0);
    assert_int_equal(net_address_split("nas2", host, sizeof(host), &port, &tag, &err), -1);
    assert_non_null(strstr(err.msg, "too long"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_split_to_host_port_and_group),
        cmocka_unit_test(what_is_no_address_is_refused_with_a_sentence),
        cmocka_unit_test(a_host_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
