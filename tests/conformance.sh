#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every point of docs/conformance.md has a test that names it, or says what is missing; tests name
# no other points. A test names points in a comment above it: /* [I-LOG-01] [B-20] */, # in scripts.
#
#   tests/conformance.sh --write     puts the names of the tests into docs/conformance.md
. "$(dirname "$0")/lib.sh"

list=$root/docs/conformance.md

# "ID FILE/TEST" for each mention; a comment stands above its test, so the next name is the test's.
mentions() {
    find "$root/tests" -name '*.[ch]' -o -name '*.sh' | LC_ALL=C sort | while read -r file; do
        place=$(basename "$file")
        awk -v place="${place#test_}" '
            /\[[BITSC](-[A-Z]+)?-[0-9]+\]|\[B[0-9][0-9]\]/ && /^[ \t]*(\/\*|\*|\/\/|#)/ {
                line = $0
                while (match(line, /\[[BITSC](-[A-Z]+)?-?[0-9]+\]/)) {
                    ids[++n] = substr(line, RSTART + 1, RLENGTH - 2)
                    line = substr(line, RSTART + RLENGTH)
                }
                next
            }
            # A test: a function of the state or of a rig alone, or a macro around its name.
            n && (/^[A-Z]+\([a-z]/ || /^static void [a-z_0-9]+\((void \*\*|struct [a-z]+ \*[a-z]+\))/) {
                name = $0
                if (name ~ /^[A-Z]/) sub(/^[A-Z]+\(/, "", name)
                else { sub(/\(.*/, "", name); sub(/.* /, "", name) }
                sub(/[,)].*/, "", name)
                flush(name)
            }
            function flush(name,   i, at) {
                at = place
                sub(/\.[ch]$/, "", at)
                for (i = 1; i <= n; i++) print ids[i], at (name == "" ? "" : "/" name)
                n = 0
            }
            END { flush("") }' "$file"
    done
}

# The rows of the list: "ID|TESTS|MISSING".
rows() {
    awk -F' *[|] *' '$2 ~ /^[BITSC](-[A-Z]+)?-?[0-9]+$/ { print $2 "|" $(NF - 2) "|" $(NF - 1) }' \
        "$list"
}

write() {
    mentions >"$tmp/mentions"
    awk -F' *[|] *' -v mentions="$tmp/mentions" '
        BEGIN {
            while ((getline line <mentions) > 0) {
                split(line, m, " ")
                if (seen[line]++) continue
                if (++count[m[1]] <= 3) tests[m[1]] = tests[m[1]] (count[m[1]] > 1 ? ", " : "") m[2]
            }
        }
        $2 in tests {
            more = count[$2] > 3 ? " and " count[$2] - 3 " more" : ""
            gap = $(NF - 1)
            if (gap == "not tested yet") gap = ""
            line = "|"
            for (i = 2; i < NF - 2; i++) line = line " " $i " |"
            gsub(/[|]  [|]/, "| |", line)
            print line " " tests[$2] more " |" (gap == "" ? "" : " " gap) " |"
            next
        }
        { print }' "$list" >"$tmp/list" && cat "$tmp/list" >"$list"
}

if [ "${1:-}" = --write ]; then
    write
    exit 0
fi

rows >"$tmp/rows"
mentions >"$tmp/mentions"
cut -d'|' -f1 "$tmp/rows" | LC_ALL=C sort >"$tmp/ids"
cut -d' ' -f1 "$tmp/mentions" | LC_ALL=C sort -u >"$tmp/named"

check "the list has all points: 298 and 18 cases" test "$(wc -l <"$tmp/ids")" -eq 316
empty "each of them once" "$(uniq -d "$tmp/ids")"
empty "no test names a point that is not in the list" "$(LC_ALL=C comm -13 "$tmp/ids" "$tmp/named")"
empty "each point has a test that names it, or says where or why not" "$(
    while IFS='|' read -r id tests missing; do
        [ -n "$tests$missing" ] || grep -qx "$id" "$tmp/named" || echo "$id"
    done <"$tmp/rows"
)"
# A point with no test and no gap admitted would be hidden by a test's name that is no longer true.
empty "the tests that the list names are there" "$(
    cut -d'|' -f2 "$tmp/rows" | grep -oE '[a-z_0-9.]+/[a-z_0-9]+|[a-z_]+\.sh' | sort -u |
        while IFS=/ read -r file test; do
            source=$root/tests/unit/test_$file.c
            [ -n "$test" ] || source=$root/tests/$file
            grep -qwF -- "$test" "$source" 2>/dev/null || echo "$file/$test"
        done
)"
