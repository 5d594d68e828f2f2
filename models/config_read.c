#include "models/config_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/trig.h"
#include "models/gguf_graph.h"

enum {
	MAX_WIDTH = 1 << 24,
	MOST_RADIANS = 1 << 24, /* beyond it an angle in f32 has lost whole radians */
	FEWEST_POSITIONS = 256, /* that angles must be good for, whatever the context */
};

/* A file and the family whose keys it has. */
struct reader {
	const struct pawl_gguf *gguf;
	const char *family;
};

const char *
pawl_config_key(char room[PAWL_CONFIG_KEY_BYTES], const char *family, const char *what)
{
	snprintf(room, PAWL_CONFIG_KEY_BYTES, "%s.%s", family, what);
	return room;
}

static enum pawl_status
need_size(const struct reader *r, const char *what, int64_t *out, struct pawl_error *err)
{
	char key[PAWL_CONFIG_KEY_BYTES];
	uint32_t value;
	enum pawl_status status =
		pawl_gguf_need_u32(r->gguf, pawl_config_key(key, r->family, what), &value, err);

	if (status != PAWL_OK)
		return status;
	if (!value || value > MAX_WIDTH)
		return pawl_gguf_refuse(
			r->gguf, key, err, "%u is not within 1 .. %d", value, MAX_WIDTH);
	*out = value;
	return PAWL_OK;
}

static bool
has(const struct reader *r, const char *what)
{
	char key[PAWL_CONFIG_KEY_BYTES];

	return pawl_gguf_find(r->gguf, pawl_config_key(key, r->family, what)) != NULL;
}

static enum pawl_status
get_size(const struct reader *r, const char *what, int64_t fallback, int64_t *out,
	struct pawl_error *err)
{
	if (!has(r, what)) {
		*out = fallback;
		return PAWL_OK;
	}
	return need_size(r, what, out, err);
}

static enum pawl_status
read_heads(const struct reader *r, struct pawl_model_config *c, struct pawl_error *err)
{
	char key[PAWL_CONFIG_KEY_BYTES];
	int64_t value_length;
	enum pawl_status status = need_size(r, "attention.head_count", &c->n_heads, err);

	if (status == PAWL_OK)
		status = get_size(r, "attention.head_count_kv", c->n_heads, &c->n_kv_heads, err);
	if (status != PAWL_OK)
		return status;
	if (c->n_kv_heads > c->n_heads || c->n_heads % c->n_kv_heads)
		return pawl_gguf_refuse(r->gguf,
			pawl_config_key(key, r->family, "attention.head_count_kv"), err,
			"%lld heads cannot share %lld key-value heads", (long long)c->n_heads,
			(long long)c->n_kv_heads);
	if (!has(r, "attention.key_length") && c->n_embd % c->n_heads)
		return pawl_gguf_refuse(r->gguf,
			pawl_config_key(key, r->family, "attention.head_count"), err,
			"width %lld is no multiple of %lld heads", (long long)c->n_embd,
			(long long)c->n_heads);
	status = get_size(r, "attention.key_length", c->n_embd / c->n_heads, &c->head_dim, err);
	if (status == PAWL_OK)
		status = get_size(r, "attention.value_length", c->head_dim, &value_length, err);
	if (status == PAWL_OK && value_length != c->head_dim)
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"%s: %s.attention.value_length: %lld differs from the key length %lld",
			r->gguf->name, r->family, (long long)value_length, (long long)c->head_dim);
	c->attention_scale = 1.0 / sqrt((double)c->head_dim);
	return status;
}

/* Whether a pair that turns by so many radians a position turns as asked up to the last one. */
static bool
can_turn(const struct pawl_model_config *c, double frequency)
{
	int64_t n = c->n_ctx > FEWEST_POSITIONS ? c->n_ctx : FEWEST_POSITIONS;

	return (double)(n - 1) * frequency <= MOST_RADIANS;
}

