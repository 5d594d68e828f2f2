#include "ir/random.h"

#include "ir/infer.h"
#include "ir/random_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_ITEMS(array) ((int)(sizeof(array) / sizeof((array)[0])))

uint64_t
pawl_random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int64_t
pawl_random_below(struct pawl_random *r, int64_t n)
{
	return (int64_t)(pawl_random_next(&r->state) >> 1) % n;
}

bool
pawl_random_chance(struct pawl_random *r, int percent)
{
	return pawl_random_below(r, 100) < percent;
}

bool
pawl_random_has(const struct pawl_random *r, unsigned flavour)
{
	return (r->flavours & flavour) != 0;
}

int64_t
pawl_random_pick(struct pawl_random *r, const int64_t *list, int n)
{
	return list[pawl_random_below(r, n)];
}

struct pawl_type
pawl_random_type(struct pawl_random *r, enum pawl_dtype dtype, int rank, const int64_t *dims)
{
	struct pawl_type type = pawl_type_make(dtype, rank, dims);
	int i;

	for (i = 0; i < rank; i++) {
		if (dims[i] == PAWL_RANDOM_TOKENS)
			type.dim[i] = r->tokens;
	}
	return type;
}

struct pawl_node *
pawl_random_some(struct pawl_random *r, struct pawl_node *node)
{
	return node ? node : r->spare;
}

struct pawl_node *
pawl_random_const(
	struct pawl_random *r, enum pawl_role role, const char *stem, const struct pawl_type *type)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%d", stem, r->n_names++);
	return pawl_random_some(r, pawl_build_const(r->graph, role, name, type));
}

struct pawl_node *
pawl_random_dims(struct pawl_random *r, enum pawl_role role, const char *stem,
	enum pawl_dtype dtype, int rank, const int64_t *dims)
{
	struct pawl_type type = pawl_random_type(r, dtype, rank, dims);

	return pawl_random_const(r, role, stem, &type);
}

struct pawl_node *
pawl_random_op(struct pawl_random *r, enum pawl_op op, struct pawl_node *const *inputs,
	int n_inputs, const struct pawl_attrs *attrs, const struct pawl_type *type)
{
	char name[32];
	bool named = pawl_random_chance(r, 20);

	if (named)
		snprintf(name, sizeof(name), "%s.%d", pawl_op_name(op), r->n_names++);
	return pawl_random_some(
		r, pawl_build(r->graph, op, named ? name : NULL, inputs, n_inputs, attrs, type));
}

struct pawl_node *
pawl_random_op1(struct pawl_random *r, enum pawl_op op, struct pawl_node *x)
{
	return pawl_random_op(r, op, &x, 1, NULL, NULL);
}

struct pawl_node *
pawl_random_op2(struct pawl_random *r, enum pawl_op op, struct pawl_node *x, struct pawl_node *y)
{
	return pawl_random_some(r, pawl_build_binary(r->graph, op, x, y));
}

int64_t
pawl_random_elems(const struct pawl_random *r, const struct pawl_type *type)
{
	int64_t n = 1;
	int i;

	for (i = 0; i < type->rank; i++)
		n *= pawl_dim_max(r->graph, type->dim[i]);
	return n;
}

void
pawl_random_keep(struct pawl_random *r, struct pawl_node *node, double bound)
{
	int i;

	for (i = 1; i < node->type.rank; i++) {
		if (node->type.dim[i].sym >= 0)
			return;
	}
	if (node->type.dtype != PAWL_DTYPE_F32 || node->type.layout != PAWL_LAYOUT_ROWS)
		return;
	i = r->n_pool < PAWL_RANDOM_POOL ? r->n_pool++
					 : (int)pawl_random_below(r, PAWL_RANDOM_POOL);
	r->pool[i] = (struct pawl_random_value){node, bound};
}

void
pawl_random_result(struct pawl_random *r, struct pawl_node *node)
{
	if (r->n_results < PAWL_RANDOM_POOL)
		r->results[r->n_results++] = node;
}

struct pawl_random_value
pawl_random_rows(struct pawl_random *r, int64_t width)
{
	const int64_t dims[] = {PAWL_RANDOM_TOKENS, width};
	int i, first = (int)pawl_random_below(r, r->n_pool + 1);
	struct pawl_node *x;

	for (i = first; i < r->n_pool; i++) {
		const struct pawl_type *type = &r->pool[i].node->type;

		if (type->rank == 2 && pawl_dim_equal(type->dim[0], r->tokens) &&
			type->dim[1].base == width)
			return r->pool[i];
	}
	x = pawl_random_dims(r, PAWL_ROLE_DATA, "x", PAWL_DTYPE_F32, 2, dims);
	pawl_random_keep(r, x, 1);
	return (struct pawl_random_value){x, 1};
}

struct pawl_random_value
pawl_random_any(struct pawl_random *r)
{
	/* Later values more often, so that chains grow. */
	if (r->n_pool && pawl_random_chance(r, 50))
		return r->pool[r->n_pool - 1 - pawl_random_below(r, r->n_pool < 6 ? r->n_pool : 6)];
	if (r->n_pool && pawl_random_chance(r, 80))
		return r->pool[pawl_random_below(r, r->n_pool)];
	return pawl_random_rows(r, r->width);
}

struct pawl_random_value
pawl_random_tame(struct pawl_random *r, struct pawl_random_value x, double limit)
{
	double factor = 0.5;

	if (x.bound <= limit)
		return x;
	if (limit >= 1 && pawl_random_chance(r, 50))
		return (struct pawl_random_value){pawl_random_op1(r, PAWL_OP_TANH, x.node), 1};
	while (factor * x.bound > limit)
		factor /= 2;
	return (struct pawl_random_value){
		pawl_random_some(r, pawl_build_scale(r->graph, x.node, factor)), limit};
}

