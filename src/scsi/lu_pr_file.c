/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The APTPL file: registrations and the reservation over a restart (S-41). Text, replaced as a
 * whole:
 *
 *     lunpath persistent reservations 1
 *     registrant 00000000000000ab 1 iqn.2026-01.com.example:host,i,0x400001370000
 *     reservation 5 0
 *     end
 *
 * registrant: key, relative target port, initiator port. reservation: type, and the index of the
 * holder among the registrants above, or -1 for all of them. Without "end" the file was cut.
 */
#include "scsi/lu_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char title[] = "lunpath persistent reservations 1";

enum { FILE_MAX = 128 * 1024, LINE_MAX_BYTES = 512 };

/* ---- writing ---- */

static void print(FILE *f, const struct lu_pr *pr)
{
    int index = 0, holder = -1;

    fprintf(f, "%s\n", title);
    for (int i = 0; pr->aptpl && i < LU_REGISTRANTS_MAX; i++) {
        const struct lu_registrant *r = &pr->registrants[i];
        if (r->key == 0)
            continue;
        fprintf(f, "registrant %016" PRIx64 " %u %s\n", r->key, r->relative_port, r->port_name);
        if (i == pr->holder)
            holder = index;
        index++;
    }
    if (pr->aptpl && pr->type != SCSI_PR_NONE)
        fprintf(f, "reservation %u %d\n", pr->type, holder);
    fprintf(f, "end\n");
}

static int write_file(const char *path, const struct lu_pr *pr)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    int e;

    if (!f) {
        e = errno;
        if (fd >= 0)
            close(fd);
        return -e;
    }
    errno = EIO;
    print(f, pr);
    e = fflush(f) != 0 || fsync(fd) != 0 ? errno : 0;
    if (fclose(f) != 0 && e == 0)
        e = errno;
    return -e;
}

/* The new name is on the medium too when its folder is. */
static int sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;

    if (n >= sizeof folder)
        return -ENAMETOOLONG;
    memcpy(folder, path, n);
    strcpy(folder + n, slash ? (n == 0 ? "/" : "") : ".");
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = fsync(fd) != 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return e;
}

int lu_pr_save(const struct lu *lu)
{
    char new_path[4096];
    int e;

    if (!lu->aptpl_path)
        return -ENOENT;
    if (snprintf(new_path, sizeof new_path, "%s.new", lu->aptpl_path) >= (int)sizeof new_path)
        return -ENAMETOOLONG;
    e = write_file(new_path, &lu->pr);
    if (e == 0 && rename(new_path, lu->aptpl_path) != 0)
        e = -errno;
    if (e == 0)
        e = sync_folder(lu->aptpl_path);
    if (e != 0)
        unlink(new_path);
    return e;
}

/* ---- reading ---- */

static int take_registrant(struct lu_pr *pr, int index, const char *line)
{
    struct lu_registrant *r;
    unsigned port;
    uint8_t id[LU_PORT_NAME_MAX + 8];

    if (index >= LU_REGISTRANTS_MAX)
        return -1;
    r = &pr->registrants[index];
    if (sscanf(line, "registrant %16" SCNx64 " %5u %255s", &r->key, &port, r->port_name) != 3)
        return -1;
    r->relative_port = (uint16_t)port;
    if (r->key == 0 || port == 0 || port > UINT16_MAX)
        return -1;
    /* The name is judged where those of initiators are. */
    size_t n = lu_transport_id_pack(r->port_name, id);
    return lu_transport_id_unpack(id, n, r->port_name);
}

static int take_reservation(struct lu_pr *pr, int count, const char *line)
{
    unsigned type;
    int holder;

    if (sscanf(line, "reservation %1u %4d", &type, &holder) != 2)
        return -1;
    bool all = lu_pr_is_all((uint8_t)type);
    bool known = all || lu_pr_is_registrants((uint8_t)type) || type == SCSI_PR_WRITE_EXCLUSIVE ||
                 type == SCSI_PR_EXCLUSIVE_ACCESS;
    if (!known || count == 0 || (all ? holder != -1 : holder < 0 || holder >= count))
        return -1;
    pr->type = (uint8_t)type;
    pr->holder = holder;
    return 0;
}

static int take_line(struct lu_pr *pr, int *count, const char *line)
{
    if (strncmp(line, "registrant ", 11) == 0)
        return pr->type == SCSI_PR_NONE ? take_registrant(pr, (*count)++, line) : -1;
    if (strncmp(line, "reservation ", 12) == 0)
        return pr->type == SCSI_PR_NONE ? take_reservation(pr, *count, line) : -1;
    return -1;
}

static int damaged(struct lp_error *err, int line)
{
    return lp_error_set(err, LP_ERROR_USAGE, 0,
                        "line %d of the persistent reservations is damaged: restore the file, or "
                        "remove it to start without reservations",
                        line);
}

static int parse(struct lu_pr *pr, const char *text, size_t n, struct lp_error *err)
{
    char line[LINE_MAX_BYTES];
    int count = 0, number = 0;

    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = end ? (size_t)(end - (text + at)) : 0;
        number++;
        if (!end || length >= sizeof line || memchr(text + at, 0, length))
            return damaged(err, number);
        memcpy(line, text + at, length);
        line[length] = 0;
        at += length + 1;
        if (number == 1 && strcmp(line, title) == 0)
            continue;
        if (number > 1 && at == n && strcmp(line, "end") == 0)
            return 0;
        if (number == 1 || take_line(pr, &count, line))
            return damaged(err, number);
    }
    return damaged(err, number + 1);
}

int lu_pr_parse(struct lu_pr *pr, const char *text, size_t n, struct lp_error *err)
{
    memset(pr, 0, sizeof *pr);
    pr->holder = -1;
    if (parse(pr, text, n, err)) {
        memset(pr, 0, sizeof *pr);
        pr->holder = -1;
        return -1;
    }
    pr->aptpl = lu_pr_count(pr) > 0;
    return 0;
}

int lu_pr_load(struct lu *lu, struct lp_error *err)
{
    FILE *f = fopen(lu->aptpl_path, "r");
    int r = -1;

    if (!f && errno == ENOENT)
        return 0;
    if (!f)
        return lp_error_sys(err, errno, "cannot read %s", lu->aptpl_path);
    char *text = malloc(FILE_MAX);
    if (text) {
        size_t n = fread(text, 1, FILE_MAX, f);
        r = ferror(f) ? lp_error_sys(err, EIO, "reading") : lu_pr_parse(&lu->pr, text, n, err);
        if (r)
            lp_error_prefix(err, "%s", lu->aptpl_path);
    } else {
        lp_error_sys(err, ENOMEM, "cannot read %s", lu->aptpl_path);
    }
    free(text);
    fclose(f);
    return r;
}
