/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservations: PERSISTENT RESERVE OUT, RESERVE(6), and who conflicts with them. SPC-4 5.12, 6.16.
 *
 * A PERSISTENT RESERVE OUT changes lu->pr and notes on the nexuses what they will be told. Only
 * after the new state is in the APTPL file (if there is one) is it told and answered; when that
 * fails, the state before comes back.
 */
#include "base/bytes.h"
#include "scsi/lu_int.h"

#include <string.h>

enum {
    LIST_LENGTH = 24,
    SPEC_I_PT = 0x08, /* byte 20 */
    ALL_TG_PT = 0x04,
    APTPL = 0x01,
    MOVE_UNREG = 0x02, /* byte 17 of REGISTER AND MOVE */
};

/* What the parameter list says. */
struct pr_request {
    uint64_t key, service_key;
    uint8_t type;
    uint8_t flags; /* byte 20; of REGISTER AND MOVE byte 17 */
    uint16_t relative_port;
    char port_name[LU_PORT_NAME_MAX];
};

/* How a service action ends. */
struct pr_result {
    uint8_t status;
    struct scsi_sense sense;
};

static const struct pr_result good = {.status = SCSI_GOOD};
static const struct pr_result conflict = {.status = SCSI_RESERVATION_CONFLICT};

static struct pr_result bad_parameter(unsigned byte, int bit)
{
    return (struct pr_result){SCSI_CHECK_CONDITION, scsi_sense_parameter_field(byte, bit)};
}

static struct pr_result illegal(uint16_t asc)
{
    return (struct pr_result){SCSI_CHECK_CONDITION, scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, asc)};
}

bool lu_pr_is_all(uint8_t type)
{
    return type == SCSI_PR_WRITE_EXCLUSIVE_ALL || type == SCSI_PR_EXCLUSIVE_ACCESS_ALL;
}

bool lu_pr_is_registrants(uint8_t type)
{
    return type == SCSI_PR_WRITE_EXCLUSIVE_REGISTRANTS ||
           type == SCSI_PR_EXCLUSIVE_ACCESS_REGISTRANTS;
}

static bool is_write_exclusive(uint8_t type)
{
    return type == SCSI_PR_WRITE_EXCLUSIVE || type == SCSI_PR_WRITE_EXCLUSIVE_REGISTRANTS ||
           type == SCSI_PR_WRITE_EXCLUSIVE_ALL;
}

static bool is_type(uint8_t type)
{
    return is_write_exclusive(type) || type == SCSI_PR_EXCLUSIVE_ACCESS ||
           type == SCSI_PR_EXCLUSIVE_ACCESS_REGISTRANTS || type == SCSI_PR_EXCLUSIVE_ACCESS_ALL;
}

unsigned lu_pr_count(const struct lu_pr *pr)
{
    unsigned n = 0;

    for (unsigned i = 0; i < LU_REGISTRANTS_MAX; i++)
        n += pr->registrants[i].key != 0;
    return n;
}

int lu_pr_find(const struct lu_pr *pr, const char *port_name, uint16_t relative_port)
{
    for (int i = 0; i < LU_REGISTRANTS_MAX; i++)
        if (pr->registrants[i].key != 0 && pr->registrants[i].relative_port == relative_port &&
            strcmp(pr->registrants[i].port_name, port_name) == 0)
            return i;
    return -1;
}

void lu_pr_nexus_opened(struct lu_nexus *nexus)
{
    nexus->registrant = lu_pr_find(&nexus->lu->pr, nexus->port_name, nexus->port.relative_id);
}

void lu_pr_set_registrants(struct lu *lu)
{
    for (struct lu_nexus *n = lu->nexuses; n; n = n->next)
        lu_pr_nexus_opened(n);
}

/* ---- who conflicts ---- */

static bool passes_class(const struct lu_task *task, const struct lu_command *command)
{
    bool starts = task->fields.command == SCSI_CMD_START_STOP_UNIT && task->fields.byte4 & 1;

    return starts || command->flags & CMD_FREE ||
           (command->flags & CMD_READS && is_write_exclusive(task->lu->pr.type));
}

bool lu_pr_conflict(const struct lu_task *task, const struct lu_command *command)
{
    const struct lu *lu = task->lu;
    const struct lu_pr *pr = &lu->pr;
    int me = task->nexus->registrant;
    enum scsi_command c = task->fields.command;

    if (lu->reserved_by) {
        if (command->flags & CMD_PR)
            return true;
        if (lu->reserved_by != task->nexus && !(command->flags & CMD_FREE_R6))
            return true;
    }
    if ((c == SCSI_CMD_RESERVE_6 || c == SCSI_CMD_RELEASE_6) && lu_pr_count(pr) > 0)
        return true;
    if (pr->type == SCSI_PR_NONE || (me >= 0 && me == pr->holder) ||
        (me >= 0 && (lu_pr_is_all(pr->type) || lu_pr_is_registrants(pr->type))))
        return false;
    return !passes_class(task, command);
}

