#include "models/llama_graph.h"

#include <math.h>
#include <stdio.h>

#include "ir/build.h"

struct builder {
	struct pawl_graph *g;
	const struct pawl_gguf *gguf;
	const struct pawl_llama_config *c;
	int64_t n_tokens, capacity;
	enum pawl_dtype kv_dtype;
	int32_t attended_len;
	struct pawl_node *ids, *cos, *sin, *offset;
};

static struct pawl_node *
weight(struct builder *b, const char *name)
{
	const struct pawl_gguf_tensor *t = pawl_gguf_find_tensor(b->gguf, name);
	struct pawl_type type;
	int64_t dims[2];

	if (!t) {
		pawl_fail(&b->g->error, PAWL_INVALID_FILE, "%s: tensor %s is missing", b->gguf->name, name);
		return NULL;
	}
	dims[0] = t->rank == 2 ? t->dims[1] : t->dims[0];
	dims[1] = t->dims[0];
	type = pawl_type_make(t->dtype, t->rank, dims);
	return pawl_build_const(b->g, PAWL_ROLE_WEIGHT, name, &type);
}

static struct pawl_node *
layer_weight(struct builder *b, int64_t layer, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "blk.%lld.%s.weight", (long long)layer, what);
	return weight(b, name);
}

/* x times a weight of the layer, plus its bias where the file has one. */
static struct pawl_node *
project(struct builder *b, int64_t layer, const char *what, struct pawl_node *x)
{
	struct pawl_node *y = pawl_build_matmul(b->g, x, layer_weight(b, layer, what));
	char name[64];

	if (!pawl_llama_has_bias(b->gguf, layer, what))
		return y;
	snprintf(name, sizeof(name), "blk.%lld.%s.bias", (long long)layer, what);
	return pawl_build_binary(b->g, PAWL_OP_ADD, y, weight(b, name));
}

static struct pawl_node *
cache(struct builder *b, const char *which, int64_t layer, enum pawl_layout layout)
{
	int64_t dims[4] = {1, b->c->n_kv_heads, b->capacity, b->c->head_dim};
	struct pawl_type type = pawl_type_make(b->kv_dtype, 4, dims);
	char name[64];

	type.layout = layout;
	snprintf(name, sizeof(name), "cache.%s.%lld", which, (long long)layer);
	return pawl_build_const(b->g, PAWL_ROLE_KV, name, &type);
}

static struct pawl_node *
split_heads(struct builder *b, struct pawl_node *x, int64_t n_heads)
{
	int64_t dims[3] = {b->n_tokens, n_heads, b->c->head_dim};

	return pawl_build_reshape(b->g, x, 3, dims);
}

/* Writes x [T, head, d] into positions offset .. offset + T of a cache. */
static struct pawl_node *
append(struct builder *b, struct pawl_node *to, struct pawl_node *x)
{
	static const int heads_first[3] = {1, 0, 2};
	int64_t dims[4] = {1, b->c->n_kv_heads, b->n_tokens, b->c->head_dim};

	x = pawl_build_cast(b->g, x, b->kv_dtype);
	x = pawl_build_permute(b->g, x, heads_first);
	x = pawl_build_reshape(b->g, x, 4, dims);
	return pawl_build_write_slice(b->g, to, x, NULL, 2, b->offset);
}

static struct pawl_node *
attention(struct builder *b, int64_t layer, struct pawl_node *x, struct pawl_node **kv)
{
	const struct pawl_llama_config *c = b->c;
	struct pawl_attrs attrs = pawl_attrs_default();
	int64_t flat[2] = {b->n_tokens, c->n_heads * c->head_dim};
	struct pawl_node *in[4], *q, *k, *v, *y;

	q = split_heads(b, project(b, layer, "attn_q", x), c->n_heads);
	k = split_heads(b, project(b, layer, "attn_k", x), c->n_kv_heads);
	v = split_heads(b, project(b, layer, "attn_v", x), c->n_kv_heads);
	q = pawl_build_rope(b->g, q, b->cos, b->sin, PAWL_PAIRS_ADJACENT);
	k = pawl_build_rope(b->g, k, b->cos, b->sin, PAWL_PAIRS_ADJACENT);
	kv[0] = append(b, cache(b, "k", layer, PAWL_LAYOUT_K16), k);
	kv[1] = append(b, cache(b, "v", layer, PAWL_LAYOUT_ROWS), v);
	attrs.scale = 1.0 / sqrt((double)c->head_dim);
	attrs.sym = b->attended_len;
	in[0] = q;
	in[1] = kv[0];
	in[2] = kv[1];
	in[3] = b->offset;
	y = pawl_build(b->g, PAWL_OP_ATTENTION, NULL, in, 4, &attrs, NULL);
	return project(b, layer, "attn_output", pawl_build_reshape(b->g, y, 2, flat));
}

