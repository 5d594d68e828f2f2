/*
 * What the inference rules share: one call's state, checks of an operand, messages.  A rule is
 * pawl_infer_<rule>, named in ir/ops.def; it sets *c->type (or checks it, for TYPED ops).
 * Arity, attributes that the op lacks, and the result type's own validity are pawl_infer's.
 */
#ifndef PAWL_IR_INFER_RULES_H
#define PAWL_IR_INFER_RULES_H

#include "ir/infer.h"

struct pawl_infer_call {
	const struct pawl_graph *graph;
	enum pawl_op op;
	struct pawl_node *const *inputs;
	int n_inputs;
	const struct pawl_attrs *attrs;
	struct pawl_type *type;
	struct pawl_error *err;
};

#define PAWL_OP_ROW(id, name, min, max, infer, flags, attrs, doc)                                  \
	enum pawl_status pawl_infer_##infer(const struct pawl_infer_call *c);
#include "ir/ops.def"

/* Sets of dtypes, as bits. */
#define PAWL_DTYPE_BIT(id) (1u << PAWL_DTYPE_##id)
#define PAWL_DTYPES_FLOAT (PAWL_DTYPE_BIT(F32) | PAWL_DTYPE_BIT(F16) | PAWL_DTYPE_BIT(BF16))
#define PAWL_DTYPES_INT                                                                            \
	(PAWL_DTYPE_BIT(I8) | PAWL_DTYPE_BIT(I32) | PAWL_DTYPE_BIT(I64) | PAWL_DTYPE_BIT(U32))
#define PAWL_DTYPES_PLAIN (PAWL_DTYPES_FLOAT | PAWL_DTYPES_INT)
/* What attention reads keys and values in. */
#define PAWL_DTYPES_CACHE (PAWL_DTYPES_FLOAT | PAWL_DTYPE_BIT(Q8_0))
#define PAWL_DTYPES_ACT (PAWL_DTYPE_BIT(A16) | PAWL_DTYPE_BIT(A8))
#define PAWL_DTYPES_ALL ((1u << PAWL_N_DTYPES) - 1)
#define PAWL_DTYPES_QUANT (PAWL_DTYPES_ALL & ~(PAWL_DTYPES_PLAIN | PAWL_DTYPES_ACT))

/* Bits of enum pawl_layout. */
#define PAWL_LAYOUT_BIT(id) (1u << PAWL_LAYOUT_##id)

enum { PAWL_ANY_RANK = -1 };

/* PAWL_INVALID_GRAPH with "<op>: " in front of the text. */
enum pawl_status pawl_infer_fail(const struct pawl_infer_call *c, const char *format, ...)
	PAWL_PRINTF(2, 3);

static inline const struct pawl_type *
pawl_infer_in(const struct pawl_infer_call *c, int i)
{
	return &c->inputs[i]->type;
}

/* "input 1 (%w)"; the text lives as long as *buffer. */
struct pawl_operand_text {
	char text[96];
};
const char *pawl_infer_operand(
	const struct pawl_infer_call *c, int i, struct pawl_operand_text *buffer);

/* Element type in the set, rank as said (or PAWL_ANY_RANK), layout in the set. */
enum pawl_status pawl_infer_check_layout(
	const struct pawl_infer_call *c, int i, unsigned dtypes, int rank, unsigned layouts);
/* The same for row-major operands. */
enum pawl_status pawl_infer_check(
	const struct pawl_infer_call *c, int i, unsigned dtypes, int rank);
/* Dim `axis` of operand i is `dim`, which `of` names. */
enum pawl_status pawl_infer_check_dim(
	const struct pawl_infer_call *c, int i, int axis, struct pawl_dim dim, const char *of);
/* At least one dim, the last of them constant. */
enum pawl_status pawl_infer_check_row(const struct pawl_infer_call *c, int i);
/* No symbolic dim. */
enum pawl_status pawl_infer_check_static(const struct pawl_infer_call *c, int i);

#endif
