/* SPDX-License-Identifier: BSD-2-Clause */
/* Nexuses, and the unit attentions that wait for them. SAM-5 5.14. */
#include "scsi/lu_int.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_reset(uint16_t asc)
{
    return asc >> 8 == SCSI_ASC_RESET >> 8;
}

/* Resets come first and tell everything that an earlier or lesser one would (lower ASCQ: greater);
 * the rest comes in the order of arrival, each once. */
void lu_ua_add(struct lu_nexus *nexus, uint16_t asc)
{
    unsigned at = nexus->ua_count;

    for (unsigned i = 0; i < nexus->ua_count; i++)
        if (nexus->ua[i] == asc)
            return;
    if (is_reset(asc)) {
        if (nexus->ua_count > 0 && is_reset(nexus->ua[0])) {
            if (asc < nexus->ua[0])
                nexus->ua[0] = asc;
            return;
        }
        at = 0;
    }
    if (nexus->ua_count == LU_UA_MAX)
        nexus->ua_count--;
    if (at > nexus->ua_count)
        at = nexus->ua_count;
    memmove(nexus->ua + at + 1, nexus->ua + at, (nexus->ua_count - at) * sizeof *nexus->ua);
    nexus->ua[at] = asc;
    nexus->ua_count++;
}

void lu_ua_remove(struct lu_nexus *nexus, uint16_t asc)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < nexus->ua_count; i++)
        if (nexus->ua[i] != asc)
            nexus->ua[kept++] = nexus->ua[i];
    nexus->ua_count = kept;
}

uint16_t lu_ua_take(struct lu_nexus *nexus)
{
    uint16_t asc = lu_query_ua(nexus);

    if (asc)
        lu_ua_remove(nexus, asc);
    return asc;
}

uint16_t lu_query_ua(const struct lu_nexus *nexus)
{
    return nexus->ua_count > 0 ? nexus->ua[0] : 0;
}

void lu_nexus_ua(struct lu_nexus *nexus, uint16_t asc)
{
    if (nexus->lu->q)
        lu_ua_add(nexus, asc);
}

void lu_ua(struct lu *lu, const struct lu_nexus *except, uint16_t asc)
{
    for (struct lu_nexus *n = lu->nexuses; n; n = n->next)
        if (n != except)
            lu_nexus_ua(n, asc);
}

/* ---- nexuses ---- */

static const struct lu_port *find_port(const struct lu *lu, uint16_t relative_id)
{
    for (unsigned i = 0; i < lu->port_count; i++)
        if (lu->ports[i].relative_id == relative_id)
            return &lu->ports[i];
    return NULL;
}

static int set_names(struct lu_nexus *nexus, const struct lu_nexus_id *id, struct lp_error *err)
{
    const uint8_t *s = id->isid;

    if (!id->initiator_name[0] || strlen(id->initiator_name) > LU_INITIATOR_NAME_MAX)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "an initiator name has 1 to %d bytes, and this one has %zu",
                            LU_INITIATOR_NAME_MAX, strlen(id->initiator_name));
    strcpy(nexus->initiator, id->initiator_name);
    memcpy(nexus->isid, s, sizeof nexus->isid);
    snprintf(nexus->port_name, sizeof nexus->port_name, "%s,i,0x%02x%02x%02x%02x%02x%02x",
             nexus->initiator, s[0], s[1], s[2], s[3], s[4], s[5]);
    return 0;
}

struct lu_nexus *lu_nexus_open(struct lu *lu, const struct lu_nexus_id *id, struct lp_error *err)
{
    const struct lu_port *port = find_port(lu, id->relative_port);
    struct lu_nexus *nexus = calloc(1, sizeof *nexus);

    if (!nexus) {
        lp_error_sys(err, ENOMEM, "a nexus to LUN %u", (unsigned)lu->opts.number);
        return NULL;
    }
    if (!port) {
        lp_error_set(err, LP_ERROR_USAGE, 0, "the target has no port %u", id->relative_port);
        free(nexus);
        return NULL;
    }
    if (set_names(nexus, id, err)) {
        free(nexus);
        return NULL;
    }
    nexus->lu = lu;
    nexus->port = *port;
    nexus->next = lu->nexuses;
    if (nexus->next)
        nexus->next->prev = nexus;
    lu->nexuses = nexus;
    lu_pr_nexus_opened(nexus);
    lu_nexus_ua(nexus, SCSI_ASC_RESET);
    return nexus;
}

void lu_nexus_close(struct lu_nexus *nexus)
{
    struct lu *lu = nexus->lu;

    assert(nexus->tasks == 0);
    if (lu->reserved_by == nexus)
        lu->reserved_by = NULL;
    *(nexus->prev ? &nexus->prev->next : &lu->nexuses) = nexus->next;
    if (nexus->next)
        nexus->next->prev = nexus->prev;
    free(nexus);
}

unsigned lu_nexus_tasks(const struct lu_nexus *nexus)
{
    return nexus->tasks;
}

void *lu_nexus_user(const struct lu_nexus *nexus)
{
    return nexus->user;
}

void lu_nexus_set_user(struct lu_nexus *nexus, void *user)
{
    nexus->user = user;
}

struct lu *lu_nexus_lu(const struct lu_nexus *nexus)
{
    return nexus->lu;
}
