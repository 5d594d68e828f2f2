#include "runtime/shape_key.h"

#include "ir/each_token.h"

#include <string.h>

void
pawl_shape_key_bytes(struct pawl_shape_key *key, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		key->value = (key->value ^ at[i]) * 0x100000001b3u;
}

void
pawl_shape_key_string(struct pawl_shape_key *key, const char *text)
{
	size_t n = strlen(text);

	pawl_shape_key_bytes(key, text, n);
	pawl_shape_key_u64(key, n);
}

PAWL_EACH_TOKEN void
pawl_shape_key_u64(struct pawl_shape_key *key, uint64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	pawl_shape_key_bytes(key, bytes, sizeof(bytes));
}

void
pawl_shape_key_f64(struct pawl_shape_key *key, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pawl_shape_key_u64(key, bits);
}

void
pawl_shape_key_instance(struct pawl_shape_key *key, struct pawl_model_instance_id id)
{
	pawl_shape_key_string(key, "instance");
	pawl_shape_key_u64(key, id.value);
}

void
pawl_shape_key_presence(struct pawl_shape_key *key, bool is_there)
{
	pawl_shape_key_string(key, is_there ? "some" : "none");
}
