/* SPDX-License-Identifier: BSD-2-Clause */
/* The published null-driver figures of a macOS iSCSI initiator, Gbit/s of payload. Kept equal to
 * data/published.json by a test. */
#include "bench/report_int.h"

#include <string.h>

const char report_published_warning[] =
    "The published figures come from other hardware and another system. Compare the shape (ratios "
    "between paths, depth 1 against the mean), not the height.";

static const struct published_path published[] = {
    {"software",
     "iSCSI4NAS 27.3 (arm64)",
     "DriverKit, software I/O: no DMA preparation, the CPU moves the data",
     {{68.48, 64.91, 16.43}, {57.02, 52.15, 8.57}},
     "disk utility and CLI"},
    {"dma-page",
     "iSCSI4NAS (arm64), macOS 15+",
     "DriverKit SCSI controller: buffers prepared for DMA, split to one page a task",
     {{2.75, 2.42, 0.55}, {2.67, 2.34, 0.55}},
     "disk utility and CLI"},
    {"dma-block",
     "iSCSI4NAS (Intel)",
     "DriverKit SCSI controller: a block prepared in one contiguous piece",
     {{18.55, 17.88, 7.14}, {18.84, 18.21, 7.17}},
     "disk utility and CLI"},
    {"dev",
     "Dev (arm64)",
     "as dma-page without the protective layer: larger blocks are not reliable",
     {{8.68, 6.62, 1.10}, {6.97, 5.80, 1.09}},
     "CLI only"},
    {"kernel",
     "Dev with KEXT (arm64)",
     "DriverKit and a kernel extension, attached to the kernel itself",
     {{81.23, 69.80, 26.17}, {84.81, 69.83, 23.72}},
     "disk utility and CLI"},
    {.profile = NULL},
};

const struct published_path *report_published(void)
{
    return published;
}

const struct published_path *report_published_find(const char *profile)
{
    for (const struct published_path *p = published; p->profile; p++)
        if (strcmp(p->profile, profile) == 0)
            return p;
    return NULL;
}
