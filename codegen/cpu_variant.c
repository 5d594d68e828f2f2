#include "codegen/cpu_variant.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define AVX2_FEATURES "+avx2,+fma,+f16c,+ssse3,+sse4.1,+sse4.2,+popcnt"
#define AVX512_FEATURES AVX2_FEATURES ",+avx512f,+avx512bw,+avx512vl,+avx512dq"

static const struct pawl_cpu_variant_info infos[PAWL_N_CPU_VARIANTS] = {
	[PAWL_CPU_BASELINE] = {"baseline", "x86_64-unknown-linux-gnu", ""},
	[PAWL_CPU_AVX2] = {"avx2", "x86_64-unknown-linux-gnu", AVX2_FEATURES},
	[PAWL_CPU_AVX512] = {"avx512", "x86_64-unknown-linux-gnu", AVX512_FEATURES},
	[PAWL_CPU_AVX512VNNI] = {"avx512vnni", "x86_64-unknown-linux-gnu",
		AVX512_FEATURES ",+avx512vnni"},
	[PAWL_CPU_AARCH64] = {"aarch64", "aarch64-unknown-linux-gnu", "+neon"},
};

const struct pawl_cpu_variant_info *
pawl_cpu_variant_info(enum pawl_cpu_variant variant)
{
	return &infos[variant];
}

bool
pawl_cpu_variant_from_name(const char *name, enum pawl_cpu_variant *out)
{
	int i;

	for (i = 0; i < PAWL_N_CPU_VARIANTS; i++) {
		if (!strcmp(infos[i].name, name)) {
			*out = (enum pawl_cpu_variant)i;
			return true;
		}
	}
	return false;
}

#if defined(__x86_64__)

/* Leaf 1, ECX. */
#define SSSE3 (1u << 9)
#define FMA (1u << 12)
#define SSE41 (1u << 19)
#define SSE42 (1u << 20)
#define POPCNT (1u << 23)
#define OSXSAVE (1u << 27)
#define AVX (1u << 28)
#define F16C (1u << 29)
#define LEAF1_AVX2 (SSSE3 | FMA | SSE41 | SSE42 | POPCNT | OSXSAVE | AVX | F16C)
/* Leaf 7, EBX and ECX. */
#define AVX2 (1u << 5)
#define AVX512F (1u << 16)
#define AVX512DQ (1u << 17)
#define AVX512BW (1u << 30)
#define AVX512VL (1u << 31)
#define LEAF7_AVX512 (AVX512F | AVX512DQ | AVX512BW | AVX512VL)
#define AVX512VNNI (1u << 11)
/* XCR0: xmm and ymm state; opmask and zmm state. */
#define XCR0_YMM 0x06u
#define XCR0_ZMM 0xe6u

static uint32_t
read_xcr0(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

enum pawl_cpu_variant
pawl_cpu_best_variant(void)
{
	unsigned a, b, c, d, leaf7_b, leaf7_c;
	uint32_t xcr0;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & LEAF1_AVX2) != LEAF1_AVX2)
		return PAWL_CPU_BASELINE;
	xcr0 = read_xcr0();
	if ((xcr0 & XCR0_YMM) != XCR0_YMM || !__get_cpuid_count(7, 0, &a, &leaf7_b, &leaf7_c, &d) ||
		!(leaf7_b & AVX2))
		return PAWL_CPU_BASELINE;
	if ((xcr0 & XCR0_ZMM) != XCR0_ZMM || (leaf7_b & LEAF7_AVX512) != LEAF7_AVX512)
		return PAWL_CPU_AVX2;
	return leaf7_c & AVX512VNNI ? PAWL_CPU_AVX512VNNI : PAWL_CPU_AVX512;
}

bool
pawl_cpu_can_run(enum pawl_cpu_variant variant)
{
	return variant != PAWL_CPU_AARCH64 && variant <= pawl_cpu_best_variant();
}

#elif defined(__aarch64__)

enum pawl_cpu_variant
pawl_cpu_best_variant(void)
{
	return PAWL_CPU_AARCH64;
}

bool
pawl_cpu_can_run(enum pawl_cpu_variant variant)
{
	return variant == PAWL_CPU_AARCH64;
}

#else
#error "no kernels are generated for this processor"
#endif
