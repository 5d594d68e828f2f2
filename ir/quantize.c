#include "ir/quantize.h"

#include "ir/eval_consts.h"
#include "ir/half.h"

#include <math.h>
#include <string.h>

#define BLOCK 32
#define NOT_FINITE 0x7f800000u
#define QUIET_NAN 0x7fc00000u

/* A block to integers |q| <= most; returns the scale d, and in *sum that of the integers. */
static float
quantize_block(const float *x, float most, int32_t *q, int32_t *sum)
{
	uint32_t amax_bits = 0;
	float amax, inverse;
	int i;

	for (i = 0; i < BLOCK; i++) {
		uint32_t bits = pawl_f32_bits(x[i]) & 0x7fffffff;

		amax_bits = bits > amax_bits ? bits : amax_bits;
	}
	amax = pawl_f32_from_bits(amax_bits);
	*sum = 0;
	if (amax_bits >= NOT_FINITE || amax_bits < pawl_f32_bits(PAWL_ACT_LEAST)) {
		memset(q, 0, BLOCK * sizeof(*q));
		return amax_bits >= NOT_FINITE ? pawl_f32_from_bits(QUIET_NAN) : 0.0f;
	}
	inverse = most / amax;
	for (i = 0; i < BLOCK; i++) {
		q[i] = (int32_t)rintf(x[i] * inverse);
		*sum += q[i];
	}
	return amax / most;
}

void
pawl_quantize_a16(const float *x, int64_t n, struct pawl_block_a16 *blocks)
{
	int32_t q[BLOCK];
	int64_t b;
	int i;

	for (b = 0; b < n / BLOCK; b++) {
		blocks[b].d = quantize_block(x + b * BLOCK, PAWL_A16_MOST, q, &blocks[b].sum);
		for (i = 0; i < BLOCK; i++) {
			/* Floor: biased so that the shifted number is not negative. */
			int32_t hi = ((q[i] + 64 + (1 << 15)) >> 7) - (1 << 8);

			blocks[b].hi[i] = (int8_t)hi;
			blocks[b].lo[i] = (int8_t)(q[i] - 128 * hi);
		}
	}
}

void
pawl_quantize_a8(const float *x, int64_t n, struct pawl_block_a8 *blocks)
{
	int32_t q[BLOCK];
	int64_t b;
	int i;

	for (b = 0; b < n / BLOCK; b++) {
		blocks[b].d = quantize_block(x + b * BLOCK, PAWL_A8_MOST, q, &blocks[b].sum);
		for (i = 0; i < BLOCK; i++)
			blocks[b].q[i] = (int8_t)q[i];
	}
}

static void
encode_q8_0(const float *x, int64_t n, uint8_t *dst)
{
	int32_t q[BLOCK], sum;
	int64_t b;
	int i;

	for (b = 0; b < n / BLOCK; b++, dst += 2 + BLOCK) {
		uint16_t d =
			pawl_f16_from_f32(quantize_block(x + b * BLOCK, PAWL_A8_MOST, q, &sum));

		memcpy(dst, &d, sizeof(d));
		for (i = 0; i < BLOCK; i++)
			dst[2 + i] = (uint8_t)q[i];
	}
}

bool
pawl_can_encode(enum pawl_dtype dtype)
{
	return pawl_dtype_is_float(dtype) || dtype == PAWL_DTYPE_Q8_0 ||
	       pawl_dtype_info(dtype)->kind == PAWL_KIND_ACT;
}

void
pawl_encode(enum pawl_dtype dtype, const float *x, int64_t n, void *dst)
{
	uint16_t *halves = dst;
	int64_t i;

	if (dtype == PAWL_DTYPE_F32) {
		memcpy(dst, x, (size_t)n * sizeof(*x));
	} else if (dtype == PAWL_DTYPE_F16) {
		for (i = 0; i < n; i++)
			halves[i] = pawl_f16_from_f32(x[i]);
	} else if (dtype == PAWL_DTYPE_BF16) {
		for (i = 0; i < n; i++)
			halves[i] = pawl_bf16_from_f32(x[i]);
	} else if (dtype == PAWL_DTYPE_Q8_0) {
		encode_q8_0(x, n, dst);
	} else if (dtype == PAWL_DTYPE_A16) {
		pawl_quantize_a16(x, n, dst);
	} else if (dtype == PAWL_DTYPE_A8) {
		pawl_quantize_a8(x, n, dst);
	}
}
