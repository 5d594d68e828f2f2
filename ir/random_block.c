/* Random attention, and llama-like blocks around it. */
#include "ir/random_parts.h"

#include <math.h>
#include <stdio.h>

struct heads {
	int64_t n, groups, size, positions;
};

static struct heads
pick_heads(struct pawl_random *r)
{
	static const int64_t counts[] = {1, 2, 4, 6}, sizes[] = {4, 8, 16, 32};
	struct heads heads;

	heads.n = pawl_random_pick(r, counts, 4);
	do {
		heads.groups = 1 + pawl_random_below(r, heads.n);
	} while (heads.n % heads.groups);
	heads.size = pawl_random_pick(r, sizes, 4);
	heads.positions = 16 * (1 + pawl_random_below(r, 2));
	return heads;
}

/* Blocks need heads of 32. */
static bool
wants_blocks(struct pawl_random *r, const struct heads *heads, bool in_ops)
{
	return !in_ops && heads->size % 32 == 0 && pawl_random_chance(r, 40);
}

static struct pawl_node *
reshape(struct pawl_random *r, struct pawl_node *x, int rank, const int64_t *dims)
{
	struct pawl_type type = pawl_random_type(r, x->type.dtype, rank, dims);

	return pawl_random_op(r, PAWL_OP_RESHAPE, &x, 1, NULL, &type);
}

static struct pawl_node *
permute(struct pawl_random *r, struct pawl_node *x, int a, int b, int c)
{
	const int perm[] = {a, b, c};

	return pawl_random_some(r, pawl_build_permute(r->graph, x, perm));
}

static struct pawl_node *
new_cache(struct pawl_random *r, const char *stem, const struct heads *heads, enum pawl_dtype dtype,
	enum pawl_layout layout)
{
	const int64_t dims[] = {1, heads->groups, heads->positions, heads->size};
	struct pawl_type type = pawl_type_make(dtype, 4, dims);

	type.layout = layout;
	return pawl_random_const(r, PAWL_ROLE_KV, stem, &type);
}

static struct pawl_node *
new_mask(struct pawl_random *r, const struct heads *heads)
{
	const int64_t dims[] = {PAWL_RANDOM_TOKENS, heads->positions};

	return pawl_random_dims(r, PAWL_ROLE_DATA, "mask", PAWL_DTYPE_F32, 2, dims);
}

/* q [tokens, heads, size] -> the same */
static struct pawl_node *
attend(struct pawl_random *r, const struct heads *heads, struct pawl_node *q, struct pawl_node *k,
	struct pawl_node *v, struct pawl_node *offset)
{
	struct pawl_node *inputs[] = {q, k, v, offset, NULL};
	struct pawl_attrs attrs = pawl_attrs_default();
	char name[32];
	int n = 4;

	attrs.scale = 1 / sqrt((double)heads->size);
	attrs.causal = pawl_random_chance(r, 80);
	if (pawl_random_chance(r, 20))
		attrs.softcap = 30;
	if (pawl_random_chance(r, 20))
		attrs.window = 1 + pawl_random_below(r, heads->positions);
	if (pawl_random_has(r, PAWL_RANDOM_SYMBOLIC) && pawl_random_chance(r, 50)) {
		snprintf(name, sizeof(name), "L%d", r->n_names++);
		attrs.sym = pawl_graph_add_symbol(r->graph, name, 1, heads->positions, 1);
	}
	if (pawl_random_chance(r, 20))
		inputs[n++] = new_mask(r, heads);
	return pawl_random_op(r, PAWL_OP_ATTENTION, inputs, n, &attrs, NULL);
}

