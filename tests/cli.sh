#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The command line as a person meets it: what is wrong gives one clear line and an exact exit
# status, what is right gives a report and nothing else on stdout.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cli_lib.sh"

cd "$tmp" || exit 1
unset NO_COLOR
short="--seconds 0.02 --warm-up 0 --runs 1 --depths 1 --working-set 16M"

# ---- commands and options ----

refuses "no command is a usage error" 2 "name a command"
refuses "an unknown command names the nearest" 2 "did you mean bench?" bnech
refuses "help for an unknown command names the nearest" 2 "did you mean verify?" help verfiy
refuses "an unknown option names the nearest" 2 "did you mean --depths?" bench --dephts 4
refuses "an option without its value is refused" 2 "--block needs a value" bench --block
refuses "an option given twice is refused" 2 "given twice" bench --runs 1 --runs 2
refuses "depth 0 is refused" 2 "--depths" bench --depths 0
refuses "an endless depth is refused" 2 "--depths" bench --depths 99999999999999999999
refuses "block size 3 is refused" 2 "block size 3" bench --block 3
refuses "a block that is no size is refused" 2 "--block" bench --block 4Q
refuses "a block larger than the disk is refused" 2 "larger than the disk" \
    bench --disk ram:1M --block 2M
refuses "contradictory options are refused" 2 "contradict" bench --quick --full
refuses "an unknown profile names the nearest" 2 'did you mean "dma-page"' bench --profile dmapage
refuses "a profile as a target is refused with the right option" 2 "--profile dev" bench dev
refuses "a CPU that is not there is refused" 2 "CPU 4000" bench --cpus 4000
refuses "verify wants to know what" 2 "name what to verify" verify
refuses "verify names the nearest profile" 2 "did you mean software?" verify sofware
refuses "verify of a profile over a file wants --destroy" 2 "add --destroy" \
    verify software --disk file:x
refuses "report wants a result" 2 "name a result" report
refuses "a comparison takes no options" 2 "--csv is for one result" report --csv x a b
refuses "disks takes nothing" 2 "no arguments" disks x

for command in bench verify report disks; do
    run help "$command"
    cp out help
    succeeds "$command --help is shown whatever else is wrong" "$command" --nonsense --help
    check "help $command and $command --help say the same" cmp -s out help
done
run --version
check "--version names the program" grep -q '^lunpath [0-9]' out
run disks
for word in null: ram: file: ring inline software dma-page dma-block dev kernel "SEQ1M Q8T1"; do
    check "disks lists $word" grep -qF "$word" out
done

if grep -q 'needs Linux' out; then
    skip "the portable build has no JSON and does not know what is on a file or who uses it"
fi

refuses "stdin is read once only" 2 "read once only" report - -
for word in verify report; do
    check "./run help names $word" sh -c "'$root/run' help | grep -q '^  $word '"
done

# The tests that docs/benchmark.md names, one a line: it names some, and each is there.
sed -n '/^| F[0-9]/s/[^a-z0-9_]/\n/gp' "$root/docs/benchmark.md" | grep '_.*_.*_' >promised
check "docs/benchmark.md names tests" test -s promised
empty "the tests that docs/benchmark.md names are there" "$(while read -r name; do
    grep -rqs "void $name(" "$root/tests/unit" || echo "$name"
done <promised)"

# Before anything is measured: a refusal is one line, and measuring would say so first.
refuses "a transfer below a block is refused" 2 "--max-transfer 100 is below the disk's block" \
    bench --profile software --max-transfer 100
refuses "a segment below a block is refused" 2 "--max-segment 1 is below the disk's block" \
    bench --profile dma-page --max-segment 1
refuses "verify refuses it as well" 2 "--max-transfer 511 is below" verify software --max-transfer 511
refuses "a working set above memory is refused by its name" 2 "the working set of 1 PiB" \
    bench --profile kernel --working-set 1024T
refuses "a page of another size is told the two there are" 2 "must be 4K or 16K" \
    bench --profile dma-page --page-size 2K

# ---- targets that are none ----

