/*
 * Memory that machine code is put into.  It is never writable and executable at once: it is
 * filled through `write`, then sealed, from when on it runs at `run`.
 */
#ifndef PAWL_CODEGEN_CODE_MEMORY_H
#define PAWL_CODEGEN_CODE_MEMORY_H

#include <stddef.h>

#include "ir/status.h"

enum pawl_code_memory_kind {
	PAWL_CODE_MEMORY_PROTECT, /* one mapping, writable first, executable later */
	PAWL_CODE_MEMORY_TWICE    /* one anonymous file mapped twice, for systems that refuse the
				     former */
};

struct pawl_code_memory {
	enum pawl_code_memory_kind kind;
	char *write; /* NULL once sealed */
	char *run;   /* address that the code will have */
	size_t bytes;
};

/* PAWL_ENVIRONMENT when the system refuses. */
enum pawl_status pawl_code_memory_init(struct pawl_code_memory *memory,
	enum pawl_code_memory_kind kind, size_t bytes, struct pawl_error *err);
enum pawl_status pawl_code_memory_seal(struct pawl_code_memory *memory, struct pawl_error *err);
void pawl_code_memory_release(struct pawl_code_memory *memory);

#endif
