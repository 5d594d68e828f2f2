/*
 * The validity key of a held plan and the verdict on it.
 *
 * The key holds what a plan bakes and what can differ from one call to the next; the rest cannot
 * change by construction or is bound each token.  Everything is compared for plain equality: a
 * larger capacity is not "compatible".  Unknown is never valid.
 */
#ifndef PAWL_RUNTIME_VALIDITY_H
#define PAWL_RUNTIME_VALIDITY_H

#include "passes/pass.h"
#include "runtime/identity.h"

struct pawl_plan_key {
	int64_t seq;         /* tokens a run takes */
	int64_t max_seq_len; /* capacity of the cache; 0: a cache without storage, fits no plan */
	int64_t n_layers;    /* of the model, not of the cache */
	enum pawl_dtype cache_dtype;
	uint64_t shape_key; /* runtime/shape_key.h */
	enum pawl_precision precision;
	int64_t n_kv_heads, head_dim;
	enum pawl_layout k_layout, v_layout;
	uint64_t device; /* id of runtime/device.h */
	int64_t ring;    /* positions that layers with a window keep; 0: max_seq_len, as all */
	int64_t ring_window; /* that those rings are for; 0 without rings */
	/* Of a plan over a cache in blocks; 0 of one over a sequence in order. */
	int64_t n_sequences, block_size, max_blocks;
};

enum pawl_key_field {
#define PAWL_KEY_ROW(id, member, name, kind) PAWL_KEY_##id,
#include "runtime/plan_key.def"
	PAWL_KEY_ALLOC_ID, /* the session's, compared last */
	PAWL_KEY_NONE,     /* no field differs */
	PAWL_N_KEY_FIELDS = PAWL_KEY_NONE
};

enum pawl_validity {
	PAWL_VALID,              /* may serve as is */
	PAWL_ALLOCATION_CHANGED, /* only the identity of the cache differs: rebinding may be tried
				  */
	PAWL_PLAN_STALE          /* a structural field differs, whatever the allocation: rebuild */
};

struct pawl_verdict {
	enum pawl_validity validity;
	enum pawl_key_field field; /* the first that differs */
	uint64_t held, asked;      /* its values, as 64 bits */
};

/* The one place of comparison.  Structural fields first, in table order, the allocation last. */
struct pawl_verdict pawl_plan_validity(const struct pawl_plan_key *held,
	struct pawl_kv_alloc_id held_alloc, const struct pawl_plan_key *asked,
	struct pawl_kv_alloc_id asked_alloc);

const char *pawl_validity_name(enum pawl_validity validity);
/* "max_seq_len"; "none" for PAWL_KEY_NONE. */
const char *pawl_key_field_name(enum pawl_key_field field);
/* "256", "f16", "0x1f..."; returns out. */
const char *pawl_key_value_text(enum pawl_key_field field, uint64_t value, char *out, size_t n);
/* The value of a structural field as 64 bits. */
uint64_t pawl_plan_key_value(const struct pawl_plan_key *key, enum pawl_key_field field);
/* "stale: max_seq_len is 256, 512 is asked for"; returns out. */
const char *pawl_verdict_text(const struct pawl_verdict *verdict, char *out, size_t n);
const char *pawl_precision_name(enum pawl_precision precision);

#endif
