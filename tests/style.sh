#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The house rules that a program can check. Formatting is clang-format's; see .clang-format.
# shellcheck disable=SC2086  # lists of files are split on purpose; no name in here has a space
. "$(dirname "$0")/lib.sh"

cd "$root" || exit 1

c_files=$(find include src tests kernel perf -name '*.[ch]' 2>/dev/null | sort)
src_files=$(find src -name '*.[ch]' | sort)
build_files=$(find src tests -name meson.build | sort)
shell_files="run .ci/run $(find tests perf -name '*.sh' 2>/dev/null | sort)"
scripts="$shell_files $(find tests perf -name '*.py' 2>/dev/null | sort)"

# code FILE...: "file:line:text" with comments taken out (well enough for a search).
code() {
    awk '
    FNR == 1 { inside = 0 }
    {
        line = $0
        if (inside && !sub(/^.*\*\//, "", line)) next
        inside = 0
        gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
        sub(/\/\/.*/, "", line)
        if (sub(/\/\*.*/, "", line)) inside = 1
        print FILENAME ":" FNR ":" line
    }' "$@"
}

without_licence() {
    for file in $c_files; do
        sed -n 1p "$file" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' || echo "$file"
    done
    # Scripts may begin with #!.
    for file in meson.build meson_options.txt $build_files $scripts; do
        sed -n 1,2p "$file" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' || echo "$file"
    done
}

long_files() {
    for file in $src_files; do
        lines=$(wc -l <"$file")
        [ "$lines" -le 600 ] || echo "# note: $file has $lines lines; aim for 600" >&2
        [ "$lines" -le 700 ] || echo "$file: $lines lines"
    done
}

long_functions() {
    ctags -x --languages=C --langmap=C:+.h --kinds-C=f --fields=+e \
        --_xformat='%{line} %{end} %{name} %{input}' $src_files |
        awk '$2 - $1 + 1 > 100 { print $4 ":" $1 ": " $3 " has " $2 - $1 + 1 " lines" }'
}

exits() {
    code $src_files | grep -vE '^src/(app/|host/[^:]*driver)' |
        grep -E '(^|[^[:alnum:]_])(exit|_exit|_Exit|quick_exit) *\(' |
        grep -v '_exit(127);' # the child of a fork whose exec failed has nowhere else to go
}

# Not "static TYPE name" without const at the left margin, unless it is a function.
mutable_statics() {
    code $src_files | grep -E '^[^:]*:[0-9]*:static .*(;|=)' | grep -vE '\(|[^[:alnum:]_]const '
}

unfinished() {
    grep -nE 'TO''DO|FIX''ME|(^|[^X])X''XX([^X]|$)' $c_files $scripts $build_files meson.build
}

# A test that nobody runs is worse than none.
unlisted_tests() {
    for file in tests/unit/test_*.c tests/fuzz/*.c tests/*.sh; do
        [ -e "$file" ] || continue
        name=$(basename "$file" | sed 's/^test_//; s/\.[^.]*$//')
        case $file in tests/lib.sh | tests/cli_lib.sh | tests/interop_lib.sh | tests/stages.sh) continue ;; esac
        grep -q "^  '$name'," tests/meson.build || echo "$file"
    done
}

empty "every source file names its licence first" "$(without_licence)"
empty "no file in src has over 700 lines" "$(long_files)"
if ctags --version 2>/dev/null | grep -q 'Universal Ctags'; then
    empty "no function has over 100 lines" "$(long_functions)"
else
    skip_case "no function has over 100 lines" "universal-ctags is missing"
fi
empty "only the app and a host's driver process may exit" "$(exits)"
empty "no file has mutable state of its own" "$(mutable_statics)"
empty "nothing is marked as unfinished" "$(unfinished)"
empty "every test is listed in tests/meson.build" "$(unlisted_tests)"
if command -v shellcheck >/dev/null; then
    check "shellcheck has nothing to say" shellcheck -x -P SCRIPTDIR $shell_files
else
    skip_case "shellcheck has nothing to say" "shellcheck is missing"
fi
