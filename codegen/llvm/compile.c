#include "codegen/llvm/compile.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "codegen/kernel.h"
#include "codegen/llvm/compat.h"
#include "codegen/llvm/emit.h"
#include "codegen/llvm/templates.h"

/*
 * The templates write what they mean: loops are nested right, vectors have their width.  What is
 * left is to share and hoist address arithmetic.
 */
#define PASSES                                                                                     \
	"function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"                     \
	"loop-mssa(licm),early-cse<memssa>,instsimplify)"

/* LLVM's handler of fatal errors is the process's: set while any thread compiles. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_compiling;
static pthread_once_t registered = PTHREAD_ONCE_INIT;

/* What went wrong inside LLVM, and where this thread leaves it. */
static _Thread_local char fault[512];
static _Thread_local jmp_buf on_fatal;
/* After a fatal error LLVM's state is unknown. */
static atomic_bool is_broken;

static void
register_targets(void)
{
	LLVMInitializeAllTargetInfos();
	LLVMInitializeAllTargets();
	LLVMInitializeAllTargetMCs();
	LLVMInitializeAllAsmPrinters();
}

static void
note_fault(const char *text)
{
	if (!fault[0])
		snprintf(fault, sizeof(fault), "%s", text);
}

/* LLVM ends the process when this returns. */
static void
leave_fatal(const char *reason)
{
	note_fault(reason);
	longjmp(on_fatal, 1);
}

static void
note_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
	char *text;

	(void)context;
	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
		return;
	text = LLVMGetDiagInfoDescription(info);
	note_fault(text);
	LLVMDisposeMessage(text);
}

static LLVMTargetMachineRef
make_machine(enum pawl_cpu_variant variant, struct pawl_error *err)
{
	const struct pawl_cpu_variant_info *info = pawl_cpu_variant_info(variant);
	const char *cpu = variant == PAWL_CPU_AARCH64 ? "generic" : "x86-64";
	LLVMTargetMachineRef machine;
	LLVMTargetRef target;
	char *text = NULL;

	if (LLVMGetTargetFromTriple(info->triple, &target, &text)) {
		pawl_fail(err, PAWL_UNSUPPORTED, "this llvm has no target %s: %s", info->triple,
			text);
		LLVMDisposeMessage(text);
		return NULL;
	}
	machine = LLVMCreateTargetMachine(target, info->triple, cpu, info->features,
		LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
	if (!machine)
		pawl_fail(err, PAWL_UNSUPPORTED, "llvm makes no machine for %s", info->triple);
	return machine;
}

static void
init_types(struct pawl_emit *e)
{
	e->i1 = LLVMInt1TypeInContext(e->context);
	e->i8 = LLVMInt8TypeInContext(e->context);
	e->i16 = LLVMInt16TypeInContext(e->context);
	e->i32 = LLVMInt32TypeInContext(e->context);
	e->i64 = LLVMInt64TypeInContext(e->context);
	e->f16 = LLVMHalfTypeInContext(e->context);
	e->f32 = LLVMFloatTypeInContext(e->context);
	e->f64 = LLVMDoubleTypeInContext(e->context);
	e->pointer = LLVMPointerTypeInContext(e->context, 0);
	e->v16i8 = LLVMVectorType(e->i8, LANES);
	e->v16i16 = LLVMVectorType(e->i16, LANES);
	e->v16i32 = LLVMVectorType(e->i32, LANES);
	e->v16i64 = LLVMVectorType(e->i64, LANES);
	e->v16f32 = LLVMVectorType(e->f32, LANES);
	e->v64i8 = LLVMVectorType(e->i8, 64);
}

static void
add_word(struct pawl_emit *e, LLVMValueRef function, const char *name, const char *value)
{
	LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
		LLVMCreateStringAttribute(
			e->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value)));
}

static void
add_attribute(struct pawl_emit *e, LLVMValueRef function, unsigned index, const char *name)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));

	LLVMAddAttributeAtIndex(function, index, LLVMCreateEnumAttribute(e->context, kind, 0));
}

