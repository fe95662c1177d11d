# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154  # the including script assigns tmp, iqn and lun
# What the tests against other people's targets share. The including script has defined
# target_start, which starts the target on $port (and succeeds when it serves), target_stop,
# $iqn and $lun, and target_luns, which looks at the list of LUNs in $tmp/out.

secret=correcthorse1
target_secret=batterystaple1
initiator=iqn.2026-01.test:interop

# wait_for COMMAND...: until it succeeds; a state is waited for, 15 seconds at most.
wait_for() {
    tries=150
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# A port that nobody listens on now.
free_port() {
    while :; do
        port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 20000))
        awk -v want=":$(printf %04X "$port")\$" 'NR > 1 && $2 ~ want { found = 1 }
            END { exit found }' /proc/net/tcp && return
    done
}

# iscsi COMMAND [OPTION...] URL: the program, as the initiator of this test. Leaves out and err.
iscsi() {
    command=$1
    shift
    "$LUNPATH" "$command" --initiator "$initiator" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
}

# says "sentence" "part" TARGET OPTION...: the login fails with a line that has this part.
says() {
    sentence=$1 part=$2 name=$3
    shift 3
    if iscsi luns "$@" "iscsi://127.0.0.1:$port/$name"; then
        fail "$sentence" "it was let in"
    elif [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -qi -- "$part" "$tmp/err"; then
        pass "$sentence"
    else
        fail "$sentence" "not \"$part\": $(cat "$tmp/err")"
    fi
}

# succeeds "sentence" COMMAND OPTION...
succeeds() {
    sentence=$1
    shift
    if iscsi "$@"; then pass "$sentence"; else fail "$sentence" "$(cat "$tmp/err" "$tmp/out")"; fi
}

verify() {
    sentence=$1
    shift
    succeeds "$sentence" verify --destroy --even-with-data --seconds 0.3 --size 8M "$@" \
        "iscsi://127.0.0.1:$port/$iqn/$lun"
}

# What every target must do without authentication.
without_chap() {
    succeeds "its targets are found" discover "iscsi://127.0.0.1:$port"
    check "the list has the target" grep -qF "$iqn" "$tmp/out"
    check "and its portal" grep -qF "127.0.0.1:$port" "$tmp/out"
    succeeds "its LUNs are listed" luns "iscsi://127.0.0.1:$port/$iqn"
    check "the list has the LUN with its size" grep -q "^LUN $lun: 64 MiB, blocks of 512 bytes" \
        "$tmp/out"
    target_luns
    check "no LUN of the list is an error" sh -c "! grep -q 'no such\|failed' '$tmp/out'"
    says "an unknown target is told in words" "unknown" "$iqn.none"
    verify "no byte is wrong"
    verify "no byte is wrong with digests" --header-digest required --data-digest required
    verify "no byte is wrong with two sessions" --sessions 2
}

secret_files() {
    printf '%s\n' "$secret" >"$tmp/secret"
    printf '%s\n' "$target_secret" >"$tmp/target-secret"
    printf 'wrongwrongwrong\n' >"$tmp/wrong"
    chmod 600 "$tmp/secret" "$tmp/target-secret" "$tmp/wrong"
}

with_chap() {
    secret_files
    verify "CHAP with the right secret lets us in" --user joe --secret-file "$tmp/secret"
    says "a wrong secret is told in words" "secret" "$iqn" --user joe --secret-file "$tmp/wrong"
    says "no secret is told in words" "authenticat" "$iqn"
}

with_mutual_chap() {
    secret_files
    verify "mutual CHAP lets us in" --user joe --secret-file "$tmp/secret" \
        --target-user nas --target-secret-file "$tmp/target-secret"
    says "a target that does not know its secret is refused" "target" "$iqn" \
        --user joe \
        --secret-file "$tmp/secret" --target-user nas --target-secret-file "$tmp/wrong"
}

# The target is killed under a run of verify and started again.
killed_and_restarted() {
    : >"$tmp/stamp"
    "$LUNPATH" verify --initiator "$initiator" --destroy --even-with-data --seconds 2 \
        --size 8M --hold 60 --verbose "iscsi://127.0.0.1:$port/$iqn/$lun" \
        >"$tmp/out" 2>"$tmp/err" </dev/null &
    verifier=$!
    started="$started $verifier"
    wait_for target_is_written || fail "the run of verify begins" "$(cat "$tmp/err")"
    target_stop
    check "verify waits for a target that was killed" kill -0 "$verifier"
    wait_for grep -q "closed\|refused\|lost" "$tmp/err"
    # Not inside of check, whose subshell would forget the process.
    if target_start; then pass "the target can be started again"; else fail "the target can be started again"; fi
    if wait "$verifier"; then
        pass "the run ends without an error and without a wrong byte"
    else
        fail "the run ends without an error and without a wrong byte" \
            "$(cat "$tmp/err" "$tmp/out")"
    fi
    check "it tells what happened" grep -q "closed\|refused\|lost" "$tmp/err"
}

target_is_written() { [ -n "$(find "$tmp/disk" -newer "$tmp/stamp")" ]; }

target_listens() {
    awk -v want=":$(printf %04X "$port")\$" '$2 ~ want && $4 == "0A" { found = 1 }
        END { exit !found }' /proc/net/tcp
}

# stop_pid PID: KILL, as a crash would; and nobody is left to wait for.
stop_pid() {
    kill -KILL "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}
