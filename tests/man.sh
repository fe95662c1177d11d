#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The man pages render, and say of each command's options what --help says: all of them, no other.
. "$(dirname "$0")/lib.sh"

pages=$root/docs/man

# Bold at the start of a line, or after "*--x* or ", is an option's paragraph.
page_options() { grep -oE '^\*--[a-z-]+\*' "$1" | tr -d '*' | sort -u; }
help_options() { "$LUNPATH" "$1" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | sort -u; }

for command in bench verify report discover luns inspect ping copy serve; do
    help_options "$command" >"$tmp/help"
    page_options "$pages/lunpath-$command.1.scd" >"$tmp/page"
    check "$command has options" test -s "$tmp/help"
    empty "the man page of $command has the options of --help" "$(diff "$tmp/help" "$tmp/page")"
done

"$LUNPATH" help | sed -n 's/^  \([a-z]*\) .*/\1/p' >"$tmp/commands"
check "help lists commands" test -s "$tmp/commands"
while read -r command; do
    check "lunpath(1) has the command $command" grep -q "^\*$command\*" "$pages/lunpath.1.scd"
done <"$tmp/commands"

command -v scdoc >/dev/null || skip "scdoc is missing"
for page in "$pages"/*.scd; do
    name=$(basename "$page" .scd)
    said=$(scdoc <"$page" 2>&1 >"$tmp/$name")
    empty "$name renders" "$said"
    if command -v groff >/dev/null; then
        empty "groff has nothing to say about $name" \
            "$(groff -man -Tutf8 -ww "$tmp/$name" 2>&1 >"$tmp/text")"
        check "$name has its name in it" grep -q "${name%.1}" "$tmp/text"
    else
        skip_case "groff has nothing to say about $name" "groff is missing"
    fi
done
