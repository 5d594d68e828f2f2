#include "ir/fpenv.h"

#if defined(__x86_64__)

#include <xmmintrin.h>

/* MXCSR: FTZ (bit 15), the six exception masks (12..7), DAZ (6); rounding bits 14..13 are 0. */
#define ENVIRONMENT 0x9fc0u

uint32_t
pawl_fpenv_enter(void)
{
	uint32_t saved = _mm_getcsr();

	_mm_setcsr(ENVIRONMENT);
	return saved;
}

void
pawl_fpenv_leave(uint32_t saved)
{
	_mm_setcsr(saved);
}

#elif defined(__aarch64__)

/* FPCR: FZ (bit 24); rounding bits 23..22 and all trap enables are 0, AH and FIZ too. */
#define ENVIRONMENT 0x01000000u

uint32_t
pawl_fpenv_enter(void)
{
	uint64_t saved;

	__asm__ volatile("mrs %0, fpcr" : "=r"(saved) : : "memory");
	__asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)ENVIRONMENT) : "memory");
	return (uint32_t)saved;
}

void
pawl_fpenv_leave(uint32_t saved)
{
	__asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)saved) : "memory");
}

#else
#error "state here how this processor flushes subnormal numbers"
#endif
