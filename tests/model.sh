#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The ring's sleeping and waking, checked exhaustively: tests/model/ring_wait.pml says what is
# modelled. The model must hold, and each version of it with one rule broken must not.
. "$(dirname "$0")/lib.sh"

command -v spin >/dev/null || skip "spin is missing"
cc=$(command -v gcc || command -v cc) || skip "a C compiler is missing"
model=$root/tests/model/ring_wait.pml
cd "$tmp" || exit 1

# explore SAFETY|LIVENESS DEFINE...: prints the checker's report. Partial-order reduction is off:
# the model is small enough, and then nothing rests on spin's idea of what is independent.
explore() {
    kind=$1
    shift
    spin -a "$@" "$model" >spin.log 2>&1 || { cat spin.log; return 1; }
    case $kind in
    SAFETY) set -- -DSAFETY -DNOCLAIM ;;
    LIVENESS) set -- -DNFAIR=3 ;;
    esac
    "$cc" -w -O1 -DNOREDUCE "$@" -o pan pan.c || return 1
    case $kind in
    SAFETY) ./pan -m100000 ;;
    LIVENESS) ./pan -m100000 -a -f ;;
    esac
}

# holds "sentence" SAFETY|LIVENESS DEFINE...
holds() {
    sentence=$1
    shift
    report=$(explore "$@" 2>&1)
    states=$(echo "$report" | awk '/ states, stored/ { print $1 }')
    case $report in
    *"max search depth too small"* | *"Search not completed"*) fail "$sentence" "$report" ;;
    *"errors: 0"*) pass "$sentence ($states states)" ;;
    *) fail "$sentence" "$report" ;;
    esac
}

# breaks "sentence" "what the checker must find" DEFINE...
breaks() {
    sentence=$1
    found=$2
    shift 2
    report=$(explore SAFETY "$@" 2>&1)
    case $report in
    *"$found"*"errors: 1"*) pass "$sentence" ;;
    *) fail "$sentence" "$report" ;;
    esac
}

asleep="invalid end state"
wrong="assertion violated"

# What stores may do on x86 is part of what they may do with WEAK_STORES: one run shows both.
holds "nobody sleeps on work, no entry is lost, doubled or torn" SAFETY -DWEAK_STORES
holds "every run is served, or ends with the driver's death" LIVENESS -DWEAK_STORES
breaks "without the producer's fence a wake-up is lost" "$asleep" -DNO_PRODUCER_FENCE
breaks "without the consumer's fence a wake-up is lost" "$asleep" -DNO_CONSUMER_FENCE
breaks "looking before saying so loses a wake-up" "$asleep" -DLOOK_BEFORE_SET
breaks "a sleep that does not compare loses a wake-up" "$asleep" -DBLIND_WAIT
breaks "a sleeper that does not look at dead hangs" "$asleep" -DNO_DEAD_CHECK
breaks "a monitor that leaves the word alone leaves a sleeper" "$asleep" -DDEATH_KEEPS_WORD
breaks "a monitor that trusts the word leaves a sleeper" "$asleep" -DDEATH_TRUSTS_WORD
breaks "a tail stored early still owes its wake-up" "$asleep" -DFORGOTTEN_WAKE
breaks "a tail before its entries shows wrong entries" "$wrong" -DTAIL_FIRST
breaks "a tail without release shows wrong entries" "$wrong" -DNO_RELEASE -DWEAK_STORES
