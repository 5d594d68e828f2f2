#include "tests/gguf_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	unsigned char *data;
	size_t n, capacity;
};

struct pawl_gguf_build {
	uint32_t version, alignment;
	uint64_t n_values, n_tensors;
	bool claimed;
	uint64_t claimed_values, claimed_tensors;
	struct bytes values, tensors, data;
};

static void
put(struct bytes *to, const void *from, size_t n)
{
	if (to->capacity - to->n < n) {
		to->capacity = 2 * to->capacity + n;
		to->data = realloc(to->data, to->capacity);
		if (!to->data)
			abort();
	}
	if (from && n)
		memcpy(to->data + to->n, from, n);
	else if (n)
		memset(to->data + to->n, 0, n);
	to->n += n;
}

static void
put_u32(struct bytes *to, uint32_t value)
{
	put(to, &value, sizeof(value));
}

static void
put_u64(struct bytes *to, uint64_t value)
{
	put(to, &value, sizeof(value));
}

static void
put_string(struct bytes *to, const char *text)
{
	put_u64(to, strlen(text));
	put(to, text, strlen(text));
}

/* Zeros up to a multiple of the alignment; none when that is 0. */
static void
pad(struct bytes *to, size_t before, uint32_t alignment)
{
	if (alignment)
		put(to, NULL, (alignment - (before + to->n) % alignment) % alignment);
}

struct pawl_gguf_build *
pawl_gguf_build_new(uint32_t version)
{
	struct pawl_gguf_build *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->version = version;
	b->alignment = 32;
	return b;
}

void *
pawl_gguf_build_finish(struct pawl_gguf_build *b, size_t *n_bytes)
{
	struct bytes file = {0};

	put(&file, "GGUF", 4);
	put_u32(&file, b->version);
	put_u64(&file, b->claimed ? b->claimed_tensors : b->n_tensors);
	put_u64(&file, b->claimed ? b->claimed_values : b->n_values);
	put(&file, b->values.data, b->values.n);
	put(&file, b->tensors.data, b->tensors.n);
	if (b->n_tensors)
		pad(&file, 0, b->alignment);
	put(&file, b->data.data, b->data.n);
	free(b->values.data);
	free(b->tensors.data);
	free(b->data.data);
	free(b);
	*n_bytes = file.n;
	return file.data;
}

void
pawl_gguf_build_write(struct pawl_gguf_build *b, const char *path)
{
	size_t n;
	void *bytes = pawl_gguf_build_finish(b, &n);
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(bytes, 1, n, file) != n || fclose(file)) {
		perror(path);
		abort();
	}
	free(bytes);
}

static void
put_value(struct pawl_gguf_build *b, const char *key, enum pawl_gguf_type type, const void *value,
	size_t n)
{
	put_string(&b->values, key);
	put_u32(&b->values, type);
	put(&b->values, value, n);
	b->n_values++;
}

#define NUMBER(name, ctype, type)                                                                  \
	void pawl_gguf_build_##name(struct pawl_gguf_build *b, const char *key, ctype value)       \
	{                                                                                          \
		put_value(b, key, type, &value, sizeof(value));                                    \
	}
NUMBER(u8, uint8_t, PAWL_GGUF_U8)
NUMBER(i8, int8_t, PAWL_GGUF_I8)
NUMBER(u16, uint16_t, PAWL_GGUF_U16)
NUMBER(i16, int16_t, PAWL_GGUF_I16)
NUMBER(u32, uint32_t, PAWL_GGUF_U32)
NUMBER(i32, int32_t, PAWL_GGUF_I32)
NUMBER(u64, uint64_t, PAWL_GGUF_U64)
NUMBER(i64, int64_t, PAWL_GGUF_I64)
NUMBER(f32, float, PAWL_GGUF_F32)
NUMBER(f64, double, PAWL_GGUF_F64)
NUMBER(bool, bool, PAWL_GGUF_BOOL)
#undef NUMBER

void
pawl_gguf_build_string(struct pawl_gguf_build *b, const char *key, const char *value)
{
	put_value(b, key, PAWL_GGUF_STRING, NULL, 0);
	put_string(&b->values, value);
}

static void
put_array(struct pawl_gguf_build *b, const char *key, enum pawl_gguf_type element, size_t n)
{
	put_value(b, key, PAWL_GGUF_ARRAY, NULL, 0);
	put_u32(&b->values, element);
	put_u64(&b->values, n);
}

void
pawl_gguf_build_strings(
	struct pawl_gguf_build *b, const char *key, const char *const *values, size_t n)
{
	size_t i;

	put_array(b, key, PAWL_GGUF_STRING, n);
	for (i = 0; i < n; i++)
		put_string(&b->values, values[i]);
}

void
pawl_gguf_build_array(struct pawl_gguf_build *b, const char *key, enum pawl_gguf_type element,
	const void *values, size_t n)
{
	static const unsigned char bytes[PAWL_N_GGUF_TYPES] = {
		1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

	put_array(b, key, element, n);
	put(&b->values, values, n * bytes[element]);
}

void
pawl_gguf_build_tensor(struct pawl_gguf_build *b, const char *name, enum pawl_dtype dtype, int rank,
	const int64_t *dims, const void *data)
{
	struct pawl_gguf_build_record record = {.name = name,
		.rank = (uint32_t)rank,
		.n_dims = rank,
		.type = (uint32_t)pawl_dtype_info(dtype)->ggml_type};
	int64_t n = 1;
	int i;

	for (i = 0; i < rank; i++) {
		record.dims[i] = (uint64_t)dims[i];
		n *= dims[i];
	}
	pad(&b->data, 0, b->alignment);
	record.offset = b->data.n;
	put(&b->data, data, (size_t)pawl_dtype_bytes(dtype, n));
	pawl_gguf_build_record(b, &record);
}

void
pawl_gguf_build_alignment(struct pawl_gguf_build *b, uint32_t alignment)
{
	pawl_gguf_build_u32(b, "general.alignment", alignment);
	b->alignment = alignment;
}

void
pawl_gguf_build_claim(struct pawl_gguf_build *b, uint64_t n_tensors, uint64_t n_values)
{
	b->claimed = true;
	b->claimed_tensors = n_tensors;
	b->claimed_values = n_values;
}

void
pawl_gguf_build_raw_value(struct pawl_gguf_build *b, const void *bytes, size_t n_bytes)
{
	put(&b->values, bytes, n_bytes);
	b->n_values++;
}

void
pawl_gguf_build_raw_tensor(struct pawl_gguf_build *b, const void *bytes, size_t n_bytes)
{
	put(&b->tensors, bytes, n_bytes);
	b->n_tensors++;
}

void
pawl_gguf_build_data(struct pawl_gguf_build *b, const void *bytes, size_t n_bytes)
{
	put(&b->data, bytes, n_bytes);
}

void
pawl_gguf_build_record(struct pawl_gguf_build *b, const struct pawl_gguf_build_record *record)
{
	int i;

	put_u64(&b->tensors, record->name_length ? record->name_length : strlen(record->name));
	put(&b->tensors, record->name, strlen(record->name));
	put_u32(&b->tensors, record->rank);
	for (i = 0; i < record->n_dims; i++)
		put_u64(&b->tensors, record->dims[i]);
	put_u32(&b->tensors, record->type);
	put_u64(&b->tensors, record->offset);
	b->n_tensors++;
}