static struct pawl_node *
feed_forward(struct builder *b, int64_t layer, struct pawl_node *x)
{
	struct pawl_node *gate = project(b, layer, "ffn_gate", x);
	struct pawl_node *up = project(b, layer, "ffn_up", x);

	gate = pawl_build_unary(b->g, PAWL_OP_SILU, gate);
	return project(b, layer, "ffn_down", pawl_build_binary(b->g, PAWL_OP_MUL, gate, up));
}

static struct pawl_node *
norm(struct builder *b, struct pawl_node *x, struct pawl_node *w)
{
	return pawl_build_rms_norm(b->g, x, w, b->c->eps);
}

static void
add_data(struct builder *b)
{
	const struct pawl_llama_config *c = b->c;
	int64_t rows[1] = {b->n_tokens}, table[2] = {b->n_tokens, c->n_rot};
	struct pawl_type ids = pawl_type_make(PAWL_DTYPE_U32, 1, rows);
	struct pawl_type angles = pawl_type_make(PAWL_DTYPE_F32, 2, table);
	struct pawl_type offset = pawl_type_make(PAWL_DTYPE_I64, 0, NULL);

	b->attended_len = pawl_graph_add_symbol(b->g, "attended_len", b->n_tokens, b->capacity, 1);
	b->ids = pawl_build_const(b->g, PAWL_ROLE_DATA, "token_ids", &ids);
	b->cos = pawl_build_const(b->g, PAWL_ROLE_DATA, "rope_cos", &angles);
	b->sin = pawl_build_const(b->g, PAWL_ROLE_DATA, "rope_sin", &angles);
	b->offset = pawl_build_const(b->g, PAWL_ROLE_DATA, "offset", &offset);
}

static struct pawl_node *
head(struct builder *b, struct pawl_node *x, struct pawl_node *embedding, enum pawl_logits logits)
{
	int64_t start[2] = {b->n_tokens - 1, 0}, stop[2] = {b->n_tokens, b->c->n_embd};

	if (logits == PAWL_LOGITS_LAST && b->n_tokens > 1)
		x = pawl_build_slice(b->g, x, start, stop);
	x = norm(b, x, weight(b, "output_norm.weight"));
	return pawl_build_matmul(b->g, x, b->c->has_head ? weight(b, "output.weight") : embedding);
}

enum pawl_status
pawl_llama_graph(const struct pawl_gguf *gguf, const struct pawl_llama_config *config,
	const struct pawl_graph_request *request, struct pawl_graph **out, struct pawl_error *err)
{
	struct builder b = {.gguf = gguf, .c = config, .n_tokens = request->n_tokens,
		.capacity = request->capacity, .kv_dtype = request->kv_dtype};
	struct pawl_node *kv[2 * PAWL_LLAMA_MAX_LAYERS], *x, *embedding;
	int64_t i;

	b.g = pawl_graph_new("llama");
	if (!b.g)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a graph");
	add_data(&b);
	embedding = weight(&b, "token_embd.weight");
	x = pawl_build_gather(b.g, embedding, b.ids);
	for (i = 0; i < config->n_layers; i++) {
		struct pawl_node *y = norm(&b, x, layer_weight(&b, i, "attn_norm"));

		x = pawl_build_binary(b.g, PAWL_OP_ADD, attention(&b, i, y, &kv[2 * i]), x);
		y = norm(&b, x, layer_weight(&b, i, "ffn_norm"));
		x = pawl_build_binary(b.g, PAWL_OP_ADD, feed_forward(&b, i, y), x);
	}
	if (request->logits != PAWL_LOGITS_NONE)
		pawl_graph_add_output(b.g, head(&b, x, embedding, request->logits));
	for (i = 0; i < 2 * config->n_layers; i++)
		pawl_graph_add_output(b.g, kv[i]);
	if (b.g->error.status != PAWL_OK) {
		enum pawl_status status = pawl_fail(err, b.g->error.status, "%s", b.g->error.text);

		pawl_graph_free(b.g);
		return status;
	}
	*out = b.g;
	return PAWL_OK;
}
