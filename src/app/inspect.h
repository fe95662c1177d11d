/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `lunpath inspect` that ask the LUN and take its pages apart. A page that the LUN
 * refuses, or that is malformed, is told as such and is no failure. */
#ifndef APP_INSPECT_H
#define APP_INSPECT_H

#include "app/facts.h"
#include "app/lun_link.h"
#include "initiator/lun.h"

void inspect_inquiry(struct facts *f, struct lun_link *l);
void inspect_vpd(struct facts *f, struct lun_link *l, const struct scsi_vpd_pages *pages);
void inspect_capacity(struct facts *f, const struct lun_info *info);
void inspect_modes(struct facts *f, struct lun_link *l);

#endif
