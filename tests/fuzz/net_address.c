/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of portals, as a target's TargetAddress or a user gives them. */
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

/* What it is split to comes in the text in that order, and nothing is invented. */
static void split(const char *text, size_t room)
{
    struct lp_error err = {0};
    char *host = malloc(room);
    uint16_t port = 0; /* no port in the text can be 0 */
    int tag = 4711;

    require(host);
    if (net_address_split(text, host, room, &port, &tag, &err) < 0) {
        require(err.domain == LP_ERROR_USAGE && err.msg[0] && !strchr(err.msg, '\n'));
    } else {
        const char *at = strstr(text, host);

        require(host[0] && strlen(host) < room && at);
        require(tag >= -1 && tag <= UINT16_MAX);
        require((tag >= 0) == (strchr(text, ',') != NULL));
        require(port == 0 || strchr(at + strlen(host), ':'));
    }
    free(host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    split(text, 1);
    split(text, 8);
    split(text, 256);
    free(text);
    return 0;
}
