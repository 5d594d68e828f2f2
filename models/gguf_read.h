/*
 * Cursor over the bytes of a GGUF file, shared by the parts of the reader.  Every read checks
 * what is left and, failing, words the error from the cursor's place: "FILE: byte OFFSET:
 * metadata 3 (llama.block_count): value: reason".
 */
#ifndef PAWL_MODELS_GGUF_READ_H
#define PAWL_MODELS_GGUF_READ_H

#include "models/gguf.h"

struct pawl_gguf_cursor {
	struct pawl_gguf *gguf; /* under construction */
	size_t at;
	const char *section;            /* "metadata" or "tensor"; NULL in the header */
	size_t index;                   /* of the record in the section */
	struct pawl_gguf_string record; /* its key or name; empty until that is checked */
	struct pawl_error *err;
};

size_t pawl_gguf_left(const struct pawl_gguf_cursor *cursor);

/* PAWL_INVALID_FILE about `field`, found at byte `at`. */
enum pawl_status pawl_gguf_bad(const struct pawl_gguf_cursor *cursor, size_t at, const char *field,
	const char *format, ...) PAWL_PRINTF(4, 5);

enum pawl_status pawl_gguf_read_u32(
	struct pawl_gguf_cursor *cursor, const char *field, uint32_t *out);
enum pawl_status pawl_gguf_read_u64(
	struct pawl_gguf_cursor *cursor, const char *field, uint64_t *out);
enum pawl_status pawl_gguf_read_string(
	struct pawl_gguf_cursor *cursor, const char *field, struct pawl_gguf_string *out);
/* A string of 1..max printable ASCII characters. */
enum pawl_status pawl_gguf_read_name(struct pawl_gguf_cursor *cursor, const char *field, size_t max,
	struct pawl_gguf_string *out);

/*
 * Room for one record more: returns the array, perhaps moved, or NULL (the old array stays).
 * Grows with the records that were read, so that a count claimed by the file allocates nothing.
 */
void *pawl_gguf_grow(void *array, size_t n, size_t *capacity, size_t size);

/* Order of keys and names in the sorted indexes: shorter first, then by bytes. */
int pawl_gguf_compare_strings(struct pawl_gguf_string a, struct pawl_gguf_string b);

/* The two sections, each read completely; `n` is the count claimed by the header. */
enum pawl_status pawl_gguf_read_metadata(struct pawl_gguf_cursor *cursor, uint64_t n);
enum pawl_status pawl_gguf_read_tensors(struct pawl_gguf_cursor *cursor, uint64_t n);

/* Smallest records: key of one character, type, one byte; name, rank, one dim, type, offset. */
enum { PAWL_GGUF_MIN_VALUE = 8 + 1 + 4 + 1, PAWL_GGUF_MIN_TENSOR = 8 + 1 + 4 + 8 + 4 + 8 };

#endif
