/*
 * Composes GGUF files in memory, well-formed or broken on purpose:
 *
 *	struct pawl_gguf_build *b = pawl_gguf_build_new(3);
 *	pawl_gguf_build_string(b, "general.architecture", "llama");
 *	pawl_gguf_build_u32(b, "llama.block_count", 2);
 *	pawl_gguf_build_tensor(b, "output_norm.weight", PAWL_DTYPE_F32, 1, (int64_t[]){64}, data);
 *	bytes = pawl_gguf_build_finish(b, &n_bytes);    (free() it)
 *
 * Metadata and tensors may be added in any order.  Data is padded to the alignment, which is 32
 * until pawl_gguf_build_alignment() says otherwise.  For tests: running out of memory aborts.
 */
#ifndef PAWL_TESTS_GGUF_BUILD_H
#define PAWL_TESTS_GGUF_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/dtype.h"
#include "models/gguf.h"

struct pawl_gguf_build;

struct pawl_gguf_build *pawl_gguf_build_new(uint32_t version);
/* The file's bytes; frees the builder. */
void *pawl_gguf_build_finish(struct pawl_gguf_build *b, size_t *n_bytes);
/* As finish, into a file; the test fails when it cannot be written. */
void pawl_gguf_build_write(struct pawl_gguf_build *b, const char *path);

void pawl_gguf_build_u8(struct pawl_gguf_build *b, const char *key, uint8_t value);
void pawl_gguf_build_i8(struct pawl_gguf_build *b, const char *key, int8_t value);
void pawl_gguf_build_u16(struct pawl_gguf_build *b, const char *key, uint16_t value);
void pawl_gguf_build_i16(struct pawl_gguf_build *b, const char *key, int16_t value);
void pawl_gguf_build_u32(struct pawl_gguf_build *b, const char *key, uint32_t value);
void pawl_gguf_build_i32(struct pawl_gguf_build *b, const char *key, int32_t value);
void pawl_gguf_build_u64(struct pawl_gguf_build *b, const char *key, uint64_t value);
void pawl_gguf_build_i64(struct pawl_gguf_build *b, const char *key, int64_t value);
void pawl_gguf_build_f32(struct pawl_gguf_build *b, const char *key, float value);
void pawl_gguf_build_f64(struct pawl_gguf_build *b, const char *key, double value);
void pawl_gguf_build_bool(struct pawl_gguf_build *b, const char *key, bool value);
void pawl_gguf_build_string(struct pawl_gguf_build *b, const char *key, const char *value);

void pawl_gguf_build_strings(
	struct pawl_gguf_build *b, const char *key, const char *const *values, size_t n);
/* n numbers of the element type, packed. */
void pawl_gguf_build_array(struct pawl_gguf_build *b, const char *key, enum pawl_gguf_type element,
	const void *values, size_t n);

/* data: as many bytes as dtype and dims ask for; NULL is all zero. */
void pawl_gguf_build_tensor(struct pawl_gguf_build *b, const char *name, enum pawl_dtype dtype,
	int rank, const int64_t *dims, const void *data);

/* Writes general.alignment and pads by it; any value. */
void pawl_gguf_build_alignment(struct pawl_gguf_build *b, uint32_t alignment);

/* Broken files.  What the header claims instead of the true counts: */
void pawl_gguf_build_claim(struct pawl_gguf_build *b, uint64_t n_tensors, uint64_t n_values);
/* One record, whatever its bytes; counted as one value or one tensor. */
void pawl_gguf_build_raw_value(struct pawl_gguf_build *b, const void *bytes, size_t n_bytes);
void pawl_gguf_build_raw_tensor(struct pawl_gguf_build *b, const void *bytes, size_t n_bytes);
/* Appends to the data section, after the tensors added so far, without padding; NULL: zeros. */
void pawl_gguf_build_data(struct pawl_gguf_build *b, const void *bytes, size_t n_bytes);

/* A tensor record spelt out, with no data of its own. */
struct pawl_gguf_build_record {
	const char *name;
	uint64_t name_length; /* 0: that of name */
	uint32_t rank;        /* claimed; dims written are those up to n_dims */
	int n_dims;
	uint64_t dims[8];
	uint32_t type;
	uint64_t offset;
};
void pawl_gguf_build_record(struct pawl_gguf_build *b, const struct pawl_gguf_build_record *record);

#endif
