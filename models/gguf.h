/*
 * Reader of GGUF files, versions 2 and 3 (little endian).
 *
 * Everything in the file is untrusted: pawl_gguf_open() checks the whole structure, so that a
 * file it accepts can be used without further range checks.  Rules beyond the format's own text:
 *   - general.alignment is a u32, a multiple of 8 (not only powers of two) and at most 1 MiB;
 *   - keys are 1..65535 and tensor names 1..255 printable ASCII characters, none twice;
 *   - arrays of arrays are refused;
 *   - tensors have 1..4 dimensions, none of them 0, and cover the data section in any order
 *     without overlap and without holes other than the padding to the alignment; bytes after
 *     the last tensor are ignored.
 * Errors are PAWL_INVALID_FILE, worded "FILE: byte OFFSET: field: reason".  A tensor type that
 * the format knows and Pawl does not decode is PAWL_UNSUPPORTED.  PAWL_ENVIRONMENT and
 * PAWL_OUT_OF_MEMORY say that the machine refused.
 *
 * A reader never changes after opening, except for the `used` marks of tensors, so threads may
 * share it.  All strings and tensor data point into the file's bytes: they live as long as the
 * reader and are not NUL-terminated.
 */
#ifndef PAWL_MODELS_GGUF_H
#define PAWL_MODELS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/status.h"
#include "models/map_file.h"

enum { PAWL_GGUF_MAX_RANK = 4 };

enum pawl_gguf_type {
	PAWL_GGUF_U8 = 0,
	PAWL_GGUF_I8 = 1,
	PAWL_GGUF_U16 = 2,
	PAWL_GGUF_I16 = 3,
	PAWL_GGUF_U32 = 4,
	PAWL_GGUF_I32 = 5,
	PAWL_GGUF_F32 = 6,
	PAWL_GGUF_BOOL = 7,
	PAWL_GGUF_STRING = 8,
	PAWL_GGUF_ARRAY = 9,
	PAWL_GGUF_U64 = 10,
	PAWL_GGUF_I64 = 11,
	PAWL_GGUF_F64 = 12,
	PAWL_N_GGUF_TYPES
};

struct pawl_gguf_string {
	const char *text;
	size_t n;
};

struct pawl_gguf_value {
	struct pawl_gguf_string key;
	enum pawl_gguf_type type;
	enum pawl_gguf_type element; /* of an array; otherwise equal to type */
	size_t n;                    /* elements of an array, otherwise 1 */
	const unsigned char *data;   /* unaligned; strings each follow their u64 length */
	size_t n_bytes;
};

struct pawl_gguf_tensor {
	struct pawl_gguf_string name;
	enum pawl_dtype dtype;
	int rank;
	int64_t dims[PAWL_GGUF_MAX_RANK]; /* dims[0] is the fastest axis; 1 beyond rank */
	int64_t n_elements;
	const void *data; /* at a multiple of the alignment from the start of the file */
	size_t n_bytes;
	bool used; /* for the loader, to report what it left over */
};

struct pawl_gguf {
	char *name; /* of the file, for messages */
	const unsigned char *bytes;
	size_t n_bytes;
	uint32_t version;
	uint32_t alignment;
	struct pawl_gguf_value *values; /* in the file's order */
	size_t n_values;
	struct pawl_gguf_tensor *tensors; /* in the file's order */
	size_t n_tensors;
	struct pawl_gguf_value **values_by_key;
	struct pawl_gguf_tensor **tensors_by_name;
	struct pawl_file_map map; /* empty when the bytes are borrowed */
};

enum pawl_status pawl_gguf_open(const char *path, struct pawl_gguf **out, struct pawl_error *err);

/*
 * Reads bytes that the caller keeps until pawl_gguf_free(); `name` stands for the file in
 * messages.  Tensor data is aligned only as far as `bytes` is.
 */
enum pawl_status pawl_gguf_parse(const void *bytes, size_t n_bytes, const char *name,
	struct pawl_gguf **out, struct pawl_error *err);
void pawl_gguf_free(struct pawl_gguf *gguf);

/* NULL when there is none. */
const struct pawl_gguf_value *pawl_gguf_find(const struct pawl_gguf *gguf, const char *key);
struct pawl_gguf_tensor *pawl_gguf_find_tensor(const struct pawl_gguf *gguf, const char *name);