static void
add_attributes(struct pawl_emit *e)
{
	LLVMValueRef f;

	for (f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
		if (LLVMIsDeclaration(f))
			continue;
		add_attribute(e, f, (unsigned)LLVMAttributeFunctionIndex, "nounwind");
		add_word(e, f, "no-builtins", "");
		add_word(e, f, "denormal-fp-math", "preserve-sign,preserve-sign");
		if (e->variant == PAWL_CPU_AVX512 || e->variant == PAWL_CPU_AVX512VNNI) {
			add_word(e, f, "prefer-vector-width", "512");
			add_word(e, f, "min-legal-vector-width", "512");
		}
		/* The tables and the scratch memory are nobody else's during a call. */
		add_attribute(e, f, 1, "noalias");
		add_attribute(e, f, 2, "noalias");
		add_attribute(e, f, 5, "noalias");
	}
}

static void
emit_step(struct pawl_emit *e)
{
	LLVMValueRef scratch;

	switch (e->step->template) {
	case PAWL_TEMPLATE_MAP:
	case PAWL_TEMPLATE_GATHER:
	case PAWL_TEMPLATE_BATCH:
		pawl_emit_map(e);
		break;
	case PAWL_TEMPLATE_ROWS:
		pawl_emit_rows(e);
		break;
	case PAWL_TEMPLATE_MATMUL:
		pawl_emit_matmul(e);
		break;
	case PAWL_TEMPLATE_ATTEND:
		pawl_emit_attend(e);
		break;
	case PAWL_N_TEMPLATES:
		pawl_emit_refuse(e, "unknown template %d", (int)e->step->template);
		return;
	}
	add_attributes(e);
	scratch = LLVMAddGlobal(e->module, e->i64, PAWL_KERNEL_SCRATCH);
	LLVMSetInitializer(scratch, k64(e, e->scratch_bytes));
	LLVMSetGlobalConstant(scratch, 1);
}

static enum pawl_status
fail_internal(struct pawl_error *err, const char *what, const char *text)
{
	return pawl_fail(err, PAWL_INTERNAL, "llvm: %s: %.400s", what, text);
}

static enum pawl_status
fail_dump(struct pawl_error *err, const char *path, char *text)
{
	enum pawl_status status =
		pawl_fail(err, PAWL_ENVIRONMENT, "cannot dump to %.400s: %.400s", path, text);

	LLVMDisposeMessage(text);
	return status;
}

static enum pawl_status
dump_ir(const struct pawl_emit *e, const char *dump)
{
	char path[4096];
	char *text = NULL;

	snprintf(path, sizeof(path), "%s.ll", dump);
	return LLVMPrintModuleToFile(e->module, path, &text) ? fail_dump(e->err, path, text)
							     : PAWL_OK;
}

static enum pawl_status
dump_assembly(struct pawl_emit *e, LLVMTargetMachineRef machine, const char *dump)
{
	LLVMModuleRef copy = LLVMCloneModule(e->module);
	char path[4096];
	char *text = NULL;
	enum pawl_status status = PAWL_OK;

	snprintf(path, sizeof(path), "%s.s", dump);
	if (LLVMTargetMachineEmitToFile(machine, copy, path, LLVMAssemblyFile, &text))
		status = fail_dump(e->err, path, text);
	LLVMDisposeModule(copy);
	return status;
}

/* Verified module to object. */
static enum pawl_status
generate(struct pawl_emit *e, LLVMTargetMachineRef machine, const char *dump,
	struct pawl_kernel_object *out)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error = LLVMRunPasses(e->module, PASSES, machine, options);
	LLVMMemoryBufferRef buffer;
	char *text = NULL;

	LLVMDisposePassBuilderOptions(options);
	if (error) {
		text = LLVMGetErrorMessage(error);
		fail_internal(e->err, "passes", text);
		LLVMDisposeErrorMessage(text);
		return PAWL_INTERNAL;
	}
	pawl_compat_mend_stores(e);
	if (dump) {
		enum pawl_status status = dump_ir(e, dump);

		if (status == PAWL_OK)
			status = dump_assembly(e, machine, dump);
		if (status != PAWL_OK)
			return status;
	}
	if (LLVMTargetMachineEmitToMemoryBuffer(
		    machine, e->module, LLVMObjectFile, &text, &buffer)) {
		fail_internal(e->err, "code generation", text);
		LLVMDisposeMessage(text);
		return PAWL_INTERNAL;
	}
	out->size = LLVMGetBufferSize(buffer);
	out->bytes = malloc(out->size);
	if (out->bytes)
		memcpy(out->bytes, LLVMGetBufferStart(buffer), out->size);
	LLVMDisposeMemoryBuffer(buffer);
	if (!out->bytes)
		return pawl_fail(e->err, PAWL_OUT_OF_MEMORY,
			"out of memory for an object of %zu bytes", out->size);
	return PAWL_OK;
}

