#include "models/fingerprint.h"

#include <string.h>

#include "runtime/kv_snapshot.h"
#include "runtime/shape_key.h"

/* Of a tensor that are read before their pages are given back. */
enum { STRIPE = 1 << 20 };

static void
add_text(struct pawl_shape_key *key, const struct pawl_gguf_string *text)
{
	pawl_shape_key_u64(key, text->n);
	pawl_shape_key_bytes(key, text->text, text->n);
}

static void
add_content(struct pawl_shape_key *key, const struct pawl_gguf *gguf,
	const struct pawl_gguf_tensor *tensor)
{
	const char *bytes = tensor->data;
	uint64_t sum = 0;

	for (size_t at = 0; at < tensor->n_bytes; at += STRIPE) {
		size_t n = tensor->n_bytes - at < STRIPE ? tensor->n_bytes - at : STRIPE;

		sum = pawl_kv_checksum(sum, bytes + at, (int64_t)n);
		pawl_file_map_drop(&gguf->map, bytes + at, n);
	}
	pawl_shape_key_u64(key, sum);
}

static void
add_tensor(struct pawl_shape_key *key, const struct pawl_gguf *gguf,
	const struct pawl_gguf_tensor *tensor)
{
	add_text(key, &tensor->name);
	pawl_shape_key_string(key, pawl_dtype_name(tensor->dtype));
	pawl_shape_key_u64(key, (uint64_t)tensor->rank);
	for (int i = 0; i < tensor->rank; i++)
		pawl_shape_key_u64(key, (uint64_t)tensor->dims[i]);
	add_content(key, gguf, tensor);
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
	for (size_t i = 0; i < gguf->n_tensors; i++)
		add_tensor(&key, gguf, &gguf->tensors[i]);
	return key.value;
}
