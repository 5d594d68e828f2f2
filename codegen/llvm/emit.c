#include "codegen/llvm/emit.h"

#include "codegen/llvm/compat.h"

#include <stdarg.h>
#include <string.h>

enum { MAX_LANES = 64, MAX_INTRINSIC_ARGS = 8 };

void
pawl_emit_refuse(struct pawl_emit *e, const char *format, ...)
{
	va_list args;

	if (e->status != PAWL_OK)
		return;
	va_start(args, format);
	e->status = pawl_vfail(e->err, PAWL_UNSUPPORTED, format, args);
	va_end(args);
}

LLVMTypeRef
pawl_emit_vector(LLVMTypeRef element, unsigned lanes)
{
	return lanes == 1 ? element : LLVMVectorType(element, lanes);
}

unsigned
pawl_emit_lanes(LLVMValueRef value)
{
	LLVMTypeRef type = LLVMTypeOf(value);

	return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetVectorSize(type) : 1;
}

LLVMValueRef
pawl_emit_splat(struct pawl_emit *e, LLVMValueRef scalar, unsigned lanes)
{
	LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), lanes);
	LLVMValueRef poison = LLVMGetPoison(type), one;

	one = LLVMBuildInsertElement(e->builder, poison, scalar, k32(e, 0), "");
	return LLVMBuildShuffleVector(
		e->builder, one, poison, LLVMConstNull(LLVMVectorType(e->i32, lanes)), "");
}

static LLVMValueRef
fill(LLVMTypeRef type, LLVMValueRef lane)
{
	LLVMValueRef lanes[MAX_LANES];
	unsigned i, n;

	if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
		return lane;
	n = LLVMGetVectorSize(type);
	for (i = 0; i < n; i++)
		lanes[i] = lane;
	return LLVMConstVector(lanes, n);
}

static LLVMTypeRef
element_of(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

LLVMValueRef
pawl_emit_int(LLVMTypeRef type, int64_t n)
{
	return fill(type, LLVMConstInt(element_of(type), (unsigned long long)n, 1));
}

LLVMValueRef
pawl_emit_real(struct pawl_emit *e, LLVMTypeRef type, float x)
{
	/* By bits: the value of a float constant must not pass through a decimal or a double NaN.
	 */
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return fill(type, LLVMConstBitCast(LLVMConstInt(e->i32, bits, 0), e->f32));
}

LLVMValueRef
pawl_emit_iota(struct pawl_emit *e)
{
	LLVMValueRef lanes[LANES];
	int i;

	for (i = 0; i < LANES; i++)
		lanes[i] = k64(e, i);
	return LLVMConstVector(lanes, LANES);
}

LLVMValueRef
pawl_emit_mask_first(struct pawl_emit *e, int n)
{
	LLVMValueRef lanes[LANES];
	int i;

	for (i = 0; i < LANES; i++)
		lanes[i] = LLVMConstInt(e->i1, i < n, 0);
	return LLVMConstVector(lanes, LANES);
}

LLVMValueRef
pawl_emit_mask_below(struct pawl_emit *e, LLVMValueRef count)
{
	return icmp(e, LLVMIntSLT, pawl_emit_iota(e), splat16(e, count));
}

LLVMValueRef
pawl_emit_mask_and(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b)
{
	if (!a || !b)
		return a ? a : b;
	return iand(e, a, b);
}

LLVMValueRef
pawl_emit_declare(struct pawl_emit *e, const char *name, LLVMTypeRef *overloads, unsigned n,
	LLVMTypeRef *type)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef function;

	if (!id) {
		pawl_emit_refuse(e, "this llvm has no intrinsic %s", name);
		return NULL;
	}
	function = LLVMGetIntrinsicDeclaration(e->module, id, overloads, n);
	*type = LLVMGlobalGetValueType(function);
	return function;
}

