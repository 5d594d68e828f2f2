/* The templates: each writes all phases of e->step. */
#ifndef PAWL_CODEGEN_LLVM_TEMPLATES_H
#define PAWL_CODEGEN_LLVM_TEMPLATES_H

#include "codegen/llvm/emit.h"

/* MAP, GATHER, BATCH. */
void pawl_emit_map(struct pawl_emit *e);
void pawl_emit_rows(struct pawl_emit *e);
void pawl_emit_matmul(struct pawl_emit *e);
void pawl_emit_attend(struct pawl_emit *e);

#endif
