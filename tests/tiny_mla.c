#include "tests/tiny_mla.h"

#include "tests/tiny_weights.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct pawl_tiny_mla {
	struct pawl_tiny_mla_options o;
	struct pawl_model_source source, pairs;
	struct pawl_tiny_weights weights;
};

struct pawl_tiny_mla_options
pawl_tiny_mla_defaults(void)
{
	return (struct pawl_tiny_mla_options){
		.n_layers = 2,
		.n_heads = 4,
		.n_embd = 64,
		.n_ff = 96,
		.n_vocab = 40,
		.dims = {.rank = 24, .nope = 16, .rope = 8, .value = 40},
		.dtype = PAWL_DTYPE_F32,
	};
}

static void
add_layer(struct pawl_tiny_mla *m, int layer)
{
	const struct pawl_tiny_mla_options *o = &m->o;
	const struct pawl_latent_dims *d = &o->dims;
	enum pawl_dtype narrow = o->dtype == PAWL_DTYPE_F32 ? PAWL_DTYPE_F32 : PAWL_DTYPE_F16;
	const struct {
		const char *what;
		enum pawl_dtype dtype;
		int rank;
		int64_t dims[3];
		double middle, most;
	} all[] = {
		{"attn_norm", PAWL_DTYPE_F32, 1, {o->n_embd}, 1.0, 0.2},
		{"attn_q", o->dtype, 2, {o->n_heads * (d->nope + d->rope), o->n_embd}, 0, 0.3},
		{"attn_kv_a", o->dtype, 2, {d->rank + d->rope, o->n_embd}, 0, 0.3},
		{"attn_kv_a_norm", PAWL_DTYPE_F32, 1, {d->rank}, 1.0, 0.2},
		{"attn_k_b", narrow, 3, {o->n_heads, d->rank, d->nope}, 0, 0.3},
		{"attn_v_b", narrow, 3, {o->n_heads, d->value, d->rank}, 0, 0.3},
		{"attn_output", o->dtype, 2, {o->n_embd, o->n_heads * d->value}, 0, 0.3},
		{"ffn_norm", PAWL_DTYPE_F32, 1, {o->n_embd}, 1.0, 0.2},
		{"ffn_gate", o->dtype, 2, {o->n_ff, o->n_embd}, 0, 0.3},
		{"ffn_up", o->dtype, 2, {o->n_ff, o->n_embd}, 0, 0.3},
		{"ffn_down", o->dtype, 2, {o->n_embd, o->n_ff}, 0, 0.3},
	};
	char name[48];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, all[i].what);
		pawl_tiny_weights_add(&m->weights, name, all[i].dtype, all[i].rank, all[i].dims,
			all[i].middle, all[i].most);
	}
}

static enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *err)
{
	const struct pawl_tiny_mla *m = ctx;

	return pawl_tiny_weights_find(&m->weights, name, out, err);
}

/* Graphs. */

struct builder {
	struct pawl_tiny_mla *m;
	struct pawl_graph *g;
	const struct pawl_graph_request *r;
	struct pawl_decode_inputs in;
	bool is_materialized, has_pairs;
};

static struct pawl_node *
weight(struct builder *b, const char *name)
{
	struct pawl_weight w;
	struct pawl_type type;

	if (find_weight(b->m, name, &w, &b->g->error))
		return NULL;
	type = pawl_type_make(w.dtype, w.rank, w.dim);
	return pawl_build_const(b->g, PAWL_ROLE_WEIGHT, name, &type);
}

static struct pawl_node *
layer_weight(struct builder *b, int layer, const char *what)
{
	char name[48];

	snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, what);
	return weight(b, name);
}

static struct pawl_node *
project(struct builder *b, int layer, const char *what, struct pawl_node *x)
{
	return pawl_build_matmul(b->g, x, layer_weight(b, layer, what));
}

/* x[.., first .. first + n] of rank 2 or 3. */
static struct pawl_node *
columns(struct builder *b, struct pawl_node *x, int64_t first, int64_t n)
{
	int64_t start[3] = {0}, stop[3];

	for (int i = 0; x && i < x->type.rank; i++)
		stop[i] = x->type.dim[i].base;
	if (x) {
		start[x->type.rank - 1] = first;
		stop[x->type.rank - 1] = first + n;
	}
	return pawl_build_slice(b->g, x, start, stop);
}