refuses "a file that does not exist is refused" 1 "does not exist" bench missing.img
refuses "a device that does not exist is refused" 1 "does not exist" bench /dev/lunpath-none
refuses "a name with a line break gives one line" 1 "no?such" bench "no
such"
refuses "a kind of disk that does not exist is refused" 1 "lunpath disks" bench rma:1G
refuses "a disk larger than memory is refused" 2 "memory" bench --disk ram:100T
refuses "a directory is refused" 1 "is a directory" bench "$tmp"
refuses "a character device is refused" 1 "neither a file nor a disk" bench /dev/null
mkfifo fifo
refuses "a FIFO is refused and not waited for" 1 "neither a file nor a disk" bench fifo
: >empty.img
refuses "an empty file is refused" 2 "less than one block" bench --buffered empty.img
refuses "a result that does not exist is refused" 1 "missing.json" report missing.json
echo '{"half":' >half.json
refuses "half a result is refused" 1 "half.json" report half.json
refuses "report does not wait for a FIFO" 1 "nobody writes to it" report fifo
refuses "an empty stdin is no result" 1 "stdin is empty" report -

# ---- reports ----

refuses "a report in a missing directory is refused before the run" 1 "none/x.json" \
    bench --json none/x.json
refuses "a report over a directory is refused" 1 "is a directory" bench --html "$tmp"
refuses "a report over a device is refused" 1 "no regular file" bench --csv /dev/null
check "the device is still there" test -c /dev/null
refuses "two reports in one file are refused" 2 "cannot both go" bench --json x --csv x
truncate -s 16M disk.img
refuses "a report over the target is refused" 2 "which is measured" \
    bench --buffered disk.img --json disk.img
check "no file is left behind" test -z "$(find . -name '*.json.*')"

# shellcheck disable=SC2086  # $short is several words
{
    succeeds "bench measures a profile" bench --profile kernel $short --json a.json --html a.html
    check "the report is on stdout" grep -q kernel out
    check "stderr has a line for each point" grep -q 'kernel READ depth 1, run 1 of 1: .* Gbit/s' err
    escape=$(printf '\033')
    empty "without a terminal nothing is redrawn" "$(grep "$escape" err out)"
    check "the JSON report is whole" grep -q '}' a.json
    check "the HTML report is whole" grep -qi '</html>' a.html
    succeeds "bench writes a report to stdout" bench --profile kernel $short --csv -
    check "then nothing else is there" sh -c 'head -n 1 out | grep -q , && ! grep -vq , out'
    succeeds "report shows a result again" report a.json
    check "the report shows the path" grep -q kernel out
    succeeds "report compares two results" report a.json a.json
    check "both are named" grep -q 'a\.json' out
    check "that they are one is said" grep -q 'one and the same result' out
    "$LUNPATH" report - <a.json >out 2>err
    check "report reads stdin" grep -q LATENCY out
    mv out whole
    succeeds "report shows a file" report a.json
    check "the same as from stdin" cmp -s out whole
    (ulimit -f 4 && "$LUNPATH" report a.json --html limited.html >/dev/null 2>limited.err)
    status=$?
    exits "a report beyond the limit on file sizes fails" 1
    check "and says so" grep -q "ulimit -f" limited.err
    check "no half report is left" test -z "$(find . -name 'limited.html*')"
    succeeds "report renders a result" report a.json --csv b.csv
    check "the rendered file is there" test -s b.csv
    "$LUNPATH" bench --profile kernel $short >/dev/full 2>err
    status=$?
    exits "a report that cannot be written to stdout fails" 1
    check "and says so" grep -q "cannot be written to stdout" err

    # ---- targets that are measured ----

    succeeds "bench reads a file" bench --buffered $short disk.img
    check "only READ was measured" sh -c 'grep -q "READ depth" err && ! grep -q "WRITE depth" err'
    check "the file is as it was" sh -c 'head -c 16777216 /dev/zero | cmp -s - disk.img'
    succeeds "bench writes to an empty file with --destroy" bench --buffered --destroy $short disk.img
    check "READ and WRITE were measured" sh -c 'grep -q "READ depth" err && grep -q "WRITE depth" err'
    check "the file was written to" sh -c '! head -c 16777216 /dev/zero | cmp -s - disk.img'
    run bench "fault:flip=3:ram:32M" $short
    exits "wrong data gives its own status" 3

    # Wrong bytes of dev: no failure where all profiles were run, one where it was asked for.
    run bench --seconds 0.02 --warm-up 0 --runs 1 --depths 8 --working-set 16M \
        --table-entries 257
    exits "the default profiles succeed though dev is wrong" 0
    check "its wrong bytes are shown" grep -q '! WRONG DATA: dev returned' out
    check "also in the last line" grep -q '^WRONG DATA, but only on a path without a guard' out
    run bench --profile dev,kernel --seconds 0.02 --warm-up 0 --runs 1 --depths 8 \
        --working-set 16M --table-entries 257
    exits "dev that was named and is wrong fails" 3

    # ---- verify ----

    thorough="--size 16M --seconds 0.05"
    succeeds "verify of a right profile succeeds" verify software $thorough
    check "it says that all was right" grep -q 'every byte that was checked was right' out
    for phase in "WRITE with FUA" "WRITE ZEROES" DISCARD; do
        check "$phase is looked at through a path that was started again" \
            grep -q "^$phase, through a path that was started again" out
    done
    succeeds "verify writes JSON to stdout" verify kernel $thorough --json -
    check "it is JSON and nothing else" sh -c 'python3 -m json.tool <out >/dev/null'
    check "with its phases" grep -q '"DISCARD"' out
    succeeds "verify writes JSON to a file" verify kernel $thorough --json v.json
    check "then the text is on stdout" grep -q 'checked was right' out
    check "the file is whole" grep -q '"findings": \[\]' v.json
    run verify "fault:flip=50:ram:16M" $thorough --json wrong.json
    exits "wrong data with JSON has its own status" 3
    check "the findings are in the file" grep -q '"fault": "bit flip"' wrong.json
    refuses "a report of verify over its target is refused" 2 "which is measured" \
        verify --buffered disk.img --json disk.img
    "$LUNPATH" verify kernel $thorough >both 2>&1
    check "phases are shown once where stderr goes the same way" \
        test "$(grep -c '^random sizes$' both)" -eq 1
    run verify "fault:misdirected=50:ram:16M" $thorough
    exits "verify of a wrong disk has its own status" 3
    check "it says what kind of wrong" grep -q '^misdirected: block at offset' out
    check "it says where" grep -q '^request READ .* bytes at ' out
    cksum disk.img >before
    succeeds "verify reads a file twice" verify --buffered disk.img $thorough
    check "and leaves it as it was" sh -c 'cksum disk.img | cmp -s - before'
    check "the name that was typed is shown" grep -q 'file:disk.img' out
    succeeds "verify writes to a file with --destroy" verify --buffered --destroy disk.img $thorough
    check "then it is another" sh -c '! cksum disk.img | cmp -s - before'
}

