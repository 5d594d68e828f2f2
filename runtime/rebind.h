/*
 * Rebinding the KV storages of a session to those of another cache, under a guard that proves them
 * interchangeable.  All or nothing: a refusal changes nothing and costs one rebuild; a wrong
 * acceptance would serve one user's cache to another.
 *
 * Order of the checks: not shared; location of the incoming cache, of the session, their equality; then for
 * layer ascending, for slot ascending: incoming slot there, session has one there, then, unless
 * they are the same object: dtype and bytes, dims, layout; last, no incoming slot shares memory
 * with another.
 */
#ifndef PAWL_RUNTIME_REBIND_H
#define PAWL_RUNTIME_REBIND_H

#include "runtime/bindings.h"
#include "runtime/identity.h"

/* What a session may be rebound to. */
struct pawl_kv_rebind_source {
	void *ctx;
	struct pawl_kv_alloc_id (*alloc_id)(void *ctx);
	/* Unknown: where the bytes live cannot be proved. */
	struct pawl_location (*location)(void *ctx);
	/* No reference is given; NULL when there is none.  which: 0 = K, 1 = V of a KV cache. */
	struct pawl_storage *(*slot)(void *ctx, int32_t layer, int which);
	/* Whether somebody else reads the storages, so that they must not be written; NULL: never. */
	bool (*is_shared)(void *ctx);
	/* Whether all storages were allocated for this source, so that no two share memory; NULL: it is
	 * not known and will be looked at. */
	bool (*is_disjoint)(void *ctx);
};

enum pawl_refusal_kind {
	PAWL_REFUSAL_NONE,
	PAWL_REFUSAL_SHARED,            /* the incoming cache has its storages from a fork */
	PAWL_REFUSAL_RESIDENCY_UNKNOWN, /* of the incoming cache, or of the session's own */
	PAWL_REFUSAL_RESIDENCY_DIFFERS,
	PAWL_REFUSAL_MISSING_SLOT,    /* the incoming cache has no storage there */
	PAWL_REFUSAL_UNBAKED_SLOT,    /* the session has none there */
	PAWL_REFUSAL_STORAGE_DIFFERS, /* dtype or byte length */
	PAWL_REFUSAL_SHAPE_DIFFERS,
	PAWL_REFUSAL_LAYOUT_DIFFERS,
	PAWL_REFUSAL_ALIASED, /* shares memory with another incoming slot */
	PAWL_N_REFUSALS
};

struct pawl_refusal {
	enum pawl_refusal_kind kind;
	int32_t layer, which;
	int32_t other_layer, other_which;           /* ALIASED */
	struct pawl_location baked, incoming;       /* RESIDENCY_* */
	struct pawl_type baked_type, incoming_type; /* *_DIFFERS of a slot */
	int64_t baked_bytes, incoming_bytes;
};

/* The KV side of a session: which slots, and whose storages are behind them. */
struct pawl_kv_binding {
	int32_t n_layers, n_which;
	int32_t *slots; /* n_layers * n_which slots of the plan */
	struct pawl_kv_alloc_id alloc_id;
	struct pawl_location location;
};

/*
 * Moves bindings to the storages of source and takes over its allocation id, or fills *refusal and
 * returns false.  Extra layers and slots of the source are ignored.  Allocates nothing.
 */
bool pawl_kv_rebind(struct pawl_bindings *bindings, struct pawl_kv_binding *kv,
	const struct pawl_kv_rebind_source *source, struct pawl_refusal *refusal);

/* "storage differs" and the like. */
const char *pawl_refusal_name(enum pawl_refusal_kind kind);
/* "layer 3 v: shape differs: the plan has f16 [1, 3, 256, 64], ..."; returns out. */
const char *pawl_refusal_text(const struct pawl_refusal *refusal, char *out, size_t n);

#endif