void lu_reserve_6(struct lu_task *task)
{
    task->lu->reserved_by = task->nexus;
    lu_end(task, SCSI_GOOD);
}

void lu_release_6(struct lu_task *task)
{
    if (task->lu->reserved_by == task->nexus)
        task->lu->reserved_by = NULL;
    lu_end(task, SCSI_GOOD);
}

/* ---- changes, and whom to tell ---- */

/* The nexus behind a registration tells its initiator so. `but`: who asked is not told. */
static void tell(struct lu *lu, int registrant, uint16_t asc, const struct lu_nexus *but)
{
    for (struct lu_nexus *n = lu->nexuses; n; n = n->next)
        if (n->registrant == registrant && n != but)
            n->pr_ua = asc;
}

static void tell_all(struct lu *lu, uint16_t asc, const struct lu_nexus *but)
{
    for (int i = 0; i < LU_REGISTRANTS_MAX; i++)
        if (lu->pr.registrants[i].key != 0)
            tell(lu, i, asc, but);
}

static void release(struct lu *lu, const struct lu_nexus *by)
{
    uint8_t type = lu->pr.type;

    lu->pr.type = SCSI_PR_NONE;
    lu->pr.holder = -1;
    if (lu_pr_is_all(type) || lu_pr_is_registrants(type))
        tell_all(lu, SCSI_ASC_RESERVATIONS_RELEASED, by);
}

static int add(struct lu_pr *pr, const char *port_name, uint16_t relative_port, uint64_t key)
{
    int i = lu_pr_find(pr, port_name, relative_port);

    for (int k = 0; i < 0 && k < LU_REGISTRANTS_MAX; k++)
        if (pr->registrants[k].key == 0)
            i = k;
    if (i < 0)
        return -1;
    pr->registrants[i].key = key;
    pr->registrants[i].relative_port = relative_port;
    strcpy(pr->registrants[i].port_name, port_name);
    return i;
}

/* The registration goes, and with it a reservation that it held. */
static void unregister(struct lu *lu, int i, const struct lu_nexus *by)
{
    struct lu_pr *pr = &lu->pr;

    pr->registrants[i].key = 0;
    if (pr->type == SCSI_PR_NONE)
        return;
    if (lu_pr_is_all(pr->type) ? lu_pr_count(pr) == 0 : pr->holder == i)
        release(lu, by);
}

static void reserve(struct lu_pr *pr, int holder, uint8_t type)
{
    pr->type = type;
    pr->holder = lu_pr_is_all(type) ? -1 : holder;
}

static bool holds(const struct lu_pr *pr, int me)
{
    return pr->type != SCSI_PR_NONE && (lu_pr_is_all(pr->type) || pr->holder == me);
}

/* ---- service actions ---- */

static struct pr_result pr_register(struct lu_task *task, const struct pr_request *r, bool ignore)
{
    struct lu *lu = task->lu;
    struct lu_nexus *nexus = task->nexus;
    int me = nexus->registrant;

    if (!ignore && r->key != (me >= 0 ? lu->pr.registrants[me].key : 0))
        return conflict;
    if (r->flags & SPEC_I_PT)
        return bad_parameter(20, 3);
    if (r->flags & APTPL && !lu->aptpl_path)
        return bad_parameter(20, 0);
    for (unsigned i = 0; i < lu->port_count; i++) {
        uint16_t port = lu->ports[i].relative_id;
        if (port != nexus->port.relative_id && !(r->flags & ALL_TG_PT))
            continue;
        int at = lu_pr_find(&lu->pr, nexus->port_name, port);
        if (r->service_key == 0 && at >= 0)
            unregister(lu, at, nexus);
        else if (r->service_key != 0 && add(&lu->pr, nexus->port_name, port, r->service_key) < 0)
            return illegal(SCSI_ASC_INSUFFICIENT_REGISTRATION_RESOURCES);
    }
    lu->pr.aptpl = r->flags & APTPL;
    lu->pr.generation++;
    return good;
}

static struct pr_result pr_reserve(struct lu_task *task, const struct pr_request *r)
{
    struct lu_pr *pr = &task->lu->pr;
    int me = task->nexus->registrant;

    if (pr->type == SCSI_PR_NONE)
        reserve(pr, me, r->type);
    else if (!holds(pr, me) || pr->type != r->type)
        return conflict;
    return good;
}

