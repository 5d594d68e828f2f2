#include "models/byte_level.h"

#include "models/utf8.h"

#include <stdbool.h>
#include <string.h>

static bool
stands_for_itself(uint32_t byte)
{
	return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
	       (byte >= 0xae && byte <= 0xff);
}

/* The others in ascending order are 00-20, 7f-a0 and ad. */
uint32_t
pawl_byte_level_code(unsigned char byte)
{
	if (stands_for_itself(byte))
		return byte;
	if (byte <= 0x20)
		return 0x100u + byte;
	if (byte <= 0xa0)
		return 0x121u + (byte - 0x7fu);
	return 0x143;
}

static int
byte_of_code(uint32_t code)
{
	if (code < 0x100)
		return stands_for_itself(code) ? (int)code : -1;
	if (code <= 0x120)
		return (int)(code - 0x100);
	if (code <= 0x142)
		return (int)(code - 0x121 + 0x7f);
	return code == 0x143 ? 0xad : -1;
}

size_t
pawl_byte_level_decode(const char *text, size_t n, char *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n;) {
		uint32_t code;
		int k = pawl_utf8_next(text + i, n - i, &code);
		int byte = k > 0 ? byte_of_code(code) : -1;

		if (byte < 0) {
			memcpy(out, text, n);
			return n;
		}
		out[n_out++] = (char)byte;
		i += (size_t)k;
	}
	return n_out;
}

size_t
pawl_byte_level_encode(const char *bytes, size_t n, char *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n; i++) {
		char code[4];
		int k = pawl_utf8_put(pawl_byte_level_code((unsigned char)bytes[i]), code);

		memcpy(out + n_out, code, (size_t)k);
		n_out += (size_t)k;
	}
	return n_out;
}
