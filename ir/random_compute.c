/* Random elementwise chains, norms, matmuls, casts, and what simplification removes. */
#include "ir/eval.h"
#include "ir/random_parts.h"

#include <math.h>
#include <string.h>

static struct pawl_node *
splat_like(struct pawl_random *r, const struct pawl_node *x, double value)
{
	struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 0, NULL);
	int64_t one = 1;

	if (pawl_random_chance(r, 30))
		type = pawl_type_make(PAWL_DTYPE_F32, 1, &one);
	else if (pawl_type_is_static(&x->type) && pawl_random_chance(r, 30))
		type = x->type;
	return pawl_random_some(r, pawl_build_splat(r->graph, &type, value));
}

/* |x| + 1: safe to divide by, and its root is as exact as x. */
static struct pawl_node *
away_from_zero(struct pawl_random *r, struct pawl_node *x)
{
	struct pawl_node *magnitude = pawl_random_op1(r, PAWL_OP_ABS, x);

	return pawl_random_op2(r, PAWL_OP_ADD, magnitude, splat_like(r, magnitude, 1));
}

/* The elementwise ops of n_inputs, commutative ones twice; ops has room for 2 PAWL_N_OPS. */
static int
list_elementwise(int n_inputs, int64_t *ops)
{
	enum pawl_scalar scalar;
	enum pawl_op op;
	int n = 0;

	for (op = 0; op < PAWL_N_OPS; op++) {
		if (pawl_op_info(op)->max_inputs != n_inputs ||
			(!pawl_op_scalar(op, &scalar) && op != PAWL_OP_SCALE))
			continue;
		ops[n++] = op;
		if (pawl_op_has(op, PAWL_OPF_COMM))
			ops[n++] = op;
	}
	return n;
}

/* By the values at its ends: an op that is larger between them needs a case of its own. */
static double
bound_after(enum pawl_op op, double bound)
{
	enum pawl_scalar scalar;
	float high = (float)bound, low = -high;

	if (pawl_op_scalar(op, &scalar)) {
		bound = fmax(bound, fabsf(pawl_scalar_eval(scalar, &high)));
		bound = fmax(bound, fabsf(pawl_scalar_eval(scalar, &low)));
	}
	return fmax(bound, 1);
}

static struct pawl_random_value
add_unary(struct pawl_random *r, struct pawl_random_value x)
{
	static const int64_t eighths[] = {-12, -8, -3, 1, 4, 8, 16};
	int64_t ops[2 * PAWL_N_OPS];
	int n_ops = list_elementwise(1, ops);
	enum pawl_op op;
	double factor;

	ops[n_ops++] = PAWL_OP_SOFTMAX;
	op = (enum pawl_op)pawl_random_pick(r, ops, n_ops);
	if (op == PAWL_OP_SCALE) {
		factor = (double)pawl_random_pick(r, eighths, 7) / 8;
		return (struct pawl_random_value){
			pawl_random_some(r, pawl_build_scale(r->graph, x.node, factor)),
			x.bound * fabs(factor)};
	}
	if (op == PAWL_OP_SOFTMAX &&
		(x.node->type.rank == 0 || x.node->type.dim[x.node->type.rank - 1].sym >= 0))
		op = PAWL_OP_NEG;
	if (op == PAWL_OP_SQRT) {
		x.node = away_from_zero(r, x.node);
		x.bound += 1;
	} else if (op == PAWL_OP_EXP) {
		x = pawl_random_tame(r, x, 3);
		return (struct pawl_random_value){pawl_random_op1(r, op, x.node), 20};
	}
	return (struct pawl_random_value){
		pawl_random_op1(r, op, x.node), bound_after(op, x.bound)};
}

/* Something of x's dims, or that broadcasts to them. */
static struct pawl_random_value
partner(struct pawl_random *r, struct pawl_random_value x)
{
	int64_t dims[] = {1, 1};
	int i, first = (int)pawl_random_below(r, r->n_pool + 1);

	for (i = first; i < r->n_pool && pawl_random_chance(r, 90); i++) {
		if (pawl_type_same_dims(&r->pool[i].node->type, &x.node->type))
			return r->pool[i];
	}
	if (x.node->type.rank && x.node->type.dim[x.node->type.rank - 1].sym < 0)
		dims[0] = dims[1] = pawl_type_row_length(&x.node->type);
	switch (pawl_random_below(r, 4)) {
	case 0:
		return (struct pawl_random_value){
			pawl_random_const(r, PAWL_ROLE_DATA, "y", &x.node->type), 1};
	case 1:
		if (x.node->type.rank == 0)
			return x;
		return (struct pawl_random_value){
			pawl_random_dims(r, PAWL_ROLE_WEIGHT, "bias", PAWL_DTYPE_F32, 1, dims), 1};
	case 2:
		if (x.node->type.rank < 2)
			return x;
		dims[0] = 1;
		return (struct pawl_random_value){
			pawl_random_dims(r, PAWL_ROLE_DATA, "row", PAWL_DTYPE_F32, 2, dims), 1};
	default:
		return (struct pawl_random_value){splat_like(r, x.node, 0.75), 1};
	}
}

