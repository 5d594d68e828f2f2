#include "codegen/cuda/cuda_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_CAPACITY = 4096 };

void
pawl_cuda_text_init(struct pawl_cuda_text *text)
{
	*text = (struct pawl_cuda_text){.bytes = NULL};
}

void
pawl_cuda_text_release(struct pawl_cuda_text *text)
{
	free(text->bytes);
	pawl_cuda_text_init(text);
}

void
pawl_cuda_text_clear(struct pawl_cuda_text *text)
{
	text->n = 0;
	if (text->bytes)
		text->bytes[0] = 0;
}

/* Room for n more bytes and a NUL. */
static bool
reserve(struct pawl_cuda_text *text, size_t n)
{
	size_t capacity = text->capacity ? text->capacity : LEAST_CAPACITY;
	char *bytes;

	if (text->failed)
		return false;
	while (capacity - text->n <= n)
		capacity *= 2;
	if (capacity == text->capacity)
		return true;
	bytes = realloc(text->bytes, capacity);
	if (!bytes) {
		text->failed = true;
		return false;
	}
	text->bytes = bytes;
	text->capacity = capacity;
	return true;
}

void
pawl_cuda_text_append(struct pawl_cuda_text *text, const char *bytes, size_t n)
{
	if (!reserve(text, n))
		return;
	memcpy(text->bytes + text->n, bytes, n);
	text->n += n;
	text->bytes[text->n] = 0;
}

void
pawl_cuda_text_vprint(struct pawl_cuda_text *text, const char *format, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	if (n < 0)
		text->failed = true;
	else if (reserve(text, (size_t)n))
		text->n += (size_t)vsnprintf(text->bytes + text->n, (size_t)n + 1, format, again);
	va_end(again);
}

void
pawl_cuda_text_print(struct pawl_cuda_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pawl_cuda_text_vprint(text, format, args);
	va_end(args);
}
