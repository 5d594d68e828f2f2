#include "models/fingerprint.h"

#include <string.h>

#include "runtime/shape_key.h"

enum { SAMPLE = 64 };

static void
add_text(struct pawl_shape_key *key, const struct pawl_gguf_string *text)
{
	pawl_shape_key_u64(key, text->n);
	pawl_shape_key_bytes(key, text->text, text->n);
}

static void
add_tensor(struct pawl_shape_key *key, const struct pawl_gguf_tensor *tensor)
{
	size_t n = tensor->n_bytes < SAMPLE ? tensor->n_bytes : SAMPLE;

	add_text(key, &tensor->name);
	pawl_shape_key_string(key, pawl_dtype_name(tensor->dtype));
	pawl_shape_key_u64(key, (uint64_t)tensor->rank);
	for (int i = 0; i < tensor->rank; i++)
		pawl_shape_key_u64(key, (uint64_t)tensor->dims[i]);
	pawl_shape_key_bytes(key, (const char *)tensor->data + (tensor->n_bytes - n) / 2, n);
}

uint64_t
pawl_gguf_fingerprint(const struct pawl_gguf *gguf)
{
	struct pawl_shape_key key = PAWL_SHAPE_KEY_INIT;

	for (size_t i = 0; i < gguf->n_values; i++) {
		const struct pawl_gguf_value *value = &gguf->values[i];

		if (value->key.n >= 8 && !memcmp(value->key.text, "general.", 8))
			continue;
		add_text(&key, &value->key);
		pawl_shape_key_u64(&key, value->n_bytes);
		pawl_shape_key_bytes(&key, value->data, value->n_bytes);
	}
	for (size_t i = 0; i < gguf->n_tensors; i++) {
		add_tensor(&key, &gguf->tensors[i]);
		pawl_gguf_drop(gguf, &gguf->tensors[i]);
	}
	return key.value;
}
