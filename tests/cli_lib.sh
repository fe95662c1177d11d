# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154  # lib.sh comes before this
# For tests of the command line, behind lib.sh and in a directory of their own.

# run ARGUMENT...: leaves status, out and err.
run() {
    "$LUNPATH" "$@" >out 2>err </dev/null
    status=$?
}

# refuses "sentence" STATUS "part of the line" ARGUMENT...
refuses() {
    sentence=$1 wanted=$2 part=$3
    shift 3
    run "$@"
    if [ "$status" -eq "$wanted" ] && [ "$(wc -l <err)" -eq 1 ] && [ ! -s out ] &&
        grep -qF -- "$part" err; then
        pass "$sentence"
    else
        fail "$sentence" "status $status instead of $wanted, or not \"$part\": $(cat err)"
    fi
}

# succeeds "sentence" ARGUMENT...
succeeds() {
    sentence=$1
    shift
    run "$@"
    if [ "$status" -eq 0 ]; then pass "$sentence"; else fail "$sentence" "$status: $(cat err)"; fi
}

# exits "sentence" STATUS: of the last run.
exits() { check "$1" test "$status" -eq "$2"; }

# Until a command succeeds; a state is waited for, half a minute at most.
wait_for() {
    tries=300
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}
