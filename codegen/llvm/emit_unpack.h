/* A block of packed weights (codegen/pack.h), 16 rows by 32 columns, in registers. */
#ifndef PAWL_CODEGEN_LLVM_EMIT_UNPACK_H
#define PAWL_CODEGEN_LLVM_EMIT_UNPACK_H

#include "codegen/llvm/emit.h"
#include "codegen/pack.h"

/* A weight is scale * (w - z) + offset; scale[1] is of columns 16-31 where the type has two. */
struct pawl_unpacked {
	LLVMValueRef vectors[8];       /* <64 x i8> of the integers w, see below */
	LLVMValueRef scale[2], offset; /* <16 x f32>, one row a lane; offset NULL: none */
	bool is_signed;                /* vectors hold w - z already; else w, unsigned */
	int most;                      /* the largest w */
};

/* Block b of the tile at an address. */
void pawl_emit_unpack(struct pawl_emit *e, const struct pawl_pack_format *format, LLVMValueRef tile,
	LLVMValueRef b, struct pawl_unpacked *out);

#endif
