/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iscsi://[USER@]HOST[:PORT]/TARGET/LUN, the form that libiscsi and QEMU know. Secrets are never
 * part of it: a URL is seen by everybody on the machine.
 */
#ifndef INITIATOR_URL_H
#define INITIATOR_URL_H

#include <lunpath/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "iscsi/iscsi.h"

enum { ISCSI_URL_HOST = 256, ISCSI_URL_USER = 256 };

struct iscsi_url {
    char host[ISCSI_URL_HOST]; /* without brackets */
    uint16_t port;
    char user[ISCSI_URL_USER];       /* "" if none */
    char target[ISCSI_NAME_MAX + 1]; /* "" if none */
    uint8_t lun[8];
    bool has_lun;
};

/* needs: which parts must be there. The text is what follows "iscsi:" or the whole URL. 0, or -1
 * and a sentence. %XX is decoded. */
enum iscsi_url_needs { ISCSI_URL_PORTAL, ISCSI_URL_TARGET, ISCSI_URL_LUN };
int iscsi_url_parse(const char *text, enum iscsi_url_needs needs, struct iscsi_url *url,
                    struct lp_error *err);

#endif
