#include "ir/build.h"

#include "ir/infer.h"

#include <string.h>

static bool
is_letter(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

bool
pawl_name_is_valid(const char *name)
{
	size_t n;

	if (!is_letter(*name))
		return false;
	for (n = 1; is_letter(name[n]) || (name[n] >= '0' && name[n] <= '9') || name[n] == '.';
		n++) {
		if (n == PAWL_MAX_NAME)
			return false;
	}
	return name[n] == '\0';
}

static struct pawl_node *
refuse(struct pawl_graph *graph, enum pawl_op op, const char *name, const char *reason)
{
	if (graph->error.status == PAWL_OK)
		pawl_fail(&graph->error, PAWL_INVALID_ARGUMENT, "%s%s%s: %s", pawl_op_name(op),
			name ? " %" : "", name ? name : "", reason);
	return NULL;
}

static struct pawl_node *
refuse_null(struct pawl_graph *graph, enum pawl_op op)
{
	return refuse(graph, op, NULL, "an operand is missing");
}

struct pawl_node *
pawl_build(struct pawl_graph *graph, enum pawl_op op, const char *name,
	struct pawl_node *const *inputs, int n_inputs, const struct pawl_attrs *attrs,
	const struct pawl_type *type)
{
	struct pawl_type result = {0};
	int i;

	if (graph->error.status != PAWL_OK)
		return NULL;
	for (i = 0; i < n_inputs; i++) {
		if (!inputs[i])
			return refuse_null(graph, op);
	}
	if (pawl_op_has(op, PAWL_OPF_TYPED) != (type != NULL))
		return refuse(
			graph, op, name, type ? "the type is inferred" : "the type must be stated");
	if (name && !pawl_name_is_valid(name))
		return refuse(graph, op, name, "the name does not fit the text form");
	if (name && pawl_graph_find(graph, name))
		return refuse(graph, op, name, "the name is taken");
	if (type)
		result = *type;
	if (pawl_infer(graph, op, inputs, n_inputs, attrs, &result, &graph->error)) {
		if (name)
			pawl_error_prefix(&graph->error, "%%%s", name);
		return NULL;
	}
	return pawl_graph_add(graph, op, name, inputs, n_inputs, attrs, &result);
}

struct pawl_node *
pawl_build_const(struct pawl_graph *graph, enum pawl_role role, const char *name,
	const struct pawl_type *type)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.role = role;
	return pawl_build(graph, PAWL_OP_CONST, name, NULL, 0, &attrs, type);
}

struct pawl_node *
pawl_build_splat(struct pawl_graph *graph, const struct pawl_type *type, double value)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	double *values = pawl_arena_alloc(&graph->arena, 1, sizeof(*values));

	if (!values) {
		if (graph->error.status == PAWL_OK)
			pawl_fail(&graph->error, PAWL_OUT_OF_MEMORY, "no memory for graph '%s'",
				graph->name);
		return NULL;
	}
	*values = value;
	attrs.role = PAWL_ROLE_LITERAL;
	attrs.values = values;
	attrs.n_values = 1;
	return pawl_build(graph, PAWL_OP_CONST, NULL, NULL, 0, &attrs, type);
}

struct pawl_node *
pawl_build_unary(struct pawl_graph *graph, enum pawl_op op, struct pawl_node *x)
{
	return pawl_build(graph, op, NULL, &x, 1, NULL, NULL);
}

static bool
broadcasts_to(const struct pawl_type *from, const struct pawl_type *to)
{
	int i, lead = to->rank - from->rank;

	if (lead < 0)
		return false;
	for (i = 0; i < from->rank; i++) {
		if (!pawl_dim_equal(from->dim[i], to->dim[lead + i]) &&
			!pawl_dim_equal(from->dim[i], pawl_dim_const(1)))
			return false;
	}
	return true;
}

static struct pawl_node *
broadcast_to(struct pawl_graph *graph, struct pawl_node *x, const struct pawl_type *dims)
{
	struct pawl_type type = *dims;

	type.dtype = x->type.dtype;
	return pawl_build(graph, PAWL_OP_BROADCAST, NULL, &x, 1, NULL, &type);
}

struct pawl_node *
pawl_build_binary(
	struct pawl_graph *graph, enum pawl_op op, struct pawl_node *x, struct pawl_node *y)
{
	struct pawl_node *inputs[] = {x, y};

	if (!x || !y)
		return refuse_null(graph, op);
	if (!pawl_type_same_dims(&x->type, &y->type)) {
		if (broadcasts_to(&y->type, &x->type))
			inputs[1] = broadcast_to(graph, y, &x->type);
		else if (broadcasts_to(&x->type, &y->type))
			inputs[0] = broadcast_to(graph, x, &y->type);
	}
	return pawl_build(graph, op, NULL, inputs, 2, NULL, NULL);
}

