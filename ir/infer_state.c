/* Rules of the ops that own or write storage as such: const, alloc, pack and the writes. */
#include "ir/infer_rules.h"

#include <inttypes.h>
#include <math.h>

/* Integers only, within these bounds; in i64, those where every integer is a double. */
static const struct {
	double low, high;
} int_ranges[PAWL_N_DTYPES] = {
	[PAWL_DTYPE_I8] = {INT8_MIN, INT8_MAX},
	[PAWL_DTYPE_I32] = {INT32_MIN, INT32_MAX},
	[PAWL_DTYPE_I64] = {-0x1p53, 0x1p53},
	[PAWL_DTYPE_U32] = {0, UINT32_MAX},
};

static bool
is_representable(enum pawl_dtype dtype, double value)
{
	if (pawl_dtype_is_float(dtype))
		return true;
	return value >= int_ranges[dtype].low && value <= int_ranges[dtype].high &&
	       value == floor(value) && !(value == 0 && signbit(value));
}

static enum pawl_status
check_literal(const struct pawl_infer_call *c)
{
	const struct pawl_attrs *attrs = c->attrs;
	uint32_t i;

	if (!(PAWL_DTYPES_PLAIN >> c->type->dtype & 1))
		return pawl_infer_fail(c, "a literal may not have element type %s",
			pawl_dtype_name(c->type->dtype));
	if (attrs->n_values != 1 && attrs->n_values != pawl_type_elems(c->type))
		return pawl_infer_fail(c, "%" PRIu32 " values for %" PRId64 " elements",
			attrs->n_values, pawl_type_elems(c->type));
	for (i = 0; i < attrs->n_values; i++) {
		if (!is_representable(c->type->dtype, attrs->values[i]))
			return pawl_infer_fail(c, "value %" PRIu32 " is no %s", i,
				pawl_dtype_name(c->type->dtype));
	}
	return PAWL_OK;
}

enum pawl_status
pawl_infer_const_(const struct pawl_infer_call *c)
{
	static const unsigned layouts[PAWL_N_ROLES] = {
		[PAWL_ROLE_WEIGHT] = PAWL_LAYOUT_BIT(ROWS) | PAWL_LAYOUT_BIT(TILE16),
		[PAWL_ROLE_DATA] = PAWL_LAYOUT_BIT(ROWS),
		[PAWL_ROLE_KV] = PAWL_LAYOUT_BIT(ROWS) | PAWL_LAYOUT_BIT(K16),
		[PAWL_ROLE_LITERAL] = PAWL_LAYOUT_BIT(ROWS),
	};
	enum pawl_role role = c->attrs->role;
	const char *word = pawl_attr_word(PAWL_ATTR_role, role);

	if (PAWL_DTYPES_ACT >> c->type->dtype & 1)
		return pawl_infer_fail(
			c, "may not have element type %s", pawl_dtype_name(c->type->dtype));
	if (!(layouts[role] >> c->type->layout & 1))
		return pawl_infer_fail(c, "role %s may not have layout %s", word,
			pawl_layout_name(c->type->layout));
	if (role != PAWL_ROLE_DATA && !pawl_type_is_static(c->type))
		return pawl_infer_fail(c, "role %s may not have a symbolic dim", word);
	if (role == PAWL_ROLE_LITERAL)
		return check_literal(c);
	if (c->attrs->n_values)
		return pawl_infer_fail(c, "role %s may not have values", word);
	return PAWL_OK;
}

enum pawl_status
pawl_infer_alloc(const struct pawl_infer_call *c)
{
	if (c->type->layout == PAWL_LAYOUT_TILE16)
		return pawl_infer_fail(c, "may not have layout tile16");
	return PAWL_OK;
}

/* zero_fill keeps the storage as it is; copy makes rows of plain elements. */
enum pawl_status
pawl_infer_same(const struct pawl_infer_call *c)
{
	unsigned layouts = PAWL_LAYOUT_BIT(ROWS) | PAWL_LAYOUT_BIT(K16);
	bool in_place = pawl_op_has(c->op, PAWL_OPF_INPLACE);

	if (pawl_infer_check_layout(
		    c, 0, in_place ? PAWL_DTYPES_ALL : PAWL_DTYPES_PLAIN, PAWL_ANY_RANK, layouts))
		return PAWL_INVALID_GRAPH;
	*c->type = *pawl_infer_in(c, 0);
	if (!in_place)
		c->type->layout = PAWL_LAYOUT_ROWS;
	return PAWL_OK;
}

/* Whether length elements from start on lie in dim, whatever the symbols are. */
static bool
fits(const struct pawl_graph *graph, int64_t start, struct pawl_dim length, struct pawl_dim dim)
{
	if (start == 0 && pawl_dim_equal(length, dim))
		return true;
	return start >= 0 && start <= pawl_dim_min(graph, dim) - pawl_dim_max(graph, length);
}

