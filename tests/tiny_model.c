#include "tests/tiny_model.h"

#include "ir/build.h"
#include "models/decode_graph.h"
#include "tests/tiny_weights.h"

#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pawl_tiny_model {
	struct pawl_tiny_options o;
	struct pawl_model_source source;
	struct pawl_tiny_weights weights;
	atomic_int n_drops, n_graphs; /* sources are called from several threads */
};

struct pawl_tiny_options
pawl_tiny_defaults(void)
{
	return (struct pawl_tiny_options){
		.n_layers = 2,
		.n_heads = 4,
		.n_kv_heads = 2,
		.head_dim = 16,
		.n_embd = 64,
		.n_ff = 96,
		.n_vocab = 40,
		.dtype = PAWL_DTYPE_F32,
		.k_layout = PAWL_LAYOUT_K16,
	};
}

static void
add_layer(struct pawl_tiny_model *m, int layer)
{
	const struct pawl_tiny_options *o = &m->o;
	const struct {
		const char *what;
		int64_t n, k;
	} matrices[] = {
		{"attn_q", o->n_heads * o->head_dim, o->n_embd},
		{"attn_k", o->n_kv_heads * o->head_dim, o->n_embd},
		{"attn_v", o->n_kv_heads * o->head_dim, o->n_embd},
		{"attn_output", o->n_embd, o->n_heads * o->head_dim},
		{"ffn_gate", o->n_ff, o->n_embd},
		{"ffn_up", o->n_ff, o->n_embd},
		{"ffn_down", o->n_embd, o->n_ff},
	};
	char name[48];

	for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++) {
		snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, matrices[i].what);
		pawl_tiny_weights_add(&m->weights, name, o->dtype, 2,
			(const int64_t[]){matrices[i].n, matrices[i].k}, 0, 0.3);
	}
	snprintf(name, sizeof(name), "blk.%d.attn_norm.weight", layer);
	pawl_tiny_weights_add(&m->weights, name, PAWL_DTYPE_F32, 1, &o->n_embd, 1.0, 0.2);
	snprintf(name, sizeof(name), "blk.%d.ffn_norm.weight", layer);
	pawl_tiny_weights_add(&m->weights, name, PAWL_DTYPE_F32, 1, &o->n_embd, 1.0, 0.2);
}

static enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *err)
{
	const struct pawl_tiny_model *m = ctx;

	return pawl_tiny_weights_find(&m->weights, name, out, err);
}

static void
drop_weight(void *ctx, const void *bytes, int64_t n_bytes)
{
	struct pawl_tiny_model *m = ctx;

	(void)bytes;
	m->n_drops += n_bytes > 0;
}

/* Graphs. */