# ---- what is on a file ----

# signed "sentence" "kind" FILE: refused with --destroy, and not a byte of it changed.
signed() {
    before=$(cksum "$3")
    refuses "$1" 1 "$2" bench --buffered --destroy "$3"
    check "it was not changed" test "$before" = "$(cksum "$3")"
    refuses "verify refuses it as well" 1 "$2" verify --buffered --destroy "$3"
}

truncate -s 16M table.img
printf '\000\000\000\000\203\000\000\000\010\000\000\000\000\100\000\000' |
    dd of=table.img bs=1 seek=446 conv=notrunc 2>/dev/null
printf '\125\252' | dd of=table.img bs=1 seek=510 conv=notrunc 2>/dev/null
truncate -s 16M luks.img
printf 'LUKS\272\276\000\001' | dd of=luks.img conv=notrunc 2>/dev/null
signed "a partition table is not overwritten" "a partition table (dos, 16 MiB)" table.img
signed "an encrypted volume is not overwritten" "an encrypted volume (crypto_LUKS" luks.img
if command -v mkfs.ext4 >/dev/null; then
    truncate -s 16M ext4.img
    mkfs.ext4 -q -L "$(printf 'my\033home')" ext4.img
    signed "a file system is not overwritten" 'a file system (ext4, label "my?home", 16 MiB)' ext4.img
    refuses "nor is it behind a fault disk" 1 "a file system (ext4" \
        bench --buffered --destroy fault:flip:file:ext4.img
else
    skip_case "a file system is not overwritten" "mkfs.ext4 is missing"
fi
# shellcheck disable=SC2086
succeeds "a second option allows it" \
    bench --buffered --destroy --even-with-data $short table.img
refuses "the second option alone is refused" 2 "no effect without" bench --even-with-data table.img

# ---- interrupted ----

# interrupt NAME SIGNAL...: starts a run of minutes, waits for its first point, sends the signals.
interrupt() {
    name=$1
    shift
    "$LUNPATH" bench --profile kernel,software --seconds 0.1 --runs 30 --json "$name.json" \
        >"$name.out" 2>"$name.err" &
    pid=$!
    started="$started $pid"
    wait_for grep -q 'Gbit/s' "$name.err"
    for signal in "$@"; do kill -s "$signal" "$pid"; done
    wait "$pid"
    status=$?
}

