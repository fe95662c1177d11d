/* SPDX-License-Identifier: BSD-2-Clause */
/* PERSISTENT RESERVE IN, and TransportIDs. SPC-4 6.15, 7.6.4. */
#include "base/bytes.h"
#include "scsi/lu_int.h"

#include <string.h>

enum {
    TRANSPORT_ISCSI = 0x05,
    TRANSPORT_PORT = 0x40, /* FORMAT CODE 01b: with ISID */
    STATUS_DESCRIPTOR = 24,
    /* REPORT CAPABILITIES. */
    ATP_C = 0x04,
    PTPL_C = 0x01,
    TMV = 0x80,
    PTPL_A = 0x01,
};

size_t lu_transport_id_pack(const char *port_name, uint8_t *out)
{
    size_t n = strlen(port_name) + 1, padded = (n + 3) / 4 * 4;

    memset(out, 0, 4 + padded);
    out[0] = TRANSPORT_PORT | TRANSPORT_ISCSI;
    store_be16(out + 2, (uint16_t)padded);
    memcpy(out + 4, port_name, n);
    return 4 + padded;
}

/* "name,i,0x" and twelve hexadecimal digits, as lu_nexus_open() writes it. */
static int judge_port_name(char *name)
{
    char *isid = strstr(name, ",i,0x");
    size_t digits = 0;

    if (!isid || isid == name || isid - name > LU_INITIATOR_NAME_MAX)
        return -1;
    for (char *c = isid + 5; *c; c++, digits++) {
        if (*c >= 'A' && *c <= 'F')
            *c = (char)(*c - 'A' + 'a');
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f')))
            return -1;
    }
    return digits == 12 ? 0 : -1;
}

int lu_transport_id_unpack(const uint8_t *bytes, size_t n, char port_name[LU_PORT_NAME_MAX])
{
    if (n < 8 || bytes[0] != (TRANSPORT_PORT | TRANSPORT_ISCSI))
        return -1;
    size_t length = load_be16(bytes + 2);
    if (length > n - 4 || length > LU_PORT_NAME_MAX)
        return -1;
    if (!memchr(bytes + 4, 0, length))
        return -1;
    memcpy(port_name, bytes + 4, length); /* ends inside, at the NUL */
    return judge_port_name(port_name);
}

void lu_pr_check_in(struct lu_task *task)
{
    const struct lu_pr *pr = &task->lu->pr;
    uint64_t most = 8 + (uint64_t)lu_pr_count(pr) * (STATUS_DESCRIPTOR + 4 + LU_PORT_NAME_MAX);

    if (most < 24)
        most = 24;
    task->data_in_length = task->fields.length < most ? task->fields.length : most;
}

static void put_header(struct lu_task *task, uint32_t length)
{
    uint8_t out[8];

    store_be32(out, task->lu->pr.generation);
    store_be32(out + 4, length);
    lu_put(task, out, sizeof out);
}

static void read_keys(struct lu_task *task)
{
    const struct lu_pr *pr = &task->lu->pr;
    uint8_t out[8];

    put_header(task, lu_pr_count(pr) * 8);
    for (int i = 0; i < LU_REGISTRANTS_MAX; i++) {
        if (pr->registrants[i].key == 0)
            continue;
        store_be64(out, pr->registrants[i].key);
        lu_put(task, out, sizeof out);
    }
}

static void read_reservation(struct lu_task *task)
{
    const struct lu_pr *pr = &task->lu->pr;
    uint8_t out[16] = {0};

    put_header(task, pr->type == SCSI_PR_NONE ? 0 : sizeof out);
    if (pr->type == SCSI_PR_NONE)
        return;
    if (pr->holder >= 0)
        store_be64(out, pr->registrants[pr->holder].key);
    out[13] = pr->type;
    lu_put(task, out, sizeof out);
}

static void report_capabilities(struct lu_task *task)
{
    const struct lu *lu = task->lu;
    uint8_t out[8] = {0, 8};

    out[2] = (uint8_t)(ATP_C | (lu->aptpl_path ? PTPL_C : 0));
    out[3] = (uint8_t)(TMV | (lu->pr.aptpl ? PTPL_A : 0));
    for (unsigned type = 1; type <= 8; type++)
        if (type != 2 && type != 4)
            out[4 + type / 8] |= (uint8_t)(1u << type % 8);
    lu_put(task, out, sizeof out);
}

static size_t pack_status(const struct lu_pr *pr, int i, uint8_t *out)
{
    const struct lu_registrant *r = &pr->registrants[i];
    bool holder = pr->type != SCSI_PR_NONE && (lu_pr_is_all(pr->type) || pr->holder == i);
    size_t n = lu_transport_id_pack(r->port_name, out + STATUS_DESCRIPTOR);

    memset(out, 0, STATUS_DESCRIPTOR);
    store_be64(out, r->key);
    out[12] = holder ? 1 : 0;
    out[13] = holder ? pr->type : 0;
    store_be16(out + 18, r->relative_port);
    store_be32(out + 20, (uint32_t)n);
    return STATUS_DESCRIPTOR + n;
}

static void read_full_status(struct lu_task *task)
{
    const struct lu_pr *pr = &task->lu->pr;
    uint8_t out[STATUS_DESCRIPTOR + 8 + LU_PORT_NAME_MAX];
    size_t length = 0;

    for (int i = 0; i < LU_REGISTRANTS_MAX; i++)
        if (pr->registrants[i].key != 0)
            length += pack_status(pr, i, out);
    put_header(task, (uint32_t)length);
    for (int i = 0; i < LU_REGISTRANTS_MAX; i++)
        if (pr->registrants[i].key != 0)
            lu_put(task, out, pack_status(pr, i, out));
}

void lu_pr_in(struct lu_task *task)
{
    switch (task->fields.command) {
    case SCSI_CMD_PR_READ_KEYS:
        read_keys(task);
        break;
    case SCSI_CMD_PR_READ_RESERVATION:
        read_reservation(task);
        break;
    case SCSI_CMD_PR_REPORT_CAPABILITIES:
        report_capabilities(task);
        break;
    default:
        read_full_status(task);
    }
    lu_end_data(task);
}
