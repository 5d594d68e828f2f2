#include "models/model.h"

#include <stdlib.h>
#include <string.h>

#include "ir/each_token.h"
#include "ir/trig.h"
#include "models/fingerprint.h"
#include "models/model_config.h"
#include "models/tokenizer_gguf.h"

enum { FOLIO_BYTES = 2 << 20 };

struct pawl_model {
	struct pawl_gguf *gguf;
	struct pawl_tokenizer *tokenizer;
	struct pawl_weights *weights;
	const struct pawl_model_family *family;
	struct pawl_model_config config;
	double *frequencies; /* n_rot / 2, radians per position; then those of window_layers */
	struct pawl_model_source source;
	struct pawl_model_info info;
};

static enum pawl_status
find_weight(void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *err)
{
	const struct pawl_model *model = ctx;
	const struct pawl_gguf_tensor *t = pawl_gguf_find_tensor(model->gguf, name);
	int i;

	if (!t)
		return pawl_fail(err, PAWL_INVALID_FILE, "%s: tensor %s is missing", model->gguf->name, name);
	*out = (struct pawl_weight){
		.bytes = t->data, .n_bytes = (int64_t)t->n_bytes, .dtype = t->dtype, .rank = t->rank};
	for (i = 0; i < t->rank; i++)
		out->dim[i] = t->dims[t->rank - 1 - i];
	return PAWL_OK;
}

/*
 * The kernel maps whole folios of the page cache at a fault, up to 2 MiB of neighbours with the
 * page asked for.  They go too, or packing a file tensor by tensor would leave most of it resident;
 * who still needs one of them takes it from the cache again.
 */
static void
drop_weight(void *ctx, const void *bytes, int64_t n_bytes)
{
	const struct pawl_file_map *map = &((const struct pawl_model *)ctx)->gguf->map;
	size_t at = (size_t)((const unsigned char *)bytes - map->bytes);
	size_t from = at > FOLIO_BYTES ? at - FOLIO_BYTES : 0;
	size_t to = at + (size_t)n_bytes + FOLIO_BYTES;

	if (to > map->n_bytes)
		to = map->n_bytes;
	pawl_file_map_drop(map, map->bytes + from, to - from);
}

static enum pawl_status
build_graph(void *ctx, const struct pawl_graph_request *request, struct pawl_graph **out,
	struct pawl_error *err)
{
	const struct pawl_model *model = ctx;

	return model->family->graph(model->gguf, &model->config, request, out, err);
}

/* One value for each pair, spread to both of its elements. */
PAWL_EACH_TOKEN static void
fill_rope(const struct pawl_model *model, const double *frequencies, int64_t position,
	int64_t width, float *cos, float *sin)
{
	int64_t n = width / 2, i;

	pawl_rope_row(position, frequencies, n, cos, sin);
	if (model->config.rope_pairs == PAWL_PAIRS_HALVES) {
		memcpy(cos + n, cos, (size_t)n * sizeof(*cos));
		memcpy(sin + n, sin, (size_t)n * sizeof(*sin));
		return;
	}
	for (i = n - 1; i >= 0; i--) {
		cos[2 * i] = cos[2 * i + 1] = cos[i];
		sin[2 * i] = sin[2 * i + 1] = sin[i];
	}
}

PAWL_EACH_TOKEN static void
rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	const struct pawl_model *model = ctx;

	fill_rope(model, model->frequencies, position, width, cos, sin);
}

PAWL_EACH_TOKEN static void
window_rope(void *ctx, int64_t position, int64_t width, float *cos, float *sin)
{
	const struct pawl_model *model = ctx;

	fill_rope(model, model->frequencies + model->config.n_rot / 2, position, width, cos, sin);
}

static uint64_t
fingerprint(void *ctx)
{
	return pawl_gguf_fingerprint(((const struct pawl_model *)ctx)->gguf);
}

static enum pawl_status
make_frequencies(struct pawl_model *model, struct pawl_error *err)
{
	const struct pawl_model_config *c = &model->config;
	int64_t n = c->n_rot / 2, i;

	model->frequencies = calloc(2 * (size_t)n + 1, sizeof(double));
	if (!model->frequencies)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for rotary frequencies");
	for (i = 0; i < n; i++) {
		double f = pawl_rope_frequency(c->rope_base, i, c->n_rot) / c->rope_scale;

		model->frequencies[i] = c->rope_factors ? f / (double)c->rope_factors[i] : f;
		if (c->window_rope_base != 0.0)
			model->frequencies[n + i] =
				pawl_rope_frequency(c->window_rope_base, i, c->n_rot);
	}
	return PAWL_OK;
}

