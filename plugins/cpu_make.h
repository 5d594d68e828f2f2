/* Several kernels at once. */
#ifndef PAWL_PLUGINS_CPU_MAKE_H
#define PAWL_PLUGINS_CPU_MAKE_H

#include "plugins/cpu_kernels.h"

/*
 * Finds the kernels of all steps of a program, NULL where there is none yet, after it has made those that
 * were missing, as many at a time as the process may use CPUs, four at most.  It says nothing of what
 * fails: whoever then asks for that kernel meets the failure again, alone, and can name it.
 */
void pawl_cpu_make_missing(struct pawl_cpu_kernels *kernels, const struct pawl_program *program,
	enum pawl_cpu_variant variant, const struct pawl_cpu_kernel **found);

#endif
