/* The middle of measured values. */
#ifndef PAWL_TOOLS_MEDIAN_H
#define PAWL_TOOLS_MEDIAN_H

#include <stdint.h>

/* Sorts n >= 1 values; *spread is (largest - smallest) / median. */
double pawl_median(double *values, int n, double *spread);

enum { PAWL_SPREAD_BYTES = 16 };

/* Half of the range of n values, "12.3%" with so many digits behind the point; "-" for less than two. */
const char *pawl_spread_text(double spread, int64_t n, int digits, char out[PAWL_SPREAD_BYTES]);

#endif
