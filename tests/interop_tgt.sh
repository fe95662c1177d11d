#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Against tgt, the target of Debian's package of this name.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
command -v tgtd >/dev/null || skip "tgtd is missing (package tgt)"
[ -r /proc/net/tcp ] || skip "/proc/net/tcp is missing"
# shellcheck source=tests/interop/targets.sh
. "$root/tests/interop/targets.sh"

iqn=iqn.2026-01.test:tgt
lun=1
chap=false
TGT_IPC_SOCKET=$tmp/ipc
export TGT_IPC_SOCKET

admin() { tgtadm -C 0 --lld iscsi "$@" >>"$tmp/admin" 2>&1; }

configure() {
    admin --op new --mode target --tid 1 -T "$iqn" &&
        admin --op new --mode logicalunit --tid 1 --lun 1 -b "$tmp/disk" || return 1
    if $chap; then
        admin --op new --mode account --user joe --password "$secret" &&
            admin --op bind --mode account --tid 1 --user joe &&
            admin --op new --mode account --user nas --password "$target_secret" &&
            admin --op bind --mode account --tid 1 --user nas --outgoing || return 1
    fi
    # Digests are taken when they are asked for.
    admin --op update --mode target --tid 1 -n HeaderDigest -v CRC32C,None &&
        admin --op update --mode target --tid 1 -n DataDigest -v CRC32C,None &&
        admin --op bind --mode target --tid 1 -I ALL
}

target_start() {
    rm -f "$tmp"/ipc*
    tgtd -f -C 0 --iscsi portal="127.0.0.1:$port" >"$tmp/tgtd" 2>&1 &
    tgtd=$!
    started="$started $tgtd"
    wait_for admin --op show --mode target && wait_for target_listens && configure
}

target_luns() {
    check "LUN 0 is listed as what it is" grep -q "^LUN 0: storage array controller" "$tmp/out"
}

target_stop() { stop_pid "$tgtd"; }

truncate -s 64M "$tmp/disk"
free_port
target_start || skip "tgtd does not start here: $(tail -n 1 "$tmp/tgtd")"
without_chap
killed_and_restarted
target_stop

chap=true
free_port
target_start || fail "tgtd starts with CHAP" "$(cat "$tmp/tgtd" "$tmp/admin")"
with_chap
with_mutual_chap
