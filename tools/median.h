/* The middle of measured values. */
#ifndef PAWL_TOOLS_MEDIAN_H
#define PAWL_TOOLS_MEDIAN_H

/* Sorts n >= 1 values; *spread is (largest - smallest) / median. */
double pawl_median(double *values, int n, double *spread);

#endif
