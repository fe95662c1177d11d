/* SPDX-License-Identifier: BSD-2-Clause */
/* Disk URLs: null: disks, faults on them, and what of a target is taken for a path. */
#include "app/target.h"

#include <lunpath/disk.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
    if (!right)
        abort();
}

static void open_and_close(const char *url)
{
    struct lp_error err = {0};
    struct lp_disk *disk = lp_disk_open(url, NULL, &err);

    if (!disk) {
        require(err.domain != LP_ERROR_NONE && err.msg[0]);
        return;
    }
    require(strcmp(lp_disk_url(disk), url) == 0);
    require(lp_disk_limits(disk)->size > 0);
    lp_disk_close(disk);
}

/* Nothing that is a URL of a disk in memory may be taken for a path, and a path is a part of it. */
static void check_target(const char *text)
{
    const char *path = target_path(text);
    char *url = target_url(text);

    require(url);
    if (path) {
        require(path >= text && path <= text + strlen(text));
        require(strcmp(target_path(url), path) == 0);
    }
    free(url);
}

/* Disks that would take memory or open files are not opened. */
static bool harmless(const char *text)
{
    return !strstr(text, "ram:") && !strstr(text, "file:");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const schemes[] = {"",
                                          "null:", "fault:", "fault:flip=3:null:", "fault:stale:"};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t head = strlen(schemes[i]);
        char *text = malloc(head + size + 1);
        require(text);
        memcpy(text, schemes[i], head);
        memcpy(text + head, data, size);
        text[head + size] = '\0';
        check_target(text);
        if (harmless(text))
            open_and_close(text);
        free(text);
    }
    return 0;
}
