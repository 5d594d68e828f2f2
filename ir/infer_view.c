/* Rules of the ops that only move or convert elements. */
#include "ir/infer_rules.h"

#include <inttypes.h>

/* The first symbolic axis, or the rank. */
static int
symbolic_axis(const struct pawl_type *type)
{
	int i;

	for (i = 0; i < type->rank; i++) {
		if (type->dim[i].sym >= 0)
			break;
	}
	return i;
}

/* Product of constant dims; at most 2^40 in a valid type. */
static int64_t
elems_between(const struct pawl_type *type, int first, int last)
{
	int64_t n = 1;
	int i;

	for (i = first; i < last; i++)
		n *= type->dim[i].base;
	return n;
}

static int
n_symbolic(const struct pawl_type *type)
{
	int i, n = 0;

	for (i = 0; i < type->rank; i++)
		n += type->dim[i].sym >= 0;
	return n;
}

static enum pawl_status
check_same_dtype(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0);

	if (c->type->dtype == x->dtype && c->type->layout == PAWL_LAYOUT_ROWS)
		return PAWL_OK;
	return pawl_infer_fail(c, "the result must be %s in rows", pawl_dtype_name(x->dtype));
}

/* A symbolic axis stays, with as many elements before it and behind it. */
static enum pawl_status
check_reshaped(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0), *y = c->type;
	int at_x = symbolic_axis(x), at_y = symbolic_axis(y);
	int64_t before_x, before_y;

	if (n_symbolic(x) > 1 || n_symbolic(x) != n_symbolic(y))
		return pawl_infer_fail(c, "one symbolic axis at most, which stays");
	if (n_symbolic(x) == 1 && !pawl_dim_equal(x->dim[at_x], y->dim[at_y]))
		return pawl_infer_fail(c, "the symbolic dim does not stay as it is");
	before_x = elems_between(x, 0, at_x);
	before_y = elems_between(y, 0, at_y);
	if (n_symbolic(x) == 0 && before_x != before_y)
		return pawl_infer_fail(
			c, "%" PRId64 " elements do not make %" PRId64, before_x, before_y);
	if (before_x != before_y ||
		elems_between(x, at_x + 1, x->rank) != elems_between(y, at_y + 1, y->rank))
		return pawl_infer_fail(c, "elements move across the symbolic axis");
	return PAWL_OK;
}

enum pawl_status
pawl_infer_reshape(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0), *y = c->type;

	if (pawl_infer_check(c, 0, PAWL_DTYPES_ALL, PAWL_ANY_RANK) || check_same_dtype(c) ||
		check_reshaped(c))
		return PAWL_INVALID_GRAPH;
	if (pawl_dtype_is_blocked(x->dtype) && pawl_type_row_length(x) != pawl_type_row_length(y))
		return pawl_infer_fail(
			c, "the last dim of %s must stay as it is", pawl_dtype_name(x->dtype));
	return PAWL_OK;
}

enum pawl_status
pawl_infer_permute(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0);
	const int64_t *perm = c->attrs->perm;
	unsigned seen = 0;
	int i;

	if (pawl_infer_check(c, 0, PAWL_DTYPES_ALL, PAWL_ANY_RANK))
		return PAWL_INVALID_GRAPH;
	*c->type = *x;
	for (i = 0; i < x->rank; i++) {
		if (perm[i] < 0 || perm[i] >= x->rank || (seen >> perm[i] & 1))
			return pawl_infer_fail(c, "perm is no permutation of %d axes", x->rank);
		seen |= 1u << perm[i];
		c->type->dim[i] = x->dim[perm[i]];
	}
	if (pawl_dtype_is_blocked(x->dtype) && perm[x->rank - 1] != x->rank - 1)
		return pawl_infer_fail(
			c, "the last axis of %s must stay last", pawl_dtype_name(x->dtype));
	return PAWL_OK;
}