static struct pawl_random_value
add_binary(struct pawl_random *r, struct pawl_random_value x)
{
	int64_t ops[2 * PAWL_N_OPS];
	enum pawl_op op = (enum pawl_op)pawl_random_pick(r, ops, list_elementwise(2, ops));
	struct pawl_random_value y = partner(r, x);
	bool swapped = op != PAWL_OP_DIV && pawl_random_chance(r, 40);
	double bound = x.bound + y.bound;

	if (op == PAWL_OP_DIV) {
		y.node = away_from_zero(r, y.node);
		bound = x.bound;
	} else if (op == PAWL_OP_MUL) {
		bound = x.bound * y.bound;
	}
	return (struct pawl_random_value){
		pawl_random_op2(r, op, swapped ? y.node : x.node, swapped ? x.node : y.node),
		bound};
}

static void
add_elementwise(struct pawl_random *r)
{
	struct pawl_random_value x = pawl_random_any(r);
	int n = 1 + (int)pawl_random_below(r, 4);

	while (n--) {
		x = pawl_random_tame(r, x, 100);
		x = pawl_random_chance(r, 50) ? add_unary(r, x) : add_binary(r, x);
		if (pawl_random_chance(r, 40))
			pawl_random_keep(r, x.node, x.bound);
	}
	pawl_random_keep(r, x.node, x.bound);
}

/* A pool value with a constant last dim. */
static struct pawl_random_value
any_rows(struct pawl_random *r)
{
	struct pawl_random_value x = pawl_random_any(r);

	if (x.node->type.rank == 0 || x.node->type.dim[x.node->type.rank - 1].sym >= 0)
		return pawl_random_rows(r, r->width);
	return x;
}

static void
add_norm(struct pawl_random *r)
{
	struct pawl_random_value x = any_rows(r);
	int64_t n = pawl_type_row_length(&x.node->type);
	struct pawl_node *inputs[3];
	struct pawl_attrs attrs = pawl_attrs_default();

	if (pawl_random_chance(r, 50)) {
		x = pawl_random_rms_norm(r, x);
	} else {
		inputs[0] = x.node;
		inputs[1] =
			pawl_random_dims(r, PAWL_ROLE_WEIGHT, "norm.weight", PAWL_DTYPE_F32, 1, &n);
		inputs[2] =
			pawl_random_dims(r, PAWL_ROLE_WEIGHT, "norm.bias", PAWL_DTYPE_F32, 1, &n);
		attrs.eps = 1e-5;
		x.node = pawl_random_op(r, PAWL_OP_LAYER_NORM, inputs, 3, &attrs, NULL);
		x.bound = sqrt((double)n) + 1;
	}
	pawl_random_keep(r, x.node, x.bound);
}

static void
add_matmul(struct pawl_random *r)
{
	static const int64_t heights[] = {1, 5, 16, 17, 32, 48, 64};
	bool has_prologue = pawl_random_chance(r, 40);
	struct pawl_random_value x =
		has_prologue ? pawl_random_rms_norm(r, pawl_random_rows(r, r->width)) : any_rows(r);
	int64_t n = pawl_random_chance(r, 40) ? r->width : pawl_random_pick(r, heights, 7);
	struct pawl_random_value y;
	int64_t k;

	x = pawl_random_tame(r, x, 10);
	k = pawl_type_row_length(&x.node->type);
	y = pawl_random_matmul(r, x, n, pawl_random_weight_dtype(r, k));
	if (pawl_random_chance(r, 25))
		y.node = pawl_random_op2(r, PAWL_OP_ADD, y.node,
			pawl_random_dims(r, PAWL_ROLE_WEIGHT, "bias", PAWL_DTYPE_F32, 1, &n));
	pawl_random_keep(r, y.node, y.bound + 1);
}

