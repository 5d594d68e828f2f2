/*
 * State of writing one kernel, and the small vocabulary in which the templates are written.
 *
 * Values are LLVM values; a vector has 16 lanes unless said otherwise.  Nothing here fails on
 * its own: what a kernel cannot be written for calls pawl_emit_refuse, which keeps the first
 * reason, and emission goes on with values that do not matter.
 *
 * One emitter belongs to one thread.
 */
#ifndef PAWL_CODEGEN_LLVM_EMIT_H
#define PAWL_CODEGEN_LLVM_EMIT_H

#include <llvm-c/Core.h>

#include "codegen/cpu_variant.h"
#include "codegen/launch.h"
#include "ir/status.h"

enum { LANES = 16, MAX_CARRIED = 40 };

/*
 * Which 16 elements are meant: indices along all dims but the last, and along the last either
 * the column of lane 0 (i64; lane l is l further) or one column per lane (<16 x i64>).  Lanes
 * whose mask is off are neither read nor written and compute anything; NULL: all on.
 */
struct pawl_position {
	LLVMValueRef index[PAWL_MAX_RANK];
	LLVMValueRef mask;
};

struct pawl_emit {
	LLVMContextRef context;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	LLVMValueRef function;
	LLVMBasicBlockRef entry;
	enum pawl_cpu_variant variant;

	const struct pawl_program *program;
	const struct pawl_step *step;
	struct pawl_segments segments;

	LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, pointer;
	LLVMTypeRef v16i8, v16i16, v16i32, v16i64, v16f32, v64i8;

	/* Of the function being written. */
	LLVMValueRef args_table, symbols, begin, end, scratch;
	LLVMValueRef *args;    /* n_args pointers */
	LLVMValueRef *starts;  /* dynamic starts and pitches: the i64 at args[i], NULL: not wanted */
	int64_t scratch_bytes; /* used so far; the largest of all phases at the end */

	/* Per op of the body, while rows of it are evaluated (emit_value.h). */
	LLVMValueRef memo[PAWL_MAX_BODY_OPS];   /* value at the current position */
	LLVMValueRef fixed[PAWL_MAX_BODY_OPS];  /* value whatever the position (matmul results) */
	LLVMValueRef buffer[PAWL_MAX_BODY_OPS]; /* f32 values of the current row, in scratch */
	LLVMValueRef rowstat[PAWL_MAX_BODY_OPS][2]; /* scalars of the current row (norms) */

	LLVMValueRef
		stores_when; /* i1: the outs of row ops happen only if it holds; NULL: always */

	enum pawl_status status;
	struct pawl_error *err;
};

void pawl_emit_refuse(struct pawl_emit *e, const char *format, ...) PAWL_PRINTF(2, 3);

/* Starts the function `name` of the kernel ABI and loads its args and starts. */
void pawl_emit_begin(struct pawl_emit *e, const char *name);
void pawl_emit_end(struct pawl_emit *e);

/* A 64-byte aligned piece of the thread's scratch. */
LLVMValueRef pawl_emit_scratch(struct pawl_emit *e, int64_t bytes);

/* A variable, holding zero; the passes turn it into a register. */
LLVMValueRef pawl_emit_variable(struct pawl_emit *e, LLVMTypeRef type);
LLVMValueRef pawl_emit_get(struct pawl_emit *e, LLVMValueRef variable);
void pawl_emit_set(struct pawl_emit *e, LLVMValueRef variable, LLVMValueRef value);

LLVMTypeRef pawl_emit_vector(LLVMTypeRef element, unsigned lanes);
/* The number of lanes of a vector type, 1 for a scalar. */
unsigned pawl_emit_lanes(LLVMValueRef value);

LLVMValueRef pawl_emit_splat(struct pawl_emit *e, LLVMValueRef scalar, unsigned lanes);
/* A scalar or vector constant of the type: every lane n. */
LLVMValueRef pawl_emit_int(LLVMTypeRef type, int64_t n);
LLVMValueRef pawl_emit_real(struct pawl_emit *e, LLVMTypeRef type, float x);
/* <16 x i64> 0, 1 ... 15. */
LLVMValueRef pawl_emit_iota(struct pawl_emit *e);
/* Lanes 0 .. n - 1 on. */
LLVMValueRef pawl_emit_mask_first(struct pawl_emit *e, int n);
/* Lanes below a count (i64) on. */
LLVMValueRef pawl_emit_mask_below(struct pawl_emit *e, LLVMValueRef count);
/* Both; NULL stands for all on. */
LLVMValueRef pawl_emit_mask_and(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b);

/*
 * Calls an intrinsic, casting bits to the types that this version of LLVM declares it with.
 * overload: the type it is overloaded on, NULL for none.
 */
LLVMValueRef pawl_emit_intrinsic(struct pawl_emit *e, const char *name, LLVMTypeRef overload,
	LLVMValueRef *args, unsigned n_args);
/* The declaration of an intrinsic and its type; NULL, refusing, when this LLVM has none. */
LLVMValueRef pawl_emit_declare(struct pawl_emit *e, const char *name, LLVMTypeRef *overloads,
	unsigned n, LLVMTypeRef *type);
/* Memory under a mask, element by element aligned to align; off lanes read as zero. */
LLVMValueRef pawl_emit_masked_read(struct pawl_emit *e, LLVMTypeRef type, LLVMValueRef address,
	unsigned align, LLVMValueRef mask);
void pawl_emit_masked_write(struct pawl_emit *e, LLVMValueRef value, LLVMValueRef address,
	unsigned align, LLVMValueRef mask);
