/*
 * Operations on a row of n >= 1 f32 values in the order of docs/arithmetic.md, "Rows": 16
 * strided lanes, then the tree 8, 4, 2, 1.  To be called in the environment of ir/fpenv.h.
 * Results may overwrite x (y == x).
 */
#ifndef PAWL_IR_ROWOPS_H
#define PAWL_IR_ROWOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/eval_consts.h"

/*
 * The two halves of a reduction, for callers that keep lanes of their own: element i of a row
 * belongs to lane i mod PAWL_LANES.  Both destroy the lanes.
 */
float pawl_lanes_sum(float lanes[PAWL_LANES]);
float pawl_lanes_max(float lanes[PAWL_LANES]);

float pawl_row_sum(const float *x, int64_t n);
float pawl_row_sum_squares(const float *x, int64_t n);
/* Lane by lane and then in the tree max(kept, next) of ir/scalar.def, which may drop a NaN. */
float pawl_row_max(const float *x, int64_t n);

void pawl_row_rms_norm(const float *x, const float *w, int64_t n, float eps, float *y);
void pawl_row_layer_norm(
	const float *x, const float *w, const float *b, int64_t n, float eps, float *y);

/* A row of -inf gives zeros; a NaN or +inf anywhere makes the whole row NaN. */
void pawl_row_softmax(const float *x, int64_t n, float *y);

/* The lowest index of the largest value; -1 when a NaN is among them. */
int64_t pawl_row_argmax(const float *x, int64_t n);

/* Rotates (x0, x1) by the angle whose cosine and sine are c and s; y may be x. */
void pawl_rope_pair(float c, float s, const float x[2], float y[2]);
/* The first `width` elements of x turned in place, in adjacent pairs or in halves; tables of width. */
void pawl_rope_vector(bool adjacent, int64_t width, const float *c, const float *s, float *x);

#endif
