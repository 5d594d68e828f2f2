/* Rules of the ops that compute. */
#include "ir/infer_rules.h"

#include <inttypes.h>

#define F32 PAWL_DTYPE_BIT(F32)

/* Arithmetic is f32: other types enter through cast, gather, matmul and attention. */
enum pawl_status
pawl_infer_unary(const struct pawl_infer_call *c)
{
	if (pawl_infer_check(c, 0, F32, PAWL_ANY_RANK))
		return PAWL_INVALID_GRAPH;
	if (pawl_op_has(c->op, PAWL_OPF_ROW) && pawl_infer_check_row(c, 0))
		return PAWL_INVALID_GRAPH;
	*c->type = *pawl_infer_in(c, 0);
	return PAWL_OK;
}

enum pawl_status
pawl_infer_binary(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0);
	int i;

	if (pawl_infer_check(c, 0, F32, PAWL_ANY_RANK) || pawl_infer_check(c, 1, F32, x->rank))
		return PAWL_INVALID_GRAPH;
	for (i = 0; i < x->rank; i++) {
		if (pawl_infer_check_dim(c, 1, i, x->dim[i], "that of input 0"))
			return PAWL_INVALID_GRAPH;
	}
	*c->type = *x;
	return PAWL_OK;
}

enum pawl_status
pawl_infer_gather(const struct pawl_infer_call *c)
{
	const struct pawl_type *table = pawl_infer_in(c, 0), *ids = pawl_infer_in(c, 1);

	if (pawl_infer_check(c, 0, PAWL_DTYPES_FLOAT | PAWL_DTYPES_QUANT, 2) ||
		pawl_infer_check_row(c, 0) ||
		pawl_infer_check(c, 1, PAWL_DTYPE_BIT(U32) | PAWL_DTYPE_BIT(I32), 1))
		return PAWL_INVALID_GRAPH;
	*c->type = (struct pawl_type){
		.dtype = PAWL_DTYPE_F32, .rank = 2, .dim = {ids->dim[0], table->dim[1]}};
	return PAWL_OK;
}

enum pawl_status
pawl_infer_matmul(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0), *w = pawl_infer_in(c, 1);
	unsigned weights = PAWL_DTYPES_FLOAT | PAWL_DTYPES_QUANT;

	if (PAWL_DTYPES_ACT >> x->dtype & 1)
		weights = PAWL_DTYPES_QUANT;
	if (pawl_infer_check(c, 0, F32 | PAWL_DTYPES_ACT, PAWL_ANY_RANK) ||
		pawl_infer_check_row(c, 0) ||
		pawl_infer_check_layout(
			c, 1, weights, 2, PAWL_LAYOUT_BIT(ROWS) | PAWL_LAYOUT_BIT(TILE16)) ||
		pawl_infer_check_static(c, 1) ||
		pawl_infer_check_dim(c, 1, 1, x->dim[x->rank - 1], "the last dim of input 0"))
		return PAWL_INVALID_GRAPH;
	*c->type = *x;
	c->type->dtype = PAWL_DTYPE_F32;
	c->type->dim[x->rank - 1] = w->dim[0];
	return PAWL_OK;
}

enum pawl_status
pawl_infer_batch_matmul(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0), *z = pawl_infer_in(c, 1);

	if (pawl_infer_check(c, 0, F32, 3) || pawl_infer_check_row(c, 0) ||
		pawl_infer_check(c, 1, F32 | PAWL_DTYPE_BIT(F16), 3) ||
		pawl_infer_check_dim(c, 1, 0, x->dim[0], "that of input 0") ||
		pawl_infer_check_dim(c, 1, 2, x->dim[2], "that of input 0"))
		return PAWL_INVALID_GRAPH;
	*c->type = *x;
	c->type->dim[2] = z->dim[1];
	return PAWL_OK;
}

static enum pawl_status
check_norm(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0);
	int i;

	if (pawl_infer_check(c, 0, F32, PAWL_ANY_RANK) || pawl_infer_check_row(c, 0))
		return PAWL_INVALID_GRAPH;
	for (i = 1; i < c->n_inputs; i++) {
		if (pawl_infer_check(c, i, F32, 1) ||
			pawl_infer_check_dim(
				c, i, 0, x->dim[x->rank - 1], "the last dim of input 0"))
			return PAWL_INVALID_GRAPH;
	}
	*c->type = *x;
	return PAWL_OK;
}

enum pawl_status
pawl_infer_rms_norm(const struct pawl_infer_call *c)
{
	return check_norm(c);
}

enum pawl_status
pawl_infer_layer_norm(const struct pawl_infer_call *c)
{
	return check_norm(c);
}

enum pawl_status
pawl_infer_quantize(const struct pawl_infer_call *c)
{
	enum pawl_dtype dtype = c->attrs->dtype;

	if (pawl_infer_check(c, 0, F32, PAWL_ANY_RANK))
		return PAWL_INVALID_GRAPH;
	if (!((PAWL_DTYPES_ACT | PAWL_DTYPE_BIT(Q8_0)) >> dtype & 1))
		return pawl_infer_fail(
			c, "dtype %s is none of a16, a8 and q8_0", pawl_dtype_name(dtype));
	*c->type = *pawl_infer_in(c, 0);
	c->type->dtype = dtype;
	return PAWL_OK;
}

