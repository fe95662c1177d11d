/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an iscsi: disk logs in and how patient it is. Passed with struct lp_disk_opts. Secrets come
 * from a file or a terminal into memory of the caller, never from a command line; they are referred
 * to until the disk is closed, and the caller wipes them then. The copies of a session are wiped
 * when it ends.
 */
#ifndef LUNPATH_ISCSI_H
#define LUNPATH_ISCSI_H

#include <stdbool.h>
#include <stdint.h>

struct lp_limits;

enum lp_digest {
    LP_DIGEST_IF_ASKED, /* when the target wants it */
    LP_DIGEST_OFF,
    LP_DIGEST_PREFERRED,
    LP_DIGEST_REQUIRED,
};

/* Zero is the default everywhere; strings stay until the disk is closed. */
struct lp_iscsi_opts {
    const char *initiator_name; /* iqn. ..., required */
    const char *initiator_alias;
    uint64_t isid_seed; /* not 0: the same session identifiers each time, so that a new process
                         * takes over the sessions of an old one; 0: new ones */

    /* CHAP: who we are; the user name may also be in the URL. NULL: no authentication. */
    const char *user;
    const char *secret;
    /* Mutual CHAP: what the target must prove to know. target_user NULL: any name. */
    const char *target_user;
    const char *target_secret;
    bool chap_optional;          /* go on if the target asks for no authentication */
    bool allow_short_secrets;    /* under 12 bytes */
    const char *chap_algorithms; /* a CHAP_A list such as "7,5" */

    enum lp_digest header_digest, data_digest;
    unsigned sessions;     /* of each queue, used in turn; 0: 1 */
    uint32_t max_transfer; /* bytes a command; 0: 1 MiB */
    unsigned hold_s;       /* I/O waits so long for a target that is away, then fails; 0: 120 */
    unsigned command_s;    /* a command may take so long; 0: 30 */
    unsigned login_s;      /* 0: 15 */
    unsigned ping_s;       /* silence before the target is pinged; 0: 5 */

    /* For people: what happened, one sentence. Called by the thread that uses the queue. */
    void (*log)(void *user, const char *sentence);
    void *log_user;

    /* The LUN was resized, write-protected or the like: what a queue can take now. Its limits are
     * these already; requests beyond them end with an error. Called by the thread that uses the
     * queue, from its poll; lp_disk_limits() stays as it was at the opening. May be NULL. */
    void (*changed)(void *user, const struct lp_limits *limits);
    void *changed_user;
};

#endif
