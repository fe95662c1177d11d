#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs every test, stage by stage, and counts: ./run test [STAGE|TEST]...
# The last line is "N passed, N failed, N skipped"; the exit status says whether all is well.
set -u

root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root" || exit 1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
trap 'exit 1' HUP INT TERM

fuzz_seconds=${FUZZ_SECONDS:-5}
launcher=''     # put before "meson test" by a stage that needs it
formatter=14    # each version of clang-format lays out a little differently

stages='unit script asan tsan clang musl style fuzz'

# The stages. Each adds to the results with pass, fail, skip and tests.

stage_unit() {
    build build-gcc gcc && tests build-gcc --suite unit
}

stage_script() {
    build build-gcc gcc && tests build-gcc --suite script
}

# Warnings are for the plain builds: what the sanitizers add makes gcc see ghosts.
stage_asan() {
    sanitizer gcc address,undefined || return
    build build-asan gcc -Dwerror=false -Db_sanitize=address,undefined &&
        tests build-asan --suite unit --timeout-multiplier 3
}

stage_tsan() {
    sanitizer gcc thread || return
    build build-tsan gcc -Dwerror=false -Db_sanitize=thread || return
    # The thread sanitizer cannot live with some randomly placed mappings.
    if setarch -R true 2>/dev/null; then launcher='setarch -R'; fi
    tests build-tsan --suite unit --timeout-multiplier 5
    launcher=''
}

stage_clang() {
    need clang || return
    build build-clang clang && pass "builds without a warning"
}

stage_musl() {
    need musl-gcc || return
    build build-musl musl-gcc --native-file cross/musl.ini || return
    check "the static program starts" build-musl/lunpath --version
}

stage_style() {
    format=$(command -v "clang-format-$formatter" || command -v clang-format)
    if ! "${format:-false}" --version 2>/dev/null | grep -q "version $formatter\."; then
        skip "formatting" "clang-format $formatter is missing"
        return
    fi
    check "formatting" formatted
}

formatted() {
    bad=$(find include src tests kernel perf -name '*.[ch]' 2>/dev/null | sort |
        while read -r file; do
            "$format" --dry-run -Werror "$file" 2>/dev/null || echo "  $file"
        done)
    [ -z "$bad" ] || printf '%s -i would change:\n%s\n' "$format" "$bad"
    [ -z "$bad" ]
}