static enum pawl_status
read_rope_scaling(const struct reader *r, struct pawl_model_config *c, struct pawl_error *err)
{
	char key[PAWL_CONFIG_KEY_BYTES];
	struct pawl_gguf_string type;
	float factor;
	enum pawl_status status = pawl_gguf_get_string(
		r->gguf, pawl_config_key(key, r->family, "rope.scaling.type"), "none", &type, err);

	c->rope_scale = 1.0;
	if (status != PAWL_OK || (type.n == 4 && !memcmp(type.text, "none", 4)))
		return status;
	if (type.n != 6 || memcmp(type.text, "linear", 6))
		return pawl_fail(err, PAWL_UNSUPPORTED,
			"%s: %s: '%.*s' is not supported (none and linear are)", r->gguf->name, key,
			(int)(type.n < 32 ? type.n : 32), type.text);
	status = pawl_gguf_need_f32(
		r->gguf, pawl_config_key(key, r->family, "rope.scaling.factor"), &factor, err);
	if (status == PAWL_OK && !(factor > 0 && factor <= 1e6f))
		return pawl_gguf_refuse(r->gguf, key, err, "%g is no factor", (double)factor);
	if (status == PAWL_OK && !can_turn(c, 1.0 / (double)factor))
		return pawl_gguf_refuse(r->gguf, key, err,
			"%g makes angles that have no precision left", (double)factor);
	c->rope_scale = (double)factor;
	return status;
}

enum pawl_status
pawl_config_read_base(const struct pawl_gguf *gguf, const char *family, const char *what,
	double *base, struct pawl_error *err)
{
	char key[PAWL_CONFIG_KEY_BYTES];
	float value;
	enum pawl_status status =
		pawl_gguf_get_f32(gguf, pawl_config_key(key, family, what), 10000.0f, &value, err);

	if (status == PAWL_OK && !(value >= 1.0f && value <= 1e30f))
		return pawl_gguf_refuse(gguf, key, err, "%g is no base", (double)value);
	*base = (double)value;
	return status;
}

static enum pawl_status
read_rope(const struct reader *r, struct pawl_model_config *c, struct pawl_error *err)
{
	char key[PAWL_CONFIG_KEY_BYTES];
	enum pawl_status status = get_size(r, "rope.dimension_count", c->head_dim, &c->n_rot, err);

	if (status == PAWL_OK && (c->n_rot % 2 || c->n_rot > c->head_dim))
		return pawl_gguf_refuse(r->gguf,
			pawl_config_key(key, r->family, "rope.dimension_count"), err,
			"%lld is odd or wider than a head of %lld", (long long)c->n_rot,
			(long long)c->head_dim);
	if (status == PAWL_OK)
		status = pawl_config_read_base(
			r->gguf, r->family, "rope.freq_base", &c->rope_base, err);
	return status == PAWL_OK ? read_rope_scaling(r, c, err) : status;
}

enum pawl_status
pawl_config_read_shape(const struct pawl_gguf *gguf, const char *family,
	struct pawl_model_config *out, struct pawl_error *err)
{
	const struct reader r = {gguf, family};
	struct pawl_model_config c = {.embedding_scale = 1.0};
	char key[PAWL_CONFIG_KEY_BYTES];
	float eps;
	enum pawl_status status = need_size(&r, "embedding_length", &c.n_embd, err);

	if (status == PAWL_OK)
		status = need_size(&r, "block_count", &c.n_layers, err);
	if (status == PAWL_OK && c.n_layers > PAWL_MAX_MODEL_LAYERS)
		return pawl_gguf_refuse(gguf, pawl_config_key(key, family, "block_count"), err,
			"more than %d layers", PAWL_MAX_MODEL_LAYERS);
	if (status == PAWL_OK)
		status = need_size(&r, "feed_forward_length", &c.n_ff, err);
	if (status == PAWL_OK)
		status = need_size(&r, "context_length", &c.n_ctx, err);
	if (status == PAWL_OK)
		status = pawl_gguf_need_f32(gguf,
			pawl_config_key(key, family, "attention.layer_norm_rms_epsilon"), &eps,
			err);
	if (status == PAWL_OK && !(eps >= 0.0f && eps <= 1.0f))
		return pawl_gguf_refuse(gguf, key, err, "%g is no epsilon", (double)eps);
	if (status == PAWL_OK)
		status = read_heads(&r, &c, err);
	if (status == PAWL_OK)
		status = read_rope(&r, &c, err);
	if (status != PAWL_OK)
		return status;
	c.eps = (double)eps;
	*out = c;
	return PAWL_OK;
}

