/*
 * The alphabet of byte-level vocabularies: each byte is written as one printable character, bytes
 * that print in Latin-1 as themselves, the others as U+0100 onwards (GPT-2's bytes_to_unicode).
 * Thread-safe; no state.
 */
#ifndef PAWL_MODELS_BYTE_LEVEL_H
#define PAWL_MODELS_BYTE_LEVEL_H

#include <stddef.h>
#include <stdint.h>

/* The code point that stands for a byte. */
uint32_t pawl_byte_level_code(unsigned char byte);

/*
 * Decodes a token's text, n bytes of UTF-8, to at most n bytes at out; returns how many.  A text
 * with any character outside of the alphabet stands for itself as a whole and is copied.
 */
size_t pawl_byte_level_decode(const char *text, size_t n, char *out);

/* Writes n bytes in the alphabet: at most 2 n bytes at out; returns how many. */
size_t pawl_byte_level_encode(const char *bytes, size_t n, char *out);

#endif
