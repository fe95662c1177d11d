/* SPDX-License-Identifier: BSD-2-Clause */
/* iscsi: URLs: what is taken is whole, what is refused has a sentence. */
#include <stdlib.h>
#include <string.h>

#include "initiator/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    for (unsigned needs = ISCSI_URL_PORTAL; needs <= ISCSI_URL_LUN; needs++) {
        struct lp_error err = {0};
        struct iscsi_url url;

        if (iscsi_url_parse(text, (enum iscsi_url_needs)needs, &url, &err) < 0) {
            require(err.domain != LP_ERROR_NONE && err.msg[0]);
            continue;
        }
        require(url.host[0] && url.port > 0);
        require(needs < ISCSI_URL_TARGET || url.target[0]);
        require(needs < ISCSI_URL_LUN || url.has_lun);
        require(strlen(url.target) <= ISCSI_NAME_MAX);
    }
    free(text);
    return 0;
}