static struct pr_result pr_release(struct lu_task *task, const struct pr_request *r)
{
    struct lu *lu = task->lu;

    if (!holds(&lu->pr, task->nexus->registrant))
        return good;
    if (lu->pr.type != r->type)
        return illegal(SCSI_ASC_INVALID_RELEASE_OF_RESERVATION);
    release(lu, task->nexus);
    return good;
}

static struct pr_result pr_clear(struct lu_task *task)
{
    struct lu *lu = task->lu;

    tell_all(lu, SCSI_ASC_RESERVATIONS_PREEMPTED, task->nexus);
    memset(lu->pr.registrants, 0, sizeof lu->pr.registrants);
    lu->pr.type = SCSI_PR_NONE;
    lu->pr.holder = -1;
    lu->pr.generation++;
    return good;
}

/* Removes the registrations with this key (0: all) but `but`; returns how many. */
static unsigned remove_key(struct lu *lu, uint64_t key, int but, const struct lu_nexus *by)
{
    unsigned n = 0;

    for (int i = 0; i < LU_REGISTRANTS_MAX; i++) {
        struct lu_registrant *reg = &lu->pr.registrants[i];
        if (reg->key == 0 || (key != 0 && reg->key != key) || i == but)
            continue;
        for (struct lu_nexus *nexus = lu->nexuses; nexus; nexus = nexus->next)
            if (nexus->registrant == i)
                nexus->pr_preempted = true;
        tell(lu, i, SCSI_ASC_REGISTRATIONS_PREEMPTED, by);
        reg->key = 0;
        n++;
    }
    return n;
}

/* The reservation goes over to this nexus. */
static void take_over(struct lu_task *task, const struct pr_request *r)
{
    struct lu *lu = task->lu;
    struct lu_pr *pr = &lu->pr;
    int me = task->nexus->registrant;
    uint8_t before = pr->type;

    if (before != r->type) /* those who stay registered may have lost access, or won it */
        tell_all(lu, SCSI_ASC_RESERVATIONS_RELEASED, task->nexus);
    if (!lu_pr_is_all(before) && pr->holder == me)
        task->nexus->pr_preempted = true; /* its own older tasks */
    remove_key(lu, lu_pr_is_all(before) ? 0 : r->service_key, me, task->nexus);
    reserve(pr, me, r->type);
}

static struct pr_result pr_preempt(struct lu_task *task, const struct pr_request *r)
{
    struct lu *lu = task->lu;
    struct lu_pr *pr = &lu->pr;
    bool all = lu_pr_is_all(pr->type);
    bool reserved = pr->type != SCSI_PR_NONE;

    if (reserved &&
        (all ? r->service_key == 0 : pr->registrants[pr->holder].key == r->service_key)) {
        take_over(task, r);
    } else if (r->service_key == 0) {
        return bad_parameter(8, -1);
    } else {
        if (remove_key(lu, r->service_key, -1, task->nexus) == 0)
            return conflict;
        if (all && lu_pr_count(pr) == 0)
            pr->type = SCSI_PR_NONE;
    }
    pr->generation++;
    return good;
}

static bool has_port(const struct lu *lu, uint16_t relative_id)
{
    for (unsigned i = 0; i < lu->port_count; i++)
        if (lu->ports[i].relative_id == relative_id)
            return true;
    return false;
}

static struct pr_result pr_move(struct lu_task *task, const struct pr_request *r)
{
    struct lu *lu = task->lu;
    struct lu_pr *pr = &lu->pr;
    int me = task->nexus->registrant;

    if (pr->type == SCSI_PR_NONE || lu_pr_is_all(pr->type) || pr->holder != me)
        return conflict;
    if (r->service_key == 0)
        return bad_parameter(8, -1);
    if (!has_port(lu, r->relative_port))
        return bad_parameter(18, -1);
    if (r->flags & APTPL && !lu->aptpl_path)
        return bad_parameter(17, 0);
    if (lu_pr_find(pr, r->port_name, r->relative_port) == me)
        return bad_parameter(24, -1); /* to itself */
    int to = add(pr, r->port_name, r->relative_port, r->service_key);
    if (to < 0)
        return illegal(SCSI_ASC_INSUFFICIENT_REGISTRATION_RESOURCES);
    pr->holder = to;
    if (r->flags & MOVE_UNREG)
        unregister(lu, me, task->nexus);
    pr->aptpl = r->flags & APTPL;
    pr->generation++;
    return good;
}

/* ---- PERSISTENT RESERVE OUT ---- */

