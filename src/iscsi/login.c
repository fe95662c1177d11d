/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, and the words for login statuses. */
#include <string.h>

#include "iscsi/login.h"

int iscsi_name_check(const char *name, const char *what, struct lp_error *err)
{
    static const char *const prefixes[] = {"iqn.", "eui.", "naa."};
    size_t length = name ? strlen(name) : 0;
    bool known = false;

    if (length == 0)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the %s is missing", what);
    if (length > ISCSI_NAME_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the %s has %zu bytes; iSCSI names have at most %d", what, length,
                            ISCSI_NAME_MAX);
    for (unsigned i = 0; i < 3; i++)
        known |= strncmp(name, prefixes[i], 4) == 0 && length > 4;
    if (!known)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the %s \"%.60s\" does not begin with iqn., eui. or naa., as iSCSI "
                            "names do (such as iqn.2024-01.org.example:disk1)",
                            what, text_printable(name) ? name : "?");
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '/')
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "the %s has a blank, a slash or a control character at place %zu",
                                what, i + 1);
    return 0;
}

struct status {
    uint16_t status;
    const char *sentence;
};

static const struct status statuses[] = {
    {ISCSI_LOGIN_INITIATOR_ERROR,
     "the target found an error in our request and does not say which; try with digests and "
     "other options at their defaults, and look into the target's log"},
    {ISCSI_LOGIN_AUTHORIZATION,
     "this initiator may not use the target; add its initiator name to the target's access list"},
    {ISCSI_LOGIN_NOT_FOUND,
     "there is no such target at this portal; run discovery to see the names that exist"},
    {ISCSI_LOGIN_REMOVED, "the target has been removed for good; run discovery again"},
    {ISCSI_LOGIN_VERSION, "the target does not speak version 0 of the protocol"},
    {ISCSI_LOGIN_TOO_MANY_CONNECTIONS,
     "the target allows no further connection or session; log out elsewhere, or raise its limit"},
    {ISCSI_LOGIN_MISSING_PARAMETER,
     "the target misses a key in our login; look into the target's log for which"},
    {ISCSI_LOGIN_CANNOT_INCLUDE,
     "the target cannot add this connection to the session; use another portal or one connection"},
    {ISCSI_LOGIN_SESSION_TYPE,
     "the target does not allow this type of session (discovery or normal)"},
    {ISCSI_LOGIN_NO_SESSION, "the session does not exist any more at the target; log in anew"},
    {ISCSI_LOGIN_INVALID_DURING_LOGIN,
     "the target says that we sent a request that is invalid during login"},
    {ISCSI_LOGIN_TARGET_ERROR, "the target has an error of its own; look into its log, try later"},
    {ISCSI_LOGIN_UNAVAILABLE,
     "the target is not in service now; start its service or LUN, then try again"},
    {ISCSI_LOGIN_OUT_OF_RESOURCES,
     "the target is out of resources, such as sessions or memory; close sessions there, try later"},
};

static const char *authentication_sentence(bool credentials, bool mutual)
{
    if (!credentials)
        return "the target wants authentication and no user and secret were given; give those "
               "that are set at the target for this initiator";
    if (mutual)
        return "authentication failed; check user and secret, and that the target has an outgoing "
               "(mutual) secret for this initiator";
    return "authentication failed; check user and secret, and that they belong to this initiator "
           "name at the target";
}

const char *login_status_sentence(uint16_t status, bool credentials, bool mutual)
{
    if (status == ISCSI_LOGIN_AUTHENTICATION)
        return authentication_sentence(credentials, mutual);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].sentence;
    switch (status >> 8) {
    case 1:
        return "the target has moved, in a way that is not known here";
    case 2:
        return "the target blames this initiator, for a reason that is not known here; look into "
               "the target's log";
    case 3:
        return "the target has a problem that is not known here; try later";
    default:
        return "the target refuses with a status that the standard does not know";
    }
}
