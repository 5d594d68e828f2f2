#include "runtime/kv_over.h"

#include "runtime/kv_cache_parts.h"
#include "runtime/latent_cache_parts.h"

static enum pawl_status
check(const struct pawl_kv_form *form, struct pawl_storage *const *storages, struct pawl_error *err)
{
	for (int32_t i = 0; i < form->n_layers * form->n_which; i++) {
		int32_t layer = i / form->n_which, which = i % form->n_which;
		const struct pawl_type type = form->type(form->shape, layer, which);

		if (!storages[i] || !pawl_type_equal(&storages[i]->type, &type))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT, "layer %d slot %d %s", layer,
				which,
				storages[i] ? "has another type than its cache" : "is missing");
		if (!pawl_location_equal(storages[i]->location, storages[0]->location))
			return pawl_fail(err, PAWL_INVALID_ARGUMENT,
				"layer %d slot %d is not where the first is", layer, which);
		for (int32_t j = 0; j < i; j++)
			if (pawl_storage_overlaps(storages[i], storages[j]))
				return pawl_fail(err, PAWL_INVALID_ARGUMENT,
					"layer %d slot %d shares memory with layer %d slot %d",
					layer, which, j / form->n_which, j % form->n_which);
	}
	return PAWL_OK;
}

static void
lend(struct pawl_kv_store *store, struct pawl_storage *const *storages)
{
	for (int32_t i = 0; i < store->n_layers * store->n_which; i++)
		store->tensors[i].storage = pawl_storage_ref(storages[i]);
	store->location = storages[0]->location;
}

enum pawl_status
pawl_kv_cache_over(const struct pawl_kv_shape *shape, struct pawl_storage *const *storages,
	struct pawl_kv_cache **out, struct pawl_error *err)
{
	const struct pawl_kv_form form = pawl_kv_shape_form(shape);
	enum pawl_status status = pawl_kv_shape_check(shape, err);

	if (!status)
		status = check(&form, storages, err);
	if (!status)
		status = pawl_kv_cache_with_dims(
			shape->n_layers, shape->n_kv_heads, shape->head_dim, out, err);
	if (status)
		return status;
	(*out)->shape = *shape;
	lend(&(*out)->store, storages);
	return PAWL_OK;
}

enum pawl_status
pawl_latent_kv_cache_over(const struct pawl_latent_shape *shape,
	struct pawl_storage *const *storages, struct pawl_latent_kv_cache **out,
	struct pawl_error *err)
{
	const struct pawl_kv_form form = pawl_latent_shape_form(shape);
	enum pawl_status status = pawl_latent_shape_check(shape, err);

	if (!status)
		status = check(&form, storages, err);
	if (!status)
		status = pawl_latent_kv_cache_bare(shape, out, err);
	if (!status)
		lend(&(*out)->store, storages);
	return status;
}
