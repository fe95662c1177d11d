#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The commands for iSCSI as a person meets them, against our own target on this machine.
# shellcheck disable=SC2154  # status comes from cli_lib.sh
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli_lib.sh"

cd "$tmp" || exit 1
unset LUNPATH_INITIATOR LUNPATH_SECRET LUNPATH_TARGET_SECRET
LUNPATH_INITIATOR=iqn.2026-01.org.lunpath:test
export LUNPATH_INITIATOR
name=iqn.2026-01.org.lunpath:disk

# serve NAME OPTION...: a target on a free port; leaves port and server. Output in NAME.out, .err.
serve() {
    served=$1
    shift
    start "$LUNPATH" serve --listen 127.0.0.1:0 "$@" >"$served.out" 2>"$served.err"
    server=$!
    wait_for grep -q '^ready$' "$served.out" || fail "the target gets ready" "$(cat "$served.err")"
    port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$served.out")
}

serve main ram:64M ram:32M
main=$server
portal=127.0.0.1:$port
lun=iscsi://$portal/$name

# ---- discover and luns ----

# [I-DISC-01]
succeeds "discover lists the target" discover "$portal"
check "by its name" grep -qx "$name" out
check "and its address" grep -q "portal $portal  group 1" out
refuses "discover wants one portal" 2 "name one portal" discover
refuses "a port is a number" 2 "port" discover 127.0.0.1:x
refuses "a portal that refuses is told" 1 "127.0.0.1" discover 127.0.0.1:1
refuses "an initiator name has a form" 2 "initiator name" discover --initiator Disk1 "$portal"

succeeds "luns lists the LUNs" luns "$lun"
check "the first" grep -q '^LUN 0: 64 MiB, blocks of 512 bytes' out
check "and the second" grep -q '^LUN 1: 32 MiB' out
refuses "luns wants a target" 2 "name one target" luns
# [I-LOG-08]
refuses "a target that is not there is told as such" 1 "is unknown at this address" luns "iscsi://$portal/iqn.2026-01.org.x:y"

# ---- inspect ----

succeeds "inspect shows a LUN" inspect "$lun/0"
check "what the login settled" grep -q '^    MaxBurstLength: [0-9]' out
check "who it is" grep -q '^    vendor: LUNPATH' out
check "its pages" grep -q '^        page: B0h' out
check "its size" grep -q '^    blocks: 131072' out
check "its modes" grep -q 'write cache (WCE)' out
succeeds "inspect speaks JSON" inspect --json "$lun/1"
if command -v python3 >/dev/null; then
    check "that programs can read" python3 -c '
import json
seen = json.load(open("out"))
assert seen["capacity"]["blocks"] == 65536
assert seen["session"]["ErrorRecoveryLevel"] == 0
assert "B2h" in [page["page"] for page in seen["VPD pages"]]'
else
    skip_case "that programs can read" "python3 is missing"
fi
refuses "a LUN that is not there is refused" 1 "no such LUN" inspect "$lun/7"
refuses "inspect wants a LUN" 2 "LUN" inspect "$lun"
refuses "and one only" 2 "name one LUN" inspect "$lun/0" "$lun/1"

# ---- ping ----

# [I-NOP-03] [T-NOP-01]
succeeds "ping counts" ping --count 20 --size 4K --depth 4 "$lun"
check "every ping" grep -q ' 20 of 20 pings of 4 KiB answered, depth 4' out
check "and says how fast" grep -q '^round trip: p50 .* p99 .* max .* Gbit/s' out
succeeds "ping goes on for a time" ping --seconds 0.2 --size 0 "$lun"
refuses "a ping that does not fit is refused" 2 "in one segment" ping --size 8M "$lun"

"$LUNPATH" ping --seconds 60 "$lun" >ping.out 2>ping.err &
pid=$!
started="$started $pid"
wait_for sh -c "[ \"\$(ls /proc/$pid/task | wc -l)\" -gt 1 ]"
kill -INT "$pid"
wait "$pid"
status=$?
exits "Ctrl-C ends ping" 130
check "with what was measured" grep -q 'answered' ping.out

serve dying ram:1M
"$LUNPATH" ping --seconds 60 "iscsi://127.0.0.1:$port/$name" >ping.out 2>ping.err &
pid=$!
started="$started $pid"
wait_for grep -q 'logged in' dying.err
kill -KILL "$server"
wait "$pid"
status=$?
exits "a target that dies fails ping" 1
check "with one line" test "$(wc -l <ping.err)" -eq 1

# ---- copy ----

head -c 8388608 /dev/urandom >half.img
cp half.img a.img
truncate -s 16M a.img b.img
buffered=--buffered
succeeds "copy takes a file to a LUN" copy $buffered --verify a.img "$lun/0"
check "and compares" grep -qx 'read back and compared: every block is right' out
grep CRC32C out >sum
truncate -s 64M b.img
succeeds "copy takes a LUN to a file" copy $buffered --sparse --depth 3 "$lun/0" b.img
check "the data are the same" cmp -n 16777216 a.img b.img
check "zeros were not written" test "$(du -k b.img | cut -f1)" -lt 12288
check "what was written is told" grep -q '; 8 MiB were written' out
truncate -s 64M c.img
succeeds "other block sizes and depths give the same sum" \
    copy $buffered --block 64K --depth 128 "$lun/0" c.img
