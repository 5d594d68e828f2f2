/*
 * The weights of a model instance, bound to plans by name.
 *
 * Row-major matrices are borrowed from their source, vectors copied.  Packed ones and copies are
 * made once for each (name, layout) and shared by all plans of the instance; the source is told
 * that its pages may go.
 * Reference-counted, any thread.  The identity of an instance is part of the shape key: changing
 * weight bytes under a live session is the caller's mistake and is not noticed.
 */
#ifndef PAWL_RUNTIME_WEIGHTS_H
#define PAWL_RUNTIME_WEIGHTS_H

#include "codegen/target.h"
#include "runtime/device.h"
#include "runtime/identity.h"
#include "runtime/storage.h"

/* A row-major tensor of a source. */
struct pawl_weight {
	const void *bytes;
	int64_t n_bytes;
	enum pawl_dtype dtype;
	int rank;
	int64_t dim[PAWL_MAX_RANK]; /* axis 0 slowest */
};

/* Where weights come from; must outlive every storage bound from it. */
struct pawl_weight_source {
	void *ctx;
	/* PAWL_INVALID_FILE or PAWL_INVALID_ARGUMENT when there is none of that name. */
	enum pawl_status (*find)(
		void *ctx, const char *name, struct pawl_weight *out, struct pawl_error *err);
	/* Part of a weight that has been packed or copied: its pages are not needed soon.  May be NULL. */
	void (*drop)(void *ctx, const void *bytes, int64_t n_bytes);
};

struct pawl_weights;

enum pawl_status pawl_weights_new(
	const struct pawl_weight_source *source, struct pawl_weights **out, struct pawl_error *err);
struct pawl_weights *pawl_weights_ref(struct pawl_weights *weights);
/* NULL is allowed. */
void pawl_weights_unref(struct pawl_weights *weights);

struct pawl_model_instance_id pawl_weights_id(const struct pawl_weights *weights);

/*
 * The weight `name` as exactly this type; the caller gets a reference.  team packs (NULL: the
 * caller alone).  PAWL_INVALID_ARGUMENT when type or dims differ from the source's, naming both.
 */
enum pawl_status pawl_weights_bind(struct pawl_weights *weights, const char *name,
	const struct pawl_type *type, struct pawl_team *team, struct pawl_storage **out,
	struct pawl_error *err);

/* The same in the memory of a device, to which it is brought once.  The device's errors. */
enum pawl_status pawl_weights_bind_on(struct pawl_weights *weights, struct pawl_device *device,
	const char *name, const struct pawl_type *type, struct pawl_team *team,
	struct pawl_storage **out, struct pawl_error *err);

/* Bytes of packed forms made so far. */
int64_t pawl_weights_packed_bytes(struct pawl_weights *weights);

/* A packed copy of row-major storage, from the region; NULL: by itself. */
enum pawl_status pawl_storage_pack(const struct pawl_storage *rows, const struct pawl_type *type,
	struct pawl_team *team, struct pawl_region *region, struct pawl_storage **out,
	struct pawl_error *err);

#endif
