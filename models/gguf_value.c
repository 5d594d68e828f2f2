#include "models/gguf.h"

#include <stdio.h>
#include <string.h>

static const char *const type_names[PAWL_N_GGUF_TYPES] = {
	[PAWL_GGUF_U8] = "u8",
	[PAWL_GGUF_I8] = "i8",
	[PAWL_GGUF_U16] = "u16",
	[PAWL_GGUF_I16] = "i16",
	[PAWL_GGUF_U32] = "u32",
	[PAWL_GGUF_I32] = "i32",
	[PAWL_GGUF_F32] = "f32",
	[PAWL_GGUF_BOOL] = "bool",
	[PAWL_GGUF_STRING] = "string",
	[PAWL_GGUF_ARRAY] = "array",
	[PAWL_GGUF_U64] = "u64",
	[PAWL_GGUF_I64] = "i64",
	[PAWL_GGUF_F64] = "f64",
};

const char *
pawl_gguf_type_name(enum pawl_gguf_type type)
{
	return type_names[type];
}

size_t
pawl_gguf_value_offset(const struct pawl_gguf *gguf, const struct pawl_gguf_value *value)
{
	return (size_t)(value->data - gguf->bytes);
}

enum pawl_status
pawl_gguf_refuse(const struct pawl_gguf *gguf, const char *key, struct pawl_error *err,
	const char *format, ...)
{
	const struct pawl_gguf_value *value = pawl_gguf_find(gguf, key);
	char reason[512];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (!value)
		return pawl_fail(
			err, PAWL_INVALID_FILE, "%s: metadata (%s): %s", gguf->name, key, reason);
	return pawl_fail(err, PAWL_INVALID_FILE, "%s: byte %zu: metadata %td (%s): value: %s",
		gguf->name, pawl_gguf_value_offset(gguf, value), value - gguf->values, key, reason);
}

static enum pawl_status
need(const struct pawl_gguf *gguf, const char *key, const char *wanted, struct pawl_error *err)
{
	if (pawl_gguf_find(gguf, key))
		return PAWL_OK;
	return pawl_gguf_refuse(gguf, key, err, "is missing (wanted %s)", wanted);
}

static enum pawl_status
wrong_type(const struct pawl_gguf *gguf, const struct pawl_gguf_value *value, const char *key,
	const char *wanted, struct pawl_error *err)
{
	if (value->type == PAWL_GGUF_ARRAY)
		return pawl_gguf_refuse(gguf, key, err, "wanted %s, found array of %s", wanted,
			type_names[value->element]);
	return pawl_gguf_refuse(
		gguf, key, err, "wanted %s, found %s", wanted, type_names[value->type]);
}

static bool
is_integer(enum pawl_gguf_type type)
{
	switch (type) {
	case PAWL_GGUF_U8:
	case PAWL_GGUF_I8:
	case PAWL_GGUF_U16:
	case PAWL_GGUF_I16:
	case PAWL_GGUF_U32:
	case PAWL_GGUF_I32:
	case PAWL_GGUF_U64:
	case PAWL_GGUF_I64:
		return true;
	case PAWL_GGUF_F32:
	case PAWL_GGUF_BOOL:
	case PAWL_GGUF_STRING:
	case PAWL_GGUF_ARRAY:
	case PAWL_GGUF_F64:
	case PAWL_N_GGUF_TYPES:
		break;
	}
	return false;
}

static bool
is_signed(enum pawl_gguf_type type)
{
	return type == PAWL_GGUF_I8 || type == PAWL_GGUF_I16 || type == PAWL_GGUF_I32 ||
	       type == PAWL_GGUF_I64;
}

/* Element i of an integer value in two's complement; false when it is not in [min, max]. */
static bool
load_integer(
	const struct pawl_gguf_value *value, size_t i, int64_t min, uint64_t max, uint64_t *bits)
{
	size_t width = value->n_bytes / value->n;

	*bits = 0;
	memcpy(bits, value->data + i * width, width);
	if (!is_signed(value->element) || !(*bits >> (8 * width - 1)))
		return *bits <= max;
	if (width < sizeof(*bits))
		*bits |= UINT64_MAX << (8 * width);
	return (int64_t)*bits >= min;
}

