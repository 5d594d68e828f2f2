/*
 * The shape key: a 64-bit FNV-1a over everything that a model's graph bakes and that no other
 * field of the validity key compares.  What is bound each token (ids, rope tables, positions) stays
 * out of it.
 */
#ifndef PAWL_RUNTIME_SHAPE_KEY_H
#define PAWL_RUNTIME_SHAPE_KEY_H

#include "runtime/identity.h"

#include <stdbool.h>
#include <stddef.h>

/* The running value; starts at PAWL_SHAPE_KEY_INIT. */
struct pawl_shape_key {
	uint64_t value;
};

#define PAWL_SHAPE_KEY_INIT ((struct pawl_shape_key){0xcbf29ce484222325u})

/* Plain FNV-1a. */
void pawl_shape_key_bytes(struct pawl_shape_key *key, const void *bytes, size_t n);
/* The bytes, then their number as 8 bytes, so that "ab" "c" differs from "a" "bc". */
void pawl_shape_key_string(struct pawl_shape_key *key, const char *text);
void pawl_shape_key_u64(struct pawl_shape_key *key, uint64_t value);
/* The bit pattern: 0.0 and -0.0 differ. */
void pawl_shape_key_f64(struct pawl_shape_key *key, double value);
void pawl_shape_key_instance(struct pawl_shape_key *key, struct pawl_model_instance_id id);
/* "some" or "none". */
void pawl_shape_key_presence(struct pawl_shape_key *key, bool is_there);

#endif