LLVMValueRef
pawl_emit_intrinsic(struct pawl_emit *e, const char *name, LLVMTypeRef overload, LLVMValueRef *args,
	unsigned n_args)
{
	LLVMTypeRef type, parameters[MAX_INTRINSIC_ARGS];
	LLVMValueRef function = pawl_emit_declare(e, name, &overload, overload ? 1 : 0, &type);
	LLVMValueRef cast[MAX_INTRINSIC_ARGS];
	unsigned i;

	if (!function || LLVMCountParamTypes(type) != n_args) {
		pawl_emit_refuse(e, "intrinsic %s does not take %u operands", name, n_args);
		return LLVMGetPoison(LLVMTypeOf(args[0]));
	}
	LLVMGetParamTypes(type, parameters);
	for (i = 0; i < n_args; i++)
		cast[i] = LLVMTypeOf(args[i]) == parameters[i] ? args[i]
							       : bits_as(e, args[i], parameters[i]);
	return LLVMBuildCall2(e->builder, type, function, cast, n_args, "");
}

LLVMValueRef
pawl_emit_masked_read(struct pawl_emit *e, LLVMTypeRef type, LLVMValueRef address, unsigned align,
	LLVMValueRef mask)
{
	LLVMValueRef args[3] = {address, mask, LLVMConstNull(type)};

	return pawl_compat_masked(e, "llvm.masked.load", type, e->pointer, args, 3, 1, align);
}

void
pawl_emit_masked_write(struct pawl_emit *e, LLVMValueRef value, LLVMValueRef address,
	unsigned align, LLVMValueRef mask)
{
	LLVMValueRef args[3] = {value, address, mask};

	pawl_compat_masked(
		e, "llvm.masked.store", LLVMTypeOf(value), e->pointer, args, 3, 2, align);
}

LLVMValueRef
pawl_emit_gather(struct pawl_emit *e, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef offsets,
	unsigned align, LLVMValueRef mask)
{
	LLVMValueRef addresses = pawl_emit_at(e, base, offsets);
	LLVMValueRef args[3] = {
		addresses, mask ? mask : pawl_emit_mask_first(e, LANES), LLVMConstNull(type)};

	return pawl_compat_masked(
		e, "llvm.masked.gather", type, LLVMTypeOf(addresses), args, 3, 1, align);
}

void
pawl_emit_scatter(struct pawl_emit *e, LLVMValueRef value, LLVMValueRef base, LLVMValueRef offsets,
	unsigned align, LLVMValueRef mask)
{
	LLVMValueRef addresses = pawl_emit_at(e, base, offsets);
	LLVMValueRef args[3] = {value, addresses, mask ? mask : pawl_emit_mask_first(e, LANES)};

	pawl_compat_masked(e, "llvm.masked.scatter", LLVMTypeOf(value), LLVMTypeOf(addresses), args,
		3, 2, align);
}

LLVMValueRef
pawl_emit_mix_add(struct pawl_emit *e, LLVMValueRef a, LLVMValueRef b)
{
	unsigned lanes_a = pawl_emit_lanes(a), lanes_b = pawl_emit_lanes(b);

	if (lanes_a < lanes_b)
		a = pawl_emit_splat(e, a, lanes_b);
	if (lanes_b < lanes_a)
		b = pawl_emit_splat(e, b, lanes_a);
	return iadd(e, a, b);
}

LLVMValueRef
pawl_emit_mix_mul(struct pawl_emit *e, LLVMValueRef a, int64_t b)
{
	return b == 1 ? a : imul(e, a, like(a, b));
}

LLVMValueRef
pawl_emit_dim(struct pawl_emit *e, struct pawl_dim dim)
{
	LLVMValueRef value;

	if (dim.sym < 0)
		return k64(e, dim.base);
	value = pawl_emit_read(
		e, e->i64, pawl_emit_at_bytes(e, e->symbols, 8 * (int64_t)dim.sym), 8);
	return iadd(e, k64(e, dim.base), imul(e, value, k64(e, dim.factor)));
}

int64_t
pawl_emit_dim_max(const struct pawl_emit *e, struct pawl_dim dim)
{
	const struct pawl_program_symbol *symbol;

	if (dim.sym < 0)
		return dim.base;
	symbol = &e->program->symbols[dim.sym];
	return dim.base + dim.factor * (dim.factor < 0 ? symbol->min : symbol->max);
}

void
pawl_emit_split_row(
	struct pawl_emit *e, const struct pawl_type *type, LLVMValueRef row, LLVMValueRef *index)
{
	int j;

