#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# One TCP connection over loopback: what src/net loses beside plain blocking sockets, with writes of
# 1 MiB and with round trips of 48 bytes, on one CPU and on two.
. "$(dirname "$0")/lib.sh"

command -v taskset >/dev/null || die "taskset is missing (util-linux)"
net=${LUNPATH_NET:-$(dirname "${LUNPATH:-$root/build/lunpath}")/perf/perf_net}
[ -x "$net" ] || die "$net is missing: type ./run build"
first=$(echo "$cpus" | sed 's/[-,].*//')
last=$(echo "$cpus" | sed 's/.*[-,]//')
ways='blocking poll uring poll-spin uring-spin ring'

# measure LABEL WAY CPU CPU
measure() {
    "$net" "$2" "$3" "$4" "$seconds" >"$tmp/$1.$round.json" || die "$net $2 failed"
}

round() {
    for way in $ways; do
        label=$(echo "$way" | tr - _)
        measure "${label}_one" "$way" "$first" "$first"
        [ "$first" = "$last" ] || measure "${label}_two" "$way" "$first" "$last"
    done
}

# rows PLACE WORDS: everything beside the blocking sockets of the same place.
rows() {
    for way in $ways; do
        label=$(echo "$way" | tr - _)_$1
        [ "$way" = blocking ] || echo "$2: $way, throughput, of blocking | - | \
            ${label}['gbit_per_s'] / blocking_${1}['gbit_per_s']"
    done
    for way in $ways; do
        label=$(echo "$way" | tr - _)_$1
        [ "$way" = blocking ] || echo "$2: $way, round trip, of blocking | - | \
            ${label}['round_trip_ns'] / blocking_${1}['round_trip_ns']"
    done
    echo "$2: blocking, Gbit/s | - | blocking_${1}['gbit_per_s']"
    echo "$2: blocking, round trip in us | - | blocking_${1}['round_trip_ns'] / 1000"
    for way in $ways; do
        echo "$2: $way, client's calls a round trip | - | \
            $(echo "$way" | tr - _)_$1['calls_per_round_trip']"
    done
}

rounds
{
    rows one "one CPU"
    [ "$first" = "$last" ] || rows two "two CPUs"
} | table
