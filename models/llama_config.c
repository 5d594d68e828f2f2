#include "models/llama_config.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 24 };

static enum pawl_status
need_size(const struct pawl_gguf *gguf, const char *key, int64_t *out, struct pawl_error *err)
{
	uint32_t value;
	enum pawl_status status = pawl_gguf_need_u32(gguf, key, &value, err);

	if (status != PAWL_OK)
		return status;
	if (!value || value > MAX_WIDTH)
		return pawl_gguf_refuse(gguf, key, err, "%u is not within 1 .. %d", value, MAX_WIDTH);
	*out = value;
	return PAWL_OK;
}

static enum pawl_status
get_size(const struct pawl_gguf *gguf, const char *key, int64_t fallback, int64_t *out,
	struct pawl_error *err)
{
	if (!pawl_gguf_find(gguf, key)) {
		*out = fallback;
		return PAWL_OK;
	}
	return need_size(gguf, key, out, err);
}

static enum pawl_status
read_heads(const struct pawl_gguf *gguf, struct pawl_llama_config *c, struct pawl_error *err)
{
	int64_t value_length;
	enum pawl_status status = need_size(gguf, "llama.attention.head_count", &c->n_heads, err);

	if (status == PAWL_OK)
		status = get_size(gguf, "llama.attention.head_count_kv", c->n_heads, &c->n_kv_heads, err);
	if (status != PAWL_OK)
		return status;
	if (c->n_kv_heads > c->n_heads || c->n_heads % c->n_kv_heads)
		return pawl_gguf_refuse(gguf, "llama.attention.head_count_kv", err,
			"%lld heads cannot share %lld key-value heads", (long long)c->n_heads,
			(long long)c->n_kv_heads);
	if (!pawl_gguf_find(gguf, "llama.attention.key_length") && c->n_embd % c->n_heads)
		return pawl_gguf_refuse(gguf, "llama.attention.head_count", err,
			"width %lld is no multiple of %lld heads", (long long)c->n_embd,
			(long long)c->n_heads);
	status = get_size(
		gguf, "llama.attention.key_length", c->n_embd / c->n_heads, &c->head_dim, err);
	if (status == PAWL_OK)
		status = get_size(
			gguf, "llama.attention.value_length", c->head_dim, &value_length, err);
	if (status == PAWL_OK && value_length != c->head_dim)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"%s: llama.attention.value_length: %lld differs from the key length %lld",
			gguf->name, (long long)value_length, (long long)c->head_dim);
	return status;
}

static enum pawl_status
read_rope_scaling(const struct pawl_gguf *gguf, struct pawl_llama_config *c, struct pawl_error *err)
{
	struct pawl_gguf_string type;
	float factor;
	enum pawl_status status =
		pawl_gguf_get_string(gguf, "llama.rope.scaling.type", "none", &type, err);

	c->rope_scale = 1.0;
	if (status != PAWL_OK || (type.n == 4 && !memcmp(type.text, "none", 4)))
		return status;
	if (type.n != 6 || memcmp(type.text, "linear", 6))
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"%s: llama.rope.scaling.type: '%.*s' is not supported (none and linear are)",
			gguf->name, (int)(type.n < 32 ? type.n : 32), type.text);
	status = pawl_gguf_need_f32(gguf, "llama.rope.scaling.factor", &factor, err);
	if (status == PAWL_OK && !(factor > 0 && factor <= 1e6f))
		return pawl_gguf_refuse(gguf, "llama.rope.scaling.factor", err, "%g is no factor",
			(double)factor);
	c->rope_scale = (double)factor;
	return status;
}