/* A symbolic axis is kept whole, which start = 0 and stop = 0 say. */
enum pawl_status
pawl_infer_slice(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0);
	int block = pawl_dtype_info(x->dtype)->block;
	int i;

	if (pawl_infer_check(c, 0, PAWL_DTYPES_ALL, PAWL_ANY_RANK))
		return PAWL_INVALID_GRAPH;
	*c->type = *x;
	for (i = 0; i < x->rank; i++) {
		int64_t start = c->attrs->start[i], stop = c->attrs->stop[i];

		if (x->dim[i].sym >= 0) {
			if (start || stop)
				return pawl_infer_fail(
					c, "symbolic axis %d must stay whole (start 0, stop 0)", i);
			continue;
		}
		if (start < 0 || start >= stop || stop > x->dim[i].base)
			return pawl_infer_fail(c,
				"%" PRId64 " .. %" PRId64 " is no part of axis %d of %" PRId64,
				start, stop, i, x->dim[i].base);
		if (i == x->rank - 1 && (start % block || stop % block))
			return pawl_infer_fail(
				c, "the last axis is not cut at multiples of %d", block);
		c->type->dim[i] = pawl_dim_const(stop - start);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_infer_broadcast(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0), *y = c->type;
	int lead = y->rank - x->rank, i;

	if (pawl_infer_check(c, 0, PAWL_DTYPES_ALL, PAWL_ANY_RANK) || check_same_dtype(c))
		return PAWL_INVALID_GRAPH;
	if (lead < 0)
		return pawl_infer_fail(c, "rank %d does not broadcast to %d", x->rank, y->rank);
	for (i = 0; i < x->rank; i++) {
		bool repeated = pawl_dim_equal(x->dim[i], pawl_dim_const(1));

		if (!repeated && !pawl_dim_equal(x->dim[i], y->dim[lead + i]))
			return pawl_infer_fail(
				c, "axis %d of the input is neither 1 nor that of the result", i);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_infer_cast(const struct pawl_infer_call *c)
{
	const struct pawl_type *x = pawl_infer_in(c, 0);
	enum pawl_dtype dtype = c->attrs->dtype;

	if (pawl_infer_check(c, 0, PAWL_DTYPES_PLAIN, PAWL_ANY_RANK))
		return PAWL_INVALID_GRAPH;
	if (!pawl_dtype_is_float(dtype) ||
		(dtype != PAWL_DTYPE_F32 && !pawl_dtype_is_float(x->dtype)))
		return pawl_infer_fail(c, "there is no cast from %s to %s",
			pawl_dtype_name(x->dtype), pawl_dtype_name(dtype));
	*c->type = *x;
	c->type->dtype = dtype;
	return PAWL_OK;
}

enum pawl_status
pawl_infer_concat(const struct pawl_infer_call *c)
{
	const struct pawl_type *first = pawl_infer_in(c, 0);
	int64_t axis = c->attrs->axis;
	int i, j;

	if (axis < 0 || axis >= first->rank)
		return pawl_infer_fail(
			c, "axis %" PRId64 " does not exist in rank %d", axis, first->rank);
	*c->type = *first;
	c->type->dim[axis] = pawl_dim_const(0);
	for (i = 0; i < c->n_inputs; i++) {
		const struct pawl_type *x = pawl_infer_in(c, i);

		if (pawl_infer_check(c, i, PAWL_DTYPES_PLAIN & (1u << first->dtype), first->rank))
			return PAWL_INVALID_GRAPH;
		for (j = 0; j < x->rank; j++) {
			if (j != axis &&
				pawl_infer_check_dim(c, i, j, first->dim[j], "that of input 0"))
				return PAWL_INVALID_GRAPH;
		}
		if (x->dim[axis].sym >= 0)
			return pawl_infer_fail(
				c, "dim %" PRId64 " of input %d is symbolic", axis, i);
		c->type->dim[axis].base += x->dim[axis].base;
	}
	return PAWL_OK;
}
