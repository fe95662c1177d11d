#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What one small I/O costs: 4 KiB, one queue, on two CPUs and on one, alone and in company.
. "$(dirname "$0")/lib.sh"

command -v taskset >/dev/null || die "taskset is missing (util-linux)"
first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
small="--profile software --block 4K --pattern random --queues 1"

# shellcheck disable=SC2086  # options
round() {
    [ "$first" = "$cpus" ] || bench two $small --depths 1
    on="taskset -c $first"
    bench one $small --depths 1
    on=''
    # The null disk moves no data: what is left is the path itself. There is nothing to verify.
    bench null $small --disk null:64G --no-verify --depths 8,128
}

rounds
{
    [ "$first" = "$cpus" ] || cat <<'END'
two CPUs READ, of 4 round trips and a copy   | <= 1.00 | two.ns_per_io("software", "read", 1) / (4 * two.limits["round_trip_spin_ns"] + two.limits["copy_4k_ns"])
two CPUs WRITE, of 4 round trips and a copy  | <= 1.00 | two.ns_per_io("software", "write", 1) / (4 * two.limits["round_trip_spin_ns"] + two.limits["copy_4k_ns"])
END
    cat <<'END'
one CPU READ, of a futex round trip          | <= 1.50 | one.ns_per_io("software", "read", 1) / one.limits["round_trip_sleep_same_core_ns"]
one CPU WRITE, of a futex round trip         | <= 1.50 | one.ns_per_io("software", "write", 1) / one.limits["round_trip_sleep_same_core_ns"]
null READ depth 128, I/O per second          | >= 5e6  | null.point("software", "read", 128)["ios_per_s"]
null READ depth 128, the aim                 | >= 10e6 | null.point("software", "read", 128)["ios_per_s"]
null READ depth 128, system calls per I/O    | <= 0.02 | null.syscalls_per_io("software", "read", 128)
null WRITE depth 128, system calls per I/O   | <= 0.02 | null.syscalls_per_io("software", "write", 128)
null READ cost per I/O, depth 128 of depth 8 | <= 1.00 | null.ns_per_io("software", "read", 128) / null.ns_per_io("software", "read", 8)
null WRITE cost per I/O, depth 128 of 8      | <= 1.00 | null.ns_per_io("software", "write", 128) / null.ns_per_io("software", "write", 8)
END
} | table
