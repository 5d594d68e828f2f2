/*
 * The floating-point environment in which docs/arithmetic.md specifies every result: round to
 * nearest even, subnormal operands read as zero, subnormal results written as zero (of the
 * same sign), no traps.  It belongs to a thread.
 *
 *	uint32_t saved = pawl_fpenv_enter();
 *	run_everything(...);
 *	pawl_fpenv_leave(saved);
 *
 * Compilers do not know that these calls change arithmetic and may move float operations of
 * the same function across them: put the work into a function of another file.
 */
#ifndef PAWL_IR_FPENV_H
#define PAWL_IR_FPENV_H

#include <stdint.h>

/* Sets the whole control word, whatever it was; returns the old one for pawl_fpenv_leave. */
uint32_t pawl_fpenv_enter(void);
void pawl_fpenv_leave(uint32_t saved);

#endif
