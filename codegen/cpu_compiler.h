/*
 * The interface of the module that compiles CPU kernels, plugins/cpu_compiler.c: the only one
 * that links LLVM.  It exports `pawl_cpu_compiler_query` and is refused when its build id is
 * not its opener's.
 */
#ifndef PAWL_CODEGEN_CPU_COMPILER_H
#define PAWL_CODEGEN_CPU_COMPILER_H

#include <stddef.h>

#include "codegen/cpu_variant.h"
#include "ir/status.h"
#include "passes/step.h"

/* An ELF object with the symbols of codegen/kernel.h; freed by the compiler that made it. */
struct pawl_kernel_object {
	void *bytes;
	size_t size;
};

struct pawl_cpu_compiler_api {
	size_t size; /* of this struct */
	const char *build_id;
	const char *version; /* of LLVM, "19.1.7" */
	/*
	 * Writes the kernel of a step of program.  dump is NULL or the start of the names of files
	 * (".ll", ".s") that the generated code is written to.  PAWL_UNSUPPORTED says what the
	 * compiler cannot do; PAWL_INTERNAL that LLVM found fault with what it was given;
	 * PAWL_ENVIRONMENT that a dump cannot be written.  Thread-safe.
	 */
	enum pawl_status (*compile)(const struct pawl_program *program,
		const struct pawl_step *step, enum pawl_cpu_variant variant, const char *dump,
		struct pawl_kernel_object *out, struct pawl_error *err);
	void (*object_free)(struct pawl_kernel_object *object);
};

typedef const struct pawl_cpu_compiler_api *pawl_cpu_compiler_query_fn(void);

#define PAWL_CPU_COMPILER_QUERY "pawl_cpu_compiler_query"

#endif