static enum pawl_status
read_rope(const struct pawl_gguf *gguf, struct pawl_llama_config *c, struct pawl_error *err)
{
	float base;
	enum pawl_status status = get_size(gguf, "llama.rope.dimension_count", c->head_dim, &c->n_rot, err);

	if (status == PAWL_OK && (c->n_rot % 2 || c->n_rot > c->head_dim))
		return pawl_gguf_refuse(gguf, "llama.rope.dimension_count", err,
			"%lld is odd or wider than a head of %lld", (long long)c->n_rot,
			(long long)c->head_dim);
	if (status == PAWL_OK)
		status = pawl_gguf_get_f32(gguf, "llama.rope.freq_base", 10000.0f, &base, err);
	if (status == PAWL_OK && !(base >= 1.0f && base <= 1e30f))
		return pawl_gguf_refuse(gguf, "llama.rope.freq_base", err, "%g is no base", (double)base);
	if (status != PAWL_OK)
		return status;
	c->rope_base = (double)base;
	return read_rope_scaling(gguf, c, err);
}

/* Dims are given slowest first, as graphs have them. */
static enum pawl_status
check_tensor(const struct pawl_gguf *gguf, const char *name, int rank, int64_t rows, int64_t columns,
	struct pawl_error *err)
{
	const struct pawl_gguf_tensor *t;
	enum pawl_status status = pawl_gguf_need_tensor(gguf, name, &t, err);
	enum pawl_dtype_kind kind;

	if (status != PAWL_OK)
		return status;
	if (t->rank != rank || t->dims[0] != columns || (rank == 2 && t->dims[1] != rows))
		return pawl_fail(err, PAWL_INVALID_FILE,
			"%s: tensor %s: its shape is [%lld, %lld] where the metadata asks for [%lld, %lld]",
			gguf->name, name, (long long)t->dims[1], (long long)t->dims[0], (long long)rows,
			(long long)columns);
	kind = pawl_dtype_info(t->dtype)->kind;
	if (rank == 1 ? t->dtype != PAWL_DTYPE_F32 : kind == PAWL_KIND_INT)
		return pawl_fail(err, PAWL_UNSUPPORTED, "%s: tensor %s: a %s of type %s", gguf->name, name,
			rank == 1 ? "vector" : "matrix", pawl_dtype_name(t->dtype));
	return PAWL_OK;
}

bool
pawl_llama_has_bias(const struct pawl_gguf *gguf, int64_t layer, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "blk.%lld.%s.bias", (long long)layer, what);
	return pawl_gguf_find_tensor(gguf, name) != NULL;
}

static enum pawl_status
check_layer(const struct pawl_gguf *gguf, const struct pawl_llama_config *c, int64_t layer,
	struct pawl_error *err)
{
	const struct {
		const char *what;
		int rank;
		int64_t rows, columns;
	} wanted[] = {
		{"attn_norm", 1, 1, c->n_embd},
		{"attn_q", 2, c->n_heads * c->head_dim, c->n_embd},
		{"attn_k", 2, c->n_kv_heads * c->head_dim, c->n_embd},
		{"attn_v", 2, c->n_kv_heads * c->head_dim, c->n_embd},
		{"attn_output", 2, c->n_embd, c->n_heads * c->head_dim},
		{"ffn_norm", 1, 1, c->n_embd},
		{"ffn_gate", 2, c->n_ff, c->n_embd},
		{"ffn_up", 2, c->n_ff, c->n_embd},
		{"ffn_down", 2, c->n_embd, c->n_ff},
	};
	char name[64];
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		enum pawl_status status;

		snprintf(name, sizeof(name), "blk.%lld.%s.weight", (long long)layer, wanted[i].what);
		status = check_tensor(
			gguf, name, wanted[i].rank, wanted[i].rows, wanted[i].columns, err);
		if (status == PAWL_OK && wanted[i].rank == 2 &&
			pawl_llama_has_bias(gguf, layer, wanted[i].what)) {
			snprintf(name, sizeof(name), "blk.%lld.%s.bias", (long long)layer,
				wanted[i].what);
			status = check_tensor(gguf, name, 1, 1, wanted[i].rows, err);
		}
		if (status != PAWL_OK)
			return status;
	}
	return PAWL_OK;
}

