/*
 * Rotary angles, evaluated in f64 by own code so that every machine fills the same tables:
 * only IEEE f64 + - * / and fma, no libm function.  Rounding to nearest is required;
 * the environment of ir/fpenv.h is allowed but not needed.
 */
#ifndef PAWL_IR_TRIG_H
#define PAWL_IR_TRIG_H

#include <stdint.h>

/* The largest |angle|; beyond it (and for NaN) both results are NaN. */
#define PAWL_TRIG_MOST 0x1p40

/* Sine and cosine of an angle in radians, within 2e-16 (absolute). */
void pawl_sincos(double angle, double *sine, double *cosine);

/*
 * base^(-2 pair / width): the rotary frequency of pair 0 .. width / 2 - 1 for a base in
 * [1, 1e300]; exactly 1 for pair 0; relative error below 1e-14 for bases up to 1e9.
 */
double pawl_rope_frequency(double base, int64_t pair, int64_t width);

/*
 * Row of a token: c[i] and s[i] are cosine and sine of position * frequency[i] (one f64
 * product, |position| <= 2^53), rounded to f32 once.
 */
void pawl_rope_row(int64_t position, const double *frequency, int64_t n, float *c, float *s);

#endif
