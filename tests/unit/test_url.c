/* SPDX-License-Identifier: BSD-2-Clause */
/* iscsi: URLs: what is in them, and what is refused with which words. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "initiator/url.h"
#include "scsi/lun.h"

#define IQN "iqn.2026-01.test:disk"

static void the_parts_of_a_url_are_found(void **state)
{
    static const struct {
        const char *text;
        enum iscsi_url_needs needs;
        const char *host;
        uint16_t port;
        const char *user, *target;
        int lun; /* -1: none */
    } rows[] = {
        {"iscsi://nas", ISCSI_URL_PORTAL, "nas", 3260, "", "", -1},
        {"iscsi://nas/", ISCSI_URL_PORTAL, "nas", 3260, "", "", -1},
        {"nas", ISCSI_URL_PORTAL, "nas", 3260, "", "", -1},
        {"nas:3261", ISCSI_URL_PORTAL, "nas", 3261, "", "", -1},
        {"//nas:1/" IQN, ISCSI_URL_TARGET, "nas", 1, "", IQN, -1},
        {"iscsi://nas/" IQN "/", ISCSI_URL_TARGET, "nas", 3260, "", IQN, -1},
        {"iscsi://nas/" IQN "/7", ISCSI_URL_TARGET, "nas", 3260, "", IQN, 7},
        {"iscsi://joe@10.0.0.9:65535/" IQN "/0", ISCSI_URL_LUN, "10.0.0.9", 65535, "joe", IQN, 0},
        {"iscsi://[2001:db8::5]:3261/" IQN "/255", ISCSI_URL_LUN, "2001:db8::5", 3261, "", IQN,
         255},
        {"iscsi://[::1]/" IQN "/1", ISCSI_URL_LUN, "::1", 3260, "", IQN, 1},
        {"iscsi://nas/iqn.2026-01.test%3adisk/1", ISCSI_URL_LUN, "nas", 3260, "", IQN, 1},
        {"iscsi://nas/iqn.2026-01.test%3Adisk/1", ISCSI_URL_LUN, "nas", 3260, "", IQN, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct lp_error err = {0};
        struct iscsi_url url;

        if (iscsi_url_parse(rows[i].text, rows[i].needs, &url, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.msg);
        assert_string_equal(url.host, rows[i].host);
        assert_int_equal(url.port, rows[i].port);
        assert_string_equal(url.user, rows[i].user);
        assert_string_equal(url.target, rows[i].target);
        assert_int_equal(url.has_lun, rows[i].lun >= 0);
        if (rows[i].lun >= 0)
            assert_int_equal(url.lun[1], rows[i].lun);
    }
}

static void what_is_wrong_with_a_url_is_said(void **state)
{
    static const struct {
        const char *text;
        enum iscsi_url_needs needs;
        const char *word;
    } rows[] = {
        {"", ISCSI_URL_PORTAL, "host"},
        {"iscsi://", ISCSI_URL_LUN, "host"},
        {"iscsi:///" IQN "/0", ISCSI_URL_LUN, "host"},
        {"iscsi:nas/" IQN "/0", ISCSI_URL_LUN, "iscsi://"},
        {"iscsi://nas", ISCSI_URL_TARGET, "target"},
        {"iscsi://nas/", ISCSI_URL_LUN, "target"},
        {"iscsi://nas/" IQN, ISCSI_URL_LUN, "LUN"},
        {"iscsi://nas/" IQN "/", ISCSI_URL_LUN, "LUN"},
        {"iscsi://nas/" IQN "/x", ISCSI_URL_LUN, "LUN"},
        {"iscsi://nas/" IQN "/-1", ISCSI_URL_LUN, "LUN"},
        {"iscsi://nas/" IQN "/1/2", ISCSI_URL_LUN, "LUN"},
        {"iscsi://nas/" IQN "/99999999", ISCSI_URL_LUN, "LUN"},
        {"iscsi://nas:0/" IQN "/0", ISCSI_URL_LUN, "port"},
        {"iscsi://nas:70000/" IQN "/0", ISCSI_URL_LUN, "port"},
        {"iscsi://nas:x/" IQN "/0", ISCSI_URL_LUN, "port"},
        {"iscsi://[::1/" IQN "/0", ISCSI_URL_LUN, "]"},
        {"iscsi://nas/disk/0", ISCSI_URL_LUN, "iqn."},
        {"iscsi://nas/iqn.2026-01.test%/0", ISCSI_URL_LUN, "%"},
        {"iscsi://nas/iqn.2026-01.test%4/0", ISCSI_URL_LUN, "%"},
        {"iscsi://nas/iqn.2026-01.test%00/0", ISCSI_URL_LUN, "%"},
        {"iscsi://nas/iqn.2026-01.test%0a/0", ISCSI_URL_LUN, "%"},
        {"iscsi://joe:secret@nas/" IQN "/0", ISCSI_URL_LUN, "--secret-file"},
        {"iscsi://joe%secret@nas/" IQN "/0", ISCSI_URL_LUN, "--secret-file"},
        {"iscsi://@nas/" IQN "/0", ISCSI_URL_LUN, "user"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct lp_error err = {0};
        struct iscsi_url url;

        if (iscsi_url_parse(rows[i].text, rows[i].needs, &url, &err) == 0)
            fail_msg("\"%s\" was taken", rows[i].text);
        if (!strstr(err.msg, rows[i].word) || strchr(err.msg, '\n') || strstr(err.msg, "secret@"))
            fail_msg("\"%s\": %s", rows[i].text, err.msg);
    }
}

static void parts_that_are_too_long_are_refused(void **state)
{
    static const char *const heads[] = {"iscsi://", "iscsi://u", "iscsi://nas/iqn.2026-01.t:"};
    static const char *const tails[] = {"/" IQN "/0", "@nas/" IQN "/0", "/0"};

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        for (size_t n = 200; n < 2000; n += 37) {
            struct lp_error err = {0};
            struct iscsi_url url;
            char *text = malloc(n + 200), *at = stpcpy(text, heads[i]);

            memset(at, 'a', n);
            strcpy(at + n, tails[i]);
            if (iscsi_url_parse(text, ISCSI_URL_LUN, &url, &err) == 0)
                assert_true(n < 256);
            else
                assert_true(err.msg[0] != '\0');
            free(text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_url_are_found),
        cmocka_unit_test(what_is_wrong_with_a_url_is_said),
        cmocka_unit_test(parts_that_are_too_long_are_refused),
    };

    return cmocka_run_group_tests_name("iSCSI URLs", tests, NULL, NULL);
}
