/* What canonicalize, fold, cse and dce are there for. */
#include "ir/random_parts.h"

static struct pawl_node *
literal(struct pawl_random *r, enum pawl_dtype dtype, int64_t n)
{
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_type type = pawl_type_make(dtype, 1, &n);
	double *values = pawl_arena_alloc(&r->graph->arena, (size_t)n, sizeof(*values));
	int64_t i;

	if (!values)
		return r->spare;
	for (i = 0; i < n; i++)
		values[i] = (double)(pawl_random_below(r, 33) - 16) / 8;
	attrs.role = PAWL_ROLE_LITERAL;
	attrs.values = values;
	attrs.n_values = pawl_random_chance(r, 20) ? 1 : (uint32_t)n;
	return pawl_random_op(r, PAWL_OP_CONST, NULL, 0, &attrs, &type);
}

static struct pawl_node *
scalar(struct pawl_random *r, double value)
{
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 0, NULL);

	return pawl_random_some(r, pawl_build_splat(r->graph, &type, value));
}

/* Literals computed with one another, then added to something. */
static void
add_literals(struct pawl_random *r)
{
	struct pawl_random_value x = pawl_random_rows(r, r->width);
	int64_t dims[] = {1, r->width};
	struct pawl_node *a = literal(r, PAWL_DTYPE_F32, r->width), *b;

	switch (pawl_random_below(r, 5)) {
	case 0:
		b = literal(r, PAWL_DTYPE_F32, r->width);
		a = pawl_random_op2(r, PAWL_OP_MUL, a, b);
		a = pawl_random_op2(r, PAWL_OP_SUB, a, scalar(r, 0.5));
		break;
	case 1:
		a = pawl_random_op1(r, PAWL_OP_EXP, a);
		a = pawl_random_op1(r, PAWL_OP_SILU, a);
		break;
	case 2:
		a = pawl_random_some(r, pawl_build_reshape(r->graph, a, 2, dims));
		a = pawl_random_op1(r, PAWL_OP_SIGMOID, a);
		break;
	case 3:
		a = pawl_random_f32(r, literal(r, PAWL_DTYPE_F16, r->width));
		break;
	case 4:
		a = pawl_random_op1(r, PAWL_OP_TANH, scalar(r, 0.25));
		a = pawl_random_op2(r, PAWL_OP_MAX, a, scalar(r, 0.125));
		break;
	}
	pawl_random_keep(r, pawl_random_op2(r, PAWL_OP_ADD, x.node, a), x.bound + 20);
}

static struct pawl_node *
there_and_back(struct pawl_random *r, struct pawl_node *x)
{
	int perm[PAWL_MAX_RANK], back[PAWL_MAX_RANK];
	int64_t flat = pawl_type_is_static(&x->type) ? pawl_type_elems(&x->type) : 0;
	struct pawl_node *y;
	int i, rank = x->type.rank, shift;

	if (rank > 1 && pawl_random_chance(r, 50)) {
		shift = 1 + (int)pawl_random_below(r, rank - 1);
		for (i = 0; i < rank; i++) {
			perm[i] = (i + shift) % rank;
			back[perm[i]] = i;
		}
		y = pawl_random_some(r, pawl_build_permute(r->graph, x, perm));
		return pawl_random_some(r, pawl_build_permute(r->graph, y, back));
	}
	if (!flat)
		return pawl_random_op1(r, PAWL_OP_COPY, x);
	y = pawl_random_some(r, pawl_build_reshape(r->graph, x, 1, &flat));
	return pawl_random_op(r, PAWL_OP_RESHAPE, &y, 1, NULL, &x->type);
}

static struct pawl_node *
whole_slice(struct pawl_random *r, struct pawl_node *x)
{
	int64_t start[PAWL_MAX_RANK] = {0}, stop[PAWL_MAX_RANK] = {0};
	int i;

	for (i = 0; i < x->type.rank; i++)
		stop[i] = x->type.dim[i].sym < 0 ? x->type.dim[i].base : 0;
	return pawl_random_some(r, pawl_build_slice(r->graph, x, start, stop));
}

/* Something that is x. */
static struct pawl_node *
identity(struct pawl_random *r, struct pawl_node *x)
{
	switch (pawl_random_below(r, 12)) {
	case 0:
		return pawl_random_some(r, pawl_build_scale(r->graph, x, 1));
	case 1:
		return pawl_random_some(r, pawl_build_cast(r->graph, x, PAWL_DTYPE_F32));
	case 2:
		return whole_slice(r, x);
	case 3:
		return pawl_random_op1(r, PAWL_OP_COPY, pawl_random_op1(r, PAWL_OP_COPY, x));
	case 4:
		return pawl_random_op(r, PAWL_OP_BROADCAST, &x, 1, NULL, &x->type);
	case 5:
		return pawl_random_op2(r, PAWL_OP_MUL, x, scalar(r, 1));
	case 6:
		return pawl_random_op2(r, PAWL_OP_ADD, x, scalar(r, 0));
	case 7:
		return pawl_random_op2(r, PAWL_OP_DIV, x, scalar(r, 1));
	case 8:
		return pawl_random_op1(r, PAWL_OP_NEG, pawl_random_op1(r, PAWL_OP_NEG, x));
	case 9:
		return pawl_random_op2(r, PAWL_OP_MAX, x, x);
	default:
		return there_and_back(r, x);
	}
}

/* An op that is in the graph already, in another node. */
static void
add_duplicate(struct pawl_random *r)
{
	struct pawl_node *node = r->graph->last, *inputs[8];
	int i, skip = (int)pawl_random_below(r, r->graph->n_nodes);
	bool swapped;

	while (skip-- && node->prev)
		node = node->prev;
	if (node->n_inputs == 0 || pawl_op_has(node->op, PAWL_OPF_INPLACE))
		return;
	swapped = pawl_op_has(node->op, PAWL_OPF_COMM) && pawl_random_chance(r, 50);
	for (i = 0; i < node->n_inputs; i++)
		inputs[i] = pawl_node_input(node, swapped ? 1 - i : i);
	node = pawl_random_op(r, node->op, inputs, node->n_inputs, &node->attrs,
		pawl_op_has(node->op, PAWL_OPF_TYPED) ? &node->type : NULL);
	if (node->type.dtype == PAWL_DTYPE_F32)
		pawl_random_keep(r, node, 1e4);
}

static void
add_dead(struct pawl_random *r)
{
	struct pawl_random_value x = pawl_random_any(r);

	x.node = pawl_random_op1(r, PAWL_OP_ABS, x.node);
	if (pawl_random_chance(r, 50))
		pawl_random_op1(r, PAWL_OP_RELU, x.node);
}

void
pawl_random_add_redundant(struct pawl_random *r)
{
	struct pawl_random_value x;

	switch (pawl_random_below(r, 6)) {
	case 0:
		add_literals(r);
		break;
	case 1:
		add_duplicate(r);
		break;
	case 2:
		add_dead(r);
		break;
	default:
		x = pawl_random_any(r);
		pawl_random_keep(r, identity(r, x.node), x.bound);
		break;
	}
}
