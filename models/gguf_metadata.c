#include "models/gguf_read.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 65535 };

/* Bytes of a scalar; 0 for strings and arrays, whose length the file tells. */
static const unsigned char type_bytes[PAWL_N_GGUF_TYPES] = {
	[PAWL_GGUF_U8] = 1,
	[PAWL_GGUF_I8] = 1,
	[PAWL_GGUF_U16] = 2,
	[PAWL_GGUF_I16] = 2,
	[PAWL_GGUF_U32] = 4,
	[PAWL_GGUF_I32] = 4,
	[PAWL_GGUF_F32] = 4,
	[PAWL_GGUF_BOOL] = 1,
	[PAWL_GGUF_U64] = 8,
	[PAWL_GGUF_I64] = 8,
	[PAWL_GGUF_F64] = 8,
};

static enum pawl_status
read_type(struct pawl_gguf_cursor *cursor, const char *field, enum pawl_gguf_type *out)
{
	size_t at = cursor->at;
	uint32_t type;
	enum pawl_status status = pawl_gguf_read_u32(cursor, field, &type);

	if (status)
		return status;
	if (type >= PAWL_N_GGUF_TYPES)
		return pawl_gguf_bad(cursor, at, field, "there is no type %u", type);
	*out = (enum pawl_gguf_type)type;
	return PAWL_OK;
}

static enum pawl_status
check_bools(const struct pawl_gguf_cursor *cursor, const struct pawl_gguf_value *value)
{
	size_t i;

	for (i = 0; i < value->n; i++) {
		if (value->data[i] > 1)
			return pawl_gguf_bad(cursor, cursor->at + i, "value",
				"bool %zu is %u, neither 0 nor 1", i, value->data[i]);
	}
	return PAWL_OK;
}

/* Moves the cursor over value->n strings. */
static enum pawl_status
skip_strings(struct pawl_gguf_cursor *cursor, const struct pawl_gguf_value *value)
{
	const unsigned char *bytes = cursor->gguf->bytes;
	size_t end = cursor->gguf->n_bytes, at = cursor->at, i;

	for (i = 0; i < value->n; i++) {
		uint64_t n;

		if (end - at < sizeof(n))
			return pawl_gguf_bad(cursor, at, "array",
				"the file ends in string %zu of %zu", i, value->n);
		memcpy(&n, bytes + at, sizeof(n));
		if (n > end - at - sizeof(n))
			return pawl_gguf_bad(cursor, at, "array",
				"the length %llu of string %zu exceeds the %zu bytes left",
				(unsigned long long)n, i, end - at - sizeof(n));
		at += sizeof(n) + (size_t)n;
	}
	cursor->at = at;
	return PAWL_OK;
}

/* The elements of an array whose type and count are read. */
static enum pawl_status
read_elements(struct pawl_gguf_cursor *cursor, struct pawl_gguf_value *value)
{
	enum pawl_status status = PAWL_OK;

	value->data = cursor->gguf->bytes + cursor->at;
	if (value->element == PAWL_GGUF_STRING) {
		status = skip_strings(cursor, value);
		value->n_bytes = (size_t)(cursor->gguf->bytes + cursor->at - value->data);
		return status;
	}
	if (value->element == PAWL_GGUF_BOOL)
		status = check_bools(cursor, value);
	value->n_bytes = value->n * type_bytes[value->element];
	cursor->at += value->n_bytes;
	return status;
}

static enum pawl_status
read_array(struct pawl_gguf_cursor *cursor, struct pawl_gguf_value *value)
{
	size_t at = cursor->at, smallest;
	uint64_t n;
	enum pawl_status status = read_type(cursor, "element type", &value->element);

	if (status)
		return status;
	if (value->element == PAWL_GGUF_ARRAY)
		return pawl_gguf_bad(cursor, at, "element type", "arrays of arrays are not read");
	at = cursor->at;
	status = pawl_gguf_read_u64(cursor, "array length", &n);
	if (status)
		return status;
	smallest =
		value->element == PAWL_GGUF_STRING ? sizeof(uint64_t) : type_bytes[value->element];
	if (n > pawl_gguf_left(cursor) / smallest)
		return pawl_gguf_bad(cursor, at, "array length",
			"%llu elements of type %s do not fit in %zu bytes", (unsigned long long)n,
			pawl_gguf_type_name(value->element), pawl_gguf_left(cursor));
	value->n = (size_t)n;
	return read_elements(cursor, value);
}