static struct pawl_shape_key
shape_key(const struct pawl_model *model)
{
	const struct pawl_model_config *c = &model->config;
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	pawl_shape_key_string(&key, model->family->name);
	pawl_shape_key_instance(&key, pawl_weights_id(model->weights));
	pawl_shape_key_u64(&key, (uint64_t)c->n_layers);
	pawl_shape_key_u64(&key, (uint64_t)c->n_heads);
	pawl_shape_key_u64(&key, (uint64_t)c->n_kv_heads);
	pawl_shape_key_u64(&key, (uint64_t)c->head_dim);
	pawl_shape_key_u64(&key, (uint64_t)c->n_rot);
	pawl_shape_key_u64(&key, (uint64_t)c->n_embd);
	pawl_shape_key_u64(&key, (uint64_t)c->n_ff);
	pawl_shape_key_u64(&key, (uint64_t)c->n_vocab);
	pawl_shape_key_u64(&key, (uint64_t)c->window);
	for (int i = 0; i < PAWL_MAX_WINDOW_LAYERS / 64; i++)
		pawl_shape_key_u64(&key, c->window_layers.bits[i]);
	pawl_shape_key_f64(&key, c->eps);
	pawl_shape_key_f64(&key, c->attention_scale);
	pawl_shape_key_f64(&key, c->embedding_scale);
	pawl_shape_key_presence(&key, c->window_rope_base != 0.0);
	pawl_shape_key_presence(&key, c->has_head);
	return key;
}

static const char *
describe_rope(const struct pawl_model_config *c)
{
	if (c->rope_pairs == PAWL_PAIRS_HALVES)
		return c->rope_factors ? "halves, frequency factors" : "halves";
	return c->rope_factors ? "adjacent pairs, frequency factors" : "adjacent pairs";
}

static void
describe(struct pawl_model *model)
{
	const struct pawl_model_config *c = &model->config;

	model->source = (struct pawl_model_source){.ctx = model, .weights = model->weights,
		.shape_key = shape_key(model), .n_layers = (int32_t)c->n_layers,
		.n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim, .n_vocab = c->n_vocab,
		.k_layout = PAWL_LAYOUT_K16, .window = c->window,
		.window_layers = c->window_layers, .rope_width = c->n_rot,
		.rope_pairs = c->rope_pairs, .build = build_graph, .rope = rope,
		.window_rope = c->window_rope_base != 0.0 ? window_rope : NULL,
		.fingerprint = fingerprint};
	model->info = (struct pawl_model_info){.family = model->family->name,
		.n_layers = c->n_layers, .n_embd = c->n_embd, .n_heads = c->n_heads,
		.n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim, .n_vocab = c->n_vocab,
		.n_ctx = c->n_ctx, .has_head = c->has_head, .rope = describe_rope(c)};
}

static enum pawl_status
load(struct pawl_model *model, const char *path, bool with_tokenizer, struct pawl_error *err)
{
	struct pawl_weight_source source = {.ctx = model, .find = find_weight, .drop = drop_weight};
	enum pawl_status status = pawl_gguf_open(path, &model->gguf, err);

	if (status == PAWL_OK)
		status = pawl_model_config_read(
			model->gguf, &model->family, &model->config, err);
	if (status == PAWL_OK && with_tokenizer)
		status = pawl_tokenizer_from_gguf(model->gguf, &model->tokenizer, err);
	if (status == PAWL_OK && with_tokenizer &&
		pawl_tokenizer_n_vocab(model->tokenizer) != (size_t)model->config.n_vocab)
		return pawl_gguf_refuse(model->gguf, "tokenizer.ggml.tokens", err,
			"%zu tokens, but the embedding has %lld rows",
			pawl_tokenizer_n_vocab(model->tokenizer), (long long)model->config.n_vocab);
	if (status == PAWL_OK)
		status = make_frequencies(model, err);
	if (status == PAWL_OK)
		status = pawl_weights_new(&source, &model->weights, err);
	if (status == PAWL_OK)
		describe(model);
	return status;
}

static enum pawl_status
open_model(const char *path, bool with_tokenizer, struct pawl_model **out, struct pawl_error *err)
{
	struct pawl_model *model = calloc(1, sizeof(*model));
	enum pawl_status status;

	*out = NULL;
	if (!model)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY, "no memory for a model");
	status = load(model, path, with_tokenizer, err);
	if (status == PAWL_OK)
		*out = model;
	else
		pawl_model_free(model);
	return status;
}

enum pawl_status
pawl_model_open(const char *path, struct pawl_model **out, struct pawl_error *err)
{
	return open_model(path, true, out, err);
}

enum pawl_status
pawl_model_open_bare(const char *path, struct pawl_model **out, struct pawl_error *err)
{
	return open_model(path, false, out, err);
}

void
pawl_model_free(struct pawl_model *model)
{
	if (!model)
		return;
	pawl_weights_unref(model->weights);
	pawl_tokenizer_free(model->tokenizer);
	pawl_gguf_free(model->gguf);
	free(model->frequencies);
	free(model);
}

const struct pawl_gguf *
pawl_model_gguf(const struct pawl_model *model)
{
	return model->gguf;
}

const struct pawl_tokenizer *
pawl_model_tokenizer(const struct pawl_model *model)
{
	return model->tokenizer;
}

const struct pawl_model_source *
pawl_model_source(const struct pawl_model *model)
{
	return &model->source;
}

const struct pawl_model_info *
pawl_model_info(const struct pawl_model *model)
{
	return &model->info;
}
