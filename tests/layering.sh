#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Who may include whom. Under src/, a folder sees itself, the folders before it in `order`, the
# public headers, the C library and the third-party headers listed here; nothing else.
. "$(dirname "$0")/lib.sh"

order='base scsi iscsi net initiator disk target host bench app'

# Earlier in the order, but still no business of theirs.
forbidden='
target initiator
host   iscsi
host   initiator
host   target
bench  iscsi
bench  target
'

# Third-party headers in portable files, and the folders that may include them.
third_party='
jansson.h     bench app
isa-l.h       base
isa-l/crc.h   base
nettle/.*     base iscsi
microhttpd.h  app
immintrin.h   base
'

# C17 and POSIX, less what macOS has not (threads.h, uchar.h). Whatever else the system offers
# belongs in a file named *_linux.c (or .h).
libc='assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath
time wchar wctype arpa/inet dirent dlfcn fcntl fnmatch getopt glob grp iconv langinfo
net/if netdb netinet/in netinet/tcp poll pthread pwd regex sched semaphore spawn strings
sys/ipc sys/mman sys/resource sys/select sys/shm sys/socket sys/stat sys/statvfs sys/time
sys/times sys/types sys/uio sys/un sys/utsname sys/wait syslog termios unistd'

# violations TREE: one line for each include that breaks a rule.
violations() {
    (cd "$1" && find include src -name '*.[ch]' 2>/dev/null | sort |
        xargs grep -EHn '^[[:space:]]*#[[:space:]]*include' /dev/null) |
        awk -v order="$order" -v forbidden="$forbidden" -v third="$third_party" -v libc="$libc" '
        BEGIN {
            n = split(order, name, " ")
            for (i = 1; i <= n; i++) rank[name[i]] = i
            n = split(forbidden, word, " ")
            for (i = 1; i < n; i += 2) no[word[i], word[i + 1]] = 1
            rows = split(third, row, "\n")
            n = split(libc, word, " ")
            for (i = 1; i <= n; i++) std[word[i] ".h"] = 1
        }
        function allowed_third_party(header, folder,    i, f, n, k) {
            for (i = 1; i <= rows; i++) {
                n = split(row[i], f, " ")
                if (n == 0 || header !~ ("^" f[1] "$")) continue
                for (k = 2; k <= n; k++) if (f[k] == folder) return 1
            }
            return 0
        }
        {
            split($0, at, ":")
            split(at[1], part, "/")
            folder = part[1] == "src" ? part[2] : "include"
            linux = at[1] ~ /_linux\.[ch]$/
            quoted = match($0, /"[^"]*"/)
            if (!quoted && !match($0, /<[^>]*>/)) next
            header = substr($0, RSTART + 1, RLENGTH - 2)
            split(header, part, "/")
            why = ""

            if (quoted && folder == "include")
                why = "a public header includes only <lunpath/...> and the C library"
            else if (quoted && !(folder in rank))
                why = "src/" folder " is not in the layering order"
            else if (quoted && header !~ /\//)
                why = ""    # a header beside the file
            else if (quoted && !(part[1] in rank))
                why = part[1] "/ is not a folder of src"
            else if (quoted && rank[part[1]] > rank[folder])
                why = folder " lies below " part[1]
            else if (quoted && (folder, part[1]) in no)
                why = folder " must not know " part[1]
            else if (quoted || header ~ /^lunpath\// || header in std)
                why = ""
            else if (header == "cmocka.h")
                why = "cmocka belongs in tests"
            else if (folder == "include")
                why = "a public header includes only <lunpath/...> and the C library"
            else if (!linux && !allowed_third_party(header, folder))
                why = "not portable, or not listed in tests/layering.sh for " folder

            if (why != "") print at[1] ":" at[2] ": " header ": " why
        }'
}

layers=$(sed -n "/^layers = \[/,/^]/s/^  '\(.*\)',\$/\1/p" "$root/meson.build" | tr '\n' ' ')
[ "$layers" != "$order " ] || layers=''
empty "the build has the folders in the same order" "$layers"
empty "every folder includes only what lies before it" "$(violations "$root")"

# A check that cannot fail proves nothing, so show it trees with one bad line each.
rejects() {
    rm -rf "$tmp/tree"
    mkdir -p "$tmp/tree/$(dirname "$2")"
    echo "#include $3" >"$tmp/tree/$2"
    if [ -n "$(violations "$tmp/tree")" ]; then pass "rejected: $1"; else fail "rejected: $1"; fi
}

accepts() {
    rm -rf "$tmp/tree"
    mkdir -p "$tmp/tree/$(dirname "$2")"
    echo "#include $3" >"$tmp/tree/$2"
    empty "accepted: $1" "$(violations "$tmp/tree")"
}

rejects "a lower folder that includes a higher one" src/base/a.c '"disk/disk.h"'
rejects "a host that knows the target" src/host/a.c '"target/target.h"'
rejects "a benchmark that knows iSCSI" src/bench/a.c '"iscsi/pdu.h"'
rejects "a target that knows the initiator" src/target/a.c '"initiator/session.h"'
rejects "a folder outside the order" src/misc/a.c '"base/clock.h"'
rejects "io_uring in a portable file" src/net/poll.c '<liburing.h>'
rejects "a kernel header in a portable file" src/host/fuse.c '<linux/fuse.h>'
rejects "epoll in a portable file" src/net/poll.c '<sys/epoll.h>'
rejects "JSON in the data path" src/disk/ram.c '<jansson.h>'
rejects "cmocka in the program" src/base/a_linux.c '<cmocka.h>'
rejects "a public header that shows an internal one" include/lunpath/disk.h '"base/clock.h"'
accepts "io_uring in a Linux file" src/net/uring_linux.c '<liburing.h>'
accepts "a higher folder that includes a lower one" src/app/main.c '"bench/report.h"'
accepts "the logical unit that sees the disk interface" src/scsi/lu.c '<lunpath/disk.h>'

linux_ifdefs=$(cd "$root" && grep -rEn '^[[:space:]]*#.*__linux__' src include --include='*.[ch]' |
    grep -v '_linux\.[ch]:')
empty "a port is a file, not an #ifdef" "$linux_ifdefs"
