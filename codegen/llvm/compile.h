/* From a step to an object: emission, verification, passes, machine code. */
#ifndef PAWL_CODEGEN_LLVM_COMPILE_H
#define PAWL_CODEGEN_LLVM_COMPILE_H

#include "codegen/cpu_compiler.h"

/* As pawl_cpu_compiler_api says. */
enum pawl_status pawl_llvm_compile(const struct pawl_program *program, const struct pawl_step *step,
	enum pawl_cpu_variant variant, const char *dump, struct pawl_kernel_object *out,
	struct pawl_error *err);
void pawl_llvm_object_free(struct pawl_kernel_object *object);

#endif
