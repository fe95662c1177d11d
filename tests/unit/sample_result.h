/* SPDX-License-Identifier: BSD-2-Clause */
/* A result made up for tests. Its figures were never measured and belong in no document. */
#ifndef TESTS_SAMPLE_RESULT_H
#define TESTS_SAMPLE_RESULT_H

#include "bench/result.h"

/* Five profiles, READ and WRITE, depths 1 to 128, three runs each; `dev` has wrong data. */
void sample_result(struct result *r);

/* One target at one depth, READ only: a preset. */
void sample_preset(struct result *r);

/* Gives every measured point new runs around its figure, with that relative standard deviation, and
 * takes their median. The same seed gives the same runs. */
void sample_noise(struct result *r, unsigned runs, double noise, uint64_t seed);

/* Multiplies every figure. */
void sample_scale(struct result *r, double factor);

#endif