enum pawl_status
pawl_infer_rope(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0), *cos = pawl_infer_in(c, 1);
	struct pawl_dim width = cos->dim[1];

	if (pawl_infer_check(c, 0, F32, 3) || pawl_infer_check_row(c, 0) ||
		pawl_infer_check(c, 1, F32, 2) || pawl_infer_check_row(c, 1) ||
		pawl_infer_check_dim(c, 1, 0, x->dim[0], "that of input 0") ||
		pawl_infer_check(c, 2, F32, 2) ||
		pawl_infer_check_dim(c, 2, 0, cos->dim[0], "that of input 1") ||
		pawl_infer_check_dim(c, 2, 1, width, "that of input 1"))
		return PAWL_INVALID_GRAPH;
	if (width.base % 2 || width.base > x->dim[2].base)
		return pawl_infer_fail(c,
			"width %" PRId64 " is no even number up to the head size, %" PRId64,
			width.base, x->dim[2].base);
	*c->type = *x;
	return PAWL_OK;
}

static enum pawl_status
check_cache(const struct pawl_infer_call *c)
{
	const struct pawl_type *q = pawl_infer_in(c, 0), *k = pawl_infer_in(c, 1);
	const struct pawl_type *v = pawl_infer_in(c, 2);

	if (pawl_infer_check_layout(
		    c, 1, PAWL_DTYPES_CACHE, 4, PAWL_LAYOUT_BIT(ROWS) | PAWL_LAYOUT_BIT(K16)) ||
		pawl_infer_check_static(c, 1) || pawl_infer_check(c, 2, PAWL_DTYPES_CACHE, 4) ||
		pawl_infer_check_static(c, 2) ||
		pawl_infer_check_dim(c, 1, 0, pawl_dim_const(1), "1") ||
		pawl_infer_check_dim(c, 1, 3, q->dim[2], "the head size of input 0") ||
		pawl_infer_check_dim(c, 2, 0, pawl_dim_const(1), "1") ||
		pawl_infer_check_dim(c, 2, 1, k->dim[1], "that of input 1") ||
		pawl_infer_check_dim(c, 2, 2, k->dim[2], "that of input 1"))
		return PAWL_INVALID_GRAPH;
	if (q->dim[1].sym >= 0 || q->dim[1].base % k->dim[1].base)
		return pawl_infer_fail(c, "%" PRId64 " query heads do not share %" PRId64 " heads",
			q->dim[1].base, k->dim[1].base);
	*c->type = *q;
	c->type->dim[2] = v->dim[3];
	return PAWL_OK;
}

enum pawl_status
pawl_infer_attention(const struct pawl_infer_call *c)
{
	const struct pawl_type *q = pawl_infer_in(c, 0), *k = pawl_infer_in(c, 1);
	int32_t sym = c->attrs->sym;

	if (pawl_infer_check(c, 0, F32, 3) || pawl_infer_check_row(c, 0) || check_cache(c) ||
		pawl_infer_check(c, 3, PAWL_DTYPE_BIT(I64), 0))
		return PAWL_INVALID_GRAPH;
	if (c->n_inputs == 5 &&
		(pawl_infer_check(c, 4, F32, 2) ||
			pawl_infer_check_dim(c, 4, 0, q->dim[0], "that of input 0") ||
			pawl_infer_check_dim(c, 4, 1, k->dim[2], "the positions of input 1")))
		return PAWL_INVALID_GRAPH;
	if (sym >= 0 && c->graph->symbols[sym].max > k->dim[2].base)
		return pawl_infer_fail(c,
			"symbol $%s may exceed the %" PRId64 " positions of input 1",
			c->graph->symbols[sym].name, k->dim[2].base);
	return PAWL_OK;
}

/* A table may name the blocks of the cache in any order and more than once. */
enum pawl_status
pawl_infer_paged_attention(const struct pawl_infer_call *c)
{
	const struct pawl_type *q = pawl_infer_in(c, 0), *k = pawl_infer_in(c, 1);
	const struct pawl_type *table = pawl_infer_in(c, 4);
	int64_t block = c->attrs->block, rows = q->dim[0].base, sequences, capacity;
	int32_t sym = c->attrs->sym;

	if (pawl_infer_check(c, 0, F32, 3) || pawl_infer_check_row(c, 0) || check_cache(c) ||
		pawl_infer_check(c, 3, PAWL_DTYPE_BIT(I64), 1) ||
		pawl_infer_check_dim(c, 3, 0, q->dim[0], "that of input 0") ||
		pawl_infer_check(c, 4, PAWL_DTYPE_BIT(U32) | PAWL_DTYPE_BIT(I32), 2) ||
		pawl_infer_check_static(c, 4))
		return PAWL_INVALID_GRAPH;
	sequences = table->dim[0].base;
	if (sequences != 1 && (q->dim[0].sym >= 0 || rows % sequences))
		return pawl_infer_fail(c, "the rows are no multiple of %" PRId64 " sequences",
			sequences);
	if (block < 1 || block % 16 || k->dim[2].base % block)
		return pawl_infer_fail(c,
			"block %" PRId64 " is no multiple of 16 that divides %" PRId64 " positions",
			block, k->dim[2].base);
	if (__builtin_mul_overflow(table->dim[1].base, block, &capacity))
		return pawl_infer_fail(c, "the positions of a table overflow");
	if (sym >= 0 && c->graph->symbols[sym].max > capacity)
		return pawl_infer_fail(c,
			"symbol $%s may exceed the %" PRId64 " positions of a table",
			c->graph->symbols[sym].name, capacity);
	return PAWL_OK;
}

enum pawl_status
pawl_infer_argmax(const struct pawl_infer_call *c)
{
	if (pawl_infer_check(c, 0, F32, PAWL_ANY_RANK) || pawl_infer_check_row(c, 0))
		return PAWL_INVALID_GRAPH;
	*c->type = *pawl_infer_in(c, 0);
	c->type->dtype = PAWL_DTYPE_I32;
	c->type->dim[--c->type->rank] = (struct pawl_dim){0, 0, -1};
	return PAWL_OK;
}
