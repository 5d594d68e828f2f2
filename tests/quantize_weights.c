#include "tests/quantize_weights.h"

#include "ir/half.h"
#include "ir/quantize.h"

#include <math.h>
#include <string.h>

static float
store_f16(uint8_t *dst, float x)
{
	uint16_t h = pawl_f16_from_f32(x);

	memcpy(dst, &h, sizeof(h));
	return pawl_f32_from_f16(h);
}

static int
nearest(float x, float step, int least, int most)
{
	float q = step == 0.0f ? 0.0f : rintf(x / step);

	return q < (float)least ? least : q > (float)most ? most : (int)q;
}

static float
largest_magnitude(const float *x, int n)
{
	float most = 0.0f;
	int i;

	for (i = 0; i < n; i++)
		most = fmaxf(most, fabsf(x[i]));
	return most;
}

/* The value of the largest magnitude, sign included. */
static float
extreme(const float *x, int n)
{
	float most = 0.0f;
	int i;

	for (i = 0; i < n; i++)
		most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
	return most;
}

/* Both bounds include 0. */
static void
bounds(const float *x, int n, float *least, float *most)
{
	int i;

	*least = *most = 0.0f;
	for (i = 0; i < n; i++) {
		*least = fminf(*least, x[i]);
		*most = fmaxf(*most, x[i]);
	}
}

static void
pack_nibbles(const int *q, int n, uint8_t *dst)
{
	int i;

	for (i = 0; i < n; i++)
		dst[i] = (uint8_t)((q[i] & 15) | (q[n + i] & 15) << 4);
}

/* q4_0 q4_1 q5_0 q5_1: bits per integer, with or without an offset. */
static void
quantize_32(const float *x, int bits, bool has_offset, uint8_t *dst)
{
	int most = (1 << bits) - 1, zero = has_offset ? 0 : 1 << (bits - 1);
	float least = 0.0f, top, d;
	uint32_t high = 0;
	int q[32];
	int i;

	if (has_offset) {
		bounds(x, 32, &least, &top);
		least = store_f16(dst + 2, least);
		d = store_f16(dst, (top - least) / (float)most);
	} else {
		d = store_f16(dst, extreme(x, 32) / (float)-zero);
	}
	dst += has_offset ? 4 : 2;
	for (i = 0; i < 32; i++) {
		q[i] = nearest(x[i] - least, d, -zero, most - zero) + zero;
		high |= (uint32_t)(q[i] >> 4 & 1) << i;
	}
	if (bits == 5) {
		memcpy(dst, &high, sizeof(high));
		dst += sizeof(high);
	}
	pack_nibbles(q, 16, dst);
}

/* q4_k and q5_k. */
static void
quantize_k(const float *x, int bits, uint8_t *dst)
{
	float steps[8], offsets[8], d, dmin;
	int scale[8], least[8], q[256];
	int g, i;

	for (g = 0; g < 8; g++) {
		float top;

		bounds(x + 32 * g, 32, &offsets[g], &top);
		offsets[g] = -offsets[g];
		steps[g] = (top + offsets[g]) / (float)((1 << bits) - 1);
	}
	d = store_f16(dst, largest_magnitude(steps, 8) / 63.0f);
	dmin = store_f16(dst + 2, largest_magnitude(offsets, 8) / 63.0f);
	memset(dst + 4, 0, 12);
	for (g = 0; g < 8; g++) {
		scale[g] = nearest(steps[g], d, 0, 63);
		least[g] = nearest(offsets[g], dmin, 0, 63);
		if (g < 4) {
			dst[4 + g] |= (uint8_t)scale[g];
			dst[8 + g] |= (uint8_t)least[g];
		} else {
			dst[8 + g] = (uint8_t)((scale[g] & 15) | (least[g] & 15) << 4);
			dst[g] |= (uint8_t)(scale[g] >> 4 << 6);
			dst[4 + g] |= (uint8_t)(least[g] >> 4 << 6);
		}
		for (i = 32 * g; i < 32 * g + 32; i++)
			q[i] = nearest(x[i] + dmin * (float)least[g], d * (float)scale[g], 0,
				(1 << bits) - 1);
	}
	dst += 16;
	if (bits == 5) {
		memset(dst, 0, 32);
		for (i = 0; i < 256; i++)
			dst[i % 32] |= (uint8_t)((q[i] >> 4) << i / 32);
		dst += 32;
	}
	for (g = 0; g < 8; g += 2)
		pack_nibbles(q + 32 * g, 32, dst + 16 * g);
}

static void
quantize_q6_k(const float *x, uint8_t *dst)
{
	float steps[16], d;
	int q[256];
	int g, i;

	for (g = 0; g < 16; g++)
		steps[g] = extreme(x + 16 * g, 16) / -32.0f;
	d = store_f16(dst + 208, largest_magnitude(steps, 16) / 127.0f);
	memset(dst + 128, 0, 64);
	for (g = 0; g < 16; g++) {
		int scale = nearest(steps[g], d, -127, 127);

		dst[192 + g] = (uint8_t)scale;
		for (i = 16 * g; i < 16 * g + 16; i++)
			q[i] = nearest(x[i], d * (float)scale, -32, 31) + 32;
	}
	for (i = 0; i < 256; i++)
		dst[128 + i / 128 * 32 + i % 32] |= (uint8_t)((q[i] >> 4) << 2 * (i % 128 / 32));
	pack_nibbles(q, 64, dst);
	pack_nibbles(q + 128, 64, dst + 64);
}

void
pawl_quantize_weights(enum pawl_dtype dtype, const float *x, int64_t n, void *dst)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(dtype);
	uint8_t *bytes = dst;
	int64_t i;

	if (pawl_can_encode(dtype)) {
		pawl_encode(dtype, x, n, dst);
		return;
	}
	for (i = 0; i < n; i += info->block, bytes += info->block_bytes) {
		if (dtype == PAWL_DTYPE_Q4_0)
			quantize_32(x + i, 4, false, bytes);
		else if (dtype == PAWL_DTYPE_Q4_1)
			quantize_32(x + i, 4, true, bytes);
		else if (dtype == PAWL_DTYPE_Q5_0)
			quantize_32(x + i, 5, false, bytes);
		else if (dtype == PAWL_DTYPE_Q5_1)
			quantize_32(x + i, 5, true, bytes);
		else if (dtype == PAWL_DTYPE_Q4_K)
			quantize_k(x + i, 4, bytes);
		else if (dtype == PAWL_DTYPE_Q5_K)
			quantize_k(x + i, 5, bytes);
		else if (dtype == PAWL_DTYPE_Q6_K)
			quantize_q6_k(x + i, bytes);
	}
}
