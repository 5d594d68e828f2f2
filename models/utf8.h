/*
 * UTF-8 as the Unicode standard defines it (table 3-7): overlong forms, surrogates and code
 * points above U+10FFFF are ill-formed.
 *
 * All functions are pure or work on the caller's object; no locale, no allocation.
 */
#ifndef PAWL_MODELS_UTF8_H
#define PAWL_MODELS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads one character at the start of bytes (n > 0).
 *   k > 0: a character of k bytes, *code is set;
 *   0:     the n bytes begin a character and end inside of it;
 *   -k:    ill-formed; the first k bytes (1 to 3) are one maximal subpart, the unit that one
 *          U+FFFD stands for.
 */
int pawl_utf8_next(const char *bytes, size_t n, uint32_t *code);

/* Writes the 1 to 4 bytes of a code point <= U+10FFFF; returns how many. */
int pawl_utf8_put(uint32_t code, char out[4]);

/* How many leading bytes are whole characters: n when all of it is UTF-8. */
size_t pawl_utf8_valid_prefix(const char *bytes, size_t n);

/*
 * Puts characters together from pieces that may end anywhere, such as tokens.  What comes out is
 * always UTF-8 made of whole characters; ill-formed input becomes one U+FFFD a maximal subpart,
 * the same whichever way the input is cut.
 */
struct pawl_utf8_stream {
	char held[4]; /* the begun character */
	unsigned int n_held;
};

/* Bytes that a push of n bytes can write; a flush writes at most PAWL_UTF8_STREAM_ROOM(0). */
#define PAWL_UTF8_STREAM_ROOM(n) (3 * ((size_t)(n) + 1))

void pawl_utf8_stream_init(struct pawl_utf8_stream *stream);

/* Writes what is complete to out, without a final zero; returns the number of bytes written. */
size_t pawl_utf8_stream_push(
	struct pawl_utf8_stream *stream, const char *bytes, size_t n, char *out);

/* End of input: a held begun character comes out as U+FFFD.  The stream may be used again. */
size_t pawl_utf8_stream_flush(struct pawl_utf8_stream *stream, char *out);

#endif