/* The same for rows of one or of several sequences, whose blocks lie anywhere in k and v. */
static struct pawl_node *
attend_paged(struct pawl_random *r, const struct heads *heads, struct pawl_node *q,
	struct pawl_node *k, struct pawl_node *v)
{
	bool is_batch = r->tokens.sym < 0 && pawl_random_chance(r, 50);
	const int64_t rows[] = {PAWL_RANDOM_TOKENS};
	const int64_t table[] = {is_batch ? r->tokens.base : 1, 1 + pawl_random_below(r, 10)};
	struct pawl_node *inputs[] = {q, k, v,
		pawl_random_dims(r, PAWL_ROLE_DATA, "positions", PAWL_DTYPE_I64, 1, rows),
		pawl_random_dims(r, PAWL_ROLE_DATA, "table",
			pawl_random_chance(r, 50) ? PAWL_DTYPE_U32 : PAWL_DTYPE_I32, 2, table)};
	struct pawl_attrs attrs = pawl_attrs_default();
	int64_t n_blocks = heads->positions / 16;
	char name[32];

	attrs.scale = 1 / sqrt((double)heads->size);
	attrs.block = 16 * (n_blocks % 2 ? 1 : 1 + pawl_random_below(r, 2));
	if (pawl_random_chance(r, 20))
		attrs.softcap = 30;
	if (pawl_random_chance(r, 30))
		attrs.window = 1 + pawl_random_below(r, heads->positions);
	if (pawl_random_has(r, PAWL_RANDOM_SYMBOLIC) && pawl_random_chance(r, 50)) {
		snprintf(name, sizeof(name), "L%d", r->n_names++);
		attrs.sym = pawl_graph_add_symbol(r->graph, name, 1, table[1] * attrs.block, 1);
	}
	return pawl_random_op(r, PAWL_OP_PAGED_ATTENTION, inputs, 5, &attrs, NULL);
}

/* [1, groups, positions, size] -> [heads, positions, size], each group repeated. */
static struct pawl_node *
repeat_groups(struct pawl_random *r, const struct heads *heads, struct pawl_node *x)
{
	int64_t g = heads->groups, m = heads->positions, d = heads->size, each = heads->n / g;
	struct pawl_type type = pawl_type_make(x->type.dtype, 4, (const int64_t[]){g, each, m, d});

	if (each == 1)
		return reshape(r, x, 3, (const int64_t[]){g, m, d});
	x = reshape(r, x, 4, (const int64_t[]){g, 1, m, d});
	x = pawl_random_op(r, PAWL_OP_BROADCAST, &x, 1, NULL, &type);
	return reshape(r, x, 3, (const int64_t[]){g * each, m, d});
}

/* The same as attend, in the ops that a host without attention writes; tokens constant. */
static struct pawl_node *
attend_in_ops(struct pawl_random *r, const struct heads *heads, struct pawl_node *q,
	struct pawl_node *k, struct pawl_node *v)
{
	struct pawl_node *scores;

	if (k->type.dtype != PAWL_DTYPE_F16 || pawl_random_chance(r, 50)) {
		k = pawl_random_f32(r, k);
		v = pawl_random_f32(r, v);
	}
	k = repeat_groups(r, heads, k);
	v = repeat_groups(r, heads, v);
	scores = pawl_random_op(r, PAWL_OP_BATCH_MATMUL,
		(struct pawl_node *[]){permute(r, q, 1, 0, 2), k}, 2, NULL, NULL);
	scores = pawl_random_some(
		r, pawl_build_scale(r->graph, scores, 1 / sqrt((double)heads->size)));
	if (pawl_random_chance(r, 15)) {
		scores = pawl_random_some(r, pawl_build_scale(r->graph, scores, 0.125));
		scores = pawl_random_op1(r, PAWL_OP_TANH, scores);
		scores = pawl_random_some(r, pawl_build_scale(r->graph, scores, 8));
	}
	if (pawl_random_chance(r, 80))
		scores = pawl_random_op2(r, PAWL_OP_ADD, scores, new_mask(r, heads));
	scores = pawl_random_op1(r, PAWL_OP_SOFTMAX, scores);
	q = pawl_random_op(r, PAWL_OP_BATCH_MATMUL,
		(struct pawl_node *[]){scores, permute(r, v, 0, 2, 1)}, 2, NULL, NULL);
	return permute(r, q, 1, 0, 2);
}