/* x f32[T, 1, n] for every head: [heads, T, n]. */
static struct pawl_node *
for_all_heads(struct builder *b, struct pawl_node *x, int64_t n)
{
	static const int swap[] = {1, 0, 2};
	const int64_t dims[] = {b->m->o.n_heads, b->r->n_tokens, n};
	const struct pawl_type type = pawl_type_make(PAWL_DTYPE_F32, 3, dims);

	x = pawl_build_permute(b->g, x, swap);
	return pawl_build(b->g, PAWL_OP_BROADCAST, NULL, &x, 1, NULL, &type);
}

static struct pawl_node *
round_to_cache(struct builder *b, struct pawl_node *x)
{
	if (b->r->kv_dtype == PAWL_DTYPE_F32)
		return x;
	return pawl_build_cast(
		b->g, pawl_build_cast(b->g, x, b->r->kv_dtype), PAWL_DTYPE_F32);
}

/* Keys [U_K c, r] and values U_V c of every head, in full. */
static struct pawl_node *
attend_materialized(struct builder *b, int layer, struct pawl_node *q, struct pawl_node *c,
	struct pawl_node *r, const struct pawl_attrs *attrs)
{
	static const int transpose[] = {0, 2, 1};
	const struct pawl_latent_dims *d = &b->m->o.dims;
	const int64_t t = b->r->n_tokens, heads = b->m->o.n_heads, one_head[] = {t, 1, d->rank},
		      as_k[] = {1, heads, t, d->nope + d->rope}, as_v[] = {1, heads, t, d->value};
	struct pawl_attrs join = pawl_attrs_default();
	struct pawl_node *in[2], *parts[2], *v;

	join.axis = 2;
	c = pawl_build_reshape(b->g, round_to_cache(b, c), 3, one_head);
	in[0] = for_all_heads(b, c, d->rank);
	in[1] = pawl_build_permute(b->g, layer_weight(b, layer, "attn_k_b"), transpose);
	parts[0] = pawl_build(b->g, PAWL_OP_BATCH_MATMUL, NULL, in, 2, NULL, NULL);
	parts[1] = for_all_heads(b, round_to_cache(b, r), d->rope);
	in[1] = layer_weight(b, layer, "attn_v_b");
	v = pawl_build(b->g, PAWL_OP_BATCH_MATMUL, NULL, in, 2, NULL, NULL);
	return pawl_decode_attend(b->g, &b->in, q,
		pawl_build_reshape(b->g,
			pawl_build(b->g, PAWL_OP_CONCAT, NULL, parts, 2, &join, NULL), 4, as_k),
		pawl_build_reshape(b->g, v, 4, as_v), attrs);
}

/* The cache of keys with the rows [c, r] written to it, and that of values as well. */
static struct pawl_node *
append_pair(struct builder *b, int layer, struct pawl_node *c, struct pawl_node *r)
{
	const struct pawl_latent_dims *d = &b->m->o.dims;
	const int64_t one_head[] = {b->r->n_tokens, 1, d->rank};
	struct pawl_attrs join = pawl_attrs_default();
	struct pawl_node *parts[] = {pawl_build_reshape(b->g, c, 3, one_head), r}, *row, *kv[2];

	join.axis = 2;
	row = pawl_build(b->g, PAWL_OP_CONCAT, NULL, parts, 2, &join, NULL);
	for (int i = 0; i < 2; i++) {
		const struct pawl_decode_cache_spec spec = {
			i ? "v" : "k", layer, 1, d->rank + d->rope, PAWL_LAYOUT_ROWS, 0};

		kv[i] = pawl_decode_append(
			b->g, &b->in, pawl_decode_cache(b->g, &b->in, &spec), row);
	}
	pawl_graph_add_output(b->g, kv[1]);
	return kv[0];
}

static struct pawl_node *
attend_absorbed(struct builder *b, int layer, const struct pawl_latent_query *q,
	struct pawl_node *c, struct pawl_node *r, const struct pawl_attrs *attrs)
{
	const struct pawl_latent_dims *d = &b->m->o.dims;
	struct pawl_node *cache =
		b->has_pairs ? append_pair(b, layer, c, r)
				  : pawl_latent_append(b->g, &b->in,
					    pawl_latent_cache(b->g, &b->in, d, layer), c, r);

	pawl_graph_add_output(b->g, cache);
	return pawl_latent_attend(b->g, &b->in, d, q, cache, attrs);
}

