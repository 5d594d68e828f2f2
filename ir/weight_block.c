#include "ir/weight_block.h"

#include "ir/half.h"

#include <string.h>

static uint16_t
read_u16(const uint8_t *src)
{
	return (uint16_t)(src[0] | src[1] << 8);
}

/* n bytes to 2 n integers: the low halves of the bytes first, then the high halves. */
static void
unpack_nibbles(const uint8_t *src, int n, int zero, int8_t *q)
{
	int i;

	for (i = 0; i < n; i++) {
		q[i] = (int8_t)((src[i] & 15) - zero);
		q[n + i] = (int8_t)((src[i] >> 4) - zero);
	}
}

/* q5_0 and q5_1: bit i of four bytes is worth 16 in element i. */
static void
unpack_q5(const uint8_t *bits, const uint8_t *nibbles, int zero, int8_t *q)
{
	uint32_t high;
	int i;

	memcpy(&high, bits, sizeof(high));
	unpack_nibbles(nibbles, 16, zero, q);
	for (i = 0; i < 32; i++)
		q[i] = (int8_t)(q[i] + (int)(high >> i & 1) * 16);
}

/* The twelve bytes of q4_k and q5_k: eight scales and eight minima of six bits. */
static void
unpack_six_bits(const uint8_t *src, struct pawl_weight_block *block)
{
	int i;

	for (i = 0; i < 4; i++) {
		block->scale[i] = (int8_t)(src[i] & 63);
		block->least[i] = (int8_t)(src[4 + i] & 63);
		block->scale[4 + i] = (int8_t)((src[8 + i] & 15) | (src[i] >> 6) << 4);
		block->least[4 + i] = (int8_t)(src[8 + i] >> 4 | (src[4 + i] >> 6) << 4);
	}
}

/* The low four bits of q4_k and q5_k: 128 bytes, 32 of them to two groups. */
static void
unpack_pairs(const uint8_t *src, int8_t *q)
{
	int pair;

	for (pair = 0; pair < 4; pair++, src += 32, q += 64)
		unpack_nibbles(src, 32, 0, q);
}

static void
unpack_q5_k(const uint8_t *src, struct pawl_weight_block *block)
{
	const uint8_t *high = src + 16;
	int8_t *q = block->q;
	int group, i;

	unpack_six_bits(src + 4, block);
	unpack_pairs(src + 48, q);
	for (group = 0; group < 8; group++, q += 32) {
		for (i = 0; i < 32; i++)
			q[i] = (int8_t)(q[i] + (high[i] >> group & 1) * 16);
	}
}

static void
unpack_q6_k(const uint8_t *src, struct pawl_weight_block *block)
{
	const uint8_t *low = src, *high = src + 128;
	int8_t *q = block->q;
	int half, i;

	memcpy(block->scale, src + 192, 16);
	for (half = 0; half < 2; half++, low += 64, high += 32, q += 128) {
		unpack_nibbles(low, 64, 32, q);
		for (i = 0; i < 128; i++)
			q[i] = (int8_t)(q[i] + (high[i % 32] >> i / 32 * 2 & 3) * 16);
	}
}

static void
set_shape(struct pawl_weight_block *block, enum pawl_weight_form form, int n_groups, int group)
{
	block->form = form;
	block->n_groups = n_groups;
	block->group = group;
}

void
pawl_weight_block_unpack(enum pawl_dtype dtype, const void *src, struct pawl_weight_block *block)
{
	const uint8_t *bytes = src;

	block->d = read_u16(bytes);
	block->m = 0;
	if (dtype == PAWL_DTYPE_Q4_0) {
		set_shape(block, PAWL_FORM_SCALE, 1, 32);
		unpack_nibbles(bytes + 2, 16, 8, block->q);
	} else if (dtype == PAWL_DTYPE_Q4_1) {
		set_shape(block, PAWL_FORM_SCALE_OFFSET, 1, 32);
		block->m = read_u16(bytes + 2);
		unpack_nibbles(bytes + 4, 16, 0, block->q);
	} else if (dtype == PAWL_DTYPE_Q5_0) {
		set_shape(block, PAWL_FORM_SCALE, 1, 32);
		unpack_q5(bytes + 2, bytes + 6, 16, block->q);
	} else if (dtype == PAWL_DTYPE_Q5_1) {
		set_shape(block, PAWL_FORM_SCALE_OFFSET, 1, 32);
		block->m = read_u16(bytes + 2);
		unpack_q5(bytes + 4, bytes + 8, 0, block->q);
	} else if (dtype == PAWL_DTYPE_Q8_0) {
		set_shape(block, PAWL_FORM_SCALE, 1, 32);
		memcpy(block->q, bytes + 2, 32);
	} else if (dtype == PAWL_DTYPE_Q4_K) {
		set_shape(block, PAWL_FORM_SCALES_OFFSETS, 8, 32);
		block->m = read_u16(bytes + 2);
		unpack_six_bits(bytes + 4, block);
		unpack_pairs(bytes + 16, block->q);
	} else if (dtype == PAWL_DTYPE_Q5_K) {
		set_shape(block, PAWL_FORM_SCALES_OFFSETS, 8, 32);
		block->m = read_u16(bytes + 2);
		unpack_q5_k(bytes, block);
	} else if (dtype == PAWL_DTYPE_Q6_K) {
		set_shape(block, PAWL_FORM_SCALES, 16, 16);
		block->d = read_u16(bytes + 208);
		unpack_q6_k(bytes, block);
	}
}

float
pawl_weight_scale(const struct pawl_weight_block *block, int group)
{
	float d = pawl_f32_from_f16(block->d);

	if (block->form == PAWL_FORM_SCALES || block->form == PAWL_FORM_SCALES_OFFSETS)
		return d * (float)block->scale[group];
	return d;
}

float
pawl_weight_offset(const struct pawl_weight_block *block, int group)
{
	float m = pawl_f32_from_f16(block->m);

	if (block->form == PAWL_FORM_SCALES_OFFSETS)
		return -(m * (float)block->least[group]);
	return m;
}