/* The same at base + one byte offset (i64) a lane; mask may be NULL. */
LLVMValueRef pawl_emit_gather(struct pawl_emit *e, LLVMTypeRef type, LLVMValueRef base,
	LLVMValueRef offsets, unsigned align, LLVMValueRef mask);
void pawl_emit_scatter(struct pawl_emit *e, LLVMValueRef value, LLVMValueRef base,
	LLVMValueRef offsets, unsigned align, LLVMValueRef mask);

/* Integers of which one may be a vector and the other a scalar of its element type. */
LLVMValueRef pawl_emit_mix_add(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef pawl_emit_mix_mul(struct pawl_emit *e, LLVMValueRef a, int64_t b);

/* The extent of a dim (i64). */
LLVMValueRef pawl_emit_dim(struct pawl_emit *e, struct pawl_dim dim);
/* Its largest value. */
int64_t pawl_emit_dim_max(const struct pawl_emit *e, struct pawl_dim dim);
/* Splits the row-major number of a row over all dims but the last. */
void pawl_emit_split_row(
	struct pawl_emit *e, const struct pawl_type *type, LLVMValueRef row, LLVMValueRef *index);

/*
 * for (index = from; index < to; index += step), carrying n values:
 *
 *	loop.n = 1; loop.carried[0] = initial;
 *	pawl_loop_begin(e, &loop, from, to, step);
 *	... uses loop.index, loop.carried[0] ...
 *	loop.carried[0] = next;
 *	pawl_loop_end(e, &loop);
 *	... loop.carried[0] is the last value ...
 */
struct pawl_loop {
	LLVMBasicBlockRef before, body, after;
	LLVMValueRef index, to;
	int64_t step;
	int n;
	LLVMValueRef carried[MAX_CARRIED], initial[MAX_CARRIED], phi[MAX_CARRIED];
};

void pawl_loop_begin(struct pawl_emit *e, struct pawl_loop *loop, LLVMValueRef from,
	LLVMValueRef to, int64_t step);
void pawl_loop_end(struct pawl_emit *e, struct pawl_loop *loop);

/* if (condition) { ... }, without a value. */
struct pawl_branch {
	LLVMBasicBlockRef after;
};

void pawl_if_begin(struct pawl_emit *e, struct pawl_branch *branch, LLVMValueRef condition);
void pawl_if_end(struct pawl_emit *e, struct pawl_branch *branch);

/* Memory at base + offset bytes; loads and stores assume only the alignment given. */
LLVMValueRef pawl_emit_at(struct pawl_emit *e, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef pawl_emit_at_bytes(struct pawl_emit *e, LLVMValueRef base, int64_t offset);
LLVMValueRef pawl_emit_read(
	struct pawl_emit *e, LLVMTypeRef type, LLVMValueRef address, unsigned align);
void pawl_emit_write(struct pawl_emit *e, LLVMValueRef value, LLVMValueRef address, unsigned align);
void pawl_emit_prefetch(struct pawl_emit *e, LLVMValueRef address);

/* The builder in short. */
static inline LLVMValueRef
k64(struct pawl_emit *e, int64_t n)
{
	return LLVMConstInt(e->i64, (unsigned long long)n, 1);
}

static inline LLVMValueRef
k32(struct pawl_emit *e, int32_t n)
{
	return LLVMConstInt(e->i32, (unsigned long long)(int64_t)n, 1);
}

#define BINARY(name, build)                                                                        \
	static inline LLVMValueRef name(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b)       \
	{                                                                                          \
		return build(e->builder, a, b, "");                                                \
	}

BINARY(iadd, LLVMBuildAdd)
BINARY(isub, LLVMBuildSub)
BINARY(imul, LLVMBuildMul)
BINARY(iand, LLVMBuildAnd)
BINARY(ior, LLVMBuildOr)
BINARY(ixor, LLVMBuildXor)
BINARY(ishl, LLVMBuildShl)
BINARY(ilshr, LLVMBuildLShr)
BINARY(iashr, LLVMBuildAShr)
BINARY(udiv, LLVMBuildUDiv)
BINARY(urem, LLVMBuildURem)
BINARY(fadd, LLVMBuildFAdd)
BINARY(fsub, LLVMBuildFSub)
BINARY(fmul, LLVMBuildFMul)
BINARY(fdiv, LLVMBuildFDiv)
#undef BINARY

static inline LLVMValueRef
icmp(struct pawl_emit *e, LLVMIntPredicate predicate, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildICmp(e->builder, predicate, a, b, "");
}

static inline LLVMValueRef
fcmp(struct pawl_emit *e, LLVMRealPredicate predicate, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildFCmp(e->builder, predicate, a, b, "");
}

static inline LLVMValueRef
choose(struct pawl_emit *e, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildSelect(e->builder, condition, a, b, "");
}

static inline LLVMValueRef
bits_as(struct pawl_emit *e, LLVMValueRef value, LLVMTypeRef type)
{
	return LLVMBuildBitCast(e->builder, value, type, "");
}

static inline LLVMValueRef
splat16(struct pawl_emit *e, LLVMValueRef scalar)
{
	return pawl_emit_splat(e, scalar, LANES);
}

/* An integer constant like b's type. */
static inline LLVMValueRef
like(LLVMValueRef b, int64_t n)
{
	return pawl_emit_int(LLVMTypeOf(b), n);
}

/* Smaller (signed) of two scalars. */
static inline LLVMValueRef
imin(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b)
{
	return choose(e, icmp(e, LLVMIntSLT, a, b), a, b);
}

static inline LLVMValueRef
imax(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b)
{
	return choose(e, icmp(e, LLVMIntSGT, a, b), a, b);
}

#endif
