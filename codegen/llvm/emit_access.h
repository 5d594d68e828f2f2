/*
 * Elements of accesses (passes/step.h): where they lie, and 16 of them at once.
 *
 * A value is <16 x f32> for the float types and <16 x iN> for the integer types.
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_ACCESS_H
#define PAWL_CODEGEN_LLVM_EMIT_ACCESS_H

#include "codegen/llvm/emit.h"

/* The type of one element of a plain dtype as a value. */
LLVMTypeRef pawl_emit_element(struct pawl_emit *e, enum pawl_dtype dtype);

/* The elements at a position; rank is that of the dims that the op sees. */
LLVMValueRef pawl_emit_load(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at);
/* The same where any index may be one a lane, and no lane is added to the last. */
LLVMValueRef pawl_emit_load_lanes(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at);
/* One element as a scalar. */
LLVMValueRef pawl_emit_load_element(
	struct pawl_emit *e, const struct pawl_access *access, int rank, const LLVMValueRef *index);
/* Stores a value of element type `from` rounded to the access's type. */
void pawl_emit_store(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const struct pawl_position *at, enum pawl_dtype from, LLVMValueRef value);

/*
 * Address of the first element of a row (the last index is taken as 0), for rows that are
 * dense: consecutive elements one after the other.  Blocked types too.
 */
bool pawl_access_is_dense(const struct pawl_access *access, int rank);
LLVMValueRef pawl_emit_row_address(
	struct pawl_emit *e, const struct pawl_access *access, int rank, const LLVMValueRef *index);

/*
 * Where the block of q8_0 lies that starts at an index: a scale (f16) and 32 bytes that are `step` bytes
 * apart.  The last index is a multiple of 32.
 */
struct pawl_block_place {
	LLVMValueRef scale, q;
	int64_t step;
	LLVMValueRef is_row; /* i1: whether there is one, NULL: yes */
};
void pawl_emit_find_block(struct pawl_emit *e, const struct pawl_access *access, int rank,
	const LLVMValueRef *index, struct pawl_block_place *out);

/* n values of a plain dtype at an address, one after the other, as the type of a value. */
LLVMValueRef pawl_emit_load_dense(
	struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef address, LLVMValueRef mask);
/* The one value at an address, as a scalar. */
LLVMValueRef pawl_emit_load_one(struct pawl_emit *e, enum pawl_dtype dtype, LLVMValueRef address);

/* A value or scalar of one plain dtype as another: nearest even, integers saturated from floats. */
LLVMValueRef pawl_emit_convert(
	struct pawl_emit *e, LLVMValueRef value, enum pawl_dtype from, enum pawl_dtype to);

#endif
