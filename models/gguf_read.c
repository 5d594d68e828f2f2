#include "models/gguf_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 80 }; /* characters of a key or name in a message */

size_t
pawl_gguf_left(const struct pawl_gguf_cursor *cursor)
{
	return cursor->gguf->n_bytes - cursor->at;
}

enum pawl_status
pawl_gguf_bad(const struct pawl_gguf_cursor *cursor, size_t at, const char *field,
	const char *format, ...)
{
	char reason[256], record[SHOWN + 48] = "";
	size_t n = cursor->record.n;
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (cursor->section && n)
		snprintf(record, sizeof(record), "%s %zu (%.*s%s): ", cursor->section,
			cursor->index, (int)(n < SHOWN ? n : SHOWN), cursor->record.text,
			n > SHOWN ? "..." : "");
	else if (cursor->section)
		snprintf(record, sizeof(record), "%s %zu: ", cursor->section, cursor->index);
	return pawl_fail(cursor->err, PAWL_INVALID_FILE, "%s: byte %zu: %s%s: %s",
		cursor->gguf->name, at, record, field, reason);
}

static enum pawl_status
read_bytes(struct pawl_gguf_cursor *cursor, const char *field, void *out, size_t n)
{
	if (pawl_gguf_left(cursor) < n)
		return pawl_gguf_bad(cursor, cursor->at, field,
			"the file ends: %zu bytes needed, %zu left", n, pawl_gguf_left(cursor));
	memcpy(out, cursor->gguf->bytes + cursor->at, n);
	cursor->at += n;
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_read_u32(struct pawl_gguf_cursor *cursor, const char *field, uint32_t *out)
{
	return read_bytes(cursor, field, out, sizeof(*out));
}

enum pawl_status
pawl_gguf_read_u64(struct pawl_gguf_cursor *cursor, const char *field, uint64_t *out)
{
	return read_bytes(cursor, field, out, sizeof(*out));
}

enum pawl_status
pawl_gguf_read_string(
	struct pawl_gguf_cursor *cursor, const char *field, struct pawl_gguf_string *out)
{
	size_t at = cursor->at;
	uint64_t n = 0;
	enum pawl_status status = pawl_gguf_read_u64(cursor, field, &n);

	if (status)
		return status;
	if (n > pawl_gguf_left(cursor))
		return pawl_gguf_bad(cursor, at, field,
			"its length %llu exceeds the %zu bytes left", (unsigned long long)n,
			pawl_gguf_left(cursor));
	out->text = (const char *)cursor->gguf->bytes + cursor->at;
	out->n = (size_t)n;
	cursor->at += (size_t)n;
	return PAWL_OK;
}

enum pawl_status
pawl_gguf_read_name(struct pawl_gguf_cursor *cursor, const char *field, size_t max,
	struct pawl_gguf_string *out)
{
	size_t at = cursor->at, i;
	enum pawl_status status = pawl_gguf_read_string(cursor, field, out);

	if (status)
		return status;
	if (!out->n)
		return pawl_gguf_bad(cursor, at, field, "is empty");
	if (out->n > max)
		return pawl_gguf_bad(
			cursor, at, field, "its length %zu exceeds the limit of %zu", out->n, max);
	for (i = 0; i < out->n; i++) {
		unsigned char c = (unsigned char)out->text[i];

		if (c < 0x20 || c > 0x7e)
			return pawl_gguf_bad(cursor, at + sizeof(uint64_t) + i, field,
				"character 0x%02x is not printable ASCII", c);
	}
	cursor->record = *out;
	return PAWL_OK;
}

void *
pawl_gguf_grow(void *array, size_t n, size_t *capacity, size_t size)
{
	size_t wanted = *capacity ? *capacity : 32, n_bytes;

	if (n < *capacity)
		return array;
	if (__builtin_mul_overflow(wanted, (size_t)2, &wanted) ||
		__builtin_mul_overflow(wanted, size, &n_bytes))
		return NULL;
	array = realloc(array, n_bytes);
	if (array)
		*capacity = wanted;
	return array;
}

int
pawl_gguf_compare_strings(struct pawl_gguf_string a, struct pawl_gguf_string b)
{
	if (a.n != b.n)
		return a.n < b.n ? -1 : 1;
	return a.n ? memcmp(a.text, b.text, a.n) : 0;
}