for signal in INT:130 TERM:143; do
    wanted=${signal#*:} signal=${signal%:*}
    interrupt "$signal" "$signal"
    exits "SIG$signal gives status $wanted" "$wanted"
    check "what was measured is shown" grep -q kernel "$signal.out"
    check "it is marked as incomplete" grep -qi incomplete "$signal.out"
    check "also in the file" grep -q '"incomplete": *true' "$signal.json"
done
check "what was not reached is called that" grep -q 'Not reached before' INT.out
empty "what was not reached has no empty facts" "$(grep -F ': .' INT.out)"
interrupt twice INT TERM
check "the second signal ends it at once" sh -c "[ $status -eq 143 ] || [ $status -eq 130 ]"

# ---- a terminal ----

# on_terminal VARIABLE=VALUE...: all that the terminal gets goes to the file "seen".
on_terminal() {
    # shellcheck disable=SC2086
    env -u NO_COLOR TERM=xterm "$@" script -qec \
        "'$LUNPATH' bench --profile kernel $short" /dev/null >seen 2>&1 </dev/null
}

bold=$(printf '\033[1m') erase=$(printf '\033[K') any=$(printf '\033')
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    on_terminal A=B
    check "a terminal gets a view that is redrawn" grep -qF "$erase" seen
    check "with colours" grep -qF "$bold" seen
    check "and the report" grep -q LATENCY seen
    on_terminal NO_COLOR=1
    check "NO_COLOR leaves the view" grep -qF "$erase" seen
    empty "and takes the colours away" "$(grep -F "$bold" seen)"
    on_terminal TERM=dumb
    check "a dumb terminal gets plain lines" grep -q 'run 1 of 1: .* Gbit/s' seen
    empty "and nothing else" "$(grep -F "$any" seen)"
else
    skip_case "a terminal gets a view that is redrawn" "script is missing"
fi

# ---- what is in use ----

[ "$(id -u)" -eq 0 ] || skip "loop devices and mounts need root"
command -v losetup >/dev/null || skip "losetup is missing"
command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is missing"

loops=''
end() {
    end_status=$?
    cd /
    [ ! -f "$tmp/swap.img" ] || swapoff "$tmp/swap.img" 2>/dev/null
    for place in "$tmp"/at-*; do umount "$place" 2>/dev/null; done
    [ ! -e /dev/mapper/lunpath-test-$$ ] || dmsetup remove lunpath-test-$$
    for loop in $loops; do losetup -d "$loop" 2>/dev/null; done
    (exit "$end_status")
    finish
}
trap end EXIT

# attach FILE [OPTION]: sets loop.
attach() {
    # shellcheck disable=SC2086
    loop=$(losetup -f --show ${2:-} "$1" 2>/dev/null) || skip "losetup cannot attach a file here"
    loops="$loops $loop"
}

# busy "sentence" "part" TARGET: not even the second option helps, and reading still works.
busy() {
    refuses "$1" 1 "$2" bench --buffered --destroy "$3"
    refuses "not even with the second option" 1 "$2" \
        bench --buffered --destroy --even-with-data "$3"
}

attach ext4.img
mounted=$loop
busy "the file behind a loop device is in use" "stands behind the loop device ${loop#/dev/}" ext4.img
signed "a file system on a device is not overwritten" "a file system (ext4" "$loop"
mkdir at-mount
if mount "$mounted" at-mount 2>/dev/null; then
    busy "a mounted device is refused" "is mounted on $tmp/at-mount" "$mounted"
    ln -s "$mounted" link
    busy "also by another name" "is mounted on $tmp/at-mount" "file:link"
    attach ext4.img
    busy "also by another device on the same file" "loop device ${mounted#/dev/}" "$loop"
    # shellcheck disable=SC2086
    succeeds "a mounted device can be read" bench $short "$mounted"
    umount at-mount
    losetup -d "$loop"
    # shellcheck disable=SC2086
    succeeds "it can be destroyed when it is free" \
        bench --destroy --even-with-data $short "$mounted"
else
    skip_case "a mounted device is refused" "mounting is forbidden here"
fi

# All ways to a device: around the page cache, through it and mapped. The device is let go again by
# end(), whatever happens.
truncate -s 24M ways.img
attach ways.img
run verify --destroy --size 16M --seconds 0.05 "$loop"
exits "verify of a loop device succeeds" 0
if grep -q '^direct I/O: skipped' out; then
    skip_case "direct I/O on a loop device" "$(sed -n 's/^direct I.O: skipped, //p' out)"
    writers='buffered mmap'
else
    writers='direct buffered mmap'
fi
for writer in $writers; do
    check "$writer writes a loop device" grep -q "^$writer writes$" out
    for reader in $writers; do
        check "$reader reads what $writer wrote" grep -q "^$reader reads what $writer wrote$" out
    done
done
empty "none of these ways was skipped" "$(grep 'I/O: skipped' out | grep -v ^direct)"
check "every byte was right" grep -q 'every byte that was checked was right' out
cksum ways.img >before
run verify --size 16M --seconds 0.05 "$loop"
exits "verify reads a loop device twice" 0
check "also by mmap" grep -q '^read again by mmap$' out
check "and leaves it as it was" sh -c 'cksum ways.img | cmp -s - before'

mkdir at-full
if mount -t tmpfs -o size=4k none at-full 2>/dev/null; then
    # shellcheck disable=SC2086
    run bench --profile kernel $short --html at-full/x.html
    exits "a full disk for the report fails" 1
    check "the text is shown all the same" grep -q kernel out
    check "no half report is left" test -z "$(ls at-full)"
else
    skip_case "a full disk for the report fails" "mounting is forbidden here"
fi

# Made by hand: not every kernel reads partition tables of loop devices.
truncate -s 16M parts.img
attach parts.img -P
if command -v addpart >/dev/null && addpart "$loop" 1 8 16384 2>/dev/null &&
    mkfs.ext4 -q "${loop}p1" 2>/dev/null && mkdir at-part && mount "${loop}p1" at-part 2>/dev/null; then
    busy "a disk with a mounted partition is refused" "is mounted on $tmp/at-part" "$loop"
    busy "the mounted partition is refused" "is mounted on $tmp/at-part" "${loop}p1"
    addpart "$loop" 2 20000 4000
    mkfs.ext4 -q "${loop}p2"
    signed "another partition is looked at by itself" "a file system (ext4" "${loop}p2"
else
    skip_case "a disk with a mounted partition is refused" "no partitions on loop devices here"
fi

head -c 1048576 /dev/zero >swap.img
chmod 600 swap.img
if mkswap swap.img >/dev/null 2>&1 && swapon swap.img 2>/dev/null; then
    busy "a swap file in use is refused" "is used as swap" swap.img
    swapoff swap.img
    signed "a swap file is not overwritten" "(swap" swap.img
else
    skip_case "a swap file in use is refused" "swapon is forbidden here"
fi

truncate -s 16M held.img
attach held.img
if command -v dmsetup >/dev/null &&
    echo "0 16384 linear $loop 0" | dmsetup create lunpath-test-$$ 2>/dev/null; then
    busy "a device held by device mapper is refused" "is held by dm-" "$loop"
else
    skip_case "a device held by device mapper is refused" "no device mapper here"
fi

# Descriptors that the shell closed must not become the disk's.
# shellcheck disable=SC2086 # several options
"$LUNPATH" bench --profile software,kernel $short >out 2>&- </dev/null
status=$?
exits "a closed stderr does not end up in the data" 0
# shellcheck disable=SC2086 # several options
"$LUNPATH" bench --profile kernel $short 2>err >&- </dev/null
check "a report that cannot be written to a closed stdout is a failure" test "$?" -ne 0

# A driver that dies: the run goes on when that was asked for, and says so when not.
kill_driver() { # ARGUMENT...: kills the driver of a run in the middle; leaves status, out
    "$LUNPATH" bench --profile software --depths 8 --seconds 1 --runs 1 --warm-up 0 \
        --working-set 16M "$@" >out 2>err </dev/null &
    bench=$!
    driver=
    while [ -z "$driver" ] && kill -0 "$bench" 2>/dev/null; do
        driver=$(pgrep -P "$bench" -x lunpath-driver)
    done
    # Until it serves: its sandbox is the last thing that it makes.
    wait_for grep -q '^Seccomp:.*2' "/proc/$driver/status"
    kill -9 "$driver"
    wait "$bench"
    status=$?
}
kill_driver
exits "a killed driver fails the run" 3
check "and its data do not count as verified" sh -c '! grep -q "^software .* yes$" out'
kill_driver --restart-driver
check "a restarted driver goes on with the same data" grep -q "checked was right" out