/* As pawl_gguf_find_tensor(), and marks it used; PAWL_INVALID_FILE when there is none. */
enum pawl_status pawl_gguf_need_tensor(const struct pawl_gguf *gguf, const char *name,
	const struct pawl_gguf_tensor **out, struct pawl_error *err);

/*
 * Typed metadata.  need: a missing key is an error; get: it gives the fallback.  A value of
 * another type is always an error.  An integer of any width is taken when its value fits;
 * nothing else is converted (no float for an integer, no f64 for an f32, no bool for either).
 */
enum pawl_status pawl_gguf_need_u32(
	const struct pawl_gguf *gguf, const char *key, uint32_t *out, struct pawl_error *err);
enum pawl_status pawl_gguf_need_u64(
	const struct pawl_gguf *gguf, const char *key, uint64_t *out, struct pawl_error *err);
enum pawl_status pawl_gguf_need_f32(
	const struct pawl_gguf *gguf, const char *key, float *out, struct pawl_error *err);
enum pawl_status pawl_gguf_need_bool(
	const struct pawl_gguf *gguf, const char *key, bool *out, struct pawl_error *err);
enum pawl_status pawl_gguf_need_string(const struct pawl_gguf *gguf, const char *key,
	struct pawl_gguf_string *out, struct pawl_error *err);

enum pawl_status pawl_gguf_get_u32(const struct pawl_gguf *gguf, const char *key, uint32_t fallback,
	uint32_t *out, struct pawl_error *err);
enum pawl_status pawl_gguf_get_u64(const struct pawl_gguf *gguf, const char *key, uint64_t fallback,
	uint64_t *out, struct pawl_error *err);
enum pawl_status pawl_gguf_get_f32(const struct pawl_gguf *gguf, const char *key, float fallback,
	float *out, struct pawl_error *err);
enum pawl_status pawl_gguf_get_bool(const struct pawl_gguf *gguf, const char *key, bool fallback,
	bool *out, struct pawl_error *err);
/* The fallback may be NULL: out is then {NULL, 0}. */
enum pawl_status pawl_gguf_get_string(const struct pawl_gguf *gguf, const char *key,
	const char *fallback, struct pawl_gguf_string *out, struct pawl_error *err);

/*
 * Arrays, copied into the arena (one allocation; the strings' text stays in the file).  A
 * missing key gives *out = NULL and *n = 0: pawl_gguf_find() tells it from an empty array.
 */
enum pawl_status pawl_gguf_get_strings(const struct pawl_gguf *gguf, const char *key,
	struct pawl_arena *arena, const struct pawl_gguf_string **out, size_t *n,
	struct pawl_error *err);
enum pawl_status pawl_gguf_get_f32s(const struct pawl_gguf *gguf, const char *key,
	struct pawl_arena *arena, const float **out, size_t *n, struct pawl_error *err);
enum pawl_status pawl_gguf_get_i32s(const struct pawl_gguf *gguf, const char *key,
	struct pawl_arena *arena, const int32_t **out, size_t *n, struct pawl_error *err);
enum pawl_status pawl_gguf_get_u32s(const struct pawl_gguf *gguf, const char *key,
	struct pawl_arena *arena, const uint32_t **out, size_t *n, struct pawl_error *err);

/* Where in the file the value's bytes begin, for a caller's own messages. */
size_t pawl_gguf_value_offset(const struct pawl_gguf *gguf, const struct pawl_gguf_value *value);

/* PAWL_INVALID_FILE, worded as the reader's own errors: what is wrong with the value of a key. */
enum pawl_status pawl_gguf_refuse(const struct pawl_gguf *gguf, const char *key,
	struct pawl_error *err, const char *format, ...) PAWL_PRINTF(4, 5);

/* "u32", "string", "array"...; never NULL. */
const char *pawl_gguf_type_name(enum pawl_gguf_type type);

/*
 * Writes a short one-line form of the value, NUL-terminated and cut to size: numbers, quoted
 * strings with control characters escaped, arrays by their type, length and first elements.
 */
void pawl_gguf_format_value(const struct pawl_gguf_value *value, char *text, size_t size);

#endif
