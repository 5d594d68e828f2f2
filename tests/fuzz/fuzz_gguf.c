#include "models/gguf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
get_all_ways(const struct pawl_gguf *gguf, const char *key)
{
	const struct pawl_gguf_string *strings;
	struct pawl_gguf_string string;
	struct pawl_arena arena;
	struct pawl_error err;
	const uint32_t *u32s;
	const int32_t *i32s;
	const float *f32s;
	uint32_t u32;
	uint64_t u64;
	float f32;
	bool truth;
	size_t n, i, sum = 0;

	pawl_arena_init(&arena);
	pawl_gguf_need_u32(gguf, key, &u32, &err);
	pawl_gguf_need_u64(gguf, key, &u64, &err);
	pawl_gguf_need_f32(gguf, key, &f32, &err);
	pawl_gguf_need_bool(gguf, key, &truth, &err);
	if (!pawl_gguf_need_string(gguf, key, &string, &err))
		for (i = 0; i < string.n; i++)
			sum += (unsigned char)string.text[i];
	pawl_gguf_get_f32s(gguf, key, &arena, &f32s, &n, &err);
	pawl_gguf_get_i32s(gguf, key, &arena, &i32s, &n, &err);
	pawl_gguf_get_u32s(gguf, key, &arena, &u32s, &n, &err);
	if (!pawl_gguf_get_strings(gguf, key, &arena, &strings, &n, &err))
		for (i = 0; i < n; i++)
			if (strings[i].n)
				sum += (unsigned char)strings[i].text[strings[i].n - 1];
	if (sum == (size_t)-1)
		abort();
	pawl_arena_release(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pawl_error err = {0};
	struct pawl_gguf *gguf;
	char text[100];
	size_t i;

	if (pawl_gguf_parse(data, size, "fuzz", &gguf, &err)) {
		if (!strstr(err.text, "fuzz: byte ") || strchr(err.text, '\n'))
			abort();
		return 0;
	}
	for (i = 0; i < gguf->n_values; i++) {
		const struct pawl_gguf_value *value = &gguf->values[i];
		char *key = strndup(value->key.text, value->key.n);

		pawl_gguf_format_value(value, text, sizeof(text));
		if (strlen(text) >= sizeof(text) || pawl_gguf_find(gguf, key) != value)
			abort();
		get_all_ways(gguf, key);
		free(key);
	}
	for (i = 0; i < gguf->n_tensors; i++) {
		const struct pawl_gguf_tensor *tensor = &gguf->tensors[i];
		char *name = strndup(tensor->name.text, tensor->name.n);
		const uint8_t *bytes = tensor->data;

		if (bytes < data || tensor->n_bytes > (size_t)(data + size - bytes) ||
			pawl_gguf_find_tensor(gguf, name) != tensor)
			abort();
		free(name);
	}
	pawl_gguf_free(gguf);
	return 0;
}
