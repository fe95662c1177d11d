#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The measuring tool itself against fio: the same file on tmpfs, the same engine, block, depth and
# CPU. What differs is then the tool. fio is not installed by this script.
. "$(dirname "$0")/lib.sh"

command -v fio >/dev/null || die "fio is missing; on Debian: sudo apt-get install fio"
first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
on="taskset -c $first"    # both tools on one and the same CPU

megabytes=512
ramp=0.2
[ -z "$smoke" ] || { megabytes=16; ramp=0; }

file=/dev/shm/lunpath-peers.$$
trap 'rm -rf "$tmp" "$file"' EXIT
dd if=/dev/urandom of="$file" bs=1M count=$megabytes status=none ||
    die "/dev/shm has no $megabytes MiB left"
direct=1
buffered=''
if ! dd if="$file" of=/dev/null bs=4k count=1 iflag=direct status=none 2>/dev/null; then
    direct=0    # tmpfs knows O_DIRECT from Linux 6.6 on
    buffered=--buffered
fi

# fio_read LABEL ENGINE PATTERN BLOCK DEPTH
fio_read() {
    $on fio --name=peer --filename="$file" --direct=$direct --ioengine="$2" --rw="$3" --bs="$4" \
        --iodepth="$5" --size=${megabytes}M --time_based --ramp_time=$ramp --runtime="$seconds" \
        --output-format=json --output="$tmp/$1.$round.json" >"$tmp/log" 2>&1 ||
        { cat "$tmp/log" >&2; die "fio $* failed"; }
}

# shellcheck disable=SC2086  # options
round() {
    small="--pattern random --block 4K --direction read $buffered"
    bench uring $small --engine uring --depths 32 "$file"
    fio_read fio_uring io_uring randread 4k 32
    bench threads $small --engine threads --depths 1,32 "$file"
    fio_read fio_threads posixaio randread 4k 32
    fio_read fio_psync psync randread 4k 1
    bench large --engine uring --block 1M --depths 8 --direction read $buffered "$file"
    fio_read fio_large io_uring read 1m 8
}

rounds
table <<'END'
io_uring, 4 KiB random, depth 32, of fio         | >= 1.00 | uring.gbit(None, "read", 32) / fio_uring.gbit("read")
io_uring, 1 MiB sequential, depth 8, of fio      | >= 1.00 | large.gbit(None, "read", 8) / fio_large.gbit("read")
threads, 4 KiB, depth 32, of fio's posixaio      | >= 1.00 | threads.gbit(None, "read", 32) / fio_threads.gbit("read")
threads, 4 KiB, depth 1, of fio's psync          | -       | threads.gbit(None, "read", 1) / fio_psync.gbit("read")
threads of io_uring, 4 KiB, depth 32             | -       | threads.gbit(None, "read", 32) / uring.gbit(None, "read", 32)
END