/* What the slab writes share: inputs 0 and 1, and start on every axis but attribute `axis`. */
static enum pawl_status
check_slab(const struct pawl_infer_call *c)
{
	const struct pawl_type *dest = pawl_infer_in(c, 0), *src = pawl_infer_in(c, 1);
	unsigned layouts = PAWL_LAYOUT_BIT(ROWS) | PAWL_LAYOUT_BIT(K16);
	int block = pawl_dtype_info(dest->dtype)->block;
	int64_t axis = c->attrs->axis;
	int i;

	if (pawl_infer_check_layout(c, 0, PAWL_DTYPES_ALL, PAWL_ANY_RANK, layouts) ||
		pawl_infer_check(c, 1, 1u << dest->dtype, dest->rank))
		return PAWL_INVALID_GRAPH;
	if (axis >= dest->rank)
		return pawl_infer_fail(
			c, "axis %" PRId64 " does not exist in rank %d", axis, dest->rank);
	if (axis >= 0 && c->attrs->start[axis])
		return pawl_infer_fail(
			c, "start has an entry for axis %" PRId64 ", whose start varies", axis);
	for (i = 0; i < dest->rank; i++) {
		if (!fits(c->graph, c->attrs->start[i], src->dim[i], dest->dim[i]))
			return pawl_infer_fail(
				c, "the slab leaves the destination along axis %d", i);
	}
	if (block > 1 && (axis == dest->rank - 1 || c->attrs->start[dest->rank - 1] % block))
		return pawl_infer_fail(c, "the last start is no multiple of %d, the block of %s",
			block, pawl_dtype_name(dest->dtype));
	*c->type = *dest;
	return PAWL_OK;
}

enum pawl_status
pawl_infer_write_slice(const struct pawl_infer_call *c)
{
	int32_t sym = c->attrs->sym;
	int n_starts = (c->n_inputs == 3) + (sym >= 0);

	if (check_slab(c))
		return PAWL_INVALID_GRAPH;
	if (c->attrs->axis < 0 && n_starts)
		return pawl_infer_fail(c, "a start is given but no axis");
	if (c->attrs->axis >= 0 && n_starts != 1)
		return pawl_infer_fail(
			c, "axis wants its start from input 2 or from sym, one of them");
	if (sym >= 0 && c->graph->symbols[sym].min < 0)
		return pawl_infer_fail(
			c, "symbol $%s may be negative", c->graph->symbols[sym].name);
	if (sym >= 0 && c->graph->symbols[sym].max >
				pawl_dim_max(c->graph, pawl_infer_in(c, 0)->dim[c->attrs->axis]))
		return pawl_infer_fail(
			c, "symbol $%s may leave the destination", c->graph->symbols[sym].name);
	if (c->n_inputs == 3)
		return pawl_infer_check(c, 2, PAWL_DTYPE_BIT(I64), 0);
	return PAWL_OK;
}

enum pawl_status
pawl_infer_write_rotating(const struct pawl_infer_call *c)
{
	int64_t axis = c->attrs->axis, modulus = c->attrs->modulus;

	if (axis < 0)
		return pawl_infer_fail(c, "has no axis");
	if (check_slab(c) || pawl_infer_check(c, 2, PAWL_DTYPE_BIT(I64), 0))
		return PAWL_INVALID_GRAPH;
	if (modulus < pawl_dim_max(c->graph, pawl_infer_in(c, 1)->dim[axis]) ||
		modulus > pawl_dim_min(c->graph, pawl_infer_in(c, 0)->dim[axis]))
		return pawl_infer_fail(c,
			"modulus %" PRId64 " is below the slab or above the destination "
			"along axis %" PRId64,
			modulus, axis);
	return PAWL_OK;
}

enum pawl_status
pawl_infer_write_rows(const struct pawl_infer_call *c)
{
	const struct pawl_type *dest = pawl_infer_in(c, 0);
	unsigned layouts = PAWL_LAYOUT_BIT(ROWS) | PAWL_LAYOUT_BIT(K16);
	int axis = pawl_write_rows_axis(c->attrs), i;

	if (pawl_infer_check_layout(c, 0, PAWL_DTYPES_ALL, PAWL_ANY_RANK, layouts) ||
		pawl_infer_check(c, 1, 1u << dest->dtype, dest->rank) ||
		pawl_infer_check(c, 2, PAWL_DTYPE_BIT(I64), 1))
		return PAWL_INVALID_GRAPH;
	if (axis >= dest->rank)
		return pawl_infer_fail(c, "axis %d does not exist in rank %d", axis, dest->rank);
	if (axis && axis == dest->rank - 1)
		return pawl_infer_fail(c, "axis %d is the last one, within the rows", axis);
	if (pawl_dtype_is_blocked(dest->dtype) && dest->rank == 1)
		return pawl_infer_fail(c, "the destination has no rows");
	for (i = 0; i < dest->rank; i++) {
		if (i != axis &&
			pawl_infer_check_dim(c, 1, i, dest->dim[i], "that of the destination"))
			return PAWL_INVALID_GRAPH;
	}
	if (pawl_infer_check_dim(c, 2, 0, pawl_infer_in(c, 1)->dim[axis], "the number of rows"))
		return PAWL_INVALID_GRAPH;
	*c->type = *dest;
	return PAWL_OK;
}

enum pawl_status
pawl_infer_pack(const struct pawl_infer_call *c)
{
	const struct pawl_node *x = c->inputs[0];
	struct pawl_operand_text operand;

	if (x->op != PAWL_OP_CONST || x->attrs.role != PAWL_ROLE_WEIGHT)
		return pawl_infer_fail(c, "%s is no weight", pawl_infer_operand(c, 0, &operand));
	if (pawl_infer_check(c, 0, PAWL_DTYPES_FLOAT | PAWL_DTYPES_QUANT, 2))
		return PAWL_INVALID_GRAPH;
	if (c->type->dtype != x->type.dtype || !pawl_type_same_dims(c->type, &x->type) ||
		c->type->layout != PAWL_LAYOUT_TILE16)
		return pawl_infer_fail(c, "the result must be the weight in layout tile16");
	return PAWL_OK;
}