void lu_pr_check_out(struct lu_task *task)
{
    const struct scsi_cdb *f = &task->fields;
    enum scsi_command c = f->command;
    bool moves = c == SCSI_CMD_PR_REGISTER_AND_MOVE;
    bool with_type = c == SCSI_CMD_PR_RESERVE || c == SCSI_CMD_PR_RELEASE ||
                     c == SCSI_CMD_PR_PREEMPT || c == SCSI_CMD_PR_PREEMPT_AND_ABORT;

    task->data_out_length = f->length;
    if (with_type && f->byte2 >> 4 != 0)
        lu_refuse(task, scsi_sense_cdb_field(2, 7)); /* SCOPE: the logical unit is the only one */
    else if (with_type && !is_type(f->byte2 & 0xf))
        lu_refuse(task, scsi_sense_cdb_field(2, 3));
    else if (f->length < LIST_LENGTH || (!moves && f->length != LIST_LENGTH) ||
             f->length > LU_PARAMETERS_MAX)
        lu_refuse(task,
                  scsi_sense_make(SCSI_KEY_ILLEGAL_REQUEST, SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR));
}

/* False: the list of REGISTER AND MOVE is not in order; *result says how. */
static bool take_request(const struct lu_task *task, struct pr_request *r, struct pr_result *result)
{
    uint8_t list[LU_PARAMETERS_MAX];
    size_t n = task->fields.length;

    memset(r, 0, sizeof *r);
    *result = illegal(SCSI_ASC_PARAMETER_LIST_LENGTH_ERROR);
    if (!lu_get(task, 0, list, n))
        return false;
    r->key = load_be64(list);
    r->service_key = load_be64(list + 8);
    r->type = task->fields.byte2 & 0xf;
    r->flags = list[20];
    if (task->fields.command != SCSI_CMD_PR_REGISTER_AND_MOVE)
        return true;
    r->flags = list[17];
    r->relative_port = load_be16(list + 18);
    if (load_be32(list + 20) != n - LIST_LENGTH)
        return false;
    *result = bad_parameter(24, -1);
    return lu_transport_id_unpack(list + LIST_LENGTH, n - LIST_LENGTH, r->port_name) == 0;
}

static struct pr_result perform(struct lu_task *task, const struct pr_request *r)
{
    const struct lu_pr *pr = &task->lu->pr;
    enum scsi_command c = task->fields.command;
    int me = task->nexus->registrant;

    if (c == SCSI_CMD_PR_REGISTER || c == SCSI_CMD_PR_REGISTER_AND_IGNORE)
        return pr_register(task, r, c == SCSI_CMD_PR_REGISTER_AND_IGNORE);
    if (me < 0 || pr->registrants[me].key != r->key)
        return conflict;
    switch (c) {
    case SCSI_CMD_PR_RESERVE:
        return pr_reserve(task, r);
    case SCSI_CMD_PR_RELEASE:
        return pr_release(task, r);
    case SCSI_CMD_PR_CLEAR:
        return pr_clear(task);
    case SCSI_CMD_PR_REGISTER_AND_MOVE:
        return pr_move(task, r);
    default:
        return pr_preempt(task, r);
    }
}

static void tell_nexuses(struct lu_task *task)
{
    struct lu *lu = task->lu;
    bool aborts = task->fields.command == SCSI_CMD_PR_PREEMPT_AND_ABORT;

    for (struct lu_nexus *n = lu->nexuses; n; n = n->next) {
        if (aborts && n->pr_preempted)
            lu_abort_all(lu, n, task->nexus, task, true);
        if (n->pr_ua)
            lu_ua_add(n, n->pr_ua);
    }
}

void lu_pr_out(struct lu_task *task)
{
    struct lu *lu = task->lu;
    struct pr_request r;
    struct pr_result result;
    bool file = lu->pr.aptpl;

    for (struct lu_nexus *n = lu->nexuses; n; n = n->next)
        n->pr_ua = 0, n->pr_preempted = false;
    lu->pr_before = lu->pr;
    if (take_request(task, &r, &result))
        result = perform(task, &r);
    if (result.status == SCSI_GOOD && (file || lu->pr.aptpl) && lu_pr_save(lu) != 0)
        result = (struct pr_result){
            SCSI_CHECK_CONDITION,
            scsi_sense_make(SCSI_KEY_HARDWARE_ERROR, SCSI_ASC_INTERNAL_TARGET_FAILURE)};
    if (result.status == SCSI_GOOD)
        tell_nexuses(task);
    else
        lu->pr = lu->pr_before;
    lu_pr_set_registrants(lu);
    task->sense = result.sense;
    lu_end(task, result.status);
}