static void
add_cast(struct pawl_random *r)
{
	static const int64_t ints[] = {
		PAWL_DTYPE_I8, PAWL_DTYPE_I32, PAWL_DTYPE_I64, PAWL_DTYPE_U32};
	struct pawl_random_value x = pawl_random_tame(r, pawl_random_any(r), 100);
	enum pawl_dtype half = pawl_random_chance(r, 50) ? PAWL_DTYPE_F16 : PAWL_DTYPE_BF16;
	struct pawl_type type = x.node->type;

	if (pawl_random_chance(r, 30)) {
		type.dtype = (enum pawl_dtype)pawl_random_pick(r, ints, 4);
		x.node = pawl_random_const(r, PAWL_ROLE_DATA, "i", &type);
		x.bound = 15;
	} else {
		x.node = pawl_random_some(r, pawl_build_cast(r->graph, x.node, half));
		if (pawl_random_chance(r, 30))
			x.node = pawl_random_op1(r, PAWL_OP_COPY, x.node);
	}
	pawl_random_keep(r, pawl_random_f32(r, x.node), x.bound);
}

static void
add_concat(struct pawl_random *r)
{
	struct pawl_random_value x = pawl_random_any(r);
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *inputs[8];
	int i, n = 2 + (int)pawl_random_below(r, 3);

	if (x.node->type.rank == 0 ||
		pawl_random_elems(r, &x.node->type) * n > PAWL_RANDOM_MAX_ELEMS)
		return;
	attrs.axis = pawl_random_below(r, x.node->type.rank);
	if (x.node->type.dim[attrs.axis].sym >= 0)
		return;
	for (i = 0; i < n; i++) {
		struct pawl_type type = x.node->type;

		type.dim[attrs.axis] = pawl_dim_const(1 + pawl_random_below(r, 5));
		inputs[i] = pawl_random_chance(r, 50)
				    ? x.node
				    : pawl_random_const(r, PAWL_ROLE_DATA, "part", &type);
	}
	pawl_random_keep(
		r, pawl_random_op(r, PAWL_OP_CONCAT, inputs, n, &attrs, NULL), x.bound + 1);
}

static void
add_gather(struct pawl_random *r)
{
	const int64_t table[] = {1 + pawl_random_below(r, 20), r->width};
	const int64_t ids[] = {PAWL_RANDOM_TOKENS};
	enum pawl_dtype id = pawl_random_chance(r, 50) ? PAWL_DTYPE_U32 : PAWL_DTYPE_I32;
	struct pawl_node *w = pawl_random_dims(
		r, PAWL_ROLE_WEIGHT, "table", pawl_random_weight_dtype(r, r->width), 2, table);
	struct pawl_node *x = pawl_build_gather(
		r->graph, w, pawl_random_dims(r, PAWL_ROLE_DATA, "ids", id, 1, ids));

	pawl_random_keep(r, pawl_random_some(r, x), 2);
}

static void
add_argmax(struct pawl_random *r)
{
	struct pawl_random_value x = any_rows(r);

	if (pawl_random_chance(r, 60))
		x = add_unary(r, pawl_random_tame(r, x, 100));
	pawl_random_result(r, pawl_random_op1(r, PAWL_OP_ARGMAX, x.node));
}

void
pawl_random_add_compute(struct pawl_random *r)
{
	switch (pawl_random_below(r, 12)) {
	case 0:
		add_norm(r);
		break;
	case 1:
		add_cast(r);
		break;
	case 2:
		add_concat(r);
		break;
	case 3:
		add_gather(r);
		break;
	case 4:
	case 5:
		add_argmax(r);
		break;
	case 6:
	case 7:
	case 8:
		add_matmul(r);
		break;
	default:
		add_elementwise(r);
		break;
	}
}

/* quantize -> matmul, or matmul by a packed weight, or both. */
void
pawl_random_add_lowered(struct pawl_random *r)
{
	const int64_t dims[] = {1 + pawl_random_below(r, 40), 32 * (1 + pawl_random_below(r, 4))};
	enum pawl_dtype dtype = pawl_random_weight_dtype(r, dims[1]);
	struct pawl_random_value x = pawl_random_tame(r, pawl_random_rows(r, dims[1]), 10);
	struct pawl_node *w = pawl_random_dims(r, PAWL_ROLE_WEIGHT, "w", dtype, 2, dims);
	struct pawl_attrs attrs = pawl_attrs_default();

	if (pawl_dtype_info(dtype)->kind == PAWL_KIND_QUANT && pawl_random_chance(r, 70)) {
		attrs.dtype = pawl_random_chance(r, 50) ? PAWL_DTYPE_A16 : PAWL_DTYPE_A8;
		x.node = pawl_random_op(r, PAWL_OP_QUANTIZE, &x.node, 1, &attrs, NULL);
	}
	if (pawl_random_chance(r, 60)) {
		struct pawl_type type = w->type;

		type.layout = PAWL_LAYOUT_TILE16;
		w = pawl_random_op(r, PAWL_OP_PACK, &w, 1, NULL, &type);
	}
	pawl_random_keep(r, pawl_random_some(r, pawl_build_matmul(r->graph, x.node, w)),
		x.bound * 2 * (double)dims[1]);
}