static struct pawl_node *
attend(struct builder *b, int layer, struct pawl_node *x)
{
	const struct pawl_tiny_mla_options *o = &b->m->o;
	const struct pawl_latent_dims *d = &o->dims;
	const int64_t t = b->r->n_tokens, heads[] = {t, o->n_heads, d->nope + d->rope},
		      flat[] = {t, o->n_heads * d->value}, one_head[] = {t, 1, d->rope};
	struct pawl_attrs attrs = pawl_attrs_default(), join = attrs;
	struct pawl_node *q, *latent, *c, *r, *y, *parts[2];
	struct pawl_latent_query query;

	join.axis = 2;
	attrs.scale = 1.0 / sqrt((double)(d->nope + d->rope));
	q = pawl_build_reshape(b->g, project(b, layer, "attn_q", x), 3, heads);
	latent = project(b, layer, "attn_kv_a", x);
	c = pawl_build_rms_norm(b->g, columns(b, latent, 0, d->rank),
		layer_weight(b, layer, "attn_kv_a_norm"), 1e-6);
	r = pawl_build_reshape(b->g, columns(b, latent, d->rank, d->rope), 3, one_head);
	r = pawl_build_rope(b->g, r, b->in.cos, b->in.sin, PAWL_PAIRS_ADJACENT);
	query.nope = columns(b, q, 0, d->nope);
	query.rope = pawl_build_rope(b->g, columns(b, q, d->nope, d->rope), b->in.cos, b->in.sin,
		PAWL_PAIRS_ADJACENT);
	if (b->is_materialized) {
		parts[0] = query.nope;
		parts[1] = query.rope;
		q = pawl_build(b->g, PAWL_OP_CONCAT, NULL, parts, 2, &join, NULL);
		y = attend_materialized(b, layer, q, c, r, &attrs);
	} else {
		query.up_k = layer_weight(b, layer, "attn_k_b");
		query.up_v = layer_weight(b, layer, "attn_v_b");
		y = attend_absorbed(b, layer, &query, c, r, &attrs);
	}
	return project(b, layer, "attn_output", pawl_build_reshape(b->g, y, 2, flat));
}

static struct pawl_node *
feed_forward(struct builder *b, int layer, struct pawl_node *x)
{
	struct pawl_node *gate =
		pawl_build_unary(b->g, PAWL_OP_SILU, project(b, layer, "ffn_gate", x));

	gate = pawl_build_binary(b->g, PAWL_OP_MUL, gate, project(b, layer, "ffn_up", x));
	return project(b, layer, "ffn_down", gate);
}

/* Logits are output 0, written caches follow. */
static void
build_nodes(struct builder *b)
{
	const struct pawl_tiny_mla_options *o = &b->m->o;
	struct pawl_node *embedding, *x, *y, *logits = NULL;

	pawl_decode_add_inputs(b->g, b->r, o->dims.rope, &b->in);
	embedding = weight(b, "token_embd.weight");
	x = pawl_build_gather(b->g, embedding, b->in.ids);
	for (int i = 0; i < o->n_layers; i++) {
		y = pawl_build_rms_norm(b->g, x, layer_weight(b, i, "attn_norm"), 1e-5);
		x = pawl_build_binary(b->g, PAWL_OP_ADD, attend(b, i, y), x);
		y = pawl_build_rms_norm(b->g, x, layer_weight(b, i, "ffn_norm"), 1e-5);
		x = pawl_build_binary(b->g, PAWL_OP_ADD, feed_forward(b, i, y), x);
	}
	if (b->r->logits == PAWL_LOGITS_NONE)
		return;
	x = pawl_decode_wanted_rows(b->g, &b->in, x);
	x = pawl_build_rms_norm(b->g, x, weight(b, "output_norm.weight"), 1e-5);
	logits = pawl_build_matmul(b->g, x, embedding);
	pawl_graph_add_output(b->g, logits);
	for (int i = b->g->n_outputs - 1; logits && i > 0; i--) {
		b->g->outputs[i] = b->g->outputs[i - 1];
		b->g->outputs[i - 1] = logits;
	}
}

static enum pawl_status
build_form(void *ctx, const struct pawl_graph_request *request, bool has_pairs,
	struct pawl_graph **out, struct pawl_error *err)
{
	struct builder b = {.m = ctx, .r = request, .has_pairs = has_pairs};

