/*
 * A growing text.  Running out of memory is remembered, not reported at each call: the text is
 * then of no use, and whoever owns it asks once at the end.
 */
#ifndef PAWL_CODEGEN_CUDA_TEXT_H
#define PAWL_CODEGEN_CUDA_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "ir/status.h"

struct pawl_cuda_text {
	char *bytes; /* n of them and a NUL; NULL while empty */
	size_t n, capacity;
	bool failed;
};

void pawl_cuda_text_init(struct pawl_cuda_text *text);
void pawl_cuda_text_release(struct pawl_cuda_text *text);
/* Empties the text and keeps its memory. */
void pawl_cuda_text_clear(struct pawl_cuda_text *text);

void pawl_cuda_text_append(struct pawl_cuda_text *text, const char *bytes, size_t n);
void pawl_cuda_text_print(struct pawl_cuda_text *text, const char *format, ...) PAWL_PRINTF(2, 3);
void pawl_cuda_text_vprint(struct pawl_cuda_text *text, const char *format, va_list args)
	PAWL_PRINTF(2, 0);

#endif
