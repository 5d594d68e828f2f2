/* What differs between the versions of LLVM that Pawl builds with, 19 and later. */
#ifndef PAWL_CODEGEN_LLVM_COMPAT_H
#define PAWL_CODEGEN_LLVM_COMPAT_H

#include "codegen/llvm/emit.h"

/*
 * Calls llvm.masked.load, store, gather or scatter, of n_args operands.  The intrinsics take the
 * alignment as operand align_at up to LLVM 21 and not at all from 22 on.
 */
LLVMValueRef pawl_compat_masked(struct pawl_emit *e, const char *name, LLVMTypeRef value,
	LLVMTypeRef address, LLVMValueRef *args, unsigned n_args, unsigned align_at,
	unsigned align);

/*
 * Turns masked stores of one lane that is known into plain ones.  Call it after the last pass:
 * for AVX-512, LLVM 22 stores such a lane of a truncated vector as wide as it was before, over
 * its neighbour (llvm/llvm-project issue 179489).
 */
void pawl_compat_mend_stores(struct pawl_emit *e);

#endif