stage_fuzz() {
    sanitizer clang fuzzer,address || return
    build build-fuzz clang -Dfuzzers=true -Dwerror=false -Db_sanitize=address,undefined \
        -Dc_args=-fsanitize=fuzzer-no-link || return
    for source in tests/fuzz/*.c; do
        name=$(basename "$source" .c)
        if [ -e "$source" ] && wanted "$name"; then fuzz "$name"; fi
    done
}

# fuzz NAME: the corpus first, then a few seconds of chance. New inputs stay in the build folder.
fuzz() {
    mkdir -p "build-fuzz/found/$1"
    set -- "$1" "build-fuzz/found/$1" "tests/fuzz/corpus/$1"
    [ -d "$3" ] || set -- "$1" "$2"
    name=$1
    shift
    check "$name" "build-fuzz/tests/fuzz_$name" -max_total_time="$fuzz_seconds" -timeout=10 \
        -rss_limit_mb=2048 -artifact_prefix="build-fuzz/found/$name-" -verbosity=0 "$@"
}

# What the stages are made of. A result is "pass|fail|skip TAB stage: name TAB reason".

result() { printf '%s\t%s\t%s\n' "$1" "$stage${2:+: $2}" "${3:-}" >>"$results/$stage.counts"; }
pass() { result pass "$1"; }
fail() { result fail "$1" "${2:-}"; }
skip() { result skip "$1" "$2"; }

need() {
    command -v "$1" >/dev/null || { skip "" "$1 is missing"; return 1; }
}

# sanitizer COMPILER NAMES: are its run-time libraries there?
sanitizer() {
    need "$1" || return
    main=main
    case $2 in fuzzer*) main=LLVMFuzzerTestOneInput ;; esac
    echo "int $main(void) { return 0; }" >"$results/probe.c"
    "$1" "-fsanitize=$2" "$results/probe.c" -o "$results/probe" 2>/dev/null && return
    skip "" "$1 has no -fsanitize=$2 here"
    return 1
}

# check NAME COMMAND...
check() {
    check_name=$1
    shift
    if "$@" >"$results/log" 2>&1; then
        pass "$check_name"
    else
        fail "$check_name"
        { echo "--- $stage: $check_name"; tail -n 40 "$results/log" | sed 's/^/    /'; } \
            >>"$results/$stage.said"
    fi
}

# build FOLDER COMPILER OPTION...: configured once; a failure is a failed test like any other.
build() {
    folder=$1
    compiler=$2
    shift 2
    {
        { [ -f "$folder/build.ninja" ] || CC=$compiler meson setup "$folder" "$@"; } &&
            ninja -C "$folder"
    } >"$results/log" 2>&1 </dev/null && return
    fail "build"
    grep -E 'error:|ERROR:|warning:|undefined reference' "$results/log" >"$results/errors" ||
        tail -n 20 "$results/log" >"$results/errors"
    { echo "--- $stage: build"; head -n 20 "$results/errors" | sed 's/^/    /'; } \
        >>"$results/$stage.said"
    return 1
}

# tests FOLDER OPTION...: what Meson runs there, or of that what was asked for by name.
tests() {
    folder=$1
    shift
    log=$folder/meson-logs/testlog.json
    rm -f "$log"
    # shellcheck disable=SC2086  # both are words
    UBSAN_OPTIONS=print_stacktrace=1 $launcher meson test -C "$folder" --no-rebuild "$@" $names \
        >"$results/log" 2>&1 </dev/null
    if [ -f "$log" ]; then
        python3 tests/tally.py "$stage" "$log" >>"$results/$stage.counts" \
            2>>"$results/$stage.said" && return
    elif grep -q '^No suitable tests\|^No tests' "$results/log"; then
        return    # none by that name in this stage
    fi
    # Nothing to count is not the same as nothing wrong.
    fail "meson test"
    { echo "--- $stage: meson test"; tail -n 20 "$results/log" | sed 's/^/    /'; } \
        >>"$results/$stage.said"
}

# wanted NAME: was this test asked for, or everything?
wanted() {
    case " $names " in
    "  " | *" $1 "*) return 0 ;;
    *) return 1 ;;
    esac
}

# count STATUS FILE...
count() {
    status=$1
    shift
    cat "$@" 2>/dev/null | grep -c "^$status	"
}

run_stage() {
    stage=$1
    : >"$results/$stage.counts"
    begin=$(date +%s)
    printf '%-7s' "$stage"
    "stage_$stage"
    printf '%5s passed, %s failed, %s skipped  (%s s)\n' "$(count pass "$results/$stage.counts")" \
        "$(count fail "$results/$stage.counts")" "$(count skip "$results/$stage.counts")" \
        "$(($(date +%s) - begin))"
    awk -F '\t' '$1 != "pass" { print "        " $1 "  " $2 ($3 == "" ? "" : ": " $3) }' \
        "$results/$stage.counts"
    [ ! -f "$results/$stage.said" ] || cat "$results/$stage.said"
}

# Which stages, and which tests by name? Names alone mean the plain build, and the fuzzers.
chosen=''
names=''
for word in "$@"; do
    case " $stages " in
    *" $word "*) chosen="$chosen $word" ;;
    *) names="$names $word" ;;
    esac
done
if [ -z "$chosen" ]; then
    chosen=$stages
    if [ -n "$names" ]; then
        chosen='unit script'
        for name in $names; do
            [ ! -f "tests/fuzz/$name.c" ] || chosen='unit script fuzz'
        done
    fi
fi

for stage in $chosen; do run_stage "$stage"; done

if [ -n "$names" ] && [ -z "$(cat "$results"/*.counts)" ]; then
    stage=select
    fail "names"
    echo "No test is called$names. The stages are: $stages."
fi

failed=$(count fail "$results"/*.counts)
echo "$(count pass "$results"/*.counts) passed, $failed failed," \
    "$(count skip "$results"/*.counts) skipped"
[ "$failed" -eq 0 ]
