#include "ir/infer.h"

#include "ir/infer_rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const int64_t max_dim = (int64_t)1 << 40;

enum pawl_status
pawl_infer_fail(const struct pawl_infer_call *c, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return pawl_fail(c->err, PAWL_INVALID_GRAPH, "%s: %s", pawl_op_name(c->op), text);
}

const char *
pawl_infer_operand(const struct pawl_infer_call *c, int i, struct pawl_operand_text *buffer)
{
	if (c->inputs[i]->name)
		snprintf(buffer->text, sizeof(buffer->text), "input %d (%%%.64s)", i,
			c->inputs[i]->name);
	else
		snprintf(buffer->text, sizeof(buffer->text), "input %d", i);
	return buffer->text;
}

enum pawl_status
pawl_infer_check_layout(
	const struct pawl_infer_call *c, int i, unsigned dtypes, int rank, unsigned layouts)
{
	const struct pawl_type *type = pawl_infer_in(c, i);
	struct pawl_operand_text operand;

	if (!(dtypes >> type->dtype & 1))
		return pawl_infer_fail(c, "%s may not have element type %s",
			pawl_infer_operand(c, i, &operand), pawl_dtype_name(type->dtype));
	if (rank != PAWL_ANY_RANK && type->rank != rank)
		return pawl_infer_fail(c, "%s has rank %d, not %d",
			pawl_infer_operand(c, i, &operand), type->rank, rank);
	if (!(layouts >> type->layout & 1))
		return pawl_infer_fail(c, "%s may not have layout %s",
			pawl_infer_operand(c, i, &operand), pawl_layout_name(type->layout));
	return PAWL_OK;
}

enum pawl_status
pawl_infer_check(const struct pawl_infer_call *c, int i, unsigned dtypes, int rank)
{
	return pawl_infer_check_layout(c, i, dtypes, rank, PAWL_LAYOUT_BIT(ROWS));
}

enum pawl_status
pawl_infer_check_dim(
	const struct pawl_infer_call *c, int i, int axis, struct pawl_dim dim, const char *of)
{
	struct pawl_operand_text operand;

	if (pawl_dim_equal(pawl_infer_in(c, i)->dim[axis], dim))
		return PAWL_OK;
	return pawl_infer_fail(
		c, "dim %d of %s differs from %s", axis, pawl_infer_operand(c, i, &operand), of);
}

enum pawl_status
pawl_infer_check_row(const struct pawl_infer_call *c, int i)
{
	const struct pawl_type *type = pawl_infer_in(c, i);
	struct pawl_operand_text operand;

	if (type->rank == 0)
		return pawl_infer_fail(c, "%s has no dims", pawl_infer_operand(c, i, &operand));
	if (type->dim[type->rank - 1].sym >= 0)
		return pawl_infer_fail(
			c, "the last dim of %s is symbolic", pawl_infer_operand(c, i, &operand));
	return PAWL_OK;
}

enum pawl_status
pawl_infer_check_static(const struct pawl_infer_call *c, int i)
{
	struct pawl_operand_text operand;

	if (pawl_type_is_static(pawl_infer_in(c, i)))
		return PAWL_OK;
	return pawl_infer_fail(c, "%s has a symbolic dim", pawl_infer_operand(c, i, &operand));
}

static int64_t
dim_at(struct pawl_dim dim, int64_t symbol)
{
	int64_t value;

	if (__builtin_mul_overflow(dim.factor, symbol, &value) ||
		__builtin_add_overflow(value, dim.base, &value))
		return INT64_MAX;
	return value;
}

int64_t
pawl_dim_min(const struct pawl_graph *graph, struct pawl_dim dim)
{
	return dim.sym < 0 ? dim.base : dim_at(dim, graph->symbols[dim.sym].min);
}

int64_t
pawl_dim_max(const struct pawl_graph *graph, struct pawl_dim dim)
{
	return dim.sym < 0 ? dim.base : dim_at(dim, graph->symbols[dim.sym].max);
}

