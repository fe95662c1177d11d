#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The embedded target under other people's initiators: libiscsi's tools and qemu-img.
. "$(dirname "$0")/lib.sh"
[ -r /proc/net/tcp ] || skip "/proc/net/tcp is missing"
# shellcheck disable=SC2034
iqn=iqn.2026-01.org.lunpath:disk lun=0
# shellcheck source=tests/interop/targets.sh
. "$root/tests/interop/targets.sh"

start "$LUNPATH" serve --quiet --thin --listen 127.0.0.1:0 ram:100M ram:16M >"$tmp/serve" 2>&1
server=$!
wait_for grep -q '^ready$' "$tmp/serve" || fail "the target gets ready" "$(cat "$tmp/serve")"
port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$tmp/serve")
url=iscsi://127.0.0.1:$port/$iqn

if command -v iscsi-ls >/dev/null; then
    iscsi-ls -s "iscsi://127.0.0.1:$port/" >"$tmp/out" 2>&1
    check "iscsi-ls finds both LUNs" test "$(grep -c 'Type:DIRECT_ACCESS' "$tmp/out")" -eq 2
    iscsi-inq "$url/0" >"$tmp/out" 2>&1
    check "iscsi-inq reads the INQUIRY data" grep -q 'Vendor:LUNPATH' "$tmp/out"
else
    skip_case "iscsi-ls finds both LUNs" "libiscsi-bin is missing"
fi

# suite NAME: of iscsi-test-cu. The tool counts a test that it skips as passed, so the words count.
suite() {
    iscsi-test-cu --dataloss --allow-sanitize -v -t "$1" "$url/0" >"$tmp/out" 2>&1
    if grep -q '^ *Test: ' "$tmp/out" && ! grep -q '^FAILED' "$tmp/out"; then
        pass "iscsi-test-cu: no test of $1 fails"
    else
        fail "iscsi-test-cu: no test of $1 fails" "$(grep -B3 -A3 '^FAILED' "$tmp/out" | head -40)"
    fi
}

# The suites that take a second or so; docs/iscsi.md tells how to run all of them.
if command -v iscsi-test-cu >/dev/null; then
    for name in CompareAndWrite GetLBAStatus Inquiry Mandatory ModeSense6 NoMedia Prefetch10 \
        PrinReadKeys PrinServiceactionRange ProutRegister ProutReserve ProutPreempt Read10 Read16 \
        ReadCapacity10 ReadCapacity16 ReadOnly ReportSupportedOpcodes Reserve6 TestUnitReady \
        Unmap Verify16 Write10 Write16 WriteSame10 WriteSame16 WriteVerify16; do
        suite "ALL.$name"
    done
    for name in iSCSIcmdsn iSCSIdatasn iSCSIResiduals iSCSITMF; do
        suite "iSCSI.$name"
    done
else
    skip_case "iscsi-test-cu: no test fails" "libiscsi-bin is missing"
fi

if command -v qemu-img >/dev/null && qemu-img --help | grep -qw iscsi; then
    head -c 8M /dev/urandom >"$tmp/image"
    check "qemu-img writes an image" qemu-img convert -n -f raw -O raw "$tmp/image" "$url/1"
    truncate -s 16M "$tmp/image"
    check "qemu-img finds it again" qemu-img compare -f raw -F raw "$tmp/image" "$url/1"
    check "qemu-img bench reads" qemu-img bench -f raw -c 2000 -d 32 -s 4096 "$url/1"
    check "qemu-img bench writes" qemu-img bench -f raw -w -c 2000 -d 32 -s 4096 "$url/0"
else
    skip_case "qemu-img writes an image" "qemu-utils or qemu-block-extra is missing"
fi

check "the target is still there" kill -0 "$server"
kill -TERM "$server"
wait "$server"
check "it ends with status 0 when it is asked to" test $? -eq 0
