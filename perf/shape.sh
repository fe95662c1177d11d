#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The shape of the published figures: one page a task far below one block a task, and that below
# software I/O. Ratios only: the published ones come from other hardware (data/published.json).
. "$(dirname "$0")/lib.sh"

round() {
    bench shape --profile software,dma-page,dma-block,dev,kernel --block 1M --queues 1 \
        --depths 1,4,8,16,32,64,128
}

rounds
for direction in read write; do
    cat <<END
$direction: dma-page of dma-block | <= 0.50 | shape.mean("dma-page", "$direction") / shape.mean("dma-block", "$direction")
$direction: dma-block of software | <= 0.90 | shape.mean("dma-block", "$direction") / shape.mean("software", "$direction")
$direction: dma-page of dev       | <= 1.00 | shape.mean("dma-page", "$direction") / shape.mean("dev", "$direction")
$direction: software of kernel    | -       | shape.mean("software", "$direction") / shape.mean("kernel", "$direction")
$direction: software, depth 1 of the mean | - | shape.gbit("software", "$direction", 1) / shape.mean("software", "$direction")
END
done | table
