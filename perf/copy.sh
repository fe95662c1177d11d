#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# How near a path that has to copy every byte once comes to one memcpy over the same bytes:
# 1 MiB blocks, one queue, mean over depths 4 to 128.
. "$(dirname "$0")/lib.sh"

round() {
    bench copy --profile software,kernel --block 1M --queues 1 --depths 4,8,16,32,64,128
}

rounds
table <<'END'
software READ, of one memcpy pass  | >= 0.90 | copy.mean("software", "read") / copy.limits["memcpy_gbit_per_s"]
software WRITE, of one memcpy pass | >= 0.90 | copy.mean("software", "write") / copy.limits["memcpy_gbit_per_s"]
kernel READ, of one memcpy pass    | >= 0.95 | copy.mean("kernel", "read") / copy.limits["memcpy_gbit_per_s"]
kernel WRITE, of one memcpy pass   | >= 0.95 | copy.mean("kernel", "write") / copy.limits["memcpy_gbit_per_s"]
software READ, of the best copy    | -       | copy.mean("software", "read") / copy.limits["copy_gbit_per_s"]
software WRITE, of the best copy   | -       | copy.mean("software", "write") / copy.limits["copy_gbit_per_s"]
one memcpy pass, Gbit/s            | -       | copy.limits["memcpy_gbit_per_s"]
END