static enum pawl_status
check_dim(const struct pawl_infer_call *c, int axis, struct pawl_dim dim)
{
	bool symbolic = dim.sym >= 0;

	if (dim.sym < -1 || dim.sym >= c->graph->n_symbols)
		return pawl_infer_fail(c,
			"dim %d of the result names symbol %" PRId32 " of %" PRId32, axis, dim.sym,
			c->graph->n_symbols);
	if (symbolic && (dim.factor < 1 || dim.factor > max_dim || dim.base < 0))
		return pawl_infer_fail(
			c, "dim %d of the result is not a sum of positive terms", axis);
	if (!symbolic && dim.factor != 0)
		return pawl_infer_fail(c, "dim %d of the result has a factor but no symbol", axis);
	if (pawl_dim_min(c->graph, dim) < 1)
		return pawl_infer_fail(c, "dim %d of the result may be below 1", axis);
	if (pawl_dim_max(c->graph, dim) > max_dim)
		return pawl_infer_fail(c, "dim %d of the result exceeds 2^40", axis);
	if (symbolic && axis > 0 && !pawl_op_has(c->op, PAWL_OPF_VIEW))
		return pawl_infer_fail(
			c, "only axis 0 of a stored value may be symbolic, not axis %d", axis);
	return PAWL_OK;
}

static enum pawl_status
check_blocks(const struct pawl_infer_call *c)
{
	const struct pawl_type *type = c->type;
	int block = pawl_dtype_info(type->dtype)->block;

	if (block == 1)
		return PAWL_OK;
	if (type->rank == 0 || type->dim[type->rank - 1].sym >= 0 ||
		type->dim[type->rank - 1].base % block)
		return pawl_infer_fail(c,
			"the last dim of the result is no multiple of %d, the block of %s", block,
			pawl_dtype_name(type->dtype));
	return PAWL_OK;
}

static enum pawl_status
check_layout(const struct pawl_infer_call *c)
{
	const struct pawl_type *type = c->type;

	switch (type->layout) {
	case PAWL_LAYOUT_ROWS:
		return PAWL_OK;
	case PAWL_LAYOUT_K16:
		if (type->rank != 4 || !pawl_type_is_static(type) ||
			type->dim[2].base % 16 || !(PAWL_DTYPES_CACHE >> type->dtype & 1))
			return pawl_infer_fail(c,
				"layout k16 is for floats and q8_0 [n, heads, positions, d], "
				"positions a multiple of 16");
		return PAWL_OK;
	case PAWL_LAYOUT_TILE16:
		if (type->rank != 2 || !pawl_type_is_static(type) ||
			!((PAWL_DTYPES_FLOAT | PAWL_DTYPES_QUANT) >> type->dtype & 1))
			return pawl_infer_fail(c, "layout tile16 is for weights [n, k]");
		return PAWL_OK;
	case PAWL_N_LAYOUTS:
		break;
	}
	return pawl_infer_fail(c, "the result has an unknown layout");
}

static enum pawl_status
check_type(const struct pawl_infer_call *c)
{
	int64_t elems = 1;
	int i;

	if (c->type->rank < 0 || c->type->rank > PAWL_MAX_RANK)
		return pawl_infer_fail(
			c, "the result has rank %d; %d is the most", c->type->rank, PAWL_MAX_RANK);
	if ((unsigned)c->type->dtype >= PAWL_N_DTYPES)
		return pawl_infer_fail(c, "the result has an unknown element type");
	for (i = 0; i < c->type->rank; i++) {
		if (check_dim(c, i, c->type->dim[i]))
			return PAWL_INVALID_GRAPH;
		if (__builtin_mul_overflow(
			    elems, pawl_dim_max(c->graph, c->type->dim[i]), &elems) ||
			elems > max_dim)
			return pawl_infer_fail(c, "the result has more than 2^40 elements");
	}
	if (check_blocks(c))
		return PAWL_INVALID_GRAPH;
	return check_layout(c);
}

