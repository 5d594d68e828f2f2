/*
 * Weights in the layout of the kernels, made once for each matrix of the host and shared by all
 * contexts.  A matrix is known by where it lies, its type and its dims; whatever writes to that
 * memory or frees it says so here, and what was made of it is forgotten.  Any thread.
 */
#ifndef PAWL_PLUGINS_GGML_PACKS_H
#define PAWL_PLUGINS_GGML_PACKS_H

#include "codegen/target.h"
#include "runtime/storage.h"

/*
 * The packed form of the row-major matrix at rows, of the given type (layout tile16); the caller gets
 * a reference.  may_drop: the memory is a file's, whose pages the system may take back.
 */
enum pawl_status pawl_ggml_packs_get(const void *rows, const struct pawl_type *type,
	struct pawl_team *team, bool may_drop, struct pawl_storage **out, struct pawl_error *err);

/* The memory has new bytes, or none any more. */
void pawl_ggml_packs_forget(const void *bytes, size_t n_bytes);

/* Grows whenever something was forgotten: who holds a packed form asks again. */
uint64_t pawl_ggml_packs_epoch(void);

/* Bytes of all packed forms there are. */
int64_t pawl_ggml_packs_bytes(void);

#endif
