/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that all commands with an iscsi:// URL have in common: who we are, and how patient. */
#ifndef APP_ISCSI_ARGS_H
#define APP_ISCSI_ARGS_H

#include <lunpath/iscsi.h>

#include "app/options.h"
#include "app/secret.h"
#include "iscsi/iscsi.h"

enum iscsi_option {
    ISCSI_INITIATOR,
    ISCSI_USER,
    ISCSI_SECRET_FILE,
    ISCSI_TARGET_USER,
    ISCSI_TARGET_SECRET_FILE,
    ISCSI_CHAP,
    ISCSI_SHORT_SECRETS,
    ISCSI_HEADER_DIGEST,
    ISCSI_DATA_DIGEST,
    ISCSI_SESSIONS,
    ISCSI_HOLD,
    ISCSI_VERBOSE,
    ISCSI_OPTION_COUNT,
};

/* Appends them at table. */
void iscsi_options_append(struct option *table);

/* What the values come to. opts points into the other members: it stays in place. */
struct iscsi_args {
    struct lp_iscsi_opts opts;
    char initiator_name[ISCSI_NAME_MAX + 1];
    char user[256];
    char secret[SECRET_MAX], target_secret[SECRET_MAX];
};

/* v: values of the options above. url: what is to be opened; its user name asks for a secret. Takes
 * secrets from files, from LUNPATH_SECRET and LUNPATH_TARGET_SECRET, or from the terminal. 0 or -1.
 */
int iscsi_args_take(const struct option_value *v, const char *url, struct iscsi_args *args,
                    struct lp_error *err);

/* Wipes the secrets. */
void iscsi_args_forget(struct iscsi_args *args);

bool iscsi_options_given(const struct option_value *v);

#endif
