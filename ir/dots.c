#include "ir/dots.h"

#include "ir/decode.h"
#include "ir/weight_block.h"

#include <math.h>

#define BLOCK 32

/* A block of activations of either type with its integers widened. */
struct activations {
	float d;
	int32_t sum;
	int16_t q[BLOCK];
};

typedef void widen_fn(const void *x, int64_t index, struct activations *wide);

static void
widen_a16(const void *x, int64_t index, struct activations *wide)
{
	const struct pawl_block_a16 *block = (const struct pawl_block_a16 *)x + index;
	int i;

	wide->d = block->d;
	wide->sum = block->sum;
	for (i = 0; i < BLOCK; i++)
		wide->q[i] = (int16_t)(128 * block->hi[i] + block->lo[i]);
}

static void
widen_a8(const void *x, int64_t index, struct activations *wide)
{
	const struct pawl_block_a8 *block = (const struct pawl_block_a8 *)x + index;
	int i;

	wide->d = block->d;
	wide->sum = block->sum;
	for (i = 0; i < BLOCK; i++)
		wide->q[i] = (int16_t)block->q[i];
}

static int32_t
dot_16(const int8_t *w, const int16_t *q)
{
	int32_t sum = 0;
	int i;

	for (i = 0; i < 16; i++)
		sum += w[i] * q[i];
	return sum;
}

/* acc plus the product of 32 activations with the groups of weights that they meet. */
static float
accumulate(const struct pawl_weight_block *w, int first, const struct activations *x, float acc)
{
	int i;

	for (i = 0; i < BLOCK; i += w->group) {
		int group = (first + i) / w->group;
		int32_t s = dot_16(w->q + first + i, x->q + i);

		if (w->group == BLOCK)
			s += dot_16(w->q + first + 16, x->q + 16);
		acc = fmaf(pawl_weight_scale(w, group) * x->d, (float)s, acc);
		if (pawl_weight_has_offset(w))
			acc = fmaf(pawl_weight_offset(w, group), x->d * (float)x->sum, acc);
	}
	return acc;
}

static float
dot_quantized(enum pawl_dtype w_dtype, const uint8_t *w, widen_fn *widen, const void *x, int64_t k)
{
	const struct pawl_dtype_info *info = pawl_dtype_info(w_dtype);
	struct pawl_weight_block block;
	struct activations wide;
	float acc = 0.0f;
	int64_t done;
	int first;

	for (done = 0; done < k; done += info->block, w += info->block_bytes) {
		pawl_weight_block_unpack(w_dtype, w, &block);
		for (first = 0; first < info->block; first += BLOCK) {
			widen(x, (done + first) / BLOCK, &wide);
			acc = accumulate(&block, first, &wide, acc);
		}
	}
	return acc;
}

float
pawl_dot_a16(enum pawl_dtype w_dtype, const void *w, const struct pawl_block_a16 *x, int64_t k)
{
	return dot_quantized(w_dtype, w, widen_a16, x, k);
}

float
pawl_dot_a8(enum pawl_dtype w_dtype, const void *w, const struct pawl_block_a8 *x, int64_t k)
{
	return dot_quantized(w_dtype, w, widen_a8, x, k);
}

float
pawl_dot_float(enum pawl_dtype w_dtype, const void *w, const float *x, int64_t k)
{
	const uint8_t *src = w;
	float piece[256];
	float acc = 0.0f;
	int64_t done, count, i;

	for (done = 0; done < k; done += count) {
		count = k - done < 256 ? k - done : 256;
		pawl_decode_f32(w_dtype, src + pawl_dtype_bytes(w_dtype, done), count, piece);
		for (i = 0; i < count; i++)
			acc = fmaf(piece[i], x[done + i], acc);
	}
	return acc;
}