	b.g = pawl_graph_new("tiny_mla");
	if (!b.g)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	build_nodes(&b);
	if (b.g->error.status) {
		enum pawl_status status = pawl_fail(err, b.g->error.status, "%s", b.g->error.text);

		pawl_graph_free(b.g);
		return status;
	}
	*out = b.g;
	return PAWL_OK;
}

static enum pawl_status
build(void *ctx, const struct pawl_graph_request *request, struct pawl_graph **out,
	struct pawl_error *err)
{
	return build_form(ctx, request, false, out, err);
}

static enum pawl_status
build_pairs(void *ctx, const struct pawl_graph_request *request, struct pawl_graph **out,
	struct pawl_error *err)
{
	return build_form(ctx, request, true, out, err);
}

struct pawl_graph *
pawl_tiny_mla_materialized(
	struct pawl_tiny_mla *model, int64_t n_tokens, enum pawl_dtype kv_dtype)
{
	const struct pawl_graph_request request = {.n_tokens = n_tokens,
		.capacity = n_tokens,
		.kv_dtype = kv_dtype,
		.logits = PAWL_LOGITS_ALL};
	struct builder b = {.m = model,
		.g = pawl_graph_new("materialized"),
		.r = &request,
		.is_materialized = true};

	ck_assert_ptr_nonnull(b.g);
	build_nodes(&b);
	ck_assert_msg(!b.g->error.status, "%s", b.g->error.text);
	return b.g;
}

static uint64_t
fingerprint(void *ctx)
{
	return pawl_weights_id(((const struct pawl_tiny_mla *)ctx)->source.weights).value;
}

static void
describe_pairs(struct pawl_tiny_mla *m)
{
	m->pairs = m->source;
	m->pairs.build = build_pairs;
	m->pairs.n_kv_heads = 1;
	m->pairs.head_dim = m->o.dims.rank + m->o.dims.rope;
	m->pairs.k_layout = PAWL_LAYOUT_ROWS;
	m->pairs.fingerprint = fingerprint;
	pawl_shape_key_string(&m->pairs.shape_key, "tiny mla");
	pawl_shape_key_instance(&m->pairs.shape_key, pawl_weights_id(m->source.weights));
}

struct pawl_tiny_mla *
pawl_tiny_mla_new(const struct pawl_tiny_mla_options *options)
{
	struct pawl_tiny_mla *m = calloc(1, sizeof(*m));
	struct pawl_weight_source weights = {m, find_weight, NULL};

	ck_assert_ptr_nonnull(m);
	m->o = *options;
	pawl_tiny_weights_add(&m->weights, "token_embd.weight", options->dtype, 2,
		(const int64_t[]){options->n_vocab, options->n_embd}, 0, 1.0);
	pawl_tiny_weights_add(&m->weights, "output_norm.weight", PAWL_DTYPE_F32, 1,
		&options->n_embd, 1.0, 0.2);
	for (int i = 0; i < options->n_layers; i++)
		add_layer(m, i);
	ck_assert_int_eq(pawl_weights_new(&weights, &m->source.weights, NULL), PAWL_OK);
	m->source.ctx = m;
	m->source.n_layers = options->n_layers;
	m->source.n_vocab = options->n_vocab;
	m->source.rope_width = options->dims.rope;
	m->source.rope_pairs = PAWL_PAIRS_ADJACENT;
	m->source.build = build;
	m->source.rope = pawl_tiny_rope;
	describe_pairs(m);
	return m;
}

void
pawl_tiny_mla_free(struct pawl_tiny_mla *m)
{
	pawl_weights_unref(m->source.weights);
	pawl_tiny_weights_release(&m->weights);
	free(m);
}

const struct pawl_model_source *
pawl_tiny_mla_source(const struct pawl_tiny_mla *m)
{
	return &m->source;
}

const struct pawl_model_source *
pawl_tiny_mla_pairs(const struct pawl_tiny_mla *m)
{
	return &m->pairs;
}

struct pawl_latent_shape
pawl_tiny_mla_cache(const struct pawl_tiny_mla *m, int64_t capacity, enum pawl_dtype kv_dtype)
{
	return (struct pawl_latent_shape){.n_layers = m->o.n_layers,
		.n_slots = 1,
		.max_seq_len = capacity,
		.dtype = kv_dtype,
		.trailing = {{1, {m->o.dims.rank + m->o.dims.rope}}}};
}
