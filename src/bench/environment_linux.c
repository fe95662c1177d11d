/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "base/cpu.h"
#include "bench/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define CPU_DIR "/sys/devices/system/cpu/"

/* The first line of a small file, without its end. False: not there, or empty. */
static bool read_line(const char *path, char *buf, size_t len)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(buf, (int)len, f);

    if (f)
        fclose(f);
    if (ok)
        buf[strcspn(buf, "\n")] = 0;
    return ok && buf[0];
}

/* The value of the first line "key<blanks>separator<blanks>value". */
static bool read_value(const char *path, const char *key, char separator, char *buf, size_t len)
{
    char line[1024];
    bool found = false;
    FILE *f = fopen(path, "re");

    while (f && !found && fgets(line, sizeof line, f)) {
        char *value = strchr(line, separator);
        size_t n = strlen(key);
        if (!value || strncmp(line, key, n) != 0 || strcspn(line + n, " \t:=") != 0)
            continue;
        value += 1 + strspn(value + 1, " \t\"");
        value[strcspn(value, "\"\n")] = 0;
        snprintf(buf, len, "%s", value);
        found = true;
    }
    if (f)
        fclose(f);
    return found;
}

static uint64_t meminfo_bytes(const char *key)
{
    char text[64];

    return read_value("/proc/meminfo", key, ':', text, sizeof text)
               ? strtoull(text, NULL, 10) * 1024
               : 0;
}

static void fill_cpus(struct result_environment *env)
{
    struct cpu_list allowed;
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    cpu_allowed(&allowed);
    env->cpus_allowed = allowed.count;
    env->cpus_online = online > 0 ? (unsigned)online : 0;
    read_value("/proc/cpuinfo", "model name", ':', env->cpu_model, sizeof env->cpu_model);
    if (!read_line(CPU_DIR "cpu0/cpufreq/scaling_governor", env->governor, sizeof env->governor))
        snprintf(env->governor, sizeof env->governor, "none");
}

static uint64_t cache_bytes(unsigned index)
{
    char path[128], text[32], *end;

    snprintf(path, sizeof path, CPU_DIR "cpu0/cache/index%u/type", index);
    if (!read_line(path, text, sizeof text) || strcmp(text, "Instruction") == 0)
        return 0;
    snprintf(path, sizeof path, CPU_DIR "cpu0/cache/index%u/size", index);
    if (!read_line(path, text, sizeof text))
        return 0;
    uint64_t size = strtoull(text, &end, 10);
    return *end == 'K' ? size << 10 : *end == 'M' ? size << 20 : size;
}

static void fill_cache(struct result_environment *env)
{
    for (unsigned i = 0; i < 8; i++)
        if (cache_bytes(i) > env->llc_bytes)
            env->llc_bytes = cache_bytes(i);
#ifdef _SC_LEVEL3_CACHE_SIZE
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (env->llc_bytes == 0 && size > 0)
        env->llc_bytes = (uint64_t)size;
#endif
}

static void fill_memory(struct result_environment *env)
{
    char text[64];

    env->memory_bytes = meminfo_bytes("MemTotal");
    env->memory_free_bytes = meminfo_bytes("MemAvailable");
    if (read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text))
        env->huge_page_bytes = strtoull(text, NULL, 10);
    else
        env->huge_page_bytes = meminfo_bytes("Hugepagesize");
}

/* The hypervisor's own name, where the processor tells. */
static bool cpuid_hypervisor(char *buf, size_t len)
{
#if defined(__x86_64__) || defined(__i386__)
    static const struct {
        const char *id, *name;
    } known[] = {
        {"KVMKVMKVM", "KVM"},         {"Microsoft Hv", "Hyper-V"}, {"VMwareVMware", "VMware"},
        {"XenVMMXenVMM", "Xen"},      {"bhyve bhyve ", "bhyve"},   {"VBoxVBoxVBox", "VirtualBox"},
        {"TCGTCGTCGTCG", "QEMU TCG"},
    };
    unsigned a, b, c, d;
    char id[13] = "";

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
        return false;
    __cpuid(0x40000000, a, b, c, d);
    memcpy(id, &b, 4);
    memcpy(id + 4, &c, 4);
    memcpy(id + 8, &d, 4);
    snprintf(buf, len, "%s", id[0] ? id : "yes");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(id, known[i].id) == 0)
            snprintf(buf, len, "%s", known[i].name);
    return true;
#else
    (void)buf;
    (void)len;
    return false;
#endif
}

/* Vendors whose name in the firmware's tables means a virtual machine. */
static bool dmi_hypervisor(char *buf, size_t len)
{
    static const char *const vendors[] = {
        "QEMU",    "KVM",       "VMware",     "Xen",   "Microsoft Corporation",
        "innotek", "Parallels", "Amazon EC2", "Google"};
    char vendor[128];

    if (!read_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof vendor))
        return false;
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (strstr(vendor, vendors[i])) {
            snprintf(buf, len, "%.60s", vendor);
            return true;
        }
    return false;
}

static void fill_hypervisor(struct result_environment *env)
{
    char *vm = env->virtual_machine;
    size_t len = sizeof env->virtual_machine;

    if (!cpuid_hypervisor(vm, len) && !read_line("/sys/hypervisor/type", vm, len) &&
        !dmi_hypervisor(vm, len))
        snprintf(vm, len, "no");
}

static void fill_load(struct result_environment *env)
{
    char text[64];

    if (read_line("/proc/loadavg", text, sizeof text))
        env->load_1min = strtod(text, NULL);
}

void environment_system(struct result_environment *env)
{
    fill_cpus(env);
    fill_cache(env);
    fill_memory(env);
    fill_hypervisor(env);
    fill_load(env);
    read_value("/etc/os-release", "PRETTY_NAME", '=', env->os, sizeof env->os);
    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", env->clock_source,
              sizeof env->clock_source);
}
