#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each script under perf/ still runs and fills its table. How fast anything is plays no part here.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || skip "python3 is missing"
command -v taskset >/dev/null || skip "taskset is missing"

# empty_rows TABLE ROWS: those without figures, or that there are fewer than so many.
empty_rows() {
    awk -v wanted="$2" '
    /^note: / { inside = 0 }
    inside {
        rows++
        # ... measured  lowest .. highest
        if ($0 !~ /  [0-9.]+( [GMk])?  [0-9.]+( [GMk])? \.\. [0-9.]/) print "no figure: " $0
    }
    /^target / { inside = 1 }
    END { if (rows < wanted) print rows + 0 " rows, not " wanted }' "$1"
}

# smoke SCRIPT ROWS
smoke() {
    name=$(basename "$1")
    if ! "$1" --smoke >"$tmp/out" 2>"$tmp/err"; then
        fail "$name runs" "$(cat "$tmp/out" "$tmp/err")"
        return
    fi
    pass "$name runs"
    empty "$name has a figure in each row" "$(empty_rows "$tmp/out" "$2")"
}

for script in "$root"/perf/*.sh; do
    [ "$(nproc)" -gt 1 ] || not_here='^two CPUs' # rows that need two
    rows=$(grep -v "${not_here:-^#}" "$script" | grep -c ' | \(-\|[<>]= [0-9.e]*\) *| ')
    case $script in
    */lib.sh) continue ;;
    */peers.sh)
        if ! command -v fio >/dev/null; then
            skip_case "peers.sh runs" "fio is missing"
            continue
        fi
        ;;
    esac
    smoke "$script" "$rows"
done

# And what is rotten is found.
mkdir "$tmp/old"
cp -R "$root/perf" "$tmp/old/"
sed -i 's/--block/--blocks-of/' "$tmp/old/perf/copy.sh"
refuses() { ! "$@"; }
check "a script with an option that is gone fails" refuses "$tmp/old/perf/copy.sh" --smoke
sed -i 's/gbit_per_s/gbit_a_second/' "$tmp/old/perf/table.py"
check "a script that asks for a figure that is gone fails" refuses "$tmp/old/perf/shape.sh" --smoke
check "an unknown option is refused" refuses "$root/perf/copy.sh" --somke