static struct pawl_node *
flatten_heads(struct pawl_random *r, const struct heads *heads, struct pawl_node *x)
{
	return reshape(r, x, 2, (const int64_t[]){PAWL_RANDOM_TOKENS, heads->n * heads->size});
}

void
pawl_random_add_attention(struct pawl_random *r)
{
	static const int64_t dtypes[] = {PAWL_DTYPE_F32, PAWL_DTYPE_F16, PAWL_DTYPE_BF16};
	struct heads heads = pick_heads(r);
	enum pawl_dtype dtype = (enum pawl_dtype)pawl_random_pick(r, dtypes, 3);
	bool in_ops = !pawl_random_has(r, PAWL_RANDOM_SYMBOLIC) && pawl_random_chance(r, 60);
	enum pawl_layout layout =
		!in_ops && pawl_random_chance(r, 50) ? PAWL_LAYOUT_K16 : PAWL_LAYOUT_ROWS;
	struct pawl_node *k = new_cache(r, "k", &heads,
		wants_blocks(r, &heads, in_ops) ? PAWL_DTYPE_Q8_0 : dtype, layout);
	struct pawl_node *v = new_cache(r, "v", &heads,
		wants_blocks(r, &heads, in_ops) ? PAWL_DTYPE_Q8_0 : dtype, PAWL_LAYOUT_ROWS);
	struct pawl_random_value x = pawl_random_rows(r, heads.n * heads.size);
	struct pawl_node *q;

	x = pawl_random_tame(r, x, 8);
	q = reshape(r, x.node, 3, (const int64_t[]){PAWL_RANDOM_TOKENS, heads.n, heads.size});
	if (in_ops)
		q = attend_in_ops(r, &heads, q, k, v);
	else if (pawl_random_chance(r, 40))
		q = attend_paged(r, &heads, q, k, v);
	else
		q = attend(r, &heads, q, k, v,
			pawl_random_dims(r, PAWL_ROLE_DATA, "offset", PAWL_DTYPE_I64, 0, NULL));
	pawl_random_keep(r, flatten_heads(r, &heads, q), 2);
}

/* What all blocks of a model share. */
struct model {
	struct heads heads;
	int64_t width, wide;
	enum pawl_dtype cache;
	enum pawl_layout k_layout;
	enum pawl_pairs pairs;
	bool packed, in_ops;
	struct pawl_node *cos, *sin, *offset;
};

static void
pick_model(struct pawl_random *r, struct model *model)
{
	static const int64_t widths[] = {32, 64, 96, 256};
	int64_t dims[] = {PAWL_RANDOM_TOKENS, 0};

	model->heads = pick_heads(r);
	model->width = pawl_random_pick(r, widths, 4);
	model->wide = pawl_random_pick(r, widths, 4);
	model->cache = pawl_random_chance(r, 60) ? PAWL_DTYPE_F16 : PAWL_DTYPE_F32;
	model->in_ops = !pawl_random_has(r, PAWL_RANDOM_SYMBOLIC) && pawl_random_chance(r, 30);
	if (wants_blocks(r, &model->heads, model->in_ops))
		model->cache = PAWL_DTYPE_Q8_0;
	model->k_layout =
		!model->in_ops && pawl_random_chance(r, 40) ? PAWL_LAYOUT_K16 : PAWL_LAYOUT_ROWS;
	model->pairs = pawl_random_chance(r, 50) ? PAWL_PAIRS_ADJACENT : PAWL_PAIRS_HALVES;
	model->packed = pawl_random_chance(r, 30);
	dims[1] = pawl_random_chance(r, 30) ? model->heads.size / 2 : model->heads.size;
	model->cos = pawl_random_dims(r, PAWL_ROLE_DATA, "rope_cos", PAWL_DTYPE_F32, 2, dims);
	model->sin = pawl_random_dims(r, PAWL_ROLE_DATA, "rope_sin", PAWL_DTYPE_F32, 2, dims);
	model->offset = pawl_random_dims(r, PAWL_ROLE_DATA, "offset", PAWL_DTYPE_I64, 0, NULL);
}

