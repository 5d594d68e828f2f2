/*
 * One block of a quantized weight type taken apart.  The block falls into groups of
 * consecutive elements; element i of group g stands for the real number
 *
 *	scale[g] * d * q[i] + offset[g]
 *
 * Nothing is lost: d and m are the f16 bits and every integer is as stored, so that packers
 * can keep them apart (d * scale needs 17 bits, more than an f16 holds).
 */
#ifndef PAWL_IR_WEIGHT_BLOCK_H
#define PAWL_IR_WEIGHT_BLOCK_H

#include "ir/dtype.h"

#define PAWL_MAX_WEIGHT_BLOCK 256
#define PAWL_MAX_WEIGHT_GROUPS 16

/* What the types differ in; the formulas are those of docs/arithmetic.md, "Weight types". */
enum pawl_weight_form {
	PAWL_FORM_SCALE,         /* q4_0 q5_0 q8_0: d * q, one group */
	PAWL_FORM_SCALE_OFFSET,  /* q4_1 q5_1: d * q + m, one group */
	PAWL_FORM_SCALES,        /* q6_k: (d * scale[g]) * q */
	PAWL_FORM_SCALES_OFFSETS /* q4_k q5_k: (d * scale[g]) * q - m * least[g] */
};

struct pawl_weight_block {
	enum pawl_weight_form form;
	int n_groups;
	int group;  /* elements per group: 16 or 32 */
	uint16_t d; /* f16 bits */
	uint16_t m; /* f16 bits: the offset, or dmin of the K types; 0 without offset */
	int8_t scale[PAWL_MAX_WEIGHT_GROUPS]; /* K types only */
	int8_t least[PAWL_MAX_WEIGHT_GROUPS]; /* q4_k and q5_k only */
	int8_t q[PAWL_MAX_WEIGHT_BLOCK];      /* the zero point is already subtracted */
};

/* dtype is of kind QUANT; src needs no alignment. */
void pawl_weight_block_unpack(
	enum pawl_dtype dtype, const void *src, struct pawl_weight_block *block);

/* The f32 scale of a group's integers; exact. */
float pawl_weight_scale(const struct pawl_weight_block *block, int group);

/* The f32 offset added to each element of a group, exact; 0 for types without. */
float pawl_weight_offset(const struct pawl_weight_block *block, int group);

static inline bool
pawl_weight_has_offset(const struct pawl_weight_block *block)
{
	return block->form == PAWL_FORM_SCALE_OFFSET || block->form == PAWL_FORM_SCALES_OFFSETS;
}

#endif
