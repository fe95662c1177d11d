# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Helpers for script tests. A test reads:
#
#     . "$(dirname "$0")/lib.sh"
#     command -v losetup >/dev/null || skip "losetup is missing"
#     start "$LUNPATH" serve "$tmp/disk"
#     check "a disk that is served can be read" cmp "$tmp/disk" "$tmp/copy"
#
# Each case is a sentence and one line of TAP; the plan is printed at the end, and a script that
# stops early counts as one failed case more. Meson gives $LUNPATH, the program under test.

set -u

# shellcheck disable=SC2034  # for the test that includes this
root=$(cd "$(dirname "$0")" && while [ ! -f run ] && [ "$PWD" != / ]; do cd ..; done && pwd -P)
tmp=$(mktemp -d)
cases=0
failures=0
started=''

# pass "sentence"
pass() {
    cases=$((cases + 1))
    echo "ok $cases - $1"
}

# fail "sentence" ["detail, may have several lines"]
fail() {
    cases=$((cases + 1))
    failures=$((failures + 1))
    echo "not ok $cases - $1"
    [ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/#   /'
}

# check "sentence" COMMAND...: passes when the command succeeds; else shows what it printed.
check() {
    sentence=$1
    shift
    if output=$("$@" 2>&1); then
        pass "$sentence"
    else
        fail "$sentence" "$output"
    fi
}

# empty "sentence" "text": passes when the text is empty; else shows it.
empty() {
    if [ -z "$2" ]; then pass "$1"; else fail "$1" "$2"; fi
}

# skip_case "sentence" "why"
skip_case() {
    cases=$((cases + 1))
    echo "ok $cases - $1 # SKIP $2"
}

# skip "why": the whole test, or what is left of it, cannot run here.
skip() {
    [ "$cases" -eq 0 ] || { skip_case "the rest" "$1"; exit "$((failures > 0))"; }
    echo "$1"
    exit 77
}

# start COMMAND...: runs it in the background; $! is its pid. It is ended when the test ends.
start() {
    "$@" &
    started="$started $!"
}

# TERM first; KILL for what is still there after two seconds.
end_started() {
    for pid in $started; do kill "$pid" 2>/dev/null; done
    for pid in $started; do
        tries=20
        while kill -0 "$pid" 2>/dev/null && [ "$tries" -gt 0 ]; do
            tries=$((tries - 1))
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
}

finish() {
    status=$?
    trap - EXIT
    end_started
    rm -rf "$tmp"
    [ "$status" -ne 77 ] || exit 77
    [ "$status" -eq 0 ] || [ "$failures" -gt 0 ] || fail "the test runs to its end" "exit $status"
    echo "1..$cases"
    [ "$failures" -eq 0 ] || exit 1
    exit 0
}

trap finish EXIT
trap 'exit 1' HUP INT TERM
