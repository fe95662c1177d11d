/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a logical unit is: asked for when a link comes up, and asked again after every new login,
 * because behind the same number there may be another disk (kubernetes and others lost file
 * systems that way).
 */
#ifndef INITIATOR_LUN_H
#define INITIATOR_LUN_H

#include "initiator/link.h"
#include "scsi/pages.h"

enum { LUN_ID_MAX = 64, LUN_SERIAL_MAX = 64, LUN_PROBE_BUFFER = 8192 };

struct lun_info {
    uint8_t lun[8];
    struct scsi_inquiry inquiry;
    struct scsi_vpd_pages pages;
    char serial[LUN_SERIAL_MAX]; /* "" if it has none */
    uint8_t id_type;             /* enum scsi_designator_type of the best designator of the LU */
    uint8_t id_length;           /* 0: it has none */
    uint8_t id[LUN_ID_MAX];
    struct scsi_capacity capacity;
    uint64_t size; /* bytes */
    bool has_limits, has_provisioning, has_characteristics, has_caching;
    struct scsi_block_limits limits;
    struct scsi_provisioning provisioning;
    struct scsi_block_characteristics characteristics;
    struct scsi_caching caching;
    bool write_protected, dpofua;
};

/* Reads it all, step by step, with probe commands. Zeroed before. */
struct lun_probe {
    struct link *link;
    struct lun_info info;
    bool brief;    /* identity, size, protection and cache only, to compare */
    bool any_type; /* what is no disk is no error either: only info.inquiry is filled then */
    void (*done)(struct lun_probe *probe,
                 const struct lp_error *why); /* why: NULL if all is well */
    void *user;

    struct link_command command; /* private */
    struct iovec iov;
    unsigned step;
    uint8_t buffer[LUN_PROBE_BUFFER];
};

/* link is CHECKING or UP; done comes later. */
void lun_probe_start(struct lun_probe *probe, struct link *link, const uint8_t lun[8]);

/* Is it the same disk? 0, or -1 with ESTALE and a sentence that says what differs. The size may
 * have grown. */
int lun_compare(const struct lun_info *before, const struct lun_info *now, struct lp_error *err);

/* Takes over what a later probe found and what may change: size, provisioning, write protection,
 * cache; after a probe that was not brief, all. True: something that a user of the disk can notice
 * has changed. */
bool lun_update(struct lun_info *info, const struct lun_info *now, bool brief);

/* Must the LUN be looked at again after this unit attention (ASC << 8 | ASCQ)? Capacity, mode
 * parameters and identity (C-04). */
bool lun_attention_probes(uint16_t asc);

/* "disk", "storage array controller", ... */
const char *lun_type_name(uint8_t device_type);

/* "naa.6001405...", "eui. ...", "t10. ...": for people. Returns buf. */
const char *lun_id_text(const struct lun_info *info, char *buf, size_t size);

/* REPORT LUNS: calls back for each. Runs the reactor until it has ended. 0 or -1. */
int lun_list(struct link *link, void (*each)(void *user, const uint8_t lun[8]), void *user,
             struct lp_error *err);

/* Runs one command to its end, turning the reactor. Its status. */
int link_run(struct link *link, struct link_command *command);

/* Runs the reactor until the link is UP, or FAILED, or has failed to connect and patience_ns have
 * passed since the call: 0 for a target that was never seen, whose first failure counts. 0, or -1
 * with why. */
int link_wait(struct link *link, uint64_t patience_ns, struct lp_error *err);

#endif
