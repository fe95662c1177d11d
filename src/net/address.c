/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as text. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "net/net_int.h"

void net_address_text(const struct sockaddr *address, socklen_t length, char text[NET_ADDRESS_MAX])
{
    char host[64], port[8];

    if (getnameinfo(address, length, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(text, NET_ADDRESS_MAX, "unknown address");
    else
        snprintf(text, NET_ADDRESS_MAX, address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                 port);
}

int net_numeric(const char *host, const char *port, bool passive, struct addrinfo **list)
{
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | (passive ? AI_PASSIVE : 0),
        .ai_family = host && strcmp(host, "*") == 0 ? AF_INET : AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
    };

    return getaddrinfo(host && strcmp(host, "*") == 0 ? NULL : host, port, &hints, list);
}

/* "3260" behind a colon. -1: no port. */
static int port_of(const char *text, size_t length, uint16_t *port)
{
    unsigned value = 0;

    if (length == 0 || length > 5)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    if (value == 0 || value > UINT16_MAX)
        return -1;
    *port = (uint16_t)value;
    return 0;
}

static int bad(const char *address, const char *why, struct lp_error *err)
{
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "the address \"%.100s\" %s; write host, host:port or [IPv6]:port", address,
                        why);
}

static int split_tag(const char *address, size_t *length, int *tag, struct lp_error *err)
{
    const char *comma = memchr(address, ',', *length);
    uint16_t value;

    *tag = -1;
    if (!comma)
        return 0;
    if (strcmp(comma, ",0") == 0)
        *tag = 0;
    else if (port_of(comma + 1, *length - (size_t)(comma + 1 - address), &value) == 0)
        *tag = value;
    else
        return bad(address, "has something behind the comma that is no portal group tag", err);
    *length = (size_t)(comma - address);
    return 0;
}

int net_address_split(const char *address, char *host, size_t size, uint16_t *port, int *tag,
                      struct lp_error *err)
{
    size_t length = strlen(address), host_length;
    const char *begin = address, *behind;

    for (size_t i = 0; i < length; i++)
        if ((unsigned char)address[i] <= ' ' || address[i] == 0x7f)
            return bad("", "has a blank or control character", err);
    if (split_tag(address, &length, tag, err) < 0)
        return -1;
    if (address[0] == '[') {
        const char *bracket = memchr(address, ']', length);

        if (!bracket)
            return bad(address, "has no closing bracket", err);
        begin = address + 1;
        host_length = (size_t)(bracket - begin);
        behind = bracket + 1;
    } else {
        const char *colon = memchr(address, ':', length);

        /* More than one colon: a bare IPv6 address, which leaves no place for a port. */
        if (colon && memchr(colon + 1, ':', length - (size_t)(colon + 1 - address)))
            colon = NULL;
        host_length = colon ? (size_t)(colon - address) : length;
        behind = address + host_length;
    }
    if (host_length == 0 || host_length >= size)
        return bad(address, host_length ? "is too long" : "names no host", err);
    if (behind < address + length &&
        (*behind != ':' || port_of(behind + 1, length - (size_t)(behind + 1 - address), port) < 0))
        return bad(address, "has no port from 1 to 65535 behind the host", err);
    memcpy(host, begin, host_length);
    host[host_length] = '\0';
    return 0;
}
