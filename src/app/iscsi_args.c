/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/iscsi_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "initiator/url.h"
#include "iscsi/login.h"

#define OPEN_ISCSI_NAME "/etc/iscsi/initiatorname.iscsi"

static const char *digest_word(unsigned i)
{
    static const char *const words[] = {[LP_DIGEST_IF_ASKED] = "if-asked",
                                        [LP_DIGEST_OFF] = "off",
                                        [LP_DIGEST_PREFERRED] = "preferred",
                                        [LP_DIGEST_REQUIRED] = "required"};

    return i < sizeof(words) / sizeof(*words) ? words[i] : NULL;
}

static const char *chap_word(unsigned i)
{
    static const char *const words[] = {"required", "optional"};

    return i < 2 ? words[i] : NULL;
}

static const struct option iscsi_options[ISCSI_OPTION_COUNT] = {
    [ISCSI_INITIATOR] = {.name = "initiator",
                         .type = OPTION_TEXT,
                         .value = "NAME",
                         .help = "our iSCSI name (default: this machine's)",
                         .group = "iSCSI:"},
    [ISCSI_USER] = {.name = "user",
                    .type = OPTION_TEXT,
                    .value = "NAME",
                    .help = "log in with CHAP; also as iscsi://NAME@HOST/..."},
    [ISCSI_SECRET_FILE] = {.name = "secret-file",
                           .type = OPTION_TEXT,
                           .value = "FILE",
                           .help = "the secret (else $LUNPATH_SECRET, or it is asked)"},
    [ISCSI_TARGET_USER] = {.name = "target-user",
                           .type = OPTION_TEXT,
                           .value = "NAME",
                           .help = "mutual CHAP: the name that the target must give"},
    [ISCSI_TARGET_SECRET_FILE] = {.name = "target-secret-file",
                                  .type = OPTION_TEXT,
                                  .value = "FILE",
                                  .help = "mutual CHAP: its secret (or $LUNPATH_TARGET_SECRET)"},
    [ISCSI_CHAP] = {.name = "chap",
                    .type = OPTION_WORD,
                    .value = "WHEN",
                    .words = chap_word,
                    .help = "required (default), optional: go on without"},
    [ISCSI_SHORT_SECRETS] = {.name = "short-secrets",
                             .type = OPTION_FLAG,
                             .help = "allow secrets under 12 bytes, which are not safe"},
    [ISCSI_HEADER_DIGEST] = {.name = "header-digest",
                             .type = OPTION_WORD,
                             .value = "WHEN",
                             .words = digest_word,
                             .help = "CRC32C: if-asked (default), off, preferred, required"},
    [ISCSI_DATA_DIGEST] = {.name = "data-digest",
                           .type = OPTION_WORD,
                           .value = "WHEN",
                           .words = digest_word,
                           .help = "likewise for the data"},
    [ISCSI_SESSIONS] = {.name = "sessions",
                        .type = OPTION_NUMBER,
                        .value = "N",
                        .min = 1,
                        .max = 16,
                        .help = "sessions of each queue, used in turn (default 1)"},
    [ISCSI_HOLD] = {.name = "hold",
                    .type = OPTION_NUMBER,
                    .value = "SECONDS",
                    .min = 1,
                    .max = 86400,
                    .help = "wait so long for a target that is away (default 120)"},
    [ISCSI_VERBOSE] = {.name = "verbose",
                       .type = OPTION_FLAG,
                       .help = "say on stderr what happens to the sessions"},
};

void iscsi_options_append(struct option *table)
{
    memcpy(table, iscsi_options, sizeof(iscsi_options));
}

bool iscsi_options_given(const struct option_value *v)
{
    for (unsigned i = 0; i < ISCSI_OPTION_COUNT; i++)
        if (v[i].given)
            return true;
    return false;
}

/* ---- our name ---- */

/* open-iscsi's file: the NAS may know this machine by that name already. */
static bool name_of_open_iscsi(char name[ISCSI_NAME_MAX + 1])
{
    FILE *file = fopen(OPEN_ISCSI_NAME, "re");
    char line[512];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        static const char key[] = "InitiatorName=";
        size_t length;

        if (strncmp(line, key, sizeof(key) - 1) != 0)
            continue;
        length = strcspn(line + sizeof(key) - 1, " \t\r\n");
        if (length == 0 || length > ISCSI_NAME_MAX)
            continue;
        memcpy(name, line + sizeof(key) - 1, length);
        name[length] = '\0';
        found = iscsi_name_check(name, "initiator name", NULL) == 0;
    }
    if (file)
        fclose(file);
    return found;
}