static enum pawl_status
check_rope_factors(const struct pawl_gguf *gguf, struct pawl_llama_config *c, struct pawl_error *err)
{
	const struct pawl_gguf_tensor *t;
	enum pawl_status status;
	int64_t i;

	c->rope_factors = NULL;
	if (!pawl_gguf_find_tensor(gguf, "rope_freqs.weight"))
		return PAWL_OK;
	status = check_tensor(gguf, "rope_freqs.weight", 1, 1, c->n_rot / 2, err);
	if (status == PAWL_OK)
		status = pawl_gguf_need_tensor(gguf, "rope_freqs.weight", &t, err);
	if (status != PAWL_OK)
		return status;
	c->rope_factors = t->data;
	for (i = 0; i < c->n_rot / 2; i++) {
		if (!(c->rope_factors[i] > 0 && c->rope_factors[i] <= 1e9f))
			return pawl_fail(err, PAWL_INVALID_FILE,
				"%s: tensor rope_freqs.weight: element %lld is no factor", gguf->name,
				(long long)i);
	}
	return PAWL_OK;
}

static enum pawl_status
check_tensors(const struct pawl_gguf *gguf, struct pawl_llama_config *c, struct pawl_error *err)
{
	const struct pawl_gguf_tensor *embedding;
	enum pawl_status status = pawl_gguf_need_tensor(gguf, "token_embd.weight", &embedding, err);
	int64_t i;

	if (status != PAWL_OK)
		return status;
	c->n_vocab = embedding->dims[1];
	status = check_tensor(gguf, "token_embd.weight", 2, c->n_vocab, c->n_embd, err);
	if (status == PAWL_OK)
		status = check_tensor(gguf, "output_norm.weight", 1, 1, c->n_embd, err);
	c->has_head = pawl_gguf_find_tensor(gguf, "output.weight") != NULL;
	if (status == PAWL_OK && c->has_head)
		status = check_tensor(gguf, "output.weight", 2, c->n_vocab, c->n_embd, err);
	if (status == PAWL_OK)
		status = check_rope_factors(gguf, c, err);
	for (i = 0; i < c->n_layers && status == PAWL_OK; i++)
		status = check_layer(gguf, c, i, err);
	return status;
}

enum pawl_status
pawl_llama_config_read(
	const struct pawl_gguf *gguf, struct pawl_llama_config *out, struct pawl_error *err)
{
	struct pawl_llama_config c = {0};
	uint32_t n_experts;
	float eps;
	enum pawl_status status = need_size(gguf, "llama.embedding_length", &c.n_embd, err);

	if (status == PAWL_OK)
		status = need_size(gguf, "llama.block_count", &c.n_layers, err);
	if (status == PAWL_OK && c.n_layers > PAWL_LLAMA_MAX_LAYERS)
		return pawl_gguf_refuse(gguf, "llama.block_count", err, "more than %d layers",
			PAWL_LLAMA_MAX_LAYERS);
	if (status == PAWL_OK)
		status = need_size(gguf, "llama.feed_forward_length", &c.n_ff, err);
	if (status == PAWL_OK)
		status = need_size(gguf, "llama.context_length", &c.n_ctx, err);
	if (status == PAWL_OK)
		status = pawl_gguf_need_f32(gguf, "llama.attention.layer_norm_rms_epsilon", &eps, err);
	if (status == PAWL_OK && !(eps >= 0.0f && eps <= 1.0f))
		return pawl_gguf_refuse(gguf, "llama.attention.layer_norm_rms_epsilon", err,
			"%g is no epsilon", (double)eps);
	if (status == PAWL_OK)
		status = pawl_gguf_get_u32(gguf, "llama.expert_count", 0, &n_experts, err);
	if (status == PAWL_OK && n_experts)
		return pawl_fail(err, PAWL_UNSUPPORTED, "%s: llama.expert_count: experts are not supported",
			gguf->name);
	if (status == PAWL_OK)
		status = read_heads(gguf, &c, err);
	if (status == PAWL_OK)
		status = read_rope(gguf, &c, err);
	if (status == PAWL_OK)
		status = check_tensors(gguf, &c, err);
	if (status != PAWL_OK)
		return status;
	c.eps = (double)eps;
	*out = c;
	return PAWL_OK;
}
