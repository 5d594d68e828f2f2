/*
 * The identity of a step's kernel: everything that decides its code, as text.  Steps of equal
 * keys share a kernel: names, slots, byte offsets and limits are left out, so that all layers of
 * a model need one; so are the capacity and what follows from it (the pitch of planes, the length of
 * keys and values that a symbol bounds), so that a cache may grow.
 */
#ifndef PAWL_CODEGEN_KERNEL_KEY_H
#define PAWL_CODEGEN_KERNEL_KEY_H

#include "codegen/cpu_variant.h"
#include "ir/status.h"
#include "passes/step.h"

/* To be freed; NULL when memory is exhausted. */
char *pawl_kernel_key(const struct pawl_program *program, const struct pawl_step *step,
	enum pawl_cpu_variant variant);
/* FNV-1a over a key, for tables and names of dumps. */
uint64_t pawl_kernel_key_hash(const char *key);

#endif
