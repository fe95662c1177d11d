/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of JSON members. */
#include "bench/report_json.h"

#define COUNT_MAX 4294967295.0

#define FIELD(type, member, name, kind, max)                                                       \
    {                                                                                              \
        name, JSON_KIND_##kind, offsetof(struct type, member), max                                 \
    }
#define UINT(type, member, name) FIELD(type, member, name, UINT, COUNT_MAX)
#define U64(type, member, name) FIELD(type, member, name, U64, 0)
#define REAL(type, member, name) FIELD(type, member, name, REAL, REPORT_JSON_REAL_MAX)
#define STRING(type, member, name)                                                                 \
    FIELD(type, member, name, STRING, sizeof(((struct type *)0)->member))
#define BOOLEAN(type, member, name) FIELD(type, member, name, BOOL, 1)

const char *const json_directions[RESULT_DIRECTIONS] = {"read", "write", "mixed"};

const struct json_field json_config_fields[] = {
    STRING(result_config, command, "command"),
    STRING(result_config, preset, "preset"),
    STRING(result_config, pattern, "pattern"),
    U64(result_config, block_bytes, "block_bytes"),
    U64(result_config, working_set_bytes, "working_set_bytes"),
    FIELD(result_config, seed, "seed", SEED, 0),
    UINT(result_config, queues, "queues"),
    FIELD(result_config, runs, "runs", UINT, RESULT_MAX_RUNS),
    REAL(result_config, warmup_s, "warmup_s"),
    REAL(result_config, seconds, "run_s"),
    {.name = NULL},
};

const struct json_field json_environment_fields[] = {
    STRING(result_environment, time_utc, "time_utc"),
    STRING(result_environment, lunpath_version, "lunpath_version"),
    STRING(result_environment, hostname, "hostname"),
    STRING(result_environment, cpu_model, "cpu_model"),
    UINT(result_environment, cpus_online, "cpus_online"),
    UINT(result_environment, cpus_allowed, "cpus_allowed"),
    STRING(result_environment, kernel, "kernel"),
    STRING(result_environment, os, "os"),
    STRING(result_environment, governor, "governor"),
    STRING(result_environment, virtual_machine, "virtual_machine"),
    U64(result_environment, memory_bytes, "memory_bytes"),
    U64(result_environment, memory_free_bytes, "memory_free_bytes"),
    U64(result_environment, page_bytes, "page_bytes"),
    U64(result_environment, huge_page_bytes, "huge_page_bytes"),
    U64(result_environment, llc_bytes, "llc_bytes"),
    REAL(result_environment, load_1min, "load_1min"),
    STRING(result_environment, clock_source, "clock_source"),
    STRING(result_environment, placement, "placement"),
    {.name = NULL},
};

const struct json_field json_limits_fields[] = {
    REAL(result_limits, memcpy_gbit_per_s, "memcpy_gbit_per_s"),
    REAL(result_limits, copy_gbit_per_s, "copy_gbit_per_s"),
    REAL(result_limits, copy_all_gbit_per_s, "copy_all_gbit_per_s"),
    UINT(result_limits, threads, "threads"),
    REAL(result_limits, round_trip_spin_ns, "round_trip_spin_ns"),
    REAL(result_limits, round_trip_sleep_ns, "round_trip_sleep_ns"),
    REAL(result_limits, round_trip_sleep_same_core_ns, "round_trip_sleep_same_core_ns"),
    REAL(result_limits, tool_overhead_ns_per_io, "tool_overhead_ns_per_io"),
    REAL(result_limits, copy_4k_ns, "copy_4k_ns"),
    STRING(result_limits, copy_name, "copy_name"),
    {.name = NULL},
};

const struct json_field json_path_fields[] = {
    STRING(result_path, name, "name"),
    STRING(result_path, stands_for, "stands_for"),
    STRING(result_path, host, "host"),
    STRING(result_path, disk, "disk"),
    STRING(result_path, prep, "preparation"),
    UINT(result_path, driver_restarts, "driver_restarts"),
    REAL(result_path, warmup_slow_ratio, "warmup_slow_ratio"),
    {.name = NULL},
};

const struct json_field json_verify_fields[] = {
    BOOLEAN(result_verify, done, "done"),
    U64(result_verify, checked_bytes, "checked_bytes"),
    U64(result_verify, wrong_blocks, "wrong_blocks"),
    STRING(result_verify, first, "first"),
    {.name = NULL},
};

const struct json_field json_summary_fields[] = {
    BOOLEAN(result_summary, measured, "measured"),
    REAL(result_summary, highest_gbit_per_s, "highest_gbit_per_s"),
    UINT(result_summary, highest_depth, "highest_depth"),
    REAL(result_summary, mean_gbit_per_s, "mean_gbit_per_s"),
    REAL(result_summary, lowest_gbit_per_s, "lowest_gbit_per_s"),
    UINT(result_summary, lowest_depth, "lowest_depth"),
    REAL(result_summary, of_ceiling, "of_ceiling_ratio"),
    {.name = NULL},
};

const struct json_field json_point_fields[] = {
    BOOLEAN(result_point, measured, "measured"),
    UINT(result_point, depth_asked, "depth_asked"),
    FIELD(result_point, runs, "runs", UINT, RESULT_MAX_RUNS),
    REAL(result_point, gbit_per_s, "gbit_per_s"),
    REAL(result_point, gbit_per_s_min, "min_gbit_per_s"),
    REAL(result_point, gbit_per_s_max, "max_gbit_per_s"),
    REAL(result_point, ios_per_s, "ios_per_s"),
    REAL(result_point, seconds, "run_s"),
    REAL(result_point, depth_mean, "depth_mean"),
    UINT(result_point, depth_max, "depth_max"),
    U64(result_point, requests, "requests"),
    U64(result_point, bytes_top, "top_bytes"),
    U64(result_point, bytes_disk, "disk_bytes"),
    U64(result_point, errors, "errors"),
    U64(result_point, lat_ns_mean, "lat_mean_ns"),
    U64(result_point, lat_ns_p50, "lat_p50_ns"),
    U64(result_point, lat_ns_p99, "lat_p99_ns"),
    U64(result_point, lat_ns_p999, "lat_p999_ns"),
    U64(result_point, lat_ns_max, "lat_max_ns"),
    REAL(result_point, app_cpu_s_per_gib, "app_cpu_s_per_gib"),
    REAL(result_point, driver_cpu_s_per_gib, "driver_cpu_s_per_gib"),
    REAL(result_point, app_syscalls_per_io, "app_syscalls_per_io"),
    REAL(result_point, driver_syscalls_per_io, "driver_syscalls_per_io"),
    FIELD(result_point, drift, "drift_ratio", SIGNED, REPORT_JSON_REAL_MAX),
    REAL(result_point, of_ceiling, "of_ceiling_ratio"),
    FIELD(result_point, flags, "flags", FLAGS, 0),
    {.name = NULL},
};