/* Dims are given slowest first, as graphs have them. */
static enum pawl_status
check_tensor(const struct pawl_gguf *gguf, const char *name, int rank, int64_t rows,
	int64_t columns, struct pawl_error *err)
{
	const struct pawl_gguf_tensor *t;
	enum pawl_status status = pawl_gguf_need_tensor(gguf, name, &t, err);
	enum pawl_dtype_kind kind;

	if (status != PAWL_OK)
		return status;
	if (t->rank != rank || t->dims[0] != columns || (rank == 2 && t->dims[1] != rows))
		return pawl_fail(err, PAWL_INVALID_FILE,
			"%s: tensor %s: its shape is [%lld, %lld] where the metadata asks for "
			"[%lld, %lld]",
			gguf->name, name, (long long)t->dims[1], (long long)t->dims[0],
			(long long)rows, (long long)columns);
	kind = pawl_dtype_info(t->dtype)->kind;
	if (rank == 1 ? t->dtype != PAWL_DTYPE_F32 : kind == PAWL_KIND_INT)
		return pawl_fail(err, PAWL_UNSUPPORTED, "%s: tensor %s: a %s of type %s",
			gguf->name, name, rank == 1 ? "vector" : "matrix",
			pawl_dtype_name(t->dtype));
	return PAWL_OK;
}

static enum pawl_status
check_vector(const struct pawl_gguf *gguf, int64_t layer, const char *what, const char *kind,
	int64_t n, struct pawl_error *err)
{
	char name[64];

	snprintf(name, sizeof(name), "blk.%lld.%s.%s", (long long)layer, what, kind);
	return check_tensor(gguf, name, 1, 1, n, err);
}

static enum pawl_status
check_matrix(const struct pawl_gguf *gguf, int64_t layer, const char *what, int64_t rows,
	int64_t columns, struct pawl_error *err)
{
	char name[64];
	enum pawl_status status;

	snprintf(name, sizeof(name), "blk.%lld.%s.weight", (long long)layer, what);
	status = check_tensor(gguf, name, 2, rows, columns, err);
	if (status == PAWL_OK && pawl_gguf_has_bias(gguf, layer, what))
		status = check_vector(gguf, layer, what, "bias", rows, err);
	return status;
}

static enum pawl_status
check_layer(const struct pawl_gguf *gguf, const struct pawl_model_config *c, int64_t layer,
	const struct pawl_config_vector *more, size_t n_more, struct pawl_error *err)
{
	const struct {
		const char *what;
		int64_t rows, columns;
	} matrices[] = {
		{"attn_q", c->n_heads * c->head_dim, c->n_embd},
		{"attn_k", c->n_kv_heads * c->head_dim, c->n_embd},
		{"attn_v", c->n_kv_heads * c->head_dim, c->n_embd},
		{"attn_output", c->n_embd, c->n_heads * c->head_dim},
		{"ffn_gate", c->n_ff, c->n_embd},
		{"ffn_up", c->n_ff, c->n_embd},
		{"ffn_down", c->n_embd, c->n_ff},
	};
	enum pawl_status status = check_vector(gguf, layer, "attn_norm", "weight", c->n_embd, err);

	if (status == PAWL_OK)
		status = check_vector(gguf, layer, "ffn_norm", "weight", c->n_embd, err);
	for (size_t i = 0; i < n_more && status == PAWL_OK; i++)
		status = check_vector(gguf, layer, more[i].what, "weight", more[i].n, err);
	for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]) && status == PAWL_OK; i++)
		status = check_matrix(
			gguf, layer, matrices[i].what, matrices[i].rows, matrices[i].columns, err);
	return status;
}

static enum pawl_status
check_rope_factors(
	const struct pawl_gguf *gguf, struct pawl_model_config *c, struct pawl_error *err)
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
				"%s: tensor rope_freqs.weight: element %lld is no factor",
				gguf->name, (long long)i);
		if (!can_turn(c, pawl_rope_frequency(c->rope_base, i, c->n_rot) / c->rope_scale /
					 (double)c->rope_factors[i]))
			return pawl_fail(err, PAWL_INVALID_FILE,
				"%s: tensor rope_freqs.weight: element %lld, %g, makes angles that "
				"have no precision left",
				gguf->name, (long long)i, (double)c->rope_factors[i]);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_config_check_tensors(const struct pawl_gguf *gguf, struct pawl_model_config *c,
	const struct pawl_config_vector *more, size_t n_more, struct pawl_error *err)
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
		status = check_layer(gguf, c, i, more, n_more, err);
	return status;
}
