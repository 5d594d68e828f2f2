#include "codegen/llvm/compat.h"

#include <string.h>

enum { MAX_ARGS = 4 };

LLVMValueRef
pawl_compat_masked(struct pawl_emit *e, const char *name, LLVMTypeRef value, LLVMTypeRef address,
	LLVMValueRef *args, unsigned n_args, unsigned align_at, unsigned align)
{
	LLVMTypeRef overloads[2] = {value, address}, type;
	LLVMValueRef function = pawl_emit_declare(e, name, overloads, 2, &type), all[MAX_ARGS];
	unsigned i, n = 0;

	if (!function)
		return LLVMGetPoison(value);
	for (i = 0; i < n_args; i++) {
		if (i == align_at && LLVMCountParamTypes(type) > n_args)
			all[n++] = k32(e, (int32_t)align);
		all[n++] = args[i];
	}
	return LLVMBuildCall2(e->builder, type, function, all, n, "");
}

static bool
is_masked_store(LLVMValueRef instruction)
{
	static const char start[] = "llvm.masked.store.";
	LLVMValueRef callee;
	const char *name;
	size_t n;

	if (!LLVMIsACallInst(instruction))
		return false;
	callee = LLVMGetCalledValue(instruction);
	name = callee ? LLVMGetValueName2(callee, &n) : NULL;
	return name && n >= strlen(start) && !memcmp(name, start, strlen(start));
}

/* The only lane that a constant mask has on, or -1. */
static int
only_lane(LLVMValueRef mask)
{
	int lane = -1, lanes = (int)pawl_emit_lanes(mask), i;

	if (!LLVMIsConstant(mask))
		return -1;
	for (i = 0; i < lanes; i++) {
		LLVMValueRef bit = LLVMGetAggregateElement(mask, (unsigned)i);

		if (!bit || !LLVMIsAConstantInt(bit))
			return -1;
		if (!LLVMConstIntGetZExtValue(bit))
			continue;
		if (lane >= 0)
			return -1;
		lane = i;
	}
	return lane;
}

static void
mend(struct pawl_emit *e, LLVMValueRef call)
{
	LLVMValueRef value = LLVMGetOperand(call, 0), address = LLVMGetOperand(call, 1), store;
	int lane = only_lane(LLVMGetOperand(call, LLVMGetNumArgOperands(call) - 1));
	LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(value));

	if (lane < 0)
		return;
	LLVMPositionBuilderBefore(e->builder, call);
	if (lane > 0) {
		LLVMValueRef at = k64(e, lane);

		address = LLVMBuildGEP2(e->builder, element, address, &at, 1, "");
	}
	value = LLVMBuildExtractElement(e->builder, value, k32(e, lane), "");
	store = LLVMBuildStore(e->builder, value, address);
	LLVMSetAlignment(store, 1);
	LLVMInstructionEraseFromParent(call);
}

void
pawl_compat_mend_stores(struct pawl_emit *e)
{
	LLVMValueRef function, at, next;
	LLVMBasicBlockRef block;

	for (function = LLVMGetFirstFunction(e->module); function;
		function = LLVMGetNextFunction(function)) {
		for (block = LLVMGetFirstBasicBlock(function); block;
			block = LLVMGetNextBasicBlock(block)) {
			for (at = LLVMGetFirstInstruction(block); at; at = next) {
				next = LLVMGetNextInstruction(at);
				if (is_masked_store(at))
					mend(e, at);
			}
		}
	}
}
