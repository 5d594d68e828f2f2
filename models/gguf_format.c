#include "models/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/utf8.h"

enum { STRING_SHOWN = 60, ELEMENTS_SHOWN = 8 };

struct line {
	char *text;
	size_t n, size;
	bool full; /* something did not fit */
};

static void
put(struct line *line, const char *text, size_t n)
{
	if (line->full || n > line->size - line->n) {
		line->full = true;
		return;
	}
	memcpy(line->text + line->n, text, n);
	line->n += n;
}

static void
put_text(struct line *line, const char *text)
{
	put(line, text, strlen(text));
}

/* The shortest decimal form that reads back as the same number, with a point in any locale. */
static void
put_float(struct line *line, double number, bool is_f32)
{
	char digits[48];
	int precision;
	size_t i, n;

	for (precision = 1; precision <= (is_f32 ? 9 : 17); precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, number);
		if (is_f32 ? strtof(digits, NULL) == (float)number : strtod(digits, NULL) == number)
			break;
	}
	n = strlen(digits);
	for (i = 0; i < n;) {
		size_t same = strspn(digits + i, "+-0123456789einfa");

		put(line, digits + i, same);
		i += same;
		if (i == n)
			break;
		put(line, ".", 1);
		i += strcspn(digits + i, "+-0123456789einfa");
	}
}

/* Bytes of the printable character at text, 0 when there is none. */
static size_t
printable(const char *text, size_t n)
{
	uint32_t code;
	int length = pawl_utf8_next(text, n, &code);

	return length <= 0 || code < 0x20 || (code >= 0x7f && code < 0xa0) ? 0 : (size_t)length;
}

static void
put_string(struct line *line, const char *text, size_t n)
{
	size_t i;

	put(line, "\"", 1);
	for (i = 0; i < n && i < STRING_SHOWN;) {
		size_t length = printable(text + i, n - i);
		char escape[8];

		if (length == 1 && (text[i] == '"' || text[i] == '\\'))
			put(line, "\\", 1);
		if (length) {
			put(line, text + i, length);
			i += length;
			continue;
		}
		snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)text[i]);
		put_text(line, text[i] == '\n' ? "\\n" : text[i] == '\t' ? "\\t" : escape);
		i++;
	}
	put_text(line, i < n ? "\"..." : "\"");
}

/* The element at data; returns its bytes. */
static size_t
put_element(struct line *line, enum pawl_gguf_type type, const unsigned char *data)
{
	union {
		uint8_t u8;
		int8_t i8;
		uint16_t u16;
		int16_t i16;
		uint32_t u32;
		int32_t i32;
		float f32;
		uint64_t u64;
		int64_t i64;
		double f64;
	} v;
	char text[32] = "";
	size_t n = 0;

#define LOAD(field) (n = sizeof(v.field), memcpy(&v.field, data, n), v.field)
	switch (type) {
	case PAWL_GGUF_U8:
		snprintf(text, sizeof(text), "%u", LOAD(u8));
		break;
	case PAWL_GGUF_I8:
		snprintf(text, sizeof(text), "%d", LOAD(i8));
		break;
	case PAWL_GGUF_U16:
		snprintf(text, sizeof(text), "%u", LOAD(u16));
		break;
	case PAWL_GGUF_I16:
		snprintf(text, sizeof(text), "%d", LOAD(i16));
		break;
	case PAWL_GGUF_U32:
		snprintf(text, sizeof(text), "%u", LOAD(u32));
		break;
	case PAWL_GGUF_I32:
		snprintf(text, sizeof(text), "%d", LOAD(i32));
		break;
	case PAWL_GGUF_U64:
		snprintf(text, sizeof(text), "%llu", (unsigned long long)LOAD(u64));
		break;
	case PAWL_GGUF_I64:
		snprintf(text, sizeof(text), "%lld", (long long)LOAD(i64));
		break;
	case PAWL_GGUF_F32:
		put_float(line, (double)LOAD(f32), true);
		break;
	case PAWL_GGUF_F64:
		put_float(line, LOAD(f64), false);
		break;
	case PAWL_GGUF_BOOL:
		snprintf(text, sizeof(text), "%s", LOAD(u8) ? "true" : "false");
		break;
	case PAWL_GGUF_STRING:
		n = (size_t)LOAD(u64);
		put_string(line, (const char *)data + sizeof(v.u64), n);
		n += sizeof(v.u64);
		break;
	case PAWL_GGUF_ARRAY:
	case PAWL_N_GGUF_TYPES:
		break;
	}
#undef LOAD
	put_text(line, text);
	return n;
}

void
pawl_gguf_format_value(const struct pawl_gguf_value *value, char *text, size_t size)
{
	static const char cut[] = "...";
	struct line line = {text, 0, size > sizeof(cut) ? size - sizeof(cut) : 0, false};
	const unsigned char *data = value->data;
	size_t i, whole = 0;
	char head[64];

	if (value->type == PAWL_GGUF_ARRAY) {
		snprintf(head, sizeof(head), "%s[%zu]", pawl_gguf_type_name(value->element),
			value->n);
		put_text(&line, head);
	}
	for (i = 0; i < value->n && i < ELEMENTS_SHOWN && !line.full; i++) {
		whole = line.n;
		if (value->type == PAWL_GGUF_ARRAY)
			put_text(&line, i ? ", " : " ");
		data += put_element(&line, value->element, data);
	}
	if (line.full && value->type == PAWL_GGUF_ARRAY)
		line.n = whole;
	text[line.n] = '\0';
	if ((line.full || i < value->n) && size > sizeof(cut))
		memcpy(text + line.n, cut, sizeof(cut));
}
