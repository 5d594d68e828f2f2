/*
 * Results of docs/arithmetic.md computed by tests/data/make_arithmetic_cases.py in exact
 * rational numbers.  f32 results are bit patterns.
 */
#ifndef PAWL_TESTS_ARITHMETIC_CASES_H
#define PAWL_TESTS_ARITHMETIC_CASES_H

#include "ir/dtype.h"

#define PAWL_N_BLOCK_CASES 8
#define PAWL_N_FUNCTION_CASES 69
#define PAWL_ROW_CASE_N 37
#define PAWL_ATTEND_CASE_N 300
#define PAWL_ATTEND_CASE_FIRST 69
#define PAWL_ATTEND_CASE_WIDTH 8

/* The next number of a sequence over [-4, 4): multiples of 2^-21. */
static inline float
pawl_case_value(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)((int32_t)(*state >> 8) - (1 << 23)) * 0x1p-21f;
}

/* A row of weights; its dot products are with n numbers of the sequence seed. */
struct pawl_block_case {
	enum pawl_dtype dtype;
	int n;
	const uint8_t *bytes;
	const int64_t *values; /* times 2^24 */
	uint32_t seed;
	uint32_t dot_a16, dot_a8;
};

extern const struct pawl_block_case pawl_block_cases[PAWL_N_BLOCK_CASES];

struct pawl_function_case {
	uint32_t x, exp, sigmoid, silu, tanh, gelu_tanh;
};

extern const struct pawl_function_case pawl_function_cases[PAWL_N_FUNCTION_CASES];

/* FNV-1a over the bit patterns of exp(15 * v) for 8192 numbers v of sequence 8. */
extern const uint32_t pawl_exp_fingerprint;

/*
 * x, w, b: in turn PAWL_ROW_CASE_N numbers of sequence 55; eps 1e-5f.  attend: scores, then
 * the rows of values, of sequence 77; the first position is PAWL_ATTEND_CASE_FIRST.
 */
struct pawl_row_case {
	uint32_t sum, sum_squares;
	uint32_t rms_norm[PAWL_ROW_CASE_N];
	uint32_t layer_norm[PAWL_ROW_CASE_N];
	uint32_t softmax[PAWL_ROW_CASE_N];
	uint32_t attend[PAWL_ATTEND_CASE_WIDTH];
};

extern const struct pawl_row_case pawl_row_case;

#endif