struct pawl_node *
pawl_build_scale(struct pawl_graph *graph, struct pawl_node *x, double scale)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.scale = scale;
	return pawl_build(graph, PAWL_OP_SCALE, NULL, &x, 1, &attrs, NULL);
}

struct pawl_node *
pawl_build_cast(struct pawl_graph *graph, struct pawl_node *x, enum pawl_dtype dtype)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.dtype = dtype;
	return pawl_build(graph, PAWL_OP_CAST, NULL, &x, 1, &attrs, NULL);
}

struct pawl_node *
pawl_build_reshape(struct pawl_graph *graph, struct pawl_node *x, int rank, const int64_t *dims)
{
	struct pawl_type type;

	if (!x)
		return refuse_null(graph, PAWL_OP_RESHAPE);
	if (rank < 0 || rank > PAWL_MAX_RANK)
		return refuse(graph, PAWL_OP_RESHAPE, NULL, "the rank is out of range");
	type = pawl_type_make(x->type.dtype, rank, dims);
	if (rank > 0 && x->type.rank > 0 && dims[0] == -1)
		type.dim[0] = x->type.dim[0];
	return pawl_build(graph, PAWL_OP_RESHAPE, NULL, &x, 1, NULL, &type);
}

struct pawl_node *
pawl_build_permute(struct pawl_graph *graph, struct pawl_node *x, const int *perm)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	int i;

	if (!x)
		return refuse_null(graph, PAWL_OP_PERMUTE);
	for (i = 0; i < x->type.rank; i++)
		attrs.perm[i] = perm[i];
	return pawl_build(graph, PAWL_OP_PERMUTE, NULL, &x, 1, &attrs, NULL);
}

struct pawl_node *
pawl_build_slice(
	struct pawl_graph *graph, struct pawl_node *x, const int64_t *start, const int64_t *stop)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	if (!x)
		return refuse_null(graph, PAWL_OP_SLICE);
	if (x->type.rank > 0) {
		memcpy(attrs.start, start, (size_t)x->type.rank * sizeof(*start));
		memcpy(attrs.stop, stop, (size_t)x->type.rank * sizeof(*stop));
	}
	return pawl_build(graph, PAWL_OP_SLICE, NULL, &x, 1, &attrs, NULL);
}

struct pawl_node *
pawl_build_gather(struct pawl_graph *graph, struct pawl_node *table, struct pawl_node *ids)
{
	struct pawl_node *inputs[] = {table, ids};

	return pawl_build(graph, PAWL_OP_GATHER, NULL, inputs, 2, NULL, NULL);
}

struct pawl_node *
pawl_build_matmul(struct pawl_graph *graph, struct pawl_node *x, struct pawl_node *w)
{
	struct pawl_node *inputs[] = {x, w};

	return pawl_build(graph, PAWL_OP_MATMUL, NULL, inputs, 2, NULL, NULL);
}

struct pawl_node *
pawl_build_rms_norm(struct pawl_graph *graph, struct pawl_node *x, struct pawl_node *w, double eps)
{
	struct pawl_node *inputs[] = {x, w};
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.eps = eps;
	return pawl_build(graph, PAWL_OP_RMS_NORM, NULL, inputs, 2, &attrs, NULL);
}

struct pawl_node *
pawl_build_rope(struct pawl_graph *graph, struct pawl_node *x, struct pawl_node *cos,
	struct pawl_node *sin, enum pawl_pairs pairs)
{
	struct pawl_node *inputs[] = {x, cos, sin};
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.pairs = pairs;
	return pawl_build(graph, PAWL_OP_ROPE, NULL, inputs, 3, &attrs, NULL);
}

struct pawl_node *
pawl_build_write_slice(struct pawl_graph *graph, struct pawl_node *dest, struct pawl_node *src,
	const int64_t *start, int axis, struct pawl_node *offset)
{
	struct pawl_node *inputs[] = {dest, src, offset};
	struct pawl_attrs attrs = pawl_attrs_default();

	if (!dest)
		return refuse_null(graph, PAWL_OP_WRITE_SLICE);
	if (start && dest->type.rank > 0)
		memcpy(attrs.start, start, (size_t)dest->type.rank * sizeof(*start));
	attrs.axis = axis;
	return pawl_build(graph, PAWL_OP_WRITE_SLICE, NULL, inputs, offset ? 3 : 2, &attrs, NULL);
}
