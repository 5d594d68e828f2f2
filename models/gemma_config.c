#include "models/gemma_config.h"

#include <math.h>
#include <string.h>

#include "models/config_read.h"

enum { PERIOD = 6, LAYERS_OF_27B = 62 };

static enum pawl_status
refuse_caps(const struct pawl_gguf *gguf, struct pawl_error *err)
{
	static const char *const keys[] = {
		"gemma3.attn_logit_softcapping", "gemma3.final_logit_softcapping"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		float cap;
		enum pawl_status status = pawl_gguf_get_f32(gguf, keys[i], 0, &cap, err);

		if (status == PAWL_OK && cap != 0.0f)
			status = pawl_fail(err, PAWL_UNSUPPORTED,
				"%s: %s: soft caps are not supported", gguf->name, keys[i]);
		if (status != PAWL_OK)
			return status;
	}
	return PAWL_OK;
}

static void
add_all_but_every(struct pawl_model_config *c, uint32_t period)
{
	for (int64_t i = 0; i < c->n_layers; i++)
		if (!period || i % period != period - 1)
			pawl_layer_set_add(&c->window_layers, i);
}

static enum pawl_status
read_pattern(const struct pawl_gguf *gguf, struct pawl_model_config *c, struct pawl_error *err)
{
	static const char key[] = "gemma3.attention.sliding_window_pattern";
	const struct pawl_gguf_value *value = pawl_gguf_find(gguf, key);
	uint32_t period;
	enum pawl_status status;

	if (!value || value->type != PAWL_GGUF_ARRAY) {
		status = pawl_gguf_get_u32(gguf, key, PERIOD, &period, err);
		if (status == PAWL_OK)
			add_all_but_every(c, period);
		return status;
	}
	if (value->element != PAWL_GGUF_BOOL)
		return pawl_gguf_refuse(gguf, key, err, "an array of %s, wanted bool",
			pawl_gguf_type_name(value->element));
	if (value->n != (size_t)c->n_layers)
		return pawl_gguf_refuse(gguf, key, err, "%zu elements for %lld layers", value->n,
			(long long)c->n_layers);
	for (int64_t i = 0; i < c->n_layers; i++)
		if (value->data[i])
			pawl_layer_set_add(&c->window_layers, i);
	return PAWL_OK;
}

static enum pawl_status
read_window(const struct pawl_gguf *gguf, struct pawl_model_config *c, struct pawl_error *err)
{
	static const struct pawl_layer_set none;
	uint32_t window;
	enum pawl_status status =
		pawl_gguf_get_u32(gguf, "gemma3.attention.sliding_window", 0, &window, err);

	if (status != PAWL_OK || !window)
		return status;
	status = read_pattern(gguf, c, err);
	if (status != PAWL_OK || !memcmp(&c->window_layers, &none, sizeof(none)))
		return status;
	c->window = window;
	return pawl_config_read_base(
		gguf, "gemma3", "rope.freq_base_swa", &c->window_rope_base, err);
}

enum pawl_status
pawl_gemma_config_read(
	const struct pawl_gguf *gguf, struct pawl_model_config *out, struct pawl_error *err)
{
	struct pawl_model_config c;
	enum pawl_status status = pawl_config_read_shape(gguf, "gemma3", &c, err);

	if (status == PAWL_OK)
		status = refuse_caps(gguf, err);
	if (status == PAWL_OK)
		status = read_window(gguf, &c, err);
	if (status == PAWL_OK) {
		const struct pawl_config_vector norms[] = {
			{"attn_q_norm", c.head_dim},
			{"attn_k_norm", c.head_dim},
			{"post_attention_norm", c.n_embd},
			{"post_ffw_norm", c.n_embd},
		};

		status = pawl_config_check_tensors(
			gguf, &c, norms, sizeof(norms) / sizeof(norms[0]), err);
	}
	if (status != PAWL_OK)
		return status;
	c.rope_pairs = PAWL_PAIRS_HALVES;
	c.embedding_scale = sqrt((double)c.n_embd);
	/* The 27B model alone scales by n_embd / n_heads, and only its size tells. */
	if (c.n_layers == LAYERS_OF_27B)
		c.attention_scale = 1.0 / sqrt((double)(c.n_embd / c.n_heads));
	*out = c;
	return PAWL_OK;
}