static enum pawl_status
check_attrs(const struct pawl_infer_call *c)
{
	const struct pawl_attrs *attrs = c->attrs;
	int i;

	for (i = 0; i < PAWL_N_ATTRS; i++) {
		if (!pawl_op_has_attr(c->op, (enum pawl_attr)i) &&
			!pawl_attr_is_default((enum pawl_attr)i, PAWL_MAX_RANK, attrs))
			return pawl_infer_fail(c, "has no attribute '%s'",
				pawl_attr_info((enum pawl_attr)i)->name);
	}
	if (!isfinite(attrs->eps) || attrs->eps < 0)
		return pawl_infer_fail(c, "eps is not a number from 0 on");
	if (!isfinite(attrs->scale))
		return pawl_infer_fail(c, "scale is not finite");
	if (!isfinite(attrs->softcap) || attrs->softcap < 0)
		return pawl_infer_fail(c, "softcap is not a number from 0 on");
	if (attrs->window < 0)
		return pawl_infer_fail(c, "window is negative");
	if (attrs->axis < -1 || attrs->axis >= PAWL_MAX_RANK)
		return pawl_infer_fail(c, "axis %" PRId64 " does not exist", attrs->axis);
	if (attrs->sym < -1 || attrs->sym >= c->graph->n_symbols)
		return pawl_infer_fail(c, "sym names symbol %" PRId32 " of %" PRId32, attrs->sym,
			c->graph->n_symbols);
	if ((unsigned)attrs->dtype >= PAWL_N_DTYPES || (unsigned)attrs->role >= PAWL_N_ROLES ||
		(unsigned)attrs->fill >= PAWL_N_FILLS || (unsigned)attrs->pairs >= PAWL_N_PAIRS)
		return pawl_infer_fail(c, "an attribute has an unknown value");
	return PAWL_OK;
}

/* Entries behind the rank stay 0. */
static enum pawl_status
check_lists(const struct pawl_infer_call *c)
{
	int i;

	for (i = c->type->rank; i < PAWL_MAX_RANK; i++) {
		c->type->dim[i] = pawl_dim_const(0);
		if (c->attrs->start[i] || c->attrs->stop[i] || c->attrs->perm[i])
			return pawl_infer_fail(c, "a list has more than %d entries", c->type->rank);
	}
	return PAWL_OK;
}

static enum pawl_status
apply_rule(const struct pawl_infer_call *c)
{
	switch (c->op) {
#define PAWL_OP_ROW(id, name, min, max, infer, flags, attrs, doc)                                  \
	case PAWL_OP_##id:                                                                         \
		return pawl_infer_##infer(c);
#include "ir/ops.def"
	case PAWL_N_OPS:
		break;
	}
	return pawl_fail(c->err, PAWL_INTERNAL, "unknown op %d", (int)c->op);
}

enum pawl_status
pawl_infer(const struct pawl_graph *graph, enum pawl_op op, struct pawl_node *const *inputs,
	int n_inputs, const struct pawl_attrs *attrs, struct pawl_type *type,
	struct pawl_error *err)
{
	struct pawl_attrs defaults = pawl_attrs_default();
	struct pawl_infer_call c = {
		graph, op, inputs, n_inputs, attrs ? attrs : &defaults, type, err};
	const struct pawl_op_info *info = pawl_op_info(op);
	enum pawl_status status;

	if (n_inputs < info->min_inputs || n_inputs > info->max_inputs) {
		if (info->min_inputs == info->max_inputs)
			return pawl_infer_fail(
				&c, "takes %d inputs, not %d", info->min_inputs, n_inputs);
		return pawl_infer_fail(&c, "takes %d to %d inputs, not %d", info->min_inputs,
			info->max_inputs, n_inputs);
	}
	if (check_attrs(&c))
		return PAWL_INVALID_GRAPH;
	if ((info->flags & PAWL_OPF_TYPED) && check_type(&c))
		return PAWL_INVALID_GRAPH;
	status = apply_rule(&c);
	if (status)
		return status;
	if (!(info->flags & PAWL_OPF_TYPED) && check_type(&c))
		return PAWL_INVALID_GRAPH;
	return check_lists(&c);
}
