/*
 * Loads the relocatable x86-64 ELF objects that the CPU compiler writes: sections of code and
 * constants, relocations PC32, PLT32 and 64 between them, no undefined symbol.  Whatever else
 * an object holds is refused (PAWL_INTERNAL), as it cannot come from our compiler.
 */
#ifndef PAWL_CODEGEN_ELF_LOAD_H
#define PAWL_CODEGEN_ELF_LOAD_H

#include "codegen/code_memory.h"

/*
 * Puts the object's code into fresh memory of the given kind and finds n_names functions, all of
 * which must be there.  The object is not needed afterwards.  On failure nothing is held.
 */
enum pawl_status pawl_elf_load(const void *object, size_t size, enum pawl_code_memory_kind kind,
	const char *const *names, int n_names, void **functions, struct pawl_code_memory *memory,
	struct pawl_error *err);

#endif