/* Columns first .. first + n of x [tokens, width], as heads. */
static struct pawl_node *
cut_heads(struct pawl_random *r, const struct model *model, struct pawl_node *x, int64_t first,
	int64_t n)
{
	int64_t tokens = r->tokens.sym < 0 ? r->tokens.base : 0;
	const int64_t start[] = {0, first * model->heads.size};
	const int64_t stop[] = {tokens, (first + n) * model->heads.size};

	x = pawl_random_some(r, pawl_build_slice(r->graph, x, start, stop));
	return reshape(r, x, 3, (const int64_t[]){PAWL_RANDOM_TOKENS, n, model->heads.size});
}

/* Query, key and value of x as [tokens, n, size], from one weight or from three. */
static void
project(struct pawl_random *r, const struct model *model, struct pawl_random_value x,
	struct pawl_node *out[3])
{
	const int64_t n[] = {model->heads.n, model->heads.groups, model->heads.groups};
	enum pawl_dtype dtype = pawl_random_weight_dtype(r, model->width);
	struct pawl_node *all;
	int64_t first = 0;
	int i;

	if (model->packed) {
		all = pawl_random_matmul(r, x, (n[0] + n[1] + n[2]) * model->heads.size, dtype)
			      .node;
		for (i = 0; i < 3; first += n[i++])
			out[i] = cut_heads(r, model, all, first, n[i]);
		return;
	}
	for (i = 0; i < 3; i++) {
		out[i] = pawl_random_matmul(r, x, n[i] * model->heads.size, dtype).node;
		out[i] = reshape(r, out[i], 3,
			(const int64_t[]){PAWL_RANDOM_TOKENS, n[i], model->heads.size});
	}
}

/* x as the type of the cache. */
static struct pawl_node *
to_cache_type(struct pawl_random *r, const struct model *model, struct pawl_node *x)
{
	struct pawl_attrs attrs = pawl_attrs_default();

	attrs.dtype = model->cache;
	return pawl_random_op(r,
		pawl_dtype_is_float(model->cache) ? PAWL_OP_CAST : PAWL_OP_QUANTIZE, &x, 1, &attrs,
		NULL);
}

/* x [tokens, groups, size] into the cache at the offset. */
static struct pawl_node *
write_cache(struct pawl_random *r, const struct model *model, struct pawl_node *cache,
	struct pawl_node *x)
{
	int64_t g = model->heads.groups, d = model->heads.size;
	bool late = pawl_random_chance(r, 50);

	if (model->cache != PAWL_DTYPE_F32 && !late)
		x = to_cache_type(r, model, x);
	if (pawl_random_chance(r, 50)) {
		x = reshape(r, x, 4, (const int64_t[]){1, PAWL_RANDOM_TOKENS, g, d});
		x = pawl_random_some(r, pawl_build_permute(r->graph, x, (const int[]){0, 2, 1, 3}));
	} else {
		x = permute(r, x, 1, 0, 2);
		x = reshape(r, x, 4, (const int64_t[]){1, g, PAWL_RANDOM_TOKENS, d});
	}
	if (model->cache != x->type.dtype) {
		/* A cast owns storage, where only axis 0 may be symbolic. */
		if (!pawl_type_is_static(&x->type))
			return cache;
		x = to_cache_type(r, model, x);
	}
	return pawl_random_some(
		r, pawl_build_write_slice(r->graph, cache, x, NULL, 2, model->offset));
}

