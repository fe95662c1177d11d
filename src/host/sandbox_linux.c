/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "host/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sleeping, waking, ending; memory without execute permission (below); I/O on open descriptors. */
static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(preadv),
    SCMP_SYS(pwritev),
    SCMP_SYS(preadv2),
    SCMP_SYS(pwritev2),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendto),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(fallocate),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(close),
    SCMP_SYS(munmap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    SCMP_SYS(mremap),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(sched_yield),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),

    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(rseq),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(membarrier),
    SCMP_SYS(getrandom),
};

static void append(char *mode, size_t mode_size, const char *what)
{
    size_t used = strlen(mode);

    snprintf(mode + used, mode_size - used, "%s%s", used ? ", " : "", what);
}

struct rule { /* allowed when (argument & mask) == value */
    int call;
    unsigned argument;
    uint64_t mask, value;
};

static int add_rules(scmp_filter_ctx ctx)
{
    const struct rule rules[] = {
        /* Memory, but nothing that can be executed. */
        {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
        {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
        /* Discarding on a block device has no other call. */
        {SCMP_SYS(ioctl), 1, UINT32_MAX, BLKDISCARD},
        {SCMP_SYS(ioctl), 1, UINT32_MAX, BLKZEROOUT},
        /* Waiting and waking only: a requeue could move the application's sleeper to a word where
         * nobody looks for it. */
        {SCMP_SYS(futex), 1, 127, FUTEX_WAIT},
        {SCMP_SYS(futex), 1, 127, FUTEX_WAKE},
        {SCMP_SYS(futex), 1, 127, FUTEX_WAIT_BITSET},
        {SCMP_SYS(futex), 1, 127, FUTEX_WAKE_BITSET},
        /* abort(), and nobody else's threads. */
        {SCMP_SYS(tgkill), 0, UINT32_MAX, (uint64_t)getpid()},
    };
    int e = 0;

    for (size_t i = 0; i < sizeof allowed / sizeof *allowed && e == 0; i++)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
    for (size_t i = 0; i < sizeof rules / sizeof *rules && e == 0; i++) {
        const struct rule *r = &rules[i];
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, r->call, 1,
                             SCMP_CMP64(r->argument, SCMP_CMP_MASKED_EQ, r->mask, r->value));
    }
    return e;
}

static void lower_rlimits(void)
{
    /* No core with somebody's data in it, no further descriptor. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0});
}

int sandbox_filter(char *mode, size_t mode_size, struct lp_error *err)
{
    lower_rlimits(); /* the filter would refuse it */
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int e = ctx ? 0 : -ENOMEM;

    /* For the queue threads too, which run already. */
    if (e == 0)
        e = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    if (e == 0)
        e = add_rules(ctx);
    if (e == 0)
        e = seccomp_load(ctx);
    if (ctx)
        seccomp_release(ctx);
    if (e != 0)
        return lp_error_sys(err, -e, "cannot filter the driver's system calls (seccomp)");
    append(mode, mode_size, "seccomp");
    return 0;
}

/* No path of any file system, for any kind of access (landlock(7)). */
static bool enter_landlock(void)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = (1u << 13) - 1}; /* ABI 1: all */
    int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);

    if (fd < 0)
        return false;
    bool ok = syscall(SYS_landlock_restrict_self, fd, 0) == 0;
    close(fd);
    return ok;
}

static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2];

    memset(none, 0, sizeof none);
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    return syscall(SYS_capset, &header, none) == 0;
}

void sandbox_shed(char *mode, size_t mode_size)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        append(mode, mode_size, "no new privileges");
    if (enter_landlock())
        append(mode, mode_size, "Landlock");
    if (drop_capabilities())
        append(mode, mode_size, "no capabilities");
}