/* One name a machine, the same each time, and not another machine's: two with one name would throw
 * each other out (A38). */
static void name_of_machine(char name[ISCSI_NAME_MAX + 1])
{
    char id[256] = "";
    FILE *file = fopen("/etc/machine-id", "re");
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    if (!file || !fgets(id, sizeof(id), file))
        gethostname(id, sizeof(id) - 1);
    if (file)
        fclose(file);
    for (const char *at = id; *at && *at != '\n'; at++)
        h = (h ^ (unsigned char)*at) * 0x100000001b3u;
    snprintf(name, ISCSI_NAME_MAX + 1, "iqn.2026-01.org.lunpath:%016llx", (unsigned long long)h);
}

static int take_name(const struct option_value *v, char name[ISCSI_NAME_MAX + 1],
                     struct lp_error *err)
{
    const char *typed = v->given ? v->text : getenv("LUNPATH_INITIATOR");

    if (typed)
        return iscsi_name_normalise(typed, name, "initiator name", err);
    if (!name_of_open_iscsi(name))
        name_of_machine(name);
    return 0;
}

/* ---- secrets ---- */

/* 1: there is one; 0: none was named; -1. */
static int find_secret(const struct option_value *file, const char *variable,
                       char secret[SECRET_MAX], struct lp_error *err)
{
    if (file->given)
        return secret_from_file(file->text, secret, err) < 0 ? -1 : 1;
    return secret_from_environment(variable, secret, err);
}

static int take_credentials(const struct option_value *v, const char *url, struct iscsi_args *a,
                            struct lp_error *err)
{
    struct iscsi_url parsed;
    int found;

    if (v[ISCSI_USER].given) {
        snprintf(a->user, sizeof(a->user), "%s", v[ISCSI_USER].text);
    } else if (iscsi_url_parse(url, ISCSI_URL_PORTAL, &parsed, err) == 0) {
        snprintf(a->user, sizeof(a->user), "%s", parsed.user);
    }
    if (!a->user[0]) {
        if (v[ISCSI_SECRET_FILE].given || v[ISCSI_TARGET_SECRET_FILE].given)
            return lp_error_set(err, LP_ERROR_USAGE, 0,
                                "a secret without a user name is of no use; add --user");
        return 0;
    }
    a->opts.user = a->user;
    found = find_secret(&v[ISCSI_SECRET_FILE], "LUNPATH_SECRET", a->secret, err);
    if (found == 0)
        found = secret_ask(a->user, a->secret, err);
    if (found < 0)
        return -1;
    a->opts.secret = a->secret;
    found =
        find_secret(&v[ISCSI_TARGET_SECRET_FILE], "LUNPATH_TARGET_SECRET", a->target_secret, err);
    if (found < 0)
        return -1;
    if (found > 0)
        a->opts.target_secret = a->target_secret;
    if (v[ISCSI_TARGET_USER].given && !a->opts.target_secret)
        return lp_error_set(err, LP_ERROR_USAGE, 0,
                            "--target-user needs a secret of the target; add --target-secret-file");
    a->opts.target_user = v[ISCSI_TARGET_USER].given ? v[ISCSI_TARGET_USER].text : NULL;
    return 0;
}

static void print_log(void *user, const char *sentence)
{
    (void)user;
    fprintf(stderr, "lunpath: %s\n", sentence);
}

int iscsi_args_take(const struct option_value *v, const char *url, struct iscsi_args *a,
                    struct lp_error *err)
{
    memset(a, 0, sizeof(*a));
    if (take_name(&v[ISCSI_INITIATOR], a->initiator_name, err) < 0 ||
        take_credentials(v, url, a, err) < 0)
        return -1;
    a->opts.initiator_name = a->initiator_name;
    a->opts.chap_optional = v[ISCSI_CHAP].given && v[ISCSI_CHAP].number == 1;
    a->opts.allow_short_secrets = v[ISCSI_SHORT_SECRETS].given;
    a->opts.header_digest = (enum lp_digest)v[ISCSI_HEADER_DIGEST].number;
    a->opts.data_digest = (enum lp_digest)v[ISCSI_DATA_DIGEST].number;
    a->opts.sessions = (unsigned)v[ISCSI_SESSIONS].number;
    a->opts.hold_s = (unsigned)v[ISCSI_HOLD].number;
    if (v[ISCSI_VERBOSE].given)
        a->opts.log = print_log;
    return 0;
}

void iscsi_args_forget(struct iscsi_args *a)
{
    bytes_wipe(a->secret, sizeof(a->secret));
    bytes_wipe(a->target_secret, sizeof(a->target_secret));
}