static enum pawl_status
compile_in(struct pawl_emit *e, LLVMTargetMachineRef machine, const char *dump,
	struct pawl_kernel_object *out)
{
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
	enum pawl_status status;
	char *text = NULL;

	LLVMSetTarget(e->module, pawl_cpu_variant_info(e->variant)->triple);
	LLVMSetModuleDataLayout(e->module, layout);
	LLVMDisposeTargetData(layout);
	init_types(e);
	emit_step(e);
	if (e->status != PAWL_OK)
		return e->status;
	if (LLVMVerifyModule(e->module, LLVMReturnStatusAction, &text)) {
		if (dump)
			dump_ir(e, dump);
		status = fail_internal(e->err, "module does not verify", text);
	} else {
		status = generate(e, machine, dump, out);
	}
	LLVMDisposeMessage(text);
	if (status == PAWL_OK && fault[0]) {
		pawl_llvm_object_free(out);
		status = fail_internal(e->err, "diagnostic", fault);
	}
	return status;
}

static enum pawl_status
compile_step(struct pawl_emit *e, const char *dump, struct pawl_kernel_object *out)
{
	LLVMTargetMachineRef machine = make_machine(e->variant, e->err);
	enum pawl_status status;

	if (!machine)
		return PAWL_UNSUPPORTED;
	e->context = LLVMContextCreate();
	LLVMContextSetDiagnosticHandler(e->context, note_diagnostic, NULL);
	e->module = LLVMModuleCreateWithNameInContext("pawl", e->context);
	e->builder = LLVMCreateBuilderInContext(e->context);
	status = compile_in(e, machine, dump, out);
	LLVMDisposeBuilder(e->builder);
	LLVMDisposeModule(e->module);
	LLVMContextDispose(e->context);
	LLVMDisposeTargetMachine(machine);
	return status;
}

static void
begin_compiling(void)
{
	pthread_mutex_lock(&lock);
	if (!n_compiling++)
		LLVMInstallFatalErrorHandler(leave_fatal);
	pthread_mutex_unlock(&lock);
}

static void
end_compiling(void)
{
	pthread_mutex_lock(&lock);
	if (!--n_compiling)
		LLVMResetFatalErrorHandler();
	pthread_mutex_unlock(&lock);
}

static enum pawl_status
compile_guarded(struct pawl_emit *e, const char *dump, struct pawl_kernel_object *out)
{
	enum pawl_status status;

	if (atomic_load(&is_broken))
		return pawl_fail(e->err, PAWL_INTERNAL, "llvm failed before and is not used again");
	fault[0] = '\0';
	begin_compiling();
	if (setjmp(on_fatal)) {
		atomic_store(&is_broken, true);
		status = fail_internal(e->err, "fatal", fault);
	} else {
		status = compile_step(e, dump, out);
	}
	end_compiling();
	return status;
}

enum pawl_status
pawl_llvm_compile(const struct pawl_program *program, const struct pawl_step *step,
	enum pawl_cpu_variant variant, const char *dump, struct pawl_kernel_object *out,
	struct pawl_error *err)
{
	struct pawl_emit *e;
	enum pawl_status status;

	*out = (struct pawl_kernel_object){NULL, 0};
	if (step->n_ops > PAWL_MAX_BODY_OPS)
		return pawl_fail(err, PAWL_UNSUPPORTED, "a step of %d ops", step->n_ops);
	e = calloc(1, sizeof(*e));
	if (e) {
		e->args = calloc((size_t)step->n_args + 1, sizeof(*e->args));
		e->starts = calloc((size_t)step->n_args + 1, sizeof(*e->starts));
	}
	if (!e || !e->args || !e->starts) {
		status = pawl_fail(err, PAWL_OUT_OF_MEMORY, "out of memory for an emitter");
		goto out;
	}
	e->variant = variant;
	e->program = program;
	e->step = step;
	e->err = err;
	pawl_step_segments(step, &e->segments);
	pthread_once(&registered, register_targets);
	status = compile_guarded(e, dump, out);
out:
	if (e) {
		free(e->args);
		free(e->starts);
	}
	free(e);
	return status;
}

void
pawl_llvm_object_free(struct pawl_kernel_object *object)
{
	free(object->bytes);
	*object = (struct pawl_kernel_object){NULL, 0};
}
