/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_MEDIAN_H
#define BASE_MEDIAN_H

#include <stddef.h>

/* The middle value, or the mean of the two in the middle; 0 of none. Sorts the values. */
double median_of(double *values, size_t count);

#endif
