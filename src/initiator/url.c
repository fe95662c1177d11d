/* SPDX-License-Identifier: BSD-2-Clause */
#include "initiator/url.h"

#include <stdio.h>
#include <string.h>

#include "iscsi/login.h"
#include "net/net.h"
#include "scsi/lun.h"

enum { TEXT_MAX = 1024 };

static int bad(struct lp_error *err, const char *why)
{
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "the iSCSI URL %s; write iscsi://[user@]host[:port]/target-name/lun", why);
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. -1: not two hex digits, or a control character. */
static int decode(char *text)
{
    char *to = text;

    for (; *text; text++) {
        int c = (unsigned char)*text;

        if (c == '%') {
            if (hex(text[1]) < 0 || hex(text[2]) < 0)
                return -1;
            c = hex(text[1]) << 4 | hex(text[2]);
            text += 2;
        }
        if (c < 0x20 || c == 0x7f)
            return -1;
        *to++ = (char)c;
    }
    *to = '\0';
    return 0;
}

static int take_user(char **at, struct iscsi_url *url, struct lp_error *err)
{
    char *sign = strchr(*at, '@'), *slash = strchr(*at, '/');

    if (!sign || (slash && slash < sign))
        return 0;
    *sign = '\0';
    if (strchr(*at, ':') || strchr(*at, '%'))
        return bad(err, "must not hold a password, which everybody could see; put it into a file "
                        "and name that with --secret-file");
    if (strlen(*at) >= sizeof(url->user) || **at == '\0')
        return bad(err, "has an empty or too long user name");
    memcpy(url->user, *at, strlen(*at) + 1);
    *at = sign + 1;
    return decode(url->user) < 0 ? bad(err, "has a wrong %-code in the user name") : 0;
}

static int take_portal(const char *text, struct iscsi_url *url, struct lp_error *err)
{
    int tag;

    if (*text == '\0')
        return bad(err, "names no host");
    return net_address_split(text, url->host, sizeof(url->host), &url->port, &tag, err);
}

static int take_target(char *text, struct iscsi_url *url, struct lp_error *err)
{
    if (decode(text) < 0)
        return bad(err, "has a wrong %-code in the target's name");
    if (iscsi_name_check(text, "target name in the iSCSI URL", err) < 0)
        return -1;
    memcpy(url->target, text, strlen(text) + 1);
    return 0;
}

int iscsi_url_parse(const char *text, enum iscsi_url_needs needs, struct iscsi_url *url,
                    struct lp_error *err)
{
    char copy[TEXT_MAX], *at = copy, *slash;

    memset(url, 0, sizeof(*url));
    url->port = ISCSI_PORT;
    if (strncmp(text, "iscsi:", 6) == 0)
        text += 6;
    if (strncmp(text, "//", 2) == 0)
        text += 2;
    else if (needs != ISCSI_URL_PORTAL)
        return bad(err, "does not begin with iscsi://");
    if (strlen(text) >= sizeof(copy))
        return bad(err, "is too long");
    memcpy(copy, text, strlen(text) + 1);
    if (take_user(&at, url, err) < 0)
        return -1;
    slash = strchr(at, '/');
    if (slash)
        *slash++ = '\0';
    if (take_portal(at, url, err) < 0)
        return -1;
    if (!slash || !*slash)
        return needs == ISCSI_URL_PORTAL ? 0 : bad(err, "names no target");
    at = slash;
    slash = strchr(at, '/');
    if (slash)
        *slash++ = '\0';
    if (take_target(at, url, err) < 0)
        return -1;
    if (!slash || !*slash)
        return needs == ISCSI_URL_LUN ? bad(err, "names no LUN") : 0;
    if (scsi_lun_parse(slash, url->lun, err) < 0)
        return -1;
    url->has_lun = true;
    return 0;
}
