/*
 * The instruction sets that CPU kernels are written for.  A variant is chosen from what CPUID
 * (and the operating system, through XCR0) grants, never from a processor's name: a hypervisor
 * may mask what the name promises.  All variants compute the same bits.
 */
#ifndef PAWL_CODEGEN_CPU_VARIANT_H
#define PAWL_CODEGEN_CPU_VARIANT_H

#include <stdbool.h>

enum pawl_cpu_variant {
	PAWL_CPU_BASELINE,   /* x86-64: SSE2 */
	PAWL_CPU_AVX2,       /* AVX2, FMA, F16C */
	PAWL_CPU_AVX512,     /* F, BW, VL, DQ */
	PAWL_CPU_AVX512VNNI, /* and VNNI */
	PAWL_CPU_AARCH64,    /* Armv8-A with Advanced SIMD */
	PAWL_N_CPU_VARIANTS
};

struct pawl_cpu_variant_info {
	const char *name;
	const char *triple;   /* LLVM's target triple */
	const char *features; /* LLVM's feature string */
};

const struct pawl_cpu_variant_info *pawl_cpu_variant_info(enum pawl_cpu_variant variant);
bool pawl_cpu_variant_from_name(const char *name, enum pawl_cpu_variant *out);
/* Whether this machine runs code of the variant. */
bool pawl_cpu_can_run(enum pawl_cpu_variant variant);
/* The best that this machine runs. */
enum pawl_cpu_variant pawl_cpu_best_variant(void);

#endif
