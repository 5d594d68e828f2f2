#include "models/text.h"

#include <string.h>

bool
pawl_text_is(struct pawl_text text, const char *wanted)
{
	return text.n == strlen(wanted) && (text.n == 0 || !memcmp(text.bytes, wanted, text.n));
}

void
pawl_text_show(struct pawl_text text, char *out, size_t size)
{
	bool whole = text.n < size;
	size_t n = whole ? text.n : size - 4;

	for (size_t i = 0; i < n; i++) {
		out[i] = text.bytes[i];
		if (out[i] < ' ' || out[i] >= 0x7f)
			out[i] = '?';
	}
	if (whole)
		out[n] = 0;
	else
		memcpy(out + n, "...", 4);
}
