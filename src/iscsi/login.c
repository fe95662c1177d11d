/* SPDX-License-Identifier: BSD-2-Clause */
/* What both roles of the login use: names, statuses in words, security keys. */
#include <string.h>

#include "iscsi/login_int.h"

/* ---- names ---- */

static bool known_prefix(const char *name)
{
    return strncmp(name, "iqn.", 4) == 0 || strncmp(name, "eui.", 4) == 0 ||
           strncmp(name, "naa.", 4) == 0;
}

/* The output of the stringprep template has no ASCII but these (RFC 3722 6.2, 7143 4.2.7.2); what
 * is not ASCII is not judged here. Upper case is let pass: some targets have such names. */
static bool name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == ':' || c == '_' || (unsigned char)c >= 0x80;
}

int iscsi_name_check(const char *name, const char *what, struct lp_error *err)
{
    size_t length = strlen(name);

    if (length > ISCSI_NAME_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0, "the %s has %zu bytes; at most %d are allowed",
                            what, length, ISCSI_NAME_MAX);
    if (!known_prefix(name) || length == 4)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "the %s \"%.40s\" is no iSCSI name: it must begin with iqn., eui. or "
                            "naa., as in iqn.2001-04.com.example:disk1",
                            what, text_printable(name) ? name : "");
    for (size_t i = 0; i < length; i++)
        if (!name_character(name[i]))
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "byte %zu of the %s is not allowed there: use letters, digits, "
                                "\"-\", \".\" and \":\"",
                                i + 1, what);
    return 0;
}

int iscsi_name_normalise(const char *typed, char name[ISCSI_NAME_MAX + 1], const char *what,
                         struct lp_error *err)
{
    size_t length = strlen(typed);

    name[0] = '\0';
    if (length > ISCSI_NAME_MAX)
        return iscsi_name_check(typed, what, err);
    for (size_t i = 0; i <= length; i++)
        name[i] = (char)(typed[i] >= 'A' && typed[i] <= 'Z' ? typed[i] + ('a' - 'A') : typed[i]);
    return iscsi_name_check(name, what, err);
}

/* ---- statuses ---- */

static const char *authentication_sentence(bool credentials, bool mutual)
{
    if (mutual)
        return "the target does not accept the CHAP user name or secret, or has no secret to "
               "prove its own identity with: check both, or leave out mutual authentication";
    if (credentials)
        return "the target does not accept the CHAP user name or secret: check both, upper and "
               "lower case matter";
    return "the target wants authentication: give a CHAP user name and secret";
}

const char *login_status_sentence(uint16_t status, bool credentials, bool mutual)
{
    static const struct {
        uint16_t status;
        const char *sentence;
    } table[] = {
        {ISCSI_LOGIN_OK, "the login goes on"},
        {ISCSI_LOGIN_MOVED_TEMPORARILY, "the target is at another address for now"},
        {ISCSI_LOGIN_MOVED_PERMANENTLY, "the target has moved to another address"},
        {ISCSI_LOGIN_INITIATOR_ERROR,
         "the target finds fault with the login, without saying more; its log may"},
        {ISCSI_LOGIN_AUTHORIZATION,
         "this initiator name may not use the target: add it to the target's access list"},
        {ISCSI_LOGIN_NOT_FOUND,
         "the target name is unknown at this address: check its spelling, or list the targets "
         "there"},
        {ISCSI_LOGIN_REMOVED, "the target was removed from this address and left no new one"},
        {ISCSI_LOGIN_VERSION, "the target speaks another version of iSCSI, not version 0"},
        {ISCSI_LOGIN_TOO_MANY_CONNECTIONS,
         "the target takes no more connections in this session: ask for fewer"},
        {ISCSI_LOGIN_MISSING_PARAMETER,
         "the target misses a parameter: it may want authentication, or a target name"},
        {ISCSI_LOGIN_CANNOT_INCLUDE,
         "the target cannot have this connection in the session: its address belongs to another "
         "portal group"},
        {ISCSI_LOGIN_SESSION_TYPE,
         "the target does not allow this type of session (discovery or normal) to this initiator"},
        {ISCSI_LOGIN_NO_SESSION,
         "the target no longer knows the session: it must be begun anew, and what was in flight is "
         "lost"},
        {ISCSI_LOGIN_INVALID_DURING_LOGIN,
         "the target got a request that does not belong in a login; this is a fault in one of the "
         "two programs"},
        {ISCSI_LOGIN_TARGET_ERROR,
         "the target reports a fault of its own hardware or software: look there"},
        {ISCSI_LOGIN_UNAVAILABLE,
         "the target is not in service now: start it there, or wait until it is up"},
        {ISCSI_LOGIN_OUT_OF_RESOURCES,
         "the target is short of resources: it may have too many sessions or connections"},
    };

    if (status == ISCSI_LOGIN_AUTHENTICATION)
        return authentication_sentence(credentials, mutual);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].status == status)
            return table[i].sentence;
    switch (status >> 8) {
    case 2:
        return "the target refuses the login for a reason that has no standard meaning";
    case 3:
        return "the target cannot serve the login now, for a reason that has no standard meaning";
    default:
        return "the target answered the login with a status that has no standard meaning";
    }
}

/* ---- text ---- */

bool login_copy_text(char *to, size_t size, const char *value)
{
    size_t length = strlen(value);

    to[0] = '\0';
    if (length >= size || !text_printable(value))
        return false;
    memcpy(to, value, length + 1);
    return true;
}

bool login_security_take(struct login_security *s, enum iscsi_key key, const char *value)
{
    switch (key) {
    case KEY_AUTH_METHOD:
        s->auth_method = value;
        return true;
    case KEY_CHAP_A:
        s->a = value;
        return true;
    case KEY_CHAP_I:
        s->i = value;
        return true;
    case KEY_CHAP_C:
        s->c = value;
        return true;
    case KEY_CHAP_N:
        s->n = value;
        return true;
    case KEY_CHAP_R:
        s->r = value;
        return true;
    default:
        return false;
    }
}

int login_chap_identifier(const char *value, uint8_t *identifier)
{
    return text_binary_of_length(value, identifier, 1);
}
