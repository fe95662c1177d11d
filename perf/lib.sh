# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Helpers for the scripts in this folder. A script reads:
#
#     . "$(dirname "$0")/lib.sh"
#     round() {
#         bench two --profile software --depths 1
#     }
#     rounds
#     table <<'END'
#     what is compared | >= 0.9 | two.point("software", "read", 1)["gbit_per_s"] / ...
#     END
#
# ROUNDS sets how often, SECONDS_EACH how long each point runs, LUNPATH which program. With --smoke
# a script goes through all that it does in a moment and with little data, to show that it still
# works; tests/perf.sh does so.

set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
program=${LUNPATH:-$root/build/lunpath}
count=${ROUNDS:-5}
seconds=${SECONDS_EACH:-0.5}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

smoke='' # options for every lunpath bench
case $#:${1:-} in
0:) ;;
1:--smoke)
    smoke="--warm-up 0 --working-set 4M"
    count=1
    seconds=0.01
    ;;
*) die "usage: ${0##*/} [--smoke]" ;;
esac

[ -x "$program" ] || die "$program is missing: type ./run build"
command -v python3 >/dev/null || die "python3 is missing"
cpus=$(taskset -cp $$ 2>/dev/null | sed 's/.*: //')

on='' # put before a program that must run somewhere: "taskset -c 0"

# bench LABEL OPTION...: one run; its result is LABEL in the table. A path with wrong bytes makes
# the exit status bad but has a result, which the table names.
bench() {
    json=$tmp/$1.$round.json
    shift
    # shellcheck disable=SC2086  # several words
    $on "$program" bench "$@" --runs 1 --seconds "$seconds" $smoke --json "$json" \
        >"$tmp/log" 2>&1 ||
        [ -s "$json" ] || { cat "$tmp/log" >&2; die "lunpath bench $* failed"; }
}

# Calls round as often as wanted, so that what is compared takes turns: a machine that drifts
# drifts for all of it.
rounds() {
    round=0
    while [ "$round" -lt "$count" ]; do
        round=$((round + 1))
        [ ! -t 2 ] || printf '\rround %s of %s ' "$round" "$count" >&2
        round
    done
    [ ! -t 2 ] || printf '\r\033[K' >&2
}

# table <ROWS: see table.py.
table() {
    [ -z "$smoke" ] || printf 'smoke run: these figures mean nothing\n\n'
    python3 "$root/perf/table.py" "$tmp" "${cpus:-all}"
}
