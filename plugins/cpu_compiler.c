/* The module that compiles CPU kernels.  See codegen/cpu_compiler.h. */
#include "codegen/cpu_compiler.h"

#include <stdio.h>

#include <llvm-c/Core.h>

#include "codegen/llvm/compile.h"
#include "ir/build_id.h"

__attribute__((visibility("default"))) const struct pawl_cpu_compiler_api *pawl_cpu_compiler_query(
	void);

const struct pawl_cpu_compiler_api *
pawl_cpu_compiler_query(void)
{
	static char version[32];
	static const struct pawl_cpu_compiler_api api = {
		.size = sizeof(api),
		.build_id = pawl_build_id,
		.version = version,
		.compile = pawl_llvm_compile,
		.object_free = pawl_llvm_object_free,
	};
	unsigned major, minor, patch;

	LLVMGetVersion(&major, &minor, &patch);
	snprintf(version, sizeof(version), "%u.%u.%u", major, minor, patch);
	return &api;
}