static struct pawl_random_value
add_residual(struct pawl_random *r, struct pawl_random_value x, struct pawl_random_value y)
{
	x.node = pawl_random_op2(r, PAWL_OP_ADD, x.node, y.node);
	x.bound += y.bound;
	return pawl_random_tame(r, x, 1e6);
}

static struct pawl_random_value
add_mixer(struct pawl_random *r, const struct model *model, struct pawl_random_value x)
{
	const struct heads *heads = &model->heads;
	struct pawl_node *qkv[3];
	struct pawl_node *k = new_cache(r, "cache_k", heads, model->cache, model->k_layout);
	struct pawl_node *v = new_cache(r, "cache_v", heads, model->cache, PAWL_LAYOUT_ROWS);
	struct pawl_random_value y;
	int i;

	project(r, model, pawl_random_rms_norm(r, x), qkv);
	for (i = 0; i < 2; i++)
		qkv[i] = pawl_random_some(
			r, pawl_build_rope(r->graph, qkv[i], model->cos, model->sin, model->pairs));
	k = write_cache(r, model, k, qkv[1]);
	v = write_cache(r, model, v, qkv[2]);
	if (model->in_ops)
		y.node = attend_in_ops(r, heads, qkv[0], k, v);
	else
		y.node = attend(r, heads, qkv[0], k, v, model->offset);
	y.node = flatten_heads(r, heads, y.node);
	y.bound = 2 * sqrt((double)model->width) * (double)model->width;
	y = pawl_random_matmul(
		r, y, model->width, pawl_random_weight_dtype(r, heads->n * heads->size));
	return add_residual(r, x, y);
}

static struct pawl_random_value
add_gated(struct pawl_random *r, const struct model *model, struct pawl_random_value x)
{
	enum pawl_dtype dtype = pawl_random_weight_dtype(r, model->width);
	struct pawl_random_value y = pawl_random_rms_norm(r, x), gate, up;

	gate = pawl_random_matmul(r, y, model->wide, dtype);
	up = pawl_random_matmul(r, y, model->wide, dtype);
	gate.node = pawl_random_op1(
		r, pawl_random_chance(r, 80) ? PAWL_OP_SILU : PAWL_OP_GELU_TANH, gate.node);
	up.node = pawl_random_op2(r, PAWL_OP_MUL, gate.node, up.node);
	up.bound *= gate.bound;
	return add_residual(r, x,
		pawl_random_matmul(r, up, model->width, pawl_random_weight_dtype(r, model->wide)));
}

void
pawl_random_add_block(struct pawl_random *r)
{
	static const int64_t vocabularies[] = {33, 48, 64};
	const int64_t ids[] = {PAWL_RANDOM_TOKENS};
	struct model model;
	struct pawl_random_value x = {NULL, 2};
	struct pawl_node *table;
	int64_t dims[2];
	int n = 1 + (int)pawl_random_below(r, 2);

	pick_model(r, &model);
	dims[0] = pawl_random_pick(r, vocabularies, 3);
	dims[1] = model.width;
	table = pawl_random_dims(r, PAWL_ROLE_WEIGHT, "token_embd",
		pawl_random_weight_dtype(r, model.width), 2, dims);
	x.node = pawl_random_some(r,
		pawl_build_gather(r->graph, table,
			pawl_random_dims(r, PAWL_ROLE_DATA, "token_ids", PAWL_DTYPE_U32, 1, ids)));
	while (n--)
		x = add_gated(r, &model, add_mixer(r, &model, x));
	x = pawl_random_rms_norm(r, x);
	if (pawl_random_chance(r, 50))
		x.node = pawl_random_some(r, pawl_build_matmul(r->graph, x.node, table));
	else
		x = pawl_random_matmul(r, x, dims[0], pawl_random_weight_dtype(r, model.width));
	pawl_random_result(r, x.node);
	if (pawl_random_chance(r, 60))
		pawl_random_result(r, pawl_random_op1(r, PAWL_OP_ARGMAX, x.node));
}