struct builder {
	struct pawl_tiny_model *m;
	struct pawl_graph *g;
	const struct pawl_graph_request *r;
	struct pawl_decode_inputs in;
	struct pawl_node *mask;
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

static int64_t
window_of(const struct pawl_tiny_model *m, int64_t layer)
{
	return pawl_layer_set_has(&m->source.window_layers, layer) ? m->o.window : 0;
}

static struct pawl_node *
append(struct builder *b, int layer, const char *which, struct pawl_node *x)
{
	const struct pawl_tiny_options *o = &b->m->o;
	const struct pawl_decode_cache_spec spec = {which, layer, o->n_kv_heads, o->head_dim,
		*which == 'k' ? o->k_layout : PAWL_LAYOUT_ROWS, window_of(b->m, layer)};

	return pawl_decode_append(
		b->g, &b->in, pawl_decode_cache(b->g, &b->in, &spec), x);
}

static struct pawl_node *
heads(struct builder *b, struct pawl_node *x, int64_t n)
{
	const int64_t dims[] = {b->r->n_tokens, n, b->m->o.head_dim};

	return pawl_build_reshape(b->g, x, 3, dims);
}

static struct pawl_node *
attend(struct builder *b, int layer, struct pawl_node *x)
{
	const struct pawl_tiny_options *o = &b->m->o;
	const int64_t flat[] = {b->r->n_tokens, o->n_heads * o->head_dim};
	struct pawl_attrs attrs = pawl_attrs_default();
	struct pawl_node *q = heads(b, project(b, layer, "attn_q", x), o->n_heads);
	struct pawl_node *k = heads(b, project(b, layer, "attn_k", x), o->n_kv_heads);
	struct pawl_node *v = heads(b, project(b, layer, "attn_v", x), o->n_kv_heads);
	struct pawl_node *in[5], *y;

	q = pawl_build_rope(b->g, q, b->in.cos, b->in.sin, PAWL_PAIRS_ADJACENT);
	k = pawl_build_rope(b->g, k, b->in.cos, b->in.sin, PAWL_PAIRS_ADJACENT);
	in[0] = q;
	in[1] = append(b, layer, "k", k);
	in[2] = append(b, layer, "v", v);
	in[3] = b->in.offset;
	in[4] = b->mask;
	attrs.scale = 1.0 / sqrt((double)o->head_dim);
	attrs.causal = !b->mask;
	attrs.window = window_of(b->m, layer);
	y = b->mask ? pawl_build(b->g, PAWL_OP_ATTENTION, NULL, in, 5, &attrs, NULL)
		    : pawl_decode_attend(b->g, &b->in, q, in[1], in[2], &attrs);
	pawl_graph_add_output(b->g, in[1]);
	pawl_graph_add_output(b->g, in[2]);
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

static void
build_nodes(struct builder *b)
{
	const struct pawl_tiny_options *o = &b->m->o;
	const int64_t seen[] = {b->r->n_tokens, b->r->capacity};
	struct pawl_type mask = pawl_type_make(PAWL_DTYPE_F32, 2, seen);
	struct pawl_node *embedding, *x, *y, *caches[128];
	int n_caches;

	pawl_decode_add_inputs(b->g, b->r, o->head_dim, &b->in);
	if (o->has_mask)
		b->mask = pawl_build_const(b->g, PAWL_ROLE_DATA, "mask", &mask);
	embedding = weight(b, "token_embd.weight");
	x = pawl_build_gather(b->g, embedding, b->in.ids);
	for (int i = 0; i < o->n_layers; i++) {
		y = pawl_build_rms_norm(b->g, x, layer_weight(b, i, "attn_norm"), 1e-5);
		x = pawl_build_binary(b->g, PAWL_OP_ADD, attend(b, i, y), x);
		y = pawl_build_rms_norm(b->g, x, layer_weight(b, i, "ffn_norm"), 1e-5);
		x = pawl_build_binary(b->g, PAWL_OP_ADD, feed_forward(b, i, y), x);
	}
	if (b->r->logits == PAWL_LOGITS_NONE || !x)
		return;
	x = pawl_decode_wanted_rows(b->g, &b->in, x);
	x = pawl_build_rms_norm(b->g, x, weight(b, "output_norm.weight"), 1e-5);
	x = pawl_build_matmul(b->g, x, embedding);
	if (b->r->logits == PAWL_LOGITS_GREEDY)
		x = pawl_build_unary(b->g, PAWL_OP_ARGMAX, x);
	if (!x)
		return;
	/* Logits first. */
	n_caches = b->g->n_outputs;
	ck_assert_int_le(n_caches, 128);
	memcpy(caches, b->g->outputs, (size_t)n_caches * sizeof(caches[0]));
	pawl_graph_add_output(b->g, x);
	memmove(b->g->outputs + 1, caches, (size_t)n_caches * sizeof(caches[0]));
	b->g->outputs[0] = x;
}

static enum pawl_status
build(void *ctx, const struct pawl_graph_request *request, struct pawl_graph **out,
	struct pawl_error *err)
{
	struct builder b = {.m = ctx, .r = request};

	b.m->n_graphs++;
	b.g = pawl_graph_new("tiny");
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

static uint64_t
fingerprint(void *ctx)
{
	const struct pawl_tiny_model *m = ctx;
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	for (int i = 0; i < m->weights.n; i++)
		pawl_shape_key_bytes(&key, m->weights.items[i].bytes,
			(size_t)m->weights.items[i].weight.n_bytes);
	return key.value;
}

static void
make_source(struct pawl_tiny_model *m)
{
	struct pawl_weight_source weights = {m, find_weight, drop_weight};
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	ck_assert_int_eq(pawl_weights_new(&weights, &m->source.weights, NULL), PAWL_OK);
	pawl_shape_key_string(&key, "tiny");
	pawl_shape_key_instance(&key, pawl_weights_id(m->source.weights));
	pawl_shape_key_u64(&key, m->o.has_mask);
	pawl_shape_key_u64(&key, (uint64_t)m->o.window);
	pawl_shape_key_u64(&key, m->o.window_layers);
	m->source.window = m->o.window;
	m->source.window_layers = (struct pawl_layer_set){{m->o.window_layers}};
	m->source.ctx = m;
	m->source.shape_key = key;
	m->source.n_layers = m->o.n_layers;
	m->source.n_kv_heads = m->o.n_kv_heads;
	m->source.head_dim = m->o.head_dim;
	m->source.n_vocab = m->o.n_vocab;
	m->source.k_layout = m->o.k_layout;
	m->source.rope_width = m->o.head_dim;
	m->source.rope_pairs = PAWL_PAIRS_ADJACENT;
	m->source.build = build;
	m->source.rope = pawl_tiny_rope;
	m->source.fingerprint = fingerprint;
}

struct pawl_tiny_model *
pawl_tiny_model_new(const struct pawl_tiny_options *options)
{
	struct pawl_tiny_model *m = calloc(1, sizeof(*m));

	ck_assert_ptr_nonnull(m);
	m->o = *options;
	pawl_tiny_weights_add(&m->weights, "token_embd.weight", options->dtype, 2,
		(const int64_t[]){options->n_vocab, options->n_embd}, 0, 1.0);
	pawl_tiny_weights_add(&m->weights, "output_norm.weight", PAWL_DTYPE_F32, 1,
		&options->n_embd, 1.0, 0.2);
	for (int i = 0; i < options->n_layers; i++)
		add_layer(m, i);
	make_source(m);
	return m;
}

struct pawl_tiny_model *
pawl_tiny_model_twin(const struct pawl_tiny_model *model, const struct pawl_tiny_options *options)
{
	struct pawl_tiny_model *m = calloc(1, sizeof(*m));

	ck_assert_ptr_nonnull(m);
	*m = *model;
	m->o = *options;
	m->n_drops = 0;
	m->n_graphs = 0;
	pawl_tiny_weights_own(&m->weights);
	make_source(m);
	return m;
}

void
pawl_tiny_model_free(struct pawl_tiny_model *m)
{
	pawl_weights_unref(m->source.weights);
	pawl_tiny_weights_release(&m->weights);
	free(m);
}

const struct pawl_model_source *
pawl_tiny_model_source(const struct pawl_tiny_model *m)
{
	return &m->source;
}

int
pawl_tiny_model_drops(const struct pawl_tiny_model *m)
{
	return m->n_drops;
}

int
pawl_tiny_model_graphs(const struct pawl_tiny_model *m)
{
	return m->n_graphs;
}