struct pawl_random_value
pawl_random_rms_norm(struct pawl_random *r, struct pawl_random_value x)
{
	int64_t n = pawl_type_row_length(&x.node->type);
	struct pawl_node *w =
		pawl_random_dims(r, PAWL_ROLE_WEIGHT, "norm.weight", PAWL_DTYPE_F32, 1, &n);
	double eps = pawl_random_chance(r, 50) ? 1e-5 : 1e-6;

	return (struct pawl_random_value){
		pawl_random_some(r, pawl_build_rms_norm(r->graph, x.node, w, eps)),
		sqrt((double)n)};
}

enum pawl_dtype
pawl_random_weight_dtype(struct pawl_random *r, int64_t k)
{
	for (;;) {
		enum pawl_dtype dtype = (enum pawl_dtype)pawl_random_below(r, PAWL_N_DTYPES);
		const struct pawl_dtype_info *info = pawl_dtype_info(dtype);

		if (k % info->block == 0 &&
			(info->kind == PAWL_KIND_FLOAT || info->kind == PAWL_KIND_QUANT))
			return dtype;
	}
}

struct pawl_random_value
pawl_random_matmul(
	struct pawl_random *r, struct pawl_random_value x, int64_t n, enum pawl_dtype dtype)
{
	int64_t k = pawl_type_row_length(&x.node->type);
	const int64_t dims[] = {n, k};
	struct pawl_node *w = pawl_random_dims(r, PAWL_ROLE_WEIGHT, "w", dtype, 2, dims);

	return (struct pawl_random_value){
		pawl_random_some(r, pawl_build_matmul(r->graph, x.node, w)),
		x.bound * 2 * (double)k};
}

struct pawl_node *
pawl_random_f32(struct pawl_random *r, struct pawl_node *x)
{
	if (x->type.dtype == PAWL_DTYPE_F32)
		return x;
	return pawl_random_some(r, pawl_build_cast(r->graph, x, PAWL_DTYPE_F32));
}

static bool
start(struct pawl_random *r)
{
	static const int64_t tokens[] = {1, 1, 2, 3, 5, 7};
	static const int64_t widths[] = {32, 64, 64, 96, 128, 256, 1, 3, 7, 16, 33};

	int64_t dims[] = {PAWL_RANDOM_TOKENS, 0};
	struct pawl_type type;

	if (pawl_random_has(r, PAWL_RANDOM_SYMBOLIC))
		r->tokens = (struct pawl_dim){0, 1, pawl_graph_add_symbol(r->graph, "T", 1, 6, 1)};
	else
		r->tokens = pawl_dim_const(pawl_random_pick(r, tokens, N_ITEMS(tokens)));
	r->width = dims[1] = pawl_random_pick(r, widths, N_ITEMS(widths));
	type = pawl_random_type(r, PAWL_DTYPE_F32, 2, dims);
	r->spare = pawl_build_const(r->graph, PAWL_ROLE_DATA, "x", &type);
	if (!r->spare)
		return false;
	pawl_random_keep(r, r->spare, 1);
	return true;
}

static void
add_part(struct pawl_random *r)
{
	static void (*const parts[])(struct pawl_random *) = {pawl_random_add_compute,
		pawl_random_add_views, pawl_random_add_state, pawl_random_add_redundant,
		pawl_random_add_attention, pawl_random_add_block, pawl_random_add_lowered};
	/* Out of 100; the parts differ in size. */
	static const int weights[N_ITEMS(parts)] = {30, 20, 18, 18, 6, 4, 4};
	int i, left = (int)pawl_random_below(r, 100);

	for (i = 0; i < N_ITEMS(parts); i++) {
		left -= weights[i];
		if (left < 0) {
			if (pawl_random_has(r, 1u << i))
				parts[i](r);
			return;
		}
	}
}

/* Results asked for, and some of the pool; the rest of the pool is dead code. */
static void
add_outputs(struct pawl_random *r)
{
	int i, n = 1 + (int)pawl_random_below(r, 4);

	for (i = 0; i < r->n_results; i++)
		pawl_graph_add_output(r->graph, r->results[i]);
	for (i = 0; i < n && r->n_pool; i++)
		pawl_graph_add_output(r->graph, pawl_random_any(r).node);
}

enum pawl_status
pawl_random_graph(uint64_t seed, const struct pawl_random_options *options, struct pawl_graph **out,
	struct pawl_error *err)
{
	unsigned known = PAWL_RANDOM_DEFAULT | PAWL_RANDOM_SYMBOLIC;
	struct pawl_random r = {.state = seed, .flavours = PAWL_RANDOM_DEFAULT};
	int n_nodes = options && options->n_nodes > 0 ? options->n_nodes : 40;
	char name[32];

	if (options && options->flavours)
		r.flavours = options->flavours;
	if (!(r.flavours & PAWL_RANDOM_DEFAULT) || (r.flavours & ~known))
		return pawl_fail(
			err, PAWL_INVALID_ARGUMENT, "flavours 0x%x name no graph", r.flavours);
	snprintf(name, sizeof(name), "random%" PRIu64, seed);
	r.graph = pawl_graph_new(name);
	if (!r.graph)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a random graph");
	if (start(&r)) {
		while (r.graph->error.status == PAWL_OK && r.graph->n_nodes < n_nodes)
			add_part(&r);
		add_outputs(&r);
	}
	if (r.graph->error.status) {
		if (err)
			*err = r.graph->error;
		if (err && err->status != PAWL_OUT_OF_MEMORY)
			err->status = PAWL_INTERNAL;
		pawl_graph_free(r.graph);
		return err ? err->status : PAWL_INTERNAL;
	}
	*out = r.graph;
	return PAWL_OK;
}