static enum pawl_status
does_not_fit(const struct pawl_gguf *gguf, const struct pawl_gguf_value *value, const char *key,
	size_t i, const char *wanted, uint64_t bits, struct pawl_error *err)
{
	const char *sign = "";
	char element[48] = "";

	if (is_signed(value->element) && bits >> 63) {
		sign = "-";
		bits = 0 - bits;
	}
	if (value->type == PAWL_GGUF_ARRAY)
		snprintf(element, sizeof(element), "element %zu: ", i);
	return pawl_gguf_refuse(gguf, key, err, "%s%s%llu is no %s", element, sign,
		(unsigned long long)bits, wanted);
}

/* Leaves *bits alone when there is no such key. */
static enum pawl_status
get_unsigned(const struct pawl_gguf *gguf, const char *key, uint64_t max, const char *wanted,
	uint64_t *bits, struct pawl_error *err)
{
	const struct pawl_gguf_value *value = pawl_gguf_find(gguf, key);

	if (!value)
		return PAWL_OK;
	if (!is_integer(value->type))
		return wrong_type(gguf, value, key, wanted, err);
	if (!load_integer(value, 0, 0, max, bits))
		return does_not_fit(gguf, value, key, 0, wanted, *bits, err);
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_get_u32(const struct pawl_gguf *gguf, const char *key, uint32_t fallback, uint32_t *out,
	struct pawl_error *err)
{
	uint64_t bits = fallback;
	enum pawl_status status = get_unsigned(gguf, key, UINT32_MAX, "u32", &bits, err);

	if (!status)
		*out = (uint32_t)bits;
	return status;
}

enum pawl_status
pawl_gguf_need_u32(
	const struct pawl_gguf *gguf, const char *key, uint32_t *out, struct pawl_error *err)
{
	enum pawl_status status = need(gguf, key, "u32", err);

	return status ? status : pawl_gguf_get_u32(gguf, key, 0, out, err);
}

enum pawl_status
pawl_gguf_get_u64(const struct pawl_gguf *gguf, const char *key, uint64_t fallback, uint64_t *out,
	struct pawl_error *err)
{
	uint64_t bits = fallback;
	enum pawl_status status = get_unsigned(gguf, key, UINT64_MAX, "u64", &bits, err);

	if (!status)
		*out = bits;
	return status;
}

enum pawl_status
pawl_gguf_need_u64(
	const struct pawl_gguf *gguf, const char *key, uint64_t *out, struct pawl_error *err)
{
	enum pawl_status status = need(gguf, key, "u64", err);

	return status ? status : pawl_gguf_get_u64(gguf, key, 0, out, err);
}

enum pawl_status
pawl_gguf_get_f32(const struct pawl_gguf *gguf, const char *key, float fallback, float *out,
	struct pawl_error *err)
{
	const struct pawl_gguf_value *value = pawl_gguf_find(gguf, key);

	if (value && value->type != PAWL_GGUF_F32)
		return wrong_type(gguf, value, key, "f32", err);
	*out = fallback;
	if (value)
		memcpy(out, value->data, sizeof(*out));
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_need_f32(
	const struct pawl_gguf *gguf, const char *key, float *out, struct pawl_error *err)
{
	enum pawl_status status = need(gguf, key, "f32", err);

	return status ? status : pawl_gguf_get_f32(gguf, key, 0.0f, out, err);
}

enum pawl_status
pawl_gguf_get_bool(const struct pawl_gguf *gguf, const char *key, bool fallback, bool *out,
	struct pawl_error *err)
{
	const struct pawl_gguf_value *value = pawl_gguf_find(gguf, key);

	if (value && value->type != PAWL_GGUF_BOOL)
		return wrong_type(gguf, value, key, "bool", err);
	*out = value ? value->data[0] != 0 : fallback;
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_need_bool(
	const struct pawl_gguf *gguf, const char *key, bool *out, struct pawl_error *err)
{
	enum pawl_status status = need(gguf, key, "bool", err);

	return status ? status : pawl_gguf_get_bool(gguf, key, false, out, err);
}

enum pawl_status
pawl_gguf_get_string(const struct pawl_gguf *gguf, const char *key, const char *fallback,
	struct pawl_gguf_string *out, struct pawl_error *err)
{
	const struct pawl_gguf_value *value = pawl_gguf_find(gguf, key);

	if (value && value->type != PAWL_GGUF_STRING)
		return wrong_type(gguf, value, key, "string", err);
	out->text = fallback;
	out->n = fallback ? strlen(fallback) : 0;
	if (value) {
		out->text = (const char *)value->data + sizeof(uint64_t);
		out->n = value->n_bytes - sizeof(uint64_t);
	}
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_need_string(const struct pawl_gguf *gguf, const char *key, struct pawl_gguf_string *out,
	struct pawl_error *err)
{
	enum pawl_status status = need(gguf, key, "string", err);

	return status ? status : pawl_gguf_get_string(gguf, key, NULL, out, err);
}

/*
 * The array of that key and room for its elements; *value is NULL when there is no such key.
 * An array of integers is taken where integers are wanted.
 */
static enum pawl_status
open_array(const struct pawl_gguf *gguf, const char *key, enum pawl_gguf_type element,
	const char *wanted, size_t size, struct pawl_arena *arena,
	const struct pawl_gguf_value **value, void **room, struct pawl_error *err)
{
	*value = pawl_gguf_find(gguf, key);
	*room = NULL;
	if (!*value)
		return PAWL_OK;
	if ((*value)->type != PAWL_GGUF_ARRAY ||
		(is_integer(element) ? !is_integer((*value)->element)
				     : (*value)->element != element))
		return wrong_type(gguf, *value, key, wanted, err);
	*room = pawl_arena_alloc(arena, (*value)->n ? (*value)->n : 1, size);
	if (!*room)
		return pawl_fail(err, PAWL_OUT_OF_MEMORY,
			"out of memory reading %s: %zu elements of %s", gguf->name, (*value)->n,
			key);
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_get_strings(const struct pawl_gguf *gguf, const char *key, struct pawl_arena *arena,
	const struct pawl_gguf_string **out, size_t *n, struct pawl_error *err)
{
	const struct pawl_gguf_value *value;
	struct pawl_gguf_string *strings;
	const unsigned char *at;
	void *room;
	size_t i;
	enum pawl_status status = open_array(gguf, key, PAWL_GGUF_STRING, "array of string",
		sizeof(*strings), arena, &value, &room, err);

	if (status)
		return status;
	strings = room;
	at = value ? value->data : NULL;
	for (i = 0; value && i < value->n; i++) {
		uint64_t length;

		memcpy(&length, at, sizeof(length));
		strings[i].text = (const char *)at + sizeof(length);
		strings[i].n = (size_t)length;
		at += sizeof(length) + (size_t)length;
	}
	*out = strings;
	*n = value ? value->n : 0;
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_get_f32s(const struct pawl_gguf *gguf, const char *key, struct pawl_arena *arena,
	const float **out, size_t *n, struct pawl_error *err)
{
	const struct pawl_gguf_value *value;
	void *room;
	enum pawl_status status = open_array(
		gguf, key, PAWL_GGUF_F32, "array of f32", sizeof(**out), arena, &value, &room, err);

	if (status)
		return status;
	if (value)
		memcpy(room, value->data, value->n_bytes);
	*out = room;
	*n = value ? value->n : 0;
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_get_i32s(const struct pawl_gguf *gguf, const char *key, struct pawl_arena *arena,
	const int32_t **out, size_t *n, struct pawl_error *err)
{
	const struct pawl_gguf_value *value;
	int32_t *numbers;
	uint64_t bits;
	void *room;
	size_t i;
	enum pawl_status status = open_array(gguf, key, PAWL_GGUF_I32, "array of i32",
		sizeof(*numbers), arena, &value, &room, err);

	if (status)
		return status;
	numbers = room;
	for (i = 0; value && i < value->n; i++) {
		if (!load_integer(value, i, INT32_MIN, INT32_MAX, &bits))
			return does_not_fit(gguf, value, key, i, "i32", bits, err);
		numbers[i] = (int32_t)(uint32_t)bits;
	}
	*out = numbers;
	*n = value ? value->n : 0;
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_get_u32s(const struct pawl_gguf *gguf, const char *key, struct pawl_arena *arena,
	const uint32_t **out, size_t *n, struct pawl_error *err)
{
	const struct pawl_gguf_value *value;
	uint32_t *numbers;
	uint64_t bits;
	void *room;
	size_t i;
	enum pawl_status status = open_array(gguf, key, PAWL_GGUF_U32, "array of u32",
		sizeof(*numbers), arena, &value, &room, err);

	if (status)
		return status;
	numbers = room;
	for (i = 0; value && i < value->n; i++) {
		if (!load_integer(value, i, 0, UINT32_MAX, &bits))
			return does_not_fit(gguf, value, key, i, "u32", bits, err);
		numbers[i] = (uint32_t)bits;
	}
	*out = numbers;
	*n = value ? value->n : 0;
	return PAWL_OK;
}