check "of the same data" cmp b.img c.img
# By other programs: the CRC32C of a MiB of zeros.
succeeds "a sum is what others find" copy ram:1M null:1M
check "for zeros" grep -qx 'CRC32C of the data: 14298c12' out
run copy --verify ram:4M fault:flip=2:ram:4M
exits "wrong data have their status" 3
check "and a place" grep -q '^WRONG DATA: .* at byte [0-9]' out
succeeds "sparse zeroes what is not zero" copy $buffered --sparse --destroy ram:16M a.img
check "so that it is" sh -c 'head -c 16777216 /dev/zero | cmp -s - a.img'

refuses "copy wants two disks" 2 "name two disks" copy ram:1M
refuses "a copy that does not fit is refused" 2 "does not fit" copy "$lun/0" "$lun/1"
refuses "a disk is not copied to itself" 2 "are one disk" copy "$lun/0" "$lun/0"
ln b.img other-name.img
refuses "nor a file by another name" 2 "are one disk" copy $buffered b.img other-name.img
head -c 1000001 /dev/zero >odd.img
refuses "a file with half a block is refused" 2 "no whole blocks" copy $buffered odd.img null:4M
refuses "a file that is not there is refused" 1 "does not exist" copy $buffered ram:1M none.img
refuses "a block must fit the disks" 2 "--block must be a multiple" copy --block 5000 ram:1M "$lun/1"
refuses "options of iSCSI need a LUN" 2 "neither disk is a LUN" copy --user me ram:1M null:1M

"$LUNPATH" copy null:8T null:8T >copy.out 2>copy.err &
pid=$!
started="$started $pid"
wait_for sh -c "[ \"\$(ls /proc/$pid/task | wc -l)\" -gt 1 ]"
kill -TERM "$pid"
wait "$pid"
status=$?
exits "SIGTERM ends a copy" 143
check "and it is not taken for whole" sh -c '! grep -q "CRC32C" copy.out'

# ---- what is on a LUN ----

if command -v mkfs.ext4 >/dev/null; then
    truncate -s 32M ext4.img
    mkfs.ext4 -q ext4.img
    succeeds "a file system goes to an empty LUN" copy $buffered ext4.img "$lun/1"
    for command in "copy ram:1M" "bench --quick --destroy" "verify --destroy"; do
        # shellcheck disable=SC2086  # several words
        refuses "${command%% *} does not overwrite it" 1 "bears a file system (ext4, 32 MiB)" \
            $command "$lun/1"
    done
    refuses "nor does bench behind a fault disk" 1 "bears a file system" \
        bench --quick --destroy "fault:flip:$lun/1"
    run verify --size 8M --seconds 0.05 "fault:flip=2:$lun/1"
    exits "verify of a fault disk on a LUN finds the fault by reading" 3
    truncate -s 32M back.img
    succeeds "a LUN can be read back" copy $buffered "$lun/1" back.img
    check "and is as it was" cmp ext4.img back.img
    succeeds "copy --destroy overwrites it" copy --destroy ram:32M "$lun/1"
else
    skip_case "a file system on a LUN is not overwritten" "mkfs.ext4 is missing"
fi

# ---- bench and verify ----

quick="--seconds 0.02 --warm-up 0 --runs 1 --depths 4 --working-set 8M"
# shellcheck disable=SC2086
succeeds "bench reads a LUN" bench $quick "$lun/0"
check "and shows it" grep -q READ out
succeeds "verify hunts wrong data on a LUN" verify --destroy --even-with-data --size 8M \
    --seconds 0.05 "$lun/1"
check "and finds none" grep -q 'every byte that was checked was right' out
refuses "options of iSCSI need a LUN in bench" 2 "the disk is none" bench --user me ram:1M

# ---- who may ----

printf 'correct horse battery\n' >secret
printf 'staple of the target\n' >target-secret
printf 'incorrect horse\n' >wrong
chmod 600 secret target-secret wrong
serve chap --user me --secret-file secret --target-user nas --target-secret-file target-secret \
    ram:16M
guarded=iscsi://me@127.0.0.1:$port/$name
succeeds "CHAP lets in who knows the secret" luns --secret-file secret "$guarded"
succeeds "also with --user" luns --user me --secret-file secret "iscsi://127.0.0.1:$port/$name"
# [I-CHAP-04]
succeeds "the target proves itself" inspect --secret-file secret --target-user nas \
    --target-secret-file target-secret "$guarded/0"
check "then it is authenticated" grep -q 'authenticated: yes' out
# [T-CHAP-02]
refuses "another secret does not" 1 "" luns --secret-file wrong "$guarded"
refuses "a target that is somebody else is left" 1 "" luns --secret-file secret \
    --target-secret-file wrong "$guarded"
# [I-CHAP-06]
refuses "one secret for both sides is refused" 2 "are the same" luns --secret-file secret \
    --target-secret-file secret "$guarded"
refuses "without a secret nobody gets in" 1 "" luns "iscsi://127.0.0.1:$port/$name"
chmod 644 wrong
refuses "a secret that others can read is refused" 2 "chmod 600" luns --secret-file wrong "$guarded"
refuses "a secret without a user is refused" 2 "add --user" luns --secret-file secret "$lun"
LUNPATH_SECRET='correct horse battery'
export LUNPATH_SECRET
succeeds "the secret can come from the environment" luns "$guarded"
unset LUNPATH_SECRET
empty "no secret is in what anybody printed" "$(grep -l 'horse\|staple' ./*.out ./*.err out err)"

# ---- in order ----

kill -TERM "$main"
wait "$main"
status=$?
exits "the target ends in order" 0
empty "nobody had a session left" "$(grep -i 'lost\|dropped' main.err)"