static enum pawl_status
read_scalar(struct pawl_gguf_cursor *cursor, struct pawl_gguf_value *value)
{
	enum pawl_status status = PAWL_OK;

	value->n_bytes = type_bytes[value->type];
	value->data = cursor->gguf->bytes + cursor->at;
	if (pawl_gguf_left(cursor) < value->n_bytes)
		return pawl_gguf_bad(cursor, cursor->at, "value",
			"the file ends: %zu bytes needed, %zu left", value->n_bytes,
			pawl_gguf_left(cursor));
	if (value->type == PAWL_GGUF_BOOL)
		status = check_bools(cursor, value);
	cursor->at += value->n_bytes;
	return status;
}

static enum pawl_status
read_value(struct pawl_gguf_cursor *cursor, struct pawl_gguf_value *value)
{
	struct pawl_gguf_string text;
	enum pawl_status status;

	memset(value, 0, sizeof(*value));
	status = pawl_gguf_read_name(cursor, "key", MAX_KEY, &value->key);
	if (!status)
		status = read_type(cursor, "value type", &value->type);
	if (status)
		return status;
	value->element = value->type;
	value->n = 1;
	if (value->type == PAWL_GGUF_ARRAY)
		return read_array(cursor, value);
	if (value->type != PAWL_GGUF_STRING)
		return read_scalar(cursor, value);
	value->data = cursor->gguf->bytes + cursor->at;
	status = pawl_gguf_read_string(cursor, "value", &text);
	value->n_bytes = (size_t)(cursor->gguf->bytes + cursor->at - value->data);
	return status;
}

static int
by_key(const void *a, const void *b)
{
	const struct pawl_gguf_value *x = *(struct pawl_gguf_value *const *)a;
	const struct pawl_gguf_value *y = *(struct pawl_gguf_value *const *)b;
	int order = pawl_gguf_compare_strings(x->key, y->key);

	return order ? order : x < y ? -1 : x > y;
}

static enum pawl_status
index_values(struct pawl_gguf_cursor *cursor)
{
	struct pawl_gguf *gguf = cursor->gguf;
	struct pawl_gguf_value **sorted;
	size_t i;

	if (!gguf->n_values)
		return PAWL_OK;
	sorted = calloc(gguf->n_values, sizeof(struct pawl_gguf_value *));
	if (!sorted)
		return pawl_fail(
			cursor->err, PAWL_OUT_OF_MEMORY, "out of memory reading %s", gguf->name);
	gguf->values_by_key = sorted;
	for (i = 0; i < gguf->n_values; i++)
		sorted[i] = &gguf->values[i];
	qsort(sorted, gguf->n_values, sizeof(struct pawl_gguf_value *), by_key);
	for (i = 1; i < gguf->n_values; i++) {
		if (pawl_gguf_compare_strings(sorted[i - 1]->key, sorted[i]->key))
			continue;
		cursor->index = (size_t)(sorted[i] - gguf->values);
		cursor->record = sorted[i]->key;
		return pawl_gguf_bad(cursor,
			(size_t)((const unsigned char *)sorted[i]->key.text - gguf->bytes), "key",
			"is the same as that of metadata %td", sorted[i - 1] - gguf->values);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_read_metadata(struct pawl_gguf_cursor *cursor, uint64_t n)
{
	struct pawl_gguf *gguf = cursor->gguf;
	size_t capacity = 0;

	cursor->section = "metadata";
	for (cursor->index = 0; cursor->index < n; cursor->index++) {
		struct pawl_gguf_value *grown = pawl_gguf_grow(
			gguf->values, gguf->n_values, &capacity, sizeof(*gguf->values));
		enum pawl_status status;

		if (!grown)
			return pawl_fail(cursor->err, PAWL_OUT_OF_MEMORY,
				"out of memory reading %s", gguf->name);
		gguf->values = grown;
		cursor->record.n = 0;
		status = read_value(cursor, &gguf->values[gguf->n_values]);
		if (status)
			return status;
		gguf->n_values++;
	}
	return index_values(cursor);
}
