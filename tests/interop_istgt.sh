#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Against istgt, the target of Debian's package of this name.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
command -v istgt >/dev/null || skip "istgt is missing (package istgt)"
[ -r /proc/net/tcp ] || skip "/proc/net/tcp is missing"
# shellcheck source=tests/interop/targets.sh
. "$root/tests/interop/targets.sh"

iqn=iqn.2026-01.test:istgt
lun=0
method=None

configure() {
    cat >"$tmp/auth" <<END
[AuthGroup1]
  Auth "joe" "$secret" "nas" "$target_secret"
END
    chmod 600 "$tmp/auth"
    cat >"$tmp/conf" <<END
[Global]
  NodeBase "iqn.2026-01.test"
  PidFile $tmp/pid
  AuthFile $tmp/auth
  MediaDirectory $tmp
  LogFacility "local7"
  Timeout 30
  NopInInterval 20
  DiscoveryAuthMethod None
  MaxSessions 16
  MaxConnections 4
  MaxR2T 32
  MaxOutstandingR2T 16
  DefaultTime2Wait 2
  DefaultTime2Retain 60
  FirstBurstLength 262144
  MaxBurstLength 1048576
  MaxRecvDataSegmentLength 262144
  InitialR2T Yes
  ImmediateData Yes
  DataPDUInOrder Yes
  DataSequenceInOrder Yes
  ErrorRecoveryLevel 0
[UnitControl]
  AuthMethod CHAP Mutual
  AuthGroup AuthGroup1
  Portal UC1 127.0.0.1:$control
  Netmask 127.0.0.1
[PortalGroup1]
  Portal DA1 127.0.0.1:$port
[InitiatorGroup1]
  InitiatorName "ALL"
  Netmask 127.0.0.1
[LogicalUnit1]
  TargetName $iqn
  Mapping PortalGroup1 InitiatorGroup1
  AuthMethod $method
  AuthGroup AuthGroup1
  UseDigest Auto
  UnitType Disk
  LUN0 Storage $tmp/disk 64MB
END
}

target_start() {
    control=$((port + 20000))
    configure
    rm -f "$tmp/pid"
    istgt -D -c "$tmp/conf" -p "$tmp/pid" >"$tmp/istgt" 2>&1 &
    istgt=$!
    started="$started $istgt"
    wait_for target_listens
}

target_luns() { :; }
target_stop() { stop_pid "$istgt"; }

truncate -s 64M "$tmp/disk"
free_port
target_start || skip "istgt does not start here: $(tail -n 1 "$tmp/istgt")"
without_chap
killed_and_restarted
target_stop

method=CHAP
free_port
target_start || fail "istgt starts with CHAP" "$(cat "$tmp/istgt")"
with_chap
target_stop

method="CHAP Mutual"
free_port
target_start || fail "istgt starts with mutual CHAP" "$(cat "$tmp/istgt")"
with_mutual_chap