	for (j = type->rank - 2; j > 0; j--) {
		LLVMValueRef extent = pawl_emit_dim(e, type->dim[j]);

		if (type->dim[j].sym < 0 && type->dim[j].base == 1) {
			index[j] = k64(e, 0);
			continue;
		}
		index[j] = urem(e, row, extent);
		row = udiv(e, row, extent);
	}
	if (type->rank > 1)
		index[0] = row;
}

static LLVMBasicBlockRef
append(struct pawl_emit *e)
{
	return LLVMAppendBasicBlockInContext(e->context, e->function, "");
}

void
pawl_loop_begin(struct pawl_emit *e, struct pawl_loop *loop, LLVMValueRef from, LLVMValueRef to,
	int64_t step)
{
	int i;

	loop->before = LLVMGetInsertBlock(e->builder);
	loop->body = append(e);
	loop->after = append(e);
	loop->to = to;
	loop->step = step;
	LLVMBuildCondBr(e->builder, icmp(e, LLVMIntSLT, from, to), loop->body, loop->after);
	LLVMPositionBuilderAtEnd(e->builder, loop->body);
	loop->index = LLVMBuildPhi(e->builder, e->i64, "");
	LLVMAddIncoming(loop->index, &from, &loop->before, 1);
	for (i = 0; i < loop->n; i++) {
		loop->initial[i] = loop->carried[i];
		loop->phi[i] = LLVMBuildPhi(e->builder, LLVMTypeOf(loop->initial[i]), "");
		LLVMAddIncoming(loop->phi[i], &loop->initial[i], &loop->before, 1);
		loop->carried[i] = loop->phi[i];
	}
}

void
pawl_loop_end(struct pawl_emit *e, struct pawl_loop *loop)
{
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->builder), from[2] = {loop->before, latch};
	LLVMValueRef next = LLVMBuildNSWAdd(e->builder, loop->index, k64(e, loop->step), "");
	LLVMValueRef values[2];
	int i;

	LLVMAddIncoming(loop->index, &next, &latch, 1);
	for (i = 0; i < loop->n; i++)
		LLVMAddIncoming(loop->phi[i], &loop->carried[i], &latch, 1);
	LLVMBuildCondBr(e->builder, icmp(e, LLVMIntSLT, next, loop->to), loop->body, loop->after);
	LLVMPositionBuilderAtEnd(e->builder, loop->after);
	for (i = 0; i < loop->n; i++) {
		values[0] = loop->initial[i];
		values[1] = loop->carried[i];
		loop->carried[i] = LLVMBuildPhi(e->builder, LLVMTypeOf(values[0]), "");
		LLVMAddIncoming(loop->carried[i], values, from, 2);
	}
}

void
pawl_if_begin(struct pawl_emit *e, struct pawl_branch *branch, LLVMValueRef condition)
{
	LLVMBasicBlockRef then = append(e);

	branch->after = append(e);
	LLVMBuildCondBr(e->builder, condition, then, branch->after);
	LLVMPositionBuilderAtEnd(e->builder, then);
}

void
pawl_if_end(struct pawl_emit *e, struct pawl_branch *branch)
{
	LLVMBuildBr(e->builder, branch->after);
	LLVMPositionBuilderAtEnd(e->builder, branch->after);
}

LLVMValueRef
pawl_emit_at(struct pawl_emit *e, LLVMValueRef base, LLVMValueRef offset)
{
	return LLVMBuildGEP2(e->builder, e->i8, base, &offset, 1, "");
}

LLVMValueRef
pawl_emit_at_bytes(struct pawl_emit *e, LLVMValueRef base, int64_t offset)
{
	return offset ? pawl_emit_at(e, base, k64(e, offset)) : base;
}

LLVMValueRef
pawl_emit_read(struct pawl_emit *e, LLVMTypeRef type, LLVMValueRef address, unsigned align)
{
	LLVMValueRef load = LLVMBuildLoad2(e->builder, type, address, "");

	LLVMSetAlignment(load, align);
	return load;
}

void
pawl_emit_write(struct pawl_emit *e, LLVMValueRef value, LLVMValueRef address, unsigned align)
{
	LLVMSetAlignment(LLVMBuildStore(e->builder, value, address), align);
}

void
pawl_emit_prefetch(struct pawl_emit *e, LLVMValueRef address)
{
	/* For reading, into all caches, data. */
	LLVMValueRef args[4] = {address, k32(e, 0), k32(e, 3), k32(e, 1)};

	pawl_emit_intrinsic(e, "llvm.prefetch", e->pointer, args, 4);
}

