#include "models/utf8.h"

#include <string.h>

int
pawl_utf8_next(const char *bytes, size_t n, uint32_t *code)
{
	const unsigned char *s = (const unsigned char *)bytes;
	unsigned char low = 0x80, high = 0xbf; /* range of the second byte */
	uint32_t value;
	size_t length;

	if (s[0] < 0x80) {
		*code = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		length = 2;
		value = s[0] & 0x1fu;
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		length = 3;
		value = s[0] & 0x0fu;
		low = s[0] == 0xe0 ? 0xa0 : 0x80;
		high = s[0] == 0xed ? 0x9f : 0xbf;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		length = 4;
		value = s[0] & 0x07u;
		low = s[0] == 0xf0 ? 0x90 : 0x80;
		high = s[0] == 0xf4 ? 0x8f : 0xbf;
	} else {
		return -1;
	}
	for (size_t i = 1; i < length; i++) {
		if (i == n)
			return 0;
		if (s[i] < low || s[i] > high)
			return -(int)i;
		value = value << 6 | (s[i] & 0x3fu);
		low = 0x80;
		high = 0xbf;
	}
	*code = value;
	return (int)length;
}

int
pawl_utf8_put(uint32_t code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

size_t
pawl_utf8_valid_prefix(const char *bytes, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint32_t code;
		int k = pawl_utf8_next(bytes + i, n - i, &code);

		if (k <= 0)
			break;
		i += (size_t)k;
	}
	return i;
}

static size_t
put_replacement(char *out)
{
	memcpy(out, "\xef\xbf\xbd", 3);
	return 3;
}

void
pawl_utf8_stream_init(struct pawl_utf8_stream *stream)
{
	stream->n_held = 0;
}

/* Offers one more byte to the held character; returns whether the byte was taken. */
static int
extend_held(struct pawl_utf8_stream *stream, char byte, char *out, size_t *n_out)
{
	uint32_t code;
	int k;

	stream->held[stream->n_held] = byte;
	k = pawl_utf8_next(stream->held, stream->n_held + 1, &code);
	if (k == 0) {
		stream->n_held++;
		return 1;
	}
	stream->n_held = 0;
	if (k < 0) {
		*n_out += put_replacement(out + *n_out);
		return 0;
	}
	memcpy(out + *n_out, stream->held, (size_t)k);
	*n_out += (size_t)k;
	return 1;
}

size_t
pawl_utf8_stream_push(struct pawl_utf8_stream *stream, const char *bytes, size_t n, char *out)
{
	size_t n_out = 0, i = 0;

	while (i < n) {
		uint32_t code;
		int k;

		if (stream->n_held) {
			i += (size_t)extend_held(stream, bytes[i], out, &n_out);
			continue;
		}
		k = pawl_utf8_next(bytes + i, n - i, &code);
		if (k == 0) {
			stream->n_held = (unsigned int)(n - i);
			memcpy(stream->held, bytes + i, n - i);
			break;
		}
		if (k < 0) {
			n_out += put_replacement(out + n_out);
			i += (size_t)-k;
			continue;
		}
		memcpy(out + n_out, bytes + i, (size_t)k);
		n_out += (size_t)k;
		i += (size_t)k;
	}
	return n_out;
}

size_t
pawl_utf8_stream_flush(struct pawl_utf8_stream *stream, char *out)
{
	if (!stream->n_held)
		return 0;
	stream->n_held = 0;
	return put_replacement(out);
}