LLVMValueRef
pawl_emit_scratch(struct pawl_emit *e, int64_t bytes)
{
	int64_t at = e->scratch_bytes;

	e->scratch_bytes += (bytes + 63) / 64 * 64;
	return pawl_emit_at_bytes(e, e->scratch, at);
}

LLVMValueRef
pawl_emit_variable(struct pawl_emit *e, LLVMTypeRef type)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
	LLVMValueRef first = LLVMGetFirstInstruction(e->entry), variable;

	if (first)
		LLVMPositionBuilderBefore(e->builder, first);
	else
		LLVMPositionBuilderAtEnd(e->builder, e->entry);
	variable = LLVMBuildAlloca(e->builder, type, "");
	LLVMPositionBuilderAtEnd(e->builder, here);
	pawl_emit_set(e, variable, LLVMConstNull(type));
	return variable;
}

LLVMValueRef
pawl_emit_get(struct pawl_emit *e, LLVMValueRef variable)
{
	return LLVMBuildLoad2(e->builder, LLVMGetAllocatedType(variable), variable, "");
}

void
pawl_emit_set(struct pawl_emit *e, LLVMValueRef variable, LLVMValueRef value)
{
	LLVMBuildStore(e->builder, value, variable);
}

/* A start is an i64 or a u32, as the slot that holds it says. */
static void
want_start(struct pawl_emit *e, const struct pawl_access *access)
{
	enum pawl_dtype dtype;
	LLVMValueRef start;

	if (access->pitch && !e->starts[access->pitch_arg])
		e->starts[access->pitch_arg] =
			pawl_emit_read(e, e->i64, e->args[access->pitch_arg], 8);
	if (access->at_dim < 0 || access->at_rows || access->at_arg < 0 ||
		e->starts[access->at_arg])
		return;
	dtype = e->program->slots[e->step->args[access->at_arg].slot].type.dtype;
	if (dtype == PAWL_DTYPE_I64) {
		start = pawl_emit_read(e, e->i64, e->args[access->at_arg], 8);
	} else {
		start = pawl_emit_read(e, e->i32, e->args[access->at_arg], 4);
		start = LLVMBuildIntCast2(e->builder, start, e->i64, dtype != PAWL_DTYPE_U32, "");
	}
	e->starts[access->at_arg] = start;
}

static void
load_args(struct pawl_emit *e)
{
	int32_t i, j;

	for (i = 0; i < e->step->n_args; i++) {
		e->args[i] = pawl_emit_read(
			e, e->pointer, pawl_emit_at_bytes(e, e->args_table, 8 * (int64_t)i), 8);
		e->starts[i] = NULL;
	}
	for (i = 0; i < e->step->n_ops; i++) {
		const struct pawl_step_op *op = &e->step->ops[i];

		for (j = 0; j < op->n_inputs; j++) {
			if (op->inputs[j].value < 0)
				want_start(e, &op->inputs[j].access);
		}
		for (j = 0; j < op->n_outs; j++)
			want_start(e, &op->outs[j]);
	}
}

void
pawl_emit_begin(struct pawl_emit *e, const char *name)
{
	LLVMTypeRef parameters[5] = {e->pointer, e->pointer, e->i64, e->i64, e->pointer};
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), parameters, 5, 0);

	e->function = LLVMAddFunction(e->module, name, type);
	e->entry = append(e);
	LLVMPositionBuilderAtEnd(e->builder, e->entry);
	e->args_table = LLVMGetParam(e->function, 0);
	e->symbols = LLVMGetParam(e->function, 1);
	e->begin = LLVMGetParam(e->function, 2);
	e->end = LLVMGetParam(e->function, 3);
	e->scratch = LLVMGetParam(e->function, 4);
	memset(e->memo, 0, sizeof(e->memo));
	memset(e->fixed, 0, sizeof(e->fixed));
	memset(e->buffer, 0, sizeof(e->buffer));
	memset(e->rowstat, 0, sizeof(e->rowstat));
	e->stores_when = NULL;
	load_args(e);
}

void
pawl_emit_end(struct pawl_emit *e)
{
	LLVMBuildRetVoid(e->builder);
}
